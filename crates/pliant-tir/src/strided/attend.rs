//! The arguments of `pliant_attend_f32`.

use pliant_tensor::DType::{Bool, Float32};

use super::{Arg, Count, Operand, Step, given, operand};
use Count::Of;
use Step::One;

const BATCH: Count = Of(0);
const HEADS: Count = Of(1);
const KV_HEADS: Count = Of(2);
const QUERIES: Count = Of(3);
const KEYS: Count = Of(4);
const SIZE: Count = Of(5);
const VALUE_SIZE: Count = Of(6);

const Q: Operand =
    operand(&[(Step::Of(8), BATCH), (Step::Of(9), HEADS), (Step::Of(10), QUERIES), (One, SIZE)]);
const K: Operand =
    operand(&[(Step::Of(12), BATCH), (Step::Of(13), KV_HEADS), (Step::Of(14), KEYS), (One, SIZE)]);
const V: Operand = operand(&[
    (Step::Of(16), BATCH),
    (Step::Of(17), KV_HEADS),
    (Step::Of(18), KEYS),
    (One, VALUE_SIZE),
]);
const OUT: Operand = operand(&[
    (Step::Of(20), BATCH),
    (Step::Of(21), HEADS),
    (Step::Of(22), QUERIES),
    (One, VALUE_SIZE),
]);
const BIAS: Operand = given(
    25,
    Float32,
    &[(Step::Of(27), BATCH), (Step::Of(28), HEADS), (Step::Of(29), QUERIES), (Step::Of(30), KEYS)],
);
const MASK: Operand = given(
    35,
    Bool,
    &[(Step::Of(37), BATCH), (Step::Of(38), HEADS), (Step::Of(39), QUERIES), (Step::Of(40), KEYS)],
);

/// In order.
pub(super) const ARGS: &[Arg] = {
    use Arg::{Float, Number, Read, Size, Stride, Write};
    &[
        Size,
        Size,
        Size,
        Size,
        Size,
        Size,
        Size,
        Read(&Q),
        Stride,
        Stride,
        Stride,
        Read(&K),
        Stride,
        Stride,
        Stride,
        Read(&V),
        Stride,
        Stride,
        Stride,
        Write(&OUT),
        Stride,
        Stride,
        Stride,
        Float,
        Float,
        Size,
        Read(&BIAS),
        Stride,
        Stride,
        Stride,
        Stride,
        Size,
        Number,
        Size,
        Size,
        Size,
        Read(&MASK),
        Stride,
        Stride,
        Stride,
        Stride,
        Float,
        Size,
    ]
};
