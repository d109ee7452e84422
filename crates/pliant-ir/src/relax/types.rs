//! The types of the graph level: one lattice, with [`TypeData::Any`] on top.
//!
//! Types are hash-consed per function: equal ids are equal types. Dims are symbolic integers of the
//! function's own arena, so "equal" means "equal in normal form"; whether two types are *provably* equal or
//! one fits another is asked of the lattice functions, which answer yes, no or unknown.

use pliant_sym::Sym;
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::expr::Var;
use cranelift_entity::{PrimaryMap, entity_impl};

/// A type of a function's own type arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type(u32);
entity_impl!(Type, "type");

/// What is known of a tensor's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TensorShape {
    /// Every dim, as a symbolic integer.
    Dims(Box<[Sym]>),
    /// The value of a variable of shape type (of that rank, if known).
    Var(Var),
    /// Only the rank.
    Rank(u32),
    /// Nothing.
    Unknown,
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeData {
    /// Any value: opaque objects, strings, data types; `R.Object` in the script.
    Any,
    /// A scalar, with its value where that is a known symbolic integer; `R.Prim`.
    Prim {
        /// Its data type.
        dtype: DType,
        /// Its value, for integers.
        value: Option<Sym>,
    },
    /// A shape value, with its dims where known; `R.Shape`.
    Shape {
        /// The dims.
        dims: Option<Box<[Sym]>>,
        /// The rank; that of `dims` where those are known.
        ndim: Option<u32>,
    },
    /// A tensor; `R.Tensor`.
    Tensor {
        /// What is known of its shape.
        shape: TensorShape,
        /// Its data type, if known.
        dtype: Option<DType>,
    },
    /// A tuple; `R.Tuple`.
    Tuple(Box<[Type]>),
    /// A function; `R.Callable`. Without `params`, one of unknown parameters.
    Callable {
        /// Parameter types, if known.
        params: Option<Box<[Type]>>,
        /// Result type.
        ret: Type,
        /// Whether calls have no effect but their result.
        pure: bool,
    },
}

impl TypeData {
    /// A tensor type of known dims.
    pub fn tensor(dims: impl Into<Box<[Sym]>>, dtype: impl Into<Option<DType>>) -> Self {
        TypeData::Tensor { shape: TensorShape::Dims(dims.into()), dtype: dtype.into() }
    }

    /// A tensor type of known rank.
    pub fn tensor_rank(ndim: u32, dtype: impl Into<Option<DType>>) -> Self {
        TypeData::Tensor { shape: TensorShape::Rank(ndim), dtype: dtype.into() }
    }

    /// A tensor type of unknown rank.
    pub fn tensor_unknown(dtype: impl Into<Option<DType>>) -> Self {
        TypeData::Tensor { shape: TensorShape::Unknown, dtype: dtype.into() }
    }

    /// A shape type of known dims.
    pub fn shape(dims: impl Into<Box<[Sym]>>) -> Self {
        let dims = dims.into();
        let ndim = Some(dims.len() as u32);
        TypeData::Shape { dims: Some(dims), ndim }
    }

    /// The empty tuple, the type of calls that return nothing.
    pub fn unit() -> Self {
        TypeData::Tuple(Box::default())
    }

    /// The dims of a tensor or shape type, if all are known.
    pub fn dims(&self) -> Option<&[Sym]> {
        match self {
            TypeData::Tensor { shape: TensorShape::Dims(dims), .. } => Some(dims),
            TypeData::Shape { dims: Some(dims), .. } => Some(dims),
            _ => None,
        }
    }

    /// The data type of a tensor or scalar type, if known.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            TypeData::Tensor { dtype, .. } => *dtype,
            TypeData::Prim { dtype, .. } => Some(*dtype),
            _ => None,
        }
    }

    /// Whether this is a tensor type.
    pub fn is_tensor(&self) -> bool {
        matches!(self, TypeData::Tensor { .. })
    }
}

/// The types of one function, each stored once.
#[derive(Clone, Debug, Default)]
pub struct TypeArena {
    types: PrimaryMap<Type, TypeData>,
    ids: FxHashMap<TypeData, Type>,
}

impl TypeArena {
    /// The id of a type, which is stored if it is new.
    pub fn intern(&mut self, data: TypeData) -> Type {
        if let Some(&id) = self.ids.get(&data) {
            return id;
        }
        let id = self.types.push(data.clone());
        self.ids.insert(data, id);
        id
    }

    /// The type behind an id.
    pub fn get(&self, id: Type) -> &TypeData {
        &self.types[id]
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}
