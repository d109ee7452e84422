//! The CPU for which code is generated, and Cranelift's settings.

use std::sync::OnceLock;

use cranelift_codegen::isa::{self, LookupError, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use pliant_codegen::{CodegenError, ObjectTarget};
use pliant_machine::cpu_features::CPU_FEATURES;
use pliant_machine::cpu_levels;
use target_lexicon::Triple;

/// The CPU for which code is generated, and whether the code is for an object file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeTarget {
    target: ObjectTarget,
    /// Whether the code must be position independent, so that it can be loaded at any address, as the code of object files.
    position_independent: bool,
}

/// Returns Cranelift's description of the host CPU, with all its instruction sets, for code in the memory of this process.
pub(crate) fn host_isa() -> Result<OwnedTargetIsa, CodegenError> {
    static ISA: OnceLock<Result<OwnedTargetIsa, String>> = OnceLock::new();
    ISA.get_or_init(|| CodeTarget::host_memory().isa()).clone().map_err(CodegenError::Host)
}

impl CodeTarget {
    /// Describes the host CPU, as the target of code in the memory of this process.
    pub fn host_memory() -> CodeTarget {
        CodeTarget { target: ObjectTarget::default(), position_independent: false }
    }

    /// Describes the CPU `target`, as the target of code in an object file.
    pub fn object(target: &ObjectTarget) -> CodeTarget {
        CodeTarget { target: target.clone(), position_independent: true }
    }

    /// Returns Cranelift's description of the CPU.
    ///
    /// # Errors
    /// A message if Cranelift does not know the CPU or this build has no code generator for it.
    pub fn isa(&self) -> Result<OwnedTargetIsa, String> {
        self.isa_with_allocator("backtracking")
    }

    /// Returns Cranelift's description of the CPU with the single-pass register allocator, which takes linear time and spills more
    /// values to the stack than the default allocator.
    pub fn single_pass_isa(&self) -> Result<OwnedTargetIsa, String> {
        self.isa_with_allocator("single_pass")
    }

    /// Returns the instruction sets that code for the CPU may use, by LLVM's names.
    pub fn cpu_features(&self, isa: &OwnedTargetIsa) -> Vec<String> {
        let enabled = isa.isa_flags().into_iter().filter(|flag| flag.as_bool() == Some(true));
        let name = |flag: settings::Value| {
            flag.name.strip_prefix("has_").map(|name| match name {
                "sse41" => "sse4.1".to_string(),
                "sse42" => "sse4.2".to_string(),
                "bmi1" => "bmi".to_string(),
                "cmpxchg16b" => "cx16".to_string(),
                "avx_vnni" => "avxvnni".to_string(),
                "fp16" => "fullfp16".to_string(),
                other => other.to_string(),
            })
        };
        let known = |name: &String| CPU_FEATURES.iter().any(|feature| feature.name == *name);
        enabled.filter_map(name).filter(known).collect()
    }

    fn isa_with_allocator(&self, allocator: &str) -> Result<OwnedTargetIsa, String> {
        let mut flags = settings::builder();
        let verify = if cfg!(debug_assertions) { "true" } else { "false" };
        let position_independent = if self.position_independent { "true" } else { "false" };
        for (name, value) in [
            ("opt_level", "speed"),
            ("regalloc_algorithm", allocator),
            ("is_pic", position_independent),
            ("use_colocated_libcalls", "false"),
            ("enable_verifier", verify),
            ("unwind_info", "false"),
            // Probes prevent a frame larger than a page from skipping the guard page.
            ("enable_probestack", "true"),
            ("probestack_strategy", "inline"),
        ] {
            flags
                .set(name, value)
                .map_err(|e| format!("the code generator rejects the setting {name}: {e}"))?;
        }
        self.isa_builder()?.finish(settings::Flags::new(flags)).map_err(|e| e.to_string())
    }

    fn isa_builder(&self) -> Result<isa::Builder, String> {
        let Some(triple) = &self.target.triple else {
            return match &self.target.cpu {
                None => Ok(cranelift_native::builder()?),
                Some(cpu) => with_cpu(cranelift_native::builder_with_options(false)?, cpu),
            };
        };
        let unknown = || format!("Cranelift has no code generator for '{triple}'");
        let parsed = triple.parse::<Triple>().map_err(|_| unknown())?;
        let builder = isa::lookup(parsed).map_err(|error| match error {
            LookupError::SupportDisabled => format!(
                "this build has no code generator for '{triple}'; build Pliant with the feature `cross`"
            ),
            LookupError::Unsupported => unknown(),
        })?;
        match &self.target.cpu {
            None => Ok(builder),
            Some(cpu) => with_cpu(builder, cpu),
        }
    }
}

/// Enables the instruction sets of the CPU with the name `cpu`, a level such as `x86-64-v3`, in a description of a target. An
/// unknown name is an error.
fn with_cpu(mut builder: isa::Builder, cpu: &str) -> Result<isa::Builder, String> {
    if !builder.triple().architecture.to_string().starts_with("x86_64") {
        return Err(cpu_levels::unknown_cpu(cpu, &[]));
    }
    let level = cpu_levels::find(cpu)?.name;
    if level != cpu_levels::BASELINE {
        builder.enable(level).map_err(|e| format!("Cranelift rejects the CPU '{level}': {e}"))?;
    }
    Ok(builder)
}
