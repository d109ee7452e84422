//! Compiling tests: the machine code and the virtual machine compute what the interpreter does.

use pliant::{CompileOptions, Model};
use pliant_interp::{NoPacked, Value, run};
use pliant_ir::IRModule;

use crate::exec::{SIZES, fresh, inputs, public, same};

/// Compiles the module once and runs every public graph function, at all sizes, in the interpreter and in the virtual
/// machine, and compares. With `refusal`, compiling must fail with a message that holds it.
///
/// # Errors
/// The first difference, or that the module does not compile although the interpreter runs it.
pub(crate) fn compare(module: &IRModule, refusal: Option<&str>) -> Result<(), String> {
    let mut model = None;
    for (name, f) in public(module) {
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = inputs(f, k) else { continue };
            let expected = run(module, name, &fresh(&args)?, &NoPacked);
            if expected.is_err() && model.is_none() {
                continue;
            }
            let model = match &mut model {
                Some(model) => model,
                none => match (compile(module), refusal) {
                    (Ok(model), None) => none.insert(model),
                    (Err(message), Some(part)) if message.contains(part) => return Ok(()),
                    (Ok(_), Some(part)) => {
                        return Err(format!("the module compiles, remove its line: {part}"));
                    }
                    (Err(message), _) => return Err(message),
                },
            };
            let Some(args) = to_vm(&fresh(&args)?) else { continue };
            let found = model.run(name, &args);
            let differ = |what: String| format!("'{name}' at {sizes}: {what}");
            match (expected, found) {
                (Ok(a), Ok(b)) => {
                    let b = from_vm(&b).ok_or_else(|| differ(format!("compiled, is {b:?}")))?;
                    same(&a, &b, "the result, interpreted against compiled,").map_err(differ)?;
                }
                (Err(_), Err(_)) => {}
                (Ok(_), Err(e)) => return Err(differ(format!("fails compiled only: {e}"))),
                (Err(e), Ok(_)) => return Err(differ(format!("fails interpreted only: {e}"))),
            }
        }
    }
    Ok(())
}

fn compile(module: &IRModule) -> Result<Model, String> {
    Model::compile(module.clone(), &CompileOptions::default())
        .map_err(|e| format!("the module does not compile: {e}"))
}

/// The values for the virtual machine; nothing for those that only the interpreter has.
fn to_vm(values: &[Value]) -> Option<Vec<pliant::Value>> {
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
                Value::Storage(_) | Value::Func(_) | Value::Object(_) => return None,
            })
        })
        .collect()
}

/// A value of the virtual machine as one of the interpreter; nothing for memory, functions and objects.
fn from_vm(v: &pliant::Value) -> Option<Value> {
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
        _ => return None,
    })
}
