//! Operators on `te` tensors, with the operators' own signatures. The tensor expressions are those
//! to which calls are lowered.

use pliant_ir::relax::TypeData;
use pliant_ops::{te, topi};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::enter::guard;
use crate::error::{Error, Result};
use crate::nesting::Level;
use crate::relax::classes::wrap;
use crate::relax::home::Home;
use crate::relax::node::{FreeVar, Node, NodeRef};
use crate::relax::op::OpFunction;
use crate::relax::sinfo::{SInfo, SShape};
use crate::te::tensor::Tensor;

/// The tensors that an operator computes from tensors, numbers and shapes: one tensor, or a list if
/// the operator returns a tuple.
#[pyfunction]
#[pyo3(signature = (op, *args, **kwargs))]
pub fn te_operator<'py>(
    op: &Bound<'py, OpFunction>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let py = op.py();
    let mut operands = Operands::default();
    let args: Result<Vec<_>> = args.iter().map(|a| operands.expr(&a)).collect();
    let named = PyDict::new(py);
    for (key, value) in kwargs.into_iter().flatten() {
        named.set_item(key, operands.expr(&value)?)?;
    }
    let call = op.get().bind(&PyTuple::new(py, args?)?, Some(&named))?;
    let (outputs, tuple) = guard(|| operands.outputs(NodeRef::new(Node::Call(call))))?;
    let made: PyResult<Vec<_>> =
        outputs.into_iter().map(|tensor| Bound::new(py, Tensor { tensor })).collect();
    let mut made = made?;
    match made.pop() {
        Some(one) if !tuple && made.is_empty() => Ok(one.into_any()),
        last => {
            made.extend(last);
            Ok(PyList::new(py, made)?.into_any())
        }
    }
}

/// Whether an operator can be applied to tensors of `te`.
#[pyfunction]
pub fn has_te(op: &Bound<'_, OpFunction>) -> bool {
    topi::has_te(op.get().op)
}

/// The tensor arguments, each with the variable that stands for it.
#[derive(Default)]
struct Operands(Vec<(FreeVar, te::Tensor)>);

impl Operands {
    /// An argument with each tensor replaced by the variable that stands for it.
    fn expr<'py>(&mut self, obj: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let _level = Level::enter("operands")?;
        let py = obj.py();
        if let Ok(tensor) = obj.cast::<Tensor>() {
            return wrap(py, NodeRef::new(Node::Var(self.var(&tensor.get().tensor))));
        }
        if !(obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>()) {
            return Ok(obj.clone());
        }
        let items: Result<Vec<_>> = obj.try_iter()?.map(|item| self.expr(&item?)).collect();
        Ok(PyList::new(py, items?)?.into_any())
    }

    fn var(&mut self, tensor: &te::Tensor) -> FreeVar {
        if let Some((var, _)) = self.0.iter().find(|(_, t)| t == tensor) {
            return var.clone();
        }
        let shape = SShape::Dims(tensor.shape().to_vec());
        let info = SInfo::Tensor(shape, Some(tensor.dtype()));
        let var = FreeVar::new(tensor.name(), Some(info), false);
        self.0.push((var.clone(), tensor.clone()));
        var
    }

    /// The outputs of the call, which is created in a temporary function, and whether they form a
    /// tuple.
    fn outputs(&self, call: NodeRef) -> Result<(Vec<te::Tensor>, bool)> {
        let home = Home::building();
        let mut locked = home.lock();
        let state = &mut *locked;
        let call = state.lower(&call)?;
        let given: Vec<_> =
            self.0.iter().filter_map(|(v, t)| Some((state.free_expr(v)?, t.clone()))).collect();
        let (func, vars) = state.parts()?;
        let outputs = topi::outputs_over(func, call, vars, &given);
        let tuple = matches!(func.ty(call), TypeData::Tuple(_));
        Ok((outputs.map_err(|e| Error::Compile(e.to_string()))?, tuple))
    }
}
