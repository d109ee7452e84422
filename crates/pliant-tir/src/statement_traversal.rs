//! Traversal and rewriting of the statements and expressions of loop functions.

use pliant_ir::tir::visit::{for_each_expr, for_each_operand};
use pliant_ir::tir::{
    BlockData, Buffer, BufferData, BufferRegion, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData,
    Var,
};
use rustc_hash::FxHashMap;

/// Returns the direct children of a statement.
pub fn children(data: &StmtData) -> Vec<Stmt> {
    match data {
        StmtData::Seq(list) => list.clone(),
        StmtData::For { body, .. }
        | StmtData::While(_, body)
        | StmtData::Let(_, _, body)
        | StmtData::Alloc(_, body)
        | StmtData::Assert(_, _, body) => vec![*body],
        StmtData::If(_, then, other) => std::iter::once(*then).chain(*other).collect(),
        StmtData::Store { .. } | StmtData::Evaluate(_) => Vec::new(),
        StmtData::Block(b) => b.init.into_iter().chain([b.body]).collect(),
    }
}

/// Calls `visit` with a statement and all its descendants, in pre-order.
pub fn for_each_stmt(f: &PrimFunc, s: Stmt, visit: &mut dyn FnMut(Stmt, &StmtData)) {
    let mut stack = vec![s];
    while let Some(s) = stack.pop() {
        let data = f.stmt(s);
        visit(s, data);
        stack.extend(children(data).into_iter().rev());
    }
}

/// Calls `visit` with the expressions of a statement, but not with those of nested statements. The regions (read and write sets)
/// of blocks are skipped, because they are only annotations.
pub fn direct_exprs(data: &StmtData, mut visit: impl FnMut(Expr)) {
    match data {
        StmtData::For { min, extent, .. } => {
            visit(*min);
            visit(*extent);
        }
        StmtData::While(e, _)
        | StmtData::If(e, ..)
        | StmtData::Let(_, e, _)
        | StmtData::Evaluate(e)
        | StmtData::Assert(e, ..) => visit(*e),
        StmtData::Store { indices, value, .. } => {
            indices.iter().copied().for_each(&mut visit);
            visit(*value);
        }
        StmtData::Block(b) => {
            for iter in &b.iters {
                visit(iter.min);
                visit(iter.extent);
                visit(iter.binding);
            }
            b.predicate.into_iter().for_each(visit);
        }
        StmtData::Seq(_) | StmtData::Alloc(..) => {}
    }
}

/// Rebuilds an expression with each of its direct operands replaced by the result of `map`.
pub fn map_operands(
    f: &mut PrimFunc,
    e: Expr,
    mut map: impl FnMut(&mut PrimFunc, Expr) -> Expr,
) -> Expr {
    let mut data = f.expr(e).clone();
    let mut changed = false;
    let mut map_slot = |f: &mut PrimFunc, slot: &mut Expr| {
        let new = map(f, *slot);
        changed |= new != *slot;
        *slot = new;
    };
    match &mut data {
        ExprData::Int(..) | ExprData::Float(..) | ExprData::Str(_) | ExprData::Var(_) => {}
        ExprData::Cast(_, a) | ExprData::Not(a) | ExprData::Broadcast(a, _) => map_slot(f, a),
        ExprData::Binary(_, a, b) | ExprData::Ramp(a, b, _) => {
            map_slot(f, a);
            map_slot(f, b);
        }
        ExprData::Select(c, a, b) => {
            map_slot(f, c);
            map_slot(f, a);
            map_slot(f, b);
        }
        ExprData::Load(_, args) | ExprData::Call(_, args, _) => {
            args.iter_mut().for_each(|a| map_slot(f, a))
        }
    }
    if changed { f.add_expr(data) } else { e }
}

/// Rewrites expressions bottom-up, with memoization.
pub struct ExprRewriter<'r> {
    rule: &'r mut dyn FnMut(&mut PrimFunc, Expr) -> Option<Expr>,
    memo: FxHashMap<Expr, Expr>,
}

