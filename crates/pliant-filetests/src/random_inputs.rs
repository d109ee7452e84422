//! Generates the arguments of a function from its parameter types and a random seed.

use pliant_interp::Value;
use pliant_ir::relax::{Function, TensorShape, Type, TypeData};
use pliant_sym::{Sym, SymVar};
use pliant_tensor::{DType, Tensor, round_to_bf16, round_to_f16};

/// A function that returns the size of a symbol; `None` if the tested function does not contain the
/// symbol.
pub(crate) type Sizes<'a> = dyn Fn(SymVar) -> Option<i64> + 'a;

/// Generates pseudo-random arguments of a function.
pub(crate) struct InputGenerator<'a> {
    pub f: &'a Function,
    pub sizes: &'a Sizes<'a>,
    /// The size that is used for unknown dims.
    pub unknown: i64,
    pub seed: u64,
}

impl InputGenerator<'_> {
    /// Generates a value for each parameter. Returns `None` if a parameter has a type without
    /// generated values (functions, opaque objects, negative dims).
    pub fn params(&mut self) -> Option<Vec<Value>> {
        let f = self.f;
        f.params().iter().map(|&p| self.value(f.var(p).ty)).collect()
    }

    fn value(&mut self, ty: Type) -> Option<Value> {
        let f = self.f;
        Some(match f.types.get(ty) {
            TypeData::Any | TypeData::Callable { .. } => return None,
            TypeData::Prim { dtype, value } => match value {
                Some(s) => Value::Int(self.size(*s)?),
                None if dtype.is_float() => Value::Float(0.5),
                None if dtype.is_bool() => Value::Bool(self.next().is_multiple_of(2)),
                None => Value::Int(self.unknown),
            },
            TypeData::Shape { dims: Some(dims), .. } => {
                let dims: Option<Vec<i64>> = dims.iter().map(|&d| self.size(d)).collect();
                Value::Shape(dims?.into())
            }
            TypeData::Shape { ndim, .. } => {
                Value::Shape(vec![self.unknown; ndim.unwrap_or(2) as usize].into())
            }
            TypeData::Tensor { shape, dtype } => {
                let dims = match shape {
                    TensorShape::Dims(dims) => {
                        dims.iter().map(|&d| self.size(d)).collect::<Option<_>>()?
                    }
                    TensorShape::Var(_) => return None,
                    TensorShape::Rank(n) => vec![self.unknown; *n as usize],
                    TensorShape::Unknown => vec![self.unknown; 2],
                };
                Value::Tensor(self.tensor(&dims, dtype.unwrap_or(DType::Float32))?)
            }
            TypeData::Tuple(fields) => {
                let fields: Option<Vec<Value>> = fields.iter().map(|&t| self.value(t)).collect();
                Value::Tuple(fields?.into())
            }
        })
    }

    fn size(&self, s: Sym) -> Option<i64> {
        self.f.syms.evaluate(s, self.sizes).ok().filter(|&n| (0..=1 << 20).contains(&n))
    }

    /// The next number of the SplitMix64 generator.
    fn next(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Generates a tensor of pseudo-random elements: floats from -2 to 2 in steps of 1/64, which
    /// all float types represent exactly, or integers from 0 to 3, which are valid indices in most
    /// tests.
    fn tensor(&mut self, shape: &[i64], dtype: DType) -> Option<Tensor> {
        let numel = shape.iter().product::<i64>();
        let mut bytes = Vec::new();
        for _ in 0..numel {
            let r = self.next();
            let float = ((r % 257) as f64 - 128.0) / 64.0;
            let int = (r % 4) as u8;
            match dtype {
                DType::Bool => bytes.push(int & 1),
                DType::Float16 => bytes.extend(round_to_f16(float).to_ne_bytes()),
                DType::BFloat16 => bytes.extend(round_to_bf16(float).to_ne_bytes()),
                DType::Float32 => bytes.extend((float as f32).to_ne_bytes()),
                DType::Float64 => bytes.extend(float.to_ne_bytes()),
                _ => {
                    let wide = i64::from(int).to_le_bytes();
                    let mut element = wide[..dtype.size()].to_vec();
                    if cfg!(target_endian = "big") {
                        element.reverse();
                    }
                    bytes.extend(element);
                }
            }
        }
        Tensor::from_bytes(shape, dtype, &bytes).ok()
    }
}
