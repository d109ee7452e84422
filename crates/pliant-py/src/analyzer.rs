//! `Analyzer`: simplifies and proves integer expressions. Variables created by `te.size_var` or `tir.SizeVar` are
//! assumed to be non-negative.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pliant_ops::te::{self, VarMap};
use pliant_sym::{
    Analyzer as Prover, Bound as Interval, Facts, ModularSet as Residues, Sym, SymArena,
};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::tir::axes::{Range, range};
use crate::tir::prim_expr::{PrimExpr, prim};
use crate::tir::scalar_expr_classes::wrap;

/// An analyzer of integer expressions: simplifies them, bounds their values and proves facts about them.
#[pyclass(frozen, module = "pliant.arith")]
pub struct Analyzer {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arena: SymArena,
    vars: VarMap,
    facts: Facts,
    scopes: Vec<Facts>,
}

impl State {
    /// Converts an expression to a symbolic integer. `None` if it contains floats, tensor elements
    /// or intrinsics that the analyzer does not support.
    fn sym(&mut self, expr: &te::Expr) -> Option<Sym> {
        for var in te::free_vars(expr) {
            if self.vars.get_sym(&var).is_none() {
                let sym = self.vars.sym_var(&mut self.arena, &var);
                if var.is_nonneg() {
                    self.facts.assume_size(sym);
                    // The fact is permanent, so it must survive the end of each open scope.
                    self.scopes.iter_mut().for_each(|facts| facts.assume_size(sym));
                }
            }
        }
        te::to_sym(&mut self.arena, expr, &mut self.vars)
    }

    fn required_sym(&mut self, expr: &te::Expr) -> Result<Sym> {
        self.sym(expr).ok_or_else(|| {
            Error::Type(format!(
                "'{expr}' is not an expression of integers, comparisons and variables"
            ))
        })
    }
}

impl Analyzer {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn proves(&self, predicate: impl FnOnce(&mut State) -> Result<Sym>) -> Result<bool> {
        catch_panic(|| {
            let mut guarded = self.state();
            let state = &mut *guarded;
            let predicate = predicate(state)?;
            Ok(Prover::new(&mut state.arena, &state.facts).prove(predicate).is_yes())
        })
    }
}

#[pymethods]
impl Analyzer {
    #[new]
    fn new() -> Self {
        Analyzer { state: Mutex::default() }
    }

