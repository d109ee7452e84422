//! [`PatternContext`]: several patterns, with use relations between them.
//!
//! Each pattern of a context matches one variable of a dataflow block, and different patterns match different variables. A use
//! relation requires that one matched variable is an operand of another. Operand patterns of a call pattern are implicitly
//! related to the call.

use std::cell::Cell;
use std::rc::Rc;

use pliant_ir::op::{CALL_DPS_PACKED, CALL_TIR};
use pliant_ir::relax::visit::{Uses, operand_vars};
use pliant_ir::relax::{Block, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Op, OpRegistry};
use rustc_hash::{FxHashMap, FxHashSet};

use super::impossible_patterns::check;
use super::pattern_matcher::{Goal, Match, Search, Syms};
use super::pattern_nodes::{Pattern, PatternKind};
use super::pattern_table::{Node, NodeId, PatternTable};
use super::rewrite_dataflow_blocks::next_match;
use super::variable_definitions::Defs;
use crate::pass_error::PassError;

/// A use relation between two patterns: the value that `user` matches must use the value that `def` matches.
#[derive(Clone, Debug)]
pub struct UseEdge {
    /// The pattern of the value that is used as an operand.
    pub def: Pattern,
    /// The pattern of the value that has the value of `def` as an operand.
    pub user: Pattern,
    /// The index that the used value must have among the operands of the user; `None` if it may be any operand.
    pub index: Option<u32>,
    /// Whether the used value must have no other uses.
    pub only: bool,
}

/// Several patterns, with use relations between them.
#[derive(Clone, Debug, Default)]
pub struct PatternContext {
    patterns: Vec<Pattern>,
    edges: Vec<UseEdge>,
    same_shape: Vec<Vec<Pattern>>,
    /// A flag of TVM's pattern contexts that is accepted for compatibility. The search ignores it.
    pub no_extern_use: bool,
}

impl PatternContext {
    /// Creates a context without patterns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a pattern to the context.
    pub fn add(&mut self, pattern: &Pattern) {
        if !self.patterns.contains(pattern) {
            self.patterns.push(pattern.clone());
        }
    }

    /// The patterns in the order of insertion.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The use relations between the patterns.
    pub fn edges(&self) -> &[UseEdge] {
        &self.edges
    }

    /// Requires that the value of `user` uses the value of `def`, as operand `index` unless `index` is `None`. If `only` is set,
    /// the value of `def` must have no other uses.
    pub fn used_by(&mut self, def: &Pattern, user: &Pattern, index: Option<u32>, only: bool) {
        self.add(def);
        self.add(user);
        self.edges.push(UseEdge { def: def.clone(), user: user.clone(), index, only });
    }

    /// Requires that the values matched by these patterns provably have the same shape.
    pub fn same_shape(&mut self, patterns: impl IntoIterator<Item = Pattern>) {
        self.same_shape.push(patterns.into_iter().collect());
    }

    /// Rejects a context that can never match.
    ///
    /// # Errors
    /// All reasons why the context can never match.
    pub fn check(&self, ops: &dyn OpRegistry) -> Result<(), PassError> {
        let mut errors: Vec<PassError> =
            self.patterns.iter().filter_map(|p| check(p, ops).err()).collect();
        errors
            .extend(self.edges.iter().filter_map(|e| impossible_use(e, ops)).map(PassError::user));
        errors.extend(self.cycle().map(PassError::user));
        PassError::join(errors).map_or(Ok(()), Err)
    }

    /// Describes a cycle of use relations, if there is one. A cycle can never match.
    fn cycle(&self) -> Option<String> {
        // A topological sort does not reach the patterns in a cycle.
        let mut users: FxHashMap<&Pattern, usize> = FxHashMap::default();
        let mut used: FxHashMap<&Pattern, Vec<&Pattern>> = FxHashMap::default();
        for edge in &self.edges {
            *users.entry(&edge.def).or_default() += 1;
            used.entry(&edge.user).or_default().push(&edge.def);
        }
        let mut done: Vec<&Pattern> =
            self.patterns.iter().filter(|p| !users.contains_key(p)).collect();
        while let Some(user) = done.pop() {
            for def in used.remove(user).unwrap_or_default() {
                let left = users.get_mut(def)?;
                *left -= 1;
                if *left == 0 {
                    users.remove(def);
                    done.push(def);
                }
            }
        }
        let one = self.patterns.iter().find(|p| users.contains_key(p) && used.contains_key(p))?;
        Some(format!(
            "this pattern context can never match: a value that matches {one:?} would have to use itself"
        ))
    }

