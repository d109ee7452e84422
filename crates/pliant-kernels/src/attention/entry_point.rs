//! The entry point of the declared kernel `attention`.

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::attention::{KERNEL, NAN, ZEROS_FOR_NAN};
use pliant_kernel_api::{Call, Kernel, Sizes, View};

use super::{Attention, FullyMasked, Heads, Scores, run};
use crate::kernel_entry_points::Implementation;
use pliant_machine::isa::isa;

/// The implementation of the kernel `attention` for float32.
pub struct ScaledDotProduct;

impl Implementation for ScaledDotProduct {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let size = |name| sizes.get(name);
        let keys = size("keys");
        let operand = |name| heads(call.operand(name));
        let input = |name| operand(name).constant();
        let window = call.int("window");
        let attention = Attention {
            batch: size("batch"),
            heads: size("heads"),
            kv_heads: size("kv_heads"),
            queries: size("queries"),
            keys,
            size: size("size"),
            value_size: size("value_size"),
            q: input("q"),
            k: input("k"),
            v: input("v"),
            out: operand("out"),
            scale: call.float("scale"),
            cap: call.float("softcap"),
            bias: call.operand("bias").map(scores),
            mask: call.operand("mask").map(scores),
            masked_score: call.float("masked_score"),
            mask_before_bias: call.int("mask_before_bias") != 0,
            causal: call.int("causal") != 0,
            // Beyond these bounds, the offset changes nothing: queries see all keys or none.
            offset: call.int("offset").clamp(-size("queries"), keys + window),
            window,
            fully_masked: match call.int("fully_masked") {
                NAN => FullyMasked::Nan,
                ZEROS_FOR_NAN => FullyMasked::ZerosForNan,
                _ => FullyMasked::Zeros,
            },
        };
        // SAFETY: the call was checked, and the caller guarantees valid memory; the instructions are those of the
        // machine.
        unsafe { run(isa(), runtime, &attention) }
    }
}

/// Converts the view of a required operand to the address and strides of its heads.
fn heads(view: Option<&View>) -> Heads<*mut f32> {
    let view = view.expect("a checked call has all required operands");
    let strides = view.strides();
    Heads { data: view.data.cast(), batch: strides[0], head: strides[1], row: strides[2] }
}

impl Heads<*mut f32> {
    fn constant(self) -> Heads<*const f32> {
        let Heads { data, batch, head, row } = self;
        Heads { data, batch, head, row }
    }
}

/// Converts the view of an operand with one element per score (bias or mask) to its address and
/// strides.
fn scores<T>(view: &View) -> Scores<T> {
    let strides = view.strides();
    Scores {
        data: view.data.cast::<T>(),
        batch: strides[0],
        head: strides[1],
        row: strides[2],
        column: strides[3],
    }
}
