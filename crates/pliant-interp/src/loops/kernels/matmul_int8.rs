//! Products of 8-bit integers.

use pliant_ir::DType;

use super::super::scalar::Val;
use super::Args;
use super::epilogue::Scales;
use crate::error::Result;
use crate::machine::Machine;

/// Computes a product.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let size = |name: &str| args.sizes.get(name);
    let (rows, columns, inner, width) =
        (size("*rows"), size("columns"), size("inner"), size("width"));
    let (x_zeros, weight_zeros) = (args.view("x_zeros"), args.view("weight_zeros"));
    let (weight, out) = (args.present("weight")?, args.present("out")?);
    let scales = Scales::of(args, "row_scales", "column_scales");
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        m.step(inner as u64 + 1)?;
        let x_zero = x_zeros.map_or(Ok(0), |zeros| zeros.integer(&[i]))?;
        let weight_zero = weight_zeros.map_or(Ok(0), |zeros| zeros.integer(&[j]))?;
        let mut sum = 0i64;
        for p in 0..inner {
            let left = args.read("x", &[("*rows", i), ("inner", p)])?.int()?.wrapping_sub(x_zero);
            let right = weight.integer(&[j / width, p / 4, j % width, p % 4])?;
            sum = sum.wrapping_add(left.wrapping_mul(right.wrapping_sub(weight_zero)));
        }
        // Sums wrap around at 32 bits.
        let value = match out.dtype {
            DType::Float32 => Val::Float(scales.value(&args.call, sum as i32, &[i], j)?),
            _ => Val::Int(i64::from(sum as i32)),
        };
        args.write("out", &[("*rows", i), ("columns", j)], &value)?;
    }
    Ok(())
}