    /// Searches a dataflow block for the first match that contains no variable in `excluded`.
    pub fn match_block(
        &self,
        func: &Function,
        block: Block,
        ops: &dyn OpRegistry,
        excluded: &FxHashSet<Var>,
    ) -> Option<Match> {
        next_match(func, self, block, ops, &mut excluded.clone())
    }

    /// Searches a block for a match. The pattern that the search matches first is tried only on the candidate variables in the
    /// range `window`: (start, length).
    pub(crate) fn search_block(
        &self,
        func: &Function,
        defs: &Defs,
        index: &BlockIndex,
        ops: &dyn OpRegistry,
        excluded: &FxHashSet<Var>,
        window: (usize, usize),
    ) -> SearchResult {
        let mut table = PatternTable::default();
        let nodes: Vec<NodeId> = self.patterns.iter().map(|p| table.add(p)).collect();
        let edges = self
            .edges
            .iter()
            .map(|e| Edge {
                def: table.add(&e.def),
                user: table.add(&e.user),
                index: e.index,
                only: e.only,
            })
            .collect();
        let same_shape = self
            .same_shape
            .iter()
            .map(|list| list.iter().filter_map(|p| table.id(p)).collect())
            .collect();
        let more = Cell::new(false);
        let context = ContextSearch { nodes, edges, same_shape, index, excluded, window, more };
        let mut syms = Syms::Copy(None);
        let mut search = Search::new(func, &mut syms, defs, ops, &table);
        search.context = Some(&context);
        let start = search.goal(Goal::Assign, u32::MAX);
        match search.solve(start) {
            true => SearchResult::Match(search.to_match(0)),
            false => SearchResult::NoMatch { more: context.more.get() },
        }
    }
}

/// The result of a search in a range of candidate variables.
pub(crate) enum SearchResult {
    /// The search found this match.
    Match(Match),
    /// The search found no match in the range of candidate variables that it tried.
    NoMatch {
        /// Whether there are more candidate variables after the range that the search tried.
        more: bool,
    },
}

/// Returns the reason why no values can satisfy a use relation; `None` if no reason is found.
fn impossible_use(edge: &UseEdge, ops: &dyn OpRegistry) -> Option<String> {
    let never = |reason: String| Some(format!("this pattern context can never match: {reason}"));
    let user = &edge.user;
    match user.kind() {
        PatternKind::Constant | PatternKind::Literal(_) | PatternKind::ShapeValue(_) => never(
            format!("a value that matches {user:?} is a constant, which does not use other values"),
        ),
        PatternKind::Call { callee, .. } => {
            let PatternKind::Op(op) = callee.kind() else { return None };
            // The operands of destination-passing calls are the fields of a tuple, whose number is arbitrary.
            if matches!(*op, CALL_TIR | CALL_DPS_PACKED) {
                return None;
            }
            let max = ops.signature(*op)?.max_operands()?;
            let index = edge.index.filter(|&i| i as usize >= max)?;
            never(format!("operator {op} takes {max} operands, so it has no operand {index}"))
        }
        _ => None,
    }
}

/// A use relation between two patterns of the context (see [`UseEdge`]), which are identified by their index in the pattern table.
struct Edge {
    def: NodeId,
    user: NodeId,
    index: Option<u32>,
    only: bool,
}

/// An index of a dataflow block: the uses of variables, and the variables by the operator of their values.
pub(crate) struct BlockIndex {
    uses: Uses,
    /// The variables of the block whose values are calls of each operator, in the order of their bindings.
    by_op: FxHashMap<Op, Vec<Expr>>,
    /// All variables of the block, in the order of their bindings.
    all: Vec<Expr>,
    vars: FxHashMap<Var, Expr>,
}

impl BlockIndex {
    /// Indexes the uses of variables in a function, and the bindings of a block.
    pub fn of(func: &Function, block: Block) -> Self {
        let mut index = BlockIndex {
            uses: Uses::of(func),
            by_op: FxHashMap::default(),
            all: Vec::new(),
            vars: FxHashMap::default(),
        };
        for b in &func.block(block).bindings {
            // A variable that does not exist in the arena cannot be matched.
            let Some(e) = func.find_var_expr(b.var) else { continue };
            index.all.push(e);
            index.vars.insert(b.var, e);
            if let ExprData::Call { callee: Callee::Op(op), .. } = func.expr(b.value) {
                index.by_op.entry(*op).or_default().push(e);
            }
        }
        index
    }
}

