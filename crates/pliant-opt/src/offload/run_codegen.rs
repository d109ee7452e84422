//! # What it does
//! Passes functions with the attribute `Codegen` to external code generators. The generator of each backend is called once with
//! all functions of the backend. Each call of such a function becomes `R.call_dps_packed` of the packed function that the
//! generator returns. The functions are removed, and so are composite functions that only they called.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         gv: R.Tensor((n, 8), "float32") = cls.fused_relax_matmul_gemm(x, w)
//!         return gv
//!
//!     @R.function(private=True)
//!     def fused_relax_matmul_gemm(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
//!         R.func_attr({"Codegen": "gemm"})
//!         n = T.int64()
//!
//!         @R.function
//!         def fused_relax_matmul(a: R.Tensor(("m", 4), "float32"), b: R.Tensor((4, 8), "float32")) -> R.Tensor(("m", 8), "float32"):
//!             R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
//!             m = T.int64()
//!             c = R.matmul(a, b)
//!             return c
//!
//!         gv: R.Tensor((n, 8), "float32") = fused_relax_matmul(x, w)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
//!         n = T.int64()
//!         gv = R.call_dps_packed("pliant.gemm", (x, w), out_sinfo=R.Tensor((n, 8), "float32"))
//!         return gv
//! ```
//!
//! A function with outputs of unknown shape (`R.Tensor(ndim=1)`) loses the attribute and is compiled by Pliant, which computes the
//! shapes at run time.
//!
//! # Requires
//! [`FuseOpsByPattern`](crate::offload::fuse_ops_by_pattern) with `annotate_codegen`, or
//! [`MergeCompositeFunctions`](crate::offload::merge_composite_functions).
//!
//! # Keeps
//! Symbolic shapes: outputs are allocated according to the types of the calls.
//!
//! # Never
//! Leaves a function with the attribute `Codegen` in the module if its backend has no code generator: the pass reports an error.

use std::sync::Arc;

use indexmap::IndexMap;
use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_ir::attr_names::{CODEGEN, COMPOSITE};
use pliant_ir::op::CALL_DPS_PACKED;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::{AttrValue, Attrs, BaseFunc, IRModule};
use pliant_pass::binding_rewrites::rewrite_bindings;
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::FxHashMap;

use crate::canonicalize::eliminate_unused::EliminateUnused;
use crate::offload::byoc::code_generator_registry::{
    ExternalFunction, Generated, TargetOptions, codegen, codegens,
};

/// The pass that compiles the functions of a backend with the code generator of the backend. See the module documentation.
#[derive(Default)]
pub struct RunCodegen {
    /// The options of each backend, by the name of the backend.
    pub target_options: IndexMap<Arc<str>, TargetOptions>,
    /// The names of the functions that are kept, together with all functions that they call. If `None`, the public functions are
    /// kept.
    pub entry_functions: Option<Vec<String>>,
}

impl ModulePass for RunCodegen {
    fn name(&self) -> &str {
        "RunCodegen"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let mut backends: IndexMap<Arc<str>, Vec<Arc<str>>> = IndexMap::new();
        let mut not_allocatable = Vec::new();
        for (name, f) in module.relax_funcs() {
            if let Some(AttrValue::Str(backend)) = f.attrs.get(CODEGEN) {
                let names = backends.entry(backend.clone()).or_default();
                let allocated =
                    output_types(f, f.ret_ty()).iter().all(|&out| can_be_allocated(f, out));
                if allocated { names } else { &mut not_allocatable }.push(name.clone());
            }
        }
        if backends.is_empty() {
            return Ok(module);
        }
        for name in not_allocatable {
            if let Some(BaseFunc::Relax(f)) = module.functions.get_mut(&name) {
                Arc::make_mut(f).attrs.shift_remove(CODEGEN);
            }
        }
        let mut generated_functions: FxHashMap<Arc<str>, Generated> = FxHashMap::default();
        for (backend, names) in &backends {
            ctx.check_cancelled()?;
            let generated = self.generate(&module, backend, names, ctx)?;
            generated_functions.extend(names.iter().cloned().zip(generated));
        }
        for name in generated_functions.keys().cloned().collect::<std::collections::BTreeSet<_>>() {
            module.remove(&name);
        }
        let mut errors = Vec::new();
        for (name, func) in &mut module.functions {
            let BaseFunc::Relax(func) = func else { continue };
            if pliant_ir::relax::visit::called_globals(func)
                .iter()
                .any(|g| generated_functions.contains_key(g))
            {
                let changed = replace_calls(Arc::make_mut(func), &generated_functions);
                errors.extend(changed.err().map(|e| e.in_function(name)));
            }
        }
        if let Some(error) = PassError::join(errors) {
            return Err(error);
        }
        self.remove_unreachable(module, ctx)
    }
}

