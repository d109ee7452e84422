//! Resizing by interpolation: each result is the weighted sum of its neighbors (the image elements
//! from which it is computed).
//!
//! Adjacent results are computed as a vector. For each neighbor index, this neighbor of each of the
//! results is read. If these inputs are within one vector of the image row, they are loaded and
//! permuted; this is the case unless images become smaller. Otherwise, they are gathered. The
//! permutations and offsets are computed once for all rows. Resized rows are kept while the
//! following rows of results depend on them.

use std::ops::Range;
use std::ptr::null;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_machine::isa::{Isa, isa};
use pliant_tensor::DType;

use super::{Axis, Images, Window};
use crate::scratch_memory::Scratch;
use crate::simd::lane_permutation::Permute;
use crate::simd::{for_isa, load};
use crate::vector_math::half_conversions::{
    NarrowFn, WidenFn, narrow_bf16, select_f16_to_f32, select_f32_to_f16, widen_bf16,
};

thread_local! {
    static WINDOWS: Scratch = const { Scratch::new() };
    static ROWS: Scratch = const { Scratch::new() };
}

/// The arguments of [`resize_row`], which resizes one row of an image.
struct RowResize<'a> {
    axis: &'a Axis,
    channels: usize,
    /// The windows for images with one channel: for each neighbor index and each vector of results,
    /// the range of an image row that contains this neighbor of each result.
    windows: &'a [Window],
    from: *const f32,
    to: *mut f32,
}

/// The arguments of [`add_rows`], which computes a weighted sum of rows.
struct WeightedSum<'a> {
    /// The addresses of the rows, and their weights.
    rows: &'a [(*const f32, f32)],
    to: *mut f32,
    len: usize,
}

