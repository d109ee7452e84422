//! Operators on shapes, and those that give a tensor another shape.

use pliant_ir::relax::{Expr, TypeData};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;
use pliant_tensor::Tensor;

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::tensor;
use crate::value::{SymTensor, Value};

pub(super) static OPS: &[OnnxOp] = &[
    op("Concat", concat),
    op("Constant", constant),
    op("ConstantOfShape", constant_of_shape),
    op("DepthToSpace", depth_to_space),
    op("Expand", expand),
    op("Flatten", flatten),
    op("Identity", identity),
    op("Range", range),
    op("Reshape", reshape),
    op("Shape", shape),
    op("Size", size),
    op("SpaceToDepth", space_to_depth),
    op("Split", split),
    op("Squeeze", squeeze),
    op("Tile", tile),
    op("Transpose", transpose),
    op("Unsqueeze", unsqueeze),
];

fn identity(n: &mut Node<'_, '_>) -> Converted {
    Ok(vec![n.value(0)?])
}

fn constant(n: &mut Node<'_, '_>) -> Converted {
    let attrs = n.attrs();
    let made = |t: Result<Tensor, pliant_tensor::TensorError>| {
        t.map(|t| vec![Value::Const(t)]).map_err(|e| Problem::invalid(e.to_string()))
    };
    if let Some(proto) = attrs.tensor("value")? {
        let limits = n.im.limits;
        let read = tensor::read(proto, &mut n.im.external, &limits);
        return Ok(vec![Value::Const(read.map_err(Problem::invalid)?)]);
    }
    if let Some(v) = attrs.float("value_float")? {
        return made(Tensor::scalar(v as f32));
    }
    if let Some(v) = attrs.int("value_int")? {
        return made(Tensor::scalar(v));
    }
    if let Some(v) = attrs.floats("value_floats")? {
        return made(Tensor::from_slice(&[v.len() as i64], v));
    }
    if let Some(v) = attrs.ints("value_ints")? {
        return made(Tensor::from_slice(&[v.len() as i64], v));
    }
    Err(Problem::unsupported("a constant of strings or a sparse one"))
}

/// `Shape`, of some axes since opset 15. Its elements are the dims themselves.
fn shape(n: &mut Node<'_, '_>) -> Converted {
    let attrs = n.attrs();
    let (start, end) = (attrs.int("start")?.unwrap_or(0), attrs.int("end")?);
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let rank = dims.len() as i64;
    let bound = |v: i64| if v < 0 { (v + rank).max(0) } else { v.min(rank) } as usize;
    let (start, end) = (bound(start), end.map_or(dims.len(), bound));
    Ok(vec![SymTensor::vector(dims[start.min(end)..end].to_vec()).into()])
}

fn size(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let count = n.func().syms.product(dims);
    Ok(vec![SymTensor::scalar(count).into()])
}

/// `Reshape`: 0 keeps a dim (unless `allowzero`), -1 takes what is left.
fn reshape(n: &mut Node<'_, '_>) -> Converted {
    let allow_zero = n.attrs().int("allowzero")?.unwrap_or(0) != 0;
    // Up to opset 4 the shape was an attribute.
    let target = match n.attrs().ints("shape")? {
        Some(dims) => Some(dims.iter().map(|&d| n.func().syms.int(d)).collect()),
        None => n.syms(1).map(|t| t.elems),
    };
    if n.is_syms(0)
        && let (Some(t), Some(target)) = (n.syms(0), &target)
    {
        let dims: Vec<Sym> = vec![n.func().syms.int(t.elems.len() as i64)];
        let dims = resolve(n, &dims, target, allow_zero)?;
        if let Some(shape) = sizes(n, &dims).and_then(|s| t.reshaped(s)) {
            return Ok(vec![shape.into()]);
        }
    }
    let x = n.tensor(0)?;
    let dims = match target {
        Some(target) => {
            let own = n.dims(x)?;
            resolve(n, &own, &target, allow_zero)?
        }
        None => run_time_shape(n, x, allow_zero)?,
    };
    Ok(vec![n.reshape(x, &dims)?.into()])
}

