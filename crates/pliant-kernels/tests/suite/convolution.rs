//! Compares the convolution kernel with the definition of convolution, for every instruction set and many layouts and
//! shapes, with operands between guard pages.

use std::ffi::c_void;

use pliant_exec::abi::{
    KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_CANCELLED, STATUS_NO_MEMORY, STATUS_OK,
};
use pliant_kernels::convolution::{Convolution, Image, run};
use pliant_kernels::epilogue::{Activation, Epilogue};
use pliant_machine::isa::{Isa, available};
use pliant_pool::Team;
use pliant_tensor::{Tensor, Winograd, may_share_panels, pack_panels};

use crate::guard_pages::Guarded;
use crate::packed_matmul::fill;

/// The sizes and features of a convolution test case.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    channels: usize,
    filters: usize,
    groups: usize,
    input: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    before: [usize; 3],
    after: [usize; 3],
    /// Whether channels come first instead of last: one value for the input, and one for the results.
    first: [bool; 2],
    epilogue: bool,
    winograd: Option<Winograd>,
}

const PLAIN: Case = Case {
    batch: 2,
    channels: 5,
    filters: 7,
    groups: 1,
    input: [1, 6, 9],
    kernel: [1, 3, 3],
    stride: [1; 3],
    dilation: [1; 3],
    before: [0, 1, 1],
    after: [0, 1, 1],
    first: [false; 2],
    epilogue: false,
    winograd: None,
};

/// Applies the Winograd filter transform to filters, and packs the results. Returns the panels and their width.
/// `weight` returns an element of the weight matrix, by its row and its filter.
fn transformed_panels(
    c: &Case,
    algorithm: Winograd,
    weight: impl Fn(usize, usize) -> f32,
) -> (Vec<f32>, usize) {
    let elements = algorithm.filter_elements();
    let (channels, filters) = (c.channels, c.filters);
    let mut matrix = vec![0f32; elements * channels * filters];
    for (channel, filter) in (0..channels).flat_map(|q| (0..filters).map(move |f| (q, f))) {
        let kernel = std::array::from_fn(|tap| f64::from(weight(filter, tap * channels + channel)));
        for (element, value) in algorithm.transform_filter(&kernel).into_iter().enumerate() {
            matrix[(element * channels + channel) * filters + filter] = value as f32;
        }
    }
    let shape = [(elements * channels) as i64, filters as i64];
    let panels = pack_panels(&Tensor::from_slice(&shape, &matrix).unwrap(), false).unwrap();
    (panels.to_vec::<f32>().unwrap(), panels.shape()[2] as usize)
}

/// Describes images without gaps, with channels first or last.
fn image<P>(data: P, channels: usize, size: [usize; 3], first: bool) -> Image<P> {
    let [depth, height, width] = size.map(|d| d as i64);
    let x = if first { 1 } else { channels as i64 };
    let batch = depth * height * width * channels as i64;
    let channel = if first { depth * height * width } else { 1 };
    Image { data, batch, channel, pixel: [height * width * x, width * x, x] }
}

struct Operands {
    case: Case,
    output: [usize; 3],
    x: Guarded<f32>,
    /// The weights `[filters, taps, channels / groups]`.
    weights: Vec<f32>,
    /// The weights in the layout of the kernel.
    packed: Guarded<f32>,
    /// The number of columns of a panel.
    width: usize,
    out: Guarded<f32>,
    bias: Vec<f32>,
}

