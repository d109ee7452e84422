//! Converts expressions that belong to no function to expressions of a function. Adds the bindings that A-normal form requires,
//! and infers types immediately.

use std::sync::Arc;

use pliant_ir::op::{ArgumentForm, Op, OperandKind};
use pliant_ir::relax::{self as ir};
use pliant_ir::{AttrValue, DType};
use pliant_ops::te;
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::nesting_limit::{MAX_NESTING, too_deep};
use crate::relax::detached_expr::{CallNode, CalleeNode, FreeVar, Node, NodeRef, Scalar};
use crate::relax::function_owner::{OwnerState, abandoned, op_signature};
use crate::relax::struct_info::{SInfo, dim_to_sym, dims_to_syms, to_type};

impl OwnerState {
    /// Adds the variable `var` to the function under construction as a parameter.
    ///
    /// # Errors
    /// If the variable has no type, or if a dim is not a size.
    pub fn add_param(&mut self, var: &FreeVar) -> Result<ir::Expr> {
        let ty = match &var.0.sinfo {
            Some(info) => to_type(self, info)?,
            None if self.untyped_params => self.builder()?.func_mut().intern(ir::TypeData::Any),
            None => {
                return Err(Error::Value(format!(
                    "parameter {} has no struct info: create it with relax.Var(name, struct_info)",
                    var.0.name
                )));
            }
        };
        // An expression that is only inspected keeps its dataflow variables.
        let dataflow = self.untyped_params && var.0.dataflow;
        let builder = self.builder()?;
        let param = builder.param(&var.0.name, ty);
        builder.func_mut().var_mut(param).dataflow = dataflow;
        let e = builder.func_mut().var_expr(param);
        self.set_ident(var.ident(), e);
        Ok(e)
    }

    /// Returns the expression that represents the Python variable `var` in the function under construction, if there is one.
    pub fn free_expr(&self, var: &FreeVar) -> Option<ir::Expr> {
        self.find_expr(var.ident())
    }

    fn lower_var(&mut self, var: &FreeVar) -> Result<ir::Expr> {
        if let Some(e) = self.free_expr(var) {
            return Ok(e);
        }
        if self.allow_undefined {
            return self.add_undefined(var);
        }
        if self.params_fixed {
            return Err(Error::Value(format!(
                "variable {} is neither a parameter of this function nor defined in it before its use",
                var.0.name
            )));
        }
        self.add_param(var)
    }

    /// Converts an expression tree to an expression of the function under construction. Adds the bindings that A-normal form
    /// requires.
    ///
    /// # Errors
    /// If a type rule fails, or if a variable or expression belongs to another function.
    pub fn lower(&mut self, root: &NodeRef) -> Result<ir::Expr> {
        if let Some(e) = self.lower_leaf(root)? {
            return Ok(e);
        }
        let mut memo: FxHashMap<usize, ir::Expr> = FxHashMap::default();
        let mut stack: Vec<(&NodeRef, bool)> = vec![(root, false)];
        while let Some((node, expanded)) = stack.pop() {
            if memo.contains_key(&node.id()) || matches!(node.get(), Node::Scalar(_)) {
                continue;
            }
            if let Some(e) = self.lower_leaf(node)? {
                memo.insert(node.id(), e);
                continue;
            }
            if !expanded {
                stack.push((node, true));
                stack.extend(node.children().iter().rev().map(|c| (c, false)));
                continue;
            }
            let e = self.lower_node(node, &memo)?;
            // A shared inner call is computed once, so it is bound to a variable.
            let e = if node.id() == root.id() { e } else { self.builder()?.operand(e) };
            memo.insert(node.id(), e);
        }
        Ok(memo[&root.id()])
    }

