//! Products of float matrices.

use super::super::scalar::{Val, round};
use super::Args;
use crate::error::Result;
use crate::machine::Machine;

/// The product of a call.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let batch = args.sizes.find("batch");
    let [rows, columns, inner] = ["rows", "columns", "inner"].map(|name| args.sizes.get(name));
    let width = args.sizes.find("width");
    let accumulates = args.call.int("accumulate") != 0;
    let dtype = args.present("out")?.dtype;
    for i in 0..batch.unwrap_or(1) {
        for row in 0..rows {
            for column in 0..columns {
                m.step(inner.max(0) as u64 + 1)?;
                let here = [("batch", i), ("rows", row), ("columns", column)];
                let out = &here[usize::from(batch.is_none())..];
                let mut sum = if accumulates { args.get("out", out)? } else { 0.0 };
                for p in 0..inner {
                    let x = [("batch", i), ("rows", row), ("inner", p)];
                    let x = args.get("x", &x[usize::from(batch.is_none())..])?;
                    let weight = match width {
                        Some(width) => {
                            let (panel, within) = (column / width, column % width);
                            args.get(
                                "weight",
                                &[("panels", panel), ("inner", p), ("width", within)],
                            )
                        }
                        None => {
                            args.get("weight", &[("batch", i), ("inner", p), ("columns", column)])
                        }
                    };
                    sum += x * weight?;
                }
                args.write("out", out, &Val::Float(round(sum, dtype)))?;
            }
        }
    }
    Ok(())
}
