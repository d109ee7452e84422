//! Proofs of relations between symbolic sizes. They assume that all symbols in shapes are at least 0.

use pliant_ir::relax::Function;
use pliant_sym::{Analyzer, Facts, Proof, Sym};

/// Whether two sizes are equal, or `None` if that is unknown.
pub fn equal(func: &mut Function, a: Sym, b: Sym) -> Option<bool> {
    // The most frequent query: every broadcast compares dims.
    if a == b {
        return Some(true);
    }
    if let (Some(x), Some(y)) = (func.syms.as_int(a), func.syms.as_int(b)) {
        return Some(x == y);
    }
    prove(func, &[a, b], |analyzer| analyzer.prove_eq(a, b))
}

/// Whether `a <= b`, or `None` if that is unknown.
pub fn at_most(func: &mut Function, a: Sym, b: Sym) -> Option<bool> {
    prove(func, &[a, b], |analyzer| analyzer.prove_le(a, b))
}

/// Whether `b` divides `a`, or `None` if that is unknown.
pub fn divides(func: &mut Function, b: Sym, a: Sym) -> Option<bool> {
    let rest = func.syms.floormod(a, b);
    let zero = func.syms.int(0);
    equal(func, rest, zero)
}

fn prove(
    func: &mut Function,
    terms: &[Sym],
    query: impl FnOnce(&mut Analyzer<'_>) -> Proof,
) -> Option<bool> {
    let mut facts = Facts::new();
    for &term in terms {
        for var in func.syms.free_vars(term) {
            facts.assume_size(var);
        }
    }
    match query(&mut Analyzer::new(&mut func.syms, &facts)) {
        Proof::Yes => Some(true),
        Proof::No => Some(false),
        Proof::Unknown => None,
    }
}

/// Whether two shapes are equal except for dims that are the constant 1.
pub fn differ_only_in_unit_dims(func: &Function, a: &[Sym], b: &[Sym]) -> bool {
    let is_long = |d: &&Sym| func.syms.as_int(**d) != Some(1);
    a.iter().filter(is_long).eq(b.iter().filter(is_long))
}
