//! Helpers to rewrite graph functions binding by binding.
//!
//! The helpers take linear time and use explicit stacks, so neither the number of bindings nor the depth of nested sequences can
//! overflow the native stack.

use std::sync::Arc;

use pliant_diag::Span;
use pliant_ir::relax::{
    Binding, Block, BlockData, Callee, Expr, ExprData, FuncId, Function, Seq, TensorShape, Type,
    TypeData, Var,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::pass_error::PassError;

/// Returns all binding sequences that are reachable from the root function, in pre-order.
pub fn reachable_seqs(func: &Function) -> Vec<Seq> {
    let mut order = Vec::new();
    let mut stack = vec![func.body()];
    while let Some(seq) = stack.pop() {
        order.push(seq);
        let from = stack.len();
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                push_nested(func, binding.value, &mut stack);
            }
        }
        stack[from..].reverse();
    }
    order
}

fn push_nested(func: &Function, value: Expr, stack: &mut Vec<Seq>) {
    match func.expr(value) {
        ExprData::If { then_seq, else_seq, .. } => stack.extend([*then_seq, *else_seq]),
        ExprData::Func(id) => stack.push(func.func(*id).body),
        _ => {}
    }
}

/// Returns the root function and all local functions that are reachable from it, starting with the root.
pub fn reachable_funcs(func: &Function) -> Vec<FuncId> {
    let mut out = vec![func.root()];
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                if let ExprData::Func(id) = func.expr(binding.value) {
                    out.push(*id);
                }
            }
        }
    }
    out
}

/// Rewrites every binding of every reachable sequence. `f` receives a binding and pushes the bindings that replace it, possibly
/// none.
///
/// Nested sequences are rewritten after the enclosing ones. `f` is not called again for the bindings that it pushed. Nested
/// sequences of pushed bindings are rewritten if they were reachable before the call.
///
/// # Errors
/// The first error of `f`.
pub fn rewrite_bindings(
    func: &mut Function,
    mut f: impl FnMut(&mut Function, Binding, &mut Vec<Binding>) -> Result<(), PassError>,
) -> Result<(), PassError> {
    for seq in reachable_seqs(func) {
        for i in 0..func.seq(seq).blocks.len() {
            let block = func.seq(seq).blocks[i];
            let old = std::mem::take(&mut func.block_mut(block).bindings);
            let mut new = Vec::with_capacity(old.len());
            for binding in old {
                f(func, binding, &mut new)?;
            }
            func.block_mut(block).bindings = new;
        }
    }
    Ok(())
}

/// Removes all blocks of a sequence, and returns their bindings in order.
pub fn take_flat_bindings(func: &mut Function, seq: Seq) -> Vec<Binding> {
    let blocks = std::mem::take(&mut func.seq_mut(seq).blocks);
    let mut bindings = Vec::new();
    for block in blocks {
        bindings.append(&mut func.block_mut(block).bindings);
    }
    bindings
}

/// Replaces the blocks of a sequence by one block with the given bindings, which is not a dataflow block.
pub fn set_flat_bindings(func: &mut Function, seq: Seq, bindings: Vec<Binding>) {
    let blocks = if bindings.is_empty() {
        Vec::new()
    } else {
        vec![func.add_block(BlockData { dataflow: false, bindings })]
    };
    func.seq_mut(seq).blocks = blocks;
}

/// Removes the bindings of the variables in `dead`, applies the substitution to all bound values and to the results of all
/// sequences, and removes empty blocks. Returns whether a binding, value or result changed; removing empty blocks alone does not
/// count.
pub fn remove_and_substitute(
    func: &mut Function,
    dead: &FxHashSet<Var>,
    subst: &Substitution,
) -> bool {
    let mut changed = false;
    for seq in reachable_seqs(func) {
        for i in 0..func.seq(seq).blocks.len() {
            let block = func.seq(seq).blocks[i];
            let mut bindings = std::mem::take(&mut func.block_mut(block).bindings);
            let before = bindings.len();
            bindings.retain(|b| !dead.contains(&b.var));
            changed |= bindings.len() != before;
            for binding in &mut bindings {
                let value = subst.apply(func, binding.value);
                changed |= value != binding.value;
                binding.value = value;
            }
            func.block_mut(block).bindings = bindings;
        }
        changed |= substitute_result(func, seq, subst);
        drop_empty_blocks(func, seq);
    }
    changed
}

