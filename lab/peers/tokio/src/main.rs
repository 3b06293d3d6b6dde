//! tokio: tasks that report through join handles or mpsc channels.

mod echo;

use frame::{fail, measure, skynet_nodes, status_bytes, timed, Options, Outcome, FAN_OUT};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch, Mutex};
use tokio::task::JoinHandle;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

// A node's future is spawned, so it needs no box although it is recursive; `Send` has to be said, for the compiler cannot find it out.
fn skynet_join(first: i64, leaves: i64) -> impl Future<Output = i64> + Send {
    async move {
        if leaves == 1 {
            return first;
        }
        let part = leaves / FAN_OUT;
        let children: [JoinHandle<i64>; FAN_OUT as usize] =
            std::array::from_fn(|i| tokio::spawn(skynet_join(first + i as i64 * part, part)));
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    }
}

fn skynet_mpsc(parent: mpsc::Sender<i64>, first: i64, leaves: i64) -> impl Future<Output = ()> + Send {
    async move {
        if leaves == 1 {
            parent.send(first).await.unwrap();
            return;
        }
        let (send, mut receive) = mpsc::channel(FAN_OUT as usize);
        let part = leaves / FAN_OUT;
        for i in 0..FAN_OUT {
            tokio::spawn(skynet_mpsc(send.clone(), first + i * part, part));
        }
        drop(send);
        let mut sum = 0;
        while let Some(value) = receive.recv().await {
            sum += value;
        }
        parent.send(sum).await.unwrap();
    }
}

/// A channel a child, which takes one message: mpsc allocates a block of 32 for each of its channels.
fn skynet_oneshot(parent: oneshot::Sender<i64>, first: i64, leaves: i64) -> impl Future<Output = ()> + Send {
    async move {
        if leaves == 1 {
            return parent.send(first).unwrap();
        }
        let part = leaves / FAN_OUT;
        let children: [oneshot::Receiver<i64>; FAN_OUT as usize] = std::array::from_fn(|i| {
            let (send, receive) = oneshot::channel();
            tokio::spawn(skynet_oneshot(send, first + i as i64 * part, part));
            receive
        });
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        parent.send(sum).unwrap();
    }
}

fn sum_oneshot(parent: oneshot::Sender<i64>, low: i64, high: i64) -> impl Future<Output = ()> + Send {
    async move {
        if low == high {
            return parent.send(low).unwrap();
        }
        let middle = low + (high - low) / 2;
        let (a_end, a) = oneshot::channel();
        tokio::spawn(sum_oneshot(a_end, low, middle));
        let (b_end, b) = oneshot::channel();
        tokio::spawn(sum_oneshot(b_end, middle + 1, high));
        parent.send(a.await.unwrap() + b.await.unwrap()).unwrap();
    }
}

fn sum_join(low: i64, high: i64) -> impl Future<Output = i64> + Send {
    async move {
        if low == high {
            return low;
        }
        let middle = low + (high - low) / 2;
        let a = tokio::spawn(sum_join(low, middle));
        let b = tokio::spawn(sum_join(middle + 1, high));
        a.await.unwrap() + b.await.unwrap()
    }
}

async fn skynet(o: &Options, style: &str) -> Outcome {
    let leaves = o.number("leaves", 1_000_000);
    let start = Instant::now();
    let sum = if style == "join" {
        tokio::spawn(skynet_join(0, leaves)).await.unwrap()
    } else if style == "oneshot" {
        let (send, receive) = oneshot::channel();
        tokio::spawn(skynet_oneshot(send, 0, leaves));
        receive.await.unwrap()
    } else {
        let (send, mut receive) = mpsc::channel(1);
        tokio::spawn(skynet_mpsc(send, 0, leaves));
        receive.recv().await.unwrap()
    };
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: skynet_nodes(leaves), ok: sum == leaves * (leaves - 1) / 2, ..Default::default() }
}

async fn sum(o: &Options, style: &str) -> Outcome {
    let high = o.number("high", 10_000_000);
    let start = Instant::now();
    let sum = if style == "oneshot" {
        let (send, receive) = oneshot::channel();
        tokio::spawn(sum_oneshot(send, 1, high));
        receive.await.unwrap()
    } else {
        tokio::spawn(sum_join(1, high)).await.unwrap()
    };
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: 2 * high - 1, ok: sum == high * (high + 1) / 2, ..Default::default() }
}

