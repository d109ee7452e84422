//! [`size_checks`]: the conditions on sizes that a call checks at run time, as predicates over the symbols of its function.
//!
//! If a type rule can neither prove nor refute that sizes match, it leaves the check to the loop function. The tensor expression of
//! the call states these checks, so they are not listed anywhere else. This module extracts them for passes that need to know the
//! valid sizes of a program.

use pliant_ir::Sym;
use pliant_ir::op::Op;
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type};
use pliant_ir::{Attrs, SymArena};

use crate::legalize::te_form;
use crate::op_declaration::{Legalize, OpDecl};
use crate::op_registry::{RegistryEntry, registry};
use crate::ops::squeezed_axes_to_check;
use crate::te::{self, ExprKind, Intrin, Stmt, TensorOp, VarMap};
use crate::type_inference::InferCtx;

/// The conditions on sizes that could not be proved and must be true when the call runs. `args` are
/// the operands of the call, and an absent operand is `R.null_value()`. The list is empty if no
/// check is needed, if the expression is not a call of a library operator, or if its tensor
/// expression cannot be built.
pub fn size_checks(func: &mut Function, call: Expr, args: &[Expr]) -> Vec<Sym> {
    let ExprData::Call { callee: Callee::Op(op), attrs, .. } = func.expr(call) else {
        return Vec::new();
    };
    let (op, attrs) = (*op, func.call_attrs(*attrs).clone());
    let ty = func.expr_ty(call);
    checks_of_call(func, op, args, &attrs, ty).unwrap_or_default()
}

fn checks_of_call(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
) -> Option<Vec<Sym>> {
    let Some(RegistryEntry::Library { decl, .. }) = registry().entry(op) else { return None };
    if matches!(decl.legalize, Legalize::View(_)) && !is_lowered_to_check(func, decl, args, attrs) {
        return Some(element_count_condition(func, args[0], ty)?.into_iter().collect());
    }
    let mut form = te_form(func, decl, (args, attrs), ty, false).ok()??;
    let stages = te::stages_of(&form.outputs);
    let mut conds: Vec<te::Expr> = form.assumed.checks.iter().map(|c| c.cond.clone()).collect();
    for stage in &stages {
        match stage.op() {
            TensorOp::Placeholder => {}
            TensorOp::Compute(stage) => {
                let of_sizes = stage.checks.iter().filter(|c| c.axes.is_empty());
                conds.extend(of_sizes.map(|c| c.cond.clone()));
            }
            // Assertions inside loops and branches concern elements, not sizes.
            TensorOp::Extern(stage, _) => conds.extend(stage.body.iter().filter_map(|s| match s {
                Stmt::Assert(cond, _) => Some(cond.clone()),
                _ => None,
            })),
        }
    }
    let placeholders = stages.iter().filter(|t| t.is_placeholder());
    let args: Vec<te::Tensor> = placeholders.chain(&form.outputs).cloned().collect();
    conds.extend(te::computed_size_checks::checks(&args, &stages).into_iter().map(|c| c.cond));
    let mut conditions: Vec<Sym> = Vec::new();
    for cond in conds {
        let cond = predicate(&mut func.syms, &cond, &mut form.vars);
        conditions.extend(cond.filter(|&c| func.syms.as_int(c).is_none()));
    }
    conditions.dedup();
    Some(conditions)
}

/// Whether a call of a view operator becomes a loop function, because the dims that it drops must be checked.
fn is_lowered_to_check(func: &mut Function, decl: &OpDecl, args: &[Expr], attrs: &Attrs) -> bool {
    let mut infer = InferCtx::new(func, decl, args, attrs, &[]);
    decl.name == "relax.squeeze"
        && squeezed_axes_to_check(&mut infer).is_ok_and(|unproved| !unproved.is_empty())
}

