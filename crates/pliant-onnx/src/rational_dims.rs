//! [`RationalTensor`]: sizes that a model computes in floating point, represented as quotients of
//! symbolic terms.
//!
//! Exporters scale sizes by `Shape -> Cast to float -> Mul -> Floor -> Cast to int64`. Such a
//! computation can be folded exactly. Floats represent integers up to 2^24 exactly (float64 up to
//! 2^53), and also their products with a fraction of few bits. The quotient of two such numbers is
//! rounded once, and never up to the next integer. So rounding the quotient down or up has the same
//! result as exact division. Computations that are rounded more than once are done at run time.

use pliant_ir::DType;
use pliant_ir::relax::Function;
use pliant_sym::{Sym, SymArena};
use pliant_tensor::Tensor;

use crate::graph_import::Importer;
use crate::imported_value::{SymTensor, Value, broadcast_shape};
use crate::node::{ExprResult, Node};
use crate::shape_folding::{self, FoldOp};

/// Maximum numerator of a float constant that is represented as a quotient of two integers. Constants with a larger numerator may
/// need more bits than the mantissa of a float has.
const MAX_NUMERATOR: f64 = 4096.0;

/// A small float tensor whose elements are quotients of two symbolic terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RationalTensor {
    /// The numerators of the quotients, in an integer tensor that has the shape of the float tensor.
    pub numerators: SymTensor,
    /// The denominators of the quotients, in an integer tensor that has the shape of the float tensor.
    pub denominators: SymTensor,
    /// The float type of the elements.
    pub dtype: DType,
}

/// Whether computations on sizes in this float type can be folded exactly: true for float32 and float64.
pub(crate) fn is_foldable_float(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float64)
}

impl RationalTensor {
    /// Converts integers to quotients with denominator 1.
    pub(crate) fn from_integers(
        numerators: SymTensor,
        dtype: DType,
        func: &mut Function,
    ) -> RationalTensor {
        let one = func.syms.int(1);
        let numerators = SymTensor { dtype: DType::Int64, ..numerators };
        let denominators = shape_folding::map(&numerators, DType::Int64, |_| one);
        RationalTensor { numerators, denominators, dtype }
    }

    /// Converts a constant tensor to quotients; `None` if an element needs too many bits.
    fn from_constant(tensor: &Tensor, func: &mut Function, limit: usize) -> Option<RationalTensor> {
        if !is_foldable_float(tensor.dtype()) || tensor.numel() > limit {
            return None;
        }
        let shape: Vec<usize> = tensor.shape().iter().map(|&d| d as usize).collect();
        let (mut numerators, mut denominators) = (Vec::new(), Vec::new());
        for value in tensor.to_f64_vec().ok()? {
            let denominator = (0..=12).map(|bits| f64::from(1 << bits));
            let denominator =
                denominator.into_iter().find(|denominator| (value * denominator).fract() == 0.0)?;
            // Quotients have no minus zero.
            if (value * denominator).abs() > MAX_NUMERATOR
                || value == 0.0 && value.is_sign_negative()
            {
                return None;
            }
            numerators.push(func.syms.int((value * denominator) as i64));
            denominators.push(func.syms.int(denominator as i64));
        }
        let whole = |elems| SymTensor { shape: shape.clone(), elems, dtype: DType::Int64 };
        Some(RationalTensor {
            numerators: whole(numerators),
            denominators: whole(denominators),
            dtype: tensor.dtype(),
        })
    }

    /// The value of a quotient; `None` if it is not constant. Sizes that occur in both terms may cancel.
    pub(crate) fn constant_quotient(
        func: &mut Function,
        (numerator, denominator): (Sym, Sym),
    ) -> Option<f64> {
        let (numerator, denominator) = cancel(func, numerator, denominator);
        let (numerator, denominator) =
            (func.syms.as_int(numerator)?, func.syms.as_int(denominator)?);
        (denominator != 0).then(|| numerator as f64 / denominator as f64)
    }

    /// Converts the quotients to a constant tensor; `None` unless all of them are constant.
    pub(crate) fn constant(&self, syms: &SymArena) -> Option<Tensor> {
        let (numerators, denominators) =
            (self.numerators.constants(syms)?, self.denominators.constants(syms)?);
        let shape: Vec<i64> = self.numerators.shape.iter().map(|&d| d as i64).collect();
        let pairs = numerators.into_iter().zip(denominators);
        let result = match self.dtype {
            DType::Float32 => {
                let values: Vec<f32> = pairs.map(|(a, b)| a as f32 / b as f32).collect();
                Tensor::from_slice(&shape, &values)
            }
            _ => {
                let values: Vec<f64> = pairs.map(|(a, b)| a as f64 / b as f64).collect();
                Tensor::from_slice(&shape, &values)
            }
        };
        result.ok()
    }