impl<'r> ExprRewriter<'r> {
    /// Creates a rewriter. `rule` is called with each expression after its operands were rewritten, and may return a replacement.
    pub fn new(rule: &'r mut dyn FnMut(&mut PrimFunc, Expr) -> Option<Expr>) -> Self {
        ExprRewriter { rule, memo: FxHashMap::default() }
    }

    /// Rewrites an expression and its nested expressions with the rule.
    pub fn expr(&mut self, f: &mut PrimFunc, root: Expr) -> Expr {
        // Depth first with an explicit stack, because the expressions of fused operators are deeply nested.
        let mut stack = vec![(root, false)];
        while let Some((e, ready)) = stack.pop() {
            if self.memo.contains_key(&e) {
                continue;
            }
            if !ready {
                stack.push((e, true));
                for_each_operand(f.expr(e), |a| stack.push((a, false)));
                continue;
            }
            let memo = &self.memo;
            let new = map_operands(f, e, |_, a| memo[&a]);
            let new = (self.rule)(f, new).unwrap_or(new);
            self.memo.insert(e, new);
        }
        self.memo[&root]
    }

    /// Rewrites all expressions in a statement and its descendants. Returns `s` itself if none changes.
    pub fn stmt(&mut self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        map_stmt(f, s, &mut |f, e| self.expr(f, e))
    }
}

/// Rebuilds a statement and its descendants with every expression replaced by the result of `map`.
pub fn map_stmt(
    f: &mut PrimFunc,
    s: Stmt,
    map: &mut dyn FnMut(&mut PrimFunc, Expr) -> Expr,
) -> Stmt {
    let data = f.stmt(s).clone();
    let mut changed = false;
    macro_rules! e {
        ($x:expr) => {{
            let new = map(f, $x);
            changed |= new != $x;
            new
        }};
    }
    macro_rules! s {
        ($x:expr) => {{
            let new = map_stmt(f, $x, map);
            changed |= new != $x;
            new
        }};
    }
    let new = match data {
        StmtData::Seq(list) => StmtData::Seq(list.into_iter().map(|x| s!(x)).collect()),
        StmtData::For { var, min, extent, kind, body, annotations } => {
            let (min, extent) = (e!(min), e!(extent));
            StmtData::For { var, min, extent, kind, body: s!(body), annotations }
        }
        StmtData::While(c, body) => StmtData::While(e!(c), s!(body)),
        StmtData::If(c, then, other) => {
            let (c, then) = (e!(c), s!(then));
            StmtData::If(c, then, other.map(|x| s!(x)))
        }
        StmtData::Let(v, value, body) => StmtData::Let(v, e!(value), s!(body)),
        StmtData::Store { buffer, indices, value } => {
            let indices = indices.iter().map(|&i| e!(i)).collect();
            StmtData::Store { buffer, indices, value: e!(value) }
        }
        StmtData::Alloc(b, body) => {
            let body = s!(body);
            let shape = f.buffer(b).shape.clone();
            let mapped: Vec<Expr> = shape.iter().map(|&dim| e!(dim)).collect();
            match mapped == shape {
                true => StmtData::Alloc(b, body),
                // Other statements may use the buffer with its old shape, such as another copy of an unrolled loop body.
                false => {
                    let data = BufferData { shape: mapped, ..f.buffer(b).clone() };
                    let new = f.add_buffer(data);
                    StmtData::Alloc(new, replace_buffer(f, body, b, new))
                }
            }
        }
        StmtData::Evaluate(x) => StmtData::Evaluate(e!(x)),
        StmtData::Assert(c, message, body) => StmtData::Assert(e!(c), message, s!(body)),
        StmtData::Block(b) => {
            let mut b: BlockData = *b;
            for iter in &mut b.iters {
                (iter.min, iter.extent, iter.binding) =
                    (e!(iter.min), e!(iter.extent), e!(iter.binding));
            }
            b.predicate = b.predicate.map(|p| e!(p));
            for region in [&mut b.reads, &mut b.writes].into_iter().flatten().flatten() {
                let BufferRegion { region, .. } = region;
                for (start, extent) in region {
                    (*start, *extent) = (e!(*start), e!(*extent));
                }
            }
            b.init = b.init.map(|x| s!(x));
            b.body = s!(b.body);
            StmtData::Block(Box::new(b))
        }
    };
    if changed { f.add_stmt(new) } else { s }
}

