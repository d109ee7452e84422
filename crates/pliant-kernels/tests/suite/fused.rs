//! Products with an epilogue: each result is finished once, in place or elsewhere, with every
//! instruction set and between guard pages.

use std::cell::RefCell;
use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS};
use pliant_kernels::Gemm;
use pliant_kernels::epilogue::standard::{OutType, with};
use pliant_kernels::epilogue::{
    Activation, Epilogue, EpilogueTile, Matrix, Place, Standard, pliant_epilogue_f32,
};
use pliant_kernels::fused::{FusedGemm, pliant_gemm_fused_f32};
use pliant_kernels::product::{PackedProduct, varying};
use pliant_machine::isa::{Isa, available};
use pliant_tensor::{Tensor, pack_panels};

use crate::guard::Guarded;
use crate::packed::fill;

/// The record of a test epilogue: how often each result was finished.
struct Seen {
    columns: usize,
    times: RefCell<Vec<u32>>,
    batch: i64,
    status: i64,
}

/// Doubles each result and adds its position.
unsafe extern "C" fn double(operands: *const c_void, tile: *const EpilogueTile) -> i64 {
    // SAFETY: the tests pass this type; the tile is readable and writable.
    unsafe {
        let (seen, t) = (&*operands.cast::<Seen>(), &*tile);
        assert_eq!(t.batch, seen.batch);
        for i in 0..t.rows {
            for j in 0..t.columns {
                let x = t.data.cast::<f32>().offset((i * t.row_stride + j) as isize);
                let at = (t.row + i) as usize * seen.columns + (t.column + j) as usize;
                *x = *x * 2.0 + at as f32;
                seen.times.borrow_mut()[at] += 1;
            }
        }
        seen.status
    }
}

fn panels(b: &[f32], k: usize, n: usize) -> (Tensor, usize) {
    let panels =
        pack_panels(&Tensor::from_slice(&[k as i64, n as i64], b).unwrap(), false).unwrap();
    let width = panels.shape()[2] as usize;
    (panels, width)
}

fn want(a: &[f32], b: &[f32], (m, n, k): (usize, usize, usize)) -> Vec<f32> {
    let sum = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum::<f32>();
    (0..m * n).map(|at| sum(at) * 2.0 + at as f32).collect()
}

const SIZES: [(usize, usize, usize); 9] = [
    (0, 5, 3),
    (1, 1, 1),
    (1, 70, 33),
    (3, 64, 0),
    (7, 100, 17),
    (13, 130, 600),
    (97, 65, 530),
    (26, 300, 1024),
    (2, 40, 2100),
];

#[test]
fn every_result_is_finished_once() {
    for isa in available() {
        for size @ (m, n, k) in SIZES {
            for at_end in [false, true] {
                let (a, b) = (fill::<f32>(m * k, 7), fill::<f32>(k * n, 5));
                let c = Guarded::new(&vec![9f32; m * n], at_end);
                let times = RefCell::new(vec![0; m * n]);
                let seen = Seen { columns: n, times, batch: 3, status: 0 };
                let epilogue = Epilogue { function: double, operands: (&raw const seen).cast() };
                let (packed, width) = panels(&b, k, n);
                let p = PackedProduct {
                    m,
                    n,
                    k,
                    a: (a.as_ptr(), k as isize, 1),
                    b: packed.as_slice::<f32>().unwrap().as_ptr(),
                    width,
                    fed: true,
                    c: (c.as_ptr(), n as isize),
                    accumulate: false,
                    epilogue: Some(epilogue),
                    at: Place { batch: 3, ..Place::default() },
                };
                // SAFETY: the operands have these sizes.
                assert_eq!(unsafe { p.block(isa, 0..m, 0..p.panels()) }, 0);
                assert_eq!(c.values(), want(&a, &b, size), "{isa:?} packed {size:?}");
                assert!(seen.times.borrow().iter().all(|&t| t == 1), "{isa:?} {size:?}");
                check_varying(isa, size, (&a, &b), at_end);
            }
        }
    }
}

