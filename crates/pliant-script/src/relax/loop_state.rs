//! The state that a loop passes from one iteration to the next, and the inference of its types.
//!
//! Initially, the state has the types of the initial values. If an iteration produces other types,
//! they are widened: a dim that changes becomes a symbol defined in the body. The body is parsed
//! again with the wider types until they are stable.

use pliant_ir::relax::type_lattice::{
    erase_to_well_defined, is_subtype, prove_dims_equal, type_syms,
};
use pliant_ir::relax::{Expr as IrExpr, TensorShape, Type, TypeData};
use pliant_ir::{Sym, SymVar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::FuncParser;
use super::while_loop::ParseBody;
use crate::python::ast::Range;
use crate::python::with_stack_segment;
use crate::script_errors::{ErrorKind, Reported, Res};

/// Maximum number of times that the loop bodies of one function are parsed again. An inner loop is
/// parsed again each time its outer loop is parsed.
const MAX_REPARSES: u32 = 2000;

/// The state of a loop: its names, initial values and types.
pub(super) struct State<'s> {
    pub names: Vec<&'s str>,
    /// The initial values of the state, before the first iteration.
    pub inits: Vec<IrExpr>,
    pub types: Vec<Type>,
    /// The symbols that the loop body defines and that occur in the types of the loop state. Symbols of the enclosing function are
    /// not included.
    pub own: FxHashSet<SymVar>,
}

