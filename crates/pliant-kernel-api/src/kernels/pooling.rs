//! The declaration of the kernel `pool`: maximum and mean pooling of images.

use pliant_tensor::DType::Float32;

use super::conv::{DILATIONS, KERNEL_SHAPE, PADDING, STRIDES};
use crate::reference::{Args, Result, Windows, indices};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// Maximum number of elements of a pooling window. The limit bounds the time between polls of the
/// interrupt flag, because the kernel polls only between windows.
pub const MAX_WINDOW_ELEMENTS: i64 = 1 << 24;

/// Maximum number of columns of a pooling window, if channels are not the last dim. The kernel stores one index per column
/// of a window in an array of this length.
pub const MAX_WINDOW_COLUMNS: i64 = 512;
/// Maximum distance, in columns of the image, between the first and the last column of a pooling window, if channels are
/// not the last dim. The kernel's buffer for a strip of columns has room for two such windows.
pub const MAX_WINDOW_SPAN: i64 = 2047;

/// Whether the kernel `pool` supports windows with `columns` columns and this dilation, if channels
/// are not the last dim.
pub fn supports_columns(columns: i64, dilation: i64) -> bool {
    columns <= MAX_WINDOW_COLUMNS && (columns - 1).saturating_mul(dilation) <= MAX_WINDOW_SPAN
}

/// The dim of an image along which elements are adjacent in memory, in both the input and the
/// result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContiguousDim {
    /// Channels are contiguous: they are the last dim.
    Channels,
    /// Columns are contiguous, such as in images with channels first.
    Columns,
}

/// Returns the dim that is contiguous in both operands of a call; `None` if the kernel does not support the layout.
pub fn contiguous_dim(call: &Call, sizes: &Sizes) -> Option<ContiguousDim> {
    let is_contiguous = |dim: usize, columns: &str, name: &str| {
        let size = sizes.get(if dim == 1 { "channels" } else { columns });
        size <= 1 || call.operand(name).is_some_and(|view| view.strides().get(dim) == Some(&1))
    };
    let both_contiguous =
        |dim| is_contiguous(dim, "in_width", "x") && is_contiguous(dim, "out_width", "out");
    let width = |name: &str| call.ints(name).get(2).copied().unwrap_or(1);
    let supported = supports_columns(width("kernel_shape"), width("dilations"));
    match (both_contiguous(1), both_contiguous(4) && supported) {
        // With one channel, contiguous columns give longer vectors.
        (true, columns) if sizes.get("channels") > 1 || !columns => Some(ContiguousDim::Channels),
        (_, true) => Some(ContiguousDim::Columns),
        _ => None,
    }
}

/// The declaration of the kernel `pool`: maximum and mean pooling.
pub static KERNEL: Kernel = Kernel {
    name: "pool",
    doc: "Pooling (ONNX `MaxPool`, and `AveragePool` that does not count padding) in up to 3 dims: the largest element of each window, \
          NaN if one is NaN, or the mean. Padding does not count: a window that is all padding gives minus infinity or NaN. \
          Images of fewer dims have leading dims of size 1. In both operands, either channels or columns are adjacent in memory.",
    operands: &[
        Operand::input(
            "x",
            Float32,
            Dims::Fixed(&["batch", "channels", "in_depth", "in_height", "in_width"]),
            "images",
        )
        .strided(),
        Operand::output(
            "out",
            Float32,
            Dims::Fixed(&["batch", "channels", "out_depth", "out_height", "out_width"]),
            "results",
        )
        .strided(),
    ],
    attrs: &[
        Attr::new(
            "kind",
            AttrType::Choice(&["max", "mean"]),
            AttrDefault::Required,
            "whether to compute the maximum or the mean of a window",
        ),
        Attr { doc: "the sizes of the windows, of at most 2^24 elements", ..KERNEL_SHAPE },
        STRIDES,
        Attr { doc: "the distances between elements of a window", ..DILATIONS },
        Attr { doc: "the padding before the input", ..PADDING },
    ],
    derived: &[],
    relations: |call, sizes| {
        let shape = call.ints("kernel_shape");
        if shape.iter().fold(1i64, |n, &size| n.saturating_mul(size)) > MAX_WINDOW_ELEMENTS {
            return Err(format!(
                "attribute 'kernel_shape' is {shape:?}, expected windows of at most {MAX_WINDOW_ELEMENTS} elements"
            ));
        }
        let (Some(x), Some(out)) = (call.operand("x"), call.operand("out")) else { return Ok(()) };
        if contiguous_dim(call, sizes).is_none() {
            let (x, out) = (x.strides(), out.strides());
            return Err(format!(
                "operand 'x' has strides {x:?}, and operand 'out' has strides {out:?}; expected stride 1 along the channels of both, \
                 or stride 1 along the columns of both. Stride 1 along columns also requires windows of at most \
                 {MAX_WINDOW_COLUMNS} columns, whose first and last columns are at most {MAX_WINDOW_SPAN} apart"
            ));
        }
        Ok(())
    },
    flops: |call, sizes| {
        let size = |name: &str| sizes.get(name) as f64;
        let taps: f64 = call.ints("kernel_shape").iter().map(|&n| n as f64).product();
        let results = ["batch", "channels", "out_depth", "out_height", "out_width"].map(size);
        taps * results.iter().product::<f64>()
    },
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let w = Windows::of_pool(args);
    let [depth, height, width] = w.output;
    let is_max = args.call.int("kind") == 0;
    for [b, c, z, y, x] in indices([w.batch, w.filters, depth, height, width]) {
        let (mut value, mut count) = (if is_max { f64::NEG_INFINITY } else { 0.0 }, 0);
        for tap in indices(w.kernel) {
            args.step(1)?;
            let Some([i, j, k]) = w.position([z, y, x], tap) else { continue };
            let element = args.get_at("x", &[b, c, i, j, k])?;
            count += 1;
            value = match is_max {
                true if element.is_nan() || element > value => element,
                true => value,
                false => value + element,
            };
        }
        let result = if is_max { value } else { value / f64::from(count) };
        args.set_at("out", &[b, c, z, y, x], result)?;
    }
    Ok(())
}
