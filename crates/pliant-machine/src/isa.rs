//! Selects the vector instructions of the kernels: the best of the machine, or those that
//! `PLIANT_ISA` names.

use std::fmt;
use std::sync::OnceLock;

/// The environment variable that forces an instruction set.
pub const VARIABLE: &str = "PLIANT_ISA";

/// The instruction sets that kernels exist for, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// [`Isa::Avx512`] with products of bytes and bfloat16 in tile registers (AMX).
    Amx,
    /// 512-bit vectors of x86-64 (AVX-512 F).
    Avx512,
    /// 256-bit vectors of x86-64 with fused multiply-add (AVX2 and FMA).
    Avx2,
    /// 128-bit vectors of AArch64.
    Neon,
    /// Plain code, which the compiler vectorises for the baseline of its target.
    Portable,
}

/// The vectors of an instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// Of 512 bits (x86-64).
    Avx512,
    /// Of 256 bits (x86-64).
    Avx2,
    /// Of 128 bits (AArch64).
    Neon,
    /// Those that the compiler creates from plain code.
    Portable,
}

impl Isa {
    /// Its vectors, which select kernels without tile registers.
    pub fn vectors(self) -> Vectors {
        match self {
            Isa::Amx | Isa::Avx512 => Vectors::Avx512,
            Isa::Avx2 => Vectors::Avx2,
            Isa::Neon => Vectors::Neon,
            Isa::Portable => Vectors::Portable,
        }
    }

    /// The number of float32 lanes of a vector. Portable code counts as two, because it has no fused multiply-add.
    pub fn float_lanes(self) -> usize {
        match self.vectors() {
            Vectors::Avx512 => 16,
            Vectors::Avx2 => 8,
            Vectors::Neon => 4,
            Vectors::Portable => 2,
        }
    }

    /// Every set, best first.
    pub const ALL: [Isa; 5] = [Isa::Amx, Isa::Avx512, Isa::Avx2, Isa::Neon, Isa::Portable];

    /// Its name in `PLIANT_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Amx => "amx",
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Neon => "neon",
            Isa::Portable => "portable",
        }
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx => crate::amx::is_available(),
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

/// The sets that this machine has, best first.
pub fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

/// Why `PLIANT_ISA` cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsaError {
    /// It is not the name of an instruction set.
    Unknown(String),
    /// The machine lacks the instruction set.
    Missing(Isa),
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join =
            |all: &mut dyn Iterator<Item = Isa>| all.map(Isa::name).collect::<Vec<_>>().join(", ");
        match self {
            IsaError::Unknown(name) => write!(
                f,
                "{VARIABLE} is '{name}', which names no instructions; it may be {}",
                join(&mut Isa::ALL.into_iter())
            ),
            IsaError::Missing(isa) => write!(
                f,
                "{VARIABLE} asks for {}, which this machine lacks; it has {}",
                isa.name(),
                join(&mut available())
            ),
        }
    }
}

impl std::error::Error for IsaError {}

/// The instruction set if the variable has the value `forced`.
///
/// # Errors
/// If the name is unknown, or the machine lacks the instructions.
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

/// The instruction set of this process, determined by the first call.
///
/// # Errors
/// If `PLIANT_ISA` cannot be applied. Compiling and loading call this first, so that kernels need
/// not check.
pub fn selected() -> Result<Isa, IsaError> {
    static CHOICE: OnceLock<Result<Isa, IsaError>> = OnceLock::new();
    CHOICE.get_or_init(|| choose(std::env::var(VARIABLE).ok().as_deref())).clone()
}

/// The instruction set of this process; the best available one if `PLIANT_ISA` cannot be applied.
pub fn isa() -> Isa {
    static ISA: OnceLock<Isa> = OnceLock::new();
    *ISA.get_or_init(|| selected().or_else(|_| choose(None)).unwrap_or(Isa::Portable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_set_must_be_known_and_present() {
        for isa in Isa::ALL {
            let want = if isa.is_available() { Ok(isa) } else { Err(IsaError::Missing(isa)) };
            assert_eq!(choose(Some(isa.name())), want);
        }
        assert_eq!(choose(Some(" Portable ")), Ok(Isa::Portable));
        assert_eq!(choose(Some("")), choose(None));
        let error = choose(Some("mmx")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "PLIANT_ISA is 'mmx', which names no instructions; it may be amx, avx512, avx2, neon, portable"
        );
        let error = IsaError::Missing(Isa::Neon).to_string();
        assert!(error.starts_with("PLIANT_ISA asks for neon, which this machine lacks; it has "));
    }
}
