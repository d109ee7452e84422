//! Compares convolutions of 8-bit integers with their definition, for every instruction set, with
//! operands between guard pages. Results must be exact.

use std::ffi::c_void;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_NO_MEMORY, STATUS_OK};
use pliant_kernels::epilogue::{Activation, Epilogue};
use pliant_kernels::quantized::convolution::{Convolution, Counts, run};
use pliant_kernels::quantized::{IntegerEpilogue, Requantization, pack_vnni};
use pliant_machine::isa::{Isa, available};
use pliant_pool::Team;

use crate::guard_pages::Guarded;

/// The sizes and features of an int8 convolution test case.
#[derive(Clone, Copy, Debug)]
struct Case {
    counts: [usize; 4],
    input: [usize; 3],
    kernel: [usize; 3],
    stride: [usize; 3],
    dilation: [usize; 3],
    before: [usize; 3],
    after: [usize; 3],
}

const PLAIN: Case = Case {
    counts: [2, 5, 7, 1],
    input: [1, 6, 9],
    kernel: [1, 3, 3],
    stride: [1; 3],
    dilation: [1; 3],
    before: [0, 1, 1],
    after: [0, 1, 1],
};

/// Returns all test cases. `counts` are the numbers of images, channels, filters and groups.
fn cases() -> Vec<Case> {
    let p = PLAIN;
    let one = Case { kernel: [1; 3], before: [0; 3], after: [0; 3], ..p };
    vec![
        p,
        Case { counts: [1, 64, 70, 1], ..p },
        Case { counts: [1, 3, 16, 1], kernel: [1, 7, 7], before: [0, 3, 3], after: [0, 3, 2], ..p },
        Case { stride: [1, 2, 3], before: [0, 2, 0], after: [0, 0, 3], ..p },
        Case { dilation: [1, 2, 3], before: [0, 3, 4], after: [0, 2, 3], ..p },
        Case { counts: [1, 8, 12, 4], ..p },
        Case { counts: [2, 6, 9, 3], dilation: [1, 1, 2], stride: [1, 2, 1], ..p },
        Case { counts: [2, 6, 6, 6], ..p },
        Case { counts: [1, 83, 83, 83], stride: [1, 2, 2], ..p },
        Case { counts: [1, 16, 16, 16], dilation: [1, 2, 4], before: [0, 5, 3], ..p },
        Case { counts: [1, 4, 5, 1], input: [3, 4, 5], kernel: [2, 3, 2], before: [1, 0, 2], ..p },
        Case { counts: [1, 3, 3, 3], input: [3, 4, 5], kernel: [2, 3, 2], before: [1, 0, 2], ..p },
        Case { counts: [3, 9, 33, 1], ..one },
        Case { counts: [1, 9, 33, 1], stride: [1, 2, 2], ..one },
        Case { counts: [2, 8, 40, 2], ..one },
        Case { counts: [1, 130, 65, 1], input: [1, 1, 1], ..one },
        Case { counts: [1, 40, 80, 1], input: [1, 17, 19], ..p },
        Case { counts: [0, 5, 7, 1], ..p },
        Case { counts: [1, 0, 7, 1], ..p },
        Case { counts: [1, 5, 0, 1], ..p },
        Case { input: [1, 0, 3], before: [0, 2, 1], after: [0, 1, 1], ..p },
        Case { input: [1, 1, 1], ..p },
    ]
}

fn bytes(len: usize, step: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * step + i / 7) % 256) as u8).collect()
}

struct Operands {
    case: Case,
    signed: bool,
    output: [usize; 3],
    x: Guarded<u8>,
    /// The weights, in the order `[filter, tap, channel of a group]`.
    weights: Vec<i8>,
    packed: Guarded<i8>,
    width: usize,
    sums: Guarded<i32>,
    zero: Guarded<i32>,
    w_zeros: Option<Guarded<i32>>,
    out: Guarded<i32>,
}

