//! Tests conversions between all element types, and arithmetic on 16-bit floats. Results on vectors must equal results
//! on scalars, and results on 16-bit floats must equal those of the `half` crate.

use half::{bf16, f16};
use pliant_ir::tir::{BinOp, Expr, PrimFunc, Ty};
use pliant_tensor::DType;

use crate::loop_function_harness::*;

/// Compiles a function that stores `value(A[i])` to `C[i]`, where `A` has type `from` and `C` has type `to`.
fn unary(from: DType, to: DType, value: impl Fn(&mut PrimFunc, Expr) -> Expr) -> CompiledFunction {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], from);
    let c = param(&mut f, "C", &[n], to);
    f.body = stage(&mut f, "C", &[(n, S)], |f, v| {
        let x = f.load(a, &[v[0]]);
        let value = value(f, x);
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    build(&f)
}

/// Runs a function on all elements at once and on each element alone. Asserts that the results are equal, and returns
/// them.
fn run_vector_and_scalar<A: Elem, B: Elem>(k: &CompiledFunction, a: &[A]) -> Vec<B> {
    let n = a.len();
    let mut all = vec![B::default(); n];
    k.run(vec![tensor(a, &[n]), output(&mut all, &[n])]).unwrap();
    let scalar_results: Vec<B> = a
        .iter()
        .map(|x| {
            let mut one = [B::default()];
            k.run(vec![tensor(&[*x], &[1]), output(&mut one, &[1])]).unwrap();
            one[0]
        })
        .collect();
    let text = |v: &[B]| v.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>();
    assert_eq!(text(&all), text(&scalar_results), "{:?} to {:?} of {a:?}", A::DTYPE, B::DTYPE);
    all
}

/// Numbers at the limits and rounding boundaries of all types.
const EDGES: [f64; 37] = [
    0.0,
    -0.0,
    0.4,
    0.5,
    -0.5,
    1.5,
    2.5,
    -1.9,
    126.9,
    127.5,
    128.0,
    -128.9,
    -129.0,
    255.5,
    256.0,
    32767.5,
    32768.0,
    -32769.0,
    65519.0,
    65520.0,
    65536.0,
    1e-8,
    6e-8,
    -3e-5,
    2147483647.0,
    2147483648.0,
    -2147483649.0,
    4294967295.0,
    4294967296.0,
    9.3e18,
    -9.3e18,
    1.9e19,
    1e39,
    -1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

macro_rules! convert {
    ($($a:ty = |$x:ident| $value:expr;)*) => {$(
        let edges: Vec<$a> = EDGES.iter().cycle().take(111).map(|&$x| $value).collect();
        convert_to_all_types(&edges);
    )*};
}

/// Converts elements to every type, as vectors and as scalars, and asserts that the results agree.
fn convert_to_all_types<A: Elem>(a: &[A]) {
    macro_rules! to {
        ($($b:ty)*) => {$(
            let to = <$b as Elem>::DTYPE;
            let _: Vec<$b> = run_vector_and_scalar(&unary(A::DTYPE, to, |f, x| f.cast(x, Ty::scalar(to))), a);
        )*};
    }
    to!(bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);
}

#[test]
fn conversions_of_vectors_and_scalars_agree() {
    convert! {
        i8 = |x| x as i64 as i8;
        i16 = |x| x as i64 as i16;
        i32 = |x| x as i64 as i32;
        i64 = |x| x as i64;
        u8 = |x| x as i64 as u8;
        u16 = |x| x as i64 as u16;
        u32 = |x| x as i64 as u32;
        u64 = |x| x as u64;
        f16 = |x| f16::from_f64(x);
        bf16 = |x| bf16::from_f64(x);
        f32 = |x| x as f32;
        f64 = |x| x;
    }
}

/// Whether two floats have the same bits or are both NaN.
fn same_float(x: f32, y: f32) -> bool {
    x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
}

#[test]
fn all_16_bit_floats_convert_to_float32() {
    let k = unary(DType::Float16, DType::Float32, |f, x| f.cast(x, Ty::scalar(DType::Float32)));
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let mut c = vec![0f32; all.len()];
    k.run(vec![tensor(&all, &[1 << 16]), output(&mut c, &[1 << 16])]).unwrap();
    assert!(all.iter().zip(&c).all(|(x, &y)| same_float(x.to_f32(), y)));
    let k = unary(DType::BFloat16, DType::Float32, |f, x| f.cast(x, Ty::scalar(DType::Float32)));
    let all: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    k.run(vec![tensor(&all, &[1 << 16]), output(&mut c, &[1 << 16])]).unwrap();
    assert!(all.iter().zip(&c).all(|(x, &y)| same_float(x.to_f32(), y)));
}

#[test]
fn copies_keep_the_bits_of_16_bit_floats() {
    let k = unary(DType::Float16, DType::Float16, |_, x| x);
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let mut c = vec![f16::ZERO; all.len()];
    k.run(vec![tensor(&all, &[1 << 16]), output(&mut c, &[1 << 16])]).unwrap();
    assert!(all.iter().zip(&c).all(|(x, y)| x.to_bits() == y.to_bits()));
}

/// Returns float32 numbers at and around 16-bit floats and at rounding boundaries between them. `low` is the position
/// of the lowest mantissa bit of the 16-bit float in float32.
fn around_half_floats(low: u32) -> impl Iterator<Item = f32> {
    let offsets = [0, 1, (1 << low) / 2 - 1, (1 << low) / 2, (1 << low) / 2 + 1, (1 << low) - 1];
    let bases = (0..=u32::MAX >> low).step_by(7).map(move |i| i << low);
    bases.flat_map(move |base| offsets.map(|o| f32::from_bits(base.wrapping_add(o))))
}

#[test]
fn float32_rounds_to_16_bits_ties_to_even() {
    for back_to_float32 in [false, true] {
        let value = |to: DType| {
            move |f: &mut PrimFunc, x: Expr| {
                let half = f.cast(x, Ty::scalar(to));
                let wide = f.cast(half, Ty::scalar(DType::Float32));
                if back_to_float32 { wide } else { half }
            }
        };
        let low_bits: Vec<f32> = around_half_floats(13).collect();
        let n = low_bits.len();
        if back_to_float32 {
            let mut c = vec![0f32; n];
            let k = unary(DType::Float32, DType::Float32, value(DType::Float16));
            k.run(vec![tensor(&low_bits, &[n]), output(&mut c, &[n])]).unwrap();
            let wrong = low_bits
                .iter()
                .zip(&c)
                .find(|(x, y)| !same_float(f16::from_f32(**x).to_f32(), **y));
            assert_eq!(wrong, None);
        } else {
            let mut c = vec![f16::ZERO; n];
            let k = unary(DType::Float32, DType::Float16, value(DType::Float16));
            k.run(vec![tensor(&low_bits, &[n]), output(&mut c, &[n])]).unwrap();
            let wrong = low_bits
                .iter()
                .zip(&c)
                .find(|(x, y)| !same_float(f16::from_f32(**x).to_f32(), y.to_f32()));
            assert_eq!(wrong, None);
        }
        let low_bits: Vec<f32> = around_half_floats(16).collect();
        let n = low_bits.len();
        let mut c = vec![0f32; n];
        let k = unary(DType::Float32, DType::Float32, |f, x| {
            let half = f.cast(x, Ty::scalar(DType::BFloat16));
            f.cast(half, Ty::scalar(DType::Float32))
        });
        k.run(vec![tensor(&low_bits, &[n]), output(&mut c, &[n])]).unwrap();
        let wrong =
            low_bits.iter().zip(&c).find(|(x, y)| !same_float(bf16::from_f32(**x).to_f32(), **y));
        assert_eq!(wrong, None);
    }
}

/// A binary operator, and a function that computes its result on float32 numbers.
type Operator = (BinOp, fn(f32, f32) -> f32);

const OPERATORS: [Operator; 6] = [
    (BinOp::Add, |x, y| x + y),
    (BinOp::Sub, |x, y| x - y),
    (BinOp::Mul, |x, y| x * y),
    (BinOp::Div, |x, y| x / y),
    (BinOp::Min, |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { x.min(y) }),
    (BinOp::Max, |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { x.max(y) }),
];

/// Compiles `C = A op B` on a 16-bit type, or `C = select(A < B, (A op B) + A, B)` if `nested`.
fn arithmetic(dtype: DType, op: BinOp, nested: bool) -> CompiledFunction {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n], dtype);
    let b = param(&mut f, "B", &[n], dtype);
    let c = param(&mut f, "C", &[n], dtype);
    f.body = stage(&mut f, "C", &[(n, S)], |f, v| {
        let (x, y) = (f.load(a, &[v[0]]), f.load(b, &[v[0]]));
        let mut value = f.binary(op, x, y);
        if nested {
            let less = f.binary(BinOp::Lt, x, y);
            let sum = f.binary(BinOp::Add, value, x);
            value = f.add_expr(pliant_ir::tir::ExprData::Select(less, sum, y));
        }
        StageWrite { buffer: c, indices: v.to_vec(), init: None, value }
    });
    build(&f)
}