/// Whether an expression loads from a buffer or uses its address.
pub fn loads(f: &PrimFunc, e: Expr, buffer: Buffer) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| found |= matches!(f.expr(e), ExprData::Load(b, _) if *b == buffer));
    found
}

/// Whether a statement loads from a buffer or uses its address.
pub fn loads_in(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let mut found = false;
    for_each_stmt(f, s, &mut |_, data| direct_exprs(data, |e| found |= loads(f, e, buffer)));
    found
}

/// Whether a statement reads or writes a buffer.
pub fn accesses(f: &PrimFunc, s: Stmt, buffer: Buffer) -> bool {
    let mut stores = false;
    for_each_stmt(f, s, &mut |_, data| {
        stores |= matches!(data, StmtData::Store { buffer: b, .. } if *b == buffer);
    });
    stores || loads_in(f, s, buffer)
}

/// Replaces a buffer in a statement by another buffer of the same rank.
fn replace_buffer(f: &mut PrimFunc, s: Stmt, from: Buffer, to: Buffer) -> Stmt {
    let mut rule = |f: &mut PrimFunc, e: Expr| match f.expr(e).clone() {
        ExprData::Load(b, indices) if b == from => Some(f.load(to, &indices)),
        _ => None,
    };
    let s = ExprRewriter::new(&mut rule).stmt(f, s);
    map_stmts(f, s, &mut |f, s| match f.stmt(s).clone() {
        StmtData::Store { buffer, indices, value } if buffer == from => {
            Some(f.store(to, &indices, value))
        }
        StmtData::Block(mut block) => {
            let regions = [&mut block.reads, &mut block.writes];
            for region in regions.into_iter().flatten().flatten().filter(|r| r.buffer == from) {
                region.buffer = to;
            }
            Some(f.add_stmt(StmtData::Block(block)))
        }
        _ => None,
    })
}

/// Replaces variables by expressions in a statement.
pub fn substitute(f: &mut PrimFunc, s: Stmt, map: &FxHashMap<Var, Expr>) -> Stmt {
    if map.is_empty() {
        return s;
    }
    let mut rule = substitution_rule(map);
    ExprRewriter::new(&mut rule).stmt(f, s)
}

/// Replaces variables by expressions in an expression.
pub fn substitute_expr(f: &mut PrimFunc, e: Expr, map: &FxHashMap<Var, Expr>) -> Expr {
    let mut rule = substitution_rule(map);
    ExprRewriter::new(&mut rule).expr(f, e)
}

fn substitution_rule(
    map: &FxHashMap<Var, Expr>,
) -> impl FnMut(&mut PrimFunc, Expr) -> Option<Expr> {
    |f, e| match f.expr(e) {
        ExprData::Var(v) => map.get(v).copied(),
        _ => None,
    }
}

/// Whether an expression uses any of the variables for which `vars` returns true.
pub fn uses_any(f: &PrimFunc, e: Expr, vars: &dyn Fn(Var) -> bool) -> bool {
    let mut found = false;
    pliant_ir::tir::visit::for_each_expr(f, e, |e| {
        if let ExprData::Var(v) = f.expr(e) {
            found |= vars(*v);
        }
    });
    found
}

