//! Tests tensors: construction, views, strided copies, typed access and its errors.

use pliant_tensor::{DType, Storage, Tensor, TensorError, f16};

fn assert_send_sync<T: Send + Sync>() {}

#[test]
fn handles_are_send_and_sync() {
    assert_send_sync::<Tensor>();
    assert_send_sync::<Storage>();
}

#[test]
fn a_tensor_from_a_slice_is_row_major() {
    let t = Tensor::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!((t.shape(), t.strides(), t.dtype()), (&[2, 3][..], &[3, 1][..], DType::Float32));
    assert_eq!(t.as_slice::<f32>().unwrap()[4], 5.0);
    assert_eq!(t.data_ptr() as usize % 64, 0);
    assert_eq!(t.dl().ndim, 2);
    // SAFETY: the view's shape pointer points into the live tensor.
    assert_eq!(unsafe { *t.dl().shape.add(1) }, 3);
    assert!(matches!(t.as_slice::<i32>(), Err(TensorError::DTypeMismatch { .. })));
    assert!(matches!(
        Tensor::from_slice(&[4], &[1i8, 2]),
        Err(TensorError::LengthMismatch { expected: 4, actual: 2 })
    ));
}

#[test]
fn rank_zero_and_high_ranks_are_supported() {
    let s = Tensor::scalar(7i64).unwrap();
    assert_eq!((s.ndim(), s.numel(), s.as_slice::<i64>().unwrap()), (0, 1, &[7][..]));
    let t = Tensor::zeros(&[1, 1, 2, 1, 1, 1, 3, 1], DType::Int8).unwrap();
    assert_eq!((t.numel(), t.strides()), (6, &[6, 6, 3, 3, 3, 3, 1, 1][..]));
    // SAFETY: the view's stride pointer points into the live tensor.
    assert_eq!(unsafe { *t.dl().strides.add(2) }, 3);
    let e = Tensor::zeros(&[0, 5], DType::Float64).unwrap();
    assert_eq!((e.numel(), e.as_slice::<f64>().unwrap().len()), (0, 0));
    assert!(e.copy().unwrap().is_contiguous());
}

#[test]
fn views_outside_their_storage_are_rejected() {
    let storage = Storage::zeroed(64).unwrap();
    assert!(Tensor::from_storage(storage.clone(), 32, &[8], DType::Float32).is_ok());
    for (offset, shape) in [(36, 8), (usize::MAX, 1), (0, 17)] {
        let error = Tensor::from_storage(storage.clone(), offset, &[shape], DType::Float32);
        assert!(matches!(error, Err(TensorError::OutOfBounds { .. })), "{offset} {shape}");
    }
    let strided = |offset, shape: &[i64], strides: &[i64]| {
        Tensor::from_storage_strided(storage.clone(), offset, shape, strides, DType::Float32)
    };
    assert!(strided(60, &[16], &[-1]).is_ok());
    assert!(strided(56, &[16], &[-1]).is_err());
    assert!(strided(0, &[2, 1 << 40], &[0, 0]).is_ok());
    assert!(strided(0, &[3, 3], &[i64::MAX, i64::MIN]).is_err());
    assert_eq!(
        strided(0, &[3], &[1, 1]).unwrap_err().to_string(),
        "shape [3] and strides [1, 1] have different lengths"
    );
}

#[test]
fn a_wrong_number_of_bytes_is_rejected() {
    let error = Tensor::from_bytes(&[2, 3], DType::Float32, &[0; 6]).unwrap_err();
    assert_eq!(error, TensorError::ByteLengthMismatch { expected: 24, actual: 6 });
    assert_eq!(
        error.to_string(),
        "a tensor of this shape and dtype has 24 bytes, but 6 were given"
    );
}

