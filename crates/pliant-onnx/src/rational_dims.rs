//! [`RationalTensor`]: sizes that a model computes in floating point, represented as quotients of symbolic
//! terms.
//!
//! Exporters scale sizes by `Shape -> Cast to float -> Mul -> Floor -> Cast to int64`. Floats
//! represent integers up to 2^24 exactly (float64 up to 2^53), and also these multiplied by a
//! fraction of few bits. A quotient of two of them is rounded once, which never reaches the next
//! integer, so rounding it down or up gives the same result as exact division. Computations with
//! more than one rounding are done at run time.

use pliant_ir::DType;
use pliant_ir::relax::Function;
use pliant_sym::{Sym, SymArena};
use pliant_tensor::Tensor;

use crate::graph::Importer;
use crate::node::{ExprResult, Node};
use crate::shape_folding::{self, FoldOp};
use crate::value::{SymTensor, Value, broadcast_shape};

/// Maximum numerator of a constant that counts as a fraction of few bits.
const MAX_NUMERATOR: f64 = 4096.0;

/// A small float tensor, each element of which is the quotient of two terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RationalTensor {
    /// The numerators; they determine the shape.
    pub over: SymTensor,
    /// The denominators: powers of two if the quotients are exact.
    pub under: SymTensor,
    /// The float type.
    pub dtype: DType,
}

/// Whether folding is valid for this float type.
pub(crate) fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::Float32 | DType::Float64)
}

impl RationalTensor {
    /// Integers as floats.
    pub(crate) fn whole(over: SymTensor, dtype: DType, func: &mut Function) -> RationalTensor {
        let one = func.syms.int(1);
        let over = SymTensor { dtype: DType::Int64, ..over };
        let under = shape_folding::map(&over, DType::Int64, |_| one);
        RationalTensor { over, under, dtype }
    }

    /// A constant whose elements are fractions of few bits.
    fn of_constant(tensor: &Tensor, func: &mut Function, limit: usize) -> Option<RationalTensor> {
        if !is_wide(tensor.dtype()) || tensor.numel() > limit {
            return None;
        }
        let shape: Vec<usize> = tensor.shape().iter().map(|&d| d as usize).collect();
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for value in tensor.to_f64_vec().ok()? {
            let below = (0..=12).map(|bits| f64::from(1 << bits));
            let below = below.into_iter().find(|below| (value * below).fract() == 0.0)?;
            // Minus zero cannot be represented.
            if (value * below).abs() > MAX_NUMERATOR || value == 0.0 && value.is_sign_negative() {
                return None;
            }
            over.push(func.syms.int((value * below) as i64));
            under.push(func.syms.int(below as i64));
        }
        let whole = |elems| SymTensor { shape: shape.clone(), elems, dtype: DType::Int64 };
        Some(RationalTensor { over: whole(over), under: whole(under), dtype: tensor.dtype() })
    }

    /// The value of a quotient that is constant, possibly because sizes cancel.
    pub(crate) fn constant_quotient(func: &mut Function, (over, under): (Sym, Sym)) -> Option<f64> {
        let (over, under) = reduced(func, over, under);
        let (over, under) = (func.syms.as_int(over)?, func.syms.as_int(under)?);
        (under != 0).then(|| over as f64 / under as f64)
    }

    /// The tensor, if all elements are constant.
    pub(crate) fn constant(&self, syms: &SymArena) -> Option<Tensor> {
        let (over, under) = (self.over.constants(syms)?, self.under.constants(syms)?);
        let shape: Vec<i64> = self.over.shape.iter().map(|&d| d as i64).collect();
        let pairs = over.into_iter().zip(under);
        let made = match self.dtype {
            DType::Float32 => {
                let values: Vec<f32> = pairs.map(|(a, b)| a as f32 / b as f32).collect();
                Tensor::from_slice(&shape, &values)
            }
            _ => {
                let values: Vec<f64> = pairs.map(|(a, b)| a as f64 / b as f64).collect();
                Tensor::from_slice(&shape, &values)
            }
        };
        made.ok()
    }

    /// The numerators and denominators.
    pub(crate) fn elems(&self) -> impl Iterator<Item = (Sym, Sym)> + '_ {
        self.over.elems.iter().copied().zip(self.under.elems.iter().copied())
    }

    fn is_exact(&self, func: &Function) -> bool {
        self.under.elems.iter().all(|&e| power_of_two(func, e).is_some())
    }
}

