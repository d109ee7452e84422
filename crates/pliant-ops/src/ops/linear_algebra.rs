//! Operators that compute matrix products. Each is lowered to a single reduction block, `C[.., i,
//! j] += A[.., i, k] * B[.., k, j]`, which the schedules of loop functions recognize.

pub mod einsum;

mod einsum_gradient;
mod matmul_gradients;

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::reductions::accumulator;
use crate::broadcast::{BroadcastTarget, broadcast_dims};
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_number, shared_dim, te_converted};
use crate::te::{self, Expr};
use crate::type_inference::{InferCtx, TensorTy};

const OUT_DTYPE_ATTR: &[(&str, Default)] = &[("out_dtype", Default::None)];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.matmul",
        infer_matmul,
        "Matrix product over the last two dims. Leading dims are broadcast. A vector is a matrix with one row (`x1`) or one \
        column (`x2`), and the result lacks this dim. The result has type `out_dtype`, by default that of the operands. Sums of \
        16-bit floats are accumulated in float32.",
    )
    .operands(&["x1", "x2"])
    .attrs(OUT_DTYPE_ATTR)
    .te(Pattern::OutEWiseFusable, te_matmul)
    .aliases(&["relax.dot", "relax.nn.matmul"])
    .numpy("matmul")
    .onnx(&["MatMul"])
    .errors("an operand is a scalar, the contracted dims differ, or the leading dims cannot be broadcast")
    .gradient(matmul_gradients::matmul),
    OpDecl::new(
        "relax.linear",
        infer_linear,
        "Product of `data` with the transpose of `weight`, of shape (out, in), plus an optional bias. The result has type \
        `out_dtype`, by default that of the operands.",
    )
    .operands(&["data", "weight", "bias?"])
    .attrs(OUT_DTYPE_ATTR)
    .te(Pattern::OutEWiseFusable, te_linear)
    .aliases(&["relax.nn.linear"])
    .onnx(&["Gemm"])
    .errors("`weight` does not have 2 dims, the contracted dims differ, or `bias` cannot be broadcast to the product")
    .gradient(matmul_gradients::linear),
    OpDecl::new("relax.outer", infer_outer, "Outer product of two vectors.")
        .operands(&["x1", "x2"])
        .te(Pattern::Broadcast, te_outer)
        .numpy("outer")
        .errors("an operand is not a vector")
    .gradient(matmul_gradients::outer),
];

/// The element type of the result: the one that the call requests, else the element type of the
/// operands.
fn out_dtype(ctx: &InferCtx<'_>) -> Result<Option<DType>, InferError> {
    let common = ctx.same_dtype(0, 1)?;
    require_number(ctx, 0, &ctx.tensor(0)?)?;
    Ok(ctx.dtype("out_dtype")?.or(common))
}

fn check_rank(ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
    match t.ndim {
        Some(0) => Err(ctx.error(format!(
            "{operand} must have at least 1 dim, but is a scalar",
            operand = ctx.operand_name(i)
        ))),
        _ => Ok(()),
    }
}

