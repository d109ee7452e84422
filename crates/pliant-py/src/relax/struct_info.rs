//! Struct infos: the types of graph-level values, represented independently of any function.

use std::fmt;
use std::sync::Arc;

use pliant_ir::relax::{self as ir, Function, TensorShape, Type, TypeData};
use pliant_ops::te::{self, VarMap};
use pliant_sym::Sym;
use pliant_tensor::DType;

use crate::error::{Error, Result};
use crate::nesting_limit::{MAX_NESTING, too_deep};
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::function_owner::OwnerState;
use crate::tir::prim_expr::structural_equal;

/// The type of a graph-level value. Its dims are tensor expressions that belong to no function.
#[derive(Clone)]
pub enum SInfo {
    /// The type of any value.
    Object,
    /// The type of a scalar, with its value if known.
    Prim(DType, Option<te::Expr>),
    /// The type of a shape, with its dims or its rank if known.
    Shape(Option<Vec<te::Expr>>, Option<u32>),
    /// The type of a tensor, with its data type if known.
    Tensor(ShapeInfo, Option<DType>),
    /// The type of a tuple, with the types of its fields.
    Tuple(TypeList),
    /// The type of a function: the types of the parameters if known, the result type, and whether
    /// calls have no side effects.
    Func(Option<TypeList>, Arc<SInfo>, bool),
}

/// A list of types together with its nesting depth.
#[derive(Clone)]
pub struct TypeList {
    items: Arc<[SInfo]>,
    depth: u32,
}

impl FromIterator<SInfo> for TypeList {
    fn from_iter<I: IntoIterator<Item = SInfo>>(items: I) -> TypeList {
        let items: Arc<[SInfo]> = items.into_iter().collect();
        let depth = items.iter().map(SInfo::depth).max().unwrap_or(0);
        TypeList { items, depth }
    }
}

impl std::ops::Deref for TypeList {
    type Target = [SInfo];

    fn deref(&self) -> &[SInfo] {
        &self.items
    }
}

/// What is known about the shape of a tensor.
#[derive(Clone)]
pub enum ShapeInfo {
    /// All dims of the tensor are known.
    Dims(Vec<te::Expr>),
    /// The shape is the value of this shape variable.
    Var(NodeRef),
    /// Only the rank of the tensor is known.
    Rank(u32),
    /// Neither the dims nor the rank of the tensor are known.
    Unknown,
}

impl SInfo {
    /// Returns the type if its nesting is not too deep for code that recurses over types.
    ///
    /// # Errors
    /// `ValueError` if the depth exceeds [`MAX_NESTING`].
    pub fn checked(self) -> Result<SInfo> {
        if self.depth() > MAX_NESTING { Err(too_deep("struct infos")) } else { Ok(self) }
    }

    /// The nesting depth of the type.
    pub fn depth(&self) -> u32 {
        match self {
            SInfo::Tuple(fields) => fields.depth + 1,
            SInfo::Func(params, ret, _) => {
                params.as_ref().map_or(0, |p| p.depth).max(ret.depth()) + 1
            }
            SInfo::Tensor(ShapeInfo::Var(node), _) => node.depth() + 1,
            SInfo::Tensor(..) | SInfo::Object | SInfo::Prim(..) | SInfo::Shape(..) => 0,
        }
    }

