//! # What it does
//! Rewrites a float32 matmul of two operands that are dequantized from 8 bits, the right one from a constant, to an int8 matmul
//! whose sums are multiplied by both scales: `(a - za) * sa @ (b - zb) * sb` becomes `((a - za) @ (b - zb)) * sa * sb`. Scales and
//! zero points of the left operand are per tensor or per row, those of the right operand per column. The bias of `R.linear` becomes
//! an addition. The rule `matmul_int8` replaces the result by one kernel call. Convolutions with per-tensor inputs and per-filter
//! weights are rewritten too, for the rule `conv_int8`.
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
//! A right operand that is not folded yet. It should run before [`OffloadDequantized`](crate::offload::offload_kernels), which
//! offloads matmuls of float32 by such constants, and before [`FoldConstant`](crate::canonicalize::fold_constant).
//!
//! # Keeps
//! - Products of other types, and products whose sums may overflow 32 bits.
//! - Products with constants whose scale or zero point varies along a column, whose zero points are not integral, or whose columns
//!   span more than 8 bits.
//! - Products with a constant scale of the left operand that overflows float32 if multiplied by 2^31, or with a constant scale that
//!   is not finite.
//! - Products with a bias whose sizes must be checked at run time.
//! - Transposed convolutions, and grouped convolutions other than those with one filter for each channel.
//! - All products if kernels are disabled.
//!
//! # Never
//! Keeps the rounding of the sums, which are exact. Sums times the left scale must be in the range of float32. If a non-constant
//! scale is near the end of that range, results may be infinite that would be finite in loops. If such a scale is infinite or NaN,
//! results may be infinite instead of NaN.

mod convolution;
mod filters;
mod left;
mod right;

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Op};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{Pattern, RewriteCx, RuleSet, is_op, rewrite_rules, wildcard};
use pliant_pass::rewrite::reachable_seqs;
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use pliant_tensor::Tensor;

use crate::common::products::{
    ADD, CONVOLUTIONS, LINEAR, MATMUL, MatrixProduct, call_operands, matmul_pattern,
};
use crate::offload::dequantized::OperandMatcher;
use crate::offload::integer_epilogue::{CAST, SUBTRACT};
use convolution::QuantizedConvolution;
use left::{QuantizedLeft, ZeroPoint};
use right::QuantizedRight;

const MULTIPLY: Op = Op::new("relax.multiply");
const DEQUANTIZE: Op = Op::new("relax.dequantize");
const EXPAND: Op = Op::new("relax.expand_dims");

/// See the module's documentation.
pub struct MultiplyQuantized;

