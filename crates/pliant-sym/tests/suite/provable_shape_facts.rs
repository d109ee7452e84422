//! Tests that the prover proves typical predicates about shapes in compilers.

use pliant_sym::{Analyzer, Facts, Proof, Sym, SymArena, SymVar};

use crate::expression_parser::parse;

/// A test case: assumed predicates, and the predicate to prove. All sizes are at least 0.
struct Case(&'static [&'static str], &'static str);

const FACTS: &[Case] = &[
    // Ceiling division and padding.
    Case(&[], "ceildiv(n, 4) * 4 >= n"),
    Case(&[], "ceildiv(n, 4) * 4 - n < 4"),
    Case(&[], "n // 4 * 4 <= n"),
    Case(&[], "n - n // 4 * 4 < 4"),
    Case(&[], "n - n // 4 * 4 == n % 4"),
    Case(&["n >= 1"], "(n + 1) // 2 <= n"),
    Case(&[], "ceildiv(n, 2) <= n"),
    Case(&[], "ceildiv(n, 1) == n"),
    Case(&["n >= 1"], "ceildiv(n, 8) >= 1"),
    Case(&[], "ceildiv(n * 8, 8) == n"),
    Case(&[], "ceildiv(n + 8, 8) == ceildiv(n, 8) + 1"),
    Case(&[], "ceildiv(n, 4) <= n // 4 + 1"),
    Case(&[], "n // 4 <= ceildiv(n, 4)"),
    Case(&[], "n + (-n) % 8 == ceildiv(n, 8) * 8"),
    Case(&[], "(n + (-n) % 8) % 8 == 0"),
    Case(&[], "ceildiv(ceildiv(n, 2), 3) == ceildiv(n, 6)"),
    Case(&[], "n // 2 // 3 == n // 6"),
    Case(&[], "(n + 63) // 64 * 64 <= n + 63"),
    Case(&["n <= 512"], "ceildiv(n, 64) <= 8"),
    Case(&["n <= m"], "ceildiv(n, 16) <= ceildiv(m, 16)"),
    Case(&["n <= m"], "n // 7 <= m // 7"),
    Case(&["n < m"], "n // 4 * 4 < m"),
    Case(&["n % 8 == 0"], "n // 8 * 8 == n"),
    Case(&["n % 8 == 0"], "n % 4 == 0"),
    Case(&["n % 8 == 0"], "ceildiv(n, 4) == n // 4"),
    Case(&["n % 8 == 0", "n >= 1"], "n >= 8"),
    Case(&["n == k * 4"], "n // 4 == k"),
    Case(&["n == k * 4"], "n % 4 == 0"),
    // Remainders.
    Case(&[], "n % 4 < 4"),
    Case(&[], "n % 4 >= 0"),
    Case(&[], "n % 4 <= n"),
    Case(&[], "n % 4 <= 3"),
    Case(&[], "n % 8 % 4 == n % 4"),
    Case(&["n < 4"], "n % 4 == n"),
    Case(&[], "(n * 4 + 1) % 4 == 1"),
    Case(&[], "(n * 4 + m % 4) // 4 == n"),
    Case(&[], "(n * 4 + m % 4) % 4 == m % 4"),
    Case(&[], "(n % 4 + 4 * (m % 3)) // 12 == 0"),
    Case(&[], "n * 2 + 1 != m * 2"),
    Case(&[], "n * 6 + 3 != m * 9 + 1"),
    // Minimum and maximum.
    Case(&[], "min(n, m) <= n"),
    Case(&[], "max(n, m) >= m"),
    Case(&[], "max(n, 1) >= 1"),
    Case(&[], "min(n, m) + max(n, m) == n + m"),
    Case(&[], "min(n, 8) <= 8"),
    Case(&[], "max(n - m, 0) >= n - m"),
    Case(&["n <= m"], "min(n, m) == n"),
    Case(&["n <= m"], "max(n, m) == m"),
    Case(&[], "min(n, m) <= max(n, k)"),
    Case(&[], "max(n, m) - min(n, m) >= 0"),
    Case(&[], "min(n + 1, m + 1) == min(n, m) + 1"),
    Case(&[], "max(n * 2, m * 2) == 2 * max(n, m)"),
    Case(&[], "min(max(n, m), n) == n"),
    Case(&[], "max(min(n, 4), 1) <= 4"),
    Case(&[], "max(n, m) <= n + m"),
    Case(&[], "n - min(n, m) == max(n - m, 0)"),
    Case(&[], "min(n, m) // 2 <= n // 2"),
    Case(&[], "max(n, 1) * m >= m"),
    Case(&[], "min(max(i, 0), n) <= n"),
    // Products and reshapes.
    Case(&[], "n * (m * 4) == (n * m) * 4"),
    Case(&[], "n * m + n == n * (m + 1)"),
    Case(&[], "(n + 1) * (m + 1) == n * m + n + m + 1"),
    Case(&[], "n * m >= 0"),
    Case(&["m >= 1"], "n * m >= n"),
    Case(&["m >= 1", "n >= 1"], "n * m >= 1"),
    Case(&["m >= 2"], "n * m >= n * 2"),
    Case(&["m <= 8"], "n * m <= n * 8"),
    Case(&["m <= k"], "n * m <= n * k"),
    Case(&["m <= k"], "n * m * 4 <= n * k * 4"),
    Case(&[], "n * m * 64 // 64 == n * m"),
    Case(&[], "n * 768 // 12 == n * 64"),
    Case(&["m >= 1"], "n * m // m == n"),
    Case(&["m >= 1"], "n * m % m == 0"),
    Case(&["m >= 1"], "n // m * m <= n"),
    Case(&["m >= 1"], "n % m < m"),
    Case(&["m >= 1"], "n // m * m + n % m == n"),
    Case(&["m >= 1"], "ceildiv(n, m) * m >= n"),
    Case(&["m >= 1"], "n // m <= n"),
    Case(&[], "n * m * 4 + 3 >= n * m"),
    Case(&[], "n * n >= 0"),
    Case(&[], "i * i >= 0"),
    Case(&[], "n * (m // 2) <= n * m"),
    Case(&[], "2 * (m // 2) <= m"),
    Case(&[], "2 * (m // 2) + m % 2 == m"),
    // Splits, concatenation, slices.
    Case(&[], "n // 2 + (n - n // 2) == n"),
    Case(&[], "n - n // 2 == (n + 1) // 2"),
    Case(&[], "n - n // 2 >= 0"),
    Case(&[], "n // 3 + (n + 1) // 3 + (n + 2) // 3 == n"),
    Case(&[], "n // 2 + m // 2 <= (n + m) // 2"),
    Case(&[], "(n + m) // 2 <= n // 2 + m // 2 + 1"),
    Case(&["i >= 0", "i < n"], "i // 4 < ceildiv(n, 4)"),
    Case(&["i >= 0", "i < n"], "i // 4 * 4 + i % 4 < n"),
    Case(&["i >= 0", "i < n", "j >= 0", "j < m"], "i * m + j < n * m"),
    Case(&["i >= 0", "i < n", "j >= 0", "j < m"], "i * m + j >= 0"),
    Case(&["i >= 0", "i < n", "j >= 0", "j < 16"], "i * 16 + j < n * 16"),
    Case(&["i >= 0", "i < n", "j >= 0", "j < 16"], "(i * 16 + j) // 16 == i"),
    Case(&["i >= 0", "i < n", "j >= 0", "j < 16"], "(i * 16 + j) % 16 == j"),
    Case(&["j >= 0", "j < m"], "(i * m + j) // m == i"),
    Case(&["j >= 0", "j < m"], "(i * m + j) % m == j"),
    Case(&["n <= m", "m <= k"], "n <= k"),
    Case(&["n < m", "m < k"], "n + 2 <= k"),
    Case(&["n <= m", "m <= n"], "n == m"),
    Case(&["n + m <= 10", "m >= 4"], "n <= 6"),
    // Convolution and pooling.
    Case(&["h >= 1"], "(h + 2 - 3) // 1 + 1 == h"),
    Case(&["h >= 3"], "(h - 3) // 2 + 1 >= 1"),
    Case(&["h >= 1"], "(h + 2 * 1 - 3) // 2 + 1 >= 1"),
    Case(&["h >= 1"], "(h + 2 * 1 - 3) // 2 + 1 <= h"),
    Case(&["h >= 7"], "((h + 6 - 7) // 2 + 1 + 2 - 3) // 2 + 1 >= 1"),
    Case(&["h >= 32"], "((((h - 1) // 2 + 1) - 1) // 2 + 1 - 1) // 2 + 1 >= 4"),
    Case(&["h >= 1"], "(h - 1) // 2 + 1 == ceildiv(h, 2)"),
    Case(&["h % 32 == 0"], "h // 2 // 2 // 2 // 2 // 2 * 32 == h"),
    Case(&["h + 2 * p >= k", "s >= 1"], "(h + 2 * p - k) // s + 1 >= 1"),
    Case(&["h + 2 * p >= k", "k >= 1", "s >= 1"], "(h + 2 * p - k) // s + 1 <= h + 2 * p"),
    Case(&["h >= 4"], "h // 2 - 1 < h"),
    Case(&["h >= 4"], "(h // 2 - 2) * 2 <= h - 4"),
    // Selects, and conditions with `and` and `or`.
    Case(&[], "select(n < m, n, m) == min(n, m)"),
    Case(&[], "select(n < m, n, m) <= n"),
    Case(&[], "select(n == 0, 1, n) >= 1"),
    Case(&["n > 3"], "or(n > 2, m > 7)"),
    Case(&["n > 3", "m > 7"], "and(n > 2, m >= 8)"),
    Case(&["or(n == 1, n == m)", "m >= 1"], "n >= 1"),
    Case(&["n != 0"], "n >= 1"),
    Case(&[], "or(n < m, or(n == m, n > m))"),
];