impl Operands {
    fn new(case: Case, signed: bool, w_zeros: bool, at_end: bool) -> Operands {
        let c = case;
        let [batch, channels, filters, groups] = c.counts;
        let output = [0, 1, 2].map(|d| {
            let padded = c.input[d] + c.before[d] + c.after[d];
            let filter_span = (c.kernel[d] - 1) * c.dilation[d] + 1;
            (padded + c.stride[d] - filter_span) / c.stride[d]
        });
        let (taps, group_channels) = (c.kernel.iter().product::<usize>(), channels / groups);
        let (k, group_filters) = (taps * group_channels, filters / groups);
        let weights: Vec<i8> = bytes(filters * k, 91).into_iter().map(|x| x as i8).collect();
        let is_depthwise = groups > 1 && groups == channels && groups == filters;
        let (mut packed, mut sums, mut width) = (Vec::new(), Vec::new(), 1);
        for group in 0..groups {
            let at = |j: usize, p: usize| weights[(group * group_filters + j) * k + p];
            let matrix: Vec<i8> =
                (0..k * group_filters).map(|i| at(i % group_filters, i / group_filters)).collect();
            let quads = pack_vnni(&matrix, k, group_filters).unwrap();
            (packed, width) = ([packed, quads.data].concat(), quads.width);
            sums.extend(quads.sums);
        }
        if is_depthwise {
            let positions =
                (0..taps.next_multiple_of(4) * channels).map(|i| (i / channels, i % channels));
            packed = positions
                .map(|(tap, q)| if tap < taps { weights[q * taps + tap] } else { 0 })
                .collect();
            width = 1;
        }
        let zeros: Vec<i32> = (0..filters as i32).map(|f| f % 5 - 2).collect();
        let zero = if signed { -7 } else { 130 };
        let results = batch * output.iter().product::<usize>() * filters;
        Operands {
            case,
            signed,
            output,
            x: Guarded::bytes(
                &bytes(batch * c.input.iter().product::<usize>() * channels, 37),
                at_end,
            ),
            weights,
            packed: Guarded::bytes(&packed, at_end),
            width,
            sums: Guarded::new(&sums, at_end),
            zero: Guarded::new(&[zero], at_end),
            w_zeros: w_zeros.then(|| Guarded::new(&zeros, at_end)),
            out: Guarded::new(&vec![-77; results], at_end),
        }
    }

    fn convolution(&self) -> Convolution {
        let c = &self.case;
        let [batch, channels, filters, groups] = c.counts.map(|n| n as i64);
        let three = |d: [usize; 3]| d.map(|n| n as i64);
        Convolution {
            counts: Counts {
                batch,
                channels,
                filters,
                groups,
                input: three(c.input),
                output: three(self.output),
                kernel: three(c.kernel),
                stride: three(c.stride),
                dilation: three(c.dilation),
                before: three(c.before),
            },
            x: self.x.as_ptr(),
            signed: self.signed,
            x_zero: self.zero.as_ptr(),
            weights: self.packed.as_ptr(),
            width: self.width as i64,
            sums: self.sums.as_ptr(),
            w_zeros: self.w_zeros.as_ref().map_or(std::ptr::null(), |z| z.as_ptr().cast_const()),
            out: self.out.as_ptr(),
            epilogue: None,
        }
    }

