//! Lowers a `Primitive` function, which consists of calls of loop functions, to one loop function.

use std::sync::Arc;

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::{self, Buffer, PrimFunc};
use pliant_ir::{DType, IRModule, Sym, SymVar};
use rustc_hash::FxHashMap;

use super::merge_loop_functions::{FunctionMerger, single_var_dims};
use crate::analysis::fusion_pattern_kind::is_mergeable;
use crate::analysis::loop_function_calls::{PrimFuncSizes, TirCall};

/// A parameter of the `Primitive` function, that is, of the outlined group of calls that is lowered.
pub(super) struct MergedParam {
    /// Whether the parameter is a tensor. Otherwise it is a shape that passes sizes.
    pub is_tensor: bool,
    /// For each dim of the parameter, its symbol; `None` for dims that are not a single symbol.
    pub dims: Vec<Option<SymVar>>,
}

/// The loop function to which a `Primitive` function (an outlined group of calls of loop functions) is lowered.
pub(super) struct MergedFunction {
    /// The merged loop function.
    pub prim: PrimFunc,
    pub params: Vec<MergedParam>,
    /// The symbols that stand for the scalar parameters of the merged loop function.
    pub sizes: Vec<SymVar>,
    /// The number of output tensors of the merged loop function.
    pub outputs: usize,
    /// Whether the `Primitive` function returns a tuple instead of a single tensor.
    pub tuple: bool,
}

/// Lowers a function that contains only calls of loop functions. `None` if the calls cannot be merged.
pub(super) fn lower(func: &Arc<Function>, module: &IRModule) -> Option<MergedFunction> {
    // Proofs add terms to the function. If lowering fails, the original must stay unchanged.
    let mut func = Function::clone(func);
    let bindings = plain_bindings(&func)?;
    let (results, tuple) = result_tensors(&func)?;
    let params = param_dims(&func)?;
    let mut lowering = Lowering {
        merger: FunctionMerger::new(),
        bridge: SymBridge::new(),
        buffers: FxHashMap::default(),
        sizes: FxHashMap::default(),
    };
    let mut tensors = Vec::new();
    for (&p, param) in func.params().to_vec().iter().zip(&params) {
        if param.is_tensor {
            tensors.push(lowering.add_param(&func, p)?);
        }
    }
    let outputs = lowering.add_outputs(&func, &results, &bindings)?;
    tensors.extend(outputs.values().copied());
    for b in &bindings {
        lowering.merge_binding(&mut func, b, &outputs, module)?;
    }
    let outputs_are_computed =
        outputs.keys().all(|p| lowering.buffers.contains_key(p) && !func.params().contains(&p.0));
    let defined = single_var_dims(&lowering.merger.f, &tensors);
    let mut sizes: Vec<(SymVar, tir::Var)> = func
        .syms
        .vars()
        .filter_map(|s| Some((s, lowering.bridge.var_of(s)?)))
        .filter(|(_, v)| !defined.contains(v))
        .collect();
    sizes.sort_by_key(|s| s.0);
    let vars: Vec<tir::Var> = sizes.iter().map(|s| s.1).collect();
    let prim = lowering.merger.finish(&tensors, &vars);
    let well_formed = pliant_ir::tir::verify::verify_prim_func(&prim).is_empty();
    debug_assert!(well_formed, "{:?}", pliant_ir::tir::verify::verify_prim_func(&prim));
    (outputs_are_computed && well_formed).then(|| MergedFunction {
        prim,
        params,
        sizes: sizes.into_iter().map(|s| s.0).collect(),
        outputs: results.len(),
        tuple,
    })
}

/// Returns all bindings of a function's body; `None` if one of them is a `match_cast`.
fn plain_bindings(func: &Function) -> Option<Vec<Binding>> {
    let blocks = &func.seq(func.body()).blocks;
    let all: Vec<Binding> =
        blocks.iter().flat_map(|&b| func.block(b).bindings.iter().copied()).collect();
    all.iter().all(|b| b.cast.is_none()).then_some(all)
}

/// Identifies a tensor in the `Primitive` function that is lowered: (variable, index of the field if the variable is a tuple,
/// otherwise 0).
type TensorKey = (Var, u32);

/// Returns (tensors that the function returns, whether it returns a tuple). `None` if a tensor is returned twice.
fn result_tensors(func: &Function) -> Option<(Vec<TensorKey>, bool)> {
    let result = func.seq(func.body()).result;
    let (fields, mut tuple): (&[Expr], bool) = match func.tuple_fields(result) {
        Some(fields) => (fields, true),
        None => (std::slice::from_ref(&result), false),
    };
    let mut out = Vec::new();
    for &field in fields {
        let ExprData::Var(v) = *func.expr(field) else { return None };
        match func.var_ty(v) {
            TypeData::Tuple(fields) if !tuple => {
                out.extend((0..fields.len() as u32).map(|i| (v, i)));
                tuple = true;
            }
            TypeData::Tensor { .. } => out.push((v, 0)),
            _ => return None,
        }
    }
    let mut sorted = out.clone();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == out.len() && !out.is_empty()).then_some((out, tuple))
}

