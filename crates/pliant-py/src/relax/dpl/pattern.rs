//! [`PatternNode`]: the Python handle of a pattern.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pliant_ir::relax::{self as ir, Function, Type};
use pliant_ops::te::{self, VarMap};
use pliant_pass::pattern::check::{check_one, describe};
use pliant_pass::pattern::node::{Literal, PatternKind};
use pliant_pass::pattern::{Defs, Pattern, SizePattern, TypePattern, match_expr};
use pliant_sym::{SymArena, SymVar};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashMap;

use super::pairs;
use crate::enter::guard;
use crate::error::{Error, Result};
use crate::relax::convert::{attr_value, needed, sinfo};
use crate::relax::home::Home;
use crate::relax::infos::dims_of;
use crate::relax::node::{Node, NodeRef};
use crate::relax::sinfo::{dims_to_syms, to_type};

/// A pattern. It is equal only to itself.
#[pyclass(frozen, module = "pliant.relax.dpl")]
pub struct PatternNode {
    /// The pattern.
    pub pattern: Pattern,
}

/// The key of a size variable in patterns. A pattern may outlive every expression that contains its
/// variables, so keys are kept for the lifetime of the process.
fn key_of(var: &te::Var) -> u64 {
    static KEYS: LazyLock<Mutex<FxHashMap<te::Var, u64>>> = LazyLock::new(Mutex::default);
    let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = keys.len() as u64;
    *keys.entry(var.clone()).or_insert(next)
}

/// A copy of a function's symbols, with the key of each.
fn keyed(func: &Function, vars: &mut VarMap) -> (Arc<SymArena>, Arc<[u64]>) {
    let symbols: Vec<SymVar> = func.syms.vars().collect();
    let keys = symbols.into_iter().map(|v| key_of(&vars.te_var(&func.syms, v))).collect();
    (Arc::new(func.syms.clone()), keys)
}

fn sizes_of(dims: &Bound<'_, PyAny>) -> Result<Box<[SizePattern]>> {
    let dims = dims_of(dims)?;
    let (mut func, mut vars) = (Function::empty(), VarMap::new());
    let syms = dims_to_syms(&mut func, &mut vars, &dims)?;
    let (arena, keys) = keyed(&func, &mut vars);
    Ok(syms.into_iter().map(|s| SizePattern::term(&arena, &keys, s)).collect())
}

fn type_of(info: &Bound<'_, PyAny>) -> Result<TypePattern> {
    let info = sinfo(info)?;
    let home = Home::building();
    let mut state = home.lock();
    let ty: Type = to_type(&mut state, &info)?;
    let (func, vars) = state.parts()?;
    let (arena, keys) = keyed(func, vars);
    Ok(TypePattern::of(func, ty, &arena, &keys))
}

/// A pattern of the given kind. Returns an error if the pattern can never match.
fn made(kind: PatternKind) -> Result<PatternNode> {
    let pattern = Pattern::new(kind);
    match check_one(&pattern, pliant_ops::registry()) {
        Some(problem) => Err(Error::Value(problem.to_string())),
        None => Ok(PatternNode { pattern }),
    }
}

fn list_of(list: Vec<PyRef<'_, PatternNode>>) -> Box<[Pattern]> {
    list.iter().map(|p| p.pattern.clone()).collect()
}

fn name_of(name: Option<String>) -> Option<Arc<str>> {
    name.filter(|n| !n.is_empty()).map(Into::into)
}

#[pymethods]
impl PatternNode {
    #[staticmethod]
    fn wildcard() -> Result<Self> {
        made(PatternKind::Wildcard)
    }

    #[staticmethod]
    fn op(name: &str) -> Result<Self> {
        let registry = pliant_ops::registry();
        match pliant_ir::OpRegistry::lookup(registry, name) {
            Some(op) => made(PatternKind::Op(op)),
            None => {
                let known = pliant_ir::OpRegistry::names(registry);
                let help = pliant_diag::suggest::did_you_mean(name, known);
                let help = help.map(|h| format!(" (help: {h})")).unwrap_or_default();
                Err(Error::Value(format!("there is no operator '{name}'{help}")))
            }
        }
    }

    #[staticmethod]
    fn var(name: Option<String>, dataflow: bool) -> Result<Self> {
        made(PatternKind::Var { name: name_of(name), dataflow })
    }

    #[staticmethod]
    fn global_var(name: Option<String>) -> Result<Self> {
        made(PatternKind::Global(name_of(name)))
    }

    #[staticmethod]
    fn extern_func(name: Option<String>) -> Result<Self> {
        made(PatternKind::Extern(name_of(name)))
    }

    #[staticmethod]
    fn constant() -> Result<Self> {
        made(PatternKind::Constant)
    }

    /// The pattern that matches exactly this expression.
    #[staticmethod]
    fn literal(expr: &Bound<'_, PyAny>) -> Result<Self> {
        let node = needed(expr)?;
        made(literal_kind(&node, expr)?)
    }

    #[staticmethod]
    fn shape_value(dims: &Bound<'_, PyAny>) -> Result<Self> {
        made(PatternKind::ShapeValue(sizes_of(dims)?))
    }

