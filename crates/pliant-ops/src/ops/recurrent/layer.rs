//! Code that all recurrent layers share: operands, directions, sequence lengths, and the loop over time steps.

use pliant_ir::op::InferError;
use pliant_ir::{DType, Sym};

use super::activation::{Activation, activations};
use super::cells;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::op_declaration::TeResult;
use crate::ops::indexing::index_bounds;
use crate::ops::reductions::accumulator;
use crate::shared_operator_rules::{require_float, require_integer, shared_dim};
use crate::te::{self, Body, Expr, Tensor};
use crate::type_inference::InferCtx;
use pliant_tensor::CheckFailure;

/// The kinds of recurrent layers: RNN, GRU and LSTM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    Lstm,
    Gru,
    Rnn,
}

impl CellKind {
    /// The number of gates of the cell. The weight matrices contain one block of `hidden` rows for
    /// each gate.
    pub fn gates(self) -> i64 {
        match self {
            CellKind::Lstm => 4,
            CellKind::Gru => 3,
            CellKind::Rnn => 1,
        }
    }

    fn default_activations(self) -> &'static [&'static str] {
        match self {
            CellKind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            CellKind::Gru => &["Sigmoid", "Tanh"],
            CellKind::Rnn => &["Tanh"],
        }
    }
}

const DIRECTIONS: &[&str] = &["forward", "reverse", "bidirectional"];

/// The sizes of a recurrent layer: time steps, batch, inputs, hidden units and directions.
#[derive(Clone, Debug)]
pub(super) struct LayerSizes {
    steps: Sym,
    batch: Sym,
    inputs: Sym,
    hidden: Sym,
    directions: i64,
    /// Whether the batch is the first dim of the operands and results.
    batched: bool,
}

/// Checks the ranks and element types of all operands, and the attributes. Returns the float type
/// that all operands except the sequence lengths share; `None` if it is unknown.
pub(super) fn check_types(ctx: &InferCtx<'_>, kind: CellKind) -> Result<Option<DType>, InferError> {
    let x = ctx.tensor(0)?;
    require_float(ctx, 0, &x)?;
    let mut dtype = x.dtype;
    let ranks: &[usize] = &[3, 3, 3, 2, 1, 3, 3, 2];
    for i in (0..ctx.args.len()).filter(|&i| ctx.has_operand(i)) {
        let t = ctx.tensor(i)?;
        if t.ndim.is_some_and(|n| n != ranks[i]) {
            let (name, ty, expected) = (ctx.operand_name(i), ctx.operand_type_text(i), ranks[i]);
            return Err(ctx.error(format!("{name} must have {expected} dims, but is {ty}")));
        }
        if i == 4 {
            require_integer(ctx, i, &t)?;
        } else {
            dtype = ctx.same_dtype(0, i)?.or(dtype);
        }
    }
    ctx.choice("direction", DIRECTIONS)?;
    let directions = if ctx.choice("direction", DIRECTIONS)? == 2 { 2 } else { 1 };
    activations(ctx, kind.default_activations(), directions)?;
    clip(ctx)?;
    let layout = ctx.int("layout")?;
    if !matches!(layout, 0 | 1) {
        return Err(ctx
            .error(format!("layout must be 0 (steps first) or 1 (batch first), but is {layout}")));
    }
    Ok(dtype)
}

fn clip(ctx: &InferCtx<'_>) -> Result<Option<f64>, InferError> {
    if ctx.attr("clip").is_none() {
        return Ok(None);
    }
    match ctx.float("clip")? {
        v if v > 0.0 => Ok(Some(v)),
        v => Err(ctx.error(format!("clip must be above 0, but is {v}"))),
    }
}

impl LayerSizes {
    /// Reads the sizes from the operands and checks the shapes of all operands. `None` if dims are unknown.
    pub fn read(ctx: &mut InferCtx<'_>, kind: CellKind) -> Result<Option<LayerSizes>, InferError> {
        let (x, w, r) = (ctx.tensor(0)?.dims, ctx.tensor(1)?.dims, ctx.tensor(2)?.dims);
        let (Some(x), Some(_), Some(r)) = (x, w, r) else { return Ok(None) };
        let directions = if ctx.choice("direction", DIRECTIONS)? == 2 { 2 } else { 1 };
        let batched = ctx.int("layout")? == 1;
        let (steps, batch) = if batched { (x[1], x[0]) } else { (x[0], x[1]) };
        let layer = LayerSizes { steps, batch, inputs: x[2], hidden: r[2], directions, batched };
        for i in 1..ctx.args.len() {
            if !ctx.has_operand(i) {
                continue;
            }
            let Some(actual) = ctx.tensor(i)?.dims else { continue };
            let expected = layer.operand_dims(ctx, kind, i);
            for (&a, &b) in actual.iter().zip(&expected) {
                if shared_dim(ctx, a, b).is_none() {
                    let expected: Vec<String> = expected.iter().map(|&d| ctx.dim_text(d)).collect();
                    let (name, ty, expected) =
                        (ctx.operand_name(i), ctx.operand_type_text(i), expected.join(", "));
                    return Err(
                        ctx.error(format!("{name} must be of shape ({expected}), but is {ty}"))
                    );
                }
            }
        }
        Ok(Some(layer))
    }

