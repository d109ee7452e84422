//! The table of the passes on loop functions, and the default pipeline from a function with blocks to a lowered function.

use pliant_ir::AttrValue;
use pliant_ir::attr_names::IS_SCHEDULED;
use pliant_ir::tir::PrimFunc;

use crate::lowering_error::LowerError;
use crate::{
    check_bounds, clear_scratch_buffers, compact_buffers, contract_products,
    convert_blocks_to_loops, estimate_parallel_work, flatten_buffers, inline_elementwise_stages,
    lower_block_init, partition_loops, reuse_output_buffer, schedule, simplify_loop_functions,
    stack_guard, strength_reduction, unroll_loops, vectorize_loops,
};

/// A lowering pass, which transforms one loop function in place.
pub type PassFn = fn(&mut PrimFunc) -> Result<(), LowerError>;

/// A lowering pass: its name, its description and its function.
#[derive(Clone, Copy)]
pub struct PrimPass {
    /// The name of the pass, as given to the option `--passes=`.
    pub name: &'static str,
    /// A one-line description of the transformation.
    pub doc: &'static str,
    /// The function that runs the pass.
    pub run: PassFn,
    /// Whether the pass leaves functions unchanged whose loops a user has scheduled ([`IS_SCHEDULED`]).
    pub skips_scheduled: bool,
}

/// All lowering passes, in the order of the default pipeline.
pub const PASSES: &[PrimPass] = &[
    PrimPass {
        name: "InlineInjective",
        doc: "compute cheap elementwise stages inside their readers",
        run: inline_elementwise_stages::run,
        skips_scheduled: true,
    },
    PrimPass {
        name: "ReuseOutput",
        doc: "store matrix products in the output that an elementwise stage computes from them",
        run: reuse_output_buffer::run,
        skips_scheduled: true,
    },
    PrimPass {
        name: "ClearScratch",
        doc: "zero-fill scratch buffers that are not provably written before they are read",
        run: clear_scratch_buffers::run,
        skips_scheduled: true,
    },
    PrimPass {
        name: "CheckBounds",
        doc: "insert run-time checks of indices that are not provably in bounds",
        run: check_bounds::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "DefaultSchedule",
        doc: "schedule stages: kernel calls for matrix products, parallel and vectorized loops",
        run: schedule::run,
        skips_scheduled: true,
    },
    PrimPass {
        name: "LowerInitBlock",
        doc: "move the init of blocks in front of their reduction loops",
        run: lower_block_init::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "ConvertBlocksToLoops",
        doc: "replace blocks by their bodies",
        run: convert_blocks_to_loops::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "CompactBuffers",
        doc: "shrink buffers of user-scheduled functions to the region that a loop uses",
        run: compact_buffers::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "PartitionLoops",
        doc: "split loops of user-scheduled functions into a part without conditions and the rest",
        run: partition_loops::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "ClearScheduledScratch",
        doc: "zero-fill buffers of user-scheduled functions that are not provably written before they are read",
        run: compact_buffers::clear_unwritten,
        skips_scheduled: false,
    },
    PrimPass {
        name: "EstimateParallelWork",
        doc: "estimate the work of an iteration of the parallel loops of user-scheduled functions",
        run: estimate_parallel_work::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "ContractProducts",
        doc: "accumulate products with fused multiply-add in user-scheduled functions",
        run: contract_products::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "UnrollLoop",
        doc: "unroll loops marked unroll",
        run: unroll_loops::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "FlattenBuffer",
        doc: "replace indices by one linear index",
        run: flatten_buffers::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "Simplify",
        doc: "fold constants, remove dead code",
        run: simplify_loop_functions::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "VectorizeLoop",
        doc: "replace vectorized loops by vector expressions",
        run: vectorize_loops::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "SimplifyVectors",
        doc: "fold constants left by VectorizeLoop",
        run: simplify_loop_functions::run,
        skips_scheduled: false,
    },
    PrimPass {
        name: "ReduceStrength",
        doc: "replace divisions that depend on a loop variable by counters",
        run: strength_reduction::run,
        skips_scheduled: false,
    },
];

