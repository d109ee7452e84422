//! Gradients that the user registers under a name, for calls of loop functions (`R.call_tir_with_grad`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use pliant_ir::Attrs;
use pliant_ir::relax::Expr;

use super::builder::GradientBuilder;
use super::{DifferentiatedCall, GradientError};
use crate::legalize::tir_call;
use crate::user_defined_ops::{TeArg, TeCall, UserTe};

static TE_GRADIENTS: LazyLock<RwLock<HashMap<String, Arc<UserTe>>>> =
    LazyLock::new(RwLock::default);

/// Registers a function that computes the adjoints of the arguments of a loop function. It receives the adjoints of the outputs
/// (one tensor, or a tuple), then the arguments, and returns one tensor per argument. Registering a name again replaces the
/// function.
pub fn register_te_gradient(name: &str, function: Box<UserTe>) {
    let mut table = TE_GRADIENTS.write().unwrap_or_else(PoisonError::into_inner);
    table.insert(name.to_string(), function.into());
}

/// Whether a gradient with this name is registered.
pub fn has_te_gradient(name: &str) -> bool {
    TE_GRADIENTS.read().unwrap_or_else(PoisonError::into_inner).contains_key(name)
}

/// Emits the adjoints of the arguments of a `call_tir_with_grad` by a call of the loop function that the registered function
/// defines. Returns one adjoint per argument.
///
/// # Errors
/// If no function is registered under the name, it fails, or it returns another number of tensors.
pub fn argument_adjoints(
    builder: &GradientBuilder,
    name: &str,
    call: &DifferentiatedCall<'_>,
    kwargs: &Attrs,
) -> Result<Vec<Expr>, GradientError> {
    let table = TE_GRADIENTS.read().unwrap_or_else(PoisonError::into_inner);
    let function = table.get(name).cloned().ok_or_else(|| {
        GradientError::new(format!(
            "no gradient is registered under the name '{name}'; register it with relax.training.utils.register_te_gradient"
        ))
    })?;
    drop(table);
    let tir = builder.edit(|func| {
        let mut te_call = TeCall::new(func);
        let adjoints = call.result_adjoints.iter().flatten();
        let mut tensors: Vec<TeArg> =
            adjoints.map(|&e| te_call.arg(e)).collect::<Result<_, _>>()?;
        let first = match tensors.len() {
            1 => tensors.remove(0),
            _ => TeArg::Tuple(tensors),
        };
        let mut args = vec![first];
        for &arg in call.args {
            args.push(te_call.arg(arg)?);
        }
        let outputs = function(&args, kwargs)
            .map_err(|e| GradientError::new(format!("the gradient '{name}' failed: {e}")))?;
        if outputs.len() != call.args.len() {
            let (actual, expected) = (outputs.len(), call.args.len());
            return Err(GradientError::new(format!(
                "the gradient '{name}' returned {actual} tensors, but the loop function has {expected} arguments"
            )));
        }
        let ty = te_call.out_ty(&outputs).map_err(|e| GradientError::new(e.to_string()))?;
        let (inputs, vars) = te_call.finish();
        Ok(tir_call(func, name, &inputs, &outputs, &vars, ty)?)
    })?;
    let single = !tir.tuple;
    let result = builder.bind(builder.call_loop_function(tir), "lv");
    let count = call.args.len();
    Ok(match single {
        true => vec![result],
        false => {
            (0..count).map(|k| builder.operand(builder.term(result).field(k).expr())).collect()
        }
    })
}
