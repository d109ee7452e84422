//! The types of the graph level. They form a lattice with [`TypeData::Any`] as top.
//!
//! Types are hash-consed per function: equal types have equal ids. Dims are symbolic integers in the function's own arena, so
//! "equal" means "equal in normal form". The functions of [`super::type_lattice`] prove whether types are equal or one is a subtype
//! of another; their answer is yes, no or unknown.

use pliant_sym::Sym;
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::expr::Var;
use cranelift_entity::{PrimaryMap, entity_impl};

/// The id of a type in a function's type arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Type(u32);
entity_impl!(Type, "type");

/// The statically known part of a tensor's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TensorShape {
    /// All dims of the shape are known as symbolic integers.
    Dims(Box<[Sym]>),
    /// The shape is the value of a variable of shape type. Its rank is known if the type of the variable states it.
    Var(Var),
    /// Only the number of dims is known.
    Rank(u32),
    /// Not even the rank is known.
    Unknown,
}

/// A type of the graph level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeData {
    /// The type of all values, including opaque objects, strings and data types; `R.Object` in scripts.
    Any,
    /// A scalar, with its value if that is a known symbolic integer; `R.Prim` in scripts.
    Prim {
        /// The data type of the scalar.
        dtype: DType,
        /// The value of an integer scalar, if known.
        value: Option<Sym>,
    },
    /// A shape value, with its dims if known; `R.Shape` in scripts.
    Shape {
        /// The symbolic dims of the shape; `None` if they are unknown.
        dims: Option<Box<[Sym]>>,
        /// The rank, if known. If `dims` are known, it is their number.
        ndim: Option<u32>,
    },
    /// A tensor type; `R.Tensor` in scripts.
    Tensor {
        /// The statically known part of the shape.
        shape: TensorShape,
        /// The element type of the tensor; `None` if it is unknown.
        dtype: Option<DType>,
    },
    /// A tuple, with the types of its fields; `R.Tuple` in scripts.
    Tuple(Box<[Type]>),
    /// A function; `R.Callable` in scripts. `params` is `None` if the parameters are unknown.
    Callable {
        /// The types of the parameters; `None` if they are unknown.
        params: Option<Box<[Type]>>,
        /// The type of the function's result.
        ret: Type,
        /// Whether calls of the function have no side effects.
        pure: bool,
    },
}

impl TypeData {
    /// Creates a tensor type with known dims.
    pub fn tensor(dims: impl Into<Box<[Sym]>>, dtype: impl Into<Option<DType>>) -> Self {
        TypeData::Tensor { shape: TensorShape::Dims(dims.into()), dtype: dtype.into() }
    }

    /// Creates a tensor type with known rank.
    pub fn tensor_rank(ndim: u32, dtype: impl Into<Option<DType>>) -> Self {
        TypeData::Tensor { shape: TensorShape::Rank(ndim), dtype: dtype.into() }
    }

    /// Creates a tensor type with unknown rank.
    pub fn tensor_unknown(dtype: impl Into<Option<DType>>) -> Self {
        TypeData::Tensor { shape: TensorShape::Unknown, dtype: dtype.into() }
    }

    /// Creates a shape type with known dims.
    pub fn shape(dims: impl Into<Box<[Sym]>>) -> Self {
        let dims = dims.into();
        let ndim = Some(dims.len() as u32);
        TypeData::Shape { dims: Some(dims), ndim }
    }

    /// The type of the empty tuple, which is the result of functions without a result.
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

    /// Whether the type is a tensor type.
    pub fn is_tensor(&self) -> bool {
        matches!(self, TypeData::Tensor { .. })
    }
}

/// The types of one function, stored without duplicates.
#[derive(Clone, Debug, Default)]
pub struct TypeArena {
    types: PrimaryMap<Type, TypeData>,
    ids: FxHashMap<TypeData, Type>,
}

impl TypeArena {
    /// Stores a type unless it is already in the arena, and returns its id.
    pub fn intern(&mut self, data: TypeData) -> Type {
        if let Some(&id) = self.ids.get(&data) {
            return id;
        }
        let id = self.types.push(data.clone());
        self.ids.insert(data, id);
        id
    }

    /// The type with the given id.
    pub fn get(&self, id: Type) -> &TypeData {
        &self.types[id]
    }

    /// The number of types in the arena.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether the arena contains no types.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }
}
