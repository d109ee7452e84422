//! The operators that comparable compilers have but this library lacks, each with the reason.

/// The names of the operators in the namespace `R` of released versions of comparable compilers, by
/// group. Names that construct types, functions or blocks instead of operator calls are not
/// included.
const COMPARABLE_OPERATORS: &str = "
    null_value call_tir call_tir_with_grad call_tir_inplace call_dps_packed call_py_func call_builtin_with_ctx
    make_closure invoke_closure invoke_pure_closure call_inplace_packed call_pure_packed print assert_op shape_of size
    tensor_to_shape shape_to_tensor to_vdevice hint_on_device

    add subtract multiply divide floor_divide mod floor_mod power atan2 log_add_exp maximum minimum equal not_equal less
    less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift
    right_shift

    abs acos acosh asin asinh atan atanh bitwise_not ceil clip cos cosh erf exp floor isfinite isinf isnan log
    logical_not negative round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc

    broadcast_to collapse_sum_like collapse_sum_to concat expand_dims flatten flip gather_elements gather_nd index_put
    index_tensor layout_transform meshgrid one_hot permute_dims repeat reshape reverse_sequence scatter_elements
    scatter_nd slice_scatter split squeeze stack tile

    nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.max_pool1d
    nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d
    nn.adaptive_avg_pool3d nn.pad nn.pixel_shuffle nn.relu nn.relu6 nn.leakyrelu nn.prelu nn.gelu nn.gelu_tanh nn.selu
    nn.silu nn.softplus nn.softmax nn.log_softmax nn.batch_norm nn.layer_norm nn.group_norm nn.instance_norm nn.rms_norm
    nn.dropout nn.cross_entropy_with_logits nn.nll_loss nn.attention nn.attention_bias nn.attention_var_len
    nn.batch_flatten

    full full_like ones ones_like zeros zeros_like eye eye_like arange hamming_window tril triu

    max mean min prod std sum cumprod cumsum variance median

    unique nonzero where argmax argmin bucketize sort argsort topk take strided_slice dynamic_strided_slice matmul linear
    einsum outer

    image.resize2d image.resize3d image.grid_sample image.affine_grid vision.all_class_non_max_suppression
    vision.non_max_suppression vision.get_valid_counts vision.multibox_transform_loc vision.roi_align vision.roi_pool

    quantize dequantize multinomial_from_uniform ewise_fma masked_fill astype wrap_param

    ccl.allreduce ccl.allgather ccl.broadcast_from_worker0 ccl.scatter_from_worker0 dist.annotate_sharding
    dist.redistribute dist.redistribute_replica_to_shard dist.call_tir_local_view

    grad.no_grad grad.start_checkpoint grad.end_checkpoint grad.nll_loss_backward grad.max_pool2d_backward
    grad.avg_pool2d_backward grad.take_backward

    memory.alloc_storage memory.alloc_tensor memory.kill_storage memory.kill_tensor memory.view
    memory.ensure_zero_offset vm.alloc_storage vm.alloc_tensor vm.kill_object vm.call_tir_dyn builtin.alloc_tensor
    builtin.stop_lift_params

    inspect.tensor_stride_i inspect.tensor_shape_i inspect.tensor_ndim inspect.tensor_dtype_code
    inspect.tensor_dtype_bits inspect.tensor_dtype_lanes inspect.tensor_byte_offset inspect.tensor_elem_offset
";

/// The reasons why operators are not supported, by prefixes of their names.
pub const REASONS: &[(&[&str], &str)] = &[
    (&["call_py_func"], "The script parser reads it as `call_pure_packed`."),
    (&["to_vdevice", "hint_on_device"], "The CPU is the only device."),
    (&["ccl.", "dist."], "Programs run in one process and are not distributed."),
];

/// The operators of comparable compilers that are not supported, each with the reason.
pub fn unsupported_operators(has: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str)> {
    let missing = COMPARABLE_OPERATORS.split_whitespace().filter(|name| !has(name));
    missing
        .map(|name| {
            let reason =
                REASONS.iter().find(|(names, _)| names.iter().any(|n| name.starts_with(n)));
            let (_, why) = reason.unwrap_or_else(|| panic!("{name} is absent without a reason"));
            (name, *why)
        })
        .collect()
}
