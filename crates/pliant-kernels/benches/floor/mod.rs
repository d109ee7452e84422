//! Times compared with the floor of the machine: the limits of its multiply-adds and its memory.
//!
//! Each case runs under criterion. In addition to its statistics, the best stretch of calls is
//! kept, since other programs can only slow it down. The clock of a shared processor varies by a
//! quarter from moment to moment, so the peak is measured before and after each stretch, and the
//! percentage is the median over the stretches relative to the peak at that moment.

#![expect(clippy::print_stdout, reason = "the tables are what the benchmarks are for")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use pliant_exec::abi::KernelRuntime;
use pliant_kernels::hardware::{multiply_adds, read_bandwidth};
use pliant_machine::isa::{Isa, isa};
use pliant_pool::Team;

/// Duration of a group of calls that are timed together: long compared with the clock, and short
/// compared with the time slices of other programs.
const STRETCH: Duration = Duration::from_micros(100);

/// The operations and the memory reads of a case.
#[derive(Clone, Copy)]
pub struct Work {
    /// Floating-point operations, in units of float32: one of float64 counts as two.
    flops: f64,
    /// Bytes that must be read from memory.
    bytes: f64,
    unit: Unit,
}

/// The unit of a case's rate if reading does not bound it.
#[derive(Clone, Copy)]
enum Unit {
    Single,
    Double,
    Elements(f64),
}

#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
impl Work {
    /// Operations of float32, and bytes that must be read.
    pub const fn single(flops: f64, bytes: f64) -> Work {
        Work { flops, bytes, unit: Unit::Single }
    }

    /// Operations of float64, and bytes that must be read.
    pub const fn double(flops: f64, bytes: f64) -> Work {
        Work { flops: 2.0 * flops, bytes, unit: Unit::Double }
    }

    /// Elements, with the total number of operations in units of float32.
    pub const fn elements(count: f64, flops: f64, bytes: f64) -> Work {
        Work { flops, bytes, unit: Unit::Elements(count) }
    }

    /// The rate as text, given the time in seconds.
    fn rate(self, seconds: f64) -> String {
        match self.unit {
            Unit::Single => format!("{:.0} GFLOP/s", self.flops / seconds / 1e9),
            Unit::Double => format!("{:.0} GFLOP/s", self.flops / 2.0 / seconds / 1e9),
            Unit::Elements(count) => format!("{:.2} G/s", count / seconds / 1e9),
        }
    }
}

/// Steps of the multiply-adds that measure the peak: about 50 microseconds.
const PEAK_STEPS: usize = 12_500;
/// Rounds of a measurement of the floor, of which the best counts: a thread may be delayed in one.
const ROUNDS: usize = 3;

/// The machine with a number of threads.
struct Floor {
    team: Team,
    /// Peaks at single moments.
    peaks: Vec<f64>,
    bandwidths: HashMap<u64, f64>,
}

