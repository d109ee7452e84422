//! Tests how the interpreter runs loop functions: statements, blocks, vectors, buffers, checks,
//! calls of the kernel library.

use crate::script_and_tensor_helpers::*;
use pliant_interp::{ErrorKind, NoPacked, Options, Value, run, run_with};
use pliant_ir::DType;
use pliant_tensor::Winograd;

/// Runs a loop function on the given arguments, and returns the last argument, which it has written.
fn run_loops(body: &str, args: Vec<Value>) -> Result<Value, pliant_interp::InterpError> {
    let module = module(body);
    let name = module.functions.keys().next().expect("the text has a function").clone();
    run(&module, &name, &args, &NoPacked)?;
    Ok(args.last().expect("a tensor is written").clone())
}

#[test]
fn a_block_with_init_is_a_reduction() {
    let text = r#"
@T.prim_func
def matmul(var_A: T.handle, var_B: T.handle, var_C: T.handle):
    n = T.int64()
    m = T.int64()
    k = T.int64()
    A = T.match_buffer(var_A, (n, k), "float32")
    B = T.match_buffer(var_B, (k, m), "float32")
    C = T.match_buffer(var_C, (n, m), "float32")
    for i, j, p in T.grid(n, m, k):
        with T.block("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, p])
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
"#;
    let a = f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = f32s(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let c = run_loops(text, vec![a.clone(), b, zeros(&[2, 2], DType::Float32)]).unwrap();
    assert_eq!(flat(&c), [4.0, 5.0, 10.0, 11.0]);
    let wrong = zeros(&[4, 2], DType::Float32);
    let error = run_loops(text, vec![a, wrong, zeros(&[2, 2], DType::Float32)]).unwrap_err();
    assert!(error.message.contains("matmul: 'B' dim 0 must equal k = 3, but is 4"), "{error}");
}

#[test]
fn accesses_out_of_bounds_are_errors() {
    let text = r#"
@T.prim_func
def f(var_A: T.handle, i: T.int64):
    n = T.int64()
    A = T.match_buffer(var_A, (n, 2), "float32")
    A[i, 1] = T.float32(1)
"#;
    let module = module(text);
    let at =
        |i: i64| run(&module, "f", &[zeros(&[3, 2], DType::Float32), Value::Int(i)], &NoPacked);
    at(2).unwrap();
    for i in [3, -1] {
        let error = at(i).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Bounds);
        let text = format!("index {i} is outside dim 0 of buffer 'A', which has 3");
        assert!(error.message.contains(&text), "{error}");
    }
    let error = run(&module, "f", &[zeros(&[3, 2], DType::Int32), Value::Int(0)], &NoPacked);
    let error = error.unwrap_err();
    assert!(error.message.contains("f: 'A' must be a float32 tensor of 2 dims"), "{error}");
}

#[test]
fn predicates_skip_iterations_of_split_loops() {
    let text = r#"
@T.prim_func
def f(var_A: T.handle, var_B: T.handle):
    n = T.int64()
    A = T.match_buffer(var_A, (n,), "int64")
    B = T.match_buffer(var_B, (n,), "int64")
    for io, ii in T.grid((n + 3) // 4, 4):
        with T.block("B"):
            v = T.axis.spatial(n, io * 4 + ii)
            T.where(io * 4 + ii < n)
            B[v] = A[v] * A[v]
"#;
    for n in [0i64, 1, 4, 7] {
        let data: Vec<i64> = (0..n).collect();
        let out = run_loops(text, vec![i64s(&[n], &data), zeros(&[n], DType::Int64)]).unwrap();
        assert_eq!(flat(&out), data.iter().map(|v| (v * v) as f64).collect::<Vec<_>>());
    }
}

#[test]
fn vector_expressions_compute_lanes() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 2, 4)] + T.Broadcast(T.float32(1), 4)
    B[T.Ramp(7, -1, 4)] = T.Broadcast(A[3], 4)
"#;
    let a: Vec<f32> = (0..8).map(|v| v as f32).collect();
    let out = run_loops(text, vec![f32s(&[8], &a), zeros(&[8], DType::Float32)]).unwrap();
    assert_eq!(flat(&out), [1.0, 3.0, 5.0, 7.0, 3.0, 3.0, 3.0, 3.0]);
}

