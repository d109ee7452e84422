//! Classifies loop functions by how they can be fused with others: elementwise, broadcast, injective, reduction and so on, like
//! TVM's `OpPatternKind`.
//!
//! Each block that writes one element per point of its axes is classified by the elements that it reads. The class of a function
//! is the most restrictive class of its blocks. Exception: a function with both reductions and elementwise blocks, of which
//! several read the same input (softmax, layer normalization), is [`OpPattern::OutEWiseFusable`]. A function is opaque if it
//! contains calls, predicates, assertions other than size checks, several writes per block, loops without blocks, or writes to an
//! input.

use pliant_ir::tir::visit::{for_each_expr, for_each_expr_in, for_each_stmt};
use pliant_ir::tir::{
    BinOp, BlockData, Buffer, Expr, ExprData, Intrin, IterKind, PrimFunc, Stmt, StmtData, Var,
    VarTy,
};
use rustc_hash::FxHashSet;

/// How an operator can be fused. The number of each variant is its value in the attribute `op_pattern`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OpPattern {
    /// Each output element depends only on the input elements with the same index.
    ElemWise = 0,
    /// Each output element depends only on the input elements with the same index after some inputs were broadcast.
    Broadcast = 1,
    /// Each output element is computed without a reduction from input elements with other indices, as in a transpose or a slice.
    Injective = 2,
    /// A reduction with a commutative operator, such as a sum.
    CommReduce = 3,
    /// An expensive operation, such as a matmul, convolution or softmax. Elementwise operations on its outputs can be fused into
    /// it.
    OutEWiseFusable = 4,
    /// An operator that only combines tensors into a tuple. It is not fused.
    Tuple = 7,
    /// An operation that must not be fused.
    Opaque = 8,
}

impl OpPattern {
    /// Converts a value of the attribute `op_pattern` to a pattern; `None` for other integers.
    pub fn from_int(value: i64) -> Option<OpPattern> {
        use OpPattern::*;
        [ElemWise, Broadcast, Injective, CommReduce, OutEWiseFusable, Tuple, Opaque]
            .into_iter()
            .find(|p| *p as i64 == value)
    }
}

/// Determines how a loop function can be fused.
pub fn op_pattern(f: &PrimFunc) -> OpPattern {
    let mut blocks = Vec::new();
    if !writes_outputs_only(f)
        || has_unsupported_nodes(f)
        || !collect_leaf_blocks(f, f.body, &mut blocks)
    {
        return OpPattern::Opaque;
    }
    let (mut kind, mut pointwise) = (OpPattern::ElemWise, false);
    for block in &blocks {
        let pattern = block_pattern(f, block);
        pointwise |= pattern <= OpPattern::Injective;
        kind = kind.max(pattern);
    }
    match kind {
        // An elementwise producer that is fused into the function would be computed once in each block that reads it.
        OpPattern::CommReduce if pointwise && !reads_inputs_in_one_block(f, &blocks) => {
            OpPattern::OutEWiseFusable
        }
        kind => kind,
    }
}

/// Whether each input is read by at most one of the blocks. This holds for a mean, in which one block sums the input and another
/// block divides the sums.
fn reads_inputs_in_one_block(f: &PrimFunc, blocks: &[&BlockData]) -> bool {
    let stores: Vec<_> = blocks.iter().filter_map(|block| only_store(f, block.body)).collect();
    let is_input = |buffer: &Buffer| {
        f.buffer_map.values().any(|b| b == buffer) && stores.iter().all(|s| s.0 != *buffer)
    };
    let mut read: FxHashSet<Buffer> = FxHashSet::default();
    stores.iter().all(|&(_, _, value)| {
        let mut read_here = FxHashSet::default();
        for_each_expr(f, value, |e| {
            if let ExprData::Load(from, _) = f.expr(e) {
                read_here.insert(*from);
            }
        });
        read_here.retain(is_input);
        let is_only_reader = read_here.is_disjoint(&read);
        read.extend(read_here);
        is_only_reader
    })
}

/// Whether the function only reads its leading tensors (inputs), and writes only to its trailing tensors (outputs) and to local
/// buffers. Such a function can be inlined into another loop function.
pub fn is_mergeable(f: &PrimFunc) -> bool {
    let mut has_calls = false;
    for_each_expr_in(f, f.body, |e| {
        has_calls |= matches!(
            f.expr(e),
            ExprData::Call(
                Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel | Intrin::AddressOf,
                ..
            )
        );
    });
    !has_calls && !f.is_flat() && writes_outputs_only(f)
}

