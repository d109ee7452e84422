//! The description of the host CPU, from which every heuristic derives: vector instructions, cache sizes, cores, and rates.
//!
//! Kernels and schedules choose blocks, pieces and algorithms by [`Machine`], never by the CPU that somebody measured. What was
//! measured on a microarchitecture is a row of [`known::CPUS`]; other CPUs get the estimates of [`known::Rates::estimate`].
//!
//! | module | owns |
//! |---|---|
//! | [`isa`] | the instruction sets that kernels exist for, and `PLIANT_ISA` |
//! | [`caches`] | the sizes of the data caches, and `PLIANT_CACHES` |
//! | [`cost`] | the cost model: blocks that stay in a cache, pieces of work, times |
//! | `profitable` | the cost model, continued: which algorithm is faster |
//! | [`known`] | measured rates by microarchitecture, and estimates for others |
//! | `amx` | whether the process may use tile registers |

mod amx;
pub mod caches;
pub mod cost;
pub mod isa;
pub mod known;
mod profitable;

use std::sync::OnceLock;

pub use caches::Caches;
pub use isa::{Isa, Vectors};
pub use known::Rates;

/// A CPU, as far as heuristics need to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The microarchitecture; "unknown" if [`known::CPUS`] does not list it.
    pub name: &'static str,
    /// The instruction set of the kernels.
    pub isa: Isa,
    /// The sizes of the data caches.
    pub caches: Caches,
    /// The number of CPUs available to this process, by affinity and the quota of its container.
    pub cores: usize,
    /// What a core computes in a microsecond.
    pub rates: Rates,
}

static HOST: OnceLock<Machine> = OnceLock::new();

impl Machine {
    /// The host. The first call determines it.
    pub fn host() -> &'static Machine {
        HOST.get_or_init(Machine::detect)
    }

    /// Makes this description the host of the process. Returns false if the host was determined already. Tests of printed
    /// schedules use it, so that these are the same on every machine.
    pub fn set_host(self) -> bool {
        HOST.set(self).is_ok()
    }

    fn detect() -> Machine {
        let isa = isa::isa();
        let known = known::host();
        Machine {
            name: known.map_or("unknown", |cpu| cpu.name),
            isa,
            caches: caches::host(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            // What was measured with the best instructions does not hold for others.
            rates: match known {
                Some(cpu) if cpu.isa == isa => cpu.rates,
                _ => Rates::estimate(isa),
            },
        }
    }
}

/// The variables `PLIANT_ISA` and `PLIANT_CACHES`, if they cannot be applied.
///
/// # Errors
/// A message that names the variable and its valid values. Compiling and loading call this first, so that kernels need not
/// check.
pub fn check_variables() -> Result<(), String> {
    isa::selected().map_err(|e| e.to_string())?;
    caches::check().map_err(|e| e.to_string())
}