#[test]
fn statements_of_lowered_loop_functions_run() {
    let text = r#"
@T.prim_func
def f(var_A: T.handle):
    n = T.int64()
    A = T.match_buffer(var_A, (n,), "int64")
    s = T.alloc_buffer((1,), "int64", scope="local")
    s[0] = 0
    while s[0] < n:
        if s[0] % 2 == 0:
            A[s[0]] = s[0]
        else:
            A[s[0]] = -s[0]
        s[0] = s[0] + 1
    assert s[0] == n, "the end is reached"
    for i in T.unroll(2):
        with T.LetStmt(A[0] + i) as x:
            A[0] = x
"#;
    let out = run_loops(text, vec![zeros(&[5], DType::Int64)]).unwrap();
    assert_eq!(flat(&out), [1.0, -1.0, 2.0, -3.0, 4.0]);
}

#[test]
fn failing_assertions_and_exceeded_budgets_are_errors() {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func
    def f(var_A: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "int64")
        assert n > 2, "more than two are needed"
        A[0] = 1

    @T.prim_func
    def forever(A: T.Buffer((1,), "int64")):
        while A[0] == 0:
            A[0] = 0

    @T.prim_func
    def divide(A: T.Buffer((1,), "int64")):
        A[0] = 1 // A[0]
"#;
    let module = module(text);
    let error = run(&module, "f", &[zeros(&[2], DType::Int64)], &NoPacked).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Check, "f: more than two are needed")
    );
    let short = Options { max_steps: 10_000, ..Options::default() };
    let error = run_with(&module, "forever", &[zeros(&[1], DType::Int64)], &NoPacked, &short);
    assert_eq!(error.unwrap_err().kind, ErrorKind::Budget);
    let error = run(&module, "divide", &[zeros(&[1], DType::Int64)], &NoPacked).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DivideByZero);
}

#[test]
fn new_memory_is_filled_with_a_pattern() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((1,), "float32")):
    s = T.alloc_buffer((1,), "float32")
    A[0] = s[0]
"#;
    let out = run_loops(text, vec![zeros(&[1], DType::Float32)]).unwrap();
    assert!(flat(&out)[0].is_nan());
}

#[test]
fn kernels_and_extern_functions_are_called() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32"), C: T.Buffer((2, 2), "float32")):
    T.evaluate(T.call_kernel("matmul", x=T.view(A, [1, 2, 3], strides=[6, 3, 1]), weight=T.view(B, [1, 3, 2], strides=[6, 2, 1]), out=T.view(C, [1, 2, 2], strides=[4, 2, 1])))
    C[0, 0] = C[0, 0] + T.call_extern("float32", "pliant_exp_f32", T.float32(0))
"#;
    let a = f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = f32s(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let c = run_loops(text, vec![a, b, zeros(&[2, 2], DType::Float32)]).unwrap();
    assert_eq!(flat(&c), [5.0, 5.0, 10.0, 11.0]);
}

#[test]
fn the_transpose_kernel_takes_views_of_any_rank() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32")):
    T.evaluate(T.call_kernel("transpose", x=T.view(A, [3, 2], strides=[1, 3]), out=B))
"#;
    let a = f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let args = [a, zeros(&[3, 2], DType::Float32)];
    assert_eq!(flat(&run_loops(text, args.to_vec()).unwrap()), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let options = Options { max_steps: 5, ..Options::default() };
    let error = run_with(&module(text), "f", &args, &NoPacked, &options).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget, "{error}");
}

#[test]
fn empty_operands_of_kernels_may_have_dims_whose_product_overflows() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((0,), "float32"), W: T.Buffer((0, 0, 16), "int8"), S: T.Buffer((0, 0, 16), "float32"), B: T.Buffer((0,), "float32")):
    T.evaluate(T.call_kernel("matmul_int8_weight", x=T.view(A, [1 << 40, 1 << 40, 0], strides=[0, 0, 1]), weight=W, scales=S, out=T.view(B, [1 << 40, 1 << 40, 0], strides=[0, 0, 1]), group=2))
