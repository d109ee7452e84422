//! `BlockRewriter`: a `BlockBuilder` for mutators, which rewrite a function block by block and binding by binding.

use pliant_ir::relax::type_lattice;
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::ir_module::IRModule;
use crate::relax::binding_blocks::{Binding, BindingBlock, wrap_owned_block};
use crate::relax::block_builder::BlockBuilder;
use crate::relax::classes::{Expr, wrap};
use crate::relax::detached_expr::Node;
use crate::relax::expr_accessors::in_func;
use crate::relax::function::owner_of;
use crate::relax::function_owner::FuncOwner;
use crate::relax::value_conversion::required_operand;

/// A block builder that can also rewrite existing functions.
#[pyclass(extends = BlockBuilder, subclass, frozen, module = "pliant.relax")]
pub struct BlockRewriter;

#[pymethods]
impl BlockRewriter {
    #[new]
    #[pyo3(signature = (module=None))]
    fn new(module: Option<&Bound<'_, IRModule>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(BlockBuilder::with_module(module)).add_subclass(BlockRewriter)
    }

    /// Begins to rewrite a function, a block or a sequence. Later bindings are emitted into a copy of the enclosing
    /// function, in which the original parts stay valid.
    fn _enter_rewrite(slf: PyRef<'_, Self>, part: &Bound<'_, PyAny>) -> Result<()> {
        let owner = match part.cast::<BindingBlock>() {
            Ok(block) => block.get().block.owner(),
            Err(_) => match required_operand(part)?.get() {
                Node::Seq(seq) => seq.owner(),
                // A local function that captures variables is rewritten inside its enclosing function.
                Node::InFunc(owner, _) => Some(owner.clone()),
                Node::Func(_) => None,
                _ => Some(owner_of(&required_operand(part)?, "the code that a mutator rewrites")?),
            },
        };
        // Code that belongs to no function is rewritten in a new owner.
        let owner = owner.unwrap_or_else(FuncOwner::building);
        slf.as_super().state().enter_rewrite(&owner)
    }

    /// Ends the innermost rewriting. The function that was under construction before becomes
    /// current again.
    fn _exit_rewrite(slf: PyRef<'_, Self>) {
        slf.as_super().state().exit_rewrite();
    }

    /// Begins a binding block. `_end_block` ends it.
    fn _begin_binding_block(slf: PyRef<'_, Self>) -> Result<()> {
        let owner = slf.as_super().state().current_owner()?;
        let mut inner = owner.lock();
        inner.builder()?.begin_block(false);
        Ok(())
    }

    /// Begins a dataflow block. `_end_block` ends it.
    fn _begin_dataflow_block(slf: PyRef<'_, Self>) -> Result<()> {
        let owner = slf.as_super().state().current_owner()?;
        let mut inner = owner.lock();
        inner.builder()?.begin_block(true);
        Ok(())
    }

