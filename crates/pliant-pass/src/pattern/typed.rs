//! What the type rules of operators say about the calls that a pattern matches: which operands and attributes none of
//! them has, and of what type their results are.

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_ir::relax::{Expr, Function, Type, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Op, OpRegistry, Span, Sym};

use super::size::SizePattern;
use super::table::{Heads, Node, NodeId, PatternTable};

/// The ranks that operands are tried with where a rule looks at an attribute only once it knows the rank.
const RANKS: std::ops::Range<u32> = 0..5;

type AttrPair = (Arc<str>, AttrValue);

/// What a rule is tried with in the place of an operand.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Any,
    Rank(u32),
    Tensor,
    /// A tensor of those sizes.
    Sized(&'a [SizePattern]),
    Tuple(usize),
    /// A tuple of integers, which stands for a shape.
    Sizes(usize),
    Shape,
}

impl<'a> Operand<'a> {
    /// What a pattern matches, as far as that matters to a type rule.
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
                    // Each is a size of its own: that two are one size proves no misfit.
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

/// The type of a call of an operator with such operands.
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

/// Why operands that are always tuples, shapes, constants or of known sizes are none that the operator takes.
pub(crate) fn wrong_operand(
    table: &PatternTable,
    op: Op,
    args: &[NodeId],
    ops: &dyn OpRegistry,
) -> Option<String> {
    let open = vec![Operand::Any; args.len()];
    infer(op, &open, &[], ops).ok()?;
    // Which sizes fit may depend on attributes, which the pattern leaves open.
    let sizes_alone = ops.signature(op)?.attrs.is_empty();
    let mut all = open.clone();
    for i in 0..args.len() {
        let mut one = open.clone();
        one[i] = Operand::of(table, args[i]);
        if let Operand::Sized(_) = one[i] {
            // Shapes have sizes too: only where a tensor is taken are they those of one.
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

/// Why a value that a call of an operator gives has no such field.
pub(crate) fn no_field(
    table: &PatternTable,
    id: NodeId,
    index: Option<u32>,
    ops: &dyn OpRegistry,
) -> Option<String> {
    let (op, args) = call_of_one(table, id)?;
    // How many fields there are may depend on attributes, which the pattern leaves open.
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

/// Why a value of an attribute is none that the operator takes, whatever its operands are.
pub(crate) fn wrong_attr(op: Op, attrs: &[AttrPair], ops: &dyn OpRegistry) -> Option<String> {
    let count = ops.signature(op)?.operands.iter().filter(|o| !o.optional && !o.variadic).count();
    // Without a rank, many rules do not look at their attributes.
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

/// The element type of every call of an operator that a pattern matches; `Err` where the results have none. `None` where
/// that depends on the operands or on attributes that the pattern leaves open.
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

/// The type of every call of an operator that a pattern matches, as [`result_dtype`].
fn result(args: &[NodeId], op: Op, attrs: &[AttrPair], ops: &dyn OpRegistry) -> Option<TypeData> {
    if ops.infers_by_example(op) {
        return None;
    }
    let declared = &ops.signature(op)?.attrs;
    // Texts and flags choose what is given, and of what type.
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

/// The operator and operands of a pattern of calls of one operator with just these operands.
pub(crate) fn call_of_one(table: &PatternTable, id: NodeId) -> Option<(Op, &[NodeId])> {
    let Node::Call { callee, args, more: false } = &table.nodes[id as usize] else { return None };
    match table.callee_ops(*callee) {
        Heads { ops: Some(list), kinds: 0 } if list.len() == 1 => Some((list[0], args)),
        _ => None,
    }
}
