//! Solves the size pattern of a `match_cast`, such as `n * 4`, for the variable that it defines.

use smallvec::SmallVec;

use crate::linear_form::LinearForm;
use crate::term_arena::SymArena;
use crate::term_types::{Sym, SymVar};

/// The formula that computes a variable from a size observed at run time, with the checks that make it valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The variable that the pattern defines.
    pub var: SymVar,
    /// A fresh variable for the observed size.
    pub observed: SymVar,
    /// The value of `var` as a term over `observed` and the known variables. It is valid only if all `checks` hold, so evaluate
    /// the checks first.
    pub value: Sym,
    /// Predicates over `observed` and the known variables, to be checked in this order: the divisor is not 0, the division is
    /// exact, and `value` is not negative.
    pub checks: SmallVec<[Sym; 3]>,
}

/// Solves `pattern == observed` for the only variable of the pattern that is not in `known`. `observed` is the name of a fresh
/// variable that stands for the observed size.
///
/// The pattern must be linear in the unknown variable: `n`, `2 * n`, `n + 1`, `n * 4 + m`, or `n * m` with known `m`. Returns
/// `None` if it is not linear or the number of unknown variables is not one.
///
/// # Examples
/// ```
/// use pliant_sym::{SymArena, solve_match};
///
/// // `match_cast` to the size n * 4 defines n as a quarter of the observed size.
/// let mut arena = SymArena::new();
/// let var = arena.fresh_var("n");
/// let (n, four) = (arena.var(var), arena.int(4));
/// let pattern = arena.mul(n, four);
/// let solution = solve_match(&mut arena, pattern, "observed", &|_| false).expect("linear in n");
/// assert_eq!(solution.var, var);
/// assert_eq!(arena.evaluate(solution.value, &|_| Some(12)), Ok(3));
/// // The size must be a multiple of 4.
/// assert_eq!(arena.evaluate(solution.checks[0], &|_| Some(13)), Ok(0));
/// ```
pub fn solve_match(
    arena: &mut SymArena,
    pattern: Sym,
    observed: &str,
    known: &dyn Fn(SymVar) -> bool,
) -> Option<Solution> {
    let mut unknown = arena.free_vars(pattern).into_iter().filter(|&v| !known(v));
    let var = unknown.next()?;
    if unknown.next().is_some() {
        return None;
    }
    let (slope, offset) = split_linear(arena, pattern, var)?;
    let observed = arena.fresh_var(observed);
    let size = arena.var(observed);
    let rest = arena.sub(size, offset);
    let zero = arena.int(0);
    let mut checks = SmallVec::new();
    let value = match arena.as_int(slope) {
        Some(1) => rest,
        Some(-1) => arena.neg(rest),
        constant => {
            if constant.is_none() {
                checks.push(arena.ne(slope, zero));
            }
            let remainder = arena.floormod(rest, slope);
            checks.push(arena.eq(remainder, zero));
            arena.floordiv(rest, slope)
        }
    };
    // Observed sizes are not negative. If the size is a positive multiple of the variable, the variable is not negative either.
    let positive_multiple = arena.as_int(slope).is_some_and(|k| k > 0) && offset == zero;
    if !positive_multiple {
        checks.push(arena.ge(value, zero));
    }
    Some(Solution { var, observed, value, checks })
}

/// Splits a pattern into `slope * var + offset`, where neither `slope` nor `offset` depends on `var`. Returns (`slope`,
/// `offset`); `None` if the pattern is not linear in `var`.
fn split_linear(arena: &mut SymArena, pattern: Sym, var: SymVar) -> Option<(Sym, Sym)> {
    let own = arena.var(var);
    let lin = arena.lin_mut(pattern);
    let (mut slope, mut offset) = (LinearForm::int(0), LinearForm::int(lin.constant));
    for &(k, t) in &lin.terms {
        if !arena.contains_var(t, var) {
            offset = offset.add(&LinearForm::term(k, t))?;
            continue;
        }
        let mut factors = arena.factors(t);
        let at = factors.iter().position(|&f| f == own)?;
        factors.remove(at);
        if factors.iter().any(|&f| arena.contains_var(f, var)) {
            return None;
        }
        let part = match factors.len() {
            0 => LinearForm::int(k),
            _ => LinearForm::term(k, arena.product_of(factors)?),
        };
        slope = slope.add(&part)?;
    }
    if slope == LinearForm::default() {
        return None;
    }
    Some((arena.of_lin(&slope), arena.of_lin(&offset)))
}
