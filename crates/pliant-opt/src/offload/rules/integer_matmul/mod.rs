//! # What it does
//! Rewrites a float32 matmul of two operands that are dequantized from 8 bits, the right operand from a constant, to an int8
//! matmul whose results are multiplied by both scales: `(a - za) * sa @ (b - zb) * sb` becomes `((a - za) @ (b - zb)) * sa * sb`.
//! Scales and zero points of the left operand are per tensor or per row, those of the right operand per column. The bias of
//! `R.linear` becomes an addition. The rule `matmul_int8` replaces the rewritten matmul by one kernel call. Quantized ONNX models
//! in QDQ form (`DequantizeLinear`, float operator, `QuantizeLinear`) contain such matmuls.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "int8")) -> R.Tensor(("n", 3), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))
//!         lv1 = R.dequantize(R.const([[1, -2, 3], [4, 5, -6]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
//!         gv = R.matmul(lv, lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "int8")) -> R.Tensor(("n", 3), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))
//!         lv1 = R.dequantize(R.const([[1, -2, 3], [4, 5, -6]], "int8"), R.const(0.25, "float32"), R.const(0, "int8"))
//!         lv2: R.Tensor((n, 2), "int32") = R.astype(x, dtype="int32")
//!         lv3: R.Tensor((n, 2), "int32") = R.subtract(lv2, R.const(3, "int32"))
//!         lv4: R.Tensor((n, 3), "int32") = R.matmul(lv3, R.const([[1, -2, 3], [4, 5, -6]], "int32"))
//!         lv5: R.Tensor((n, 3), "float32") = R.astype(lv4, dtype="float32")
//!         lv6: R.Tensor((n, 3), "float32") = R.multiply(lv5, R.const(0.5, "float32"))
//!         gv: R.Tensor((n, 3), "float32") = R.multiply(lv6, R.const([0.25, 0.25, 0.25], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! A right operand that is not folded yet: the rule must run before [`FoldConstant`](crate::canonicalize::fold_constant).
//!
//! # Keeps
//! - Matmuls of other types, and matmuls whose sums may overflow 32 bits.
//! - Matmuls with constants whose scale or zero point varies along a column, whose zero points are not integral, or whose columns
//!   span more than 8 bits.
//! - Matmuls with a constant scale of the left operand that overflows float32 if multiplied by 2^31, or with a constant scale
//!   that is not finite.
//! - Matmuls with a bias whose sizes must be checked at run time.
//! - All matmuls if kernels are disabled.
//!
//! # Never
//! Guarantees bit-identical results: the rewritten integer sums are exact, while the original float32 sums are rounded. An
//! integer sum times a non-constant left scale may overflow float32. The result is then infinite, even if the original matmul
//! gives a finite result. If a non-constant left scale is infinite or NaN, results may be infinite instead of NaN.

pub(super) mod dequantized_left_operand;
pub(super) mod dequantized_right_operand;

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::PassError;
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::pattern::RewriteCx;
use pliant_tensor::TensorError;

use crate::common::matmul_and_conv_operands::{ADD, LINEAR, MATMUL, MatrixProduct, call_operands};
use crate::offload::dequantized::{DequantizedWeights, OperandMatcher};
use crate::offload::int8_epilogue::{CAST, SUBTRACT};
use crate::offload::offload_rule::{Decision, KeepReason, Offloaded, Rule, RuleInfo, Site, Stage};
use dequantized_left_operand::{QuantizedLeft, ZeroPoint};
use dequantized_right_operand::QuantizedRight;

pub(super) const MULTIPLY: Op = Op::new("relax.multiply");
pub(super) const DEQUANTIZE: Op = Op::new("relax.dequantize");
const EXPAND: Op = Op::new("relax.expand_dims");

/// The entry of the rule `integer_matmul` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::rewriting(
        "integer_matmul",
        "float32 matmuls of two dequantized operands, as int8 matmuls",
        Stage::Dequantized,
        &[MATMUL, LINEAR],
        |_| Ok(Box::new(IntegerMatmul::default())),
    )
}

#[derive(Default)]
struct IntegerMatmul {
    /// Whether the function may contain dequantized operands.
    may_dequantize: bool,
}

impl Rule for IntegerMatmul {
    fn begin(&mut self, func: &Function) {
        self.may_dequantize = may_dequantize(func);
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        if !self.may_dequantize {
            return Ok(Err(KeepReason::NotApplicable));
        }
        let (root, defs) = (site.root, &site.uses().1);
        let matcher = OperandMatcher { func: site.func, defs, root_var: root.var };
        let Some((product, left, dequantized)) = dequantized_operands(&matcher, root.value) else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let right = QuantizedRight::of(&dequantized, left.max_magnitude).map_err(to_pass_error)?;
        let Some(right) = right else {
            return Ok(Err(NO_EXACT_SUMS.into()));
        };
        let mut cx = RewriteCx::new(site.func, site.ctx.ops, defs, root.var, site.namer);
        let value = emit_matmul(&mut cx, product, &left, &right)?;
        site.bindings = cx.into_bindings();
        Ok(Ok(Offloaded { result: root.var, removed: Vec::new(), value }))
    }
}

