//! Pooling.

use pliant_tensor::DType::Float32;

use super::conv::{DILATIONS, KERNEL_SHAPE, PADDING, STRIDES};
use crate::reference::{Args, Result, Windows, indices};
use crate::{Attr, AttrDefault, AttrType, Dims, Kernel, Operand};

/// Maximum number of elements of a window: a kernel polls for interrupts between windows.
pub const MOST_ELEMENTS: i64 = 1 << 24;

/// The declaration.
pub static KERNEL: Kernel = Kernel {
    name: "pool",
    doc: "Pooling (ONNX `MaxPool`, and `AveragePool` without its padding) in up to 3 dims: the largest element of each window, \
          NaN if one is NaN, or the mean. Only elements of the input count: a window without any gives minus infinity or NaN. \
          Images of fewer dims have leading dims of size 1. Channels come last.",
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
        Attr {
            name: "kind",
            ty: AttrType::Choice(&["max", "mean"]),
            default: AttrDefault::Required,
            doc: "what is computed of a window",
        },
        Attr { doc: "the sizes of the windows, of at most 2^24 elements", ..KERNEL_SHAPE },
        STRIDES,
        Attr { doc: "the distances between elements of a window", ..DILATIONS },
        Attr { doc: "positions before the input that windows begin at", ..PADDING },
    ],
    derived: &[],
    relations: |call, sizes| {
        let shape = call.ints("kernel_shape");
        if shape.iter().fold(1i64, |n, &size| n.saturating_mul(size)) > MOST_ELEMENTS {
            return Err(format!(
                "attribute kernel_shape is {shape:?}, expected windows of at most {MOST_ELEMENTS} elements"
            ));
        }
        for name in ["x", "out"] {
            let strides = call.operand(name).map_or(&[][..], |view| view.strides());
            if sizes.get("channels") > 1 && strides.get(1) != Some(&1) {
                return Err(format!(
                    "operand {name} has strides {strides:?}, expected channels last"
                ));
            }
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
    let largest = args.call.int("kind") == 0;
    for [b, c, z, y, x] in indices([w.batch, w.filters, depth, height, width]) {
        let (mut value, mut count) = (if largest { f64::NEG_INFINITY } else { 0.0 }, 0);
        for tap in indices(w.kernel) {
            args.step(1)?;
            let Some([i, j, k]) = w.position([z, y, x], tap) else { continue };
            let element = args.get_at("x", &[b, c, i, j, k])?;
            count += 1;
            value = match largest {
                true if element.is_nan() || element > value => element,
                true => value,
                false => value + element,
            };
        }
        let result = if largest { value } else { value / f64::from(count) };
        args.set_at("out", &[b, c, z, y, x], result)?;
    }
    Ok(())
}
