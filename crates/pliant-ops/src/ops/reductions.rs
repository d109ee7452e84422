//! Operators that reduce a tensor over axes, such as sum, mean, variance and argmax.

pub mod cumulative;

pub(super) mod reduction_gradients;

use pliant_ir::op::DimTrait;
use pliant_ir::{AttrValue, DType};
use pliant_kernel_api::kernels::arg_reduce;

use crate::legalize::{LegalizeCtx, LegalizeError, Value};
use crate::op_declaration::{Default, InferResult, OpDecl, Pattern, TeResult};
use crate::shared_operator_rules::require_float;
use crate::te::{self, Expr, IterVar, Reducer, Tensor, TensorView};
use crate::type_inference::InferCtx;

const ATTRS: &[(&str, Default)] = &[("axis", Default::None), ("keepdims", Default::Bool(false))];

macro_rules! reduction_op {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl {
            lists: &[("axis", 1)],
            pattern: Pattern::CommReduce,
            ..single_axis_op!($name, $infer, $te, $doc)
        }
    };
}

macro_rules! single_axis_op {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.", $name), $infer, $doc)
            .operands(&["x"])
            .attrs(ATTRS)
            .dims(DimTrait::Reduced)
            .te(Pattern::Opaque, $te)
            .errors("an axis is out of range or occurs twice")
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    reduction_op!("sum", infer_total, sum, "The sum over axes, by default all. Bools are summed as int64, and other types are \
        kept. 16-bit floats are accumulated in float32.")
        .numpy("sum")
        .onnx(&["ReduceSum"])
    .gradient(reduction_gradients::sum),
    reduction_op!("prod", infer_total, prod, "The product over axes, by default all. Bools are multiplied as int64, and other \
        types are kept. 16-bit floats are accumulated in float32.")
        .numpy("prod")
        .onnx(&["ReduceProd"])
    .gradient(reduction_gradients::prod),
    reduction_op!("max", infer, max, "The maximum over axes, by default all; NaN if any element is NaN.")
        .numpy("max")
        .onnx(&["ReduceMax"])
    .gradient(reduction_gradients::extreme),
    reduction_op!("min", infer, min, "The minimum over axes, by default all; NaN if any element is NaN.")
        .numpy("min")
        .onnx(&["ReduceMin"])
    .gradient(reduction_gradients::extreme),
    reduction_op!("mean", infer_float, mean, "The mean over axes, by default all. 16-bit floats are accumulated in float32.")
        .numpy("mean")
        .onnx(&["ReduceMean"])
    .gradient(reduction_gradients::mean),
    reduction_op!("variance", infer_float, variance, "The population variance over axes, by default all: the mean of the squared \
        differences to the mean.")
        .numpy("var")
    .gradient(reduction_gradients::variance),
    reduction_op!("std", infer_float, std, "The population standard deviation over axes, by default all.").numpy("std")
    .gradient(reduction_gradients::std),
    single_axis_op!(
        "argmax",
        infer_arg,
        argmax,
        "The index of the first maximum, or of the first NaN if there is one. Without an axis, the index is that in the \
        flattened tensor."
    )
    .numpy("argmax")
    .onnx(&["ArgMax"])
    .errors("the axis is out of range, or the reduction is over no elements"),
    single_axis_op!(
        "argmin",
        infer_arg,
        argmin,
        "The index of the first minimum, or of the first NaN if there is one. Without an axis, the index is that in the \
        flattened tensor."
    )
    .numpy("argmin")
    .onnx(&["ArgMin"])
    .errors("the axis is out of range, or the reduction is over no elements"),
];

// ---- types ----

fn infer(ctx: &mut InferCtx<'_>) -> InferResult {
    let dtype = ctx.tensor(0)?.dtype;
    infer_reduced(ctx, dtype)
}

/// The type rule of sums and products of elements. The element type is int64 for bool, as in NumPy,
/// else the type of the operand.
fn infer_total(ctx: &mut InferCtx<'_>) -> InferResult {
    let dtype = ctx.tensor(0)?.dtype;
    infer_reduced(ctx, dtype.map(|d| if d.is_bool() { DType::Int64 } else { d }))
}

fn infer_float(ctx: &mut InferCtx<'_>) -> InferResult {
    let t = ctx.tensor(0)?;
    require_float(ctx, 0, &t)?;
    infer_reduced(ctx, t.dtype)
}

fn infer_arg(ctx: &mut InferCtx<'_>) -> InferResult {
    if !matches!(ctx.attr("axis"), AttrValue::None | AttrValue::Int(_)) {
        return Err(ctx.error("axis must be one integer or None"));
    }
    infer_reduced(ctx, Some(DType::Int64))
}

