//! Gradients of operators that join tensors, split them, or permute dims.

use pliant_ir::relax::TypeData;
use pliant_ir::{AttrValue, Attrs, Sym};

use crate::gradient::term::{Term, attrs};
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// The fields of operand 0, a tuple.
fn fields<'g>(g: &GradientCtx<'g>) -> Result<Vec<Term<'g>>, GradientError> {
    let count = g.builder.read(|f| match f.ty(g.args()[0]) {
        TypeData::Tuple(fields) => Some(fields.len()),
        _ => None,
    });
    let count = count.ok_or_else(|| g.error("the number of tensors must be known"))?;
    Ok((0..count).map(|k| g.arg(0).field(k)).collect())
}

/// The gradient of `concat`: the parts of the adjoint.
pub fn concat<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let tensors = fields(g)?;
    let flat = g.attr("axis").is_none();
    let rank = tensors[0].rank().ok_or_else(|| g.error("the rank of the tensors must be known"))?;
    let axis = if flat { 0 } else { g.infer(|ctx| ctx.axis("axis", rank))? };
    let mut ends: Vec<Sym> = Vec::new();
    let mut end = g.builder.edit(|f| f.syms.int(0));
    for t in &tensors {
        let dims = t.dims().ok_or_else(|| {
            g.error("the gradient needs the shapes of the tensors; declare them with R.match_cast")
        })?;
        end = g.builder.edit(|f| match flat {
            false => f.syms.add(end, dims[axis]),
            true => {
                let one = f.syms.int(1);
                let count = dims.iter().fold(one, |n, &d| f.syms.mul(n, d));
                f.syms.add(end, count)
            }
        });
        ends.push(end);
    }
    ends.pop();
    if ends.is_empty() {
        let only = g.dy().reshape_like(tensors[0]);
        return Ok(vec![Some(Term::tuple(g.builder, &[only]))]);
    }
    let parts = split_at(g.dy(), &ends, axis);
    let parts = g.builder.term(g.builder.operand(parts.expr()));
    let adjoints: Vec<Term<'g>> =
        tensors.iter().enumerate().map(|(k, &t)| parts.field(k).reshape_like(t)).collect();
    Ok(vec![Some(Term::tuple(g.builder, &adjoints))])
}

/// Splits a tensor at indices along an axis.
fn split_at<'g>(x: Term<'g>, indices: &[Sym], axis: usize) -> Term<'g> {
    let builder = x.builder();
    let constants: Option<Vec<i64>> =
        builder.read(|f| indices.iter().map(|&s| f.syms.as_int(s)).collect());
    let axis = ("axis", AttrValue::Int(axis as i64));
    match constants {
        Some(list) => {
            x.call("relax.split", &[], &[("indices_or_sections", AttrValue::ints(list)), axis])
        }
        None => x.call("relax.split", &[builder.shape(indices)], &[axis]),
    }
}

/// The gradient of `split`: the concatenated adjoints of the parts.
pub fn split<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let axis = g.axis("axis")?;
    let parts: Vec<Term<'g>> = (0..g.result_count())
        .map(|k| g.dy_of(k).unwrap_or_else(|| g.result().field(k).zeros()))
        .collect();
    let tuple = Term::tuple(g.builder, &parts);
    let list = attrs(&[("axis", AttrValue::Int(axis as i64))]);
    g.first(g.builder.term(g.builder.call("relax.concat", &[tuple.expr()], list)))
}

/// The gradient of `stack`: the adjoint at each index of the new axis.
pub fn stack<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let tensors = fields(g)?;
    let rank = tensors[0].rank().ok_or_else(|| g.error("the rank of the tensors must be known"))?;
    let axis = g.infer(|ctx| ctx.axis("axis", rank + 1))?;
    let index: Vec<Sym> =
        g.builder.edit(|f| (1..tensors.len()).map(|k| f.syms.int(k as i64)).collect());
    let parts = match tensors.len() {
        1 => Term::tuple(g.builder, &[g.dy()]),
        _ => split_at(g.dy(), &index, axis),
    };
    let parts = g.builder.term(g.builder.operand(parts.expr()));
    let adjoints: Vec<Term<'g>> =
        (0..tensors.len()).map(|k| parts.field(k).squeeze(&[axis])).collect();
    Ok(vec![Some(Term::tuple(g.builder, &adjoints))])
}

/// The gradient of `permute_dims`: the inverse permutation.
pub fn permute_dims<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    if g.attr("axes").is_none() {
        return g.first(g.builder.term(g.builder.call(
            "relax.permute_dims",
            &[g.dy().expr()],
            Attrs::default(),
        )));
    }
    let axes = g.axes("axes")?;
    let mut inverse = vec![0; axes.len()];
    axes.iter().enumerate().for_each(|(i, &a)| inverse[a] = i);
    let list = [("axes", crate::gradient::term::axis_list(&inverse))];
    g.first(g.dy().call("relax.permute_dims", &[], &list))
}
