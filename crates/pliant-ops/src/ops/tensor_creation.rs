//! Creation of tensors from sizes and scalars, and triangular matrices.

pub mod eye_and_hamming;

use pliant_ir::op::InferError;
use pliant_ir::relax::ExprData;
use pliant_ir::{DType, Sym};

use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::te;
use crate::type_inference::{InferCtx, Precision};

const DTYPE_ATTR: &[(&str, Default)] = &[("dtype", Default::None)];
const DIAGONAL_ATTR: &[(&str, Default)] = &[("k", Default::Int(0))];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new("relax.full", infer_full, "A tensor of the given shape, filled with a value. The default `dtype` is that of the \
        value.")
        .operands(&["shape: size", "fill_value: fill"])
        .attrs(DTYPE_ATTR)
        .te(Pattern::Injective, |ctx| te_fill(ctx, Fill::Operand))
        .numpy("full")
        .onnx(&["ConstantOfShape"])
        .errors("a size is negative, or `fill_value` is not a scalar")
    .gradient(|g| Ok(vec![None, g.wants(1).then(|| g.dy().sum_all())])),
    OpDecl::new("relax.zeros", infer_shape, "A tensor of zeros with the given shape and data type.")
        .operands(&["shape: size"])
        .attrs(&[("dtype", Default::Str("float32"))])
        .te(Pattern::Injective, |ctx| te_fill(ctx, Fill::Value(0.0)))
        .numpy("zeros")
        .errors("a size is negative")
    .zero_gradient(),
    OpDecl::new("relax.ones", infer_shape, "A tensor of ones with the given shape and data type.")
        .operands(&["shape: size"])
        .attrs(&[("dtype", Default::Str("float32"))])
        .te(Pattern::Injective, |ctx| te_fill(ctx, Fill::Value(1.0)))
        .numpy("ones")
        .errors("a size is negative")
    .zero_gradient(),
    OpDecl::new(
        "relax.full_like",
        infer_like,
        "A tensor of the shape of `x`, filled with a value. The default `dtype` is that of `x`.",
    )
    .operands(&["x", "fill_value: fill"])
    .attrs(DTYPE_ATTR)
    .te(Pattern::Injective, |ctx| te_fill(ctx, Fill::Operand))
    .numpy("full_like")
    .errors("`fill_value` is not a scalar")
    .gradient(|g| Ok(vec![None, g.wants(1).then(|| g.dy().sum_all())])),
    OpDecl::new("relax.zeros_like", infer_like, "A tensor of zeros of the shape of `x`. The default `dtype` is that of `x`.")
        .operands(&["x"])
        .attrs(DTYPE_ATTR)
        .te(Pattern::Injective, |ctx| te_fill(ctx, Fill::Value(0.0)))
        .numpy("zeros_like")
    .zero_gradient(),
    OpDecl::new("relax.ones_like", infer_like, "A tensor of ones of the shape of `x`. The default `dtype` is that of `x`.")
        .operands(&["x"])
        .attrs(DTYPE_ATTR)
        .te(Pattern::Injective, |ctx| te_fill(ctx, Fill::Value(1.0)))
        .numpy("ones_like")
    .zero_gradient(),
    OpDecl::new(
        "relax.arange",
        infer_arange,
        "Evenly spaced values from `start` (inclusive) to `end` (exclusive). A single operand is `end`, and `start` is 0. The \
        default `dtype` is int64, or float32 if an operand is a float.",
    )
    .operands(&["start: scalar", "end?: scalar", "step?: scalar"])
    .attrs(DTYPE_ATTR)
    .te(Pattern::Injective, te_arange)
    .numpy("arange")
    .onnx(&["Range"])
    .limits("symbolic steps, because the sign of the step determines the size")
    .errors("`step` is 0, or an integer `dtype` cannot represent the values")
    .zero_gradient(),
    OpDecl::new(
        "relax.tril",
        infer_triangle,
        "The lower triangle of the matrices in the last two dims. Elements above diagonal `k` become 0.",
    )
    .operands(&["x"])
    .attrs(DIAGONAL_ATTR)
    .symbolic("k")
    .te(Pattern::Injective, |ctx| te_triangle(ctx, "tril", te::le))
    .numpy("tril")
    .onnx(&["Trilu"])
    .errors("`x` has fewer than 2 dims")
    .gradient(|g| g.reapplied()),
    OpDecl::new(
        "relax.triu",
        infer_triangle,
        "The upper triangle of the matrices in the last two dims. Elements below diagonal `k` become 0.",
    )
    .operands(&["x"])
    .attrs(DIAGONAL_ATTR)
    .symbolic("k")
    .te(Pattern::Injective, |ctx| te_triangle(ctx, "triu", te::ge))
    .numpy("triu")
    .onnx(&["Trilu"])
    .errors("`x` has fewer than 2 dims")
    .gradient(|g| g.reapplied()),
];