impl<'s> FuncParser<'_, 's> {
    /// Parses the loop body as a function, repeatedly with wider types until the types of the state are stable.
    pub(super) fn body_with_stable_types(
        &mut self,
        state: &mut State<'s>,
        range: Range,
        read: ParseBody<'_, Self>,
    ) -> Res<IrExpr> {
        loop {
            let mark = self.b.mark_names();
            let names = state.names.clone();
            let func = with_stack_segment(|| self.loop_function(&names, &state.types, read))?;
            let results = self.results(func, state.types.len(), range)?;
            let mut wider = Vec::with_capacity(results.len());
            for ((&ty, &result), name) in state.types.iter().zip(&results).zip(&names) {
                wider.push(self.widen(ty, result, name, &mut state.own));
            }
            if wider == state.types {
                return Ok(func);
            }
            state.types = wider;
            self.b.release_names(mark);
            self.reparses += 1;
            if self.reparses > MAX_REPARSES {
                return Err(self.error_help(
                    ErrorKind::Unsupported,
                    range,
                    "loops are nested too deeply to infer the types of their state",
                    "move the inner loops into separate functions",
                ));
            }
        }
    }

    /// The types of the `count` state values after an iteration: the result types of the body
    /// function.
    fn results(&mut self, body: IrExpr, count: usize, range: Range) -> Res<Vec<Type>> {
        let TypeData::Callable { ret, .. } = *self.ty_of(body) else { return Err(Reported) };
        match self.b.func().types.get(ret) {
            _ if count == 1 => Ok(vec![ret]),
            TypeData::Tuple(fields) if fields.len() == count => Ok(fields.to_vec()),
            TypeData::Any => Ok(vec![ret; count]),
            _ => {
                let ty = self.ty_text(ret);
                let message = format!(
                    "the body of the loop must return the {count} state values as a tuple, but returns {ty}"
                );
                Err(self.error(ErrorKind::Type, range, message))
            }
        }
    }

    /// The types of the state in which the symbols of the body have fresh names, and the map from old to new symbols.
    pub(super) fn renamed(&mut self, state: &State<'s>) -> (Vec<Type>, FxHashMap<SymVar, Sym>) {
        self.renamed_types(&state.types, &state.own)
    }

    /// The given types in which the symbols in `own` have fresh names, and the map from old to new symbols.
    pub(super) fn renamed_types(
        &mut self,
        types: &[Type],
        own: &FxHashSet<SymVar>,
    ) -> (Vec<Type>, FxHashMap<SymVar, Sym>) {
        let func = self.b.func_mut();
        let mut map = FxHashMap::default();
        for &ty in types {
            for v in type_syms(func, ty) {
                let sym = if own.contains(&v) {
                    if map.contains_key(&v) {
                        continue;
                    }
                    let name = func.syms.name(v).to_string();
                    let new = func.fresh_sym(&name);
                    func.syms.var(new)
                } else {
                    func.syms.var(v)
                };
                map.insert(v, sym);
            }
        }
        let sym = |v: SymVar| map.get(&v).copied();
        let types = types.iter();
        let types = types.map(|&ty| erase_to_well_defined(func, ty, &sym, &|v| Some(v))).collect();
        (types, map)
    }

    /// The type that covers both the initial type `ty` and the type `result` after an iteration. Dims that differ become new
    /// symbols of the body.
    fn widen(&mut self, ty: Type, result: Type, name: &str, own: &mut FxHashSet<SymVar>) -> Type {
        if ty == result || is_subtype(self.b.func_mut(), result, ty).is_yes() {
            return ty;
        }
        let types = &self.b.func().types;
        let data = match (types.get(ty).clone(), types.get(result).clone()) {
            (TypeData::Tensor { shape, dtype }, TypeData::Tensor { dtype: e, .. }) => {
                let dtype = dtype.filter(|&d| e == Some(d));
                let rank = self.b.func().rank_of(ty);
                let shape = match rank {
                    Some(_) if rank == self.b.func().rank_of(result) => match shape {
                        TensorShape::Dims(dims) => {
                            TensorShape::Dims(self.widen_dims(&dims, result, name, own))
                        }
                        other => other,
                    },
                    _ => TensorShape::Unknown,
                };
                TypeData::Tensor { shape, dtype }
            }
            (TypeData::Shape { dims: Some(dims), ndim }, TypeData::Shape { ndim: m, .. })
                if ndim == m =>
            {
                TypeData::Shape { dims: Some(self.widen_dims(&dims, result, name, own)), ndim }
            }
            (TypeData::Shape { .. }, TypeData::Shape { .. }) => {
                TypeData::Shape { dims: None, ndim: None }
            }
            (TypeData::Prim { dtype, value }, TypeData::Prim { dtype: e, .. }) if dtype == e => {
                let known = value.filter(|&v| self.is_own(v, own));
                let value = match known {
                    None if dtype.is_integer() => Some(self.own_sym(name, own)),
                    known => known,
                };
                TypeData::Prim { dtype, value }
            }
            (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
                let fields = x.iter().zip(&y);
                TypeData::Tuple(fields.map(|(&a, &b)| self.widen(a, b, name, own)).collect())
            }
            (TypeData::Callable { .. }, TypeData::Callable { .. }) => {
                return pliant_ir::relax::type_lattice::lca(self.b.func_mut(), ty, result);
            }
            _ => TypeData::Any,
        };
        self.intern(data)
    }

    fn widen_dims(
        &mut self,
        dims: &[Sym],
        result: Type,
        name: &str,
        own: &mut FxHashSet<SymVar>,
    ) -> Box<[Sym]> {
        let after = self.b.func().types.get(result).dims().map(<[Sym]>::to_vec);
        let mut out = Vec::with_capacity(dims.len());
        for (i, &dim) in dims.iter().enumerate() {
            let same = match &after {
                Some(after) => prove_dims_equal(self.b.func_mut(), dim, after[i]).is_yes(),
                None => false,
            };
            out.push(if same || self.is_own(dim, own) {
                dim
            } else {
                self.own_sym(&format!("{name}_{i}"), own)
            });
        }
        out.into()
    }

    fn is_own(&self, sym: Sym, own: &FxHashSet<SymVar>) -> bool {
        self.b.func().syms.as_var(sym).is_some_and(|v| own.contains(&v))
    }

    fn own_sym(&mut self, name: &str, own: &mut FxHashSet<SymVar>) -> Sym {
        let func = self.b.func_mut();
        let var = func.fresh_sym(name);
        own.insert(var);
        func.syms.var(var)
    }
}
