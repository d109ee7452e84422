//! Detects patterns that can never match, and prints patterns for messages.

use std::fmt::Write as _;

use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_ir::{AttrValue, Op, OpRegistry};

use super::contradictory_patterns::contradiction;
use super::impossible_call_patterns;
use super::pattern_nodes::{Literal, Pattern, PatternKind};
use super::pattern_table::{Node, NodeId, PatternTable, RootKinds};
use super::type_pattern::SizePattern;
use crate::pass_error::{PassError, Problem};

/// Maximum nesting depth of printed patterns.
const MAX_PRINTED_DEPTH: u32 = 6;

/// Returns the reasons why a pattern, or any pattern nested in it, can never match. The list is empty if no reason is found.
pub fn problems(pattern: &Pattern, ops: &dyn OpRegistry) -> Vec<Problem> {
    let table = PatternTable::of(pattern);
    (0..table.nodes.len() as NodeId).filter_map(|id| problem_at(&table, id, ops)).collect()
}

/// Rejects a pattern that can never match.
///
/// # Errors
/// All reasons why the pattern can never match.
pub fn check(pattern: &Pattern, ops: &dyn OpRegistry) -> Result<(), PassError> {
    let mut problems = problems(pattern, ops);
    let table = PatternTable::of(pattern);
    if let Some(reason) = table.id(pattern).and_then(|id| operator_as_value(&table, id)) {
        problems.push(Problem::new(format!("this pattern can never match: {reason}")));
    }
    if problems.is_empty() { Ok(()) } else { Err(PassError::User(problems)) }
}

/// Returns the reason why a pattern can never match, or `None` if no reason is found. Nested patterns are not checked separately.
pub fn check_one(pattern: &Pattern, ops: &dyn OpRegistry) -> Option<Problem> {
    let table = PatternTable::of(pattern);
    problem_at(&table, table.id(pattern)?, ops)
}

fn problem_at(table: &PatternTable, id: NodeId, ops: &dyn OpRegistry) -> Option<Problem> {
    let pattern = &table.patterns()[id as usize];
    let never = |reason: String| Problem::new(format!("this pattern can never match: {reason}"));
    match &table.nodes[id as usize] {
        Node::Op(op) => unknown_op(*op, ops),
        Node::Call { callee, .. } if !is_callable(&table.nodes[*callee as usize]) => {
            Some(never(format!("a value that matches {} cannot be called", text(table, *callee))))
        }
        Node::Call { callee, args, more } => {
            if let Some(reason) = args.iter().find_map(|&p| operator_as_value(table, p)) {
                return Some(never(reason));
            }
            let RootKinds { ops: Some(list), kinds: 0 } = table.callee_ops(*callee) else {
                return None;
            };
            let mismatch = |op| {
                wrong_arity(op, args.len(), *more, ops)
                    .or_else(|| impossible_call_patterns::wrong_operand(table, op, args, ops))
            };
            reason_for_all(&list, mismatch).map(never)
        }
        Node::And(list) if table.root_kinds[id as usize].is_empty() => {
            let each: Vec<String> =
                list.iter().map(|&p| describe(&table.patterns()[p as usize])).collect();
            Some(never(format!("no value matches both {}", each.join(" and "))))
        }
        Node::And(_) | Node::Not(_) | Node::DType(..) | Node::Shape(..) | Node::Type(..) => {
            contradiction(table, id, ops).map(never)
        }
        Node::Tuple { fields, .. } => {
            fields.iter().find_map(|&p| operator_as_value(table, p)).map(never)
        }
        Node::GetItem(tuple, index) => match (&table.nodes[*tuple as usize], index) {
            (Node::Tuple { fields, .. }, Some(index)) if *index as usize >= fields.len() => Some(
                never(format!("the tuple pattern {} has no field {index}", text(table, *tuple))),
            ),
            (Node::Constant | Node::Literal(_) | Node::ShapeValue(_), _) => {
                Some(never(format!("a value that matches {} has no fields", text(table, *tuple))))
            }
            _ => operator_as_value(table, *tuple)
                .or_else(|| impossible_call_patterns::missing_field(table, *tuple, *index, ops))
                .map(never),
        },
        Node::Attrs(p, attrs) => {
            let list = match table.callee_ops_of(*p) {
                Some(RootKinds { ops: Some(list), kinds: 0 }) => list,
                _ => Vec::new(),
            };
            let mismatch = |op| {
                unknown_attr(op, attrs, ops)
                    .or_else(|| wrong_attr_kind(op, attrs, ops))
                    .or_else(|| impossible_call_patterns::wrong_attr(op, attrs, ops))
            };
            reason_for_all(&list, mismatch).or_else(|| contradiction(table, id, ops)).map(never)
        }
        Node::Or(list) if list.is_empty() => Some(never(
            "the pattern requires one of several alternatives, but their list is empty".into(),
        )),
        _ if table.root_kinds[id as usize].is_empty() && !matches_operators(pattern) => {
            Some(never(format!("the pattern {} matches no value", describe(pattern))))
        }
        _ => None,
    }
}

