//! Computes the variables and symbols that local functions capture from the scopes around them.

use std::sync::Arc;

use indexmap::IndexSet;
use pliant_ir::SymVar;
use pliant_ir::relax::type_lattice::{definable_syms, solvable_syms, type_syms};
use pliant_ir::relax::visit::{
    Event, bound_vars, for_each_expr, for_each_sym, operand_vars, type_vars, walk,
};
use pliant_ir::relax::{ExprData, FuncId, Function, Seq, Type, Var};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

type OrderedSet<T> = IndexSet<T, FxBuildHasher>;

/// A local function, with its captured variables and symbols.
pub(super) struct LocalFunc {
    /// The id of the function expression.
    pub id: FuncId,
    /// The variable to which the function is bound.
    pub var: Var,
    /// The id of the enclosing function expression, which contains the binding.
    pub parent: FuncId,
    /// The name of the lifted function in the module; empty until it is assigned.
    pub name: Arc<str>,
    /// The captured variables, in the order of the parameters that the lifted function has for them.
    pub vars: Vec<Var>,
    /// The captured symbols that no captured variable defines, in the order of the parameters that the lifted function has for
    /// them.
    pub syms: Vec<SymVar>,
}

/// All local functions of a graph function, and the variables bound to them.
pub(super) struct LocalFuncs {
    /// The local functions in source order; enclosing functions precede nested ones.
    pub funcs: Vec<LocalFunc>,
    by_id: FxHashMap<FuncId, usize>,
    by_var: FxHashMap<Var, usize>,
    /// Maps each sequence to the function expression that contains it.
    pub owners: FxHashMap<Seq, FuncId>,
}

impl LocalFuncs {
    /// Finds the local functions and computes their captures.
    pub fn of(func: &Function) -> LocalFuncs {
        let mut local_funcs = LocalFuncs {
            funcs: Vec::new(),
            by_id: FxHashMap::default(),
            by_var: FxHashMap::default(),
            owners: FxHashMap::default(),
        };
        let syms_in_scope = local_funcs.find_local_funcs(func);
        local_funcs.compute_captures(func, &syms_in_scope);
        local_funcs
    }

