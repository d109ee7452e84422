//! Converts functions, sequences, blocks and bindings that Python code built, and adds them to a function.

use std::sync::Arc;

use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::relax::{self as ir, ExprData, type_lattice};
use rustc_hash::FxHashSet;

use crate::error::{Error, Result};
use crate::relax::detached_expr::{FreeVar, Node, NodeRef};
use crate::relax::detached_functions::{
    BindingRef, BlockNode, BlockRef, FreeBinding, FuncParts, GlobalTypes, IfNode, SeqNode,
};
use crate::relax::function_owner::{FuncOwner, OwnerState, abandoned};
use crate::relax::struct_info::{SInfo, sinfo_of, to_type};
use crate::tvm_compatibility;

/// Builds a function from its parts. Returns a new [`FuncOwner`] that holds the function.
///
/// # Errors
/// If a variable is neither a parameter nor defined, or if a type rule fails.
pub fn build_function(parts: &FuncParts, globals: GlobalTypes) -> Result<Arc<FuncOwner>> {
    let owner = FuncOwner::building();
    {
        let mut state = owner.lock();
        state.globals = globals;
        for (i, param) in parts.params.iter().enumerate() {
            if parts.params[..i].iter().any(|other| other.key() == param.key()) {
                let name = crate::relax::expr_accessors::name_or_text(param);
                return Err(redefinition_error(&format!("parameter {i} of this function"), &name));
            }
            let var = state.param(param)?;
            state.builder()?.push_param(var);
        }
        state.params_fixed = true;
        let result = state.body(&parts.body)?;
        let ret = state.ret_ty(parts, result)?;
        let pure = parts.pure.unwrap_or(!state.impure);
        state.finish(result, Some(ret), pure, |func| {
            func.attrs = parts.attrs.clone();
            func.private = parts.private;
        })?;
    }
    owner.register();
    Ok(owner)
}

impl OwnerState {
    /// Returns the variable for the function parameter `node`. Creates the variable if the function under construction has none for
    /// it.
    fn param(&mut self, node: &NodeRef) -> Result<ir::Var> {
        match node.get() {
            Node::Var(var) => {
                let Some(info) = &var.0.sinfo else {
                    return Err(Error::Value(format!(
                        "parameter {} has no struct info: create it with relax.Var(name, struct_info)",
                        var.0.name
                    )));
                };
                let ty = to_type(self, info)?;
                // A rewritten body may have used the parameter before the function that declares it was created.
                if self.allow_undefined
                    && let Some(e) = self.find_expr(var.ident())
                    && let ExprData::Var(v) = *self.func_and_vars()?.0.expr(e)
                    && self.builder()?.value_of(v).is_none()
                {
                    self.func_and_vars()?.0.var_mut(v).ty = ty;
                    return Ok(v);
                }
                self.new_var(var, ty, false)
            }
            Node::InFunc(owner, e) => match self.var_of(owner, *e)? {
                Some(v) if self.shares_ids_with(owner) => Ok(v),
                Some(v) => self.import_with(owner, |_| Vec::new(), |i| i.define(v)),
                None => Err(not_a_var("a parameter of a function")),
            },
            _ => Err(not_a_var("a parameter of a function")),
        }
    }

    /// If the expression `e` of the function of `owner` is a variable, returns the variable: of the function under construction if
    /// both functions share ids, otherwise of the function of `owner`.
    fn var_of(&self, owner: &Arc<FuncOwner>, e: ir::Expr) -> Result<Option<ir::Var>> {
        let of = |f: &ir::Function| match f.expr(e) {
            ExprData::Var(v) => Some(*v),
            _ => None,
        };
        if self.shares_ids_with(owner) {
            return Ok(self.func().and_then(of));
        }
        Ok(owner.lock().func().and_then(of))
    }

    /// Creates a variable in the function under construction, which represents the Python variable `var`.
    fn new_var(&mut self, var: &FreeVar, ty: ir::Type, dataflow: bool) -> Result<ir::Var> {
        let builder = self.builder()?;
        let name = builder.unique_name(&var.0.name);
        let v = builder.func_mut().add_var(name, ty, dataflow, pliant_diag::Span::NONE);
        let e = builder.func().var_expr(v);
        self.set_ident(var.ident(), e);
        Ok(v)
    }

    /// Creates a variable without a definition in the function under construction, for a Python variable that the function uses but
    /// does not define. The caller has checked that this is allowed (`allow_undefined`).
    pub(super) fn add_undefined(&mut self, var: &FreeVar) -> Result<ir::Expr> {
        let ty = to_type(self, var.0.sinfo.as_ref().unwrap_or(&SInfo::Object))?;
        let v = self.new_var(var, ty, var.0.dataflow)?;
        Ok(self.func_and_vars()?.0.var_expr(v))
    }

