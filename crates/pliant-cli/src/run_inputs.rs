//! The inputs of a run, which are read from files or generated for the sizes of the symbols.

use std::path::Path;

use pliant::onnx::evaluate_dim;
use pliant::{DType, Dim, Signature, Tensor, Value, ValueInfo};

use crate::args::{FeedArgs, Fill};
use crate::shape_option::{self, Axis, Point};
use pliant_runtime::npy;

use crate::Failure;

/// The inputs of a run, as the command line specifies them.
pub struct Feed<'a> {
    args: &'a FeedArgs,
    /// The names of inputs that are read from files, each with the file that contains its array.
    files: Vec<(&'a str, &'a str)>,
    /// The symbols that the option `--shape` names, each with the sizes at which the model runs.
    pub axes: Vec<Axis>,
}

impl<'a> Feed<'a> {
    /// Parses the options `--input`, `--shape` and `--fill`.
    ///
    /// # Errors
    /// If an option is invalid.
    pub fn new(args: &'a FeedArgs) -> Result<Feed<'a>, Failure> {
        let files = args.inputs.iter().map(|text| {
            text.split_once('=').ok_or_else(|| {
                Failure::new(format!("error: --input {text} must have the form NAME=FILE.npy"))
            })
        });
        Ok(Feed {
            args,
            files: files.collect::<Result<_, _>>()?,
            axes: shape_option::parse(&args.shapes)?,
        })
    }

    /// Returns the size of each symbol, for commands that run at one shape.
    ///
    /// # Errors
    /// If a symbol has several sizes.
    pub fn only_point(&self) -> Result<Point, Failure> {
        let single_size = |axis: &Axis| match axis.sizes[..] {
            [size] => Ok((axis.symbol.clone(), size)),
            _ => Err(Failure::new(format!(
                "error: --shape gives {1} sizes for the symbol '{0}', but this command runs at one size (only `pliant bench` takes ranges)",
                axis.symbol,
                axis.sizes.len()
            ))),
        };
        self.axes.iter().map(single_size).collect()
    }

    /// Reads or generates the arguments of a function for the symbol sizes in `point`. Returns them
    /// in the order of the parameters.
    ///
    /// # Errors
    /// If an option or a file is invalid.
    pub fn values(
        &self,
        signature: &Signature,
        point: &[(String, i64)],
    ) -> Result<Vec<Value>, Failure> {
        let names = signature.feed_names();
        for (name, _) in &self.files {
            if !names.contains(name) && !signature.inputs.iter().any(|i| i.name == *name) {
                return Err(Failure::new(format!(
                    "error: --input: function '{}' has no parameter '{name}' (it has: {})",
                    signature.name,
                    names.join(", ")
                )));
            }
        }
        self.check_symbols(signature)?;
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut values = Vec::with_capacity(names.len());
        for (input, name) in signature.inputs.iter().zip(&names) {
            let files = self.files.iter().filter(|(n, _)| n == name || *n == input.name);
            values.push(match files.map(|(_, path)| *path).collect::<Vec<_>>()[..] {
                [] => generate_input(input, name, point, self.args.fill, &mut seed)?,
                // An input without an element type is a sequence, even if it has one file.
                [path] if input.dtype.is_some() => Value::Tensor(read(path)?),
                [_, second, ..] if input.dtype.is_some() => {
                    return Err(Failure::new(format!(
                        "error: --input {name}={second}: another --input already names a file for the parameter '{name}'"
                    )));
                }
                ref paths => {
                    let items: Result<Vec<Value>, Failure> =
                        paths.iter().map(|path| read(path).map(Value::Tensor)).collect();
                    Value::tuple(items?)
                }
            });
        }
        Ok(values)
    }

    /// Rejects `--shape` sizes for symbols that no input has, since they would have no effect.
    fn check_symbols(&self, signature: &Signature) -> Result<(), Failure> {
        let mut known = Vec::new();
        for dim in signature.inputs.iter().filter_map(|i| i.shape.as_ref()).flatten() {
            if let Dim::Symbolic(text) = dim {
                evaluate_dim(text, &mut |name| {
                    if !known.iter().any(|k| k == name) {
                        known.push(name.to_owned());
                    }
                    Some(1)
                });
            }
        }
        let Some(axis) = self.axes.iter().find(|a| !known.contains(&a.symbol)) else {
            return Ok(());
        };
        let available = match known.is_empty() {
            true => "all their sizes are constant".into(),
            false => format!("they have: {}", known.join(", ")),
        };
        let (symbol, name) = (&axis.symbol, &signature.name);
        Err(Failure::new(format!(
            "error: --shape: the inputs of function '{name}' have no symbol '{symbol}' ({available})"
        )))
    }
}

fn read(path: &str) -> Result<Tensor, Failure> {
    npy::read(Path::new(path)).map_err(|why| Failure::new(format!("error: {why}")))
}

/// Generates an input tensor for the symbol sizes in `point`.
fn generate_input(
    input: &ValueInfo,
    name: &str,
    point: &[(String, i64)],
    fill: Fill,
    seed: &mut u64,
) -> Result<Value, Failure> {
    let missing = |reason: String| {
        Failure::new(format!(
            "error: parameter '{name}' of type {} has no value: {reason}",
            input.ty
        ))
    };
    let (Some(shape), Some(dtype)) = (&input.shape, &input.dtype) else {
        let text = "pass --input {name}=FILE.npy, once for each tensor of a sequence";
        return Err(missing(text.replace("{name}", name)));
    };
    let (mut dims, mut missing_sizes) = (Vec::with_capacity(shape.len()), Vec::new());
    for dim in shape {
        dims.push(match dim {
            Dim::Constant(value) => Ok(*value),
            Dim::Symbolic(text) => {
                let size = evaluate_dim(text, &mut |symbol| {
                    let known = point.iter().find(|(s, _)| s == symbol).map(|(_, n)| *n);
                    let size = format!("{symbol}=N");
                    if known.is_none() && !missing_sizes.contains(&size) {
                        missing_sizes.push(size);
                    }
                    known
                });
                size.ok_or(text)
            }
        });
    }
    if !missing_sizes.is_empty() {
        let sizes = missing_sizes.join(",");
        return Err(missing(format!("pass --shape {sizes}, or --input {name}=FILE.npy")));
    }
    let sizes = dims.into_iter().collect::<Result<Vec<i64>, &String>>();
    let dims = sizes.map_err(|text| {
        missing(format!("its dim {text} has no valid size for the symbols in --shape"))
    })?;
    let dtype: DType =
        dtype.parse().map_err(|_| missing(format!("its data type {dtype} is unknown")))?;
    let tensor = filled_tensor(&dims, dtype, fill, seed).map_err(missing)?;
    Ok(Value::Tensor(tensor))
}

/// Creates a tensor of the given shape and type with generated values.
fn filled_tensor(dims: &[i64], dtype: DType, fill: Fill, seed: &mut u64) -> Result<Tensor, String> {
    let zeros = Tensor::zeros(dims, dtype).map_err(|e| e.to_string())?;
    if fill == Fill::Zeros {
        return Ok(zeros);
    }
    let mut next = || {
        // A xorshift random number generator.
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
        push_element(next(), dtype, &mut bytes);
    }
    Tensor::from_bytes(dims, dtype, &bytes).map_err(|e| e.to_string())
}

/// Appends `value`, converted to the element type, to the bytes in `out`.
fn push_element(value: f64, dtype: DType, out: &mut Vec<u8>) {
    match dtype {
        DType::Float64 => out.extend(value.to_ne_bytes()),
        DType::Float32 => out.extend((value as f32).to_ne_bytes()),
        DType::BFloat16 => {
            out.extend(((value as f32).to_bits().wrapping_shr(16) as u16).to_ne_bytes())
        }
        DType::Float16 => out.extend(float16_bits(value).to_ne_bytes()),
        _ => {
            let bytes = (value as i64).to_le_bytes();
            out.extend(&bytes[..dtype.size()]);
        }
    }
}

/// Converts a value in [0, 1] to float16, rounding down, and returns its bits.
fn float16_bits(value: f64) -> u16 {
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
    fn generated_inputs_have_the_requested_shape_and_type() {
        let mut seed = 1;
        for dtype in DType::all() {
            let ones = filled_tensor(&[2, 3], dtype, Fill::Ones, &mut seed).unwrap();
            assert_eq!(ones.to_f64_vec().unwrap(), [1.0; 6], "{dtype}");
            let random = filled_tensor(&[50], dtype, Fill::Random, &mut seed).unwrap();
            assert!(
                random.to_f64_vec().unwrap().iter().all(|v| (0.0..=1.0).contains(v)),
                "{dtype}"
            );
        }
        assert!(filled_tensor(&[-1], DType::Float32, Fill::Ones, &mut seed).is_err());
    }
}
