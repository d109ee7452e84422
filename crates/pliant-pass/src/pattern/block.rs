//! [`rewrite_bindings`]: what a context matches in dataflow blocks, replaced variable by variable.

use cranelift_entity::SecondaryMap;
use pliant_ir::OpRegistry;
use pliant_ir::print::type_text;
use pliant_ir::relax::derive::{definable_syms, is_subtype, type_syms};
use pliant_ir::relax::visit::{Event, for_each_expr, operand_vars, type_vars, walk};
use pliant_ir::relax::{Binding, Block, Expr, ExprData, Function, Var};
use pliant_sym::{Proof, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::clean::remove_unused;
use super::context::{Graph, PatternContext};
use super::defs::Defs;
use super::matcher::Match;
use crate::error::{PassError, Problem};
use crate::rewrite::Namer;

/// How many matches one block may have replaced.
const MAX_TURNS: usize = 4096;

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
    mut callback: impl FnMut(&mut Function, &Match) -> Result<Option<BlockReplacement>, PassError>,
) -> Result<usize, PassError> {
    ctx.check(ops)?;
    let mut count = 0;
    for block in dataflow_blocks(func) {
        let mut leave = FxHashSet::default();
        while let Some(found) = next_match(func, ctx, block, ops, &mut leave) {
            let Some(with) = callback(func, &found)? else { continue };
            count += usize::from(replace_in_block(func, block, with, ops)?);
            if count > MAX_TURNS {
                return Err(PassError::user(format!(
                    "the rewrite does not end: the context has matched {MAX_TURNS} times"
                )));
            }
        }
    }
    Ok(count)
}

/// The next match in a block whose calls are not in `leave`, which they join.
pub fn next_match(
    func: &mut Function,
    ctx: &PatternContext,
    block: Block,
    ops: &dyn OpRegistry,
    leave: &mut FxHashSet<Var>,
) -> Option<Match> {
    // A binding is found through the expression of its variable.
    let vars: Vec<Var> = func.block(block).bindings.iter().map(|b| b.var).collect();
    for v in vars {
        func.var_expr(v);
    }
    let defs = Defs::of(func, ops);
    let graph = Graph::of(func, block);
    let found = ctx.match_graph(func, &defs, &graph, ops, leave)?;
    for (_, e) in found.iter() {
        if let ExprData::Var(v) = func.expr(e)
            && defs.block(*v) == Some(block)
            && matches!(func.expr(defs.value(func, e)), ExprData::Call { .. })
        {
            leave.insert(*v);
        }
    }
    Some(found)
}

/// Puts a replacement into a block: values take their variables' places, what nothing uses any more goes, and the
/// bindings are put in order. Returns whether anything changed.
///
/// # Errors
/// Values that do not fit their variables; bindings that need each other.
pub fn replace_in_block(
    func: &mut Function,
    block: Block,
    with: BlockReplacement,
    ops: &dyn OpRegistry,
) -> Result<bool, PassError> {
    if with.values.is_empty() {
        return Ok(false);
    }
    let mut values: FxHashMap<Var, Expr> = with.values.into_iter().collect();
    let old = std::mem::take(&mut func.block_mut(block).bindings);
    let mut bindings = with.bindings;
    for b in &bindings {
        func.var_mut(b.var).dataflow = true;
    }
    let mut freed = Vec::new();
    let mut namer = None;
    for b in old {
        match values.remove(&b.var) {
            Some(value) => {
                freed.extend(operand_vars(func, b.value));
                fit(func, b.var, value, &mut namer, &mut bindings)?;
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
    sort_block(func, block)?;
    freed
        .extend(func.block(block).bindings.iter().map(|b| b.var).filter(|&v| func.var(v).dataflow));
    let defs = Defs::of(func, ops);
    remove_unused(func, ops, &defs, freed);
    Ok(true)
}

fn fit(
    func: &mut Function,
    var: Var,
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
                        func.var_mut(v).dataflow = true;
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
    let bindings = std::mem::take(&mut func.block_mut(block).bindings);
    let mut place: SecondaryMap<Var, u32> = SecondaryMap::new();
    let mut sym_place: FxHashMap<SymVar, u32> = FxHashMap::default();
    for (i, b) in bindings.iter().enumerate() {
        place[b.var] = i as u32 + 1;
        if let Some(cast) = b.cast.expand() {
            for s in definable_syms(func, cast) {
                sym_place.entry(s).or_insert(i as u32);
            }
        }
    }
    let needs = |b: &Binding| -> Vec<u32> {
        let mut out: Vec<u32> = operand_vars(func, b.value)
            .into_iter()
            .chain(type_vars(func, func.var(b.var).ty))
            .filter_map(|v| place[v].checked_sub(1))
            .collect();
        let mut symbols = |list: Vec<SymVar>| {
            out.extend(list.into_iter().filter_map(|s| sym_place.get(&s).copied()));
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
    let needs: Vec<Vec<u32>> = bindings.iter().map(needs).collect();
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
                    } else if state[next] == 1 && next != i {
                        let name = func.var(bindings[next].var).name.clone();
                        func.block_mut(block).bindings = bindings;
                        return Err(PassError::user(format!(
                            "the rewrite makes '{name}' need its own value"
                        )));
                    }
                }
            }
        }
    }
    func.block_mut(block).bindings = order.into_iter().map(|i| bindings[i]).collect();
    Ok(())
}
