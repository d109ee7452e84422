//! Alias analysis. [`MemoryAliases`] determines which variables of a function may share memory, and which memory calls may write
//! to. [`ParamUses`] summarizes, for callers, which parameters each function may write to or return.

use std::sync::Arc;

use pliant_ir::attr_names::INPLACE_INDICES;
use pliant_ir::op::{CALL_PURE_PACKED, CALL_TIR_INPLACE, WHILE_LOOP};
use pliant_ir::relax::visit::{Event, operand_vars, value_free_vars, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, IRModule, Op};
use pliant_ops::op_declaration::Legalize;
use pliant_ops::{OpDecl, registry};
use rustc_hash::{FxHashMap, FxHashSet};

use super::call_graph::used_as_values;
use crate::common::operators_after_lowering::{
    ENSURE_ZERO_OFFSET, INVOKE_CLOSURE, INVOKE_PURE_CLOSURE, MAKE_CLOSURE, RESHAPE,
};

/// Whether a call may write to the memory of an argument, and whether the call may return the argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParamUse {
    /// Whether the call may write to the argument.
    pub written: bool,
    /// Whether the result of the call may be the argument or a view of it.
    pub returned: bool,
}

impl ParamUse {
    const ANY: ParamUse = ParamUse { written: true, returned: true };

    fn union(self, other: ParamUse) -> ParamUse {
        ParamUse {
            written: self.written || other.written,
            returned: self.returned || other.returned,
        }
    }
}

/// For each function of a module, the parameters to whose memory it may write or that it may return.
#[derive(Debug, Default)]
pub struct ParamUses {
    funcs: FxHashMap<Arc<str>, Vec<ParamUse>>,
    /// What a call of a function value may do to its arguments: the union over all parameters of all functions that are used as
    /// values, because the call may call any of these functions.
    any_function_value: ParamUse,
}

impl ParamUses {
    /// Computes [`ParamUses::of`] if the module contains in-place calls. Returns `None` for other modules, in which no call
    /// writes to an existing tensor.
    pub fn of_in_place_module(module: &IRModule) -> Option<Self> {
        module.has_inplace_calls().then(|| ParamUses::of(module))
    }

    /// Computes which parameters each function of a module may write to or return. This depends on the functions that each function
    /// calls, so the result is a least fixed point.
    pub fn of(module: &IRModule) -> Self {
        let mut uses = ParamUses::default();
        let values = used_as_values(module);
        if module.relax_funcs().any(|(_, f)| has_local_functions(f)) {
            uses.any_function_value = ParamUse::ANY;
        }
        for (name, f) in module.relax_funcs() {
            uses.funcs.insert(name.clone(), vec![ParamUse::default(); f.params().len()]);
        }
        loop {
            let mut changed = false;
            for (name, f) in module.relax_funcs() {
                let now = uses.param_uses_of(f);
                if uses.funcs[name] != now {
                    if values.contains(name) {
                        uses.any_function_value =
                            now.iter().fold(uses.any_function_value, |all, &one| all.union(one));
                    }
                    uses.funcs.insert(name.clone(), now);
                    changed = true;
                }
            }
            if !changed {
                return uses;
            }
        }
    }

    /// Returns what a call of `f` may do to each argument, given what is currently known about the functions that `f` calls.
    fn param_uses_of(&self, f: &Function) -> Vec<ParamUse> {
        let mut memory = MemoryAliases::of(f, self);
        let returned = operand_vars(f, f.seq(f.body()).result);
        let returned: FxHashSet<Var> = returned.into_iter().map(|v| memory.root(v)).collect();
        let of = |&p: &Var| {
            let root = memory.root(p);
            ParamUse { written: memory.written.contains(&root), returned: returned.contains(&root) }
        };
        f.params().iter().map(of).collect()
    }

    /// Returns whether a call of `callee` may write to or return argument `i`.
    fn argument_use(&self, f: &Function, callee: Expr, i: usize) -> ParamUse {
        match f.expr(callee) {
            ExprData::Extern(_) => ParamUse::default(),
            ExprData::Global(name) => {
                let param_use = self.funcs.get(f.str(*name)).and_then(|list| list.get(i));
                param_use.copied().unwrap_or(ParamUse::ANY)
            }
            _ => self.any_function_value,
        }
    }

