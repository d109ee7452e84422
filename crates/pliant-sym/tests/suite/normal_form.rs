//! Tests examples of the normal form: folding, printing, independence of construction order.

use pliant_sym::{EvalError, Sym, SymArena};

fn show(a: &SymArena, s: Sym) -> String {
    a.display(s).to_string()
}

fn vars(a: &mut SymArena) -> (Sym, Sym, Sym) {
    let mut make = |name: &str| {
        let v = a.fresh_var(name);
        a.var(v)
    };
    (make("n"), make("m"), make("k"))
}

#[test]
fn sums_and_products_are_folded_and_printed() {
    let a = &mut SymArena::new();
    let (n, m, _) = vars(a);
    let (one, four) = (a.int(1), a.int(4));
    let n4 = a.mul(n, four);
    let s = a.add(n4, one);
    assert_eq!(show(a, s), "n * 4 + 1");
    let nm = a.mul(n, m);
    let mn = a.mul(m, n);
    assert_eq!(nm, mn);
    assert_eq!(show(a, nm), "m * n");
    let back = a.sub(s, n4);
    assert_eq!(back, one);
    let d = a.sub(m, n);
    assert_eq!(show(a, d), "m - n");
    let e = a.sub(one, n);
    assert_eq!(show(a, e), "1 - n");
    let neg = a.neg(nm);
    assert_eq!(show(a, neg), "-(m * n)");
}

#[test]
fn division_identities_hold() {
    let a = &mut SymArena::new();
    let (n, m, _) = vars(a);
    let (three, four, six) = (a.int(3), a.int(4), a.int(6));
    let c = a.ceildiv(n, four);
    assert_eq!(show(a, c), "(n + 3) // 4");
    let x = a.mul(n, six);
    let x = a.add(x, three);
    let q = a.floordiv(x, three);
    assert_eq!(show(a, q), "n * 2 + 1");
    let q = a.floordiv(n, four);
    let r = a.floormod(n, four);
    assert_eq!(show(a, r), "n % 4");
    let qm = a.mul(q, four);
    let whole = a.add(qm, r);
    assert_eq!(whole, n);
    let diff = a.sub(n, qm);
    assert_eq!(diff, r);
    let again = a.floordiv(q, three);
    assert_eq!(show(a, again), "n // 12");
    // `(n % 4 + m % 3 * 4) // 12` is 0, so the remainder is the sum itself.
    let mm = a.floormod(m, three);
    let mm4 = a.mul(mm, four);
    let flat = a.add(r, mm4);
    let twelve = a.int(12);
    let zero = a.floordiv(flat, twelve);
    assert_eq!(a.as_int(zero), Some(0));
    assert_eq!(a.floormod(flat, twelve), flat);
    assert_eq!(a.floordiv(flat, four), mm);
    assert_eq!(a.floormod(flat, four), r);
    // Split an index into digits and join them again.
    let eight = a.int(8);
    let high = a.floordiv(n, eight);
    let two = a.int(2);
    let mid = a.floormod(q, two);
    assert_eq!(show(a, mid), "n // 4 % 2");
    let (h, mi) = (a.mul(high, eight), a.mul(mid, four));
    let joined = a.sum([h, mi, r]);
    assert_eq!(joined, n);
}

#[test]
fn minima_maxima_and_logic_are_normalized() {
    let a = &mut SymArena::new();
    let (n, m, k) = vars(a);
    let one = a.int(1);
    let n1 = a.add(n, one);
    assert_eq!(a.min(n, n1), n);
    assert_eq!(a.max(n, n1), n1);
    let nm = a.min(n, m);
    let x = a.min(nm, k);
    let mk = a.min(m, k);
    let y = a.min(mk, n);
    assert_eq!(x, y);
    assert_eq!(show(a, x), "T.min(T.min(k, m), n)");
    let lt = a.lt(n, m);
    assert_eq!(show(a, lt), "n < m");
    let ge = a.not(lt);
    assert_eq!(show(a, ge), "m <= n");
    let both = a.and(lt, ge);
    assert_eq!(a.as_int(both), Some(0));
    let pos = a.ge(n, one);
    assert_eq!(show(a, pos), "1 <= n");
    let sel = a.select(lt, n, m);
    assert_eq!(show(a, sel), "T.Select(n < m, n, m)");
    let t = a.le(n, n1);
    assert_eq!(a.as_int(t), Some(1));
}

#[test]
fn a_select_of_branches_that_agree_where_it_chooses_is_one_branch() {
    let a = &mut SymArena::new();
    let (n, m, k) = vars(a);
    let [zero, one, limit] = [0, 1, 512].map(|v| a.int(v));
    for size in [n, a.mul(n, m), a.add(n, one), a.floordiv(n, limit)] {
        let clipped = a.min(size, limit);
        let is_one = a.eq(size, one);
        let is_not_one = a.ne(size, one);
        assert_eq!(a.select(is_one, clipped, size), size);
        assert_eq!(a.select(is_not_one, size, clipped), size);
    }
    // The branches differ where the condition holds.
    let is_one = a.eq(n, one);
    let broadcast = a.select(is_one, k, n);
    assert_eq!(show(a, broadcast), "T.Select(n == 1, k, n)");
    // A division by 0 is not folded.
    let is_zero = a.eq(n, zero);
    let quotient = a.floordiv(k, n);
    let kept = a.select(is_zero, quotient, k);
    assert_eq!(show(a, kept), "T.Select(n == 0, k // n, k)");
}

#[test]
fn overflow_and_zero_divisors_stay_unfolded() {
    let a = &mut SymArena::new();
    let (n, ..) = vars(a);
    let big = a.int(i64::MAX);
    let two = a.int(2);
    let zero = a.int(0);
    let sum = a.add(big, big);
    assert_eq!(a.evaluate(sum, &|_| None), Err(EvalError::Overflow));
    let least = a.int(i64::MIN);
    let minus = a.int(-1);
    for s in [a.mul(big, two), a.floordiv(least, minus), a.neg(least), a.sub(zero, least)] {
        assert_eq!(a.evaluate(s, &|_| None), Err(EvalError::Overflow), "{}", show(a, s));
    }
    let nb = a.mul(n, big);
    let nbb = a.mul(nb, big);
    assert_eq!(a.evaluate(nbb, &|_| Some(0)), Ok(0));
    for s in [a.floordiv(n, zero), a.floormod(n, zero), a.floordiv(two, zero)] {
        assert_eq!(a.evaluate(s, &|_| Some(5)), Err(EvalError::DivideByZero), "{}", show(a, s));
    }
    assert!(matches!(a.evaluate(n, &|_| None), Err(EvalError::Unbound(_))));
}

#[test]
fn deep_and_long_terms_do_not_overflow_the_stack() {
    let a = &mut SymArena::new();
    let (n, m, _) = vars(a);
    let (mut deep, mut long) = (n, n);
    for i in 0..100_000 {
        deep = if i % 2 == 0 { a.floordiv(m, deep) } else { a.max(deep, n) };
        let v = a.fresh_var("x");
        let x = a.var(v);
        long = a.add(long, x);
    }
    assert!(a.evaluate(deep, &|_| Some(1)).is_ok());
    assert_eq!(a.evaluate(long, &|_| Some(1)), Ok(100_001));
    assert_eq!(a.free_vars(deep).len(), 2);
    let mut text = String::new();
    a.write(deep, &mut text, &|v| a.name(v).into()).expect("a string takes any text");
    assert!(text.len() > 300_000);
    let three = a.int(3);
    let other = a.substitute(deep, &|_| Some(three));
    assert!(a.evaluate(other, &|_| None).is_ok());
}
