//! Tests terms that are nested very deeply, have very many operands or very large constants. No operation may panic, hang or
//! overflow.

use pliant_sym::{Analyzer, Facts, Sym, SymArena};
use proptest::prelude::*;

use crate::random_expressions::{arena, extreme_arith, predicate_over};

fn var(a: &mut SymArena, name: &str) -> Sym {
    let v = a.fresh_var(name);
    a.var(v)
}

/// Runs every kind of query (bounds, residues, proofs, simplification) on one term.
fn ask(a: &mut SymArena, facts: &Facts, s: Sym) {
    let zero = a.int(0);
    let mut z = Analyzer::new(a, facts);
    let simple = z.simplify(s);
    assert_eq!(z.simplify(simple), simple);
    let _ = z.const_int_bound(s);
    let _ = z.modular_set(s);
    let _ = z.prove_le(zero, s);
    let _ = z.prove_eq(zero, s);
    let _ = z.prove(s);
    let _ = a.evaluate(s, &|_| Some(3));
    let _ = a.free_vars(s);
}

#[test]
fn deeply_nested_terms_are_handled() {
    let a = &mut SymArena::new();
    let (n, m) = (var(a, "n"), var(a, "m"));
    let one = a.int(1);
    let three = a.int(3);
    let mut nests = [n; 8];
    for i in 0..1_000 {
        let c = a.int(2 + i % 7);
        nests[0] = a.floordiv(m, nests[0]);
        nests[1] = {
            let x = a.max(nests[1], m);
            a.min(x, nests[1])
        };
        nests[2] = {
            let x = a.floormod(nests[2], c);
            a.add(x, m)
        };
        nests[3] = {
            let x = a.mul(nests[3], three);
            let x = a.add(x, n);
            a.floormod(x, c)
        };
        nests[4] = {
            let p = a.lt(nests[4], m);
            a.select(p, n, nests[4])
        };
        nests[5] = {
            let x = a.lt(nests[5], n);
            let y = a.or(x, m);
            a.and(y, n)
        };
        nests[6] = {
            let x = a.floordiv(nests[6], c);
            let x = a.add(x, n);
            a.mul(x, m)
        };
        nests[7] = {
            let x = a.add(nests[7], one);
            a.mul(x, nests[7].min(m))
        };
    }
    let facts = Facts::new();
    for s in nests {
        ask(a, &facts, s);
    }
}

#[test]
fn long_sums_and_large_powers_are_handled() {
    let a = &mut SymArena::new();
    let n = var(a, "n");
    let (mut sum, mut low, mut product, mut all, mut digits) = (n, n, n, n, n);
    let mut facts = Facts::new();
    for i in 0..2_000 {
        let v = a.fresh_var("x");
        facts.assume_size(v);
        let x = a.var(v);
        let c = a.int(2 + i % 13);
        sum = a.sub(sum, x);
        low = a.min(low, x);
        product = a.mul(product, x);
        let p = a.lt(sum, x);
        all = a.and(all, p);
        let digit = a.floormod(x, c);
        digits = a.add(digits, digit);
    }
    let one = a.int(1);
    let n1 = a.add(n, one);
    let mut power = n1;
    for _ in 0..200 {
        power = a.mul(power, n1);
    }
    let mut square = n1;
    for _ in 0..12 {
        square = a.mul(square, square);
    }
    for s in [sum, low, product, all, digits, power, square] {
        ask(a, &facts, s);
    }
}