/// The value of a term that is a constant power of two.
fn power_of_two(func: &Function, e: Sym) -> Option<i64> {
    func.syms.as_int(e).filter(|&v| v > 0 && v.count_ones() == 1)
}

/// Cancels a quotient if one term is a multiple of the other.
fn reduced(func: &mut Function, over: Sym, under: Sym) -> (Sym, Sym) {
    let one = func.syms.int(1);
    if func.syms.as_int(over).is_some() && func.syms.as_int(under).is_some() {
        return (over, under);
    }
    let at = |func: &Function, e: Sym| func.syms.evaluate(e, &|_| Some(64)).ok();
    let (Some(a), Some(b)) = (at(func, over), at(func, under)) else { return (over, under) };
    if b > 0 && a > 0 && a % b == 0 {
        let times = func.syms.int(a / b);
        if func.syms.mul(under, times) == over {
            return (times, one);
        }
    }
    if a > 0 && b > 0 && b % a == 0 {
        let times = func.syms.int(b / a);
        if func.syms.mul(over, times) == under {
            return (one, times);
        }
    }
    (over, under)
}

impl Node<'_, '_> {
    /// Input `i` as quotients, if it is computed from sizes, or a constant operand of such a
    /// computation.
    pub(crate) fn rational(&mut self, i: usize) -> Option<RationalTensor> {
        let limit = self.importer.limits.shape_elements;
        match self.input(i) {
            Value::Rational(r) => Some(r),
            Value::Const(t) => RationalTensor::of_constant(&t, self.func(), limit),
            _ => None,
        }
    }

    /// Whether input `i` is a floating-point computation on sizes.
    pub(crate) fn is_rational(&self, i: usize) -> bool {
        matches!(self.input(i), Value::Rational(_))
    }

    /// Converts quotients to a tensor of the program.
    ///
    /// # Errors
    /// Those of type inference.
    pub(crate) fn rational_to_tensor(&mut self, r: &RationalTensor) -> ExprResult {
        let over = self.materialize(&r.over.clone().into())?;
        let over = self.cast(over, r.dtype)?;
        let one = self.func().syms.int(1);
        if r.under.elems.iter().all(|&e| e == one) {
            return Ok(over);
        }
        let under = self.materialize(&r.under.clone().into())?;
        let under = self.cast(under, r.dtype)?;
        self.op("relax.divide", &[over, under])
    }

    /// Rounds the quotients to integers; `None` if a denominator may be 0.
    pub(crate) fn round_rational(
        &mut self,
        r: &RationalTensor,
        how: Rounding,
    ) -> Option<SymTensor> {
        let func = self.func();
        let mut elems = Vec::with_capacity(r.over.elems.len());
        for (over, under) in r.elems() {
            let one = func.syms.int(1);
            if pliant_ops::prove::at_most(func, one, under) != Some(true) {
                return None;
            }
            elems.push(match how {
                Rounding::Down => func.syms.floordiv(over, under),
                Rounding::Up => func.syms.ceildiv(over, under),
                Rounding::Zero => FoldOp::Div.apply(func, over, under)?,
            });
        }
        Some(SymTensor { elems, ..r.over.clone() })
    }

    /// Adds, subtracts, multiplies or divides inputs 0 and 1; `None` if the result would be rounded
    /// twice.
    pub(crate) fn fold_rational(&mut self, fold: FoldOp) -> Option<Value> {
        if !self.is_rational(0) && !self.is_rational(1) {
            return None;
        }
        let (a, b) = (self.rational(0)?, self.rational(1)?);
        if a.dtype != b.dtype {
            return None;
        }
        let shape = broadcast_shape(&a.over.shape, &b.over.shape)?;
        let wide = |t: &SymTensor| t.broadcast_to(&shape);
        let (x, y) = ((wide(&a.over), wide(&a.under)), (wide(&b.over), wide(&b.under)));
        let func = self.func();
        let exact = (a.is_exact(func), b.is_exact(func));
        let (mut over, mut under) = (Vec::new(), Vec::new());
        for i in 0..x.0.elems.len() {
            let sides = ((x.0.elems[i], x.1.elems[i]), (y.0.elems[i], y.1.elems[i]));
            let (p, q) = combined(func, fold, sides, exact)?;
            let (p, q) = reduced(func, p, q);
            over.push(p);
            under.push(q);
        }
        let whole = |elems| SymTensor { shape: shape.clone(), elems, dtype: DType::Int64 };
        Some(Value::Rational(RationalTensor {
            over: whole(over),
            under: whole(under),
            dtype: a.dtype,
        }))
    }
}

