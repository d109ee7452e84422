//! Tests that every construct of the language occurs in a `run` test. These tests run in the
//! interpreter and in both execution modes of the virtual machine.

use std::path::Path;

/// The constructs of the language, each with a text that every script with this construct contains.
const CONSTRUCTS: &[(&str, &str)] = &[
    ("a branch on a tensor", "if R.less("),
    ("a branch on sizes", "if n > 2:"),
    ("a branch without else", "if n > 2:\n            R.call_packed("),
    ("an early return", "return x\n"),
    ("a local function", "        @R.function\n        def "),
    ("the creation of a closure", "R.make_closure("),
    ("a call of a closure", "R.invoke_closure("),
    ("a call of a pure closure", "R.invoke_pure_closure("),
    ("a function type", "R.Callable("),
    ("recursion", "cls.same_size("),
    ("mutual recursion", "odd("),
    ("a while_loop", "R.while_loop("),
    ("a loop over a range", "in R.range("),
    ("an infinite loop", "while True:"),
    ("break", "break"),
    ("continue", "continue"),
    ("an impure function", "@R.function(pure=False)"),
    ("a function that is forced pure", "relax.force_pure"),
    ("a packed function", "R.call_packed(\"test.double\""),
    ("a pure packed function", "R.call_pure_packed("),
    ("a packed function in destination-passing style", "R.call_dps_packed("),
    ("an in-place packed function", "R.call_inplace_packed("),
    ("an in-place loop function", "R.call_tir_inplace("),
    ("an opaque object", "\"test.counter\""),
    ("a list of tensors", "\"test.stack\""),
    ("an unknown size", "R.Tensor(ndim=1, dtype=\"float32\")"),
    ("an unknown rank and data type", "R.Tensor()"),
    ("a data-dependent result size", "R.nonzero("),
    ("a match_cast that defines a symbol", "R.match_cast(y, R.Tensor((m,)"),
    ("a shape that a packed function computes", "\"test.half_shape\""),
    ("scalars for a loop function", "tir_vars="),
    ("several outputs", "out_sinfo=[R.Tensor("),
    ("tuples in and out", "R.Tuple(R.Tensor((\"n\",), \"float32\"), R.Tuple("),
    ("a packed function in a loop function", "T.call_packed("),
    ("a string as a value", "R.str("),
    ("a data type as a value", "R.dtype("),
    ("a shape as a value", "R.shape(["),
    ("a shape of a tensor", "R.shape_of("),
    ("a shape from a tensor", "R.tensor_to_shape("),
    ("a range with a step", "range(1, n, 3)"),
];

#[test]
fn every_construct_is_executed() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/run");
    let files = std::fs::read_dir(dir).expect("the tests can be listed");
    let scripts: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.expect("it is listed").path()).expect("a text"))
        .filter(|text| text.contains("\n# test run\n"))
        .map(|text| text.split("# expect").next().unwrap_or_default().to_string())
        .collect();
    let missing: Vec<&str> = CONSTRUCTS
        .iter()
        .filter(|(_, text)| !scripts.iter().any(|script| script.contains(text)))
        .map(|(name, _)| *name)
        .collect();
    assert!(missing.is_empty(), "no test executes {missing:?}");
}
