//! The named sequences of passes. The contracts of passes ([`pass_contracts`](crate::pass_contracts)) determine which orders are
//! valid: [`pipeline`] checks that the requirements of every step hold, and that the result has the properties that the pipeline
//! guarantees.

use pliant_pass::Sequential;

use crate::pass_contracts::{EXECUTABLE, INITIAL, Properties, check_order};
use crate::passes::{PassInfo, find};

/// The passes of the minimum build, which lower calls of loop functions for bytecode generation. They accept a module at any
/// stage, because each pass skips parts that are already lowered.
pub const BUILD_PASSES: &[&str] = &[
    "LambdaLift",
    "CopyWrittenViews",
    "CopyAliasedResults",
    "ToNonDataflow",
    "RemovePurityChecking",
    "CallTIRRewrite",
    "StaticPlanBlockMemory",
    "LowerAllocTensor",
    "KillAfterLastUse",
    "LowerRuntimeBuiltin",
    "VMShapeLower",
    "AttachGlobalSymbol",
];

/// The passes of graph-level optimization, which run before [`BUILD_PASSES`].
pub const GRAPH_PASSES: &[&str] = &[
    "Normalize",
    "LambdaLift",
    "MatchUnknownShapes",
    "EinsumToMatmul",
    "OffloadDequantized",
    // Merges the casts that the rules of OffloadDequantized have added to one operand.
    "EliminateCommonSubexpr",
    // Transposes that compose to the identity would get transposes to channels last around them.
    "RemoveRedundantReshape",
    // The packed weights have replaced dequantized ones, which are unused now and must not be folded.
    "DeadCodeElimination",
    "FoldScaleAxis",
    "FoldConstant",
    "OffloadComposites",
    "ChannelsLast",
    // An unused transpose would count as a reader and prevent the fusion of an epilogue.
    "DeadCodeElimination",
    "OffloadKernels",
    "DeadCodeElimination",
    // The right operands that are left are not constant; matmuls read their transposes in place.
    "FuseTransposeMatmul",
    "LegalizeOps",
    // Operands that only determined a type are unused now.
    "DeadCodeElimination",
    "LowerUnitDimReshapes",
    "AnnotateTIROpPattern",
    "FuseOps",
    "FuseTIR",
    "RewriteDataflowReshape",
    "EliminateUnused",
];

/// The passes that the pipeline `minimum` runs before [`BUILD_PASSES`], to lower operators to loop functions.
const LEGALIZE: &[&str] = &["MatchUnknownShapes", "LegalizeOps"];

/// A named sequence of passes.
struct Pipeline {
    name: &'static str,
    doc: &'static str,
    parts: &'static [&'static [&'static str]],
    /// The properties that the pipeline guarantees for the resulting module.
    goal: Properties,
}

const PIPELINES: &[Pipeline] = &[
    Pipeline {
        name: "default",
        doc: "Compile for the virtual machine: the pipeline zero, then the pipeline minimum",
        parts: &[GRAPH_PASSES, BUILD_PASSES],
        goal: EXECUTABLE,
    },
    Pipeline {
        name: "default_build",
        doc: "Compile for the virtual machine: the pipeline zero, then the pipeline minimum",
        parts: &[GRAPH_PASSES, BUILD_PASSES],
        goal: EXECUTABLE,
    },
    Pipeline {
        name: "zero",
        doc: "Optimize on the graph level: fold, offload, legalize, fuse",
        parts: &[GRAPH_PASSES],
        goal: Properties::NONE,
    },
    Pipeline {
        name: "minimum",
        doc: "Lower a module at any stage to what the virtual machine runs",
        parts: &[LEGALIZE, BUILD_PASSES],
        goal: EXECUTABLE,
    },
];

/// The names of the pipelines.
pub const NAMES: &[&str] = &["default", "default_build", "zero", "minimum"];

/// A one-line description of a pipeline; empty if there is no pipeline with this name.
pub fn doc(name: &str) -> &'static str {
    PIPELINES.iter().find(|p| p.name == name).map_or("", |p| p.doc)
}

/// The rows of the table of passes for the steps of a pipeline; `None` if there is no pipeline with this name.
pub fn steps(name: &str) -> Option<Vec<&'static PassInfo>> {
    let pipeline = PIPELINES.iter().find(|p| p.name == name)?;
    let names = pipeline.parts.iter().copied().flatten();
    Some(
        names
            .map(|name| {
                find(name).expect("every pass that a pipeline names is in the table of passes")
            })
            .collect(),
    )
}

/// Creates the pipeline with this name: `zero` (graph level only), `minimum` (lowering only), `default` (both).
pub fn pipeline(name: &str) -> Option<Sequential> {
    let steps = steps(name)?;
    debug_assert_eq!(check_pipeline(name), Ok(()), "pipeline {name}");
    Some(Sequential::new(name, steps.iter().map(|step| (step.make)()).collect()))
}

/// Checks that the order of a pipeline's passes satisfies all requirements, and that the result reaches the pipeline's goal.
fn check_pipeline(name: &str) -> Result<(), String> {
    let pipeline = PIPELINES
        .iter()
        .find(|p| p.name == name)
        .ok_or_else(|| format!("there is no pipeline '{name}'"))?;
    let properties = check_order(steps(name).unwrap_or_default(), INITIAL)?;
    let missing: Vec<_> = pipeline.goal.without(properties).iter().collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the module is not guaranteed to have the properties {missing:?} after the pipeline '{name}'"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass_contracts::Gate;

    #[test]
    fn every_pipeline_names_known_passes() {
        assert!(PIPELINES.iter().map(|p| p.name).eq(NAMES.iter().copied()));
        for name in NAMES {
            assert_eq!(check_pipeline(name), Ok(()), "{name}");
            let sequence = pipeline(name).expect("a pipeline of the list exists");
            assert!(!sequence.passes().is_empty());
        }
        assert!(pipeline("nonsense").is_none());
    }

    #[test]
    fn table_rows_are_in_the_order_of_the_default_pipeline() {
        let mut first: Vec<&str> = Vec::new();
        for step in steps("default").unwrap_or_default() {
            if !first.contains(&step.name) {
                first.push(step.name);
            }
        }
        let table = crate::passes::PASSES.iter().map(|p| p.name).filter(|n| first.contains(n));
        assert_eq!(table.collect::<Vec<_>>(), first);
    }

    #[test]
    fn table_rows_match_the_names_and_levels_of_their_passes() {
        for info in crate::passes::PASSES {
            assert_eq!((info.make)().name(), info.name);
            assert!(find(&info.name.to_lowercase()).is_some());
            let level = match info.gate {
                // FuseOps checks the level of its own setting.
                Gate::OptLevel(_) if info.name == "FuseOps" => 0,
                Gate::OptLevel(level) => level,
                Gate::None | Gate::Kernels => 0,
            };
            assert_eq!((info.make)().opt_level(), level, "{}", info.name);
        }
    }
}
