//! Elementary functions over slices, for all instruction sets. Generated loops call them on tiles.
//!
//! The sequences are those of [`crate::math`], which code generators expand in place. Here they use the widest vectors
//! of the machine. The symbol of a slice function is `pliant_vec_<name>_<type>`. Its arguments are the address of the
//! results, the address of each operand, and the number of elements. Results may replace an operand. No memory outside
//! of the slices is accessed. Measured relative to the operations of the sequences and the bytes: "Elementary
//! functions" in `docs/internals/measurements/functions.md`.
//!
//! | module | owns |
//! |---|---|
//! | `slice_loops` | the loops over slices, with masked tails |
//! | `vector_math_ops` | the operations of the sequences, on the vectors of an instruction set |
//! | [`half`] | conversions between float32 and the 16-bit floats |

pub mod half;
mod slice_loops;
pub(crate) mod vector_math_ops;

use pliant_exec::abi::KernelRuntime;

use crate::math::{self, MathOps};
use crate::registry::{ExternFn, ExternTy};
use pliant_machine::isa::Isa;
use slice_loops::{Binary, Unary};

/// A function of one operand over slices. The arguments are the runtime, the results, the operand, and the number of
/// elements. Returns a kernel status.
pub type OneFn<T> = unsafe extern "C" fn(*const KernelRuntime, *mut T, *const T, i64) -> i64;
/// A function of two operands over slices. The arguments are the runtime, the results, the operands, and the number of
/// elements. Returns a kernel status.
pub type TwoFn<T> =
    unsafe extern "C" fn(*const KernelRuntime, *mut T, *const T, *const T, i64) -> i64;

/// A slice function for one instruction set.
#[derive(Clone, Copy)]
pub enum Slices<T> {
    /// The function has one operand.
    One(OneFn<T>),
    /// The function has two operands.
    Two(TwoFn<T>),
}

impl<T> Slices<T> {
    fn linked(self, name: &'static str) -> ExternFn {
        use ExternTy::{I64, Ptr};
        let (address, params): (usize, &'static [ExternTy]) = match self {
            Slices::One(f) => (f as usize, &[Ptr, Ptr, I64]),
            Slices::Two(f) => (f as usize, &[Ptr, Ptr, Ptr, I64]),
        };
        ExternFn { name, address, params, result: I64, runtime: true }
    }
}

/// An elementary function: its symbols, and its slice functions for each instruction set. The machine must have the
/// instructions.
pub struct VectorFn {
    /// The name of the intrinsic in programs.
    pub name: &'static str,
    /// The symbol of the slice function for float32.
    pub symbol32: &'static str,
    /// Returns the slice function for float32.
    pub single: fn(Isa) -> Slices<f32>,
    /// The symbol of the slice function for float64.
    pub symbol64: &'static str,
    /// Returns the slice function for float64; `None` if there is none.
    pub double: Option<fn(Isa) -> Slices<f64>>,
}

macro_rules! functions {
    ($($kind:ident $name:ident, $type:ident $(, platform $platform:expr)? $(, fast $fast:ident)?;)*) => {
        $(
            struct $type;
            functions!(@impl $kind $name $type $(, $platform)? $(, $fast)?);
        )*

        /// All elementary functions with slice functions.
        pub static FUNCTIONS: &[VectorFn] = &[$(VectorFn {
            name: stringify!($name),
            symbol32: concat!("pliant_vec_", stringify!($name), "_f32"),
            single: functions!(@single $kind $type),
            symbol64: concat!("pliant_vec_", stringify!($name), "_f64"),
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

/// The slice functions that generated code may call, for an instruction set.
pub(crate) fn linked(isa: Isa) -> impl Iterator<Item = ExternFn> {
    let functions = FUNCTIONS.iter().flat_map(move |f| {
        let single = (f.single)(isa).linked(f.symbol32);
        [Some(single), f.double.map(|double| double(isa).linked(f.symbol64))].into_iter().flatten()
    });
    functions.chain(half::linked(isa))
}
