//! Tests the vector math functions (`pliant_vec_*`) with every instruction set of the machine, at sizes that are not multiples of a
//! vector, between guard pages, and in place.

use std::ptr::null;

use pliant_kernels::vector_math::{
    FUNCTIONS, Slices, VectorFn, half_conversions, integer_conversions,
};
use pliant_machine::isa::{Isa, available};

use crate::guard_pages::Guarded;

const SIZES: [usize; 12] = [0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 65, 200];

/// Returns `n` arguments inside and outside of the domains of the functions, including special
/// values.
fn arguments(n: usize, step: f64) -> Vec<f64> {
    let special =
        [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0, 9000.5, 1e-40, 2e6];
    let ordinary = (0..n).map(|i| (i as f64 * step).sin() * (i % 7) as f64);
    ordinary
        .enumerate()
        .map(|(i, x)| if i % 5 == 4 { special[i / 5 % special.len()] } else { x })
        .collect()
}

/// An element type of slices: float32 or float64.
trait Real: Copy {
    fn of(x: f64) -> Self;
    fn to(self) -> f64;
    fn slices(f: &VectorFn, isa: Isa) -> Option<Slices<Self>>;
}

impl Real for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn to(self) -> f64 {
        self.into()
    }
    fn slices(f: &VectorFn, isa: Isa) -> Option<Slices<f32>> {
        Some((f.single)(isa))
    }
}

impl Real for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn to(self) -> f64 {
        self
    }
    fn slices(f: &VectorFn, isa: Isa) -> Option<Slices<f64>> {
        f.double.map(|double| double(isa))
    }
}

/// Computes a function on slices adjacent to guard pages, and returns the results. If `in_place` is
/// set, the results overwrite the first operand.
fn run<T: Real>(function: Slices<T>, x: &[T], y: &[T], at_end: bool, in_place: bool) -> Vec<f64> {
    let (left, right) = (Guarded::new(x, at_end), Guarded::new(y, at_end));
    let out = Guarded::new(&vec![T::of(7.0); x.len()], at_end);
    let to = if in_place { &left } else { &out };
    // SAFETY: the slices have that many elements.
    let status = unsafe {
        match function {
            Slices::One(f) => f(null(), to.as_ptr(), left.as_ptr(), x.len() as i64),
            Slices::Two(f) => f(null(), to.as_ptr(), left.as_ptr(), right.as_ptr(), x.len() as i64),
        }
    };
    assert_eq!(status, 0);
    to.values().iter().map(|v| v.to()).collect()
}

/// Computes a vector math function by calls with one element each, and returns the results.
fn one_by_one<T: Real>(function: Slices<T>, x: &[T], y: &[T]) -> Vec<f64> {
    (0..x.len()).flat_map(|i| run(function, &x[i..=i], &y[i..=i], true, false)).collect()
}

fn bits(values: &[f64]) -> Vec<Option<u64>> {
    values.iter().map(|v| (!v.is_nan()).then_some(v.to_bits())).collect()
}

fn check<T: Real>(f: &VectorFn, isa: Isa) {
    let Some(function) = T::slices(f, isa) else { return };
    for n in SIZES {
        let x: Vec<T> = arguments(n, 0.37).into_iter().map(T::of).collect();
        let y: Vec<T> = arguments(n, 0.23).into_iter().map(T::of).collect();
        let want = bits(&one_by_one(function, &x, &y));
        for bits_of_case in 0..4 {
            let (at_end, in_place) = (bits_of_case & 1 != 0, bits_of_case & 2 != 0);
            let got = bits(&run(function, &x, &y, at_end, in_place));
            assert_eq!(got, want, "{} {isa:?} {n} at_end={at_end} in_place={in_place}", f.name);
        }
    }
    // A negative count accesses no elements.
    let x = [T::of(0.5)];
    let to = Guarded::new(&x, true);
    // SAFETY: nothing is accessed.
    let status = unsafe {
        match function {
            Slices::One(f) => f(null(), to.as_ptr(), x.as_ptr(), -3),
            Slices::Two(f) => f(null(), to.as_ptr(), x.as_ptr(), x.as_ptr(), -3),
        }
    };
    assert_eq!((status, to.values()[0].to()), (0, 0.5));
}

