//! A predefined pattern: an operator, followed by an optional bias and activation.

use pliant_ir::Op;

use super::pattern_nodes::{Pattern, is_op, wildcard};

/// The pattern of an operator with bias and activation, and the parts of this pattern.
#[derive(Clone, Debug)]
pub struct FusedPattern {
    /// The whole pattern, including bias and activation.
    pub pattern: Pattern,
    /// The pattern of the operator's first operand.
    pub lhs: Pattern,
    /// The pattern of the operator's second operand.
    pub rhs: Pattern,
    /// The pattern of the operator call, without bias and activation.
    pub root: Pattern,
    /// The pattern of the bias that is added to the operator's result; `None` if there is no bias.
    pub bias: Option<Pattern>,
}

/// Creates the pattern of `op(lhs, rhs)`, followed by the addition of a bias if `with_bias` is set, and by the operator
/// `activation` (such as `relax.nn.gelu`) if it is `Some`. If `allow_reshape` is set, the bias may be reshaped before the
/// addition.
pub fn make_fused_bias_activation_pattern(
    op: Op,
    with_bias: bool,
    activation: Option<Op>,
    allow_reshape: bool,
) -> FusedPattern {
    let (lhs, rhs) = (wildcard(), wildcard());
    let root = is_op(op).call([lhs.clone(), rhs.clone()]);
    let mut pattern = root.clone();
    let mut bias = None;
    if with_bias {
        let added = wildcard();
        let mut operand = added.clone();
        if allow_reshape {
            let shape = wildcard();
            operand = is_op(Op::new("relax.reshape")).call([added.clone(), shape]) | added.clone();
        }
        pattern = is_op(Op::new("relax.add")).call([pattern, operand]);
        bias = Some(added);
    }
    if let Some(activation) = activation {
        pattern = is_op(activation).call([pattern]);
    }
    FusedPattern { pattern, lhs, rhs, root, bias }
}
