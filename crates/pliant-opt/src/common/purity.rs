//! Purity once a pass makes effects explicit.
//!
//! A pure function stays pure to its callers if it only writes memory that it allocated: the attribute `relax.force_pure` says
//! that its effects do not count. If a function writes into its arguments, which only the marked calls said so far, the lowered
//! code would no longer say so; then every function of the module becomes impure.

use std::sync::Arc;

use pliant_ir::attr_names::FORCE_PURE;
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::rewrite::{
    reachable_funcs, reachable_seqs, set_flat_bindings, take_flat_bindings,
};
use rustc_hash::FxHashMap;

/// Makes every sequence one plain block.
pub(crate) fn flatten(func: &mut Function) {
    for seq in reachable_seqs(func) {
        let bindings = take_flat_bindings(func, seq);
        for binding in &bindings {
            func.var_mut(binding.var).dataflow = false;
        }
        set_flat_bindings(func, seq, bindings);
    }
}

/// Lets a function contain calls whose effects nobody outside sees: every sequence becomes one plain block, and a pure function
/// stays pure to its callers. Lowering passes that add such calls do this themselves, so that each runs alone.
pub(crate) fn admit_effects(func: &mut Function) {
    flatten(func);
    force_pure(func);
}

/// Says that the effects of a function, and of its local functions, do not count. Nothing where all are impure anyway.
pub fn force_pure(func: &mut Function) {
    if reachable_funcs(func).iter().any(|&id| func.func(id).pure) {
        func.attrs.insert(FORCE_PURE.into(), AttrValue::Bool(true));
    }
}

/// Makes every graph function of a module, local ones included, one whose calls may have effects, says the same in the
/// types of function values, and makes dataflow blocks plain.
pub fn admit_effects_everywhere(module: &mut IRModule) {
    for func in module.functions.values_mut() {
        if let BaseFunc::Relax(func) = func {
            let func = Arc::make_mut(func);
            flatten(func);
            for id in reachable_funcs(func) {
                func.func_mut(id).pure = false;
            }
            Types::default().function(func);
        }
    }
}

/// What each type becomes when every function in it may have effects.
#[derive(Default)]
struct Types(FxHashMap<Type, Type>);

impl Types {
    /// Changes the types of all variables, expressions and results, and those that calls state.
    fn function(&mut self, func: &mut Function) {
        for v in func.var_ids() {
            let ty = self.admit(func, func.var(v).ty);
            func.var_mut(v).ty = ty;
        }
        for id in 0..func.num_exprs() {
            let e = Expr::from_u32(id as u32);
            let ty = self.admit(func, func.expr_ty(e));
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
            let ty = self.admit(func, func.func(id).ret_ty);
            func.func_mut(id).ret_ty = ty;
        }
    }

    /// The binding with other types that a call states for its result, or that a value is cast to.
    fn binding(&mut self, func: &mut Function, mut binding: Binding) -> Binding {
        binding.cast = binding.cast.expand().map(|ty| self.admit(func, ty)).into();
        let ExprData::Call { callee, args, attrs, ty_args } = func.expr(binding.value) else {
            return binding;
        };
        let (callee, args, attrs) = (*callee, func.list(*args).to_vec(), *attrs);
        let old = func.type_list(*ty_args).to_vec();
        let new: Vec<Type> = old.iter().map(|&ty| self.admit(func, ty)).collect();
        if new != old {
            let (attrs, ty) = (func.call_attrs(attrs).clone(), func.expr_ty(binding.value));
            binding.value = func.call(callee, &args, attrs, &new, ty);
        }
        binding
    }

    /// Recursion follows nested types only, whose depth the verifier bounds.
    fn admit(&mut self, func: &mut Function, ty: Type) -> Type {
        if let Some(&known) = self.0.get(&ty) {
            return known;
        }
        let data = match func.types.get(ty).clone() {
            TypeData::Tuple(fields) => {
                TypeData::Tuple(fields.iter().map(|&t| self.admit(func, t)).collect())
            }
            TypeData::Callable { params, ret, .. } => TypeData::Callable {
                params: params.map(|p| p.iter().map(|&t| self.admit(func, t)).collect()),
                ret: self.admit(func, ret),
                pure: false,
            },
            other => other,
        };
        let admitted = func.intern(data);
        self.0.insert(ty, admitted);
        admitted
    }
}
