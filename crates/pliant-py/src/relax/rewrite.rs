//! The part of `BlockBuilder` for mutators: rewrites a function block by block and binding by
//! binding.

use pliant_ir::relax::type_lattice;
use pyo3::prelude::*;

use crate::enter::guard;
use crate::error::{Error, Result};
use crate::module::IRModule;
use crate::relax::blocks::{Binding, BindingBlock, wrap_home_block};
use crate::relax::builder::BlockBuilder;
use crate::relax::classes::{Expr, wrap};
use crate::relax::convert::needed;
use crate::relax::function::home_of;
use crate::relax::home::Home;
use crate::relax::node::Node;
use crate::relax::views::in_func;

/// A block builder that can also rewrite functions.
#[pyclass(extends = BlockBuilder, subclass, frozen, module = "pliant.relax")]
pub struct BlockRewriter;

#[pymethods]
impl BlockRewriter {
    #[new]
    #[pyo3(signature = (module=None))]
    fn new(module: Option<&Bound<'_, IRModule>>) -> PyClassInitializer<Self> {
        PyClassInitializer::from(BlockBuilder::over(module)).add_subclass(BlockRewriter)
    }

    /// Begins to rewrite a function, a block or a sequence. Later bindings are emitted into a copy
    /// of the enclosing function, in which the original parts stay valid.
    fn _enter_rewrite(slf: PyRef<'_, Self>, part: &Bound<'_, PyAny>) -> Result<()> {
        let home = match part.cast::<BindingBlock>() {
            Ok(block) => block.get().block.home(),
            Err(_) => match needed(part)?.get() {
                Node::Seq(seq) => seq.home(),
                // A local function that captures variables is rewritten inside its enclosing
                // function.
                Node::InFunc(home, _) => Some(home.clone()),
                Node::Func(_) => None,
                _ => Some(home_of(&needed(part)?)?),
            },
        };
        // Code that belongs to no function is rewritten in a new home.
        let home = home.unwrap_or_else(Home::building);
        slf.as_super().state().enter_rewrite(&home)
    }

    /// Ends the innermost rewriting.
    fn _exit_rewrite(slf: PyRef<'_, Self>) {
        slf.as_super().state().exit_rewrite();
    }

    /// Begins a binding block. `_end_block` ends it.
    fn _begin_binding_block(slf: PyRef<'_, Self>) -> Result<()> {
        let home = slf.as_super().state().home()?;
        let mut inner = home.lock();
        inner.builder()?.begin_block(false);
        Ok(())
    }

    /// Begins a dataflow block. `_end_block` ends it.
    fn _begin_dataflow_block(slf: PyRef<'_, Self>) -> Result<()> {
        let home = slf.as_super().state().home()?;
        let mut inner = home.lock();
        inner.builder()?.begin_block(true);
        Ok(())
    }

