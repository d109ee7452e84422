//! Converters of operators on sequences and optionals. These values are eliminated during the import if their length or presence is
//! known. Otherwise they are opaque objects.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_sym::Sym;
use pliant_tensor::Tensor;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::{SymTensor, Value};
use crate::node::{ConvertResult, ExprResult, Node};
use crate::sequence_optional_types::ObjectType;
use pliant_kernel_api::host_function_names;

pub(super) static OPS: &[OnnxOp] = &[
    op("ConcatFromSequence", concat_from_sequence),
    op("Optional", |n| Ok(vec![n.input(0)])),
    op("OptionalGetElement", optional_get_element),
    op("OptionalHasElement", optional_has_element),
    op("SequenceAt", sequence_at),
    op("SequenceConstruct", |n| {
        let items = (0..n.len()).map(|i| n.value(i)).collect::<Result<_, _>>()?;
        Ok(vec![Value::Sequence(items)])
    }),
    op("SequenceEmpty", |_| Ok(vec![Value::Sequence(Vec::new())])),
    op("SequenceErase", sequence_erase),
    op("SequenceInsert", sequence_insert),
    op("SequenceLength", sequence_length),
    op("SplitToSequence", split_to_sequence),
];

// ---- optionals ----

fn optional_has_element(n: &mut Node<'_, '_>) -> ConvertResult {
    match n.input(0) {
        Value::Object(e, ObjectType::Optional(_)) => {
            let has = n.call_host(host_function_names::OPTIONAL_HAS, &[e])?;
            Ok(vec![n.object_to_tensor(has, Some(&[]), DType::Bool).into()])
        }
        value => {
            let has = !matches!(value, Value::Absent);
            let tensor = Tensor::scalar(has).map_err(|e| Problem::invalid(e.to_string()))?;
            Ok(vec![Value::Const(tensor)])
        }
    }
}

fn optional_get_element(n: &mut Node<'_, '_>) -> ConvertResult {
    match n.value(0)? {
        Value::Object(e, ObjectType::Optional(object_type)) => {
            let content = n.call_host(host_function_names::OPTIONAL_GET, &[e])?;
            Ok(vec![n.value_of_object(content, &object_type)?])
        }
        other => Ok(vec![other]),
    }
}

// ---- sequences ----

/// A sequence, which is input 0 of a node.
enum Sequence {
    /// A sequence whose items are known when the model is imported.
    Known(Vec<Value>),
    /// A sequence that is an object at run time: the object, and the type of its items.
    Dynamic(Expr, ObjectType),
}

fn sequence_input(n: &Node<'_, '_>) -> Result<Sequence, Problem> {
    match n.value(0)? {
        Value::Sequence(items) => Ok(Sequence::Known(items)),
        Value::Object(e, ObjectType::Sequence(object_type)) => {
            Ok(Sequence::Dynamic(e, *object_type))
        }
        Value::Object(_, object_type) => Err(Problem::invalid(format!(
            "input 0 must be a sequence, but is {}",
            object_type.name()
        ))),
        _ => Err(Problem::invalid("input 0 must be a sequence, but is a tensor")),
    }
}

/// Converts input 0, which must be a sequence, to an object.
fn sequence_object(n: &mut Node<'_, '_>) -> Result<(Expr, ObjectType), Problem> {
    let value = n.value(0)?;
    match n.object_of_value(&value)? {
        (e, ObjectType::Sequence(object_type)) => Ok((e, *object_type)),
        (_, object_type) => Err(Problem::invalid(format!(
            "input 0 must be a sequence, but is {}",
            object_type.name()
        ))),
    }
}

/// The constant position in a sequence of `count` items that input `i` contains; `None` if the input is non-constant. `default` is
/// the position for an absent input.
fn constant_position(
    n: &Node<'_, '_>,
    i: usize,
    count: usize,
    default: Option<usize>,
) -> Result<Option<usize>, Problem> {
    if let (false, Some(end)) = (n.has_input(i), default) {
        return Ok(Some(end));
    }
    let Some(index) = n.const_ints(i).and_then(|v| v.first().copied()) else { return Ok(None) };
    let position = if index < 0 { index.saturating_add(count as i64) } else { index };
    let position = usize::try_from(position).ok().filter(|&p| p < count);
    position.map(Some).ok_or_else(|| {
        Problem::invalid(format!(
            "position {index} is out of range for a sequence of {count} items"
        ))
    })
}

/// Converts input `i`, a position in a sequence, to an operand of a runtime function: the null value if the input is absent.
fn position_operand(n: &mut Node<'_, '_>, i: usize) -> ExprResult {
    if n.has_input(i) { n.tensor(i) } else { n.null_value() }
}

