//! Recognizes the operators on the result of an int8 matmul or convolution that the kernel can compute as its epilogue: addition
//! of int32 terms, the cast to float32, scales, bias, activation, and requantization (`QuantizeLinear` in ONNX models in QDQ form).

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{DType, Op, Sym};
use pliant_pass::pattern::Defs;
use rustc_hash::FxHashSet;

use crate::common::matmul_and_conv_operands::ADD;
use crate::offload::dequantized::{has_one_element, is_scalar_or_per_row};
use crate::offload::epilogue_activations::{Activation, Readers, scalar_constant};

/// The operator `R.astype(x, dtype)`.
pub const CAST: Op = Op::new("relax.astype");
/// The operator `R.subtract(x1, x2)`.
pub const SUBTRACT: Op = Op::new("relax.subtract");
const MULTIPLY: Op = Op::new("relax.multiply");
const DIVIDE: Op = Op::new("relax.divide");
const ROUND: Op = Op::new("relax.round");
const MAXIMUM: Op = Op::new("relax.maximum");
const MINIMUM: Op = Op::new("relax.minimum");

/// The int32 sums that an int8 matmul or convolution computes before its epilogue. Their last dim contains the columns (channels
/// of the result).
#[derive(Clone, Copy, Debug)]
pub struct IntegerSums {
    /// The variable that is bound to the int32 sums.
    pub result: Var,
    /// The size of the last dim of the sums.
    pub columns: i64,
    /// A tensor with the same rows as the sums, if the kernel supports per-row factors; otherwise `None`.
    pub rows: Option<Expr>,
}

/// The epilogue of an int8 matmul or convolution. Its parts are applied to the int32 sums in the order of the fields. After the
/// addition of `terms`, the sums are converted to float32.
#[derive(Clone, Debug)]
pub struct IntegerEpilogue {
    /// The int32 terms, one for each column, that the kernel adds to the int32 sums; `None` if nothing is added.
    pub terms: Option<Expr>,
    /// The scale by which the sums are multiplied after their conversion to float32: a tensor with one element, or with one
    /// element for each row.
    pub rows: Option<Expr>,
    /// The scales, one for each column, by which the sums are multiplied after their conversion to float32.
    pub columns: Option<Expr>,
    /// The bias, one number for each column, that is added after the multiplications by `rows` and `columns`.
    pub bias: Option<Expr>,
    pub activation: Activation,
    /// The requantization of the result to 8 bits; `None` if the result is float32.
    pub requantization: Option<Requantization>,
    /// The variable that is bound to the result of the epilogue.
    pub result: Var,
    /// The variables of the operators that the kernel call replaces, except for the result. Nothing reads these variables after the
    /// replacement.
    pub removed: Vec<Var>,
    /// Whether the operators that have been matched so far convert the int32 sums to float32.
    is_float: bool,
}

/// Requantization of float32 to 8 bits: division by a scale, rounding to even, addition of a zero point, clipping.
#[derive(Clone, Debug)]
pub struct Requantization {
    /// The scale: a tensor with one element, by which values are divided.
    pub divisor: Option<Expr>,
    /// The zero point: a tensor with one element, which is added after rounding.
    pub shift: Option<Expr>,
    /// The lower and the upper limit of the 8-bit results.
    pub limits: (f64, f64),
}

/// Returns the longest sequence of operators on the sums that can become an epilogue and contains none of the variables in
/// `replaced_vars`. `None` if anything reads the sums as integers.
pub fn match_epilogue(
    func: &Function,
    (readers, defs): &(Readers, Defs),
    sums: &IntegerSums,
    replaced_vars: &FxHashSet<Var>,
) -> Option<IntegerEpilogue> {
    let mut epilogue = IntegerEpilogue {
        terms: None,
        rows: None,
        columns: None,
        bias: None,
        activation: Activation::None,
        requantization: None,
        result: sums.result,
        removed: Vec::new(),
        is_float: false,
    };
    let dims = func.ty(func.find_var_expr(sums.result)?).dims();
    // The kernel call replaces the last binding of the epilogue, so nothing may write to the operands of the matmul or convolution
    // before it.
    let next = |v: Var| {
        let same_epoch = |v: Var| defs.epoch(v) == defs.epoch(sums.result);
        readers
            .only_reader(func, v)
            .filter(|next| same_epoch(next.var) && !replaced_vars.contains(&next.var))
            .filter(|next| func.ty(next.value).dims() == dims)
    };
    while let Some(binding) = next(epilogue.result)
        && epilogue.extend(func, sums, binding.value)
    {
        epilogue.removed.push(epilogue.result);
        epilogue.result = binding.var;
    }
    if epilogue.is_float {
        epilogue.match_requantization(func, next);
    }
    epilogue.is_float.then_some(epilogue)
}