fn check_varying(isa: Isa, size: (usize, usize, usize), (a, b): (&[f32], &[f32]), at_end: bool) {
    let (m, n, k) = size;
    let turned: Vec<f32> = (0..n * k).map(|at| b[at % k.max(1) * n + at / k.max(1)]).collect();
    for (b_memory, row, col) in [(b, n, 1), (&turned[..], 1, k)] {
        let c = Guarded::new(&vec![9f32; m * n], at_end);
        let seen = Seen { columns: n, times: RefCell::new(vec![0; m * n]), batch: 3, status: 0 };
        let epilogue = Epilogue { function: double, operands: (&raw const seen).cast() };
        let g = Gemm {
            m,
            n,
            k,
            a: (a.as_ptr(), k as isize, 1),
            b: (b_memory.as_ptr(), row as isize, col as isize),
            c: (c.as_ptr(), n as isize, 1),
            accumulate: false,
        };
        if !varying::applies(&g) {
            continue;
        }
        let place = Place { batch: 3, row: 0, column: 0 };
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { varying::run(isa, &g, Some((&epilogue, place))) }, 0);
        assert_eq!(c.values(), want(a, b, size), "{isa:?} varying {size:?}");
        assert!(seen.times.borrow().iter().all(|&t| t == 1), "{isa:?} {size:?}");
    }
}

/// The value of the standard epilogue, in float64.
fn finished(x: f64, bias: f64, before: f64, after: f64, scale: f64, activation: Activation) -> f64 {
    let x = x * scale + bias + before;
    let y = match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clip => x.clamp(-1.0, 6.0),
        Activation::Gelu => x * 0.5 * (1.0 + libm_erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x)).tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Tanh => x.tanh(),
        Activation::HardSwish => x * (0.25 * x + 0.5).clamp(-1.0, 6.0),
        Activation::HardSigmoid => (0.25 * x + 0.5).clamp(-1.0, 6.0),
        Activation::LeakyRelu => x.max(0.0) + 0.25 * x.min(0.0),
    };
    y + after
}

fn libm_erf(x: f64) -> f64 {
    pliant_kernels::scalar::erf_f64(x)
}

struct Forced {
    isa: Isa,
    standard: Standard,
}

unsafe extern "C" fn forced(operands: *const c_void, tile: *const EpilogueTile) -> i64 {
    // SAFETY: the tests pass this type.
    unsafe {
        let f = &*operands.cast::<Forced>();
        with(f.isa, &f.standard, &*tile)
    }
}

