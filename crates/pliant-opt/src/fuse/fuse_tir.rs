//! # What it does
//! Merges the loop functions that a function with the attribute `Primitive` calls into one loop function, which runs them
//! in sequence, with local buffers for intermediate results. Calls of that function become `R.call_tir` of the merged loop
//! function. Private loop functions that only merged functions called are removed. When the loop function is lowered, elementwise
//! stages are inlined into their readers.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(a: T.handle, b: T.handle):
//!         n = T.int64()
//!         A = T.match_buffer(a, (n,), "float32")
//!         B = T.match_buffer(b, (n,), "float32")
//!         for i in range(n):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(n, i)
//!                 B[vi] = T.exp(A[vi])
//!
//!     @R.function(private=True)
//!     def fused(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         R.func_attr({"Primitive": 1})
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
//!             gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((n,), "float32"))
//!             R.output(gv)
//!         return gv
//!
//!     @R.function
//!     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         cls = Module
//!         gv = cls.fused(x)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def fused(var_x: T.handle, var_gv: T.handle):
//!         T.func_attr({"tir.noalias": True})
//!         n = T.int64()
//!         x = T.match_buffer(var_x, (n,), "float32")
//!         gv = T.match_buffer(var_gv, (n,), "float32")
//!         with T.block("root"):
//!             lv = T.alloc_buffer((n,), "float32")
//!             for i in range(n):
//!                 with T.block("exp"):
//!                     vi = T.axis.spatial(n, i)
//!                     lv[vi] = T.exp(x[vi])
//!             for i in range(n):
//!                 with T.block("exp_1"):
//!                     vi = T.axis.spatial(n, i)
//!                     gv[vi] = T.exp(lv[vi])
//!
//!     @R.function
//!     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         gv = R.call_tir(cls.fused, (x,), out_sinfo=R.Tensor((n,), "float32"))
//!         return gv
//! ```
//!
//! # Requires
//! Nothing. A `Primitive` function is not merged if it contains anything but calls of loop functions that only read and write
//! tensors, or if it is used other than by calls with tensors of known shape. A public one is not merged if nothing calls it.
//!
//! # Keeps
//! The order in which the loop functions write their outputs.
//!
//! # Never
//! Shares memory between the tensors of a function.

mod lower_primitive_function;
mod merge_loop_functions;

use std::sync::Arc;

use pliant_ir::attr_names::PRIMITIVE;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{BaseFunc, IRModule, Sym, SymVar};
use pliant_pass::binding_rewrites::{reachable_seqs, rewrite_bindings};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::canonicalize::eliminate_unused::collect_globals;
use lower_primitive_function::{MergedFunction, lower};

/// The pass that merges each group of fused loop functions into one loop function. See the module documentation.
pub struct FuseTir;

impl ModulePass for FuseTir {
    fn name(&self) -> &str {
        "FuseTIR"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let mut merged: FxHashMap<Arc<str>, MergedFunction> = FxHashMap::default();
        let called = used_functions(&module);
        for (name, func) in module.relax_funcs() {
            ctx.check_cancelled()?;
            if (func.private || called.contains(name))
                && func.attrs.contains_key(PRIMITIVE)
                && let Some(mut lowered) = lower(func, &module)
            {
                lowered.prim.private = func.private;
                merged.insert(name.clone(), lowered);
            }
        }
        if merged.is_empty() {
            return Ok(module);
        }
        let functions_with_other_uses = functions_with_other_uses(&module, &merged);
        merged.retain(|name, _| !functions_with_other_uses.contains(name));
        for (name, func) in &mut module.functions {
            let BaseFunc::Relax(func) = func else { continue };
            if !merged.contains_key(name) && calls_merged_function(func, &merged) {
                ctx.check_cancelled()?;
                rewrite_calls(Arc::make_mut(func), &merged)?;
            }
        }
        let mut parts = Vec::new();
        for (name, func) in &mut module.functions {
            if let Some(lowered) = merged.remove(name) {
                if let BaseFunc::Relax(primitive) = &*func {
                    collect_globals(primitive, &mut parts);
                }
                *func = lowered.prim.into();
            }
        }
        remove_unused_parts(&mut module, parts);
        Ok(module)
    }
}

/// Removes those private loop functions among `parts`, the functions that merged functions called, that nothing uses any more.
fn remove_unused_parts(module: &mut IRModule, parts: Vec<Arc<str>>) {
    let used = used_functions(module);
    for name in parts.into_iter().filter(|name| !used.contains(name)) {
        if module.prim_funcs().any(|(n, func)| *n == name && func.private) {
            module.functions.shift_remove(&name);
        }
    }
}

/// The names of the functions to which graph functions of the module refer.
fn used_functions(module: &IRModule) -> FxHashSet<Arc<str>> {
    let mut used = Vec::new();
    for (_, func) in module.relax_funcs() {
        collect_globals(func, &mut used);
    }
    used.into_iter().collect()
}

