//! Experiment 10: parallel iterators and sorts over an array of numbers. lab/peers/common/algorithms.hpp is the reference.

use frame::{timed, Options, Outcome};
use rayon::prelude::*;

/// A multiplication and an addition, or `work` more of them, each of which waits for the one before.
fn body(work: i64) -> impl Fn(f64) -> f64 + Copy + Sync {
    move |x| (0..work).fold(x * 0.5 + 1.0, |y, _| y * 0.999 + 0.001)
}

fn steps(n: i64) -> f64 {
    (0..n).fold(2.0, |y, _| y * 0.999 + 0.001)
}

/// From 0 to 1, by splitmix64.
fn random_numbers(n: usize) -> Vec<f64> {
    (0..n as u64).map(|i| (crate::tasks::mixed(i) >> 11) as f64 / (1u64 << 53) as f64).collect()
}

/// How many steps each element takes in an uneven loop.
fn uneven(name: &str, size: usize, all: f64) -> Vec<i64> {
    let weight = |i: usize| match name {
        "triangle" => i as f64 + 1.0,
        "power_law" => (i as f64 + 1.0).powf(-0.7),
        _ => 1.0,
    };
    let mut weights: Vec<f64> = (0..size).map(weight).collect();
    let mut sum: f64 = weights.iter().sum();
    if name == "long_end" {
        weights[size - 1] = sum / 3.0; // a quarter of all
        sum += sum / 3.0;
    }
    weights.iter().map(|w| (w / sum * all) as i64).collect()
}

fn nearly(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

pub const NAMES: [&str; 13] = [
    "for_each", "transform", "reduce", "count_if", "min_element", "find", "copy_if", "histogram", "sort", "stable_sort", "triangle",
    "power_law", "long_end",
];

/// What does not change from run to run.
pub struct Algorithm {
    name: String,
    size: usize,
    work: i64,
    input: Vec<f64>,
    changed: Vec<f64>,
    out: Vec<f64>,
}

impl Algorithm {
    pub fn new(o: &Options) -> Algorithm {
        let size = o.number("size", 10_000_000) as usize;
        let count = (2_000_000 / size).max(1);
        let input = random_numbers(size * count);
        Algorithm {
            name: o.workload.clone(),
            size,
            work: o.number("work", 0),
            changed: input.clone(),
            out: vec![0.0; size],
            input,
        }
    }

    /// Small arrays are done again and again, 2,000,000 elements in all.
    pub fn run(&mut self) -> Outcome {
        let (size, b) = (self.size, body(self.work));
        let count = self.input.len() / size;
        let same = &self.input[..size];
        let is_low = |x: f64| b(x) < 1.25;
        self.changed.copy_from_slice(&self.input);
        let (seconds, ok) = match self.name.as_str() {
            "for_each" => {
                let arrays = &mut self.changed;
                let (s, _) = timed(|| arrays.chunks_mut(size).for_each(|v| v.par_iter_mut().for_each(|x| *x = b(*x))));
                (s, self.input.iter().zip(&self.changed).all(|(x, y)| b(*x) == *y))
            }
            "transform" => {
                let out = &mut self.out;
                let (s, _) = timed(|| {
                    for _ in 0..count {
                        out.par_iter_mut().zip(same.par_iter()).for_each(|(y, x)| *y = b(*x));
                    }
                });
                (s, same.iter().zip(&self.out).all(|(x, y)| b(*x) == *y))
            }
            "reduce" => {
                let (s, sum) = repeated(count, || same.par_iter().map(|x| b(*x)).sum::<f64>());
                (s, nearly(sum, same.iter().map(|x| b(*x)).sum()))
            }
            "count_if" => {
                let (s, n) = repeated(count, || same.par_iter().filter(|x| is_low(**x)).count());
                (s, n == same.iter().filter(|x| is_low(**x)).count())
            }
            "min_element" => {
                let less = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1);
                let (s, at) = repeated(count, || same.par_iter().enumerate().min_by(less).map(|m| m.0));
                (s, at == same.iter().enumerate().min_by(less).map(|m| m.0))
            }
            "find" => {
                let (s, at) = repeated(count, || same.par_iter().position_first(|x| *x == 2.0));
                (s, at.is_none())
            }
            "copy_if" => {
                let out = &mut self.out;
                let (s, _) = timed(|| {
                    for _ in 0..count {
                        out.clear();
                        out.par_extend(same.par_iter().copied().filter(|x| is_low(*x)));
                    }
                });
                let expected: Vec<f64> = same.iter().copied().filter(|x| is_low(*x)).collect();
                (s, self.out == expected)
            }
            "histogram" => {
                let (s, bins) = repeated(count, || {
                    same.par_iter()
                        .fold(
                            || vec![0u64; 256],
                            |mut bins, x| {
                                bins[(*x * 256.0) as usize] += 1;
                                bins
                            },
                        )
                        .reduce(
                            || vec![0u64; 256],
                            |mut a, b| {
                                a.iter_mut().zip(&b).for_each(|(x, y)| *x += y);
                                a
                            },
                        )
                });
                let mut expected = vec![0u64; 256];
                same.iter().for_each(|x| expected[(*x * 256.0) as usize] += 1);
                (s, bins == expected)
            }
            "sort" | "stable_sort" => {
                let is_stable = self.name == "stable_sort";
                let arrays = &mut self.changed;
                let (s, _) = timed(|| {
                    for v in arrays.chunks_mut(size) {
                        if is_stable {
                            v.par_sort_by(f64::total_cmp);
                        } else {
                            v.par_sort_unstable_by(f64::total_cmp);
                        }
                    }
                });
                let mut expected = same.to_vec();
                expected.sort_by(f64::total_cmp);
                (s, self.changed[..size] == expected)
            }
            name => {
                let counts = uneven(name, size, size as f64 * self.work as f64);
                let mut marks = vec![0u8; size];
                let (s, _) = timed(|| {
                    marks.par_iter_mut().enumerate().for_each(|(i, m)| *m = if steps(counts[i]) > 0.0 { 1 } else { 2 });
                });
                let ok = marks.iter().all(|m| *m == 1);
                return Outcome { seconds: s, units: size as i64, ok, ..Default::default() };
            }
        };
        Outcome { seconds, units: (size * count) as i64, ok, ..Default::default() }
    }
}

fn repeated<T>(count: usize, f: impl Fn() -> T) -> (f64, T) {
    timed(|| {
        for _ in 1..count {
            std::hint::black_box(f());
        }
        f()
    })
}
