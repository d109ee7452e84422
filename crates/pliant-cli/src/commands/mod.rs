//! The subcommands of `pliant`, one file each.

mod bench;
mod check;
mod compile;
mod diff;
mod dump;
mod explain;
mod explore;
mod hwbench;
mod opt;
mod profile;
mod run;
mod show;

pub use bench::bench;
pub use check::check;
pub use compile::compile;
pub use diff::diff;
pub use dump::dump;
pub use explain::explain;
pub use explore::explore;
pub use hwbench::hwbench;
pub use opt::opt;
pub use profile::profile;
pub use run::run;
