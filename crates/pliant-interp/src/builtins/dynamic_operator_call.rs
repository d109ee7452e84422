//! `pliant.call_operator`: calls an operator on dynamically typed operands.

use std::sync::Arc;

use pliant_ir::BaseFunc;
use pliant_ops::dynamic_operator_calls::{OperandType, call_script};
use pliant_ops::registry;

use super::Args;
use crate::graph_functions;
use crate::interp_error::Result;
use crate::interpreter::Interpreter;
use crate::{InterpError, Value};

/// `call_operator(name, text, operands...)`: parses `text` as the body of a function whose parameters have the types of the
/// operands, and runs this function.
pub(super) fn call(interp: &mut Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let (name, text) = (a.text(0), a.text(1));
    let operands = a.0.get(2..).unwrap_or_default();
    let types: Vec<OperandType> = operands.iter().map(operand).collect();
    let module = pliant_script::parse_module(&call_script(text, &types), registry());
    let module = module.map_err(|errors| {
        let first = errors.first().map_or("unreadable", |e| &e.message);
        InterpError::type_error(first.to_string())
    })?;
    let Some(BaseFunc::Relax(func)) = module.get("main") else {
        return Err(InterpError::type_error(format!(
            "{name}: operand 1 must be the script text of a graph function with one operator call, but it contains no \
             graph function"
        )));
    };
    let (name, func): (Arc<str>, _) = (name.into(), func.clone());
    interp
        .nested_call(&name, |interp| graph_functions::call_function(interp, &name, &func, operands))
}

/// Returns the type of an operand. The recursion into tuples is limited by the nesting of types in the program.
fn operand(value: &Value) -> OperandType {
    match value {
        Value::Tensor(t) => {
            OperandType::Tensor(t.shape().iter().map(|&d| Some(d)).collect(), t.dtype())
        }
        Value::Shape(dims) => OperandType::Shape(dims.iter().map(|&d| Some(d)).collect()),
        Value::Int(_) => OperandType::Int,
        Value::Bool(_) => OperandType::Scalar(pliant_tensor::DType::Bool),
        Value::Float(_) => OperandType::Scalar(pliant_tensor::DType::Float64),
        Value::Tuple(items) => OperandType::Tuple(items.iter().map(operand).collect()),
        _ => OperandType::Other,
    }
}