/// The condition that a tensor has as many elements as its view. The result is `None` if dims are
/// unknown, and `Some(None)` if the condition is proved.
fn element_count_condition(func: &mut Function, x: Expr, view: Type) -> Option<Option<Sym>> {
    let dims = func.ty(x).dims()?.to_vec();
    let view_dims = func.types.get(view).dims()?.to_vec();
    let (count, view_count) = (func.syms.product(dims), func.syms.product(view_dims));
    if crate::size_proofs::equal(func, count, view_count) == Some(true) {
        return Some(None);
    }
    Some(Some(func.syms.eq(count, view_count)))
}

/// Converts a condition to a predicate over symbols; `None` if the condition depends on elements of tensors.
fn predicate(syms: &mut SymArena, cond: &te::Expr, vars: &mut VarMap) -> Option<Sym> {
    let mut cond = cond;
    loop {
        cond = match cond.kind() {
            ExprKind::Call(Intrin::Explain, args) => args.first()?,
            ExprKind::Cast(inner) if inner.ty() == te::Ty::BOOL => inner,
            _ => break,
        };
    }
    let known = te::free_vars(cond).iter().all(|v| vars.get_term(syms, v).is_some());
    if known { te::to_sym(syms, cond, vars) } else { None }
}

#[cfg(test)]
mod tests {
    use pliant_ir::relax::{FunctionBuilder, TypeData};
    use pliant_ir::{AttrValue, DType};

    use super::*;

    /// The conditions that a call of `op` checks at run time, as text. The operands are tensors with these dims, in which names
    /// are symbols.
    fn conditions_of(op: &str, operands: &[&[&str]], attrs: Attrs) -> Vec<String> {
        let mut b = FunctionBuilder::new(registry());
        let mut symbols: Vec<(String, Sym)> = Vec::new();
        let mut args = Vec::new();
        for (k, dims) in operands.iter().enumerate() {
            let func = b.func_mut();
            let dims: Vec<Sym> = dims
                .iter()
                .map(|d| match d.parse::<i64>() {
                    Ok(size) => func.syms.int(size),
                    Err(_) => match symbols.iter().find(|(name, _)| name == d) {
                        Some((_, sym)) => *sym,
                        None => {
                            let var = func.fresh_sym(d);
                            let sym = func.syms.var(var);
                            symbols.push(((*d).to_owned(), sym));
                            sym
                        }
                    },
                })
                .collect();
            let ty = func.intern(TypeData::tensor(dims, DType::Float32));
            let var = b.param(&format!("x{k}"), ty);
            args.push(b.func_mut().var_expr(var));
        }
        let op = pliant_ir::OpRegistry::lookup(registry(), op).unwrap();
        if op.name() == "relax.concat" {
            args = vec![b.func_mut().tuple(&args)];
        }
        let call = b.call_op(op, &args, attrs, &[]).unwrap();
        let func = b.func_mut();
        let conditions = size_checks(func, call, &args);
        conditions.iter().map(|&c| func.syms.display(c).to_string()).collect()
    }

    #[test]
    fn run_time_conditions_are_returned_as_predicates() {
        let axis = |v: i64| Attrs::default().with("axis", AttrValue::Int(v));
        let none = Attrs::default;
        assert_eq!(conditions_of("relax.matmul", &[&["s", "q"], &["7", "3"]], none()), ["q == 7"]);
        assert_eq!(conditions_of("relax.concat", &[&["s", "q"], &["4", "3"]], axis(1)), ["s == 4"]);
        assert_eq!(
            conditions_of("relax.add", &[&["s", "q"], &["7"]], none()),
            ["T.Or(q == 1, q == 7)"]
        );
        assert_eq!(conditions_of("relax.add", &[&["s", "q"], &["s", "q"]], none()), [""; 0]);
        let axes = Attrs::default().with("axis", AttrValue::ints([0]));
        assert_eq!(conditions_of("relax.squeeze", &[&["s", "q"]], axes), ["s == 1"]);
    }
}
