//! # What it does
//! Sorts the bindings of each dataflow block topologically: depth first or breadth first, from the inputs or from the outputs.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     with R.dataflow():
//!         a = R.exp(x)
//!         b = R.sin(x)
//!         c = R.cos(a)
//!         d = R.tanh(b)
//!         e = R.add(c, d)
//!         R.output(e)
//!     return e
//! ```
//!
//! # After
//! With depth first from the inputs, the readers of a value follow it as soon as possible.
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     with R.dataflow():
//!         a = R.exp(x)
//!         c = R.cos(a)
//!         b = R.sin(x)
//!         d = R.tanh(b)
//!         e = R.add(c, d)
//!         R.output(e)
//!     return e
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The original order of bindings that do not depend on each other. A `match_cast` that defines a symbol precedes every binding
//! that mentions the symbol.
//!
//! # Never
//! Moves a binding out of its block, or changes plain blocks.

use std::collections::VecDeque;

use pliant_ir::relax::type_lattice::{definable_syms, type_syms};
use pliant_ir::relax::visit::{for_each_expr, operand_vars, type_vars};
use pliant_ir::relax::{Binding, Block, ExprData, Function, Type, Var};
use pliant_ir::{IRModule, SymVar};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashMap;

use crate::analysis::Effects;

/// The order in which the traversal of the dependence graph visits bindings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraversalOrder {
    /// The traversal follows each path of dependences to its end before it starts the next path.
    #[default]
    DepthFirst,
    /// The traversal visits the bindings level by level, in the order in which they become available.
    BreadthFirst,
}

/// The end of the dependence graph at which the traversal starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartingLocation {
    /// The traversal starts at the bindings that do not read the value of any other binding of the block.
    #[default]
    FromInputs,
    /// The traversal starts at the bindings whose values no binding of the block reads.
    FromOutputs,
}

/// The pass that sorts the bindings of dataflow blocks topologically. See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct TopologicalSort {
    /// Whether the traversal is depth first or breadth first.
    pub order: TraversalOrder,
    /// Whether the traversal starts at the inputs or at the outputs of the block.
    pub starting_location: StartingLocation,
}

impl ModulePass for TopologicalSort {
    fn name(&self) -> &str {
        "TopologicalSort"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let effects = Effects::of(&module, ctx.ops);
        update_each_relax(&mut module, ctx, |_, func| {
            let mut changed = false;
            for seq in reachable_seqs(func) {
                for block in func.seq(seq).blocks.clone() {
                    changed |= func.block(block).dataflow && self.block(func, block, &effects);
                }
            }
            Ok(changed)
        })?;
        Ok(module)
    }
}

impl TopologicalSort {
    fn block(&self, func: &mut Function, block: Block, effects: &Effects) -> bool {
        let bindings = func.block(block).bindings.clone();
        let mut dependences = binding_dependences(func, &bindings);
        add_effect_dependences(func, &bindings, effects, &mut dependences);
        let order = match (self.order, self.starting_location) {
            (order, StartingLocation::FromInputs) => from_inputs(&dependences, order),
            (TraversalOrder::DepthFirst, StartingLocation::FromOutputs) => {
                depth_first_from_outputs(&dependences)
            }
            (TraversalOrder::BreadthFirst, StartingLocation::FromOutputs) => {
                let mut order = from_inputs(&reversed(&dependences), TraversalOrder::BreadthFirst);
                order.iter_mut().for_each(|i| *i = dependences.len() - 1 - *i);
                order.reverse();
                order
            }
        };
        let new_bindings: Vec<Binding> = order.iter().map(|&i| bindings[i]).collect();
        let changed = new_bindings != bindings;
        func.block_mut(block).bindings = new_bindings;
        changed
    }
}

/// Returns, for each binding of a block, the indices of the earlier bindings on which it depends through its operands or through
/// the symbols and shapes in its value and type.
fn binding_dependences(func: &Function, bindings: &[Binding]) -> Vec<Vec<usize>> {
    let mut vars: FxHashMap<Var, usize> = FxHashMap::default();
    let mut syms: FxHashMap<SymVar, usize> = FxHashMap::default();
    // The symbols and variables of each type are cached, because blocks have many bindings but few types.
    let mut type_mentions: FxHashMap<Type, (Vec<SymVar>, Vec<Var>)> = FxHashMap::default();
    let mut out = Vec::with_capacity(bindings.len());
    for (i, b) in bindings.iter().enumerate() {
        let mut dependences: Vec<usize> =
            operand_vars(func, b.value).iter().filter_map(|v| vars.get(v).copied()).collect();
        let mut types = vec![func.var(b.var).ty];
        types.extend(b.cast.expand());
        let mut mentioned: Vec<SymVar> = Vec::new();
        for_each_expr(func, b.value, |e| match func.expr(e) {
            ExprData::Shape(dims) => {
                dims.iter().for_each(|&d| mentioned.extend(func.syms.free_vars(d)));
            }
            ExprData::Int(v, _) => mentioned.extend(func.syms.free_vars(*v)),
            ExprData::Call { ty_args, .. } => types.extend(func.type_list(*ty_args)),
            _ => {}
        });
        for ty in types {
            let (s, v) = type_mentions
                .entry(ty)
                .or_insert_with(|| (type_syms(func, ty), type_vars(func, ty)));
            dependences.extend(s.iter().filter_map(|s| syms.get(s).copied()));
            dependences.extend(v.iter().filter_map(|v| vars.get(v).copied()));
        }
        dependences.extend(mentioned.iter().filter_map(|s| syms.get(s).copied()));
        dependences.sort_unstable();
        dependences.dedup();
        out.push(dependences);
        vars.insert(b.var, i);
        if let Some(cast) = b.cast.expand() {
            for v in definable_syms(func, cast).into_iter().chain(type_syms(func, cast)) {
                syms.entry(v).or_insert(i);
            }
        }
    }
    out
}