/// Applies a substitution to the result of a sequence. Returns whether the result changed.
pub fn substitute_result(func: &mut Function, seq: Seq, subst: &Substitution) -> bool {
    let old = func.seq(seq).result;
    let new = subst.apply(func, old);
    func.seq_mut(seq).result = new;
    new != old
}

/// Removes the empty binding blocks of a sequence. Returns whether any block was empty.
pub fn drop_empty_blocks(func: &mut Function, seq: Seq) -> bool {
    let old = func.seq(seq).blocks.clone();
    let new: Vec<_> = old.iter().copied().filter(|&b| !func.block(b).bindings.is_empty()).collect();
    let changed = new.len() != old.len();
    func.seq_mut(seq).blocks = new;
    changed
}

/// Returns the variables that are used outside of the binding block that defines them: in other blocks, in nested sequences or as
/// results of sequences.
pub fn read_outside_block(func: &Function) -> FxHashSet<Var> {
    let mut block_of: FxHashMap<Var, Block> = FxHashMap::default();
    let mut out = FxHashSet::default();
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            block_of.extend(func.block(block).bindings.iter().map(|b| (b.var, block)));
        }
    }
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            for binding in &func.block(block).bindings {
                for_each_operand_var(func, binding.value, &mut |v| {
                    if block_of.get(&v) != Some(&block) {
                        out.insert(v);
                    }
                });
            }
        }
        for_each_operand_var(func, func.seq(seq).result, &mut |v| {
            out.insert(v);
        });
    }
    out
}

/// Turns every dataflow variable that is used outside of its dataflow block into an output of the block, which is visible
/// outside.
pub fn mark_outputs(func: &mut Function) {
    let outside = read_outside_block(func);
    let vars: Vec<Var> = func.var_ids().filter(|v| outside.contains(v)).collect();
    for var in vars {
        func.var_mut(var).dataflow = false;
    }
}

/// Returns the shape variables that occur as the shape of a tensor type (`R.Tensor(shape_var)`) in the function's arena,
/// including types that no variable has.
pub fn shape_vars(func: &Function) -> FxHashSet<Var> {
    let types = (0..func.types.len()).map(|i| func.types.get(Type::from_u32(i as u32)));
    types
        .filter_map(|ty| match ty {
            TypeData::Tensor { shape: TensorShape::Var(v), .. } => Some(*v),
            _ => None,
        })
        .collect()
}

/// Calls `f` with every variable among the operands of an expression, including tuple fields. Nested sequences are not entered.
pub fn for_each_operand_var(func: &Function, e: Expr, f: &mut impl FnMut(Var)) {
    let mut stack = vec![e];
    while let Some(e) = stack.pop() {
        match func.expr(e) {
            ExprData::Var(v) => f(*v),
            ExprData::Tuple(list) => stack.extend(func.list(*list).iter().rev()),
            ExprData::TupleGetItem(tuple, _) => stack.push(*tuple),
            ExprData::Call { callee, args, .. } => {
                stack.extend(func.list(*args).iter().rev());
                if let Callee::Expr(callee) = callee {
                    stack.push(*callee);
                }
            }
            ExprData::If { cond, .. } => stack.push(*cond),
            _ => {}
        }
    }
}

/// Generates unique names for new variables of a function.
pub struct Namer {
    taken: FxHashMap<Arc<str>, u32>,
    span: Span,
}

impl Namer {
    /// Creates a generator of names that no variable of `func` has.
    pub fn new(func: &Function) -> Self {
        let taken = func.var_ids().map(|v| (func.var(v).name.clone(), 0)).collect();
        Namer { taken, span: Span::NONE }
    }

    /// Sets the source location that new variables get. Returns the location that was set before.
    pub fn set_span(&mut self, span: Span) -> Span {
        std::mem::replace(&mut self.span, span)
    }

    /// Returns the first unused name among `hint`, `hint1`, `hint2`, ...
    pub fn fresh(&mut self, hint: &str) -> Arc<str> {
        if !self.taken.contains_key(hint) {
            let name: Arc<str> = hint.into();
            self.taken.insert(name.clone(), 0);
            return name;
        }
        loop {
            let count = self
                .taken
                .get_mut(hint)
                .expect("the hint was found in the map of used names before");
            *count += 1;
            let name: Arc<str> = format!("{hint}{count}").into();
            if !self.taken.contains_key(&name) {
                self.taken.insert(name.clone(), 0);
                return name;
            }
        }
    }

