//! [`Spares`]: a cache of small released tensors. New tensors of the same kind reuse them, so that
//! a loop over scalars does not allocate memory in every iteration.

use pliant_tensor::{DType, Tensor, poison};

use crate::Value;

/// Maximum number of cached tensors.
const COUNT: usize = 8;
/// Maximum storage size of a cached tensor in bytes.
const MAX_BYTES: usize = 256;

/// Tensors that are not referenced any more.
#[derive(Default)]
pub(crate) struct Spares {
    kept: Vec<Tensor>,
    /// The index of the entry to replace next when the cache is full.
    next: usize,
    /// The running VM. Only tensors in its memory are cached.
    pub(crate) owner: u64,
}

impl Spares {
    /// Releases a value. A small tensor without other references is cached.
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

    /// Takes a cached tensor of the given type with at least `bytes` bytes of storage. Its contents
    /// are arbitrary.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize, shape: &[i64], dtype: DType) -> Option<Tensor> {
        let is_alike =
            |t: &Tensor| t.dtype() == dtype && t.shape() == shape && t.storage().len() >= bytes;
        let at = self.kept.iter().rposition(is_alike)?;
        let tensor = self.kept.swap_remove(at);
        // SAFETY: there is no other reference to the tensor's memory.
        unsafe { poison(tensor.storage().as_ptr(), tensor.storage().len()) };
        Some(tensor)
    }

    /// Releases all cached tensors.
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
        // SAFETY: the bytes outlive the tensor, and nothing writes to them.
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
