//! Which results of kernel calls are known to be written completely, so that their memory is not cleared first.

use pliant_tir::full_writes::fully_written_params;

/// Whether a transpose from `A` writes the whole buffer `out` of the given dims, if `out=` is as stated.
fn writes_whole(dims: &str, out: &str) -> bool {
    copies_whole("A", dims, out)
}

/// As [`writes_whole`], from the operand `x=`.
fn copies_whole(x: &str, dims: &str, out: &str) -> bool {
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
fn whole_buffers_and_their_transposes_are_written() {
    assert!(writes_whole("n, h, w", "out"));
    assert!(writes_whole("n, w, h", "T.view(out, [n, h, w], strides=[w * h, 1, h])"));
    // Sizes that may be 0, so that products of the others may be of any size.
    assert!(writes_whole(
        "n, h, w, 3",
        "T.view(out, [n, 3, h, w], strides=[h * w * 3, 1, w * 3, 3])"
    ));
    let computed = "n, (k + 1) // 2, w";
    let strides = "strides=[w * ((k + 1) // 2), w, 1]";
    assert!(writes_whole(computed, &format!("T.view(out, [n, (k + 1) // 2, w], {strides})")));
    assert!(writes_whole("n, h, 1, w", "T.view(out, [n, h, w], strides=[w * h, w, 1])"));
}

#[test]
fn results_that_the_call_reads_are_not() {
    let whole = "T.view(A, [n, h, w], strides=[h * w, w, 1])";
    assert!(copies_whole(whole, "n, h, w", "out"));
    let offset =
        "T.view(A, [n, h, w], strides=[h * w, w, 1], offset=T.Cast(\"int64\", out[0, 0, 0]))";
    assert!(!copies_whole(offset, "n, h, w", "out"));
}

#[test]
fn parts_and_other_strides_are_not() {
    for (dims, out) in [
        ("n, h, w", "T.view(out, [n, h, w], strides=[h * w, w, 1], offset=1)"),
        ("n, h, w", "T.view(out, [n, h, w], strides=[h * h, w, 1])"),
        ("n, h, w", "T.view(out, [n, h, w], strides=[h * w * 2, w, 1])"),
        ("n, h, w", "T.view(out, [n, h, w], strides=[0, w, 1])"),
        ("n, h, k", "T.view(out, [n, h, w], strides=[h * w, w, 1])"),
        ("n, h, w, 2", "T.view(out, [n, h, w], strides=[h * w * 2, w * 2, 2])"),
        ("n, h, w", "T.view(out, [h, w], strides=[w, 1])"),
    ] {
        assert!(!writes_whole(dims, out), "{dims}: {out}");
    }
}
