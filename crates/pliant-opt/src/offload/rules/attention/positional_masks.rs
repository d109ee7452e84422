//! Recognizes causal and sliding-window masks from index arithmetic. With such a mask, a query attends only to keys up to (or
//! from) its own position plus an offset.

use pliant_ir::relax::{Callee, Expr, ExprData, TypeData};
use pliant_ir::{AttrValue, DType, Op, Sym};
use pliant_pass::pattern::RewriteCx;
use pliant_sym::{Analyzer, Facts};
use pliant_tensor::Tensor;

use super::CAST;
use crate::common::matmul_and_conv_operands::{ADD, defining_attrs, defining_operands};
use crate::common::operators_after_lowering::RESHAPE;

const BROADCAST: Op = Op::new("relax.broadcast_to");
const ARANGE: Op = Op::new("relax.arange");
const FULL: Op = Op::new("relax.full");
const ONES: Op = Op::new("relax.ones");
const SHAPE_TO_TENSOR: Op = Op::new("relax.shape_to_tensor");
const SUBTRACT: Op = Op::new("relax.subtract");
const TRIL: Op = Op::new("relax.tril");
const TRIU: Op = Op::new("relax.triu");
const RESHAPES: [Op; 3] = [RESHAPE, Op::new("relax.expand_dims"), Op::new("relax.squeeze")];

/// Maximum depth of the chain of operands that is searched for index arithmetic.
const MAX_DEPTH: u32 = 12;

/// The keys `j` that are visible to query `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyBound {
    /// All keys are visible.
    All,
    /// The keys with `j <= i + offset` are visible.
    UpTo(Sym),
    /// The keys with `j >= i + offset` are visible.
    From(Sym),
}

impl KeyBound {
    /// Returns the opposite bound: it hides the keys that this bound makes visible, and makes the hidden keys visible.
    fn complement(self, cx: &mut RewriteCx<'_>) -> Option<KeyBound> {
        let syms = &mut cx.func.syms;
        let one = syms.int(1);
        match self {
            KeyBound::All => None,
            KeyBound::UpTo(r) => Some(KeyBound::From(syms.add(r, one))),
            KeyBound::From(r) => Some(KeyBound::UpTo(syms.sub(r, one))),
        }
    }
}

/// A boolean condition that states which keys are visible, or which are hidden.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub tensor: Expr,
    /// Whether keys are hidden where the condition is true; otherwise they are visible there.
    pub hides: bool,
}

/// Returns the bound on key positions that a condition expresses for scores with the dims `dims`; `None` if the condition does
/// not depend only on positions.
pub(super) fn condition_bound(
    cx: &mut RewriteCx<'_>,
    c: Condition,
    dims: &[Sym],
) -> Option<KeyBound> {
    let tensor = look_through_broadcasts(cx, c.tensor);
    let bound = match comparison_bound(cx, tensor, dims) {
        Some(bound) => bound,
        None => match match_triangle(cx, uncast(cx, tensor), dims) {
            // Casts keep the number 1.
            Some((bound, 1.0)) => bound,
            _ => return constant_bound(cx, c.tensor, dims, |t| visible_keys(t, c.hides)),
        },
    };
    if c.hides { bound.complement(cx) } else { Some(bound) }
}

