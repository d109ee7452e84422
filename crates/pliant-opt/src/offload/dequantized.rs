//! Recognizes dequantized operands (casts of integers, minus zero points, times scales), as ONNX models in QDQ form have them
//! (`DequantizeLinear` in front of a float operator): matmuls with a dequantized constant, dequantized constants as matrices, and
//! scales and zero points that are per tensor or per row.

mod matrix;

use pliant_ir::relax::{Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::pattern::Defs;
use pliant_tensor::{Tensor, TensorError};

use crate::common::matmul_and_conv_operands::{
    MatrixProduct, PERMUTE_DIMS, call_operands, permute_axes,
};
pub(crate) use matrix::Matrix;

/// Maximum magnitude of zero points. Up to this magnitude, integral zero points and their differences to 8-bit integers are exact
/// in float32.
pub(crate) const MAX_ZERO_POINT: f64 = (1 << 16) as f64;

const CAST: Op = Op::new("relax.astype");
const SUBTRACT: Op = Op::new("relax.subtract");
const MULTIPLY: Op = Op::new("relax.multiply");
const DEQUANTIZE: Op = Op::new("relax.dequantize");
const REPEAT: Op = Op::new("relax.repeat");
const SLICE: Op = Op::new("relax.strided_slice");
/// Operators that change the shape of a tensor but not the order of its elements.
pub(crate) const RESHAPES: [Op; 3] =
    [Op::new("relax.reshape"), Op::new("relax.expand_dims"), Op::new("relax.squeeze")];

/// A matmul of a float32 operand with a dequantized constant.
#[derive(Clone, Debug)]
pub(crate) struct DequantizedMatmul {
    pub by: MatrixProduct,
    pub weights: DequantizedWeights,
}

/// The constants from which a matrix is dequantized: integers, zero points and scales.
#[derive(Clone, Debug)]
pub(crate) struct DequantizedWeights {
    /// The quantized integers, of rank 2.
    pub integers: Tensor,
    /// The zero points that are subtracted from the integers, in this order.
    pub zeros: Vec<BroadcastNumbers>,
    /// The scale by which the differences of integers and zero points are multiplied.
    pub scale: BroadcastNumbers,
    /// Whether the right operand of the matmul is the transpose of the dequantized constant.
    pub transposed: bool,
}

/// Scales or zero points that are repeated or broadcast over a matrix.
#[derive(Clone, Debug)]
pub(crate) struct BroadcastNumbers {
    /// The scales or zero points, in row-major order.
    pub numbers: Vec<f64>,
    /// The number of rows and columns of `numbers`.
    pub size: [usize; 2],
    /// How often each number is repeated along the rows and along the columns of the matrix. Along a dim of size 1, the number is
    /// broadcast instead.
    pub repeats: [usize; 2],
}

impl BroadcastNumbers {
    /// Returns the scale or zero point for an element of the matrix.
    pub fn number_at(&self, row: usize, column: usize) -> f64 {
        let index = |i: usize, k: usize| if self.size[k] == 1 { 0 } else { i / self.repeats[k] };
        self.numbers[index(row, 0) * self.size[1] + index(column, 1)]
    }

    /// Whether `numbers`, each repeated `repeats` times, provides a number for every element of a matrix with this number of rows
    /// and columns. Dims of size 1 are broadcast. Along other dims, there may be more repetitions than elements.
    fn covers_size(&self, size: [usize; 2]) -> bool {
        let covered = |k: usize| self.size[k].saturating_mul(self.repeats[k]);
        (0..2).all(|k| self.size[k] == 1 || covered(k) >= size[k])
    }
}

/// Matches the operands of a matmul or convolution: looks up the calls and constants that define them.
pub(crate) struct OperandMatcher<'a> {
    pub func: &'a Function,
    pub defs: &'a Defs,
    /// The variable of the matmul or convolution. The definition of an operand is used only if no side effect lies between it and
    /// this variable.
    pub root_var: Var,
}

