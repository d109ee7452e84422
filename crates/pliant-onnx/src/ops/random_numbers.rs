//! Converters of operators that generate random numbers. Each number is a hash of the element's index and a seed, so every run
//! produces the same numbers. The seed is an attribute. Default: a hash of the output's name.

use pliant_ir::DType;
use pliant_sym::Sym;

use super::{OnnxOp, op};
use crate::import_error::Problem;
use crate::node::{ConvertResult, ExprResult, Node};

pub(super) static OPS: &[OnnxOp] = &[
    op("Bernoulli", bernoulli),
    op("Dropout", dropout),
    op("RandomNormal", |n| random_of_shape(n, normal)),
    op("RandomNormalLike", |n| random_like(n, normal)),
    op("RandomUniform", |n| random_of_shape(n, uniform)),
    op("RandomUniformLike", |n| random_like(n, uniform)),
];

type Distribution = fn(&mut Node<'_, '_>, &[Sym]) -> ExprResult;

/// The seed of a node: an attribute, or a hash of the name of its output.
fn seed(n: &Node<'_, '_>) -> Result<u32, Problem> {
    // The seed of `Dropout` is an integer, that of other operators is a float.
    if let Ok(Some(seed)) = n.attrs().int("seed") {
        return Ok(seed as u32);
    }
    if let Some(seed) = n.attrs().float("seed")? {
        return Ok((seed as f32).to_bits());
    }
    // FNV-1a hash of the output's name.
    let name = n.proto.output.first().map_or("", String::as_str);
    Ok(name.bytes().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)))
}

/// Emits uniform random numbers in `0 .. 1` as float32, from the upper bits of the hash.
fn uniform_unit(n: &mut Node<'_, '_>, dims: &[Sym], seed: u32) -> ExprResult {
    let count = n.func().syms.product(dims.iter().copied());
    let index = n.iota(count)?;
    let mut x = n.cast(index, DType::UInt32)?;
    let constant = |n: &mut Node<'_, '_>, v: u32| n.scalar(v);
    let (step, start) = (constant(n, 0x9e37_79b9)?, constant(n, seed)?);
    x = n.op("relax.multiply", &[x, step])?;
    x = n.op("relax.add", &[x, start])?;
    for (shift, factor) in [(16, 0x7feb_352d), (15, 0x846c_a68b), (16, 1)] {
        let (shift, factor) = (constant(n, shift)?, constant(n, factor)?);
        let high = n.op("relax.right_shift", &[x, shift])?;
        x = n.op("relax.bitwise_xor", &[x, high])?;
        x = n.op("relax.multiply", &[x, factor])?;
    }
    let low = constant(n, 8)?;
    let x = n.op("relax.right_shift", &[x, low])?;
    let x = n.cast(x, DType::Float32)?;
    let scale = n.scalar_as(2f64.powi(-24), DType::Float32)?;
    let x = n.op("relax.multiply", &[x, scale])?;
    n.reshape(x, dims)
}

/// Emits uniform random numbers between the attributes `low` and `high`.
fn uniform(n: &mut Node<'_, '_>, dims: &[Sym]) -> ExprResult {
    let low = n.attrs().float("low")?.unwrap_or(0.0);
    let high = n.attrs().float("high")?.unwrap_or(1.0);
    let seed = seed(n)?;
    let x = uniform_unit(n, dims, seed)?;
    let (low, span) = (n.scalar_as(low, DType::Float32)?, n.scalar_as(high - low, DType::Float32)?);
    let x = n.op("relax.multiply", &[x, span])?;
    n.op("relax.add", &[x, low])
}

/// Emits normally distributed random numbers (Box-Muller transform).
fn normal(n: &mut Node<'_, '_>, dims: &[Sym]) -> ExprResult {
    let mean = n.attrs().float("mean")?.unwrap_or(0.0);
    let scale = n.attrs().float("scale")?.unwrap_or(1.0);
    let seed = seed(n)?;
    let (a, b) = (uniform_unit(n, dims, seed)?, uniform_unit(n, dims, seed ^ 0x5bd1_e995)?);
    let mut number = |v: f64| n.scalar_as(v, DType::Float32);
    let (one, two, tau) = (number(1.0)?, number(-2.0)?, number(std::f64::consts::TAU)?);
    let (mean, scale) = (number(mean)?, number(scale)?);
    // `1 - a` is never 0.
    let a = n.op("relax.subtract", &[one, a])?;
    let a = n.op("relax.log", &[a])?;
    let a = n.op("relax.multiply", &[a, two])?;
    let radius = n.op("relax.sqrt", &[a])?;
    let b = n.op("relax.multiply", &[b, tau])?;
    let b = n.op("relax.cos", &[b])?;
    let y = n.op("relax.multiply", &[radius, b])?;
    let y = n.op("relax.multiply", &[y, scale])?;
    n.op("relax.add", &[y, mean])
}

