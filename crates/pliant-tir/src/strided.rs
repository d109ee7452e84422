//! What the kernels reach that take operands with strides: one table of the functions and their arguments.
//!
//! | function | what it is | defined in |
//! |---|---|---|
//! | `pliant_attend_f32` | attention | `pliant_kernels::attention` |

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc};
use pliant_tensor::DType;

use crate::flatten::linear;

/// Sizes at most, and strides and other numbers at most: the last element of four dims then fits 63 bits.
const LIMITS: (i64, i64) = (1 << 28, 1 << 32);

/// What an argument is.
#[derive(Clone, Copy, Debug)]
enum Arg {
    /// A size: not negative.
    Size,
    /// A stride: not negative.
    Stride,
    /// A number of either sign.
    Number,
    /// A float.
    Float,
    /// The address of elements that are read.
    Read(&'static Operand),
    /// The address of elements that are written, of which no other address may be.
    Write(&'static Operand),
}

/// Elements with strides.
#[derive(Debug)]
struct Operand {
    dtype: DType,
    /// The dims: positions of stride and size among the arguments. No stride is for neighbours.
    dims: &'static [(Option<usize>, usize)],
    /// The argument that is 0 where the elements are not there.
    given: Option<usize>,
}

/// A kernel.
struct Kernel {
    name: &'static str,
    /// As messages name it.
    what: &'static str,
    args: &'static [Arg],
}

const fn operand(dims: &'static [(Option<usize>, usize)]) -> Operand {
    Operand { dtype: DType::Float32, dims, given: None }
}

mod attend {
    use super::{Arg, Operand, operand};

    // Positions of the sizes.
    const BATCH: usize = 0;
    const HEADS: usize = 1;
    const KV_HEADS: usize = 2;
    const QUERIES: usize = 3;
    const KEYS: usize = 4;
    const SIZE: usize = 5;
    const VALUE_SIZE: usize = 6;

    const Q: Operand =
        operand(&[(Some(8), BATCH), (Some(9), HEADS), (Some(10), QUERIES), (None, SIZE)]);
    const K: Operand =
        operand(&[(Some(12), BATCH), (Some(13), KV_HEADS), (Some(14), KEYS), (None, SIZE)]);
    const V: Operand =
        operand(&[(Some(16), BATCH), (Some(17), KV_HEADS), (Some(18), KEYS), (None, VALUE_SIZE)]);
    const OUT: Operand =
        operand(&[(Some(20), BATCH), (Some(21), HEADS), (Some(22), QUERIES), (None, VALUE_SIZE)]);
    const BIAS: Operand = Operand {
        given: Some(25),
        ..operand(&[(Some(27), BATCH), (Some(28), HEADS), (Some(29), QUERIES), (Some(30), KEYS)])
    };

    pub(super) const ARGS: &[Arg] = {
        use Arg::{Float, Number, Read, Size, Stride, Write};
        &[
            Size,
            Size,
            Size,
            Size,
            Size,
            Size,
            Size, //
            Read(&Q),
            Stride,
            Stride,
            Stride, //
            Read(&K),
            Stride,
            Stride,
            Stride, //
            Read(&V),
            Stride,
            Stride,
            Stride, //
            Write(&OUT),
            Stride,
            Stride,
            Stride, //
            Float,
            Float, //
            Size,
            Read(&BIAS),
            Stride,
            Stride,
            Stride,
            Stride, //
            Size,
            Number,
            Size,
            Size,
        ]
    };
}

const KERNELS: &[Kernel] =
    &[Kernel { name: "pliant_attend_f32", what: "an attention", args: attend::ARGS }];

/// The kernel that a call of a linked function names.
fn kernel(f: &PrimFunc, args: &[Expr]) -> Option<&'static Kernel> {
    match args.first().map(|&e| f.expr(e)) {
        Some(ExprData::Str(name)) => KERNELS.iter().find(|k| k.name == &**name),
        _ => None,
    }
}

/// What a call is, as messages name it, where it is one of a kernel of the table.
pub fn kind(f: &PrimFunc, args: &[Expr]) -> Option<&'static str> {
    kernel(f, args).map(|k| k.what)
}

