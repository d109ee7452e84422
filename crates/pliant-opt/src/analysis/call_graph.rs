//! The call graph of a module's graph functions.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::visit::{Event, called_globals, for_each_operand, post_order, walk};
use pliant_ir::relax::{Callee, ExprData, Function};
use rustc_hash::{FxHashMap, FxHashSet};

/// The call graph of a module: for each graph function, the functions that it calls.
pub struct CallGraph {
    /// The names of the graph functions. Callees precede callers, except within cycles.
    pub callees_first: Vec<Arc<str>>,
    /// The names of the functions that call themselves, directly or through other functions.
    pub recursive: FxHashSet<Arc<str>>,
    /// For each graph function, the graph functions and loop functions that it mentions.
    pub calls: FxHashMap<Arc<str>, Vec<Arc<str>>>,
}

impl CallGraph {
    /// Computes the call graph of a module with Tarjan's algorithm for strongly connected components. The algorithm is iterative,
    /// so deep call chains cannot overflow the stack.
    pub fn of(module: &IRModule) -> Self {
        let calls: FxHashMap<Arc<str>, Vec<Arc<str>>> =
            module.relax_funcs().map(|(name, f)| (name.clone(), called_globals(f))).collect();
        let names: Vec<&Arc<str>> = module.relax_funcs().map(|(name, _)| name).collect();
        let ids: FxHashMap<&str, usize> =
            names.iter().enumerate().map(|(i, n)| (&***n, i)).collect();
        let edges: Vec<Vec<usize>> = names
            .iter()
            .map(|n| calls[*n].iter().filter_map(|c| ids.get(&**c).copied()).collect())
            .collect();
        let (mut callees_first, mut recursive) = (Vec::new(), FxHashSet::default());
        for component in components(&edges) {
            let acyclic = matches!(component[..], [f] if !edges[f].contains(&f));
            for f in component {
                callees_first.push(names[f].clone());
                if !acyclic {
                    recursive.insert(names[f].clone());
                }
            }
        }
        CallGraph { callees_first, recursive, calls }
    }
}

/// Computes the strongly connected components of a directed graph, with successors before predecessors. `edges` lists the
/// successors of each node.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut out = Vec::new();
    // `visited_at` is the step at which a node was first visited. `low` is the earliest step of a node on the stack that the node
    // reaches.
    let mut visited_at: Vec<Option<usize>> = vec![None; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let (mut stack, mut path, mut step) = (Vec::new(), Vec::new(), 0);
    for root in 0..edges.len() {
        if visited_at[root].is_none() {
            path.push((root, 0));
        }
        while let Some((at, next)) = path.last_mut() {
            let at = *at;
            if *next == 0 && visited_at[at].is_none() {
                (visited_at[at], low[at], on_stack[at]) = (Some(step), step, true);
                stack.push(at);
                step += 1;
            }
            if let Some(&to) = edges[at].get(*next) {
                *next += 1;
                match visited_at[to] {
                    None => path.push((to, 0)),
                    Some(m) if on_stack[to] => low[at] = low[at].min(m),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            if let Some(&(from, _)) = path.last() {
                low[from] = low[from].min(low[at]);
            }
            if visited_at[at] == Some(low[at]) {
                let from = stack
                    .iter()
                    .rposition(|&f| f == at)
                    .expect("the root of a strongly connected component is on the stack");
                let component = stack.split_off(from);
                component.iter().for_each(|&f| on_stack[f] = false);
                out.push(component);
            }
        }
    }
    out
}

/// Returns the private graph functions that are never used as values, so that all their call sites are direct calls by name.
pub fn called_by_name_only(module: &IRModule) -> FxHashSet<Arc<str>> {
    let values = used_as_values(module);
    let private = module.relax_funcs().filter(|(_, f)| f.private);
    private.map(|(name, _)| name).filter(|name| !values.contains(*name)).cloned().collect()
}

/// Returns the graph functions that are used as values, that is, in a position other than the callee of a direct call.
pub fn used_as_values(module: &IRModule) -> FxHashSet<Arc<str>> {
    let mut out: FxHashSet<Arc<str>> = FxHashSet::default();
    for (_, f) in module.relax_funcs() {
        post_order(f, |e| {
            let callee = match f.expr(e) {
                ExprData::Call { callee: Callee::Expr(callee), .. } => Some(*callee),
                _ => None,
            };
            for_each_operand(f, e, |operand| {
                if let ExprData::Global(name) = f.expr(operand)
                    && callee != Some(operand)
                {
                    out.insert(f.str(*name).clone());
                }
            });
        });
        out.extend(globals_as_values(f));
    }
    out
}

/// Returns the functions of the module that `f` uses as values: a variable is bound to the function, or a sequence returns it.
fn globals_as_values(f: &Function) -> Vec<Arc<str>> {
    let mut out = Vec::new();
    walk(f, f.root(), |event| {
        let e = match event {
            Event::EnterBinding(_, b) => b.value,
            Event::Result(seq) => f.seq(seq).result,
            _ => return,
        };
        if let ExprData::Global(name) = f.expr(e) {
            out.push(f.str(*name).clone());
        }
    });
    out
}
