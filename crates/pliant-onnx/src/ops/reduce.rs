//! Reductions.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::fold::{self, Fold};
use crate::node::{Converted, Node};
use crate::value::SymTensor;

pub(super) static OPS: &[OnnxOp] = &[
    op("ReduceL1", |n| of(n, Before::Abs, "relax.sum", After::Nothing)),
    op("ReduceL2", |n| of(n, Before::Square, "relax.sum", After::Root)),
    op("ReduceLogSum", |n| of(n, Before::Nothing, "relax.sum", After::Log)),
    op("ReduceLogSumExp", log_sum_exp),
    op("ReduceMax", |n| plain(n, "relax.max", Some(Fold::Max))),
    op("ReduceMean", |n| plain(n, "relax.mean", None)),
    op("ReduceMin", |n| plain(n, "relax.min", Some(Fold::Min))),
    op("ReduceProd", |n| plain(n, "relax.prod", Some(Fold::Mul))),
    op("ReduceSum", |n| plain(n, "relax.sum", Some(Fold::Add))),
    op("ReduceSumSquare", |n| of(n, Before::Square, "relax.sum", After::Nothing)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Abs,
    Square,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    Root,
    Log,
}

/// Over which axes, and whether the dims stay. `None` leaves the tensor as it is.
fn axes(n: &mut Node<'_, '_>) -> Result<Option<Attrs>, Problem> {
    let keep = n.attrs().int("keepdims")?.unwrap_or(1) != 0;
    let nothing = n.attrs().int("noop_with_empty_axes")?.unwrap_or(0) != 0;
    let axes = n.ints_of("axes", 1)?.filter(|a| !a.is_empty());
    if axes.is_none() && nothing {
        return Ok(None);
    }
    let axes = axes.map_or(AttrValue::None, AttrValue::ints);
    Ok(Some(Attrs::default().with("axis", axes).with("keepdims", AttrValue::Bool(keep))))
}

/// A reduction of a vector of a shape computation is one too: the number of elements, the longest side.
fn plain(n: &mut Node<'_, '_>, op: &str, fold: Option<Fold>) -> Converted {
    if n.is_syms(0)
        && let (Some(fold), Some(t)) = (fold, n.syms(0))
        && t.shape.len() == 1
        && !t.elems.is_empty()
    {
        let keep = n.attrs().int("keepdims")?.unwrap_or(1) != 0;
        let one = |elem| SymTensor { dtype: t.dtype, ..SymTensor::scalar(elem) };
        let mut total = Some(one(t.elems[0]));
        for &elem in &t.elems[1..] {
            total = total.and_then(|sum| fold::binary(n.func(), fold, &sum, &one(elem)));
        }
        if let Some(total) = total {
            let shape = if keep { vec![1] } else { Vec::new() };
            return Ok(vec![SymTensor { shape, ..total }.into()]);
        }
    }
    of(n, Before::Nothing, op, After::Nothing)
}

fn of(n: &mut Node<'_, '_>, before: Before, op: &str, after: After) -> Converted {
    let axes = axes(n)?;
    let x = n.tensor(0)?;
    let x = match before {
        Before::Nothing => x,
        Before::Abs => n.op("relax.abs", &[x])?,
        Before::Square => n.op("relax.multiply", &[x, x])?,
    };
    let y = match axes {
        Some(attrs) => n.op_with(op, &[x], attrs)?,
        None => x,
    };
    Ok(vec![finish(n, y, after)?.into()])
}

fn finish(n: &mut Node<'_, '_>, y: Expr, after: After) -> Result<Expr, Problem> {
    let op = match after {
        After::Nothing => return Ok(y),
        After::Root => "relax.sqrt",
        After::Log => "relax.log",
    };
    let dtype = n.dtype(y)?;
    if !dtype.is_integer() {
        return n.op(op, &[y]);
    }
    // Integers are rounded down to integers again.
    let wide = n.cast(y, pliant_ir::DType::Float64)?;
    let z = n.op(op, &[wide])?;
    n.cast(z, dtype)
}

/// The largest element goes first, so that no exponential overflows.
fn log_sum_exp(n: &mut Node<'_, '_>) -> Converted {
    let Some(attrs) = axes(n)? else { return Ok(vec![n.value(0)?]) };
    let x = n.tensor(0)?;
    let kept = attrs.clone().with("keepdims", AttrValue::Bool(true));
    let top = n.op_with("relax.max", &[x], kept.clone())?;
    let below = n.op("relax.subtract", &[x, top])?;
    let powers = n.op("relax.exp", &[below])?;
    let sum = n.op_with("relax.sum", &[powers], attrs.clone())?;
    let log = n.op("relax.log", &[sum])?;
    let top = n.op_with("relax.max", &[x], attrs)?;
    Ok(vec![n.op("relax.add", &[log, top])?.into()])
}