/// The dims as numbers.
fn sizes(n: &mut Node<'_, '_>, dims: &[Sym]) -> Option<Vec<usize>> {
    dims.iter().map(|&d| n.func().syms.as_int(d).and_then(|d| usize::try_from(d).ok())).collect()
}

fn resolve(
    n: &mut Node<'_, '_>,
    own: &[Sym],
    target: &[Sym],
    allow_zero: bool,
) -> Result<Vec<Sym>, Problem> {
    let mut dims = target.to_vec();
    let mut open = None;
    for (i, dim) in dims.iter_mut().enumerate() {
        match n.func().syms.as_int(*dim) {
            Some(0) if !allow_zero => {
                *dim = *own.get(i).ok_or_else(|| {
                    Problem::invalid(format!("the new shape keeps dim {i}, which the input lacks"))
                })?;
            }
            Some(-1) if open.is_some() => {
                return Err(Problem::invalid("the new shape has more than one -1"));
            }
            Some(-1) => open = Some(i),
            Some(d) if d < 0 => {
                return Err(Problem::invalid(format!("the new shape has the negative dim {d}")));
            }
            _ => {}
        }
    }
    if let Some(open) = open {
        let syms = &mut n.func().syms;
        let all = syms.product(own.iter().copied());
        let others =
            syms.product(dims.iter().enumerate().filter(|(i, _)| *i != open).map(|(_, &d)| d));
        dims[open] = match syms.as_int(others) {
            // NumPy leaves that open; nothing is in the tensor either way.
            Some(0) => syms.int(0),
            _ => syms.floordiv(all, others),
        };
    }
    Ok(dims)
}

/// The shape that a tensor of the run holds, as symbols: -1 and 0 are resolved by arithmetic on the tensor.
fn run_time_shape(n: &mut Node<'_, '_>, x: Expr, allow_zero: bool) -> Result<Vec<Sym>, Problem> {
    let target = n.tensor(1)?;
    let target = n.cast(target, DType::Int64)?;
    let rank = vector_length(n, target)?;
    let own = n.dims(x)?;
    let mut dims = target;
    if !allow_zero {
        // Dims beyond the input's rank cannot be kept; 0 stays 0 there.
        let zero = n.func().syms.int(0);
        let kept: Vec<Sym> = (0..rank).map(|i| own.get(i).copied().unwrap_or(zero)).collect();
        let kept = n.materialize(&SymTensor::vector(kept).into())?;
        let none = n.scalar(0i64)?;
        let keeps = n.op("relax.equal", &[dims, none])?;
        dims = n.op("relax.where", &[keeps, kept, dims])?;
    }
    let (minus, one) = (n.scalar(-1i64)?, n.scalar(1i64)?);
    let open = n.op("relax.equal", &[dims, minus])?;
    let known = n.op("relax.where", &[open, one, dims])?;
    let known = n.op("relax.prod", &[known])?;
    let known = n.op("relax.maximum", &[known, one])?;
    let all = n.func().syms.product(own);
    let all = n.materialize(&SymTensor::scalar(all).into())?;
    let rest = n.op("relax.floor_divide", &[all, known])?;
    let dims = n.op("relax.where", &[open, rest, dims])?;
    shape_symbols(n, dims, rank)
}

/// The elements of an int64 vector of the run as new symbols.
pub(super) fn shape_symbols(
    n: &mut Node<'_, '_>,
    vector: Expr,
    rank: usize,
) -> Result<Vec<Sym>, Problem> {
    let shape = n.op("relax.tensor_to_shape", &[vector])?;
    let func = n.func();
    let syms: Vec<Sym> = (0..rank)
        .map(|i| {
            let var = func.fresh_sym(&format!("d{i}"));
            func.syms.var(var)
        })
        .collect();
    let ty = func.intern(TypeData::shape(syms.clone()));
    n.im.builder.match_cast(shape, ty, "shape");
    Ok(syms)
}

