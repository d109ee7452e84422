//! Tests of the values that operators compute. A simple interpreter runs the loop functions on small tensors.

#![allow(clippy::cloned_ref_to_slice_refs, reason = "lists of operands read alike")]

use std::collections::HashMap;

use crate::op_call_text::{Calls, attrs};
use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, Intrin, IterKind, PrimFunc, Stmt, StmtData, Var,
};
use pliant_ir::{DType, OpRegistry, relax};
use pliant_ops::legalize::legalize_to_tir;
use pliant_ops::{Legalized, legalize_call, registry};

/// A tensor whose elements are stored as float64, which is exact for bools and for integers of up to 53 bits.
#[derive(Clone, Debug, PartialEq)]
struct Array {
    shape: Vec<i64>,
    data: Vec<f64>,
}

fn array(shape: &[i64], data: &[f64]) -> Array {
    assert_eq!(shape.iter().product::<i64>(), data.len() as i64);
    Array { shape: shape.to_vec(), data: data.to_vec() }
}

fn range(shape: &[i64]) -> Array {
    let n: i64 = shape.iter().product();
    array(shape, &(0..n).map(|v| v as f64).collect::<Vec<_>>())
}

struct Interpreter<'f> {
    f: &'f PrimFunc,
    vars: HashMap<Var, f64>,
    buffers: HashMap<Buffer, Array>,
}

impl Interpreter<'_> {
    fn is_float(&self, e: Expr) -> bool {
        self.f.expr_ty(e).dtype.is_float()
    }

    fn eval(&self, e: Expr) -> f64 {
        match self.f.expr(e) {
            ExprData::Int(v, _) => *v as f64,
            ExprData::Float(bits, _) => f64::from_bits(*bits),
            ExprData::Var(v) => self.vars[v],
            ExprData::Cast(ty, a) => {
                let v = self.eval(*a);
                if ty.dtype.is_float() { v } else { v.trunc() }
            }
            ExprData::Binary(op, a, b) => {
                let float = self.is_float(*a);
                binary(*op, self.eval(*a), self.eval(*b), float)
            }
            ExprData::Not(a) => (self.eval(*a) == 0.0) as i64 as f64,
            ExprData::Select(c, a, b) => {
                let (a, b) = (self.eval(*a), self.eval(*b));
                if self.eval(*c) != 0.0 { a } else { b }
            }
            ExprData::Load(b, indices) => {
                let array = &self.buffers[b];
                array.data[self.offset(array, indices)]
            }
            ExprData::Call(Intrin::IfThenElse, args, _) => {
                self.eval(if self.eval(args[0]) != 0.0 { args[1] } else { args[2] })
            }
            ExprData::Call(i, args, _) => {
                let args: Vec<f64> = args.iter().map(|&a| self.eval(a)).collect();
                intrin(*i, &args)
            }
            other => panic!("{other:?}"),
        }
    }

    fn offset(&self, array: &Array, indices: &[Expr]) -> usize {
        let mut offset = 0;
        for (&i, &dim) in indices.iter().zip(&array.shape) {
            let i = self.eval(i) as i64;
            assert!((0..dim).contains(&i), "index {i} of {dim}");
            offset = offset * dim + i;
        }
        offset as usize
    }

    /// Runs the initial store of a reduction for all values of its spatial axes, also if the reduction axes are empty.
    fn run_init(&mut self, s: Stmt) -> Result<(), String> {
        let (mut s, mut loops) = (s, Vec::new());
        while let StmtData::For { var, min, extent, body, .. } = self.f.stmt(s) {
            loops.push((*var, *min, *extent));
            s = *body;
        }
        let StmtData::Block(block) = self.f.stmt(s) else { return Ok(()) };
        let Some(init) = block.init else { return Ok(()) };
        let spatial: Vec<_> =
            block.iters.iter().zip(loops).filter(|(i, _)| i.kind == IterKind::Spatial).collect();
        let extents: Vec<i64> = spatial.iter().map(|(_, l)| self.eval(l.2) as i64).collect();
        for point in 0..extents.iter().product() {
            let mut rest = point;
            for ((iter, _), extent) in spatial.iter().zip(&extents).rev() {
                self.vars.insert(iter.var, (rest % extent) as f64);
                rest /= extent;
            }
            self.run(init)?;
        }
        Ok(())
    }

    /// Runs a stage: the initial store, then the loops.
    fn run_stage(&mut self, s: Stmt) -> Result<(), String> {
        self.run_init(s)?;
        self.run(s)
    }

    /// Runs a statement. The error is the message of a failed assertion.
    fn run(&mut self, s: Stmt) -> Result<(), String> {
        match self.f.stmt(s).clone() {
            StmtData::Seq(list) => list.into_iter().try_for_each(|s| self.run_stage(s)),
            StmtData::For { var, min, extent, body, .. } => {
                let (min, extent) = (self.eval(min), self.eval(extent));
                (0..extent as i64).try_for_each(|i| {
                    self.vars.insert(var, min + i as f64);
                    self.run(body)
                })
            }
            StmtData::Block(block) => {
                for &b in &block.allocs {
                    self.alloc(b);
                }
                for iter in &block.iters {
                    let value = self.eval(iter.binding);
                    self.vars.insert(iter.var, value);
                }
                self.run_stage(block.body)
            }
            StmtData::Store { buffer, indices, value } => {
                let value = self.eval(value);
                let offset = self.offset(&self.buffers[&buffer], &indices);
                self.buffers.get_mut(&buffer).unwrap().data[offset] = value;
                Ok(())
            }
            StmtData::Assert(cond, message, body) => {
                if self.eval(cond) == 0.0 {
                    return Err(message.to_string());
                }
                self.run(body)
            }
            other => panic!("{other:?}"),
        }
    }

    fn alloc(&mut self, b: Buffer) {
        let shape: Vec<i64> = self.f.buffer(b).shape.iter().map(|&d| self.eval(d) as i64).collect();
        let data = vec![f64::from(0xbad); shape.iter().product::<i64>() as usize];
        self.buffers.insert(b, Array { shape, data });
    }
}