/// The functions that resize and add rows, compiled for one instruction set.
struct Functions {
    resize_row: unsafe fn(&RowResize<'_>),
    add_rows: unsafe fn(&WeightedSum<'_>),
    /// The number of elements of a vector.
    lanes: usize,
}

impl Functions {
    fn new(isa: Isa) -> Functions {
        let (resize_row, lanes) = for_isa!(isa, resize_row(row: &RowResize<'_>));
        Functions { resize_row, lanes, add_rows: for_isa!(isa, add_rows(sum: &WeightedSum<'_>)).0 }
    }
}

/// The functions that convert rows from the data type of the images to float32 and back.
#[derive(Clone, Copy)]
struct Conversion {
    widen: WidenFn,
    narrow: NarrowFn,
}

impl Conversion {
    fn of(dtype: DType, isa: Isa) -> Option<Conversion> {
        match dtype {
            DType::Float16 => {
                Some(Conversion { widen: select_f16_to_f32(isa), narrow: select_f32_to_f16(isa) })
            }
            DType::BFloat16 => Some(Conversion { widen: widen_bf16, narrow: narrow_bf16 }),
            _ => None,
        }
    }
}

/// Computes all results of a resize by interpolation. Returns a kernel status: 0 on success.
///
/// # Safety
/// The operands are valid, and images and results have elements of type `dtype`. The results are
/// not empty.
pub unsafe fn run(runtime: &KernelRuntime, images: &Images, dtype: DType) -> i64 {
    let (isa, columns) = (isa(), &images.columns);
    let functions = Functions::new(isa);
    let conversion = Conversion::of(dtype, isa);
    let lanes = functions.lanes;
    let blocks = if images.channels == 1 { columns.to.div_ceil(lanes) } else { 0 };
    WINDOWS.with(|memory| {
        memory.with(blocks * columns.taps, |memory: *mut Window| {
            for b in 0..blocks * columns.taps {
                // SAFETY: the memory has room for the windows; guaranteed by the caller for the positions.
                unsafe {
                    memory.add(b).write(columns.window(b / blocks, b % blocks * lanes, lanes))
                };
            }
            // SAFETY: the windows have been written.
            let windows =
                unsafe { std::slice::from_raw_parts(memory.cast_const(), blocks * columns.taps) };
            let piece = |rows: Range<usize>| {
                let (from, to) = images.row_lengths();
                ROWS.with(|memory| {
                    let len = images.rows.taps * from.max(to) + from + to;
                    memory.with(len, |memory: *mut f32| {
                        let piece = Piece {
                            images,
                            functions: &functions,
                            conversion,
                            windows,
                            sums_first: images.rows.from > images.rows.to,
                            terms: memory,
                            image_row: memory.wrapping_add(len - from - to),
                            result_row: memory.wrapping_add(len - to),
                        };
                        // SAFETY: guaranteed by the caller; pieces write different rows.
                        unsafe { piece.run(runtime, rows) };
                        STATUS_OK
                    })
                })
            };
            let taps = images.rows.taps + columns.taps;
            // SAFETY: the runtime is valid, and nothing unwinds.
            unsafe { images.for_each_piece(runtime, taps, piece) }
        })
    })
}

/// A range of rows of results, and the scratch memory for computing these rows.
struct Piece<'a> {
    images: &'a Images,
    functions: &'a Functions,
    conversion: Option<Conversion>,
    windows: &'a [Window],
    /// Whether rows of the image are first added and their sum is then resized, which is faster if
    /// the results have fewer rows than the image. Otherwise, rows are first resized and then
    /// added.
    sums_first: bool,
    /// Scratch memory for the rows whose weighted sum is a row of results: one row for each of the
    /// image rows from which a row of results is computed.
    terms: *mut f32,
    /// Scratch memory for a row of an image in float32.
    image_row: *mut f32,
    /// Scratch memory for a row of results in float32.
    result_row: *mut f32,
}

/// The index of an image, and the index of a row in this image.
type Source = (usize, usize);

/// Maximum number of rows whose weighted sum is a row of results.
const MAX_TAPS: usize = pliant_kernel_api::kernels::resize::MAX_TAPS as usize;

impl Piece<'_> {
    /// Computes a range of rows of results. Rows of all images are numbered consecutively.
    ///
    /// # Safety
    /// The operands and the memory are valid.
    unsafe fn run(&self, runtime: &KernelRuntime, rows: Range<usize>) {
        let axis = &self.images.rows;
        let taps = axis.taps;
        let mut term_sources: [Option<Source>; MAX_TAPS] = [None; MAX_TAPS];
        for row in rows {
            let (image, result) = (row / axis.to, row % axis.to);
            let mut sources = [(image, 0); MAX_TAPS];
            for (tap, source) in sources[..taps].iter_mut().enumerate() {
                // SAFETY: guaranteed by the caller.
                source.1 = unsafe { axis.position(tap, result) };
            }
            let sources = &sources[..taps];
            let mut terms = [(null(), 0f32); MAX_TAPS];
            for (tap, term) in terms[..taps].iter_mut().enumerate() {
                // SAFETY: guaranteed by the caller.
                *term = unsafe {
                    (
                        self.term(runtime, &mut term_sources[..taps], sources, tap),
                        weight(axis, tap, result),
                    )
                };
            }
            // SAFETY: guaranteed by the caller.
            unsafe { self.write_row(runtime, row, &terms[..taps]) };
        }
    }

    /// Returns one of the rows whose weighted sum is a row of results. It belongs to the image row
    /// `sources[tap]`: the image row itself if rows are added before resizing, otherwise the
    /// resized image row. `term_sources` lists the image rows whose terms are in scratch memory
    /// already.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold.
    unsafe fn term(
        &self,
        runtime: &KernelRuntime,
        term_sources: &mut [Option<Source>],
        sources: &[Source],
        tap: usize,
    ) -> *const f32 {
        let (source, (from_len, to_len)) = (sources[tap], self.images.row_lengths());
        if self.sums_first && self.conversion.is_none() {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.images.row(source.0, source.1) };
        }
        let existing = term_sources.iter().position(|k| *k == Some(source));
        // There is a free slot, because there are as many slots as neighbors.
        let is_free = |k: &Option<Source>| k.is_none_or(|k| !sources.contains(&k));
        let slot = existing.or_else(|| term_sources.iter().position(is_free)).unwrap_or(tap);
        let term = self.terms.wrapping_add(slot * from_len.max(to_len));
        if existing.is_none() {
            term_sources[slot] = Some(source);
            // SAFETY: guaranteed by the caller; there is memory for a row of an image or of results.
            unsafe {
                if self.sums_first {
                    self.read_row(runtime, source, term);
                } else {
                    let row = self.read_row(runtime, source, self.image_row);
                    self.resize_row(row, term);
                }
            }
        }
        term
    }

    /// Returns a row of an image. If the row is not float32, converts it to float32 in `memory`.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold; `memory` has room for the row.
    unsafe fn read_row(
        &self,
        runtime: &KernelRuntime,
        (image, row): Source,
        memory: *mut f32,
    ) -> *const f32 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let Some(conversion) = self.conversion else { return self.images.row(image, row) };
            let len = self.images.row_lengths().0 as i64;
            (conversion.widen)(runtime, memory, self.images.row(image, row), len);
            memory
        }
    }

    /// Resizes the image row `from` along its columns, and writes the result to `to`.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold; `to` has room for a row of results.
    unsafe fn resize_row(&self, from: *const f32, to: *mut f32) {
        let (axis, channels) = (&self.images.columns, self.images.channels);
        let row = RowResize { axis, channels, windows: self.windows, from, to };
        // SAFETY: guaranteed by the caller.
        unsafe { (self.functions.resize_row)(&row) }
    }

    /// Computes a row of results as the weighted sum of `rows`, and writes it in the data type of
    /// the results.
    ///
    /// # Safety
    /// The conditions of [`Self::run`] hold.
    unsafe fn write_row(&self, runtime: &KernelRuntime, row: usize, rows: &[(*const f32, f32)]) {
        let (from_len, to_len) = self.images.row_lengths();
        // SAFETY: guaranteed by the caller.
        unsafe {
            let to = match self.conversion {
                None => self.images.result(row),
                Some(_) => self.result_row,
            };
            if self.sums_first {
                (self.functions.add_rows)(&WeightedSum { rows, to: self.image_row, len: from_len });
                self.resize_row(self.image_row, to);
            } else {
                (self.functions.add_rows)(&WeightedSum { rows, to, len: to_len });
            }
            if let Some(conversion) = self.conversion {
                (conversion.narrow)(runtime, self.images.result(row), to, to_len as i64);
            }
        }
    }
}

/// Computes the weighted sum of rows that `sum` describes.
///
/// # Safety
/// The machine has the instructions of `L`. The rows are valid.
#[inline(always)]
unsafe fn add_rows<L: Permute>(sum: &WeightedSum<'_>) {
    let whole = sum.len / L::N * L::N;
    // SAFETY: guaranteed by the caller; vectors end at most at the end of the row.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            let mut total = L::zero();
            for &(row, weight) in sum.rows {
                total = L::load(row.add(at)).mul_add(L::splat(weight), total);
            }
            total.store(sum.to.add(at));
        }
        for at in whole..sum.len {
            let mut total = 0f32;
            for &(row, weight) in sum.rows {
                total = (*row.add(at)).mul_add(weight, total);
            }
            *sum.to.add(at) = total;
        }
    }
}

