//! # What it does
//! Moves every local function to the module as a private function. Its parameters are the function's own parameters, the captured
//! variables, and the captured symbols that no captured variable defines. A call of a known function becomes a direct call that
//! passes the captured values. If the function is used as a value, `R.make_closure` creates a closure. Each function of a
//! mutually recursive group captures the values that any of them needs and passes them on, so no closure contains itself. Nested
//! local functions are also lifted.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Object):
//!     n = T.int64()
//!     @R.function
//!     def scale(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
//!         return R.multiply(y, w)
//!     z = scale(x)
//!     return (z, scale)
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Object):
//!     n = T.int64()
//!     cls = Module
//!     scale: R.Callable((R.Tensor((n,), "float32"),), R.Tensor((n,), "float32"), True) = R.make_closure(cls.main_scale, (w,))
//!     z = cls.main_scale(x, w)
//!     return (z, scale)
//!
//! @R.function(private=True)
//! def main_scale(y: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     R.func_attr({"num_captured": 1})
//!     return R.multiply(y, w)
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The order of all calls, and the names and types of variables.
//!
//! # Never
//! Creates a closure for a function that captures nothing: its global name is used as the value.

mod captured_variables;
mod local_function_references;

use std::sync::Arc;

use pliant_ir::attr_names::{FORCE_PURE, FORCE_PURE_OLD, GLOBAL_SYMBOL, NUM_CAPTURED};
use pliant_ir::attr_values::FuncAttrs;
use pliant_ir::relax::visit::{Importer, copy_function};
use pliant_ir::relax::{FuncData, Function, TypeData};
use pliant_ir::{AttrValue, BaseFunc, DType, IRModule};
use pliant_pass::binding_rewrites::reachable_funcs;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashSet;

use captured_variables::{LocalFunc, LocalFuncs};

/// Attributes that a lifted function inherits from the function that contained it.
const INHERITED_ATTRS: &[&str] = &[FORCE_PURE, FORCE_PURE_OLD];

/// The pass that moves local functions to the module (lambda lifting). See the module documentation.
pub struct LambdaLift;

impl ModulePass for LambdaLift {
    fn name(&self) -> &str {
        "LambdaLift"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let with_local: Vec<Arc<str>> = module
            .relax_funcs()
            .filter(|(_, f)| reachable_funcs(f).len() > 1)
            .map(|(name, _)| name.clone())
            .collect();
        let mut taken: FxHashSet<Arc<str>> = module.functions.keys().cloned().collect();
        for name in with_local {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&*name) else { continue };
            let func = Arc::make_mut(func);
            let mut local_funcs = LocalFuncs::of(func);
            assign_names(&name, func, &mut local_funcs, &mut taken);
            local_function_references::rewrite(func, &local_funcs);
            let lifted: Vec<(Arc<str>, Function)> = local_funcs
                .funcs
                .iter()
                .map(|local| (local.name.clone(), lift(func, local)))
                .collect();
            // Drops the lifted functions from the arenas of the outer function.
            *func = copy_function(func);
            for (name, func) in lifted {
                module.insert(name, func);
            }
        }
        Ok(module)
    }
}

/// Assigns each local function a unique name in the module, which consists of the name of the enclosing function and its own
/// name.
fn assign_names(
    outer: &str,
    func: &Function,
    local_funcs: &mut LocalFuncs,
    taken: &mut FxHashSet<Arc<str>>,
) {
    // Outer functions come first, so the name of the enclosing function is already assigned.
    for i in 0..local_funcs.funcs.len() {
        let local = &local_funcs.funcs[i];
        let enclosing =
            local_funcs.index_of(local.parent).map(|j| local_funcs.funcs[j].name.clone());
        let enclosing = enclosing.as_deref().unwrap_or(outer);
        let base = format!("{enclosing}_{}", func.var(local.var).name);
        let is_free = |name: &String| !taken.contains(name.as_str());
        let name: Arc<str> = match Some(base.clone()).filter(is_free) {
            Some(name) => name.into(),
            None => (1u64..)
                .map(|i| format!("{base}_{i}"))
                .find(is_free)
                .expect("a module with finitely many functions leaves a numbered name unused")
                .into(),
        };
        taken.insert(name.clone());
        local_funcs.funcs[i].name = name;
    }
}

/// Copies a local function, whose body has already been rewritten, to a new function of the module.
fn lift(src: &Function, local: &LocalFunc) -> Function {
    let data = src.func(local.id).clone();
    let mut dst = Function::empty();
    dst.private = true;
    for key in INHERITED_ATTRS {
        if let Some(value) = src.attrs.get(*key) {
            dst.attrs.insert((*key).into(), value.clone());
        }
    }
    let own_attrs = data.attrs.iter().filter(|(key, _)| &***key != GLOBAL_SYMBOL);
    dst.attrs.extend(own_attrs.map(|(k, v)| (k.clone(), v.clone())));
    let mut importer = Importer::new(src, &mut dst);
    // The captured variables are defined first, because types may mention captured shapes.
    let captured: Vec<_> = local.vars.iter().map(|&v| importer.define(v)).collect();
    let mut params: Vec<_> = data.params.iter().map(|&p| importer.define(p)).collect();
    params.extend(captured);
    for &sym in &local.syms {
        let (name, span) = (src.syms.name(sym).to_string(), src.var(local.var).span);
        // The symbol already exists if a type above mentions it.
        let value = match importer.syms.get(&sym) {
            Some(&value) => value,
            None => {
                let new = importer.dst.fresh_sym(&name);
                let value = importer.dst.syms.var(new);
                importer.syms.insert(sym, value);
                value
            }
        };
        let ty = TypeData::Prim { dtype: DType::Int64, value: Some(value) };
        let ty = importer.dst.intern(ty);
        params.push(importer.dst.add_var(format!("{name}_value"), ty, false, span));
    }
    let ret_ty = importer.ty(data.ret_ty);
    let body = importer.seq(data.body);
    let captured = params.len() - data.params.len();
    if captured > 0 {
        dst.attrs.insert(NUM_CAPTURED.into(), AttrValue::Int(captured as i64));
    }
    let root = dst.root();
    *dst.func_mut(root) =
        FuncData { params, body, ret_ty, pure: data.pure, attrs: FuncAttrs::default() };
    dst
}
