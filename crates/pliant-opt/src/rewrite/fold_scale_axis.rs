//! # What it does
//! Folds per-channel scales and offsets that follow a convolution into the convolution's weights and bias. `conv(x, w) * s + o`
//! becomes `conv(x, w * s) + o`, and `(conv(x, w) + b) * s + o` becomes `conv(x, w * s) + (b * s + o)`. Batch normalization with
//! moving statistics is such a scale and offset. [`FoldConstant`](crate::canonicalize::fold_constant) then computes the new weights
//! and the new bias, so that nothing of the normalization is left at run time.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Tensor(("n", 2, "h", 4), "float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         lv = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
//!         lv1 = R.multiply(lv, R.const([[[2.0]], [[4.0]]], "float32"))
//!         gv = R.add(lv1, R.const([[[1.0]], [[-2.0]]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Tensor(("n", 2, "h", 4), "float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         lv = R.reshape(R.const([[[2.0]], [[4.0]]], "float32"), R.shape([2, 1, 1, 1]))
//!         lv1 = R.multiply(R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), lv)
//!         lv2 = R.nn.conv2d(x, lv1)
//!         gv = R.add(lv2, R.const([[[1.0]], [[-2.0]]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! The weights, scales and offsets must be constants or computed from constants. Parameters would be scaled in every run.
//!
//! # Keeps
//! - Scales of convolutions whose result has other readers or is not a dataflow variable.
//! - Scales of integer and 16-bit convolutions, because rounding the scaled weights would cost accuracy.
//! - Transposed convolutions with several groups.
//!
//! # Never
//! Guarantees bit-identical results, because the weights are scaled instead of the sums. If scaled weights overflow, or a scale or
//! divisor is 0, results that were finite or infinite may be NaN, and the other way round. Weights that several convolutions share
//! are copied for each scale.

use pliant_ir::relax::{Expr, ExprData, Var};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Op, Sym};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{RewriteCx, RuleSet, is_op, is_tuple_get_item, rewrite_rules, wildcard};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use pliant_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::matmul_and_conv_operands::{
    ADD, CONVOLUTIONS, constant_vars, is_input_independent,
};
use crate::common::operators_after_lowering::RESHAPE;
use crate::offload::epilogue_activations::{Readers, op_call};

const MULTIPLY: Op = Op::new("relax.multiply");
const DIVIDE: Op = Op::new("relax.divide");
const SUBTRACT: Op = Op::new("relax.subtract");
const NEGATIVE: Op = Op::new("relax.negative");
const SQRT: Op = Op::new("relax.sqrt");
const BATCH_NORM: Op = Op::new("relax.nn.batch_norm");

/// The pass that folds scales and offsets into convolutions. See the module documentation.
pub struct FoldScaleAxis;

impl ModulePass for FoldScaleAxis {
    fn name(&self) -> &str {
        "FoldScaleAxis"
    }