impl Operands {
    fn new(case: Case, at_end: bool) -> Operands {
        let c = &case;
        let output = [0, 1, 2].map(|d| {
            let filter_span = (c.kernel[d] - 1) * c.dilation[d] + 1;
            (c.input[d] + c.before[d] + c.after[d])
                .checked_sub(filter_span)
                .map_or(0, |r| r / c.stride[d] + 1)
        });
        let taps: usize = c.kernel.iter().product();
        let (gc, gf) = (c.channels / c.groups, c.filters / c.groups);
        let pixels: usize = c.input.iter().product();
        let weights = fill::<f32>(c.filters * taps * gc, 5);
        let weight = |f: usize, row: usize| weights[f * taps * gc + row];
        let (packed, width) = if is_depthwise(c) {
            ((0..taps * c.channels).map(|i| weight(i % c.channels, i / c.channels)).collect(), 0)
        } else if let Some(algorithm) = c.winograd {
            transformed_panels(c, algorithm, weight)
        } else if shares_panels(c) {
            let panel = |first: usize| (first, (c.filters - first).min(16));
            let panels = (0..c.filters).step_by(16).map(panel);
            let positions = panels.flat_map(|(first, columns)| {
                (0..taps * gc).flat_map(move |row| (0..columns).map(move |f| (first + f, row)))
            });
            (positions.map(|(f, row)| weight(f, row)).collect(), gf)
        } else {
            let mut all = Vec::new();
            let mut width = 16;
            for g in 0..c.groups {
                let (k, first) = (taps * gc, g * gf);
                let matrix: Vec<f32> =
                    (0..k * gf).map(|i| weight(first + i % gf, i / gf)).collect();
                let matrix = Tensor::from_slice(&[k as i64, gf as i64], &matrix).unwrap();
                let panels = pack_panels(&matrix, false).unwrap();
                width = panels.shape()[2] as usize;
                all.extend_from_slice(panels.as_slice::<f32>().unwrap());
            }
            (all, width)
        };
        let results = c.batch * c.filters * output.iter().product::<usize>();
        Operands {
            case,
            output,
            x: Guarded::new(&fill::<f32>(c.batch * c.channels * pixels, 7), at_end),
            weights,
            packed: Guarded::new(&packed, at_end),
            width,
            out: Guarded::new(&vec![f32::NAN; results], at_end),
            bias: fill::<f32>(c.filters, 3),
        }
    }

    fn convolution(&self) -> Convolution {
        let c = &self.case;
        let activation = Activation::Relu;
        let epilogue = Epilogue { bias: self.bias.as_ptr(), activation, ..Epilogue::default() };
        let dims = |d: [usize; 3]| d.map(|d| d as i64);
        Convolution {
            batch: c.batch as i64,
            channels: c.channels as i64,
            filters: c.filters as i64,
            groups: c.groups as i64,
            input: dims(c.input),
            output: dims(self.output),
            kernel: dims(c.kernel),
            stride: dims(c.stride),
            dilation: dims(c.dilation),
            before: dims(c.before),
            x: image(self.x.as_ptr().cast_const(), c.channels, c.input, c.first[0]),
            weights: self.packed.as_ptr(),
            width: self.width as i64,
            winograd: c.winograd.map_or(0, |algorithm| algorithm.input_tile() as i64 - 3),
            out: image(self.out.as_ptr(), c.filters, self.output, c.first[1]),
            epilogue: c.epilogue.then_some(epilogue),
        }
    }

    /// Returns the result of one filter at one pixel according to the definition of convolution.
    fn expected(
        &self,
        x: &Image<*const f32>,
        batch: usize,
        filter: usize,
        pixel: [usize; 3],
    ) -> f32 {
        let c = &self.case;
        let (gc, group) = (c.channels / c.groups, filter / (c.filters / c.groups));
        let taps: usize = c.kernel.iter().product();
        let mut sum = 0.0;
        for tap in 0..taps {
            let tap_position = [
                tap / (c.kernel[1] * c.kernel[2]),
                tap / c.kernel[2] % c.kernel[1],
                tap % c.kernel[2],
            ];
            let input_position = [0, 1, 2].map(|d| {
                (pixel[d] * c.stride[d] + tap_position[d] * c.dilation[d])
                    .checked_sub(c.before[d])
                    .filter(|&i| i < c.input[d])
            });
            let [Some(z), Some(y), Some(column)] = input_position else { continue };
            for q in 0..gc {
                let offset = batch as i64 * x.batch
                    + (group * gc + q) as i64 * x.channel
                    + z as i64 * x.pixel[0]
                    + y as i64 * x.pixel[1]
                    + column as i64 * x.pixel[2];
                sum +=
                    self.x.values()[offset as usize] * self.weights[(filter * taps + tap) * gc + q];
            }
        }
        if c.epilogue { (sum + self.bias[filter]).max(0.0) } else { sum }
    }

