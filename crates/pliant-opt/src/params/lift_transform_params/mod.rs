//! # What it does
//! Moves computations that depend only on the parameters of a model to a function `<name>_transform_params`. The new function has
//! the parameters as one tuple and returns the values that the original function needs. It runs once, when the model is loaded.
//! The parameters of the model are those of a function from the index in the attribute `num_input` on. Several functions with the
//! same parameters can share one function `transform_params` with the computations that all of them contain
//! ([`SharedTransform`]).
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor(("n", 4), "float32"):
//!     R.func_attr({"num_input": 1})
//!     n = T.int64()
//!     with R.dataflow():
//!         wt = R.permute_dims(w, axes=[1, 0])
//!         lv = R.matmul(x, wt)
//!         gv = R.add(lv, b)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 8), "float32"), b: R.Tensor((4,), "float32"), wt: R.Tensor((8, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
//!     R.func_attr({"num_input": 1})
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(x, wt)
//!         gv = R.add(lv, b)
//!         R.output(gv)
//!     return gv
//!
//! @R.function
//! def main_transform_params(params: R.Tuple(R.Tensor((4, 8), "float32"), R.Tensor((4,), "float32"))) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((8, 4), "float32")):
//!     R.func_attr({"num_input": 0})
//!     with R.dataflow():
//!         w = params[0]
//!         b = params[1]
//!         wt = R.permute_dims(w, axes=[1, 0])
//!         gv = (b, wt)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! No function of the module may call the changed function, because its caller would have to transform the parameters in every
//! call.
//!
//! # Keeps
//! Calls with side effects, control flow, `match_cast`, random numbers, reads of parameters to which the function writes, and
//! expressions with sizes that only the inputs define. In the result of the new function, parameters that the original function
//! needs unchanged precede the computed values. This includes parameters that are needed only because one of their dims defines a
//! size.
//!
//! # Never
//! Changes functions without `num_input`, or functions whose `<name>_transform_params` already exists.

mod shared_parameter_transform;

use std::sync::Arc;

use pliant_ir::attr_names::NUM_INPUT;
use pliant_ir::relax::type_lattice::{solvable_syms, type_syms};
use pliant_ir::relax::visit::{Event, Importer, for_each_expr, for_each_sym, operand_vars, walk};
use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, Function, SeqData, TypeData, Var,
};
use pliant_ir::{AttrValue, BaseFunc, IRModule, Op, Span, SymVar};
use pliant_pass::binding_rewrites::{Substitution, remove_and_substitute, shape_vars};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

use crate::analysis::{CallGraph, Effects, written_vars};
use crate::common::operators_after_lowering::num_input;

pub use self::shared_parameter_transform::{SHARED_NAME, SharedTransform};

/// The suffix of the name of the function that transforms the parameters.
const TRANSFORM_SUFFIX: &str = "_transform_params";

/// The pass that moves computations on parameters alone to a function that runs once. See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct LiftTransformParams {
    /// The functions that share one transformation of their parameters. If `None`, each function gets its own transformation.
    pub shared: Option<SharedTransform>,
}

impl ModulePass for LiftTransformParams {
    fn name(&self) -> &str {
        "LiftTransformParams"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if let Some(selection) = &self.shared {
            return shared_parameter_transform::lift_shared(module, selection, ctx);
        }
        let effects = Effects::of(&module, ctx.ops);
        let names: Vec<Arc<str>> = module.relax_funcs().map(|(name, _)| name.clone()).collect();
        let called = called_functions(&module);
        for name in names {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.get(&name) else { continue };
            let count = num_input(func).map_err(|e| e.in_function(&name))?;
            let lifted: Arc<str> = format!("{name}{TRANSFORM_SUFFIX}").into();
            let is_transformed = name.ends_with(TRANSFORM_SUFFIX) || module.get(&lifted).is_some();
            let Some(count) = count.filter(|&count| count < func.params().len() && !is_transformed)
            else {
                continue;
            };
            check_not_called(&called, &name)?;
            let mut new = Function::clone(func);
            let transform = lift_params(&mut new, count, &effects);
            module.insert(name, new);
            module.insert(lifted, transform);
        }
        Ok(module)
    }
}

/// Returns the names of all functions to which functions of the module refer.
fn called_functions(module: &IRModule) -> FxHashSet<Arc<str>> {
    CallGraph::of(module).calls.values().flatten().cloned().collect()
}

