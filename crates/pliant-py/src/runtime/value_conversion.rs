//! Converts run-time values between Python and the VM.

use std::any::Any;
use std::sync::Arc;

use pliant_vm::{FuncValue, PackedFunc, Value, VirtualMachine, uniquely_held_objects};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::nesting_limit::NestingLevel;
use crate::runtime::array_import::borrow_tensor;
use crate::runtime::ndarray::NDArray;
use crate::runtime::packed_functions::{PackedFunction, call_for_vm};
use crate::runtime::shape_tuple::ShapeTuple;

/// A Python object that the VM passes on unchanged.
struct Opaque(Py<PyAny>);

/// A VM value that Python code can only pass on, not inspect.
#[pyclass(frozen, module = "pliant.runtime")]
pub struct Object {
    value: Value,
}

#[pymethods]
impl Object {
    fn __repr__(&self) -> String {
        format!("<pliant object: {}>", self.value.kind())
    }
}

/// Converts a Python object to a VM value. Arrays share their memory. A sequence of ints becomes a
/// shape, any other sequence a tuple, and a callable that is not a class a function.
///
/// # Errors
/// If Pliant does not support an array, or if an int exceeds 64 bits.
pub fn to_value(obj: &Bound<'_, PyAny>) -> Result<Value> {
    if let Ok(array) = obj.cast::<NDArray>() {
        return Ok(Value::Tensor(array.get().tensor().clone()));
    }
    if obj.is_none() {
        return Ok(Value::None);
    }
    if obj.is_exact_instance_of::<PyFloat>() {
        return Ok(Value::Float(obj.extract()?));
    }
    if obj.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(obj.is_truthy()?));
    }
    if obj.is_instance_of::<PyInt>() {
        let int = obj.extract::<i64>();
        return int
            .map(Value::Int)
            .map_err(|_| Error::Value(format!("the integer {obj} does not fit 64 bits")));
    }
    if let Ok(text) = obj.cast::<PyString>() {
        return Ok(Value::str(&text.to_cow().map_err(Error::Python)?));
    }
    // An instance of a class derived from list is mutable and may have additional state, so it is passed on as an
    // object. Named tuples and similar classes are values.
    if obj.is_instance_of::<PyTuple>() || obj.is_exact_instance_of::<PyList>() {
        return sequence(obj);
    }
    if let Some(tensor) = borrow_tensor(obj)? {
        return Ok(Value::Tensor(tensor));
    }
    object_value(obj)
}

fn sequence(obj: &Bound<'_, PyAny>) -> Result<Value> {
    let _level = NestingLevel::enter("tuples")?;
    let items: Vec<Bound<'_, PyAny>> = obj.try_iter()?.collect::<PyResult<_>>()?;
    let int = |i: &Bound<'_, PyAny>| i.is_instance_of::<PyInt>() && !i.is_instance_of::<PyBool>();
    if !items.is_empty() && items.iter().all(int) {
        let dims = items.iter().map(|i| i.extract::<i64>()).collect::<PyResult<Vec<i64>>>();
        let dims =
            dims.map_err(|_| Error::Value("a dim of the shape does not fit 64 bits".into()))?;
        return Ok(Value::shape(&dims));
    }
    let values = items.iter().map(to_value).collect::<Result<Vec<Value>>>()?;
    Ok(Value::tuple(values))
}

fn object_value(obj: &Bound<'_, PyAny>) -> Result<Value> {
    if let Ok(shape) = obj.cast::<ShapeTuple>() {
        return Ok(Value::shape(&shape.get().0));
    }
    if let Ok(func) = obj.cast::<PackedFunction>() {
        return Ok(Value::Func(func.get().func.clone()));
    }
    if let Ok(object) = obj.cast::<Object>() {
        return Ok(object.get().value.clone());
    }
    if let Some(name) = function_name(obj) {
        return Ok(function_value(obj, name));
    }
    Ok(Value::Object(Arc::new(Opaque(obj.clone().unbind()))))
}

/// Wraps a Python callable as a function value. The value holds exactly one Python reference to the callable, as Python's
/// garbage collector requires.
fn function_value(obj: &Bound<'_, PyAny>, name: String) -> Value {
    let host = Arc::new(Opaque(obj.clone().unbind()));
    let callee = host.clone();
    let func: PackedFunc =
        Arc::new(move |args| Python::attach(|py| call_for_vm(callee.0.bind(py), args)));
    Value::Func(FuncValue::hosted(name, func, host))
}

