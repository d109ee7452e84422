//! Benchmarks of vector math functions (such as `exp` over a slice) on one thread, as generated
//! loops call them on tiles. Operands and results are in the first-level cache, in the second-level
//! cache, or in memory.
//!
//! The floor (the minimum time on this machine) is the larger of two times. The first is the time
//! of the function's operations at the peak rate of multiply-adds; [`Counter`] counts the
//! operations. Every operation counts as one multiply-add, also quotients and roots, although these
//! take many times as long. The second is the time to read the bytes of operands and results.

mod roofline;

use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::null;

use criterion::{Criterion, criterion_group, criterion_main};
use pliant_kernels::math::{self, MathOps, Real, scale_by_parts};
use pliant_kernels::vector_math::{FUNCTIONS, Slices, half_conversions};
use pliant_machine::isa::{Isa, isa};
use roofline::{Cases, Workload, vectors};

/// The sizes of the slices: number of elements, and the cache level in which float32 operands and results of this size
/// fit.
const SIZES: [(usize, &str); 3] = [(2048, "L1"), (64 << 10, "L2"), (16 << 20, "beyond")];

/// A number type that implements the operations of [`MathOps`] only by counting them.
struct Counter<T> {
    count: u32,
    isa: Isa,
    real: PhantomData<T>,
}

macro_rules! counting {
    ($($name:ident($($operand:ident),*) = $count:literal;)*) => {
        $(fn $name(&mut self $(, $operand: &())*) {
            self.count += $count;
        })*
    };
}

impl<T: Real> MathOps for Counter<T> {
    type Real = T;
    type V = ();

    fn f(&mut self, _: f64) {}
    fn i(&mut self, _: i64) {}
    fn bits(&mut self, (): &()) {}
    fn float_of_bits(&mut self, (): &()) {}
    fn ishl(&mut self, (): &(), _: u8) {
        self.count += 1;
    }
    fn ishr(&mut self, (): &(), _: u8) {
        self.count += 1;
    }
    counting! {
        add(_a, _b) = 1;
        sub(_a, _b) = 1;
        mul(_a, _b) = 1;
        div(_a, _b) = 1;
        sqrt(_a) = 1;
        fma(_a, _b, _c) = 1;
        min2(_a, _b) = 1;
        max2(_a, _b) = 1;
        iadd(_a, _b) = 1;
        isub(_a, _b) = 1;
        iand(_a, _b) = 1;
        ior(_a, _b) = 1;
        select_lt(_a, _b, _x, _y) = 2;
        keep_nan(_x, _y) = 2;
    }
    fn scale(&mut self, y: &(), n: &(), t: &()) {
        match self.isa {
            Isa::Amx | Isa::Avx512 => self.count += 1,
            _ => scale_by_parts(self, y, n, t),
        }
    }
}

impl<T> Counter<T> {
    fn new() -> Counter<T> {
        Counter { count: 0, isa: isa(), real: PhantomData }
    }
}

/// Returns the number of operations of a function per element. A vector operation processes one
/// element per lane and counts as one.
fn operations<T: Real>(name: &str) -> f64 {
    let b = &mut Counter::<T>::new();
    macro_rules! run {
        ($($one:ident)*; $($two:ident)*) => {
            match name {
                $(stringify!($one) => math::$one(b, &()),)*
                $(stringify!($two) => math::$two(b, &(), &()),)*
                other => panic!("there is no vector math function named {other}"),
            }
        };
    }
    run!(exp log log1p sigmoid sinh cosh tanh asinh acosh atanh sin cos tan asin acos atan erf gelu; atan2 maximum minimum);
    f64::from(b.count)
}

/// Returns the number of operations of `pow` per float32 element, for positive, finite operands.
/// For these operands, `pow` computes in float64.
fn operations_of_pow() -> f64 {
    let b = &mut Counter::<f64>::new();
    math::pow_positive_finite(b, &(), &());
    f64::from(b.count)
}

/// Returns arguments inside the domain of a function, on both sides of the points at which its
/// implementation switches algorithms.
fn arguments(name: &str, count: usize) -> impl Iterator<Item = f64> {
    let start = if name == "acosh" { 1.0 } else { 0.01 };
    (0..count).map(move |i| start + (i % 97) as f64 / 100.0)
}

/// Measures one math function on the elements of `x`. `flops` is the number of float32 operations
/// per element.
fn run<T: Copy>(cases: &mut Cases<'_>, name: &str, function: Slices<T>, x: &[T], flops: f64) {
    let (mut out, n) = (x.to_vec(), x.len() as i64);
    let arrays = if matches!(function, Slices::One(_)) { 2 } else { 3 };
    let bytes = (arrays * size_of_val(x)) as f64;
    let other = x.to_vec();
    cases.run(name, Workload::elements(n as f64, flops * n as f64, bytes), || {
        let (to, from) = (black_box(out.as_mut_ptr()), black_box(x.as_ptr()));
        // SAFETY: all slices have that many elements.
        unsafe {
            match function {
                Slices::One(f) => f(null(), to, from, n),
                Slices::Two(f) => f(null(), to, from, other.as_ptr(), n),
            }
        };
    });
}

fn functions(c: &mut Criterion) {
    for (count, level) in SIZES {
        let mut cases = Cases::new(c, &format!("vector, {level}"), vectors(), 1);
        for f in FUNCTIONS {
            let double: Vec<f64> = arguments(f.name, count).collect();
            let single: Vec<f32> = double.iter().map(|&x| x as f32).collect();
            // Computations in float64 have half of the lanes.
            let flops = match f.name {
                "pow" => 4.0 * operations_of_pow(),
                name => 2.0 * operations::<f32>(name),
            };
            run(&mut cases, f.name, (f.single)(isa()), &single, flops);
            if let Some(function) = f.double.filter(|_| count == SIZES[0].0) {
                let name = format!("{}, float64", f.name);
                run(&mut cases, &name, function(isa()), &double, 4.0 * operations::<f64>(f.name));
            }
        }
        halves(&mut cases, count);
        cases.finish();
    }
}

/// Measures the conversions of `count` elements between float32 and float16. The work of a conversion is counted as one
/// multiply-add per element.
fn halves(cases: &mut Cases<'_>, count: usize) {
    let (mut wide, mut narrow) = (vec![1.5f32; count], vec![0u16; count]);
    let work = Workload::elements(count as f64, 2.0 * count as f64, 6.0 * count as f64);
    cases.run("float32 to float16", work, || {
        let (to, from) = (black_box(narrow.as_mut_ptr()), wide.as_ptr());
        // SAFETY: both slices have that many elements.
        unsafe { half_conversions::select_f32_to_f16(isa())(null(), to, from, count as i64) };
    });
    cases.run("float16 to float32", work, || {
        let (to, from) = (black_box(wide.as_mut_ptr()), narrow.as_ptr());
        // SAFETY: both slices have that many elements.
        unsafe { half_conversions::select_f16_to_f32(isa())(null(), to, from, count as i64) };
    });
}

criterion_group!(benches, functions);
criterion_main!(benches);