#[test]
fn results_do_not_depend_on_other_elements() {
    for isa in available() {
        for f in FUNCTIONS {
            check::<f32>(f, isa);
            check::<f64>(f, isa);
        }
    }
}

/// Tests that results of instruction sets with fused multiply-add are bit-identical; results of
/// other instruction sets differ by at most the documented error.
#[test]
fn every_isa_gives_the_same_results() {
    let best = available().next().expect("there is plain code");
    for isa in available() {
        for f in FUNCTIONS {
            let x: Vec<f32> = arguments(700, 0.37).into_iter().map(|x| x as f32).collect();
            let y: Vec<f32> = arguments(700, 0.23).into_iter().map(|x| x as f32).collect();
            let want = run((f.single)(best), &x, &y, true, false);
            let got = run((f.single)(isa), &x, &y, true, false);
            for (i, (a, b)) in got.iter().zip(&want).enumerate() {
                let same = a == b || a.is_nan() && b.is_nan();
                let is_close = isa == Isa::Portable && (a - b).abs() <= b.abs() * 6e-7;
                let at = (x[i], y[i]);
                assert!(same || is_close, "{} {isa:?} at {at:?}: {a}, not {b}", f.name);
            }
        }
    }
}

#[test]
fn half_conversions_match_scalar_conversions() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for isa in available() {
        for n in SIZES.into_iter().chain([all.len()]) {
            let from = Guarded::new(&all[all.len() - n..], true);
            let wide = Guarded::new(&vec![0f32; n], true);
            let restored = Guarded::new(&vec![0u16; n], true);
            // SAFETY: the slices have that many elements.
            unsafe {
                half_conversions::select_f16_to_f32(isa)(
                    null(),
                    wide.as_ptr(),
                    from.as_ptr(),
                    n as i64,
                );
                half_conversions::select_f32_to_f16(isa)(
                    null(),
                    restored.as_ptr(),
                    wide.as_ptr(),
                    n as i64,
                );
            }
            for ((&bits, &x), &restored) in
                from.values().iter().zip(wide.values()).zip(restored.values())
            {
                let want = pliant_kernels::scalar_math::f16_to_f32(bits.into());
                assert!(x.to_bits() == want.to_bits() || x.is_nan() && want.is_nan(), "{bits:#x}");
                assert!(restored == bits || x.is_nan(), "{bits:#x} {isa:?}");
            }
        }
        let ties: Vec<f32> =
            (0..40_000).map(|i| f32::from_bits(0x3300_0000 + i * 4096 + 1)).collect();
        let out = Guarded::new(&vec![0u16; ties.len()], true);
        // SAFETY: as above.
        unsafe {
            half_conversions::select_f32_to_f16(isa)(
                null(),
                out.as_ptr(),
                ties.as_ptr(),
                ties.len() as i64,
            )
        };
        for (&x, &got) in ties.iter().zip(out.values()) {
            assert_eq!(i32::from(got), pliant_kernels::scalar_math::f32_to_f16(x), "{x:e} {isa:?}");
        }
    }
}

#[test]
fn accumulations_equal_scalar_extrema() {
    for isa in available() {
        for n in SIZES {
            let plain: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
            check_accumulations(isa, &plain, -2.0);
            check_accumulations(isa, &plain, 2.0);
            let zeros: Vec<f32> = (0..n).map(|i| if i % 3 == 1 { -0.0 } else { 0.0 }).collect();
            check_accumulations(isa, &zeros, -0.0);
            for position in [0, n / 2, n.saturating_sub(1)].into_iter().filter(|&p| p < n) {
                let mut with_nan = plain.clone();
                with_nan[position] = f32::NAN;
                check_accumulations(isa, &with_nan, 0.5);
            }
            check_accumulations(isa, &plain, f32::NAN);
        }
    }
}

