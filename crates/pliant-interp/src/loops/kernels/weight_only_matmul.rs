//! Products of float32 by constants stored in fewer bits.

use pliant_tensor::DType;

use super::super::scalar::round;
use super::Args;
use crate::error::Result;
use crate::machine::Machine;

/// An element of the weight, before zero point and scale.
fn weight(args: &Args, (panel, column): (i64, i64), row: i64) -> Result<f64> {
    let at = |row: i64| [("panels", panel), ("weight_rows", row), ("width", column)];
    match args.call.kernel.name {
        "matmul_int8_weight" => Ok(args.read("weight", &at(row))?.int()? as f64),
        "matmul_int4_weight" => {
            let pair = args.read("weight", &at(row / 2))?.int()?;
            Ok((pair >> (4 * (row % 2)) & 15) as f64)
        }
        _ => {
            let [panel, rows, width] = at(row / 2);
            args.get("weight", &[panel, rows, width, ("pair", row % 2)])
        }
    }
}

/// Computes a product.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let size = |name: &str| args.sizes.get(name);
    let (rows, columns, inner, width) =
        (size("*rows"), size("columns"), size("inner"), size("width"));
    let scaled = args.call.kernel.attr("group").is_some();
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        m.step(inner as u64 + 1)?;
        let place = (j / width, j % width);
        let mut sum = 0.0;
        for p in 0..inner {
            let (mut zero, mut scale) = (0.0, 1.0);
            if scaled {
                let group = p / args.call.int("group");
                let at = [("panels", place.0), ("groups", group), ("width", place.1)];
                scale = args.get("scales", &at)?;
                if args.view("zeros").is_some() {
                    zero = args.get("zeros", &at)?;
                }
            }
            let x = args.get("x", &[("*rows", i), ("inner", p)])?;
            sum += x * ((weight(args, place, p)? - zero) * scale);
        }
        args.set("out", &[("*rows", i), ("columns", j)], round(sum, DType::Float32))?;
    }
    Ok(())
}
