//! Graphs inside graphs.

use pliant_ir::relax::{Expr, ExprData, Seq, derive};

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::proto::GraphProto;

pub(super) static OPS: &[OnnxOp] = &[op("If", branch)];

/// `If`: both graphs see the names around them; the outputs join.
fn branch(n: &mut Node<'_, '_>) -> Converted {
    let (then, other) = (n.attrs().graph("then_branch")?, n.attrs().graph("else_branch")?);
    // A condition that is known leaves one graph.
    if let Some([c]) = n.const_ints(0).as_deref() {
        return outputs_of(n, if *c != 0 { then } else { other });
    }
    let cond = n.tensor(0)?;
    let scalar: [pliant_sym::Sym; 0] = [];
    let cond = n.reshape(cond, &scalar)?;
    let (then_seq, a) = sequence(n, then)?;
    let (else_seq, b) = sequence(n, other)?;
    let func = n.func();
    let (ta, tb) = (func.expr_ty(a), func.expr_ty(b));
    let ty = derive::lca(func, ta, tb);
    let value = func.add_expr(ExprData::If { cond, then_seq, else_seq }, ty);
    let count = n.proto.output.len();
    let joined = n.im.bind(value, n.proto);
    if count == 1 {
        return Ok(vec![joined.into()]);
    }
    let mut outputs = Vec::with_capacity(count);
    for i in 0..count {
        let field = n.func().tuple_get_item(joined, i as u32);
        outputs.push(n.im.bind(field, n.proto).into());
    }
    Ok(outputs)
}

/// A graph as a sequence of its own, with its result: a tuple where it has several.
fn sequence(n: &mut Node<'_, '_>, graph: &GraphProto) -> Result<(Seq, Expr), Problem> {
    n.im.builder.begin_seq();
    let outputs = outputs_of(n, graph);
    let results = outputs.and_then(|outputs| {
        outputs.iter().map(|v| n.materialize(v)).collect::<Result<Vec<Expr>, Problem>>()
    });
    let result = match results.as_deref() {
        Ok([one]) => *one,
        Ok(all) => n.func().tuple(all),
        Err(_) => n.func().tuple(&[]),
    };
    let seq = n.im.builder.end_seq(result);
    results?;
    let result = n.func().seq(seq).result;
    Ok((seq, result))
}

/// The outputs of a graph, its nodes bound where the builder stands.
fn outputs_of(n: &mut Node<'_, '_>, graph: &GraphProto) -> Converted {
    let before = n.im.problem_count();
    n.im.enter();
    let outputs = n.im.graph_outputs(graph);
    n.im.leave();
    // What went wrong inside is reported there.
    if n.im.problem_count() > before { Err(Problem::invalid("")) } else { outputs }
}
