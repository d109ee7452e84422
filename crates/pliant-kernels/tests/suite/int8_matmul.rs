//! Compares matrix products of 8-bit integers with their definition, for every instruction set,
//! with and without zero points, with operands between guard pages. Results must be exact.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};
use pliant_kernel_api::{Call, View};
use pliant_kernels::epilogue::{Activation, Epilogue};
use pliant_kernels::kernel_entry_points::Implementation;
use pliant_kernels::quantized::{
    Int8Product, IntegerEpilogue, QuantizedGemm, Requantization, pack_vnni, run,
};
use pliant_machine::isa::{Isa, available};
use pliant_pool::Team;
use pliant_tensor::DType;

use crate::guard_pages::Guarded;

/// Returns `len` pseudo-random bytes.
fn bytes(len: usize, step: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * step + i / 7) % 256) as u8).collect()
}

/// The kinds of zero points of the left operand in tests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Zeros {
    None,
    One,
    Rows,
}

/// The value with which the memory of C is filled before a matrix product.
const BLANK: i32 = -77;

/// The options of a test case, except the sizes.
#[derive(Clone, Copy, Debug)]
struct Variant {
    signed: bool,
    a_zeros: Zeros,
    b_zeros: bool,
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
    a: Guarded<u8>,
    b: Vec<i8>,
    quads: Guarded<i8>,
    width: usize,
    sums: Guarded<i32>,
    a_zeros: Guarded<i32>,
    b_zeros: Guarded<i32>,
    c: Guarded<i32>,
}

impl Operands {
    fn new(size @ (m, n, k): (usize, usize, usize), variant: Variant) -> Operands {
        let b: Vec<i8> = bytes(k * n, 91).into_iter().map(|x| x as i8).collect();
        let quads = pack_vnni(&b, k, n).unwrap();
        let zeros: Vec<i32> = (0..n).map(|j| j as i32 % 5 - 2).collect();
        let rows = if variant.a_zeros == Zeros::Rows { m } else { 1 };
        let row_zeros: Vec<i32> = (0..rows).map(|i| 13 - 40 * i as i32).collect();
        let (a_row, c_row) = (k + variant.row_padding(), n + variant.row_padding());
        let len = |row: usize, last: usize| m.saturating_sub(1) * row + last.min(m * last);
        let a = bytes(len(a_row, k), 37);
        Operands {
            size,
            variant,
            rows: (a_row, c_row),
            a: Guarded::bytes(&a, variant.at_end),
            b,
            quads: Guarded::bytes(&quads.data, variant.at_end),
            width: quads.width,
            sums: Guarded::new(&quads.sums, variant.at_end),
            a_zeros: Guarded::new(&row_zeros, variant.at_end),
            b_zeros: Guarded::new(&zeros, variant.at_end),
            c: Guarded::new(&vec![BLANK; len(c_row, n)], variant.at_end),
        }
    }

    fn product(&self) -> QuantizedGemm {
        let (m, n, k) = self.size;
        QuantizedGemm {
            m: m as i64,
            n: n as i64,
            k: k as i64,
            a: self.a.as_ptr(),
            a_row: self.rows.0 as i64,
            a_signed: self.variant.signed,
            a_zeros: match self.variant.a_zeros {
                Zeros::None => std::ptr::null(),
                _ => self.a_zeros.as_ptr(),
            },
            a_zeros_stride: i64::from(self.variant.a_zeros == Zeros::Rows),
            b: self.quads.as_ptr(),
            width: self.width as i64,
            sums: self.sums.as_ptr(),
            b_zeros: if self.variant.b_zeros { self.b_zeros.as_ptr() } else { std::ptr::null() },
            c: self.c.as_ptr(),
            c_row: self.rows.1 as i64,
            epilogue: None,
        }
    }

    fn expected(&self) -> Vec<i32> {
        let (m, n, k) = self.size;
        let a = |i: usize, p: usize| {
            let x = self.a.values()[i * self.rows.0 + p];
            let zero = match self.variant.a_zeros {
                Zeros::None => 0,
                Zeros::One => self.a_zeros.values()[0],
                Zeros::Rows => self.a_zeros.values()[i],
            };
            (if self.variant.signed { i64::from(x as i8) } else { i64::from(x) }) - i64::from(zero)
        };
        let zero =
            |j: usize| if self.variant.b_zeros { i64::from(self.b_zeros.values()[j]) } else { 0 };
        let sum = |i: usize, j: usize| -> i64 {
            (0..k).map(|p| a(i, p) * (i64::from(self.b[p * n + j]) - zero(j))).sum()
        };
        (0..m * n).map(|at| sum(at / n, at % n) as i32).collect()
    }

    /// Returns the expected contents of the memory of C: the results, and the initial value between
    /// rows.
    fn expected_memory(&self, results: &[i32]) -> Vec<i32> {
        let (n, c_row) = (self.size.1, self.rows.1);
        let all = (0..self.c.values().len()).map(|at| (at / c_row * n, at % c_row));
        all.map(|(row, j)| if j < n { results[row + j] } else { BLANK }).collect()
    }
}

