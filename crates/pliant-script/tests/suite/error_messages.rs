//! Tests the exact text of the parser's error messages, for all kinds of errors.

use crate::parse_and_print::errors;

/// Parses a graph function with the given body lines and returns its errors as text; `x` is a
/// float32 tensor of shape (n, 4).
fn relax(body: &str) -> String {
    let lines: String = body.lines().map(|l| format!("    {l}\n")).collect();
    errors(&format!("@R.function\ndef main(x: R.Tensor((\"n\", 4), \"float32\")):\n{lines}"))
}

/// Parses a loop function with the given body lines and returns its errors as text.
fn tir(body: &str) -> String {
    let lines: String = body.lines().map(|l| format!("    {l}\n")).collect();
    errors(&format!(
        "@T.prim_func\ndef f(A: T.Buffer((8,), \"float32\"), I: T.Buffer((8,), \"int32\"), a: T.handle, n: T.int64):\n{lines}"
    ))
}

#[test]
fn syntax_errors() {
    let cases = [
        ("@R.function\ndef main(x:\n    return x\n", "2:9 `(` PL0101: '(' was never closed"),
        ("x = (1, 2]\n", "1:10 `]` PL0101: closing ']' does not match opening '('"),
        ("x = 1)\n", "1:6 `)` PL0101: closing ')' has no opening bracket"),
        ("def f()\n    pass\n", "1:8 `` PL0101: expected ':', found the end of the line"),
        ("def f():\npass\n", "2:1 `pass` PL0101: expected an indented block, found 'pass'"),
        ("x = 'abc\n", "1:5 `'abc` PL0101: string literal has no closing quote"),
        (
            "x = f(a=1, 2)\n",
            "1:12 `2` PL0101: a positional argument cannot follow the keyword argument 'a'",
        ),
        ("x = 3x\n", "1:5 `3x` PL0101: invalid number '3x'"),
        (
            "x = 99999999999999999999\n",
            "1:5 `99999999999999999999` PL0101: integer 99999999999999999999 does not fit 64 bits",
        ),
        ("x = f(“a”)\n", "1:7 `“` PL0101: invalid character '“' (write a straight quote: \")"),
        (
            "if x:\n        y = 1\n    z = 2\n",
            "3:1 `    ` PL0101: unindent does not match any outer indentation level",
        ),
        ("    x = 1\n", "1:1 `    ` PL0101: unexpected indent"),
        ("x = 1 +\n", "1:8 `` PL0101: expected an expression, found the end of the line"),
        ("R.call_packed(\"f\"), x, y)\n", "1:25 `)` PL0101: closing ')' has no opening bracket"),
    ];
    for (text, expected) in cases {
        assert_eq!(errors(text), expected, "{text}");
    }
}

#[test]
fn several_syntax_errors_at_once() {
    let out = errors("def f(1):\n    pass\nx = = 2\ny = 3\nz = [1, 2\nw = ]\n");
    assert_eq!(
        out,
        "1:7 `1` PL0101: expected a name, found '1'\n\
         3:5 `=` PL0101: expected an expression, found '='\n\
         6:1 `w` PL0101: expected ',', found 'w'"
    );
}

#[test]
fn unknown_names() {
    assert_eq!(
        relax("lv0 = R.exp(x)\nreturn lvO"),
        "4:12 `lvO` PL0103: unknown name 'lvO' (did you mean 'lv0'?)"
    );
    assert_eq!(
        relax("return R.exp(nothing_like_it)"),
        "3:18 `nothing_like_it` PL0103: unknown name 'nothing_like_it'"
    );
    assert_eq!(
        relax("y = R.mathmul(x, x)\nreturn y"),
        "3:11 `mathmul` PL0104: the module R has no member 'mathmul' (did you mean 'matmul'?)"
    );
    assert_eq!(
        relax("with R.dataflwo():\n    y = R.exp(x)\nreturn x"),
        "3:5 `with R.dataflwo():` PL0102: the only 'with' statement of a graph function is: with R.dataflow():"
    );
    assert_eq!(
        tir("for i in T.grit(8):\n    A[i] = 0.0"),
        "3:16 `grit` PL0104: the module T has no member 'grit' (did you mean 'grid'?)"
    );
    assert_eq!(tir("for i in range(8):\n    A[j] = 0.0"), "4:11 `j` PL0103: unknown name 'j'");
    assert_eq!(
        tir("A[0] = T.exq(A[0])"),
        "3:14 `exq` PL0104: the module T has no member 'exq' (did you mean 'exp'?)"
    );
    assert_eq!(
        errors(
            "@I.ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor):\n        cls = M\n        return cls.man(x)\n"
        ),
        "6:20 `man` PL0103: the module has no function 'man' (did you mean 'main'?)"
    );
}