/// The patterns and use relations of a context, in the form that the search uses.
pub(crate) struct ContextSearch<'a> {
    nodes: Vec<NodeId>,
    edges: Vec<Edge>,
    same_shape: Vec<Vec<NodeId>>,
    index: &'a BlockIndex,
    /// The variables that the search must not assign to patterns.
    excluded: &'a FxHashSet<Var>,
    /// The range (start, length) of candidate variables that are tried for the pattern that the search matches first.
    window: (usize, usize),
    /// Whether there are more candidate variables after the range `window`.
    more: Cell<bool>,
}

impl ContextSearch<'_> {
    /// Chooses the next pattern to assign to a variable, and lists its candidate variables. Returns `Some(None)` if all patterns
    /// are assigned, and `None` if the current assignment violates a condition.
    #[expect(
        clippy::option_option,
        reason = "the result distinguishes three cases: an impossible assignment, a complete one, and the next pattern"
    )]
    pub fn next(&self, search: &mut Search<'_>) -> Option<Option<(NodeId, Rc<[Expr]>)>> {
        if !self.relations_hold(search) {
            return None;
        }
        let unassigned: Vec<NodeId> =
            self.nodes.iter().copied().filter(|&n| search.matched(n).is_none()).collect();
        let Some(&last) = unassigned.last() else { return Some(None) };
        let linked = unassigned.iter().find_map(|&n| Some((n, self.linked_candidates(search, n)?)));
        // Without a link to an assigned pattern, start with a pattern that no other one uses, because matching it also matches its
        // operands.
        let (node, list) = linked.unwrap_or_else(|| {
            let used: FxHashSet<NodeId> = self.edges.iter().map(|e| e.def).collect();
            let is_sink = |n: &NodeId| !used.contains(n) && !self.is_nested(search, *n);
            let sink = unassigned.iter().rev().copied().find(is_sink);
            let node = sink.unwrap_or(last);
            let all = self.candidates(search, node);
            if unassigned.len() < self.nodes.len() {
                return (node, all.copied().collect());
            }
            let (start, length) = self.window;
            let mut list: Vec<Expr> = all.skip(start).take(length + 1).copied().collect();
            self.more.set(list.len() > length);
            list.truncate(length);
            (node, list)
        });
        let assigned = self.assigned_vars(search);
        let fits = |e: &Expr| match search.func.expr(*e) {
            ExprData::Var(v) => !assigned.contains(v) && !self.excluded.contains(v),
            _ => true,
        };
        Some(Some((node, list.into_iter().filter(fits).collect())))
    }

    /// Whether a pattern is an operand of another pattern to which the search has not assigned a variable yet.
    fn is_nested(&self, search: &Search<'_>, node: NodeId) -> bool {
        self.nodes.iter().any(|&n| {
            n != node && search.matched(n).is_none() && children(search.table, n).contains(&node)
        })
    }

    /// Returns the variables that are assigned to patterns other than wildcards. Each of them can only be assigned once.
    fn assigned_vars(&self, search: &Search<'_>) -> FxHashSet<Var> {
        let own = |n: &&NodeId| !matches!(search.table.nodes[**n as usize], Node::Wildcard);
        self.nodes.iter().filter(own).filter_map(|&n| search.variable(n)).collect()
    }

    /// Returns the candidate variables for a pattern that has a use relation with an assigned pattern; `None` if it has no such
    /// relation.
    fn linked_candidates(&self, search: &Search<'_>, node: NodeId) -> Option<Vec<Expr>> {
        for edge in &self.edges {
            if edge.user == node
                && let Some(def) = search.variable(edge.def)
            {
                return Some(self.users(def));
            }
            if edge.def == node
                && let Some(user) = search.matched(edge.user)
            {
                let mut out = Vec::new();
                operands(search, search.value(user), |e, _| out.push(e));
                return Some(out);
            }
        }
        let child = children(search.table, node).iter().find_map(|&c| search.variable(c))?;
        Some(self.users(child))
    }

    /// The variables of the block that use `v`.
    fn users(&self, v: Var) -> Vec<Expr> {
        let users = self.index.uses.users(v);
        users.iter().filter_map(|u| self.index.vars.get(u).copied()).collect()
    }

    /// Returns the variables of the block whose value may match the root of a pattern.
    fn candidates<'s>(
        &'s self,
        search: &Search<'_>,
        node: NodeId,
    ) -> impl Iterator<Item = &'s Expr> {
        let root = &search.table.root_kinds[node as usize];
        let (ops, all) = match (&root.ops, root.kinds) {
            (Some(ops), 0) => (&ops[..], &[][..]),
            _ => (&[][..], &self.index.all[..]),
        };
        let lists: Vec<&[Expr]> =
            ops.iter().filter_map(|op| Some(&self.index.by_op.get(op)?[..])).chain([all]).collect();
        lists.into_iter().flatten()
    }

    /// Whether all use relations and shape conditions hold between the patterns to which the search has assigned variables.
    fn relations_hold(&self, search: &mut Search<'_>) -> bool {
        let edges = self.edges.iter().all(|edge| {
            let (Some(def), Some(user)) = (search.matched(edge.def), search.matched(edge.user))
            else {
                return true;
            };
            let mut uses = false;
            operands(search, search.value(user), |e, index| {
                let here = edge.index.is_none_or(|want| want == index);
                uses |= here && search.same_value(e, def);
            });
            uses && (!edge.only || self.only_user(search, edge))
        });
        edges && self.same_shape.iter().all(|list| search.shapes_agree(list))
    }

    /// Whether the used value of a use relation has no user other than that of the relation.
    fn only_user(&self, search: &Search<'_>, edge: &Edge) -> bool {
        let (Some(def), Some(user)) = (search.variable(edge.def), search.variable(edge.user))
        else {
            return false;
        };
        let users = self.index.uses.users(def);
        let read = operand_vars(
            search.func,
            search.value(
                search
                    .matched(edge.user)
                    .expect("both patterns of a checked use relation are assigned to variables"),
            ),
        );
        let reads = read.iter().filter(|&&v| v == def).count();
        users == [user] && self.index.uses.count(def) == reads
    }
}

