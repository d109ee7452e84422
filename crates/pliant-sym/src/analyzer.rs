//! The analyzer: an arena, the facts, and what has been found out under them.

use rustc_hash::FxHashMap;

use crate::arena::SymArena;
use crate::bounds::Bound;
use crate::facts::Facts;
use crate::kind::Sym;
use crate::modular::ModularSet;

/// Steps that one question to the prover may take before the answer is
/// [`Proof::Unknown`](crate::Proof::Unknown). A step is one coefficient touched by the linear solver.
pub const DEFAULT_BUDGET: u32 = 50_000;

/// How many budgets a simplification may take in all.
const POOL_FACTOR: u32 = 4;

/// Deeper parts of a term count as unknown integers.
pub(crate) const MAX_DEPTH: u32 = 64;

/// Answers questions about terms under facts. Cheap to make; remembers what it has found out.
#[derive(Debug)]
pub struct Analyzer<'a> {
    pub(crate) arena: &'a mut SymArena,
    pub(crate) facts: &'a Facts,
    pub(crate) bound_memo: FxHashMap<Sym, Bound>,
    pub(crate) modular_memo: FxHashMap<Sym, ModularSet>,
    budget: u32,
    /// What the question in progress was given, and what is left of it.
    granted: u32,
    pub(crate) steps: u32,
    /// What is left for all questions of a simplification in progress.
    pool: Option<u32>,
    /// How many questions the prover is asking itself within the one in progress.
    pub(crate) nesting: u32,
}

impl<'a> Analyzer<'a> {
    /// An analyzer with [`DEFAULT_BUDGET`]. Proofs make terms, so it takes the arena mutably.
    pub fn new(arena: &'a mut SymArena, facts: &'a Facts) -> Self {
        Self::with_budget(arena, facts, DEFAULT_BUDGET)
    }

    /// An analyzer with another budget of steps for each question.
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

    /// The arena, to build terms for further questions.
    pub fn arena(&mut self) -> &mut SymArena {
        self.arena
    }

    /// The facts.
    pub fn facts(&self) -> &Facts {
        self.facts
    }

    /// Begins a question, unless it is asked within another.
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

    /// Takes steps; what takes them should stop when none are left.
    pub(crate) fn charge(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
    }

    /// Begins a group of questions that share a budget.
    pub(crate) fn open_pool(&mut self) {
        self.pool = None;
        self.refill();
        self.pool = Some(self.budget.saturating_mul(POOL_FACTOR));
    }

    /// Ends the group; whether its budget has sufficed.
    pub(crate) fn close_pool(&mut self) -> bool {
        self.refill();
        let left = self.pool.take();
        left.is_none_or(|l| l > 0)
    }
}
