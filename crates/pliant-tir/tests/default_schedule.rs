//! Tests the structure of lowered functions, not their values.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    BinOp, BlockData, Buffer, Expr, ExprData, ForKind, Intrin, IterKind, IterVar, PrimFunc, Stmt,
    StmtData,
};
use pliant_tensor::DType;
use pliant_tir::statement_traversal::{direct_exprs, for_each_stmt};

const F32: DType = DType::Float32;

/// Builds a loop nest over `axes` around a block with one store. `body` returns (buffer, indices, init value, stored value).
fn stage(
    f: &mut PrimFunc,
    axes: &[(Expr, IterKind)],
    body: impl FnOnce(&mut PrimFunc, &[Expr]) -> (Buffer, Vec<Expr>, Option<Expr>, Expr),
) -> Stmt {
    let zero = f.int(0);
    let loops: Vec<_> = axes.iter().map(|_| f.size_var("i")).collect();
    let vars: Vec<_> = axes.iter().map(|_| f.size_var("v")).collect();
    let exprs: Vec<_> = vars.iter().map(|&v| f.var_expr(v)).collect();
    let (buffer, indices, init, value) = body(f, &exprs);
    let iters = (0..axes.len())
        .map(|i| IterVar {
            var: vars[i],
            min: zero,
            extent: axes[i].0,
            kind: axes[i].1,
            binding: f.var_expr(loops[i]),
        })
        .collect();
    let block = BlockData {
        name: "stage".into(),
        iters,
        predicate: None,
        reads: None,
        writes: None,
        allocs: Vec::new(),
        init: init.map(|e| f.store(buffer, &indices, e)),
        body: f.store(buffer, &indices, value),
        annotations: Vec::new(),
    };
    let mut s = f.add_stmt(StmtData::Block(Box::new(block)));
    for i in (0..axes.len()).rev() {
        let (var, extent, kind) = (loops[i], axes[i].0, ForKind::Serial);
        s = f.add_stmt(StmtData::For {
            var,
            min: zero,
            extent,
            kind,
            body: s,
            annotations: Vec::new(),
        });
    }
    s
}

fn param(f: &mut PrimFunc, name: &str, shape: &[Expr]) -> Buffer {
    let b = f.compact_buffer(name, shape.to_vec(), F32);
    f.add_buffer_param(name, b);
    b
}

fn size(f: &mut PrimFunc, name: &str) -> Expr {
    let v = f.size_var(name);
    f.var_expr(v)
}

#[derive(Debug, Default, PartialEq)]
struct StatementCounts {
    parallel: usize,
    asserts: usize,
    allocs: usize,
    stores: usize,
    vector_stores: usize,
    calls: usize,
    divisions: usize,
}

fn count_statements(f: &PrimFunc) -> StatementCounts {
    let mut c = StatementCounts::default();
    for_each_stmt(f, f.body, &mut |_, data| {
        match data {
            StmtData::For { kind: ForKind::Parallel, .. } => c.parallel += 1,
            StmtData::Assert(..) => c.asserts += 1,
            StmtData::Alloc(..) => c.allocs += 1,
            StmtData::Store { indices, .. } => {
                c.stores += 1;
                c.vector_stores += usize::from(f.expr_ty(indices[0]).lanes > 1);
            }
            _ => {}
        }
        if let StmtData::Store { indices, value, .. } = data {
            for &e in indices.iter().chain([value]) {
                for_each_expr(f, e, |e| {
                    c.divisions +=
                        usize::from(matches!(f.expr(e), ExprData::Binary(BinOp::FloorMod, _, b)
                        if f.as_int(*b).is_none()));
                });
            }
        }
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| {
                c.calls += usize::from(matches!(
                    f.expr(e),
                    ExprData::Call(Intrin::CallExtern | Intrin::CallKernel, ..)
                ));
            });
        });
    });
    c
}

#[test]
fn elementwise_axes_are_fused_and_vectorized() {
    let mut f = PrimFunc::new();
    let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
    let (a, b) = (param(&mut f, "A", &[n, m]), param(&mut f, "B", &[n, m]));
    f.body = stage(&mut f, &[(n, IterKind::Spatial), (m, IterKind::Spatial)], |f, v| {
        let x = f.load(a, v);
        (b, v.to_vec(), None, f.add(x, x))
    });
    let c = count_statements(&pliant_tir::lower(&f).unwrap());
    assert_eq!(c.parallel, 1);
    assert_eq!((c.stores, c.vector_stores), (3, 2), "wide, narrow and scalar stores: {c:?}");
    assert_eq!((c.asserts, c.divisions), (0, 0), "all accesses are proved, axes are fused: {c:?}");
}

