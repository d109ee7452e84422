//! Convolution of images with few channels, such as the first of a network: the sums of a tile of results stay in registers over
//! all taps.
//!
//! The runs of adjacent inputs under a row of the filter are short, so that loading and storing sums between them, as the tiles
//! of `implicit` do, takes longer than multiplying. Inputs are read in place: taps outside of the input are skipped.
//!
//! Recipe: results by filters in registers as for products, over the taps of a direct convolution. Measured: "Convolution"
//! in `docs/performance.md`.

use std::ops::Range;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_machine::isa::Isa;

use super::Convolution;
use super::line::{Line, PART, parts};
use super::shape::Sizes;
use crate::lanes::{Lanes, for_isa};
use crate::product::share::{share, unit_work};
use crate::rules::convolution::few_channels_pay;

/// Results of a tile along a line. Each has one or two vectors of filters.
const PIXELS: usize = 12;
/// Results of a tile where fewer are left.
const FEW_PIXELS: usize = 4;

/// Whether this kernel computes a convolution.
pub(super) fn applies(c: &Convolution, s: &Sizes) -> bool {
    let last = (c.x.channel == 1 || s.channels == 1) && c.out.channel == 1;
    last && s.groups == 1 && few_channels_pay(s.channels, s.kernel)
}

/// The convolution; input and results have channels last.
///
/// # Safety
/// The machine has `isa`. All elements are valid; the results overlap no operand. [`applies`] holds.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let run = for_isa!(isa, whole_line(l: &Line<'_>)).0;
    let piece = |index: usize| {
        let line = Line::part_of(c, s, index);
        // SAFETY: guaranteed by the caller; each line is one piece's.
        unsafe {
            run(&line);
            line.finish(isa);
        }
        STATUS_OK
    };
    let depth = s.kernel.iter().product::<usize>() * s.channels;
    let each = depth.saturating_mul(s.output[2].min(PART)).saturating_mul(s.filters);
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { share(runtime, parts(s), each / unit_work(), &piece) }
}

/// Some results along a line that have the same taps.
struct Results<'a> {
    line: &'a Line<'a>,
    taps: [Range<usize>; 3],
    /// The address that tap 0 of the first result reads, channel 0. It may be outside of the image.
    input: *const f32,
    out: *mut f32,
}

/// # Safety
/// The machine has the instructions, and the caller has enabled them. All elements are valid.
#[inline(always)]
unsafe fn whole_line<L: Lanes<Elem = f32>>(l: &Line<'_>) {
    let (s, end) = (l.s, l.along.end);
    let mut x = l.along.start;
    while x < end {
        let taps = s.taps(2, x);
        let alike = |count: usize| x + count <= end && s.taps(2, x + count - 1) == taps;
        let results = Results {
            line: l,
            taps: [s.taps(0, l.z), s.taps(1, l.y), taps.clone()],
            input: l.first_input(x),
            out: l.out(x),
        };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if alike(PIXELS) {
                results.filters::<L, PIXELS>();
                x += PIXELS;
            } else if alike(FEW_PIXELS) {
                results.filters::<L, FEW_PIXELS>();
                x += FEW_PIXELS;
            } else {
                results.filters::<L, 1>();
                x += 1;
            }
        }
    }
}

impl Results<'_> {
    /// All filters of `P` results.
    ///
    /// # Safety
    /// As for [`whole_line`].
    #[inline(always)]
    unsafe fn filters<L: Lanes<Elem = f32>, const P: usize>(&self) {
        let (filters, width) = (self.line.s.filters, self.line.c.width as usize);
        let mut first = 0;
        while first < filters {
            // SAFETY: guaranteed by the caller. The sums of 12 results by two vectors need 24 registers.
            unsafe {
                let of_panel = width - first % width;
                if L::N == 16 && of_panel.min(filters - first) > L::N {
                    self.tile::<L, P, 2>(first);
                    first += 2 * L::N;
                } else {
                    self.tile::<L, P, 1>(first);
                    first += L::N;
                }
            }
        }
    }

    /// `P` results of `V` vectors of filters from `first` on.
    ///
    /// # Safety
    /// As for [`whole_line`].
    #[inline(always)]
    unsafe fn tile<L: Lanes<Elem = f32>, const P: usize, const V: usize>(&self, first: usize) {
        let (l, s) = (self.line, self.line.s);
        let width = l.c.width as usize;
        let (panel, column) = (first / width, first % width);
        let panel_rows = s.taps.iter().product::<usize>() * s.channels;
        let panel = l.c.weights.wrapping_add(panel * panel_rows * width + column);
        let result = l.next_result();
        let [planes, rows, columns] = &self.taps;
        // Taps of a row with adjacent inputs are one run.
        let (runs, length) = match l.next_tap(2) == s.channels as isize {
            true => (usize::from(!columns.is_empty()), columns.len() * s.channels),
            false => (columns.len(), s.channels),
        };
        // SAFETY: guaranteed by the caller; the taps are inside the input, and panels have whole vectors.
        unsafe {
            let mut sums = [[L::zero(); V]; P];
            for z in planes.clone() {
                for y in rows.clone() {
                    for run in 0..runs {
                        let tap = [z, y, columns.start + run];
                        let input = self.input.wrapping_offset(l.to_tap(tap));
                        let mut weights = panel.wrapping_add(s.weight_row(tap) * width);
                        for k in 0..length {
                            let mut w = [L::zero(); V];
                            for v in 0..V {
                                w[v] = L::load(weights.add(v * L::N));
                            }
                            for p in 0..P {
                                let x = L::splat(*input.offset(p as isize * result).add(k));
                                for v in 0..V {
                                    sums[p][v] = x.mul_add(w[v], sums[p][v]);
                                }
                            }
                            weights = weights.wrapping_add(width);
                        }
                    }
                }
            }
            for p in 0..P {
                let out = self.out.wrapping_offset(p as isize * l.c.out.pixel[2] as isize);
                for v in 0..V {
                    let (to, left) = (out.wrapping_add(first + v * L::N), s.filters - first);
                    let left = left.saturating_sub(v * L::N);
                    if left >= L::N {
                        sums[p][v].store(to);
                    } else if left > 0 {
                        sums[p][v].store_first(to, left);
                    }
                }
            }
        }
    }
}
