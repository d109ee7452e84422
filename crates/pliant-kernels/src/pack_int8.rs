//! The implementation of the declared kernel `pack_int8`, which packs 8-bit matrices into panels.
//!
//! Method: panels are packed in parallel, four rows at a time. If the rows of the matrix are
//! contiguous, four vectors are interleaved; otherwise elements are copied one by one.

use pliant_exec::abi::{KernelRuntime, STATUS_CANCELLED, STATUS_OK};
use pliant_kernel_api::kernels::pack_int8::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_machine::isa::isa;
use pliant_tensor::DType;

use crate::algorithm_selection::partition::copied_unit;
use crate::kernel_entry_points::Implementation;
use crate::matmul::work_partition::parallel_for;
use crate::simd::{Lanes, for_isa};

/// The implementation of the kernel `pack_int8`.
pub struct PackInt8;

/// Maximum number of columns of a panel (a group of adjacent columns that are stored together) of packed 8-bit integers.
const WIDEST: usize = 64;

/// The matrix to pack, its sizes and strides, and the destinations of the panels and the column
/// sums.
struct Matrix {
    x: *const u8,
    strides: [isize; 2],
    inner: usize,
    columns: usize,
    width: usize,
    /// The mask of bits to flip in each element: for uint8 the highest bit, which is equivalent to
    /// subtracting 128; otherwise 0.
    flipped_bits: u8,
    packed: *mut u8,
    sums: *mut i32,
}

// SAFETY: pieces read `x` and write different panels of memory that is valid during the call.
unsafe impl Sync for Matrix {}

impl Implementation for PackInt8 {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let operands = ["x", "packed", "column_sums"].map(|name| call.operand(name));
        let [Some(x), Some(packed), Some(sums)] = operands else { return STATUS_OK };
        let size = |name: &str| sizes.get(name) as usize;
        let matrix = Matrix {
            x: x.data.cast_const(),
            strides: [x.strides()[0] as isize, x.strides()[1] as isize],
            inner: size("inner"),
            columns: size("columns"),
            width: size("width"),
            flipped_bits: if x.dtype == DType::UInt8 { 0x80 } else { 0 },
            packed: packed.data,
            sums: sums.data.cast(),
        };
        let run = for_isa!(isa(), pack(matrix: &Matrix, panel: usize)).0;
        let piece = |panel: usize| {
            // SAFETY: the call was checked: the operands have these elements and share no memory. Each panel is one
            // piece.
            unsafe { run(&matrix, panel) };
            if runtime.is_interrupted() { STATUS_CANCELLED } else { STATUS_OK }
        };
        let units = matrix.inner.saturating_mul(matrix.width) / (2 * copied_unit());
        // SAFETY: the runtime is valid, and the kernels do not unwind.
        unsafe { parallel_for(runtime, size("panels"), units, &piece) }
    }
}

/// Packs the panel with index `panel`, and stores the sums of its columns.
///
/// # Safety
/// The machine has the instructions of `L`. The operands are valid.
#[inline(always)]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "the type parameter selects the instruction set for which the function is compiled"
)]
unsafe fn pack<L: Lanes>(m: &Matrix, panel: usize) {
    let first = panel * m.width;
    let columns = m.width.min(m.columns - first);
    let quads = m.inner.div_ceil(4);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let to = m.packed.add(panel * quads * m.width * 4);
        let mut sums = [0i32; WIDEST];
        for quad in 0..quads {
            let rows = 4.min(m.inner - 4 * quad);
            let mut block = [[0u8; WIDEST]; 4];
            for (r, row) in block.iter_mut().take(rows).enumerate() {
                let line = (4 * quad + r) as isize;
                let from = m.x.wrapping_offset(line.wrapping_mul(m.strides[0]));
                load(
                    m,
                    from.wrapping_offset((first as isize).wrapping_mul(m.strides[1])),
                    &mut row[..columns],
                );
            }
            interleave(&block, &mut sums, to.add(quad * m.width * 4), m.width);
        }
        for (c, &sum) in sums.iter().take(columns).enumerate() {
            *m.sums.add(first + c) = sum;
        }
    }
}

/// Copies the elements of a row of the matrix from the address `from` on to `to`, and flips the bits [`Matrix::flipped_bits`] of
/// each element.
///
/// # Safety
/// The elements are readable.
#[inline(always)]
unsafe fn load(m: &Matrix, from: *const u8, to: &mut [u8]) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if m.strides[1] == 1 {
            std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
        } else {
            for (c, x) in to.iter_mut().enumerate() {
                *x = *from.wrapping_offset((c as isize).wrapping_mul(m.strides[1]));
            }
        }
    }
    for x in to {
        *x ^= m.flipped_bits;
    }
}

/// Interleaves four rows, so that the four elements of a column are adjacent, and adds the rows to
/// the column sums.
///
/// # Safety
/// `4 * width` elements are writable.
#[inline(always)]
unsafe fn interleave(
    rows: &[[u8; WIDEST]; 4],
    sums: &mut [i32; WIDEST],
    to: *mut u8,
    width: usize,
) {
    let mut out = [[0u8; 4]; WIDEST];
    for c in 0..WIDEST {
        let quad = [rows[0][c], rows[1][c], rows[2][c], rows[3][c]];
        let sum = quad.iter().fold(0i16, |sum, &x| sum + i16::from(x as i8));
        sums[c] = sums[c].wrapping_add(i32::from(sum));
        out[c] = quad;
    }
    // SAFETY: guaranteed by the caller; a panel has at most `WIDEST` columns.
    unsafe { std::ptr::copy_nonoverlapping(out.as_ptr().cast(), to, 4 * width) };
}
