//! Products of 8-bit integers as the library's kernel does them, in plain form (`pliant_kernels::quantized`).

use super::Loops;
use super::attend::Operand;
use super::scalar::{Val, malformed};
use crate::error::Result;

impl Operand<'_> {
    fn integer(&self, at: &[i64]) -> Result<i64> {
        self.view.read_at(self.position(at)?)?.int()
    }
}

impl Loops<'_, '_, '_> {
    /// `pliant_product_int8` and `pliant_product_uint8`: sizes, the left operand and its zero points, quads, their width and
    /// the sums of columns, zero points of columns, results.
    pub(super) fn quantized(&mut self, args: &[Val]) -> Result<Val> {
        if args.len() != 15 {
            return Err(malformed("a product of 8-bit integers takes 15 arguments"));
        }
        let (m, n, k) = (args[0].int()?, args[1].int()?, args[2].int()?);
        let (a, quads) = (Operand::new(&args[3..5])?, Operand::new(&args[8..9])?);
        let of = |at: usize, end: usize| -> Result<Option<Operand<'_>>> {
            if args[at].is_true()? { Operand::new(&args[at + 1..end]).map(Some) } else { Ok(None) }
        };
        let (a_zeros, b_zeros) = (of(5, 8)?, of(11, 13)?);
        let (width, out) = (args[9].int()?, Operand::new(&args[13..15])?);
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
                let to = out.position(&[i, j])?;
                out.view.write_at(to, &Val::Int(i64::from(sum as i32)))?;
            }
        }
        Ok(Val::Int(0))
    }
}
