//! The declaration of the kernel `attention`: scaled dot-product attention.

use pliant_tensor::DType::{Bool, Float32};

use crate::reference::{Args, Result, indices};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// Value of the attribute `fully_masked`: the result of a query whose scores are all minus infinity is 0.
pub const ZEROS: i64 = 0;
/// Value of the attribute `fully_masked`: the result of a query whose scores are all minus infinity is NaN.
pub const NAN: i64 = 1;
/// Value of the attribute `fully_masked`: the result of a query is 0 if its scores are all minus infinity, or if its
/// softmax weights are NaN.
pub const ZEROS_FOR_NAN: i64 = 2;

const SCORES: Dims = Dims::Fixed(&["batch", "heads", "queries", "keys"]);

/// The declaration of the kernel `attention`: scaled dot-product attention.
pub static KERNEL: Kernel = Kernel {
    name: "attention",
    doc: "Attention (Vaswani et al., 2017; ONNX `Attention`): `softmax(cap(scale * q @ k^T) + bias) @ v`, where `cap(x)` is \
          `softcap * tanh(x / softcap)`. Query head `h` reads head `h // (heads // kv_heads)` of the keys and values.",
    operands: &[
        Operand::input(
            "q",
            Float32,
            Dims::Fixed(&["batch", "heads", "queries", "size"]),
            "queries",
        )
        .strided_rows(),
        Operand::input("k", Float32, Dims::Fixed(&["batch", "kv_heads", "keys", "size"]), "keys")
            .strided_rows(),
        Operand::input(
            "v",
            Float32,
            Dims::Fixed(&["batch", "kv_heads", "keys", "value_size"]),
            "values",
        )
        .strided_rows(),
        Operand::input("bias", Float32, SCORES, "added to the scores").strided().optional(),
        Operand::input("mask", Bool, SCORES, "whether a query sees a key").strided().optional(),
        Operand::output(
            "out",
            Float32,
            Dims::Fixed(&["batch", "heads", "queries", "value_size"]),
            "results",
        )
        .strided_rows(),
    ],
    attrs: &[
        Attr::new(
            "scale",
            AttrType::Float,
            AttrDefault::Required,
            "the factor of the products of queries and keys",
        ),
        Attr::new(
            "softcap",
            AttrType::Float,
            AttrDefault::Float(0.0),
            "the limit of the scores; 0 for no limit",
        ),
        Attr::new(
            "causal",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether query `i` sees only the keys up to key `i + offset`",
        ),
        Attr::new(
            "offset",
            AttrType::Int(i64::MIN, i64::MAX),
            AttrDefault::Number(0),
            "the last key that query 0 sees, with `causal`",
        ),
        Attr::new(
            "window",
            AttrType::Int(0, 1 << 30),
            AttrDefault::Number(0),
            "the number of keys up to its last one that a query sees, with `causal`; 0 for all",
        ),
        Attr::new(
            "masked_score",
            AttrType::Float,
            AttrDefault::Float(f64::NEG_INFINITY),
            "the score of a key that `mask` hides",
        ),
        Attr::new(
            "mask_before_bias",
            AttrType::Bool,
            AttrDefault::Number(0),
            "whether `bias` is also added to the scores of hidden keys",
        ),
        Attr::new(
            "fully_masked",
            AttrType::Choice(&["zeros", "nan", "zeros_for_nan"]),
            AttrDefault::Number(ZEROS),
            "the result of a query whose scores are all minus infinity; with `zeros_for_nan`, the result is also zeros if \
                  the weights of the query are NaN",
        ),
    ],
    derived: &[],
    relations,
    flops,
    reference,
};

fn relations(_: &Call, sizes: &Sizes) -> Result<(), String> {
    let (heads, kv_heads) = (sizes.get("heads"), sizes.get("kv_heads"));
    if heads != 0 && (kv_heads == 0 || heads % kv_heads != 0) {
        return Err(format!(
            "operand 'q' has {heads} heads, expected a multiple of the {kv_heads} heads of operand 'k'"
        ));
    }
    Ok(())
}

