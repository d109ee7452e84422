//! Matchers for dequantized operands: matmuls by dequantized constants, these constants as matrices, and per-tensor or per-row
//! parameters.

mod matrix;

use pliant_ir::relax::{Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::pattern::Defs;
use pliant_tensor::{Tensor, TensorError};

use crate::common::products::{MatrixProduct, PERMUTE_DIMS, call_operands, permute_axes};
pub(crate) use matrix::Matrix;

/// Maximum magnitude of zero points. Up to it, whole zero points are exact in float32, and so are their differences from 8-bit
/// integers.
pub(crate) const MOST_ZERO: f64 = (1 << 16) as f64;

const CAST: Op = Op::new("relax.astype");
const SUBTRACT: Op = Op::new("relax.subtract");
const MULTIPLY: Op = Op::new("relax.multiply");
const DEQUANTIZE: Op = Op::new("relax.dequantize");
const REPEAT: Op = Op::new("relax.repeat");
const SLICE: Op = Op::new("relax.strided_slice");
/// Operators that keep the order of the elements.
pub(crate) const RESHAPES: [Op; 3] =
    [Op::new("relax.reshape"), Op::new("relax.expand_dims"), Op::new("relax.squeeze")];

/// A matmul of a float32 operand by a dequantized constant.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub by: MatrixProduct,
    pub weights: Weights,
}

/// The parts of a dequantized matrix.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// The integers, of rank 2.
    pub integers: Tensor,
    /// The zero points, which are subtracted one after the other.
    pub zeros: Vec<Spread>,
    /// The scale.
    pub scale: Spread,
    /// Whether the right operand is the transpose of the dequantized constant.
    pub transposed: bool,
}

/// Scales or zero points that are repeated or broadcast over a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    /// The numbers, in row-major order.
    pub numbers: Vec<f64>,
    /// The number of rows and columns of `numbers`.
    pub size: [usize; 2],
    /// How often each number is repeated along rows and columns. Along a dim of size 1, the number is broadcast instead.
    pub times: [usize; 2],
}

impl Spread {
    /// The number for an element of the matrix.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        let place = |i: usize, k: usize| if self.size[k] == 1 { 0 } else { i / self.times[k] };
        self.numbers[place(row, 0) * self.size[1] + place(column, 1)]
    }

    /// Whether each element of a matrix of this size has a number. The last numbers may be repeated less often than the others.
    fn covers(&self, size: [usize; 2]) -> bool {
        let reach = |k: usize| self.size[k].saturating_mul(self.times[k]);
        (0..2).all(|k| self.size[k] == 1 || reach(k) >= size[k])
    }
}

/// Looks up the values of operands at the position of a product.
pub(crate) struct Finder<'a> {
    pub func: &'a Function,
    pub defs: &'a Defs,
    /// The variable of the product. Values are looked through only up to the last effect before it.
    pub place: Var,
}

