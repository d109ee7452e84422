//! Compiles a loop function with one kernel call, and calls it on memory between guard pages.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use pliant::DType;
use pliant_codegen::{Backend, CodegenOptions, CompiledKernels};
use pliant_cranelift::CraneliftBackend;
use pliant_exec::abi::{DLTensor, KernelRuntime};
use pliant_tensor::{DLDataType, DLDevice};

use super::super::guarded_memory::Guarded;
use super::call_record::{Arg, Mode, Record};

/// Returns the script of a module with one loop function, which makes the kernel call.
pub fn script(record: &Record) -> String {
    let ints = record.args.iter().filter(|a| !matches!(a, Arg::Float(_))).count();
    let floats = record.args.len() - ints;
    let types = record.types();
    let mut head = match record.mode {
        Mode::Loaded => format!("numbers: T.Buffer(({ints},), \"int64\"), "),
        Mode::Params => (0..ints).map(|i| format!("n{i}: T.int64, ")).collect(),
        Mode::Literal => String::new(),
    };
    let _ = write!(head, "floats: T.Buffer(({},), \"float64\")", floats.max(1));
    let mut body = String::new();
    for (k, dtype) in types.iter().enumerate() {
        let _ = write!(head, ", b{k}: T.handle");
        let _ = writeln!(body, "        s{k} = T.int64()");
        let _ = writeln!(body, "        x{k} = T.match_buffer(b{k}, (s{k},), \"{dtype}\")");
    }
    let (mut int, mut float, mut buffer) = (0, 0, 0);
    let mut args = String::new();
    for arg in &record.args {
        let number = |value: i64, int: &mut usize| {
            let i = *int;
            *int += 1;
            match record.mode {
                Mode::Loaded => format!("numbers[{i}]"),
                Mode::Params => format!("n{i}"),
                Mode::Literal => value.to_string(),
            }
        };
        let text = match *arg {
            Arg::Int(value) => number(value, &mut int),
            Arg::Address(offset) => {
                buffer += 1;
                format!("T.address_of(x{}[{}])", buffer - 1, number(offset, &mut int))
            }
            Arg::Float(_) => {
                float += 1;
                format!("floats[{}]", float - 1)
            }
        };
        let _ = write!(args, ", {text}");
    }
    let name = &record.kernel;
    format!(
        "from pliant.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Module:\n    @T.prim_func\n    \
         def call({head}):\n{body}        with T.block(\"b\"):\n            \
         T.evaluate(T.call_extern(\"int64\", \"{name}\"{args}))\n"
    )
}

/// A compiled module with one loop function.
pub struct Compiled(CompiledKernels);

/// Compiles a script; `None` if that fails.
fn compile(text: &str) -> Option<Compiled> {
    let module = pliant::parse("kernel.py", text).ok()?.module;
    let (_, function) = module.prim_funcs().next()?;
    let lowered = pliant_tir::lower(function).ok()?;
    let sources = [(Arc::from("call"), &lowered)];
    CraneliftBackend::new().compile(&sources, &CodegenOptions::default()).ok().map(Compiled)
}

/// Returns the compiled loop function that makes a kernel call; `None` if it does not compile. The
/// function is cached, unless its script contains the arguments of the call as constants.
pub fn compiled_function(record: &Record) -> Option<Rc<Compiled>> {
    type FunctionCache = HashMap<(String, bool), Rc<Compiled>>;
    thread_local! {
        static CACHE: RefCell<FunctionCache> = RefCell::default();
    }
    if record.mode == Mode::Literal {
        return compile(&script(record)).map(Rc::new);
    }
    let key = (record.kernel.clone(), record.mode == Mode::Loaded);
    if let Some(cached) = CACHE.with_borrow(|cache| cache.get(&key).cloned()) {
        return Some(cached);
    }
    let compiled_call =
        Rc::new(compile(&script(record)).expect("the script of a kernel's call compiles"));
    CACHE.with_borrow_mut(|cache| cache.insert(key, compiled_call.clone()));
    Some(compiled_call)
}

/// A tensor argument of rank 1, in the form in which the loop function receives it.
struct Vector {
    shape: [i64; 1],
    strides: [i64; 1],
    dtype: DType,
    data: *mut u8,
}