    /// Ends the current block and returns it. Returns `original` itself if the block has exactly the same bindings.
    #[pyo3(signature = (original=None))]
    fn _end_block<'py>(
        slf: PyRef<'_, Self>,
        py: Python<'py>,
        original: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let owner = slf.as_super().state().current_owner()?;
        let block = {
            let mut inner = owner.lock();
            let blocks = inner.builder()?.end_blocks();
            let func = inner.func_and_vars()?.0;
            let mut blocks = blocks.into_iter();
            let first = blocks
                .next()
                .ok_or_else(|| {
                    Error::Value(
                        "_end_block: no block is open; begin one with _begin_binding_block or _begin_dataflow_block"
                            .into(),
                    )
                })?;
            // Blocks begun inside this block become part of it.
            for block in blocks {
                let mut bindings = std::mem::take(&mut func.block_mut(block).bindings);
                func.block_mut(first).bindings.append(&mut bindings);
            }
            first
        };
        let new_block = wrap_owned_block(py, &owner, block)?;
        match original {
            Some(original) if new_block.eq(original)? => Ok(original.clone()),
            _ => Ok(new_block),
        }
    }

    /// Whether the current block is a dataflow block.
    fn current_block_is_dataflow(slf: PyRef<'_, Self>) -> Result<bool> {
        let owner = slf.as_super().state().current_owner()?;
        let mut inner = owner.lock();
        Ok(inner.builder()?.in_dataflow())
    }

    /// Adds a binding unchanged to the current block.
    fn emit_normalized(slf: PyRef<'_, Self>, binding: &Bound<'_, Binding>) -> Result<()> {
        let owner = slf.as_super().state().current_owner()?;
        catch_panic(|| owner.lock().add_binding(&binding.get().binding).map(|_| ()))
    }

    /// Converts an expression to A-normal form and infers its type. Bindings that this requires are added at the
    /// builder's current position. Without a current function, `tvm_precision` selects TVM's precision of the type.
    #[pyo3(signature = (expr, tvm_precision=false))]
    fn _normalize<'py>(
        slf: PyRef<'_, Self>,
        expr: &Bound<'py, PyAny>,
        tvm_precision: bool,
    ) -> Result<Bound<'py, PyAny>> {
        let node = required_operand(expr)?;
        if let Ok(owner) = slf.as_super().state().current_owner() {
            let e = catch_panic(|| owner.lock().lower(&node))?;
            return wrap(expr.py(), in_func(&owner, e));
        }
        if !matches!(node.get(), Node::Call(_)) {
            return Ok(expr.clone());
        }
        // Without a current function, a call is placed in a new function whose parameters are the call's variables.
        let owner = match tvm_precision {
            true => FuncOwner::building_with_tvm_precision(),
            false => FuncOwner::building(),
        };
        let e = catch_panic(|| {
            let mut state = owner.lock();
            let e = state.lower(&node)?;
            let pure = !state.impure;
            state.finish(e, None, pure, |_| {})?;
            Ok(e)
        })?;
        wrap(expr.py(), in_func(&owner, e))
    }

    /// Returns the value that this rewriter has bound to a variable; `None` if it has not bound the
    /// variable.
    fn lookup_binding<'py>(
        slf: PyRef<'_, Self>,
        var: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let node = required_operand(var)?;
        let Ok(owner) = slf.as_super().state().current_owner() else { return Ok(None) };
        let value = {
            let key = node.key();
            let mut inner = owner.lock();
            let found = match key {
                crate::relax::detached_expr::Key::Ident(ident) => inner.find_expr(ident),
                _ => None,
            };
            let builder = inner.builder()?;
            match found.map(|e| builder.func().expr(e)) {
                Some(pliant_ir::relax::ExprData::Var(v)) => builder.value_of(*v),
                _ => None,
            }
        };
        value.map(|e| wrap(var.py(), in_func(&owner, e))).transpose()
    }

    /// Converts a value to A-normal form and binds it to the variable of `binding`. If the type of the value differs from that of
    /// the variable, binds it to a new variable of the same name instead. Returns the bound variable.
    fn _rebind<'py>(
        slf: PyRef<'_, Self>,
        binding: &Bound<'py, Binding>,
        var: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let old = binding.get().binding.clone();
        let (var_node, value_node) = (required_operand(var)?, required_operand(value)?);
        let owner = slf.as_super().state().current_owner()?;
        let e = catch_panic(|| {
            let mut inner = owner.lock();
            inner.rebind(&old, &var_node, &value_node)
        })?;
        let bound = in_func(&owner, e);
        match var.cast::<Expr>() {
            Ok(v) if v.get().node.same(&bound) => Ok(var.clone()),
            _ => wrap(var.py(), bound),
        }
    }
}

impl crate::relax::function_owner::OwnerState {
    /// Binds a value to a variable, or to a new variable of the same name if the types differ. Returns the expression
    /// of the bound variable.
    fn rebind(
        &mut self,
        old: &crate::relax::detached_functions::BindingRef,
        var: &crate::relax::detached_expr::NodeRef,
        value: &crate::relax::detached_expr::NodeRef,
    ) -> Result<pliant_ir::relax::Expr> {
        use pliant_ir::relax::{Binding, ExprData};
        let cast = old.cast();
        let mut e = self.lower(value)?;
        if cast.is_some() {
            e = self.builder()?.operand(e);
        }
        let cast = cast.map(|c| crate::relax::struct_info::to_type(self, &c)).transpose()?;
        let v = self.lower(var)?;
        let func = self.func_and_vars()?.0;
        let ExprData::Var(v) = *func.expr(v) else {
            return Err(Error::Type(
                "the variable of a binding must be a relax.Var, but is another expression".into(),
            ));
        };
        let ty = cast.unwrap_or(func.expr_ty(e));
        let data = func.var(v).clone();
        let same_type = ty == data.ty
            || (type_lattice::is_subtype(func, ty, data.ty).is_yes()
                && type_lattice::is_subtype(func, data.ty, ty).is_yes());
        let v = if same_type {
            v
        } else {
            let name = self.builder()?.unique_name(&data.name);
            self.func_and_vars()?.0.add_var(name, ty, data.dataflow, data.span)
        };
        self.builder()?.bind(Binding { var: v, value: e, cast: cast.into() });
        Ok(self.func_and_vars()?.0.var_expr(v))
    }
}
