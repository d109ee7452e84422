//! Graphs inside graphs.

use pliant_ir::relax::{Expr, Seq};

use super::{OnnxOp, op};
use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::proto::GraphProto;
use crate::value::Value;

pub(super) static OPS: &[OnnxOp] = &[op("If", branch)];

/// `If`: both graphs see the names around them; the outputs join.
fn branch(n: &mut Node<'_, '_>) -> Converted {
    let (then, other) = (n.attrs().graph("then_branch")?, n.attrs().graph("else_branch")?);
    // A condition that is known leaves one graph.
    if let Some([c]) = n.const_ints(0).as_deref() {
        return outputs_of(n, if *c != 0 { then } else { other });
    }
    let cond = n.tensor(0)?;
    let cond = n.scalar_of(cond)?;
    let then = sequence(n, then)?;
    let other = sequence(n, other)?;
    let joined = n.joined(cond, then, other);
    let count = n.proto.output.len();
    if count == 1 {
        return Ok(vec![joined.into()]);
    }
    Ok(n.fields(joined, count).into_iter().map(Value::from).collect())
}

/// A graph as a sequence of its own, with its result: a tuple where it has several.
fn sequence(n: &mut Node<'_, '_>, graph: &GraphProto) -> Result<(Seq, Expr), Problem> {
    n.sequence(|n| {
        let outputs = outputs_of(n, graph)?;
        let values =
            outputs.iter().map(|v| n.materialize(v)).collect::<Result<Vec<Expr>, Problem>>()?;
        Ok(match values.as_slice() {
            [one] => *one,
            all => n.func().tuple(all),
        })
    })
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
