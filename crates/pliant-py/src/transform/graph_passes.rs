//! Constructors of the graph passes that have parameters. They have the names of the passes and TVM's argument
//! names.

use std::sync::Arc;

use pliant_ir::relax::{Function, TensorShape, Type, TypeData, Var};
use pliant_ops::te::{self, VarMap};
use pliant_opt::canonicalize::convert_to_dataflow::ConvertToDataflow;
use pliant_opt::canonicalize::dead_code_elimination::DeadCodeElimination;
use pliant_opt::canonicalize::eliminate_common_subexpr::EliminateCommonSubexpr;
use pliant_opt::canonicalize::fold_constant::FoldConstant;
use pliant_opt::canonicalize::topological_sort::{
    StartingLocation, TopologicalSort, TraversalOrder,
};
use pliant_opt::differentiate::gradient::{Gradient, Warn};
use pliant_opt::params::bind_params::{BindParams, ParamKey};
use pliant_opt::params::bind_symbolic_vars::{BindSymbolicVars, SizeTerm};
use pliant_opt::params::bundle_model_params::BundleModelParams;
use pliant_opt::params::lift_transform_params::{LiftTransformParams, SharedTransform};
use pliant_opt::params::update_param_struct_info::UpdateParamStructInfo;
use pliant_sym::SymArena;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::relax::classes::wrap;
use crate::relax::expr_accessors::in_func;
use crate::relax::function_owner::FuncOwner;
use crate::relax::struct_info::{SInfo, ShapeInfo, dim_to_sym, dims_to_syms};
use crate::relax::value_conversion::sinfo;
use crate::tir::prim_expr::try_prim;
use crate::transform::param_value::param_value;
use crate::transform::python_pass::pass_error;
use crate::transform::rust_pass::CorePass;

/// Converts an argument to a name. The argument is a string, or an object with a name (a
/// graph-level or loop-level variable).
fn name_of(obj: &Bound<'_, PyAny>, what: &str) -> Result<Arc<str>> {
    if let Ok(name) = obj.cast::<PyString>() {
        return Ok(name.to_str()?.into());
    }
    for attribute in ["name_hint", "name"] {
        if let Some(name) = obj.getattr_opt(attribute)?
            && let Ok(name) = name.cast::<PyString>()
        {
            return Ok(name.to_str()?.into());
        }
    }
    let class = obj.get_type().name()?.to_string();
    Err(Error::Type(format!("{what} must be a name or a variable, not {class}")))
}

/// Creates a pass that binds parameters of a function to values: tensors, numbers, shapes, strings,
/// and tuples of these. Keys are names, variables or indices of parameters.
#[pyfunction]
#[pyo3(name = "BindParams")]
pub fn bind_params(func_name: String, params: &Bound<'_, PyDict>) -> Result<CorePass> {
    let mut list = Vec::new();
    for (key, value) in params.iter() {
        let key = match key.cast::<PyInt>() {
            Ok(index) => ParamKey::Index(index.extract()?),
            Err(_) => ParamKey::Name(name_of(&key, "BindParams: the key of a parameter")?),
        };
        list.push((key, param_value(&value)?));
    }
    Ok(CorePass::of(BindParams { func_name: func_name.into(), params: list }))
}

/// Creates a pass that differentiates a function. The parameters in `require_grads` are names or variables. Issues a `UserWarning`
/// for each parameter on which the target does not depend.
#[pyfunction]
#[pyo3(name = "Gradient", signature = (func_name, require_grads=None, target_index=0))]
pub fn gradient(
    func_name: &Bound<'_, PyAny>,
    require_grads: Option<&Bound<'_, PyAny>>,
    target_index: usize,
) -> Result<CorePass> {
    let func_name = name_of(func_name, "Gradient: func_name")?;
    let what = "Gradient: an element of require_grads";
    let require_grads = match require_grads {
        None => None,
        Some(list) if list.is_instance_of::<PyList>() || list.is_instance_of::<PyTuple>() => {
            let names = list.try_iter()?.map(|item| name_of(&item?, what));
            Some(names.collect::<Result<Vec<_>>>()?)
        }
        Some(one) => Some(vec![name_of(one, what)?]),
    };
    let warn: Warn = Arc::new(|message: &str| {
        Python::attach(|py| {
            let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
            let text = std::ffi::CString::new(message.replace('\0', "?")).unwrap_or_default();
            if let Err(error) = PyErr::warn(py, &category, &text, 2) {
                error.write_unraisable(py, None);
            }
        });
    });
    Ok(CorePass::of(Gradient { func_name, require_grads, target_index, warn: Some(warn) }))
}

