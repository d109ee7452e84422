//! Keys of operator calls. Calls with equal keys can share one loop function.

use std::sync::Arc;

use pliant_ir::Op;
use pliant_ir::relax::expr::AttrsId;
use pliant_ir::relax::{Expr, ExprData, Function, Type};

/// Everything that determines the loop function of a call.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    op: Op,
    attrs: AttrsId,
    ty: Type,
    operands: Vec<OperandKey>,
}

impl CallKey {
    /// The operands of a call with tuples expanded, and the call's key.
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

/// The part of the key for one operand: its type, its value if that becomes part of the loop
/// function, and the first equal operand before it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum OperandKey {
    Value(Type, u32),
    Scalar(Type, Vec<u8>),
    Float(u64),
    Text(Arc<str>),
    Open,
    Close,
}

/// The operands with tuples expanded, and their parts of the key.
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
            // `x + x` is not `x + y`: its loop function may read one input for both operands.
            let first = operands.iter().position(|&f| f == e).unwrap_or(operands.len());
            OperandKey::Value(ty, first as u32)
        }
    }
}
