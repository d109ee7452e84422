//! The vector instruction set that kernels use: the best one of the CPU, or the one that `PLIANT_ISA` selects.

use std::fmt;
use std::sync::OnceLock;

/// The name of the environment variable that selects an instruction set.
pub const VARIABLE: &str = "PLIANT_ISA";

/// The instruction sets for which there are kernels, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// [`Isa::Avx512`], plus matrix products of 8-bit integers and bfloat16 in tile registers
    /// (AMX).
    Amx,
    /// 512-bit vectors of x86-64 (AVX-512 F).
    Avx512,
    /// 256-bit vectors of x86-64 with fused multiply-add (AVX2 and FMA).
    Avx2,
    /// 128-bit vectors of AArch64 (NEON).
    Neon,
    /// Portable code, which the compiler vectorizes for the baseline of its target.
    Portable,
}

/// The kinds of vectors that instruction sets have. Kernels that do not use tile registers depend
/// only on the kind of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// 512-bit vectors of x86-64 (AVX-512).
    Avx512,
    /// 256-bit vectors of x86-64 (AVX2).
    Avx2,
    /// 128-bit vectors of AArch64 (NEON).
    Neon,
    /// The vectors that the compiler chooses for portable code.
    Portable,
}

impl Isa {
    /// The kind of vectors of this instruction set.
    pub fn vectors(self) -> Vectors {
        match self {
            Isa::Amx | Isa::Avx512 => Vectors::Avx512,
            Isa::Avx2 => Vectors::Avx2,
            Isa::Neon => Vectors::Neon,
            Isa::Portable => Vectors::Portable,
        }
    }

    /// Number of float32 lanes of a vector of this instruction set, for estimates of compute rates. For portable code,
    /// returns 2 instead of 4, because it has no fused multiply-add.
    pub fn float_lanes(self) -> usize {
        match self.vectors() {
            Vectors::Avx512 => 16,
            Vectors::Avx2 => 8,
            Vectors::Neon => 4,
            Vectors::Portable => 2,
        }
    }

    /// All instruction sets, best first.
    pub const ALL: [Isa; 5] = [Isa::Amx, Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Portable];

    /// The name of the instruction set, as written in `PLIANT_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Amx => "amx",
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Neon => "neon",
            Isa::Portable => "portable",
        }
    }

    /// Whether the CPU supports the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => crate::amx_detection::is_available(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => std::arch::is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("fma")
            }
            Isa::Neon => cfg!(target_arch = "aarch64"),
            Isa::Portable => true,
            #[cfg(not(target_arch = "x86_64"))]
            Isa::Amx | Isa::Avx512 | Isa::Avx2 => false,
        }
    }
}

/// The instruction sets that the CPU supports, best first.
pub fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// The reason why `PLIANT_ISA` cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsaError {
    /// The value is not the name of an instruction set.
    Unknown(String),
    /// The CPU does not support the selected instruction set.
    Missing(Isa),
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join =
            |all: &mut dyn Iterator<Item = Isa>| all.map(Isa::name).collect::<Vec<_>>().join(", ");
        match self {
            IsaError::Unknown(name) => write!(
                f,
                "{VARIABLE} is '{name}', which is not an instruction set; valid values: {}",
                join(&mut Isa::ALL.into_iter())
            ),
            IsaError::Missing(isa) => write!(
                f,
                "{VARIABLE} is '{}', which this CPU does not support; it supports: {}",
                isa.name(),
                join(&mut available())
            ),
        }
    }
}

impl std::error::Error for IsaError {}

/// Chooses the instruction set for the value `forced` of `PLIANT_ISA`. `None` chooses the best one that the CPU
/// supports.
///
/// # Examples
/// ```
/// use pliant_machine::Isa;
/// use pliant_machine::isa::choose;
///
/// assert_eq!(choose(Some("portable")), Ok(Isa::Portable));
/// assert!(choose(Some("mmx")).is_err());
/// assert!(choose(None).is_ok());
/// ```
///
/// # Errors
/// The name is unknown, or the CPU does not support the instruction set.
pub fn choose(forced: Option<&str>) -> Result<Isa, IsaError> {
    let Some(name) = forced.map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(available().next().unwrap_or(Isa::Portable));
    };
    let isa = Isa::ALL
        .into_iter()
        .find(|isa| isa.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| IsaError::Unknown(name.to_string()))?;
    if isa.is_available() { Ok(isa) } else { Err(IsaError::Missing(isa)) }
}

/// The instruction set that the kernels of this process use. The first call determines it.
///
/// # Errors
/// `PLIANT_ISA` cannot be applied. The compiler and the loader call this function first, so that
/// kernels need not check the variable.
pub fn selected() -> Result<Isa, IsaError> {
    static CHOICE: OnceLock<Result<Isa, IsaError>> = OnceLock::new();
    CHOICE.get_or_init(|| choose(std::env::var(VARIABLE).ok().as_deref())).clone()
}

/// The instruction set that the kernels of this process use. If `PLIANT_ISA` cannot be applied,
/// returns the best instruction set that the CPU supports.
pub fn isa() -> Isa {
    static ISA: OnceLock<Isa> = OnceLock::new();
    *ISA.get_or_init(|| selected().or_else(|_| choose(None)).unwrap_or(Isa::Portable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selected_set_must_exist_and_be_supported() {
        for isa in Isa::ALL {
            let want = if isa.is_available() { Ok(isa) } else { Err(IsaError::Missing(isa)) };
            assert_eq!(choose(Some(isa.name())), want);
        }
        assert_eq!(choose(Some(" Portable ")), Ok(Isa::Portable));
        assert_eq!(choose(Some("")), choose(None));
        let error = choose(Some("mmx")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "PLIANT_ISA is 'mmx', which is not an instruction set; valid values: amx, avx512, avx2, neon, portable"
        );
        let error = IsaError::Missing(Isa::Neon).to_string();
        assert!(
            error.starts_with(
                "PLIANT_ISA is 'neon', which this CPU does not support; it supports: "
            )
        );
    }
}
