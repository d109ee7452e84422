//! Orders functions that are added to a module together, so that they may call each other in any order.

use std::sync::Arc;

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::relax::detached_expr::{Key, Node, NodeRef};
use crate::relax::detached_functions::GlobalTypes;
use crate::relax::expr_traversal::{WalkEvent, walk};
use crate::relax::function::{Function, signature_of};
use crate::relax::struct_info::SInfo;

/// Returns the types of the graph functions that have a declared type, and an order in which to
/// build all functions. A function whose type follows from its body comes after the functions that
/// it calls, if such an order exists.
pub fn build_order(entries: &[(Arc<str>, Bound<'_, PyAny>)]) -> (GlobalTypes, Vec<usize>) {
    let mut declared = GlobalTypes::default();
    let mut undeclared: FxHashMap<Arc<str>, (usize, NodeRef)> = FxHashMap::default();
    for (i, (name, obj)) in entries.iter().enumerate() {
        let Ok(func) = obj.cast::<Function>() else { continue };
        let node = &func.as_super().get().node;
        match declared_signature(node) {
            Some(info) => drop(declared.insert(name.clone(), info)),
            None => drop(undeclared.insert(name.clone(), (i, node.clone()))),
        }
    }
    let mut order = Vec::with_capacity(entries.len());
    let mut visited = vec![false; entries.len()];
    for (i, (name, _)) in entries.iter().enumerate() {
        let mut stack = vec![(i, name.clone(), false)];
        while let Some((i, name, callees_done)) = stack.pop() {
            if callees_done {
                order.push(i);
            } else if !std::mem::replace(&mut visited[i], true) {
                stack.push((i, name.clone(), true));
                let callees = undeclared
                    .get(&name)
                    .map(|(_, node)| referenced_functions(node))
                    .unwrap_or_default();
                stack.extend(callees.into_iter().filter_map(|callee| {
                    let (index, _) = undeclared.get(&callee)?;
                    Some((*index, callee, false))
                }));
            }
        }
    }
    (declared, order)
}

/// Returns the type of a function, if it is known without inferring the type of its body.
fn declared_signature(node: &NodeRef) -> Option<SInfo> {
    let owner = match node.get() {
        Node::Root(owner) => owner,
        Node::Func(func) => match func.built() {
            Some(owner) => owner,
            None => return func.data().signature(),
        },
        _ => return None,
    };
    // Computing the signature locks the owner, so the lock must be released first.
    let func = owner.lock().finished().cloned();
    func.as_ref().map(signature_of)
}

/// Returns the names of the module functions to which an expression refers.
fn referenced_functions(node: &NodeRef) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    walk(node, |event| {
        if let WalkEvent::Expr(node) = event
            && let Key::Global(name) = node.key()
        {
            names.push(name);
        }
    });
    names
}
