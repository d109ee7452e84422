//! The measurements of `pliant bench`: one row per runtime and shape, printed as a table, as CSV and as JSON.

use std::io::Write;

use serde_json::{Map, Value as Json, json};

use crate::Failure;
use crate::shape_option::Point;

/// The name of this runtime in tables.
pub const PLIANT: &str = "pliant";

/// The run times of one runtime at one shape.
pub struct Row {
    /// The runtime: [`PLIANT`], or the name of a peer.
    pub runtime: String,
    /// The sizes of the model's symbols at which the runs were measured.
    pub point: Point,
    /// The times of all runs in milliseconds, in ascending order.
    times: Vec<f64>,
    /// The duration of the measurement in seconds, in which the streams ran in parallel.
    seconds: f64,
}

impl Row {
    /// Creates a row from the times of runs in milliseconds, of which there is at least one.
    pub fn new(runtime: &str, point: Point, mut times: Vec<f64>, seconds: f64) -> Row {
        times.sort_by(f64::total_cmp);
        Row { runtime: runtime.to_string(), point, times, seconds }
    }

    /// Returns the time below which this share of the runs lies, in milliseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        let index = (self.times.len().saturating_sub(1) as f64 * share).round() as usize;
        self.times.get(index).copied().unwrap_or(f64::NAN)
    }

    /// Returns the median time of a run, in milliseconds.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the number of runs per second, of all streams together.
    fn rate(&self) -> f64 {
        self.times.len() as f64 / self.seconds.max(1e-9)
    }
}

/// The times in the table, in milliseconds, by column.
const COLUMNS: [(&str, f64); 5] =
    [("median", 0.5), ("least", 0.0), ("p90", 0.9), ("p99", 0.99), ("most", 1.0)];

/// Returns the names of the symbols.
fn symbol_names(rows: &[Row]) -> Vec<&str> {
    rows.first().map_or(Vec::new(), |r| r.point.iter().map(|(s, _)| s.as_str()).collect())
}

/// Whether the rows are of several runtimes.
fn has_peers(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.runtime != PLIANT)
}

/// Prints a table. Rows of peers have the ratio of their median to that of Pliant at the same shape.
pub fn print_table(rows: &[Row], out: &mut dyn Write) -> Result<(), Failure> {
    let peers = has_peers(rows);
    let mut header: Vec<String> = symbol_names(rows).into_iter().map(str::to_owned).collect();
    header.extend(COLUMNS.map(|(name, _)| format!("{name} ms")));
    header.extend(["runs/s", "runs"].map(str::to_owned));
    if peers {
        header.insert(0, "runtime".into());
        header.push("ratio".into());
    }
    let line = |row: &Row| {
        let mut cells: Vec<String> = row.point.iter().map(|(_, n)| n.to_string()).collect();
        cells.extend(COLUMNS.map(|(_, share)| format!("{:.4}", row.quantile(share))));
        cells.push(format!("{:.1}", row.rate()));
        cells.push(row.times.len().to_string());
        if peers {
            cells.insert(0, row.runtime.clone());
            cells.push(ratio(rows, row).map_or("-".into(), |ratio| format!("{ratio:.2}")));
        }
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

/// The median of a peer's row divided by that of Pliant at the same shape; `None` for rows of Pliant.
fn ratio(rows: &[Row], row: &Row) -> Option<f64> {
    let own = rows.iter().find(|r| r.runtime == PLIANT && r.point == row.point)?;
    (row.runtime != PLIANT).then(|| row.median() / own.median().max(1e-9))
}

/// Returns the rows as CSV.
pub fn to_csv(rows: &[Row]) -> String {
    // The name of a symbol may contain any character.
    let quote = |s: &str| match s.contains([',', '"', '\n']) {
        true => format!("\"{}\"", s.replace('"', "\"\"")),
        false => s.to_owned(),
    };
    let mut header = vec!["runtime".to_owned()];
    header.extend(symbol_names(rows).into_iter().map(quote));
    header.extend(COLUMNS.map(|(name, _)| format!("{name}_ms")));
    header.extend(["runs_per_second", "runs"].map(str::to_owned));
    let mut text = header.join(",") + "\n";
    for row in rows {
        let mut cells = vec![row.runtime.clone()];
        cells.extend(row.point.iter().map(|(_, n)| n.to_string()));
        cells.extend(COLUMNS.map(|(_, share)| row.quantile(share).to_string()));
        cells.extend([row.rate().to_string(), row.times.len().to_string()]);
        text += &(cells.join(",") + "\n");
    }
    text
}

/// Returns the rows as a JSON array.
pub fn to_json(rows: &[Row]) -> Json {
    let row = |row: &Row| {
        let shape: Map<String, Json> =
            row.point.iter().map(|(s, n)| (s.clone(), json!(n))).collect();
        let mut object = Map::new();
        object.insert("runtime".into(), json!(row.runtime));
        object.insert("shape".into(), json!(shape));
        for (name, share) in COLUMNS {
            object.insert(format!("{name}_ms"), json!(row.quantile(share)));
        }
        object.insert("runs_per_second".into(), json!(row.rate()));
        object.insert("runs".into(), json!(row.times.len()));
        Json::Object(object)
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(runtime: &str, times: &[f64]) -> Row {
        Row::new(runtime, vec![("n".into(), 4)], times.to_vec(), 0.5)
    }

    #[test]
    fn quantiles_are_those_of_sorted_times() {
        let times: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let row = row(PLIANT, &times);
        let found = [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| row.quantile(share));
        assert_eq!(found, [0.0, 50.0, 90.0, 99.0, 100.0]);
        assert_eq!(row.rate(), 202.0);
    }

    #[test]
    fn peers_have_the_ratio_of_medians() {
        let rows = [row(PLIANT, &[2.0]), row("onnxruntime", &[3.0])];
        assert_eq!((ratio(&rows, &rows[0]), ratio(&rows, &rows[1])), (None, Some(1.5)));
        let mut out = Vec::new();
        assert!(print_table(&rows, &mut out).is_ok());
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.lines().next().expect("a header").trim_end().ends_with("ratio"), "{text}");
        assert!(text.lines().nth(2).expect("a peer").ends_with("1.50"), "{text}");
    }
}
