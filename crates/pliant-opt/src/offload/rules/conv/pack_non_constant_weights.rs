//! Packs non-constant weights in the format of [`super::pack_constant_weights`] before the kernel reads them.
//!
//! Each iteration of the packing loop packs some channels of one panel. If the taps of the weights are contiguous, as in the
//! usual frameworks, the weights of each filter are read in order, and rows of panels are written completely. Packing takes two
//! or three times as long as reading the weights once. The kernel reads the packed weights once for each block of 96 results.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::BinOp;
use pliant_ops::LegalizeError;
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_tensor::{SHARED_FILTERS, panel_width};

use super::conv_matcher::Convolution;
use crate::offload::weight_packing_functions;

/// The number of channels that one iteration of the packing loop packs. With 9 taps and 64 filters, an iteration takes about 10
/// microseconds.
const CHANNELS_PER_ITERATION: i64 = 16;
/// The number of channels that one iteration of the packing loop packs for a depthwise convolution. Each row of the packed
/// weights contains all channels.
const DEPTHWISE_BLOCK: i64 = 64;

/// The non-constant weights of a convolution.
#[derive(Clone, Debug)]
pub(super) struct NonConstantWeights {
    /// The operand that contains the weights.
    pub weights: RelaxExpr,
    /// The sizes of the dims of the operand that contains the weights.
    pub shape: Vec<i64>,
    /// For each spatial dim, (first tap that the kernel reads, distance between taps).
    pub taps: Vec<(i64, i64)>,
    /// Whether the operand has one dim for the filters of a group and one for the channels of all groups, as in transposed
    /// convolutions. Otherwise its dims are the filters of all groups and the channels of a group.
    pub transposed: bool,
}

/// The division of the filters of a convolution into blocks. Each block is packed separately.
struct FilterBlocks {
    /// The number of filters in each group. Blocks do not contain filters of several groups. For depthwise convolutions, and if
    /// groups share panels of packed weights, all filters count as one group.
    group_filters: i64,
    /// The number of groups.
    groups: i64,
    /// The number of filters in a block. The last block of a group may have fewer filters.
    width: i64,
}

impl FilterBlocks {
    fn of(c: &Convolution) -> FilterBlocks {
        if c.is_depthwise() {
            return FilterBlocks { group_filters: c.filters, groups: 1, width: DEPTHWISE_BLOCK };
        }
        if c.shares_panels() {
            return FilterBlocks {
                group_filters: c.filters,
                groups: 1,
                width: SHARED_FILTERS as i64,
            };
        }
        let group_filters = c.filters / c.groups;
        let width = panel_width(group_filters as usize, DType::Float32) as i64;
        FilterBlocks { group_filters, groups: c.groups, width }
    }

    /// The number of blocks into which the filters of one group are divided.
    fn blocks_per_group(&self) -> i64 {
        (self.group_filters + self.width - 1) / self.width
    }

    /// The number of blocks into which the filters of all groups are divided.
    fn count(&self) -> i64 {
        self.blocks_per_group() * self.groups
    }

    /// Returns (first filter of a block, number of filters of the block).
    fn filter_range(&self, block: &Expr) -> (Expr, Expr) {
        let offset = te::floormod(block, &te::int(self.blocks_per_group())) * self.width;
        let first =
            te::floordiv(block, &te::int(self.blocks_per_group())) * self.group_filters + &offset;
        let has_full_blocks = self.group_filters % self.width == 0;
        let rest = te::int(self.group_filters) - offset;
        let columns = if has_full_blocks {
            te::int(self.width)
        } else {
            te::binary(BinOp::Min, &te::int(self.width), &rest)
        };
        (first, columns)
    }
}

/// Returns the load of a weight, given by its filter, its channel within the group and its taps.
fn weight_at(
    c: &Convolution,
    g: &NonConstantWeights,
    from: &Tensor,
    at: (&Expr, &Expr, &[Expr]),
) -> Expr {
    let (filter, channel, taps) = at;
    let (filters_per_group, channels_per_group) = (c.filters / c.groups, c.channels / c.groups);
    let letters = &"DHW"[3 - c.dims..];
    let index = c.weight_layout.chars().map(|letter| match (letter, letters.find(letter)) {
        (_, Some(k)) => &taps[k] * g.taps[k].1 + te::int(g.taps[k].0),
        ('O', _) if g.transposed => te::floormod(filter, &te::int(filters_per_group)),
        ('I', _) if g.transposed => {
            te::floordiv(filter, &te::int(filters_per_group)) * channels_per_group + channel
        }
        ('O', _) => filter.clone(),
        _ => channel.clone(),
    });
    from.at(&index.collect::<Vec<_>>())
}