/// Returns the bound on key positions that an additive mask expresses. Such a mask is minus infinity on one side of a diagonal
/// and zero on the other side. `None` for other tensors.
pub(super) fn additive_bound(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Option<KeyBound> {
    let tensor = look_through_broadcasts(cx, e);
    match match_triangle(cx, tensor, dims) {
        Some((bound, f64::NEG_INFINITY)) => bound.complement(cx),
        _ => constant_bound(cx, e, dims, |t| {
            let visible = |&x: &f64| match x {
                0.0 => Some(true),
                f64::NEG_INFINITY => Some(false),
                _ => None,
            };
            t.to_f64_vec().ok()?.iter().map(visible).collect()
        }),
    }
}

/// Follows broadcasts, and reshapes that only change the number of leading dims of size 1, to the original tensor.
fn look_through_broadcasts(cx: &RewriteCx<'_>, e: Expr) -> Expr {
    let mut e = e;
    for _ in 0..MAX_DEPTH {
        let ExprData::Call { callee: Callee::Op(op), args, .. } = *cx.func.expr(cx.value(e)) else {
            break;
        };
        let Some(&from) = cx.func.list(args).first() else { break };
        let same = || Some(without_leading_ones(cx, from)? == without_leading_ones(cx, e)?);
        if op == BROADCAST || RESHAPES.contains(&op) && same() == Some(true) {
            e = from;
        } else {
            break;
        }
    }
    e
}

/// Returns the dims of a tensor without leading dims of size 1.
fn without_leading_ones<'a>(cx: &'a RewriteCx<'_>, e: Expr) -> Option<&'a [Sym]> {
    let dims = cx.func.ty(e).dims()?;
    let ones = dims.iter().take_while(|&&d| cx.func.syms.as_int(d) == Some(1)).count();
    Some(&dims[ones..])
}

// ---- comparisons of integers ----

/// The operator of a comparison of two integers. The comparison `a op b` is analyzed as `a - b op 0`.
#[derive(Clone, Copy)]
enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

const COMPARISONS: [(Op, Comparison); 4] = [
    (Op::new("relax.less"), Comparison::Less),
    (Op::new("relax.less_equal"), Comparison::LessEqual),
    (Op::new("relax.greater"), Comparison::Greater),
    (Op::new("relax.greater_equal"), Comparison::GreaterEqual),
];

/// Maximum magnitude of the integers that are analyzed. Within this limit, 32-bit arithmetic on positions does not wrap around
/// for any size that kernels support.
const MAX_INTEGER: i64 = 1 << 30;
/// Maximum size of a dim that kernels support.
const MAX_SIZE: i64 = 1 << 28;
/// Maximum step of a ramp, which is the difference between integers at adjacent positions.
const MAX_STEP: i64 = 4;

/// An integer tensor whose elements increase by a constant step along each of the last two axes.
#[derive(Clone, Copy)]
struct Ramp {
    /// The (step, size) of the last axis and of the axis before it, in this order. `None` if the integers do not change along the
    /// axis.
    axes: [Option<(i64, Sym)>; 2],
    /// The element at index 0 of both axes.
    first: Sym,
    /// Whether the integers were computed as 32-bit integers, which may wrap around if a symbol in them exceeds the supported
    /// sizes.
    is_32_bit: bool,
}

impl Ramp {
    /// The elementwise difference of two ramps.
    fn minus(self, cx: &mut RewriteCx<'_>, other: Ramp) -> Option<Ramp> {
        let zero = cx.func.syms.int(0);
        let negated_axes = other.axes.map(|axis| axis.map(|(by, n)| (-by, n)));
        let first = cx.func.syms.sub(zero, other.first);
        self.plus(cx, Ramp { axes: negated_axes, first, ..other })
    }

    /// The elementwise sum of two ramps. `None` if their sizes are not provably equal, because one of them may be 1 at run time.
    fn plus(self, cx: &mut RewriteCx<'_>, other: Ramp) -> Option<Ramp> {
        let mut axes = self.axes;
        for (a, b) in axes.iter_mut().zip(other.axes) {
            *a = match (*a, b) {
                (Some((x, n)), Some((y, m))) if n == m => Some((x.checked_add(y)?, n)),
                (Some(_), Some(_)) => return None,
                (a, b) => a.or(b),
            };
        }
        let is_32_bit = self.is_32_bit || other.is_32_bit;
        Some(Ramp { axes, first: cx.func.syms.add(self.first, other.first), is_32_bit })
    }

    /// Returns the ramp if no element can wrap around: all elements are in range if each symbol is a size of at most
    /// [`MAX_SIZE`]. Returns `None` otherwise.
    fn without_wraparound(self, cx: &mut RewriteCx<'_>) -> Option<Ramp> {
        let syms = &mut cx.func.syms;
        let mut sizes = Facts::new();
        for var in syms.free_vars(self.first) {
            sizes.assume_range(var, Some(0), Some(MAX_SIZE));
        }
        let bound = Analyzer::new(syms, &sizes).const_int_bound(self.first);
        let is_in_range = bound.lo()? >= -MAX_INTEGER && bound.hi()? <= MAX_INTEGER;
        let has_small_steps = self.axes.iter().flatten().all(|(by, _)| by.abs() <= MAX_STEP);
        (is_in_range && has_small_steps).then_some(self)
    }
}

/// Returns the bound on key positions that a comparison of two integer tensors expresses; `None` if it expresses none.
fn comparison_bound(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Option<KeyBound> {
    let find =
        |&(op, comparison): &(Op, Comparison)| Some((defining_operands(cx, e, op)?, comparison));
    let (args, comparison) = COMPARISONS.iter().find_map(find)?;
    let (a, b) = (checked_ramp(cx, args[0], MAX_DEPTH)?, checked_ramp(cx, args[1], MAX_DEPTH)?);
    let d = a.minus(cx, b)?.without_wraparound(cx)?;
    let [.., rows, keys] = *dims else { return None };
    let syms = &cx.func.syms;
    let sizes = [syms.free_vars(rows), syms.free_vars(keys)].concat();
    if d.is_32_bit && !syms.free_vars(d.first).iter().all(|var| sizes.contains(var)) {
        return None;
    }
    let by = |cx: &RewriteCx<'_>, axis: Option<(i64, Sym)>, size: Sym| match axis {
        Some((by, n)) => (n == size).then_some(Some(by)),
        // Without a step, only an axis of size 1 fits, because it has a single position.
        None => (cx.func.syms.as_int(size) == Some(1)).then_some(None),
    };
    let upwards = match (by(cx, d.axes[1], rows)?, by(cx, d.axes[0], keys)?) {
        (Some(1), Some(-1) | None) | (None, Some(-1)) => true,
        (Some(-1), Some(1) | None) | (None, Some(1)) => false,
        _ => return None,
    };
    // From here on, `i - j + r` is compared with 0.
    let (zero, one) = (cx.func.syms.int(0), cx.func.syms.int(1));
    let (r, comparison) = match (upwards, comparison) {
        (true, comparison) => (d.first, comparison),
        (false, comparison) => (
            cx.func.syms.sub(zero, d.first),
            match comparison {
                Comparison::Less => Comparison::Greater,
                Comparison::LessEqual => Comparison::GreaterEqual,
                Comparison::Greater => Comparison::Less,
                Comparison::GreaterEqual => Comparison::LessEqual,
            },
        ),
    };
    Some(match comparison {
        Comparison::GreaterEqual => KeyBound::UpTo(r),
        Comparison::Greater => KeyBound::UpTo(cx.func.syms.sub(r, one)),
        Comparison::LessEqual => KeyBound::From(r),
        Comparison::Less => KeyBound::From(cx.func.syms.add(r, one)),
    })
}

/// Recognizes an integer tensor as a ramp whose arithmetic cannot wrap around; `None` for other tensors.
fn checked_ramp(cx: &mut RewriteCx<'_>, e: Expr, depth: u32) -> Option<Ramp> {
    let is_32_bit = match cx.func.ty(e).dtype()? {
        DType::Int64 => false,
        DType::Int32 => true,
        _ => return None,
    };
    let ramp = unchecked_ramp(cx, e, depth.checked_sub(1)?)?;
    Ramp { is_32_bit: is_32_bit || ramp.is_32_bit, ..ramp }.without_wraparound(cx)
}

/// Recognizes an integer tensor as a ramp without checking whether its arithmetic may wrap around; `None` for other tensors.
/// `depth` limits the recursion into operands.
fn unchecked_ramp(cx: &mut RewriteCx<'_>, e: Expr, depth: u32) -> Option<Ramp> {
    let none = [None, None];
    let (op, args) = match *cx.func.expr(cx.value(e)) {
        ExprData::Constant(c) => {
            let (tensor, dims) = (cx.func.const_tensor(c).clone(), cx.func.ty(e).dims()?.to_vec());
            return constant_ramp(cx, &tensor, &dims);
        }
        ExprData::Call { callee: Callee::Op(op), args, .. } => (op, cx.func.list(args).to_vec()),
        _ => return None,
    };
    match op {
        ARANGE => {
            let number = |at: usize| match cx.func.ty(*args.get(at)?) {
                TypeData::Prim { value, .. } => *value,
                _ => None,
            };
            let by = match args.len() {
                3 => cx.func.syms.as_int(number(2)?)?,
                2 => 1,
                _ => return None,
            };
            let first = number(0)?;
            let &[count] = cx.func.ty(e).dims()? else { return None };
            Some(Ramp { axes: [Some((by, count)), None], first, is_32_bit: false })
        }
        SHAPE_TO_TENSOR => match cx.func.ty(args[0]) {
            TypeData::Shape { dims: Some(dims), .. } if dims.len() == 1 => {
                Some(Ramp { axes: none, first: dims[0], is_32_bit: false })
            }
            _ => None,
        },
        CAST => checked_ramp(cx, args[0], depth),
        BROADCAST => checked_ramp(cx, args[0], depth),
        ADD | SUBTRACT => {
            let (a, b) = (checked_ramp(cx, args[0], depth)?, checked_ramp(cx, args[1], depth)?);
            if op == ADD { a.plus(cx, b) } else { a.minus(cx, b) }
        }
        _ if RESHAPES.contains(&op) => {
            let inner_ramp = checked_ramp(cx, args[0], depth)?;
            let (from, to) = (only_wide_axis(cx, args[0])?, only_wide_axis(cx, e)?);
            let axes = match (from, to) {
                (None, None) => none,
                (Some((at, n)), Some((to, m))) if n == m => {
                    let mut axes = none;
                    *axes.get_mut(to)? = *inner_ramp.axes.get(at)?;
                    axes
                }
                _ => return None,
            };
            Some(Ramp { axes, ..inner_ramp })
        }
        _ => None,
    }
}

/// Returns (index counted from the last axis, size) of the only axis along which a tensor may have more than one element.
/// `Some(None)` if there is no such axis, `None` if there are several.
#[expect(
    clippy::option_option,
    reason = "the result distinguishes three cases: several axes, no axis, and one axis"
)]
fn only_wide_axis(cx: &RewriteCx<'_>, e: Expr) -> Option<Option<(usize, Sym)>> {
    let dims = cx.func.ty(e).dims()?;
    let mut wide_axes =
        dims.iter().rev().enumerate().filter(|(_, d)| cx.func.syms.as_int(**d) != Some(1));
    let first = wide_axes.next().map(|(at, &n)| (at, n));
    wide_axes.next().is_none().then_some(first)
}

