//! [`rewrite_bindings`]: replaces matches of a context in dataflow blocks, variable by variable.

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

use super::clean::remove_unused;
use super::context::{Graph, PatternContext, Searched};
use super::defs::Defs;
use super::matcher::Match;
use crate::error::{PassError, Problem};
use crate::rewrite::Namer;
use crate::writers::Writers;

/// The replacement of a match: bindings to add, and new values of variables.
#[derive(Clone, Debug, Default)]
pub struct BlockReplacement {
    /// Bindings to add to the block, in order.
    pub bindings: Vec<Binding>,
    /// Variables with their new values.
    pub values: Vec<(Var, Expr)>,
}

/// The dataflow blocks of a function.
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

/// Replaces matches of a context in the dataflow blocks of a function by the results of `callback`,
/// until there are no more matches. The calls of earlier matches are not matched again. Returns the
/// number of replaced matches.
///
/// # Errors
/// A pattern that can never match, replacements of incompatible types or that depend on each other,
/// and errors of the callback.
pub fn rewrite_bindings(
    func: &mut Function,
    ctx: &PatternContext,
    ops: &dyn OpRegistry,
    writers: Option<&Writers>,
    mut callback: impl FnMut(&mut Function, &Match) -> Result<Option<BlockReplacement>, PassError>,
) -> Result<usize, PassError> {
    ctx.check(ops)?;
    let mut count = 0;
    for block in dataflow_blocks(func) {
        let limit = count + max_turns(func, block);
        let mut leave = FxHashSet::default();
        loop {
            // First all matches of the current block, then all replacements, so that each takes
            // linear time.
            let mut with = Vec::new();
            let mut matches = BlockMatches::new(func, ctx, block, ops, writers);
            while let Some(found) = matches.next(func, &mut leave) {
                with.extend(callback(func, &found)?.filter(|w| !w.values.is_empty()));
            }
            if with.is_empty() {
                break;
            }
            count += with.len();
            replace_in_block(func, block, with, ops)?;
            if count > limit {
                return Err(endless(count));
            }
        }
    }
    Ok(count)
}

/// Maximum number of replaced matches in a block.
pub fn max_turns(func: &Function, block: Block) -> usize {
    1024 + 64 * func.block(block).bindings.len()
}

/// The error for a rewrite that exceeds [`max_turns`].
pub fn endless(count: usize) -> PassError {
    PassError::user(format!("the rewrite does not end: the context has matched {count} times"))
}

/// An iterator over the matches of a context in a block that does not change.
pub struct BlockMatches<'c> {
    ctx: &'c PatternContext,
    ops: &'c dyn OpRegistry,
    block: Block,
    defs: Defs,
    graph: Graph,
    /// The first variable that the first pattern can still match.
    from: usize,
}

/// Number of variables tried for the first pattern before those that matched are removed again.
const WINDOW: usize = 32;

impl<'c> BlockMatches<'c> {
    /// Creates an iterator over the matches in a block. `writers` are those of the function's
    /// module, if known.
    pub fn new(
        func: &Function,
        ctx: &'c PatternContext,
        block: Block,
        ops: &'c dyn OpRegistry,
        writers: Option<&Writers>,
    ) -> Self {
        let (defs, graph) = (Defs::of(func, ops, writers), Graph::of(func, block));
        BlockMatches { ctx, ops, block, defs, graph, from: 0 }
    }

    /// The values of the function's variables.
    pub fn defs(&self) -> &Defs {
        &self.defs
    }