    /// Returns the operands of a call that the call may write to or return, each with the possible uses (written, returned). Empty
    /// if `value` is no call.
    fn operand_uses(&self, f: &Function, value: Expr) -> Vec<(Expr, ParamUse)> {
        let ExprData::Call { callee, args, .. } = f.expr(value) else { return Vec::new() };
        let args = f.list(*args);
        let fields = |e: Expr| f.tuple_fields(e).map_or_else(|| vec![e], <[Expr]>::to_vec);
        let all = |list: Vec<Expr>, one: ParamUse| -> Vec<(Expr, ParamUse)> {
            list.into_iter().map(|e| (e, one)).collect()
        };
        match (callee, args) {
            (Callee::Op(MAKE_CLOSURE), &[target, captured]) => {
                // Captured values are passed after the function's own arguments.
                let captured = fields(captured);
                let params = match f.expr(target) {
                    ExprData::Global(name) => self.funcs.get(f.str(*name)).map(Vec::len),
                    _ => None,
                };
                let own_param_count = params.and_then(|n| n.checked_sub(captured.len()));
                let one = |(i, e)| match own_param_count {
                    Some(own_param_count) => (e, self.argument_use(f, target, own_param_count + i)),
                    None => (e, ParamUse::ANY),
                };
                captured.into_iter().enumerate().map(one).collect()
            }
            (Callee::Op(INVOKE_CLOSURE | INVOKE_PURE_CLOSURE), &[closure, args]) => {
                let mut out = all(fields(args), self.any_function_value);
                out.push((closure, ParamUse { written: false, returned: true }));
                out
            }
            (Callee::Op(WHILE_LOOP), &[_, _, ref state @ ..]) => all(state.to_vec(), ParamUse::ANY),
            (Callee::Op(op), &[first, ..]) if may_be_view(*op) => {
                vec![(first, ParamUse { written: false, returned: true })]
            }
            (Callee::Op(op), _) if op.writes_operands() => {
                let written_operands = overwritten_operands(f, value);
                written_operands.into_iter().map(|v| (f.var_expr(v), ParamUse::ANY)).collect()
            }
            (Callee::Op(_), _) => Vec::new(),
            (Callee::Expr(callee), args) => {
                let one = |(i, &e): (usize, &Expr)| (e, self.argument_use(f, *callee, i));
                let mut out: Vec<_> = args.iter().enumerate().map(one).collect();
                // A closure may return its captured values.
                out.push((*callee, ParamUse { written: false, returned: true }));
                out
            }
        }
    }

    /// Whether a value may share memory with its operands, or its computation may write to them.
    pub fn shares_or_writes_operands(&self, f: &Function, value: Expr) -> bool {
        match f.expr(value) {
            ExprData::Tuple(_) => true,
            ExprData::Call { callee: Callee::Op(op), .. } if op.writes_operands() => true,
            _ => self.operand_uses(f, value).iter().any(|(_, one)| *one != ParamUse::default()),
        }
    }
}

/// Whether a function contains local functions.
pub fn has_local_functions(f: &Function) -> bool {
    let mut found = false;
    walk(f, f.root(), |event| {
        found |= matches!(event, Event::LeaveBinding(_, b) if matches!(f.expr(b.value), ExprData::Func(_)));
    });
    found
}

/// The sets of variables of a function that may share memory, and which of these sets may be written to.
#[derive(Default)]
pub struct MemoryAliases {
    /// The parent of each variable in a union-find forest. Variables of one tree may share memory.
    alias_parents: FxHashMap<Var, Var>,
    /// The sets of aliased variables whose memory may be written to. Each set is identified by its representative, the root in
    /// the union-find forest.
    written: FxHashSet<Var>,
    /// Maps each variable to those variables in its definition with which it may share memory, because its value may be their
    /// value or a view of it.
    sources: FxHashMap<Var, Vec<Var>>,
    /// The variables whose values the function returns, directly or as views.
    returned: FxHashSet<Var>,
    /// The variables whose definition creates new memory, which no earlier value shares.
    pub fresh: FxHashSet<Var>,
    /// The parameters of the function and of its local functions. Callers may pass the same tensor for several of them.
    params: Vec<Var>,
}

impl MemoryAliases {
    /// Computes which variables of a function may share memory.
    pub fn of(f: &Function, uses: &ParamUses) -> Self {
        let mut memory = MemoryAliases::default();
        let mut written = Vec::new();
        walk(f, f.root(), |event| match event {
            Event::EnterFunc(id) => memory.params.extend(&f.func(id).params),
            Event::LeaveBinding(_, b) => memory.bind(f, uses, b, &mut written),
            _ => {}
        });
        memory.mark_written(written);
        memory
    }

    /// Computes which variables of a function may share memory, like [`of`](Self::of), but counts returned values as written to,
    /// because the caller may write to them.
    pub fn of_with_results_written(f: &Function, uses: &ParamUses) -> Self {
        let mut memory = MemoryAliases::of(f, uses);
        let mut pending = Vec::new();
        walk(f, f.root(), |event| {
            if let Event::EnterFunc(id) = event {
                pending.extend(operand_vars(f, f.seq(f.func(id).body).result));
            }
        });
        while let Some(v) = pending.pop() {
            if memory.returned.insert(v) {
                pending.extend(memory.sources.get(&v).into_iter().flatten());
            }
        }
        memory
    }

