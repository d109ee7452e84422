//! Inputs and results by name.

use pliant_tensor::{DType, Tensor, TensorError};
use pliant_vm::Value;

use crate::signature::{Dim, Signature, ValueInfo};

/// The reason why a list of named inputs does not fit a signature.
#[derive(Debug)]
pub enum NamedInputError {
    /// The function has no input with this name.
    Unknown(String),
    /// No value is passed for the input with this name.
    Missing(String),
    /// The elements of an input tensor cannot be read.
    Tensor(TensorError),
}

impl ValueInfo {
    /// Returns the dims of the tensor that is passed for this parameter: the dims of a tensor parameter, no dims for a scalar, and
    /// one dim, whose size is the rank, for a shape. Returns `None` if the dims are unknown.
    pub fn tensor_dims(&self) -> Option<Vec<Dim>> {
        match self.ty.split('(').next() {
            Some("R.Prim") => Some(Vec::new()),
            Some("R.Shape") => {
                self.shape.as_ref().map(|dims| vec![Dim::Constant(dims.len() as i64)])
            }
            _ => self.shape.clone(),
        }
    }

    /// Converts a tensor to the argument that this parameter takes: a tensor, or a scalar or shape with the elements of the tensor.
    /// A tensor of the wrong form is not converted, so the program reports its own error.
    ///
    /// # Errors
    /// If the elements cannot be read.
    pub fn argument(&self, tensor: &Tensor) -> Result<Value, TensorError> {
        let is_integer = |dtype: DType| !dtype.is_float() && !dtype.is_bool();
        Ok(match self.ty.split('(').next() {
            Some("R.Prim") if tensor.ndim() == 0 => match tensor.dtype() {
                dtype if dtype.is_float() => Value::Float(tensor.to_f64_vec()?[0]),
                dtype if dtype.is_bool() => Value::Bool(tensor.to_i64_vec()?[0] != 0),
                _ => Value::Int(tensor.to_i64_vec()?[0]),
            },
            Some("R.Shape") if tensor.ndim() == 1 && is_integer(tensor.dtype()) => {
                Value::shape(&tensor.to_i64_vec()?)
            }
            _ => Value::Tensor(tensor.clone()),
        })
    }
}

impl Signature {
    /// Returns the arguments of the function in order, from inputs by name ([`feed_names`](Self::feed_names)).
    ///
    /// # Errors
    /// If an input is unknown or missing, or its elements cannot be read.
    pub fn arguments(&self, feeds: &[(&str, Tensor)]) -> Result<Vec<Value>, NamedInputError> {
        let names = self.feed_names();
        if let Some((name, _)) = feeds.iter().find(|(name, _)| !names.contains(name)) {
            return Err(NamedInputError::Unknown(name.to_string()));
        }
        let argument = |(name, input): (&str, &ValueInfo)| {
            let feed = feeds.iter().find(|(n, _)| *n == name);
            let (_, tensor) = feed.ok_or_else(|| NamedInputError::Missing(name.to_string()))?;
            input.argument(tensor).map_err(NamedInputError::Tensor)
        };
        names.into_iter().zip(&self.inputs).map(argument).collect()
    }

    /// Splits the result of the function into its outputs, each with its name in the imported file; the names are empty if the
    /// function was not imported.
    pub fn named_results(&self, result: Value) -> Vec<(String, Value)> {
        let outputs = &self.output_names;
        match result.as_tuple() {
            Some(fields) if outputs.len() != 1 => {
                let name = |i: usize| outputs.get(i).cloned().unwrap_or_default();
                fields.iter().enumerate().map(|(i, v)| (name(i), v.clone())).collect()
            }
            _ => vec![(outputs.first().cloned().unwrap_or_default(), result)],
        }
    }
}

/// Returns the signature of the entry function: the function `main`, or the only function. Returns `None` if there are several
/// functions but no `main`.
pub fn entry_function(signatures: &[Signature]) -> Option<&Signature> {
    match signatures {
        [one] => Some(one),
        all => all.iter().find(|signature| signature.name == "main"),
    }
}