    /// The next match whose calls are not in `leave`; they are added to it. All its calls have the
    /// same effect epoch.
    pub fn next(&mut self, func: &Function, leave: &mut FxHashSet<Var>) -> Option<Match> {
        loop {
            let window = (self.from, WINDOW);
            let answer =
                self.ctx.match_graph(func, &self.defs, &self.graph, self.ops, leave, window);
            let found = match answer {
                Searched::Found(found) => found,
                Searched::Nothing { more: true } => {
                    self.from += WINDOW;
                    continue;
                }
                Searched::Nothing { more: false } => return None,
            };
            let mut calls = Vec::new();
            for (_, e) in found.iter() {
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
            leave.extend(calls.iter().copied());
            if calls.is_empty() {
                // A match without calls would be found repeatedly.
                self.from += WINDOW;
            }
            let epoch = |v: &Var| self.defs.epoch(*v);
            if calls.iter().all(|v| epoch(v) == calls.first().and_then(epoch)) {
                return Some(found);
            }
        }
    }
}

/// The first match in a block whose calls are not in `leave`; they are added to it.
pub fn next_match(
    func: &Function,
    ctx: &PatternContext,
    block: Block,
    ops: &dyn OpRegistry,
    leave: &mut FxHashSet<Var>,
) -> Option<Match> {
    // The result is only a search, which moves nothing.
    BlockMatches::new(func, ctx, block, ops, Some(&Writers::default())).next(func, leave)
}

/// Applies replacements to a block: variables get their new values, unused bindings are removed,
/// and the bindings are sorted. The bindings of a replacement are inserted before the first
/// variable that it replaces. Returns whether anything changed.
///
/// # Errors
/// Values that do not fit their variables, and bindings that depend on each other.
pub fn replace_in_block(
    func: &mut Function,
    block: Block,
    with: Vec<BlockReplacement>,
    ops: &dyn OpRegistry,
) -> Result<bool, PassError> {
    replace_unless_cyclic(func, block, with, ops)?.map_err(|v| needs_itself(func, v))
}

fn needs_itself(func: &Function, v: Var) -> PassError {
    PassError::user(format!("the rewrite makes '{}' need its own value", func.var(v).name))
}

/// As [`replace_in_block`]. If a value would depend on itself, returns its variable and leaves the
/// block unchanged.
pub(super) fn replace_unless_cyclic(
    func: &mut Function,
    block: Block,
    with: Vec<BlockReplacement>,
    ops: &dyn OpRegistry,
) -> Result<Result<bool, Var>, PassError> {
    let mut values: FxHashMap<Var, Expr> = FxHashMap::default();
    // A variable that is its own value does not change.
    let stays = |v: Var, e: Expr| matches!(func.expr(e), ExprData::Var(same) if *same == v);
    let all = with.iter().flat_map(|w| w.values.iter().copied());
    values.extend(all.filter(|&(v, e)| !stays(v, e)));
    if values.is_empty() {
        return Ok(Ok(false));
    }
    let old = func.block(block).bindings.clone();
    let dataflow = func.block(block).dataflow;
    let (mut bindings, mut freed, mut namer) = (Vec::new(), Vec::new(), None);
    let mut groups = first_places(&old, with);
    for &b in &old {
        for group in groups.remove(&b.var).unwrap_or_default() {
            for new in &group {
                func.var_mut(new.var).dataflow = dataflow;
            }
            bindings.extend(group);
        }
        match values.remove(&b.var) {
            Some(value) => {
                freed.extend(operand_vars(func, b.value));
                fit(func, (b.var, dataflow), value, &mut namer, &mut bindings)?;
            }
            None => bindings.push(b),
        }
    }
    if let Some((v, _)) = values.into_iter().next() {
        let name = func.var(v).name.clone();
        return Err(PassError::user(format!(
            "the rewrite replaces '{name}', which the dataflow block does not bind"
        )));
    }
    func.block_mut(block).bindings = bindings;
    if let Err(v) = put_in_order(func, block) {
        func.block_mut(block).bindings = old;
        return Ok(Err(v));
    }
    freed
        .extend(func.block(block).bindings.iter().map(|b| b.var).filter(|&v| func.var(v).dataflow));
    let defs = Defs::of(func, ops, None);
    remove_unused(func, ops, &defs, freed);
    Ok(Ok(true))
}

/// Groups the bindings of replacements by the first variable that each one replaces.
fn first_places(old: &[Binding], with: Vec<BlockReplacement>) -> FxHashMap<Var, Vec<Vec<Binding>>> {
    let place: FxHashMap<Var, usize> = old.iter().enumerate().map(|(i, b)| (b.var, i)).collect();
    let mut groups: FxHashMap<Var, Vec<Vec<Binding>>> = FxHashMap::default();
    for one in with {
        let places = one.values.iter().filter_map(|(v, _)| place.get(v));
        if let Some(&first) = places.min() {
            groups.entry(old[first].var).or_default().push(one.bindings);
        }
    }
    groups
}

fn fit(
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
                "the replacement of '{}' is of type {}, but what it replaces is of type {}",
                func.var(var).name,
                type_text(func, have),
                type_text(func, want),
            );
            return Err(PassError::User(vec![Problem::new(message).at(func.var(var).span)]));
        }
    }
    Ok(())
}

