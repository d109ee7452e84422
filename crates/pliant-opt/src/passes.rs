//! The table of all passes, with the name, phase, contract, gate, documentation and constructor of each. The command line (`pliant
//! opt --list`), the pipelines and `docs/reference/passes.md` read it.

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
use crate::fuse::lower_unit_dim_reshapes::LowerUnitDimReshapes;
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
use crate::offload::fuse_ops_by_pattern::FuseOpsByPattern;
use crate::offload::merge_composite_functions::MergeCompositeFunctions;
use crate::offload::offload_kernels::OffloadKernels;
use crate::offload::offload_rule::Stage;
use crate::offload::run_codegen::RunCodegen;
use crate::params::bundle_model_params::BundleModelParams;
use crate::params::lift_transform_params::LiftTransformParams;
use crate::pass_contracts::{
    Gate, INVALIDATED_BY_ALLOC_TENSOR, INVALIDATED_BY_CALL_TIR, INVALIDATED_BY_OPERATOR, Phase,
    Properties, Property,
};
use crate::rewrite::adjust_matmul_order::AdjustMatmulOrder;
use crate::rewrite::combine_parallel_matmul::CombineParallelMatmul;
use crate::rewrite::einsum_to_matmul::EinsumToMatmul;
use crate::rewrite::expand_matmul_of_sum::ExpandMatmulOfSum;
use crate::rewrite::fold_scale_axis::FoldScaleAxis;
use crate::rewrite::reorder_permute_dims_after_concat::ReorderPermuteDimsAfterConcat;
use crate::rewrite::reorder_take_after_matmul::ReorderTakeAfterMatmul;

/// A row of the table of passes: the information about one pass for pipelines, the command line and the documentation.
#[derive(Clone, Copy)]
pub struct PassInfo {
    /// The name of the pass.
    pub name: &'static str,
    /// Alternative names under which the pass is found.
    pub aliases: &'static [&'static str],
    /// The phase of the compilation in which the pass runs.
    pub phase: Phase,
    /// A one-line description of what the pass does.
    pub doc: &'static str,
    /// The properties that a module must have for the pass to have its full effect; see
    /// [`pass_contracts`](crate::pass_contracts).
    pub requires: Properties,
    /// The properties that hold after the pass.
    pub ensures: Properties,
    /// The properties that may no longer hold after the pass.
    pub invalidates: Properties,
    /// The condition under which the pass is disabled.
    pub gate: Gate,
    /// The function that creates the pass with its default options.
    pub make: fn() -> Box<dyn ModulePass>,
}

macro_rules! passes {
    ($($name:literal $(| $alias:literal)* in $phase:ident: $doc:literal {
        $(requires: [$($requires:ident),*],)?
        $(ensures: [$($ensures:ident),*],)?
        $(invalidates: $($group:ident)? $([$($invalidates:ident),*])?,)?
        $(gate: $gate:expr,)?
        make: $make:expr,
    })*) => {
        /// All passes, in the order in which a build runs them.
        pub const PASSES: &[PassInfo] = &[$(PassInfo {
            name: $name,
            aliases: &[$($alias),*],
            phase: Phase::$phase,
            doc: $doc,
            requires: Properties::of(&[$($(Property::$requires),*)?]),
            ensures: Properties::of(&[$($(Property::$ensures),*)?]),
            invalidates: Properties::NONE
                $($(.union($group))? $(.union(Properties::of(&[$(Property::$invalidates),*])))?)?,
            gate: [$($gate,)? Gate::None][0],
            make: || Box::new($make),
        }),*];
    };
}

