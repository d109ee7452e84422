//! Detects patterns that impose contradictory conditions on one value.

use std::sync::Arc;

use pliant_ir::{AttrValue, DType, OpRegistry};

use super::impossible_call_patterns;
use super::impossible_patterns::describe;
use super::pattern_nodes::Literal;
use super::pattern_table::{Node, NodeId, PatternTable};
use super::type_pattern::{SizePattern, TypePattern};
use super::unification::same_attr;

/// The conditions that a pattern imposes on one value, including those of nested patterns that match the same value.
#[derive(Default)]
struct Conditions<'a> {
    dtypes: Vec<DType>,
    sizes: Vec<&'a [SizePattern]>,
    ranks: Vec<usize>,
    names: Vec<&'a Arc<str>>,
    attrs: Vec<&'a (Arc<str>, AttrValue)>,
    /// The indices, in the pattern table, of the patterns that the value must match.
    positive: Vec<NodeId>,
    /// The indices, in the pattern table, of the patterns that the value must not match.
    negative: Vec<NodeId>,
}

impl<'a> Conditions<'a> {
    fn of(table: &'a PatternTable, root: NodeId) -> Conditions<'a> {
        let mut all = Conditions::default();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            all.positive.push(id);
            match &table.nodes[id as usize] {
                Node::And(list) => stack.extend(list.iter().copied()),
                Node::Not(p) => all.negative.push(*p),
                Node::Var { name: Some(name), .. } => all.names.push(name),
                Node::Attrs(p, attrs) => {
                    all.attrs.extend(attrs.iter());
                    stack.push(*p);
                }
                Node::DType(p, dtype) => {
                    all.dtypes.push(*dtype);
                    stack.push(*p);
                }
                Node::Shape(p, sizes) => {
                    all.dims(sizes);
                    stack.push(*p);
                }
                Node::Type(p, ty) => {
                    all.ty(ty);
                    stack.push(*p);
                }
                _ => {}
            }
        }
        // The traversal has visited conditions in reverse order.
        all.dtypes.reverse();
        all.sizes.reverse();
        all.ranks.reverse();
        all.attrs.reverse();
        all
    }

    fn dims(&mut self, sizes: &'a [SizePattern]) {
        self.sizes.push(sizes);
        self.ranks.push(sizes.len());
    }

    fn ty(&mut self, ty: &'a TypePattern) {
        if let TypePattern::Tensor { dtype: Some(dtype), .. } | TypePattern::Prim(dtype) = ty {
            self.dtypes.push(*dtype);
        }
        if let TypePattern::Tensor { sizes, ndim, .. } | TypePattern::Shape { sizes, ndim } = ty {
            match (sizes, ndim) {
                (Some(sizes), _) => self.dims(sizes),
                (None, Some(ndim)) => self.ranks.push(*ndim as usize),
                (None, None) => {}
            }
        }
    }
}

/// Returns the reason why no value can satisfy all conditions of a pattern, or `None` if no contradiction is found.
pub(crate) fn contradiction(
    table: &PatternTable,
    id: NodeId,
    ops: &dyn OpRegistry,
) -> Option<String> {
    let all = Conditions::of(table, id);
    let text = |p: NodeId| describe(&table.patterns()[p as usize]);
    for &p in &all.negative {
        if let Node::Wildcard = table.nodes[p as usize] {
            return Some("~wildcard() matches no value".into());
        }
        if all.positive.contains(&p) {
            return Some(format!("the pattern both requires and excludes {}", text(p)));
        }
    }
    if let Some(other) = first_different(&all.dtypes, |a, b| a == b) {
        return Some(format!("a value cannot have both dtype {} and {other}", all.dtypes[0]));
    }
    if let Some(other) = first_different(&all.ranks, |a, b| a == b) {
        return Some(format!("a value cannot have both {} and {other} dims", all.ranks[0]));
    }
    if let Some(other) = first_different(&all.names, |a, b| a == b) {
        return Some(format!("a variable cannot have both names '{}' and '{other}'", all.names[0]));
    }
    if let Some((a, b)) = different_sizes(&all.sizes) {
        return Some(format!("a dim cannot be both {a} and {b}"));
    }
    for (i, (key, value)) in all.attrs.iter().map(|pair| (&pair.0, &pair.1)).enumerate() {
        // A number and a list may denote the same value, so they are not compared.
        let list = |v: &AttrValue| matches!(v, AttrValue::List(_));
        let other = all.attrs[..i]
            .iter()
            .find(|(k, v)| k == key && list(v) == list(value) && !same_attr(v, value));
        if let Some((_, other)) = other {
            return Some(format!("the attribute '{key}' cannot be both {other:?} and {value:?}"));
        }
    }
    missing_property(table, &all)
        .map(|(p, what)| format!("a value that matches {} has no {what}", text(p)))
        .or_else(|| impossible_dtype(table, &all, ops))
}

/// If the results of the operator that a pattern matches never have the required dtype, returns the reason. `None` if they may
/// have this dtype.
fn impossible_dtype(
    table: &PatternTable,
    all: &Conditions<'_>,
    ops: &dyn OpRegistry,
) -> Option<String> {
    let &required = all.dtypes.first()?;
    let attrs: Vec<_> = all.attrs.iter().map(|&pair| pair.clone()).collect();
    all.positive.iter().find_map(|&p| {
        let (op, args) = impossible_call_patterns::single_operator_call(table, p)?;
        match impossible_call_patterns::result_dtype(args, op, &attrs, ops)? {
            Ok(dtype) => (dtype != required).then(|| {
                format!("operator {op} returns dtype {dtype}, but the pattern requires {required}")
            }),
            Err(what) => Some(format!("operator {op} returns {what}, which has no dtype")),
        }
    })
}

/// Returns the first item that differs from item 0 according to `same`.
fn first_different<T: Copy>(list: &[T], same: impl Fn(T, T) -> bool) -> Option<T> {
    list.iter().copied().find(|&item| !same(item, list[0]))
}

/// Returns two different constant sizes that a pattern requires for the same dim; `None` if there are none.
fn different_sizes(lists: &[&[SizePattern]]) -> Option<(i64, i64)> {
    let known = |list: &[SizePattern], i: usize| match list.get(i) {
        Some(SizePattern::Int(v)) => Some(*v),
        _ => None,
    };
    let rank = lists.first()?.len();
    (0..rank).find_map(|i| {
        let values: Vec<i64> = lists.iter().filter_map(|list| known(list, i)).collect();
        Some((*values.first()?, first_different(&values, |a, b| a == b)?))
    })
}

/// Finds a contradiction between two conditions on a value: one pattern matches only values without a dtype (or without a shape),
/// and another requires a dtype (or a shape). Returns the first pattern and the name of the missing property.
fn missing_property(table: &PatternTable, all: &Conditions<'_>) -> Option<(NodeId, &'static str)> {
    all.positive.iter().find_map(|&p| {
        let (dtype, shape) = match &table.nodes[p as usize] {
            Node::Tuple { .. } | Node::Global(_) | Node::Extern(_) => (false, false),
            Node::Literal(Literal::Str(_) | Literal::DType(_)) => (false, false),
            Node::Literal(Literal::Int(..) | Literal::Float(..)) => (true, false),
            Node::ShapeValue(_) => (false, true),
            _ => return None,
        };
        if !dtype && !all.dtypes.is_empty() {
            return Some((p, "dtype"));
        }
        (!shape && !all.ranks.is_empty()).then_some((p, "shape"))
    })
}
