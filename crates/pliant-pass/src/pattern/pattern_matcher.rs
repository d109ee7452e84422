//! The backtracking search for a pattern in a function, and its result [`Match`].
//!
//! The search has a list of goals (conditions that remain to be satisfied) and a stack of choice points. When a goal fails, the
//! search backtracks to the last choice point and tries the next alternative. It does not recurse over the program, and recurses
//! over patterns only for negations.

use std::rc::Rc;

use cranelift_entity::packed_option::PackedOption;
use pliant_ir::op::OpRegistry;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Op, Sym};
use pliant_sym::SymArena;
use rustc_hash::FxHashMap;

use super::pattern_context::ContextSearch;
use super::pattern_nodes::Pattern;
use super::pattern_table::{Node, NodeId, PatternTable};
use super::type_pattern::SizeTerm;
use super::unification::{literal_is, same_attr, same_name};
use super::variable_definitions::Defs;

/// Maximum number of steps of one search. Without a limit, the search time can be exponential in the number of alternatives.
const MAX_STEPS: u32 = 1 << 20;

/// Maximum nesting depth of negations (`!p`) in a pattern.
const MAX_NEGATIONS: u32 = 64;

/// A match: the expressions that the nodes of a pattern have matched.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// The index of the rule that matched.
    pub rule: usize,
    entries: Vec<(Pattern, Expr)>,
    ids: FxHashMap<Pattern, usize>,
    sizes: FxHashMap<u64, Sym>,
}

impl Match {
    /// Returns the expression that a pattern node has matched; `None` if the node is not part of the match, for example because
    /// it is an alternative that was not chosen.
    pub fn get(&self, pattern: &Pattern) -> Option<Expr> {
        self.ids.get(pattern).map(|&i| self.entries[i].1)
    }

    /// Iterates over the pattern nodes of the match, each with the expression that it has matched. Nested patterns precede the
    /// patterns that contain them.
    pub fn iter(&self) -> impl Iterator<Item = (&Pattern, Expr)> {
        self.entries.iter().map(|(p, e)| (p, *e))
    }

    /// Iterates over the expressions that call, tuple and field patterns have matched.
    pub fn computed(&self) -> impl Iterator<Item = Expr> {
        self.entries
            .iter()
            .filter(|(p, _)| {
                use super::pattern_nodes::PatternKind::{Call, GetItem, Tuple};
                matches!(p.kind(), Call { .. } | GetItem(..) | Tuple { .. })
            })
            .map(|(_, e)| *e)
    }

    /// Returns the size that the match has assigned to the symbol with the key `key` (the number that identifies the symbol in
    /// all patterns).
    pub fn size(&self, key: u64) -> Option<Sym> {
        self.sizes.get(&key).copied()
    }

    /// Maps the key of each symbol (the number that identifies the symbol in all patterns) to the size that the match has
    /// assigned to it.
    pub fn sizes(&self) -> &FxHashMap<u64, Sym> {
        &self.sizes
    }
}

/// Matches an expression of a function against a pattern. The search follows variables to their values if these are in `defs`.
pub fn match_expr(
    func: &Function,
    defs: &Defs,
    ops: &dyn OpRegistry,
    pattern: &Pattern,
    expr: Expr,
) -> Option<Match> {
    let table = PatternTable::of(pattern);
    let root = table.id(pattern)?;
    let mut syms = Syms::Copy(None);
    let mut search = Search::new(func, &mut syms, defs, ops, &table);
    search.find(root, expr).then(|| search.to_match(0))
}

/// The arena of symbolic terms in which the search compares sizes. The prover of equalities adds terms to it.
pub(crate) enum Syms {
    /// The arena of the function itself, which is moved out of the function during the search.
    Own(SymArena),
    /// A copy of the function's arena; `None` until the copy is needed.
    Copy(Option<SymArena>),
}

/// A condition that remains to be satisfied for a match.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    /// The pattern with this index must match this expression.
    Match(NodeId, Expr),
    /// Each field pattern of the unordered tuple pattern `tuple`, from index `next` on, must match a different field of `expr`.
    /// Fields in the bit set `used` are already matched.
    Fields { tuple: NodeId, expr: Expr, next: u32, used: u64 },
    /// All values that the patterns of this [`Node::SameShape`] have matched must have the same shape.
    SameShape(NodeId),
    /// Every pattern of the context must be assigned to a variable.
    Assign,
}

