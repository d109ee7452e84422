//! The description of the host CPU: vector instructions, cache sizes, cores, and computing rates.
//! The heuristics of kernels, offload rules and schedules use it.
//!
//! All crates of higher layers may read the description: the compiler at compile time, the kernels
//! at run time. The worker team (`pliant-pool`) does not use it. Its limits for parallel loops are
//! constants in `pliant-pool/src/worker_threads.rs`.
//!
//! Kernels and schedules choose block sizes, pieces and algorithms by [`Machine`], not by the name
//! of a CPU. Measured rates of microarchitectures are in [`core_compute_rates::CPUS`]. Other CPUs
//! use [`core_compute_rates::Rates::estimate`].
//!
//! | module | contents |
//! |---|---|
//! | [`isa`] | the instruction sets for which there are kernels, and `PLIANT_ISA` |
//! | [`cache_sizes`] | the sizes of the data caches, and `PLIANT_CACHES` |
//! | [`cost_model`] | the cost model: block sizes and pieces of work |
//! | [`cpu_features`] | the instruction set extensions that compiled programs may require |
//! | [`cpu_levels`] | the levels of x86-64 CPUs for which programs can be compiled ahead of time |
//! | `compile_time_profitability` | the cost model: whether a kernel, a packed operand or Winograd's algorithm is faster |
//! | [`core_compute_rates`] | computing rates: measured or estimated |
//! | `amx_detection` | whether the process may use tile registers |
//!
//! # Examples
//! ```
//! use pliant_machine::Machine;
//!
//! let machine = Machine::host();
//! assert!(machine.cores >= 1 && machine.isa.is_available());
//! assert!(machine.caches.l1 <= machine.caches.l2);
//! ```

mod amx_detection;
pub mod cache_sizes;
mod compile_time_profitability;
pub mod core_compute_rates;
pub mod cost_model;
pub mod cpu_features;
pub mod cpu_levels;
pub mod isa;

use std::sync::OnceLock;

pub use cache_sizes::Caches;
pub use core_compute_rates::Rates;
pub use isa::{Isa, Vectors};

/// The description of a CPU that heuristics use.
///
/// # Examples
/// ```
/// use pliant_machine::{Caches, Isa, Machine, Rates};
///
/// let caches = Caches { l1: 48 << 10, l2: 2 << 20, l3: 32 << 20 };
/// let rates = Rates::estimate(Isa::Avx2);
/// let machine = Machine { name: "unknown", isa: Isa::Avx2, caches, cores: 16, rates };
/// assert_eq!(machine.pieces(), 64);
/// assert_eq!(machine.slice_bytes(), 32 << 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name of the microarchitecture: "unknown" if it is not in [`core_compute_rates::CPUS`].
    pub name: &'static str,
    /// The instruction set that the library kernels use on the CPU.
    pub isa: Isa,
    /// The sizes of the data caches.
    pub caches: Caches,
    /// The number of CPUs available to this process, considering its CPU affinity and container quota.
    pub cores: usize,
    /// The computing rates of a core: amounts of work that take about a microsecond.
    pub rates: Rates,
}

static HOST: OnceLock<Machine> = OnceLock::new();

impl Machine {
    /// Returns the description of the host CPU. The first call detects the CPU.
    pub fn host() -> &'static Machine {
        HOST.get_or_init(Machine::detect)
    }

    /// Sets the description of the host CPU. Returns false, without effect, if the description was
    /// set or detected before. Tests that compare printed schedules call this function, so that the
    /// schedules are the same on every machine.
    pub fn set_host(self) -> bool {
        HOST.set(self).is_ok()
    }

    fn detect() -> Machine {
        let isa = isa::isa();
        let measured = core_compute_rates::host();
        Machine {
            name: measured.map_or("unknown", |cpu| cpu.name),
            isa,
            caches: cache_sizes::host(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            // Rates measured with the best instruction set do not apply to others.
            rates: match measured {
                Some(cpu) if cpu.isa == isa => cpu.rates,
                _ => Rates::estimate(isa),
            },
        }
    }
}

/// Checks the variables `PLIANT_ISA` and `PLIANT_CACHES`.
///
/// # Errors
/// A variable cannot be applied. The message contains the name of the variable and its valid
/// values. The compiler and the loader check the variables first, so that kernels need not check
/// them.
pub fn check_variables() -> Result<(), String> {
    isa::selected().map_err(|e| e.to_string())?;
    cache_sizes::check().map_err(|e| e.to_string())
}
