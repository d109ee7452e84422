//! What the kernels reach that take operands with strides: one table of the functions and their arguments.
//!
//! | function | what it is | defined in |
//! |---|---|---|
//! | `pliant_attend_f32` | attention | `pliant_kernels::attention` |
//! | `pliant_convolve_f32` | convolution | `pliant_kernels::convolution` |
//! | `pliant_convolve_int8`, `pliant_convolve_uint8` and those of these names with a type behind | convolution of 8-bit integers, with sums, or finished as float32 or bytes | `pliant_kernels::quantized::convolution` |
//! | `pliant_product_int8`, `pliant_product_uint8` | product of 8-bit integers | `pliant_kernels::quantized` |
//! | `pliant_product_int8_f32`, `pliant_product_uint8_f32` | the same, scaled and finished | `pliant_kernels::quantized` |

mod attend;
mod convolve;
mod integer_convolve;
mod quantized;

use pliant_ir::tir::sym::SymBridge;
use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc};
use pliant_sym::{Sym, SymArena};
use pliant_tensor::DType;

use crate::flatten::linear;

/// Sizes at most, and strides and other numbers at most: the last element of five dims then fits 63 bits.
const LIMITS: (i64, i64) = (1 << 28, 1 << 32);
/// Products of sizes at most, so that one more factor fits 63 bits.
const PRODUCT_LIMIT: i64 = 1 << 34;

/// What an argument is.
#[derive(Clone, Copy, Debug)]
enum Arg {
    /// A size: not negative.
    Size,
    /// A size: at least 1.
    Positive,
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

/// From an element to the next along a dim.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// They are neighbours.
    One,
    /// The argument at that position.
    Of(usize),
}

