//! Experiment 9: programs of tasks, by join. lab/peers/common/tasks is the reference, and tells where they are from.

use frame::{timed, Options, Outcome};

/// splitmix64's step.
pub fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e3779b97f4a7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d049bb133111eb);
    x ^ (x >> 31)
}

/// The sum of f(i), a task each.
fn sum<const N: usize>(begin: u32, end: u32, f: &(impl Fn(u32) -> [i64; N] + Sync)) -> [i64; N] {
    match end - begin {
        0 => [0; N],
        1 => f(begin),
        n => {
            let middle = begin + n / 2;
            let (mut low, high) = rayon::join(|| sum(begin, middle, f), || sum(middle, end, f));
            low.iter_mut().zip(high).for_each(|(a, b)| *a += b);
            low
        }
    }
}

/// Solutions, and boards that were looked at.
fn queens(board: u32, columns: u32, falling: u32, rising: u32) -> [i64; 2] {
    if columns == board {
        return [1, 1];
    }
    let open = board & !(columns | falling | rising);
    let [solutions, placements] = sum(0, open.count_ones(), &|i| {
        let rest = (0..i).fold(open, |rest, _| rest & (rest - 1));
        let bit = rest & rest.wrapping_neg();
        queens(board, columns | bit, (falling | bit) << 1, (rising | bit) >> 1)
    });
    [solutions, placements + 1]
}

const CHILDREN: u32 = 8;

fn nodes(node: u64, children: u32) -> i64 {
    let [below] = sum(0, children, &|i| {
        let child = mixed(node.wrapping_add(i as u64));
        let chance = (mixed(child) >> 11) as f64 / (1u64 << 53) as f64;
        [nodes(child, if chance < 0.95 / CHILDREN as f64 { CHILDREN } else { 0 })]
    });
    below + 1
}

fn fib(n: i64) -> i64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

const LEAF: usize = 2048;

fn merge(a: &[u32], b: &[u32], out: &mut [u32]) {
    if out.len() <= LEAF {
        let (mut i, mut j) = (0, 0);
        for to in out {
            let from_b = i == a.len() || (j < b.len() && b[j] < a[i]);
            *to = if from_b { b[j] } else { a[i] };
            j += from_b as usize;
            i += !from_b as usize;
        }
        return;
    }
    if a.len() < b.len() {
        return merge(b, a, out);
    }
    let (a_low, a_high) = a.split_at(a.len() / 2);
    let (b_low, b_high) = b.split_at(b.partition_point(|x| *x < a_high[0]));
    let (low, high) = out.split_at_mut(a_low.len() + b_low.len());
    rayon::join(|| merge(a_low, b_low, low), || merge(a_high, b_high, high));
}

fn merge_sort(from: &mut [u32], buffer: &mut [u32], to_buffer: bool) {
    if from.len() <= LEAF {
        from.sort_unstable();
        if to_buffer {
            buffer.copy_from_slice(from);
        }
        return;
    }
    let middle = from.len() / 2;
    let (low, high) = from.split_at_mut(middle);
    let (buffer_low, buffer_high) = buffer.split_at_mut(middle);
    rayon::join(|| merge_sort(low, buffer_low, !to_buffer), || merge_sort(high, buffer_high, !to_buffer));
    if to_buffer {
        merge(&from[..middle], &from[middle..], buffer);
    } else {
        merge(&buffer[..middle], &buffer[middle..], from);
    }
}

pub const NAMES: [&str; 4] = ["fib", "queens", "uts", "merge_sort"];

pub fn unit(name: &str) -> &'static str {
    match name {
        "fib" => "call",
        "queens" => "placement",
        "uts" => "node",
        _ => "number",
    }
}

pub fn run(o: &Options) -> Outcome {
    let outcome = |seconds, units, ok| Outcome { seconds, units, ok, ..Default::default() };
    match o.workload.as_str() {
        "fib" => {
            let n = o.number("n", 40);
            let (mut expected, mut next) = (0, 1);
            for _ in 0..n {
                (expected, next) = (next, expected + next);
            }
            let (seconds, found) = timed(|| fib(n));
            outcome(seconds, 2 * next - 1, found == expected)
        }
        "queens" => {
            const SOLUTIONS: [i64; 17] =
                [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512];
            let size = o.number("size", 12);
            let (seconds, [solutions, placements]) = timed(|| queens((1 << size) - 1, 0, 0, 0));
            outcome(seconds, placements, solutions == SOLUTIONS[size as usize])
        }
        "uts" => {
            let size = o.number("size", 20_000) as u32;
            let (seconds, found) = timed(|| nodes(mixed(42), size));
            outcome(seconds, found, found > size as i64)
        }
        _ => {
            let size = o.number("size", 4_000_000) as usize;
            let mut numbers: Vec<u32> = (0..size as u64).map(|i| mixed(i) as u32).collect();
            let mut buffer = vec![0; size];
            let total = |v: &[u32]| v.iter().map(|x| *x as u64).sum::<u64>();
            let before = total(&numbers);
            let (seconds, _) = timed(|| merge_sort(&mut numbers, &mut buffer, false));
            outcome(seconds, size as i64, numbers.is_sorted() && total(&numbers) == before)
        }
    }
}
