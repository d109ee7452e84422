//! Runs modules in the interpreter, and checks that a pass does not change the results.

use std::fmt::Write;

use pliant_interp::{InterpError, PackedFuncs, Value, run};
use pliant_ir::IRModule;
use pliant_ir::relax::Function;
use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::compare_compiled::{from_vm, to_vm};
use crate::packed_functions::FUNCTIONS;
use crate::random_inputs::InputGenerator;

/// The values that symbolic sizes take in tests. Every function runs once with each value as the size of its first symbol.
pub const SIZES: [i64; 8] = [0, 1, 2, 3, 7, 8, 31, 64];

/// The packed functions that the interpreter can call: the functions of the tests, and the functions of the kernel library.
pub(crate) struct TestLibrary;

impl PackedFuncs for TestLibrary {
    fn call(&self, name: &str, args: &[Value]) -> Option<Result<Value, String>> {
        if let Some((_, function)) = FUNCTIONS.iter().find(|row| row.0 == name) {
            let call = || {
                let args = to_vm(args)
                    .ok_or("an argument of the packed function has no representation in the VM")?;
                from_vm(&function(&args)?).ok_or_else(|| {
                    "the result of the packed function has no representation in the interpreter"
                        .into()
                })
            };
            return Some(call());
        }
        let tensors: Vec<Tensor> = args.iter().filter_map(|v| v.as_tensor().cloned()).collect();
        let result = pliant::call_library(name, &tensors)?;
        Some(result.map(|()| Value::unit()).map_err(|e| e.to_string()))
    }
}

/// Generates arguments for round `k`, in which the first symbol of the function is `SIZES[k]` and each other symbol has another
/// value of [`SIZES`]. Also returns the values of the symbols as text. `None` if values cannot be generated for the type of a
/// parameter.
pub(crate) fn generate_inputs(f: &Function, k: usize) -> Option<(Vec<Value>, String)> {
    let value = |i: usize| SIZES[(k + 3 * i) % SIZES.len()];
    let vars: FxHashMap<_, i64> = f.syms.vars().enumerate().map(|(i, v)| (v, value(i))).collect();
    let sizes = |v| vars.get(&v).copied();
    let mut generator = InputGenerator { f, sizes: &sizes, unknown: SIZES[k], seed: k as u64 + 1 };
    let args = generator.params()?;
    let mut text = String::new();
    for v in f.syms.vars() {
        let _ = write!(
            text,
            "{}{}={}",
            if text.is_empty() { "" } else { " " },
            f.syms.name(v),
            vars[&v]
        );
    }
    Some((args, text))
}

/// Copies the arguments, so that one run of a function does not read what another has written.
pub(crate) fn copy_args(args: &[Value]) -> Result<Vec<Value>, String> {
    args.iter()
        .map(|v| {
            Ok(match v {
                Value::Tensor(t) => Value::Tensor(t.copy().map_err(|e| e.to_string())?),
                Value::Tuple(items) => Value::Tuple(copy_args(items)?.into()),
                other => other.clone(),
            })
        })
        .collect()
}

/// Yields the public graph functions of a module with their names.
pub(crate) fn public_functions(module: &IRModule) -> impl Iterator<Item = (&str, &Function)> {
    module.relax_funcs().filter(|(_, f)| !f.private).map(|(name, f)| (&**name, &**f))
}

/// Runs every public graph function of `before` in both modules, at all sizes, and compares the
/// results.
///
/// # Errors
/// If results differ, if only one of the modules fails, or if a function runs at no size.
pub fn compare(before: &IRModule, after: &IRModule) -> Result<(), String> {
    for (name, f) in public_functions(before) {
        if after.get(name).is_none() {
            return Err(format!("the passes removed the public function '{name}'"));
        }
        let mut ran = 0;
        let mut last_error = String::from("inputs cannot be generated for its parameters");
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = generate_inputs(f, k) else { continue };
            let result_before = run(before, name, &copy_args(&args)?, &TestLibrary);
            let result_after = run(after, name, &copy_args(&args)?, &TestLibrary);
            let difference =
                |what: String| format!("function '{name}' at the sizes {sizes}: {what}");
            match (result_before, result_after) {
                (Ok(a), Ok(b)) => {
                    compare_values(&a, &b, "the result").map_err(difference)?;
                    ran += 1;
                }
                (Err(e), Err(_)) => last_error = e.to_string(),
                (Ok(_), Err(e)) => {
                    return Err(difference(format!(
                        "the function fails only after the passes: {}",
                        full_message(&e)
                    )));
                }
                (Err(e), Ok(_)) => {
                    return Err(difference(format!(
                        "the function fails only before the passes: {}",
                        full_message(&e)
                    )));
                }
            }
        }
        if ran == 0 {
            return Err(format!(
                "function '{name}' fails for all tested sizes of its symbolic dims (last error: {last_error}); correct \
                 it, or disable its execution with '# no-run'"
            ));
        }
    }
    Ok(())
}