/// The names of variables that are assumed to be at least 0. Other variables are arbitrary integers.
const SIZES: &[&str] = &["n", "m", "k", "h", "p", "s"];

fn prove(assumed: &[&str], goal: &str) -> Proof {
    let mut arena = SymArena::new();
    let mut vars: Vec<(String, SymVar)> = Vec::new();
    let build = |arena: &mut SymArena, vars: &mut Vec<(String, SymVar)>, text: &str| -> Sym {
        parse(arena, text, &mut |arena, name| {
            let known = vars.iter().find(|v| v.0 == name).map(|v| v.1);
            let var = known.unwrap_or_else(|| {
                let var = arena.fresh_var(name);
                vars.push((name.to_owned(), var));
                var
            });
            arena.var(var)
        })
    };
    let mut facts = Facts::new();
    for text in assumed {
        let p = build(&mut arena, &mut vars, text);
        facts.assume(&arena, p);
    }
    let goal = build(&mut arena, &mut vars, goal);
    for (name, var) in &vars {
        if SIZES.contains(&name.as_str()) {
            facts.assume_size(*var);
        }
    }
    let mut z = Analyzer::new(&mut arena, &facts);
    let proof = z.prove(goal);
    let not = z.arena().not(goal);
    if proof == Proof::Yes {
        assert_eq!(z.prove(not), Proof::No, "the negation of {}", z.arena().display(goal));
    }
    proof
}

