//! Generates random attributes of ONNX nodes, mostly of the usual type for their name.

use pliant::onnx::proto::AttributeProto;
use pliant::onnx::proto::attribute_proto::AttributeType;

use super::model_builders::{attribute, elem_type_code, tensor};
use super::random_choices::Choices;

/// Values from which string attributes are chosen.
const STRING_VALUES: &[&str] = &[
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

/// Generates an attribute with this name.
pub fn random_attribute(source: &mut Choices<'_>, name: &str) -> AttributeProto {
    let mut attr = AttributeProto { name: Some(name.into()), ..AttributeProto::default() };
    let kind = if source.chance(90) { usual_attribute_kind(name) } else { source.below(7) };
    let ty = match kind {
        0 => {
            attr.i = Some(source.integer());
            AttributeType::Int
        }
        1 => {
            attr.ints = (0..source.below(6)).map(|_| source.integer()).collect();
            AttributeType::Ints
        }
        2 => {
            attr.f = Some(source.float() as f32);
            AttributeType::Float
        }
        3 => {
            attr.floats = (0..source.below(4)).map(|_| source.float() as f32).collect();
            AttributeType::Floats
        }
        4 => {
            return attribute(
                name,
                &format!("'{}'", source.pick(STRING_VALUES).unwrap_or_default()),
            );
        }
        5 => {
            let mut word =
                || source.pick(STRING_VALUES).unwrap_or_default().as_bytes().to_vec().into();
            attr.strings = vec![word(), word()];
            AttributeType::Strings
        }
        _ => {
            let letter = source.pick(b"agkfbijcpvx").unwrap_or(b'a');
            let elems: Vec<f64> = (0..source.below(4)).map(|_| source.float()).collect();
            attr.t = Some(tensor("", letter, &[elems.len() as i64], &elems));
            AttributeType::Tensor
        }
    };
    attr.r#type = Some(ty as i32);
    if matches!(name, "to" | "dtype" | "output_dtype" | "output_datatype" | "stash_type") {
        attr.i =
            source.pick(b"agkfbijcdelmpquvwxyzh").map(|letter| i64::from(elem_type_code(letter)));
    }
    attr
}

/// The usual type of an attribute with this name, as the number of a case in [`random_attribute`].
fn usual_attribute_kind(name: &str) -> usize {
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
