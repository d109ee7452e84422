//! Shared test code: an operator registry with a few operators, and a loop function for a matrix
//! product.

use std::sync::OnceLock;

use pliant_ir::op::{
    CALL_TIR, InferError, Op, OpRegistry, OpSignature, OperandKind, OperandSpec, WHILE_LOOP,
};
use pliant_ir::relax::{Expr, Function, Type};
use pliant_ir::tir::{self, BlockData, ForKind, IterKind, IterVar, PrimFunc, StmtData};
use pliant_ir::{AttrValue, Attrs, DType};

/// An operator registry with a few operators. The type rule of every operator except `call_tir`
/// returns the type of the first operand.
pub struct TestOps;

type Table = Vec<(Op, OpSignature, bool)>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let spec = |name, optional| OperandSpec {
            name,
            optional,
            variadic: false,
            kind: OperandKind::Elements,
        };
        let states = OperandSpec { variadic: true, ..spec("state", false) };
        let sig = |operands| OpSignature { operands, attrs: vec![], ..OpSignature::default() };
        let softmax = OpSignature {
            operands: vec![spec("data", false)],
            attrs: vec![("axis", Some(AttrValue::Int(-1)))],
            ..OpSignature::default()
        };
        vec![
            (
                CALL_TIR,
                sig(vec![spec("func", false), spec("args", false), spec("tir_vars", true)]),
                true,
            ),
            (Op::new("relax.exp"), sig(vec![spec("x", false)]), true),
            (Op::new("relax.add"), sig(vec![spec("x1", false), spec("x2", false)]), true),
            (Op::new("relax.nn.softmax"), softmax, true),
            (Op::new("relax.print"), sig(vec![spec("x", false)]), false),
            (WHILE_LOOP, sig(vec![spec("cond", false), spec("body", false), states]), true),
        ]
    })
}

impl OpRegistry for TestOps {
    fn lookup(&self, name: &str) -> Option<Op> {
        table().iter().map(|row| row.0).find(|op| op.name() == name)
    }

    fn signature(&self, op: Op) -> Option<&OpSignature> {
        table().iter().find(|row| row.0 == op).map(|row| &row.1)
    }

    fn is_pure(&self, op: Op) -> bool {
        table().iter().any(|row| row.0 == op && row.2)
    }

    fn infer(
        &self,
        func: &mut Function,
        op: Op,
        args: &[Expr],
        _attrs: &Attrs,
        ty_args: &[Type],
    ) -> Result<Type, InferError> {
        if self.lookup(op.name()).is_none() {
            return Err(InferError::new("unknown operator"));
        }
        Ok(ty_args.first().copied().unwrap_or_else(|| func.expr_ty(args[0])))
    }
}

/// Creates a loop function for `C[m, n] = A[m, k] * B[k, n]`, a matrix product, with constant `k`.
pub fn matmul() -> PrimFunc {
    let mut f = PrimFunc::new();
    let (m, n) = (f.size_var("m"), f.size_var("n"));
    let (m, n) = (f.var_expr(m), f.var_expr(n));
    let k = f.int(8);
    let a = f.compact_buffer("A", vec![m, k], DType::Float32);
    let b = f.compact_buffer("B", vec![k, n], DType::Float32);
    let c = f.compact_buffer("C", vec![m, n], DType::Float32);
    f.add_buffer_param("A", a);
    f.add_buffer_param("var_B", b);
    f.add_buffer_param("C", c);
    let zero = f.int(0);
    let extents = [m, n, k];
    let kinds = [IterKind::Spatial, IterKind::Spatial, IterKind::Reduce];
    let loops = ["i", "j", "k"].map(|name| f.size_var(name));
    let axes = ["v_i", "v_j", "v_k"].map(|name| f.size_var(name));
    let iters: Vec<IterVar> = (0..3)
        .map(|i| IterVar {
            var: axes[i],
            min: zero,
            extent: extents[i],
            kind: kinds[i],
            binding: f.var_expr(loops[i]),
        })
        .collect();
    let [vi, vj, vk] = axes.map(|v| f.var_expr(v));
    let fzero = f.const_of(0.0, DType::Float32);
    let init = f.store(c, &[vi, vj], fzero);
    let (x, y, z) = (f.load(a, &[vi, vk]), f.load(b, &[vk, vj]), f.load(c, &[vi, vj]));
    let xy = f.mul(x, y);
    let sum = f.add(z, xy);
    let body = f.store(c, &[vi, vj], sum);
    let one = f.int(1);
    let region = |buffer, r: [tir::Expr; 2]| tir::BufferRegion {
        buffer,
        region: r.iter().map(|&e| (e, one)).collect(),
    };
    let mut stmt = f.add_stmt(StmtData::Block(Box::new(BlockData {
        name: "matmul".into(),
        iters,
        predicate: None,
        reads: Some(vec![region(a, [vi, vk]), region(b, [vk, vj])]),
        writes: Some(vec![region(c, [vi, vj])]),
        allocs: vec![],
        init: Some(init),
        body,
        annotations: vec![],
    })));
    for i in (0..3).rev() {
        stmt = f.add_stmt(StmtData::For {
            var: loops[i],
            min: zero,
            extent: extents[i],
            kind: ForKind::Serial,
            body: stmt,
            annotations: vec![],
        });
    }
    f.body = stmt;
    f.private = true;
    f.attrs.insert("tir.noalias".into(), AttrValue::Bool(true));
    f
}
