//! Chains: the values that the iterations of a loop have collected so far. A chain is immutable, so
//! any number of values can share its beginning, and appending copies nothing.

use std::cell::RefCell;
use std::sync::Arc;

use pliant_onnx::host;
use pliant_tensor::{Reserved, Tensor};
use pliant_vm::{CheckKind, Value, VmError};

use super::sequence::joined;
use super::{Outcome, misused, wrong};

/// The last item, with a link to those before it.
struct Link {
    item: Value,
    before: Option<Arc<Link>>,
    length: usize,
    /// For small items, the links take most of the memory.
    _counted: Reserved,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Without recursion: a chain may be longer than the stack is deep.
        let mut next = self.before.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.take();
            drop_later(std::mem::take(&mut link.item));
        }
        drop_later(std::mem::take(&mut self.item));
    }
}

thread_local! {
    /// Items that are waiting to be dropped while this thread is dropping an item.
    static WAITING: RefCell<Option<Vec<Value>>> = const { RefCell::new(None) };
}

/// Drops an item. If that drops further chains, their items are dropped one after the other: chains
/// may be nested deeper than the stack is deep.
fn drop_later(item: Value) {
    if !matches!(item, Value::Object(_) | Value::Tuple(_) | Value::Func(_)) {
        return;
    }
    let is_first = WAITING.try_with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        let is_first = waiting.is_none();
        waiting.get_or_insert_default().push(item);
        is_first
    });
    // While the thread terminates, the item has already been dropped.
    if !is_first.unwrap_or(false) {
        return;
    }
    let next = || WAITING.with(|waiting| waiting.borrow_mut().as_mut().and_then(Vec::pop));
    while let Some(item) = next() {
        drop(item);
    }
    WAITING.set(None);
}

/// The chain in a value; `None` if it has no items.
fn chain(value: &Value) -> Result<Option<Arc<Link>>, VmError> {
    match value {
        Value::None => Ok(None),
        Value::Object(object) => match object.clone().downcast::<Link>() {
            Ok(link) => Ok(Some(link)),
            Err(_) => Err(wrong("this is no chain")),
        },
        other => Err(wrong(format!("a chain cannot be {}", other.kind()))),
    }
}

/// The items in order.
fn items(value: &Value) -> Result<Vec<Value>, VmError> {
    let last = chain(value)?;
    let mut items = Vec::with_capacity(last.as_ref().map_or(0, |l| l.length));
    let mut next = last.as_ref();
    while let Some(link) = next {
        items.push(link.item.clone());
        next = link.before.as_ref();
    }
    items.reverse();
    Ok(items)
}

pub(super) fn push(args: &[Value]) -> Outcome {
    let [before, item, alike] = args else { return Err(misused(host::CHAIN_PUSH, args)) };
    let before = chain(before)?;
    if alike.as_int() != Some(0)
        && let (Some(Value::Tensor(last)), Value::Tensor(item)) =
            (before.as_ref().map(|l| &l.item), item)
        && (last.shape() != item.shape() || last.dtype() != item.dtype())
    {
        let kind = |t: &Tensor| format!("{} {:?}", t.dtype(), t.shape());
        let text = format!(
            "the turns of a loop collect tensors of one shape, but one is {} and the next {}",
            kind(last),
            kind(item)
        );
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let length = before.as_ref().map_or(0, |l| l.length) + 1;
    // Includes the two reference counts and the allocator's header.
    let counted = Reserved::new(size_of::<Link>() + 4 * size_of::<usize>())?;
    Ok(Value::Object(Arc::new(Link { item: item.clone(), before, length, _counted: counted })))
}

pub(super) fn sequence(args: &[Value]) -> Outcome {
    let [last] = args else { return Err(misused(host::CHAIN_SEQUENCE, args)) };
    Ok(Value::tuple(items(last)?))
}

pub(super) fn stack(args: &[Value]) -> Outcome {
    let [last, Value::Shape(shape), Value::DType(dtype)] = args else {
        return Err(misused(host::CHAIN_STACK, args));
    };
    let items = items(last)?;
    if items.is_empty() {
        let dims: Vec<i64> = [0].into_iter().chain(shape.iter().copied()).collect();
        return Ok(Value::Tensor(Tensor::empty(&dims, *dtype)?));
    }
    let rows = items.iter().map(|item| {
        let Value::Tensor(item) = item else {
            return Err(wrong(format!("a turn has collected {}", item.kind())));
        };
        let dims: Vec<i64> = [1].into_iter().chain(item.shape().iter().copied()).collect();
        Ok(item.to_contiguous()?.reshape(&dims)?)
    });
    let rows = rows.collect::<Result<Vec<Tensor>, VmError>>()?;
    Ok(Value::Tensor(joined(&rows, 0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(value: f32) -> Value {
        Value::Tensor(Tensor::scalar(value).unwrap())
    }

    fn added(chain: Value, item: Value) -> Outcome {
        push(&[chain, item, Value::Int(0)])
    }

    fn stacked(chain: &Value) -> Tensor {
        let dtype = Value::DType(pliant_tensor::DType::Float32);
        let made = stack(&[chain.clone(), Value::shape(&[]), dtype]).unwrap();
        made.as_tensor().unwrap().clone()
    }

    #[test]
    fn beginnings_are_shared_and_stay() {
        let one = added(Value::None, scalar(1.0)).unwrap();
        let two = added(one.clone(), scalar(2.0)).unwrap();
        let other = added(one.clone(), scalar(3.0)).unwrap();
        assert_eq!(stacked(&two).to_f64_vec().unwrap(), [1.0, 2.0]);
        assert_eq!(stacked(&other).to_f64_vec().unwrap(), [1.0, 3.0]);
        assert_eq!(stacked(&one).to_f64_vec().unwrap(), [1.0]);
        assert_eq!(stacked(&Value::None).shape(), [0]);
        assert_eq!(sequence(&[two]).unwrap().as_tuple().unwrap().len(), 2);
    }

    #[test]
    fn a_long_chain_is_dropped_without_recursion() {
        let mut chain = Value::None;
        for i in 0..300_000 {
            chain = added(chain, Value::Int(i)).unwrap();
        }
        assert_eq!(items(&chain).unwrap().len(), 300_000);
    }

    #[test]
    fn nested_chains_are_dropped_without_recursion() {
        let mut chain = Value::None;
        for i in 0..300_000 {
            let item = if i % 2 == 0 { chain } else { Value::tuple([chain]) };
            chain = added(Value::None, item).unwrap();
        }
        drop(chain);
    }

    #[test]
    fn items_of_unequal_shapes_do_not_stack() {
        let one = added(Value::None, scalar(1.0)).unwrap();
        let vector = Value::Tensor(Tensor::from_slice(&[2], &[1.0f32, 2.0]).unwrap());
        let two = added(one.clone(), vector.clone()).unwrap();
        let dtype = Value::DType(pliant_tensor::DType::Float32);
        assert!(stack(&[two, Value::shape(&[]), dtype]).is_err());
        let told = push(&[one, vector, Value::Int(1)]).unwrap_err().to_string();
        assert!(told.contains("one is float32 [] and the next float32 [2]"), "{told}");
    }
}
