//! Tests that loop functions are parsed and printed: the printed form equals the source.

use crate::parse_and_print::{fixed_point, module, print};

const MATMUL: &str = r#"@I.ir_module
class Module:
    @T.prim_func(private=True)
    def matmul(var_A: T.handle, B: T.Buffer((4, 8), "float32"), var_C: T.handle, k: T.int64):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(var_A, (n, 4), "float32")
        C = T.match_buffer(var_C, (n, 8), "float32", scope="local")
        for i, j, r in T.grid(n, 8, 4):
            with T.block("C"):
                v_i, v_j, v_r = T.axis.remap("SSR", [i, j, r])
                T.reads(A[v_i, v_r], B[v_r, v_j])
                T.writes(C[v_i, v_j])
                T.block_attr({"pragma": 1})
                with T.init():
                    C[v_i, v_j] = T.float32(0.0)
                C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_r] * B[v_r, v_j]
"#;

#[test]
fn canonical_programs_print_unchanged() {
    assert_eq!(print(&module(MATMUL)), MATMUL);
}

#[test]
fn statements_print_unchanged() {
    let text = include_str!("programs/loop_function.py");
    assert_eq!(print(&module(text)), text);
}

#[test]
fn sizes_are_defined_by_buffer_shapes() {
    let out = fixed_point(
        r#"
@I.ir_module
class Module:
    @T.prim_func
    def tir_exp_func(x: T.handle, y: T.handle):
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        with T.grid(n) as i:
            Y[i] = T.exp(X[i])
    @T.prim_func
    def b(A: T.Buffer[(n, 4), "f32"], m: T.int32):
        for i in range(m, n):
            A[i, 0] += 1
"#,
    );
    assert_eq!(
        out,
        r#"@I.ir_module
class Module:
    @T.prim_func
    def tir_exp_func(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            Y[i] = T.exp(X[i])

    @T.prim_func
    def b(var_A: T.handle, m: T.int32):
        n = T.int64()
        A = T.match_buffer(var_A, (n, 4), "float32")
        for i in range(T.Cast("int64", m), n):
            A[i, 0] = A[i, 0] + T.float32(1.0)
"#
    );
}

#[test]
fn blocks_of_all_dialects_are_equivalent() {
    let forms = [
        "        for i, j in T.grid(128, 64):\n            with T.block(\"B\"):\n                vi, vj = T.axis.remap(\"SS\", [i, j])\n                T.reads(A[vi, vj])\n                T.writes(B[vi, vj])\n                B[vi, vj] = A[vi, vj] * 2.0\n",
        "        for (i, j) in T.grid(128, 64):\n            with T.sblock():\n                vi = T.axis.S(128, i)\n                vj = T.axis.spatial(64, j)\n                B[vi, vj] = A[vi, vj] * 2.0\n",
        "        with T.block([128, 64]) as [vi, vj]:\n            B[vi, vj] = A[vi, vj] * 2.0\n",
        "        with T.block(128, 64) as vi, vj:\n            B[vi, vj] = A[vi, vj] * 2.0\n",
        "        for i, j in T.grid(128, 64):\n            with T.block([128, 64], \"B\") as [vi, vj]:\n                T.bind(vi, i)\n                T.bind(vj, j)\n                B[vi, vj] = A[vi, vj] * 2.0\n",
    ];
    let mut prints = Vec::new();
    for body in forms {
        let head = "@T.prim_func\ndef f(a: T.handle, b: T.handle) -> None:\n    A = T.match_buffer(a, (128, 64))\n    B = T.match_buffer(b, (128, 64))\n";
        let body: String = body.lines().map(|l| format!("{}\n", &l[4..])).collect();
        let out = fixed_point(&format!("{head}{body}"));
        prints.push(out.replace("vi_0", "i").replace("vj_0", "j"));
    }
    for p in &prints {
        assert_eq!(p, &prints[0]);
    }
    assert!(prints[0].contains("vi, vj = T.axis.remap(\"SS\", [i, j])"), "{}", prints[0]);
    assert!(prints[0].contains("with T.block(\"B\"):"), "{}", prints[0]);
}

#[test]
fn literals_take_the_type_of_the_other_operand() {
    let out = fixed_point(
        r#"
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float16"), C: T.Buffer((4,), "float32"), n: T.int32, N: T.int64):
    for i in range(4):
        A[i] = A[i] * 2 + n
        B[i] = B[i] / 2
        C[i] = 1 if 0 <= i < 3 else C[i] ** 2
        C[i] = T.exp(1) + n
        A[n + N] = -A[i]
"#,
    );
    for line in [
        "A[i] = A[i] * T.int32(2) + n",
        "B[i] = B[i] / T.float16(2.0)",
        "C[i] = T.if_then_else(0 <= i and i < 3, T.float32(1.0), T.pow(C[i], T.float32(2.0)))",
        "C[i] = T.exp(T.float32(1.0)) + T.Cast(\"float32\", n)",
        "A[T.Cast(\"int64\", n) + N] = T.int32(0) - A[i]",
    ] {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
}

#[test]
fn lets_of_all_dialects_are_equivalent() {
    let lets = [
        "x: T.int64 = n * 2",
        "x = n * 2",
        "x = T.bind(n * 2)",
        "T.bind(n * 2, var=x)",
        "x: T.let[T.int64] = n * 2",
        "x: T.let = n * 2",
    ];
    for line in lets {
        let out = fixed_point(&format!(
            "@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((n,), \"float32\")):\n    {line}\n    A[x] = 0.0\n"
        ));
        assert!(out.contains("x: T.int64 = n * 2\n"), "{line}: {out}");
    }
    let out = fixed_point(
        "@T.func\ndef f(A: T.Buffer((n,), \"float32\")):\n    with T.let(x, n * 2):\n        A[x] = 0.0\n    A[0] = 1.0\n",
    );
    assert!(out.contains("with T.LetStmt(n * 2) as x:"), "{out}");
}

#[test]
fn ranges_and_regions_keep_their_extents() {
    let text = r#"@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), n: T.int64, m: T.int64):
        for i in range(n, m):
            with T.block("A"):
                v = T.axis.spatial((n, m), i)
                T.reads(A[0:n], A[n:n + m], A[n:m], A[2:4], A[3])
                T.writes()
                A[v] = T.float32(0.0)
        for i in range(n, n + m):
            T.evaluate(i)
"#;
    assert_eq!(print(&module(text)), text);
}

#[test]
fn integer_limits_are_preserved() {
    let text = r#"@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((1,), "int64"), B: T.Buffer((1,), "uint64")):
        A[0] = -9223372036854775808
        A[0] = 9223372036854775807
        B[0] = T.uint64(18446744073709551615)
"#;
    assert_eq!(print(&module(text)), text);
}

/// Tests example E1 of TVM's EmitTE document: a script in the block syntax of 2022 parses to the loop function that tensor
/// expressions create.
#[test]
fn blocks_of_2022_equal_those_of_tensor_expressions() {
    use pliant_ops::te;
    let script = module(
        r#"
from tvm.script import tir as T

@T.prim_func
def tir_element_wise(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (128, 128))
    B = T.match_buffer(c, (128, 128))
    with T.block([128, 128]) as [i, j]:
        B[i, j] = A[i, j] * 2.0
"#,
    );
    let shape = || vec![te::int(128), te::int(128)];
    let a = te::placeholder(shape(), pliant_ir::DType::Float32, "A");
    let b = te::compute(shape(), "B", |i| a.at(i) * te::const_of(2.0, pliant_ir::DType::Float32));
    let made = te::create_prim_func(&[te::Arg::Tensor(a.clone()), te::Arg::Tensor(b)]).unwrap();
    let parsed = script.get("tir_element_wise").unwrap().as_prim().unwrap();
    let mut parsed = (**parsed).clone();
    parsed.attrs = made.attrs.clone();
    pliant_ir::structural_equality::equal_prim_funcs(&parsed, &made).unwrap();
}

#[test]
fn an_annotated_allocation_equals_a_plain_one() {
    let plain = "@T.prim_func\ndef f(A: T.Buffer((3,), \"int32\")):\n    y = T.alloc_buffer((3,), \"int32\")\n    y[0] = A[0]\n";
    let annotated = plain.replace("y = T", "y: T.Buffer((3,), \"int32\") = T");
    assert_eq!(print(&module(&annotated)), print(&module(plain)));
}

#[test]
fn divisions_need_no_module_prefix() {
    let program = |t: &str| {
        format!(
            "@T.prim_func\ndef f(A: T.Buffer((8,), \"int32\"), n: T.int32):\n    for i in range(8):\n        A[i] = {t}floordiv(A[i], 2) + {t}floormod(A[i], n) + {t}truncdiv(n, 3) + {t}truncmod(n, 3)\n"
        )
    };
    let plain = fixed_point(&program(""));
    assert_eq!(plain, fixed_point(&program("T.")));
    assert!(plain.contains("A[i] // T.int32(2)"), "{plain}");
}
