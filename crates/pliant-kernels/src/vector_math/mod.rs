//! Elementary functions (such as `exp`) over slices, for all instruction sets. Generated loops call
//! these vector math functions on tiles.
//!
//! The functions execute the operation sequences of [`crate::math`] with the widest vectors of the
//! machine. Code generators expand the same sequences inline. The functions are declared in
//! [`pliant_kernel_api::vector_math_functions`]. The results may overwrite an operand. No memory
//! outside of the slices is accessed. For measurements, see "Elementary functions" in
//! `docs/internals/measurements/functions.md`, which compares with the minimum time for the
//! operations and the memory accesses.
//!
//! | module | owns |
//! |---|---|
//! | `slice_loops` | the loops over slices, with masked tails |
//! | `vector_math_ops` | the primitive operations of elementary functions, on the vectors of an instruction set |
//! | [`half_conversions`] | conversions between float32 and the 16-bit floats |
//! | [`integer_conversions`] | conversions of float32 to 8- and 16-bit integers |

pub mod half_conversions;
pub mod integer_conversions;
mod slice_loops;
pub(crate) mod vector_math_ops;

use pliant_exec::abi::KernelRuntime;

use crate::extern_function_table::{ExternFn, ExternTy};
use crate::math::{self, MathOps};
use pliant_kernel_api::vector_math_functions::{
    VECTOR_MATH_FUNCTIONS, VectorMathFunction, VectorMathOperation,
};
use pliant_machine::isa::Isa;
use pliant_tensor::DType;
use slice_loops::{Binary, Unary};

/// A C function that applies an elementary function of one operand to a slice. The arguments are
/// the runtime, the results, the operand, and the number of elements. Returns a kernel status: 0 on
/// success.
pub type OneFn<T> = unsafe extern "C" fn(*const KernelRuntime, *mut T, *const T, i64) -> i64;
/// A C function that applies an elementary function of two operands to slices. The arguments are
/// the runtime, the results, the operands, and the number of elements. Returns a kernel status: 0
/// on success.
pub type TwoFn<T> =
    unsafe extern "C" fn(*const KernelRuntime, *mut T, *const T, *const T, i64) -> i64;

/// A vector math function (an elementary function over slices) for one instruction set.
#[derive(Clone, Copy)]
pub enum Slices<T> {
    /// A vector math function of one operand, such as `exp`.
    One(OneFn<T>),
    /// A vector math function of two operands, such as `pow`.
    Two(TwoFn<T>),
}

impl<T> Slices<T> {
    fn address(self) -> usize {
        match self {
            Slices::One(f) => f as usize,
            Slices::Two(f) => f as usize,
        }
    }
}

/// The implementations of an elementary function for each instruction set. Only implementations for
/// instructions that the machine has may be called.
pub struct VectorFn {
    /// The name of the function as an intrinsic in programs, such as `exp`.
    pub name: &'static str,
    /// Returns the function over float32 slices for an instruction set.
    pub single: fn(Isa) -> Slices<f32>,
    /// Returns the function over float64 slices for an instruction set; `None` if there is none.
    pub double: Option<fn(Isa) -> Slices<f64>>,
}

macro_rules! functions {
    ($($kind:ident $name:ident, $type:ident $(, platform $platform:expr)? $(, fast $fast:ident)?;)*) => {
        $(
            struct $type;
            functions!(@impl $kind $name $type $(, $platform)? $(, $fast)?);
        )*

        /// All elementary functions that have vector math functions (`pliant_vec_*`).
        pub static FUNCTIONS: &[VectorFn] = &[$(VectorFn {
            name: stringify!($name),
            single: functions!(@single $kind $type),
            double: functions!(@double $kind $type),
        }),*];
    };
    (@impl unary $name:ident $type:ident $(, $platform:expr)?) => {
        impl Unary for $type {
            $(
                const PLATFORM: Option<fn(f64) -> f64> = Some($platform);
            )?
            #[inline(always)]
            fn value<B: MathOps>(b: &mut B, x: &B::V) -> B::V {
                math::$name(b, x)
            }
        }
    };
    (@impl binary $name:ident $type:ident) => {
        impl Binary for $type {
            #[inline(always)]
            fn value<B: MathOps>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
                math::$name(b, x, y)
            }
        }
    };
    (@impl in_double $name:ident $type:ident, $fast:ident) => {
        impl slice_loops::InDouble for $type {
            #[inline(always)]
            fn value<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> B::V {
                math::$name(b, x, y)
            }
            #[inline(always)]
            fn fast<B: MathOps<Real = f64>>(b: &mut B, x: &B::V, y: &B::V) -> (B::V, B::V) {
                math::$fast(b, x, y)
            }
            const FAST_RANGE: (f64, f64) = (math::MIN_POSITIVE_BOUND, math::MAX_FINITE_BOUND);
        }
    };
    (@single unary $type:ident) => { |isa| Slices::One(slice_loops::one_f32::<$type>(isa)) };
    (@single binary $type:ident) => { |isa| Slices::Two(slice_loops::two_f32::<$type>(isa)) };
    (@single in_double $type:ident) => { |isa| Slices::Two(slice_loops::in_double::<$type>(isa)) };
    (@double unary $type:ident) => { Some(|isa| Slices::One(slice_loops::one_f64::<$type>(isa))) };
    (@double binary $type:ident) => { Some(|isa| Slices::Two(slice_loops::two_f64::<$type>(isa))) };
    (@double in_double $type:ident) => { None };
}

