//! Convolution of 8-bit integers.

use pliant_ir::DType;
use pliant_kernel_api::kernels::conv::is_depthwise;

use super::super::scalar::{Val, round};
use super::Args;
use super::epilogue::Scales;
use super::window::{Windows, positions};
use crate::error::Result;
use crate::machine::Machine;

/// Computes a convolution.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let w = Windows::of(&args.call, &args.sizes);
    let (x, weight, out) = (args.present("x")?, args.present("weight")?, args.present("out")?);
    let zero = args.view("x_zero").map_or(Ok(0), |zero| zero.integer(&[0]))?;
    let (zeros, terms) = (args.view("weight_zeros"), args.view("terms"));
    let (scales, bytes) = (Scales::of(args, "scale", "filter_scales"), Bytes::of(args)?);
    let channels = w.group.0;
    for b in 0..w.batch {
        for (at, filter) in positions(w.output).flat_map(|at| (0..w.filters).map(move |f| (at, f)))
        {
            let weight_zero = zeros.map_or(Ok(0), |zeros| zeros.integer(&[filter]))?;
            let mut sum = 0i64;
            for (number, tap) in (0..).zip(positions(w.kernel)) {
                let Some([i, j, k]) = w.position(at, tap) else { continue };
                m.step(channels as u64 + 1)?;
                for c in 0..channels {
                    let from = [b, i, j, k, w.first_channel(filter) + c];
                    let left = x.integer(&from)?.wrapping_sub(zero);
                    let right = weight.integer(&[position(args, &w, (number, c, filter))])?;
                    sum = sum.wrapping_add(left.wrapping_mul(right.wrapping_sub(weight_zero)));
                }
            }
            if let Some(terms) = terms {
                sum = sum.wrapping_add(terms.integer(&[filter])?);
            }
            // Sums wrap around at 32 bits.
            let sum = sum as i32;
            let value = match out.dtype {
                DType::Int32 => Val::Int(i64::from(sum)),
                DType::Float32 => Val::Float(scales.value(&args.call, sum, &[0], filter)?),
                _ => Val::Int(bytes.value(scales.value(&args.call, sum, &[0], filter)?)),
            };
            let [i, j, k] = at;
            out.write(out.position(&[b, i, j, k, filter])?, &value)?;
        }
    }
    Ok(())
}

/// The index of the weight of a tap, a channel of a group and a filter.
fn position(args: &Args, w: &Windows, (tap, channel, filter): (i64, i64, i64)) -> i64 {
    if is_depthwise(&args.call, &args.sizes) {
        return tap * w.filters + filter;
    }
    let ((channels, filters), width) = (w.group, args.call.int("panel_width"));
    let quads = (w.kernel.iter().product::<i64>() * channels + 3) / 4;
    let panels = (filters + width - 1) / width;
    let (group, own) = (filter / filters, filter % filters);
    let (row, panel) = (tap * channels + channel, group * panels + own / width);
    ((panel * quads + row / 4) * width + own % width) * 4 + row % 4
}

/// How a result is requantised to 8 bits.
struct Bytes {
    scale: f64,
    zero: f64,
    limits: (f64, f64),
}

impl Bytes {
    fn of(args: &Args) -> Result<Bytes> {
        let number = |name: &str, default: f64| {
            args.view(name).map_or(Ok(default), |number| number.float(&[0]))
        };
        let limits = (args.call.float("out_low"), args.call.float("out_high"));
        Ok(Bytes { scale: number("out_scale", 1.0)?, zero: number("out_zero", 0.0)?, limits })
    }

    fn value(&self, x: f64) -> i64 {
        let x = round(x / self.scale, DType::Float32).round_ties_even();
        let x = round(x + self.zero, DType::Float32);
        // NaN becomes 0.
        if x.is_nan() { 0 } else { x.max(self.limits.0).min(self.limits.1) as i64 }
    }
}
