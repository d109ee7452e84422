//! The declarations of the kernels for matrix products (matmuls) of floats.

use pliant_tensor::DType::{Float32, Float64};

use crate::reference::{Args, Result, indices};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// The number of columns of a packed panel must be a multiple of this number, the number of float32
/// lanes of an AVX-512 register.
pub const PANEL_STEP: i64 = 16;
/// Maximum number of columns of a panel of a packed matrix.
pub const MAX_PANEL_COLUMNS: i64 = 64;

const ACCUMULATE: Attr = Attr::new(
    "accumulate",
    AttrType::Int(0, 1),
    AttrDefault::Number(0),
    "1 to add the product to the elements of `out`, 0 to overwrite them",
);

/// The declaration of the kernel `matmul`: batched matrix products.
pub static KERNEL: Kernel = Kernel {
    name: "matmul",
    doc: "A batch of matrix products (BLAS `gemm`): `out = x @ weight`. All operands have the same data type.",
    operands: &[
        Operand::input("x", Float32, Dims::Fixed(&["batch", "rows", "inner"]), "the left operands")
            .or(&[Float64])
            .strided(),
        Operand::input(
            "weight",
            Float32,
            Dims::Fixed(&["batch", "inner", "columns"]),
            "the right operands",
        )
        .or(&[Float64])
        .strided(),
        Operand::accumulator(
            "out",
            Float32,
            Dims::Fixed(&["batch", "rows", "columns"]),
            "the products",
        )
        .or(&[Float64])
        .strided(),
    ],
    attrs: &[ACCUMULATE],
    derived: &[],
    relations: |call, _| same_dtype(call),
    flops,
    reference,
};

/// The declaration of the kernel `matmul_packed`: a matrix product whose right operand is packed in
/// panels.
pub static PACKED: Kernel = Kernel {
    name: "matmul_packed",
    doc: "A matrix product (BLAS `gemm`) whose right operand is packed in panels of columns: `out = x @ weight`. All operands \
          have the same data type.",
    operands: &[
        Operand::input("x", Float32, Dims::Fixed(&["rows", "inner"]), "the left operand")
            .or(&[Float64])
            .strided(),
        Operand::input(
            "weight",
            Float32,
            Dims::Fixed(&["panels", "inner", "width"]),
            "panels of columns",
        )
        .or(&[Float64]),
        Operand::accumulator("out", Float32, Dims::Fixed(&["rows", "columns"]), "the product")
            .or(&[Float64])
            .strided_rows(),
    ],
    attrs: &[ACCUMULATE],
    derived: &[("panels", |_, s| {
        let width = s.get("width");
        if width < 1 { None } else { Some(s.get("columns").checked_add(width - 1)? / width) }
    })],
    relations: |call, sizes| {
        let width = sizes.get("width");
        if !(PANEL_STEP..=MAX_PANEL_COLUMNS).contains(&width) || width % PANEL_STEP != 0 {
            return Err(format!(
                "operand 'weight' is packed in panels of {width} columns, expected panels of 16, 32, 48 or 64 columns"
            ));
        }
        same_dtype(call)
    },
    flops,
    reference,
};

/// Checks that all operands of a call have the same data type.
fn same_dtype(call: &Call) -> Result<(), String> {
    let dtype = |name| call.operand(name).map(|view| view.dtype);
    let (x, weight, out) = (dtype("x"), dtype("weight"), dtype("out"));
    match [("weight", weight), ("out", out)].into_iter().find(|(_, dtype)| *dtype != x) {
        Some((name, Some(dtype))) => {
            let x = x.map_or(String::new(), |x| x.to_string());
            Err(format!("operand '{name}' is {dtype}, expected {x}, the data type of operand 'x'"))
        }
        _ => Ok(()),
    }
}

fn flops(_: &Call, sizes: &Sizes) -> f64 {
    let size = |name| sizes.find(name).map_or(1.0, |n| n as f64);
    2.0 * size("batch") * size("rows") * size("columns") * size("inner")
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let [batch, rows, columns, inner] =
        ["batch", "rows", "columns", "inner"].map(|name| args.sizes.find(name).unwrap_or(1));
    let width = args.sizes.find("width");
    let accumulates = args.call.int("accumulate") != 0;
    for [i, row, column] in indices([batch, rows, columns]) {
        let at = [("batch", i), ("rows", row), ("columns", column)];
        args.step(inner as u64 + 1)?;
        let mut sum = if accumulates { args.get("out", &at)? } else { 0.0 };
        for p in 0..inner {
            let x = args.get("x", &[("batch", i), ("rows", row), ("inner", p)])?;
            let weight = match width {
                Some(width) => {
                    [("panels", column / width), ("inner", p), ("width", column % width)]
                }
                None => [("batch", i), ("inner", p), ("columns", column)],
            };
            sum += x * args.get("weight", &weight)?;
        }
        args.set("out", &at, sum)?;
    }
    Ok(())
}