async fn pingpong(o: &Options) -> Outcome {
    let rounds = o.number("messages", 2_000_000) / 2;
    let start = Instant::now();
    let (ping, mut ping_end) = mpsc::channel::<i64>(1);
    let (pong, mut pong_end) = mpsc::channel::<i64>(1);
    tokio::spawn(async move {
        while let Some(value) = ping_end.recv().await {
            pong.send(value + 1).await.unwrap();
        }
    });
    let mut last = 0;
    for _ in 0..rounds {
        ping.send(last).await.unwrap();
        last = pong_end.recv().await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: 2 * rounds, ok: last == rounds, ..Default::default() }
}

async fn stream(o: &Options) -> Outcome {
    let messages = o.number("messages", 5_000_000);
    let capacity = o.number("capacity", 128) as usize;
    let start = Instant::now();
    let (send, mut receive) = mpsc::channel(capacity);
    tokio::spawn(async move {
        for i in 1..=messages {
            send.send(i).await.unwrap();
        }
    });
    let mut sum = 0;
    while let Some(value) = receive.recv().await {
        sum += value;
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: messages, ok: sum == messages * (messages + 1) / 2, ..Default::default() }
}

async fn select_four(o: &Options) -> Outcome {
    let each = o.number("messages", 2_000_000) / 4;
    let capacity = o.number("capacity", 128) as usize;
    let start = Instant::now();
    let mut channels: [mpsc::Receiver<i64>; 4] = std::array::from_fn(|_| {
        let (send, receive) = mpsc::channel(capacity);
        tokio::spawn(async move {
            for i in 1..=each {
                send.send(i).await.unwrap();
            }
        });
        receive
    });
    let [a, b, c, d] = &mut channels;
    let mut sum = 0;
    for _ in 0..4 * each {
        // A channel whose producer has ended does not match, and its branch is left out.
        sum += tokio::select! {
            Some(value) = a.recv() => value,
            Some(value) = b.recv() => value,
            Some(value) = c.recv() => value,
            Some(value) = d.recv() => value,
        };
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: 4 * each, ok: sum == 4 * (each * (each + 1) / 2), ..Default::default() }
}

