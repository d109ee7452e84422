//! Tests data races of kernel calls: the integers that a loop function passes to a kernel change in
//! memory between its loads of them.

use super::super::changing_memory::{self, ChangingValue};
use super::super::random_numbers::Rng;
use super::call_record::{MAX_ELEMENTS, Mode};
use super::guarded_kernel_call::{Operands, compiled_function, runtime};
use super::{Call, valid_arguments};

/// Calls a kernel `calls` times with the smallest buffers for its valid arguments, while its
/// integer arguments alternate between valid and invalid values. Calls may fail or compute
/// arbitrary results. An access outside a buffer ends the process.
///
/// # Panics
/// If the kernel rejects all generated arguments.
pub fn run(kernel: &str, calls: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let runtime = runtime();
    let mut accepted = None;
    let mut record = valid_arguments::record(kernel, &mut rng);
    for _ in 0..100 {
        record = valid_arguments::record(kernel, &mut rng);
        record.mode = Mode::Loaded;
        let function =
            compiled_function(&record).expect("a kernel call with loaded arguments compiles");
        let call = Call { record: &record, function: &function, runtime: &runtime };
        accepted = call.smallest().map(|(_, sizes)| (function.clone(), sizes));
        if accepted.as_ref().is_some_and(|(_, sizes)| sizes[0] > 0) {
            break;
        }
    }
    let (function, sizes) = accepted.expect("the kernel accepts some of the generated arguments");
    let max_len = sizes.iter().copied().max().unwrap_or(0).min(MAX_ELEMENTS);
    let mut operands = Operands::new(&record, max_len);
    let changing_value = |number: &mut i64| {
        let valid = *number;
        let invalid = [valid + 1, valid * 2 + 16, valid + (1 << 20), -1];
        ChangingValue {
            at: std::ptr::from_mut(number).cast(),
            size: size_of::<i64>(),
            valid,
            invalid,
        }
    };
    let values = operands.numbers().iter_mut().map(changing_value).collect();
    // SAFETY: the arguments are in a mapping of their own.
    unsafe {
        changing_memory::run(values, || {
            for i in 0..calls {
                operands.call(&function, Mode::Loaded, &sizes, i % 2 == 0, &runtime);
            }
        });
    }
}
