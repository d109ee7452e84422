//! Tests matrix products of two non-constant operands for every instruction set and layout, with
//! operands between guard pages.

use pliant_kernels::Gemm;
use pliant_kernels::matmul::non_constant_operands::{applies, run};
use pliant_machine::isa::{Isa, available};

use crate::guard_pages::Guarded;
use crate::packed_matmul::{Real, fill};

fn strides(rows: usize, columns: usize, transposed: bool) -> (isize, isize) {
    if transposed { (1, rows as isize) } else { (columns as isize, 1) }
}

/// Compares one matrix product with its definition. `bits` selects transposed operands (bits 0 to 2
/// for A, B and C), accumulation (bit 3), whether operands end at or start after a guard page
/// (bit 4), and whether there are unused elements between the rows of B (bit 5). Returns whether the implementation supports the product.
fn check<T: Real>(isa: Isa, (m, n, k): (usize, usize, usize), bits: u32) -> bool {
    let has_bit = |bit: u32| bits >> bit & 1 != 0;
    let gap = if has_bit(5) { 3 } else { 0 };
    let (b_lines, b_line) = if has_bit(1) { (n, k) } else { (k, n) };
    let b_len = (b_lines * (b_line + gap)).saturating_sub(gap);
    let (a, b, old) = (fill::<T>(m * k, 7), fill::<T>(b_len, 5), fill::<T>(m * n, 3));
    let [a_memory, b_memory, c_memory] = [&a, &b, &old].map(|x| Guarded::new(x, has_bit(4)));
    let (br, bc) = match has_bit(1) {
        true => strides(k + gap, n, true),
        false => strides(k, n + gap, false),
    };
    let ((ar, ac), (cr, cc)) = (strides(m, k, has_bit(0)), strides(m, n, has_bit(2)));
    let accumulate = has_bit(3);
    let g = Gemm {
        m,
        n,
        k,
        a: (a_memory.as_ptr().cast_const(), ar, ac),
        b: (b_memory.as_ptr().cast_const(), br, bc),
        c: (c_memory.as_ptr(), cr, cc),
        accumulate,
    };
    if !applies(&g) {
        return false;
    }
    // SAFETY: the strides describe the vectors above.
    assert_eq!(unsafe { run(isa, &g) }, 0);
    for i in 0..m {
        for j in 0..n {
            let at = |i: usize, j: usize, r: isize, c: isize| i * r as usize + j * c as usize;
            let sum: f64 =
                (0..k).map(|p| a[at(i, p, ar, ac)].to() * b[at(p, j, br, bc)].to()).sum();
            let c = at(i, j, cr, cc);
            let want = sum + if accumulate { old[c].to() } else { 0.0 };
            assert_eq!(c_memory.values()[c].to(), want, "{isa:?} {m}x{n}x{k} {bits:b} at {i},{j}");
        }
    }
    true
}

#[test]
fn every_isa_size_and_layout() {
    let sizes = [
        (0, 2, 3),
        (1, 1, 1),
        (1, 64, 7),
        (2, 65, 9),
        (4, 3, 700),
        (3, 16, 0),
        (5, 31, 40),
        (7, 100, 17),
        (13, 48, 600),
        (50, 70, 30),
        (65, 33, 2100),
    ];
    let mut supported_cases = 0;
    for isa in available() {
        for size in sizes {
            for bits in 0..64 {
                supported_cases += usize::from(check::<f32>(isa, size, bits));
                supported_cases += usize::from(check::<f64>(isa, size, bits));
            }
        }
    }
    assert!(supported_cases > 800 * available().count(), "{supported_cases}");
}
