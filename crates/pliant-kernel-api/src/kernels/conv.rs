//! Convolution.

use pliant_tensor::DType::Float32;
use pliant_tensor::{Winograd, is_panel_width, may_share_panels, shared_panel_offset};

use super::activation;
use crate::reference::{Args, Result, Windows, indices};
use crate::{Attr, AttrDefault, AttrType, Call, Dims, Kernel, Operand, Sizes};

/// Maximum of the numbers of each dim in the attributes of convolutions and pooling.
pub const MOST: i64 = 1 << 28;

const IMAGES: Dims = Dims::Fixed(&["batch", "filters", "out_depth", "out_height", "out_width"]);

/// The declaration.
pub static KERNEL: Kernel = Kernel {
    name: "conv",
    doc: "Convolution (cross-correlation, ONNX `Conv`) in up to 3 dims, then `activation(conv + bias + residual)`. Images of \
          fewer dims have leading dims of size 1. The zeros behind the input follow from the sizes. Weights are packed: for each \
          group panels of `panel_width` filters, of which each holds rows of taps, then channels (`pliant_tensor::pack_panels`).",
    operands: &[
        Operand::input(
            "x",
            Float32,
            Dims::Fixed(&["batch", "channels", "in_depth", "in_height", "in_width"]),
            "images",
        )
        .strided(),
        Operand::input("weight", Float32, Dims::Fixed(&["*weights"]), "packed weights"),
        Operand::input("bias", Float32, Dims::Fixed(&["*filters"]), "is added to each channel")
            .optional(),
        Operand::input(
            "residual",
            Float32,
            IMAGES,
            "is added to the results; channels last without gaps",
        )
        .strided()
        .optional(),
        Operand::output("out", Float32, IMAGES, "results").strided(),
    ],
    attrs: &[
        KERNEL_SHAPE,
        STRIDES,
        DILATIONS,
        PADDING,
        GROUPS,
        Attr {
            name: "panel_width",
            ty: AttrType::Int(1, MOST),
            default: AttrDefault::Required,
            doc: "filters of a panel of weights: a multiple of 16; 1 if each channel has one filter of its own; the filters \
                  of a group if groups share panels",
        },
        activation::KIND,
        activation::LOW,
        activation::HIGH,
        activation::SLOPE,
        activation::OFFSET,
        Attr {
            name: "winograd",
            ty: AttrType::Choice(&["none", "2x2", "4x4"]),
            default: AttrDefault::Number(0),
            doc: "the tile of Winograd's algorithm for which 3 x 3 filters were transformed (Lavin and Gray, 2016)",
        },
    ],
    derived: &[("weights", weights)],
    relations,
    flops,
    reference,
};

/// The attributes that all convolutions have.
pub(super) const KERNEL_SHAPE: Attr = Attr {
    default: AttrDefault::Required,
    ..triple("kernel_shape", 1, "the sizes of the filters")
};
pub(super) const STRIDES: Attr = triple("strides", 1, "the distances between windows");
pub(super) const DILATIONS: Attr = triple("dilations", 1, "the distances between taps");
pub(super) const PADDING: Attr = triple("padding", 0, "zeros before the input");
pub(super) const GROUPS: Attr = Attr {
    name: "groups",
    ty: AttrType::Int(1, MOST),
    default: AttrDefault::Number(1),
    doc: "groups of channels and filters",
};

/// Three numbers of at least `least`, which is also their default.
const fn triple(name: &'static str, least: i64, doc: &'static str) -> Attr {
    let ty = AttrType::Ints { len: 3, range: (least, MOST) };
    Attr { name, ty, default: AttrDefault::Number(least), doc }
}

/// Checks that the number of groups divides the channels and the filters.
pub(super) fn check_groups(call: &Call, sizes: &Sizes) -> Result<(), String> {
    let groups = call.int("groups");
    for (operand, dim) in [("x", "channels"), ("out", "filters")] {
        let size = sizes.get(dim);
        if size % groups != 0 {
            return Err(format!(
                "operand {operand} has {size} {dim}, expected a multiple of {groups}"
            ));
        }
    }
    Ok(())
}

/// Floating-point or integer operations of a convolution.
pub(super) fn flops(call: &Call, sizes: &Sizes) -> f64 {
    let size = |name: &str| sizes.get(name) as f64;
    let taps: f64 = call.ints("kernel_shape").iter().map(|&n| n as f64).product();
    let results = ["batch", "filters", "out_depth", "out_height", "out_width"].map(size);
    2.0 * results.iter().product::<f64>() * taps * size("channels") / call.int("groups") as f64
}

/// By how much Winograd's algorithm enlarges each dim of a 3 x 3 filter.
pub fn winograd_growth(call: &Call) -> i64 {
    match call.int("winograd") {
        0 => 0,
        1 => 1,
        _ => 3,
    }
}

