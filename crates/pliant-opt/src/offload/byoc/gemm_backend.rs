//! The backend `gemm`, which computes matmuls with the kernel library, with bias and activation in the epilogue.
//!
//! A float32 or float64 matmul becomes a call of `pliant.gemm` if its right operand is a matrix, or has the same number of dims
//! and the same batch dims as the left operand. The suffix `.t` means that the right operand is read transposed, `.bias` that a
//! bias is added. The name of an activation comes last: `pliant.gemm.t.bias.relu`.

use std::sync::Arc;

use pliant_ir::op::OpRegistry;
use pliant_ir::relax::type_lattice::prove_dims_equal;
use pliant_ir::relax::visit::bindings;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, DType, IRModule, Op};
use pliant_kernel_api::host_function_names::{GEMM, GEMM_ACTIVATIONS};
use pliant_pass::pattern::{Pattern, is_op, wildcard};
use pliant_pass::{ModulePass, PassContext, PassError};
use pliant_sym::Proof;

use super::backend_patterns::{FusionPattern, PatternCheck, patterns_with_prefix};
use super::code_generator_registry::{ExternalCodegen, ExternalFunction, Generated, TargetOptions};
use crate::offload::fuse_ops_by_pattern::FuseOpsByPattern;
use crate::offload::run_codegen::RunCodegen;

/// The name of the backend that computes matmuls with the kernel library.
pub const NAME: &str = "gemm";

const MATMUL: Op = Op::new("relax.matmul");
const ADD: Op = Op::new("relax.add");
const PERMUTE_DIMS: Op = Op::new("relax.permute_dims");

/// Creates the patterns of the backend, from the smallest to the largest. Patterns at the end are tried first.
pub(super) fn patterns() -> Vec<FusionPattern> {
    let mut out = Vec::new();
    for activation in std::iter::once(None).chain(GEMM_ACTIVATIONS.iter().map(Some)) {
        for bias in [false, true] {
            for transposed in [false, true] {
                let size = [activation.is_some(), bias, transposed].iter().filter(|x| **x).count();
                out.push((size, pattern(transposed, bias, activation)));
            }
        }
    }
    out.sort_by_key(|(size, _)| *size);
    out.into_iter().map(|(_, p)| p).collect()
}

