//! Converter of the ONNX operator `If`, which chooses between two graphs.
//!
//! The branches may have results of different shapes. [`ObjectType::join`] determines the type that covers both: dims that differ
//! become unknown. If even the ranks differ, [`ObjectType::with_declared_rank`] chooses the rank that the file declares, with the
//! dims of the branch that has this rank, which are checked at run time. Without a declaration, the rank becomes unknown.
//!
//! Nodes in the branches that cannot be imported statically are imported at run time. If this converter itself fails,
//! the whole `If` is imported at run time (`deferred_node/defer_node.rs`).

use pliant_ir::relax::{Expr, Seq};

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::node::{ConvertResult, Node, label};
use crate::proto::GraphProto;
use crate::sequence_optional_types::{ObjectType, OuterSymbols};
use crate::shape_constraint_report::Branch;

pub(super) static OPS: &[OnnxOp] = &[op("If", if_node)];

/// Converts `If` with both branches, whose graphs can use the names of the enclosing graphs. Each
/// result type covers the types of both branches.
fn if_node(n: &mut Node<'_, '_>) -> ConvertResult {
    let (then, other) = (n.attrs().graph("then_branch")?, n.attrs().graph("else_branch")?);
    let count = n.proto.output.len();
    for (graph, which) in [(then, "then"), (other, "else")] {
        let output_count = graph.output.len();
        if output_count != count {
            let message =
                format!("the {which}-branch has {output_count} outputs, but the node has {count}");
            return Err(Problem::invalid(message));
        }
    }
    let cond = n.condition_input(0, "the condition (input 0)")?;
    // If the condition is constant, only one graph is converted.
    if let Some([c]) = n.const_ints(0).as_deref() {
        return convert_subgraph(n, if *c != 0 { then } else { other });
    }
    let outer = OuterSymbols::current(&n.func().syms);
    let (then, then_types) = convert_in_branch(n, true, |n| branch_block(n, then))?;
    let (other, else_types) = convert_in_branch(n, false, |n| branch_block(n, other))?;
    let mut object_types = Vec::with_capacity(count);
    for (i, (a, b)) in then_types.iter().zip(&else_types).enumerate() {
        let with_context =
            |p: Problem| Problem { message: format!("output {i}: {}", p.message), ..p };
        let object_type =
            a.join(b).map_err(with_context)?.with_declared_rank(n.declared_rank(i), [a, b]);
        object_types.push(object_type.erase_inner_symbols(&n.func().syms, outer));
    }
    let joined = n.emit_if(cond, then, other);
    let fields = if count == 1 { vec![joined] } else { n.tuple_fields(joined, count) };
    fields
        .into_iter()
        .zip(&object_types)
        .map(|(e, object_type)| n.value_of_object(e, object_type))
        .collect()
}

/// Converts one branch of an `If`. Constraints on sizes that the branch imposes are recorded
/// together with the branch, because runs that take the other branch do not impose them.
fn convert_in_branch<T>(
    n: &mut Node<'_, '_>,
    then: bool,
    make: impl FnOnce(&mut Node<'_, '_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let (node, label) = (n.importer.origin, label(n.proto));
    n.importer.symbol_constraints.branches.push(Branch {
        node,
        label,
        then,
        by_sizes: n.is_symbolic(0),
    });
    let result = make(n);
    n.importer.symbol_constraints.branches.pop();
    result
}

/// Converts a graph to a block of bindings. Returns the block with its result, which is a tuple if there are several outputs, and
/// the ONNX types of the outputs.
fn branch_block(
    n: &mut Node<'_, '_>,
    graph: &GraphProto,
) -> Result<((Seq, Expr), Vec<ObjectType>), Problem> {
    let mut object_types = Vec::new();
    let result = n.binding_block(|n| {
        let outputs = convert_subgraph(n, graph)?;
        let mut values = Vec::with_capacity(outputs.len());
        for output in &outputs {
            let (e, object_type) = n.object_of_value(output)?;
            values.push(e);
            object_types.push(object_type);
        }
        Ok(match values.as_slice() {
            [one] => *one,
            all => n.func().tuple(all),
        })
    })?;
    Ok((result, object_types))
}

/// Converts a graph in a new scope, but without a separate block, and returns its outputs.
fn convert_subgraph(n: &mut Node<'_, '_>, graph: &GraphProto) -> ConvertResult {
    let before = n.importer.problem_count();
    n.importer.enter_scope();
    let outputs = n.importer.convert_subgraph(graph);
    n.importer.leave_scope();
    // Problems inside the graph have already been reported.
    if n.importer.problem_count() > before { Err(Problem::invalid("")) } else { outputs }
}
