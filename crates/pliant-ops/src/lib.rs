//! The operators of Pliant: one declaration each, and the tensor expressions that give them meaning.

pub mod te;
