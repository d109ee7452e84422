//! The gradient of `einsum`: for each operand, an einsum of the adjoint of the result and the other operands.

use pliant_ir::AttrValue;
use pliant_ir::relax::TypeData;

use crate::einsum_equation::{Label, ParsedEquation};
use crate::gradient::term::{Term, attrs};
use crate::gradient::{GradientCtx, GradientError, GradientResult};

/// The gradient of `einsum`. An operand with a repeated label (a diagonal) uses the gradient derived from the tensor expression.
pub fn einsum<'g>(g: &GradientCtx<'g>) -> GradientResult<'g> {
    let operands = operands(g)?;
    let ranks: Option<Vec<usize>> = operands.iter().map(|t| t.rank()).collect();
    let ranks = ranks.ok_or_else(|| {
        g.error("the gradient needs the rank of all operands; declare it with R.match_cast")
    })?;
    let text = g.attr("subscripts");
    let text = text.as_str().ok_or_else(|| g.error("subscripts must be a string"))?;
    let equation = ParsedEquation::parse(text)
        .ok()
        .and_then(|parsed| parsed.for_ranks(&ranks).ok())
        .ok_or_else(|| g.error("the subscripts are invalid"))?;
    let repeats =
        |labels: &[Label]| labels.iter().enumerate().any(|(i, l)| labels[..i].contains(l));
    if equation.inputs.iter().any(|labels| repeats(labels)) {
        return g.from_te();
    }
    let names = LabelNames::of(&equation.inputs);
    let mut adjoints = Vec::with_capacity(operands.len());
    for (i, labels) in equation.inputs.iter().enumerate() {
        let mut terms = vec![(g.dy(), equation.output.clone())];
        let others = operands.iter().zip(&equation.inputs).enumerate().filter(|(k, _)| *k != i);
        terms.extend(others.map(|(_, (&t, labels))| (t, labels.clone())));
        // A label that occurs in this operand alone was summed, so its adjoint is constant along it.
        let known: Vec<Label> =
            labels.iter().copied().filter(|l| terms.iter().any(|(_, t)| t.contains(l))).collect();
        let left: Vec<String> = terms.iter().map(|(_, labels)| names.text(labels)).collect();
        let subscripts = format!("{}->{}", left.join(","), names.text(&known));
        let fields: Vec<Term<'g>> = terms.iter().map(|&(t, _)| t).collect();
        let tuple = Term::tuple(g.builder, &fields);
        let list = attrs(&[("subscripts", AttrValue::str(&subscripts))]);
        let product = g.builder.term(g.builder.call("relax.einsum", &[tuple.expr()], list));
        let missing: Vec<usize> =
            (0..labels.len()).filter(|&a| !known.contains(&labels[a])).collect();
        let adjoint = match missing.is_empty() {
            true => product.fit(operands[i]),
            false => product.expand_dims(&missing).broadcast_and_fit(operands[i], &missing),
        };
        adjoints.push(adjoint);
    }
    Ok(vec![Some(Term::tuple(g.builder, &adjoints))])
}

/// The fields of the tuple of operands.
fn operands<'g>(g: &GradientCtx<'g>) -> Result<Vec<Term<'g>>, GradientError> {
    let count = g.builder.read(|f| match f.ty(g.args()[0]) {
        TypeData::Tuple(fields) => Some(fields.len()),
        _ => None,
    });
    let count = count.ok_or_else(|| g.error("the number of operands must be known"))?;
    Ok((0..count).map(|k| g.arg(0).field(k)).collect())
}

/// A letter for each label, including those that an ellipsis stands for.
struct LabelNames(Vec<Label>);

impl LabelNames {
    fn of(inputs: &[Vec<Label>]) -> Self {
        let mut labels = Vec::new();
        for &label in inputs.iter().flatten() {
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        LabelNames(labels)
    }

    fn text(&self, labels: &[Label]) -> String {
        let letter = |l: &Label| {
            let k = self.0.iter().position(|known| known == l).unwrap_or(0) as u8;
            char::from(if k < 26 { b'a' + k } else { b'A' + k - 26 })
        };
        labels.iter().map(letter).collect()
    }
}