fn infer_shape(ctx: &mut InferCtx<'_>) -> InferResult {
    let (sizes, dtype) = (ctx.result_sizes(0)?, required_dtype(ctx)?);
    Ok(ctx.tensor_type_of_sizes(0, sizes, Some(dtype)))
}

/// The attribute `dtype`. It is required, because no operand determines the element type of the result.
fn required_dtype(ctx: &InferCtx<'_>) -> Result<DType, InferError> {
    ctx.dtype("dtype")?.ok_or_else(|| {
        ctx.error("dtype is required, because no operand determines the element type")
    })
}

fn infer_full(ctx: &mut InferCtx<'_>) -> InferResult {
    let fill = scalar_operand(ctx, 1)?;
    let (sizes, dtype) = (ctx.result_sizes(0)?, ctx.dtype("dtype")?.or(fill));
    Ok(ctx.tensor_type_of_sizes(0, sizes, dtype))
}

fn infer_like(ctx: &mut InferCtx<'_>) -> InferResult {
    if ctx.args.len() > 1 {
        scalar_operand(ctx, 1)?;
    }
    let t = ctx.tensor(0)?;
    let dtype = ctx.dtype("dtype")?.or(t.dtype);
    Ok(ctx.tensor_type_like(&t, dtype))
}

/// The element type of operand `i`, which must be a scalar.
fn scalar_operand(ctx: &InferCtx<'_>, i: usize) -> Result<Option<DType>, InferError> {
    let t = ctx.tensor(i)?;
    match t.ndim {
        Some(0) => Ok(t.dtype),
        None if ctx.precision == Precision::Full => Ok(t.dtype),
        _ => Err(ctx.error(format!(
            "{operand} must be a scalar, but is {ty}",
            operand = ctx.operand_name(i),
            ty = ctx.operand_type_text(i)
        ))),
    }
}

/// The value with which a new tensor is filled.
enum Fill {
    Value(f64),
    Operand,
}

fn te_fill(ctx: &mut LegalizeCtx<'_>, fill: Fill) -> TeResult {
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let value = match fill {
        Fill::Value(v) => crate::legalize::Value::Scalar(te::const_of(v, dtype)),
        Fill::Operand => ctx.value(1)?,
    };
    Ok(vec![te::compute(shape, "T_full", |_| super::unary::convert(&value.at(&[]), dtype))])
}

// ---- arange ----

/// An operand of `arange`: a size or a float constant.
enum ArangeBound {
    Size(Sym),
    Float(f64),
}