    fn check(&self, isa: Isa, runtime: &KernelRuntime) {
        let c = &self.case;
        let a = self.convolution();
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { run(isa, runtime, &a) }, STATUS_OK, "{isa:?} {c:?}");
        let [depth, height, width] = self.output;
        for at in 0..c.batch * depth * height * width * c.filters {
            let (filter, rest) = (at % c.filters, at / c.filters);
            let pixel = [rest / (width * height) % depth, rest / width % height, rest % width];
            let batch = rest / (width * height * depth);
            let offset = batch as i64 * a.out.batch
                + filter as i64 * a.out.channel
                + (0..3).map(|d| pixel[d] as i64 * a.out.pixel[d]).sum::<i64>();
            let got = self.out.values()[offset as usize];
            let want = self.expected(&a.x, batch, filter, pixel);
            // F(2x2) is exact, because transformed filters contain only multiples of 1/4. F(4x4) rounds. Operands are
            // at most 6.
            let tolerance = 1e-6 * (36 * 9 * c.channels) as f32;
            let is_near = c.winograd == Some(Winograd::Four) && (got - want).abs() < tolerance;
            assert!(
                got == want || is_near,
                "{got} {want} {isa:?} {batch} {filter} {pixel:?} {c:?}"
            );
        }
    }
}

fn is_depthwise(c: &Case) -> bool {
    c.groups > 1 && c.groups == c.channels && c.groups == c.filters
}

/// Whether the groups of a test case share panels of weights.
fn shares_panels(c: &Case) -> bool {
    let may_share = may_share_panels(c.groups, c.channels / c.groups, c.filters / c.groups);
    may_share && c.first == [false; 2]
}

/// Returns test cases of grouped convolution with few filters per group.
fn grouped() -> Vec<Case> {
    let groups = |groups: usize, channels: usize, filters: usize| Case {
        groups,
        channels: groups * channels,
        filters: groups * filters,
        ..PLAIN
    };
    let four = groups(7, 4, 4);
    let wide = groups(2, 16, 24);
    let mut cases = vec![];
    for (count, channels, filters) in [
        (32, 4, 4),
        (17, 2, 2),
        (5, 8, 8),
        (9, 1, 2),
        (3, 1, 8),
        (5, 3, 8),
        (2, 3, 4),
        (3, 5, 3),
        (4, 4, 1),
        (2, 8, 4),
        (3, 16, 16),
        (2, 20, 33),
        (2, 40, 70),
    ] {
        cases.push(groups(count, channels, filters));
        let odd = Case { stride: [1, 2, 2], before: [0, 0, 2], ..groups(count, channels, filters) };
        cases.push(Case { input: [1, 7, 8], ..odd });
    }
    for case in [four, wide] {
        cases.extend([
            Case { batch: 0, ..case },
            Case { channels: 0, ..case },
            Case { input: [1, 0, 9], before: [0, 2, 1], ..case },
            Case { input: [1, 1, 1], ..case },
            // Padding so wide that some results read nothing of the input.
            Case { before: [0, 5, 5], after: [0, 5, 5], ..case },
            // Several bands of lines, and lines in several parts.
            Case { batch: 1, input: [1, 37, 14], ..case },
            Case { batch: 1, input: [1, 3, 200], ..case },
            Case { batch: 1, input: [1, 2, 131], stride: [1, 1, 3], dilation: [1, 1, 4], ..case },
            Case { dilation: [1, 2, 3], before: [0, 2, 3], after: [0, 2, 3], ..case },
            // The first row of the second line precedes that of the first line.
            Case { dilation: [1, 2, 2], ..case },
            Case { dilation: [1, 3, 1], before: [0, 2, 1], after: [0, 3, 1], ..case },
            Case { stride: [1, 3, 2], dilation: [1, 2, 2], input: [1, 11, 13], ..case },
            Case { stride: [1, 4, 4], input: [1, 11, 13], ..case },
            Case { kernel: [1; 3], before: [0; 3], after: [0; 3], ..case },
            Case { kernel: [1; 3], stride: [1, 2, 2], before: [0, 0, 1], ..case },
            Case { kernel: [1, 2, 5], before: [0, 1, 4], after: [0; 3], ..case },
            Case { kernel: [1, 1, 3], input: [1, 1, 30], before: [0, 0, 2], after: [0; 3], ..case },
            Case {
                input: [5, 4, 6],
                kernel: [3, 2, 3],
                stride: [2, 1, 1],
                dilation: [2, 1, 1],
                before: [2, 0, 2],
                after: [1, 1, 0],
                ..case
            },
        ]);
    }
    cases
}