passes! {
    "Normalize" in Canonicalize: "Drop empty binding blocks and merge adjacent plain blocks" {
        ensures: [NormalBlocks],
        make: Normalize,
    }
    "LambdaLift" in Canonicalize: "Move local functions to the module; captured values become parameters or closures" {
        ensures: [NoLocalFunctions],
        invalidates: [NormalBlocks, NoDeadCode, NoUnreachableFunctions, BuiltinsLowered, SizesLowered, NoDeadReaders],
        make: LambdaLift,
    }
    "MatchUnknownShapes" in Canonicalize: "Define symbols for unknown sizes that operators need" {
        ensures: [KnownSizes],
        invalidates: [SizesLowered],
        make: MatchUnknownShapes,
    }
    "CanonicalizeBindings" in Canonicalize: "Remove copies of variables, casts that cannot fail and fields of known tuples" {
        requires: [InPlaceMarked],
        invalidates: [NormalBlocks, NoDeadCode, ConstantsFolded, NoDeadReaders, ViewsCopied],
        gate: Gate::OptLevel(1),
        make: CanonicalizeBindings,
    }
    "EinsumToMatmul" in Rewrite: "Rewrite einsums of two operands to matmuls" {
        requires: [Operators, KnownSizes],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, ConstantsFolded, NoDeadReaders, NormalBlocks],
        gate: Gate::Kernels,
        make: EinsumToMatmul,
    }
    "OffloadDequantized" in Offload: "Rewrite operators to those that kernels support, and offload matmuls by dequantized constants" {
        requires: [Operators, KnownSizes, Dequantized],
        invalidates: INVALIDATED_BY_OPERATOR [Dequantized, NoDeadCode, ConstantsFolded, NoDeadReaders, NormalBlocks, ChannelsLast],
        gate: Gate::Kernels,
        make: OffloadKernels::of(Stage::Dequantized),
    }
    "EliminateCommonSubexpr" in Canonicalize: "Compute equal values once" {
        requires: [InPlaceMarked],
        invalidates: [NormalBlocks],
        gate: Gate::OptLevel(1),
        make: EliminateCommonSubexpr::default(),
    }
    "RemoveRedundantReshape" in Canonicalize: "Merge chains of reshapes, and of transposes" {
        requires: [InPlaceMarked],
        invalidates: [NoDeadCode, NormalBlocks, NoDeadReaders],
        make: RemoveRedundantReshape,
    }
    "DeadCodeElimination" in Canonicalize: "Remove unused bindings and unreachable functions" {
        ensures: [NoDeadCode, NoUnreachableFunctions, NoDeadReaders],
        invalidates: [NormalBlocks],
        gate: Gate::OptLevel(1),
        make: DeadCodeElimination::default(),
    }
    "FoldScaleAxis" | "FoldBatchnormToConv2D" in Rewrite: "Fold per-channel scales and offsets into convolutions" {
        requires: [Operators],
        invalidates: INVALIDATED_BY_OPERATOR [ConstantsFolded, NoDeadReaders, NormalBlocks],
        gate: Gate::OptLevel(2),
        make: FoldScaleAxis,
    }
    "FoldConstant" in Canonicalize: "Evaluate pure operators of constants" {
        requires: [InPlaceMarked, NoDeadCode],
        ensures: [ConstantsFolded],
        invalidates: [Dequantized, NoDeadCode, NormalBlocks, NoUnreachableFunctions],
        gate: Gate::OptLevel(2),
        make: FoldConstant::default(),
    }
    "ConvertToDataflow" in Canonicalize: "Put pure bindings into dataflow blocks" {
        ensures: [DataflowBlocks],
        invalidates: [PlainBlocks],
        make: ConvertToDataflow::default(),
    }
    "TopologicalSort" in Canonicalize: "Sort the bindings of dataflow blocks topologically" {
        requires: [DataflowBlocks],
        make: TopologicalSort::default(),
    }
    "InlinePrivateFunctions" in Canonicalize: "Inline private functions" {
        invalidates: [NormalBlocks, NoDeadCode, ConstantsFolded, PlainBlocks, NoDeadReaders, ValuesFreed],
        make: InlinePrivateFunctions,
    }
    "RemoveUnusedParameters" in Canonicalize: "Remove unread parameters of private functions" {
        invalidates: [NoDeadCode, NoDeadReaders, ValuesFreed],
        make: RemoveUnusedParameters,
    }
    "RemoveUnusedOutputs" in Canonicalize: "Remove unread results of private functions" {
        invalidates: [NoDeadCode, NoDeadReaders, ValuesFreed],
        make: RemoveUnusedOutputs,
    }
    "ExpandTupleArguments" in Canonicalize: "Pass the fields of tuples to private functions as separate arguments" {
        invalidates: [NoDeadCode, NoDeadReaders, ValuesFreed],
        make: ExpandTupleArguments,
    }
    "LiftTransformParams" in Params: "Move computations on parameters alone to a function that runs once" {
        invalidates: [NoDeadCode, NormalBlocks, SymbolsAttached, NoDeadReaders, PlainBlocks, PurityRemoved, ValuesFreed],
        make: LiftTransformParams::default(),
    }
    "BundleModelParams" in Params: "Pass the parameters of a model as one tuple" {
        invalidates: [NormalBlocks, NoDeadCode, NoDeadReaders],
        make: BundleModelParams::default(),
    }
    "ExpandMatmulOfSum" in Rewrite: "Distribute a matmul over a sum" {
        requires: [Operators],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, NoDeadReaders, NormalBlocks],
        make: ExpandMatmulOfSum,
    }
    "AdjustMatmulOrder" in Rewrite: "Choose the cheaper order of two chained matmuls" {
        requires: [Operators, KnownSizes],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, ConstantsFolded, NoDeadReaders, NormalBlocks],
        make: AdjustMatmulOrder,
    }
    "ReorderTakeAfterMatmul" in Rewrite: "Gather columns after the matmul instead of before" {
        requires: [Operators],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, NoDeadReaders, NormalBlocks],
        make: ReorderTakeAfterMatmul,
    }
    "CombineParallelMatmul" in Rewrite: "Merge matmuls that share their left operand" {
        requires: [Operators, DataflowBlocks, KnownSizes],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, ConstantsFolded, NoDeadReaders, NormalBlocks],
        make: CombineParallelMatmul,
    }
    "ReorderPermuteDimsAfterConcat" in Rewrite: "Concatenate before transposing" {
        requires: [Operators],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, ConstantsFolded, NoDeadReaders, NormalBlocks],
        make: ReorderPermuteDimsAfterConcat,
    }
    "NormalizeGlobalVar" in Canonicalize: "Rename public functions to their global_symbol" {
        make: NormalizeGlobalVar,
    }
    "FuseOpsByPattern" in Offload: "Outline matches of backend patterns as composite functions" {
        requires: [Operators],
        ensures: [CompositesOutlined],
        invalidates: [NoLocalFunctions, NoDeadCode, NormalBlocks],
        make: FuseOpsByPattern::default(),
    }
    "MergeCompositeFunctions" in Offload: "Merge adjacent composite functions of one backend" {
        requires: [CompositesOutlined],
        ensures: [RegionsOutlined],
        invalidates: [NoLocalFunctions, NormalBlocks, NoUnreachableFunctions],
        make: MergeCompositeFunctions,
    }
    "RunCodegen" in Offload: "Compile the functions of a backend with its code generator" {
        requires: [RegionsOutlined],
        invalidates: INVALIDATED_BY_CALL_TIR,
        make: RunCodegen::default(),
    }
    "OffloadComposites" in Offload: "Replace attention with kernel calls" {
        requires: [Operators, KnownSizes],
        invalidates: INVALIDATED_BY_CALL_TIR [NoDeadCode, NoDeadReaders, NormalBlocks],
        gate: Gate::Kernels,
        make: OffloadKernels::of(Stage::Composite),
    }
    "ChannelsLast" in Offload: "Rewrite the layout of convolutions to channels last" {
        requires: [Operators, KnownSizes],
        ensures: [ChannelsLast],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, NoDeadReaders, NormalBlocks],
        gate: Gate::Kernels,
        make: ChannelsLast,
    }
    "OffloadKernels" in Offload: "Replace operators with kernel calls" {
        requires: [Operators, DataflowBlocks, KnownSizes, ConstantsFolded, ChannelsLast, NoDeadReaders],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, NormalBlocks],
        gate: Gate::Kernels,
        make: OffloadKernels::of(Stage::Kernel),
    }
    "FuseTransposeMatmul" in Fuse: "Let matmuls read transposed operands in place" {
        requires: [Operators],
        invalidates: INVALIDATED_BY_OPERATOR [NoDeadCode, NoDeadReaders, NormalBlocks],
        gate: Gate::Kernels,
        make: FuseTransposeMatmul,
    }
    "DataflowUseInplaceCalls" in Memory: "Write results to operands that are not read afterwards" {
        requires: [DataflowBlocks, InPlaceMarked],
        invalidates: INVALIDATED_BY_CALL_TIR [ViewsCopied, NoUnreachableFunctions],
        make: DataflowUseInplaceCalls,
    }
    "LegalizeOps" in Lower: "Lower operators to calls of loop functions and packed functions" {
        requires: [KnownSizes],
        ensures: [Legalized],
        invalidates: INVALIDATED_BY_CALL_TIR [Operators, Dequantized, ChannelsLast, NoDeadCode],
        make: LegalizeOps::default(),
    }
    "LowerUnitDimReshapes" in Fuse: "Lower reshapes that only insert or remove dims of size 1 to loop functions" {
        requires: [DataflowBlocks, Legalized],
        invalidates: INVALIDATED_BY_CALL_TIR [],
        gate: Gate::OptLevel(1),
        make: LowerUnitDimReshapes,
    }
    "AnnotateTIROpPattern" in Fuse: "Annotate each loop function with its fusion pattern" {
        requires: [Legalized],
        ensures: [PatternsAnnotated],
        make: AnnotateTirOpPattern,
    }
    "FuseOps" in Fuse: "Group calls of loop functions that can be fused" {
        requires: [DataflowBlocks, NoDeadCode, Legalized, PatternsAnnotated],
        ensures: [GroupsOutlined],
        gate: Gate::OptLevel(1),
        make: FuseOps::default(),
    }
    "FuseTIR" in Fuse: "Merge each group into one loop function" {
        requires: [GroupsOutlined],
        invalidates: [PatternsAnnotated, OutputsAllocated, NoUnreachableFunctions, ConstantsFolded],
        make: FuseTir,
    }
    "RewriteDataflowReshape" in Memory: "Turn calls of loop functions that only reshape into views" {
        requires: [DataflowBlocks, Legalized],
        invalidates: [NoUnreachableFunctions, BuiltinsLowered, SizesLowered],
        make: RewriteDataflowReshape,
    }
    "EliminateUnused" | "RemoveUnusedFunctions" in Canonicalize: "Remove private functions that no public function reaches" {
        ensures: [NoUnreachableFunctions],
        make: EliminateUnused,
    }
    "CopyWrittenViews" in Memory: "Copy views whose memory in-place calls may write" {
        requires: [NoLocalFunctions, InPlaceMarked],
        ensures: [ViewsCopied],
        invalidates: [PurityRemoved, ValuesFreed],
        make: CopyWrittenViews,
    }
    "CopyAliasedResults" in Memory: "Copy results that are views of parameters" {
        invalidates: [PurityRemoved, ValuesFreed],
        make: CopyAliasedResults,
    }
    "ToNonDataflow" in Lower: "Turn dataflow blocks into plain binding blocks" {
        ensures: [NormalBlocks, PlainBlocks],
        invalidates: [DataflowBlocks],
        make: ToNonDataflow,
    }
    "RemovePurityChecking" in Lower: "Call packed functions directly and stop tracking purity" {
        requires: [ViewsCopied],
        ensures: [PurityRemoved],
        invalidates: [InPlaceMarked, DataflowBlocks],
        make: RemovePurityChecking,
    }
    "CallTIRRewrite" in Lower: "Allocate the outputs of destination-passing calls explicitly" {
        requires: [Legalized, ViewsCopied],
        ensures: [OutputsAllocated, NormalBlocks, PlainBlocks],
        invalidates: INVALIDATED_BY_ALLOC_TENSOR [InPlaceMarked, DataflowBlocks, NoDeadCode],
        make: CallTirRewrite,
    }
    "StaticPlanBlockMemory" | "PlanMemory" in Memory: "Let tensors reuse storages that are provably large enough" {
        requires: [OutputsAllocated],
        ensures: [MemoryPlanned],
        invalidates: [DataflowBlocks, ValuesFreed, BuiltinsLowered, SizesLowered],
        gate: Gate::OptLevel(1),
        make: StaticPlanBlockMemory,
    }
    "LowerAllocTensor" in Memory: "Give every tensor without a planned storage one of its own" {
        requires: [OutputsAllocated, MemoryPlanned],
        ensures: [StoragesAssigned],
        invalidates: [ValuesFreed, BuiltinsLowered, SizesLowered],
        make: LowerAllocTensor,
    }
    "KillAfterLastUse" in Memory: "Free tensors and storages after their last use" {
        requires: [StoragesAssigned],
        ensures: [ValuesFreed, NormalBlocks, PlainBlocks],
        invalidates: [DataflowBlocks, BuiltinsLowered],
        make: KillAfterLastUse,
    }
    "LowerRuntimeBuiltin" | "VMBuiltinLower" | "VMMemoryLower" in Lower: "Lower memory operators to builtins of the virtual machine" {
        requires: [Legalized, StoragesAssigned],
        ensures: [BuiltinsLowered],
        invalidates: [DataflowBlocks, SizesLowered, ValuesFreed],
        make: LowerRuntimeBuiltin,
    }
    "VMShapeLower" | "ComputePrimValue" in Lower: "Compute, check and read symbolic sizes explicitly" {
        requires: [NoLocalFunctions, Legalized, OutputsAllocated, BuiltinsLowered],
        ensures: [SizesLowered],
        invalidates: [DataflowBlocks, PatternsAnnotated],
        make: VmShapeLower,
    }
    "AttachGlobalSymbol" in Lower: "Name public functions for the executable" {
        ensures: [SymbolsAttached],
        make: AttachGlobalSymbol,
    }
}

/// Finds a pass by its name or an alias, ignoring letter case.
pub fn find(name: &str) -> Option<&'static PassInfo> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    PASSES.iter().find(|p| same(p.name) || p.aliases.iter().any(|a| same(a)))
}

/// The passes that need arguments, so that the name is not sufficient to create them, each as (name, phase, one-line
/// description).
pub const WITH_PARAMETERS: &[(&str, Phase, &str)] = &[
    ("BindParams", Phase::Params, "Replace parameters of a function by constants"),
    ("BindSymbolicVars", Phase::Params, "Replace symbolic sizes by numbers or terms"),
    (
        "UpdateParamStructInfo",
        Phase::Params,
        "Change the types of parameters and infer all others again",
    ),
    ("Gradient", Phase::Differentiate, "Add the gradient of a function to the module"),
];

/// Finds a row of [`WITH_PARAMETERS`] by its name, ignoring letter case.
pub fn with_parameters(name: &str) -> Option<(&'static str, Phase, &'static str)> {
    WITH_PARAMETERS.iter().copied().find(|(known, ..)| known.eq_ignore_ascii_case(name))
}
