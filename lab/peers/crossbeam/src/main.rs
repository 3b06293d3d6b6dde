//! crossbeam's channels between threads of the operating system.

use crossbeam_channel::{bounded, select, Receiver, Sender};
use frame::{fail, measure, timed, Options, Outcome};
use std::thread;

fn channel(o: &Options, standard: i64) -> (Sender<i64>, Receiver<i64>) {
    bounded(if o.style == "unbuffered" { 0 } else { o.number("capacity", standard) as usize })
}

fn up_to(n: i64) -> i64 {
    n * (n + 1) / 2
}

fn pingpong(o: &Options) -> Outcome {
    let rounds = o.number("messages", 2_000_000) / 2;
    let (seconds, last) = timed(|| {
        let (ping, ping_end) = channel(o, 1);
        let (pong, pong_end) = channel(o, 1);
        thread::scope(|s| {
            s.spawn(move || ping_end.iter().for_each(|value| pong.send(value + 1).unwrap()));
            let last = (0..rounds).fold(0, |last, _| {
                ping.send(last).unwrap();
                pong_end.recv().unwrap()
            });
            drop(ping);
            last
        })
    });
    Outcome { seconds, units: 2 * rounds, ok: last == rounds, ..Default::default() }
}

fn stream(o: &Options) -> Outcome {
    let messages = o.number("messages", 5_000_000);
    let (seconds, sum) = timed(|| {
        let (send, receive) = channel(o, 128);
        thread::scope(|s| {
            s.spawn(move || (1..=messages).for_each(|i| send.send(i).unwrap()));
            receive.iter().sum::<i64>()
        })
    });
    Outcome { seconds, units: messages, ok: sum == up_to(messages), ..Default::default() }
}

fn select_four(o: &Options) -> Outcome {
    let each = o.number("messages", 2_000_000) / 4;
    let (seconds, sum) = timed(|| {
        let channels: Vec<_> = (0..4).map(|_| channel(o, 128)).collect();
        thread::scope(|s| {
            for (send, _) in &channels {
                s.spawn(move || (1..=each).for_each(|i| send.send(i).unwrap()));
            }
            let (a, b, c, d) = (&channels[0].1, &channels[1].1, &channels[2].1, &channels[3].1);
            let mut sum = 0;
            for _ in 0..4 * each {
                sum += select! {
                    recv(a) -> value => value.unwrap(),
                    recv(b) -> value => value.unwrap(),
                    recv(c) -> value => value.unwrap(),
                    recv(d) -> value => value.unwrap(),
                };
            }
            sum
        })
    });
    Outcome { seconds, units: 4 * each, ok: sum == 4 * up_to(each), ..Default::default() }
}

fn many_to_many(o: &Options) -> Outcome {
    let (producers, consumers) = (o.number("producers", 4), o.number("consumers", 4));
    let each = o.number("messages", 4_000_000) / producers;
    let (seconds, sum) = timed(|| {
        let (send, receive) = channel(o, 1024);
        thread::scope(|s| {
            for _ in 0..producers {
                let send = send.clone();
                s.spawn(move || (1..=each).for_each(|i| send.send(i).unwrap()));
            }
            drop(send);
            let sums: Vec<_> = (0..consumers)
                .map(|_| {
                    let receive = receive.clone();
                    s.spawn(move || receive.iter().sum::<i64>())
                })
                .collect();
            sums.into_iter().map(|t| t.join().unwrap()).sum::<i64>()
        })
    });
    Outcome { seconds, units: producers * each, ok: sum == producers * up_to(each), ..Default::default() }
}

fn main() {
    let o = Options::read();
    let run: fn(&Options) -> Outcome = match o.workload.as_str() {
        "pingpong" => pingpong,
        "stream" => stream,
        "select" => select_four,
        "mpmc" => many_to_many,
        _ => fail("there is no such workload"),
    };
    measure("crossbeam", "0.5", "message", &o, || run(&o))
}