/// Creates a pass that binds symbolic sizes to values, in one function or in all. Keys are names or
/// `tir.Var`s. Values are integers or integer expressions, whose variables refer to sizes of the
/// function by name.
#[pyfunction]
#[pyo3(name = "BindSymbolicVars", signature = (binding_map, func_name=None))]
pub fn bind_symbolic_vars(
    binding_map: &Bound<'_, PyDict>,
    func_name: Option<String>,
) -> Result<CorePass> {
    let mut list = Vec::new();
    for (key, value) in binding_map.iter() {
        let name = name_of(&key, "BindSymbolicVars: the key of a size")?;
        let term = match value.is_instance_of::<PyBool>() {
            true => None,
            false => try_prim(&value)?.and_then(|e| size_term(&e)),
        };
        let term = match term {
            Some(term) => term,
            None => {
                let class = value.get_type().name()?.to_string();
                return Err(Error::Type(format!(
                    "BindSymbolicVars: the value of size '{name}' must be an integer or an expression over sizes, not {class}"
                )));
            }
        };
        list.push((name, term));
    }
    let func_name = func_name.map(Into::into);
    Ok(CorePass::of(BindSymbolicVars { binding_map: list, func_name }))
}

/// Converts an integer expression over sizes; `None` for other expressions.
fn size_term(e: &te::Expr) -> Option<SizeTerm> {
    let mut arena = SymArena::new();
    let size = te::to_sym(&mut arena, e, &mut VarMap::new())?;
    if arena.is_predicate(size) {
        return None;
    }
    Some(SizeTerm { arena: arena.into(), size })
}

/// Creates a pass that combines the parameters of a model, from the index given by the attribute
/// `num_input` on, into one tuple.
#[pyfunction]
#[pyo3(name = "BundleModelParams", signature = (param_tuple_name=None))]
pub fn bundle_model_params(param_tuple_name: Option<String>) -> CorePass {
    let default = BundleModelParams::default();
    let name = param_tuple_name.map_or(default.param_tuple_name, Into::into);
    CorePass::of(BundleModelParams { param_tuple_name: name })
}

/// Creates a pass that converts sequences of at least `min_size` bindings without side effects to
/// dataflow blocks.
#[pyfunction]
#[pyo3(name = "ConvertToDataflow", signature = (min_size=2))]
pub fn convert_to_dataflow(min_size: i64) -> Result<CorePass> {
    let min_size = usize::try_from(min_size).map_err(|_| {
        Error::Value(format!(
            "ConvertToDataflow: min_size must be a non-negative number of bindings, not {min_size}"
        ))
    })?;
    Ok(CorePass::of(ConvertToDataflow { min_size }))
}

/// Creates a pass that removes unused bindings, and functions that are not reachable from public
/// functions or `entry_functions`.
#[pyfunction]
#[pyo3(name = "DeadCodeElimination", signature = (entry_functions=None))]
pub fn dead_code_elimination(entry_functions: Option<Vec<String>>) -> CorePass {
    let entry_functions = entry_functions.unwrap_or_default().into_iter().map(Into::into).collect();
    CorePass::of(DeadCodeElimination { entry_functions })
}

/// Creates a pass that merges bindings that compute the same value. With `call_only`, it merges
/// only calls.
#[pyfunction]
#[pyo3(name = "EliminateCommonSubexpr", signature = (call_only=false))]
pub fn eliminate_common_subexpr(call_only: bool) -> CorePass {
    CorePass::of(EliminateCommonSubexpr { call_only })
}

/// Creates a pass that evaluates constant expressions whose values have at most `max_elements`
/// elements.
#[pyfunction]
#[pyo3(name = "FoldConstant", signature = (max_elements=None))]
pub fn fold_constant(max_elements: Option<u64>) -> CorePass {
    CorePass::of(FoldConstant { max_elements, ..FoldConstant::default() })
}

/// Creates a pass that lifts computations that depend only on the parameters of a model into
/// separate functions: one for each function, one for all functions (`shared_transform=True`), or
/// one for the functions with the given names.
#[pyfunction]
#[pyo3(name = "LiftTransformParams", signature = (shared_transform=None))]
pub fn lift_transform_params(shared_transform: Option<&Bound<'_, PyAny>>) -> Result<CorePass> {
    let shared = match shared_transform {
        None => None,
        Some(flag) if flag.is_instance_of::<PyBool>() => {
            flag.is_truthy()?.then_some(SharedTransform::All)
        }
        Some(names) if names.is_instance_of::<PyString>() => {
            return Err(Error::Type(format!(
                "LiftTransformParams: shared_transform must be a bool or a list of names (help: write [{}])",
                names.repr()?
            )));
        }
        Some(names) => {
            let class = names.get_type().name()?.to_string();
            let list = names.extract().map_err(|_| {
                Error::Type(format!(
                    "LiftTransformParams: shared_transform must be a bool or a list of names, not {class}"
                ))
            })?;
            Some(SharedTransform::Of(list))
        }
    };
    Ok(CorePass::of(LiftTransformParams { shared }))
}

