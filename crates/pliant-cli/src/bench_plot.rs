//! The plot of `pliant bench --plot`: median run times against the size of one symbol, with a line for each runtime and each
//! combination of the other sizes. A band extends from the shortest time to the 90th percentile.

use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::register_font;

use crate::Failure;
use crate::bench_rows::{PLIANT, Row};
use crate::shape_option;

const WIDTH: u32 = 1000;
const HEIGHT: u32 = 640;
const FONT: &str = "sans-serif";

/// A line of the plot: its label and its points.
type Line = (String, Vec<PlotPoint>);

/// A point of a line: the size, the median time, and the bounds of the band.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PlotPoint {
    size: f64,
    median: f64,
    least: f64,
    p90: f64,
}

/// Plots the measured rows as a PNG file.
///
/// # Errors
/// If the file cannot be written, or there is nothing to plot.
pub fn draw(path: &Path, title: &str, rows: &[Row]) -> Result<(), Failure> {
    let failed = |why: String| Failure::new(format!("error: --plot {}: {why}", path.display()));
    let (symbol, plot_lines) = plot_lines(rows);
    let mut pixels = vec![0u8; (WIDTH * HEIGHT * 3) as usize];
    // The font is embedded, so that plots do not depend on installed fonts.
    register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).map_err(|_| {
        failed("the embedded font of the plot cannot be loaded (a bug in Pliant)".into())
    })?;
    chart(&mut pixels, title, &symbol, &plot_lines).map_err(|e| failed(e.to_string()))?;
    let file = File::create(path).map_err(|e| failed(e.to_string()))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), WIDTH, HEIGHT);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|e| failed(e.to_string()))?;
    writer.write_image_data(&pixels).map_err(|e| failed(e.to_string()))
}

/// Returns the symbol of the x axis, which is the last symbol with several sizes, and the lines of
/// the plot.
fn plot_lines(rows: &[Row]) -> (String, Vec<Line>) {
    let Some(first) = rows.first() else { return (String::new(), Vec::new()) };
    let varies = |i: &usize| rows.iter().any(|r| r.point[*i].1 != first.point[*i].1);
    let axis = (0..first.point.len()).rev().find(varies).or(first.point.len().checked_sub(1));
    let has_peers = rows.iter().any(|row| row.runtime != PLIANT);
    let mut plot_lines: Vec<Line> = Vec::new();
    for row in rows {
        let mut rest = row.point.clone();
        let size = axis.map_or(1, |i| rest.remove(i).1) as f64;
        let sizes = shape_option::text(&rest);
        let name = if has_peers { format!("{} {sizes}", row.runtime) } else { sizes };
        let name = name.trim_end().to_string();
        let (least, p90) = (row.quantile(0.0), row.quantile(0.9));
        let point = PlotPoint { size, median: row.median(), least, p90 };
        match plot_lines.iter_mut().find(|(n, _)| *n == name) {
            Some((_, points)) => points.push(point),
            None => plot_lines.push((name, vec![point])),
        }
    }
    (axis.map_or("runs".into(), |i| first.point[i].0.clone()), plot_lines)
}

/// Returns the range of a logarithmic axis: from the power of ten at or below the smallest value to
/// the power of ten at or above the largest. An axis without a power of ten would have no labels.
/// Values below 1e-6 count as 1e-6.
fn log_range(values: impl Iterator<Item = f64> + Clone) -> Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min).max(1e-6);
    let most = values.fold(0.0, f64::max).max(least);
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    // The bounds coincide for a single value that is a power of ten.
    let high = if high > low { high } else { low + 1.0 };
    10f64.powf(low)..10f64.powf(high) * 1.001
}

