//! The builtins `vm.builtin.*`, which lowered modules call. Their operands and error messages are
//! those of the VM.
//!
//! The shape heap is an int64 tensor with one slot per symbol. The last operand of a check, such as
//! `match_shape`, is a string. The first line of the string names the checked value. For each dim
//! `i`, line `i + 1` contains the term that the dim must equal and, after a tab, the origin of the
//! term's value.

mod data_dependent_shapes;
mod dynamic_operator_call;
mod item_and_trip_count;
mod print_and_assert;
mod tensor_properties;

pub(crate) use item_and_trip_count::element;

use std::sync::Arc;

use pliant_tensor::{DType, Storage, Tensor};

use crate::interp_error::Result;
use crate::interpreter::Interpreter;
use crate::loop_functions::buffer_view::View;
use crate::loop_functions::scalar_arithmetic::Val;
use crate::runtime_values::{Func, plural};
use crate::{InterpError, Value};

/// Maximum number of slots of a shape heap, the tensor that contains symbolic sizes at run time.
const MAX_SLOTS: i64 = 1 << 24;

/// The operands of a builtin, with checked accessors.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(&'a [Value]);

impl<'a> Args<'a> {
    pub fn new(values: &'a [Value]) -> Self {
        Args(values)
    }

    fn value(&self, i: usize) -> Result<&'a Value> {
        let missing = || InterpError::type_error(format!("operand {i} of the builtin is missing"));
        self.0.get(i).ok_or_else(missing)
    }

    fn type_mismatch<T>(&self, i: usize, wanted: &str) -> Result<T> {
        let value = self.value(i)?.describe();
        Err(InterpError::type_error(format!(
            "operand {i} of the builtin must be {wanted}, but is {value}"
        )))
    }

    pub fn tensor(&self, i: usize) -> Result<&'a Tensor> {
        match self.value(i)? {
            Value::Tensor(t) => Ok(t),
            _ => self.type_mismatch(i, "a tensor"),
        }
    }

    pub fn shape(&self, i: usize) -> Result<&'a [i64]> {
        match self.value(i)? {
            Value::Shape(s) => Ok(s),
            _ => self.type_mismatch(i, "a shape"),
        }
    }

    pub fn dtype(&self, i: usize) -> Result<DType> {
        match self.value(i)? {
            Value::DType(d) => Ok(*d),
            Value::Str(s) => s.parse().or_else(|_| self.type_mismatch(i, "a data type")),
            _ => self.type_mismatch(i, "a data type"),
        }
    }

    fn int(&self, i: usize) -> Result<i64> {
        match self.value(i)?.as_int() {
            Some(v) => Ok(v),
            None => self.type_mismatch(i, "an integer"),
        }
    }

    fn storage(&self, i: usize) -> Result<&'a Storage> {
        match self.value(i)? {
            Value::Storage(s) => Ok(s),
            _ => self.type_mismatch(i, "a storage"),
        }
    }

    fn func(&self, i: usize) -> Result<Func> {
        match self.value(i)? {
            Value::Func(f) => Ok(f.clone()),
            Value::Str(s) => Ok(Func::Packed(s.clone())),
            _ => self.type_mismatch(i, "a function"),
        }
    }

    fn text(&self, i: usize) -> &'a str {
        match self.0.get(i) {
            Some(Value::Str(s)) => s,
            _ => "",
        }
    }

    /// Returns the name of the value that a check builtin checks: the first line of the string at
    /// operand `i`.
    fn subject(&self, i: usize) -> &'a str {
        self.text(i).lines().next().unwrap_or("value")
    }

    /// Returns the shape heap (the tensor that contains symbolic sizes) at operand `i`. Fails if it does not have the given slot.
    fn heap(&self, i: usize, slot: i64) -> Result<View> {
        let tensor = self.tensor(i)?;
        if tensor.dtype() != DType::Int64 || !tensor.is_contiguous() {
            return Err(InterpError::type_error(format!(
                "the shape heap (operand {i}), which stores the sizes of symbolic dims, must be a row-major int64 tensor, but is \
                 {}",
                self.value(i)?.describe()
            )));
        }
        if usize::try_from(slot).is_ok_and(|s| s < tensor.numel()) {
            return Ok(View::of_tensor("shape heap", tensor));
        }
        Err(InterpError::type_error(format!(
            "slot {slot} is out of range for the shape heap (operand {i}), which stores {} sizes of symbolic dims",
            tensor.numel()
        )))
    }

    fn load(&self, heap: usize, slot: i64) -> Result<i64> {
        self.heap(heap, slot)?.read(slot)?.int()
    }

    fn store(&self, heap: usize, slot: i64, value: i64) -> Result<()> {
        self.heap(heap, slot)?.write(slot, &Val::Int(value))
    }
}

