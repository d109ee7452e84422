//! Epilogues: elementwise operations on the results of matrix products and convolutions, while the
//! results are in the first-level cache.
//!
//! A kernel calls its epilogue as soon as the sums of a tile of results are complete, on the thread
//! that computed the tile. The epilogue changes the tile in place.
//!
//! Tiles of plain convolutions and of 8-bit matmuls have at most [`MAX_TILE_ROWS`] rows of
//! [`MAX_TILE_COLUMNS`] columns. Other tiles are larger: an output row of all channels in depthwise
//! convolutions, part of an output row of some filters in grouped convolutions with small groups,
//! or adjacent tiles of the Winograd algorithm. Tiles cover each result exactly once, in any order.
//! Several threads finish tiles at the same time.
//!
//! | module | owns |
//! |---|---|
//! | `bias_residual_clip` | the most common epilogue, without branches |
//! | `few_column_tiles` | tiles of few columns, several rows at a time |
//! | `general_epilogue` | the loop over the rows of a tile, for any operands and activation |

mod bias_residual_clip;
mod few_column_tiles;
mod general_epilogue;

use std::ptr::null;

use pliant_kernel_api::Call;
use pliant_machine::isa::Isa;

pub use bias_residual_clip::{BiasAndClip, ClipEpilogue, TileEpilogue};

/// Maximum number of rows of a tile of a matrix product.
pub const MAX_TILE_ROWS: usize = 6;
/// Maximum number of columns of a tile of a matrix product.
pub const MAX_TILE_COLUMNS: usize = 64;

/// The epilogue of float32 results: `activation(x * column_scale[j] + bias[j] + residual[i, j])`.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// The address of the factors, one for each column, or null if absent.
    pub column_scale: *const f32,
    /// The address of the biases, one for each column, or null if absent.
    pub bias: *const f32,
    /// A tensor that is added to the results, element by element; `None` for none.
    pub residual: Option<Residual>,
    /// The activation function, which is applied last.
    pub activation: Activation,
    /// Lower limit of the activations that clip.
    pub low: f64,
    /// Upper limit of the activations that clip.
    pub high: f64,
    /// The factor of `x` in leaky ReLU (for negative `x`), hard swish and hard sigmoid.
    pub slope: f64,
    /// The number that hard swish and hard sigmoid add to `slope * x`.
    pub offset: f64,
}

impl Default for Epilogue {
    /// The epilogue that leaves results unchanged.
    fn default() -> Epilogue {
        Epilogue {
            column_scale: null(),
            bias: null(),
            residual: None,
            activation: Activation::None,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            slope: 1.0,
            offset: 0.0,
        }
    }
}

impl Epilogue {
    /// Returns an epilogue with the activation function of a checked call, without bias, scale and
    /// residual.
    pub(crate) fn of_call(call: &Call) -> Epilogue {
        Epilogue {
            activation: Activation::ALL[call.int("activation") as usize],
            low: call.float("low"),
            high: call.float("high"),
            slope: call.float("slope"),
            offset: call.float("offset"),
            ..Epilogue::default()
        }
    }

    /// Returns the limits to which the activation clips; infinities without an activation. `None` for other activations.
    pub(crate) fn clip_bounds(&self) -> Option<(f32, f32)> {
        match self.activation {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clip => Some((self.low as f32, self.high as f32)),
            _ => None,
        }
    }

    /// Whether the epilogue leaves results unchanged.
    pub(crate) fn is_identity(&self) -> bool {
        self.column_scale.is_null()
            && self.bias.is_null()
            && self.residual.is_none()
            && self.activation == Activation::None
    }

    /// Applies the epilogue to a tile in place.
    ///
    /// # Safety
    /// The machine has `isa`. The tile is readable and writable, and no other thread accesses it.
    /// The operands have elements for the rows and columns of the tile.
    pub unsafe fn finish(&self, isa: Isa, tile: &EpilogueTile) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if few_column_tiles::applies(self, tile) {
                few_column_tiles::finish(isa, self, tile);
            } else {
                self.finish_rows(isa, tile);
            }
        }
    }

    /// Applies the epilogue to a tile row by row.
    ///
    /// # Safety
    /// The conditions of [`Epilogue::finish`] hold.
    unsafe fn finish_rows(&self, isa: Isa, tile: &EpilogueTile) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if bias_residual_clip::applies(self) {
                bias_residual_clip::finish(isa, self, tile);
            } else {
                general_epilogue::finish(isa, self, tile);
            }
        }
    }
}

/// The activation functions of epilogues, in the order of the choices of the attribute
/// `activation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The identity function: no activation.
    None,
    /// The maximum of the value and 0; NaN propagates.
    Relu,
    /// The value clipped to two limits; NaN propagates.
    Clip,
    /// `x * (1 + erf(x / sqrt 2)) / 2`.
    Gelu,
    /// GELU in its `tanh` approximation.
    GeluTanh,
    /// SiLU (swish): `x * sigmoid(x)`.
    Silu,
    /// The logistic function (sigmoid).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `x * clip(slope * x + offset, low, high)`.
    HardSwish,
    /// `clip(slope * x + offset, low, high)`.
    HardSigmoid,
    /// Leaky ReLU: the value if it is positive, otherwise `slope * x`.
    LeakyRelu,
}

impl Activation {
    /// All activations, in the order of the choices of the attribute `activation`.
    pub const ALL: [Activation; 11] = {
        use Activation::*;
        [None, Relu, Clip, Gelu, GeluTanh, Silu, Sigmoid, Tanh, HardSwish, HardSigmoid, LeakyRelu]
    };

    /// Whether the activation takes more than a few instructions per vector.
    fn is_costly(self) -> bool {
        use Activation::*;
        matches!(self, Gelu | GeluTanh | Silu | Sigmoid | Tanh)
    }
}

/// A tensor that an epilogue adds to the results. Its columns are contiguous. Strides count
/// elements; a stride of 0 broadcasts.
#[derive(Clone, Copy, Debug)]
pub struct Residual {
    /// The address of the first element of the residual.
    pub data: *const f32,
    /// The stride between the matrices of the batch, in elements.
    pub batch: i64,
    /// The stride between rows, in elements.
    pub row: i64,
}

impl Residual {
    /// The address of the element that is added to the result at `position`.
    #[inline(always)]
    fn at(&self, position: Position) -> *const f32 {
        let (batch, row) = (position.batch as i64, position.row as i64);
        let offset = batch.wrapping_mul(self.batch).wrapping_add(row.wrapping_mul(self.row));
        self.data.wrapping_offset(offset as isize).wrapping_add(position.column)
    }
}

/// A tile of results, with contiguous rows.
#[derive(Clone, Copy, Debug)]
pub struct EpilogueTile {
    /// The address of the first result of the tile.
    pub data: *mut f32,
    /// The distance in memory between adjacent rows of the tile, in elements.
    pub row_stride: isize,
    /// The number of rows of the tile.
    pub rows: usize,
    /// The number of columns of the tile.
    pub columns: usize,
    /// The position of the tile's first element among all results.
    pub position: Position,
}

impl EpilogueTile {
    /// The address of the first result in row `row` of the tile.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> *mut f32 {
        self.data.wrapping_offset(row as isize * self.row_stride)
    }
}

/// The position of a result in a batch of matrices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    /// The index of the matrix in the batch.
    pub batch: usize,
    /// The index of the row in the matrix.
    pub row: usize,
    /// The index of the column in the matrix.
    pub column: usize,
}
