//! Type rules and lowering rules that several operators share.

use pliant_ir::op::InferError;
use pliant_ir::relax::TensorShape;
use pliant_ir::{DType, Sym};

use crate::broadcast::{BroadcastOperand, BroadcastTarget, broadcast_dims};
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{InferResult, TeResult};
use crate::size_proofs;
use crate::te;
use crate::type_inference::{InferCtx, TensorTy};

/// The types of the operands as text, for errors that concern several operands.
pub fn operand_types(ctx: &InferCtx<'_>) -> String {
    let one = |i: usize| {
        format!("{operand} is {ty}", operand = ctx.operand_name(i), ty = ctx.operand_type_text(i))
    };
    (0..ctx.args.len()).map(one).collect::<Vec<_>>().join(", ")
}

/// The broadcast shape of the operands with the indices `operands`. The result has no element type.
///
/// # Errors
/// If the shapes provably do not broadcast. The error names the dims.
pub fn broadcast_of(ctx: &mut InferCtx<'_>, operands: &[usize]) -> Result<TensorTy, InferError> {
    let mut out = ctx.tensor(operands[0])?;
    for &i in &operands[1..] {
        let next = ctx.tensor(i)?;
        out = broadcast_two(ctx, out, next)?;
    }
    Ok(TensorTy { dtype: None, ..out })
}

fn broadcast_two(ctx: &mut InferCtx<'_>, a: TensorTy, b: TensorTy) -> Result<TensorTy, InferError> {
    Ok(match (&a.dims, &b.dims) {
        (Some(x), Some(y)) => {
            let dims = broadcast_dims(ctx, x, y, 0)?;
            TensorTy {
                shape: TensorShape::Dims(dims.clone().into()),
                ndim: Some(dims.len()),
                dims: Some(dims),
                dtype: None,
                scalar: a.scalar && b.scalar,
            }
        }
        // A scalar does not change the shape of the other operand, even if that shape is unknown.
        (Some(x), None) if x.is_empty() => b,
        (None, Some(y)) if y.is_empty() => a,
        _ if a.shape == b.shape && matches!(a.shape, TensorShape::Var(_)) => a,
        _ => {
            let ndim = a.ndim.zip(b.ndim).map(|(x, y)| x.max(y));
            let shape = ndim.map_or(TensorShape::Unknown, |n| TensorShape::Rank(n as u32));
            TensorTy { shape, dims: None, ndim, dtype: None, scalar: false }
        }
    })
}

/// The broadcast shape and the common element type of operands 0 and 1.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ.
pub fn broadcast(ctx: &mut InferCtx<'_>) -> Result<(TensorTy, Option<DType>), InferError> {
    let out = broadcast_of(ctx, &[0, 1])?;
    let dtype = ctx.same_dtype(0, 1)?;
    Ok((out, dtype))
}

/// The type rule of a broadcasting operator whose result has the element type of the operands.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ.
pub fn infer_broadcast(ctx: &mut InferCtx<'_>) -> InferResult {
    let (out, dtype) = broadcast(ctx)?;
    Ok(ctx.tensor_type_like(&out, dtype))
}

/// The type rule of a broadcasting operator that is defined on floats only.
///
/// # Errors
/// If an operand is not a tensor of floats, the shapes do not broadcast or the element types differ.
pub fn infer_broadcast_float(ctx: &mut InferCtx<'_>) -> InferResult {
    let (a, b) = (ctx.tensor(0)?, ctx.tensor(1)?);
    // A scalar adopts the type of the tensor, so its own type is not checked.
    if !a.scalar {
        require_float(ctx, 0, &a)?;
    }
    if !b.scalar || a.scalar {
        require_float(ctx, 1, &b)?;
    }
    infer_broadcast(ctx)
}

/// The type rule of a broadcasting operator whose result is bool.
///
/// # Errors
/// If the shapes do not broadcast or the element types differ.
pub fn infer_compare(ctx: &mut InferCtx<'_>) -> InferResult {
    let (out, _) = broadcast(ctx)?;
    Ok(ctx.tensor_type_like(&out, Some(DType::Bool)))
}

