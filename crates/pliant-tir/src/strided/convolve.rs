//! The arguments of `pliant_convolve_f32`.

use pliant_ir::tir::{BinOp, Expr, PrimFunc};

use pliant_tensor::DType::Float32;

use super::{Arg, Count, Operand, Step, given, operand};
use Count::Of;
use Step::One;

const BATCH: usize = 0;
const CHANNELS: usize = 1;
const FILTERS: usize = 2;
const GROUPS: usize = 3;
const INPUT: usize = 4;
const OUTPUT: usize = 7;
const KERNEL: usize = 10;
const WIDTH: usize = 29;
const WINOGRAD: usize = 45;

const X: Operand = operand(&[
    (Step::Of(23), Of(BATCH)),
    (Step::Of(24), Of(CHANNELS)),
    (Step::Of(25), Of(INPUT)),
    (Step::Of(26), Of(INPUT + 1)),
    (Step::Of(27), Of(INPUT + 2)),
]);
const WEIGHTS: Operand = operand(&[(One, Count::Computed(panels))]);
const OUT: Operand = operand(&[
    (Step::Of(31), Of(BATCH)),
    (Step::Of(32), Of(FILTERS)),
    (Step::Of(33), Of(OUTPUT)),
    (Step::Of(34), Of(OUTPUT + 1)),
    (Step::Of(35), Of(OUTPUT + 2)),
]);
const BIAS: Operand = given(36, Float32, &[(One, Of(FILTERS))]);
const RESIDUAL: Operand = given(
    38,
    Float32,
    &[
        (Step::Of(40), Of(BATCH)),
        (Step::Of(41), Count::Product(&[OUTPUT, OUTPUT + 1, OUTPUT + 2])),
        (One, Of(FILTERS)),
    ],
);

/// In order.
pub(super) const ARGS: &[Arg] = {
    use Arg::{Float, Positive, Read, Size, Stride, Write};
    &[
        Size,
        Size,
        Size,
        Positive,
        Size,
        Size,
        Size,
        Size,
        Size,
        Size,
        Positive,
        Positive,
        Positive,
        Positive,
        Positive,
        Positive,
        Positive,
        Positive,
        Positive,
        Size,
        Size,
        Size,
        Read(&X),
        Stride,
        Stride,
        Stride,
        Stride,
        Stride,
        Read(&WEIGHTS),
        Positive,
        Write(&OUT),
        Stride,
        Stride,
        Stride,
        Stride,
        Stride,
        Size,
        Read(&BIAS),
        Size,
        Read(&RESIDUAL),
        Stride,
        Stride,
        Size,
        Float,
        Float,
        Size,
    ]
};

const _: () = assert!(ARGS.len() == 46, "the kernel takes 46 arguments");

/// The factors of how many weights there are: groups, panels of each, taps, channels of a group, columns of a panel. Where
/// each channel has a filter of its own the panels have one column, and these are all the weights there are, as where
/// groups share panels and have one of all their filters. Kernels that were turned have one or three taps more in both dims.
fn panels(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    let one = f.int(1);
    // The bounds of the arguments are asserted; a group count of 0 must not be divided by before.
    let groups = f.binary(BinOp::Max, args[GROUPS], one);
    let width = f.binary(BinOp::Max, args[WIDTH], one);
    let filters = f.binary(BinOp::FloorDiv, args[FILTERS], groups);
    let channels = f.binary(BinOp::FloorDiv, args[CHANNELS], groups);
    let up = f.binary(BinOp::Sub, width, one);
    let up = f.add(filters, up);
    let panels = f.binary(BinOp::FloorDiv, up, width);
    let most = f.int(3);
    let more = f.binary(BinOp::Min, args[WINOGRAD], most);
    let [down, across] = [KERNEL + 1, KERNEL + 2].map(|at| f.add(args[at], more));
    vec![groups, panels, args[KERNEL], down, across, channels, width]
}
