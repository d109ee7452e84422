//! The amounts of work that a core computes per microsecond: measured for some microarchitectures, estimated for others.
//!
//! [`CPUS`] has a row for each measured microarchitecture. A row is found by the vendor, family and model of CPUID (`identity`), so
//! on x86-64 only. Its rates apply only if its `isa` is the instruction set that the kernels use: not if `PLIANT_ISA` selects
//! another one, or if the process may not use AMX. In all other cases, [`Rates::estimate`] applies (`Machine::detect` in
//! `lib.rs`). The sizes of the caches are not part of the rows (`cache_sizes.rs`).
//!
//! To add a microarchitecture:
//! 1. Run `cargo bench -p pliant-kernels --bench matmul` on it. 500 times the printed GFLOP/s of float32 on one thread is the
//!    number of multiply-adds per microsecond.
//! 2. Add a row to [`CPUS`] with the vendor, the family, the range of models, the instruction set of the measurement and the rates.
//!    The existing rows have the ratios of [`Rates::estimate`] between `multiply_adds`, `depthwise` and `copied`.
//! 3. State the measurement in the documentation of [`CPUS`].

use crate::isa::Isa;

/// The computing rates of a core: how much it computes in about a microsecond. Less than a
/// microsecond of work is too little for another thread. The division of work into pieces uses
/// these rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The number of float32 multiply-adds of a matrix product per microsecond.
    pub multiply_adds: usize,
    /// The number of float32 multiply-adds of a depthwise convolution per microsecond. The rate is
    /// lower than for matrix products, because each loaded value is used only a few times.
    pub depthwise: usize,
    /// The number of float32 elements that are copied from and to the second-level cache per microsecond.
    pub copied: usize,
    /// The number of operations of generated loops per microsecond. A loop has about one operation per element and operator.
    pub generated: usize,
}

impl Rates {
    /// Estimates the rates of a core that runs at 2 GHz and starts two vector multiply-adds per
    /// cycle. With these rates, pieces of work take one to two microseconds on current cores.
    /// Depthwise convolutions reach half the rate of matrix products, and copying an element takes
    /// the time of 16 multiply-adds; these ratios were measured on Emerald Rapids.
    pub fn estimate(isa: Isa) -> Rates {
        let multiply_adds = 2 * isa.float_lanes() * 2048;
        Rates {
            multiply_adds,
            depthwise: multiply_adds / 2,
            copied: multiply_adds / 16,
            generated: 8192,
        }
    }
}

/// A CPU microarchitecture whose computing rates were measured.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// The name of the microarchitecture.
    pub name: &'static str,
    /// The vendor as reported by CPUID.
    pub vendor: &'static str,
    /// The CPU family, and the first and the last model number of this microarchitecture, as reported by CPUID.
    pub family: (u8, u8, u8),
    /// The instruction set with which the rates were measured.
    pub isa: Isa,
    /// The measured computing rates of a core.
    pub rates: Rates,
}

/// The microarchitectures whose rates were measured with `cargo bench -p pliant-kernels --bench
/// matmul`.
///
/// - Emerald Rapids reached 78 to 124 thousand multiply-adds per microsecond with one thread. A
///   second thread is profitable for pieces of 64 thousand multiply-adds
///   (docs/internals/measurements/worker-team.md, "The worker team").
/// - Zen 5 reached 125 to 129 thousand multiply-adds per microsecond, of a peak of 135 thousand.
///   With a rate of 120 thousand instead of 64 thousand, products on two threads take 1.17 to 1.26
///   times as long for one to four rows of 384 x 384, and the same time for other sizes.
pub const CPUS: &[Cpu] = &[
    Cpu {
        name: "Intel Emerald Rapids",
        vendor: "GenuineIntel",
        family: (6, 0xcf, 0xcf),
        isa: Isa::Amx,
        rates: Rates {
            multiply_adds: 64 * 1024,
            depthwise: 32 * 1024,
            copied: 4096,
            generated: 8192,
        },
    },
    Cpu {
        name: "AMD Zen 5",
        vendor: "AuthenticAMD",
        family: (0x1a, 0x00, 0x7f),
        isa: Isa::Avx512,
        rates: Rates {
            multiply_adds: 64 * 1024,
            depthwise: 32 * 1024,
            copied: 4096,
            generated: 8192,
        },
    },
];

/// Returns the entry of [`CPUS`] that describes the host; `None` for other CPUs.
pub(crate) fn host() -> Option<&'static Cpu> {
    identity().and_then(|(vendor, family, model)| find(&vendor, family, model))
}

fn find(vendor: &str, family: u8, model: u8) -> Option<&'static Cpu> {
    CPUS.iter().find(|cpu| {
        let (of, first, last) = cpu.family;
        cpu.vendor == vendor && of == family && (first..=last).contains(&model)
    })
}

/// Returns the vendor, family and model of the host CPU, as reported by CPUID; `None` if CPUID does not report them.
#[cfg(target_arch = "x86_64")]
fn identity() -> Option<(String, u8, u8)> {
    let cpuid = raw_cpuid::CpuId::new();
    let features = cpuid.get_feature_info()?;
    let vendor = cpuid.get_vendor_info()?.as_str().to_string();
    Some((vendor, features.family_id(), features.model_id()))
}

#[cfg(not(target_arch = "x86_64"))]
fn identity() -> Option<(String, u8, u8)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_found_by_vendor_family_and_model() {
        assert_eq!(find("GenuineIntel", 6, 0xcf).map(|cpu| cpu.name), Some("Intel Emerald Rapids"));
        assert!(find("AuthenticAMD", 6, 0xcf).is_none() && find("GenuineIntel", 6, 1).is_none());
    }

    #[test]
    fn estimated_rates_grow_with_the_vector_width() {
        let rates = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512]
            .map(|isa| Rates::estimate(isa).multiply_adds);
        assert!(rates.is_sorted(), "{rates:?}");
    }
}
