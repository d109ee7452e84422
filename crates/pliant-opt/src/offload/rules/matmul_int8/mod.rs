//! # What it does
//! Offloads int32 matmuls to int8 library kernels if the left operand is a cast int8 or uint8 tensor, with or without a zero point,
//! and each column of the constant right operand fits 8 bits up to an offset. The constant is packed for the kernel
//! ([`pliant_tensor::pack_vnni`]), together with the sums of its columns. A right operand that is a cast matrix is packed by the
//! kernel `pack_int8`. Operators that are the only readers of a result in its dataflow block become the epilogue, in this order:
//! int32 terms for the columns, the cast to float32, a per-tensor or per-row factor, per-column factors, a bias, an activation, the
//! requantization to 8 bits. Results are bit-exact, except that an activation may change the sign of a zero.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "uint8"), z: R.Tensor((), "int32")) -> R.Tensor(("n", 3), "int32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.astype(x, dtype="int32")
//!         lv1 = R.subtract(lv, z)
//!         gv = R.matmul(lv1, R.const([[1, -2, 3], [4, 5, -6]], "int32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="uint8"), z: R.Tensor((), dtype="int32")) -> R.Tensor(("n", 3), dtype="int32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         lv: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
//!         lv1: R.Tensor((n, 2), dtype="int32") = R.subtract(lv, z)
//!         gv: R.Tensor((n, 3), dtype="int32") = R.call_tir(cls.matmul_int8, (x, z, metadata["relax.expr.Constant"][0], R.const([5, 3, -3], "int32")), out_sinfo=R.Tensor((n, 3), dtype="int32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def matmul_int8(var_A: T.handle, B: T.Buffer((), "int32"), C: T.Buffer((1, 1, 16, 4), "int8"), D: T.Buffer((3,), "int32"), var_matmul_int8: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("matmul_int8", ...))
//! ```
//!
//! # Requires
//! Nothing. It should run after [`FoldConstant`](crate::canonicalize::fold_constant) and before
//! [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! - Matmuls of other types.
//! - Matmuls whose right operand does not have rank 2, or is a constant with columns that span more than 8 bits.
//! - Matmuls with a zero point for each element.
//! - All matmuls if kernels are disabled.
//!
//! # Never
//! Moves a read past a call that may write to the tensor.

mod matmul_int8_kernel_call;
mod matmul_int8_matcher;
pub(crate) mod pack_constant_operand;
mod pack_non_constant_operand;

use pliant_pass::PassError;
use pliant_tensor::Tensor;

use crate::common::matmul_and_conv_operands::MATMUL;
use crate::offload::int8_epilogue::{IntegerSums, match_epilogue};
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};
use pack_constant_operand::PackedWeights;

/// The entry of the rule `matmul_int8` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "matmul_int8",
        "matmul_int8",
        "int32 matmuls of int8 or uint8, with scales, a bias, an activation and requantization",
        Stage::Kernel,
        &[MATMUL],
        |_| Ok(Box::new(MatmulInt8 { packed: Vec::new() })),
    )
}

struct MatmulInt8 {
    /// The packed constants of earlier matmuls, so that equal constants are packed once; `None` for constants that do not fit 8
    /// bits.
    packed: Vec<(Tensor, Option<PackedWeights>)>,
}

impl Rule for MatmulInt8 {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let constant = matmul_int8_matcher::constant_matrix(site.func, site.root).cloned();
        let non_constant = match constant {
            Some(_) => None,
            None => matmul_int8_matcher::non_constant_matrix(site.func, &site.uses().1, site.root),
        };
        let [rows, columns] = match (&constant, non_constant) {
            (Some(weights), _) => [0, 1].map(|k| site.func.syms.int(weights.shape()[k])),
            (_, Some(matrix)) => match site.func.ty(matrix.matrix).dims() {
                Some(&[rows, columns]) => [rows, columns],
                _ => return Ok(Err("the shape of the matmul's right operand is unknown".into())),
            },
            _ if matmul_int8_matcher::is_int32(site.func, site.root) => {
                return Ok(Err(
                    "the matmul's right operand is neither a constant nor a cast of an 8-bit matrix".into(),
                ));
            }
            _ => return Ok(Err(KeepReason::NotApplicable)),
        };
        let uses = site.uses();
        let Some(mut p) = matmul_int8_matcher::match_matmul(site.func, &uses.1, site.root, rows)
        else {
            return Ok(Err(
                "the matmul's left operand is not an int8 or uint8 tensor of known inner size"
                    .into(),
            ));
        };
        if site.dataflow
            && let Some(columns) = site.func.syms.as_int(columns)
        {
            let sums = IntegerSums { result: p.result, columns, rows: Some(p.x) };
            p.epilogue = match_epilogue(site.func, uses, &sums, site.replaced_vars);
        }
        let internal_error = |e: &dyn std::fmt::Display| {
            PassError::internal(format!("an int8 matmul cannot be replaced by a kernel call: {e}"))
        };
        let weights = match (constant, non_constant) {
            (Some(weights), _) => {
                match self.packed_weights(&weights).map_err(|e| internal_error(&e))? {
                    Some(packed) => packed.operands(site.func),
                    None => {
                        return Ok(Err(
                            "the largest and the smallest element of a column of the right operand differ by more than 255, so no \
                             zero point makes the column 8-bit integers, which the kernel requires"
                                .into(),
                        ));
                    }
                }
            }
            (None, Some(matrix)) => match pack_non_constant_operand::pack_matrix(site, matrix)? {
                Ok(weights) => weights,
                Err(reason) => return Ok(Err(reason)),
            },
            (None, None) => return Ok(Err(KeepReason::NotApplicable)),
        };
        let call = matmul_int8_kernel_call::loop_function_call(site.func, &p, &weights)
            .map_err(|e| internal_error(&e))?;
        let result = p.epilogue.as_ref().map_or(p.result, |f| f.result);
        Ok(site.offload(call, result, p.epilogue.map_or(Vec::new(), |f| f.removed)))
    }
}

impl MatmulInt8 {
    /// Returns the packed form of a constant, and caches it. `None` if 8 bits cannot represent the
    /// values of a column.
    fn packed_weights(
        &mut self,
        weights: &Tensor,
    ) -> Result<Option<PackedWeights>, pliant_tensor::TensorError> {
        if let Some((_, packed)) = self.packed.iter().find(|(w, _)| w.same(weights)) {
            return Ok(packed.clone());
        }
        let packed = pack_constant_operand::pack_matrix(weights)?;
        self.packed.push((weights.clone(), packed.clone()));
        Ok(packed)
    }
}
