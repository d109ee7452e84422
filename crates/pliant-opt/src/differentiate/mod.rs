//! Automatic differentiation: the pass [`gradient::Gradient`].

mod activity;
mod adjoints;
mod branches;
mod callees;
mod checkpoints;
pub mod gradient;
mod reverse;