fn sequence_at(n: &mut Node<'_, '_>) -> ConvertResult {
    if let Sequence::Known(items) = sequence_input(n)?
        && let Some(position) = constant_position(n, 1, items.len(), None)?
    {
        return Ok(vec![items[position].clone()]);
    }
    let (items, object_type) = sequence_object(n)?;
    let position = n.tensor(1)?;
    let item = n.call_host(host_function_names::SEQUENCE_AT, &[items, position])?;
    Ok(vec![n.value_of_object(item, &object_type)?])
}

fn sequence_erase(n: &mut Node<'_, '_>) -> ConvertResult {
    if let Sequence::Known(mut items) = sequence_input(n)? {
        if items.is_empty() {
            return Err(Problem::invalid(
                "the sequence (input 0) is empty, so no item can be erased from it",
            ));
        }
        if let Some(position) = constant_position(n, 1, items.len(), Some(items.len() - 1))? {
            items.remove(position);
            return Ok(vec![Value::Sequence(items)]);
        }
    }
    let (items, object_type) = sequence_object(n)?;
    let position = position_operand(n, 1)?;
    let rest = n.call_host(host_function_names::SEQUENCE_ERASE, &[items, position])?;
    Ok(vec![Value::Object(rest, ObjectType::Sequence(Box::new(object_type)))])
}

fn sequence_insert(n: &mut Node<'_, '_>) -> ConvertResult {
    let item = n.value(1)?;
    if let Sequence::Known(mut items) = sequence_input(n)? {
        let end = items.len();
        if let Some(index) = n.const_ints(2).and_then(|v| v.first().copied()) {
            // A negative position is relative to the number of items, not to the number of insertion positions.
            let position = if index < 0 { index.saturating_add(end as i64) } else { index };
            let position =
                usize::try_from(position).ok().filter(|&p| p <= end).ok_or_else(|| {
                    Problem::invalid(format!(
                        "position {index} is out of range for a sequence of {end} items"
                    ))
                })?;
            items.insert(position, item);
            return Ok(vec![Value::Sequence(items)]);
        }
        if !n.has_input(2) {
            items.push(item);
            return Ok(vec![Value::Sequence(items)]);
        }
    }
    let (items, object_type) = sequence_object(n)?;
    let (item, item_type) = n.object_of_value(&item)?;
    let position = position_operand(n, 2)?;
    let more = n.call_host(host_function_names::SEQUENCE_INSERT, &[items, item, position])?;
    Ok(vec![Value::Object(more, ObjectType::Sequence(Box::new(object_type.join(&item_type)?)))])
}

fn sequence_length(n: &mut Node<'_, '_>) -> ConvertResult {
    match sequence_input(n)? {
        Sequence::Known(items) => {
            let length = n.func().syms.int(items.len() as i64);
            Ok(vec![SymTensor::scalar(length).into()])
        }
        Sequence::Dynamic(e, _) => {
            let length = n.call_host(host_function_names::SEQUENCE_LENGTH, &[e])?;
            Ok(vec![n.object_to_tensor(length, Some(&[]), DType::Int64).into()])
        }
    }
}

fn concat_from_sequence(n: &mut Node<'_, '_>) -> ConvertResult {
    let axis = n.attrs().int("axis")?;
    let axis = axis.ok_or_else(|| Problem::attribute("attribute 'axis' is missing"))?;
    let new = n.attrs().int("new_axis")?.unwrap_or(0) != 0;
    let items = match sequence_input(n)? {
        Sequence::Known(items) => items,
        Sequence::Dynamic(items, object_type) => {
            return concat_dynamic(n, items, &object_type, axis, new);
        }
    };
    let mut parts: Vec<Expr> = Vec::new();
    for item in items {
        parts.push(n.materialize(&item)?);
    }
    if parts.is_empty() {
        return Err(Problem::invalid(
            "the sequence (input 0) is empty, so its items cannot be concatenated",
        ));
    }
    if !new {
        let rank = n.rank(parts[0])?;
        n.axis(axis, rank)?;
        return Ok(vec![n.concat(&parts, axis)?.into()]);
    }
    let tuple = n.func().tuple(&parts);
    let attrs = Attrs::default().with("axis", AttrValue::Int(axis));
    Ok(vec![n.op_with("relax.stack", &[tuple], attrs)?.into()])
}

