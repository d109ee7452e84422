//! The compile-time state of the shape heap, the tensor that contains symbolic sizes at run time: the slot of each term, the
//! slots that are filled at the current position of the function, and the terms that cannot be computed until their symbols are
//! defined. The builtins that use the tensor at run time are in `pliant-vm/src/builtins/shape_heap.rs`.

use pliant_ir::{Sym, SymArena, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

/// The slots of the shape heap, and whether each slot is filled. Scopes are nested like sequences: slots that are filled in a
/// branch do not count as filled after the branch.
#[derive(Default)]
pub(super) struct ShapeHeap {
    slots: FxHashMap<Sym, u32>,
    filled: FxHashSet<Sym>,
    scopes: Vec<Scope>,
}

/// The state of one sequence: the symbolic sizes that it needs, and the symbolic sizes whose slots of the shape heap are filled by
/// the bindings of the sequence that have been lowered so far.
#[derive(Default)]
struct Scope {
    filled: Vec<Sym>,
    needed: Vec<NeededTerm>,
    /// Maps each symbol that is not defined yet to the indices of the needed sizes that contain it.
    waiting_for: FxHashMap<SymVar, Vec<usize>>,
    /// The sizes that the sequence needs and whose symbols are all defined, so that they can be computed.
    ready: Vec<Sym>,
}

/// A symbolic size that a sequence needs, and the number of its symbols that are not defined yet.
struct NeededTerm {
    sym: Sym,
    undefined: usize,
}

impl ShapeHeap {
    /// The number of slots of the shape heap that have been assigned.
    pub fn size(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the heap slot of a symbolic size. Assigns a new slot if it has none.
    pub fn slot(&mut self, sym: Sym) -> u32 {
        let next = self.slots.len() as u32;
        *self.slots.entry(sym).or_insert(next)
    }

    /// Returns the heap slot of a symbolic size if the slot is filled at the current position; `None` otherwise.
    pub fn filled_slot(&self, sym: Sym) -> Option<u32> {
        if self.filled.contains(&sym) { self.slots.get(&sym).copied() } else { None }
    }

    /// Whether the heap slot of a symbolic size is filled at the current position.
    pub fn is_filled(&self, sym: Sym) -> bool {
        self.filled.contains(&sym)
    }

    /// Opens the scope of a sequence that needs the symbolic sizes `needed`. They are computed in this order.
    pub fn open_scope(&mut self, syms: &SymArena, needed: impl IntoIterator<Item = Sym>) {
        let mut scope = Scope::default();
        let mut seen = FxHashSet::default();
        for sym in needed {
            if syms.as_int(sym).is_some() || syms.as_var(sym).is_some() || !seen.insert(sym) {
                continue;
            }
            let index = scope.needed.len();
            let mut undefined = 0;
            for var in syms.free_vars(sym) {
                if !self.filled.contains(&syms.var(var)) {
                    scope.waiting_for.entry(var).or_default().push(index);
                    undefined += 1;
                }
            }
            scope.needed.push(NeededTerm { sym, undefined });
            if undefined == 0 {
                scope.ready.push(sym);
            }
        }
        self.scopes.push(scope);
    }

    /// Closes the innermost scope.
    pub fn close_scope(&mut self) {
        for sym in self.scopes.pop().into_iter().flat_map(|s| s.filled) {
            self.filled.remove(&sym);
        }
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("the scope of a sequence is open while its bindings are lowered")
    }

    /// Marks the heap slot of a symbolic size as filled. If the size is a single symbol, needed sizes that contain this symbol
    /// may become ready to be computed.
    pub fn mark_filled(&mut self, syms: &SymArena, sym: Sym) {
        if !self.filled.insert(sym) {
            return;
        }
        let scope = self.scope();
        scope.filled.push(sym);
        let Some(var) = syms.as_var(sym) else { return };
        for index in scope.waiting_for.remove(&var).unwrap_or_default() {
            let term = &mut scope.needed[index];
            term.undefined -= 1;
            if term.undefined == 0 {
                let sym = term.sym;
                scope.ready.push(sym);
            }
        }
    }

    /// Removes and returns the needed symbolic sizes whose slots are not filled yet and whose symbols are all defined.
    pub fn take_ready(&mut self) -> Vec<Sym> {
        let ready = std::mem::take(&mut self.scope().ready);
        ready.into_iter().filter(|s| !self.filled.contains(s)).collect()
    }
}
