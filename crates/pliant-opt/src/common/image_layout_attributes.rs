//! Names of image layouts in operator attributes, such as `NCHW`. In all functions, `dims` is the number of spatial dims, 1 to 3.

use pliant_ir::relax::kernel_call::NEW_AXIS;
use pliant_ir::{AttrValue, Attrs};

/// The name of the channels-first layout: `NCHW` for two spatial dims.
pub(crate) fn channels_first(dims: usize) -> String {
    format!("NC{}", &"DHW"[3 - dims..])
}

/// The name of the channels-last layout: `NHWC` for two spatial dims.
pub(crate) fn channels_last(dims: usize) -> String {
    format!("N{}C", &"DHW"[3 - dims..])
}

/// Returns the axes of an image tensor in the order in which kernels expect them: batch, channels, depth, height, width. For a
/// spatial dim that the image lacks, the entry is -1, which stands for a new dim of size 1.
pub(crate) fn kernel_image_axes(dims: usize, channels_last: bool) -> Vec<i64> {
    let (channels, first) = if channels_last { (1 + dims, 1) } else { (1, 2) };
    let missing = std::iter::repeat_n(NEW_AXIS, 3 - dims);
    let spatial = (first..first + dims).map(|axis| axis as i64);
    [0, channels as i64].into_iter().chain(missing).chain(spatial).collect()
}

/// Whether both the operand and the result of a call have the layout `layout`. `name` is the name of the attribute for the layout
/// of the operand.
pub(crate) fn has_layout(attrs: &Attrs, name: &str, layout: &str) -> bool {
    let text = |name: &str| attrs.get(name).and_then(AttrValue::as_str);
    let out = text("out_layout");
    text(name) == Some(layout) && out.is_none_or(|out| out == layout || out.is_empty())
}

/// Returns the attributes with the layouts of the operand and the result set to channels last. `name` is the name of the
/// attribute for the layout of the operand.
pub(crate) fn with_channels_last(mut attrs: Attrs, name: &str, dims: usize) -> Attrs {
    let last = AttrValue::str(&channels_last(dims));
    if attrs.get("out_layout").is_some() {
        attrs.set("out_layout", last.clone());
    }
    attrs.set(name, last);
    attrs
}
