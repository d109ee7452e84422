//! `pliant bench`: times a model, compiled once, over a range of shapes.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use pliant::{Model, Value};
use serde_json::json;

use crate::args::BenchArgs;
use crate::commands::run::signature;
use crate::run_inputs::Feed;
use crate::shape_option::{self, Point};
use crate::{Failure, bench_plot, program_loading, progress};

/// The measured run times at one shape, in milliseconds.
pub struct Row {
    /// The sizes of the model's symbols at which the runs were measured.
    pub point: Point,
    /// The median time of a run, in milliseconds.
    pub median: f64,
    /// The shortest time of a run, in milliseconds.
    least: f64,
    /// The 90th percentile of the run times, in milliseconds.
    p90: f64,
    /// The number of runs that were measured at this shape.
    runs: usize,
}

#[cfg(test)]
impl Row {
    /// Creates a row with only a median, for tests of the plot.
    pub fn with_median(point: &[(&str, i64)], median: f64) -> Row {
        let point = point.iter().map(|(s, n)| (s.to_string(), *n)).collect();
        Row { point, median, least: median, p90: median, runs: 1 }
    }
}

/// Runs `pliant bench`.
pub fn bench(args: &BenchArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), Failure> {
    // Report unwritable files before the sweep, which may take long.
    for path in [&args.csv, &args.json, &args.plot].into_iter().flatten() {
        program_loading::check_writable(path)?;
    }
    let feed = Feed::new(&args.feed)?;
    let points = shape_option::points(&feed.axes)?;
    let start = Instant::now();
    let compiled = program_loading::build(&args.file, &args.build, err)?;
    let compile_time = start.elapsed();
    let signature = signature(&compiled, &args.feed.func)?.clone();
    let model = Model::new(compiled)?;
    let bar = progress::bar("measuring", points.len());
    let (mut rows, mut failed) = (Vec::with_capacity(points.len()), None);
    for point in points {
        let values = feed.values(&signature, &point);
        let row = values.and_then(|v| measure(&model, args, &v, point));
        match row {
            Ok(row) => rows.push(row),
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
    let compile_time = compile_time.as_secs_f64();
    let compilations = model.stats().compilations;
    let during_runs = match compilations - 1 {
        0 => String::new(),
        n => format!("; {n} more during runs"),
    };
    let file = args.file.display();
    writeln!(out, "{file}: 1 compilation, {:.0} ms{during_runs}", compile_time * 1e3)?;
    print_table(&rows, out)?;
    if let Some(path) = &args.csv {
        write_file(path, to_csv(&rows))?;
    }
    if let Some(path) = &args.json {
        write_file(path, format!("{:#}\n", to_json(args, compilations, compile_time, &rows)))?;
    }
    if let Some(path) = &args.plot {
        let title = args.file.file_name().map(|n| n.to_string_lossy().into_owned());
        bench_plot::draw(path, &title.unwrap_or_default(), &rows)?;
    }
    failed.map_or(Ok(()), Err)
}

fn write_file(path: &Path, text: String) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|e| Failure::new(format!("error: cannot write the file {}: {e}", path.display())))
}

/// Measures runs at one shape, after one warm-up run. There are at least three runs, and further
/// runs until `args.time` seconds have passed.
fn measure(
    model: &Model,
    args: &BenchArgs,
    values: &[Value],
    point: Point,
) -> Result<Row, Failure> {
    const MAX_RUNS: usize = 100_000;
    let options = args.feed.run_options();
    let run = || {
        model.run_with(&args.feed.func, values, &options).map_err(|error| with_shape(&point, error))
    };
    run()?;
    let budget = Duration::from_secs_f64(args.time);
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 3 || (begin.elapsed() < budget && times.len() < MAX_RUNS) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    let (least, median, p90) = (quantile(0.0), quantile(0.5), quantile(0.9));
    Ok(Row { point, median, least, p90, runs: times.len() })
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

fn symbol_names(rows: &[Row]) -> Vec<&str> {
    rows.first().map_or(Vec::new(), |r| r.point.iter().map(|(s, _)| s.as_str()).collect())
}

fn print_table(rows: &[Row], out: &mut dyn Write) -> Result<(), Failure> {
    let mut header: Vec<String> = symbol_names(rows).into_iter().map(str::to_owned).collect();
    header.extend(["median ms", "least ms", "p90 ms", "runs/s", "runs"].map(str::to_owned));
    let line = |r: &Row| {
        let mut cells: Vec<String> = r.point.iter().map(|(_, n)| n.to_string()).collect();
        cells.extend([r.median, r.least, r.p90].map(|t| format!("{t:.4}")));
        cells.push(format!("{:.1}", 1e3 / r.median.max(1e-9)));
        cells.push(r.runs.to_string());
        cells
    };
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let width = |i: usize| {
        let cells = lines.iter().map(|l| l[i].chars().count());
        cells.chain([header[i].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for cells in [&header].into_iter().chain(&lines) {
        let cells = cells.iter().zip(&widths).map(|(c, w)| format!("{c:>w$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  "))?;
    }
    Ok(())
}

fn to_csv(rows: &[Row]) -> String {
    // The name of a symbol may contain any character.
    let quote = |s: &str| match s.contains([',', '"', '\n']) {
        true => format!("\"{}\"", s.replace('"', "\"\"")),
        false => s.to_owned(),
    };
    let mut header: Vec<String> = symbol_names(rows).into_iter().map(quote).collect();
    header.extend(["median_ms", "least_ms", "p90_ms", "runs"].map(str::to_owned));
    let mut text = header.join(",") + "\n";
    for row in rows {
        let mut cells: Vec<String> = row.point.iter().map(|(_, n)| n.to_string()).collect();
        cells.extend([row.median, row.least, row.p90].map(|t| t.to_string()));
        cells.push(row.runs.to_string());
        text += &(cells.join(",") + "\n");
    }
    text
}

fn to_json(
    args: &BenchArgs,
    compilations: u64,
    compile_time: f64,
    rows: &[Row],
) -> serde_json::Value {
    let row = |r: &Row| {
        let shape: serde_json::Map<String, serde_json::Value> =
            r.point.iter().map(|(s, n)| (s.clone(), json!(n))).collect();
        json!({
            "shape": shape,
            "median_ms": r.median,
            "least_ms": r.least,
            "p90_ms": r.p90,
            "runs": r.runs,
        })
    };
    json!({
        "model": args.file.display().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "compilations": compilations,
        "import_and_compile_ms": compile_time * 1e3,
        "measurements": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
