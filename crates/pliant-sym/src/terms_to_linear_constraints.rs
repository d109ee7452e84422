//! Translates terms to linear constraints for the prover. The unknowns of the constraints are atoms: terms other than sums, such as
//! variables, products and quotients. Further constraints define each atom by its operands, such as `d * q <= x <= d * q + d - 1`
//! for `q = x // d`. Definitions that cannot be written as linear constraints become case distinctions.

use cranelift_entity::EntityRef;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::linear_form::LinearForm;
use crate::linear_solver;
use crate::term_analyzer::{Analyzer, MAX_DEPTH};
use crate::term_arena::IS_BOOL;
use crate::term_types::{CmpOp, Sym, SymKind, SymList};

/// Maximum number of atoms whose definitions one system contains.
const MAX_ATOMS: usize = 40;
/// Maximum nesting depth of case distinctions.
const MAX_SPLITS: u32 = 6;
/// Maximum nesting depth of proofs within proofs.
const MAX_NESTING: u32 = 2;

/// Maximum number of constraints that one step adds to a system by multiplying its constraints by nonnegative terms.
const MAX_MULTIPLIED: usize = 16;
/// Maximum divisor for which a case distinction over the residues of the dividend is made.
const MAX_RESIDUES: i64 = 8;

/// One constraint of a system. Each case of a case distinction is a list of constraints.
#[derive(Clone, Debug)]
pub(crate) enum Constraint {
    /// The linear form is at least 0.
    Ge(LinearForm),
    /// The linear form equals 0.
    Eq(LinearForm),
    /// The predicate has this truth value.
    Holds(Sym, bool),
}

type Case = SmallVec<[Constraint; 2]>;

/// A system of constraints that the prover tries to show contradictory.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConstraintSystem {
    ge: Vec<LinearForm>,
    eq: Vec<LinearForm>,
    /// Case distinctions, each as a list of cases of which at least one holds.
    splits: Vec<Vec<Case>>,
    seen: FxHashSet<Sym>,
    pending: Vec<Sym>,
    /// The quotients `x // c` by small constants `c`, each as (`c`, linear form of the remainder `x % c`). They are candidates for
    /// case distinctions by residue.
    quotients: Vec<(i64, LinearForm)>,
    /// Indices of the assumed predicates that are part of the system.
    used: FxHashSet<usize>,
    fresh: u32,
}

impl ConstraintSystem {
    fn note(&mut self, lin: &LinearForm) {
        for t in &lin.terms {
            if self.seen.len() < MAX_ATOMS && self.seen.insert(t.1) {
                self.pending.push(t.1);
            }
        }
    }

    fn push_ge(&mut self, lin: Option<LinearForm>) {
        if let Some(lin) = lin {
            self.note(&lin);
            self.ge.push(lin);
        }
    }

    fn push_eq(&mut self, lin: Option<LinearForm>) {
        if let Some(lin) = lin {
            self.note(&lin);
            self.eq.push(lin);
        }
    }

    /// Adds the constraints `lo <= atom <= hi`.
    fn push_range(&mut self, atom: Sym, lo: Option<i64>, hi: Option<i64>) {
        let at = |k: i64, c: Option<i64>| LinearForm::term(k, atom).add_const(c?);
        if let Some(lo) = lo {
            self.push_ge(at(1, lo.checked_neg()));
        }
        if let Some(hi) = hi {
            self.push_ge(at(-1, Some(hi)));
        }
    }

    /// Finds two quotients by the same divisor whose dividends differ only by a constant, and creates a case distinction over the
    /// residues of one dividend. Handles each pair of quotients once. `None` if no pair is left.
    fn residue_split(&mut self) -> Option<Vec<Case>> {
        let shared = |(c, rest): &(i64, LinearForm), others: &[(i64, LinearForm)]| {
            let same = |o: &(i64, LinearForm)| o.0 == *c && same_but_last_and_constant(&o.1, rest);
            others.iter().filter(|o| same(o)).count() > 1
        };
        let at = self.quotients.iter().position(|q| shared(q, &self.quotients))?;
        let (c, rest) = self.quotients.remove(at);
        let case = |r: i64| Some(Case::from_iter([Constraint::Eq(rest.clone().add_const(-r)?)]));
        (0..c).map(case).collect()
    }

