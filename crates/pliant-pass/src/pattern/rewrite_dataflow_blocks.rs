//! [`rewrite_bindings`]: replaces matches of a [`PatternContext`] in dataflow blocks. A replacement gives new values to individual
//! variables.

use cranelift_entity::SecondaryMap;
use pliant_ir::OpRegistry;
use pliant_ir::print::type_text;
use pliant_ir::relax::type_lattice::{definable_syms, is_subtype, type_syms};
use pliant_ir::relax::visit::{
    Event, for_each_expr, operand_vars, type_vars, value_free_vars, walk,
};
use pliant_ir::relax::{Binding, Block, Expr, ExprData, Function, Var};
use pliant_sym::{Proof, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::pattern_context::{BlockIndex, PatternContext, SearchResult};
use super::pattern_matcher::Match;
use super::rewrite_cleanup::remove_unused;
use super::variable_definitions::Defs;
use crate::argument_writing_functions::MayWrite;
use crate::binding_rewrites::Namer;
use crate::pass_error::{PassError, Problem};

/// The replacement of a match: bindings to add, and new values of variables.
#[derive(Clone, Debug, Default)]
pub struct BlockReplacement {
    /// Bindings to add to the block, in order.
    pub bindings: Vec<Binding>,
    /// The variables whose values change, each with the new value.
    pub values: Vec<(Var, Expr)>,
}

/// Returns the dataflow blocks of a function.
pub fn dataflow_blocks(func: &Function) -> Vec<Block> {
    let mut out = Vec::new();
    walk(func, func.root(), |event| {
        if let Event::EnterBlock(b) = event
            && func.block(b).dataflow
        {
            out.push(b);
        }
    });
    out
}

/// Replaces matches of a context in the dataflow blocks of a function by the results of `callback`, until there are no more
/// matches. A call that was part of a match is not matched again. Returns the number of replaced matches.
///
/// # Errors
/// If a pattern can never match, replacements have incompatible types or depend on each other, or the callback fails.
pub fn rewrite_bindings(
    func: &mut Function,
    ctx: &PatternContext,
    ops: &dyn OpRegistry,
    writers: Option<&MayWrite>,
    mut callback: impl FnMut(&mut Function, &Match) -> Result<Option<BlockReplacement>, PassError>,
) -> Result<usize, PassError> {
    ctx.check(ops)?;
    let mut count = 0;
    for block in dataflow_blocks(func) {
        let limit = count + max_rewrites(func, block);
        let mut excluded = FxHashSet::default();
        loop {
            // All matches are found before any of them is replaced, so that a sweep takes linear time.
            let mut replacements = Vec::new();
            let mut matches = BlockMatches::new(func, ctx, block, ops, writers);
            while let Some(matched) = matches.next(func, &mut excluded) {
                replacements.extend(callback(func, &matched)?.filter(|r| !r.values.is_empty()));
            }
            if replacements.is_empty() {
                break;
            }
            count += replacements.len();
            replace_in_block(func, block, replacements, ops)?;
            if count > limit {
                return Err(nontermination_error(count));
            }
        }
    }
    Ok(count)
}

/// Returns the maximum number of matches that may be replaced in a block, after which the rewrite is assumed not to terminate.
pub fn max_rewrites(func: &Function, block: Block) -> usize {
    1024 + 64 * func.block(block).bindings.len()
}

/// Creates the error for a rewrite that exceeds [`max_rewrites`]. `count` is the number of replaced matches.
pub fn nontermination_error(count: usize) -> PassError {
    PassError::user(format!(
        "the rewrite does not terminate: the pattern context has matched {count} times in one dataflow block"
    ))
}

/// An iterator over the matches of a context in a block. The block must not change during the iteration.
pub struct BlockMatches<'c> {
    ctx: &'c PatternContext,
    ops: &'c dyn OpRegistry,
    block: Block,
    defs: Defs,
    index: BlockIndex,
    /// The index, among the candidate variables for the start pattern, of the first candidate that the next search tries.
    /// The start pattern is the pattern of the context that a search matches first. Previous searches have tried all earlier
    /// candidates.
    from: usize,
}

/// The number of candidate variables that one search tries for the start pattern (the pattern of the context that a search
/// matches first). After each match, the same candidates are tried again, because the variables of the match are excluded from
/// then on. A small number bounds this repeated work.
const WINDOW: usize = 32;

