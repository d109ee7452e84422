//! Binary elementwise operators with NumPy broadcasting.

use pliant_ir::DType;
use pliant_tensor::CheckFailure;

use crate::broadcast::BroadcastTarget;
use crate::legalize::LegalizeCtx;
use crate::op_declaration::{InferResult, OpDecl, TeResult};
use crate::shared_operator_rules::{
    infer_arithmetic, infer_broadcast, infer_broadcast_float, infer_compare, require_bits,
    require_integer, te_broadcast, wide_float,
};
use crate::te::{self, Expr};
use crate::type_inference::InferCtx;

macro_rules! arithmetic {
    ($name:literal, $te:expr, $doc:literal) => {
        binary_op!($name, infer_arithmetic, $te, $doc)
    };
}

macro_rules! comparison {
    ($name:literal, $te:expr, $doc:literal) => {
        binary_op!($name, infer_compare, $te, $doc)
    };
}

macro_rules! binary_op {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.", $name), $infer, $doc)
            .operands(&["x1", "x2"])
            .te_broadcast(|ctx| te_broadcast(ctx, concat!("T_", $name), $te))
            .numpy($name)
    };
}

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    arithmetic!("add", |a, b| a + b, "`x1 + x2`.").commutative().onnx(&["Add"])
        .gradient(|g| g.broadcast([&|dy| dy, &|dy| dy])),
    arithmetic!("subtract", |a, b| a - b, "`x1 - x2`.").onnx(&["Sub"])
        .gradient(|g| g.broadcast([&|dy| dy, &|dy| -dy])),
    arithmetic!("multiply", |a, b| a * b, "`x1 * x2`.").commutative().onnx(&["Mul"])
        .gradient(|g| g.broadcast([&|dy| dy * g.arg(1), &|dy| dy * g.arg(0)])),
    arithmetic!("divide", |a, b| a / b, "`x1 / x2`. Integer quotients are rounded towards zero.")
        .onnx(&["Div"])
        .errors("the shapes cannot be broadcast, or an integer divisor is 0")
        .gradient(|g| g.broadcast([&|dy| dy / g.arg(1), &|dy| -dy * g.result() / g.arg(1)])),
    arithmetic!("floor_divide", floor_divide, "`x1 / x2`, rounded towards minus infinity.")
        .errors("the shapes cannot be broadcast, or an integer divisor is 0")
        .zero_gradient(),
    arithmetic!("mod", modulo, "The remainder of `x1 / x2`, with the sign of the divisor.").onnx(&["Mod"])
        .errors("the shapes cannot be broadcast, or an integer divisor is 0")
        .gradient(|g| g.broadcast([&|dy| dy, &|dy| -dy * (g.arg(0) / g.arg(1)).apply("relax.floor")])),
    arithmetic!("floor_mod", modulo, "The remainder of `x1 / x2`, with the sign of the divisor.").numpy("mod")
        .errors("the shapes cannot be broadcast, or an integer divisor is 0")
        .gradient(|g| g.broadcast([&|dy| dy, &|dy| -dy * (g.arg(0) / g.arg(1)).apply("relax.floor")])),
    OpDecl::new("relax.power", infer_arithmetic, "`x1` to the power `x2`.")
        .operands(&["x1", "x2"])
        .te_broadcast(power)
        .numpy("power")
        .onnx(&["Pow"])
        .errors("the shapes cannot be broadcast, or the integer 0 is raised to a negative power")
        .gradient(|g| g.broadcast([&|dy| dy * g.arg(1) * g.arg(0).power(g.arg(1) - 1.0), &|dy| dy * g.result() * g.arg(0).log()])),
    binary_op!("maximum", infer_broadcast, te::maximum, "The maximum of two elements; NaN if either is NaN.")
        .commutative()
        .onnx(&["Max"])
        .gradient(|g| {
            let is_second = || g.arg(0).less(g.arg(1));
            g.broadcast([
                &|dy| is_second().select(dy.constant(0.0), dy),
                &|dy| is_second().select(dy, dy.constant(0.0)),
            ])
        }),
    binary_op!("minimum", infer_broadcast, te::minimum, "The minimum of two elements; NaN if either is NaN.")
        .commutative()
        .onnx(&["Min"])
        .gradient(|g| {
            let is_first = || g.arg(0).less(g.arg(1));
            g.broadcast([
                &|dy| is_first().select(dy, dy.constant(0.0)),
                &|dy| is_first().select(dy.constant(0.0), dy),
            ])
        }),
    comparison!("equal", te::eq, "`x1 == x2`.").commutative().onnx(&["Equal"]),
    comparison!("not_equal", te::ne, "`x1 != x2`.").commutative(),
    comparison!("less", te::lt, "`x1 < x2`.").onnx(&["Less"]),
    comparison!("less_equal", te::le, "`x1 <= x2`.").onnx(&["LessOrEqual"]),
    comparison!("greater", te::gt, "`x1 > x2`.").onnx(&["Greater"]),
    comparison!("greater_equal", te::ge, "`x1 >= x2`.").onnx(&["GreaterOrEqual"]),
    comparison!("logical_and", |a, b| te::and(&is_nonzero(a), &is_nonzero(b)), "Whether both elements are nonzero.")
        .commutative()
        .onnx(&["And"]),
    comparison!("logical_or", |a, b| te::or(&is_nonzero(a), &is_nonzero(b)), "Whether at least one of the elements is nonzero.")
        .commutative()
        .onnx(&["Or"]),
    comparison!("logical_xor", |a, b| te::ne(&is_nonzero(a), &is_nonzero(b)), "Whether exactly one of the elements is nonzero.")
        .commutative()
        .onnx(&["Xor"]),
    binary_op!("bitwise_and", infer_bitwise, te::bitwise_and, "Bitwise and.")
        .commutative()
        .onnx(&["BitwiseAnd"]),
    binary_op!("bitwise_or", infer_bitwise, te::bitwise_or, "Bitwise or.")
        .commutative()
        .onnx(&["BitwiseOr"]),
    binary_op!("bitwise_xor", infer_bitwise, te::bitwise_xor, "Bitwise exclusive or.")
        .commutative()
        .onnx(&["BitwiseXor"]),
    binary_op!(
        "left_shift",
        infer_shift,
        te::shift_left,
        "Shifts left. The result is 0 if the distance is negative or at least the bit width."
    )
    .aliases(&["relax.bitwise_left_shift", "relax.shift_left"])
    .onnx(&["BitShift"]),
    binary_op!(
        "right_shift",
        infer_shift,
        te::shift_right,
        "Shifts right arithmetically. If the distance is negative or at least the bit width, the result consists of sign bits."
    )
    .aliases(&["relax.bitwise_right_shift", "relax.shift_right"])
    .onnx(&["BitShift"]),
    binary_op!("atan2", infer_broadcast_float, te::atan2, "The angle of the point (x2, x1), in radians.").numpy("arctan2")
        .gradient_from_te(),
    binary_op!("log_add_exp", infer_broadcast_float, log_add_exp, "`log(exp(x1) + exp(x2))`, computed without overflow.")
        .numpy("logaddexp")
        .gradient_from_te(),
];

