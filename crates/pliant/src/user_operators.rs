//! [`register_op`]: registers operators that Rust programs define by functions on tensor expressions
//! (`pliant-ops/src/user_defined_ops.rs`). Operators of Python programs are registered in `pliant-py`.

use pliant_diag::Diagnostic;
use pliant_diag::error_codes::PL0219;
use pliant_ir::{AttrValue, Attrs};
use pliant_ops::te::{TeError, Tensor};
use pliant_ops::{TeArg, UserOpSpec, register_user_op};

use crate::error::Error;

/// Describes the kind of an operand in errors.
fn operand_kind(operand: &TeArg) -> &'static str {
    match operand {
        TeArg::Tensor(_) => "a tensor",
        TeArg::Scalar(_) => "a scalar",
        TeArg::Shape(_) => "a shape",
        TeArg::Tuple(_) => "a tuple",
        TeArg::Str(_) => "a string",
        TeArg::DType(_) => "a data type",
        TeArg::None => "missing",
    }
}

/// Registers an operator that is defined by a function on tensor expressions: `R.<name>` in
/// scripts, and `relax.op.<name>` in Python. `attrs` are its attributes with their defaults; a call
/// must give an attribute without a default.
///
/// The function receives a tensor for each operand and returns the results. Shape inference (with
/// symbolic sizes too), lowering to loops, fusion with other operators and evaluation in the
/// interpreter are derived from it. Registering a name again replaces its definition.
///
/// # Examples
/// ```
/// use pliant::{CompileOptions, Model, Tensor, Value, parse, register_op, te};
///
/// register_op("my.outer_sum", &["x", "y"], &[], |tensors, _| {
///     let (x, y) = (&tensors[0], &tensors[1]);
///     let shape = vec![x.shape()[0].clone(), y.shape()[0].clone()];
///     Ok(vec![te::compute(shape, "outer_sum", |i| x.at(&i[..1]) + y.at(&i[1..]))])
/// })?;
///
/// let script = r#"
/// @I.ir_module
/// class Module:
///     @R.function
///     def main(x: R.Tensor(("n",), "float32"), y: R.Tensor((3,), "float32")):
///         return R.my.outer_sum(x, y)
/// "#;
/// let module = parse("script", script).map_err(|(error, _)| error)?.module;
/// let model = Model::compile(module, &CompileOptions::default())?;
/// let row = Tensor::from_slice(&[3], &[10.0f32, 20.0, 30.0])?;
/// for n in [0, 1, 2] {
///     let x = Tensor::from_slice(&[n as i64], &vec![1.0f32; n])?;
///     let args = [Value::Tensor(x), Value::Tensor(row.clone())];
///     let Value::Tensor(sums) = model.run("main", &args)? else { panic!("one tensor") };
///     assert_eq!(sums.shape(), [n as i64, 3]);
///     assert!(sums.to_vec::<f32>()?.chunks(3).all(|sums| sums == [11.0, 21.0, 31.0]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Compile` if the name belongs to a built-in operator, has no dot, or is that of a group of
/// operators.
pub fn register_op(
    name: &str,
    operands: &[&str],
    attrs: &[(&str, Option<AttrValue>)],
    te: impl Fn(&[Tensor], &Attrs) -> Result<Vec<Tensor>, TeError> + Send + Sync + 'static,
) -> Result<(), Error> {
    let op = name.to_string();
    let to_tensor = move |arg: &TeArg| match arg {
        TeArg::Tensor(tensor) => Ok(tensor.clone()),
        // A number is a tensor of rank 0.
        TeArg::Scalar(value) => {
            Ok(pliant_ops::te::compute(Vec::new(), "scalar", |_| value.clone()))
        }
        other => Err(TeError::new(format!(
            "operator {op} takes only tensors and scalars, but an operand is {}",
            operand_kind(other)
        ))),
    };
    let spec = UserOpSpec {
        name: name.to_string(),
        operands: operands.iter().map(|s| s.to_string()).collect(),
        attrs: attrs.iter().map(|(key, default)| (key.to_string(), default.clone())).collect(),
        te: Box::new(move |args, attrs| {
            // Trailing operands that are `None` are absent.
            let count = args.iter().rposition(|a| !matches!(a, TeArg::None)).map_or(0, |k| k + 1);
            te(&args[..count].iter().map(&to_tensor).collect::<Result<Vec<_>, _>>()?, attrs)
        }),
    };
    register_user_op(spec)
        .map(|_| ())
        .map_err(|e| Error::Compile(pliant_diag::Error::user(Diagnostic::error(PL0219, e.message))))
}