/// Returns test cases with few channels. The runs of adjacent inputs under the filter are short, so that a slice of the
/// weights covers several runs.
fn few_channels() -> Vec<Case> {
    let mut cases = Vec::new();
    for channels in [1, 2, 3, 4] {
        let few = Case { channels, filters: 20, input: [1, 9, 31], ..PLAIN };
        cases.extend([
            few,
            Case { stride: [1, 2, 2], filters: 64, ..few },
            Case { dilation: [1, 2, 3], filters: 40, before: [0, 2, 4], after: [0, 3, 1], ..few },
            Case { kernel: [1, 5, 4], filters: 7, ..few },
            // Padding so wide that some results read nothing of the input.
            Case { before: [0, 5, 5], after: [0, 5, 5], filters: 130, ..few },
        ]);
    }
    let three = Case { channels: 3, filters: 33, ..PLAIN };
    cases.extend([
        Case { input: [3, 5, 8], kernel: [3, 3, 3], before: [1; 3], after: [1; 3], ..three },
        Case { input: [1, 0, 9], before: [0, 2, 1], ..three },
        Case { batch: 0, ..three },
        // More runs than a slice may have.
        Case {
            input: [1, 15, 20],
            kernel: [1, 7, 7],
            dilation: [1, 2, 2],
            before: [0, 6, 6],
            after: [0, 6, 6],
            ..three
        },
        // Slices that end inside of a run.
        Case { channels: 150, filters: 16, ..PLAIN },
        Case {
            input: [1, 3, 3],
            dilation: [1, 9, 12],
            before: [0, 9, 12],
            after: [0, 9, 12],
            ..three
        },
    ]);
    cases
}

/// Returns test cases with few channels and one to four filters, for which the kernel computes vectors of adjacent
/// results.
fn few_channels_and_filters() -> Vec<Case> {
    let mut cases = Vec::new();
    for (channels, filters) in [(1, 1), (2, 1), (3, 3), (4, 2), (3, 4), (8, 1), (19, 3)] {
        let few = Case { channels, filters, input: [1, 9, 150], ..PLAIN };
        cases.extend([
            few,
            Case { first: [true, filters == 1], ..few },
            Case { epilogue: true, ..few },
            Case { stride: [1, 2, 2], ..few },
            Case { stride: [1, 1, 3], dilation: [1, 2, 2], kernel: [1, 2, 5], ..few },
            Case { stride: [1, 3, 2], dilation: [1, 1, 3], before: [0, 2, 4], ..few },
            Case { kernel: [1, 1, 1], before: [0; 3], after: [0; 3], ..few },
            Case { kernel: [1, 7, 7], before: [0, 3, 3], after: [0, 3, 3], ..few },
            Case { input: [4, 5, 33], kernel: [3, 2, 3], before: [1; 3], after: [1; 3], ..few },
            // Lines of less than a vector.
            Case { input: [1, 3, 2], ..few },
            // Padding so wide that some results read nothing of the input.
            Case { before: [0, 5, 5], after: [0, 5, 5], ..few },
            Case { input: [1, 0, 9], before: [0, 2, 1], ..few },
            Case { batch: 0, ..few },
        ]);
    }
    cases
}

