//! [`Value`]: what a name of the graph stands for while it is imported.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::{Sym, SymArena};
use pliant_tensor::Tensor;

use crate::kind::Kind;
use crate::proto::tensor_proto::DataType;
use crate::ratio::Ratios;

/// What a name stands for. Constants and shape computations stay what they are until a node needs them as tensors.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor of the program, or a tuple or object.
    Expr(Expr),
    /// A tensor whose elements are known.
    Const(Tensor),
    /// A small integer or bool tensor whose elements are known as terms over symbols: a computation on shapes.
    Syms(SymTensor),
    /// A small float tensor that is computed from sizes.
    Ratios(Ratios),
    /// A tensor of a small element type (4-bit integers, 8-bit floats), by what holds it.
    Coded(DataType, Box<Value>),
    /// An optional input that is left out, or an optional that holds nothing.
    Absent,
    /// A sequence whose length is known.
    Sequence(Vec<Value>),
    /// A sequence of any length, an optional that may be empty, or a value of the importer's own: an object of the run.
    Object(Expr, Kind),
    /// The result of a node that could not be imported; its readers are not reported again.
    Failed,
}

impl From<Expr> for Value {
    fn from(e: Expr) -> Self {
        Value::Expr(e)
    }
}

impl From<SymTensor> for Value {
    fn from(t: SymTensor) -> Self {
        Value::Syms(t)
    }
}

/// A small tensor of symbolic integers, row-major, of a shape that is known. Elements of a bool tensor are predicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymTensor {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its elements.
    pub elems: Vec<Sym>,
    /// Its element type.
    pub dtype: DType,
}

impl SymTensor {
    /// A vector of int64, as `Shape` gives it.
    pub fn vector(elems: Vec<Sym>) -> Self {
        SymTensor { shape: vec![elems.len()], elems, dtype: DType::Int64 }
    }

    /// A single int64.
    pub fn scalar(elem: Sym) -> Self {
        SymTensor { shape: Vec::new(), elems: vec![elem], dtype: DType::Int64 }
    }

    /// The elements of a constant, unless it is too long or not of integers or bools.
    pub fn of_constant(tensor: &Tensor, syms: &mut SymArena, limit: usize) -> Option<Self> {
        let dtype = tensor.dtype();
        let whole = matches!(dtype, DType::Int64 | DType::Int32 | DType::Bool);
        if !whole || tensor.numel() > limit {
            return None;
        }
        let elems = tensor.to_i64_vec().ok()?.into_iter().map(|v| syms.int(v)).collect();
        let shape = tensor.shape().iter().map(|&d| d as usize).collect();
        Some(SymTensor { shape, elems, dtype })
    }

    /// The elements, when all are numbers.
    pub fn constants(&self, syms: &SymArena) -> Option<Vec<i64>> {
        self.elems.iter().map(|&e| syms.as_int(e)).collect()
    }

    /// The same elements in another shape of as many.
    pub fn reshaped(&self, shape: Vec<usize>) -> Option<Self> {
        let same = product(&shape) == Some(self.elems.len());
        same.then(|| SymTensor { shape, elems: self.elems.clone(), dtype: self.dtype })
    }

    /// A tensor of `shape` whose element at an index is this one's at the index that `from` makes of it.
    pub fn gathered(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let count: usize = shape.iter().product();
        let mut elems = Vec::with_capacity(count);
        let mut index = vec![0; shape.len()];
        for _ in 0..count {
            elems.push(self.elems[offset(&self.shape, &from(&index))]);
            advance(&mut index, &shape);
        }
        SymTensor { shape, elems, dtype: self.dtype }
    }

    /// The same, repeated along dims of size 1 to the shape that it broadcasts to.
    pub fn broadcast_to(&self, shape: &[usize]) -> Self {
        let skip = shape.len().saturating_sub(self.shape.len());
        self.gathered(shape.to_vec(), |index| {
            let own = index[skip..].iter().zip(&self.shape);
            own.map(|(&i, &d)| if d == 1 { 0 } else { i }).collect()
        })
    }
}

/// The shape that two broadcast to, as NumPy has it.
pub fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let dim = |s: &[usize], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank)
        .map(|i| match (dim(a, i), dim(b, i)) {
            (x, y) if x == y || y == 1 => Some(x),
            (1, y) => Some(y),
            _ => None,
        })
        .collect()
}

fn offset(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |at, (&d, &i)| at * d + i)
}

fn advance(index: &mut [usize], shape: &[usize]) {
    for (i, &d) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < d {
            return;
        }
        *i = 0;
    }
}

/// The number of elements of a tensor of those dims, where it is a number of the machine.
pub fn product(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))
}
