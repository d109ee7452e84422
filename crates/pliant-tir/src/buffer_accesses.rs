//! Analyses of the buffers and variables that statements use, for code generators and passes.

use pliant_ir::tir::visit::for_each_expr;
use pliant_ir::tir::{
    Buffer, Expr, ExprData, ForKind, Intrin, KernelCall, PrimFunc, Stmt, StmtData, Var,
};
use rustc_hash::FxHashSet;

use crate::statement_traversal::{direct_exprs, for_each_stmt};

/// Maximum size in bytes of an allocated buffer that is placed on the stack. Larger buffers, and buffers whose size is not
/// constant, are allocated at run time.
pub const STACK_BYTES: u64 = 16 * 1024;
/// Maximum number of elements of a buffer that may be kept in registers.
pub const REGISTER_ELEMENTS: u64 = 64;
/// The key of a loop annotation that states the minimum number of iterations of a parallel loop that a thread runs at a time.
/// These iterations take about a microsecond.
pub const PARALLEL_GRAIN: &str = "grain";

/// Returns the constant size of a buffer in bytes; `None` if a dim is negative or not constant, or if the size overflows.
pub fn constant_size(f: &PrimFunc, buffer: Buffer) -> Option<u64> {
    let data = f.buffer(buffer);
    data.shape.iter().try_fold(data.dtype.size() as u64, |bytes, &dim| {
        bytes.checked_mul(u64::try_from(f.as_int(dim)?).ok()?)
    })
}

/// Returns the buffers that a function may write: buffers that it stores to, buffers whose addresses it passes to linked or
/// packed functions, and the buffers that library kernels write.
pub fn written_buffers(f: &PrimFunc) -> FxHashSet<Buffer> {
    let mut written = FxHashSet::default();
    for_each_stmt(f, f.body, &mut |_, data| {
        if let StmtData::Store { buffer, .. } = data {
            written.insert(*buffer);
        }
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| match f.expr(e) {
                ExprData::Call(Intrin::CallExtern | Intrin::CallPacked, args, _) => {
                    written.extend(args.iter().filter_map(|&arg| addressed_buffer(f, arg)));
                }
                ExprData::Call(Intrin::CallKernel, ..) => {
                    let call = KernelCall::of(f, e);
                    let buffers = call.iter().flat_map(KernelCall::buffers);
                    written.extend(buffers.filter(|b| b.0.is_written()).map(|b| b.1));
                }
                _ => {}
            });
        });
    });
    written
}

/// The variables and buffers that a statement uses but does not define, in the order of their first use.
#[derive(Debug, Default)]
pub struct FreeNames {
    /// The variables that the statement uses but does not define.
    pub vars: Vec<Var>,
    /// The buffers that the statement uses but does not define.
    pub buffers: Vec<Buffer>,
}

/// Returns the free variables and buffers of a lowered statement.
pub fn free_names(f: &PrimFunc, s: Stmt) -> FreeNames {
    let mut used = FreeNames::default();
    let (mut seen_vars, mut seen_buffers) = (FxHashSet::default(), FxHashSet::default());
    let (mut bound_vars, mut allocated) = (FxHashSet::default(), FxHashSet::default());
    let mut seen_exprs = FxHashSet::default();
    let mut call_operands = Vec::new();
    for_each_stmt(f, s, &mut |_, data| {
        let mut buffer = |b: Buffer| {
            if seen_buffers.insert(b) {
                used.buffers.push(b);
            }
        };
        match data {
            StmtData::Store { buffer: b, .. } => buffer(*b),
            StmtData::Alloc(b, _) => {
                allocated.insert(*b);
            }
            StmtData::For { var, .. } | StmtData::Let(var, ..) => {
                bound_vars.insert(*var);
            }
            _ => {}
        }
        let mut exprs = Vec::new();
        direct_exprs(data, |e| exprs.push(e));
        if let StmtData::Alloc(b, _) = data {
            exprs.extend(f.buffer(*b).shape.iter().copied());
        }
        for e in exprs {
            if !seen_exprs.insert(e) {
                continue;
            }
            for_each_expr(f, e, |e| match f.expr(e) {
                ExprData::Var(v) if seen_vars.insert(*v) => used.vars.push(*v),
                ExprData::Load(b, _) => buffer(*b),
                ExprData::Call(Intrin::CallPacked | Intrin::CallKernel, args, _) => {
                    call_operands.extend(args.iter().filter_map(|&a| addressed_buffer(f, a)));
                }
                _ => {}
            });
        }
    });
    // Calls receive buffers as tensors with dims and strides, so the variables of these are used too.
    for b in call_operands {
        let data = f.buffer(b);
        for &size in data.shape.iter().chain(&data.strides) {
            for_each_expr(f, size, |e| {
                if let ExprData::Var(v) = f.expr(e)
                    && seen_vars.insert(*v)
                {
                    used.vars.push(*v);
                }
            });
        }
    }
    used.vars.retain(|v| !bound_vars.contains(v));
    used.buffers.retain(|b| !allocated.contains(b));
    used
}

