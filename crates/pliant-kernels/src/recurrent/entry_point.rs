//! The entry point of the declared kernel `recurrent`.

use std::ptr::{null, null_mut};

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::recurrent_layer::{KERNEL, cell};
use pliant_kernel_api::{Call, Kernel, Sizes};

use super::layer::{Layer, run};
use crate::kernel_entry_points::Implementation;
use pliant_machine::isa::isa;

/// The implementation of the kernel `recurrent` for float32 ([`pliant_kernel_api::kernels::recurrent_layer`]).
pub struct Recurrent;

/// The value of the attribute `layout` with which the batch is the first dim.
const BATCH_FIRST: i64 = 1;

impl Implementation for Recurrent {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let size = |name: &str| sizes.get(name) as usize;
        let batch_first = call.int("layout") == BATCH_FIRST;
        let strides = |name: &str| call.operand(name).map_or(&[][..], |v| v.strides());
        let stride = |name: &str, dim: usize| strides(name)[dim] as usize;
        let data = |name: &str| call.operand(name).map_or(null_mut(), |v| v.data);
        let read = |name: &str| data(name).cast_const().cast::<f32>();
        // The indices of the dims of steps, sequences and directions.
        let (step, batch) = if batch_first { (1, 0) } else { (0, 1) };
        let (y_step, y_direction, y_batch) = if batch_first { (1, 2, 0) } else { (0, 1, 2) };
        let (state_direction, state_batch) = if batch_first { (1, 0) } else { (0, 1) };
        let layer = Layer {
            cell: cell(call),
            steps: size("steps"),
            batch: size("batch"),
            input: size("input"),
            hidden: size("hidden"),
            directions: size("directions"),
            reverse: call.int("reverse") != 0,
            x: (read("x"), stride("x", step), stride("x", batch)),
            w: read("w"),
            r: read("r"),
            bias: read("bias"),
            peepholes: read("peepholes"),
            lengths: call.operand("lengths").map_or(null(), |v| v.data.cast_const().cast()),
            y: (
                data("y").cast(),
                stride("y", y_step),
                stride("y", y_direction),
                stride("y", y_batch),
            ),
            first: (read("initial_h"), read("initial_c")),
            last: (data("last_h").cast(), data("last_c").cast()),
            state: (stride("last_h", state_direction), stride("last_h", state_batch)),
        };
        // SAFETY: the call was checked: the operands have the dims of the layer. All states have the strides of
        // `last_h`, since compact operands of the same dims have the same strides.
        unsafe { run(isa(), runtime, &layer) }
    }
}