    /// The variables whose values the function returns, directly or as views.
    pub fn returned(&self) -> impl Iterator<Item = Var> + use<'_> {
        self.returned.iter().copied()
    }

    /// Records that the memory of these variables may be written to.
    fn mark_written(&mut self, vars: impl IntoIterator<Item = Var>) {
        let roots: Vec<Var> = vars.into_iter().map(|v| self.root(v)).collect();
        self.written.extend(roots);
    }

    /// Whether the memory of a variable may be written to.
    pub fn is_written(&mut self, v: Var) -> bool {
        let root = self.root(v);
        self.returned.contains(&v) || self.written.contains(&root)
    }

    /// Whether the memory of a view may be written to through any alias. Unlike [`is_written`](Self::is_written), this method
    /// assumes that parameters may alias each other.
    pub fn view_is_written(&mut self, v: Var) -> bool {
        if self.is_written(v) {
            return true;
        }
        let root = self.root(v);
        let params: Vec<Var> = self.params.clone().into_iter().map(|p| self.root(p)).collect();
        params.contains(&root) && params.iter().any(|p| self.written.contains(p))
    }

    fn bind(&mut self, f: &Function, uses: &ParamUses, b: Binding, written: &mut Vec<Var>) {
        let mut shared = Vec::new();
        match f.expr(b.value) {
            ExprData::Var(_) | ExprData::Tuple(_) | ExprData::TupleGetItem(..) => {
                shared = operand_vars(f, b.value);
            }
            ExprData::If { then_seq, else_seq, .. } => {
                for seq in [*then_seq, *else_seq] {
                    shared.extend(operand_vars(f, f.seq(seq).result));
                }
            }
            // A closure may return the variables that it captures.
            ExprData::Func(_) => shared = value_free_vars(f, b.value),
            _ => {
                for (e, one) in uses.operand_uses(f, b.value) {
                    let vars = leaf_vars(f, e);
                    written.extend(vars.iter().filter(|_| one.written));
                    shared.extend(vars.iter().filter(|_| one.returned));
                }
            }
        }
        for &v in &shared {
            let (a, b) = (self.root(b.var), self.root(v));
            if a != b {
                self.alias_parents.insert(a, b);
            }
        }
        if shared.is_empty() && !is_packed_function_call(f, b.value) {
            self.fresh.insert(b.var);
        }
        self.sources.insert(b.var, shared);
    }

    /// Returns the representative (union-find root) of the set of variables that may share memory with `v`.
    fn root(&mut self, v: Var) -> Var {
        let mut root = v;
        while let Some(&next) = self.alias_parents.get(&root) {
            root = next;
        }
        let mut v = v;
        while let Some(next) = self.alias_parents.get_mut(&v) {
            v = std::mem::replace(next, root);
        }
        root
    }
}

/// Whether a value is the result of a packed function. Such a function may return an argument, or keep a reference to its result.
fn is_packed_function_call(f: &Function, value: Expr) -> bool {
    match f.expr(value) {
        ExprData::Call { callee: Callee::Op(CALL_PURE_PACKED), .. } => true,
        ExprData::Call { callee: Callee::Expr(callee), .. } => {
            matches!(f.expr(*callee), ExprData::Extern(_))
        }
        _ => false,
    }
}

/// Returns the variables that are bound to a constant whose memory this function or its caller may write to. Such a constant must
/// not be duplicated, because all reads of the variable must see the same tensor.
pub fn written_constants(f: &Function, memory: &mut MemoryAliases) -> FxHashSet<Var> {
    let mut constants = Vec::new();
    walk(f, f.root(), |event| {
        if let Event::LeaveBinding(_, b) = event
            && let ExprData::Constant(_) = f.expr(b.value)
        {
            constants.push(b.var);
        }
    });
    constants.into_iter().filter(|&c| memory.is_written(c)).collect()
}

/// Returns the variables of an operand: the operand itself if it is a variable, or all variables in a tuple.
fn leaf_vars(f: &Function, e: Expr) -> Vec<Var> {
    match f.expr(e) {
        ExprData::Var(v) => vec![*v],
        _ => operand_vars(f, e),
    }
}

/// Whether the VM may implement an operator by returning its first operand or a view of it.
pub(crate) fn may_be_view(op: Op) -> bool {
    let is_declared_view = |decl: &OpDecl| matches!(decl.legalize, Legalize::View(_));
    op == RESHAPE || op == ENSURE_ZERO_OFFSET || registry().decl(op).is_some_and(is_declared_view)
}

/// Returns the operands that an in-place call overwrites.
pub(crate) fn overwritten_operands(func: &Function, value: Expr) -> Vec<Var> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(value) else {
        return Vec::new();
    };
    let args = func.list(*args);
    let operands = match args {
        [_, inputs, ..] if *op == CALL_TIR_INPLACE => func.tuple_fields(*inputs),
        _ => args.get(1..),
    };
    let indices = func.call_attrs(*attrs).get(INPLACE_INDICES).and_then(AttrValue::as_ints);
    let (Some(operands), Some(indices)) = (operands, indices) else {
        return operand_vars(func, value);
    };
    let written_operands = indices.iter().filter_map(|&i| operands.get(usize::try_from(i).ok()?));
    written_operands.flat_map(|&e| operand_vars(func, e)).collect()
}
