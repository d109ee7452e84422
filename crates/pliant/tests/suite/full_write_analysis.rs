//! Tests the full-write analysis of kernel calls: outputs that a call writes completely need not be
//! cleared before it.

use pliant_tir::fully_written_buffers::fully_written_params;

/// Whether the analysis finds that a call of the kernel `transpose` writes the whole output buffer, which has the shape `dims`.
/// The call reads the buffer `A` and passes the expression `out` as its output.
fn is_full_write(dims: &str, out: &str) -> bool {
    is_full_write_from("A", dims, out)
}

/// Whether the analysis finds that a call of the kernel `transpose` writes the whole output buffer, which has the shape `dims`. The
/// call passes the expression `x` as its input and the expression `out` as its output.
fn is_full_write_from(x: &str, dims: &str, out: &str) -> bool {
    let text = format!(
        "from pliant.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def copy(var_A: T.handle, var_out: T.handle, k: T.int64):
        n, h, w = T.int64(), T.int64(), T.int64()
        A = T.match_buffer(var_A, (n, h, w), \"float32\")
        out = T.match_buffer(var_out, ({dims}), \"float32\")
        T.evaluate(T.call_kernel(\"transpose\", x={x}, out={out}))
"
    );
    let script = match pliant::parse("copy.py", &text) {
        Ok(script) => script,
        Err((error, _)) => panic!("{error}\n{text}"),
    };
    let (_, function) = script.module.prim_funcs().next().expect("there is a function");
    fully_written_params(function)[1]
}

#[test]
fn complete_and_transposed_views_are_full_writes() {
    assert!(is_full_write("n, h, w", "out"));
    assert!(is_full_write("n, w, h", "T.view(out, [n, h, w], strides=[w * h, 1, h])"));
    // If a size is 0, the products of the others may overflow.
    assert!(is_full_write(
        "n, h, w, 3",
        "T.view(out, [n, 3, h, w], strides=[h * w * 3, 1, w * 3, 3])"
    ));
    let computed = "n, (k + 1) // 2, w";
    let strides = "strides=[w * ((k + 1) // 2), w, 1]";
    assert!(is_full_write(computed, &format!("T.view(out, [n, (k + 1) // 2, w], {strides})")));
    assert!(is_full_write("n, h, 1, w", "T.view(out, [n, h, w], strides=[w * h, w, 1])"));
}

#[test]
fn buffers_that_the_call_reads_are_not_full_writes() {
    let full_view = "T.view(A, [n, h, w], strides=[h * w, w, 1])";
    assert!(is_full_write_from(full_view, "n, h, w", "out"));
    let offset_view =
        "T.view(A, [n, h, w], strides=[h * w, w, 1], offset=T.Cast(\"int64\", out[0, 0, 0]))";
    assert!(!is_full_write_from(offset_view, "n, h, w", "out"));
}

#[test]
fn partial_and_irregular_views_are_not_full_writes() {
    for (dims, out) in [
        ("n, h, w", "T.view(out, [n, h, w], strides=[h * w, w, 1], offset=1)"),
        ("n, h, w", "T.view(out, [n, h, w], strides=[h * h, w, 1])"),
        ("n, h, w", "T.view(out, [n, h, w], strides=[h * w * 2, w, 1])"),
        ("n, h, w", "T.view(out, [n, h, w], strides=[0, w, 1])"),
        ("n, h, k", "T.view(out, [n, h, w], strides=[h * w, w, 1])"),
        ("n, h, w, 2", "T.view(out, [n, h, w], strides=[h * w * 2, w * 2, 2])"),
        ("n, h, w", "T.view(out, [h, w], strides=[w, 1])"),
    ] {
        assert!(!is_full_write(dims, out), "{dims}: {out}");
    }
}
