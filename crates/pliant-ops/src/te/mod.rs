//! Tensor expressions: the computation of an operator, written as a function from output indices to
//! a scalar.
//!
//! A [`Tensor`] is a placeholder or the result of [`compute`]. An [`Expr`] is a scalar over index
//! variables, size variables and tensor elements. Both are shared trees (`Arc`) that belong to no
//! function. [`create_prim_func`] turns tensors into a loop function. [`to_sym`] and [`from_sym`]
//! convert sizes to and from the symbolic integers of a graph function.
//!
//! | module | owns |
//! |---|---|
//! | `expr` | variables, nodes, their types, dropping without recursion |
//! | `build` | constants, operators with type matching, intrinsics, reductions |
//! | `tensor` | tensors, `placeholder`, `compute`, run-time checks of a stage |
//! | `walk` | traversal without recursion, substitution, written-out size |
//! | `extern_op` | [`extern_`]: stages made of statements, and their builder |
//! | `reduce_several` | [`compute_several`]: reductions of several values at once |
//! | `scan` | [`scan`]: stages whose rows depend on the rows before them |
//! | `create`, `create_extern` | [`create_prim_func`] |
//! | `kernel_call` | [`KernelCall`]: calls of library kernels |
//! | `tensor_view` | [`TensorView`]: views of tensors as operands of kernels |
//! | `inline` | inlining of injective stages into their readers |
//! | `bridge` | conversions to and from [`pliant_ir::Sym`] |
//! | `print` | the text of an expression |
//! | `sizes` | checks of computed sizes that may be negative |

mod bridge;
mod build;
mod create;
mod create_extern;
mod expr;
mod extern_op;
mod inline;
mod kernel_call;
mod print;
mod reduce_several;
mod scan;
mod scan_order;
pub(crate) mod sizes;
mod tensor;
mod tensor_view;
mod walk;

pub use bridge::{VarMap, from_sym, simplify, to_sym};
pub use build::*;
pub(crate) use create::stages_of;
pub use create::{
    Arg, Created, MAX_TERMS, Taken, create_prim_func, create_prim_func_taken,
    create_prim_func_with_vars, placeholders_of,
};
pub use expr::{CustomReducer, Expr, ExprKind, IterVar, Reduce, Reducer, Var};
pub use extern_op::{Body, Cell, Extern, Stmt, extern_, extern_of, outputs_of, with_parts};
pub use inline::inline_injective;
pub use kernel_call::KernelCall;
pub use reduce_several::{SeveralReduced, SeveralReducer, compute_several};
pub use scan::scan;
pub use tensor::{
    Check, Compute, Tensor, TensorOp, check_axes, compute, compute_named, compute_over, placeholder,
};
pub use tensor_view::TensorView;
pub use walk::{fold, free_vars, post_order, read_from, substitute, tensors_read, tree_size};

pub use pliant_ir::tir::intrin::IntrinResult;
pub use pliant_ir::tir::{BinOp, Intrin, IterKind, Ty};

use std::fmt;

/// An error in a tensor expression. The text is meant for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeError(pub String);

impl TeError {
    /// An error with that text.
    pub fn new(message: impl Into<String>) -> Self {
        TeError(message.into())
    }
}

impl fmt::Display for TeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TeError {}
