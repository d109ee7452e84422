//! Tests of lowering: loop functions of all operators are well-formed, unproved conditions are
//! checked at run time, equal functions are stored once, and a user-defined operator only needs a
//! tensor expression.

use crate::op_call_text::{Calls, attrs};
use pliant_ir::op::{OperandKind, op_id};
use pliant_ir::print::{PrintOptions, print_module, print_prim_func, type_text};
use pliant_ir::relax::{Expr, FunctionBuilder, TypeData};
use pliant_ir::tir::verify::verify_prim_func;
use pliant_ir::{Attrs, DType, OpRegistry};
use pliant_ops::{
    LegalizeError, Legalized, ModuleBuilder, TeArg, TirCall, UserOpSpec, legalize_call,
    register_user_op, registry, te,
};

/// Lowers a call of an operator, and returns the loop function.
fn tir(
    op: &str,
    args: &[&str],
    attr_text: &str,
) -> (Calls, Result<Option<Legalized>, LegalizeError>) {
    let mut calls = Calls::new();
    let call = calls.call(op, args, &attrs(attr_text)).unwrap_or_else(|e| panic!("{op}: {e}"));
    let legal = legalize_call(calls.func(), call);
    (calls, legal)
}

fn tir_of(op: &str, args: &[&str], attr_text: &str) -> TirCall {
    match tir(op, args, attr_text).1 {
        Ok(Some(Legalized::Tir(call))) => call,
        other => panic!("{op}: {other:?}"),
    }
}

fn text(op: &str, args: &[&str], attr_text: &str) -> String {
    print_prim_func("f", &tir_of(op, args, attr_text).func, &PrintOptions::default())
}

#[test]
fn loop_functions_of_all_operators_verify() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["float32(n, 1, 4)", "float32(m, 4)"],
            "add subtract multiply divide floor_divide mod floor_mod power maximum minimum",
        ),
        (
            &["int64(n, 4)", "int64(4)"],
            "add subtract multiply divide floor_divide mod floor_mod power maximum minimum",
        ),
        (
            &["float16(n)", "float16(m)"],
            "equal not_equal less less_equal greater greater_equal logical_and logical_or",
        ),
        (
            &["float32(n, 4)"],
            "abs negative square sign floor ceil trunc round exp log sqrt rsqrt sin cos tanh erf sigmoid nn.relu nn.gelu nn.gelu_tanh nn.silu logical_not",
        ),
        (
            &["float16(n, 4)"],
            "sum prod max min mean variance std argmax argmin nn.softmax nn.log_softmax nn.gelu",
        ),
        (&["int32()"], "abs negative square sign floor nn.relu sum max argmax size"),
        (
            &["float32(n, m)"],
            "zeros_like ones_like tril triu permute_dims nn.softmax nn.log_softmax mean variance",
        ),
        (&["float32(n, k)", "float32(k, m)"], "matmul"),
        (&["float16(b, n, k)", "float16(k)"], "matmul"),
        (&["float32(n)", "float32(m)"], "outer"),
        (&["shape(n, 4)"], "zeros ones shape_to_tensor"),
        (&["shape(n, m)", "float32()"], "full"),
        (&["int(n)"], "arange"),
    ];
    for (args, ops) in cases {
        for op in ops.split(' ') {
            verified(op, args, "");
        }
    }
    let with_attrs: &[(&str, &[&str], &str)] = &[
        ("astype", &["float32(n)"], "dtype=bool"),
        ("take", &["float32(n, 4)", "int32(b, s)"], "axis=0"),
        ("take", &["float32(n, 4)", "int32()"], "axis=1;mode=wrap"),
        ("take", &["float32(n)", "int64(b)"], "mode=clip"),
        (
            "strided_slice",
            &[
                "float32(n, 9)",
                "<int(0); int(1)>",
                "<int(1); int(-1)>",
                "<int(m); int(-9)>",
                "<int(2); int(-2)>",
            ],
            "",
        ),
        ("where", &["bool(n, 1)", "float32(m)", "float32()"], ""),
        ("concat", &["<float32(n, 4); float32(m, 4); float32(2, 4)>"], "axis=0"),
        ("split", &["float32(n, 4)"], "indices_or_sections=2;axis=0"),
        ("split", &["float32(n)"], "indices_or_sections=[1, 3]"),
        ("repeat", &["float32(n, m)"], "repeats=2"),
        ("repeat", &["float32(n, m)"], "repeats=2;axis=0"),
        ("tile", &["float32(n, m)"], "repeats=[2, 1, 3]"),
        ("broadcast_to", &["float32(n, 1)", "shape(2, n, m)"], ""),
        ("full_like", &["float32(n)", "int32()"], ""),
        ("linear", &["float32(b, n, 16)", "float32(m, 16)", "float32(m)"], ""),
        ("nn.layer_norm", &["float32(n, s, 8)", "float32(8)", "float32(8)"], "axes=[-1]"),
        ("nn.rms_norm", &["float16(n, 8)", "float16(8)"], "axes=[1];epsilon=1e-6"),
        ("sum", &["float32(n, m, 3)"], "axis=[0, 2];keepdims=true"),
        ("argmin", &["float32(n, m)"], "axis=1;keepdims=true"),
    ];
    for (op, args, attr_text) in with_attrs {
        verified(op, args, attr_text);
    }
}