/// Returns the truth value of a condition, which is a bool or integer scalar, or a tensor with a single bool or integer
/// element.
pub(crate) fn condition(value: &Value) -> Result<bool> {
    match value {
        Value::Bool(b) => Ok(*b),
        Value::Int(v) => Ok(*v != 0),
        Value::Tensor(t) if t.numel() == 1 && !t.dtype().is_float() => Ok(t.to_i64_vec()?[0] != 0),
        other => Err(InterpError::type_error(format!(
            "a condition must be a bool or integer scalar, but is {}",
            other.describe()
        ))),
    }
}

/// The builtins that old programs may call without the prefix `vm.builtin.`.
pub(crate) const UNPREFIXED: &[&str] =
    &["alloc_shape_heap", "free_storage", "free_tensor", "load_shape", "store_shape"];

/// Calls a builtin; `None` if no builtin has the given name.
pub(crate) fn call(
    interp: &mut Interpreter<'_>,
    name: &str,
    args: &[Value],
) -> Option<Result<Value>> {
    let a = Args(args);
    if name == pliant_ops::dynamic_operator_calls::CALL_OPERATOR {
        return Some(dynamic_operator_call::call(interp, a));
    }
    let name = name.strip_prefix("vm.builtin.")?;
    let unit = |result: Result<()>| result.map(|()| Value::unit());
    Some(match name {
        "alloc_shape_heap" => alloc_shape_heap(interp, a),
        "alloc_storage" => alloc_storage(interp, a),
        "alloc_tensor" => alloc_tensor(interp, a),
        "call_tir_dyn" => call_tir_dyn(interp, a),
        "check_func_info" => unit(check_func(a)),
        "check_prim_value_info" => unit(check_prim(a)),
        "check_shape_info" => unit(check_shape(a)),
        "check_tensor_info" => unit(check_tensor(a)),
        "check_tuple_info" => unit(check_tuple(a)),
        "compute_prim_value" => compute_prim(a),
        "copy" | "to_device" => a.value(0).cloned(),
        "copy_tensor" => a.tensor(0).and_then(|t| Ok(t.copy()?.into())),
        "debug_print" | "print" => unit(print_and_assert::print(a)),
        "assert_op" => unit(print_and_assert::assert_op(a)),
        "invoke_closure" | "invoke_closure_tail" | "invoke_pure_closure" => {
            a.func(0).and_then(|f| interp.call_func(&f, &args[1..]))
        }
        "item" => item_and_trip_count::item(a),
        "make_closure" => a.func(0).map(|f| Func::Bound(Arc::new(f), args[1..].into()).into()),
        "make_prim_value" => decode_int(a, 1).map(Value::Int),
        "make_shape" => make_shape(a),
        "make_tuple" => Ok(Value::Tuple(args.into())),
        "match_prim_value" => unit(match_prim(a)),
        "match_shape" => unit(match_shape(a)),
        "null_value" | "kill_object" | "free_tensor" | "free_storage" => Ok(Value::None),
        "store_shape" => unit(store_shape(a)),
        "load_shape" => load_shape(a),
        "read_if_cond" => a.value(0).and_then(condition).map(Value::Bool),
        "reshape" => reshape(a),
        "shape_of" => a.tensor(0).map(|t| Value::shape(t.shape())),
        "tensor_to_shape" => tensor_to_shape(a),
        "trip_count" => item_and_trip_count::trip_count(a),
        "tuple_getitem" => tuple_getitem(a),
        "unique" => data_dependent_shapes::unique(interp, a),
        "tensor_view" => tensor_properties::tensor_view(a),
        _ if name.starts_with("inspect.") => tensor_properties::inspect(name, a)?,
        "dynamic_strided_slice" => data_dependent_shapes::strided_slice(interp, a),
        "nonzero" => data_dependent_shapes::nonzero(interp, a),
        _ => return None,
    })
}

