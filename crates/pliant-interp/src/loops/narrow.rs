//! Products by constants of fewer bits as the library's kernels do them, in plain form (`pliant_kernels::narrow`).

use pliant_ir::DType;

use super::Loops;
use super::attend::Operand;
use super::scalar::{Val, malformed, round};
use crate::error::Result;

/// How the right operand is stored.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Bytes,
    Nibbles,
    BFloat16,
}

impl Format {
    fn element(
        self,
        b: &Operand<'_>,
        (panel, column): (i64, i64),
        p: i64,
        rows: i64,
        width: i64,
    ) -> Result<f64> {
        let pair = |rows: i64| (panel * ((rows + 1) / 2) + p / 2) * width + column;
        let at = |at: i64| b.position(&[at]).and_then(|at| b.view.read_at(at));
        Ok(match self {
            Format::Bytes => at((panel * rows + p) * width + column)?.int()? as f64,
            Format::Nibbles => ((at(pair(rows))?.int()? >> (4 * (p % 2))) & 15) as f64,
            Format::BFloat16 => at(pair(rows) * 2 + p % 2)?.float()?,
        })
    }
}

impl Loops<'_, '_, '_> {
    /// Sizes, the left operand, panels and their width, then, but for bfloat16, groups with their scales and zero points,
    /// then the results.
    pub(super) fn narrow(&mut self, name: &str, args: &[Val]) -> Result<Val> {
        let format = match name {
            "pliant_product_bytes_f32" => Format::Bytes,
            "pliant_product_nibbles_f32" => Format::Nibbles,
            _ => Format::BFloat16,
        };
        let scaled = format != Format::BFloat16;
        if args.len() != if scaled { 13 } else { 9 } {
            return Err(malformed(
                "a product by a constant of fewer bits takes 13 arguments, or 9",
            ));
        }
        let (m, n, k) = (args[0].int()?, args[1].int()?, args[2].int()?);
        let (a, b) = (Operand::new(&args[3..5])?, Operand::new(&args[5..6])?);
        let (width, out) = (args[6].int()?, Operand::new(&args[args.len() - 2..])?);
        let group = if scaled { args[7].int()? } else { k.max(1) };
        let scales = if scaled { Some(Operand::new(&args[8..9])?) } else { None };
        let given = scaled && args[9].is_true()?;
        let zeros = if given { Some(Operand::new(&args[10..11])?) } else { None };
        let whole = (1..=64).contains(&width) && width % 16 == 0;
        if !whole || group < 1 || group < k && group % 2 != 0 {
            return Err(malformed("panels of 16, 32, 48 or 64 columns and groups of even sizes"));
        }
        let groups = (k.max(0) + group - 1) / group;
        for i in 0..m {
            for j in 0..n {
                self.m.step(k.max(0) as u64 + 1)?;
                let (panel, column) = (j / width, j % width);
                let mut sum = 0.0;
                for p in 0..k {
                    let at = (panel * groups + p / group) * width + column;
                    let scale = scales.as_ref().map_or(Ok(1.0), |s| s.get(&[at]))?;
                    let zero = zeros.as_ref().map_or(Ok(0.0), |z| z.get(&[at]))?;
                    let x = format.element(&b, (panel, column), p, k, width)?;
                    sum += a.get(&[i, p])? * ((x - zero) * scale);
                }
                let to = out.position(&[i, j])?;
                out.view.write_at(to, &Val::Float(round(sum, DType::Float32)))?;
            }
        }
        Ok(Val::Int(0))
    }
}