/// Formats a number as an axis label, with at most three significant digits.
fn axis_label(value: &f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    let text = format!("{value:.*}", digits.max(0) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn chart(
    pixels: &mut [u8],
    title: &str,
    symbol: &str,
    plot_lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = BitMapBackend::with_buffer(pixels, (WIDTH, HEIGHT)).into_drawing_area();
    root.fill(&WHITE)?;
    let points = plot_lines.iter().flat_map(|(_, p)| p);
    let xs = log_range(points.clone().map(|p| p.size));
    let ys = log_range(points.flat_map(|p| [p.least, p.median, p.p90]));
    let mut chart = ChartBuilder::on(&root)
        .caption(title, (FONT, 24))
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(xs.log_scale(), ys.log_scale())?;
    chart
        .configure_mesh()
        .x_desc(symbol)
        .y_desc("median and band from least to p90, ms")
        .label_style((FONT, 16))
        .axis_desc_style((FONT, 18))
        .light_line_style(WHITE)
        .x_label_formatter(&axis_label)
        .y_label_formatter(&axis_label)
        .draw()?;
    for (i, (name, points)) in plot_lines.iter().enumerate() {
        let color = Palette99::pick(i).to_rgba();
        let top = points.iter().map(|p| (p.size, p.p90));
        let band: Vec<(f64, f64)> =
            top.chain(points.iter().rev().map(|p| (p.size, p.least.max(1e-6)))).collect();
        chart.draw_series([Polygon::new(band, color.mix(0.2))])?;
        let line =
            LineSeries::new(points.iter().map(|p| (p.size, p.median)), color.stroke_width(2));
        chart
            .draw_series(line)?
            .label(if name.is_empty() { "median" } else { name })
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2)));
        let dots = points.iter().map(|p| Circle::new((p.size, p.median), 3, color.filled()));
        chart.draw_series(dots)?;
    }
    if plot_lines.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 16))
            .draw()?;
    }
    Ok(root.present()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_extend_to_powers_of_ten() {
        for (values, low, high) in [
            (vec![0.038, 0.07], 0.01, 0.1),
            (vec![1.0, 8.0], 1.0, 10.0),
            (vec![100.0], 100.0, 1000.0),
        ] {
            let range = log_range(values.iter().copied());
            assert!(
                (range.start - low).abs() < 1e-9 && (range.end / high - 1.001).abs() < 1e-9,
                "{range:?}"
            );
        }
        let texts = [0.01, 0.5, 3.0, 200.0, 12345.0, 0.0999].map(|v| axis_label(&v));
        assert_eq!(texts, ["0.01", "0.5", "3", "200", "12345", "0.0999"]);
    }

    #[test]
    fn last_varying_symbol_is_the_axis_and_others_are_lines() {
        let row_of = |runtime: &str, batch: i64, seq: i64| {
            let point = vec![("batch".into(), batch), ("seq".into(), seq)];
            Row::new(runtime, point, vec![0.5, 0.4, 0.6], 1.0)
        };
        let row = |batch: i64, seq: i64| row_of(PLIANT, batch, seq);
        let (axis, drawn) = plot_lines(&[row(1, 8), row(1, 16), row(2, 8), row(2, 16)]);
        assert_eq!(axis, "seq");
        assert_eq!(drawn.len(), 2);
        let point = |size| PlotPoint { size, median: 0.5, least: 0.4, p90: 0.6 };
        assert_eq!(drawn[1], ("batch=2".into(), vec![point(8.0), point(16.0)]));
        let drawn =
            plot_lines(&[row(1, 8), row(1, 16), row_of("peer", 1, 8), row_of("peer", 1, 16)]).1;
        assert_eq!(
            drawn.iter().map(|l| &*l.0).collect::<Vec<_>>(),
            ["pliant batch=1", "peer batch=1"]
        );
        let (axis, drawn) = plot_lines(&[row(1, 8), row(2, 8)]);
        assert_eq!((axis.as_str(), drawn.len()), ("batch", 1));
        assert_eq!(plot_lines(&[Row::new(PLIANT, Vec::new(), vec![1.0], 1.0)]).1.len(), 1);
    }
}