impl OperandMatcher<'_> {
    /// If the value of an operand is a call of `op`, returns the operands and attributes of this call.
    pub fn call(&self, e: Expr, op: Op) -> Option<(&[Expr], &Attrs)> {
        call_operands(self.func, self.defs.value_in_epoch(self.func, e, self.root_var), op)
    }

    /// The constant value of an operand; `None` if it is not constant.
    pub fn constant(&self, e: Expr) -> Option<&Tensor> {
        match self.func.expr(self.defs.value_in_epoch(self.func, e, self.root_var)) {
            ExprData::Constant(c) => Some(self.func.const_tensor(*c)),
            _ => None,
        }
    }

    /// The sizes of a tensor; `None` if one of them is not a constant.
    pub fn constant_sizes(&self, e: Expr) -> Option<Vec<usize>> {
        let dims = self.func.ty(e).dims()?.iter();
        let size = |&d| usize::try_from(self.func.syms.as_int(d)?).ok();
        dims.map(size).collect()
    }

    /// Matches a matmul with a dequantized constant.
    pub fn dequantized_matmul(&self, value: Expr) -> Option<DequantizedMatmul> {
        let by = MatrixProduct::of(self.func, value)?;
        let float = |e: Expr| self.func.ty(e).dtype() == Some(DType::Float32);
        let (x, right) = (by.x, by.right);
        let &[rows, columns] = self.constant_sizes(right)?.as_slice() else { return None };
        let (k, n) = if by.transposed { (columns, rows) } else { (rows, columns) };
        let summed = *self.func.ty(x).dims()?.last()?;
        let fits = float(x) && float(right) && float(value) && k > 0 && n > 0;
        if !fits || self.func.syms.as_int(summed) != Some(k as i64) {
            return None;
        }
        let transposed = self
            .call(right, PERMUTE_DIMS)
            .filter(|(_, attrs)| permute_axes(attrs, 2).is_some_and(|order| order == [1, 0]));
        let mut weights =
            self.dequantized_weights(transposed.map_or(right, |(args, _)| args[0]))?;
        weights.transposed = transposed.is_some() != by.transposed;
        Some(DequantizedMatmul { by, weights })
    }

    /// Matches a dequantized matrix: finds the integer constant, the zero points and the scale from which it is computed.
    fn dequantized_weights(&self, e: Expr) -> Option<DequantizedWeights> {
        let (integers, zeros, scale) = match self.call(e, DEQUANTIZE) {
            Some((args, attrs)) => {
                let (scale, zero) = (
                    self.per_axis_numbers(args[1], attrs)?,
                    self.per_axis_numbers(args[2], attrs)?,
                );
                (self.constant(args[0])?.clone(), vec![zero], scale)
            }
            None => {
                let (args, _) = self.call(e, MULTIPLY)?;
                let sides = [(args[0], args[1]), (args[1], args[0])];
                sides.into_iter().find_map(|(quantized, scale)| {
                    let (integers, zeros) =
                        self.integers_and_zero_points(quantized, |e| self.broadcast_numbers(e))?;
                    Some((integers, zeros, self.broadcast_numbers(scale)?))
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
        if self.constant_sizes(e)? != size {
            return None;
        }
        let byte = matches!(integers.dtype(), DType::Int8 | DType::UInt8 | DType::Int32);
        let fits = byte && scale.covers_size(size) && zeros.iter().all(|z| z.covers_size(size));
        fits.then_some(DequantizedWeights { integers, zeros, scale, transposed: false })
    }

    /// Returns the scale or zero point of an `R.dequantize` call: a scalar, or a vector along its axis.
    fn per_axis_numbers(&self, e: Expr, attrs: &Attrs) -> Option<BroadcastNumbers> {
        let mut broadcast_numbers = self.broadcast_numbers(e)?;
        let axis = attrs.get("axis").and_then(AttrValue::as_int)?;
        // By default, a vector has one number for each column.
        if self.constant_sizes(e)?.len() == 1 && matches!(axis, 0 | -2) {
            broadcast_numbers.size.swap(0, 1);
            broadcast_numbers.repeats.swap(0, 1);
        }
        Some(broadcast_numbers)
    }

    /// If a float32 value is a cast of constant integers minus zero points, returns the integers and the zero points.
    /// `broadcast_numbers` converts each zero point, which is an expression, and returns `None` for unsupported ones.
    pub fn integers_and_zero_points<T>(
        &self,
        mut e: Expr,
        broadcast_numbers: impl Fn(Expr) -> Option<T>,
    ) -> Option<(Tensor, Vec<T>)> {
        let mut zeros = Vec::new();
        let mut cast = false;
        // Casts and subtractions can alternate. A few of them are looked through.
        for _ in 0..8 {
            if let Some((args, _)) = self.call(e, SUBTRACT) {
                // Differences of 8-bit integers may wrap around.
                let wide = matches!(self.func.ty(e).dtype(), Some(DType::Int32 | DType::Float32));
                zeros.push(broadcast_numbers(args[1]).filter(|_| wide)?);
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

    /// If a value repeats or broadcasts constant numbers over a matrix, returns these numbers.
    fn broadcast_numbers(&self, e: Expr) -> Option<BroadcastNumbers> {
        if let Some((args, attrs)) = self.call(e, REPEAT) {
            let repeat_count =
                usize::try_from(attrs.get("repeats")?.as_int()?).ok().filter(|&t| t > 0)?;
            let axis = attrs.get("axis")?.as_int()?;
            let mut broadcast_numbers = self.broadcast_numbers(args[0])?;
            let rank = self.constant_sizes(e)?.len() as i64;
            let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
            if rank != 2 || axis > 1 || broadcast_numbers.repeats[axis] != 1 {
                return None;
            }
            broadcast_numbers.repeats[axis] = repeat_count;
            // A single number that is repeated to the end of the axis is broadcast.
            let is_broadcastable =
                broadcast_numbers.size[axis] > 1 || repeat_count == self.constant_sizes(e)?[axis];
            return is_broadcastable.then_some(broadcast_numbers);
        }
        if let Some((args, _)) = self.call(e, SLICE) {
            let all = |e: Expr, value: i64| match self.func.expr(e) {
                ExprData::Shape(list) => {
                    list.iter().all(|&d| self.func.syms.as_int(d) == Some(value))
                }
                _ => false,
            };
            // A slice from the start keeps the positions of elements. Sizes that differ from those of the operand show which axes
            // are cut.
            let first = all(args[2], 0) && args.get(4).is_none_or(|&by| all(by, 1));
            let (sizes, source_sizes) = (self.constant_sizes(e)?, self.constant_sizes(args[0])?);
            // An axis that is cut to one element would be broadcast, unlike the whole axis.
            let several = sizes.iter().zip(&source_sizes).all(|(dims, of)| dims == of || *dims > 1);
            return self
                .broadcast_numbers(args[0])
                .filter(|_| first && several && sizes.len() == 2);
        }
        if let Some((args, _)) = self.call(e, CAST) {
            // A cast to a wider type keeps the values, unlike a cast to the other signedness of the same width.
            let from = self.func.ty(args[0]).dtype();
            let to = self.func.ty(e).dtype();
            let exact = matches!(from, Some(DType::Int8 | DType::UInt8))
                && matches!(to, Some(DType::Int32 | DType::Float32));
            return self.broadcast_numbers(args[0]).filter(|_| exact);
        }
        let size = match self.constant_sizes(e)?.as_slice() {
            [] => [1, 1],
            &[columns] => [1, columns],
            &[rows, columns] => [rows, columns],
            _ => return None,
        };
        let mut inner = e;
        while let Some((args, _)) = RESHAPES.iter().find_map(|&op| self.call(inner, op)) {
            inner = args[0];
        }
        let numbers = to_f64_numbers(self.constant(inner)?)?;
        (numbers.len() == size[0] * size[1]).then_some(BroadcastNumbers {
            numbers,
            size,
            repeats: [1, 1],
        })
    }
}

/// Converts the elements of a float32, int32, int8 or uint8 constant to float64; `None` for other types.
pub(crate) fn to_f64_numbers(t: &Tensor) -> Option<Vec<f64>> {
    Some(match t.dtype() {
        DType::Float32 => t.to_vec::<f32>().ok()?.into_iter().map(f64::from).collect(),
        _ => to_i32_integers(t).ok()??.into_iter().map(f64::from).collect(),
    })
}

/// Converts the elements of an int32, int8 or uint8 constant to int32; `None` for other types.
///
/// # Errors
/// If memory cannot be allocated.
pub(crate) fn to_i32_integers(t: &Tensor) -> Result<Option<Vec<i32>>, TensorError> {
    Ok(match t.dtype() {
        DType::Int32 => Some(t.to_vec::<i32>()?),
        DType::Int8 => Some(t.to_vec::<i8>()?.into_iter().map(i32::from).collect()),
        DType::UInt8 => Some(t.to_vec::<u8>()?.into_iter().map(i32::from).collect()),
        _ => None,
    })
}

/// Whether a tensor has one element, or one element for each row of `x`.
pub(crate) fn is_scalar_or_per_row(func: &Function, numbers: Expr, x: Expr) -> bool {
    let (Some(dims), Some(of)) = (func.ty(numbers).dims(), func.ty(x).dims()) else { return false };
    has_one_element(func, numbers)
        || dims.len() == of.len() && dims[..dims.len() - 1] == of[..of.len() - 1] && {
            func.syms.as_int(dims[dims.len() - 1]) == Some(1)
        }
}

/// Whether a tensor has exactly one element.
pub(crate) fn has_one_element(func: &Function, e: Expr) -> bool {
    let dims = func.ty(e).dims();
    dims.is_some_and(|dims| dims.iter().all(|&d| func.syms.as_int(d) == Some(1)))
}
