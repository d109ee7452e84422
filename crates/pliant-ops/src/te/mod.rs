//! Tensor expressions: the computation of an operator as a function from output indices to a scalar.
//!
//! A [`Tensor`] is a placeholder or the result of [`compute`]. An [`Expr`] is a scalar over index variables, size variables and
//! tensor elements. Both are immutable trees with shared nodes (`Arc`) and belong to no function. [`create_prim_func`] converts
//! tensors to a loop function. [`to_sym`] and [`from_sym`] convert sizes to and from the symbolic integers of a graph function.
//!
//! # Examples
//! ```
//! use pliant_ir::DType;
//! use pliant_ops::te;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The sums of the rows of a matrix.
//! let (n, k) = (te::var("n").expr(), te::var("k").expr());
//! let x = te::placeholder(vec![n.clone(), k.clone()], DType::Float32, "x");
//! let r = te::reduce_axis(k, "r");
//! let sums = te::compute(vec![n], "sums", |i| {
//!     te::sum(&x.at(&[i[0].clone(), r.var.expr()]), &[r.clone()])
//! });
//! let func = te::create_prim_func(&[x.into(), sums.into()])?;
//! assert_eq!(func.buffer_map.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//! | module | contents |
//! |---|---|
//! | `expr` | variables, expression nodes and their types; drops deep expressions without recursion |
//! | `expr_builders` | constants, operators with type promotion, intrinsics, reductions |
//! | `tensor` | tensors: [`placeholder`], [`compute`], run-time checks of a stage |
//! | `expr_traversal` | traversal without recursion, substitution, the size of an expression as a tree |
//! | `extern_stage` | [`extern_`]: stages that are lists of statements, and their builder [`Body`] |
//! | `tuple_reduction` | [`compute_tuple_reduction`]: reductions of several values at once |
//! | `scan`, `scan_dependences` | [`scan()`]: stages whose rows depend on earlier rows |
//! | `create_prim_func`, `create_extern_block` | [`create_prim_func()`] |
//! | `kernel_call` | [`KernelCall`]: calls of library kernels |
//! | `tensor_view` | [`TensorView`]: views of tensors as operands of library kernels |
//! | `stage_inlining` | inlines injective stages into the stages that read them |
//! | `sym_conversion` | conversions to and from [`pliant_ir::Sym`] |
//! | `expr_text` | the text of an expression |
//! | `computed_size_checks` | run-time checks that computed sizes are valid |

mod adjoint;
pub(crate) mod computed_size_checks;
mod create_extern_block;
mod create_prim_func;
mod expr;
mod expr_builders;
mod expr_text;
mod expr_traversal;
mod extern_stage;
mod kernel_call;
mod scalar_adjoint;
mod scan;
mod scan_dependences;
mod stage_inlining;
mod sym_conversion;
mod tensor;
mod tensor_view;
mod tuple_reduction;

pub use adjoint::adjoints;
pub(crate) use create_prim_func::stages_of;
pub use create_prim_func::{
    Arg, AssumedDims, CreatedPrimFunc, MAX_TERMS, create_prim_func, create_prim_func_assuming,
    create_prim_func_with_vars, placeholders_of,
};
pub use expr::{CustomReducer, Expr, ExprKind, IterVar, Reduce, Reducer, Var};
pub use expr_builders::*;
pub use expr_traversal::{
    fold, free_vars, post_order, redirect_loads, substitute, tensors_read, tree_size,
};
pub use extern_stage::{
    Body, Cell, Extern, Stmt, extern_, extern_of, outputs_of, replace_in_stmts,
};
pub use kernel_call::KernelCall;
pub use scan::scan;
pub use stage_inlining::inline_injective;
pub use sym_conversion::{VarMap, from_sym, simplify, to_sym};
pub use tensor::{
    Check, Compute, Tensor, TensorOp, check_axes, compute, compute_named, compute_over, placeholder,
};
pub use tensor_view::TensorView;
pub use tuple_reduction::{TupleReducer, TupleReduction, compute_tuple_reduction};

pub use pliant_ir::tir::intrin::IntrinResult;
pub use pliant_ir::tir::{BinOp, Intrin, IterKind, Ty};

use std::fmt;

/// An error in a tensor expression. The message is meant for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeError(pub String);

impl TeError {
    /// Creates an error with the given message.
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
