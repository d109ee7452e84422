//! Matrix products of float32 by low-precision weights, with float32 sums: 8-bit and 4-bit integers
//! with group-wise scales and zero points, and bfloat16.
//!
//! Method: weights are converted to float32 in registers when they are loaded. For up to
//! [`FEW_ROWS`] rows, the kernel reads the stored bits while it multiplies, two rows of k at a
//! time. The sum of a group is scaled when it is complete. For more rows, a slice of 128 rows of a
//! panel is converted to float32 in scratch memory, and all tiles of the float32 micro-kernel read
//! it from the first-level cache. If there are enough panels, the work is divided only by panels,
//! so that one thread converts each slice. The whole operand is never copied. For measurements, see
//! "Weights of 4, 8 and 16 bits" in `docs/internals/measurements/low-precision-weights.md`, which
//! compares with float32 and states the cost of zero points.
//!
//! | module | owns |
//! |---|---|
//! | `bfloat16_amx_matmul` | matrix products of many rows by bfloat16 weights in tile registers |
//! | `entry_point` | the declared kernels |
//! | `storage_format` | the storage formats |
//! | `panel_matmul` | matrix products of few rows by a panel, and conversion of slices to float32 |
//!
//! Right operands are packed by `pliant_tensor`'s `pack_bytes`, `pack_nibbles` and `pack_bfloat16`.

#[cfg(target_arch = "x86_64")]
mod bfloat16_amx_matmul;
mod entry_point;
mod panel_matmul;
mod storage_format;

use std::mem::MaybeUninit;
use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use crate::algorithm_selection::low_precision_weights::{
    MAX_A_DEPTH, MAX_DEPTH, TILE_SPEEDUP, block_rows, depth, panel_pieces,
};
pub use crate::algorithm_selection::tile_registers::FEW_ROWS;
use crate::algorithm_selection::tile_registers::used_for_bfloat16;
use crate::epilogue::MAX_TILE_COLUMNS;
use crate::matmul::micro_kernel::{Element, KSegment, Prefetch, ROWS, Tile};
use crate::matmul::row_tiling::{TILE_ROWS, slivers};
use crate::matmul::split_range;
use crate::matmul::work_partition::{Partition, even_part, parallel_for};
use crate::simd::for_isa;
pub use entry_point::{BFloat16Weight, Int4Weight, Int8Weight};
use panel_matmul::{Panel, few_rows, widen};
use pliant_machine::isa::Isa;
pub use storage_format::Format;

/// The arguments of a matrix product `c[m, n] = a[m, k] * b[k, n]` in which B has 4, 8 or 16 bits
/// per element. Strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct LowPrecisionGemm {
    /// Number of rows of A and C.
    pub m: i64,
    /// Number of columns of B and C.
    pub n: i64,
    /// Number of columns of A, equal to the number of rows of B.
    pub k: i64,
    /// The address of A, whose rows are contiguous.
    pub a: *const f32,
    /// The stride between rows of A, in elements.
    pub a_row: i64,
    /// The storage format of the weights B.
    pub format: Format,
    /// The address of the panels of B.
    pub b: *const u8,
    /// Number of columns of a panel of B.
    pub width: i64,
    /// Number of adjacent rows of B, along the inner dimension `k`, that share a scale: an even number, or the number
    /// of all rows.
    pub group: i64,
    /// The address of the scales, an array of shape `[panels, groups of rows, columns of a panel]`;
    /// null if all are 1, as for bfloat16.
    pub scales: *const f32,
    /// The address of the zero points, in the layout of the scales; null if all are 0, as for
    /// bfloat16.
    pub zeros: *const f32,
    /// The address of C, whose rows are contiguous.
    pub c: *mut f32,
    /// The stride between rows of C, in elements.
    pub c_row: i64,
}

/// Scratch memory for a slice of a panel, converted to float32.
#[repr(C, align(64))]
struct Slice([MaybeUninit<f32>; MAX_DEPTH * MAX_TILE_COLUMNS]);

/// A matrix product whose sizes have been checked.
struct CheckedGemm<'a> {
    g: &'a LowPrecisionGemm,
    isa: Isa,
    m: usize,
    n: usize,
    k: usize,
    width: usize,
    group: usize,
}

/// Computes a matrix product with the given instruction set. Returns a kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`. The runtime is valid; all addressed elements are valid, including whole
/// panels; C overlaps no operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, g: &LowPrecisionGemm) -> i64 {
    let to_usize = |d: i64| usize::try_from(d).ok();
    let (Some(m), Some(n), Some(k)) = (to_usize(g.m), to_usize(g.n), to_usize(g.k)) else {
        return STATUS_BAD_ARGUMENTS;
    };
    let width =
        to_usize(g.width).filter(|&w| w > 0 && w.is_multiple_of(16) && w <= MAX_TILE_COLUMNS);
    let group = to_usize(g.group).filter(|&d| d > 0 && (d.is_multiple_of(2) || d >= k));
    let (Some(width), Some(group)) = (width, group) else { return STATUS_BAD_ARGUMENTS };
    let unscaled = g.scales.is_null() && g.zeros.is_null();
    if g.format == Format::BFloat16 && !unscaled {
        return STATUS_BAD_ARGUMENTS;
    }
    if m == 0 || n == 0 {
        return STATUS_OK;
    }
    let group = group.min(k.max(1));
    let w = CheckedGemm { g, isa, m, n, k, width, group };
    let panels = n.div_ceil(width);
    let uses_tile_registers =
        isa == Isa::Amx && g.format == Format::BFloat16 && used_for_bfloat16(m);
    let (partition, unit) = match uses_tile_registers {
        true => (
            Partition::of_product((m, TILE_ROWS), n, k.div_ceil(TILE_SPEEDUP), panels)
                .coarsen_panels(),
            TILE_ROWS,
        ),
        false => {
            (partition_by_panels(Partition::of_product((m, ROWS), n, k, panels), panels), ROWS)
        }
    };
    let piece = |index: usize| {
        let (rows, panels) = partition.piece(index, (w.m, unit), panels);
        // SAFETY: guaranteed by the caller; pieces write disjoint results.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if uses_tile_registers {
                return bfloat16_amx_matmul::many_rows(&w, rows, panels);
            }
            if m <= FEW_ROWS {
                panels.for_each(|panel| w.few_rows(rows.clone(), panel));
            } else {
                w.many_rows(rows, panels);
            }
        }
        STATUS_OK
    };
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, partition.pieces(), partition.piece_micros, &piece) }
}

