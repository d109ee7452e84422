//! [`Spares`]: small tensors that have died. The next ones of their kind take their place, so that a turn of a loop that
//! computes with scalars asks nobody for memory.

use pliant_tensor::{DType, Tensor, poison};

use crate::Value;

/// How many are kept.
const COUNT: usize = 8;
/// The largest memory that is kept, in bytes.
const MAX_BYTES: usize = 256;

/// Tensors that nothing holds any more.
#[derive(Default)]
pub(crate) struct Spares {
    kept: Vec<Tensor>,
    /// Which one the next takes the place of, once there are enough.
    next: usize,
    /// The running VM: only tensors in its memory are kept.
    pub(crate) owner: u64,
}

impl Spares {
    /// Lets go of a value; a small tensor that nothing else holds is kept.
    #[inline]
    pub(crate) fn offer(&mut self, value: Value) {
        if let Value::Tensor(tensor) = value
            && tensor.storage().len() <= MAX_BYTES
            && tensor.storage().owner() == self.owner
            && tensor.is_sole()
        {
            self.keep(tensor);
        }
    }

    fn keep(&mut self, tensor: Tensor) {
        if self.kept.len() < COUNT {
            self.kept.push(tensor);
        } else {
            self.kept[self.next] = tensor;
            self.next = (self.next + 1) % COUNT;
        }
    }

    /// A kept tensor of that kind, over so many bytes or more; its contents are arbitrary.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize, shape: &[i64], dtype: DType) -> Option<Tensor> {
        let is_alike =
            |t: &Tensor| t.dtype() == dtype && t.shape() == shape && t.storage().len() >= bytes;
        let at = self.kept.iter().rposition(is_alike)?;
        let tensor = self.kept.swap_remove(at);
        // SAFETY: nothing else holds the tensor's memory.
        unsafe { poison(tensor.storage().as_ptr(), tensor.storage().len()) };
        Some(tensor)
    }

    /// Gives all memory back.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::alloc_storage;

    fn tensor(shape: &[i64], dtype: DType) -> Tensor {
        let storage = alloc_storage(128).expect("some bytes");
        Tensor::from_storage(storage, 0, shape, dtype).expect("it fits")
    }

    #[test]
    fn the_dead_stand_for_the_next_of_their_kind() {
        let mut spares = Spares::default();
        let one = tensor(&[2], DType::Int64);
        let place = one.data_ptr();
        spares.offer(Value::Tensor(one));
        assert!(spares.take(1, &[2], DType::Float64).is_none());
        assert!(spares.take(1, &[1, 2], DType::Int64).is_none());
        assert!(spares.take(256, &[2], DType::Int64).is_none());
        let again = spares.take(1, &[2], DType::Int64).expect("it was kept");
        assert_eq!(again.data_ptr(), place);
        assert!(spares.take(1, &[2], DType::Int64).is_none());
    }

    #[test]
    fn what_somebody_holds_is_not_kept() {
        let mut spares = Spares::default();
        let held = tensor(&[2], DType::Int64);
        spares.offer(Value::Tensor(held.clone()));
        let view = tensor(&[2], DType::Int64);
        let part = view.reshape(&[1, 2]).expect("two elements");
        spares.offer(Value::Tensor(view));
        let written = tensor(&[2], DType::Int64);
        let only_read = written.as_read_only();
        drop(written);
        spares.offer(Value::Tensor(only_read));
        let storage = alloc_storage(128).expect("some bytes");
        let behind = Tensor::from_storage(storage, 64, &[2], DType::Int64).expect("it fits");
        spares.offer(Value::Tensor(behind));
        let storage = alloc_storage(4096).expect("some bytes");
        let roomy = Tensor::from_storage(storage, 0, &[2], DType::Int64).expect("it fits");
        spares.offer(Value::Tensor(roomy));
        let mut bytes = [0i64; 2];
        let start = bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the bytes outlive the tensor, which nothing writes.
        let foreign = unsafe { pliant_tensor::Storage::from_foreign(start, 16, false, || ()) };
        let foreign = Tensor::from_storage(foreign, 0, &[2], DType::Int64).expect("it fits");
        spares.offer(Value::Tensor(foreign));
        assert!(spares.kept.is_empty());
        drop((held, part));
    }

    #[test]
    fn tensors_in_memory_of_other_vms_are_not_kept() {
        let mut spares = Spares { owner: 1, ..Spares::default() };
        spares.offer(Value::Tensor(tensor(&[2], DType::Int64)));
        assert!(spares.kept.is_empty());
    }

    #[test]
    fn newer_ones_take_the_place_of_older_ones() {
        let mut spares = Spares::default();
        spares.offer(Value::Tensor(tensor(&[9], DType::Int8)));
        for rank in 0..COUNT {
            spares.offer(Value::Tensor(tensor(&vec![1; rank], DType::Int8)));
        }
        assert_eq!(spares.kept.len(), COUNT);
        assert!(spares.take(1, &[9], DType::Int8).is_none());
    }
}
