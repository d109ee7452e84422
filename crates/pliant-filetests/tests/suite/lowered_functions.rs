//! Tests that the loop functions of all file tests, lowered by the default pipeline, print as
//! script that parses back.

use std::path::Path;

#[test]
fn lowered_functions_print_as_script_that_parses_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let out = pliant_filetests::lower_all(&root).expect("the tests can be read");
    assert!(out.failed.is_empty(), "{} failed:\n{}", out.failed.len(), out.failed.join("\n"));
    let constructs = [
        "T.Ramp(",
        "T.Broadcast(",
        "T.Select(",
        "T.vector_sum(",
        "T.vector_max(",
        "T.call_extern(",
        "T.address_of(",
        "T.parallel(",
        "scope=\"local\"",
        "assert ",
        "T.if_then_else(",
        "T.Cast(",
    ];
    for c in constructs {
        assert!(out.text.contains(c), "no lowered function uses {c}");
    }
    assert!(out.functions > 100, "only {} functions were lowered", out.functions);
}
