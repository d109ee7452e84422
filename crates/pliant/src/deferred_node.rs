//! The library function `pliant.onnx.node`: imports an ONNX node at run time for the operands that it is called with, and runs it
//! ([`pliant_onnx::DeferredNode`]).
//!
//! A node is compiled once for each combination of ranks and element types of its operands, with
//! all sizes symbolic. If it cannot be imported that way, it is imported again with more constants:
//! the sizes of the operands, and the elements of operands that are few integers. The second
//! attempt treats all operands except the first one this way, and the third attempt all operands.

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::host_function_names::NODE;
use pliant_onnx::{DeferredNode, OperandSpec, Specialization};
use pliant_runtime::argument_error;
use pliant_tensor::Tensor;
use pliant_vm::{CheckKind, Value, VirtualMachine, VmError};

use crate::compile::compile;
use crate::compile_options::CompileOptions;
use crate::program_cache::Programs;

/// The compiled programs of ONNX nodes that were imported at run time. The key is the node and the types of its operands.
static PROGRAMS: Programs<(String, Vec<OperandSpec>), String> = Programs::new();

/// Implements the library function `pliant.onnx.node(node, operands...)`: imports the ONNX node for these operands and runs it.
/// Returns its result, or a tuple of its results if there are several.
pub(crate) fn call(runtime: &KernelRuntime, args: &[Value]) -> Result<Value, VmError> {
    let [Value::Str(text), operands @ ..] = args else { return Err(argument_error(NODE, args)) };
    let tensor = |v: &Value| match v {
        Value::Tensor(t) => Some(t.clone()),
        _ => None,
    };
    let tensors: Option<Vec<Tensor>> = operands.iter().map(tensor).collect();
    let tensors = tensors.ok_or_else(|| argument_error(NODE, args))?;
    let mut last_error = String::new();
    for specialization in Specialization::ALL {
        let specs: Vec<OperandSpec> = tensors
            .iter()
            .enumerate()
            .map(|(i, t)| OperandSpec::from_tensor(t, i, specialization))
            .collect();
        let program =
            PROGRAMS.program((text.to_string(), specs.clone()), || compile_node(text, &specs));
        match &*program {
            Ok(vm) => {
                // Operands whose values are compiled into the program are not inputs of it.
                let inputs = specs.iter().zip(operands).filter(|(spec, _)| !spec.has_values());
                let inputs: Vec<Value> = inputs.map(|(_, v)| v.clone()).collect();
                // SAFETY: the runtime is that of the caller, which waits for the result.
                return unsafe { vm.invoke_within(runtime, "main", &inputs) };
            }
            // The most specialized attempt is the last one, and its message the most relevant.
            Err(message) => last_error.clone_from(message),
        }
    }
    Err(VmError::check(CheckKind::Value, last_error))
}

/// Imports and compiles a node for the given operand types. The error names the node.
fn compile_node(text: &str, specs: &[OperandSpec]) -> Result<VirtualMachine, String> {
    let node = DeferredNode::from_text(text).map_err(|p| p.to_string())?;
    let label = node.label();
    let module = node.import(specs).map_err(|p| match p.node.is_empty() {
        true => format!("{label}: {p}"),
        false => p.to_string(),
    })?;
    let program = compile(module, &CompileOptions::default());
    let vm = program.and_then(|p| p.vm()).map_err(|e| format!("{label}: {e}"))?;
    pliant_vm::record_compilation();
    Ok(vm)
}
