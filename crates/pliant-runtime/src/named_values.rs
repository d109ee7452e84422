//! Inputs and results by name.

use pliant_tensor::Tensor;
use pliant_vm::Value;

use crate::signature::Signature;

/// The reason why a list of named inputs does not fit a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedInputError {
    /// The function has no input with this name.
    Unknown(String),
    /// The list contains no value for the input with this name.
    Missing(String),
}

impl Signature {
    /// Returns the arguments of the function in order, from inputs by name ([`feed_names`](Self::feed_names)).
    ///
    /// # Errors
    /// If an input is unknown or missing.
    pub fn arguments(&self, feeds: &[(&str, Tensor)]) -> Result<Vec<Value>, NamedInputError> {
        let names = self.feed_names();
        if let Some((name, _)) = feeds.iter().find(|(name, _)| !names.contains(name)) {
            return Err(NamedInputError::Unknown(name.to_string()));
        }
        let argument = |name: &str| {
            let feed = feeds.iter().find(|(n, _)| *n == name);
            feed.map(|(_, tensor)| Value::Tensor(tensor.clone()))
                .ok_or_else(|| NamedInputError::Missing(name.to_string()))
        };
        names.into_iter().map(argument).collect()
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

/// Returns the name of the entry function: `main`, or the only function.
pub fn entry_function(signatures: &[Signature]) -> Option<&Signature> {
    match signatures {
        [one] => Some(one),
        all => all.iter().find(|signature| signature.name == "main"),
    }
}