impl<'c> BlockMatches<'c> {
    /// Creates an iterator over the matches in a block. `writers` lists the functions of the module that may write to their
    /// arguments; `None` if the module is unknown.
    pub fn new(
        func: &Function,
        ctx: &'c PatternContext,
        block: Block,
        ops: &'c dyn OpRegistry,
        writers: Option<&MayWrite>,
    ) -> Self {
        let (defs, index) = (Defs::of(func, ops, writers), BlockIndex::of(func, block));
        BlockMatches { ctx, ops, block, defs, index, from: 0 }
    }

    /// The definitions of the function's variables.
    pub fn defs(&self) -> &Defs {
        &self.defs
    }

    /// Returns the next match that contains no variable in `excluded` and no side effects between its calls. Adds the variables
    /// that are bound to calls of the match to `excluded`.
    pub fn next(&mut self, func: &Function, excluded: &mut FxHashSet<Var>) -> Option<Match> {
        loop {
            let window = (self.from, WINDOW);
            let result =
                self.ctx.search_block(func, &self.defs, &self.index, self.ops, excluded, window);
            let matched = match result {
                SearchResult::Match(matched) => matched,
                SearchResult::NoMatch { more: true } => {
                    self.from += WINDOW;
                    continue;
                }
                SearchResult::NoMatch { more: false } => return None,
            };
            let mut calls = Vec::new();
            for (_, e) in matched.iter() {
                if let ExprData::Var(v) = func.expr(e)
                    && self.defs.block(*v) == Some(self.block)
                    && matches!(
                        func.expr(self.defs.value(func, e)),
                        ExprData::Call { .. } | ExprData::TupleGetItem(..) | ExprData::Tuple(_)
                    )
                {
                    calls.push(*v);
                }
            }
            excluded.extend(calls.iter().copied());
            if calls.is_empty() {
                // A match without calls excludes nothing, so the same search would find it again.
                self.from += WINDOW;
            }
            let epoch = |v: &Var| self.defs.epoch(*v);
            if calls.iter().all(|v| epoch(v) == calls.first().and_then(epoch)) {
                return Some(matched);
            }
        }
    }
}

/// Returns the first match in a block that contains no variable in `excluded`. Adds the variables that are bound to calls of the
/// match to `excluded`.
pub fn next_match(
    func: &Function,
    ctx: &PatternContext,
    block: Block,
    ops: &dyn OpRegistry,
    excluded: &mut FxHashSet<Var>,
) -> Option<Match> {
    // Side effects are ignored, because the caller only searches and moves nothing.
    BlockMatches::new(func, ctx, block, ops, Some(&MayWrite::default())).next(func, excluded)
}

/// Applies replacements to a block. The bindings of a replacement are inserted before the first variable whose value it replaces.
/// Then the bindings are sorted topologically, and unused ones are removed. Returns whether anything changed.
///
/// # Errors
/// If a value does not fit its variable, or bindings depend on each other cyclically.
pub fn replace_in_block(
    func: &mut Function,
    block: Block,
    with: Vec<BlockReplacement>,
    ops: &dyn OpRegistry,
) -> Result<bool, PassError> {
    replace_unless_cyclic(func, block, with, ops)?.map_err(|v| cycle_error(func, v))
}

fn cycle_error(func: &Function, v: Var) -> PassError {
    PassError::user(format!(
        "the rewrite is invalid, because it would make the value of '{}' depend on itself",
        func.var(v).name
    ))
}