/// Recognizes a constant that increases by a constant step along one axis as a ramp; `None` for other constants.
fn constant_ramp(cx: &mut RewriteCx<'_>, t: &Tensor, dims: &[Sym]) -> Option<Ramp> {
    let all = match t.dtype() {
        DType::Int64 => t.to_vec::<i64>().ok()?,
        _ => t.to_vec::<i32>().ok()?.into_iter().map(i64::from).collect(),
    };
    let mut wide_axes = t.shape().iter().rev().enumerate().filter(|(_, n)| **n != 1);
    let axis = wide_axes.next().map(|(at, _)| at);
    if wide_axes.next().is_some() {
        return None;
    }
    let mut axes = [None, None];
    if let Some(at) = axis {
        let by = all.get(1)?.checked_sub(all[0])?;
        let even = all.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(by));
        let size = *dims.iter().rev().nth(at).filter(|_| even)?;
        *axes.get_mut(at)? = Some((by, size));
    }
    Some(Ramp { axes, first: cx.func.syms.int(*all.first()?), is_32_bit: false })
}

// ---- triangles and constants ----

/// Follows casts to the original value.
fn uncast(cx: &RewriteCx<'_>, e: Expr) -> Expr {
    let from = std::iter::successors(Some(e), |&e| Some(defining_operands(cx, e, CAST)?[0]));
    from.take(MAX_DEPTH as usize).last().unwrap_or(e)
}

