//! The entry point of the declared kernel `resize`, and the code that nearest-neighbour resizing
//! and interpolation share.
//!
//! Method: an image row is resized along its columns once, and kept while the following rows of
//! results depend on it. Without weights, results are copies of elements, 16 bytes at a time, and
//! equal rows of results are copied as a whole (`nearest_neighbor`). With weights, image rows are
//! resized in float32, and a row of results is a weighted sum of resized rows
//! (`weighted_interpolation`).

mod nearest_neighbor;
mod weighted_interpolation;

use pliant_exec::abi::{KernelRuntime, STATUS_OK};
use pliant_kernel_api::kernels::resize::KERNEL;
use pliant_kernel_api::{Call, Kernel, Sizes};
use pliant_tensor::DType;

use crate::algorithm_selection::resize::{piece, unit};
use crate::kernel_entry_points::Implementation;
use crate::matmul::work_partition::parallel_for;

/// The implementation of the kernel `resize`.
pub struct Resize;

impl Implementation for Resize {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let dtype = call.operand("x").map_or(DType::Float32, |x| x.dtype);
        let is_weighted =
            ["row_weights", "column_weights"].iter().any(|name| call.operand(name).is_some());
        let images = Images::of(call, sizes);
        if images.results() == 0 {
            return STATUS_OK;
        }
        // SAFETY: guaranteed by the caller; the call was checked, so that the elements have these sizes and types.
        unsafe {
            match (is_weighted, dtype) {
                (true, _) => weighted_interpolation::run(runtime, &images, dtype),
                (false, _) => match dtype.size() {
                    1 => nearest_neighbor::run::<u8>(runtime, &images),
                    2 => nearest_neighbor::run::<u16>(runtime, &images),
                    4 => nearest_neighbor::run::<u32>(runtime, &images),
                    _ => nearest_neighbor::run::<u64>(runtime, &images),
                },
            }
        }
    }
}

/// One axis of a resize: the sizes of the images and of the results along the axis, and the
/// neighbors of each result position. The neighbors are the image positions from which the result
/// is computed.
#[derive(Clone, Copy)]
struct Axis {
    /// The size of the images along the axis.
    from: usize,
    /// The size of the results along the axis.
    to: usize,
    /// The number of neighbors (image positions) from which each result is computed.
    taps: usize,
    /// The positions `[taps, to]` of the neighbors, which may be outside of the image.
    positions: *const i64,
    /// The weights `[taps, to]` of the neighbors; null if results are copies.
    weights: *const f32,
}

impl Axis {
    /// Returns the image position of the neighbor with index `tap` of the result position `result`,
    /// clamped to the image. The neighbors of a result are the image positions from which it is
    /// computed.
    ///
    /// # Safety
    /// The positions are valid, and the axis of the image is not empty.
    #[inline(always)]
    unsafe fn position(&self, tap: usize, result: usize) -> usize {
        // SAFETY: guaranteed by the caller.
        let position = unsafe { *self.positions.add(tap * self.to + result) };
        position.clamp(0, self.from as i64 - 1) as usize
    }
}

/// Maximum number of results that are computed at once, as a vector or block.
const MAX_LANES: usize = 16;

/// The range of an image row from which several adjacent results read one input each: the neighbor
/// with the same index (`tap`). The neighbors of a result are the image elements from which it is
/// computed.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Window {
    /// The index, in the image row, of the first element of the window.
    first: usize,
    /// For each of the adjacent results, the offset of its input from the first element of the window, in elements.
    offsets: [u32; MAX_LANES],
    /// Whether the window (range of an image row) fits in one vector.
    fits_vector: bool,
}

impl Axis {
    /// Returns the window (range of an image row) that contains the neighbor with index `tap` of
    /// each of the results `result..result + lanes`. Results after the end of the row of results
    /// repeat the last result. Near the end of the image row, the window starts earlier than
    /// necessary, so that loading a whole vector stays inside the row.
    ///
    /// # Safety
    /// The conditions of [`Self::position`] hold; the results are not empty.
    unsafe fn window(&self, tap: usize, result: usize, lanes: usize) -> Window {
        let mut positions = [0; MAX_LANES];
        for (lane, position) in positions[..lanes].iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *position = unsafe { self.position(tap, (result + lane).min(self.to - 1)) };
        }
        let min_position = positions[..lanes].iter().copied().min().unwrap_or(0);
        let first = min_position.min(self.from.saturating_sub(lanes));
        // Rows have at most 2^30 columns.
        let offsets = positions.map(|position| position.saturating_sub(first) as u32);
        let fits_vector = offsets[..lanes].iter().all(|&offset| (offset as usize) < lanes);
        Window { first, offsets, fits_vector }
    }
}

