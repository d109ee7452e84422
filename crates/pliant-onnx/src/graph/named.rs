//! Names for sizes that have grown large: a symbol of the run stands for a term from there on, so that a chain of nodes
//! does not write out at each what all before it have computed.

use pliant_ir::DType;
use pliant_ir::relax::{TensorShape, Type, TypeData, Var};
use pliant_sym::Sym;
use rustc_hash::FxHashMap;

use super::Importer;
use crate::value::Value;

/// Terms that have so many parts, written out, get a name.
const MOST_PARTS: usize = 128;

/// The names given so far.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// For each term its name, and how many blocks were open where it got it.
    names: FxHashMap<Sym, (Sym, usize)>,
    blocks: usize,
}

impl Named {
    fn get(&self, term: Sym) -> Option<Sym> {
        self.names.get(&term).map(|&(name, _)| name)
    }

    fn give(&mut self, term: Sym, name: Sym) {
        self.names.insert(term, (name, self.blocks));
    }
}

impl Importer<'_> {
    /// What follows is a block or a function of its own, whose names nobody sees behind it.
    pub(crate) fn open_block(&mut self) {
        self.named.blocks += 1;
    }

    /// Ends it.
    pub(crate) fn close_block(&mut self) {
        self.named.blocks -= 1;
        let open = self.named.blocks;
        self.named.names.retain(|_, (_, at)| *at <= open);
    }

    fn is_large(&self, sym: Sym) -> bool {
        self.builder.func().syms.written_size(sym, MOST_PARTS) >= MOST_PARTS
    }

    /// The type that a tensor gets, if it is not its own: with symbols of the run in the place of large dims and of those
    /// that are not known.
    pub(super) fn named_dims(&mut self, var: Var, hint: &str) -> Option<Type> {
        let func = self.builder.func();
        let TypeData::Tensor { shape, dtype } = func.var_ty(var).clone() else { return None };
        let dims: Vec<Option<Sym>> = match shape {
            TensorShape::Rank(rank) => vec![None; rank as usize],
            // A shape that is a variable must not outlive the block of its variable.
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
                Some(dim) => self.named.get(dim).unwrap_or_else(|| {
                    let name = self.new_name(&format!("{hint}_{axis}"));
                    self.named.give(dim, name);
                    name
                }),
                None => self.new_name(&format!("{hint}_{axis}")),
            });
        }
        Some(self.builder.func_mut().intern(TypeData::tensor(named, dtype)))
    }

    fn new_name(&mut self, hint: &str) -> Sym {
        let func = self.builder.func_mut();
        let name = func.fresh_sym(hint);
        func.syms.var(name)
    }

    /// A value with names for the large numbers in it.
    pub(super) fn with_names(&mut self, value: Value, hint: &str) -> Value {
        let Value::Syms(mut t) = value else { return value };
        for elem in &mut t.elems {
            if self.is_large(*elem) && !self.builder.func().syms.is_predicate(*elem) {
                *elem = match self.named.get(*elem) {
                    Some(name) => name,
                    None => self.named_number(*elem, hint),
                };
            }
        }
        Value::Syms(t)
    }

    /// A number by the names of two sizes, what it is above 0 and what it is below: symbols are never negative.
    fn named_number(&mut self, number: Sym, hint: &str) -> Sym {
        let syms = &mut self.builder.func_mut().syms;
        let (zero, negated) = (syms.int(0), syms.neg(number));
        let parts = [syms.max(number, zero), syms.max(negated, zero)];
        let [above, below] = parts.map(|part| {
            if self.builder.func().syms.as_int(part).is_some() {
                return part;
            }
            let name = self.new_name(hint);
            let func = self.builder.func_mut();
            let value = func.int_value(part, DType::Int64);
            let ty = func.intern(TypeData::Prim { dtype: DType::Int64, value: Some(name) });
            self.builder.match_cast(value, ty, hint);
            name
        });
        let whole = self.builder.func_mut().syms.sub(above, below);
        self.named.give(number, whole);
        whole
    }
}