    /// Returns the type of a result as callers see it. Sizes that are defined only in the body become unknown.
    pub fn type_for_callers(&mut self, ty: ir::Type, params: &[ir::Var]) -> Result<ir::Type> {
        let func = self.func_and_vars()?.0;
        let mut known = FxHashSet::default();
        for &p in params {
            known.extend(type_lattice::definable_syms(func, func.var(p).ty));
        }
        Ok(type_lattice::erase(func, ty, &|s| known.contains(&s)))
    }

    fn ret_ty(&mut self, parts: &FuncParts, result: ir::Expr) -> Result<ir::Type> {
        let params = self.func_and_vars()?.0.params().to_vec();
        self.result_ty(parts, &params, result)
    }

    fn result_ty(
        &mut self,
        parts: &FuncParts,
        params: &[ir::Var],
        result: ir::Expr,
    ) -> Result<ir::Type> {
        let declared = parts.ret.as_ref().map(|r| to_type(self, r)).transpose()?;
        let func = self.func_and_vars()?.0;
        let ty = func.expr_ty(result);
        if let Some(ret) = declared
            && tvm_compatibility::is_enabled()
        {
            // As in TVM, the type of the body replaces a declared type that is less precise.
            let refined = self.type_for_callers(ty, params)?;
            let func = self.func_and_vars()?.0;
            if type_lattice::is_subtype(func, refined, ret).is_yes() {
                return Ok(refined);
            }
        }
        let func = self.func_and_vars()?.0;
        match declared {
            Some(ret) if !parts.replace_ret || !type_lattice::is_subtype(func, ty, ret).is_no() => {
                Ok(ret)
            }
            _ => self.type_for_callers(ty, params),
        }
    }

    /// Adds the bindings of a sequence at the builder's current position, and returns the result of the sequence.
    ///
    /// # Errors
    /// As for [`build_function`].
    pub fn body(&mut self, node: &NodeRef) -> Result<ir::Expr> {
        match node.get() {
            Node::Seq(SeqNode::Free { blocks, body }) => {
                for block in blocks {
                    self.add_block(block)?;
                }
                self.lower(body)
            }
            Node::Seq(SeqNode::In(owner, seq)) => {
                let data = if self.shares_ids_with(owner) {
                    self.func().map(|f| f.seq(*seq).clone())
                } else {
                    owner.lock().func().map(|f| f.seq(*seq).clone())
                };
                let data = data.ok_or_else(abandoned)?;
                for block in data.blocks {
                    self.add_block(&BlockRef::new(BlockNode::In(owner.clone(), block)))?;
                }
                if self.shares_ids_with(owner) {
                    Ok(data.result)
                } else {
                    self.import(owner, data.result)
                }
            }
            _ => self.lower(node),
        }
    }

    fn add_block(&mut self, block: &BlockRef) -> Result<()> {
        match block.get() {
            BlockNode::In(owner, b) if self.shares_ids_with(owner) => {
                self.builder()?.push_block(*b)
            }
            BlockNode::In(owner, b) => {
                let block = self.import_block(owner, *b)?;
                self.builder()?.push_block(block);
            }
            BlockNode::Free { dataflow, bindings, .. } => {
                let open = *dataflow && !self.builder()?.in_dataflow();
                if open {
                    self.builder()?.begin_dataflow().map_err(|e| Error::Value(e.message))?;
                }
                let done = self.add_bindings(bindings);
                if open {
                    self.builder()?.end_dataflow();
                }
                done?;
            }
        }
        Ok(())
    }

    /// Adds bindings. The variables of consecutive local functions are visible in all of those functions.
    fn add_bindings(&mut self, bindings: &[BindingRef]) -> Result<()> {
        let mut i = 0;
        while i < bindings.len() {
            let run = bindings[i..].iter().take_while(|b| self.is_function(b)).count();
            if run == 0 {
                self.add_binding(&bindings[i])?;
            }
            let run = &bindings[i..i + run];
            let vars: Result<Vec<_>> = run.iter().map(|b| self.declare_function_var(b)).collect();
            for (binding, var) in run.iter().zip(vars?) {
                match (binding, var) {
                    (BindingRef::In(owner, b), Some(var)) => {
                        let value = self.import(owner, b.value)?;
                        self.builder()?.bind(ir::Binding::bind(var, value));
                    }
                    _ => drop(self.add_binding(binding)?),
                }
            }
            i += run.len().max(1);
        }
        Ok(())
    }

