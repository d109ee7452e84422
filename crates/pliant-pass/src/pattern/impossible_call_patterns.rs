//! Uses the type inference of operators to detect call patterns that can never match: because of impossible operands or attributes,
//! or because of the type of the result.

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_ir::relax::{Expr, Function, Type, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Op, OpRegistry, Span, Sym};

use super::pattern_table::{Node, NodeId, PatternTable, RootKinds};
use super::type_pattern::SizePattern;

/// The operand ranks with which type inference is tried. Many operators only check their attributes if the ranks of their
/// operands are known.
const RANKS: std::ops::Range<u32> = 0..5;

type AttrPair = (Arc<str>, AttrValue);

/// A sample operand with which type inference is tried.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Any,
    Rank(u32),
    Tensor,
    /// A sample tensor with these sizes.
    Sized(&'a [SizePattern]),
    Tuple(usize),
    /// A sample tuple of this number of integers, which an operator may accept as a shape.
    Sizes(usize),
    Shape,
}

impl<'a> Operand<'a> {
    /// Chooses a sample operand that the pattern with this id matches.
    fn of(table: &'a PatternTable, id: NodeId) -> Operand<'a> {
        match &table.nodes[id as usize] {
            Node::Tuple { fields, .. } => Operand::Tuple(fields.len()),
            Node::ShapeValue(_) => Operand::Shape,
            Node::Constant => Operand::Tensor,
            Node::Shape(p, sizes) => match Operand::of(table, *p) {
                Operand::Any | Operand::Tensor => Operand::Sized(sizes),
                other => other,
            },
            Node::DType(p, _) | Node::Type(p, _) => Operand::of(table, *p),
            _ => Operand::Any,
        }
    }

    /// Creates the sample operand as an expression in the function `f`.
    fn create_in(self, f: &mut Function) -> Expr {
        let ty = match self {
            Operand::Any => TypeData::Any,
            Operand::Rank(n) => TypeData::tensor_rank(n, DType::Float32),
            Operand::Tensor => TypeData::tensor_unknown(None),
            Operand::Sized(sizes) => {
                let size = |f: &mut Function, size: &SizePattern| match size {
                    SizePattern::Int(v) => f.syms.int(*v),
                    // Each size is a separate symbol, so that nothing is assumed about their relations.
                    _ => {
                        let v = f.fresh_sym("n");
                        f.syms.var(v)
                    }
                };
                let dims: Vec<Sym> = sizes.iter().map(|s| size(f, s)).collect();
                TypeData::tensor(dims, None)
            }
            Operand::Shape => TypeData::Shape { dims: None, ndim: None },
            Operand::Tuple(n) => {
                let any = f.types.intern(TypeData::Any);
                TypeData::Tuple(vec![any; n].into())
            }
            Operand::Sizes(n) => {
                let size = TypeData::Prim { dtype: DType::Int64, value: None };
                let size = f.types.intern(size);
                TypeData::Tuple(vec![size; n].into())
            }
        };
        let ty = f.types.intern(ty);
        let var = f.add_var("x", ty, false, Span::default());
        f.var_expr(var)
    }
}

/// Infers the type of a call of an operator with sample operands.
fn infer(
    op: Op,
    operands: &[Operand],
    attrs: &[AttrPair],
    ops: &dyn OpRegistry,
) -> Result<TypeData, InferError> {
    let mut f = Function::empty();
    let args: Vec<Expr> = operands.iter().map(|o| o.create_in(&mut f)).collect();
    let attrs = ops.complete(op, Attrs(attrs.to_vec()));
    let ty: Type = ops.infer(&mut f, op, &args, &attrs, &[])?;
    Ok(f.types.get(ty).clone())
}

/// Returns the reason why an operator rejects all operands that a pattern matches, or `None` if it may accept some. Only tuples,
/// shapes, constants and known sizes are checked.
pub(crate) fn wrong_operand(
    table: &PatternTable,
    op: Op,
    args: &[NodeId],
    ops: &dyn OpRegistry,
) -> Option<String> {
    let unknown = vec![Operand::Any; args.len()];
    infer(op, &unknown, &[], ops).ok()?;
    // The accepted sizes may depend on attributes that the pattern does not specify.
    let has_no_attrs = ops.signature(op)?.attrs.is_empty();
    let mut all = unknown.clone();
    for i in 0..args.len() {
        let mut one = unknown.clone();
        one[i] = Operand::of(table, args[i]);
        if let Operand::Sized(_) = one[i] {
            // The pattern may match a shape value, so the sizes are only checked if the operator accepts a tensor here.
            let mut tensor = unknown.clone();
            tensor[i] = Operand::Tensor;
            if !has_no_attrs || infer(op, &tensor, &[], ops).is_err() {
                continue;
            }
        }
        if matches!(one[i], Operand::Any) {
            continue;
        }
        if let Err(e) = infer(op, &one, &[], ops) {
            let Operand::Tuple(count) = one[i] else { return Some(e.message) };
            one[i] = Operand::Sizes(count);
            if infer(op, &one, &[], ops).is_err() {
                return Some(e.message);
            }
        }
        all[i] = one[i];
    }
    infer(op, &all, &[], ops).err().map(|e| e.message)
}

/// Returns the reason why the result of a call has no field with this index; `None` if it may have one.
pub(crate) fn missing_field(
    table: &PatternTable,
    id: NodeId,
    index: Option<u32>,
    ops: &dyn OpRegistry,
) -> Option<String> {
    let (op, args) = single_operator_call(table, id)?;
    // The number of fields may depend on attributes that the pattern does not specify.
    let count_is_known = ops.signature(op)?.attrs.is_empty();
    match (result_type(args, op, &[], ops)?, index) {
        (TypeData::Tuple(fields), Some(index))
            if count_is_known && index as usize >= fields.len() =>
        {
            let count = fields.len();
            Some(format!(
                "operator {op} returns a tuple of {count} fields, which has no field {index}"
            ))
        }
        (TypeData::Tensor { .. }, _) => Some(format!("{op} returns a tensor, which has no fields")),
        (TypeData::Shape { .. }, _) => Some(format!("{op} returns a shape, which has no fields")),
        _ => None,
    }
}

/// Returns the reason why an operator never accepts the value that a pattern requires for an attribute; `None` if it may.
pub(crate) fn wrong_attr(op: Op, attrs: &[AttrPair], ops: &dyn OpRegistry) -> Option<String> {
    let count = ops.signature(op)?.operands.iter().filter(|o| !o.optional && !o.variadic).count();
    // Without a known rank, many operators do not check their attributes.
    let tries = RANKS.map(Operand::Rank).chain([Operand::Any]);
    attrs.iter().find_map(|pair| {
        for operand in tries.clone() {
            match infer(op, &vec![operand; count], std::slice::from_ref(pair), ops) {
                Ok(_) => return None,
                Err(e) if e.attr.as_deref() == Some(&*pair.0) => return Some(e.message),
                Err(_) => {}
            }
        }
        None
    })
}

/// Returns the dtype that the results of all calls matched by the pattern have. Returns `Err` with a description if the results
/// have no dtype, and `None` if the dtype depends on the operands or on attributes that the pattern does not specify.
pub(crate) fn result_dtype(
    args: &[NodeId],
    op: Op,
    attrs: &[AttrPair],
    ops: &dyn OpRegistry,
) -> Option<Result<DType, &'static str>> {
    match result_type(args, op, attrs, ops)? {
        TypeData::Tuple(_) => Some(Err("a tuple")),
        TypeData::Shape { .. } => Some(Err("a shape")),
        ty => ty.dtype().map(Ok),
    }
}

