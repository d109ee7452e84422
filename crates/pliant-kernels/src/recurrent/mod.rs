//! Recurrent layers of float32: LSTM, GRU and plain cells, in one or both directions.
//!
//! Method: one matrix product multiplies the inputs of a range of steps by the input weights. Gates
//! are interleaved in groups of 16 units ([`pliant_tensor::rnn_weight_layout`]), so that a panel of
//! the recurrent weights contains all gates of its units. The next states of the units are computed
//! while the sums are in the nearest cache. The steps of a range are one job of the worker team.
//! Each thread computes the same panels in all steps, so that the panels stay in its second-level
//! cache, and synchronizes with the other threads once per step. Both directions are computed in
//! the same steps. For measurements, see "Recurrent layers" in
//! `docs/internals/measurements/recurrent.md`.
//!
//! | module | owns |
//! |---|---|
//! | [`entry_point`] | the declared kernel |
//! | [`lstm_gru_cells`] | the next states of LSTM, GRU and plain cells |
//! | [`layer`] | operands, scratch memory, input products and steps |
//! | [`parallel_stages`] | parallel jobs whose threads synchronize between stages |

pub mod entry_point;
pub mod layer;
pub mod lstm_gru_cells;
pub mod parallel_stages;

pub use layer::{Layer, run};
pub use pliant_tensor::rnn_weight_layout::Cell;
