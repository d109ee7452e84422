//! Recursive functions: those that call themselves, directly or through other functions.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::visit::called_globals;
use rustc_hash::FxHashMap;

/// Returns the groups of mutually recursive graph functions. A function that calls only itself forms a group of one. Each group
/// is sorted by name, and the groups are sorted by their first name.
///
/// The implementation is Tarjan's algorithm without recursion, so deep call chains cannot overflow the stack.
pub fn recursive_groups(module: &IRModule) -> Vec<Vec<Arc<str>>> {
    let names: Vec<&Arc<str>> = module.relax_funcs().map(|(name, _)| name).collect();
    let ids: FxHashMap<&str, usize> = names.iter().enumerate().map(|(i, n)| (&***n, i)).collect();
    let callees: Vec<Vec<usize>> = module
        .relax_funcs()
        .map(|(_, f)| {
            let named = called_globals(f);
            named.iter().filter_map(|n| ids.get(&**n).copied()).collect()
        })
        .collect();
    let mut groups: Vec<Vec<Arc<str>>> = components(&callees)
        .into_iter()
        .filter(|group| group.len() > 1 || callees[group[0]].contains(&group[0]))
        .map(|group| {
            let mut group: Vec<Arc<str>> = group.into_iter().map(|i| names[i].clone()).collect();
            group.sort();
            group
        })
        .collect();
    groups.sort();
    groups
}

/// Computes the strongly connected components of a directed graph. `edges` lists the successors of each node.
fn components(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NONE: usize = usize::MAX;
    let n = edges.len();
    let (mut index, mut low, mut on_stack) = (vec![NONE; n], vec![0; n], vec![false; n]);
    let (mut stack, mut out, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..n {
        if index[root] != NONE {
            continue;
        }
        let mut path = vec![(root, 0)];
        while let Some(&mut (v, ref mut at)) = path.last_mut() {
            if *at == 0 && index[v] == NONE {
                (index[v], low[v]) = (next, next);
                next += 1;
                stack.push(v);
                on_stack[v] = true;
            }
            if let Some(&w) = edges[v].get(*at) {
                *at += 1;
                if index[w] == NONE {
                    path.push((w, 0));
                } else if on_stack[w] {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            path.pop();
            if let Some(&(parent, _)) = path.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == index[v] {
                let at = stack
                    .iter()
                    .rposition(|&w| w == v)
                    .expect("the root of a strongly connected component is on the stack");
                let group = stack.split_off(at);
                group.iter().for_each(|&w| on_stack[w] = false);
                out.push(group);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn only_cycles_form_groups_of_several_functions() {
        assert_eq!(components(&[]), Vec::<Vec<usize>>::new());
        assert_eq!(components(&[vec![1], vec![2], vec![]]), [vec![2], vec![1], vec![0]]);
        let mut groups = components(&[vec![1], vec![2], vec![0, 3], vec![3]]);
        groups.iter_mut().for_each(|g| g.sort_unstable());
        assert_eq!(groups, [vec![3], vec![0, 1, 2]]);
    }

    #[test]
    fn long_call_chains_do_not_overflow_the_stack() {
        let n = 200_000;
        let edges: Vec<Vec<usize>> = (0..n).map(|i| vec![(i + 1) % n]).collect();
        assert_eq!(components(&edges).len(), 1);
    }
}
