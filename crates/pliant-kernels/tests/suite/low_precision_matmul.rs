//! Compares matrix products by low-precision weights with products in float64, for every
//! instruction set, with groups and zero points, with operands between guard pages.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};
use pliant_kernels::low_precision_weights::{self, Format, LowPrecisionGemm, run};
use pliant_machine::isa::{Isa, available};
use pliant_pool::Team;
use pliant_tensor::{
    DType, Tensor, bf16, pack_bfloat16, pack_bytes, pack_nibbles, pack_panels, panel_width,
};

use crate::guard_pages::Guarded;

/// The value with which the memory of C is filled before a matrix product.
const BLANK: f32 = 1e30;

/// The options of a test case, except the sizes.
#[derive(Clone, Copy, Debug)]
struct Variant {
    format: Format,
    group: usize,
    zeros: bool,
    at_end: bool,
}

impl Variant {
    /// Returns the number of padding elements between the rows of A, and between the rows of C.
    fn row_padding(self) -> usize {
        if self.at_end { 3 } else { 0 }
    }
}

struct Operands {
    size: (usize, usize, usize),
    variant: Variant,
    /// The row strides of A and of C, in elements.
    rows: (usize, usize),
    a: Guarded<f32>,
    b: Guarded<u8>,
    scales: Guarded<f32>,
    zeros: Guarded<f32>,
    /// The right operand as float64, in row-major order.
    values: Vec<f64>,
    c: Guarded<f32>,
}

fn panels(rows: usize, n: usize, all: &[f32]) -> Vec<f32> {
    let matrix = Tensor::from_slice(&[rows as i64, n as i64], all).unwrap();
    pack_panels(&matrix, false).unwrap().to_vec::<f32>().unwrap()
}

fn bytes<T: pliant_tensor::Element>(t: &Tensor) -> Vec<u8> {
    let all = t.to_vec::<T>().unwrap();
    // SAFETY: elements without padding are bytes.
    unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), size_of_val(&*all)) }.to_vec()
}

impl Operands {
    fn new(size @ (m, n, k): (usize, usize, usize), variant: Variant) -> Operands {
        let value_at = |i: usize, step: usize| ((i * step + i / 5) % 113) as f32 / 56.0 - 1.0;
        let (a_row, c_row) = (k + variant.row_padding(), n + variant.row_padding());
        let len = |row: usize, last: usize| m.saturating_sub(1) * row + last.min(m * last);
        let a: Vec<f32> = (0..len(a_row, k)).map(|i| value_at(i, 37)).collect();
        let raw: Vec<f32> = (0..k * n).map(|i| value_at(i, 91)).collect();
        let groups = k.div_ceil(variant.group);
        let scales: Vec<f32> = (0..groups * n).map(|i| 0.1 + value_at(i, 17).abs()).collect();
        let zeros: Vec<f32> = (0..groups * n).map(|i| (i % 7) as f32 + 0.5).collect();
        let quantized: Vec<f32> = raw
            .iter()
            .map(|x| match variant.format {
                Format::Bytes => (x * 127.0).round(),
                Format::Nibbles => (x * 7.0 + 8.0).round(),
                Format::BFloat16 => bf16::from_f32(*x).to_f32(),
            })
            .collect();
        let b = match variant.format {
            Format::Bytes => {
                let all: Vec<i8> = quantized.iter().map(|&x| x as i8).collect();
                bytes::<i8>(&pack_bytes(k, n, |p, j| all[p * n + j]).unwrap())
            }
            Format::Nibbles => {
                let all: Vec<u8> = quantized.iter().map(|&x| x as u8).collect();
                bytes::<u8>(&pack_nibbles(k, n, |p, j| all[p * n + j]).unwrap())
            }
            Format::BFloat16 => bytes::<bf16>(&pack_bfloat16(k, n, |p, j| raw[p * n + j]).unwrap()),
        };
        let is_scaled = variant.format != Format::BFloat16;
        let value = |i: usize| {
            let at = i / n / variant.group * n + i % n;
            let zero = if variant.zeros { f64::from(zeros[at]) } else { 0.0 };
            let scale = if is_scaled { f64::from(scales[at]) } else { 1.0 };
            (f64::from(quantized[i]) - zero) * scale
        };
        Operands {
            size,
            variant,
            rows: (a_row, c_row),
            a: Guarded::new(&a, variant.at_end),
            b: Guarded::bytes(&b, variant.at_end),
            scales: Guarded::new(&panels(groups, n, &scales), variant.at_end),
            zeros: Guarded::new(&panels(groups, n, &zeros), variant.at_end),
            values: (0..k * n).map(value).collect(),
            c: Guarded::new(&vec![BLANK; len(c_row, n)], variant.at_end),
        }
    }

