//! Left operands that are dequantized from 8-bit integers.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, DType};
use pliant_tensor::Tensor;

use super::{CAST, DEQUANTIZE, MULTIPLY, SUBTRACT};
use crate::offload::dequantized::{Finder, MOST_ZERO, fits_rows, is_one, numbers};

/// The parts that a left operand is dequantized from.
pub(super) struct Left {
    /// The integers, of int8 or uint8.
    pub x: Expr,
    /// The zero point, unless it is 0.
    pub zero: Option<Zero>,
    /// The scale, of float32.
    pub scale: Expr,
    /// Whether a scale or zero point of rank 1 holds one number for each row.
    pub vectors: bool,
    /// The maximum magnitude of an integer minus its zero point.
    pub most: i64,
}

/// A zero point.
pub(super) enum Zero {
    /// A constant of int32.
    Constant(Tensor),
    /// Non-constant 8-bit integers.
    Given(Expr),
}

/// The minimum and the maximum of an 8-bit type.
fn range(dtype: Option<DType>) -> Option<(i64, i64)> {
    match dtype? {
        DType::Int8 => Some((-128, 127)),
        DType::UInt8 => Some((0, 255)),
        _ => None,
    }
}

impl Left {
    /// The parts that `e` is dequantized from; `None` if it is not dequantized in a supported way.
    pub fn of(finder: &Finder<'_>, e: Expr) -> Option<Left> {
        let func = finder.func;
        if func.ty(e).dtype() != Some(DType::Float32) {
            return None;
        }
        let (x, zero, scale, vectors) = called(finder, e).or_else(|| written(finder, e))?;
        let (low, high) = range(func.ty(x).dtype())?;
        let fits = |p: Expr| match func.ty(p).dims()? {
            [along] if !is_one(func, p) => {
                (vectors && func.ty(x).dims()?.first() == Some(along)).then_some(())
            }
            _ => fits_rows(func, p, x).then_some(()),
        };
        fits(scale)?;
        let ((least, largest), zero) = match zero {
            None => ((0, 0), None),
            Some(zero) => {
                fits(zero)?;
                zero_point(finder, zero)?
            }
        };
        let sound = func.ty(scale).dtype() == Some(DType::Float32)
            && func.ty(x).dims() == func.ty(e).dims()
            && finder.constant(scale).is_none_or(stays_finite);
        let most = (high - least).max(largest - low);
        sound.then_some(Left { x, zero, scale, vectors, most })
    }
}

/// Integers, zero point, scale, and whether vectors hold one number for each row.
type Parts = (Expr, Option<Expr>, Expr, bool);

/// The operands of `R.dequantize`.
fn called(finder: &Finder<'_>, e: Expr) -> Option<Parts> {
    let (args, attrs) = finder.call(e, DEQUANTIZE)?;
    let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
    let rank = finder.func.ty(args[0]).dims()?.len();
    Some((args[0], Some(args[2]), args[1], rank == 2 && matches!(axis, 0 | -2)))
}

/// The parts of a dequantization that is written as a cast, minus a zero point, times a scale.
fn written(finder: &Finder<'_>, e: Expr) -> Option<Parts> {
    let func = finder.func;
    let wide = |e: Expr, dtype: DType| func.ty(e).dtype() == Some(dtype);
    let (args, _) = finder.call(e, MULTIPLY)?;
    let sides = [(args[0], args[1]), (args[1], args[0])];
    sides.into_iter().find_map(|(coded, scale)| {
        let mut x = finder.call(coded, CAST).filter(|_| wide(coded, DType::Float32))?.0[0];
        let mut zero = None;
        if let Some((args, _)) = finder.call(x, SUBTRACT).filter(|_| wide(x, DType::Int32)) {
            (x, zero) = (args[0], Some(args[1]));
        }
        if wide(x, DType::Int32) {
            x = finder.call(x, CAST)?.0[0];
        } else if zero.is_some() {
            return None;
        }
        Some((x, zero, scale, false))
    })
}

/// The minimum and the maximum of a zero point, and the zero point, which is `None` if it is 0.
fn zero_point(finder: &Finder<'_>, zero: Expr) -> Option<((i64, i64), Option<Zero>)> {
    let func = finder.func;
    if let Some(tensor) = finder.constant(zero) {
        let all = numbers(tensor)?;
        let whole = all.iter().all(|x| x.fract() == 0.0 && x.abs() <= MOST_ZERO);
        let whole =
            if whole { all.iter().map(|&x| x as i32).collect::<Vec<_>>() } else { return None };
        let least = i64::from(*whole.iter().min()?);
        let largest = i64::from(*whole.iter().max()?);
        if (least, largest) == (0, 0) {
            return Some(((0, 0), None));
        }
        let tensor = Tensor::from_slice(tensor.shape(), &whole).ok()?;
        return Some(((least, largest), Some(Zero::Constant(tensor))));
    }
    let given = |e: Expr| range(func.ty(e).dtype()).map(|range| (range, Some(Zero::Given(e))));
    // A cast to a wider type keeps the value.
    given(zero).or_else(|| {
        let wide = func.ty(zero).dtype() == Some(DType::Int32);
        finder.call(zero, CAST).filter(|_| wide).and_then(|(args, _)| given(args[0]))
    })
}

/// Whether 32-bit sums times these scales are in the range of float32.
fn stays_finite(t: &Tensor) -> bool {
    let most = f64::from(f32::MAX) / f64::from(1u32 << 31);
    numbers(t).is_some_and(|all| all.iter().all(|x| x.abs() <= most))
}