fn binary(op: BinOp, a: f64, b: f64, float: bool) -> f64 {
    use BinOp::*;
    let truth = |v: bool| v as i64 as f64;
    match op {
        Add => a + b,
        Sub => a - b,
        Mul => a * b,
        Div if float => a / b,
        Div => (a / b).trunc(),
        Mod => a % b,
        FloorDiv => (a / b).floor(),
        FloorMod => a - (a / b).floor() * b,
        Min if a.is_nan() || b.is_nan() => f64::NAN,
        Max if a.is_nan() || b.is_nan() => f64::NAN,
        Min => a.min(b),
        Max => a.max(b),
        Eq => truth(a == b),
        Ne => truth(a != b),
        Lt => truth(a < b),
        Le => truth(a <= b),
        Gt => truth(a > b),
        Ge => truth(a >= b),
        And => truth(a != 0.0 && b != 0.0),
        Or => truth(a != 0.0 || b != 0.0),
    }
}

fn intrin(i: Intrin, args: &[f64]) -> f64 {
    let x = args[0];
    match i {
        Intrin::Exp => x.exp(),
        Intrin::Log => x.ln(),
        Intrin::Sqrt => x.sqrt(),
        Intrin::Rsqrt => 1.0 / x.sqrt(),
        Intrin::Tanh => x.tanh(),
        Intrin::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Intrin::Abs => x.abs(),
        Intrin::Floor => x.floor(),
        Intrin::Round => x.round_ties_even(),
        Intrin::Fmod => x % args[1],
        Intrin::Pow => x.powf(args[1]),
        Intrin::IsNan => x.is_nan() as i64 as f64,
        Intrin::Explain => x,
        other => panic!("{other}"),
    }
}

