//! # What it does
//! Computes matmuls, convolutions and attention of float16 and bfloat16 in float32 and rounds the results, because the library
//! kernels support only float32. Casts of constants are folded ([`FoldConstant`](crate::canonicalize::fold_constant)). Casts of
//! inputs and results are elementwise and are fused with neighboring operations. Generated loops also accumulate in float32, so
//! the precision does not decrease.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float16"), w: R.Tensor((4, 8), "float16")) -> R.Tensor(("n", 8), "float16"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.matmul(x, w)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float16"), w: R.Tensor((4, 8), "float16")) -> R.Tensor(("n", 8), "float16"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv: R.Tensor((n, 4), "float32") = R.astype(x, dtype="float32")
//!         lv1: R.Tensor((4, 8), "float32") = R.astype(w, dtype="float32")
//!         lv2: R.Tensor((n, 8), "float32") = R.matmul(lv, lv1)
//!         gv: R.Tensor((n, 8), "float16") = R.astype(lv2, dtype="float16")
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. [`EliminateCommonSubexpr`](crate::canonicalize::eliminate_common_subexpr) merges casts of the same operand afterwards.
//!
//! # Keeps
//! - Operators with an operand of another type, except the bias of `R.linear`, which may be float32.
//! - Operators whose result is neither a 16-bit float nor float32.
//! - All operators if kernels are disabled.
//!
//! # Never
//! Accumulates in fewer bits than before. (Constant operands take 32 bits per element afterwards. The setting
//! `precision="bfloat16"` rounds them like other float32 constants, even if they were float16.)

use pliant_ir::relax::{Callee, Expr, ExprData};
use pliant_ir::{AttrValue, DType, Op};
use pliant_pass::PassError;

use crate::common::matmul_and_conv_operands::{LINEAR, MATMUL};
use crate::common::operators_after_lowering::is_absent;
use crate::offload::offload_rule::{Decision, KeepReason, Offloaded, Rule, RuleInfo, Site, Stage};

/// The operators whose kernels support only float32.
const ROOTS: &[Op] = &[
    MATMUL,
    LINEAR,
    Op::new("relax.nn.attention"),
    Op::new("relax.nn.attention_bias"),
    Op::new("relax.nn.conv1d"),
    Op::new("relax.nn.conv2d"),
    Op::new("relax.nn.conv3d"),
    Op::new("relax.nn.conv1d_transpose"),
    Op::new("relax.nn.conv2d_transpose"),
    Op::new("relax.nn.conv3d_transpose"),
];

/// The entry of the rule `widen_16_bit` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::rewriting(
        "widen_16_bit",
        "matmuls, convolutions and attention of 16-bit floats, computed in float32",
        Stage::Dequantized,
        ROOTS,
        |_| Ok(Box::new(Widen16Bit)),
    )
}

struct Widen16Bit;

impl Rule for Widen16Bit {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let value = widen(site)?;
        let result = site.root.var;
        Ok(value
            .map(|value| Offloaded { result, removed: Vec::new(), value })
            .ok_or(KeepReason::NotApplicable))
    }
}

fn is_half(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Float16 | DType::BFloat16))
}

/// Rewrites a call to float32 operands, with the result cast back to its original type. `None` if the call stays unchanged.
fn widen(site: &mut Site<'_>) -> Result<Option<Expr>, PassError> {
    let value = site.root.value;
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = *site.func.expr(value) else {
        return Ok(None);
    };
    let (args, attrs) = (site.func.list(args).to_vec(), site.func.call_attrs(attrs).clone());
    // Absent operands come last.
    let present = args.iter().take_while(|&&e| !is_absent(site.func, e)).count();
    let (args, absent) = args.split_at(present);
    let has_supported_dtypes = args.iter().enumerate().all(|(i, &e)| {
        let dtype = site.func.ty(e).dtype();
        is_half(dtype) || op == LINEAR && i == 2 && dtype == Some(DType::Float32)
    });
    let is_supported = has_supported_dtypes && absent.iter().all(|&e| is_absent(site.func, e));
    let result = site.func.ty(value).dtype();
    let Some(result) =
        result.filter(|&d| is_supported && (is_half(Some(d)) || d == DType::Float32))
    else {
        return Ok(None);
    };
    let mut wide = Vec::with_capacity(args.len());
    for &e in args {
        wide.push(if is_half(site.func.ty(e).dtype()) {
            let cast = site.cast(e, DType::Float32)?;
            site.emit(cast)
        } else {
            e
        });
    }
    let has_out_dtype = attrs.get("out_dtype").is_some_and(|d| !d.is_none());
    let attrs = match has_out_dtype {
        true => attrs.with("out_dtype", AttrValue::DType(DType::Float32)),
        false => attrs,
    };
    let product = site.call(op, &wide, attrs)?;
    if result == DType::Float32 {
        return Ok(Some(product));
    }
    let product = site.emit(product);
    site.cast(product, result).map(Some)
}
