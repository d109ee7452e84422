//! The table of all operators, one file per group. To add an operator, write its declaration in the file of its
//! group and give it a row in that file's `DECLS`.

mod base;
mod binary;
mod unary;

use crate::decl::OpDecl;

/// All operators of the library, group by group.
pub static GROUPS: &[&[OpDecl]] = &[base::DECLS, binary::DECLS, unary::DECLS];
