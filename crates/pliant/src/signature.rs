//! The signatures of functions: names, dtypes and dims with their symbols, for users and frontends.

use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_ir::attr_names::{DEFAULT_INPUTS, INPUT_NAMES, OUTPUT_NAMES};
use pliant_ir::relax::{Function, Type, TypeData};
use pliant_ir::{AttrValue, IRModule, print};
use serde::{Deserialize, Serialize};

/// The name and the type of a parameter or a result of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The names of the inputs that the imported file initialises. They are constants of the
    /// program, not parameters.
    #[serde(default)]
    pub default_inputs: Vec<String>,
}

impl Signature {
    /// Returns the hint for an unknown input name: a similar name or all names. For an input that
    /// the imported file initialises, the hint says how to compile it as an input.
    pub fn unknown_input_help(&self, name: &str) -> String {
        if self.default_inputs.iter().any(|n| n == name) {
            return format!(
                "the file initialises '{name}', so it was compiled as a constant: to feed it, declare it as an input \
                 when compiling, with dynamic_shapes={{\"{name}\": {{}}}}"
            );
        }
        let names = self.feed_names();
        let suggestion = did_you_mean(name, names.iter().copied());
        suggestion.unwrap_or_else(|| format!("the inputs are {}", names.join(", ")))
    }

    /// Returns the names by which [`Model::run_named`](crate::Model::run_named) takes the inputs: the names in the imported file,
    /// or the names of the parameters if the function was not imported.
    pub fn feed_names(&self) -> Vec<&str> {
        match self.input_names.len() == self.inputs.len() {
            true => self.input_names.iter().map(String::as_str).collect(),
            false => self.inputs.iter().map(|i| i.name.as_str()).collect(),
        }
    }
}

/// Returns the signatures of a module's public graph functions.
///
/// # Examples
/// ```
/// use pliant::{Dim, signatures};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let script = r#"
/// @R.function
/// def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(x, x)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error)?.module;
/// let all = signatures(&module);
/// assert_eq!((&*all[0].name, &*all[0].inputs[0].name), ("main", "x"));
/// assert_eq!(all[0].output.shape, Some(vec![Dim::Symbolic("n".into())]));
/// # Ok(())
/// # }
/// ```
pub fn signatures(module: &IRModule) -> Vec<Signature> {
    let public = module.relax_funcs().filter(|(_, f)| !f.private);
    public
        .map(|(name, f)| Signature {
            name: name.to_string(),
            inputs: f
                .params()
                .iter()
                .map(|&p| value_info(f, &f.var(p).name, f.var(p).ty))
                .collect(),
            output: value_info(f, "", f.ret_ty()),
            input_names: name_list(f, INPUT_NAMES),
            output_names: name_list(f, OUTPUT_NAMES),
            default_inputs: name_list(f, DEFAULT_INPUTS),
        })
        .collect()
}

/// Returns the strings of the function attribute `attr`, which is a list of names; empty if it is
/// absent.
fn name_list(func: &Function, attr: &str) -> Vec<String> {
    match func.attrs.get(attr) {
        Some(AttrValue::List(items)) => {
            items.iter().filter_map(|i| i.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

fn value_info(func: &Function, name: &str, ty: Type) -> ValueInfo {
    let data = func.types.get(ty);
    let dims = match data {
        TypeData::Prim { .. } => None,
        _ => data.dims(),
    };
    let shape = dims.map(|dims| {
        let dim = |&d| match func.syms.as_int(d) {
            Some(v) => Dim::Constant(v),
            None => Dim::Symbolic(func.syms.display(d).to_string()),
        };
        dims.iter().map(dim).collect()
    });
    ValueInfo {
        name: name.into(),
        ty: print::type_text(func, ty),
        dtype: data.dtype().map(|d| d.name().into()),
        shape,
    }
}
