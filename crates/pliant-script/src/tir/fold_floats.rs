//! Arithmetic on float constants of scripts.

use crate::python::ast;

/// Applies an operator to two float constants. `None` for operators on integers only.
pub(super) fn fold_floats(op: ast::BinOp, x: f64, y: f64) -> Option<f64> {
    use ast::BinOp as Py;
    Some(match op {
        Py::Add => x + y,
        Py::Sub => x - y,
        Py::Mul => x * y,
        Py::Div => x / y,
        Py::Pow => x.powf(y),
        Py::FloorDiv => (x / y).floor(),
        Py::Mod => x - (x / y).floor() * y,
        _ => return None,
    })
}
