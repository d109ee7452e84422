//! The table of all supported ONNX operators, with one file per group. To add an operator, write its converter in the file of its
//! group and add an entry to that file's `OPS`.

mod ai_onnx_ml;
mod bitcast;
mod clip;
mod concat_split;
mod determinant;
mod elementwise;
mod gather_scatter;
mod if_node;
mod loops;
mod matmul;
mod microsoft;
mod nn;
mod optimizer_steps;
mod quantization;
mod random_numbers;
mod reductions;
mod reshape_transpose;
mod search_sort;
mod sequence_optional;
mod shape_and_constants;
mod signal_processing;
mod slice;
mod tf_idf;
mod tree_ensemble;
pub(crate) mod user_registered_ops;

use pliant_diag::spelling_suggestions::closest as closest_name;

use crate::node::{ConvertResult, Node};

/// An operator that the importer supports.
#[derive(Clone, Copy)]
pub struct OnnxOp {
    /// The domain of the operator; empty for ONNX's own domain.
    pub domain: &'static str,
    /// The name of the operator in ONNX.
    pub name: &'static str,
    /// Converts a node: emits its computation and returns its outputs.
    pub convert: fn(&mut Node<'_, '_>) -> ConvertResult,
}

/// Creates the table entry for an operator of ONNX's own domain.
const fn op(name: &'static str, convert: fn(&mut Node<'_, '_>) -> ConvertResult) -> OnnxOp {
    OnnxOp { domain: "", name, convert }
}

/// The tables of operators, one for each group.
const GROUPS: &[&[OnnxOp]] = &[
    bitcast::OPS,
    determinant::OPS,
    clip::OPS,
    if_node::OPS,
    elementwise::OPS,
    gather_scatter::OPS,
    concat_split::OPS,
    matmul::OPS,
    loops::OPS,
    ai_onnx_ml::OPS,
    tf_idf::OPS,
    quantization::OPS,
    random_numbers::OPS,
    reductions::OPS,
    reshape_transpose::OPS,
    search_sort::OPS,
    sequence_optional::OPS,
    shape_and_constants::OPS,
    signal_processing::OPS,
    slice::OPS,
    optimizer_steps::OPS,
    tree_ensemble::OPS,
];

/// The table entries of all supported operators.
pub fn all() -> impl Iterator<Item = &'static OnnxOp> {
    GROUPS.iter().chain(nn::GROUPS).chain(microsoft::GROUPS).flat_map(|group| group.iter())
}

/// The table entry for an operator; `None` if it is not supported.
pub fn find(domain: &str, name: &str) -> Option<&'static OnnxOp> {
    all().find(|o| o.domain == domain && o.name == name)
}

/// A help text that suggests the supported operator with the most similar name; `None` if no name is similar.
pub(crate) fn closest_operator_help(domain: &str, name: &str) -> Option<String> {
    let names = all().filter(|o| o.domain == domain).map(|o| o.name);
    closest_name(name, names).map(|c| format!("the similar operator {c} is supported"))
}
