//! Executes modules: the result of a pass must compute the same as its input.

use std::fmt::Write;

use pliant_interp::{InterpError, PackedFuncs, Value, run};
use pliant_ir::IRModule;
use pliant_ir::relax::Function;
use pliant_tensor::{DType, Tensor};
use rustc_hash::FxHashMap;

use crate::compiled::{from_vm, to_vm};
use crate::inputs::Maker;
use crate::packed::FUNCTIONS;

/// The values of symbols.
pub const SIZES: [i64; 8] = [0, 1, 2, 3, 7, 8, 31, 64];

/// The library's packed functions, and those of the tests.
pub(crate) struct Library;

impl PackedFuncs for Library {
    fn call(&self, name: &str, args: &[Value]) -> Option<Result<Value, String>> {
        if let Some((_, function)) = FUNCTIONS.iter().find(|row| row.0 == name) {
            let call = || {
                let args = to_vm(args).ok_or("no value of the machine")?;
                from_vm(&function(&args)?).ok_or_else(|| "no value of the interpreter".into())
            };
            return Some(call());
        }
        let tensors: Vec<Tensor> = args.iter().filter_map(|v| v.as_tensor().cloned()).collect();
        let result = pliant::call_library(name, &tensors)?;
        Some(result.map(|()| Value::unit()).map_err(|e| e.to_string()))
    }
}

/// The inputs of round `k`: the first symbol of a function is `SIZES[k]`, the others have
/// other sizes.
pub(crate) fn inputs(f: &Function, k: usize) -> Option<(Vec<Value>, String)> {
    let value = |i: usize| SIZES[(k + 3 * i) % SIZES.len()];
    let vars: FxHashMap<_, i64> = f.syms.vars().enumerate().map(|(i, v)| (v, value(i))).collect();
    let sizes = |v| vars.get(&v).copied();
    let mut maker = Maker { f, sizes: &sizes, unknown: SIZES[k], seed: k as u64 + 1 };
    let args = maker.params()?;
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

/// Copies the arguments, so that no run sees what another has written.
pub(crate) fn fresh(args: &[Value]) -> Result<Vec<Value>, String> {
    args.iter()
        .map(|v| {
            Ok(match v {
                Value::Tensor(t) => Value::Tensor(t.copy().map_err(|e| e.to_string())?),
                Value::Tuple(items) => Value::Tuple(fresh(items)?.into()),
                other => other.clone(),
            })
        })
        .collect()
}

pub(crate) fn public(module: &IRModule) -> impl Iterator<Item = (&str, &Function)> {
    module.relax_funcs().filter(|(_, f)| !f.private).map(|(name, f)| (&**name, &**f))
}

/// Runs every public graph function of `before` in both modules, at all sizes, and compares the
/// results.
///
/// # Errors
/// The first difference, or a function that runs at no size.
pub fn compare(before: &IRModule, after: &IRModule) -> Result<(), String> {
    for (name, f) in public(before) {
        if after.get(name).is_none() {
            return Err(format!("the passes removed the public function '{name}'"));
        }
        let mut ran = 0;
        let mut refused = String::from("no inputs can be made for its parameters");
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = inputs(f, k) else { continue };
            let old = run(before, name, &fresh(&args)?, &Library);
            let new = run(after, name, &fresh(&args)?, &Library);
            let differ = |what: String| format!("'{name}' at {sizes}: {what}");
            match (old, new) {
                (Ok(a), Ok(b)) => {
                    same(&a, &b, "the result").map_err(differ)?;
                    ran += 1;
                }
                (Err(e), Err(_)) => refused = e.to_string(),
                (Ok(_), Err(e)) => {
                    return Err(differ(format!("fails after the passes: {}", full(&e))));
                }
                (Err(e), Ok(_)) => {
                    return Err(differ(format!("fails before the passes only: {}", full(&e))));
                }
            }
        }
        if ran == 0 {
            return Err(format!(
                "'{name}' runs at no size ({refused}); '# no-run' keeps it from running"
            ));
        }
    }
    Ok(())
}

fn full(e: &InterpError) -> String {
    format!("{e}\n{e:?}")
}

/// Compares two results: integers exactly, floats up to the rounding of their type.
pub(crate) fn same(a: &Value, b: &Value, what: &str) -> Result<(), String> {
    match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => same_tensor(a, b, what),
        (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => a
            .iter()
            .zip(b.iter())
            .enumerate()
            .try_for_each(|(i, (a, b))| same(a, b, &format!("{what}[{i}]"))),
        (Value::Shape(a), Value::Shape(b)) if a == b => Ok(()),
        (Value::Int(a), Value::Int(b)) if a == b => Ok(()),
        (Value::Bool(a), Value::Bool(b)) if a == b => Ok(()),
        (Value::Float(a), Value::Float(b)) if a == b || (a.is_nan() && b.is_nan()) => Ok(()),
        (Value::Str(a), Value::Str(b)) if a == b => Ok(()),
        (Value::DType(a), Value::DType(b)) if a == b => Ok(()),
        (Value::None, Value::None) | (Value::Func(_), Value::Func(_)) => Ok(()),
        _ => Err(format!("{what} was {}, and is {}", text(a), text(b))),
    }
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 4e-3,
        DType::BFloat16 => 3e-2,
        DType::Float32 => 2e-5,
        DType::Float64 => 1e-12,
        _ => 0.0,
    }
}

fn same_tensor(a: &Tensor, b: &Tensor, what: &str) -> Result<(), String> {
    if a.dtype() != b.dtype() || a.shape() != b.shape() {
        return Err(format!("{what} was {a:?}, and is {b:?}"));
    }
    let values = |t: &Tensor| t.to_f64_vec().map_err(|e| e.to_string());
    let (x, y) = (values(a)?, values(b)?);
    let tol = tolerance(a.dtype());
    for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
        let equal = x == y
            || (x.is_nan() && y.is_nan())
            || (x - y).abs() <= tol * (1.0 + x.abs().max(y.abs()));
        if !equal {
            return Err(format!("{what} of {a:?}: element {i} was {x}, and is {y}"));
        }
    }
    Ok(())
}

/// The results of every public graph function at each size, as text.
///
/// # Errors
/// If inputs cannot be generated for a function.
pub fn digest(module: &IRModule) -> Result<String, String> {
    let mut out = String::new();
    for (name, f) in public(module) {
        for k in 0..SIZES.len() {
            let Some((args, sizes)) = inputs(f, k) else { continue };
            let result = match run(module, name, &args, &Library) {
                Ok(v) => text(&v),
                Err(e) => format!("error: {}", e.to_string().lines().next().unwrap_or("")),
            };
            let at = if sizes.is_empty() { String::new() } else { format!(" at {sizes}") };
            let _ = writeln!(out, "{name}{at}: {result}");
            if f.syms.vars().len() == 0 {
                break;
            }
        }
    }
    if out.is_empty() { Err("nothing was executed".into()) } else { Ok(out) }
}

/// A short description of a value: large tensors by their first elements and their sum.
fn text(v: &Value) -> String {
    const SHOWN: usize = 6;
    match v {
        Value::Tensor(t) => {
            let Ok(values) = t.to_f64_vec() else { return format!("{t:?}") };
            let round = |v: &f64| format!("{:.4}", v + 0.0);
            let head: Vec<String> = values.iter().take(SHOWN).map(round).collect();
            let more = if values.len() > SHOWN {
                format!(", ... sum {:.3}", values.iter().sum::<f64>())
            } else {
                String::new()
            };
            format!("{t:?} [{}{more}]", head.join(", "))
        }
        Value::Tuple(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
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
