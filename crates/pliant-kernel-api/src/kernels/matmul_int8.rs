//! The declaration of the kernel `matmul_int8`: matrix products of 8-bit integers.

use pliant_tensor::DType::{Float32, Int8, Int32, UInt8};

use super::activation;
use crate::reference::{Args, Number, Result, indices, round_f32};
use crate::{Call, Dims, Kernel, Operand, Sizes};

const ROWS: Dims = Dims::Fixed(&["rows"]);
const COLUMNS: Dims = Dims::Fixed(&["columns"]);

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

/// The declaration of the kernel `matmul_int8`: matrix products of 8-bit integers.
pub static KERNEL: Kernel = Kernel {
    name: "matmul_int8",
    doc: "The product of 8-bit integers (ONNX `MatMulInteger`): `(x - x_zeros) @ (weight - weight_zeros)`. A float32 result is \
          `activation(product * row_scales * column_scales + bias)`. Sums wrap around at 32 bits.",
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
        Operand::input("row_scales", Float32, ROWS, "factors of rows").strided().optional(),
        Operand::input("column_scales", Float32, COLUMNS, "factors of columns").optional(),
        Operand::input("bias", Float32, COLUMNS, "added to each row").optional(),
        Operand::output("out", Int32, Dims::Fixed(&["*rows", "columns"]), "the product")
            .or(&[Float32]),
    ],
    attrs: &[
        activation::KIND,
        activation::LOW,
        activation::HIGH,
        activation::SLOPE,
        activation::OFFSET,
    ],
    derived: PANELS,
    relations,
    flops: |_, s| {
        2.0 * ["*rows", "columns", "inner"].iter().map(|name| s.get(name) as f64).product::<f64>()
    },
    reference,
};

fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    check_width("weight", sizes)?;
    check_float_operands(call, &["row_scales", "column_scales", "bias"])
}

/// Checks that the panels of an operand have 16, 32, 48 or 64 columns.
pub(super) fn check_width(operand: &str, sizes: &Sizes) -> Result<(), String> {
    let width = sizes.get("width");
    match (1..=64).contains(&width) && width % 16 == 0 {
        true => Ok(()),
        false => Err(format!(
            "operand {operand} has panels of {width} columns, expected 16, 32, 48 or 64"
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
            Err(format!("operand {name} is not allowed, because operand out is int32"))
        }
        None if is_int32 && call.int("activation") != 0 => {
            Err("attribute activation is not allowed, because operand out is int32".to_string())
        }
        _ => Ok(()),
    }
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let sizes = args.sizes;
    let [rows, columns, inner, width] =
        ["*rows", "columns", "inner", "width"].map(|name| sizes.get(name));
    let is_int32 = args.view("out")?.dtype == Int32;
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
        let sum = sum as i32;
        let value = match is_int32 {
            true => Number::Int(sum.into()),
            false => scale(args, sum, [("row_scales", i), ("column_scales", j)], j)?.into(),
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