/// Returns test cases with one to four filters, for which the kernel computes dot products over channels.
fn few_filters() -> Vec<Case> {
    let one = Case { kernel: [1; 3], before: [0; 3], after: [0; 3], channels: 70, ..PLAIN };
    let mut cases = Vec::new();
    for filters in 1..=4 {
        let few = Case { channels: 35, filters, ..PLAIN };
        cases.extend([
            few,
            Case { channels: 16, ..few },
            Case { channels: 8, input: [1, 7, 4], ..few },
            Case { filters, ..one },
            Case { filters, stride: [1, 2, 3], ..one },
        ]);
    }
    let three = Case { channels: 24, filters: 3, ..PLAIN };
    cases.extend([
        Case { stride: [1, 2, 2], input: [1, 9, 14], ..three },
        Case { dilation: [1, 3, 2], before: [0, 4, 1], after: [0, 1, 4], ..three },
        // Padding so wide that some results read nothing of the input.
        Case { before: [0, 5, 5], after: [0, 5, 5], ..three },
        // Taps that no result reads.
        Case { dilation: [1, 9, 12], before: [0, 9, 12], after: [0, 9, 12], ..three },
        Case { input: [3, 5, 8], kernel: [3, 3, 3], before: [1; 3], after: [1; 3], ..three },
        Case { input: [1, 0, 9], before: [0, 2, 1], ..three },
        Case { batch: 0, ..three },
    ]);
    cases
}

fn winograd() -> Vec<Case> {
    let sizes = [Winograd::Two, Winograd::Four].map(|a| Case { winograd: Some(a), ..PLAIN });
    let of_size = |transformed: Case| {
        [
            transformed,
            Case { batch: 0, ..transformed },
            Case { filters: 0, ..transformed },
            Case { channels: 0, ..transformed },
            Case { input: [1, 0, 9], before: [0, 2, 1], ..transformed },
            Case { input: [1, 1, 1], ..transformed },
            Case { channels: 33, filters: 70, before: [0; 3], after: [0; 3], ..transformed },
            Case { before: [0, 5, 0], after: [0, 0, 4], ..transformed },
            // More tiles than a block has.
            Case { input: [1, 31, 36], channels: 16, filters: 17, ..transformed },
        ]
    };
    sizes.into_iter().flat_map(of_size).collect()
}

fn cases() -> Vec<Case> {
    let one = Case { kernel: [1; 3], before: [0; 3], after: [0; 3], ..PLAIN };
    let line =
        Case { input: [1, 1, 50], kernel: [1, 1, 5], before: [0, 0, 4], after: [0; 3], ..PLAIN };
    let depthwise = Case { groups: 20, channels: 20, filters: 20, ..PLAIN };
    let mut cases = vec![
        PLAIN,
        Case { batch: 0, ..PLAIN },
        Case { filters: 0, ..PLAIN },
        Case { channels: 0, ..PLAIN },
        Case { input: [1, 0, 9], before: [0, 2, 1], ..PLAIN },
        Case { input: [1, 1, 1], ..PLAIN },
        Case { channels: 1, filters: 1, ..PLAIN },
        Case { channels: 33, filters: 70, before: [0; 3], after: [0; 3], ..PLAIN },
        Case { filters: 130, input: [1, 20, 23], stride: [1, 2, 2], ..PLAIN },
        Case { before: [0, 2, 0], after: [0, 0, 3], ..PLAIN },
        Case { dilation: [1, 2, 3], before: [0, 2, 3], after: [0, 2, 3], ..PLAIN },
        Case { groups: 2, channels: 6, filters: 10, ..PLAIN },
        Case { groups: 3, channels: 3, filters: 6, ..PLAIN },
        // Three lines of 35 exceed a block.
        Case { input: [1, 12, 35], filters: 64, ..PLAIN },
        Case { input: [1, 3, 130], kernel: [1, 2, 4], ..PLAIN },
        Case { input: [5, 4, 6], kernel: [3, 2, 3], before: [1, 0, 2], after: [1, 1, 0], ..PLAIN },
        Case {
            input: [1, 14, 14],
            channels: 3,
            filters: 64,
            kernel: [1, 7, 7],
            stride: [1, 2, 2],
            before: [0, 3, 3],
            after: [0, 3, 3],
            ..PLAIN
        },
        one,
        Case { stride: [1, 2, 3], ..one },
        Case { before: [0, 1, 0], ..one },
        Case { input: [2, 3, 40], channels: 17, filters: 40, ..one },
        line,
        Case { stride: [1, 1, 3], dilation: [1, 1, 2], ..line },
    ];
    let last = cases.clone();
    for first in [[true, false], [false, true], [true, true]] {
        cases.extend(last.iter().map(|&c| Case { first, ..c }));
    }
    cases.extend([
        depthwise,
        Case { channels: 3, filters: 3, groups: 3, input: [1, 1, 1], ..depthwise },
        Case { stride: [1, 2, 2], input: [1, 9, 11], ..depthwise },
        // Channels that fill whole vectors, images of one line, and inner parts of lines with remainders.
        Case { channels: 32, filters: 32, groups: 32, input: [1, 4, 17], ..depthwise },
        Case { input: [1, 1, 9], ..depthwise },
        Case { stride: [1, 1, 2], input: [1, 2, 15], before: [0; 3], after: [0; 3], ..depthwise },
        Case { input: [3, 5, 8], kernel: [3, 3, 3], before: [1; 3], after: [1; 3], ..depthwise },
        Case { dilation: [1, 3, 2], before: [0, 4, 1], after: [0, 1, 4], ..depthwise },
        Case {
            input: [3, 4, 5],
            kernel: [2, 3, 5],
            before: [1, 0, 2],
            after: [0, 2, 3],
            ..depthwise
        },
        // Padding so wide that some results read nothing of the input.
        Case { before: [0, 5, 5], after: [0, 5, 5], ..depthwise },
    ]);
    cases.extend(winograd());
    cases.extend(grouped());
    cases.extend(few_filters());
    cases.extend(few_channels_and_filters());
    cases.extend(few_channels());
    let without_epilogue = cases.clone();
    cases.extend(without_epilogue.into_iter().map(|c| Case { epilogue: true, ..c }));
    cases
}

