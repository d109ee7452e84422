//! Softmax.

use pliant_tensor::DType::Float32;

use crate::{Attr, AttrDefault, AttrType, Dims, Kernel, Operand};

const ROWS: Dims = Dims::Fixed(&["*rows", "columns"]);

/// The declaration.
pub static KERNEL: Kernel = Kernel {
    name: "softmax",
    doc: "Softmax of each row (ONNX `Softmax`): `exp(x - max(x)) / sum(exp(x - max(x)))`, or its logarithm (ONNX `LogSoftmax`): \
          `x - max(x) - log(sum(exp(x - max(x))))`. A row with NaN, or without a finite maximum, gives NaN.",
    operands: &[
        Operand::input("x", Float32, ROWS, "the rows"),
        Operand::output("out", Float32, ROWS, "the results"),
    ],
    attrs: &[Attr {
        name: "log",
        ty: AttrType::Bool,
        default: AttrDefault::Number(0),
        doc: "whether the logarithm is computed",
    }],
    derived: &[],
    relations: |_, _| Ok(()),
    // A difference, an exponential that counts as one operation, a sum and a product.
    flops: |_, sizes| 4.0 * sizes.get("rows") as f64 * sizes.get("columns") as f64,
};
