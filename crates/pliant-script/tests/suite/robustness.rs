//! Tests that no input makes the parser panic or overflow the stack, and that parsing time is
//! linear in the length of the input.

use proptest::prelude::*;

use crate::parse_and_print::{errors, module};

/// Parses the text and ignores the result, to check that the parser does not panic.
fn read(text: &str) {
    let _ = pliant_script::parse_module(text, pliant_ops::registry());
}

/// Runs a function on a thread with a small stack, on which deep recursion overflows.
fn small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn nesting_beyond_the_limit_is_an_error() {
    small_stack(|| {
        let deep = |open: &str, mid: &str, close: &str, n: usize| {
            format!("x = {}{mid}{}\n", open.repeat(n), close.repeat(n))
        };
        for n in [10_000, 100_000] {
            for text in [
                deep("(", "1", ")", n),
                deep("[", "1", "]", n),
                deep("{1: ", "1", "}", n),
                deep("f(", "1", ")", n),
                deep("a[", "1", "]", n),
                deep("-", "1", "", n),
                deep("not ", "1", "", n),
                deep("lambda: ", "1", "", n),
                deep("1 if 1 else ", "1", "", n),
                deep("1 ** ", "1", "", n),
                deep("1 + ", "1", "", n),
                deep("1 and ", "1", "", n),
                deep("a.", "b", "", n),
                deep("a(b)", "", "", 1).replace("a(b)", &format!("a{}", "(b)".repeat(n))),
            ] {
                let out = errors(&text);
                assert!(out.contains("nested too deeply"), "{out}");
            }
            let blocks: String =
                (0..n.min(2_000)).map(|i| format!("{}if x:\n", " ".repeat(i))).collect();
            assert!(errors(&blocks).contains("nested too deeply"));
            let branches = format!("if x:\n    pass\n{}", "elif x:\n    pass\n".repeat(n));
            assert!(errors(&branches).contains("too many 'elif' branches"), "elif");
        }
    });
}

#[test]
fn the_deepest_allowed_nesting_fits_a_small_stack() {
    small_stack(|| {
        let sum = vec!["x"; 2_900].join(" + ");
        let nested = format!("{}x{}", "R.exp(".repeat(2_900), ")".repeat(2_900));
        let tuple = format!("{}x{}", "(".repeat(90), ",)".repeat(90));
        let dims = format!("{}n{}", "T.min(2, ".repeat(2_900), ")".repeat(2_900));
        module(&format!(
            "@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\")):\n    n = T.int64()\n    a = {sum}\n    b = {nested}\n    c = {tuple}\n    d = R.shape([{dims}])\n    return (a, b, c, d)\n"
        ));
        let sum = vec!["A[i]"; 1_900].join(" + ");
        let nested = format!("{}A[i]{}", "T.exp(".repeat(1_900), ")".repeat(1_900));
        let loops: String =
            (0..900).map(|i| format!("{}for i{i} in range(2):\n", " ".repeat(i + 4))).collect();
        module(&format!(
            "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\")):\n    for i in range(8):\n        A[i] = {sum}\n        A[i] = {nested}\n{loops}{}A[i59] = 0.0\n",
            " ".repeat(904)
        ));
    });
}

#[test]
fn long_programs_parse_in_linear_time() {
    let program = |n: usize| {
        let mut text = String::from(
            "@R.function\ndef main(x: R.Tensor((\"n\", 4), \"float32\")) -> R.Tensor((\"n\", 4), \"float32\"):\n    n = T.int64()\n    with R.dataflow():\n        lv0 = R.exp(x)\n",
        );
        for i in 1..n {
            let line = format!(
                "        lv{i}: R.Tensor((n, 4), dtype=\"float32\") = R.add(lv{}, x)\n",
                i - 1
            );
            text.push_str(&line);
        }
        text.push_str(&format!("        R.output(lv{})\n    return lv{}\n", n - 1, n - 1));
        text
    };
    module(&program(40_000));
}

/// Complete graph and loop programs, which the tests mutate.
const SEEDS: [&str; 3] = [
    include_str!("programs/canonical_printed_form.py"),
    include_str!("programs/relax_rfc_dot_and_flatten.py"),
    include_str!("programs/loop_function.py"),
];

#[test]
fn the_seed_programs_parse() {
    for seed in SEEDS {
        module(seed);
    }
}

/// Fragments of source text that the tests insert at random positions of a program.
const PIECES: [&str; 40] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "\n",
    "\n    ",
    "\n        ",
    "R.",
    "T.",
    "n",
    "x",
    "\"n\"",
    "1",
    "-1",
    "0",
    "9223372036854775807",
    "1.5",
    "None",
    "True",
    "lambda: ",
    "if ",
    "else",
    " for i in ",
    "not ",
    " + ",
    " // ",
    "*",
    "**",
    "R.Tensor",
    "T.Buffer",
    "R.match_cast",
    "\"",
    "'",
    "\\",
    "return ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}") {
        read(&text);
    }

    #[test]
    fn random_tokens_never_panic(parts in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = parts.iter().map(|&i| PIECES[i]).collect();
        read(&text);
        read(&format!("@R.function\ndef main(x: R.Tensor((\"n\",), \"float32\")):\n    y = {text}\n    return y\n"));
        read(&format!("@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\")):\n    A[0] = {text}\n    A[1] = 1.0\n"));
    }

    #[test]
    fn mutated_programs_never_panic(
        seed in 0..SEEDS.len(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, 0..PIECES.len(), any::<bool>()), 1..6),
    ) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (at, len, piece, insert) in cuts {
            if text.is_empty() {
                break;
            }
            let at = at.index(text.len());
            let end = (at + len).min(text.len());
            let new: Vec<char> = if insert { PIECES[piece].chars().collect() } else { Vec::new() };
            text.splice(at..end, new);
        }
        read(&text.into_iter().collect::<String>());
    }

    #[test]
    fn swapped_lines_never_panic(seed in 0..SEEDS.len(), swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5)) {
        let mut lines: Vec<&str> = SEEDS[seed].lines().collect();
        for (a, b) in swaps {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            lines.swap(a, b);
        }
        read(&lines.join("\n"));
    }
}