/// The operands and sizes of a checked resize call.
struct Images {
    x: *const u8,
    out: *mut u8,
    count: usize,
    rows: Axis,
    columns: Axis,
    channels: usize,
}

// SAFETY: pieces write different rows of results, and only read the other operands.
unsafe impl Sync for Images {}

impl Images {
    fn of(call: &Call, sizes: &Sizes) -> Images {
        let size = |name: &str| sizes.get(name) as usize;
        let data = |name: &str| call.operand(name).map_or(std::ptr::null_mut(), |view| view.data);
        let axis = |from, to, taps, positions, weights| Axis {
            from: size(from),
            to: size(to),
            taps: size(taps),
            positions: data(positions).cast_const().cast(),
            weights: data(weights).cast_const().cast(),
        };
        Images {
            x: data("x"),
            out: data("out"),
            count: size("images"),
            rows: axis("in_rows", "out_rows", "row_taps", "row_positions", "row_weights"),
            columns: axis(
                "in_columns",
                "out_columns",
                "column_taps",
                "column_positions",
                "column_weights",
            ),
            channels: size("channels"),
        }
    }

    fn results(&self) -> usize {
        self.count * self.rows.to * self.columns.to * self.channels
    }

    /// The number of elements of an image row, and the number of elements of a row of results.
    fn row_lengths(&self) -> (usize, usize) {
        (self.columns.from * self.channels, self.columns.to * self.channels)
    }

    /// The address of row `row` of the image with index `image`.
    ///
    /// # Safety
    /// The row exists, and elements have the type `T`.
    unsafe fn row<T>(&self, image: usize, row: usize) -> *const T {
        let index = image * self.rows.from + row;
        // SAFETY: guaranteed by the caller.
        unsafe { self.x.cast::<T>().add(index * self.row_lengths().0) }
    }

    /// The address of row `row` of the results. Rows of all images are numbered consecutively.
    ///
    /// # Safety
    /// The conditions of [`Self::row`] hold.
    unsafe fn result<T>(&self, row: usize) -> *mut T {
        // SAFETY: guaranteed by the caller.
        unsafe { self.out.cast::<T>().add(row * self.row_lengths().1) }
    }

