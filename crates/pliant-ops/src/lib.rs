//! The operators: their declarations, type rules, and lowering to tensor expressions.
//!
//! | module | contents |
//! |---|---|
//! | [`te`] | tensor expressions, and the creation of loop functions from them |
//! | [`decl`] | [`OpDecl`]: the declaration of an operator |
//! | `ops` | the declarations, one file per group, and the table of all operators |
//! | [`mod@registry`] | [`registry()`]: looks up operators by name for the IR |
//! | [`infer`], [`attrs`] | the context of type inference: operands and attributes of a call |
//! | [`shared_rules`] | type rules and lowering rules that several operators share |
//! | [`size_proofs`] | proofs of relations between symbolic sizes |
//! | [`broadcast`] | broadcasting with symbolic sizes, decided at compile time or at run time |
//! | [`einsum_equation`] | the equation of an einsum |
//! | [`dynamic_calls`] | calls whose operands have a rank or data type that is only known at run time |
//! | [`mod@legalize`] | lowers calls to loop functions, views or packed functions |
//! | [`mod@size_checks`] | the conditions on sizes that a call checks at run time |
//! | [`module_builder`] | [`ModuleBuilder`]: builds modules and emits tensor expressions into them |
//! | [`topi`] | the operators as functions on tensors of tensor expressions |
//! | [`user_ops`] | operators that the user registers with a tensor expression |

pub mod attrs;
pub mod broadcast;
pub mod decl;
pub mod dynamic_calls;
pub mod einsum_equation;
pub mod infer;
pub mod legalize;
pub mod module_builder;
mod ops;
pub mod registry;
pub mod shared_rules;
pub mod size_checks;
pub mod size_proofs;
pub mod te;
pub mod topi;
pub mod user_ops;

pub use decl::{ConstantSizes, OpDecl, Pattern};
pub use legalize::{
    LegalizeError, Legalized, TirCall, constant_sizes_of, legalize, legalize_call, legalize_with,
    needs_shapes,
};
pub use module_builder::{ModuleBuilder, call_tir, te_call, te_call_with_sizes};
pub use registry::{Registry, registry};
pub use size_checks::size_checks;
pub use user_ops::{TeArg, TeCall, UserOpSpec, register_user_op};
