//! Converter of the ONNX operator `BitCast`.

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors;
use crate::node::{ConvertResult, Node};
use crate::subbyte_types::{is_narrow_float, narrow_type};

pub(super) static OPS: &[OnnxOp] = &[op("BitCast", bit_cast)];

fn bit_cast(n: &mut Node<'_, '_>) -> ConvertResult {
    let to = n.attrs().int("to")?;
    let to = to.ok_or_else(|| Problem::attribute("attribute 'to' is missing"))?;
    // Narrow floats are stored as bit patterns.
    let x = match n.narrow_tensor(0)? {
        Some((ty, storage)) if is_narrow_float(ty) => storage,
        Some((ty, _)) => return Err(unsupported_bits(ty.as_str_name())),
        None => n.tensor(0)?,
    };
    let narrow = narrow_type(to);
    if let Some(ty) = narrow.filter(|&ty| !is_narrow_float(ty)) {
        return Err(unsupported_bits(ty.as_str_name()));
    }
    let to = initializer_tensors::checked_dtype(to)?;
    let from = n.dtype(x)?;
    if from.size() != to.size() {
        let message =
            format!("the node casts {from} to {to}, whose elements have another number of bits");
        return Err(Problem::invalid(message)
            .with_help("to convert the values, use Cast instead of BitCast"));
    }
    let y = if from == to { x } else { n.bitcast(x, to)? };
    Ok(vec![match narrow {
        Some(ty) => Value::Narrow(ty, Box::new(y.into())),
        None => y.into(),
    }])
}

fn unsupported_bits(name: &str) -> Problem {
    let text = format!("BitCast from or to {name}, a type of less than 8 bits, is not supported");
    Problem::unsupported(text)
}
