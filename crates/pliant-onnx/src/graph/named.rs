//! Names for sizes that have grown large: a symbol of the run stands for a term from there on, so that a chain of nodes
//! does not write out at each what all before it have computed.

use pliant_ir::DType;
use pliant_ir::relax::{TensorShape, Type, TypeData, Var};
use pliant_sym::Sym;

use super::Importer;
use crate::value::Value;

/// Terms that have so many parts, written out, get a name.
const MOST_PARTS: usize = 128;

impl Importer<'_> {
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
                dims.iter().map(|&d| Some(d).filter(|&d| !self.is_large(d))).collect()
            }
            _ => return None,
        };
        let func = self.builder.func_mut();
        let named = dims.into_iter().enumerate().map(|(axis, dim)| {
            dim.unwrap_or_else(|| {
                let sym = func.fresh_sym(&format!("{hint}_{axis}"));
                func.syms.var(sym)
            })
        });
        let named: Vec<Sym> = named.collect();
        Some(func.intern(TypeData::tensor(named, dtype)))
    }

    /// A value with names for the large numbers in it.
    pub(super) fn with_names(&mut self, value: Value, hint: &str) -> Value {
        let Value::Syms(mut t) = value else { return value };
        for elem in &mut t.elems {
            if self.is_large(*elem) && !self.builder.func().syms.is_predicate(*elem) {
                *elem = self.named_number(*elem, hint);
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
            let func = self.builder.func_mut();
            let name = func.fresh_sym(hint);
            let name = func.syms.var(name);
            let value = func.int_value(part, DType::Int64);
            let ty = func.intern(TypeData::Prim { dtype: DType::Int64, value: Some(name) });
            self.builder.match_cast(value, ty, hint);
            name
        });
        self.builder.func_mut().syms.sub(above, below)
    }
}