/// The index that ends a linked list of goals (conditions that remain to be satisfied) in `Search::goals`.
const END: u32 = u32::MAX;

/// The state to which the search can backtrack, and the alternative to try from there.
struct ChoicePoint {
    /// The alternative to try after backtracking to this choice point.
    next: Alternative,
    /// The length of `Search::trail` at the time of the choice. `bound` and `deferred` are the lengths of `size_trail` and
    /// `deferred_terms` at that time. Backtracking restores these lengths.
    matched: usize,
    bound: usize,
    deferred: usize,
}

enum Alternative {
    /// The search continues with the list of goals (conditions that remain to be satisfied) at this index of `Search::goals`.
    Goals(u32),
    /// The search assigns the pattern `node` of a context to the variable at index `next` of `list`, the candidates for this
    /// pattern, and then continues with the list of goals at index `rest`. Each backtracking step advances `next`.
    Candidates { node: NodeId, list: Rc<[Expr]>, next: usize, rest: u32 },
}

/// The state of the backtracking search for one pattern or context.
pub(crate) struct Search<'a> {
    pub func: &'a Function,
    pub(super) syms: &'a mut Syms,
    pub defs: &'a Defs,
    ops: &'a dyn OpRegistry,
    pub table: &'a PatternTable,
    /// The context whose patterns are assigned to variables; `None` if the search is for a single pattern.
    pub context: Option<&'a ContextSearch<'a>>,
    /// Linked lists of goals (conditions that remain to be satisfied), each element as (goal, index of the next element).
    goals: Vec<(Goal, u32)>,
    /// For each node of the pattern table, the expression that it has matched.
    matched: Vec<PackedOption<Expr>>,
    /// The nodes that have matched so far, in the order in which they matched. Backtracking removes nodes from the end.
    trail: Vec<NodeId>,
    /// Maps the key of each bound symbol (the number that identifies the symbol in all patterns) to the size to which it is
    /// bound.
    pub(super) sizes: FxHashMap<u64, Sym>,
    /// The keys in `sizes`, in the order in which their symbols were bound. Backtracking removes keys from the end.
    pub(super) size_trail: Vec<u64>,
    /// Terms that contain symbols without a binding, each with the size that it must equal. They are compared after all goals are
    /// satisfied.
    pub(super) deferred_terms: Vec<(SizeTerm, Sym)>,
    steps: u32,
    negations: u32,
}

impl<'a> Search<'a> {
    pub fn new(
        func: &'a Function,
        syms: &'a mut Syms,
        defs: &'a Defs,
        ops: &'a dyn OpRegistry,
        table: &'a PatternTable,
    ) -> Self {
        Search {
            func,
            syms,
            defs,
            ops,
            table,
            context: None,
            goals: Vec::new(),
            matched: vec![None.into(); table.nodes.len()],
            trail: Vec::new(),
            sizes: FxHashMap::default(),
            size_trail: Vec::new(),
            deferred_terms: Vec::new(),
            steps: 0,
            negations: 0,
        }
    }

    /// Searches for a way in which the pattern `root` matches the expression. Returns whether there is one.
    pub fn find(&mut self, root: NodeId, expr: Expr) -> bool {
        self.goals.clear();
        let start = self.goal(Goal::Match(root, expr), END);
        self.solve(start)
    }

    /// Converts the state after a successful search to a [`Match`].
    pub fn to_match(&self, rule: usize) -> Match {
        let mut nodes = self.trail.clone();
        nodes.sort_unstable();
        let mut out = Match { rule, sizes: self.sizes.clone(), ..Match::default() };
        for node in nodes {
            let expr = self.matched[node as usize]
                .expect("every pattern node on the trail has matched an expression");
            let pattern = self.table.patterns()[node as usize].clone();
            out.ids.insert(pattern.clone(), out.entries.len());
            out.entries.push((pattern, expr));
        }
        out
    }

    /// Iterates over the nodes that have matched, each with the expression that it has matched.
    pub fn matched_nodes(&self) -> impl Iterator<Item = (NodeId, Expr)> {
        self.trail.iter().map(|&n| {
            (
                n,
                self.matched[n as usize]
                    .expect("every pattern node on the trail has matched an expression"),
            )
        })
    }

    /// Returns the expression that a node has matched; `None` if it has matched none.
    pub fn matched(&self, node: NodeId) -> Option<Expr> {
        self.matched[node as usize].expand()
    }

