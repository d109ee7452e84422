//! Convolution.

use pliant_ir::DType;
use pliant_kernel_api::Call;
use pliant_kernel_api::kernels::conv::{is_depthwise, shares_panels};
use pliant_tensor::{Winograd, shared_place};

use super::super::scalar::{Val, round};
use super::Args;
use super::epilogue::activated;
use super::window::{Windows, positions};
use crate::error::Result;
use crate::machine::Machine;

/// Computes a convolution.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let call = &args.call;
    let w = Windows::of(call, &args.sizes);
    let (x, weight, out) = (args.present("x")?, args.present("weight")?, args.present("out")?);
    let (bias, residual) = (args.view("bias"), args.view("residual"));
    let channels = w.group.0;
    for (b, filter) in (0..w.batch).flat_map(|b| (0..w.filters).map(move |f| (b, f))) {
        let first = w.first_channel(filter);
        for at in positions(w.output) {
            let mut sum = 0.0;
            for (number, tap) in (0..).zip(positions(w.kernel)) {
                m.step(channels as u64 + 1)?;
                let Some([i, j, k]) = w.position(at, tap) else { continue };
                let rows = rows(call, number);
                for c in 0..channels {
                    let mut factor = 0.0;
                    for &(row, sign) in &rows {
                        factor += sign * weight.float(&[position(args, &w, (row, c, filter))])?;
                    }
                    sum += x.float(&[b, first + c, i, j, k])? * factor;
                }
            }
            if let Some(bias) = bias {
                sum += bias.float(&[filter])?;
            }
            let [i, j, k] = at;
            if let Some(residual) = residual {
                sum += residual.float(&[b, filter, i, j, k])?;
            }
            let result = Val::Float(round(activated(call, sum), DType::Float32));
            out.write(out.position(&[b, filter, i, j, k])?, &result)?;
        }
    }
    Ok(())
}

/// The Winograd tile for which the weights were transformed.
fn winograd(call: &Call) -> Option<Winograd> {
    [None, Some(Winograd::Two), Some(Winograd::Four)][call.int("winograd") as usize]
}

/// The rows of a panel and the factors whose sum of products is the weight of a tap. The first and
/// the last number of a transformed line are those of the filter, up to a factor. The second and
/// the third differ by the middle one, up to a factor.
fn rows(call: &Call, tap: i64) -> Vec<(i64, f64)> {
    let Some(form) = winograd(call) else { return vec![(tap, 1.0)] };
    let side = form.side() as i64;
    let (first, between) = match form {
        Winograd::Two => (1.0, 1.0),
        Winograd::Four => (4.0, -3.0),
    };
    let line = |at: i64| match at {
        0 => vec![(0, first)],
        1 => vec![(1, between), (2, -between)],
        _ => vec![(side - 1, 1.0)],
    };
    let columns = line(tap % 3);
    let pairs = line(tap / 3).into_iter().flat_map(|(y, a)| {
        columns.iter().map(move |&(x, b)| (side * y + x, a * b)).collect::<Vec<_>>()
    });
    pairs.collect()
}

/// The index of the weight of a row, a channel of a group and a filter.
fn position(args: &Args, w: &Windows, (row, channel, filter): (i64, i64, i64)) -> i64 {
    let (call, (channels, filters)) = (&args.call, w.group);
    if is_depthwise(call, &args.sizes) {
        return row * w.filters + filter;
    }
    let taps: i64 = w.kernel.iter().product();
    if shares_panels(call, &args.sizes) {
        let (size, row) = ((taps * channels, w.filters), row * channels + channel);
        let size = (size.0 as usize, size.1 as usize);
        return shared_place(size, row as usize, filter as usize) as i64;
    }
    let width = call.int("panel_width");
    let rows = winograd(call).map_or(taps, |form| form.numbers() as i64) * channels;
    let (group, own) = (filter / filters, filter % filters);
    let panel = group * ((filters + width - 1) / width) + own / width;
    (panel * rows + row * channels + channel) * width + own % width
}