impl Finder<'_> {
    /// The operands and attributes of an operand's value, if it is a call of `op`.
    pub fn call(&self, e: Expr, op: Op) -> Option<(&[Expr], &Attrs)> {
        call_operands(self.func, self.defs.value_beside(self.func, e, self.place), op)
    }

    /// The constant that an operand is.
    pub fn constant(&self, e: Expr) -> Option<&Tensor> {
        match self.func.expr(self.defs.value_in_epoch(self.func, e, self.place)) {
            ExprData::Constant(c) => Some(self.func.const_tensor(*c)),
            _ => None,
        }
    }

    /// The sizes of a tensor; `None` if one is not a constant.
    pub fn sizes(&self, e: Expr) -> Option<Vec<usize>> {
        let dims = self.func.ty(e).dims()?.iter();
        let size = |&d| usize::try_from(self.func.syms.as_int(d)?).ok();
        dims.map(size).collect()
    }

    /// The matmul by a dequantized constant that a value is.
    pub fn product(&self, value: Expr) -> Option<Product> {
        let by = MatrixProduct::of(self.func, value)?;
        let float = |e: Expr| self.func.ty(e).dtype() == Some(DType::Float32);
        let (x, right) = (by.x, by.right);
        let &[rows, columns] = self.sizes(right)?.as_slice() else { return None };
        let (k, n) = if by.transposed { (columns, rows) } else { (rows, columns) };
        let summed = *self.func.ty(x).dims()?.last()?;
        let fits = float(x) && float(right) && float(value) && k > 0 && n > 0;
        if !fits || self.func.syms.as_int(summed) != Some(k as i64) {
            return None;
        }
        let turned = self
            .call(right, PERMUTE_DIMS)
            .filter(|(_, attrs)| permute_axes(attrs, 2).is_some_and(|order| order == [1, 0]));
        let mut weights = self.weights(turned.map_or(right, |(args, _)| args[0]))?;
        weights.transposed = turned.is_some() != by.transposed;
        Some(Product { by, weights })
    }

    /// The constant, the zero points and the scale that a matrix is dequantized from.
    fn weights(&self, e: Expr) -> Option<Weights> {
        let (integers, zeros, scale) = match self.call(e, DEQUANTIZE) {
            Some((args, attrs)) => {
                let (scale, zero) = (self.along(args[1], attrs)?, self.along(args[2], attrs)?);
                (self.constant(args[0])?.clone(), vec![zero], scale)
            }
            None => {
                let (args, _) = self.call(e, MULTIPLY)?;
                let sides = [(args[0], args[1]), (args[1], args[0])];
                sides.into_iter().find_map(|(coded, scale)| {
                    let (integers, zeros) = self.centred(coded, |e| self.spread(e))?;
                    Some((integers, zeros, self.spread(scale)?))
                })?
            }
        };
        let integers = match integers.is_aligned() {
            true => integers.to_contiguous().ok()?,
            false => integers.copy().ok()?,
        };
        let &[rows, columns] = integers.shape() else { return None };
        let size = [rows as usize, columns as usize];
        // If scales or zero points broadcast the integers, the matrix has another size.
        if self.sizes(e)? != size {
            return None;
        }
        let byte = matches!(integers.dtype(), DType::Int8 | DType::UInt8 | DType::Int32);
        let fits = byte && scale.covers(size) && zeros.iter().all(|z| z.covers(size));
        fits.then_some(Weights { integers, zeros, scale, transposed: false })
    }

    /// The scale or zero point of `R.dequantize`: a scalar, or a vector along the axis.
    fn along(&self, e: Expr, attrs: &Attrs) -> Option<Spread> {
        let mut spread = self.spread(e)?;
        let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
        // By default, a vector has one number for each column.
        if self.sizes(e)?.len() == 1 && matches!(axis, 0 | -2) {
            spread.size.swap(0, 1);
            spread.times.swap(0, 1);
        }
        Some(spread)
    }

    /// The constant integers that a float32 value is cast from, and the zero points that are subtracted from them. `spread`
    /// converts a zero point.
    pub fn centred<T>(
        &self,
        mut e: Expr,
        spread: impl Fn(Expr) -> Option<T>,
    ) -> Option<(Tensor, Vec<T>)> {
        let mut zeros = Vec::new();
        let mut cast = false;
        // Look through a few casts and subtractions, in any order.
        for _ in 0..8 {
            if let Some((args, _)) = self.call(e, SUBTRACT) {
                // Differences of 8-bit integers may wrap around.
                let wide = matches!(self.func.ty(e).dtype(), Some(DType::Int32 | DType::Float32));
                zeros.push(spread(args[1]).filter(|_| wide)?);
                e = args[0];
            } else if let Some((args, _)) = self.call(e, CAST) {
                let to = self.func.ty(e).dtype();
                cast |= to == Some(DType::Float32);
                e = args[0];
                let from = self.func.ty(e).dtype();
                let widened = matches!(to, Some(DType::Int32 | DType::Float32))
                    && matches!(from, Some(DType::Int8 | DType::UInt8 | DType::Int32));
                if !widened {
                    return None;
                }
            } else {
                break;
            }
        }
        let integers = self.constant(e).filter(|_| cast)?;
        Some((integers.clone(), zeros))
    }

    /// The constant numbers that a value repeats or broadcasts over a matrix.
    fn spread(&self, e: Expr) -> Option<Spread> {
        if let Some((args, attrs)) = self.call(e, REPEAT) {
            let times = usize::try_from(attrs.get("repeats")?.as_int()?).ok().filter(|&t| t > 0)?;
            let axis = attrs.get("axis")?.as_int()?;
            let mut spread = self.spread(args[0])?;
            let rank = self.sizes(e)?.len() as i64;
            let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
            if rank != 2 || axis > 1 || spread.times[axis] != 1 {
                return None;
            }
            spread.times[axis] = times;
            // A single number that is repeated to the end of the axis is broadcast.
            let whole = spread.size[axis] > 1 || times == self.sizes(e)?[axis];
            return whole.then_some(spread);
        }
        if let Some((args, _)) = self.call(e, SLICE) {
            let all = |e: Expr, value: i64| match self.func.expr(e) {
                ExprData::Shape(list) => {
                    list.iter().all(|&d| self.func.syms.as_int(d) == Some(value))
                }
                _ => false,
            };
            // A slice from the start keeps the positions of elements. The sizes show which axes are cut.
            let first = all(args[2], 0) && args.get(4).is_none_or(|&by| all(by, 1));
            let (sizes, whole) = (self.sizes(e)?, self.sizes(args[0])?);
            // An axis that is cut to one element would be broadcast, unlike the whole axis.
            let several = sizes.iter().zip(&whole).all(|(own, of)| own == of || *own > 1);
            return self.spread(args[0]).filter(|_| first && several && sizes.len() == 2);
        }
        if let Some((args, _)) = self.call(e, CAST) {
            // A cast to a wider type keeps the values, unlike one to another signedness of the same width.
            let from = self.func.ty(args[0]).dtype();
            let to = self.func.ty(e).dtype();
            let exact = matches!(from, Some(DType::Int8 | DType::UInt8))
                && matches!(to, Some(DType::Int32 | DType::Float32));
            return self.spread(args[0]).filter(|_| exact);
        }
        let size = match self.sizes(e)?.as_slice() {
            [] => [1, 1],
            &[columns] => [1, columns],
            &[rows, columns] => [rows, columns],
            _ => return None,
        };
        let mut inner = e;
        while let Some((args, _)) = RESHAPES.iter().find_map(|&op| self.call(inner, op)) {
            inner = args[0];
        }
        let numbers = numbers(self.constant(inner)?)?;
        (numbers.len() == size[0] * size[1]).then_some(Spread { numbers, size, times: [1, 1] })
    }
}

