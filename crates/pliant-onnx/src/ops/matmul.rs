//! Converters of matrix products: `MatMul`, `Gemm` and `Einsum`.

use pliant_ir::{AttrValue, Attrs, DType};
use pliant_ops::shared_operator_rules::wide_float;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::node::{ConvertResult, Node};

pub(super) static OPS: &[OnnxOp] = &[op("Einsum", einsum), op("Gemm", gemm), op("MatMul", matmul)];

fn matmul(n: &mut Node<'_, '_>) -> ConvertResult {
    let args = [n.tensor(0)?, n.tensor(1)?];
    Ok(vec![n.op("relax.matmul", &args)?.into()])
}

/// Converts `Gemm`: `alpha * A' * B' + beta * C`, where `A'` and `B'` are optionally transposed.
pub(super) fn gemm(n: &mut Node<'_, '_>) -> ConvertResult {
    let attrs = n.attrs();
    let (alpha, beta) = (attrs.float("alpha")?.unwrap_or(1.0), attrs.float("beta")?.unwrap_or(1.0));
    let transposes =
        [attrs.int("transA")?.unwrap_or(0) != 0, attrs.int("transB")?.unwrap_or(0) != 0];
    let mut operands = [n.tensor(0)?, n.tensor(1)?];
    for (operand, transpose) in operands.iter_mut().zip(transposes) {
        if transpose {
            *operand = n.permute(*operand, &[1, 0])?;
        }
    }
    let input_dtype = n.dtype(operands[0])?;
    // Fractional factors need a wider dtype: integers would be truncated too early, and intermediate results may overflow 16-bit
    // floats. The final result is truncated or rounded.
    let is_fractional = [alpha, beta].iter().any(|v| v.fract() != 0.0);
    let dtype = match is_fractional {
        true if input_dtype.is_integer() => DType::Float64,
        true => wide_float(input_dtype),
        false => input_dtype,
    };
    let mut y = match dtype == input_dtype || input_dtype.is_integer() {
        true => n.op("relax.matmul", &operands)?,
        false => {
            let attrs = Attrs::default().with("out_dtype", AttrValue::DType(dtype));
            n.op_with("relax.matmul", &operands, attrs)?
        }
    };
    y = n.cast(y, dtype)?;
    if alpha != 1.0 {
        let factor = n.scalar_as(alpha, dtype)?;
        y = n.op("relax.multiply", &[y, factor])?;
    }
    if let Some(c) = n.optional_tensor(2)?
        && beta != 0.0
    {
        let c = n.cast(c, dtype)?;
        let c = match beta {
            1.0 => c,
            _ => {
                let factor = n.scalar_as(beta, dtype)?;
                n.op("relax.multiply", &[c, factor])?
            }
        };
        y = n.op_unidirectional("relax.add", y, c, "C")?;
    }
    Ok(vec![n.cast(y, input_dtype)?.into()])
}

fn einsum(n: &mut Node<'_, '_>) -> ConvertResult {
    let equation = n.attrs().str("equation")?;
    let equation = equation.ok_or_else(|| Problem::attribute("attribute 'equation' is missing"))?;
    let inputs = n.tensors()?;
    let tuple = n.func().tuple(&inputs);
    let attrs = Attrs::default().with("subscripts", AttrValue::str(equation));
    Ok(vec![n.op_with("relax.einsum", &[tuple], attrs)?.into()])
}