fn check_not_called(called: &FxHashSet<Arc<str>>, name: &str) -> Result<(), PassError> {
    if called.contains(name) {
        return Err(PassError::unsupported(
            format!(
                "computations on parameters cannot be moved out of '{name}', because another function calls '{name}'"
            ),
            "inline the call with InlinePrivateFunctions",
        ));
    }
    Ok(())
}

/// Moves the computations that depend only on the weights, which are the parameters after the first `count`, out of a
/// function. Returns the function that performs these computations.
fn lift_params(func: &mut Function, count: usize, effects: &Effects) -> Function {
    let weights = func.params()[count..].to_vec();
    let lifted = liftable(func, &weights, effects);
    let outputs = needed_by_rest(func, count, &weights, &lifted);
    let transform = transform_function(func, &weights, &lifted, &outputs);
    let dead: FxHashSet<Var> = lifted.iter().map(|b| b.var).collect();
    remove_and_substitute(func, &dead, &Substitution::default());
    for &v in &outputs {
        func.var_mut(v).dataflow = false;
    }
    let root = func.root();
    let params = &mut func.func_mut(root).params;
    params.truncate(count);
    params.extend(outputs);
    transform
}

/// Returns the bindings of the outermost sequence that depend only on the model's parameters `weights` and can be moved.
fn liftable(func: &Function, weights: &[Var], effects: &Effects) -> Vec<Binding> {
    let tys: Vec<_> = weights.iter().map(|&w| func.var(w).ty).collect();
    let syms: FxHashSet<SymVar> = solvable_syms(func, &tys, &|_| false).into_iter().collect();
    let pinned = shape_vars(func);
    // A value that a call overwrites must be recomputed in every call of the function.
    let written = written_vars(func, effects);
    let mut weight_only: FxHashSet<Var> =
        weights.iter().copied().filter(|w| !written.contains(w)).collect();
    let mut out = Vec::new();
    for &block in &func.seq(func.body()).blocks {
        for &b in &func.block(block).bindings {
            let operands = operand_vars(func, b.value);
            let is_liftable = operands.iter().all(|v| weight_only.contains(v))
                && b.cast.is_none()
                && !pinned.contains(&b.var)
                && !written.contains(&b.var)
                && is_movable(func, b.value, effects)
                && mentioned_syms(func, b).iter().all(|v| syms.contains(v));
            if is_liftable {
                weight_only.insert(b.var);
                out.push(b);
            }
        }
    }
    out
}

/// The operator that marks a value that must not be lifted. Values that depend on the marked value are not lifted either.
const STOP_LIFT_PARAMS: Op = Op::new("relax.builtin.stop_lift_params");

/// Whether a value can be evaluated once, before the inputs are known, instead of in every call, with the same result.
fn is_movable(func: &Function, e: Expr, effects: &Effects) -> bool {
    match func.expr(e) {
        ExprData::If { .. } | ExprData::Func(_) | ExprData::Global(_) => false,
        ExprData::Call { callee: Callee::Op(STOP_LIFT_PARAMS), .. } => false,
        _ => !effects.is_impure(func, e),
    }
}

/// Returns the symbols that occur in the value and type of a binding.
fn mentioned_syms(func: &Function, b: Binding) -> Vec<SymVar> {
    let mut out = type_syms(func, func.var(b.var).ty);
    for_each_expr(func, b.value, |e| match func.expr(e) {
        ExprData::Shape(dims) => {
            dims.iter().for_each(|&d| out.extend(func.syms.free_vars(d)));
        }
        ExprData::Int(v, _) => out.extend(func.syms.free_vars(*v)),
        ExprData::Call { ty_args, .. } => {
            func.type_list(*ty_args).iter().for_each(|&t| out.extend(type_syms(func, t)));
        }
        _ => {}
    });
    out
}

