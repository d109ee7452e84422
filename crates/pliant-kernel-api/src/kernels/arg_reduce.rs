//! The declaration of the kernel `arg_reduce`: the position of the largest or smallest element of each row.

use pliant_tensor::DType::{Float32, Int64};

use super::transpose::OTHER_DTYPES;
use crate::reference::{Args, Number, Result};
use crate::{Attr, AttrDefault, AttrType, Dims, Kernel, Operand};

/// The declaration of the kernel `arg_reduce`: argmin and argmax of rows.
pub static KERNEL: Kernel = Kernel {
    name: "arg_reduce",
    doc: "The position of the first largest or smallest element of each row (ONNX `ArgMax` and `ArgMin`), or of its first NaN. Rows \
          must not be empty.",
    operands: &[
        Operand::input("x", Float32, Dims::Fixed(&["*rows", "columns"]), "the rows")
            .or(OTHER_DTYPES)
            .strided(),
        Operand::output("out", Int64, Dims::Fixed(&["*rows"]), "the positions").strided(),
    ],
    attrs: &[Attr::new(
        "kind",
        AttrType::Choice(&["max", "min"]),
        AttrDefault::Required,
        "whether the largest or the smallest element is found",
    )],
    derived: &[],
    relations: |_, sizes| match (sizes.get("rows"), sizes.get("columns")) {
        (rows, 0) if rows > 0 => Err(format!(
            "operand 'x' has {rows} rows without elements, expected at least 1 element in each row"
        )),
        _ => Ok(()),
    },
    flops: |_, _| 0.0,
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (rows, columns) = (args.sizes.get("rows"), args.sizes.get("columns"));
    let (is_max, dtype) = (args.call.int("kind") == 0, args.view("x")?.dtype);
    for i in 0..rows {
        args.step(columns as u64)?;
        let (mut best, mut position) = (args.read_at("x", &[i, 0])?, 0);
        for j in 1..columns {
            let element = args.read_at("x", &[i, j])?;
            let (high, low) = if is_max { (element, best) } else { (best, element) };
            if !best.is_nan() && (element.is_nan() || high.compare(low, dtype).is_gt()) {
                (best, position) = (element, j);
            }
        }
        args.set_at("out", &[i], Number::Int(position))?;
    }
    Ok(())
}
