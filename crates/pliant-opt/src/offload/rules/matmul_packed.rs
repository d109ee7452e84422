//! # What it does
//! Packs constant right operands of matmuls into panels ([`pliant_tensor::pack_panels`]) of the shape `[panels, k, width]`, which
//! kernels read sequentially. The matmul becomes `R.call_tir` of a loop function over the packed constant. The default schedule
//! (`pliant-tir/src/schedule/gemm.rs`) recognizes this function and calls the kernel library. The executable contains the packed
//! constant, so nothing is packed at run time. The bias of `R.linear` becomes an addition.
//!
//! With the setting `precision="bf16"`, float32 constants are rounded to bfloat16, and the matmul becomes a call of the kernel
//! `matmul_bfloat16_weight`.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 16), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.matmul(x, R.const([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 16), dtype="float32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         gv: R.Tensor((n, 16), dtype="float32") = R.call_tir(cls.matmul_packed, (x, metadata["relax.expr.Constant"][0]), out_sinfo=R.Tensor((n, 16), dtype="float32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def matmul_packed(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), var_matmul: T.handle):
//!     ...
//! ```
//!
//! # Requires
//! Nothing. It should run before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! - Matmuls of types other than float32 and float64.
//! - Matmuls with constants that have few columns, or a rank other than 2.
//! - Matmuls whose sizes must be checked at run time.
//! - The names, types and order of bindings, and dataflow blocks.
//!
//! # Never
//! Changes a constant for other readers: if there are any, the executable contains the packed and the original constant.

use pliant_ir::DType;
use pliant_ir::relax::{Expr, ExprData, Function};
use pliant_machine::Machine;
use pliant_ops::legalize::TirCall;
use pliant_ops::{LegalizeError, te};
use pliant_pass::{PassContext, PassError, Problem};
use pliant_tensor::{Tensor, TensorError, pack_bfloat16, pack_panels, panel_width};

use super::weight_only_matmul::weight_only_kernel_call::{
    self as weight_only_kernel, PackedWeights,
};
use crate::common::matmul_and_conv_operands::{LINEAR, MATMUL, MatrixProduct};
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

/// The entry of the rule `matmul_packed` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "matmul_packed",
        "matmul_packed, matmul_bfloat16_weight",
        "float32 and float64 matmuls by constants, which are packed",
        Stage::Kernel,
        &[MATMUL, LINEAR],
        |ctx: &PassContext| {
            Ok(Box::new(MatmulPacked {
                packed: Vec::new(),
                rounds_to_bfloat16: ctx.rounds_to_bfloat16(),
            }))
        },
    )
}

struct MatmulPacked {
    /// The packed constants of earlier matmuls, each as (constant, whether the matmul transposes the constant, packed constant).
    packed: Vec<(Tensor, bool, Tensor)>,
    /// Whether float32 constants are rounded to bfloat16.
    rounds_to_bfloat16: bool,
}

impl Rule for MatmulPacked {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let product = match PackableMatmul::of(site.func, site.root.value) {
            Ok(product) => product,
            Err(kept) => return Ok(Err(kept)),
        };
        if self.rounds_to_bfloat16
            && let Err(reason) = weight_only_kernel::check_operand(site.func, product.matmul.x)
        {
            return Ok(Err(reason));
        }
        let span = site.func.var(site.root.var).span;
        let user_error =
            |e: LegalizeError| PassError::User(vec![Problem::new(e.to_string()).at(span)]);
        let panels = self.panels(&product.weight, product.matmul.transposed).map_err(user_error)?;
        if panels.dtype() == DType::BFloat16 {
            let call = weight_only_kernel::call(
                site.func,
                product.matmul.x,
                &PackedWeights { panels, groups: None },
            );
            return Ok(site.call_product_kernel(&product.matmul, call));
        }
        let call = matmul_call(site.func, &product, panels).map_err(user_error)?;
        Ok(site.offload_product(&product.matmul, call))
    }
}

/// A matmul with a constant that can be packed.
struct PackableMatmul {
    matmul: MatrixProduct,
    weight: Tensor,
    k: i64,
    n: i64,
}

