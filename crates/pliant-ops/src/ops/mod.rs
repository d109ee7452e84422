//! The table of all operators. Each group of operators has a file. To add an operator, add its declaration to the `DECLS` of its
//! group's file.

mod binary;
mod create;
mod data_dependent;
mod image;
mod index;
mod inspect;
mod kernel_call;
mod linear_algebra;
mod manipulate;
mod nn;
mod quantize;
mod recurrent;
mod row_loops;
mod runtime;
mod scalar;
mod signal;
mod sort;
mod statistical;
mod ternary;
mod unary;
mod vision;

use crate::decl::OpDecl;

pub use manipulate::squeezed_axes_to_check;

/// All operators of the library by group.
pub static GROUPS: &[&[OpDecl]] = &[
    runtime::DECLS,
    binary::DECLS,
    create::DECLS,
    create::eye_and_hamming::DECLS,
    image::col2im::DECLS,
    image::grid_sample::DECLS,
    image::resize::DECLS,
    index::DECLS,
    index::tensor_scatter::DECLS,
    index::gather::DECLS,
    index::scatter::DECLS,
    index::dynamic_slice::DECLS,
    inspect::DECLS,
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
    scalar::DECLS,
    data_dependent::DECLS,
    signal::DECLS,
    sort::DECLS,
    statistical::DECLS,
    statistical::cumulative::DECLS,
    ternary::DECLS,
    unary::DECLS,
    vision::boxes::DECLS,
    vision::nms::DECLS,
    vision::roi::DECLS,
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
