//! The declaration of the kernel `conv`: convolution of float32.

use pliant_tensor::DType::Float32;
use pliant_tensor::{Winograd, is_panel_width, may_share_panels, shared_panel_offset};

use super::activation;
use crate::reference::{Args, Result, Windows, indices};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// The maximum value of each number in the attributes of convolutions and pooling.
pub const MAX_ATTR_VALUE: i64 = 1 << 28;

const RESULTS: Dims = Dims::Fixed(&["batch", "filters", "out_depth", "out_height", "out_width"]);

/// The declaration of the kernel `conv`: float32 convolution.
pub static KERNEL: Kernel = Kernel {
    name: "conv",
    doc: "Convolution (cross-correlation, ONNX `Conv`) in up to 3 dims, then `activation(conv + bias + residual)`. Images of \
          fewer dims have leading dims of size 1. The padding after the input follows from the sizes. Weights are packed: \
          each group has panels of `panel_width` filters, whose rows are taps, then channels (`pliant_tensor::pack_panels`).",
    operands: &[
        Operand::input(
            "x",
            Float32,
            Dims::Fixed(&["batch", "channels", "in_depth", "in_height", "in_width"]),
            "images",
        )
        .strided(),
        Operand::input("weight", Float32, Dims::Fixed(&["*weights"]), "packed weights"),
        Operand::input("bias", Float32, Dims::Fixed(&["*filters"]), "added to each channel")
            .optional(),
        Operand::input(
            "residual",
            Float32,
            RESULTS,
            "added to the results; channels last without gaps",
        )
        .strided()
        .optional(),
        Operand::output("out", Float32, RESULTS, "results").strided(),
    ],
    attrs: &[
        KERNEL_SHAPE,
        STRIDES,
        DILATIONS,
        PADDING,
        GROUPS,
        Attr::new(
            "panel_width",
            AttrType::Int(1, MAX_ATTR_VALUE),
            AttrDefault::Required,
            "the number of filters of a panel of weights: a multiple of 16; 1 in a depthwise convolution; the number of \
                  filters of a group if groups share panels",
        ),
        activation::KIND,
        activation::LOW,
        activation::HIGH,
        activation::SLOPE,
        activation::OFFSET,
        Attr::new(
            "winograd",
            AttrType::Choice(&["none", "2x2", "4x4"]),
            AttrDefault::Number(0),
            "the output tile of the Winograd algorithm for which 3 x 3 filters are transformed (Lavin and Gray, 2016)",
        ),
    ],
    derived: &[("weights", packed_len)],
    relations,
    flops,
    reference,
};

/// The attribute `kernel_shape` of convolutions and pooling: the size of the filter or window in depth, height and
/// width.
pub(super) const KERNEL_SHAPE: Attr = Attr {
    default: AttrDefault::Required,
    ..three_ints("kernel_shape", 1, "the sizes of the filters")
};
/// The attribute `strides` of convolutions and pooling: the distance between adjacent windows in depth, height and
/// width.
pub(super) const STRIDES: Attr =
    three_ints("strides", 1, "the distances between windows, in elements of the input");
/// The attribute `dilations` of convolutions and pooling: the distance between adjacent window elements in depth,
/// height and width.
pub(super) const DILATIONS: Attr =
    three_ints("dilations", 1, "the distances between taps, in elements of the input");
/// The attribute `padding` of convolutions and pooling: the number of padding elements before the input in depth,
/// height and width.
pub(super) const PADDING: Attr = three_ints("padding", 0, "the number of zeros before the input");
/// The attribute `groups` of convolutions: the number of groups of channels and filters.
pub(super) const GROUPS: Attr = Attr::new(
    "groups",
    AttrType::Int(1, MAX_ATTR_VALUE),
    AttrDefault::Number(1),
    "the number of groups of channels and filters",
);

/// Declares an attribute of three integers, one for each dim of an image, with the minimum and default `min`.
const fn three_ints(name: &'static str, min: i64, doc: &'static str) -> Attr {
    let ty = AttrType::Ints { len: 3, range: (min, MAX_ATTR_VALUE) };
    Attr::new(name, ty, AttrDefault::Number(min), doc)
}

/// Checks that the number of channels and the number of filters are multiples of the number of groups.
pub(super) fn check_groups(call: &Call, sizes: &Sizes) -> Result<(), String> {
    let groups = call.int("groups");
    for (operand, dim) in [("x", "channels"), ("out", "filters")] {
        let size = sizes.get(dim);
        if size % groups != 0 {
            return Err(format!(
                "dim {dim} of operand '{operand}' has size {size}, expected a multiple of {groups}, the value of attribute 'groups'"
            ));
        }
    }
    Ok(())
}