/// The dtype in the attribute `dtype`, or `default` if it is absent.
fn output_dtype(n: &Node<'_, '_>, default: DType) -> Result<DType, Problem> {
    match n.attrs().int("dtype")? {
        Some(code) => crate::initializer_tensors::checked_dtype(code),
        None => Ok(default),
    }
}

/// Converts an operator that generates a tensor of random numbers. The attribute `shape` is the shape of the tensor.
fn random_of_shape(n: &mut Node<'_, '_>, source: Distribution) -> ConvertResult {
    let shape = n.attrs().ints("shape")?.unwrap_or_default().to_vec();
    let dims: Vec<Sym> = shape.iter().map(|&d| n.func().syms.int(d)).collect();
    let dtype = output_dtype(n, DType::Float32)?;
    let x = source(n, &dims)?;
    Ok(vec![n.cast(x, dtype)?.into()])
}

/// Converts an operator that generates a tensor of random numbers with the shape of the input.
fn random_like(n: &mut Node<'_, '_>, source: Distribution) -> ConvertResult {
    let x = n.tensor(0)?;
    let (dims, input_dtype) = (n.dims(x)?, n.dtype(x)?);
    let dtype = output_dtype(n, input_dtype)?;
    let y = source(n, &dims)?;
    Ok(vec![n.cast(y, dtype)?.into()])
}

/// Converts `Bernoulli`: 1 with the probability that the input states, else 0.
fn bernoulli(n: &mut Node<'_, '_>) -> ConvertResult {
    let probability = n.tensor(0)?;
    let (dims, input_dtype) = (n.dims(probability)?, n.dtype(probability)?);
    let dtype = output_dtype(n, input_dtype)?;
    let seed = seed(n)?;
    let draw = uniform_unit(n, &dims, seed)?;
    let probability = n.cast(probability, DType::Float32)?;
    let is_one = n.op("relax.less", &[draw, probability])?;
    Ok(vec![n.cast(is_one, dtype)?.into()])
}

/// Converts `Dropout`. Elements are only dropped in training mode, which is an input since opset 12.
fn dropout(n: &mut Node<'_, '_>) -> ConvertResult {
    let x = n.value(0)?;
    let wants_mask = n.proto.output.get(1).is_some_and(|o| !o.is_empty());
    let off = n.opset < 12 || !n.has_input(2) || n.const_ints(2).as_deref() == Some(&[0]);
    let x_tensor = n.tensor(0)?;
    let (dims, dtype) = (n.dims(x_tensor)?, n.dtype(x_tensor)?);
    if off {
        if !wants_mask {
            return Ok(vec![x]);
        }
        let mask_type = if n.opset >= 10 { DType::Bool } else { dtype };
        let one = n.scalar_as(1.0, mask_type)?;
        return Ok(vec![x, n.full(&dims, one)?.into()]);
    }
    let ratio = match n.optional_tensor(1)? {
        Some(ratio) => n.reshape_to_scalar(ratio)?,
        None => n.scalar_as(0.5, DType::Float32)?,
    };
    let ratio = n.cast(ratio, DType::Float32)?;
    let training = n.tensor(2)?;
    let training = n.reshape_to_scalar(training)?;
    let (zero, one) = (n.scalar_as(0.0, DType::Float32)?, n.scalar_as(1.0, DType::Float32)?);
    let ratio = n.op("relax.where", &[training, ratio, zero])?;
    let seed = seed(n)?;
    let draw = uniform_unit(n, &dims, seed)?;
    let mask = n.op("relax.greater_equal", &[draw, ratio])?;
    let keep_ratio = n.op("relax.subtract", &[one, ratio])?;
    let scale = n.op("relax.divide", &[one, keep_ratio])?;
    let scale = n.cast(scale, dtype)?;
    let wide = n.op("relax.multiply", &[x_tensor, scale])?;
    let zero_scalar = n.scalar_as(0.0, dtype)?;
    let y = n.op("relax.where", &[mask, wide, zero_scalar])?;
    Ok(vec![y.into(), mask.into()])
}