#[test]
fn common_epilogues_compute_what_they_say_and_may_write_elsewhere() {
    let (m, n, k) = (7, 83, 19);
    let (a, b) = (fill::<f32>(m * k, 7), fill::<f32>(k * n, 5));
    let (packed, width) = panels(&b, k, n);
    let bias = Guarded::new(&fill::<f32>(n, 3), true);
    let scales: Vec<f32> = (0..n).map(|j| 0.01 + (j % 5) as f32 / 100.0).collect();
    let scales = Guarded::new(&scales, true);
    let before = Guarded::new(&fill::<f32>(m * n, 11), true);
    let after = Guarded::new(&fill::<f32>(m * n, 2), true);
    for isa in available() {
        for (activation, out_type) in Activation::ALL
            .into_iter()
            .flat_map(|a| [OutType::F32, OutType::F16, OutType::Bf16].map(|t| (a, t)))
        {
            let (wide, narrow) =
                (Guarded::new(&vec![0f32; m * n], true), Guarded::new(&vec![0u16; m * n], true));
            let out: *mut c_void = if out_type == OutType::F32 {
                wide.as_ptr().cast()
            } else {
                narrow.as_ptr().cast()
            };
            let matrix = |p: *mut f32| Matrix { data: p, batch: 0, row: n as i64 };
            let standard = Standard {
                scale: 0.5,
                column_scale: scales.as_ptr(),
                bias: bias.as_ptr(),
                before: matrix(before.as_ptr()),
                activation: activation as i64,
                low: -1.0,
                high: 6.0,
                slope: 0.25,
                offset: 0.5,
                after: matrix(after.as_ptr()),
                out,
                out_row: n as i64,
                out_type: out_type as i64,
                ..Standard::default()
            };
            let f = Forced { isa, standard };
            let p = PackedProduct {
                m,
                n,
                k,
                a: (a.as_ptr(), k as isize, 1),
                b: packed.as_slice::<f32>().unwrap().as_ptr(),
                width,
                fed: true,
                c: (std::ptr::null_mut(), 0),
                accumulate: false,
                epilogue: Some(Epilogue { function: forced, operands: (&raw const f).cast() }),
                at: Place::default(),
            };
            assert!(p.has_panels() && p.has_results());
            // SAFETY: the operands have these sizes.
            assert_eq!(unsafe { p.block(isa, 0..m, 0..p.panels()) }, 0);
            for at in 0..m * n {
                let (i, j) = (at / n, at % n);
                let x: f64 =
                    (0..k).map(|q| f64::from(a[i * k + q]) * f64::from(b[q * n + j])).sum();
                let of = |g: &Guarded<f32>, at: usize| f64::from(g.values()[at]);
                let (scale, bias) = (0.5 * of(&scales, j), of(&bias, j));
                let want = finished(x, bias, of(&before, at), of(&after, at), scale, activation);
                let (got, error) = match out_type {
                    OutType::F32 => (f64::from(wide.values()[at]), 3e-6),
                    OutType::F16 => {
                        (f64::from(half::f16::from_bits(narrow.values()[at]).to_f32()), 1e-3)
                    }
                    OutType::Bf16 => {
                        (f64::from(half::bf16::from_bits(narrow.values()[at]).to_f32()), 8e-3)
                    }
                };
                assert!(
                    (got - want).abs() <= error * want.abs().max(1.0),
                    "{isa:?} {activation:?} {out_type:?} {at}: {got}, not {want}"
                );
            }
        }
    }
}

#[test]
fn not_a_number_stays_in_every_activation() {
    for isa in available() {
        for activation in Activation::ALL {
            let mut x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
            let standard = Standard {
                activation: activation as i64,
                low: -1.0,
                high: 6.0,
                slope: 0.25,
                offset: 0.5,
                ..Standard::default()
            };
            let tile = EpilogueTile {
                data: x.as_mut_ptr().cast(),
                row_stride: 3,
                rows: 1,
                columns: 3,
                batch: 0,
                row: 0,
                column: 0,
            };
            // SAFETY: the tile is the array.
            assert_eq!(unsafe { with(isa, &standard, &tile) }, 0);
            assert!(x[0].is_nan(), "{isa:?} {activation:?}");
            let high = match activation {
                Activation::Clip | Activation::HardSigmoid => 6.0,
                Activation::Sigmoid | Activation::Tanh => 1.0,
                _ => f32::INFINITY,
            };
            assert_eq!(x[1], high, "{isa:?} {activation:?}");
        }
    }
}

/// Calls the product of the C interface with the tests' operands.
fn call(f: &FusedGemm) -> i64 {
    let runtime = KernelRuntime::serial();
    // SAFETY: the tests describe existing operands.
    unsafe { pliant_gemm_fused_f32(&runtime, f) }
}