// ---- memory and tensors ----

fn alloc_shape_heap(interp: &Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let slots = a.int(0)?;
    if !(0..=MAX_SLOTS).contains(&slots) {
        let text = format!("a shape heap cannot have {slots} slots");
        return Err(InterpError::type_error(text));
    }
    Ok(interp.alloc_tensor(&[slots], DType::Int64)?.into())
}

fn alloc_storage(interp: &Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let bytes = match a.value(0)? {
        Value::Shape(shape) if shape.len() != 1 => {
            pliant_tensor::checked_nbytes(shape, a.dtype(2)?)? as i64
        }
        Value::Shape(shape) => shape[0],
        _ => a.int(0)?,
    };
    interp.alloc_storage(bytes).map(Value::Storage)
}

fn alloc_tensor(interp: &Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let (storage, offset) = (a.storage(0)?, a.int(1)?);
    Ok(interp.tensor_in_storage(storage, offset, a.shape(2)?, a.dtype(3)?)?.into())
}

fn reshape(a: Args<'_>) -> Result<Value> {
    Ok(a.tensor(0)?.to_contiguous()?.reshape(a.shape(1)?)?.into())
}

fn tuple_getitem(a: Args<'_>) -> Result<Value> {
    let Value::Tuple(items) = a.value(0)? else { return a.type_mismatch(0, "a tuple") };
    let index = a.int(1)?;
    let item = usize::try_from(index).ok().and_then(|i| items.get(i)).cloned();
    let item_count = plural(items.len() as i64, "item");
    item.ok_or_else(|| {
        InterpError::type_error(format!(
            "tuple index {index} is out of range: the tuple has {item_count}"
        ))
    })
}

/// `call_tir_dyn(function, tensors.., sizes)`: calls a loop function. Each dim of the shape `sizes` is passed as an argument.
fn call_tir_dyn(interp: &mut Interpreter<'_>, a: Args<'_>) -> Result<Value> {
    let func = a.func(0)?;
    let mut args = a.0[1..].to_vec();
    if let Some(Value::Shape(dims)) = args.last().cloned() {
        args.pop();
        args.extend(dims.iter().map(|&d| Value::Int(d)));
    }
    interp.call_func(&func, &args)?;
    Ok(Value::unit())
}

// ---- checks of types ----

/// Creates the error that operand 0 is not `wanted`, such as `a function`. The string at operand
/// `context` names the checked value.
fn kind_error(a: Args<'_>, context: usize, wanted: &str) -> InterpError {
    let actual = a.0.first().map_or_else(|| "missing".to_string(), Value::describe);
    let subject = a.subject(context);
    InterpError::type_error(format!("{subject} must be {wanted}, but is {actual}"))
}

fn optional_dtype(a: Args<'_>, i: usize) -> Result<Option<DType>> {
    match a.0.get(i) {
        None | Some(Value::None) => Ok(None),
        Some(Value::Str(text)) if text.is_empty() => Ok(None),
        Some(_) => a.dtype(i).map(Some),
    }
}

/// Formats a rank for messages, such as ` of 2 dims`; empty if the rank is unknown (negative).
fn rank_text(n: i64) -> String {
    if n < 0 { String::new() } else { format!(" of {}", plural(n, "dim")) }
}

fn check_tensor(a: Args<'_>) -> Result<()> {
    let (ndim, dtype) = (a.int(1)?, optional_dtype(a, 2)?);
    match a.value(0)? {
        Value::Tensor(t)
            if (ndim < 0 || t.ndim() as i64 == ndim) && dtype.is_none_or(|d| d == t.dtype()) =>
        {
            Ok(())
        }
        _ => {
            let wanted = dtype.map_or("a".to_string(), DType::with_article);
            Err(kind_error(a, 3, &format!("{wanted} tensor{}", rank_text(ndim))))
        }
    }
}

fn check_shape(a: Args<'_>) -> Result<()> {
    let ndim = a.int(1)?;
    match a.value(0)? {
        Value::Shape(s) if ndim < 0 || s.len() as i64 == ndim => Ok(()),
        _ => Err(kind_error(a, 2, &format!("a shape{}", rank_text(ndim)))),
    }
}

