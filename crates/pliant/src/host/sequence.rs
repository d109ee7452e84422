//! Sequences whose length is known at run time, which are tuples, and optionals, which are a value
//! or none.

use std::ptr;

use pliant_onnx::host;
use pliant_tensor::{DType, Tensor, contiguous_strides};
use pliant_vm::{CheckKind, Value, VmError};

use super::{Outcome, integer, misused, wrong};

/// Maximum number of parts that one tensor is split into: an axis of a tensor without elements may
/// have any size.
const MAX_PARTS: i64 = 1 << 24;
/// Maximum number of lengths in a message.
const SHOWN: usize = 16;

/// The items.
pub(super) fn make(args: &[Value]) -> Outcome {
    Ok(Value::tuple(args.iter().cloned()))
}

/// The position that an operand gives in a sequence of `length` items, among `count` valid ones.
fn place(given: &Value, length: usize, count: usize) -> Result<usize, VmError> {
    let Value::Tensor(given) = given else {
        return Err(wrong(format!("a place in a sequence must be a tensor, not {}", given.kind())));
    };
    let given = integer(given, "a place in a sequence")?;
    let place = if given < 0 { given.saturating_add(length as i64) } else { given };
    usize::try_from(place).ok().filter(|&p| p < count).ok_or_else(|| {
        let text = format!("place {given} is out of range for a sequence of {length}");
        VmError::check(CheckKind::Index, text)
    })
}

pub(super) fn insert(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), item, at] = args else {
        return Err(misused(host::SEQUENCE_INSERT, args));
    };
    let length = items.len();
    let at = if matches!(at, Value::None) { length } else { place(at, length, length + 1)? };
    let (before, behind) = items.split_at(at);
    Ok(Value::tuple(before.iter().chain([item]).chain(behind).cloned()))
}

pub(super) fn erase(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), at] = args else { return Err(misused(host::SEQUENCE_ERASE, args)) };
    let length = items.len();
    let at = match at {
        Value::None => length.checked_sub(1).ok_or_else(|| wrong("the sequence is empty"))?,
        at => place(at, length, length)?,
    };
    let rest = items.iter().enumerate().filter(|(i, _)| *i != at);
    Ok(Value::tuple(rest.map(|(_, item)| item.clone())))
}

pub(super) fn at(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), at] = args else { return Err(misused(host::SEQUENCE_AT, args)) };
    Ok(items[place(at, items.len(), items.len())?].clone())
}

pub(super) fn length(args: &[Value]) -> Outcome {
    let [Value::Tuple(items)] = args else { return Err(misused(host::SEQUENCE_LENGTH, args)) };
    Ok(Value::Tensor(Tensor::scalar(items.len() as i64)?))
}

pub(super) fn has(args: &[Value]) -> Outcome {
    let [value] = args else { return Err(misused(host::OPTIONAL_HAS, args)) };
    Ok(Value::Tensor(Tensor::scalar(!matches!(value, Value::None))?))
}

pub(super) fn get(args: &[Value]) -> Outcome {
    match args {
        [Value::None] => Err(wrong("the optional holds nothing")),
        [value] => Ok(value.clone()),
        _ => Err(misused(host::OPTIONAL_GET, args)),
    }
}

/// An axis, which may count from the end.
fn axis_of(axis: i64, rank: usize) -> Result<usize, VmError> {
    let normal = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
    usize::try_from(normal)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| wrong(format!("axis {axis} is out of range for rank {rank}")))
}