"#
    .replace("1 << 40", "1099511627776");
    let empty = || zeros(&[0], DType::Float32);
    let panels = |dtype| zeros(&[0, 0, 16], dtype);
    let args = vec![empty(), panels(DType::Int8), panels(DType::Float32), empty()];
    run_loops(&text, args).unwrap();
}

#[test]
fn operands_of_kernels_have_at_most_8_dims() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((1, 1, 1, 1, 1, 1, 1, 1, 1), "float32"), B: T.Buffer((1,), "float32")):
    T.evaluate(T.call_kernel("transpose", x=A, out=B))
"#;
    let (a, b) = (zeros(&[1; 9], DType::Float32), zeros(&[1], DType::Float32));
    let error = run_loops(text, vec![a, b]).unwrap_err();
    assert!(error.message.contains("operand 'x' has more than 8 dims"), "{error}");
}

/// Convolves `image` (4 x 5, padding 1) with one 3 x 3 filter. `kernel` is the filter, transformed for the Winograd tile `tile`.
/// `width` is the number of output channels that the kernel `conv` reads together (a panel of the packed filter); all but one are
/// zero.
fn convolved(
    image: &Value,
    kernel: &[f32],
    tile: &str,
    width: usize,
) -> Result<Value, pliant_interp::InterpError> {
    let numbers = kernel.len() * width;
    let panel: Vec<f32> =
        (0..numbers).map(|i| if i % width == 0 { kernel[i / width] } else { 0.0 }).collect();
    let text = format!(
        r#"
@T.prim_func
def f(A: T.Buffer((4, 5), "float32"), B: T.Buffer(({numbers},), "float32"), C: T.Buffer((4, 5), "float32")):
    T.evaluate(T.call_kernel("conv", x=T.view(A, [1, 1, 1, 4, 5], strides=[20, 20, 20, 5, 1]), weight=B, out=T.view(C, [1, 1, 1, 4, 5], strides=[20, 20, 20, 5, 1]), kernel_shape=[1, 3, 3], padding=[0, 1, 1], panel_width={width}, winograd="{tile}"))
"#
    );
    run_loops(
        &text,
        vec![image.clone(), f32s(&[numbers as i64], &panel), zeros(&[4, 5], DType::Float32)],
    )
}

#[test]
fn kernels_read_filters_transformed_for_winograd() {
    let kernel = [3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0, -7.0];
    let image: Vec<f32> = (0..20).map(|i| (i * 7 % 11) as f32).collect();
    let image = f32s(&[4, 5], &image);
    let want = flat(&convolved(&image, &kernel.map(|x| x as f32), "none", 16).unwrap());
    for (form, name) in [(Winograd::Two, "2x2"), (Winograd::Four, "4x4")] {
        let transformed: Vec<f32> =
            form.transform_filter(&kernel).into_iter().map(|x| x as f32).collect();
        let got = flat(&convolved(&image, &transformed, name, 16).unwrap());
        for (x, y) in got.iter().zip(&want) {
            assert!((x - y).abs() < 1e-3, "{form:?}: {got:?} {want:?}");
        }
    }
    let error = convolved(&image, &[0.0; 25], "2x2", 16).unwrap_err();
    assert!(error.message.contains("weights is 400, expected 256"), "{error}");
    // The kernel takes panels of whole vectors.
    for width in [1, 8, 24] {
        let error = convolved(&image, &[0.0; 9], "none", width).unwrap_err();
        assert!(error.message.contains("attribute 'panel_width' is"), "{error}");
    }
}

#[test]
fn intrinsics_round_to_their_type() {
    let text = r#"
@T.prim_func
def f(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
    for i in T.vectorized(3):
        B[i] = T.exp(A[i]) + T.erf(A[i]) * T.rsqrt(A[i])
"#;
    let a = [0.5f32, 1.0, 2.0];
    let out = run_loops(text, vec![f32s(&[3], &a), zeros(&[3], DType::Float32)]).unwrap();
    for (x, y) in a.iter().zip(flat(&out)) {
        let x = f64::from(*x);
        let want = x.exp() + libm::erf(x) / x.sqrt();
        assert!((y - want).abs() < 1e-6 * want.abs(), "{x}: {y} {want}");
        assert_eq!(y, f64::from(y as f32));
    }
}