#[test]
fn typical_shape_facts_are_proved() {
    let missed: Vec<String> = FACTS
        .iter()
        .filter(|c| prove(c.0, c.1) != Proof::Yes)
        .map(|c| format!("{:?} => {}", c.0, c.1))
        .collect();
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), FACTS.len(), missed.join("\n"));
}

#[test]
fn predicates_that_do_not_always_hold_are_not_proved() {
    let open: &[Case] = &[
        Case(&[], "n >= 1"),
        Case(&[], "n // 2 * 2 == n"),
        Case(&[], "n < m"),
        Case(&[], "n * m // m == n"),
        Case(&[], "n // m <= n"),
        Case(&[], "n * m >= n"),
        Case(&["m <= k"], "i * m <= i * k"),
        Case(&[], "n % 3 == n % 6"),
    ];
    for c in open {
        assert_eq!(prove(c.0, c.1), Proof::Unknown, "{}", c.1);
    }
}

#[test]
fn an_exhausted_budget_gives_unknown() {
    let mut arena = SymArena::new();
    let vars: Vec<Sym> = (0..30)
        .map(|i| {
            let v = arena.fresh_var(format!("x{i}"));
            arena.var(v)
        })
        .collect();
    let facts = Facts::new();
    let low = vars.iter().copied().reduce(|a, b| arena.min(a, b)).expect("thirty");
    let high = vars.iter().copied().reduce(|a, b| arena.max(a, b)).expect("thirty");
    let three = arena.int(3);
    let (low, high) = (arena.mul(low, three), arena.mul(high, three));
    let mut z = Analyzer::with_budget(&mut arena, &facts, 50);
    assert_eq!(z.prove_lt(high, low), Proof::Unknown);
}
