//! Computes the scores of a few rows of queries by dot products with the keys, which are read in place.
//!
//! Packing a key takes longer than multiplying it by one or two rows, so few rows read it in place
//! ([`crate::algorithm_selection::attention`]). The sums of `N` keys, where `N` is the number of lanes, are transposed and added as
//! vectors, which is cheaper than one horizontal sum per key.

use std::mem::MaybeUninit;

use crate::simd::Lanes;
use crate::simd::register_transpose::Transpose;

/// Number of elements of the buffers for the partial sums of one query and a vector of keys: one
/// vector of partial sums for each lane, with up to 16 lanes.
const BLOCK: usize = 256;

/// The arguments of [`dots`], which computes the scores of `rows` queries with `keys` keys. Strides count elements.
pub struct Dots {
    pub q: *const f32,
    pub q_row: isize,
    pub rows: usize,
    pub k: *const f32,
    pub k_row: isize,
    pub keys: usize,
    /// The number of elements of a query vector and of a key vector.
    pub size: usize,
    /// The address to which the scores are written. Each row has space for whole vectors.
    pub scores: *mut f32,
    pub stride: usize,
}

/// Computes the scores: the dot product of each query with each key.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
pub unsafe fn dots<L: Transpose + Lanes<Elem = f32>>(d: &Dots) {
    let mut blocks = [[MaybeUninit::<f32>::uninit(); BLOCK]; 2];
    let [sums, transposed] = &mut blocks;
    let (sums, transposed) =
        (sums.as_mut_ptr().cast::<f32>(), transposed.as_mut_ptr().cast::<f32>());
    for first in (0..d.keys).step_by(L::N) {
        let count = L::N.min(d.keys - first);
        for row in 0..d.rows {
            // SAFETY: guaranteed by the caller; the arrays hold a block of vectors each.
            unsafe {
                let q = d.q.offset(row as isize * d.q_row);
                for i in 0..L::N {
                    let sum = if i < count {
                        dot::<L>(q, d.k.offset((first + i) as isize * d.k_row), d.size)
                    } else {
                        L::zero()
                    };
                    sum.store(sums.add(i * L::N));
                }
                L::transpose(sums, L::N as isize, transposed, L::N as isize);
                let mut total = L::load(transposed);
                for lane in 1..L::N {
                    total = total.add(L::load(transposed.add(lane * L::N)));
                }
                total.store(d.scores.add(row * d.stride + first));
            }
        }
    }
}

/// Multiplies two arrays element by element and returns a vector of partial sums, one per lane.
///
/// # Safety
/// The conditions of [`dots`] hold.
#[inline(always)]
unsafe fn dot<L: Lanes<Elem = f32>>(x: *const f32, y: *const f32, size: usize) -> L {
    let whole = size / L::N * L::N;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sum = L::zero();
        for at in (0..whole).step_by(L::N) {
            sum = L::load(x.add(at)).mul_add(L::load(y.add(at)), sum);
        }
        if whole < size {
            let rest = size - whole;
            let (x, y) = (L::load_first(x.add(whole), rest), L::load_first(y.add(whole), rest));
            sum = x.mul_add(y, sum);
        }
        sum
    }
}
