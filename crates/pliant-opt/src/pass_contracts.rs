//! The contracts of passes: the phase of each pass, the module properties that it requires, ensures and invalidates, and a check
//! that a pipeline satisfies every requirement.
//!
//! Every pass can run on every module. If the requirements of a pass do not hold, this is not an error: the pass optimizes less,
//! or leaves some functions unchanged. Pliant's own pipelines satisfy all requirements ([`check_order`]).

use crate::passes::PassInfo;

/// The phase of a pass. Each phase is a folder of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Passes that simplify graph functions, in [`canonicalize`](crate::canonicalize).
    Canonicalize,
    /// Passes on the parameters of a model, in [`params`](crate::params).
    Params,
    /// Automatic differentiation, in [`differentiate`](crate::differentiate).
    Differentiate,
    /// Algebraic rewrites of operators, in [`rewrite`](crate::rewrite).
    Rewrite,
    /// Passes that replace operators by calls of library kernels or of external code generators, in [`offload`](crate::offload).
    Offload,
    /// Passes that merge operators and loop functions, in [`fuse`](crate::fuse).
    Fuse,
    /// Passes that lower operators to constructs that the virtual machine executes, in [`lower`](crate::lower).
    Lower,
    /// Passes that share, free and copy memory, in [`memory`](crate::memory).
    Memory,
}

impl Phase {
    /// All phases, in the order of declaration.
    pub const ALL: &[Phase] = &[
        Phase::Canonicalize,
        Phase::Params,
        Phase::Differentiate,
        Phase::Rewrite,
        Phase::Offload,
        Phase::Fuse,
        Phase::Lower,
        Phase::Memory,
    ];

    /// The name of the phase and of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Canonicalize => "canonicalize",
            Phase::Params => "params",
            Phase::Differentiate => "differentiate",
            Phase::Rewrite => "rewrite",
            Phase::Offload => "offload",
            Phase::Fuse => "fuse",
            Phase::Lower => "lower",
            Phase::Memory => "memory",
        }
    }

    /// A one-line description of the passes of the phase.
    pub const fn doc(self) -> &'static str {
        match self {
            Phase::Canonicalize => {
                "simplify graph functions and bring them to the form that later phases read"
            }
            Phase::Params => "bind, bundle, retype or precompute the parameters of a model",
            Phase::Differentiate => "differentiate functions",
            Phase::Rewrite => "rewrite operators algebraically",
            Phase::Offload => {
                "replace operators by calls of library kernels or of external code generators"
            }
            Phase::Fuse => "merge operators and loop functions",
            Phase::Lower => "lower operators to what the virtual machine runs",
            Phase::Memory => "share, free and copy memory",
        }
    }
}

/// The condition under which a pass is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// The pass always runs.
    None,
    /// The pass changes nothing if library kernels are disabled ([`PassContext::kernels`](pliant_pass::PassContext::kernels)).
    Kernels,
    /// Pipelines skip the pass below this optimization level.
    OptLevel(u8),
}

macro_rules! properties {
    ($($name:ident: $doc:literal,)*) => {
        /// A property of a module that passes require, ensure or invalidate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Property {
            $(#[doc = $doc] $name,)*
        }

        impl Property {
            /// All properties.
            pub const ALL: &[Property] = &[$(Property::$name),*];

            /// A one-sentence description of the property.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Property::$name => $doc,)*
                }
            }
        }
    };
}

properties! {
    Operators: "Operators are not lowered to loop functions yet.",
    DataflowBlocks: "Pure bindings are in dataflow blocks, as far as the program was written or imported so.",
    Dequantized: "Dequantization of constants is still written out as operators.",
    InPlaceMarked: "Calls that write into their operands are marked: `R.call_tir_inplace`, `R.call_inplace_packed`.",
    NormalBlocks: "No binding block is empty, and no two plain blocks are adjacent.",
    NoLocalFunctions: "No function contains a local function.",
    KnownSizes: "Operands of known rank have known sizes where their operator needs them.",
    NoDeadCode: "No binding without effects is unused.",
    NoDeadReaders: "No unused binding reads the result of a matmul or convolution, so that its readers can become an epilogue.",
    NoUnreachableFunctions: "Public functions reach every private function.",
    ConstantsFolded: "No pure operator on tensors has only constant operands, within the limits of FoldConstant.",
    ChannelsLast: "Channels of convolutions that kernels can take come last.",
    CompositesOutlined: "Matches of backend patterns are functions with the attribute `Composite`.",
    RegionsOutlined: "Regions of a backend are functions with the attribute `Codegen`.",
    Legalized: "Operators whose operands have a known rank and data type are calls of loop functions or packed functions.",
    PatternsAnnotated: "Every loop function has the attribute `op_pattern`.",
    GroupsOutlined: "Calls of loop functions that fuse are grouped in functions with the attribute `Primitive`.",
    ViewsCopied: "No in-place call writes memory that another value shares.",
    PlainBlocks: "No sequence has a dataflow block.",
    PurityRemoved: "Packed functions are called directly, not through `R.call_pure_packed` or `R.call_inplace_packed`.",
    OutputsAllocated: "Calls of loop functions take their outputs as arguments.",
    MemoryPlanned: "Tensors that can share storage do.",
    StoragesAssigned: "Every allocated tensor has a storage.",
    ValuesFreed: "Tensors and storages are freed after their last use.",
    BuiltinsLowered: "Memory operators, and operators of unknown rank or data type, are builtins of the virtual machine.",
    SizesLowered: "Symbolic sizes are computed, checked and read explicitly.",
    SymbolsAttached: "Public functions have the attribute `global_symbol`.",
}