    /// Creates a variable of type `ty` with an unused name derived from `hint`. The variable is not local to a dataflow block.
    pub fn var(&mut self, func: &mut Function, hint: &str, ty: Type) -> Var {
        let name = self.fresh(hint);
        func.add_var(name, ty, false, self.span)
    }

    /// Binds a value to a new variable of the value's type. Returns the variable as an operand.
    pub fn bind(
        &mut self,
        func: &mut Function,
        hint: &str,
        value: Expr,
        out: &mut Vec<Binding>,
    ) -> Expr {
        let ty = func.expr_ty(value);
        let var = self.var(func, hint, ty);
        out.push(Binding::bind(var, value));
        func.var_expr(var)
    }
}

/// A substitution of operands for variables, which can be applied to expressions.
#[derive(Default)]
pub struct Substitution {
    map: FxHashMap<Var, Expr>,
}

impl Substitution {
    /// Adds a replacement of the variable `var` by `operand`.
    pub fn insert(&mut self, var: Var, operand: Expr) {
        self.map.insert(var, operand);
    }

    /// Whether a variable is substituted.
    pub fn contains(&self, var: Var) -> bool {
        self.map.contains_key(&var)
    }

    /// Whether there are no substitutions.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns the expression with the substitution applied to the variables among its operands. Returns the same id if nothing
    /// changes.
    pub fn apply(&self, func: &mut Function, e: Expr) -> Expr {
        if self.map.is_empty() {
            return e;
        }
        map_leaves(func, e, &mut |func, leaf| match func.expr(leaf) {
            ExprData::Var(v) => self.map.get(v).copied().unwrap_or(leaf),
            _ => leaf,
        })
    }
}

/// Returns the expression with each leaf (variable, global name, constant, shape or scalar) replaced by the result of a callback.
/// Returns the same id if nothing changes. Branches and local functions are not entered.
pub fn map_leaves(
    func: &mut Function,
    e: Expr,
    f: &mut impl FnMut(&mut Function, Expr) -> Expr,
) -> Expr {
    map_leaves_at_depth(func, e, f, 0)
}

fn map_leaves_at_depth(
    func: &mut Function,
    e: Expr,
    f: &mut impl FnMut(&mut Function, Expr) -> Expr,
    depth: u32,
) -> Expr {
    // In A-normal form only tuples are nested, and the parser's limit for their depth is much lower.
    assert!(depth < 4096, "tuples are nested deeper than the parser allows");
    let ty = func.expr_ty(e);
    let mut all = |func: &mut Function, old: &[Expr]| -> Vec<Expr> {
        old.iter().map(|&x| map_leaves_at_depth(func, x, f, depth + 1)).collect()
    };
    match func.expr(e).clone() {
        ExprData::Tuple(list) => {
            let old = func.list(list).to_vec();
            let new = all(func, &old);
            if new == old { e } else { func.tuple(&new) }
        }
        ExprData::TupleGetItem(tuple, index) => {
            let new = all(func, &[tuple])[0];
            if new == tuple {
                return e;
            }
            // Simplify a field access of a tuple expression to the field.
            let field = func.tuple_fields(new).and_then(|f| f.get(index as usize).copied());
            field.unwrap_or_else(|| func.add_expr(ExprData::TupleGetItem(new, index), ty))
        }
        ExprData::Call { callee, args, attrs, ty_args } => {
            let new_callee = match callee {
                Callee::Expr(c) => Callee::Expr(all(func, &[c])[0]),
                op => op,
            };
            let old = func.list(args).to_vec();
            let new = all(func, &old);
            if new == old && new_callee == callee {
                return e;
            }
            let attrs = func.call_attrs(attrs).clone();
            let ty_args = func.type_list(ty_args).to_vec();
            func.call(new_callee, &new, attrs, &ty_args, ty)
        }
        ExprData::If { cond, then_seq, else_seq } => {
            let new = all(func, &[cond])[0];
            if new == cond {
                return e;
            }
            func.add_expr(ExprData::If { cond: new, then_seq, else_seq }, ty)
        }
        ExprData::Func(_) => e,
        _ => f(func, e),
    }
}
