//! Checkpoints: the values between `R.grad.start_checkpoint` and `R.grad.end_checkpoint` are computed again for the gradients.
//!
//! The copies read the operands of `start_checkpoint` through the same operator, so that no pass replaces a copy by the original
//! value.

use pliant_ir::relax::visit::operand_vars;
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, Op};
use pliant_ops::gradient::GradientBuilder;
use pliant_pass::binding_rewrites::{Substitution, map_leaves};
use rustc_hash::{FxHashMap, FxHashSet};

pub(super) const START: Op = Op::new("relax.grad.start_checkpoint");
pub(super) const END: Op = Op::new("relax.grad.end_checkpoint");
pub(super) const NO_GRAD: Op = Op::new("relax.grad.no_grad");

/// The operator and the first operand of a call of a marker operator.
pub(super) fn marker(func: &Function, value: Expr) -> Option<(Op, Expr)> {
    let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else { return None };
    let is_marker = [START, END, NO_GRAD].contains(op);
    func.list(*args).first().filter(|_| is_marker).map(|&arg| (*op, arg))
}

/// The bindings of one sequence that are computed again.
pub(super) struct Checkpoints {
    /// For each variable that is computed again, the position of its binding.
    positions: FxHashMap<Var, usize>,
    bindings: Vec<Binding>,
    /// The operands of `start_checkpoint`.
    starts: FxHashSet<Var>,
    copies: FxHashMap<Var, Expr>,
}

impl Checkpoints {
    /// Finds the variables between checkpoints in `bindings`, which contain the markers.
    pub(super) fn of(func: &Function, bindings: &[Binding]) -> Self {
        let (mut inside, mut starts, mut stored) =
            (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        let mut open: FxHashSet<Var> = FxHashSet::default();
        for b in bindings {
            let operand = marker(func, b.value);
            let var_of = |e: Expr| match func.expr(e) {
                ExprData::Var(v) => Some(*v),
                _ => None,
            };
            match operand {
                Some((START, arg)) => {
                    open.insert(b.var);
                    starts.extend(var_of(arg));
                }
                Some((END, arg)) => stored.extend(var_of(arg)),
                _ => {
                    if operand_vars(func, b.value).iter().any(|v| open.contains(v)) {
                        open.insert(b.var);
                        // Values of branches and local functions are stored, because their bodies cannot be shared.
                        if !matches!(func.expr(b.value), ExprData::If { .. } | ExprData::Func(_)) {
                            inside.insert(b.var);
                        }
                    }
                }
            }
        }
        let positions = bindings
            .iter()
            .enumerate()
            .filter(|(_, b)| inside.contains(&b.var) && !stored.contains(&b.var))
            .map(|(i, b)| (b.var, i))
            .collect();
        Checkpoints { positions, bindings: Vec::new(), starts, copies: FxHashMap::default() }
    }

    /// Sets the bindings without markers, at the same positions as the original ones.
    pub(super) fn set_bindings(&mut self, bindings: Vec<Binding>) {
        self.bindings = bindings;
    }

    /// Replaces the variables in an expression that are computed again by copies, and emits the copies that do not exist yet.
    pub(super) fn replace(&mut self, builder: &GradientBuilder, e: Expr) -> Expr {
        if self.positions.is_empty() {
            return e;
        }
        let needed = self.needed(builder, e);
        for i in needed {
            let Binding { var, value, .. } = self.bindings[i];
            for start in builder.read(|f| operand_vars(f, value)) {
                if self.starts.contains(&start) && !self.copies.contains_key(&start) {
                    let operand = builder.read(|f| f.var_expr(start));
                    let barrier = builder.call_op(START, &[operand], Attrs::default());
                    let name = builder.read(|f| format!("{}_cp", f.var(start).name));
                    let copy = builder.bind(barrier, &name);
                    self.copies.insert(start, copy);
                }
            }
            let value = self.substituted(builder, value, true);
            let name = builder.read(|f| format!("{}_cp", f.var(var).name));
            let copy = builder.bind(value, &name);
            self.copies.insert(var, copy);
        }
        self.substituted(builder, e, false)
    }

    /// The positions of the bindings that must be computed again for `e`, in order.
    fn needed(&self, builder: &GradientBuilder, e: Expr) -> Vec<usize> {
        let mut worklist = builder.read(|f| operand_vars(f, e));
        let (mut seen, mut needed) = (FxHashSet::default(), Vec::new());
        while let Some(var) = worklist.pop() {
            let position = self.positions.get(&var).filter(|_| !self.copies.contains_key(&var));
            if let Some(&i) = position
                && seen.insert(var)
            {
                needed.push(i);
                worklist.extend(builder.read(|f| operand_vars(f, self.bindings[i].value)));
            }
        }
        needed.sort_unstable();
        needed
    }

    /// The expression with the copies instead of the variables. The operands of `start_checkpoint` are only replaced in copies.
    fn substituted(&self, builder: &GradientBuilder, e: Expr, in_copy: bool) -> Expr {
        builder.edit(|func| {
            map_leaves(func, e, &mut |func, leaf| match func.expr(leaf) {
                ExprData::Var(v) if in_copy || !self.starts.contains(v) => {
                    self.copies.get(v).copied().unwrap_or(leaf)
                }
                _ => leaf,
            })
        })
    }
}

/// Removes the markers from bindings: their variables are replaced by their operands. `no_grad` stays. Returns the bindings, of
/// which `None` are removed ones, and the replacements.
pub(super) fn without_markers(
    func: &mut Function,
    bindings: &[Binding],
) -> (Vec<Option<Binding>>, Substitution) {
    let mut subst = Substitution::default();
    let out = bindings
        .iter()
        .map(|&b| {
            let value = subst.apply(func, b.value);
            match marker(func, value) {
                Some((START | END, operand)) => {
                    subst.insert(b.var, operand);
                    None
                }
                _ => Some(Binding { value, ..b }),
            }
        })
        .collect();
    (out, subst)
}
