//! Repeats type inference after a pass has changed the types of parameters or results.

use pliant_ir::op::InferError;
use pliant_ir::relax::type_lattice::{
    derive_call_ty, derive_callable_ty, erase, is_subtype, lca, solvable_syms,
};
use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, FuncId, Function, Seq, Type, TypeData};
use pliant_ir::{BaseFunc, IRModule, OpRegistry, SymVar};
use pliant_pass::{PassError, Problem};
use rustc_hash::FxHashSet;

/// Infers the types of all bindings of a function again, in order. If the type of a variable was the type of its value, the
/// variable gets the new type of the value. Unless `widen` is set, a type is only replaced by a subtype. `module` contains the
/// called functions.
///
/// # Errors
/// All type errors, with the source locations of their bindings.
pub(crate) fn reinfer(
    func: &mut Function,
    module: &IRModule,
    ops: &dyn OpRegistry,
    widen: bool,
) -> Result<(), PassError> {
    let mut events = Vec::new();
    walk(func, func.root(), |event| {
        if matches!(event, Event::LeaveBinding(..) | Event::LeaveFunc(_) | Event::Result(_)) {
            events.push(event);
        }
    });
    let mut problems = Vec::new();
    let reinfer = Reinfer { module, ops, widen };
    for event in events {
        match event {
            Event::LeaveBinding(_, b) => {
                if let Err(e) = reinfer.reinfer_binding(func, b) {
                    let problem = Problem::new(e.message).at(func.var(b.var).span);
                    problems.push(match e.help {
                        Some(help) => problem.with_help(help),
                        None => problem,
                    });
                }
            }
            Event::Result(seq) => reinfer.update_tuple_ty(func, func.seq(seq).result),
            Event::LeaveFunc(id) => reinfer.update_ret_ty(func, id),
            _ => {}
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(PassError::User(problems)) }
}

/// The context of type inference.
pub(crate) struct Reinfer<'a> {
    /// The module that contains the callees.
    pub module: &'a IRModule,
    /// The type rules of the operators.
    pub ops: &'a dyn OpRegistry,
    /// Whether a type may be replaced by a type that is not its subtype.
    pub widen: bool,
}

impl Reinfer<'_> {
    /// Recomputes the types of the tuples in an operand from the types of their fields. The recursion depth is the nesting depth
    /// of the tuples, which the verifier limits.
    pub(crate) fn update_tuple_ty(&self, func: &mut Function, e: Expr) {
        let Some(fields) = func.tuple_fields(e).map(<[Expr]>::to_vec) else { return };
        fields.iter().for_each(|&f| self.update_tuple_ty(func, f));
        let tys = fields.iter().map(|&f| func.expr_ty(f)).collect();
        let ty = func.intern(TypeData::Tuple(tys));
        func.set_expr_ty(e, ty);
    }

    /// Infers the type of one binding again.
    ///
    /// # Errors
    /// The error of the type rule.
    pub(crate) fn reinfer_binding(
        &self,
        func: &mut Function,
        b: Binding,
    ) -> Result<(), InferError> {
        let old = func.expr_ty(b.value);
        let Some(new) = self.value_ty(func, b.value)? else { return Ok(()) };
        if new == old || !(self.widen || is_subtype(func, new, old).is_yes()) {
            return Ok(());
        }
        if !matches!(func.expr(b.value), ExprData::Var(_)) {
            func.set_expr_ty(b.value, new);
        }
        if b.cast.is_none() && func.var(b.var).ty == old {
            func.var_mut(b.var).ty = new;
        }
        Ok(())
    }

    /// Infers the type of a value from the current types of its operands; `None` if they do not determine the type.
    fn value_ty(&self, func: &mut Function, e: Expr) -> Result<Option<Type>, InferError> {
        Ok(match func.expr(e).clone() {
            ExprData::Tuple(_) => {
                self.update_tuple_ty(func, e);
                Some(func.expr_ty(e))
            }
            ExprData::TupleGetItem(tuple, index) => {
                self.update_tuple_ty(func, tuple);
                match func.ty(tuple) {
                    TypeData::Tuple(fields) => fields.get(index as usize).copied(),
                    _ => None,
                }
            }
            ExprData::If { then_seq, else_seq, .. } => {
                let ty = |s: Seq, f: &Function| f.expr_ty(f.seq(s).result);
                let (a, b) = (ty(then_seq, func), ty(else_seq, func));
                Some(lca(func, a, b))
            }
            ExprData::Func(id) => Some(func.signature(id)),
            ExprData::Call { callee, args, attrs, ty_args } => {
                let args = func.list(args).to_vec();
                args.iter().for_each(|&a| self.update_tuple_ty(func, a));
                let tys: Vec<Type> = args.iter().map(|&a| func.expr_ty(a)).collect();
                match callee {
                    Callee::Op(op) => {
                        let attrs = func.call_attrs(attrs).clone();
                        let ty_args = func.type_list(ty_args).to_vec();
                        Some(self.ops.infer(func, op, &args, &attrs, &ty_args)?)
                    }
                    Callee::Expr(callee) => self.call_ty(func, callee, &tys)?,
                }
            }
            _ => Some(func.expr_ty(e)),
        })
    }

    /// Infers the type of a call of `callee`; `None` for packed functions and unknown callees.
    fn call_ty(
        &self,
        func: &mut Function,
        callee: Expr,
        args: &[Type],
    ) -> Result<Option<Type>, InferError> {
        match *func.expr(callee) {
            ExprData::Extern(_) => Ok(None),
            ExprData::Global(name) => match self.module.get(func.str(name)) {
                Some(BaseFunc::Relax(callee)) => derive_call_ty(func, callee, args).map(Some),
                _ => Ok(None),
            },
            _ => {
                let ty = func.expr_ty(callee);
                derive_callable_ty(func, ty, args).map(Some)
            }
        }
    }

    /// Updates the declared result type of a function if the type of its result no longer fits or is more precise.
    fn update_ret_ty(&self, func: &mut Function, id: FuncId) {
        let data = func.func(id);
        let (declared, result) = (data.ret_ty, func.seq(data.body).result);
        let mut ty = func.expr_ty(result);
        if id == func.root() {
            // Callers know only the sizes that the parameters define.
            let tys: Vec<Type> = func.params().iter().map(|&p| func.var(p).ty).collect();
            let defined: FxHashSet<SymVar> =
                solvable_syms(func, &tys, &|_| false).into_iter().collect();
            ty = erase(func, ty, &|v| defined.contains(&v));
        }
        let finer = is_subtype(func, ty, declared).is_yes();
        if finer || self.widen {
            func.func_mut(id).ret_ty = ty;
        }
    }
}
