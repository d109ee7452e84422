//! `BlockBuilder`: builds functions binding by binding. The Python class adds the context managers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_ir::BaseFunc;
use pliant_ir::attr_names::GLOBAL_SYMBOL;
use pliant_ir::attr_values::FuncAttrs;
use pliant_ir::relax::{self as ir};
use pliant_ops::te;
use pliant_ops::{ModuleBuilder, TeCall};
use pyo3::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::ir_module::IRModule;
use crate::relax::classes::{Expr, wrap};
use crate::relax::detached_expr::{FreeVar, Node, NodeRef};
use crate::relax::detached_functions::GlobalTypes;
use crate::relax::expr_accessors::{in_func, set_attrs};
use crate::relax::function::{Function, ir_function_in, signature_of};
use crate::relax::function_owner::FuncOwner;
use crate::relax::keep_functions_alive::RetainedOwners;
use crate::relax::struct_info::{SInfo, to_type};
use crate::relax::value_conversion::{arg_list, required_operand, sinfo};
use crate::te::prim_func::PrimFunc;
use crate::te::tensor::Tensor;

/// Builds the functions of a module (`relax.BlockBuilder`).
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct BlockBuilder {
    state: Mutex<BuilderState>,
}

/// The module and the functions under construction.
#[derive(Default)]
pub(super) struct BuilderState {
    module: ModuleBuilder,
    globals: FxHashMap<Arc<str>, SInfo>,
    owners: RetainedOwners,
    /// The functions under construction, with the innermost last.
    stack: Vec<OpenFunction>,
}

/// A function under construction.
struct OpenFunction {
    owner: Arc<FuncOwner>,
    name: String,
    attrs: FuncAttrs,
    private: bool,
    pure: Option<bool>,
    /// Whether `emit_func_output` has stated the result of the function and ended it.
    done: bool,
    /// Whether the function under construction is a copy of an existing function that is being rewritten.
    rewrite: bool,
}

impl BlockBuilder {
    /// Creates a builder that starts with the functions of a module.
    pub(super) fn with_module(module: Option<&Bound<'_, IRModule>>) -> Self {
        let mut state = BuilderState::default();
        if let Some(module) = module {
            state.owners = module.get().owners().clone();
            let module = module.get().snapshot();
            for (name, func) in module.relax_funcs() {
                state.globals.insert(name.clone(), signature_of(func));
            }
            state.module = ModuleBuilder::from_module(module);
        }
        BlockBuilder { state: Mutex::new(state) }
    }

