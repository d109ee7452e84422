//! The declaration of the kernel `resize`: nearest-neighbour and interpolating resizing of images.

use pliant_tensor::DType::{BFloat16, Float16, Float32, Int64};

use super::transpose::OTHER_DTYPES;
use crate::reference::{Args, Number, Result, indices};
use crate::{Dims, Kernel, Operand, View};

/// Maximum number of input elements from which a result is interpolated, along one axis.
pub const MAX_TAPS: i64 = 16;

/// Maximum number of columns of an image. The kernel stores offsets within an image row as 32-bit integers.
pub const MAX_COLUMNS: i64 = 1 << 30;

/// The declaration of the kernel `resize`: resizing of images.
pub static KERNEL: Kernel = Kernel {
    name: "resize",
    doc: "Resizes images (ONNX `Resize`): each result is a weighted sum of its neighbors, first along rows, then along columns. A \
          position outside the image refers to the nearest row or column. An axis without weights has one neighbor per result. \
          Channels are last; an image with channels first is passed as several images of one channel.",
    operands: &[
        Operand::input(
            "x",
            Float32,
            Dims::Fixed(&["*images", "in_rows", "in_columns", "channels"]),
            "images; with weights, the type is a float of at most 32 bits",
        )
        .or(OTHER_DTYPES),
        Operand::input(
            "row_positions",
            Int64,
            Dims::Fixed(&["row_taps", "out_rows"]),
            "the rows of the neighbors",
        ),
        Operand::input(
            "row_weights",
            Float32,
            Dims::Fixed(&["row_taps", "out_rows"]),
            "the weights of the neighbors",
        )
        .optional(),
        Operand::input(
            "column_positions",
            Int64,
            Dims::Fixed(&["column_taps", "out_columns"]),
            "the columns of the neighbors",
        ),
        Operand::input(
            "column_weights",
            Float32,
            Dims::Fixed(&["column_taps", "out_columns"]),
            "the weights of the neighbors",
        )
        .optional(),
        Operand::output(
            "out",
            Float32,
            Dims::Fixed(&["*images", "out_rows", "out_columns", "channels"]),
            "results",
        )
        .or(OTHER_DTYPES),
    ],
    attrs: &[],
    derived: &[],
    relations: |call, sizes| {
        let (x, out) = (call.operand("x"), call.operand("out"));
        let dtype = |view: Option<&View>| view.map_or(Float32, |view| view.dtype);
        if dtype(x) != dtype(out) {
            return Err(format!(
                "operand 'out' is {}, expected {}, the data type of operand 'x'",
                dtype(out),
                dtype(x)
            ));
        }
        let mut is_weighted = false;
        for [taps, weights, from, to] in [
            ["row_taps", "row_weights", "in_rows", "out_rows"],
            ["column_taps", "column_weights", "in_columns", "out_columns"],
        ] {
            let has_weights = call.operand(weights).is_some();
            is_weighted |= has_weights;
            let count = sizes.get(taps);
            if !(1..=MAX_TAPS).contains(&count) || count > 1 && !has_weights {
                let expected = match has_weights {
                    true => format!("1 to {MAX_TAPS}"),
                    false => format!("1, because operand '{weights}' is omitted"),
                };
                return Err(format!(
                    "dim '{taps}', the number of neighbors of each result, has size {count}, expected {expected}"
                ));
            }
            if sizes.get(from) == 0 && sizes.get(to) > 0 {
                let size = sizes.get(to);
                return Err(format!(
                    "dim '{to}' of operand 'out' has size {size}, expected 0, because dim '{from}' of operand 'x' has size 0"
                ));
            }
        }
        if sizes.get("in_columns") > MAX_COLUMNS {
            let columns = sizes.get("in_columns");
            return Err(format!(
                "dim 'in_columns' of operand 'x' has size {columns}, expected at most {MAX_COLUMNS}"
            ));
        }
        match dtype(x) {
            Float32 | Float16 | BFloat16 => Ok(()),
            other if is_weighted => {
                Err(format!("operand 'x' is {other}, expected a float of at most 32 bits"))
            }
            _ => Ok(()),
        }
    },
    flops: |call, sizes| {
        let size = |name: &str| sizes.get(name) as f64;
        let operations =
            |weights: &str, taps: &str| call.operand(weights).map_or(0.0, |_| 2.0 * size(taps));
        let operations =
            operations("row_weights", "row_taps") + operations("column_weights", "column_taps");
        let results = ["images", "out_rows", "out_columns", "channels"].map(size);
        results.iter().product::<f64>() * operations
    },
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let size = |name: &str| args.sizes.get(name);
    let results = ["images", "out_rows", "out_columns", "channels"].map(size);
    let (row_taps, column_taps) = (size("row_taps"), size("column_taps"));
    let (last_row, last_column) = (size("in_rows") - 1, size("in_columns") - 1);
    let is_weighted = args.has("row_weights") || args.has("column_weights");
    for [image, row, column, channel] in indices(results) {
        let mut sum = 0.0;
        for [i, j] in indices([row_taps, column_taps]) {
            args.step(1)?;
            let y = args.read_at("row_positions", &[i, row])?.int()?.clamp(0, last_row);
            let x = args.read_at("column_positions", &[j, column])?.int()?.clamp(0, last_column);
            let element = args.read_at("x", &[image, y, x, channel])?;
            if !is_weighted {
                args.set_at("out", &[image, row, column, channel], element)?;
                continue;
            }
            let weight = args.get_or("row_weights", &[i, row], 1.0)?
                * args.get_or("column_weights", &[j, column], 1.0)?;
            sum += weight * element.float()?;
        }
        if is_weighted {
            args.set_at("out", &[image, row, column, channel], Number::Float(sum))?;
        }
    }
    Ok(())
}