    /// The dims that operand `i` of the layer must have.
    fn operand_dims(&self, ctx: &mut InferCtx<'_>, kind: CellKind, i: usize) -> Vec<Sym> {
        let syms = &mut ctx.func.syms;
        let d = syms.int(self.directions);
        let mut times = |n: i64| {
            let n = syms.int(n);
            syms.mul(n, self.hidden)
        };
        match i {
            0 if self.batched => vec![self.batch, self.steps, self.inputs],
            0 => vec![self.steps, self.batch, self.inputs],
            1 => vec![d, times(kind.gates()), self.inputs],
            2 => vec![d, times(kind.gates()), self.hidden],
            3 => vec![d, times(2 * kind.gates())],
            4 => vec![self.batch],
            5 | 6 if self.batched => vec![self.batch, d, self.hidden],
            5 | 6 => vec![d, self.batch, self.hidden],
            _ => vec![d, times(3)],
        }
    }

    /// The dims of an output that contains the state after the last step.
    pub fn state_dims(&self, ctx: &mut InferCtx<'_>) -> Vec<Sym> {
        let d = ctx.func.syms.int(self.directions);
        match self.batched {
            true => vec![self.batch, d, self.hidden],
            false => vec![d, self.batch, self.hidden],
        }
    }

    /// The dims of the output that contains the results of all steps.
    pub fn output_dims(&self, ctx: &mut InferCtx<'_>) -> Vec<Sym> {
        let d = ctx.func.syms.int(self.directions);
        match self.batched {
            true => vec![self.batch, self.steps, d, self.hidden],
            false => vec![self.steps, d, self.batch, self.hidden],
        }
    }
}

/// The tensors and attributes that the time steps of a recurrent layer use.
pub(super) struct LayerTensors {
    pub kind: CellKind,
    /// The matrix products of the inputs and their weights, plus biases, of shape (directions,
    /// steps, batch, gates * hidden).
    pub gates: Tensor,
    pub r: Tensor,
    pub b: Option<Tensor>,
    pub p: Option<Tensor>,
    pub activations: Vec<Activation>,
    pub hidden: Expr,
    pub acc_dtype: DType,
    pub clip: Option<f64>,
    /// The value of the attribute `input_forget` of an LSTM, or `linear_before_reset` of a GRU; false for an RNN.
    pub variant: bool,
}

/// The state of one sequence, before and after a time step: its output and its cell state.
pub(super) struct SequenceState {
    pub h: Tensor,
    pub c: Tensor,
    pub next: Tensor,
    /// Scratch memory for the sums of all gates in one time step, before their activation functions are applied.
    pub pre: Tensor,
}

/// The indices of a step of a layer: direction, time and sequence.
pub(super) struct StepIndices<'e> {
    pub d: usize,
    pub t: &'e Expr,
    pub n: &'e Expr,
}

impl LayerTensors {
    /// Clips `x` if the attribute `clip` is set, and applies the `k`-th activation of direction
    /// `d`.
    pub fn activate(&self, d: usize, k: usize, x: &Expr) -> Expr {
        let activation_count = self.kind.default_activations().len();
        self.activations[d * activation_count + k].apply(&self.clipped(x))
    }

    fn clipped(&self, x: &Expr) -> Expr {
        match self.clip {
            Some(v) => {
                let limit = te::const_of(v, self.acc_dtype);
                te::maximum(&te::minimum(x, &limit), &-&limit)
            }
            None => x.clone(),
        }
    }

    /// The row of the weight matrix for element `j` of gate `gate`. Each gate has `hidden` rows,
    /// and the gates follow each other.
    pub fn gate_row(&self, gate: i64, j: &Expr) -> Expr {
        &self.hidden * gate + j
    }

    /// Emits the sum of `first` and the dot product of the previous output `h` and row `row` of the recurrent weights of direction
    /// `d`, and returns it.
    pub fn state_product(
        &self,
        b: &mut Body,
        d: usize,
        row: &Expr,
        h: &Tensor,
        first: &Expr,
    ) -> Expr {
        let sum = b.cell("sum", first);
        b.for_("k", &self.hidden, |b, k| {
            let weight = self.r.at(&[te::int(d as i64), row.clone(), k.clone()]);
            let product = h.at(std::slice::from_ref(k)) * te::cast(&weight, self.acc_dtype);
            b.set(&sum, &(sum.get() + product));
        });
        sum.get()
    }