    /// Returns the results according to the definition of convolution.
    fn expected(&self) -> Vec<i32> {
        let c = &self.case;
        let [batch, channels, filters, groups] = c.counts;
        let (group_channels, group_filters) = (channels / groups, filters / groups);
        let [depth, height, width] = self.output;
        let zero = self.zero.values()[0];
        let input = |at: [usize; 3], tap: [usize; 3]| -> Option<[usize; 3]> {
            let mut position = [0; 3];
            for d in 0..3 {
                let i = at[d] * c.stride[d] + tap[d] * c.dilation[d];
                position[d] = i.checked_sub(c.before[d]).filter(|&i| i < c.input[d])?;
            }
            Some(position)
        };
        let taps: Vec<[usize; 3]> = (0..c.kernel.iter().product::<usize>())
            .map(|t| {
                [t / c.kernel[2] / c.kernel[1], t / c.kernel[2] % c.kernel[1], t % c.kernel[2]]
            })
            .collect();
        let sum = |index: usize| -> i32 {
            let (f, at) = (index % filters, index / filters);
            let (x, y, z) = (at % width, at / width % height, at / width / height % depth);
            let b = at / width / height / depth;
            let w_zero = self.w_zeros.as_ref().map_or(0, |z| z.values()[f]);
            let mut sum = 0i64;
            for (t, &tap) in taps.iter().enumerate() {
                let Some([i, j, k]) = input([z, y, x], tap) else { continue };
                for q in 0..group_channels {
                    let at = ((b * c.input[0] + i) * c.input[1] + j) * c.input[2] + k;
                    let byte =
                        self.x.values()[at * channels + f / group_filters * group_channels + q];
                    let value = if self.signed { i32::from(byte as i8) } else { i32::from(byte) };
                    let w =
                        i32::from(self.weights[(f * taps.len() + t) * group_channels + q]) - w_zero;
                    sum += i64::from(value - zero) * i64::from(w);
                }
            }
            sum as i32
        };
        (0..batch * depth * height * width * filters).map(sum).collect()
    }

    fn check(&self, isa: Isa, runtime: &KernelRuntime) {
        // SAFETY: the operands have these sizes.
        assert_eq!(unsafe { run(isa, runtime, &self.convolution()) }, STATUS_OK, "{:?}", self.case);
        assert_eq!(self.out.values(), self.expected(), "{isa:?} {:?} {}", self.case, self.signed);
    }
}

