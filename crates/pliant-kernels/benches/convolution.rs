//! Benchmarks of convolutions with channels last, in shapes of ResNet-like and mobile networks (3 x
//! 3, strided, 1 x 1, first layer, depthwise, groups of few channels, dilated), and transposed
//! convolutions.

mod roofline;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::convolution::{Convolution, Image, run};
use pliant_machine::isa::isa;
use pliant_tensor::{Tensor, Winograd, pack_panels};
use roofline::{Cases, Workload, thread_counts, values, vectors};

/// The shape of a convolution: height and width of the input, channels, filters, filter width, stride, dilation,
/// groups.
type Shape = (usize, usize, usize, usize, usize, usize, usize);

const SHAPES: [Shape; 32] = [
    (56, 32, 32, 3, 1, 1, 1),
    (56, 64, 64, 3, 1, 1, 1),
    (28, 128, 128, 3, 1, 1, 1),
    (14, 256, 256, 3, 1, 1, 1),
    (7, 256, 256, 3, 1, 1, 1),
    (7, 512, 512, 3, 1, 1, 1),
    (56, 64, 128, 3, 2, 1, 1),
    (224, 3, 64, 7, 2, 1, 1),
    (56, 64, 128, 1, 2, 1, 1),
    (56, 24, 144, 1, 1, 1, 1),
    (28, 192, 32, 1, 1, 1, 1),
    (14, 384, 64, 1, 1, 1, 1),
    (14, 96, 576, 1, 1, 1, 1),
    (7, 960, 320, 1, 1, 1, 1),
    (112, 32, 32, 3, 1, 1, 32),
    (56, 144, 144, 3, 1, 1, 144),
    (28, 192, 192, 3, 1, 1, 192),
    (14, 576, 576, 3, 1, 1, 576),
    (7, 960, 960, 3, 1, 1, 960),
    (112, 96, 96, 3, 2, 1, 96),
    (56, 128, 128, 3, 1, 1, 32),
    (56, 256, 256, 3, 2, 1, 32),
    (28, 256, 256, 3, 1, 1, 32),
    (14, 512, 512, 3, 1, 1, 32),
    (7, 1024, 1024, 3, 1, 1, 32),
    (56, 64, 64, 3, 1, 1, 32),
    (56, 32, 128, 3, 1, 1, 32),
    (28, 240, 240, 1, 1, 1, 3),
    (56, 64, 64, 3, 1, 2, 1),
    (28, 128, 128, 3, 1, 2, 1),
    (28, 128, 128, 3, 1, 4, 1),
    (28, 192, 192, 3, 1, 2, 192),
];

fn image<P>(data: P, size: usize, channels: usize) -> Image<P> {
    let (size, channels) = (size as i64, channels as i64);
    let line = size * channels;
    Image { data, batch: size * line, channel: 1, pixel: [size * line, line, channels] }
}

fn convolution(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "convolution", vectors(), threads);
        let runtime = cases.runtime();
        let winograd = SHAPES.into_iter().filter(|s| (s.3, s.4, s.5, s.6) == (3, 1, 1, 1));
        let algorithms = [Some(Winograd::Two), Some(Winograd::Four)];
        let winograd = winograd.flat_map(|s| algorithms.map(|algorithm| (s, algorithm)));
        let all = winograd.chain(SHAPES.map(|s| (s, None)));
        for ((size, channels, filters, kernel, stride, dilation, groups), winograd) in all {
            let padding = dilation * (kernel / 2);
            let output = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
            let k = kernel * kernel * channels / groups;
            // The values do not affect the time.
            let rows = winograd.map_or(k, |algorithm| algorithm.filter_elements() * channels);
            let x = values(size * size * channels, 7);
            let weights = values(rows * filters, 5);
            let mut out = vec![0f32; output * output * filters];
            // The matrices of the groups are stacked: the rows of each group follow those of the previous one.
            let group_shape = [rows * groups, filters / groups].map(|d| d as i64);
            let matrix = Tensor::from_slice(&group_shape, &weights)
                .expect("the memory for a small tensor can be allocated");
            let panels = pack_panels(&matrix, false).expect("a matrix");
            let is_depthwise = groups > 1 && channels == groups && filters == groups;
            let group_filters = filters / groups;
            let shares_panels =
                groups > 1 && matches!(group_filters, 2 | 4 | 8) && channels <= filters;
            let packed = panels.as_slice::<f32>().expect("float32");
            let [size_, output_, kernel_, stride_, dilation_] =
                [size, output, kernel, stride, dilation].map(|d| d as i64);
            let a = Convolution {
                batch: 1,
                channels: channels as i64,
                filters: filters as i64,
                groups: groups as i64,
                input: [1, size_, size_],
                output: [1, output_, output_],
                kernel: [1, kernel_, kernel_],
                stride: [1, stride_, stride_],
                dilation: [1, dilation_, dilation_],
                before: [0, padding as i64, padding as i64],
                x: image(x.as_ptr(), size, channels),
                weights: if is_depthwise || shares_panels {
                    weights.as_ptr()
                } else {
                    packed.as_ptr()
                },
                width: if shares_panels { group_filters as i64 } else { panels.shape()[2] },
                out: image(out.as_mut_ptr(), output, filters),
                winograd: winograd.map_or(0, |algorithm| algorithm.input_tile() as i64 - 3),
                epilogue: None,
            };
            let work = Workload::single(
                (2 * output * output * k * filters) as f64,
                (4 * rows * filters) as f64,
            );
            let dilation_suffix =
                if dilation > 1 { format!(", dilation {dilation}") } else { String::new() };
            let kind = match winograd {
                _ if is_depthwise => ", depthwise".to_string(),
                _ if groups > 1 => format!(", {groups} groups"),
                Some(Winograd::Two) => ", Winograd F(2x2)".to_string(),
                Some(Winograd::Four) => ", Winograd F(4x4)".to_string(),
                None => String::new(),
            };
            let name = format!(
                "{size} x {size} x {channels} to {filters}, {kernel} x {kernel} / {stride}{kind}{dilation_suffix}"
            );
            cases.run(&name, work, || {
                // SAFETY: the operands have these sizes.
                unsafe { run(isa(), &runtime, black_box(&a)) };
            });
        }
        cases.finish();
    }
}

