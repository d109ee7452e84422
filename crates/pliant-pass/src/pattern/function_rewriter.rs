//! [`Rewriter`]: applies rewrite rules to a function, match by match, until none matches.
//!
//! Bindings are processed in program order. The result of a rule is matched again before the next binding is processed, and a
//! match only contains earlier bindings, so one traversal is sufficient. If a rule rewrites its own results indefinitely, an
//! error is reported.
//!
//! A rewritten binding keeps its variable and its type. If the type of the replacement is not provably a subtype of this type, a
//! `match_cast` checks the value at run time. Pure bindings that were only used by replaced values are removed. Calls with side
//! effects and run-time checks are kept. A match is rejected if its replacement would move a computation across a side effect.

use cranelift_entity::EntityRef;
use pliant_ir::OpRegistry;
use pliant_ir::print::type_text;
use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::visit::{Event, free_vars, operand_vars, walk};
use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_sym::Proof;

use super::impossible_patterns::describe;
use super::pattern_matcher::{Match, Search, Syms};
use super::pattern_nodes::Pattern;
use super::pattern_table::Node;
use super::rewrite_cleanup::{export_used_outside_block, remove_unused};
use super::rewrite_rule_set::RuleSet;
use super::variable_definitions::Defs;
use crate::argument_writing_functions::MayWrite;
use crate::binding_rewrites::{Namer, Substitution, reachable_seqs};
use crate::pass_error::{PassError, Problem};

/// Maximum length of a chain of rewrites. In a chain, each rewrite changes the result of the previous one.
const MAX_CHAIN: u32 = 256;

/// Maximum average number of rewrites per binding.
const MAX_PER_BINDING: usize = 64;

/// The replacement of a matched value: the new value, and the bindings that compute its operands.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// Bindings to insert before the matched one.
    pub bindings: Vec<Binding>,
    /// The value that replaces the matched value, in A-normal form.
    pub value: Expr,
}

/// A binding that the rewriter has not processed yet.
struct PendingBinding {
    binding: Binding,
    /// The length of the chain of rewrites that created this binding.
    chain: u32,
}

/// The binding that the rewriter currently processes.
struct CurrentBinding {
    binding: Binding,
    chain: u32,
    /// The index of the first rule that has not been tried on the binding yet.
    next_rule: usize,
}

/// Applies rewrite rules to a function: [`next`](Self::next) finds a match, [`replace`](Self::replace) replaces it, and
/// [`finish`](Self::finish) removes unused bindings. If a match is not replaced, [`next`](Self::next) continues with the next
/// rule.
pub struct Rewriter<'r> {
    rules: &'r RuleSet,
    ops: &'r dyn OpRegistry,
    defs: Defs,
    blocks: Vec<Block>,
    /// The index of the block that is being rewritten.
    block_index: usize,
    /// The remaining bindings of the current block, last one first.
    pending: Vec<PendingBinding>,
    /// The processed bindings of the current block.
    done: Vec<Binding>,
    current: Option<CurrentBinding>,
    /// The variables that may be unused after the rewrite, because replaced values read them. [`finish`](Self::finish) removes
    /// the bindings of those that are unused.
    maybe_unused: Vec<Var>,
    /// Variables whose value was replaced by another variable, so that they are now copies (`y = x`).
    copies: Vec<Var>,
    rewrites: usize,
    /// The maximum number of rewrites in the function, after which the rules are assumed not to terminate.
    limit: usize,
    /// The number of variables that the function had before the rewrite. Variables with this index or a higher one were created
    /// by rules.
    initial_vars: usize,
}

impl<'r> Rewriter<'r> {
    /// Creates a rewriter that starts at the beginning of a function. `writers` lists the functions of the module that may write
    /// to their arguments; `None` if the module is unknown.
    pub fn new(
        func: &Function,
        rules: &'r RuleSet,
        ops: &'r dyn OpRegistry,
        writers: Option<&MayWrite>,
    ) -> Self {
        let (mut blocks, mut count) = (Vec::new(), 0);
        walk(func, func.root(), |event| {
            if let Event::EnterBlock(b) = event {
                blocks.push(b);
                count += func.block(b).bindings.len();
            }
        });
        let mut this = Rewriter {
            rules,
            ops,
            defs: Defs::of(func, ops, writers),
            blocks,
            block_index: 0,
            pending: Vec::new(),
            done: Vec::new(),
            current: None,
            maybe_unused: Vec::new(),
            copies: Vec::new(),
            rewrites: 0,
            limit: 1024 + count.saturating_mul(MAX_PER_BINDING),
            initial_vars: func.num_vars(),
        };
        this.start_block(func);
        this
    }

