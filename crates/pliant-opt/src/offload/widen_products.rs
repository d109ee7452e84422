//! # What it does
//! Computes matmuls, convolutions and attention of float16 and bfloat16 in float32 and rounds the results, because the library
//! kernels support only float32. Casts of constants are folded ([`FoldConstant`](crate::canonicalize::fold_constant)). Casts of
//! inputs and results are elementwise and fuse with their neighbors. Accumulation in loops is in float32, too, so the precision
//! does not decrease.
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
//! Nothing. It should run before [`EliminateCommonSubexpr`](crate::canonicalize::eliminate_common_subexpr), which merges casts of
//! the same operand.
//!
//! # Keeps
//! - Operators with an operand of another type, except the bias of `R.linear`, which may be float32.
//! - Operators whose result is neither a 16-bit float nor float32.
//! - All operators if kernels are disabled.
//!
//! # Never
//! Accumulates in fewer bits than before. Constants of such products take 32 bits per element. The setting `precision="bfloat16"`
//! rounds them like other float32 constants, even if they were float16.

use pliant_ir::relax::{Callee, Expr, ExprData, Function};
use pliant_ir::{AttrValue, Attrs, DType, IRModule, Op};
use pliant_pass::pass::update_each_relax;
use pliant_pass::pattern::{Pattern, RewriteCx, RuleSet, is_op, rewrite_rules};
use pliant_pass::rewrite::reachable_seqs;
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};

use crate::common::lowered_ops::is_absent;
use crate::common::products::{CONVOLUTIONS, LINEAR, MATMUL};

const CAST: Op = Op::new("relax.astype");

/// The operators other than convolutions whose kernels support only float32.
const OTHER_OPS: [Op; 4] =
    [MATMUL, LINEAR, Op::new("relax.nn.attention"), Op::new("relax.nn.attention_bias")];

/// The operators whose kernels support only float32.
fn widened_ops() -> impl Iterator<Item = Op> {
    OTHER_OPS.into_iter().chain(CONVOLUTIONS)
}

/// See the module's documentation.
pub struct WidenProducts;

impl ModulePass for WidenProducts {
    fn name(&self) -> &str {
        "WidenProducts"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if !ctx.kernels() {
            return Ok(module);
        }
        let writers = MayWrite::of(&module);
        let roots: Vec<Pattern> = widened_ops().map(|op| is_op(op).call_any([])).collect();
        let rules = RuleSet::new(roots.clone(), ctx.ops)?;
        update_each_relax(&mut module, ctx, |_, func| {
            if !has_16_bit_operators(func) {
                return Ok(false);
            }
            let count = rewrite_rules(func, &rules, ctx.ops, Some(&writers), |cx, matches| {
                let Some(root) = matches.get(&roots[matches.rule]) else { return Ok(None) };
                widen(cx, root)
            })?;
            Ok(count > 0)
        })?;
        Ok(module)
    }
}

fn is_half(dtype: Option<DType>) -> bool {
    matches!(dtype, Some(DType::Float16 | DType::BFloat16))
}

/// Whether a function calls such an operator on 16-bit floats. Other functions are not searched.
fn has_16_bit_operators(func: &Function) -> bool {
    reachable_seqs(func).into_iter().any(|seq| {
        let blocks = &func.seq(seq).blocks;
        let mut bindings = blocks.iter().flat_map(|&b| &func.block(b).bindings);
        bindings.any(|b| match func.expr(b.value) {
            ExprData::Call { callee: Callee::Op(op), args, .. }
                if widened_ops().any(|o| o == *op) =>
            {
                func.list(*args).first().is_some_and(|&x| is_half(func.ty(x).dtype()))
            }
            _ => false,
        })
    })
}

/// The call with float32 operands, with the result cast back to its type. `None` if the operator is kept.
fn widen(cx: &mut RewriteCx<'_>, root: Expr) -> Result<Option<Expr>, PassError> {
    let value = cx.value(root);
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = *cx.func.expr(value) else {
        return Ok(None);
    };
    let (args, attrs) = (cx.func.list(args).to_vec(), cx.func.call_attrs(attrs).clone());
    // Absent operands come last.
    let present = args.iter().take_while(|&&e| !is_absent(cx.func, e)).count();
    let (args, absent) = args.split_at(present);
    let has_supported_dtypes = args.iter().enumerate().all(|(i, &e)| {
        let dtype = cx.func.ty(e).dtype();
        is_half(dtype) || op == LINEAR && i == 2 && dtype == Some(DType::Float32)
    });
    let is_supported = has_supported_dtypes && absent.iter().all(|&e| is_absent(cx.func, e));
    let result = cx.func.ty(value).dtype();
    let Some(result) =
        result.filter(|&d| is_supported && (is_half(Some(d)) || d == DType::Float32))
    else {
        return Ok(None);
    };
    let wide = args.iter().map(|&e| cast(cx, e, DType::Float32));
    let wide = wide.collect::<Result<Vec<_>, _>>()?;
    let has_out_dtype = attrs.get("out_dtype").is_some_and(|d| !d.is_none());
    let attrs = match has_out_dtype {
        true => attrs.with("out_dtype", AttrValue::DType(DType::Float32)),
        false => attrs,
    };
    let product = cx.call(op, &wide, attrs)?;
    if result == DType::Float32 { Ok(Some(product)) } else { cast(cx, product, result).map(Some) }
}

fn cast(cx: &mut RewriteCx<'_>, e: Expr, dtype: DType) -> Result<Expr, PassError> {
    if cx.func.ty(e).dtype() == Some(dtype) {
        return Ok(e);
    }
    cx.call(CAST, &[e], Attrs::default().with("dtype", AttrValue::DType(dtype)))
}
