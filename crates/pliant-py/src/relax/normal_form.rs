//! Checks whether a function that Python code built is in normal form, as TVM's rules for well-formed functions require. Pliant
//! normalizes such functions when they are added to a module, so that they are always valid.

use pliant_ir::op::NULL_VALUE;

use crate::relax::detached_expr::{CallNode, CalleeNode, Node, NodeRef};
use crate::relax::detached_functions::{BindingRef, BlockNode, SeqNode};

/// What a part of a function must be.
enum Role {
    /// An operand: a variable, a constant, or a tuple of operands.
    Operand,
    /// The value of a binding: any expression whose operands are operands, except a sequence.
    Value,
    /// A branch: a sequence.
    Sequence,
    /// The body of a function: a sequence, or its result.
    Body,
}

/// Whether a function is in normal form: calls, tuples, conditions and results have variables and constants as operands, and
/// branches are sequences.
pub fn is_in_normal_form(func: &NodeRef) -> bool {
    let mut pending = vec![(Role::Value, func.clone())];
    while let Some((role, node)) = pending.pop() {
        let fits = match role {
            Role::Operand => push_operand(&node, &mut pending),
            Role::Value => push_value(&node, &mut pending),
            Role::Sequence => push_sequence(&node, &mut pending),
            Role::Body if matches!(node.get(), Node::Seq(_)) => push_sequence(&node, &mut pending),
            Role::Body => push_operand(&node, &mut pending),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn operands<'n>(
    nodes: impl IntoIterator<Item = &'n NodeRef>,
) -> impl Iterator<Item = (Role, NodeRef)> {
    nodes.into_iter().map(|node| (Role::Operand, node.clone()))
}

/// Whether a node may be an operand. Adds its fields to `pending`.
fn push_operand(node: &NodeRef, pending: &mut Vec<(Role, NodeRef)>) -> bool {
    match node.get() {
        Node::Tuple(fields) => {
            pending.extend(operands(fields));
            true
        }
        Node::Call(CallNode { callee: CalleeNode::Op(op), .. }) => *op == NULL_VALUE,
        Node::GetItem(..) | Node::Call(_) | Node::If(_) | Node::Seq(_) | Node::Func(_) => false,
        _ => true,
    }
}

/// Whether a node may be the value of a binding. Adds its parts to `pending`.
fn push_value(node: &NodeRef, pending: &mut Vec<(Role, NodeRef)>) -> bool {
    match node.get() {
        Node::Call(call) => pending.extend(operands(&call.args)),
        Node::GetItem(tuple, _) => pending.extend(operands([tuple])),
        Node::Tuple(fields) => pending.extend(operands(fields)),
        Node::If(branch) => {
            pending.extend(operands([&branch.cond]));
            for seq in [&branch.then_seq, &branch.else_seq] {
                pending.push((Role::Sequence, seq.clone()));
            }
        }
        Node::Func(func) => pending.push((Role::Body, func.data().body.clone())),
        Node::Seq(_) => return false,
        _ => {}
    }
    true
}

/// Whether a node is a sequence. Adds its bindings and its result to `pending`.
fn push_sequence(node: &NodeRef, pending: &mut Vec<(Role, NodeRef)>) -> bool {
    let Node::Seq(seq) = node.get() else { return false };
    let SeqNode::Free { blocks, body } = seq else { return true };
    pending.extend(operands([body]));
    for block in blocks {
        let BlockNode::Free { dataflow, bindings, .. } = block.get() else { continue };
        for binding in bindings {
            if let BindingRef::Free(binding) = binding {
                // Only dataflow blocks bind dataflow variables.
                if matches!(binding.var.get(), Node::Var(v) if v.0.dataflow && !dataflow) {
                    return false;
                }
                pending.push((Role::Value, binding.value.clone()));
            }
        }
    }
    true
}
