//! What follows a product of integers and is done where it is summed: the cast to float32, scales, bias, activation.

use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::{DType, Op, Sym};
use pliant_pass::pattern::Defs;
use rustc_hash::FxHashSet;

use super::found::{CAST, Product};
use crate::dequantized::fits_rows;
use crate::epilogue::{Activation, Readers, scalar};
use crate::products::ADD;

const MULTIPLY: Op = Op("relax.multiply");

/// What becomes of a sum, in this order.
#[derive(Clone, Debug)]
pub(super) struct Finish {
    /// A factor: one number, or one for each row.
    pub rows: Option<Expr>,
    /// A factor for each column.
    pub columns: Option<Expr>,
    /// A term for each column.
    pub bias: Option<Expr>,
    pub activation: Activation,
    /// The variable that the whole is.
    pub result: Var,
    /// The variables that nobody reads any more.
    pub inside: Vec<Var>,
}

/// All that follows a product of a dataflow block and is not `taken`; `None` where its sums are read as integers.
pub(super) fn of(
    func: &Function,
    (readers, defs): &(Readers, Defs),
    p: &Product,
    taken: &FxHashSet<Var>,
) -> Option<Finish> {
    let mut finish = Finish {
        rows: None,
        columns: None,
        bias: None,
        activation: Activation::None,
        result: p.result,
        inside: Vec::new(),
    };
    let dims = func.ty(func.find_var_expr(p.result)?).dims();
    // The whole is computed at its end, so nothing may have been written in between.
    let next = |v: Var| {
        let beside = |v: Var| defs.epoch(v) == defs.epoch(p.result);
        readers.only(func, v).filter(|next| beside(next.var) && !taken.contains(&next.var))
    };
    while let Some(binding) = next(finish.result)
        && func.ty(binding.value).dtype() == Some(DType::Float32)
        && func.ty(binding.value).dims() == dims
        && finish.takes(func, p, binding.value)
    {
        finish.inside.push(finish.result);
        finish.result = binding.var;
    }
    (finish.result != p.result).then_some(finish)
}

impl Finish {
    /// Takes a call with the result so far among its operands, if that can be.
    fn takes(&mut self, func: &Function, p: &Product, value: Expr) -> bool {
        let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else {
            return false;
        };
        let args = func.list(*args);
        if self.inside.is_empty() {
            return *op == CAST;
        }
        let own = |e: Expr| matches!(func.expr(e), ExprData::Var(v) if *v == self.result);
        let other = match *args {
            [a] if own(a) => None,
            [a, b] if own(a) => Some(b),
            [a, b] if own(b) => Some(a),
            _ => return false,
        };
        let number = other.map(|e| scalar(func, e));
        if let Some(activation) = self.activation.then(*op, number) {
            self.activation = activation;
            return true;
        }
        let Some(e) = other.filter(|_| self.activation == Activation::None) else { return false };
        let sum = self.bias.is_some();
        let place = match *op {
            // Factors stay in their order.
            MULTIPLY if !sum && self.columns.is_none() => {
                if self.rows.is_none() && fits_rows(func, e, p.x) {
                    &mut self.rows
                } else if of_columns(func, e, p) {
                    &mut self.columns
                } else {
                    return false;
                }
            }
            ADD if !sum && of_columns(func, e, p) => &mut self.bias,
            _ => return false,
        };
        *place = Some(e);
        true
    }
}

/// Whether numbers are one for each column.
fn of_columns(func: &Function, e: Expr, p: &Product) -> bool {
    let int = |d: &Sym| func.syms.as_int(*d);
    func.ty(e).dims().and_then(<[Sym]>::split_last).is_some_and(|(last, before)| {
        int(last) == Some(p.weights.shape()[1]) && before.iter().all(|d| int(d) == Some(1))
    })
}
