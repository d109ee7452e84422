//! Tests the solutions of `match_cast` patterns by brute force.

use pliant_sym::{Sym, SymArena, SymVar, solve_match};

fn setup() -> (SymArena, SymVar, SymVar) {
    let mut a = SymArena::new();
    let (n, m) = (a.fresh_var("n"), a.fresh_var("m"));
    (a, n, m)
}

/// Checks, for all small `n` and `m`, that the solution computes `n` from the value of the pattern, and that it rejects observed
/// sizes that no `n` produces.
fn check(a: &mut SymArena, pattern: Sym, n: SymVar, m: SymVar) {
    let s = solve_match(a, pattern, "observed", &|v| v == m).expect("the pattern is linear in n");
    assert_eq!(s.var, n);
    for mv in 0..5i64 {
        for seen in 0..40i64 {
            let env = |v: SymVar| match v {
                v if v == m => Some(mv),
                v if v == s.observed => Some(seen),
                _ => None,
            };
            let ok = s.checks.iter().all(|&c| a.evaluate(c, &env) == Ok(1));
            let fits: Vec<i64> = (0..60)
                .filter(|&nv| {
                    let at = |v: SymVar| Some(if v == n { nv } else { mv });
                    a.evaluate(pattern, &at) == Ok(seen)
                })
                .collect();
            if ok {
                let value = a.evaluate(s.value, &env).expect("checked");
                assert_eq!(fits, [value], "m {mv} observed {seen}");
            } else {
                assert_ne!(fits.len(), 1, "m {mv} observed {seen} refused");
            }
        }
    }
}

#[test]
fn linear_patterns_are_solved() {
    let (mut a, n, m) = setup();
    let (vn, vm) = (a.var(n), a.var(m));
    let (one, two, four) = (a.int(1), a.int(2), a.int(4));
    let double = a.mul(vn, two);
    let next = a.add(vn, one);
    let n4 = a.mul(vn, four);
    let n4m = a.add(n4, vm);
    let nm = a.mul(vn, vm);
    let affine = a.add(nm, vm);
    let less = a.sub(vm, vn);
    let more = a.sub(nm, two);
    for p in [vn, double, next, n4m, nm, affine, less, more] {
        check(&mut a, p, n, m);
    }
    let s = solve_match(&mut a, vn, "observed", &|v| v == m).expect("a plain variable");
    assert!(s.checks.is_empty());
}

#[test]
fn nonlinear_patterns_are_not_solved() {
    let (mut a, n, m) = setup();
    let (vn, vm) = (a.var(n), a.var(m));
    let two = a.int(2);
    let square = a.mul(vn, vn);
    let half = a.floordiv(vn, two);
    let sum = a.add(vn, vm);
    let rest = a.floormod(vn, two);
    assert_eq!(solve_match(&mut a, square, "observed", &|_| false), None);
    assert_eq!(solve_match(&mut a, half, "observed", &|_| false), None);
    assert_eq!(solve_match(&mut a, rest, "observed", &|_| false), None);
    assert_eq!(solve_match(&mut a, sum, "observed", &|_| false), None, "two unknowns");
    assert_eq!(solve_match(&mut a, sum, "observed", &|_| true), None, "nothing to solve for");
    assert_eq!(solve_match(&mut a, two, "observed", &|_| false), None);
}
