//! Nearest-neighbour resizing: results are copies of elements.
//!
//! Results are copied in blocks of 16 bytes. If all bytes of a block come from 16 adjacent bytes of
//! an image row, one byte shuffle copies the block. This is the case unless images become smaller.
//! The source positions and the shuffle indices of the blocks are computed once for all rows.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_machine::isa::{Isa, Vectors, isa};

use super::Images;
use crate::scratch_memory::Scratch;

thread_local! {
    static BLOCKS: Scratch = const { Scratch::new() };
}

/// Number of bytes in a block of results that is copied at once.
const BYTES: usize = super::MAX_LANES;

/// The bytes of a block of results, with an alignment that suits any element type.
#[repr(align(16))]
struct Bytes([u8; BYTES]);

/// A block of results: the positions of the image elements to copy.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Block {
    /// For each byte of the block, the index of the source byte within 16 adjacent bytes of the
    /// image row.
    selection: [u8; BYTES],
    /// The index, in the image row, of the first element of the 16 source bytes.
    first: u32,
    /// Whether all elements of the block come from 16 adjacent bytes of the image, so that a byte
    /// shuffle can select them.
    uses_selection: bool,
}

/// Computes all results by copying elements of the images. Returns a kernel status: 0 on success.
///
/// # Safety
/// The runtime and the operands are valid. The elements of images and results have the size of `T`. The results are not empty.
pub unsafe fn run<T: Copy>(runtime: &KernelRuntime, images: &Images) -> i64 {
    let lanes = BYTES / size_of::<T>();
    let blocks = if images.channels == 1 { images.columns.to.div_ceil(lanes) } else { 0 };
    let copy_row = row_copier::<T>(isa());
    BLOCKS.with(|memory| {
        memory.with(blocks, |blocks_memory: *mut Block| {
            for b in 0..blocks {
                // SAFETY: the memory has room for the blocks; guaranteed by the caller for the positions.
                unsafe { blocks_memory.add(b).write(block::<T>(images, b * lanes)) };
            }
            // SAFETY: the blocks have been written.
            let blocks = unsafe { std::slice::from_raw_parts(blocks_memory.cast_const(), blocks) };
            let rows = |rows: Range<usize>| {
                let mut last: Option<(usize, usize, *const T)> = None;
                for row in rows {
                    let (image, result) = (row / images.rows.to, row % images.rows.to);
                    // SAFETY: guaranteed by the caller; pieces write different rows.
                    unsafe {
                        let source = images.rows.position(0, result);
                        let to = images.result::<T>(row);
                        match last {
                            Some((i, s, from)) if (i, s) == (image, source) => {
                                to.copy_from_nonoverlapping(from, images.row_lengths().1);
                            }
                            _ => copy_row(images, blocks, images.row(image, source), to),
                        }
                        last = Some((image, source, to));
                    }
                }
                STATUS_OK
            };
            // SAFETY: the runtime is valid, and nothing unwinds.
            unsafe { images.for_each_piece(runtime, 1, rows) }
        })
    })
}

/// Returns the source positions for the block of results that starts at column `first`.
unsafe fn block<T>(images: &Images, first: usize) -> Block {
    let size = size_of::<T>();
    // SAFETY: guaranteed by the caller.
    let window = unsafe { images.columns.window(0, first, BYTES / size) };
    let mut selection = [0; BYTES];
    for (to, offset) in selection.chunks_exact_mut(size).zip(window.offsets) {
        for (byte, to) in to.iter_mut().enumerate() {
            // Unused if the window does not fit a vector.
            *to = (offset as usize).wrapping_mul(size).wrapping_add(byte) as u8;
        }
    }
    Block { selection, first: window.first as u32, uses_selection: window.fits_vector }
}

/// A function that computes one row of results by copying elements of an image row.
type CopyRow<T> = unsafe fn(&Images, &[Block], *const T, *mut T);

