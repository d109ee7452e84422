//! The arguments of `pliant_convolve_int8` and `pliant_convolve_uint8`, and of those whose sums become float32 or bytes,
//! `pliant_convolve_int8_f32`, `pliant_convolve_int8_int8` and so on.

use pliant_ir::tir::{BinOp, Expr, PrimFunc};
use pliant_tensor::DType::{self, Float32, Int8, Int32, UInt8};

use super::{Arg, Count, Kernel, Operand, Step, given, of};
use Count::{Computed, Of};
use Step::One;

/// As messages name them.
const WHAT: &str = "a convolution of 8-bit integers";

const BATCH: usize = 0;
const CHANNELS: usize = 1;
const FILTERS: usize = 2;
const GROUPS: usize = 3;
const INPUT: usize = 4;
const OUTPUT: usize = 7;
const KERNEL: usize = 10;
const WIDTH: usize = 26;

const fn inputs(dtype: DType) -> Operand {
    of(dtype, &[(One, Computed(input))])
}

const fn outputs(dtype: DType) -> Operand {
    of(dtype, &[(One, Computed(output))])
}

const X: [Operand; 2] = [inputs(Int8), inputs(UInt8)];
const ZERO: Operand = given(23, Int32, &[]);
const QUADS: Operand = of(Int8, &[(One, Computed(quads))]);
const SUMS: Operand = of(Int32, &[(One, Of(FILTERS))]);
const ZEROS: Operand = given(28, Int32, &[(One, Of(FILTERS))]);
const TERMS: Operand = given(30, Int32, &[(One, Of(FILTERS))]);
const SCALE: Operand = given(32, Float32, &[]);
const FACTORS: Operand = given(34, Float32, &[(One, Of(FILTERS))]);
const BIAS: Operand = given(36, Float32, &[(One, Of(FILTERS))]);
const DIVISOR: Operand = given(41, Float32, &[]);
const SHIFT: Operand = given(43, Float32, &[]);
const OUT: [Operand; 4] = [outputs(Int32), outputs(Float32), outputs(Int8), outputs(UInt8)];

/// What every call begins with, and `M` arguments more, the last of which is the address of the results.
const fn args<const N: usize>(
    x: &'static Operand,
    more: &[Arg],
    out: &'static Operand,
) -> [Arg; N] {
    use Arg::{Positive, Read, Size, Write};
    let mut all = [Size; N];
    let mut at = KERNEL;
    while at < KERNEL + 9 {
        all[at] = Positive;
        at += 1;
    }
    all[GROUPS] = Positive;
    all[22] = Read(x);
    all[24] = Read(&ZERO);
    all[25] = Read(&QUADS);
    all[WIDTH] = Positive;
    all[27] = Read(&SUMS);
    all[29] = Read(&ZEROS);
    let mut at = 0;
    while at < more.len() {
        all[30 + at] = more[at];
        at += 1;
    }
    assert!(N == 31 + more.len(), "the kernel takes so many arguments");
    all[N - 1] = Write(out);
    all
}

/// What becomes of sums as float32.
const FINISH: [Arg; 11] = {
    use Arg::{Float, Read, Size};
    [
        Size,
        Read(&TERMS),
        Size,
        Read(&SCALE),
        Size,
        Read(&FACTORS),
        Size,
        Read(&BIAS),
        Size,
        Float,
        Float,
    ]
};

/// What becomes of sums as bytes.
const BYTES: [Arg; 17] = {
    use Arg::{Float, Read, Size};
    let mut all = [Size; 17];
    let mut at = 0;
    while at < FINISH.len() {
        all[at] = FINISH[at];
        at += 1;
    }
    all[12] = Read(&DIVISOR);
    all[14] = Read(&SHIFT);
    all[15] = Float;
    all[16] = Float;
    all
};

const fn kernel(name: &'static str, args: &'static [Arg]) -> Kernel {
    Kernel { name, what: WHAT, args }
}

/// Every one.
pub(super) const KERNELS: [Kernel; 8] = [
    kernel("pliant_convolve_int8", &args::<31>(&X[0], &[], &OUT[0])),
    kernel("pliant_convolve_uint8", &args::<31>(&X[1], &[], &OUT[0])),
    kernel("pliant_convolve_int8_f32", &args::<42>(&X[0], &FINISH, &OUT[1])),
    kernel("pliant_convolve_uint8_f32", &args::<42>(&X[1], &FINISH, &OUT[1])),
    kernel("pliant_convolve_int8_int8", &args::<48>(&X[0], &BYTES, &OUT[2])),
    kernel("pliant_convolve_int8_uint8", &args::<48>(&X[0], &BYTES, &OUT[3])),
    kernel("pliant_convolve_uint8_int8", &args::<48>(&X[1], &BYTES, &OUT[2])),
    kernel("pliant_convolve_uint8_uint8", &args::<48>(&X[1], &BYTES, &OUT[3])),
];

/// The factors of how many elements the input has.
fn input(_: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    [BATCH, INPUT, INPUT + 1, INPUT + 2, CHANNELS].map(|at| args[at]).into()
}

/// The factors of how many results there are.
fn output(_: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    [BATCH, OUTPUT, OUTPUT + 1, OUTPUT + 2, FILTERS].map(|at| args[at]).into()
}

/// The factors of how many bytes the weights have: groups, panels of each, quads of taps and channels of a group, columns of a
/// panel, four. Where each channel has a filter of its own panels have one column.
fn quads(f: &mut PrimFunc, args: &[Expr]) -> Vec<Expr> {
    let (one, three, four) = (f.int(1), f.int(3), f.int(4));
    // The bounds of the arguments are asserted; a group count of 0 must not be divided by before.
    let groups = f.binary(BinOp::Max, args[GROUPS], one);
    let width = f.binary(BinOp::Max, args[WIDTH], one);
    let filters = f.binary(BinOp::FloorDiv, args[FILTERS], groups);
    let channels = f.binary(BinOp::FloorDiv, args[CHANNELS], groups);
    let up = f.binary(BinOp::Sub, width, one);
    let up = f.add(filters, up);
    let panels = f.binary(BinOp::FloorDiv, up, width);
    let taps = [KERNEL, KERNEL + 1, KERNEL + 2].map(|at| args[at]);
    let inner = taps.into_iter().fold(channels, |inner, taps| f.mul(inner, taps));
    let inner = f.add(inner, three);
    let quads = f.binary(BinOp::FloorDiv, inner, four);
    vec![groups, panels, quads, width, four]
}
