//! # What it does
//! Offloads LSTM, GRU and plain recurrent layers to a library kernel and packs their weights: constants at compile time into panels
//! in which the gates of the same units are adjacent, other weights by a loop function in each call. Both directions, sequence
//! lengths, initial states and peepholes are part of the kernel call.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("s", "n", 1), "float32")) -> R.Tuple(R.Tensor(("s", 1, "n", 1), "float32"), R.Tensor((1, "n", 1), "float32")):
//!     s = T.int64()
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.nn.rnn(x, R.const([[[0.5]]], "float32"), R.const([[[0.25]]], "float32"), R.const([[1.0, -2.0]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("s", "n", 1), dtype="float32")) -> R.Tuple(R.Tensor(("s", 1, "n", 1), dtype="float32"), R.Tensor((1, "n", 1), dtype="float32")):
//!     s = T.int64()
//!     n = T.int64()
//!     with R.dataflow():
//!         gv: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.call_kernel("recurrent", x=x, w=metadata["relax.expr.Constant"][0], r=metadata["relax.expr.Constant"][1], bias=R.const(..., "float32"), cell="rnn", out_sinfo=[R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")])
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. It should run before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! - Layers of types other than float32, or with sizes that must be checked at run time.
//! - Layers with activations other than the default ones, with `clip`, or with `input_forget`.
//! - Layers with non-constant weights for which the numbers of steps of all sequences add up to at most two.
//! - All layers if kernels are disabled.
//!
//! # Never
//! Guarantees bit-identical results, because the kernel sums in another order.

mod pack_constant_weights;
mod pack_non_constant_weights;
mod recurrent_kernel_call;
mod recurrent_matcher;

use pliant_ir::relax::{Expr, Function, Var};
use pliant_ops::LegalizeError;
use pliant_ops::legalize::TirCall;
use pliant_pass::{PassContext, PassError};
use rustc_hash::FxHashMap;

use crate::common::operators_after_lowering::null_vars;
use crate::lower::legalize_ops::trusts_indices;
use crate::offload::offload_rule::{Decision, Rule, RuleInfo, Site, Stage};
use pack_constant_weights::PackedWeights;
use recurrent_matcher::{GRU, LSTM, Layer, RNN, Weights};

/// The entry of the rule `recurrent` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "recurrent",
        "recurrent",
        "float32 LSTM, GRU and plain recurrent layers",
        Stage::Kernel,
        &[LSTM, GRU, RNN],
        |ctx: &PassContext| {
            Ok(Box::new(Recurrent {
                packed: Vec::new(),
                trusts_lengths: trusts_indices(ctx),
                nulls: FxHashMap::default(),
            }))
        },
    )
}

struct Recurrent {
    /// The packed weights of earlier layers, so that equal weights are packed once.
    packed: Vec<(Layer, PackedWeights)>,
    /// Whether sequence lengths are assumed to be in range.
    trusts_lengths: bool,
    /// The variables of the function that are bound to `R.null_value()`, which represents an absent operand.
    nulls: FxHashMap<Var, Expr>,
}

/// Whether two layers have equal packed weights, all of which are constants.
fn same_packed_weights(a: &Layer, b: &Layer) -> bool {
    let bias = match (&a.bias, &b.bias) {
        (Some(a), Some(b)) => a.same_constant(b),
        (a, b) => a.is_none() && b.is_none(),
    };
    bias && a.cell == b.cell && a.w.same_constant(&b.w) && a.r.same_constant(&b.r)
}

impl Rule for Recurrent {
    fn begin(&mut self, func: &Function) {
        self.nulls = null_vars(func);
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let l = match recurrent_matcher::layer(site.func, &self.nulls, site.root) {
            Ok(l) => l,
            Err(reason) => return Ok(Err(reason)),
        };
        let internal_error = |e: &dyn std::fmt::Display| {
            PassError::internal(format!(
                "a recurrent layer cannot be replaced by a kernel call: {e}"
            ))
        };
        let packed = self.packed_weights(&l).map_err(|e| internal_error(&e))?;
        let weights = [
            (packed.w, Some(&l.w), pack_non_constant_weights::input_call as PackFn),
            (packed.r, Some(&l.r), pack_non_constant_weights::state_call),
            (packed.bias, l.bias.as_ref(), pack_non_constant_weights::bias_call),
        ];
        let mut prepared = Vec::with_capacity(weights.len());
        for (packed, operand, pack) in weights {
            prepared.push(match (packed, operand) {
                (Some(packed), _) => site.func.constant(packed),
                (None, Some(Weights::NonConstant(e, _))) => {
                    let call = pack(site.func, &l, *e).map_err(|e| internal_error(&e))?;
                    let packed = site.loop_functions.call(site.func, call);
                    site.emit(packed)
                }
                _ => {
                    return Err(internal_error(
                        &"the recurrent layer's weights are neither packed constants nor non-constant operands",
                    ));
                }
            });
        }
        let [w, r, bias] = prepared[..] else {
            return Err(internal_error(
                &"the recurrent layer's input weights, recurrent weights or biases have not been packed",
            ));
        };
        let peepholes = l.peepholes.as_ref().map(|peepholes| match peepholes {
            Weights::Constant(tensor) => site.func.constant(tensor.clone()),
            Weights::NonConstant(e, _) => *e,
        });
        let lengths = match l.lengths {
            None => None,
            Some(lengths) => {
                let call =
                    recurrent_kernel_call::lengths(site.func, &l, lengths, self.trusts_lengths);
                let lengths =
                    site.loop_functions.call(site.func, call.map_err(|e| internal_error(&e))?);
                Some(site.emit(lengths))
            }
        };
        let call = recurrent_kernel_call::kernel_call(
            &l,
            &recurrent_kernel_call::PreparedOperands { w, r, bias, peepholes, lengths },
        );
        Ok(site.call_kernel_as(call, &l.tys, l.result, Vec::new()))
    }
}

/// A function that creates a call of the loop function which packs non-constant weights.
type PackFn = fn(&mut Function, &Layer, Expr) -> Result<TirCall, LegalizeError>;

impl Recurrent {
    /// Returns the packed weights of a layer, and caches them if they are constants.
    fn packed_weights(&mut self, l: &Layer) -> Result<PackedWeights, pliant_tensor::TensorError> {
        if let Some((_, packed)) =
            self.packed.iter().find(|(packed_layer, _)| same_packed_weights(packed_layer, l))
        {
            return Ok(packed.clone());
        }
        let packed = pack_constant_weights::pack_weights(l)?;
        self.packed.push((l.clone(), packed.clone()));
        Ok(packed)
    }
}