    fn lower_leaf(&mut self, node: &NodeRef) -> Result<Option<ir::Expr>> {
        Ok(Some(match node.get() {
            Node::InFunc(owner, e) => {
                if self.shares_ids_with(owner) {
                    *e
                } else {
                    self.import(owner, *e)?
                }
            }
            Node::Var(v) => self.lower_var(v)?,
            Node::Global(name) => {
                let info = self.globals.get(name).cloned();
                let info = info.unwrap_or(SInfo::Func(None, Arc::new(SInfo::Object), false));
                let ty = to_type(self, &info)?;
                self.func_and_vars()?.0.global(name, ty)
            }
            Node::Extern(name) => self.func_and_vars()?.0.extern_func(name),
            Node::Constant(t) => self.func_and_vars()?.0.constant(t.clone()),
            Node::Shape(dims) => {
                let (func, vars) = self.func_and_vars()?;
                let dims = dims_to_syms(func, vars, dims)?;
                func.shape(&dims)
            }
            Node::Prim(e) => self.lower_prim(e)?,
            Node::Str(s) => self.func_and_vars()?.0.str_value(s),
            Node::DType(d) => self.func_and_vars()?.0.dtype_value(*d),
            Node::Scalar(s) => {
                let tensor = scalar_tensor(*s, default_dtype(*s))?;
                self.func_and_vars()?.0.constant(tensor)
            }
            Node::Tuple(_)
            | Node::GetItem(..)
            | Node::Call(_)
            | Node::If(_)
            | Node::Seq(_)
            | Node::Func(_)
            | Node::Root(_) => return Ok(None),
        }))
    }

    fn lower_prim(&mut self, e: &te::Expr) -> Result<ir::Expr> {
        let (func, vars) = self.func_and_vars()?;
        if let te::ExprKind::Float(v) = e.kind() {
            return Ok(func.float_value(*v, e.ty().dtype));
        }
        let sym = dim_to_sym(func, vars, e)?;
        Ok(func.int_value(sym, e.ty().dtype))
    }

    /// Converts a node to an expression of the function under construction. `memo` contains the expressions for its operands, by
    /// the ids of their nodes.
    fn lower_node(
        &mut self,
        node: &NodeRef,
        memo: &FxHashMap<usize, ir::Expr>,
    ) -> Result<ir::Expr> {
        match node.get() {
            Node::Tuple(fields) => {
                let fields = self.lower_args(fields, memo)?;
                let leaves: Result<Vec<ir::Expr>> =
                    fields.into_iter().map(|f| Ok(self.builder()?.operand(f))).collect();
                let tuple = self.func_and_vars()?.0.tuple(&leaves?);
                self.check_depth(tuple)?;
                Ok(tuple)
            }
            Node::GetItem(tuple, index) => {
                // A number has no entry in the memo, and it is not a tuple.
                let tuple = memo.get(&tuple.id()).copied();
                let tuple = tuple.ok_or_else(|| Error::Type(NOT_A_TUPLE.into()))?;
                let builder = self.builder()?;
                let tuple = builder.operand(tuple);
                let ty = builder.func().ty(tuple);
                if matches!(ty, ir::TypeData::Tensor { .. } | ir::TypeData::Prim { .. }) {
                    return Err(Error::Type(NOT_A_TUPLE.into()));
                }
                if let Some(fields) = builder.func().tuple_fields(tuple) {
                    return fields.get(*index as usize).copied().ok_or_else(|| {
                        Error::Index(format!(
                            "the tuple has {} fields, so index {index} is out of range",
                            fields.len()
                        ))
                    });
                }
                Ok(builder.func_mut().tuple_get_item(tuple, *index))
            }
            Node::Call(call) => self.lower_call(call, memo),
            Node::If(choice) => self.lower_if(choice),
            Node::Seq(_) => self.body(node),
            Node::Func(func) => self.local_function(func.data()),
            Node::Root(owner) => self.import_root(owner),
            _ => Err(Error::Internal(
                "lower_node requires an expression with operands, but the expression has none (this is a bug in Pliant)"
                    .into(),
            )),
        }
    }