impl PackableMatmul {
    fn of(func: &Function, value: Expr) -> Result<PackableMatmul, KeepReason> {
        let matmul = MatrixProduct::of(func, value).ok_or(KeepReason::NotApplicable)?;
        let (x, out) = (func.ty(matmul.x), func.ty(value));
        let dtype = out.dtype();
        if dtype == Some(DType::Int32) {
            return Err(KeepReason::NotApplicable);
        }
        if !matches!(dtype, Some(DType::Float32 | DType::Float64)) || x.dtype() != dtype {
            return Err("the left operand and the result of the matmul must both be float32 or both float64".into());
        }
        let ExprData::Constant(c) = func.expr(matmul.right) else {
            return Err(
                "the matmul's right operand is not constant, so it cannot be packed at compile time; the matmul's loop function \
                 calls the kernel `matmul` instead"
                    .into(),
            );
        };
        let weight = func.const_tensor(*c);
        let &[rows, columns] = weight.shape() else {
            return Err("the matmul's right operand does not have 2 dims".into());
        };
        let (k, n) = if matmul.transposed { (columns, rows) } else { (rows, columns) };
        if !Machine::host().packed_product_is_faster(n) {
            let reason = format!(
                "the matmul's right operand has {n} column{}, but packing is faster only from {} on",
                if n == 1 { "" } else { "s" },
                Machine::PACKED_COLUMNS
            );
            return Err(KeepReason::Because(reason.into()));
        }
        let dims = x.dims().zip(out.dims()).filter(|(x, out)| x.len() == out.len());
        let inner_size = dims.and_then(|(x, _)| x.last()).and_then(|&d| func.syms.as_int(d));
        if weight.dtype() != dtype.unwrap_or(weight.dtype()) || inner_size != Some(k) {
            return Err("the matmul's operands are not known to have equal inner sizes".into());
        }
        Ok(PackableMatmul { matmul, weight: weight.clone(), k, n })
    }
}

/// Creates the loop function of a matmul with a packed constant, and a call of it.
fn matmul_call(
    func: &mut Function,
    p: &PackableMatmul,
    panels: Tensor,
) -> Result<TirCall, LegalizeError> {
    let panels = func.constant(panels);
    let width = panel_width(p.n as usize, p.weight.dtype()) as i64;
    let (k, n) = (p.k, p.n);
    pliant_ops::te_call(func, "matmul_packed", &[p.matmul.x, panels], |t| {
        let [x, w] = t else {
            unreachable!("a loop function of two operands receives two tensors")
        };
        let last = x.ndim() - 1;
        let k = te::reduce_axis(te::int(k), "k");
        let mut shape = x.shape()[..last].to_vec();
        shape.push(te::int(n));
        let product = te::compute(shape, "matmul", |i| {
            let (lead, j) = i.split_at(last);
            let (width, k_at) = (te::int(width), k.var.expr());
            let left = [lead, std::slice::from_ref(&k_at)].concat();
            let right = [te::floordiv(&j[0], &width), k_at, te::floormod(&j[0], &width)];
            te::sum(&(x.at(&left) * w.at(&right)), std::slice::from_ref(&k))
        });
        Ok(vec![product])
    })
}

impl MatmulPacked {
    /// Packs a constant into panels (blocks of adjacent columns), and caches the result.
    fn panels(&mut self, weight: &Tensor, transposed: bool) -> Result<Tensor, LegalizeError> {
        let cached = self.packed.iter().find(|(w, t, _)| w.same(weight) && *t == transposed);
        if let Some((_, _, panels)) = cached {
            return Ok(panels.clone());
        }
        let panels = if self.rounds_to_bfloat16 && weight.dtype() == DType::Float32 {
            round_and_pack(weight, transposed)
        } else {
            pack_panels(weight, transposed)
        };
        let panels = panels.map_err(|e| LegalizeError::new(e.to_string()))?;
        self.packed.push((weight.clone(), transposed, panels.clone()));
        Ok(panels)
    }
}

/// Rounds a constant, or its transpose, to bfloat16 and packs it into panels (blocks of adjacent columns).
fn round_and_pack(weight: &Tensor, transposed: bool) -> Result<Tensor, TensorError> {
    let (rows, columns) = (weight.shape()[0] as usize, weight.shape()[1] as usize);
    let all = weight.to_vec::<f32>()?;
    match transposed {
        false => pack_bfloat16(rows, columns, |p, j| all[p * columns + j]),
        true => pack_bfloat16(columns, rows, |p, j| all[j * columns + p]),
    }
}
