//! The table of passes, and the default pipeline from a function with blocks to a lowered function.

use pliant_ir::tir::PrimFunc;

use crate::error::LowerError;
use crate::{
    check_bounds, clear_scratch, convert_blocks, flatten, inline, lower_init, reuse_output, room,
    schedule, simplify, unroll, vectorize,
};

/// A pass over one loop function, which it changes in place.
pub type PassFn = fn(&mut PrimFunc) -> Result<(), LowerError>;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct PrimPass {
    /// The name, by which `--passes=` selects the pass.
    pub name: &'static str,
    /// A one-line description.
    pub doc: &'static str,
    /// The function that runs the pass.
    pub run: PassFn,
}

/// Every pass, in the order of the default pipeline.
pub const PASSES: &[PrimPass] = &[
    PrimPass {
        name: "InlineInjective",
        doc: "compute cheap elementwise stages inside their readers",
        run: inline::run,
    },
    PrimPass {
        name: "ReuseOutput",
        doc: "matrix products write into the output that follows elementwise",
        run: reuse_output::run,
    },
    PrimPass {
        name: "ClearScratch",
        doc: "zero-fill scratch buffers that are not provably written before they are read",
        run: clear_scratch::run,
    },
    PrimPass {
        name: "CheckBounds",
        doc: "assert what cannot be proved about indices",
        run: check_bounds::run,
    },
    PrimPass {
        name: "DefaultSchedule",
        doc: "matrix products to library calls; parallel and vectorized loops",
        run: schedule::run,
    },
    PrimPass {
        name: "LowerInitBlock",
        doc: "the init of a block becomes statements before its reduction loops",
        run: lower_init::run,
    },
    PrimPass {
        name: "ConvertBlocksToLoops",
        doc: "blocks become plain loop bodies",
        run: convert_blocks::run,
    },
    PrimPass { name: "UnrollLoop", doc: "write out unrolled loops", run: unroll::run },
    PrimPass { name: "FlattenBuffer", doc: "one linear index per access", run: flatten::run },
    PrimPass { name: "Simplify", doc: "fold constants, drop what never runs", run: simplify::run },
    PrimPass {
        name: "VectorizeLoop",
        doc: "vectorized loops become vector expressions",
        run: vectorize::run,
    },
    PrimPass { name: "SimplifyVectors", doc: "fold what vectorizing left", run: simplify::run },
];

/// The pass of that name.
pub fn pass(name: &str) -> Option<&'static PrimPass> {
    PASSES.iter().find(|p| p.name == name)
}

/// Runs all passes. `observe` is called with the function after each pass.
///
/// # Errors
/// The error of a pass, or the result is not in lowered form.
pub fn lower_observed(
    f: &PrimFunc,
    observe: &mut (dyn FnMut(&'static str, &PrimFunc) + Send),
) -> Result<PrimFunc, LowerError> {
    let mut lowered = f.clone();
    run_from(0, &mut lowered, false, observe)?;
    Ok(lowered)
}

/// Runs one pass, with a large stack if the function is deep.
///
/// # Errors
/// The error of the pass, or the system cannot start a thread for a deep function.
pub fn run_pass(pass: &PrimPass, f: &mut PrimFunc) -> Result<(), LowerError> {
    room::run(room::is_deep(f), || (pass.run)(f)).map_err(no_thread)?
}

fn no_thread(error: std::io::Error) -> LowerError {
    LowerError::new("lower", format!("no thread for a deep function: {error}"))
}

/// Runs the passes from number `next` on. If the function is deep, the remaining passes run with a large stack. `observe` gets the
/// result of pass `next - 1` here, after the check of the depth, because it may recurse too.
fn run_from(
    next: usize,
    f: &mut PrimFunc,
    large_stack: bool,
    observe: &mut (dyn FnMut(&'static str, &PrimFunc) + Send),
) -> Result<(), LowerError> {
    if !large_stack && room::is_deep(f) {
        return room::run(true, || run_from(next, f, true, observe)).map_err(no_thread)?;
    }
    if next > 0 {
        observe(PASSES[next - 1].name, f);
    }
    let Some(pass) = PASSES.get(next) else {
        return crate::lowered::verify(f).map_err(|m| LowerError::new("lowered form", m));
    };
    (pass.run)(f)?;
    run_from(next + 1, f, large_stack, observe)
}

/// Runs all passes.
///
/// # Errors
/// As [`lower_observed`].
pub fn lower(f: &PrimFunc) -> Result<PrimFunc, LowerError> {
    lower_observed(f, &mut |_, _| {})
}
