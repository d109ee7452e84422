//! The table of all operators, one file per group. To add an operator, write its declaration in the file of its
//! group and give it a row in that file's `DECLS`.

mod base;
mod binary;
mod create;
mod index;
mod linear_algebra;
mod manipulate;
mod nn;
mod set;
mod statistical;
mod unary;

use crate::decl::OpDecl;

/// All operators of the library, group by group.
pub static GROUPS: &[&[OpDecl]] = &[
    base::DECLS,
    binary::DECLS,
    create::DECLS,
    index::DECLS,
    linear_algebra::DECLS,
    manipulate::DECLS,
    nn::DECLS,
    set::DECLS,
    statistical::DECLS,
    unary::DECLS,
];
