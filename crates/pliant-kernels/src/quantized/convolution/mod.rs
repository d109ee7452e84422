//! Convolutions of 8-bit integers in 1, 2 and 3 dims, with exact sums in 32 bits: the summed
//! products are of inputs minus their zero point and weights minus the zero points of their
//! filters.
//!
//! Recipe: channels last. Each row of A contains the inputs under the filter for one result, taps
//! in row-major order, then channels; B contains the weights, in quads. Blocks of rows are copied
//! into scratch memory (im2col), with the zero point of the input as padding, and multiplied like
//! other products ([`super`]): the copies are bytes, and small beside the products. For a filter of
//! one tap with stride 1, rows are read in place. Depthwise convolutions (`alone`) sum taps
//! directly.
//!
//! Measured: "Convolutions of 8-bit integers" in `docs/performance.md`.
//!
//! | module | owns |
//! |---|---|
//! | `alone` | depthwise convolution |
//! | `call` | the entry points that loop functions call |
//! | `patches` | copies the inputs under the filter |

mod alone;
mod call;
mod patches;

use std::ops::Range;
use std::ptr::null_mut;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use super::{IntegerEpilogue, QuantizedGemm, Work, copies};
pub use crate::convolution::shape::Counts;
use crate::convolution::shape::Sizes;
use crate::product::parallel::{even_part, parallel_for, unit_work};
use crate::rules::quantized::piece_grid;
use crate::scratch::Scratch;
pub use call::Int8Conv;
use patches::Patches;
use pliant_machine::isa::Isa;

thread_local! {
    static ROWS: Scratch = const { Scratch::new() };
}

/// The arguments of a convolution. Input and results are dense, with channels last.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// Its sizes.
    pub counts: Counts,
    /// The input.
    pub x: *const u8,
    /// Whether its bytes are signed.
    pub signed: bool,
    /// Its zero point; null for 0.
    pub x_zero: *const i32,
    /// VnniMatrix of `[taps * channels of a group, filters of a group]` for each group, one after the
    /// other. For depthwise convolutions, `[taps, channels]` bytes, padded with zeros to a multiple
    /// of four taps.
    pub weights: *const i8,
    /// Columns of a panel; ignored for depthwise convolutions.
    pub width: i64,
    /// Sums of the filters' weights.
    pub sums: *const i32,
    /// Zero points of the filters; null if all are 0.
    pub w_zeros: *const i32,
    /// The results; null if the epilogue writes bytes instead.
    pub out: *mut i32,
    /// How sums are finished; `None` to leave int32 sums.
    pub epilogue: Option<IntegerEpilogue>,
}

/// The state shared by all pieces.
struct Pieces<'a> {
    c: &'a Convolution,
    s: &'a Sizes,
    isa: Isa,
    /// The number of results of all images, and of columns of a group.
    rows: usize,
    columns: usize,
    /// The number of products in a sum.
    k: usize,
    /// Whether rows are read in place.
    in_place: bool,
}

/// Computes a convolution with the given instruction set. Returns a kernel status.
///
/// # Safety
/// The machine has `isa`; the runtime is valid. All elements are valid, including whole panels; the
/// results overlap no operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution) -> i64 {
    let Some(s) = c.counts.sizes() else { return STATUS_BAD_ARGUMENTS };
    let rows = s.pixels() * s.batch;
    if rows == 0 || s.filters == 0 {
        return STATUS_OK;
    }
    let in_input = (0..3).all(|d| s.before[d] == 0 && s.padded[d] <= s.input[d]);
    // SAFETY: guaranteed by the caller.
    let zero = if c.x_zero.is_null() { 0 } else { unsafe { *c.x_zero } };
    let range = if c.signed { -128..=127 } else { 0..=255 };
    // Padding has the value of the zero point, which must then be a byte.
    if !in_input && !range.contains(&zero) {
        return STATUS_BAD_ARGUMENTS;
    }
    if s.is_depthwise() {
        // SAFETY: guaranteed by the caller.
        return unsafe { alone::run(isa, runtime, (c, &s), zero) };
    }
    let one = s.kernel == [1; 3] && s.stride == [1; 3];
    let in_place = one && in_input && s.input == s.output;
    let k = s.kernel.iter().product::<usize>() * s.group_channels();
    let columns = s.group_filters();
    let p = Pieces { c, s: &s, isa, rows, columns, k, in_place };
    // SAFETY: guaranteed by the caller.
    unsafe { p.share(runtime, zero as u8) }
}

