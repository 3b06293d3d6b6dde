//! smol: tasks of async-executor, which report as tasks or through its channels (async-channel).

use async_executor::{StaticExecutor, StaticLocalExecutor, Task};
use frame::{fail, measure, skynet_nodes, status_bytes, Options, Outcome, FAN_OUT};
use smol::channel::{bounded, unbounded, Receiver, Sender};
use smol::io::{AsyncReadExt, AsyncWriteExt};
use std::cell::Cell;
use std::future::{pending, Future};
use std::sync::Arc;
use std::time::Instant;

static SHARED: StaticExecutor = StaticExecutor::new();

thread_local! {
    /// The executor that is made for one thread, in a style that starts with local-.
    static LOCAL: Cell<Option<&'static StaticLocalExecutor>> = const { Cell::new(None) };
}

fn spawn<T: Send + 'static>(f: impl Future<Output = T> + Send + 'static) -> Task<T> {
    match LOCAL.get() {
        Some(local) => local.spawn(f),
        None => SHARED.spawn(f),
    }
}

fn up_to(n: i64) -> i64 {
    n * (n + 1) / 2
}

fn skynet_task(first: i64, leaves: i64) -> impl Future<Output = i64> + Send {
    async move {
        if leaves == 1 {
            return first;
        }
        let part = leaves / FAN_OUT;
        let children: [Task<i64>; FAN_OUT as usize] = std::array::from_fn(|i| spawn(skynet_task(first + i as i64 * part, part)));
        let mut sum = 0;
        for child in children {
            sum += child.await;
        }
        sum
    }
}

fn skynet_channel(parent: Sender<i64>, first: i64, leaves: i64) -> impl Future<Output = ()> + Send {
    async move {
        if leaves == 1 {
            return parent.send(first).await.unwrap();
        }
        let (send, receive) = bounded(FAN_OUT as usize);
        let part = leaves / FAN_OUT;
        for i in 0..FAN_OUT {
            spawn(skynet_channel(send.clone(), first + i * part, part)).detach();
        }
        let mut sum = 0;
        for _ in 0..FAN_OUT {
            sum += receive.recv().await.unwrap();
        }
        parent.send(sum).await.unwrap()
    }
}

fn sum_task(low: i64, high: i64) -> impl Future<Output = i64> + Send {
    async move {
        if low == high {
            return low;
        }
        let middle = low + (high - low) / 2;
        let a = spawn(sum_task(low, middle));
        let b = spawn(sum_task(middle + 1, high));
        a.await + b.await
    }
}

async fn skynet(o: &Options, by_task: bool) -> Outcome {
    let leaves = o.number("leaves", 1_000_000);
    let start = Instant::now();
    let sum = if by_task {
        spawn(skynet_task(0, leaves)).await
    } else {
        let (send, receive) = bounded(1);
        spawn(skynet_channel(send, 0, leaves)).detach();
        receive.recv().await.unwrap()
    };
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: skynet_nodes(leaves), ok: sum == leaves * (leaves - 1) / 2, ..Default::default() }
}

async fn sum(o: &Options) -> Outcome {
    let high = o.number("high", 10_000_000);
    let start = Instant::now();
    let sum = spawn(sum_task(1, high)).await;
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: 2 * high - 1, ok: sum == up_to(high), ..Default::default() }
}

async fn pingpong(o: &Options) -> Outcome {
    let rounds = o.number("messages", 2_000_000) / 2;
    let start = Instant::now();
    let (ping, ping_end) = bounded::<i64>(1);
    let (pong, pong_end) = bounded::<i64>(1);
    let other = spawn(async move {
        while let Ok(value) = ping_end.recv().await {
            pong.send(value + 1).await.unwrap();
        }
    });
    let mut last = 0;
    for _ in 0..rounds {
        ping.send(last).await.unwrap();
        last = pong_end.recv().await.unwrap();
    }
    drop(ping);
    other.await;
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: 2 * rounds, ok: last == rounds, ..Default::default() }
}

async fn consume(receive: Receiver<i64>) -> i64 {
    let mut sum = 0;
    while let Ok(value) = receive.recv().await {
        sum += value;
    }
    sum
}

