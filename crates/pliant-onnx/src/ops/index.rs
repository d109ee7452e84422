//! Gathering, slicing, scattering, searching.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::node::{Converted, Node, ints_attr};
use crate::value::{SymTensor, Value};

pub(super) static OPS: &[OnnxOp] = &[
    op("ArgMax", |n| arg(n, "relax.argmax")),
    op("ArgMin", |n| arg(n, "relax.argmin")),
    op("CumSum", cumsum),
    op("Gather", gather),
    op("GatherElements", gather_elements),
    op("GatherND", gather_nd),
    op("NonZero", non_zero),
    op("OneHot", one_hot),
    op("ScatterElements", scatter_elements),
    op("ScatterND", scatter_nd),
    op("Slice", slice),
    op("TopK", top_k),
    op("Trilu", trilu),
];

fn gather(n: &mut Node<'_, '_>) -> Converted {
    let axis = n.attrs().int("axis")?.unwrap_or(0);
    if let Some(part) = gather_syms(n, axis)? {
        return Ok(vec![part]);
    }
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(axis, dims.len())?;
    let indices = from_the_end(n, 1, dims[axis])?;
    Ok(vec![n.op_with("relax.take", &[x, indices], ints_attr("axis", axis as i64))?.into()])
}

/// Elements of a shape computation.
fn gather_syms(n: &mut Node<'_, '_>, axis: i64) -> Result<Option<Value>, Problem> {
    if !n.is_syms(0) {
        return Ok(None);
    }
    let (Some(t), Some(indices)) = (n.syms(0), n.syms(1)) else { return Ok(None) };
    let Some(places) = indices.constants(&n.func().syms) else { return Ok(None) };
    let axis = n.axis(axis, t.shape.len())?;
    let size = t.shape[axis] as i64;
    let mut normal = Vec::with_capacity(places.len());
    for i in places {
        if i < -size || i >= size {
            let message = format!("index {i} is out of range for {size} elements");
            return Err(Problem::invalid(message));
        }
        normal.push(i.rem_euclid(size) as usize);
    }
    let inner = indices.shape.len();
    let shape: Vec<usize> =
        t.shape[..axis].iter().chain(&indices.shape).chain(&t.shape[axis + 1..]).copied().collect();
    let taken = t.gathered(shape, |index| {
        let flat =
            index[axis..axis + inner].iter().zip(&indices.shape).fold(0, |at, (&i, &d)| at * d + i);
        let mut from = index[..axis].to_vec();
        from.push(normal[flat]);
        from.extend(&index[axis + inner..]);
        from
    });
    Ok(Some(taken.into()))
}

/// Indices that may count from the end, as they count from the start: ONNX takes -1 for the last.
fn from_the_end(n: &mut Node<'_, '_>, input: usize, size: Sym) -> Result<Expr, Problem> {
    if let Some(known) = n.const_ints(input)
        && known.iter().all(|&i| i >= 0)
    {
        return n.tensor(input);
    }
    let indices = n.tensor(input)?;
    let dtype = n.dtype(indices)?;
    let size = n.materialize(&SymTensor { dtype, ..SymTensor::scalar(size) }.into())?;
    let zero = n.number(0.0, dtype)?;
    let negative = n.op("relax.less", &[indices, zero])?;
    let moved = n.op("relax.add", &[indices, size])?;
    n.op("relax.where", &[negative, moved, indices])
}

fn gather_elements(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let indices = from_the_end(n, 1, dims[axis])?;
    let attrs = ints_attr("axis", axis as i64);
    Ok(vec![n.op_with("relax.gather_elements", &[x, indices], attrs)?.into()])
}

fn gather_nd(n: &mut Node<'_, '_>) -> Converted {
    let batch = n.attrs().int("batch_dims")?.unwrap_or(0);
    let (x, indices) = (n.tensor(0)?, n.tensor(1)?);
    let indices = n.cast(indices, DType::Int64)?;
    Ok(vec![n.op_with("relax.gather_nd", &[x, indices], ints_attr("batch_dims", batch))?.into()])
}