/// Returns `buffer` if an expression is `T.address_of(buffer[i])`; `None` for other expressions.
fn addressed_buffer(f: &PrimFunc, e: Expr) -> Option<Buffer> {
    let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(e) else { return None };
    match f.expr(*element.first()?) {
        ExprData::Load(b, _) => Some(*b),
        _ => None,
    }
}

/// Divides a small buffer into registers: returns (first element, number of lanes) for each vector or scalar that is accessed.
/// `None` if the buffer cannot be kept in registers: it is large, its address is taken, an index is not constant, accesses
/// overlap partly or are out of bounds, or a parallel loop uses it.
pub fn register_slots(f: &PrimFunc, buffer: Buffer, body: Stmt) -> Option<Vec<(i64, u16)>> {
    let data = f.buffer(buffer);
    let elements = constant_size(f, buffer)? / data.dtype.size() as u64;
    if elements == 0 || elements > REGISTER_ELEMENTS {
        return None;
    }
    let mut slots: Vec<(i64, u16)> = Vec::new();
    let mut constant_indices = true;
    let mut access =
        |index: &[Expr]| match (index.len() == 1).then(|| register_slot(f, index[0])).flatten() {
            Some(s) if !slots.contains(&s) => slots.push(s),
            Some(_) => {}
            None => constant_indices = false,
        };
    // Whether the buffer is used by other threads or through its address.
    let mut escapes = false;
    for_each_stmt(f, body, &mut |s, data| {
        if let StmtData::Store { buffer: b, indices, .. } = data
            && *b == buffer
        {
            access(indices);
        }
        if let StmtData::For { kind: ForKind::Parallel, .. } = data {
            escapes |= uses_buffer(f, s, buffer);
        }
        direct_exprs(data, |e| {
            for_each_expr(f, e, |e| match f.expr(e) {
                ExprData::Load(b, indices) if *b == buffer => access(indices),
                ExprData::Call(Intrin::AddressOf, args, _) => {
                    if let ExprData::Load(b, _) = f.expr(args[0]) {
                        escapes |= *b == buffer;
                    }
                }
                _ => {}
            });
        });
    });
    if !constant_indices || escapes {
        return None;
    }
    slots.sort_unstable();
    let end = |(first, lanes): (i64, u16)| first.saturating_add(lanes.into());
    let in_bounds = |&slot: &(i64, u16)| slot.0 >= 0 && end(slot) <= elements as i64;
    let disjoint = slots.windows(2).all(|w| end(w[0]) <= w[1].0);
    (disjoint && slots.iter().all(in_bounds)).then_some(slots)
}

fn uses_buffer(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    free_names(f, s).buffers.contains(&buffer)
}

/// Returns (first element, number of elements) of an access to a buffer with a constant index; `None` if the index is not constant
/// or its lanes are not adjacent.
fn register_slot(f: &PrimFunc, index: Expr) -> Option<(i64, u16)> {
    match f.expr(index) {
        ExprData::Ramp(base, stride, lanes) if f.as_int(*stride) == Some(1) => {
            Some((f.as_int(*base)?, *lanes))
        }
        ExprData::Int(v, _) => Some((*v, 1)),
        _ => None,
    }
}