#[test]
fn producers_are_inlined_into_their_reader() {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let (a, b) = (param(&mut f, "A", &[n]), param(&mut f, "B", &[n]));
    let t = f.compact_buffer("T", vec![n], F32);
    let axes = [(n, IterKind::Spatial)];
    let producer = stage(&mut f, &axes, |f, v| {
        let x = f.load(a, v);
        (t, v.to_vec(), None, f.call(Intrin::Sqrt, &[x]))
    });
    let reader = stage(&mut f, &axes, |f, v| {
        let x = f.load(t, v);
        (b, v.to_vec(), None, f.add(x, x))
    });
    let seq = f.add_stmt(StmtData::Seq(vec![producer, reader]));
    f.body = f.add_stmt(StmtData::Alloc(t, seq));
    let c = count_statements(&pliant_tir::lower(&f).unwrap());
    assert_eq!((c.allocs, c.parallel), (0, 1), "{c:?}");
}

#[test]
fn matrix_products_become_one_kernel_call() {
    let mut f = PrimFunc::new();
    let (n, m, k) = (size(&mut f, "n"), size(&mut f, "m"), size(&mut f, "k"));
    let (a, b) = (param(&mut f, "A", &[n, k]), param(&mut f, "B", &[m, k]));
    let c = param(&mut f, "C", &[n, m]);
    let (s, r) = (IterKind::Spatial, IterKind::Reduce);
    f.body = stage(&mut f, &[(n, s), (m, s), (k, r)], |f, v| {
        let (x, y) = (f.load(a, &[v[0], v[2]]), f.load(b, &[v[1], v[2]]));
        let p = f.mul(x, y);
        let old = f.load(c, &v[..2]);
        (c, v[..2].to_vec(), Some(f.const_of(0.0, F32)), f.add(old, p))
    });
    let c = count_statements(&pliant_tir::lower(&f).unwrap());
    assert_eq!((c.calls, c.stores, c.asserts), (1, 0, 0), "{c:?}");
}

#[test]
fn row_stages_are_fused_into_one_loop() {
    // Subtracts row sums: the sum is one register per row.
    let mut f = PrimFunc::new();
    let (n, m) = (size(&mut f, "n"), size(&mut f, "m"));
    let (a, b) = (param(&mut f, "A", &[n, m]), param(&mut f, "B", &[n, m]));
    let t = f.compact_buffer("T", vec![n], F32);
    let (s, r) = (IterKind::Spatial, IterKind::Reduce);
    let producer = stage(&mut f, &[(n, s), (m, r)], |f, v| {
        let (x, old) = (f.load(a, v), f.load(t, &v[..1]));
        (t, v[..1].to_vec(), Some(f.const_of(0.0, F32)), f.add(old, x))
    });
    let reader = stage(&mut f, &[(n, s), (m, s)], |f, v| {
        let (x, y) = (f.load(a, v), f.load(t, &v[..1]));
        (b, v.to_vec(), None, f.binary(BinOp::Sub, x, y))
    });
    let seq = f.add_stmt(StmtData::Seq(vec![producer, reader]));
    f.body = f.add_stmt(StmtData::Alloc(t, seq));
    let lowered = pliant_tir::lower(&f).unwrap();
    assert_eq!(count_statements(&lowered).parallel, 1);
    let mut in_registers = true;
    for_each_stmt(&lowered, lowered.body, &mut |_, data| {
        if let StmtData::Alloc(b, body) = data {
            in_registers &=
                pliant_tir::buffer_accesses::register_slots(&lowered, *b, *body).is_some();
        }
    });
    assert!(in_registers, "every temporary is kept in registers");
}

#[test]
fn lowering_a_lowered_function_keeps_its_structure() {
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let a = param(&mut f, "A", &[n]);
    f.body = stage(&mut f, &[(n, IterKind::Spatial)], |f, v| {
        let x = f.load(a, v);
        (a, v.to_vec(), None, f.mul(x, x))
    });
    let once = pliant_tir::lower(&f).unwrap();
    let again = pliant_tir::lower(&once).unwrap();
    let (x, y) = (count_statements(&once), count_statements(&again));
    assert_eq!((x.parallel, x.stores, x.vector_stores), (y.parallel, y.stores, y.vector_stores));
}

#[test]
fn a_producer_is_not_inlined_if_its_input_is_overwritten() {
    // T = exp(A); A = A + A; B = T: inlining T would read the new A.
    let mut f = PrimFunc::new();
    let n = size(&mut f, "n");
    let (a, b) = (param(&mut f, "A", &[n]), param(&mut f, "B", &[n]));
    let t = f.compact_buffer("T", vec![n], F32);
    let axes = [(n, IterKind::Spatial)];
    let producer = stage(&mut f, &axes, |f, v| {
        let x = f.load(a, v);
        (t, v.to_vec(), None, f.call(Intrin::Exp, &[x]))
    });
    let reader = stage(&mut f, &axes, |f, v| {
        let x = f.load(a, v);
        (a, v.to_vec(), None, f.add(x, x))
    });
    let s3 = stage(&mut f, &axes, |f, v| (b, v.to_vec(), None, f.load(t, v)));
    let seq = f.add_stmt(StmtData::Seq(vec![producer, reader, s3]));
    f.body = f.add_stmt(StmtData::Alloc(t, seq));
    let c = count_statements(&pliant_tir::lower(&f).unwrap());
    assert_eq!((c.allocs, c.parallel), (1, 3), "{c:?}");
}
