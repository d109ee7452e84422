//! FlattenBuffer: replaces the indices of every access by one linear index, the offset in elements from the buffer's first
//! element, and sets the function attribute `tir.flat`.
//!
//! Buffers without explicit strides are row-major. The pass simplifies `(f // m) * m + f % m` to `f`, which removes the divisions
//! that fused axes introduce.

use pliant_ir::AttrValue;
use pliant_ir::tir::func::FLAT;
use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, PrimFunc, Stmt, StmtData, Ty};

use crate::lowering_error::LowerError;
use crate::statement_traversal::ExprRewriter;

/// Flattens the indices of every access of the function.
///
/// # Errors
/// The number of indices of an access is neither the rank of its buffer nor 1.
pub fn run(f: &mut PrimFunc) -> Result<(), LowerError> {
    if f.is_flat() {
        // The indices already include the strides.
        return Ok(());
    }
    let mut error = None;
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) => match linear(f, b, &indices) {
            Ok(index) => Some(f.load(b, &[index])),
            Err(e) => {
                error.get_or_insert(e);
                None
            }
        },
        _ => None,
    };
    let body = f.body;
    let body = ExprRewriter::new(&mut rule).stmt(f, body);
    f.body = flatten_stores(f, body, &mut error);
    f.attrs.insert(FLAT.into(), AttrValue::Bool(true));
    error.map_or(Ok(()), Err)
}

fn flatten_stores(f: &mut PrimFunc, s: Stmt, error: &mut Option<LowerError>) -> Stmt {
    crate::statement_traversal::map_stmts(f, s, &mut |f, s| {
        let StmtData::Store { buffer, indices, value } = f.stmt(s).clone() else { return None };
        match linear(f, buffer, &indices) {
            Ok(index) => Some(f.store(buffer, &[index], value)),
            Err(e) => {
                error.get_or_insert(e);
                None
            }
        }
    })
}

/// Returns the linear index of an access, the int64 offset in elements from the buffer's first element.
///
/// # Errors
/// The number of indices is neither the rank of the buffer nor 1.
pub fn linear(f: &mut PrimFunc, buffer: Buffer, indices: &[Expr]) -> Result<Expr, LowerError> {
    let data = f.buffer(buffer);
    let (shape, strides) = (data.shape.clone(), data.strides.clone());
    if indices.len() != shape.len() {
        if indices.len() == 1 {
            return Ok(indices[0]);
        }
        let message = format!(
            "the buffer '{}' has {} dims, but is accessed with {} indices",
            data.name,
            shape.len(),
            indices.len()
        );
        return Err(LowerError::new("FlattenBuffer", message));
    }
    let mut acc = None;
    for (i, (&index, &dim)) in indices.iter().zip(&shape).enumerate() {
        let index = f.cast(index, Ty::I64.with_lanes(f.expr_ty(index).lanes));
        if !strides.is_empty() {
            let term = times(f, index, strides[i]);
            acc = Some(match acc {
                None => term,
                Some(a) => plus(f, a, term),
            });
            continue;
        }
        acc = Some(match acc {
            None => index,
            Some(a) => append_index(f, a, dim, index),
        });
    }
    Ok(acc.unwrap_or_else(|| f.int(0)))
}

/// Returns `a * dim + index`. If `index` is `x % dim`, and `a` is `x // dim` or `b + x // dim`, this is simplified to `x` or
/// `b * dim + x`.
fn append_index(f: &mut PrimFunc, a: Expr, dim: Expr, index: Expr) -> Expr {
    if let ExprData::Binary(BinOp::FloorMod, x, m) = *f.expr(index)
        && m == dim
    {
        let is_quotient =
            |f: &PrimFunc, e: Expr| *f.expr(e) == ExprData::Binary(BinOp::FloorDiv, x, dim);
        if is_quotient(f, a) {
            return x;
        }
        if let ExprData::Binary(BinOp::Add, b, quotient) = *f.expr(a)
            && is_quotient(f, quotient)
        {
            let scaled = times(f, b, dim);
            return plus(f, scaled, x);
        }
    }
    let scaled = times(f, a, dim);
    plus(f, scaled, index)
}

fn times(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    match (f.as_int(a), f.as_int(b)) {
        (Some(0), _) | (_, Some(0)) => f.int(0),
        (_, Some(1)) => a,
        _ => f.mul(a, b),
    }
}

fn plus(f: &mut PrimFunc, a: Expr, b: Expr) -> Expr {
    match (f.as_int(a), f.as_int(b)) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        _ => f.add(a, b),
    }
}