fn calls_merged_function(func: &Function, merged: &FxHashMap<Arc<str>, MergedFunction>) -> bool {
    let mut names = Vec::new();
    collect_globals(func, &mut names);
    names.iter().any(|n| merged.contains_key(n))
}

/// Returns the functions that cannot be merged because they have a use other than calls with tensors of known shape.
fn functions_with_other_uses(
    module: &IRModule,
    merged: &FxHashMap<Arc<str>, MergedFunction>,
) -> FxHashSet<Arc<str>> {
    let mut functions_with_other_uses = FxHashSet::default();
    for func in module.functions.values() {
        let BaseFunc::Relax(func) = func else { continue };
        let (mut mentions, mut calls) = (FxHashMap::default(), FxHashMap::default());
        let mut names = Vec::new();
        collect_globals(func, &mut names);
        for name in names.into_iter().filter(|n| merged.contains_key(n)) {
            *mentions.entry(name).or_insert(0u32) += 1;
        }
        if mentions.is_empty() {
            continue;
        }
        for seq in reachable_seqs(func) {
            for &block in &func.seq(seq).blocks {
                for binding in &func.block(block).bindings {
                    if let Some((name, lowered, args)) = merged_call(func, binding.value, merged)
                        && call_tir_arguments(func, binding.value, lowered, args).is_some()
                    {
                        *calls.entry(name).or_insert(0u32) += 1;
                    }
                }
            }
        }
        functions_with_other_uses
            .extend(mentions.into_iter().filter(|(n, m)| calls.get(n) != Some(m)).map(|(n, _)| n));
    }
    functions_with_other_uses
}

/// Returns (name of the callee, merged function, arguments) if a value is a call of a merged function; `None` otherwise.
fn merged_call<'f, 'm>(
    func: &'f Function,
    value: Expr,
    merged: &'m FxHashMap<Arc<str>, MergedFunction>,
) -> Option<(Arc<str>, &'m MergedFunction, &'f [Expr])> {
    let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(value) else {
        return None;
    };
    let ExprData::Global(name) = func.expr(*callee) else { return None };
    let name = func.str(*name);
    Some((name.clone(), merged.get(name)?, func.list(*args)))
}

/// The arguments of the `R.call_tir` that replaces a call of a `Primitive` function (an outlined group of calls of loop functions).
struct CallTirArguments {
    inputs: Vec<Expr>,
    tir_vars: Vec<Sym>,
    out_tys: Vec<Type>,
}

fn call_tir_arguments(
    func: &Function,
    value: Expr,
    lowered: &MergedFunction,
    args: &[Expr],
) -> Option<CallTirArguments> {
    if args.len() != lowered.params.len() {
        return None;
    }
    let (mut inputs, mut dim_values) = (Vec::new(), FxHashMap::<SymVar, Sym>::default());
    for (&arg, param) in args.iter().zip(&lowered.params) {
        let data = func.ty(arg);
        let dims = match (func.expr(arg), param.is_tensor) {
            (ExprData::Shape(dims), false) => dims,
            (ExprData::Var(_) | ExprData::Constant(_), true) if data.is_tensor() => data.dims()?,
            _ => return None,
        };
        if dims.len() != param.dims.len() {
            return None;
        }
        for (&dim, symbol) in dims.iter().zip(&param.dims) {
            if let Some(v) = *symbol {
                dim_values.entry(v).or_insert(dim);
            }
        }
        if param.is_tensor {
            inputs.push(arg);
        }
    }
    let tir_vars: Option<Vec<Sym>> =
        lowered.sizes.iter().map(|v| dim_values.get(v).copied()).collect();
    let ty = func.expr_ty(value);
    let out_tys = match func.types.get(ty) {
        TypeData::Tuple(fields) if lowered.tuple => fields.to_vec(),
        _ => vec![ty],
    };
    let is_known_tensor = |&t: &Type| {
        let data = func.types.get(t);
        data.is_tensor() && data.dims().is_some() && data.dtype().is_some()
    };
    (out_tys.len() == lowered.outputs && out_tys.iter().all(is_known_tensor)).then_some(())?;
    Some(CallTirArguments { inputs, tir_vars: tir_vars?, out_tys })
}

fn rewrite_calls(
    func: &mut Function,
    merged: &FxHashMap<Arc<str>, MergedFunction>,
) -> Result<(), PassError> {
    rewrite_bindings(func, |func, mut binding, out| {
        if let Some((name, lowered, args)) = merged_call(func, binding.value, merged)
            && let Some(call) = call_tir_arguments(func, binding.value, lowered, args)
        {
            let CallTirArguments { inputs, tir_vars, out_tys } = call;
            binding.value =
                pliant_ops::call_tir(func, &name, &inputs, &tir_vars, &out_tys, lowered.tuple);
        }
        out.push(binding);
        Ok(())
    })
}