/// The type rule of an elementwise operator with one operand.
///
/// # Errors
/// If the operand is not a tensor.
pub fn infer_unary(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

/// The type rule of an elementwise operator that is defined on floats only.
///
/// # Errors
/// If the operand is not a tensor of floats.
pub fn infer_unary_float(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

/// Checks that operand `i` has a float type, if its type is known.
///
/// # Errors
/// If the type is known and is not a float type.
pub fn require_float(ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
    match t.dtype {
        Some(d) if !d.is_float() => Err(ctx
            .error(format!(
                "{operand} must be a tensor of floats, but is {d}",
                operand = ctx.operand_name(i)
            ))
            .with_help(format!(
                "convert the operand: R.astype({}, dtype=\"float32\")",
                ctx.operand_name(i)
            ))),
        _ => Ok(()),
    }
}

/// Checks that operand `i` is a tensor of numbers, if its type is known.
///
/// # Errors
/// If the operand is a tensor of bools.
pub fn require_number(ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
    match t.dtype {
        Some(d) if d.is_bool() && !t.scalar => Err(ctx
            .error(format!(
                "{operand} must be a tensor of numbers, but is bool",
                operand = ctx.operand_name(i)
            ))
            .with_help(format!(
                "convert the operand: R.astype({}, dtype=\"int64\")",
                ctx.operand_name(i)
            ))),
        _ => Ok(()),
    }
}

/// The type rule of a broadcasting operator that is defined on numbers only.
///
/// # Errors
/// If an operand is a tensor of bools, the shapes do not broadcast or the element types differ.
pub fn infer_arithmetic(ctx: &mut InferCtx<'_>) -> InferResult {
    for i in [0, 1] {
        require_number(ctx, i, &ctx.tensor(i)?)?;
    }
    infer_broadcast(ctx)
}

/// The type rule of an elementwise operator that is defined on numbers only.
///
/// # Errors
/// If the operand is not a tensor of numbers.
pub fn infer_unary_number(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_number(ctx, 0, &t)?;
    Ok(ctx.tensor_type_like(&t, t.dtype))
}

/// Checks that operand `i` has an integer type, if its type is known.
///
/// # Errors
/// If the type is known and is not an integer type.
pub fn require_integer(ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
    match t.dtype {
        Some(d) if !d.is_integer() => Err(ctx.error(format!(
            "{operand} must be a tensor of integers, but is {d}",
            operand = ctx.operand_name(i)
        ))),
        _ => Ok(()),
    }
}

/// Checks that operand `i` has an integer type or bool, if its type is known.
///
/// # Errors
/// If the operand has a float type.
pub fn require_bits(ctx: &InferCtx<'_>, i: usize, t: &TensorTy) -> Result<(), InferError> {
    match t.dtype {
        Some(d) if d.is_float() => Err(ctx.error(format!(
            "{operand} must be a tensor of integers or bools, but is {d}",
            operand = ctx.operand_name(i)
        ))),
        _ => Ok(()),
    }
}

/// Checks that operand `i` is a scalar: a scalar value or a tensor of rank 0.
///
/// # Errors
/// If the operand has dims.
pub fn require_scalar(ctx: &InferCtx<'_>, i: usize) -> Result<(), InferError> {
    match ctx.tensor(i)?.ndim {
        Some(0) | None => Ok(()),
        Some(_) => Err(ctx.error(format!(
            "{operand} must be a scalar, but is {ty}",
            operand = ctx.operand_name(i),
            ty = ctx.operand_type_text(i)
        ))),
    }
}

// ---- tensor expressions ----

/// Lowers a broadcasting operator with the operands at the indices `operands`. `f` computes an
/// element of the result from one element of each of them.
///
/// # Errors
/// If a shape or an element type is not known.
pub fn te_broadcast_of(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    operands: &[usize],
    f: impl Fn(&[te::Expr]) -> te::Expr,
) -> TeResult {
    let out = ctx.out_dims(0)?;
    let mut target = BroadcastTarget::new(&out);
    let values: Vec<BroadcastOperand> =
        operands.iter().map(|&i| target.operand(ctx, i)).collect::<Result<_, _>>()?;
    let shape = ctx.size_list(&out);
    let result = te::compute(shape, name, |i| {
        let elements: Vec<te::Expr> = values.iter().map(|v| v.at(i)).collect();
        f(&elements)
    });
    Ok(vec![target.checked(ctx, result)])
}

/// Lowers a broadcasting operator of two operands. `f` computes an element of the result from one element of each operand.
///
/// # Errors
/// If a shape or an element type is not known.
pub fn te_broadcast(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    f: impl Fn(&te::Expr, &te::Expr) -> te::Expr,
) -> TeResult {
    te_broadcast_of(ctx, name, &[0, 1], |v| f(&v[0], &v[1]))
}

/// Lowers an elementwise operator of one operand. `f` computes an element of the result from the element of the operand.
///
/// # Errors
/// If the shape or the element type is not known.
pub fn te_unary(
    ctx: &mut LegalizeCtx<'_>,
    name: &str,
    f: impl Fn(&te::Expr) -> te::Expr,
) -> TeResult {
    let x = ctx.value(0)?;
    let shape = x.shape().to_vec();
    Ok(vec![te::compute_named(shape, name, &["i0", "i1", "i2", "i3", "i4", "i5"], |i| f(&x.at(i)))])
}

/// Lowers an elementwise operator of one operand. `f` computes an element of the result from the element of the operand, by a
/// formula of several float operations. For 16-bit floats, the formula is computed in float32 and rounded once.
///
/// # Errors
/// The same errors as [`te_unary`].
pub fn te_unary_steps(ctx: &mut LegalizeCtx<'_>, f: impl Fn(&te::Expr) -> te::Expr) -> TeResult {
    te_unary(ctx, "compute", |x| {
        let dtype = x.ty().dtype;
        te::cast(&f(&te::cast(x, wide_float(dtype))), dtype)
    })
}

/// The type in which formulas of several operations on `dtype` are computed: float32 for 16-bit floats, otherwise `dtype`.
pub fn wide_float(dtype: DType) -> DType {
    if dtype.is_half() { DType::Float32 } else { dtype }
}

/// The common size of two dims that must be equal, or `None` if they provably differ. If equality cannot be proved, the loop
/// function checks it at run time. Returns the constant if one of the two is constant, else `a`.
pub fn shared_dim(ctx: &mut InferCtx<'_>, a: Sym, b: Sym) -> Option<Sym> {
    let (ca, cb) = (ctx.func.syms.as_int(a), ctx.func.syms.as_int(b));
    match size_proofs::equal(ctx.func, a, b) {
        Some(false) => None,
        _ => Some(if ca.is_none() && cb.is_some() { b } else { a }),
    }
}

/// The product of the dims, which is the number of elements of a tensor.
pub fn numel(ctx: &mut InferCtx<'_>, dims: &[Sym]) -> Sym {
    ctx.func.syms.product(dims.iter().copied())
}

/// The tensor converted to `dtype`, unless it already has that type. Used for sums of 16-bit
/// floats, which are accumulated in float32.
pub fn te_converted(t: te::Tensor, dtype: DType) -> te::Tensor {
    if t.dtype() == dtype {
        return t;
    }
    te::compute(t.shape().to_vec(), "T_cast", |i| te::cast(&t.at(i), dtype))
}

/// A condition on sizes that could not be proved, and is therefore checked by the loop function at
/// run time.
#[derive(Clone, Debug)]
pub struct SizeCheck {
    /// The condition, a predicate over symbolic sizes.
    pub cond: Sym,
    /// The error message, in which `{0}`, `{1}`, ... stand for the values.
    pub message: String,
    /// The symbolic sizes whose values the message shows.
    pub values: Vec<Sym>,
}

/// Requires that `size` is a multiple of `by`. A requirement that cannot be proved is returned and must be checked at run time
/// ([`LegalizeCtx::size_check`]).
///
/// # Errors
/// If `size` provably is not a multiple of `by`.
pub fn require_divisible(
    ctx: &mut InferCtx<'_>,
    size: Sym,
    by: Sym,
    what: &str,
    by_what: &str,
) -> Result<Option<SizeCheck>, InferError> {
    let (text, by_text) = (ctx.dim_text(size), ctx.dim_text(by));
    let message = |text: &str, by_text: &str| {
        format!("{what}, {text}, must be a multiple of {by_what}, {by_text}")
    };
    let zero = ctx.func.syms.int(0);
    if size == by || size == zero {
        return Ok(None);
    }
    let proof = if by == zero {
        size_proofs::equal(ctx.func, size, zero)
    } else {
        size_proofs::divides(ctx.func, by, size)
    };
    match proof {
        Some(true) => Ok(None),
        Some(false) => Err(ctx.error(message(&text, &by_text))),
        None => {
            // Only 0 is a multiple of 0. The condition avoids a division by 0.
            let syms = &mut ctx.func.syms;
            let one = syms.int(1);
            let divisor = if syms.as_int(by).is_some() { by } else { syms.max(by, one) };
            let divisor = if divisor == zero { one } else { divisor };
            let rest = syms.floormod(size, divisor);
            let (whole, some, none) = (syms.eq(rest, zero), syms.lt(zero, by), syms.eq(size, zero));
            let possible = syms.or(some, none);
            let cond = syms.and(whole, possible);
            let mut values = Vec::new();
            let mut value_text = |size: Sym, text: &str| match ctx.func.syms.as_int(size) {
                Some(_) => text.to_string(),
                None => {
                    values.push(size);
                    format!("{text} = {{{}}}", values.len() - 1)
                }
            };
            let (text, by_text) = (value_text(size, &text), value_text(by, &by_text));
            let message = format!("{}: {}", ctx.op(), message(&text, &by_text));
            Ok(Some(SizeCheck { cond, message, values }))
        }
    }
}
