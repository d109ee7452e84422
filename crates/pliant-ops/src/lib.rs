//! The operators: their declarations, and the tensor expressions that define them.
//!
//! | module | owns |
//! |---|---|
//! | [`te`] | tensor expressions and the loop functions made from them |
//! | [`decl`] | [`OpDecl`]: the declaration of an operator |
//! | `ops` | the declarations, one file per group, and the table of all operators |
//! | [`mod@registry`] | [`registry()`]: operators by name, as required by the IR |
//! | [`infer`], [`attrs`], [`rules`], [`prove`] | type inference: context, rules, proofs |
//! | [`broadcast`] | broadcasting, proved statically or decided at run time |
//! | [`equation`] | the labels of an einsum's dims |
//! | [`dynamic`] | calls whose operands have types only known at run time |
//! | [`mod@legalize`] | lowers calls to loop functions |
//! | [`mod@size_checks`] | the sizes for which a call is valid |
//! | [`module_builder`] | [`ModuleBuilder`]: modules under construction, `emit_te` |
//! | [`topi`] | operators as functions over tensor expressions |
//! | [`user`] | operators registered from a tensor expression alone |

pub mod attrs;
pub mod broadcast;
pub mod decl;
pub mod dynamic;
pub mod equation;
pub mod infer;
pub mod legalize;
pub mod module_builder;
mod ops;
pub mod prove;
pub mod registry;
pub mod rules;
pub mod size_checks;
pub mod te;
pub mod topi;
pub mod user;

pub use decl::{Numbers, OpDecl, Pattern};
pub use legalize::{
    LegalizeError, Legalized, TirCall, legalize, legalize_call, legalize_with, needs_shapes,
    numbers_of,
};
pub use module_builder::{ModuleBuilder, call_tir, te_call, te_call_sized};
pub use registry::{Registry, registry};
pub use size_checks::size_checks;
pub use user::{TeArg, TeCall, UserOpSpec, register_user_op};