fn check(isa: Isa, runtime: &KernelRuntime, size: (usize, usize, usize), variant: Variant) {
    let ops = Operands::new(size, variant);
    // SAFETY: the operands have these sizes.
    assert_eq!(unsafe { run(isa, runtime, &ops.product()) }, STATUS_OK);
    assert_eq!(
        ops.c.values(),
        ops.expected_memory(&ops.expected()),
        "{isa:?} {size:?} {variant:?}"
    );
}

fn variants() -> impl Iterator<Item = Variant> {
    (0..24).map(|bits| Variant {
        signed: bits & 1 != 0,
        a_zeros: [Zeros::None, Zeros::One, Zeros::Rows][bits / 8],
        b_zeros: bits & 4 != 0,
        at_end: bits & 2 != 0,
    })
}

#[test]
fn every_isa_size_and_zero_point_matches_the_definition() {
    let sizes = [
        (0, 3, 5),
        (1, 0, 4),
        (1, 1, 1),
        (2, 17, 0),
        (3, 5, 2),
        (5, 33, 7),
        (6, 64, 12),
        (7, 65, 30),
        (13, 130, 101),
        (31, 40, 300),
        (17, 48, 64),
        (33, 16, 127),
        (70, 80, 65),
    ];
    for isa in available() {
        for size in sizes {
            variants().for_each(|variant| check(isa, &KernelRuntime::serial(), size, variant));
        }
    }
}

#[test]
fn sums_do_not_saturate() {
    let (m, n, k) = (4, 20, 5000);
    for isa in available() {
        let variant = Variant { signed: false, a_zeros: Zeros::None, b_zeros: false, at_end: true };
        let mut ops = Operands::new((m, n, k), variant);
        ops.b = vec![-128; k * n];
        let quads = pack_vnni(&ops.b, k, n).unwrap();
        ops.quads = Guarded::new(&quads.data, true);
        ops.a = Guarded::new(&vec![255u8; m * k], true);
        ops.rows.0 = k;
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { run(isa, &KernelRuntime::serial(), &ops.product()) }, STATUS_OK);
        let expected = ops.expected_memory(&vec![255 * -128 * k as i32; m * n]);
        assert_eq!(ops.c.values(), expected, "{isa:?}");
    }
}

#[test]
fn threads_and_epilogues() {
    let team = Team::new(3);
    let runtime = KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: (&raw const team).cast::<c_void>(),
        ..KernelRuntime::serial()
    };
    let isa = available().next().unwrap();
    let variant = Variant { signed: true, a_zeros: Zeros::Rows, b_zeros: true, at_end: true };
    let (m, n, k) = (150, 200, 333);
    check(isa, &runtime, (m, n, k), variant);
    check(isa, &runtime, (3, 900, k), variant);
    // Results are bytes, and there is no memory for sums.
    let ops = Operands::new((m, n, k), variant);
    let out = Guarded::new(&vec![77u8; m * n], true);
    let scales: Vec<f32> = (0..n).map(|j| (j % 4) as f32 / 64.0).collect();
    let requantization = Requantization {
        divisor: 512.0,
        zero: 5.0,
        limits: (0.0, 200.0),
        signed: false,
        out: (out.as_ptr(), n as i64),
    };
    let float = Epilogue {
        column_scale: scales.as_ptr(),
        activation: Activation::Relu,
        ..Epilogue::default()
    };
    let epilogue = IntegerEpilogue {
        float,
        requantization: Some(requantization),
        ..IntegerEpilogue::default()
    };
    let p = QuantizedGemm { c: std::ptr::null_mut(), epilogue: Some(epilogue), ..ops.product() };
    for isa in available() {
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { run(isa, &runtime, &p) }, STATUS_OK);
        for (at, (&got, expected)) in out.values().iter().zip(ops.expected()).enumerate() {
            let expected =
                ((expected as f32 * scales[at % n]).max(0.0) / 512.0).round_ties_even() + 5.0;
            assert_eq!(got, expected.min(200.0) as u8, "{isa:?} {at}");
        }
    }
}

