//! Converters of ONNX's loss functions: cross-entropy and negative log-likelihood.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use crate::node::{ExprResult, Node, ints_attr};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("NegativeLogLikelihoodLoss", |n| {
        let x = n.tensor(0)?;
        Ok(vec![nll_loss(n, x)?.into()])
    }),
    op("SoftmaxCrossEntropyLoss", |n| {
        let x = n.tensor(0)?;
        let x = n.op_with("relax.nn.log_softmax", &[x], ints_attr("axis", 1))?;
        Ok(vec![nll_loss(n, x)?.into(), x.into()])
    }),
];

/// Emits the weighted negative log-likelihood of the targets (input 1), reduced as the node's attribute `reduction` states.
fn nll_loss(n: &mut Node<'_, '_>, x: Expr) -> ExprResult {
    let reduction = n.attrs().choice("reduction", &["mean", "sum", "none"])?;
    let mut args = vec![x, n.tensor(1)?];
    args.extend(n.optional_tensor(2)?);
    let mut attrs = Attrs::default().with("reduction", AttrValue::str(reduction));
    if let Some(ignored) = n.attrs().int("ignore_index")? {
        attrs = attrs.with("ignore_index", AttrValue::Int(ignored));
    }
    n.op_with("relax.nn.nll_loss", &args, attrs)
}