/// Returns the function that copies the elements of a row, for an instruction set.
fn row_copier<T: Copy>(isa: Isa) -> CopyRow<T> {
    match isa.vectors() {
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 | Vectors::Avx2 => x86::copy_row::<T>,
        #[cfg(target_arch = "aarch64")]
        Vectors::Neon => neon::copy_row::<T>,
        _ => copy_row_portable::<T>,
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_mm_load_si128, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

    use super::*;

    /// Computes the row of results `to` by copying elements of the image row `from`, with AVX2.
    ///
    /// # Safety
    /// The machine has AVX2. The conditions of [`super::copy_row`] hold.
    #[target_feature(enable = "avx2")]
    pub unsafe fn copy_row<T: Copy>(images: &Images, blocks: &[Block], from: *const T, to: *mut T) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            super::copy_row(images, blocks, from, to, |window, block, to| {
                let selection = _mm_load_si128(block.selection.as_ptr().cast());
                let bytes = _mm_shuffle_epi8(_mm_loadu_si128(window.cast()), selection);
                _mm_storeu_si128(to.cast(), bytes);
            });
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::{vld1q_u8, vqtbl1q_u8, vst1q_u8};

    use super::*;

    /// Computes the row of results `to` by copying elements of the image row `from`, with NEON.
    ///
    /// # Safety
    /// The conditions of [`super::copy_row`] hold.
    pub unsafe fn copy_row<T: Copy>(images: &Images, blocks: &[Block], from: *const T, to: *mut T) {
        // SAFETY: guaranteed by the caller; every AArch64 machine has these instructions.
        unsafe {
            super::copy_row(images, blocks, from, to, |window, block, to| {
                let selection = vld1q_u8(block.selection.as_ptr());
                vst1q_u8(to, vqtbl1q_u8(vld1q_u8(window), selection));
            });
        }
    }
}

/// Computes the row of results `to` by copying elements of the image row `from`, without vector instructions.
///
/// # Safety
/// The conditions of [`copy_row`] hold.
unsafe fn copy_row_portable<T: Copy>(
    images: &Images,
    blocks: &[Block],
    from: *const T,
    to: *mut T,
) {
    // SAFETY: guaranteed by the caller; selections are below the size of the window.
    unsafe {
        copy_row(images, blocks, from, to, |window, block, to| {
            let bytes = block.selection.map(|byte| *window.add(usize::from(byte)));
            to.cast::<[u8; BYTES]>().write_unaligned(bytes);
        });
    }
}

/// Computes the row of results `to` by copying elements of the image row `from`. `select` writes the 16 bytes of a block by a byte
/// shuffle of 16 adjacent bytes of the image.
///
/// # Safety
/// The conditions of [`run`] hold; the rows are valid. The caller has enabled the instructions of
/// `select`.
#[inline(always)]
unsafe fn copy_row<T: Copy>(
    images: &Images,
    blocks: &[Block],
    from: *const T,
    to: *mut T,
    select: impl Fn(*const u8, &Block, *mut u8),
) {
    let (channels, columns) = (images.channels, &images.columns);
    let lanes = BYTES / size_of::<T>();
    // SAFETY: guaranteed by the caller; windows lie inside the row.
    unsafe {
        if channels > 1 {
            for column in 0..columns.to {
                let from = from.add(columns.position(0, column) * channels);
                to.add(column * channels).copy_from_nonoverlapping(from, channels);
            }
            return;
        }
        let mut short_row = Bytes([0; BYTES]);
        let window: *const T = if columns.from < lanes {
            short_row.0.as_mut_ptr().cast::<T>().copy_from_nonoverlapping(from, columns.from);
            short_row.0.as_ptr().cast()
        } else {
            from
        };
        for (b, block) in blocks.iter().enumerate() {
            let (first, count) = (b * lanes, lanes.min(columns.to - b * lanes));
            if !block.uses_selection {
                copy_elements(images, first..first + count, from, to);
            } else if count == lanes {
                select(window.add(block.first as usize).cast(), block, to.add(first).cast());
            } else {
                let mut bytes = Bytes([0; BYTES]);
                select(window.add(block.first as usize).cast(), block, bytes.0.as_mut_ptr());
                to.add(first).copy_from_nonoverlapping(bytes.0.as_ptr().cast(), count);
            }
        }
    }
}

/// Computes the results at the positions `columns` of a row by copying elements of the image row `from` one by one.
///
/// # Safety
/// The conditions of [`copy_row`] hold.
#[inline(always)]
unsafe fn copy_elements<T: Copy>(
    images: &Images,
    columns: Range<usize>,
    from: *const T,
    to: *mut T,
) {
    for column in columns {
        // SAFETY: guaranteed by the caller.
        unsafe { *to.add(column) = *from.add(images.columns.position(0, column)) };
    }
}
