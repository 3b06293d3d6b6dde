//! may: stackful coroutines that report through unbounded channels or join handles.

use frame::{fail, measure, skynet_nodes, status_bytes, timed, Options, Outcome, FAN_OUT};
use may::coroutine::{self, JoinHandle};
use may::sync::{mpsc, Mutex, Semphore};
use std::sync::Arc;

const STACK_WORDS: usize = 1024;

fn start<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    // Unsafe because a coroutine may be on another thread after each suspension; none here uses thread locals.
    unsafe { coroutine::spawn(f) }
}

fn skynet_mpsc(parent: mpsc::Sender<i64>, first: i64, leaves: i64) {
    if leaves == 1 {
        parent.send(first).unwrap();
        return;
    }
    let (send, receive) = mpsc::channel();
    let part = leaves / FAN_OUT;
    for i in 0..FAN_OUT {
        let send = send.clone();
        start(move || skynet_mpsc(send, first + i * part, part));
    }
    let sum = (0..FAN_OUT).map(|_| receive.recv().unwrap()).sum();
    parent.send(sum).unwrap();
}

fn skynet_join(first: i64, leaves: i64) -> i64 {
    if leaves == 1 {
        return first;
    }
    let part = leaves / FAN_OUT;
    let children: [JoinHandle<i64>; FAN_OUT as usize] =
        std::array::from_fn(|i| start(move || skynet_join(first + i as i64 * part, part)));
    children.into_iter().map(|child| child.join().unwrap()).sum()
}

fn skynet(o: &Options) -> Outcome {
    let leaves = o.number("leaves", 1_000_000);
    let by_join = o.style == "join";
    let (seconds, sum) = timed(|| {
        if by_join {
            return skynet_join(0, leaves);
        }
        let (send, receive) = mpsc::channel();
        start(move || skynet_mpsc(send, 0, leaves));
        receive.recv().unwrap()
    });
    Outcome { seconds, units: skynet_nodes(leaves), ok: sum == leaves * (leaves - 1) / 2, ..Default::default() }
}

fn pingpong(o: &Options) -> Outcome {
    let rounds = o.number("messages", 2_000_000) / 2;
    let (seconds, last) = timed(|| {
        let (ping, ping_end) = mpsc::channel::<i64>();
        let (pong, pong_end) = mpsc::channel::<i64>();
        start(move || {
            for value in ping_end {
                pong.send(value + 1).unwrap();
            }
        });
        (0..rounds).fold(0, |last, _| {
            ping.send(last).unwrap();
            pong_end.recv().unwrap()
        })
    });
    Outcome { seconds, units: 2 * rounds, ok: last == rounds, ..Default::default() }
}

fn all_of(number: i64, f: impl Fn() + Send + Sync + 'static) -> f64 {
    let f = Arc::new(f);
    let (seconds, ()) = timed(|| {
        let running: Vec<_> = (0..number)
            .map(|_| {
                let f = f.clone();
                start(move || f())
            })
            .collect();
        running.into_iter().for_each(|c| c.join().unwrap());
    });
    seconds
}

fn mutex(o: &Options) -> Outcome {
    let (fibers, count) = (o.number("fibers", 4), o.number("count", 1_000_000));
    let counter = Arc::new(Mutex::new(0i64));
    let shared = counter.clone();
    let seconds = all_of(fibers, move || (0..count).for_each(|_| *shared.lock().unwrap() += 1));
    let ok = *counter.lock().unwrap() == fibers * count;
    Outcome { seconds, units: fibers * count, ok, ..Default::default() }
}

fn yields(o: &Options) -> Outcome {
    let (fibers, count) = (o.number("fibers", 2), o.number("count", 2_000_000));
    let seconds = all_of(fibers, move || (0..count).for_each(|_| coroutine::yield_now()));
    Outcome { seconds, units: fibers * count, ok: true, ..Default::default() }
}

fn spawn_join(o: &Options) -> Outcome {
    let count = o.number("count", 1_000_000);
    let (seconds, sum) = timed(|| (0..count).map(|i| start(move || i).join().unwrap()).sum::<i64>());
    Outcome { seconds, units: count, ok: sum == count * (count - 1) / 2, ..Default::default() }
}

fn memory(o: &Options) -> Outcome {
    let count = o.number("count", 1_000_000);
    let before = status_bytes("VmRSS:");
    let gate = Arc::new(Semphore::new(0));
    let (parked, parked_end) = mpsc::channel::<()>();
    let (seconds, ()) = timed(|| {
        for _ in 0..count {
            let (gate, parked) = (gate.clone(), parked.clone());
            start(move || {
                parked.send(()).unwrap();
                gate.wait();
                parked.send(()).unwrap();
            });
        }
        (0..count).for_each(|_| parked_end.recv().unwrap());
    });
    let grown = status_bytes("VmRSS:") - before;
    let (ending, ()) = timed(|| {
        (0..count).for_each(|_| gate.post());
        (0..count).for_each(|_| parked_end.recv().unwrap());
    });
    let each = count as f64;
    let figures = [("resident_bytes_per_fiber", grown as f64 / each), ("wake_and_end_ns_per_fiber", ending * 1e9 / each)];
    Outcome { seconds, units: count, ok: true, figures: figures.into() }
}

fn main() {
    let o: &'static Options = Box::leak(Box::new(Options::read()));
    // Coroutines of the configured size are the ones that are pooled; but what they take is to be seen where they are made cold.
    let pooled = if o.workload == "memory" { 1 } else { 10_000 };
    may::config().set_workers(o.workers).set_stack_size(STACK_WORDS).set_pool_capacity(pooled);
    let (unit, run): (&str, fn(&Options) -> Outcome) = match o.workload.as_str() {
        "skynet" => ("fiber", skynet),
        "pingpong" => ("message", pingpong),
        "mutex" => ("lock", mutex),
        "yield" => ("switch", yields),
        "spawn" => ("fiber", spawn_join),
        "memory" => ("fiber", memory),
        _ => fail("there is no such workload"),
    };
    measure("may", "0.3", unit, o, || start(move || run(o)).join().unwrap())
}
