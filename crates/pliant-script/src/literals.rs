//! Literals: numbers, nested lists as tensors, attribute values, and the `metadata` table of large constants.

use pliant_ir::AttrValue;
use pliant_tensor::{DType, Tensor};

use crate::host_environment::HostValue;
use crate::parser_context::{ParseContext, parse_dtype};
use crate::python::ast::{BinOp, Expr, ExprKind, UnaryOp};
use crate::script_errors::{ErrorKind, Res};

/// A number in a constant, as a float and as an integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    pub float: f64,
    /// The value of the number as an integer. The type i128 can represent all integer data types and the result of one operation on
    /// them.
    pub int: i128,
    pub kind: LiteralKind,
}

/// The kind of a literal. It determines the data type if none is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LiteralKind {
    Bool,
    Int,
    Float,
}

impl Number {
    pub fn of_bool(v: bool) -> Self {
        Number { float: f64::from(u8::from(v)), int: i128::from(v), kind: LiteralKind::Bool }
    }

    pub fn of_int(v: impl Into<i128>) -> Self {
        let int = v.into();
        Number { float: int as f64, int, kind: LiteralKind::Int }
    }

    pub fn of_float(v: f64) -> Self {
        Number { float: v, int: v as i128, kind: LiteralKind::Float }
    }
}

/// The data type of a constant for which none is stated: bool if all items are bools, float32 if one is a float, else int32.
pub(crate) fn default_dtype(items: &[Number]) -> DType {
    match items.iter().map(|n| n.kind).max() {
        Some(LiteralKind::Float) => DType::Float32,
        Some(LiteralKind::Bool) => DType::Bool,
        _ => DType::Int32,
    }
}

/// Creates a tensor from its elements in row-major order. `None` if the number of elements does not
/// match the shape, or if `dtype` cannot represent an element.
pub(crate) fn tensor(items: &[Number], shape: &[i64], dtype: DType) -> Option<Tensor> {
    let mut bytes = Vec::with_capacity(items.len().checked_mul(dtype.size())?);
    for n in items {
        push_element(&mut bytes, *n, dtype)?;
    }
    Tensor::from_bytes(shape, dtype, &bytes).ok()
}

fn push_element(out: &mut Vec<u8>, n: Number, dtype: DType) -> Option<()> {
    let int = |lo: i128, hi: i128| -> Option<i128> {
        let exact = n.kind != LiteralKind::Float || n.float == n.int as f64;
        (exact && n.int >= lo && n.int <= hi).then_some(n.int)
    };
    match dtype {
        DType::Bool => out.push(u8::from(int(0, 1)? != 0)),
        DType::Int8 => out.push(int(-128, 127)? as i8 as u8),
        DType::UInt8 => out.push(int(0, 255)? as u8),
        DType::Int16 => out.extend((int(-(1 << 15), (1 << 15) - 1)? as i16).to_le_bytes()),
        DType::UInt16 => out.extend((int(0, (1 << 16) - 1)? as u16).to_le_bytes()),
        DType::Int32 => out.extend((int(-(1 << 31), (1 << 31) - 1)? as i32).to_le_bytes()),
        DType::UInt32 => out.extend((int(0, (1 << 32) - 1)? as u32).to_le_bytes()),
        DType::Int64 => out.extend((int(i64::MIN.into(), i64::MAX.into())? as i64).to_le_bytes()),
        DType::UInt64 => out.extend((int(0, u64::MAX.into())? as u64).to_le_bytes()),
        DType::Float16 => out.extend(pliant_tensor::round_to_f16(n.float).to_le_bytes()),
        DType::BFloat16 => out.extend(pliant_tensor::round_to_bf16(n.float).to_le_bytes()),
        DType::Float32 => out.extend((n.float as f32).to_le_bytes()),
        DType::Float64 => out.extend(n.float.to_le_bytes()),
    }
    Some(())
}

