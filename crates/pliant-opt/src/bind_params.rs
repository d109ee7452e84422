//! # What it does
//! Makes parameters of one function constants: each is named by its name or its index. Symbols that a constant's shape
//! tells become numbers in all of the function.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k",), "float32")) -> R.Tensor(("n", "k"), "float32"):
//!     n = T.int64()
//!     k = T.int64()
//!     with R.dataflow():
//!         gv = R.add(x, w)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! With a tensor of the elements 1 and 2 for `w`.
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.add(x, R.const([1.0, 2.0], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! That the function exists and has the parameters, and that the tensors fit their types.
//!
//! # Keeps
//! The order of the other parameters.
//!
//! # Never
//! Computes anything: that is [`FoldConstant`](crate::fold_constant).

use std::sync::Arc;

use pliant_ir::relax::visit::{copy_function_with, free_syms};
use pliant_ir::relax::{Binding, BlockData, Function, Type, TypeData, Var};
use pliant_ir::{IRModule, SymVar};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use crate::analysis::memory::{Memory, ParamUses};
use crate::infer_again::infer_again;
use crate::names::{known_names, relax_func};

/// Which parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKey {
    /// The one of that name.
    Name(Arc<str>),
    /// The one at that place, counted from 0.
    Index(usize),
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct BindParams {
    /// The function.
    pub func_name: Arc<str>,
    /// The parameters and what they become.
    pub params: Vec<(ParamKey, Tensor)>,
}

impl ModulePass for BindParams {
    fn name(&self) -> &str {
        "BindParams"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let func = relax_func(&module, &self.func_name, "BindParams")?;
        if self.params.is_empty() {
            return Ok(module);
        }
        let bound = self.resolve(func);
        let bound = bound.map_err(|p| PassError::User(vec![p.in_function(&*self.func_name)]))?;
        let mut memory =
            ParamUses::where_in_place(&module).map(|uses| Memory::of_given_away(func, &uses));
        let mut written = |p: Var| memory.as_mut().is_some_and(|m| m.is_written(p));
        let mut new =
            bind(func, &bound, &mut written).map_err(|e| e.in_function(&self.func_name))?;
        infer_again(&mut new, &module, ctx.ops, false)
            .map_err(|e| e.in_function(&self.func_name))?;
        module.insert(self.func_name.clone(), new);
        Ok(module)
    }
}

impl BindParams {
    /// The parameters that the keys name, each once.
    fn resolve(&self, func: &Function) -> Result<Vec<(Var, Tensor)>, Problem> {
        let params = func.params();
        let mut out: Vec<(Var, Tensor)> = Vec::new();
        for (key, tensor) in &self.params {
            let found = match key {
                ParamKey::Name(name) => {
                    params.iter().copied().find(|&p| func.var(p).name == *name).ok_or_else(
                        || {
                            let names = params.iter().map(|&p| &*func.var(p).name);
                            Problem::new(format!("there is no parameter '{name}' to bind"))
                                .with_help(known_names("its parameters are", names))
                        },
                    )?
                }
                ParamKey::Index(i) => params.get(*i).copied().ok_or_else(|| {
                    let count = params.len();
                    Problem::new(format!("there is no parameter {i} to bind: it has {count}"))
                })?,
            };
            if out.iter().any(|(p, _)| *p == found) {
                let name = &func.var(found).name;
                return Err(Problem::new(format!("parameter '{name}' is bound twice")));
            }
            out.push((found, tensor.clone()));
        }
        Ok(out)
    }
}

/// The function with parameters replaced by constants. Those that are written into stay variables: each is one value,
/// however often it is read.
fn bind(
    func: &Function,
    bound: &[(Var, Tensor)],
    written: &mut dyn FnMut(Var) -> bool,
) -> Result<Function, PassError> {
    let mut sizes: FxHashMap<SymVar, (i64, Var)> = FxHashMap::default();
    for (param, tensor) in bound {
        match_sizes(func, *param, tensor, &mut sizes)
            .map_err(|p| PassError::User(vec![p.at(func.var(*param).span)]))?;
    }
    let mut rest = func.clone();
    let root = rest.root();
    rest.func_mut(root).params.retain(|p| !bound.iter().any(|(b, _)| b == p));
    let mut bindings = Vec::new();
    let mut new = copy_function_with(&rest, |importer| {
        let mut known: Vec<(SymVar, i64)> = sizes.iter().map(|(&v, &(s, _))| (v, s)).collect();
        known.sort_unstable();
        for (v, size) in known {
            let size = importer.dst.syms.int(size);
            importer.syms.insert(v, size);
        }
        for (param, tensor) in bound {
            let constant = importer.dst.constant(tensor.clone());
            if written(*param) {
                let var = importer.define(*param);
                bindings.push(Binding::bind(var, constant));
            } else {
                importer.vars.insert(*param, constant);
            }
        }
    });
    if !bindings.is_empty() {
        let block = new.add_block(BlockData { dataflow: false, bindings });
        let body = new.body();
        new.seq_mut(body).blocks.insert(0, block);
    }
    for (param, tensor) in bound {
        check_sizes(func, *param, tensor, &sizes)
            .map_err(|p| PassError::User(vec![p.at(func.var(*param).span)]))?;
    }
    match free_syms(&new, new.root()).first() {
        None => Ok(new),
        Some(&v) => Err(PassError::unsupported(
            format!("binding the only parameter that tells the size '{}'", new.syms.name(v)),
            "the size does not stand alone in a dim of the parameter; bind the size with BindSymbolicVars first",
        )),
    }
}

/// Enters the sizes that stand alone in a parameter's dims.
fn match_sizes(
    func: &Function,
    param: Var,
    tensor: &Tensor,
    sizes: &mut FxHashMap<SymVar, (i64, Var)>,
) -> Result<(), Problem> {
    let name = &func.var(param).name;
    let ty: Type = func.var(param).ty;
    let (rank, dtype) = match func.types.get(ty) {
        TypeData::Any => return Ok(()),
        TypeData::Tensor { dtype, .. } => (func.rank_of(ty), *dtype),
        _ => {
            return Err(Problem::new(format!(
                "parameter '{name}' is no tensor and cannot be bound to one"
            )));
        }
    };
    if let Some(dtype) = dtype.filter(|&d| d != tensor.dtype()) {
        let found = tensor.dtype();
        return Err(Problem::new(format!(
            "parameter '{name}' is of {dtype}, the tensor of {found}"
        )));
    }
    if let Some(rank) = rank.filter(|&r| r as usize != tensor.ndim()) {
        let found = tensor.ndim();
        return Err(Problem::new(format!(
            "parameter '{name}' has {rank} dims, the tensor {found}"
        )));
    }
    let Some(dims) = func.types.get(ty).dims() else { return Ok(()) };
    for (&dim, &size) in dims.iter().zip(tensor.shape()) {
        let Some(v) = func.syms.as_var(dim) else { continue };
        let (known, by) = *sizes.entry(v).or_insert((size, param));
        if known != size {
            let (sym, by) = (func.syms.name(v), &func.var(by).name);
            return Err(Problem::new(format!(
                "the size '{sym}' is {known} in '{by}' and {size} in '{name}'"
            )));
        }
    }
    Ok(())
}

/// Compares the dims of a parameter with those of its tensor, once all sizes are known.
fn check_sizes(
    func: &Function,
    param: Var,
    tensor: &Tensor,
    sizes: &FxHashMap<SymVar, (i64, Var)>,
) -> Result<(), Problem> {
    let Some(dims) = func.var_ty(param).dims().map(<[_]>::to_vec) else { return Ok(()) };
    let mut syms = func.syms.clone();
    let ints: FxHashMap<SymVar, _> = sizes.iter().map(|(&v, &(s, _))| (v, syms.int(s))).collect();
    for (i, (&dim, &size)) in dims.iter().zip(tensor.shape()).enumerate() {
        let value = syms.substitute(dim, &|v| ints.get(&v).copied());
        if syms.as_int(value).is_some_and(|v| v != size) {
            let (name, dim) = (&func.var(param).name, func.syms.display(dim));
            return Err(Problem::new(format!(
                "dim {i} of parameter '{name}' is {dim}, that of the tensor {size}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_to_bind_changes_nothing() {
        let mut module = IRModule::new();
        module.insert("main", Function::empty());
        let ctx = PassContext::new(pliant_ops::registry());
        let pass = BindParams { func_name: "main".into(), params: vec![] };
        let before = module.clone();
        let after = pass.apply(module, &ctx).expect("the function exists");
        let same = |m: &IRModule| m.get("main").and_then(|f| f.as_relax()).cloned();
        let (a, b) = (same(&before), same(&after));
        assert!(a.zip(b).is_some_and(|(a, b)| Arc::ptr_eq(&a, &b)));
        let missing = BindParams { func_name: "mian".into(), params: vec![] };
        let error = missing.apply(after, &ctx).expect_err("there is no such function");
        assert!(error.to_string().contains("no function 'mian'"), "{error}");
    }
}
