//! Data races: the arguments of a kernel call change in the memory that the loop function loads them from.

use super::super::changing_memory::{self, ChangingValue};
use super::super::rng::Rng;
use super::call::{Operands, compiled, runtime};
use super::record::{MOST, Mode};
use super::{Call, valid};

/// Calls a kernel `calls` times on the smallest buffers for its valid arguments, while its arguments alternate between
/// valid and invalid ones. Calls may fail or compute anything; a call that leaves a buffer ends the process.
///
/// # Panics
/// The kernel rejects all arguments.
pub fn run(kernel: &str, calls: usize, seed: u64) {
    let mut rng = Rng::new(seed);
    let runtime = runtime();
    let mut found = None;
    let mut record = valid::record(kernel, &mut rng);
    for _ in 0..100 {
        record = valid::record(kernel, &mut rng);
        record.mode = Mode::Loaded;
        let function = compiled(&record).expect("calls whose numbers are loaded compile");
        let call = Call { record: &record, function: &function, runtime: &runtime };
        found = call.smallest().map(|(_, sizes)| (function.clone(), sizes));
        if found.as_ref().is_some_and(|(_, sizes)| sizes[0] > 0) {
            break;
        }
    }
    let (function, sizes) = found.expect("some arguments are accepted");
    let most = sizes.iter().copied().max().unwrap_or(0).min(MOST);
    let mut operands = Operands::new(&record, most);
    let shifting = |at: &mut i64| {
        let right = *at;
        let wrong = [right + 1, right * 2 + 16, right + (1 << 20), -1];
        ChangingValue { at: std::ptr::from_mut(at).cast(), size: size_of::<i64>(), right, wrong }
    };
    let values = operands.numbers().iter_mut().map(shifting).collect();
    // SAFETY: the arguments are in a mapping of their own.
    unsafe {
        changing_memory::run(values, || {
            for i in 0..calls {
                operands.call(&function, Mode::Loaded, &sizes, i % 2 == 0, &runtime);
            }
        });
    }
}
