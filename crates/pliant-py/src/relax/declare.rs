//! The types of functions that are added to a module together, so that they may call each other in
//! any order.

use std::sync::Arc;

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::relax::function::{Function, signature_of};
use crate::relax::node::{Key, Node, NodeRef};
use crate::relax::seq::Globals;
use crate::relax::sinfo::SInfo;
use crate::relax::walk::{Step, walk};

/// The types of the graph functions that have a declared type, and an order in which to build all
/// functions. A function whose type follows from its body comes after the functions that it calls,
/// if such an order exists.
pub fn declare(entries: &[(Arc<str>, Bound<'_, PyAny>)]) -> (Globals, Vec<usize>) {
    let mut known = Globals::default();
    let mut open: FxHashMap<Arc<str>, (usize, NodeRef)> = FxHashMap::default();
    for (i, (name, obj)) in entries.iter().enumerate() {
        let Ok(func) = obj.cast::<Function>() else { continue };
        let node = &func.as_super().get().node;
        match signature(node) {
            Some(info) => drop(known.insert(name.clone(), info)),
            None => drop(open.insert(name.clone(), (i, node.clone()))),
        }
    }
    let mut order = Vec::with_capacity(entries.len());
    let mut entered = vec![false; entries.len()];
    for (i, (name, _)) in entries.iter().enumerate() {
        let mut stack = vec![(i, name.clone(), false)];
        while let Some((i, name, ready)) = stack.pop() {
            if ready {
                order.push(i);
            } else if !std::mem::replace(&mut entered[i], true) {
                stack.push((i, name.clone(), true));
                let callees = open.get(&name).map(|(_, node)| named_in(node)).unwrap_or_default();
                stack.extend(callees.into_iter().filter_map(|callee| {
                    let (at, _) = open.get(&callee)?;
                    Some((*at, callee, false))
                }));
            }
        }
    }
    (known, order)
}

/// The type of a function, if it is known without inferring the type of its body.
fn signature(node: &NodeRef) -> Option<SInfo> {
    let home = match node.get() {
        Node::Root(home) => home,
        Node::Func(func) => match func.made() {
            Some(home) => home,
            None => return func.data().signature(),
        },
        _ => return None,
    };
    // Computing the signature locks the home, so the lock must be released first.
    let func = home.lock().finished().cloned();
    func.as_ref().map(signature_of)
}

/// The functions of the module that an expression refers to.
fn named_in(node: &NodeRef) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    walk(node, |step| {
        if let Step::Expr(node) = step
            && let Key::Global(name) = node.key()
        {
            names.push(name);
        }
    });
    names
}
