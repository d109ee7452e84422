//! Calls of loop functions (`R.call_tir`), and the sizes of the loop function as terms over the caller's symbols.

use pliant_ir::op::CALL_TIR;
use pliant_ir::relax::type_lattice::prove_dims_equal;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::{self, PrimFunc, Ty, VarTy};
use pliant_ir::{DType, Sym, SymArena, SymVar};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The parts of an `R.call_tir` call.
#[derive(Clone, Debug)]
pub struct TirCall {
    /// The name of the loop function.
    pub callee: Arc<str>,
    /// The input tensors, in the order of the loop function's parameters.
    pub inputs: Vec<Expr>,
    /// The arguments for the scalar size parameters of the loop function. No input shape determines these sizes.
    pub tir_vars: Vec<Sym>,
    /// The type of each result.
    pub out_tys: Vec<Type>,
    /// Whether the call returns a tuple.
    pub tuple: bool,
}

impl TirCall {
    /// Splits an `R.call_tir` call whose inputs are a tuple literal into its parts; `None` for any other expression.
    pub fn of(func: &Function, value: Expr) -> Option<TirCall> {
        let ExprData::Call { callee: Callee::Op(CALL_TIR), args, .. } = func.expr(value) else {
            return None;
        };
        let args = func.list(*args);
        let ExprData::Global(name) = func.expr(*args.first()?) else { return None };
        let inputs = func.tuple_fields(*args.get(1)?)?.to_vec();
        let tir_vars = match args.get(2) {
            None => Vec::new(),
            Some(&e) => match func.expr(e) {
                ExprData::Shape(dims) => dims.to_vec(),
                _ => return None,
            },
        };
        let ty = func.expr_ty(value);
        let (out_tys, tuple) = match func.types.get(ty) {
            TypeData::Tuple(fields) => (fields.to_vec(), true),
            _ => (vec![ty], false),
        };
        Some(TirCall { callee: func.str(*name).clone(), inputs, tir_vars, out_tys, tuple })
    }
}

/// The sizes of a loop function as symbolic terms, which can be compared with the sizes at a call.
#[derive(Debug)]
pub struct PrimFuncSizes {
    arena: SymArena,
    bridge: SymBridge,
    /// The data type and the dims of each tensor parameter of the loop function.
    tensors: Vec<(DType, Vec<Sym>)>,
    /// The symbols that stand for the scalar parameters of the loop function, all of which are sizes.
    scalars: Vec<SymVar>,
}

impl PrimFuncSizes {
    /// Returns the sizes of a loop function as symbolic terms. `None` unless its parameters are compact tensors followed by int64
    /// sizes.
    pub fn of(f: &PrimFunc) -> Option<PrimFuncSizes> {
        let mut sizes = PrimFuncSizes {
            arena: SymArena::new(),
            bridge: SymBridge::new(),
            tensors: Vec::new(),
            scalars: Vec::new(),
        };
        for &p in &f.params {
            match f.var(p).ty {
                VarTy::Handle if sizes.scalars.is_empty() => {
                    let data = f.buffer(*f.buffer_map.get(&p)?);
                    if !data.strides.is_empty() || data.elem_offset.is_some() {
                        return None;
                    }
                    let dim = |&e: &tir::Expr| sizes.bridge.to_sym(f, &mut sizes.arena, e);
                    let dims = data.shape.iter().map(dim).collect::<Option<Vec<Sym>>>()?;
                    sizes.tensors.push((data.dtype, dims));
                }
                VarTy::Value(Ty::I64) => {
                    let sym = sizes.bridge.sym_var(f, &mut sizes.arena, p);
                    sizes.scalars.push(sym);
                }
                _ => return None,
            }
        }
        Some(sizes)
    }

    /// Maps the size variables of the loop function to their values at a call. `None` unless the types of all inputs and outputs
    /// of the call provably match the parameters.
    pub fn bind(&self, func: &mut Function, call: &TirCall) -> Option<FxHashMap<SymVar, Sym>> {
        let tys = call.inputs.iter().map(|&e| func.expr_ty(e)).chain(call.out_tys.iter().copied());
        let tys: Vec<Type> = tys.collect();
        if tys.len() != self.tensors.len() || call.tir_vars.len() != self.scalars.len() {
            return None;
        }
        let mut bound: FxHashMap<SymVar, Sym> =
            self.scalars.iter().copied().zip(call.tir_vars.iter().copied()).collect();
        let mut deferred = Vec::new();
        for (&ty, (dtype, expected)) in tys.iter().zip(&self.tensors) {
            let data = func.types.get(ty);
            let dims = data.dims().filter(|d| data.is_tensor() && d.len() == expected.len())?;
            if data.dtype() != Some(*dtype) {
                return None;
            }
            for (&actual, &expected) in dims.iter().zip(expected) {
                match self.arena.as_var(expected) {
                    Some(v) if !bound.contains_key(&v) => drop(bound.insert(v, actual)),
                    _ => deferred.push((actual, expected)),
                }
            }
        }
        for (actual, expected) in deferred {
            let expected = self.import_size(func, expected, &bound)?;
            if !prove_dims_equal(func, actual, expected).is_yes() {
                return None;
            }
        }
        Some(bound)
    }

    /// Converts a size of the loop function to a term of the caller; `None` if a variable in it is not bound.
    fn import_size(
        &self,
        func: &mut Function,
        s: Sym,
        bound: &FxHashMap<SymVar, Sym>,
    ) -> Option<Sym> {
        let is_bound = self.arena.free_vars(s).iter().all(|v| bound.contains_key(v));
        is_bound.then(|| func.syms.import(&self.arena, s, &mut |_, v| bound[&v]))
    }

    /// Returns the size variable `var` of the loop function as a term of the caller; `None` if it is not known. `bound` is the
    /// result of [`bind`](Self::bind).
    pub fn value(&self, var: tir::Var, bound: &FxHashMap<SymVar, Sym>) -> Option<Sym> {
        bound.get(&self.bridge.known_sym(var)?).copied()
    }
}
