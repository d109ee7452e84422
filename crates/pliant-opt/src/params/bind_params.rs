//! # What it does
//! Replaces parameters of one function by constants: tensors, scalars, shapes, strings and tuples of them. Parameters are
//! identified by name or by index. If a value determines the size of a symbol, the symbol is replaced by this number everywhere
//! in the function.
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
//! The function exists and has the parameters, and the values match their types.
//!
//! # Keeps
//! The order of the other parameters.
//!
//! # Never
//! Evaluates operators on the constants; [`FoldConstant`](crate::canonicalize::fold_constant) does this.

use std::sync::Arc;

use pliant_ir::relax::visit::{copy_function_with, free_syms};
use pliant_ir::relax::{Binding, BlockData, Expr, Function, Type, TypeData, Var};
use pliant_ir::{IRModule, Sym, SymVar};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::analysis::memory_aliases::{MemoryAliases, ParamUses};
use crate::common::operators_after_lowering::{format_names, relax_func};
use crate::common::repeat_type_inference::reinfer;

/// Identifies a parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKey {
    /// The parameter with this name.
    Name(Arc<str>),
    /// The parameter at this position, counted from 0.
    Index(usize),
}

/// The value of a bound parameter.
#[derive(Clone, Debug)]
pub enum ParamValue {
    /// A tensor value.
    Tensor(Tensor),
    /// An integer scalar value.
    Int(i64),
    /// A float scalar value.
    Float(f64),
    /// A shape value, as its dims.
    Shape(Vec<i64>),
    /// A string value.
    Str(Arc<str>),
    /// A tuple value, as one value per field.
    Tuple(Vec<ParamValue>),
    /// A list of values. It becomes a shape if the parameter's type is a shape, or if the type is neither shape nor tuple and all
    /// values are integers. Otherwise it becomes a tuple.
    List(Vec<ParamValue>),
    /// A value with two representations: as a tensor and as another value. The type of the parameter decides which one is used.
    Either(Tensor, Box<ParamValue>),
}

impl ParamValue {
    /// Converts a value to the form that a type requires: tensor, scalar, shape, string or tuple. Values that do not match the
    /// type are returned unchanged.
    fn coerce_to(&self, func: &Function, ty: Type) -> ParamValue {
        let data = func.types.get(ty);
        let dims = |values: &[ParamValue]| -> Option<Vec<i64>> {
            let size = |v: &ParamValue| match v {
                ParamValue::Int(v) => Some(*v),
                ParamValue::Either(_, other) => match **other {
                    ParamValue::Int(v) => Some(v),
                    _ => None,
                },
                _ => None,
            };
            values.iter().map(size).collect()
        };
        match (self, data) {
            (ParamValue::Either(tensor, _), TypeData::Tensor { .. }) => {
                ParamValue::Tensor(tensor.clone())
            }
            (ParamValue::Either(_, other), _) => other.coerce_to(func, ty),
            (ParamValue::List(values) | ParamValue::Tuple(values), TypeData::Tuple(fields)) => {
                let fields = fields.iter().map(Some).chain(std::iter::repeat(None));
                let field = |(v, ty): (&ParamValue, Option<&Type>)| match ty {
                    Some(&ty) => v.coerce_to(func, ty),
                    None => v.clone(),
                };
                ParamValue::Tuple(values.iter().zip(fields).map(field).collect())
            }
            (ParamValue::List(values), TypeData::Shape { .. }) => {
                dims(values).map_or_else(|| ParamValue::Tuple(values.clone()), ParamValue::Shape)
            }
            (ParamValue::List(values), _) => match dims(values) {
                Some(dims) if !dims.is_empty() => ParamValue::Shape(dims),
                _ => ParamValue::Tuple(values.iter().map(|v| v.coerce_to(func, ty)).collect()),
            },
            _ => self.clone(),
        }
    }
}