    /// The values to which variables are currently bound.
    pub fn defs(&self) -> &Defs {
        &self.defs
    }

    /// The number of matches that have been replaced so far.
    pub fn rewrites(&self) -> usize {
        self.rewrites
    }

    /// The binding of the current match.
    pub fn current(&self) -> Option<Binding> {
        self.current.as_ref().map(|c| c.binding)
    }

    /// Whether the binding of the current match is in a dataflow block.
    pub fn in_dataflow(&self, func: &Function) -> bool {
        self.blocks.get(self.block_index).is_some_and(|&b| func.block(b).dataflow)
    }

    fn start_block(&mut self, func: &Function) {
        self.pending.clear();
        if let Some(&block) = self.blocks.get(self.block_index) {
            let bindings = func.block(block).bindings.iter().rev();
            self.pending.extend(bindings.map(|&binding| PendingBinding { binding, chain: 0 }));
        }
    }

    /// Searches for the next match, and returns it; `None` at the end of the function. The root of the match is the binding
    /// [`current`](Self::current).
    pub fn next(&mut self, func: &mut Function) -> Option<Match> {
        loop {
            if self.current.is_none() {
                match self.pending.pop() {
                    Some(PendingBinding { binding, chain }) => {
                        self.current = Some(CurrentBinding { binding, chain, next_rule: 0 });
                    }
                    None => {
                        self.next_block(func)?;
                        continue;
                    }
                }
            }
            let current = self
                .current
                .as_ref()
                .expect("the current binding was set at the start of the iteration");
            let (binding, from) = (current.binding, current.next_rule);
            if let Some(matched) = self.try_rules(func, binding, from) {
                let current =
                    self.current.as_mut().expect("trying rules does not reset the current binding");
                current.next_rule = matched.rule + 1;
                return Some(matched);
            }
            self.done.push(binding);
            self.current = None;
        }
    }

    /// Finishes the current block and starts the next one. Returns `None` after the last block.
    fn next_block(&mut self, func: &mut Function) -> Option<()> {
        let block = *self.blocks.get(self.block_index)?;
        let done = std::mem::take(&mut self.done);
        if done != func.block(block).bindings {
            func.block_mut(block).bindings = done;
        }
        self.block_index += 1;
        self.start_block(func);
        (self.block_index < self.blocks.len()).then_some(())
    }

    /// Tries the rules from index `from` on, and returns the match of the first rule that matches the binding.
    fn try_rules(&self, func: &mut Function, b: Binding, from: usize) -> Option<Match> {
        if b.cast.is_some() || matches!(func.expr(b.value), ExprData::Var(_)) {
            return None;
        }
        // The prover adds terms to the function's arena, so it is moved out of the function during the search, which does not read
        // it otherwise.
        let mut own = Syms::Own(std::mem::take(&mut func.syms));
        let mut result = None;
        let func_now: &Function = func;
        self.rules.candidates(func_now, b.value, from, |rule| {
            let entry = &self.rules.rules[rule];
            let mut search = Search::new(func_now, &mut own, &self.defs, self.ops, &entry.table);
            if search.find(entry.root, b.value) && self.may_move(&search, b) {
                result = Some(search.to_match(rule));
            }
            result.is_some()
        });
        if let Syms::Own(arena) = own {
            func.syms = arena;
        }
        result
    }

    /// Whether no side effect lies between the matched values and `b`, the binding of the whole match. Only then may the
    /// replacement, which is inserted at `b`, compute the matched values again.
    fn may_move(&self, search: &Search<'_>, b: Binding) -> bool {
        let here = self.defs.epoch(b.var);
        search.matched_nodes().all(|(node, _)| {
            let recomputes = matches!(
                search.table.nodes[node as usize],
                Node::Call { .. } | Node::Tuple { .. } | Node::GetItem(..) | Node::Constant
            );
            if !recomputes {
                return true;
            }
            match search.variable(node) {
                Some(v) => self.defs.epoch(v).is_none_or(|epoch| Some(epoch) == here),
                None => true,
            }
        })
    }