/// Applies replacements to a block ([`replace_in_block`]). If a value would depend on itself, leaves the block unchanged and
/// returns the variable of this value as the inner error.
pub(super) fn replace_unless_cyclic(
    func: &mut Function,
    block: Block,
    with: Vec<BlockReplacement>,
    ops: &dyn OpRegistry,
) -> Result<Result<bool, Var>, PassError> {
    let mut values: FxHashMap<Var, Expr> = FxHashMap::default();
    // A variable whose new value is the variable itself does not change.
    let unchanged = |v: Var, e: Expr| matches!(func.expr(e), ExprData::Var(same) if *same == v);
    let all = with.iter().flat_map(|w| w.values.iter().copied());
    values.extend(all.filter(|&(v, e)| !unchanged(v, e)));
    if values.is_empty() {
        return Ok(Ok(false));
    }
    let old = func.block(block).bindings.clone();
    let dataflow = func.block(block).dataflow;
    let (mut bindings, mut maybe_unused, mut namer) = (Vec::new(), Vec::new(), None);
    let mut groups = group_by_first_replaced(&old, with);
    for &b in &old {
        for group in groups.remove(&b.var).unwrap_or_default() {
            for new in &group {
                func.var_mut(new.var).dataflow = dataflow;
            }
            bindings.extend(group);
        }
        match values.remove(&b.var) {
            Some(value) => {
                maybe_unused.extend(operand_vars(func, b.value));
                bind_fitted(func, (b.var, dataflow), value, &mut namer, &mut bindings)?;
            }
            None => bindings.push(b),
        }
    }
    if let Some((v, _)) = values.into_iter().next() {
        let name = func.var(v).name.clone();
        return Err(PassError::user(format!(
            "the rewrite replaces the value of '{name}', but the dataflow block does not bind this variable"
        )));
    }
    func.block_mut(block).bindings = bindings;
    if let Err(v) = sort_bindings(func, block) {
        func.block_mut(block).bindings = old;
        return Ok(Err(v));
    }
    maybe_unused
        .extend(func.block(block).bindings.iter().map(|b| b.var).filter(|&v| func.var(v).dataflow));
    let defs = Defs::of(func, ops, None);
    remove_unused(func, ops, &defs, maybe_unused);
    Ok(Ok(true))
}

/// Groups the new bindings of all replacements by the variable before which they are inserted. A replacement gives new values to
/// variables of the block, and its bindings are inserted before the first of these variables.
fn group_by_first_replaced(
    old: &[Binding],
    with: Vec<BlockReplacement>,
) -> FxHashMap<Var, Vec<Vec<Binding>>> {
    let index: FxHashMap<Var, usize> = old.iter().enumerate().map(|(i, b)| (b.var, i)).collect();
    let mut groups: FxHashMap<Var, Vec<Vec<Binding>>> = FxHashMap::default();
    for one in with {
        let replaced = one.values.iter().filter_map(|(v, _)| index.get(v));
        if let Some(&first) = replaced.min() {
            groups.entry(old[first].var).or_default().push(one.bindings);
        }
    }
    groups
}

/// Binds a variable to a new value. If the value may not fit the variable's type, inserts a `match_cast` that checks this.
fn bind_fitted(
    func: &mut Function,
    (var, dataflow): (Var, bool),
    value: Expr,
    namer: &mut Option<Namer>,
    out: &mut Vec<Binding>,
) -> Result<(), PassError> {
    let (have, want) = (func.expr_ty(value), func.var(var).ty);
    match is_subtype(func, have, want) {
        Proof::Yes => out.push(Binding::bind(var, value)),
        Proof::Unknown => {
            let operand = match func.expr(value) {
                ExprData::Call { .. } | ExprData::TupleGetItem(..) => {
                    let e =
                        namer.get_or_insert_with(|| Namer::new(func)).bind(func, "lv", value, out);
                    if let ExprData::Var(v) = *func.expr(e) {
                        func.var_mut(v).dataflow = dataflow;
                    }
                    e
                }
                _ => value,
            };
            out.push(Binding::match_cast(var, operand, want));
        }
        Proof::No => {
            let message = format!(
                "the replacement of the value of '{}' is of type {}, but the replaced value is of type {}",
                func.var(var).name,
                type_text(func, have),
                type_text(func, want),
            );
            return Err(PassError::User(vec![Problem::new(message).at(func.var(var).span)]));
        }
    }
    Ok(())
}

/// Sorts the bindings of a dataflow block so that every variable, and every symbol that a `match_cast` defines, is defined before
/// its uses. Bindings that are already in order keep their order.
///
/// # Errors
/// If bindings depend on each other cyclically.
pub fn sort_block(func: &mut Function, block: Block) -> Result<(), PassError> {
    sort_bindings(func, block).map_err(|v| cycle_error(func, v))
}

/// Whether a binding may refer to its own variable, as a recursive local function does.
fn may_refer_to_itself(func: &Function, b: &Binding) -> bool {
    matches!(func.expr(b.value), ExprData::Func(_))
}

