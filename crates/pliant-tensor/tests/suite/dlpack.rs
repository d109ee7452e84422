//! Tests DLPack exchange with the structures before and since DLPack 1.0, in both directions: no copies, and exactly
//! one call of the deleter.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_tensor::{
    DL_CPU, DLDataType, DLDevice, DLManagedTensor, DLPACK_FLAG_READ_ONLY, DLTensor, DType, Tensor,
    TensorError,
};

static DELETED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn count(managed: *mut DLManagedTensor) {
    DELETED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: created by `foreign` with Box::into_raw, and deleted once.
    drop(unsafe { Box::from_raw(managed) });
}

fn foreign(data: *mut c_void, dims: &mut [i64], strides: *mut i64) -> DLManagedTensor {
    DLManagedTensor {
        dl_tensor: DLTensor {
            data,
            device: DLDevice { device_type: DL_CPU, device_id: 0 },
            ndim: dims.len() as i32,
            dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
            shape: dims.as_mut_ptr(),
            strides,
            byte_offset: 0,
        },
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(count),
    }
}

#[test]
fn foreign_tensors_are_borrowed_and_released_once() {
    let mut data = [1f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let (mut dims, mut strides) = ([2i64, 3], [-3i64, 1]);
    let mut managed = foreign(data.as_mut_ptr().cast(), &mut dims, strides.as_mut_ptr());
    managed.dl_tensor.byte_offset = 12;
    let raw = Box::into_raw(Box::new(managed));
    // SAFETY: the structure is valid and `data` outlives the tensor.
    let t = unsafe { Tensor::from_dlpack(raw) }.unwrap();
    assert_eq!(t.data_ptr() as usize, data.as_ptr() as usize + 12);
    assert_eq!(t.to_vec::<f32>().unwrap(), [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    assert_eq!((t.dl().byte_offset, t.storage().len(), t.byte_offset()), (0, 24, 12));
    let view = t.clone();
    drop(t);
    assert_eq!(DELETED.load(Ordering::SeqCst), 0);
    std::thread::spawn(move || drop(view)).join().unwrap();
    assert_eq!(DELETED.load(Ordering::SeqCst), 1);
}

#[test]
fn tensors_with_null_strides_or_without_elements_are_accepted() {
    let mut data = [1f32, 2.0];
    let mut dims = [2i64, 1];
    let mut managed = foreign(data.as_mut_ptr().cast(), &mut dims, std::ptr::null_mut());
    managed.deleter = None;
    // SAFETY: the structure and `data` outlive the tensor.
    let t = unsafe { Tensor::from_dlpack(&mut managed) }.unwrap();
    assert_eq!((t.strides(), t.as_slice::<f32>().unwrap()), (&[1, 1][..], &[1.0, 2.0][..]));
    drop(t);
    let mut dims = [0i64];
    let mut managed = foreign(std::ptr::null_mut(), &mut dims, std::ptr::null_mut());
    managed.deleter = None;
    // SAFETY: the structure outlives the tensor, which has no elements.
    let t = unsafe { Tensor::from_dlpack(&mut managed) }.unwrap();
    assert_eq!(t.as_slice::<f32>().unwrap().len(), 0);
}

#[test]
fn unsupported_and_malformed_tensors_are_rejected() {
    let data = [0f32; 4];
    let refuse = |edit: &dyn Fn(&mut DLTensor)| {
        let mut dims = [4i64];
        let mut managed = foreign(data.as_ptr().cast_mut().cast(), &mut dims, std::ptr::null_mut());
        managed.deleter = None;
        edit(&mut managed.dl_tensor);
        // SAFETY: the structure is valid, except for what is rejected before use.
        unsafe { Tensor::from_dlpack(&mut managed) }.unwrap_err().to_string()
    };
    assert!(refuse(&|t| t.device.device_type = 2).contains("device type 2"));
    assert!(refuse(&|t| t.dtype.lanes = 4).contains("4 lanes"));
    assert!(refuse(&|t| t.dtype.code = 5).contains("type code 5"));
    assert!(refuse(&|t| t.ndim = -1).contains("the rank of the DLPack tensor is -1"));
    assert!(
        refuse(&|t| t.shape = std::ptr::null_mut())
            .contains("the shape of the DLPack tensor is null")
    );
    assert!(refuse(&|t| t.data = std::ptr::null_mut()).contains("data pointer is null"));
    // SAFETY: null is rejected.
    assert!(unsafe { Tensor::from_dlpack(std::ptr::null_mut()) }.is_err());
}

#[test]
fn exported_tensors_can_be_imported_again() {
    let t = Tensor::from_slice(&[2, 2], &[1i64, 2, 3, 4]).unwrap();
    // SAFETY: created by `to_dlpack` and taken once.
    let back = unsafe { Tensor::from_dlpack(t.to_dlpack().unwrap()) }.unwrap();
    assert_eq!((back.data_ptr(), back.dtype()), (t.data_ptr(), DType::Int64));
    drop(t);
    assert_eq!(back.as_slice::<i64>().unwrap(), [1, 2, 3, 4]);

    let locked = back.as_read_only();
    assert_eq!(locked.to_dlpack().unwrap_err(), TensorError::ReadOnly);
    let raw = locked.to_dlpack_versioned();
    // SAFETY: just created and not taken yet.
    assert_eq!(unsafe { (*raw).flags }, DLPACK_FLAG_READ_ONLY);
    // SAFETY: created by `to_dlpack_versioned` and taken once.
    let again = unsafe { Tensor::from_dlpack_versioned(raw) }.unwrap();
    assert!(again.is_read_only());
    let raw = back.to_dlpack_versioned();
    // SAFETY: just created; version 2 is rejected, so it is deleted here.
    unsafe {
        (*raw).version.major = 2;
        assert!(Tensor::from_dlpack_versioned(raw).unwrap_err().to_string().contains("2.0"));
        ((*raw).deleter.unwrap())(raw);
    }
}
