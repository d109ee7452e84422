//! Bodies of loop functions in Python: converts the statements and expressions of a loop function to objects of
//! `pliant.tir.stmt`.
//!
//! Each buffer is represented by a placeholder tensor, and its elements by elements of that tensor. A [`PrimFuncBody`] records
//! which variable or buffer of the function each object represents, so that a function rebuilt from the objects has the same
//! variables and buffers.

use std::sync::Arc;

use pliant_ir::tir::{
    Buffer, Expr, ExprData, ForKind, IterKind, PrimFunc as IrPrimFunc, Stmt, StmtData, Var, VarTy,
};
use pliant_ops::te::{self, ExprKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::relax::value_conversion::attr_object;
use crate::te::tensor::Tensor;
use crate::tir::prim_func_objects::ObjectMap;
use crate::tir::scalar_expr_classes::wrap;

/// The body of a loop function as Python objects, with the variables and buffers that these represent.
#[pyclass(frozen, module = "pliant.tir")]
pub struct PrimFuncBody {
    func: Arc<IrPrimFunc>,
    pub(super) vars: FxHashMap<te::Var, Var>,
    pub(super) buffers: FxHashMap<te::Tensor, Buffer>,
    body: Py<PyAny>,
    params: Py<PyAny>,
    buffer_map: Py<PyAny>,
}

impl PrimFuncBody {
    /// Reads the body of a function. Some of its variables and buffers may already have Python objects.
    ///
    /// # Errors
    /// An error of the Python interpreter.
    pub(super) fn read(py: Python<'_>, ir: &Arc<IrPrimFunc>, known: &ObjectMap) -> Result<Self> {
        let mut reader = BodyReader {
            py,
            func: ir,
            classes: PyModule::import(py, "pliant.tir.stmt")?,
            objects: known.clone(),
            exprs: FxHashMap::default(),
        };
        let params: Result<Vec<_>> =
            ir.params.iter().map(|&p| Ok(wrap(py, reader.var(p).expr())?)).collect();
        let params = params?;
        let buffer_map = PyDict::new(py);
        for (param, &buffer) in &ir.buffer_map {
            buffer_map.set_item(wrap(py, reader.var(*param).expr())?, reader.buffer(buffer)?)?;
        }
        let body = reader.stmt(ir.body)?;
        let ObjectMap { vars, tensors } = reader.objects;
        Ok(PrimFuncBody {
            func: ir.clone(),
            vars: vars.into_iter().map(|(ir, te)| (te, ir)).collect(),
            buffers: tensors.into_iter().map(|(ir, te)| (te, ir)).collect(),
            body: body.unbind(),
            params: PyList::new(py, params)?.into_any().unbind(),
            buffer_map: buffer_map.into_any().unbind(),
        })
    }
}

#[pymethods]
impl PrimFuncBody {
    /// Returns the body as a Python object.
    #[getter]
    pub(crate) fn body(&self, py: Python<'_>) -> Py<PyAny> {
        self.body.clone_ref(py)
    }

    /// Returns the parameters as Python objects.
    #[getter]
    pub(crate) fn params(&self, py: Python<'_>) -> Py<PyAny> {
        self.params.clone_ref(py)
    }

    /// Returns the buffer of each tensor parameter.
    #[getter]
    pub(crate) fn buffer_map(&self, py: Python<'_>) -> Py<PyAny> {
        self.buffer_map.clone_ref(py)
    }
}

impl PrimFuncBody {
    /// Returns the placeholders of the tensor parameters, in order.
    ///
    /// # Errors
    /// If a parameter is a scalar.
    pub(crate) fn parameters(&self) -> Result<Vec<te::Tensor>> {
        let tensor = |param: &Var| {
            let buffer = self.func.buffer_map.get(param)?;
            self.buffers.iter().find(|(_, b)| *b == buffer).map(|(tensor, _)| tensor.clone())
        };
        let missing = |p: &Var| {
            let name = &self.func.var(*p).name;
            Error::Unsupported(format!(
                "te.extern_primfunc: parameter '{name}' of the PrimFunc is a scalar, but all parameters must be buffers"
            ))
        };
        self.func.params.iter().map(|p| tensor(p).ok_or_else(|| missing(p))).collect()
    }
}

/// Creates Python objects from the arenas of a function.
struct BodyReader<'a, 'py> {
    py: Python<'py>,
    func: &'a IrPrimFunc,
    classes: Bound<'py, PyModule>,
    objects: ObjectMap,
    exprs: FxHashMap<Expr, te::Expr>,
}

impl<'py> BodyReader<'_, 'py> {
    fn var(&mut self, v: Var) -> te::Var {
        let data = self.func.var(v);
        let new = || match data.ty {
            VarTy::Value(ty) => te::Var::new(data.name.clone(), ty),
            VarTy::Handle => te::Var::handle(data.name.clone()),
        };
        self.objects.vars.entry(v).or_insert_with(new).clone()
    }

    fn tensor(&mut self, b: Buffer) -> Result<te::Tensor> {
        if let Some(tensor) = self.objects.tensors.get(&b) {
            return Ok(tensor.clone());
        }
        let data = self.func.buffer(b).clone();
        let shape: Result<Vec<te::Expr>> = data.shape.iter().map(|&d| self.expr(d)).collect();
        let tensor = te::placeholder(shape?, data.dtype, data.name);
        self.objects.tensors.insert(b, tensor.clone());
        Ok(tensor)
    }

    fn buffer(&mut self, b: Buffer) -> Result<Bound<'py, PyAny>> {
        let tensor = Bound::new(self.py, Tensor { tensor: self.tensor(b)? })?;
        Ok(self.classes.getattr("Buffer")?.call1((tensor,))?)
    }

    /// Converts an expression of the loop function to a tensor expression. Operands are converted first, with an explicit stack.
    fn expr(&mut self, root: Expr) -> Result<te::Expr> {
        let mut stack = vec![(root, false)];
        while let Some((e, ready)) = stack.pop() {
            if self.exprs.contains_key(&e) {
                continue;
            }
            if !ready {
                stack.push((e, true));
                pliant_ir::tir::visit::for_each_operand(self.func.expr(e), |o| {
                    stack.push((o, false));
                });
                continue;
            }
            let converted = self.node(e)?;
            self.exprs.insert(e, converted);
        }
        Ok(self.exprs[&root].clone())
    }

    fn node(&mut self, e: Expr) -> Result<te::Expr> {
        let ty = self.func.expr_ty(e);
        let list = |this: &Self, items: &[Expr]| -> Vec<te::Expr> {
            items.iter().map(|i| this.exprs[i].clone()).collect()
        };
        let get = |this: &Self, e: &Expr| this.exprs[e].clone();
        let kind = match self.func.expr(e).clone() {
            ExprData::Int(v, _) => ExprKind::Int(v),
            ExprData::Float(bits, _) => ExprKind::Float(f64::from_bits(bits)),
            ExprData::Str(s) => ExprKind::Str(s),
            ExprData::Var(v) => return Ok(self.var(v).expr()),
            ExprData::Cast(_, a) => ExprKind::Cast(get(self, &a)),
            ExprData::Binary(op, a, b) => ExprKind::Binary(op, get(self, &a), get(self, &b)),
            ExprData::Not(a) => ExprKind::Not(get(self, &a)),
            ExprData::Select(c, a, b) => {
                ExprKind::Select(get(self, &c), get(self, &a), get(self, &b))
            }
            ExprData::Load(buffer, indices) => {
                ExprKind::Load(self.tensor(buffer)?, list(self, &indices))
            }
            ExprData::Call(intrin, args, _) => ExprKind::Call(intrin, list(self, &args)),
            ExprData::Ramp(base, stride, _) => ExprKind::Ramp(get(self, &base), get(self, &stride)),
            ExprData::Broadcast(a, _) => ExprKind::Broadcast(get(self, &a)),
        };
        Ok(te::Expr::new(kind, ty))
    }

    fn object(&mut self, e: Expr) -> Result<Bound<'py, PyAny>> {
        let e = self.expr(e)?;
        Ok(wrap(self.py, e)?)
    }

    fn make(&self, class: &str, args: Vec<Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        let args = pyo3::types::PyTuple::new(self.py, args)?;
        Ok(self.classes.getattr(class)?.call1(args)?)
    }

    fn list(&self, items: Vec<Bound<'py, PyAny>>) -> Result<Bound<'py, PyAny>> {
        Ok(PyList::new(self.py, items)?.into_any())
    }

    fn none(&self) -> Bound<'py, PyAny> {
        self.py.None().into_bound(self.py)
    }

    fn annotations(
        &self,
        annotations: &[(Arc<str>, pliant_ir::AttrValue)],
    ) -> Result<Bound<'py, PyAny>> {
        let dict = PyDict::new(self.py);
        for (key, value) in annotations {
            dict.set_item(&**key, attr_object(self.py, value)?)?;
        }
        Ok(dict.into_any())
    }

    /// Converts a statement of the loop function to a Python object. Recurses into nested bodies; the verifier limits their depth.
    fn stmt(&mut self, s: Stmt) -> Result<Bound<'py, PyAny>> {
        let py = self.py;
        match self.func.stmt(s).clone() {
            StmtData::Seq(items) => {
                let items: Result<Vec<_>> = items.into_iter().map(|s| self.stmt(s)).collect();
                self.make("SeqStmt", vec![self.list(items?)?])
            }
            StmtData::For { var, min, extent, kind, body, annotations } => {
                let kind = match kind {
                    ForKind::Serial => 0,
                    ForKind::Parallel => 1,
                    ForKind::Vectorized => 2,
                    ForKind::Unrolled => 3,
                };
                let var = wrap(py, self.var(var).expr())?;
                let (min, extent) = (self.object(min)?, self.object(extent)?);
                let kind = pyo3::types::PyInt::new(py, kind).into_any();
                let (body, annotations) = (self.stmt(body)?, self.annotations(&annotations)?);
                self.make("For", vec![var, min, extent, kind, body, self.none(), annotations])
            }
            StmtData::While(cond, body) => {
                let args = vec![self.object(cond)?, self.stmt(body)?];
                self.make("While", args)
            }
            StmtData::If(cond, then, otherwise) => {
                let cond = self.object(cond)?;
                let then = self.stmt(then)?;
                let otherwise = otherwise.map(|s| self.stmt(s)).transpose()?;
                let otherwise = otherwise.unwrap_or_else(|| self.none());
                self.make("IfThenElse", vec![cond, then, otherwise])
            }
            StmtData::Let(var, value, body) => {
                let var = wrap(py, self.var(var).expr())?;
                let args = vec![var, self.object(value)?, self.stmt(body)?];
                self.make("LetStmt", args)
            }
            StmtData::Store { buffer, indices, value } => {
                let buffer = self.buffer(buffer)?;
                let value = self.object(value)?;
                let indices: Result<Vec<_>> = indices.iter().map(|&i| self.object(i)).collect();
                self.make("BufferStore", vec![buffer, value, self.list(indices?)?])
            }
            StmtData::Alloc(buffer, body) => {
                let args = vec![self.buffer(buffer)?, self.stmt(body)?];
                self.make("Allocate", args)
            }
            StmtData::Evaluate(e) => {
                let args = vec![self.object(e)?];
                self.make("Evaluate", args)
            }
            StmtData::Assert(cond, message, body) => {
                let message = pyo3::types::PyString::new(py, &message).into_any();
                let args = vec![self.object(cond)?, message, self.stmt(body)?];
                self.make("AssertStmt", args)
            }
            StmtData::Block(block) => self.block(&block),
        }
    }

    fn block(&mut self, data: &pliant_ir::tir::BlockData) -> Result<Bound<'py, PyAny>> {
        let py = self.py;
        let (mut axes, mut values) = (Vec::new(), Vec::new());
        for iter in &data.iters {
            let kind = match iter.kind {
                IterKind::Spatial => 0,
                IterKind::Reduce => 2,
                IterKind::Opaque => 4,
            };
            let range = vec![self.object(iter.min)?, self.object(iter.extent)?];
            let range = self.make("range_of", range)?;
            let var = wrap(py, self.var(iter.var).expr())?;
            let kind = pyo3::types::PyInt::new(py, kind).into_any();
            axes.push(self.make("IterVar", vec![range, var, kind])?);
            values.push(self.object(iter.binding)?);
        }
        let reads = self.regions(data.reads.as_deref())?;
        let writes = self.regions(data.writes.as_deref())?;
        let body = self.stmt(data.body)?;
        let init = data.init.map(|s| self.stmt(s)).transpose()?.unwrap_or_else(|| self.none());
        let allocs: Result<Vec<_>> = data.allocs.iter().map(|&b| self.buffer(b)).collect();
        let name = pyo3::types::PyString::new(py, &data.name).into_any();
        let annotations = self.annotations(&data.annotations)?;
        let (axes, allocs) = (self.list(axes)?, self.list(allocs?)?);
        let none = self.list(Vec::new())?;
        let args = vec![axes, reads, writes, name, body, init, allocs, none, annotations];
        let block = self.make("Block", args)?;
        let predicate = match data.predicate {
            Some(p) => self.object(p)?,
            None => wrap(py, te::bool_const(true))?,
        };
        self.make("BlockRealize", vec![self.list(values)?, predicate, block])
    }

    fn regions(
        &mut self,
        regions: Option<&[pliant_ir::tir::BufferRegion]>,
    ) -> Result<Bound<'py, PyAny>> {
        let Some(regions) = regions else { return Ok(self.none()) };
        let mut out = Vec::new();
        for region in regions {
            let mut ranges = Vec::new();
            for &(start, extent) in &region.region {
                let args = vec![self.object(start)?, self.object(extent)?];
                ranges.push(self.make("range_of", args)?);
            }
            let buffer = self.buffer(region.buffer)?;
            out.push(self.make("BufferRegion", vec![buffer, self.list(ranges)?])?);
        }
        self.list(out)
    }
}

