//! Generates small inputs for functions, and runs functions on them. Tensors lie between guard pages. Their values are small
//! integers, which are valid indices, and sometimes boundary values.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use pliant::{
    CompiledModule, DType, Dim, ErrorKind, Model, Tensor, Value, ValueInfo, VirtualMachine,
};
use pliant_tensor::Storage;

use super::guarded_memory::Guarded;
use super::random_numbers::Rng;

/// Maximum number of elements of an input.
const MAX_ELEMENTS: i64 = 1 << 14;

/// Creates a tensor whose data ends at a guard page; `None` if a dim is negative or the tensor has
/// too many elements.
pub fn tensor(shape: &[i64], dtype: DType, rng: &mut Rng) -> Option<Tensor> {
    let count = shape.iter().try_fold(1i64, |all, &d| all.checked_mul(d))?;
    if !(0..=MAX_ELEMENTS).contains(&count) || shape.iter().any(|d| *d < 0) {
        return None;
    }
    let mut memory = Guarded::new(count as usize * dtype.size());
    fill(&mut memory, dtype, rng);
    let (data, len) = (memory.as_ptr(), count as usize * dtype.size());
    // SAFETY: the memory lives until the storage releases it, and nothing else uses it.
    let storage = unsafe { Storage::from_foreign(data, len, false, move || drop(memory)) };
    Tensor::from_storage(storage, 0, shape, dtype).ok()
}

fn fill(memory: &mut Guarded, dtype: DType, rng: &mut Rng) {
    let has_boundary_values = rng.one_in(4);
    let mut int = || match has_boundary_values && rng.one_in(4) {
        true => rng.boundary_value(1),
        false => rng.between(0, 3),
    };
    match dtype {
        DType::Bool => memory.as_mut::<u8>().iter_mut().for_each(|v| *v = int() as u8 & 1),
        DType::Float32 => memory.as_mut::<f32>().iter_mut().for_each(|v| *v = int() as f32 - 1.5),
        DType::Float64 => memory.as_mut::<f64>().iter_mut().for_each(|v| *v = int() as f64 - 1.5),
        DType::Float16 => memory.as_mut::<u16>().iter_mut().for_each(|v| *v = (int() as u16) << 10),
        DType::BFloat16 => memory.as_mut::<u16>().iter_mut().for_each(|v| *v = (int() as u16) << 7),
        DType::Int16 | DType::UInt16 => {
            memory.as_mut::<u16>().iter_mut().for_each(|v| *v = int() as u16);
        }
        DType::Int32 | DType::UInt32 => {
            memory.as_mut::<u32>().iter_mut().for_each(|v| *v = int() as u32);
        }
        DType::Int64 | DType::UInt64 => {
            memory.as_mut::<i64>().iter_mut().for_each(|v| *v = int());
        }
        _ => memory.as_mut::<u8>().iter_mut().for_each(|v| *v = int() as u8),
    }
}

/// The sizes of symbols. The size of a symbol is chosen on first use.
#[derive(Default)]
pub struct Symbols(HashMap<String, i64>);

impl Symbols {
    fn size(&mut self, dim: &Dim, rng: &mut Rng) -> i64 {
        match dim {
            Dim::Constant(n) => *n,
            Dim::Symbolic(text) => self.value(text.trim(), rng),
        }
    }

    /// Returns the value of a symbol, or of an expression of symbols and numbers with `+`, `-` and
    /// `*` but without parentheses.
    fn value(&mut self, text: &str, rng: &mut Rng) -> i64 {
        if let Ok(n) = text.parse() {
            return n;
        }
        for (operator, apply) in [
            (" + ", i64::wrapping_add as fn(i64, i64) -> i64),
            (" - ", i64::wrapping_sub),
            (" * ", i64::wrapping_mul),
        ] {
            if let Some((a, b)) = text.rsplit_once(operator) {
                return apply(self.value(a, rng), self.value(b, rng));
            }
        }
        let chosen = *rng.pick(&[0, 1, 2, 3, 4, 5, 8, 17, 33]);
        *self.0.entry(text.to_string()).or_insert(chosen)
    }
}