fn infer_matmul(ctx: &mut InferCtx<'_>) -> InferResult {
    let (a, b) = (ctx.tensor(0)?, ctx.tensor(1)?);
    check_rank(ctx, 0, &a)?;
    check_rank(ctx, 1, &b)?;
    let dtype = out_dtype(ctx)?;
    let rank = a.ndim.zip(b.ndim).map(|(m, n)| match (m, n) {
        (1, 1) => 0,
        (1, n) => n - 1,
        (m, 1) => m - 1,
        (m, n) => m.max(n),
    });
    let (Some(x), Some(y)) = (a.dims, b.dims) else {
        return Ok(ctx.tensor_type(None, rank, dtype));
    };
    let (p, q) = (x[x.len() - 1], y[y.len().saturating_sub(2)]);
    contracted_size(ctx, p, q)?;
    let batch = |d: &[Sym]| d[..d.len().saturating_sub(2)].to_vec();
    let mut dims = broadcast_dims(ctx, &batch(&x), &batch(&y), 2)?;
    if x.len() > 1 {
        dims.push(x[x.len() - 2]);
    }
    if y.len() > 1 {
        dims.push(y[y.len() - 1]);
    }
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

/// The size of the contracted dim, which both operands must share.
fn contracted_size(ctx: &mut InferCtx<'_>, p: Sym, q: Sym) -> Result<Sym, InferError> {
    shared_dim(ctx, p, q).ok_or_else(|| {
        let (left, right) = (ctx.dim_text(p), ctx.dim_text(q));
        ctx.error(format!(
            "the contracted dims differ, {left} and {right}: {types}",
            types = operand_types(ctx)
        ))
    })
}

fn te_matmul(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (out, dtype) = (ctx.out_dims(0)?, ctx.out_dtype(0)?);
    let (x, y) = (ctx.dims(0)?, ctx.dims(1)?);
    let k = contracted_size(&mut ctx.infer(), x[x.len() - 1], y[y.len().saturating_sub(2)])?;
    let batch = out.len() - usize::from(x.len() > 1) - usize::from(y.len() > 1);
    // Batch dims are broadcast. The others are assumed to be equal, which is checked at run time unless it is proved.
    let mut target = BroadcastTarget::new(&out[..batch]);
    let x_dims = if x.len() > 1 { vec![x[x.len() - 2], k] } else { vec![k] };
    let y_dims = if y.len() > 1 { vec![k, y[y.len() - 1]] } else { vec![k] };
    let (a, b) = (
        target.operand_with_fixed_dims(ctx, 0, &x_dims)?,
        target.operand_with_fixed_dims(ctx, 1, &y_dims)?,
    );
    let k = te::reduce_axis(ctx.size(k), "k");
    let acc_dtype = accumulator(dtype);
    let (row, col) = (x.len() > 1, y.len() > 1);
    let shape = ctx.size_list(&out);
    let product = te::compute_named(shape.clone(), "matmul", &axis_names(batch, row, col), |i| {
        let (lead, rest) = i.split_at(batch);
        let at = |matrix_indices: &[Expr]| [lead, matrix_indices].concat();
        let kv = k.var.expr();
        let left =
            if row { at(&[rest[0].clone(), kv.clone()]) } else { at(std::slice::from_ref(&kv)) };
        let right = if col { at(&[kv, rest[rest.len() - 1].clone()]) } else { at(&[kv]) };
        let (l, r) = (a.at(&left), b.at(&right));
        te::sum(&(te::cast(&l, acc_dtype) * te::cast(&r, acc_dtype)), std::slice::from_ref(&k))
    });
    let product = target.checked(ctx, product);
    Ok(vec![te_converted(product, dtype)])
}

/// Returns the names of the axes of a matrix product: `b0`, `b1`, ... for `batch` batch dims, then `i` if the product has a dim of
/// rows (`row`), and `j` if it has a dim of columns (`col`). With more than six batch dims, only the first six are named.
fn axis_names(batch: usize, row: bool, col: bool) -> Vec<&'static str> {
    const BATCH: [&str; 6] = ["b0", "b1", "b2", "b3", "b4", "b5"];
    let mut names: Vec<&str> = BATCH.iter().copied().take(batch).collect();
    if names.len() == batch {
        names.extend(row.then_some("i"));
        names.extend(col.then_some("j"));
    }
    names
}