#[test]
fn every_isa_shape_and_layout_matches_the_definition() {
    let runtime = KernelRuntime::serial();
    for case in cases() {
        for at_end in [false, true] {
            for isa in available() {
                Operands::new(case, at_end).check(isa, &runtime);
            }
        }
    }
}

#[test]
fn threads_cover_all_results() {
    let team = Team::new(3);
    let runtime = KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: (&raw const team).cast::<c_void>(),
        ..KernelRuntime::serial()
    };
    let isa = available().next().unwrap();
    for (input, filters) in [([1, 7, 7], 200), ([1, 40, 40], 20), ([1, 2, 300], 70)] {
        for winograd in [None, Some(Winograd::Two), Some(Winograd::Four)] {
            let first = [winograd.is_none(); 2];
            let (channels, epilogue) = (24, true);
            let case = Case { channels, filters, input, first, epilogue, winograd, ..PLAIN };
            Operands::new(case, true).check(isa, &runtime);
        }
    }
    for (groups, filters) in [(33, 4), (3, 48)] {
        let (channels, batch) = (groups * filters, 3);
        let case = Case { batch, channels, filters: channels, groups, input: [1, 21, 40], ..PLAIN };
        Operands::new(case, true).check(isa, &runtime);
    }
}

unsafe extern "C" fn fail_to_allocate(_: u64) -> *mut c_void {
    std::ptr::null_mut()
}

