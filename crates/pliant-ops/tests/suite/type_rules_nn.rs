//! Tests of the type rules of neural-network and image operators, and of the growth of sizes through many layers.

use pliant_ir::op::Op;

use crate::op_call_text::{Calls, attrs};
use crate::type_rules::check;

#[test]
fn convolutions() {
    check(
        r#"
        nn.conv2d | float32(n, 3, h, w), float32(8, 3, 3, 3) | padding=1 | R.Tensor((n, 8, h, w), dtype="float32")
        nn.conv2d | float32(n, 3, h, h), float32(8, 3, 3, 3) | padding=1; strides=2 | R.Tensor((n, 8, (h + 1) // 2, (h + 1) // 2), dtype="float32")
        nn.conv2d | float32(1, 3, 7, 9), float32(8, 3, 3, 3) | | R.Tensor((1, 8, 5, 7), dtype="float32")
        nn.conv2d | float32(1, 3, 9, 9), float32(8, 3, 3, 3) | dilation=2; padding=[0, 1, 2, 3] | R.Tensor((1, 8, 7, 9), dtype="float32")
        nn.conv2d | float32(n, h, w, 4), float32(1, 1, 2, 8) | groups=2; data_layout=NHWC; kernel_layout=HWIO | R.Tensor((n, h, w, 8), dtype="float32")
        nn.conv2d | float32(n, h, w, 4), float32(1, 1, 4, 8) | data_layout=NHWC; kernel_layout=HWIO; out_layout=NCHW | R.Tensor((n, 8, h, w), dtype="float32")
        nn.conv2d | int8(n, 4, h, w), int8(8, 4, 1, 1) | out_dtype=int32 | R.Tensor((n, 8, h, w), dtype="int32")
        nn.conv2d | int8(n, 4, h, w), uint8(8, 4, 1, 1) | | !data is int8, but weight is uint8
        nn.conv2d | float32[4], float32(8, 4, 1, 1) | | R.Tensor(dtype="float32", ndim=4)
        nn.conv2d | float32?, float32? | | R.Tensor(dtype="float32", ndim=4)
        nn.conv2d | any, any | | R.Tensor(ndim=4)
        nn.conv2d | float32[3], any | | !data must have 4 dims
        nn.conv2d | float32(n, c, h, w), float32(o, c, k, k) | | R.Tensor((n, o, h - k + 1, w - k + 1), dtype="float32")
        nn.conv2d | float32(n, c, h, w), float32(o, i, 1, 1) | | R.Tensor((n, o, h, w), dtype="float32")
        nn.conv1d | float32(n, 4, w), float32(6, 2, 3) | groups=2; strides=3 | R.Tensor((n, 6, w // 3), dtype="float32")
        nn.conv3d | float32(n, 1, d, h, w), float32(2, 1, 1, 3, 1) | padding=[0, 1, 0] | R.Tensor((n, 2, d, h, w), dtype="float32")
        nn.conv2d_transpose | float32(n, 4, h, w), float32(4, 2, 2, 2) | strides=2 | R.Tensor((n, 2, h * 2, w * 2), dtype="float32")
        nn.conv2d_transpose | float32(n, 4, h, 5), float32(4, 2, 3, 3) | strides=2; padding=1; output_padding=1; groups=2 | R.Tensor((n, 4, h * 2, 10), dtype="float32")
        nn.conv1d_transpose | float32(n, 4, w), float32(4, 2, 3) | padding=[1, 0] | R.Tensor((n, 2, w + 1), dtype="float32")
        nn.conv1d_transpose | ?, ? | | R.Tensor(ndim=3)
        nn.conv1d_transpose | float32(n, 4, w), float32(4, 2, 3) | output_padding=1 | !but must be less than 1, the larger of stride and dilation
        "#,
    );
}

#[test]
fn pools_and_padding() {
    check(
        r#"
        nn.max_pool2d | float32(n, c, h, w) | pool_size=2; strides=2 | R.Tensor((n, c, h // 2, w // 2), dtype="float32")
        nn.max_pool2d | float32(n, c, h, 7) | pool_size=3; strides=2; padding=1; ceil_mode=true | R.Tensor((n, c, h // 2 + 1, 4), dtype="float32")
        nn.max_pool2d | int8[4] | pool_size=2 | R.Tensor(dtype="int8", ndim=4)
        nn.max_pool2d | any | | R.Tensor(ndim=4)
        nn.avg_pool1d | float32(n, c, w) | pool_size=2 | R.Tensor((n, c, w - 1), dtype="float32")
        nn.avg_pool3d | float32(1, 2, 4, 4, 4) | pool_size=2; layout=NCDHW | R.Tensor((1, 2, 3, 3, 3), dtype="float32")
        nn.adaptive_avg_pool2d | float32(n, c, h, w) | output_size=1 | R.Tensor((n, c, 1, 1), dtype="float32")
        nn.adaptive_avg_pool2d | float32(n, c, h, w) | | R.Tensor((n, c, h, w), dtype="float32")
        nn.adaptive_avg_pool1d | ? | output_size=[3] | R.Tensor(ndim=3)
        nn.pad | float32(n, 4) | pad_width=[1, 2, 0, 3] | R.Tensor((n + 3, 7), dtype="float32")
        nn.pad | float32(n, 4) | pad_width=[0, 0, -1, -2] | R.Tensor((n, 1), dtype="float32")
        nn.pad | int8? | pad_width=[1, 1]; pad_mode=reflect | R.Tensor(dtype="int8", ndim=1)
        nn.pad | float32(n) | pad_width=[n, 1] | !pad_width must be a list of integers
        nn.pixel_shuffle | float32(n, 8, h, w) | upscale_factor=2 | R.Tensor((n, 2, h * 2, w * 2), dtype="float32")
        nn.pixel_shuffle | float32[3] | upscale_factor=2 | R.Tensor(dtype="float32", ndim=3)
        nn.batch_flatten | float32(n, m, 3) | | R.Tensor((n, m * 3), dtype="float32")
        nn.batch_flatten | float32? | | R.Tensor(dtype="float32", ndim=2)
        "#,
    );
}

#[test]
fn norms_losses_and_attention() {
    check(
        r#"
        nn.batch_norm | float32(n, 4, h), float32(4), float32(4), float32(4), float32(4) | axis=1 | R.Tuple(R.Tensor((n, 4, h), dtype="float32"), R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32"))
        nn.batch_norm | float32?, any, any, any, any | axis=1 | R.Tuple(R.Tensor(dtype="float32"), R.Tensor(dtype="float32", ndim=1), R.Tensor(dtype="float32", ndim=1))
        nn.group_norm | float32(n, c, h), float32(c), float32(c) | num_groups=2; channel_axis=1; axes=[2] | R.Tensor((n, c, h), dtype="float32")
        nn.instance_norm | float32[4], any, any | channel_axis=1; axes=[2, 3] | R.Tensor(dtype="float32", ndim=4)
        nn.nll_loss | float32(n, c, d), int64(n, d) | | R.Tensor((), dtype="float32")
        nn.nll_loss | float32(n, c, d), int64(m, d) | reduction="none" | R.Tensor((n, d), dtype="float32")
        nn.nll_loss | float32?, int64[2] | reduction="none" | R.Tensor(dtype="float32", ndim=2)
        nn.cross_entropy_with_logits | float32(n, c), float32(n, c) | | R.Tensor((), dtype="float32")
        nn.attention | float32(b, s, 8, 4), float32(b, t, 2, 4), float32(b, t, 2, 6) | | R.Tensor((b, s, 8, 6), dtype="float32")
        nn.attention | float16[4], any, any | | R.Tensor(dtype="float16", ndim=4)
        nn.attention_bias | float32(b, s, 8, 4), float32(b, t, 8, 4), float32(b, t, 8, 4), float32(s, t) | | R.Tensor((b, s, 8, 4), dtype="float32")
        nn.attention_var_len | float32(1, s, 2, 4), float32(1, s, 2, 4), float32(1, s, 2, 4), int32(p), int(5) | | R.Tensor((1, s, 2, 4), dtype="float32")
        nn.dropout | float32(n) | | R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32"))
        nn.prelu | float32(n, c), float32(c) | | R.Tensor((n, c), dtype="float32")
        nn.prelu | any, any | | R.Tensor
        "#,
    );
}

#[test]
fn images() {
    check(
        r#"
        image.resize2d | float32(n, c, h, w), shape(h * 2, 7) | | R.Tensor((n, c, h * 2, 7), dtype="float32")
        image.resize2d | uint8(n, h, w, 3), shape(7) | layout=NHWC; out_dtype=float32 | R.Tensor((n, 7, 7, 3), dtype="float32")
        image.resize2d | float32?, shape? | | R.Tensor(dtype="float32", ndim=4)
        image.resize3d | float32(n, c, d, h, w), shape(2, 3, 4) | | R.Tensor((n, c, 2, 3, 4), dtype="float32")
        image.grid_sample | float32(n, c, h, w), float32(n, 2, a, b) | | R.Tensor((n, c, a, b), dtype="float32")
        image.grid_sample | float32(n, c, d, h, w), float32(n, 3, a, b, e) | | R.Tensor((n, c, a, b, e), dtype="float32")
        image.grid_sample | float32[4], any | | R.Tensor(dtype="float32", ndim=4)
        image.affine_grid | float32(n, 2, 3), shape(h, w) | | R.Tensor((n, 2, h, w), dtype="float32")
        image.affine_grid | float32(n, 3, 4), shape(2, 3, 4) | | R.Tensor((n, 3, 2, 3, 4), dtype="float32")
        "#,
    );
}

#[test]
fn elementwise_with_unknown_operands() {
    check(
        r#"
        bitwise_and | int32(n), int32(n) | | R.Tensor((n,), dtype="int32")
        left_shift | uint8[2], uint8() | | R.Tensor(dtype="uint8", ndim=2)
        atan2 | any, float32(n, 4) | | R.Tensor(dtype="float32")
        atan2 | float32(n), float(2) | | R.Tensor((n,), dtype="float32")
        clip | float32(n), float(0), float(6) | | R.Tensor((n,), dtype="float32")
        clip | int8(n), int(0), int(6) | | R.Tensor((n,), dtype="int8")
        clip | any, float(0), float(6) | | R.Tensor
        isnan | ? | | R.Tensor(dtype="bool")
        masked_fill | float32(n, 4), bool(4), float(2) | | R.Tensor((n, 4), dtype="float32")
        ewise_fma | float32(n, 1), float32(m), float32[2] | | R.Tensor(dtype="float32", ndim=2)
        wrap_param | int32(4) | | R.Tensor((4,), dtype="float32")
        "#,
    );
}

/// Checks that the sizes after fifty layers are still small formulas such as `(h + 31) // 32`,
/// because nested divisions are merged into one.
#[test]
fn sizes_stay_small_after_fifty_layers() {
    let mut calls = Calls::new();
    let mut data = calls.arg("float32(n, 8, h, w)");
    let weight = calls.arg("float32(8, 8, 3, 3)");
    for layer in 0..50 {
        let attr_text = if layer % 10 == 9 { "padding=1; strides=2" } else { "padding=1" };
        let call = calls.builder.call_op(
            Op::new("relax.nn.conv2d"),
            &[data, weight],
            attrs(attr_text),
            &[],
        );
        let var = calls.builder.emit(call.expect("the layers fit"));
        data = calls.func().var_expr(var);
    }
    let ty = calls.func().expr_ty(data);
    let text = pliant_ir::print::type_text(calls.func(), ty);
    assert_eq!(text, r#"R.Tensor((n, 8, (h + 31) // 32, (w + 31) // 32), dtype="float32")"#);
}
