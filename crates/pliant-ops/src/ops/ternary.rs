//! Ternary elementwise operators with NumPy broadcasting.

use pliant_ir::op::InferError;
use pliant_ir::relax::TensorShape;

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{InferResult, OpDecl, TeResult};
use crate::shared_operator_rules::{
    broadcast_of, operand_types, require_number, require_scalar, te_broadcast_of,
};
use crate::te::{self};
use crate::type_inference::{InferCtx, Precision};

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.where",
        infer_where,
        "The element of `x1` where the condition is true, else that of `x2`.",
    )
    .operands(&["condition: bool", "x1", "x2"])
    .te_broadcast(te_where)
    .numpy("where")
    .onnx(&["Where"])
    .gradient(|g| {
        let condition = g.arg(0);
        g.broadcast([&|dy| dy, &|dy| condition.select(dy, dy.constant(0.0)), &|dy| {
            condition.select(dy.constant(0.0), dy)
        }])
    }),
    OpDecl::new(
        "relax.masked_fill",
        infer_fill,
        "Replaces the elements of `x` by a scalar where the mask is true.",
    )
    .operands(&["x", "mask: bool", "value"])
    .te_broadcast(te_fill)
    .errors("`value` is not a scalar, or the shapes cannot be broadcast")
    .gradient_from_te(),
    OpDecl::new("relax.ewise_fma", infer_fma, "`x1 * x2 + x3`. Float results are rounded once.")
        .operands(&["x1", "x2", "x3"])
        .te_broadcast(te_fma)
        .gradient(|g| g.broadcast([&|dy| dy * g.arg(1), &|dy| dy * g.arg(0), &|dy| dy])),
];

fn require_bool(ctx: &InferCtx<'_>, i: usize) -> Result<(), InferError> {
    match ctx.tensor(i)?.dtype {
        None if ctx.precision == Precision::Tvm => {
            Err(ctx.error(format!("the {} must have a known data type", ctx.operand_name(i))))
        }
        Some(d) if !d.is_bool() => {
            let name = ctx.operand_name(i);
            Err(ctx.error(format!("the {name} must be a tensor of bool, but is {d}")))
        }
        _ => Ok(()),
    }
}

fn infer_where(ctx: &mut InferCtx<'_>) -> InferResult {
    require_bool(ctx, 0)?;
    let dtype = ctx.same_dtype(1, 2)?;
    let out = broadcast_of(ctx, &[0, 1, 2])?;
    Ok(ctx.tensor_type_like(&out, dtype))
}

fn te_where(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dtype = ctx.out_dtype(0)?;
    te_broadcast_of(ctx, "T_where", &[0, 1, 2], |v| {
        te::cast(&te::select(&te::cast(&v[0], te::Ty::BOOL), &v[1], &v[2]), dtype)
    })
}

fn infer_fill(ctx: &mut InferCtx<'_>) -> InferResult {
    require_bool(ctx, 1)?;
    require_scalar(ctx, 2)?;
    let dtype = ctx.same_dtype(0, 2)?;
    let out = broadcast_of(ctx, &[0, 1])?;
    Ok(ctx.tensor_type_like(&out, dtype))
}

fn te_fill(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let value = ctx.value(2)?;
    let dtype = ctx.out_dtype(0)?;
    te_broadcast_of(ctx, "T_masked_fill", &[0, 1], |v| {
        te::select(&v[1], &te::cast(&value.at(&[]), dtype), &te::cast(&v[0], dtype))
    })
}

fn infer_fma(ctx: &mut InferCtx<'_>) -> InferResult {
    require_number(ctx, 0, &ctx.tensor(0)?)?;
    let common_dtypes = [ctx.same_dtype(0, 1)?, ctx.same_dtype(0, 2)?, ctx.same_dtype(1, 2)?];
    let operands = [ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?];
    // Scalars take the type of a tensor operand if there is one.
    let dtype = match operands.iter().all(|t| t.scalar) {
        true => common_dtypes[0],
        false => ctx.joined_dtype(operands.iter().filter(|t| !t.scalar).map(|t| t.dtype)),
    };
    let mut out = broadcast_of(ctx, &[0, 1, 2])?;
    if ctx.precision == Precision::Tvm {
        let ranks: Vec<usize> = operands.iter().filter_map(|t| t.ndim).collect();
        // TVM does not broadcast these operands.
        if let Some(rank) = ranks.first()
            && ranks.iter().any(|r| r != rank)
        {
            let types = operand_types(ctx);
            return Err(ctx.error(format!("the operands must have the same rank: {types}")));
        }
        if let (TensorShape::Unknown, Some(&rank)) = (&out.shape, ranks.first()) {
            out.shape = TensorShape::Rank(rank as u32);
        }
    }
    Ok(ctx.tensor_type_like(&out, dtype))
}

fn te_fma(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let dtype = ctx.out_dtype(0)?;
    te_broadcast_of(ctx, "T_fma", &[0, 1, 2], |v| {
        let [a, b, c] = [0, 1, 2].map(|k| te::cast(&v[k], dtype));
        if dtype.is_float() { te::fma(&a, &b, &c) } else { a * b + c }
    })
}