/// Returns the result type of all calls that the pattern matches; `None` if the type depends on operands or attributes that the
/// pattern does not specify.
fn result_type(
    args: &[NodeId],
    op: Op,
    attrs: &[AttrPair],
    ops: &dyn OpRegistry,
) -> Option<TypeData> {
    if ops.infers_example_type(op) {
        return None;
    }
    let declared = &ops.signature(op)?.attrs;
    // Attributes with such defaults may determine the number or the types of the results.
    let may_affect_type = |default: &Option<AttrValue>| {
        matches!(
            default,
            None | Some(
                AttrValue::None | AttrValue::Str(_) | AttrValue::DType(_) | AttrValue::Bool(_)
            )
        )
    };
    let unspecified = |key: &str| attrs.iter().all(|(k, _)| &**k != key);
    if declared.iter().any(|(key, default)| may_affect_type(default) && unspecified(key)) {
        return None;
    }
    infer(op, &vec![Operand::Any; args.len()], attrs, ops).ok()
}

/// Returns the operator and the operand patterns of a pattern that only matches calls of a single operator with a fixed number of
/// operands. Returns `None` for other patterns.
pub(crate) fn single_operator_call(table: &PatternTable, id: NodeId) -> Option<(Op, &[NodeId])> {
    let Node::Call { callee, args, more: false } = &table.nodes[id as usize] else { return None };
    match table.callee_ops(*callee) {
        RootKinds { ops: Some(list), kinds: 0 } if list.len() == 1 => Some((list[0], args)),
        _ => None,
    }
}
