//! Convolution of few channels by one to four filters: vectors of adjacent results along an output
//! row.
//!
//! The other implementations use vectors of filters or of channels, which would mostly be padding
//! here. All threads first copy the input to padded planes, one per channel. If the convolution has
//! a stride, the pixels of an image row are reordered by their position modulo the stride (phase),
//! so that the inputs of adjacent results are adjacent. The sums stay in registers over all taps
//! and channels.
//!
//! Method: direct convolution in registers over channels-first images. For measurements, see
//! "Convolution" in `docs/internals/measurements/convolution.md`.

use pliant_exec::abi::{KernelRuntime, STATUS_NO_MEMORY, STATUS_OK};
use pliant_machine::isa::Isa;

use super::Convolution;
use super::output_line::{Line, PART, parts};
use super::shape_and_strides::Sizes;
use crate::algorithm_selection::convolution::{FEW_FILTERS, few_channels_are_faster};
use crate::algorithm_selection::partition::copied_unit;
use crate::matmul::Element;
use crate::matmul::work_partition::{parallel_for, unit_work};
use crate::simd::{Lanes, for_isa};

/// Minimum number of channels for which the copy of the input, to one plane per channel, transposes blocks in registers instead of
/// copying single elements.
const MIN_TRANSPOSED: usize = 8;

/// Maximum number of results that a tile computes, including results past the end of an output row,
/// which are discarded.
const MAX_TILE: usize = 8 * 16;

/// Whether this implementation supports the convolution and is faster than the other
/// implementations of convolution.
pub(super) fn applies(c: &Convolution, s: &Sizes) -> bool {
    s.groups == 1
        && (c.out.channel == 1 || s.filters == 1)
        && few_channels_are_faster(s.filters, s.channels, s.output[2])
}

/// Copies of all input images, with padding: `[batch, channel, z, y, phase, position]`. Position
/// `p` of a padded image row is element `p / stride` of phase `p % stride`.
#[derive(Clone, Copy)]
struct Planes {
    data: *mut f32,
    /// Number of elements of a phase: the pixels of a padded image row with the same position
    /// modulo the stride.
    phase: usize,
    /// Number of elements of a padded image row.
    line: usize,
    /// Number of elements of a padded plane `[y, x]` of a channel.
    plane: usize,
    /// Number of elements of a padded channel.
    channel: usize,
    /// Number of elements of a padded image: all channels.
    image: usize,
}

impl Planes {
    /// Computes the layout of the planes, without their address, and their number of elements;
    /// `None` if the number is too large.
    fn of(s: &Sizes) -> Option<(Planes, usize)> {
        let phase = s.padded[2].div_ceil(s.stride[2]);
        let line = phase.checked_mul(s.stride[2])?;
        let plane = line.checked_mul(s.padded[1])?;
        let channel = plane.checked_mul(s.padded[0])?;
        let image = channel.checked_mul(s.channels)?;
        let elements = image.checked_mul(s.batch)?;
        let data = std::ptr::null_mut();
        Some((Planes { data, phase, line, plane, channel, image }, elements))
    }

    /// Returns the address of image row `y` of plane `z` of image `batch`, for the first channel.
    fn line(&self, batch: usize, z: usize, y: usize) -> *mut f32 {
        self.data.wrapping_add(batch * self.image + z * self.plane + y * self.line)
    }
}

/// The arguments of [`compute_line`]: the position of an output row, and the operands.
struct LineArgs<'a> {
    line: Line<'a>,
    planes: Planes,
    /// The weights, in the order `[z, y, channel, x, filter]`.
    weights: *const f32,
}

/// Computes a convolution. Returns a kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`. All elements of the operands and the results are valid, and the results
/// overlap no operand. [`applies`] holds.
pub(super) unsafe fn run(isa: Isa, runtime: &KernelRuntime, c: &Convolution, s: &Sizes) -> i64 {
    let weight_count = s.kernel.iter().product::<usize>() * s.channels * s.filters;
    let planes = Planes::of(s);
    let size = planes.and_then(|(_, elements)| {
        let all = elements.checked_add(MAX_TILE)?.checked_add(weight_count)?;
        all.checked_mul(size_of::<f32>()).filter(|&bytes| bytes <= isize::MAX as usize)
    });
    let (Some((planes, elements)), Some(size)) = (planes, size) else { return STATUS_NO_MEMORY };
    // SAFETY: the runtime is valid; the block is freed below, on this thread.
    let block = unsafe { (runtime.alloc_workspace)(size as u64) };
    if block.is_null() {
        return STATUS_NO_MEMORY;
    }
    let planes = Planes { data: block.cast(), ..planes };
    let weights = planes.data.wrapping_add(elements + MAX_TILE);
    // SAFETY: the block has room for the planes, the results past the end of the last line, and the weights; guaranteed by the
    // caller.
    let status = unsafe {
        planes.data.add(elements).write_bytes(0, MAX_TILE);
        unpack(c, s, weights);
        match copy_planes(isa, runtime, c, s, &planes) {
            STATUS_OK => compute(isa, runtime, (c, s), planes, weights),
            status => status,
        }
    };
    // SAFETY: as above.
    unsafe { (runtime.free_workspace)(block) };
    status
}