/// As tokio's documentation advises where no lock is held across an await.
async fn std_mutex(o: &Options) -> Outcome {
    let (fibers, count) = (o.number("fibers", 4), o.number("count", 1_000_000));
    let start = Instant::now();
    let counter = Arc::new(std::sync::Mutex::new(0i64));
    let tasks: Vec<_> = (0..fibers)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move {
                for _ in 0..count {
                    *counter.lock().unwrap() += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let right = *counter.lock().unwrap() == fibers * count;
    Outcome { seconds, units: fibers * count, ok: right, ..Default::default() }
}

async fn mutex(o: &Options) -> Outcome {
    let (fibers, count) = (o.number("fibers", 4), o.number("count", 1_000_000));
    let start = Instant::now();
    let counter = Arc::new(Mutex::new(0i64));
    let tasks: Vec<_> = (0..fibers)
        .map(|_| {
            let counter = counter.clone();
            tokio::spawn(async move {
                for _ in 0..count {
                    *counter.lock().await += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let right = *counter.lock().await == fibers * count;
    Outcome { seconds, units: fibers * count, ok: right, ..Default::default() }
}

async fn yields(o: &Options) -> Outcome {
    let (fibers, count) = (o.number("fibers", 2), o.number("count", 2_000_000));
    let start = Instant::now();
    let tasks: Vec<_> = (0..fibers)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..count {
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    Outcome { seconds: start.elapsed().as_secs_f64(), units: fibers * count, ok: true, ..Default::default() }
}

async fn spawn_join(o: &Options, batch: i64) -> Outcome {
    let count = o.number("count", 1_000_000);
    let start = Instant::now();
    let (mut sum, mut first) = (0, 0);
    let mut tasks = Vec::with_capacity(batch as usize);
    while first < count {
        let end = count.min(first + batch);
        tasks.extend((first..end).map(|i| tokio::spawn(async move { i })));
        for task in tasks.drain(..) {
            sum += task.await.unwrap();
        }
        first = end;
    }
    Outcome { seconds: start.elapsed().as_secs_f64(), units: count, ok: sum == count * (count - 1) / 2, ..Default::default() }
}

async fn memory(o: &Options) -> Outcome {
    let count = o.number("count", 1_000_000);
    let before = status_bytes("VmRSS:");
    let (gate, gate_end) = watch::channel(false);
    let (parked, mut parked_end) = mpsc::unbounded_channel::<()>();
    let start = Instant::now();
    for _ in 0..count {
        let mut gate = gate_end.clone();
        let parked = parked.clone();
        tokio::spawn(async move {
            parked.send(()).unwrap();
            gate.changed().await.unwrap();
            parked.send(()).unwrap();
        });
    }
    for _ in 0..count {
        parked_end.recv().await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let grown = status_bytes("VmRSS:") - before;
    let start = Instant::now();
    gate.send(true).unwrap();
    for _ in 0..count {
        parked_end.recv().await.unwrap();
    }
    let ending = start.elapsed().as_secs_f64();
    let figures = [("resident_bytes_per_fiber", grown as f64 / count as f64), ("wake_and_end_ns_per_fiber", ending * 1e9 / count as f64)];
    Outcome { seconds, units: count, ok: true, figures: figures.into() }
}

fn roots(n: i64) -> bool {
    (0..n).map(|_| std::hint::black_box(13.0f64).sqrt()).sum::<f64>() > 0.0
}

/// Experiment 4. The results' channel is as long as there are results, so the direct calls do not wait either.
async fn overhead(o: &Options) -> Outcome {
    let (n, x) = (o.number("n", 1), o.number("x", 100_000));
    let (send, mut receive) = mpsc::channel(x as usize);
    let mut right = 0;
    let start = Instant::now();
    for _ in 0..x {
        send.try_send(roots(n)).unwrap();
    }
    for _ in 0..x {
        right += receive.recv().await.unwrap() as i64;
    }
    let direct = start.elapsed().as_secs_f64();
    let start = Instant::now();
    for _ in 0..x {
        let send = send.clone();
        tokio::spawn(async move { send.try_send(roots(n)).unwrap() });
    }
    for _ in 0..x {
        right += receive.recv().await.unwrap() as i64;
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: x, ok: right == 2 * x, figures: [("share_of_direct", direct / seconds)].into() }
}

fn main() {
    let o: &'static Options = Box::leak(Box::new(Options::read()));
    let (single, style) = match o.style.strip_prefix("current_thread-") {
        Some(style) => (true, style),
        None => (false, o.style.as_str()),
    };
    let runtime = if single {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(o.workers).enable_all().build()
    }
    .unwrap();
    if o.workload == "echo_server" {
        runtime.block_on(async { tokio::spawn(echo::serve()).await.unwrap() });
    }
    let style: &'static str = Box::leak(style.to_string().into_boxed_str());
    type Run = fn(&'static Options, &'static str) -> Boxed<Outcome>;
    let (unit, run): (&str, Run) = match o.workload.as_str() {
        "skynet" => ("fiber", |o, style| Box::pin(skynet(o, style))),
        "sum" => ("process", |o, style| Box::pin(sum(o, style))),
        "pingpong" => ("message", |o, _| Box::pin(pingpong(o))),
        "stream" => ("message", |o, _| Box::pin(stream(o))),
        "select" => ("message", |o, _| Box::pin(select_four(o))),
        "mutex" if style == "std_mutex" => ("lock", |o, _| Box::pin(std_mutex(o))),
        "mutex" => ("lock", |o, _| Box::pin(mutex(o))),
        "yield" => ("switch", |o, _| Box::pin(yields(o))),
        "spawn" => ("fiber", |o, style| Box::pin(spawn_join(o, if style == "batch" { 100 } else { 1 }))),
        "memory" => ("fiber", |o, _| Box::pin(memory(o))),
        "overhead" => ("call", |o, _| Box::pin(overhead(o))),
        _ => fail("there is no such workload"),
    };
    // The workload runs as a task: block_on's own thread is none of the workers, and would cost a wake-up a message.
    measure("tokio", "1", unit, o, || {
        let (_, outcome) = timed(|| runtime.block_on(async { tokio::spawn(run(o, style)).await.unwrap() }));
        outcome
    })
}
