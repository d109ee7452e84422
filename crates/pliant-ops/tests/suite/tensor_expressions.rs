//! Tests of tensor expressions: constant folding, deep chains, and the structure of the created loop functions.

use pliant_ir::tir::{self, BlockData, IterKind, PrimFunc, Stmt, StmtData, VarTy};
use pliant_ops::te::{self, Arg, Expr, Tensor};
use pliant_sym::SymArena;
use pliant_tensor::DType::{self, Float32, Int64};

/// All blocks of the function, outermost first.
fn blocks(f: &PrimFunc) -> Vec<&BlockData> {
    fn walk<'f>(f: &'f PrimFunc, s: Stmt, out: &mut Vec<&'f BlockData>) {
        match f.stmt(s) {
            StmtData::Seq(list) => list.iter().for_each(|&s| walk(f, s, out)),
            StmtData::For { body, .. } => walk(f, *body, out),
            StmtData::Block(b) => {
                out.push(b);
                walk(f, b.body, out);
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    walk(f, f.body, &mut out);
    out
}

fn param_names(f: &PrimFunc) -> Vec<&str> {
    f.params.iter().map(|&p| &*f.var(p).name).collect()
}

fn tensor(shape: &[&Expr], dtype: DType, name: &str) -> Tensor {
    te::placeholder(shape.iter().map(|&e| e.clone()).collect(), dtype, name)
}

fn matmul(a: &Tensor, b: &Tensor) -> Tensor {
    let k = te::reduce_axis(a.shape()[1].clone(), "k");
    te::compute(vec![a.shape()[0].clone(), b.shape()[1].clone()], "C", |i| {
        let kv = k.var.expr();
        te::sum(
            &(a.at(&[i[0].clone(), kv.clone()]) * b.at(&[kv, i[1].clone()])),
            std::slice::from_ref(&k),
        )
    })
}

#[test]
fn matmul_lowers_to_one_reduction_block() {
    let (n, m, k) = (te::var("n").expr(), te::var("m").expr(), te::int(16));
    let (a, b) = (tensor(&[&n, &k], Float32, "A"), tensor(&[&k, &m], Float32, "B"));
    let c = matmul(&a, &b);
    let f = te::create_prim_func(&[a.into(), b.into(), c.into()]).unwrap();
    assert_eq!(param_names(&f), ["var_A", "var_B", "var_C"]);
    assert!(f.params.iter().all(|&p| f.var(p).ty == VarTy::Handle));
    let buffer = f.buffer(f.buffer_map[2]);
    let dims: Vec<String> = buffer
        .shape
        .iter()
        .map(|&d| match f.expr(d) {
            tir::ExprData::Var(v) => f.var(*v).name.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(dims, ["n", "m"]);

    let blocks = blocks(&f);
    assert_eq!(blocks.len(), 1);
    let block = blocks[0];
    let kinds: Vec<IterKind> = block.iters.iter().map(|i| i.kind).collect();
    assert_eq!(kinds, [IterKind::Spatial, IterKind::Spatial, IterKind::Reduce]);
    assert_eq!(&*f.var(block.iters[2].var).name, "v_k");
    assert_eq!(f.as_int(block.iters[2].extent), Some(16));
    assert_eq!(block.reads.as_ref().unwrap().len(), 2);
    assert_eq!(block.writes.as_ref().unwrap()[0].buffer, f.buffer_map[2]);
    let StmtData::Store { value, .. } = f.stmt(block.init.unwrap()) else { panic!("init stores") };
    assert_eq!(*f.expr(*value), tir::ExprData::Float(0f64.to_bits(), Float32.into()));
    let StmtData::Store { value, buffer, indices } = f.stmt(block.body) else {
        panic!("body stores")
    };
    let tir::ExprData::Binary(te::BinOp::Add, acc, _) = *f.expr(*value) else { panic!("a sum") };
    assert_eq!(*f.expr(acc), tir::ExprData::Load(*buffer, indices.clone()));
}

#[test]
fn sizes_not_defined_by_a_dim_become_parameters() {
    let (n, m) = (te::var("n").expr(), te::var("m"));
    let even = te::floordiv(&m.expr(), &te::int(2)) * 2;
    let a = tensor(&[&n, &even], Float32, "A");
    let b = te::compute(a.shape().to_vec(), "B", |i| a.at(i) + te::int(1));
    let created = te::create_prim_func_with_vars(&[a.into(), b.into()]).unwrap();
    assert_eq!(created.size_params, [m]);
    assert_eq!(param_names(&created.func), ["var_A", "var_B", "m"]);
    assert_eq!(created.func.var(created.func.params[2]).ty, VarTy::Value(te::Ty::I64));
}

#[test]
fn intermediate_stages_are_allocated_in_the_root_block_unless_inlined() {
    let n = te::var("n").expr();
    let a = tensor(&[&n], Float32, "A");
    let b = te::compute(vec![n.clone()], "B", |i| a.at(i) * te::int(2));
    let c = te::compute(vec![n], "C", |i| te::exp(&b.at(i)));
    let f = te::create_prim_func(&[(&a).into(), (&c).into()]).unwrap();
    let names: Vec<&str> = blocks(&f).iter().map(|b| &*b.name).collect();
    assert_eq!(names, ["root", "B", "C"]);
    assert_eq!(blocks(&f)[0].allocs.len(), 1);

    let inlined = te::inline_injective(&[c]).remove(0);
    let f = te::create_prim_func(&[a.into(), (&inlined).into()]).unwrap();
    let names: Vec<&str> = blocks(&f).iter().map(|b| &*b.name).collect();
    assert_eq!(names, ["C"]);
    assert_eq!(inlined.as_compute().unwrap().body.to_string(), "T.exp(A[ax0] * T.float32(2.0))");
}

#[test]
fn invalid_stages_are_rejected() {
    let n = te::var("n").expr();
    let a = tensor(&[&n], Float32, "A");
    let k = te::reduce_axis(n.clone(), "k");
    let fails = |args: &[Arg]| te::create_prim_func(args).unwrap_err().to_string();
    let c = te::compute(vec![], "C", |_| {
        te::sum(&a.at(&[k.var.expr()]), std::slice::from_ref(&k)) + te::int(1)
    });
    assert!(fails(&[(&a).into(), c.into()]).contains("stage of its own"));
    let d = te::compute(vec![n.clone()], "D", |i| a.at(&[i[0].clone(), i[0].clone()]));
    assert!(
        fails(&[(&a).into(), (&d).into()]).contains("A has 1 dims, but D reads it with 2 indices")
    );
    let e = te::compute(vec![n], "E", |i| a.at(i));
    assert!(
        fails(&[(&e).into()])
            .contains("the placeholder 'A' is read, but is not among the arguments")
    );
    assert!(fails(&[(&a).into(), (&e).into(), (&e).into()]).contains("twice"));
    assert!(a.try_at(&[]).is_err());
}

#[test]
fn deep_chains_do_not_overflow_the_stack() {
    let n = te::var("n").expr();
    let a = tensor(&[&n], Float32, "A");
    let b = te::compute(vec![n.clone()], "B", |i| {
        let mut e = a.at(i);
        for _ in 0..200_000 {
            e = e + te::float(1.0);
        }
        e
    });
    let f = te::create_prim_func(&[(&a).into(), b.into()]).unwrap();
    assert!(f.num_exprs() > 200_000);
    let mut t = a.clone();
    for _ in 0..50_000 {
        let last = t.clone();
        t = te::compute(vec![n.clone()], "T", |i| last.at(i) + te::float(1.0));
    }
    let f = te::create_prim_func(&[a.into(), t.into()]).unwrap();
    assert_eq!(blocks(&f).len(), 50_001);
}

#[test]
fn integer_constants_fold_and_types_are_promoted() {
    let n = te::var("n").expr();
    assert_eq!((&n * te::int(0) + 3 * 4).to_string(), "12");
    assert_eq!((te::int(7) - te::int(2)).as_int(), Some(5));
    for (x, y) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, -2)] {
        let (x_e, y_e) = (te::int(x), te::int(y));
        let (q, r) = (
            te::floordiv(&x_e, &y_e).as_int().unwrap(),
            te::floormod(&x_e, &y_e).as_int().unwrap(),
        );
        assert_eq!(q, (x as f64 / y as f64).floor() as i64);
        assert_eq!(q * y + r, x);
    }
    assert!(te::floordiv(&n, &te::int(0)).as_int().is_none());
    assert!((te::int(i64::MAX) + te::int(1)).as_int().is_none());
    let half = te::Var::new("h", DType::Float16).expr();
    assert_eq!((&half + te::float(1.0)).ty().dtype, DType::Float16);
    assert_eq!((&half + &te::Var::new("f", Float32).expr()).ty().dtype, Float32);
    assert_eq!((&half + &n).ty().dtype, DType::Float16);
    assert_eq!(te::lt(&n, &te::int(1)).ty(), te::Ty::BOOL);
    assert_eq!(te::max_value(DType::Int8).as_int(), Some(127));
    assert_eq!(te::min_value(Int64).as_int(), Some(i64::MIN));
    assert_eq!(te::max_value(DType::UInt8).as_int(), Some(255));
}

/// An integer wrapped to the range of this type.
fn wrapped(v: i64, dtype: DType) -> i64 {
    match dtype {
        DType::Bool => (v != 0).into(),
        DType::Int8 => (v as i8).into(),
        DType::UInt8 => (v as u8).into(),
        _ => v,
    }
}

#[test]
fn folded_8_bit_operators_match_run_time_arithmetic() {
    use tir::BinOp::*;
    let arithmetic = [Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max];
    let predicates = [Eq, Ne, Lt, Le, Gt, Ge];
    let apply = |op, a: i64, b: i64| {
        let floor = |a: i64, b: i64| (a as f64 / b as f64).floor() as i64;
        match op {
            Add => a + b,
            Sub => a - b,
            Mul => a * b,
            Div => a / b,
            Mod => a % b,
            FloorDiv => floor(a, b),
            FloorMod => a - b * floor(a, b),
            Min => a.min(b),
            Max => a.max(b),
            Eq => (a == b).into(),
            Ne => (a != b).into(),
            Lt => (a < b).into(),
            Le => (a <= b).into(),
            Gt => (a > b).into(),
            _ => i64::from(a >= b),
        }
    };
    for dtype in [DType::Int8, DType::UInt8] {
        let (low, high) = dtype.int_range();
        for (x, y) in (low..=high).flat_map(|x| (low..=high).map(move |y| (x, y))) {
            let (a, b) = (te::int_of(x, dtype), te::int_of(y, dtype));
            for op in arithmetic.into_iter().chain(predicates) {
                if y == 0 && matches!(op, Div | Mod | FloorDiv | FloorMod) {
                    continue;
                }
                let result_dtype = if op.is_predicate() { DType::Bool } else { dtype };
                let e = te::binary(op, &a, &b);
                assert_eq!(e.ty(), result_dtype.into());
                if let Some(v) = e.as_int() {
                    assert_eq!(
                        v,
                        wrapped(apply(op, x, y), result_dtype),
                        "{x} {op:?} {y} of {dtype}"
                    );
                }
            }
        }
    }
}

#[test]
fn folded_casts_match_run_time_casts() {
    let types = || DType::all().filter(|d| !matches!(d, DType::UInt64));
    for (from, to) in types().flat_map(|a| types().map(move |b| (a, b))) {
        let (low, high) = from.int_range();
        for v in (-300..300).filter(|v| !from.is_float() && (low..=high).contains(v)) {
            let e = te::cast(&te::int_of(v, from), to);
            assert_eq!(e.ty(), to.into());
            match *e.kind() {
                te::ExprKind::Int(w) if to.size() == 1 => assert_eq!(w, wrapped(v, to)),
                te::ExprKind::Int(w) if to.is_bool() => assert_eq!(w, i64::from(v != 0)),
                te::ExprKind::Int(w) => assert_eq!(w, v, "{v} of {from} to {to}"),
                te::ExprKind::Float(w) => assert_eq!(w, v as f64, "{v} of {from} to {to}"),
                _ => {
                    assert!(!to.has_int(v) || from.is_bool(), "{v} of {from} to {to} is not folded")
                }
            }
        }
    }
    // A constant is rounded to its type.
    let wide = |v: f64, from: DType| te::cast(&te::const_of(v, from), DType::Float64);
    let value = |e: Expr| match *e.kind() {
        te::ExprKind::Float(v) => v,
        _ => panic!("it is folded"),
    };
    assert_eq!(value(wide(0.1, DType::Float32)), f64::from(0.1f32));
    assert_eq!(value(wide(0.1, DType::Float16)), 0.0999755859375);
    assert_eq!(value(wide(0.1, DType::BFloat16)), 0.10009765625);
    assert_eq!(value(wide(0.1, DType::Float64)), 0.1);
}

#[test]
fn sizes_round_trip_through_symbolic_integers() {
    let (n, m) = (te::var("n"), te::var("m"));
    let e = te::floordiv(&(n.expr() * 2 + m.expr() - te::int(1)), &te::int(4))
        + te::maximum(&n.expr(), &te::int(3));
    let (mut arena, mut vars) = (SymArena::new(), te::VarMap::new());
    let sym = te::to_sym(&mut arena, &e, &mut vars).unwrap();
    let back = te::from_sym(&arena, sym, &mut vars);
    assert_eq!(te::to_sym(&mut arena, &back, &mut vars), Some(sym));
    let used = te::free_vars(&back);
    assert!(used.contains(&n) && used.contains(&m) && used.len() == 2);
    assert!(te::to_sym(&mut arena, &te::float(1.0), &mut vars).is_none());
    assert_eq!(te::simplify(&(n.expr() + n.expr() - n.expr() * 2)).as_int(), Some(0));
}

/// Squares an expression `levels` times. Both factors of each product are the same node.
fn squared(e: Expr, levels: u32) -> Expr {
    (0..levels).fold(e, |e, _| &e * &e)
}

#[test]
fn shared_subexpressions_take_no_exponential_time() {
    let n = te::var("n");
    let a = tensor(&[&n.expr()], Float32, "A");
    let stage = |levels| te::compute(vec![n.expr()], "B", |i| squared(a.at(i), levels));
    let created = |t: &Tensor| te::create_prim_func(&[(&a).into(), t.into()]);
    assert!(created(&stage(12)).is_ok());
    let b = stage(60);
    let message = created(&b).unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "the value of stage 'B' has {} terms when written out as a tree, but at most 100000 are allowed: make the shared part a te.compute \
             stage of its own",
            3 * (1u64 << 60) - 1
        )
    );
    assert_eq!(te::tree_size(&squared(n.expr(), 80)), u64::MAX);

    let body = &b.as_compute().unwrap().body;
    let text = body.to_string();
    assert!(text.len() < 100_000 && text.contains("..."), "{}", text.len());
    assert_eq!(te::tensors_read(body).len(), 1);
    let m = te::var("m").expr();
    let moved = te::substitute(&squared(n.expr(), 60), &[(n.clone(), m)].into_iter().collect());
    assert_eq!(te::free_vars(&moved).len(), 1);
    let (mut arena, mut vars) = (SymArena::new(), te::VarMap::new());
    let sym = te::to_sym(&mut arena, &moved, &mut vars).unwrap();
    te::from_sym(&arena, sym, &mut vars);

    let wide = te::placeholder(vec![moved], Float32, "W");
    let message = te::create_prim_func(&[wide.into()]).unwrap_err().to_string();
    assert!(message.starts_with("a dim of tensor 'W' has"), "{message}");

    let k = te::reduce_axis(n.expr(), "k");
    let reducer = te::comm_reducer(te::float(0.0), |x, y| x + &squared(y.clone(), 40));
    let c = te::compute(vec![], "C", |_| {
        te::reduce(reducer, &a.at(&[k.var.expr()]), std::slice::from_ref(&k), None)
    });
    assert!(created(&c).unwrap_err().to_string().starts_with("the value of stage 'C' has"));
}

