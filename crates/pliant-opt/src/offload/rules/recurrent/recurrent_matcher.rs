//! Recognizes recurrent layers (LSTM, GRU, plain) that the kernel `recurrent` supports.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_machine::Machine;
use pliant_tensor::Tensor;
use pliant_tensor::rnn_weight_layout::Cell;
use rustc_hash::FxHashMap;

use crate::common::operators_after_lowering::is_absent;
use crate::common::operators_after_lowering::resolve_null;
use crate::offload::offload_rule::KeepReason;

pub(super) const LSTM: Op = Op::new("relax.nn.lstm");
pub(super) const GRU: Op = Op::new("relax.nn.gru");
pub(super) const RNN: Op = Op::new("relax.nn.rnn");

/// The operand index of the biases of a recurrent operator. The following constants are the indices of its other optional
/// operands.
const BIAS: usize = 3;
const LENGTHS: usize = 4;
const INITIAL_OUTPUT: usize = 5;
const INITIAL_CELL: usize = 6;
const PEEPHOLES: usize = 7;

/// The weights, biases or peepholes of a recurrent layer.
#[derive(Clone, Debug)]
pub(super) enum Weights {
    /// A constant, which is packed at compile time.
    Constant(Tensor),
    /// A non-constant operand, which is packed at run time, with its sizes.
    NonConstant(Expr, Vec<i64>),
}

impl Weights {
    /// Interprets an operand as weights. `None` if it is not float32 or its sizes are not constant.
    fn of(func: &Function, e: Expr) -> Option<Weights> {
        let ty = func.ty(e);
        if ty.dtype() != Some(DType::Float32) {
            return None;
        }
        if let ExprData::Constant(c) = func.expr(e) {
            return Some(Weights::Constant(func.const_tensor(*c).clone()));
        }
        let shape = ty.dims()?.iter().map(|&d| func.syms.as_int(d)).collect::<Option<_>>()?;
        Some(Weights::NonConstant(e, shape))
    }

    fn shape(&self) -> &[i64] {
        match self {
            Weights::Constant(tensor) => tensor.shape(),
            Weights::NonConstant(_, shape) => shape,
        }
    }

    /// Whether both weights are the same constant.
    pub fn same_constant(&self, other: &Weights) -> bool {
        match (self, other) {
            (Weights::Constant(a), Weights::Constant(b)) => a.same(b),
            _ => false,
        }
    }
}

/// A recognized recurrent layer: its cell, operands and sizes.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub op: Op,
    pub cell: Cell,
    pub directions: i64,
    pub reverse: bool,
    /// Whether the batch dim precedes the dim of steps in the layer's input tensor.
    pub batched: bool,
    pub input: i64,
    pub hidden: i64,
    pub x: Expr,
    pub w: Weights,
    pub r: Weights,
    pub bias: Option<Weights>,
    pub peepholes: Option<Weights>,
    pub lengths: Option<Expr>,
    pub initial_output: Option<Expr>,
    pub initial_cell: Option<Expr>,
    /// The variable that is bound to the tuple of the layer's results.
    pub result: Var,
    /// The types of the layer's results.
    pub tys: Vec<Type>,
}

/// The operands and attributes of a call of a recurrent operator.
struct RecurrentCall<'a> {
    func: &'a Function,
    nulls: &'a FxHashMap<Var, Expr>,
    args: &'a [Expr],
    attrs: &'a Attrs,
}

impl RecurrentCall<'_> {
    /// Returns operand `i`; `None` if it is absent.
    fn operand(&self, i: usize) -> Option<Expr> {
        let e = resolve_null(self.nulls, self.func, *self.args.get(i)?);
        if is_absent(self.func, e) { None } else { Some(e) }
    }

    /// Interprets operand `i` as weights. `Some(None)` if the operand is absent, `None` if the kernel does not support the
    /// weights.
    fn weights(&self, i: usize) -> Option<Option<Weights>> {
        match self.operand(i) {
            None => Some(None),
            Some(e) => Weights::of(self.func, e).map(Some),
        }
    }

    /// Returns the value of an attribute; `None` if it is absent or has the value `None`.
    fn attr(&self, name: &str) -> Option<&AttrValue> {
        self.attrs.get(name).filter(|v| !v.is_none())
    }

    fn flag(&self, name: &str) -> bool {
        self.attr(name).is_some_and(|v| v.as_bool() != Some(false))
    }

    /// Whether the activations of each direction are the default ones.
    fn has_default_activations(&self, default_names: &[&str]) -> bool {
        let Some(activations) = self.attr("activations") else { return true };
        let AttrValue::List(activations) = activations else { return false };
        activations.iter().zip(default_names.iter().cycle()).all(|(name, default_names)| {
            name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(default_names))
        })
    }
}

/// Returns the kind of the cell of a call. `None` for activations other than the default ones, and if `clip` or `input_forget` is
/// set.
fn cell(op: Op, call: &RecurrentCall<'_>) -> Option<Cell> {
    let (cell, default_names): (_, &[&str]) = match op {
        LSTM if !call.flag("input_forget") => (Cell::Lstm, &["Sigmoid", "Tanh", "Tanh"]),
        GRU if call.flag("linear_before_reset") => (Cell::LinearGru, &["Sigmoid", "Tanh"]),
        GRU => (Cell::Gru, &["Sigmoid", "Tanh"]),
        RNN => (Cell::Rnn, &["Tanh"]),
        _ => return None,
    };
    (call.attr("clip").is_none() && call.has_default_activations(default_names)).then_some(cell)
}