    /// Returns the types of the module's functions.
    pub(super) fn globals(&self) -> GlobalTypes {
        self.state().globals.clone()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, BuilderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BuilderState {
    /// Begins to rewrite the function that the given owner holds.
    pub(super) fn enter_rewrite(&mut self, owner: &Arc<FuncOwner>) -> Result<()> {
        let derived = owner.derive()?;
        derived.lock().globals.extend(self.globals.clone());
        self.stack.push(OpenFunction {
            owner: derived,
            name: String::new(),
            attrs: FuncAttrs::default(),
            private: false,
            pure: None,
            done: false,
            rewrite: true,
        });
        Ok(())
    }

    /// Ends the innermost rewriting. Does nothing if the innermost function is not being rewritten.
    pub(super) fn exit_rewrite(&mut self) {
        if self.stack.last().is_some_and(|c| c.rewrite)
            && let Some(current) = self.stack.pop()
        {
            current.owner.lock().finish_rewrite();
        }
    }

    /// Returns the [`FuncOwner`] that holds the innermost function under construction.
    pub(super) fn current_owner(&self) -> Result<Arc<FuncOwner>> {
        match self.stack.last() {
            Some(current) if !current.done => Ok(current.owner.clone()),
            Some(_) => Err(Error::Value(
                "the function cannot be changed any more, because emit_func_output has finished it"
                    .into(),
            )),
            None => Err(Error::Value(
                "no function is open: use 'with bb.function(name, params):'".into(),
            )),
        }
    }
}

#[pymethods]
impl BlockBuilder {
    #[new]
    #[pyo3(signature = (module=None))]
    fn new(module: Option<&Bound<'_, IRModule>>) -> Self {
        Self::with_module(module)
    }

    /// Begins a new function, to which later bindings are added.
    #[pyo3(signature = (name, params=None, attrs=None, pure=None, private=false))]
    fn _begin_function(
        &self,
        name: String,
        params: Option<&Bound<'_, PyAny>>,
        attrs: Option<&Bound<'_, PyAny>>,
        pure: Option<bool>,
        private: bool,
    ) -> Result<()> {
        let mut list = FuncAttrs::default();
        if let Some(attrs) = attrs.filter(|a| !a.is_none()) {
            set_attrs(&mut list, attrs, None)?;
        }
        let params = params.filter(|p| !p.is_none()).map(param_vars).transpose()?;
        let mut guarded = self.state();
        let state = &mut *guarded;
        if let Some(current) = state.stack.last().filter(|c| !c.rewrite) {
            return Err(Error::Value(format!(
                "function '{}' is still open: end its 'with' block first",
                current.name
            )));
        }
        let owner = FuncOwner::building();
        {
            let mut inner = owner.lock();
            inner.globals = state.globals.clone();
            for var in params.iter().flatten() {
                inner.add_param(var)?;
            }
            inner.params_fixed = params.is_some();
        }
        let (done, rewrite) = (false, false);
        state.stack.push(OpenFunction { owner, name, attrs: list, private, pure, done, rewrite });
        Ok(())
    }

    /// Leaves the function under construction. Discards it if `emit_func_output` was not called.
    fn _end_function(&self, failed: bool) -> Result<()> {
        let mut state = self.state();
        let Some(current) = state.stack.pop() else { return Ok(()) };
        if current.done {
            return Ok(());
        }
        current.owner.lock().abandon();
        if failed {
            return Ok(());
        }
        Err(Error::Value(format!(
            "function '{}' has no result: call emit_func_output",
            current.name
        )))
    }

    /// Begins a dataflow block in the current function.
    fn _begin_dataflow(&self) -> Result<()> {
        let owner = self.state().current_owner()?;
        let mut inner = owner.lock();
        inner.builder()?.begin_dataflow().map_err(|e| Error::Value(e.message))
    }

    /// Ends the current dataflow block.
    fn _end_dataflow(&self) {
        if let Ok(owner) = self.state().current_owner()
            && let Ok(builder) = owner.lock().builder()
        {
            builder.end_dataflow();
        }
    }

    /// Binds an expression (or a `te.Tensor`) to a new variable.
    #[pyo3(signature = (expr, name_hint=""))]
    fn emit<'py>(&self, expr: &Bound<'py, PyAny>, name_hint: &str) -> Result<Bound<'py, PyAny>> {
        self.bind(expr, name_hint, false)
    }