impl Floor {
    /// Measures the current peak of all threads together, in operations per second.
    fn peak(&mut self) -> f64 {
        let threads = self.team.threads();
        let one = multiply_adds(isa(), 1).expect("the chosen instructions are there");
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

    /// The minimum time in seconds at this peak, and whether memory bounds it.
    fn seconds(&mut self, work: Work, peak: f64) -> (f64, bool) {
        let threads = self.team.threads();
        let rate = *self.bandwidths.entry(work.bytes as u64).or_insert_with(|| {
            let round = |_| read_bandwidth((work.bytes as usize).max(4096), threads);
            (0..ROUNDS).map(round).fold(0.0, f64::max)
        });
        let (compute, read) = (work.flops / peak, work.bytes / rate);
        (compute.max(read), read > compute)
    }
}

/// The measurements of a case.
struct Row {
    name: String,
    work: Work,
    steps: usize,
    /// Seconds of the fastest call.
    best: f64,
    /// For each stretch, the peak before it and the seconds per call.
    moments: Vec<(f64, f64)>,
}

impl Row {
    /// The median over the stretches of the ratio of the floor to the time.
    fn of_floor(&self, floor: &mut Floor) -> f64 {
        let part = |&(peak, time): &(f64, f64)| {
            floor.seconds(self.work, peak).0 * self.steps as f64 / time
        };
        median(self.moments.iter().map(part).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A group of cases with one number of threads.
pub struct Cases<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    floor: Floor,
    title: String,
    rows: Vec<Row>,
}

impl<'a> Cases<'a> {
    /// Measures the floor for kernels with these instructions. Debug builds end here: their times
    /// are meaningless.
    pub fn new(c: &'a mut Criterion, title: &str, used: Isa, threads: usize) -> Cases<'a> {
        if cfg!(debug_assertions) {
            eprintln!("error: this is a debug build, whose times mean nothing\nhelp: cargo bench");
            std::process::exit(1);
        }
        let title = format!("{title}, {}, {threads} thr", used.name());
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

    /// The services that kernels get.
    #[allow(dead_code, reason = "each benchmark has its own copy of this module")]
    pub fn runtime(&self) -> KernelRuntime {
        KernelRuntime {
            parallel_launch: pliant_pool::parallel_launch,
            team: (&raw const self.floor.team).cast::<c_void>(),
            ..KernelRuntime::serial()
        }
    }

    /// Runs one case.
    #[allow(dead_code, reason = "each benchmark has its own copy of this module")]
    pub fn run(&mut self, name: &str, work: Work, body: impl FnMut()) {
        self.run_steps(name, work, 1, body);
    }

    /// Runs one case of `steps` steps, each of which does `work`.
    pub fn run_steps(&mut self, name: &str, work: Work, steps: usize, mut body: impl FnMut()) {
        let (mut best, mut moments) = (f64::INFINITY, Vec::new());
        let floor = &mut self.floor;
        self.group.bench_function(name, |b| {
            b.iter_custom(|times| {
                let (mut all, mut left) = (Duration::ZERO, times);
                let mut peak = floor.peak();
                while left > 0 {
                    let before = peak;
                    let (mut done, begin) = (0, Instant::now());
                    while done < left && (done == 0 || begin.elapsed() < STRETCH) {
                        body();
                        done += 1;
                    }
                    let time = begin.elapsed();
                    let call = time.as_secs_f64() / done as f64;
                    best = best.min(call);
                    peak = floor.peak();
                    moments.push((f64::midpoint(before, peak), call));
                    (all, left) = (all + time, left - done);
                }
                all
            });
        });
        if moments.is_empty() {
            return; // The filter of the command line leaves it out.
        }
        self.rows.push(Row { name: name.to_string(), work, steps, best, moments });
    }

    /// Prints the table.
    pub fn finish(mut self) {
        self.group.finish();
        if self.rows.is_empty() {
            return;
        }
        let best = self.floor.peaks.iter().copied().fold(0.0, f64::max);
        let usual = median(self.floor.peaks.clone());
        println!(
            "\n{}: peak {:.0} GFLOP/s at best, {:.0} in the middle\n",
            self.title,
            best / 1e9,
            usual / 1e9
        );
        println!("| case | us | rate | % of floor |\n|---|---|---|---|");
        for row in &self.rows {
            let step = row.best / row.steps as f64;
            let rate = match self.floor.seconds(row.work, best).1 {
                true => format!("{:.0} GB/s", row.work.bytes / step / 1e9),
                false => row.work.rate(step),
            };
            let percent = 100.0 * row.of_floor(&mut self.floor);
            println!("| {} | {:.2} | {rate} | {percent:.0} |", row.name, row.best * 1e6);
        }
        println!();
    }
}

/// The instruction set of kernels without tile registers.
#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
pub fn vectors() -> Isa {
    match isa() {
        Isa::Amx => Isa::Avx512,
        other => other,
    }
}

/// The numbers of threads: one, and all.
#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
pub fn thread_counts() -> Vec<usize> {
    let all = pliant_pool::default_threads();
    if all > 1 { vec![1, all] } else { vec![1] }
}

/// Small numbers without a short period.
#[allow(dead_code, reason = "each benchmark has its own copy of this module")]
pub fn values(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * step) % 13) as f32 / 8.0 - 0.75).collect()
}
