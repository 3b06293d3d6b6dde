//! The frame of the peers that are written in Rust: options, clock, and ramie-lab's JSON object.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

pub struct Options {
    pub workload: String,
    pub style: String,
    pub workers: usize,
    pub runs: usize,
    pub warmup: usize,
    pub least_ms: u64,
    pub pause_ms: u64,
    rest: HashMap<String, String>,
}

impl Options {
    /// Reads the command line; ends the program if it cannot.
    pub fn read() -> Options {
        let mut words = std::env::args().skip(1);
        let workload = words.next().unwrap_or_else(|| fail("which workload?"));
        let mut rest: HashMap<String, String> = words
            .map(|word| match word.strip_prefix("--").and_then(|w| w.split_once('=')) {
                Some((name, value)) => (name.to_string(), value.to_string()),
                None => fail(&format!("'{word}' is no --name=value")),
            })
            .collect();
        let style = rest.remove("style").unwrap_or_default();
        let mut take = |name: &str, standard| rest.remove(name).map_or(standard, |v| v.parse().unwrap_or_else(|_| fail(name)));
        let (workers, runs, warmup) = (take("workers", 1), take("runs", 5), take("warmup", 1));
        let (least_ms, pause_ms) = (take("least-ms", 0) as u64, take("pause-ms", 0) as u64);
        Options { workload, style, workers, runs, warmup, least_ms, pause_ms, rest }
    }

    pub fn number(&self, name: &str, standard: i64) -> i64 {
        self.rest.get(name).map_or(standard, |v| v.parse().unwrap_or_else(|_| fail(name)))
    }
}

pub fn fail(what: &str) -> ! {
    eprintln!("peer: {what}");
    std::process::exit(2);
}

#[derive(Default)]
pub struct Outcome {
    pub seconds: f64,
    pub units: i64,
    pub ok: bool,
    pub figures: BTreeMap<&'static str, f64>,
}

pub fn timed<T>(f: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let value = f();
    (start.elapsed().as_secs_f64(), value)
}

/// A line of /proc/self/status in bytes.
pub fn status_bytes(field: &str) -> i64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(field));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse::<i64>().ok()).map_or(0, |kib| kib * 1024)
}

pub const FAN_OUT: i64 = 10;

pub fn skynet_nodes(leaves: i64) -> i64 {
    if leaves == 1 { 1 } else { leaves + skynet_nodes(leaves / FAN_OUT) }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

/// A measured run: repeats the work until it has taken as long as was asked for. The result is the mean of one.
fn run_measured(o: &Options, run: &mut impl FnMut() -> Outcome) -> (Outcome, u64) {
    let (mut all, mut repeats) = (run(), 1);
    while all.ok && all.seconds * 1e3 < o.least_ms as f64 && repeats < 1_000_000 {
        if o.pause_ms > 0 {
            std::thread::sleep(std::time::Duration::from_millis(o.pause_ms));
        }
        let next = run();
        all.seconds += next.seconds;
        all.ok = next.ok;
        for (name, value) in next.figures {
            *all.figures.entry(name).or_default() += value;
        }
        repeats += 1;
    }
    all.seconds /= repeats as f64;
    all.figures.values_mut().for_each(|sum| *sum /= repeats as f64);
    (all, repeats)
}

/// Warms up, measures, prints, ends the program.
pub fn measure(system: &str, version: &str, unit: &str, o: &Options, mut run: impl FnMut() -> Outcome) -> ! {
    let base = status_bytes("VmRSS:");
    let mut ok = (0..o.warmup).fold(true, |ok, _| run().ok && ok);
    let (runs, repeats): (Vec<Outcome>, Vec<u64>) = (0..o.runs.max(1)).map(|_| run_measured(o, &mut run)).unzip();
    ok = runs.iter().all(|r| r.ok) && ok;
    let seconds: Vec<f64> = runs.iter().map(|r| r.seconds).collect();
    let units = runs[0].units;
    let each: Vec<String> = runs[0]
        .figures
        .keys()
        .map(|name| format!("\"{name}\":{:?}", runs.iter().map(|r| r.figures[name]).collect::<Vec<_>>()))
        .collect();
    let figures = if each.is_empty() { String::new() } else { format!(",\"figures\":{{{}}}", each.join(",")) };
    println!(
        "{{\"system\":\"{system}\",\"version\":\"{version}\",\"workload\":\"{}\",\"style\":\"{}\",\"workers\":{},\
         \"unit\":\"{unit}\",\"units\":{units},\"seconds\":{seconds:?},\"repeats\":{repeats:?},\"ns_per_unit\":{},\"peak_rss_bytes\":{},\
         \"base_rss_bytes\":{base},\"ok\":{ok}{figures}}}",
        o.workload,
        o.style,
        o.workers,
        median(&seconds) * 1e9 / units as f64,
        status_bytes("VmHWM:"),
    );
    std::process::exit(if ok { 0 } else { 1 });
}
