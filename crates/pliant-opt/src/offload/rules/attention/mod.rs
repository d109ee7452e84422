//! # What it does
//! Fuses attention into one kernel call: the product of queries and keys, scaling, soft-capping (`c * tanh(x / c)`), an added
//! bias, a mask by which `R.where` replaces scores by a constant (before or after the bias), softmax, zeros for queries without
//! visible keys, and the product with the values; and `R.nn.attention`.
//!
//! Masks that put minus infinity in place of scores, or in what is added to them, are taken apart: of what several conditions hide
//! together, those that compare places (`R.arange`), triangles of one number, and constants that are such become numbers for the
//! kernel, and the masks need not be stored. Keys and values that are repeated for the heads of the queries are read once.
//!
//! Casts between float32 and 16 bits that stand between these, as [`WidenProducts`](crate::offload::widen_products) leaves
//! them, are seen through. Biases, and numbers that masks put in place of scores, are rounded as these casts round them. The
//! transposes of heads around it are read and written by strides, and so are the parts that queries, keys and values are of one
//! tensor.
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
//! Products of float32, queries and keys and values of 3 or 4 dims whose sizes are the same where they must be, factors that are
//! constants, and a bias and a mask each of whose dims is 1 or that of the scores.
//!
//! # Keeps
//! Attention of other types, of sizes that are not known to fit, with weights that others read, and all of it where kernels are
//! switched off.
//!
//! # Never
//! Keeps the order in which products are summed, and that of factors: scores are the products of queries and keys times one
//! factor, so that a product that leaves float32 gives infinity although small factors of the queries kept it from that. Scores and
//! weights are not rounded to 16 bits in between. What a query does not see by place has no influence, even if it is no number, and
//! scores that minus infinity hides by a truth value have none. Where zeros are given to queries of whose bias every number is
//! minus infinity, those get them all whose scores are minus infinity.

mod casts;
mod factors;
mod guard;
mod kernel;
mod matcher;
mod positional_masks;
mod scores;
mod sources;

use pliant_ir::relax::visit::{bindings, operand_vars};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, Op};
use pliant_pass::pattern::{Pattern, RewriteCx, RuleSet, is_op, rewrite_call, wildcard};
use pliant_pass::rewrite::{for_each_operand_var, reachable_seqs};
use pliant_pass::{PassContext, PassError, Writers};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::kernels::Kernels;
use crate::common::products::{MATMUL, PERMUTE, attrs_of, operands_of, permutation, product};
use crate::offload::rule::{Kept, Offloaded, Rule, RuleInfo, Site, Stage, Verdict};
use matcher::Attention;

const ATTENTION: Op = Op::new("relax.nn.attention");
const ATTENTION_BIAS: Op = Op::new("relax.nn.attention_bias");
const CAST: Op = Op::new("relax.astype");
const LOGICAL_AND: Op = Op::new("relax.logical_and");
const LOGICAL_NOT: Op = Op::new("relax.logical_not");
const SOFTMAX: Op = Op::new("relax.nn.softmax");
const WHERE: Op = Op::new("relax.where");

/// Heads and places exchanged.
const EXCHANGED: [usize; 4] = [0, 2, 1, 3];

/// Products of weights that may be an attention: of the weights, of a cast, and of those that were rounded in between.
const CASTS: usize = 3;
/// The same of a softmax, and of one of which `R.where` makes zeros.
const WRITTEN: usize = 2 * CASTS;

/// The row of the table.
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
    /// What may be an attention: [`WRITTEN`] products of weights, one of values by weights, then calls of the operators.
    roots: Vec<Pattern>,
    rules: RuleSet,
    /// What is exchanged twice, and cast in between.
    twice: [Pattern; 2],
    /// Who reads the variables of the function; none if it has no attention.
    uses: Option<Uses>,
    /// The results of the function's attentions that lie token by token.
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
            roots.extend(all.take(CASTS).map(|weights| product(&weights, &wildcard())));
        }
        // A product of the values by transposed weights, as blocks over the positions of an image have it.
        let softmax = is_op(SOFTMAX).call([wildcard()]);
        roots.push(product(&wildcard(), &is_op(PERMUTE).call([softmax])));
        for op in [ATTENTION, ATTENTION_BIAS] {
            for count in [3, 4] {
                let operands: Vec<Pattern> = (0..count).map(|_| wildcard()).collect();
                roots.push(is_op(op).call(operands));
            }
        }
        let rules = RuleSet::new(roots.clone(), ctx.ops)?;
        let once = is_op(PERMUTE).call([wildcard()]);
        let twice = [once.clone(), cast(&once)].map(|e| is_op(PERMUTE).call([e]));
        Ok(AttentionRule { roots, rules, twice, uses: None, by_tokens: FxHashSet::default() })
    }
}

