//! [`SizePattern`] and [`TypePattern`]: what sizes and types a pattern asks for.
//!
//! Symbols of a pattern are unknowns: the first size that a symbol meets is what it stands for in the rest of the
//! match. They are told apart by keys, so that patterns made in different places can share them.

use std::sync::Arc;

use pliant_ir::relax::{Function, TensorShape, Type, TypeData};
use pliant_ir::{DType, Sym};
use pliant_sym::{SymArena, SymVar};

/// A size that a pattern asks for.
#[derive(Clone, Debug)]
pub enum SizePattern {
    /// Any size.
    Any,
    /// A size that is provably this one.
    Int(i64),
    /// A term over symbols.
    Term(SizeTerm),
}

/// A term over the symbols of a pattern.
#[derive(Clone, Debug)]
pub struct SizeTerm {
    /// Where the term stands.
    pub arena: Arc<SymArena>,
    /// The keys of the arena's symbols, in their order.
    pub keys: Arc<[u64]>,
    /// The term.
    pub sym: Sym,
}

impl SizeTerm {
    /// The key of one of the arena's symbols.
    pub fn key(&self, var: SymVar) -> u64 {
        self.keys.get(var.as_u32() as usize).copied().unwrap_or(u64::from(var.as_u32()))
    }
}

impl SizePattern {
    /// A symbol of that key, alone.
    pub fn symbol(key: u64) -> Self {
        let mut arena = SymArena::default();
        let var = arena.fresh_var("n");
        let sym = arena.var(var);
        SizePattern::Term(SizeTerm { arena: Arc::new(arena), keys: Arc::new([key]), sym })
    }

    /// A term; numbers need no arena.
    pub fn term(arena: &Arc<SymArena>, keys: &Arc<[u64]>, sym: Sym) -> Self {
        match arena.as_int(sym) {
            Some(value) => SizePattern::Int(value),
            None => SizePattern::Term(SizeTerm { arena: arena.clone(), keys: keys.clone(), sym }),
        }
    }
}

/// A type that a pattern asks for. What it leaves open may be anything.
#[derive(Clone, Debug)]
pub enum TypePattern {
    /// Any value.
    Any,
    /// A scalar of that data type.
    Prim(DType),
    /// A shape.
    Shape {
        /// Its sizes, if asked for.
        sizes: Option<Box<[SizePattern]>>,
        /// Its rank, if asked for.
        ndim: Option<u32>,
    },
    /// A tensor.
    Tensor {
        /// Its sizes, if asked for.
        sizes: Option<Box<[SizePattern]>>,
        /// Its rank, if asked for.
        ndim: Option<u32>,
        /// Its data type, if asked for.
        dtype: Option<DType>,
    },
    /// A tuple of such fields.
    Tuple(Box<[TypePattern]>),
    /// A function.
    Callable,
}

impl TypePattern {
    /// The pattern of a function's type. The keys tell its symbols apart.
    pub fn of(func: &Function, ty: Type, arena: &Arc<SymArena>, keys: &Arc<[u64]>) -> Self {
        let sizes = |dims: &[Sym]| -> Option<Box<[SizePattern]>> {
            Some(dims.iter().map(|&d| SizePattern::term(arena, keys, d)).collect())
        };
        match func.types.get(ty) {
            TypeData::Any => TypePattern::Any,
            TypeData::Prim { dtype, .. } => TypePattern::Prim(*dtype),
            TypeData::Shape { dims, ndim } => {
                TypePattern::Shape { sizes: dims.as_ref().and_then(|d| sizes(d)), ndim: *ndim }
            }
            TypeData::Tensor { shape, dtype } => TypePattern::Tensor {
                sizes: match shape {
                    TensorShape::Dims(dims) => sizes(dims),
                    _ => None,
                },
                ndim: func.rank_of(ty),
                dtype: *dtype,
            },
            TypeData::Tuple(fields) => TypePattern::Tuple(
                fields.iter().map(|&t| TypePattern::of(func, t, arena, keys)).collect(),
            ),
            TypeData::Callable { .. } => TypePattern::Callable,
        }
    }

    /// The pattern of one type with symbols of its own, which no other pattern shares.
    pub fn alone(func: &Function, ty: Type) -> Self {
        let arena = Arc::new(func.syms.clone());
        let keys = (0..arena.vars().len() as u64).collect();
        TypePattern::of(func, ty, &arena, &keys)
    }
}
