//! [`TensorCache`]: a cache of small released tensors. A new tensor of the same shape and dtype
//! reuses a cached tensor, so that a loop over scalars does not allocate memory in every iteration.

use pliant_tensor::{DType, Tensor, poison};

use crate::Value;

/// Maximum number of tensors in a [`TensorCache`].
const MAX_TENSORS: usize = 8;
/// Maximum size in bytes of the storage of a tensor in the cache.
const MAX_BYTES: usize = 256;

/// A cache of small result tensors. An entry that only the cache still references is reused for the next result of the
/// same shape, which avoids an allocation.
#[derive(Default)]
pub(crate) struct TensorCache {
    tensors: Vec<Tensor>,
    /// The index of the entry to replace next when the cache is full.
    next: usize,
    /// The id of the running VM. Only tensors in memory of this VM are cached.
    pub(crate) owner: u64,
}

impl TensorCache {
    /// Releases a value. If the value is a small tensor without other references, adds the tensor
    /// to the cache.
    #[inline]
    pub(crate) fn recycle(&mut self, value: Value) {
        if let Value::Tensor(tensor) = value
            && tensor.storage().len() <= MAX_BYTES
            && tensor.storage().owner() == self.owner
            && tensor.is_unique()
        {
            self.insert(tensor);
        }
    }

    fn insert(&mut self, tensor: Tensor) {
        if self.tensors.len() < MAX_TENSORS {
            self.tensors.push(tensor);
        } else {
            self.tensors[self.next] = tensor;
            self.next = (self.next + 1) % MAX_TENSORS;
        }
    }

    /// Takes a cached tensor of this shape and dtype with at least `bytes` bytes of storage. Its elements are uninitialized.
    #[inline]
    pub(crate) fn take(&mut self, bytes: usize, shape: &[i64], dtype: DType) -> Option<Tensor> {
        let matches =
            |t: &Tensor| t.dtype() == dtype && t.shape() == shape && t.storage().len() >= bytes;
        let at = self.tensors.iter().rposition(matches)?;
        let tensor = self.tensors.swap_remove(at);
        // SAFETY: there is no other reference to the tensor's memory.
        unsafe { poison(tensor.storage().as_ptr(), tensor.storage().len()) };
        Some(tensor)
    }

    /// Drops all tensors in the cache.
    pub(crate) fn clear(&mut self) {
        self.tensors.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_pool::alloc_storage;

    fn tensor(shape: &[i64], dtype: DType) -> Tensor {
        let storage = alloc_storage(128).expect("some bytes");
        Tensor::from_storage(storage, 0, shape, dtype).expect("it fits")
    }

    #[test]
    fn a_released_tensor_is_reused_for_the_same_shape_and_dtype() {
        let mut tensor_cache = TensorCache::default();
        let one = tensor(&[2], DType::Int64);
        let address = one.data_ptr();
        tensor_cache.recycle(Value::Tensor(one));
        assert!(tensor_cache.take(1, &[2], DType::Float64).is_none());
        assert!(tensor_cache.take(1, &[1, 2], DType::Int64).is_none());
        assert!(tensor_cache.take(256, &[2], DType::Int64).is_none());
        let again = tensor_cache.take(1, &[2], DType::Int64).expect("it is cached");
        assert_eq!(again.data_ptr(), address);
        assert!(tensor_cache.take(1, &[2], DType::Int64).is_none());
    }

    #[test]
    fn shared_read_only_offset_large_and_foreign_tensors_are_not_cached() {
        let mut tensor_cache = TensorCache::default();
        let held = tensor(&[2], DType::Int64);
        tensor_cache.recycle(Value::Tensor(held.clone()));
        let view = tensor(&[2], DType::Int64);
        let part = view.reshape(&[1, 2]).expect("two elements");
        tensor_cache.recycle(Value::Tensor(view));
        let written = tensor(&[2], DType::Int64);
        let only_read = written.as_read_only();
        drop(written);
        tensor_cache.recycle(Value::Tensor(only_read));
        let storage = alloc_storage(128).expect("some bytes");
        let behind = Tensor::from_storage(storage, 64, &[2], DType::Int64).expect("it fits");
        tensor_cache.recycle(Value::Tensor(behind));
        let storage = alloc_storage(4096).expect("some bytes");
        let roomy = Tensor::from_storage(storage, 0, &[2], DType::Int64).expect("it fits");
        tensor_cache.recycle(Value::Tensor(roomy));
        let mut bytes = [0i64; 2];
        let start = bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the bytes outlive the tensor, and nothing writes to them.
        let foreign = unsafe { pliant_tensor::Storage::from_foreign(start, 16, false, || ()) };
        let foreign = Tensor::from_storage(foreign, 0, &[2], DType::Int64).expect("it fits");
        tensor_cache.recycle(Value::Tensor(foreign));
        assert!(tensor_cache.tensors.is_empty());
        drop((held, part));
    }

    #[test]
    fn tensors_in_memory_of_other_vms_are_not_cached() {
        let mut tensor_cache = TensorCache { owner: 1, ..TensorCache::default() };
        tensor_cache.recycle(Value::Tensor(tensor(&[2], DType::Int64)));
        assert!(tensor_cache.tensors.is_empty());
    }

    #[test]
    fn a_full_cache_evicts_the_oldest_tensor() {
        let mut tensor_cache = TensorCache::default();
        tensor_cache.recycle(Value::Tensor(tensor(&[9], DType::Int8)));
        for rank in 0..MAX_TENSORS {
            tensor_cache.recycle(Value::Tensor(tensor(&vec![1; rank], DType::Int8)));
        }
        assert_eq!(tensor_cache.tensors.len(), MAX_TENSORS);
        assert!(tensor_cache.take(1, &[9], DType::Int8).is_none());
    }
}
