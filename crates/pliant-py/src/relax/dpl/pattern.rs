//! [`PatternNode`]: the Python handle of a pattern.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pliant_ir::relax::{self as ir, Function, Type};
use pliant_ops::te::{self, VarMap};
use pliant_pass::pattern::impossible_patterns::{check_one, describe};
use pliant_pass::pattern::pattern_nodes::{Literal, PatternKind};
use pliant_pass::pattern::{Defs, Pattern, SizePattern, TypePattern, match_expr};
use pliant_sym::{SymArena, SymVar};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashMap;

use super::pairs;
use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::relax::classes::struct_info::dims_of;
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::function_owner::FuncOwner;
use crate::relax::struct_info::{dims_to_syms, to_type};
use crate::relax::value_conversion::{attr_value, required_operand, sinfo};

/// A pattern. It is equal only to itself.
#[pyclass(frozen, module = "pliant.relax.dpl")]
pub struct PatternNode {
    /// The pattern in the representation of the crate `pliant_pass`.
    pub pattern: Pattern,
}

/// Returns the key of a size variable, a number that identifies the variable in patterns: variables with equal keys must match
/// equal sizes. A pattern may outlive every expression with its variables, so keys are kept for the lifetime of the process.
fn size_var_key(var: &te::Var) -> u64 {
    static KEYS: LazyLock<Mutex<FxHashMap<te::Var, u64>>> = LazyLock::new(Mutex::default);
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = keys.len() as u64;
    *keys.entry(var.clone()).or_insert(next)
}

/// Copies the symbol arena of a function. Returns the copy, and for each symbol the key of its size
/// variable (see [`size_var_key`]).
fn symbols_with_keys(func: &Function, vars: &mut VarMap) -> (Arc<SymArena>, Arc<[u64]>) {
    let symbols: Vec<SymVar> = func.syms.vars().collect();
    let keys = symbols.into_iter().map(|v| size_var_key(&vars.te_var(&func.syms, v))).collect();
    (Arc::new(func.syms.clone()), keys)
}

fn size_patterns(dims: &Bound<'_, PyAny>) -> Result<Box<[SizePattern]>> {
    let dims = dims_of(dims)?;
    let (mut func, mut vars) = (Function::empty(), VarMap::new());
    let syms = dims_to_syms(&mut func, &mut vars, &dims)?;
    let (arena, keys) = symbols_with_keys(&func, &mut vars);
    Ok(syms.into_iter().map(|s| SizePattern::term(&arena, &keys, s)).collect())
}

fn type_pattern(info: &Bound<'_, PyAny>) -> Result<TypePattern> {
    let info = sinfo(info)?;
    let owner = FuncOwner::building();
    let mut state = owner.lock();
    let ty: Type = to_type(&mut state, &info)?;
    let (func, vars) = state.func_and_vars()?;
    let (arena, keys) = symbols_with_keys(func, vars);
    Ok(TypePattern::of(func, ty, &arena, &keys))
}

/// Creates a pattern. Returns an error if the pattern can never match.
fn checked_pattern(kind: PatternKind) -> Result<PatternNode> {
    let pattern = Pattern::new(kind);
    match check_one(&pattern, pliant_ops::registry()) {
        Some(problem) => Err(Error::Value(problem.to_string())),
        None => Ok(PatternNode { pattern }),
    }
}

fn patterns_of(list: Vec<PyRef<'_, PatternNode>>) -> Box<[Pattern]> {
    list.iter().map(|p| p.pattern.clone()).collect()
}

fn non_empty(name: Option<String>) -> Option<Arc<str>> {
    name.filter(|n| !n.is_empty()).map(Into::into)
}

#[pymethods]
impl PatternNode {
    #[staticmethod]
    fn wildcard() -> Result<Self> {
        checked_pattern(PatternKind::Wildcard)
    }