/// A set of module properties, as a bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties(u32);

impl Properties {
    /// The empty set.
    pub const NONE: Properties = Properties(0);

    /// The set that contains the listed properties.
    pub const fn of(list: &[Property]) -> Properties {
        let (mut bits, mut i) = (0, 0);
        while i < list.len() {
            bits |= 1 << list[i] as u32;
            i += 1;
        }
        Properties(bits)
    }

    /// The union with another set.
    pub const fn union(self, other: Properties) -> Properties {
        Properties(self.0 | other.0)
    }

    /// The properties of this set that are not in the other set.
    pub const fn without(self, other: Properties) -> Properties {
        Properties(self.0 & !other.0)
    }

    /// Whether this set contains every property of the other set.
    pub const fn includes(self, other: Properties) -> bool {
        other.0 & !self.0 == 0
    }

    /// The properties in this set, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = Property> {
        let all = Property::ALL.iter().copied();
        all.filter(move |&p| self.includes(Properties::of(&[p])))
    }
}

/// The properties of a module created by the parser or an importer.
pub const INITIAL: Properties = Properties::of(&[
    Property::Operators,
    Property::DataflowBlocks,
    Property::Dequantized,
    Property::InPlaceMarked,
]);

/// The properties that bytecode generation requires.
pub const EXECUTABLE: Properties = Properties::of(&[
    Property::NoLocalFunctions,
    Property::Legalized,
    Property::PlainBlocks,
    Property::PurityRemoved,
    Property::OutputsAllocated,
    Property::StoragesAssigned,
    Property::BuiltinsLowered,
    Property::SizesLowered,
    Property::SymbolsAttached,
]);

/// The properties that a pass invalidates if it inserts an `R.builtin.alloc_tensor`.
pub const INVALIDATED_BY_ALLOC_TENSOR: Properties = Properties::of(&[
    Property::MemoryPlanned,
    Property::StoragesAssigned,
    Property::ValuesFreed,
    Property::BuiltinsLowered,
    Property::SizesLowered,
]);

/// The properties that a pass invalidates if it adds a loop function and an `R.call_tir` that calls it.
pub const INVALIDATED_BY_CALL_TIR: Properties = Properties::of(&[
    Property::PatternsAnnotated,
    Property::GroupsOutlined,
    Property::OutputsAllocated,
    Property::PurityRemoved,
])
.union(INVALIDATED_BY_ALLOC_TENSOR);

/// The properties that a pass invalidates if it inserts a call of an operator.
pub const INVALIDATED_BY_OPERATOR: Properties =
    Properties::of(&[Property::Legalized]).union(INVALIDATED_BY_CALL_TIR);

impl PassInfo {
    /// Returns the properties that hold after the pass if `current` hold before it.
    pub const fn apply(&self, current: Properties) -> Properties {
        current.without(self.invalidates).union(self.ensures)
    }
}

/// Checks that the requirements of each pass in a sequence hold. `start` contains the properties before the first pass. Returns
/// the properties after the last pass. Passes that a [`Gate`] may disable are assumed to run. If they do not, later passes
/// optimize less but remain correct.
///
/// # Errors
/// The first pass whose requirements do not hold, with the missing properties.
pub fn check_order<'a>(
    passes: impl IntoIterator<Item = &'a PassInfo>,
    start: Properties,
) -> Result<Properties, String> {
    passes.into_iter().try_fold(start, |current, pass| {
        let missing: Vec<Property> = pass.requires.without(current).iter().collect();
        if missing.is_empty() {
            return Ok(pass.apply(current));
        }
        Err(format!(
            "the pass {} requires the module properties {missing:?}, which no earlier pass establishes",
            pass.name
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::find;

    #[test]
    fn check_order_reports_a_missing_requirement() {
        let order = |names: &[&str]| {
            check_order(names.iter().map(|n| find(n).expect("the pass exists")), INITIAL)
        };
        assert!(
            order(&[
                "MatchUnknownShapes",
                "OffloadDequantized",
                "DeadCodeElimination",
                "FoldConstant"
            ])
            .is_ok()
        );
        let error = order(&[
            "MatchUnknownShapes",
            "DeadCodeElimination",
            "FoldConstant",
            "OffloadDequantized",
        ])
        .expect_err("too late");
        assert_eq!(
            error,
            "the pass OffloadDequantized requires the module properties [Dequantized], which no earlier pass establishes"
        );
    }

    #[test]
    fn some_pass_ensures_each_required_property() {
        let ensured = crate::PASSES.iter().fold(INITIAL, |all, p| all.union(p.ensures));
        for pass in crate::PASSES {
            assert!(ensured.includes(pass.requires), "{}", pass.name);
        }
        assert!(ensured.includes(EXECUTABLE));
    }
}