    /// The element of `gates` (the matrix product of the inputs and their weights, plus biases) for row `row` of the weights at a
    /// step.
    pub fn input_product(&self, s: &StepIndices<'_>, row: &Expr) -> Expr {
        self.gates.at(&[te::int(s.d as i64), s.t.clone(), s.n.clone(), row.clone()])
    }
}

/// Reads operand `i` as a tensor; `None` if the operand is absent.
fn optional(
    ctx: &mut LegalizeCtx<'_>,
    layer: &LayerSizes,
    kind: CellKind,
    i: usize,
) -> Result<Option<Tensor>, LegalizeError> {
    if !ctx.has_operand(i) {
        return Ok(None);
    }
    let dims = layer.operand_dims(&mut ctx.infer(), kind, i);
    ctx.tensor_with_dims(i, &dims).map(Some)
}

/// Creates the stage that multiplies the inputs of all time steps by their weights. The biases of
/// inputs and state are included, except for the state bias of the last gate of a GRU.
fn input_gates(
    ctx: &mut LegalizeCtx<'_>,
    layer: &LayerSizes,
    kind: CellKind,
    (x, w, bias): (&Tensor, &Tensor, Option<&Tensor>),
    acc_dtype: DType,
) -> Tensor {
    let [steps, batch, inputs] = [layer.steps, layer.batch, layer.inputs].map(|s| ctx.size(s));
    let rows = w.shape()[1].clone();
    let hidden = ctx.size(layer.hidden);
    let k = te::reduce_axis(inputs, "k");
    let shape = vec![te::int(layer.directions), steps, batch, rows.clone()];
    let product = te::compute(shape.clone(), "T_input_gates", |i| {
        let at = match layer.batched {
            true => [i[2].clone(), i[1].clone(), k.var.expr()],
            false => [i[1].clone(), i[2].clone(), k.var.expr()],
        };
        let weight = w.at(&[i[0].clone(), i[3].clone(), k.var.expr()]);
        te::sum(
            &(te::cast(&x.at(&at), acc_dtype) * te::cast(&weight, acc_dtype)),
            std::slice::from_ref(&k),
        )
    });
    let Some(bias) = bias else { return product };
    te::compute(shape, "T_gates", |i| {
        let input_bias = te::cast(&bias.at(&[i[0].clone(), i[3].clone()]), acc_dtype);
        let state = te::cast(&bias.at(&[i[0].clone(), &i[3] + &rows]), acc_dtype);
        // With `linear_before_reset`, the reset gate of a GRU also applies to the recurrent bias of the last gate, so the time step
        // adds this bias.
        let state = match kind {
            CellKind::Gru => {
                let last = te::ge(&i[3], &(&hidden * 2));
                te::select(&last, &te::const_of(0.0, acc_dtype), &state)
            }
            _ => state,
        };
        product.at(i) + input_bias + state
    })
}

