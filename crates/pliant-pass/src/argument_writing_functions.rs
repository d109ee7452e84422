//! [`MayWrite`]: the graph functions that may write to the memory of their arguments although their types are pure.
//!
//! The type system treats in-place calls (`call_tir_inplace` and similar) as pure, and therefore also the functions that contain
//! such calls. Code motion must know these functions: a read must not be moved across a call that writes to the same memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_ir::IRModule;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, TypeData, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// The set of graph functions that may write to the memory of their arguments although their types are pure. Clones share the
/// set.
#[derive(Clone, Debug)]
pub struct MayWrite {
    /// The names of the graph functions that may write to their arguments; `None` if the module is unknown.
    names: Option<Arc<FxHashSet<Arc<str>>>>,
    /// Whether a callee that is not known by name may write to its arguments. Such callees are function values and, if the module
    /// is unknown, all global functions.
    others: bool,
}

impl Default for MayWrite {
    /// Creates the set for a module in which no function writes to its arguments.
    fn default() -> Self {
        MayWrite { names: Some(Arc::default()), others: false }
    }
}

impl MayWrite {
    /// Collects the functions of a module that contain in-place calls, or that may call such a function directly or indirectly.
    pub fn of(module: &IRModule) -> MayWrite {
        let mut names: FxHashSet<Arc<str>> = FxHashSet::default();
        let mut callers: FxHashMap<Arc<str>, Vec<Arc<str>>> = FxHashMap::default();
        let mut callers_of_values = Vec::new();
        for (name, func) in module.relax_funcs() {
            let calls = Calls::of(func);
            if calls.in_place {
                names.insert(name.clone());
            }
            if calls.values {
                callers_of_values.push(name.clone());
            }
            for callee in calls.globals {
                callers.entry(callee).or_default().push(name.clone());
            }
        }
        let others = !names.is_empty();
        if others {
            // A function value may be any function.
            names.extend(callers_of_values);
        }
        let mut worklist: Vec<Arc<str>> = names.iter().cloned().collect();
        while let Some(name) = worklist.pop() {
            for caller in callers.remove(&name).into_iter().flatten() {
                if names.insert(caller.clone()) {
                    worklist.push(caller);
                }
            }
        }
        MayWrite { names: Some(Arc::new(names)), others }
    }

    /// Creates a conservative set for a function whose module is not known: every graph function that it calls is assumed to
    /// write to its arguments.
    pub fn within(func: &Function) -> MayWrite {
        let calls = Calls::of(func);
        let others = calls.in_place || calls.pure_globals || calls.takes_functions;
        MayWrite { names: None, others }
    }

    /// Whether an expression is a call that may write to its operands. For an `If`, this does not consider the bindings of its
    /// branches.
    pub fn may_write(&self, func: &Function, e: Expr) -> bool {
        let ExprData::Call { callee, args, .. } = func.expr(e) else { return false };
        match callee {
            Callee::Op(op) => {
                let mut args = func.list(*args).iter();
                op.writes_operands()
                    || args.any(|&a| is_function(func.ty(a)) && self.may_be_writer(func, a))
            }
            Callee::Expr(f) => self.may_be_writer(func, *f),
        }
    }

    /// Whether the callee `f` may write to its arguments although its type is pure. False for packed functions: their types are
    /// impure, and whoever calls one with `call_pure_packed` promises that it does not write.
    fn may_be_writer(&self, func: &Function, f: Expr) -> bool {
        match (func.expr(f), &self.names) {
            (ExprData::Extern(_), _) => false,
            (ExprData::Global(name), Some(names)) => names.contains(func.str(*name)),
            (ExprData::Global(_), None) => self.others && is_pure_function(func.ty(f)),
            _ => self.others,
        }
    }
}

/// The in-place calls of one function, and its references to other functions. [`MayWrite::of`] derives from them whether the
/// function may write to its arguments.
#[derive(Default)]
struct Calls {
    /// Whether the function contains in-place calls.
    in_place: bool,
    /// Whether the function calls function values (closures or parameters), or passes them to operators. Such a function value
    /// may be any function of the module that writes to its arguments.
    values: bool,
    /// The functions of the module to which the function refers.
    globals: BTreeSet<Arc<str>>,
    /// Whether the function refers to a function of the module that has a pure type. Such a function may still write to its
    /// arguments.
    pure_globals: bool,
    /// Whether the function, or a local function in it, has parameters that are functions. Such a parameter may write to its
    /// arguments although its type is pure.
    takes_functions: bool,
}

impl Calls {
    fn of(func: &Function) -> Calls {
        let takes = |params: &[Var]| params.iter().any(|&p| is_function(func.var_ty(p)));
        let mut calls = Calls { takes_functions: takes(func.params()), ..Calls::default() };
        for id in 0..func.num_exprs() {
            let e = Expr::from_u32(id as u32);
            match func.expr(e) {
                ExprData::Func(id) => calls.takes_functions |= takes(&func.func(*id).params),
                ExprData::Global(name) => {
                    calls.pure_globals |= is_pure_function(func.ty(e));
                    calls.globals.insert(func.str(*name).clone());
                }
                ExprData::Call { callee: Callee::Op(op), args, .. } => {
                    calls.in_place |= op.writes_operands();
                    let mut args = func.list(*args).iter();
                    calls.values |= args.any(|&a| is_value(func, a) && is_function(func.ty(a)));
                }
                ExprData::Call { callee: Callee::Expr(f), .. } => {
                    calls.values |= is_value(func, *f);
                }
                _ => {}
            }
        }
        calls
    }
}

fn is_value(func: &Function, f: Expr) -> bool {
    !matches!(func.expr(f), ExprData::Global(_) | ExprData::Extern(_))
}

fn is_function(ty: &TypeData) -> bool {
    matches!(ty, TypeData::Callable { .. })
}

fn is_pure_function(ty: &TypeData) -> bool {
    matches!(ty, TypeData::Callable { pure: true, .. })
}