fn check_tuple(a: Args<'_>) -> Result<()> {
    let len = a.int(1)?;
    match a.value(0)? {
        Value::Tuple(items) if len < 0 || items.len() as i64 == len => Ok(()),
        _ if len < 0 => Err(kind_error(a, 2, "a tuple")),
        _ => Err(kind_error(a, 2, &format!("a tuple of {}", plural(len, "value")))),
    }
}

fn check_prim(a: Args<'_>) -> Result<()> {
    let dtype = optional_dtype(a, 1)?;
    let fits = match (a.value(0)?, dtype) {
        (Value::Int(_) | Value::Float(_) | Value::Bool(_), None) => true,
        (Value::Int(_), Some(d)) => d.is_integer(),
        (Value::Float(_), Some(d)) => d.is_float(),
        (Value::Bool(_), Some(d)) => d.is_bool(),
        _ => false,
    };
    let wanted =
        || dtype.map_or("a scalar".to_string(), |d| format!("{} scalar", d.with_article()));
    if fits { Ok(()) } else { Err(kind_error(a, 2, &wanted())) }
}

fn check_func(a: Args<'_>) -> Result<()> {
    match a.value(0)? {
        Value::Func(_) => Ok(()),
        _ => Err(kind_error(a, 1, "a function")),
    }
}

// ---- shapes ----

/// Matches a size according to a code: compares it with a constant (0) or a heap slot (3), stores
/// it in a heap slot (1), or does nothing (2). Returns the required size for a comparison, else
/// `None`.
fn match_size(a: Args<'_>, code: i64, operand: i64, actual: i64) -> Result<Option<i64>> {
    match code {
        0 => Ok(Some(operand)),
        1 => a.store(1, operand, actual).map(|()| None),
        2 => Ok(None),
        3 => a.load(1, operand).map(Some),
        _ => Err(InterpError::type_error(format!(
            "the code {code}, which states how a size is matched, is unknown; expected 0 (compare it with a constant), 1 (store \
             it in a slot of the shape heap), 2 (accept any size) or 3 (compare it with a slot of the shape heap)"
        ))),
    }
}

/// Describes the expected value of a size, as in `n = 7 (from 'x' dim 0)`.
fn expected_size(a: Args<'_>, context: usize, line: usize, code: i64, want: i64) -> String {
    let line = a.text(context).lines().nth(line).unwrap_or("");
    let (expr, origin) = line.split_once('\t').unwrap_or((line, ""));
    let expr = if code != 3 || expr.is_empty() { String::new() } else { format!("{expr} = ") };
    let origin = if origin.is_empty() { String::new() } else { format!(" (from {origin})") };
    format!("{expr}{want}{origin}")
}

/// `store_shape(value, heap, slots..)`: stores dim `i` of a tensor or shape in the `i`-th listed slot of the shape heap.
fn store_shape(a: Args<'_>) -> Result<()> {
    let dims = match a.value(0)? {
        Value::Tensor(t) => t.shape(),
        _ => a.shape(0)?,
    };
    let slots = a.0.len().saturating_sub(2);
    if dims.len() != slots {
        let text =
            format!("store_shape: cannot store a shape of {} dims in {slots} slots", dims.len());
        return Err(InterpError::check(text));
    }
    dims.iter().enumerate().try_for_each(|(i, &dim)| a.store(1, a.int(i + 2)?, dim))
}

/// `load_shape(heap, slots..)`: returns a shape whose dims are the values of the listed slots of the shape heap.
fn load_shape(a: Args<'_>) -> Result<Value> {
    let dims: Result<Vec<i64>> = (1..a.0.len()).map(|i| a.load(0, a.int(i)?)).collect();
    Ok(Value::shape(&dims?))
}

