//! The library function `pliant.call_operator`: runs operators on operands whose rank or data type is known only at run time. It is
//! a library function (a host function that receives the runtime of the calling run), so that the operators run on the worker team
//! of the caller and stop with it.
//!
//! Each combination of operand ranks and data types is a small program with symbolic sizes. It is
//! compiled on first use, serves all sizes (except those that [`ConstantSizes`] fixes), and is kept
//! in a bounded cache ([`Programs`]).

use pliant_exec::FuncDef;
use pliant_exec::abi::KernelRuntime;
use pliant_ops::ConstantSizes;
use pliant_ops::dynamic_operator_calls::{CALL_OPERATOR, OperandType, call_script};
use pliant_tensor::DType;
use pliant_vm::{CheckKind, Value, VirtualMachine, VmError};

use crate::compile::compile;
use crate::compile_options::CompileOptions;
use crate::error::Error;
use crate::program_cache::Programs;

/// Maximum nesting of tuple operands.
const MAX_TUPLE_DEPTH: usize = 32;
/// Maximum number of values in an operand, including the values in nested tuples. A shared tuple
/// counts once for each occurrence.
const MAX_VALUES: usize = 1 << 16;

static PROGRAMS: Programs<String, String> = Programs::new();

/// Returns the number of operator programs in the cache.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, Tensor, Value, operator_programs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor) -> R.Object:
///     return R.abs(x)
/// "#;
/// let module = pliant::parse("abs.py", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let run = |n: usize| -> Result<Value, Box<dyn std::error::Error>> {
///     let x = Tensor::from_slice(&[n as i64], &vec![-1.0f32; n])?;
///     Ok(model.run("main", &[Value::Tensor(x)])?)
/// };
/// run(2)?;
/// let programs = operator_programs();
/// assert!(programs > 0);
/// // The program serves every size.
/// run(5)?;
/// assert_eq!(operator_programs(), programs);
/// # Ok(())
/// # }
/// ```
pub fn operator_programs() -> usize {
    PROGRAMS.len()
}

/// Implements the library function `pliant.call_operator(name, text, operands...)`: runs the operator call that `text` describes on
/// the operands. Errors are reported as errors of the operator, not of this function.
pub(crate) fn call(runtime: &KernelRuntime, args: &[Value]) -> Result<Value, VmError> {
    run(runtime, args).map_err(|e| VmError::Plain(Box::new(e)))
}

fn run(runtime: &KernelRuntime, args: &[Value]) -> Result<Value, VmError> {
    let [Value::Str(name), Value::Str(text), operands @ ..] = args else {
        return Err(VmError::type_error(format!(
            "{CALL_OPERATOR} needs two strings before the operands: the name of the operator, and the text of the operator call"
        )));
    };
    let constant_sizes = pliant_ops::constant_sizes_of(name);
    let type_of = |value, known_sizes| operand_type(value, known_sizes, 0, &mut { MAX_VALUES });
    let types: Option<Vec<OperandType>> = operands
        .iter()
        .enumerate()
        .map(|(k, v)| match constant_sizes {
            ConstantSizes::LastDim(at) if at == k => type_of(v, KnownSizes::LastSize),
            ConstantSizes::WhetherOne => type_of(v, KnownSizes::UnitSizes),
            _ => type_of(v, KnownSizes::None),
        })
        .collect();
    let types = types.ok_or_else(|| {
        VmError::check(
            CheckKind::Type,
            format!("operator {name}: an operand is a tuple that is nested too deeply or has too many values"),
        )
    })?;
    let script = call_script(text, &types);
    match &*PROGRAMS.program(script.clone(), || compile_call(name, &script)) {
        Ok(vm) => {
            // SAFETY: the runtime is that of the caller, which waits for the result.
            unsafe { vm.invoke_within(runtime, "main", operands) }.map_err(|e| match e {
                VmError::Check(kind, text) if !text.contains(&**name) => {
                    VmError::check(kind, format!("{name}: {text}"))
                }
                other => other,
            })
        }
        Err(message) => Err(VmError::check(CheckKind::Type, message.clone())),
    }
}

/// Which sizes of an operand are constants in the compiled program. All other sizes are symbolic.
#[derive(Clone, Copy)]
enum KnownSizes {
    None,
    UnitSizes,
    LastSize,
}

/// Returns the type of an operand; `None` if it is nested too deeply or has too many values.
/// `remaining_values` is the number of values that the operand may still have.
fn operand_type(
    value: &Value,
    known_sizes: KnownSizes,
    depth: usize,
    remaining_values: &mut usize,
) -> Option<OperandType> {
    *remaining_values = remaining_values.checked_sub(1)?;
    Some(match value {
        Value::Tensor(t) => {
            let last = t.shape().len().wrapping_sub(1);
            let size = |(k, &d): (usize, &i64)| match known_sizes {
                KnownSizes::None => None,
                KnownSizes::UnitSizes => (d == 1).then_some(1),
                KnownSizes::LastSize => (k == last).then_some(d),
            };
            OperandType::Tensor(t.shape().iter().enumerate().map(size).collect(), t.dtype())
        }
        Value::Shape(dims) => OperandType::Shape(vec![None; dims.len()]),
        Value::Int(_) => OperandType::Int,
        Value::Bool(_) => OperandType::Scalar(DType::Bool),
        Value::Float(_) => OperandType::Scalar(DType::Float64),
        Value::Tuple(_) if depth == MAX_TUPLE_DEPTH => return None,
        Value::Tuple(items) => {
            let items: Option<Vec<OperandType>> = items
                .iter()
                .map(|item| operand_type(item, known_sizes, depth + 1, remaining_values))
                .collect();
            OperandType::Tuple(items?)
        }
        _ => OperandType::Other,
    })
}

/// Compiles the script that calls the operator `name`. The error is a message about that operator.
fn compile_call(name: &str, script: &str) -> Result<VirtualMachine, String> {
    let message =
        |e: Error| e.diagnostics().first().map_or_else(|| e.to_string(), message_without_location);
    let module = pliant_script::parse_module(script, pliant_ops::registry())
        .map_err(|errors| errors.first().map_or_else(String::new, message_without_location))?;
    let options = CompileOptions::default();
    let program = compile(module, &options).map_err(message)?;
    let is_generic_call = |f: &FuncDef| matches!(f, FuncDef::Packed(name) if name == CALL_OPERATOR);
    if program.executable().funcs().iter().any(is_generic_call) {
        return Err(format!("operator {name} is not supported for operands that are not tensors"));
    }
    let vm = program.vm().map_err(message)?;
    pliant_vm::record_compilation();
    Ok(vm)
}

/// Returns the message of a diagnostic without its source location, since the location refers to
/// generated script.
fn message_without_location(finding: &pliant_diag::Diagnostic) -> String {
    match &finding.help {
        Some(help) => format!("{} ({help})", finding.message),
        None => finding.message.clone(),
    }
}
