//! The Python classes of binding sequences, blocks, bindings and conditionals.

use std::sync::Arc;

use pliant_ir::relax::ExprData;
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::relax::classes::struct_info::wrap_info;
use crate::relax::classes::{Expr, init, wrap};
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::detached_functions::{
    BindingRef, BlockNode, BlockRef, FreeBinding, IfNode, SeqNode,
};
use crate::relax::expr_accessors::{binding_text, in_func};
use crate::relax::function_owner::abandoned;
use crate::relax::value_conversion::{required_operand, sinfo};

/// A sequence of binding blocks, followed by its result expression.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct SeqExpr;

fn seq_of<'a>(slf: &'a PyRef<'_, SeqExpr>) -> Result<&'a SeqNode> {
    match slf.as_super().node.get() {
        Node::Seq(seq) => Ok(seq),
        _ => Err(Error::Internal(
            "a SeqExpr object does not contain a sequence of binding blocks (this is a bug in Pliant)".into(),
        )),
    }
}

#[pymethods]
impl SeqExpr {
    #[new]
    #[pyo3(signature = (blocks, body, span=None))]
    fn new(
        blocks: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let blocks: Result<Vec<BlockRef>> = blocks
            .try_iter()?
            .map(|b| Ok(b?.cast::<BindingBlock>().map_err(PyErr::from)?.get().block.clone()))
            .collect();
        let seq = SeqNode::Free { blocks: blocks?, body: required_operand(body)? };
        Ok(init(NodeRef::new(Node::Seq(seq)).checked()?).add_subclass(SeqExpr))
    }

    /// Returns the binding blocks of the sequence.
    #[getter]
    fn blocks<'py>(slf: PyRef<'py, Self>) -> Result<Vec<Bound<'py, PyAny>>> {
        seq_of(&slf)?.blocks().into_iter().map(|b| wrap_block(slf.py(), b)).collect()
    }

    /// Returns the result expression of the sequence.
    #[getter]
    fn body<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        match seq_of(&slf)?.body() {
            Some(body) => wrap(slf.py(), body),
            None => Err(abandoned()),
        }
    }
}

/// A block of bindings (`relax.BindingBlock`).
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct BindingBlock {
    /// The block in the representation of this crate.
    pub block: BlockRef,
}

/// Converts a Python list of bindings.
fn binding_list(list: &Bound<'_, PyAny>) -> Result<Vec<BindingRef>> {
    let one = |b: Bound<'_, PyAny>| match b.cast::<Binding>() {
        Ok(b) => Ok(b.get().binding.clone()),
        Err(_) => Err(Error::Type(format!(
            "each binding of a block must be a VarBinding or MatchCast object, not {}",
            b.get_type().name()?
        ))),
    };
    list.try_iter()?.map(|b| one(b?)).collect()
}

#[pymethods]
impl BindingBlock {
    #[new]
    #[pyo3(signature = (bindings, span=None))]
    fn new(bindings: &Bound<'_, PyAny>, span: Option<&Bound<'_, PyAny>>) -> Result<Self> {
        let _ = span;
        Ok(BindingBlock { block: BlockRef::free(false, binding_list(bindings)?) })
    }

    /// Always `None`: Python objects do not record source locations. Constructors accept the argument for compatibility
    /// with TVM.
    #[getter]
    fn span(&self) -> Option<Py<PyAny>> {
        None
    }

    /// Whether this is a dataflow block.
    #[getter]
    fn is_dataflow(&self) -> bool {
        self.block.dataflow()
    }

    /// Returns the bindings of the block.
    #[getter]
    fn bindings<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        self.block.bindings().into_iter().map(|b| wrap_binding(py, b)).collect()
    }

    /// Finds the runs of two or more consecutive bindings of local functions. Returns each run as the index of its first binding
    /// and the index after its last one.
    fn _function_runs(&self) -> Vec<(usize, usize)> {
        self.block.function_runs()
    }

    /// Whether both objects represent the same block, compared binding by binding.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<BindingBlock>().is_ok_and(|o| o.get().block.same(&self.block))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        for b in self.block.bindings() {
            b.var().map(|v| v.key()).hash(&mut h);
        }
        h.finish()
    }

    fn __repr__(&self) -> String {
        let lines: Vec<String> = self.block.bindings().iter().map(|b| binding_text(b, 0)).collect();
        if self.block.dataflow() {
            format!("with R.dataflow():\n    {}", lines.join("\n    "))
        } else {
            lines.join("\n")
        }
    }
}

/// A block without side effects and control flow (`relax.DataflowBlock`).
#[pyclass(extends = BindingBlock, frozen, module = "pliant.relax")]
pub struct DataflowBlock;

#[pymethods]
impl DataflowBlock {
    #[new]
    #[pyo3(signature = (bindings, span=None))]
    fn new(
        bindings: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let block = BlockRef::free(true, binding_list(bindings)?);
        Ok(PyClassInitializer::from(BindingBlock { block }).add_subclass(DataflowBlock))
    }
}

/// Wraps a block as an instance of its Python class.
///
/// # Errors
/// An error of the Python interpreter.
pub fn wrap_block(py: Python<'_>, block: BlockRef) -> Result<Bound<'_, PyAny>> {
    let dataflow = block.dataflow();
    let base = PyClassInitializer::from(BindingBlock { block });
    Ok(if dataflow {
        Bound::new(py, base.add_subclass(DataflowBlock))?.into_any()
    } else {
        Bound::new(py, base)?.into_any()
    })
}

/// Wraps a block of the function that `owner` holds as a Python object.
///
/// # Errors
/// An error of the Python interpreter.
pub fn wrap_owned_block<'py>(
    py: Python<'py>,
    owner: &Arc<crate::relax::function_owner::FuncOwner>,
    block: pliant_ir::relax::Block,
) -> Result<Bound<'py, PyAny>> {
    wrap_block(py, BlockRef::new(BlockNode::In(owner.clone(), block)))
}

