//! The declarations of the vector math functions: library functions that compute adjacent elements of a buffer from the
//! elements at the same positions of one or two other buffers. Generated loops call them on tiles:
//!
//! ```text
//! T.call_extern("int64", "pliant_vec_pow_f32", T.address_of(out[i]), T.address_of(x[i]), T.address_of(y[i]), count)
//! ```
//!
//! Schedules choose the functions from this table, the bounds checks and the interpreter look up the data types and the
//! operation of a call in it, and the implementations are linked by its symbols.

use pliant_tensor::DType;

/// The declaration of a vector math function (`pliant_vec_*`), which computes adjacent elements. The arguments of a call
/// are the address of the first result, the address of the first element of each operand, and the number of elements. If the
/// operation accumulates all elements, there is only one result, which is also read.
#[derive(Debug, PartialEq, Eq)]
pub struct VectorMathFunction {
    /// The linker symbol of the function, such as `pliant_vec_pow_f32`.
    pub symbol: &'static str,
    /// The operation that the function computes for each element.
    pub operation: VectorMathOperation,
    /// The names of the operands, such as `x` and `y`.
    pub operands: &'static [&'static str],
    /// The data type of all operands.
    pub operand_dtype: DType,
    /// The data type of the results.
    pub result_dtype: DType,
}

/// The operation that a vector math function (`pliant_vec_*`) computes for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorMathOperation {
    /// The elementary function whose intrinsic has this name in programs, such as `exp`.
    Elementary(&'static str),
    /// The maximum of two operands; NaN if one of them is NaN.
    Maximum,
    /// The minimum of two operands; NaN if one of them is NaN.
    Minimum,
    /// The maximum of the result and of all elements of the operand; NaN if one of them is NaN. There is one result.
    AccumulateMaximum,
    /// The minimum of the result and of all elements of the operand; NaN if one of them is NaN. There is one result.
    AccumulateMinimum,
    /// The conversion to the data type of the results. Conversions to integers round towards zero and saturate; NaN becomes 0.
    Convert,
}

use DType::{BFloat16, Float16, Float32, Float64, Int8, Int16, UInt8, UInt16};
use VectorMathOperation::{
    AccumulateMaximum, AccumulateMinimum, Convert, Elementary, Maximum, Minimum,
};

impl VectorMathFunction {
    /// Whether the function accumulates all elements into one result.
    pub const fn accumulates(&self) -> bool {
        matches!(self.operation, AccumulateMaximum | AccumulateMinimum)
    }
}

/// Declares a vector math function (`pliant_vec_*`) that accumulates all elements of its operand into one result.
const fn accumulate(
    symbol: &'static str,
    operation: VectorMathOperation,
    dtype: DType,
) -> VectorMathFunction {
    let operands = &["x"];
    VectorMathFunction { symbol, operation, operands, operand_dtype: dtype, result_dtype: dtype }
}

/// Declares a vector math function (`pliant_vec_*`) that applies the elementary function `name` to one operand.
const fn unary(symbol: &'static str, name: &'static str, dtype: DType) -> VectorMathFunction {
    let operation = Elementary(name);
    VectorMathFunction {
        symbol,
        operation,
        operands: &["x"],
        operand_dtype: dtype,
        result_dtype: dtype,
    }
}

/// Declares a vector math function (`pliant_vec_*`) of two operands. Operands and results have the type `dtype`.
const fn binary(
    symbol: &'static str,
    operation: VectorMathOperation,
    dtype: DType,
) -> VectorMathFunction {
    let operands = &["x", "y"];
    VectorMathFunction { symbol, operation, operands, operand_dtype: dtype, result_dtype: dtype }
}

/// Declares a vector math function (`pliant_vec_*`) that converts elements of type `from` to type `to`.
const fn convert(symbol: &'static str, from: DType, to: DType) -> VectorMathFunction {
    let operands = &["x"];
    VectorMathFunction {
        symbol,
        operation: Convert,
        operands,
        operand_dtype: from,
        result_dtype: to,
    }
}

