//! Scalar elementary functions and half-precision conversions as C functions.

use half::f16;
use pliant_tensor::round_to_f16;

macro_rules! unary {
    ($($name32:ident $name64:ident = |$x:ident| $e32:expr, $e64:expr;)*) => {
        $(
            #[doc = "float32 form."]
            pub extern "C" fn $name32($x: f32) -> f32 { $e32 }
            #[doc = "float64 form."]
            pub extern "C" fn $name64($x: f64) -> f64 { $e64 }
        )*
    };
}

unary! {
    exp_f32 exp_f64 = |x| x.exp(), x.exp();
    exp2_f32 exp2_f64 = |x| x.exp2(), x.exp2();
    log_f32 log_f64 = |x| x.ln(), x.ln();
    log2_f32 log2_f64 = |x| x.log2(), x.log2();
    log10_f32 log10_f64 = |x| x.log10(), x.log10();
    log1p_f32 log1p_f64 = |x| x.ln_1p(), x.ln_1p();
    sin_f32 sin_f64 = |x| x.sin(), x.sin();
    cos_f32 cos_f64 = |x| x.cos(), x.cos();
    tan_f32 tan_f64 = |x| x.tan(), x.tan();
    sinh_f32 sinh_f64 = |x| x.sinh(), x.sinh();
    cosh_f32 cosh_f64 = |x| x.cosh(), x.cosh();
    tanh_f32 tanh_f64 = |x| x.tanh(), x.tanh();
    asin_f32 asin_f64 = |x| x.asin(), x.asin();
    acos_f32 acos_f64 = |x| x.acos(), x.acos();
    atan_f32 atan_f64 = |x| x.atan(), x.atan();
    asinh_f32 asinh_f64 = |x| libm::asinhf(x), libm::asinh(x);
    acosh_f32 acosh_f64 = |x| if x < 1.0 { f32::NAN } else { libm::acoshf(x) },
        if x < 1.0 { f64::NAN } else { libm::acosh(x) };
    atanh_f32 atanh_f64 = |x| libm::atanhf(x), libm::atanh(x);
    erf_f32 erf_f64 = |x| libm::erff(x), libm::erf(x);
    gelu_f32 gelu_f64 = |x| gelu(x.into()) as f32, gelu(x);
    sigmoid_f32 sigmoid_f64 = |x| 1.0 / (1.0 + (-x).exp()), 1.0 / (1.0 + (-x).exp());
}

/// GELU: `x` times the normal distribution function of `x`, computed from `erfc`. Returns -0 for
/// minus infinity.
pub(crate) fn gelu(x: f64) -> f64 {
    // The square root of 1/2, and its rounding error.
    const SQRT_HALF: (f64, f64) = (std::f64::consts::FRAC_1_SQRT_2, -4.833_646_656_726_457e-17);
    if x < -37.5 {
        return gelu_tail(x);
    }
    // The tail is steep: the rounding error of the argument is corrected with the slope.
    let argument = -x * SQRT_HALF.0;
    let rounding = (-x).mul_add(SQRT_HALF.0, -argument) - x * SQRT_HALF.1;
    let slope = std::f64::consts::FRAC_2_SQRT_PI * (-argument * argument).exp();
    let correction = if rounding.is_finite() { slope * rounding } else { 0.0 };
    x * 0.5 * (libm::erfc(argument) - correction)
}

/// Computes GELU by the first terms of its asymptotic series, for arguments for which `erfc` is
/// subnormal and inaccurate.
fn gelu_tail(x: f64) -> f64 {
    let square = x * x;
    if square > 1600.0 {
        return -0.0;
    }
    let rounding = x.mul_add(x, -square);
    let inverse = 1.0 / square;
    let series = 1.0 - inverse * (1.0 - inverse * (3.0 - inverse * (15.0 - inverse * 105.0)));
    let root = 0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
    // The exponential is two normal factors, so that only the last product is rounded to few digits.
    -(root * series * (1.0 - 0.5 * rounding) * (100.0 - 0.5 * square).exp()) * (-100.0f64).exp()
}

macro_rules! binary {
    ($($name32:ident $name64:ident = |$x:ident, $y:ident| $e32:expr, $e64:expr;)*) => {
        $(
            #[doc = "float32 form."]
            pub extern "C" fn $name32($x: f32, $y: f32) -> f32 { $e32 }
            #[doc = "float64 form."]
            pub extern "C" fn $name64($x: f64, $y: f64) -> f64 { $e64 }
        )*
    };
}

binary! {
    pow_f32 pow_f64 = |x, y| x.powf(y), x.powf(y);
    atan2_f32 atan2_f64 = |x, y| x.atan2(y), x.atan2(y);
    fmod_f32 fmod_f64 = |x, y| x % y, x % y;
}

/// Converts the bits of a float16 to float32.
pub extern "C" fn f16_to_f32(bits: i32) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

/// Converts a float32 to the bits of a float16, rounded to nearest, ties to even.
pub extern "C" fn f32_to_f16(value: f32) -> i32 {
    i32::from(f16::from_f32(value).to_bits())
}

/// Rounds a float32 to the precision of float16.
pub extern "C" fn round_f16(value: f32) -> f32 {
    f16::from_f32(value).to_f32()
}

/// Rounds a float64 to the precision of float16, and returns it as float32.
pub extern "C" fn f64_round_f16(value: f64) -> f32 {
    round_to_f16(value).to_f32()
}
