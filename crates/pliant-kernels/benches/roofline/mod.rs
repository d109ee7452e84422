//! Compares measured times with the floor: the minimum time that the machine needs for the
//! multiply-adds and the memory reads of a benchmark case.
//!
//! Each case runs under criterion. In addition to criterion's statistics, the fastest batch of
//! calls is kept, because other programs can only slow a batch down. The clock of a shared
//! processor varies by a quarter within short times, so the peak rate is measured before and after
//! each batch. The printed percentage is the median, over all batches, of the floor at that peak
//! rate divided by the time.

#![expect(clippy::print_stdout, reason = "the benchmarks print their result tables")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use pliant_exec::abi::KernelRuntime;
use pliant_kernels::hardware::{multiply_adds, read_bandwidth};
use pliant_machine::isa::{Isa, isa};
use pliant_pool::Team;

/// Duration of a batch of calls that are timed together: long compared with the resolution of the clock, and short
/// compared with the time slices of other programs.
const BATCH_DURATION: Duration = Duration::from_micros(100);

/// The amount of work of one benchmark case: operations and memory reads.
#[derive(Clone, Copy)]
pub struct Workload {
    /// The number of floating-point operations, in units of float32: a float64 operation counts as two.
    flops: f64,
    /// The number of bytes that must be read from memory.
    bytes: f64,
    unit: Unit,
}

/// The unit in which the rate of a benchmark case is printed, unless the time of memory reads limits the case.
#[derive(Clone, Copy)]
enum Unit {
    Single,
    Double,
    Elements(f64),
}

#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
impl Workload {
    /// Creates the amount of work of `flops` float32 operations that read `bytes` bytes.
    pub const fn single(flops: f64, bytes: f64) -> Workload {
        Workload { flops, bytes, unit: Unit::Single }
    }

    /// Creates the amount of work of `flops` float64 operations that read `bytes` bytes.
    pub const fn double(flops: f64, bytes: f64) -> Workload {
        Workload { flops: 2.0 * flops, bytes, unit: Unit::Double }
    }

    /// Creates the amount of work on `count` elements, which takes `flops` operations in total (in
    /// units of float32) and reads `bytes` bytes. The rate is printed in elements per second.
    pub const fn elements(count: f64, flops: f64, bytes: f64) -> Workload {
        Workload { flops, bytes, unit: Unit::Elements(count) }
    }

    /// Formats the rate (work per second) for a measured time of `seconds` seconds.
    fn rate(self, seconds: f64) -> String {
        match self.unit {
            Unit::Single => format!("{:.0} GFLOP/s", self.flops / seconds / 1e9),
            Unit::Double => format!("{:.0} GFLOP/s", self.flops / 2.0 / seconds / 1e9),
            Unit::Elements(count) => format!("{:.2} G/s", count / seconds / 1e9),
        }
    }
}

/// Number of steps that each thread executes to measure the peak rate, about 50 microseconds in total. A step is one multiply-add
/// on each of several independent sums.
const PEAK_STEPS: usize = 12_500;
/// Number of rounds in which the peak rate or the read bandwidth of the machine is measured. The fastest round counts, because
/// other programs may delay a thread in a round.
const ROUNDS: usize = 3;

/// Measures peak rates and read bandwidths for a number of threads, and computes from them the
/// floor: the minimum time for an amount of work.
struct Floor {
    team: Team,
    /// All measured peak rates, in operations per second.
    peaks: Vec<f64>,
    bandwidths: HashMap<u64, f64>,
}

impl Floor {
    /// Measures the current peak rate of all threads together, in operations per second.
    fn peak(&mut self) -> f64 {
        let threads = self.team.threads();
        let one = multiply_adds(isa(), 1).expect("the machine has the selected instruction set");
        let round = |_| {
            let begin = Instant::now();
            self.team.parallel_for(threads * PEAK_STEPS, PEAK_STEPS / 16, &|range| {
                multiply_adds(isa(), range.len());
            });
            begin.elapsed().as_secs_f64()
        };
        let best = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
        let peak = one * (threads * PEAK_STEPS) as f64 / best;
        self.peaks.push(peak);
        peak
    }

    /// Returns the minimum time of `work` in seconds at a peak rate of `peak` operations per
    /// second, and whether memory reads determine this time.
    fn seconds(&mut self, work: Workload, peak: f64) -> (f64, bool) {
        let threads = self.team.threads();
        let rate = *self.bandwidths.entry(work.bytes as u64).or_insert_with(|| {
            let round = |_| read_bandwidth((work.bytes as usize).max(4096), threads);
            (0..ROUNDS).map(round).fold(0.0, f64::max)
        });
        let (compute, read) = (work.flops / peak, work.bytes / rate);
        (compute.max(read), read > compute)
    }
}

/// The measured times of one benchmark case.
struct Measurement {
    name: String,
    work: Workload,
    steps: usize,
    /// The duration of the fastest call, in seconds.
    best: f64,
    /// For each batch of calls: the mean of the peak rates before and after the batch, and the
    /// seconds per call.
    batches: Vec<(f64, f64)>,
}

