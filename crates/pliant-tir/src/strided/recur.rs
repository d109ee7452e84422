//! The arguments of `pliant_recur_f32`.

use pliant_tensor::DType::{Float32, Int64};

use super::{Arg, Count, Operand, Step, given, operand};
use Count::{Of, Product};
use Step::One;

const STEPS: usize = 1;
const BATCH: usize = 2;
const INPUT: usize = 3;
const HIDDEN: usize = 4;
const DIRECTIONS: usize = 5;

const X: Operand = operand(&[(Step::Of(8), Of(STEPS)), (Step::Of(9), Of(BATCH)), (One, Of(INPUT))]);
const W: Operand = operand(&[(One, Product(&[DIRECTIONS, INPUT, 11]))]);
const R: Operand = operand(&[(One, Product(&[DIRECTIONS, HIDDEN, 13]))]);
const BIAS: Operand = operand(&[(One, Product(&[DIRECTIONS, 15]))]);
const PEEPHOLES: Operand = given(16, Float32, &[(One, Product(&[DIRECTIONS, 18]))]);
const LENGTHS: Operand = given(19, Int64, &[(One, Of(BATCH))]);
const Y: Operand = operand(&[
    (Step::Of(22), Of(STEPS)),
    (Step::Of(23), Of(DIRECTIONS)),
    (Step::Of(24), Of(BATCH)),
    (One, Of(HIDDEN)),
]);
/// The dims of all states.
const STATE: &[(Step, Count)] =
    &[(Step::Of(32), Of(DIRECTIONS)), (Step::Of(33), Of(BATCH)), (One, Of(HIDDEN))];
const FIRST_OUTPUT: Operand = given(25, Float32, STATE);
const FIRST_CELL: Operand = given(27, Float32, STATE);
const LAST_OUTPUT: Operand = operand(STATE);
const LAST_CELL: Operand = given(30, Float32, STATE);

/// In order.
pub(super) const ARGS: &[Arg] = {
    use Arg::{Read, Size, Stride, Write};
    &[
        Size,
        Size,
        Size,
        Size,
        Size,
        Size,
        Size,
        Read(&X),
        Stride,
        Stride,
        Read(&W),
        Size,
        Read(&R),
        Size,
        Read(&BIAS),
        Size,
        Size,
        Read(&PEEPHOLES),
        Size,
        Size,
        Read(&LENGTHS),
        Write(&Y),
        Stride,
        Stride,
        Stride,
        Size,
        Read(&FIRST_OUTPUT),
        Size,
        Read(&FIRST_CELL),
        Write(&LAST_OUTPUT),
        Size,
        Write(&LAST_CELL),
        Stride,
        Stride,
    ]
};

const _: () = assert!(ARGS.len() == 34, "the kernel takes 34 arguments");
