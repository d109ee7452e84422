//! Property tests: compare building, simplifying and proving with brute-force evaluation of random expressions.

use crate::expression_parser::parse;
use crate::random_expressions::{Expr, Op, arena, arith, points, predicate, two};
use pliant_sym::{Analyzer, Facts, Proof, SymArena, SymVar};
use proptest::prelude::*;

const BOX: [(i64, i64); 3] = [(-4, 7), (-3, 5), (0, 4)];

fn binding<'a>(vars: &'a [SymVar], at: &'a [i64; 3]) -> impl Fn(SymVar) -> Option<i64> + 'a {
    move |v| vars.iter().position(|&x| x == v).map(|i| at[i])
}

fn ranges() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let side = (-3..4i64, 0..7i64).prop_map(|(lo, len)| (lo, lo + len));
    proptest::collection::vec(side, 3)
}

fn facts_of(a: &mut SymArena, vars: &[SymVar], sides: &[(i64, i64)], assumed: &[Expr]) -> Facts {
    let mut facts = Facts::new();
    for (v, &(lo, hi)) in vars.iter().zip(sides) {
        facts.assume_range(*v, Some(lo), Some(hi));
    }
    for p in assumed {
        let p = p.build(a, vars);
        facts.assume(a, p);
    }
    facts
}