/// Copies the weights from the packed panel to `to`, without the filter positions that read only
/// padding.
unsafe fn unpack(c: &Convolution, s: &Sizes, to: *mut f32) {
    let [depth, height, width] = s.kernel;
    let mut at = 0;
    for z in 0..depth {
        for y in 0..height {
            for channel in 0..s.channels {
                for x in 0..width {
                    let row = s.weight_row([z, y, x]) + channel;
                    for filter in 0..s.filters {
                        // SAFETY: guaranteed by the caller.
                        unsafe {
                            to.add(at).write(*c.weights.add(row * c.width as usize + filter));
                        }
                        at += 1;
                    }
                }
            }
        }
    }
}

/// Copies all input images to planes, one per channel, row by row, in parallel. Returns a kernel
/// status: 0 on success.
///
/// # Safety
/// The machine has `isa`. All elements of the input and of the planes are valid.
unsafe fn copy_planes(
    isa: Isa,
    runtime: &KernelRuntime,
    c: &Convolution,
    s: &Sizes,
    planes: &Planes,
) -> i64 {
    struct SharedPlanes<'a>(&'a Planes);
    // SAFETY: each piece writes other elements of the planes.
    unsafe impl Sync for SharedPlanes<'_> {}
    let shared = SharedPlanes(planes);
    let lines = s.padded[0] * s.padded[1];
    let line = |index: usize| {
        let (SharedPlanes(planes), batch) = (&shared, index / lines);
        let (z, y) = (index % lines / s.padded[1], index % s.padded[1]);
        // SAFETY: guaranteed by the caller; each piece writes another line of each channel.
        unsafe { copy_line(isa, c, s, planes.line(batch, z, y), planes, [batch, z, y]) };
        STATUS_OK
    };
    let micros = s.padded[2] * s.channels / copied_unit();
    // SAFETY: guaranteed by the caller.
    unsafe { parallel_for(runtime, s.batch * lines, micros, &line) }
}

/// Copies one row of the input, for all channels, to the padded planes. `to` is the address of the
/// row of the first channel.
///
/// # Safety
/// The conditions of [`copy_planes`] hold.
unsafe fn copy_line(
    isa: Isa,
    c: &Convolution,
    s: &Sizes,
    to: *mut f32,
    planes: &Planes,
    [batch, z, y]: [usize; 3],
) {
    let input_position =
        |padded: usize, d: usize| padded.checked_sub(s.before[d]).filter(|&i| i < s.input[d]);
    let position = input_position(z, 0).zip(input_position(y, 1));
    let before = s.before[2].min(s.padded[2]);
    let count = s.input[2].min(s.padded[2] - before);
    let (stride, pixel) = (s.stride[2], c.x.pixel[2] as isize);
    for channel in 0..s.channels {
        // SAFETY: guaranteed by the caller.
        unsafe { to.add(channel * planes.channel).write_bytes(0, planes.line) };
    }
    let Some((z, y)) = position else { return };
    let from = c.x.data.wrapping_offset(c.x.offset(batch, [z, y, 0]));
    // SAFETY: guaranteed by the caller; the positions are inside the line and the input.
    unsafe {
        if stride == 1 && c.x.channel == 1 && s.channels >= MIN_TRANSPOSED {
            let to = (to.add(before), planes.channel as isize);
            return f32::kernels(isa).transpose((from, pixel), to, count, s.channels);
        }
        for channel in 0..s.channels {
            let to = to.add(channel * planes.channel);
            let from = from.wrapping_offset(channel as isize * c.x.channel as isize);
            for i in 0..count {
                let at = before + i;
                let at = if stride == 1 { at } else { at % stride * planes.phase + at / stride };
                to.add(at).write(*from.offset(i as isize * pixel));
            }
        }
    }
}

/// Computes all output rows of the convolution from the copied input `planes`, in parallel. Returns a kernel status: 0 on success.
///
/// # Safety
/// The conditions of [`run`] hold; the planes and the weights are complete.
unsafe fn compute(
    isa: Isa,
    runtime: &KernelRuntime,
    (c, s): (&Convolution, &Sizes),
    planes: Planes,
    weights: *const f32,
) -> i64 {
    struct PlanesAndWeights(Planes, *const f32);
    // SAFETY: the pieces only read the planes and the weights.
    unsafe impl Sync for PlanesAndWeights {}
    let shared = PlanesAndWeights(planes, weights);
    let run = for_isa!(isa, compute_line(args: &LineArgs<'_>)).0;
    let piece = |index: usize| {
        let PlanesAndWeights(planes, weights) = &shared;
        let args =
            LineArgs { line: Line::nth_part(c, s, index), planes: *planes, weights: *weights };
        // SAFETY: guaranteed by the caller; each piece writes another part of a line.
        unsafe {
            run(&args);
            args.line.finish(isa);
        }
        STATUS_OK
    };
    let products = s.kernel.iter().product::<usize>() * s.channels * s.filters;
    let piece_work = products.saturating_mul(s.output[2].min(PART));
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, parts(s), piece_work / unit_work(), &piece) }
}

