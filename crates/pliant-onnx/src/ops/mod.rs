//! The table of all ONNX operators, one file per group. To add one, write its converter in the file of its group and
//! give it a row in that file's `OPS`.

mod bits;
mod clip;
mod control;
mod elementwise;
mod gather;
mod join;
mod linear;
mod loops;
mod microsoft;
mod ml;
mod ngrams;
mod nn;
mod quant;
mod random;
mod reduce;
mod reshape;
mod search;
mod sequence;
mod shape;
mod signal;
mod slice;
mod training;
mod trees;
pub(crate) mod user;

use pliant_diag::suggest::closest as closest_name;

use crate::node::{Converted, Node};

/// An operator that can be imported.
#[derive(Clone, Copy)]
pub struct OnnxOp {
    /// Its domain; empty for ONNX's own.
    pub domain: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Makes its outputs.
    pub convert: fn(&mut Node<'_, '_>) -> Converted,
}

/// An operator of ONNX's own domain.
const fn op(name: &'static str, convert: fn(&mut Node<'_, '_>) -> Converted) -> OnnxOp {
    OnnxOp { domain: "", name, convert }
}

/// All operators, group by group.
const GROUPS: &[&[OnnxOp]] = &[
    bits::OPS,
    clip::OPS,
    control::OPS,
    elementwise::OPS,
    gather::OPS,
    join::OPS,
    linear::OPS,
    loops::OPS,
    ml::OPS,
    ngrams::OPS,
    quant::OPS,
    random::OPS,
    reduce::OPS,
    reshape::OPS,
    search::OPS,
    sequence::OPS,
    shape::OPS,
    signal::OPS,
    slice::OPS,
    training::OPS,
    trees::OPS,
];

/// All operators.
pub fn all() -> impl Iterator<Item = &'static OnnxOp> {
    GROUPS.iter().chain(nn::GROUPS).chain(microsoft::GROUPS).flat_map(|group| group.iter())
}

/// The row of an operator.
pub fn find(domain: &str, name: &str) -> Option<&'static OnnxOp> {
    all().find(|o| o.domain == domain && o.name == name)
}

/// The operator that an unknown name was perhaps meant to be.
pub(crate) fn closest(domain: &str, name: &str) -> Option<String> {
    let names = all().filter(|o| o.domain == domain).map(|o| o.name);
    closest_name(name, names).map(|c| format!("{c} is"))
}