    /// Adds a goal (a condition that remains to be satisfied) in front of the linked list that starts at index `rest`. Returns the
    /// index at which the longer list starts.
    pub fn goal(&mut self, goal: Goal, rest: u32) -> u32 {
        self.goals.push((goal, rest));
        (self.goals.len() - 1) as u32
    }

    /// Searches for a way to satisfy all goals (conditions that remain to be satisfied) in the linked list that starts at index
    /// `start`. Returns whether there is one.
    pub fn solve(&mut self, start: u32) -> bool {
        let mut choices: Vec<ChoicePoint> = Vec::new();
        let mut goals = Some(start);
        loop {
            match goals {
                Some(END) if self.deferred_terms_match() => return true,
                Some(END) | None => {
                    goals = match self.backtrack(&mut choices) {
                        Some(next) => Some(next),
                        None => return false,
                    }
                }
                Some(goal) => {
                    self.steps += 1;
                    if self.steps > MAX_STEPS {
                        return false;
                    }
                    let (goal, rest) = self.goals[goal as usize].clone();
                    goals = self.step(goal, rest, &mut choices);
                }
            }
        }
    }

    /// Backtracks to the last choice point with an untried alternative. Returns the list of goals to continue with; `None` if no
    /// alternative is left.
    fn backtrack(&mut self, choices: &mut Vec<ChoicePoint>) -> Option<u32> {
        loop {
            let mut choice = choices.pop()?;
            self.undo(choice.matched, choice.bound, choice.deferred);
            match &mut choice.next {
                Alternative::Goals(goals) => return Some(*goals),
                Alternative::Candidates { node, list, next, rest } => {
                    let Some(&candidate) = list.get(*next) else { continue };
                    let (node, rest) = (*node, *rest);
                    *next += 1;
                    choices.push(choice);
                    return Some(self.goal(Goal::Match(node, candidate), rest));
                }
            }
        }
    }

    fn undo(&mut self, matched: usize, bound: usize, deferred: usize) {
        for node in self.trail.drain(matched..) {
            self.matched[node as usize] = None.into();
        }
        for key in self.size_trail.drain(bound..) {
            self.sizes.remove(&key);
        }
        self.deferred_terms.truncate(deferred);
    }

    /// Adds a choice point: if a later goal fails, the search backtracks to the current state and tries the alternative `next`.
    fn choose(&mut self, next: Alternative, choices: &mut Vec<ChoicePoint>) {
        choices.push(ChoicePoint {
            next,
            matched: self.trail.len(),
            bound: self.size_trail.len(),
            deferred: self.deferred_terms.len(),
        });
    }

    /// Processes one goal (a condition that remains to be satisfied). Returns the index of the list of goals to continue with;
    /// `None` if the goal cannot be satisfied.
    fn step(&mut self, goal: Goal, rest: u32, choices: &mut Vec<ChoicePoint>) -> Option<u32> {
        match goal {
            Goal::Match(node, expr) => {
                if let Some(before) = self.matched(node) {
                    return self.same_value(before, expr).then_some(rest);
                }
                self.matched[node as usize] = Some(expr).into();
                self.trail.push(node);
                self.expand(node, expr, rest, choices)
            }
            Goal::Fields { tuple, expr, next, used } => {
                self.any_field(tuple, expr, next, used, rest, choices)
            }
            Goal::SameShape(node) => self.same_shape(node).then_some(rest),
            Goal::Assign => {
                let context = self.context?;
                let (node, list) = match context.next(self)? {
                    Some(next) => next,
                    None => return Some(rest),
                };
                let again = self.goal(Goal::Assign, rest);
                let candidates = Alternative::Candidates { node, list, next: 0, rest: again };
                self.choose(candidates, choices);
                None
            }
        }
    }

