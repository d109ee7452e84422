//! Products of matrices.

use pliant_ir::{AttrValue, Attrs, DType};

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::node::{Converted, Node};

pub(super) static OPS: &[OnnxOp] = &[
    op("Einsum", einsum),
    op("Gemm", gemm),
    op("MatMul", matmul),
    op("MatMulInteger", matmul_integer),
];

fn matmul(n: &mut Node<'_, '_>) -> Converted {
    let args = [n.tensor(0)?, n.tensor(1)?];
    Ok(vec![n.op("relax.matmul", &args)?.into()])
}

/// `alpha * A' * B' + beta * C`.
fn gemm(n: &mut Node<'_, '_>) -> Converted {
    let attrs = n.attrs();
    let (alpha, beta) = (attrs.float("alpha")?.unwrap_or(1.0), attrs.float("beta")?.unwrap_or(1.0));
    let flips = [attrs.int("transA")?.unwrap_or(0) != 0, attrs.int("transB")?.unwrap_or(0) != 0];
    let mut sides = [n.tensor(0)?, n.tensor(1)?];
    for (side, flip) in sides.iter_mut().zip(flips) {
        if flip {
            *side = n.permute(*side, &[1, 0])?;
        }
    }
    let mut y = n.op("relax.matmul", &sides)?;
    let dtype = n.dtype(y)?;
    if alpha != 1.0 {
        let factor = n.number(alpha, dtype)?;
        y = n.op("relax.multiply", &[y, factor])?;
    }
    if let Some(c) = n.optional(2)?
        && beta != 0.0
    {
        let c = match beta {
            1.0 => c,
            _ => {
                let factor = n.number(beta, dtype)?;
                n.op("relax.multiply", &[c, factor])?
            }
        };
        y = n.op("relax.add", &[y, c])?;
    }
    Ok(vec![y.into()])
}

fn einsum(n: &mut Node<'_, '_>) -> Converted {
    let equation = n.attrs().str("equation")?;
    let equation = equation.ok_or_else(|| Problem::invalid("attribute 'equation' is missing"))?;
    let inputs = n.tensors()?;
    let tuple = n.func().tuple(&inputs);
    let attrs = Attrs::default().with("subscripts", AttrValue::str(equation));
    Ok(vec![n.op_with("relax.einsum", &[tuple], attrs)?.into()])
}

/// 8-bit operands without their zero points, multiplied in int32.
fn matmul_integer(n: &mut Node<'_, '_>) -> Converted {
    let mut sides = Vec::with_capacity(2);
    for i in 0..2 {
        let x = n.tensor(i)?;
        let mut x = n.cast(x, DType::Int32)?;
        if let Some(zero) = n.optional(i + 2)? {
            let zero = n.cast(zero, DType::Int32)?;
            // A zero point for each row of A stands in a column.
            let zero = match (i, n.rank(zero)?) {
                (0, 1) => {
                    let attrs = Attrs::default().with("axis", AttrValue::ints([1]));
                    n.op_with("relax.expand_dims", &[zero], attrs)?
                }
                _ => zero,
            };
            x = n.op("relax.subtract", &[x, zero])?;
        }
        sides.push(x);
    }
    Ok(vec![n.op("relax.matmul", &sides)?.into()])
}