/// The bool expression that is true if `x` is nonzero.
fn is_nonzero(x: &Expr) -> Expr {
    super::unary::convert(x, DType::Bool)
}

fn infer_bitwise(ctx: &mut InferCtx<'_>) -> InferResult {
    for i in [0, 1] {
        require_bits(ctx, i, &ctx.tensor(i)?)?;
    }
    infer_broadcast(ctx)
}

fn infer_shift(ctx: &mut InferCtx<'_>) -> InferResult {
    for i in [0, 1] {
        require_integer(ctx, i, &ctx.tensor(i)?)?;
    }
    infer_broadcast(ctx)
}

/// The logarithm of `e^a + e^b`, computed as the maximum plus `log1p(exp(-|a - b|))`. Equal operands are a special case, because
/// the difference of two infinities is NaN.
fn log_add_exp(a: &Expr, b: &Expr) -> Expr {
    let (a, b) = te::match_types(a, b);
    let dtype = a.ty().dtype;
    let compute_dtype = wide_float(dtype);
    let (a, b) = (te::cast(&a, compute_dtype), te::cast(&b, compute_dtype));
    let c = |v: f64| te::const_of(v, a.ty().dtype);
    let unequal = te::maximum(&a, &b) + te::log1p(&te::exp(&-te::abs(&(&a - &b))));
    te::cast(&te::select(&te::eq(&a, &b), &(&a + c(std::f64::consts::LN_2)), &unequal), dtype)
}

/// NumPy's floor division. For floats, the remainder is subtracted before the division, because the
/// plain quotient could round up to the next integer. A zero result has the sign of the quotient.
fn floor_divide(a: &Expr, b: &Expr) -> Expr {
    if !a.ty().dtype.is_float() {
        return te::floordiv(a, b);
    }
    let (a, b) = te::match_types(a, b);
    let c = |v: f64| te::const_of(v, a.ty().dtype);
    let (r, sign_differs) = remainder(&a, &b);
    let exact = te::round(&((&a - &r) / &b));
    let exact = te::select(&sign_differs, &(&exact - &c(1.0)), &exact);
    let near_zero = &(&a / &b) * &c(0.0);
    let exact = te::select(&te::eq(&exact, &c(0.0)), &near_zero, &exact);
    te::select(&te::eq(&b, &c(0.0)), &(&a / &b), &exact)
}

