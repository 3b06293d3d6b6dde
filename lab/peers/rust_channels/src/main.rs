//! Channels of other crates between tokio's tasks: what a user of tokio takes where mpsc is too slow, or needs more than one receiver.

use frame::{fail, measure, skynet_nodes, Options, Outcome, FAN_OUT};
use std::future::Future;
use std::time::Instant;

/// A channel with a bound. Both ends can be copied; `recv` gives None when no sender is left.
trait Wire: 'static {
    type Send: Clone + Send + 'static;
    type Recv: Clone + Send + Sync + 'static;
    fn make(capacity: usize) -> (Self::Send, Self::Recv);
    fn send(to: &Self::Send, value: i64) -> impl Future<Output = ()> + Send;
    fn recv(from: &Self::Recv) -> impl Future<Output = Option<i64>> + Send;
}

struct Kanal;
impl Wire for Kanal {
    type Send = kanal::AsyncSender<i64>;
    type Recv = kanal::AsyncReceiver<i64>;
    fn make(capacity: usize) -> (Self::Send, Self::Recv) {
        kanal::bounded_async(capacity)
    }
    async fn send(to: &Self::Send, value: i64) {
        to.send(value).await.unwrap()
    }
    async fn recv(from: &Self::Recv) -> Option<i64> {
        from.recv().await.ok()
    }
}

struct Flume;
impl Wire for Flume {
    type Send = flume::Sender<i64>;
    type Recv = flume::Receiver<i64>;
    fn make(capacity: usize) -> (Self::Send, Self::Recv) {
        flume::bounded(capacity)
    }
    async fn send(to: &Self::Send, value: i64) {
        to.send_async(value).await.unwrap()
    }
    async fn recv(from: &Self::Recv) -> Option<i64> {
        from.recv_async().await.ok()
    }
}

struct AsyncChannel;
impl Wire for AsyncChannel {
    type Send = async_channel::Sender<i64>;
    type Recv = async_channel::Receiver<i64>;
    fn make(capacity: usize) -> (Self::Send, Self::Recv) {
        async_channel::bounded(capacity)
    }
    async fn send(to: &Self::Send, value: i64) {
        to.send(value).await.unwrap()
    }
    async fn recv(from: &Self::Recv) -> Option<i64> {
        from.recv().await.ok()
    }
}

fn up_to(n: i64) -> i64 {
    n * (n + 1) / 2
}

fn skynet_node<W: Wire>(parent: W::Send, first: i64, leaves: i64) -> impl Future<Output = ()> + Send {
    async move {
        if leaves == 1 {
            return W::send(&parent, first).await;
        }
        let (send, receive) = W::make(FAN_OUT as usize);
        let part = leaves / FAN_OUT;
        for i in 0..FAN_OUT {
            tokio::spawn(skynet_node::<W>(send.clone(), first + i * part, part));
        }
        drop(send);
        let mut sum = 0;
        for _ in 0..FAN_OUT {
            sum += W::recv(&receive).await.unwrap();
        }
        W::send(&parent, sum).await
    }
}

async fn skynet<W: Wire>(o: &Options, _: usize) -> Outcome {
    let leaves = o.number("leaves", 1_000_000);
    let start = Instant::now();
    let (send, receive) = W::make(1);
    tokio::spawn(skynet_node::<W>(send, 0, leaves));
    let sum = W::recv(&receive).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: skynet_nodes(leaves), ok: sum == leaves * (leaves - 1) / 2, ..Default::default() }
}

async fn pingpong<W: Wire>(o: &Options, capacity: usize) -> Outcome {
    let rounds = o.number("messages", 2_000_000) / 2;
    let start = Instant::now();
    let (ping, ping_end) = W::make(capacity);
    let (pong, pong_end) = W::make(capacity);
    tokio::spawn(async move {
        while let Some(value) = W::recv(&ping_end).await {
            W::send(&pong, value + 1).await;
        }
    });
    let mut last = 0;
    for _ in 0..rounds {
        W::send(&ping, last).await;
        last = W::recv(&pong_end).await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: 2 * rounds, ok: last == rounds, ..Default::default() }
}

async fn many_to_many<W: Wire>(o: &Options, capacity: usize) -> Outcome {
    let both = if o.workload == "mpmc" { 4 } else { 1 };
    let (producers, consumers) = (o.number("producers", both), o.number("consumers", both));
    let each = o.number("messages", 4_000_000) / producers;
    let start = Instant::now();
    let (send, receive) = W::make(capacity);
    let sums: Vec<_> = (0..consumers)
        .map(|_| {
            let receive = receive.clone();
            tokio::spawn(async move {
                let mut sum = 0;
                while let Some(value) = W::recv(&receive).await {
                    sum += value;
                }
                sum
            })
        })
        .collect();
    for _ in 0..producers {
        let send = send.clone();
        tokio::spawn(async move {
            for i in 1..=each {
                W::send(&send, i).await;
            }
        });
    }
    drop(send);
    let mut sum = 0;
    for part in sums {
        sum += part.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    Outcome { seconds, units: producers * each, ok: sum == producers * up_to(each), ..Default::default() }
}

async fn run<W: Wire>(o: &'static Options, unbuffered: bool) -> Outcome {
    match o.workload.as_str() {
        "skynet" => skynet::<W>(o, 0).await,
        "pingpong" => pingpong::<W>(o, if unbuffered { 0 } else { 1 }).await,
        "stream" => many_to_many::<W>(o, if unbuffered { 0 } else { o.number("capacity", 128) as usize }).await,
        "mpmc" => many_to_many::<W>(o, o.number("capacity", 1024) as usize).await,
        _ => fail("there is no such workload"),
    }
}

fn main() {
    let o: &'static Options = Box::leak(Box::new(Options::read()));
    let (single, style) = o.style.strip_prefix("current_thread-").map_or((false, o.style.as_str()), |style| (true, style));
    let (unbuffered, channel) = style.strip_suffix("-unbuffered").map_or((false, style), |channel| (true, channel));
    let channel = channel.to_string();
    let runtime = if single {
        tokio::runtime::Builder::new_current_thread().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(o.workers).build()
    }
    .unwrap();
    let unit = if o.workload == "skynet" { "fiber" } else { "message" };
    // As a task: block_on's own thread is none of the workers.
    measure("rust_channels", "1", unit, o, || {
        let work = match channel.as_str() {
            "kanal" => runtime.spawn(run::<Kanal>(o, unbuffered)),
            "flume" => runtime.spawn(run::<Flume>(o, unbuffered)),
            "async_channel" if !unbuffered => runtime.spawn(run::<AsyncChannel>(o, unbuffered)),
            _ => fail("there is no such style"),
        };
        runtime.block_on(work).unwrap()
    })
}
