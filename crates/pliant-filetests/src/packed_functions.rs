//! The packed functions that test scripts may call, in the interpreter and in the VM.
//!
//! | function | what it does |
//! |---|---|
//! | `test.double(x)` | doubles a float32 tensor into a new tensor |
//! | `test.double_into(x, out)` | doubles a float32 tensor into `out` |
//! | `test.double_inplace(x)` | doubles a float32 tensor in place and returns it |
//! | `test.half(x)` | the first half of a float32 vector, whose size the compiler does not know |
//! | `test.half_shape(x)` | the shape of the result of `test.half(x)` |
//! | `test.counter(start)` | an opaque counter that starts at an integer |
//! | `test.next(counter)` | increments the counter and returns its value as an int64 scalar tensor |
//! | `test.array()`, `test.push(array, x)`, `test.stack(array)` | an opaque list of float32 vectors, and their concatenation |
//! | `test.square(i)` | the square of an integer, for loop functions |
//! | `test.describe(values..)` | the kinds of the values as text |

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use pliant::Value;
use pliant_interp::assign;
use pliant_tensor::Tensor;

/// The result of a packed function. The error is a message.
type Outcome = Result<Value, String>;
pub(crate) type Function = fn(&[Value]) -> Outcome;

/// The packed functions that test scripts may call, by name.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("test.double", |args| double(tensor(args, 0)?).map(Value::Tensor)),
    ("test.double_into", |args| write(tensor(args, 1)?, &double(tensor(args, 0)?)?)),
    ("test.double_inplace", |args| {
        let x = tensor(args, 0)?;
        write(x, &double(x)?)?;
        Ok(Value::Tensor(x.clone()))
    }),
    ("test.half", |args| {
        let values = floats(tensor(args, 0)?)?;
        vector(&values[..values.len() / 2]).map(Value::Tensor)
    }),
    ("test.half_shape", |args| Ok(Value::shape(&[tensor(args, 0)?.numel() as i64 / 2]))),
    ("test.counter", |args| match args {
        [Value::Int(start)] => Ok(Value::Object(Arc::new(Mutex::new(*start)))),
        _ => Err("the packed function test.counter takes one integer".into()),
    }),
    ("test.next", |args| {
        let mut number = state::<i64>(args)?;
        *number += 1;
        let tensor = Tensor::from_slice(&[], &[*number]).map_err(|e| e.to_string())?;
        Ok(Value::Tensor(tensor))
    }),
    ("test.array", |_| Ok(Value::Object(Arc::new(Mutex::new(Vec::<f32>::new()))))),
    ("test.push", |args| {
        state::<Vec<f32>>(args)?.extend(floats(tensor(args, 1)?)?);
        Ok(Value::tuple([]))
    }),
    ("test.stack", |args| vector(&state::<Vec<f32>>(args)?).map(Value::Tensor)),
    ("test.square", |args| match args {
        [Value::Int(i)] => Ok(Value::Int(i * i)),
        _ => Err("the packed function test.square takes one integer".into()),
    }),
    ("test.describe", |args| {
        let kinds: Vec<String> = args.iter().map(describe).collect();
        Ok(Value::str(&kinds.join(", ")))
    }),
];

fn describe(value: &Value) -> String {
    match value {
        Value::Str(text) => format!("the text {text}"),
        Value::DType(dtype) => format!("the type {dtype}"),
        Value::Shape(dims) => format!("the shape {dims:?}"),
        Value::Int(v) => format!("the integer {v}"),
        Value::Float(v) => format!("the float {v}"),
        Value::Bool(v) => format!("the bool {v}"),
        Value::Tuple(items) => {
            let items: Vec<String> = items.iter().map(describe).collect();
            format!("({})", items.join(", "))
        }
        other => other.kind().into(),
    }
}

fn tensor(args: &[Value], i: usize) -> Result<&Tensor, String> {
    match args.get(i) {
        Some(Value::Tensor(t)) => Ok(t),
        _ => Err(format!(
            "argument {i} of the packed function must be a tensor, but is missing or has another type"
        )),
    }
}

fn floats(t: &Tensor) -> Result<Vec<f32>, String> {
    Ok(t.to_f64_vec().map_err(|e| e.to_string())?.into_iter().map(|v| v as f32).collect())
}

fn vector(values: &[f32]) -> Result<Tensor, String> {
    Tensor::from_slice(&[values.len() as i64], values).map_err(|e| e.to_string())
}

fn double(t: &Tensor) -> Result<Tensor, String> {
    let values: Vec<f32> = floats(t)?.into_iter().map(|v| 2.0 * v).collect();
    Tensor::from_slice(t.shape(), &values).map_err(|e| e.to_string())
}

fn write(to: &Tensor, from: &Tensor) -> Outcome {
    assign(to, from).map_err(|e| e.to_string())?;
    Ok(Value::tuple([]))
}

/// Locks the state of type `T` that is stored in the opaque object passed as the first argument.
fn state<T: Any + Send>(args: &[Value]) -> Result<std::sync::MutexGuard<'_, T>, String> {
    let Some(Value::Object(any)) = args.first() else {
        return Err(
            "the first argument of test.next, test.push and test.stack must be an object that test.counter or \
             test.array returned"
                .into(),
        );
    };
    let state = any.downcast_ref::<Mutex<T>>().ok_or(
        "the object that is passed as the first argument contains a state of another type",
    )?;
    Ok(state.lock().unwrap_or_else(PoisonError::into_inner))
}
