//! Host functions on sequences of non-constant length, which are tuples at run time, and on optionals, which hold a
//! value or `None`.

use std::ptr;

use pliant_kernel_api::host_function_names;
use pliant_tensor::{DType, Tensor, contiguous_strides};
use pliant_vm::{CheckKind, Value, VmError};

use super::{Outcome, argument_error, integer, value_error};

/// Maximum number of parts into which a tensor is split. It bounds the work on empty tensors, whose axes may have any
/// size.
const MAX_PARTS: i64 = 1 << 24;
/// Maximum number of part lengths that the error message of a split lists.
const MAX_SHOWN_LENGTHS: usize = 16;

/// Implements `pliant.sequence`, called with `(items...)`: returns a sequence of the items.
pub(super) fn make(args: &[Value]) -> Outcome {
    Ok(Value::tuple(args.iter().cloned()))
}

/// Returns the position that an operand specifies in a sequence of `length` items. Negative positions count from the end. A
/// position of `count` or more is an error; `count` is the number of valid positions.
fn position(operand: &Value, length: usize, count: usize) -> Result<usize, VmError> {
    let Value::Tensor(operand) = operand else {
        return Err(value_error(format!(
            "the position in a sequence must be a tensor, not {}",
            operand.kind()
        )));
    };
    let index = integer(operand, "the position in a sequence")?;
    let position = if index < 0 { index.saturating_add(length as i64) } else { index };
    usize::try_from(position).ok().filter(|&p| p < count).ok_or_else(|| {
        let text = format!("position {index} is out of range for a sequence of {length} items");
        VmError::check(CheckKind::Index, text)
    })
}

/// Implements `pliant.sequence.insert`, called with `(sequence, item, position)`: returns the sequence with the item inserted at
/// the position, or at the end if the position is absent ([`Value::None`]).
pub(super) fn insert(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), item, index] = args else {
        return Err(argument_error(host_function_names::SEQUENCE_INSERT, args));
    };
    let length = items.len();
    let index =
        if matches!(index, Value::None) { length } else { position(index, length, length + 1)? };
    let (before, after) = items.split_at(index);
    Ok(Value::tuple(before.iter().chain([item]).chain(after).cloned()))
}

/// Implements `pliant.sequence.erase`, called with `(sequence, position)`: returns the sequence without the item at the position,
/// or without the last item if the position is absent ([`Value::None`]).
pub(super) fn erase(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), index] = args else {
        return Err(argument_error(host_function_names::SEQUENCE_ERASE, args));
    };
    let length = items.len();
    let index = match index {
        Value::None => length
            .checked_sub(1)
            .ok_or_else(|| value_error("an item cannot be erased from an empty sequence"))?,
        index => position(index, length, length)?,
    };
    let remaining = items.iter().enumerate().filter(|(i, _)| *i != index);
    Ok(Value::tuple(remaining.map(|(_, item)| item.clone())))
}

/// Implements `pliant.sequence.at`, called with `(sequence, position)`: returns the item at the position.
pub(super) fn at(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), at] = args else {
        return Err(argument_error(host_function_names::SEQUENCE_AT, args));
    };
    Ok(items[position(at, items.len(), items.len())?].clone())
}

/// Implements `pliant.sequence.length`, called with `(sequence)`: returns the length of the sequence as an int64 scalar.
pub(super) fn length(args: &[Value]) -> Outcome {
    let [Value::Tuple(items)] = args else {
        return Err(argument_error(host_function_names::SEQUENCE_LENGTH, args));
    };
    Ok(Value::Tensor(Tensor::scalar(items.len() as i64)?))
}

/// Implements `pliant.optional.has`, called with `(optional)`: returns whether the optional holds a value, as a bool scalar.
pub(super) fn has(args: &[Value]) -> Outcome {
    let [value] = args else { return Err(argument_error(host_function_names::OPTIONAL_HAS, args)) };
    Ok(Value::Tensor(Tensor::scalar(!matches!(value, Value::None))?))
}