/// Whether the function writes only to its trailing tensors (outputs) and its local buffers.
fn writes_outputs_only(f: &PrimFunc) -> bool {
    let mut written = FxHashSet::default();
    for_each_stmt(f, f.body, |s| {
        if let StmtData::Store { buffer, .. } = f.stmt(s) {
            written.insert(*buffer);
        }
    });
    let tensors: Vec<Buffer> =
        f.params.iter().filter_map(|p| f.buffer_map.get(p)).copied().collect();
    let outputs = tensors.iter().rev().take_while(|b| written.contains(b)).count();
    let scalars_last = f
        .params
        .iter()
        .skip_while(|p| matches!(f.var(**p).ty, VarTy::Handle))
        .all(|p| !matches!(f.var(*p).ty, VarTy::Handle));
    outputs > 0
        && scalars_last
        && tensors[..tensors.len() - outputs].iter().all(|b| !written.contains(b))
}

/// Whether the function contains anything but reads, arithmetic, writes, loops and blocks.
fn has_unsupported_nodes(f: &PrimFunc) -> bool {
    let mut unsupported = false;
    for_each_stmt(f, f.body, |s| {
        unsupported |= !is_size_check(f, s)
            && !matches!(
                f.stmt(s),
                StmtData::Seq(_)
                    | StmtData::For { .. }
                    | StmtData::Store { .. }
                    | StmtData::Alloc(..)
                    | StmtData::Block(_)
            );
    });
    for_each_expr_in(f, f.body, |e| {
        unsupported |= matches!(
            f.expr(e),
            ExprData::Call(
                Intrin::CallExtern | Intrin::CallPacked | Intrin::CallKernel | Intrin::AddressOf,
                ..
            ) | ExprData::Ramp(..)
                | ExprData::Broadcast(..)
        );
    });
    unsupported
}

/// Whether a statement is an assertion whose condition reads no buffer, so that it can only check sizes.
fn is_size_check(f: &PrimFunc, s: Stmt) -> bool {
    let StmtData::Assert(condition, _, body) = f.stmt(s) else { return false };
    let mut reads = false;
    for_each_expr(f, *condition, |e| reads |= matches!(f.expr(e), ExprData::Load(..)));
    !reads && matches!(f.stmt(*body), StmtData::Seq(list) if list.is_empty())
}

/// Collects the innermost blocks in a statement. Returns false if there are none, if a write is outside of them, or if an
/// enclosing block has axes or a predicate.
fn collect_leaf_blocks<'f>(f: &'f PrimFunc, root: Stmt, out: &mut Vec<&'f BlockData>) -> bool {
    let mut stack = vec![root];
    while let Some(s) = stack.pop() {
        match f.stmt(s) {
            StmtData::Seq(items) => stack.extend(items.iter().rev()),
            StmtData::For { body, .. } | StmtData::Alloc(_, body) => stack.push(*body),
            StmtData::Block(b)
                if b.iters.is_empty() && b.predicate.is_none() && b.init.is_none() =>
            {
                // A block without axes is a root block, or writes one scalar.
                if matches!(f.stmt(b.body), StmtData::Store { .. }) {
                    out.push(b);
                } else {
                    stack.push(b.body);
                }
            }
            StmtData::Block(b) => {
                if b.predicate.is_some() || !b.allocs.is_empty() {
                    return false;
                }
                out.push(b);
            }
            _ if is_size_check(f, s) => {}
            _ => return false,
        }
    }
    !out.is_empty()
}

/// Returns (buffer, indices, value) of a block body that consists of a single write; `None` for other bodies.
fn only_store(f: &PrimFunc, s: Stmt) -> Option<(Buffer, &[Expr], Expr)> {
    match f.stmt(s) {
        StmtData::Store { buffer, indices, value } => Some((*buffer, indices, *value)),
        _ => None,
    }
}

fn block_pattern(f: &PrimFunc, b: &BlockData) -> OpPattern {
    let Some((buffer, indices, value)) = only_store(f, b.body) else { return OpPattern::Opaque };
    let axes = |kind: IterKind| -> Vec<Var> {
        b.iters.iter().filter(|it| it.kind == kind).map(|it| it.var).collect()
    };
    let (spatial, reduce) = (axes(IterKind::Spatial), axes(IterKind::Reduce));
    if spatial.len() + reduce.len() != b.iters.len()
        || !writes_distinct_elements(f, indices, &spatial)
    {
        return OpPattern::Opaque;
    }
    let mut loads: Vec<(Buffer, &[Expr])> = Vec::new();
    for_each_expr(f, value, |e| {
        if let ExprData::Load(from, at) = f.expr(e)
            && !(*from == buffer && **at == *indices)
        {
            loads.push((*from, at));
        }
    });
    // A read of other elements of the written buffer depends on the order in which the block visits its points.
    if loads.iter().any(|(from, _)| *from == buffer) {
        return OpPattern::Opaque;
    }
    if reduce.is_empty() {
        return pointwise_pattern(f, buffer, indices, value, &spatial, &loads);
    }
    if is_product_sum(f, buffer, value) {
        return OpPattern::OutEWiseFusable;
    }
    match loads.iter().all(|(_, at)| reads_in_order(f, at, &reduce)) {
        true => OpPattern::CommReduce,
        false => OpPattern::OutEWiseFusable,
    }
}

