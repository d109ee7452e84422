//! Decides which functions are inlined into the loops that call them.
//!
//! The condition and the body of a loop are functions. If nothing else calls such a function, its
//! code is moved into the loop, so that iterations create no frame and no state tuple. A small
//! function with other callers is copied into the loops and also kept.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::visit::{bindings, post_order};
use pliant_ir::relax::{ExprData, Function};
use pliant_opt::analysis::while_loop_closures::{loop_closures, loop_operands};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum depth of nested loops that are inlined, since code generation is recursive over them.
const MAX_DEPTH: usize = 16;

/// Maximum number of bindings of a function that is copied into loops.
const MAX_COPIED: usize = 48;

/// The functions of a module that are inlined into loops.
#[derive(Default)]
pub(super) struct InlinedFunctions {
    /// Names of functions that are inlined into their only caller, a loop, and not emitted separately.
    moved: FxHashSet<Arc<str>>,
    /// Names of functions that are copied into loops and also emitted separately, since they have other callers.
    copied: FxHashSet<Arc<str>>,
}

impl InlinedFunctions {
    /// Selects the functions of the module to inline.
    pub fn of(module: &IRModule) -> InlinedFunctions {
        let mut mentions: FxHashMap<Arc<str>, usize> = FxHashMap::default();
        let mut candidates: FxHashMap<Arc<str>, Vec<Arc<str>>> = FxHashMap::default();
        let mut copied = FxHashSet::default();
        for (name, func) in module.relax_funcs() {
            count_mentions(func, &mut mentions);
            let mut loop_callees = Vec::new();
            for (callee, arity) in loop_functions(func) {
                let Some(f) = module.get(&callee).and_then(|f| f.as_relax()) else { continue };
                if f.params().len() != arity {
                    continue;
                }
                if is_small(f) {
                    copied.insert(callee.clone());
                }
                if f.private {
                    loop_callees.push(callee);
                }
            }
            candidates.insert(name.clone(), loop_callees);
        }
        let mentioned_once = |name: &Arc<str>| mentions.get(name) == Some(&1);
        let nested: FxHashSet<&Arc<str>> =
            candidates.values().flatten().filter(|n| mentioned_once(n)).collect();
        // The traversal starts at functions that are not inlined, so it inlines no cycle.
        let mut worklist: Vec<(&Arc<str>, usize)> = module
            .relax_funcs()
            .map(|(n, _)| (n, 0))
            .filter(|(n, _)| !nested.contains(n))
            .collect();
        let mut moved = FxHashSet::default();
        while let Some((name, depth)) = worklist.pop() {
            for callee in candidates.get(name).into_iter().flatten().filter(|c| mentioned_once(c)) {
                let fits = depth < MAX_DEPTH;
                if fits {
                    moved.insert(callee.clone());
                }
                worklist.push((callee, if fits { depth + 1 } else { 0 }));
            }
        }
        InlinedFunctions { moved, copied }
    }

    /// Whether the code of the function `name` is inlined into the loops that call it.
    pub fn contains(&self, name: &str) -> bool {
        self.moved.contains(name) || self.copied.contains(name)
    }

    /// Whether the code of the function `name` is inlined into its only caller, a loop, so that no separate code is emitted for the
    /// function.
    pub fn is_moved(&self, name: &str) -> bool {
        self.moved.contains(name)
    }
}

/// Whether a function is small enough to be copied into each loop that calls it. A function that contains a loop is
/// excluded, because its time is spent in that loop, and because the function may itself be the condition or body of
/// that loop.
fn is_small(func: &Function) -> bool {
    let all = bindings(func);
    all.len() <= MAX_COPIED && all.iter().all(|(_, b)| loop_operands(func, b.value).is_none())
}

/// Counts the references of a function to other functions, and adds the counts to `mentions`.
fn count_mentions(func: &Function, mentions: &mut FxHashMap<Arc<str>, usize>) {
    post_order(func, |e| {
        if let ExprData::Global(name) = func.expr(e) {
            *mentions.entry(func.str(*name).clone()).or_default() += 1;
        }
    });
}

/// Returns the names of the functions that are the condition or the body of a loop in `func`, each
/// with the number of arguments that the loop passes to it.
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