#[test]
fn invalid_sizes_failed_allocations_and_interrupts_return_a_status() {
    let isa = available().next().unwrap();
    let ops = Operands::new(PLAIN, true);
    let a = ops.convolution();
    let runtime = KernelRuntime::serial();
    // SAFETY: nothing is accessed if the sizes are invalid.
    let status = |a: &Convolution, runtime: &KernelRuntime| unsafe { run(isa, runtime, a) };
    for bad in [
        Convolution { groups: 0, ..a },
        Convolution { groups: 2, ..a },
        Convolution { batch: -1, ..a },
        Convolution { kernel: [1, 0, 3], ..a },
        Convolution { stride: [1, 1, 0], ..a },
        Convolution { dilation: [1, i64::MAX, 1], ..a },
        Convolution { output: [i64::MAX, i64::MAX, 1], ..a },
        Convolution { channels: i64::MAX, ..a },
        Convolution { winograd: 1, stride: [1, 1, 2], ..a },
        Convolution { winograd: 1, dilation: [1, 2, 1], ..a },
        Convolution { winograd: 1, kernel: [1, 3, 2], ..a },
        Convolution { winograd: 2, ..a },
        Convolution { winograd: -1, ..a },
        Convolution { width: 17, ..a },
        Convolution { width: 0, ..a },
        Convolution { width: 128, ..a },
    ] {
        assert_eq!(status(&bad, &runtime), STATUS_BAD_ARGUMENTS, "{bad:?}");
    }
    let without_memory =
        KernelRuntime { alloc_workspace: fail_to_allocate, ..KernelRuntime::serial() };
    // Images with channels first are transposed, which needs memory.
    let padded = Operands::new(Case { channels: 40, first: [true, false], ..PLAIN }, false);
    assert_eq!(status(&padded.convolution(), &without_memory), STATUS_NO_MEMORY);
    assert_eq!(status(&a, &without_memory), STATUS_OK);
    let flag = std::sync::atomic::AtomicBool::new(true);
    let interrupted = KernelRuntime { interrupt: &raw const flag, ..KernelRuntime::serial() };
    assert_eq!(status(&a, &interrupted), STATUS_CANCELLED);
    // Depthwise convolutions require channels last.
    let depthwise = Case { groups: 4, channels: 4, filters: 4, first: [true, true], ..PLAIN };
    let depthwise = Operands::new(depthwise, true);
    assert_eq!(status(&depthwise.convolution(), &runtime), STATUS_BAD_ARGUMENTS);
    // So do groups that share panels, which are those of 2, 4 or 8 filters and at most as many channels.
    let few = Operands::new(Case { groups: 3, channels: 6, filters: 6, ..PLAIN }, true);
    let a = few.convolution();
    assert_eq!(status(&a, &without_memory), STATUS_NO_MEMORY);
    assert_eq!(status(&a, &interrupted), STATUS_CANCELLED);
    for bad in [
        Convolution { x: Image { channel: 2, ..a.x }, ..a },
        Convolution { out: Image { channel: 2, ..a.out }, ..a },
        Convolution { width: 4, ..a },
        Convolution { channels: 9, ..a },
        Convolution { filters: 9, width: 3, ..a },
        Convolution { dilation: [1, i64::MAX, 1], ..a },
    ] {
        assert_eq!(status(&bad, &runtime), STATUS_BAD_ARGUMENTS, "{bad:?}");
    }
}

#[test]
fn nan_affects_only_results_that_read_it() {
    let case = Case { batch: 1, ..PLAIN };
    for isa in available() {
        let ops = Operands::new(case, true);
        let a = ops.convolution();
        // SAFETY: the first pixel exists.
        unsafe { *ops.x.as_ptr() = f32::NAN };
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { run(isa, &KernelRuntime::serial(), &a) }, STATUS_OK);
        for (at, x) in ops.out.values().iter().enumerate() {
            let (y, column) = (at / 7 / 9, at / 7 % 9);
            assert_eq!(x.is_nan(), y < 2 && column < 2, "{isa:?} {y} {column}");
        }
    }
}

/// Tests that equal filters have equal results even in the last panel, which may have fewer columns than the others.
/// The order of additions must be the same.
#[test]
fn equal_filters_give_equal_results() {
    let one_tap = Case { kernel: [1; 3], before: [0; 3], after: [0; 3], filters: 104, ..PLAIN };
    for case in [
        Case { channels: 130, ..one_tap },
        Case { channels: 700, filters: 40, ..one_tap },
        Case { channels: 130, filters: 72, ..PLAIN },
    ] {
        for isa in available() {
            let operands = Operands::new(case, true);
            let fill = |data: *mut f32, count: usize, value: fn(usize) -> f32| {
                // SAFETY: the operand has that many elements.
                unsafe { (0..count).for_each(|i| *data.add(i) = value(i)) };
            };
            fill(operands.x.as_ptr(), operands.x.values().len(), |i| (i as f32 * 0.7).sin());
            fill(operands.packed.as_ptr(), operands.packed.values().len(), |_| 0.37);
            let a = operands.convolution();
            // SAFETY: the operands have these sizes.
            assert_eq!(unsafe { run(isa, &KernelRuntime::serial(), &a) }, STATUS_OK);
            for pixel in operands.out.values().chunks_exact(case.filters) {
                assert!(pixel.iter().all(|&y| y == pixel[0]), "{isa:?} {case:?}: {pixel:?}");
            }
        }
    }
}
