//! [`PatternTable`]: a flat table of all nested patterns without duplicates, with the kinds of values that each can match.

use pliant_ir::{AttrValue, DType, Op};
use rustc_hash::FxHashMap;
use std::sync::Arc;

use super::pattern_nodes::{Literal, Pattern, PatternKind};
use super::type_pattern::{SizePattern, TypePattern};

/// The index of a pattern in its [`PatternTable`].
pub(crate) type NodeId = u32;

/// A pattern in a [`PatternTable`]. It is like [`PatternKind`], but refers to nested patterns by their index in the table.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Wildcard,
    Op(Op),
    Var { name: Option<Arc<str>>, dataflow: bool },
    Global(Option<Arc<str>>),
    Extern(Option<Arc<str>>),
    Constant,
    Literal(Literal),
    ShapeValue(Box<[SizePattern]>),
    Tuple { fields: Box<[NodeId]>, unordered: bool },
    GetItem(NodeId, Option<u32>),
    Call { callee: NodeId, args: Box<[NodeId]>, more: bool },
    Or(Box<[NodeId]>),
    And(Box<[NodeId]>),
    Not(NodeId),
    Attrs(NodeId, Box<[(Arc<str>, AttrValue)]>),
    DType(NodeId, DType),
    Shape(NodeId, Box<[SizePattern]>),
    Type(NodeId, TypePattern),
    SameShape(Box<[NodeId]>),
}

/// The kinds of values that a pattern can match, derived from its outermost condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootKinds {
    /// The operators whose calls the pattern can match; `None` for all operators.
    pub ops: Option<Vec<Op>>,
    /// The kinds of values other than operator calls that the pattern can match, as a bit set of [`CALL`] to [`SHAPE`].
    pub kinds: u16,
}

/// The bit in [`RootKinds::kinds`] for calls of a function of the module, of a function value or of a packed function.
pub(crate) const CALL: u16 = 1;
/// The bit in [`RootKinds::kinds`] for tuples.
pub(crate) const TUPLE: u16 = 2;
/// The bit in [`RootKinds::kinds`] for accesses to a field of a tuple.
pub(crate) const FIELD: u16 = 4;
/// The bit in [`RootKinds::kinds`] for literal scalars, strings and data types.
pub(crate) const LEAF: u16 = 8;
/// The bit in [`RootKinds::kinds`] for names of functions.
pub(crate) const NAME: u16 = 16;
/// The bit in [`RootKinds::kinds`] for all other values: parameters, branches, local functions.
pub(crate) const OTHER: u16 = 32;
/// The bit in [`RootKinds::kinds`] for tensor constants.
pub(crate) const CONSTANT: u16 = 64;
/// The bit in [`RootKinds::kinds`] for literal shapes.
pub(crate) const SHAPE: u16 = 128;
const ALL: u16 = CALL | TUPLE | FIELD | LEAF | NAME | OTHER | CONSTANT | SHAPE;

impl RootKinds {
    fn all() -> Self {
        RootKinds { ops: None, kinds: ALL }
    }

    fn kinds(kinds: u16) -> Self {
        RootKinds { ops: Some(Vec::new()), kinds }
    }

    fn or(mut self, other: &RootKinds) -> Self {
        self.kinds |= other.kinds;
        self.ops = match (self.ops, &other.ops) {
            (Some(mut a), Some(b)) => {
                for op in b {
                    if !a.contains(op) {
                        a.push(*op);
                    }
                }
                Some(a)
            }
            _ => None,
        };
        self
    }

    fn and(mut self, other: &RootKinds) -> Self {
        self.kinds &= other.kinds;
        self.ops = match (self.ops, &other.ops) {
            (None, b) => b.clone(),
            (a, None) => a,
            (Some(a), Some(b)) => Some(a.into_iter().filter(|op| b.contains(op)).collect()),
        };
        self
    }

    /// Whether the pattern can match no value at all.
    pub fn is_empty(&self) -> bool {
        self.kinds == 0 && self.ops.as_ref().is_some_and(Vec::is_empty)
    }
}

/// A flat table of patterns. Nested patterns precede the patterns that contain them, and shared patterns occur once.
#[derive(Clone, Debug, Default)]
pub struct PatternTable {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root_kinds: Vec<RootKinds>,
    patterns: Vec<Pattern>,
    ids: FxHashMap<Pattern, NodeId>,
}

impl PatternTable {
    /// Creates the table of one pattern.
    pub fn of(pattern: &Pattern) -> Self {
        let mut table = PatternTable::default();
        table.add(pattern);
        table
    }

    /// Adds a pattern and its nested patterns, and returns the index of the pattern.
    pub(crate) fn add(&mut self, root: &Pattern) -> NodeId {
        let mut stack = vec![(root.clone(), false)];
        while let Some((pattern, ready)) = stack.pop() {
            if self.ids.contains_key(&pattern) {
                continue;
            }
            if !ready {
                stack.push((pattern.clone(), true));
                stack.extend(pattern.children().into_iter().rev().map(|c| (c.clone(), false)));
                continue;
            }
            let node = self.compile(&pattern);
            let kinds = self.root_kinds_of(&node);
            let id = self.nodes.len() as NodeId;
            self.nodes.push(node);
            self.root_kinds.push(kinds);
            self.patterns.push(pattern.clone());
            self.ids.insert(pattern, id);
        }
        self.ids[root]
    }

