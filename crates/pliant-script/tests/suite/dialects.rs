//! Tests that equivalent programs in the three dialects (TVM's RFC of Relax of 2022, `struct_info`, TVM 0.26) parse to the same
//! IR.

use crate::parse_and_print::{errors, fixed_point};

/// The source text of example R1 of TVM's RFC of Relax (2022).
const RFC: &str = include_str!("programs/relax_rfc_dot_and_flatten.py");

#[test]
fn the_main_program_of_the_rfc_parses() {
    let out = fixed_point(RFC);
    let relax = &out[out.find("    @R.function").unwrap()..];
    assert_eq!(
        relax,
        r#"    @R.function(pure=False)
    def relax_func(x: R.Tensor(("n", "k"), dtype="float32"), w: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
        n = T.int64()
        k = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            lv0: R.Tensor((k, m), dtype="float32") = R.match_cast(w, R.Tensor((k, m), dtype="float32"))
            lv1: R.Tensor((n, m), dtype="float32") = R.matmul(x, lv0)
            lv2: R.Tensor((m * n,), dtype="float32") = R.flatten(lv1)
            lv3: R.Shape([m * n]) = R.shape([m * n])
            gv0: R.Tensor((m * n,), dtype="float32") = R.call_tir(cls.tir_exp_func, (lv2,), out_sinfo=R.Tensor((m * n,), dtype="float32"))
            R.output(gv0)
        _: R.Object = R.call_packed("custom_inplace_update", gv0)
        return gv0
"#
    );
}

/// Parses each body with the same signature, and checks that all of them print identically. Returns
/// the printed form.
fn assert_print_equal(signature: &str, bodies: &[&str]) -> String {
    let mut first: Option<String> = None;
    for body in bodies {
        let text = format!(
            r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32"), m: T.int64):
        for i, j in T.grid(n, 4):
            B[i, j] = A[i, j]

    @T.prim_func
    def g(A: T.Buffer((n, 4), "float32"), B: T.Buffer((n, 4), "float32"), C: T.Buffer((2,), "int64")):
        C[0] = n

    @R.function
    def main({signature}):
{body}
"#
        );
        let out = fixed_point(&text);
        match &first {
            None => first = Some(out),
            Some(first) => assert_eq!(first, &out, "{body}"),
        }
    }
    first.unwrap()
}

#[test]
fn call_tir_in_all_dialects() {
    let out = assert_print_equal(
        "x: R.Tensor((\"n\", 4), \"float32\"), s: R.Shape([\"m\"])",
        &[
            "        n, m = T.int64(), T.int64()\n        cls = Module\n        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n, 4), dtype=\"float32\"), tir_vars=R.shape([m]))\n        return y",
            "        y = R.call_tir(f, (x, m), out_ty=R.Tensor((n, 4), dtype=\"float32\"))\n        return y",
            "        y = R.call_tir(f, [x], (n, 4), dtype=\"float32\", tir_vars=(m,))\n        return y",
            "        y = R.call_tir((n, 4), f, [x], dtype=\"float32\", tir_vars=R.ShapeExpr([m]))\n        return y",
            "        y = R.call_tir_dyn((n, 4), f, [x], R.ShapeExpr([m]))\n        return y",
            "        y = relax.call_tir(Module.f, x, [R.Tensor((n, 4), dtype=\"float32\")], s)\n        return y",
        ],
    );
    assert!(out.contains("R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n, 4), dtype=\"float32\"), tir_vars=R.shape([m]))"), "{out}");
}

#[test]
fn call_tir_with_several_outputs() {
    let out = assert_print_equal(
        "x: R.Tensor((\"n\", 4), \"float32\")",
        &[
            "        y = R.call_tir(g, (x,), out_sinfo=[R.Tensor((n, 4), \"float32\"), R.Tensor((2,), \"int64\")])\n        a, b = y\n        return (b, a)",
            "        y = R.call_tir(g, (x,), [(n, 4), (2,)], dtype=[\"float32\", \"int64\"])\n        a = y[0]\n        b = y[-1]\n        return b, a",
        ],
    );
    assert!(out.contains("b: R.Tensor((2,), dtype=\"int64\") = y[1]"), "{out}");
}

#[test]
fn packed_calls_in_all_dialects() {
    let signature = "x: R.Tensor((\"n\", 4), \"float32\")";
    assert_print_equal(
        signature,
        &[
            "        y = R.call_dps_packed(\"g\", (x,), out_sinfo=R.Tensor((n, 8), dtype=\"float32\"))\n        return y",
            "        y = R.call_dps_packed(\"g\", (x), (n, 4 * 2), dtype=\"float32\")\n        return y",
            "        y = R.call_dps_packed(\"g\", x, output_shape=(n, 8), output_dtype=\"float32\")\n        return y",
            "        y = R.call_dps_packed(R.ExternFunc(\"g\"), [x], out_ty=R.Tensor((n, 8), \"float32\"))\n        return y",
            "        y = R.call_tir(\"g\", (x,), (n, 8), dtype=\"float32\")\n        return y",
        ],
    );
    assert_print_equal(
        signature,
        &[
            "        y = R.call_packed(\"g\", x, sinfo_args=(R.Tensor((n, 8), dtype=\"float32\"),))\n        return y",
            "        y = R.call_packed(\"g\", x, type_args=R.Tensor((n, 8), dtype=\"float32\"))\n        return y",
            "        y = relax.call_packed(\"g\", x, ty_args=[R.Tensor((n, 8), dtype=\"float32\")])\n        return y",
            "        y = R.ExternFunc(\"g\")(x, sinfo_args=R.Tensor((n, 8), dtype=\"float32\"))\n        return y",
        ],
    );
    assert_print_equal(
        signature,
        &[
            "        _ = R.call_builtin_with_ctx(\"vm.builtin.f\", (x, R.prim_value(3)), sinfo_args=(R.Object,))\n        return x",
            "        R.call_builtin_with_ctx(\"vm.builtin.f\", [x, 3], ty_args=R.Any)\n        return x",
        ],
    );
}

#[test]
fn annotations_in_all_dialects() {
    let forms = [
        (
            "x: R.Tensor((\"n\", 4), dtype=\"float32\"), o: R.Object, t: R.Tuple(R.Tensor, R.Shape(ndim=2))",
            "R.Object",
        ),
        (
            "x: R.Tensor[(n, 4), \"float32\"], o: R.Any, t: R.Tuple[R.Tensor[_, _], R.Shape(ndim=2)]",
            "R.Any",
        ),
        (
            "x: Tensor((n, 4), \"f32\"), o: Object, t: (R.Tensor(ndim=-1), R.Shape(ndim=2))",
            "Object",
        ),
        (
            "x: relax.Tensor((n, 4), T.float32), o: R.Object(), t: R.Tuple([R.Tensor(dtype=\"\"), R.Shape(ndim=2)])",
            "R.Object",
        ),
    ];
    let prints: Vec<String> = forms
        .iter()
        .map(|(params, ret)| {
            fixed_point(&format!("@R.func\ndef main({params}) -> {ret}:\n    return o\n"))
        })
        .collect();
    for p in &prints {
        assert_eq!(p, &prints[0]);
    }
}

#[test]
fn scalar_parameters_can_be_dims() {
    let out = fixed_point(
        r#"
@R.function
def main(x: R.Tensor((n, k), "float32"), n: R.Prim("int64"), k: T.int64, s: R.Prim("float32")):
    y = R.reshape(x, (n * k,))
    z = R.add(y, R.const(1.0, "float32"))
    return z
"#,
    );
    assert!(out.contains("def main(x: R.Tensor((\"n\", \"k\"), dtype=\"float32\"), n: R.Prim(value=\"n\"), k: R.Prim(value=\"k\"), s: R.Prim(\"float32\"))") || out.contains("n1: R.Prim(value=\"n\")"), "{out}");
    let out = fixed_point(
        "@R.function\ndef main(n: R.Prim(\"int64\"), m: R.Prim(\"int64\")):\n    y = R.shape([n, 4])\n    return (y, m)\n",
    );
    assert!(out.contains("m: R.Prim(\"int64\")") && out.contains("value="), "{out}");
}

#[test]
fn shapes_can_be_values() {
    let out = fixed_point(
        r#"
@R.function
def main(x: R.Tensor[(n, m), "float32"]):
    n1, m1 = R.match_shape(x.shape)
    s: R.Shape = (n * m,)
    a = R.reshape(x, s)
    b = R.reshape(x, (n * m,))
    c = R.reshape(x, R.shape([n1 * m]))
    d = R.match_cast(a, R.Tensor(("p",), "float32"))
    e: R.Tensor((n * m,), "float32") = R.add(a, b)
    R.match_shape(x, (m, n))
    return (d, x.shape[0], R.shape_of(x), s)
"#,
    );
    assert!(out.contains("e: R.Tensor((m * n,), dtype=\"float32\") = R.add(a, b)"), "{out}");
}

/// Tests example R11 of TVM's RFC of Relax (2022), which is about shapes.
#[test]
fn the_shape_example_of_the_rfc_parses() {
    let out = fixed_point(
        r#"
@R.function
def shape_example(x: R.Tensor[(n, 2, 2), "float32"]):
    with R.dataflow():
        lv0: R.Tensor[(n, 4), "float32"] = R.reshape(x, (n, 4))
        lv1: R.Tensor[(n * 4,), "float32"] = R.flatten(lv0)
        lv2: R.Shape = (n * 4,)
        lv3: R.Shape = R.call_packed("myshape_func", lv2)
        lv4 = R.call_tir("custom_func", (lv1,), lv3, dtype="float32")
        lv5: R.Tensor[_, "float32"] = R.unique(lv4)
        lv6: R.Tensor[(m,), "float32"] = R.match_shape(lv5, (m,))
        lv7: R.Shape = R.match_shape(lv3, (m,))
        gv0: R.Tensor[(m,), "float32"] = R.exp(lv6)
        R.outputs(gv0)
    return gv0
"#,
    );
    assert!(out.contains("lv7: R.Shape([m]) = R.match_cast(lv3, R.Shape([m]))"), "{out}");
    assert!(out.contains("R.call_pure_packed(\"myshape_func\", lv2"), "{out}");
}

#[test]
fn if_branches_define_common_variables() {
    let out = fixed_point(
        r#"
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")):
    if c:
        t = R.exp(x)
        y = R.add(t, x)
    else:
        y = x
    if c:
        a = R.exp(y)
        b = a
    else:
        b = R.exp(x)
        a = x
    if c:
        if c:
            z = R.add(a, b)
        else:
            z = a
        return z
    else:
        return y
"#,
    );
    assert!(out.contains("            y: R.Tensor((n,), dtype=\"float32\") = x\n"), "{out}");
    assert!(
        out.contains(
            "R.Tuple(R.Tensor((n,), dtype=\"float32\"), R.Tensor((n,), dtype=\"float32\"))"
        ),
        "{out}"
    );
}

#[test]
fn functions_can_call_each_other() {
    let out = fixed_point(
        r#"
@I.ir_module
class Module:
    I.module_attrs({"version": 2})
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        y = Module.helper(x)
        return y

    @R.function(private=True)
    def helper(a: R.Tensor(("m", "k"), "float32")):
        R.func_attr({"Primitive": True})
        b = R.concat([a, a], axis=0)
        return b

    @R.function
    def again(a: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        cls = Module
        b: R.Tensor(("m",), "float32") = cls.again(a)
        return b

    @R.function(pure=False)
    def effects(a: R.Tensor(("m",), "float32")):
        @R.function
        def inner(b: R.Tensor(("m", "q"), "float32")):
            c = R.exp(b)
            return c
        _ = R.print(a, format="{}")
        return inner
"#,
    );
    assert!(out.contains("y: R.Tensor((n * 2, 4), dtype=\"float32\") = cls.helper(x)"), "{out}");
    assert!(out.contains("b: R.Tensor((m,), dtype=\"float32\") = cls.again(a)"), "{out}");
}

#[test]
fn python_operators_become_relax_operators() {
    let out = fixed_point(
        r#"
from pliant.script import relax
@relax.function
def main(x: R.Tensor(("n", 4), "float16"), w: R.Tensor((4, 4), "float16")):
    y = -(x + 1) * 2.5 / x @ w
    z = relax.nn.relu(y) > 0.5
    u = relu(y) if True else x
    return z, u
"#,
    );
    assert!(out.contains("R.const(2.5, \"float16\")") && out.contains("R.matmul("), "{out}");
    assert!(out.contains("R.greater("), "{out}");
}

#[test]
fn constants_parse_with_their_dtypes() {
    let out = fixed_point(
        r#"
metadata = {"relax.expr.Constant": [I.tensor((2,), "int32", "AQAAAAIAAAA=")]}
@R.function
def main(x: R.Tensor((2,), "float32")):
    a = R.const([[1, 2], [3, 4]], "int8")
    b = R.const(True, "bool")
    c = R.const(float("-inf"), "float32")
    d = R.const(1.5)
    e = metadata["relax.expr.Constant"][0]
    f = R.const(3)
    g = R.const(2**63 - 1, "int64")
    h = R.const([-2**63, 0], "int64")
    i = R.const(2**64 - 1, "uint64")
    return (a, b, c, d, e, f, g, h, i, R.prim_value(T.float32(0.5)), R.prim_value(T.bool(True)), R.str("s"), R.dtype("int8"))
"#,
    );
    assert!(
        out.contains("R.const([1, 2], \"int32\")") && out.contains("R.const(3, \"int32\")"),
        "{out}"
    );
    for end in ["9223372036854775807", "[-9223372036854775808, 0]", "18446744073709551615"] {
        assert!(out.contains(&format!("R.const({end}, ")), "{out}");
    }
}

#[test]
fn memory_and_vm_builtins_parse() {
    fixed_point(
        r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        cls = Module
        s = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        t = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
        u = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
        cls.f(x, t)
        cls.f(t, u)
        _ = R.memory.kill_tensor(t)
        R.memory.kill_storage(s)
        return u
"#,
    );
}

#[test]
fn dataflow_blocks_hide_variables_and_reject_effects() {
    let out = errors(
        r#"
@R.function
def main(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        a = R.exp(x)
        R.call_packed("effect", a)
        b = R.print(a)
        R.output(a)
    with R.dataflow():
        c = R.exp(a)
        R.output()
    return c
"#,
    );
    assert_eq!(
        out,
        "6:9 `R.call_packed(\"effect\", a)` PL0110: R.call_packed has side effects, so it cannot be called in a dataflow block (move the call out of the block, or use R.call_pure_packed if it has none)\n\
         7:13 `R.print(a)` PL0110: R.print has side effects, so it cannot be called in a dataflow block (move the call out of the block, or use R.call_pure_packed if it has none)\n\
         12:12 `c` PL0109: 'c' is local to its dataflow block (make it an output of the block: R.output(c))"
    );
}

/// Tests example R18 of TVM's RFC of Relax (2022), which is about explicit memory. Its brackets are
/// corrected.
#[test]
fn the_explicit_memory_example_of_the_rfc_parses() {
    let out = fixed_point(
        r#"
@R.function
def relax_function(x: R.Tensor(ndim=2, dtype="float32")):
    n, m = R.match_shape(x.shape)

    storage0 = relax.runtime.builtin.alloc_storage(size=[n*m*4], device=cpu)
    tensor0 = relax.runtime.builtin.alloc_tensor(storage0, shape=[n, m], offset=0, dtype="float32")
    R.call_packed("tirexp", x, tensor0)

    storage1 = relax.runtime.builtin.alloc_storage(size=[n*m*4], device=cpu)
    tensor1 = relax.runtime.builtin.alloc_tensor(storage1, shape=[m*n,], offset=0, dtype="float32")
    R.call_packed("flatten", tensor0, tensor1)

    R.call_packed("free_tensor", tensor0)
    R.call_packed("free_storage", storage0)
    return tensor1
"#,
    );
    assert!(
        out.contains("R.memory.alloc_storage(R.shape([m * n * 4]), R.prim_value(0), R.str(\"global\"), R.dtype(\"uint8\"))"),
        "{out}"
    );
}

/// Tests example R9 of TVM's RFC of Relax (2022), with its matmul corrected. The example contains sizes that axes shadow,
/// unnamed blocks, and calls of all kinds.
#[test]
fn the_cross_level_program_of_the_rfc_parses() {
    let out = fixed_point(
        r#"
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tir_matmul(x: T.handle, y: T.handle, z: T.handle) -> None:
        m = T.var("int32")
        n = T.var("int32")
        k = T.var("int32")
        A = T.match_buffer(x, (m, n))
        B = T.match_buffer(y, (n, k))
        C = T.match_buffer(z, (m, k))

        for (i0, j0, k0) in T.grid(m, k, n):
            with T.block():
                i, j, k = T.axis.remap("SSR", [i0, j0, k0])
                with T.init():
                    C[i, j] = 0.0
                C[i, j] += A[i, k] * B[k, j]

    @R.function
    def relax_func(x: R.Tensor[(m, n), "float32"], y: R.Tensor[(n, k), "float32"]):
        with R.dataflow():
            gv0 = R.call_tir(tir_matmul, (x, y), (m, k), dtype="float32")
            R.outputs(gv0)
        R.call_packed("custom_print", gv0)
        gv1 = R.call_packed("custom_add", gv0, gv0)
        gv2 = R.call_dps_packed("custom_tile", (gv1), (m, k * 2), dtype="float32")
        return gv2
"#,
    );
    for line in [
        "T.reads(A[i, k1], B[k1, j])",
        "C[i, j] = C[i, j] + A[i, k1] * B[k1, j]",
        "gv2: R.Tensor((m, k * 2), dtype=\"float32\") = R.call_dps_packed(\"custom_tile\", (gv1,), out_sinfo=R.Tensor((m, k * 2), dtype=\"float32\"))",
    ] {
        assert!(out.contains(line), "no `{line}` in\n{out}");
    }
}

/// Tests example R17 of TVM's RFC of Relax (2022), with its parameters corrected. The example contains a size declared by
/// its name, a block over loops, and a packed function called by its name.
#[test]
fn the_running_example_of_the_rfc_parses() {
    let out = fixed_point(
        r#"
@tvm.script.ir_module
class MyIRModule:
    @T.prim_func
    def tirexp(a: ty.handle, b: ty.handle):
        n1, m1 = T.var("n1"), T.var("m1")
        X = T.match_buffer(a, (n1, m1))
        Y = T.match_buffer(b, (n1, m1))
        with T.block(n1, m1) as i, j:
            Y[i, j] = T.exp(X[i, j])

    @R.function
    def relax_function(x: R.Tensor[(n, m)]):
        with R.dataflow():
            lv0: R.Tensor[(n, m)] = R.call_tir(tirexp, (x,), (n, m), dtype="float32")
            gv0: R.Tensor[(m*n,)] = R.call_tir("flatten", (lv0,), (m*n,), dtype="float32")
            R.outputs(gv0)
        return gv0
"#,
    );
    assert!(out.contains("R.call_dps_packed(\"flatten\", (lv0,)"), "{out}");
}

/// Tests examples E4 and A4 of TVM's EmitTE document, which contain sizes as extra arguments, a shape as the first argument,
/// and untyped parameters.
#[test]
fn the_extra_size_arguments_of_the_te_document_parse() {
    let out = fixed_point(
        r#"
@I.ir_module
class Module:
    @T.func
    def ewise_fun(a, b, m: T.int64):
        n = tir.var("n")
        A = T.match_buffer(a, (n, 2*T.floordiv(m, 2)))
        B = T.match_buffer(b, (n, 2*T.floordiv(m, 2)))
        with T.block([n, 2*T.floordiv(m, 2)]) as [i, j]:
            B[i, j] = A[i, j] + 1
    @R.function
    def main(x: R.Tensor[(n, 2 * (m // 2)), "float32"], s: R.Shape([m])):
        y = R.call_tir_dyn([n, 2 * (m // 2)], ewise_fun, [x], R.ShapeExpr([m]), dtype="float32")
        return y
"#,
    );
    assert!(out.contains("tir_vars=R.shape([m])"), "{out}");
    assert!(out.contains("A = T.match_buffer(a, (n, 2 * (m // 2)), \"float32\")"), "{out}");
}

/// Tests example R19 of TVM's RFC of Relax (2022), which is about explicit shapes. Its brackets are corrected. Its operands
/// are in an order that is no longer used.
#[test]
fn the_explicit_shapes_example_of_the_rfc_parses() {
    let out = fixed_point(
        r#"
@R.function
def relax_function(x: R.Tensor(ndim=2, dtype="float32")):
    shape_heap = relax.call_packed("vm.builtin.alloc_shape_heap", size=4)
    relax.runtime.builtin.store_shape(x.shape, shape_heap, 0, 1)
    sh = relax.runtime.builtin.load_shape(shape_heap, 0, 1)
    R.call_packed("product_shape", shape_heap)
    shape_size = R.call_packed("load_shape", shape_heap, 3)

    storage0 = relax.runtime.builtin.alloc_storage(size=shape_size, device=cpu)
    gv0 = relax.runtime.builtin.alloc_tensor(storage0, sh, 0, "float32")
    gv1 = relax.runtime.builtin.alloc_tensor(storage0, sh, offset=0, dtype="float32")
    return gv0
"#,
    );
    for line in [
        "R.call_packed(\"vm.builtin.alloc_shape_heap\", R.prim_value(4))",
        "R.vm.load_shape(shape_heap, R.prim_value(0), R.prim_value(1))",
        "gv0: R.Tensor(sh, dtype=\"float32\") = R.memory.alloc_tensor(storage0, R.prim_value(0), sh, R.dtype(\"float32\"))",
        "gv1: R.Tensor(sh, dtype=\"float32\") = R.memory.alloc_tensor(storage0, R.prim_value(0), sh, R.dtype(\"float32\"))",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
}
