//! Tests that the access checks of test builds report out-of-bounds accesses that no pass checks. The functions are
//! written in lowered form, so the pass that inserts checks does not run.

use pliant_ir::IRModule;
use pliant_ir::tir::PrimFunc;

use crate::loop_function_harness::{
    CompiledFunction, compile, output, run_serially_and_on_team, tensor,
};

/// Compiles a loop function with a body in lowered form over the inputs `x` of `n` elements and the
/// outputs `o` of `m` elements.
fn compile_lowered(body: &str) -> CompiledFunction {
    let text = format!(
        "@I.ir_module
class Module:
    @T.prim_func
    def main(data: T.handle, out: T.handle):
        T.func_attr({{\"tir.flat\": True}})
        n = T.int64()
        m = T.int64()
        x = T.match_buffer(data, (n,), \"float32\")
        o = T.match_buffer(out, (m,), \"float32\")
{body}"
    );
    let module: IRModule = match pliant_script::parse_module(&text, pliant_ops::registry()) {
        Ok(module) => module,
        Err(e) => panic!("{e:?}\n{text}"),
    };
    let (_, f) = module.prim_funcs().next().expect("the text has a loop function");
    let f: &PrimFunc = f;
    compile(f).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Pairs of a function body that accesses an element out of bounds if `x` and `o` have 8 elements
/// each, and the expected error message.
const OUT_OF_BOUNDS: &[(&str, &str)] = &[
    ("        o[8] = x[0]\n", "element {0} of 'o' is out of bounds, and no pass checks the access"),
    (
        "        o[0] = x[-1]\n",
        "element {0} of 'x' is out of bounds, and no pass checks the access",
    ),
    ("        o[T.Ramp(4, 1, 8)] = T.Broadcast(x[0], 8)\n", "element {0} of 'o'"),
    (
        "        o[T.Ramp(0, 1, 8)] = x[T.Ramp(7, -1, 8) - T.Broadcast(1, 8)]\n",
        "element {0} of 'x'",
    ),
    ("        o[T.Ramp(0, 1, 4)] = x[T.Ramp(0, 3, 4)]\n", "element {0} of 'x'"),
    ("        o[0] = T.if_then_else(x[0] > T.float32(2), x[1], x[9])\n", "element {0} of 'x'"),
    (
        "        for i in T.parallel(n):
            o[i + 1] = x[i]
",
        "element {0} of 'o'",
    ),
    (
        "        t = T.alloc_buffer((n * 2,), \"float32\")
        t[n * 2] = x[0]
        o[0] = t[0]
",
        "element {0} of 't'",
    ),
    (
        "        t = T.alloc_buffer((100,), \"float32\")
        for i in T.parallel(n):
            t[i + 93] = x[i]
            o[i] = t[i + 93]
",
        "element {0} of 't'",
    ),
    (
        "        T.evaluate(T.call_extern(\"int64\", \"pliant_vec_exp_f32\", T.address_of(o[0]), T.address_of(x[1]), n))\n",
        "a call of 'pliant_vec_exp_f32' without a check accesses elements outside its buffers",
    ),
];

#[test]
fn unchecked_out_of_bounds_accesses_are_internal_errors() {
    for (body, message) in OUT_OF_BOUNDS {
        let kernel = compile_lowered(body);
        run_serially_and_on_team(|runtime| {
            let (x, mut o) = ([1.0f32; 8], [0.0f32; 8]);
            let result = kernel.call(vec![tensor(&x, &[8]), output(&mut o, &[8])], runtime);
            let error = result.expect_err(body);
            assert!(error.contains(message), "{body}: {error}");
        });
    }
}

#[test]
fn a_strided_buffer_with_an_empty_dim_has_no_elements() {
    let text = "@I.ir_module
class Module:
    @T.prim_func
    def main(data: T.handle, out: T.handle):
        T.func_attr({\"tir.flat\": True})
        n, p, q = T.int64(), T.int64(), T.int64()
        s = T.match_buffer(data, (n, 3), \"float32\", strides=(p, q))
        o = T.match_buffer(out, (1,), \"float32\")
        o[0] = s[n * 3 - T.min(n, 1)]
";
    let module: IRModule = pliant_script::parse_module(text, pliant_ops::registry()).unwrap();
    let (_, f) = module.prim_funcs().next().unwrap();
    let kernel = compile(f).unwrap();
    for n in [0, 1, 2] {
        let (x, mut o) = (vec![7.0f32; 3 * n], [0.0f32]);
        let result = kernel.run(vec![tensor(&x, &[n, 3]), output(&mut o, &[1])]);
        assert_eq!(result.is_ok(), n > 0, "{n}: {result:?}");
        assert_eq!(o[0] == 7.0, n > 0);
    }
}

#[test]
fn accesses_of_first_and_last_elements_pass() {
    let kernel = compile_lowered(
        "        t = T.alloc_buffer((n * 2,), \"float32\")
        for i in T.parallel(n):
            t[i * 2] = x[i]
            t[i * 2 + 1] = x[n - 1 - i]
            o[i] = T.if_then_else(i < 7, x[T.min(i + 1, 7)], x[0]) + t[i * 2 + 1]
        o[T.Ramp(0, 1, 8)] = o[T.Ramp(0, 1, 8)] + x[T.Ramp(7, -1, 8)]
        T.evaluate(T.call_extern(\"int64\", \"pliant_vec_exp_f32\", T.address_of(o[8]), T.address_of(x[8]), n - 8))
",
    );
    run_serially_and_on_team(|runtime| {
        let (x, mut o) = ([1.0f32; 8], [0.0f32; 8]);
        kernel.call(vec![tensor(&x, &[8]), output(&mut o, &[8])], runtime).unwrap();
        assert_eq!(o, [3.0; 8]);
    });
}