fn scatter_elements(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let indices = from_the_end(n, 1, dims[axis])?;
    let updates = n.tensor(2)?;
    let attrs = ints_attr("axis", axis as i64).with("reduction", reduction(n)?);
    Ok(vec![n.op_with("relax.scatter_elements", &[x, indices, updates], attrs)?.into()])
}

fn scatter_nd(n: &mut Node<'_, '_>) -> Converted {
    let [x, indices, updates] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let attrs = Attrs::default().with("reduction", reduction(n)?);
    Ok(vec![n.op_with("relax.scatter_nd", &[x, indices, updates], attrs)?.into()])
}

fn reduction(n: &Node<'_, '_>) -> Result<AttrValue, Problem> {
    let kind = n.attrs().choice("reduction", &["none", "add", "mul", "min", "max"])?;
    Ok(AttrValue::str(if kind == "none" { "update" } else { kind }))
}

/// The bounds of a slice: attributes up to opset 9, inputs since.
struct Bounds {
    starts: Vec<Sym>,
    ends: Vec<Sym>,
    axes: Vec<usize>,
    steps: Vec<i64>,
}

fn slice(n: &mut Node<'_, '_>) -> Converted {
    let rank = match n.value(0)? {
        Value::Syms(t) => t.shape.len(),
        _ => {
            let x = n.tensor(0)?;
            n.rank(x)?
        }
    };
    let bounds = bounds(n, rank)?;
    if n.is_syms(0)
        && let Some(t) = n.syms(0)
        && let Some(part) = slice_syms(n, &t, &bounds)
    {
        return Ok(vec![part.into()]);
    }
    let x = n.tensor(0)?;
    let func = n.func();
    let numbers = |func: &mut pliant_ir::relax::Function, v: Vec<i64>| {
        let syms: Vec<Sym> = v.into_iter().map(|v| func.syms.int(v)).collect();
        func.shape(&syms)
    };
    let axes = numbers(func, bounds.axes.iter().map(|&a| a as i64).collect());
    let steps = numbers(func, bounds.steps.clone());
    let (begin, end) = (func.shape(&bounds.starts), func.shape(&bounds.ends));
    Ok(vec![n.op("relax.strided_slice", &[x, axes, begin, end, steps])?.into()])
}

