//! Helpers of the tests: build and compile a loop function, and call it on slices.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pliant_codegen::{Backend, CodegenError, CodegenOptions, CompiledKernels};
use pliant_exec::abi::{DLTensor, KernelRuntime};
use pliant_ir::AttrValue;
use pliant_ir::tir::PrimFunc;
use pliant_pool::Team;
use pliant_tensor::CheckFailure;
use pliant_tensor::{DLDataType, DLDevice, DType};
use pliant_tir::code_generator_vectors::VECTOR_BYTES;

/// The numbers of elements with which most tests run a compiled function.
pub const SIZES: [usize; 10] = [0, 1, 2, 3, 7, 8, 17, 33, 64, 1000];

/// A Rust type that can be an element of a tensor argument.
pub trait Elem: Copy + Default + PartialEq + std::fmt::Debug {
    /// The data type in the IR that corresponds to this Rust type.
    const DTYPE: DType;
}

macro_rules! elems {
    ($($t:ty = $d:ident;)*) => { $(impl Elem for $t { const DTYPE: DType = DType::$d; })* };
}
elems! {
    bool = Bool; i8 = Int8; i16 = Int16; i32 = Int32; i64 = Int64; u8 = UInt8; u16 = UInt16; u32 = UInt32; u64 = UInt64;
    half::f16 = Float16; half::bf16 = BFloat16; f32 = Float32; f64 = Float64;
}

/// An argument of a compiled function: a tensor that borrows a slice, or a scalar as a 64-bit word.
pub struct Arg {
    shape: Vec<i64>,
    strides: Vec<i64>,
    tensor: Option<DLTensor>,
    word: u64,
}

/// Creates a read-only, row-major tensor argument that borrows a slice.
pub fn tensor<T: Elem>(data: &[T], shape: &[usize]) -> Arg {
    tensor_on::<T>(data.as_ptr().cast_mut(), data.len(), shape)
}

/// Creates a writable, row-major tensor argument that borrows a slice.
pub fn output<T: Elem>(data: &mut [T], shape: &[usize]) -> Arg {
    tensor_on::<T>(data.as_mut_ptr(), data.len(), shape)
}