#[test]
fn an_error_is_not_repeated_by_uses_of_its_name() {
    assert_eq!(
        relax("a = R.foo(x)\nb = R.add(a, x)\nc = R.exp(unknown)\nreturn R.add(b, c)"),
        "3:11 `foo` PL0104: the module R has no member 'foo'\n5:15 `unknown` PL0103: unknown name 'unknown'"
    );
}

#[test]
fn wrong_arguments() {
    assert_eq!(relax("return R.add(x)"), "3:12 `R.add(x)` PL0105: R.add needs the argument 'x2'");
    assert_eq!(
        relax("return R.exp(x, x)"),
        "3:21 `x` PL0105: R.exp takes at most 1 arguments, but 2 are given"
    );
    assert_eq!(
        relax("return R.concat([x, x], axes_=1)"),
        "3:29 `axes_` PL0105: R.concat has no parameter 'axes_' (did you mean 'axis'?)"
    );
    assert_eq!(
        relax("return R.call_tir(\"f\", (x,), out_info=R.Tensor((2,)))"),
        "3:34 `out_info` PL0105: R.call_tir has no parameter 'out_info' (did you mean 'out_sinfo'?)"
    );
    assert_eq!(
        relax("return R.call_tir(\"f\", (x,))"),
        "3:12 `R.call_tir(\"f\", (x,))` PL0105: R.call_tir needs the type of its result (add out_sinfo=R.Tensor((n, m), dtype=\"float32\"))"
    );
    assert_eq!(
        errors("@R.function(prue=False)\ndef main(x: R.Tensor):\n    return x\n"),
        "1:13 `prue` PL0105: the decorator has no parameter 'prue' (did you mean 'pure'?)"
    );
    assert_eq!(
        tir("for i, j in range(8):\n    A[i] = 0.0"),
        "3:9 `i, j` PL0105: the for loop has 2 loop variables, but iterates over 1 ranges"
    );
    assert_eq!(
        tir("A[0] = T.exp(A[0], A[1])"),
        "3:12 `T.exp(A[0], A[1])` PL0105: T.exp takes 1 argument, but 2 are given"
    );
}

#[test]
fn type_errors_in_graph_functions() {
    assert_eq!(
        relax("y: R.Tensor((n, 5), \"float32\") = R.exp(x)\nreturn y"),
        "3:8 `R.Tensor((n, 5), \"float32\")` PL0107: the variable is annotated with the type R.Tensor((n, 5), dtype=\"float32\"), but its value has type R.Tensor((n, 4), dtype=\"float32\")"
    );
    assert_eq!(
        errors(
            "@R.function\ndef main(x: R.Tensor((2,), \"float32\")) -> R.Tensor((2,), \"int32\"):\n    return x\n"
        ),
        "2:43 `R.Tensor((2,), \"int32\")` PL0107: the function is declared to return a value of type R.Tensor((2,), dtype=\"int32\"), but returns a value of type R.Tensor((2,), dtype=\"float32\")"
    );
    assert_eq!(
        errors("@R.function\ndef main(x: R.Tensro((2,))):\n    return x\n"),
        "2:13 `R.Tensro((2,))` PL0107: the annotation `R.Tensro((2,))` is not a type (types are R.Tensor, R.Shape, R.Tuple, R.Prim, R.Callable and R.Object)"
    );
    assert_eq!(
        errors("@R.function\ndef main(x: R.Tensor((2,), \"float31\")):\n    return x\n"),
        "2:28 `\"float31\"` PL0106: unknown data type 'float31' (did you mean 'float32'?)"
    );
    assert_eq!(
        errors("@R.function\ndef main(x: R.Tensor((\"n +\",))):\n    return x\n"),
        "2:23 `\"n +\"` PL0107: invalid symbolic dim \"n +\": expected an expression, found the end of the line"
    );
    assert_eq!(
        errors("@R.function\ndef main(x: R.Tensor((2.5,))):\n    return x\n"),
        "2:23 `2.5` PL0107: a dim must be an integer, not a float"
    );
    assert_eq!(
        relax("y = R.match_cast(x, R.Tensor((n,), \"float32\"))\nreturn y"),
        "3:9 `R.match_cast(x, R.Tensor((n,), \"float32\"))` PL0107: a value of type R.Tensor((n, 4), dtype=\"float32\") can never match the type R.Tensor((n,), dtype=\"float32\")"
    );
    assert_eq!(
        relax("if x:\n    y = x\nelse:\n    y = R.exp(x)\nreturn y"),
        "3:8 `x` PL0107: the condition must be a scalar bool, but has type R.Tensor((n, 4), dtype=\"float32\")"
    );
    assert_eq!(
        relax("return x[0]"),
        "3:12 `x[0]` PL0107: a value of type R.Tensor((n, 4), dtype=\"float32\") cannot be indexed (use R.strided_slice to slice tensors, R.take to select elements)"
    );
}