async fn many_to_many(o: &Options, standard: i64, capacity: i64) -> Outcome {
    let (producers, consumers) = (o.number("producers", standard), o.number("consumers", standard));
    let each = o.number("messages", 4_000_000) / producers;
    let start = Instant::now();
    let (send, receive) = bounded(o.number("capacity", capacity) as usize);
    let sums: Vec<_> = (0..consumers).map(|_| spawn(consume(receive.clone()))).collect();
    for _ in 0..producers {
        let send = send.clone();
        spawn(async move {
            for i in 1..=each {
                send.send(i).await.unwrap();
            }
        })
        .detach();
    }
    drop(send);
    let mut sum = 0;
    for part in sums {
        sum += part.await;
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: producers * each, ok: sum == producers * up_to(each), ..Default::default() }
}

async fn mutex(o: &Options) -> Outcome {
    let (fibers, count) = (o.number("fibers", 4), o.number("count", 1_000_000));
    let start = Instant::now();
    let counter = Arc::new(smol::lock::Mutex::new(0i64));
    let tasks: Vec<_> = (0..fibers)
        .map(|_| {
            let counter = counter.clone();
            spawn(async move {
                for _ in 0..count {
                    *counter.lock().await += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
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
            spawn(async move {
                for _ in 0..count {
                    futures_lite::future::yield_now().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
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
        tasks.extend((first..end).map(|i| spawn(async move { i })));
        for task in tasks.drain(..) {
            sum += task.await;
        }
        first = end;
    }
    Outcome { seconds: start.elapsed().as_secs_f64(), units: count, ok: sum == up_to(count - 1), ..Default::default() }
}

async fn memory(o: &Options) -> Outcome {
    let count = o.number("count", 1_000_000);
    let before = status_bytes("VmRSS:");
    let (gate, gate_end) = bounded::<()>(1);
    let (parked, parked_end) = unbounded::<()>();
    let start = Instant::now();
    for _ in 0..count {
        let (gate_end, parked) = (gate_end.clone(), parked.clone());
        spawn(async move {
            parked.send(()).await.unwrap();
            let _ = gate_end.recv().await;
            parked.send(()).await.unwrap();
        })
        .detach();
    }
    for _ in 0..count {
        parked_end.recv().await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    let grown = status_bytes("VmRSS:") - before;
    let start = Instant::now();
    drop(gate);
    for _ in 0..count {
        parked_end.recv().await.unwrap();
    }
    let ending = start.elapsed().as_secs_f64();
    let figures = [("resident_bytes_per_fiber", grown as f64 / count as f64), ("wake_and_end_ns_per_fiber", ending * 1e9 / count as f64)];
    Outcome { seconds, units: count, ok: true, figures: figures.into() }
}

/// The server of experiment 6, which ramie-lab's load drives. Serves until the process is killed.
async fn serve() {
    let listener = smol::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    loop {
        let (mut connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = connection.read(&mut buffer).await {
                if connection.write_all(&buffer[..n]).await.is_err() {
                    return;
                }
            }
        })
        .detach();
    }
}

async fn run(o: &'static Options, style: &str) -> Outcome {
    match o.workload.as_str() {
        "skynet" => skynet(o, style == "task").await,
        "sum" => sum(o).await,
        "pingpong" => pingpong(o).await,
        "stream" => many_to_many(o, 1, 128).await,
        "mpmc" => many_to_many(o, 4, 1024).await,
        "mutex" => mutex(o).await,
        "yield" => yields(o).await,
        "spawn" => spawn_join(o, if style == "batch" { 100 } else { 1 }).await,
        "memory" => memory(o).await,
        _ => fail("there is no such workload"),
    }
}

fn main() {
    let o: &'static Options = Box::leak(Box::new(Options::read()));
    let (local, style) = o.style.strip_prefix("local-").map_or((None, o.style.as_str()), |style| {
        (Some(&*Box::leak(Box::new(StaticLocalExecutor::new()))), style)
    });
    LOCAL.set(local);
    if local.is_none() {
        for _ in 0..o.workers {
            std::thread::spawn(|| smol::block_on(SHARED.run(pending::<()>())));
        }
    }
    // A task of the executor; on a local one, this thread runs it, else it waits for it.
    let style: &'static str = Box::leak(style.to_string().into_boxed_str());
    if o.workload == "echo_server" {
        let server = spawn(serve());
        match local {
            Some(executor) => smol::block_on(executor.run(server)),
            None => futures_lite::future::block_on(server),
        }
    }
    let unit = match o.workload.as_str() {
        "skynet" | "spawn" | "memory" => "fiber",
        "sum" => "process",
        "mutex" => "lock",
        "yield" => "switch",
        _ => "message",
    };
    measure("smol", "2", unit, o, || {
        let work = spawn(run(o, style));
        match local {
            Some(executor) => smol::block_on(executor.run(work)),
            None => futures_lite::future::block_on(work),
        }
    })
}
