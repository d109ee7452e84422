//! [`SizePattern`] and [`TypePattern`]: patterns of sizes and types.
//!
//! The symbols of a pattern are unknowns. The first match of a symbol binds it to a size, and all later matches must have an
//! equal size. Symbols are identified by keys (numbers), so that separately created patterns can share them.

use std::sync::Arc;

use pliant_ir::relax::{Function, TensorShape, Type, TypeData};
use pliant_ir::{DType, Sym};
use pliant_sym::{SymArena, SymVar};

/// A pattern that matches sizes.
#[derive(Clone, Debug)]
pub enum SizePattern {
    /// Matches any size.
    Any,
    /// Matches a size that provably has this value.
    Int(i64),
    /// Matches a size that equals a term over the symbols of the pattern.
    Term(SizeTerm),
}

/// A term such as `n * 4` over symbols of a pattern.
#[derive(Clone, Debug)]
pub struct SizeTerm {
    /// The symbolic arena that contains the term.
    pub arena: Arc<SymArena>,
    /// For each symbol of `arena`, in order, the number that identifies the symbol in all patterns: symbols with equal keys match
    /// equal sizes.
    pub keys: Arc<[u64]>,
    /// The term, as an expression in `arena`.
    pub sym: Sym,
}

impl SizeTerm {
    /// Returns the number that identifies the symbol `var` in all patterns. Symbols of different terms with equal keys match
    /// equal sizes.
    pub fn key(&self, var: SymVar) -> u64 {
        self.keys.get(var.as_u32() as usize).copied().unwrap_or(u64::from(var.as_u32()))
    }
}

impl SizePattern {
    /// Creates the pattern of a size that is a single symbol. `key` identifies the symbol: all patterns with this key match equal
    /// sizes.
    pub fn symbol(key: u64) -> Self {
        let mut arena = SymArena::default();
        let var = arena.fresh_var("n");
        let sym = arena.var(var);
        SizePattern::Term(SizeTerm { arena: Arc::new(arena), keys: Arc::new([key]), sym })
    }

    /// Creates the pattern of the term `sym`: [`SizePattern::Int`] for a constant, otherwise [`SizePattern::Term`]. `keys`
    /// contains the number that identifies each symbol of `arena` in all patterns.
    pub fn term(arena: &Arc<SymArena>, keys: &Arc<[u64]>, sym: Sym) -> Self {
        match arena.as_int(sym) {
            Some(value) => SizePattern::Int(value),
            None => SizePattern::Term(SizeTerm { arena: arena.clone(), keys: keys.clone(), sym }),
        }
    }
}

/// A pattern that matches types. Fields that are `None` impose no condition.
#[derive(Clone, Debug)]
pub enum TypePattern {
    /// Matches any type.
    Any,
    /// Matches scalars of the given data type.
    Prim(DType),
    /// Matches types of shapes.
    Shape {
        /// The sizes that the shape must have; `None` if any sizes match.
        sizes: Option<Box<[SizePattern]>>,
        /// The rank that the shape must have; `None` if any rank matches.
        ndim: Option<u32>,
    },
    /// Matches types of tensors.
    Tensor {
        /// The sizes that the tensor must have; `None` if any sizes match.
        sizes: Option<Box<[SizePattern]>>,
        /// The rank that the tensor must have; `None` if any rank matches.
        ndim: Option<u32>,
        /// The data type that the tensor must have; `None` if any type matches.
        dtype: Option<DType>,
    },
    /// Matches types of tuples whose fields match these patterns.
    Tuple(Box<[TypePattern]>),
    /// Matches types of functions.
    Callable,
}

impl TypePattern {
    /// Converts a type of `func` to a pattern in which the symbols of the type match any sizes. `keys` contains the number that
    /// identifies each symbol in all patterns; symbols with equal keys match equal sizes.
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

    /// Converts a type of `func` to a pattern whose symbols are not shared with other patterns.
    pub fn with_own_symbols(func: &Function, ty: Type) -> Self {
        let arena = Arc::new(func.syms.clone());
        let keys = (0..arena.vars().len() as u64).collect();
        TypePattern::of(func, ty, &arena, &keys)
    }
}
