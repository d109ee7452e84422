//! # What it does
//! Offloads LSTM, GRU and plain recurrent layers to a library kernel and packs their weights: constants at compile time into
//! panels in which the gates of the same units are adjacent, other weights in scratch memory at each call. Both directions,
//! sequence lengths, initial states and peepholes are part of the call.
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
//!     cls = Module
//!     with R.dataflow():
//!         gv: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.call_tir(cls.rnn_packed, (x, metadata["relax.expr.Constant"][0], metadata["relax.expr.Constant"][1], R.const(..., "float32")), out_sinfo=[R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")])
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def rnn_packed(var_A: T.handle, B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((16,), "float32"), var_rnn_packed_0: T.handle, var_rnn_packed_1: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("recurrent", x=A, w=B, r=C, bias=D, y=rnn_packed_0, last_h=rnn_packed_1, cell="rnn"))
//! ```
//!
//! # Requires
//! Nothing. It is of use before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! Layers of other types than float32, of sizes that must yet be checked, with other activations than the usual ones, with `clip`
//! or `input_forget`, those of weights that are no constants over one or two steps in all, and all of them where kernels are
//! switched off.
//!
//! # Never
//! Keeps the order in which products are summed.

mod kernel;
mod matcher;
mod non_constant;
mod weights;

use pliant_ir::relax::{Expr, Function, Var};
use pliant_pass::{PassContext, PassError};
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use crate::common::names::null_vars;
use crate::lower::legalize_ops::trusts_indices;
use crate::offload::rule::{Rule, RuleInfo, Site, Stage, Verdict};
use matcher::{GRU, LSTM, Layer, RNN, Weights};
use weights::Packed;

/// The row of the table.
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
                trusted: trusts_indices(ctx),
                nulls: FxHashMap::default(),
            }))
        },
    )
}

struct Recurrent {
    /// Layers whose weights are packed already.
    packed: Vec<(Layer, Packed)>,
    /// Whether lengths are in range.
    trusted: bool,
    /// The variables of the function that hold absent operands.
    nulls: FxHashMap<Var, Expr>,
}

/// Whether two layers have the same packed weights, all of them constants.
fn alike(a: &Layer, b: &Layer) -> bool {
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

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Verdict, PassError> {
        let l = match matcher::layer(site.func, &self.nulls, site.root) {
            Ok(l) => l,
            Err(kept) => return Ok(Err(kept)),
        };
        let failed = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a recurrent layer has no loop function: {e}"))
        };
        let packed = self.packed(&l).map_err(|e| failed(&e))?;
        let mut handed = |packed: Option<Tensor>, weights: Option<&Weights>| match (packed, weights)
        {
            (Some(packed), _) => Some(site.func.constant(packed)),
            (None, Some(Weights::Given(e, _))) => Some(*e),
            (None, Some(Weights::Constant(plain))) => Some(site.func.constant(plain.clone())),
            (None, None) => None,
        };
        let weights: [(_, _); 3] =
            [(packed.w, Some(&l.w)), (packed.r, Some(&l.r)), (packed.bias, l.bias.as_ref())];
        let [Some(w), Some(r), Some(bias)]: [Option<Expr>; 3] =
            weights.map(|(packed, own)| handed(packed, own))
        else {
            return Err(failed(&"weights are neither constants nor operands"));
        };
        let weights = kernel::Handed { w, r, bias, peepholes: handed(None, l.peepholes.as_ref()) };
        let call = kernel::call(site.func, &l, &weights, self.trusted).map_err(|e| failed(&e))?;
        Ok(site.offload_as(call, &l.tys, l.result, Vec::new()))
    }
}

impl Recurrent {
    /// The packed weights of a layer, made once for equal constants.
    fn packed(&mut self, l: &Layer) -> Result<Packed, pliant_tensor::TensorError> {
        if let Some((_, packed)) = self.packed.iter().find(|(known, _)| alike(known, l)) {
            return Ok(packed.clone());
        }
        let packed = weights::packed(l)?;
        self.packed.push((l.clone(), packed.clone()));
        Ok(packed)
    }
}
