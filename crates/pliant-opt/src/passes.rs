//! The table of all passes: name, constructor and a line of documentation each. `pliant opt
//! --list`, the command line and
//! the pipelines read it.

use pliant_pass::ModulePass;

use crate::canonicalize::canonicalize_bindings::CanonicalizeBindings;
use crate::canonicalize::convert_to_dataflow::ConvertToDataflow;
use crate::canonicalize::dead_code_elimination::DeadCodeElimination;
use crate::canonicalize::eliminate_common_subexpr::EliminateCommonSubexpr;
use crate::canonicalize::eliminate_unused::EliminateUnused;
use crate::canonicalize::expand_tuple_arguments::ExpandTupleArguments;
use crate::canonicalize::fold_constant::FoldConstant;
use crate::canonicalize::inline_private_functions::InlinePrivateFunctions;
use crate::canonicalize::lambda_lift::LambdaLift;
use crate::canonicalize::match_unknown_shapes::MatchUnknownShapes;
use crate::canonicalize::normalize::Normalize;
use crate::canonicalize::normalize_global_var::NormalizeGlobalVar;
use crate::canonicalize::remove_redundant_reshape::RemoveRedundantReshape;
use crate::canonicalize::remove_unused_outputs::RemoveUnusedOutputs;
use crate::canonicalize::remove_unused_parameters::RemoveUnusedParameters;
use crate::canonicalize::topological_sort::TopologicalSort;
use crate::fuse::annotate_tir_op_pattern::AnnotateTirOpPattern;
use crate::fuse::fuse_ops::FuseOps;
use crate::fuse::fuse_tir::FuseTir;
use crate::fuse::fuse_transpose_matmul::FuseTransposeMatmul;
use crate::lower::attach_global_symbol::AttachGlobalSymbol;
use crate::lower::call_tir_rewrite::CallTirRewrite;
use crate::lower::legalize_ops::LegalizeOps;
use crate::lower::lower_runtime_builtin::LowerRuntimeBuiltin;
use crate::lower::remove_purity_checking::RemovePurityChecking;
use crate::lower::to_non_dataflow::ToNonDataflow;
use crate::lower::vm_shape_lower::VmShapeLower;
use crate::memory::copy_aliased_results::CopyAliasedResults;
use crate::memory::copy_written_views::CopyWrittenViews;
use crate::memory::dataflow_use_inplace_calls::DataflowUseInplaceCalls;
use crate::memory::kill_after_last_use::KillAfterLastUse;
use crate::memory::lower_alloc_tensor::LowerAllocTensor;
use crate::memory::plan_memory::StaticPlanBlockMemory;
use crate::memory::rewrite_dataflow_reshape::RewriteDataflowReshape;
use crate::offload::channels_last::ChannelsLast;
use crate::offload::fuse_attention::FuseAttention;
use crate::offload::fuse_ops_by_pattern::FuseOpsByPattern;
use crate::offload::merge_composite_functions::MergeCompositeFunctions;
use crate::offload::multiply_quantized::MultiplyQuantized;
use crate::offload::pack_constants::PackConstants;
use crate::offload::pack_convolutions::PackConvolutions;
use crate::offload::pack_integer_convolutions::PackIntegerConvolutions;
use crate::offload::pack_integers::PackIntegers;
use crate::offload::pack_recurrent::PackRecurrent;
use crate::offload::pack_stored::PackStored;
use crate::offload::run_codegen::RunCodegen;
use crate::offload::widen_products::WidenProducts;
use crate::params::bundle_model_params::BundleModelParams;
use crate::params::lift_transform_params::LiftTransformParams;
use crate::rewrite::adjust_matmul_order::AdjustMatmulOrder;
use crate::rewrite::combine_parallel_matmul::CombineParallelMatmul;
use crate::rewrite::einsum_to_matmul::EinsumToMatmul;
use crate::rewrite::expand_matmul_of_sum::ExpandMatmulOfSum;
use crate::rewrite::reorder_permute_dims_after_concat::ReorderPermuteDimsAfterConcat;
use crate::rewrite::reorder_take_after_matmul::ReorderTakeAfterMatmul;

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
    "LambdaLift": "Make local functions functions of the module, with what they capture as parameters" => LambdaLift;
    "CanonicalizeBindings": "Remove bindings that only name again what has a name" => CanonicalizeBindings;
    "EliminateCommonSubexpr": "Compute once what several bindings compute" => EliminateCommonSubexpr::default();
    "DeadCodeElimination": "Remove bindings and functions that nothing uses" => DeadCodeElimination::default();
    "EinsumToMatmul": "Write as matrix products the sums of products that are such" => EinsumToMatmul;
    "WidenProducts": "Compute products, convolutions and attention of 16-bit floats in float32" => WidenProducts;
    "MultiplyQuantized": "Multiply integers where both operands of a product are dequantised, and scale the sums"
        => MultiplyQuantized;
    "PackStored": "Make calls of the library of products by what is dequantised from constants" => PackStored;
    "FoldConstant": "Compute what depends on constants alone" => FoldConstant::default();
    "RemoveRedundantReshape": "Reshape once what is reshaped several times in a row" => RemoveRedundantReshape;
    "ConvertToDataflow": "Make dataflow blocks of bindings without effects" => ConvertToDataflow::default();
    "TopologicalSort": "Sort the bindings of dataflow blocks, depth first" => TopologicalSort::default();
    "InlinePrivateFunctions": "Put the bodies of private functions where they are called" => InlinePrivateFunctions;
    "RemoveUnusedParameters": "Remove parameters of private functions that nothing reads" => RemoveUnusedParameters;
    "RemoveUnusedOutputs": "Remove results of private functions that no caller reads" => RemoveUnusedOutputs;
    "ExpandTupleArguments": "Hand tuples to private functions field by field" => ExpandTupleArguments;
    "LiftTransformParams": "Lift what depends on a model's parameters alone into a function of its own"
        => LiftTransformParams::default();
    "BundleModelParams": "Make the parameters of a model one tuple" => BundleModelParams::default();
    "ExpandMatmulOfSum": "Multiply the terms of a sum one by one" => ExpandMatmulOfSum;
    "AdjustMatmulOrder": "Multiply three matrices in the cheaper order" => AdjustMatmulOrder;
    "ReorderTakeAfterMatmul": "Take columns of a product instead of columns of the matrix" => ReorderTakeAfterMatmul;
    "CombineParallelMatmul": "Multiply a tensor once by several matrices side by side" => CombineParallelMatmul;
    "ReorderPermuteDimsAfterConcat": "Join tensors before their dims are permuted alike"
        => ReorderPermuteDimsAfterConcat;
    "FuseTransposeMatmul": "Multiply by a transposed matrix as it lies in memory" => FuseTransposeMatmul;
    "NormalizeGlobalVar": "Give public functions the names that their global_symbol says" => NormalizeGlobalVar;
    "MatchUnknownShapes": "Give symbols to unknown sizes that operators need" => MatchUnknownShapes;
    "FuseOpsByPattern": "Make functions of what matches the patterns of backends" => FuseOpsByPattern::default();
    "MergeCompositeFunctions": "Join neighbouring functions of one backend" => MergeCompositeFunctions;
    "RunCodegen": "Let code generators take the functions of their backends" => RunCodegen::default();
    "FuseAttention": "Make one call of the library of what attention is written as" => FuseAttention;
    "ChannelsLast": "Let convolutions read and write data whose channels come last" => ChannelsLast;
    "PackConvolutions": "Make calls of the library of convolutions with constant weights" => PackConvolutions;
    "PackIntegers": "Make calls of the library of products of 8-bit integers with constants" => PackIntegers;
    "PackIntegerConvolutions": "Make calls of the library of convolutions of 8-bit integers with constant weights"
        => PackIntegerConvolutions;
    "PackRecurrent": "Make calls of the library of recurrent layers with constant weights" => PackRecurrent;
    "PackConstants": "Give the constant operands of matrix products the form that kernels read fastest" => PackConstants;
    "DataflowUseInplaceCalls": "Write results over operands that die there" => DataflowUseInplaceCalls;
    "LegalizeOps": "Turn operators into calls of loop functions and of packed functions" => LegalizeOps::default();
    "AnnotateTIROpPattern": "Note on each loop function how it may be fused" => AnnotateTirOpPattern;
    "FuseOps": "Group calls of loop functions that are better done together" => FuseOps::default();
    "FuseTIR": "Make one loop function of each group of calls" => FuseTir;
    "RewriteDataflowReshape": "Turn calls of loop functions that only reshape into reshapes without a copy"
        => RewriteDataflowReshape;
    "CopyWrittenViews": "Copy views whose memory calls that work in place may write" => CopyWrittenViews;
    "CopyAliasedResults": "Copy results that are views of parameters" => CopyAliasedResults;
    "ToNonDataflow": "Turn dataflow blocks into plain binding blocks" => ToNonDataflow;
    "RemovePurityChecking": "Stop tracking which calls have effects" => RemovePurityChecking;
    "CallTIRRewrite": "Allocate the outputs of destination-passing calls explicitly" => CallTirRewrite;
    "StaticPlanBlockMemory" | "PlanMemory": "Let tensors whose sizes are provably equal share storage"
        => StaticPlanBlockMemory;
    "LowerAllocTensor": "Give every tensor left over by memory planning a storage of its own" => LowerAllocTensor;
    "KillAfterLastUse": "Give tensors and storages back after their last use" => KillAfterLastUse;
    "LowerRuntimeBuiltin" | "VMBuiltinLower" | "VMMemoryLower": "Turn memory operators into builtins of the machine"
        => LowerRuntimeBuiltin;
    "VMShapeLower" | "ComputePrimValue": "Make all work on symbolic sizes explicit, with checks" => VmShapeLower;
    "AttachGlobalSymbol": "Give public functions their names in the executable" => AttachGlobalSymbol;
    "EliminateUnused" | "RemoveUnusedFunctions": "Remove private functions that nothing reaches" => EliminateUnused;
}

/// The row of the pass of that name, or of that other name; letter case does not matter.
pub fn find(name: &str) -> Option<&'static PassInfo> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    PASSES.iter().find(|p| same(p.name) || p.aliases.iter().any(|a| same(a)))
}

/// Passes that are nothing without parameters, and so cannot be made by name: name and a line of documentation.
pub const WITH_PARAMETERS: &[(&str, &str)] = &[
    ("BindParams", "Make parameters of a function constants"),
    ("BindSymbolicVars", "Make symbolic sizes numbers"),
    ("UpdateParamStructInfo", "Give parameters other types, and infer all others again"),
];

/// The row of [`WITH_PARAMETERS`] of that name; letter case does not matter.
pub fn with_parameters(name: &str) -> Option<(&'static str, &'static str)> {
    WITH_PARAMETERS.iter().copied().find(|(known, _)| known.eq_ignore_ascii_case(name))
}