fn infer_linear(ctx: &mut InferCtx<'_>) -> InferResult {
    let (x, w) = (ctx.tensor(0)?, ctx.tensor(1)?);
    check_rank(ctx, 0, &x)?;
    if w.ndim.is_some_and(|n| n != 2) {
        return Err(ctx.error(format!(
            "weight must have 2 dims, but is {ty}",
            ty = ctx.operand_type_text(1)
        )));
    }
    let dtype = out_dtype(ctx)?;
    if ctx.has_operand(2)
        && let (Some(product_dtype), Some(bias_dtype)) = (dtype, ctx.tensor(2)?.dtype)
        && product_dtype != bias_dtype
        && x.dtype != Some(bias_dtype)
    {
        return Err(ctx
            .error(format!(
                "bias is {bias_dtype}, but the product of data and weight is {product_dtype}"
            ))
            .with_help(format!("convert the bias: R.astype(bias, dtype=\"{product_dtype}\")")));
    }
    let (Some(mut dims), Some(w)) = (x.dims, w.dims) else {
        return Ok(ctx.tensor_type(None, x.ndim, dtype));
    };
    contracted_size(ctx, dims[dims.len() - 1], w[1])?;
    let last = dims.len() - 1;
    dims[last] = w[0];
    if ctx.has_operand(2)
        && let Some(bias) = ctx.tensor(2)?.dims
        && broadcast_dims(ctx, &dims, &bias, 0)?.len() > dims.len()
    {
        return Err(ctx.error(format!(
            "bias has more dims than the product of data and weight: {types}",
            types = operand_types(ctx)
        )));
    }
    Ok(ctx.tensor_type(Some(dims), None, dtype))
}

fn te_linear(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (out, dtype) = (ctx.out_dims(0)?, ctx.out_dtype(0)?);
    let (mut x, w) = (ctx.dims(0)?, ctx.dims(1)?);
    let last = x.len() - 1;
    let k = contracted_size(&mut ctx.infer(), x[last], w[1])?;
    x[last] = k;
    let (a, b) = (ctx.tensor_with_dims(0, &x)?, ctx.tensor_with_dims(1, &[w[0], k])?);
    let mut target = BroadcastTarget::new(&out);
    let bias = if ctx.has_operand(2) { Some(target.operand(ctx, 2)?) } else { None };
    let k = te::reduce_axis(ctx.size(k), "k");
    let acc_dtype = accumulator(dtype);
    let shape = ctx.size_list(&out);
    let product = te::compute(shape.clone(), "matmul", |i| {
        let (lead, j) = i.split_at(last);
        let left = [lead, &[k.var.expr()]].concat();
        let (l, r) = (a.at(&left), b.at(&[j[0].clone(), k.var.expr()]));
        te::sum(&(te::cast(&l, acc_dtype) * te::cast(&r, acc_dtype)), std::slice::from_ref(&k))
    });
    let Some(bias) = bias else { return Ok(vec![te_converted(product, dtype)]) };
    let result = te::compute(shape, "T_add", |i| {
        te::cast(&(product.at(i) + te::cast(&bias.at(i), acc_dtype)), dtype)
    });
    Ok(vec![target.checked(ctx, result)])
}

fn infer_outer(ctx: &mut InferCtx<'_>) -> InferResult {
    let (a, b) = (ctx.tensor(0)?, ctx.tensor(1)?);
    for (i, t) in [(0, &a), (1, &b)] {
        if t.ndim.is_some_and(|n| n != 1) {
            return Err(ctx.error(format!(
                "{operand} must have 1 dim, but is {ty}",
                operand = ctx.operand_name(i),
                ty = ctx.operand_type_text(i)
            )));
        }
    }
    require_number(ctx, 0, &a)?;
    let dtype = ctx.same_dtype(0, 1)?;
    let dims = a.dims.zip(b.dims).map(|(x, y)| vec![x[0], y[0]]);
    Ok(ctx.tensor_type(dims, Some(2), dtype))
}

fn te_outer(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (a, b) = (ctx.tensor(0)?, ctx.tensor(1)?);
    let shape = vec![a.shape()[0].clone(), b.shape()[0].clone()];
    Ok(vec![te::compute(shape, "T_outer", |i| a.at(&i[..1]) * b.at(&i[1..]))])
}