/// Implements `pliant.optional.get`, called with `(optional)`: returns the value that the optional holds.
pub(super) fn get(args: &[Value]) -> Outcome {
    match args {
        [Value::None] => Err(value_error("the optional is empty, so it has no value to return")),
        [value] => Ok(value.clone()),
        _ => Err(argument_error(host_function_names::OPTIONAL_GET, args)),
    }
}

/// Normalizes an axis of a tensor of rank `rank`; negative axes count from the end.
fn axis_of(axis: i64, rank: usize) -> Result<usize, VmError> {
    let normal = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(normal).ok().filter(|&a| a < rank).ok_or_else(|| {
        value_error(format!(
            "the axis of a sequence operation is {axis}, which is out of range for rank {rank}"
        ))
    })
}

/// Implements `pliant.sequence.concat`, called with `(sequence, axis, new)`: concatenates the tensors of the sequence along the
/// axis. If `new` is not 0, stacks them along a new axis instead.
pub(super) fn concat(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), Value::Int(axis), new] = args else {
        return Err(argument_error(host_function_names::SEQUENCE_CONCAT, args));
    };
    let new =
        new.as_int().ok_or_else(|| argument_error(host_function_names::SEQUENCE_CONCAT, args))?
            != 0;
    let tensors: Option<Vec<&Tensor>> = items.iter().map(Value::as_tensor).collect();
    let tensors = tensors.ok_or_else(|| {
        value_error("a sequence to be concatenated contains an item that is not a tensor")
    })?;
    let Some(first) = tensors.first() else {
        return Err(value_error("an empty sequence cannot be concatenated"));
    };
    let axis = axis_of(*axis, first.ndim() + usize::from(new))?;
    let parts = tensors.iter().map(|t| {
        let mut shape = t.shape().to_vec();
        if new {
            shape.insert(axis.min(shape.len()), 1);
        }
        t.to_contiguous()?.reshape(&shape)
    });
    let parts = parts.collect::<Result<Vec<Tensor>, _>>()?;
    Ok(Value::Tensor(concatenate(&parts, axis)?))
}

/// Concatenates tensors along an existing axis.
pub(super) fn concatenate(parts: &[Tensor], axis: usize) -> Result<Tensor, VmError> {
    let Some(first) = parts.first() else {
        return Err(value_error("an empty list of tensors cannot be concatenated"));
    };
    let mut shape = first.shape().to_vec();
    let mut length = 0i64;
    for part in parts {
        let same = part.ndim() == shape.len()
            && part.dtype() == first.dtype()
            && part.shape().iter().zip(&shape).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !same {
            let kind = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
            let text = format!(
                "the tensors {} and {} cannot be concatenated along axis {axis}, because their dtypes or other dims differ",
                kind(first),
                kind(part)
            );
            return Err(VmError::check(CheckKind::Shape, text));
        }
        length = length.checked_add(part.shape()[axis]).ok_or_else(|| {
            value_error("the size of the concatenated tensor along the axis exceeds 64 bits")
        })?;
    }
    shape[axis] = length;
    let out = Tensor::empty(&shape, first.dtype())?;
    let outer = shape[..axis].iter().product::<i64>() as usize;
    let row = out.nbytes().checked_div(outer).unwrap_or(0);
    let mut start = 0;
    for part in parts {
        let part = part.to_contiguous()?;
        let chunk = part.nbytes().checked_div(outer).unwrap_or(0);
        // Skips empty parts, which may have any number of rows.
        for o in 0..if chunk == 0 { 0 } else { outer } {
            // SAFETY: the chunks of all parts fill the rows of the result exactly, and the result
            // is new and not shared.
            unsafe {
                let destination = out.data_ptr().add(o * row + start);
                ptr::copy_nonoverlapping(part.data_ptr().add(o * chunk), destination, chunk);
            }
        }
        start += chunk;
    }
    Ok(out)
}

