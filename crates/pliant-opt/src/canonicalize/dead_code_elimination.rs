//! # What it does
//! Removes unused pure bindings, including those in plain blocks, branches and local functions, and private functions that are
//! unreachable (graph functions and loop functions).
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def unused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     return x
//!
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     with R.dataflow():
//!         lv = R.exp(x)
//!         lv1 = R.add(lv, lv)
//!         gv = R.multiply(x, x)
//!         gv1 = R.negative(lv1)
//!         R.output(gv, gv1)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
//!     with R.dataflow():
//!         gv = R.multiply(x, x)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! Calls with side effects, including in-place calls, and the bindings of their operands. A `match_cast` that may fail, or that
//! defines a used symbol.
//!
//! # Never
//! Removes a public function or a parameter; [`RemoveUnusedParameters`](crate::canonicalize::remove_unused_parameters) removes
//! parameters.

use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::type_lattice::{is_subtype, type_syms};
use pliant_ir::relax::visit::{Event, for_each_expr, type_vars, walk};
use pliant_ir::relax::{Binding, ExprData, Function, Seq, Type, TypeData, Var};
use pliant_ir::{Sym, SymVar};
use pliant_pass::binding_rewrites::{Substitution, remove_and_substitute};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::Effects;
use crate::canonicalize::eliminate_unused::{public_functions, remove_unreachable};
use crate::common::operators_after_lowering::format_names;

/// The pass that removes unused bindings and unreachable private functions (dead code elimination). See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct DeadCodeElimination {
    /// The names of private functions to keep in addition to the public functions. Functions that they call are kept, too.
    pub entry_functions: Vec<Arc<str>>,
}

impl ModulePass for DeadCodeElimination {
    fn name(&self) -> &str {
        "DeadCodeElimination"
    }

    fn opt_level(&self) -> u8 {
        1
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        if let Some(name) = self.entry_functions.iter().find(|n| module.get(n).is_none()) {
            let names = module.functions.keys().map(|n| &**n);
            let problem = Problem::new(format!("the entry function '{name}' does not exist"));
            let help = format_names("the functions of the module are:", names);
            return Err(PassError::User(vec![problem.with_help(help)]));
        }
        let effects = Effects::of(&module, ctx.ops);
        update_each_relax(&mut module, ctx, |_, func| Ok(remove_dead_bindings(func, &effects)))?;
        let mut roots = public_functions(&module);
        roots.extend(self.entry_functions.iter().cloned());
        remove_unreachable(&mut module, roots);
        Ok(module)
    }
}

/// Removes the unused pure bindings of a function. Returns whether it removed any.
pub(crate) fn remove_dead_bindings(func: &mut Function, effects: &Effects) -> bool {
    let needed_casts = casts_that_may_fail(func);
    let live = NeededBindings::of(func, effects, &needed_casts);
    let mut dead = FxHashSet::default();
    walk(func, func.root(), |event| {
        if let Event::EnterBinding(_, b) = event
            && !live.contains(&b.var)
        {
            dead.insert(b.var);
        }
    });
    !dead.is_empty() && remove_and_substitute(func, &dead, &Substitution::default())
}

/// Returns the variables that are bound to a `match_cast` that may fail for some value of its operand's type.
fn casts_that_may_fail(func: &mut Function) -> FxHashSet<Var> {
    let mut casts: Vec<(Binding, Type)> = Vec::new();
    let mut seen: FxHashSet<SymVar> = FxHashSet::default();
    walk(func, func.root(), |event| match event {
        Event::EnterFunc(id) => {
            for &p in &func.func(id).params {
                seen.extend(type_syms(func, func.var(p).ty));
            }
        }
        Event::EnterBinding(_, b) => casts.extend(b.cast.expand().map(|t| (b, t))),
        _ => {}
    });
    let mut out = FxHashSet::default();
    for (b, cast) in casts {
        if !never_fails(func, func.expr_ty(b.value), cast, &mut seen) {
            out.insert(b.var);
        }
        seen.extend(type_syms(func, cast));
    }
    out
}

/// Whether a `match_cast` from the type `value` to the type `cast` can never fail. A symbol that the cast defines matches any
/// size; such symbols are added to `seen`.
fn never_fails(func: &mut Function, value: Type, cast: Type, seen: &mut FxHashSet<SymVar>) -> bool {
    if is_subtype(func, value, cast).is_yes() {
        return true;
    }
    let (from, to) = (func.types.get(value).clone(), func.types.get(cast).clone());
    if let (TypeData::Tuple(x), TypeData::Tuple(y)) = (&from, &to) {
        let pairs = x.iter().zip(y);
        return x.len() == y.len()
            && pairs.fold(true, |ok, (&a, &b)| ok & never_fails(func, a, b, seen));
    }
    let same_kind = match (&from, &to) {
        (TypeData::Tensor { .. }, TypeData::Tensor { dtype, .. }) => {
            dtype.is_none() || from.dtype() == *dtype
        }
        (TypeData::Shape { .. }, TypeData::Shape { .. }) => true,
        _ => false,
    };
    let Some(dims) = to.dims() else { return false };
    if !same_kind || func.rank_of(value) != Some(dims.len() as u32) {
        return false;
    }
    dims.iter().enumerate().all(|(i, &dim)| {
        let fresh = func.syms.as_var(dim).is_some_and(|v| seen.insert(v));
        fresh || from.dims().is_some_and(|d| d[i] == dim)
    })
}