/// `match_shape(value, heap, n, (code, operand) * n, context)`: checks each dim of a tensor or shape against a constant or a slot
/// of the heap, or stores it in a slot, as its code says; see [`match_size`].
fn match_shape(a: Args<'_>) -> Result<()> {
    let count = usize::try_from(a.int(2)?).ok().filter(|&n| n <= a.0.len());
    let Some(count) = count.filter(|n| 3 + 2 * n <= a.0.len()) else {
        return Err(InterpError::type_error(
            "vm.builtin.match_shape: the call has fewer than two operands for each of the dims that operand 2 counts",
        ));
    };
    let context = 3 + 2 * count;
    let dims = match a.value(0)? {
        Value::Tensor(t) => t.shape(),
        Value::Shape(s) => s,
        _ => return Err(kind_error(a, context, "a tensor or a shape")),
    };
    if dims.len() != count {
        let (subject, n) = (a.subject(context), plural(count as i64, "dim"));
        let text = format!("{subject} must have {n}, but has shape {dims:?}");
        return Err(InterpError::type_error(text));
    }
    for (i, &dim) in dims.iter().enumerate() {
        let (code, operand) = (a.int(3 + 2 * i)?, a.int(4 + 2 * i)?);
        if let Some(want) = match_size(a, code, operand, dim)?
            && want != dim
        {
            let expected = expected_size(a, context, i + 1, code, want);
            let subject = a.subject(context);
            return Err(InterpError::type_error(format!(
                "{subject} dim {i} must equal {expected}, but is {dim}"
            )));
        }
    }
    Ok(())
}

/// `match_prim_value(value, heap, code, operand, context)`: checks an integer against a constant or a slot of the heap, or stores
/// it in a slot, as `code` says; see [`match_size`].
fn match_prim(a: Args<'_>) -> Result<()> {
    let Some(value) = a.value(0)?.as_int() else { return Err(kind_error(a, 4, "an integer")) };
    let (code, operand) = (a.int(2)?, a.int(3)?);
    match match_size(a, code, operand, value)? {
        Some(want) if want != value => {
            let (subject, expected) = (a.subject(4), expected_size(a, 4, 1, code, want));
            Err(InterpError::type_error(format!("{subject} must equal {expected}, but is {value}")))
        }
        _ => Ok(()),
    }
}

/// Decodes the integer that operand `i` (a code) and operand `i + 1` represent: a constant (0), or the value of a heap slot (1).
/// The shape heap is operand 0.
fn decode_int(a: Args<'_>, i: usize) -> Result<i64> {
    match (a.int(i)?, a.int(i + 1)?) {
        (0, value) => Ok(value),
        (1, slot) => a.load(0, slot),
        (code, _) => Err(InterpError::type_error(format!(
            "the code {code} in operand {i} is unknown; expected 0 (operand {next} is a constant) or 1 (operand {next} is a \
             slot of the shape heap)",
            next = i + 1
        ))),
    }
}

/// `compute_prim_value(op, constant, (coefficient, value)..)`: returns the sum `constant + coefficient * value + ..`, or the result
/// of comparing the sum with 0.
fn compute_prim(a: Args<'_>) -> Result<Value> {
    let mut sum = i128::from(a.int(1)?);
    for i in (2..a.0.len()).step_by(2) {
        sum = sum.saturating_add(i128::from(a.int(i)?) * i128::from(a.int(i + 1)?));
    }
    Ok(Value::Bool(match a.int(0)? {
        0 => {
            let text =
                || InterpError::check(format!("the computed size {sum} does not fit 64 bits"));
            return i64::try_from(sum).map(Value::Int).map_err(|_| text());
        }
        1 => sum < 0,
        2 => sum <= 0,
        3 => sum == 0,
        4 => sum != 0,
        op => {
            return Err(InterpError::type_error(format!(
                "vm.builtin.compute_prim_value: the operation {op} in operand 0 is unknown; expected 0 (return the sum), or 1 to 4 \
                 (compare the sum with 0: <, <=, ==, !=)"
            )));
        }
    }))
}

/// `make_shape(heap, n, (code, operand) * n)`: returns a shape whose dims are constants or the values of heap slots; see
/// [`decode_int`].
fn make_shape(a: Args<'_>) -> Result<Value> {
    let count = usize::try_from(a.int(1)?).unwrap_or(0);
    let dims: Result<Vec<i64>> = (0..count).map(|i| decode_int(a, 2 + 2 * i)).collect();
    Ok(Value::Shape(dims?.into()))
}

fn tensor_to_shape(a: Args<'_>) -> Result<Value> {
    let t = a.tensor(0)?;
    if t.ndim() != 1 || !t.dtype().is_integer() {
        return a.type_mismatch(0, "an integer tensor of 1 dim");
    }
    Ok(Value::Shape(t.to_i64_vec()?.into()))
}
