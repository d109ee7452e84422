//! The declaration of the kernel `pack_int8`, which packs 8-bit matrices for `matmul_int8`.

use pliant_tensor::DType::{Int8, Int32, UInt8};

use crate::reference::{Args, Number, Result, indices};
use crate::{Dims, Kernel, Operand};

/// The declaration of the kernel `pack_int8`: packing of 8-bit matrices into panels.
pub static KERNEL: Kernel = Kernel {
    name: "pack_int8",
    doc: "Packs a matrix of 8-bit integers for the kernel `matmul_int8`: `packed[p, q, c, r] = x[4 * q + r, width * p + c]`, or 0 \
          outside of the matrix. uint8 elements minus 128 are packed as int8.",
    operands: &[
        Operand::input("x", Int8, Dims::Fixed(&["inner", "columns"]), "the matrix")
            .or(&[UInt8])
            .strided(),
        Operand::output(
            "packed",
            Int8,
            Dims::Fixed(&["panels", "quads", "width", "quad"]),
            "panels of columns, in quads of rows",
        ),
        Operand::output(
            "column_sums",
            Int32,
            Dims::Fixed(&["columns"]),
            "sums of the columns of the packed matrix",
        ),
    ],
    attrs: &[],
    derived: super::matmul_int8::PANELS,
    relations: |_, sizes| super::matmul_int8::check_width("packed", sizes),
    flops: |_, _| 0.0,
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let size = |name: &str| args.sizes.get(name);
    let [inner, columns, width] = ["inner", "columns", "width"].map(size);
    let positions = indices([size("panels"), size("quads"), width, 4]);
    let offset = if args.view("x")?.dtype == UInt8 { 128 } else { 0 };
    let mut sums = vec![0i32; columns as usize];
    for [panel, quad, c, r] in positions {
        args.step(1)?;
        let (row, column) = (4 * quad + r, width * panel + c);
        let mut value = 0;
        if row < inner && column < columns {
            value = args.read_at("x", &[row, column])?.int()? - offset;
            let sum = &mut sums[column as usize];
            *sum = sum.wrapping_add(value as i32);
        }
        args.set_at("packed", &[panel, quad, c, r], Number::Int(value))?;
    }
    for (column, &sum) in (0..).zip(&sums) {
        args.set_at("column_sums", &[column], Number::Int(sum.into()))?;
    }
    Ok(())
}
