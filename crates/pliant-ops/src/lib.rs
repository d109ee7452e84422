//! The operators: their declarations, type rules, and lowering to tensor expressions.
//!
//! | module | contents |
//! |---|---|
//! | [`te`] | tensor expressions, and the creation of loop functions from them |
//! | [`op_declaration`] | [`OpDecl`]: the declaration of an operator |
//! | `ops` | the declarations, one file per group, and the table of all operators |
//! | [`op_registry`] | [`registry()`]: looks up operators by name for the IR |
//! | [`type_inference`], [`call_attributes`] | the context of type inference: operands and attributes of a call |
//! | [`shared_operator_rules`] | type rules and lowering rules that several operators share |
//! | [`size_proofs`] | proofs of relations between symbolic sizes |
//! | [`broadcast`] | broadcasting with symbolic sizes, decided at compile time or at run time |
//! | [`einsum_equation`] | the equation of an einsum |
//! | [`dynamic_operator_calls`] | calls whose operands have a rank or data type that is only known at run time |
//! | [`mod@gradient`] | gradients of operators: rules, and loop functions derived from tensor expressions |
//! | [`mod@legalize`] | lowers calls to loop functions, views or packed functions |
//! | [`runtime_size_checks`] | the conditions on sizes that a call checks at run time |
//! | [`module_builder`] | [`ModuleBuilder`]: builds modules and emits tensor expressions into them |
//! | [`topi`] | the operators as functions on tensors of tensor expressions |
//! | [`tvm_precision`] | the registry with types as imprecise as those of TVM |
//! | [`user_defined_ops`] | operators that the user registers with a tensor expression |

pub mod broadcast;
pub mod call_attributes;
pub mod dynamic_operator_calls;
pub mod einsum_equation;
pub mod gradient;
pub mod legalize;
pub mod module_builder;
pub mod op_declaration;
pub mod op_registry;
mod ops;
pub mod runtime_size_checks;
pub mod shared_operator_rules;
pub mod size_proofs;
pub mod te;
pub mod topi;
pub mod tvm_precision;
pub mod type_inference;
pub mod user_defined_ops;

pub use gradient::{Gradient, GradientBuilder, GradientError};
pub use legalize::{
    LegalizeError, Legalized, TirCall, changes_only_unit_dims, constant_sizes_of, legalize,
    legalize_call, legalize_to_tir, legalize_with, needs_shapes,
};
pub use module_builder::{ModuleBuilder, call_tir, te_call, te_call_with_sizes};
pub use op_declaration::{ConstantSizes, OpDecl, Pattern};
pub use op_registry::{Registry, registry};
pub use runtime_size_checks::size_checks;
pub use user_defined_ops::{TeArg, TeCall, UserOpSpec, register_user_op};
