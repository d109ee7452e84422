//! The symbols of a function: their printed names and the order in which the text introduces them.
//!
//! `pliant-sym` orders the operands of a term by name. Therefore the text does not depend on the order in which terms were created,
//! and parsing and printing it again reproduces it.

use std::borrow::Cow;
use std::rc::Rc;

use pliant_sym::{Sym, SymArena, SymKind, SymVar};
use rustc_hash::FxHashMap;

/// The printed names of a function's symbols, and the order in which they are introduced.
#[derive(Default)]
pub(crate) struct SymTable {
    names: FxHashMap<SymVar, String>,
    order: Vec<SymVar>,
    memo: FxHashMap<Sym, Rc<str>>,
}

impl SymTable {
    /// The symbols of the function, in the order in which the printed text introduces them.
    pub fn order(&self) -> &[SymVar] {
        &self.order
    }

    /// The printed name of a symbol.
    pub fn name(&self, var: SymVar) -> &str {
        self.names.get(&var).map_or("_", String::as_str)
    }

    /// The symbols of a term that the printed text has not introduced yet, ordered by name. They are not ordered by creation,
    /// because printing and parsing would not preserve this order.
    pub fn unknown(&self, arena: &SymArena, sym: Sym) -> Vec<SymVar> {
        if let SymKind::Int(_) = arena.kind(sym) {
            return Vec::new();
        }
        let mut fresh: Vec<SymVar> = arena.free_vars(sym).into_iter().collect();
        fresh.retain(|v| !self.names.contains_key(v));
        fresh.sort_by(|&a, &b| arena.name(a).cmp(arena.name(b)).then(a.cmp(&b)));
        fresh
    }

    /// Records that the printed text introduces a symbol under the given name.
    pub fn introduce(&mut self, var: SymVar, name: String) {
        self.names.insert(var, name);
        self.order.push(var);
    }

    /// The printed text of a term, all of whose symbols the preceding text has introduced.
    pub fn text(&mut self, arena: &SymArena, sym: Sym) -> Rc<str> {
        if let Some(text) = self.memo.get(&sym) {
            return text.clone();
        }
        let mut out = String::new();
        let name = |v: SymVar| Cow::Borrowed(self.name(v));
        arena.write(sym, &mut out, &name).expect("writing to a string does not fail");
        let text: Rc<str> = out.into();
        self.memo.insert(sym, text.clone());
        text
    }
}