functions! {
    unary exp, Exp;
    unary log, Log;
    unary log1p, Log1p;
    unary sigmoid, Sigmoid;
    unary sinh, Sinh;
    unary cosh, Cosh;
    unary tanh, Tanh;
    unary asinh, Asinh;
    unary acosh, Acosh;
    unary atanh, Atanh;
    unary sin, Sin, platform f64::sin;
    unary cos, Cos, platform f64::cos;
    unary tan, Tan, platform f64::tan;
    unary asin, Asin;
    unary acos, Acos;
    unary atan, Atan;
    unary erf, Erf;
    unary gelu, Gelu;
    binary atan2, Atan2;
    binary maximum, Maximum;
    binary minimum, Minimum;
    in_double pow, Pow, fast pow_positive_finite;
}

/// Returns the vector math functions (elementary functions over slices, `pliant_vec_*`) that generated code may call, compiled for
/// an instruction set.
pub fn linked(isa: Isa) -> impl Iterator<Item = ExternFn> {
    VECTOR_MATH_FUNCTIONS.iter().map(move |function| ExternFn {
        name: function.symbol,
        address: address(function, isa),
        params: match function.operands.len() {
            1 => &[ExternTy::Ptr, ExternTy::Ptr, ExternTy::I64],
            _ => &[ExternTy::Ptr, ExternTy::Ptr, ExternTy::Ptr, ExternTy::I64],
        },
        result: ExternTy::I64,
        runtime: true,
    })
}

/// Returns the address of the implementation of a vector math function (`pliant_vec_*`) for an
/// instruction set.
///
/// # Panics
/// The function has no implementation. A test checks that all have one.
fn address(function: &VectorMathFunction, isa: Isa) -> usize {
    let name = match function.operation {
        VectorMathOperation::Elementary(name) => name,
        VectorMathOperation::Maximum => "maximum",
        VectorMathOperation::Minimum => "minimum",
        VectorMathOperation::AccumulateMaximum => {
            return accumulation::<Maximum>(function.operand_dtype, isa);
        }
        VectorMathOperation::AccumulateMinimum => {
            return accumulation::<Minimum>(function.operand_dtype, isa);
        }
        VectorMathOperation::Convert => {
            return conversion(function.operand_dtype, function.result_dtype, isa);
        }
    };
    let implementation = FUNCTIONS.iter().find(|f| f.name == name);
    let implementation = implementation.expect("every declared function has an implementation");
    match (function.operand_dtype, implementation.double) {
        (DType::Float64, Some(double)) => double(isa).address(),
        (DType::Float32, _) => (implementation.single)(isa).address(),
        _ => unreachable!("{} has no implementation", function.symbol),
    }
}

/// Returns the address of the function that reduces a slice of type `dtype` to one number with the function `F`, such as the
/// maximum.
///
/// # Panics
/// If there is no such function. A test checks that all declared functions exist.
fn accumulation<F: Binary>(dtype: DType, isa: Isa) -> usize {
    match dtype {
        DType::Float32 => slice_loops::accumulate_f32::<F>(isa) as usize,
        DType::Float64 => slice_loops::accumulate_f64::<F>(isa) as usize,
        _ => unreachable!("no accumulation of {dtype}"),
    }
}

/// Returns the address of the function that converts slices of type `from` to type `to`.
///
/// # Panics
/// If there is no such function. A test checks that all declared functions exist.
fn conversion(from: DType, to: DType, isa: Isa) -> usize {
    use half_conversions::{narrow_bf16, select_f16_to_f32, select_f32_to_f16, widen_bf16};
    use integer_conversions::to_integer;
    match (from, to) {
        (DType::Float16, DType::Float32) => select_f16_to_f32(isa) as usize,
        (DType::Float32, DType::Float16) => select_f32_to_f16(isa) as usize,
        (DType::BFloat16, DType::Float32) => widen_bf16 as *const () as usize,
        (DType::Float32, DType::BFloat16) => narrow_bf16 as *const () as usize,
        (DType::Float32, DType::Int8) => to_integer::<i8>(isa) as usize,
        (DType::Float32, DType::UInt8) => to_integer::<u8>(isa) as usize,
        (DType::Float32, DType::Int16) => to_integer::<i16>(isa) as usize,
        (DType::Float32, DType::UInt16) => to_integer::<u16>(isa) as usize,
        _ => unreachable!("no conversion from {from} to {to}"),
    }
}