/// Returns the patterns of the operands, if a pattern matches a call, a tuple or a field access; empty for other patterns.
fn children(table: &PatternTable, node: NodeId) -> Vec<NodeId> {
    let mut out = Vec::new();
    let mut stack = vec![(node, 0u32)];
    while let Some((n, depth)) = stack.pop() {
        match &table.nodes[n as usize] {
            Node::Call { args, .. } if depth == 0 => stack.extend(args.iter().map(|&a| (a, 1))),
            Node::Tuple { fields, .. } => stack.extend(fields.iter().map(|&a| (a, 1))),
            Node::GetItem(p, _) if depth == 0 => stack.push((*p, 1)),
            Node::Attrs(p, _) | Node::DType(p, _) | Node::Shape(p, _) | Node::Type(p, _)
                if depth == 0 =>
            {
                stack.push((*p, 0));
            }
            _ if depth > 0 => out.push(n),
            _ => {}
        }
    }
    out
}

/// Calls `visit` with each operand of a value and its index. For a destination-passing call such as `R.call_tir`, the operands
/// are the fields of its argument tuple. Fields of other tuple operands are visited with the index of the tuple.
fn operands(search: &Search<'_>, value: Expr, mut visit: impl FnMut(Expr, u32)) {
    let func = search.func;
    match func.expr(value) {
        ExprData::Call { callee, args, .. } => {
            let args = func.list(*args);
            let passed = match callee {
                Callee::Op(CALL_TIR | CALL_DPS_PACKED) => {
                    args.get(1).and_then(|&t| func.tuple_fields(search.value(t)))
                }
                _ => None,
            };
            for (i, &arg) in passed.unwrap_or(args).iter().enumerate() {
                visit(arg, i as u32);
                for &field in func.tuple_fields(arg).into_iter().flatten() {
                    visit(field, i as u32);
                }
            }
        }
        ExprData::Tuple(list) => {
            func.list(*list).iter().enumerate().for_each(|(i, &e)| visit(e, i as u32));
        }
        ExprData::TupleGetItem(t, _) => visit(*t, 0),
        _ => {}
    }
}