#[test]
fn inlining_stops_at_the_size_limit() {
    let n = te::var("n").expr();
    let a = tensor(&[&n], Float32, "A");
    let mut t = a.clone();
    for _ in 0..60 {
        let last = t.clone();
        t = te::compute(vec![n.clone()], "T", |i| last.at(i) * last.at(i));
    }
    let inlined = te::inline_injective(&[t]).remove(0);
    let f = te::create_prim_func(&[(&a).into(), inlined.into()]).unwrap();
    let stages = blocks(&f).len();
    assert!((3..30).contains(&stages), "{stages}");

    // A stage that exceeds the inlining limit by itself inlines nothing and stays within the limit of a stage.
    let b = te::compute(vec![n.clone()], "B", |i| squared(a.at(i), 8));
    let c = te::compute(vec![n], "C", |i| squared(b.at(i), 12));
    let inlined = te::inline_injective(&[c]).remove(0);
    let f = te::create_prim_func(&[(&a).into(), inlined.into()]).unwrap();
    assert_eq!(blocks(&f).len(), 3);
}

#[test]
fn statement_stages_lower_to_one_block() {
    let n = te::var("n");
    let x = te::placeholder(vec![n.expr()], DType::Float32, "x");
    let shape = vec![n.expr()];
    let outputs = [(shape.clone(), DType::Float32), (shape, DType::Int64)];
    let created = te::extern_("scan", &outputs, |b, out| {
        let total = b.cell("total", &te::float(0.0));
        b.for_("i", &n.expr(), |b, i| {
            let i = std::slice::from_ref(i);
            b.assert(&te::ge(&x.at(i), &te::float(0.0)), "negative");
            b.set(&total, &(total.get() + x.at(i)));
            b.store(&out[0], i, &total.get());
            b.store(&out[1], i, &i[0]);
        });
    });
    assert_eq!(created[0].inputs(), std::slice::from_ref(&x));
    let f =
        te::create_prim_func(&[(&x).into(), (&created[0]).into(), (&created[1]).into()]).unwrap();
    assert!(pliant_ir::tir::verify::verify_prim_func(&f).is_empty());
    // An output that is not an argument is allocated in the function.
    let f = te::create_prim_func(&[(&x).into(), (&created[1]).into()]).unwrap();
    assert!(pliant_ir::tir::verify::verify_prim_func(&f).is_empty());
    // A stage made of statements may read a computed stage, and vice versa.
    let twice = te::compute(vec![n.expr()], "twice", |i| created[0].at(i) * 2);
    let f = te::create_prim_func(&[(&x).into(), (&twice).into()]).unwrap();
    assert!(pliant_ir::tir::verify::verify_prim_func(&f).is_empty());
    assert_eq!(te::placeholders_of(std::slice::from_ref(&twice)), [x]);
}

