//! The checklist of the language: every construct occurs in a `run` test, which runs in the
//! interpreter and as machine code in both execution modes.

use std::path::Path;

/// The constructs of the script, with the text that identifies each.
const CONSTRUCTS: &[(&str, &str)] = &[
    ("a branch on a tensor", "if R.less("),
    ("a branch on sizes", "if n > 2:"),
    ("a branch without another", "if n > 2:\n            R.call_packed("),
    ("an early result", "return x\n"),
    ("a local function", "        @R.function\n        def "),
    ("a closure that is made", "R.make_closure("),
    ("a closure that is called", "R.invoke_closure("),
    ("a pure closure that is called", "R.invoke_pure_closure("),
    ("a function type", "R.Callable("),
    ("recursion", "cls.same_size("),
    ("mutual recursion", "odd("),
    ("a loop over functions", "R.while_loop("),
    ("a loop over a range", "in R.range("),
    ("a loop without end", "while True:"),
    ("leaving a loop", "break"),
    ("the next turn of a loop", "continue"),
    ("effects that are declared", "@R.function(pure=False)"),
    ("effects that do not count", "relax.force_pure"),
    ("a packed function", "R.call_packed(\"test.double\""),
    ("a pure packed function", "R.call_pure_packed("),
    ("a packed function that writes its output", "R.call_dps_packed("),
    ("a packed function that overwrites", "R.call_inplace_packed("),
    ("a loop function that overwrites", "R.call_tir_inplace("),
    ("an opaque object", "\"test.counter\""),
    ("a list of tensors", "\"test.stack\""),
    ("an unknown size", "R.Tensor(ndim=1, dtype=\"float32\")"),
    ("an unknown rank and data type", "R.Tensor()"),
    ("results as large as the values say", "R.nonzero("),
    ("a match that defines a symbol", "R.match_cast(y, R.Tensor((m,)"),
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
    ("a loop in steps", "range(1, n, 3)"),
];

#[test]
fn every_construct_is_executed() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/run");
    let files = std::fs::read_dir(dir).expect("the tests can be listed");
    let scripts: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.expect("it is listed").path()).expect("a text"))
        .filter(|text| text.starts_with("# test run\n"))
        .map(|text| text.split("# expect").next().unwrap_or_default().to_string())
        .collect();
    let missing: Vec<&str> = CONSTRUCTS
        .iter()
        .filter(|(_, text)| !scripts.iter().any(|script| script.contains(text)))
        .map(|(name, _)| *name)
        .collect();
    assert!(missing.is_empty(), "no test executes {missing:?}");
}
