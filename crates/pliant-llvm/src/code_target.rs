//! The CPU for which code is generated: its name and instruction sets in LLVM's terms, and its vector width.

use std::sync::OnceLock;

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions,
    TargetTriple,
};
use inkwell::values::FunctionValue;
use pliant_codegen::{CodegenError, ObjectTarget};
use pliant_machine::cpu_features::CPU_FEATURES;
use pliant_machine::cpu_levels;
use pliant_machine::isa::{self, Isa, Vectors};

/// Maximum size in bytes of a function's stack frame. Worker threads have a stack of 2 MiB.
pub(crate) const MAX_FRAME_BYTES: u32 = 512 << 10;

/// The CPU for which code is generated, as LLVM describes it.
#[derive(Clone, Debug)]
pub(crate) struct CodeTarget {
    /// The target triple; `None` for that of the host.
    triple: Option<String>,
    cpu: String,
    features: String,
    /// The width of the widest vectors, in bits.
    pub vector_bits: u32,
    /// Whether the CPU has fused multiply-add.
    pub has_fma: bool,
    /// Whether the CPU has AVX-512.
    pub has_avx512: bool,
}

impl CodeTarget {
    /// Returns the host CPU, restricted to the instruction set that `PLIANT_ISA` selects.
    ///
    /// # Errors
    /// `Host`: LLVM has no code generator for the CPU, or the CPU has no instructions that convert float16.
    pub fn host() -> Result<&'static CodeTarget, CodegenError> {
        static TARGET: OnceLock<Result<CodeTarget, String>> = OnceLock::new();
        TARGET
            .get_or_init(CodeTarget::detect_host)
            .as_ref()
            .map_err(|e| CodegenError::Host(e.clone()))
    }

    fn detect_host() -> Result<CodeTarget, String> {
        Target::initialize_native(&InitializationConfig::default())?;
        let isa = isa::selected().map_err(|e| e.to_string())?;
        let (cpu, features) = match isa {
            // Levels of the x86-64 ABI. Without F16C, each conversion of a float16 would be a library call.
            Isa::Avx2 => level_target("x86-64-v3", &[])?,
            Isa::Portable if cfg!(target_arch = "x86_64") => {
                level_target("x86-64-v2", &["avx", "f16c"])?
            }
            _ => (
                TargetMachine::get_host_cpu_name().to_string(),
                TargetMachine::get_host_cpu_features().to_string(),
            ),
        };
        #[cfg(target_arch = "x86_64")]
        if !std::arch::is_x86_feature_detected!("f16c") {
            return Err("the target \"llvm\" needs a CPU with the instruction set F16C, which this CPU does not have; use the \
                 target \"cranelift\""
                .into());
        }
        let vector_bits = match isa.vectors() {
            Vectors::Avx512 => 512,
            Vectors::Avx2 => 256,
            Vectors::Neon | Vectors::Portable => 128,
        };
        let has_fma = isa != Isa::Portable || cfg!(target_arch = "aarch64");
        let has_avx512 = isa.vectors() == Vectors::Avx512;
        Ok(CodeTarget { triple: None, cpu, features, vector_bits, has_fma, has_avx512 })
    }

    /// Returns the description of the CPU for which an object file is generated.
    ///
    /// # Errors
    /// `Host`: LLVM has no code generator for the CPU, or the CPU has no instructions that convert float16.
    pub fn object(target: &ObjectTarget) -> Result<CodeTarget, CodegenError> {
        let host = TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned();
        let triple = target.triple.as_deref().unwrap_or(&host);
        match (&target.triple, &target.cpu) {
            (None, None) => CodeTarget::host().cloned(),
            (_, cpu) if triple.starts_with("x86_64") => {
                Self::x86_64(triple, cpu.as_deref()).map_err(CodegenError::Host)
            }
            (_, None) if triple.starts_with("aarch64") => {
                Target::initialize_aarch64(&InitializationConfig::default());
                Ok(CodeTarget {
                    triple: Some(triple.to_string()),
                    cpu: "generic".into(),
                    features: String::new(),
                    vector_bits: 128,
                    has_fma: true,
                    has_avx512: false,
                })
            }
            (_, Some(cpu)) if triple.starts_with("aarch64") => {
                Err(CodegenError::Host(cpu_levels::unknown_cpu(cpu, &[])))
            }
            _ => Err(CodegenError::Host(format!(
                "LLVM generates code only for x86-64 and AArch64 processors, not for '{triple}'"
            ))),
        }
    }

    fn x86_64(triple: &str, cpu: Option<&str>) -> Result<CodeTarget, String> {
        Target::initialize_x86(&InitializationConfig::default());
        let level = cpu_levels::find(cpu.unwrap_or(cpu_levels::BASELINE))?;
        if !level.features.contains(&"f16c") {
            return Err(format!(
                "the LLVM target needs a CPU with the instruction set F16C, which '{}' does not have; use the CPU `x86-64-v3`, \
                 or the target \"cranelift\"",
                level.name
            ));
        }
        let (cpu, features) = level_target(level.name, &[])?;
        let has_avx512 = level.features.contains(&"avx512f");
        Ok(CodeTarget {
            triple: Some(triple.to_string()),
            cpu,
            features,
            vector_bits: if has_avx512 { 512 } else { 256 },
            has_fma: true,
            has_avx512,
        })
    }

    /// Returns the instruction sets that code for the CPU may use, by LLVM's names.
    pub fn cpu_features(&self) -> Vec<String> {
        let known = |name: &&str| CPU_FEATURES.iter().any(|feature| feature.name == *name);
        let enabled = self.features.split(',').filter_map(|feature| feature.strip_prefix('+'));
        enabled.filter(known).map(str::to_string).collect()
    }

    /// Creates LLVM's code generator for the CPU. The code is position independent.
    pub fn machine(&self) -> Result<TargetMachine, String> {
        let triple = match &self.triple {
            Some(triple) => TargetTriple::create(triple),
            None => TargetMachine::get_default_triple(),
        };
        let target = Target::from_triple(&triple).map_err(|e| e.to_string())?;
        let options = TargetMachineOptions::new()
            .set_cpu(&self.cpu)
            .set_features(&self.features)
            .set_level(OptimizationLevel::Default)
            .set_reloc_mode(RelocMode::PIC)
            .set_code_model(CodeModel::Small);
        target
            .create_target_machine_from_options(&triple, options)
            .ok_or_else(|| format!("LLVM has no code generator for the CPU '{}'", self.cpu))
    }

    /// Adds the attributes that all machine functions have: the CPU, the vector width, and stack probes, which prevent a frame
    /// larger than a page from skipping the guard page.
    pub fn add_attributes<'ctx>(&self, context: &'ctx Context, function: FunctionValue<'ctx>) {
        let bits = self.vector_bits.to_string();
        let frame = MAX_FRAME_BYTES.to_string();
        let attributes: [(&str, &str); 7] = [
            ("target-cpu", &self.cpu),
            ("target-features", &self.features),
            ("prefer-vector-width", &bits),
            ("min-legal-vector-width", &bits),
            ("probe-stack", "inline-asm"),
            ("warn-stack-size", &frame),
            ("frame-pointer", "non-leaf"),
        ];
        for (key, value) in attributes {
            let attribute = context.create_string_attribute(key, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        }
        let nounwind = Attribute::get_named_enum_kind_id("nounwind");
        let nounwind = context.create_enum_attribute(nounwind, 0);
        function.add_attribute(AttributeLoc::Function, nounwind);
    }
}

/// Finds a level of x86-64 CPUs by name, such as `x86-64-v3`. Returns LLVM's name of the level and, as LLVM's feature string, the
/// instruction sets that code for it may use: those of the level and those in `more`.
fn level_target(name: &str, more: &[&str]) -> Result<(String, String), String> {
    let level = cpu_levels::find(name)?;
    let features: Vec<String> =
        level.features.iter().chain(more).map(|feature| format!("+{feature}")).collect();
    Ok((level.name.to_string(), features.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_lists_all_its_instruction_sets() {
        let features = |name, more: &[&str]| level_target(name, more).map(|(_, features)| features);
        let v3 = features("x86-64-v3", &[]).expect("a level");
        assert!(["+avx2", "+bmi2", "+f16c", "+fma"].iter().all(|name| v3.contains(name)), "{v3}");
        let v2 = features("x86-64-v2", &["avx"]).expect("a level");
        assert!(v2.contains("+sse4.2") && v2.ends_with(",+avx"), "{v2}");
    }
}