    fn product(&self) -> LowPrecisionGemm {
        let (m, n, k) = self.size;
        let is_scaled = self.variant.format != Format::BFloat16;
        LowPrecisionGemm {
            m: m as i64,
            n: n as i64,
            k: k as i64,
            a: self.a.as_ptr(),
            a_row: self.rows.0 as i64,
            format: self.variant.format,
            b: self.b.as_ptr(),
            width: panel_width(n, DType::Float32) as i64,
            group: self.variant.group as i64,
            scales: if is_scaled { self.scales.as_ptr() } else { std::ptr::null() },
            zeros: if self.variant.zeros { self.zeros.as_ptr() } else { std::ptr::null() },
            c: self.c.as_ptr(),
            c_row: self.rows.1 as i64,
        }
    }

    fn check(&self, isa: Isa, case: &str) {
        let (m, n, k) = self.size;
        let (a_row, c_row) = self.rows;
        // Tile registers multiply bfloat16 by bfloat16.
        let a_is_rounded = isa == Isa::Amx
            && self.variant.format == Format::BFloat16
            && m > low_precision_weights::FEW_ROWS;
        let a = |at: usize| match self.a.values()[at] {
            x if a_is_rounded => f64::from(bf16::from_f32(x).to_f32()),
            x => f64::from(x),
        };
        for (at, &got) in self.c.values().iter().enumerate() {
            let (row, column) = (at / c_row, at % c_row);
            if column >= n {
                assert_eq!(got, BLANK, "{case} {:?} {at}", self.variant);
                continue;
            }
            let terms = (0..k).map(|p| a(row * a_row + p) * self.values[p * n + column]);
            let (expected, sum_of_magnitudes) = terms
                .fold((0.0, 1.0), |(sum, sum_of_magnitudes), x| {
                    (sum + x, sum_of_magnitudes + x.abs())
                });
            // Zero points may be as large as the weights, so the bound allows for cancellation.
            let bound = sum_of_magnitudes * 8.0 * f64::from(f32::EPSILON);
            assert!(
                (f64::from(got) - expected).abs() <= bound,
                "{case} {:?} {at}: {got} {expected}",
                self.variant
            );
        }
    }
}

fn check(isa: Isa, runtime: &KernelRuntime, size: (usize, usize, usize), variant: Variant) {
    let ops = Operands::new(size, variant);
    // SAFETY: the operands have these sizes.
    assert_eq!(unsafe { run(isa, runtime, &ops.product()) }, STATUS_OK);
    ops.check(isa, &format!("{isa:?} {size:?}"));
}

fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for format in [Format::Bytes, Format::Nibbles, Format::BFloat16] {
        for group in [2, 32, 1001] {
            for zeros in [false, true] {
                for at_end in [false, true] {
                    // bfloat16 has neither scales nor zero points.
                    if format != Format::BFloat16 || group == 1001 && !zeros {
                        all.push(Variant { format, group, zeros, at_end });
                    }
                }
            }
        }
    }
    all
}

#[test]
fn every_isa_format_and_size_matches_the_definition() {
    let sizes = [
        (0, 3, 5),
        (1, 0, 4),
        (1, 1, 1),
        (2, 17, 0),
        (9, 17, 0),
        (1, 16, 64),
        (1, 100, 77),
        (2, 33, 7),
        (3, 48, 31),
        (4, 130, 40),
        (5, 65, 33),
        (13, 130, 101),
        (31, 40, 600),
        (17, 64, 512),
        (33, 70, 513),
        (65, 48, 1000),
        (290, 33, 40),
    ];
    for isa in available() {
        for size in sizes {
            for variant in variants() {
                check(isa, &KernelRuntime::serial(), size, variant);
            }
        }
    }
}