/// Reports to Python's garbage collector the captured objects that only this function value keeps alive.
///
/// # Errors
/// The error of the collector's visitor.
pub fn visit_captured(
    func: &FuncValue,
    visit: &PyVisit<'_>,
) -> std::result::Result<(), PyTraverseError> {
    let mut result = Ok(());
    // Only values without another holder are visited: `func` itself may be shared.
    uniquely_held_objects(func.captured_if_unique(), &mut |any| {
        if let (Ok(()), Some(object)) = (&result, opaque(any)) {
            result = visit.call(object);
        }
    });
    result
}

/// Reports to Python's garbage collector the objects that only the inputs and results stored in a VM keep alive.
///
/// # Errors
/// The error of the collector's visitor.
pub fn visit_stored(
    vm: &VirtualMachine,
    visit: &PyVisit<'_>,
) -> std::result::Result<(), PyTraverseError> {
    let mut result = Ok(());
    vm.uniquely_held_objects(&mut |any| {
        if let (Ok(()), Some(object)) = (&result, opaque(any)) {
            result = visit.call(object);
        }
    });
    result
}

/// Wraps a callable object as a function value; `None` for other objects.
pub fn callable_value(obj: &Bound<'_, PyAny>) -> Option<Value> {
    if !obj.is_callable() {
        return None;
    }
    let name = obj.get_type().name().ok()?.to_string();
    Some(function_value(obj, name))
}

/// Returns the name of a callable, or else the name of its class. `None` for classes, which are
/// passed as objects.
fn function_name(obj: &Bound<'_, PyAny>) -> Option<String> {
    if !obj.is_callable() || obj.is_instance_of::<PyType>() {
        return None;
    }
    let own_name = obj.getattr("__name__").ok().and_then(|name| name.extract().ok());
    own_name.or_else(|| obj.get_type().name().ok()?.extract().ok())
}

/// Converts a VM value to a Python object. A tuple that occurs several times in the value becomes
/// one Python tuple.
///
/// # Errors
/// An error of the Python interpreter.
pub fn from_value(py: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    convert(py, value, &mut FxHashMap::default())
}

/// The Python tuples that were created for shared VM tuples, by the address of the VM tuple.
type Converted<'py> = FxHashMap<*const (), Bound<'py, PyAny>>;

fn convert<'py>(
    py: Python<'py>,
    value: Value,
    converted: &mut Converted<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Tensor(tensor) => Bound::new(py, NDArray::wrap(tensor))?.into_any(),
        Value::None => py.None().into_bound(py),
        Value::Shape(dims) => Bound::new(py, ShapeTuple(dims.to_vec()))?.into_any(),
        Value::Int(v) => v.into_pyobject(py)?.into_any(),
        Value::Float(v) => PyFloat::new(py, v).into_any(),
        Value::Bool(v) => PyBool::new(py, v).to_owned().into_any(),
        Value::Str(text) => PyString::new(py, &text).into_any(),
        Value::DType(dtype) => PyString::new(py, dtype.name()).into_any(),
        Value::Tuple(items) => {
            let (address, holders) = items.shared();
            if let Some(known) = converted.get(&address) {
                return Ok(known.clone());
            }
            let _level = NestingLevel::enter("tuples")?;
            let fields = items.iter().map(|v| convert(py, v.clone(), converted));
            let fields: PyResult<Vec<_>> = fields.collect();
            let tuple = PyTuple::new(py, fields?)?.into_any();
            // Another field of the same value may also refer to this tuple.
            if holders > 1 {
                converted.insert(address, tuple.clone());
            }
            tuple
        }
        Value::Func(func) => match func.host().and_then(opaque) {
            Some(obj) => obj.clone_ref(py).into_bound(py),
            None => Bound::new(py, PackedFunction::new(py, func))?.into_any(),
        },
        Value::Object(ref any) => match opaque(any) {
            Some(obj) => obj.clone_ref(py).into_bound(py),
            None => Bound::new(py, Object { value })?.into_any(),
        },
        Value::Storage(_) => Bound::new(py, Object { value })?.into_any(),
    })
}

fn opaque(any: &Arc<dyn Any + Send + Sync>) -> Option<&Py<PyAny>> {
    any.downcast_ref::<Opaque>().map(|o| &o.0)
}
