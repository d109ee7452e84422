//! What follows sums of products of 8-bit integers and is done where they are: terms of int32, the cast to float32, scales, bias,
//! activation, and the way back to 8 bits.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{DType, Op, Sym};
use pliant_pass::pattern::Defs;
use rustc_hash::FxHashSet;

use crate::common::products::ADD;
use crate::offload::dequantized::{fits_rows, is_one};
use crate::offload::epilogue::{Activation, Readers, scalar};

/// `R.astype(x, dtype)`.
pub const CAST: Op = Op::new("relax.astype");
/// `R.subtract(x1, x2)`.
pub const SUBTRACT: Op = Op::new("relax.subtract");
const MULTIPLY: Op = Op::new("relax.multiply");
const DIVIDE: Op = Op::new("relax.divide");
const ROUND: Op = Op::new("relax.round");
const MAXIMUM: Op = Op::new("relax.maximum");
const MINIMUM: Op = Op::new("relax.minimum");

/// Sums, with columns last.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// The variable that they are.
    pub result: Var,
    /// How many columns.
    pub columns: i64,
    /// What has a row for each row of sums, where rows may have factors of their own.
    pub rows: Option<Expr>,
    /// Whether terms of int32 are taken, and the way back to 8 bits.
    pub whole: bool,
}

/// What becomes of a sum, in this order.
#[derive(Clone, Debug)]
pub struct Finish {
    /// A term of int32 for each column.
    pub terms: Option<Expr>,
    /// A factor: one number, or one for each row.
    pub rows: Option<Expr>,
    /// A factor for each column.
    pub columns: Option<Expr>,
    /// A term for each column.
    pub bias: Option<Expr>,
    pub activation: Activation,
    /// How it becomes a byte.
    pub bytes: Option<Bytes>,
    /// The variable that the whole is.
    pub result: Var,
    /// The variables that nobody reads any more.
    pub inside: Vec<Var>,
    /// Whether it is float32 already.
    float: bool,
}

/// How float32 becomes bytes: divided, rounded to even, shifted, kept between two limits.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// One number that it is divided by.
    pub divisor: Option<Expr>,
    /// One number that is added when it is rounded.
    pub shift: Option<Expr>,
    /// The least and the largest.
    pub limits: (f64, f64),
}

/// All that follows sums of a dataflow block and is not `taken`; `None` where the sums are read as integers.
pub fn finish_of(
    func: &Function,
    (readers, defs): &(Readers, Defs),
    sums: &Sums,
    taken: &FxHashSet<Var>,
) -> Option<Finish> {
    let mut finish = Finish {
        terms: None,
        rows: None,
        columns: None,
        bias: None,
        activation: Activation::None,
        bytes: None,
        result: sums.result,
        inside: Vec::new(),
        float: false,
    };
    let dims = func.ty(func.find_var_expr(sums.result)?).dims();
    // The whole is computed at its end, so nothing may have been written in between.
    let next = |v: Var| {
        let beside = |v: Var| defs.epoch(v) == defs.epoch(sums.result);
        readers
            .only(func, v)
            .filter(|next| beside(next.var) && !taken.contains(&next.var))
            .filter(|next| func.ty(next.value).dims() == dims)
    };
    while let Some(binding) = next(finish.result)
        && finish.takes(func, sums, binding.value)
    {
        finish.inside.push(finish.result);
        finish.result = binding.var;
    }
    if sums.whole && finish.float {
        finish.narrow(func, next);
    }
    finish.float.then_some(finish)
}

/// The operator of a call with `own` among its operands, and the other operand, where there is one.
fn step(func: &Function, own: Var, value: Expr) -> Option<(Op, Option<Expr>, bool)> {
    let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else {
        return None;
    };
    let is_own = |e: Expr| matches!(func.expr(e), ExprData::Var(v) if *v == own);
    match *func.list(*args) {
        [a] if is_own(a) => Some((*op, None, true)),
        [a, b] if is_own(a) => Some((*op, Some(b), true)),
        [a, b] if is_own(b) => Some((*op, Some(a), false)),
        _ => None,
    }
}

impl Finish {
    /// Takes a call with the result so far among its operands, if that can be.
    fn takes(&mut self, func: &Function, sums: &Sums, value: Expr) -> bool {
        let Some((op, other, _)) = step(func, self.result, value) else { return false };
        let dtype = func.ty(value).dtype();
        if !self.float {
            match (op, other) {
                (CAST, None) if dtype == Some(DType::Float32) => self.float = true,
                (ADD, Some(e)) if dtype == Some(DType::Int32) => {
                    if !sums.whole || self.terms.is_some() || !of_columns(func, e, sums) {
                        return false;
                    }
                    self.terms = Some(e);
                }
                _ => return false,
            }
            return true;
        }
        if dtype != Some(DType::Float32) {
            return false;
        }
        let number = other.map(|e| scalar(func, e));
        if let Some(activation) = self.activation.then(op, number) {
            self.activation = activation;
            return true;
        }
        let Some(e) = other.filter(|_| self.activation == Activation::None) else { return false };
        let sum = self.bias.is_some();
        let for_rows = |e: Expr| match sums.rows {
            Some(x) => fits_rows(func, e, x),
            None => is_one(func, e),
        };
        let place = match op {
            // Factors stay in their order.
            MULTIPLY if !sum && self.columns.is_none() => {
                if self.rows.is_none() && for_rows(e) {
                    &mut self.rows
                } else if of_columns(func, e, sums) {
                    &mut self.columns
                } else {
                    return false;
                }
            }
            ADD if !sum && of_columns(func, e, sums) => &mut self.bias,
            _ => return false,
        };
        *place = Some(e);
        true
    }

    /// Takes the way back to 8 bits, if all of it is there.
    fn narrow(&mut self, func: &Function, next: impl Fn(Var) -> Option<Binding>) {
        let (mut at, mut inside) = (self.result, Vec::new());
        let (mut divisor, mut shift, mut low, mut high) = (None, None, None, None);
        let mut rounded = false;
        while let Some(binding) = next(at) {
            let Some((op, other, first)) = step(func, at, binding.value) else { return };
            let one = other.filter(|&e| is_one(func, e));
            inside.push(at);
            at = binding.var;
            match (op, func.ty(binding.value).dtype()) {
                (DIVIDE, _) if !rounded && divisor.is_none() && first && one.is_some() => {
                    divisor = one;
                }
                (ROUND, _) if !rounded => rounded = true,
                (ADD, _) if rounded && shift.is_none() && low.is_none() && one.is_some() => {
                    shift = one;
                }
                (MAXIMUM, _) if rounded && low.is_none() => {
                    low = other.and_then(|e| scalar(func, e));
                    if low.is_none() {
                        return;
                    }
                }
                (MINIMUM, _) if low.is_some() && high.is_none() => {
                    high = other.and_then(|e| scalar(func, e));
                }
                (CAST, Some(DType::Int8 | DType::UInt8)) => {
                    let (Some(low), Some(high)) = (low, high) else { return };
                    self.bytes = Some(Bytes { divisor, shift, limits: (low, high) });
                    self.inside.append(&mut inside);
                    self.result = at;
                    return;
                }
                _ => return,
            }
        }
    }
}

/// Whether numbers are one for each column.
fn of_columns(func: &Function, e: Expr, sums: &Sums) -> bool {
    let int = |d: &Sym| func.syms.as_int(*d);
    func.ty(e).dims().and_then(<[Sym]>::split_last).is_some_and(|(last, before)| {
        int(last) == Some(sums.columns) && before.iter().all(|d| int(d) == Some(1))
    })
}
