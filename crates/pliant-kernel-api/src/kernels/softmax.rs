//! The declaration of the kernel `softmax`: softmax of each row.

use pliant_tensor::DType::Float32;

use crate::reference::{Args, Result};
use crate::{Attr, AttrDefault, AttrType, Dims, Kernel, Operand};

const ROWS: Dims = Dims::Fixed(&["*rows", "columns"]);

/// The declaration of the kernel `softmax`: softmax of each row.
pub static KERNEL: Kernel = Kernel {
    name: "softmax",
    doc: "Softmax of each row (ONNX `Softmax`): `exp(x - max(x)) / sum(exp(x - max(x)))`, or its logarithm (ONNX `LogSoftmax`): \
          `x - max(x) - log(sum(exp(x - max(x))))`. A row with NaN, or without a finite maximum, gives NaN.",
    operands: &[
        Operand::input("x", Float32, ROWS, "the rows"),
        Operand::output("out", Float32, ROWS, "the results"),
    ],
    attrs: &[Attr::new(
        "log",
        AttrType::Bool,
        AttrDefault::Number(0),
        "whether to compute the logarithm",
    )],
    derived: &[],
    relations: |_, _| Ok(()),
    // Per element: a subtraction, an exponential (counted as one operation), an addition and a multiplication.
    flops: |_, sizes| 4.0 * sizes.get("rows") as f64 * sizes.get("columns") as f64,
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (rows, columns) = (args.sizes.get("rows"), args.sizes.get("columns"));
    let log = args.call.int("log") != 0;
    // Skips the rows if they are empty, because there may be very many.
    let rows = if columns == 0 { 0 } else { rows };
    for i in 0..rows {
        args.step(3 * columns as u64 + 1)?;
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
            args.set("out", &at(j), result)?;
        }
    }
    Ok(())
}
