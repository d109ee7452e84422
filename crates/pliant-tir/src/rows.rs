//! The memory ranges that row kernels access. The first argument of a row kernel, `pliant_row_<what>_<dtype>`, is the number of
//! elements of the row, and its last arguments are addresses.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc};
use pliant_tensor::DType;

use crate::fit::SIZE_LIMIT;
use crate::flatten::linear;

/// The range that a kernel accesses from an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// The elements of the row, read only.
    Read,
    /// The elements of the row.
    Row,
    /// One int64 for each element of the row.
    Places,
    /// One int64.
    Place,
    /// As many elements as the second argument states.
    First,
    /// As many int64 as the second argument states.
    FirstPlaces,
}

/// The kernels: name, number of integer arguments, and address arguments.
const KERNELS: &[(&str, usize, &[Reach])] = &[
    ("order", 4, &[Reach::Row, Reach::Places]),
    ("first", 3, &[Reach::Read, Reach::First, Reach::FirstPlaces]),
    ("extreme", 2, &[Reach::Read, Reach::Place]),
    ("fourier", 2, &[Reach::Row]),
];

/// The signature and the element type of the kernel that a symbol names.
fn kernel(name: &str) -> Option<(usize, &'static [Reach], DType)> {
    let (what, dtype) = name.strip_prefix("pliant_row_")?.rsplit_once('_')?;
    let &(_, numbers, addresses) = KERNELS.iter().find(|k| k.0 == what)?;
    Some((numbers, addresses, dtype.parse().ok()?))
}

/// Whether a call of a linked function calls a row kernel.
pub fn is_row(f: &PrimFunc, args: &[Expr]) -> bool {
    matches!(args.first().map(|&e| f.expr(e)), Some(ExprData::Str(s)) if s.starts_with("pliant_row_"))
}

/// Whether an expression is a call of a row kernel that does not write a buffer.
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

/// The conditions under which a call of a row kernel stays inside its buffers; `None` for other calls, for arguments that do not
/// fit the kernel, and if two addresses are in the same buffer.
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
    // The second argument, if an address has a range of that many elements.
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