#[test]
fn type_errors_in_loop_functions() {
    assert_eq!(
        tir("I[0] = A[0]"),
        "3:12 `A[0]` PL0107: the value has type float32, but buffer 'I' has type int32 (convert the value: T.Cast(\"int32\", ...))"
    );
    assert_eq!(
        tir("I[0] = 1.5"),
        "3:12 `1.5` PL0107: 1.5 is a float, but buffer 'I' has type int32 (convert the value: T.Cast(\"int32\", ...))"
    );
    assert_eq!(
        tir("A[0, 1] = 0.0"),
        "3:5 `A[0, 1]` PL0107: buffer 'A' has 1 dims, but is accessed with 2 indices"
    );
    assert_eq!(
        tir("A[A[0]] = 0.0"),
        "3:7 `A[0]` PL0107: an index or a size must be an integer, but has type float32 (convert the value: T.Cast(\"int64\", x))"
    );
    assert_eq!(
        tir("a[0] = 0.0"),
        "3:5 `a` PL0107: the elements of a handle cannot be accessed (create a buffer first: A = T.match_buffer(a, (n,), \"float32\"))"
    );
    assert_eq!(
        tir("A[n / 2] = 0.0"),
        "3:7 `n / 2` PL0107: the operator '/' is only defined for floats, but the operands are integers (divide integers with // (rounds down) or T.truncdiv (rounds towards zero))"
    );
    assert_eq!(
        tir("A[0] = A"),
        "3:12 `A` PL0106: a scalar is required here, but the value is a buffer (read an element: A[i])"
    );
    assert_eq!(
        tir("A[n // 0] = 0.0"),
        "3:7 `n // 0` PL0106: division by zero: the right operand is the constant 0"
    );
    assert_eq!(
        tir("I[0] = T.int8(300)"),
        "3:19 `300` PL0106: the integer 300 does not fit the data type int8"
    );
}