/// Returns, for each binding of a block, the indices of the bindings in the same block on which it depends. A binding depends on
/// the variables in its value or type. It also depends on the `match_cast` that defines a symbol in its value or type, unless the
/// symbol is already defined before the block.
pub fn dependences_in_block(func: &Function, block: Block) -> Vec<Vec<u32>> {
    let bindings = &func.block(block).bindings;
    let casts = bindings.iter().any(|b| b.cast.is_some());
    let before = if casts { symbols_before(func, block) } else { FxHashSet::default() };
    // Indices of bindings plus 1; 0 for variables of other blocks.
    let mut index_plus_1: SecondaryMap<Var, u32> = SecondaryMap::new();
    let mut sym_index: FxHashMap<SymVar, u32> = FxHashMap::default();
    for (i, b) in bindings.iter().enumerate() {
        index_plus_1[b.var] = i as u32 + 1;
        if let Some(cast) = b.cast.expand() {
            for s in definable_syms(func, cast).into_iter().filter(|s| !before.contains(s)) {
                sym_index.entry(s).or_insert(i as u32);
            }
        }
    }
    let dependences = |(i, b): (usize, &Binding)| -> Vec<u32> {
        let mut out: Vec<u32> = value_free_vars(func, b.value)
            .into_iter()
            .chain(type_vars(func, func.var(b.var).ty))
            .filter_map(|v| index_plus_1[v].checked_sub(1))
            .collect();
        let mut symbols = |list: Vec<SymVar>| {
            // A `match_cast` does not depend on symbols that it defines itself.
            let casts = list.into_iter().filter_map(|s| sym_index.get(&s).copied());
            out.extend(casts.filter(|&cast| cast as usize != i));
        };
        if !sym_index.is_empty() {
            symbols(type_syms(func, func.var(b.var).ty));
            for_each_expr(func, b.value, |e| match func.expr(e) {
                ExprData::Shape(dims) => {
                    dims.iter().for_each(|&d| symbols(func.syms.free_vars(d).to_vec()));
                }
                ExprData::Int(v, _) => symbols(func.syms.free_vars(*v).to_vec()),
                _ => {}
            });
        }
        out
    };
    bindings.iter().enumerate().map(dependences).collect()
}

/// Returns the symbols that are defined at the start of a block: the symbols in parameters of the enclosing functions, and those
/// that an earlier `match_cast` in an enclosing sequence defines.
fn symbols_before(func: &Function, block: Block) -> FxHashSet<SymVar> {
    let mut scopes: Vec<Vec<SymVar>> = Vec::new();
    let mut symbols = FxHashSet::default();
    let mut done = false;
    walk(func, func.root(), |event| match event {
        _ if done => {}
        Event::EnterFunc(id) => {
            let params = func.func(id).params.iter();
            scopes.push(params.flat_map(|&p| type_syms(func, func.var(p).ty)).collect());
        }
        Event::EnterSeq(_) => scopes.push(Vec::new()),
        Event::Result(_) | Event::LeaveFunc(_) => drop(scopes.pop()),
        Event::EnterBlock(b) if b == block => {
            symbols.extend(scopes.drain(..).flatten());
            done = true;
        }
        Event::LeaveBinding(_, b) => {
            if let (Some(cast), Some(scope)) = (b.cast.expand(), scopes.last_mut()) {
                scope.extend(definable_syms(func, cast));
            }
        }
        _ => {}
    });
    symbols
}

/// Sorts the bindings of a block so that every variable, and every symbol that a `match_cast` defines, is defined before its uses.
/// The block must be free of side effects. The error is a variable whose value depends on itself.
fn sort_bindings(func: &mut Function, block: Block) -> Result<(), Var> {
    let dependences = dependences_in_block(func, block);
    let bindings = std::mem::take(&mut func.block_mut(block).bindings);
    let (mut state, mut order) = (vec![0u8; bindings.len()], Vec::with_capacity(bindings.len()));
    for start in 0..bindings.len() {
        let mut stack = vec![(start, 0usize)];
        while let Some((i, next_dependence)) = stack.pop() {
            if state[i] == 2 {
                continue;
            }
            state[i] = 1;
            match dependences[i].get(next_dependence) {
                None => {
                    state[i] = 2;
                    order.push(i);
                }
                Some(&next) => {
                    stack.push((i, next_dependence + 1));
                    let next = next as usize;
                    if state[next] == 0 {
                        stack.push((next, 0));
                    } else if state[next] == 1
                        && (next != i || !may_refer_to_itself(func, &bindings[i]))
                    {
                        let v = bindings[next].var;
                        func.block_mut(block).bindings = bindings;
                        return Err(v);
                    }
                }
            }
        }
    }
    func.block_mut(block).bindings = order.into_iter().map(|i| bindings[i]).collect();
    Ok(())
}
