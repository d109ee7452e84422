//! Shapes of expressions, and upper bounds of symbolic sizes.

use std::sync::Arc;

use pliant_ir::attr_names::UPPER_BOUND;
use pliant_ir::relax::{Expr, ExprData, Function};
use pliant_ir::{AttrValue, Sym};

/// The dims of a shape expression, or of a tensor whose dims are known.
pub(crate) fn shape_dims(func: &Function, e: Expr) -> Option<Vec<Sym>> {
    match func.expr(e) {
        ExprData::Shape(dims) => Some(dims.to_vec()),
        _ => func.ty(e).dims().map(<[Sym]>::to_vec),
    }
}

/// The upper bounds of symbolic sizes from the function's attribute, by the name of the symbol. Negative bounds are ignored.
pub(crate) fn upper_bounds(func: &Function) -> Vec<(Arc<str>, i64)> {
    match func.attrs.get(UPPER_BOUND) {
        Some(AttrValue::Map(items)) => items
            .iter()
            .filter_map(|(name, v)| Some((name.clone(), v.as_int().filter(|&b| b >= 0)?)))
            .collect(),
        _ => Vec::new(),
    }
}