/// Computes an output row of a convolution for all filters.
///
/// # Safety
/// The machine has the instructions of `L`, and the caller has enabled them. All elements are
/// valid.
#[inline(always)]
unsafe fn compute_line<L: Lanes<Elem = f32>>(args: &LineArgs<'_>) {
    const { assert!(FEW_FILTERS == 4, "the arms below") };
    // SAFETY: guaranteed by the caller. Eight or more sums hide the latency of their additions.
    unsafe {
        match args.line.s.filters {
            1 => args.tiles::<L, 1, 8>(),
            2 => args.tiles::<L, 2, 4>(),
            3 => args.tiles::<L, 3, 3>(),
            _ => args.tiles::<L, 4, 2>(),
        }
    }
}

impl LineArgs<'_> {
    /// Computes the results of `F` filters, `V` vectors of adjacent results at a time.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn tiles<L: Lanes<Elem = f32>, const F: usize, const V: usize>(&self) {
        const { assert!(V * L::N <= MAX_TILE) };
        for x in self.line.xs.clone().step_by(V * L::N) {
            let count = (self.line.xs.end - x).min(V * L::N);
            // SAFETY: guaranteed by the caller.
            unsafe {
                if count <= L::N {
                    self.tile::<L, F, 1>(x, count);
                } else {
                    self.tile::<L, F, V>(x, count);
                }
            }
        }
    }

    /// Computes `V` vectors of results, starting at position `x`, for each of `F` filters, and
    /// stores the first `count` results of each filter.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn tile<L: Lanes<Elem = f32>, const F: usize, const V: usize>(
        &self,
        x: usize,
        count: usize,
    ) {
        let (l, s, planes) = (&self.line, self.line.s, &self.planes);
        let first = planes.line(l.batch, l.z * s.stride[0], l.y * s.stride[1]).wrapping_add(x);
        let (whole, rest) = (s.dilation[2] / s.stride[2], s.dilation[2] % s.stride[2]);
        let mut weights = self.weights;
        // SAFETY: guaranteed by the caller. Elements past the end of a line are in the next line or in the tile at the end of
        // the planes.
        unsafe {
            let mut sums = [[L::zero(); V]; F];
            for z in 0..s.kernel[0] {
                for y in 0..s.kernel[1] {
                    let tap = z * s.dilation[0] * planes.plane + y * s.dilation[1] * planes.line;
                    for channel in 0..s.channels {
                        let line = first.wrapping_add(tap + channel * planes.channel);
                        let (mut phase, mut position) = (0, 0);
                        for _ in 0..s.kernel[2] {
                            let from = line.wrapping_add(phase * planes.phase + position);
                            for v in 0..V {
                                let input = L::load(from.add(v * L::N));
                                for f in 0..F {
                                    let weight = L::splat(*weights.add(f));
                                    sums[f][v] = input.mul_add(weight, sums[f][v]);
                                }
                            }
                            weights = weights.add(F);
                            (phase, position) = (phase + rest, position + whole);
                            if phase >= s.stride[2] {
                                (phase, position) = (phase - s.stride[2], position + 1);
                            }
                        }
                    }
                }
            }
            self.store::<L, F, V>(&sums, x, count);
        }
    }

    /// Stores the sums of a register tile as results of an output row, from position `x` on: the first `count` results of each
    /// filter.
    ///
    /// # Safety
    /// The conditions of [`compute_line`] hold.
    #[inline(always)]
    unsafe fn store<L: Lanes<Elem = f32>, const F: usize, const V: usize>(
        &self,
        sums: &[[L; V]; F],
        x: usize,
        count: usize,
    ) {
        let (out, pixel) = (self.line.out(x), self.line.c.out.pixel[2] as isize);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if F == 1 && pixel == 1 {
                for v in 0..V {
                    let stored = count.saturating_sub(v * L::N).min(L::N);
                    let to = out.wrapping_add(v * L::N);
                    if stored == L::N {
                        sums[0][v].store(to);
                    } else {
                        sums[0][v].store_first(to, stored);
                    }
                }
                return;
            }
            let mut values = [0f32; MAX_TILE];
            for f in 0..F {
                for v in 0..V {
                    sums[f][v].store(values.as_mut_ptr().add(v * L::N));
                }
                for (i, value) in values[..count].iter().enumerate() {
                    out.offset(i as isize * pixel).add(f).write(*value);
                }
            }
        }
    }
}
