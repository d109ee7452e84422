//! Decides whether linear constraints over integers contradict each other. Substitutes equalities, then eliminates variables by
//! Fourier-Motzkin elimination and rounds the constants of all constraints to integers.
//!
//! The answer `true` (contradictory) is always correct. `false` may also mean that the step budget was exhausted.

use rustc_hash::FxHashMap;

use crate::linear_form::{LinearForm, floor_div, gcd};
use crate::term_types::Sym;

/// Maximum number of rows (constraints) of a system. The solver gives up on larger systems.
const MAX_ROWS: usize = 160;
/// Maximum number of variables of a system. The solver gives up on larger systems.
const MAX_COLUMNS: usize = 48;

/// A constraint `coefs * x + constant >= 0` on the vector `x` of the variables. The last entry is the constant.
type Row = Vec<i64>;

/// The result of [`tighten`], which divides a row (a linear constraint) by the greatest common divisor of its coefficients: the new
/// row, or that the row is trivial or contradictory.
enum Tightened {
    Keep(Row),
    /// The constraint of the row holds for all values of the variables.
    Trivial,
    /// The constraint of the row holds for no values of the variables.
    Contradiction,
}

/// Whether the system of the constraints `form >= 0` for all forms in `ge` and `form == 0` for all forms in `eq` provably has no
/// integer solution.
pub(crate) fn infeasible(ge: &[LinearForm], eq: &[LinearForm], steps: &mut u32) -> bool {
    let mut ge = ge.to_vec();
    let mut eq = eq.to_vec();
    match substitute_equalities(&mut ge, &mut eq, steps) {
        Some(true) => return true,
        Some(false) => {}
        None => return false,
    }
    let mut columns: FxHashMap<Sym, usize> = FxHashMap::default();
    for lin in ge.iter().chain(&eq) {
        for t in &lin.terms {
            let next = columns.len();
            columns.entry(t.1).or_insert(next);
        }
    }
    if columns.len() > MAX_COLUMNS {
        return false;
    }
    let width = columns.len();
    let mut rows = Vec::with_capacity(ge.len() + 2 * eq.len());
    let mut push = |lin: &LinearForm, sign: i64| {
        let mut row = vec![0i64; width + 1];
        for &(k, t) in &lin.terms {
            row[columns[&t]] = k.checked_mul(sign)?;
        }
        row[width] = lin.constant.checked_mul(sign)?;
        rows.push(row);
        Some(())
    };
    for lin in &ge {
        // Drop a row that cannot be represented. This is sound: it can only lose proofs.
        let _ = push(lin, 1);
    }
    for lin in &eq {
        let _ = push(lin, 1);
        let _ = push(lin, -1);
    }
    eliminate(rows, width, steps)
}

/// Solves equalities that have a coefficient of 1 or -1, and substitutes the solutions into all other rows. Returns `Some(true)`
/// if this shows a contradiction, `Some(false)` otherwise, and `None` if the step budget is exhausted.
fn substitute_equalities(
    ge: &mut [LinearForm],
    eq: &mut Vec<LinearForm>,
    steps: &mut u32,
) -> Option<bool> {
    loop {
        for lin in eq.iter() {
            let g = i64::try_from(lin.gcd()).ok()?;
            let contradiction = match g {
                0 => lin.constant != 0,
                g => lin.constant % g != 0,
            };
            if contradiction {
                return Some(true);
            }
        }
        let unit = |l: &LinearForm| l.terms.iter().find(|t| t.0.unsigned_abs() == 1).copied();
        let Some((at, (k, var))) = eq.iter().enumerate().find_map(|(i, l)| unit(l).map(|t| (i, t)))
        else {
            return Some(false);
        };
        let solved = eq.swap_remove(at);
        for lin in ge.iter_mut().chain(eq.iter_mut()) {
            let have = lin.coef(var);
            if have == 0 {
                continue;
            }
            *steps = steps.checked_sub(lin.terms.len() as u32 + 1)?;
            // `k` is 1 or -1, so adding the equality `-have * k` times cancels the variable.
            let replaced = have.checked_mul(-k).and_then(|by| lin.add_scaled(by, &solved));
            *lin = replaced.unwrap_or_default();
        }
    }
}

