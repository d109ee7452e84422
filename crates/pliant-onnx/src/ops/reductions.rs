//! Converters of ONNX's reduction operators, such as `ReduceSum`.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_ops::shared_operator_rules::wide_float;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::SymTensor;
use crate::node::{ConvertResult, ExprResult, Node};
use crate::shape_folding::{self, FoldOp};

pub(super) static OPS: &[OnnxOp] = &[
    op("ReduceL1", |n| reduce_with(n, PreOp::Abs, "relax.sum", PostOp::Identity)),
    op("ReduceL2", |n| reduce_with(n, PreOp::Square, "relax.sum", PostOp::Sqrt)),
    op("ReduceLogSum", |n| reduce_with(n, PreOp::Identity, "relax.sum", PostOp::Log)),
    op("ReduceLogSumExp", log_sum_exp),
    op("ReduceMax", |n| fold_or_reduce(n, "relax.max", Some(FoldOp::Max))),
    op("ReduceMean", mean),
    op("ReduceMin", |n| fold_or_reduce(n, "relax.min", Some(FoldOp::Min))),
    op("ReduceProd", |n| fold_or_reduce(n, "relax.prod", Some(FoldOp::Mul))),
    op("ReduceSum", |n| fold_or_reduce(n, "relax.sum", Some(FoldOp::Add))),
    op("ReduceSumSquare", |n| reduce_with(n, PreOp::Square, "relax.sum", PostOp::Identity)),
];

/// The elementwise operation that is applied before a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PreOp {
    Identity,
    Abs,
    Square,
}

/// The elementwise operation that is applied after a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PostOp {
    Identity,
    Sqrt,
    Log,
}

/// The axes of a reduction, and whether the reduced dims are kept.
struct Reduction {
    axes: Axes,
    keep: bool,
}

/// The axes over which a node reduces.
enum Axes {
    /// The node reduces nothing: it has no axes, and its attribute `noop_with_empty_axes` is set.
    NoOp,
    /// The axes are constant; `None` stands for all axes.
    Known(Option<Vec<i64>>),
    /// The axes are known only at run time: a bool mask over the axes of the tensor, and the number of reduced axes if it is known.
    NonConstant { mask: Expr, count: Option<usize> },
}

impl Reduction {
    /// Reads the attributes and the axes of a reduction node. `rank` computes the rank of the reduced tensor.
    fn read(
        n: &mut Node<'_, '_>,
        rank: impl FnOnce(&mut Node<'_, '_>) -> Result<usize, Problem>,
    ) -> Result<Reduction, Problem> {
        let keep = n.attrs().int("keepdims")?.unwrap_or(1) != 0;
        let nothing = n.attrs().int("noop_with_empty_axes")?.unwrap_or(0) != 0;
        let known = match n.attrs().ints("axes")? {
            Some(axes) => Some(axes.to_vec()),
            None => n.const_ints(1),
        };
        let empty = if nothing { Axes::NoOp } else { Axes::Known(None) };
        let axes = match known {
            Some(axes) if axes.is_empty() => empty,
            Some(axes) => Axes::Known(Some(axes)),
            None if !n.has_input(1) => empty,
            None => {
                let axes_input = n.tensor(1)?;
                let length = n.dims(axes_input)?;
                match n.constant_length(axes_input)? {
                    Some(0) => empty,
                    count => {
                        let rank = rank(n)? as i64;
                        let rank = n.func().syms.int(rank);
                        let mut mask = n.axes_mask(axes_input, rank)?;
                        if count.is_none() && !nothing {
                            let (length, zero) = (n.size_scalar(length[0])?, n.scalar(0i64)?);
                            let all = n.op("relax.equal", &[length, zero])?;
                            mask = n.op("relax.logical_or", &[mask, all])?;
                        }
                        Axes::NonConstant { mask, count }
                    }
                }
            }
        };
        Ok(Reduction { axes, keep })
    }

    /// Emits the reduction with operator `op`. Non-constant axes are reduced one after another: for
    /// each axis, a branch reduces it if the mask contains it. For all supported reductions, this
    /// computes the same result as reducing the axes together.
    fn apply(&self, n: &mut Node<'_, '_>, op: &str, x: Expr, keep: bool) -> ExprResult {
        match &self.axes {
            Axes::NoOp => Ok(x),
            Axes::Known(axes) => {
                let axes = axes.clone().map_or(AttrValue::None, AttrValue::ints);
                let attrs =
                    Attrs::default().with("axis", axes).with("keepdims", AttrValue::Bool(keep));
                n.op_with(op, &[x], attrs)
            }
            Axes::NonConstant { mask, count } => {
                let mut y = x;
                for axis in 0..n.rank(x)? {
                    let taken = n.vector_element(*mask, axis)?;
                    let attrs = Attrs::default()
                        .with("axis", AttrValue::ints([axis as i64]))
                        .with("keepdims", AttrValue::Bool(true));
                    y = n.if_else(taken, |n| n.op_with(op, &[y], attrs), |_| Ok(y))?;
                }
                match (keep, count) {
                    (true, _) => Ok(y),
                    (false, count) => n.drop_axes(y, *mask, *count),
                }
            }
        }
    }
}

