//! User-registered operators: the Relax operator `relax.my.outer_sum` implements the ONNX operator `outer_sum` of the domain `my`.

use pliant_ir::relax::{Expr, TypeData};
use pliant_ir::{AttrValue, Attrs, Op, OpRegistry};
use pliant_ops::registry;

use crate::import_error::Problem;
use crate::node::{ConvertResult, Node};
use crate::proto::AttributeProto;
use crate::proto::attribute_proto::AttributeType;

/// The user-registered operator that implements an ONNX operator, if any.
pub(crate) fn find(domain: &str, name: &str) -> Option<Op> {
    let full = match domain {
        "" => format!("relax.{name}"),
        _ => format!("relax.{domain}.{name}"),
    };
    let op = registry().lookup(&full)?;
    registry().decl(op).is_none().then_some(op)
}

/// Emits a call of the user's operator with the node's inputs and attributes.
pub(crate) fn convert(n: &mut Node<'_, '_>, op: Op) -> ConvertResult {
    let input_count = (0..n.len()).rev().find(|&i| n.has_input(i)).map_or(0, |last| last + 1);
    let inputs: Vec<Expr> =
        (0..input_count).map(|i| n.tensor_or_null(i)).collect::<Result<_, _>>()?;
    let mut attrs = Attrs::default();
    for attr in &n.proto.attribute {
        attrs.set(attr.name(), attr_value(attr)?);
    }
    let result = n.op_with(op.name(), &inputs, attrs)?;
    let TypeData::Tuple(fields) = n.func().ty(result) else { return Ok(vec![result.into()]) };
    let count = fields.len() as u32;
    Ok((0..count).map(|i| n.func().tuple_get_item(result, i).into()).collect())
}

/// Converts an ONNX attribute to an attribute value of a Relax operator.
fn attr_value(attr: &AttributeProto) -> Result<AttrValue, Problem> {
    let text = |bytes: &[u8]| {
        std::str::from_utf8(bytes).map(AttrValue::str).map_err(|_| {
            Problem::attribute(format!("attribute '{}' is not UTF-8 text", attr.name()))
        })
    };
    let float = |v: &f32| AttrValue::float(f64::from(*v));
    Ok(match attr.r#type() {
        AttributeType::Int => AttrValue::Int(attr.i()),
        AttributeType::Float => float(&attr.f()),
        AttributeType::String => text(attr.s.as_deref().unwrap_or_default())?,
        AttributeType::Ints => AttrValue::ints(attr.ints.iter().copied()),
        AttributeType::Floats => AttrValue::List(attr.floats.iter().map(float).collect()),
        AttributeType::Strings => {
            AttrValue::List(attr.strings.iter().map(|s| text(s)).collect::<Result<_, _>>()?)
        }
        kind => {
            return Err(Problem::unsupported(format!(
                "attribute '{}' has the type {}, which user-registered operators do not support",
                attr.name(),
                kind.as_str_name()
            )));
        }
    })
}
