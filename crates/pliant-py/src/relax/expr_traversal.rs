//! Traverses expressions of functions, trees that Python code built, and mixtures of both.
//!
//! The traversal uses an explicit stack, so chains of calls and bindings may be of any length.

use std::sync::Arc;

use pliant_ir::relax::{Callee, ExprData, Function};

use crate::relax::detached_expr::{CalleeNode, Node, NodeRef};
use crate::relax::detached_functions::{BindingRef, SeqNode};
use crate::relax::expr_accessors::in_func;
use crate::relax::function_owner::FuncOwner;

/// An item that the traversal visits, in textual order.
pub enum WalkEvent {
    /// An expression, visited after all its subexpressions.
    Expr(NodeRef),
    /// The definition of a variable. A parameter is visited before the body of its function, a
    /// bound variable after its value.
    Def(NodeRef),
    /// A binding, visited before its value.
    Binding(BindingRef),
}

enum Pending {
    Expand(NodeRef),
    Visit(WalkEvent),
    ExpandBinding(BindingRef),
}

/// Calls `visit` with the subexpressions, variable definitions and bindings inside an expression, and finally with the
/// expression itself.
pub fn walk(root: &NodeRef, mut visit: impl FnMut(WalkEvent)) {
    let mut stack = vec![Pending::Expand(root.clone())];
    let mut parts = Vec::new();
    while let Some(pending) = stack.pop() {
        match pending {
            Pending::Visit(event) => visit(event),
            Pending::Expand(node) => {
                push_operands(&node, &mut parts);
                stack.push(Pending::Visit(WalkEvent::Expr(node)));
                stack.extend(parts.drain(..).rev());
            }
            Pending::ExpandBinding(binding) => {
                if let Some(var) = binding.var() {
                    stack.push(Pending::Visit(WalkEvent::Def(var)));
                }
                if let Some(value) = binding.value() {
                    stack.push(Pending::Expand(value));
                }
                visit(WalkEvent::Binding(binding));
            }
        }
    }
}

fn push_operands(node: &NodeRef, out: &mut Vec<Pending>) {
    let expand_node = |n: &NodeRef| Pending::Expand(n.clone());
    match node.get() {
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            if let Some(func) = state.func() {
                push_operands_in_func(owner, func, *e, out);
            }
        }
        Node::Tuple(fields) => out.extend(fields.iter().map(expand_node)),
        Node::GetItem(tuple, _) => out.push(expand_node(tuple)),
        Node::Call(call) => {
            if let CalleeNode::Expr(callee) = &call.callee {
                out.push(expand_node(callee));
            }
            out.extend(call.args.iter().map(expand_node));
        }
        Node::If(choice) => out.extend(choice.parts().iter().map(expand_node)),
        Node::Seq(seq) => {
            for block in seq.blocks() {
                out.extend(block.bindings().into_iter().map(Pending::ExpandBinding));
            }
            out.extend(seq.body().map(Pending::Expand));
        }
        Node::Func(func) => {
            let data = func.data();
            out.extend(data.params.iter().map(|p| Pending::Visit(WalkEvent::Def(p.clone()))));
            out.push(expand_node(&data.body));
        }
        Node::Root(owner) => {
            let state = owner.lock();
            if let Some(func) = state.func() {
                push_func(owner, func, func.root(), out);
            }
        }
        _ => {}
    }
}

fn push_operands_in_func(
    owner: &Arc<FuncOwner>,
    func: &Function,
    e: pliant_ir::relax::Expr,
    out: &mut Vec<Pending>,
) {
    let expand_node = |e| Pending::Expand(in_func(owner, e));
    let seq = |s| Pending::Expand(NodeRef::new(Node::Seq(SeqNode::In(owner.clone(), s))));
    match func.expr(e) {
        ExprData::Tuple(list) => out.extend(func.list(*list).iter().map(|&e| expand_node(e))),
        ExprData::TupleGetItem(tuple, _) => out.push(expand_node(*tuple)),
        ExprData::Call { callee, args, .. } => {
            if let Callee::Expr(callee) = callee {
                out.push(expand_node(*callee));
            }
            out.extend(func.list(*args).iter().map(|&e| expand_node(e)));
        }
        ExprData::If { cond, then_seq, else_seq } => {
            out.extend([expand_node(*cond), seq(*then_seq), seq(*else_seq)]);
        }
        ExprData::Func(id) => push_func(owner, func, *id, out),
        _ => {}
    }
}

fn push_func(
    owner: &Arc<FuncOwner>,
    func: &Function,
    id: pliant_ir::relax::FuncId,
    out: &mut Vec<Pending>,
) {
    let data = func.func(id);
    let params = data.params.iter().map(|&p| in_func(owner, func.var_expr(p)));
    out.extend(params.map(|p| Pending::Visit(WalkEvent::Def(p))));
    out.push(Pending::Expand(NodeRef::new(Node::Seq(SeqNode::In(owner.clone(), data.body)))));
}