/// How many elements a dim has.
#[derive(Clone, Copy, Debug)]
enum Count {
    /// The argument at that position.
    Of(usize),
    /// The product of several.
    Product(&'static [usize]),
    /// The product of several numbers that follow from the arguments.
    Computed(fn(&mut PrimFunc, &[Expr]) -> Vec<Expr>),
}

/// Elements with strides.
#[derive(Debug)]
struct Operand {
    dims: &'static [(Step, Count)],
    /// The argument that is 0 where the elements are not there.
    given: Option<usize>,
    dtype: DType,
}

/// Elements of float32 that are always there.
const fn operand(dims: &'static [(Step, Count)]) -> Operand {
    of(DType::Float32, dims)
}

const fn of(dtype: DType, dims: &'static [(Step, Count)]) -> Operand {
    Operand { dims, given: None, dtype }
}

/// That is there where an argument is not 0.
const fn given(at: usize, dtype: DType, dims: &'static [(Step, Count)]) -> Operand {
    Operand { dims, given: Some(at), dtype }
}

/// A kernel.
struct Kernel {
    name: &'static str,
    /// As messages name it.
    what: &'static str,
    args: &'static [Arg],
}

const KERNELS: &[Kernel] = &[
    Kernel { name: "pliant_attend_f32", what: "an attention", args: attend::ARGS },
    Kernel { name: "pliant_convolve_f32", what: "a convolution", args: convolve::ARGS },
    Kernel { name: "pliant_product_int8", what: quantized::WHAT, args: quantized::SIGNED },
    Kernel { name: "pliant_product_uint8", what: quantized::WHAT, args: quantized::UNSIGNED },
    Kernel {
        name: "pliant_product_int8_f32",
        what: quantized::WHAT,
        args: quantized::SIGNED_SCALED,
    },
    Kernel {
        name: "pliant_product_uint8_f32",
        what: quantized::WHAT,
        args: quantized::UNSIGNED_SCALED,
    },
];

/// The kernel that a call of a linked function names.
fn kernel(f: &PrimFunc, args: &[Expr]) -> Option<&'static Kernel> {
    match args.first().map(|&e| f.expr(e)) {
        Some(ExprData::Str(name)) => {
            let mut all = KERNELS.iter().chain(&integer_convolve::KERNELS);
            all.find(|k| k.name == &**name)
        }
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

/// Whether a call of a kernel in the table writes every element of a buffer and reads none: the written operand is
/// dense, with its dims in any order, and has as many elements as the buffer.
pub(crate) fn writes_packed(f: &mut PrimFunc, args: &[Expr], buffer: Buffer) -> bool {
    let Some(operand) = written_operand(f, args, buffer) else { return false };
    let args = &args[1..];
    let (mut arena, mut bridge) = (SymArena::new(), SymBridge::new());
    let one = arena.int(1);
    let mut product = |f: &PrimFunc, factors: &[Expr]| {
        factors.iter().try_fold(one, |all, &e| {
            let factor = bridge.to_sym(f, &mut arena, e)?;
            Some(arena.mul(all, factor))
        })
    };
    let mut dims = Vec::new();
    for &(step, count) in operand.dims {
        let step = match step {
            Step::One => Some(one),
            Step::Of(at) => product(f, &[args[at]]),
        };
        let count = match count {
            Count::Of(at) => vec![args[at]],
            Count::Product(list) => list.iter().map(|&at| args[at]).collect(),
            Count::Computed(factors) => factors(f, args),
        };
        dims.push(step.zip(product(f, &count)));
    }
    let total = f.buffer(buffer).shape.clone();
    let total = product(f, &total);
    let Some(mut dims) = dims.into_iter().collect::<Option<Vec<(Sym, Sym)>>>() else {
        return false;
    };
    dims.retain(|&(_, count)| count != one);
    let mut covered = one;
    while let Some(next) = dims.iter().position(|&(step, _)| step == covered) {
        let (_, count) = dims.remove(next);
        covered = arena.mul(covered, count);
    }
    dims.is_empty() && Some(covered) == total
}

/// The operand through which a call writes a buffer from its first element on, if no other argument uses the buffer.
fn written_operand(f: &PrimFunc, args: &[Expr], buffer: Buffer) -> Option<&'static Operand> {
    let kernel = kernel(f, args)?;
    let mut written = None;
    for (&arg, kind) in args[1..].iter().zip(kernel.args) {
        let mut mentioned = false;
        for_each_expr(f, arg, |e| {
            mentioned |= matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer);
        });
        if !mentioned {
            continue;
        }
        let (Arg::Write(operand), ExprData::Call(Intrin::AddressOf, element, _)) =
            (kind, f.expr(arg))
        else {
            return None;
        };
        let ExprData::Load(_, indices) = f.expr(element[0]) else { return None };
        let first = indices.iter().all(|&i| f.as_int(i) == Some(0));
        let given = operand.given.is_none_or(|at| f.as_int(args[1 + at]).is_some_and(|n| n != 0));
        if !first || !given || written.replace(*operand).is_some() {
            return None;
        }
    }
    written
}

/// The conditions under which a call of a kernel of the table stays inside its buffers; `None` where it is no such call.
pub fn reach(f: &mut PrimFunc, args: &[Expr]) -> Option<Vec<Expr>> {
    let kernel = kernel(f, args)?;
    let args = &args[1..];
    if args.len() != kernel.args.len() {
        return None;
    }
    let mut reach = Reach { args, conditions: Vec::new() };
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for (&arg, kind) in args.iter().zip(kernel.args) {
        let float = f.expr_ty(arg).dtype == DType::Float64;
        match kind {
            Arg::Size => reach.within(f, arg, 0, LIMITS.0),
            Arg::Positive => reach.within(f, arg, 1, LIMITS.0),
            Arg::Stride => reach.within(f, arg, 0, LIMITS.1),
            Arg::Number => reach.within(f, arg, -LIMITS.1, LIMITS.1),
            Arg::Float if float => {}
            Arg::Float => return None,
            Arg::Read(_) | Arg::Write(_) => {}
        }
    }
    // Sizes are known to make sense where the operands' are computed from them.
    for (&arg, kind) in args.iter().zip(kernel.args) {
        match kind {
            Arg::Read(operand) => read.push(reach.operand(f, arg, operand)?),
            Arg::Write(operand) => written.push(reach.operand(f, arg, operand)?),
            _ => {}
        }
    }
    let alone = |b: &Buffer| !read.contains(b) && written.iter().filter(|w| *w == b).count() == 1;
    written.iter().all(alone).then_some(reach.conditions)
}