#[test]
fn structural_errors() {
    assert_eq!(
        errors("@R.function\ndef main(x: R.Tensor):\n    y = R.exp(x)\n"),
        "2:5 `main` PL0111: function 'main' returns nothing (end it with a return statement; return R.tuple() for no result)"
    );
    assert_eq!(
        relax("return x\ny = R.exp(x)"),
        "4:5 `y = R.exp(x)` PL0111: no statement can follow a return"
    );
    assert_eq!(
        relax("for i in x:\n    y = i\nreturn x"),
        "3:14 `x` PL0102: a graph function can only loop over a range of integers (write: for i in R.range(n):)"
    );
    assert_eq!(
        relax("x += 1\nreturn x"),
        "3:5 `x += 1` PL0102: values of the graph are immutable, so they have no augmented assignment such as += (bind the result to a new variable: y = R.add(x, ...))"
    );
    assert_eq!(
        relax("with R.dataflow():\n    return x"),
        "4:9 `return x` PL0109: 'return' is not allowed in a dataflow block (end the block with R.output(...) and return after it)"
    );
    assert_eq!(
        relax("with R.dataflow():\n    with R.dataflow():\n        y = x\nreturn x"),
        "4:9 `with R.dataflow():` PL0109: a dataflow block is already open; dataflow blocks cannot be nested"
    );
    assert_eq!(
        errors("@I.ir_module\nclass M:\n    def f(x):\n        return x\n"),
        "3:9 `f` PL0111: 'f' is neither a graph function nor a loop function (decorate it with @R.function or @T.prim_func)"
    );
    assert_eq!(
        errors("x = 1\n"),
        "1:1 `x = 1` PL0111: the script contains neither a module nor a function (decorate a class with @I.ir_module, or a function with @R.function or @T.prim_func)"
    );
    assert_eq!(
        tir("k = n + 1\nk = n + 2\nA[k] = 0.0"),
        "4:5 `k` PL0111: 'k' is already defined: variables are immutable (use another name, or a buffer of one element: x = T.alloc_buffer((1,), \"float32\"))"
    );
    assert_eq!(
        tir("return A[0]"),
        "3:12 `A[0]` PL0111: a loop function cannot return a value (write the result to a buffer parameter)"
    );
    assert_eq!(
        tir("T.reads(A[0])"),
        "3:5 `T.reads(A[0])` PL0111: T.reads is only allowed at the top of a block (write: with T.block(\"name\"): ...)"
    );
}

#[test]
fn unsupported_buffer_parameters() {
    assert_eq!(
        tir("B = T.decl_buffer((4,), \"float32\", data=A.data)"),
        "3:40 `data` PL0102: the parameter 'data' of a buffer is not supported: it asks for a buffer in the memory of another one; index that buffer instead"
    );
    for (given, named) in [
        ("buffer_type=\"auto_broadcast\"", "buffer_type"),
        ("axis_separators=[1]", "axis_separators"),
        ("layout=L", "layout"),
        ("allocated_addr=4096", "allocated_addr"),
    ] {
        let out = tir(&format!("B = T.alloc_buffer((4,), \"float32\", {given})"));
        assert!(
            out.contains(&format!(
                "PL0102: the parameter '{named}' of a buffer is not supported: it asks for"
            )),
            "{out}"
        );
    }
    for given in ["strides=(100000000,)", "elem_offset=8"] {
        let out = tir(&format!("B = T.alloc_buffer((4,), \"float32\", {given})\nB[3] = 1.0"));
        let want = "PL0102: an allocated buffer cannot have strides or an element offset";
        assert!(out.contains(want), "{out}");
    }
    // Default values are accepted, so the only error is the unknown name.
    let plain = "B = T.alloc_buffer((4,), data=None, strides=[], align=64, offset_factor=1, buffer_type=\"default\", axis_separators=[])\nB[k] = T.float32(1)";
    let out = tir(plain);
    assert!(out.starts_with("4:7 `k` PL0103") && out.lines().count() == 1, "{out}");
}

#[test]
fn effects_in_pure_functions() {
    assert_eq!(
        errors(
            "@R.function(pure=True)\ndef main(x: R.Tensor):\n    R.call_packed(\"f\", x)\n    return x\n"
        ),
        "3:5 `R.call_packed(\"f\", x)` PL0110: R.call_packed has side effects, but the function is declared pure (declare it with @R.function(pure=False))"
    );
}

#[test]
fn errors_of_type_inference_point_to_the_call() {
    let out = relax("return R.matmul(x, R.const([[1.0]]))");
    assert!(out.starts_with("3:12 `R.matmul(x, R.const([[1.0]]))` PL0108: "), "{out}");
}

#[test]
fn host_expressions_need_a_host() {
    assert_eq!(
        relax("return R.reshape(x, [i for i in range(3)])"),
        "3:25 `[i for i in range(3)]` PL0112: cannot evaluate the Python expression `[i for i in range(3)]`: the script is parsed as text, so it cannot use values of a Python program"
    );
}
