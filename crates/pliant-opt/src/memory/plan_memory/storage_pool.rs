//! The pool of storages during memory planning of a sequence: free storages, and storages that are in use until a later binding.

use std::collections::BTreeMap;

use pliant_ir::Sym;
use pliant_ir::relax::{Expr, Function};
use pliant_sym::{Analyzer, Facts};
use rustc_hash::FxHashMap;

use crate::analysis::liveness::AT_RESULT;

/// Maximum ratio of the size of a storage to the size of a tensor in it, if both are constant.
const MAX_SIZE_RATIO: i64 = 16;

/// Maximum number of non-constant sizes of free storages that are compared with the size of a tensor, if no free storage has
/// exactly the size of the tensor. Each comparison requires a proof.
const MAX_COMPARED_SIZES: usize = 16;

/// A storage with its size in bytes.
pub(super) type SizedStorage = (Expr, Sym);

/// Compares the symbolic sizes of a function, and caches the results.
#[derive(Default)]
pub(super) struct SizeOrder {
    facts: Facts,
    has_bounds: bool,
    /// Caches, for pairs of sizes, whether the first size is provably at most the second.
    at_most_cache: FxHashMap<(Sym, Sym), bool>,
}

impl SizeOrder {
    /// Creates a comparer of the sizes of a function. `bounds` contains upper bounds of symbols by name, such as `{"n": 1024}`.
    pub fn of(func: &Function, bounds: &FxHashMap<&str, i64>) -> SizeOrder {
        let mut sizes = SizeOrder { has_bounds: !bounds.is_empty(), ..SizeOrder::default() };
        for var in func.syms.vars() {
            let bound = bounds.get(func.syms.name(var)).copied();
            sizes.facts.assume_range(var, Some(0), bound);
        }
        sizes
    }

    /// Returns the maximum of a size as a constant if the upper bounds of symbols imply one; otherwise the size itself.
    pub fn max_size(&self, func: &mut Function, size: Sym) -> Sym {
        if !self.has_bounds {
            return size;
        }
        let bound = Analyzer::new(&mut func.syms, &self.facts).const_int_bound(size).hi();
        bound.map_or(size, |bytes| func.syms.int(bytes))
    }

    fn at_most(&mut self, func: &mut Function, a: Sym, b: Sym) -> bool {
        if let Some(&result) = self.at_most_cache.get(&(a, b)) {
            return result;
        }
        // Sizes increase with each of their symbols. A symbol in `a` that `b` does not contain can make `a` larger than `b`.
        let other_vars = func.syms.free_vars(b);
        let may_be_smaller = func.syms.free_vars(a).iter().all(|v| other_vars.contains(v));
        let proof =
            may_be_smaller && Analyzer::new(&mut func.syms, &self.facts).prove_le(a, b).is_yes();
        self.at_most_cache.insert((a, b), proof);
        proof
    }
}

/// The storages that tensors of one sequence occupy or may reuse.
#[derive(Clone, Default)]
pub(super) struct StoragePool {
    /// The free storages of non-constant size, by size in bytes.
    by_size: FxHashMap<Sym, Vec<Expr>>,
    /// The non-constant sizes in bytes for which a storage has become free, without duplicates, the oldest first.
    sizes: Vec<Sym>,
    /// The free storages of constant size, by size in bytes.
    constants: BTreeMap<i64, Vec<Expr>>,
    constant_syms: FxHashMap<i64, Sym>,
    /// The storages in use, by the index of the binding after which they become free.
    reserved: FxHashMap<usize, Vec<SizedStorage>>,
}

impl StoragePool {
    /// Creates the pool for a nested branch, with a copy of the currently free storages. The copy does not affect this pool, so
    /// these storages are all free again after the branch.
    pub fn for_branch(&self) -> StoragePool {
        StoragePool { reserved: FxHashMap::default(), ..self.clone() }
    }

    /// Removes a free storage that is provably large enough for `bytes` from the pool, and returns it. `None` if there is none.
    pub fn take(
        &mut self,
        func: &mut Function,
        sizes: &mut SizeOrder,
        bytes: Sym,
    ) -> Option<SizedStorage> {
        if let Some(storage) = self.by_size.get_mut(&bytes).and_then(Vec::pop) {
            return Some((storage, bytes));
        }
        if let Some(size) = func.syms.as_int(bytes) {
            let max_storage_size = size.saturating_mul(MAX_SIZE_RATIO);
            let storage_size = self
                .constants
                .range(size..=max_storage_size.max(size))
                .next()
                .map(|(&storage_size, _)| storage_size);
            if let Some(storage_size) = storage_size {
                return self.take_constant(storage_size);
            }
        }
        let from = self.sizes.len().saturating_sub(MAX_COMPARED_SIZES);
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

    fn take_constant(&mut self, storage_size: i64) -> Option<SizedStorage> {
        let list = self.constants.get_mut(&storage_size)?;
        let storage = list.pop()?;
        if list.is_empty() {
            self.constants.remove(&storage_size);
        }
        // The storage keeps its own size, for comparison with later tensors.
        Some((storage, *self.constant_syms.get(&storage_size)?))
    }

    /// Reserves a storage until after the binding with index `until`.
    pub fn reserve(&mut self, until: usize, sized_storage: SizedStorage) {
        if until != AT_RESULT {
            self.reserved.entry(until).or_default().push(sized_storage);
        }
    }

    /// Frees the storages that were reserved until the binding with this index.
    pub fn release_after(&mut self, func: &Function, index: usize) {
        for (storage, size) in self.reserved.remove(&index).into_iter().flatten() {
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
