//! Convolutions of 8-bit integers in 1, 2 and 3 dims, with int32 sums. Zero points are subtracted
//! from the inputs and the weights.
//!
//! Method: im2col, with channels last. Each row of A contains the inputs under the filter for one
//! result: taps in row-major order, then channels. B contains the weights, packed in groups of four
//! adjacent values of k ([`super::pack_vnni`]). Blocks of rows are copied into scratch memory, with
//! the zero point of the input as padding, and multiplied by the int8 matmul ([`super`]). The
//! copies take little time compared with the multiplications. For a filter of one tap with stride
//! 1, rows are read in place. Depthwise convolutions are direct (`depthwise`); [`run`] chooses
//! between both by the number of groups.
//!
//! For measurements, see "Convolutions of 8-bit integers" in
//! `docs/internals/measurements/quantized.md`.
//!
//! | module | owns |
//! |---|---|
//! | `depthwise` | depthwise convolution |
//! | `depthwise_vnni` | the sums of a depthwise convolution with AVX-512 VNNI |
//! | `entry_point` | the declared kernel |
//! | `im2col` | im2col |

mod depthwise;
#[cfg(target_arch = "x86_64")]
mod depthwise_vnni;
mod entry_point;
mod im2col;

use std::ops::Range;
use std::ptr::null_mut;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use super::{CheckedGemm, IntegerEpilogue, QuantizedGemm, copy_layout};
use crate::algorithm_selection::quantized::piece_grid;
pub use crate::convolution::shape_and_strides::Counts;
use crate::convolution::shape_and_strides::Sizes;
use crate::matmul::work_partition::{even_part, parallel_for, unit_work};
use crate::scratch_memory::Scratch;
pub use entry_point::Int8Conv;
use im2col::Patches;
use pliant_machine::isa::Isa;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// The arguments of a convolution of 8-bit integers. Input and results have channels last and no
/// gaps.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// The sizes of images, filters and groups.
    pub counts: Counts,
    /// The address of the input images.
    pub x: *const u8,
    /// Whether the input is int8 instead of uint8.
    pub signed: bool,
    /// The address of the zero point of the input; null for 0.
    pub x_zero: *const i32,
    /// The weights: for each group, one packed matrix `[taps * channels of a group, filters of a group]`
    /// ([`super::VnniMatrix`]). For depthwise convolutions, `[taps, channels]` bytes, padded with zeros to a multiple
    /// of four taps.
    pub weights: *const i8,
    /// Number of columns of a panel of weights; ignored for depthwise convolutions.
    pub width: i64,
    /// The address of the sums of the weights, one for each filter.
    pub sums: *const i32,
    /// The address of the zero points of the weights, one for each filter; null if all are 0.
    pub w_zeros: *const i32,
    /// The address of the results; null if the epilogue writes 8-bit results instead.
    pub out: *mut i32,
    /// The epilogue; `None` if the results are the int32 sums.
    pub epilogue: Option<IntegerEpilogue>,
}

/// A convolution that is computed as one matrix product per group.
struct GroupedProducts<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    isa: Isa,
    /// The number of rows of each matrix product, one for each output pixel of all images. The field `columns` is the number of
    /// columns, one for each filter of a group.
    rows: usize,
    columns: usize,
    /// The number of multiplications for each sum.
    k: usize,
    /// Whether the rows of the left operand are read from the input in place, instead of from im2col copies.
    in_place: bool,
}

/// Computes a convolution with the given instruction set. Returns a kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`; the runtime is valid. All elements are valid, including whole panels; the results overlap no
/// operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution) -> i64 {
    let Some(s) = c.counts.sizes() else { return STATUS_BAD_ARGUMENTS };
    let rows = s.pixels() * s.batch;
    if rows == 0 || s.filters == 0 {
        return STATUS_OK;
    }
    let has_no_padding = (0..3).all(|d| s.before[d] == 0 && s.padded[d] <= s.input[d]);
    // SAFETY: guaranteed by the caller.
    let zero = if c.x_zero.is_null() { 0 } else { unsafe { *c.x_zero } };
    let range = if c.signed { -128..=127 } else { 0..=255 };
    // Padding has the value of the zero point, so the zero point must be in the range of the bytes.
    if !has_no_padding && !range.contains(&zero) {
        return STATUS_BAD_ARGUMENTS;
    }
    if s.is_depthwise() {
        // SAFETY: guaranteed by the caller.
        return unsafe { depthwise::run(isa, runtime, (c, &s), zero) };
    }
    let is_pointwise = s.kernel == [1; 3] && s.stride == [1; 3];
    let in_place = is_pointwise && has_no_padding && s.input == s.output;
    let k = s.kernel.iter().product::<usize>() * s.group_channels();
    let columns = s.group_filters();
    let p = GroupedProducts { c, s: &s, isa, rows, columns, k, in_place };
    // SAFETY: guaranteed by the caller.
    unsafe { p.run_on_team(runtime, zero as u8) }
}