impl Rule for AttentionRule {
    fn begin(&mut self, func: &Function) {
        self.uses = mentions(func).then(|| Uses::of(func));
        self.by_tokens.clear();
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Verdict, PassError> {
        let Some(uses) = &self.uses else { return Ok(Err(Kept::NotApplicable)) };
        let (value, defs) = (site.root.value, &site.uses().1);
        if !self.rules.may_match(site.func, value) {
            return Ok(Err(Kept::NotApplicable));
        }
        let found = self.rules.match_value(site.func, defs, site.ctx.ops, value);
        let root = found.and_then(|f| Some((f.rule, f.get(&self.roots[f.rule])?)));
        let Some((rule, root)) = root else { return Ok(Err(Kept::NotApplicable)) };
        let var = site.root.var;
        let mut cx = RewriteCx::new(site.func, site.ctx.ops, defs, var, site.namer);
        let attention = match rule {
            ..WRITTEN => matcher::written(&mut cx, uses, root),
            WRITTEN => matcher::by_columns(&mut cx, uses, root),
            _ => matcher::called(&mut cx, root),
        };
        let Some(attention) = attention else {
            return Ok(Err("its operands are not float32 of sizes that are known to fit, or something else reads its weights".into()));
        };
        let attention = casts::widened(&mut cx, attention)?;
        let exchanged = rule != WRITTEN && attention.heads && uses.exchanged(var);
        let mut value =
            replaced(&mut cx, site.kernels, &attention, exchanged, &mut self.by_tokens)?;
        if rule == WRITTEN {
            let rows = cx.emit(value);
            value = matcher::exchange_last(&mut cx, rows)?;
        }
        site.bindings = cx.into_bindings();
        Ok(Ok(Offloaded { result: var, inside: Vec::new(), value }))
    }

    fn finish(
        &mut self,
        func: &mut Function,
        ctx: &PassContext,
        writers: &Writers,
    ) -> Result<(), PassError> {
        // What the kernel has written token by token was put head by head for those who want it so.
        let by_tokens = &self.by_tokens;
        for pattern in &self.twice {
            rewrite_call(func, pattern, ctx.ops, Some(writers), |cx, found| {
                let Some(root) = found.get(pattern) else { return Ok(None) };
                let Some((tokens, attrs)) = twice(cx, root) else { return Ok(None) };
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

/// Whether a function has anything to look at, so that others are not searched.
fn mentions(func: &Function) -> bool {
    let wanted = [SOFTMAX, ATTENTION, ATTENTION_BIAS];
    bindings(func).iter().any(|(_, b)| {
        matches!(func.expr(b.value), ExprData::Call { callee: Callee::Op(op), .. } if wanted.contains(op))
    })
}

/// Who reads the variables of a function: bindings, and results of its sequences.
struct Uses {
    counts: FxHashMap<Var, usize>,
    /// Variables that are others by another name.
    aliases: FxHashMap<Var, Var>,
    /// Read by something that exchanges heads and places, with a cast in front of it or without.
    exchanged: FxHashSet<Var>,
}

impl Uses {
    fn of(func: &Function) -> Uses {
        let mut uses = Uses {
            counts: FxHashMap::default(),
            aliases: FxHashMap::default(),
            exchanged: FxHashSet::default(),
        };
        for seq in reachable_seqs(func) {
            for_each_operand_var(func, func.seq(seq).result, &mut |v| {
                *uses.counts.entry(v).or_default() += 1;
            });
        }
        let mut casts: FxHashMap<Var, Var> = FxHashMap::default();
        for (_, b) in bindings(func) {
            for v in operand_vars(func, b.value) {
                *uses.counts.entry(v).or_default() += 1;
            }
            if let ExprData::Var(v) = func.expr(b.value) {
                uses.aliases.insert(b.var, *v);
            }
            if let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(b.value)
                && (*op == PERMUTE || *op == CAST)
                && let ExprData::Var(v) = func.expr(func.list(*args)[0])
            {
                if *op == CAST {
                    casts.insert(b.var, *v);
                } else if permutation(func.call_attrs(*attrs), 4).as_deref() == Some(&EXCHANGED) {
                    uses.exchanged.extend([Some(v), casts.get(v)].into_iter().flatten());
                }
            }
        }
        uses
    }

    fn exchanged(&self, v: Var) -> bool {
        self.exchanged.contains(&v)
    }

    /// Whether an operand is read so many times at most, by whatever name.
    fn at_most(&self, func: &Function, e: Expr, times: usize) -> bool {
        let ExprData::Var(v) = func.expr(e) else { return true };
        let mut names = std::iter::successors(Some(v), |v| self.aliases.get(v));
        names.all(|v| self.counts.get(v).copied().unwrap_or(0) <= times)
    }
}

/// The call of the kernel.
fn replaced(
    cx: &mut RewriteCx<'_>,
    kernels: &mut Kernels,
    attention: &Attention,
    exchanged: bool,
    made: &mut FxHashSet<Expr>,
) -> Result<Expr, PassError> {
    let mut seen = None;
    for c in attention.mask.iter().flat_map(|(mask, _)| &mask.all) {
        let own = match c.hides {
            true => {
                let not = cx.call(LOGICAL_NOT, &[c.tensor], Attrs::default())?;
                cx.emit(not)
            }
            false => c.tensor,
        };
        seen = Some(match seen {
            None => own,
            Some(before) => {
                let both = cx.call(LOGICAL_AND, &[before, own], Attrs::default())?;
                cx.emit(both)
            }
        });
    }
    let call = kernel::call(cx, attention, seen, exchanged)
        .map_err(|e| PassError::internal(format!("attention has no loop function: {e}")))?;
    let value = kernels.call(cx.func, call);
    if !exchanged {
        return Ok(value);
    }
    let tokens = cx.emit(value);
    made.insert(tokens);
    let axes = AttrValue::ints(EXCHANGED.map(|a| a as i64));
    cx.call(PERMUTE, &[tokens], Attrs::default().with("axes", axes))
}

/// What is exchanged twice, and the attributes of a cast in between.
fn twice(cx: &RewriteCx<'_>, root: Expr) -> Option<(Expr, Option<Attrs>)> {
    let exchanges = |e: Expr| {
        let attrs = attrs_of(cx, e)?;
        (permutation(&attrs, 4).as_deref() == Some(&EXCHANGED)).then_some(())
    };
    exchanges(root)?;
    let inner = operands_of(cx, root, PERMUTE)?[0];
    let (inner, attrs) = match operands_of(cx, inner, CAST) {
        Some(args) => (args[0], attrs_of(cx, inner)),
        None => (inner, None),
    };
    exchanges(inner)?;
    Some((operands_of(cx, inner, PERMUTE)?[0], attrs))
}
