//! The operators quantize and dequantize, and multinomial_from_uniform, which draws samples using
//! random numbers that are passed as an operand.

use pliant_ir::DType;
use pliant_ir::op::InferError;

use super::indexing::index_bounds::{self, Negative};
use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::{operand_types, require_float, require_integer, shared_dim};
use crate::size_proofs;
use crate::te::{self, Check, Expr};
use crate::type_inference::InferCtx;

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.quantize",
        infer_quantize,
        "`round(data / scale) + zero_point`, with ties rounded to even, saturated to the range of `out_dtype`. `scale` and \
        `zero_point` are scalars (per-tensor) or vectors along the axis (per-channel). An integer `zero_point` of the same width \
        as the result has the type of the result.",
    )
    .operands(&["data", "scale: scalar", "zero_point: scalar"])
    .attrs(&[("axis", Default::Int(-1)), ("out_dtype", Default::Str("int8"))])
    .te(Pattern::Broadcast, te_quantize)
    .onnx(&["QuantizeLinear"])
    .errors(
        "the axis is out of range, the size of a vector is not that of the axis, or `out_dtype` is not an integer type of at \
        most 32 bits",
    ),
    OpDecl::new(
        "relax.dequantize",
        infer_dequantize,
        "`(data - zero_point) * scale` in `out_dtype`. `scale` and `zero_point` are scalars (per-tensor) or vectors along the \
        axis (per-channel).",
    )
    .operands(&["data", "scale: scalar", "zero_point: scalar"])
    .attrs(&[("axis", Default::Int(-1)), ("out_dtype", Default::Str("float32"))])
    .te(Pattern::Broadcast, te_dequantize)
    .onnx(&["DequantizeLinear"])
    .errors("the axis is out of range, the size of a vector is not that of the axis, or `out_dtype` is not a float type")
    .gradient_from_te(),
    OpDecl::new(
        "relax.multinomial_from_uniform",
        infer_multinomial,
        "Samples from categorical distributions: for each sample, the first class for which the cumulative probability in row \
        `sample_indices` of `prob` exceeds the uniform random number, or else the last class. `uniform_sample` and \
        `sample_indices` have the shape (n, 1). The classes have type `dtype`.",
    )
    .operands(&["prob", "uniform_sample", "sample_indices: index"])
    .attrs(&[("dtype", Default::Str("int64"))])
    .te(Pattern::Opaque, te_multinomial)
    .errors(
        "an operand has another shape, a sample index is out of range, there are no classes, or `dtype` is not an integer type",
    ),
];

// ---- quantize, dequantize ----

/// Checks that scale and zero_point are scalars or vectors with the size of the axis.
fn check_parameters(ctx: &mut InferCtx<'_>) -> Result<(), InferError> {
    let data = ctx.tensor(0)?;
    let axis = match data.ndim {
        Some(n) if n > 0 => Some(ctx.axis("axis", n)?),
        _ => None,
    };
    for i in [1, 2] {
        let t = ctx.tensor(i)?;
        let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
        if t.ndim.is_some_and(|n| n > 1) {
            return Err(ctx.error(format!("{name} must be a scalar or a vector, but is {ty}")));
        }
        let Some(&[param_size]) = t.dims.as_deref() else { continue };
        let (Some(axis), Some(dims)) = (axis, &data.dims) else { continue };
        if ctx.func.syms.as_int(param_size) != Some(1)
            && shared_dim(ctx, param_size, dims[axis]).is_none()
        {
            let size = ctx.dim_text(dims[axis]);
            return Err(ctx.error(format!(
                "{name} must have 1 element or {size}, one for each index of axis {axis}, \
                     but is {ty}"
            )));
        }
    }
    let (scale, zero) = (ctx.tensor(1)?, ctx.tensor(2)?);
    require_float(ctx, 1, &scale)?;
    match zero.dtype {
        Some(d) if d.is_bool() => Err(ctx.error("zero_point must be a number, but is bool")),
        _ => Ok(()),
    }
}

fn infer_quantize(ctx: &mut InferCtx<'_>) -> InferResult {
    let data = ctx.tensor(0)?;
    require_float(ctx, 0, &data)?;
    check_parameters(ctx)?;
    let out = ctx.dtype("out_dtype")?.unwrap_or(DType::Int8);
    if !out.is_integer() || out.size() > 4 {
        return Err(ctx
            .error(format!("out_dtype must be an integer type of at most 32 bits, but is {out}")));
    }
    if let Some(zero) = ctx.tensor(2)?.dtype.filter(|z| z.size() == out.size() && *z != out) {
        return Err(ctx.error(format!(
            "zero_point is {zero}, but must have the data type of the result, {out}"
        )));
    }
    Ok(ctx.tensor_type_like(&data, Some(out)))
}