/// Adds dependences that prevent bindings from moving across an impure call.
fn add_effect_dependences(
    func: &Function,
    bindings: &[Binding],
    effects: &Effects,
    dependences: &mut [Vec<usize>],
) {
    let mut last: Option<usize> = None;
    for (i, b) in bindings.iter().enumerate() {
        if effects.is_impure(func, b.value) {
            dependences[i].extend(last.unwrap_or(0)..i);
            last = Some(i);
        } else {
            dependences[i].extend(last);
        }
        dependences[i].sort_unstable();
        dependences[i].dedup();
    }
}

/// Returns, for each binding, the indices of the bindings that depend on it.
fn readers(dependences: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new(); dependences.len()];
    for (i, list) in dependences.iter().enumerate() {
        list.iter().for_each(|&n| out[n].push(i));
    }
    out
}

/// Returns the dependence graph with all edges reversed and the bindings numbered from the last to the first.
fn reversed(dependences: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let last = dependences.len().saturating_sub(1);
    let mut out: Vec<Vec<usize>> = readers(dependences)
        .into_iter()
        .map(|list| list.into_iter().rev().map(|i| last - i).collect())
        .collect();
    out.reverse();
    out
}

/// Computes an order in which each binding follows its dependences. A binding becomes available when all its dependences have
/// been placed. Depth first places the binding that became available last; breadth first places the one that became available
/// first.
fn from_inputs(dependences: &[Vec<usize>], order: TraversalOrder) -> Vec<usize> {
    let readers = readers(dependences);
    let mut open_dependences: Vec<usize> = dependences.iter().map(Vec::len).collect();
    let mut ready: VecDeque<usize> =
        (0..dependences.len()).filter(|&i| open_dependences[i] == 0).collect();
    let mut out = Vec::with_capacity(dependences.len());
    while let Some(i) = ready.pop_front() {
        out.push(i);
        let mut unblocked = Vec::new();
        for &r in &readers[i] {
            open_dependences[r] -= 1;
            if open_dependences[r] == 0 {
                unblocked.push(r);
            }
        }
        match order {
            TraversalOrder::BreadthFirst => ready.extend(unblocked),
            TraversalOrder::DepthFirst => {
                unblocked.into_iter().rev().for_each(|r| ready.push_front(r));
            }
        }
    }
    out
}

/// Computes an order by a depth-first traversal from the outputs: before each binding, its dependences that have not been placed
/// yet are placed.
fn depth_first_from_outputs(dependences: &[Vec<usize>]) -> Vec<usize> {
    let readers = readers(dependences);
    let mut visited = vec![false; dependences.len()];
    let mut out = Vec::with_capacity(dependences.len());
    for root in (0..dependences.len()).filter(|&i| readers[i].is_empty()) {
        let mut stack = vec![(root, false)];
        while let Some((i, ready)) = stack.pop() {
            if ready {
                out.push(i);
            } else if !visited[i] {
                visited[i] = true;
                stack.push((i, true));
                stack.extend(dependences[i].iter().rev().map(|&n| (n, false)));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every order is a permutation that respects the dependences, also for blocks without bindings and with one
    /// binding.
    #[test]
    fn orders_respect_dependences() {
        let cases: [Vec<Vec<usize>>; 4] = [
            vec![],
            vec![vec![]],
            vec![vec![], vec![], vec![0], vec![1, 2], vec![0], vec![]],
            vec![vec![], vec![0], vec![0], vec![1, 2], vec![3]],
        ];
        for dependences in cases {
            let mut backwards = from_inputs(&reversed(&dependences), TraversalOrder::BreadthFirst);
            backwards.iter_mut().for_each(|i| *i = dependences.len() - 1 - *i);
            backwards.reverse();
            let orders = [
                from_inputs(&dependences, TraversalOrder::DepthFirst),
                from_inputs(&dependences, TraversalOrder::BreadthFirst),
                depth_first_from_outputs(&dependences),
                backwards,
            ];
            for order in orders {
                assert_eq!(order.len(), dependences.len());
                let position = |i: usize| order.iter().position(|&o| o == i).expect("it is there");
                for (i, list) in dependences.iter().enumerate() {
                    assert!(
                        list.iter().all(|&n| position(n) < position(i)),
                        "{dependences:?} {order:?}"
                    );
                }
            }
        }
    }
}
