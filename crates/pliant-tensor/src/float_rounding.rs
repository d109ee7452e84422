//! Converts numbers to float16 and bfloat16 with a single rounding: to nearest, ties to even.
//!
//! A number that float32 cannot represent is first rounded to the adjacent float32 with an odd significand (round to odd). This
//! float32 is never halfway between two numbers of the narrower type. Rounding it again therefore gives the same result as rounding
//! the original number directly (Boldo and Melquiond, 2005).

use half::{bf16, f16};

/// Rounds a float64 to a float32 by round-to-odd. The result is on the same side of every float16,
/// of every bfloat16, and of every midpoint between two of them as the original number.
pub fn round_to_odd_f32(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    // NaN and representable numbers are unchanged.
    if back == value || value.is_nan() {
        return near;
    }
    let past = u32::from(back.abs() > value.abs());
    f32::from_bits((near.to_bits() - past) | 1)
}

/// Rounds a signed integer to float64 by round-to-odd, so that rounding the result to a narrower float type is correct.
pub fn round_to_odd_f64(value: i64) -> f64 {
    round_bits_to_odd(value, value.unsigned_abs()) as f64
}

/// Rounds an unsigned integer to float64 by round-to-odd, so that rounding the result to a narrower float type is
/// correct.
pub fn round_to_odd_f64_unsigned(value: u64) -> f64 {
    round_bits_to_odd(value as i64, value) as u64 as f64
}

/// Rounds an integer by round-to-odd to an integer that float64 can represent. `magnitude` is the absolute value.
fn round_bits_to_odd(value: i64, magnitude: u64) -> i64 {
    const LOST: i64 = 0x7ff;
    if magnitude < 1 << 53 || value & LOST == 0 {
        return value;
    }
    (value & !LOST) | (LOST + 1)
}

/// Rounds a number to the nearest float16, ties to even.
pub fn round_to_f16(value: f64) -> f16 {
    f16::from_f32(round_to_odd_f32(value))
}

/// Rounds a number to the nearest bfloat16, ties to even.
pub fn round_to_bf16(value: f64) -> bf16 {
    bf16::from_f32(round_to_odd_f32(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the rounding `of` to a 16-bit float format, for all values of the format and for numbers around the midpoints of
    /// adjacent values. `next` converts the bits of a 16-bit float to its value.
    fn check(next: impl Fn(u16) -> f64, of: impl Fn(f64) -> u16) {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (next(bits), next(bits + 1));
            if !high.is_finite() {
                break;
            }
            let middle = (low + high) / 2.0;
            let tie = if bits % 2 == 0 { bits } else { bits + 1 };
            for sign in [1.0, -1.0] {
                let with_sign = |bits: u16| bits | if sign < 0.0 { 0x8000 } else { 0 };
                assert_eq!(of(sign * low), with_sign(bits));
                assert_eq!(of(sign * middle), with_sign(tie), "{middle:e}");
                assert_eq!(of(sign * middle.next_up()), with_sign(bits + 1), "{middle:e}");
                assert_eq!(of(sign * middle.next_down()), with_sign(bits), "{middle:e}");
            }
        }
    }

    #[test]
    fn conversions_round_to_nearest() {
        check(|bits| f16::from_bits(bits).to_f64(), |v| round_to_f16(v).to_bits());
        check(|bits| bf16::from_bits(bits).to_f64(), |v| round_to_bf16(v).to_bits());
        assert!(round_to_f16(f64::NAN).is_nan() && round_to_bf16(f64::NAN).is_nan());
        assert_eq!(round_to_f16(1e300), f16::INFINITY);
        assert_eq!(round_to_bf16(f64::NEG_INFINITY), bf16::NEG_INFINITY);
        assert_eq!(round_to_f16(-1e-300).to_bits(), 0x8000);
    }

    #[test]
    fn integers_stay_on_their_side_of_midpoints() {
        for shift in 8..55 {
            let tie = (1i64 << (shift + 8)) + (1 << shift);
            for sign in [1, -1] {
                let near =
                    |delta: i64| round_to_bf16(round_to_odd_f64(sign * (tie + delta))).to_f64();
                let sign = sign as f64;
                assert_eq!(near(0), sign * 2f64.powi(shift + 8));
                assert_eq!(near(1), sign * (2f64.powi(shift + 8) + 2f64.powi(shift + 1)));
                assert_eq!(near(-1), sign * 2f64.powi(shift + 8));
            }
        }
        let top = (1u64 << 63) + (1 << 55);
        assert_eq!(round_to_bf16(round_to_odd_f64_unsigned(top)).to_f64(), 2f64.powi(63));
        assert_eq!(
            round_to_bf16(round_to_odd_f64_unsigned(top + 1)).to_f64(),
            2f64.powi(63) + 2f64.powi(56)
        );
        assert_eq!(round_to_odd_f64(5), 5.0);
        assert_eq!(round_to_odd_f64(i64::MIN), -(2f64.powi(63)));
    }
}