    /// Returns the data type of a tensor or scalar, if known.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            SInfo::Tensor(_, dtype) => *dtype,
            SInfo::Prim(dtype, _) => Some(*dtype),
            _ => None,
        }
    }

    /// Returns the rank of a tensor or shape, if known.
    pub fn ndim(&self) -> Option<usize> {
        match self {
            SInfo::Tensor(ShapeInfo::Dims(dims), _) | SInfo::Shape(Some(dims), _) => {
                Some(dims.len())
            }
            SInfo::Tensor(ShapeInfo::Rank(n), _) | SInfo::Shape(None, Some(n)) => Some(*n as usize),
            SInfo::Tensor(ShapeInfo::Var(shape), _) => match sinfo_of(shape)? {
                SInfo::Shape(Some(dims), _) => Some(dims.len()),
                SInfo::Shape(None, n) => n.map(|n| n as usize),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the dims of a tensor or shape, if all are known.
    pub fn dims(&self) -> Option<&[te::Expr]> {
        match self {
            SInfo::Tensor(ShapeInfo::Dims(dims), _) | SInfo::Shape(Some(dims), _) => Some(dims),
            _ => None,
        }
    }

    /// Whether both types are equal, with dims compared structurally.
    pub fn same(&self, other: &SInfo) -> bool {
        let dims_same = |a: &[te::Expr], b: &[te::Expr]| {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| structural_equal(x, y))
        };
        let all_same = |a: &[SInfo], b: &[SInfo]| {
            a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.same(y))
        };
        match (self, other) {
            (SInfo::Object, SInfo::Object) => true,
            (SInfo::Prim(d, v), SInfo::Prim(e, w)) => {
                d == e
                    && match (v, w) {
                        (Some(v), Some(w)) => structural_equal(v, w),
                        (None, None) => true,
                        _ => false,
                    }
            }
            (SInfo::Shape(Some(a), _), SInfo::Shape(Some(b), _)) => dims_same(a, b),
            (SInfo::Shape(None, m), SInfo::Shape(None, n)) => m == n,
            (SInfo::Tensor(s, d), SInfo::Tensor(t, e)) => {
                d == e
                    && match (s, t) {
                        (ShapeInfo::Dims(a), ShapeInfo::Dims(b)) => dims_same(a, b),
                        (ShapeInfo::Var(a), ShapeInfo::Var(b)) => a.same(b),
                        (ShapeInfo::Rank(a), ShapeInfo::Rank(b)) => a == b,
                        (ShapeInfo::Unknown, ShapeInfo::Unknown) => true,
                        _ => false,
                    }
            }
            (SInfo::Tuple(a), SInfo::Tuple(b)) => all_same(a, b),
            (SInfo::Func(p, r, pure), SInfo::Func(q, s, other_pure)) => {
                pure == other_pure
                    && r.same(s)
                    && match (p, q) {
                        (Some(p), Some(q)) => all_same(p, q),
                        (None, None) => true,
                        _ => false,
                    }
            }
            _ => false,
        }
    }
}

fn join<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = items.into_iter().map(|i| i.to_string()).collect();
    parts.join(", ")
}

fn format_shape(dims: &[te::Expr]) -> String {
    let comma = if dims.len() == 1 { "," } else { "" };
    format!("({}{comma})", join(dims))
}

/// Prints the type in script syntax.
impl fmt::Display for SInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SInfo::Object => f.write_str("R.Object"),
            SInfo::Prim(_, Some(value)) => write!(f, "R.Prim(value={value})"),
            SInfo::Prim(dtype, None) => write!(f, "R.Prim(\"{dtype}\")"),
            SInfo::Shape(Some(dims), _) => write!(f, "R.Shape([{}])", join(dims)),
            SInfo::Shape(None, Some(n)) => write!(f, "R.Shape(ndim={n})"),
            SInfo::Shape(None, None) => f.write_str("R.Shape"),
            SInfo::Tensor(shape, dtype) => {
                let mut parts = Vec::new();
                match shape {
                    ShapeInfo::Dims(dims) => parts.push(format_shape(dims)),
                    ShapeInfo::Var(_) => parts.push("shape variable".to_string()),
                    ShapeInfo::Rank(_) | ShapeInfo::Unknown => {}
                }
                if let Some(dtype) = dtype {
                    parts.push(format!("dtype=\"{dtype}\""));
                }
                if let ShapeInfo::Rank(n) = shape {
                    parts.push(format!("ndim={n}"));
                }
                if parts.is_empty() {
                    f.write_str("R.Tensor")
                } else {
                    write!(f, "R.Tensor({})", parts.join(", "))
                }
            }
            SInfo::Tuple(fields) => write!(f, "R.Tuple({})", join(fields.iter())),
            SInfo::Func(Some(params), ret, pure) => {
                write!(
                    f,
                    "R.Callable(({}), {ret}, {})",
                    join(params.iter()),
                    if *pure { "True" } else { "False" }
                )
            }
            SInfo::Func(None, ret, _) => write!(f, "R.Callable(ret={ret})"),
        }
    }
}

