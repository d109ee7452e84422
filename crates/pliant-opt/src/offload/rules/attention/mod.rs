//! # What it does
//! Fuses attention into one kernel call: the matmul of queries and keys, scaling, soft-capping (`c * tanh(x / c)`), an added
//! bias, a mask with which `R.where` replaces scores by a constant (before or after the bias), softmax, zeros for fully masked
//! queries, and the matmul with the values. `R.nn.attention` is also replaced.
//!
//! Masks that replace scores by minus infinity, or that are added to scores and contain minus infinity, are split into the
//! conditions that they combine. Conditions that compare positions (`R.arange`), triangles (`R.tril`, `R.triu`) of a tensor whose
//! elements are all equal, and constants of this form become attributes of the kernel, so these masks need not be stored. Keys
//! and values that are repeated for several heads of the queries are read once.
//!
//! Casts between float32 and 16-bit floats between these operators, which the rule `widen_16_bit` inserts, are removed. Biases,
//! and numbers by which masks replace scores, are rounded as these casts round them. Transposes of heads before and after the
//! attention become strides. Queries, keys and values that are parts of one tensor are read in place.
//!
//! # Before
//! ```python
//! @R.function
//! def main(q: R.Tensor(("b", 2, "n", 4), "float32"), k: R.Tensor(("b", 2, "m", 4), "float32"), v: R.Tensor(("b", 2, "m", 4), "float32")) -> R.Tensor(("b", 2, "n", 4), "float32"):
//!     b = T.int64()
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         kt = R.permute_dims(k, axes=[0, 1, 3, 2])
//!         s = R.matmul(q, kt)
//!         w = R.nn.softmax(s, axis=-1)
//!         gv = R.matmul(w, v)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(q: R.Tensor(("b", 2, "n", 4), dtype="float32"), k: R.Tensor(("b", 2, "m", 4), dtype="float32"), v: R.Tensor(("b", 2, "m", 4), dtype="float32")) -> R.Tensor(("b", 2, "n", 4), dtype="float32"):
//!     b = T.int64()
//!     n = T.int64()
//!     m = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         ...
//!         gv: R.Tensor((b, 2, n, 4), dtype="float32") = R.call_tir(cls.attention, (q, k, v), out_sinfo=R.Tensor((b, 2, n, 4), dtype="float32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def attention(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_attention: T.handle):
//!     ...
//!         T.evaluate(T.call_kernel("attention", ...))
//! ```
//!
//! # Requires
//! Matmuls of float32, queries, keys and values with 3 or 4 dims and matching sizes, and constant factors. Each dim of the bias and
//! of the mask is 1 or a dim of the scores.
//!
//! # Keeps
//! - Attention of other types, or with sizes that are not known to match.
//! - Attention whose softmax weights have other readers.
//! - All attention if kernels are disabled.
//!
//! # Never
//! - Guarantees bit-identical results, because sums and factors are reordered. Scores are the dot products of queries and keys
//!   times one factor. A dot product that overflows float32 therefore gives infinity, even if the graph multiplies the queries by
//!   a small factor first.
//! - Rounds intermediate scores and weights to 16 bits.
//! - Lets keys that a positional mask hides from a query influence the query's result, even if the keys are NaN. The same holds
//!   for keys whose scores a boolean mask replaces by minus infinity.
//! - Distinguishes biases from scores: if the graph gives zeros to queries whose bias is minus infinity for all keys, then all
//!   queries whose scores are all minus infinity get zeros.

mod attention_kernel_call;
mod attention_matcher;
mod attention_score_matcher;
mod fully_masked_queries;
mod half_precision_casts;
mod positional_masks;
mod qkv_operands;
mod score_scale_factors;