/// Whether a user has scheduled the loops of a function.
pub(crate) fn is_scheduled(f: &PrimFunc) -> bool {
    matches!(f.attrs.get(IS_SCHEDULED), Some(AttrValue::Bool(true) | AttrValue::Int(1)))
}

/// Returns the pass with the given name; `None` if there is none.
///
/// # Examples
/// ```
/// let pass = pliant_tir::pass("UnrollLoop").expect("a lowering pass");
/// assert_eq!(pass.doc, "unroll loops marked unroll");
/// assert!(pliant_tir::pass("NoSuchPass").is_none());
/// ```
pub fn pass(name: &str) -> Option<&'static PrimPass> {
    PASSES.iter().find(|p| p.name == name)
}

/// Runs all lowering passes on a copy of a function. After each pass, calls `observe` with the name of the pass and the function.
///
/// # Examples
/// ```
/// use pliant_ir::tir::PrimFunc;
///
/// let mut names = Vec::new();
/// pliant_tir::lower_observed(&PrimFunc::new(), &mut |name, _| names.push(name))?;
/// assert!(names.iter().eq(pliant_tir::PASSES.iter().map(|pass| &pass.name)));
/// # Ok::<(), pliant_tir::LowerError>(())
/// ```
///
/// # Errors
/// A pass fails, the result is not in lowered form, or the system cannot start a thread for a deeply nested function.
pub fn lower_observed(
    f: &PrimFunc,
    observe: &mut (dyn FnMut(&'static str, &PrimFunc) + Send),
) -> Result<PrimFunc, LowerError> {
    let mut lowered = f.clone();
    run_from(0, &mut lowered, false, observe)?;
    Ok(lowered)
}

/// Runs one pass unless it skips the function, on a large stack if the function is deeply nested.
///
/// # Errors
/// The pass fails, or the system cannot start a thread for a deeply nested function.
pub fn run_pass(pass: &PrimPass, f: &mut PrimFunc) -> Result<(), LowerError> {
    if pass.skips_scheduled && is_scheduled(f) {
        return Ok(());
    }
    stack_guard::run(stack_guard::is_deep(f), || (pass.run)(f)).map_err(thread_error)?
}

fn thread_error(error: std::io::Error) -> LowerError {
    LowerError::new(
        "lower",
        format!("cannot start a thread with a large stack for a deeply nested function: {error}"),
    )
}

/// Runs the lowering passes from position `next` on. Once the function is deeply nested, the remaining passes run on a thread
/// with a large stack. `observe` may also recurse over the function, so it receives the result of a pass only after the nesting
/// depth of the result has been measured.
fn run_from(
    next: usize,
    f: &mut PrimFunc,
    large_stack: bool,
    observe: &mut (dyn FnMut(&'static str, &PrimFunc) + Send),
) -> Result<(), LowerError> {
    if !large_stack && stack_guard::is_deep(f) {
        return stack_guard::run(true, || run_from(next, f, true, observe))
            .map_err(thread_error)?;
    }
    if next > 0 {
        observe(PASSES[next - 1].name, f);
    }
    let Some(pass) = PASSES.get(next) else {
        return crate::lowered_form_verifier::verify(f)
            .map_err(|m| LowerError::new("lowered form", m));
    };
    if !(pass.skips_scheduled && is_scheduled(f)) {
        (pass.run)(f)?;
    }
    run_from(next + 1, f, large_stack, observe)
}

/// Runs all lowering passes on a copy of a function, and returns the lowered function.
///
/// # Errors
/// The same errors as [`lower_observed`].
pub fn lower(f: &PrimFunc) -> Result<PrimFunc, LowerError> {
    lower_observed(f, &mut |_, _| {})
}
