//! Chains: immutable linked lists that collect the values that the iterations of a loop produce. Chains share their
//! prefixes, so appending copies nothing.

use std::cell::RefCell;
use std::sync::Arc;

use pliant_kernel_api::host_function_names;
use pliant_tensor::{Reserved, Tensor};
use pliant_vm::{CheckKind, Value, VmError};

use super::sequence_functions::concatenate;
use super::{Outcome, argument_error, value_error};

/// The last item of a chain (a linked list), with a link to the previous items.
struct Link {
    item: Value,
    previous: Option<Arc<Link>>,
    length: usize,
    /// Counts the size of the link towards the memory limit. In a chain of small items, the links take most of the memory.
    _reserved: Reserved,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Iterative, since recursion along a long chain would overflow the stack.
        let mut next = self.previous.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.previous.take();
            drop_later(std::mem::take(&mut link.item));
        }
        drop_later(std::mem::take(&mut self.item));
    }
}

thread_local! {
    /// Items that this thread will drop after the item that it is dropping now; `None` while this thread drops no item.
    static PENDING_DROPS: RefCell<Option<Vec<Value>>> = const { RefCell::new(None) };
}

/// Drops an item of a chain (a linked list of values). Items of chains inside the item are queued and dropped iteratively, since
/// recursion along deeply nested chains would overflow the stack.
fn drop_later(item: Value) {
    if !matches!(item, Value::Object(_) | Value::Tuple(_) | Value::Func(_)) {
        return;
    }
    let is_outermost = PENDING_DROPS.try_with(|pending| {
        let mut pending = pending.borrow_mut();
        let is_outermost = pending.is_none();
        pending.get_or_insert_default().push(item);
        is_outermost
    });
    // While the thread terminates, its queue is gone, and the item has already been dropped.
    if !is_outermost.unwrap_or(false) {
        return;
    }
    let next = || PENDING_DROPS.with(|pending| pending.borrow_mut().as_mut().and_then(Vec::pop));
    while let Some(item) = next() {
        drop(item);
    }
    PENDING_DROPS.set(None);
}

/// Returns the last link of the chain (a linked list) that a value contains; `None` for a chain without items.
fn chain(value: &Value) -> Result<Option<Arc<Link>>, VmError> {
    match value {
        Value::None => Ok(None),
        Value::Object(object) => match object.clone().downcast::<Link>() {
            Ok(link) => Ok(Some(link)),
            Err(_) => Err(value_error(
                "the first argument of a pliant.chain function must be a list of loop results, but is an object of another kind",
            )),
        },
        other => Err(value_error(format!(
            "the first argument of a pliant.chain function must be a list of loop results, but is {}",
            other.kind()
        ))),
    }
}

/// Returns the items of the chain (a linked list) that a value contains, in order.
fn items(value: &Value) -> Result<Vec<Value>, VmError> {
    let last = chain(value)?;
    let mut items = Vec::with_capacity(last.as_ref().map_or(0, |l| l.length));
    let mut next = last.as_ref();
    while let Some(link) = next {
        items.push(link.item.clone());
        next = link.previous.as_ref();
    }
    items.reverse();
    Ok(items)
}