/// Compares the accumulations of a slice, starting with `start`, with scalar extrema. NaN equals NaN.
fn check_accumulations(isa: Isa, values: &[f32], start: f32) {
    let operand = Guarded::new(values, true);
    let called = |symbol: &str| {
        let function = pliant_kernels::vector_math::linked(isa)
            .find(|f| f.name == symbol)
            .expect("a declared function is linked");
        let result = Guarded::new(&[start], true);
        // SAFETY: the function has this signature, and the slices have that many elements.
        unsafe {
            let run: unsafe extern "C" fn(*const (), *mut f32, *const f32, i64) -> i64 =
                std::mem::transmute(function.address);
            run(null(), result.as_ptr(), operand.as_ptr(), values.len() as i64);
        }
        result.values()[0]
    };
    let nan = start.is_nan() || values.iter().any(|x| x.is_nan());
    let all = || values.iter().copied().chain([start]);
    let expected = [all().max_by(f32::total_cmp), all().min_by(f32::total_cmp)];
    for (name, expected) in ["maximum", "minimum"].into_iter().zip(expected) {
        let got = called(&format!("pliant_vec_accumulate_{name}_f32"));
        let same =
            if nan { got.is_nan() } else { Some(got.to_bits()) == expected.map(f32::to_bits) };
        assert!(same, "{name} {isa:?} of {} elements from {start}: {got}", values.len());
    }
}

#[test]
fn integer_conversions_saturate() {
    let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.99, -0.99, 3e9, -3e9, 1e30];
    let limits = [-128.9, -129.0, 127.9, 128.0, 255.9, 256.0, -32768.9, -32769.0, 65535.9, 65536.0];
    let range = (-700_000..700_000).step_by(997).map(|i| i as f32 / 10.0);
    let all: Vec<f32> = specials.into_iter().chain(limits).chain(range).collect();
    for isa in available() {
        for n in SIZES.into_iter().chain([all.len()]) {
            check_integer_conversion::<i8>(isa, &all[..n], |x| x as i8);
            check_integer_conversion::<u8>(isa, &all[..n], |x| x as u8);
            check_integer_conversion::<i16>(isa, &all[..n], |x| x as i16);
            check_integer_conversion::<u16>(isa, &all[..n], |x| x as u16);
        }
    }
}

fn check_integer_conversion<T>(isa: Isa, from: &[f32], expected: fn(f32) -> T)
where
    T: integer_conversions::Integer + Default + PartialEq + std::fmt::Debug,
{
    let to = Guarded::new(&vec![T::default(); from.len()], true);
    let operand = Guarded::new(from, true);
    let convert = integer_conversions::to_integer::<T>(isa);
    // SAFETY: the slices have that many elements.
    unsafe { convert(null(), to.as_ptr(), operand.as_ptr(), from.len() as i64) };
    for (&x, got) in from.iter().zip(to.values()) {
        assert_eq!(*got, expected(x), "{x} {isa:?}");
    }
}

/// Tests that `maximum` and `minimum` propagate NaN from either operand with its sign, and order
/// zeros by sign.
#[test]
fn maximum_and_minimum_propagate_nan_and_order_zeros() {
    let values = [0.0f32, -0.0, f32::NAN, -f32::NAN, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY];
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for a in values {
        for b in values {
            x.push(a);
            y.push(b);
        }
    }
    for isa in available() {
        for (name, larger) in [("maximum", true), ("minimum", false)] {
            let f = FUNCTIONS.iter().find(|f| f.name == name).expect("a function of the table");
            let got = run((f.single)(isa), &x, &y, true, false);
            for ((got, &a), &b) in got.iter().zip(&x).zip(&y) {
                let first = match a.total_cmp(&b) {
                    std::cmp::Ordering::Greater => larger,
                    _ => !larger,
                };
                let want = if first { a } else { b };
                let nan = a.is_nan() || b.is_nan();
                let same =
                    if nan { got.is_nan() } else { got.to_bits() == f64::from(want).to_bits() };
                assert!(same, "{name}({a}, {b}) is {got} on {isa:?}");
            }
        }
    }
}
