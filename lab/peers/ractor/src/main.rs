//! ractor: actors on tokio, with supervision after Erlang's manner.

use frame::{fail, measure, skynet_nodes, status_bytes, timed, Options, Outcome, FAN_OUT};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::time::Instant;
use tokio::sync::oneshot;

type Done<T> = Option<oneshot::Sender<T>>;
type Handled = Result<(), ActorProcessingErr>;

async fn start<A: Actor>(actor: A, arguments: A::Arguments) -> ActorRef<A::Msg> {
    Actor::spawn(None, actor, arguments).await.unwrap().0
}

fn finish<T>(done: &mut Done<T>, value: T) {
    let _ = done.take().unwrap().send(value);
}

// ---- there and back

struct Ponger;
impl Actor for Ponger {
    type Msg = (i64, ActorRef<i64>);
    type State = ();
    type Arguments = ();
    async fn pre_start(&self, _: ActorRef<Self::Msg>, _: ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
    async fn handle(&self, _: ActorRef<Self::Msg>, (value, from): Self::Msg, _: &mut ()) -> Handled {
        from.cast(value + 1)?;
        Ok(())
    }
}

struct Pinger {
    rounds: i64,
}
impl Actor for Pinger {
    type Msg = i64;
    type State = (ActorRef<(i64, ActorRef<i64>)>, Done<i64>);
    type Arguments = oneshot::Sender<i64>;
    async fn pre_start(&self, _: ActorRef<i64>, done: Self::Arguments) -> Result<Self::State, ActorProcessingErr> {
        Ok((start(Ponger, ()).await, Some(done)))
    }
    async fn handle(&self, myself: ActorRef<i64>, value: i64, (other, done): &mut Self::State) -> Handled {
        if value < self.rounds {
            other.cast((value, myself))?;
        } else {
            other.stop(None);
            myself.stop(None);
            finish(done, value);
        }
        Ok(())
    }
}

async fn pingpong(o: &Options) -> Outcome {
    let rounds = o.number("messages", 2_000_000) / 2;
    let begin = Instant::now();
    let (done, result) = oneshot::channel();
    start(Pinger { rounds }, done).await.cast(0).unwrap();
    let last = result.await.unwrap();
    Outcome { seconds: begin.elapsed().as_secs_f64(), units: 2 * rounds, ok: last == rounds, ..Default::default() }
}

// ---- thread ring

enum Token {
    Next(ActorRef<Token>),
    Hop(i64),
}

struct RingNode;
impl Actor for RingNode {
    type Msg = Token;
    type State = (Option<ActorRef<Token>>, tokio::sync::mpsc::UnboundedSender<i64>);
    type Arguments = tokio::sync::mpsc::UnboundedSender<i64>;
    async fn pre_start(&self, _: ActorRef<Token>, done: Self::Arguments) -> Result<Self::State, ActorProcessingErr> {
        Ok((None, done))
    }
    async fn handle(&self, _: ActorRef<Token>, message: Token, (next, done): &mut Self::State) -> Handled {
        match message {
            Token::Next(node) => *next = Some(node),
            Token::Hop(0) => done.send(1)?,
            Token::Hop(left) => next.as_ref().unwrap().cast(Token::Hop(left - 1))?,
        }
        Ok(())
    }
}

async fn thread_ring(o: &Options) -> Outcome {
    let (nodes, hops) = (o.number("nodes", 100) as usize, o.number("hops", 2_000_000));
    let begin = Instant::now();
    let (done, mut result) = tokio::sync::mpsc::unbounded_channel();
    let mut ring = Vec::with_capacity(nodes);
    for _ in 0..nodes {
        ring.push(start(RingNode, done.clone()).await);
    }
    for i in 0..nodes {
        ring[i].cast(Token::Next(ring[(i + 1) % nodes].clone())).unwrap();
    }
    ring[0].cast(Token::Hop(hops)).unwrap();
    let found = result.recv().await.unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    ring.iter().for_each(|node| node.stop(None));
    Outcome { seconds, units: hops + 1, ok: found == 1, ..Default::default() }
}

// ---- counting

enum Count {
    Add(i64),
    Get(oneshot::Sender<i64>),
}

struct Counter;
impl Actor for Counter {
    type Msg = Count;
    type State = i64;
    type Arguments = ();
    async fn pre_start(&self, _: ActorRef<Count>, _: ()) -> Result<i64, ActorProcessingErr> {
        Ok(0)
    }
    async fn handle(&self, _: ActorRef<Count>, message: Count, sum: &mut i64) -> Handled {
        match message {
            Count::Add(n) => *sum += n,
            Count::Get(reply) => reply.send(*sum).unwrap(),
        }
        Ok(())
    }
}

struct Producer {
    count: i64,
}
impl Actor for Producer {
    type Msg = ActorRef<Count>;
    type State = Done<i64>;
    type Arguments = oneshot::Sender<i64>;
    async fn pre_start(&self, _: ActorRef<Self::Msg>, done: Self::Arguments) -> Result<Self::State, ActorProcessingErr> {
        Ok(Some(done))
    }
    async fn handle(&self, myself: ActorRef<Self::Msg>, counter: Self::Msg, done: &mut Self::State) -> Handled {
        for _ in 0..self.count {
            counter.cast(Count::Add(1))?;
        }
        let (reply, answer) = oneshot::channel();
        counter.cast(Count::Get(reply))?;
        finish(done, answer.await?);
        counter.stop(None);
        myself.stop(None);
        Ok(())
    }
}

async fn counting(o: &Options) -> Outcome {
    let count = o.number("count", 1_000_000);
    let begin = Instant::now();
    let (done, result) = oneshot::channel();
    let counter = start(Counter, ()).await;
    start(Producer { count }, done).await.cast(counter).unwrap();
    let sum = result.await.unwrap();
    Outcome { seconds: begin.elapsed().as_secs_f64(), units: count, ok: sum == count, ..Default::default() }
}

// ---- skynet

enum Part {
    Begin,
    Sum(i64),
}

enum Parent {
    Node(ActorRef<Part>),
    Root(Done<i64>),
}

struct Node;
struct NodeState {
    parent: Parent,
    first: i64,
    leaves: i64,
    sum: i64,
    missing: i64,
}
impl NodeState {
    fn report(&mut self, myself: &ActorRef<Part>) -> Handled {
        match &mut self.parent {
            Parent::Node(parent) => parent.cast(Part::Sum(self.sum))?,
            Parent::Root(done) => finish(done, self.sum),
        }
        myself.stop(None);
        Ok(())
    }
}
impl Actor for Node {
    type Msg = Part;
    type State = NodeState;
    type Arguments = (Parent, i64, i64);
    async fn pre_start(&self, _: ActorRef<Part>, (parent, first, leaves): Self::Arguments) -> Result<NodeState, ActorProcessingErr> {
        Ok(NodeState { parent, first, leaves, sum: 0, missing: FAN_OUT })
    }
    async fn handle(&self, myself: ActorRef<Part>, message: Part, state: &mut NodeState) -> Handled {
        match message {
            Part::Begin if state.leaves == 1 => {
                state.sum = state.first;
                return state.report(&myself);
            }
            Part::Begin => {
                let part = state.leaves / FAN_OUT;
                for i in 0..FAN_OUT {
                    let child = start(Node, (Parent::Node(myself.clone()), state.first + i * part, part)).await;
                    child.cast(Part::Begin)?;
                }
            }
            Part::Sum(sum) => {
                state.sum += sum;
                state.missing -= 1;
                if state.missing == 0 {
                    return state.report(&myself);
                }
            }
        }
        Ok(())
    }
}

async fn skynet(o: &Options) -> Outcome {
    let leaves = o.number("leaves", 1_000_000);
    let begin = Instant::now();
    let (done, result) = oneshot::channel();
    start(Node, (Parent::Root(Some(done)), 0, leaves)).await.cast(Part::Begin).unwrap();
    let sum = result.await.unwrap();
    let seconds = begin.elapsed().as_secs_f64();
    Outcome { seconds, units: skynet_nodes(leaves), ok: sum == leaves * (leaves - 1) / 2, ..Default::default() }
}

async fn idle_actors(o: &Options) -> Outcome {
    let count = o.number("count", 1_000_000);
    let before = status_bytes("VmRSS:");
    let begin = Instant::now();
    let mut all = Vec::with_capacity(count as usize);
    for _ in 0..count {
        all.push(start(Counter, ()).await);
    }
    let seconds = begin.elapsed().as_secs_f64();
    let grown = status_bytes("VmRSS:") - before;
    let (reply, answer) = oneshot::channel();
    all[0].cast(Count::Get(reply)).unwrap();
    let ok = answer.await.unwrap() == 0;
    all.iter().for_each(|actor| actor.stop(None));
    Outcome { seconds, units: count, ok, figures: [("resident_bytes_per_actor", grown as f64 / count as f64)].into() }
}

fn main() {
    let o: &'static Options = Box::leak(Box::new(Options::read()));
    let runtime = match o.style.as_str() {
        "current_thread" => tokio::runtime::Builder::new_current_thread().build(),
        "multi_thread" => tokio::runtime::Builder::new_multi_thread().worker_threads(o.workers).build(),
        _ => fail("there is no such style"),
    }
    .unwrap();
    let workload = o.workload.as_str();
    let unit = if workload == "skynet" || workload == "idle_actors" { "actor" } else { "message" };
    if !["pingpong", "thread_ring", "counting", "skynet", "idle_actors"].contains(&workload) {
        fail("there is no such workload");
    }
    // As a task: block_on's own thread is none of the workers.
    measure("ractor", "0.15", unit, o, || {
        let run = async {
            match o.workload.as_str() {
                "pingpong" => pingpong(o).await,
                "thread_ring" => thread_ring(o).await,
                "counting" => counting(o).await,
                "skynet" => skynet(o).await,
                _ => idle_actors(o).await,
            }
        };
        timed(|| runtime.block_on(async { tokio::spawn(run).await.unwrap() })).1
    })
}
