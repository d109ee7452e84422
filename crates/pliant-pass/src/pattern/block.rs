//! [`rewrite_bindings`]: what a context matches in dataflow blocks, replaced variable by variable.

use cranelift_entity::SecondaryMap;
use pliant_ir::OpRegistry;
use pliant_ir::print::type_text;
use pliant_ir::relax::derive::{definable_syms, is_subtype, type_syms};
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

/// What takes the place of a match: bindings to add, and the values of variables that change.
#[derive(Clone, Debug, Default)]
pub struct BlockReplacement {
    /// Bindings to add to the block, in order.
    pub bindings: Vec<Binding>,
    /// Variables with their values from now on.
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

/// Replaces what a context matches in the dataflow blocks of a function by what `callback` makes of it, until nothing
/// matches that it replaces. No value of an earlier match is matched again as one of the context's calls. Returns how
/// many matches were replaced.
///
/// # Errors
/// A pattern that can never match, replacements that do not fit or that need each other, errors of the callback.
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
            // All matches of the block as it stands, then all replacements: each takes time of its own only.
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

/// How many matches a block may have replaced.
pub fn max_turns(func: &Function, block: Block) -> usize {
    1024 + 64 * func.block(block).bindings.len()
}

/// What is told of a rewrite that goes beyond [`max_turns`].
pub fn endless(count: usize) -> PassError {
    PassError::user(format!("the rewrite does not end: the context has matched {count} times"))
}

/// The matches of a context in a block that does not change meanwhile, one after the other.
pub struct BlockMatches<'c> {
    ctx: &'c PatternContext,
    ops: &'c dyn OpRegistry,
    block: Block,
    defs: Defs,
    graph: Graph,
    /// The first variable that the first pattern may still be.
    from: usize,
}

/// How many variables are tried for the first pattern before those that matched are left out again.
const WINDOW: usize = 32;

impl<'c> BlockMatches<'c> {
    /// The matches in a block; `writers` are those of the function's module, if that is known.
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

    /// The next match whose calls are not in `leave`, which they join. All its calls stand between the same effects.
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
                // A match without calls would be found again and again.
                self.from += WINDOW;
            }
            let epoch = |v: &Var| self.defs.epoch(*v);
            if calls.iter().all(|v| epoch(v) == calls.first().and_then(epoch)) {
                return Some(found);
            }
        }
    }
}

/// The first match in a block whose calls are not in `leave`, which they join.
pub fn next_match(
    func: &Function,
    ctx: &PatternContext,
    block: Block,
    ops: &dyn OpRegistry,
    leave: &mut FxHashSet<Var>,
) -> Option<Match> {
    // Finding moves nothing.
    BlockMatches::new(func, ctx, block, ops, Some(&Writers::default())).next(func, leave)
}

/// Puts replacements into a block: values take their variables' places, what nothing uses any more goes, and the
/// bindings are put in order. The bindings of a replacement stand before the first variable that it replaces. Returns
/// whether anything changed.
///
/// # Errors
/// Values that do not fit their variables; bindings that need each other.
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

/// As [`replace_in_block`]; where a value would need itself, its variable comes back and the block is as it was.
pub(super) fn replace_unless_cyclic(
    func: &mut Function,
    block: Block,
    with: Vec<BlockReplacement>,
    ops: &dyn OpRegistry,
) -> Result<Result<bool, Var>, PassError> {
    let mut values: FxHashMap<Var, Expr> = FxHashMap::default();
    // A variable that stays what it is needs no other value.
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

/// The bindings of replacements, by the first variable that each replaces.
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

/// Puts the bindings of a dataflow block into an order in which each stands after what it needs: variables, and
/// symbols that a `match_cast` defines. Bindings that are in order stay where they are.
///
/// # Errors
/// Bindings that need each other.
pub fn sort_block(func: &mut Function, block: Block) -> Result<(), PassError> {
    put_in_order(func, block).map_err(|v| needs_itself(func, v))
}

/// Whether a binding may read its own variable, as a local function does that calls itself.
fn names_itself(func: &Function, b: &Binding) -> bool {
    matches!(func.expr(b.value), ExprData::Func(_))
}

/// What each binding of a block needs of the block's other bindings, as their numbers: those of variables that it reads or
/// that types mention, and the `match_cast` that defines a symbol, where nothing before the block does.
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
            // A `match_cast` needs no symbol that it defines itself.
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

/// The symbols in view where a block begins: those of the parameters of the functions around it, and of each `match_cast`
/// before it in the sequences that it stands in.
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
        Event::Bound(_, b) => {
            if let (Some(cast), Some(scope)) = (b.cast.expand(), scopes.last_mut()) {
                scope.extend(definable_syms(func, cast));
            }
        }
        _ => {}
    });
    found
}

/// As [`sort_block`], for blocks of either kind without effects; the error is a variable that needs itself.
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