/// Lists the values of the three variables in the ranges `sides` that satisfy all assumptions.
fn allowed(sides: &[(i64, i64)], assumed: &[Expr]) -> Vec<[i64; 3]> {
    let mut all = points(sides);
    all.retain(|at| assumed.iter().all(|p| p.value(at).is_some_and(|v| v != 0)));
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn building_preserves_the_value(e in prop_oneof![arith(), predicate()]) {
        let (mut a, vars) = arena();
        let s = e.build(&mut a, &vars);
        for at in points(&BOX) {
            if let Some(v) = e.value(&at) {
                prop_assert_eq!(a.evaluate(s, &binding(&vars, &at)), Ok(v), "{} at {:?}", a.display(s), at);
            }
        }
    }

    #[test]
    fn rebuilding_gives_the_same_term(e in prop_oneof![arith(), predicate()]) {
        let (mut a, vars) = arena();
        let s = e.build(&mut a, &vars);
        // Importing to another arena and back rebuilds every node, in another order.
        let (mut other, _) = (SymArena::new(), ());
        let back: Vec<SymVar> = vars.iter().rev().map(|&v| other.fresh_var(a.name(v))).collect();
        let there = other.import(&a, s, &mut |o, v| {
            let i = vars.iter().position(|&x| x == v).expect("one of the three");
            o.var(back[2 - i])
        });
        let again = a.import(&other, there, &mut |o, v| {
            let i = back.iter().position(|&x| x == v).expect("one of the three");
            o.var(vars[2 - i])
        });
        prop_assert_eq!(again, s, "{} / {} / {}", a.display(s), other.display(there), a.display(again));
    }

    #[test]
    fn printed_terms_parse_to_the_same_term(e in prop_oneof![arith(), predicate()]) {
        let (mut a, vars) = arena();
        let s = e.build(&mut a, &vars);
        let text = a.display(s).to_string();
        let find = |name: &str| vars[crate::random_expressions::VARS.iter().position(|v| *v == name).expect("n, m, k")];
        let again = parse(&mut a, &text, &mut |a, name| a.var(find(name)));
        prop_assert_eq!(again, s, "{} / {}", text, a.display(again));
        // In another arena, whose variables are created in the order of the text, it prints the same.
        let mut other = SymArena::new();
        let mut made: Vec<(String, SymVar)> = Vec::new();
        let there = parse(&mut other, &text, &mut |o, name| {
            let known = made.iter().find(|m| m.0 == name).map(|m| m.1);
            let var = known.unwrap_or_else(|| {
                made.push((name.to_owned(), o.fresh_var(name)));
                made[made.len() - 1].1
            });
            o.var(var)
        });
        prop_assert_eq!(other.display(there).to_string(), text);
    }

    #[test]
    fn sums_do_not_depend_on_order(items in proptest::collection::vec(arith(), 2..5), seed in 0..24usize) {
        let (mut a, vars) = arena();
        let syms: Vec<_> = items.iter().map(|e| e.build(&mut a, &vars)).collect();
        let forward = a.sum(syms.iter().copied());
        let mut shuffled = syms.clone();
        shuffled.rotate_left(seed % syms.len());
        shuffled.reverse();
        let other = a.sum(shuffled.iter().copied());
        prop_assert_eq!(forward, other, "{} / {}", a.display(forward), a.display(other));
        let (x, y) = (syms[0], syms[1]);
        prop_assert_eq!(a.mul(x, y), a.mul(y, x));
        prop_assert_eq!(a.min(x, y), a.min(y, x));
        prop_assert_eq!(a.max(x, y), a.max(y, x));
        let back = a.add(x, y);
        let back = a.sub(back, y);
        prop_assert_eq!(back, x, "{} / {}", a.display(back), a.display(x));
    }

    #[test]
    fn simplifying_preserves_the_value_and_is_idempotent(
        e in prop_oneof![arith(), predicate()],
        sides in ranges(),
        assumed in proptest::collection::vec(predicate(), 0..2),
    ) {
        let (mut a, vars) = arena();
        let s = e.build(&mut a, &vars);
        let facts = facts_of(&mut a, &vars, &sides, &assumed);
        let mut z = Analyzer::new(&mut a, &facts);
        let simple = z.simplify(s);
        let twice = z.simplify(simple);
        let bound = z.const_int_bound(s);
        let set = z.modular_set(s);
        prop_assert_eq!(simple, twice);
        let mut fresh = Analyzer::new(&mut a, &facts);
        prop_assert_eq!(fresh.simplify(simple), simple);
        for at in allowed(&sides, &assumed) {
            if let Some(v) = e.value(&at) {
                prop_assert_eq!(
                    a.evaluate(simple, &binding(&vars, &at)), Ok(v),
                    "{} -> {} at {:?}", a.display(s), a.display(simple), at
                );
                prop_assert!(bound.contains(v), "{} = {v} outside {bound:?}", a.display(s));
                prop_assert!(set.contains(v), "{} = {v} outside {set:?}", a.display(s));
            }
        }
    }

    #[test]
    fn the_prover_is_never_wrong(
        p in predicate(),
        sides in ranges(),
        open in 0..8usize,
        assumed in proptest::collection::vec(predicate(), 0..3),
    ) {
        let (mut a, vars) = arena();
        let s = p.build(&mut a, &vars);
        let mut facts = Facts::new();
        for (i, (v, &(lo, hi))) in vars.iter().zip(&sides).enumerate() {
            // Leave some ranges without an upper bound. A proof must then hold for the box, too.
            facts.assume_range(*v, Some(lo), (open >> i & 1 == 0).then_some(hi));
        }
        for q in &assumed {
            let q = q.build(&mut a, &vars);
            facts.assume(&a, q);
        }
        let proof = Analyzer::new(&mut a, &facts).prove(s);
        for at in allowed(&sides, &assumed) {
            if let Some(v) = p.value(&at) {
                let wrong = if v == 0 { Proof::Yes } else { Proof::No };
                prop_assert_ne!(proof, wrong, "{} at {:?}", a.display(s), at);
            }
        }
    }

    #[test]
    fn assumed_residues_are_respected(e in arith(), modulus in 1..7i64, residue in 0..7i64) {
        let (mut a, vars) = arena();
        let s = e.build(&mut a, &vars);
        let mut facts = Facts::new();
        facts.assume_residue(vars[0], modulus, residue);
        let mut z = Analyzer::new(&mut a, &facts);
        let simple = z.simplify(s);
        let set = z.modular_set(s);
        let zero = z.arena().int(0);
        let positive = z.prove_lt(zero, s);
        for at in points(&BOX) {
            if (at[0] - residue).rem_euclid(modulus) != 0 {
                continue;
            }
            if let Some(v) = e.value(&at) {
                prop_assert_eq!(a.evaluate(simple, &binding(&vars, &at)), Ok(v));
                prop_assert!(set.contains(v));
                prop_assert_ne!(positive, if v > 0 { Proof::No } else { Proof::Yes });
            }
        }
    }

    #[test]
    fn splitting_and_joining_digits_is_the_identity(coefs in [-9..9i64, -9..9, -9..9, -9..9], c in 1..9i64, d in 1..9i64) {
        let (mut a, vars) = arena();
        let term = |i: usize| two(Op::Mul, Expr::Var(i), Expr::Int(coefs[i]));
        let e = two(Op::Add, two(Op::Add, term(0), term(1)), Expr::Int(coefs[3]));
        let x = two(Op::Add, e, term(2)).build(&mut a, &vars);
        let (c, d) = (a.int(c), a.int(d));
        let cd = a.mul(c, d);
        let low = a.floormod(x, c);
        let q = a.floordiv(x, c);
        let mid = a.floormod(q, d);
        let high = a.floordiv(x, cd);
        let (m, h) = (a.mul(mid, c), a.mul(high, cd));
        prop_assert_eq!(a.sum([low, m, h]), x);
        prop_assert_eq!(a.sum([h, low, m]), x);
    }
}
