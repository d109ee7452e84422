//! The instruction set extensions that compiled programs may require, by LLVM's names.

/// An instruction set extension of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct CpuFeature {
    /// The name of the extension, as in LLVM: `avx2`, `bmi`.
    pub name: &'static str,
    /// Whether the host CPU has the extension.
    pub is_available: fn() -> bool,
}

macro_rules! features {
    ($detect:ident: $($name:literal = $rust_name:tt,)*) => {
        &[$(CpuFeature { name: $name, is_available: || std::arch::$detect!($rust_name) }),*]
    };
}

/// The instruction set extensions of x86-64 that code generators use if the CPU has them.
#[cfg(target_arch = "x86_64")]
pub static CPU_FEATURES: &[CpuFeature] = features! { is_x86_feature_detected:
    "sse3" = "sse3",
    "ssse3" = "ssse3",
    "sse4.1" = "sse4.1",
    "sse4.2" = "sse4.2",
    "popcnt" = "popcnt",
    "avx" = "avx",
    "avx2" = "avx2",
    "fma" = "fma",
    "f16c" = "f16c",
    "bmi" = "bmi1",
    "bmi2" = "bmi2",
    "lzcnt" = "lzcnt",
    "movbe" = "movbe",
    "cx16" = "cmpxchg16b",
    "gfni" = "gfni",
    "vaes" = "vaes",
    "vpclmulqdq" = "vpclmulqdq",
    "avx512f" = "avx512f",
    "avx512cd" = "avx512cd",
    "avx512bw" = "avx512bw",
    "avx512dq" = "avx512dq",
    "avx512vl" = "avx512vl",
    "avx512ifma" = "avx512ifma",
    "avx512vbmi" = "avx512vbmi",
    "avx512vbmi2" = "avx512vbmi2",
    "avx512vnni" = "avx512vnni",
    "avx512bitalg" = "avx512bitalg",
    "avx512vpopcntdq" = "avx512vpopcntdq",
    "avx512bf16" = "avx512bf16",
    "avx512fp16" = "avx512fp16",
    "avxvnni" = "avxvnni",
};

/// The instruction set extensions of AArch64 that code generators use if the CPU has them.
#[cfg(target_arch = "aarch64")]
pub static CPU_FEATURES: &[CpuFeature] = features! { is_aarch64_feature_detected:
    "lse" = "lse",
    "fullfp16" = "fp16",
    "dotprod" = "dotprod",
    "sve" = "sve",
    "bf16" = "bf16",
    "i8mm" = "i8mm",
};

/// The instruction set extensions that code generators use: none on other architectures than x86-64 and AArch64.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub static CPU_FEATURES: &[CpuFeature] = &[];

/// Returns those of the required extensions that the host CPU lacks. A name that is not in [`CPU_FEATURES`] counts as missing.
pub fn missing_features<'a>(required: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let is_missing = |name: &&str| {
        let feature = CPU_FEATURES.iter().find(|feature| feature.name == *name);
        !feature.is_some_and(|feature| (feature.is_available)())
    };
    required.into_iter().filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_extensions_are_missing_and_available_ones_are_not() {
        let available = CPU_FEATURES.iter().filter(|f| (f.is_available)()).map(|f| f.name);
        assert_eq!(missing_features(available), Vec::<&str>::new());
        assert_eq!(missing_features(["no-such-feature"]), ["no-such-feature"]);
    }
}
