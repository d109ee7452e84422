//! # What it does
//! Offloads softmax and log-softmax along the last axis to the kernel library. Generated loops would compute one row after the
//! other, with vectors of at most 128 bits. The kernel uses the widest vectors of the machine, also across short rows.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         gv = R.nn.log_softmax(x, axis=-1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         gv: R.Tensor((n, m), dtype="float32") = R.call_kernel("softmax", x=x, log=True, out_sinfo=R.Tensor((n, m), dtype="float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! A known shape of at most 8 dims.
//!
//! # Keeps
//! - Softmax of types other than float32, or along axes other than the last.
//! - All softmax if kernels are disabled.
//!
//! # Never
//! Guarantees bit-identical results, because the kernel sums in another order, and multiplies the exponentials by the reciprocal
//! of their sum instead of dividing them.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Callee, ExprData};
use pliant_ir::{AttrValue, DType, Op};
use pliant_kernel_api::MAX_RANK;
use pliant_kernel_api::kernels::softmax::KERNEL;
use pliant_pass::PassError;

use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

const SOFTMAX: Op = Op::new("relax.nn.softmax");
const LOG_SOFTMAX: Op = Op::new("relax.nn.log_softmax");

/// The entry of the rule `softmax` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "softmax",
        "softmax",
        "softmax and log-softmax of float32 along the last axis",
        Stage::Kernel,
        &[SOFTMAX, LOG_SOFTMAX],
        |_| Ok(Box::new(Softmax)),
    )
}

struct Softmax;

impl Rule for Softmax {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } =
            site.func.expr(site.root.value)
        else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let (log, x) = (*op == LOG_SOFTMAX, site.func.list(*args)[0]);
        let axis = site.func.call_attrs(*attrs).get("axis").and_then(AttrValue::as_int);
        let ty = site.func.ty(x);
        if ty.dtype() != Some(DType::Float32) {
            return Ok(Err("the softmax's operand is not float32".into()));
        }
        let Some(rank) = ty.dims().map(<[_]>::len) else {
            return Ok(Err("the shape of the softmax's operand is unknown".into()));
        };
        if !(1..=MAX_RANK).contains(&rank) {
            return Ok(Err(KeepReason::Because(
                format!(
                    "the softmax's operand has {rank} dims, but the kernel supports 1 to {MAX_RANK}"
                )
                .into(),
            )));
        }
        if let Some(axis) = axis.filter(|&axis| axis != -1 && axis != rank as i64 - 1) {
            return Ok(Err(KeepReason::Because(
                format!(
                    "the softmax is over axis {axis}, but the kernel supports only the last axis"
                )
                .into(),
            )));
        }
        let call = NewKernelCall::new(&KERNEL).operand("x", x);
        let call = call.attribute("log", AttrValue::Bool(log));
        Ok(site.call_kernel(call, site.root.var, Vec::new()))
    }
}