impl ModulePass for MultiplyQuantized {
    fn name(&self) -> &str {
        "MultiplyQuantized"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = MayWrite::of(&module);
        let linear = |count: usize| {
            let operands: Vec<Pattern> = (0..count).map(|_| wildcard()).collect();
            is_op(LINEAR).call(operands)
        };
        let mut roots = vec![matmul_pattern(&wildcard(), &wildcard()), linear(2), linear(3)];
        roots.extend(CONVOLUTIONS[..3].iter().map(|&op| is_op(op).call([wildcard(), wildcard()])));
        let rules = RuleSet::new(roots.clone(), ctx.ops)?;
        update_each_relax(&mut module, ctx, |_, func| {
            if !may_dequantize(func) {
                return Ok(false);
            }
            let count = rewrite_rules(func, &rules, ctx.ops, Some(&writers), |cx, matches| {
                let Some(root) = matches.get(&roots[matches.rule]) else { return Ok(None) };
                let value = cx.value(root);
                let matcher = OperandMatcher { func: cx.func, defs: cx.defs, root_var: cx.var };
                let to_pass_error = |e| {
                    PassError::internal(format!(
                        "the constant of an integer product cannot be created: {e}"
                    ))
                };
                if let Some((product, left, right)) =
                    quantized_operands(&matcher, value).map_err(to_pass_error)?
                {
                    return emit_matmul(cx, product, &left, &right).map(Some);
                }
                match QuantizedConvolution::of(&matcher, value).map_err(to_pass_error)? {
                    Some(convolution) => convolution.emit(cx).map(Some),
                    None => Ok(None),
                }
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

/// Whether a function calls `R.dequantize` or contains casts. Other functions are not searched.
fn may_dequantize(func: &Function) -> bool {
    reachable_seqs(func).into_iter().any(|seq| {
        let blocks = &func.seq(seq).blocks;
        let mut bindings = blocks.iter().flat_map(|&b| &func.block(b).bindings);
        bindings.any(|b| {
            [DEQUANTIZE, CAST].iter().any(|&op| call_operands(func, b.value, op).is_some())
        })
    })
}

/// The operands of a matmul, if both are dequantized and its sums are known to fit 32 bits.
fn quantized_operands(
    matcher: &OperandMatcher<'_>,
    value: Expr,
) -> Result<Option<(MatrixProduct, QuantizedLeft, QuantizedRight)>, pliant_tensor::TensorError> {
    let Some(matmul) = MatrixProduct::of(matcher.func, value) else { return Ok(None) };
    let Some(left) = QuantizedLeft::of(matcher, matmul.x) else { return Ok(None) };
    let Some(dequantized) = matcher.dequantized_matmul(value) else { return Ok(None) };
    let right = QuantizedRight::of(&dequantized.weights, left.max_magnitude)?;
    Ok(right.map(|right| (matmul, left, right)))
}

/// Emits the matmul of the integers, multiplied by both scales.
fn emit_matmul(
    cx: &mut RewriteCx<'_>,
    product: MatrixProduct,
    left: &QuantizedLeft,
    right: &QuantizedRight,
) -> Result<Expr, PassError> {
    let x = subtract_zero_point(cx, left)?;
    let weights = constant(cx, &right.integers);
    let sum = cx.call(MATMUL, &[x, weights], Attrs::default())?;
    let sum = cast(cx, sum, DType::Float32)?;
    let scale = as_column(cx, left.scale, left.has_row_vectors)?;
    let scaled = cx.call(MULTIPLY, &[sum, scale], Attrs::default())?;
    let scales = constant(cx, &right.scales);
    let y = cx.call(MULTIPLY, &[scaled, scales], Attrs::default())?;
    match product.bias {
        Some(bias) => cx.call(ADD, &[y, bias], Attrs::default()),
        None => Ok(y),
    }
}

/// The integers of a left operand minus their zero point.
fn subtract_zero_point(cx: &mut RewriteCx<'_>, left: &QuantizedLeft) -> Result<Expr, PassError> {
    let x = cast(cx, left.x, DType::Int32)?;
    let Some(zero) = &left.zero else { return Ok(x) };
    let zero = match zero {
        ZeroPoint::Constant(tensor) => cx.func.constant(tensor.clone()),
        ZeroPoint::NonConstant(e) => cast(cx, *e, DType::Int32)?,
    };
    let zero = as_column(cx, zero, left.has_row_vectors)?;
    cx.call(SUBTRACT, &[x, zero], Attrs::default())
}

fn constant(cx: &mut RewriteCx<'_>, tensor: &Tensor) -> Expr {
    cx.func.constant(tensor.clone())
}

fn cast(cx: &mut RewriteCx<'_>, e: Expr, dtype: DType) -> Result<Expr, PassError> {
    if cx.func.ty(e).dtype() == Some(dtype) {
        return Ok(e);
    }
    cx.call(CAST, &[e], Attrs::default().with("dtype", AttrValue::DType(dtype)))
}

/// Reshapes a vector with one element for each row to a column.
fn as_column(cx: &mut RewriteCx<'_>, e: Expr, has_row_vectors: bool) -> Result<Expr, PassError> {
    if !has_row_vectors || cx.func.ty(e).dims().is_none_or(|d| d.len() != 1) {
        return Ok(e);
    }
    cx.call(EXPAND, &[e], Attrs::default().with("axis", AttrValue::ints([1])))
}