impl Layer {
    /// Whether the sizes of all operands are known to be consistent.
    fn has_consistent_sizes(&self, func: &Function) -> bool {
        // Products of sizes may overflow, because a tensor without elements may have dims of any size.
        let checked_mul = |by: i64, size: i64| size.checked_mul(by);
        let d = self.directions;
        let Some(rows) = checked_mul(self.cell.gates() as i64, self.hidden) else { return false };
        let (Some(biases), Some(peepholes)) = (checked_mul(2, rows), checked_mul(3, self.hidden))
        else {
            return false;
        };
        let has_shape = |t: Option<&Weights>, shape: &[i64]| t.is_none_or(|t| t.shape() == shape);
        // Panels have at most 16 columns for each unit, including padding. The number of packed elements must not overflow.
        let packed_elements = checked_mul(16 * d, self.hidden.saturating_add(64))
            .and_then(|n| n.checked_mul(self.input.max(self.hidden).saturating_add(1)));
        let weights = packed_elements.is_some()
            && has_shape(Some(&self.w), &[d, rows, self.input])
            && has_shape(Some(&self.r), &[d, rows, self.hidden])
            && has_shape(self.bias.as_ref(), &[d, biases])
            && has_shape(self.peepholes.as_ref(), &[d, peepholes]);
        let float = |e: Expr| func.ty(e).dtype() == Some(DType::Float32);
        let Some(&[first, second, inputs]) = func.ty(self.x).dims() else { return false };
        let batch = if self.batched { first } else { second };
        let is_size = |dim, size: i64| func.syms.as_int(dim) == Some(size);
        let state = |e: Option<Expr>| {
            e.is_none_or(|e| match func.ty(e).dims() {
                Some(&[a, b, c]) => {
                    let (of_d, of_b) = if self.batched { (b, a) } else { (a, b) };
                    float(e) && is_size(of_d, d) && of_b == batch && is_size(c, self.hidden)
                }
                _ => false,
            })
        };
        let lengths = self.lengths.is_none_or(|e| {
            let dtype = func.ty(e).dtype();
            let integer = dtype.is_some_and(|t| t.is_int() || t.is_uint());
            integer && func.ty(e).dims() == Some(&[batch])
        });
        let input_fits = self.hidden > 0 && float(self.x) && is_size(inputs, self.input);
        weights && input_fits && lengths && state(self.initial_output) && state(self.initial_cell)
    }

    /// Whether the weights are non-constant and the total number of steps of all sequences is known to be so small that packing
    /// them is not profitable.
    fn has_few_steps(&self, func: &Function) -> bool {
        let Some(&[first, second, _]) = func.ty(self.x).dims() else { return false };
        let count = func.syms.as_int(first).zip(func.syms.as_int(second));
        let is_short = count.is_some_and(|(a, b)| {
            !Machine::host().packing_recurrent_weights_is_faster(a.saturating_mul(b))
        });
        is_short && [&self.w, &self.r].into_iter().any(|w| matches!(w, Weights::NonConstant(..)))
    }
}

/// Recognizes a recurrent layer.
///
/// # Errors
/// The reason why the kernel does not support the layer.
pub(super) fn layer(
    func: &Function,
    nulls: &FxHashMap<Var, Expr>,
    binding: Binding,
) -> Result<Layer, KeepReason> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(binding.value)
    else {
        return Err(KeepReason::NotApplicable);
    };
    let call =
        RecurrentCall { func, nulls, args: func.list(*args), attrs: func.call_attrs(*attrs) };
    let cell = cell(*op, &call).ok_or(
        "the recurrent layer sets `clip` or `input_forget`, or has activations other than the default ones",
    )?;
    let layer = layer_of_cell(&call, (*op, cell), binding)
        .filter(|l| l.has_consistent_sizes(func))
        .ok_or("the recurrent layer's operands are not float32 tensors of known, matching sizes")?;
    match layer.has_few_steps(func) {
        true => Err(
            "the recurrent layer has so few steps, or rows per step, that packing its non-constant weights takes longer than the \
             kernel saves"
                .into(),
        ),
        false => Ok(layer),
    }
}

/// Builds the layer of a call with a supported cell. `None` if the sizes of its weights are unknown.
fn layer_of_cell(
    call: &RecurrentCall<'_>,
    (op, cell): (Op, Cell),
    binding: Binding,
) -> Option<Layer> {
    let (w, r) = (call.weights(1)??, call.weights(2)??);
    let (&[directions, _, input], &[_, _, hidden]) = (w.shape(), r.shape()) else { return None };
    let TypeData::Tuple(tys) = call.func.var_ty(binding.var).clone() else {
        return None;
    };
    let direction = call.attrs.get("direction").map_or(Some("forward"), AttrValue::as_str)?;
    let expected_directions = if direction == "bidirectional" { 2 } else { 1 };
    (directions == expected_directions).then_some(Layer {
        op,
        cell,
        directions,
        reverse: direction == "reverse",
        batched: call.attrs.get("layout").map_or(Some(0), AttrValue::as_int)? == 1,
        input,
        hidden,
        x: call.operand(0)?,
        w,
        r,
        bias: call.weights(BIAS)?,
        peepholes: call.weights(PEEPHOLES)?,
        lengths: call.operand(LENGTHS),
        initial_output: call.operand(INITIAL_OUTPUT),
        initial_cell: call.operand(INITIAL_CELL),
        result: binding.var,
        tys: tys.to_vec(),
    })
}
