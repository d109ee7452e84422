//! The implementation of the declared kernel `softmax`.
//!
//! Method: three passes over a row: first the maximum, then the exponentials and their sum, then
//! the division. In the second and third pass, the row is in a cache. Rows that are shorter than a
//! vector are computed side by side, one row per lane. Partial sums of at most [`MAX_PARTIAL_SUM`]
//! elements are computed in float32 and added in float64.

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::kernels::softmax::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_machine::isa::isa;

use crate::algorithm_selection::softmax::{piece, unit};
use crate::kernel_entry_points::Implementation;
use crate::math;
use crate::matmul::work_partition::parallel_for;
use crate::simd::horizontal_reduce::Reduce;
use crate::simd::{MathLanes, for_isa};
use crate::vector_math::vector_math_ops::Wide;

/// The implementation of the kernel `softmax` for float32.
pub struct Softmax;

/// Maximum number of float32 lanes of a vector.
const WIDEST: usize = 16;
/// Maximum number of elements whose exponentials are summed in float32. Longer sums add such
/// partial sums in float64.
const MAX_PARTIAL_SUM: usize = 4096;

/// The rows that a thread computes as one piece of work.
struct Rows {
    x: *const f32,
    out: *mut f32,
    rows: usize,
    columns: usize,
    log: bool,
}

/// The address of the input rows and the address of the result rows of softmax, in a type that threads may share.
struct Addresses(*const f32, *mut f32);

// SAFETY: pieces access different rows of memory that is valid during the call.
unsafe impl Sync for Addresses {}

impl Implementation for Softmax {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else {
            return STATUS_OK;
        };
        let (rows, columns) = (sizes.get("rows") as usize, sizes.get("columns") as usize);
        if rows == 0 || columns == 0 {
            return STATUS_OK;
        }
        let log = call.int("log") != 0;
        let addresses = Addresses(x.data.cast_const().cast(), out.data.cast());
        let run = for_isa!(isa(), softmax(rows: &Rows)).0;
        let rows_per_piece = (piece() / columns).clamp(1, rows).next_multiple_of(WIDEST).min(rows);
        let run_piece = |index: usize| {
            let (addresses, first) = (&addresses, index * rows_per_piece);
            // SAFETY: the call was checked: both operands have these rows and share no memory. Each row is in one
            // piece.
            unsafe {
                run(&Rows {
                    x: addresses.0.add(first * columns),
                    out: addresses.1.add(first * columns),
                    rows: rows_per_piece.min(rows - first),
                    columns,
                    log,
                });
            }
            if runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
        };
        let units = (rows_per_piece.saturating_mul(columns) / unit()).max(1);
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { parallel_for(runtime, rows.div_ceil(rows_per_piece), units, &run_piece) }
    }
}

/// Computes softmax, or log softmax, of each of the rows `r`.
///
/// # Safety
/// The machine has the instructions of `L`. The rows are valid and share no memory with the results.
#[inline(always)]
unsafe fn softmax<L: MathLanes<Elem = f32> + Reduce>(r: &Rows) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if r.columns < L::N {
            return short_rows::<L>(r);
        }
        for row in 0..r.rows {
            let at = row * r.columns;
            long_row::<L>(r.x.add(at), r.out.add(at), r.columns, r.log);
        }
    }
}

/// Computes softmax of a row with at least as many elements as a vector has lanes. If the row does not consist of whole vectors,
/// the last vector overlaps the previous vector, or is loaded partially.
///
/// # Safety
/// The conditions of [`softmax`] hold.
#[inline(always)]
unsafe fn long_row<L: MathLanes<Elem = f32> + Reduce>(
    x: *const f32,
    out: *mut f32,
    columns: usize,
    log: bool,
) {
    // SAFETY: guaranteed by the caller; vectors end at most at the last column.
    unsafe {
        let whole = columns / L::N * L::N;
        let (last, rest) = (columns - L::N, columns - whole);
        // Overlapping vectors do not change a maximum.
        let mut largest = [L::load(x.add(last)); 4];
        let mut at = 0;
        while at + 4 * L::N <= columns {
            for (k, largest) in largest.iter_mut().enumerate() {
                *largest = largest.max2(L::load(x.add(at + k * L::N)));
            }
            at += 4 * L::N;
        }
        while at < whole {
            largest[0] = largest[0].max2(L::load(x.add(at)));
            at += L::N;
        }
        let pairs = (largest[0].max2(largest[1]), largest[2].max2(largest[3]));
        let base = L::splat(pairs.0.max2(pairs.1).largest_lane());
        let sum = exponentials::<L>(x, out, (whole, rest), base, log);
        finish::<L>(x, out, (whole, rest), base, sum, log);
    }
}

