//! Converters of operators that gather and scatter elements, including `Compress`.

use pliant_ir::{AttrValue, Attrs, DType};

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value};
use crate::node::{ConvertResult, Node, ints_attr};

pub(super) static OPS: &[OnnxOp] = &[
    op("Compress", compress),
    op("Gather", gather),
    op("GatherElements", gather_elements),
    op("GatherND", gather_nd),
    op("Scatter", scatter_elements),
    op("ScatterElements", scatter_elements),
    op("ScatterND", scatter_nd),
    op("TensorScatter", tensor_scatter),
];

fn gather(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?.unwrap_or(0);
    if let Some(part) = gather_symbolic(n, axis)? {
        return Ok(vec![part]);
    }
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let axis = n.axis(axis, rank)?;
    let indices = n.tensor(1)?;
    Ok(vec![n.take(x, indices, axis)?.into()])
}

/// Folds a gather whose input is a shape computation. `None` if an index is non-constant.
fn gather_symbolic(n: &mut Node<'_, '_>, axis: i64) -> Result<Option<Value>, Problem> {
    if !n.is_symbolic(0) {
        return Ok(None);
    }
    let (Some(t), Some(indices)) = (n.symbolic(0), n.symbolic(1)) else { return Ok(None) };
    let Some(positions) = indices.constants(&n.func().syms) else { return Ok(None) };
    let axis = n.axis(axis, t.shape.len())?;
    let size = t.shape[axis] as i64;
    let mut normal = Vec::with_capacity(positions.len());
    for i in positions {
        if i < -size || i >= size {
            let message = format!("index {i} is out of range for axis {axis} of size {size}");
            return Err(Problem::invalid(message));
        }
        normal.push(i.rem_euclid(size) as usize);
    }
    let inner = indices.shape.len();
    let shape: Vec<usize> =
        t.shape[..axis].iter().chain(&indices.shape).chain(&t.shape[axis + 1..]).copied().collect();
    let taken = t.gather(shape, |index| {
        let flat =
            index[axis..axis + inner].iter().zip(&indices.shape).fold(0, |at, (&i, &d)| at * d + i);
        let mut from = index[..axis].to_vec();
        from.push(normal[flat]);
        from.extend(&index[axis + inner..]);
        from
    });
    Ok(Some(taken.into()))
}

fn gather_elements(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), rank)?;
    let indices = n.tensor(1)?;
    let attrs = ints_attr("axis", axis as i64);
    Ok(vec![n.op_with("relax.gather_elements", &[x, indices], attrs)?.into()])
}

fn gather_nd(n: &mut Node<'_, '_>) -> ConvertResult {
    let batch = n.attrs().int("batch_dims")?.unwrap_or(0);
    let (x, indices) = (n.tensor(0)?, n.tensor(1)?);
    let attrs = ints_attr("batch_dims", batch);
    let (rank, dims) = (n.rank(x)? as i64, n.dims_with_min_rank(indices, 1)?);
    let depth = dims[dims.len() - 1];
    let max_value = rank.saturating_sub(batch).max(1);
    if n.func().syms.as_int(depth).is_some() {
        return Ok(vec![n.op_with("relax.gather_nd", &[x, indices], attrs)?.into()]);
    }
    // The last dim of the indices determines the rank of the result, so each possible size gets a branch of its own.
    let (one, all) = (n.func().syms.int(1), n.func().syms.int(max_value));
    n.require_at_most(
        one,
        depth,
        "the last dim of the indices (input 1) must be at least {}, but is {}",
    )?;
    let text = "the last dim of the indices (input 1) is {}, but the data (input 0) has only {} dims to index";
    n.require_at_most(depth, all, text)?;
    let branch_index = n.func().syms.sub(depth, one);
    let branch_index = n.size_scalar(branch_index)?;
    let dtype = n.dtype(indices)?;
    let y = n.select_by_value(branch_index, 0, max_value as usize, &mut |n, at| {
        let mut dims = dims.clone();
        dims.pop();
        dims.push(n.func().syms.int(at as i64 + 1));
        let typed_indices = n.object_to_tensor(indices, Some(&dims), dtype);
        n.op_with("relax.gather_nd", &[x, typed_indices], attrs.clone())
    })?;
    Ok(vec![y.into()])
}

/// Folds a scatter whose input is a shape computation; `None` if it cannot be folded.
fn scatter_symbolic(n: &mut Node<'_, '_>) -> Option<SymTensor> {
    let (mut t, positions, updates) = (n.symbolic(0)?, n.const_ints(1)?, n.symbolic(2)?);
    let plain = t.shape.len() == 1 && n.attrs().str("reduction").ok()?.is_none_or(|r| r == "none");
    if !plain || updates.dtype != t.dtype || updates.elems.len() != positions.len() {
        return None;
    }
    let length = t.elems.len() as i64;
    for (position, update) in positions.into_iter().zip(updates.elems) {
        let position = if position < 0 { position.checked_add(length)? } else { position };
        *t.elems.get_mut(usize::try_from(position).ok()?)? = update;
    }
    Some(t)
}

