//! Constant folding of shape computations, whose elements are symbolic terms.

use pliant_ir::DType;
use pliant_ir::relax::Function;
use pliant_sym::Sym;

use crate::imported_value::{SymTensor, broadcast_shape};

/// A binary operator on shape computations that can be folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldOp {
    Add,
    Sub,
    Mul,
    /// Integer division, rounded towards zero as in ONNX.
    Div,
    /// The remainder, with the sign of the divisor.
    Mod,
    Min,
    Max,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

impl FoldOp {
    /// Applies the operator to an element of each operand. `None` if the result cannot be expressed
    /// symbolically.
    pub(crate) fn apply(self, func: &mut Function, a: Sym, b: Sym) -> Option<Sym> {
        if let FoldOp::Div | FoldOp::Mod = self {
            return self.divide(func, a, b);
        }
        if let Some(known) = self.decide_comparison(func, a, b) {
            return Some(func.syms.int(i64::from(known)));
        }
        let syms = &mut func.syms;
        Some(match self {
            FoldOp::Add => syms.add(a, b),
            FoldOp::Sub => syms.sub(a, b),
            FoldOp::Mul => syms.mul(a, b),
            FoldOp::Min => syms.min(a, b),
            FoldOp::Max => syms.max(a, b),
            FoldOp::Equal => syms.eq(a, b),
            FoldOp::Less => syms.lt(a, b),
            FoldOp::LessOrEqual => syms.le(a, b),
            FoldOp::Greater => syms.gt(a, b),
            FoldOp::GreaterOrEqual => syms.ge(a, b),
            FoldOp::And => syms.and(a, b),
            FoldOp::Or => syms.or(a, b),
            FoldOp::Div | FoldOp::Mod => return None,
        })
    }

    /// The result of a comparison that is the same for all sizes; `None` if it depends on sizes. For example, a size never equals
    /// -1.
    fn decide_comparison(self, func: &mut Function, a: Sym, b: Sym) -> Option<bool> {
        let mut at_most = |x: Sym, more: i64, y: Sym| {
            let more = func.syms.int(more);
            let x = func.syms.add(x, more);
            pliant_ops::size_proofs::at_most(func, x, y) == Some(true)
        };
        // The two cases in which the comparison is decided: it always holds, or it never holds.
        let (holds, fails) = match self {
            FoldOp::Equal => (a == b, at_most(a, 1, b) || at_most(b, 1, a)),
            FoldOp::Less => (at_most(a, 1, b), at_most(b, 0, a)),
            FoldOp::LessOrEqual => (at_most(a, 0, b), at_most(b, 1, a)),
            FoldOp::Greater => (at_most(b, 1, a), at_most(a, 0, b)),
            FoldOp::GreaterOrEqual => (at_most(b, 0, a), at_most(a, 1, b)),
            _ => return None,
        };
        match (holds, fails) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Folds an integer division or its remainder. `None` unless the divisor is provably positive.
    fn divide(self, func: &mut Function, a: Sym, b: Sym) -> Option<Sym> {
        let one = func.syms.int(1);
        let positive = pliant_ops::size_proofs::at_most(func, one, b) == Some(true);
        if self == FoldOp::Mod {
            return positive.then(|| func.syms.floormod(a, b));
        }
        if let (Some(x), Some(y)) = (func.syms.as_int(a), func.syms.as_int(b)) {
            return x.checked_div(y).map(|q| func.syms.int(q));
        }
        if !positive {
            return None;
        }
        if let Some(exact) = func.syms.exact_quotient(a, b) {
            return Some(exact);
        }
        let zero = func.syms.int(0);
        let down = func.syms.floordiv(a, b);
        if pliant_ops::size_proofs::at_most(func, zero, a) == Some(true) {
            return Some(down);
        }
        let up = func.syms.ceildiv(a, b);
        let below = func.syms.lt(a, zero);
        Some(func.syms.select(below, up, down))
    }

    /// Whether the elements of the operator's result are bools.
    fn is_predicate(self) -> bool {
        !matches!(
            self,
            FoldOp::Add
                | FoldOp::Sub
                | FoldOp::Mul
                | FoldOp::Div
                | FoldOp::Mod
                | FoldOp::Min
                | FoldOp::Max
        )
    }
}

/// Applies the operator elementwise to two shape computations, with broadcasting. `None` if an element cannot be expressed
/// symbolically.
pub(crate) fn binary(
    func: &mut Function,
    op: FoldOp,
    a: &SymTensor,
    b: &SymTensor,
) -> Option<SymTensor> {
    let shape = broadcast_shape(&a.shape, &b.shape)?;
    let (x, y) = (a.broadcast_to(&shape), b.broadcast_to(&shape));
    let pairs = x.elems.iter().zip(&y.elems);
    let elems: Option<Vec<Sym>> = pairs.map(|(&p, &q)| op.apply(func, p, q)).collect();
    let dtype = if op.is_predicate() { DType::Bool } else { a.dtype };
    Some(SymTensor { shape, elems: elems?, dtype })
}

/// Applies a function to each element of a shape computation.
pub(crate) fn map(t: &SymTensor, dtype: DType, mut f: impl FnMut(Sym) -> Sym) -> SymTensor {
    let elems = t.elems.iter().map(|&e| f(e)).collect();
    SymTensor { shape: t.shape.clone(), elems, dtype }
}

/// Selects elements of `a` where the condition is true, and elements of `b` elsewhere, with
/// broadcasting.
pub(crate) fn select(
    func: &mut Function,
    c: &SymTensor,
    a: &SymTensor,
    b: &SymTensor,
) -> Option<SymTensor> {
    let shape = broadcast_shape(&broadcast_shape(&c.shape, &a.shape)?, &b.shape)?;
    let [c, x, y] = [c, a, b].map(|t| t.broadcast_to(&shape));
    let elems =
        (0..x.elems.len()).map(|i| func.syms.select(c.elems[i], x.elems[i], y.elems[i])).collect();
    Some(SymTensor { shape, elems, dtype: a.dtype })
}