fn pattern(
    transposed: bool,
    with_bias: bool,
    activation: Option<&(&'static str, &str)>,
) -> FusionPattern {
    let (lhs, rhs, bias) = (wildcard(), wildcard(), wildcard());
    let mut name = String::from("gemm.matmul");
    let mut weight = rhs.clone();
    if transposed {
        name.push_str("_transposed");
        weight = is_op(PERMUTE_DIMS).call([rhs.clone()]);
    }
    let product = is_op(MATMUL).call([lhs.clone(), weight]);
    let mut full_pattern: Pattern = product.clone();
    if with_bias {
        name.push_str("_bias");
        full_pattern = is_op(ADD).call([full_pattern, bias.clone()]);
    }
    if let Some((op, suffix)) = activation {
        name.push('_');
        name.push_str(suffix);
        full_pattern = is_op(Op::new(op)).call([full_pattern]);
    }
    let mut out = FusionPattern::new(name, full_pattern)
        .with_annotation("lhs", &lhs)
        .with_annotation("rhs", &rhs)
        .with_annotation("root", &product);
    if with_bias {
        out = out.with_annotation("bias", &bias);
    }
    out.with_check(move |check| Ok(is_supported(check, transposed, with_bias)))
}

/// Whether a packed function of the backend supports the data types and shapes of a match.
fn is_supported(check: &mut PatternCheck<'_>, transposed: bool, with_bias: bool) -> bool {
    let (Some(lhs), Some(rhs), Some(root)) =
        (check.annotated("lhs"), check.annotated("rhs"), check.annotated("root"))
    else {
        return false;
    };
    let bias = check.annotated("bias");
    let func = Arc::make_mut(check.func);
    let dims = |func: &Function, e: Expr| func.ty(e).dims().map(<[_]>::to_vec);
    let (Some(x), Some(w), Some(out)) = (dims(func, lhs), dims(func, rhs), dims(func, root)) else {
        return false;
    };
    let dtypes: Vec<Option<DType>> = [lhs, rhs, root].iter().map(|&e| func.ty(e).dtype()).collect();
    let is_float = dtypes[0].is_some_and(|d| d == DType::Float32 || d == DType::Float64);
    if !is_float || dtypes.iter().any(|d| *d != dtypes[0]) || x.len() < 2 || w.len() < 2 {
        return false;
    }
    if w.len() > 2 && w.len() != x.len() {
        return false;
    }
    let equal = |func: &mut Function, a, b| prove_dims_equal(func, a, b) == Proof::Yes;
    let batch = x.len() - 2;
    if w.len() > 2 && !(0..batch).all(|i| equal(func, x[i], w[i])) {
        return false;
    }
    if transposed && !transpose_swaps_last_two(check, w.len()) {
        return false;
    }
    let func = Arc::make_mut(check.func);
    let inner = w[w.len() - if transposed { 1 } else { 2 }];
    if !equal(func, x[x.len() - 1], inner) {
        return false;
    }
    let Some(bias) = bias else { return !with_bias };
    let Some(list) = dims(func, bias) else { return false };
    func.ty(bias).dtype() == dtypes[0]
        && list.len() == 1
        && equal(func, list[0], out[out.len() - 1])
}

/// Whether the transpose among the bindings of a match swaps the last two dims of a tensor of rank `rank` and keeps the others.
fn transpose_swaps_last_two(check: &PatternCheck<'_>, rank: usize) -> bool {
    let func = &**check.func;
    let found = check.members.iter().find_map(|b| match func.expr(b.value) {
        ExprData::Call { callee: Callee::Op(PERMUTE_DIMS), attrs, .. } => {
            Some(func.call_attrs(*attrs))
        }
        _ => None,
    });
    let Some(attrs) = found else { return false };
    swaps_last_two(attrs.get("axes"), rank)
}

fn swaps_last_two(axes: Option<&AttrValue>, rank: usize) -> bool {
    match axes {
        None | Some(AttrValue::None) => rank == 2,
        Some(axes) => axes.as_ints().is_some_and(|list| {
            let at = |i: usize| if list[i] < 0 { list[i] + rank as i64 } else { list[i] };
            list.len() == rank
                && (0..rank - 2).all(|i| at(i) == i as i64)
                && at(rank - 2) == rank as i64 - 1
                && at(rank - 1) == rank as i64 - 2
        }),
    }
}

/// The code generator of the backend `gemm`. It generates no code, because its packed functions are part of every VM.
pub struct GemmCodegen;

impl ExternalCodegen for GemmCodegen {
    fn takes_regions(&self) -> bool {
        false
    }

    fn generate(
        &self,
        functions: &[ExternalFunction<'_>],
        _: &TargetOptions,
        ctx: &PassContext,
    ) -> Result<Vec<Generated>, PassError> {
        functions
            .iter()
            .map(|f| generate_one(f, ctx.ops).map_err(|e| e.in_function(&f.name)))
            .collect()
    }
}

/// Returns the packed function that computes a function with the attribute `Codegen`.
fn generate_one(f: &ExternalFunction<'_>, _: &dyn OpRegistry) -> Result<Generated, PassError> {
    let composites = f.composites();
    let [(_, inner)] = &composites[..] else {
        return Err(PassError::unsupported(
            format!(
                "the backend 'gemm' supports exactly one matmul per function, but the function has {}",
                composites.len()
            ),
            "create one function per matmul with FuseOpsByPattern(annotate_codegen=True) or MergeCompositeFunctions",
        ));
    };
    packed_function(inner).ok_or_else(|| {
        PassError::unsupported(
            "the backend 'gemm' does not support a matmul with a constant operand",
            "pass constants as arguments of the function: run FuseOpsByPattern with bind_constants=False",
        )
    })
}

/// Returns the packed function of the kernel library that computes `inner`, an outlined match of one of the backend's patterns, and
/// the indices of the parameters of `inner` that are passed to it. `None` if an operand is not a parameter.
fn packed_function(inner: &Function) -> Option<Generated> {
    let param = |e: Expr| match inner.expr(e) {
        ExprData::Var(v) => inner.params().iter().position(|p| p == v),
        _ => None,
    };
    let mut symbol = String::from(GEMM);
    let (mut args, mut transposed): (Vec<usize>, Option<(Var, usize)>) = (Vec::new(), None);
    let mut last: Option<Var> = None;
    for (_, b) in bindings(inner) {
        let ExprData::Call { callee: Callee::Op(op), args: operands, .. } = inner.expr(b.value)
        else {
            return None;
        };
        let operands = inner.list(*operands);
        let is =
            |e: Expr, v: Option<Var>| matches!(inner.expr(e), ExprData::Var(x) if Some(*x) == v);
        match *op {
            PERMUTE_DIMS => transposed = Some((b.var, param(*operands.first()?)?)),
            MATMUL => {
                let (x, w) = (*operands.first()?, *operands.get(1)?);
                args.push(param(x)?);
                match transposed {
                    Some((v, param_index)) if is(w, Some(v)) => {
                        symbol.push_str(".t");
                        args.push(param_index);
                    }
                    _ => args.push(param(w)?),
                }
                last = Some(b.var);
            }
            ADD => {
                let other = operands.iter().copied().find(|&e| !is(e, last))?;
                symbol.push_str(".bias");
                args.push(param(other)?);
                last = Some(b.var);
            }
            op => {
                let (_, suffix) = GEMM_ACTIVATIONS.iter().find(|(name, _)| *name == op.name())?;
                symbol.push('.');
                symbol.push_str(suffix);
                last = Some(b.var);
            }
        }
    }
    Some(Generated { symbol, args: Some(args) })
}

/// Offloads the matmuls of a module to the kernel library: matches the patterns of this backend, then runs its code generator.
///
/// # Errors
/// The errors of the passes [`FuseOpsByPattern`] and [`RunCodegen`].
pub fn partition_for_gemm(module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
    let fuse = FuseOpsByPattern {
        patterns: patterns_with_prefix("gemm."),
        bind_constants: false,
        annotate_codegen: true,
    };
    let module = fuse.apply(module, ctx)?;
    RunCodegen::default().apply(module, ctx)
}