/// Appends the elements of a number or nested list to `items` in row-major order. Returns the shape, or `None` for other
/// expressions and ragged lists.
pub(crate) fn nested(e: &Expr<'_>, items: &mut Vec<Number>) -> Option<Vec<i64>> {
    if let Some(n) = number(e) {
        items.push(n);
        return Some(Vec::new());
    }
    let rows = e.as_sequence()?;
    let mut inner: Option<Vec<i64>> = None;
    for row in rows {
        let shape = nested(row, items)?;
        if inner.get_or_insert_with(|| shape.clone()) != &shape {
            return None;
        }
    }
    let mut shape = vec![rows.len() as i64];
    shape.extend(inner.unwrap_or_default());
    Some(shape)
}

/// Parses a number with an optional sign, or a call such as `float("inf")`.
pub(crate) fn number(e: &Expr<'_>) -> Option<Number> {
    match &e.kind {
        ExprKind::Int(v) => Some(Number::of_int(*v)),
        ExprKind::BigInt(v) => Some(Number::of_int(*v)),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (number(a)?, number(b)?);
            let whole = a.kind == LiteralKind::Int && b.kind == LiteralKind::Int;
            whole.then(|| integer(*op, a.int, b.int)).flatten().map(Number::of_int)
        }
        ExprKind::Bool(v) => Some(Number::of_bool(*v)),
        ExprKind::Float(v) => Some(Number::of_float(*v)),
        ExprKind::Unary(UnaryOp::Neg, v) => {
            let n = number(v)?;
            match n.kind {
                LiteralKind::Float => Some(Number::of_float(-n.float)),
                _ => Some(Number::of_int(n.int.checked_neg()?)),
            }
        }
        ExprKind::Unary(UnaryOp::Pos, v) => number(v),
        ExprKind::Call(call) if call.func.as_name() == Some("float") && call.args.len() == 1 => {
            named_float(call.args[0].as_str()?).map(Number::of_float)
        }
        _ => None,
    }
}

/// Evaluates arithmetic on integer literals, such as `2 * 3`. `None` for other expressions, and if
/// the result does not fit 64 bits.
pub(crate) fn integer_of(e: &Expr<'_>) -> Option<i64> {
    // Limit the depth, because each level visits all levels below it.
    const DEPTH: u16 = 8;
    let n = (e.depth <= DEPTH).then(|| number(e)).flatten()?;
    (n.kind == LiteralKind::Int).then_some(n.int)?.try_into().ok()
}

/// Computes an integer operation with Python's semantics. `None` if the result overflows 128 bits or is not an integer.
fn integer(op: BinOp, a: i128, b: i128) -> Option<i128> {
    match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Pow => a.checked_pow(u32::try_from(b).ok()?),
        BinOp::Shl if (0..127).contains(&b) => a.checked_mul(1 << b),
        BinOp::Shr if b >= 0 => Some(a >> b.min(127)),
        _ => None,
    }
}

/// Parses the names of special floats: `inf`, `-inf`, `nan`, `-nan`.
pub(crate) fn named_float(text: &str) -> Option<f64> {
    match text {
        "inf" | "+inf" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        "nan" => Some(f64::NAN),
        "-nan" => Some(-f64::NAN),
        _ => text.parse().ok(),
    }
}