/// The pass that replaces parameters of a function by constants. See the module documentation.
#[derive(Clone, Debug)]
pub struct BindParams {
    /// The name of the function whose parameters are bound.
    pub func_name: Arc<str>,
    /// The parameters to bind, with their values.
    pub params: Vec<(ParamKey, ParamValue)>,
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
        let resolved = self.resolve(func);
        let resolved =
            resolved.map_err(|p| PassError::User(vec![p.in_function(&*self.func_name)]))?;
        let mut aliases = ParamUses::of_in_place_module(&module)
            .map(|uses| MemoryAliases::of_with_results_written(func, &uses));
        let mut written = |p: Var| aliases.as_mut().is_some_and(|m| m.is_written(p));
        let mut new = replace_params(func, &resolved, &mut written)
            .map_err(|e| e.in_function(&self.func_name))?;
        reinfer(&mut new, &module, ctx.ops, false).map_err(|e| e.in_function(&self.func_name))?;
        module.insert(self.func_name.clone(), new);
        Ok(module)
    }
}

impl BindParams {
    /// Looks up the parameters that the keys identify. Returns each parameter with its value.
    ///
    /// # Errors
    /// If a parameter does not exist or is bound twice.
    fn resolve(&self, func: &Function) -> Result<Vec<(Var, ParamValue)>, Problem> {
        let params = func.params();
        let mut out: Vec<(Var, ParamValue)> = Vec::new();
        for (key, value) in &self.params {
            let param = match key {
                ParamKey::Name(name) => params
                    .iter()
                    .copied()
                    .find(|&p| func.var(p).name == *name)
                    .ok_or_else(|| {
                        let names = params.iter().map(|&p| &*func.var(p).name);
                        Problem::new(format!("there is no parameter '{name}' to bind"))
                            .with_help(format_names("the parameters of the function are:", names))
                    })?,
                ParamKey::Index(i) => params.get(*i).copied().ok_or_else(|| {
                    let count = params.len();
                    Problem::new(format!(
                        "there is no parameter {i} to bind: the function has {count} parameters"
                    ))
                })?,
            };
            if out.iter().any(|(p, _)| *p == param) {
                let name = &func.var(param).name;
                return Err(Problem::new(format!("parameter '{name}' is bound twice")));
            }
            out.push((param, value.coerce_to(func, func.var(param).ty)));
        }
        Ok(out)
    }
}

/// Returns the function with parameters replaced by values. If a call may write to a parameter, the parameter becomes a variable
/// that is bound to the constant, so that all reads see the same tensor.
fn replace_params(
    func: &Function,
    bound: &[(Var, ParamValue)],
    written: &mut dyn FnMut(Var) -> bool,
) -> Result<Function, PassError> {
    let mut known_sizes = KnownSizes { func, known: FxHashMap::default() };
    for (param, value) in bound {
        let data = func.var(*param);
        known_sizes
            .record_sizes(&data.name, data.ty, value)
            .map_err(|p| PassError::User(vec![p.at(data.span)]))?;
    }
    let mut remaining_func = func.clone();
    let root = remaining_func.root();
    remaining_func.func_mut(root).params.retain(|p| !bound.iter().any(|(b, _)| b == p));
    let mut bindings = Vec::new();
    let mut new = copy_function_with(&remaining_func, |importer| {
        let mut size_values: Vec<(SymVar, i64)> =
            known_sizes.known.iter().map(|(&v, s)| (v, s.0)).collect();
        size_values.sort_unstable();
        for (v, size) in size_values {
            let size = importer.dst.syms.int(size);
            importer.syms.insert(v, size);
        }
        for (param, value) in bound {
            let value = literal(importer.dst, value, func, func.var(*param).ty);
            if written(*param) {
                let var = importer.define(*param);
                bindings.push(Binding::bind(var, value));
            } else {
                importer.vars.insert(*param, value);
            }
        }
    });
    if !bindings.is_empty() {
        let block = new.add_block(BlockData { dataflow: false, bindings });
        let body = new.body();
        new.seq_mut(body).blocks.insert(0, block);
    }
    for (param, value) in bound {
        let data = func.var(*param);
        known_sizes
            .check_sizes(&data.name, data.ty, value)
            .map_err(|p| PassError::User(vec![p.at(data.span)]))?;
    }
    match free_syms(&new, new.root()).first() {
        None => Ok(new),
        Some(&v) => Err(PassError::unsupported(
            format!(
                "binding a parameter to a value would leave the size '{}' undefined, because the type of no other parameter \
                 contains it",
                new.syms.name(v)
            ),
            "no dim of the bound parameter equals this size, so the value does not determine it; bind the size with \
             BindSymbolicVars first",
        )),
    }
}