/// Whether an expression calls a packed function, a linked function or a kernel.
pub fn calls_functions(f: &PrimFunc, e: Expr) -> bool {
    let mut found = false;
    for_each_expr(f, e, |e| {
        found |= matches!(
            f.expr(e),
            ExprData::Call(Intrin::CallPacked | Intrin::CallExtern | Intrin::CallKernel, ..)
        );
    });
    found
}

/// Rebuilds a statement bottom-up. `rule` is called with each statement after its children were rebuilt, and may return a
/// replacement.
pub fn map_stmts(
    f: &mut PrimFunc,
    s: Stmt,
    rule: &mut dyn FnMut(&mut PrimFunc, Stmt) -> Option<Stmt>,
) -> Stmt {
    let new = map_children(f, s, &mut |f, c| map_stmts(f, c, rule));
    rule(f, new).unwrap_or(new)
}

/// Rebuilds a statement with each direct child replaced by the result of `map`.
pub fn map_children(
    f: &mut PrimFunc,
    s: Stmt,
    map: &mut dyn FnMut(&mut PrimFunc, Stmt) -> Stmt,
) -> Stmt {
    let mut data = f.stmt(s).clone();
    let mut changed = false;
    {
        let mut map_slot = |slot: &mut Stmt| {
            let new = map(f, *slot);
            changed |= new != *slot;
            *slot = new;
        };
        match &mut data {
            StmtData::Seq(list) => list.iter_mut().for_each(map_slot),
            StmtData::For { body, .. }
            | StmtData::While(_, body)
            | StmtData::Let(_, _, body)
            | StmtData::Alloc(_, body)
            | StmtData::Assert(_, _, body) => map_slot(body),
            StmtData::If(_, then, other) => {
                map_slot(then);
                other.iter_mut().for_each(map_slot);
            }
            StmtData::Store { .. } | StmtData::Evaluate(_) => {}
            StmtData::Block(b) => {
                b.init.iter_mut().for_each(&mut map_slot);
                map_slot(&mut b.body);
            }
        }
    }
    if changed { f.add_stmt(data) } else { s }
}

/// Makes the variables of all loops and `let`s distinct. If several statements bind the same variable, all but the first of them
/// get a new variable.
pub fn unique_vars(f: &mut PrimFunc, s: Stmt) -> Stmt {
    fn rename(f: &mut PrimFunc, s: Stmt, seen: &mut rustc_hash::FxHashSet<Var>) -> Stmt {
        let (StmtData::For { var, .. } | StmtData::Let(var, ..)) = *f.stmt(s) else {
            return map_children(f, s, &mut |f, c| rename(f, c, seen));
        };
        let mut s = s;
        if !seen.insert(var) {
            let data = f.var(var).clone();
            let fresh = f.add_var(data.name, data.ty);
            seen.insert(fresh);
            let e = f.var_expr(fresh);
            let map = FxHashMap::from_iter([(var, e)]);
            let new = match f.stmt(s).clone() {
                StmtData::For { min, extent, kind, body, annotations, .. } => {
                    let body = substitute(f, body, &map);
                    StmtData::For { var: fresh, min, extent, kind, body, annotations }
                }
                StmtData::Let(_, value, body) => {
                    StmtData::Let(fresh, value, substitute(f, body, &map))
                }
                _ => unreachable!("only loops and lets bind a variable"),
            };
            s = f.add_stmt(new);
        }
        map_children(f, s, &mut |f, c| rename(f, c, seen))
    }
    rename(f, s, &mut rustc_hash::FxHashSet::default())
}

/// Calls `visit` once with an expression and each of its subexpressions, except the indices of loads.
pub fn for_each_value(f: &PrimFunc, e: Expr, mut visit: impl FnMut(Expr)) {
    let (mut stack, mut seen) = (vec![e], rustc_hash::FxHashSet::default());
    while let Some(e) = stack.pop() {
        if seen.insert(e) {
            visit(e);
            if !matches!(f.expr(e), ExprData::Load(..)) {
                for_each_operand(f.expr(e), |a| stack.push(a));
            }
        }
    }
}
