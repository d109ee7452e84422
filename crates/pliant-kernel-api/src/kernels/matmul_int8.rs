//! The declaration of the kernel `matmul_int8`: matrix products of 8-bit integers.

use pliant_tensor::DType::{Float32, Int8, Int32, UInt8};

use super::activation;
use crate::reference::{Args, Number, Result, indices, round_f32};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

const ROWS: Dims = Dims::Fixed(&["rows"]);
const COLUMNS: Dims = Dims::Fixed(&["columns"]);
const SCALAR: Dims = Dims::Fixed(&["*one"]);

/// The names of the dims of a packed matrix, and the functions that compute their sizes from the
/// numbers of rows and columns and the panel width.
pub(super) const PANELS: &[(&str, crate::DeriveSize)] = &[
    ("panels", |_, s| {
        let width = s.get("width");
        if width < 1 { None } else { Some(s.get("columns").checked_add(width - 1)? / width) }
    }),
    ("quads", |_, s| Some(s.get("inner").checked_add(3)? / 4)),
    ("quad", |_, _| Some(4)),
];

/// The derived dims of a packed matrix ([`PANELS`]), and the derived dim `one` of size 1, which operands with one element have.
const PANELS_AND_ONE: &[(&str, crate::DeriveSize)] =
    &[PANELS[0], PANELS[1], PANELS[2], ("one", |_, _| Some(1))];

/// The declaration of the kernel `matmul_int8`: matrix products of 8-bit integers.
pub static KERNEL: Kernel = Kernel {
    name: "matmul_int8",
    doc: "The product of 8-bit integers (ONNX `MatMulInteger`): `(x - x_zeros) @ (weight - weight_zeros)`. A float32 result is \
          `activation((product + terms) * row_scales * column_scales + bias)`. An 8-bit result is this float32 result divided \
          by `out_scale`, rounded to an integer with ties to even, plus `out_zero`, clipped to `out_low` and `out_high`. Sums \
          wrap around at 32 bits.",
    operands: &[
        Operand::input("x", Int8, Dims::Fixed(&["*rows", "inner"]), "the left operand")
            .or(&[UInt8]),
        Operand::input("x_zeros", Int32, ROWS, "zero points of rows; 0 if omitted")
            .strided()
            .optional(),
        Operand::input(
            "weight",
            Int8,
            Dims::Fixed(&["panels", "quads", "width", "quad"]),
            "panels of columns, packed by `pack_int8`",
        ),
        Operand::input("column_sums", Int32, COLUMNS, "sums of the columns of `weight`"),
        Operand::input("weight_zeros", Int32, COLUMNS, "zero points of columns; 0 if omitted")
            .optional(),
        Operand::input("terms", Int32, COLUMNS, "added to the product; not for an int32 result")
            .optional(),
        Operand::input("row_scales", Float32, ROWS, "factors of rows").strided().optional(),
        Operand::input("column_scales", Float32, COLUMNS, "factors of columns").optional(),
        Operand::input("bias", Float32, COLUMNS, "added to each row").optional(),
        Operand::input("out_scale", Float32, SCALAR, "scale of an 8-bit result; 1 if omitted")
            .optional(),
        Operand::input("out_zero", Float32, SCALAR, "zero point of an 8-bit result; 0 if omitted")
            .optional(),
        Operand::output("out", Int32, Dims::Fixed(&["*rows", "columns"]), "the product")
            .or(&[Float32, Int8, UInt8]),
    ],
    attrs: &[
        activation::KIND,
        activation::LOW,
        activation::HIGH,
        activation::SLOPE,
        activation::OFFSET,
        limit("out_low", "the minimum of an 8-bit result"),
        limit("out_high", "the maximum of an 8-bit result"),
    ],
    derived: PANELS_AND_ONE,
    relations,
    flops: |_, s| {
        2.0 * ["*rows", "columns", "inner"].iter().map(|name| s.get(name) as f64).product::<f64>()
    },
    reference,
};

fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    check_width("weight", sizes)?;
    check_float_operands(
        call,
        &["terms", "row_scales", "column_scales", "bias", "out_scale", "out_zero"],
    )
}