/// Converts a dim to a symbolic integer in the arena of a function.
///
/// # Errors
/// `TypeError` if the dim is not an integer expression over sizes.
pub fn dim_to_sym(func: &mut Function, vars: &mut VarMap, dim: &te::Expr) -> Result<Sym> {
    if let Some(v) = dim.as_int() {
        return Ok(func.syms.int(v));
    }
    te::to_sym(&mut func.syms, dim, vars).ok_or_else(|| {
        Error::Type(format!(
            "'{dim}' is not a size: expected an integer expression over size variables"
        ))
    })
}

/// Converts dims to symbolic integers in the arena of a function.
///
/// # Errors
/// As for [`dim_to_sym`].
pub fn dims_to_syms(func: &mut Function, vars: &mut VarMap, dims: &[te::Expr]) -> Result<Vec<Sym>> {
    dims.iter().map(|d| dim_to_sym(func, vars, d)).collect()
}

/// Converts a type that is independent of any function ([`SInfo`]) to a type of the function that `state` holds.
///
/// # Errors
/// If a dim is not a size, or if a shape variable belongs to another function.
pub fn to_type(state: &mut OwnerState, info: &SInfo) -> Result<Type> {
    let data = match info {
        SInfo::Object => TypeData::Any,
        SInfo::Prim(dtype, value) => {
            let (func, vars) = state.func_and_vars()?;
            let value = value.as_ref().map(|v| dim_to_sym(func, vars, v)).transpose()?;
            TypeData::Prim { dtype: *dtype, value }
        }
        SInfo::Shape(dims, ndim) => match dims {
            Some(dims) => {
                let (func, vars) = state.func_and_vars()?;
                TypeData::shape(dims_to_syms(func, vars, dims)?)
            }
            None => TypeData::Shape { dims: None, ndim: *ndim },
        },
        SInfo::Tensor(shape, dtype) => {
            let shape = match shape {
                ShapeInfo::Dims(dims) => {
                    let (func, vars) = state.func_and_vars()?;
                    TensorShape::Dims(dims_to_syms(func, vars, dims)?.into())
                }
                ShapeInfo::Var(node) => TensorShape::Var(shape_var(state, node)?),
                ShapeInfo::Rank(n) => TensorShape::Rank(*n),
                ShapeInfo::Unknown => TensorShape::Unknown,
            };
            TypeData::Tensor { shape, dtype: *dtype }
        }
        SInfo::Tuple(fields) => {
            let fields: Result<Vec<Type>> = fields.iter().map(|f| to_type(state, f)).collect();
            TypeData::Tuple(fields?.into())
        }
        SInfo::Func(params, ret, pure) => {
            let params = match params {
                Some(list) => {
                    let list: Result<Vec<Type>> = list.iter().map(|p| to_type(state, p)).collect();
                    Some(list?.into())
                }
                None => None,
            };
            let ret = to_type(state, ret)?;
            TypeData::Callable { params, ret, pure: *pure }
        }
    };
    Ok(state.func_and_vars()?.0.intern(data))
}

fn shape_var(state: &mut OwnerState, node: &NodeRef) -> Result<ir::Var> {
    let e = state.lower(node)?;
    match state.func_and_vars()?.0.expr(e) {
        ir::ExprData::Var(v) => Ok(*v),
        _ => Err(Error::Type(
            "the shape of a TensorStructInfo must be a list of sizes or a variable of shape type"
                .into(),
        )),
    }
}

