//! Gradients of operators: the field [`OpDecl::gradient`](crate::OpDecl), and what it needs.
//!
//! The gradient of an operator is a rule that emits operators for the adjoints of the operands, given the adjoint of the result. A
//! rule is written with [`Term`], whose arithmetic emits operators: `dy * x.cos()`. If the declaration says
//! [`Gradient::FromTe`], the loop function of the gradient is derived from the tensor expression of the operator
//! (`te::adjoint`), and so are the gradients of all user-defined operators.
//!
//! The *adjoint* of a value is the derivative of the differentiated scalar with respect to the value. It has the type of the value.
//!
//! The pass `Gradient` (`pliant-opt/src/differentiate`) calls [`operand_adjoints`] for each call of an operator, from the last to
//! the first.
//!
//! | module | contents |
//! |---|---|
//! | [`rule_context`] | [`GradientCtx`]: the call that a rule differentiates |
//! | [`term`] | [`Term`]: values in rules, and the operators on them |
//! | [`builder`] | [`GradientBuilder`]: emits the bindings of a rule |
//! | [`derived`] | loop functions of gradients, derived from tensor expressions |
//! | [`te_gradients`] | gradients that the user registers for `call_tir_with_grad` |

pub mod builder;
pub mod derived;
pub mod rule_context;
pub mod te_gradients;
pub mod term;

use std::fmt;

use pliant_ir::Attrs;
use pliant_ir::op::{InferError, Op};
use pliant_ir::relax::{Expr, Type};

use crate::legalize::LegalizeError;
use crate::op_registry::{RegistryEntry, registry};

pub use builder::GradientBuilder;
pub use rule_context::GradientCtx;
pub use te_gradients::{has_te_gradient, register_te_gradient};
pub use term::Term;

/// Emits the adjoints of the operands of a call: one entry per operand. `None` stands for a zero adjoint. The adjoint of an operand
/// that is a tuple is a tuple.
pub type GradientFn = for<'a, 'g> fn(&'a GradientCtx<'g>) -> GradientResult<'g>;

/// The adjoints of the operands, or the reason why the call has no gradient.
pub type GradientResult<'g> = Result<Vec<Option<Term<'g>>>, GradientError>;

/// The gradient of an operator.
#[derive(Clone, Copy, Debug)]
pub enum Gradient {
    /// The operator has no gradient: differentiating through it is an error.
    None,
    /// The derivatives are zero wherever they exist, as for `relax.floor`.
    Zero,
    /// A rule emits the adjoints of the operands.
    Rule(GradientFn),
    /// The gradient is derived from the operator's tensor expression.
    FromTe,
}

/// The reason why a call cannot be differentiated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradientError(pub String);

impl GradientError {
    /// Creates an error with the given message.
    pub fn new(message: impl Into<String>) -> Self {
        GradientError(message.into())
    }
}

impl fmt::Display for GradientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GradientError {}

impl From<InferError> for GradientError {
    fn from(e: InferError) -> Self {
        GradientError(e.message)
    }
}

impl From<LegalizeError> for GradientError {
    fn from(e: LegalizeError) -> Self {
        GradientError(e.to_string())
    }
}

/// A call of an operator, and the adjoints of its results.
pub struct DifferentiatedCall<'a> {
    /// The called operator.
    pub op: Op,
    /// The operands of the call.
    pub args: &'a [Expr],
    /// The attributes of the call.
    pub attrs: &'a Attrs,
    /// The types that the call states.
    pub ty_args: &'a [Type],
    /// The variable to which the call is bound.
    pub result: Expr,
    /// The adjoints of the results, one per output; `None` for a zero adjoint.
    pub result_adjoints: &'a [Option<Expr>],
    /// For each operand, whether its adjoint is needed.
    pub wanted: &'a [bool],
}

/// The gradient of an operator. Operators of the user derive it from their tensor expressions.
pub fn gradient_of(op: Op) -> Gradient {
    match registry().entry(op) {
        Some(RegistryEntry::Library { decl, .. }) => decl.gradient,
        Some(RegistryEntry::User(_)) => Gradient::FromTe,
        None => Gradient::None,
    }
}

/// Emits the adjoints of the operands of a call: one entry per operand, `None` for a zero adjoint.
///
/// # Errors
/// If the operator, or this call of it, has no gradient.
pub fn operand_adjoints(
    builder: &GradientBuilder,
    call: &DifferentiatedCall<'_>,
) -> Result<Vec<Option<Expr>>, GradientError> {
    let name = call.op.name();
    let adjoints = match gradient_of(call.op) {
        Gradient::None => return Err(GradientError::new(format!("{name} has no gradient"))),
        Gradient::Zero => vec![None; call.args.len()],
        Gradient::FromTe => derived::operand_adjoints(builder, call)?,
        Gradient::Rule(rule) => {
            let terms = rule(&GradientCtx::new(builder, call))?;
            terms.into_iter().map(|term| term.map(|t| t.expr())).collect()
        }
    };
    match builder.take_error() {
        Some(error) => Err(GradientError::new(format!("{name}: {error}"))),
        None => Ok(adjoints),
    }
}
