//! Benchmarks of matrix products and convolutions of 8-bit integers, relative to the float32 peak
//! rate. The peak rate for 8-bit integers is 4 times as high with vector instructions, and 16 times
//! as high with tile registers (AMX).

mod roofline;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::quantized::convolution::{self, Convolution, Counts};
use pliant_kernels::quantized::{QuantizedGemm, pack_vnni, run};
use pliant_machine::isa::isa;
use pliant_tensor::Tensor;
use roofline::{Cases, Workload, thread_counts, values};

/// The shapes of the matrix products: rows, columns, inner dim.
const SHAPES: [(usize, usize, usize); 6] = [
    (512, 512, 512),
    (1024, 1024, 1024),
    (64, 1536, 384),
    (8, 1024, 1024),
    (7, 384, 1536),
    (1, 1024, 1024),
];

/// The zero point of all rows of the left operand in the benchmarked 8-bit matrix products.
static ZERO: i32 = 3;

fn quantized(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "int8", isa(), threads);
        let runtime = cases.runtime();
        for (m, n, k) in SHAPES {
            let byte = |x: f32| (x * 120.0) as i8;
            let a: Vec<u8> = values(m * k, 7).into_iter().map(|x| byte(x) as u8).collect();
            let b: Vec<i8> = values(n * k, 5).into_iter().map(byte).collect();
            let quads = pack_vnni(&b, k, n).expect("a small matrix can be packed");
            // Tensors are aligned to cache lines, like the constants of programs.
            let b = Tensor::from_slice(&[quads.data.len() as i64], &quads.data).expect("memory");
            let mut out = vec![0i32; m * n];
            let g = QuantizedGemm {
                m: m as i64,
                n: n as i64,
                k: k as i64,
                a: a.as_ptr(),
                a_row: k as i64,
                a_signed: true,
                a_zeros: &raw const ZERO,
                a_zeros_stride: 0,
                b: b.as_slice::<i8>().expect("dense").as_ptr(),
                width: quads.width as i64,
                sums: quads.sums.as_ptr(),
                b_zeros: std::ptr::null(),
                c: out.as_mut_ptr(),
                c_row: n as i64,
                epilogue: None,
            };
            let work = Workload::single((2 * m * n * k) as f64, (n * k) as f64);
            cases.run(&format!("{m} x {n} x {k}"), work, || {
                // SAFETY: the operands have these sizes.
                unsafe { run(isa(), &runtime, black_box(&g)) };
            });
        }
        cases.finish();
    }
}

/// The shapes of the convolutions: height and width of the input, channels, filters, filter width, stride, and whether
/// the convolution is depthwise.
const CONVOLUTIONS: [(usize, usize, usize, usize, usize, bool); 10] = [
    (56, 64, 64, 3, 1, false),
    (28, 128, 128, 3, 1, false),
    (14, 256, 256, 3, 1, false),
    (7, 512, 512, 3, 1, false),
    (56, 64, 128, 3, 2, false),
    (224, 3, 64, 7, 2, false),
    (56, 64, 256, 1, 1, false),
    (14, 1024, 256, 1, 1, false),
    (56, 144, 144, 3, 1, true),
    (14, 576, 576, 3, 1, true),
];

fn convolutions(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "int8 convolution", isa(), threads);
        let runtime = cases.runtime();
        for (size, channels, filters, kernel, stride, is_depthwise) in CONVOLUTIONS {
            let padding = kernel / 2;
            let output = (size + 2 * padding - kernel) / stride + 1;
            let k = kernel * kernel * if is_depthwise { 1 } else { channels };
            let byte = |x: f32| (x * 120.0) as i8;
            let x = values(size * size * channels, 7);
            let x: Vec<u8> = x.into_iter().map(|x| byte(x) as u8).collect();
            // The values do not affect the time; only the order of taps differs.
            let padded_k = if is_depthwise { k.next_multiple_of(4) } else { k };
            let b: Vec<i8> = values(padded_k * filters, 5).into_iter().map(byte).collect();
            let quads = pack_vnni(&b, padded_k, filters).expect("a small matrix can be packed");
            let packed = if is_depthwise { &b } else { &quads.data };
            let weights = Tensor::from_slice(&[packed.len() as i64], packed).expect("memory");
            let mut out = vec![0i32; output * output * filters];
            let [size_, output_, kernel_, stride_, padding_] =
                [size, output, kernel, stride, padding].map(|d| d as i64);
            let convolution = Convolution {
                counts: Counts {
                    batch: 1,
                    channels: channels as i64,
                    filters: filters as i64,
                    groups: if is_depthwise { channels as i64 } else { 1 },
                    input: [1, size_, size_],
                    output: [1, output_, output_],
                    kernel: [1, kernel_, kernel_],
                    stride: [1, stride_, stride_],
                    dilation: [1; 3],
                    before: [0, padding_, padding_],
                },
                x: x.as_ptr(),
                signed: true,
                x_zero: &raw const ZERO,
                weights: weights.as_slice::<i8>().expect("dense").as_ptr(),
                width: quads.width as i64,
                sums: quads.sums.as_ptr(),
                w_zeros: std::ptr::null(),
                out: out.as_mut_ptr(),
                epilogue: None,
            };
            let products = 2 * output * output * k * filters;
            let work = Workload::single(products as f64, (k * filters) as f64);
            let kind = if is_depthwise { ", depthwise" } else { "" };
            let name = format!(
                "{size} x {size} x {channels} to {filters}, {kernel} x {kernel} / {stride}{kind}"
            );
            cases.run(&name, work, || {
                // SAFETY: the operands have these sizes.
                unsafe { convolution::run(isa(), &runtime, black_box(&convolution)) };
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, quantized, convolutions);
criterion_main!(benches);
