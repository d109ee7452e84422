//! Recurrent layers with constant weights whose cells the kernel has.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::rewrite::reachable_seqs;
use pliant_tensor::Tensor;
use pliant_tensor::gates::Cell;
use rustc_hash::FxHashMap;

use crate::legalize_ops::{given, nulls};
use crate::names::is_left_out;

const LSTM: Op = Op("relax.nn.lstm");
const GRU: Op = Op("relax.nn.gru");
const RNN: Op = Op("relax.nn.rnn");

/// The operands of the operators, in order.
const BIAS: usize = 3;
const LENGTHS: usize = 4;
const FIRST_OUTPUT: usize = 5;
const FIRST_CELL: usize = 6;
const PEEPHOLES: usize = 7;

/// A layer.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub op: Op,
    pub cell: Cell,
    pub directions: i64,
    pub reverse: bool,
    /// Whether sequences come before steps.
    pub batched: bool,
    pub input: i64,
    pub hidden: i64,
    pub x: Expr,
    pub w: Tensor,
    pub r: Tensor,
    pub bias: Option<Tensor>,
    pub peepholes: Option<Tensor>,
    pub lengths: Option<Expr>,
    pub first_output: Option<Expr>,
    pub first_cell: Option<Expr>,
    /// The variable that holds the results, and their types.
    pub result: Var,
    pub tys: Vec<Type>,
}

/// The layers of a function that the kernel takes.
pub(super) fn all(func: &Function) -> Vec<Layer> {
    let mut out = Vec::new();
    let nulls = nulls(func);
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            out.extend(func.block(block).bindings.iter().filter_map(|b| layer(func, &nulls, *b)));
        }
    }
    out
}

/// The call of a recurrent operator.
struct Call<'a> {
    func: &'a Function,
    nulls: &'a FxHashMap<Var, Expr>,
    args: &'a [Expr],
    attrs: &'a Attrs,
}

impl Call<'_> {
    /// Operand `i` where it is given.
    fn given(&self, i: usize) -> Option<Expr> {
        let e = given(self.nulls, self.func, *self.args.get(i)?);
        if is_left_out(self.func, e) { None } else { Some(e) }
    }

    /// Operand `i`, which must be a constant where it is given.
    fn constant(&self, i: usize) -> Option<Option<Tensor>> {
        match self.given(i).map(|e| self.func.expr(e)) {
            None => Some(None),
            Some(ExprData::Constant(c)) => Some(Some(self.func.const_tensor(*c).clone())),
            Some(_) => None,
        }
    }

    /// An attribute that is there and no `None`.
    fn attr(&self, name: &str) -> Option<&AttrValue> {
        self.attrs.get(name).filter(|v| !v.is_none())
    }

    fn flag(&self, name: &str) -> bool {
        self.attr(name).is_some_and(|v| v.as_bool() != Some(false))
    }

    /// Whether the activations are these, in each direction.
    fn activates(&self, usual: &[&str]) -> bool {
        let Some(given) = self.attr("activations") else { return true };
        let AttrValue::List(given) = given else { return false };
        given
            .iter()
            .zip(usual.iter().cycle())
            .all(|(name, usual)| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(usual)))
    }
}

/// The cell of a call: that of the operator with its usual activations, no limit of the sums, and gates of their own.
fn cell(op: Op, call: &Call<'_>) -> Option<Cell> {
    let (cell, usual): (_, &[&str]) = match op {
        LSTM if !call.flag("input_forget") => (Cell::Lstm, &["Sigmoid", "Tanh", "Tanh"]),
        GRU if call.flag("linear_before_reset") => (Cell::LinearGru, &["Sigmoid", "Tanh"]),
        GRU => (Cell::Gru, &["Sigmoid", "Tanh"]),
        RNN => (Cell::Rnn, &["Tanh"]),
        _ => return None,
    };
    (call.attr("clip").is_none() && call.activates(usual)).then_some(cell)
}

impl Layer {
    /// Whether all operands are known to be of the sizes that the others have.
    fn fits(&self, func: &Function) -> bool {
        // A tensor without elements may have dims of which no other is a multiple.
        let times = |by: i64, size: i64| size.checked_mul(by);
        let d = self.directions;
        let Some(rows) = times(self.cell.gates() as i64, self.hidden) else { return false };
        let (Some(biases), Some(peepholes)) = (times(2, rows), times(3, self.hidden)) else {
            return false;
        };
        let of = |t: Option<&Tensor>, shape: &[i64]| {
            t.is_none_or(|t| t.dtype() == DType::Float32 && t.shape() == shape)
        };
        let weights = of(Some(&self.w), &[d, rows, self.input])
            && of(Some(&self.r), &[d, rows, self.hidden])
            && of(self.bias.as_ref(), &[d, biases])
            && of(self.peepholes.as_ref(), &[d, peepholes]);
        let float = |e: Expr| func.ty(e).dtype() == Some(DType::Float32);
        let Some(&[first, second, inputs]) = func.ty(self.x).dims() else { return false };
        let batch = if self.batched { first } else { second };
        let is = |dim, size: i64| func.syms.as_int(dim) == Some(size);
        let state = |e: Option<Expr>| {
            e.is_none_or(|e| match func.ty(e).dims() {
                Some(&[a, b, c]) => {
                    let (of_d, of_b) = if self.batched { (b, a) } else { (a, b) };
                    float(e) && is(of_d, d) && of_b == batch && is(c, self.hidden)
                }
                _ => false,
            })
        };
        let lengths = self.lengths.is_none_or(|e| {
            let dtype = func.ty(e).dtype();
            let integer = dtype.is_some_and(|t| t.is_int() || t.is_uint());
            integer && func.ty(e).dims() == Some(&[batch])
        });
        let some = self.hidden > 0 && float(self.x) && is(inputs, self.input);
        weights && some && lengths && state(self.first_output) && state(self.first_cell)
    }
}

/// The layer that a binding is.
fn layer(func: &Function, nulls: &FxHashMap<Var, Expr>, binding: Binding) -> Option<Layer> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(binding.value)
    else {
        return None;
    };
    let call = Call { func, nulls, args: func.list(*args), attrs: func.call_attrs(*attrs) };
    let cell = cell(*op, &call)?;
    let (w, r) = (call.constant(1)??, call.constant(2)??);
    let &[directions, _, input] = w.shape() else { return None };
    let &[_, _, hidden] = r.shape() else { return None };
    let TypeData::Tuple(tys) = func.var_ty(binding.var).clone() else {
        return None;
    };
    let direction = call.attrs.get("direction").map_or(Some("forward"), AttrValue::as_str)?;
    let l = Layer {
        op: *op,
        cell,
        directions,
        reverse: direction == "reverse",
        batched: call.attrs.get("layout").map_or(Some(0), AttrValue::as_int)? == 1,
        input,
        hidden,
        x: call.given(0)?,
        w,
        r,
        bias: call.constant(BIAS)?,
        peepholes: call.constant(PEEPHOLES)?,
        lengths: call.given(LENGTHS),
        first_output: call.given(FIRST_OUTPUT),
        first_cell: call.given(FIRST_CELL),
        result: binding.var,
        tys: tys.to_vec(),
    };
    let sides = if direction == "bidirectional" { 2 } else { 1 };
    (directions == sides && l.fits(func)).then_some(l)
}
