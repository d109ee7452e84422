//! The declaration of the kernel `transpose`: a copy between tensors of any strides.

use pliant_tensor::DType::{
    self, BFloat16, Bool, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16,
    UInt32, UInt64,
};

use crate::reference::{Args, Result};
use crate::{Dims, Kernel, Operand};

const ELEMENTS: Dims = Dims::Fixed(&["*elements"]);
/// The data types that the kernel `transpose` accepts in addition to float32.
pub(super) const OTHER_DTYPES: &[DType] =
    &[Bool, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, BFloat16, Float64];

/// The declaration of the kernel `transpose`: copies between tensors of any strides.
pub static KERNEL: Kernel = Kernel {
    name: "transpose",
    doc: "Copies elements between tensors of any strides (ONNX `Transpose`): `out[i, j, ...] = x[i, j, ...]`. Both operands have \
          the same dims and data type. To transpose a tensor, pass a view of it with permuted dims.",
    operands: &[
        Operand::input("x", Float32, ELEMENTS, "the elements").or(OTHER_DTYPES).strided(),
        Operand::output("out", Float32, ELEMENTS, "the copies").or(OTHER_DTYPES).strided(),
    ],
    attrs: &[],
    derived: &[],
    relations: |call, _| {
        let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else { return Ok(()) };
        if x.shape() != out.shape() {
            let (out, x) = (out.shape(), x.shape());
            return Err(format!(
                "operand 'out' has dims {out:?}, expected {x:?}, the dims of operand 'x'"
            ));
        }
        match x.dtype == out.dtype {
            true => Ok(()),
            false => Err(format!(
                "operand 'out' has data type {}, expected {}, the data type of operand 'x'",
                out.dtype, x.dtype
            )),
        }
    },
    flops: |_, _| 0.0,
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    for i in 0..args.sizes.get("*elements") {
        args.step(1)?;
        let element = args.read_at("x", &[i])?;
        args.set_at("out", &[i], element)?;
    }
    Ok(())
}
