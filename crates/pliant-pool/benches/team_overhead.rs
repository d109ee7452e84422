//! Measures the overhead of running a loop on several threads and the speedup of short loops, and prints a table. Does not use
//! Criterion, because workers would park between its samples.

#![expect(clippy::print_stdout, reason = "the benchmark prints its result table")]

use std::hint::black_box;
use std::time::Instant;

use pliant_pool::{Team, default_threads, fork_join, wake_up};

/// Number of repetitions of each measurement. The benchmark reports their median.
const ROUNDS: usize = 101;
/// Number of calls of the measured loop in one repetition of a measurement. Their total time is divided by this number.
const LOOPS: usize = 200;
/// Run times of the measured loops on one thread, in microseconds.
const LENGTHS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 5.0, 20.0];
/// Number of operations of [`chain`] in the loop by which the benchmark measures the time of one operation.
const STEPS: usize = 1000;

/// Runs `steps` dependent operations: each operation needs the result of the previous operation, so
/// the run time is proportional to `steps`.
fn chain(steps: usize) {
    let mut x = 1.0f32;
    for _ in 0..steps {
        x = black_box(x.mul_add(0.5, 1.0));
    }
    black_box(x);
}

/// Returns the run time of a call in microseconds: the median over [`ROUNDS`] repetitions of the mean of [`LOOPS`] calls.
fn micros(mut call: impl FnMut()) -> f64 {
    let round = |_| {
        let begin = Instant::now();
        (0..LOOPS).for_each(|_| call());
        begin.elapsed().as_secs_f64() * 1e6 / LOOPS as f64
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(round).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("error: timings of a debug build are meaningless\nhelp: cargo bench");
        std::process::exit(1);
    }
    let threads = default_threads();
    let team = Team::new(threads);
    println!("\nworker team, {threads} threads\n\n| what | time |\n|---|---|");
    let shared = fork_join(&team).map(|time| format!("{} ns", time.as_nanos()));
    println!("| empty loop of hot threads | {} |", shared.as_deref().unwrap_or("never shared"));
    if let Some((median, late)) = wake_up(&team) {
        let [median, late] = [median, late].map(|time| time.as_secs_f64() * 1e6);
        println!("| wake-up of a parked thread | {median:.0} us, 99 % within {late:.0} |");
    }
    println!("\n| loop on one thread | shared | gain |\n|---|---|---|");
    for length in LENGTHS {
        let step = micros(|| chain(STEPS)) / STEPS as f64;
        let steps = (length / step) as usize;
        let each = steps / threads;
        let alone = micros(|| chain(each * threads));
        let shared =
            micros(|| team.parallel_for(threads, 1, &|range| range.for_each(|_| chain(each))));
        println!("| {alone:.2} us | {shared:.2} us | {:.2} |", alone / shared);
    }
    println!();
}
