//! Recurrent layers of float32: LSTM, GRU and plain cells, in one or both directions.
//!
//! Recipe: the input products of a range of steps are one packed product. Gates are interleaved in groups of 16 units
//! ([`pliant_tensor::rnn_weight_layout`]), so that a panel of the recurrent product contains all gates of its units.
//! The units are finished while the sums are in the nearest cache. The steps of a range are one job of the team. Each
//! thread computes the same panels in all steps, so that they stay in its second-level cache, and synchronises with the
//! others once per step. Both directions are computed in the same steps. Measured: "Recurrent layers" in
//! `docs/internals/measurements/recurrent.md`.
//!
//! | module | owns |
//! |---|---|
//! | [`entry_point`] | the declared kernel |
//! | [`lstm_gru_cells`] | the next state from the sums, for each kind of cell |
//! | [`layer`] | operands, scratch memory, input products and steps |
//! | [`parallel_stages`] | a job of the team whose threads synchronise between stages |

pub mod entry_point;
pub mod layer;
pub mod lstm_gru_cells;
pub mod parallel_stages;

pub use layer::{Layer, run};
pub use pliant_tensor::rnn_weight_layout::Cell;