    /// Replaces the root of the current match. Does nothing and returns false if the replacement is identical to the matched
    /// computation.
    ///
    /// # Errors
    /// If the type of the replacement is incompatible with that of the value, or the rules do not terminate.
    pub fn replace(
        &mut self,
        func: &mut Function,
        matched: &Match,
        with: Replacement,
    ) -> Result<bool, PassError> {
        let Some(current) = self.current.as_ref() else {
            return Err(PassError::internal(
                "Rewriter::replace was called without a match: call Rewriter::next first",
            ));
        };
        let (binding, chain) = (current.binding, current.chain + 1);
        if self.is_unchanged(func, binding.value, &with) {
            return Ok(false);
        }
        self.rewrites += 1;
        let pattern = self.rules.pattern(matched.rule);
        if chain > MAX_CHAIN || self.rewrites > self.limit {
            let chained = chain > MAX_CHAIN;
            return Err(nontermination_error(func, pattern, binding, chained, self.rewrites));
        }
        let root = fit_type(func, pattern, binding, with.value)?;
        self.maybe_unused.extend(operand_vars(func, binding.value));
        for (_, e) in matched.iter() {
            self.maybe_unused.extend(operand_vars(func, e));
        }
        let epoch = self.defs.epoch(binding.var).unwrap_or(0);
        let block = self.blocks[self.block_index];
        let dataflow = func.block(block).dataflow;
        let first = self.pending.len();
        for mut b in with.bindings {
            let span = func.var(binding.var).span;
            let var = func.var_mut(b.var);
            (var.dataflow, var.span) = (dataflow, span);
            b.value = simplify_field_access(func, b.value);
            self.defs.define(func, b, epoch, block);
            self.pending.push(PendingBinding { binding: b, chain });
        }
        match root {
            FittedValue::Typed(value) => {
                if matches!(func.expr(value), ExprData::Var(_)) {
                    self.copies.push(binding.var);
                }
                let b = Binding::bind(binding.var, value);
                self.defs.define(func, b, epoch, block);
                self.pending.push(PendingBinding { binding: b, chain });
            }
            FittedValue::Checked(value, ty) => {
                let v = match func.expr(value) {
                    ExprData::Var(_) => value,
                    _ => {
                        let own = func.expr_ty(value);
                        let (name, span) =
                            (func.var(binding.var).name.clone(), func.var(binding.var).span);
                        let name = Namer::new(func).fresh(&name);
                        let v = func.add_var(name, own, dataflow, span);
                        let b = Binding::bind(v, value);
                        self.defs.define(func, b, epoch, block);
                        self.pending.push(PendingBinding { binding: b, chain });
                        func.var_expr(v)
                    }
                };
                let b = Binding::match_cast(binding.var, v, ty);
                self.defs.define(func, b, epoch, block);
                self.pending.push(PendingBinding { binding: b, chain });
            }
        }
        self.pending[first..].reverse();
        self.current = None;
        Ok(true)
    }

    /// Whether a replacement is identical to the matched computation: the same calls with the same operands.
    fn is_unchanged(&self, func: &Function, old: Expr, with: &Replacement) -> bool {
        let new_value = |e: Expr| match func.expr(e) {
            ExprData::Var(v) => with.bindings.iter().find(|b| b.var == *v).map(|b| b.value),
            _ => Some(e),
        };
        let mut stack = vec![(old, with.value)];
        let mut steps = 0;
        while let Some((old, new)) = stack.pop() {
            if same_expr(func, old, new) {
                continue;
            }
            // A variable that the replacement does not define is compared by its origin.
            let Some(new) = new_value(new) else {
                if self.defs.origin(func, old) != self.defs.origin(func, new) {
                    return false;
                }
                continue;
            };
            steps += 1;
            let old = self.defs.value(func, old);
            match (func.expr(old), func.expr(new)) {
                _ if steps > MAX_CHAIN => return false,
                (
                    ExprData::Call { callee: c, args: x, attrs: p, ty_args: t },
                    ExprData::Call { callee: d, args: y, attrs: q, ty_args: u },
                ) if c == d && p == q && func.type_list(*t) == func.type_list(*u) => {
                    let (x, y) = (func.list(*x), func.list(*y));
                    if x.len() != y.len() {
                        return false;
                    }
                    stack.extend(x.iter().copied().zip(y.iter().copied()));
                }
                (ExprData::Tuple(x), ExprData::Tuple(y)) => {
                    let (x, y) = (func.list(*x), func.list(*y));
                    if x.len() != y.len() {
                        return false;
                    }
                    stack.extend(x.iter().copied().zip(y.iter().copied()));
                }
                (ExprData::TupleGetItem(x, i), ExprData::TupleGetItem(y, j)) if i == j => {
                    stack.push((*x, *y));
                }
                _ => return false,
            }
        }
        true
    }