fn infer_dequantize(ctx: &mut InferCtx<'_>) -> InferResult {
    let data = ctx.tensor(0)?;
    require_integer(ctx, 0, &data)?;
    check_parameters(ctx)?;
    let out = ctx.dtype("out_dtype")?.unwrap_or(DType::Float32);
    if !out.is_float() {
        return Err(ctx.error(format!("out_dtype must be a float type, but is {out}")));
    }
    Ok(ctx.tensor_type_like(&data, Some(out)))
}

/// A scale or zero point: a scalar (per-tensor), or a vector along the axis (per-channel). A vector
/// of size 1 is broadcast.
struct QuantParameter {
    value: Value,
    /// The condition that the vector has size 1. `None` if this is known at compile time, or if the
    /// parameter is a scalar.
    one: Option<Expr>,
}

impl QuantParameter {
    /// Reads a scale or zero point from operand `i`. It must be a scalar or have the size of the dim `axis`; if this cannot be
    /// proved, a run-time check is added to `checks`.
    fn read(
        ctx: &mut LegalizeCtx<'_>,
        i: usize,
        axis: usize,
        checks: &mut Vec<Check>,
    ) -> Result<QuantParameter, LegalizeError> {
        let (data, param_dims) = (ctx.dims(0)?, ctx.dims(i)?);
        let [size] = &param_dims[..] else {
            return Ok(QuantParameter { value: ctx.value(i)?, one: None });
        };
        let one = ctx.func.syms.int(1);
        if *size == one {
            return Ok(QuantParameter { value: ctx.value(i)?, one: None });
        }
        let along = data.get(axis).copied().unwrap_or(one);
        if size_proofs::equal(ctx.func, *size, along) == Some(true) {
            return Ok(QuantParameter { value: ctx.value_with_dims(i, &[along])?, one: None });
        }
        let (size, along) = (ctx.size(*size), ctx.size(along));
        let one = te::eq(&size, &te::int(1));
        let cond = te::or(&one, &te::eq(&size, &along));
        let infer = ctx.infer();
        let (name, ty) = (infer.operand_name(i), infer.operand_type_text(i));
        let message =
            infer.error(format!("{name} must have 1 element or {along} elements, but is {ty}"));
        checks.push(Check { axes: Vec::new(), cond, message: message.message.into() });
        Ok(QuantParameter { value: ctx.value(i)?, one: Some(one) })
    }

    /// The element of this quantization parameter (a scale or a zero point) that applies to the data element at the indices `i`. A
    /// per-channel parameter is read at the index along `axis`.
    fn at(&self, i: &[Expr], axis: usize) -> Expr {
        let along = || i.get(axis).cloned().unwrap_or_else(|| te::int(0));
        match (self.value.shape(), &self.one) {
            ([], _) => self.value.at(&[]),
            ([one], _) if one.as_int() == Some(1) => self.value.at(&[te::int(0)]),
            (_, None) => self.value.at(&[along()]),
            (_, Some(one)) => self.value.at(&[te::select(one, &te::int(0), &along())]),
        }
    }
}

/// The data, the scale and zero point, and the run-time checks of their sizes.
struct QuantizeOperands {
    x: Value,
    scale: QuantParameter,
    zero: QuantParameter,
    axis: usize,
    checks: Vec<Check>,
}

impl QuantizeOperands {
    fn read(ctx: &mut LegalizeCtx<'_>) -> Result<QuantizeOperands, LegalizeError> {
        let axis = quantized_axis(ctx)?;
        let mut checks = Vec::new();
        let scale = QuantParameter::read(ctx, 1, axis, &mut checks)?;
        let zero = QuantParameter::read(ctx, 2, axis, &mut checks)?;
        Ok(QuantizeOperands { x: ctx.value(0)?, scale, zero, axis, checks })
    }

    /// Creates the stage that computes `f(x, scale, zero_point)` for each element of the data.
    fn stage(self, name: &str, f: impl Fn(Expr, Expr, Expr) -> Expr) -> Vec<te::Tensor> {
        let QuantizeOperands { x, scale, zero, axis, checks } = self;
        let out = te::compute(x.shape().to_vec(), name, |i| {
            f(x.at(i), scale.at(i, axis), zero.at(i, axis))
        });
        vec![checks.into_iter().fold(out, |out, check| out.with_check(check))]
    }
}

fn quantized_axis(ctx: &mut LegalizeCtx<'_>) -> Result<usize, LegalizeError> {
    let n = ctx.dims(0)?.len();
    Ok(if n == 0 { 0 } else { ctx.infer().axis("axis", n)? })
}