impl Pieces<'_> {
    /// The product of a group.
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
            a_zeros_step: 0,
            b: c.weights.wrapping_add(group * quads * c.width as usize),
            width: c.width,
            sums: c.sums.wrapping_add(first),
            b_zeros: if c.w_zeros.is_null() { c.w_zeros } else { c.w_zeros.wrapping_add(first) },
            c: if c.out.is_null() { null_mut() } else { c.out.wrapping_add(first) },
            c_row: self.s.filters as i64,
            epilogue: c.epilogue.map(|epilogue| epilogue.shifted(first)),
        }
    }

    /// Computes all of it, on the team.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn share(&self, runtime: &KernelRuntime, zero: u8) -> i64 {
        if self.c.width <= 0 {
            return STATUS_BAD_ARGUMENTS;
        }
        let whole = self.product(0);
        if self.in_place && self.s.groups == 1 {
            // SAFETY: guaranteed by the caller.
            return unsafe { super::run(self.isa, runtime, &whole) };
        }
        let Some(work) = Work::of(self.isa, &whole) else { return STATUS_BAD_ARGUMENTS };
        let panels = self.s.groups * self.columns.div_ceil(work.width);
        let products = self.rows.saturating_mul(self.s.filters);
        let units = products.saturating_mul(self.k.div_ceil(work.speed())) / unit_work();
        let (across, down) = piece_grid(self.rows, panels, units);
        let piece = |index: usize| {
            let (unit, at) = (crate::product::rows::TILE_ROWS, (index / down, index % down));
            let (rows, panels) =
                (even_part(self.rows, unit, at.0, across), even_part(panels, 1, at.1, down));
            // SAFETY: guaranteed by the caller; pieces write disjoint results.
            unsafe { self.piece(&work, rows, panels, zero) }
        };
        let pieces = across * down;
        // SAFETY: guaranteed by the caller; the kernels do not unwind.
        unsafe { parallel_for(runtime, pieces, units / pieces, &piece) }
    }

    /// Computes some rows of some panels, which are numbered through all groups.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn piece(
        &self,
        work: &Work<'_>,
        rows: Range<usize>,
        panels: Range<usize>,
        zero: u8,
    ) -> i64 {
        let each = self.columns.div_ceil(work.width);
        for group in panels.start / each..panels.end.div_ceil(each) {
            let first = group * each;
            let own = panels.start.max(first) - first..panels.end.min(first + each) - first;
            let g = self.product(group);
            // SAFETY: guaranteed by the caller.
            let status = unsafe {
                if self.in_place {
                    Work { g: &g, ..*work }.block(rows.clone(), own)
                } else {
                    self.copied(&Work { g: &g, ..*work }, (group, zero), rows.clone(), own)
                }
            };
            if status != STATUS_OK {
                return status;
            }
        }
        STATUS_OK
    }

    /// Computes some rows of some panels of a group from copies of A.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn copied(
        &self,
        work: &Work<'_>,
        (group, zero): (usize, u8),
        rows: Range<usize>,
        panels: Range<usize>,
    ) -> i64 {
        let (apart, most) = copies(self.k);
        let most = most.min(rows.len());
        let patches = Patches::new(self.c.x, self.s, group, zero);
        let each = |memory: *mut u8| {
            for start in (rows.start..rows.end).step_by(most) {
                let block = start..rows.end.min(start + most);
                let a = memory.wrapping_sub(start * apart).cast_const();
                let g = QuantizedGemm { a, a_row: apart as i64, ..*work.g };
                let near = Work { g: &g, copied: true, ..*work };
                // SAFETY: the memory has room for the block; guaranteed by the caller.
                let status = unsafe {
                    patches.copy(self.isa, block.clone(), (memory, apart));
                    near.block(block, panels.clone())
                };
                if status != STATUS_OK {
                    return status;
                }
            }
            STATUS_OK
        };
        ROWS.with(|memory| memory.with(most.saturating_mul(apart), each))
    }
}