/// If `reason` returns a reason for every operator in the list, returns the reason for the first operator; otherwise `None`.
fn reason_for_all(list: &[Op], reason: impl Fn(Op) -> Option<String>) -> Option<String> {
    let mut reasons = list.iter().map(|&op| reason(op));
    let first = reasons.next()??;
    reasons.all(|r| r.is_some()).then_some(first)
}

/// Whether a pattern matches operators themselves, which only occur as callees, rather than values.
fn matches_operators(pattern: &Pattern) -> bool {
    let mut stack = vec![pattern];
    while let Some(p) = stack.pop() {
        match p.kind() {
            PatternKind::Op(_) => return true,
            PatternKind::Or(list) | PatternKind::And(list) => stack.extend(list.iter()),
            PatternKind::Attrs(p, _) => stack.push(p),
            _ => {}
        }
    }
    false
}

impl PatternTable {
    /// Returns the operators that have the attributes to which a condition on this pattern refers: the operator itself if the
    /// pattern matches a callee, or the operators of the matched calls. `None` for other patterns.
    fn callee_ops_of(&self, id: NodeId) -> Option<RootKinds> {
        match &self.nodes[id as usize] {
            Node::Op(_) => Some(self.callee_ops(id)),
            Node::Call { .. } => Some(self.root_kinds[id as usize].clone()),
            Node::Attrs(p, _) | Node::DType(p, _) | Node::Shape(p, _) => self.callee_ops_of(*p),
            _ => None,
        }
    }
}

fn text(table: &PatternTable, id: NodeId) -> String {
    describe(&table.patterns()[id as usize])
}

fn is_callable(callee: &Node) -> bool {
    !matches!(callee, Node::Constant | Node::Literal(_) | Node::ShapeValue(_) | Node::Tuple { .. })
}

/// Returns the reason why a pattern that matches an operator can never match an operand: operators occur only as callees. `None`
/// for other patterns.
fn operator_as_value(table: &PatternTable, id: NodeId) -> Option<String> {
    let pattern = &table.patterns()[id as usize];
    let as_value = matches_operators(pattern) && table.root_kinds[id as usize].is_empty();
    as_value.then(|| operator_text(pattern))
}

fn operator_text(pattern: &Pattern) -> String {
    let text = describe(pattern);
    format!("{text} is an operator, not a value; {text}(...) matches a call of it")
}

/// Returns an error with a suggestion if the operator does not exist; `None` if it exists.
pub fn unknown_op(op: Op, ops: &dyn OpRegistry) -> Option<Problem> {
    if ops.lookup(op.name()).is_some() {
        return None;
    }
    let problem = Problem::new(format!("there is no operator '{op}'"));
    Some(match did_you_mean(op.name(), ops.names()) {
        Some(help) => problem.with_help(help),
        None => problem,
    })
}

fn wrong_arity(op: Op, count: usize, more: bool, ops: &dyn OpRegistry) -> Option<String> {
    let signature = ops.signature(op)?;
    let (operands, max) = (&signature.operands, signature.max_operands()?);
    let min = operands.iter().filter(|o| !o.optional).count();
    let fits = count <= max && (more || count >= min);
    if fits {
        return None;
    }
    let names: Vec<&str> = operands.iter().map(|o| o.name).collect();
    let range = if min == max { format!("{max}") } else { format!("{min} to {max}") };
    Some(format!(
        "operator {op} takes {range} operand{} ({}), but the pattern has {count}",
        if max == 1 { "" } else { "s" },
        names.join(", ")
    ))
}

fn unknown_attr(
    op: Op,
    attrs: &[(std::sync::Arc<str>, AttrValue)],
    ops: &dyn OpRegistry,
) -> Option<String> {
    let known = &ops.signature(op)?.attrs;
    let (key, _) = attrs.iter().find(|(key, _)| known.iter().all(|(k, _)| *k != &**key))?;
    let names: Vec<&str> = known.iter().map(|(k, _)| *k).collect();
    Some(match names.is_empty() {
        true => format!("operator {op} has no attributes, but the pattern requires '{key}'"),
        false => format!("operator {op} has no attribute '{key}' (it has: {})", names.join(", ")),
    })
}

/// Returns the reason why an operator never accepts the required value of an attribute, if the value and the attribute's default
/// are of different kinds.
fn wrong_attr_kind(
    op: Op,
    attrs: &[(std::sync::Arc<str>, AttrValue)],
    ops: &dyn OpRegistry,
) -> Option<String> {
    let known = &ops.signature(op)?.attrs;
    attrs.iter().find_map(|(key, want)| {
        let default = known.iter().find(|(k, _)| *k == &**key)?.1.as_ref()?;
        let (kind, required) = (kind_of(default)?, kind_of(want)?);
        (kind != required).then(|| {
            format!("the attribute '{key}' of {op} is {kind}, but the pattern requires {want:?}")
        })
    })
}