/// Converts a type that refers to symbols and variables of the function `func` to an [`SInfo`], which does not depend on a
/// function. `wrap_var` creates the node for a variable that stands for the shape of a tensor.
pub fn from_type(
    func: &Function,
    vars: &mut VarMap,
    ty: Type,
    wrap_var: &dyn Fn(ir::Var) -> NodeRef,
) -> SInfo {
    let dims = |syms: &[Sym], vars: &mut VarMap| -> Vec<te::Expr> {
        syms.iter().map(|&s| te::from_sym(&func.syms, s, vars)).collect()
    };
    match func.types.get(ty) {
        TypeData::Any => SInfo::Object,
        TypeData::Prim { dtype, value } => {
            SInfo::Prim(*dtype, value.map(|v| te::from_sym(&func.syms, v, vars)))
        }
        TypeData::Shape { dims: d, ndim } => SInfo::Shape(d.as_ref().map(|d| dims(d, vars)), *ndim),
        TypeData::Tensor { shape, dtype } => {
            let shape = match shape {
                TensorShape::Dims(d) => ShapeInfo::Dims(dims(d, vars)),
                TensorShape::Var(v) => ShapeInfo::Var(wrap_var(*v)),
                TensorShape::Rank(n) => ShapeInfo::Rank(*n),
                TensorShape::Unknown => ShapeInfo::Unknown,
            };
            SInfo::Tensor(shape, *dtype)
        }
        TypeData::Tuple(fields) => {
            SInfo::Tuple(fields.iter().map(|&f| from_type(func, vars, f, wrap_var)).collect())
        }
        TypeData::Callable { params, ret, pure } => {
            let params = params
                .as_ref()
                .map(|p| p.iter().map(|&t| from_type(func, vars, t, wrap_var)).collect());
            SInfo::Func(params, Arc::new(from_type(func, vars, *ret, wrap_var)), *pure)
        }
    }
}

/// Returns the type of a node that belongs to no function, if the type follows from the node alone.
pub fn free_sinfo(node: &NodeRef) -> Option<SInfo> {
    Some(match node.get() {
        Node::Var(v) => v.0.sinfo.clone()?,
        Node::Constant(t) => {
            let dims = t.shape().iter().map(|&d| te::int(d)).collect();
            SInfo::Tensor(ShapeInfo::Dims(dims), Some(t.dtype()))
        }
        Node::Shape(dims) => SInfo::Shape(Some(dims.clone()), Some(dims.len() as u32)),
        Node::Prim(e) if e.ty().dtype.is_float() => SInfo::Prim(e.ty().dtype, None),
        Node::Prim(e) => SInfo::Prim(e.ty().dtype, Some(e.clone())),
        Node::Str(_) | Node::DType(_) => SInfo::Object,
        Node::Extern(_) => SInfo::Func(None, Arc::new(SInfo::Object), false),
        Node::Tuple(fields) => {
            let fields: Option<Vec<SInfo>> = fields.iter().map(sinfo_of).collect();
            SInfo::Tuple(fields?.into_iter().collect())
        }
        // A field access to a tuple expression has the type of the field. Python loops may build long chains of them,
        // so this must not recurse.
        Node::GetItem(..) if node.field().is_some() => {
            let mut node = node;
            while let Some(field) = node.field() {
                node = field;
            }
            sinfo_of(node)?
        }
        Node::GetItem(tuple, index) => match sinfo_of(tuple)? {
            SInfo::Tuple(fields) => fields.get(*index as usize)?.clone(),
            _ => return None,
        },
        Node::Call(call) if call.ty_args.len() == 1 => call.ty_args[0].clone(),
        Node::Root(owner) => crate::relax::function::owner_signature(owner),
        Node::Func(func) => match func.built() {
            Some(owner) => crate::relax::function::owner_signature(owner),
            None => match func.data().signature() {
                Some(info) => info,
                None => crate::relax::function::owner_signature(&func.owner().ok()?),
            },
        },
        Node::Seq(seq) => sinfo_of(&seq.body()?)?,
        _ => return None,
    })
}

/// Returns the type of a node, if known.
pub fn sinfo_of(node: &NodeRef) -> Option<SInfo> {
    match node.get() {
        Node::InFunc(owner, e) => Some(owner.sinfo(*e)),
        _ => free_sinfo(node),
    }
}
