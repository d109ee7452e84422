//! Matches the epilogue of int8 matmuls and convolutions: int32 terms, the cast to float32, scales, bias, activation, and
//! requantization.

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

/// The int32 sums of a matmul or convolution, with columns last.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// The variable that holds the sums.
    pub result: Var,
    /// The number of columns.
    pub columns: i64,
    /// A tensor with the same rows as the sums, if per-row factors are supported.
    pub rows: Option<Expr>,
    /// Whether the kernel supports int32 terms and requantization.
    pub whole: bool,
}

/// The epilogue of sums. Its parts are applied in this order.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Per-column int32 terms.
    pub terms: Option<Expr>,
    /// A per-tensor or per-row factor.
    pub rows: Option<Expr>,
    /// Per-column factors.
    pub columns: Option<Expr>,
    /// Per-column bias.
    pub bias: Option<Expr>,
    pub activation: Activation,
    /// The requantization.
    pub bytes: Option<Bytes>,
    /// The variable that holds the result of the epilogue.
    pub result: Var,
    /// The variables that nothing reads after the replacement.
    pub inside: Vec<Var>,
    /// Whether the current result is float32.
    float: bool,
}

/// The requantization of float32 to 8 bits: division, rounding to even, shift, clipping.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// The scale: one number by which values are divided.
    pub divisor: Option<Expr>,
    /// The zero point: one number that is added after rounding.
    pub shift: Option<Expr>,
    /// The lower and the upper limit.
    pub limits: (f64, f64),
}

/// The longest epilogue of sums in a dataflow block that contains no `taken` variable; `None` if the sums are read as integers.
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
    // The kernel call replaces the last binding of the epilogue, so no write may happen in between.
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

/// The operator of a call that reads `own`, its other operand if there is one, and whether `own` comes first.
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
    /// Adds a call that reads the current result to the epilogue. Returns whether the kernel supports it.
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
            // The order of factors is kept.
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

    /// Adds the requantization to the epilogue, if all of its operators follow.
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

/// Whether a tensor holds one number for each column.
fn of_columns(func: &Function, e: Expr, sums: &Sums) -> bool {
    let int = |d: &Sym| func.syms.as_int(*d);
    func.ty(e).dims().and_then(<[Sym]>::split_last).is_some_and(|(last, before)| {
        int(last) == Some(sums.columns) && before.iter().all(|d| int(d) == Some(1))
    })
}