/// Returns the name of the kind of an attribute value, such as an integer or a string. Returns `None` for kinds that an attribute
/// may mix with others.
fn kind_of(value: &AttrValue) -> Option<&'static str> {
    match value {
        AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) => Some("a number"),
        AttrValue::Str(_) if value.as_dtype().is_none() => Some("a string"),
        _ => None,
    }
}

/// Prints a pattern in Python syntax, truncated at a nesting depth of 6.
pub fn describe(pattern: &Pattern) -> String {
    let mut out = String::new();
    write_pattern(&mut out, pattern, 0);
    out
}

fn write_list(out: &mut String, list: &[Pattern], join: &str, depth: u32) {
    for (i, p) in list.iter().enumerate() {
        if i > 0 {
            out.push_str(join);
        }
        write_pattern(out, p, depth + 1);
    }
}

fn write_sizes(out: &mut String, sizes: &[SizePattern]) {
    let texts: Vec<String> = sizes
        .iter()
        .map(|s| match s {
            SizePattern::Any => "_".into(),
            SizePattern::Int(v) => v.to_string(),
            SizePattern::Term(t) => t.arena.display(t.sym).to_string(),
        })
        .collect();
    let _ = write!(out, "[{}]", texts.join(", "));
}

fn write_pattern(out: &mut String, pattern: &Pattern, depth: u32) {
    if depth > MAX_PRINTED_DEPTH {
        out.push_str("...");
        return;
    }
    let named = |out: &mut String, what: &str, name: &Option<std::sync::Arc<str>>| {
        let _ = match name {
            Some(name) => write!(out, "{what}(\"{name}\")"),
            None => write!(out, "{what}()"),
        };
    };
    // Writing to a string cannot fail.
    let wrap = |out: &mut String, p: &Pattern, rest: String| {
        write_pattern(out, p, depth + 1);
        out.push_str(&rest);
    };
    match pattern.kind() {
        PatternKind::Wildcard => out.push_str("wildcard()"),
        PatternKind::Op(op) => {
            let _ = write!(out, "is_op(\"{op}\")");
        }
        PatternKind::Var { name, dataflow } => {
            named(out, if *dataflow { "is_dfv" } else { "is_var" }, name)
        }
        PatternKind::Global(name) => named(out, "is_gv", name),
        PatternKind::Extern(name) => named(out, "ExternFuncPattern", name),
        PatternKind::Constant => out.push_str("is_const()"),
        PatternKind::Literal(value) => {
            let _ = match value {
                Literal::Tensor(t) => write!(out, "is_expr(const {:?} {})", t.shape(), t.dtype()),
                Literal::Int(v, d) => write!(out, "is_expr({v}: {d})"),
                Literal::Float(v, d) => write!(out, "is_expr({v}: {d})"),
                Literal::Str(s) => write!(out, "is_expr(\"{s}\")"),
                Literal::DType(d) => write!(out, "is_expr({d})"),
            };
        }
        PatternKind::ShapeValue(sizes) => {
            out.push_str("is_shape(");
            write_sizes(out, sizes);
            out.push(')');
        }
        PatternKind::Tuple { fields, unordered } => {
            out.push_str("is_tuple([");
            write_list(out, fields, ", ", depth);
            out.push_str(if *unordered { "], unordered=True)" } else { "])" });
        }
        PatternKind::GetItem(p, index) => {
            out.push_str("is_tuple_get_item(");
            let rest = index.map_or(")".into(), |i| format!(", {i})"));
            wrap(out, p, rest);
        }
        PatternKind::Call { callee, args, more } => {
            write_pattern(out, callee, depth);
            out.push('(');
            write_list(out, args, ", ", depth);
            out.push_str(if *more { ", ...)" } else { ")" });
        }
        PatternKind::Or(list) => {
            out.push('(');
            write_list(out, list, " | ", depth);
            out.push(')');
        }
        PatternKind::And(list) => {
            out.push('(');
            write_list(out, list, " & ", depth);
            out.push(')');
        }
        PatternKind::Not(p) => {
            out.push('~');
            write_pattern(out, p, depth + 1);
        }
        PatternKind::Attrs(p, attrs) => {
            let keys: Vec<&str> = attrs.iter().map(|(k, _)| &**k).collect();
            wrap(out, p, format!(".has_attr({{{}}})", keys.join(", ")));
        }
        PatternKind::DType(p, dtype) => wrap(out, p, format!(".has_dtype(\"{dtype}\")")),
        PatternKind::Shape(p, sizes) => {
            write_pattern(out, p, depth + 1);
            out.push_str(".has_shape(");
            write_sizes(out, sizes);
            out.push(')');
        }
        PatternKind::Type(p, _) => wrap(out, p, ".has_struct_info(...)".into()),
        PatternKind::SameShape(list) => {
            out.push_str("same_shape(");
            write_list(out, list, ", ", depth);
            out.push(')');
        }
    }
}