    /// Ends the current block and returns it. Returns `original` itself if the block has exactly
    /// the same bindings.
    #[pyo3(signature = (original=None))]
    fn _end_block<'py>(
        slf: PyRef<'_, Self>,
        py: Python<'py>,
        original: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let home = slf.as_super().state().home()?;
        let block = {
            let mut inner = home.lock();
            let blocks = inner.builder()?.end_blocks();
            let func = inner.parts()?.0;
            let mut blocks = blocks.into_iter();
            let first = blocks
                .next()
                .ok_or_else(|| Error::Value("no block is open: nothing can be ended".into()))?;
            // Blocks begun inside this block become part of it.
            for block in blocks {
                let mut bindings = std::mem::take(&mut func.block_mut(block).bindings);
                func.block_mut(first).bindings.append(&mut bindings);
            }
            first
        };
        let made = wrap_home_block(py, &home, block)?;
        match original {
            Some(original) if made.eq(original)? => Ok(original.clone()),
            _ => Ok(made),
        }
    }

    /// Whether the current block is a dataflow block.
    fn current_block_is_dataflow(slf: PyRef<'_, Self>) -> Result<bool> {
        let home = slf.as_super().state().home()?;
        let mut inner = home.lock();
        Ok(inner.builder()?.in_dataflow())
    }

    /// Adds a binding unchanged.
    fn emit_normalized(slf: PyRef<'_, Self>, binding: &Bound<'_, Binding>) -> Result<()> {
        let home = slf.as_super().state().home()?;
        guard(|| home.lock().add_binding(&binding.get().binding).map(|_| ()))
    }

    /// Converts an expression to A-normal form and infers its type. Bindings that this requires are
    /// added at the builder's current position.
    fn normalize<'py>(slf: PyRef<'_, Self>, expr: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let node = needed(expr)?;
        if let Ok(home) = slf.as_super().state().home() {
            let e = guard(|| home.lock().lower(&node))?;
            return wrap(expr.py(), in_func(&home, e));
        }
        if !matches!(node.get(), Node::Call(_)) {
            return Ok(expr.clone());
        }
        // Without a current function, a call is placed in a new function whose parameters are the
        // call's variables.
        let home = Home::building();
        let e = guard(|| {
            let mut state = home.lock();
            let e = state.lower(&node)?;
            let pure = !state.impure;
            state.finish(e, None, pure, |_| {})?;
            Ok(e)
        })?;
        wrap(expr.py(), in_func(&home, e))
    }

    /// The value that this builder bound to a variable, or `None` if it did not bind the variable.
    fn lookup_binding<'py>(
        slf: PyRef<'_, Self>,
        var: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let node = needed(var)?;
        let Ok(home) = slf.as_super().state().home() else { return Ok(None) };
        let value = {
            let key = node.key();
            let mut inner = home.lock();
            let found = match key {
                crate::relax::node::Key::Ident(ident) => inner.find(ident),
                _ => None,
            };
            let builder = inner.builder()?;
            match found.map(|e| builder.func().expr(e)) {
                Some(pliant_ir::relax::ExprData::Var(v)) => builder.value_of(*v),
                _ => None,
            }
        };
        value.map(|e| wrap(var.py(), in_func(&home, e))).transpose()
    }

    /// Binds a new value to the variable of a binding. If the type of the value differs, a new
    /// variable of the same name is bound instead. Returns the bound variable. The value is first
    /// converted to A-normal form.
    fn _rebind<'py>(
        slf: PyRef<'_, Self>,
        binding: &Bound<'py, Binding>,
        var: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let old = binding.get().binding.clone();
        let (var_node, value_node) = (needed(var)?, needed(value)?);
        let home = slf.as_super().state().home()?;
        let e = guard(|| {
            let mut inner = home.lock();
            inner.rebind(&old, &var_node, &value_node)
        })?;
        let made = in_func(&home, e);
        match var.cast::<Expr>() {
            Ok(v) if v.get().node.same(&made) => Ok(var.clone()),
            _ => wrap(var.py(), made),
        }
    }
}

impl crate::relax::home::HomeState {
    /// Binds a value to a variable, or to a new variable of the same name if the types differ.
    /// Returns the expression of the bound variable.
    fn rebind(
        &mut self,
        old: &crate::relax::seq::BindingRef,
        var: &crate::relax::node::NodeRef,
        value: &crate::relax::node::NodeRef,
    ) -> Result<pliant_ir::relax::Expr> {
        use pliant_ir::relax::{Binding, ExprData};
        let cast = old.cast();
        let mut e = self.lower(value)?;
        if cast.is_some() {
            e = self.builder()?.operand(e);
        }
        let cast = cast.map(|c| crate::relax::sinfo::to_type(self, &c)).transpose()?;
        let v = self.lower(var)?;
        let func = self.parts()?.0;
        let ExprData::Var(v) = *func.expr(v) else {
            return Err(Error::Type("a binding defines a relax.Var".into()));
        };
        let ty = cast.unwrap_or(func.expr_ty(e));
        let data = func.var(v).clone();
        let kept = ty == data.ty
            || (type_lattice::is_subtype(func, ty, data.ty).is_yes()
                && type_lattice::is_subtype(func, data.ty, ty).is_yes());
        let v = if kept {
            v
        } else {
            let name = self.builder()?.unique_name(&data.name);
            self.parts()?.0.add_var(name, ty, data.dataflow, data.span)
        };
        self.builder()?.bind(Binding { var: v, value: e, cast: cast.into() });
        Ok(self.parts()?.0.var_expr(v))
    }
}
