//! Runs the type rule of an operator when a call is created, so that invalid arguments are reported at that line and
//! not when the call is emitted.
//!
//! The type rule is applied to the attributes, the literal operands (numbers, sizes, data types, tuples) and the
//! types of the other operands. Operands of unknown type, such as calls that were not emitted, may have any type, so
//! only errors that do not depend on them are reported. The type rule runs in a temporary function.

use pliant_ir::Op;
use pliant_ir::op::{InferError, NULL_VALUE};
use pliant_ir::relax::{Callee, ExprData};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::gil_and_panics::catch_panic;
use crate::relax::detached_expr::{CallNode, CalleeNode, FreeVar, Node, NodeRef};
use crate::relax::function_owner::{ALREADY_LOCKED, FuncOwner};
use crate::relax::lower_expr::infer_error;
use crate::relax::struct_info::{SInfo, ShapeInfo, TypeList, sinfo_of, to_type};

/// Maximum nesting depth of tuple operands whose fields are checked.
const MAX_TUPLES: u32 = 4;

/// Ranks that the check tries for operands of unknown rank, in this order. Most type rules accept one of these ranks and then
/// check all attributes.
const RANKS: [u32; 5] = [4, 3, 2, 1, 5];

/// Checks the arguments of a call of a built-in operator. Other calls are not checked.
///
/// # Errors
/// The errors of the operator's type rule.
pub fn check_call(call: &CallNode) -> Result<()> {
    let CalleeNode::Op(op) = call.callee else { return Ok(()) };
    // The rules of user-defined operators are Python code, which runs once for each emitted call.
    if pliant_ops::registry().decl(op).is_none() {
        return Ok(());
    }
    match catch_panic(|| check_with_type_rule(op, call)) {
        // Inside the definition of an operator, types cannot be read. The rule runs when the call is emitted.
        Err(Error::Value(text)) if text == ALREADY_LOCKED => Ok(()),
        checked => checked,
    }
}

fn check_with_type_rule(op: Op, call: &CallNode) -> Result<()> {
    let args: Option<Vec<NodeRef>> = call.args.iter().map(|a| operand_for_check(a, 0)).collect();
    let Some(args) = args else { return Ok(()) };
    let (attrs, ty_args) =
        (call.attrs.clone(), call.ty_args.iter().map(without_shape_vars).collect());
    let mut call = CallNode { callee: CalleeNode::Op(op), args, attrs, ty_args };
    if let Err(e) = run_type_rule(op, &call)? {
        return Err(infer_error(op, &e));
    }
    let operands = call.args.clone();
    if call.attrs.is_empty() || !operands.iter().any(may_have_unknown_rank) {
        return Ok(());
    }
    // An attribute that is invalid for all operands is invalid for operands of these ranks.
    for rank in RANKS {
        call.args = operands
            .iter()
            .map(|a| if may_have_unknown_rank(a) { var_of_rank(a, rank) } else { a.clone() })
            .collect();
        match run_type_rule(op, &call)? {
            Ok(()) => break,
            Err(e) if e.attr.is_some() => return Err(infer_error(op, &e)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// Runs the type rule of the operator `op` on a call in a temporary function.
fn run_type_rule(op: Op, call: &CallNode) -> Result<std::result::Result<(), InferError>> {
    let owner = FuncOwner::building();
    let mut state = owner.lock();
    let mut memo = FxHashMap::default();
    for arg in call.args.iter().filter(|a| !matches!(a.get(), Node::Scalar(_))) {
        let e = state.lower(arg)?;
        memo.insert(arg.id(), state.builder()?.operand(e));
    }
    let args = state.lower_operands(op, call, &memo)?;
    let tys: Result<Vec<_>> = call.ty_args.iter().map(|t| to_type(&mut state, t)).collect();
    let called = state.builder()?.call_op(op, &args, call.attrs.clone(), &tys?);
    Ok(called.map(|_| ()))
}

/// Whether an operand is a tensor of unknown rank, or may be one.
fn may_have_unknown_rank(node: &NodeRef) -> bool {
    let Node::Var(v) = node.get() else { return false };
    matches!(v.0.sinfo, Some(SInfo::Object | SInfo::Tensor(ShapeInfo::Unknown, _)))
}

fn var_of_rank(node: &NodeRef, rank: u32) -> NodeRef {
    let dtype = sinfo_of(node).and_then(|info| info.dtype());
    let info = SInfo::Tensor(ShapeInfo::Rank(rank), dtype);
    NodeRef::new(Node::Var(FreeVar::new("x", Some(info), false)))
}

/// Returns what replaces an operand when the type rule runs in a temporary function: the operand itself if it is a literal,
/// otherwise a variable of its type. Returns `None` for operands that type rules inspect themselves, such as functions: the
/// call is then not checked.
fn operand_for_check(node: &NodeRef, depth: u32) -> Option<NodeRef> {
    Some(match node.get() {
        Node::Constant(_)
        | Node::Scalar(_)
        | Node::Shape(_)
        | Node::Prim(_)
        | Node::Str(_)
        | Node::DType(_) => node.clone(),
        Node::Tuple(fields) if depth < MAX_TUPLES => {
            let fields: Option<Vec<NodeRef>> =
                fields.iter().map(|f| operand_for_check(f, depth + 1)).collect();
            NodeRef::new(Node::Tuple(fields?))
        }
        Node::Call(CallNode { callee: CalleeNode::Op(NULL_VALUE), .. }) => node.clone(),
        Node::InFunc(owner, e) => {
            let state = owner.lock();
            let func = state.func()?;
            match func.expr(*e) {
                ExprData::Call { callee: Callee::Op(NULL_VALUE), .. } => {
                    crate::relax::classes::call_op(NULL_VALUE.name(), Vec::new())
                }
                // Type rules inspect these operands themselves.
                ExprData::Str(_) | ExprData::DType(_) | ExprData::Func(_) => return None,
                ExprData::Global(_) | ExprData::Extern(_) => return None,
                _ => {
                    drop(state);
                    var_of_same_type(node)
                }
            }
        }
        Node::Var(_) | Node::Call(_) | Node::GetItem(..) | Node::Tuple(_) => var_of_same_type(node),
        Node::Global(_)
        | Node::Extern(_)
        | Node::If(_)
        | Node::Seq(_)
        | Node::Func(_)
        | Node::Root(_) => return None,
    })
}

fn var_of_same_type(node: &NodeRef) -> NodeRef {
    let info = sinfo_of(node).as_ref().map_or(SInfo::Object, without_shape_vars);
    NodeRef::new(Node::Var(FreeVar::new("x", Some(info), false)))
}

/// Returns the type without shape variables, because these belong to other functions.
fn without_shape_vars(info: &SInfo) -> SInfo {
    match info {
        SInfo::Tensor(ShapeInfo::Var(_), dtype) => {
            let shape = match info.ndim().and_then(|n| u32::try_from(n).ok()) {
                Some(rank) => ShapeInfo::Rank(rank),
                None => ShapeInfo::Unknown,
            };
            SInfo::Tensor(shape, *dtype)
        }
        // The recursion is bounded, because the depth of types is.
        SInfo::Tuple(fields) => {
            SInfo::Tuple(fields.iter().map(without_shape_vars).collect::<TypeList>())
        }
        _ => info.clone(),
    }
}