use pliant_ir::relax::visit::{bindings, operand_vars};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, Op};
use pliant_pass::binding_rewrites::{for_each_operand_var, reachable_seqs};
use pliant_pass::pattern::{Pattern, RewriteCx, RuleSet, is_op, rewrite_call, wildcard};
use pliant_pass::{MayWrite, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::matmul_and_conv_operands::{
    MATMUL, PERMUTE_DIMS, defining_attrs, defining_operands, matmul_pattern, permute_axes,
};
use crate::common::shared_loop_functions::LoopFunctions;
use crate::offload::offload_rule::{Decision, KeepReason, Offloaded, Rule, RuleInfo, Site, Stage};
use attention_matcher::Attention;

const ATTENTION: Op = Op::new("relax.nn.attention");
const ATTENTION_BIAS: Op = Op::new("relax.nn.attention_bias");
const CAST: Op = Op::new("relax.astype");
const LOGICAL_AND: Op = Op::new("relax.logical_and");
const LOGICAL_NOT: Op = Op::new("relax.logical_not");
const SOFTMAX: Op = Op::new("relax.nn.softmax");
const WHERE: Op = Op::new("relax.where");

/// The permutation of dims that swaps heads and rows: it transposes (batch, heads, rows, size) to (batch, rows, heads, size), and
/// back. A row is a position in the sequence.
const SWAP_HEADS_AND_ROWS: [usize; 4] = [0, 2, 1, 3];

/// The number of patterns for each form of softmax weights: without a cast, with one cast, and with two casts.
const CAST_VARIANTS: usize = 3;
/// The number of patterns for softmax weights: a softmax, and a softmax in which `R.where` replaces elements by zeros, each with
/// the casts of [`CAST_VARIANTS`].
const OPERATOR_PATTERNS: usize = 2 * CAST_VARIANTS;

/// The entry of the rule `attention` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "attention",
        "attention",
        "float32 attention: its products, scaling, masks and softmax, or the operator",
        Stage::Composite,
        &[MATMUL, ATTENTION, ATTENTION_BIAS],
        |ctx| Ok(Box::new(AttentionRule::new(ctx)?)),
    )
}

struct AttentionRule {
    /// The patterns of attention: first [`OPERATOR_PATTERNS`] matmuls of softmax weights and values, then one matmul of values
    /// and transposed weights, then calls of the attention operators.
    roots: Vec<Pattern>,
    rules: RuleSet,
    /// The patterns of two successive swaps of heads and rows, without and with a cast in between.
    double_swaps: [Pattern; 2],
    /// The numbers of reads of the function's variables; `None` if the function contains no attention.
    read_counts: Option<ReadCounts>,
    /// The attention results of the function that have the dims (batch, rows, heads, size).
    by_tokens: FxHashSet<Expr>,
}

impl AttentionRule {
    fn new(ctx: &PassContext) -> Result<Self, PassError> {
        let cast = |e: &Pattern| is_op(CAST).call([e.clone()]);
        let softmax = is_op(SOFTMAX).call([wildcard()]);
        let guarded = is_op(WHERE).call([wildcard(), wildcard(), wildcard()]);
        let mut roots = Vec::new();
        for weights in [softmax, guarded] {
            let all = std::iter::successors(Some(weights), |e| Some(cast(e)));
            roots.extend(
                all.take(CAST_VARIANTS).map(|weights| matmul_pattern(&weights, &wildcard())),
            );
        }
        // A product of values and transposed weights, as in attention over the positions of an image.
        let softmax = is_op(SOFTMAX).call([wildcard()]);
        roots.push(matmul_pattern(&wildcard(), &is_op(PERMUTE_DIMS).call([softmax])));
        for op in [ATTENTION, ATTENTION_BIAS] {
            for count in [3, 4] {
                let operands: Vec<Pattern> = (0..count).map(|_| wildcard()).collect();
                roots.push(is_op(op).call(operands));
            }
        }
        let rules = RuleSet::new(roots.clone(), ctx.ops)?;
        let once = is_op(PERMUTE_DIMS).call([wildcard()]);
        let double_swaps = [once.clone(), cast(&once)].map(|e| is_op(PERMUTE_DIMS).call([e]));
        Ok(AttentionRule {
            roots,
            rules,
            double_swaps,
            read_counts: None,
            by_tokens: FxHashSet::default(),
        })
    }
}

