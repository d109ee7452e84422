//! Computes the signatures of functions from a module.

use pliant_diag::spelling_suggestions::did_you_mean;
use pliant_ir::attr_names::{DEFAULT_INPUTS, INPUT_NAMES, NARROW_OUTPUTS, OUTPUT_NAMES};
use pliant_ir::relax::{Function, Type, TypeData};
use pliant_ir::{AttrValue, IRModule, print};
use pliant_runtime::{Dim, Signature, ValueInfo};

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
            narrow_outputs: name_list(f, NARROW_OUTPUTS),
        })
        .collect()
}

/// Returns the hint for an unknown input name: a similar name or all names. For an input that the
/// imported file initializes, the hint says how to compile it as an input.
///
/// # Examples
/// ```
/// let script = r#"
/// @R.function
/// def main(tokens: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
///     return R.add(tokens, tokens)
/// "#;
/// let module = pliant::parse("double.py", script).map_err(|(error, _)| error).expect("valid").module;
/// let help = pliant::unknown_input_help(&pliant::signatures(&module)[0], "token");
/// assert!(help.contains("tokens"), "{help}");
/// ```
pub fn unknown_input_help(signature: &Signature, name: &str) -> String {
    if signature.default_inputs.iter().any(|n| n == name) {
        return format!(
            "the file initializes '{name}', so it was compiled as a constant: to feed it, declare it as an input \
             when compiling, with dynamic_shapes={{\"{name}\": {{}}}}"
        );
    }
    let names = signature.feed_names();
    let suggestion = did_you_mean(name, names.iter().copied());
    suggestion.unwrap_or_else(|| format!("the inputs are {}", names.join(", ")))
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
