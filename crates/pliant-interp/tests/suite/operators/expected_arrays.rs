//! [`Nd`]: an array of numbers for expected results, with conversions to tensors.

use pliant_interp::Value;
use pliant_ir::DType;
use pliant_tensor::{Tensor, bf16, f16};

/// The sizes at which every operator is tested.
pub const SIZES: [i64; 5] = [0, 1, 2, 3, 7];
/// An array of numbers, independent of the tensors under test.
#[derive(Clone, Debug)]
pub struct Nd {
    pub shape: Vec<i64>,
    pub data: Vec<f64>,
}

impl Nd {
    pub fn new(shape: &[i64], mut f: impl FnMut(&[i64]) -> f64) -> Nd {
        let count: i64 = shape.iter().product();
        let data = (0..count).map(|i| f(&unravel(i, shape))).collect();
        Nd { shape: shape.to_vec(), data }
    }

    /// Returns an array of multiples of 0.5 between -3 and 3, including 0.
    pub fn sample(shape: &[i64], seed: i64) -> Nd {
        let mut i = seed * 5;
        Nd::new(shape, |_| {
            i += 7;
            (i % 13 - 6) as f64 / 2.0
        })
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Nd {
        Nd { shape: self.shape.clone(), data: self.data.iter().map(|&v| f(v)).collect() }
    }

    /// Returns the element at the given indices. If there are more indices than dims, only the last ones are used. Dims of size 1
    /// are broadcast.
    pub fn at(&self, i: &[i64]) -> f64 {
        let i = &i[i.len() - self.shape.len()..];
        let fold = |p, (&i, &d): (&i64, &i64)| if d == 1 { p } else { p * d + i };
        self.data[i.iter().zip(&self.shape).fold(0, fold) as usize]
    }

    pub fn value(&self, dtype: DType) -> Value {
        let bytes: Vec<u8> = self.data.iter().flat_map(|&v| bytes(v, dtype)).collect();
        Tensor::from_bytes(&self.shape, dtype, &bytes).unwrap().into()
    }

    pub fn f32(&self) -> Value {
        self.value(DType::Float32)
    }
}

pub fn bytes(v: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => vec![u8::from(v != 0.0)],
        DType::Int32 => (v as i32).to_ne_bytes().to_vec(),
        DType::Int64 => (v as i64).to_ne_bytes().to_vec(),
        DType::UInt8 => vec![v as u8],
        DType::Float16 => f16::from_f64(v).to_ne_bytes().to_vec(),
        DType::BFloat16 => bf16::from_f64(v).to_ne_bytes().to_vec(),
        DType::Float32 => (v as f32).to_ne_bytes().to_vec(),
        DType::Float64 => v.to_ne_bytes().to_vec(),
        other => panic!("no test uses {other}"),
    }
}

pub fn unravel(mut i: i64, shape: &[i64]) -> Vec<i64> {
    let mut out = vec![0; shape.len()];
    for (o, d) in out.iter_mut().zip(shape).rev() {
        *o = i % d;
        i /= d;
    }
    out
}

pub fn broadcast(a: &[i64], b: &[i64]) -> Vec<i64> {
    let rank = a.len().max(b.len());
    let dim = |s: &[i64], i: usize| (i + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    (0..rank).map(|i| if dim(a, i) == 1 { dim(b, i) } else { dim(a, i) }).collect()
}
