//! The table of all passes: name, constructor and a line of documentation each. `pliant opt
//! --list`, the command line and
//! the pipelines read it.

use pliant_pass::ModulePass;

use crate::attach_global_symbol::AttachGlobalSymbol;
use crate::call_tir_rewrite::CallTirRewrite;
use crate::eliminate_unused::EliminateUnused;
use crate::kill_after_last_use::KillAfterLastUse;
use crate::legalize_ops::LegalizeOps;
use crate::lower_alloc_tensor::LowerAllocTensor;
use crate::lower_runtime_builtin::LowerRuntimeBuiltin;
use crate::normalize::Normalize;
use crate::plan_memory::StaticPlanBlockMemory;
use crate::remove_purity_checking::RemovePurityChecking;
use crate::to_non_dataflow::ToNonDataflow;
use crate::vm_shape_lower::VmShapeLower;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct PassInfo {
    /// The pass's name.
    pub name: &'static str,
    /// Other names that it answers to.
    pub aliases: &'static [&'static str],
    /// What it does, in a line.
    pub doc: &'static str,
    /// Makes it.
    pub make: fn() -> Box<dyn ModulePass>,
}

macro_rules! passes {
    ($($name:literal $(| $alias:literal)* : $doc:literal => $make:expr;)*) => {
        /// Every pass, in the order in which a build runs them.
        pub const PASSES: &[PassInfo] = &[$(PassInfo {
            name: $name,
            aliases: &[$($alias),*],
            doc: $doc,
            make: || Box::new($make),
        }),*];
    };
}

passes! {
    "Normalize": "Drop empty binding blocks and join neighbouring ones" => Normalize;
    "LegalizeOps": "Turn operators into calls of loop functions and of packed functions" => LegalizeOps;
    "ToNonDataflow": "Turn dataflow blocks into plain binding blocks" => ToNonDataflow;
    "RemovePurityChecking": "Stop tracking which calls have effects" => RemovePurityChecking;
    "CallTIRRewrite": "Allocate the outputs of destination-passing calls explicitly" => CallTirRewrite;
    "StaticPlanBlockMemory" | "PlanMemory": "Let tensors whose sizes are provably equal share storage"
        => StaticPlanBlockMemory;
    "LowerAllocTensor": "Give every tensor left over by memory planning a storage of its own" => LowerAllocTensor;
    "KillAfterLastUse": "Give tensors and storages back after their last use" => KillAfterLastUse;
    "LowerRuntimeBuiltin" | "VMBuiltinLower" | "VMMemoryLower": "Turn memory operators into builtins of the machine"
        => LowerRuntimeBuiltin;
    "VMShapeLower": "Make all work on symbolic sizes explicit, with checks" => VmShapeLower;
    "AttachGlobalSymbol": "Give public functions their names in the executable" => AttachGlobalSymbol;
    "EliminateUnused" | "RemoveUnusedFunctions": "Remove private functions that nothing reaches" => EliminateUnused;
}

/// The row of the pass of that name, or of that other name; letter case does not matter.
pub fn find(name: &str) -> Option<&'static PassInfo> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    PASSES.iter().find(|p| same(p.name) || p.aliases.iter().any(|a| same(a)))
}
