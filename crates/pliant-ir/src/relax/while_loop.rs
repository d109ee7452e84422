//! `relax.while_loop(cond, body, state...)`: its semantics, and its typing rule for the builder and the verifier.
//!
//! # Semantics
//! Executes `state = body(state)` as long as `cond(state)`; the result is the final state. `cond` and `body` are functions of the
//! state, and `cond` returns a bool, either as a scalar or as a tensor of rank 0. With one state value, the body and the loop
//! return that value; otherwise they return tuples. Every iteration checks the results of the body against the types of the body's
//! parameters, unless they provably fit. A parameter dim that is a symbol of the body may change between iterations.
//!
//! # Type
//! If an iteration provably preserves the types of the state, the result has these types. Otherwise the result has the types of the
//! body's parameters, in which dims with symbols of the body are unknown. Symbols in the types of the state are assumed to be
//! defined outside of the loop. The verifier rejects the only case in which the body may define them, too: a loop inside its own
//! body function.

use pliant_sym::{Proof, SymVar};
use rustc_hash::FxHashSet;

use super::expr::Expr;
use super::function::Function;
use super::type_lattice::{derive_callable_ty_within, erase, is_subtype, type_syms};
use super::types::{Type, TypeData};
use crate::op::{InferError, Op, OpRegistry, WHILE_LOOP};
use crate::print::type_text;

/// The result type of `while_loop(cond, body, states...)`, derived from the types of its operands.
///
/// # Errors
/// If `cond` or `body` is not a function, if the number or the types of its parameters provably do not fit the state, if the result
/// of the body does not fit its parameters, or if `cond` does not return a bool scalar.
pub fn while_loop_ty(
    func: &mut Function,
    cond: Type,
    body: Type,
    states: &[Type],
) -> Result<Type, InferError> {
    // Symbols in the state are defined outside of the loop. Other symbols of the functions are local to them.
    let outer_syms: FxHashSet<SymVar> = states.iter().flat_map(|&ty| type_syms(func, ty)).collect();
    check_function(func, "body", body, states, &outer_syms)?;
    check_function(func, "condition", cond, states, &outer_syms)?;
    if let TypeData::Callable { ret, .. } = *func.types.get(cond)
        && !is_condition(func, ret)
    {
        let text = type_text(func, ret);
        return Err(InferError::new(format!(
            "while_loop: the condition must return a bool scalar, but returns a value of type {text}"
        )));
    }
    let (params, ret) = match func.types.get(body).clone() {
        TypeData::Callable { params, ret, .. } => (params, ret),
        _ => return Ok(unknown_state(func, states.len())),
    };
    let results = next_state_types(func, ret, states.len())?;
    if let Some(results) = &results {
        check_iteration(func, cond, body, results, &outer_syms)?;
    }
    let preserved =
        match derive_callable_ty_within(func, body, states, &[], &|v| outer_syms.contains(&v)) {
            Ok(after) => {
                let before = state_ty(func, states);
                results.is_some() && is_subtype(func, after, before) == Proof::Yes
            }
            Err(_) => false,
        };
    if preserved {
        return Ok(state_ty(func, states));
    }
    let Some(params) = params else { return Ok(unknown_state(func, states.len())) };
    let visible: Vec<Type> =
        params.iter().map(|&p| erase(func, p, &|v| outer_syms.contains(&v))).collect();
    Ok(state_ty(func, &visible))
}

/// Whether a call of an operator is known to have no side effects. A call of `while_loop` is pure if its condition and its body
/// are pure.
pub fn op_call_is_pure(func: &Function, ops: &dyn OpRegistry, op: Op, args: &[Expr]) -> bool {
    if op != WHILE_LOOP {
        return ops.is_pure(op);
    }
    let pure = |&e: &Expr| matches!(func.ty(e), TypeData::Callable { pure: true, .. });
    args.iter().take(2).all(pure)
}

/// Whether values of a type can be conditions: bool scalars and bool tensors of rank 0.
pub fn is_condition(func: &Function, ty: Type) -> bool {
    match func.types.get(ty) {
        TypeData::Any => true,
        TypeData::Prim { dtype, .. } => dtype.is_bool(),
        TypeData::Tensor { dtype, .. } => {
            dtype.is_none_or(|d| d.is_bool()) && func.rank_of(ty).is_none_or(|n| n == 0)
        }
        _ => false,
    }
}

/// The type of the whole state: the type of its single value, or a tuple type for several values.
fn state_ty(func: &mut Function, states: &[Type]) -> Type {
    match states {
        [one] => *one,
        many => func.intern(TypeData::Tuple(many.into())),
    }
}

fn unknown_state(func: &mut Function, count: usize) -> Type {
    let any = func.intern(TypeData::Any);
    state_ty(func, &vec![any; count])
}

/// Checks that the condition or the body of a loop is a function of the state. `role` is "condition" or "body", for messages.
fn check_function(
    func: &mut Function,
    role: &str,
    ty: Type,
    states: &[Type],
    outer_syms: &FxHashSet<SymVar>,
) -> Result<(), InferError> {
    let count = match func.types.get(ty) {
        TypeData::Callable { params, .. } => params.as_ref().map(|p| p.len()),
        TypeData::Any => None,
        _ => {
            let text = type_text(func, ty);
            return Err(InferError::new(format!(
                "while_loop: the {role} must be a function, but has type {text}"
            )));
        }
    };
    if let Some(count) = count
        && count != states.len()
    {
        let message = format!(
            "while_loop: the {role} takes {count} parameters, but the loop has {} state values",
            states.len()
        );
        return Err(InferError::new(message)
            .with_help("write R.while_loop(cond, body, *state), where cond and body each take all state values"));
    }
    derive_callable_ty_within(func, ty, states, &[], &|v| outer_syms.contains(&v)).map_err(
        |e| {
            InferError::new(format!(
                "while_loop: the initial state does not fit the parameters of the {role}: {}",
                e.message
            ))
        },
    )?;
    Ok(())
}

/// The types of the state values after an iteration; `None` if the result type of the body does not determine them.
fn next_state_types(
    func: &mut Function,
    ret: Type,
    count: usize,
) -> Result<Option<Vec<Type>>, InferError> {
    match func.types.get(ret) {
        TypeData::Any => Ok(None),
        _ if count == 1 => Ok(Some(vec![ret])),
        TypeData::Tuple(fields) if fields.len() == count => Ok(Some(fields.to_vec())),
        _ => {
            let text = type_text(func, ret);
            Err(InferError::new(format!(
                "while_loop: the body must return a tuple of the {count} state values, but returns a value of type {text}"
            )))
        }
    }
}

/// Checks that the result of the body fits as the state of the next iteration.
fn check_iteration(
    func: &mut Function,
    cond: Type,
    body: Type,
    results: &[Type],
    outer_syms: &FxHashSet<SymVar>,
) -> Result<(), InferError> {
    for (role, ty) in [("body", body), ("condition", cond)] {
        if !matches!(func.types.get(ty), TypeData::Callable { params: Some(_), .. }) {
            continue;
        }
        derive_callable_ty_within(func, ty, results, &[], &|v| outer_syms.contains(&v)).map_err(
            |e| {
                InferError::new(format!(
                    "while_loop: the result of the body does not fit the parameters of the {role}: {}",
                    e.message
                ))
                .with_help(
                    "if a dim changes between iterations, use a new symbol for it in the parameters of the body",
                )
            },
        )?;
    }
    Ok(())
}
