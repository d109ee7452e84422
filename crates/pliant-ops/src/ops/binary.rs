//! Two-operand elementwise operators. Operands broadcast as in NumPy.

use pliant_ir::DType;

use crate::decl::{OpDecl, Pattern};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::rules::{infer_broadcast, infer_compare, te_broadcast};
use crate::te::{self, Expr};

type Outputs = Result<Vec<te::Tensor>, LegalizeError>;

macro_rules! arithmetic {
    ($name:literal, $te:expr, $doc:literal) => {
        row!($name, infer_broadcast, $te, $doc)
    };
}

macro_rules! comparison {
    ($name:literal, $te:expr, $doc:literal) => {
        row!($name, infer_compare, $te, $doc)
    };
}

macro_rules! row {
    ($name:literal, $infer:expr, $te:expr, $doc:literal) => {
        OpDecl::new(concat!("relax.", $name), $infer, $doc)
            .operands(&["x1", "x2"])
            .te(Pattern::Broadcast, |ctx| te_broadcast(ctx, concat!("T_", $name), $te))
            .numpy($name)
    };
}

/// The operators of this file.
pub static DECLS: &[OpDecl] = &[
    arithmetic!("add", |a, b| a + b, "Sum.").onnx(&["Add"]),
    arithmetic!("subtract", |a, b| a - b, "Difference.").onnx(&["Sub"]),
    arithmetic!("multiply", |a, b| a * b, "Product.").onnx(&["Mul"]),
    arithmetic!("divide", |a, b| a / b, "Quotient; of integers, rounded towards zero.")
        .onnx(&["Div"]),
    arithmetic!("floor_divide", floor_divide, "Quotient, rounded towards minus infinity."),
    arithmetic!("mod", modulo, "Remainder with the sign of the divisor.").onnx(&["Mod"]),
    arithmetic!("floor_mod", modulo, "Remainder with the sign of the divisor.").numpy("mod"),
    OpDecl::new("relax.power", infer_broadcast, "Power.")
        .operands(&["x1", "x2"])
        .te(Pattern::Broadcast, power)
        .numpy("power")
        .onnx(&["Pow"]),
    arithmetic!("maximum", te::maximum, "The larger; NaN if either is NaN.").onnx(&["Max"]),
    arithmetic!("minimum", te::minimum, "The smaller; NaN if either is NaN.").onnx(&["Min"]),
    comparison!("equal", te::eq, "Whether equal.").onnx(&["Equal"]),
    comparison!("not_equal", te::ne, "Whether different."),
    comparison!("less", te::lt, "Whether less.").onnx(&["Less"]),
    comparison!("less_equal", te::le, "Whether less or equal.").onnx(&["LessOrEqual"]),
    comparison!("greater", te::gt, "Whether greater.").onnx(&["Greater"]),
    comparison!("greater_equal", te::ge, "Whether greater or equal.").onnx(&["GreaterOrEqual"]),
    comparison!("logical_and", te::and, "Whether both are not 0.").onnx(&["And"]),
    comparison!("logical_or", te::or, "Whether either is not 0.").onnx(&["Or"]),
];

fn floor_divide(a: &Expr, b: &Expr) -> Expr {
    if a.ty().dtype.is_float() { te::floor(&(a / b)) } else { te::floordiv(a, b) }
}

/// NumPy's remainder: of floats, that of C, moved to the divisor's sign.
fn modulo(a: &Expr, b: &Expr) -> Expr {
    if !a.ty().dtype.is_float() {
        return te::floormod(a, b);
    }
    let (a, b) = te::match_types(a, b);
    let zero = te::const_of(0.0, a.ty().dtype);
    let r = te::call(te::Intrin::Fmod, vec![a, b.clone()]);
    let moved = te::and(&te::ne(&r, &zero), &te::ne(&te::lt(&r, &zero), &te::lt(&b, &zero)));
    te::select(&moved, &(&r + &b), &r)
}

/// Small constant powers are products, which are exact and fast; integers go through float64.
fn power(ctx: &mut LegalizeCtx<'_>) -> Outputs {
    te_broadcast(ctx, "T_power", |a, b| {
        let (a, b) = te::match_types(a, b);
        let dtype = a.ty().dtype;
        if b.is_const(1) {
            return a;
        }
        if b.is_const(2) {
            return &a * &a;
        }
        if b.is_const(3) {
            return &(&a * &a) * &a;
        }
        if dtype.is_float() {
            return te::power(&a, &b);
        }
        let wide = te::power(&te::cast(&a, DType::Float64), &te::cast(&b, DType::Float64));
        te::cast(&wide, dtype)
    })
}