/// Copies the range `start .. start + length` along an axis of a row-major tensor.
fn slice_axis(joined: &Tensor, axis: usize, start: i64, length: i64) -> Result<Tensor, VmError> {
    let mut shape = joined.shape().to_vec();
    let mut strides = vec![0; shape.len()];
    contiguous_strides(&shape, &mut strides);
    shape[axis] = length;
    if shape.contains(&0) {
        return Ok(Tensor::empty(&shape, joined.dtype())?);
    }
    let offset = joined.byte_offset() + (start * strides[axis]) as usize * joined.dtype().size();
    let (storage, dtype) = (joined.storage().clone(), joined.dtype());
    Ok(Tensor::from_storage_strided(storage, offset, &shape, &strides, dtype)?.copy()?)
}

/// Implements `pliant.sequence.split`, called with `(x, lengths, axis, keepdims)`: splits the tensor `x` along the axis and returns
/// the parts as a sequence. `lengths` is a vector of lengths, or one length for all parts (the last may be shorter). Without
/// `lengths`, all parts have length 1, and `keepdims` 0 removes the axis from them.
pub(super) fn split(args: &[Value]) -> Outcome {
    let [Value::Tensor(x), lengths, Value::Int(axis), keepdims] = args else {
        return Err(argument_error(host_function_names::SEQUENCE_SPLIT, args));
    };
    let keepdims = keepdims
        .as_int()
        .ok_or_else(|| argument_error(host_function_names::SEQUENCE_SPLIT, args))?
        != 0;
    let x = x.to_contiguous()?;
    let axis = axis_of(*axis, x.ndim())?;
    let size = x.shape()[axis];
    let count = match lengths {
        Value::Tensor(t) if t.ndim() > 0 => t.numel() as i64,
        Value::Tensor(t) => {
            let part_length = integer(t, "the length of the parts of a split")?.max(1);
            size / part_length + i64::from(size % part_length != 0)
        }
        _ => size,
    };
    if count > MAX_PARTS {
        return Err(value_error(format!(
            "a tensor is split into a sequence of {count} parts, more than the maximum of {MAX_PARTS}"
        )));
    }
    let (lengths, drop) = match lengths {
        Value::None => (vec![1; size as usize], !keepdims),
        Value::Tensor(t) if t.ndim() == 0 => {
            (equal_parts(size, integer(t, "the length of the parts of a split")?)?, false)
        }
        Value::Tensor(t) if t.dtype() != DType::UInt64 => (t.to_i64_vec()?, false),
        _ => return Err(argument_error(host_function_names::SEQUENCE_SPLIT, args)),
    };
    let total = lengths.iter().try_fold(0i64, |a, &l| a.checked_add(l).filter(|_| l >= 0));
    if total != Some(size) {
        let first = &lengths[..lengths.len().min(MAX_SHOWN_LENGTHS)];
        let more = if first.len() < lengths.len() { " and more" } else { "" };
        let text = format!(
            "the part lengths {first:?}{more} of a split to a sequence do not add up to the axis size {size}"
        );
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let mut items = Vec::with_capacity(lengths.len());
    let mut start = 0;
    for length in lengths {
        let mut part = slice_axis(&x, axis, start, length)?;
        if drop {
            let mut shape = part.shape().to_vec();
            shape.remove(axis);
            part = part.reshape(&shape)?;
        }
        items.push(Value::Tensor(part));
        start += length;
    }
    Ok(Value::tuple(items))
}

/// Splits an axis of `size` elements into parts of `part_length` elements; the last part may be shorter. Returns the lengths of
/// the parts.
fn equal_parts(size: i64, part_length: i64) -> Result<Vec<i64>, VmError> {
    if part_length < 1 {
        return Err(value_error(format!(
            "the length of the parts of a split to a sequence must be at least 1, but is {part_length}"
        )));
    }
    Ok((0..size).step_by(part_length as usize).map(|start| part_length.min(size - start)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64], first: f32) -> Tensor {
        let count: i64 = shape.iter().product();
        let data: Vec<f32> = (0..count).map(|i| first + i as f32).collect();
        Tensor::from_slice(shape, &data).unwrap()
    }

    fn int_scalar(value: i64) -> Value {
        Value::Tensor(Tensor::scalar(value).unwrap())
    }

    fn first_elements(value: &Value) -> Vec<f64> {
        let items = value.as_tuple().unwrap();
        items.iter().map(|v| v.as_tensor().unwrap().to_f64_vec().unwrap()[0]).collect()
    }

    #[test]
    fn items_are_inserted_and_erased_at_positions() {
        let item = |v: f32| Value::Tensor(tensor(&[1], v));
        let start = make(&[item(0.0), item(1.0)]).unwrap();
        let more = insert(&[start.clone(), item(9.0), int_scalar(-1)]).unwrap();
        assert_eq!(first_elements(&more), [0.0, 9.0, 1.0]);
        let more = insert(&[more, item(5.0), Value::None]).unwrap();
        assert_eq!(first_elements(&more), [0.0, 9.0, 1.0, 5.0]);
        assert_eq!(
            first_elements(&erase(&[more.clone(), int_scalar(1)]).unwrap()),
            [0.0, 1.0, 5.0]
        );
        assert_eq!(first_elements(&erase(&[more.clone(), Value::None]).unwrap()), [0.0, 9.0, 1.0]);
        assert_eq!(at(&[more.clone(), int_scalar(-1)]).unwrap().as_tensor().unwrap().shape(), [1]);
        for bad in [4, -5, i64::MIN] {
            let message = at(&[more.clone(), int_scalar(bad)]).unwrap_err().to_string();
            assert!(message.contains("out of range for a sequence of 4"), "{message}");
        }
        assert!(insert(&[start.clone(), item(0.0), int_scalar(3)]).is_err());
        assert!(erase(&[Value::tuple([]), Value::None]).is_err());
    }

    #[test]
    fn concat_inverts_split() {
        let x = tensor(&[2, 5, 3], 0.0);
        for axis in [0i64, 1, 2, -1] {
            for lengths in [Value::None, int_scalar(2)] {
                let args = [Value::Tensor(x.clone()), lengths, Value::Int(axis), Value::Int(1)];
                let parts = split(&args).unwrap();
                let joined = concat(&[parts, Value::Int(axis), Value::Bool(false)]).unwrap();
                let joined = joined.as_tensor().unwrap();
                assert_eq!(joined.to_f64_vec().unwrap(), x.to_f64_vec().unwrap());
                assert_eq!(joined.shape(), x.shape());
            }
            // Without the axis, it is inserted again as a new one.
            let args = [Value::Tensor(x.clone()), Value::None, Value::Int(axis), Value::Int(0)];
            let parts = split(&args).unwrap();
            let joined = concat(&[parts, Value::Int(axis), Value::Bool(true)]).unwrap();
            assert_eq!(joined.as_tensor().unwrap().to_f64_vec().unwrap(), x.to_f64_vec().unwrap());
        }
        let lengths = Value::Tensor(Tensor::from_slice(&[3], &[4i64, 0, 2]).unwrap());
        let args = [Value::Tensor(x), lengths, Value::Int(1), Value::Int(1)];
        assert!(split(&args).unwrap_err().to_string().contains("do not add up to the axis size 5"));
    }

    #[test]
    fn optionals_are_present_or_absent() {
        let present = has(&[int_scalar(3)]).unwrap();
        assert_eq!(present.as_tensor().unwrap().to_i64_vec().unwrap(), [1]);
        let absent = has(&[Value::None]).unwrap();
        assert_eq!(absent.as_tensor().unwrap().to_i64_vec().unwrap(), [0]);
        assert!(
            get(&[Value::None]).unwrap_err().to_string().contains("is empty, so it has no value")
        );
    }
}