    /// Binds an expression to a new variable that is visible after the dataflow block.
    #[pyo3(signature = (output, name_hint=""))]
    fn emit_output<'py>(
        &self,
        output: &Bound<'py, PyAny>,
        name_hint: &str,
    ) -> Result<Bound<'py, PyAny>> {
        self.bind(output, name_hint, true)
    }

    /// Binds `match_cast(value, struct_info)`: a run-time check that also defines the size variables that first occur
    /// in the type.
    #[pyo3(signature = (value, struct_info, name_hint=""))]
    fn match_cast<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        struct_info: &Bound<'py, PyAny>,
        name_hint: &str,
    ) -> Result<Bound<'py, PyAny>> {
        let (node, info) = (required_operand(value)?, sinfo(struct_info)?);
        let owner = self.state().current_owner()?;
        let e = catch_panic(|| {
            let mut inner = owner.lock();
            let value = inner.lower(&node)?;
            let ty = to_type(&mut inner, &info)?;
            let builder = inner.builder()?;
            let value = builder.operand(value);
            let hint = match name_hint {
                "" if builder.in_dataflow() => "lv",
                "" => "gv",
                hint => hint,
            };
            let var = builder.match_cast(value, ty, hint);
            Ok(builder.func_mut().var_expr(var))
        })?;
        wrap(value.py(), in_func(&owner, e))
    }

    /// Ends the function under construction with the given result. Returns the function's global variable.
    #[pyo3(signature = (output, params=None))]
    fn emit_func_output<'py>(
        &self,
        output: &Bound<'py, PyAny>,
        params: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let node = match output.cast::<Expr>() {
            Ok(e) => e.get().node.clone(),
            Err(_)
                if output.is_instance_of::<pyo3::types::PyTuple>()
                    || output.is_instance_of::<pyo3::types::PyList>() =>
            {
                NodeRef::new(Node::Tuple(arg_list(output)?))
            }
            Err(_) => required_operand(output)?,
        };
        let params = params.filter(|p| !p.is_none()).map(param_vars).transpose()?;
        let mut guarded = self.state();
        let state = &mut *guarded;
        let owner = state.current_owner()?;
        let func = catch_panic(|| finish(&owner, &node, params.as_deref(), state.stack.last()))?;
        owner.register();
        let current = state.stack.last_mut().ok_or_else(|| {
            Error::Internal(
                "the block builder has no open function (this is a bug in Pliant)".into(),
            )
        })?;
        current.done = true;
        let info = signature_of(&func);
        let name = state.module.add_func(BaseFunc::Relax(func), &current.name);
        state.owners.retain_owner(owner, state.module.module());
        state.globals.insert(name.clone(), info);
        wrap(output.py(), NodeRef::new(Node::Global(name)))
    }

    /// Adds a function to the module unless the module contains an equal one. Returns the global variable of the added or equal
    /// function.
    fn add_func<'py>(
        &self,
        func: &Bound<'py, PyAny>,
        func_name: &str,
    ) -> Result<Bound<'py, PyAny>> {
        let mut base = base_func(func, || self.globals())?;
        if let (Ok(function), BaseFunc::Relax(relax_func)) = (func.cast::<Function>(), &mut base)
            && function.get().known_name().is_none()
            && !relax_func.attrs.contains_key(GLOBAL_SYMBOL)
        {
            // A function that was built here and has no public name is private to the module.
            Arc::make_mut(relax_func).private = true;
        }
        let mut guarded = self.state();
        let state = &mut *guarded;
        let info = base.as_relax().map(signature_of);
        let name = state.module.add_func(base, func_name);
        state.owners.retain_object(func, state.module.module());
        if let Some(info) = info {
            state.globals.insert(name.clone(), info.clone());
            for current in &state.stack {
                current.owner.lock().globals.insert(name.clone(), info.clone());
            }
        }
        wrap(func.py(), NodeRef::new(Node::Global(name)))
    }

    /// Replaces the function of the module to which `gv` refers.
    fn update_func(&self, gv: &Bound<'_, PyAny>, updated_func: &Bound<'_, PyAny>) -> Result<()> {
        let name = crate::ir_module::global_name(gv)?;
        let base = base_func(updated_func, || self.globals())?;
        let mut state = self.state();
        if let Some(func) = base.as_relax() {
            let info = signature_of(func);
            state.globals.insert(name.as_str().into(), info);
        }
        state.module.update_func(name.as_str(), base);
        state.owners.retain_object(updated_func, state.module.module());
        Ok(())
    }

    /// Returns the module with the functions built so far.
    fn get(&self) -> IRModule {
        let state = self.state();
        IRModule::with_owners(state.module.module().clone(), state.owners.clone())
    }

    /// Returns the module with the functions built so far.
    fn finalize(&self) -> IRModule {
        self.get()
    }

    /// Returns a variable name that no other variable of the function has.
    fn get_unique_name(&self, name_prefix: &str) -> Result<String> {
        let owner = self.state().current_owner()?;
        let mut inner = owner.lock();
        Ok(inner.builder()?.unique_name(name_prefix).to_string())
    }

    /// Returns the placeholder that represents a graph-level expression in tensor expressions. The name of the placeholder is the
    /// letter with the number `index`, for example `A` for 0.
    #[pyo3(signature = (expr, index=0))]
    fn te_tensor(&self, expr: &Bound<'_, PyAny>, index: u32) -> Result<Tensor> {
        let node = required_operand(expr)?;
        let owner = self.state().current_owner()?;
        catch_panic(|| {
            let mut guarded = owner.lock();
            let inner = &mut *guarded;
            let e = inner.lower(&node)?;
            let e = inner.builder()?.operand(e);
            let vars = std::mem::take(&mut inner.vars);
            let mut call = TeCall::with_vars(inner.builder()?.func_mut(), vars);
            let tensor = call.tensor(e);
            let (_, vars) = call.finish();
            inner.vars = vars;
            let tensor = tensor.map_err(|e| Error::Compile(e.to_string()))?;
            let letter = char::from(b'A' + (index % 26) as u8);
            let name =
                if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) };
            let tensor = tensor.renamed(name);
            inner.te_sources.push((tensor.clone(), e));
            Ok(Tensor { tensor })
        })
    }

    /// Creates a `call_tir` of the loop function that computes the given tensors. Its operands are the graph-level expressions
    /// that the placeholders of the tensors represent.
    #[pyo3(signature = (outputs, name_hint="te_func"))]
    fn _call_tensors<'py>(
        &self,
        py: Python<'py>,
        outputs: Vec<Bound<'py, Tensor>>,
        name_hint: &str,
    ) -> Result<Bound<'py, PyAny>> {
        let outputs: Vec<te::Tensor> = outputs.iter().map(|t| t.get().tensor.clone()).collect();
        self.call_tensors(py, &outputs, name_hint)
    }
}