/// Declares a float attribute for a lower or upper limit of the results of a kernel. The default is 0.
pub(super) const fn limit(name: &'static str, doc: &'static str) -> Attr {
    Attr::new(name, AttrType::Float, AttrDefault::Float(0.0), doc)
}

/// Checks that the panels of an operand have 16, 32, 48 or 64 columns.
pub(super) fn check_width(operand: &str, sizes: &Sizes) -> Result<(), String> {
    let width = sizes.get("width");
    match (1..=64).contains(&width) && width % 16 == 0 {
        true => Ok(()),
        false => Err(format!(
            "operand '{operand}' is packed in panels of {width} columns, expected panels of 16, 32, 48 or 64 columns"
        )),
    }
}

/// Checks that a call with an int32 result omits the given operands and the activation, which are
/// allowed only with other result types.
pub(super) fn check_float_operands(call: &Call, operands: &[&str]) -> Result<(), String> {
    let is_int32 = call.operand("out").is_some_and(|view| view.dtype == Int32);
    let passed = operands.iter().find(|name| call.operand(name).is_some());
    match passed {
        Some(name) if is_int32 => {
            Err(format!(
                "operand '{name}' must be omitted, because operand 'out' is int32, which requires the plain sums of products"
            ))
        }
        None if is_int32 && call.int("activation") != 0 => {
            Err("attribute 'activation' must be omitted, because operand 'out' is int32, which requires the plain sums of products"
                .to_string())
        }
        _ => Ok(()),
    }
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let sizes = args.sizes;
    let [rows, columns, inner, width] =
        ["*rows", "columns", "inner", "width"].map(|name| sizes.get(name));
    let dtype = args.view("out")?.dtype;
    for [i, j] in indices([rows, columns]) {
        args.step(inner as u64 + 1)?;
        let x_zero = args.int_or("x_zeros", &[i], 0)?;
        let weight_zero = args.int_or("weight_zeros", &[j], 0)?;
        let mut sum = 0i64;
        for p in 0..inner {
            let left = args.read_at("x", &[i, p])?.int()?.wrapping_sub(x_zero);
            let right = args.read_at("weight", &[j / width, p / 4, j % width, p % 4])?.int()?;
            sum = sum.wrapping_add(left.wrapping_mul(right.wrapping_sub(weight_zero)));
        }
        // Sums wrap around at 32 bits.
        let sum = sum.wrapping_add(args.int_or("terms", &[j], 0)?) as i32;
        let value = if dtype == Int32 {
            Number::Int(sum.into())
        } else {
            let x = scale(args, sum, [("row_scales", i), ("column_scales", j)], j)?;
            if dtype == Float32 { Number::Float(x) } else { requantize(args, x)? }
        };
        args.set_at("out", &[i, j], value)?;
    }
    Ok(())
}

/// Converts an int32 element of a matmul to a float32 result: multiplies it by up to two scales, adds the bias, and
/// applies the activation. `factors` contains the name of each scale operand and the index of the scale in it. `column`
/// is the index of the bias. Omitted operands are skipped.
pub(super) fn scale(
    args: &Args<'_>,
    sum: i32,
    factors: [(&str, i64); 2],
    column: i64,
) -> Result<f64> {
    let mut x = round_f32(sum.into());
    for (name, at) in factors {
        if args.has(name) {
            x = round_f32(x * args.get_at(name, &[at])?);
        }
    }
    if args.has("bias") {
        x = round_f32(x + args.get_at("bias", &[column])?);
    }
    Ok(round_f32(activation::apply(args.call, x)))
}

/// Requantizes a float32 value to the 8-bit integer type of the result: divides it by the scale, rounds it to the
/// nearest integer (ties to even), adds the zero point, and clips it. NaN becomes 0.
pub(super) fn requantize(args: &Args<'_>, x: f64) -> Result<Number> {
    let x = round_f32(x / args.get_or("out_scale", &[0], 1.0)?).round_ties_even();
    let x = round_f32(x + args.get_or("out_zero", &[0], 0.0)?);
    let (low, high) = (args.call.float("out_low"), args.call.float("out_high"));
    Ok(Number::Int(if x.is_nan() { 0 } else { x.max(low).min(high) as i64 }))
}
