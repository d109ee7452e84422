//! Elementary functions of one value, and half-precision conversions, as C functions.

use half::f16;

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
    sigmoid_f32 sigmoid_f64 = |x| 1.0 / (1.0 + (-x).exp()), 1.0 / (1.0 + (-x).exp());
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

/// float16 bits to float32.
pub extern "C" fn f16_to_f32(bits: i32) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

/// float32 to float16 bits, to nearest even.
pub extern "C" fn f32_to_f16(value: f32) -> i32 {
    i32::from(f16::from_f32(value).to_bits())
}

/// float32 rounded to what float16 can hold.
pub extern "C" fn round_f16(value: f32) -> f32 {
    f16::from_f32(value).to_f32()
}

/// float64 rounded to what float16 can hold, as float32.
pub extern "C" fn f64_round_f16(value: f64) -> f32 {
    f16::from_f64(value).to_f32()
}