impl Rule for AttentionRule {
    fn begin(&mut self, func: &Function) {
        self.read_counts = may_have_attention(func).then(|| ReadCounts::of(func));
        self.by_tokens.clear();
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let Some(read_counts) = &self.read_counts else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let (value, defs) = (site.root.value, &site.uses().1);
        if !self.rules.may_match(site.func, value) {
            return Ok(Err(KeepReason::NotApplicable));
        }
        let found = self.rules.match_value(site.func, defs, site.ctx.ops, value);
        let root = found.and_then(|f| Some((f.rule, f.get(&self.roots[f.rule])?)));
        let Some((rule, root)) = root else { return Ok(Err(KeepReason::NotApplicable)) };
        let var = site.root.var;
        let mut cx = RewriteCx::new(site.func, site.ctx.ops, defs, var, site.namer);
        let attention = match rule {
            ..OPERATOR_PATTERNS => attention_matcher::match_operators(&mut cx, read_counts, root),
            OPERATOR_PATTERNS => attention_matcher::match_transposed(&mut cx, read_counts, root),
            _ => attention_matcher::match_operator_call(&mut cx, root),
        };
        let attention = match attention {
            Ok(attention) => attention,
            Err(kept) => return Ok(Err(kept)),
        };
        let attention = half_precision_casts::widen_operands(&mut cx, attention)?;
        let by_tokens = rule != OPERATOR_PATTERNS
            && attention.heads_before_rows
            && read_counts.is_read_by_tokens(var);
        let mut value = emit_attention(
            &mut cx,
            site.loop_functions,
            &attention,
            by_tokens,
            &mut self.by_tokens,
        )?;
        if rule == OPERATOR_PATTERNS {
            let rows = cx.emit(value);
            value = attention_matcher::swap_last_two(&mut cx, rows)?;
        }
        site.bindings = cx.into_bindings();
        Ok(Ok(Offloaded { result: var, removed: Vec::new(), value }))
    }

    fn finish(
        &mut self,
        func: &mut Function,
        ctx: &PassContext,
        writers: &MayWrite,
    ) -> Result<(), PassError> {
        // Results in the order (batch, rows, heads, size) were transposed for their readers. Readers that transpose them back now
        // read the kernel's results directly.
        let by_tokens = &self.by_tokens;
        for pattern in &self.double_swaps {
            rewrite_call(func, pattern, ctx.ops, Some(writers), |cx, found| {
                let Some(root) = found.get(pattern) else { return Ok(None) };
                let Some((tokens, attrs)) = double_swap(cx, root) else { return Ok(None) };
                match attrs {
                    _ if !by_tokens.contains(&tokens) => Ok(None),
                    None => Ok(Some(tokens)),
                    Some(attrs) => cx.call(CAST, &[tokens], attrs).map(Some),
                }
            })?;
        }
        Ok(())
    }
}

/// Whether a function calls a softmax or an attention operator. Attention is not searched for in other functions.
fn may_have_attention(func: &Function) -> bool {
    let wanted = [SOFTMAX, ATTENTION, ATTENTION_BIAS];
    bindings(func).iter().any(|(_, b)| {
        matches!(func.expr(b.value), ExprData::Call { callee: Callee::Op(op), .. } if wanted.contains(op))
    })
}

/// How often the variables of a function are read, by bindings and by results of sequences.
struct ReadCounts {
    /// The number of reads of each variable.
    counts: FxHashMap<Var, usize>,
    /// Maps each variable that is a copy (`y = x`) to the original variable.
    aliases: FxHashMap<Var, Var>,
    /// The variables whose heads and rows are swapped by a transpose that reads them directly or after a cast.
    swapped: FxHashSet<Var>,
}

