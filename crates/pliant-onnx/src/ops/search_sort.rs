//! Converters of searching, sorting, cumulative sums, and operators that depend on element positions.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value};
use crate::node::{ConvertResult, ExprResult, Node, ints_attr};

pub(super) static OPS: &[OnnxOp] = &[
    op("ArgMax", |n| arg_extremum(n, "relax.argmax")),
    op("ArgMin", |n| arg_extremum(n, "relax.argmin")),
    op("CumProd", |n| cumulative(n, "relax.cumprod")),
    op("CumSum", |n| cumulative(n, "relax.cumsum")),
    op("EyeLike", eye_like),
    op("NonZero", non_zero),
    op("OneHot", one_hot),
    op("ReverseSequence", reverse_sequence),
    op("TopK", top_k),
    op("Trilu", trilu),
    op("Unique", unique),
];

/// Converts `ArgMax` and `ArgMin`, whose result is the index of the extreme element.
fn arg_extremum(n: &mut Node<'_, '_>, op: &str) -> ConvertResult {
    let attrs = n.attrs();
    let keep = attrs.int("keepdims")?.unwrap_or(1) != 0;
    let last = attrs.int("select_last_index")?.unwrap_or(0) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    if n.func().syms.as_int(dims[axis]) == Some(0) {
        return Err(Problem::invalid(format!(
            "axis {axis} of input 0 has size 0, so it has no largest or smallest element"
        )));
    }
    let attrs = ints_attr("axis", axis as i64).with("keepdims", AttrValue::Bool(keep));
    if !last {
        return Ok(vec![n.op_with(op, &[x], attrs)?.into()]);
    }
    // The last of equal elements is the first one in the reversed tensor.
    let reversed = n.op_with("relax.flip", &[x], ints_attr("axis", axis as i64))?;
    let index = n.op_with(op, &[reversed], attrs)?;
    let one = n.func().syms.int(1);
    let end = n.func().syms.sub(dims[axis], one);
    let end = n.materialize(&SymTensor::scalar(end).into())?;
    Ok(vec![n.op("relax.subtract", &[end, index])?.into()])
}

/// Converts `NonZero`. ONNX and Relax use the same layout, one row of indices per axis.
fn non_zero(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let positions = n.op("relax.nonzero", &[x])?;
    // The result type of the operator lacks the number of rows, which is known.
    let count = n.dims(positions)?[1];
    let rank = n.func().syms.int(rank as i64);
    Ok(vec![n.reshape(positions, &[rank, count])?.into()])
}

fn one_hot(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?.unwrap_or(-1);
    let depth = n.size_input(1)?;
    let zero_scalar = n.func().syms.int(0);
    n.require_at_most(zero_scalar, depth, "'depth' (input 1) must be at least {}, but is {}")?;
    // Compare the indices with 0 .. depth along a new axis. That works for a non-constant depth, too.
    let indices = n.tensor(0)?;
    let indices = n.cast(indices, DType::Int64)?;
    let rank = n.rank(indices)? + 1;
    let axis = n.axis(axis, rank)?;
    let (zero, one) = (n.func().syms.int(0), n.func().syms.int(1));
    let bounds: Vec<Expr> =
        [zero, depth, one].iter().map(|&b| n.func().int_value(b, DType::Int64)).collect();
    let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int64));
    let positions = n.op_with("relax.arange", &bounds, attrs)?;
    let shape: Vec<Sym> = (0..rank).map(|i| if i == axis { depth } else { one }).collect();
    let positions = n.reshape(positions, &shape)?;
    let attrs = Attrs::default().with("axis", AttrValue::ints([axis as i64]));
    let indices = n.op_with("relax.expand_dims", &[indices], attrs)?;
    let size = n.materialize(&SymTensor::scalar(depth).into())?;
    let zero_scalar = n.scalar(0i64)?;
    let negative = n.op("relax.less", &[indices, zero_scalar])?;
    let shifted = n.op("relax.add", &[indices, size])?;
    let indices = n.op("relax.where", &[negative, shifted, indices])?;
    let is_hit = n.op("relax.equal", &[indices, positions])?;
    let values = n.tensor(2)?;
    let input = n.vector_length(values, "'values' (input 2)")?;
    let wanted = n.func().syms.int(2);
    let text =
        "'values' (input 2) has {} elements, but must have {}: the off value and the on value";
    n.require_equal(input, wanted, text)?;
    let scalar: [Sym; 0] = [];
    let [off, on] = {
        let two = n.func().syms.int(2);
        let cut = |n: &mut Node<'_, '_>, a: Sym, b: Sym| -> ExprResult {
            let part = n.slice_axis(values, 0, a, b)?;
            n.reshape(part, &scalar)
        };
        [cut(n, zero, one)?, cut(n, one, two)?]
    };
    Ok(vec![n.op("relax.where", &[is_hit, on, off])?.into()])
}

fn top_k(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?.unwrap_or(-1);
    let largest = n.attrs().int("largest")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(axis, dims.len())?;
    let k = match n.attrs().int("k")? {
        Some(k) => n.func().syms.int(k),
        None => n.size_input(1)?,
    };
    let zero = n.func().syms.int(0);
    n.require_at_most(zero, k, "k must be at least {}, but is {}")?;
    n.require_at_most(k, dims[axis], "k is {}, but the axis has {} elements")?;
    let constant = n.func().syms.as_int(k);
    let mut operands = vec![x];
    if constant.is_none() {
        operands.push(n.func().int_value(k, DType::Int64));
    }
    let attrs = Attrs::default()
        .with("k", constant.map_or(AttrValue::None, AttrValue::Int))
        .with("axis", AttrValue::Int(axis as i64))
        .with("ret_type", AttrValue::str("both"))
        .with("largest", AttrValue::Bool(largest))
        .with("dtype", AttrValue::DType(DType::Int64))
        .with("nan_is_largest", AttrValue::Bool(true));
    let topk = n.op_with("relax.topk", &operands, attrs)?;
    Ok(n.tuple_fields(topk, 2).into_iter().map(Value::from).collect())
}