/// How many elements a vector has, which must be a number.
pub(super) fn vector_length(n: &mut Node<'_, '_>, vector: Expr) -> Result<usize, Problem> {
    let dims = n.dims(vector)?;
    let length = match dims.as_slice() {
        [one] => n.func().syms.as_int(*one).and_then(|v| usize::try_from(v).ok()),
        _ => None,
    };
    length.ok_or_else(|| Problem::unsupported("the rank of its result is known only at run time"))
}

/// `Expand`: broadcasts both ways, so a dim of 1 in the new shape keeps the input's.
fn expand(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    let own = n.dims(x)?;
    let target = match n.syms(1) {
        Some(t) => t.elems,
        None => {
            let vector = n.tensor(1)?;
            let vector = n.cast(vector, DType::Int64)?;
            let rank = vector_length(n, vector)?;
            shape_symbols(n, vector, rank)?
        }
    };
    let rank = own.len().max(target.len());
    let one = n.func().syms.int(1);
    let at = |dims: &[Sym], i: usize| {
        if i + dims.len() < rank { one } else { dims[i + dims.len() - rank] }
    };
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        let (a, b) = (at(&own, i), at(&target, i));
        dims.push(broadcast(n, a, b)?);
    }
    let shape = n.func().shape(&dims);
    Ok(vec![n.op("relax.broadcast_to", &[x, shape])?.into()])
}

/// The dim that two broadcast to: where neither is known to be 1, it is found out when the program runs.
fn broadcast(n: &mut Node<'_, '_>, a: Sym, b: Sym) -> Result<Sym, Problem> {
    let syms = &mut n.func().syms;
    if a == b {
        return Ok(a);
    }
    Ok(match (syms.as_int(a), syms.as_int(b)) {
        (Some(1), _) => b,
        (_, Some(1)) => a,
        (Some(x), Some(y)) => {
            return Err(Problem::invalid(format!("dims {x} and {y} do not broadcast")));
        }
        (Some(_), None) => a,
        // The new shape says how large; the input is of that size, or 1.
        _ => {
            let one = syms.int(1);
            let keeps = syms.eq(b, one);
            syms.select(keeps, a, b)
        }
    })
}

fn constant_of_shape(n: &mut Node<'_, '_>) -> Converted {
    let value = match n.attrs().tensor("value")? {
        Some(proto) => {
            let limits = n.im.limits;
            tensor::read(proto, &mut n.im.external, &limits).map_err(Problem::invalid)?
        }
        None => Tensor::scalar(0f32).map_err(|e| Problem::invalid(e.to_string()))?,
    };
    let (dtype, value) =
        (value.dtype(), value.reshape(&[]).map_err(|e| Problem::invalid(e.to_string()))?);
    let dims = match n.syms(0) {
        Some(t) => t.elems,
        None => {
            let vector = n.tensor(0)?;
            let rank = vector_length(n, vector)?;
            shape_symbols(n, vector, rank)?
        }
    };
    // A short vector of integers may well go on into a shape.
    if dtype == DType::Int64
        && let Some(sizes) = sizes(n, &dims)
        && sizes.iter().product::<usize>() <= n.im.limits.shape_elements
        && let Ok([v]) = value.as_slice::<i64>()
    {
        let elem = n.func().syms.int(*v);
        let elems = vec![elem; sizes.iter().product()];
        return Ok(vec![SymTensor { shape: sizes, elems, dtype }.into()]);
    }
    let value = n.im.constant(&value);
    let shape = n.func().shape(&dims);
    let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
    Ok(vec![n.op_with("relax.full", &[shape, value], attrs)?.into()])
}

