//! # What it does
//! Offloads float32 matmuls whose right operand is dequantized from an integer constant: a cast, minus a zero point, times a
//! scale, each per tensor, per column, or per group of rows in each column. The bias of `R.linear` becomes an addition. Integers
//! that span at most 4 bits are stored in 4 bits, others in 8 bits. Scales and zero points are stored as float32. No float32 copy
//! of the operand exists at run time.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 3), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.astype(R.const([[1, -2, 3], [4, 5, -6]], "int8"), dtype="float32")
//!         lv1 = R.multiply(lv, R.const(0.5, "float32"))
//!         gv = R.matmul(x, lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv: R.Tensor((2, 3), dtype="float32") = R.astype(R.const([[1, -2, 3], [4, 5, -6]], "int8"), dtype="float32")
//!         lv1: R.Tensor((2, 3), dtype="float32") = R.multiply(lv, R.const(0.5, "float32"))
//!         gv: R.Tensor((n, 3), dtype="float32") = R.call_kernel("matmul_int4_weight", x=x, weight=R.const(..., "uint8"), scales=R.const(..., "float32"), zeros=R.const(..., "float32"), group=2, out_sinfo=R.Tensor((n, 3), dtype="float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! A right operand that is not folded yet. It should run before [`FoldConstant`](crate::canonicalize::fold_constant).
//!
//! # Keeps
//! - Matmuls of other types.
//! - Matmuls with integers that span more than 8 bits.
//! - Matmuls with scales that are not finite, or with groups of fewer than eight rows.
//! - All matmuls if kernels are disabled.
//!
//! # Never
//! Guarantees bit-identical results, because the kernel sums in another order.

mod pack_quantized_weights;
pub(crate) mod weight_only_kernel_call;

use pliant_pass::PassError;

use crate::common::matmul_and_conv_operands::{LINEAR, MATMUL};
use crate::offload::dequantized::OperandMatcher;
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

/// The entry of the rule `weight_only_matmul` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "weight_only_matmul",
        "matmul_int4_weight, matmul_int8_weight",
        "float32 matmuls by dequantized constants of at most 8 bits",
        Stage::Dequantized,
        &[MATMUL, LINEAR],
        |_| Ok(Box::new(WeightOnlyMatmul)),
    )
}

struct WeightOnlyMatmul;

impl Rule for WeightOnlyMatmul {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let uses = site.uses();
        let matcher = OperandMatcher { func: site.func, defs: &uses.1, root_var: site.root.var };
        let Some(product) = matcher.dequantized_matmul(site.root.value) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        if let Err(reason) = weight_only_kernel_call::check_operand(site.func, product.by.x) {
            return Ok(Err(reason));
        }
        let internal_error = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("a matmul cannot be replaced by a kernel call: {e}"))
        };
        let packed =
            pack_quantized_weights::pack(&product.weights).map_err(|e| internal_error(&e))?;
        let Some(packed) = packed else {
            let reason = "the matmul's integers span more than 8 bits, or its scales are shared by fewer than 8 rows";
            return Ok(Err(reason.into()));
        };
        let call = weight_only_kernel_call::call(site.func, product.by.x, &packed);
        Ok(site.call_product_kernel(&product.by, call))
    }
}
