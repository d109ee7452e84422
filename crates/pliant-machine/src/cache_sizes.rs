//! The sizes of the data caches: as reported by the CPU, or as set by `PLIANT_CACHES`.
//!
//! Without `PLIANT_CACHES`, the sizes come from CPUID on x86-64, and from sysfs (`/sys/devices/system/cpu/cpu0/cache`) on Linux on
//! other CPUs. If these do not report a first and a second level, and on other systems, [`Caches::UNKNOWN`] applies. A missing
//! third level gets the size of the second. All sizes, including those of the variable, are clamped to the range that the
//! heuristics support (`Caches::plausible`). A new CPU needs no entry here; its computing rates are in `core_compute_rates.rs`.

use std::fmt;
use std::sync::OnceLock;

/// The name of the environment variable that overrides the cache sizes reported by the CPU. Some virtual machines report wrong
/// sizes.
pub const VARIABLE: &str = "PLIANT_CACHES";

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// The sizes of the data caches in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Size of the first-level data cache of a core, in bytes.
    pub l1: usize,
    /// Size of the second-level cache of a core, in bytes.
    pub l2: usize,
    /// Size in bytes of the third-level cache, which several cores share. On CPUs without a third level, the size of
    /// the second-level cache.
    pub l3: usize,
}

impl Caches {
    /// The assumed cache sizes for a CPU that reports none: the sizes of small current cores.
    pub const UNKNOWN: Caches = Caches { l1: 32 * KB, l2: 512 * KB, l3: 4 * MB };

    /// Clamps the sizes to the range that the heuristics support, and makes each level at least as
    /// large as the previous level.
    fn plausible(self) -> Caches {
        let l1 = self.l1.clamp(16 * KB, MB);
        let l2 = self.l2.clamp(l1.max(128 * KB), 64 * MB);
        Caches { l1, l2, l3: self.l3.clamp(l2, 4096 * MB) }
    }
}

/// The error that the value of `PLIANT_CACHES` is invalid. Contains the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachesError(String);

impl fmt::Display for CachesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{VARIABLE} is '{}'; expected the sizes of the three levels of a core's data caches, such as 48K,2M,32M",
            self.0
        )
    }
}

impl std::error::Error for CachesError {}

/// Checks that `PLIANT_CACHES` is absent, empty or valid.
///
/// # Errors
/// The value of the variable does not consist of three sizes.
pub fn check() -> Result<(), CachesError> {
    from_variable().map(drop)
}

/// Reads the cache sizes from `PLIANT_CACHES`; `None` if the variable is absent or empty. An invalid value is an error.
fn from_variable() -> Result<Option<Caches>, CachesError> {
    match std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) {
        Some(text) => parse(&text.to_string_lossy()).map(Some),
        None => Ok(None),
    }
}

/// Parses the sizes of the first, second and third cache level, such as `48K,2M,32M`. Other texts are an error.
fn parse(text: &str) -> Result<Caches, CachesError> {
    let sizes: Option<Vec<usize>> = text.split(',').map(|size| parse_size(size.trim())).collect();
    match sizes.as_deref() {
        Some(&[l1, l2, l3]) => Ok(Caches { l1, l2, l3 }.plausible()),
        _ => Err(CachesError(text.to_string())),
    }
}

/// Parses a positive number of bytes with an optional suffix `K` or `M`.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], KB),
        b'M' | b'm' => (&text[..text.len() - 1], MB),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok().filter(|&size| size > 0)?.checked_mul(unit)
}

/// Returns the sizes of the host's data caches. The first call determines the sizes.
pub fn host() -> Caches {
    static HOST: OnceLock<Caches> = OnceLock::new();
    *HOST.get_or_init(|| match from_variable() {
        Ok(Some(caches)) => caches,
        _ => reported().unwrap_or(Caches::UNKNOWN).plausible(),
    })
}

/// Converts a list of data caches, as pairs of level and size in bytes, to [`Caches`]. Returns
/// `None` if the first or second level is missing.
fn by_level(listed: impl Iterator<Item = (u8, usize)>) -> Option<Caches> {
    let mut levels = [0; 3];
    for (level, bytes) in listed {
        if let Some(slot) = usize::from(level).checked_sub(1).and_then(|i| levels.get_mut(i)) {
            *slot = bytes.max(*slot);
        }
    }
    let [l1, l2, l3] = levels;
    (l1 > 0 && l2 > 0).then_some(Caches { l1, l2, l3: l3.max(l2) })
}

#[cfg(target_arch = "x86_64")]
fn reported() -> Option<Caches> {
    use raw_cpuid::{CacheType, CpuId};
    let cpuid = CpuId::new();
    let bytes = |c: &raw_cpuid::CacheParameter| {
        c.associativity() * c.physical_line_partitions() * c.coherency_line_size() * c.sets()
    };
    let is_data = |c: &raw_cpuid::CacheParameter| {
        matches!(c.cache_type(), CacheType::Data | CacheType::Unified)
    };
    // Leaf 4 of Intel, and the leaf of AMD with the same layout.
    by_level(cpuid.get_cache_parameters()?.filter(is_data).map(|c| (c.level(), bytes(&c))))
}

#[cfg(all(not(target_arch = "x86_64"), target_os = "linux"))]
fn reported() -> Option<Caches> {
    let entries = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    by_level(entries.filter_map(|entry| {
        let folder = entry.ok()?.path();
        let read = |name| Some(std::fs::read_to_string(folder.join(name)).ok()?.trim().to_string());
        let level = read("level")?.parse().ok()?;
        (read("type")? != "Instruction").then(|| Some((level, parse_size(&read("size")?)?)))?
    }))
}

#[cfg(all(not(target_arch = "x86_64"), not(target_os = "linux")))]
fn reported() -> Option<Caches> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_contains_three_sizes() {
        let sizes = Caches { l1: 48 * KB, l2: 2 * MB, l3: 32 * MB };
        assert_eq!(parse("48K, 2m,33554432"), Ok(sizes));
        for bad in ["", "48K", "48K,2M", "48K,2M,32M,1G", "0,2M,32M", "-1,2M,3M", "a,b,c", "K,M,M"]
        {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.starts_with(&format!("PLIANT_CACHES is '{bad}'")), "{error}");
        }
    }

    #[test]
    fn sizes_are_clamped_to_the_supported_range() {
        let tiny = parse("1,1,1").unwrap();
        assert_eq!(tiny, Caches { l1: 16 * KB, l2: 128 * KB, l3: 128 * KB });
        let huge = parse("9999M,9999M,99999M").unwrap();
        assert!(huge.l1 <= huge.l2 && huge.l2 <= huge.l3);
        assert_eq!(parse("99999999999999999999M,1,1").ok(), None);
    }

    #[test]
    fn the_host_has_caches() {
        let Caches { l1, l2, l3 } = host();
        assert!(16 * KB <= l1 && l1 <= l2 && l2 <= l3);
    }

    #[test]
    fn a_missing_third_level_gets_the_size_of_the_second() {
        let listed = [(1, 32 * KB), (2, MB), (7, 1)];
        assert_eq!(by_level(listed.into_iter()), Some(Caches { l1: 32 * KB, l2: MB, l3: MB }));
        assert_eq!(by_level([(1, KB)].into_iter()), None);
    }
}