impl CheckedGemm<'_> {
    fn panel(&self, panel: usize, rows: Range<usize>) -> Panel {
        let g = self.g;
        let groups = self.k.div_ceil(self.group);
        let of_panel = |p: *const f32| match p.is_null() {
            true => p,
            false => p.wrapping_add(panel * groups * self.width),
        };
        let c = rows.start as i64 * g.c_row + (panel * self.width) as i64;
        Panel {
            rows: rows.len(),
            columns: self.width.min(self.n - panel * self.width),
            k: self.k,
            width: self.width,
            group: self.group,
            a: g.a.wrapping_offset((rows.start as i64 * g.a_row) as isize),
            a_row: g.a_row as isize,
            b: g.b.wrapping_add(panel * g.format.panel_bytes(self.k, self.width)),
            scales: of_panel(g.scales),
            zeros: of_panel(g.zeros),
            c: g.c.wrapping_offset(c as isize),
            c_row: g.c_row as isize,
        }
    }

    /// Computes the matrix product of a few rows of A and one panel of B, without converting the
    /// panel in memory.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn few_rows(&self, rows: Range<usize>, panel: usize) {
        let panel = self.panel(panel, rows);
        let format = self.g.format;
        // SAFETY: guaranteed by the caller.
        unsafe { for_isa!(self.isa, few_rows(panel: &Panel, format: Format)).0(&panel, format) }
    }

    /// Computes the matrix product of many rows of A and a range of panels of B: loops over blocks of rows, blocks of
    /// the inner dimension `k`, panels, and slices.
    ///
    /// # Safety
    /// The conditions of [`run`] hold.
    unsafe fn many_rows(&self, rows: Range<usize>, panels: Range<usize>) {
        let mut slice = Slice([const { MaybeUninit::uninit() }; MAX_DEPTH * MAX_TILE_COLUMNS]);
        let to = slice.0.as_mut_ptr().cast::<f32>();
        let blocks = rows.len().div_ceil(block_rows());
        for index in 0..blocks {
            let block = even_part(rows.len(), ROWS, index, blocks);
            for k_block in split_range(0..self.k, MAX_A_DEPTH) {
                for panel in panels.clone() {
                    let panel = self.panel(panel, rows.start + block.start..rows.start + block.end);
                    for k in split_range(k_block.clone(), depth()) {
                        // SAFETY: guaranteed by the caller; the slice holds the widest panel.
                        unsafe { self.multiply_slice(&panel, k, to) };
                    }
                }
            }
        }
    }

    /// Converts one slice of a panel to float32, and multiplies the rows by the slice.
    ///
    /// # Safety
    /// The conditions of [`run`] hold; `slice` has room for the rows `k`.
    unsafe fn multiply_slice(&self, panel: &Panel, k: Range<usize>, slice: *mut f32) {
        let (format, kernels) = (self.g.format, <f32 as Element>::kernels(self.isa));
        let widen = for_isa!(self.isa, widen(panel: &Panel, format: Format, rows: Range<usize>, to: *mut f32)).0;
        // SAFETY: guaranteed by the caller.
        unsafe { widen(panel, format, k.clone(), slice) };
        for column in (0..panel.columns).step_by(kernels.columns()) {
            let columns = kernels.columns().min(panel.columns - column);
            for (row, height) in slivers(panel.rows) {
                let a = panel.a.wrapping_offset(row as isize * panel.a_row);
                let c = panel.c.wrapping_offset(row as isize * panel.c_row);
                let mut tile = Tile {
                    segments: &[KSegment::leading(k.len())],
                    a: a.wrapping_add(k.start),
                    a_row: panel.a_row,
                    a_col: 1,
                    b: slice.wrapping_add(column),
                    b_row: self.width as isize,
                    c: c.wrapping_add(column),
                    c_row: panel.c_row,
                    accumulate: k.start > 0,
                    tail_lanes: 0,
                    prefetch: Prefetch::NONE,
                    epilogue: None,
                };
                // SAFETY: guaranteed by the caller.
                unsafe { kernels.run(height, columns, &mut tile) };
            }
        }
    }
}

/// Changes a partition so that only panels are divided, if there are enough panels for every
/// thread. In a division by rows, each piece would convert the same panels again. The resulting
/// pieces differ by at most one panel.
fn partition_by_panels(partition: Partition, panels: usize) -> Partition {
    let wanted = partition.pieces();
    let Some(count) = panel_pieces(partition.row_blocks, wanted, panels) else { return partition };
    Partition {
        row_blocks: 1,
        panel_blocks: count,
        rows_first: false,
        piece_micros: (partition.piece_micros * wanted / count).max(1),
    }
}
