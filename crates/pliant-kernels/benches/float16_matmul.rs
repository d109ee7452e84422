//! Benchmarks of float16 matrix products as in compiled programs. Operands are converted to float32
//! in memory and multiplied, and results are rounded to float16. A constant right operand is packed
//! in float32 in advance; a non-constant one is converted in each call.
//!
//! The floor (the minimum time on this machine) is that of the same product in float32, so
//! percentages show the cost of the conversions.

mod roofline;

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::null;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_exec::abi::KernelRuntime;
use pliant_kernels::batched_gemm::{Gemm, gemm_batch, packed};
use pliant_kernels::matmul::PackedProduct;
use pliant_kernels::vector_math::half_conversions::{select_f16_to_f32, select_f32_to_f16};
use pliant_machine::isa::isa;
use pliant_tensor::{Tensor, pack_panels};
use roofline::{Cases, Workload, thread_counts, values, vectors};

/// The shapes of the matrix products: rows, columns, inner dim, and whether the right operand is
/// constant.
const SHAPES: [(usize, usize, usize, bool); 9] = [
    (1, 384, 384, true),
    (16, 384, 384, true),
    (256, 384, 384, true),
    (1, 1024, 1024, true),
    (64, 1024, 1024, true),
    (512, 512, 512, true),
    (16, 512, 512, false),
    (128, 512, 512, false),
    (512, 512, 512, false),
];

/// Number of elements that a thread converts between float16 and float32 in one call. Generated loops use the same number.
const TILE: usize = 512;
/// Number of elements that a thread converts between float16 and float32 in about a microsecond. Generated loops use the same
/// estimate.
const MICROSECOND: usize = 2688;

/// A parallel conversion of all elements of a slice between float16 and float32.
struct Conversion<A, B> {
    function: unsafe extern "C" fn(*const KernelRuntime, *mut B, *const A, i64) -> i64,
    from: *const A,
    to: *mut B,
    count: usize,
}

impl<A, B> Conversion<A, B> {
    /// Runs the conversion on the worker team.
    ///
    /// # Safety
    /// The runtime is valid. Source and destination have `count` elements.
    unsafe fn run(&self, runtime: &KernelRuntime) {
        unsafe extern "C" fn convert_tiles<A, B>(
            context: *mut c_void,
            begin: i64,
            end: i64,
        ) -> i64 {
            // SAFETY: `run` passes itself, and outlives the loop.
            let conversion = unsafe { &*context.cast::<Conversion<A, B>>() };
            let end = conversion.count.min(end as usize * MICROSECOND);
            for at in (begin as usize * MICROSECOND..end).step_by(TILE) {
                let count = TILE.min(end - at) as i64;
                // SAFETY: guaranteed by the caller; pieces write disjoint ranges.
                unsafe {
                    (conversion.function)(
                        null(),
                        conversion.to.add(at),
                        conversion.from.add(at),
                        count,
                    )
                };
            }
            0
        }
        let context = (&raw const *self).cast_mut().cast();
        let pieces = self.count.div_ceil(MICROSECOND) as i64;
        // SAFETY: guaranteed by the caller.
        unsafe {
            (runtime.parallel_launch)(runtime.team, convert_tiles::<A, B>, context, pieces, 1)
        };
    }
}

fn halves(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "float16", vectors(), threads);
        let runtime = cases.runtime();
        for (m, n, k, constant) in SHAPES {
            // The bits of float16 numbers from 0.5 on.
            let bits =
                |len: usize| (0..len).map(|i| 0x3800 + (i % 13) as u16).collect::<Vec<u16>>();
            let (a, b, mut c) = (bits(m * k), bits(k * n), bits(m * n));
            let (mut wide_a, mut wide_c) = (vec![0f32; m * k], vec![0f32; m * n]);
            let mut wide_b = values(k * n, 5);
            let matrix = Tensor::from_slice(&[k as i64, n as i64], &wide_b).expect("small");
            let panels = pack_panels(&matrix, false).expect("a matrix");
            let width = panels.shape()[2];
            let panels = panels.as_slice::<f32>().expect("float32").as_ptr();
            let work = Workload::single((2 * m * n * k) as f64, (4 * n * k) as f64);
            let suffix = if constant { "" } else { ", non-constant" };
            cases.run(&format!("{m} x {n} x {k}{suffix}"), work, || {
                let (wide_a, wide_b) = (wide_a.as_mut_ptr(), wide_b.as_mut_ptr());
                let wide_c = wide_c.as_mut_ptr();
                let convert_a = Conversion {
                    function: select_f16_to_f32(isa()),
                    from: black_box(a.as_ptr()),
                    to: wide_a,
                    count: m * k,
                };
                let convert_b = Conversion {
                    function: select_f16_to_f32(isa()),
                    from: b.as_ptr(),
                    to: wide_b,
                    count: k * n,
                };
                let convert_c = Conversion {
                    function: select_f32_to_f16(isa()),
                    from: wide_c,
                    to: c.as_mut_ptr(),
                    count: m * n,
                };
                let (inner, columns) = (k as isize, n as isize);
                let (a, b) = (wide_a.cast_const(), wide_b.cast_const());
                // SAFETY: the operands have these sizes.
                unsafe {
                    convert_a.run(&runtime);
                    if constant {
                        let (a, b) = ((a, inner, 1), (panels, width as usize));
                        let p = PackedProduct::new([m, n, k], a, b, (wide_c, columns));
                        packed(&runtime, &p);
                    } else {
                        convert_b.run(&runtime);
                        let (a, b, c) = ((a, inner, 1), (b, columns, 1), (wide_c, columns, 1));
                        let g = Gemm { m, n, k, a, b, c, accumulate: false };
                        gemm_batch(&runtime, 1, g, [0; 3]);
                    }
                    convert_c.run(&runtime);
                }
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, halves);
criterion_main!(benches);
