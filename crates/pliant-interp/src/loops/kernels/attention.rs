//! Scaled dot-product attention.

use pliant_ir::DType;
use pliant_kernel_api::kernels::attention::{NAN, ZEROS_FOR_NAN};

use super::super::scalar::round;
use super::Args;
use crate::error::Result;
use crate::machine::Machine;

/// Which keys a query sees because of its position.
struct Causal {
    on: bool,
    offset: i64,
    window: i64,
}

impl Causal {
    fn sees(&self, query: i64, key: i64) -> bool {
        let last = query.saturating_add(self.offset);
        !self.on || key <= last && (self.window <= 0 || key > last - self.window)
    }
}

/// Computes attention.
pub(super) fn run(m: &mut Machine<'_>, args: &Args) -> Result<()> {
    let size = |name: &str| args.sizes.get(name);
    let [batch, heads, queries] = ["batch", "heads", "queries"].map(size);
    let group = (heads / size("kv_heads").max(1)).max(1);
    let (keys, width) = (size("keys"), size("value_size"));
    let int = |name: &str| args.call.int(name);
    let causal = Causal { on: int("causal") != 0, offset: int("offset"), window: int("window") };
    let blind = if int("fully_masked") == NAN && keys > 0 { f64::NAN } else { 0.0 };
    for (b, h, i) in
        (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..queries).map(move |i| (b, h, i))))
    {
        let own = h / group;
        let mut scores = Vec::new();
        for j in 0..keys {
            m.step((size("size") + width) as u64 + 1)?;
            let score = score(args, [b, h, i, j], own)?;
            scores.push(if causal.sees(i, j) { score } else { f64::NEG_INFINITY });
        }
        let largest = scores.iter().fold(f64::NEG_INFINITY, |a, &x| a.max(x));
        let base = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        let weights: Vec<f64> = scores.iter().map(|x| (x - base).exp()).collect();
        let total: f64 = weights.iter().sum();
        let nan_is_blind = int("fully_masked") == ZEROS_FOR_NAN && total.is_nan();
        for p in 0..width {
            let mut sum = 0.0;
            for (j, &weight) in (0..).zip(&weights) {
                if causal.sees(i, j) {
                    let at = [("batch", b), ("kv_heads", own), ("keys", j), ("value_size", p)];
                    sum += weight * args.get("v", &at)?;
                }
            }
            let result = if total == 0.0 || nan_is_blind { blind } else { sum / total };
            let at = [("batch", b), ("heads", h), ("queries", i), ("value_size", p)];
            args.set("out", &at, round(result, DType::Float32))?;
        }
    }
    Ok(())
}

/// The score of a query and a key, without the mask by position.
fn score(args: &Args, [b, h, i, j]: [i64; 4], own: i64) -> Result<f64> {
    let mut score = 0.0;
    for p in 0..args.sizes.get("size") {
        let q = [("batch", b), ("heads", h), ("queries", i), ("size", p)];
        let k = [("batch", b), ("kv_heads", own), ("keys", j), ("size", p)];
        score += args.get("q", &q)? * args.get("k", &k)?;
    }
    score *= args.call.float("scale");
    let cap = args.call.float("softcap");
    if cap != 0.0 {
        score = cap * (score / cap).tanh();
    }
    let at = [("batch", b), ("heads", h), ("queries", i), ("keys", j)];
    let hidden = args.view("mask").is_some() && !args.read("mask", &at)?.is_true()?;
    let bias = if args.view("bias").is_some() { args.get("bias", &at)? } else { 0.0 };
    let masked = args.call.float("masked_score");
    Ok(match (hidden, args.call.int("mask_before_bias") != 0) {
        (false, _) => score + bias,
        (true, true) => masked + bias,
        (true, false) => masked,
    })
}