    /// Rejects tuples whose nesting became too deep over several emissions, because code that reads their types is
    /// recursive.
    fn check_depth(&mut self, tuple: ir::Expr) -> Result<()> {
        let Some(func) = self.func() else { return Ok(()) };
        let ty = func.expr_ty(tuple);
        let ir::TypeData::Tuple(fields) = func.types.get(ty) else { return Ok(()) };
        let depth_of = |ty: &ir::Type| match self.tuple_depths.get(ty) {
            Some(&depth) => depth,
            // A tuple type that was not built here. Its depth was checked when it was created.
            None => u32::from(matches!(func.types.get(*ty), ir::TypeData::Tuple(_))),
        };
        let depth = fields.iter().map(depth_of).max().unwrap_or(0) + 1;
        if depth > MAX_NESTING {
            return Err(too_deep("tuples"));
        }
        self.tuple_depths.insert(ty, depth);
        Ok(())
    }

    fn lower_args(
        &mut self,
        args: &[NodeRef],
        memo: &FxHashMap<usize, ir::Expr>,
    ) -> Result<Vec<ir::Expr>> {
        let mut dtype = None;
        for arg in args {
            if !matches!(arg.get(), Node::Scalar(_)) {
                let func = self.func().ok_or_else(abandoned)?;
                let ty = func.ty(memo[&arg.id()]);
                dtype = dtype.or_else(|| if ty.is_tensor() { ty.dtype() } else { None });
            }
        }
        args.iter()
            .map(|arg| match arg.get() {
                // Without a tensor among the operands, an integer is a size: `arange(0, n)`.
                Node::Scalar(Scalar::Int(v)) if dtype.is_none() => {
                    let func = self.func_and_vars()?.0;
                    let value = func.syms.int(*v);
                    Ok(func.int_value(value, DType::Int64))
                }
                Node::Scalar(s) => {
                    let tensor = scalar_tensor(*s, dtype.unwrap_or(default_dtype(*s)))?;
                    Ok(self.func_and_vars()?.0.constant(tensor))
                }
                _ => Ok(memo[&arg.id()]),
            })
            .collect()
    }

    /// Converts the operands of an operator. The operator's declaration determines how Python numbers are converted. `memo`
    /// contains the operands that are not numbers, which are already converted.
    ///
    /// # Errors
    /// If a number does not fit the data type to which it is converted.
    pub(super) fn lower_operands(
        &mut self,
        op: Op,
        call: &CallNode,
        memo: &FxHashMap<usize, ir::Expr>,
    ) -> Result<Vec<ir::Expr>> {
        let signature = op_signature(op)?;
        let func = self.func().ok_or_else(abandoned)?;
        let form = |arg: &NodeRef| match arg.get() {
            Node::Scalar(Scalar::Int(_)) => ArgumentForm::Int,
            Node::Scalar(Scalar::Float(_)) => ArgumentForm::Float,
            Node::Scalar(Scalar::Bool(_)) => ArgumentForm::Bool,
            _ => match func.ty(memo[&arg.id()]) {
                ir::TypeData::Tensor { dtype, .. } => ArgumentForm::Tensor(*dtype),
                ir::TypeData::Any => ArgumentForm::Tensor(None),
                _ => ArgumentForm::Other,
            },
        };
        let form: Vec<ArgumentForm> = call.args.iter().map(form).collect();
        let dtype_attr = call.attrs.get("dtype").and_then(AttrValue::as_dtype);
        let types = signature.number_dtypes(&form, dtype_attr);
        let mut args = Vec::with_capacity(types.len());
        for (i, (arg, dtype)) in call.args.iter().zip(types).enumerate() {
            args.push(match (arg.get(), dtype) {
                (Node::Scalar(s), Some(dtype)) => {
                    let fill = signature.operand_kind(i) == OperandKind::Fill;
                    let tensor =
                        if fill { fill_tensor(*s, dtype) } else { scalar_tensor(*s, dtype) };
                    let tensor = tensor.map_err(|e| e.with_prefix(&format!("{op}: ")))?;
                    self.func_and_vars()?.0.constant(tensor)
                }
                (Node::Scalar(s), None) => self.scalar(*s)?,
                _ => memo[&arg.id()],
            });
        }
        Ok(args)
    }

