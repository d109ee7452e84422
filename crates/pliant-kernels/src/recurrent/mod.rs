//! Recurrent layers of float32 with constant weights.
//!
//! Recipe: the input products of all steps are one packed product. Gates are interleaved by [`UNITS`] units, so that a panel
//! of 64 columns holds all gates of the same units; a step adds the recurrent product to a panel's columns and finishes its
//! units while they are in the nearest cache. Panels of a step are shared by the team. Speed has not been measured, and the
//! compiler calls loops of its own.
//!
//! | module | owns |
//! |---|---|
//! | [`lstm`] | layers of long short-term memory |
//! | [`pack`] | weights and biases in the order of the panels |

pub mod lstm;
pub mod pack;

pub use lstm::{Lstm, run};

/// Units whose gates are side by side: the lanes of the widest vector.
pub const UNITS: usize = 16;
/// Gates of a unit.
pub const GATES: usize = 4;
/// Columns of a panel.
pub const WIDTH: usize = UNITS * GATES;