/// Infers the type of the tensor that results from reducing operand 0 over the axes in the attributes. `dtype` is its element type.
fn infer_reduced(ctx: &mut InferCtx<'_>, dtype: Option<DType>) -> InferResult {
    let t = ctx.tensor(0)?;
    let keepdims = ctx.bool("keepdims")?;
    let Some(ndim) = t.ndim else {
        let all = ctx.attr("axis").is_none() && !keepdims;
        // A reduction over all axes has a known shape even if the shape of the tensor is unknown.
        return Ok(ctx.tensor_type(all.then(Vec::new), None, dtype));
    };
    let axes = ctx.axes("axis", ndim)?.unwrap_or_else(|| (0..ndim).collect());
    let one = ctx.func.syms.int(1);
    let keep = |i: usize| !axes.contains(&i);
    let dims = t.dims.map(|dims| {
        let dims = dims.iter().enumerate();
        match keepdims {
            true => dims.map(|(i, &d)| if keep(i) { d } else { one }).collect::<Vec<_>>(),
            false => dims.filter(|(i, _)| keep(*i)).map(|(_, &d)| d).collect(),
        }
    });
    let rank = if keepdims { ndim } else { ndim - axes.len() };
    // A reduction over all axes has a known shape.
    let dims = if axes.len() == ndim { Some(vec![one; rank]) } else { dims };
    Ok(ctx.tensor_type(dims, Some(rank), dtype))
}

// ---- lowering ----

/// A reduction: its axes, and the mapping between output and input indices.
pub struct ReductionAxes {
    shape: Vec<Expr>,
    reduce: Vec<usize>,
    keepdims: bool,
}

impl ReductionAxes {
    /// Reads the axes to reduce from the attributes of the call, for a tensor with the given shape.
    ///
    /// # Errors
    /// If an axis is out of range.
    pub fn from_attrs(
        ctx: &mut LegalizeCtx<'_>,
        shape: &[Expr],
    ) -> Result<ReductionAxes, LegalizeError> {
        let infer = ctx.infer();
        let reduce = infer.axes("axis", shape.len())?.unwrap_or_else(|| (0..shape.len()).collect());
        let keepdims = infer.bool("keepdims")?;
        Ok(ReductionAxes { shape: shape.to_vec(), reduce, keepdims })
    }

    /// A reduction over the given axes. With `keepdims`, they remain as dims of size 1.
    pub fn new(shape: &[Expr], reduce: Vec<usize>, keepdims: bool) -> ReductionAxes {
        ReductionAxes { shape: shape.to_vec(), reduce, keepdims }
    }

    /// The number of input elements per output element.
    pub fn count(&self) -> Expr {
        self.reduce.iter().fold(te::int(1), |acc, &i| acc * &self.shape[i])
    }

    /// The dims of the reduced tensor.
    pub fn out_shape(&self) -> Vec<Expr> {
        let dims = self.shape.iter().enumerate();
        match self.keepdims {
            true => dims
                .map(|(i, d)| if self.reduce.contains(&i) { te::int(1) } else { d.clone() })
                .collect(),
            false => {
                dims.filter(|(i, _)| !self.reduce.contains(i)).map(|(_, d)| d.clone()).collect()
            }
        }
    }

    /// The indices of the output element to which an input element contributes.
    pub fn out_indices(&self, indices: &[Expr]) -> Vec<Expr> {
        let all = indices.iter().enumerate();
        match self.keepdims {
            true => all
                .map(|(i, e)| if self.reduce.contains(&i) { te::int(0) } else { e.clone() })
                .collect(),
            false => {
                all.filter(|(i, _)| !self.reduce.contains(i)).map(|(_, e)| e.clone()).collect()
            }
        }
    }

    /// Creates the stage that reduces over the axes. `f` maps the indices of an input element to the value that is reduced.
    pub fn stage(&self, name: &str, reducer: Reducer, f: impl FnOnce(&[Expr]) -> Expr) -> Tensor {
        let axes: Vec<IterVar> = self
            .reduce
            .iter()
            .map(|&i| te::reduce_axis(self.shape[i].clone(), format!("k{i}")))
            .collect();
        te::compute(self.out_shape(), name, |out| {
            let mut rest = out.iter();
            let indices: Vec<Expr> = (0..self.shape.len())
                .map(|i| match self.reduce.iter().position(|&r| r == i) {
                    Some(k) => {
                        if self.keepdims {
                            rest.next();
                        }
                        axes[k].var.expr()
                    }
                    None => rest.next().cloned().unwrap_or_else(|| te::int(0)),
                })
                .collect();
            te::reduce(reducer, &f(&indices), &axes, None)
        })
    }
}

/// The element type of the accumulator for values of type `dtype`: float32 for 16-bit floats, whose sums would lose precision,
/// int64 for bools, which are counted, and `dtype` otherwise.
pub fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        DType::Bool => DType::Int64,
        _ => dtype,
    }
}

