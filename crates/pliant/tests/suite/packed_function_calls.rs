//! Tests calls between the levels of the IR: loop functions that call packed functions and host
//! symbols, and loop functions with scalar parameters.

use std::sync::Arc;

use crate::test_helpers::{parse, read, tensor};
use pliant::{
    CompileOptions, ExecMode, SymbolError, SymbolTy, Value, VmError, VmOptions, register_symbol,
};
use pliant_vm::PackedFunc;

/// Runs the function `main` of a script once as bytecode and once as native code, asserts that the results are equal, and returns
/// the result. The script may call the packed functions `functions`.
fn run_both_modes(
    script: &str,
    functions: &[(&str, PackedFunc)],
    args: &dyn Fn() -> Vec<Value>,
) -> Result<Value, String> {
    let options = CompileOptions { exec_mode: ExecMode::Compiled, ..CompileOptions::default() };
    let program = pliant::compile(parse(script), &options).map_err(|e| e.to_string())?;
    let run = |bytecode| {
        let functions = functions.iter().map(|(n, f)| (n.to_string(), f.clone())).collect();
        let vm = program.vm_with(VmOptions { functions, bytecode, ..VmOptions::default() });
        vm.unwrap().invoke("main", &args()).map_err(|e| e.to_string())
    };
    let (native, bytecode) = (run(false), run(true));
    assert_eq!(format!("{native:?}"), format!("{bytecode:?}"));
    native
}

const PACKED: &str = r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        T.evaluate(T.call_packed("test.calls.negate", A, B, n, "minus"))
        for i in range(n):
            with T.block("B"):
                v_i = T.axis.spatial(n, i)
                B[v_i] = B[v_i] + T.call_packed("test.calls.half", A[v_i], dtype="float32")

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
        return y
"#;

fn negate(args: &[Value]) -> Result<Value, VmError> {
    let [Value::Tensor(a), Value::Tensor(b), Value::Int(n), Value::Str(text)] = args else {
        return Err(VmError::type_error(format!("unexpected arguments {args:?}")));
    };
    assert_eq!((&**text, *n), ("minus", a.numel() as i64));
    let values: Vec<f32> = a.to_f64_vec()?.into_iter().map(|v| -v as f32).collect();
    // SAFETY: a row-major float32 tensor with that many elements, which the kernel lends for
    // writing.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), b.dl().data.cast(), values.len()) };
    Ok(Value::None)
}

fn half(args: &[Value]) -> Result<Value, VmError> {
    match args {
        [Value::Float(v)] if *v > 100.0 => Err(VmError::external("too much")),
        [Value::Float(v)] if *v < 0.0 => panic!("below zero"),
        [Value::Float(v)] => Ok(Value::Float(v / 2.0)),
        _ => Err(VmError::type_error("expected a number")),
    }
}