/// Resizes an image row along its columns: each result is the weighted sum of its neighbors (the
/// image elements from which it is computed).
///
/// # Safety
/// The machine has the instructions of `L`. The rows, positions and weights are valid.
#[inline(always)]
unsafe fn resize_row<L: Permute>(row: &RowResize<'_>) {
    if row.channels > 1 {
        // SAFETY: guaranteed by the caller.
        return unsafe { resize_pixels::<L>(row) };
    }
    let axis = row.axis;
    let (blocks, whole) = (axis.to.div_ceil(L::N), axis.to / L::N);
    for b in 0..blocks {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if b < whole {
                resize_vector::<L, true>(row, blocks, b);
            } else {
                resize_vector::<L, false>(row, blocks, b);
            }
        }
    }
}

/// Computes a vector of results. If `WHOLE` is not set, the row ends inside this vector.
///
/// # Safety
/// The conditions of [`resize_row`] hold.
#[inline(always)]
unsafe fn resize_vector<L: Permute, const WHOLE: bool>(
    row: &RowResize<'_>,
    blocks: usize,
    b: usize,
) {
    let (axis, first) = (row.axis, b * L::N);
    let count = if WHOLE { L::N } else { axis.to - first };
    // SAFETY: guaranteed by the caller.
    let mut total = unsafe { L::zero() };
    for tap in 0..axis.taps {
        let window = &row.windows[tap * blocks + b];
        // SAFETY: guaranteed by the caller; vectors and offsets lie inside the row.
        unsafe {
            let from = row.from.add(window.first);
            let neighbors = if !window.fits_vector {
                L::gather(from, &window.offsets)
            } else if axis.from < L::N {
                L::load_first(from, axis.from).permute(L::order(&window.offsets))
            } else {
                L::load(from).permute(L::order(&window.offsets))
            };
            total = match axis.weights.is_null() {
                true => neighbors,
                false => {
                    let weights = axis.weights.add(tap * axis.to + first);
                    neighbors.mul_add(load::<L, WHOLE>(weights, count), total)
                }
            };
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let to = row.to.add(first);
        if WHOLE { total.store(to) } else { total.store_first(to, count) }
    }
}

/// Returns the factor of the neighbor with index `tap` in the weighted sum for the result position
/// `result`; 1 if the axis has no weights.
///
/// # Safety
/// The weights are valid.
#[inline(always)]
unsafe fn weight(axis: &Axis, tap: usize, result: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    if axis.weights.is_null() { 1.0 } else { unsafe { *axis.weights.add(tap * axis.to + result) } }
}

/// Resizes a row of an image with several channels along its columns, pixel by pixel, with vectors
/// of channels.
///
/// # Safety
/// The conditions of [`resize_row`] hold.
#[inline(always)]
unsafe fn resize_pixels<L: Permute>(row: &RowResize<'_>) {
    let (axis, channels) = (row.axis, row.channels);
    let whole = channels / L::N * L::N;
    let rest = channels - whole;
    for result in 0..axis.to {
        // SAFETY: guaranteed by the caller; vectors end at most at the last channel.
        unsafe {
            let to = row.to.add(result * channels);
            let neighbor = |tap: usize| row.from.add(axis.position(tap, result) * channels);
            for at in (0..whole).step_by(L::N) {
                let mut total = L::zero();
                for tap in 0..axis.taps {
                    let weight = L::splat(weight(axis, tap, result));
                    total = L::load(neighbor(tap).add(at)).mul_add(weight, total);
                }
                total.store(to.add(at));
            }
            if rest > 0 {
                let mut total = L::zero();
                for tap in 0..axis.taps {
                    let weight = L::splat(weight(axis, tap, result));
                    let x = L::load_first(neighbor(tap).add(whole), rest);
                    total = x.mul_add(weight, total);
                }
                total.store_first(to.add(whole), rest);
            }
        }
    }
}