/// Creates the constant expression of `value` in `dst`, for a parameter of `src` that has type `ty`.
fn literal(dst: &mut Function, value: &ParamValue, src: &Function, ty: Type) -> Expr {
    let data = src.types.get(ty);
    match value {
        ParamValue::Tensor(tensor) | ParamValue::Either(tensor, _) => dst.constant(tensor.clone()),
        ParamValue::Int(value) => {
            let value = dst.syms.int(*value);
            dst.int_value(value, data.dtype().unwrap_or(DType::Int64))
        }
        ParamValue::Float(value) => dst.float_value(*value, data.dtype().unwrap_or(DType::Float64)),
        ParamValue::Shape(dims) => {
            let dims: Vec<_> = dims.iter().map(|&d| dst.syms.int(d)).collect();
            dst.shape(&dims)
        }
        ParamValue::Str(text) => dst.str_value(text),
        ParamValue::Tuple(values) | ParamValue::List(values) => {
            let tys = match data {
                TypeData::Tuple(fields) => fields.to_vec(),
                _ => vec![ty; values.len()],
            };
            let fields = values.iter().zip(tys).map(|(v, ty)| literal(dst, v, src, ty));
            let fields: Vec<Expr> = fields.collect();
            dst.tuple(&fields)
        }
    }
}

/// The symbolic sizes whose numbers follow from the values of bound parameters.
struct KnownSizes<'a> {
    func: &'a Function,
    /// Maps each size to (number, name of the parameter whose value determines it).
    known: FxHashMap<SymVar, (i64, String)>,
}

