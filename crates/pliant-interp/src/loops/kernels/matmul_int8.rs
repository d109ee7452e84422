//! Products of 8-bit integers as the library's kernels do them, in plain form (`pliant_kernels::quantized`).

use pliant_ir::DType;

use super::Loops;
use super::attend::Operand;
use super::convolve::activated;
use super::scalar::{Val, malformed, round};
use crate::error::Result;

impl Operand<'_> {
    pub(super) fn integer(&self, at: &[i64]) -> Result<i64> {
        self.view.read_at(self.position(at)?)?.int()
    }
}

/// What becomes of the sums of a product that gives float32.
pub(super) struct Scaled<'a> {
    rows: Option<Operand<'a>>,
    columns: Option<Operand<'a>>,
    bias: Option<Operand<'a>>,
    activation: i64,
    limits: (f64, f64),
}

impl<'a> Scaled<'a> {
    /// By the arguments behind those of the product of integers: factors of rows, which are so many, and of columns, bias,
    /// activation.
    pub(super) fn new(args: &'a [Val], rows: usize) -> Result<Scaled<'a>> {
        let rest = &args[rows..];
        Ok(Scaled {
            rows: given(args, 0, rows)?,
            columns: given(rest, 0, 2)?,
            bias: given(rest, 2, 4)?,
            activation: rest[4].int()?,
            limits: (rest[5].float()?, rest[6].float()?),
        })
    }

    pub(super) fn value(&self, sum: i32, i: i64, j: i64) -> Result<f64> {
        let mut x = round(f64::from(sum), DType::Float32);
        for (factors, at) in [(&self.rows, i), (&self.columns, j)] {
            if let Some(factors) = factors {
                x = round(x * factors.get(&[at])?, DType::Float32);
            }
        }
        if let Some(bias) = &self.bias {
            x = round(x + bias.get(&[j])?, DType::Float32);
        }
        Ok(round(activated(self.activation, x, self.limits)?, DType::Float32))
    }
}

/// What stands behind the argument at `at`, where that is not 0.
pub(super) fn given(args: &[Val], at: usize, end: usize) -> Result<Option<Operand<'_>>> {
    if args[at].is_true()? { Operand::new(&args[at + 1..end]).map(Some) } else { Ok(None) }
}

impl Loops<'_, '_, '_> {
    /// `pliant_product_int8`, `pliant_product_uint8` and those that give float32: sizes, the left operand and its zero points,
    /// quads, their width and the sums of columns, zero points of columns, what becomes of the sums where there are ten arguments
    /// more, results.
    pub(super) fn quantized(&mut self, args: &[Val]) -> Result<Val> {
        if args.len() != 15 && args.len() != 25 {
            return Err(malformed("a product of 8-bit integers takes 15 arguments, or 25"));
        }
        let scaled = if args.len() == 25 { Some(Scaled::new(&args[13..23], 3)?) } else { None };
        let (m, n, k) = (args[0].int()?, args[1].int()?, args[2].int()?);
        let (a, quads) = (Operand::new(&args[3..5])?, Operand::new(&args[8..9])?);
        let (a_zeros, b_zeros) = (given(args, 5, 8)?, given(args, 11, 13)?);
        let (width, out) = (args[9].int()?, Operand::new(&args[args.len() - 2..])?);
        if !(1..=64).contains(&width) || width % 16 != 0 {
            return Err(malformed("panels of 8-bit integers are of 16, 32, 48 or 64 columns"));
        }
        let rows = (k.max(0) + 3) / 4;
        for i in 0..m {
            let a_zero = a_zeros.as_ref().map_or(Ok(0), |z| z.integer(&[i]))?;
            for j in 0..n {
                self.m.step(k.max(0) as u64 + 1)?;
                let b_zero = b_zeros.as_ref().map_or(Ok(0), |z| z.integer(&[j]))?;
                let mut sum = 0i64;
                for p in 0..k {
                    let at = ((j / width * rows + p / 4) * width + j % width) * 4 + p % 4;
                    let left = a.integer(&[i, p])?.wrapping_sub(a_zero);
                    let right = quads.integer(&[at])?.wrapping_sub(b_zero);
                    sum = sum.wrapping_add(left.wrapping_mul(right));
                }
                // Sums wrap around at 32 bits.
                let value = match &scaled {
                    Some(scaled) => Val::Float(scaled.value(sum as i32, i, j)?),
                    None => Val::Int(i64::from(sum as i32)),
                };
                out.view.write_at(out.position(&[i, j])?, &value)?;
            }
        }
        Ok(Val::Int(0))
    }
}