    /// Creates an unknown integer that does not correspond to a term of the arena.
    fn fresh_atom(&mut self) -> Sym {
        self.fresh += 1;
        Sym::new((u32::MAX - 1 - self.fresh) as usize)
    }
}

/// Whether two remainders of the form `x - c * (x // c)` have dividends `x` that differ only by a constant. The quotient is the
/// last term of the form, because it was created after its dividend.
fn same_but_last_and_constant(a: &LinearForm, b: &LinearForm) -> bool {
    let parts = |l: &LinearForm| l.terms.len().checked_sub(1);
    match (parts(a), parts(b)) {
        (Some(i), Some(j)) => a.terms[..i] == b.terms[..j],
        _ => false,
    }
}

/// The difference `x - y`. `None` on overflow, or if the result is too long.
fn minus(x: &LinearForm, y: &LinearForm) -> Option<LinearForm> {
    x.sub(y)
}

impl Analyzer<'_> {
    /// Whether the constraints `claims` provably contradict each other or the assumed facts.
    pub(crate) fn contradictory(&mut self, claims: impl IntoIterator<Item = Constraint>) -> bool {
        if self.steps == 0 {
            return false;
        }
        let mut system = ConstraintSystem::default();
        for claim in claims {
            self.assert(&mut system, claim);
        }
        self.infeasible(system, 0)
    }

    fn infeasible(&mut self, mut system: ConstraintSystem, depth: u32) -> bool {
        self.close(&mut system);
        self.charge(4 * (system.ge.len() + system.eq.len()));
        if linear_solver::infeasible(&system.ge, &system.eq, &mut self.steps) {
            return true;
        }
        if self.multiply_rows(&mut system) {
            self.close(&mut system);
            if linear_solver::infeasible(&system.ge, &system.eq, &mut self.steps) {
                return true;
            }
        }
        if depth >= MAX_SPLITS || self.steps == 0 {
            return false;
        }
        let cases = match system.splits.is_empty() {
            false => system.splits.remove(0),
            true => match system.residue_split() {
                Some(cases) => cases,
                None => return false,
            },
        };
        for case in cases {
            let mut branch = system.clone();
            for claim in case {
                self.assert(&mut branch, claim);
            }
            if !self.infeasible(branch, depth + 1) {
                return false;
            }
        }
        true
    }

    /// Multiplies constraints by nonnegative factors if the products are already atoms: multiplying `i < n` by `m` relates `i * m`
    /// to `n * m`. Returns whether it added constraints.
    fn multiply_rows(&mut self, system: &mut ConstraintSystem) -> bool {
        let mut products: SymList =
            system.seen.iter().copied().filter(|&s| self.arena.factors(s).len() > 1).collect();
        if products.is_empty() {
            return false;
        }
        products.sort_unstable();
        let mut factors: SymList = products.iter().flat_map(|&p| self.arena.factors(p)).collect();
        factors.sort_unstable();
        factors.dedup();
        factors.retain(|f| self.bound_at(*f, 0).min >= 0);
        let mut made = Vec::new();
        for row in system.ge.iter().filter(|r| (2..=4).contains(&r.terms.len())) {
            for &f in &factors {
                self.charge(4);
                if self.steps == 0 || made.len() >= MAX_MULTIPLIED {
                    break;
                }
                let Some(product) = self.arena.mul_lin(row, &LinearForm::term(1, f)) else {
                    continue;
                };
                if product.terms.iter().all(|t| t.1 == f || system.seen.contains(&t.1)) {
                    made.push(product);
                }
            }
        }
        made.retain(|row| !system.ge.contains(row));
        let any = !made.is_empty();
        made.into_iter().for_each(|row| system.push_ge(Some(row)));
        any
    }

    pub(crate) fn assert(&mut self, system: &mut ConstraintSystem, claim: Constraint) {
        match claim {
            Constraint::Ge(lin) => system.push_ge(Some(lin)),
            Constraint::Eq(lin) => system.push_eq(Some(lin)),
            Constraint::Holds(sym, truth) => self.assert_predicate(system, sym, truth, 0),
        }
    }

    fn assert_predicate(
        &mut self,
        system: &mut ConstraintSystem,
        sym: Sym,
        truth: bool,
        depth: u32,
    ) {
        // Omitting a constraint is sound.
        self.charge(4);
        if depth > MAX_DEPTH || self.steps == 0 {
            return;
        }
        let depth = depth + 1;
        let children: SymList = self.arena.children(sym);
        match self.arena.kind(sym) {
            SymKind::Cmp(op, a, b) => self.assert_comparison(system, (op, a, b), truth),
            SymKind::Not(a) => self.assert_predicate(system, a, !truth, depth),
            SymKind::And(_) if truth => {
                children.into_iter().for_each(|c| self.assert_predicate(system, c, true, depth));
            }
            SymKind::Or(_) if !truth => {
                children.into_iter().for_each(|c| self.assert_predicate(system, c, false, depth));
            }
            SymKind::And(_) | SymKind::Or(_) => {
                let case = |c| Case::from_iter([Constraint::Holds(c, truth)]);
                system.splits.push(children.into_iter().map(case).collect());
            }
            _ => {
                let lin = self.arena.lin_mut(sym);
                self.assert_zero(system, lin, !truth);
            }
        }
    }

    fn assert_comparison(
        &mut self,
        system: &mut ConstraintSystem,
        cmp: (CmpOp, Sym, Sym),
        truth: bool,
    ) {
        let (op, a, b) = cmp;
        let (la, lb) = (self.arena.lin_mut(a), self.arena.lin_mut(b));
        let Some(d) = minus(&la, &lb) else { return };
        match (op, truth) {
            (CmpOp::Eq, _) => self.assert_zero(system, d, truth),
            (CmpOp::Ne, _) => self.assert_zero(system, d, !truth),
            (CmpOp::Le, true) => system.push_ge(d.scale(-1)),
            (CmpOp::Lt, false) => system.push_ge(Some(d)),
            (CmpOp::Le, false) => system.push_ge(d.add_const(-1)),
            (CmpOp::Lt, true) => system.push_ge(d.scale(-1).and_then(|d| d.add_const(-1))),
        }
    }

    /// Adds the constraint `lin == 0` if `zero` is true, otherwise the case distinction `lin >= 1` or `lin <= -1`.
    fn assert_zero(&mut self, system: &mut ConstraintSystem, lin: LinearForm, zero: bool) {
        if zero {
            system.push_eq(Some(lin));
            return;
        }
        let above = lin.clone().add_const(-1);
        let below = lin.scale(-1).and_then(|l| l.add_const(-1));
        if let (Some(above), Some(below)) = (above, below) {
            system.note(&lin);
            let case = |l| Case::from_iter([Constraint::Ge(l)]);
            system.splits.push(vec![case(above), case(below)]);
        }
    }

    /// Completes the system: adds the constraints that define its atoms by their operands, and the assumed predicates that mention
    /// variables of the system.
    fn close(&mut self, system: &mut ConstraintSystem) {
        loop {
            while let Some(atom) = system.pending.pop() {
                self.charge(8);
                self.define(system, atom);
            }
            let facts = self.facts;
            for (i, &p) in facts.predicates().iter().enumerate() {
                let about = |v: &_| system.seen.contains(&self.arena.var(*v));
                if !system.used.contains(&i) && self.arena.free_vars(p).iter().any(about) {
                    system.used.insert(i);
                    self.assert_predicate(system, p, true, 0);
                }
            }
            if system.pending.is_empty() {
                return;
            }
        }
    }

    fn define(&mut self, system: &mut ConstraintSystem, atom: Sym) {
        let bound = self.bound_at(atom, 0);
        system.push_range(atom, bound.lo(), bound.hi());
        let children: SymList = self.arena.children(atom);
        match self.arena.kind(atom) {
            SymKind::Var(v) => self.define_var(system, atom, v),
            SymKind::FloorDiv(x, d) => self.define_quotient(system, atom, x, d),
            SymKind::FloorMod(x, d) => self.define_remainder(system, atom, x, d),
            SymKind::Product(_) => self.define_product(system, atom, &children),
            SymKind::Min(_) => self.define_extremum(system, atom, &children, 1),
            SymKind::Max(_) => self.define_extremum(system, atom, &children, -1),
            SymKind::Select(c, a, b) => {
                let (la, lb) = (self.arena.lin_mut(a), self.arena.lin_mut(b));
                let own = LinearForm::term(1, atom);
                if let (Some(then), Some(other)) = (minus(&own, &la), minus(&own, &lb)) {
                    system.splits.push(vec![
                        Case::from_iter([Constraint::Holds(c, true), Constraint::Eq(then)]),
                        Case::from_iter([Constraint::Holds(c, false), Constraint::Eq(other)]),
                    ]);
                }
            }
            _ if atom.index() < self.arena.len() && self.arena.flags(atom) & IS_BOOL != 0 => {
                let one = LinearForm { constant: -1, ..LinearForm::term(1, atom) };
                system.splits.push(vec![
                    Case::from_iter([Constraint::Holds(atom, true), Constraint::Eq(one)]),
                    Case::from_iter([
                        Constraint::Holds(atom, false),
                        Constraint::Eq(LinearForm::term(1, atom)),
                    ]),
                ]);
            }
            _ => {}
        }
    }

    fn define_var(
        &mut self,
        system: &mut ConstraintSystem,
        atom: Sym,
        var: crate::term_types::SymVar,
    ) {
        if let Some(value) = self.facts.binding(var) {
            let value = self.arena.lin_mut(value);
            system.push_eq(minus(&LinearForm::term(1, atom), &value));
        }
        let set = self.facts.residue(var);
        if set.coeff > 1 {
            let multiple = LinearForm::term(set.coeff, system.fresh_atom());
            // The unknown multiple has no definition, so do not record it as an atom.
            if let Some(eq) =
                multiple.sub(&LinearForm::term(1, atom)).and_then(|l| l.add_const(set.base))
            {
                system.eq.push(eq);
            }
        }
    }

    /// Adds the definition of `atom`, a quotient `q = x // d` with a divisor of at least 1: `d * q <= x <= d * q + d - 1`.
    fn define_quotient(&mut self, system: &mut ConstraintSystem, atom: Sym, x: Sym, d: Sym) {
        let lx = self.arena.lin_mut(x);
        if let Some(c) = self.arena.as_int(d) {
            if c < 1 {
                return;
            }
            // Restrict the remainder to the possible residues of the dividend.
            let set = self.modular_at(x, 0);
            let step = crate::linear_form::gcd(set.coeff.unsigned_abs(), c.unsigned_abs());
            let step = i64::try_from(step).unwrap_or(1).max(1);
            let least = set.base.rem_euclid(step);
            let rest = minus(&lx, &LinearForm::term(c, atom));
            if let Some(rest) = rest.clone().filter(|_| c <= MAX_RESIDUES) {
                system.quotients.push((c, rest));
            }
            system.push_ge(rest.clone().and_then(|r| r.add_const(-least)));
            let most = c - step + least;
            system.push_ge(rest.and_then(|r| r.scale(-1)?.add_const(most)));
            return;
        }
        if self.bound_at(d, 0).min < 1 && !self.is_at_least(d, 1) {
            return;
        }
        let ld = self.arena.lin_mut(d);
        let Some(product) = self.arena.mul_lin(&LinearForm::term(1, atom), &ld) else { return };
        let rest = minus(&lx, &product);
        system.push_ge(rest.clone());
        let slack = rest.and_then(|r| minus(&ld, &r)?.add_const(-1));
        system.push_ge(slack);
        if self.is_at_least(x, 0) {
            system.push_range(atom, Some(0), None);
            system.push_ge(minus(&lx, &LinearForm::term(1, atom)));
        }
    }

    /// Adds the definition of `atom`, a remainder `r = x % d` with a non-constant divisor of at least 1: `0 <= r < d` and
    /// `d * q + r == x` with the quotient `q = x // d`.
    fn define_remainder(&mut self, system: &mut ConstraintSystem, atom: Sym, x: Sym, d: Sym) {
        if self.arena.as_int(d).is_some()
            || (self.bound_at(d, 0).min < 1 && !self.is_at_least(d, 1))
        {
            return;
        }
        let (lx, ld) = (self.arena.lin_mut(x), self.arena.lin_mut(d));
        let own = LinearForm::term(1, atom);
        system.push_range(atom, Some(0), None);
        system.push_ge(minus(&ld, &own).and_then(|l| l.add_const(-1)));
        let quotient = self.arena.floordiv(x, d);
        let lq = self.arena.lin_mut(quotient);
        if let Some(product) = self.arena.mul_lin(&lq, &ld) {
            system.push_eq(minus(&lx, &product).and_then(|l| minus(&l, &own)));
        }
        if self.is_at_least(x, 0) {
            system.push_ge(minus(&lx, &own));
        }
    }

    /// Adds constraints on a product that follow from the bounds of its factors. For each factor `f` and the product `r` of the
    /// other factors, these are `(f - f_lo) * (r - r_lo) >= 0` and the three similar inequalities with upper bounds.
    fn define_product(&mut self, system: &mut ConstraintSystem, atom: Sym, factors: &[Sym]) {
        for (i, &f) in factors.iter().enumerate() {
            if i > 0 && factors[i - 1] == f {
                continue;
            }
            let mut rest = SymList::from_slice(factors);
            rest.remove(i);
            let Some(rest) = self.arena.product_of(rest) else { continue };
            let (bf, br) = (self.bound_at(f, 0), self.bound_at(rest, 0));
            system.note(&LinearForm::term(1, f));
            for (cf, sf) in [(bf.lo(), 1), (bf.hi(), -1)] {
                for (cr, sr) in [(br.lo(), 1), (br.hi(), -1)] {
                    if let (Some(cf), Some(cr)) = (cf, cr) {
                        system.push_ge(product_row(atom, (f, cf), (rest, cr), sf * sr));
                    }
                }
            }
            if factors.len() == 2 {
                break;
            }
        }
    }

    /// Adds the definition of an atom `m` that is a minimum or maximum: `sign * (m - x) <= 0` for each operand `x`, with equality
    /// for at least one operand. `sign` is 1 for a minimum and -1 for a maximum.
    fn define_extremum(
        &mut self,
        system: &mut ConstraintSystem,
        atom: Sym,
        items: &[Sym],
        sign: i64,
    ) {
        let mut cases = Vec::new();
        for &x in items {
            let lx = self.arena.lin_mut(x);
            let Some(gap) = minus(&lx, &LinearForm::term(1, atom)) else { return };
            system.push_ge(gap.scale(sign));
            cases.push(Case::from_iter([Constraint::Eq(gap)]));
        }
        system.splits.push(cases);
    }

    /// Whether a term is provably at least `least`. May start a proof inside the current proof, up to the nesting depth
    /// [`MAX_NESTING`].
    pub(crate) fn is_at_least(&mut self, sym: Sym, least: i64) -> bool {
        let lin = self.arena.lin_mut(sym);
        if self.relaxed_bound(&lin).lo().is_some_and(|lo| lo >= least) {
            return true;
        }
        if self.nesting >= MAX_NESTING {
            return false;
        }
        let Some(below) = lin.scale(-1).and_then(|l| l.add_const(least.checked_sub(1)?)) else {
            return false;
        };
        self.nesting += 1;
        let proved = self.contradictory([Constraint::Ge(below)]);
        self.nesting -= 1;
        proved
    }
}

/// The constraint `sign * (f - cf) * (r - cr) >= 0` for two terms `f` and `r` whose product is an atom, and constants `cf` and
/// `cr`.
fn product_row(
    atom: Sym,
    (f, cf): (Sym, i64),
    (r, cr): (Sym, i64),
    sign: i64,
) -> Option<LinearForm> {
    LinearForm::term(1, atom)
        .add(&LinearForm::term(cr.checked_neg()?, f))?
        .add(&LinearForm::term(cf.checked_neg()?, r))?
        .add_const(cf.checked_mul(cr)?)?
        .scale(sign)
}