/// Returns the direct operands of a scalar expression.
#[pyfunction]
pub fn tir_operands<'py>(
    expr: &Bound<'py, crate::tir::prim_expr::PrimExpr>,
) -> Result<Vec<Bound<'py, PyAny>>> {
    operands(&expr.get().expr).into_iter().map(|e| Ok(wrap(expr.py(), e)?)).collect()
}

fn operands(e: &te::Expr) -> Vec<te::Expr> {
    match e.kind() {
        // The axes of a reduction are not operands, so a reduction is treated as a leaf.
        ExprKind::Reduce(_) => Vec::new(),
        _ => e.children().into_iter().cloned().collect(),
    }
}

/// Returns the same scalar expression with other operands.
#[pyfunction]
pub fn tir_with_operands<'py>(
    expr: &Bound<'py, crate::tir::prim_expr::PrimExpr>,
    operands: Vec<Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let old = &expr.get().expr;
    let list: Result<Vec<te::Expr>> = operands.iter().map(crate::tir::prim_expr::prim).collect();
    let list = list?;
    let count = self::operands(old).len();
    if list.len() != count {
        return Err(Error::Value(format!(
            "the expression {old} has {count} operands, but {} replacements are passed",
            list.len()
        )));
    }
    let one = |i: usize| list[i].clone();
    let rebuilt = catch_panic(|| {
        Ok(match old.kind() {
            // Operators on vectors are not folded.
            ExprKind::Binary(op, ..) if old.ty().lanes > 1 => {
                te::Expr::new(ExprKind::Binary(*op, one(0), one(1)), old.ty())
            }
            ExprKind::Select(..) if old.ty().lanes > 1 => {
                te::Expr::new(ExprKind::Select(one(0), one(1), one(2)), old.ty())
            }
            ExprKind::Ramp(..) => te::Expr::new(ExprKind::Ramp(one(0), one(1)), old.ty()),
            ExprKind::Broadcast(_) => te::Expr::new(ExprKind::Broadcast(one(0)), old.ty()),
            ExprKind::Binary(op, ..) => te::binary(*op, &list[0], &list[1]),
            ExprKind::Cast(_) => te::Expr::new(ExprKind::Cast(one(0)), old.ty()),
            ExprKind::Not(_) => te::Expr::new(ExprKind::Not(one(0)), old.ty()),
            ExprKind::Select(..) => te::select(&list[0], &list[1], &list[2]),
            ExprKind::Call(intrin, _) => {
                te::Expr::new(ExprKind::Call(*intrin, list.clone()), old.ty())
            }
            ExprKind::Load(tensor, _) => {
                te::Expr::new(ExprKind::Load(tensor.clone(), list.clone()), old.ty())
            }
            _ => old.clone(),
        })
    })?;
    Ok(wrap(expr.py(), rebuilt)?)
}
