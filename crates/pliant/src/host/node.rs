//! `pliant.onnx.node`: nodes that are imported at run time for the actual operands
//! ([`pliant_onnx::DeferredNode`]).
//!
//! A node is compiled once for each combination of ranks and element types, with all sizes
//! symbolic. Only if it cannot be imported like that, it is also compiled for the actual sizes and
//! small integer values.

use pliant_exec::abi::KernelRuntime;
use pliant_onnx::{DeferredNode, OperandSpec, Specialization};
use pliant_tensor::Tensor;
use pliant_vm::{CheckKind, Value, VirtualMachine, VmError};

use super::{Outcome, misused};
use crate::compile::compile;
use crate::options::CompileOptions;
use crate::programs::Programs;

/// The programs by node and operands.
static TABLE: Programs<(String, Vec<OperandSpec>), String> = Programs::new();

/// `(node, operands...)`: its results, as a tuple if there are several.
pub(super) fn call(runtime: &KernelRuntime, args: &[Value]) -> Outcome {
    let name = pliant_onnx::host::NODE;
    let [Value::Str(text), operands @ ..] = args else { return Err(misused(name, args)) };
    let tensor = |v: &Value| match v {
        Value::Tensor(t) => Some(t.clone()),
        _ => None,
    };
    let tensors: Option<Vec<Tensor>> = operands.iter().map(tensor).collect();
    let tensors = tensors.ok_or_else(|| misused(name, args))?;
    let mut told = String::new();
    for specialization in Specialization::ALL {
        let specs: Vec<OperandSpec> = tensors
            .iter()
            .enumerate()
            .map(|(i, t)| OperandSpec::from_tensor(t, i, specialization))
            .collect();
        let program = TABLE.program((text.to_string(), specs.clone()), || made(text, &specs));
        match &*program {
            Ok(machine) => {
                // Operands whose values are part of the program are not inputs of it.
                let fed = specs.iter().zip(operands).filter(|(spec, _)| !spec.has_values());
                let fed: Vec<Value> = fed.map(|(_, v)| v.clone()).collect();
                // SAFETY: the runtime is that of the caller, which waits for the result.
                return unsafe { machine.invoke_within(runtime, "main", &fed) };
            }
            // The attempt with the most known facts gives the most relevant message.
            Err(message) => told.clone_from(message),
        }
    }
    Err(VmError::check(CheckKind::Value, told))
}

fn made(text: &str, specs: &[OperandSpec]) -> Result<VirtualMachine, String> {
    let node = DeferredNode::from_text(text).map_err(|p| p.to_string())?;
    let label = node.label();
    let module = node.import(specs).map_err(|p| match p.node.is_empty() {
        true => format!("{label}: {p}"),
        false => p.to_string(),
    })?;
    let program = compile(module, &CompileOptions::default());
    program.and_then(|p| p.vm()).map_err(|e| format!("{label}: {e}"))
}