    /// Returns the index in `funcs` of the local function `id`; `None` for the root function.
    pub fn index_of(&self, id: FuncId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    /// Returns the local function to which a variable is bound, directly or through a renaming (`g = f`); `None` for other
    /// variables.
    pub fn func_of(&self, var: Var) -> Option<&LocalFunc> {
        self.by_var.get(&var).map(|&i| &self.funcs[i])
    }

    /// Records the local functions. For each of them, returns the set of symbols in scope at its definition.
    fn find_local_funcs(&mut self, func: &Function) -> Vec<FxHashSet<SymVar>> {
        let mut syms_in_scope = Vec::new();
        let (mut syms, mut scopes) = (FxHashSet::default(), Vec::<Vec<SymVar>>::new());
        let (mut enclosing, mut renamings) = (Vec::new(), Vec::new());
        walk(func, func.root(), |event| match event {
            Event::EnterFunc(id) => {
                enclosing.push(id);
                scopes.push(Vec::new());
                let tys: Vec<Type> = func.func(id).params.iter().map(|&p| func.var(p).ty).collect();
                enter_symbols(func, &tys, &mut syms, &mut scopes);
            }
            Event::LeaveFunc(_) => {
                enclosing.pop();
                leave_scope(&mut syms, &mut scopes);
            }
            Event::EnterSeq(seq) => {
                scopes.push(Vec::new());
                self.owners.extend(enclosing.last().map(|&id| (seq, id)));
            }
            Event::Result(_) => leave_scope(&mut syms, &mut scopes),
            Event::EnterBinding(position, b) => match func.expr(b.value) {
                ExprData::Func(id) => {
                    let index = self.funcs.len();
                    self.by_id.insert(*id, index);
                    self.by_var.insert(b.var, index);
                    self.funcs.push(LocalFunc {
                        id: *id,
                        var: b.var,
                        parent: position.func,
                        name: "".into(),
                        vars: Vec::new(),
                        syms: Vec::new(),
                    });
                    syms_in_scope.push(syms.clone());
                }
                ExprData::Var(v) if b.cast.is_none() => renamings.push((b.var, *v)),
                _ => {}
            },
            Event::LeaveBinding(_, b) => {
                if let Some(cast) = b.cast.expand() {
                    enter_symbols(func, &[cast], &mut syms, &mut scopes);
                }
            }
            _ => {}
        });
        for (name, source) in renamings {
            if let Some(&index) = self.by_var.get(&source) {
                self.by_var.insert(name, index);
            }
        }
        syms_in_scope
    }

    /// Computes the captures as a fixed point. A function that refers to a local function also captures what this local function
    /// captures.
    fn compute_captures(&mut self, func: &Function, syms_in_scope: &[FxHashSet<SymVar>]) {
        let uses: Vec<Mentions> =
            self.funcs.iter().map(|local| Mentions::of(func, local.id, self)).collect();
        let mut vars: Vec<OrderedSet<Var>> = uses.iter().map(|u| u.vars.clone()).collect();
        self.propagate_captures(&uses, &mut vars, |i, v| !uses[i].bound.contains(v));
        let mut syms: Vec<OrderedSet<SymVar>> = uses.iter().map(|u| u.syms.clone()).collect();
        for (i, syms) in syms.iter_mut().enumerate() {
            for &v in &vars[i] {
                syms.extend(type_syms(func, func.var(v).ty));
            }
            syms.retain(|s| syms_in_scope[i].contains(s));
        }
        self.propagate_captures(&uses, &mut syms, |i, s| syms_in_scope[i].contains(s));
        for ((local, vars), syms) in self.funcs.iter_mut().zip(vars).zip(syms) {
            let tys = vars.iter().map(|&v| func.var(v).ty);
            let defined: FxHashSet<SymVar> = tys.flat_map(|t| definable_syms(func, t)).collect();
            local.vars = vars.into_iter().collect();
            local.syms = syms.into_iter().filter(|s| !defined.contains(s)).collect();
        }
    }

    /// Propagates captures to a fixed point: each function's set receives the elements of the sets of all local functions to
    /// which the function refers. `keep` decides for each function which elements it receives.
    fn propagate_captures<T: Copy + Eq + std::hash::Hash>(
        &self,
        uses: &[Mentions],
        sets: &mut [OrderedSet<T>],
        keep: impl Fn(usize, &T) -> bool,
    ) {
        loop {
            let mut grew = false;
            for (i, used) in uses.iter().enumerate() {
                for &j in used.funcs.iter().filter(|&&j| j != i) {
                    let added: Vec<T> = sets[j].iter().copied().filter(|v| keep(i, v)).collect();
                    let before = sets[i].len();
                    sets[i].extend(added);
                    grew |= sets[i].len() > before;
                }
            }
            if !grew {
                return;
            }
        }
    }
}

/// Adds to `syms`, the set of symbols in scope, the symbols that values of the types `tys` define, and records them in the
/// innermost of the `scopes`.
fn enter_symbols(
    func: &Function,
    tys: &[Type],
    syms: &mut FxHashSet<SymVar>,
    scopes: &mut [Vec<SymVar>],
) {
    for s in solvable_syms(func, tys, &|v| syms.contains(&v)) {
        if syms.insert(s)
            && let Some(scope) = scopes.last_mut()
        {
            scope.push(s);
        }
    }
}

/// Ends the innermost scope: removes the symbols that it has defined from `syms`, the set of symbols in scope.
fn leave_scope(syms: &mut FxHashSet<SymVar>, scopes: &mut Vec<Vec<SymVar>>) {
    for s in scopes.pop().unwrap_or_default() {
        syms.remove(&s);
    }
}

/// The variables and local functions to which the body of a local function refers.
struct Mentions {
    bound: FxHashSet<Var>,
    /// The captured variables that are not bound to a known local function.
    vars: OrderedSet<Var>,
    /// The indices of the local functions to which the body refers.
    funcs: OrderedSet<usize>,
    syms: OrderedSet<SymVar>,
}

impl Mentions {
    fn of(func: &Function, id: FuncId, local_funcs: &LocalFuncs) -> Mentions {
        let mut uses = Mentions {
            bound: bound_vars(func, id).into_iter().collect(),
            vars: OrderedSet::default(),
            funcs: OrderedSet::default(),
            syms: OrderedSet::default(),
        };
        let mut mentioned = Vec::new();
        let ty = |t: Type, out: &mut Vec<Var>| out.extend(type_vars(func, t));
        walk(func, id, |event| match event {
            Event::EnterFunc(id) => {
                func.func(id).params.iter().for_each(|&p| ty(func.var(p).ty, &mut mentioned));
                ty(func.func(id).ret_ty, &mut mentioned);
            }
            Event::EnterBinding(_, b) => {
                mentioned.extend(operand_vars(func, b.value));
                ty(func.var(b.var).ty, &mut mentioned);
                b.cast.expand().into_iter().for_each(|t| ty(t, &mut mentioned));
                for_each_expr(func, b.value, |e| {
                    if let ExprData::Call { ty_args, .. } = func.expr(e) {
                        func.type_list(*ty_args).iter().for_each(|&t| ty(t, &mut mentioned));
                    }
                });
            }
            Event::Result(seq) => mentioned.extend(operand_vars(func, func.seq(seq).result)),
            _ => {}
        });
        for v in mentioned {
            match local_funcs.by_var.get(&v) {
                Some(&index) => {
                    uses.funcs.insert(index);
                }
                None if !uses.bound.contains(&v) => {
                    uses.vars.insert(v);
                }
                None => {}
            }
        }
        for_each_sym(func, id, |s| uses.syms.extend(func.syms.free_vars(s)));
        uses
    }
}
