//! What calls of the run-time library reach: the conditions under which written ones stay inside their buffers.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc};
use pliant_tensor::DType;

/// Sizes and strides of a written call at most: what the library addresses then fits 63 bits.
const LIMIT: i64 = 1 << 30;

/// What a call of a linked function that takes addresses is, as messages name it.
pub fn kind(f: &PrimFunc, args: &[Expr]) -> Option<&'static str> {
    match args.first().map(|&e| f.expr(e)) {
        Some(ExprData::Str(s)) if s.starts_with("pliant_gemm_") => Some("a matrix product"),
        _ if crate::rows::is_row(f, args) => Some("a kernel of rows"),
        Some(ExprData::Str(s)) if s.starts_with("pliant_vec_") => Some("a slice function"),
        _ => None,
    }
}

/// What must hold for a written call of the library to stay inside its buffers.
struct Reach {
    dtype: DType,
    conditions: Vec<Expr>,
}

impl Reach {
    /// A size or stride is within the limit.
    fn within(&mut self, f: &mut PrimFunc, e: Expr) {
        let (zero, limit) = (f.int(0), f.int(LIMIT));
        let low = f.binary(BinOp::Le, zero, e);
        let high = f.binary(BinOp::Le, e, limit);
        self.conditions.push(f.binary(BinOp::And, low, high));
    }

    /// An operand's elements lie in its buffer: `dims` are strides and extents.
    fn operand(&mut self, f: &mut PrimFunc, address: Expr, dims: &[(Expr, Expr)]) -> Option<()> {
        let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(address).clone() else {
            return None;
        };
        let ExprData::Load(buffer, indices) = f.expr(*element.first()?).clone() else {
            return None;
        };
        if f.buffer(buffer).dtype != self.dtype || !f.buffer(buffer).strides.is_empty() {
            return None;
        }
        let (zero, one) = (f.int(0), f.int(1));
        let mut last = crate::flatten::linear(f, buffer, &indices).ok()?;
        let mut total = one;
        for d in f.buffer(buffer).shape.clone() {
            total = f.mul(total, d);
        }
        let first = f.binary(BinOp::Le, zero, last);
        let below = f.binary(BinOp::Le, last, total);
        let first = f.binary(BinOp::And, first, below);
        let mut empty = None;
        for &(stride, extent) in dims {
            self.within(f, stride);
            let none = f.binary(BinOp::Le, extent, zero);
            empty = Some(empty.map_or(none, |e| f.binary(BinOp::Or, e, none)));
            let steps = f.binary(BinOp::Sub, extent, one);
            let reach = f.mul(steps, stride);
            last = f.add(last, reach);
        }
        let inside = f.binary(BinOp::Lt, last, total);
        let inside = f.binary(BinOp::And, first, inside);
        self.conditions.push(f.binary(BinOp::Or, empty?, inside));
        Some(())
    }
}

/// The conditions under which a written call of the library stays inside its buffers; `None` where
/// it is no such call.
///
/// Arguments for strides: name, batch, rows, columns, inner, then for each operand its address and its batch, row and
/// column strides, then whether to accumulate. For panels: name, rows, columns, inner, the address of A and its row and
/// column strides, the panels and their width, the address of C and its row stride, then whether to accumulate. For slices:
/// name, the address of the results, those of the operands, and how many elements.
pub fn reach(f: &mut PrimFunc, args: &[Expr]) -> Option<Vec<Expr>> {
    if crate::rows::is_row(f, args) {
        return crate::rows::reach(f, args);
    }
    let ExprData::Str(name) = f.expr(*args.first()?) else { return None };
    if let Some(slices) = name.strip_prefix("pliant_vec_") {
        let types = slice_types(slices)?;
        return slice_reach(f, args, types);
    }
    let (dtype, packed) = match &**name {
        "pliant_gemm_f32" => (DType::Float32, false),
        "pliant_gemm_f64" => (DType::Float64, false),
        "pliant_gemm_packed_f32" => (DType::Float32, true),
        "pliant_gemm_packed_f64" => (DType::Float64, true),
        _ => return None,
    };
    let mut reach = Reach { dtype, conditions: Vec::new() };
    if packed {
        packed_reach(f, args, &mut reach)?;
        return Some(reach.conditions);
    }
    let [_, batch, rows, columns, inner, operands @ .., _] = args else { return None };
    if operands.len() != 12 {
        return None;
    }
    for &size in &[*batch, *rows, *columns, *inner] {
        reach.within(f, size);
    }
    let extents = [[*batch, *rows, *inner], [*batch, *inner, *columns], [*batch, *rows, *columns]];
    for (operand, extents) in operands.chunks(4).zip(extents) {
        let dims: Vec<_> = operand[1..].iter().copied().zip(extents).collect();
        reach.operand(f, operand[0], &dims)?;
    }
    Some(reach.conditions)
}

fn packed_reach(f: &mut PrimFunc, args: &[Expr], reach: &mut Reach) -> Option<()> {
    let &[_, rows, columns, inner, a, a_row, a_col, b, width, c, c_row, _] = args else {
        return None;
    };
    for size in [rows, columns, inner, width] {
        reach.within(f, size);
    }
    let (zero, one, step) = (f.int(0), f.int(1), f.int(super::gemm::PANEL_STEP));
    let rest = f.binary(BinOp::FloorMod, width, step);
    let whole = f.binary(BinOp::Eq, rest, zero);
    let some = f.binary(BinOp::Le, step, width);
    reach.conditions.push(f.binary(BinOp::And, whole, some));
    reach.operand(f, a, &[(a_row, rows), (a_col, inner)])?;
    // Panels are whole, however many of their columns are used.
    let more = f.binary(BinOp::Sub, width, one);
    let padded = f.add(columns, more);
    let panels = f.binary(BinOp::FloorDiv, padded, width);
    let panel = f.mul(inner, width);
    reach.operand(f, b, &[(panel, panels), (width, inner), (one, width)])?;
    reach.operand(f, c, &[(c_row, rows), (one, columns)])
}

/// The element types of the results and of the operands of a slice function.
fn slice_types(name: &str) -> Option<[DType; 2]> {
    let of = |suffix: &str| match suffix {
        "f16" => Some(DType::Float16),
        "bf16" => Some(DType::BFloat16),
        "f32" => Some(DType::Float32),
        "f64" => Some(DType::Float64),
        _ => None,
    };
    if let Some((from, to)) = name.split_once("_to_") {
        return Some([of(to)?, of(from)?]);
    }
    let (_, suffix) = name.rsplit_once('_')?;
    of(suffix).map(|dtype| [dtype, dtype])
}

fn slice_reach(f: &mut PrimFunc, args: &[Expr], [to, from]: [DType; 2]) -> Option<Vec<Expr>> {
    let [_, result, operands @ .., n] = args else { return None };
    let (n, one) = (*n, f.int(1));
    let mut conditions = Vec::new();
    for (k, &address) in [*result].iter().chain(operands).enumerate() {
        let dtype = if k == 0 { to } else { from };
        let mut reach = Reach { dtype, conditions };
        reach.within(f, n);
        reach.operand(f, address, &[(one, n)])?;
        conditions = reach.conditions;
    }
    Some(conditions)
}
