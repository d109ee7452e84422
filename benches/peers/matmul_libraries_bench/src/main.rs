//! Times matrix products of the given shapes with each library, and prints a line for each shape
//! and library: `m n k library seconds`.
//!
//! Arguments: a number of threads, then shapes as `MxNxK`. The environment variable `MATMUL_NUM_THREADS` must contain the same
//! number of threads, since `matrixmultiply` has no other setting for it. The printed time of a library is that of its fastest
//! series of calls in all rounds. Each round measures every library once, after a pause in which the threads of the previous
//! library stop spinning.

mod engines;

use std::time::{Duration, Instant};

use engines::{Product, engines};

/// Number of measurements of each library.
const ROUNDS: usize = 7;
/// The pause before a measurement, in which the threads of the previous library go to sleep.
const PAUSE: Duration = Duration::from_millis(15);
/// Minimum duration of a measurement, after a warm-up of the same duration.
const MEASUREMENT: Duration = Duration::from_millis(10);
/// Minimum duration of a series of consecutive calls that are timed together.
const STRETCH: Duration = Duration::from_micros(100);
/// Maximum relative error of a correct product.
const TOLERANCE: f32 = 1e-4;

/// Measures a library once. Returns the seconds per call in its fastest series of calls.
fn measure_engine(run: &mut dyn FnMut()) -> f64 {
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    while begin.elapsed() < 2 * MEASUREMENT {
        let (mut calls, stretch) = (0, Instant::now());
        while calls == 0 || stretch.elapsed() < STRETCH {
            run();
            calls += 1;
        }
        if begin.elapsed() > MEASUREMENT || calls == 1 {
            best = best.min(stretch.elapsed().as_secs_f64() / f64::from(calls));
        }
    }
    best
}

fn parse_shape(text: &str) -> Option<[usize; 3]> {
    let parts: Vec<usize> = text.split('x').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok().filter(|dims: &[usize; 3]| dims.iter().all(|&dim| dim > 0))
}

fn measure_shape(dims: [usize; 3], threads: usize) {
    let product = Product::new(dims);
    let mut engines = engines(&product, threads);
    let mut best = vec![f64::INFINITY; engines.len()];
    for round in 0..ROUNDS {
        for offset in 0..engines.len() {
            let index = (offset + round) % engines.len();
            std::thread::sleep(PAUSE);
            best[index] = best[index].min(measure_engine(&mut engines[index].run));
        }
    }
    for (engine, seconds) in engines.iter_mut().zip(best) {
        let error = product.error(engine);
        assert!(error < TOLERANCE, "{} is wrong by {error} at {dims:?}", engine.name);
        let [m, n, k] = dims;
        println!("{m} {n} {k} {} {seconds:e}", engine.name);
    }
}

fn main() {
    let usage = "usage: pliant-peer-products THREADS MxNxK...";
    if cfg!(debug_assertions) {
        eprintln!(
            "error: this is a debug build, whose times are meaningless\nhelp: cargo run --release"
        );
        std::process::exit(1);
    }
    let mut words = std::env::args().skip(1);
    let threads = words.next().and_then(|word| word.parse().ok()).filter(|&count| count > 0);
    let shapes: Option<Vec<_>> = words.map(|word| parse_shape(&word)).collect();
    let (Some(threads), Some(shapes)) = (threads, shapes) else {
        eprintln!("{usage}");
        std::process::exit(2);
    };
    for dims in shapes {
        measure_shape(dims, threads);
    }
}
