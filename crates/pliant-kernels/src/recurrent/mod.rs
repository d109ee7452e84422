//! Recurrent layers of float32 with constant weights: LSTM, GRU and plain cells, one or both directions.
//!
//! Recipe: the input products of a stretch of steps are one packed product. Gates are interleaved by 16 units
//! ([`pliant_tensor::gates`]), so that a panel of the products with the state gives all that its units need, which are finished
//! while its sums are in the nearest cache. The steps of a stretch are one job of the team: each thread keeps to its own panels
//! from step to step, so that they stay in its second-level cache, and meets the others once a step. Both directions are
//! computed in the same steps. What was measured stands in `docs/performance.md`.
//!
//! | module | owns |
//! |---|---|
//! | [`call`] | the entry for loop functions |
//! | [`cell`] | from sums to the next state, for each kind of cell |
//! | [`layer`] | operands, scratch memory, input products and steps |
//! | [`stages`] | one job of the team whose threads meet between stages |

pub mod call;
pub mod cell;
pub mod layer;
pub mod stages;

pub use layer::{Layer, run};
pub use pliant_tensor::gates::Cell;
