//! Compiles the modules of tests and runs them in the virtual machine, as native code and as
//! bytecode. Compares the results with those of the interpreter.

use std::sync::Arc;

use pliant::{CompileOptions, ExecMode, PackedFunc, VirtualMachine, VmError, VmOptions};
use pliant_interp::{InterpError, Value, run};
use pliant_ir::IRModule;

use rustc_hash::FxHashMap;

use crate::interpret_modules::{
    SIZES, TestLibrary, compare_values, copy_args, generate_inputs, public_functions,
};
use crate::packed_functions::{FUNCTIONS, Function};

/// Compiles the module once, runs every public graph function at all sizes in the interpreter and
/// in the virtual machine, as native code and as bytecode, and compares the results. With
/// `compile_error`, compilation must fail with a message that contains it.
///
/// # Errors
/// A description of the first difference, or of the compile error if only the interpreter runs the module.
pub(crate) fn compare(module: &IRModule, compile_error: Option<&str>) -> Result<(), String> {
    let mut vms: Option<VirtualMachines> = None;
    for (name, f) in public_functions(module) {
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = generate_inputs(f, k) else { continue };
            let expected = run(module, name, &copy_args(&args)?, &TestLibrary);
            if expected.is_err() && vms.is_none() {
                continue;
            }
            let vms = match &mut vms {
                Some(vms) => vms,
                none => match (compile(module), compile_error) {
                    (Ok(vms), None) => none.insert(vms),
                    (Err(message), Some(part)) if message.contains(part) => return Ok(()),
                    (Ok(_), Some(part)) => {
                        return Err(format!(
                            "the module compiles, although its line `# no-compile: {part}` states that it does not; \
                             remove the line"
                        ));
                    }
                    (Err(message), _) => return Err(message),
                },
            };
            let difference =
                |what: String| format!("function '{name}' at the sizes {sizes}: {what}");
            let Some(native) = to_vm(&copy_args(&args)?) else { continue };
            let native = vms.native.invoke(name, &native);
            compare_outcomes(&expected, &native)
                .map_err(|what| difference(format!("compiled to native code: {what}")))?;
            let Some(bytecode) = to_vm(&copy_args(&args)?) else { continue };
            let bytecode = vms.bytecode.invoke(name, &bytecode);
            compare_outcomes(&expected, &bytecode)
                .map_err(|what| difference(format!("executed as bytecode: {what}")))?;
            if let (Err(a), Err(b)) = (native, bytecode)
                && a.to_string() != b.to_string()
            {
                return Err(difference(format!(
                    "the function fails with different messages as native code and as bytecode:\n{a}\nand\n{b}"
                )));
            }
        }
    }
    Ok(())
}

/// Checks that the compiled program returns the same result as the interpreter, or that both fail.
fn compare_outcomes(
    expected: &Result<Value, InterpError>,
    actual: &Result<pliant::Value, VmError>,
) -> Result<(), String> {
    match (expected, actual) {
        (Ok(a), Ok(b)) => {
            let b = from_vm(b).ok_or_else(|| {
                format!("the function returns {b:?}, which the interpreter cannot represent")
            })?;
            compare_values(a, &b, "the result (interpreted, then compiled)")
        }
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(e)) => {
            Err(format!("the compiled function fails, but the interpreter succeeds: {e}"))
        }
        (Err(e), Ok(_)) => {
            Err(format!("the compiled function succeeds, but the interpreter fails: {e}"))
        }
    }
}

/// Two virtual machines for one program: one with native code and one with bytecode.
struct VirtualMachines {
    native: VirtualMachine,
    bytecode: VirtualMachine,
}

fn compile(module: &IRModule) -> Result<VirtualMachines, String> {
    let options = CompileOptions { exec_mode: ExecMode::Compiled, ..CompileOptions::default() };
    let vms = || {
        let program = pliant::compile(module.clone(), &options)?;
        let native = VmOptions { functions: functions(), ..VmOptions::default() };
        let bytecode = VmOptions { bytecode: true, functions: functions(), ..VmOptions::default() };
        Ok(VirtualMachines {
            native: program.vm_with(native)?,
            bytecode: program.vm_with(bytecode)?,
        })
    };
    vms().map_err(|e: pliant::Error| format!("the module does not compile: {e}"))
}

/// The packed functions that test scripts may call.
fn functions() -> FxHashMap<String, PackedFunc> {
    let function = |&(name, f): &(&str, Function)| {
        let call = move |args: &[pliant::Value]| f(args).map_err(VmError::external);
        (name.to_string(), Arc::new(call) as PackedFunc)
    };
    FUNCTIONS.iter().map(function).collect()
}

/// Converts values of the interpreter for the virtual machine; `None` for storages and functions.
pub(crate) fn to_vm(values: &[Value]) -> Option<Vec<pliant::Value>> {
    values
        .iter()
        .map(|v| {
            Some(match v {
                Value::None => pliant::Value::None,
                Value::Tensor(t) => pliant::Value::Tensor(t.clone()),
                Value::Shape(s) => pliant::Value::Shape(s.clone()),
                Value::Int(v) => pliant::Value::Int(*v),
                Value::Float(v) => pliant::Value::Float(*v),
                Value::Bool(v) => pliant::Value::Bool(*v),
                Value::Str(s) => pliant::Value::Str(s.clone()),
                Value::DType(d) => pliant::Value::DType(*d),
                Value::Tuple(items) => pliant::Value::Tuple(to_vm(items)?.into_iter().collect()),
                Value::Object(any) => pliant::Value::Object(any.clone()),
                Value::Storage(_) | Value::Func(_) => return None,
            })
        })
        .collect()
}

/// Converts a value of the virtual machine for the interpreter; `None` for storages.
pub(crate) fn from_vm(v: &pliant::Value) -> Option<Value> {
    Some(match v {
        pliant::Value::None => Value::None,
        pliant::Value::Tensor(t) => Value::Tensor(t.clone()),
        pliant::Value::Shape(s) => Value::Shape(s.clone()),
        pliant::Value::Int(v) => Value::Int(*v),
        pliant::Value::Float(v) => Value::Float(*v),
        pliant::Value::Bool(v) => Value::Bool(*v),
        pliant::Value::Str(s) => Value::Str(s.clone()),
        pliant::Value::DType(d) => Value::DType(*d),
        pliant::Value::Tuple(items) => {
            let items: Option<Vec<Value>> = items.iter().map(from_vm).collect();
            Value::Tuple(items?.into())
        }
        pliant::Value::Object(any) => Value::Object(any.clone()),
        // All functions compare equal, since the difference matters only when they are called.
        pliant::Value::Func(f) => Value::Func(pliant_interp::Func::Packed(f.name().into())),
        _ => return None,
    })
}
