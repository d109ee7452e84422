//! The CPU for which code is generated: its name and instruction sets in LLVM's terms, and its vector width.

use std::sync::OnceLock;

use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::targets::{
    CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetMachineOptions,
};
use inkwell::values::FunctionValue;
use pliant_codegen::CodegenError;
use pliant_machine::isa::{self, Isa, Vectors};

/// Maximum size in bytes of a function's stack frame. Worker threads have a stack of 2 MiB.
pub(crate) const MAX_FRAME_BYTES: u32 = 512 << 10;

/// The host CPU, as LLVM describes it, restricted to the instruction set that `PLIANT_ISA` selects.
#[derive(Debug)]
pub(crate) struct HostTarget {
    cpu: String,
    features: String,
    /// The width of the widest vectors, in bits.
    pub vector_bits: u32,
    /// Whether the CPU has fused multiply-add.
    pub has_fma: bool,
    /// Whether the CPU has AVX-512.
    pub has_avx512: bool,
}

impl HostTarget {
    /// Returns the host CPU.
    ///
    /// # Errors
    /// `Host`: LLVM has no code generator for the CPU, or the CPU has no instructions that convert float16.
    pub fn get() -> Result<&'static HostTarget, CodegenError> {
        static TARGET: OnceLock<Result<HostTarget, String>> = OnceLock::new();
        TARGET.get_or_init(HostTarget::detect).as_ref().map_err(|e| CodegenError::Host(e.clone()))
    }

    fn detect() -> Result<HostTarget, String> {
        Target::initialize_native(&InitializationConfig::default())?;
        let isa = isa::selected().map_err(|e| e.to_string())?;
        let (cpu, features) = match isa {
            // Levels of the x86-64 ABI. Without F16C, each conversion of a float16 would be a library call.
            Isa::Avx2 => ("x86-64-v3".to_string(), "+f16c,+fma".to_string()),
            Isa::Portable if cfg!(target_arch = "x86_64") => {
                ("x86-64-v2".to_string(), "+avx,+f16c".to_string())
            }
            _ => (
                TargetMachine::get_host_cpu_name().to_string(),
                TargetMachine::get_host_cpu_features().to_string(),
            ),
        };
        #[cfg(target_arch = "x86_64")]
        if !std::arch::is_x86_feature_detected!("f16c") {
            return Err("the LLVM target needs a CPU with the instruction set F16C; use the target \"cranelift\"".into());
        }
        let vector_bits = match isa.vectors() {
            Vectors::Avx512 => 512,
            Vectors::Avx2 => 256,
            Vectors::Neon | Vectors::Portable => 128,
        };
        let has_fma = isa != Isa::Portable || cfg!(target_arch = "aarch64");
        let has_avx512 = isa.vectors() == Vectors::Avx512;
        Ok(HostTarget { cpu, features, vector_bits, has_fma, has_avx512 })
    }

    /// Creates LLVM's code generator for the CPU. The code is position independent.
    pub fn machine(&self) -> Result<TargetMachine, String> {
        let triple = TargetMachine::get_default_triple();
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
