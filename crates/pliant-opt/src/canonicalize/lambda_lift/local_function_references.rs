//! Replaces references to local functions in the code around them. Calls become direct calls of the lifted functions with the
//! captured values as arguments; other uses become global names or closures.

use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, FuncId, Function, Seq, TypeData, Var,
};
use pliant_ir::{Attrs, DType};
use pliant_pass::binding_rewrites::{Namer, Substitution, for_each_operand_var, reachable_seqs};
use rustc_hash::FxHashSet;

use super::captured_variables::{LocalFunc, LocalFuncs};
use crate::common::operators_after_lowering::{MAKE_CLOSURE, op_call};

/// Replaces all references to local functions in `func` and in its local functions: direct calls become calls of the lifted
/// functions, other uses become global names or closures.
pub(super) fn rewrite(func: &mut Function, local_funcs: &LocalFuncs) {
    let seqs = reachable_seqs(func);
    for local in &local_funcs.funcs {
        for &v in &local.vars {
            // A captured variable is read outside of its dataflow block, so it must be an output of the block.
            func.var_mut(v).dataflow = false;
        }
    }
    let mut rewriter = Rewriter {
        local_funcs,
        namer: Namer::new(func),
        used_as_values: used_as_values(func, local_funcs, &seqs),
    };
    for seq in seqs {
        let owner = local_funcs.owners.get(&seq).copied().unwrap_or(func.root());
        rewriter.rewrite_sequence(func, seq, owner);
    }
}

/// Returns the local functions that their enclosing function uses as values, in a position other than the callee of a direct
/// call.
fn used_as_values(func: &Function, local_funcs: &LocalFuncs, seqs: &[Seq]) -> FxHashSet<FuncId> {
    let mut out = FxHashSet::default();
    for &seq in seqs {
        let owner = local_funcs.owners.get(&seq).copied();
        let mut read = |v: Var| {
            if let Some(local) = local_funcs.func_of(v)
                && Some(local.parent) == owner
            {
                out.insert(local.id);
            }
        };
        for &block in &func.seq(seq).blocks {
            for b in &func.block(block).bindings {
                match func.expr(b.value) {
                    // A renaming is not a use.
                    ExprData::Var(_) if b.cast.is_none() => {}
                    ExprData::Call { callee: Callee::Expr(callee), args, .. }
                        if matches!(func.expr(*callee), ExprData::Var(_)) =>
                    {
                        for &arg in func.list(*args) {
                            for_each_operand_var(func, arg, &mut read);
                        }
                    }
                    _ => for_each_operand_var(func, b.value, &mut read),
                }
            }
        }
        for_each_operand_var(func, func.seq(seq).result, &mut read);
    }
    out
}

struct Rewriter<'a> {
    local_funcs: &'a LocalFuncs,
    namer: Namer,
    /// The local functions that are used as values. Their variables are bound to closures.
    used_as_values: FxHashSet<FuncId>,
}