/// Implements `pliant.chain.push`, called with `(chain, item, same_shape)`: returns the chain (a linked list) with the item
/// appended. Unless `same_shape` is 0, the item must have the shape and data type of the chain's last item.
pub(super) fn push(args: &[Value]) -> Outcome {
    let [previous, item, same_shape] = args else {
        return Err(argument_error(host_function_names::CHAIN_PUSH, args));
    };
    let previous = chain(previous)?;
    if same_shape.as_int() != Some(0)
        && let (Some(Value::Tensor(last)), Value::Tensor(item)) =
            (previous.as_ref().map(|l| &l.item), item)
        && (last.shape() != item.shape() || last.dtype() != item.dtype())
    {
        let kind = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
        let text = format!(
            "the iterations of an ONNX Loop or Scan must produce scan outputs of one shape and dtype, but one is {} and the next {}",
            kind(last),
            kind(item)
        );
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let length = previous.as_ref().map_or(0, |l| l.length) + 1;
    // Includes the two reference counts and the allocator's header.
    let reserved = Reserved::new(size_of::<Link>() + 4 * size_of::<usize>())?;
    Ok(Value::Object(Arc::new(Link { item: item.clone(), previous, length, _reserved: reserved })))
}

/// Implements `pliant.chain.sequence`, called with `(chain)`: returns the items of the chain (a linked list) as a sequence.
pub(super) fn sequence(args: &[Value]) -> Outcome {
    let [last] = args else {
        return Err(argument_error(host_function_names::CHAIN_SEQUENCE, args));
    };
    Ok(Value::tuple(items(last)?))
}

/// Implements `pliant.chain.stack`, called with `(chain, item shape, dtype)`: stacks the items of the chain (a linked list) along a
/// new first axis. If the chain has no items, the result has zero rows of that shape and type.
pub(super) fn stack(args: &[Value]) -> Outcome {
    let [last, Value::Shape(shape), Value::DType(dtype)] = args else {
        return Err(argument_error(host_function_names::CHAIN_STACK, args));
    };
    let items = items(last)?;
    if items.is_empty() {
        let dims: Vec<i64> = [0].into_iter().chain(shape.iter().copied()).collect();
        return Ok(Value::Tensor(Tensor::empty(&dims, *dtype)?));
    }
    let rows = items.iter().map(|item| {
        let Value::Tensor(item) = item else {
            return Err(value_error(format!(
                "each iteration of an ONNX Loop or Scan must produce a tensor as scan output, but one produced {}",
                item.kind()
            )));
        };
        let dims: Vec<i64> = [1].into_iter().chain(item.shape().iter().copied()).collect();
        Ok(item.to_contiguous()?.reshape(&dims)?)
    });
    let rows = rows.collect::<Result<Vec<Tensor>, VmError>>()?;
    Ok(Value::Tensor(concatenate(&rows, 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(value: f32) -> Value {
        Value::Tensor(Tensor::scalar(value).unwrap())
    }

    fn append(chain: Value, item: Value) -> Outcome {
        push(&[chain, item, Value::Int(0)])
    }

    fn stack_items(chain: &Value) -> Tensor {
        let dtype = Value::DType(pliant_tensor::DType::Float32);
        let stacked_value = stack(&[chain.clone(), Value::shape(&[]), dtype]).unwrap();
        stacked_value.as_tensor().unwrap().clone()
    }

    #[test]
    fn appending_shares_and_keeps_the_prefix() {
        let one = append(Value::None, scalar(1.0)).unwrap();
        let two = append(one.clone(), scalar(2.0)).unwrap();
        let other = append(one.clone(), scalar(3.0)).unwrap();
        assert_eq!(stack_items(&two).to_f64_vec().unwrap(), [1.0, 2.0]);
        assert_eq!(stack_items(&other).to_f64_vec().unwrap(), [1.0, 3.0]);
        assert_eq!(stack_items(&one).to_f64_vec().unwrap(), [1.0]);
        assert_eq!(stack_items(&Value::None).shape(), [0]);
        assert_eq!(sequence(&[two]).unwrap().as_tuple().unwrap().len(), 2);
    }

    #[test]
    fn a_long_chain_is_dropped_without_recursion() {
        let mut chain = Value::None;
        for i in 0..300_000 {
            chain = append(chain, Value::Int(i)).unwrap();
        }
        assert_eq!(items(&chain).unwrap().len(), 300_000);
    }

    #[test]
    fn nested_chains_are_dropped_without_recursion() {
        let mut chain = Value::None;
        for i in 0..300_000 {
            let item = if i % 2 == 0 { chain } else { Value::tuple([chain]) };
            chain = append(Value::None, item).unwrap();
        }
        drop(chain);
    }

    #[test]
    fn items_of_unequal_shapes_do_not_stack() {
        let one = append(Value::None, scalar(1.0)).unwrap();
        let vector = Value::Tensor(Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap());
        let two = append(one.clone(), vector.clone()).unwrap();
        let dtype = Value::DType(pliant_tensor::DType::Float32);
        assert!(stack(&[two, Value::shape(&[]), dtype]).is_err());
        let message = push(&[one, vector, Value::Int(1)]).unwrap_err().to_string();
        assert!(message.contains("one is float32 [] and the next float32 [2]"), "{message}");
    }
}
