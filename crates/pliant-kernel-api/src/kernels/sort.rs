//! The declaration of the kernel `sort`: sorting of rows.

use pliant_tensor::DType::{Float32, Int32, Int64};

use super::transpose::OTHER_DTYPES;
use crate::reference::{Args, Number, Result};
use crate::{Attr, AttrDefault, AttrType, Dims, Kernel, Operand};

const RESULTS: Dims = Dims::Fixed(&["*rows", "count"]);

/// The declaration of the kernel `sort`: sorting, argsort and top-k of rows.
pub static KERNEL: Kernel = Kernel {
    name: "sort",
    doc: "Sorts each row, and returns `count` elements of the sorted row from index `first` on, with their positions in the \
          unsorted row: all, the first ones (ONNX `TopK`), or the median. The sort is stable. NaN is last in both \
          directions, or first (`nan_first`).",
    operands: &[
        Operand::input("x", Float32, Dims::Fixed(&["*rows", "columns"]), "the rows")
            .or(OTHER_DTYPES)
            .strided(),
        Operand::output("values", Float32, RESULTS, "the sorted elements")
            .or(OTHER_DTYPES)
            .strided()
            .optional(),
        Operand::output("positions", Int64, RESULTS, "the positions of the elements in their row")
            .or(&[Int32])
            .strided()
            .optional(),
    ],
    attrs: &[
        Attr::new(
            "descending",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether the order is descending",
        ),
        Attr::new(
            "first",
            AttrType::Int(0, i64::MAX),
            AttrDefault::Number(0),
            "the index of the first result in the sorted row",
        ),
        Attr::new(
            "nan_first",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether NaN is before all numbers instead of after them",
        ),
    ],
    derived: &[],
    relations: |call, sizes| {
        let (Some(x), values) = (call.operand("x"), call.operand("values")) else { return Ok(()) };
        if let Some(values) = values.filter(|values| values.dtype != x.dtype) {
            return Err(format!(
                "operand 'values' has data type {}, expected {}, the data type of operand 'x'",
                values.dtype, x.dtype
            ));
        }
        let (first, columns) = (call.int("first"), sizes.get("columns"));
        if let Some(positions) = call.operand("positions")
            && positions.dtype == Int32
            && columns > i64::from(i32::MAX)
        {
            return Err(format!(
                "operand 'positions' is int32, which cannot index rows of {columns} elements, expected int64"
            ));
        }
        let Some(count) = sizes.find("count").filter(|_| sizes.get("rows") > 0) else {
            return Ok(());
        };
        match first.checked_add(count).is_some_and(|end| end <= columns) {
            true => Ok(()),
            false => Err(format!(
                "the results contain {count} elements of each sorted row from index {first} (attribute 'first'), but the rows of \
                 operand 'x' have only {columns} elements"
            )),
        }
    },
    flops: |_, _| 0.0,
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (rows, columns) = (args.sizes.get("rows"), args.sizes.get("columns"));
    let Some(count) = args.sizes.find("count").filter(|count| *count > 0) else { return Ok(()) };
    let (first, descending) = (args.call.int("first"), args.call.int("descending") != 0);
    let nan_first = args.call.int("nan_first") != 0;
    let dtype = args.view("x")?.dtype;
    for i in 0..rows {
        args.step(columns as u64 + count as u64)?;
        let mut row = Vec::new();
        for j in 0..columns {
            row.push((args.read_at("x", &[i, j])?, j));
        }
        row.sort_by(|(a, _), (b, _)| match (a.is_nan(), b.is_nan()) {
            (false, false) if descending => b.compare(*a, dtype),
            (false, false) => a.compare(*b, dtype),
            (a, b) if nan_first => b.cmp(&a),
            (a, b) => a.cmp(&b),
        });
        for k in 0..count {
            let (element, position) = row[(first + k) as usize];
            if args.has("values") {
                args.set_at("values", &[i, k], element)?;
            }
            if args.has("positions") {
                args.set_at("positions", &[i, k], Number::Int(position))?;
            }
        }
    }
    Ok(())
}