/// If a call reads the variable `operand`, returns (operator, its other operand if there is one, whether `operand` is the first
/// operand).
fn match_operator(func: &Function, operand: Var, value: Expr) -> Option<(Op, Option<Expr>, bool)> {
    let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else {
        return None;
    };
    let is_own = |e: Expr| matches!(func.expr(e), ExprData::Var(v) if *v == operand);
    match *func.list(*args) {
        [a] if is_own(a) => Some((*op, None, true)),
        [a, b] if is_own(a) => Some((*op, Some(b), true)),
        [a, b] if is_own(b) => Some((*op, Some(a), false)),
        _ => None,
    }
}

impl IntegerEpilogue {
    /// Extends the epilogue by a call that reads its current result. Returns false if the kernel does not support the operator.
    fn extend(&mut self, func: &Function, sums: &IntegerSums, value: Expr) -> bool {
        let Some((op, other, _)) = match_operator(func, self.result, value) else { return false };
        let dtype = func.ty(value).dtype();
        if !self.is_float {
            match (op, other) {
                (CAST, None) if dtype == Some(DType::Float32) => self.is_float = true,
                (ADD, Some(e)) if dtype == Some(DType::Int32) => {
                    if self.terms.is_some() || !is_per_column(func, e, sums) {
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
        let number = other.map(|e| scalar_constant(func, e));
        if let Some(activation) = self.activation.compose(op, number) {
            self.activation = activation;
            return true;
        }
        let Some(e) = other.filter(|_| self.activation == Activation::None) else { return false };
        let has_bias = self.bias.is_some();
        let is_per_row = |e: Expr| match sums.rows {
            Some(x) => is_scalar_or_per_row(func, e, x),
            None => has_one_element(func, e),
        };
        let slot = match op {
            // The order of factors is kept.
            MULTIPLY if !has_bias && self.columns.is_none() => {
                if self.rows.is_none() && is_per_row(e) {
                    &mut self.rows
                } else if is_per_column(func, e, sums) {
                    &mut self.columns
                } else {
                    return false;
                }
            }
            ADD if !has_bias && is_per_column(func, e, sums) => &mut self.bias,
            _ => return false,
        };
        *slot = Some(e);
        true
    }

    /// Extends the epilogue by a requantization, if all operators of a requantization follow.
    fn match_requantization(&mut self, func: &Function, next: impl Fn(Var) -> Option<Binding>) {
        let (mut at, mut removed) = (self.result, Vec::new());
        let (mut divisor, mut shift, mut low, mut high) = (None, None, None, None);
        let mut rounded = false;
        while let Some(binding) = next(at) {
            let Some((op, other, first)) = match_operator(func, at, binding.value) else { return };
            let scalar = other.filter(|&e| has_one_element(func, e));
            let limit = other.and_then(|e| scalar_constant(func, e));
            removed.push(at);
            at = binding.var;
            match (op, func.ty(binding.value).dtype()) {
                (DIVIDE, _) if !rounded && divisor.is_none() && first && scalar.is_some() => {
                    divisor = scalar;
                }
                (ROUND, _) if !rounded => rounded = true,
                (ADD, _) if rounded && shift.is_none() && low.is_none() && scalar.is_some() => {
                    shift = scalar;
                }
                (MAXIMUM, _) if rounded && low.is_none() && limit.is_some() => low = limit,
                (MINIMUM, _) if low.is_some() && high.is_none() && limit.is_some() => high = limit,
                (CAST, Some(DType::Int8 | DType::UInt8)) => {
                    let (Some(low), Some(high)) = (low, high) else { return };
                    self.requantization =
                        Some(Requantization { divisor, shift, limits: (low, high) });
                    self.removed.append(&mut removed);
                    self.result = at;
                    return;
                }
                _ => return,
            }
        }
    }
}

/// Whether a tensor has one element for each column.
fn is_per_column(func: &Function, e: Expr, sums: &IntegerSums) -> bool {
    let int = |d: &Sym| func.syms.as_int(*d);
    func.ty(e).dims().and_then(<[Sym]>::split_last).is_some_and(|(last, before)| {
        int(last) == Some(sums.columns) && before.iter().all(|d| int(d) == Some(1))
    })
}