fn param_dims(func: &Function) -> Option<Vec<MergedParam>> {
    func.params()
        .iter()
        .map(|&p| {
            let data = func.var_ty(p);
            let dims = data.dims()?.iter().map(|&d| func.syms.as_var(d)).collect();
            match data {
                TypeData::Tensor { dtype: Some(_), .. } => {
                    Some(MergedParam { is_tensor: true, dims })
                }
                TypeData::Shape { .. } => Some(MergedParam { is_tensor: false, dims }),
                _ => None,
            }
        })
        .collect()
}

struct Lowering {
    merger: FunctionMerger,
    bridge: SymBridge,
    buffers: FxHashMap<TensorKey, Buffer>,
    sizes: FxHashMap<Arc<str>, PrimFuncSizes>,
}

impl Lowering {
    fn tir_shape(&mut self, func: &Function, ty: Type) -> Option<(Vec<tir::Expr>, DType)> {
        let data = func.types.get(ty);
        let (dims, dtype): (&[Sym], _) = (data.dims().filter(|_| data.is_tensor())?, data.dtype()?);
        let size = |&d: &Sym| self.bridge.to_size(&func.syms, &mut self.merger.f, d);
        Some((dims.iter().map(size).collect(), dtype))
    }

    fn add_param(&mut self, func: &Function, p: Var) -> Option<Buffer> {
        let (shape, dtype) = self.tir_shape(func, func.var(p).ty)?;
        let buffer = self.merger.f.compact_buffer(func.var(p).name.clone(), shape, dtype);
        self.buffers.insert((p, 0), buffer);
        Some(buffer)
    }

    /// Creates a buffer of the merged loop function for each result. Returns the buffers by the tensors that are stored in them. A
    /// result that is bound to a field of a call's result tuple has the key (tuple variable, field). `None` if two results are the
    /// same tensor.
    fn add_outputs(
        &mut self,
        func: &Function,
        results: &[TensorKey],
        bindings: &[Binding],
    ) -> Option<indexmap::IndexMap<TensorKey, Buffer>> {
        let mut field_sources: FxHashMap<Var, TensorKey> = FxHashMap::default();
        for b in bindings {
            if let ExprData::TupleGetItem(tuple, i) = func.expr(b.value)
                && let ExprData::Var(t) = func.expr(*tuple)
            {
                field_sources.insert(b.var, (*t, *i));
            }
        }
        let mut out = indexmap::IndexMap::new();
        for &(var, field) in results {
            let ty = field_ty(func, func.var(var).ty, field)?;
            let (shape, dtype) = self.tir_shape(func, ty)?;
            let buffer = self.merger.f.compact_buffer(func.var(var).name.clone(), shape, dtype);
            let key = field_sources.get(&var).copied().unwrap_or((var, field));
            if out.insert(key, buffer).is_some() {
                return None;
            }
        }
        Some(out)
    }

    fn merge_binding(
        &mut self,
        func: &mut Function,
        b: &Binding,
        outputs: &indexmap::IndexMap<TensorKey, Buffer>,
        module: &IRModule,
    ) -> Option<()> {
        if let ExprData::TupleGetItem(tuple, i) = func.expr(b.value) {
            let ExprData::Var(t) = func.expr(*tuple) else { return None };
            let buffer = *self.buffers.get(&(*t, *i))?;
            self.buffers.insert((b.var, 0), buffer);
            return Some(());
        }
        let call = TirCall::of(func, b.value)?;
        let prim = module.get(&call.callee)?.as_prim().filter(|f| is_mergeable(f))?;
        if !self.sizes.contains_key(&call.callee) {
            self.sizes.insert(call.callee.clone(), PrimFuncSizes::of(prim)?);
        }
        let sizes_at_call = self.sizes[&call.callee].bind(func, &call)?;
        let mut tensors = Vec::with_capacity(call.inputs.len() + call.out_tys.len());
        for &input in &call.inputs {
            let ExprData::Var(v) = func.expr(input) else { return None };
            tensors.push(*self.buffers.get(&(*v, 0))?);
        }
        for (i, &ty) in call.out_tys.iter().enumerate() {
            let key = (b.var, i as u32);
            let buffer = match outputs.get(&key) {
                Some(&buffer) => buffer,
                None => {
                    let (shape, dtype) = self.tir_shape(func, ty)?;
                    let name = func.var(b.var).name.clone();
                    self.merger.add_local_buffer(&name, shape, dtype)
                }
            };
            self.buffers.insert(key, buffer);
            tensors.push(buffer);
        }
        let sizes = &self.sizes[&call.callee];
        let mut vars = FxHashMap::default();
        for var in prim.var_ids() {
            if let Some(value) = sizes.value(var, &sizes_at_call) {
                vars.insert(var, self.bridge.to_expr(&func.syms, &mut self.merger.f, value));
            }
        }
        let handles = prim.params.iter().filter_map(|p| prim.buffer_map.get(p)).copied();
        self.merger.append_function(prim, vars, handles.zip(tensors).collect());
        Some(())
    }
}

fn field_ty(func: &Function, ty: Type, field: u32) -> Option<Type> {
    match func.types.get(ty) {
        TypeData::Tuple(fields) => fields.get(field as usize).copied(),
        _ => Some(ty),
    }
}