/// Marks the bindings that are needed: results, calls with side effects, and all bindings on which they depend.
struct NeededBindings<'a> {
    func: &'a Function,
    impure: &'a FxHashSet<Var>,
    bindings: FxHashMap<Var, Binding>,
    /// Maps each symbol to the variables of the `match_cast` bindings that define it.
    definers: FxHashMap<SymVar, Vec<Var>>,
    /// For each sequence, its impure bindings, which are needed whenever the sequence is needed.
    roots: FxHashMap<Seq, Vec<Var>>,
    live: FxHashSet<Var>,
    types: FxHashSet<Type>,
    syms: FxHashSet<SymVar>,
    pending: Vec<Var>,
}

impl<'a> NeededBindings<'a> {
    /// Returns the variables of all needed bindings. `checks` contains the variables of `match_cast` bindings that must be kept
    /// because they may fail.
    fn of(func: &'a Function, effects: &Effects, checks: &FxHashSet<Var>) -> FxHashSet<Var> {
        let mut impure = effects.impure_bindings(func, func.root());
        impure.extend(checks);
        let mut live = NeededBindings {
            func,
            impure: &impure,
            bindings: FxHashMap::default(),
            definers: FxHashMap::default(),
            roots: FxHashMap::default(),
            live: FxHashSet::default(),
            types: FxHashSet::default(),
            syms: FxHashSet::default(),
            pending: Vec::new(),
        };
        walk(func, func.root(), |event| live.index_binding(event));
        live.mark_function(func.root());
        while let Some(var) = live.pending.pop() {
            if let Some(&binding) = live.bindings.get(&var) {
                live.mark_binding(binding);
            }
        }
        live.live
    }

    fn index_binding(&mut self, event: Event) {
        let Event::EnterBinding(position, b) = event else { return };
        self.bindings.insert(b.var, b);
        if self.impure.contains(&b.var) {
            self.roots.entry(position.seq).or_default().push(b.var);
        }
        if let Some(cast) = b.cast.expand() {
            for v in type_syms(self.func, cast) {
                self.definers.entry(v).or_default().push(b.var);
            }
        }
    }

    fn mark_var(&mut self, var: Var) {
        if self.live.insert(var) {
            self.pending.push(var);
        }
    }

    fn mark_function(&mut self, id: pliant_ir::relax::FuncId) {
        let data = self.func.func(id);
        data.params.iter().for_each(|&p| self.mark_ty(self.func.var(p).ty));
        self.mark_ty(data.ret_ty);
        self.mark_sequence(data.body);
    }

    fn mark_sequence(&mut self, seq: Seq) {
        for var in self.roots.remove(&seq).unwrap_or_default() {
            self.mark_var(var);
        }
        self.mark_expr(self.func.seq(seq).result);
    }

    fn mark_binding(&mut self, b: Binding) {
        self.mark_ty(self.func.var(b.var).ty);
        b.cast.expand().into_iter().for_each(|t| self.mark_ty(t));
        self.mark_expr(b.value);
        match *self.func.expr(b.value) {
            ExprData::If { then_seq, else_seq, .. } => {
                self.mark_sequence(then_seq);
                self.mark_sequence(else_seq);
            }
            ExprData::Func(id) => self.mark_function(id),
            _ => {}
        }
    }

    fn mark_expr(&mut self, e: pliant_ir::relax::Expr) {
        let func = self.func;
        for_each_expr(func, e, |e| match func.expr(e) {
            ExprData::Var(v) => self.mark_var(*v),
            ExprData::Shape(dims) => dims.iter().for_each(|&d| self.mark_size(d)),
            ExprData::Int(v, _) => self.mark_size(*v),
            ExprData::Call { ty_args, .. } => {
                func.type_list(*ty_args).iter().for_each(|&t| self.mark_ty(t));
            }
            _ => {}
        });
    }

    fn mark_ty(&mut self, ty: Type) {
        if !self.types.insert(ty) {
            return;
        }
        for v in type_syms(self.func, ty) {
            self.mark_sym(v);
        }
        for v in type_vars(self.func, ty) {
            self.mark_var(v);
        }
    }

    fn mark_size(&mut self, s: Sym) {
        for v in self.func.syms.free_vars(s) {
            self.mark_sym(v);
        }
    }

    /// Marks the `match_cast` bindings that define a symbol as needed.
    fn mark_sym(&mut self, v: SymVar) {
        if self.syms.insert(v) {
            for var in self.definers.remove(&v).unwrap_or_default() {
                self.mark_var(var);
            }
        }
    }
}
