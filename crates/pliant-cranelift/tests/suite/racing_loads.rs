//! Tests that an index from memory is loaded only once, so that another thread cannot change it between the bounds check and the
//! access. `pliant_tir::lowered_form_verifier` checks that assertions do not read memory, and the results must match the source.

use pliant_exec::abi::KernelRuntime;
use pliant_ir::IRModule;
use pliant_ir::tir::{ExprData, PrimFunc, StmtData};
use pliant_tir::access_guards::reads_memory;
use pliant_tir::statement_traversal::for_each_stmt;

use crate::guard::Guarded;
use crate::loop_function_harness::{
    CompiledFunction, build, output, run_serially_and_on_team, tensor,
};

/// Parses a loop function with this body over the indices `b`, the data `x` and the output `o`.
fn function(body: &str) -> PrimFunc {
    let text = format!(
        "@I.ir_module
class Module:
    @T.prim_func
    def main(index: T.handle, data: T.handle, out: T.handle):
        n = T.int64()
        k = T.int64()
        b = T.match_buffer(index, (k,), \"int64\")
        x = T.match_buffer(data, (n,), \"float32\")
        o = T.match_buffer(out, (n,), \"float32\")
{body}"
    );
    let module: IRModule = match pliant_script::parse_module(&text, pliant_ops::registry()) {
        Ok(module) => module,
        Err(e) => panic!("{e:?}\n{text}"),
    };
    let (_, f) = module.prim_funcs().next().expect("the text has a loop function");
    (**f).clone()
}

fn call(
    kernel: &CompiledFunction,
    index: &[i64],
    data: &[f32],
    out: &mut [f32],
    runtime: &KernelRuntime,
) -> Result<(), String> {
    let (k, n) = (index.len(), data.len());
    kernel.call(vec![tensor(index, &[k]), tensor(data, &[n]), output(out, &[n])], runtime)
}

/// A test case: the body of a loop function, the indices `b`, and the expected output if the data `x` are 0 to 7 and the
/// output is initially zero. The expected output is `None` if the call must fail.
type Case = (&'static str, &'static [i64], Option<[f32; 8]>);

const CASES: &[Case] = &[
    // A condition in the program, and a call between check and access.
    (
        "        for i in T.parallel(n):
            if b[0] < 8:
                o[b[0]] = T.sin(x[0])
",
        &[3],
        Some([0.0; 8]),
    ),
    ("        o[b[0]] = T.sin(x[0])\n", &[8], None),
    ("        o[b[0]] = T.sin(x[0])\n", &[-1], None),
    // A check in front of a vectorized loop, an access in each of its iterations.
    (
        "        for i, j in T.grid(1, n):
            with T.block(\"o\"):
                v, w = T.axis.remap(\"SS\", [i, j])
                o[w] = x[w] + x[b[v]]
",
        &[2],
        Some([2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
    ),
    (
        "        for i, j in T.grid(1, n):
            with T.block(\"o\"):
                v, w = T.axis.remap(\"SS\", [i, j])
                o[w] = x[w] + x[b[v]]
",
        &[800],
        None,
    ),
    // A reduction over gathered elements.
    (
        "        for i, j in T.grid(n, k):
            with T.block(\"o\"):
                v, w = T.axis.remap(\"SR\", [i, j])
                with T.init():
                    o[v] = T.float32(0.0)
                o[v] = o[v] + x[b[w]]
",
        &[1, 2, 3],
        Some([6.0; 8]),
    ),
    // An index of an index, and an index that is read only if another condition allows it.
    ("        o[b[b[0]]] = x[1]\n", &[2, 9, 5], Some([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0])),
    ("        o[b[b[0]]] = x[1]\n", &[1, 9, 5], None),
    (
        "        for i in range(n):
            o[i] = T.if_then_else(b[0] < n and b[0] >= 0, x[b[0]], T.float32(-1.0))
",
        &[70],
        Some([-1.0; 8]),
    ),
    (
        "        for i in range(n):
            o[i] = T.if_then_else(b[b[0]] == 4, x[b[1]], T.float32(-1.0))
",
        &[2, 5, 4],
        Some([5.0; 8]),
    ),
    // The second operand of `or` and `and` is evaluated only if the first one does not decide.
    (
        "        for i in range(n):
            if i == n - 1 or x[i + 1] < T.float32(4.0):
                o[i] = x[1]
",
        &[0],
        Some([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    ),
    (
        "        for i in range(n):
            if i > 0 and x[i - 1] > T.float32(4.0):
                o[i] = x[1]
",
        &[0],
        Some([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]),
    ),
    // Loop bounds from memory.
    (
        "        for i in range(b[0], b[1]):
            o[i] = x[i]
",
        &[2, 5],
        Some([0.0, 0.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0]),
    ),
    (
        "        for i in range(b[0]):
            o[i] = x[i]
",
        &[9],
        None,
    ),
    (
        "        for i in range(b[0]):
            o[i] = x[i]
",
        &[-9],
        Some([0.0; 8]),
    ),
    // The condition of a while loop is checked before each evaluation.
    (
        "        p = T.alloc_buffer((1,), \"int64\")
        p[0] = T.int64(0)
        while b[p[0]] != 0:
            o[b[p[0]]] = x[2]
            p[0] = p[0] + 1
",
        &[1, 3, 0],
        Some([0.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]),
    ),
    (
        "        p = T.alloc_buffer((1,), \"int64\")
        p[0] = T.int64(0)
        while b[p[0]] != 0:
            p[0] = p[0] + 1
",
        &[1, 3],
        None,
    ),
    // Every lane of a vector index is checked, and none may wrap around between the ends of a ramp.
    (
        "        o[T.Ramp(0, 1, 4)] = x[b[T.Ramp(0, 1, 4)]]\n",
        &[1, 7, 2, 0],
        Some([1.0, 7.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    ),
    ("        o[T.Ramp(0, 1, 4)] = x[b[T.Ramp(0, 1, 4)]]\n", &[1, 1 << 40, 2, 3], None),
    ("        o[T.Ramp(0, 1, 4)] = x[b[T.Ramp(0, 1, 4)]]\n", &[1, 2, 3, -1], None),
    (
        "        o[b[T.Ramp(0, 1, 4)]] = T.Broadcast(T.float32(1), 4)\n",
        &[1, 1 << 40, 2, 3],
        None,
    ),
    (
        "        o[T.Ramp(0, b[0], 4)] = T.Broadcast(T.float32(1), 4)\n",
        &[2],
        Some([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
    ),
    ("        o[T.Ramp(0, b[0], 4)] = T.Broadcast(T.float32(1), 4)\n", &[3], None),
    (
        "        o[T.Ramp(0, b[0], 4)] = T.Broadcast(T.float32(1), 4)\n",
        &[6_148_914_691_236_517_206],
        None,
    ),
    (
        "        o[T.Ramp(T.Cast(\"int32\", 0), T.Cast(\"int32\", b[0]), 4)] = T.Broadcast(T.float32(1), 4)\n",
        &[1_431_655_766],
        None,
    ),
    (
        "        o[T.Ramp(0, 1, 4)] = x[T.max(T.Ramp(0, 1, 4), T.Ramp(0, b[0], 4))]\n",
        &[1 << 40],
        None,
    ),
    // Arguments of a library kernel.
    (
        "        T.evaluate(T.call_extern(\"int64\", \"pliant_vec_exp_f32\", T.address_of(o[b[0]]), T.address_of(x[b[1]]), b[2]))
",
        &[7, 0, 1],
        Some([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
    ),
    (
        "        T.evaluate(T.call_extern(\"int64\", \"pliant_vec_exp_f32\", T.address_of(o[b[0]]), T.address_of(x[b[1]]), b[2]))
",
        &[7, 0, 2],
        None,
    ),
];

#[test]
fn results_with_loaded_indices_match_the_source() {
    for &(body, index, want) in CASES {
        let kernel = build(&function(body));
        let data: Vec<f32> = (0..8).map(|i| i as f32).collect();
        for at_end in [false, true] {
            let data = Guarded::new(&data, at_end);
            check(&kernel, (body, index, want), &data);
        }
    }
}

fn check(kernel: &CompiledFunction, (body, index, want): Case, data: &Guarded<f32>) {
    run_serially_and_on_team(|runtime| {
        let mut out = [0f32; 8];
        let got = call(kernel, index, data.values(), &mut out, runtime);
        match want {
            Some(want) => {
                assert_eq!(got, Ok(()), "{body}{index:?}");
                assert_eq!(out, want, "{body}{index:?}");
            }
            None => assert!(got.is_err(), "{body}{index:?}: {out:?}"),
        }
    });
}

/// Tests a reduction whose partial result is the index of the next operand.
#[test]
fn an_index_that_is_a_partial_result_is_loaded_in_each_iteration() {
    let text = "@I.ir_module
class Module:
    @T.prim_func
    def main(table: T.handle, out: T.handle):
        n = T.int64()
        x = T.match_buffer(table, (n,), \"int64\")
        o = T.match_buffer(out, (1,), \"int64\")
        for i, j in T.grid(1, n):
            with T.block(\"o\"):
                v, w = T.axis.remap(\"SR\", [i, j])
                with T.init():
                    o[v] = T.int64(0)
                o[v] = o[v] + x[o[v]]
";
    let module = pliant_script::parse_module(text, pliant_ops::registry()).expect("it parses");
    let (_, f) = module.prim_funcs().next().expect("the text has a loop function");
    let kernel = build(f);
    let (table, mut out) = ([1i64, 2, 0, 0], [9i64]);
    kernel.run(vec![tensor(&table, &[4]), output(&mut out, &[1])]).expect("it is in bounds");
    assert_eq!(out, [3]);
}

/// Tests that assertions in lowered functions do not read memory, and that the verifier rejects an assertion that does.
#[test]
fn lowered_assertions_do_not_read_memory() {
    let mut checks = 0;
    for &(body, ..) in CASES {
        let lowered = pliant_tir::lower(&function(body)).expect("it can be lowered");
        for_each_stmt(&lowered, lowered.body, &mut |_, data| {
            if let StmtData::Assert(condition, ..) = data {
                assert!(!reads_memory(&lowered, *condition), "{body}");
                checks += 1;
            }
        });
    }
    assert!(checks > 20, "only {checks} checks");

    let mut f = pliant_tir::lower(&function("        o[0] = x[0]\n")).expect("it can be lowered");
    let b = f.buffer_ids().next().expect("there is a buffer");
    let (zero, first) = (f.int(0), f.int(0));
    let value = f.load(b, &[first]);
    let condition = f.add_expr(ExprData::Binary(pliant_ir::tir::BinOp::Le, zero, value));
    let body = f.body;
    f.body = f.add_stmt(StmtData::Assert(condition, "it is not checked".into(), body));
    let message =
        pliant_tir::lowered_form_verifier::verify(&f).expect_err("the check reads memory");
    assert!(message.contains("must not read memory"), "{message}");
}