pub(super) fn concat(args: &[Value]) -> Outcome {
    let [Value::Tuple(items), Value::Int(axis), new] = args else {
        return Err(misused(host::SEQUENCE_CONCAT, args));
    };
    let new = new.as_int().ok_or_else(|| misused(host::SEQUENCE_CONCAT, args))? != 0;
    let tensors: Option<Vec<&Tensor>> = items.iter().map(Value::as_tensor).collect();
    let tensors = tensors.ok_or_else(|| wrong("an item of the sequence is not a tensor"))?;
    let Some(first) = tensors.first() else {
        return Err(wrong("an empty sequence has nothing to join"));
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
    Ok(Value::Tensor(joined(&parts, axis)?))
}

/// Concatenates tensors along an axis that the first one has.
pub(super) fn joined(parts: &[Tensor], axis: usize) -> Result<Tensor, VmError> {
    let Some(first) = parts.first() else { return Err(wrong("there is nothing to join")) };
    let mut shape = first.shape().to_vec();
    let mut length = 0i64;
    for part in parts {
        let same = part.ndim() == shape.len()
            && part.dtype() == first.dtype()
            && part.shape().iter().zip(&shape).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !same {
            let kind = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
            let text = format!("{} and {} do not join along {axis}", kind(first), kind(part));
            return Err(VmError::check(CheckKind::Shape, text));
        }
        length = length
            .checked_add(part.shape()[axis])
            .ok_or_else(|| wrong("the joined tensor is too large"))?;
    }
    shape[axis] = length;
    let out = Tensor::empty(&shape, first.dtype())?;
    let outer = shape[..axis].iter().product::<i64>() as usize;
    let row = out.nbytes().checked_div(outer).unwrap_or(0);
    let mut from = 0;
    for part in parts {
        let part = part.to_contiguous()?;
        let chunk = part.nbytes().checked_div(outer).unwrap_or(0);
        // An empty part may have any number of rows.
        for o in 0..if chunk == 0 { 0 } else { outer } {
            // SAFETY: the parts make up the rows of the result, which is new and not shared.
            unsafe {
                let to = out.data_ptr().add(o * row + from);
                ptr::copy_nonoverlapping(part.data_ptr().add(o * chunk), to, chunk);
            }
        }
        from += chunk;
    }
    Ok(out)
}

/// The slices `from .. from + length` along an axis of a row-major tensor.
fn window(whole: &Tensor, axis: usize, from: i64, length: i64) -> Result<Tensor, VmError> {
    let mut shape = whole.shape().to_vec();
    let mut strides = vec![0; shape.len()];
    contiguous_strides(&shape, &mut strides);
    shape[axis] = length;
    if shape.contains(&0) {
        return Ok(Tensor::empty(&shape, whole.dtype())?);
    }
    let offset = whole.byte_offset() + (from * strides[axis]) as usize * whole.dtype().size();
    let (storage, dtype) = (whole.storage().clone(), whole.dtype());
    Ok(Tensor::from_storage_strided(storage, offset, &shape, &strides, dtype)?.copy()?)
}

pub(super) fn split(args: &[Value]) -> Outcome {
    let [Value::Tensor(x), lengths, Value::Int(axis), keep] = args else {
        return Err(misused(host::SEQUENCE_SPLIT, args));
    };
    let keep = keep.as_int().ok_or_else(|| misused(host::SEQUENCE_SPLIT, args))? != 0;
    let x = x.to_contiguous()?;
    let axis = axis_of(*axis, x.ndim())?;
    let size = x.shape()[axis];
    let count = match lengths {
        Value::Tensor(t) if t.ndim() > 0 => t.numel() as i64,
        Value::Tensor(t) => {
            let each = integer(t, "a length")?.max(1);
            size / each + i64::from(size % each != 0)
        }
        _ => size,
    };
    if count > MAX_PARTS {
        return Err(wrong(format!("{count} parts are more than {MAX_PARTS}")));
    }
    let (lengths, drop) = match lengths {
        Value::None => (vec![1; size as usize], !keep),
        Value::Tensor(t) if t.ndim() == 0 => (equal_parts(size, integer(t, "a length")?)?, false),
        Value::Tensor(t) if t.dtype() != DType::UInt64 => (t.to_i64_vec()?, false),
        _ => return Err(misused(host::SEQUENCE_SPLIT, args)),
    };
    let total = lengths.iter().try_fold(0i64, |a, &l| a.checked_add(l).filter(|_| l >= 0));
    if total != Some(size) {
        let first = &lengths[..lengths.len().min(SHOWN)];
        let more = if first.len() < lengths.len() { " and more" } else { "" };
        let text = format!("parts of {first:?}{more} do not make up an axis of {size}");
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let mut items = Vec::with_capacity(lengths.len());
    let mut from = 0;
    for length in lengths {
        let mut part = window(&x, axis, from, length)?;
        if drop {
            let mut shape = part.shape().to_vec();
            shape.remove(axis);
            part = part.reshape(&shape)?;
        }
        items.push(Value::Tensor(part));
        from += length;
    }
    Ok(Value::tuple(items))
}

/// The lengths of equal parts of an axis; the last may be shorter.
fn equal_parts(size: i64, each: i64) -> Result<Vec<i64>, VmError> {
    if each < 1 {
        return Err(wrong(format!("parts of length {each}")));
    }
    Ok((0..size).step_by(each as usize).map(|from| each.min(size - from)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[i64], first: f32) -> Tensor {
        let count: i64 = shape.iter().product();
        let data: Vec<f32> = (0..count).map(|i| first + i as f32).collect();
        Tensor::from_slice(shape, &data).unwrap()
    }

    fn place_of(value: i64) -> Value {
        Value::Tensor(Tensor::scalar(value).unwrap())
    }

    fn firsts(value: &Value) -> Vec<f64> {
        let items = value.as_tuple().unwrap();
        items.iter().map(|v| v.as_tensor().unwrap().to_f64_vec().unwrap()[0]).collect()
    }

    #[test]
    fn items_go_in_and_out_at_places() {
        let item = |v: f32| Value::Tensor(tensor(&[1], v));
        let start = make(&[item(0.0), item(1.0)]).unwrap();
        let more = insert(&[start.clone(), item(9.0), place_of(-1)]).unwrap();
        assert_eq!(firsts(&more), [0.0, 9.0, 1.0]);
        let more = insert(&[more, item(5.0), Value::None]).unwrap();
        assert_eq!(firsts(&more), [0.0, 9.0, 1.0, 5.0]);
        assert_eq!(firsts(&erase(&[more.clone(), place_of(1)]).unwrap()), [0.0, 1.0, 5.0]);
        assert_eq!(firsts(&erase(&[more.clone(), Value::None]).unwrap()), [0.0, 9.0, 1.0]);
        assert_eq!(at(&[more.clone(), place_of(-1)]).unwrap().as_tensor().unwrap().shape(), [1]);
        for bad in [4, -5, i64::MIN] {
            let told = at(&[more.clone(), place_of(bad)]).unwrap_err().to_string();
            assert!(told.contains("out of range for a sequence of 4"), "{told}");
        }
        assert!(insert(&[start.clone(), item(0.0), place_of(3)]).is_err());
        assert!(erase(&[Value::tuple([]), Value::None]).is_err());
    }

    #[test]
    fn parts_that_are_joined_are_what_was_split() {
        let x = tensor(&[2, 5, 3], 0.0);
        for axis in [0i64, 1, 2, -1] {
            for lengths in [Value::None, place_of(2)] {
                let args = [Value::Tensor(x.clone()), lengths, Value::Int(axis), Value::Int(1)];
                let parts = split(&args).unwrap();
                let whole = concat(&[parts, Value::Int(axis), Value::Bool(false)]).unwrap();
                let whole = whole.as_tensor().unwrap();
                assert_eq!(whole.to_f64_vec().unwrap(), x.to_f64_vec().unwrap());
                assert_eq!(whole.shape(), x.shape());
            }
            // Without the axis, it is inserted again as a new one.
            let args = [Value::Tensor(x.clone()), Value::None, Value::Int(axis), Value::Int(0)];
            let parts = split(&args).unwrap();
            let whole = concat(&[parts, Value::Int(axis), Value::Bool(true)]).unwrap();
            assert_eq!(whole.as_tensor().unwrap().to_f64_vec().unwrap(), x.to_f64_vec().unwrap());
        }
        let lengths = Value::Tensor(Tensor::from_slice(&[3], &[4i64, 0, 2]).unwrap());
        let args = [Value::Tensor(x), lengths, Value::Int(1), Value::Int(1)];
        assert!(split(&args).unwrap_err().to_string().contains("do not make up an axis of 5"));
    }

    #[test]
    fn an_optional_is_there_or_not() {
        let there = has(&[place_of(3)]).unwrap();
        assert_eq!(there.as_tensor().unwrap().to_i64_vec().unwrap(), [1]);
        let gone = has(&[Value::None]).unwrap();
        assert_eq!(gone.as_tensor().unwrap().to_i64_vec().unwrap(), [0]);
        assert!(get(&[Value::None]).unwrap_err().to_string().contains("holds nothing"));
    }
}
