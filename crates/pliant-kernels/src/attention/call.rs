//! The declared kernel `attention`.

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::attention::{KERNEL, NAN, ZEROS_FOR_NAN};
use pliant_kernel_api::{Call, Kernel, Sizes, View};

use super::{Attention, BLIND_NAN, BLIND_ZEROS, Heads, NAN_ZEROS, Scores, pliant_attention_f32};
use crate::entry::Implementation;

/// Attention of float32.
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
            bias: scores(call.operand("bias")),
            mask: scores(call.operand("mask")),
            hidden: call.float("masked_score"),
            mask_first: call.int("mask_before_bias"),
            lengths: std::ptr::null(),
            causal: call.int("causal"),
            // Beyond these limits, a query sees all keys or none.
            offset: call.int("offset").clamp(-size("queries"), keys + window),
            window,
            blind: match call.int("fully_masked") {
                NAN => BLIND_NAN,
                ZEROS_FOR_NAN => NAN_ZEROS,
                _ => BLIND_ZEROS,
            },
        };
        // SAFETY: the call was checked, and the caller promises valid memory.
        unsafe { pliant_attention_f32(runtime, &raw const attention) }
    }
}

/// The rows of an operand.
fn heads(view: Option<&View>) -> Heads<*mut f32> {
    let view = view.expect("the operand is required");
    let strides = view.strides();
    Heads { data: view.data.cast(), batch: strides[0], head: strides[1], row: strides[2] }
}

impl Heads<*mut f32> {
    fn constant(self) -> Heads<*const f32> {
        let Heads { data, batch, head, row } = self;
        Heads { data, batch, head, row }
    }
}

/// An operand with one element per score; [`Scores::NONE`] if it is absent.
fn scores<T>(view: Option<&View>) -> Scores<T> {
    let Some(view) = view else { return Scores::NONE };
    let strides = view.strides();
    Scores {
        data: view.data.cast::<T>(),
        batch: strides[0],
        head: strides[1],
        row: strides[2],
        column: strides[3],
    }
}