/// Generates a random value that matches a declared type, as far as the type is known.
pub fn value(info: &ValueInfo, symbols: &mut Symbols, rng: &mut Rng) -> Value {
    let dtype: Option<DType> = info.dtype.as_ref().and_then(|d| d.parse().ok());
    if info.ty.starts_with("R.Prim") {
        let small = Value::Int(rng.between(0, 6));
        return if rng.one_in(8) { Value::Int(rng.boundary_value(2)) } else { small };
    }
    if info.ty.starts_with("R.Shape") {
        let dims: Vec<i64> = (0..rng.below(4)).map(|_| rng.between(0, 4)).collect();
        return Value::shape(&dims);
    }
    if info.ty.starts_with("R.Tuple") {
        let fields: Vec<Value> = (0..2).filter_map(|_| any_tensor(rng)).collect();
        return Value::tuple(fields);
    }
    let dims: Option<Vec<i64>> = match &info.shape {
        Some(dims) => Some(dims.iter().map(|d| symbols.size(d, rng)).collect()),
        None => Some((0..rng.below(4)).map(|_| rng.between(0, 4)).collect()),
    };
    let tensor = dims.and_then(|dims| tensor(&dims, dtype.unwrap_or(DType::Float32), rng));
    tensor.map_or(Value::None, Value::Tensor)
}

fn any_tensor(rng: &mut Rng) -> Option<Value> {
    let dims: Vec<i64> = (0..rng.below(4)).map(|_| rng.between(0, 4)).collect();
    let dtype = *rng.pick(&[DType::Float32, DType::Int64, DType::Int32, DType::Bool]);
    tensor(&dims, dtype, rng).map(Value::Tensor)
}

/// Generates a small value of a random type.
pub fn any_value(rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => Value::Int(rng.boundary_value(1)),
        1 => Value::shape(&[rng.between(0, 4), rng.between(0, 4)]),
        2 => Value::None,
        3 => Value::tuple(any_tensor(rng)),
        _ => any_tensor(rng).unwrap_or(Value::None),
    }
}

/// Runs the functions of a program on small inputs, each for a limited time. Returns whether the program has any functions. Ignores
/// all errors except internal ones.
pub fn run_all(compiled: CompiledModule, rng: &mut Rng) -> bool {
    let Ok(model) = Model::new(compiled) else { return false };
    let signatures = model.compiled().signatures().to_vec();
    for _ in 0..2 {
        for signature in signatures.iter().take(4) {
            let mut symbols = Symbols::default();
            let args: Vec<Value> =
                signature.inputs.iter().map(|i| value(i, &mut symbols, rng)).collect();
            let _timeout = RunTimeout::start(model.vm());
            run_once(&model, &signature.name, &args);
        }
    }
    let names: Vec<String> = model.vm().function_names().iter().map(|n| n.to_string()).collect();
    for name in names.iter().filter(|n| model.signature(n).is_none()).take(4) {
        let count = model.vm().params(name).map_or(0, <[_]>::len);
        let args: Vec<Value> = (0..count).map(|_| any_value(rng)).collect();
        let _timeout = RunTimeout::start(model.vm());
        run_once(&model, name, &args);
    }
    !names.is_empty()
}

/// Runs a function once and ignores its errors.
///
/// # Panics
/// On internal errors, which report accesses that generated code did not check.
fn run_once(model: &Model, function: &str, args: &[Value]) {
    if let Err(error) = model.run(function, args)
        && error.kind() == ErrorKind::Internal
    {
        panic!("internal error: {error}");
    }
}

/// A guard that interrupts a VM after [`RUN_TIME_LIMIT`], unless it is dropped before.
struct RunTimeout;

enum TimeoutMessage {
    Start(VirtualMachine),
    End,
}

/// Maximum time of a run of one function.
const RUN_TIME_LIMIT: Duration = Duration::from_millis(200);

thread_local! {
    /// The channel to the thread that interrupts the runs of this thread.
    static TIMEOUT_MESSAGES: SyncSender<TimeoutMessage> = {
        let (sender, receiver) = sync_channel(0);
        std::thread::spawn(move || interrupt_after_timeout(&receiver));
        sender
    };
}

impl RunTimeout {
    fn start(vm: &VirtualMachine) -> RunTimeout {
        let _ = TIMEOUT_MESSAGES.with(|messages| messages.send(TimeoutMessage::Start(vm.clone())));
        RunTimeout
    }
}

impl Drop for RunTimeout {
    fn drop(&mut self) {
        let _ = TIMEOUT_MESSAGES.with(|messages| messages.send(TimeoutMessage::End));
    }
}

fn interrupt_after_timeout(messages: &Receiver<TimeoutMessage>) {
    let mut machine = None;
    loop {
        match messages.recv_timeout(RUN_TIME_LIMIT) {
            Ok(TimeoutMessage::Start(vm)) => machine = Some(vm),
            Ok(TimeoutMessage::End) => machine = None,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(vm) = &machine {
                    vm.interrupt();
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