/// Returns the number of arithmetic operations of a convolution.
pub(super) fn flops(call: &Call, sizes: &Sizes) -> f64 {
    let size = |name: &str| sizes.get(name) as f64;
    let taps: f64 = call.ints("kernel_shape").iter().map(|&n| n as f64).product();
    let results = ["batch", "filters", "out_depth", "out_height", "out_width"].map(size);
    2.0 * results.iter().product::<f64>() * taps * size("channels") / call.int("groups") as f64
}

/// Returns the Winograd variant of a call as the implementation expects it: the side length of the input tile minus 3
/// (the side length of the filter). Returns 0 for a convolution whose filters are not transformed.
pub fn winograd_tile_minus_3(call: &Call) -> i64 {
    match call.int("winograd") {
        0 => 0,
        1 => 1,
        _ => 3,
    }
}

/// Returns the number of elements of the packed weights, including padding; `None` on overflow, or if an attribute is
/// out of range.
fn packed_len(call: &Call, sizes: &Sizes) -> Option<i64> {
    let (groups, width, growth) =
        (call.int("groups"), call.int("panel_width"), winograd_tile_minus_3(call));
    if groups < 1 || width < 1 {
        return None;
    }
    let &[depth, height, columns] = call.ints("kernel_shape") else { return None };
    let panels = (sizes.get("filters") / groups).checked_add(width - 1)? / width;
    let channels = sizes.get("channels") / groups;
    let factors =
        [panels, depth, height.checked_add(growth)?, columns.checked_add(growth)?, channels, width];
    factors.into_iter().try_fold(groups, i64::checked_mul)
}

/// Returns the distance in elements between adjacent pixels of the operand `residual`, which is added to the result. Returns `None`
/// if the call omits the operand, if its channels are not contiguous, or if its pixels have no uniform stride.
pub fn residual_row(call: &Call, sizes: &Sizes) -> Option<i64> {
    let view = call.operand("residual")?;
    let (shape, strides) = (view.shape(), view.strides());
    let filters = sizes.get("filters");
    let (mut row, mut expected) = (filters, None);
    for (&dim, &stride) in shape[2..].iter().zip(&strides[2..]).rev() {
        if dim == 1 {
            continue;
        }
        match expected {
            None => row = stride,
            Some(expected) if expected != stride => return None,
            Some(_) => {}
        }
        expected = Some(stride.checked_mul(dim)?);
    }
    (filters <= 1 || strides[1] == 1).then_some(row)
}

/// Whether this is a depthwise convolution: each channel is a group with one filter.
pub fn is_depthwise(call: &Call, sizes: &Sizes) -> bool {
    let groups = call.int("groups");
    groups > 1 && groups == sizes.get("channels") && groups == sizes.get("filters")
}

/// Whether several groups with few filters share a panel of packed weights
/// (`pliant_tensor::may_share_panels`).
pub fn shares_panels(call: &Call, sizes: &Sizes) -> bool {
    let groups = call.int("groups");
    let (channels, filters) = (sizes.get("channels") / groups, sizes.get("filters") / groups);
    call.int("panel_width") == filters
        && may_share_panels(groups as usize, channels as usize, filters as usize)
}

/// Checks the attributes and sizes of a call against each other: groups, weight panels, the
/// residual, the Winograd algorithm, and the layout of depthwise convolutions.
fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    check_groups(call, sizes)?;
    let strides = |name: &str| call.operand(name).map_or(&[][..], |view| view.strides());
    if call.operand("residual").is_some() && residual_row(call, sizes).is_none() {
        let strides = strides("residual");
        return Err(format!(
            "operand 'residual' has strides {strides:?}, expected the strides of a channels-last layout"
        ));
    }
    let groups = call.int("groups");
    let depthwise = is_depthwise(call, sizes);
    let width = call.int("panel_width");
    let has_panels = is_panel_width(width as usize, Float32) || shares_panels(call, sizes);
    if !(has_panels || depthwise && width == 1) {
        return Err(format!(
            "attribute 'panel_width' is {width}, but must be the number of filters that the weight packs together: 16, 32, 48 or \
             64; 1 in a depthwise convolution; the number of filters of a group if groups are packed together"
        ));
    }
    let all_ones = |name: &str| call.ints(name).iter().all(|&n| n == 1);
    let supports_winograd = all_ones("strides")
        && all_ones("dilations")
        && call.ints("kernel_shape") == [1, 3, 3]
        && (groups, sizes.get("in_depth")) == (1, 1);
    if call.int("winograd") != 0 && !supports_winograd {
        return Err(
            "attribute 'winograd' must be none for this convolution, because the Winograd algorithm requires two-dimensional \
             3 x 3 filters with one group, stride 1 and dilation 1"
                .to_string(),
        );
    }
    for name in ["x", "out"] {
        if depthwise && strides(name)[1] != 1 {
            let strides = strides(name);
            return Err(format!(
                "operand '{name}' has strides {strides:?}, expected the strides of a channels-last layout"
            ));
        }
    }
    Ok(())
}