impl BlockBuilder {
    fn bind<'py>(
        &self,
        expr: &Bound<'py, PyAny>,
        hint: &str,
        output: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let py = expr.py();
        if let Ok(tensor) = expr.cast::<Tensor>() {
            let tensor = tensor.get().tensor.clone();
            let call = self.call_tensors(py, std::slice::from_ref(&tensor), tensor.name())?;
            return self.bind(&call, hint, output);
        }
        let node = required_operand(expr)?;
        let owner = self.state().current_owner()?;
        let e = catch_panic(|| {
            let mut inner = owner.lock();
            let value = inner.lower(&node)?;
            let builder = inner.builder()?;
            if !builder.in_dataflow() {
                reject_dataflow_vars(builder.func(), value)?;
            }
            let hint = match hint {
                "" if builder.in_dataflow() && !output => "lv",
                "" => "gv",
                hint => hint,
            };
            let var = if output {
                builder.emit_output_named(value, hint)
            } else {
                builder.emit_named(value, hint)
            };
            Ok(builder.func_mut().var_expr(var))
        })?;
        wrap(py, in_func(&owner, e))
    }

    fn call_tensors<'py>(
        &self,
        py: Python<'py>,
        outputs: &[te::Tensor],
        hint: &str,
    ) -> Result<Bound<'py, PyAny>> {
        let mut guarded = self.state();
        let state = &mut *guarded;
        let owner = state.current_owner()?;
        let module = &mut state.module;
        let e = catch_panic(|| {
            let mut locked = owner.lock();
            let inner = &mut *locked;
            let read = placeholders(outputs);
            let inputs: Vec<(te::Tensor, ir::Expr)> =
                inner.te_sources.iter().filter(|(t, _)| read.contains(t)).cloned().collect();
            let vars = inner.vars.clone();
            let func = inner.builder()?.func_mut();
            let call = module.finish_te(func, hint, &inputs, vars, outputs);
            call.map_err(|e| Error::Compile(e.to_string()))
        })?;
        wrap(py, in_func(&owner, e))
    }
}

/// Returns the placeholders from which the output tensors are computed.
fn placeholders(outputs: &[te::Tensor]) -> FxHashSet<te::Tensor> {
    let mut seen: FxHashSet<te::Tensor> = FxHashSet::default();
    let mut found = FxHashSet::default();
    let mut stack: Vec<te::Tensor> = outputs.to_vec();
    while let Some(tensor) = stack.pop() {
        if !seen.insert(tensor.clone()) {
            continue;
        }
        stack.extend(tensor.inputs());
        if tensor.is_placeholder() {
            found.insert(tensor);
        }
    }
    found
}

