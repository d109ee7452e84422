//! The table of all operators. Each group of operators has a file. To add an operator, add its declaration to the `DECLS` of its
//! group's file.
//!
//! | module | operators |
//! |---|---|
//! | `unary`, `binary`, `ternary` | elementwise operators with one, two or three operands; `where`, `clip` and `astype` are among them |
//! | `reductions` | reductions over axes, such as `sum` and `argmax`; cumulative sums and products |
//! | `linear_algebra` | `matmul`, `linear`, `einsum` and other matrix products |
//! | `nn` | activations, attention, convolutions, losses, normalizations, padding, pooling, softmax |
//! | `recurrent` | `lstm`, `gru` and `rnn` |
//! | `image`, `vision` | resizing and sampling of images; boxes and regions of object detection |
//! | `quantize` | `quantize` and `dequantize`; samples from random numbers |
//! | `gradient_operators` | `grad.no_grad`, checkpoints, and gradients that are operators of their own |
//! | `fourier_transforms` | `dft` and `stft` |
//! | `sort` | `sort`, `argsort`, `topk` and `median` |
//! | `manipulate` | operators that move elements or change the shape, such as `reshape`, `permute_dims`, `concat` and `tile` |
//! | `indexing` | slices, gathers and scatters |
//! | `tensor_creation` | `full`, `zeros`, `arange`, `eye` and similar operators; triangles of matrices |
//! | `data_dependent_shapes` | `nonzero` and `unique`, whose result shapes depend on values |
//! | `item_and_trip_count` | operators that return scalars |
//! | `tensor_properties` | operators that return properties of a tensor, such as its rank |
//! | `calls_and_memory` | calls of functions and closures, loops, and the operators that lowering inserts |
//! | `kernel_call` | `call_kernel`, which calls a library kernel |
//! | `parallel_row_loops` | no operators: loops over rows, which several groups use |

mod binary;
mod calls_and_memory;
mod data_dependent_shapes;
mod fourier_transforms;
mod gradient_operators;
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
    gradient_operators::DECLS,
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