impl RunCodegen {
    fn generate(
        &self,
        module: &IRModule,
        backend: &str,
        names: &[Arc<str>],
        ctx: &PassContext,
    ) -> Result<Vec<Generated>, PassError> {
        let Some(generator) = codegen(backend) else {
            let backends = codegens();
            let help = did_you_mean(backend, backends.iter().map(String::as_str))
                .unwrap_or_else(|| format!("the registered backends are: {}", backends.join(", ")));
            let message = format!("no code generator is registered for the backend '{backend}'");
            return Err(PassError::User(vec![Problem::new(message).with_help(help)]));
        };
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let functions: Vec<ExternalFunction<'_>> = names
            .iter()
            .filter_map(|name| {
                let func = module.get(name)?.as_relax()?.clone();
                Some(ExternalFunction { name: name.clone(), func, module })
            })
            .collect();
        let options = self.target_options.get(backend).cloned().unwrap_or_default();
        let generated = generator.generate(&functions, &options, ctx)?;
        if generated.len() != names.len() {
            return Err(PassError::user(format!(
                "the code generator of the backend '{backend}' must return one packed function for each of the {} functions, but returned {} packed functions",
                names.len(),
                generated.len()
            )));
        }
        Ok(generated)
    }

    /// Removes functions that are unreachable after code generation. With `entry_functions`, only these functions and those that
    /// they call are kept. Otherwise, if composite functions are left, functions that no public function reaches are removed.
    fn remove_unreachable(
        &self,
        mut module: IRModule,
        ctx: &PassContext,
    ) -> Result<IRModule, PassError> {
        if let Some(entries) = &self.entry_functions {
            for name in entries {
                if module.get(name).is_none() {
                    return Err(PassError::user(format!(
                        "RunCodegen: the argument 'entry_functions' contains '{name}', but the module has no function of this name"
                    )));
                }
            }
            let mut pending: Vec<Arc<str>> = entries.iter().map(|e| e.as_str().into()).collect();
            let mut reachable = rustc_hash::FxHashSet::default();
            while let Some(name) = pending.pop() {
                if let Some(BaseFunc::Relax(f)) = module.get(&name)
                    && !reachable.contains(&name)
                {
                    crate::canonicalize::eliminate_unused::collect_globals(f, &mut pending);
                }
                reachable.insert(name);
            }
            module.functions.retain(|name, _| reachable.contains(name));
            return Ok(module);
        }
        let composite = |f: &BaseFunc| f.attrs().contains_key(COMPOSITE);
        if module.functions.values().any(composite) {
            return EliminateUnused.run(module, ctx);
        }
        Ok(module)
    }
}

/// Replaces calls of compiled functions by destination-passing calls of packed functions.
fn replace_calls(
    func: &mut Function,
    generated_functions: &FxHashMap<Arc<str>, Generated>,
) -> Result<(), PassError> {
    rewrite_bindings(func, |func, mut b, out| {
        let generated_call = match func.expr(b.value) {
            ExprData::Call { callee: Callee::Expr(callee), args, .. } => match func.expr(*callee) {
                ExprData::Global(name) => {
                    generated_functions.get(func.str(*name)).map(|g| (g, func.list(*args).to_vec()))
                }
                _ => None,
            },
            _ => None,
        };
        if let Some((generated, args)) = generated_call {
            let span = func.var(b.var).span;
            b.value = dps_call(func, generated, &args, b.value)
                .map_err(|message| PassError::User(vec![Problem::new(message).at(span)]))?;
        }
        out.push(b);
        Ok(())
    })
}

fn dps_call(
    func: &mut Function,
    generated: &Generated,
    args: &[Expr],
    call: Expr,
) -> Result<Expr, String> {
    let symbol = &generated.symbol;
    let inputs: Vec<Expr> = match &generated.args {
        None => args.to_vec(),
        Some(list) => list
            .iter()
            .map(|&i| {
                args.get(i)
                    .copied()
                    .ok_or_else(|| format!("the code generator passes argument {i} to '{symbol}', but the call has {} arguments", args.len()))
            })
            .collect::<Result<_, _>>()?,
    };
    let ty = func.expr_ty(call);
    call_dps_packed(func, symbol, &inputs, ty)
}

/// Creates a destination-passing call of a packed function.
///
/// # Errors
/// If the shape or data type of an output is unknown.
pub(crate) fn call_dps_packed(
    func: &mut Function,
    symbol: &str,
    inputs: &[Expr],
    ty: Type,
) -> Result<Expr, String> {
    for out in output_types(func, ty) {
        if !can_be_allocated(func, out) {
            let text = pliant_ir::print::type_text(func, out);
            return Err(format!(
                "the output of '{symbol}' cannot be allocated: its type is {text} (use R.match_cast on the inputs of the call first)"
            ));
        }
    }
    let callee = func.extern_func(symbol);
    let tuple = func.tuple(inputs);
    Ok(func.call(Callee::Op(CALL_DPS_PACKED), &[callee, tuple], Attrs::default(), &[ty], ty))
}

/// Returns the types of the fields of a tuple type; for other types, the list that contains only the type itself.
fn output_types(func: &Function, ty: Type) -> Vec<Type> {
    match func.types.get(ty) {
        TypeData::Tuple(fields) => fields.to_vec(),
        _ => vec![ty],
    }
}

/// Whether a type is a tensor with known shape and data type.
fn can_be_allocated(func: &Function, ty: Type) -> bool {
    let data = func.types.get(ty);
    data.dims().is_some() && data.dtype().is_some()
}