    /// The quotients, as pairs of numerator and denominator.
    pub(crate) fn quotients(&self) -> impl Iterator<Item = (Sym, Sym)> + '_ {
        self.numerators.elems.iter().copied().zip(self.denominators.elems.iter().copied())
    }

    /// Whether all quotients of the tensor are numbers that floats represent exactly.
    fn is_exact(&self, func: &Function) -> bool {
        self.denominators.elems.iter().all(|&e| power_of_two(func, e).is_some())
    }
}

/// The value of a term that is a constant power of two; `None` for other terms.
fn power_of_two(func: &Function, e: Sym) -> Option<i64> {
    func.syms.as_int(e).filter(|&v| v > 0 && v.count_ones() == 1)
}

/// Reduces a quotient if the numerator or the denominator is a constant multiple of the other one.
fn cancel(func: &mut Function, numerator: Sym, denominator: Sym) -> (Sym, Sym) {
    let one = func.syms.int(1);
    if func.syms.as_int(numerator).is_some() && func.syms.as_int(denominator).is_some() {
        return (numerator, denominator);
    }
    let sample = |func: &Function, e: Sym| func.syms.evaluate(e, &|_| Some(64)).ok();
    let (Some(a), Some(b)) = (sample(func, numerator), sample(func, denominator)) else {
        return (numerator, denominator);
    };
    if b > 0 && a > 0 && a % b == 0 {
        let times = func.syms.int(a / b);
        if func.syms.mul(denominator, times) == numerator {
            return (times, one);
        }
    }
    if a > 0 && b > 0 && b % a == 0 {
        let times = func.syms.int(b / a);
        if func.syms.mul(numerator, times) == denominator {
            return (one, times);
        }
    }
    (numerator, denominator)
}

impl Node<'_, '_> {
    /// The elements of input `i` as quotients; `None` unless it is a [`Value::Rational`], or a constant whose elements need few
    /// bits.
    pub(crate) fn rational(&mut self, i: usize) -> Option<RationalTensor> {
        let limit = self.importer.limits.shape_elements;
        match self.input(i) {
            Value::Rational(r) => Some(r),
            Value::Const(t) => RationalTensor::from_constant(&t, self.func(), limit),
            _ => None,
        }
    }

    /// Whether input `i` is a [`Value::Rational`]: a small float tensor of quotients of sizes.
    pub(crate) fn is_rational(&self, i: usize) -> bool {
        matches!(self.input(i), Value::Rational(_))
    }

    /// Converts quotients to a tensor expression.
    ///
    /// # Errors
    /// If type inference fails.
    pub(crate) fn rational_to_tensor(&mut self, r: &RationalTensor) -> ExprResult {
        let numerators = self.materialize(&r.numerators.clone().into())?;
        let numerators = self.cast(numerators, r.dtype)?;
        let one = self.func().syms.int(1);
        if r.denominators.elems.iter().all(|&e| e == one) {
            return Ok(numerators);
        }
        let denominators = self.materialize(&r.denominators.clone().into())?;
        let denominators = self.cast(denominators, r.dtype)?;
        self.op("relax.divide", &[numerators, denominators])
    }

    /// Rounds the quotients of a tensor to integers. `None` if a denominator may be 0.
    pub(crate) fn round_rational(
        &mut self,
        r: &RationalTensor,
        how: Rounding,
    ) -> Option<SymTensor> {
        let func = self.func();
        let mut elems = Vec::with_capacity(r.numerators.elems.len());
        for (numerator, denominator) in r.quotients() {
            let one = func.syms.int(1);
            if pliant_ops::size_proofs::at_most(func, one, denominator) != Some(true) {
                return None;
            }
            elems.push(match how {
                Rounding::Down => func.syms.floordiv(numerator, denominator),
                Rounding::Up => func.syms.ceildiv(numerator, denominator),
                Rounding::Zero => FoldOp::Div.apply(func, numerator, denominator)?,
            });
        }
        Some(SymTensor { elems, ..r.numerators.clone() })
    }

    /// Folds an addition, subtraction, multiplication or division of inputs 0 and 1 to exact quotients of symbolic terms, if one of
    /// them is a [`RationalTensor`]. `None` if the floats that the model computes might be rounded more than once between the sizes
    /// and the result, because they could then differ from the exact quotients by so much that rounding to an integer differs.
    pub(crate) fn fold_rational(&mut self, fold: FoldOp) -> Option<Value> {
        if !self.is_rational(0) && !self.is_rational(1) {
            return None;
        }
        let (a, b) = (self.rational(0)?, self.rational(1)?);
        if a.dtype != b.dtype {
            return None;
        }
        let shape = broadcast_shape(&a.numerators.shape, &b.numerators.shape)?;
        let wide = |t: &SymTensor| t.broadcast_to(&shape);
        let (x, y) = (
            (wide(&a.numerators), wide(&a.denominators)),
            (wide(&b.numerators), wide(&b.denominators)),
        );
        let func = self.func();
        let exact = (a.is_exact(func), b.is_exact(func));
        let (mut numerators, mut denominators) = (Vec::new(), Vec::new());
        for i in 0..x.0.elems.len() {
            let operands = ((x.0.elems[i], x.1.elems[i]), (y.0.elems[i], y.1.elems[i]));
            let (p, q) = combine(func, fold, operands, exact)?;
            let (p, q) = cancel(func, p, q);
            numerators.push(p);
            denominators.push(q);
        }
        let whole = |elems| SymTensor { shape: shape.clone(), elems, dtype: DType::Int64 };
        Some(Value::Rational(RationalTensor {
            numerators: whole(numerators),
            denominators: whole(denominators),
            dtype: a.dtype,
        }))
    }
}

