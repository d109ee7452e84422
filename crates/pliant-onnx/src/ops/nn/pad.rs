//! Padding.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[op("Pad", pad)];

/// Zeros around each axis: before and behind of axis 0, of axis 1, and so on.
pub(super) fn zeros(n: &mut Node<'_, '_>, x: Expr, width: &[i64]) -> Result<Expr, Problem> {
    let attrs = Attrs::default()
        .with("pad_width", AttrValue::ints(width.iter().copied()))
        .with("pad_mode", AttrValue::str("constant"))
        .with("pad_value", AttrValue::float(0.0));
    n.op_with("relax.nn.pad", &[x], attrs)
}

/// `Pad`: amounts and value were attributes up to opset 10. Negative amounts cut.
fn pad(n: &mut Node<'_, '_>) -> Converted {
    let mode = n.attrs().choice("mode", &["constant", "reflect", "edge", "wrap"])?;
    let x = n.tensor(0)?;
    let rank = n.rank(x)?;
    let pads = n.ints_of("pads", 1)?.ok_or_else(|| Problem::invalid("'pads' is missing"))?;
    let axes: Vec<usize> = match n.ints_of("axes", 3)? {
        Some(axes) => axes.iter().map(|&a| n.axis(a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(Problem::invalid(format!("'pads' must have {} numbers", 2 * axes.len())));
    }
    let mut width = vec![0; 2 * rank];
    let mut y = x;
    for (k, &axis) in axes.iter().enumerate() {
        let (before, behind) = (pads[k], pads[k + axes.len()]);
        if before < 0 || behind < 0 {
            let dims = n.dims(y)?;
            let syms = &mut n.func().syms;
            let (from, cut) = (syms.int((-before).max(0)), syms.int((-behind).max(0)));
            let to = syms.sub(dims[axis], cut);
            y = crate::ops::shape::slice_axis(n, y, axis, from, to)?;
        }
        (width[2 * axis], width[2 * axis + 1]) = (before.max(0), behind.max(0));
    }
    if width.iter().all(|&w| w == 0) {
        return Ok(vec![y.into()]);
    }
    let value = match n.attrs().float("value")? {
        Some(v) => v,
        None if !n.has(2) => 0.0,
        None => n.const_floats(2).and_then(|v| v.first().copied()).ok_or_else(|| {
            Problem::unsupported("the value that it pads with is known only at run time")
        })?,
    };
    let mode = match mode {
        "edge" => "replicate",
        "wrap" => "circular",
        other => other,
    };
    let attrs = Attrs::default()
        .with("pad_width", AttrValue::ints(width))
        .with("pad_mode", AttrValue::str(mode))
        .with("pad_value", AttrValue::float(value));
    Ok(vec![n.op_with("relax.nn.pad", &[y], attrs)?.into()])
}