/// Whether different points of the spatial axes write different elements: each index is a constant or a spatial axis, and every
/// axis occurs once.
fn writes_distinct_elements(f: &PrimFunc, indices: &[Expr], spatial: &[Var]) -> bool {
    let mut seen = FxHashSet::default();
    let plain = indices.iter().all(|&i| match f.expr(i) {
        ExprData::Var(v) => spatial.contains(v) && seen.insert(*v),
        ExprData::Int(..) => true,
        _ => false,
    });
    plain && seen.len() == spatial.len()
}

/// Classifies a block that computes each element of its output once, without a reduction.
fn pointwise_pattern(
    f: &PrimFunc,
    buffer: Buffer,
    indices: &[Expr],
    value: Expr,
    spatial: &[Var],
    loads: &[(Buffer, &[Expr])],
) -> OpPattern {
    let mut reads_self = false;
    for_each_expr(f, value, |e| {
        reads_self |= matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer);
    });
    if reads_self {
        return OpPattern::Opaque;
    }
    let (mut kind, mut reads_same_index) = (OpPattern::ElemWise, false);
    for (from, at) in loads {
        if *at == indices && f.buffer(*from).shape == f.buffer(buffer).shape {
            reads_same_index = true;
        } else if is_broadcast(f, *from, at, buffer, indices) {
            kind = kind.max(OpPattern::Broadcast);
        } else if at.iter().all(|&i| uses_only(f, i, spatial)) {
            kind = OpPattern::Injective;
        } else {
            return OpPattern::Opaque;
        }
    }
    // A block that reads one tensor at the written index and broadcasts the others (a bias) counts as elementwise.
    if kind == OpPattern::Broadcast && reads_same_index { OpPattern::ElemWise } else { kind }
}

/// Whether a read is a broadcast: its indices are a subsequence of the output's indices, or 0 for dims of size 1. For dims whose
/// size is not constant, a select between the index and 0 counts, too.
fn is_broadcast(f: &PrimFunc, from: Buffer, at: &[Expr], to: Buffer, indices: &[Expr]) -> bool {
    let (have, want) = (&f.buffer(from).shape, &f.buffer(to).shape);
    let mut j = 0;
    for (k, i) in at.iter().enumerate() {
        if f.as_int(have[k]) == Some(1) && f.as_int(*i) == Some(0) {
            continue;
        }
        let (index, may_be_one) = match *f.expr(*i) {
            ExprData::Select(_, zero, index) if f.as_int(zero) == Some(0) => (index, true),
            _ => (*i, false),
        };
        while j < indices.len() && (indices[j] != index || !may_be_one && want[j] != have[k]) {
            j += 1;
        }
        if j == indices.len() {
            return false;
        }
        j += 1;
    }
    true
}

/// Whether every variable in an expression is one of the given axes, or a size: a scalar parameter, or a dim of a tensor parameter.
fn uses_only(f: &PrimFunc, e: Expr, axes: &[Var]) -> bool {
    let mut ok = true;
    let sizes = size_vars(f);
    for_each_expr(f, e, |e| {
        if let ExprData::Var(v) = f.expr(e) {
            ok &= axes.contains(v) || sizes.contains(v);
        }
    });
    ok
}

/// Returns the scalar parameters of a function, and the sizes that the shapes of its tensor parameters define.
fn size_vars(f: &PrimFunc) -> FxHashSet<Var> {
    let mut out: FxHashSet<Var> = f.params.iter().copied().collect();
    for &b in f.buffer_map.values() {
        out.extend(f.buffer(b).shape.iter().filter_map(|&d| match f.expr(d) {
            ExprData::Var(v) => Some(*v),
            _ => None,
        }));
    }
    out
}

/// Whether a value has the form `C[..] + a * b`, where `C` is the written buffer.
fn is_product_sum(f: &PrimFunc, buffer: Buffer, value: Expr) -> bool {
    let ExprData::Binary(BinOp::Add, a, b) = f.expr(value) else { return false };
    let reads_output = |e: Expr| matches!(f.expr(e), ExprData::Load(from, _) if *from == buffer);
    let product = |e: Expr| matches!(f.expr(e), ExprData::Binary(BinOp::Mul, ..));
    reads_output(*a) && product(*b) || reads_output(*b) && product(*a)
}

/// Whether a read at the indices `at` uses the reduction axes directly and in their declared order: each index that uses a
/// reduction axis consists of this axis alone.
fn reads_in_order(f: &PrimFunc, at: &[Expr], reduce: &[Var]) -> bool {
    let mut last = None;
    at.iter().all(|&i| match f.expr(i) {
        ExprData::Var(v) => match reduce.iter().position(|r| r == v) {
            None => true,
            Some(at) => last.replace(at).is_none_or(|before| before < at),
        },
        _ => {
            let mut used = false;
            for_each_expr(f, i, |e| {
                used |= matches!(f.expr(e), ExprData::Var(v) if reduce.contains(v));
            });
            !used
        }
    })
}
