//! The table of all operators, one file per group or family. To add an operator, write its declaration in the file of its
//! group and give it a row in that file's `DECLS`.

mod base;
mod binary;
mod create;
mod image;
mod index;
mod linear_algebra;
mod manipulate;
mod nn;
mod set;
mod statistical;
mod ternary;
mod unary;

use crate::decl::OpDecl;

/// All operators of the library, group by group.
pub static GROUPS: &[&[OpDecl]] = &[
    base::DECLS,
    binary::DECLS,
    create::DECLS,
    image::grid::DECLS,
    image::resize::DECLS,
    index::DECLS,
    linear_algebra::DECLS,
    manipulate::DECLS,
    nn::activation::DECLS,
    nn::attention::DECLS,
    nn::batch_norm::DECLS,
    nn::conv::DECLS,
    nn::conv_transpose::DECLS,
    nn::group_norm::DECLS,
    nn::loss::DECLS,
    nn::norm::DECLS,
    nn::pad::DECLS,
    nn::pool::DECLS,
    nn::shuffle::DECLS,
    nn::softmax::DECLS,
    set::DECLS,
    statistical::DECLS,
    ternary::DECLS,
    unary::DECLS,
];
