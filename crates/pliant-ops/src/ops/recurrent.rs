//! Recurrent layers with ONNX's semantics: relax.nn.lstm, relax.nn.gru, relax.nn.rnn.
//!
//! The matrix product of the inputs and their weights is computed in one stage for all time steps.
//! The matrix product of the state and its weights is computed step by step. The operators have the
//! operands and results of the ONNX operators, in the same order. TVM has no such operators.

mod activation;
mod cells;
mod layer;

use pliant_ir::relax::TypeData;

use crate::op_declaration::{Default, InferResult, OpDecl, Pattern};
use crate::type_inference::InferCtx;
use layer::{CellKind, LayerSizes};

const ATTRS: &[(&str, Default)] = &[
    ("direction", Default::Str("forward")),
    ("activations", Default::None),
    ("activation_alpha", Default::None),
    ("activation_beta", Default::None),
    ("clip", Default::None),
    ("layout", Default::Int(0)),
];

/// The declarations of all operators that this file implements.
pub static DECLS: &[OpDecl] = &[
    OpDecl::new(
        "relax.nn.lstm",
        |ctx| infer(ctx, CellKind::Lstm),
        "A long short-term memory (LSTM; Hochreiter and Schmidhuber, 1997) layer as in ONNX. `x` is (steps, batch, inputs), or \
        with layout 1 (batch, steps, inputs). The weights `w` (directions, 4 * hidden, inputs) and `r` (directions, 4 * hidden, \
        hidden) hold the gates i, o, f, c, in this order. `b` (directions, 8 * hidden) holds the biases of both, and `p` \
        (directions, 3 * hidden) the peepholes i, o, f. Returns all outputs (steps, directions, batch, hidden), the last output \
        and the last cell state (directions, batch, hidden). Sequences end at `sequence_lens`; later outputs are 0.",
    )
    .operands(&["x", "w", "r", "b?", "sequence_lens?: index", "initial_h?", "initial_c?", "p?"])
    .attrs(&[
        ("direction", Default::Str("forward")),
        ("activations", Default::None),
        ("activation_alpha", Default::None),
        ("activation_beta", Default::None),
        ("clip", Default::None),
        ("layout", Default::Int(0)),
        ("input_forget", Default::Bool(false)),
    ])
    .te(Pattern::Opaque, |ctx| layer::te_layer(ctx, CellKind::Lstm))
    .onnx(&["LSTM"])
    .errors(
        "the shape of an operand does not match the sizes of the layer, a sequence length is out of range, an activation is \
        unknown, or `clip` is not positive",
    ),
    OpDecl::new(
        "relax.nn.gru",
        |ctx| infer(ctx, CellKind::Gru),
        "A gated recurrent unit (GRU; Cho et al., 2014) layer with the gates z, r, h. Operands and results are as for \
        relax.nn.lstm, without cell state and peepholes. With `linear_before_reset`, the reset gate multiplies the product of \
        the state and the recurrent weights, not the state itself.",
    )
    .operands(&["x", "w", "r", "b?", "sequence_lens?: index", "initial_h?"])
    .attrs(&[
        ("direction", Default::Str("forward")),
        ("activations", Default::None),
        ("activation_alpha", Default::None),
        ("activation_beta", Default::None),
        ("clip", Default::None),
        ("layout", Default::Int(0)),
        ("linear_before_reset", Default::Bool(false)),
    ])
    .te(Pattern::Opaque, |ctx| layer::te_layer(ctx, CellKind::Gru))
    .onnx(&["GRU"])
    .errors(
        "the shape of an operand does not match the sizes of the layer, a sequence length is out of range, an activation is \
        unknown, or `clip` is not positive",
    ),
    OpDecl::new(
        "relax.nn.rnn",
        |ctx| infer(ctx, CellKind::Rnn),
        "A plain recurrent layer, `f(x w + h r + b)`. Operands and results are as for relax.nn.gru.",
    )
    .operands(&["x", "w", "r", "b?", "sequence_lens?: index", "initial_h?"])
    .attrs(ATTRS)
    .te(Pattern::Opaque, |ctx| layer::te_layer(ctx, CellKind::Rnn))
    .onnx(&["RNN"])
    .errors(
        "the shape of an operand does not match the sizes of the layer, a sequence length is out of range, an activation is \
        unknown, or `clip` is not positive",
    ),
];

fn infer(ctx: &mut InferCtx<'_>, kind: CellKind) -> InferResult {
    let dtype = layer::check_types(ctx, kind)?;
    let layer = LayerSizes::read(ctx, kind)?;
    let (y, state) = match &layer {
        Some(l) => (Some(l.output_dims(ctx)), Some(l.state_dims(ctx))),
        None => (None, None),
    };
    let y = ctx.tensor_type(y, Some(4), dtype);
    let state = ctx.tensor_type(state, Some(3), dtype);
    let fields = if kind == CellKind::Lstm { vec![y, state, state] } else { vec![y, state] };
    Ok(ctx.func.intern(TypeData::Tuple(fields.into())))
}