fn param_vars(params: &Bound<'_, PyAny>) -> Result<Vec<FreeVar>> {
    let one = |obj: &Bound<'_, PyAny>| match obj.cast::<Expr>().map(|e| e.get().node.get()) {
        Ok(Node::Var(v)) => Ok(v.clone()),
        _ => Err(Error::Type(format!(
            "a parameter of a function must be a relax.Var, not {}",
            obj.repr()?
        ))),
    };
    if params.is_instance_of::<Expr>() {
        return Ok(vec![one(params)?]);
    }
    params.try_iter()?.map(|p| one(&p?)).collect()
}

/// Rejects an expression that uses variables of a dataflow block outside of that block.
fn reject_dataflow_vars(func: &ir::Function, e: ir::Expr) -> Result<()> {
    let vars = pliant_ir::relax::visit::operand_vars(func, e);
    let Some(var) = vars.into_iter().map(|v| func.var(v)).find(|v| v.dataflow) else {
        return Ok(());
    };
    Err(Error::Value(format!(
        "variable '{}' is visible only in its dataflow block: make it an output of the block with emit_output",
        var.name
    )))
}

/// Ends the function under construction and adds it to the module.
fn finish(
    owner: &Arc<FuncOwner>,
    output: &NodeRef,
    params: Option<&[FreeVar]>,
    current: Option<&OpenFunction>,
) -> Result<Arc<ir::Function>> {
    let mut inner = owner.lock();
    let result = inner.lower(output)?;
    reject_dataflow_vars(inner.func_and_vars()?.0, result)?;
    if let Some(params) = params {
        let mut order = Vec::with_capacity(params.len());
        for var in params {
            let e = match inner.free_expr(var) {
                Some(e) => e,
                None => inner.add_param(var)?,
            };
            if let ir::ExprData::Var(v) = inner.func_and_vars()?.0.expr(e) {
                order.push(*v);
            }
        }
        let (func, _) = inner.func_and_vars()?;
        if let Some(&missing) = func.params().iter().find(|p| !order.contains(p)) {
            let name = func.var(missing).name.clone();
            return Err(Error::Value(format!(
                "variable '{name}' is used in the function, but the argument 'params' does not contain it"
            )));
        }
        let root = func.root();
        func.func_mut(root).params = order;
    }
    let (func, _) = inner.func_and_vars()?;
    let (ret, params) = (func.expr_ty(result), func.params().to_vec());
    let ret = inner.type_for_callers(ret, &params)?;
    let pure = current.and_then(|c| c.pure).unwrap_or(!inner.impure);
    inner.finish(result, Some(ret), pure, |func| {
        if let Some(current) = current {
            func.attrs.extend(current.attrs.clone());
            func.private = current.private;
        }
    })
}

/// Converts a Python object to a graph function or loop function. `globals` are the types of the
/// module's functions.
///
/// # Errors
/// `TypeError` for any other object.
pub fn base_func(
    obj: &Bound<'_, PyAny>,
    globals: impl FnOnce() -> GlobalTypes,
) -> Result<BaseFunc> {
    if let Ok(f) = obj.cast::<Function>() {
        return Ok(BaseFunc::Relax(ir_function_in(&f.as_super().get().node, globals)?));
    }
    if let Ok(f) = obj.cast::<PrimFunc>() {
        let func = &f.get().func;
        // A loop function without a name becomes private to the module, so that equal ones can be merged.
        if func.private || func.attrs.contains_key(GLOBAL_SYMBOL) {
            return Ok(BaseFunc::Prim(func.clone()));
        }
        let mut func = (**func).clone();
        func.private = true;
        return Ok(BaseFunc::Prim(Arc::new(func)));
    }
    Err(Error::Type(format!(
        "a function of a module must be a relax.Function or a tir.PrimFunc, not {}",
        obj.get_type().name()?
    )))
}