/// The shapes of the transposed convolutions: height and width of the input, channels, filters, filter width, and
/// stride.
const TRANSPOSED: [(usize, usize, usize, usize, usize); 5] = [
    (64, 64, 32, 4, 2),
    (16, 256, 128, 4, 2),
    (64, 32, 32, 3, 1),
    (64, 64, 32, 2, 2),
    (32, 128, 64, 2, 2),
];

/// Runs transposed convolutions as the compiler lowers them, as several convolutions with strided
/// results. Each of them computes the results that use the same filter positions.
fn transposed(c: &mut Criterion) {
    for threads in thread_counts() {
        let mut cases = Cases::new(c, "transposed", vectors(), threads);
        let runtime = cases.runtime();
        for (size, channels, filters, kernel, step) in TRANSPOSED {
            let (phase_kernel, output) = (kernel / step, size * step);
            let x = values(size * size * channels, 7);
            let matrix = values(phase_kernel * phase_kernel * channels * filters, 5);
            let sizes = [phase_kernel * phase_kernel * channels, filters].map(|d| d as i64);
            let matrix = Tensor::from_slice(&sizes, &matrix)
                .expect("the memory for a small tensor can be allocated");
            let panels = pack_panels(&matrix, false).expect("a matrix");
            let mut out = vec![0f32; output * output * filters];
            let phase = |index: usize| {
                let first = [index / step, index % step];
                // Half of the extra results, (kernel - step) / 2, is cropped before the first one.
                let positions = first.map(|result| (result + (kernel - step) / 2) / step);
                let [y, x_] = positions.map(|position| (phase_kernel - 1 - position) as i64);
                let results = image(out.as_mut_ptr(), output, filters);
                let offset = (first[0] * output + first[1]) * filters;
                let [size, phase_kernel, step] = [size, phase_kernel, step].map(|d| d as i64);
                Convolution {
                    batch: 1,
                    channels: channels as i64,
                    filters: filters as i64,
                    groups: 1,
                    input: [1, size, size],
                    output: [1, size, size],
                    kernel: [1, phase_kernel, phase_kernel],
                    stride: [1; 3],
                    dilation: [1; 3],
                    before: [0, y, x_],
                    x: image(x.as_ptr(), size as usize, channels),
                    weights: panels.as_slice::<f32>().expect("float32").as_ptr(),
                    width: panels.shape()[2],
                    out: Image {
                        data: results.data.wrapping_add(offset),
                        pixel: results.pixel.map(|stride| stride * step),
                        ..results
                    },
                    winograd: 0,
                    epilogue: None,
                }
            };
            let phases: Vec<Convolution> = (0..step * step).map(phase).collect();
            let products = size * size * kernel * kernel * channels * filters;
            let bytes = 4 * kernel * kernel * channels * filters;
            let name =
                format!("{size} x {size} x {channels} to {filters}, {kernel} x {kernel} / {step}");
            cases.run(&name, Workload::single((2 * products) as f64, bytes as f64), || {
                for phase in &phases {
                    // SAFETY: the operands have these sizes; the results of all phases are inside theirs.
                    unsafe { run(isa(), &runtime, black_box(phase)) };
                }
            });
        }
        cases.finish();
    }
}

criterion_group!(benches, convolution, transposed);
criterion_main!(benches);
