//! What the kernels of rows reach from the addresses that they are given: `pliant_row_<what>_<dtype>`, whose first argument
//! is how many elements the row has, and whose last ones are addresses.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc};
use pliant_tensor::DType;

use crate::fit::SIZE_LIMIT;
use crate::flatten::linear;

/// What an address of a kernel is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// The elements of the row, which are only read.
    Read,
    /// The elements of the row.
    Row,
    /// As many int64 as the row has elements.
    Places,
    /// One int64.
    Place,
    /// As many elements as the second number says.
    First,
    /// As many int64 as the second number says.
    FirstPlaces,
}

/// The kernels: name, how many numbers they take, and their addresses.
const KERNELS: &[(&str, usize, &[Reach])] = &[
    ("order", 4, &[Reach::Row, Reach::Places]),
    ("first", 3, &[Reach::Read, Reach::First, Reach::FirstPlaces]),
    ("extreme", 2, &[Reach::Read, Reach::Place]),
    ("fourier", 2, &[Reach::Row]),
];

/// The kernel and the element type that a name stands for.
fn kernel(name: &str) -> Option<(usize, &'static [Reach], DType)> {
    let (what, dtype) = name.strip_prefix("pliant_row_")?.rsplit_once('_')?;
    let &(_, numbers, addresses) = KERNELS.iter().find(|k| k.0 == what)?;
    Some((numbers, addresses, dtype.parse().ok()?))
}

/// Whether a call of a linked function names a kernel of rows.
pub fn is_row(f: &PrimFunc, args: &[Expr]) -> bool {
    matches!(args.first().map(|&e| f.expr(e)), Some(ExprData::Str(s)) if s.starts_with("pliant_row_"))
}

/// Whether a call is of a kernel of rows that only reads a buffer.
pub fn only_reads(f: &PrimFunc, call: Expr, buffer: Buffer) -> bool {
    let ExprData::Call(Intrin::CallExtern, args, _) = f.expr(call) else { return false };
    let Some(ExprData::Str(name)) = args.first().map(|&e| f.expr(e)) else { return false };
    let Some((numbers, addresses, _)) = kernel(name) else { return false };
    let of_buffer = |e: Expr| match f.expr(e) {
        ExprData::Call(Intrin::AddressOf, element, _) => {
            matches!(f.expr(element[0]), ExprData::Load(b, _) if *b == buffer)
        }
        _ => false,
    };
    args.iter().skip(1 + numbers).zip(addresses).all(|(&e, &a)| !of_buffer(e) || a == Reach::Read)
}

/// The conditions under which a call of a kernel of rows stays inside its buffers; `None` where it is no such call, or
/// two of its addresses are of one buffer.
pub fn reach(f: &mut PrimFunc, args: &[Expr]) -> Option<Vec<Expr>> {
    let ExprData::Str(name) = f.expr(*args.first()?) else { return None };
    let (numbers, addresses, dtype) = kernel(name)?;
    let rest = &args[1..];
    if rest.len() != numbers + addresses.len() {
        return None;
    }
    let len = rest[0];
    let (zero, one, limit) = (f.int(0), f.int(1), f.int(SIZE_LIMIT));
    let low = f.binary(BinOp::Le, zero, len);
    let high = f.binary(BinOp::Le, len, limit);
    let mut conditions = vec![f.binary(BinOp::And, low, high)];
    // The second number, where an address reaches as far as that.
    let wanted = if numbers > 2 { rest[1] } else { zero };
    if addresses.iter().any(|a| matches!(a, Reach::First | Reach::FirstPlaces)) {
        let low = f.binary(BinOp::Le, zero, wanted);
        let high = f.binary(BinOp::Le, wanted, limit);
        conditions.push(f.binary(BinOp::And, low, high));
    }
    let mut seen: Vec<Buffer> = Vec::new();
    for (&address, &what) in rest[numbers..].iter().zip(addresses) {
        let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(address).clone() else {
            return None;
        };
        let ExprData::Load(buffer, indices) = f.expr(*element.first()?).clone() else {
            return None;
        };
        let (want, count) = match what {
            Reach::Read | Reach::Row => (dtype, len),
            Reach::Places => (DType::Int64, len),
            Reach::Place => (DType::Int64, one),
            Reach::First => (dtype, wanted),
            Reach::FirstPlaces => (DType::Int64, wanted),
        };
        let data = f.buffer(buffer);
        if data.dtype != want || !data.strides.is_empty() || seen.contains(&buffer) {
            return None;
        }
        seen.push(buffer);
        let dims = data.shape.clone();
        let total = dims.into_iter().fold(one, |total, d| f.mul(total, d));
        let first = linear(f, buffer, &indices).ok()?;
        let end = f.add(first, count);
        let low = f.binary(BinOp::Le, zero, first);
        let start = f.binary(BinOp::Le, first, total);
        let high = f.binary(BinOp::Le, end, total);
        let inside = f.binary(BinOp::And, start, high);
        conditions.push(f.binary(BinOp::And, low, inside));
    }
    Some(conditions)
}
