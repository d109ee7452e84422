//! Computes scalars that are linear in scalar parameters, such as `i + 1` for a loop counter `i`, directly from the parameters
//! instead of storing them in the shape heap (the tensor that contains symbolic sizes at run time).

use pliant_ir::relax::{Expr, Function, TypeData, Var};
use pliant_ir::{DType, Sym};
use pliant_sym::{CmpOp, SymKind};

use super::lower_function::FunctionLowering;
use crate::common::operators_after_lowering::{packed_call, prim_int};

/// Maximum number of terms of a sum that is computed directly from scalar parameters. Generated loop functions compute longer
/// sums.
const MAX_TERMS: usize = 16;

/// A scalar that is computed from a sum `constant + sum(coef * term)` of scalar parameters: the value of the sum, or the result
/// of its comparison with 0.
pub(super) struct LinearSum {
    op: PrimOp,
    constant: i64,
    terms: Vec<(i64, Sym)>,
}

/// The operation of `vm.builtin.compute_prim_value` on a linear sum: return the sum, or compare it with 0.
#[derive(Clone, Copy)]
enum PrimOp {
    Sum = 0,
    Lt = 1,
    Le = 2,
    Eq = 3,
    Ne = 4,
}

impl FunctionLowering<'_> {
    /// Records that the value of a symbol is available in a scalar parameter.
    pub fn record_scalar_param(&mut self, func: &mut Function, param: Var) {
        if let TypeData::Prim { dtype, value: Some(value) } = *func.var_ty(param)
            && func.syms.as_var(value).is_some()
        {
            let e = func.var_expr(param);
            self.scalars.entry(value).or_insert((e, dtype));
        }
    }

    /// Converts a symbolic expression to a linear sum of scalar parameters, or to the comparison of a linear sum with 0. `None`
    /// for other expressions.
    pub fn linear_sum(&self, func: &Function, value: Sym) -> Option<LinearSum> {
        let is_known = |terms: &[(i64, Sym)]| {
            terms.len() <= MAX_TERMS && terms.iter().all(|(_, s)| self.scalars.contains_key(s))
        };
        let (op, sum) = match func.syms.kind(value) {
            SymKind::Cmp(op, a, b) => {
                let op = match op {
                    CmpOp::Lt => PrimOp::Lt,
                    CmpOp::Le => PrimOp::Le,
                    CmpOp::Eq => PrimOp::Eq,
                    CmpOp::Ne => PrimOp::Ne,
                };
                (op, difference(sum_parts(func, a), sum_parts(func, b))?)
            }
            _ => (PrimOp::Sum, sum_parts(func, value)),
        };
        let (constant, terms) = sum;
        is_known(&terms).then_some(LinearSum { op, constant, terms })
    }

    /// Creates the expression that computes a linear sum. The caller binds it to a variable.
    pub fn emit_linear_sum(&mut self, func: &mut Function, sum: LinearSum, dtype: DType) -> Expr {
        let op = match (sum.op, dtype) {
            (PrimOp::Sum, DType::Bool) => PrimOp::Ne,
            (op, _) => op,
        };
        let mut args = vec![prim_int(func, op as i64), prim_int(func, sum.constant)];
        for (coef, term) in sum.terms {
            args.push(prim_int(func, coef));
            args.push(self.scalars[&term].0);
        }
        compute_prim_value(func, &args, dtype)
    }

    /// Creates the expression that converts an integer to a bool.
    pub fn int_to_bool(&self, func: &mut Function, value: Expr) -> Expr {
        let args = [prim_int(func, PrimOp::Ne as i64), prim_int(func, 0), prim_int(func, 1), value];
        compute_prim_value(func, &args, DType::Bool)
    }
}

fn compute_prim_value(func: &mut Function, args: &[Expr], dtype: DType) -> Expr {
    let ty = func.intern(TypeData::Prim { dtype, value: None });
    packed_call(func, "vm.builtin.compute_prim_value", args, ty)
}

/// Splits a sum into its constant and its terms. Any other expression is a sum of one term.
fn sum_parts(func: &Function, value: Sym) -> (i64, Vec<(i64, Sym)>) {
    match func.syms.kind(value) {
        SymKind::Int(v) => (v, Vec::new()),
        SymKind::Sum { terms, constant } => (constant, terms.to_vec()),
        _ => (0, vec![(1, value)]),
    }
}

/// The parts of a sum: (constant, list of (coefficient, term)).
type SumParts = (i64, Vec<(i64, Sym)>);

fn difference(a: SumParts, b: SumParts) -> Option<SumParts> {
    let constant = a.0.checked_sub(b.0)?;
    let mut terms = a.1;
    for (coef, term) in b.1 {
        terms.push((coef.checked_neg()?, term));
    }
    Some((constant, terms))
}