    /// Replaces uses of variables that have become copies by the original variables.
    fn replace_copies(&mut self, func: &mut Function) {
        let mut map = Substitution::default();
        for &v in &self.copies {
            let Some(e) = func.find_var_expr(v) else { continue };
            let origin = self.defs.origin(func, e);
            if origin != e {
                map.insert(v, origin);
            }
        }
        if map.is_empty() {
            return;
        }
        self.maybe_unused.append(&mut self.copies);
        for seq in reachable_seqs(func) {
            for i in 0..func.seq(seq).blocks.len() {
                let block = func.seq(seq).blocks[i];
                for k in 0..func.block(block).bindings.len() {
                    let value = func.block(block).bindings[k].value;
                    let new = map.apply(func, value);
                    func.block_mut(block).bindings[k].value = new;
                }
            }
            let result = func.seq(seq).result;
            func.seq_mut(seq).result = map.apply(func, result);
        }
    }

    /// Ends the rewrite and removes unused bindings. Bindings that were not processed are kept. Returns the number of replaced
    /// matches.
    ///
    /// # Errors
    /// If a replacement uses an undefined variable.
    pub fn finish(mut self, func: &mut Function) -> Result<usize, PassError> {
        if self.current.is_some() || !self.pending.is_empty() {
            if let Some(current) = self.current.take() {
                self.done.push(current.binding);
            }
            self.done.extend(self.pending.drain(..).rev().map(|p| p.binding));
            let _ = self.next_block(func);
        }
        if self.rewrites > 0 {
            self.replace_copies(func);
            remove_unused(func, self.ops, &self.defs, self.maybe_unused);
            export_used_outside_block(func);
            check_defined(func, self.initial_vars)?;
        }
        Ok(self.rewrites)
    }
}

/// If `value` accesses a field of a tuple expression, returns this field. Other expressions are returned unchanged.
fn simplify_field_access(func: &Function, value: Expr) -> Expr {
    if let ExprData::TupleGetItem(t, i) = func.expr(value)
        && let Some(&field) = func.tuple_fields(*t).and_then(|f| f.get(*i as usize))
    {
        return field;
    }
    value
}

/// Rejects replacements that use undefined variables. Only variables that the rules have created, which have index `initial_vars`
/// or higher, can be undefined.
fn check_defined(func: &Function, initial_vars: usize) -> Result<(), PassError> {
    let free = free_vars(func, func.root());
    let Some(var) = free.into_iter().find(|v| v.index() >= initial_vars) else { return Ok(()) };
    let name = &func.var(var).name;
    let message =
        format!("the replacement of a matched value uses the undefined variable '{name}'");
    let help = "return an expression over the variables of the match, or emit bindings for it";
    Err(PassError::User(vec![Problem::new(message).with_help(help)]))
}

/// A replacement for a value, and whether its type must be checked at run time.
enum FittedValue {
    /// A replacement that provably has the type of the value.
    Typed(Expr),
    /// A replacement that must be checked to have this type at run time.
    Checked(Expr, Type),
}