fn flops(_: &Call, sizes: &Sizes) -> f64 {
    let size = |name: &str| sizes.get(name) as f64;
    let scores = size("batch") * size("heads") * size("queries") * size("keys");
    2.0 * scores * (size("size") + size("value_size"))
}

/// The causal mask, which determines from the positions of a query and a key whether the query attends to the key.
struct CausalMask {
    enabled: bool,
    offset: i64,
    window: i64,
}

impl CausalMask {
    fn sees(&self, query: i64, key: i64) -> bool {
        let last = query.saturating_add(self.offset);
        !self.enabled || key <= last && (self.window <= 0 || key > last - self.window)
    }
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (call, sizes) = (args.call, args.sizes);
    let size = |name: &str| sizes.get(name);
    let group = (size("heads") / size("kv_heads").max(1)).max(1);
    let (keys, width) = (size("keys"), size("value_size"));
    let int = |name: &str| call.int(name);
    let causal =
        CausalMask { enabled: int("causal") != 0, offset: int("offset"), window: int("window") };
    let fully_masked = if int("fully_masked") == NAN && keys > 0 { f64::NAN } else { 0.0 };
    for [b, h, i] in indices(["batch", "heads", "queries"].map(size)) {
        let kv_head = h / group;
        let mut scores = Vec::new();
        for j in 0..keys {
            args.step((size("size") + width) as u64 + 1)?;
            let score = score(args, [b, h, i, j], kv_head)?;
            scores.push(if causal.sees(i, j) { score } else { f64::NEG_INFINITY });
        }
        let largest = scores.iter().fold(f64::NEG_INFINITY, |a, &x| a.max(x));
        let shift = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        let weights: Vec<f64> = scores.iter().map(|x| (x - shift).exp()).collect();
        let total: f64 = weights.iter().sum();
        let nan_is_masked = int("fully_masked") == ZEROS_FOR_NAN && total.is_nan();
        for p in 0..width {
            let mut sum = 0.0;
            for (j, &weight) in (0..).zip(&weights) {
                if causal.sees(i, j) {
                    let at = [("batch", b), ("kv_heads", kv_head), ("keys", j), ("value_size", p)];
                    sum += weight * args.get("v", &at)?;
                }
            }
            let result = if total == 0.0 || nan_is_masked { fully_masked } else { sum / total };
            let at = [("batch", b), ("heads", h), ("queries", i), ("value_size", p)];
            args.set("out", &at, result)?;
        }
    }
    Ok(())
}

/// Returns the attention score of query `i` and key `j` for head `h` of batch entry `b`: the scaled dot product with soft cap, bias
/// and mask, but without the causal mask. `kv_head` is the head of the key.
fn score(args: &Args<'_>, [b, h, i, j]: [i64; 4], kv_head: i64) -> Result<f64> {
    let mut score = 0.0;
    for p in 0..args.sizes.get("size") {
        let q = [("batch", b), ("heads", h), ("queries", i), ("size", p)];
        let k = [("batch", b), ("kv_heads", kv_head), ("keys", j), ("size", p)];
        score += args.get("q", &q)? * args.get("k", &k)?;
    }
    score *= args.call.float("scale");
    let cap = args.call.float("softcap");
    if cap != 0.0 {
        score = cap * (score / cap).tanh();
    }
    let at = [("batch", b), ("heads", h), ("queries", i), ("keys", j)];
    let hidden = args.has("mask") && args.read("mask", &at)?.int()? == 0;
    let bias = if args.has("bias") { args.get("bias", &at)? } else { 0.0 };
    let masked = args.call.float("masked_score");
    Ok(match (hidden, args.call.int("mask_before_bias") != 0) {
        (false, _) => score + bias,
        (true, true) => masked + bias,
        (true, false) => masked,
    })
}
