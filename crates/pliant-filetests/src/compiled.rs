//! Compiles tests and checks that machine code and the virtual machine compute the same as the
//! interpreter.

use std::sync::Arc;

use pliant::{CompileOptions, ExecMode, PackedFunc, VirtualMachine, VmError, VmOptions};
use pliant_interp::{InterpError, Value, run};
use pliant_ir::IRModule;

use rustc_hash::FxHashMap;

use crate::exec::{Library, SIZES, fresh, inputs, public, same};
use crate::packed::{FUNCTIONS, Function};

/// Compiles the module once, runs every public graph function at all sizes in the interpreter and
/// in the virtual machine, as native code and as bytecode, and compares the results. With
/// `refusal`, compilation must fail with a message that contains it.
///
/// # Errors
/// The first difference, or that the module does not compile although the interpreter runs it.
pub(crate) fn compare(module: &IRModule, refusal: Option<&str>) -> Result<(), String> {
    let mut machines: Option<Machines> = None;
    for (name, f) in public(module) {
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = inputs(f, k) else { continue };
            let expected = run(module, name, &fresh(&args)?, &Library);
            if expected.is_err() && machines.is_none() {
                continue;
            }
            let machines = match &mut machines {
                Some(machines) => machines,
                none => match (compile(module), refusal) {
                    (Ok(machines), None) => none.insert(machines),
                    (Err(message), Some(part)) if message.contains(part) => return Ok(()),
                    (Ok(_), Some(part)) => {
                        return Err(format!("the module compiles, remove its line: {part}"));
                    }
                    (Err(message), _) => return Err(message),
                },
            };
            let differ = |what: String| format!("'{name}' at {sizes}: {what}");
            let Some(native) = to_vm(&fresh(&args)?) else { continue };
            let native = machines.native.invoke(name, &native);
            agree(&expected, &native).map_err(|what| differ(format!("as native code, {what}")))?;
            let Some(bytecode) = to_vm(&fresh(&args)?) else { continue };
            let bytecode = machines.bytecode.invoke(name, &bytecode);
            agree(&expected, &bytecode).map_err(|what| differ(format!("as bytecode, {what}")))?;
            if let (Err(a), Err(b)) = (native, bytecode)
                && a.to_string() != b.to_string()
            {
                return Err(differ(format!(
                    "fails as native code with\n{a}\nas bytecode with\n{b}"
                )));
            }
        }
    }
    Ok(())
}

/// Checks that the program computes the same as the interpreter.
fn agree(
    expected: &Result<Value, InterpError>,
    found: &Result<pliant::Value, VmError>,
) -> Result<(), String> {
    match (expected, found) {
        (Ok(a), Ok(b)) => {
            let b = from_vm(b).ok_or_else(|| format!("it gives {b:?}"))?;
            same(a, &b, "the result, interpreted against compiled,")
        }
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(e)) => Err(format!("it fails: {e}")),
        (Err(e), Ok(_)) => Err(format!("it does not fail, but interpreted it does: {e}")),
    }
}

/// One program in both execution modes.
struct Machines {
    native: VirtualMachine,
    bytecode: VirtualMachine,
}

fn compile(module: &IRModule) -> Result<Machines, String> {
    let options = CompileOptions { exec_mode: ExecMode::Compiled, ..CompileOptions::default() };
    let machines = || {
        let program = pliant::compile(module.clone(), &options)?;
        let native = VmOptions { functions: functions(), ..VmOptions::default() };
        let bytecode = VmOptions { bytecode: true, functions: functions(), ..VmOptions::default() };
        Ok(Machines { native: program.vm_with(native)?, bytecode: program.vm_with(bytecode)? })
    };
    machines().map_err(|e: pliant::Error| format!("the module does not compile: {e}"))
}

/// The packed functions of the tests.
fn functions() -> FxHashMap<String, PackedFunc> {
    let function = |&(name, f): &(&str, Function)| {
        let call = move |args: &[pliant::Value]| f(args).map_err(VmError::external);
        (name.to_string(), Arc::new(call) as PackedFunc)
    };
    FUNCTIONS.iter().map(function).collect()
}

/// The values for the virtual machine; `None` for values that only the interpreter has.
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

/// A value of the virtual machine as one of the interpreter; `None` for memory.
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
        // Functions compare equal; which function it is matters only when it is called.
        pliant::Value::Func(f) => Value::Func(pliant_interp::Func::Packed(f.name().into())),
        _ => return None,
    })
}