/// The table of all vector math functions (`pliant_vec_*`).
pub static VECTOR_MATH_FUNCTIONS: &[VectorMathFunction] = &[
    unary("pliant_vec_exp_f32", "exp", Float32),
    unary("pliant_vec_exp_f64", "exp", Float64),
    unary("pliant_vec_log_f32", "log", Float32),
    unary("pliant_vec_log_f64", "log", Float64),
    unary("pliant_vec_log1p_f32", "log1p", Float32),
    unary("pliant_vec_log1p_f64", "log1p", Float64),
    unary("pliant_vec_sigmoid_f32", "sigmoid", Float32),
    unary("pliant_vec_sigmoid_f64", "sigmoid", Float64),
    unary("pliant_vec_sinh_f32", "sinh", Float32),
    unary("pliant_vec_sinh_f64", "sinh", Float64),
    unary("pliant_vec_cosh_f32", "cosh", Float32),
    unary("pliant_vec_cosh_f64", "cosh", Float64),
    unary("pliant_vec_tanh_f32", "tanh", Float32),
    unary("pliant_vec_tanh_f64", "tanh", Float64),
    unary("pliant_vec_asinh_f32", "asinh", Float32),
    unary("pliant_vec_asinh_f64", "asinh", Float64),
    unary("pliant_vec_acosh_f32", "acosh", Float32),
    unary("pliant_vec_acosh_f64", "acosh", Float64),
    unary("pliant_vec_atanh_f32", "atanh", Float32),
    unary("pliant_vec_atanh_f64", "atanh", Float64),
    unary("pliant_vec_sin_f32", "sin", Float32),
    unary("pliant_vec_sin_f64", "sin", Float64),
    unary("pliant_vec_cos_f32", "cos", Float32),
    unary("pliant_vec_cos_f64", "cos", Float64),
    unary("pliant_vec_tan_f32", "tan", Float32),
    unary("pliant_vec_tan_f64", "tan", Float64),
    unary("pliant_vec_asin_f32", "asin", Float32),
    unary("pliant_vec_asin_f64", "asin", Float64),
    unary("pliant_vec_acos_f32", "acos", Float32),
    unary("pliant_vec_acos_f64", "acos", Float64),
    unary("pliant_vec_atan_f32", "atan", Float32),
    unary("pliant_vec_atan_f64", "atan", Float64),
    unary("pliant_vec_erf_f32", "erf", Float32),
    unary("pliant_vec_erf_f64", "erf", Float64),
    unary("pliant_vec_gelu_f32", "gelu", Float32),
    unary("pliant_vec_gelu_f64", "gelu", Float64),
    binary("pliant_vec_atan2_f32", Elementary("atan2"), Float32),
    binary("pliant_vec_atan2_f64", Elementary("atan2"), Float64),
    binary("pliant_vec_maximum_f32", Maximum, Float32),
    binary("pliant_vec_maximum_f64", Maximum, Float64),
    binary("pliant_vec_minimum_f32", Minimum, Float32),
    binary("pliant_vec_minimum_f64", Minimum, Float64),
    accumulate("pliant_vec_accumulate_maximum_f32", AccumulateMaximum, Float32),
    accumulate("pliant_vec_accumulate_maximum_f64", AccumulateMaximum, Float64),
    accumulate("pliant_vec_accumulate_minimum_f32", AccumulateMinimum, Float32),
    accumulate("pliant_vec_accumulate_minimum_f64", AccumulateMinimum, Float64),
    // Computed in float64, so there is no function for float64 operands.
    binary("pliant_vec_pow_f32", Elementary("pow"), Float32),
    convert("pliant_vec_f16_to_f32", Float16, Float32),
    convert("pliant_vec_f32_to_f16", Float32, Float16),
    convert("pliant_vec_bf16_to_f32", BFloat16, Float32),
    convert("pliant_vec_f32_to_bf16", Float32, BFloat16),
    convert("pliant_vec_f32_to_i8", Float32, Int8),
    convert("pliant_vec_f32_to_u8", Float32, UInt8),
    convert("pliant_vec_f32_to_i16", Float32, Int16),
    convert("pliant_vec_f32_to_u16", Float32, UInt16),
];

/// Returns the vector math function (`pliant_vec_*`) with this symbol; `None` if there is none.
pub fn vector_math_function(symbol: &str) -> Option<&'static VectorMathFunction> {
    VECTOR_MATH_FUNCTIONS.iter().find(|f| f.symbol == symbol)
}

/// Returns the vector math function (`pliant_vec_*`) that computes an operation on operands of type `from` with results of
/// type `to`; `None` if there is none.
pub fn vector_math_function_for(
    operation: VectorMathOperation,
    from: DType,
    to: DType,
) -> Option<&'static VectorMathFunction> {
    let computes = |f: &&VectorMathFunction| {
        (f.operation, f.operand_dtype, f.result_dtype) == (operation, from, to)
    };
    VECTOR_MATH_FUNCTIONS.iter().find(computes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_operations_are_unique() {
        for f in VECTOR_MATH_FUNCTIONS {
            assert_eq!(vector_math_function(f.symbol), Some(f));
            let found = vector_math_function_for(f.operation, f.operand_dtype, f.result_dtype);
            assert_eq!(found, Some(f), "{}", f.symbol);
        }
    }
}
