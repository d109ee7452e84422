//! Updates the purity of functions when a lowering pass adds calls with side effects, such as writes to allocated tensors.
//!
//! A function that only writes to memory that it has allocated stays pure to its callers: the attribute `relax.force_pure` states
//! that its side effects are not visible outside. If a function of the module contains in-place calls, every function of the
//! module becomes impure, because lowering replaces these calls by plain calls, which no longer show that they write to
//! arguments.

use std::sync::Arc;

use pliant_ir::attr_names::FORCE_PURE;
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::binding_rewrites::{
    reachable_funcs, reachable_seqs, set_flat_bindings, take_flat_bindings,
};
use rustc_hash::FxHashMap;

/// Merges the blocks of every sequence into one block that is not a dataflow block.
pub(crate) fn flatten_blocks(func: &mut Function) {
    for seq in reachable_seqs(func) {
        let bindings = take_flat_bindings(func, seq);
        for binding in &bindings {
            func.var_mut(binding.var).dataflow = false;
        }
        set_flat_bindings(func, seq, bindings);
    }
}

/// Prepares a function for calls whose side effects are not visible outside of it: merges the blocks of every sequence into one
/// block that is not a dataflow block, and marks a pure function with `relax.force_pure`. Each lowering pass that adds such calls
/// does this, so that it can run alone.
pub(crate) fn allow_hidden_effects(func: &mut Function) {
    flatten_blocks(func);
    force_pure(func);
}

/// Declares, with the attribute `relax.force_pure`, that the side effects of a function and of its local functions are not
/// visible to callers. Does nothing if all of these functions are already impure.
pub fn force_pure(func: &mut Function) {
    if reachable_funcs(func).iter().any(|&id| func.func(id).pure) {
        func.attrs.insert(FORCE_PURE.into(), AttrValue::Bool(true));
    }
}

/// Makes every graph function of a module impure, including local functions. Updates the types of function values accordingly, and
/// merges the blocks of every sequence into one block that is not a dataflow block.
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

/// Maps each type to its impure version, in which all function types are impure.
#[derive(Default)]
struct ImpureTypes(FxHashMap<Type, Type>);

impl ImpureTypes {
    /// Replaces the types of all variables, expressions and results of a function, and the type arguments of calls, by their impure
    /// versions.
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

    /// Replaces the types in the call or the cast of a binding by their impure versions.
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

    /// Returns a type with all function types in it made impure. The recursion depth is the nesting depth of the type, which the
    /// verifier limits.
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
