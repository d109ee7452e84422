//! # What it does
//! Offloads transposes that move the last dim, such as those between channels first and channels last, to the kernel library.
//! Generated loops would divide indices or write with large strides.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 3, "h", "w"), "uint8")) -> R.Tensor(("n", "h", "w", 3), "uint8"):
//!     n = T.int64()
//!     h = T.int64()
//!     w = T.int64()
//!     with R.dataflow():
//!         gv = R.permute_dims(x, axes=[0, 2, 3, 1])
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 3, "h", "w"), dtype="uint8")) -> R.Tensor(("n", "h", "w", 3), dtype="uint8"):
//!     n = T.int64()
//!     h = T.int64()
//!     w = T.int64()
//!     with R.dataflow():
//!         gv: R.Tensor((n, h, w, 3), dtype="uint8") = R.call_kernel("transpose", x=x, axes={"x": [0, 2, 3, 1]}, out_sinfo=R.Tensor((n, h, w, 3), dtype="uint8"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! A known rank of at most 8, and a known data type.
//!
//! # Keeps
//! - Transposes that keep the last dim, whose loops copy rows.
//! - Transposes of operands and results of matmuls, because matmuls can read and write transposed tensors in place.
//! - All transposes if kernels are disabled.
//!
//! # Never
//! Changes a value.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Callee, Expr, ExprData, Function};
use pliant_kernel_api::MAX_RANK;
use pliant_kernel_api::kernels::transpose::KERNEL;
use pliant_pass::PassError;

use crate::common::matmul_and_conv_operands::{
    EINSUM, LINEAR, MATMUL, PERMUTE_DIMS, call_operands, permute_axes,
};
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

/// The entry of the rule `transpose` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "transpose",
        "transpose",
        "transposes that move the last dim",
        Stage::Kernel,
        &[PERMUTE_DIMS],
        |_| Ok(Box::new(Transpose)),
    )
}

struct Transpose;

impl Rule for Transpose {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let Some((args, attrs)) = call_operands(site.func, site.root.value, PERMUTE_DIMS) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let x = args[0];
        let ty = site.func.ty(x);
        let Some(dims) = ty.dims() else {
            return Ok(Err("the shape of the transpose's operand is unknown".into()));
        };
        if ty.dtype().is_none() {
            return Ok(Err("the data type of the transpose's operand is unknown".into()));
        }
        let Some(order) = permute_axes(attrs, dims.len()).filter(|o| o.len() == dims.len()) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let mut moved_dims = order.iter().filter(|&&k| site.func.syms.as_int(dims[k]) != Some(1));
        let last_dim = (0..dims.len()).rev().find(|&k| site.func.syms.as_int(dims[k]) != Some(1));
        if moved_dims.next_back().copied() == last_dim {
            return Ok(Err(KeepReason::NotApplicable));
        }
        if dims.len() > MAX_RANK {
            return Ok(Err(KeepReason::Because(
                format!("the transpose has more than {MAX_RANK} dims").into(),
            )));
        }
        if is_matmul_operand_or_result(site, x) {
            return Ok(Err(KeepReason::NotApplicable));
        }
        let axes = order.iter().map(|&axis| axis as i64);
        let call = NewKernelCall::new(&KERNEL).operand("x", x).axes("x", axes);
        Ok(site.call_kernel(call, site.root.var, Vec::new()))
    }
}

/// Whether the operand of a transpose is the result of a matmul, or a matmul reads the transpose.
fn is_matmul_operand_or_result(site: &Site<'_>, x: Expr) -> bool {
    let is_matmul = |func: &Function, e: Expr| match func.expr(e) {
        ExprData::Call { callee: Callee::Op(op), .. } => [MATMUL, LINEAR, EINSUM].contains(op),
        _ => false,
    };
    let (readers, defs) = site.uses();
    let value = defs.value_in_epoch(site.func, x, site.root.var);
    is_matmul(site.func, value)
        || readers.reading_bindings(site.root.var).iter().any(|b| is_matmul(site.func, b.value))
}