/// Matches an `R.tril` or `R.triu` of a tensor whose elements are all the same number. Returns the nonzero triangle as a bound on
/// key positions, and the number.
fn match_triangle(cx: &mut RewriteCx<'_>, e: Expr, dims: &[Sym]) -> Option<(KeyBound, f64)> {
    let (args, lower) = match defining_operands(cx, e, TRIL) {
        Some(args) => (args, true),
        None => (defining_operands(cx, e, TRIU)?, false),
    };
    let k = defining_attrs(cx, e)?.get("k").and_then(AttrValue::as_int)?;
    if cx.func.ty(e).dims()?.iter().rev().take(2).ne(dims.iter().rev().take(2)) {
        return None;
    }
    let fill = fill_value(cx, args[0])?;
    let k = cx.func.syms.int(k);
    Some((if lower { KeyBound::UpTo(k) } else { KeyBound::From(k) }, fill))
}

/// Returns the number that all elements of a tensor equal; `None` if it is unknown or they differ.
fn fill_value(cx: &RewriteCx<'_>, e: Expr) -> Option<f64> {
    if let Some(args) = defining_operands(cx, e, BROADCAST) {
        return constant_fill_value(cx, args[0]);
    }
    match defining_operands(cx, e, FULL) {
        Some(args) => constant_fill_value(cx, args[1]),
        None => defining_operands(cx, e, ONES).map(|_| 1.0).or_else(|| constant_fill_value(cx, e)),
    }
}

