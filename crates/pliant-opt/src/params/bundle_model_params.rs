//! # What it does
//! Bundles the parameters of a model (weights) into one tuple. These are the parameters of a function from the index in the
//! attribute `num_input` on.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     R.func_attr({"num_input": 1})
//!     with R.dataflow():
//!         lv = R.multiply(x, w)
//!         gv = R.add(lv, b)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), "float32"), model_params: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
//!     R.func_attr({"num_input": 1})
//!     w = model_params[0]
//!     b = model_params[1]
//!     with R.dataflow():
//!         lv = R.multiply(x, w)
//!         gv = R.add(lv, b)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. Functions without the attribute are not changed.
//!
//! # Keeps
//! The names of the parameters as variables in the body, and the attribute. Calls in the module are changed to pass tuples.
//!
//! # Never
//! Bundles twice: a function whose only model parameter is a tuple is not changed.

use std::sync::Arc;

use pliant_ir::relax::{Binding, BlockData, Function, TypeData};
use pliant_ir::{BaseFunc, IRModule, Span};
use pliant_pass::binding_rewrites::Namer;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashMap;

use crate::common::operators_after_lowering::num_input;
use crate::common::rewrite_call_sites::rewrite_calls;

/// The pass that bundles the parameters of a model into one tuple. See the module documentation.
#[derive(Clone, Debug)]
pub struct BundleModelParams {
    /// The name of the new tuple parameter.
    pub param_tuple_name: Arc<str>,
}

impl Default for BundleModelParams {
    fn default() -> Self {
        BundleModelParams { param_tuple_name: "model_params".into() }
    }
}

impl ModulePass for BundleModelParams {
    fn name(&self) -> &str {
        "BundleModelParams"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let mut changed: FxHashMap<Arc<str>, Arc<Function>> = FxHashMap::default();
        let mut inputs: FxHashMap<Arc<str>, usize> = FxHashMap::default();
        for (name, func) in &mut module.functions {
            let BaseFunc::Relax(func) = func else { continue };
            let count = num_input(func).map_err(|e| e.in_function(name))?;
            let Some(count) = count.filter(|&count| !needs_no_bundle(func, count)) else {
                continue;
            };
            let mut new = Function::clone(func);
            self.bundle(&mut new, count);
            *func = Arc::new(new);
            changed.insert(name.clone(), func.clone());
            inputs.insert(name.clone(), count);
        }
        rewrite_calls(&mut module, ctx, &changed, |site| {
            let count = *inputs.get(site.callee)?;
            let mut args = site.args.get(..count)?.to_vec();
            args.push(site.func.tuple(&site.args[count..]));
            Some(args)
        })?;
        Ok(module)
    }
}

impl BundleModelParams {
    fn bundle(&self, func: &mut Function, count: usize) {
        let rest = func.params()[count..].to_vec();
        let tys = rest.iter().map(|&p| func.var(p).ty).collect();
        let ty = func.intern(TypeData::Tuple(tys));
        let name = Namer::new(func).fresh(&self.param_tuple_name);
        let bundle = func.add_var(name, ty, false, Span::NONE);
        let tuple = func.var_expr(bundle);
        let bindings: Vec<Binding> = rest
            .iter()
            .enumerate()
            .map(|(i, &p)| Binding::bind(p, func.tuple_get_item(tuple, i as u32)))
            .collect();
        let (root, body) = (func.root(), func.body());
        let block = func.add_block(BlockData { dataflow: false, bindings });
        func.seq_mut(body).blocks.insert(0, block);
        let params = &mut func.func_mut(root).params;
        params.truncate(count);
        params.push(bundle);
    }
}

/// Whether there is nothing to bundle: no model parameter, or only one, which is a tuple.
fn needs_no_bundle(func: &Function, count: usize) -> bool {
    match func.params()[count..] {
        [] => true,
        [one] => matches!(func.var_ty(one), TypeData::Tuple(_)),
        _ => false,
    }
}
