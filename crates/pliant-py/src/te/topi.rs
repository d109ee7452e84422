//! Graph-level operators applied to `te` tensors. They have the signatures of the operators, and compute the same
//! tensor expressions to which calls of the operators are lowered.

use pliant_ir::relax::TypeData;
use pliant_ops::{te, topi};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::nesting_limit::NestingLevel;
use crate::relax::classes::wrap;
use crate::relax::detached_expr::{FreeVar, Node, NodeRef};
use crate::relax::function_owner::FuncOwner;
use crate::relax::operators::OpFunction;
use crate::relax::struct_info::{SInfo, ShapeInfo};
use crate::te::tensor::Tensor;

/// Returns the tensors that an operator computes from tensors, numbers and shapes: one tensor, or a
/// list if the operator returns a tuple.
#[pyfunction]
#[pyo3(signature = (op, *args, **kwargs))]
pub fn te_operator<'py>(
    op: &Bound<'py, OpFunction>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> Result<Bound<'py, PyAny>> {
    let py = op.py();
    let mut operands = Operands::default();
    let args: Result<Vec<_>> = args.iter().map(|a| operands.replace_tensors(&a)).collect();
    let replaced_kwargs = PyDict::new(py);
    for (key, value) in kwargs.into_iter().flatten() {
        replaced_kwargs.set_item(key, operands.replace_tensors(&value)?)?;
    }
    let call = op.get().bind(&PyTuple::new(py, args?)?, Some(&replaced_kwargs))?;
    let (outputs, tuple) = catch_panic(|| operands.outputs(NodeRef::new(Node::Call(call))))?;
    let tensors: PyResult<Vec<_>> =
        outputs.into_iter().map(|tensor| Bound::new(py, Tensor { tensor })).collect();
    let mut tensors = tensors?;
    match tensors.pop() {
        Some(one) if !tuple && tensors.is_empty() => Ok(one.into_any()),
        last => {
            tensors.extend(last);
            Ok(PyList::new(py, tensors)?.into_any())
        }
    }
}

/// Whether an operator can be applied to `te` tensors.
#[pyfunction]
pub fn has_te(op: &Bound<'_, OpFunction>) -> bool {
    topi::has_te(op.get().op)
}

/// The tensors among the arguments, each with the graph variable that represents it in the call.
#[derive(Default)]
struct Operands(Vec<(FreeVar, te::Tensor)>);

impl Operands {
    /// Replaces each tensor in an argument by its graph variable.
    fn replace_tensors<'py>(&mut self, obj: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let _level = NestingLevel::enter("operands")?;
        let py = obj.py();
        if let Ok(tensor) = obj.cast::<Tensor>() {
            return wrap(py, NodeRef::new(Node::Var(self.var(&tensor.get().tensor))));
        }
        if !(obj.is_instance_of::<PyList>() || obj.is_instance_of::<PyTuple>()) {
            return Ok(obj.clone());
        }
        let items: Result<Vec<_>> =
            obj.try_iter()?.map(|item| self.replace_tensors(&item?)).collect();
        Ok(PyList::new(py, items?)?.into_any())
    }

    fn var(&mut self, tensor: &te::Tensor) -> FreeVar {
        if let Some((var, _)) = self.0.iter().find(|(_, t)| t == tensor) {
            return var.clone();
        }
        let shape = ShapeInfo::Dims(tensor.shape().to_vec());
        let info = SInfo::Tensor(shape, Some(tensor.dtype()));
        let var = FreeVar::new(tensor.name(), Some(info), false);
        self.0.push((var.clone(), tensor.clone()));
        var
    }

    /// Creates `call` in a temporary function. Returns the outputs of the call, and whether they form a tuple.
    fn outputs(&self, call: NodeRef) -> Result<(Vec<te::Tensor>, bool)> {
        let owner = FuncOwner::building();
        let mut locked = owner.lock();
        let state = &mut *locked;
        let call = state.lower(&call)?;
        let inputs: Vec<_> =
            self.0.iter().filter_map(|(v, t)| Some((state.free_expr(v)?, t.clone()))).collect();
        let (func, vars) = state.func_and_vars()?;
        let outputs = topi::outputs_over(func, call, vars, &inputs);
        let tuple = matches!(func.ty(call), TypeData::Tuple(_));
        Ok((outputs.map_err(|e| Error::Compile(e.to_string()))?, tuple))
    }
}