    /// Converts a Python number to a scalar expression of the function.
    fn scalar(&mut self, s: Scalar) -> Result<ir::Expr> {
        let func = self.func_and_vars()?.0;
        let (value, dtype) = match s {
            Scalar::Int(v) => (v, DType::Int64),
            Scalar::Bool(b) => (i64::from(b), DType::Bool),
            Scalar::Float(v) => return Ok(func.float_value(v, DType::Float64)),
        };
        let value = func.syms.int(value);
        Ok(func.int_value(value, dtype))
    }

    fn lower_call(
        &mut self,
        call: &CallNode,
        memo: &FxHashMap<usize, ir::Expr>,
    ) -> Result<ir::Expr> {
        let args = match &call.callee {
            CalleeNode::Op(op) => self.lower_operands(*op, call, memo)?,
            CalleeNode::Expr(_) => self.lower_args(&call.args, memo)?,
        };
        let tys: Result<Vec<ir::Type>> = call.ty_args.iter().map(|t| to_type(self, t)).collect();
        let tys = tys?;
        match &call.callee {
            CalleeNode::Op(op) => {
                let builder = self.builder()?;
                if !builder.ops().is_pure(*op) {
                    self.impure = true;
                }
                let builder = self.builder()?;
                builder
                    .call_op(*op, &args, call.attrs.clone(), &tys)
                    .map_err(|e| infer_error(*op, &e))
            }
            CalleeNode::Expr(callee) => {
                let callee = self.lower(callee)?;
                self.call_func(callee, &args, &tys)
            }
        }
    }

    fn call_func(
        &mut self,
        callee: ir::Expr,
        args: &[ir::Expr],
        tys: &[ir::Type],
    ) -> Result<ir::Expr> {
        let (func, _) = self.func_and_vars()?;
        let pure = matches!(func.ty(callee), ir::TypeData::Callable { pure: true, .. });
        let ty = match tys {
            [ty] => *ty,
            [] => crate::relax::value_conversion::call_result(func, callee, args)?,
            _ => func.intern(ir::TypeData::Tuple(tys.into())),
        };
        self.impure |= !pure;
        Ok(self.builder()?.call_func(callee, args, tys, ty))
    }
}

/// The Python error for a failed type rule, with the name of the operator.
pub fn infer_error(op: pliant_ir::Op, e: &pliant_ir::op::InferError) -> Error {
    let help = e.help.as_ref().map(|h| format!(" (help: {h})")).unwrap_or_default();
    Error::Compile(format!("R.{}: {}{help}", op.short_name(), e.message))
}

fn default_dtype(s: Scalar) -> DType {
    match s {
        Scalar::Int(_) => DType::Int64,
        Scalar::Float(_) => DType::Float32,
        Scalar::Bool(_) => DType::Bool,
    }
}

/// Converts a number to a rank-0 tensor that fills a result of type `dtype`.
fn fill_tensor(s: Scalar, dtype: DType) -> Result<Tensor> {
    match s {
        Scalar::Float(v) if dtype.is_integer() => {
            let int = v as i64;
            if int as f64 != v {
                return Err(Error::Value(format!(
                    "the number {v} does not fit the data type {dtype}"
                )));
            }
            crate::relax::value_conversion::int_tensor(int, dtype)
        }
        _ => scalar_tensor(s, dtype),
    }
}

/// The error message for reading a field of a value that is not a tuple.
pub(crate) const NOT_A_TUPLE: &str = "a tensor has no fields: select its elements with \
    relax.op.take(x, indices, axis) or relax.op.strided_slice(x, axes, begin, end)";

/// Converts a number to a rank-0 tensor of type `dtype`. If `dtype` is not a float type, a Python float becomes float32 instead.
fn scalar_tensor(s: Scalar, dtype: DType) -> Result<Tensor> {
    let dtype =
        if matches!(s, Scalar::Float(_)) && !dtype.is_float() { DType::Float32 } else { dtype };
    let value = match s {
        Scalar::Int(v) => return crate::relax::value_conversion::int_tensor(v, dtype),
        Scalar::Float(v) => v,
        Scalar::Bool(b) => f64::from(u8::from(b)),
    };
    crate::relax::value_conversion::float_tensor(value, dtype)
}