    #[staticmethod]
    fn op(name: &str) -> Result<Self> {
        let registry = pliant_ops::registry();
        match pliant_ir::OpRegistry::lookup(registry, name) {
            Some(op) => checked_pattern(PatternKind::Op(op)),
            None => {
                let known = pliant_ir::OpRegistry::names(registry);
                let help = pliant_diag::spelling_suggestions::did_you_mean(name, known);
                let help = help.map(|h| format!(" (help: {h})")).unwrap_or_default();
                Err(Error::Value(format!("there is no operator '{name}'{help}")))
            }
        }
    }

    #[staticmethod]
    fn var(name: Option<String>, dataflow: bool) -> Result<Self> {
        checked_pattern(PatternKind::Var { name: non_empty(name), dataflow })
    }

    #[staticmethod]
    fn global_var(name: Option<String>) -> Result<Self> {
        checked_pattern(PatternKind::Global(non_empty(name)))
    }

    #[staticmethod]
    fn extern_func(name: Option<String>) -> Result<Self> {
        checked_pattern(PatternKind::Extern(non_empty(name)))
    }

    #[staticmethod]
    fn constant() -> Result<Self> {
        checked_pattern(PatternKind::Constant)
    }

    /// Creates a pattern that matches exactly this expression.
    #[staticmethod]
    fn literal(expr: &Bound<'_, PyAny>) -> Result<Self> {
        let node = required_operand(expr)?;
        checked_pattern(literal_kind(&node, expr)?)
    }

    #[staticmethod]
    fn shape_value(dims: &Bound<'_, PyAny>) -> Result<Self> {
        checked_pattern(PatternKind::ShapeValue(size_patterns(dims)?))
    }

    #[staticmethod]
    fn tuple_(fields: Vec<PyRef<'_, PatternNode>>, unordered: bool) -> Result<Self> {
        checked_pattern(PatternKind::Tuple { fields: patterns_of(fields), unordered })
    }

    #[staticmethod]
    fn get_item(tuple: PyRef<'_, PatternNode>, index: Option<i64>) -> Result<Self> {
        let field = |i: i64| {
            u32::try_from(i).map_err(|_| {
                Error::Value(format!(
                    "the argument 'index' must be an integer from 0 to 2^32 - 1, not {i}"
                ))
            })
        };
        checked_pattern(PatternKind::GetItem(tuple.pattern.clone(), index.map(field).transpose()?))
    }

    /// Creates a pattern for calls whose callee matches this pattern and whose arguments match `args`. With `more`, there may be
    /// further arguments.
    fn call(&self, args: Vec<PyRef<'_, PatternNode>>, more: bool) -> Result<Self> {
        checked_pattern(PatternKind::Call {
            callee: self.pattern.clone(),
            args: patterns_of(args),
            more,
        })
    }

    fn or_(&self, other: &Self) -> Result<Self> {
        checked_pattern(PatternKind::Or([self.pattern.clone(), other.pattern.clone()].into()))
    }

    fn and_(&self, other: &Self) -> Result<Self> {
        checked_pattern(PatternKind::And([self.pattern.clone(), other.pattern.clone()].into()))
    }

    fn not_(&self) -> Result<Self> {
        checked_pattern(PatternKind::Not(self.pattern.clone()))
    }

    fn has_attr(&self, attrs: &Bound<'_, PyDict>) -> Result<Self> {
        let mut list = Vec::new();
        for (key, value) in attrs {
            list.push((key.extract::<String>()?.into(), attr_value(&value)?));
        }
        checked_pattern(PatternKind::Attrs(self.pattern.clone(), list.into()))
    }

    fn has_dtype(&self, dtype: &str) -> Result<Self> {
        let dtype = dtype.parse().map_err(|e| Error::Value(format!("{e}")))?;
        checked_pattern(PatternKind::DType(self.pattern.clone(), dtype))
    }

    fn has_shape(&self, dims: &Bound<'_, PyAny>) -> Result<Self> {
        checked_pattern(PatternKind::Shape(self.pattern.clone(), size_patterns(dims)?))
    }

