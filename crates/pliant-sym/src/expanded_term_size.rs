//! The size of a term when written as a tree, in which a shared subterm counts at every occurrence.

use rustc_hash::FxHashMap;

use crate::{Sym, SymArena, SymKind};

impl SymArena {
    /// The number of nodes of the term written as a tree, at most `max`.
    pub fn tree_size(&self, sym: Sym, max: usize) -> usize {
        if let SymKind::Int(_) | SymKind::Var(_) = self.kind(sym) {
            return 1.min(max);
        }
        let mut sizes: FxHashMap<Sym, usize> = FxHashMap::default();
        let mut stack = vec![sym];
        while let Some(&s) = stack.last() {
            let below = self.children(s);
            let open = stack.len();
            stack.extend(below.iter().copied().filter(|c| !sizes.contains_key(c)));
            if stack.len() == open {
                let size = below.iter().fold(1, |n: usize, c| n.saturating_add(sizes[c]).min(max));
                sizes.insert(s, size);
                stack.pop();
            }
        }
        sizes[&sym].min(max)
    }
}
