//! Uses the type inference of operators to check patterns of calls: which operands and attributes
//! are impossible, and which types the results have.

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_ir::relax::{Expr, Function, Type, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Op, OpRegistry, Span, Sym};

use super::size::SizePattern;
use super::table::{Heads, Node, NodeId, PatternTable};

/// The ranks with which operands are tried, for operators that check attributes only if the rank is
/// known.
const RANKS: std::ops::Range<u32> = 0..5;

type AttrPair = (Arc<str>, AttrValue);

/// The kind of operand with which type inference is tried.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Any,
    Rank(u32),
    Tensor,
    /// A tensor with these sizes.
    Sized(&'a [SizePattern]),
    Tuple(usize),
    /// A tuple of integers, which denotes a shape.
    Sizes(usize),
    Shape,
}

impl<'a> Operand<'a> {
    /// The kind of values that a pattern matches, as far as it is relevant for type inference.
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

    fn made_in(self, f: &mut Function) -> Expr {
        let ty = match self {
            Operand::Any => TypeData::Any,
            Operand::Rank(n) => TypeData::tensor_rank(n, DType::Float32),
            Operand::Tensor => TypeData::tensor_unknown(None),
            Operand::Sized(sizes) => {
                let size = |f: &mut Function, size: &SizePattern| match size {
                    SizePattern::Int(v) => f.syms.int(*v),
                    // Each size is a separate symbol, because equal sizes do not prove a mismatch.
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

/// Infers the type of a call of an operator with these operands.
fn infer(
    op: Op,
    operands: &[Operand],
    attrs: &[AttrPair],
    ops: &dyn OpRegistry,
) -> Result<TypeData, InferError> {
    let mut f = Function::empty();
    let args: Vec<Expr> = operands.iter().map(|o| o.made_in(&mut f)).collect();
    let attrs = ops.complete(op, Attrs(attrs.to_vec()));
    let ty: Type = ops.infer(&mut f, op, &args, &attrs, &[])?;
    Ok(f.types.get(ty).clone())
}

/// The reason why the operator accepts none of the operands that the pattern matches: tuples,
/// shapes, constants, known sizes.
pub(crate) fn wrong_operand(
    table: &PatternTable,
    op: Op,
    args: &[NodeId],
    ops: &dyn OpRegistry,
) -> Option<String> {
    let open = vec![Operand::Any; args.len()];
    infer(op, &open, &[], ops).ok()?;
    // The accepted sizes may depend on attributes that the pattern does not specify.
    let sizes_alone = ops.signature(op)?.attrs.is_empty();
    let mut all = open.clone();
    for i in 0..args.len() {
        let mut one = open.clone();
        one[i] = Operand::of(table, args[i]);
        if let Operand::Sized(_) = one[i] {
            // Shape values have sizes, too: only check those of a tensor if the operator accepts a
            // tensor.
            let mut tensor = open.clone();
            tensor[i] = Operand::Tensor;
            if !sizes_alone || infer(op, &tensor, &[], ops).is_err() {
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

/// The reason why the result of an operator call has no such field.
pub(crate) fn no_field(
    table: &PatternTable,
    id: NodeId,
    index: Option<u32>,
    ops: &dyn OpRegistry,
) -> Option<String> {
    let (op, args) = call_of_one(table, id)?;
    // The number of fields may depend on attributes that the pattern does not specify.
    let count_is_known = ops.signature(op)?.attrs.is_empty();
    match (result(args, op, &[], ops)?, index) {
        (TypeData::Tuple(fields), Some(index))
            if count_is_known && index as usize >= fields.len() =>
        {
            let count = fields.len();
            Some(format!("{op} gives a tuple of {count}, which has no field {index}"))
        }
        (TypeData::Tensor { .. }, _) => Some(format!("{op} gives a tensor, which has no fields")),
        (TypeData::Shape { .. }, _) => Some(format!("{op} gives a shape, which has no fields")),
        _ => None,
    }
}

/// The reason why the operator never accepts the value of an attribute.
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

/// The element type of all calls of an operator that the pattern matches; `Err` if the results have
/// none. `None` if it depends on the operands or on unspecified attributes.
pub(crate) fn result_dtype(
    args: &[NodeId],
    op: Op,
    attrs: &[AttrPair],
    ops: &dyn OpRegistry,
) -> Option<Result<DType, &'static str>> {
    match result(args, op, attrs, ops)? {
        TypeData::Tuple(_) => Some(Err("a tuple")),
        TypeData::Shape { .. } => Some(Err("a shape")),
        ty => ty.dtype().map(Ok),
    }
}

/// The type of all calls of an operator that the pattern matches, as for [`result_dtype`].
fn result(args: &[NodeId], op: Op, attrs: &[AttrPair], ops: &dyn OpRegistry) -> Option<TypeData> {
    if ops.infers_example_type(op) {
        return None;
    }
    let declared = &ops.signature(op)?.attrs;
    // String and bool attributes may select the results and their types.
    let chooses = |default: &Option<AttrValue>| {
        matches!(
            default,
            None | Some(
                AttrValue::None | AttrValue::Str(_) | AttrValue::DType(_) | AttrValue::Bool(_)
            )
        )
    };
    let open = |key: &str| attrs.iter().all(|(k, _)| &**k != key);
    if declared.iter().any(|(key, default)| chooses(default) && open(key)) {
        return None;
    }
    infer(op, &vec![Operand::Any; args.len()], attrs, ops).ok()
}

/// The operator and the operands of a pattern of calls of one operator with exactly these operands.
pub(crate) fn call_of_one(table: &PatternTable, id: NodeId) -> Option<(Op, &[NodeId])> {
    let Node::Call { callee, args, more: false } = &table.nodes[id as usize] else { return None };
    match table.callee_ops(*callee) {
        Heads { ops: Some(list), kinds: 0 } if list.len() == 1 => Some((list[0], args)),
        _ => None,
    }
}
