//! The entry points of the declared kernels for matrix products by low-precision weights.

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::weight_only_matmul::{BFLOAT16, INT4, INT8};
use pliant_kernel_api::{Call, Kernel, Sizes};

use super::{Format, LowPrecisionGemm, run};
use crate::kernel_entry_points::Implementation;
use pliant_machine::isa::isa;

/// Computes the matrix product of a checked call.
///
/// # Safety
/// The conditions of [`Implementation::run`] hold.
unsafe fn product(
    runtime: &KernelRuntime,
    call: &Call,
    sizes: &Sizes,
    (format, group): (Format, i64),
) -> i64 {
    let data = |name: &str| call.operand(name).map(|v| v.data.cast_const());
    let floats = |v: Option<*const u8>| v.map_or(null(), |p| p.cast());
    let [m, n, k] = ["*rows", "columns", "inner"].map(|name| sizes.get(name));
    let scaled = format != Format::BFloat16;
    let g = LowPrecisionGemm {
        m,
        n,
        k,
        a: floats(data("x")),
        a_row: k,
        format,
        b: data("weight").unwrap_or(null()),
        width: sizes.get("width"),
        group,
        scales: if scaled { floats(data("scales")) } else { null() },
        zeros: if scaled { floats(data("zeros")) } else { null() },
        c: floats(data("out")).cast_mut(),
        c_row: n,
    };
    // SAFETY: the call was checked: all operands are compact and have the dims of the product. The instructions are
    // those of the machine.
    unsafe { run(isa(), runtime, &g) }
}

macro_rules! implementation {
    ($(#[$doc:meta])* $name:ident, $kernel:expr, $format:expr, $group:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl Implementation for $name {
            const KERNEL: &'static Kernel = &$kernel;

            unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
                let group: fn(&Call) -> i64 = $group;
                // SAFETY: guaranteed by the caller.
                unsafe { product(runtime, call, sizes, ($format, group(call))) }
            }
        }
    };
}

implementation! {
        /// The implementation of the kernel for matrix products by int8 weights.
    Int8Weight, INT8, Format::Bytes, |call| call.int("group")
}

implementation! {
    /// The implementation of the kernel for matrix products by uint4 weights.
    Int4Weight, INT4, Format::Nibbles, |call| call.int("group")
}

implementation! {
        /// The implementation of the kernel for matrix products by bfloat16 weights.
    BFloat16Weight, BFLOAT16, Format::BFloat16, |_| i64::MAX
}