/// Lowers a recurrent layer of the given kind to one stage that computes all time steps.
///
/// # Errors
/// If a shape or data type is unknown.
pub(super) fn te_layer(ctx: &mut LegalizeCtx<'_>, kind: CellKind) -> TeResult {
    let name = ctx.decl.name;
    let unknown =
        || LegalizeError::unknown(format!("{name}: the shapes of x, w and r must be known"));
    let layer = LayerSizes::read(&mut ctx.infer(), kind)?.ok_or_else(unknown)?;
    let dtype = ctx.out_dtype(0)?;
    let acc_dtype = accumulator(dtype);
    let mut operands = Vec::with_capacity(8);
    for i in 0..8 {
        operands.push(if i < ctx.args.len() { optional(ctx, &layer, kind, i)? } else { None });
    }
    let (x, w) =
        (operands[0].clone().ok_or_else(unknown)?, operands[1].clone().ok_or_else(unknown)?);
    let gates = input_gates(ctx, &layer, kind, (&x, &w, operands[3].as_ref()), acc_dtype);
    let infer = ctx.infer();
    let variant = match kind {
        CellKind::Lstm => infer.bool("input_forget")?,
        CellKind::Gru => infer.bool("linear_before_reset")?,
        CellKind::Rnn => false,
    };
    let direction = infer.choice("direction", DIRECTIONS)?;
    let layer_tensors = LayerTensors {
        kind,
        gates,
        r: operands[2].clone().ok_or_else(unknown)?,
        b: operands[3].clone(),
        p: operands[7].clone(),
        activations: activations(&infer, kind.default_activations(), layer.directions as usize)?,
        acc_dtype,
        clip: clip(&infer)?,
        variant,
        hidden: ctx.size(layer.hidden),
    };
    let mut outputs = Vec::new();
    for k in 0..if kind == CellKind::Lstm { 3 } else { 2 } {
        outputs.push((ctx.out_shape(k)?, dtype));
    }
    let (steps, batch) = (ctx.size(layer.steps), ctx.size(layer.batch));
    let lengths = operands[4].as_ref();
    let first = [operands[5].as_ref(), operands[6].as_ref()];
    let trust_indices = ctx.trust_indices;
    let short = name.rsplit('.').next().unwrap_or(name);
    Ok(te::extern_(short, &outputs, |b, out| {
        for d in 0..layer.directions as usize {
            let backwards = direction == 1 || d == 1;
            b.for_("n", &batch, |b, n| {
                let length = match lengths {
                    Some(l) => {
                        let length = index_bounds::as_int64(&l.at(std::slice::from_ref(n)));
                        let length = b.let_("length", &length);
                        let inside =
                            te::and(&te::ge(&length, &te::int(0)), &te::le(&length, &steps));
                        let message = format!(
                            "{name}: the sequence length {{0}} is out of range for {{1}} steps"
                        );
                        if !trust_indices {
                            b.assert(
                                &te::explain(&inside, &[length.clone(), steps.clone()]),
                                CheckFailure::Index.mark(&message),
                            );
                        }
                        b.let_("ends", &te::maximum(&te::minimum(&length, &steps), &te::int(0)))
                    }
                    None => steps.clone(),
                };
                sequence(
                    b,
                    &layer_tensors,
                    &layer,
                    (d, n, backwards),
                    (&steps, &length),
                    &first,
                    out,
                );
            });
        }
    }))
}

/// Emits the code for one sequence in one direction: the initial state, the loop over its time
/// steps, zeros for the outputs after the end of the sequence, and the final state.
fn sequence(
    b: &mut Body,
    layer_tensors: &LayerTensors,
    layer: &LayerSizes,
    (d, n, backwards): (usize, &Expr, bool),
    (steps, length): (&Expr, &Expr),
    first: &[Option<&Tensor>; 2],
    out: &[Tensor],
) {
    let (hidden, acc_dtype) = (&layer_tensors.hidden, layer_tensors.acc_dtype);
    let side = te::int(d as i64);
    let zero = te::const_of(0.0, acc_dtype);
    let len = std::slice::from_ref(hidden);
    let state = SequenceState {
        h: b.alloc("h", len, acc_dtype),
        c: b.alloc("c", len, acc_dtype),
        next: b.alloc("next", len, acc_dtype),
        pre: b.alloc("pre", &[hidden * layer_tensors.kind.gates()], acc_dtype),
    };
    let at = |j: &Expr| match layer.batched {
        true => [n.clone(), side.clone(), j.clone()],
        false => [side.clone(), n.clone(), j.clone()],
    };
    let to = |t: &Expr, j: &Expr| match layer.batched {
        true => [n.clone(), t.clone(), side.clone(), j.clone()],
        false => [t.clone(), side.clone(), n.clone(), j.clone()],
    };
    b.for_("j", hidden, |b, j| {
        for (buffer, initial) in [&state.h, &state.c].into_iter().zip(first) {
            let value =
                initial.map_or_else(|| zero.clone(), |g| te::cast(&g.at(&at(j)), acc_dtype));
            b.store(buffer, std::slice::from_ref(j), &value);
        }
    });
    b.for_("s", length, |b, s| {
        let t = if backwards { length - 1 - s } else { s.clone() };
        let t = b.let_("t", &index_bounds::clamp(&t, steps));
        cells::step(b, layer_tensors, &state, &StepIndices { d, t: &t, n });
        b.for_("j", hidden, |b, j| {
            let value = state.next.at(std::slice::from_ref(j));
            b.store(&out[0], &to(&t, j), &value);
            b.store(&state.h, std::slice::from_ref(j), &value);
        });
    });
    b.for_("s", &(steps - length), |b, s| {
        let t = index_bounds::clamp(&(length + s), steps);
        b.for_("j", hidden, |b, j| b.store(&out[0], &to(&t, j), &zero));
    });
    b.for_("j", hidden, |b, j| {
        b.store(&out[1], &at(j), &state.h.at(std::slice::from_ref(j)));
        if let Some(cells) = out.get(2) {
            b.store(cells, &at(j), &state.c.at(std::slice::from_ref(j)));
        }
    });
}