/// Converts `ConcatFromSequence` of a sequence whose length is known only at run time.
fn concat_dynamic(
    n: &mut Node<'_, '_>,
    items: Expr,
    object_type: &ObjectType,
    axis: i64,
    new: bool,
) -> ConvertResult {
    let ObjectType::Tensor { dtype, narrow, dims } = object_type else {
        return Err(Problem::invalid(format!(
            "the items of the sequence (input 0) must be tensors, but each is {}",
            object_type.name()
        )));
    };
    let whole = match dims.clone() {
        Some(mut dims) => {
            let at = n.axis(axis, dims.len() + usize::from(new))?;
            if new {
                dims.insert(at, None);
            } else {
                dims[at] = None;
            }
            Some(dims)
        }
        None => None,
    };
    let (axis, new) = (n.int_operand(axis), n.int_operand(i64::from(new)));
    let joined = n.call_host(host_function_names::SEQUENCE_CONCAT, &[items, axis, new])?;
    let object_type = ObjectType::Tensor { dtype: *dtype, narrow: *narrow, dims: whole };
    Ok(vec![n.value_of_object(joined, &object_type)?])
}

/// Converts `SplitToSequence`: splits a tensor along an axis. A vector `split` contains the length of each part; a scalar `split`
/// is the length of all parts. Without `split`, the parts have length 1, and lose the axis unless `keepdims` is set.
fn split_to_sequence(n: &mut Node<'_, '_>) -> ConvertResult {
    let keep = n.attrs().int("keepdims")?.unwrap_or(1) != 0;
    let x = n.tensor(0)?;
    let dims = n.dims(x)?;
    let axis = n.axis(n.attrs().int("axis")?.unwrap_or(0), dims.len())?;
    let size = n.func().syms.as_int(dims[axis]).filter(|&s| s <= MAX_UNROLLED_PARTS);
    let lengths: Vec<i64> = match (n.const_ints(1), n.has_input(1), size) {
        (Some(lengths), _, _) if n.constant(1).is_some_and(|t| t.ndim() == 1) => lengths,
        (Some(each), _, Some(size)) => equal_parts(size, each.first().copied().unwrap_or(1))?,
        (None, false, Some(size)) => equal_parts(size, 1)?,
        _ => return split_dynamic(n, x, &dims, axis, keep),
    };
    let all = lengths.iter().try_fold(0i64, |sum, &length| sum.checked_add(length));
    let all =
        all.ok_or_else(|| Problem::invalid("the sum of the lengths in 'split' overflows int64"))?;
    let all = n.func().syms.int(all);
    let text = "the lengths in 'split' sum to {}, but the axis that is split has {} elements";
    n.require_equal(all, dims[axis], text)?;
    let drops = !n.has_input(1) && !keep;
    let mut items = Vec::with_capacity(lengths.len());
    let mut from = 0i64;
    for length in lengths {
        let to = from.checked_add(length).filter(|_| length >= 0);
        let to = to.ok_or_else(|| {
            Problem::invalid(format!("'split' contains the negative length {length}"))
        })?;
        let (a, b) = (n.func().syms.int(from), n.func().syms.int(to));
        let mut part = n.slice_axis(x, axis, a, b)?;
        if drops {
            let attrs = Attrs::default().with("axis", AttrValue::ints([axis as i64]));
            part = n.op_with("relax.squeeze", &[part], attrs)?;
        }
        items.push(part.into());
        from = to;
    }
    Ok(vec![Value::Sequence(items)])
}

/// Maximum size of an axis that is split into slices during the import. Longer axes are split at run time.
const MAX_UNROLLED_PARTS: i64 = 1024;

/// The lengths of the parts if an axis of the given size is split into parts of `each` elements. The last part may be smaller.
fn equal_parts(size: i64, each: i64) -> Result<Vec<i64>, Problem> {
    if each < 1 {
        return Err(Problem::invalid(format!(
            "'split', the length of the parts, must be positive, but is {each}"
        )));
    }
    Ok((0..size).step_by(each as usize).map(|from| each.min(size - from)).collect())
}

/// Converts `SplitToSequence` if its parts are only known at run time.
fn split_dynamic(
    n: &mut Node<'_, '_>,
    x: Expr,
    dims: &[Sym],
    axis: usize,
    keep: bool,
) -> ConvertResult {
    let index = n.has_input(1);
    let lengths = if index { n.tensor(1)? } else { n.null_value()? };
    let (at, kept) = (n.int_operand(axis as i64), n.int_operand(i64::from(keep)));
    let parts = n.call_host(host_function_names::SEQUENCE_SPLIT, &[x, lengths, at, kept])?;
    let mut item_dims: Vec<Option<Sym>> = dims.iter().copied().map(Some).collect();
    match index || keep {
        true => item_dims[axis] = None,
        false => drop(item_dims.remove(axis)),
    }
    let object_type =
        ObjectType::Tensor { dtype: n.dtype(x)?, narrow: None, dims: Some(item_dims) };
    Ok(vec![Value::Object(parts, ObjectType::Sequence(Box::new(object_type)))])
}
