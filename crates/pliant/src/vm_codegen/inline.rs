//! Which functions are written out in the loops that call them, instead of as functions of their own.
//!
//! The condition and the body of a loop are functions. Where nobody else calls such a function, its code stands in the
//! loop: a turn then enters no frame and makes no tuple of its state. A small function that others call too stays, and
//! loops hold copies of its code.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::visit::{bindings, post_order};
use pliant_ir::relax::{ExprData, Function};
use pliant_opt::analysis::loop_closures::{loop_closures, loop_operands};
use rustc_hash::{FxHashMap, FxHashSet};

/// Loops in loops are written out up to this depth; code generation recurses along them.
const MAX_DEPTH: usize = 16;

/// Bindings of a function that loops copy at most.
const MAX_COPIED: usize = 48;

/// The functions of a module that are written out in loops.
#[derive(Default)]
pub(super) struct Inlined {
    /// Those that stand in one loop and nowhere else.
    moved: FxHashSet<Arc<str>>,
    /// Those that others call as well.
    copied: FxHashSet<Arc<str>>,
}

impl Inlined {
    pub fn of(module: &IRModule) -> Inlined {
        let mut mentions: FxHashMap<Arc<str>, usize> = FxHashMap::default();
        let mut candidates: FxHashMap<Arc<str>, Vec<Arc<str>>> = FxHashMap::default();
        let mut copied = FxHashSet::default();
        for (name, func) in module.relax_funcs() {
            count_mentions(func, &mut mentions);
            let mut turned = Vec::new();
            for (callee, arity) in loop_functions(func) {
                let Some(f) = module.get(&callee).and_then(|f| f.as_relax()) else { continue };
                if f.params().len() != arity {
                    continue;
                }
                if is_small(f) {
                    copied.insert(callee.clone());
                }
                if f.private {
                    turned.push(callee);
                }
            }
            candidates.insert(name.clone(), turned);
        }
        let once = |name: &Arc<str>| mentions.get(name) == Some(&1);
        let nested: FxHashSet<&Arc<str>> =
            candidates.values().flatten().filter(|n| once(n)).collect();
        // From those that are functions of their own, so that no cycle is written out.
        let mut work: Vec<(&Arc<str>, usize)> = module
            .relax_funcs()
            .map(|(n, _)| (n, 0))
            .filter(|(n, _)| !nested.contains(n))
            .collect();
        let mut moved = FxHashSet::default();
        while let Some((name, depth)) = work.pop() {
            for callee in candidates.get(name).into_iter().flatten().filter(|c| once(c)) {
                let fits = depth < MAX_DEPTH;
                if fits {
                    moved.insert(callee.clone());
                }
                work.push((callee, if fits { depth + 1 } else { 0 }));
            }
        }
        Inlined { moved, copied }
    }

    /// Whether loops hold the code of the function.
    pub fn contains(&self, name: &str) -> bool {
        self.moved.contains(name) || self.copied.contains(name)
    }

    /// Whether the function is nothing but a part of a loop.
    pub fn is_moved(&self, name: &str) -> bool {
        self.moved.contains(name)
    }
}

/// Whether a function is worth a copy in each loop over it. One with a loop of its own takes its time in that, and might be
/// a loop over itself.
fn is_small(func: &Function) -> bool {
    let all = bindings(func);
    all.len() <= MAX_COPIED && all.iter().all(|(_, b)| loop_operands(func, b.value).is_none())
}

/// Counts how often a function names others.
fn count_mentions(func: &Function, mentions: &mut FxHashMap<Arc<str>, usize>) {
    post_order(func, |e| {
        if let ExprData::Global(name) = func.expr(e) {
            *mentions.entry(func.str(*name).clone()).or_default() += 1;
        }
    });
}

/// The functions that only one loop of `func` calls, and how many arguments it passes.
fn loop_functions(func: &Function) -> Vec<(Arc<str>, usize)> {
    let closures = loop_closures(func);
    let mut out = Vec::new();
    for (_, binding) in bindings(func) {
        let Some(operands) = loop_operands(func, binding.value) else { continue };
        for &f in operands.iter().take(2) {
            let states = operands.len() - 2;
            match func.expr(f) {
                ExprData::Global(name) => out.push((func.str(*name).clone(), states)),
                ExprData::Var(v) => {
                    out.extend(closures.get(v).map(|c| (c.name.clone(), states + c.captured.len())))
                }
                _ => {}
            }
        }
    }
    out
}
