//! The operators eye, eye_like (identity matrices) and hamming_window.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use crate::legalize::LegalizeCtx;
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::te::{self};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.eye", infer_eye, "An `n x m` matrix with ones on diagonal `k` and zeros elsewhere. By default, `m` is \
    `n`.")
        .operands(&["n: size", "m?: size", "k?: size"])
        .attrs(&[("dtype", Default::Str("float32"))])
        .te(Pattern::Injective, te_eye)
        .numpy("eye")
        .errors("a size is negative"),
    OpDecl::new("relax.eye_like", infer_eye_like, "A matrix of the shape of `x` with ones on diagonal `k` and zeros elsewhere. \
        The default `dtype` is that of `x`.")
        .operands(&["x", "k?: size"])
        .attrs(&[("dtype", Default::None)])
        .te(Pattern::Injective, te_eye)
        .onnx(&["EyeLike"])
        .errors("`x` does not have 2 dims"),
    OpDecl::new(
        "relax.hamming_window",
        infer_window,
        "The Hamming window `alpha - beta * cos(2 pi i / n)` for `i` in `0 .. window_size`, where `n` is `window_size` for a \
        periodic window and `window_size - 1` otherwise.",
    )
    .operands(&["window_size: size"])
    .attrs(&[
        ("periodic", Default::Bool(true)),
        ("alpha", Default::Float(0.54)),
        ("beta", Default::Float(0.46)),
        ("dtype", Default::Str("float32")),
    ])
    .te(Pattern::Injective, te_window)
    .numpy("hamming")
    .onnx(&["HammingWindow"])
    .errors("`window_size` is negative, or `dtype` is not a float type"),
];

/// The integer value of operand `i`; `None` if it is unknown.
fn integer_operand(ctx: &InferCtx<'_>, i: usize) -> Result<Option<Sym>, InferError> {
    match ctx.sizes(i)?.dims.as_deref() {
        Some(&[one]) => Ok(Some(one)),
        None => Ok(None),
        Some(_) => Err(
            ctx.error(format!("{operand} must be a single integer", operand = ctx.operand_name(i)))
        ),
    }
}

/// The size in operand `i`; `None` if it is unknown. Rejects a provably negative size.
fn size_operand(ctx: &InferCtx<'_>, i: usize) -> Result<Option<Sym>, InferError> {
    let size = integer_operand(ctx, i)?;
    match size.and_then(|s| ctx.func.syms.as_int(s)) {
        Some(v) if v < 0 => Err(ctx.error(format!(
            "{operand} must not be negative, but is {v}",
            operand = ctx.operand_name(i)
        ))),
        _ => Ok(size),
    }
}

// ---- eye ----

fn infer_eye(ctx: &mut InferCtx<'_>) -> InferResult {
    let rows = size_operand(ctx, 0)?;
    let columns = if ctx.has_operand(1) { size_operand(ctx, 1)? } else { rows };
    if ctx.has_operand(2) {
        integer_operand(ctx, 2)?;
    }
    let dtype = ctx.dtype("dtype")?;
    Ok(ctx.tensor_type(rows.zip(columns).map(|(n, m)| vec![n, m]), Some(2), dtype))
}

fn infer_eye_like(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if t.ndim.is_some_and(|n| n != 2) {
        return Err(
            ctx.error(format!("x must have 2 dims, but is {ty}", ty = ctx.operand_type_text(0)))
        );
    }
    if ctx.has_operand(1) {
        integer_operand(ctx, 1)?;
    }
    let dtype = ctx.dtype("dtype")?.or(t.dtype);
    Ok(ctx.tensor_type_like(&t, dtype))
}

fn te_eye(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let last = ctx.decl.operands.len() - 1;
    let k = if ctx.has_operand(last) { integer_operand(&ctx.infer(), last)? } else { None };
    let k = k.map_or_else(|| te::int(0), |k| ctx.size(k));
    let (one, zero) = (te::const_of(1.0, dtype), te::const_of(0.0, dtype));
    Ok(vec![te::compute(shape, "T_eye", |i| {
        te::select(&te::eq(&i[1], &(&i[0] + &k)), &one, &zero)
    })])
}

// ---- hamming_window ----

fn infer_window(ctx: &mut InferCtx<'_>) -> InferResult {
    let n = size_operand(ctx, 0)?;
    ctx.bool("periodic")?;
    ctx.float("alpha")?;
    ctx.float("beta")?;
    let dtype = ctx.dtype("dtype")?;
    if let Some(dtype) = dtype.filter(|d| !d.is_float()) {
        return Err(ctx.error(format!("dtype must be a float type, but is {dtype}")));
    }
    Ok(ctx.tensor_type(n.map(|n| vec![n]), Some(1), dtype))
}

fn te_window(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let infer = ctx.infer();
    let (alpha, beta) = (infer.float("alpha")?, infer.float("beta")?);
    let n = if infer.bool("periodic")? { shape[0].clone() } else { &shape[0] - 1 };
    let compute_dtype = if dtype == DType::Float64 { dtype } else { DType::Float32 };
    let two_pi = te::const_of(2.0 * std::f64::consts::PI, compute_dtype);
    let (alpha, beta) = (te::const_of(alpha, compute_dtype), te::const_of(beta, compute_dtype));
    // For a window of one element, the divisor would be 0. The element is 1, the value at the centre for the default constants.
    let is_single_element = te::le(&n, &te::int(0));
    Ok(vec![te::compute(shape, "T_hamming_window", |i| {
        let at = te::cast(&i[0], compute_dtype) * &two_pi
            / te::cast(&te::maximum(&n, &te::int(1)), compute_dtype);
        let value = &alpha - &beta * te::cos(&at);
        te::cast(&te::select(&is_single_element, &te::const_of(1.0, compute_dtype), &value), dtype)
    })])
}
