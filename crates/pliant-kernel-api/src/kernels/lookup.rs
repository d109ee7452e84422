//! The declaration of the kernel `lookup`: a function of 8-bit integers as a table of 256 results.

use pliant_tensor::DType::{Int8, UInt8};

use crate::reference::{Args, Result};
use crate::{Dims, Kernel, Operand};

const ELEMENTS: Dims = Dims::Fixed(&["*elements"]);
/// The number of entries of a table: one for each value of an 8-bit integer.
pub const ENTRIES: i64 = 256;

/// The declaration of the kernel `lookup`: a function of 8-bit integers as a table of 256 results.
pub static KERNEL: Kernel = Kernel {
    name: "lookup",
    doc: "Applies a function of 8-bit integers to each element: `out[i] = table[x[i]]`. A negative int8 element `x` reads the \
          entry `256 + x`.",
    operands: &[
        Operand::input("x", UInt8, ELEMENTS, "the arguments of the function").or(&[Int8]),
        Operand::input(
            "table",
            UInt8,
            Dims::Fixed(&["entries"]),
            "the result for each of the 256 arguments",
        )
        .or(&[Int8]),
        Operand::output("out", UInt8, ELEMENTS, "the results").or(&[Int8]),
    ],
    attrs: &[],
    derived: &[],
    relations: |call, sizes| {
        let entries = sizes.get("entries");
        if entries != ENTRIES {
            return Err(format!(
                "operand 'table' has {entries} entries, expected {ENTRIES}, one for each 8-bit number"
            ));
        }
        let (Some(table), Some(out)) = (call.operand("table"), call.operand("out")) else {
            return Ok(());
        };
        match table.dtype == out.dtype {
            true => Ok(()),
            false => Err(format!(
                "operand 'out' is {}, expected {}, the data type of operand 'table'",
                out.dtype, table.dtype
            )),
        }
    },
    flops: |_, _| 0.0,
    reference,
};

fn reference(args: &mut Args<'_>) -> Result<()> {
    for i in 0..args.sizes.get("*elements") {
        args.step(1)?;
        let x = args.read_at("x", &[i])?.int()?;
        let result = args.read_at("table", &[x.rem_euclid(ENTRIES)])?;
        args.set_at("out", &[i], result)?;
    }
    Ok(())
}