/// Creates the loop function that packs the weights of a convolution. Returns (call of this function, value of the kernel
/// attribute `panel_width`).
pub(super) fn packing_call(
    func: &mut Function,
    c: &Convolution,
    g: &NonConstantWeights,
) -> Result<(TirCall, i64), LegalizeError> {
    let group_channels = c.channels / c.groups;
    let rows = c.filter_size.iter().product::<i64>() * group_channels;
    let blocks = FilterBlocks::of(c);
    let (shape, width) = match (c.is_depthwise(), c.shares_panels()) {
        (true, _) => (vec![rows, c.channels], 1),
        (_, true) => (vec![rows * c.filters], c.filters / c.groups),
        _ => (vec![blocks.count(), rows, blocks.width], blocks.width),
    };
    let write = |b: &mut te::Body, from: &Tensor, to: &Tensor| write_panels(b, c, g, from, to);
    let call = weight_packing_functions::packing_call(
        func,
        "pack_conv_weights",
        g.weights,
        &shape,
        write,
    )?;
    Ok((call, width))
}

/// Emits the body of the loop function that packs the weights of a convolution.
fn write_panels(
    b: &mut te::Body,
    c: &Convolution,
    g: &NonConstantWeights,
    from: &Tensor,
    panels: &Tensor,
) {
    let group_channels = c.channels / c.groups;
    let rows = c.filter_size.iter().product::<i64>() * group_channels;
    let blocks = FilterBlocks::of(c);
    let (is_depthwise, shared) = (c.is_depthwise(), c.shares_panels());
    let parts_per_block = (group_channels + CHANNELS_PER_ITERATION - 1) / CHANNELS_PER_ITERATION;
    b.parallel("part", &te::int(blocks.count() * parts_per_block), |b, part| {
        let block = b.let_("block", &te::floordiv(part, &te::int(parts_per_block)));
        let begin = b.let_(
            "begin",
            &(te::floormod(part, &te::int(parts_per_block)) * CHANNELS_PER_ITERATION),
        );
        let (first, columns) = blocks.filter_range(&block);
        let (first, columns) = (b.let_("first", &first), b.let_("columns", &columns));
        let position = |row: &Expr, column: &Expr| match (is_depthwise, shared) {
            (true, _) => vec![row.clone(), &first + column],
            (_, true) => vec![&first * rows + row * &columns + column],
            _ => vec![block.clone(), row.clone(), column.clone()],
        };
        let remaining = te::int(group_channels) - &begin;
        let channels = match group_channels % CHANNELS_PER_ITERATION {
            0 => te::int(CHANNELS_PER_ITERATION),
            _ => te::binary(BinOp::Min, &te::int(CHANNELS_PER_ITERATION), &remaining),
        };
        b.for_("c", &channels, |b, channel| {
            let channel = &begin + channel;
            let sizes: Vec<Expr> = c.filter_size.iter().map(|&k| te::int(k)).collect();
            b.for_each(&sizes, |b, at| {
                let tap =
                    at.iter().zip(&c.filter_size).fold(te::int(0), |tap, (t, &k)| tap * k + t);
                let row = b.let_("row", &(tap * group_channels + &channel));
                b.for_("f", &columns, |b, f| {
                    let value = weight_at(c, g, from, (&(&first + f), &channel, at));
                    b.store(panels, &position(&row, f), &value);
                });
                if !is_depthwise && !shared && blocks.group_filters % blocks.width != 0 {
                    b.for_("z", &(te::int(blocks.width) - &columns), |b, z| {
                        let position = position(&row, &(&columns + z));
                        b.store(panels, &position, &te::const_of(0.0, DType::Float32));
                    });
                }
            });
        });
    });
}