fn eliminate(start: Vec<Row>, width: usize, steps: &mut u32) -> bool {
    let mut rows: Vec<Row> = Vec::with_capacity(start.len());
    for row in start {
        match tighten(row) {
            Tightened::Keep(row) => rows.push(row),
            Tightened::Trivial => {}
            Tightened::Contradiction => return true,
        }
    }
    loop {
        prune(&mut rows);
        let Some(column) = cheapest_column(&rows, width) else { return false };
        match steps.checked_sub((rows.len() * (width + 1) / 4) as u32) {
            Some(left) => *steps = left,
            None => return false,
        }
        let (mut kept, mut positive, mut negative) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match row[column] {
                0 => kept.push(row),
                1.. => positive.push(row),
                _ => negative.push(row),
            }
        }
        for p in &positive {
            for n in &negative {
                match steps.checked_sub(width as u32 + 1) {
                    Some(left) => *steps = left,
                    None => return false,
                }
                match combine(p, n, column).map(tighten) {
                    Some(Tightened::Contradiction) => return true,
                    Some(Tightened::Keep(row)) => kept.push(row),
                    Some(Tightened::Trivial) | None => {}
                }
            }
        }
        if kept.len() > MAX_ROWS {
            return false;
        }
        rows = kept;
    }
}

/// Returns the column (variable) whose elimination creates the fewest rows; `None` if no row contains a variable.
fn cheapest_column(rows: &[Row], width: usize) -> Option<usize> {
    let mut best: Option<(i64, usize)> = None;
    for column in 0..width {
        let (mut positive, mut negative) = (0i64, 0i64);
        for row in rows {
            match row[column] {
                0 => {}
                1.. => positive += 1,
                _ => negative += 1,
            }
        }
        if positive + negative == 0 {
            continue;
        }
        let cost = positive * negative - positive - negative;
        if best.is_none_or(|(c, _)| cost < c) {
            best = Some((cost, column));
        }
    }
    best.map(|b| b.1)
}

/// Adds positive multiples of two rows so that the coefficients of `column` cancel. `None` on overflow.
fn combine(positive: &Row, negative: &Row, column: usize) -> Option<Row> {
    let (p, n) = (positive[column], negative[column]);
    let g = i64::try_from(gcd(p.unsigned_abs(), n.unsigned_abs())).ok()?;
    let (by_p, by_n) = ((n / g).checked_neg()?, p / g);
    let sum = |(&a, &b): (&i64, &i64)| a.checked_mul(by_p)?.checked_add(b.checked_mul(by_n)?);
    positive.iter().zip(negative).map(sum).collect()
}

/// Divides a row (a linear constraint) by the greatest common divisor of its coefficients and rounds the constant down. The integer
/// solutions stay the same.
fn tighten(mut row: Row) -> Tightened {
    let last = row.len() - 1;
    let g = row[..last].iter().fold(0u64, |g, &c| gcd(g, c.unsigned_abs()));
    match i64::try_from(g) {
        Ok(0) if row[last] >= 0 => Tightened::Trivial,
        Ok(0) => Tightened::Contradiction,
        Ok(1) | Err(_) => Tightened::Keep(row),
        Ok(g) => {
            for c in &mut row[..last] {
                *c /= g;
            }
            row[last] = floor_div(row[last], g).expect(
                "the divisor of the row is greater than 1, so that the division cannot overflow",
            );
            Tightened::Keep(row)
        }
    }
}

/// Removes redundant rows (linear constraints): of several rows with equal coefficients, keeps only the strictest one.
fn prune(rows: &mut Vec<Row>) {
    rows.sort_unstable();
    rows.dedup_by(|b, a| {
        let last = a.len() - 1;
        a[..last] == b[..last]
    });
}
