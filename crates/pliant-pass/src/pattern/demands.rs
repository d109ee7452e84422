//! Collects the conditions that a pattern imposes on one value, and detects contradictions.

use std::sync::Arc;

use pliant_ir::{AttrValue, DType, OpRegistry};

use super::check::describe;
use super::compare::same_attr;
use super::node::Literal;
use super::size::{SizePattern, TypePattern};
use super::table::{Node, NodeId, PatternTable};
use super::typed;

/// The conditions that a pattern and its nested constraint patterns impose on one value.
#[derive(Default)]
struct Demands<'a> {
    dtypes: Vec<DType>,
    sizes: Vec<&'a [SizePattern]>,
    ranks: Vec<usize>,
    names: Vec<&'a Arc<str>>,
    attrs: Vec<&'a (Arc<str>, AttrValue)>,
    /// The patterns that the value must match, and those that it must not match.
    positive: Vec<NodeId>,
    negative: Vec<NodeId>,
}

impl<'a> Demands<'a> {
    fn of(table: &'a PatternTable, root: NodeId) -> Demands<'a> {
        let mut all = Demands::default();
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
        // Restore the order in which the conditions are written.
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

/// The reason why no value satisfies all conditions of a pattern; `None` if there may be one.
pub(crate) fn contradiction(
    table: &PatternTable,
    id: NodeId,
    ops: &dyn OpRegistry,
) -> Option<String> {
    let all = Demands::of(table, id);
    let text = |p: NodeId| describe(&table.patterns()[p as usize]);
    for &p in &all.negative {
        if let Node::Wildcard = table.nodes[p as usize] {
            return Some("~wildcard() refuses every value".into());
        }
        if all.positive.contains(&p) {
            return Some(format!("it asks for {} and refuses it", text(p)));
        }
    }
    if let Some(two) = second(&all.dtypes, |a, b| a == b) {
        return Some(format!("a value of {} is not of {two}", all.dtypes[0]));
    }
    if let Some(two) = second(&all.ranks, |a, b| a == b) {
        return Some(format!("a value of {} dims does not have {two}", all.ranks[0]));
    }
    if let Some(two) = second(&all.names, |a, b| a == b) {
        return Some(format!("a variable is not called both '{}' and '{two}'", all.names[0]));
    }
    if let Some((a, b)) = sizes_differ(&all.sizes) {
        return Some(format!("a dim of {a} is not {b}"));
    }
    for (i, (key, value)) in all.attrs.iter().map(|pair| (&pair.0, &pair.1)).enumerate() {
        // A number may be equivalent to a list that contains it.
        let list = |v: &AttrValue| matches!(v, AttrValue::List(_));
        let other = all.attrs[..i]
            .iter()
            .find(|(k, v)| k == key && list(v) == list(value) && !same_attr(v, value));
        if let Some((_, other)) = other {
            return Some(format!("the attribute '{key}' is not both {other:?} and {value:?}"));
        }
    }
    without_type(table, &all)
        .map(|(p, what)| format!("{} has no {what}", text(p)))
        .or_else(|| other_result(table, &all, ops))
}

/// An operator whose results never have the required dtype.
fn other_result(table: &PatternTable, all: &Demands<'_>, ops: &dyn OpRegistry) -> Option<String> {
    let &asked = all.dtypes.first()?;
    let attrs: Vec<_> = all.attrs.iter().map(|&pair| pair.clone()).collect();
    all.positive.iter().find_map(|&p| {
        let (op, args) = typed::call_of_one(table, p)?;
        match typed::result_dtype(args, op, &attrs, ops)? {
            Ok(is) => (is != asked).then(|| format!("{op} gives {is}, not {asked}")),
            Err(what) => Some(format!("{op} gives {what}, which has no dtype")),
        }
    })
}

/// The first item that differs from the first one.
fn second<T: Copy>(list: &[T], same: impl Fn(T, T) -> bool) -> Option<T> {
    list.iter().copied().find(|&item| !same(item, list[0]))
}

fn sizes_differ(lists: &[&[SizePattern]]) -> Option<(i64, i64)> {
    let known = |list: &[SizePattern], i: usize| match list.get(i) {
        Some(SizePattern::Int(v)) => Some(*v),
        _ => None,
    };
    let rank = lists.first()?.len();
    (0..rank).find_map(|i| {
        let values: Vec<i64> = lists.iter().filter_map(|list| known(list, i)).collect();
        Some((*values.first()?, second(&values, |a, b| a == b)?))
    })
}

/// A subpattern with a required dtype or shape whose value has none.
fn without_type(table: &PatternTable, all: &Demands<'_>) -> Option<(NodeId, &'static str)> {
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