    #[staticmethod]
    fn tuple_(fields: Vec<PyRef<'_, PatternNode>>, unordered: bool) -> Result<Self> {
        made(PatternKind::Tuple { fields: list_of(fields), unordered })
    }

    #[staticmethod]
    fn get_item(tuple: PyRef<'_, PatternNode>, index: Option<i64>) -> Result<Self> {
        let field = |i: i64| {
            u32::try_from(i).map_err(|_| Error::Value(format!("a tuple has no field {i}")))
        };
        made(PatternKind::GetItem(tuple.pattern.clone(), index.map(field).transpose()?))
    }

    /// A pattern for calls of a callee that this pattern matches.
    fn call(&self, args: Vec<PyRef<'_, PatternNode>>, more: bool) -> Result<Self> {
        made(PatternKind::Call { callee: self.pattern.clone(), args: list_of(args), more })
    }

    fn or_(&self, other: &Self) -> Result<Self> {
        made(PatternKind::Or([self.pattern.clone(), other.pattern.clone()].into()))
    }

    fn and_(&self, other: &Self) -> Result<Self> {
        made(PatternKind::And([self.pattern.clone(), other.pattern.clone()].into()))
    }

    fn not_(&self) -> Result<Self> {
        made(PatternKind::Not(self.pattern.clone()))
    }

    fn has_attr(&self, attrs: &Bound<'_, PyDict>) -> Result<Self> {
        let mut list = Vec::new();
        for (key, value) in attrs {
            list.push((key.extract::<String>()?.into(), attr_value(&value)?));
        }
        made(PatternKind::Attrs(self.pattern.clone(), list.into()))
    }

    fn has_dtype(&self, dtype: &str) -> Result<Self> {
        let dtype = dtype.parse().map_err(|e| Error::Value(format!("{e}")))?;
        made(PatternKind::DType(self.pattern.clone(), dtype))
    }

    fn has_shape(&self, dims: &Bound<'_, PyAny>) -> Result<Self> {
        made(PatternKind::Shape(self.pattern.clone(), sizes_of(dims)?))
    }

    fn has_struct_info(&self, info: &Bound<'_, PyAny>) -> Result<Self> {
        made(PatternKind::Type(self.pattern.clone(), type_of(info)?))
    }

    /// Copies of patterns. Subpatterns that are shared stay shared.
    #[staticmethod]
    fn dup(patterns: Vec<PyRef<'_, PatternNode>>) -> Vec<PatternNode> {
        let copies = Pattern::dup_all(&list_of(patterns));
        copies.into_iter().map(|pattern| PatternNode { pattern }).collect()
    }

    /// The identity of the pattern, which is unique while the pattern lives.
    #[getter]
    fn id(&self) -> usize {
        self.pattern.id()
    }

    fn __repr__(&self) -> String {
        describe(&self.pattern)
    }

    /// Matches an expression. Returns pairs of pattern and expression for each subpattern, or
    /// `None` if there is no match. With `look_through`, variables of a function are replaced by
    /// their values. This always happens for an expression that belongs to no function.
    fn matches<'py>(
        &self,
        expr: &Bound<'py, PyAny>,
        look_through: bool,
    ) -> Result<Option<Bound<'py, PyList>>> {
        let node = needed(expr)?;
        let (home, e, look_through) = match node.get() {
            Node::InFunc(home, e) => (home.clone(), *e, look_through),
            _ => {
                let home = Home::building();
                let e = guard(|| {
                    let mut state = home.lock();
                    state.untyped_params = true;
                    let e = state.lower(&node)?;
                    state.finish(e, None, false, |_| {})?;
                    Ok(e)
                })?;
                (home, e, true)
            }
        };
        let found = guard(|| {
            let state = home.lock();
            let Some(func) = state.func() else { return Ok(None) };
            let registry = pliant_ops::registry();
            let defs = if look_through { Defs::of(func, registry, None) } else { Defs::none() };
            Ok(match_expr(func, &defs, registry, &self.pattern, e))
        })?;
        found.map(|found| pairs(expr.py(), &home, &found)).transpose()
    }
}

fn literal_kind(node: &NodeRef, expr: &Bound<'_, PyAny>) -> Result<PatternKind> {
    let refuse = || {
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
            _ => return refuse(),
        },
        Node::InFunc(home, e) => {
            let state = home.lock();
            let Some(func) = state.func() else { return refuse() };
            match func.expr(*e) {
                ir::ExprData::Constant(c) => {
                    PatternKind::Literal(Literal::Tensor(func.const_tensor(*c).clone()))
                }
                ir::ExprData::Str(s) => PatternKind::Literal(Literal::Str(func.str(*s).clone())),
                ir::ExprData::DType(d) => PatternKind::Literal(Literal::DType(*d)),
                ir::ExprData::Global(s) => PatternKind::Global(Some(func.str(*s).clone())),
                ir::ExprData::Extern(s) => PatternKind::Extern(Some(func.str(*s).clone())),
                _ => return refuse(),
            }
        }
        _ => return refuse(),
    })
}
