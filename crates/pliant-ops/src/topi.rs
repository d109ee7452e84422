//! The operators as functions on tensors of tensor expressions (`topi` in Python). Each function builds, over the given
//! tensors, the tensor expressions to which `LegalizeOps` lowers a call of the operator.

use pliant_ir::op::Op;
use pliant_ir::relax::{Callee, Expr, ExprData, Function};
use pliant_ir::{OpRegistry, Sym};

use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::Legalize;
use crate::op_registry::{RegistryEntry, registry};
use crate::te::{self, VarMap};
use crate::user_defined_ops::TeCall;

/// Builds the tensor expressions of a call of an operator. `existing_tensors` maps each operand
/// expression of the call to a tensor, and `vars` maps the size variables of these tensors to the
/// symbols of the graph function.
///
/// # Errors
/// If the operator has no tensor expression, if an operand is a constant array, or if the operator
/// rejects its operands.
pub fn outputs_over(
    func: &mut Function,
    call: Expr,
    vars: &VarMap,
    existing_tensors: &[(Expr, te::Tensor)],
) -> Result<Vec<te::Tensor>, LegalizeError> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(call) else {
        return Err(LegalizeError::new(
            "only a call of an operator can be used as a tensor expression, but the expression is not a call of an operator",
        ));
    };
    let (op, args, attrs) = (*op, func.list(*args).to_vec(), func.call_attrs(*attrs).clone());
    reject_constant_arrays(func, op, &args)?;
    let ty = func.expr_ty(call);
    match registry().entry(op) {
        Some(RegistryEntry::Library { decl, .. }) => match decl.legalize {
            Legalize::Te(te) | Legalize::View(te) => {
                let mut ctx = LegalizeCtx::new(func, decl, &args, &attrs, ty);
                ctx.vars = vars.clone();
                ctx.existing_tensors = Some(existing_tensors);
                te(&mut ctx)
            }
            Legalize::Packed(name) => Err(LegalizeError::new(format!(
                "{op}: the operator has no tensor expression, because it calls the packed function '{name}'"
            ))),
            Legalize::Keep => Err(LegalizeError::new(format!(
                "{op}: the operator has no tensor expression, because it is not lowered to a loop function"
            ))),
        },
        Some(RegistryEntry::User(user)) => user.outputs(
            &mut TeCall::with_existing_tensors(func, vars.clone(), existing_tensors),
            &args,
            &attrs,
        ),
        None => Err(LegalizeError::new(format!("operator {op} is not declared"))),
    }
}

/// Whether an operator can be used as a function over tensor expressions.
pub fn has_te(op: Op) -> bool {
    match registry().decl(op) {
        Some(decl) => matches!(decl.legalize, Legalize::Te(_) | Legalize::View(_)),
        None => registry().lookup(op.name()).is_some(),
    }
}

/// Rejects constant arrays among the operands. Each would become an additional input of the loop
/// function, but a tensor expression cannot add inputs.
fn reject_constant_arrays(func: &Function, op: Op, args: &[Expr]) -> Result<(), LegalizeError> {
    let array = |&e: &Expr| matches!(func.expr(e), ExprData::Constant(c) if func.const_tensor(*c).ndim() > 0);
    let among = |e: &Expr| match func.expr(*e) {
        ExprData::Tuple(list) => func.list(*list).iter().any(array),
        _ => array(e),
    };
    if args.iter().any(among) {
        return Err(LegalizeError::new(format!(
            "{op}: an operand is a constant array: create a te.placeholder for it, and pass the array to the loop function"
        )));
    }
    Ok(())
}

impl LegalizeCtx<'_> {
    /// Returns the tensor that `existing_tensors` contains for the operand `e`. The operator assumes that its dims are `dims`. If
    /// they are other terms, returns a view of the tensor with the dims `dims`, and with run-time checks that its dims are equal to
    /// them. A number becomes a tensor of rank 0. `None` if the call is not lowered over existing tensors, or if `e` is neither one
    /// of them nor a number.
    pub(crate) fn existing_tensor(&mut self, e: Expr, dims: &[Sym]) -> Option<te::Tensor> {
        let existing_tensors = self.existing_tensors?;
        let Some((_, tensor)) = existing_tensors.iter().find(|(g, _)| *g == e) else {
            let value = self.scalar(e)?;
            return Some(te::compute(Vec::new(), "scalar", |_| value));
        };
        let tensor_dims = self.func.ty(e).dims().map(<[Sym]>::to_vec).unwrap_or_default();
        if tensor_dims == dims {
            return Some(tensor.clone());
        }
        let shape = self.size_list(dims);
        let view = te::compute(shape, tensor.name().clone(), |i| tensor.at(i));
        let differ = tensor_dims.iter().zip(dims).enumerate().filter(|(_, (a, b))| a != b);
        let checks: Vec<te::Check> = differ
            .map(|(k, (&a, &b))| {
                let cond = te::eq(&self.size(a), &self.size(b));
                let syms = &self.func.syms;
                let (name, tensor_dims, expected) =
                    (tensor.name(), syms.display(a), syms.display(b));
                let message = format!(
                    "dim {k} of {name} is {tensor_dims}, but the other operands require {expected}"
                );
                te::Check { axes: Vec::new(), cond, message: self.error(message).message.into() }
            })
            .collect();
        Some(checks.into_iter().fold(view, |t, check| t.with_check(check)))
    }
}