    /// Checks the condition of a pattern node against an expression, and prepends the goals for nested patterns to the list
    /// `rest`. Returns the new list; `None` if the condition does not hold.
    fn expand(
        &mut self,
        id: NodeId,
        e: Expr,
        rest: u32,
        choices: &mut Vec<ChoicePoint>,
    ) -> Option<u32> {
        let table = self.table;
        let func = self.func;
        match &table.nodes[id as usize] {
            Node::Wildcard => Some(rest),
            Node::Op(_) => None,
            Node::Var { name, dataflow } => {
                let ExprData::Var(v) = func.expr(e) else { return None };
                let var = func.var(*v);
                let fits =
                    name.as_ref().is_none_or(|n| *n == var.name) && (!dataflow || var.dataflow);
                fits.then_some(rest)
            }
            Node::Global(name) => match func.expr(self.value(e)) {
                ExprData::Global(s) => same_name(name, func.str(*s)).then_some(rest),
                _ => None,
            },
            Node::Extern(name) => match func.expr(self.value(e)) {
                ExprData::Extern(s) => same_name(name, func.str(*s)).then_some(rest),
                _ => None,
            },
            Node::Constant => {
                matches!(func.expr(self.value(e)), ExprData::Constant(_)).then_some(rest)
            }
            Node::Literal(value) => {
                let e = self.value(e);
                literal_is(func, self.syms.read(func), e, value).then_some(rest)
            }
            Node::ShapeValue(sizes) => match func.expr(self.value(e)) {
                ExprData::Shape(dims) => self.sizes_fit(sizes, dims).then_some(rest),
                _ => None,
            },
            Node::Tuple { fields, unordered } => {
                let have = func.tuple_fields(self.value(e))?;
                if have.len() != fields.len() {
                    return None;
                }
                if *unordered && fields.len() <= 64 {
                    let value = self.value(e);
                    return Some(
                        self.goal(Goal::Fields { tuple: id, expr: value, next: 0, used: 0 }, rest),
                    );
                }
                Some(self.match_all(fields, have, rest))
            }
            Node::GetItem(tuple, index) => match func.expr(self.value(e)) {
                ExprData::TupleGetItem(t, i) if index.is_none_or(|want| want == *i) => {
                    Some(self.goal(Goal::Match(*tuple, *t), rest))
                }
                _ => None,
            },
            Node::Call { callee, args, more } => self.call(*callee, args, *more, e, rest, choices),
            Node::Or(list) => {
                let (first, others) = list.split_first()?;
                for &p in others.iter().rev() {
                    let goals = self.goal(Goal::Match(p, e), rest);
                    self.choose(Alternative::Goals(goals), choices);
                }
                Some(self.goal(Goal::Match(*first, e), rest))
            }
            Node::And(list) => {
                Some(list.iter().rev().fold(rest, |rest, &p| self.goal(Goal::Match(p, e), rest)))
            }
            Node::Not(p) => self.is_refuted(*p, e).then_some(rest),
            Node::Attrs(p, attrs) => {
                let ExprData::Call { callee, attrs: have, .. } = func.expr(self.value(e)) else {
                    return None;
                };
                let have = func.call_attrs(*have);
                let fits = attrs.iter().all(|(k, v)| self.attr_is(*callee, have.get(k), k, v));
                fits.then(|| self.goal(Goal::Match(*p, e), rest))
            }
            Node::DType(p, dtype) => {
                (func.ty(e).dtype() == Some(*dtype)).then(|| self.goal(Goal::Match(*p, e), rest))
            }
            Node::Shape(p, sizes) => {
                let dims = func.ty(e).dims()?;
                self.sizes_fit(sizes, dims).then(|| self.goal(Goal::Match(*p, e), rest))
            }
            Node::Type(p, ty) => {
                self.type_fits(ty, func.expr_ty(e)).then(|| self.goal(Goal::Match(*p, e), rest))
            }
            Node::SameShape(list) => {
                let check = self.goal(Goal::SameShape(id), rest);
                Some(self.goal(Goal::Match(*list.first()?, e), check))
            }
        }
    }

    /// Adds goals in front of the list of goals `rest`: each of `patterns` must match the expression at the same index of `exprs`.
    /// Returns the index of the longer list.
    fn match_all(&mut self, patterns: &[NodeId], exprs: &[Expr], rest: u32) -> u32 {
        let pairs = patterns.iter().zip(exprs).rev();
        pairs.fold(rest, |rest, (&p, &e)| self.goal(Goal::Match(p, e), rest))
    }

    fn call(
        &mut self,
        callee: NodeId,
        args: &[NodeId],
        more: bool,
        e: Expr,
        rest: u32,
        choices: &mut Vec<ChoicePoint>,
    ) -> Option<u32> {
        let func = self.func;
        let ExprData::Call { callee: called, args: have, attrs, .. } = func.expr(self.value(e))
        else {
            return None;
        };
        let have = func.list(*have);
        if have.len() < args.len() || (have.len() > args.len() && !more) {
            return None;
        }
        let called = *called;
        let rest = match called {
            Callee::Op(op) => {
                if !self.op_fits(callee, op, func.call_attrs(*attrs), 0) {
                    return None;
                }
                if let [left, right] = *args
                    && self.ops.is_commutative(op)
                    && let [x, y] = *have
                    && left != right
                {
                    let goals = self.match_all(&[left, right], &[y, x], rest);
                    self.choose(Alternative::Goals(goals), choices);
                }
                rest
            }
            Callee::Expr(f) => self.goal(Goal::Match(callee, f), rest),
        };
        Some(self.match_all(args, have, rest))
    }

