//! The table of all operators. Each group of operators has a file. To add an operator, add its declaration to the `DECLS` of its
//! group's file.

mod binary;
mod calls_and_memory;
mod data_dependent_shapes;
mod fourier_transforms;
mod image;
mod indexing;
mod item_and_trip_count;
mod kernel_call;
mod linear_algebra;
mod manipulate;
mod nn;
mod parallel_row_loops;
mod quantize;
mod recurrent;
mod reductions;
mod sort;
mod tensor_creation;
mod tensor_properties;
mod ternary;
mod unary;
mod vision;

use crate::op_declaration::OpDecl;

pub use manipulate::squeezed_axes_to_check;

/// All operators of the library by group.
pub static GROUPS: &[&[OpDecl]] = &[
    calls_and_memory::DECLS,
    binary::DECLS,
    tensor_creation::DECLS,
    tensor_creation::eye_and_hamming::DECLS,
    image::col2im::DECLS,
    image::grid_sample::DECLS,
    image::resize::DECLS,
    indexing::DECLS,
    indexing::tensor_scatter::DECLS,
    indexing::gather::DECLS,
    indexing::scatter::DECLS,
    indexing::dynamic_slice::DECLS,
    tensor_properties::DECLS,
    kernel_call::DECLS,
    linear_algebra::DECLS,
    linear_algebra::einsum::DECLS,
    manipulate::DECLS,
    manipulate::layout_transform::DECLS,
    manipulate::concat_split::DECLS,
    manipulate::rearrange::DECLS,
    manipulate::collapse_sum::DECLS,
    nn::activation::DECLS,
    nn::attention::DECLS,
    nn::batch_norm::DECLS,
    nn::conv::DECLS,
    nn::conv_transpose::DECLS,
    nn::group_norm::DECLS,
    nn::loss::DECLS,
    nn::layer_norm::DECLS,
    nn::pad::DECLS,
    nn::pool::DECLS,
    nn::pixel_shuffle::DECLS,
    nn::softmax::DECLS,
    quantize::DECLS,
    recurrent::DECLS,
    item_and_trip_count::DECLS,
    data_dependent_shapes::DECLS,
    fourier_transforms::DECLS,
    sort::DECLS,
    reductions::DECLS,
    reductions::cumulative::DECLS,
    ternary::DECLS,
    unary::DECLS,
    vision::box_decoding::DECLS,
    vision::nms::DECLS,
    vision::roi_pooling::DECLS,
];

/// The element of a tensor at a linear index in row-major order.
fn flat_at(x: &crate::te::Tensor, position: &crate::te::Expr) -> crate::te::Expr {
    use crate::te;
    let (mut rest, mut at) = (position.clone(), Vec::new());
    for (k, dim) in x.shape().iter().enumerate().rev() {
        at.push(if k == 0 { rest.clone() } else { te::floormod(&rest, dim) });
        rest = te::floordiv(&rest, dim);
    }
    at.reverse();
    x.at(&at)
}
