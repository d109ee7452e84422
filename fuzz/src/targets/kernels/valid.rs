//! Valid arguments for each kernel, from which hostile ones are derived.

use pliant_kernels::{ExternTy, extern_fn};

use super::super::rng::Rng;
use super::record::{Arg, Mode, Record};

/// Integers and floats in order, without the addresses.
#[derive(Default)]
struct Numbers {
    ints: Vec<i64>,
    floats: Vec<f64>,
}

/// A call of a kernel with consistent arguments.
pub fn record(kernel: &str, rng: &mut Rng) -> Record {
    let numbers = numbers(kernel, rng);
    let params = extern_fn(kernel).map_or(&[][..], |f| f.params);
    let (mut ints, mut floats) = (numbers.ints.into_iter(), numbers.floats.into_iter());
    let args: Vec<Arg> = params
        .iter()
        .map(|ty| match ty {
            ExternTy::Ptr => Arg::At(if rng.one_in(6) { rng.between(0, 5) } else { 0 }),
            ExternTy::I64 | ExternTy::I32 => {
                Arg::Int(ints.next().expect("a number for each parameter"))
            }
            ExternTy::F32 | ExternTy::F64 => Arg::Float(floats.next().unwrap_or(0.5)),
        })
        .collect();
    let mode = match rng.below(40) {
        0 => Mode::Literal,
        1..10 => Mode::Params,
        _ => Mode::Loaded,
    };
    Record { kernel: kernel.into(), mode, args, sizes: None }
}

fn numbers(kernel: &str, rng: &mut Rng) -> Numbers {
    let ints = match kernel {
        "pliant_attend_f32" => return attention(rng),
        "pliant_convolve_f32" => convolution(rng),
        "pliant_gemm_f32" | "pliant_gemm_f64" => product(rng),
        "pliant_gemm_packed_f32" | "pliant_gemm_packed_f64" => {
            let ([m, n, k], width) = (sizes(rng), 16 * rng.between(1, 4));
            let (a_row, a_col) = if rng.one_in(2) { (k, 1) } else { (1, m) };
            vec![m, n, k, a_row, a_col, width, n + rng.between(0, 2), flag(rng)]
        }
        _ if kernel.starts_with("pliant_product_") => integer_product(kernel, rng),
        _ if kernel.starts_with("pliant_convolve_") => integer_convolution(kernel, rng),
        _ if kernel.starts_with("pliant_row_") => {
            let n = *rng.pick(&[0, 1, 2, 5, 16, 31, 64, 200, 1000]);
            vec![n, flag(rng), rng.between(0, n), rng.between(0, n)]
        }
        _ => vec![*rng.pick(&[0, 1, 3, 7, 8, 15, 16, 17, 33, 64, 100, 513])],
    };
    let extremes = [0.0, -1.0, f64::INFINITY, f64::NAN, 6.0, 1e30];
    let floats = (0..4).map(|_| *rng.pick(&extremes)).collect();
    Numbers { ints, floats }
}

fn flag(rng: &mut Rng) -> i64 {
    rng.between(0, 1)
}

fn sizes(rng: &mut Rng) -> [i64; 3] {
    let all = [0, 1, 2, 3, 5, 7, 12, 16, 17, 31, 33, 64, 70];
    [(); 3].map(|()| *rng.pick(&all))
}

fn product(rng: &mut Rng) -> Vec<i64> {
    let ([m, n, k], batch) = (sizes(rng), rng.between(0, 3));
    let mut out = vec![batch, m, n, k];
    for (rows, columns) in [(m, k), (k, n), (m, n)] {
        let (row, column) = if rng.one_in(3) { (1, rows) } else { (columns, 1) };
        out.extend([if rng.one_in(4) { 0 } else { rows * columns }, row, column]);
    }
    out.push(flag(rng));
    out
}

fn attention(rng: &mut Rng) -> Numbers {
    let (batch, kv) = (rng.between(0, 2), rng.between(1, 2));
    let heads = kv * rng.between(1, 3);
    let small = [0, 1, 2, 5, 16, 33, 70];
    let [queries, keys, size, value] = [(); 4].map(|()| *rng.pick(&small));
    let mut ints = vec![batch, heads, kv, queries, keys, size, value];
    for (heads, rows, size) in
        [(heads, queries, size), (kv, keys, size), (kv, keys, value), (heads, queries, value)]
    {
        let apart = rng.one_in(2);
        let (head, row) = if apart { (rows * size, size) } else { (size, heads * size) };
        ints.extend([heads * rows * size, head, row]);
    }
    let scores = |rng: &mut Rng| {
        let zero = |rng: &mut Rng, n: i64| if rng.one_in(3) { 0 } else { n };
        [
            flag(rng),
            zero(rng, heads * queries * keys),
            zero(rng, queries * keys),
            zero(rng, keys),
            1,
        ]
    };
    ints.extend(scores(rng));
    ints.extend([flag(rng), rng.between(-3, 8), rng.between(0, 4), rng.between(0, 2)]);
    ints.extend(scores(rng));
    ints.push(flag(rng));
    let hidden = *rng.pick(&[f64::NEG_INFINITY, -1e9]);
    Numbers { ints, floats: vec![0.5, *rng.pick(&[0.0, 30.0]), hidden] }
}