    /// Divides the rows of results into ranges and calls `f` for each range, on the worker team.
    /// Rows of all images are numbered consecutively. `cost` is the time to compute an element,
    /// relative to the time to copy an element.
    ///
    /// # Safety
    /// The runtime is valid, and `f` does not unwind.
    unsafe fn for_each_piece(
        &self,
        runtime: &KernelRuntime,
        cost: usize,
        f: impl Fn(std::ops::Range<usize>) -> i64,
    ) -> i64 {
        let (rows, row_cost) =
            (self.count * self.rows.to, self.row_lengths().1.saturating_mul(cost));
        let rows_per_piece = (piece() / row_cost.max(1)).clamp(1, rows);
        let run = |index: usize| f(index * rows_per_piece..rows.min((index + 1) * rows_per_piece));
        let units = (rows_per_piece.saturating_mul(row_cost) / unit()).max(1);
        // SAFETY: guaranteed by the caller.
        unsafe { parallel_for(runtime, rows.div_ceil(rows_per_piece), units, &run) }
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use pliant_kernel_api::View;

    use super::*;

    /// A test case, which compares the kernel with its reference.
    struct Case {
        count: usize,
        channels: usize,
        rows: (usize, usize, usize),
        columns: (usize, usize, usize),
        is_weighted: bool,
    }

    /// Returns test positions and weights for an axis. Some positions are outside of the image.
    fn axis((from, to, taps): (usize, usize, usize)) -> (Vec<i64>, Vec<f32>) {
        let position = |k: usize| ((k % to) * from / to) as i64 + (k / to) as i64 - 1;
        let weight = |k: usize| 0.25 + (k * 7 % 5) as f32 / 8.0;
        ((0..taps * to).map(position).collect(), (0..taps * to).map(weight).collect())
    }

    impl Case {
        fn check<T: Copy>(
            &self,
            dtype: DType,
            element: impl Fn(usize) -> T,
            value: impl Fn(T) -> f64,
        ) {
            let (h, w, c) = (self.rows, self.columns, self.channels);
            let x: Vec<T> = (0..self.count * h.0 * w.0 * c).map(element).collect();
            let results = self.count * h.1 * w.1 * c;
            let mut out = vec![x[0]; results];
            let (rows, columns) = (axis(h), axis(w));
            let view = |data: *const u8, dtype, shape: &[usize]| {
                let shape: Vec<i64> = shape.iter().map(|&n| n as i64).collect();
                Some(View::new(data.cast_mut(), dtype, &shape, None).expect("few dims"))
            };
            let mut call = Call::new(&KERNEL);
            call.set_operand(0, view(x.as_ptr().cast(), dtype, &[self.count, h.0, w.0, c]));
            call.set_operand(1, view(rows.0.as_ptr().cast(), DType::Int64, &[h.2, h.1]));
            call.set_operand(3, view(columns.0.as_ptr().cast(), DType::Int64, &[w.2, w.1]));
            if self.is_weighted {
                call.set_operand(2, view(rows.1.as_ptr().cast(), DType::Float32, &[h.2, h.1]));
                call.set_operand(4, view(columns.1.as_ptr().cast(), DType::Float32, &[w.2, w.1]));
            }
            call.set_operand(5, view(out.as_mut_ptr().cast(), dtype, &[self.count, h.1, w.1, c]));
            let sizes = call.check().expect("valid");
            // SAFETY: the views lie in their vectors.
            let status = unsafe { Resize::run(&KernelRuntime::serial(), &call, &sizes) };
            assert_eq!(status, STATUS_OK);
            let inside = |p: i64, n: usize| p.clamp(0, n as i64 - 1) as usize;
            for (k, &got) in out.iter().enumerate() {
                let (channel, j, i) = (k % c, k / c % w.1, k / c / w.1 % h.1);
                let image = k / c / w.1 / h.1;
                let mut want = 0.0;
                for (s, t) in (0..h.2).flat_map(|s| (0..w.2).map(move |t| (s, t))) {
                    let y = inside(rows.0[s * h.1 + i], h.0);
                    let z = inside(columns.0[t * w.1 + j], w.0);
                    let weight = match self.is_weighted {
                        true => f64::from(rows.1[s * h.1 + i]) * f64::from(columns.1[t * w.1 + j]),
                        false => 1.0,
                    };
                    want += weight * value(x[((image * h.0 + y) * w.0 + z) * c + channel]);
                }
                let (got, bound) = (value(got), if self.is_weighted { 2e-3 } else { 0.0 });
                assert!(
                    (got - want).abs() <= bound * want.abs().max(1.0),
                    "{k}: {got}, not {want}"
                );
            }
        }
    }

    const SIZES: [((usize, usize), (usize, usize)); 6] = [
        ((1, 3), (1, 5)),
        ((5, 10), (7, 14)),
        ((9, 18), (40, 80)),
        ((9, 4), (50, 23)),
        ((6, 7), (33, 61)),
        ((3, 3), (130, 9)),
    ];

    #[test]
    fn nearest_neighbours_are_copied() {
        for ((h, oh), (w, ow)) in SIZES {
            for channels in [1, 3, 16] {
                let case = Case {
                    count: 3,
                    channels,
                    rows: (h, oh, 1),
                    columns: (w, ow, 1),
                    is_weighted: false,
                };
                case.check(DType::UInt8, |k| (k * 7 % 251) as u8, f64::from);
                case.check(DType::Int16, |k| (k * 7 % 9973) as i16, f64::from);
                case.check(DType::Float32, |k| k as f32, f64::from);
                case.check(DType::Float64, |k| k as f64, f64::from);
            }
        }
    }

    #[test]
    fn interpolation_adds_weighted_neighbors() {
        for ((h, oh), (w, ow)) in SIZES {
            for (channels, taps) in [(1, 2), (1, 4), (3, 2), (40, 2), (1, 1)] {
                let case = Case {
                    count: 2,
                    channels,
                    rows: (h, oh, taps),
                    columns: (w, ow, taps),
                    is_weighted: true,
                };
                case.check(DType::Float32, |k| (k % 101) as f32, f64::from);
                case.check(DType::Float16, |k| f16::from_f32((k % 11) as f32), |v| v.to_f64());
            }
        }
    }
}
