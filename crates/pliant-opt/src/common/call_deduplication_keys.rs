//! Keys of operator calls. Calls with equal keys can use the same loop function.

use std::sync::Arc;

use pliant_ir::Op;
use pliant_ir::relax::expr::AttrsId;
use pliant_ir::relax::{Expr, ExprData, Function, Type};

/// The key of an operator call, which determines the loop function of the call: the operator, the attributes, the
/// result type and the keys of the operands.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    op: Op,
    attrs: AttrsId,
    ty: Type,
    operands: Vec<OperandKey>,
}

impl CallKey {
    /// Returns (operands of the call, key of the call). Tuples among the operands are replaced by their fields.
    pub(crate) fn of(
        func: &Function,
        op: Op,
        args: &[Expr],
        attrs: AttrsId,
        ty: Type,
    ) -> (Vec<Expr>, CallKey) {
        let (flat, operands) = flatten_operands(func, args);
        (flat, CallKey { op, attrs, ty, operands })
    }
}

/// The key of one operand: its type, its value if the loop function depends on the value, and the index of the first operand of
/// the call that is the same expression.
#[derive(Clone, PartialEq, Eq, Hash)]
enum OperandKey {
    Value(Type, u32),
    Scalar(Type, Vec<u8>),
    Float(u64),
    Text(Arc<str>),
    Open,
    Close,
}

/// Flattens the tuples in a call's operands, and computes the key of each operand.
fn flatten_operands(func: &Function, args: &[Expr]) -> (Vec<Expr>, Vec<OperandKey>) {
    let (mut flat, mut keys) = (Vec::new(), Vec::new());
    for &arg in args {
        match func.tuple_fields(arg) {
            Some(fields) => {
                keys.push(OperandKey::Open);
                for &field in fields {
                    flat.push(field);
                    keys.push(operand_key(func, field, &flat));
                }
                keys.push(OperandKey::Close);
            }
            None => {
                flat.push(arg);
                keys.push(operand_key(func, arg, &flat));
            }
        }
    }
    (flat, keys)
}

fn operand_key(func: &Function, e: Expr, operands: &[Expr]) -> OperandKey {
    let ty = func.expr_ty(e);
    match func.expr(e) {
        ExprData::Constant(c) if func.const_tensor(*c).ndim() == 0 => {
            let bytes = func.const_tensor(*c).as_bytes().map(<[u8]>::to_vec);
            OperandKey::Scalar(ty, bytes.unwrap_or_default())
        }
        ExprData::Float(bits, _) => OperandKey::Float(*bits),
        ExprData::Str(s) => OperandKey::Text(func.str(*s).clone()),
        ExprData::DType(d) => OperandKey::Text(d.name().into()),
        _ => {
            // `x + x` and `x + y` need different keys: the loop function of `x + x` may have a single input.
            let first = operands.iter().position(|&f| f == e).unwrap_or(operands.len());
            OperandKey::Value(ty, first as u32)
        }
    }
}