fn concat(n: &mut Node<'_, '_>) -> Converted {
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    if n.len() == 0 {
        return Err(Problem::invalid("it has no inputs"));
    }
    // Shape vectors stay symbols; a constant alone stays a constant.
    if (0..n.len()).any(|i| n.is_syms(i)) {
        let parts: Option<Vec<SymTensor>> = (0..n.len()).map(|i| n.syms(i)).collect();
        if let Some(parts) = parts
            && parts.iter().all(|p| p.shape.len() == 1)
        {
            let dtype = parts[0].dtype;
            let elems: Vec<Sym> = parts.into_iter().flat_map(|p| p.elems).collect();
            return Ok(vec![SymTensor { dtype, ..SymTensor::vector(elems) }.into()]);
        }
    }
    let parts = n.tensors()?;
    Ok(vec![n.concat(&parts, axis)?.into()])
}

/// `Split`: into given lengths, or so many equal parts (of which the last may be shorter since opset 18).
fn split(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let lengths: Option<Vec<Sym>> = match n.attrs().ints("split")? {
        Some(ints) => Some(ints.iter().map(|&v| n.func().syms.int(v)).collect()),
        None if n.has(1) => Some(
            n.syms(1)
                .ok_or_else(|| {
                    Problem::unsupported("the lengths of its parts are known only at run time")
                })?
                .elems,
        ),
        None => None,
    };
    let count = n.attrs().int("num_outputs")?.unwrap_or(n.proto.output.len() as i64);
    let lengths = match lengths {
        Some(lengths) => lengths,
        None => equal_parts(n, dims[axis], count)?,
    };
    let mut outputs = Vec::with_capacity(lengths.len());
    let mut from = n.func().syms.int(0);
    for length in lengths {
        let to = n.func().syms.add(from, length);
        outputs.push(slice_axis(n, x, axis, from, to)?.into());
        from = to;
    }
    Ok(outputs)
}

fn equal_parts(n: &mut Node<'_, '_>, dim: Sym, count: i64) -> Result<Vec<Sym>, Problem> {
    if count <= 0 {
        return Err(Problem::invalid("it splits into no parts"));
    }
    let syms = &mut n.func().syms;
    let parts = syms.int(count);
    let whole = syms.ceildiv(dim, parts);
    let before = syms.int(count - 1);
    let taken = syms.mul(whole, before);
    let last = syms.sub(dim, taken);
    let mut lengths = vec![whole; count as usize - 1];
    lengths.push(last);
    Ok(lengths)
}

/// Elements `from` to `to` along one axis.
pub(super) fn slice_axis(
    n: &mut Node<'_, '_>,
    x: Expr,
    axis: usize,
    from: Sym,
    to: Sym,
) -> Result<Expr, Problem> {
    let func = n.func();
    let (axis, one) = (func.syms.int(axis as i64), func.syms.int(1));
    let [axes, begin, end, strides] = [axis, from, to, one].map(|v| func.shape(&[v]));
    n.op("relax.strided_slice", &[x, axes, begin, end, strides])
}

fn flatten(n: &mut Node<'_, '_>) -> Converted {
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.attrs().int("axis")?.unwrap_or(1);
    let at = if axis == dims.len() as i64 { dims.len() } else { n.axis(axis, dims.len())? };
    let syms = &mut n.func().syms;
    let (rows, columns) =
        (syms.product(dims[..at].iter().copied()), syms.product(dims[at..].iter().copied()));
    Ok(vec![n.reshape(x, &[rows, columns])?.into()])
}

fn squeeze(n: &mut Node<'_, '_>) -> Converted {
    let axes = n.ints_of("axes", 1)?;
    if n.is_syms(0)
        && let Some(t) = n.syms(0)
    {
        let rank = t.shape.len();
        let drop = normal_axes(n, axes.as_deref(), rank)?;
        let keep = |i: usize| match &drop {
            Some(drop) => !drop.contains(&i),
            None => t.shape[i] != 1,
        };
        let shape = (0..rank).filter(|&i| keep(i)).map(|i| t.shape[i]).collect();
        if let Some(t) = t.reshaped(shape) {
            return Ok(vec![t.into()]);
        }
    }
    let x = n.tensor(0)?;
    let axes = axes.map_or(AttrValue::None, AttrValue::ints);
    Ok(vec![n.op_with("relax.squeeze", &[x], Attrs::default().with("axis", axes))?.into()])
}

