//! `cargo xtask`: checks and generators for working on Pliant.

fn main() {}