/// The elements of a float32, int32, int8 or uint8 constant; `None` for other types.
pub(crate) fn numbers(t: &Tensor) -> Option<Vec<f64>> {
    Some(match t.dtype() {
        DType::Float32 => t.to_vec::<f32>().ok()?.into_iter().map(f64::from).collect(),
        _ => integers(t).ok()??.into_iter().map(f64::from).collect(),
    })
}

/// The elements of an int32, int8 or uint8 constant; `None` for other types.
///
/// # Errors
/// If memory cannot be allocated.
pub(crate) fn integers(t: &Tensor) -> Result<Option<Vec<i32>>, TensorError> {
    Ok(match t.dtype() {
        DType::Int32 => Some(t.to_vec::<i32>()?),
        DType::Int8 => Some(t.to_vec::<i8>()?.into_iter().map(i32::from).collect()),
        DType::UInt8 => Some(t.to_vec::<u8>()?.into_iter().map(i32::from).collect()),
        _ => None,
    })
}

/// Whether a tensor holds one number in total, or one number for each row of `x`.
pub(crate) fn fits_rows(func: &Function, numbers: Expr, x: Expr) -> bool {
    let (Some(own), Some(of)) = (func.ty(numbers).dims(), func.ty(x).dims()) else { return false };
    is_one(func, numbers)
        || own.len() == of.len() && own[..own.len() - 1] == of[..of.len() - 1] && {
            func.syms.as_int(own[own.len() - 1]) == Some(1)
        }
}

/// Whether a tensor has one element.
pub(crate) fn is_one(func: &Function, e: Expr) -> bool {
    let dims = func.ty(e).dims();
    dims.is_some_and(|dims| dims.iter().all(|&d| func.syms.as_int(d) == Some(1)))
}
