//! Helpers of the tests: compiling one function and calling it on plain slices.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pliant_codegen::{Backend, CodegenError, CodegenOptions, CompiledKernels};
use pliant_cranelift::CraneliftBackend;
use pliant_exec::abi::{DLTensor, KernelRuntime};
use pliant_ir::tir::PrimFunc;
use pliant_pool::Team;
use pliant_tensor::{DLDataType, DLDevice, DType};

/// The sizes that every differential test runs at.
pub const SIZES: [usize; 10] = [0, 1, 2, 3, 7, 8, 17, 33, 64, 1000];

/// An element type of Rust and its name in the IR.
pub trait Elem: Copy + Default + PartialEq + std::fmt::Debug {
    const DTYPE: DType;
}

macro_rules! elems {
    ($($t:ty = $d:ident;)*) => { $(impl Elem for $t { const DTYPE: DType = DType::$d; })* };
}
elems! {
    bool = Bool; i8 = Int8; i16 = Int16; i32 = Int32; i64 = Int64; u8 = UInt8; u16 = UInt16; u32 = UInt32; u64 = UInt64;
    half::f16 = Float16; half::bf16 = BFloat16; f32 = Float32; f64 = Float64;
}

/// A tensor argument: shape, strides and the memory of a slice.
pub struct Arg {
    shape: Vec<i64>,
    strides: Vec<i64>,
    tensor: Option<DLTensor>,
    word: u64,
}

/// A row-major view of a slice.
pub fn tensor<T: Elem>(data: &[T], shape: &[usize]) -> Arg {
    assert_eq!(data.len(), shape.iter().product::<usize>());
    let shape: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
    let mut strides = vec![1i64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i].max(1);
    }
    let (code, bits) = T::DTYPE.to_dlpack();
    let tensor = DLTensor {
        data: data.as_ptr().cast_mut().cast(),
        device: DLDevice { device_type: 1, device_id: 0 },
        ndim: shape.len() as i32,
        dtype: DLDataType { code, bits, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    Arg { shape, strides, tensor: Some(tensor), word: 0 }
}

/// An output tensor over a slice.
pub fn output<T: Elem>(data: &mut [T], shape: &[usize]) -> Arg {
    let data: &[T] = data;
    tensor(data, shape)
}

/// An integer argument.
pub fn int(value: i64) -> Arg {
    Arg { shape: Vec::new(), strides: Vec::new(), tensor: None, word: value as u64 }
}

/// A float argument.
pub fn float(value: f64) -> Arg {
    Arg { shape: Vec::new(), strides: Vec::new(), tensor: None, word: value.to_bits() }
}

/// A compiled function.
pub struct Kernel {
    kernels: CompiledKernels,
}

/// Compiles a lowered function.
pub fn compile(f: &PrimFunc) -> Result<Kernel, CodegenError> {
    let options = CodegenOptions {
        dump_dir: std::env::var_os("PLIANT_TEST_DUMP").map(Into::into),
        ..Default::default()
    };
    let kernels = CraneliftBackend::new().compile(&[(Arc::from("kernel"), f)], &options)?;
    Ok(Kernel { kernels })
}

/// Runs on the calling thread, or with a team.
pub fn runtime(team: Option<&Team>, interrupt: &AtomicBool) -> KernelRuntime {
    let mut runtime = KernelRuntime::serial();
    runtime.interrupt = interrupt;
    if let Some(team) = team {
        runtime.team = (&raw const *team).cast();
        runtime.parallel_launch = pliant_pool::parallel_launch;
    }
    runtime
}

impl Kernel {
    /// Calls the function; the message of the check that failed is the error.
    pub fn call(&self, args: Vec<Arg>, runtime: &KernelRuntime) -> Result<(), String> {
        let kernel = self.kernels.get("kernel").expect("it was compiled under this name");
        let mut args = args;
        for a in &mut args {
            if let Some(t) = &mut a.tensor {
                t.shape = a.shape.as_mut_ptr();
                t.strides = a.strides.as_mut_ptr();
            }
        }
        let words: Vec<u64> = args
            .iter()
            .map(|a| a.tensor.as_ref().map_or(a.word, |t| &raw const *t as u64))
            .collect();
        // SAFETY: the words are what the signature asks for; the slices outlive the call.
        let status = unsafe { (kernel.entry)(words.as_ptr(), runtime) };
        match status {
            0 => Ok(()),
            k if k > 0 => Err(kernel.messages[k as usize - 1].to_string()),
            k => Err(format!("status {k}")),
        }
    }

    /// Calls the function serially.
    pub fn run(&self, args: Vec<Arg>) -> Result<(), String> {
        self.call(args, &runtime(None, &AtomicBool::new(false)))
    }
}