/// Tests that the declared kernel `matmul_int8` applies an activation, and row scales, column
/// scales and a bias if the call passes them.
#[test]
fn declared_kernel_applies_scales_bias_and_activation() {
    let runtime = KernelRuntime::serial();
    for bits in 0..64 {
        let (signed, at_end) = (bits & 1 != 0, bits & 2 != 0);
        let variant = Variant { signed, a_zeros: Zeros::One, b_zeros: bits & 32 != 0, at_end };
        let (m, n, k) = [(1, 1, 3), (7, 65, 30), (0, 5, 4), (13, 40, 64)][(bits % 4) ^ (bits / 16)];
        let ops = Operands::new((m, n, k), variant);
        let rows: Vec<f32> = (0..m).map(|i| 0.25 + i as f32 / 64.0).collect();
        let columns: Vec<f32> = (0..n).map(|j| (j % 4) as f32 / 64.0).collect();
        let bias: Vec<f32> = (0..n).map(|j| j as f32 / 8.0 - 3.0).collect();
        let [rows, columns, bias] = [rows, columns, bias].map(|v| Guarded::new(&v, at_end));
        let is_present = [4, 8, 16].map(|bit| bits & bit != 0);
        // A stride of 0 means one factor for all rows.
        let step = i64::from(bits & 32 != 0);
        let out = Guarded::new(&vec![-77f32; m * n], at_end);
        let p = ops.product();
        let mut call = Call::new(Int8Product::KERNEL);
        let mut set =
            |name: &str, data: *const u8, dtype, dims: &[i64], strides: Option<&[i64]>| {
                let at = Int8Product::KERNEL.operand(name).unwrap();
                call.set_operand(at, View::new(data.cast_mut(), dtype, dims, strides));
            };
        let left = if signed { DType::Int8 } else { DType::UInt8 };
        let quads = [(p.n + p.width - 1) / p.width, (p.k + 3) / 4, p.width, 4];
        let rows_of_x = ops.a.values();
        let dense: Vec<u8> =
            (0..m).flat_map(|i| &rows_of_x[i * p.a_row as usize..][..k]).copied().collect();
        let dense = Guarded::bytes(&dense, at_end);
        set("x", dense.as_ptr(), left, &[p.m, p.k], None);
        set("x_zeros", p.a_zeros.cast(), DType::Int32, &[p.m], Some(&[0]));
        set("weight", p.b.cast(), DType::Int8, &quads, None);
        set("column_sums", p.sums.cast(), DType::Int32, &[p.n], None);
        if !p.b_zeros.is_null() {
            set("weight_zeros", p.b_zeros.cast(), DType::Int32, &[p.n], None);
        }
        let scales = [("row_scales", &rows), ("column_scales", &columns), ("bias", &bias)];
        for ((name, values), _) in
            scales.into_iter().zip(is_present).filter(|(_, is_present)| *is_present)
        {
            let row = name == "row_scales";
            let (dim, stride) = if row { (p.m, step) } else { (p.n, 1) };
            set(name, values.as_ptr().cast(), DType::Float32, &[dim], Some(&[stride]));
        }
        set("out", out.as_ptr().cast(), DType::Float32, &[p.m, p.n], None);
        let floats = [-2.0, 900.0, 1.0, 0.0f64].map(|v| v.to_bits() as i64);
        let numbers = [Activation::Clip as i64].into_iter().chain(floats);
        numbers.enumerate().for_each(|(i, n)| call.set_number(i, n));
        let sizes = call.check().unwrap();
        // SAFETY: the operands have these sizes.
        let status = unsafe { Int8Product::run(&runtime, &call, &sizes) };
        assert_eq!(status, STATUS_OK);
        for (at, (&got, sum)) in out.values().iter().zip(ops.expected()).enumerate() {
            let (i, j) = (at / n, at % n);
            let mut expected = sum as f32;
            expected *= if is_present[0] { rows.values()[i * step as usize] } else { 1.0 };
            expected *= if is_present[1] { columns.values()[j] } else { 1.0 };
            expected += if is_present[2] { bias.values()[j] } else { 0.0 };
            assert_eq!(got, expected.clamp(-2.0, 900.0), "{bits} {at}");
        }
    }
}

#[test]
fn invalid_sizes_return_a_status() {
    let variant = Variant { signed: true, a_zeros: Zeros::One, b_zeros: false, at_end: true };
    let ops = Operands::new((3, 20, 9), variant);
    let p = ops.product();
    for bad in [
        QuantizedGemm { m: -1, ..p },
        QuantizedGemm { k: -1, ..p },
        QuantizedGemm { width: 0, ..p },
        QuantizedGemm { width: 24, ..p },
        QuantizedGemm { width: 128, ..p },
        QuantizedGemm { c: std::ptr::null_mut(), ..p },
        QuantizedGemm { c: std::ptr::null_mut(), epilogue: Some(IntegerEpilogue::default()), ..p },
    ] {
        for isa in available() {
            // SAFETY: nothing is accessed if the sizes are invalid.
            let status = unsafe { run(isa, &KernelRuntime::serial(), &bad) };
            assert_eq!(status, STATUS_BAD_ARGUMENTS, "{bad:?}");
        }
    }
    assert_eq!(pack_vnni(&[0; 7], 2, 3), None);
    assert_eq!(pack_vnni(&[], 0, usize::MAX), None);
    assert_eq!(pack_vnni(&[], usize::MAX, 2), None);
    assert_eq!(pack_vnni(&[], 0, 5).unwrap().sums, [0; 5]);
}
