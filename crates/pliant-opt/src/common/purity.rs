//! Purity after a pass has made effects explicit.
//!
//! A pure function stays pure to its callers if it only writes memory that it allocated: the
//! attribute `relax.force_pure` states that its effects do not count. If a function writes to its
//! arguments, lowering removes the calls that mark this; then every function of the module
//! becomes impure.

use std::sync::Arc;

use pliant_ir::attr_names::FORCE_PURE;
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::rewrite::{
    reachable_funcs, reachable_seqs, set_flat_bindings, take_flat_bindings,
};
use rustc_hash::FxHashMap;

/// Turns every sequence into one plain block.
pub(crate) fn flatten_blocks(func: &mut Function) {
    for seq in reachable_seqs(func) {
        let bindings = take_flat_bindings(func, seq);
        for binding in &bindings {
            func.var_mut(binding.var).dataflow = false;
        }
        set_flat_bindings(func, seq, bindings);
    }
}

/// Allows calls whose effects are not visible outside the function: every sequence becomes one
/// plain block, and a pure function stays pure to its callers. Lowering passes that add such calls
/// do this themselves, so that each pass can run alone.
pub(crate) fn allow_hidden_effects(func: &mut Function) {
    flatten_blocks(func);
    force_pure(func);
}

/// Declares that the effects of a function, and of its local functions, do not count. Does nothing
/// if all are already impure.
pub fn force_pure(func: &mut Function) {
    if reachable_funcs(func).iter().any(|&id| func.func(id).pure) {
        func.attrs.insert(FORCE_PURE.into(), AttrValue::Bool(true));
    }
}

/// Makes every graph function of a module, including local ones, impure, updates the types of
/// function values accordingly, and turns dataflow blocks into plain blocks.
pub fn make_all_impure(module: &mut IRModule) {
    for func in module.functions.values_mut() {
        if let BaseFunc::Relax(func) = func {
            let func = Arc::make_mut(func);
            flatten_blocks(func);
            for id in reachable_funcs(func) {
                func.func_mut(id).pure = false;
            }
            ImpureTypes::default().function(func);
        }
    }
}

/// Maps each type to its version in which every function is impure.
#[derive(Default)]
struct ImpureTypes(FxHashMap<Type, Type>);

impl ImpureTypes {
    /// Changes the types of all variables, expressions and results, and the types in calls.
    fn function(&mut self, func: &mut Function) {
        for v in func.var_ids() {
            let ty = self.impure_version(func, func.var(v).ty);
            func.var_mut(v).ty = ty;
        }
        for id in 0..func.num_exprs() {
            let e = Expr::from_u32(id as u32);
            let ty = self.impure_version(func, func.expr_ty(e));
            func.set_expr_ty(e, ty);
        }
        for seq in reachable_seqs(func) {
            for block in func.seq(seq).blocks.clone() {
                let bindings = std::mem::take(&mut func.block_mut(block).bindings);
                let bindings = bindings.into_iter().map(|b| self.binding(func, b)).collect();
                func.block_mut(block).bindings = bindings;
            }
        }
        for id in reachable_funcs(func) {
            let ty = self.impure_version(func, func.func(id).ret_ty);
            func.func_mut(id).ret_ty = ty;
        }
    }

    /// The binding with changed types in the call or the cast.
    fn binding(&mut self, func: &mut Function, mut binding: Binding) -> Binding {
        binding.cast = binding.cast.expand().map(|ty| self.impure_version(func, ty)).into();
        let ExprData::Call { callee, args, attrs, ty_args } = func.expr(binding.value) else {
            return binding;
        };
        let (callee, args, attrs) = (*callee, func.list(*args).to_vec(), *attrs);
        let old_ty_args = func.type_list(*ty_args).to_vec();
        let new_ty_args: Vec<Type> =
            old_ty_args.iter().map(|&ty| self.impure_version(func, ty)).collect();
        if new_ty_args != old_ty_args {
            let (attrs, ty) = (func.call_attrs(attrs).clone(), func.expr_ty(binding.value));
            binding.value = func.call(callee, &args, attrs, &new_ty_args, ty);
        }
        binding
    }

    /// Recursion follows only nested types, whose depth the verifier bounds.
    fn impure_version(&mut self, func: &mut Function, ty: Type) -> Type {
        if let Some(&impure) = self.0.get(&ty) {
            return impure;
        }
        let data = match func.types.get(ty).clone() {
            TypeData::Tuple(fields) => {
                TypeData::Tuple(fields.iter().map(|&t| self.impure_version(func, t)).collect())
            }
            TypeData::Callable { params, ret, .. } => TypeData::Callable {
                params: params.map(|p| p.iter().map(|&t| self.impure_version(func, t)).collect()),
                ret: self.impure_version(func, ret),
                pure: false,
            },
            other => other,
        };
        let impure = func.intern(data);
        self.0.insert(ty, impure);
        impure
    }
}
