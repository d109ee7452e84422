//! Creates variants of loop functions that overwrite one of their inputs with the result.

use pliant_ir::attr_names::OP_PATTERN;
use pliant_ir::tir::symbolic_integer_conversion::SymBridge;
use pliant_ir::tir::verify::verify_prim_func;
use pliant_ir::tir::visit::{
    Rewriter, copy_prim_func, for_each_child, for_each_expr_in, for_each_stmt, rewrite_stmt,
};
use pliant_ir::tir::{
    BlockData, Buffer, Expr, ExprData, Intrin, IterKind, PrimFunc, Stmt, StmtData, Var, VarTy,
};
use pliant_ir::{SymArena, tir};

/// Creates the variant of a loop function with `inputs` inputs and one output that overwrites input `at` with the output. Returns
/// `None` if this may change the result: each element of the input may only be read by the iteration that writes the same element
/// of the output.
pub(super) fn inplace_variant(f: &PrimFunc, inputs: usize, at: usize) -> Option<PrimFunc> {
    let tensors = f.params.iter().take_while(|&&p| f.var(p).ty == VarTy::Handle).count();
    if tensors != inputs + 1 || at >= inputs {
        return None;
    }
    let output = f.params[inputs];
    let (from, to) = (*f.buffer_map.get(&f.params[at])?, *f.buffer_map.get(&output)?);
    if !same_layout(f, from, to) || !reads_only_written_elements(f, from, to)? {
        return None;
    }
    let mut new = f.clone();
    new.body = rewrite_stmt(&mut new, f.body, &mut RedirectWrites { from: to, to: from });
    new.params.remove(inputs);
    new.buffer_map.shift_remove(&output);
    // The annotation describes the original function.
    new.attrs.shift_remove(OP_PATTERN);
    let new = copy_prim_func(&new);
    verify_prim_func(&new).is_empty().then_some(new)
}

/// Whether both buffers provably have the same dtype and layout for all sizes.
fn same_layout(f: &PrimFunc, a: Buffer, b: Buffer) -> bool {
    let (a, b) = (f.buffer(a), f.buffer(b));
    let compact = |d: &tir::BufferData| d.strides.is_empty() && d.elem_offset.is_none();
    let (mut arena, mut bridge) = (SymArena::new(), SymBridge::new());
    let mut equal_sizes = |x: Expr, y: Expr| {
        let dims = (bridge.to_sym(f, &mut arena, x), bridge.to_sym(f, &mut arena, y));
        matches!(dims, (Some(x), Some(y)) if x == y)
    };
    a.dtype == b.dtype
        && compact(a)
        && compact(b)
        && a.shape.len() == b.shape.len()
        && a.shape.iter().zip(&b.shape).all(|(&x, &y)| equal_sizes(x, y))
}

/// Whether each element of `from` is read only to compute the element of `to` with the same indices. `None` if the function has
/// side effects other than a single write to `to`, or if that write may store an element twice.
fn reads_only_written_elements(f: &PrimFunc, from: Buffer, to: Buffer) -> Option<bool> {
    let (mut writes, mut effects) = (Vec::new(), false);
    for_each_stmt(f, f.body, |s| match f.stmt(s) {
        StmtData::Store { buffer, .. } if *buffer == to || *buffer == from => writes.push(s),
        StmtData::While(..) | StmtData::Evaluate(_) => effects = true,
        _ => {}
    });
    for_each_expr_in(f, f.body, |e| {
        effects |= matches!(
            f.expr(e),
            ExprData::Call(Intrin::AddressOf | Intrin::CallPacked | Intrin::CallKernel, ..)
        );
    });
    let &[write] = &writes[..] else { return None };
    let StmtData::Store { buffer, indices, value } = f.stmt(write) else { return None };
    let (loops, block) = enclosing_loops_and_block(f, write)?;
    if effects || *buffer != to || !writes_each_element_once(f, block, &loops, indices) {
        return None;
    }
    let (mut reads, mut all_at_written_index) = (0, true);
    for_each_expr_in(f, f.body, |e| match f.expr(e) {
        ExprData::Load(b, at) if *b == from => {
            reads += 1;
            all_at_written_index &= at == indices;
        }
        ExprData::Load(b, _) => all_at_written_index &= *b != to,
        _ => {}
    });
    // All reads must be one expression, which occurs only in the stored value.
    let (mut in_value, mut outside_value) = (0, 0);
    for_each_stmt(f, f.body, |s| {
        pliant_ir::tir::visit::for_each_stmt_expr(f.stmt(s), |e| {
            let mut found = false;
            pliant_ir::tir::visit::for_each_expr(f, e, |e| {
                found |= matches!(f.expr(e), ExprData::Load(b, _) if *b == from);
            });
            if found {
                *(if s == write && e == *value { &mut in_value } else { &mut outside_value }) += 1;
            }
        });
    });
    Some(all_at_written_index && reads <= 1 && in_value == reads && outside_value == 0)
}

/// Returns (variables of the loops around a statement, innermost block around it).
fn enclosing_loops_and_block(f: &PrimFunc, target: Stmt) -> Option<(Vec<Var>, &BlockData)> {
    // The statement, the loops around it, the block around it.
    let mut stack = vec![(f.body, Vec::new(), None)];
    while let Some((s, loops, block)) = stack.pop() {
        if s == target {
            return block.map(|block| (loops, block));
        }
        let data = f.stmt(s);
        let (mut inner, mut own_block) = (loops, None);
        match data {
            StmtData::For { var, .. } => inner.push(*var),
            StmtData::Block(b) => own_block = Some(&**b),
            _ => {}
        }
        for_each_child(data, |c| stack.push((c, inner.clone(), own_block)));
    }
    None
}

/// Whether no element is written twice: each block axis is bound to its own loop variable, each index of the write is a different
/// block axis or 0, and all loops and axes are used.
fn writes_each_element_once(
    f: &PrimFunc,
    block: &BlockData,
    loops: &[Var],
    indices: &[Expr],
) -> bool {
    let mut unused_loops = loops.to_vec();
    let binds_all_loops = block.iters.iter().all(|it| {
        let at = match f.expr(it.binding) {
            ExprData::Var(v) => unused_loops.iter().position(|l| l == v),
            _ => None,
        };
        it.kind == IterKind::Spatial && at.map(|at| unused_loops.swap_remove(at)).is_some()
    });
    let mut axes: Vec<Var> = block.iters.iter().map(|it| it.var).collect();
    let indexes_all_axes = indices.iter().all(|&i| match f.expr(i) {
        ExprData::Var(v) => {
            axes.iter().position(|a| a == v).map(|at| axes.swap_remove(at)).is_some()
        }
        ExprData::Int(0, _) => true,
        _ => false,
    });
    block.init.is_none()
        && binds_all_loops
        && unused_loops.is_empty()
        && indexes_all_axes
        && axes.is_empty()
}

/// Redirects the writes to a buffer to another buffer.
struct RedirectWrites {
    from: Buffer,
    to: Buffer,
}

impl Rewriter for RedirectWrites {
    fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        match f.stmt(s).clone() {
            StmtData::Store { buffer, indices, value } if buffer == self.from => {
                f.add_stmt(StmtData::Store { buffer: self.to, indices, value })
            }
            StmtData::Block(mut b) => {
                for r in b.writes.iter_mut().flatten().filter(|r| r.buffer == self.from) {
                    r.buffer = self.to;
                }
                f.add_stmt(StmtData::Block(b))
            }
            _ => s,
        }
    }
}