/// Returns the parameters and lifted values that the remaining function reads, parameters first.
fn needed_by_rest(func: &Function, count: usize, weights: &[Var], lifted: &[Binding]) -> Vec<Var> {
    let lifted_vars: FxHashSet<Var> = lifted.iter().map(|b| b.var).collect();
    let mut read = shape_vars(func);
    walk(func, func.root(), |event| match event {
        Event::EnterBinding(_, b) if !lifted_vars.contains(&b.var) => {
            read.extend(operand_vars(func, b.value))
        }
        Event::Result(seq) => read.extend(operand_vars(func, func.seq(seq).result)),
        _ => {}
    });
    let from_lifted: Vec<Var> = lifted.iter().map(|b| b.var).filter(|v| read.contains(v)).collect();
    let mut params: Vec<bool> = weights.iter().map(|w| read.contains(w)).collect();
    // Each size that the rest mentions must be defined by an input, a kept parameter or a lifted value.
    let rest_syms = syms_of_rest(func, &lifted_vars);
    let defined_syms = |params: &[bool]| -> FxHashSet<SymVar> {
        let kept = weights.iter().zip(params).filter(|(_, keep)| **keep).map(|(&w, _)| w);
        let all = func.params()[..count].iter().copied().chain(kept);
        let tys: Vec<_> = all.chain(from_lifted.iter().copied()).map(|v| func.var(v).ty).collect();
        solvable_syms(func, &tys, &|_| false).into_iter().collect()
    };
    let undefined: Vec<SymVar> = {
        let defined_syms = defined_syms(&params);
        rest_syms.into_iter().filter(|v| !defined_syms.contains(v)).collect()
    };
    for (i, &w) in weights.iter().enumerate() {
        let param_syms = type_syms(func, func.var(w).ty);
        params[i] |= param_syms.iter().any(|v| undefined.contains(v));
    }
    let kept = weights.iter().zip(&params).filter(|(_, keep)| **keep).map(|(&w, _)| w);
    kept.chain(from_lifted).collect()
}

/// Returns the symbols that a function uses outside of the lifted bindings and of its parameter types.
fn syms_of_rest(func: &Function, lifted_vars: &FxHashSet<Var>) -> Vec<SymVar> {
    let mut remaining_func = func.clone();
    remove_and_substitute(&mut remaining_func, lifted_vars, &Substitution::default());
    let root = remaining_func.root();
    remaining_func.func_mut(root).params.clear();
    let mut seen = FxHashSet::default();
    let mut out = Vec::new();
    for_each_sym(&remaining_func, root, |s| {
        for v in remaining_func.syms.free_vars(s) {
            if seen.insert(v) {
                out.push(v);
            }
        }
    });
    out
}

/// Creates the function that computes the tuple of transformed parameters from the tuple of parameters.
fn transform_function(
    func: &Function,
    weights: &[Var],
    lifted: &[Binding],
    outputs: &[Var],
) -> Function {
    let mut read: FxHashSet<Var> = outputs.iter().copied().collect();
    lifted.iter().for_each(|b| read.extend(operand_vars(func, b.value)));
    let mut dst = Function::empty();
    let mut importer = Importer::new(func, &mut dst);
    let tys = weights.iter().map(|&w| importer.ty(func.var(w).ty)).collect();
    let ty = importer.dst.intern(TypeData::Tuple(tys));
    let params = importer.dst.add_var("params", ty, false, Span::NONE);
    let tuple = importer.dst.var_expr(params);
    let mut bindings = Vec::new();
    for (i, &w) in weights.iter().enumerate().filter(|(_, w)| read.contains(w)) {
        let var = importer.define(w);
        let value = importer.dst.tuple_get_item(tuple, i as u32);
        bindings.push(Binding::bind(var, value));
    }
    bindings.extend(lifted.iter().map(|&b| importer.binding(b)));
    bindings.iter().for_each(|b| importer.dst.var_mut(b.var).dataflow = true);
    let fields: Vec<Expr> = outputs.iter().map(|v| importer.vars[v]).collect();
    let value = dst.tuple(&fields);
    let ret_ty = dst.expr_ty(value);
    let name = pliant_pass::binding_rewrites::Namer::new(&dst).fresh("gv");
    let gv = dst.add_var(name, ret_ty, false, Span::NONE);
    bindings.push(Binding::bind(gv, value));
    let block = dst.add_block(BlockData { dataflow: true, bindings });
    let result = dst.var_expr(gv);
    let body = dst.add_seq(SeqData { blocks: vec![block], result });
    let root = dst.root();
    let data = dst.func_mut(root);
    (data.params, data.body, data.ret_ty) = (vec![params], body, ret_ty);
    dst.attrs.insert(NUM_INPUT.into(), AttrValue::Int(0));
    dst
}
