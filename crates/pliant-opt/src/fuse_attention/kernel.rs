//! The loop function of an attention: one call of `pliant_attend_f32`.

use pliant_ir::DType;
use pliant_ir::relax::Expr as RelaxExpr;
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call_sized};
use pliant_pass::pattern::RewriteCx;

use super::found::Attention;
use super::guard::Blind;
use super::sources::{Layout, Source};

/// Queries, keys or values in memory.
struct Operand {
    first: Expr,
    batch: Expr,
    heads: Expr,
    rows: Expr,
    size: Expr,
    /// From batch to batch, head to head, row to row.
    strides: [Expr; 3],
}

fn product(list: &[&Expr]) -> Expr {
    list.iter().fold(te::int(1), |acc, &e| acc * e)
}

impl Operand {
    fn new(t: &Tensor, layout: Layout) -> Operand {
        let dims = t.shape().to_vec();
        let (zero, one) = (te::int(0), te::int(1));
        let mut first = vec![zero.clone(); dims.len()];
        let (heads, rows, size, strides) = match layout {
            Layout::One => {
                let (rows, size) = (&dims[1], &dims[2]);
                (one, rows.clone(), size.clone(), [product(&[rows, size]), zero, size.clone()])
            }
            Layout::Heads => {
                let (heads, rows, size) = (&dims[1], &dims[2], &dims[3]);
                let strides = [product(&[heads, rows, size]), product(&[rows, size]), size.clone()];
                (heads.clone(), rows.clone(), size.clone(), strides)
            }
            Layout::Tokens => {
                let (rows, heads, size) = (&dims[1], &dims[2], &dims[3]);
                let strides =
                    [product(&[rows, heads, size]), size.clone(), product(&[heads, size])];
                (heads.clone(), rows.clone(), size.clone(), strides)
            }
            Layout::Within { column, heads, size } => {
                let (rows, width) = (&dims[1], &dims[2]);
                first[2] = te::int(column);
                let strides = [product(&[rows, width]), te::int(size), width.clone()];
                (te::int(heads), rows.clone(), te::int(size), strides)
            }
        };
        Operand { first: address(t, &first), batch: dims[0].clone(), heads, rows, size, strides }
    }

    fn args(&self) -> Vec<Expr> {
        let mut args = vec![self.first.clone()];
        args.extend(self.strides.iter().cloned());
        args
    }
}

fn address(t: &Tensor, at: &[Expr]) -> Expr {
    te::call(Intrin::AddressOf, vec![t.at(at)])
}

/// The bias or mask and its strides from batch to batch, head to head, query to query, key to key.
fn bias(t: &Tensor, follows: &[bool], rank: usize) -> Vec<Expr> {
    let mut step = te::int(1);
    let mut strides = Vec::new();
    for (dim, &follows) in t.shape().iter().rev().zip(follows) {
        strides.push(if follows { step.clone() } else { te::int(0) });
        step = step * dim;
    }
    strides.resize(rank, te::int(0));
    if rank == 3 {
        // There is one head.
        strides.insert(2, te::int(0));
    }
    let first = vec![te::int(0); t.shape().len()];
    std::iter::once(address(t, &first)).chain(strides.into_iter().rev()).collect()
}

/// In place of a bias or mask that is not there: an address that is not used, and strides.
fn absent(q: &Operand) -> Vec<Expr> {
    std::iter::once(q.first.clone()).chain((0..4).map(|_| te::int(0))).collect()
}

/// The loop function and how it is called, where `seen` says what the mask leaves. With `exchanged` results lie token by
/// token, where they would lie head by head.
pub(super) fn call(
    cx: &mut RewriteCx<'_>,
    a: &Attention,
    seen: Option<RelaxExpr>,
    exchanged: bool,
) -> Result<TirCall, LegalizeError> {
    let mut operands: Vec<_> = a.sources.iter().map(|s: &Source| s.tensor).collect();
    operands.extend(a.bias);
    let mask_at = operands.len();
    operands.extend(seen);
    let offset: Vec<_> = a.causal.into_iter().collect();
    te_call_sized(cx.func, "attention", &operands, &offset, |t, offset| {
        let own = |k: usize| Operand::new(&t[k], a.sources[k].layout);
        let (q, k, v) = (own(0), own(1), own(2));
        let one = a.sources[0].layout == Layout::One;
        let (layout, shape) = match (one, a.heads && !exchanged) {
            (true, _) => (Layout::One, vec![&q.batch, &q.rows, &v.size]),
            (_, true) => (Layout::Heads, vec![&q.batch, &q.heads, &q.rows, &v.size]),
            _ => (Layout::Tokens, vec![&q.batch, &q.rows, &q.heads, &v.size]),
        };
        let shape = shape.into_iter().cloned().collect();
        Ok(te::extern_("attention", &[(shape, DType::Float32)], |b, out| {
            let out = Operand::new(&out[0], layout);
            let mut args = vec![te::string("pliant_attend_f32")];
            let sizes = [&q.batch, &q.heads, &k.heads, &q.rows, &k.rows, &q.size, &v.size];
            args.extend(sizes.into_iter().cloned());
            for operand in [&q, &k, &v, &out] {
                args.extend(operand.args());
            }
            let wide = DType::Float64;
            args.push(match a.scale {
                Some(scale) => te::const_of(scale, wide),
                None => te::rsqrt(&te::cast(&q.size, wide)),
            });
            args.push(te::const_of(a.cap, wide));
            args.push(te::int(i64::from(a.bias.is_some())));
            let rank = if one { 3 } else { 4 };
            args.extend(match a.bias {
                Some(_) => bias(&t[3], &a.bias_dims, rank),
                None => absent(&q),
            });
            args.push(te::int(i64::from(a.causal.is_some())));
            // Places beyond all keys, or before the first, say no more than the nearest.
            let near = |r: &Expr| te::maximum(&te::minimum(r, &(&k.rows + a.window)), &-&q.rows);
            args.push(offset.first().map_or_else(|| te::int(0), near));
            let blind = match a.blind {
                Blind::Zeros => 0,
                Blind::Nan => 1,
                Blind::ZerosForNan => 2,
            };
            args.extend([te::int(a.window), te::int(blind)]);
            args.push(te::int(i64::from(a.mask.is_some())));
            args.extend(match &a.mask {
                Some((_, follows)) => bias(&t[mask_at], follows, rank),
                None => absent(&q),
            });
            let (hidden, first) = match &a.mask {
                Some((mask, _)) => (mask.hidden, mask.first),
                None => (0.0, false),
            };
            args.extend([te::const_of(hidden, wide), te::int(i64::from(first))]);
            b.evaluate(te::call_typed(Intrin::CallExtern, args, Ty::I64));
        }))
    })
}