/// The way in which a quotient is rounded to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Down,
    Up,
    Zero,
}

/// Applies the arithmetic operator `fold` to two quotients. `exact` states for each of them whether floats represent it exactly.
/// `None` if the model's floating-point result might be rounded more than once, or if the operator is not supported.
fn combine(
    func: &mut Function,
    fold: FoldOp,
    ((a, denominator_a), (b, denominator_b)): ((Sym, Sym), (Sym, Sym)),
    exact: (bool, bool),
) -> Option<(Sym, Sym)> {
    // Scaling by a power of two does not round again.
    let is_scale = |func: &Function, numerator: Sym| power_of_two(func, numerator).is_some();
    let allowed = match (exact, fold) {
        ((true, true), FoldOp::Add | FoldOp::Sub | FoldOp::Div) => true,
        // The product of two sizes may exceed the range of integers that floats represent exactly.
        ((true, true), FoldOp::Mul) => {
            func.syms.as_int(a).is_some() || func.syms.as_int(b).is_some()
        }
        ((false, true), FoldOp::Mul | FoldOp::Div) => is_scale(func, b),
        ((true, false), FoldOp::Mul) => is_scale(func, a),
        _ => false,
    };
    if !allowed {
        return None;
    }
    let syms = &mut func.syms;
    Some(match fold {
        FoldOp::Mul => (syms.mul(a, b), syms.mul(denominator_a, denominator_b)),
        FoldOp::Div => {
            // The denominator must stay positive.
            let positive = syms.as_int(b).is_none_or(|b| b > 0);
            positive.then_some(())?;
            (syms.mul(a, denominator_b), syms.mul(denominator_a, b))
        }
        _ => {
            let (left, right) = (syms.mul(a, denominator_b), syms.mul(b, denominator_a));
            let numerator =
                if fold == FoldOp::Add { syms.add(left, right) } else { syms.sub(left, right) };
            (numerator, syms.mul(denominator_a, denominator_b))
        }
    })
}

/// The number of leading inputs that a data movement operator moves. `None` for other operators.
pub(crate) fn moved_input_count(operator: &str, count: usize) -> Option<usize> {
    match operator {
        "Concat" => Some(count),
        "Gather" | "Reshape" | "Slice" | "Squeeze" | "Transpose" | "Unsqueeze" => Some(1),
        _ => None,
    }
}

/// Splits the inputs that a data movement operator moves into numerators and denominators, so that the operator can be applied to
/// both. `None` if no input is a [`Value::Rational`], or if an input cannot be converted to quotients.
pub(crate) fn split_quotients(
    importer: &mut Importer<'_>,
    operator: &str,
    inputs: &[Value],
) -> Option<([Vec<Value>; 2], DType)> {
    let moved = moved_input_count(operator, inputs.len())?.min(inputs.len());
    let dtype = inputs[..moved].iter().find_map(|v| match v {
        Value::Rational(r) => Some(r.dtype),
        _ => None,
    })?;
    let limit = importer.limits.shape_elements;
    let mut operands = [inputs.to_vec(), inputs.to_vec()];
    for (i, value) in inputs[..moved].iter().enumerate() {
        let ratios = match value {
            Value::Rational(r) => r.clone(),
            Value::Const(t) => {
                RationalTensor::from_constant(t, importer.builder.func_mut(), limit)?
            }
            _ => return None,
        };
        if ratios.dtype != dtype {
            return None;
        }
        operands[0][i] = Value::Symbolic(ratios.numerators);
        operands[1][i] = Value::Symbolic(ratios.denominators);
    }
    Some((operands, dtype))
}

/// Joins the results for numerators and denominators into [`RationalTensor`]s.
pub(crate) fn join_quotients(
    numerators: Vec<Value>,
    denominators: Vec<Value>,
    dtype: DType,
) -> Option<Vec<Value>> {
    let pairs = numerators.into_iter().zip(denominators);
    let join_pair = |(numerators, denominators)| match (numerators, denominators) {
        (Value::Symbolic(numerators), Value::Symbolic(denominators))
            if numerators.shape == denominators.shape =>
        {
            Some(Value::Rational(RationalTensor { numerators, denominators, dtype }))
        }
        _ => None,
    };
    pairs.map(join_pair).collect()
}