/// Folds a reduction of a shape computation to a scalar, such as the number of elements or the longest side. Other inputs are
/// reduced as tensors.
fn fold_or_reduce(n: &mut Node<'_, '_>, op: &str, fold: Option<FoldOp>) -> ConvertResult {
    if n.is_symbolic(0)
        && let (Some(fold), Some(t)) = (fold, n.symbolic(0))
        && t.shape.len() == 1
        && !t.elems.is_empty()
    {
        let reduction = Reduction::read(n, |_| Ok(1))?;
        match reduction.axes {
            Axes::NoOp => return Ok(vec![t.into()]),
            Axes::Known(_) => {}
            Axes::NonConstant { .. } => {
                return reduce_with(n, PreOp::Identity, op, PostOp::Identity);
            }
        }
        let keep = reduction.keep;
        let one = |elem| SymTensor { dtype: t.dtype, ..SymTensor::scalar(elem) };
        let mut total = Some(one(t.elems[0]));
        for &elem in &t.elems[1..] {
            total = total.and_then(|sum| shape_folding::binary(n.func(), fold, &sum, &one(elem)));
        }
        if let Some(total) = total {
            let shape = if keep { vec![1] } else { Vec::new() };
            return Ok(vec![SymTensor { shape, ..total }.into()]);
        }
    }
    reduce_with(n, PreOp::Identity, op, PostOp::Identity)
}

/// Converts `ReduceMean`. For integers, the mean is rounded towards 0.
fn mean(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let reduction = Reduction::read(n, |n| n.rank(x))?;
    in_wide_float_type(n, x, |n, x| reduction.apply(n, "relax.mean", x, reduction.keep))
}

/// Emits a computation that runs in float64 for integers and in float32 for 16-bit floats. The result is cast back.
fn in_wide_float_type(
    n: &mut Node<'_, '_>,
    x: Expr,
    compute: impl FnOnce(&mut Node<'_, '_>, Expr) -> ExprResult,
) -> ConvertResult {
    let dtype = n.dtype(x)?;
    let wide = if dtype.is_integer() { DType::Float64 } else { wide_float(dtype) };
    let x = n.cast(x, wide)?;
    let y = compute(n, x)?;
    Ok(vec![n.cast(y, dtype)?.into()])
}

/// Reduces input 0, with elementwise operations before and after the reduction.
fn reduce_with(n: &mut Node<'_, '_>, before: PreOp, op: &str, after: PostOp) -> ConvertResult {
    let x = n.tensor(0)?;
    let reduction = Reduction::read(n, |n| n.rank(x))?;
    if matches!((&before, &after), (PreOp::Identity, PostOp::Identity)) {
        return Ok(vec![reduction.apply(n, op, x, reduction.keep)?.into()]);
    }
    // The squares of integers may overflow, although the root of their sum would fit.
    if matches!(after, PostOp::Sqrt | PostOp::Log) {
        return in_wide_float_type(n, x, |n, x| {
            map_reduce_map(n, x, &reduction, op, (before, after))
        });
    }
    let y = n.in_wide_float(x, |n, x| map_reduce_map(n, x, &reduction, op, (before, after)))?;
    Ok(vec![y.into()])
}

/// Applies an elementwise operation, a reduction, and another elementwise operation.
fn map_reduce_map(
    n: &mut Node<'_, '_>,
    x: Expr,
    reduction: &Reduction,
    op: &str,
    (before, after): (PreOp, PostOp),
) -> ExprResult {
    let x = match before {
        PreOp::Identity => x,
        PreOp::Abs => n.op("relax.abs", &[x])?,
        PreOp::Square => n.op("relax.multiply", &[x, x])?,
    };
    let y = reduction.apply(n, op, x, reduction.keep)?;
    match after {
        PostOp::Identity => Ok(y),
        PostOp::Sqrt => n.op("relax.sqrt", &[y]),
        PostOp::Log => n.op("relax.log", &[y]),
    }
}

/// Converts `ReduceLogSumExp`. The maximum is subtracted first, so that no exponential overflows.
fn log_sum_exp(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let reduction = Reduction::read(n, |n| n.rank(x))?;
    if matches!(reduction.axes, Axes::NoOp) {
        return Ok(vec![x.into()]);
    }
    in_wide_float_type(n, x, |n, x| {
        let max = finite_maximum(n, &reduction, x, true)?;
        let shifted = n.op("relax.subtract", &[x, max])?;
        let powers = n.op("relax.exp", &[shifted])?;
        let sum = reduction.apply(n, "relax.sum", powers, reduction.keep)?;
        let log = n.op("relax.log", &[sum])?;
        let max = if reduction.keep { max } else { finite_maximum(n, &reduction, x, false)? };
        n.op("relax.add", &[log, max])
    })
}

/// Emits the maxima along the reduced axes, with 0 in place of infinite maxima, because infinity
/// minus infinity is NaN.
fn finite_maximum(n: &mut Node<'_, '_>, reduction: &Reduction, x: Expr, keep: bool) -> ExprResult {
    let max = reduction.apply(n, "relax.max", x, keep)?;
    let finite = n.op("relax.isfinite", &[max])?;
    let dtype = n.dtype(max)?;
    let zero = n.scalar_as(0.0, dtype)?;
    n.op("relax.where", &[finite, max, zero])
}