#[test]
fn every_isa_and_shape_matches_the_definition() {
    for isa in available() {
        for case in cases() {
            for bits in 0..8 {
                let ops = Operands::new(case, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
                ops.check(isa, &KernelRuntime::serial());
            }
        }
    }
}

fn team_runtime(team: &Team) -> KernelRuntime {
    KernelRuntime {
        parallel_launch: pliant_pool::parallel_launch,
        team: (&raw const *team).cast::<c_void>(),
        ..KernelRuntime::serial()
    }
}

#[test]
fn threads_cover_all_results() {
    let team = Team::new(3);
    let runtime = team_runtime(&team);
    for isa in available() {
        for (counts, input) in [
            ([1, 64, 80, 1], [1, 40, 40]),
            ([1, 96, 320, 1], [1, 7, 7]),
            ([1, 64, 96, 2], [1, 19, 23]),
            ([2, 80, 80, 80], [1, 33, 20]),
        ] {
            Operands::new(Case { counts, input, ..PLAIN }, false, true, true).check(isa, &runtime);
        }
    }
}

/// Tests the epilogue of int8 convolutions, which adds integer terms and a bias, multiplies by
/// factors, and applies an activation. The results are float32 or 8-bit integers.
#[test]
fn epilogue_gives_float32_and_bytes() {
    for (case_index, case) in cases().into_iter().enumerate() {
        for bits in 0..8 {
            let ops = Operands::new(case, bits & 1 != 0, case_index % 2 == 0, bits & 2 != 0);
            let filters = case.counts[2];
            let terms: Vec<i32> = (0..filters as i32).map(|f| f * 300 - 900).collect();
            let columns: Vec<f32> = (0..filters).map(|f| (1 + f % 4) as f32 / 512.0).collect();
            let bias: Vec<f32> = (0..filters).map(|f| f as f32 / 8.0 - 3.0).collect();
            let (terms, columns) = (Guarded::new(&terms, true), Guarded::new(&columns, true));
            let (bias, scale) = (Guarded::new(&bias, true), Guarded::new(&[0.5f32], true));
            let epilogue = IntegerEpilogue {
                terms: terms.as_ptr(),
                row_scales: scale.as_ptr(),
                float: Epilogue {
                    column_scale: columns.as_ptr(),
                    bias: bias.as_ptr(),
                    activation: Activation::Clip,
                    low: -9.0,
                    high: 60.0,
                    ..Epilogue::default()
                },
                ..IntegerEpilogue::default()
            };
            let float = |at: usize, sum: i32| {
                let f = at % filters;
                let x = sum.wrapping_add(terms.values()[f]) as f32 * 0.5;
                (x * columns.values()[f] + bias.values()[f]).clamp(-9.0, 60.0)
            };
            let want = ops.expected();
            let signed = bits & 4 != 0;
            let out = Guarded::new(&vec![77u8; want.len()], bits & 2 != 0);
            let c = ops.convolution();
            let range = if signed { (-128.0, 127.0) } else { (3.0, 200.0) };
            let requantization = Requantization {
                divisor: 0.375,
                zero: 11.0,
                limits: range,
                signed,
                out: (out.as_ptr(), filters as i64),
            };
            let bytes = IntegerEpilogue { requantization: Some(requantization), ..epilogue };
            let floats = Convolution { epilogue: Some(epilogue), ..c };
            let bytes = Convolution { out: std::ptr::null_mut(), epilogue: Some(bytes), ..c };
            let isa = available().nth(case_index % available().count()).unwrap();
            let runtime = KernelRuntime::serial();
            // SAFETY: the operands have these sizes.
            unsafe {
                assert_eq!(run(isa, &runtime, &floats), STATUS_OK);
                assert_eq!(run(isa, &runtime, &bytes), STATUS_OK);
            }
            for (at, (&got, &sum)) in ops.out.values().iter().zip(&want).enumerate() {
                assert_eq!(f32::from_bits(got as u32), float(at, sum), "{case:?} {at}");
            }
            for (at, (&got, &sum)) in out.values().iter().zip(&want).enumerate() {
                let want = (float(at, sum) / 0.375).round_ties_even() + 11.0;
                let want = want.clamp(range.0, range.1) as i32 as u8;
                assert_eq!(got, want, "{case:?} {at}");
            }
        }
    }
}

#[test]
fn invalid_sizes_return_a_status() {
    let ops = Operands::new(PLAIN, true, false, true);
    let c = ops.convolution();
    let run_with = |change: fn(&mut Convolution)| {
        let mut c = c;
        change(&mut c);
        // SAFETY: nothing is accessed if the sizes are invalid.
        unsafe { run(available().next().unwrap(), &KernelRuntime::serial(), &c) }
    };
    for change in [
        |c: &mut Convolution| c.counts.batch = -1,
        |c: &mut Convolution| c.counts.groups = 0,
        |c: &mut Convolution| c.counts.groups = 2,
        |c: &mut Convolution| c.counts.stride = [1, 0, 1],
        |c: &mut Convolution| c.counts.output = [1, i64::MAX, 1],
        |c: &mut Convolution| c.counts.before = [0, -1, 0],
        |c: &mut Convolution| c.counts.dilation = [1, i64::MAX, 1],
        |c: &mut Convolution| c.width = 0,
        |c: &mut Convolution| c.width = 24,
        |c: &mut Convolution| c.out = std::ptr::null_mut(),
        |c: &mut Convolution| {
            (c.out, c.epilogue) = (std::ptr::null_mut(), Some(IntegerEpilogue::default()));
        },
    ] {
        assert_eq!(run_with(change), STATUS_BAD_ARGUMENTS);
    }
    // The copies of patches exceed all memory.
    let huge = |c: &mut Convolution| {
        c.counts.channels = 1;
        c.counts.filters = 1;
        c.counts.batch = 1;
        c.counts.output = [1, 1, 1];
        c.counts.kernel = [1, 1 << 21, 1 << 21];
    };
    assert_eq!(run_with(huge), STATUS_NO_MEMORY);
    // The zero point of padding is out of the range of bytes.
    let zero = Guarded::new(&[300i32], true);
    let c = Convolution { x_zero: zero.as_ptr(), ..c };
    // SAFETY: as above.
    let status = unsafe { run(available().next().unwrap(), &KernelRuntime::serial(), &c) };
    assert_eq!(status, STATUS_BAD_ARGUMENTS);
}