fn normal_axes(
    n: &Node<'_, '_>,
    axes: Option<&[i64]>,
    rank: usize,
) -> Result<Option<Vec<usize>>, Problem> {
    axes.map(|axes| axes.iter().map(|&a| n.axis(a, rank)).collect()).transpose()
}

fn unsqueeze(n: &mut Node<'_, '_>) -> Converted {
    let axes = n.ints_of("axes", 1)?.ok_or_else(|| Problem::invalid("'axes' is missing"))?;
    if n.is_syms(0)
        && let Some(t) = n.syms(0)
    {
        let rank = t.shape.len() + axes.len();
        let new = normal_axes(n, Some(&axes), rank)?.unwrap_or_default();
        let mut old = t.shape.iter().copied();
        let shape: Vec<usize> =
            (0..rank).map(|i| if new.contains(&i) { 1 } else { old.next().unwrap_or(1) }).collect();
        if let Some(t) = t.reshaped(shape) {
            return Ok(vec![t.into()]);
        }
    }
    let x = n.tensor(0)?;
    let attrs = Attrs::default().with("axis", AttrValue::ints(axes));
    Ok(vec![n.op_with("relax.expand_dims", &[x], attrs)?.into()])
}

fn transpose(n: &mut Node<'_, '_>) -> Converted {
    let perm = n.attrs().ints("perm")?.map(<[i64]>::to_vec);
    if n.is_syms(0)
        && let Some(t) = n.syms(0)
    {
        let rank = t.shape.len();
        let perm =
            normal_axes(n, perm.as_deref(), rank)?.unwrap_or_else(|| (0..rank).rev().collect());
        if perm.len() == rank {
            let shape = perm.iter().map(|&a| t.shape[a]).collect();
            let moved = t.gathered(shape, |index| {
                let mut from = vec![0; rank];
                perm.iter().zip(index).for_each(|(&a, &i)| from[a] = i);
                from
            });
            return Ok(vec![moved.into()]);
        }
    }
    let x = n.tensor(0)?;
    let axes = perm.map_or(AttrValue::None, AttrValue::ints);
    Ok(vec![n.op_with("relax.permute_dims", &[x], Attrs::default().with("axes", axes))?.into()])
}

fn tile(n: &mut Node<'_, '_>) -> Converted {
    let repeats = n.syms(1).ok_or_else(|| {
        Problem::unsupported("how often it repeats its input is known only at run time")
    })?;
    let x = n.tensor(0)?;
    if let Some(counts) = repeats.constants(&n.func().syms) {
        let attrs = Attrs::default().with("repeats", AttrValue::ints(counts));
        return Ok(vec![n.op_with("relax.tile", &[x], attrs)?.into()]);
    }
    // (d) as (1, d), broadcast to (r, d), as (r * d).
    let dims = n.dims(x)?;
    if dims.len() != repeats.elems.len() {
        return Err(Problem::invalid("'repeats' must have a number for each dim"));
    }
    let one = n.func().syms.int(1);
    let pairs = |first: &[Sym]| -> Vec<Sym> {
        first.iter().zip(&dims).flat_map(|(&a, &d)| [a, d]).collect()
    };
    let (apart, wide) = (pairs(&vec![one; dims.len()]), pairs(&repeats.elems));
    let whole: Vec<Sym> =
        repeats.elems.iter().zip(&dims).map(|(&r, &d)| n.func().syms.mul(r, d)).collect();
    let y = n.reshape(x, &apart)?;
    let shape = n.func().shape(&wide);
    let y = n.op("relax.broadcast_to", &[y, shape])?;
    Ok(vec![n.reshape(y, &whole)?.into()])
}

