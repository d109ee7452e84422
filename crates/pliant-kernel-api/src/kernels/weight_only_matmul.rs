//! The declarations of the kernels that multiply float32 matrices by weights of 4, 8 or 16 bits.

use pliant_tensor::DType::{self, BFloat16, Float32, Int8, UInt8};

use crate::reference::{Args, Result, indices};
use crate::{Attr, AttrDefault, AttrType, Call, DeriveSize, Dims, Kernel, Operand, Sizes};

const X: Operand =
    Operand::input("x", Float32, Dims::Fixed(&["*rows", "inner"]), "the left operand");
const OUT: Operand =
    Operand::output("out", Float32, Dims::Fixed(&["*rows", "columns"]), "the product");
const GROUPS: Dims = Dims::Fixed(&["panels", "groups", "width"]);
const SCALES: Operand =
    Operand::input("scales", Float32, GROUPS, "the scale of each group of rows of each column");
const ZEROS: Operand =
    Operand::input("zeros", Float32, GROUPS, "the zero points; 0 if omitted").optional();

/// Declares the operand `weight`, whose columns are packed in panels (blocks of adjacent columns that are stored contiguously).
const fn weight(dtype: DType, dims: Dims, doc: &'static str) -> Operand {
    Operand::input("weight", dtype, dims, doc)
}

const GROUP: Attr = Attr::new(
    "group",
    AttrType::Int(1, i64::MAX),
    AttrDefault::Required,
    "the number of rows of the weight that share a scale: an even number, or at least `inner`",
);

/// The derived dim `panels` of the packed weight and of the scales: the number of panels, which is the number of
/// columns divided by the panel width, rounded up.
const PANELS: (&str, DeriveSize) = ("panels", |_, s| div_ceil(s.get("columns"), s.get("width")));
const GROUP_COUNT: (&str, DeriveSize) = ("groups", |c, s| div_ceil(s.get("inner"), c.int("group")));
const WHOLE_ROWS: (&str, DeriveSize) = ("weight_rows", |_, s| Some(s.get("inner")));
const ROW_PAIRS: (&str, DeriveSize) = ("weight_rows", |_, s| div_ceil(s.get("inner"), 2));

/// The declaration of the kernel `matmul_int8_weight`: matrix products of float32 by int8 weights.
pub static INT8: Kernel = Kernel {
    name: "matmul_int8_weight",
    doc: "The product of float32 by a dequantized int8 weight: `out = x @ ((weight - zeros) * scales)`.",
    operands: &[
        X,
        weight(Int8, Dims::Fixed(&["panels", "weight_rows", "width"]), "panels of columns"),
        SCALES,
        ZEROS,
        OUT,
    ],
    attrs: &[GROUP],
    derived: &[PANELS, WHOLE_ROWS, GROUP_COUNT],
    relations: check_group,
    flops,
    reference,
};

/// The declaration of the kernel `matmul_int4_weight`: matrix products of float32 by unsigned 4-bit integer weights.
pub static INT4: Kernel = Kernel {
    name: "matmul_int4_weight",
    doc: "The product of float32 by a dequantized 4-bit weight, with elements from 0 to 15: `out = x @ ((weight - zeros) * scales)`.",
    operands: &[
        X,
        weight(
            UInt8,
            Dims::Fixed(&["panels", "weight_rows", "width"]),
            "panels of columns; a byte holds two rows, the first one in its low bits",
        ),
        SCALES,
        ZEROS,
        OUT,
    ],
    attrs: &[GROUP],
    derived: &[PANELS, ROW_PAIRS, GROUP_COUNT],
    relations: check_group,
    flops,
    reference,
};

/// The declaration of the kernel `matmul_bfloat16_weight`: matrix products of float32 by bfloat16
/// weights.
pub static BFLOAT16: Kernel = Kernel {
    name: "matmul_bfloat16_weight",
    doc: "The product of float32 by a bfloat16 weight, with sums in float32: `out = x @ weight`.",
    operands: &[
        X,
        weight(
            BFloat16,
            Dims::Fixed(&["panels", "weight_rows", "width", "pair"]),
            "panels of columns, in pairs of rows",
        ),
        OUT,
    ],
    attrs: &[],
    derived: &[PANELS, ROW_PAIRS, ("pair", |_, _| Some(2))],
    relations: |_, sizes| check_panel_width(sizes),
    flops,
    reference,
};

/// Returns the quotient of two integers, rounded up; `None` if the divisor is 0 or less.
fn div_ceil(a: i64, b: i64) -> Option<i64> {
    if b < 1 { None } else { Some(a / b + i64::from(a % b != 0)) }
}

/// Checks that the panels of the weight have 16, 32, 48 or 64 columns.
fn check_panel_width(sizes: &Sizes) -> Result<(), String> {
    let width = sizes.get("width");
    match [16, 32, 48, 64].contains(&width) {
        true => Ok(()),
        false => Err(format!(
            "operand 'weight' is packed in panels of {width} columns, expected panels of 16, 32, 48 or 64 columns"
        )),
    }
}

/// Checks that the attribute `group` (the number of adjacent rows of the weight that share a scale) is even or at least
/// the number of rows, and that the panel width is supported.
fn check_group(call: &Call, sizes: &Sizes) -> Result<(), String> {
    let (group, inner) = (call.int("group"), sizes.get("inner"));
    if group < inner && group % 2 != 0 {
        return Err(format!(
            "attribute 'group' is {group}, which is odd and less than {inner}, the number of rows of the weight; expected an even \
             number or at least {inner}"
        ));
    }
    check_panel_width(sizes)
}

fn flops(_: &Call, sizes: &Sizes) -> f64 {
    let size = |name: &str| sizes.get(name) as f64;
    2.0 * size("*rows") * size("columns") * size("inner")
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let sizes = args.sizes;
    let [rows, columns, inner, width] =
        ["*rows", "columns", "inner", "width"].map(|name| sizes.get(name));
    let has_scales = args.call.kernel.attr("group").is_some();
    for [i, j] in indices([rows, columns]) {
        args.step(inner as u64 + 1)?;
        let (panel, column) = (j / width, j % width);
        let mut sum = 0.0;
        for p in 0..inner {
            let (mut zero, mut scale) = (0.0, 1.0);
            if has_scales {
                let at = [panel, p / args.call.int("group"), column];
                scale = args.get_at("scales", &at)?;
                zero = args.get_or("zeros", &at, 0.0)?;
            }
            let x = args.get_at("x", &[i, p])?;
            sum += x * ((element(args, (panel, column), p)? - zero) * scale);
        }
        args.set_at("out", &[i, j], sum)?;
    }
    Ok(())
}

/// Returns an element of the packed weight as stored, before zero point and scale are applied.
fn element(args: &Args<'_>, (panel, column): (i64, i64), row: i64) -> Result<f64> {
    let at = |row: i64| args.read_at("weight", &[panel, row, column]);
    match args.call.kernel.name {
        "matmul_int8_weight" => Ok(at(row)?.int()? as f64),
        "matmul_int4_weight" => Ok((at(row / 2)?.int()? >> (4 * (row % 2)) & 15) as f64),
        _ => args.get_at("weight", &[panel, row / 2, column, row % 2]),
    }
}