impl KnownSizes<'_> {
    /// Records the values of those sizes that are single symbols in a parameter's type. The value of the parameter determines
    /// them.
    ///
    /// # Errors
    /// If the value does not match the type, or two values determine different sizes.
    fn record_sizes(&mut self, name: &str, ty: Type, value: &ParamValue) -> Result<(), Problem> {
        let func = self.func;
        let mismatch = || Err(Problem::new(mismatch_text(func, name, ty, value)));
        match (func.types.get(ty), value) {
            (TypeData::Any, _) => Ok(()),
            (TypeData::Tensor { dtype, .. }, ParamValue::Tensor(tensor)) => {
                if let Some(dtype) = dtype.filter(|&d| d != tensor.dtype()) {
                    let found = tensor.dtype();
                    return Err(Problem::new(format!(
                        "parameter '{name}' has dtype {dtype}, but the tensor has {found}"
                    )));
                }
                if let Some(rank) = func.rank_of(ty).filter(|&r| r as usize != tensor.ndim()) {
                    let found = tensor.ndim();
                    return Err(Problem::new(format!(
                        "parameter '{name}' has {rank} dims, but the tensor has {found}"
                    )));
                }
                self.record_dims(name, func.types.get(ty).dims(), tensor.shape())
            }
            (TypeData::Prim { dtype, value }, ParamValue::Int(found)) if !dtype.is_float() => {
                if !dtype.has_int(*found) || *dtype == DType::UInt64 && *found < 0 {
                    return mismatch();
                }
                self.record_dims(name, value.as_ref().map(std::slice::from_ref), &[*found])
            }
            (TypeData::Prim { dtype, .. }, ParamValue::Float(_)) if dtype.is_float() => Ok(()),
            (TypeData::Shape { .. }, ParamValue::Shape(dims)) => match func.rank_of(ty) {
                Some(rank) if rank as usize != dims.len() => mismatch(),
                _ => self.record_dims(name, func.types.get(ty).dims(), dims),
            },
            (TypeData::Tuple(fields), ParamValue::Tuple(values))
                if fields.len() == values.len() =>
            {
                for (i, (&field, value)) in fields.iter().zip(values).enumerate() {
                    self.record_sizes(&format!("{name}[{i}]"), field, value)?;
                }
                Ok(())
            }
            _ => mismatch(),
        }
    }

    fn record_dims(
        &mut self,
        name: &str,
        dims: Option<&[Sym]>,
        sizes: &[i64],
    ) -> Result<(), Problem> {
        for (&dim, &size) in dims.unwrap_or_default().iter().zip(sizes) {
            let Some(v) = self.func.syms.as_var(dim) else { continue };
            if size < 0 {
                let sym = self.func.syms.name(v);
                return Err(Problem::new(format!(
                    "the value of '{name}' sets the size '{sym}' to {size}, but a size cannot be negative"
                )));
            }
            let (recorded_size, recorded_by) =
                self.known.entry(v).or_insert((size, name.to_string()));
            if *recorded_size != size {
                let sym = self.func.syms.name(v);
                return Err(Problem::new(format!(
                    "the size '{sym}' is {recorded_size} in '{recorded_by}' and {size} in '{name}'"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the sizes in a parameter's type equal those of its value. The sizes of all parameters must have been recorded
    /// before.
    fn check_sizes(&self, name: &str, ty: Type, value: &ParamValue) -> Result<(), Problem> {
        let func = self.func;
        let one;
        let (dims, found): (Option<&[Sym]>, &[i64]) = match (func.types.get(ty), value) {
            (TypeData::Tuple(fields), ParamValue::Tuple(values)) => {
                let mut fields = fields.iter().zip(values).enumerate();
                return fields.try_for_each(|(i, (&ty, v))| {
                    self.check_sizes(&format!("{name}[{i}]"), ty, v)
                });
            }
            (data, ParamValue::Tensor(tensor)) => (data.dims(), tensor.shape()),
            (data, ParamValue::Shape(dims)) => (data.dims(), dims),
            (TypeData::Prim { value, .. }, ParamValue::Int(found)) => {
                one = [*found];
                (value.as_ref().map(std::slice::from_ref), &one)
            }
            _ => return Ok(()),
        };
        let mut syms = func.syms.clone();
        let ints: FxHashMap<SymVar, _> =
            self.known.iter().map(|(&v, s)| (v, syms.int(s.0))).collect();
        for (i, (&dim, &size)) in dims.unwrap_or_default().iter().zip(found).enumerate() {
            let value = syms.substitute(dim, &|v| ints.get(&v).copied());
            if syms.as_int(value).is_some_and(|v| v != size) {
                let dim = func.syms.display(dim);
                let text = match func.types.get(ty) {
                    TypeData::Tensor { .. } => {
                        format!(
                            "dim {i} of parameter '{name}' is {dim}, but the tensor has size {size}"
                        )
                    }
                    TypeData::Shape { .. } => {
                        format!("dim {i} of parameter '{name}' is {dim}, but the shape has {size}")
                    }
                    _ => format!("parameter '{name}' is {dim}, but its value is {size}"),
                };
                return Err(Problem::new(text));
            }
        }
        Ok(())
    }
}

/// Formats the reason why a value does not match a parameter, for an error message: the type of the parameter and the kind of the
/// value.
fn mismatch_text(func: &Function, name: &str, ty: Type, value: &ParamValue) -> String {
    let value_text = match value {
        ParamValue::Tensor(_) | ParamValue::Either(..) => "a tensor".to_string(),
        ParamValue::Int(value) => format!("the integer {value}"),
        ParamValue::Float(value) => format!("the float {value}"),
        ParamValue::Shape(dims) => format!("the shape {dims:?}"),
        ParamValue::Str(text) => format!("the string {text:?}"),
        ParamValue::Tuple(fields) | ParamValue::List(fields) => {
            format!("a tuple of length {}", fields.len())
        }
    };
    format!(
        "parameter '{name}' is of type {} and cannot be bound to {value_text}",
        pliant_ir::print::type_text(func, ty)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binding_no_parameters_keeps_the_function_and_checks_its_name() {
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
