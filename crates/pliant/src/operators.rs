//! `pliant.call_operator`: operators on operands whose rank or data type is known only at run time.
//!
//! The call, for the actual ranks and data types of its operands, is a small program with symbolic
//! sizes. It is compiled the first time, but not again for other sizes, and kept in a bounded cache
//! ([`Programs`]). The VM does not know about this: to it, the function is an ordinary host
//! function.

use pliant_exec::FuncDef;
use pliant_exec::abi::KernelRuntime;
use pliant_ops::ConstantSizes;
use pliant_ops::dynamic_calls::{CALL_OPERATOR, OperandType, call_script};
use pliant_tensor::DType;
use pliant_vm::{CheckKind, Value, VirtualMachine, VmError};

use crate::compile::compile;
use crate::error::Error;
use crate::options::CompileOptions;
use crate::programs::Programs;

/// Maximum nesting of tuple operands.
const MAX_DEPTH: usize = 32;
/// Maximum number of values in an operand. A shared tuple counts once for each occurrence.
const MAX_VALUES: usize = 1 << 16;

static TABLE: Programs<String, String> = Programs::new();

/// The current number of programs.
pub fn operator_programs() -> usize {
    TABLE.len()
}

/// `call_operator(name, text, operands...)`: makes the call that `text` describes. Errors read like
/// those of the operator.
pub(crate) fn call(runtime: &KernelRuntime, args: &[Value]) -> Result<Value, VmError> {
    run(runtime, args).map_err(|e| VmError::Plain(Box::new(e)))
}

fn run(runtime: &KernelRuntime, args: &[Value]) -> Result<Value, VmError> {
    let [Value::Str(name), Value::Str(text), operands @ ..] = args else {
        return Err(VmError::type_error(format!("{CALL_OPERATOR} takes two texts and operands")));
    };
    let numbers = pliant_ops::constant_sizes_of(name);
    let kind = |value, known| operand(value, known, 0, &mut { MAX_VALUES });
    let types: Option<Vec<OperandType>> = operands
        .iter()
        .enumerate()
        .map(|(k, v)| match numbers {
            ConstantSizes::LastDim(at) if at == k => kind(v, Known::Last),
            ConstantSizes::WhetherOne => kind(v, Known::Ones),
            _ => kind(v, Known::Nothing),
        })
        .collect();
    let types = types.ok_or_else(|| {
        VmError::check(
            CheckKind::Type,
            format!("{name}: an operand is nested too deeply or has too many values"),
        )
    })?;
    let script = call_script(text, &types);
    match &*TABLE.program(script.clone(), || made(name, &script)) {
        Ok(machine) => {
            // SAFETY: the runtime is that of the caller, which waits for the result.
            unsafe { machine.invoke_within(runtime, "main", operands) }.map_err(|e| match e {
                VmError::Check(kind, text) if !text.contains(&**name) => {
                    VmError::check(kind, format!("{name}: {text}"))
                }
                other => other,
            })
        }
        Err(message) => Err(VmError::check(CheckKind::Type, message.clone())),
    }
}

/// Which sizes of an operand are part of its kind.
#[derive(Clone, Copy)]
enum Known {
    Nothing,
    Ones,
    Last,
}

/// The kind of an operand. `left` is the number of values that it may still have.
fn operand(value: &Value, known: Known, depth: usize, left: &mut usize) -> Option<OperandType> {
    *left = left.checked_sub(1)?;
    Some(match value {
        Value::Tensor(t) => {
            let last = t.shape().len().wrapping_sub(1);
            let size = |(k, &d): (usize, &i64)| match known {
                Known::Nothing => None,
                Known::Ones => (d == 1).then_some(1),
                Known::Last => (k == last).then_some(d),
            };
            OperandType::Tensor(t.shape().iter().enumerate().map(size).collect(), t.dtype())
        }
        Value::Shape(dims) => OperandType::Shape(vec![None; dims.len()]),
        Value::Int(_) => OperandType::Int,
        Value::Bool(_) => OperandType::Scalar(DType::Bool),
        Value::Float(_) => OperandType::Scalar(DType::Float64),
        Value::Tuple(_) if depth == MAX_DEPTH => return None,
        Value::Tuple(items) => {
            let items: Option<Vec<OperandType>> =
                items.iter().map(|item| operand(item, known, depth + 1, left)).collect();
            OperandType::Tuple(items?)
        }
        _ => OperandType::Other,
    })
}

fn made(name: &str, script: &str) -> Result<VirtualMachine, String> {
    let message = |e: Error| e.diagnostics().first().map_or_else(|| e.to_string(), said);
    let module = pliant_script::parse_module(script, pliant_ops::registry())
        .map_err(|errors| errors.first().map_or_else(String::new, said))?;
    let options = CompileOptions::default();
    let program = compile(module, &options).map_err(message)?;
    let again = |f: &FuncDef| matches!(f, FuncDef::Packed(name) if name == CALL_OPERATOR);
    if program.executable().funcs().iter().any(again) {
        return Err(format!("{name} is not supported for operands that are no tensors"));
    }
    program.vm().map_err(message)
}

/// The message of a finding without its location, since the script is not the user's.
fn said(finding: &pliant_diag::Diagnostic) -> String {
    match &finding.help {
        Some(help) => format!("{} ({help})", finding.message),
        None => finding.message.clone(),
    }
}