fn scatter_elements(n: &mut Node<'_, '_>) -> ConvertResult {
    if n.is_symbolic(0)
        && n.axis(n.attrs().int("axis")?.unwrap_or(0), 1).is_ok()
        && let Some(t) = scatter_symbolic(n)
    {
        return Ok(vec![t.into()]);
    }
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), rank)?;
    let indices = n.tensor(1)?;
    let updates = n.tensor(2)?;
    let attrs = ints_attr("axis", axis as i64).with("reduction", reduction(n)?);
    Ok(vec![n.op_with("relax.scatter_elements", &[x, indices, updates], attrs)?.into()])
}

fn scatter_nd(n: &mut Node<'_, '_>) -> ConvertResult {
    if n.is_symbolic(0)
        && n.constant(1).is_some_and(|t| t.shape().last() == Some(&1))
        && let Some(t) = scatter_symbolic(n)
    {
        return Ok(vec![t.into()]);
    }
    let [x, indices, updates] = [n.tensor(0)?, n.tensor(1)?, n.tensor(2)?];
    if let Ok(dims) = n.dims(indices)
        && dims.last().is_some_and(|&last| n.func().syms.as_int(last).is_none())
    {
        return Err(Problem::known_only_at_run_time("the last dim of the indices (input 1)")
            .with_help(
                "give the dim a fixed size, in the model file or (for a model input) in the importer's argument dynamic_shapes",
            ));
    }
    let attrs = Attrs::default().with("reduction", reduction(n)?);
    Ok(vec![n.op_with("relax.scatter_nd", &[x, indices, updates], attrs)?.into()])
}

/// Reads the attribute `reduction` of a scatter node, translated to the name of the reduction in
/// Relax.
fn reduction(n: &Node<'_, '_>) -> Result<AttrValue, Problem> {
    let kind = n.attrs().choice("reduction", &["none", "add", "mul", "min", "max"])?;
    Ok(AttrValue::str(if kind == "none" { "update" } else { kind }))
}

/// Converts `Compress`: selects the slices along an axis, or the elements, for which a bool vector
/// is true.
fn compress(n: &mut Node<'_, '_>) -> ConvertResult {
    let (mut x, cond) = (n.tensor(0)?, n.tensor(1)?);
    let dims = n.dims(x)?;
    let axis = match n.attrs().int("axis")? {
        Some(axis) => n.axis(axis, dims.len())?,
        None => {
            let all = n.func().syms.product(dims);
            x = n.reshape(x, &[all])?;
            0
        }
    };
    // If the condition is constant, the axis must contain the last selected position.
    let last = n.const_ints(1).and_then(|c| c.iter().rposition(|&c| c != 0));
    if let (Some(last), Ok(input_dims)) = (last, n.dims(x)) {
        let min = n.func().syms.int(last as i64 + 1);
        let cond = n.func().syms.le(min, input_dims[axis]);
        n.importer.record_constraint(cond);
    }
    let positions = n.op("relax.nonzero", &[cond])?;
    let count = n.dims(positions)?[1];
    let positions = n.reshape(positions, &[count])?;
    Ok(vec![n.take(x, positions, axis)?.into()])
}

/// Converts `TensorScatter`: writes updates to a cache along an axis, starting at a separate position for each batch element.
fn tensor_scatter(n: &mut Node<'_, '_>) -> ConvertResult {
    let circular = n.attrs().choice("mode", &["linear", "circular"])? == "circular";
    let (cache, update) = (n.tensor(0)?, n.tensor(1)?);
    let dims = n.dims_with_min_rank(cache, 2)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(-2), dims.len())?;
    if axis == 0 {
        return Err(Problem::attribute("attribute 'axis' must not name axis 0, the batch axis"));
    }
    let length = n.dims_with_min_rank(update, dims.len())?[axis];
    let text =
        "the update (input 1) has {} positions along the axis, but the cache (input 0) has {}";
    n.require_at_most(length, dims[axis], text)?;
    let first = match n.optional_tensor(2)? {
        Some(first) => {
            let first = n.cast(first, DType::Int64)?;
            let zero_scalar = n.scalar(0i64)?;
            let non_negative = n.op("relax.greater_equal", &[first, zero_scalar])?;
            n.require(non_negative, "'write_indices' must not be negative, but are {}", &[first])?;
            first
        }
        None => {
            let zero = n.scalar_as(0.0, DType::Int64)?;
            n.full(&dims[..1], zero)?
        }
    };
    let first = match circular {
        true => {
            // The modulus must not be 0. An axis of size 0 has no positions, so nothing is written.
            let (size, one) = (n.size_scalar(dims[axis])?, n.scalar(1i64)?);
            let size = n.op("relax.maximum", &[size, one])?;
            n.op("relax.floor_mod", &[first, size])?
        }
        false => first,
    };
    let attrs = ints_attr("axis", axis as i64).with("circular", AttrValue::Bool(circular));
    Ok(vec![n.op_with("relax.tensor_scatter", &[cache, update, first], attrs)?.into()])
}
