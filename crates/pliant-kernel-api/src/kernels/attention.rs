//! Scaled dot-product attention.

use pliant_tensor::DType::{Bool, Float32};

use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// A query that sees no key gets zeros; see [`KERNEL`].
pub const ZEROS: i64 = 0;
/// See [`KERNEL`].
pub const NAN: i64 = 1;
/// See [`KERNEL`].
pub const ZEROS_FOR_NAN: i64 = 2;

const SCORES: Dims = Dims::Fixed(&["batch", "heads", "queries", "keys"]);

/// The declaration.
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
        Operand::input("bias", Float32, SCORES, "is added to the scores").strided().optional(),
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
        Attr {
            name: "scale",
            ty: AttrType::Float,
            default: AttrDefault::Required,
            doc: "factor of the products of queries and keys",
        },
        Attr {
            name: "softcap",
            ty: AttrType::Float,
            default: AttrDefault::Float(0.0),
            doc: "limit of the scores; 0 for none",
        },
        Attr {
            name: "causal",
            ty: AttrType::Bool,
            default: AttrDefault::Number(0),
            doc: "whether query `i` sees only the keys up to key `i + offset`",
        },
        Attr {
            name: "offset",
            ty: AttrType::Int(i64::MIN, i64::MAX),
            default: AttrDefault::Number(0),
            doc: "the last key that query 0 sees, with `causal`",
        },
        Attr {
            name: "window",
            ty: AttrType::Int(0, 1 << 30),
            default: AttrDefault::Number(0),
            doc: "how many keys a query sees up to its last one, with `causal`; 0 for all",
        },
        Attr {
            name: "masked_score",
            ty: AttrType::Float,
            default: AttrDefault::Float(f64::NEG_INFINITY),
            doc: "the score of a key that `mask` hides",
        },
        Attr {
            name: "mask_before_bias",
            ty: AttrType::Bool,
            default: AttrDefault::Number(0),
            doc: "whether `bias` is added to masked scores too",
        },
        Attr {
            name: "fully_masked",
            ty: AttrType::Choice(&["zeros", "nan", "zeros_for_nan"]),
            default: AttrDefault::Number(ZEROS),
            doc: "the result of a query all of whose scores are minus infinity; `zeros_for_nan` also gives zeros to a query \
                  whose weights are NaN",
        },
    ],
    derived: &[],
    relations,
    flops,
};

fn relations(_: &Call, sizes: &Sizes) -> Result<(), String> {
    let (heads, shared) = (sizes.get("heads"), sizes.get("kv_heads"));
    if heads != 0 && (shared == 0 || heads % shared != 0) {
        return Err(format!(
            "operand q has {heads} heads, expected a multiple of the {shared} of k"
        ));
    }
    Ok(())
}

fn flops(_: &Call, sizes: &Sizes) -> f64 {
    let size = |name: &str| sizes.get(name) as f64;
    let scores = size("batch") * size("heads") * size("queries") * size("keys");
    2.0 * scores * (size("size") + size("value_size"))
}