impl GroupedProducts<'_> {
    /// Returns the matrix product that computes a group.
    fn product(&self, group: usize) -> QuantizedGemm {
        let c = self.c;
        let first = group * self.columns;
        let quads = self.columns.div_ceil(c.width as usize) * self.k.div_ceil(4) * 4;
        let channel = group * self.s.group_channels();
        QuantizedGemm {
            m: self.rows as i64,
            n: self.columns as i64,
            k: self.k as i64,
            a: c.x.wrapping_add(channel),
            a_row: self.s.channels as i64,
            a_signed: c.signed,
            a_zeros: c.x_zero,
            a_zeros_stride: 0,
            b: c.weights.wrapping_add(group * quads * c.width as usize),
            width: c.width,
            sums: c.sums.wrapping_add(first),
            b_zeros: if c.w_zeros.is_null() { c.w_zeros } else { c.w_zeros.wrapping_add(first) },
            c: if c.out.is_null() { null_mut() } else { c.out.wrapping_add(first) },
            c_row: self.s.filters as i64,
            epilogue: c.epilogue.map(|epilogue| epilogue.at_column(first)),
        }
    }

    /// Computes the convolution on the worker team. `zero` is the zero point of the input as a
    /// byte. Returns a kernel status: 0 on success.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn run_on_team(&self, runtime: &KernelRuntime, zero: u8) -> i64 {
        if self.c.width <= 0 {
            return STATUS_BAD_ARGUMENTS;
        }
        let whole = self.product(0);
        if self.in_place && self.s.groups == 1 {
            // SAFETY: guaranteed by the caller.
            return unsafe { super::run(self.isa, runtime, &whole) };
        }
        let Some(work) = CheckedGemm::of(self.isa, &whole) else { return STATUS_BAD_ARGUMENTS };
        let panels = self.s.groups * self.columns.div_ceil(work.width);
        let products = self.rows.saturating_mul(self.s.filters);
        let units = products.saturating_mul(self.k.div_ceil(work.speedup())) / unit_work();
        let (row_pieces, panel_pieces) = piece_grid(self.rows, panels, units);
        let piece = |index: usize| {
            let (unit, at) = (
                crate::matmul::row_tiling::TILE_ROWS,
                (index / panel_pieces, index % panel_pieces),
            );
            let (rows, panels) = (
                even_part(self.rows, unit, at.0, row_pieces),
                even_part(panels, 1, at.1, panel_pieces),
            );
            // SAFETY: guaranteed by the caller; pieces write disjoint results.
            unsafe { self.piece(&work, rows, panels, zero) }
        };
        let pieces = row_pieces * panel_pieces;
        // SAFETY: guaranteed by the caller; the kernels do not unwind.
        unsafe { parallel_for(runtime, pieces, units / pieces, &piece) }
    }

    /// Computes the results of a range of rows (results) for a range of panels (filters). Panels of
    /// all groups are numbered consecutively.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn piece(
        &self,
        work: &CheckedGemm<'_>,
        rows: Range<usize>,
        panels: Range<usize>,
        zero: u8,
    ) -> i64 {
        let group_panels = self.columns.div_ceil(work.width);
        for group in panels.start / group_panels..panels.end.div_ceil(group_panels) {
            let first = group * group_panels;
            let own_panels =
                panels.start.max(first) - first..panels.end.min(first + group_panels) - first;
            let g = self.product(group);
            // SAFETY: guaranteed by the caller.
            let status = unsafe {
                if self.in_place {
                    CheckedGemm { g: &g, ..*work }.block(rows.clone(), own_panels)
                } else {
                    self.multiply_copies(
                        &CheckedGemm { g: &g, ..*work },
                        (group, zero),
                        rows.clone(),
                        own_panels,
                    )
                }
            };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }

    /// Computes the results of a range of rows for a range of panels of one group, from im2col
    /// copies of the rows.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn multiply_copies(
        &self,
        work: &CheckedGemm<'_>,
        (group, zero): (usize, u8),
        rows: Range<usize>,
        panels: Range<usize>,
    ) -> i64 {
        let (row_stride, max_rows) = copy_layout(self.k);
        let max_rows = max_rows.min(rows.len());
        let patches = Patches::new(self.c.x, self.s, group, zero);
        let run = |memory: *mut u8| {
            for start in (rows.start..rows.end).step_by(max_rows) {
                let block = start..rows.end.min(start + max_rows);
                let a = memory.wrapping_sub(start * row_stride).cast_const();
                let g = QuantizedGemm { a, a_row: row_stride as i64, ..*work.g };
                let block_product = CheckedGemm { g: &g, a_is_copied: true, ..*work };
                // SAFETY: the memory has room for the block; guaranteed by the caller.
                let status = unsafe {
                    patches.copy(self.isa, block.clone(), (memory, row_stride));
                    block_product.block(block, panels.clone())
                };
                if status != STATUS_OK {
                    return status;
                }
            }
            STATUS_OK
        };
        ROWS.with(|memory| memory.with(max_rows.saturating_mul(row_stride), run))
    }
}
