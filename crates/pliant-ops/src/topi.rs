//! The operators as functions from tensor expressions to tensor expressions: the loop forms that legalisation makes
//! calls into, over tensors that are there already.

use pliant_ir::op::Op;
use pliant_ir::relax::{Callee, Expr, ExprData, Function};
use pliant_ir::{OpRegistry, Sym};

use crate::decl::Legalize;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::registry::{Entry, registry};
use crate::te::{self, VarMap};
use crate::user::TeCall;

/// The outputs of a call of an operator, whose operands are the tensors that `given` says. `vars` ties the sizes of
/// those tensors to the symbols of the function.
///
/// # Errors
/// When the operator has no tensor expression, an operand is an array, and what the operator says of its operands.
pub fn outputs_over(
    func: &mut Function,
    call: Expr,
    vars: &VarMap,
    given: &[(Expr, te::Tensor)],
) -> Result<Vec<te::Tensor>, LegalizeError> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(call) else {
        return Err(LegalizeError::new("only a call of an operator is a tensor expression"));
    };
    let (op, args, attrs) = (*op, func.list(*args).to_vec(), func.call_attrs(*attrs).clone());
    refuse_arrays(func, op, &args)?;
    let ty = func.expr_ty(call);
    match registry().entry(op.0) {
        Some(Entry::Library { decl, .. }) => match decl.legalize {
            Legalize::Te(te) | Legalize::View(te) => {
                let mut ctx = LegalizeCtx::new(func, decl, &args, &attrs, ty);
                ctx.vars = vars.clone();
                ctx.given = Some(given);
                te(&mut ctx)
            }
            Legalize::Packed(name) => Err(LegalizeError::new(format!(
                "{op}: it is the packed function '{name}', and no tensor expression"
            ))),
            Legalize::Keep => Err(LegalizeError::new(format!("{op}: it is no tensor expression"))),
        },
        Some(Entry::User(user)) => {
            user.outputs(&mut TeCall::over(func, vars.clone(), given), &args, &attrs)
        }
        None => Err(LegalizeError::new(format!("operator {op} is not declared"))),
    }
}

/// Whether an operator is a function over tensor expressions.
pub fn has_te(op: Op) -> bool {
    match registry().decl(op) {
        Some(decl) => matches!(decl.legalize, Legalize::Te(_) | Legalize::View(_)),
        None => registry().lookup(op.0).is_some(),
    }
}

/// A loop function has its constants as operands, so an array among tensor expressions has no place to go.
fn refuse_arrays(func: &Function, op: Op, args: &[Expr]) -> Result<(), LegalizeError> {
    let array = |&e: &Expr| matches!(func.expr(e), ExprData::Constant(c) if func.const_tensor(*c).ndim() > 0);
    let among = |e: &Expr| match func.expr(*e) {
        ExprData::Tuple(list) => func.list(*list).iter().any(array),
        _ => array(e),
    };
    if args.iter().any(among) {
        return Err(LegalizeError::new(format!(
            "{op}: an operand is an array: make a te.placeholder for it, and hand the array to the loop function"
        )));
    }
    Ok(())
}

impl LegalizeCtx<'_> {
    /// The tensor that was given for an operand, with dims that it is taken to have; a number is a tensor of rank 0.
    /// `None` where none was given.
    pub(crate) fn given_tensor(&mut self, e: Expr, dims: &[Sym]) -> Option<te::Tensor> {
        let given = self.given?;
        let Some((_, tensor)) = given.iter().find(|(g, _)| *g == e) else {
            let value = self.scalar(e)?;
            return Some(te::compute(Vec::new(), "scalar", |_| value));
        };
        let own = self.func.ty(e).dims().map(<[Sym]>::to_vec).unwrap_or_default();
        if own == dims {
            return Some(tensor.clone());
        }
        let shape = self.size_list(dims);
        let seen = te::compute(shape, tensor.name().clone(), |i| tensor.at(i));
        let differ = own.iter().zip(dims).enumerate().filter(|(_, (a, b))| a != b);
        let checks: Vec<te::Check> = differ
            .map(|(k, (&a, &b))| {
                let cond = te::eq(&self.size(a), &self.size(b));
                let syms = &self.func.syms;
                let (name, own, want) = (tensor.name(), syms.display(a), syms.display(b));
                let message = format!(
                    "{name}'s dim {k} is not {want}, as the other operands have it, but {own}"
                );
                te::Check { axes: Vec::new(), cond, message: self.error(message).message.into() }
            })
            .collect();
        Some(checks.into_iter().fold(seen, |t, check| t.with_check(check)))
    }
}
