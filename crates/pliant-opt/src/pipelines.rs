//! The named sequences of passes.

use pliant_pass::Sequential;

use crate::passes::find;

/// The minimum build: from calls of loop functions to what the machine's code generator takes. A
/// module at any stage may
/// enter: each pass leaves alone what is lowered already.
pub const MINIMUM: &[&str] = &[
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

/// Optimisation on the graph level, before the minimum build.
pub const ZERO: &[&str] = &[
    "Normalize",
    "LambdaLift",
    "MatchUnknownShapes",
    "EinsumToMatmul",
    "WidenProducts",
    "EliminateCommonSubexpr",
    "MultiplyQuantized",
    "PackStored",
    // What is stored in fewer bits is not computed in more.
    "DeadCodeElimination",
    "FoldConstant",
    "FuseAttention",
    "ChannelsLast",
    // Transposes that nobody reads would keep results from being finished where they are made.
    "DeadCodeElimination",
    "PackConvolutions",
    "PackIntegers",
    "PackIntegerConvolutions",
    "PackRecurrent",
    "DeadCodeElimination",
    "PackConstants",
    // What is left multiplies variables, which products read as they lie.
    "FuseTransposeMatmul",
    "LegalizeOps",
    // Loop functions do not take what their operators read nothing of but the type.
    "DeadCodeElimination",
    "AnnotateTIROpPattern",
    "FuseOps",
    "FuseTIR",
    "RewriteDataflowReshape",
    "EliminateUnused",
];

/// The names of the pipelines.
pub const NAMES: &[&str] = &["default", "default_build", "zero", "minimum"];

/// What a pipeline is for, in a line.
pub fn doc(name: &str) -> &'static str {
    match name {
        "zero" => "Optimise on the graph level: fold, legalize, fuse",
        "minimum" => "Lower a module at any stage to what the machine runs",
        _ => "Build: zero, then minimum",
    }
}

/// The passes of the pipeline of that name: `zero` (graph level only), `minimum` (lowering only), `default` (both).
pub fn pipeline(name: &str) -> Option<Sequential> {
    let passes: Vec<&str> = match name {
        "zero" => ZERO.to_vec(),
        "minimum" => [&["MatchUnknownShapes", "LegalizeOps"], MINIMUM].concat(),
        "default" | "default_build" => [ZERO, MINIMUM].concat(),
        _ => return None,
    };
    let passes = passes
        .into_iter()
        .map(|name| (find(name).expect("pipelines name passes of the table").make)())
        .collect();
    Some(Sequential::new(name, passes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pipeline_names_known_passes() {
        for name in NAMES {
            let sequence = pipeline(name).expect("a pipeline of the list exists");
            assert!(!sequence.passes().is_empty());
        }
        assert!(pipeline("nonsense").is_none());
    }

    #[test]
    fn the_table_and_the_passes_agree_on_names() {
        for info in crate::passes::PASSES {
            assert_eq!((info.make)().name(), info.name);
            assert!(find(&info.name.to_lowercase()).is_some());
        }
    }
}
