//! Gradients of matrix products. They are matrix products, so that kernels compute them.

use crate::gradient::term::Term;
use crate::gradient::{GradientCtx, GradientResult};

/// A tensor as a matrix: the leading dims become one dim.
fn as_matrix(x: Term<'_>) -> Term<'_> {
    let last = x.rank().map_or(0, |rank| rank - 1);
    let Some(dims) = x.dims() else { return x };
    x.reshape(x.merged_shape(&dims[..last], &dims[last..]))
}

/// The sum over all leading dims of `a^T @ b`. If there are leading dims, the operands become matrices first, so that the sum is
/// part of one product.
fn transposed_product<'g>(a: Term<'g>, b: Term<'g>) -> Term<'g> {
    if a.rank() == Some(2) && b.rank() == Some(2) {
        return a.swap_last().matmul(b);
    }
    as_matrix(a).swap_last().matmul(as_matrix(b))
}

/// The gradient of `matmul`.
pub fn matmul<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x1, x2) = (g.arg(0), g.arg(1));
    let (rank1, rank2) = (g.rank(0)?, g.rank(1)?);
    // A vector is a matrix with one row or one column.
    let a = if rank1 == 1 { x1.expand_dims(&[0]) } else { x1 };
    let b = if rank2 == 1 { x2.expand_dims(&[1]) } else { x2 };
    let mut dy = g.dy().astype(x1.dtype());
    let rank = dy.rank().unwrap_or(0);
    if rank2 == 1 {
        dy = dy.expand_dims(&[rank]);
    }
    if rank1 == 1 {
        let rank = rank + usize::from(rank2 == 1);
        dy = dy.expand_dims(&[rank - 1]);
    }
    let first = g.wants(0).then(|| match (rank1, rank2) {
        (1, _) => dy.matmul(b.swap_last()).fit(a).reshape_like(x1),
        _ => dy.matmul(b.swap_last()).fit(x1),
    });
    let shares_matrix = rank1 > 2 && rank2 <= 2 && x1.dims().is_some() && dy.dims().is_some();
    let second = g.wants(1).then(|| {
        let product = match shares_matrix {
            true => transposed_product(a, dy),
            false => a.swap_last().matmul(dy),
        };
        match rank2 {
            1 => product.fit(b).reshape_like(x2),
            _ => product.fit(x2),
        }
    });
    Ok(vec![first, second])
}

/// The gradient of `linear`, which is `data @ weight^T + bias`.
pub fn linear<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (data, weight, dy) = (g.arg(0), g.arg(1), g.dy().astype(g.arg(0).dtype()));
    let of_data = g.wants(0).then(|| match data.rank() {
        Some(1) => dy.expand_dims(&[0]).matmul(weight).reshape_like(data),
        _ => dy.matmul(weight),
    });
    let of_weight = g.wants(1).then(|| match data.rank() {
        Some(1) => dy.expand_dims(&[1]).matmul(data.expand_dims(&[0])),
        _ => transposed_product(dy, data),
    });
    let mut adjoints = vec![of_data, of_weight];
    if g.args().len() > 2 {
        adjoints.push(g.wants(2).then(|| dy.fit(g.arg(2))));
    }
    Ok(adjoints)
}

/// The gradient of `outer`.
pub fn outer<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let (x1, x2, dy) = (g.arg(0), g.arg(1), g.dy());
    let first = g.wants(0).then(|| dy.matmul(x2));
    Ok(vec![first, g.wants(1).then(|| x1.matmul(dy))])
}