/// The start, end and step of an `arange`, with defaults for absent operands.
fn arange_bounds(ctx: &mut InferCtx<'_>) -> Result<[ArangeBound; 3], InferError> {
    let mut bounds = Vec::new();
    for i in 0..ctx.args.len() {
        if !ctx.has_operand(i) {
            break;
        }
        if let ExprData::Float(bits, _) = *ctx.func.expr(ctx.args[i]) {
            bounds.push(ArangeBound::Float(f64::from_bits(bits)));
            continue;
        }
        let dims = ctx.sizes(i)?.dims.filter(|d| d.len() == 1);
        let bad = || {
            ctx.error(format!(
                "{operand} must be a scalar value such as R.prim_value(4)",
                operand = ctx.operand_name(i)
            ))
        };
        bounds.push(ArangeBound::Size(dims.ok_or_else(bad)?[0]));
    }
    let (zero, one) = (ctx.func.syms.int(0), ctx.func.syms.int(1));
    let mut bounds = bounds.into_iter();
    Ok(match (bounds.next(), bounds.next(), bounds.next()) {
        (Some(end), None, _) => [ArangeBound::Size(zero), end, ArangeBound::Size(one)],
        (Some(start), Some(end), None) => [start, end, ArangeBound::Size(one)],
        (Some(start), Some(end), Some(step)) => [start, end, step],
        (None, ..) => return Err(ctx.error("the operand end, the end of the range, is missing")),
    })
}

/// The number of values of an integer `arange`.
fn int_length(ctx: &mut InferCtx<'_>, start: Sym, end: Sym, step: Sym) -> Result<Sym, InferError> {
    let Some(step) = ctx.func.syms.as_int(step) else {
        return Err(ctx.error("step must be a constant, because its sign must be known"));
    };
    if step == 0 || step == i64::MIN {
        return Err(ctx.error(format!("step is {step}, but must not be 0 or -2^63")));
    }
    let syms = &mut ctx.func.syms;
    let span = if step > 0 { syms.sub(end, start) } else { syms.sub(start, end) };
    let step = syms.int(step.abs());
    let (len, zero) = (syms.ceildiv(span, step), syms.int(0));
    // A length that is provably non-negative needs no maximum with 0.
    if crate::size_proofs::at_most(ctx.func, zero, len) == Some(true) {
        return Ok(len);
    }
    Ok(ctx.func.syms.max(len, zero))
}

fn infer_arange(ctx: &mut InferCtx<'_>) -> InferResult {
    let bounds = arange_bounds(ctx)?;
    let dtype = ctx.dtype("dtype")?;
    if let [ArangeBound::Size(start), ArangeBound::Size(end), ArangeBound::Size(step)] = bounds {
        let len = int_length(ctx, start, end, step)?;
        if let Some(dtype) = dtype {
            check_values_fit(ctx, dtype, start, len, step)?;
        }
        return Ok(ctx.tensor_type(Some(vec![len]), None, Some(dtype.unwrap_or(DType::Int64))));
    }
    let [start, end, step] = float_bounds(ctx, &bounds)?;
    let len = ((end - start) / step).ceil();
    if !(len.is_finite() && len < 9e15) {
        return Err(ctx.error(format!(
            "the range from {start} to {end} with step {step} has no finite number of values"
        )));
    }
    let len = ctx.func.syms.int(len.max(0.0) as i64);
    Ok(ctx.tensor_type(Some(vec![len]), None, Some(dtype.unwrap_or(DType::Float32))))
}

/// Rejects values that are provably not representable in the data type of an `arange`.
fn check_values_fit(
    ctx: &InferCtx<'_>,
    dtype: DType,
    start: Sym,
    len: Sym,
    step: Sym,
) -> Result<(), InferError> {
    let int = |s: Sym| ctx.func.syms.as_int(s);
    let (Some(start), Some(len), Some(step)) = (int(start), int(len), int(step)) else {
        return Ok(());
    };
    let last = start.checked_add((len - 1).saturating_mul(step));
    let fits = |v: i64| dtype.has_int(v) && (dtype != DType::UInt64 || v >= 0);
    if len == 0 || dtype.is_float() || fits(start) && last.is_some_and(fits) {
        return Ok(());
    }
    let end = last.map_or("beyond 64 bits".to_string(), |v| v.to_string());
    Err(ctx.error(format!("dtype {dtype} cannot represent the values from {start} to {end}")))
}