/// Converts `CumSum` and `CumProd`, which accumulate from the first or, with `reverse`, from the last element of an axis.
fn cumulative(n: &mut Node<'_, '_>, op: &str) -> ConvertResult {
    let exclusive = n.attrs().int("exclusive")?.unwrap_or(0) != 0;
    let reverse = n.attrs().int("reverse")?.unwrap_or(0) != 0;
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let flipped = |n: &mut Node<'_, '_>, x: Expr, axis: i64| {
        if reverse { n.op_with("relax.flip", &[x], ints_attr("axis", axis)) } else { Ok(x) }
    };
    let y = n.select_by_axis(1, rank, rank, &mut |n, axis| {
        let axis = axis as i64;
        let x = flipped(n, x, axis)?;
        let attrs = ints_attr("axis", axis).with("exclusive", AttrValue::Bool(exclusive));
        let y = n.op_with(op, &[x], attrs)?;
        flipped(n, y, axis)
    })?;
    Ok(vec![y.into()])
}

/// Converts `Trilu`, the upper or lower triangle of each matrix. The diagonal may be non-constant.
fn trilu(n: &mut Node<'_, '_>) -> ConvertResult {
    let upper = n.attrs().int("upper")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let known =
        if n.has_input(1) { n.const_ints(1).and_then(|v| v.first().copied()) } else { Some(0) };
    if let Some(k) = known {
        let op = if upper { "relax.triu" } else { "relax.tril" };
        return Ok(vec![n.op_with(op, &[x], ints_attr("k", k))?.into()]);
    }
    let dims = n.dims(x)?;
    let [.., rows, columns] = dims.as_slice() else {
        let text = format!("the input must have at least 2 dims, but has {}", dims.len());
        return Err(Problem::invalid(text));
    };
    let (rows, columns) = (n.iota(*rows)?, n.iota(*columns)?);
    let (rows, columns) = (n.reshape_along(rows, 0, 2)?, n.reshape_along(columns, 1, 2)?);
    let k = n.tensor(1)?;
    let k = n.reshape_to_scalar(k)?;
    let k = n.cast(k, DType::Int64)?;
    let diagonal = n.op("relax.subtract", &[columns, rows])?;
    let side = if upper { "relax.greater_equal" } else { "relax.less_equal" };
    let kept = n.op(side, &[diagonal, k])?;
    let dtype = n.dtype(x)?;
    let zero = n.scalar_as(0.0, dtype)?;
    Ok(vec![n.op("relax.where", &[kept, x, zero])?.into()])
}

fn eye_like(n: &mut Node<'_, '_>) -> ConvertResult {
    let k = n.attrs().int("k")?.unwrap_or(0);
    let x = n.tensor(0)?;
    let dtype = match n.attrs().int("dtype")? {
        Some(code) => crate::initializer_tensors::checked_dtype(code)?,
        None => n.dtype(x)?,
    };
    let k = n.func().syms.int(k);
    let k = n.func().int_value(k, DType::Int64);
    let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
    Ok(vec![n.op_with("relax.eye_like", &[x, k], attrs)?.into()])
}

fn reverse_sequence(n: &mut Node<'_, '_>) -> ConvertResult {
    let time = n.attrs().int("time_axis")?.unwrap_or(0);
    let batch = n.attrs().int("batch_axis")?.unwrap_or(1);
    let args = [n.tensor(0)?, n.tensor(1)?];
    let attrs = ints_attr("seq_axis", time).with("batch_axis", AttrValue::Int(batch));
    Ok(vec![n.op_with("relax.reverse_sequence", &args, attrs)?.into()])
}

/// Converts `Unique`: the distinct elements or slices, the index of their first occurrence, the index of each element's distinct
/// value, and the counts.
fn unique(n: &mut Node<'_, '_>) -> ConvertResult {
    let sorted = n.attrs().int("sorted")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let along = n.attrs().int("axis")?;
    let axis = along.map_or(AttrValue::None, AttrValue::Int);
    let wanted = |i: usize| n.proto.output.get(i).is_some_and(|o| !o.is_empty());
    let wanted = [wanted(1), wanted(2), wanted(3)];
    let attrs = Attrs::default()
        .with("sorted", AttrValue::Bool(sorted))
        .with("return_index", AttrValue::Bool(wanted[0]))
        .with("return_inverse", AttrValue::Bool(wanted[1]))
        .with("return_counts", AttrValue::Bool(wanted[2]))
        .with("axis", axis);
    let index = n.op_with("relax.unique", &[x], attrs)?;
    let count = 1 + wanted.iter().filter(|w| **w).count();
    let fields = if count == 1 { vec![index] } else { n.tuple_fields(index, count) };
    let mut values = fields[0];
    if let Some(along) = along {
        let dims = n.dims(x)?;
        let axis = n.axis(along, dims.len())?;
        let kept: Vec<Option<Sym>> =
            dims.iter().enumerate().map(|(i, &d)| Some(d).filter(|_| i != axis)).collect();
        values = n.with_dims(values, &kept)?;
    }
    let mut fields = fields.into_iter().skip(1).map(Value::from);
    let mut outputs = vec![values.into()];
    for wanted in wanted {
        let field = if wanted { fields.next() } else { None };
        outputs.push(field.unwrap_or(Value::Absent));
    }
    Ok(outputs)
}