/// Determines whether a replacement provably has the type of the variable of `b`, or whether a run-time check of the type is
/// needed. Fails if the types are provably incompatible.
fn fit_type(
    func: &mut Function,
    pattern: &Pattern,
    b: Binding,
    value: Expr,
) -> Result<FittedValue, PassError> {
    let (have, want) = (func.expr_ty(value), func.var(b.var).ty);
    // The type of strings and data types is `Any`, but they are certainly not tensors, shapes or numbers.
    let text = match func.expr(value) {
        ExprData::Str(_) => Some("a string"),
        ExprData::DType(_) => Some("a data type"),
        _ => None,
    }
    .filter(|_| !matches!(func.types.get(want), TypeData::Any));
    let fits = if text.is_some() { Proof::No } else { is_subtype(func, have, want) };
    match fits {
        Proof::Yes => Ok(FittedValue::Typed(value)),
        Proof::Unknown => Ok(FittedValue::Checked(value, want)),
        Proof::No => {
            let have =
                text.map_or_else(|| format!("of type {}", type_text(func, have)), str::to_string);
            let message = format!(
                "the replacement of the value of '{}' is {have}, but the replaced value is of type {}",
                func.var(b.var).name,
                type_text(func, want),
            );
            let help = format!(
                "the rule that created the replacement has the pattern {}",
                describe(pattern)
            );
            let problem = Problem::new(message).at(func.var(b.var).span).with_help(help);
            Err(PassError::User(vec![problem]))
        }
    }
}

/// Creates the error that rules do not terminate. If `chained` is set, one result was rewritten too often; otherwise, the number
/// of all rewrites is too large.
fn nontermination_error(
    func: &Function,
    pattern: &Pattern,
    b: Binding,
    chained: bool,
    rewrites: usize,
) -> PassError {
    let message = match chained {
        true => format!(
            "the rewrite rules do not terminate: the value of '{}' was rewritten {MAX_CHAIN} times, and the result \
             matches again",
            func.var(b.var).name
        ),
        false => {
            format!("the rewrite rules do not terminate: they have rewritten {rewrites} matches")
        }
    };
    let help =
        format!("exclude the rule's own results from its pattern, which is {}", describe(pattern));
    PassError::User(vec![Problem::new(message).at(func.var(b.var).span).with_help(help)])
}

/// Whether two expressions are structurally equal. An operand that accesses a field of a tuple expression counts as equal to the
/// field itself.
fn same_expr(func: &Function, a: Expr, b: Expr) -> bool {
    if a == b {
        return true;
    }
    match (func.expr(a), func.expr(b)) {
        (
            ExprData::Call { callee: c, args: x, attrs: p, ty_args: t },
            ExprData::Call { callee: d, args: y, attrs: q, ty_args: u },
        ) => {
            let callees = match (c, d) {
                (Callee::Expr(c), Callee::Expr(d)) => same_leaf(func, *c, *d),
                (c, d) => c == d,
            };
            let (x, y) = (func.list(*x), func.list(*y));
            callees
                && p == q
                && func.type_list(*t) == func.type_list(*u)
                && x.len() == y.len()
                && x.iter().zip(y).all(|(&a, &b)| same_leaf(func, a, b))
        }
        _ => same_leaf(func, a, b),
    }
}

fn same_leaf(func: &Function, a: Expr, b: Expr) -> bool {
    let mut stack = vec![(a, b)];
    while let Some((a, b)) = stack.pop() {
        let same = a == b
            || match (func.expr(a), func.expr(b)) {
                (ExprData::Var(x), ExprData::Var(y)) => x == y,
                (ExprData::Global(x), ExprData::Global(y))
                | (ExprData::Extern(x), ExprData::Extern(y))
                | (ExprData::Str(x), ExprData::Str(y)) => x == y,
                (ExprData::Constant(x), ExprData::Constant(y)) => x == y,
                (ExprData::Shape(x), ExprData::Shape(y)) => x == y,
                (ExprData::Int(x, d), ExprData::Int(y, e)) => x == y && d == e,
                (ExprData::Float(x, d), ExprData::Float(y, e)) => x == y && d == e,
                (ExprData::DType(x), ExprData::DType(y)) => x == y,
                (ExprData::TupleGetItem(x, i), ExprData::TupleGetItem(y, j)) if i == j => {
                    stack.push((*x, *y));
                    true
                }
                (ExprData::Tuple(x), ExprData::Tuple(y)) => {
                    let (x, y) = (func.list(*x), func.list(*y));
                    stack.extend(x.iter().copied().zip(y.iter().copied()));
                    x.len() == y.len()
                }
                _ => false,
            };
        if !same {
            return false;
        }
    }
    true
}