    fn opt_level(&self) -> u8 {
        2
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let writers = MayWrite::of(&module);
        let binary = [MULTIPLY, DIVIDE, ADD, SUBTRACT];
        let mut patterns: Vec<_> =
            binary.iter().map(|&op| is_op(op).call([wildcard(), wildcard()])).collect();
        patterns.push(is_tuple_get_item(is_op(BATCH_NORM).call_any([wildcard()]), Some(0)));
        let rules = RuleSet::new(patterns.clone(), ctx.ops)?;
        update_each_relax(&mut module, ctx, |_, func| {
            let constants = constant_vars(func);
            let readers = Readers::of(func);
            let mut folded = FxHashMap::default();
            let count = rewrite_rules(func, &rules, ctx.ops, Some(&writers), |cx, matched| {
                let Some(root) = matched.get(&patterns[matched.rule]) else { return Ok(None) };
                let var = cx.var;
                let folding =
                    Folding { cx, readers: &readers, constants: &constants, folded: &folded };
                let Some((conv, value)) = folding.fold(root)? else { return Ok(None) };
                folded.insert(var, conv);
                Ok(Some(value))
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

/// A convolution with constant weights, and the offset that is added to its result.
#[derive(Clone)]
struct Convolution {
    op: Op,
    x: Expr,
    weights: Expr,
    attrs: Attrs,
    /// The axis of the filters in the weights.
    filter_axis: usize,
    /// The axis of the channels in the result.
    channel_axis: usize,
    /// The rank of the weights and of the result.
    rank: usize,
    /// The number of channels of the result.
    channels: i64,
    /// The per-channel offset that is added to the result; `None` if there is none.
    offset: Option<Expr>,
}

/// The callback of the rewrite rules: folds an addition, a scale or a batch normalization into the convolution before it.
struct Folding<'a, 'cx> {
    cx: &'a mut RewriteCx<'cx>,
    readers: &'a Readers,
    /// The variables that are computed from constants.
    constants: &'a FxHashSet<Var>,
    /// Maps the variables that have been folded so far to the convolutions that replace their values.
    folded: &'a FxHashMap<Var, Convolution>,
}

/// A convolution that replaces a matched expression, and the expression of its result.
type Replacement = (Convolution, Expr);

impl Folding<'_, '_> {
    /// Returns the replacement of a matched expression; `None` if the expression cannot be folded into a convolution.
    fn fold(mut self, root: Expr) -> Result<Option<Replacement>, PassError> {
        let conv = match *self.cx.func.expr(root) {
            ExprData::TupleGetItem(tuple, 0) => self.fold_batch_norm(tuple)?,
            _ => self.fold_binary(root)?,
        };
        let Some(conv) = conv else { return Ok(None) };
        let y = self.cx.call(conv.op, &[conv.x, conv.weights], conv.attrs.clone())?;
        let value = match conv.offset {
            None => y,
            Some(offset) => self.cx.call(ADD, &[y, offset], Attrs::default())?,
        };
        Ok(Some((conv, value)))
    }

    /// Returns the convolution that replaces a binary operator of a convolution and a per-channel operand.
    fn fold_binary(&mut self, root: Expr) -> Result<Option<Convolution>, PassError> {
        let Some((op, &[a, b], _)) = op_call(self.cx.func, root) else { return Ok(None) };
        let commutes = op == ADD || op == MULTIPLY;
        let (conv, other) = match self.convolution(a) {
            Some(conv) => (conv, b),
            None if commutes => match self.convolution(b) {
                Some(conv) => (conv, a),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        if !self.is_per_channel(&conv, other) {
            return Ok(None);
        }
        match (op, conv.offset) {
            (MULTIPLY | DIVIDE, _) => self.scaled(conv, op, other).map(Some),
            // The epilogue of the kernel adds the offset.
            (ADD, None) => Ok(None),
            _ => self.shifted(conv, op, other).map(Some),
        }
    }

    /// Returns the convolution that replaces field 0 of the batch normalization `tuple`; `None` if it cannot be folded.
    fn fold_batch_norm(&mut self, tuple: Expr) -> Result<Option<Convolution>, PassError> {
        let value = self.cx.value(tuple);
        let Some((BATCH_NORM, &[x, gamma, beta, mean, variance], attrs)) =
            op_call(self.cx.func, value)
        else {
            return Ok(None);
        };
        let flag = |name: &str| attrs.get(name).and_then(AttrValue::as_bool);
        let (training, center, scale) = (flag("training"), flag("center"), flag("scale"));
        let axis = attrs.get("axis").and_then(AttrValue::as_int);
        let epsilon = attrs.get("epsilon").and_then(AttrValue::as_float);
        let (Some(false), Some(axis), Some(epsilon)) = (training, axis, epsilon) else {
            return Ok(None);
        };
        let Some(conv) = self.convolution(x) else { return Ok(None) };
        let parameters = [gamma, beta, mean, variance];
        let is_foldable = axis.rem_euclid(conv.rank as i64) == conv.channel_axis as i64
            && parameters.iter().all(|&p| self.is_channel_vector(&conv, p))
            && self.only_reader(tuple).is_some();
        let epsilon = match self.cx.func.ty(variance).dtype() {
            Some(DType::Float32) => Tensor::from_slice(&[], &[epsilon as f32]),
            Some(DType::Float64) => Tensor::from_slice(&[], &[epsilon]),
            _ => return Ok(None),
        };
        let Some(epsilon) = epsilon.ok().filter(|_| is_foldable) else { return Ok(None) };
        let epsilon = self.cx.func.constant(epsilon);
        let variance = self.emit(ADD, &[variance, epsilon])?;
        let deviation = self.emit(SQRT, &[variance])?;
        let (mut op, mut factor) = (DIVIDE, deviation);
        if scale == Some(true) {
            (op, factor) = (MULTIPLY, self.emit(DIVIDE, &[gamma, deviation])?);
        }
        let scaled_mean = self.emit(op, &[mean, factor])?;
        let factor = self.reshape_along_axis(&conv, factor, conv.channel_axis)?;
        let mut conv = self.scaled(conv, op, factor)?;
        if center == Some(true) {
            let beta = self.reshape_along_axis(&conv, beta, conv.channel_axis)?;
            conv = self.shifted(conv, ADD, beta)?;
        }
        let scaled_mean = self.reshape_along_axis(&conv, scaled_mean, conv.channel_axis)?;
        self.shifted(conv, SUBTRACT, scaled_mean).map(Some)
    }

    /// Returns the convolution that defines an operand, including an offset that an addition adds to its result. `None` if the
    /// operand has another definition or other readers, or if the weights or the offset depend on inputs.
    fn convolution(&self, e: Expr) -> Option<Convolution> {
        let v = self.only_reader(e)?;
        if let Some(conv) = self.folded.get(&v) {
            // A side effect in between may have overwritten the input of the convolution.
            let is_unchanged = self.cx.defs.epoch(v) == self.cx.defs.epoch(self.cx.var);
            return is_unchanged.then(|| conv.clone());
        }
        let func = &*self.cx.func;
        let (op, args, _) = op_call(func, self.cx.value(e))?;
        if op != ADD {
            return self.bare_convolution(e);
        }
        let &[a, b] = args else { return None };
        let with_offset = |conv_operand: Expr, offset: Expr| {
            self.only_reader(conv_operand)?;
            let conv = self.bare_convolution(conv_operand)?;
            self.is_per_channel(&conv, offset)
                .then_some(Convolution { offset: Some(offset), ..conv })
        };
        with_offset(a, b).or_else(|| with_offset(b, a))
    }

    /// Returns the convolution, without an offset, if an operand is the result of a convolution whose weights do not depend on
    /// inputs. `None` for other operands.
    fn bare_convolution(&self, e: Expr) -> Option<Convolution> {
        let func = &*self.cx.func;
        let value = self.cx.value(e);
        let (op, &[x, weights], attrs) = op_call(func, value)? else { return None };
        let index = CONVOLUTIONS.iter().position(|&c| c == op)?;
        let (rank, transposed) = (index % 3 + 3, index >= 3);
        let text = |name: &str| attrs.get(name).and_then(AttrValue::as_str);
        let groups = attrs.get("groups").and_then(AttrValue::as_int)?;
        let out_layout = text("out_layout").filter(|layout| !layout.is_empty());
        let channel_axis = out_layout.or_else(|| text("data_layout"))?.find('C')?;
        let kernel_layout = text("kernel_layout")?;
        let filter_axis = kernel_layout.find('O')?;
        let dtype = func.ty(value).dtype()?;
        let dims = func.ty(value).dims()?;
        let is_supported = matches!(dtype, DType::Float32 | DType::Float64)
            && func.ty(weights).dtype() == Some(dtype)
            && dims.len() == rank
            && kernel_layout.len() == rank
            && !(transposed && groups != 1)
            && is_input_independent(func, self.constants, weights);
        let channels = func.syms.as_int(*dims.get(channel_axis)?)?;
        let attrs = attrs.clone();
        let offset = None;
        is_supported.then_some(Convolution {
            op,
            x,
            weights,
            attrs,
            filter_axis,
            channel_axis,
            rank,
            channels,
            offset,
        })
    }

    /// Returns the variable of an operand if the operand is a variable and exactly one binding reads it.
    fn only_reader(&self, e: Expr) -> Option<Var> {
        let ExprData::Var(v) = *self.cx.func.expr(e) else { return None };
        self.readers.only_reader(self.cx.func, v).map(|_| v)
    }

    /// Whether an operand has one element per channel of a convolution's result, or only one, and does not depend on inputs.
    fn is_per_channel(&self, conv: &Convolution, e: Expr) -> bool {
        let func = &*self.cx.func;
        let Some(dims) = func.ty(e).dims() else { return false };
        let missing = conv.rank.saturating_sub(dims.len());
        let fits = dims.iter().enumerate().all(|(axis, &d)| {
            let d = func.syms.as_int(d);
            d == Some(1) || (d == Some(conv.channels) && axis + missing == conv.channel_axis)
        });
        dims.len() <= conv.rank && fits && is_input_independent(func, self.constants, e)
    }

    /// Whether an operand is a constant vector with one element per channel of a convolution's result.
    fn is_channel_vector(&self, conv: &Convolution, e: Expr) -> bool {
        let func = &*self.cx.func;
        let has_channels =
            |dims: &[Sym]| matches!(dims, [d] if func.syms.as_int(*d) == Some(conv.channels));
        func.ty(e).dims().is_some_and(has_channels) && is_input_independent(func, self.constants, e)
    }

    /// Reshapes a tensor with one element, or with one element per channel, to the rank of the convolution. The elements of the
    /// result lie along `axis`, and all other dims are 1.
    fn reshape_along_axis(
        &mut self,
        conv: &Convolution,
        e: Expr,
        axis: usize,
    ) -> Result<Expr, PassError> {
        let func = &mut *self.cx.func;
        let dims = func.ty(e).dims().unwrap_or_default();
        let count = dims.iter().filter_map(|&d| func.syms.as_int(d)).product::<i64>();
        let mut shape = vec![func.syms.int(1); conv.rank];
        shape[axis] = func.syms.int(count);
        let shape = func.shape(&shape);
        self.emit(RESHAPE, &[e, shape])
    }

    /// Returns a convolution whose weights and offset are multiplied or divided by a factor.
    fn scaled(
        &mut self,
        conv: Convolution,
        op: Op,
        factor: Expr,
    ) -> Result<Convolution, PassError> {
        let along_filters = self.reshape_along_axis(&conv, factor, conv.filter_axis)?;
        let weights = self.emit(op, &[conv.weights, along_filters])?;
        let offset = conv.offset.map(|offset| self.emit(op, &[offset, factor])).transpose()?;
        Ok(Convolution { weights, offset, ..conv })
    }

    /// Returns the convolution with `term` added to its offset (`op` is an addition) or subtracted from its offset (`op` is a
    /// subtraction). A missing offset counts as 0.
    fn shifted(&mut self, conv: Convolution, op: Op, term: Expr) -> Result<Convolution, PassError> {
        let offset = match (conv.offset, op) {
            (Some(offset), _) => self.emit(op, &[offset, term])?,
            (None, SUBTRACT) => self.emit(NEGATIVE, &[term])?,
            (None, _) => term,
        };
        Ok(Convolution { offset: Some(offset), ..conv })
    }

    /// Emits a binding of an operator call without attributes, and returns its variable.
    fn emit(&mut self, op: Op, args: &[Expr]) -> Result<Expr, PassError> {
        let value = self.cx.call(op, args, Attrs::default())?;
        Ok(self.cx.emit(value))
    }
}