fn packed() -> [(&'static str, PackedFunc); 2] {
    [("test.calls.negate", Arc::new(negate)), ("test.calls.half", Arc::new(half))]
}

#[test]
fn loop_functions_call_packed_functions() {
    for values in [&[][..], &[4.0], &[1.0, 2.0, 3.0]] {
        let x = || vec![tensor(&[values.len() as i64], values)];
        let expected: Vec<f32> = values.iter().map(|v| -v / 2.0).collect();
        assert_eq!(read(&run_both_modes(PACKED, &packed(), &x).unwrap()).1, expected);
    }
}

#[test]
fn errors_of_packed_functions_propagate_through_loop_functions() {
    let fails = |functions: &[(&str, PackedFunc)], value: f32| {
        run_both_modes(PACKED, functions, &|| vec![tensor(&[2], &[1.0, value])]).unwrap_err()
    };
    let error = fails(&packed(), 101.0);
    assert_eq!(error, "packed function 'test.calls.half' failed: too much");
    let error = fails(&packed(), -1.0);
    assert_eq!(
        error,
        "packed function 'test.calls.half' failed: the function panicked: below zero"
    );
    let error = fails(&packed()[..1], 1.0);
    assert!(error.contains("not registered: test.calls.half"), "{error}");
}

const SYMBOL: &str = r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                v_i = T.axis.spatial(n, i)
                B[v_i] = T.call_extern("float32", "test_calls_triple", A[v_i])

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
        return y
"#;

extern "C" fn triple(v: f32) -> f32 {
    3.0 * v
}

#[test]
fn host_symbols_are_called() {
    let x = || vec![tensor(&[3], &[0.0, 1.0, -2.0])];
    let error = run_both_modes(SYMBOL, &[], &x).unwrap_err();
    assert!(error.contains("'test_calls_triple'") && error.contains("not linked"), "{error}");
    let register = |name: &str, params: &[SymbolTy]| {
        // SAFETY: the function has this signature wherever it is called, and does not unwind.
        unsafe { register_symbol(name, triple as *const (), params, SymbolTy::F32) }
    };
    register("test_calls_triple", &[SymbolTy::F32]).unwrap();
    assert_eq!(read(&run_both_modes(SYMBOL, &[], &x).unwrap()).1, [0.0, 3.0, -6.0]);
    let again = register("test_calls_triple", &[SymbolTy::F32]);
    assert_eq!(again, Err(SymbolError::Taken("test_calls_triple".into())));
    let taken = register("pliant_exp_f32", &[SymbolTy::F32]);
    assert!(matches!(taken, Err(SymbolError::Taken(_))));
    let address = register("test_calls_pointer", &[SymbolTy::Ptr]);
    assert!(matches!(address, Err(SymbolError::Address(_))));
}

#[test]
fn integer_parameters_used_only_as_data_may_be_large() {
    let script = r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(s: T.int64, var_B: T.handle):
        B = T.match_buffer(var_B, (2,), "int64")
        for i in range(2):
            with T.block("B"):
                v_i = T.axis.spatial(2, i)
                B[v_i] = s + v_i

    @R.function
    def main() -> R.Tensor((2,), dtype="int64"):
        cls = Module
        y = R.call_tir(cls.f, (R.prim_value(T.int64(4611686018427387904)),), out_sinfo=R.Tensor((2,), dtype="int64"))
        return y
"#;
    let Value::Tensor(found) = run_both_modes(script, &[], &Vec::new).unwrap() else {
        panic!("no tensor")
    };
    assert_eq!(found.to_i64_vec().unwrap(), [1 << 62, (1 << 62) + 1]);
}

#[test]
fn loop_functions_take_scalars_of_every_type() {
    for (dtype, value, expected) in [
        ("float16", "R.prim_value(T.float16(1.5))", 1.5),
        ("float32", "R.prim_value(T.float32(0.25))", 0.25),
        ("float64", "R.prim_value(T.float64(-2.5))", -2.5),
        ("int8", "R.prim_value(T.int8(-7))", -7.0),
        ("int16", "R.prim_value(T.int16(-300))", -300.0),
        ("int32", "R.prim_value(T.int32(70000))", 70000.0),
        ("int64", "R.prim_value(T.int64(5))", 5.0),
        ("uint8", "R.prim_value(T.uint8(200))", 200.0),
        ("bool", "R.prim_value(T.bool(True))", 1.0),
    ] {
        let script = format!(
            r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(var_A: T.handle, s: T.{dtype}, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                v_i = T.axis.spatial(n, i)
                B[v_i] = A[v_i] + T.Cast("float32", s)

    @R.function
    def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x, {value}), out_sinfo=R.Tensor((n,), dtype="float32"))
        return y
"#
        );
        for n in [0, 1, 9] {
            let x = || vec![tensor(&[n], &vec![1.0; n as usize])];
            let result =
                run_both_modes(&script, &[], &x).unwrap_or_else(|e| panic!("{dtype}: {e}"));
            assert_eq!(read(&result).1, vec![1.0 + expected; n as usize], "{dtype}");
        }
    }
}
