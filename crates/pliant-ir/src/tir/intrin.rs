//! The table of intrinsics: the loop-level functions that code generators implement.

use std::fmt;

/// The rule that determines the result type of an intrinsic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntrinResult {
    /// The result has the type of the first operand.
    Same,
    /// The result has the type of the second operand (`if_then_else`).
    Second,
    /// The result is a bool.
    Bool,
    /// The result has the type that the call states (`reinterpret`, `call_extern`).
    Explicit,
}

macro_rules! intrinsics {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $arity:expr, $result:ident;)*) => {
        /// An intrinsic: a function of the loop level that code generators implement.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Intrin { $($(#[$doc])* $variant,)* }

        impl Intrin {
            /// All intrinsics.
            pub const ALL: &'static [Intrin] = &[$(Intrin::$variant,)*];

            /// The name of the intrinsic in scripts, without the prefix `T.`.
            pub fn name(self) -> &'static str {
                match self { $(Intrin::$variant => $name,)* }
            }

            /// The number of operands; `None` if it is variable.
            pub fn arity(self) -> Option<usize> {
                match self { $(Intrin::$variant => $arity,)* }
            }

            /// The rule that determines the result type of the intrinsic.
            pub fn result(self) -> IntrinResult {
                match self { $(Intrin::$variant => IntrinResult::$result,)* }
            }

            /// The intrinsic with the given name; `None` if there is none.
            pub fn from_name(name: &str) -> Option<Intrin> {
                match name { $($name => Some(Intrin::$variant),)* _ => None }
            }
        }
    };
}

intrinsics! {
    /// The exponential function `e^x`.
    Exp = "exp", Some(1), Same;
    /// The exponential function `2^x`.
    Exp2 = "exp2", Some(1), Same;
    /// Natural logarithm.
    Log = "log", Some(1), Same;
    /// Logarithm to base 2.
    Log2 = "log2", Some(1), Same;
    /// Logarithm to base 10.
    Log10 = "log10", Some(1), Same;
    /// The natural logarithm of `1 + x`.
    Log1p = "log1p", Some(1), Same;
    /// Square root.
    Sqrt = "sqrt", Some(1), Same;
    /// The reciprocal square root `1 / sqrt(x)`.
    Rsqrt = "rsqrt", Some(1), Same;
    /// The power `x^y`.
    Pow = "pow", Some(2), Same;
    /// Sine.
    Sin = "sin", Some(1), Same;
    /// Cosine.
    Cos = "cos", Some(1), Same;
    /// Tangent.
    Tan = "tan", Some(1), Same;
    /// Hyperbolic sine.
    Sinh = "sinh", Some(1), Same;
    /// Hyperbolic cosine.
    Cosh = "cosh", Some(1), Same;
    /// Hyperbolic tangent.
    Tanh = "tanh", Some(1), Same;
    /// Inverse sine.
    Asin = "asin", Some(1), Same;
    /// Inverse cosine.
    Acos = "acos", Some(1), Same;
    /// Inverse tangent.
    Atan = "atan", Some(1), Same;
    /// Inverse hyperbolic sine.
    Asinh = "asinh", Some(1), Same;
    /// Inverse hyperbolic cosine.
    Acosh = "acosh", Some(1), Same;
    /// Inverse hyperbolic tangent.
    Atanh = "atanh", Some(1), Same;
    /// `atan2(y, x)`: inverse tangent of `y / x` in the quadrant of the point `(x, y)`.
    Atan2 = "atan2", Some(2), Same;
    /// Logistic function `1 / (1 + e^-x)`.
    Sigmoid = "sigmoid", Some(1), Same;
    /// Error function.
    Erf = "erf", Some(1), Same;
    /// Gaussian error linear unit: `x` times the standard normal distribution function of `x`.
    Gelu = "gelu", Some(1), Same;
    /// Absolute value.
    Abs = "abs", Some(1), Same;
    /// Rounds towards minus infinity.
    Floor = "floor", Some(1), Same;
    /// Rounds towards plus infinity.
    Ceil = "ceil", Some(1), Same;
    /// Rounds towards zero.
    Trunc = "trunc", Some(1), Same;
    /// Rounds to nearest, ties to even.
    Round = "round", Some(1), Same;
    /// Rounds to nearest, ties to even.
    Nearbyint = "nearbyint", Some(1), Same;
    /// `a * b + c` with a single rounding.
    Fma = "fma", Some(3), Same;
    /// Float remainder with the sign of the dividend.
    Fmod = "fmod", Some(2), Same;
    /// Whether the operand is NaN.
    IsNan = "isnan", Some(1), Bool;
    /// Whether the operand is infinite.
    IsInf = "isinf", Some(1), Bool;
    /// Whether the operand is neither NaN nor infinite.
    IsFinite = "isfinite", Some(1), Bool;
    /// Number of one bits.
    Popcount = "popcount", Some(1), Same;
    /// Number of leading zero bits.
    Clz = "clz", Some(1), Same;
    /// Bitwise and.
    BitwiseAnd = "bitwise_and", Some(2), Same;
    /// Bitwise or.
    BitwiseOr = "bitwise_or", Some(2), Same;
    /// Bitwise exclusive or.
    BitwiseXor = "bitwise_xor", Some(2), Same;
    /// Bitwise negation.
    BitwiseNot = "bitwise_not", Some(1), Same;
    /// Shifts the bits of the first operand left by the second operand.
    ShiftLeft = "shift_left", Some(2), Same;
    /// Shifts the bits of the first operand right by the second operand. Keeps the sign of signed integers.
    ShiftRight = "shift_right", Some(2), Same;
    /// `c ? a : b`; only the chosen alternative is evaluated.
    IfThenElse = "if_then_else", Some(3), Second;
    /// Returns its operand, a condition that is expected to be true.
    Likely = "likely", Some(1), Same;
    /// Returns its first operand, the condition of an assertion. The other operands are int64 values that replace `{0}`, `{1}`,
    /// ... in the assertion's message.
    Explain = "explain", None, Same;
    /// Reinterprets the bits of a value as another type of the same size.
    Reinterpret = "reinterpret", Some(1), Explicit;
    /// Sum of a vector's lanes.
    VectorSum = "vector_sum", Some(1), Explicit;
    /// Largest of a vector's lanes.
    VectorMax = "vector_max", Some(1), Explicit;
    /// Smallest of a vector's lanes.
    VectorMin = "vector_min", Some(1), Explicit;
    /// The address of a buffer element: `T.address_of(B[i])`. Only as an argument of calls.
    AddressOf = "address_of", Some(1), Explicit;
    /// A call of a symbol linked into the program: name, then arguments.
    CallExtern = "call_extern", None, Explicit;
    /// A call of a registered packed function: name, then arguments.
    CallPacked = "call_packed", None, Explicit;
    /// A call of a library kernel on buffers or views of buffers; see [`super::kernel_call`].
    CallKernel = "call_kernel", None, Explicit;
}

impl fmt::Display for Intrin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
