//! Poolings.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use super::window::Window;
use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("AveragePool", average_pool),
    op("GlobalAveragePool", |n| global(n, "relax.mean")),
    op("GlobalMaxPool", |n| global(n, "relax.max")),
    op("LpPool", lp_pool),
    op("MaxPool", max_pool),
];

fn kernel(n: &Node<'_, '_>) -> Result<Vec<i64>, Problem> {
    let kernel = n.attrs().ints("kernel_shape")?;
    Ok(kernel.ok_or_else(|| Problem::invalid("attribute 'kernel_shape' is missing"))?.to_vec())
}

fn named(what: &str, axes: usize) -> Result<String, Problem> {
    match axes {
        1..=3 => Ok(format!("relax.nn.{what}{axes}d")),
        _ => Err(Problem::unsupported(format!("{axes} spatial dims; 1 to 3 are supported"))),
    }
}

fn max_pool(n: &mut Node<'_, '_>) -> Converted {
    if n.proto.output.len() > 1 && !n.proto.output[1].is_empty() {
        return Err(Problem::unsupported("the places of the maxima (its second output)"));
    }
    let ceil = n.attrs().int("ceil_mode")?.unwrap_or(0) != 0;
    let kernel = kernel(n)?;
    let name = named("max_pool", kernel.len())?;
    let x = n.tensor(0)?;
    let dtype = n.dtype(x)?;
    let least = if dtype.is_float() { f64::NEG_INFINITY } else { 0.0 };
    let (window, x) = Window::read(n, x, kernel, least)?;
    Ok(vec![n.op_with(&name, &[x], window.pool_attrs(ceil, false))?.into()])
}

fn average_pool(n: &mut Node<'_, '_>) -> Converted {
    let ceil = n.attrs().int("ceil_mode")?.unwrap_or(0) != 0;
    let count = n.attrs().int("count_include_pad")?.unwrap_or(0) != 0;
    let kernel = kernel(n)?;
    let name = named("avg_pool", kernel.len())?;
    let x = n.tensor(0)?;
    let (window, padded) = Window::read(n, x, kernel.clone(), 0.0)?;
    let y = n.op_with(&name, &[padded], window.pool_attrs(ceil, count))?;
    if padded == x || count {
        return Ok(vec![y.into()]);
    }
    // Padded by hand, the zeros were counted: divide by the share of each window that is input.
    let dtype = n.dtype(x)?;
    let ones = Attrs::default().with("dtype", AttrValue::DType(dtype));
    let ones = n.op_with("relax.ones_like", &[x], ones)?;
    let (window, ones) = Window::read(n, ones, kernel, 0.0)?;
    let share = n.op_with(&name, &[ones], window.pool_attrs(ceil, true))?;
    Ok(vec![n.op("relax.divide", &[y, share])?.into()])
}

/// The root of the sum of powers: the mean of them, times how many a window has.
fn lp_pool(n: &mut Node<'_, '_>) -> Converted {
    let p = n.attrs().int("p")?.unwrap_or(2);
    let ceil = n.attrs().int("ceil_mode")?.unwrap_or(0) != 0;
    let kernel = kernel(n)?;
    let name = named("avg_pool", kernel.len())?;
    let x = n.tensor(0)?;
    let dtype = n.dtype(x)?;
    let (window, x) = Window::read(n, x, kernel, 0.0)?;
    let count = window.kernel.iter().product::<i64>() as f64;
    let [power, root, count] =
        [n.number(p as f64, dtype)?, n.number(1.0 / p as f64, dtype)?, n.number(count, dtype)?];
    let y = n.op("relax.abs", &[x])?;
    let y = n.op("relax.power", &[y, power])?;
    let y = n.op_with(&name, &[y], window.pool_attrs(ceil, true))?;
    let y = n.op("relax.multiply", &[y, count])?;
    Ok(vec![n.op("relax.power", &[y, root])?.into()])
}

fn global(n: &mut Node<'_, '_>, op: &str) -> Converted {
    let x: Expr = n.tensor(0)?;
    let rank = n.rank(x)? as i64;
    let attrs = Attrs::default()
        .with("axis", AttrValue::ints(2..rank))
        .with("keepdims", AttrValue::Bool(true));
    Ok(vec![n.op_with(op, &[x], attrs)?.into()])
}
