//! Resizes images with the library kernel: computes the positions and weights of the neighbours along both axes, and calls the
//! kernel.

use pliant_kernel_api::kernels::resize::KERNEL;
use pliant_tensor::DType;

use super::resize::SourceElements;
use crate::te::{self, Body, Expr, KernelCall, Tensor, TensorView};

/// The layouts of images that the library kernel for resizing supports.
#[derive(Clone, Copy)]
pub(super) enum Images {
    /// The channels precede the rows and columns, so each channel is a separate image.
    ChannelsFirst,
    /// The channels follow the rows and columns, so each pixel has several adjacent values.
    ChannelsLast,
}

impl Images {
    /// The layout of a tensor of rank 4 whose spatial axes and channel axis are given; `None` if the kernel does not support it.
    pub(super) fn of_axes(spatial: &[usize], channels: usize) -> Option<Images> {
        match (spatial, channels) {
            ([2, 3], _) => Some(Images::ChannelsFirst),
            ([1, 2], 3) => Some(Images::ChannelsLast),
            _ => None,
        }
    }

    fn view(self, tensor: &Tensor) -> TensorView<'_> {
        match self {
            Images::ChannelsFirst => TensorView::from(tensor).unsqueeze(4),
            Images::ChannelsLast => TensorView::from(tensor),
        }
    }
}

/// One resized axis, with the source elements from which each element of the result is interpolated.
pub(super) struct Axis<'a> {
    pub source: &'a SourceElements,
    /// The size of the axis in the result.
    pub size: &'a Expr,
    /// Whether the elements along the axis are copied without interpolation.
    pub is_copied: bool,
}

impl Axis<'_> {
    /// Emits code that writes two tables for the kernel: for each index along the axis, the
    /// positions of its neighbours and their weights. The second table is `None` if each index has
    /// only one neighbour.
    fn tables(&self, b: &mut Body, name: &str) -> (Tensor, Option<Tensor>) {
        let weights = if self.is_copied { &[] } else { self.source.weights.as_slice() };
        let taps = weights.len().max(1);
        let shape = [te::int(taps as i64), self.size.clone()];
        let positions = b.alloc(&format!("{name}_positions"), &shape, DType::Int64);
        let first = self.source.first_neighbor();
        for tap in 0..taps {
            b.for_("i", self.size, |b, i| {
                let position = match self.is_copied {
                    true => i.clone(),
                    false => self.source.base.at(std::slice::from_ref(i)) + (tap as i64 + first),
                };
                b.store(&positions, &[te::int(tap as i64), i.clone()], &position);
            });
        }
        let table = (!weights.is_empty()).then(|| {
            let table = b.alloc(&format!("{name}_weights"), &shape, DType::Float32);
            for (tap, weight) in weights.iter().enumerate() {
                b.for_("i", self.size, |b, i| {
                    let value = weight.at(std::slice::from_ref(i));
                    b.store(&table, &[te::int(tap as i64), i.clone()], &value);
                });
            }
            table
        });
        (positions, table)
    }
}

/// Creates the stage that asserts `checks` and then resizes images with the library kernel.
pub(super) fn resized(
    x: &Tensor,
    shape: &[Expr],
    images: Images,
    [rows, columns]: [Axis<'_>; 2],
    checks: &[(Expr, String)],
) -> Vec<Tensor> {
    te::extern_("resize", &[(shape.to_vec(), x.dtype())], |b, out| {
        for (condition, message) in checks {
            b.assert(condition, message.clone());
        }
        let (row_positions, row_weights) = rows.tables(b, "row");
        let (column_positions, column_weights) = columns.tables(b, "column");
        let call = KernelCall::new(&KERNEL)
            .operand("x", images.view(x))
            .operand("row_positions", &row_positions)
            .optional("row_weights", row_weights.as_ref())
            .operand("column_positions", &column_positions)
            .optional("column_weights", column_weights.as_ref())
            .operand("out", images.view(&out[0]));
        b.evaluate(call.finish());
    })
}