/// Runs `op` and returns its outputs. `args` describes the operand types as text, and `inputs`
/// contains the operands' elements. Sizes that only the output defines come from `outs`.
fn run(
    op: &str,
    args: &[&str],
    attr_text: &str,
    inputs: &[Array],
    outs: &[&[i64]],
) -> Result<Vec<Array>, String> {
    let mut calls = Calls::new();
    let call = calls.call(op, args, &attrs(attr_text)).unwrap_or_else(|e| panic!("{op}: {e}"));
    let relax::ExprData::Call { args: list, .. } = *calls.func().expr(call) else {
        panic!("a call")
    };
    let (list, ty) = (calls.func().list(list).to_vec(), calls.func().expr_ty(call));
    let op_id = registry().lookup(&format!("relax.{op}")).expect("a declared operator");
    let legal = legalize_to_tir(calls.func(), op_id, &list, &attrs(attr_text), ty);
    let legal = legal.unwrap_or_else(|e| panic!("{op}: {e}")).expect("a loop form");
    assert_eq!(legal.inputs.len(), inputs.len(), "{op}");
    let f = &legal.func;
    let mut m = Interpreter { f, vars: HashMap::new(), buffers: HashMap::new() };
    let out_shapes = outs.iter().map(|s| Array {
        shape: s.to_vec(),
        data: vec![777.0; s.iter().product::<i64>() as usize],
    });
    for (&b, a) in f.buffer_map.values().zip(inputs.iter().cloned().chain(out_shapes)) {
        for (&dim, &size) in f.buffer(b).shape.iter().zip(&a.shape) {
            if let ExprData::Var(v) = *f.expr(dim) {
                let old = m.vars.insert(v, size as f64);
                if old.is_some_and(|old| old != size as f64) {
                    return Err("shape".into());
                }
            }
        }
        m.buffers.insert(b, a);
    }
    for &b in f.buffer_map.values() {
        let wrong = f
            .buffer(b)
            .shape
            .iter()
            .zip(&m.buffers[&b].shape)
            .any(|(&d, &s)| m.eval(d) != s as f64);
        if wrong {
            return Err("shape".into());
        }
    }
    m.run_stage(f.body)?;
    Ok(f.buffer_map.values().skip(inputs.len()).map(|b| m.buffers[b].clone()).collect())
}

/// Runs an operator and returns the elements of its only output.
fn one(op: &str, args: &[&str], attr_text: &str, inputs: &[Array], out: &[i64]) -> Vec<f64> {
    let mut outs = run(op, args, attr_text, inputs, &[out]).unwrap_or_else(|e| panic!("{op}: {e}"));
    assert_eq!(outs.len(), 1);
    outs.remove(0).data
}

fn close(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-9 || (g.is_nan() && w.is_nan()) || g == w, "{got:?} {want:?}");
    }
}

#[test]
fn arithmetic() {
    let (a, b) = (
        array(&[6], &[7.0, -7.0, 7.0, -7.0, 6.0, -0.0]),
        array(&[6], &[2.0, 2.0, -2.0, -2.0, -3.0, 5.0]),
    );
    let ops = &["float32(n)", "float32(n)"];
    let both = [a, b];
    close(&one("mod", ops, "", &both, &[6]), &[1.0, 1.0, -1.0, -1.0, 0.0, 0.0]);
    close(&one("floor_divide", ops, "", &both, &[6]), &[3.0, -4.0, -4.0, 3.0, -2.0, 0.0]);
    let ops = &["int64(n)", "int64(n)"];
    close(&one("mod", ops, "", &both, &[6]), &[1.0, 1.0, -1.0, -1.0, 0.0, 0.0]);
    close(&one("divide", ops, "", &both, &[6]), &[3.0, -3.0, -3.0, 3.0, -2.0, 0.0]);
    let sum =
        one("add", &["float32(n, 1)", "float32(m)"], "", &[range(&[2, 1]), range(&[3])], &[2, 3]);
    close(&sum, &[0.0, 1.0, 2.0, 1.0, 2.0, 3.0]);
    let unequal =
        run("add", &["float32(n)", "float32(m)"], "", &[range(&[2]), range(&[3])], &[&[2]]);
    assert!(unequal.unwrap_err().contains("dims n and m (axis -1) cannot be broadcast"));
    let ops = &["float32(n)", "float32(m)"];
    let stretched = one("add", ops, "", &[range(&[3]), range(&[1])], &[3]);
    close(&stretched, &[0.0, 1.0, 2.0]);
    let x = array(&[3], &[-2.0, 0.0, f64::NAN]);
    close(&one("sign", &["float32(n)"], "", &[x.clone()], &[3]), &[-1.0, 0.0, f64::NAN]);
    close(&one("nn.relu", &["float32(n)"], "", &[x], &[3]), &[0.0, 0.0, f64::NAN]);
}

