//! Tests matrix products with a packed operand, for every instruction set of the machine, at sizes
//! that are not multiples of the tile, with operands between guard pages.

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS};
use pliant_kernels::matmul::{Element, PackedProduct};
use pliant_machine::isa::{Isa, available};
use pliant_tensor::{Tensor, pack_panels};

use crate::guard_pages::Guarded;

/// An element type of matrix products: float32 or float64.
pub trait Real: Element + pliant_tensor::Element {
    fn of(x: f64) -> Self;
    fn to(self) -> f64;
}

impl Real for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn to(self) -> f64 {
        self.into()
    }
}

impl Real for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn to(self) -> f64 {
        self
    }
}

/// Returns `len` small integers with a period of 13, whose sums are exact in both float types.
pub fn fill<T: Real>(len: usize, step: usize) -> Vec<T> {
    (0..len).map(|i| T::of(((i * step) % 13) as f64 - 6.0)).collect()
}

/// Computes a matrix product in four blocks, with operands between guard pages. Returns the result
/// and the expected result.
fn product<T: Real>(
    isa: Isa,
    (m, n, k): (usize, usize, usize),
    (a_transposed, accumulate, at_end): (bool, bool, bool),
) -> (Vec<f64>, Vec<f64>) {
    let (a, b, old) = (fill::<T>(m * k, 7), fill::<T>(k * n, 5), fill::<T>(m * n, 3));
    let matrix = Tensor::from_slice(&[k as i64, n as i64], &b).unwrap();
    let panels = pack_panels(&matrix, false).unwrap();
    let width = panels.shape()[2] as usize;
    let stored = if a_transposed { transposed(&a, m, k) } else { a.clone() };
    let (a_memory, c_memory) = (Guarded::new(&stored, at_end), Guarded::new(&old, at_end));
    let b_memory = Guarded::new(panels.as_slice::<T>().unwrap(), at_end);
    let (row, col) = if a_transposed { (1, m as isize) } else { (k as isize, 1) };
    let p = PackedProduct {
        m,
        n,
        k,
        a: (a_memory.as_ptr(), row, col),
        b: b_memory.as_ptr(),
        width,
        b_in_memory: true,
        c: (c_memory.as_ptr(), n as isize),
        accumulate,
    };
    // Two parts of rows and panels each, as for several threads.
    let (row, panel) = (m / 2, p.panels() / 2);
    for rows in [0..row, row..m] {
        for panels in [0..panel, panel..p.panels()] {
            // SAFETY: the operands have exactly the addressed elements.
            unsafe { p.compute_block(isa, rows.clone(), panels) };
        }
    }
    let want = (0..m * n).map(|at| {
        let (i, j) = (at / n, at % n);
        let sum: f64 = (0..k).map(|p| a[i * k + p].to() * b[p * n + j].to()).sum();
        sum + if accumulate { old[at].to() } else { 0.0 }
    });
    (c_memory.values().iter().map(|x| x.to()).collect(), want.collect())
}

fn transposed<T: Copy>(a: &[T], m: usize, k: usize) -> Vec<T> {
    (0..m * k).map(|at| a[at % m * k + at / m]).collect()
}