/// Computes `exp(x - base)` for the elements `x` of a row, and stores these values unless `log` is true. Returns their
/// sum.
///
/// # Safety
/// The conditions of [`softmax`] hold.
#[inline(always)]
unsafe fn exponentials<L: MathLanes<Elem = f32> + Reduce>(
    x: *const f32,
    out: *mut f32,
    (whole, rest): (usize, usize),
    base: L,
    log: bool,
) -> f32 {
    let mut total = 0f64;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut start = 0;
        while start < whole {
            let end = whole.min(start + MAX_PARTIAL_SUM);
            let mut sum = L::zero();
            for at in (start..end).step_by(L::N) {
                let e = exponential(L::load(x.add(at)), base);
                if !log {
                    e.store(out.add(at));
                }
                sum = sum.add(e);
            }
            total += f64::from(sum.sum_lanes());
            start = end;
        }
        if rest > 0 {
            let e = exponential(L::load_first(x.add(whole), rest), base);
            let mut lanes = [0f32; WIDEST];
            e.store(lanes.as_mut_ptr());
            for (k, &e) in lanes[..rest].iter().enumerate() {
                total += f64::from(e);
                if !log {
                    *out.add(whole + k) = e;
                }
            }
        }
    }
    total as f32
}

/// Returns `exp(x - base)`. It is a function instead of a closure, because vector instructions in a
/// closure that is not inlined would become calls.
///
/// # Safety
/// The machine has the instructions of `L`.
#[inline(always)]
unsafe fn exponential<L: MathLanes<Elem = f32>>(x: L, base: L) -> L {
    // SAFETY: guaranteed by the caller.
    unsafe { math::exp(&mut Wide::<L>::new(), &x.sub(base)) }
}

/// Computes the results of a row: divides the exponentials by their sum, or, if `log` is true, computes the logarithms.
///
/// # Safety
/// The conditions of [`softmax`] hold.
#[inline(always)]
unsafe fn finish<L: MathLanes<Elem = f32>>(
    x: *const f32,
    out: *mut f32,
    (whole, rest): (usize, usize),
    base: L,
    sum: f32,
    log: bool,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if log {
            let log = math::log(&mut Wide::<L>::new(), &L::splat(sum));
            for at in (0..whole).step_by(L::N) {
                L::load(x.add(at)).sub(base).sub(log).store(out.add(at));
            }
            let last = L::load_first(x.add(whole), rest).sub(base).sub(log);
            last.store_first(out.add(whole), rest);
        } else {
            let factor = L::splat(1.0 / sum);
            for at in (0..whole).step_by(L::N) {
                L::load(out.add(at)).mul(factor).store(out.add(at));
            }
            L::load_first(out.add(whole), rest).mul(factor).store_first(out.add(whole), rest);
        }
    }
}

/// Computes softmax of rows with fewer elements than a vector has lanes, one row per lane.
///
/// # Safety
/// The conditions of [`softmax`] hold.
#[inline(always)]
unsafe fn short_rows<L: MathLanes<Elem = f32>>(r: &Rows) {
    let n = r.columns;
    // Column `j` of all rows is at `j * L::N`.
    let mut block = [0f32; WIDEST * WIDEST];
    for first in (0..r.rows).step_by(L::N) {
        let count = L::N.min(r.rows - first);
        // SAFETY: guaranteed by the caller; a block has at most `L::N` rows and columns.
        unsafe {
            let (x, out) = (r.x.add(first * n), r.out.add(first * n));
            for row in 0..count {
                for j in 0..n {
                    block[j * L::N + row] = *x.add(row * n + j);
                }
            }
            columns::<L>(block.as_mut_ptr(), n, r.log);
            for row in 0..count {
                for j in 0..n {
                    *out.add(row * n + j) = block[j * L::N + row];
                }
            }
        }
    }
}

/// Computes softmax (log softmax if `log` is true) over `n` vectors in place, where each lane is a
/// row.
///
/// # Safety
/// The machine has the instructions of `L`. The vectors are valid.
#[inline(always)]
unsafe fn columns<L: MathLanes<Elem = f32>>(block: *mut f32, n: usize, log: bool) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let column = |j: usize| block.add(j * L::N);
        let mut base = L::load(column(0));
        for j in 1..n {
            base = base.max2(L::load(column(j)));
        }
        let mut sum = L::zero();
        for j in 0..n {
            let x = L::load(column(j)).sub(base);
            let e = math::exp(&mut Wide::<L>::new(), &x);
            if log {
                x.store(column(j))
            } else {
                e.store(column(j))
            };
            sum = sum.add(e);
        }
        let log_of_sum = math::log(&mut Wide::<L>::new(), &sum);
        let factor = L::splat(1.0).div(sum);
        for j in 0..n {
            let x = L::load(column(j));
            let result = if log { x.sub(log_of_sum) } else { x.mul(factor) };
            result.store(column(j));
        }
    }
}