/// Creates a pass that sorts the bindings of dataflow blocks. `order` is "depth-first" or
/// "breadth-first". `direction` (or `starting_location`) is "from-inputs" or "from-outputs".
#[pyfunction]
#[pyo3(name = "TopologicalSort", signature = (order="depth-first", direction="from-inputs", starting_location=None))]
pub fn topological_sort(
    order: &str,
    direction: &str,
    starting_location: Option<&str>,
) -> Result<CorePass> {
    let order = match order {
        "depth-first" => TraversalOrder::DepthFirst,
        "breadth-first" => TraversalOrder::BreadthFirst,
        other => return Err(unknown_choice("order", other, "depth-first, breadth-first")),
    };
    let starting_location = match starting_location.unwrap_or(direction) {
        "from-inputs" => StartingLocation::FromInputs,
        "from-outputs" => StartingLocation::FromOutputs,
        other => return Err(unknown_choice("direction", other, "from-inputs, from-outputs")),
    };
    Ok(CorePass::of(TopologicalSort { order, starting_location }))
}

fn unknown_choice(what: &str, value: &str, known: &str) -> Error {
    Error::Value(format!(
        "TopologicalSort: the argument {what} must be one of {known}, not '{value}'"
    ))
}

/// Creates a pass that gives parameters the struct infos that `sinfo_func(var)` returns, and infers
/// all other types again. A parameter keeps its type if `sinfo_func` returns `None`.
#[pyfunction]
#[pyo3(name = "UpdateParamStructInfo")]
pub fn update_param_struct_info(sinfo_func: Bound<'_, PyAny>) -> Result<CorePass> {
    if !sinfo_func.is_callable() {
        let class = sinfo_func.get_type().name()?.to_string();
        return Err(Error::Type(format!(
            "UpdateParamStructInfo: sinfo_func must be a function from a parameter to a struct info, not {class}"
        )));
    }
    let sinfo_func = sinfo_func.unbind();
    let types = move |_: &str, func: &mut Function| {
        Python::attach(|py| {
            param_types(sinfo_func.bind(py), func)
                .map_err(|e| pass_error(py, e.into(), String::new()))
        })
    };
    Ok(CorePass::of(UpdateParamStructInfo { sinfo_func: Arc::new(types) }))
}

/// Calls a Python function to get the new types of a function's parameters.
fn param_types(
    sinfo_func: &Bound<'_, PyAny>,
    func: &mut Function,
) -> std::result::Result<Vec<(Var, Type)>, Error> {
    let params = func.params().to_vec();
    let exprs: Vec<_> = params.iter().map(|&p| func.var_expr(p)).collect();
    // Python code receives a copy, so it may keep the variables for any length of time.
    let owner = FuncOwner::of(Arc::new(func.clone()));
    let mut out = Vec::new();
    for (&param, &e) in params.iter().zip(&exprs) {
        let var = wrap(sinfo_func.py(), in_func(&owner, e))?;
        let info = sinfo_func.call1((var,))?;
        if !info.is_none() {
            let info = sinfo(&info)?;
            let mut vars = owner.lock().vars.clone();
            let ty = type_of(func, &mut vars, &info)?;
            owner.lock().vars = vars;
            out.push((param, ty));
        }
    }
    Ok(out)
}

/// Converts a struct info to a type of the function. The recursion is bounded, because the nesting
/// depth of struct infos is limited.
fn type_of(func: &mut Function, vars: &mut VarMap, info: &SInfo) -> Result<Type> {
    let all = |func: &mut Function, vars: &mut VarMap, list: &[SInfo]| -> Result<Box<[Type]>> {
        list.iter().map(|t| type_of(func, vars, t)).collect()
    };
    let data = match info {
        SInfo::Object => TypeData::Any,
        SInfo::Prim(dtype, value) => {
            let value = value.as_ref().map(|v| dim_to_sym(func, vars, v)).transpose()?;
            TypeData::Prim { dtype: *dtype, value }
        }
        SInfo::Shape(Some(dims), _) => TypeData::shape(dims_to_syms(func, vars, dims)?),
        SInfo::Shape(None, ndim) => TypeData::Shape { dims: None, ndim: *ndim },
        SInfo::Tensor(shape, dtype) => {
            let shape = match shape {
                ShapeInfo::Dims(dims) => TensorShape::Dims(dims_to_syms(func, vars, dims)?.into()),
                ShapeInfo::Rank(n) => TensorShape::Rank(*n),
                ShapeInfo::Unknown => TensorShape::Unknown,
                ShapeInfo::Var(_) => {
                    return Err(Error::Value(
                        "UpdateParamStructInfo: the shape of a parameter must be a list of sizes, not a variable".into(),
                    ));
                }
            };
            TypeData::Tensor { shape, dtype: *dtype }
        }
        SInfo::Tuple(fields) => TypeData::Tuple(all(func, vars, fields)?),
        SInfo::Func(params, ret, pure) => {
            let params = params.as_ref().map(|p| all(func, vars, p)).transpose()?;
            TypeData::Callable { params, ret: type_of(func, vars, ret)?, pure: *pure }
        }
    };
    Ok(func.intern(data))
}