fn tensor_on<T: Elem>(data: *mut T, len: usize, shape: &[usize]) -> Arg {
    assert_eq!(len, shape.iter().product::<usize>());
    let shape: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
    let mut strides = vec![1i64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i].max(1);
    }
    let (code, bits) = T::DTYPE.to_dlpack();
    let tensor = DLTensor {
        data: data.cast(),
        device: DLDevice { device_type: 1, device_id: 0 },
        ndim: shape.len() as i32,
        dtype: DLDataType { code, bits, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    Arg { shape, strides, tensor: Some(tensor), word: 0 }
}

/// Creates an integer argument for a loop function.
pub fn int(value: i64) -> Arg {
    Arg { shape: Vec::new(), strides: Vec::new(), tensor: None, word: value as u64 }
}

/// Creates a float argument for a loop function.
pub fn float(value: f64) -> Arg {
    Arg { shape: Vec::new(), strides: Vec::new(), tensor: None, word: value.to_bits() }
}

/// A loop function compiled for a test.
pub struct CompiledFunction {
    kernels: CompiledKernels,
}

/// Compiles a lowered loop function. If the environment variable `PLIANT_TEST_DUMP` names a
/// directory, writes the machine code to it.
pub fn compile(f: &PrimFunc) -> Result<CompiledFunction, CodegenError> {
    let options = CodegenOptions {
        dump_dir: std::env::var_os("PLIANT_TEST_DUMP").map(Into::into),
        ..Default::default()
    };
    let kernels = crate::backend().compile(&[(Arc::from("kernel"), f)], &options)?;
    Ok(CompiledFunction { kernels })
}

/// Creates the runtime for a call of a loop function. It runs parallel loops on `team`, or on the
/// calling thread if `team` is `None`.
pub fn runtime(team: Option<&Team>, interrupt: &AtomicBool) -> KernelRuntime {
    let mut runtime = KernelRuntime::serial();
    runtime.interrupt = interrupt;
    if let Some(team) = team {
        runtime.team = (&raw const *team).cast();
        runtime.parallel_launch = pliant_pool::parallel_launch;
    }
    runtime
}

impl CompiledFunction {
    /// Calls the function. On failure, returns the message of the failed check, or the status as
    /// text.
    pub fn call(&self, args: Vec<Arg>, runtime: &KernelRuntime) -> Result<(), String> {
        let kernel = self.kernels.get("kernel").expect("`compile` used this name");
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
        // SAFETY: the words match the signature, and the slices outlive the call.
        let status = unsafe { (kernel.entry)(words.as_ptr(), runtime) };
        match status {
            0 => Ok(()),
            k if k > 0 => Err(CheckFailure::split(&kernel.messages[k as usize - 1]).1.to_string()),
            k => Err(format!("status {k}")),
        }
    }

    /// Calls the function on the calling thread only.
    pub fn run(&self, args: Vec<Arg>) -> Result<(), String> {
        self.call(args, &runtime(None, &AtomicBool::new(false)))
    }
}

// ---- helpers that build loop functions with blocks ----

use pliant_ir::tir::{BlockData, Buffer, Expr, ForKind, IterKind, IterVar, Stmt, StmtData, Var};

/// Shorthand for the axis kind `Spatial` (an axis without reduction).
pub const S: IterKind = IterKind::Spatial;
pub const R: IterKind = IterKind::Reduce;

/// What a stage stores: the buffer, the indices, the initial value of a reduction, and the value.
pub struct StageWrite {
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    pub init: Option<Expr>,
    pub value: Expr,
}

/// Creates a stage: a loop nest around a block over `axes`. `body` receives the axis variables and returns what the
/// stage stores.
pub fn stage(
    f: &mut PrimFunc,
    name: &str,
    axes: &[(Expr, IterKind)],
    body: impl FnOnce(&mut PrimFunc, &[Expr]) -> StageWrite,
) -> Stmt {
    let zero = f.int(0);
    let loops: Vec<Var> = (0..axes.len()).map(|i| f.size_var(format!("i{i}"))).collect();
    let vars: Vec<Var> = (0..axes.len()).map(|i| f.size_var(format!("v{i}"))).collect();
    let exprs: Vec<Expr> = vars.iter().map(|&v| f.var_expr(v)).collect();
    let w = body(f, &exprs);
    let iters = (0..axes.len())
        .map(|i| IterVar {
            var: vars[i],
            min: zero,
            extent: axes[i].0,
            kind: axes[i].1,
            binding: f.var_expr(loops[i]),
        })
        .collect();
    let init = w.init.map(|e| f.store(w.buffer, &w.indices, e));
    let body = f.store(w.buffer, &w.indices, w.value);
    let block = BlockData {
        name: name.into(),
        iters,
        predicate: None,
        reads: None,
        writes: None,
        allocs: Vec::new(),
        init,
        body,
        annotations: Vec::new(),
    };
    let mut s = f.add_stmt(StmtData::Block(Box::new(block)));
    for i in (0..axes.len()).rev() {
        s = f.add_stmt(StmtData::For {
            var: loops[i],
            min: zero,
            extent: axes[i].0,
            kind: ForKind::Serial,
            body: s,
            annotations: Vec::new(),
        });
    }
    s
}

/// Sets the body of the function to a root block that allocates buffers and contains the stages.
pub fn root(f: &mut PrimFunc, allocs: Vec<Buffer>, stmts: Vec<Stmt>) {
    let body = f.add_stmt(StmtData::Seq(stmts));
    let block = BlockData {
        name: "root".into(),
        iters: Vec::new(),
        predicate: None,
        reads: None,
        writes: None,
        allocs,
        init: None,
        body,
        annotations: Vec::new(),
    };
    f.body = f.add_stmt(StmtData::Block(Box::new(block)));
}

/// Adds a buffer parameter of this name, shape and type to a function.
pub fn param(f: &mut PrimFunc, name: &str, shape: &[Expr], dtype: DType) -> Buffer {
    let b = f.compact_buffer(name, shape.to_vec(), dtype);
    f.add_buffer_param(format!("var_{name}"), b);
    b
}

/// Adds a size variable to a function. Returns the variable as an expression.
pub fn size(f: &mut PrimFunc, name: &str) -> Expr {
    let v = f.size_var(name);
    f.var_expr(v)
}

/// Lowers a loop function with blocks for the vectors of the code generator, verifies it after each pass, and compiles it.
pub fn build(f: &PrimFunc) -> CompiledFunction {
    let mut f = f.clone();
    if let Some(bytes) = crate::backend().widest_vector_bytes().expect("the CPU is supported") {
        f.attrs.insert(VECTOR_BYTES.into(), AttrValue::Int(bytes as i64));
    }
    let mut violations = Vec::new();
    let lowered = pliant_tir::lower_observed(&f, &mut |pass, f| {
        let findings = pliant_ir::tir::verify::verify_prim_func(f);
        violations.extend(findings.into_iter().map(|d| format!("after {pass}: {d:?}")));
    });
    let lowered = lowered.expect("the test's function can be lowered");
    assert!(violations.is_empty(), "{violations:#?}");
    match compile(&lowered) {
        Ok(k) => k,
        Err(e) => panic!(
            "{e}\n{}",
            match &e {
                CodegenError::Internal { ir, .. } => ir.clone(),
                _ => String::new(),
            }
        ),
    }
}

/// Calls `run` with a runtime for the calling thread, then with a team of two threads.
pub fn run_serially_and_on_team(mut run: impl FnMut(&KernelRuntime)) {
    let flag = AtomicBool::new(false);
    run(&runtime(None, &flag));
    let team = Team::new(2);
    run(&runtime(Some(&team), &flag));
}

/// Returns `n` pseudo-random numbers from -1 to 1.
pub fn random_floats(n: usize, seed: u64) -> Vec<f32> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// Asserts that all elements differ by at most `tolerance`. The tolerance is relative for magnitudes above 1.
pub fn assert_close(actual: &[f32], expected: &[f32], tolerance: f32, label: &str) {
    assert_eq!(actual.len(), expected.len());
    for (i, (a, e)) in actual.iter().zip(expected).enumerate() {
        let close =
            a == e || (a.is_nan() && e.is_nan()) || (a - e).abs() <= tolerance * (1.0 + e.abs());
        assert!(close, "{label}: element {i} is {a}, not {e}");
    }
}