#[test]
fn statement_stages_reject_stores_to_other_buffers() {
    let x = te::placeholder(vec![te::int(3)], DType::Float32, "x");
    let write = |to: te::Tensor, at: Vec<te::Expr>| {
        let created = te::extern_("f", &[(vec![te::int(3)], DType::Float32)], |b, _| {
            b.store(&to, &at, &te::float(0.0));
        });
        te::create_prim_func(&[(&x).into(), (&created[0]).into()]).unwrap_err().0
    };
    assert!(write(x.clone(), vec![te::int(0)]).contains("not one of its own buffers"));
    let created = te::extern_("f", &[(vec![te::int(3)], DType::Float32)], |b, out| {
        b.store(&out[0], &[], &te::float(0.0));
    });
    let error = te::create_prim_func(&[(&created[0]).into()]).unwrap_err().0;
    assert!(error.contains("stores to it with 0 indices"), "{error}");
    let k = te::reduce_axis(te::int(3), "k");
    let created = te::extern_("f", &[(vec![te::int(3)], DType::Float32)], |b, out| {
        let sum = te::sum(&x.at(&[k.var.expr()]), std::slice::from_ref(&k));
        b.store(&out[0], &[te::int(0)], &sum);
    });
    let error = te::create_prim_func(&[(&x).into(), (&created[0]).into()]).unwrap_err().0;
    assert!(error.contains("must not contain reductions"), "{error}");
}
