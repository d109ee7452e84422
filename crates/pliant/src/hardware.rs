//! Properties of the host CPU: vector instructions, caches, measured rates and latencies, and
//! worker threads.

pub use pliant_kernels::hardware::{LEVELS, peak_flops, read_bandwidth, tile_peaks};
pub use pliant_machine::isa::{Isa, IsaError, available, isa, selected};
pub use pliant_machine::{Caches, Machine, Rates, check_variables};
pub use pliant_pool::{MAX_THREADS, Team, default_threads, fork_join, wake_up};