fn float_bounds(ctx: &InferCtx<'_>, bounds: &[ArangeBound; 3]) -> Result<[f64; 3], InferError> {
    let value = |b: &ArangeBound| match b {
        ArangeBound::Float(v) => Ok(*v),
        ArangeBound::Size(s) => {
            let v = ctx.func.syms.as_int(*s).map(|v| v as f64);
            v.ok_or_else(|| {
                ctx.error("start, end and step must not mix symbolic values and floats")
            })
        }
    };
    Ok([value(&bounds[0])?, value(&bounds[1])?, value(&bounds[2])?])
}

fn te_arange(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (shape, dtype) = (ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let bounds = arange_bounds(&mut ctx.infer())?;
    if let [ArangeBound::Size(start), _, ArangeBound::Size(step)] = bounds {
        let (start, step) = (ctx.size(start), ctx.size(step));
        let len = shape[0].clone();
        let out = te::compute(shape, "T_arange", |i| te::cast(&(&i[0] * &step + &start), dtype));
        let last = &start + (len.clone() - te::int(1)) * &step;
        return Ok(vec![check_representable(ctx.decl.name, out, &len, &start, &last)]);
    }
    let [start, _, step] = float_bounds(&ctx.infer(), &bounds)?;
    let float64 = |v: f64| te::const_of(v, DType::Float64);
    Ok(vec![te::compute(shape, "T_arange", |i| {
        te::cast(&(te::cast(&i[0], DType::Float64) * float64(step) + float64(start)), dtype)
    })])
}

/// Adds a run-time check to `out`: its integer type can represent the first and the last value, if
/// there are any values.
fn check_representable(
    op: &str,
    out: te::Tensor,
    len: &te::Expr,
    first: &te::Expr,
    last: &te::Expr,
) -> te::Tensor {
    let dtype = out.dtype();
    let narrow = dtype.is_integer() && dtype.bits() < 64 || dtype == DType::UInt64;
    if !narrow || first.as_int().is_some() && last.as_int().is_some() {
        return out;
    }
    let (low, high) = dtype.int_range();
    let (low, high) = (te::int(low), te::int(high));
    let inside = |v: &te::Expr| te::and(&te::ge(v, &low), &te::le(v, &high));
    let fits = te::and(&inside(first), &inside(last));
    let cond = te::or(&te::le(len, &te::int(0)), &fits);
    let message = format!("{op}: dtype {dtype} cannot represent the values from {{0}} to {{1}}");
    let cond = te::explain(&cond, &[first.clone(), last.clone()]);
    out.with_check(te::Check { axes: Vec::new(), cond, message: message.into() })
}

// ---- triangles ----

fn infer_triangle(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    if t.ndim.is_some_and(|n| n < 2) {
        return Err(ctx.error(format!(
            "x must have at least 2 dims, but is {ty}",
            ty = ctx.operand_type_text(0)
        )));
    }
    ctx.size_attr("k", i64::MIN)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

fn te_triangle(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    keep: fn(&te::Expr, &te::Expr) -> te::Expr,
) -> TeResult {
    let (x, op) = (ctx.value(0)?, ctx.decl.name);
    let k = ctx.infer().size_attr("k", i64::MIN)?.ok_or_else(|| {
        LegalizeError::unknown(format!(
            "{op}: the diagonal k must be a constant or a symbolic size"
        ))
    })?;
    let k = ctx.size(k);
    let zero = te::int_of(0, x.dtype());
    Ok(vec![te::compute(x.shape().to_vec(), name, |i| {
        let (row, col) = (&i[i.len() - 2], &i[i.len() - 1]);
        // The diagonal can be any integer, so sums with it could overflow.
        te::select(&keep(&(col - row), &k), &x.at(i), &zero)
    })])
}
