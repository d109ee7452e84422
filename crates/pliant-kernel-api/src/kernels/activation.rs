//! The attributes of kernels that apply an activation to their results.

use crate::{Attr, AttrDefault, AttrType};

/// The activation.
pub(super) const KIND: Attr = Attr {
    name: "activation",
    ty: AttrType::Choice(&["none", "relu", "clip"]),
    default: AttrDefault::Number(0),
    doc: "the function applied to the results; `clip` limits them to `low` and `high`",
};
/// The lower limit.
pub(super) const LOW: Attr = limit("low", "the lower limit of `clip`");
/// The upper limit.
pub(super) const HIGH: Attr = limit("high", "the upper limit of `clip`");

const fn limit(name: &'static str, doc: &'static str) -> Attr {
    Attr { name, ty: AttrType::Float, default: AttrDefault::Float(0.0), doc }
}