/// The conditions so far.
struct Reach<'a> {
    args: &'a [Expr],
    conditions: Vec<Expr>,
}

impl Reach<'_> {
    /// A number lies between two.
    fn within(&mut self, f: &mut PrimFunc, e: Expr, least: i64, most: i64) {
        let (least, most) = (f.int(least), f.int(most));
        let low = f.binary(BinOp::Le, least, e);
        let high = f.binary(BinOp::Le, e, most);
        self.conditions.push(f.binary(BinOp::And, low, high));
    }

    /// A product of sizes, none of whose parts leaves the limit.
    fn product(&mut self, f: &mut PrimFunc, factors: &[Expr]) -> Expr {
        let mut all = f.int(1);
        for &factor in factors {
            all = f.mul(all, factor);
            self.within(f, all, 0, PRODUCT_LIMIT);
        }
        all
    }

    /// How many elements a dim has.
    fn count(&mut self, f: &mut PrimFunc, count: Count) -> Expr {
        match count {
            Count::Of(at) => self.args[at],
            Count::Product(list) => {
                let factors: Vec<Expr> = list.iter().map(|&at| self.args[at]).collect();
                let all = self.product(f, &factors);
                self.within(f, all, 0, LIMITS.0);
                all
            }
            Count::Computed(factors) => {
                let factors = factors(f, self.args);
                self.product(f, &factors)
            }
        }
    }

    /// An operand's elements lie in its buffer, which is returned.
    fn operand(&mut self, f: &mut PrimFunc, address: Expr, operand: &Operand) -> Option<Buffer> {
        let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(address).clone() else {
            return None;
        };
        let ExprData::Load(buffer, indices) = f.expr(*element.first()?).clone() else {
            return None;
        };
        let data = f.buffer(buffer);
        // Any address stands for elements that are never there.
        let never = operand.given.is_some_and(|at| f.as_int(self.args[at]) == Some(0));
        if data.dtype != operand.dtype && !never || !data.strides.is_empty() {
            return None;
        }
        let dims = data.shape.clone();
        let (zero, one) = (f.int(0), f.int(1));
        let total = dims.into_iter().fold(one, |total, d| f.mul(total, d));
        let first = linear(f, buffer, &indices).ok()?;
        let low = f.binary(BinOp::Le, zero, first);
        let (mut last, mut empty) = (first, None);
        for &(step, count) in operand.dims {
            let step = if let Step::Of(at) = step { self.args[at] } else { one };
            let count = self.count(f, count);
            let none = f.binary(BinOp::Le, count, zero);
            empty = Some(empty.map_or(none, |e| f.binary(BinOp::Or, e, none)));
            let steps = f.binary(BinOp::Sub, count, one);
            let steps = f.mul(steps, step);
            last = f.add(last, steps);
        }
        // What is below the end has not wrapped around: sizes and strides are within their limits.
        let start = f.binary(BinOp::Le, first, total);
        let high = f.binary(BinOp::Lt, last, total);
        let fits = f.binary(BinOp::And, start, high);
        let fits = f.binary(BinOp::And, low, fits);
        let mut holds = match empty {
            Some(empty) => f.binary(BinOp::Or, empty, fits),
            None => fits,
        };
        if let Some(given) = operand.given {
            let absent = f.binary(BinOp::Eq, self.args[given], zero);
            holds = f.binary(BinOp::Or, absent, holds);
        }
        self.conditions.push(holds);
        Some(buffer)
    }
}
