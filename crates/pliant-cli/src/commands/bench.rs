//! `pliant bench`: times a model, compiled once, over a range of shapes, beside other runtimes.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use pliant::{Model, Value};
use serde_json::json;

use crate::args::BenchArgs;
use crate::bench_rows::{self, PLIANT, Row};
use crate::commands::run::signature;
use crate::peer_benchmark::{self, PeerTimes};
use crate::program_loading::FileKind;
use crate::run_inputs::Feed;
use crate::shape_option::{self, Point};
use crate::{Failure, bench_plot, program_loading, progress};

/// Runs `pliant bench`.
pub fn bench(args: &BenchArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    // Report unwritable files before the sweep, which may take long.
    for path in [&args.csv, &args.json, &args.plot].into_iter().flatten() {
        program_loading::check_writable(path)?;
    }
    if !args.against.is_empty() && FileKind::of(&args.file) != FileKind::Onnx {
        return Err(Failure::new("error: --against requires an ONNX model (.onnx)"));
    }
    let feed = Feed::new(&args.feed)?;
    let points = shape_option::points(&feed.axes)?;
    let start = Instant::now();
    let compiled = program_loading::build(&args.file, &args.build, err)?;
    let compile_time = start.elapsed();
    let signature = signature(&compiled, &args.feed.func)?.clone();
    let model = Model::new(compiled)?;
    let bar = progress::bar("measuring", points.len());
    let (mut rows, mut inputs, mut failed) = (Vec::with_capacity(points.len()), Vec::new(), None);
    for point in &points {
        let measured = feed.values(&signature, point).and_then(|values| {
            let row = measure(&model, args, &values, point.clone())?;
            Ok((row, values))
        });
        match measured {
            Ok((row, values)) => {
                rows.push(row);
                inputs.extend((!args.against.is_empty()).then_some(values));
            }
            Err(failure) => {
                failed = Some(failure);
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    // Rows measured before a failing shape are still printed.
    if rows.is_empty()
        && let Some(failure) = failed
    {
        return Err(failure);
    }
    let measured = points[..rows.len()].to_vec();
    let mut peers = Vec::new();
    for &peer in &args.against {
        let spinner = progress::spinner(format!("measuring {}", peer.name()));
        let times = peer_benchmark::run(peer, args, &signature, &inputs);
        spinner.finish_and_clear();
        let times = times?;
        for (point, (runs, seconds)) in measured.iter().zip(&times.points) {
            rows.push(Row::new(peer.name(), point.clone(), runs.clone(), *seconds));
        }
        peers.push((peer.name(), times));
    }
    report(args, &model, compile_time, (&rows, &peers), out)?;
    failed.map_or(Ok(()), Err)
}

/// Prints the table and writes the files.
fn report(
    args: &BenchArgs,
    model: &Model,
    compile_time: Duration,
    (rows, peers): (&[Row], &[(&str, PeerTimes)]),
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let compile_time = compile_time.as_secs_f64();
    let compilations = model.stats().compilations;
    let during_runs = match compilations - 1 {
        0 => String::new(),
        n => format!("; {n} more during runs"),
    };
    let file = args.file.display();
    writeln!(out, "{file}: 1 compilation, {:.0} ms{during_runs}", compile_time * 1e3)?;
    for (name, times) in peers {
        let load = times.load_seconds * 1e3;
        writeln!(out, "{name} {}: loaded in {load:.0} ms", times.version)?;
    }
    bench_rows::print_table(rows, out)?;
    if let Some(path) = &args.csv {
        write_file(path, bench_rows::to_csv(rows))?;
    }
    if let Some(path) = &args.json {
        let loads = peers.iter().map(|(name, times)| {
            json!({"runtime": name, "version": times.version, "load_ms": times.load_seconds * 1e3})
        });
        let text = json!({
            "model": file.to_string(),
            "version": env!("CARGO_PKG_VERSION"),
            "compilations": compilations,
            "import_and_compile_ms": compile_time * 1e3,
            "streams": args.streams,
            "warm_up_seconds": args.warm_up,
            "peers": loads.collect::<Vec<_>>(),
            "measurements": bench_rows::to_json(rows),
        });
        write_file(path, format!("{text:#}\n"))?;
    }
    if let Some(path) = &args.plot {
        let title = args.file.file_name().map(|n| n.to_string_lossy().into_owned());
        bench_plot::draw(path, &title.unwrap_or_default(), rows)?;
    }
    Ok(())
}

fn write_file(path: &Path, text: String) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|e| Failure::new(format!("error: cannot write the file {}: {e}", path.display())))
}

/// Measures runs at one shape, after a warm-up of at least one run. Each stream runs at least three times, and until `args.time`
/// seconds have passed.
fn measure(
    model: &Model,
    args: &BenchArgs,
    values: &[Value],
    point: Point,
) -> Result<Row, Failure> {
    const MAX_RUNS: usize = 100_000;
    let options = args.feed.run_options();
    let run = || model.run_with(&args.feed.func, values, &options).map(drop);
    let failed = |error| with_shape(&point, error);
    let budget = Duration::from_secs_f64(args.warm_up);
    let begin = Instant::now();
    run().map_err(failed)?;
    while begin.elapsed() < budget {
        run().map_err(failed)?;
    }
    let budget = Duration::from_secs_f64(args.time);
    let begin = Instant::now();
    let stream = || -> Result<Vec<f64>, pliant::Error> {
        let mut times = Vec::new();
        while times.len() < 3 || (begin.elapsed() < budget && times.len() < MAX_RUNS) {
            let start = Instant::now();
            run()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(times)
    };
    let streams: Vec<Result<Vec<f64>, pliant::Error>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..args.streams.get()).map(|_| scope.spawn(stream)).collect();
        let own = stream();
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(times) => times,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        [own].into_iter().chain(joined).collect()
    });
    let seconds = begin.elapsed().as_secs_f64();
    let times: Result<Vec<Vec<f64>>, pliant::Error> = streams.into_iter().collect();
    let times = times.map_err(failed)?.concat();
    Ok(Row::new(PLIANT, point, times, seconds))
}

/// Adds the symbol sizes at which an error occurred to its message.
fn with_shape(point: &Point, error: pliant::Error) -> Failure {
    let mut failure = Failure::from(error);
    if !point.is_empty() {
        failure.text =
            format!("{}\nat the sizes {}", failure.text.trim_end(), shape_option::text(point));
    }
    failure
}