fn reference(args: &mut Args<'_>) -> Result<()> {
    let (call, w) = (args.call, Windows::of_conv(args));
    let channels = w.group.0;
    let [depth, height, width] = w.output;
    for [b, filter, z, y, x] in indices([w.batch, w.filters, depth, height, width]) {
        let first = w.first_channel(filter);
        let mut sum = 0.0;
        for (number, tap) in (0..).zip(indices(w.kernel)) {
            args.step(channels as u64 + 1)?;
            let Some([i, j, k]) = w.position([z, y, x], tap) else { continue };
            let rows = weight_rows(call, number);
            for c in 0..channels {
                let mut factor = 0.0;
                for &(row, sign) in &rows {
                    let at = weight_index(args, &w, (row, c, filter));
                    factor += sign * args.get_at("weight", &[at])?;
                }
                sum += args.get_at("x", &[b, first + c, i, j, k])? * factor;
            }
        }
        if args.has("bias") {
            sum += args.get_at("bias", &[filter])?;
        }
        if args.has("residual") {
            sum += args.get_at("residual", &[b, filter, z, y, x])?;
        }
        args.set_at("out", &[b, filter, z, y, x], activation::apply(call, sum))?;
    }
    Ok(())
}

/// Returns the Winograd variant for which the weights were transformed; `None` if they are not transformed.
fn winograd(call: &Call) -> Option<Winograd> {
    [None, Some(Winograd::Two), Some(Winograd::Four)][call.int("winograd") as usize]
}

/// Returns the rows of the packed weights whose weighted sum is the row of weights at filter position `tap`, as pairs of
/// row index and factor. Without Winograd's algorithm, this is the row `tap` with the factor 1.
///
/// The Winograd transform of a filter line (a, b, c) contains multiples of a and c as its first and last elements. The
/// difference of its second and third elements is a multiple of b.
fn weight_rows(call: &Call, tap: i64) -> Vec<(i64, f64)> {
    let Some(form) = winograd(call) else { return vec![(tap, 1.0)] };
    let side = form.input_tile() as i64;
    let (first, between) = match form {
        Winograd::Two => (1.0, 1.0),
        Winograd::Four => (4.0, -3.0),
    };
    let line = |at: i64| match at {
        0 => vec![(0, first)],
        1 => vec![(1, between), (2, -between)],
        _ => vec![(side - 1, 1.0)],
    };
    let columns = line(tap % 3);
    let pairs = line(tap / 3).into_iter().flat_map(|(y, a)| {
        columns.iter().map(move |&(x, b)| (side * y + x, a * b)).collect::<Vec<_>>()
    });
    pairs.collect()
}

/// Returns the index of a weight in the packed weights, for a row (a filter position, or an element of a
/// Winograd-transformed filter), a channel within the group, and a filter.
fn weight_index(args: &Args<'_>, w: &Windows, (row, channel, filter): (i64, i64, i64)) -> i64 {
    let (call, (channels, filters)) = (args.call, w.group);
    if is_depthwise(call, args.sizes) {
        return row * w.filters + filter;
    }
    let taps: i64 = w.kernel.iter().product();
    if shares_panels(call, args.sizes) {
        let (rows, row) = (taps * channels, row * channels + channel);
        let size = (rows as usize, w.filters as usize);
        return shared_panel_offset(size, row as usize, filter as usize) as i64;
    }
    let width = call.int("panel_width");
    let rows = winograd(call).map_or(taps, |form| form.filter_elements() as i64) * channels;
    let (group, column) = (filter / filters, filter % filters);
    let panel = group * ((filters + width - 1) / width) + column / width;
    (panel * rows + row * channels + channel) * width + column % width
}
