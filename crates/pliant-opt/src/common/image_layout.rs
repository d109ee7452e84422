//! The layouts of images in the attributes of operators.

use pliant_ir::{AttrValue, Attrs};

/// The layout with channels first: `NCHW` for two spatial dims.
pub(crate) fn first(dims: usize) -> String {
    format!("NC{}", &"DHW"[3 - dims..])
}

/// The layout with channels last: `NHWC` for two spatial dims.
pub(crate) fn last(dims: usize) -> String {
    format!("N{}C", &"DHW"[3 - dims..])
}

/// Whether operand and result have this layout. `name` is the attribute of the operand's layout.
pub(crate) fn has_layout(attrs: &Attrs, name: &str, layout: &str) -> bool {
    let text = |name: &str| attrs.get(name).and_then(AttrValue::as_str);
    let out = text("out_layout");
    text(name) == Some(layout) && out.is_none_or(|out| out == layout || out.is_empty())
}

/// The attributes with layouts whose channels come last.
pub(crate) fn with_channels_last(mut attrs: Attrs, name: &str, dims: usize) -> Attrs {
    let last = AttrValue::str(&last(dims));
    if attrs.get("out_layout").is_some() {
        attrs.set("out_layout", last.clone());
    }
    attrs.set(name, last);
    attrs
}