    /// Whether a callee pattern matches an operator. `depth` is the nesting depth of the pattern.
    fn op_fits(&self, node: NodeId, op: Op, attrs: &pliant_ir::Attrs, depth: u32) -> bool {
        if depth > MAX_NEGATIONS {
            return false;
        }
        let fits = |p: &NodeId| self.op_fits(*p, op, attrs, depth + 1);
        match &self.table.nodes[node as usize] {
            Node::Wildcard => true,
            Node::Op(want) => *want == op,
            Node::Or(list) => list.iter().any(fits),
            Node::And(list) => list.iter().all(fits),
            Node::Not(p) => !fits(p),
            Node::Attrs(p, want) => {
                fits(p)
                    && want.iter().all(|(k, v)| self.attr_is(Callee::Op(op), attrs.get(k), k, v))
            }
            _ => false,
        }
    }

    /// Whether an attribute of a call has the given value. If the call omits the attribute, its default value is compared.
    fn attr_is(
        &self,
        callee: Callee,
        have: Option<&AttrValue>,
        key: &str,
        want: &AttrValue,
    ) -> bool {
        let signature = if let Callee::Op(op) = callee { self.ops.signature(op) } else { None };
        let default = || signature?.attrs.iter().find(|(k, _)| *k == key)?.1.as_ref();
        let Some(have) = have.or_else(default) else { return false };
        same_attr(have, want) || {
            let normalized =
                |value: &AttrValue| signature.map(|s| s.normalize_attr(key, value.clone()));
            normalized(have)
                .zip(normalized(want))
                .is_some_and(|(have, want)| same_attr(&have, &want))
        }
    }

    /// Processes [`Goal::Fields`]: the next field pattern may match any unused field. Adds a choice point for each of these
    /// fields.
    fn any_field(
        &mut self,
        tuple: NodeId,
        expr: Expr,
        next: u32,
        used: u64,
        rest: u32,
        choices: &mut Vec<ChoicePoint>,
    ) -> Option<u32> {
        let Node::Tuple { fields, .. } = &self.table.nodes[tuple as usize] else { return None };
        let Some(&pattern) = fields.get(next as usize) else { return Some(rest) };
        let have = self.func.tuple_fields(expr)?;
        for (i, &field) in have.iter().enumerate().rev() {
            if used & (1 << i) == 0 {
                let goal = Goal::Fields { tuple, expr, next: next + 1, used: used | (1 << i) };
                let others = self.goal(goal, rest);
                let goals = self.goal(Goal::Match(pattern, field), others);
                self.choose(Alternative::Goals(goals), choices);
            }
        }
        None
    }

    /// Whether a pattern does not match an expression, for negated patterns. A separate search determines this; the symbols that
    /// it binds are not bound in this search.
    fn is_refuted(&mut self, p: NodeId, e: Expr) -> bool {
        if self.negations >= MAX_NEGATIONS {
            return false;
        }
        self.negations += 1;
        let (matched, bound) = (self.trail.len(), self.size_trail.len());
        let deferred = std::mem::take(&mut self.deferred_terms);
        let start = self.goal(Goal::Match(p, e), END);
        let matches = self.solve(start);
        self.undo(matched, bound, 0);
        self.deferred_terms = deferred;
        self.negations -= 1;
        !matches && self.steps <= MAX_STEPS
    }

    /// Returns the value to which a variable is bound. Expressions that are not variables are returned unchanged.
    pub fn value(&self, e: Expr) -> Expr {
        self.defs.value(self.func, e)
    }

    /// Returns the variable that a node has matched. If the variable is a copy (`y = x`), returns the variable from which it was
    /// copied.
    pub fn variable(&self, node: NodeId) -> Option<Var> {
        let e = self.defs.origin(self.func, self.matched(node)?);
        match self.func.expr(e) {
            ExprData::Var(v) => Some(*v),
            _ => None,
        }
    }
}