#[test]
fn batches_statuses_and_unsound_calls() {
    let (batch, m, n, k) = (3, 5, 20, 4);
    let (a, b) = (fill::<f32>(batch * m * k, 7), fill::<f32>(batch * k * n, 5));
    let mut c = vec![0f32; batch * m * n];
    let bias = fill::<f32>(n, 3);
    let standard = Standard { bias: bias.as_ptr(), ..Standard::default() };
    let epilogue =
        Epilogue { function: pliant_epilogue_f32, operands: (&raw const standard).cast() };
    let (mi, ni, ki) = (m as i64, n as i64, k as i64);
    let f = FusedGemm {
        batch: batch as i64,
        m: mi,
        n: ni,
        k: ki,
        a: a.as_ptr().cast(),
        a_strides: [mi * ki, ki, 1],
        b: b.as_ptr().cast(),
        b_strides: [ki * ni, ni, 1],
        width: 0,
        c: c.as_mut_ptr().cast(),
        c_strides: [mi * ni, ni],
        accumulate: 0,
        epilogue,
    };
    assert_eq!(call(&f), 0);
    let at = |p: usize, i: usize, j: usize| -> f32 {
        (0..k).map(|q| a[(p * m + i) * k + q] * b[(p * k + q) * n + j]).sum::<f32>() + bias[j]
    };
    for (x, &got) in c.iter().enumerate() {
        assert_eq!(got, at(x / (m * n), x / n % m, x % n), "{x}");
    }
    // All products of a batch share the panels; C is accumulated before the epilogue.
    let (packed, width) = panels(&b[..k * n], k, n);
    let old = c.clone();
    let packed = FusedGemm {
        b: packed.as_slice::<f32>().unwrap().as_ptr().cast(),
        width: width as i64,
        accumulate: 1,
        ..f
    };
    assert_eq!(call(&packed), 0);
    for (x, &got) in c.iter().enumerate() {
        let (p, i, j) = (x / (m * n), x / n % m, x % n);
        let sum: f32 = (0..k).map(|q| a[(p * m + i) * k + q] * b[q * n + j]).sum();
        assert_eq!(got, old[x] + sum + bias[j], "{x}");
    }
    // A status of the epilogue ends the product; without C and epilogue, nothing would write
    // results; panels consist of whole vectors.
    let seen = Seen { columns: n, times: RefCell::new(vec![0; m * n]), batch: 0, status: 77 };
    let fails = Epilogue { function: double, operands: (&raw const seen).cast() };
    assert_eq!(call(&FusedGemm { epilogue: fails, ..f }), 77);
    assert_eq!(call(&FusedGemm { epilogue: fails, ..packed }), 77);
    let none = std::ptr::null_mut();
    assert_eq!(call(&FusedGemm { c: none, ..f }), STATUS_BAD_ARGUMENTS);
    assert_eq!(call(&FusedGemm { width: 17, ..packed }), STATUS_BAD_ARGUMENTS);
    assert_eq!(call(&FusedGemm { width: -16, ..packed }), STATUS_BAD_ARGUMENTS);
    assert_eq!(call(&FusedGemm { width: 1 << 40, ..packed }), STATUS_BAD_ARGUMENTS);
    // Empty batches terminate, whatever their length and strides.
    let empty = FusedGemm { batch: i64::MAX, m: 0, a_strides: [i64::MAX; 3], ..packed };
    assert_eq!(call(&empty), 0);
    assert_eq!(call(&FusedGemm { width: 17, ..empty }), STATUS_BAD_ARGUMENTS);
    assert_eq!(call(&FusedGemm { width: 0, c: none, n: 0, m: mi, ..empty }), STATUS_BAD_ARGUMENTS);
    assert_eq!(call(&FusedGemm { c: none, ..packed }), STATUS_BAD_ARGUMENTS, "with accumulate");
    let unknown = Standard { activation: 99, ..standard };
    let unknown = Epilogue { operands: (&raw const unknown).cast(), ..epilogue };
    assert_eq!(call(&FusedGemm { epilogue: unknown, ..f }), STATUS_BAD_ARGUMENTS);
    assert_eq!(call(&FusedGemm { m: 0, ..f }), 0);
    assert_eq!(call(&FusedGemm { batch: -1, ..f }), 0);
}
