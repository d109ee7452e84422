//! Schedules and lowers loop functions: from blocks with axes to loops with explicit vectors, which code generators take.

pub mod accesses;
pub mod lowered;
pub mod text;
pub mod walk;