#[test]
fn strided_views_are_copied_to_row_major() {
    let base = Tensor::from_slice(&[6], &[0i32, 1, 2, 3, 4, 5]).unwrap();
    let view = |offset: usize, shape: &[i64], strides: &[i64]| {
        let storage = base.storage().clone();
        let view = Tensor::from_storage_strided(storage, offset * 4, shape, strides, DType::Int32);
        let view = view.unwrap();
        let copy = view.to_contiguous().unwrap();
        assert_eq!(copy.as_slice::<i32>().unwrap(), view.to_vec::<i32>().unwrap());
        copy.to_vec::<i32>().unwrap()
    };
    assert_eq!(view(0, &[3, 2], &[1, 3]), [0, 3, 1, 4, 2, 5]);
    assert_eq!(view(5, &[6], &[-1]), [5, 4, 3, 2, 1, 0]);
    assert_eq!(view(1, &[2, 2], &[0, 2]), [1, 3, 1, 3]);
    assert_eq!(view(0, &[2, 2, 2], &[1, 0, 2]), [0, 2, 0, 2, 1, 3, 1, 3]);
    let t = Tensor::from_storage_strided(base.storage().clone(), 0, &[3, 2], &[1, 3], DType::Int32);
    assert!(matches!(t.unwrap().as_slice::<i32>(), Err(TensorError::NotContiguous { .. })));
}

#[test]
fn reshape_shares_the_memory() {
    let t = Tensor::from_slice(&[2, 3], &[1u8, 2, 3, 4, 5, 6]).unwrap().as_read_only();
    let r = t.reshape(&[3, 2, 1]).unwrap();
    assert_eq!((r.data_ptr(), r.is_read_only()), (t.data_ptr(), true));
    assert!(matches!(t.reshape(&[7]), Err(TensorError::ShapeMismatch { .. })));
}

#[test]
fn mutable_access_requires_the_only_handle() {
    let mut t = Tensor::zeros(&[2], DType::Int64).unwrap();
    t.as_mut_slice::<i64>().unwrap()[1] = 9;
    let other = t.clone();
    assert_eq!(t.as_mut_slice::<i64>().unwrap_err(), TensorError::Shared);
    drop(other);
    let view = t.reshape(&[1, 2]).unwrap();
    assert_eq!(t.as_mut_slice::<i64>().unwrap_err(), TensorError::Shared);
    drop(view);
    assert_eq!(t.as_mut_slice::<i64>().unwrap(), [0, 9]);
    assert_eq!(t.as_read_only().as_mut_slice::<i64>().unwrap_err(), TensorError::ReadOnly);
}

#[test]
fn copy_from_checks_source_and_destination() {
    let (a, b) = (Tensor::zeros(&[2], DType::Int8).unwrap(), Tensor::scalar(1i8).unwrap());
    let c = Tensor::from_slice(&[2], &[3i8, 4]).unwrap();
    // SAFETY: nothing else uses these tensors.
    unsafe {
        assert!(matches!(a.copy_from(&b), Err(TensorError::ShapeMismatch { .. })));
        assert_eq!(a.as_read_only().copy_from(&c), Err(TensorError::ReadOnly));
        a.copy_from(&c).unwrap();
    }
    assert_eq!(a.as_slice::<i8>().unwrap(), [3, 4]);
}

#[test]
fn elements_convert_to_f64_and_i64() {
    let t = Tensor::from_slice(&[2], &[f16::from_f32(1.5), f16::from_f32(-2.0)]).unwrap();
    assert_eq!(t.to_f64_vec().unwrap(), [1.5, -2.0]);
    assert_eq!(t.to_i64_vec().unwrap(), [1, -2]);
    let b = Tensor::from_slice(&[2], &[true, false]).unwrap();
    assert_eq!(
        (b.to_i64_vec().unwrap(), b.to_vec::<bool>().unwrap()),
        (vec![1, 0], vec![true, false])
    );
    let bad = Tensor::from_bytes(&[1], DType::Bool, &[2]).unwrap();
    assert_eq!(bad.as_slice::<bool>(), Err(TensorError::InvalidBool));
}

#[test]
fn impossible_sizes_are_errors() {
    assert!(matches!(
        Tensor::zeros(&[1 << 40, 1 << 40], DType::Int8),
        Err(TensorError::SizeOverflow { .. })
    ));
    assert!(matches!(Tensor::zeros(&[-3], DType::Int8), Err(TensorError::NegativeDim { .. })));
    // More than the memory limit, if that can be determined.
    assert!(matches!(
        Tensor::zeros(&[1 << 61], DType::Int8),
        Err(TensorError::OutOfMemory { .. } | TensorError::MemoryLimit { .. })
    ));
}

