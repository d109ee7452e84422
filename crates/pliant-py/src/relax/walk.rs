//! Traversal of expressions: in functions of modules, in trees that Python code built, and in
//! mixtures of both.
//!
//! The traversal uses an explicit stack, so chains of calls and bindings may be of any length.

use std::sync::Arc;

use pliant_ir::relax::{Callee, ExprData, Function};

use crate::relax::home::Home;
use crate::relax::node::{CalleeNode, Node, NodeRef};
use crate::relax::seq::{BindingRef, SeqNode};
use crate::relax::views::in_func;

/// The items that a traversal visits, in textual order.
pub enum Step {
    /// An expression, after all its subexpressions.
    Expr(NodeRef),
    /// The definition of a variable. A parameter comes before the body of its function, and a bound
    /// variable after its value.
    Def(NodeRef),
    /// A binding, before its value.
    Binding(BindingRef),
}

enum Work {
    Enter(NodeRef),
    Step(Step),
    Bind(BindingRef),
}

/// Calls `visit` with everything inside an expression, and finally with the expression itself.
pub fn walk(root: &NodeRef, mut visit: impl FnMut(Step)) {
    let mut stack = vec![Work::Enter(root.clone())];
    let mut parts = Vec::new();
    while let Some(work) = stack.pop() {
        match work {
            Work::Step(step) => visit(step),
            Work::Enter(node) => {
                expand(&node, &mut parts);
                stack.push(Work::Step(Step::Expr(node)));
                stack.extend(parts.drain(..).rev());
            }
            Work::Bind(binding) => {
                if let Some(var) = binding.var() {
                    stack.push(Work::Step(Step::Def(var)));
                }
                if let Some(value) = binding.value() {
                    stack.push(Work::Enter(value));
                }
                visit(Step::Binding(binding));
            }
        }
    }
}

fn expand(node: &NodeRef, out: &mut Vec<Work>) {
    let enter = |n: &NodeRef| Work::Enter(n.clone());
    match node.get() {
        Node::InFunc(home, e) => {
            let state = home.lock();
            if let Some(func) = state.func() {
                expand_in(home, func, *e, out);
            }
        }
        Node::Tuple(fields) => out.extend(fields.iter().map(enter)),
        Node::GetItem(tuple, _) => out.push(enter(tuple)),
        Node::Call(call) => {
            if let CalleeNode::Expr(callee) = &call.callee {
                out.push(enter(callee));
            }
            out.extend(call.args.iter().map(enter));
        }
        Node::If(choice) => out.extend(choice.parts().iter().map(enter)),
        Node::Seq(seq) => {
            for block in seq.blocks() {
                out.extend(block.bindings().into_iter().map(Work::Bind));
            }
            out.extend(seq.body().map(Work::Enter));
        }
        Node::Func(func) => {
            let data = func.data();
            out.extend(data.params.iter().map(|p| Work::Step(Step::Def(p.clone()))));
            out.push(enter(&data.body));
        }
        Node::Root(home) => {
            let state = home.lock();
            if let Some(func) = state.func() {
                expand_func(home, func, func.root(), out);
            }
        }
        _ => {}
    }
}

fn expand_in(home: &Arc<Home>, func: &Function, e: pliant_ir::relax::Expr, out: &mut Vec<Work>) {
    let enter = |e| Work::Enter(in_func(home, e));
    let seq = |s| Work::Enter(NodeRef::new(Node::Seq(SeqNode::In(home.clone(), s))));
    match func.expr(e) {
        ExprData::Tuple(list) => out.extend(func.list(*list).iter().map(|&e| enter(e))),
        ExprData::TupleGetItem(tuple, _) => out.push(enter(*tuple)),
        ExprData::Call { callee, args, .. } => {
            if let Callee::Expr(callee) = callee {
                out.push(enter(*callee));
            }
            out.extend(func.list(*args).iter().map(|&e| enter(e)));
        }
        ExprData::If { cond, then_seq, else_seq } => {
            out.extend([enter(*cond), seq(*then_seq), seq(*else_seq)]);
        }
        ExprData::Func(id) => expand_func(home, func, *id, out),
        _ => {}
    }
}

fn expand_func(
    home: &Arc<Home>,
    func: &Function,
    id: pliant_ir::relax::FuncId,
    out: &mut Vec<Work>,
) {
    let data = func.func(id);
    let params = data.params.iter().map(|&p| in_func(home, func.var_expr(p)));
    out.extend(params.map(|p| Work::Step(Step::Def(p))));
    out.push(Work::Enter(NodeRef::new(Node::Seq(SeqNode::In(home.clone(), data.body)))));
}
