//! Times against the floor of the machine: what its multiply-adds and its memory allow at most.
//!
//! Each case runs under criterion; beside its statistics the best stretch of calls is kept, since other programs can only slow it
//! down, and told as a rate and as a percentage of the floor that is measured beside it.

#![expect(clippy::print_stdout, reason = "the tables are what the benchmarks are for")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use pliant_exec::abi::KernelRuntime;
use pliant_kernels::hardware::{peak_flops, read_bandwidth};
use pliant_kernels::isa::isa;
use pliant_pool::Team;

/// Calls are timed together for so long: long against the clock, and short against the turns of other programs.
const STRETCH: Duration = Duration::from_micros(100);

/// What a case computes and reads.
#[derive(Clone, Copy)]
pub struct Work {
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes that must be read from where they lie at rest.
    pub bytes: f64,
}

/// The machine with some number of threads.
pub struct Floor {
    threads: usize,
    peak: f64,
    bandwidths: HashMap<u64, f64>,
}

impl Floor {
    fn new(threads: usize) -> Floor {
        let mut floor = Floor { threads, peak: 0.0, bandwidths: HashMap::new() };
        floor.measure();
        floor
    }

    fn measure(&mut self) {
        let rate = |n: usize| peak_flops(isa(), n).expect("the chosen instructions are there");
        // All threads together are rarely left alone on a machine that others use.
        let one = rate(1) * self.threads as f64;
        self.peak = self.peak.max(one).max(rate(self.threads));
    }

    /// The least seconds, and whether memory sets them.
    fn seconds(&mut self, work: Work) -> (f64, bool) {
        let rate = *self
            .bandwidths
            .entry(work.bytes as u64)
            .or_insert_with(|| read_bandwidth((work.bytes as usize).max(4096), self.threads));
        let (compute, read) = (work.flops / self.peak, work.bytes / rate);
        (compute.max(read), read > compute)
    }
}

/// A group of cases with one number of threads.
pub struct Cases<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    floor: Floor,
    team: Team,
    title: String,
    rows: Vec<(String, Work, usize, f64)>,
}

impl<'a> Cases<'a> {
    /// Measures the floor. Debug builds end here: their times mean nothing.
    pub fn new(c: &'a mut Criterion, title: &str, threads: usize) -> Cases<'a> {
        if cfg!(debug_assertions) {
            eprintln!("error: this is a debug build, whose times mean nothing\nhelp: cargo bench");
            std::process::exit(1);
        }
        let title = format!("{title}, {}, {threads} thr", isa().name());
        let mut group = c.benchmark_group(title.clone());
        group.sample_size(10).nresamples(1001);
        group.warm_up_time(Duration::from_millis(30)).measurement_time(Duration::from_millis(150));
        Cases {
            group,
            floor: Floor::new(threads),
            team: Team::new(threads),
            title,
            rows: Vec::new(),
        }
    }

    /// The services that kernels get.
    pub fn runtime(&self) -> KernelRuntime {
        KernelRuntime {
            parallel_launch: pliant_pool::parallel_launch,
            team: (&raw const self.team).cast::<c_void>(),
            ..KernelRuntime::serial()
        }
    }

    /// Runs one case.
    #[allow(dead_code, reason = "each benchmark has its own copy of this module")]
    pub fn run(&mut self, name: &str, work: Work, body: impl FnMut()) {
        self.run_steps(name, work, 1, body);
    }

    /// Runs one case of so many steps, each of which is that work.
    pub fn run_steps(&mut self, name: &str, work: Work, steps: usize, mut body: impl FnMut()) {
        let mut best = f64::INFINITY;
        self.group.bench_function(name, |b| {
            b.iter_custom(|times| {
                let (mut all, mut left) = (Duration::ZERO, times);
                while left > 0 {
                    let (mut done, begin) = (0, Instant::now());
                    while done < left && (done == 0 || begin.elapsed() < STRETCH) {
                        body();
                        done += 1;
                    }
                    let time = begin.elapsed();
                    best = best.min(time.as_secs_f64() / done as f64);
                    (all, left) = (all + time, left - done);
                }
                all
            });
        });
        if !best.is_finite() {
            return; // The filter of the command line leaves it out.
        }
        // Measured again beside each case, and the best kept: other programs slow both down.
        self.floor.measure();
        self.rows.push((name.to_string(), work, steps, best));
    }

    /// Prints the table.
    pub fn finish(mut self) {
        self.group.finish();
        if self.rows.is_empty() {
            return;
        }
        println!("\n{}: peak {:.0} GFLOP/s\n", self.title, self.floor.peak / 1e9);
        println!("| case | us | rate | % of floor |\n|---|---|---|---|");
        for (name, work, steps, best) in self.rows {
            let (floor, by_memory) = self.floor.seconds(work);
            let step = best / steps as f64;
            let rate = if by_memory {
                format!("{:.0} GB/s", work.bytes / step / 1e9)
            } else {
                format!("{:.0} GFLOP/s", work.flops / step / 1e9)
            };
            println!("| {name} | {:.2} | {rate} | {:.0} |", best * 1e6, 100.0 * floor / step);
        }
        println!();
    }
}

/// Numbers of threads: one, and all.
pub fn thread_counts() -> Vec<usize> {
    let all = pliant_pool::default_threads();
    if all > 1 { vec![1, all] } else { vec![1] }
}

/// Small numbers without a short period.
pub fn values(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * step) % 13) as f32 / 8.0 - 0.75).collect()
}