fn bounds(n: &mut Node<'_, '_>, rank: usize) -> Result<Bounds, Problem> {
    let given =
        |n: &mut Node<'_, '_>, attr: &str, input: usize| -> Result<Option<Vec<Sym>>, Problem> {
            if let Some(ints) = n.attrs().ints(attr)? {
                return Ok(Some(ints.iter().map(|&v| n.func().syms.int(v)).collect()));
            }
            if !n.has(input) {
                return Ok(None);
            }
            if let Some(t) = n.syms(input) {
                return Ok(Some(t.elems));
            }
            let vector = n.tensor(input)?;
            let vector = n.cast(vector, DType::Int64)?;
            let length = super::shape::vector_length(n, vector)?;
            super::shape::shape_symbols(n, vector, length).map(Some)
        };
    let missing = |what: &str| Problem::invalid(format!("'{what}' is missing"));
    let starts = given(n, "starts", 1)?.ok_or_else(|| missing("starts"))?;
    let ends = given(n, "ends", 2)?.ok_or_else(|| missing("ends"))?;
    let axes = match n.ints_of("axes", 3)? {
        Some(axes) => axes.iter().map(|&a| n.axis(a, rank)).collect::<Result<_, _>>()?,
        None => (0..starts.len()).collect::<Vec<usize>>(),
    };
    let steps = n.ints_of("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    let lengths = [ends.len(), axes.len(), steps.len()];
    if lengths.iter().any(|&l| l != starts.len()) || axes.iter().any(|&a| a >= rank) {
        return Err(Problem::invalid(
            "'starts', 'ends', 'axes' and 'steps' must have equal lengths",
        ));
    }
    if steps.contains(&0) {
        return Err(Problem::invalid("a step is 0"));
    }
    Ok(Bounds { starts, ends, axes, steps })
}

/// A part of a shape computation, where the bounds are numbers.
fn slice_syms(n: &mut Node<'_, '_>, t: &SymTensor, b: &Bounds) -> Option<SymTensor> {
    let mut shape = t.shape.clone();
    let mut from = vec![0i64; shape.len()];
    let mut step = vec![1i64; shape.len()];
    for (k, &axis) in b.axes.iter().enumerate() {
        let syms = &n.func().syms;
        let (start, end) = (syms.as_int(b.starts[k])?, syms.as_int(b.ends[k])?);
        let (size, by) = (t.shape[axis] as i64, b.steps[k]);
        let place = |v: i64| if v < 0 { v.saturating_add(size) } else { v };
        let (low, high) = if by > 0 { (0, size) } else { (-1, size - 1) };
        let start = place(start).clamp(if by > 0 { 0 } else { -1 }, high.max(low));
        let end = place(end).clamp(low, high.max(low));
        let count = if by > 0 { (end - start + by - 1) / by } else { (start - end - by - 1) / -by };
        shape[axis] = count.max(0) as usize;
        (from[axis], step[axis]) = (start, by);
    }
    Some(t.gathered(shape, |index| {
        index.iter().enumerate().map(|(d, &i)| (from[d] + step[d] * i as i64) as usize).collect()
    }))
}

fn arg(n: &mut Node<'_, '_>, op: &str) -> Converted {
    let attrs = n.attrs();
    let keep = attrs.int("keepdims")?.unwrap_or(1) != 0;
    let last = attrs.int("select_last_index")?.unwrap_or(0) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let attrs = ints_attr("axis", axis as i64).with("keepdims", AttrValue::Bool(keep));
    if !last {
        return Ok(vec![n.op_with(op, &[x], attrs)?.into()]);
    }
    // The last of equal ones is the first of the reversed, counted from the end.
    let reversed = n.op_with("relax.flip", &[x], ints_attr("axis", axis as i64))?;
    let found = n.op_with(op, &[reversed], attrs)?;
    let one = n.func().syms.int(1);
    let end = n.func().syms.sub(dims[axis], one);
    let end = n.materialize(&SymTensor::scalar(end).into())?;
    Ok(vec![n.op("relax.subtract", &[end, found])?.into()])
}

fn cumsum(n: &mut Node<'_, '_>) -> Converted {
    let exclusive = n.attrs().int("exclusive")?.unwrap_or(0) != 0;
    let reverse = n.attrs().int("reverse")?.unwrap_or(0) != 0;
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let axis = n.const_ints(1).and_then(|v| v.first().copied()).ok_or_else(|| {
        Problem::unsupported("the axis of a running sum is known only at run time")
    })?;
    let axis = n.axis(axis, rank)? as i64;
    let flipped =
        |n: &mut Node<'_, '_>, x: Expr| n.op_with("relax.flip", &[x], ints_attr("axis", axis));
    let x = if reverse { flipped(n, x)? } else { x };
    let attrs = ints_attr("axis", axis).with("exclusive", AttrValue::Bool(exclusive));
    let y = n.op_with("relax.cumsum", &[x], attrs)?;
    Ok(vec![if reverse { flipped(n, y)? } else { y }.into()])
}

/// ONNX and Relax agree: one row of indices for each axis.
fn non_zero(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    Ok(vec![n.op("relax.nonzero", &[x])?.into()])
}

fn one_hot(n: &mut Node<'_, '_>) -> Converted {
    let axis = n.attrs().int("axis")?.unwrap_or(-1);
    let depth = n.syms(1).and_then(|t| t.elems.first().copied());
    let depth = match depth {
        Some(d) => d,
        None => {
            let vector = n.tensor(1)?;
            let vector = n.cast(vector, DType::Int64)?;
            let one = n.func().syms.int(1);
            let vector = n.reshape(vector, &[one])?;
            super::shape::shape_symbols(n, vector, 1)?[0]
        }
    };
    // Compared with 0 .. depth along the new axis, which works for a depth of the run too.
    let indices = n.tensor(0)?;
    let indices = n.cast(indices, DType::Int64)?;
    let rank = n.rank(indices)? + 1;
    let axis = n.axis(axis, rank)?;
    let (zero, one) = (n.func().syms.int(0), n.func().syms.int(1));
    let bounds: Vec<Expr> =
        [zero, depth, one].iter().map(|&b| n.func().int_value(b, DType::Int64)).collect();
    let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int64));
    let places = n.op_with("relax.arange", &bounds, attrs)?;
    let shape: Vec<Sym> = (0..rank).map(|i| if i == axis { depth } else { one }).collect();
    let places = n.reshape(places, &shape)?;
    let attrs = Attrs::default().with("axis", AttrValue::ints([axis as i64]));
    let indices = n.op_with("relax.expand_dims", &[indices], attrs)?;
    let size = n.materialize(&SymTensor::scalar(depth).into())?;
    let none = n.scalar(0i64)?;
    let negative = n.op("relax.less", &[indices, none])?;
    let moved = n.op("relax.add", &[indices, size])?;
    let indices = n.op("relax.where", &[negative, moved, indices])?;
    let hit = n.op("relax.equal", &[indices, places])?;
    let values = n.tensor(2)?;
    let scalar: [Sym; 0] = [];
    let [off, on] = {
        let two = n.func().syms.int(2);
        let cut = |n: &mut Node<'_, '_>, a: Sym, b: Sym| -> Result<Expr, Problem> {
            let part = super::shape::slice_axis(n, values, 0, a, b)?;
            n.reshape(part, &scalar)
        };
        [cut(n, zero, one)?, cut(n, one, two)?]
    };
    Ok(vec![n.op("relax.where", &[hit, on, off])?.into()])
}