    fn has_struct_info(&self, info: &Bound<'_, PyAny>) -> Result<Self> {
        checked_pattern(PatternKind::Type(self.pattern.clone(), type_pattern(info)?))
    }

    /// Copies patterns. Copies of shared subpatterns are shared, too.
    #[staticmethod]
    fn dup(patterns: Vec<PyRef<'_, PatternNode>>) -> Vec<PatternNode> {
        let copies = Pattern::dup_all(&patterns_of(patterns));
        copies.into_iter().map(|pattern| PatternNode { pattern }).collect()
    }

    /// Returns the address of the pattern, which is unique while the pattern lives.
    #[getter]
    fn id(&self) -> usize {
        self.pattern.id()
    }

    fn __repr__(&self) -> String {
        describe(&self.pattern)
    }

    /// Matches an expression. Returns pairs of pattern and expression for each subpattern, or `None` if there is no
    /// match. With `look_through`, variables of a function are replaced by their values. This always happens for an
    /// expression that belongs to no function.
    fn matches<'py>(
        &self,
        expr: &Bound<'py, PyAny>,
        look_through: bool,
    ) -> Result<Option<Bound<'py, PyList>>> {
        let node = required_operand(expr)?;
        let (owner, e, look_through) = match node.get() {
            Node::InFunc(owner, e) => (owner.clone(), *e, look_through),
            _ => {
                let owner = FuncOwner::building();
                let e = catch_panic(|| {
                    let mut state = owner.lock();
                    state.untyped_params = true;
                    let e = state.lower(&node)?;
                    state.finish(e, None, false, |_| {})?;
                    Ok(e)
                })?;
                (owner, e, true)
            }
        };
        let found = catch_panic(|| {
            let state = owner.lock();
            let Some(func) = state.func() else { return Ok(None) };
            let registry = pliant_ops::registry();
            let defs = if look_through { Defs::of(func, registry, None) } else { Defs::none() };
            Ok(match_expr(func, &defs, registry, &self.pattern, e))
        })?;
        found.map(|found| pairs(expr.py(), &owner, &found)).transpose()
    }
}

fn literal_kind(node: &NodeRef, expr: &Bound<'_, PyAny>) -> Result<PatternKind> {
    let not_a_literal = || {
        Err(Error::Type(format!(
            "is_expr takes a constant, number, string, dtype, shape or function name, not {} (help: is_var matches \
             variables)",
            expr.get_type().name()?
        )))
    };
    Ok(match node.get() {
        Node::Constant(t) => PatternKind::Literal(Literal::Tensor(t.clone())),
        Node::Str(s) => PatternKind::Literal(Literal::Str(s.clone())),
        Node::DType(d) => PatternKind::Literal(Literal::DType(*d)),
        Node::Global(name) => PatternKind::Global(Some(name.clone())),
        Node::Extern(name) => PatternKind::Extern(Some(name.clone())),
        Node::Prim(e) => match e.kind() {
            te::ExprKind::Int(v) => PatternKind::Literal(Literal::Int(*v, e.ty().dtype)),
            te::ExprKind::Float(v) => PatternKind::Literal(Literal::Float(*v, e.ty().dtype)),
            _ => return not_a_literal(),
        },
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            let Some(func) = state.func() else { return not_a_literal() };
            match func.expr(*e) {
                ir::ExprData::Constant(c) => {
                    PatternKind::Literal(Literal::Tensor(func.const_tensor(*c).clone()))
                }
                ir::ExprData::Str(s) => PatternKind::Literal(Literal::Str(func.str(*s).clone())),
                ir::ExprData::DType(d) => PatternKind::Literal(Literal::DType(*d)),
                ir::ExprData::Global(s) => PatternKind::Global(Some(func.str(*s).clone())),
                ir::ExprData::Extern(s) => PatternKind::Extern(Some(func.str(*s).clone())),
                _ => return not_a_literal(),
            }
        }
        _ => return not_a_literal(),
    })
}
