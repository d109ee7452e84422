//! Random attributes, mostly of the type that their name suggests.

use pliant::onnx::proto::AttributeProto;
use pliant::onnx::proto::attribute_proto::AttributeType;

use super::builders::{attribute, code, tensor};
use super::choices::Choices;

/// Values of string attributes.
const TEXTS: &[&str] = &[
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "NOTSET",
    "constant",
    "reflect",
    "edge",
    "wrap",
    "linear",
    "nearest",
    "cubic",
    "bilinear",
    "bicubic",
    "zeros",
    "border",
    "reflection",
    "add",
    "mul",
    "max",
    "min",
    "none",
    "mean",
    "sum",
    "forward",
    "reverse",
    "bidirectional",
    "DCR",
    "CRD",
    "tanh",
    "Relu",
    "Tanh",
    "Sigmoid",
    "Clip",
    "LEFT",
    "RIGHT",
    "TF",
    "IDF",
    "TFIDF",
    "half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "pytorch_half_pixel",
    "round_prefer_floor",
    "floor",
    "ceil",
    "stretch",
    "not_larger",
    "not_smaller",
    "avg",
    "ij,jk->ik",
    "ii->i",
    "...ij->...ji",
    "i,i",
    "->",
    "standard",
    "nesterov",
    "circular",
    "delta",
    "gated",
];

/// A random attribute with this name.
pub fn random(source: &mut Choices<'_>, name: &str) -> AttributeProto {
    let mut made = AttributeProto { name: Some(name.into()), ..AttributeProto::default() };
    let kind = if source.chance(90) { usual_kind(name) } else { source.below(7) };
    let ty = match kind {
        0 => {
            made.i = Some(source.number());
            AttributeType::Int
        }
        1 => {
            made.ints = (0..source.below(6)).map(|_| source.number()).collect();
            AttributeType::Ints
        }
        2 => {
            made.f = Some(source.float() as f32);
            AttributeType::Float
        }
        3 => {
            made.floats = (0..source.below(4)).map(|_| source.float() as f32).collect();
            AttributeType::Floats
        }
        4 => return attribute(name, &format!("'{}'", source.one(TEXTS).unwrap_or_default())),
        5 => {
            let mut word = || source.one(TEXTS).unwrap_or_default().as_bytes().to_vec().into();
            made.strings = vec![word(), word()];
            AttributeType::Strings
        }
        _ => {
            let letter = source.one(b"agkfbijcpvx").unwrap_or(b'a');
            let elems: Vec<f64> = (0..source.below(4)).map(|_| source.float()).collect();
            made.t = Some(tensor("", letter, &[elems.len() as i64], &elems));
            AttributeType::Tensor
        }
    };
    made.r#type = Some(ty as i32);
    if matches!(name, "to" | "dtype" | "output_dtype" | "output_datatype" | "stash_type") {
        made.i = source.one(b"agkfbijcdelmpquvwxyzh").map(|letter| i64::from(code(letter)));
    }
    made
}

/// The usual type of an attribute with this name, as a case of [`random`].
fn usual_kind(name: &str) -> usize {
    match name {
        "axes"
        | "perm"
        | "pads"
        | "strides"
        | "dilations"
        | "kernel_shape"
        | "output_shape"
        | "output_padding"
        | "shape"
        | "split"
        | "starts"
        | "ends"
        | "sizes"
        | "repeats"
        | "scan_input_axes"
        | "scan_output_axes"
        | "scan_input_directions"
        | "scan_output_directions"
        | "directions"
        | "pooled_shape"
        | "value_ints"
        | "qkv_hidden_sizes"
        | "ngram_counts"
        | "ngram_indexes"
        | "pool_int64s"
        | "consumed_inputs"
        | "tree_roots" => 1,
        _ if name.starts_with("nodes_") || name.starts_with("leaf_") => 1,
        "activation_alpha" | "activation_beta" | "activation_params" | "scales"
        | "value_floats" | "weights" => 3,
        "mode"
        | "auto_pad"
        | "direction"
        | "equation"
        | "reduction"
        | "padding_mode"
        | "activation"
        | "approximate"
        | "coordinate_transformation_mode"
        | "nearest_mode"
        | "keep_aspect_ratio_policy"
        | "update_rule"
        | "value_string"
        | "round_mode" => 4,
        "activations" | "value_strings" => 5,
        "value" | "nodes_splits" | "leaf_weights" => 6,
        "alpha"
        | "beta"
        | "epsilon"
        | "scale"
        | "momentum"
        | "gamma"
        | "clip"
        | "min"
        | "max"
        | "bias"
        | "lambd"
        | "ratio"
        | "spatial_scale"
        | "softcap"
        | "low"
        | "high"
        | "threshold"
        | "value_float"
        | "cubic_coeff_a"
        | "extrapolation_value"
        | "mask_filter_value"
        | "norm_coefficient"
        | "decay_factor" => 2,
        _ => 0,
    }
}