impl Rewriter<'_> {
    fn rewrite_sequence(&mut self, func: &mut Function, seq: Seq, owner: FuncId) {
        for i in 0..func.seq(seq).blocks.len() {
            let block = func.seq(seq).blocks[i];
            let old_bindings = std::mem::take(&mut func.block_mut(block).bindings);
            let mut new_bindings = Vec::with_capacity(old_bindings.len());
            for binding in old_bindings {
                self.rewrite_binding(func, binding, owner, &mut new_bindings);
            }
            func.block_mut(block).bindings = new_bindings;
        }
        let mut bindings = Vec::new();
        let result = func.seq(seq).result;
        let result = self.rewrite_expr(func, result, owner, &mut bindings);
        func.seq_mut(seq).result = result;
        if !bindings.is_empty() {
            let block = func.add_block(BlockData { dataflow: false, bindings });
            func.seq_mut(seq).blocks.push(block);
        }
        let blocks: Vec<_> = func.seq(seq).blocks.clone();
        let nonempty_blocks =
            blocks.into_iter().filter(|&b| !func.block(b).bindings.is_empty()).collect();
        func.seq_mut(seq).blocks = nonempty_blocks;
    }

    fn rewrite_binding(
        &mut self,
        func: &mut Function,
        mut binding: Binding,
        owner: FuncId,
        out: &mut Vec<Binding>,
    ) {
        match func.expr(binding.value) {
            ExprData::Func(_) => {
                let Some(local) = self.local_funcs.func_of(binding.var) else { return };
                if self.used_as_values.contains(&local.id) && captures_any(local) {
                    binding.value = make_closure(func, local);
                    out.push(binding);
                }
            }
            // Renamings of known functions are dropped: their uses refer to the function directly.
            ExprData::Var(_) if self.local_funcs.func_of(binding.var).is_some() => {}
            _ => {
                binding.value = self.rewrite_expr(func, binding.value, owner, out);
                out.push(binding);
            }
        }
    }

    /// Returns an expression of the function expression `owner` with references to local functions replaced. Appends
    /// the bindings of the closures that the new expression needs to `out`.
    fn rewrite_expr(
        &mut self,
        func: &mut Function,
        e: Expr,
        owner: FuncId,
        out: &mut Vec<Binding>,
    ) -> Expr {
        let mut subst = Substitution::default();
        let callee = match func.expr(e) {
            ExprData::Call { callee: Callee::Expr(callee), args, .. } => match func.expr(*callee) {
                ExprData::Var(v) => self.local_funcs.func_of(*v).map(|local| (local, *args)),
                _ => None,
            },
            _ => None,
        };
        let mut reads = Vec::new();
        match callee {
            Some((_, args)) => func
                .list(args)
                .iter()
                .for_each(|&arg| for_each_operand_var(func, arg, &mut |v| reads.push(v))),
            None => for_each_operand_var(func, e, &mut |v| reads.push(v)),
        }
        for v in reads {
            if let Some(local) = self.local_funcs.func_of(v)
                && !subst.contains(v)
            {
                let value = self.function_value(func, local, owner, out);
                subst.insert(v, value);
            }
        }
        let Some((local, args)) = callee else { return substitute(func, e, &subst) };
        let mut args: Vec<Expr> = func.list(args).to_vec();
        for arg in &mut args {
            *arg = substitute(func, *arg, &subst);
        }
        args.extend(captured_operands(func, local));
        let (callee, ty) = (global_ref(func, local), func.expr_ty(e));
        func.call(Callee::Expr(callee), &args, Attrs::default(), &[], ty)
    }

    /// Returns the value that replaces a local function in the function expression `owner`: the global name of the lifted
    /// function, or a closure.
    fn function_value(
        &mut self,
        func: &mut Function,
        local: &LocalFunc,
        owner: FuncId,
        out: &mut Vec<Binding>,
    ) -> Expr {
        if !captures_any(local) {
            return global_ref(func, local);
        }
        if local.parent == owner {
            return func.var_expr(local.var);
        }
        let (name, ty) = (func.var(local.var).name.clone(), func.var(local.var).ty);
        let var = self.namer.var(func, &name, ty);
        let value = make_closure(func, local);
        out.push(Binding::bind(var, value));
        func.var_expr(var)
    }
}

/// Whether the function captures any variable or symbol.
fn captures_any(local: &LocalFunc) -> bool {
    !(local.vars.is_empty() && local.syms.is_empty())
}

/// Returns the values that a function captures, as operands for a call or closure.
fn captured_operands(func: &mut Function, local: &LocalFunc) -> Vec<Expr> {
    let mut out: Vec<Expr> = local.vars.iter().map(|&v| func.var_expr(v)).collect();
    for &sym in &local.syms {
        let value = func.syms.var(sym);
        out.push(func.int_value(value, DType::Int64));
    }
    out
}

/// Creates a reference to the lifted function. The type of the reference includes the parameters for the captured values.
fn global_ref(func: &mut Function, local: &LocalFunc) -> Expr {
    let captured = captured_operands(func, local);
    let own_params = func.func(local.id).params.clone();
    let params = own_params.into_iter().map(|p| func.var(p).ty);
    let params: Box<[_]> = params.chain(captured.iter().map(|&e| func.expr_ty(e))).collect();
    let (ret, pure) = (func.func(local.id).ret_ty, func.func(local.id).pure);
    let ty = func.intern(TypeData::Callable { params: Some(params), ret, pure });
    func.global(&local.name, ty)
}

/// Creates the closure of a lifted function with its captured values.
fn make_closure(func: &mut Function, local: &LocalFunc) -> Expr {
    let captured = captured_operands(func, local);
    let (callee, captured) = (global_ref(func, local), func.tuple(&captured));
    let ty = func.var(local.var).ty;
    op_call(func, MAKE_CLOSURE, &[callee, captured], ty)
}

/// Applies a substitution of variables to an expression.
fn substitute(func: &mut Function, e: Expr, subst: &Substitution) -> Expr {
    if subst.is_empty() { e } else { subst.apply(func, e) }
}
