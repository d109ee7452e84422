//! [`Value`]: the value of an ONNX name during the import.

use pliant_ir::DType;
use pliant_ir::relax::Expr;
use pliant_sym::{Sym, SymArena};
use pliant_tensor::Tensor;

use crate::proto::tensor_proto::DataType;
use crate::rational_dims::RationalTensor;
use crate::sequence_optional_types::ObjectType;

/// The value of an ONNX name during the import. Constants and shape computations are converted to tensor expressions of the program
/// only if a node needs that.
#[derive(Clone, Debug)]
pub enum Value {
    /// An expression of the program: a tensor, a tuple or an object.
    Expr(Expr),
    /// A constant tensor that is not part of the program yet.
    Const(Tensor),
    /// A shape computation: a small integer or bool tensor whose elements are known as symbolic terms.
    Symbolic(SymTensor),
    /// A small float tensor whose elements are computed from sizes, as fractions of symbolic terms.
    Rational(RationalTensor),
    /// A tensor whose ONNX element type is narrow (2, 4 or 8 bits, without a dtype in the IR), and the value that stores its
    /// elements in another dtype.
    Narrow(DataType, Box<Value>),
    /// An absent optional input, or an optional without a value.
    Absent,
    /// A sequence of known length.
    Sequence(Vec<Value>),
    /// An opaque object: a sequence of unknown length, an optional that may be empty, or an internal value of the importer, such
    /// as a chain (the linked list of values that the iterations of a loop collect).
    Object(Expr, ObjectType),
    /// The result of a node that could not be converted. Nodes that use it report no further problems.
    Failed,
}

impl From<Expr> for Value {
    fn from(e: Expr) -> Self {
        Value::Expr(e)
    }
}

impl From<SymTensor> for Value {
    fn from(t: SymTensor) -> Self {
        Value::Symbolic(t)
    }
}

/// A small row-major tensor of symbolic terms with a constant shape. The terms of a bool tensor are predicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymTensor {
    /// The constant shape of the tensor.
    pub shape: Vec<usize>,
    /// The elements, in row-major order.
    pub elems: Vec<Sym>,
    /// The element type of the tensor.
    pub dtype: DType,
}

impl SymTensor {
    /// Creates an int64 vector, the kind of tensor that `Shape` computes.
    pub fn vector(elems: Vec<Sym>) -> Self {
        SymTensor { shape: vec![elems.len()], elems, dtype: DType::Int64 }
    }

    /// Creates an int64 scalar with one symbolic element.
    pub fn scalar(elem: Sym) -> Self {
        SymTensor { shape: Vec::new(), elems: vec![elem], dtype: DType::Int64 }
    }

    /// Converts a constant tensor. `None` if it has more than `limit` elements, or if it is neither integer nor bool.
    pub fn from_constant(tensor: &Tensor, syms: &mut SymArena, limit: usize) -> Option<Self> {
        let dtype = tensor.dtype();
        let whole = matches!(dtype, DType::Int64 | DType::Int32 | DType::Bool);
        if !whole || tensor.numel() > limit {
            return None;
        }
        let elems = tensor.to_i64_vec().ok()?.into_iter().map(|v| syms.int(v)).collect();
        let shape = tensor.shape().iter().map(|&d| d as usize).collect();
        Some(SymTensor { shape, elems, dtype })
    }

    /// The elements as numbers; `None` unless all of them are constant.
    pub fn constants(&self, syms: &SymArena) -> Option<Vec<i64>> {
        self.elems.iter().map(|&e| syms.as_int(e)).collect()
    }

    /// Reshapes the tensor; `None` if the number of elements differs.
    pub fn reshape(&self, shape: Vec<usize>) -> Option<Self> {
        let same = element_count(&shape) == Some(self.elems.len());
        same.then(|| SymTensor { shape, elems: self.elems.clone(), dtype: self.dtype })
    }

    /// Gathers elements into a tensor of the given shape. `from` maps an index of the result to an index of this tensor.
    pub fn gather(&self, shape: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let count: usize = shape.iter().product();
        let mut elems = Vec::with_capacity(count);
        let mut index = vec![0; shape.len()];
        for _ in 0..count {
            elems.push(self.elems[linear_index(&self.shape, &from(&index))]);
            next_index(&mut index, &shape);
        }
        SymTensor { shape, elems, dtype: self.dtype }
    }

    /// Broadcasts the tensor to the given shape.
    pub fn broadcast_to(&self, shape: &[usize]) -> Self {
        let skip = shape.len().saturating_sub(self.shape.len());
        self.gather(shape.to_vec(), |index| {
            let own_index = index[skip..].iter().zip(&self.shape);
            own_index.map(|(&i, &d)| if d == 1 { 0 } else { i }).collect()
        })
    }
}

/// The broadcast shape of two shapes by NumPy's rules; `None` if they are incompatible.
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

/// The offset of the element at `index` in a row-major tensor of the given shape.
fn linear_index(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |linear, (&d, &i)| linear * d + i)
}

/// Advances a multi-dimensional index to the next element in row-major order.
fn next_index(index: &mut [usize], shape: &[usize]) {
    for (i, &d) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < d {
            return;
        }
        *i = 0;
    }
}

/// The number of elements of a shape. `None` on overflow.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim))
}