#[test]
fn infinite_input_gives_infinity_with_the_sign_of_the_weight() {
    for isa in available() {
        for (format, m) in [(Format::Bytes, 1), (Format::Nibbles, 3), (Format::Nibbles, 9)] {
            let variant = Variant { format, group: 32, zeros: true, at_end: true };
            let ops = Operands::new((m, 20, 70), variant);
            // SAFETY: the first element exists.
            unsafe { *ops.a.as_ptr() = f32::INFINITY };
            // SAFETY: the operands have these sizes.
            let status = unsafe { run(isa, &KernelRuntime::serial(), &ops.product()) };
            assert_eq!(status, STATUS_OK);
            // Zero points have the fraction 1/2, so that no weight is 0.
            for (column, (x, w)) in ops.c.values()[..20].iter().zip(&ops.values[..20]).enumerate() {
                assert_eq!(
                    f64::from(*x),
                    w.signum() * f64::INFINITY,
                    "{isa:?} {variant:?} {column}"
                );
            }
        }
    }
}

#[test]
fn large_inputs_times_zero_weights_cause_no_cancellation() {
    for isa in available() {
        for (format, m) in [(Format::Bytes, 1), (Format::Nibbles, 4), (Format::Nibbles, 9)] {
            for large in [1e8, f32::MIN] {
                let variant = Variant { format, group: 1001, zeros: true, at_end: true };
                let mut ops = Operands::new((m, 100, 70), variant);
                let (scales, zeros) = (ops.scales.values().to_vec(), ops.zeros.values().to_vec());
                for column in 0..100 {
                    let (scale, zero) = (f64::from(scales[column]), f64::from(zeros[column]));
                    // The first weight of each column becomes 0: it is equal to the zero point. In one row of panels,
                    // the columns are in order.
                    let first = (ops.values[column] / scale + zero).round();
                    // SAFETY: each column has a zero point.
                    unsafe { *ops.zeros.as_ptr().add(column) = first as f32 };
                    for value in ops.values[column..].iter_mut().step_by(100) {
                        *value += (zero - first) * scale;
                    }
                    ops.values[column] = 0.0;
                }
                for row in 0..m {
                    // SAFETY: each row has a first element.
                    unsafe { *ops.a.as_ptr().add(row * ops.rows.0) = large };
                }
                // SAFETY: the operands have these sizes.
                let status = unsafe { run(isa, &KernelRuntime::serial(), &ops.product()) };
                assert_eq!(status, STATUS_OK);
                ops.check(isa, &format!("{isa:?} {m} {large}"));
            }
        }
    }
}

#[test]
fn threads_cover_all_results() {
    let team = Team::new(3);
    let runtime = KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: (&raw const team).cast::<c_void>(),
        ..KernelRuntime::serial()
    };
    let isa = available().next().unwrap();
    for variant in variants() {
        check(isa, &runtime, (1, 900, 700), variant);
        check(isa, &runtime, (150, 200, 333), variant);
    }
}

#[test]
fn invalid_sizes_return_a_status() {
    let variant = Variant { format: Format::Nibbles, group: 32, zeros: true, at_end: true };
    let ops = Operands::new((3, 20, 70), variant);
    let p = ops.product();
    for bad in [
        LowPrecisionGemm { m: -1, ..p },
        LowPrecisionGemm { k: -1, ..p },
        LowPrecisionGemm { width: 0, ..p },
        LowPrecisionGemm { width: 24, ..p },
        LowPrecisionGemm { width: 128, ..p },
        LowPrecisionGemm { group: 0, ..p },
        LowPrecisionGemm { group: 33, ..p },
    ] {
        for isa in available() {
            // SAFETY: nothing is accessed if the sizes are invalid.
            let status = unsafe { run(isa, &KernelRuntime::serial(), &bad) };
            assert_eq!(status, STATUS_BAD_ARGUMENTS, "{bad:?}");
        }
    }
}

#[test]
fn bfloat16_has_neither_scales_nor_zero_points() {
    for isa in available() {
        for m in [3, 9] {
            let variant =
                Variant { format: Format::BFloat16, group: 1001, zeros: false, at_end: true };
            let ops = Operands::new((m, 20, 70), variant);
            for bad in [
                LowPrecisionGemm { scales: ops.scales.as_ptr(), ..ops.product() },
                LowPrecisionGemm { zeros: ops.zeros.as_ptr(), ..ops.product() },
            ] {
                // SAFETY: the operands have these sizes.
                let status = unsafe { run(isa, &KernelRuntime::serial(), &bad) };
                assert_eq!(status, STATUS_BAD_ARGUMENTS, "{isa:?} {m}");
            }
        }
    }
}
