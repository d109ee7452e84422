//! The entry point of the declared kernel `conv`.

use std::ptr::null;

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::kernels::conv::{KERNEL, residual_row, winograd_tile_minus_3};
use pliant_kernel_api::{Call, Kernel, Sizes, View};

use super::{Convolution, Image, run};
use crate::epilogue::{Epilogue, Residual};
use crate::kernel_entry_points::Implementation;
use pliant_machine::isa::isa;

/// The implementation of the kernel `conv` for float32.
pub struct Conv;

impl Implementation for Conv {
    const KERNEL: &'static Kernel = &KERNEL;

    unsafe fn run(runtime: &KernelRuntime, call: &Call, sizes: &Sizes) -> i64 {
        let size = |name| sizes.get(name);
        let epilogue = epilogue(call, sizes);
        let x = image(call.operand("x"));
        let convolution = Convolution {
            batch: size("batch"),
            channels: size("channels"),
            filters: size("filters"),
            groups: call.int("groups"),
            input: ["in_depth", "in_height", "in_width"].map(size),
            output: ["out_depth", "out_height", "out_width"].map(size),
            kernel: three_dims(call.ints("kernel_shape")),
            stride: three_dims(call.ints("strides")),
            dilation: three_dims(call.ints("dilations")),
            before: three_dims(call.ints("padding")),
            x: Image { data: x.data, batch: x.batch, channel: x.channel, pixel: x.pixel },
            weights: call.operand("weight").map_or(null(), |view| view.data.cast_const().cast()),
            width: call.int("panel_width"),
            winograd: winograd_tile_minus_3(call),
            out: image(call.operand("out")),
            epilogue: (!epilogue.is_identity()).then_some(epilogue),
        };
        // SAFETY: the call was checked, and the caller guarantees valid memory. The machine has `isa()`.
        unsafe { run(isa(), runtime, &convolution) }
    }
}

fn three_dims(list: &[i64]) -> [i64; 3] {
    list.try_into().expect("the kernel declares three numbers for this attribute")
}

/// Converts the operands and attributes of a call to an epilogue: bias, then residual, then activation.
fn epilogue(call: &Call, sizes: &Sizes) -> Epilogue {
    Epilogue {
        bias: call.operand("bias").map_or(null(), |view| view.data.cast_const().cast()),
        residual: call.operand("residual").map(|view| Residual {
            data: view.data.cast_const().cast(),
            batch: view.strides()[0],
            row: residual_row(call, sizes)
                .expect("a checked call has a residual with channels last"),
        }),
        ..Epilogue::of_call(call)
    }
}

/// Converts a tensor operand to a batch of images. Replaces the stride of a dim of size 1 by the
/// stride that it would have without gaps, so that the kernel can treat all pixels as one row.
fn image(view: Option<&View>) -> Image<*mut f32> {
    let view = view.expect("a checked call has all required operands");
    let (shape, strides) = (view.shape(), view.strides());
    let mut pixel = three_dims(&strides[2..]);
    for dim in [1, 0] {
        if shape[2 + dim] == 1 {
            pixel[dim] = pixel[dim + 1].saturating_mul(shape[3 + dim]);
        }
    }
    Image { data: view.data.cast(), batch: strides[0], channel: strides[1], pixel }
}
