//! Decides which dims of a node's results become new symbols.
//!
//! - Unknown dims: if only the rank of a result is known, as for the data-dependent results of `NonZero` and `Unique`, every dim
//!   becomes a new symbol (`type_with_size_symbols`). `Importer::bind` in `constants_and_outputs.rs` inserts the `match_cast` that
//!   defines the symbols at run time. If the rank is unknown, no symbols are created.
//! - Large size expressions: without new symbols for them, each node of a chain would repeat the size computations of all previous
//!   nodes. `type_with_size_symbols` replaces those in types, `with_size_symbols` those in folded shape computations.
//!
//! For programs that do not come from ONNX, the pass `MatchUnknownShapes` of `pliant-opt` names unknown dims.

use pliant_ir::DType;
use pliant_ir::relax::{TensorShape, Type, TypeData, Var};
use pliant_sym::Sym;
use rustc_hash::FxHashMap;

use super::Importer;
use crate::imported_value::Value;

/// Number of nodes of a symbolic size expression from which on the import replaces the expression by a new symbol.
const MAX_TERM_NODES: usize = 128;

/// The symbols that have been introduced in place of large size expressions.
#[derive(Debug, Default)]
pub(super) struct SizeSymbols {
    /// For each replaced term, the symbol that replaces it, and the number of nested blocks and functions that were open when the
    /// symbol was created.
    symbols: FxHashMap<Sym, (Sym, usize)>,
    blocks: usize,
}

impl SizeSymbols {
    fn get(&self, term: Sym) -> Option<Sym> {
        self.symbols.get(&term).map(|&(name, _)| name)
    }

    fn insert(&mut self, term: Sym, name: Sym) {
        self.symbols.insert(term, (name, self.blocks));
    }
}

impl Importer<'_> {
    /// Starts a nested block or function. Symbols created inside it are not visible after it.
    pub(crate) fn open_block(&mut self) {
        self.size_symbols.blocks += 1;
    }

    /// Ends a nested block or function, and drops the symbols that were created inside it.
    pub(crate) fn close_block(&mut self) {
        self.size_symbols.blocks -= 1;
        let open = self.size_symbols.blocks;
        self.size_symbols.symbols.retain(|_, (_, at)| *at <= open);
    }

    /// Whether the expression of a symbolic size has so many nodes that the import replaces it by a new symbol.
    fn is_large(&self, sym: Sym) -> bool {
        self.builder.func().syms.tree_size(sym, MAX_TERM_NODES) >= MAX_TERM_NODES
    }

    /// The tensor type of a variable, in which unknown dims and dims with large expressions are replaced by new symbols. `None` if
    /// nothing changes.
    pub(super) fn type_with_size_symbols(&mut self, var: Var, hint: &str) -> Option<Type> {
        let func = self.builder.func();
        let TypeData::Tensor { shape, dtype } = func.var_ty(var).clone() else { return None };
        let dims: Vec<Option<Sym>> = match shape {
            TensorShape::Rank(rank) => vec![None; rank as usize],
            // A shape variable is only valid in the block that defines it.
            TensorShape::Var(_) => {
                let shape = TensorShape::Unknown;
                return Some(self.builder.func_mut().intern(TypeData::Tensor { shape, dtype }));
            }
            TensorShape::Dims(dims) if dims.iter().any(|&d| self.is_large(d)) => {
                dims.iter().copied().map(Some).collect()
            }
            _ => return None,
        };
        let mut named = Vec::with_capacity(dims.len());
        for (axis, dim) in dims.into_iter().enumerate() {
            named.push(match dim {
                Some(dim) if !self.is_large(dim) => dim,
                Some(dim) => self.size_symbols.get(dim).unwrap_or_else(|| {
                    let name = self.fresh_size_symbol(&format!("{hint}_{axis}"));
                    self.size_symbols.insert(dim, name);
                    name
                }),
                None => self.fresh_size_symbol(&format!("{hint}_{axis}")),
            });
        }
        Some(self.builder.func_mut().intern(TypeData::tensor(named, dtype)))
    }

    fn fresh_size_symbol(&mut self, hint: &str) -> Sym {
        let func = self.builder.func_mut();
        let name = func.fresh_sym(hint);
        func.syms.var(name)
    }

    /// Replaces the elements of a shape computation that are large expressions by symbols. Returns other values unchanged.
    pub(super) fn with_size_symbols(&mut self, value: Value, hint: &str) -> Value {
        let Value::Symbolic(mut t) = value else { return value };
        for elem in &mut t.elems {
            if self.is_large(*elem) && !self.builder.func().syms.is_predicate(*elem) {
                *elem = match self.size_symbols.get(*elem) {
                    Some(name) => name,
                    None => self.signed_size_symbol(*elem, hint),
                };
            }
        }
        Value::Symbolic(t)
    }

    /// Represents a number that may be negative as the difference of two new symbols, its positive and its negative part, because
    /// symbols themselves are never negative.
    fn signed_size_symbol(&mut self, number: Sym, hint: &str) -> Sym {
        let syms = &mut self.builder.func_mut().syms;
        let (zero, negated) = (syms.int(0), syms.neg(number));
        let parts = [syms.max(number, zero), syms.max(negated, zero)];
        let [above, below] = parts.map(|part| {
            if self.builder.func().syms.as_int(part).is_some() {
                return part;
            }
            let name = self.fresh_size_symbol(hint);
            let func = self.builder.func_mut();
            let value = func.int_value(part, DType::Int64);
            let ty = func.intern(TypeData::Prim { dtype: DType::Int64, value: Some(name) });
            self.builder.match_cast(value, ty, hint);
            name
        });
        let whole = self.builder.func_mut().syms.sub(above, below);
        self.size_symbols.insert(number, whole);
        whole
    }
}