fn te_quantize(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let out = ctx.out_dtype(0)?;
    let operands = QuantizeOperands::read(ctx)?;
    // Float32 cannot represent all 32-bit integers.
    let acc_dtype = if out.size() == 4 || operands.x.dtype() == DType::Float64 {
        DType::Float64
    } else {
        DType::Float32
    };
    Ok(operands.stage("T_quantize", |x, scale, zero| {
        let steps = te::round(&(te::cast(&x, acc_dtype) / te::cast(&scale, acc_dtype)));
        // Casts to integers saturate.
        te::cast(&(steps + te::cast(&zero, acc_dtype)), out)
    }))
}

fn te_dequantize(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let out = ctx.out_dtype(0)?;
    let operands = QuantizeOperands::read(ctx)?;
    let acc_dtype = if out == DType::Float64 { DType::Float64 } else { DType::Float32 };
    // The difference of two 32-bit integers can exceed 32 bits.
    let fits_int32 = operands.x.dtype().size() < 4 && operands.zero.value.dtype().size() < 4;
    let integer = te::Ty::scalar(if fits_int32 { DType::Int32 } else { DType::Int64 });
    Ok(operands.stage("T_dequantize", |x, scale, zero| {
        let steps = match zero.ty().dtype.is_float() {
            true => te::cast(&x, acc_dtype) - te::cast(&zero, acc_dtype),
            false => te::cast(&(te::cast(&x, integer) - te::cast(&zero, integer)), acc_dtype),
        };
        te::cast(&(steps * te::cast(&scale, acc_dtype)), out)
    }))
}
// ---- multinomial_from_uniform ----

fn infer_multinomial(ctx: &mut InferCtx<'_>) -> InferResult {
    let (prob, uniform, rows) = (ctx.tensor(0)?, ctx.tensor(1)?, ctx.tensor(2)?);
    require_float(ctx, 0, &prob)?;
    require_float(ctx, 1, &uniform)?;
    require_integer(ctx, 2, &rows)?;
    for i in 0..3 {
        if ctx.tensor(i)?.ndim.is_some_and(|n| n != 2) {
            let (name, ty) = (ctx.operand_name(i), ctx.operand_type_text(i));
            return Err(ctx.error(format!("{name} must have 2 dims, but is {ty}")));
        }
    }
    if let (Some(u), Some(r)) = (&uniform.dims, &rows.dims) {
        let one = ctx.func.syms.int(1);
        let fits = shared_dim(ctx, u[0], r[0]).is_some()
            && shared_dim(ctx, u[1], one).is_some()
            && shared_dim(ctx, r[1], one).is_some();
        if !fits {
            return Err(ctx.error(format!(
                "uniform_sample and sample_indices must both have the shape (n, 1): {types}",
                types = operand_types(ctx)
            )));
        }
    }
    let dtype = ctx.dtype("dtype")?.unwrap_or(DType::Int64);
    if !dtype.is_integer() {
        return Err(ctx.error(format!("dtype must be an integer type, but is {dtype}")));
    }
    Ok(ctx.tensor_type_like(&uniform, Some(dtype)))
}

fn te_multinomial(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (uniform_dims, shape, dtype) = (ctx.dims(1)?, ctx.out_shape(0)?, ctx.out_dtype(0)?);
    let (prob, uniform) = (ctx.tensor(0)?, ctx.tensor(1)?);
    let rows = ctx.tensor_with_dims(2, &uniform_dims)?;
    let (op, trust_indices) = (ctx.decl.name, ctx.trust_indices);
    let acc_dtype = super::reductions::accumulator(prob.dtype());
    let classes = prob.shape()[1].clone();
    Ok(te::extern_("multinomial", &[(shape.clone(), dtype)], |b, out| {
        if classes.as_int().is_none_or(|n| n < 1) {
            let some = te::gt(&classes, &te::int(0));
            let none = te::eq(&shape[0], &te::int(0));
            b.assert(&te::or(&some, &none), format!("{op}: prob has no classes to draw from"));
        }
        b.for_each(&shape, |b, i| {
            let row = index_bounds::emit_checked_index(
                b,
                op,
                trust_indices,
                (0, &rows.at(i), &prob.shape()[0]),
                Negative::FromEnd,
            );
            let limit = b.let_("limit", &te::cast(&uniform.at(i), acc_dtype));
            let total = b.cell("total", &te::const_of(0.0, acc_dtype));
            let class = b.cell("class", &(&classes - 1));
            let is_open = b.cell("open", &te::bool_const(true));
            b.for_("v", &classes, |b, v| {
                b.set(
                    &total,
                    &(total.get() + te::cast(&prob.at(&[row.clone(), v.clone()]), acc_dtype)),
                );
                let is_chosen = te::and(&is_open.get(), &te::gt(&total.get(), &limit));
                b.if_(&is_chosen, |b| {
                    b.set(&class, v);
                    b.set(&is_open, &te::bool_const(false));
                });
            });
            b.store(&out[0], i, &class.get());
        });
    }))
}
