//! Inputs of `pliant run`: from files, or made for the values of the symbols.

use std::collections::BTreeMap;
use std::path::Path;

use pliant::{DType, Dim, Signature, Tensor, Value, ValueInfo};

use crate::Failure;
use crate::args::{Fill, RunArgs};
use crate::npy;

/// The arguments of the function, in order.
///
/// # Errors
/// What is wrong with an option or a file.
pub fn gather(args: &RunArgs, signature: &Signature) -> Result<Vec<Value>, Failure> {
    let mut files = BTreeMap::new();
    for text in &args.inputs {
        let (name, path) = split(text, "--input")?;
        if !signature.inputs.iter().any(|i| i.name == name) {
            let known: Vec<&str> = signature.inputs.iter().map(|i| &*i.name).collect();
            return Err(Failure::new(format!(
                "error: '{}' has no parameter '{name}' (it has: {})",
                signature.name,
                known.join(", ")
            )));
        }
        files.insert(name, path);
    }
    let mut symbols = BTreeMap::new();
    for text in &args.shapes {
        let (name, value) = split(text, "--shape")?;
        let value: i64 = value
            .parse()
            .map_err(|_| Failure::new(format!("error: --shape {text}: '{value}' is no integer")))?;
        symbols.insert(name, value);
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    signature
        .inputs
        .iter()
        .map(|input| match files.get(&*input.name) {
            Some(path) => npy::read(Path::new(path))
                .map(Value::Tensor)
                .map_err(|why| Failure::new(format!("error: {why}"))),
            None => make(input, &symbols, args.fill, &mut seed),
        })
        .collect()
}

fn split<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str), Failure> {
    text.split_once('=')
        .ok_or_else(|| Failure::new(format!("error: {option} {text}: expected NAME=VALUE")))
}

fn make(
    input: &ValueInfo,
    symbols: &BTreeMap<&str, i64>,
    fill: Fill,
    seed: &mut u64,
) -> Result<Value, Failure> {
    let missing = |what: String| {
        Failure::new(format!(
            "error: parameter '{}' of type {} has no value: {what}",
            input.name, input.ty
        ))
    };
    let (Some(shape), Some(dtype)) = (&input.shape, &input.dtype) else {
        return Err(missing(format!("give it with --input {}=FILE.npy", input.name)));
    };
    let mut dims = Vec::with_capacity(shape.len());
    for dim in shape {
        dims.push(match dim {
            Dim::Constant(value) => *value,
            Dim::Symbolic(text) => *symbols.get(&**text).ok_or_else(|| {
                missing(format!("give --shape {text}=N, or --input {}=FILE.npy", input.name))
            })?,
        });
    }
    let dtype: DType =
        dtype.parse().map_err(|_| missing(format!("the dtype {dtype} is not known")))?;
    let tensor = filled(&dims, dtype, fill, seed).map_err(missing)?;
    Ok(Value::Tensor(tensor))
}

fn filled(dims: &[i64], dtype: DType, fill: Fill, seed: &mut u64) -> Result<Tensor, String> {
    let zeros = Tensor::zeros(dims, dtype).map_err(|e| e.to_string())?;
    if fill == Fill::Zeros {
        return Ok(zeros);
    }
    let mut next = || {
        // The multiply-xorshift generator of Vigna: enough to fill inputs.
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        let unit = (*seed >> 11) as f64 / (1u64 << 53) as f64;
        match (fill, dtype.is_float()) {
            (Fill::Random, true) => unit,
            (Fill::Random, false) => unit.round(),
            _ => 1.0,
        }
    };
    let mut bytes = Vec::with_capacity(zeros.nbytes());
    for _ in 0..zeros.numel() {
        encode(next(), dtype, &mut bytes);
    }
    Tensor::from_bytes(dims, dtype, &bytes).map_err(|e| e.to_string())
}

fn encode(value: f64, dtype: DType, out: &mut Vec<u8>) {
    match dtype {
        DType::Float64 => out.extend(value.to_ne_bytes()),
        DType::Float32 => out.extend((value as f32).to_ne_bytes()),
        DType::BFloat16 => {
            out.extend(((value as f32).to_bits().wrapping_shr(16) as u16).to_ne_bytes())
        }
        DType::Float16 => out.extend(half_bits(value).to_ne_bytes()),
        _ => {
            let bytes = (value as i64).to_le_bytes();
            out.extend(&bytes[..dtype.size()]);
        }
    }
}

/// The bits of a float16, for values in [0, 1] and rounded down.
fn half_bits(value: f64) -> u16 {
    if value < 2f64.powi(-14) {
        return (value * 2f64.powi(24)) as u16;
    }
    let exponent = value.log2().floor();
    let mantissa = ((value / exponent.exp2() - 1.0) * 1024.0) as u16;
    ((exponent as i32 + 15) as u16) << 10 | mantissa
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_inputs_have_the_shape_and_type_asked_for() {
        let mut seed = 1;
        for dtype in DType::all() {
            let ones = filled(&[2, 3], dtype, Fill::Ones, &mut seed).unwrap();
            assert_eq!(ones.to_f64_vec().unwrap(), [1.0; 6], "{dtype}");
            let random = filled(&[50], dtype, Fill::Random, &mut seed).unwrap();
            assert!(
                random.to_f64_vec().unwrap().iter().all(|v| (0.0..=1.0).contains(v)),
                "{dtype}"
            );
        }
        assert!(filled(&[-1], DType::Float32, Fill::Ones, &mut seed).is_err());
    }
}