/// Lowers a reduction. Sums and products are accumulated in the type of [`accumulator`] and converted at the end.
fn te_reduce(ctx: &mut LegalizeCtx<'_>, name: &str, reducer: Reducer) -> TeResult {
    let x = ctx.value(0)?;
    let axes = ReductionAxes::from_attrs(ctx, x.shape())?;
    let acc_dtype = matches!(reducer, Reducer::Sum | Reducer::Prod);
    let dtype = if acc_dtype { accumulator(x.dtype()) } else { x.dtype() };
    let out = axes.stage(name, reducer, |i| te::cast(&x.at(i), dtype));
    let kept = if acc_dtype && x.dtype().is_bool() { DType::Int64 } else { x.dtype() };
    Ok(vec![cast_to(out, kept)])
}

/// Converts the tensor to `dtype`, unless it already has that type.
fn cast_to(t: Tensor, dtype: DType) -> Tensor {
    if t.dtype() == dtype {
        return t;
    }
    te::compute(t.shape().to_vec(), t.name().clone(), |i| te::cast(&t.at(i), dtype))
}

fn sum(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_reduce(ctx, "T_sum", Reducer::Sum)
}

fn prod(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_reduce(ctx, "T_prod", Reducer::Prod)
}

fn max(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_reduce(ctx, "T_max", Reducer::Max)
}

fn min(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_reduce(ctx, "T_min", Reducer::Min)
}

fn mean(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let x = ctx.value(0)?;
    let axes = ReductionAxes::from_attrs(ctx, x.shape())?;
    let acc_dtype = accumulator(x.dtype());
    let sum = axes.stage("T_sum", Reducer::Sum, |i| te::cast(&x.at(i), acc_dtype));
    let count = te::cast(&axes.count(), acc_dtype);
    let dtype = x.dtype();
    Ok(vec![te::compute(axes.out_shape(), "T_mean", |i| te::cast(&(sum.at(i) / count), dtype))])
}

/// Lowers a variance (the mean squared distance from the mean), and applies `finish` to it. The
/// variance is computed in two passes, because the mean of squares minus the squared mean loses
/// precision.
fn te_variance(ctx: &mut LegalizeCtx<'_>, name: &str, finish: fn(&Expr) -> Expr) -> TeResult {
    let x = ctx.value(0)?;
    let axes = ReductionAxes::from_attrs(ctx, x.shape())?;
    let (acc_dtype, dtype) = (accumulator(x.dtype()), x.dtype());
    let count = te::cast(&axes.count(), acc_dtype);
    let sum = axes.stage("T_sum", Reducer::Sum, |i| te::cast(&x.at(i), acc_dtype));
    let squares = axes.stage("T_squares", Reducer::Sum, |i| {
        let d = te::cast(&x.at(i), acc_dtype) - sum.at(&axes.out_indices(i)) / &count;
        &d * &d
    });
    let out = te::compute(axes.out_shape(), name, |i| {
        te::cast(&finish(&(squares.at(i) / &count)), dtype)
    });
    Ok(vec![out])
}

fn variance(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_variance(ctx, "T_variance", Expr::clone)
}

fn std(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_variance(ctx, "T_std", te::sqrt)
}

fn argmax(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_arg_reduce(ctx, "T_argmax", "max")
}

fn argmin(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    te_arg_reduce(ctx, "T_argmin", "min")
}

/// Lowers argmax and argmin: the index of the extreme element along an axis or in the flattened tensor.
fn te_arg_reduce(ctx: &mut LegalizeCtx<'_>, name: &str, kind: &str) -> TeResult {
    let x = ctx.value(0)?;
    let axes = ReductionAxes::from_attrs(ctx, x.shape())?;
    let Value::Tensor(x) = x else {
        return Ok(vec![te::compute(axes.out_shape(), name, |_| te::int(0))]);
    };
    let count = axes.count();
    let empty =
        ctx.error("the reduced axis of x has size 0, so there is no largest or smallest element");
    if count.is_const(0) {
        return Err(empty);
    }
    Ok(te::extern_(name, &[(axes.out_shape(), DType::Int64)], |b, out| {
        if count.as_int().is_none() {
            b.assert(&te::lt(&te::int(0), &count), empty.message);
        }
        let (x, out) = (TensorView::from(&x), TensorView::from(&out[0]));
        let (x, out) = match axes.reduce[..] {
            [axis] => (x.rows(axis, 0), out.flatten()),
            _ => (x.flatten(), out.scalar()),
        };
        let call = te::KernelCall::new(&arg_reduce::KERNEL).operand("x", x).operand("out", out);
        b.evaluate(call.choice("kind", kind).finish());
    }))
}