#[test]
fn arithmetic_on_16_bit_floats_rounds_after_each_operation() {
    let pattern = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    let n = 20_011;
    for (op, apply) in OPERATORS {
        for nested in [false, true] {
            macro_rules! check {
                ($ty:ty) => {
                    let a: Vec<$ty> = (0..n).map(|i| <$ty>::from_bits(pattern(i) as u16)).collect();
                    let b: Vec<$ty> =
                        (0..n).map(|i| <$ty>::from_bits(pattern(i + n) as u16)).collect();
                    let mut c = vec![<$ty>::ZERO; n];
                    let k = arithmetic(<$ty as Elem>::DTYPE, op, nested);
                    k.run(vec![tensor(&a, &[n]), tensor(&b, &[n]), output(&mut c, &[n])]).unwrap();
                    for ((x, y), z) in a.iter().zip(&b).zip(&c) {
                        let (x, y) = (x.to_f32(), y.to_f32());
                        let mut want = <$ty>::from_f32(apply(x, y)).to_f32();
                        if nested {
                            want = <$ty>::from_f32(want + x).to_f32();
                            want = if x < y { want } else { y };
                        }
                        // The sign of the larger of two zeros is not compared.
                        let equal =
                            same_float(want, z.to_f32()) || want == 0.0 && z.to_f32() == 0.0;
                        assert!(equal, "{op:?} of {x} and {y} is {z}, not {want}");
                    }
                };
            }
            check!(f16);
            check!(bf16);
        }
    }
}

#[test]
fn multiplication_of_bytes_wraps() {
    let bytes: Vec<u8> = (0..=255).collect();
    for factor in [0u8, 3, 127, 128, 255] {
        let k = unary(DType::UInt8, DType::UInt8, |f, x| {
            let factor = f.const_of(factor.into(), DType::UInt8);
            f.mul(x, factor)
        });
        let got: Vec<u8> = run_vector_and_scalar(&k, &bytes);
        assert_eq!(got, bytes.iter().map(|x| x.wrapping_mul(factor)).collect::<Vec<_>>());
    }
}