#[test]
fn views_concat_split_repeat_and_triangles() {
    let x = range(&[2, 3]);
    close(
        &one("permute_dims", &["float32(n, m)"], "", &[x.clone()], &[3, 2]),
        &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0],
    );
    close(
        &one("reshape", &["float32(n, m)", "shape(-1, 2)"], "", &[x.clone()], &[3, 2]),
        &range(&[6]).data,
    );
    let odd = run("reshape", &["float32(n, m)", "shape(-1, 2)"], "", &[range(&[3, 3])], &[&[4, 2]]);
    assert!(odd.unwrap_err().contains("must have as many elements"));
    close(
        &one("expand_dims", &["float32(n, m)"], "axis=[0, 2]", &[x.clone()], &[1, 2, 1, 3]),
        &x.data,
    );
    close(&one("squeeze", &["float32(1, n, 1, m)"], "", &[range(&[1, 2, 1, 3])], &[2, 3]), &x.data);
    close(&one("flatten", &["float32(n, m, 2)"], "", &[range(&[2, 0, 2])], &[0]), &[]);
    let joined = one(
        "concat",
        &["<float32(n, a); float32(n, b); float32(n, 1)>"],
        "axis=1",
        &[range(&[2, 2]), range(&[2, 0]), range(&[2, 1])],
        &[2, 3],
    );
    close(&joined, &[0.0, 1.0, 0.0, 2.0, 3.0, 1.0]);
    let parts = run(
        "split",
        &["float32(n)"],
        "indices_or_sections=[1, 3]",
        &[range(&[5])],
        &[&[1], &[2], &[2]],
    )
    .unwrap();
    assert_eq!(
        parts.iter().map(|p| p.data.clone()).collect::<Vec<_>>(),
        [vec![0.0], vec![1.0, 2.0], vec![3.0, 4.0]]
    );
    // Each part has `ceil(n / k)` elements. The last parts have fewer or none.
    for (n, count, lengths) in [(5, 2, vec![3, 2]), (7, 3, vec![3, 3, 1]), (5, 4, vec![2, 2, 1, 0])]
    {
        let shapes: Vec<[i64; 1]> = lengths.iter().map(|&l| [l]).collect();
        let shapes: Vec<&[i64]> = shapes.iter().map(|s| &s[..]).collect();
        let attrs = format!("indices_or_sections={count}");
        for ty in ["float32(n)".to_string(), format!("float32({n})")] {
            let parts = run("split", &[&ty], &attrs, &[range(&[n])], &shapes).unwrap();
            let all: Vec<f64> = parts.iter().flat_map(|p| p.data.clone()).collect();
            let want: Vec<f64> = (0..n).map(|v| v as f64).collect();
            assert_eq!(all, want, "{n} in {count} of {ty}");
        }
    }
    let flat = one(
        "concat",
        &["<float32(n, m); float32(k); float32()>"],
        "axis=none",
        &[range(&[2, 2]), range(&[3]), range(&[])],
        &[8],
    );
    close(&flat, &[0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 0.0]);
    close(
        &one("repeat", &["float32(n, m)"], "repeats=2", &[range(&[2, 2])], &[8]),
        &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0],
    );
    close(
        &one("repeat", &["float32(n, m)"], "repeats=2;axis=0", &[range(&[2, 1])], &[4, 1]),
        &[0.0, 0.0, 1.0, 1.0],
    );
    close(
        &one("tile", &["float32(n)"], "repeats=[2, 2]", &[range(&[2])], &[2, 4]),
        &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    );
    close(
        &one("tril", &["float32(n, n)"], "", &[array(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], &[2, 2]),
        &[1.0, 0.0, 3.0, 4.0],
    );
    close(
        &one("triu", &["float32(n, n)"], "k=1", &[array(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], &[2, 2]),
        &[0.0, 2.0, 0.0, 0.0],
    );
}

#[test]
fn strided_slices_match_numpy() {
    let slice = |begin: &str, end: &str, step: &str, out: i64| {
        let (b, e, s) =
            (format!("<int({begin})>"), format!("<int({end})>"), format!("<int({step})>"));
        one("strided_slice", &["float32(10)", "<int(0)>", &b, &e, &s], "", &[range(&[10])], &[out])
    };
    close(&slice("2", "8", "3", 2), &[2.0, 5.0]);
    close(&slice("-3", "99", "1", 3), &[7.0, 8.0, 9.0]);
    close(&slice("-99", "-8", "1", 2), &[0.0, 1.0]);
    close(&slice("-1", "-11", "-4", 3), &[9.0, 5.0, 1.0]);
    close(&slice("99", "7", "-1", 2), &[9.0, 8.0]);
    close(&slice("5", "5", "1", 0), &[]);
    let reversed =
        &["float32(n)", "<int(0)>", "<int(-1)>", "<int(-9223372036854775807)>", "<int(-1)>"];
    close(&one("strided_slice", reversed, "", &[range(&[3])], &[3]), &[2.0, 1.0, 0.0]);
    close(&one("strided_slice", reversed, "", &[range(&[0])], &[0]), &[]);
    let dynamic = one(
        "strided_slice",
        &["float32(n, 2)", "<int(0)>", "<int(1)>", "<int(-1)>"],
        "",
        &[range(&[4, 2])],
        &[2, 2],
    );
    close(&dynamic, &[2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn indexing() {
    let (x, rows) = (range(&[3, 2]), array(&[2], &[2.0, -3.0]));
    let ops = &["float32(n, m)", "int64(b)"];
    close(&one("take", ops, "axis=0", &[x.clone(), rows.clone()], &[2, 2]), &[4.0, 5.0, 0.0, 1.0]);
    let outside = array(&[2], &[0.0, 3.0]);
    let error = run("take", ops, "axis=0", &[x.clone(), outside.clone()], &[&[2, 2]]).unwrap_err();
    assert!(error.contains("out of range for axis 0"), "{error}");
    close(
        &one("take", ops, "axis=0;mode=clip", &[x.clone(), outside.clone()], &[2, 2]),
        &[0.0, 1.0, 4.0, 5.0],
    );
    close(
        &one("take", ops, "axis=0;mode=wrap", &[x.clone(), outside.clone()], &[2, 2]),
        &[0.0, 1.0, 0.0, 1.0],
    );
    let empty =
        run("take", ops, "axis=0;mode=clip", &[range(&[0, 2]), outside], &[&[2, 2]]).unwrap_err();
    assert!(empty.contains("is empty"), "{empty}");
    close(&one("take", ops, "axis=0", &[range(&[0, 2]), array(&[0], &[])], &[0, 2]), &[]);
    let chosen = one(
        "where",
        &["bool(n, 1)", "float32(m)", "float32(n, m)"],
        "",
        &[array(&[2, 1], &[1.0, 0.0]), array(&[2], &[8.0, 9.0]), range(&[2, 2])],
        &[2, 2],
    );
    close(&chosen, &[8.0, 9.0, 2.0, 3.0]);
}

#[test]
fn reductions() {
    let x = array(&[2, 3], &[1.0, 5.0, 5.0, -2.0, f64::NAN, 7.0]);
    let ops = &["float32(n, m)"];
    close(&one("sum", ops, "axis=0;keepdims=true", &[range(&[2, 3])], &[1, 3]), &[3.0, 5.0, 7.0]);
    close(&one("prod", ops, "", &[range(&[0, 3])], &[]), &[1.0]);
    close(&one("max", ops, "axis=1", &[x], &[2]), &[5.0, f64::NAN]);
    close(&one("max", ops, "axis=1", &[range(&[1, 0])], &[1]), &[f64::NEG_INFINITY]);
    close(&one("mean", ops, "axis=1", &[range(&[2, 3])], &[2]), &[1.0, 4.0]);
    close(&one("variance", ops, "axis=1", &[range(&[2, 3])], &[2]), &[2.0 / 3.0; 2]);
    close(&one("std", ops, "", &[range(&[1, 3])], &[]), &[(2.0f64 / 3.0).sqrt()]);
}

#[test]
fn products() {
    let (a, b) = (range(&[2, 3]), range(&[3, 2]));
    let want = [10.0, 13.0, 28.0, 40.0];
    close(
        &one("matmul", &["float32(n, k)", "float32(k, m)"], "", &[a.clone(), b.clone()], &[2, 2]),
        &want,
    );
    let mismatch = run(
        "matmul",
        &["float32(n, k)", "float32(j, m)"],
        "",
        &[a.clone(), range(&[2, 2])],
        &[&[2, 2]],
    );
    assert_eq!(
        mismatch.unwrap_err(),
        "ShapeError: relax.matmul: dim 0 of x2, j = {0}, must be k = {1}"
    );
    close(
        &one("matmul", &["float32(k)", "float32(k)"], "", &[range(&[3]), range(&[3])], &[]),
        &[5.0],
    );
    close(
        &one("matmul", &["float32(k)", "float32(k, m)"], "", &[range(&[3]), b.clone()], &[2]),
        &[10.0, 13.0],
    );
    let batched = one(
        "matmul",
        &["float32(b, 1, n, k)", "float32(h, k, m)"],
        "",
        &[range(&[2, 1, 1, 2]), range(&[2, 2, 1])],
        &[2, 2, 1, 1],
    );
    close(&batched, &[1.0, 3.0, 3.0, 13.0]);
    close(
        &one(
            "matmul",
            &["float32(n, k)", "float32(k, m)"],
            "",
            &[range(&[2, 0]), range(&[0, 1])],
            &[2, 1],
        ),
        &[0.0, 0.0],
    );
    let linear = one(
        "linear",
        &["float32(n, k)", "float32(m, k)", "float32(m)"],
        "",
        &[a, range(&[2, 3]), array(&[2], &[100.0, 200.0])],
        &[2, 2],
    );
    close(&linear, &[105.0, 214.0, 114.0, 250.0]);
}

#[test]
fn normalizations() {
    let x = array(&[2, 2], &[1000.0, 1000.0, 0.0, f64::ln(3.0)]);
    close(
        &one("nn.softmax", &["float32(n, m)"], "", &[x.clone()], &[2, 2]),
        &[0.5, 0.5, 0.25, 0.75],
    );
    let log = one("nn.log_softmax", &["float32(n, m)"], "axis=1", &[x], &[2, 2]);
    close(&log, &[0.5f64.ln(), 0.5f64.ln(), 0.25f64.ln(), 0.75f64.ln()]);
    let norm = one(
        "nn.layer_norm",
        &["float32(n, 2)", "float32(2)", "float32(2)"],
        "axes=[-1];epsilon=0.0",
        &[array(&[1, 2], &[3.0, 7.0]), array(&[2], &[1.0, 2.0]), array(&[2], &[10.0, 20.0])],
        &[1, 2],
    );
    close(&norm, &[9.0, 22.0]);
    let rms = one(
        "nn.rms_norm",
        &["float32(n, 2)", "float32(2)"],
        "axes=[-1];epsilon=0.0",
        &[array(&[1, 2], &[1.0, 7.0]), array(&[2], &[1.0, 10.0])],
        &[1, 2],
    );
    close(&rms, &[0.2, 14.0]);
}

#[test]
fn creation() {
    close(&one("arange", &["int(10)", "int(0)", "int(-3)"], "", &[], &[4]), &[10.0, 7.0, 4.0, 1.0]);
    close(
        &one("arange", &["float(0)", "float(1)", "float(0.25)"], "", &[], &[4]),
        &[0.0, 0.25, 0.5, 0.75],
    );
    close(&one("arange", &["int(n)"], "", &[], &[3]), &[0.0, 1.0, 2.0]);
    close(
        &one("full", &["shape(n)", "float32()"], "dtype=int32", &[array(&[], &[2.7])], &[2]),
        &[2.0, 2.0],
    );
    close(&one("ones", &["shape(n, 0)"], "", &[], &[2, 0]), &[]);
    close(&one("shape_to_tensor", &["shape(3, 4, 5)"], "", &[], &[3]), &[3.0, 4.0, 5.0]);
}

#[test]
fn packed_calls_pass_variadic_operands_last() {
    let mut calls = Calls::new();
    let call = calls.call("print", &["float32(n)", "float32(m)"], &attrs("format=hello")).unwrap();
    let Ok(Some(Legalized::Packed { name, args })) = legalize_call(calls.func(), call) else {
        panic!("packed")
    };
    assert_eq!((name, args.len()), ("vm.builtin.print", 3));
    assert!(matches!(calls.func().expr(args[0]), relax::ExprData::Str(_)));
    assert_eq!(DType::Float32, calls.func().ty(args[1]).dtype().unwrap());
}
