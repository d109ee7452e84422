//! Access to the dims of expressions, and to the upper bounds of symbolic sizes that a function declares.

use std::sync::Arc;

use pliant_ir::attr_names::UPPER_BOUND;
use pliant_ir::relax::{Expr, ExprData, Function};
use pliant_ir::{AttrValue, Sym};

/// Returns the dims of a shape expression or of a tensor; `None` if they are unknown.
pub(crate) fn shape_dims(func: &Function, e: Expr) -> Option<Vec<Sym>> {
    match func.expr(e) {
        ExprData::Shape(dims) => Some(dims.to_vec()),
        _ => func.ty(e).dims().map(<[Sym]>::to_vec),
    }
}

/// Returns the upper bounds of symbolic sizes that the function's attribute `tir_var_upper_bound` declares, as (name of the
/// symbol, bound). Negative bounds are ignored.
pub(crate) fn upper_bounds(func: &Function) -> Vec<(Arc<str>, i64)> {
    match func.attrs.get(UPPER_BOUND) {
        Some(AttrValue::Map(items)) => items
            .iter()
            .filter_map(|(name, v)| Some((name.clone(), v.as_int().filter(|&b| b >= 0)?)))
            .collect(),
        _ => Vec::new(),
    }
}
