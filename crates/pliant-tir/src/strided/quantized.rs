//! The arguments of `pliant_product_int8` and `pliant_product_uint8`, and of those that give float32, `pliant_product_int8_f32`
//! and `pliant_product_uint8_f32`.

use pliant_ir::tir::{BinOp, Expr, PrimFunc};
use pliant_tensor::DType::{self, Float32, Int8, Int32, UInt8};

use super::{Arg, Count, Operand, Step, given, of};
use Count::Of;
use Step::One;

/// As messages name them.
pub(super) const WHAT: &str = "a product of 8-bit integers";

const ROWS: Count = Of(0);
const COLUMNS: Count = Of(1);
const INNER: usize = 2;
const WIDTH: usize = 9;

const fn left(dtype: DType) -> Operand {
    of(dtype, &[(Step::Of(4), ROWS), (One, Of(INNER))])
}

const LEFT: [Operand; 2] = [left(Int8), left(UInt8)];
const LEFT_ZEROS: Operand = given(5, Int32, &[(Step::Of(7), ROWS)]);
const QUADS: Operand = of(Int8, &[(One, Count::Computed(quads))]);
const SUMS: Operand = of(Int32, &[(One, COLUMNS)]);
const ZEROS: Operand = given(11, Int32, &[(One, COLUMNS)]);
const OUT: Operand = of(Int32, &[(Step::Of(14), ROWS), (One, COLUMNS)]);
const ROW_SCALES: Operand = given(13, Float32, &[(Step::Of(15), ROWS)]);
const COLUMN_SCALES: Operand = given(16, Float32, &[(One, COLUMNS)]);
const BIAS: Operand = given(18, Float32, &[(One, COLUMNS)]);
const OUT_SCALED: Operand = of(Float32, &[(Step::Of(24), ROWS), (One, COLUMNS)]);

const fn args(left: &'static Operand) -> [Arg; 15] {
    use Arg::{Positive, Read, Size, Stride, Write};
    [
        Size,
        Size,
        Size,
        Read(left),
        Stride,
        Size,
        Read(&LEFT_ZEROS),
        Stride,
        Read(&QUADS),
        Positive,
        Read(&SUMS),
        Size,
        Read(&ZEROS),
        Write(&OUT),
        Stride,
    ]
}

const fn scaled(left: &'static Operand) -> [Arg; 25] {
    use Arg::{Float, Positive, Read, Size, Stride, Write};
    [
        Size,
        Size,
        Size,
        Read(left),
        Stride,
        Size,
        Read(&LEFT_ZEROS),
        Stride,
        Read(&QUADS),
        Positive,
        Read(&SUMS),
        Size,
        Read(&ZEROS),
        Size,
        Read(&ROW_SCALES),
        Stride,
        Size,
        Read(&COLUMN_SCALES),
        Size,
        Read(&BIAS),
        Size,
        Float,
        Float,
        Write(&OUT_SCALED),
        Stride,
    ]
}

/// In order.
pub(super) const SIGNED: &[Arg] = &args(&LEFT[0]);
pub(super) const UNSIGNED: &[Arg] = &args(&LEFT[1]);
pub(super) const SIGNED_SCALED: &[Arg] = &scaled(&LEFT[0]);
pub(super) const UNSIGNED_SCALED: &[Arg] = &scaled(&LEFT[1]);

/// The factors of how many bytes the panels have: panels, quads of the inner size, columns of a panel, four.
fn quads(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    let (one, three, four) = (f.int(1), f.int(3), f.int(4));
    // The bounds of the arguments are asserted; a width of 0 must not be divided by before.
    let width = f.binary(BinOp::Max, args[WIDTH], one);
    let up = f.binary(BinOp::Sub, width, one);
    let up = f.add(args[1], up);
    let panels = f.binary(BinOp::FloorDiv, up, width);
    let inner = f.add(args[INNER], three);
    let quads = f.binary(BinOp::FloorDiv, inner, four);
    vec![panels, quads, width, four]
}
