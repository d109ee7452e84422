//! Convolution of 8-bit integers as the library's kernels do it, in plain form (`pliant_kernels::quantized::convolution`).

use pliant_ir::DType;

use super::Loops;
use super::attend::Operand;
use super::convolve::{places, three};
use super::quantized::{Scaled, given};
use super::scalar::{Val, malformed, round};
use crate::error::Result;

/// Arguments of a call without and with what becomes of the sums, and with that as bytes.
const COUNTS: [usize; 3] = [31, 42, 48];

/// A convolution's numbers.
struct Shape {
    batch: i64,
    channels: i64,
    filters: i64,
    groups: i64,
    input: [i64; 3],
    output: [i64; 3],
    kernel: [i64; 3],
    stride: [i64; 3],
    dilation: [i64; 3],
    before: [i64; 3],
    width: i64,
}

impl Shape {
    fn of(args: &[Val]) -> Result<Shape> {
        let s = Shape {
            batch: args[0].int()?,
            channels: args[1].int()?,
            filters: args[2].int()?,
            groups: args[3].int()?,
            input: three(args, 4)?,
            output: three(args, 7)?,
            kernel: three(args, 10)?,
            stride: three(args, 13)?,
            dilation: three(args, 16)?,
            before: three(args, 19)?,
            width: args[26].int()?,
        };
        let even = s.groups > 0 && s.channels % s.groups == 0 && s.filters % s.groups == 0;
        let packed = (1..=64).contains(&s.width) && s.width % 16 == 0;
        if !even || s.kernel.iter().any(|&k| k < 1) || !packed && !s.is_depthwise() {
            return Err(malformed("a convolution of 8-bit integers whose sizes make no sense"));
        }
        Ok(s)
    }

    /// Whether each channel has one filter of its own.
    fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.channels && self.groups == self.filters
    }

    /// Where the weight of a tap, a channel of a group and a filter lies.
    fn weight(&self, tap: i64, channel: i64, filter: i64) -> i64 {
        if self.is_depthwise() {
            return tap * self.channels + filter;
        }
        let (channels, filters) = (self.channels / self.groups, self.filters / self.groups);
        let quads = (self.kernel.iter().product::<i64>() * channels + 3) / 4;
        let panels = (filters + self.width - 1) / self.width;
        let (group, own) = (filter / filters, filter % filters);
        let (p, panel) = (tap * channels + channel, group * panels + own / self.width);
        ((panel * quads + p / 4) * self.width + own % self.width) * 4 + p % 4
    }

    /// The input of a tap for a result, where there is one.
    fn place(&self, at: [i64; 3], tap: [i64; 3]) -> Option<[i64; 3]> {
        let place = [0, 1, 2].map(|d| {
            let (first, on) =
                (at[d].saturating_mul(self.stride[d]), tap[d].saturating_mul(self.dilation[d]));
            first.saturating_add(on).saturating_sub(self.before[d])
        });
        (0..3).all(|d| (0..self.input[d]).contains(&place[d])).then_some(place)
    }
}

/// Results as bytes: what they are divided by, what is added to them, and their limits.
struct Bytes(f64, f64, f64, f64);

impl Bytes {
    fn of(args: &[Val]) -> Result<Bytes> {
        let number = |at: usize, other: f64| -> Result<f64> {
            given(args, at, at + 2)?.map_or(Ok(other), |number| number.get(&[]))
        };
        Ok(Bytes(number(0, 1.0)?, number(2, 0.0)?, args[4].float()?, args[5].float()?))
    }

    fn value(&self, x: f64) -> i64 {
        let x = round(x / self.0, DType::Float32).round_ties_even();
        let x = round(x + self.1, DType::Float32);
        // NaN becomes 0.
        if x.is_nan() { 0 } else { x.max(self.2).min(self.3) as i64 }
    }
}

impl Loops<'_, '_, '_> {
    /// `pliant_convolve_int8` and the others that begin so: sizes, the input and its zero point, weights, the columns of a panel,
    /// their sums and zero points, what becomes of the sums, results.
    pub(super) fn integer_convolve(&mut self, args: &[Val]) -> Result<Val> {
        if !COUNTS.contains(&args.len()) {
            return Err(malformed("a convolution of 8-bit integers takes 31, 42 or 48 arguments"));
        }
        let s = Shape::of(args)?;
        let (x, weights) = (Operand::new(&args[22..23])?, Operand::new(&args[25..26])?);
        let zero = given(args, 23, 25)?.map_or(Ok(0), |z| z.integer(&[]))?;
        let (zeros, out) = (given(args, 28, 30)?, Operand::new(&args[args.len() - 1..])?);
        let terms = if args.len() > 31 { given(args, 30, 32)? } else { None };
        let scaled = if args.len() > 31 { Some(Scaled::new(&args[32..41], 2)?) } else { None };
        let bytes = if args.len() > 42 { Some(Bytes::of(&args[41..47])?) } else { None };
        let (channels, filters) = (s.channels / s.groups, s.filters / s.groups);
        let mut to = 0;
        for b in 0..s.batch {
            for at in places(s.output) {
                for filter in 0..s.filters {
                    let w_zero = zeros.as_ref().map_or(Ok(0), |z| z.integer(&[filter]))?;
                    let mut sum = 0i64;
                    for (number, tap) in places(s.kernel).enumerate() {
                        let Some([i, j, k]) = s.place(at, tap) else { continue };
                        self.m.step(channels as u64 + 1)?;
                        let pixel = ((b * s.input[0] + i) * s.input[1] + j) * s.input[2] + k;
                        for q in 0..channels {
                            let from = pixel * s.channels + filter / filters * channels + q;
                            let left = x.integer(&[from])?.wrapping_sub(zero);
                            let w = weights.integer(&[s.weight(number as i64, q, filter)])?;
                            sum = sum.wrapping_add(left.wrapping_mul(w.wrapping_sub(w_zero)));
                        }
                    }
                    if let Some(terms) = &terms {
                        sum = sum.wrapping_add(terms.integer(&[filter])?);
                    }
                    // Sums wrap around at 32 bits.
                    let value = match (&scaled, &bytes) {
                        (None, _) => Val::Int(i64::from(sum as i32)),
                        (Some(s), None) => Val::Float(s.value(sum as i32, 0, filter)?),
                        (Some(s), Some(b)) => Val::Int(b.value(s.value(sum as i32, 0, filter)?)),
                    };
                    out.view.write_at(out.position(&[to])?, &value)?;
                    to += 1;
                }
            }
        }
        Ok(Val::Int(0))
    }
}