impl Measurement {
    /// Returns the median, over all batches, of the minimum time divided by the measured time.
    fn floor_ratio(&self, floor: &mut Floor) -> f64 {
        let ratio = |&(peak, time): &(f64, f64)| {
            floor.seconds(self.work, peak).0 * self.steps as f64 / time
        };
        median(self.batches.iter().map(ratio).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A group of benchmark cases that run with the same number of threads.
pub struct Cases<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    floor: Floor,
    title: String,
    rows: Vec<Measurement>,
}

impl<'a> Cases<'a> {
    /// Creates a group of benchmark cases, and warms up the measurement of peak rates. The title of
    /// the table contains `title` and the name of `isa_of_kernels`. In debug builds, whose times
    /// are meaningless, exits the process.
    pub fn new(
        c: &'a mut Criterion,
        title: &str,
        isa_of_kernels: Isa,
        threads: usize,
    ) -> Cases<'a> {
        if cfg!(debug_assertions) {
            eprintln!("error: this is a debug build, whose times mean nothing\nhelp: cargo bench");
            std::process::exit(1);
        }
        let title = format!("{title}, {}, {threads} thr", isa_of_kernels.name());
        let mut group = c.benchmark_group(title.clone());
        group.sample_size(10).nresamples(1001);
        group.warm_up_time(Duration::from_millis(30)).measurement_time(Duration::from_millis(150));
        let team = Team::new(threads);
        let mut floor = Floor { team, peaks: Vec::new(), bandwidths: HashMap::new() };
        // The clock rises under load.
        for _ in 0..100 {
            floor.peak();
        }
        Cases { group, floor, title, rows: Vec::new() }
    }

    /// Returns the runtime to pass to kernels.
    #[allow(dead_code, reason = "each benchmark has its own copy of this module")]
    pub fn runtime(&self) -> KernelRuntime {
        KernelRuntime {
            parallel_launch: pliant_pool::parallel_launch,
            team: (&raw const self.floor.team).cast::<c_void>(),
            ..KernelRuntime::serial()
        }
    }

    /// Measures one benchmark case: calls `body` repeatedly.
    #[allow(dead_code, reason = "each benchmark has its own copy of this module")]
    pub fn run(&mut self, name: &str, work: Workload, body: impl FnMut()) {
        self.run_steps(name, work, 1, body);
    }

    /// Measures a benchmark case of `steps` steps per call of `body`; each step performs `work`.
    pub fn run_steps(&mut self, name: &str, work: Workload, steps: usize, mut body: impl FnMut()) {
        let (mut best, mut batches) = (f64::INFINITY, Vec::new());
        let floor = &mut self.floor;
        self.group.bench_function(name, |b| {
            b.iter_custom(|times| {
                let (mut total, mut remaining) = (Duration::ZERO, times);
                let mut peak = floor.peak();
                while remaining > 0 {
                    let before = peak;
                    let (mut calls, begin) = (0, Instant::now());
                    while calls < remaining && (calls == 0 || begin.elapsed() < BATCH_DURATION) {
                        body();
                        calls += 1;
                    }
                    let time = begin.elapsed();
                    let call = time.as_secs_f64() / calls as f64;
                    best = best.min(call);
                    peak = floor.peak();
                    batches.push((f64::midpoint(before, peak), call));
                    (total, remaining) = (total + time, remaining - calls);
                }
                total
            });
        });
        if batches.is_empty() {
            return; // The filter of the command line excludes the case.
        }
        self.rows.push(Measurement { name: name.to_string(), work, steps, best, batches });
    }

    /// Prints a table with the results of all cases.
    pub fn finish(mut self) {
        self.group.finish();
        if self.rows.is_empty() {
            return;
        }
        let best = self.floor.peaks.iter().copied().fold(0.0, f64::max);
        let typical = median(self.floor.peaks.clone());
        println!(
            "\n{}: peak {:.0} GFLOP/s at best, {:.0} in the middle\n",
            self.title,
            best / 1e9,
            typical / 1e9
        );
        println!("| case | us | rate | % of floor |\n|---|---|---|---|");
        for row in &self.rows {
            let step = row.best / row.steps as f64;
            let rate = match self.floor.seconds(row.work, best).1 {
                true => format!("{:.0} GB/s", row.work.bytes / step / 1e9),
                false => row.work.rate(step),
            };
            let percent = 100.0 * row.floor_ratio(&mut self.floor);
            println!("| {} | {:.2} | {rate} | {percent:.0} |", row.name, row.best * 1e6);
        }
        println!();
    }
}

/// Returns the best vector instruction set of this machine, without tile registers.
#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
pub fn vectors() -> Isa {
    match isa() {
        Isa::Amx => Isa::Avx512,
        other => other,
    }
}

/// Returns the numbers of threads with which benchmarks run: one, and all.
#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
pub fn thread_counts() -> Vec<usize> {
    let all = pliant_pool::default_threads();
    if all > 1 { vec![1, all] } else { vec![1] }
}

/// Returns `len` small numbers as test operands: `((i * step) % 13) / 8 - 0.75` for each index `i`.
#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
pub fn values(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * step) % 13) as f32 / 8.0 - 0.75).collect()
}
