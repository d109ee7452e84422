//! The arguments of products by constants of fewer bits: `pliant_product_bytes_f32`, `pliant_product_nibbles_f32` and
//! `pliant_product_bfloat16_f32`.

use pliant_ir::tir::{BinOp, Expr, PrimFunc};
use pliant_tensor::DType::{BFloat16, Float32, Int8, UInt8};

use super::{Arg, Count, Operand, Step, given, of, operand};
use Count::{Computed, Of};
use Step::One;

/// As messages name them.
pub(super) const WHAT: &str = "a product by a constant of fewer bits";

const ROWS: Count = Of(0);
const COLUMNS: usize = 1;
const INNER: usize = 2;
const WIDTH: usize = 6;
const GROUP: usize = 7;

const LEFT: Operand = operand(&[(Step::Of(4), ROWS), (One, Of(INNER))]);
const BYTES: Operand = of(Int8, &[(One, Computed(rows))]);
const NIBBLES: Operand = of(UInt8, &[(One, Computed(pairs))]);
const HALVES: Operand = of(BFloat16, &[(One, Computed(words))]);
const SCALES: Operand = operand(&[(One, Computed(groups))]);
const ZEROS: Operand = given(9, Float32, &[(One, Computed(groups))]);
const OUT: Operand = operand(&[(Step::Of(12), ROWS), (One, Of(COLUMNS))]);
const OUT_OF_HALVES: Operand = operand(&[(Step::Of(8), ROWS), (One, Of(COLUMNS))]);

const fn args(right: &'static Operand) -> [Arg; 13] {
    use Arg::{Positive, Read, Size, Stride, Write};
    [
        Size,
        Size,
        Size,
        Read(&LEFT),
        Stride,
        Read(right),
        Positive,
        Positive,
        Read(&SCALES),
        Size,
        Read(&ZEROS),
        Write(&OUT),
        Stride,
    ]
}

/// In order.
pub(super) const OF_BYTES: &[Arg] = &args(&BYTES);
pub(super) const OF_NIBBLES: &[Arg] = &args(&NIBBLES);
pub(super) const OF_BFLOAT16: &[Arg] = {
    use Arg::{Positive, Read, Size, Stride, Write};
    &[Size, Size, Size, Read(&LEFT), Stride, Read(&HALVES), Positive, Write(&OUT_OF_HALVES), Stride]
};

/// A quotient rounded up. The bounds of the arguments are asserted; 0 must not be divided by before.
fn up(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    let one = f.int(1);
    let b = f.binary(BinOp::Max, b, one);
    let more = f.binary(BinOp::Sub, b, one);
    let sum = f.add(a, more);
    f.binary(BinOp::FloorDiv, sum, b)
}

/// Panels, rows of each by `unit`, columns of a panel.
fn panels(f: &mut PrimFunc, args: &[Expr], unit: Expr) -> Vec<Expr> {
    let panels = up(f, args[COLUMNS], args[WIDTH]);
    let rows = up(f, args[INNER], unit);
    vec![panels, rows, args[WIDTH]]
}

fn rows(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    let one = f.int(1);
    panels(f, args, one)
}

fn pairs(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    let two = f.int(2);
    panels(f, args, two)
}

fn words(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    let two = f.int(2);
    let mut all = panels(f, args, two);
    all.push(two);
    all
}

fn groups(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    panels(f, args, args[GROUP])
}
