//! The activations of ONNX's recurrent operators, with their parameters.

use pliant_ir::op::InferError;

use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

/// An activation function of a recurrent layer, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Activation {
    name: &'static str,
    alpha: f64,
    beta: f64,
}

/// The supported activations, each with its name and the defaults of alpha and beta. NaN means that
/// the activation has no such parameter.
const ACTIVATIONS: &[(&str, f64, f64)] = &[
    ("Relu", f64::NAN, f64::NAN),
    ("Tanh", f64::NAN, f64::NAN),
    ("Sigmoid", f64::NAN, f64::NAN),
    ("Affine", 1.0, 0.0),
    ("LeakyRelu", 0.01, f64::NAN),
    ("ThresholdedRelu", 1.0, f64::NAN),
    ("ScaledTanh", 1.0, 1.0),
    ("HardSigmoid", 0.2, 0.5),
    ("Elu", 1.0, f64::NAN),
    ("Softsign", f64::NAN, f64::NAN),
    ("Softplus", f64::NAN, f64::NAN),
];

impl Activation {
    /// The expression for the activation function applied to `x`.
    pub fn apply(&self, x: &Expr) -> Expr {
        let dtype = x.ty().dtype;
        let number = |v: f64| te::const_of(v, dtype);
        let (zero, one) = (number(0.0), number(1.0));
        let (alpha, beta) = (number(self.alpha), number(self.beta));
        match self.name {
            "Relu" => te::maximum(x, &zero),
            "Tanh" => te::tanh(x),
            "Affine" => x * &alpha + beta,
            "LeakyRelu" => te::select(&te::lt(x, &zero), &(x * &alpha), x),
            "ThresholdedRelu" => te::select(&te::ge(x, &alpha), x, &zero),
            "ScaledTanh" => alpha * te::tanh(&(x * &beta)),
            "HardSigmoid" => te::maximum(&te::minimum(&(x * &alpha + beta), &one), &zero),
            "Elu" => te::select(&te::lt(x, &zero), &(alpha * (te::exp(x) - one)), x),
            "Softsign" => x / (one + te::abs(x)),
            // `log(1 + e^x)` without overflow.
            "Softplus" => te::maximum(x, &zero) + te::log(&(one + te::exp(&-te::abs(x)))),
            _ => te::sigmoid(x),
        }
    }
}

/// The activation functions of each direction, read from the attributes of the call. By default, each direction has
/// `default_activations`.
pub(super) fn activations(
    ctx: &InferCtx<'_>,
    default_activations: &[&'static str],
    directions: usize,
) -> Result<Vec<Activation>, InferError> {
    let count = default_activations.len() * directions;
    let names: Vec<String> = match ctx.list("activations")? {
        None => default_activations.iter().copied().cycle().take(count).map(String::from).collect(),
        Some(list) => {
            let names: Vec<String> =
                list.iter().filter_map(|v| v.as_str().map(String::from)).collect();
            if names.len() != count || list.len() != count {
                return Err(ctx.error(format!(
                    "activations must be a list of {count} names, one for each activation \
                         function of each direction"
                )));
            }
            names
        }
    };
    let mut alphas = ctx.floats("activation_alpha")?.unwrap_or_default().into_iter();
    let mut betas = ctx.floats("activation_beta")?.unwrap_or_default().into_iter();
    let mut out = Vec::with_capacity(count);
    for name in names {
        let row =
            ACTIVATIONS.iter().find(|row| row.0.eq_ignore_ascii_case(&name)).ok_or_else(|| {
                let known: Vec<&str> = ACTIVATIONS.iter().map(|row| row.0).collect();
                ctx.error(format!(
                    "activations contains {name:?}, but must contain only {}",
                    known.join(", ")
                ))
            })?;
        // As in ONNX, the lists only contain values for the activations that have the parameter.
        let parameter = |default_activations: f64, list: &mut dyn Iterator<Item = f64>| {
            if default_activations.is_nan() {
                default_activations
            } else {
                list.next().unwrap_or(default_activations)
            }
        };
        let alpha = parameter(row.1, &mut alphas);
        let beta = parameter(row.2, &mut betas);
        out.push(Activation { name: row.0, alpha, beta });
    }
    Ok(out)
}
