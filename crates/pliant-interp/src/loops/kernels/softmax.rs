//! Softmax.

use pliant_ir::DType;

use super::super::scalar::round;
use super::Args;
use crate::error::Result;
use crate::machine::Machine;

/// Computes the softmax of each row, or its logarithm.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let (rows, columns) = (args.sizes.get("rows"), args.sizes.get("columns"));
    let log = args.call.int("log") != 0;
    for i in 0..rows {
        m.step(3 * columns as u64 + 1)?;
        let at = |j: i64| [("*rows", i), ("columns", j)];
        let mut largest = f64::NEG_INFINITY;
        for j in 0..columns {
            largest = largest.max(args.get("x", &at(j))?);
        }
        let mut sum = 0.0;
        for j in 0..columns {
            sum += (args.get("x", &at(j))? - largest).exp();
        }
        for j in 0..columns {
            let x = args.get("x", &at(j))? - largest;
            let result = if log { x - sum.ln() } else { x.exp() / sum };
            args.set("out", &at(j), round(result, DType::Float32))?;
        }
    }
    Ok(())
}