impl ReadCounts {
    fn of(func: &Function) -> ReadCounts {
        let mut read_counts = ReadCounts {
            counts: FxHashMap::default(),
            aliases: FxHashMap::default(),
            swapped: FxHashSet::default(),
        };
        for seq in reachable_seqs(func) {
            for_each_operand_var(func, func.seq(seq).result, &mut |v| {
                *read_counts.counts.entry(v).or_default() += 1;
            });
        }
        let mut casts: FxHashMap<Var, Var> = FxHashMap::default();
        for (_, b) in bindings(func) {
            for v in operand_vars(func, b.value) {
                *read_counts.counts.entry(v).or_default() += 1;
            }
            if let ExprData::Var(v) = func.expr(b.value) {
                read_counts.aliases.insert(b.var, *v);
            }
            if let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(b.value)
                && (*op == PERMUTE_DIMS || *op == CAST)
                && let ExprData::Var(v) = func.expr(func.list(*args)[0])
            {
                if *op == CAST {
                    casts.insert(b.var, *v);
                } else if permute_axes(func.call_attrs(*attrs), 4).as_deref()
                    == Some(&SWAP_HEADS_AND_ROWS)
                {
                    read_counts.swapped.extend([Some(v), casts.get(v)].into_iter().flatten());
                }
            }
        }
        read_counts
    }

    fn is_read_by_tokens(&self, v: Var) -> bool {
        self.swapped.contains(&v)
    }

    /// Whether an operand is read at most `times` times, and each of its copies, too.
    fn read_at_most(&self, func: &Function, e: Expr, times: usize) -> bool {
        let ExprData::Var(v) = func.expr(e) else { return true };
        let mut names = std::iter::successors(Some(v), |v| self.aliases.get(v));
        names.all(|v| self.counts.get(v).copied().unwrap_or(0) <= times)
    }
}

/// Emits the kernel call of an attention and, if `by_tokens` is set, the transpose of its result.
fn emit_attention(
    cx: &mut RewriteCx<'_>,
    loop_functions: &mut LoopFunctions,
    attention: &Attention,
    by_tokens: bool,
    stored_by_tokens: &mut FxHashSet<Expr>,
) -> Result<Expr, PassError> {
    let mut visible = None;
    for c in attention.mask.iter().flat_map(|(mask, _)| &mask.conditions) {
        let condition = match c.hides {
            true => {
                let not = cx.call(LOGICAL_NOT, &[c.tensor], Attrs::default())?;
                cx.emit(not)
            }
            false => c.tensor,
        };
        visible = Some(match visible {
            None => condition,
            Some(before) => {
                let both = cx.call(LOGICAL_AND, &[before, condition], Attrs::default())?;
                cx.emit(both)
            }
        });
    }
    let call = attention_kernel_call::loop_function_call(cx, attention, visible, by_tokens)
        .map_err(|e| {
            PassError::internal(format!("attention cannot be replaced by a kernel call: {e}"))
        })?;
    let value = loop_functions.call(cx.func, call);
    if !by_tokens {
        return Ok(value);
    }
    let tokens = cx.emit(value);
    stored_by_tokens.insert(tokens);
    let axes = AttrValue::ints(SWAP_HEADS_AND_ROWS.map(|a| a as i64));
    cx.call(PERMUTE_DIMS, &[tokens], Attrs::default().with("axes", axes))
}

/// If a value swaps heads and rows twice, returns the original tensor and the attributes of a cast in between.
fn double_swap(cx: &RewriteCx<'_>, root: Expr) -> Option<(Expr, Option<Attrs>)> {
    let swaps_heads_and_rows = |e: Expr| {
        let attrs = defining_attrs(cx, e)?;
        (permute_axes(&attrs, 4).as_deref() == Some(&SWAP_HEADS_AND_ROWS)).then_some(())
    };
    swaps_heads_and_rows(root)?;
    let inner = defining_operands(cx, root, PERMUTE_DIMS)?[0];
    let (inner, attrs) = match defining_operands(cx, inner, CAST) {
        Some(args) => (args[0], defining_attrs(cx, inner)),
        None => (inner, None),
    };
    swaps_heads_and_rows(inner)?;
    Some((defining_operands(cx, inner, PERMUTE_DIMS)?[0], attrs))
}
