//! chili: fork and join of two, shared at heartbeats.

use chili::{Config, Scope, ThreadPool};
use frame::{fail, measure, skynet_nodes, timed, Options, Outcome, FAN_OUT};
use std::num::NonZero;

fn skynet(s: &mut Scope<'_>, first: i64, leaves: i64) -> i64 {
    if leaves == 1 {
        return first;
    }
    children(s, first, leaves / FAN_OUT, FAN_OUT)
}

/// Ten children by joins of two.
fn children(s: &mut Scope<'_>, first: i64, part: i64, count: i64) -> i64 {
    if count == 1 {
        return skynet(s, first, part);
    }
    let half = count / 2;
    let (a, b) = s.join(|s| children(s, first, part, half), |s| children(s, first + half * part, part, count - half));
    a + b
}

fn sum(s: &mut Scope<'_>, low: i64, high: i64) -> i64 {
    if low == high {
        return low;
    }
    let middle = low + (high - low) / 2;
    let (a, b) = s.join(|s| sum(s, low, middle), |s| sum(s, middle + 1, high));
    a + b
}

fn main() {
    let o = Options::read();
    // The thread that asks is one of them.
    let pool = ThreadPool::with_config(Config { thread_count: NonZero::new(o.workers), ..Config::default() });
    let skynet_wanted = match o.workload.as_str() {
        "skynet" => true,
        "sum" => false,
        _ => fail("there is no such workload"),
    };
    let n = if skynet_wanted { o.number("leaves", 1_000_000) } else { o.number("high", 10_000_000) };
    let unit = if skynet_wanted { "fiber" } else { "process" };
    measure("chili", "0.2", unit, &o, || {
        let mut scope = pool.scope();
        if skynet_wanted {
            let (seconds, found) = timed(|| skynet(&mut scope, 0, n));
            Outcome { seconds, units: skynet_nodes(n), ok: found == n * (n - 1) / 2, ..Default::default() }
        } else {
            let (seconds, found) = timed(|| sum(&mut scope, 1, n));
            Outcome { seconds, units: 2 * n - 1, ok: found == n * (n + 1) / 2, ..Default::default() }
        }
    })
}