/// Whether a call is of a kernel of the table that only reads a buffer.
pub fn only_reads(f: &PrimFunc, args: &[Expr], buffer: Buffer) -> bool {
    let Some(kernel) = kernel(f, args) else { return false };
    let of_buffer = |e: Expr| match f.expr(e) {
        ExprData::Call(Intrin::AddressOf, element, _) => {
            matches!(f.expr(element[0]), ExprData::Load(b, _) if *b == buffer)
        }
        _ => false,
    };
    let mut pairs = args[1..].iter().zip(kernel.args);
    pairs.all(|(&e, arg)| !matches!(arg, Arg::Write(_)) || !of_buffer(e))
}

/// The conditions under which a call of a kernel of the table stays inside its buffers; `None` where it is no such call.
pub fn reach(f: &mut PrimFunc, args: &[Expr]) -> Option<Vec<Expr>> {
    let kernel = kernel(f, args)?;
    let args = &args[1..];
    if args.len() != kernel.args.len() {
        return None;
    }
    let (mut conditions, mut read, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for (&arg, kind) in args.iter().zip(kernel.args) {
        let float = f.expr_ty(arg).dtype == DType::Float64;
        match kind {
            Arg::Size => conditions.push(within(f, arg, 0, LIMITS.0)),
            Arg::Stride => conditions.push(within(f, arg, 0, LIMITS.1)),
            Arg::Number => conditions.push(within(f, arg, -LIMITS.1, LIMITS.1)),
            Arg::Float if float => {}
            Arg::Float => return None,
            Arg::Read(operand) | Arg::Write(operand) => {
                let (buffer, inside) = inside(f, args, arg, operand)?;
                conditions.push(inside);
                match kind {
                    Arg::Write(_) => written.push(buffer),
                    _ => read.push(buffer),
                }
            }
        }
    }
    let alone = |b: &Buffer| !read.contains(b) && written.iter().filter(|w| *w == b).count() == 1;
    written.iter().all(alone).then_some(conditions)
}

/// Whether a number lies between two.
fn within(f: &mut PrimFunc, e: Expr, least: i64, most: i64) -> Expr {
    let (least, most) = (f.int(least), f.int(most));
    let low = f.binary(BinOp::Le, least, e);
    let high = f.binary(BinOp::Le, e, most);
    f.binary(BinOp::And, low, high)
}

/// The buffer of an operand, and that its elements lie in it.
fn inside(
    f: &mut PrimFunc,
    args: &[Expr],
    address: Expr,
    operand: &Operand,
) -> Option<(Buffer, Expr)> {
    let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(address).clone() else {
        return None;
    };
    let ExprData::Load(buffer, indices) = f.expr(*element.first()?).clone() else { return None };
    if f.buffer(buffer).dtype != operand.dtype || !f.buffer(buffer).strides.is_empty() {
        return None;
    }
    let (zero, one) = (f.int(0), f.int(1));
    let total = f.buffer(buffer).shape.clone().into_iter().fold(one, |total, d| f.mul(total, d));
    let first = linear(f, buffer, &indices).ok()?;
    let low = f.binary(BinOp::Le, zero, first);
    let (mut last, mut empty) = (first, None);
    for &(stride, size) in operand.dims {
        let (stride, size) = (stride.map_or(one, |at| args[at]), args[size]);
        let none = f.binary(BinOp::Le, size, zero);
        empty = Some(empty.map_or(none, |e| f.binary(BinOp::Or, e, none)));
        let steps = f.binary(BinOp::Sub, size, one);
        let steps = f.mul(steps, stride);
        last = f.add(last, steps);
    }
    // Elements that are not below the end cannot wrap around: sizes and strides are within the limit.
    let start = f.binary(BinOp::Le, first, total);
    let high = f.binary(BinOp::Lt, last, total);
    let fits = f.binary(BinOp::And, start, high);
    let fits = f.binary(BinOp::And, low, fits);
    let mut holds = f.binary(BinOp::Or, empty?, fits);
    if let Some(given) = operand.given {
        let absent = f.binary(BinOp::Eq, args[given], zero);
        holds = f.binary(BinOp::Or, absent, holds);
    }
    Some((buffer, holds))
}