fn verified(op: &str, args: &[&str], attr_text: &str) {
    let call = tir_of(op, args, attr_text);
    let violations = verify_prim_func(&call.func);
    let text = print_prim_func("f", &call.func, &PrintOptions::default());
    assert!(violations.is_empty(), "{op}({args:?}): {violations:?}\n{text}");
    let handles = call.func.buffer_map.len();
    assert_eq!(handles, call.inputs.len() + call.out_tys.len(), "{op}");
    assert_eq!(call.func.params.len(), handles + call.tir_vars.len(), "{op}");
}

#[test]
fn batched_matmul_lowers_to_one_reduction_block() {
    let text = text("matmul", &["float32(b, n, k)", "float32(b, k, m)"], "");
    assert!(
        text.contains("for b0, i, j, k_1 in T.grid(b, n, m, k):")
            || text.contains("T.grid(b, n, m, k)"),
        "{text}"
    );
    assert!(text.contains(r#"T.axis.remap("SSSR""#), "{text}");
    assert!(!text.contains("alloc_buffer"), "{text}");
}

#[test]
fn unproved_size_conditions_are_checked_at_run_time() {
    let add = text("add", &["float32(n)", "float32(m)"], "");
    assert!(add.contains("assert (n == 1 or n == n_m) and (m == 1 or m == n_m), "), "{add}");
    assert!(add.contains("A[T.Select(n == 1, 0, v_ax0)] + B[T.Select(m == 1, 0, v_ax0)]"), "{add}");
    assert!(!text("add", &["float32(n)", "float32(n)"], "").contains("assert"));
    let add = text("add", &["float32(n)", "float32(m + 2)"], "");
    assert!(add.contains("assert n == 1 or n == m + 2"), "{add}");
    // The second operand keeps its symbol in the signature, and is read with the symbol of the first one.
    let product = text("matmul", &["float32(n, k)", "float32(j, m)"], "");
    let message = "\"ShapeError: relax.matmul: dim 0 of x2, j = {0}, must be k = {1}\"";
    assert!(product.contains(&format!("assert T.explain(j == k, j, k), {message}")), "{product}");
    assert!(!text("split", &["float32(n)"], "indices_or_sections=2").contains("assert"));
    let take = text("take", &["float32(n, 4)", "int64(b)"], "axis=0");
    let message = "relax.take: index {0} is out of range for axis 0 of size {1}";
    assert!(take.contains(message), "{take}");
}

#[test]
fn sizes_not_defined_by_an_operand_become_tir_vars() {
    let call = tir_of("arange", &["int(n * 2)"], "");
    assert_eq!((call.inputs.len(), call.tir_vars.len()), (0, 1));
    let call = tir_of("shape_to_tensor", &["shape(n, m)"], "");
    assert_eq!(call.tir_vars.len(), 2);
    // The dims of the output define the variables that occur only there.
    assert_eq!(tir_of("zeros", &["shape(n, m)"], "").tir_vars.len(), 0);
}

#[test]
fn rank_0_constants_are_inlined_into_the_expression() {
    let mut calls = Calls::new();
    let x = calls.arg("float32(n)");
    let two = calls.func().constant(pliant_tensor::Tensor::scalar(2f32).unwrap());
    let op = registry().lookup("relax.multiply").unwrap();
    let call = calls.builder.call_op(op, &[x, two], Attrs::default(), &[]).unwrap();
    let Ok(Some(Legalized::Tir(call))) = legalize_call(calls.func(), call) else {
        panic!("a loop function")
    };
    assert_eq!(call.inputs, [x]);
    assert!(print_prim_func("f", &call.func, &PrintOptions::default()).contains("* T.float32(2"));
}

#[test]
fn reshapes_lower_to_views() {
    let (mut calls, legal) = tir("flatten", &["float32(n, 4)"], "");
    let Ok(Some(Legalized::Reshape { shape, .. })) = legal else { panic!("{legal:?}") };
    let ty = calls.func().expr_ty(shape);
    assert_eq!(type_text(calls.func(), ty), "R.Shape([n * 4])");
    assert!(matches!(tir("reshape", &["float32(n, 4)", "shape(4, n)"], "").1, Ok(None)));
    assert!(matches!(
        tir("reshape", &["float32(n, 4)", "shape(-1)"], "").1,
        Ok(Some(Legalized::Reshape { .. }))
    ));
}

#[test]
fn packed_calls_pass_attributes_as_operands() {
    let (_, legal) = tir("unique", &["float32(n)"], "return_counts=true");
    let Ok(Some(Legalized::Packed { name, args })) = legal else { panic!("{legal:?}") };
    assert_eq!((name, args.len()), ("vm.builtin.unique", 6));
}

#[test]
fn unknown_shapes_are_reported_as_unknown() {
    let error = tir("exp", &["float32[2]"], "").1.unwrap_err();
    assert!(error.unknown && error.to_string().contains("R.match_cast"), "{error}");
    let error = tir("exp", &["?"], "").1.unwrap_err();
    assert!(error.message.contains("the shape of x must be known"), "{error}");
}

#[test]
fn equal_loop_functions_are_stored_once() {
    let mut mb = ModuleBuilder::new();
    let mut fb = FunctionBuilder::new(registry());
    let mut xs: Vec<Expr> = Vec::new();
    for name in ["n", "m"] {
        let v = fb.func_mut().fresh_sym(name);
        let dim = fb.func_mut().syms.var(v);
        let ty = fb.func_mut().intern(TypeData::tensor(vec![dim], DType::Float32));
        let x = fb.param("x", ty);
        xs.push(fb.func_mut().var_expr(x));
    }
    for _ in 0..3 {
        let out = mb.emit_te(&mut fb, "twice", &[xs[0]], |t| {
            Ok(vec![te::compute(t[0].shape().to_vec(), "T", |i| t[0].at(i) * te::int(2))])
        });
        xs[0] = fb.func_mut().var_expr(out.unwrap());
    }
    assert_eq!(mb.module().functions.len(), 1);
    let other = mb.emit_te(&mut fb, "twice", &[xs[1]], |t| {
        Ok(vec![te::compute(t[0].shape().to_vec(), "T", |i| t[0].at(i) * te::int(3))])
    });
    let other = fb.func_mut().var_expr(other.unwrap());
    let f = fb.finish(other, None, true);
    mb.add_func(f, "main");
    let module = mb.finish();
    assert_eq!(
        module.functions.keys().map(|k| &**k).collect::<Vec<_>>(),
        ["twice", "twice1", "main"]
    );
    let mut again = ModuleBuilder::from_module(module.clone());
    let text = print_module(&module, registry(), &PrintOptions::default());
    assert!(
        text.contains("R.call_tir(cls.twice, (lv,)")
            || text.contains("R.call_tir(cls.twice, (gv,)"),
        "{text}"
    );
    let twice = module.get("twice").unwrap().clone();
    assert_eq!(&*again.add_func(twice, "another"), "twice");
}

#[test]
fn emit_te_passes_undefined_sizes_as_tir_vars() {
    let mut mb = ModuleBuilder::new();
    let mut calls = Calls::new();
    let x = calls.arg("float32(n, m // 2 * 2)");
    let out = mb.emit_te(&mut calls.builder, "f", &[x], |t| {
        Ok(vec![te::compute(t[0].shape().to_vec(), "B", |i| t[0].at(i) + te::int(1))])
    });
    let out = calls.func().var_expr(out.unwrap());
    let f = calls.builder.finish(out, None, true);
    mb.add_func(f, "main");
    let text = print_module(mb.module(), registry(), &PrintOptions::default());
    assert!(text.contains("tir_vars=R.shape([m])"), "{text}");
    assert!(text.contains("m: T.int64)"), "{text}");
}

#[test]
fn user_operators_infer_their_type_from_the_tensor_expression() {
    let spec = UserOpSpec {
        name: "test.outer_add".into(),
        operands: vec!["a".into(), "b".into()],
        attrs: vec![("scale".into(), Some(pliant_ir::AttrValue::Int(1)))],
        te: Box::new(|args, attrs| {
            let [TeArg::Tensor(a), TeArg::Tensor(b)] = args else {
                return Err(te::TeError::new("two tensors are expected"));
            };
            let scale = attrs.get("scale").and_then(|v| v.as_int()).unwrap_or(1);
            let shape = vec![a.shape()[0].clone(), b.shape()[0].clone()];
            Ok(vec![te::compute(shape, "T", |i| (a.at(&i[..1]) + b.at(&i[1..])) * scale)])
        }),
    };
    let op = register_user_op(spec).unwrap();
    assert_eq!(op.name(), "relax.test.outer_add");
    assert!(registry().is_pure(op) && registry().user_ops().contains(&op.name()));
    let mut calls = Calls::new();
    let call =
        calls.call("test.outer_add", &["float32(n)", "float32(m + 1)"], &attrs("scale=3")).unwrap();
    let ty = calls.func().expr_ty(call);
    assert_eq!(type_text(calls.func(), ty), "R.Tensor((n, m + 1), dtype=\"float32\")");
    let Ok(Some(Legalized::Tir(call))) = legalize_call(calls.func(), call) else {
        panic!("a loop function")
    };
    assert_eq!((&*call.name, call.tir_vars.len()), ("outer_add", 1));
    assert!(verify_prim_func(&call.func).is_empty());
    let mut unknown = Calls::new();
    let call =
        unknown.call("test.outer_add", &["float32[1]", "float32(m)"], &Attrs::default()).unwrap();
    let ty = unknown.func().expr_ty(call);
    assert_eq!(type_text(unknown.func(), ty), "R.Tensor(dtype=\"float32\", ndim=2)");

    let clash = UserOpSpec {
        name: "add".into(),
        operands: vec![],
        attrs: vec![],
        te: Box::new(|_, _| Ok(Vec::new())),
    };
    assert!(
        register_user_op(clash)
            .unwrap_err()
            .message
            .contains("an operator of Pliant already has the name")
    );
}

#[test]
fn operator_declarations_are_consistent() {
    let mut names = std::collections::HashSet::new();
    for decl in registry().decls() {
        assert!(decl.name.starts_with("relax."), "{}", decl.name);
        assert!(names.insert(decl.name), "{} is declared twice", decl.name);
        assert!(decl.aliases.iter().all(|a| names.insert(a)), "{}", decl.name);
        assert!(decl.doc.ends_with('.'), "{}: its doc is a sentence", decl.name);
        let errors_end_with_dot = decl.errors.is_some_and(|text| text.ends_with('.'));
        assert!(!errors_end_with_dot, "{}: its errors are the end of a sentence", decl.name);
        let signature = decl.signature();
        let optional = signature.operands.iter().map(|o| o.optional);
        assert!(optional.is_sorted(), "{}: only trailing operands are optional", decl.name);
        for word in decl.operands.iter().filter_map(|o| o.split_once(": ")) {
            assert!(
                OperandKind::from_keyword(word.1).is_some(),
                "{}: operand {}: {}",
                decl.name,
                word.0,
                word.1
            );
        }
        // A call has such an attribute at the position of an operand that follows all others.
        let first = decl.attrs.first().map(|(name, _)| *name);
        assert!(decl.symbolic.is_none_or(|name| Some(name) == first), "{}", decl.name);
        let open = signature.operands.iter().any(|o| o.optional);
        assert!(decl.symbolic.is_none() || !open, "{}: symbols and optional operands", decl.name);
    }
}

#[test]
fn operator_ids_are_unique() {
    let decls = registry().decls();
    let names: Vec<&str> = decls.flat_map(|d| d.aliases.iter().chain([&d.name])).copied().collect();
    let ids: std::collections::BTreeSet<u64> = names.iter().map(|name| op_id(name)).collect();
    assert_eq!(ids.len(), names.len());
}