/// The reason, for remarks, why a matmul of dequantized operands is not rewritten to an int8 matmul.
pub(super) const NO_EXACT_SUMS: &str = "the sums of the matmul or convolution may overflow 32 bits, its weights have a range of \
more than 8 bits or are not dequantized constants, or its scales or zero points vary along the summed dim";

/// Converts an error of a tensor operation, such as a failed allocation, to an error of the pass.
pub(super) fn to_pass_error(e: TensorError) -> PassError {
    PassError::internal(format!(
        "the integer weights of a quantized matmul or convolution cannot be stored as a constant: {e}"
    ))
}

/// Whether a function may contain dequantized operands: it calls `R.dequantize` or contains casts.
pub(super) fn may_dequantize(func: &Function) -> bool {
    reachable_seqs(func).into_iter().any(|seq| {
        let blocks = &func.seq(seq).blocks;
        let mut bindings = blocks.iter().flat_map(|&b| &func.block(b).bindings);
        bindings.any(|b| {
            [DEQUANTIZE, CAST].iter().any(|&op| call_operands(func, b.value, op).is_some())
        })
    })
}

/// Returns the operands of a matmul if both are dequantized; `None` otherwise.
fn dequantized_operands(
    matcher: &OperandMatcher<'_>,
    value: Expr,
) -> Option<(MatrixProduct, QuantizedLeft, DequantizedWeights)> {
    let matmul = MatrixProduct::of(matcher.func, value)?;
    let left = QuantizedLeft::of(matcher, matmul.x)?;
    let dequantized = matcher.dequantized_matmul(value)?;
    Some((matmul, left, dequantized.weights))
}

/// Emits the matmul of the integers, and the multiplication of its results by both scales.
fn emit_matmul(
    cx: &mut RewriteCx<'_>,
    product: MatrixProduct,
    left: &QuantizedLeft,
    right: &QuantizedRight,
) -> Result<Expr, PassError> {
    let x = subtract_zero_point(cx, left)?;
    let weights = cx.func.constant(right.integers.clone());
    let sum = cx.call(MATMUL, &[x, weights], Attrs::default())?;
    let sum = cast(cx, sum, DType::Float32)?;
    let scale = as_column(cx, left.scale, left.has_row_vectors)?;
    let scaled = cx.call(MULTIPLY, &[sum, scale], Attrs::default())?;
    let scales = cx.func.constant(right.scales.clone());
    let y = cx.call(MULTIPLY, &[scaled, scales], Attrs::default())?;
    match product.bias {
        Some(bias) => cx.call(ADD, &[y, bias], Attrs::default()),
        None => Ok(y),
    }
}

/// Emits the subtraction of the zero point from the integers of a left operand.
pub(super) fn subtract_zero_point(
    cx: &mut RewriteCx<'_>,
    left: &QuantizedLeft,
) -> Result<Expr, PassError> {
    let x = cast(cx, left.x, DType::Int32)?;
    let Some(zero) = &left.zero else { return Ok(x) };
    let zero = match zero {
        ZeroPoint::Constant(tensor) => cx.func.constant(tensor.clone()),
        ZeroPoint::NonConstant(e) => cast(cx, *e, DType::Int32)?,
    };
    let zero = as_column(cx, zero, left.has_row_vectors)?;
    cx.call(SUBTRACT, &[x, zero], Attrs::default())
}

/// Emits `R.astype(e, dtype)`; returns `e` itself if it already has this type.
pub(super) fn cast(cx: &mut RewriteCx<'_>, e: Expr, dtype: DType) -> Result<Expr, PassError> {
    if cx.func.ty(e).dtype() == Some(dtype) {
        return Ok(e);
    }
    cx.call(CAST, &[e], Attrs::default().with("dtype", AttrValue::DType(dtype)))
}

/// Reshapes a vector to a column if `has_row_vectors` states that it has one element for each row, so that each element applies to
/// a whole row. Other tensors are returned unchanged.
fn as_column(cx: &mut RewriteCx<'_>, e: Expr, has_row_vectors: bool) -> Result<Expr, PassError> {
    if !has_row_vectors || cx.func.ty(e).dims().is_none_or(|d| d.len() != 1) {
        return Ok(e);
    }
    cx.call(EXPAND, &[e], Attrs::default().with("axis", AttrValue::ints([1])))
}