#[test]
fn constants_near_the_limits_of_i64_do_not_wrap() {
    let a = &mut SymArena::new();
    let v = a.fresh_var("n");
    let n = a.var(v);
    let mut facts = Facts::new();
    facts.assume_range(v, Some(i64::MIN), Some(i64::MAX));
    facts.assume_divisible(v, i64::MAX);
    facts.assume_residue(v, i64::MAX - 1, i64::MIN);
    let constants = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
    let ints: Vec<Sym> = constants.iter().map(|&c| a.int(c)).collect();
    for &c in &ints {
        let scaled = a.mul(n, c);
        let shifted = a.add(n, c);
        for &d in &ints {
            let built = [
                a.add(scaled, d),
                a.sub(scaled, d),
                a.mul(shifted, d),
                a.floordiv(scaled, d),
                a.floormod(scaled, d),
                a.floordiv(shifted, d),
                a.floormod(shifted, d),
                a.ceildiv(shifted, d),
                a.floordiv(c, d),
                a.floormod(c, d),
                a.ceildiv(c, d),
                a.min(shifted, d),
                a.lt(scaled, d),
                a.eq(scaled, d),
                a.le(shifted, d),
                a.ne(d, shifted),
            ];
            for s in built {
                ask(a, &facts, s);
                let text = a.display(s).to_string();
                assert!(!text.is_empty());
                for at in constants {
                    let _ = a.evaluate(s, &|_| Some(at));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn random_terms_with_extreme_constants_do_not_wrap(
        term in extreme_arith(),
        other in extreme_arith(),
        assumed in proptest::collection::vec(predicate_over(extreme_arith()), 0..3),
    ) {
        let (mut a, vars) = arena();
        let mut facts = Facts::new();
        for assumption in &assumed {
            let assumption = assumption.build(&mut a, &vars);
            facts.assume(&a, assumption);
        }
        let (term, other) = (term.build(&mut a, &vars), other.build(&mut a, &vars));
        ask(&mut a, &facts, term);
        let mut z = Analyzer::new(&mut a, &facts);
        let _ = (z.prove_eq(term, other), z.prove_le(term, other), z.prove_lt(term, other));
    }
}

#[test]
fn contradictory_and_circular_facts_are_handled() {
    let a = &mut SymArena::new();
    let (v, w) = (a.fresh_var("n"), a.fresh_var("m"));
    let (n, m) = (a.var(v), a.var(w));
    let one = a.int(1);
    let (n1, m1) = (a.add(n, one), a.add(m, one));
    let mut facts = Facts::new();
    facts.bind(v, m1);
    facts.bind(w, n1);
    facts.assume_range(v, Some(5), Some(2));
    let p = a.floordiv(n, m);
    let q = a.mul(n, m);
    for s in [n, m, p, q] {
        ask(a, &facts, s);
    }
}

/// Builds a deeply nested term: starts with `n`, and replaces `e` by `(scale * e + shift) // divisor` repeatedly, with the values
/// of `steps` in turn.
fn resampled(a: &mut SymArena, n: Sym, steps: &[(i64, i64, i64)], levels: usize) -> Sym {
    steps.iter().cycle().take(levels).fold(n, |e, &(scale, shift, divisor)| {
        let (scale, shift, divisor) = (a.int(scale), a.int(shift), a.int(divisor));
        let x = a.mul(e, scale);
        let x = a.add(x, shift);
        a.floordiv(x, divisor)
    })
}

#[test]
fn repeated_scaling_grows_linearly() {
    let chains: [&[(i64, i64, i64)]; 6] = [
        &[(3, 1, 2)],
        &[(2, 0, 3)],
        &[(2, 0, 3), (3, 0, 2)],
        &[(7, 5, 4), (5, -3, 7)],
        &[(-3, 1, 2)],
        &[(12, 1, 8), (3, 2, 2), (1, 1, 2)],
    ];
    for steps in chains {
        for (levels, most) in [(40, 2_000), (1_000, 100_000)] {
            let a = &mut SymArena::new();
            let v = a.fresh_var("n");
            let n = a.var(v);
            let s = resampled(a, n, steps, levels);
            let text = a.display(s).to_string();
            assert!(text.len() < most, "{levels} levels of {steps:?}: {} characters", text.len());
            let mut facts = Facts::new();
            facts.assume_size(v);
            let mut z = Analyzer::new(a, &facts);
            let simple = z.simplify(s);
            assert_eq!(z.simplify(simple), simple);
            let length = a.display(simple).to_string().len();
            assert!(length < most, "{levels} levels of {steps:?} simplify to {length} characters");
            if levels > 40 {
                continue;
            }
            assert_eq!(crate::expression_parser::parse(a, &text, &mut |_, _| n), s, "{text}");
            for at in [1, 2, 7, 1_000] {
                let direct = steps.iter().cycle().take(levels).try_fold(at, |e: i64, step| {
                    Some(e.checked_mul(step.0)?.checked_add(step.1)?.div_euclid(step.2))
                });
                let Some(direct) = direct else { continue };
                if let Ok(value) = a.evaluate(s, &|_| Some(at)) {
                    assert_eq!(value, direct, "{text} at {at}");
                }
                assert_eq!(a.evaluate(simple, &|_| Some(at)), a.evaluate(s, &|_| Some(at)));
            }
        }
    }
}