fn full_message(e: &InterpError) -> String {
    format!("{e}\n{e:?}")
}

/// Compares two results: integers exactly, floats with the tolerance of their type. `what` names
/// the result in errors.
pub(crate) fn compare_values(a: &Value, b: &Value, what: &str) -> Result<(), String> {
    match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => compare_tensors(a, b, what),
        (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => a
            .iter()
            .zip(b.iter())
            .enumerate()
            .try_for_each(|(i, (a, b))| compare_values(a, b, &format!("{what}[{i}]"))),
        (Value::Shape(a), Value::Shape(b)) if a == b => Ok(()),
        (Value::Int(a), Value::Int(b)) if a == b => Ok(()),
        (Value::Bool(a), Value::Bool(b)) if a == b => Ok(()),
        (Value::Float(a), Value::Float(b)) if a == b || (a.is_nan() && b.is_nan()) => Ok(()),
        (Value::Str(a), Value::Str(b)) if a == b => Ok(()),
        (Value::DType(a), Value::DType(b)) if a == b => Ok(()),
        (Value::None, Value::None) | (Value::Func(_), Value::Func(_)) => Ok(()),
        _ => {
            let (expected, actual) = (describe(a), describe(b));
            Err(format!("{what} differs: expected {expected}, but got {actual}"))
        }
    }
}

/// The tolerance when results of an element type are compared, relative to 1 plus the larger magnitude.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 4e-3,
        DType::BFloat16 => 3e-2,
        DType::Float32 => 2e-5,
        DType::Float64 => 1e-12,
        _ => 0.0,
    }
}

fn compare_tensors(a: &Tensor, b: &Tensor, what: &str) -> Result<(), String> {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        let (expected, actual) = (a, b);
        return Err(format!("{what} differs: expected {expected:?}, but got {actual:?}"));
    }
    let values = |t: &Tensor| t.to_f64_vec().map_err(|e| e.to_string());
    let (x, y) = (values(a)?, values(b)?);
    let tol = tolerance(a.dtype());
    for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
        let equal = x == y
            || (x.is_nan() && y.is_nan())
            || (x - y).abs() <= tol * (1.0 + x.abs().max(y.abs()));
        if !equal {
            return Err(format!(
                "element {i} of {what} ({a:?}) differs: expected {x}, but got {y}"
            ));
        }
    }
    Ok(())
}

/// Runs every public graph function at each size. Returns the results as text.
///
/// # Errors
/// If inputs cannot be generated for a function.
pub fn digest(module: &IRModule) -> Result<String, String> {
    let mut out = String::new();
    for (name, f) in public_functions(module) {
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = generate_inputs(f, k) else { continue };
            let result = match run(module, name, &args, &TestLibrary) {
                Ok(v) => describe(&v),
                Err(e) => format!("error: {}", e.to_string().lines().next().unwrap_or("")),
            };
            let at_sizes = if sizes.is_empty() { String::new() } else { format!(" at {sizes}") };
            let _ = writeln!(out, "{name}{at_sizes}: {result}");
            if f.syms.vars().len() == 0 {
                break;
            }
        }
    }
    if out.is_empty() {
        Err("the test ran no function: the module has no public graph function for whose parameters inputs can be generated".into())
    } else {
        Ok(out)
    }
}

/// A short description of a value. For a large tensor, it contains the first elements and the sum of all elements.
fn describe(v: &Value) -> String {
    const MAX_SHOWN: usize = 6;
    match v {
        Value::Tensor(t) => {
            let Ok(values) = t.to_f64_vec() else { return format!("{t:?}") };
            let round = |v: &f64| format!("{:.4}", v + 0.0);
            let head: Vec<String> = values.iter().take(MAX_SHOWN).map(round).collect();
            let more = if values.len() > MAX_SHOWN {
                format!(", ... sum {:.3}", values.iter().sum::<f64>())
            } else {
                String::new()
            };
            format!("{t:?} [{}{more}]", head.join(", "))
        }
        Value::Tuple(items) => {
            let items: Vec<String> = items.iter().map(describe).collect();
            format!("({})", items.join(", "))
        }
        Value::Shape(s) => format!("Shape{s:?}"),
        Value::Int(v) => v.to_string(),
        Value::Float(v) => v.to_string(),
        Value::Bool(v) => v.to_string(),
        Value::Str(s) => format!("{s:?}"),
        Value::DType(d) => d.to_string(),
        Value::None => "None".into(),
        _ => "an object".into(),
    }
}
