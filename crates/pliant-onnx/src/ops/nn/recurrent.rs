//! Converters of the recurrent layers `LSTM`, `GRU` and `RNN`. The corresponding Relax operators
//! have the operands of the ONNX operators, in the same order.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};

use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::node::{ConvertResult, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[
    op("GRU", |n| recurrent_layer(n, "relax.nn.gru", 6, Some("linear_before_reset"))),
    op("LSTM", |n| recurrent_layer(n, "relax.nn.lstm", 8, Some("input_forget"))),
    op("RNN", |n| recurrent_layer(n, "relax.nn.rnn", 6, None)),
];

fn recurrent_layer(
    n: &mut Node<'_, '_>,
    op: &str,
    operands: usize,
    flag: Option<&str>,
) -> ConvertResult {
    let input_count = (0..operands).rev().find(|&i| n.has_input(i)).map_or(0, |i| i + 1);
    if input_count < 3 {
        let text = format!("the node must have inputs 0 to 2 (X, W and R), but has {input_count}");
        return Err(Problem::invalid(text));
    }
    let args: Vec<Expr> =
        (0..input_count).map(|i| n.tensor_or_null(i)).collect::<Result<_, _>>()?;
    layer_of_operands(n, op, &args, flag)
}

/// Emits a recurrent layer whose operands are already converted. Its attributes are those of the node. `flag` is the
/// name of the attribute that only this kind of layer has.
pub(in crate::ops) fn layer_of_operands(
    n: &mut Node<'_, '_>,
    op: &str,
    args: &[Expr],
    flag: Option<&str>,
) -> ConvertResult {
    if let Some(hidden) = n.attrs().int("hidden_size")? {
        let (weights, hidden) = (n.dims_with_min_rank(args[2], 3)?, n.func().syms.int(hidden));
        let text = "attribute 'hidden_size' is {}, but the last dim of the recurrence weights (input 2) is {}";
        n.require_equal(hidden, weights[2], text)?;
    }
    let read = n.attrs();
    let mut attrs = Attrs::default()
        .with("direction", AttrValue::str(direction(n)?))
        .with("layout", AttrValue::Int(read.int("layout")?.unwrap_or(0)));
    if let Some(names) = read.strings("activations")? {
        let names = names.into_iter().map(AttrValue::str).collect();
        attrs = attrs.with("activations", AttrValue::List(names));
    }
    for key in ["activation_alpha", "activation_beta"] {
        if let Some(list) = read.floats(key)? {
            let list = list.iter().map(|&v| AttrValue::float(f64::from(v))).collect();
            attrs = attrs.with(key, AttrValue::List(list));
        }
    }
    if let Some(clip) = read.float("clip")? {
        attrs = attrs.with("clip", AttrValue::float(clip));
    }
    if let Some(flag) = flag {
        attrs = attrs.with(flag, AttrValue::Bool(read.int(flag)?.unwrap_or(0) != 0));
    }
    let all = n.op_with(op, args, attrs)?;
    let count = if op == "relax.nn.lstm" { 3 } else { 2 };
    Ok(n.tuple_fields(all, count).into_iter().map(Value::from).collect())
}

fn direction<'a>(n: &Node<'_, '_>) -> Result<&'a str, Problem> {
    n.attrs().choice("direction", &["forward", "reverse", "bidirectional"])
}