fn top_k(n: &mut Node<'_, '_>) -> Converted {
    let axis = n.attrs().int("axis")?.unwrap_or(-1);
    let largest = n.attrs().int("largest")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(axis, dims.len())?;
    let k = match n.attrs().int("k")? {
        Some(k) => n.func().syms.int(k),
        None => match n.syms(1).and_then(|t| t.elems.first().copied()) {
            Some(k) => k,
            None => {
                let vector = n.tensor(1)?;
                super::shape::shape_symbols(n, vector, 1)?[0]
            }
        },
    };
    let attrs = |k: i64| {
        ints_attr("k", k)
            .with("axis", AttrValue::Int(axis as i64))
            .with("ret_type", AttrValue::str("both"))
            .with("largest", AttrValue::Bool(largest))
            .with("dtype", AttrValue::DType(DType::Int64))
    };
    let known = n.func().syms.as_int(k);
    let both = n.op_with("relax.topk", &[x], attrs(known.unwrap_or(-1)))?;
    let mut outputs = Vec::with_capacity(2);
    for field in 0..2 {
        let part = n.func().tuple_get_item(both, field);
        let part = n.im.bind(part, n.proto);
        // All of them, sorted, and of those the first k.
        let part = match known {
            Some(_) => part,
            None => {
                let zero = n.func().syms.int(0);
                super::shape::slice_axis(n, part, axis, zero, k)?
            }
        };
        outputs.push(part.into());
    }
    Ok(outputs)
}

fn trilu(n: &mut Node<'_, '_>) -> Converted {
    let upper = n.attrs().int("upper")?.unwrap_or(1) != 0;
    let k = match n.has(1) {
        false => 0,
        true => n.const_ints(1).and_then(|v| v.first().copied()).ok_or_else(|| {
            Problem::unsupported("which diagonal it keeps is known only at run time")
        })?,
    };
    let x = n.tensor(0)?;
    let op = if upper { "relax.triu" } else { "relax.tril" };
    Ok(vec![n.op_with(op, &[x], ints_attr("k", k))?.into()])
}
