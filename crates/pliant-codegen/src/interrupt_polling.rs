//! Decides which generated loops poll the interrupt flag, and how often.

use pliant_ir::tir::visit::for_each_stmt;
use pliant_ir::tir::{PrimFunc, Stmt, StmtData};

/// Base-2 logarithm of the number of iterations after which an innermost loop polls the interrupt flag.
pub const POLL_PERIOD_LOG2: u32 = 16;

/// How often a counted loop polls the interrupt flag.
///
/// # Examples
/// ```
/// use pliant_codegen::interrupt_polling::PollFrequency;
/// use pliant_ir::tir::PrimFunc;
///
/// // An outermost loop, and an inner loop of 8 iterations.
/// let f = PrimFunc::new();
/// let outer = PollFrequency::of_loop(&f, 0, None, f.body);
/// let inner = PollFrequency::of_loop(&f, 1, Some(8), f.body);
/// assert_eq!((outer, inner), (PollFrequency::EveryIteration, PollFrequency::Never));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PollFrequency {
    /// The loop polls in every iteration.
    EveryIteration,
    /// The loop polls once in `2 ** POLL_PERIOD_LOG2` iterations, so that the cost of a poll is negligible.
    Periodic,
    /// The loop never polls, because it is short.
    Never,
}

impl PollFrequency {
    /// Decides how often a loop polls the interrupt flag. Outermost loops and loops around other loops poll in every iteration,
    /// innermost loops once in `2 ** POLL_PERIOD_LOG2` iterations. An inner loop nest with at most `2 ** POLL_PERIOD_LOG2`
    /// iterations in total never polls. `depth` is the number of loops around the loop, and `iterations` its extent if it is
    /// constant.
    pub fn of_loop(f: &PrimFunc, depth: usize, iterations: Option<i64>, body: Stmt) -> Self {
        let mut has_inner_loop = false;
        for_each_stmt(f, body, |s| {
            has_inner_loop |= matches!(f.stmt(s), StmtData::For { .. } | StmtData::While(..));
        });
        match iterations {
            _ if depth == 0 => PollFrequency::EveryIteration,
            Some(n) if iterations_without_poll(f, n, body).is_some() => PollFrequency::Never,
            _ if has_inner_loop => PollFrequency::EveryIteration,
            _ => PollFrequency::Periodic,
        }
    }
}

/// Returns the total number of iterations of a loop nest (`iterations` of the outer loop times those of the loops in `body`) if
/// it is small enough that no loop of the nest polls the interrupt flag; otherwise `None`.
fn iterations_without_poll(f: &PrimFunc, iterations: i64, body: Stmt) -> Option<i64> {
    let total = iterations.max(1).saturating_mul(unpolled_iterations_inside(f, body));
    (total <= 1 << POLL_PERIOD_LOG2).then_some(total)
}

/// Returns the maximum number of loop iterations inside a statement between two polls of the interrupt flag; at least
/// 1.
fn unpolled_iterations_inside(f: &PrimFunc, s: Stmt) -> i64 {
    let inside = |s: &Stmt| unpolled_iterations_inside(f, *s);
    match f.stmt(s) {
        // Loops with a non-constant extent poll.
        StmtData::For { extent, body, .. } => {
            f.as_int(*extent).and_then(|n| iterations_without_poll(f, n, *body)).unwrap_or(1)
        }
        StmtData::Seq(list) => list.iter().map(inside).fold(0, i64::saturating_add).max(1),
        StmtData::If(_, then, other) => inside(then).max(other.as_ref().map_or(1, inside)),
        StmtData::Let(_, _, body) | StmtData::Alloc(_, body) | StmtData::Assert(_, _, body) => {
            inside(body)
        }
        _ => 1,
    }
}