#[test]
fn large_zeroed_memory_is_aligned_and_zero() {
    for len in [0usize, 1, 100, 131_071, 131_072, 1_000_001] {
        let storage = Storage::zeroed(len).unwrap();
        assert_eq!((storage.as_ptr() as usize % 64, storage.len()), (0, len));
        let t = Tensor::from_storage(storage, 0, &[len as i64], DType::UInt8).unwrap();
        assert!(t.as_slice::<u8>().unwrap().iter().all(|&b| b == 0));
    }
}

#[test]
fn views_of_read_only_memory_are_read_only() {
    static BYTES: [u8; 4] = [1, 2, 3, 4];
    let ptr = BYTES.as_ptr().cast_mut();
    // SAFETY: the bytes are static and only read.
    let storage = unsafe { Storage::from_foreign(ptr, BYTES.len(), true, || ()) };
    assert!(storage.is_read_only());
    let first = Tensor::from_storage(storage, 0, &[4], DType::UInt8).unwrap();
    let mut again = Tensor::from_storage(first.storage().clone(), 1, &[2], DType::UInt8).unwrap();
    drop(first);
    assert!(again.is_read_only());
    assert_eq!(again.as_mut_slice::<u8>().unwrap_err(), TensorError::ReadOnly);
    let storage = again.storage().clone();
    let strided = Tensor::from_storage_strided(storage, 3, &[4], &[-1], DType::UInt8).unwrap();
    assert!(strided.is_read_only() && !strided.copy().unwrap().is_read_only());
    assert_eq!(strided.to_vec::<u8>().unwrap(), [4, 3, 2, 1]);
}

#[test]
fn slices_are_strided_views() {
    let data: Vec<i16> = (0..2 * 3 * 4).collect();
    let t = Tensor::from_slice(&[2, 3, 4], &data).unwrap();
    let elements = |first: [i64; 3], step: [i64; 3], shape: [i64; 3]| -> Vec<i16> {
        let view = t.slice(&first, &step, &shape).unwrap();
        assert_eq!(view.shape(), shape);
        let copy = view.copy().unwrap();
        copy.as_slice::<i16>().unwrap().to_vec()
    };
    assert_eq!(elements([0, 0, 0], [1, 1, 1], [2, 3, 4]), data);
    assert_eq!(elements([0, 1, 0], [1, 1, 1], [2, 2, 4]).len(), 16);
    assert_eq!(elements([1, 1, 1], [1, 1, 2], [1, 2, 2]), [17, 19, 21, 23]);
    assert_eq!(elements([1, 2, 3], [-1, -2, -3], [2, 2, 2]), [23, 20, 15, 12, 11, 8, 3, 0]);
    // The step of a single element is ignored. An empty slice may start anywhere.
    assert_eq!(elements([1, 2, 3], [i64::MAX, i64::MIN, 7], [1, 1, 1]), [23]);
    assert_eq!(elements([9, 0, 0], [1, 1, 1], [0, 3, 4]), [0i16; 0]);
    let outside = |first: [i64; 3], step: [i64; 3], shape: [i64; 3]| t.slice(&first, &step, &shape);
    assert!(matches!(
        outside([0, 0, 1], [1, 1, 1], [2, 3, 4]),
        Err(TensorError::OutOfBounds { .. })
    ));
    assert!(outside([-1, 0, 0], [1, 1, 1], [1, 1, 1]).is_err());
    assert!(outside([0, 0, 0], [i64::MAX, 1, 1], [2, 1, 1]).is_err());
    assert!(matches!(t.slice(&[0], &[1], &[2]), Err(TensorError::ShapeMismatch { .. })));
    let scalar = Tensor::scalar(5i16).unwrap();
    assert_eq!(scalar.slice(&[], &[], &[]).unwrap().as_slice::<i16>().unwrap(), [5]);
}