    fn is_function(&self, binding: &BindingRef) -> bool {
        // A value of this function is bound unchanged. It must not be inspected through its owner, which is locked.
        match binding {
            BindingRef::In(owner, _) if self.shares_ids_with(owner) => false,
            BindingRef::Free(b) => match b.value.get() {
                Node::InFunc(owner, e) if self.shares_ids_with(owner) => {
                    self.func().is_some_and(|f| matches!(f.expr(*e), ExprData::Func(_)))
                }
                _ => binding.is_function(),
            },
            BindingRef::In(..) => binding.is_function(),
        }
    }

    /// Declares the variable of a local function before its body is converted, so that the body can refer to it. A variable of
    /// unknown type is not declared. If `binding` belongs to another function, returns the new variable, otherwise `None`.
    fn declare_function_var(&mut self, binding: &BindingRef) -> Result<Option<ir::Var>> {
        let b = match binding {
            BindingRef::In(owner, _) if self.shares_ids_with(owner) => return Ok(None),
            BindingRef::In(owner, b) => {
                return self.import_with(owner, |_| Vec::new(), |i| Some(i.define(b.var)));
            }
            BindingRef::Free(b) => b,
        };
        match (b.var.get(), b.value.get()) {
            (Node::Var(var), value) => {
                let info = match (&var.0.sinfo, value) {
                    (Some(info), _) => Some(info.clone()),
                    (None, Node::Func(func)) => func.data().signature(),
                    _ => None,
                };
                let Some(info) = info else { return Ok(None) };
                let ty = to_type(self, &info)?;
                self.new_var(var, ty, false)?;
            }
            (Node::InFunc(owner, e), _) if !self.shares_ids_with(owner) => {
                if let Some(v) = self.var_of(owner, *e)? {
                    self.import_with(owner, |_| Vec::new(), |i| i.define(v))?;
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// Adds one binding at the builder's current position.
    ///
    /// # Errors
    /// As for [`build_function`].
    pub fn add_binding(&mut self, binding: &BindingRef) -> Result<ir::Binding> {
        let binding = match binding {
            BindingRef::In(owner, b) if self.shares_ids_with(owner) => *b,
            BindingRef::In(owner, b) => self.import_binding(owner, *b)?,
            BindingRef::Free(b) => self.free_binding(b)?,
        };
        self.builder()?.bind(binding);
        Ok(binding)
    }

    fn free_binding(&mut self, b: &FreeBinding) -> Result<ir::Binding> {
        let mut value = self.lower(&b.value)?;
        let cast = b.cast.as_ref().map(|c| to_type(self, c)).transpose()?;
        if cast.is_some() {
            value = self.builder()?.operand(value);
        }
        let ty = cast.unwrap_or(self.func_and_vars()?.0.expr_ty(value));
        let var = self.bound_var(&b.var, ty)?;
        Ok(ir::Binding { var, value, cast: cast.into() })
    }

    /// Returns the variable of this function that represents the variable `e` of another function, if the variable was imported
    /// before its binding. Returns `None` if it was not imported, or if a binding or a parameter of this function defines it.
    fn imported_unbound_var(
        &mut self,
        owner: &Arc<FuncOwner>,
        e: ir::Expr,
    ) -> Result<Option<ir::Var>> {
        let ident = owner.lock().ident(e);
        let Some(local_expr) = self.find_expr(ident) else { return Ok(None) };
        let builder = self.builder()?;
        Ok(match *builder.func().expr(local_expr) {
            ExprData::Var(v) if builder.value_of(v).is_none() => Some(v),
            _ => None,
        }
        .filter(|v| !builder.func().params().contains(v)))
    }

    /// Returns the variable that a binding defines for a value of type `ty`.
    fn bound_var(&mut self, node: &NodeRef, ty: ir::Type) -> Result<ir::Var> {
        let in_dataflow = self.builder()?.in_dataflow();
        let var = match node.get() {
            Node::Var(var) => {
                let declared = var.0.sinfo.as_ref().map(|i| to_type(self, i)).transpose()?;
                let ty = declared.unwrap_or(ty);
                // A local function is declared before its body, and a variable may be used before it is bound.
                if let Some(e) = self.find_expr(var.ident())
                    && let ExprData::Var(v) = *self.func_and_vars()?.0.expr(e)
                {
                    let fresh = self.builder()?.value_of(v).is_none()
                        && !self.func_and_vars()?.0.params().contains(&v);
                    if fresh {
                        self.func_and_vars()?.0.var_mut(v).ty = ty;
                        return Ok(v);
                    }
                    if self.params_fixed && !self.allow_undefined {
                        return Err(redefinition_error("defined again", &var.0.name));
                    }
                }
                return self.new_var(var, ty, in_dataflow && var.0.dataflow);
            }
            Node::InFunc(owner, e) => match self.var_of(owner, *e)? {
                Some(v) if self.shares_ids_with(owner) => v,
                Some(v) => match self.imported_unbound_var(owner, *e)? {
                    Some(v) => v,
                    None => self.import_with(owner, |_| Vec::new(), |i| i.define(v))?,
                },
                None => return Err(not_a_var("the variable of a binding")),
            },
            _ => return Err(not_a_var("the variable of a binding")),
        };
        let func = self.func_and_vars()?.0;
        let old = func.var(var).ty;
        if !type_lattice::is_subtype(func, ty, old).is_yes() {
            func.var_mut(var).ty = ty;
        }
        if !in_dataflow {
            func.var_mut(var).dataflow = false;
        }
        Ok(var)
    }

    /// Converts a conditional. Each branch becomes a sequence.
    pub(super) fn lower_if(&mut self, choice: &IfNode) -> Result<ir::Expr> {
        let cond = self.lower(&choice.cond)?;
        let cond = self.builder()?.operand(cond);
        let mut branches = Vec::with_capacity(2);
        for branch in [&choice.then_seq, &choice.else_seq] {
            self.builder()?.begin_seq();
            let result = self.body(branch);
            // The sequence must be closed even if an error occurred.
            let e = match &result {
                Ok(e) => *e,
                Err(_) => cond,
            };
            let seq = self.builder()?.end_seq(e);
            result?;
            branches.push(seq);
        }
        let func = self.func_and_vars()?.0;
        let (a, b) = (func.seq(branches[0]).result, func.seq(branches[1]).result);
        let (a, b) = (func.expr_ty(a), func.expr_ty(b));
        let ty = type_lattice::lca(func, a, b);
        let data = ExprData::If { cond, then_seq: branches[0], else_seq: branches[1] };
        Ok(func.add_expr(data, ty))
    }

    /// Adds a local function, built from `parts`, to the function under construction. Returns its expression.
    pub(super) fn local_function(&mut self, parts: &FuncParts) -> Result<ir::Expr> {
        self.builder()?.begin_func();
        let built = self.local_body(parts);
        let (result, ret, pure) = match &built {
            Ok(built) => *built,
            Err(_) => {
                let unit = self.func_and_vars()?.0.tuple(&[]);
                (unit, None, true)
            }
        };
        let func = self.builder()?.end_func(result, ret, pure);
        built?;
        Ok(func)
    }

    fn local_body(&mut self, parts: &FuncParts) -> Result<(ir::Expr, Option<ir::Type>, bool)> {
        // A local function has no public name, even if it had one before.
        let attrs = parts.attrs.iter().filter(|(key, _)| &***key != GLOBAL_SYMBOL);
        *self.builder()?.attrs_mut() = attrs.map(|(k, v)| (k.clone(), v.clone())).collect();
        let mut params = Vec::with_capacity(parts.params.len());
        for param in &parts.params {
            let var = self.param(param)?;
            self.builder()?.push_param(var);
            params.push(var);
        }
        let outer_impure = std::mem::replace(&mut self.impure, false);
        let result = self.body(&parts.body)?;
        let pure = parts.pure.unwrap_or(!self.impure);
        self.impure = outer_impure;
        let result = self.builder()?.operand(result);
        let ret = match &parts.ret {
            Some(_) => self.result_ty(parts, &params, result)?,
            None => self.func_and_vars()?.0.expr_ty(result),
        };
        Ok((result, Some(ret), pure))
    }
}

fn redefinition_error(new_use: &str, name: &str) -> Error {
    Error::Value(format!(
        "variable '{name}' is already defined, so it cannot be {new_use} (help: create another variable, \
         relax.Var(\"{name}\", ...))"
    ))
}

fn not_a_var(what: &str) -> Error {
    Error::Type(format!("{what} must be a relax.Var"))
}

impl FuncParts {
    /// Returns the type of the function, if it follows from the parameters and the declared result
    /// type.
    pub fn signature(&self) -> Option<SInfo> {
        let params: Option<Vec<SInfo>> = self.params.iter().map(sinfo_of).collect();
        let ret = self.ret.clone()?;
        Some(SInfo::Func(
            Some(params?.into_iter().collect()),
            Arc::new(ret),
            self.pure.unwrap_or(true),
        ))
    }
}