/// Returns C's remainder of floats, which has the sign of the dividend, and a condition: the
/// remainder is nonzero and its sign differs from the divisor's sign.
fn remainder(a: &Expr, b: &Expr) -> (Expr, Expr) {
    let zero = te::const_of(0.0, a.ty().dtype);
    let r = te::fmod(a, b);
    let sign_differs = te::and(&te::ne(&r, &zero), &te::ne(&te::lt(&r, &zero), &te::lt(b, &zero)));
    (r, sign_differs)
}

/// NumPy's remainder: for floats, C's remainder adjusted to the sign of the divisor.
fn modulo(a: &Expr, b: &Expr) -> Expr {
    if !a.ty().dtype.is_float() {
        return te::floormod(a, b);
    }
    let (a, b) = te::match_types(a, b);
    let (r, sign_differs) = remainder(&a, &b);
    te::select(&sign_differs, &(&r + &b), &r)
}

/// Lowers a power. Small constant powers are computed by multiplications, which are exact and fast; other integer powers by a
/// loop of multiplications.
fn power(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let exponent = ctx.scalar(ctx.args[1]).and_then(|e| e.as_int());
    if ctx.out_dtype(0)?.is_integer() && !exponent.is_some_and(|e| (1..=3).contains(&e)) {
        return integer_power(ctx);
    }
    te_broadcast(ctx, "T_power", |a, b| {
        let (a, b) = te::match_types(a, b);
        if b.is_const(1) {
            return a;
        }
        if b.is_const(2) {
            return &a * &a;
        }
        if b.is_const(3) {
            let base = te::cast(&a, wide_float(a.ty().dtype));
            return te::cast(&(&(&base * &base) * &base), a.ty());
        }
        te::power(&a, &b)
    })
}

/// Lowers powers of integers: exponentiation by squaring, with wrap-around. For negative exponents,
/// the result is nonzero only for the bases 1 and -1.
fn integer_power(ctx: &mut LegalizeCtx<'_>) -> TeResult {
    let (out, dtype, op) = (ctx.out_dims(0)?, ctx.out_dtype(0)?, ctx.decl.name);
    let mut target = BroadcastTarget::new(&out);
    let (base, exponent) = (target.operand(ctx, 0)?, target.operand(ctx, 1)?);
    let (shape, checks) = (ctx.size_list(&out), target.checks(ctx));
    let constant = |v: i64| te::int_of(v, dtype);
    let odd = |e: &Expr| te::ne(&te::bitwise_and(e, &constant(1)), &constant(0));
    Ok(te::extern_("power", &[(shape.clone(), dtype)], |b, out| {
        for check in &checks {
            b.assert(&check.cond, check.message.clone());
        }
        b.for_each(&shape, |b, i| {
            let x = b.let_("x", &te::cast(&base.at(i), dtype));
            let n = b.let_("n", &te::cast(&exponent.at(i), dtype));
            let (product, square, remaining) =
                (b.cell("product", &constant(1)), b.cell("square", &x), b.cell("left", &n));
            b.while_(&te::gt(&remaining.get(), &constant(0)), |b| {
                let next = te::select(
                    &odd(&remaining.get()),
                    &(product.get() * square.get()),
                    &product.get(),
                );
                b.set(&product, &next);
                b.set(&square, &(square.get() * square.get()));
                b.set(&remaining, &te::shift_right(&remaining.get(), &constant(1)));
            });
            let mut value = product.get();
            if !dtype.is_uint() {
                let negative = te::lt(&n, &constant(0));
                let message = CheckFailure::Division
                    .mark(&format!("{op}: cannot raise 0 to a negative power"));
                b.assert(&te::or(&te::not(&negative), &te::ne(&x, &constant(0))), message);
                let sign = te::select(&odd(&n), &constant(-1), &constant(1));
                let minus_one_power = te::select(&te::eq(&x, &constant(-1)), &sign, &constant(0));
                let negative_power =
                    te::select(&te::eq(&x, &constant(1)), &constant(1), &minus_one_power);
                value = te::select(&negative, &negative_power, &value);
            }
            b.store(&out[0], i, &value);
        });
    }))
}