/// A binding of a variable to a value or to the result of a `match_cast`.
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct Binding {
    /// The binding in the representation of this crate.
    pub binding: BindingRef,
}

#[pymethods]
impl Binding {
    /// Always `None`: Python objects do not record source locations. Constructors accept the argument for compatibility
    /// with TVM.
    #[getter]
    fn span(&self) -> Option<Py<PyAny>> {
        None
    }

    /// Returns the variable that is bound.
    #[getter]
    fn var<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap(py, self.binding.var().ok_or_else(abandoned)?)
    }

    /// Returns the value to which the variable is bound.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap(py, self.binding.value().ok_or_else(abandoned)?)
    }

    /// Whether both bind the same variable to the same value.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Binding>().is_ok_and(|o| o.get().binding.same(&self.binding))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        self.same_as(other)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.binding.var().map(|v| v.key()).hash(&mut h);
        h.finish()
    }

    fn __repr__(&self) -> String {
        binding_text(&self.binding, 0)
    }
}

fn free_binding(
    var: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    cast: Option<&Bound<'_, PyAny>>,
) -> Result<Binding> {
    if !var.is_instance_of::<crate::relax::classes::Var>() {
        return Err(Error::Type(format!(
            "the variable of a binding must be a relax.Var, not {}",
            var.repr()?
        )));
    }
    let (var, value) = (required_operand(var)?, required_operand(value)?.checked()?);
    let cast = cast.map(sinfo).transpose()?;
    Ok(Binding { binding: BindingRef::Free(Arc::new(FreeBinding { var, value, cast })) })
}

/// A binding of a variable to a value.
#[pyclass(extends = Binding, frozen, module = "pliant.relax")]
pub struct VarBinding;

#[pymethods]
impl VarBinding {
    #[new]
    #[pyo3(signature = (var, value, span=None))]
    fn new(
        var: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(PyClassInitializer::from(free_binding(var, value, None)?).add_subclass(VarBinding))
    }
}

/// A run-time check that a value has a type. It defines the size variables that first occur in the type.
#[pyclass(extends = Binding, frozen, module = "pliant.relax")]
pub struct MatchCast;

#[pymethods]
impl MatchCast {
    #[new]
    #[pyo3(signature = (var, value, struct_info, span=None))]
    fn new(
        var: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        struct_info: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let binding = free_binding(var, value, Some(struct_info))?;
        Ok(PyClassInitializer::from(binding).add_subclass(MatchCast))
    }

    /// Returns the type for which the value is checked.
    #[getter]
    fn struct_info<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let info = slf.as_super().binding.cast().ok_or_else(abandoned)?;
        wrap_info(slf.py(), info)
    }
}

/// Wraps a binding as an instance of its Python class.
///
/// # Errors
/// An error of the Python interpreter.
pub fn wrap_binding(py: Python<'_>, binding: BindingRef) -> Result<Bound<'_, PyAny>> {
    let cast = binding.is_cast();
    let base = PyClassInitializer::from(Binding { binding });
    Ok(if cast {
        Bound::new(py, base.add_subclass(MatchCast))?.into_any()
    } else {
        Bound::new(py, base.add_subclass(VarBinding))?.into_any()
    })
}

/// A conditional on a scalar bool.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct If;

/// Returns the condition and the two branches of a conditional.
fn if_parts(node: &NodeRef) -> Result<[NodeRef; 3]> {
    match node.get() {
        Node::If(choice) => Ok(choice.parts()),
        Node::InFunc(owner, e) => match owner.lock().func().map(|f| f.expr(*e)) {
            Some(ExprData::If { cond, then_seq, else_seq }) => {
                let seq = |s| NodeRef::new(Node::Seq(SeqNode::In(owner.clone(), s)));
                Ok([in_func(owner, *cond), seq(*then_seq), seq(*else_seq)])
            }
            _ => Err(abandoned()),
        },
        _ => Err(abandoned()),
    }
}

#[pymethods]
impl If {
    #[new]
    #[pyo3(signature = (cond, true_branch, false_branch, span=None))]
    fn new(
        cond: &Bound<'_, PyAny>,
        true_branch: &Bound<'_, PyAny>,
        false_branch: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let choice = IfNode {
            cond: required_operand(cond)?,
            then_seq: required_operand(true_branch)?,
            else_seq: required_operand(false_branch)?,
        };
        Ok(init(NodeRef::new(Node::If(choice)).checked()?).add_subclass(If))
    }

    /// Returns the condition of the conditional, a scalar bool.
    #[getter]
    fn cond<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let [cond, _, _] = if_parts(&slf.as_super().node)?;
        wrap(slf.py(), cond)
    }

    /// Returns the branch that is evaluated if the condition is true.
    #[getter]
    fn true_branch<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let [_, branch, _] = if_parts(&slf.as_super().node)?;
        wrap(slf.py(), branch)
    }

    /// Returns the branch that is evaluated if the condition is false.
    #[getter]
    fn false_branch<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let [_, _, branch] = if_parts(&slf.as_super().node)?;
        wrap(slf.py(), branch)
    }
}