/// Returns the number that all elements of a constant equal; `None` if they differ.
fn constant_fill_value(cx: &RewriteCx<'_>, e: Expr) -> Option<f64> {
    let ExprData::Constant(c) = cx.func.expr(cx.value(e)) else { return None };
    let tensor = cx.func.const_tensor(*c);
    let all = tensor.to_f64_vec().ok()?;
    let first = *all.first()?;
    all.iter().all(|&x| x == first).then_some(first)
}

/// Returns, for each element of a boolean constant, whether the key is visible. `hides` states whether true means hidden.
fn visible_keys(t: &Tensor, hides: bool) -> Option<Vec<bool>> {
    if t.dtype() != DType::Bool {
        return None;
    }
    Some(t.to_vec::<bool>().ok()?.into_iter().map(|x| x != hides).collect())
}

/// Whether a value is a constant that is false everywhere.
pub(super) fn is_constant_false(cx: &RewriteCx<'_>, e: Expr) -> bool {
    let ExprData::Constant(c) = cx.func.expr(cx.value(e)) else { return false };
    visible_keys(cx.func.const_tensor(*c), true).is_some_and(|all| all.into_iter().all(|x| x))
}

/// Returns the bound on key positions that a constant with an element for each query and key expresses; `None` if it expresses
/// none. `visible` returns, for each element, whether the key is visible.
fn constant_bound(
    cx: &mut RewriteCx<'_>,
    e: Expr,
    dims: &[Sym],
    visible: impl FnOnce(&Tensor) -> Option<Vec<bool>>,
) -> Option<KeyBound> {
    let ExprData::Constant(c) = *cx.func.expr(cx.value(e)) else { return None };
    let tensor = cx.func.const_tensor(c);
    let size_of = |sym: Option<&Sym>| cx.func.syms.as_int(*sym?);
    let (rows, keys) = (size_of(dims.iter().rev().nth(1))?, size_of(dims.last())?);
    let shape = tensor.shape();
    let [leading @ .., mask_rows, mask_keys] = shape else { return None };
    if leading.iter().any(|&d| d != 1) || (*mask_rows, *mask_keys) != (rows, keys) || keys == 0 {
        return None;
    }
    let visible = visible(tensor)?;
    if visible.iter().all(|&x| x) {
        return Some(KeyBound::All);
    }
    let count = |row: &[bool]| row.iter().filter(|&&x| x).count() as i64;
    let width = usize::try_from(keys).ok()?;
    let each: Vec<(i64, &[bool])> = (0i64..).zip(visible.chunks(width)).collect();
    let (i, row) = *each.iter().find(|(_, row)| (1..keys).contains(&count(row)))?;
    let r = count(row) - 1 - i;
    let matches_bound = |i: i64, row: &[bool]| (0i64..).zip(row).all(|(j, &x)| x == (j <= i + r));
    each.iter().all(|&(i, row)| matches_bound(i, row)).then(|| KeyBound::UpTo(cx.func.syms.int(r)))
}