/// `Range`: of symbols where its bounds are, else of what a run computes.
fn range(n: &mut Node<'_, '_>) -> Converted {
    let known: Option<Vec<Sym>> =
        (0..3).map(|i| n.syms(i).and_then(|t| t.elems.first().copied())).collect();
    if let Some(bounds) = known {
        let dtype = n.syms(0).map_or(DType::Int64, |t| t.dtype);
        let args: Vec<Expr> = bounds.iter().map(|&b| n.func().int_value(b, DType::Int64)).collect();
        let attrs = Attrs::default().with("dtype", AttrValue::DType(dtype));
        return Ok(vec![n.op_with("relax.arange", &args, attrs)?.into()]);
    }
    // start + step * (0 .. count), where count is a number of the run.
    let [start, limit, step] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    let dtype = n.dtype(start)?;
    let span = n.op("relax.subtract", &[limit, start])?;
    let count = if dtype.is_integer() {
        // Rounded up: -((-span) // step).
        let minus = n.op("relax.negative", &[span])?;
        let down = n.op("relax.floor_divide", &[minus, step])?;
        n.op("relax.negative", &[down])?
    } else {
        let turns = n.op("relax.divide", &[span, step])?;
        n.op("relax.ceil", &[turns])?
    };
    let count = n.cast(count, DType::Int64)?;
    let zero = n.scalar(0i64)?;
    let count = n.op("relax.maximum", &[count, zero])?;
    let one = n.func().syms.int(1);
    let count = n.reshape(count, &[one])?;
    let length = shape_symbols(n, count, 1)?;
    let zero = n.func().syms.int(0);
    let args: Vec<Expr> =
        [zero, length[0], one].iter().map(|&b| n.func().int_value(b, DType::Int64)).collect();
    let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int64));
    let steps = n.op_with("relax.arange", &args, attrs)?;
    let steps = n.cast(steps, dtype)?;
    let scaled = n.op("relax.multiply", &[steps, step])?;
    Ok(vec![n.op("relax.add", &[scaled, start])?.into()])
}

fn depth_to_space(n: &mut Node<'_, '_>) -> Converted {
    let (x, [b, c, h, w], k) = blocks(n)?;
    let column_row = n.attrs().choice("mode", &["DCR", "CRD"])? == "CRD";
    let syms = &mut n.func().syms;
    let area = syms.mul(k, k);
    let rest = syms.floordiv(c, area);
    let (tall, wide) = (syms.mul(h, k), syms.mul(w, k));
    let (apart, order) = if column_row {
        ([b, rest, k, k, h, w], [0, 1, 4, 2, 5, 3])
    } else {
        ([b, k, k, rest, h, w], [0, 3, 4, 1, 5, 2])
    };
    let y = n.reshape(x, &apart)?;
    let y = n.permute(y, &order)?;
    Ok(vec![n.reshape(y, &[b, rest, tall, wide])?.into()])
}

fn space_to_depth(n: &mut Node<'_, '_>) -> Converted {
    let (x, [b, c, h, w], k) = blocks(n)?;
    let syms = &mut n.func().syms;
    let (low, narrow) = (syms.floordiv(h, k), syms.floordiv(w, k));
    let area = syms.mul(k, k);
    let deep = syms.mul(c, area);
    let y = n.reshape(x, &[b, c, low, k, narrow, k])?;
    let y = n.permute(y, &[0, 3, 5, 1, 2, 4])?;
    Ok(vec![n.reshape(y, &[b, deep, low, narrow])?.into()])
}

fn blocks(n: &mut Node<'_, '_>) -> Result<(Expr, [Sym; 4], Sym), Problem> {
    let size = n.attrs().int("blocksize")?.unwrap_or(0);
    if size <= 0 {
        return Err(Problem::invalid("attribute 'blocksize' must be positive"));
    }
    let x = n.tensor(0)?;
    let dims: [Sym; 4] = n
        .dims(x)?
        .try_into()
        .map_err(|d: Vec<Sym>| Problem::invalid(format!("it takes 4 dims, not {}", d.len())))?;
    let size = n.func().syms.int(size);
    Ok((x, dims, size))
}