/// Sorts the bindings of a dataflow block topologically, by variables and by symbols that a
/// `match_cast` defines. Bindings that are in order keep their positions.
///
/// # Errors
/// Bindings that depend on each other.
pub fn sort_block(func: &mut Function, block: Block) -> Result<(), PassError> {
    put_in_order(func, block).map_err(|v| needs_itself(func, v))
}

/// Whether a binding may refer to its own variable, as a recursive local function does.
fn names_itself(func: &Function, b: &Binding) -> bool {
    matches!(func.expr(b.value), ExprData::Func(_))
}

/// For each binding of a block, the indices of the block's bindings on which it depends: those of
/// variables used in its value or in types, and the `match_cast` that defines a symbol, unless that
/// is already defined before the block.
pub fn needs_in_block(func: &Function, block: Block) -> Vec<Vec<u32>> {
    let bindings = &func.block(block).bindings;
    let casts = bindings.iter().any(|b| b.cast.is_some());
    let before = if casts { symbols_before(func, block) } else { FxHashSet::default() };
    let mut place: SecondaryMap<Var, u32> = SecondaryMap::new();
    let mut sym_place: FxHashMap<SymVar, u32> = FxHashMap::default();
    for (i, b) in bindings.iter().enumerate() {
        place[b.var] = i as u32 + 1;
        if let Some(cast) = b.cast.expand() {
            for s in definable_syms(func, cast).into_iter().filter(|s| !before.contains(s)) {
                sym_place.entry(s).or_insert(i as u32);
            }
        }
    }
    let needs = |(i, b): (usize, &Binding)| -> Vec<u32> {
        let mut out: Vec<u32> = value_free_vars(func, b.value)
            .into_iter()
            .chain(type_vars(func, func.var(b.var).ty))
            .filter_map(|v| place[v].checked_sub(1))
            .collect();
        let mut symbols = |list: Vec<SymVar>| {
            // A `match_cast` does not depend on symbols that it defines itself.
            let places = list.into_iter().filter_map(|s| sym_place.get(&s).copied());
            out.extend(places.filter(|&place| place as usize != i));
        };
        if !sym_place.is_empty() {
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
    bindings.iter().enumerate().map(needs).collect()
}

/// The symbols visible at the start of a block: those of the parameters of enclosing functions, and
/// those of previous `match_cast`s in the enclosing sequences.
fn symbols_before(func: &Function, block: Block) -> FxHashSet<SymVar> {
    let mut scopes: Vec<Vec<SymVar>> = Vec::new();
    let mut found = FxHashSet::default();
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
            found.extend(scopes.drain(..).flatten());
            done = true;
        }
        Event::LeaveBinding(_, b) => {
            if let (Some(cast), Some(scope)) = (b.cast.expand(), scopes.last_mut()) {
                scope.extend(definable_syms(func, cast));
            }
        }
        _ => {}
    });
    found
}

/// As [`sort_block`], for pure blocks of either kind. The error is a variable that depends on
/// itself.
fn put_in_order(func: &mut Function, block: Block) -> Result<(), Var> {
    let needs = needs_in_block(func, block);
    let bindings = std::mem::take(&mut func.block_mut(block).bindings);
    let (mut state, mut order) = (vec![0u8; bindings.len()], Vec::with_capacity(bindings.len()));
    for start in 0..bindings.len() {
        let mut stack = vec![(start, 0usize)];
        while let Some((i, at)) = stack.pop() {
            if state[i] == 2 {
                continue;
            }
            state[i] = 1;
            match needs[i].get(at) {
                None => {
                    state[i] = 2;
                    order.push(i);
                }
                Some(&next) => {
                    stack.push((i, at + 1));
                    let next = next as usize;
                    if state[next] == 0 {
                        stack.push((next, 0));
                    } else if state[next] == 1 && (next != i || !names_itself(func, &bindings[i])) {
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
