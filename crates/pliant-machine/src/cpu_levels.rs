//! The levels of x86-64 CPUs, for which programs can be compiled ahead of time. The x86-64 psABI defines them.

/// A level of x86-64 CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLevel {
    /// The name of the level, as in LLVM and GCC.
    pub name: &'static str,
    /// The instruction sets beyond the baseline that all CPUs of the level have, by LLVM's names.
    pub features: &'static [&'static str],
}

/// The name of the lowest level, to which all x86-64 CPUs belong.
pub const BASELINE: &str = "x86-64";

/// All levels of x86-64 CPUs, lowest first. Each level contains the instruction sets of the levels below it.
pub const LEVELS: [CpuLevel; 4] = [
    CpuLevel { name: BASELINE, features: &[] },
    CpuLevel {
        name: "x86-64-v2",
        features: &["cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"],
    },
    CpuLevel {
        name: "x86-64-v3",
        features: &[
            "cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3", "avx", "avx2", "bmi", "bmi2",
            "f16c", "fma", "lzcnt", "movbe",
        ],
    },
    CpuLevel {
        name: "x86-64-v4",
        features: &[
            "cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3", "avx", "avx2", "bmi", "bmi2",
            "f16c", "fma", "lzcnt", "movbe", "avx512f", "avx512bw", "avx512cd", "avx512dq",
            "avx512vl",
        ],
    },
];

/// Returns the level with this name.
///
/// # Examples
/// ```
/// use pliant_machine::cpu_levels::find;
///
/// assert!(find("x86-64-v3").is_ok_and(|level| level.features.contains(&"avx2")));
/// assert!(find("i386").is_err());
/// ```
///
/// # Errors
/// A message that lists the levels, if there is none.
pub fn find(name: &str) -> Result<CpuLevel, String> {
    let level = LEVELS.into_iter().find(|level| level.name == name);
    level.ok_or_else(|| unknown_cpu(name, &LEVELS.map(|level| level.name)))
}

/// Returns the error message for a CPU name for which no code can be generated. The message lists the valid names, `known`, unless
/// there are none.
pub fn unknown_cpu(name: &str, known: &[&str]) -> String {
    match known {
        [] => format!(
            "code for the CPU '{name}' cannot be generated; omit the CPU for code that runs on all CPUs of the architecture"
        ),
        _ => format!(
            "code for the CPU '{name}' cannot be generated; use one of {}, or omit the CPU for the host",
            known.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_contain_the_lower_ones_and_unknown_cpus_are_reported() {
        for pair in LEVELS.windows(2) {
            assert!(pair[0].features.iter().all(|name| pair[1].features.contains(name)));
        }
        assert_eq!(find("x86-64-v3").map(|level| level.features.len()), Ok(14));
        let message = find("i386").expect_err("not a level");
        assert!(message.contains("x86-64-v4"), "{message}");
    }
}
