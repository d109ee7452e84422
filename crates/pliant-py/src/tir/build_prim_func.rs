//! Builds loop functions from Python: converts statements of `pliant.tir.stmt` to the arenas of a loop function.

use std::sync::Arc;

use pliant::schedule::IndexMap;
use pliant_ir::AttrValue;
use pliant_ir::tir::bind_calls::bind_calls;
use pliant_ir::tir::intrin::IntrinResult;
use pliant_ir::tir::{
    BlockData, Buffer, BufferRegion, Expr, ExprData, ForKind, IterKind, IterVar, PrimFunc, Stmt,
    StmtData, Ty, Var, VarTy,
};
use pliant_ops::te::{self, ExprKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::nesting_limit::NestingLevel;
use crate::relax::value_conversion::attr_value;
use crate::te::tensor::Tensor;
use crate::tir::prim_expr::{int_const, prim, variable};
use crate::tir::prim_func_body::PrimFuncBody;
use crate::tir::prim_func_objects::{ObjectMap, PrimFuncObjects};

/// Copies a loop function with another body.
///
/// # Errors
/// If an object is not a statement, or if an expression contains a reduction or a computed tensor.
pub fn with_new_body(
    func: &PrimFunc,
    view: &PrimFuncBody,
    body: &Bound<'_, PyAny>,
) -> Result<Arc<PrimFuncObjects>> {
    let writer = BodyWriter {
        func: func.clone(),
        vars: view.vars.clone(),
        buffers: view.buffers.clone(),
        exprs: FxHashMap::default(),
    };
    writer.finish(body)
}

/// Creates a loop function with these parameters, which are variables. `buffers` maps handles to buffers.
///
/// # Errors
/// As for [`with_new_body`], and if a parameter is not a variable or occurs twice.
pub fn build_prim_func(
    params: &[Bound<'_, PyAny>],
    buffers: &Bound<'_, PyDict>,
    body: &Bound<'_, PyAny>,
) -> Result<Arc<PrimFuncObjects>> {
    let mut writer = BodyWriter {
        func: PrimFunc::default(),
        vars: FxHashMap::default(),
        buffers: FxHashMap::default(),
        exprs: FxHashMap::default(),
    };
    let mut handles = Vec::with_capacity(buffers.len());
    for (param, buffer) in buffers.iter() {
        handles.push((variable(&param)?, buffer));
    }
    for param in params {
        let var = variable(param)?;
        if writer.vars.contains_key(&var) {
            return Err(Error::Value(format!(
                "parameter '{}' occurs twice in the parameter list of the PrimFunc",
                var.name()
            )));
        }
        let is_handle = handles.iter().any(|(handle, _)| *handle == var);
        let ty = if is_handle { VarTy::Handle } else { var_ty(&var) };
        let v = writer.func.add_var(var.name().clone(), ty);
        writer.func.params.push(v);
        writer.vars.insert(var, v);
    }
    for (handle, buffer) in handles {
        let Some(&param) = writer.vars.get(&handle) else {
            let name = handle.name();
            return Err(Error::Value(format!(
                "the buffer_map of the PrimFunc contains '{name}', which is not a parameter"
            )));
        };
        let buffer = writer.buffer(&buffer)?;
        writer.func.buffer_map.insert(param, buffer);
    }
    writer.finish(body)
}

/// Creates a map from the variables `inputs` to expressions of them.
///
/// # Errors
/// If an input is no variable, or if an output is no scalar expression.
pub fn build_index_map(
    inputs: &[Bound<'_, PyAny>],
    outputs: &[Bound<'_, PyAny>],
) -> Result<IndexMap> {
    let mut writer = BodyWriter {
        func: PrimFunc::default(),
        vars: FxHashMap::default(),
        buffers: FxHashMap::default(),
        exprs: FxHashMap::default(),
    };
    let inputs = inputs.iter().map(|v| writer.var_of(v)).collect::<Result<_>>()?;
    let outputs = outputs.iter().map(|e| writer.object(e)).collect::<Result<_>>()?;
    Ok(IndexMap::new(writer.func, inputs, outputs))
}

struct BodyWriter {
    func: PrimFunc,
    vars: FxHashMap<te::Var, Var>,
    buffers: FxHashMap<te::Tensor, Buffer>,
    exprs: FxHashMap<usize, (te::Expr, Expr)>,
}

impl BodyWriter {
    /// Finishes the function with the given body.
    fn finish(mut self, body: &Bound<'_, PyAny>) -> Result<Arc<PrimFuncObjects>> {
        self.func.body = self.stmt(body)?;
        let problems = pliant_ir::tir::verify::verify_prim_func(&self.func);
        if let Some(first) = problems.first() {
            let text = format!("the loop function is not well-formed: {first}");
            return Err(Error::Value(text));
        }
        bind_calls(&mut self.func).map_err(Error::Unsupported)?;
        let objects = ObjectMap {
            vars: self.vars.into_iter().map(|(te, ir)| (ir, te)).collect(),
            tensors: self.buffers.into_iter().map(|(te, ir)| (ir, te)).collect(),
        };
        Ok(PrimFuncObjects::with_objects(self.func, objects))
    }

    fn var(&mut self, var: &te::Var) -> Var {
        if let Some(&v) = self.vars.get(var) {
            return v;
        }
        let v = self.func.add_var(var.name().clone(), var_ty(var));
        self.vars.insert(var.clone(), v);
        v
    }

    fn var_of(&mut self, obj: &Bound<'_, PyAny>) -> Result<Var> {
        Ok(self.var(&variable(obj)?))
    }

    fn tensor(&mut self, tensor: &te::Tensor) -> Result<Buffer> {
        if let Some(&b) = self.buffers.get(tensor) {
            return Ok(b);
        }
        if !tensor.is_placeholder() {
            return Err(Error::Type(
                "the buffers of a PrimFunc must be created by decl_buffer or te.placeholder, not by te.compute".into(),
            ));
        }
        let shape: Result<Vec<Expr>> = tensor.shape().iter().map(|d| self.expr(d)).collect();
        let b = self.func.compact_buffer(tensor.name().clone(), shape?, tensor.dtype());
        self.buffers.insert(tensor.clone(), b);
        Ok(b)
    }

    fn buffer(&mut self, obj: &Bound<'_, PyAny>) -> Result<Buffer> {
        let tensor = obj.getattr("tensor")?;
        let tensor = tensor.cast::<Tensor>().map_err(PyErr::from)?.get().tensor.clone();
        self.tensor(&tensor)
    }

    fn object(&mut self, obj: &Bound<'_, PyAny>) -> Result<Expr> {
        let e = prim(obj)?;
        self.expr(&e)
    }

    /// Converts `obj`, the start or the extent of a loop over `var`, to an expression. A Python int gets the type of the loop
    /// variable.
    fn bound(&mut self, var: &Bound<'_, PyAny>, obj: &Bound<'_, PyAny>) -> Result<Expr> {
        let ty = variable(var)?.ty();
        let e = prim(obj)?;
        match e.as_int() {
            Some(value) if obj.is_instance_of::<PyInt>() => {
                let e = int_const(value, ty.dtype)?;
                self.expr(&e)
            }
            _ => self.expr(&e),
        }
    }

    /// Converts a tensor expression to an expression of the loop function. Operands are converted first, with an explicit stack.
    fn expr(&mut self, root: &te::Expr) -> Result<Expr> {
        let mut stack = vec![(root.clone(), false)];
        while let Some((e, ready)) = stack.pop() {
            if self.exprs.contains_key(&e.id()) {
                continue;
            }
            if !ready {
                stack.push((e.clone(), true));
                stack.extend(e.children().into_iter().map(|c| (c.clone(), false)));
                continue;
            }
            let converted = self.node(&e)?;
            // The expression is kept alive, so that its address stays unique.
            self.exprs.insert(e.id(), (e, converted));
        }
        Ok(self.exprs[&root.id()].1)
    }

    fn node(&mut self, e: &te::Expr) -> Result<Expr> {
        let get = |this: &Self, x: &te::Expr| this.exprs[&x.id()].1;
        let data = match e.kind() {
            ExprKind::Int(v) => ExprData::Int(*v, e.ty()),
            ExprKind::Float(v) => ExprData::Float(v.to_bits(), e.ty()),
            ExprKind::Str(s) => ExprData::Str(s.clone()),
            ExprKind::Var(v) => ExprData::Var(self.var(v)),
            ExprKind::Binary(op, a, b) => ExprData::Binary(*op, get(self, a), get(self, b)),
            ExprKind::Cast(a) => ExprData::Cast(e.ty(), get(self, a)),
            ExprKind::Not(a) => ExprData::Not(get(self, a)),
            ExprKind::Select(c, a, b) => ExprData::Select(get(self, c), get(self, a), get(self, b)),
            ExprKind::Call(intrin, args) => {
                let args = args.iter().map(|a| get(self, a)).collect();
                // If the type follows from the operands, the node does not store it.
                let explicit = intrin.result() == IntrinResult::Explicit;
                ExprData::Call(*intrin, args, if explicit { e.ty() } else { Ty::I64 })
            }
            ExprKind::Load(tensor, indices) => {
                let indices = indices.iter().map(|a| get(self, a)).collect();
                ExprData::Load(self.tensor(tensor)?, indices)
            }
            ExprKind::Ramp(base, stride) => {
                ExprData::Ramp(get(self, base), get(self, stride), e.ty().lanes)
            }
            ExprKind::Broadcast(a) => ExprData::Broadcast(get(self, a), e.ty().lanes),
            ExprKind::Reduce(_) => {
                return Err(Error::Type(
                    "a reduction such as te.sum is allowed only in te.compute, not in the statements of a PrimFunc"
                        .into(),
                ));
            }
        };
        Ok(self.func.add_expr(data))
    }

    fn stmt(&mut self, obj: &Bound<'_, PyAny>) -> Result<Stmt> {
        let _level = NestingLevel::enter("statements")?;
        let field = |name: &str| -> Result<Bound<'_, PyAny>> { Ok(obj.getattr(name)?) };
        let class = obj.get_type().name()?.to_string();
        let data = match class.as_str() {
            "SeqStmt" => {
                let items: Result<Vec<Stmt>> =
                    field("seq")?.try_iter()?.map(|s| self.stmt(&s?)).collect();
                StmtData::Seq(items?)
            }
            "For" => self.for_loop(obj)?,
            "While" => {
                StmtData::While(self.object(&field("condition")?)?, self.stmt(&field("body")?)?)
            }
            "IfThenElse" => {
                let otherwise = field("else_case")?;
                StmtData::If(
                    self.object(&field("condition")?)?,
                    self.stmt(&field("then_case")?)?,
                    if otherwise.is_none() { None } else { Some(self.stmt(&otherwise)?) },
                )
            }
            "LetStmt" => StmtData::Let(
                self.var_of(&field("var")?)?,
                self.object(&field("value")?)?,
                self.stmt(&field("body")?)?,
            ),
            "BufferStore" => {
                let indices: Result<Vec<Expr>> =
                    field("indices")?.try_iter()?.map(|i| self.object(&i?)).collect();
                StmtData::Store {
                    buffer: self.buffer(&field("buffer")?)?,
                    indices: indices?.into(),
                    value: self.object(&field("value")?)?,
                }
            }
            "Allocate" => {
                StmtData::Alloc(self.buffer(&field("buffer")?)?, self.stmt(&field("body")?)?)
            }
            "Evaluate" => StmtData::Evaluate(self.object(&field("value")?)?),
            "AssertStmt" => StmtData::Assert(
                self.object(&field("condition")?)?,
                field("message")?.extract::<String>()?.into(),
                self.stmt(&field("body")?)?,
            ),
            "BlockRealize" => StmtData::Block(Box::new(self.block(obj)?)),
            _ => {
                return Err(Error::Type(format!(
                    "a statement of a PrimFunc is required here, but the object is of class {class}"
                )));
            }
        };
        Ok(self.func.add_stmt(data))
    }

    fn for_loop(&mut self, obj: &Bound<'_, PyAny>) -> Result<StmtData> {
        let loop_var = obj.getattr("loop_var")?;
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
        Ok(StmtData::For {
            var: self.var_of(&loop_var)?,
            min: self.bound(&loop_var, &obj.getattr("min")?)?,
            extent: self.bound(&loop_var, &obj.getattr("extent")?)?,
            kind,
            body: self.stmt(&obj.getattr("body")?)?,
            annotations: annotations_of(&obj.getattr("annotations")?)?,
        })
    }

    fn block(&mut self, realize: &Bound<'_, PyAny>) -> Result<BlockData> {
        let block = realize.getattr("block")?;
        let values = realize.getattr("iter_values")?;
        let mut iters = Vec::new();
        for (i, axis) in block.getattr("iter_vars")?.try_iter()?.enumerate() {
            let axis = axis?;
            let dom = axis.getattr("dom")?;
            let kind = match axis.getattr("iter_type")?.extract::<i64>()? {
                0 => IterKind::Spatial,
                2 => IterKind::Reduce,
                _ => IterKind::Opaque,
            };
            iters.push(IterVar {
                var: self.var_of(&axis.getattr("var")?)?,
                min: self.object(&dom.getattr("min")?)?,
                extent: self.object(&dom.getattr("extent")?)?,
                kind,
                binding: self.object(&values.get_item(i)?)?,
            });
        }
        let predicate = self.object(&realize.getattr("predicate")?)?;
        let always_true = self.func.as_int(predicate) == Some(1);
        if block.getattr("match_buffers")?.len()? > 0 {
            let text = "match_buffers of a block is not supported: index the whole buffer";
            return Err(Error::Unsupported(text.into()));
        }
        let init = block.getattr("init")?;
        let allocs: Result<Vec<Buffer>> =
            block.getattr("alloc_buffers")?.try_iter()?.map(|b| self.buffer(&b?)).collect();
        let data = BlockData {
            name: block.getattr("name_hint")?.extract::<String>()?.into(),
            iters,
            predicate: if always_true { None } else { Some(predicate) },
            reads: self.regions(&block.getattr("reads")?)?,
            writes: self.regions(&block.getattr("writes")?)?,
            allocs: allocs?,
            init: if init.is_none() { None } else { Some(self.stmt(&init)?) },
            body: self.stmt(&block.getattr("body")?)?,
            annotations: annotations_of(&block.getattr("annotations")?)?,
        };
        Ok(data.with_init_for_reductions_only(&mut self.func))
    }

    fn regions(&mut self, list: &Bound<'_, PyAny>) -> Result<Option<Vec<BufferRegion>>> {
        // An unstated region is not the same as an empty list.
        if list.is_none() || list.hasattr("unstated")? {
            return Ok(None);
        }
        let mut out = Vec::new();
        for item in list.try_iter()? {
            let item = item?;
            let mut region = Vec::new();
            for range in item.getattr("region")?.try_iter()? {
                let range = range?;
                let start = self.object(&range.getattr("min")?)?;
                region.push((start, self.object(&range.getattr("extent")?)?));
            }
            out.push(BufferRegion { buffer: self.buffer(&item.getattr("buffer")?)?, region });
        }
        Ok(Some(out))
    }
}

fn var_ty(var: &te::Var) -> VarTy {
    if var.is_handle() { VarTy::Handle } else { VarTy::Value(var.ty()) }
}

fn annotations_of(obj: &Bound<'_, PyAny>) -> Result<Vec<(Arc<str>, AttrValue)>> {
    let dict = obj.cast::<PyDict>().map_err(PyErr::from)?;
    dict.iter().map(|(k, v)| Ok((k.extract::<String>()?.into(), attr_value(&v)?))).collect()
}