    /// Simplifies an expression under the known facts. `steps` is accepted for compatibility with TVM and ignored.
    #[pyo3(signature = (expr, steps=2))]
    fn simplify<'py>(&self, expr: &Bound<'py, PyAny>, steps: u32) -> Result<Bound<'py, PyAny>> {
        let _ = steps;
        let e = prim(expr)?;
        let simple = catch_panic(|| {
            let mut guarded = self.state();
            let state = &mut *guarded;
            let Some(sym) = state.sym(&e) else { return Ok(te::simplify(&e)) };
            let simple = Prover::new(&mut state.arena, &state.facts).simplify(sym);
            Ok(te::cast(&te::from_sym(&state.arena, simple, &mut state.vars), e.ty()))
        })?;
        Ok(wrap(expr.py(), simple)?)
    }

    /// The same as `simplify`; for compatibility with TVM.
    fn rewrite_simplify<'py>(&self, expr: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.simplify(expr, 2)
    }

    /// The same as `simplify`; for compatibility with TVM.
    fn canonical_simplify<'py>(&self, expr: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        self.simplify(expr, 2)
    }

    /// Whether the condition is proved to hold always. Returns `False` also if the condition is neither proved nor refuted.
    /// `strength` is accepted for compatibility with TVM and ignored.
    #[pyo3(signature = (cond, strength=0))]
    fn can_prove(&self, cond: &Bound<'_, PyAny>, strength: u32) -> Result<bool> {
        let _ = strength;
        let cond = prim(cond)?;
        self.proves(|state| state.required_sym(&cond))
    }

    /// Whether `lhs == rhs` is proved to hold always.
    fn can_prove_equal(&self, lhs: &Bound<'_, PyAny>, rhs: &Bound<'_, PyAny>) -> Result<bool> {
        let (a, b) = (prim(lhs)?, prim(rhs)?);
        self.proves(|state| {
            let (a, b) = (state.required_sym(&a)?, state.required_sym(&b)?);
            Ok(state.arena.eq(a, b))
        })
    }

    /// Whether `expr < upper_bound` is proved to hold always.
    fn can_prove_less(
        &self,
        expr: &Bound<'_, PyAny>,
        upper_bound: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let (a, b) = (prim(expr)?, prim(upper_bound)?);
        self.proves(|state| {
            let (a, b) = (state.required_sym(&a)?, state.required_sym(&b)?);
            Ok(state.arena.lt(a, b))
        })
    }

    /// Whether `expr >= lower_bound` is proved to hold always.
    fn can_prove_greater_equal(
        &self,
        expr: &Bound<'_, PyAny>,
        lower_bound: &Bound<'_, PyAny>,
    ) -> Result<bool> {
        let (a, b) = (prim(expr)?, prim(lower_bound)?);
        self.proves(|state| {
            let (a, b) = (state.required_sym(&a)?, state.required_sym(&b)?);
            Ok(state.arena.le(b, a))
        })
    }

    /// Returns constant bounds on the values that the expression can take.
    #[pyo3(signature = (expr, dom_map=None))]
    fn const_int_bound(
        &self,
        expr: &Bound<'_, PyAny>,
        dom_map: Option<&Bound<'_, PyAny>>,
    ) -> Result<ConstIntBound> {
        if dom_map.is_some_and(|d| !d.is_none()) {
            return Err(Error::Unsupported(
                "the argument 'dom_map' is not supported: bind the variables to their ranges with Analyzer.bind"
                    .into(),
            ));
        }
        let e = prim(expr)?;
        catch_panic(|| {
            let mut guarded = self.state();
            let state = &mut *guarded;
            let sym = state.required_sym(&e)?;
            let bound = Prover::new(&mut state.arena, &state.facts).const_int_bound(sym);
            Ok(ConstIntBound { min_value: bound.min, max_value: bound.max })
        })
    }

    /// Returns a set `coeff * k + base` (for all integers `k`) that contains every value of the
    /// expression. The set may contain further values.
    fn modular_set(&self, expr: &Bound<'_, PyAny>) -> Result<ModularSet> {
        let e = prim(expr)?;
        catch_panic(|| {
            let mut guarded = self.state();
            let state = &mut *guarded;
            let sym = state.required_sym(&e)?;
            let Residues { coeff, base } =
                Prover::new(&mut state.arena, &state.facts).modular_set(sym);
            Ok(ModularSet { coeff, base })
        })
    }

    /// Declares that the variable is equal to an expression or lies in a range.
    #[pyo3(signature = (var, expr, allow_override=false))]
    fn bind(
        &self,
        var: &Bound<'_, PyAny>,
        expr: &Bound<'_, PyAny>,
        allow_override: bool,
    ) -> Result<()> {
        let var = variable(var)?;
        let mut guarded = self.state();
        let state = &mut *guarded;
        state.sym(&var.expr());
        let sym = state.vars.sym_var(&mut state.arena, &var);
        let known = state.facts.binding(sym).is_some();
        if known && !allow_override {
            return Err(Error::Value(format!(
                "variable {var} is already bound; pass allow_override=True to replace its binding"
            )));
        }
        if expr.is_instance_of::<Range>() || expr.is_instance_of::<pyo3::types::PyTuple>() {
            let (min, extent) = range(expr)?;
            let (lo, extent) = (state.required_sym(&min)?, state.required_sym(&extent)?);
            let (v, hi) = (state.arena.var(sym), state.arena.add(lo, extent));
            let (above, below) = (state.arena.le(lo, v), state.arena.lt(v, hi));
            state.facts.assume(&state.arena, above);
            state.facts.assume(&state.arena, below);
            return Ok(());
        }
        let e = prim(expr)?;
        if te::free_vars(&e).contains(&var) {
            return Err(Error::Value(format!(
                "variable {var} cannot be bound to {e}, which contains it"
            )));
        }
        let value = state.required_sym(&e)?;
        state.facts.bind(sym, value);
        Ok(())
    }

    /// Adds a fact about a variable: a `ConstIntBound` or a `ModularSet`.
    #[pyo3(signature = (var, info, override_info=false))]
    fn update(
        &self,
        var: &Bound<'_, PyAny>,
        info: &Bound<'_, PyAny>,
        override_info: bool,
    ) -> Result<()> {
        let _ = override_info;
        let var = variable(var)?;
        let mut guarded = self.state();
        let state = &mut *guarded;
        state.sym(&var.expr());
        let sym = state.vars.sym_var(&mut state.arena, &var);
        if let Ok(bound) = info.cast::<ConstIntBound>() {
            let bound = Interval::new(bound.get().min_value, bound.get().max_value);
            state.facts.assume_range(sym, bound.lo(), bound.hi());
        } else if let Ok(set) = info.cast::<ModularSet>() {
            state.facts.assume_residue(sym, set.get().coeff, set.get().base);
        } else {
            return Err(Error::Type(
                "Analyzer.update: the argument 'info' must be a ConstIntBound or a ModularSet"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Returns a context manager: in `with analyzer.constraint_scope(cond):` the analyzer assumes
    /// that the condition holds.
    fn constraint_scope(
        slf: &Bound<'_, Self>,
        constraint: &Bound<'_, PyAny>,
    ) -> Result<ConstraintScope> {
        Ok(ConstraintScope { analyzer: slf.clone().unbind(), constraint: prim(constraint)? })
    }

    /// Returns an analyzer with the same facts.
    fn clone(&self) -> Analyzer {
        let state = self.state();
        Analyzer {
            state: Mutex::new(State {
                arena: state.arena.clone(),
                vars: state.vars.clone(),
                facts: state.facts.clone(),
                scopes: Vec::new(),
            }),
        }
    }
}

fn variable(obj: &Bound<'_, PyAny>) -> Result<te::Var> {
    let e = obj.cast::<PrimExpr>().ok().and_then(|e| e.get().expr.as_var().cloned());
    match e {
        Some(var) => Ok(var),
        None => Err(Error::Type(format!(
            "the variable of an Analyzer method must be a tir.Var, not {}",
            obj.repr()?
        ))),
    }
}

/// A condition that is assumed inside a `with` block.
#[pyclass(frozen, module = "pliant.arith")]
pub struct ConstraintScope {
    analyzer: Py<Analyzer>,
    constraint: te::Expr,
}

#[pymethods]
impl ConstraintScope {
    fn __enter__(&self) -> Result<()> {
        let mut guarded = self.analyzer.get().state();
        let state = &mut *guarded;
        let constraint = state.required_sym(&self.constraint)?;
        state.scopes.push(state.facts.clone());
        state.facts.assume(&state.arena, constraint);
        Ok(())
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, exc: &Bound<'_, pyo3::types::PyTuple>) {
        let _ = exc;
        let mut state = self.analyzer.get().state();
        if let Some(facts) = state.scopes.pop() {
            state.facts = facts;
        }
    }
}

/// The smallest and the largest value of an expression. An unbounded end is `NEG_INF` or `POS_INF`.
#[pyclass(frozen, eq, hash, module = "pliant.arith")]
#[derive(PartialEq, Eq, Hash)]
pub struct ConstIntBound {
    #[pyo3(get)]
    min_value: i64,
    #[pyo3(get)]
    max_value: i64,
}

#[pymethods]
impl ConstIntBound {
    #[classattr]
    const POS_INF: i64 = Interval::POS_INF;
    #[classattr]
    const NEG_INF: i64 = Interval::NEG_INF;

    #[new]
    fn new(min_value: i64, max_value: i64) -> Self {
        ConstIntBound { min_value, max_value }
    }

    fn __repr__(&self) -> String {
        let end = |v: i64| match v {
            Interval::POS_INF => "POS_INF".to_string(),
            Interval::NEG_INF => "NEG_INF".to_string(),
            v => v.to_string(),
        };
        format!("ConstIntBound[{}, {}]", end(self.min_value), end(self.max_value))
    }
}

/// The integers `coeff * k + base`. If `coeff` is 0, this is the single integer `base`.
#[pyclass(frozen, eq, hash, module = "pliant.arith")]
#[derive(PartialEq, Eq, Hash)]
pub struct ModularSet {
    #[pyo3(get)]
    coeff: i64,
    #[pyo3(get)]
    base: i64,
}

#[pymethods]
impl ModularSet {
    #[new]
    fn new(coeff: i64, base: i64) -> Self {
        let Residues { coeff, base } = Residues::new(coeff, base);
        ModularSet { coeff, base }
    }

    fn __repr__(&self) -> String {
        format!("ModularSet(coeff={}, base={})", self.coeff, self.base)
    }
}
