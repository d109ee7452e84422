//! The storages of a sequence that are free, and those that will become free.

use std::collections::BTreeMap;

use pliant_ir::Sym;
use pliant_ir::relax::{Expr, Function};
use pliant_sym::{Analyzer, Facts};
use rustc_hash::FxHashMap;

use crate::analysis::liveness::AT_RESULT;

/// Maximum ratio of the constant size of a storage to that of a tensor in it.
const MAX_WASTE: i64 = 16;

/// Maximum number of free sizes that are compared with the size of a tensor if none equals it.
const MAX_COMPARED: usize = 16;

/// A storage and its size.
pub(super) type Token = (Expr, Sym);

/// The sizes of a function, and a cache of comparisons.
#[derive(Default)]
pub(super) struct Sizes {
    facts: Facts,
    has_bounds: bool,
    /// Whether the first is at most the second.
    ordered: FxHashMap<(Sym, Sym), bool>,
}

impl Sizes {
    /// Sizes with the bounds in a function's attribute: `{"n": 1024}`.
    pub fn of(func: &Function, bounds: &FxHashMap<&str, i64>) -> Sizes {
        let mut sizes = Sizes { has_bounds: !bounds.is_empty(), ..Sizes::default() };
        for var in func.syms.vars() {
            let bound = bounds.get(func.syms.name(var)).copied();
            sizes.facts.assume_range(var, Some(0), bound);
        }
        sizes
    }

    /// The maximum of a size as a constant, if it is bounded.
    pub fn bounded(&self, func: &mut Function, size: Sym) -> Sym {
        if !self.has_bounds {
            return size;
        }
        let bound = Analyzer::new(&mut func.syms, &self.facts).const_int_bound(size).hi();
        bound.map_or(size, |bytes| func.syms.int(bytes))
    }

    fn at_most(&mut self, func: &mut Function, a: Sym, b: Sym) -> bool {
        if let Some(&known) = self.ordered.get(&(a, b)) {
            return known;
        }
        // A size grows with each of its symbols, so a symbol that the other size lacks makes
        // it larger.
        let within = func.syms.free_vars(b);
        let may = func.syms.free_vars(a).iter().all(|v| within.contains(v));
        let proof = may && Analyzer::new(&mut func.syms, &self.facts).prove_le(a, b).is_yes();
        self.ordered.insert((a, b), proof);
        proof
    }
}

/// The storages of one sequence.
#[derive(Clone, Default)]
pub(super) struct Pool {
    by_size: FxHashMap<Sym, Vec<Expr>>,
    /// The non-constant sizes, in the order in which they became free.
    sizes: Vec<Sym>,
    constants: BTreeMap<i64, Vec<Expr>>,
    constant_syms: FxHashMap<i64, Sym>,
    lent: FxHashMap<usize, Vec<Token>>,
}

impl Pool {
    /// The free storages, for use in a branch: all of them are free again after the branch.
    pub fn for_branch(&self) -> Pool {
        Pool { lent: FxHashMap::default(), ..self.clone() }
    }

    /// A free storage that is provably large enough.
    pub fn take(&mut self, func: &mut Function, sizes: &mut Sizes, bytes: Sym) -> Option<Token> {
        if let Some(storage) = self.by_size.get_mut(&bytes).and_then(Vec::pop) {
            return Some((storage, bytes));
        }
        if let Some(size) = func.syms.as_int(bytes) {
            let most = size.saturating_mul(MAX_WASTE);
            let found = self.constants.range(size..=most.max(size)).next().map(|(&found, _)| found);
            if let Some(found) = found {
                return self.take_constant(found);
            }
        }
        let from = self.sizes.len().saturating_sub(MAX_COMPARED);
        for at in (from..self.sizes.len()).rev() {
            let size = self.sizes[at];
            let Some(storages) = self.by_size.get_mut(&size).filter(|s| !s.is_empty()) else {
                self.sizes.remove(at);
                continue;
            };
            if sizes.at_most(func, bytes, size) {
                return storages.pop().map(|storage| (storage, size));
            }
        }
        None
    }

    fn take_constant(&mut self, found: i64) -> Option<Token> {
        let list = self.constants.get_mut(&found)?;
        let storage = list.pop()?;
        if list.is_empty() {
            self.constants.remove(&found);
        }
        // The token keeps its own size for comparison with the next tensor.
        Some((storage, *self.constant_syms.get(&found)?))
    }

    /// Makes a storage unavailable until after the binding with that index.
    pub fn lend(&mut self, until: usize, token: Token) {
        if until != AT_RESULT {
            self.lent.entry(until).or_default().push(token);
        }
    }

    /// Returns what was lent until the binding with that index.
    pub fn release_after(&mut self, func: &Function, index: usize) {
        for (storage, size) in self.lent.remove(&index).into_iter().flatten() {
            match func.syms.as_int(size) {
                Some(bytes) => {
                    self.constant_syms.insert(bytes, size);
                    self.constants.entry(bytes).or_default().push(storage);
                }
                None => {
                    if !self.sizes.contains(&size) {
                        self.sizes.push(size);
                    }
                    self.by_size.entry(size).or_default().push(storage);
                }
            }
        }
    }
}