/// Batches, channels, filters, groups; then for three dims each: input and output sizes, filter size, strides,
/// dilations and leading padding.
fn window(rng: &mut Rng) -> Vec<i64> {
    let groups = *rng.pick(&[1, 1, 1, 2, 4, 16]);
    let (channels, filters) = match rng.below(3) {
        0 => (groups, groups * rng.between(1, 2)),
        _ => (groups * *rng.pick(&[1, 3, 8]), groups * *rng.pick(&[1, 4, 16, 17])),
    };
    let mut dims: [Vec<i64>; 6] = Default::default();
    for d in 0..3 {
        let flat = d == 0 && !rng.one_in(4) || rng.one_in(4);
        let kernel = if flat { 1 } else { *rng.pick(&[1, 2, 3, 3, 5]) };
        let (stride, dilation) = (*rng.pick(&[1, 1, 2, 3]), *rng.pick(&[1, 1, 2]));
        let before = rng.between(0, kernel - 1);
        let input = if flat { 1 } else { *rng.pick(&[1, 2, 5, 8, 13]) };
        let span = input + 2 * before - dilation * (kernel - 1) - 1;
        let output = if span < 0 { 0 } else { span / stride + 1 };
        let all = [input, output, kernel, stride, dilation, before];
        dims.iter_mut().zip(all).for_each(|(list, n)| list.push(n));
    }
    let mut out = vec![rng.between(0, 2), channels, filters, groups];
    out.extend(dims.into_iter().flatten());
    out
}

fn convolution(rng: &mut Rng) -> Vec<i64> {
    let mut out = window(rng);
    let winograd = if rng.one_in(2) { 0 } else { *rng.pick(&[1, 3]) };
    if winograd > 0 {
        // Winograd convolutions take filters of size 3 with stride and dilation 1.
        out[3] = 1;
        out[11..13].fill(3);
        out[13..19].fill(1);
        (out[8], out[9]) = ((out[5] + 2 * out[20] - 2).max(0), (out[6] + 2 * out[21] - 2).max(0));
    }
    let image = |channels: i64, dims: &[i64], last: bool| {
        let [a, b, c] = [dims[0], dims[1], dims[2]];
        match last {
            true => [a * b * c * channels, 1, b * c * channels, c * channels, channels],
            false => [a * b * c * channels, a * b * c, b * c, c, 1],
        }
    };
    let (input, output) = (out[4..7].to_vec(), out[7..10].to_vec());
    let (channels, filters, last) = (out[1], out[2], rng.one_in(2));
    out.extend(image(channels, &input, last));
    out.push(16 * rng.between(1, 4));
    out.extend(image(filters, &output, !rng.one_in(3)));
    let pixels: i64 = output.iter().product();
    out.extend([flag(rng), flag(rng), pixels * filters, filters, rng.between(0, 6), winograd]);
    out
}

fn integer_product(kernel: &str, rng: &mut Rng) -> Vec<i64> {
    let ([m, n, k], width) = (sizes(rng), 16 * rng.between(1, 4));
    let (zeros, columns) = (flag(rng), flag(rng));
    let row = k + rng.between(0, 2);
    let mut out = vec![m, n, k, row, zeros, flag(rng), width, columns];
    if kernel.ends_with("_f32") {
        out.extend([flag(rng), flag(rng), flag(rng), flag(rng), rng.between(0, 6)]);
    }
    out.push(n + rng.between(0, 2));
    out
}

fn integer_convolution(kernel: &str, rng: &mut Rng) -> Vec<i64> {
    let mut out = window(rng);
    out.extend([flag(rng), 16 * rng.between(1, 4), flag(rng)]);
    let more = match kernel.matches('_').count() {
        2 => 0,
        _ if kernel.ends_with("_f32") => 5,
        _ => 7,
    };
    out.extend((0..more).map(|i| if i == 4 { rng.between(0, 6) } else { flag(rng) }));
    out
}
