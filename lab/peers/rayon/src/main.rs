//! rayon: fork and join, programs of tasks, and algorithms.

mod algorithms;
mod tasks;

use frame::{fail, measure, skynet_nodes, timed, Options, Outcome, FAN_OUT};

fn skynet_scope(first: i64, leaves: i64) -> i64 {
    if leaves == 1 {
        return first;
    }
    let part = leaves / FAN_OUT;
    let mut sums = [0i64; FAN_OUT as usize];
    rayon::scope(|s| {
        for (i, sum) in sums.iter_mut().enumerate() {
            s.spawn(move |_| *sum = skynet_scope(first + i as i64 * part, part));
        }
    });
    sums.iter().sum()
}

/// Ten children by joins of two.
fn skynet_join(first: i64, leaves: i64) -> i64 {
    if leaves == 1 {
        return first;
    }
    children(first, leaves / FAN_OUT, FAN_OUT)
}

fn children(first: i64, part: i64, count: i64) -> i64 {
    if count == 1 {
        return skynet_join(first, part);
    }
    let half = count / 2;
    let (a, b) = rayon::join(|| children(first, part, half), || children(first + half * part, part, count - half));
    a + b
}

fn sum_join(low: i64, high: i64) -> i64 {
    if low == high {
        return low;
    }
    let middle = low + (high - low) / 2;
    let (a, b) = rayon::join(|| sum_join(low, middle), || sum_join(middle + 1, high));
    a + b
}

fn sum_scope(low: i64, high: i64) -> i64 {
    if low == high {
        return low;
    }
    let middle = low + (high - low) / 2;
    let (mut a, mut b) = (0, 0);
    rayon::scope(|s| {
        s.spawn(|_| a = sum_scope(low, middle));
        s.spawn(|_| b = sum_scope(middle + 1, high));
    });
    a + b
}

fn main() {
    let o = Options::read();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(o.workers).build().unwrap();
    if algorithms::NAMES.contains(&o.workload.as_str()) {
        let mut algorithm = algorithms::Algorithm::new(&o);
        measure("rayon", "1", "element", &o, || pool.install(|| algorithm.run()));
    }
    if tasks::NAMES.contains(&o.workload.as_str()) {
        measure("rayon", "1", tasks::unit(&o.workload), &o, || pool.install(|| tasks::run(&o)));
    }
    let root: fn(i64, i64) -> i64 = match (o.workload.as_str(), o.style.as_str()) {
        ("skynet", "join") => skynet_join,
        ("skynet", "scope") => skynet_scope,
        ("sum", "join") => sum_join,
        ("sum", "scope") => sum_scope,
        _ => fail("there is no such workload or style"),
    };
    let skynet = o.workload == "skynet";
    let n = if skynet { o.number("leaves", 1_000_000) } else { o.number("high", 10_000_000) };
    let low = if skynet { 0 } else { 1 };
    measure("rayon", "1", if skynet { "fiber" } else { "process" }, &o, || {
        let (seconds, sum) = pool.install(|| timed(|| root(low, n)));
        let (units, right) = if skynet { (skynet_nodes(n), n * (n - 1) / 2) } else { (2 * n - 1, n * (n + 1) / 2) };
        Outcome { seconds, units, ok: sum == right, ..Default::default() }
    })
}