/// The number of elements of the packed weights.
fn weights(call: &Call, sizes: &Sizes) -> Option<i64> {
    let (groups, width, more) =
        (call.int("groups"), call.int("panel_width"), winograd_growth(call));
    if groups < 1 || width < 1 {
        return None;
    }
    let &[depth, height, across] = call.ints("kernel_shape") else { return None };
    let panels = (sizes.get("filters") / groups).checked_add(width - 1)? / width;
    let channels = sizes.get("channels") / groups;
    let factors =
        [panels, depth, height.checked_add(more)?, across.checked_add(more)?, channels, width];
    factors.into_iter().try_fold(groups, i64::checked_mul)
}

/// The distance between the pixels of the residual, whose channels are contiguous and whose pixels
/// have no gaps. `None` for another layout.
pub fn residual_row(call: &Call, sizes: &Sizes) -> Option<i64> {
    let view = call.operand("residual")?;
    let (shape, strides) = (view.shape(), view.strides());
    let filters = sizes.get("filters");
    let (mut row, mut next) = (filters, None);
    for (&dim, &stride) in shape[2..].iter().zip(&strides[2..]).rev() {
        if dim == 1 {
            continue;
        }
        match next {
            None => row = stride,
            Some(next) if next != stride => return None,
            Some(_) => {}
        }
        next = Some(stride.checked_mul(dim)?);
    }
    (filters <= 1 || strides[1] == 1).then_some(row)
}

/// Whether each channel has its own filter.
pub fn is_depthwise(call: &Call, sizes: &Sizes) -> bool {
    let groups = call.int("groups");
    groups > 1 && groups == sizes.get("channels") && groups == sizes.get("filters")
}

/// Whether groups of few filters share panels of weights (`pliant_tensor::may_share_panels`).
pub fn shares_panels(call: &Call, sizes: &Sizes) -> bool {
    let groups = call.int("groups");
    let (channels, filters) = (sizes.get("channels") / groups, sizes.get("filters") / groups);
    call.int("panel_width") == filters
        && may_share_panels(groups as usize, channels as usize, filters as usize)
}

fn relations(call: &Call, sizes: &Sizes) -> Result<(), String> {
    check_groups(call, sizes)?;
    let strides = |name: &str| call.operand(name).map_or(&[][..], |view| view.strides());
    if call.operand("residual").is_some() && residual_row(call, sizes).is_none() {
        let strides = strides("residual");
        return Err(format!("operand residual has strides {strides:?}, expected channels last"));
    }
    let groups = call.int("groups");
    let depthwise = is_depthwise(call, sizes);
    let width = call.int("panel_width");
    let panels = is_panel_width(width as usize, Float32) || shares_panels(call, sizes);
    if !(panels || depthwise && width == 1) {
        return Err(format!(
            "attribute panel_width is {width}, expected the width of a panel of filters"
        ));
    }
    let ones = |name: &str| call.ints(name).iter().all(|&n| n == 1);
    let transformed = ones("strides")
        && ones("dilations")
        && call.ints("kernel_shape") == [1, 3, 3]
        && (groups, sizes.get("in_depth")) == (1, 1);
    if call.int("winograd") != 0 && !transformed {
        return Err("attribute winograd is given, which is for 3 x 3 filters without groups, strides and dilations".to_string());
    }
    for name in ["x", "out"] {
        if depthwise && strides(name)[1] != 1 {
            let strides = strides(name);
            return Err(format!("operand {name} has strides {strides:?}, expected channels last"));
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
        args.set_at("out", &[b, filter, z, y, x], activation::activated(call, sum))?;
    }
    Ok(())
}

/// The Winograd tile for which the weights were transformed.
fn winograd(call: &Call) -> Option<Winograd> {
    [None, Some(Winograd::Two), Some(Winograd::Four)][call.int("winograd") as usize]
}

/// The rows of a panel and the factors whose sum of products is the weight of a tap. The first and
/// the last number of a transformed line are those of the filter, up to a factor. The second and
/// the third differ by the middle one, up to a factor.
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

/// The index of the weight of a row, a channel of a group and a filter.
fn weight_index(args: &Args<'_>, w: &Windows, (row, channel, filter): (i64, i64, i64)) -> i64 {
    let (call, (channels, filters)) = (args.call, w.group);
    if is_depthwise(call, args.sizes) {
        return row * w.filters + filter;
    }
    let taps: i64 = w.kernel.iter().product();
    if shares_panels(call, args.sizes) {
        let (size, row) = ((taps * channels, w.filters), row * channels + channel);
        let size = (size.0 as usize, size.1 as usize);
        return shared_panel_offset(size, row as usize, filter as usize) as i64;
    }
    let width = call.int("panel_width");
    let rows = winograd(call).map_or(taps, |form| form.filter_elements() as i64) * channels;
    let (group, own) = (filter / filters, filter % filters);
    let panel = group * ((filters + width - 1) / width) + own / width;
    (panel * rows + row * channels + channel) * width + own % width
}
