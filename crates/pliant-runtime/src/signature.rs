//! The signatures of functions: names, dtypes and dims with their symbols, for users and frontends.

use serde::{Deserialize, Serialize};

/// The name and the type of a parameter or a result of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueInfo {
    /// The name of the parameter; empty for a result.
    pub name: String,
    /// The type as script, such as `R.Tensor(("batch", 384), dtype="float32")`.
    pub ty: String,
    /// The element type of a tensor or scalar; `None` for other values or if unknown.
    pub dtype: Option<String>,
    /// The dims of a tensor: numbers if constant, expressions if symbolic; `None` if unknown.
    pub shape: Option<Vec<Dim>>,
}

/// One dim of a tensor's shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// A size that is known at compile time.
    Constant(i64),
    /// A size that is known only at run time: a symbol or an expression over symbols.
    Symbolic(String),
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Constant(v) => v.fmt(f),
            Dim::Symbolic(s) => s.fmt(f),
        }
    }
}

/// The parameters and the result of a function.
///
/// # Examples
/// ```
/// use pliant_runtime::{Dim, Signature, ValueInfo};
///
/// let value = |name: &str| ValueInfo {
///     name: name.into(),
///     ty: r#"R.Tensor(("n", 4), dtype="float32")"#.into(),
///     dtype: Some("float32".into()),
///     shape: Some(vec![Dim::Symbolic("n".into()), Dim::Constant(4)]),
/// };
/// let (name, inputs, output) = ("main".into(), vec![value("x"), value("w")], value(""));
/// let main = Signature { name, inputs, output, ..Signature::default() };
/// assert_eq!(main.feed_names(), ["x", "w"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// The name of the function.
    pub name: String,
    /// The parameters of the function.
    pub inputs: Vec<ValueInfo>,
    /// The result of the function.
    pub output: ValueInfo,
    /// The names of the inputs in the imported file, in order; empty if the function was not
    /// imported.
    #[serde(default)]
    pub input_names: Vec<String>,
    /// The names of the outputs in the imported file; empty if the function was not imported.
    /// Several outputs are the fields of the result, in order.
    #[serde(default)]
    pub output_names: Vec<String>,
    /// The names of the inputs that the imported file initializes. They are constants of the
    /// program, not parameters.
    #[serde(default)]
    pub default_inputs: Vec<String>,
    /// For each output of an imported model, the name of its element type in the Python package `ml_dtypes` if the type has fewer
    /// than 8 bits or is an 8-bit float, or `""`. Such outputs are returned as 8-bit integers. Empty if there are none.
    #[serde(default)]
    pub narrow_outputs: Vec<String>,
}

impl Signature {
    /// Returns the names by which `run_named` takes the inputs: the names in the imported file, or
    /// the names of the parameters if the function was not imported.
    pub fn feed_names(&self) -> Vec<&str> {
        match self.input_names.len() == self.inputs.len() {
            true => self.input_names.iter().map(String::as_str).collect(),
            false => self.inputs.iter().map(|i| i.name.as_str()).collect(),
        }
    }
}