/// Parses the tensors of `metadata = {"relax.expr.Constant": [I.tensor(shape, dtype, data), ...]}`, to which the script refers by
/// index.
pub(crate) fn metadata<'s>(cx: &ParseContext<'s>, e: &Expr<'s>) -> Res<Vec<Tensor>> {
    let bad = |e: &Expr<'_>, what: &str| {
        cx.error(ErrorKind::Value, e.range, format!("the script's `metadata` is invalid: {what}"))
    };
    let ExprKind::Dict(items) = &e.kind else {
        return Err(bad(
            e,
            "it must be a dict with the key \"relax.expr.Constant\" and a list of tensors",
        ));
    };
    let mut out = Vec::new();
    for (key, value) in items {
        if key.as_str() != Some("relax.expr.Constant") {
            return Err(bad(key, "the only allowed key is \"relax.expr.Constant\""));
        }
        let Some(entries) = value.as_sequence() else {
            return Err(bad(
                value,
                "the value of \"relax.expr.Constant\" must be a list of tensors",
            ));
        };
        for entry in entries {
            let tensor = entry.as_call().and_then(|call| {
                let [shape, dtype, data] = call.args.as_slice() else { return None };
                let shape: Option<Vec<i64>> = shape
                    .as_sequence()?
                    .iter()
                    .map(|d| {
                        number(d)
                            .filter(|n| n.kind != LiteralKind::Float)
                            .and_then(|n| n.int.try_into().ok())
                    })
                    .collect();
                let (shape, dtype) = (shape?, parse_dtype(dtype.as_str()?)?);
                if let Some(text) = data.as_str() {
                    return Tensor::from_bytes(&shape, dtype, &from_base64(text)?).ok();
                }
                let mut items = Vec::new();
                let data_shape = nested(data, &mut items)?;
                (data_shape == shape).then(|| tensor(&items, &shape, dtype)).flatten()
            });
            out.push(tensor.ok_or_else(|| {
                bad(entry, "each constant must be written as I.tensor(shape, dtype, data), where data is a number, nested lists of numbers that fit the shape and the data type, or base64 text")
            })?);
        }
    }
    Ok(out)
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| -> Option<u32> {
        Some(u32::from(match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.as_bytes().chunks(4) {
        let mut word = 0;
        for i in 0..4 {
            word = word << 6 | chunk.get(i).map_or(Some(0), |&c| digit(c))?;
        }
        let bytes = word.to_be_bytes();
        out.extend_from_slice(&bytes[1..chunk.len()]);
    }
    Some(out)
}

/// Converts a literal to an attribute value; `None` if the expression is not a literal.
pub(crate) fn attr(e: &Expr<'_>) -> Option<AttrValue> {
    Some(match &e.kind {
        ExprKind::None => AttrValue::None,
        ExprKind::Bool(b) => AttrValue::Bool(*b),
        ExprKind::Str(s) => AttrValue::str(s),
        ExprKind::Tuple(items) | ExprKind::List(items) => {
            AttrValue::List(items.iter().map(attr).collect::<Option<_>>()?)
        }
        ExprKind::Dict(items) => AttrValue::Map(
            items
                .iter()
                .map(|(k, v)| Some((k.as_str()?.into(), attr(v)?)))
                .collect::<Option<_>>()?,
        ),
        // `T.bool(True)`, `T.int64(1)`.
        ExprKind::Call(call) if call.args.len() == 1 && call.keywords.is_empty() => {
            typed_attr(call.func.dotted()?.last()?, attr(&call.args[0])?)?
        }
        _ => match number(e)? {
            n if n.kind == LiteralKind::Float => AttrValue::float(n.float),
            n => AttrValue::Int(n.int.try_into().ok()?),
        },
    })
}

/// Converts an attribute value to the data type with the given name, as in `T.int64(1)`.
fn typed_attr(dtype: &str, value: AttrValue) -> Option<AttrValue> {
    let dtype = parse_dtype(dtype)?;
    Some(match value {
        AttrValue::Bool(_) | AttrValue::Int(_) if dtype.is_bool() => {
            AttrValue::Bool(value.as_bool()?)
        }
        AttrValue::Bool(_) | AttrValue::Int(_) if dtype.is_integer() => {
            AttrValue::Int(value.as_int()?)
        }
        AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) if dtype.is_float() => {
            AttrValue::float(value.as_float()?)
        }
        _ => return None,
    })
}

/// Converts a value of the surrounding Python program to an attribute value; `None` if it has no equivalent.
pub(crate) fn host_attr(value: &HostValue) -> Option<AttrValue> {
    Some(match value {
        HostValue::None => AttrValue::None,
        HostValue::Bool(v) => AttrValue::Bool(*v),
        HostValue::Int(v) => AttrValue::Int(*v),
        HostValue::Float(v) => AttrValue::float(*v),
        HostValue::Str(v) => AttrValue::str(v),
        HostValue::DType(v) => AttrValue::DType(*v),
        HostValue::List(items) | HostValue::Tuple(items) => {
            AttrValue::List(items.iter().map(host_attr).collect::<Option<_>>()?)
        }
        HostValue::Map(items) => {
            let items = items.iter().map(|(k, v)| Some((k.as_str().into(), host_attr(v)?)));
            AttrValue::Map(items.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
