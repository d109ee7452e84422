//! [`Analyzer`]: answers queries about the terms of an arena under assumed facts (bounds, residues, proofs, simplification), with
//! memoization.

use rustc_hash::FxHashMap;

use crate::constant_term_bounds::Bound;
use crate::divisibility::ModularSet;
use crate::term_arena::SymArena;
use crate::term_types::Sym;
use crate::variable_assumptions::Facts;

/// The default number of steps that one query to the prover may take. If a query needs more, the answer is
/// [`Proof::Unknown`](crate::Proof::Unknown). The linear solver counts one step for each coefficient that it processes.
pub const DEFAULT_BUDGET: u32 = 50_000;

/// The number of steps that a whole simplification may take, as a multiple of the budget of one query.
const POOL_FACTOR: u32 = 4;

/// Maximum nesting depth of analyzed subterms. Subterms that are nested deeper are treated as unknown integers.
pub(crate) const MAX_DEPTH: u32 = 64;

/// Answers queries about symbolic terms, given facts that are assumed to hold. Construction is cheap; results are memoized.
///
/// # Examples
/// ```
/// use pliant_sym::{Analyzer, Facts, Proof, SymArena};
///
/// let mut arena = SymArena::new();
/// let var = arena.fresh_var("n");
/// let (n, four) = (arena.var(var), arena.int(4));
/// let rest = arena.floormod(n, four);
/// let facts = Facts::new();
/// let mut analyzer = Analyzer::new(&mut arena, &facts);
/// assert_eq!(analyzer.const_int_bound(rest).hi(), Some(3));
/// assert_eq!(analyzer.prove_lt(rest, four), Proof::Yes);
/// assert_eq!(analyzer.prove_lt(n, four), Proof::Unknown);
/// ```
#[derive(Debug)]
pub struct Analyzer<'a> {
    pub(crate) arena: &'a mut SymArena,
    pub(crate) facts: &'a Facts,
    pub(crate) bound_memo: FxHashMap<Sym, Bound>,
    pub(crate) modular_memo: FxHashMap<Sym, ModularSet>,
    budget: u32,
    /// The step budget that the current query started with. `steps` is the number of steps that remain.
    granted: u32,
    pub(crate) steps: u32,
    /// The number of steps that remain for a group of queries that share a budget, such as all queries of one simplification;
    /// `None` outside of a group.
    pool: Option<u32>,
    /// The nesting depth of the current query: 0 for a query of the caller, higher for a query that the prover issues to answer
    /// another one.
    pub(crate) nesting: u32,
}

impl<'a> Analyzer<'a> {
    /// Creates an analyzer whose queries have the step budget [`DEFAULT_BUDGET`]. It borrows the arena mutably, because proofs
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

    /// The arena in which terms for further queries are built.
    pub fn arena(&mut self) -> &mut SymArena {
        self.arena
    }

    /// The facts under which queries are answered.
    pub fn facts(&self) -> &Facts {
        self.facts
    }

    /// Starts a query with a full step budget. A nested query shares the budget of the outer query.
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

    /// Subtracts `steps` from the budget of the current query. The caller must stop when no steps remain.
    pub(crate) fn charge(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
    }

    /// Starts a group of queries that share one step budget.
    pub(crate) fn open_pool(&mut self) {
        self.pool = None;
        self.refill();
        self.pool = Some(self.budget.saturating_mul(POOL_FACTOR));
    }

    /// Ends the group of queries that [`open_pool`](Self::open_pool) started. Returns whether the budget was sufficient.
    pub(crate) fn close_pool(&mut self) -> bool {
        self.refill();
        let left = self.pool.take();
        left.is_none_or(|l| l > 0)
    }
}