    /// The index of a pattern; `None` if it is not in the table.
    pub(crate) fn id(&self, pattern: &Pattern) -> Option<NodeId> {
        self.ids.get(pattern).copied()
    }

    /// The patterns in the order of their indices.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    fn list(&self, patterns: &[Pattern]) -> Box<[NodeId]> {
        patterns.iter().map(|p| self.ids[p]).collect()
    }

    fn compile(&self, pattern: &Pattern) -> Node {
        let id = |p: &Pattern| self.ids[p];
        match pattern.kind().clone() {
            PatternKind::Wildcard => Node::Wildcard,
            PatternKind::Op(op) => Node::Op(op),
            PatternKind::Var { name, dataflow } => Node::Var { name, dataflow },
            PatternKind::Global(name) => Node::Global(name),
            PatternKind::Extern(name) => Node::Extern(name),
            PatternKind::Constant => Node::Constant,
            PatternKind::Literal(value) => Node::Literal(value),
            PatternKind::ShapeValue(sizes) => Node::ShapeValue(sizes),
            PatternKind::Tuple { fields, unordered } => {
                Node::Tuple { fields: self.list(&fields), unordered }
            }
            PatternKind::GetItem(p, index) => Node::GetItem(id(&p), index),
            PatternKind::Call { callee, args, more } => {
                Node::Call { callee: id(&callee), args: self.list(&args), more }
            }
            PatternKind::Or(list) => Node::Or(self.list(&list)),
            PatternKind::And(list) => Node::And(self.list(&list)),
            PatternKind::Not(p) => Node::Not(id(&p)),
            PatternKind::Attrs(p, attrs) => Node::Attrs(id(&p), attrs),
            PatternKind::DType(p, dtype) => Node::DType(id(&p), dtype),
            PatternKind::Shape(p, sizes) => Node::Shape(id(&p), sizes),
            PatternKind::Type(p, ty) => Node::Type(id(&p), ty),
            PatternKind::SameShape(list) => Node::SameShape(self.list(&list)),
        }
    }

    /// Returns the kinds of calls that a call pattern can match, derived from the pattern `callee`.
    pub(crate) fn callee_ops(&self, callee: NodeId) -> RootKinds {
        match &self.nodes[callee as usize] {
            Node::Op(op) => RootKinds { ops: Some(vec![*op]), kinds: 0 },
            Node::Global(_) | Node::Extern(_) | Node::Var { .. } => RootKinds::kinds(CALL),
            Node::Or(list) => list
                .iter()
                .map(|&p| self.callee_ops(p))
                .reduce(|a, b| a.or(&b))
                .unwrap_or_else(|| RootKinds::kinds(0)),
            Node::And(list) => list
                .iter()
                .map(|&p| self.callee_ops(p))
                .reduce(|a, b| a.and(&b))
                .unwrap_or_else(RootKinds::all),
            Node::Attrs(p, _) => self.callee_ops(*p),
            _ => RootKinds { ops: None, kinds: CALL },
        }
    }

    fn root_kinds_of(&self, node: &Node) -> RootKinds {
        let kinds = |p: &NodeId| &self.root_kinds[*p as usize];
        match node {
            // A variable matches regardless of its value.
            Node::Wildcard | Node::Var { .. } | Node::Not(_) => RootKinds::all(),
            // Operators only match as callees.
            Node::Op(_) => RootKinds::kinds(0),
            Node::Global(_) | Node::Extern(_) => RootKinds::kinds(NAME),
            Node::Constant | Node::Literal(Literal::Tensor(_)) => RootKinds::kinds(CONSTANT),
            Node::ShapeValue(_) => RootKinds::kinds(SHAPE),
            Node::Literal(_) => RootKinds::kinds(LEAF),
            Node::Tuple { .. } => RootKinds::kinds(TUPLE),
            Node::GetItem(..) => RootKinds::kinds(FIELD),
            Node::Call { callee, .. } => self.callee_ops(*callee),
            Node::Or(list) => {
                let first = RootKinds::kinds(0);
                list.iter().fold(first, |a, p| a.or(kinds(p)))
            }
            Node::And(list) => list.iter().fold(RootKinds::all(), |a, p| a.and(kinds(p))),
            Node::Attrs(p, _) => {
                // An operator with attributes only matches as a callee; a call with attributes matches calls.
                if matches!(self.nodes[*p as usize], Node::Op(_)) {
                    RootKinds::kinds(0)
                } else {
                    kinds(p).clone().and(&RootKinds { ops: None, kinds: CALL | NAME })
                }
            }
            Node::DType(p, _) | Node::Shape(p, _) | Node::Type(p, _) => kinds(p).clone(),
            Node::SameShape(list) => list.first().map_or_else(RootKinds::all, |p| kinds(p).clone()),
        }
    }
}