/// How a quotient is rounded to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Down,
    Up,
    Zero,
}

/// Combines two quotients. `exact` tells which of them floats represent exactly.
fn combined(
    func: &mut Function,
    fold: FoldOp,
    ((a, under_a), (b, under_b)): ((Sym, Sym), (Sym, Sym)),
    exact: (bool, bool),
) -> Option<(Sym, Sym)> {
    // A value that was rounded once may still be scaled by a power of two.
    let scales = |func: &Function, over: Sym| power_of_two(func, over).is_some();
    let allowed = match (exact, fold) {
        ((true, true), FoldOp::Add | FoldOp::Sub | FoldOp::Div) => true,
        // The product of two sizes may exceed the exact range of floats.
        ((true, true), FoldOp::Mul) => {
            func.syms.as_int(a).is_some() || func.syms.as_int(b).is_some()
        }
        ((false, true), FoldOp::Mul | FoldOp::Div) => scales(func, b),
        ((true, false), FoldOp::Mul) => scales(func, a),
        _ => false,
    };
    if !allowed {
        return None;
    }
    let syms = &mut func.syms;
    Some(match fold {
        FoldOp::Mul => (syms.mul(a, b), syms.mul(under_a, under_b)),
        FoldOp::Div => {
            // The denominator must stay positive.
            let positive = syms.as_int(b).is_none_or(|b| b > 0);
            positive.then_some(())?;
            (syms.mul(a, under_b), syms.mul(under_a, b))
        }
        _ => {
            let (left, right) = (syms.mul(a, under_b), syms.mul(b, under_a));
            let over =
                if fold == FoldOp::Add { syms.add(left, right) } else { syms.sub(left, right) };
            (over, syms.mul(under_a, under_b))
        }
    })
}

/// The number of leading inputs of a data movement operator that are moved; `None` for other
/// operators.
pub(crate) fn moved_inputs(operator: &str, count: usize) -> Option<usize> {
    match operator {
        "Concat" => Some(count),
        "Gather" | "Reshape" | "Slice" | "Squeeze" | "Transpose" | "Unsqueeze" => Some(1),
        _ => None,
    }
}

/// The inputs of a data movement operator with numerators, and those with denominators, in place of
/// quotients. `None` if there are no quotients, or if they are mixed with other values.
pub(crate) fn parts(
    importer: &mut Importer<'_>,
    operator: &str,
    inputs: &[Value],
) -> Option<([Vec<Value>; 2], DType)> {
    let moved = moved_inputs(operator, inputs.len())?.min(inputs.len());
    let dtype = inputs[..moved].iter().find_map(|v| match v {
        Value::Rational(r) => Some(r.dtype),
        _ => None,
    })?;
    let limit = importer.limits.shape_elements;
    let mut sides = [inputs.to_vec(), inputs.to_vec()];
    for (i, value) in inputs[..moved].iter().enumerate() {
        let ratios = match value {
            Value::Rational(r) => r.clone(),
            Value::Const(t) => RationalTensor::of_constant(t, importer.builder.func_mut(), limit)?,
            _ => return None,
        };
        if ratios.dtype != dtype {
            return None;
        }
        sides[0][i] = Value::Symbolic(ratios.over);
        sides[1][i] = Value::Symbolic(ratios.under);
    }
    Some((sides, dtype))
}

/// Combines the results for numerators and denominators to quotients.
pub(crate) fn join_quotients(
    over: Vec<Value>,
    under: Vec<Value>,
    dtype: DType,
) -> Option<Vec<Value>> {
    let pairs = over.into_iter().zip(under);
    let join = |(over, under)| match (over, under) {
        (Value::Symbolic(over), Value::Symbolic(under)) if over.shape == under.shape => {
            Some(Value::Rational(RationalTensor { over, under, dtype }))
        }
        _ => None,
    };
    pairs.map(join).collect()
}