#[test]
fn every_isa_computes_all_sizes_within_operand_bounds() {
    let sizes = [
        (0, 5, 3),
        (3, 0, 4),
        (1, 1, 1),
        (1, 384, 7),
        (2, 3, 0),
        (5, 17, 1),
        (6, 64, 33),
        (7, 65, 8),
        (13, 100, 9),
        (31, 63, 2),
        (70, 130, 600),
        (3, 40, 2100),
    ];
    for isa in available() {
        for size in sizes {
            for bits in 0..8 {
                let how = (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
                let (got, want) = product::<f32>(isa, size, how);
                assert_eq!(got, want, "{isa:?} float32 {size:?} {how:?}");
                let (got, want) = product::<f64>(isa, size, how);
                assert_eq!(got, want, "{isa:?} float64 {size:?} {how:?}");
            }
        }
    }
}

#[test]
fn copies_of_conflicting_rows_stay_within_operand_bounds() {
    for isa in available() {
        for at_end in [false, true] {
            let (got, want) = product::<f32>(isa, (53, 520, 1024), (false, at_end, at_end));
            assert_eq!(got, want, "{isa:?} float32");
            let (got, want) = product::<f64>(isa, (53, 260, 512), (false, at_end, at_end));
            assert_eq!(got, want, "{isa:?} float64");
        }
    }
}

#[test]
fn nan_and_infinity_affect_only_their_row_and_column() {
    let (m, n, k) = (7, 70, 5);
    for isa in available() {
        let (mut a, mut b) = (vec![1f32; m * k], vec![1f32; k * n]);
        a[2 * k + 1] = f32::NAN;
        b[3 * n + 69] = f32::INFINITY;
        let panels =
            pack_panels(&Tensor::from_slice(&[k as i64, n as i64], &b).unwrap(), false).unwrap();
        let mut c = vec![f32::NAN; m * n];
        let p = PackedProduct {
            m,
            n,
            k,
            a: (a.as_ptr(), k as isize, 1),
            b: panels.as_slice::<f32>().unwrap().as_ptr(),
            width: 64,
            b_in_memory: false,
            c: (c.as_mut_ptr(), n as isize),
            accumulate: false,
        };
        // SAFETY: the operands have exactly the addressed elements.
        unsafe { p.compute_block(isa, 0..m, 0..2) };
        for (at, x) in c.into_iter().enumerate() {
            match (at / n, at % n) {
                (2, _) => assert!(x.is_nan(), "{isa:?} {at}"),
                (_, 69) => assert_eq!(x, f32::INFINITY, "{isa:?} {at}"),
                _ => assert_eq!(x, 5.0, "{isa:?} {at}"),
            }
        }
    }
}

#[test]
fn equal_columns_of_b_give_equal_columns_of_c() {
    for isa in available() {
        for m in [1, 2, 3, 7] {
            let (n, k) = (200, 301);
            let column: Vec<f32> = (0..k).map(|p| 1.0 / (p as f32 + 3.0)).collect();
            let b: Vec<f32> = (0..k * n).map(|at| column[at / n]).collect();
            let a: Vec<f32> = (0..m * k).map(|at| (at as f32).sin()).collect();
            let shape = [k as i64, n as i64];
            let panels = pack_panels(&Tensor::from_slice(&shape, &b).unwrap(), false).unwrap();
            let mut c = vec![0f32; m * n];
            let p = PackedProduct {
                m,
                n,
                k,
                a: (a.as_ptr(), k as isize, 1),
                b: panels.as_slice::<f32>().unwrap().as_ptr(),
                width: panels.shape()[2] as usize,
                b_in_memory: false,
                c: (c.as_mut_ptr(), n as isize),
                accumulate: false,
            };
            // SAFETY: the operands have exactly the addressed elements.
            unsafe { p.compute_block(isa, 0..m, 0..p.panels()) };
            for row in c.chunks(n) {
                assert!(row.iter().all(|&x| x == row[0]), "{isa:?} {m} rows");
            }
        }
    }
}

#[test]
fn zero_and_negative_row_strides_are_supported() {
    let (m, n, k) = (9, 20, 4);
    let b = fill::<f32>(k * n, 5);
    let panels =
        pack_panels(&Tensor::from_slice(&[k as i64, n as i64], &b).unwrap(), false).unwrap();
    let a = fill::<f32>(m * k, 7);
    for isa in available() {
        for (first, row) in [(0, 0isize), ((m - 1) * k, -(k as isize))] {
            let mut c = vec![0f32; m * n];
            let p = PackedProduct {
                m,
                n,
                k,
                a: (a[first..].as_ptr(), row, 1),
                b: panels.as_slice::<f32>().unwrap().as_ptr(),
                width: 32,
                b_in_memory: false,
                c: (c.as_mut_ptr(), n as isize),
                accumulate: false,
            };
            // SAFETY: the operands have exactly the addressed elements.
            unsafe { p.compute_block(isa, 0..m, 0..1) };
            for (at, x) in c.into_iter().enumerate() {
                let from = (first as isize + (at / n) as isize * row) as usize;
                let want: f32 = (0..k).map(|p| a[from + p] * b[p * n + at % n]).sum();
                assert_eq!(x, want, "{isa:?} {row} {at}");
            }
        }
    }
}

#[test]
fn invalid_panel_widths_are_bad_arguments() {
    let (a, b, mut c) = ([1f32; 4], [1f32; 64], [0f32; 4]);
    let runtime = KernelRuntime::serial();
    let mut call = |width: usize| {
        let (a, b) = ((a.as_ptr(), 4, 1), (b.as_ptr(), width));
        let product = PackedProduct::new([1, 4, 4], a, b, (c.as_mut_ptr(), 4));
        // SAFETY: the operands have one row of A, four rows of a panel of 16 columns, and one row of C. Other widths
        // are rejected before anything is read.
        unsafe { pliant_kernels::batched_gemm::packed(&runtime, &product) }
    };
    for width in [0, 1, 17, 80, 1 << 40, usize::MAX] {
        assert_eq!(call(width), STATUS_BAD_ARGUMENTS, "{width}");
    }
    assert_eq!(call(16), 0);
    assert_eq!(c, [4.0; 4]);
}
