//! The analyzer: an arena, the facts about its variables, and memoised answers.

use rustc_hash::FxHashMap;

use crate::arena::SymArena;
use crate::bounds::Bound;
use crate::facts::Facts;
use crate::kind::Sym;
use crate::modular::ModularSet;

/// Step budget of one query to the prover. A query that exceeds it is answered with
/// [`Proof::Unknown`](crate::Proof::Unknown). One step is one coefficient that the linear solver
/// touches.
pub const DEFAULT_BUDGET: u32 = 50_000;

/// Total budget of a simplification, as a multiple of the budget of one query.
const POOL_FACTOR: u32 = 4;

/// Subterms nested deeper than this are treated as unknown integers.
pub(crate) const MAX_DEPTH: u32 = 64;

/// Answers queries about terms under facts. Construction is cheap; results are memoised.
#[derive(Debug)]
pub struct Analyzer<'a> {
    pub(crate) arena: &'a mut SymArena,
    pub(crate) facts: &'a Facts,
    pub(crate) bound_memo: FxHashMap<Sym, Bound>,
    pub(crate) modular_memo: FxHashMap<Sym, ModularSet>,
    budget: u32,
    /// Step budget of the current query, and the steps that remain of it.
    granted: u32,
    pub(crate) steps: u32,
    /// Steps that remain for all queries of the current simplification.
    pool: Option<u32>,
    /// Depth of the queries that the prover issues while it answers another query.
    pub(crate) nesting: u32,
}

impl<'a> Analyzer<'a> {
    /// Creates an analyzer with [`DEFAULT_BUDGET`]. The arena is borrowed mutably because proofs
    /// create terms.
    pub fn new(arena: &'a mut SymArena, facts: &'a Facts) -> Self {
        Self::with_budget(arena, facts, DEFAULT_BUDGET)
    }

    /// Creates an analyzer with the given step budget for each query.
    pub fn with_budget(arena: &'a mut SymArena, facts: &'a Facts, budget: u32) -> Self {
        Analyzer {
            arena,
            facts,
            bound_memo: FxHashMap::default(),
            modular_memo: FxHashMap::default(),
            budget,
            granted: budget,
            steps: budget,
            pool: None,
            nesting: 0,
        }
    }

    /// The arena, for building the terms of further queries.
    pub fn arena(&mut self) -> &mut SymArena {
        self.arena
    }

    /// The facts.
    pub fn facts(&self) -> &Facts {
        self.facts
    }

    /// Starts a query with a fresh budget. A nested query keeps the budget of the outer one.
    pub(crate) fn refill(&mut self) {
        if self.nesting > 0 {
            return;
        }
        if let Some(pool) = &mut self.pool {
            *pool = pool.saturating_sub(self.granted - self.steps);
        }
        self.granted = self.pool.unwrap_or(u32::MAX).min(self.budget);
        self.steps = self.granted;
    }

    /// Consumes steps. The caller must give up when none remain.
    pub(crate) fn charge(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
    }

    /// Starts a group of queries that share one budget.
    pub(crate) fn open_pool(&mut self) {
        self.pool = None;
        self.refill();
        self.pool = Some(self.budget.saturating_mul(POOL_FACTOR));
    }

    /// Ends the group. Returns whether its budget was sufficient.
    pub(crate) fn close_pool(&mut self) -> bool {
        self.refill();
        let left = self.pool.take();
        left.is_none_or(|l| l > 0)
    }
}
