//! `te.extern`, `te.scan` and reductions of several values: stages that consist of statements.

use std::sync::Arc;

use pliant_ops::te::{self, Stmt, TeError, TupleReducer};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::nesting_limit::NestingLevel;
use crate::te::compute_and_reduce::axes_of;
use crate::te::prim_func::PrimFunc;
use crate::te::tensor::Tensor;
use crate::tir::prim_expr::{prim, tuple_of};

fn compile_error(e: TeError) -> Error {
    Error::Compile(e.to_string())
}

fn tensors(list: &[Bound<'_, Tensor>]) -> Vec<te::Tensor> {
    list.iter().map(|t| t.get().tensor.clone()).collect()
}

fn wrap_tensors(tensors: Vec<te::Tensor>) -> Vec<Tensor> {
    tensors.into_iter().map(|tensor| Tensor { tensor }).collect()
}

/// Creates the outputs of a stage that consists of a statement of `pliant.tir.stmt`. The statement
/// stores to the placeholders `outs`.
#[pyfunction]
pub fn te_extern(
    name: &str,
    outs: Vec<Bound<'_, Tensor>>,
    body: &Bound<'_, PyAny>,
) -> Result<Vec<Tensor>> {
    let mut stmts = Vec::new();
    catch_panic(|| push_statement(body, &mut stmts))?;
    catch_panic(|| Ok(wrap_tensors(te::extern_of(name, tensors(&outs), stmts))))
}

/// Creates the outputs of a loop function applied to tensors. The first buffers of the loop function are the inputs, and the
/// others are the outputs. The size variables of the loop function take the sizes of the inputs.
#[pyfunction]
pub fn te_extern_primfunc(
    py: Python<'_>,
    inputs: Vec<Bound<'_, Tensor>>,
    func: &Bound<'_, PrimFunc>,
) -> Result<Vec<Tensor>> {
    let view = func.get().view(py)?;
    let buffers = view.get().parameters()?;
    if inputs.len() >= buffers.len() {
        let (num_buffers, num_inputs) = (buffers.len(), inputs.len());
        return Err(Error::Value(format!(
            "te.extern_primfunc: the loop function has {num_buffers} buffers, but {num_inputs} inputs are passed, \
             so no buffer is left for an output"
        )));
    }
    let mut stmts = Vec::new();
    catch_panic(|| push_statement(&view.getattr("body")?, &mut stmts))?;
    let name = func.get().name();
    catch_panic(|| {
        let (mut vars, mut map, mut checks) = Default::default();
        for (param, input) in buffers.iter().zip(&tensors(&inputs)) {
            bind_sizes(&name, param, input, &mut vars, &mut checks)?;
            map_tensor(&mut map, param, input);
        }
        let mut outs = Vec::new();
        for param in &buffers[inputs.len()..] {
            let shape = param.shape().iter().map(|d| te::substitute(d, &vars)).collect();
            let out = te::placeholder(shape, param.dtype(), param.name().clone());
            map_tensor(&mut map, param, &out);
            outs.push(out);
        }
        checks.extend(te::replace_in_stmts(&stmts, &vars, &map));
        Ok(wrap_tensors(te::extern_of(&name, outs, checks)))
    })
}

fn map_tensor(map: &mut FxHashMap<te::Tensor, te::Tensor>, param: &te::Tensor, new: &te::Tensor) {
    map.insert(param.clone(), new.clone());
}

/// Binds the size variables in the shape of the buffer parameter `param`. A variable that is a dim by itself is bound to the size
/// of the same dim of `input`. For any other dim, adds a check that both sizes are equal.
fn bind_sizes(
    name: &str,
    param: &te::Tensor,
    input: &te::Tensor,
    vars: &mut FxHashMap<te::Var, te::Expr>,
    checks: &mut Vec<Stmt>,
) -> Result<()> {
    if param.ndim() != input.ndim() || param.dtype() != input.dtype() {
        let (expected_dtype, expected_rank) = (param.dtype(), param.ndim());
        let (dtype, rank) = (input.dtype(), input.ndim());
        return Err(Error::Type(format!(
            "te.extern_primfunc: the input for buffer '{}' of loop function '{name}' must have type {expected_dtype} and \
             {expected_rank} dims, but has type {dtype} and {rank} dims",
            param.name()
        )));
    }
    for (k, (dim, input_dim)) in param.shape().iter().zip(input.shape()).enumerate() {
        match dim.as_var().filter(|v| !vars.contains_key(v)) {
            Some(var) => drop(vars.insert(var.clone(), input_dim.clone())),
            None => {
                let same = te::eq(&te::substitute(dim, vars), input_dim);
                let message = format!(
                    "dim {k} of the input for buffer {} of loop function '{name}' is not {dim}",
                    param.name()
                );
                if !same.is_const(1) {
                    checks.push(Stmt::Assert(same, message.into()));
                }
            }
        }
    }
    Ok(())
}

/// Creates a scan, which computes states step by step: the first rows are those of `init`, each later row is that of `update`,
/// and `update` reads earlier rows through the placeholders `state`. Returns the states after all steps.
#[pyfunction]
pub fn te_scan(
    name: &str,
    init: Vec<Bound<'_, Tensor>>,
    update: Vec<Bound<'_, Tensor>>,
    state: Vec<Bound<'_, Tensor>>,
) -> Result<Vec<Tensor>> {
    let (init, update, state) = (tensors(&init), tensors(&update), tensors(&state));
    catch_panic(|| Ok(wrap_tensors(te::scan(name, &init, &update, &state).map_err(compile_error)?)))
}

/// Appends a statement of `pliant.tir.stmt` to a list.
fn push_statement(obj: &Bound<'_, PyAny>, list: &mut Vec<Stmt>) -> Result<()> {
    let _level = NestingLevel::enter("statements")?;
    let field = |name: &str| -> Result<Bound<'_, PyAny>> { Ok(obj.getattr(name)?) };
    let class = obj.get_type().name()?.to_string();
    let stmt = match class.as_str() {
        "SeqStmt" => {
            for item in field("seq")?.try_iter()? {
                push_statement(&item?, list)?;
            }
            return Ok(());
        }
        "For" => loop_statement(obj)?,
        "While" => Stmt::While(prim(&field("condition")?)?, statements(&field("body")?)?),
        "IfThenElse" => {
            let other = field("else_case")?;
            let other = if other.is_none() { Vec::new() } else { statements(&other)? };
            Stmt::If(prim(&field("condition")?)?, statements(&field("then_case")?)?, other)
        }
        "LetStmt" => {
            list.push(Stmt::Let(variable(&field("var")?)?, prim(&field("value")?)?));
            return push_statement(&field("body")?, list);
        }
        "Allocate" => {
            list.push(Stmt::Alloc(buffer(&field("buffer")?)?));
            return push_statement(&field("body")?, list);
        }
        "AssertStmt" => {
            let message: String = field("message")?.extract()?;
            list.push(Stmt::Assert(prim(&field("condition")?)?, message.into()));
            return push_statement(&field("body")?, list);
        }
        "BufferStore" => {
            let to = buffer(&field("buffer")?)?;
            let indices: Result<Vec<te::Expr>> = field("indices")?
                .try_iter()?
                .map(|i| Ok(te::cast(&prim(&i?)?, te::Ty::I64)))
                .collect();
            let value = te::cast(&prim(&field("value")?)?, to.dtype());
            Stmt::Store(to, indices?, value)
        }
        "Evaluate" => Stmt::Evaluate(prim(&field("value")?)?),
        "BlockRealize" => return block(obj, list),
        _ => {
            return Err(Error::Type(format!(
                "a statement of a loop function is required here, but the object is of class {class}"
            )));
        }
    };
    list.push(stmt);
    Ok(())
}

/// Converts a block of `pliant.tir.stmt` to statements of a stage, and appends them to `list`: the values of the block's axes, its
/// buffers, its init statement and its body.
fn block(realize: &Bound<'_, PyAny>, list: &mut Vec<Stmt>) -> Result<()> {
    let block = realize.getattr("block")?;
    let mut body = Vec::new();
    let mut is_first_iteration = te::bool_const(true);
    let values = realize.getattr("iter_values")?;
    for (k, axis) in block.getattr("iter_vars")?.try_iter()?.enumerate() {
        let axis = axis?;
        let var = variable(&axis.getattr("var")?)?;
        let value = te::cast(&prim(&values.get_item(k)?)?, var.ty());
        body.push(Stmt::Let(var.clone(), value));
        if axis.getattr("iter_type")?.extract::<i64>()? == 2 {
            let min = prim(&axis.getattr("dom")?.getattr("min")?)?;
            is_first_iteration = te::and(&is_first_iteration, &te::eq(&var.expr(), &min));
        }
    }
    for scratch in block.getattr("alloc_buffers")?.try_iter()? {
        body.push(Stmt::Alloc(buffer(&scratch?)?));
    }
    let init = block.getattr("init")?;
    if !init.is_none() {
        body.push(Stmt::If(is_first_iteration, statements(&init)?, Vec::new()));
    }
    push_statement(&block.getattr("body")?, &mut body)?;
    let predicate = te::cast(&prim(&realize.getattr("predicate")?)?, te::Ty::BOOL);
    if predicate.is_const(1) {
        // Scratch buffers live to the end of the enclosing list.
        list.extend(body);
    } else {
        list.push(Stmt::If(predicate, body, Vec::new()));
    }
    Ok(())
}

fn statements(obj: &Bound<'_, PyAny>) -> Result<Vec<Stmt>> {
    let mut list = Vec::new();
    push_statement(obj, &mut list)?;
    Ok(list)
}

/// Converts a loop to a loop that starts at 0. The body adds the original start to the loop
/// variable.
fn loop_statement(obj: &Bound<'_, PyAny>) -> Result<Stmt> {
    use pliant_ir::tir::ForKind;
    let var = variable(&obj.getattr("loop_var")?)?;
    let (min, extent) = (prim(&obj.getattr("min")?)?, prim(&obj.getattr("extent")?)?);
    let kind = match obj.getattr("kind")?.extract::<i64>()? {
        0 => ForKind::Serial,
        1 => ForKind::Parallel,
        2 => ForKind::Vectorized,
        3 => ForKind::Unrolled,
        other => {
            return Err(Error::Unsupported(format!(
                "the kind {other} of a loop is not supported; use serial (0), parallel (1), vectorized (2) or unrolled (3)"
            )));
        }
    };
    let mut body = statements(&obj.getattr("body")?)?;
    let extent = te::cast(&extent, te::Ty::I64);
    if min.is_const(0) && var.ty() == te::Ty::I64 {
        return Ok(Stmt::For { var, extent, kind, body });
    }
    let iteration = te::Var::size(var.name().clone());
    body.insert(0, Stmt::Let(var.clone(), te::cast(&(iteration.expr() + &min), var.ty())));
    Ok(Stmt::For { var: iteration, extent, kind, body })
}

fn variable(obj: &Bound<'_, PyAny>) -> Result<te::Var> {
    let e = prim(obj)?;
    e.as_var()
        .cloned()
        .ok_or_else(|| Error::Type(format!("a variable of a statement must be a tir.Var, not {e}")))
}

fn buffer(obj: &Bound<'_, PyAny>) -> Result<te::Tensor> {
    let tensor = obj.getattr("tensor")?;
    Ok(tensor.cast::<Tensor>().map_err(PyErr::from)?.get().tensor.clone())
}

/// A reduction of several values at once. Each field of this object is the reduction of one of the values.
#[pyclass(frozen, module = "pliant.te")]
pub struct TupleReduction {
    pub(super) reduced: te::TupleReduction,
    pub(super) field: Option<usize>,
}

#[pymethods]
impl TupleReduction {
    fn __len__(&self) -> usize {
        if self.field.is_some() { 1 } else { self.reduced.source.len() }
    }

    fn __getitem__(&self, index: usize) -> Result<TupleReduction> {
        if self.field.is_some() {
            return Err(Error::Index(
                "this is a single value of a reduction of several values, so it cannot be indexed"
                    .into(),
            ));
        }
        let count = self.reduced.source.len();
        if index >= count {
            return Err(Error::Index(format!(
                "the reduction has {count} values, so index {index} is out of range"
            )));
        }
        Ok(TupleReduction { reduced: self.reduced.clone(), field: Some(index) })
    }
}

/// Creates a reduction of several values. `combine` combines two groups of values, and `identity` is the neutral
/// group.
#[pyfunction]
#[pyo3(signature = (combine, identity, exprs, axis, cond=None, init=None))]
pub fn te_reduce_several(
    py: Python<'_>,
    combine: &Bound<'_, PyAny>,
    identity: Vec<Bound<'_, PyAny>>,
    exprs: Vec<Bound<'_, PyAny>>,
    axis: &Bound<'_, PyAny>,
    cond: Option<&Bound<'_, PyAny>>,
    init: Option<Vec<Bound<'_, PyAny>>>,
) -> Result<TupleReduction> {
    let list = |items: &[Bound<'_, PyAny>]| items.iter().map(prim).collect::<Result<Vec<_>>>();
    let source = list(&exprs)?;
    let identity: Vec<te::Expr> =
        list(&identity)?.iter().zip(&source).map(|(e, value)| te::cast(e, value.ty())).collect();
    let mut failure = None;
    let reducer = TupleReducer::new(identity, |x, y| {
        let combined = || -> Result<Vec<te::Expr>> {
            let returned = combine.call1((tuple_of(py, x)?, tuple_of(py, y)?))?;
            returned.try_iter()?.map(|item| prim(&item?)).collect()
        };
        combined().unwrap_or_else(|e| {
            failure = Some(e);
            Vec::new()
        })
    });
    if let Some(e) = failure {
        return Err(e);
    }
    let reduced = te::TupleReduction {
        reducer: Arc::new(reducer.map_err(|e| Error::Value(e.to_string()))?),
        source,
        axes: axes_of(axis)?,
        cond: cond.map(prim).transpose()?,
        init: init.as_deref().map(list).transpose()?,
    };
    Ok(TupleReduction { reduced, field: None })
}

/// Creates the stages of a formula that returns several values: a reduction of several values, or a
/// sequence of values.
pub(super) fn compute_several<'py>(
    py: Python<'py>,
    name: &str,
    shape: &[te::Expr],
    axes: &[te::Var],
    value: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    if let Ok(reduction) = value.cast::<TupleReduction>() {
        let TupleReduction { reduced, field } = reduction.get();
        let outputs = catch_panic(|| {
            te::compute_tuple_reduction(shape, name, axes, reduced)
                .map_err(|e| Error::Value(e.to_string()))
        })?;
        return match field {
            Some(k) => Ok(Bound::new(py, Tensor { tensor: outputs[*k].clone() })?.into_any()),
            None => Ok(PyList::new(py, wrap_tensors(outputs))?.into_any()),
        };
    }
    let values: Vec<te::Expr> = value.try_iter()?.map(|v| prim(&v?)).collect::<Result<_>>()?;
    let stage = |(k, value): (usize, &te::Expr)| {
        let label = format!("{name}.v{k}");
        Tensor { tensor: te::compute_over(shape.to_vec(), label, axes, value) }
    };
    let outputs: Vec<Tensor> = values.iter().enumerate().map(stage).collect();
    Ok(PyList::new(py, outputs)?.into_any())
}

/// Returns the indices that the user's formula receives, the variables of `axes`, as a Python tuple.
pub(super) fn index_tuple<'py>(py: Python<'py>, axes: &[te::Var]) -> Result<Bound<'py, PyTuple>> {
    let exprs: Vec<te::Expr> = axes.iter().map(te::Var::expr).collect();
    tuple_of(py, &exprs)
}