impl Vector {
    fn dl(&mut self) -> DLTensor {
        let (code, bits) = self.dtype.to_dlpack();
        DLTensor {
            data: self.data.cast(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: 1,
            dtype: DLDataType { code, bits, lanes: 1 },
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

/// The number of guard bytes on each side of a buffer. It is large, so that accesses far out of bounds are detected too.
const GUARD_BYTES: usize = 16 << 20;

/// The memory of the buffers of a kernel call, and the integer and float arguments that the call
/// passes.
pub struct Operands {
    types: Vec<DType>,
    memory: Vec<Guarded>,
    numbers: Guarded,
    count: usize,
    floats: Vec<f64>,
}

impl Operands {
    /// Allocates memory for up to `max_len` elements of each buffer.
    pub fn new(record: &Record, max_len: usize) -> Operands {
        let types: Vec<DType> = record
            .types()
            .iter()
            .map(|t| t.parse().expect("the type of a kernel pointer is a data type"))
            .collect();
        let memory =
            types.iter().map(|t| Guarded::with_margin(max_len * t.size(), GUARD_BYTES)).collect();
        let number = |arg: &Arg| match *arg {
            Arg::Int(n) | Arg::Address(n) => Some(n),
            Arg::Float(_) => None,
        };
        let float = |arg: &Arg| if let Arg::Float(x) = *arg { Some(x) } else { None };
        let list: Vec<i64> = record.args.iter().filter_map(number).collect();
        let mut numbers = Guarded::new(list.len() * size_of::<i64>());
        numbers.as_mut::<i64>().copy_from_slice(&list);
        let floats = record.args.iter().filter_map(float).chain([0.0]).collect();
        Operands { types, memory, numbers, count: list.len(), floats }
    }

    /// Returns the integers that the loop function loads from memory in [`Mode::Loaded`].
    pub fn numbers(&mut self) -> &mut [i64] {
        self.numbers.as_mut()
    }

    /// Calls the loop function on buffers of these sizes. Each buffer ends directly before a guard region if `at_end` is set, and
    /// otherwise starts directly after one. Returns the status of the call.
    ///
    /// # Panics
    /// If bytes around a buffer were written.
    pub fn call(
        &mut self,
        compiled: &Compiled,
        mode: Mode,
        sizes: &[usize],
        at_end: bool,
        runtime: &KernelRuntime,
    ) -> i64 {
        let mut vectors = Vec::new();
        let mut words = Vec::new();
        let vector =
            |dtype, len: usize, data| Vector { shape: [len as i64], strides: [1], dtype, data };
        if mode == Mode::Loaded {
            vectors.push(vector(DType::Int64, self.count, self.numbers.as_ptr()));
        } else if mode == Mode::Params {
            words.extend(self.numbers.as_mut::<i64>().iter().map(|&n| n as u64));
        }
        let floats = self.floats.len().saturating_sub(1).max(1);
        vectors.push(vector(DType::Float64, floats, self.floats.as_mut_ptr().cast()));
        for ((memory, &dtype), &len) in self.memory.iter_mut().zip(&self.types).zip(sizes) {
            memory.place(len * dtype.size(), at_end);
            fill_memory(memory, dtype);
            vectors.push(vector(dtype, len, memory.as_ptr()));
        }
        let tensors: Vec<DLTensor> = vectors.iter_mut().map(Vector::dl).collect();
        words.extend(tensors.iter().map(|t| &raw const *t as u64));
        let kernel = compiled
            .0
            .get("call")
            .expect("the compiled module contains the function of the kernel call");
        // SAFETY: the words match the signature, and the memory outlives the call.
        let status = unsafe { (kernel.entry)(words.as_ptr(), runtime) };
        for (k, memory) in self.memory.iter().enumerate() {
            assert!(memory.is_intact(), "bytes around buffer {k} were written");
        }
        status
    }
}

/// Sets the first elements to small integers, which are valid lengths, and makes all bools valid.
fn fill_memory(memory: &mut Guarded, dtype: DType) {
    let small_integer = |i: usize| (i * 7 + i / 5) % 3;
    match dtype {
        DType::Int64 => {
            let values = memory.as_mut::<i64>().iter_mut().take(64);
            values.enumerate().for_each(|(i, v)| *v = small_integer(i) as i64);
        }
        DType::Int32 => {
            let values = memory.as_mut::<i32>().iter_mut().take(1024);
            values.enumerate().for_each(|(i, v)| *v = small_integer(i) as i32);
        }
        DType::Bool => memory.as_mut::<u8>().iter_mut().for_each(|v| *v &= 1),
        DType::Float32 => {
            let values = memory.as_mut::<f32>().iter_mut().take(4096);
            values.enumerate().for_each(|(i, v)| *v = small_integer(i) as f32 - 1.0);
        }
        _ => {}
    }
}

/// Allocates workspace memory that ends at a guard page. The cache line before the memory contains its [`Guarded`].
unsafe extern "C" fn alloc(bytes: u64) -> *mut c_void {
    const CACHE_LINE: usize = 64;
    let Some(wanted) = usize::try_from(bytes).ok().filter(|&n| n <= 256 << 20) else {
        return std::ptr::null_mut();
    };
    let size = wanted.next_multiple_of(CACHE_LINE) + CACHE_LINE;
    let guarded = Guarded::new(size);
    let start = guarded.as_ptr();
    // SAFETY: the cache line before the workspace is large enough for the value.
    unsafe { start.cast::<Guarded>().write(guarded) };
    start.wrapping_add(CACHE_LINE).cast()
}

unsafe extern "C" fn free(block: *mut c_void) {
    if !block.is_null() {
        // SAFETY: the pointer came from `alloc`, so its `Guarded` is in the cache line before it, and is read only once.
        drop(unsafe { block.cast::<u8>().sub(64).cast::<Guarded>().read() });
    }
}

/// Creates a serial runtime whose workspace memory lies between guard pages.
pub fn runtime() -> KernelRuntime {
    KernelRuntime { alloc_workspace: alloc, free_workspace: free, ..KernelRuntime::serial() }
}
