//! The Python classes of struct infos. A struct info is the static type of a graph-level value.

use std::sync::Arc;

use pliant_ir::DType;
use pliant_ops::te;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::error::{Error, Result};
use crate::relax::classes::{Expr, wrap};
use crate::relax::detached_expr::{Node, NodeRef};
use crate::relax::struct_info::{SInfo, ShapeInfo};
use crate::relax::value_conversion::{sinfo, sinfo_list};
use crate::runtime::array_import::parse_dtype;
use crate::tir::prim_expr::{prim_list, tuple_of};
use crate::tir::scalar_expr_classes::wrap as wrap_prim;
use crate::tvm_compatibility;

/// The static type of a graph-level value.
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct StructInfo {
    /// The type that this Python object wraps. Unlike a type in the IR, an [`SInfo`] belongs to no function.
    pub info: SInfo,
}

#[pymethods]
impl StructInfo {
    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Types are immutable, so the copy is the type itself.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    fn __repr__(&self) -> String {
        self.info.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<StructInfo>().is_ok_and(|o| o.get().info.same(&self.info))
    }

    fn __hash__(&self) -> u64 {
        // Equal types have equal text, so hashing the text is sufficient.
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.info.to_string().hash(&mut h);
        h.finish()
    }

    /// Whether both objects represent the same type.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        self.__eq__(other)
    }
}

fn info_init(info: SInfo) -> PyClassInitializer<StructInfo> {
    PyClassInitializer::from(StructInfo { info })
}

/// The type of any value.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct ObjectStructInfo;

#[pymethods]
impl ObjectStructInfo {
    #[new]
    fn new() -> PyClassInitializer<Self> {
        info_init(SInfo::Object).add_subclass(ObjectStructInfo)
    }
}

/// The type of a scalar, with its data type, and its value if known.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct PrimStructInfo;

#[pymethods]
impl PrimStructInfo {
    #[new]
    #[pyo3(signature = (dtype=None, value=None))]
    fn new(
        dtype: Option<&Bound<'_, PyAny>>,
        value: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let value = value.map(crate::tir::prim_expr::prim).transpose()?;
        let dtype = match (dtype, &value) {
            (Some(d), _) => parse_dtype(d)?,
            (None, Some(v)) => v.ty().dtype,
            (None, None) => {
                return Err(Error::Type(
                    "PrimStructInfo requires the argument 'dtype' or the argument 'value'".into(),
                ));
            }
        };
        Ok(info_init(SInfo::Prim(dtype, value)).add_subclass(PrimStructInfo))
    }

    /// Returns the data type of the scalar, if known.
    #[getter]
    fn dtype(slf: PyRef<'_, Self>) -> Option<&'static str> {
        slf.as_super().info.dtype().map(DType::name)
    }

    /// Returns the value of the scalar, if known.
    #[getter]
    fn value<'py>(slf: PyRef<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &slf.as_super().info {
            SInfo::Prim(_, Some(v)) => Ok(Some(wrap_prim(slf.py(), v.clone())?)),
            _ => Ok(None),
        }
    }
}

/// The type of a shape, with its dims or its rank if known.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct ShapeStructInfo;

#[pymethods]
impl ShapeStructInfo {
    #[new]
    #[pyo3(signature = (values=None, ndim=-1))]
    fn new(values: Option<&Bound<'_, PyAny>>, ndim: i64) -> Result<PyClassInitializer<Self>> {
        let dims = values.filter(|v| !v.is_none()).map(prim_list).transpose()?;
        let ndim = rank(ndim, dims.as_ref().map(Vec::len))?;
        Ok(info_init(SInfo::Shape(dims, ndim)).add_subclass(ShapeStructInfo))
    }

    /// Returns the dims of the shape, if known.
    #[getter]
    fn values<'py>(slf: PyRef<'py, Self>) -> Result<Option<Bound<'py, PyTuple>>> {
        slf.as_super().info.dims().map(|d| tuple_of(slf.py(), d)).transpose()
    }

    /// Returns the rank of the shape, or -1 if unknown.
    #[getter]
    fn ndim(slf: PyRef<'_, Self>) -> i64 {
        slf.as_super().info.ndim().map_or(-1, |n| n as i64)
    }
}

/// The argument `dtype` of [`TensorStructInfo`]. If it is omitted, the data type is unknown, or float32 as in TVM if `import tvm`
/// is Pliant.
enum DTypeArgument<'py> {
    Omitted,
    Given(Bound<'py, PyAny>),
}

impl<'py> DTypeArgument<'py> {
    /// The data type as a Python object; `None` if it is unknown.
    fn value(self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            DTypeArgument::Given(dtype) => Some(dtype).filter(|dtype| !dtype.is_none()),
            DTypeArgument::Omitted if tvm_compatibility::is_enabled() => {
                Some(PyString::new(py, "float32").into_any())
            }
            DTypeArgument::Omitted => None,
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for DTypeArgument<'py> {
    type Error = std::convert::Infallible;

    fn extract(dtype: pyo3::Borrowed<'a, 'py, PyAny>) -> std::result::Result<Self, Self::Error> {
        Ok(DTypeArgument::Given(dtype.to_owned()))
    }
}

/// The type of a tensor, with its shape, rank and data type as far as they are known.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct TensorStructInfo;

#[pymethods]
impl TensorStructInfo {
    #[new]
    #[pyo3(signature = (shape=None, dtype=DTypeArgument::Omitted, vdevice=None, ndim=-1), text_signature = "(shape=None, dtype=None, vdevice=None, ndim=-1)")]
    fn new(
        py: Python<'_>,
        shape: Option<&Bound<'_, PyAny>>,
        dtype: DTypeArgument<'_>,
        vdevice: Option<&Bound<'_, PyAny>>,
        ndim: i64,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = vdevice;
        let dtype = dtype.value(py);
        let dtype = dtype.as_ref();
        Ok(info_init(tensor_info(shape, dtype, ndim)?).add_subclass(TensorStructInfo))
    }

    /// Returns the shape of the tensor as an expression, if known.
    #[getter]
    fn shape<'py>(slf: PyRef<'py, Self>) -> Result<Option<Bound<'py, PyAny>>> {
        match &slf.as_super().info {
            SInfo::Tensor(ShapeInfo::Dims(d), _) => {
                Ok(Some(wrap(slf.py(), NodeRef::new(Node::Shape(d.clone())))?))
            }
            SInfo::Tensor(ShapeInfo::Var(v), _) => Ok(Some(wrap(slf.py(), v.clone())?)),
            _ => Ok(None),
        }
    }

    /// Returns the rank of the tensor, or -1 if unknown.
    #[getter]
    fn ndim(slf: PyRef<'_, Self>) -> i64 {
        slf.as_super().info.ndim().map_or(-1, |n| n as i64)
    }

    /// The device in the type. Always `None`, because there is one device.
    #[getter]
    fn vdevice(_slf: PyRef<'_, Self>) -> Option<bool> {
        None
    }

    /// Returns the data type of the tensor, or an empty string if unknown.
    #[getter]
    fn dtype(slf: PyRef<'_, Self>) -> &'static str {
        slf.as_super().info.dtype().map_or("", DType::name)
    }
}

/// Creates the type of a tensor from the arguments of a Python call.
///
/// # Errors
/// If a dim is not a size, or if the dtype is unknown.
pub fn tensor_info(
    shape: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
    ndim: i64,
) -> Result<SInfo> {
    let dtype = match dtype.filter(|d| !d.is_none()) {
        Some(d) if d.extract::<&str>().is_ok_and(|s| s.is_empty() || s == "void") => None,
        Some(d) => Some(parse_dtype(d)?),
        None => None,
    };
    let shape = match shape.filter(|s| !s.is_none()) {
        None => rank(ndim, None)?.map_or(ShapeInfo::Unknown, ShapeInfo::Rank),
        Some(s) => match s.cast::<Expr>() {
            Ok(e) => match e.get().node.get() {
                Node::Shape(dims) => ShapeInfo::Dims(dims.clone()),
                _ => ShapeInfo::Var(e.get().node.clone()),
            },
            Err(_) => ShapeInfo::Dims(dims_of(s)?),
        },
    };
    let dims = if let ShapeInfo::Dims(dims) = &shape { Some(dims.len()) } else { None };
    rank(ndim, dims)?;
    SInfo::Tensor(shape, dtype).checked()
}

/// Determines the rank from `ndim` or from the number of dims. Returns `None` if neither is given.
/// An `ndim` of -1 counts as not given.
///
/// # Errors
/// `ShapeError` if `ndim` differs from the number of dims or is below -1.
fn rank(ndim: i64, dims: Option<usize>) -> Result<Option<u32>> {
    match (u32::try_from(ndim), dims) {
        (Ok(n), Some(d)) if n as usize != d => {
            Err(Error::Shape(format!("the argument 'ndim' is {n}, but the shape has {d} dims")))
        }
        (Ok(n), _) => Ok(Some(n)),
        (Err(_), dims) if ndim == -1 => Ok(dims.map(|d| d as u32)),
        _ => Err(Error::Shape(format!(
            "the argument 'ndim' must be a non-negative rank, or -1 if the rank is unknown, not {ndim}"
        ))),
    }
}

/// Converts a Python sequence to dims. Each must be an integer expression, and a constant must not be negative.
///
/// # Errors
/// `TypeError` for other objects, `ShapeError` for float expressions and negative constants.
pub fn dims_of(obj: &Bound<'_, PyAny>) -> Result<Vec<te::Expr>> {
    let dims = prim_list(obj)?;
    match dims.iter().find(|d| d.ty().dtype.is_float() || d.as_int().is_some_and(|v| v < 0)) {
        Some(d) => {
            Err(Error::Shape(format!("a dim of a shape must be a non-negative integer, not {d}")))
        }
        None => Ok(dims),
    }
}

/// The type of a tuple, with the types of its fields.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct TupleStructInfo;

#[pymethods]
impl TupleStructInfo {
    #[new]
    fn new(fields: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        let info = SInfo::Tuple(sinfo_list(fields)?.into_iter().collect());
        Ok(info_init(info.checked()?).add_subclass(TupleStructInfo))
    }

    /// Returns the types of the fields.
    #[getter]
    fn fields<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        match &slf.as_super().info {
            SInfo::Tuple(fields) => info_tuple(slf.py(), fields),
            _ => Ok(PyTuple::empty(slf.py())),
        }
    }
}

/// The type of a function.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct FuncStructInfo;

#[pymethods]
impl FuncStructInfo {
    #[new]
    #[pyo3(signature = (params, ret, purity=true))]
    fn new(
        params: &Bound<'_, PyAny>,
        ret: &Bound<'_, PyAny>,
        purity: bool,
    ) -> Result<PyClassInitializer<Self>> {
        let params =
            if params.is_none() { None } else { Some(sinfo_list(params)?.into_iter().collect()) };
        let info = SInfo::Func(params, Arc::new(sinfo(ret)?), purity).checked()?;
        Ok(info_init(info).add_subclass(FuncStructInfo))
    }

    /// Creates the type of functions with unknown parameters.
    #[staticmethod]
    #[pyo3(signature = (*, ret=None, derive_func=None, purity=false))]
    fn opaque_func<'py>(
        py: Python<'py>,
        ret: Option<&Bound<'py, PyAny>>,
        derive_func: Option<&Bound<'py, PyAny>>,
        purity: bool,
    ) -> Result<Bound<'py, PyAny>> {
        if derive_func.is_some_and(|f| !f.is_none()) {
            return Err(Error::Unsupported(
                "derive_func is not supported: pass the type of the result as 'ret' here, or as sinfo_args of each call"
                    .into(),
            ));
        }
        let ret = ret.filter(|r| !r.is_none()).map(sinfo).transpose()?.unwrap_or(SInfo::Object);
        wrap_info(py, SInfo::Func(None, Arc::new(ret), purity).checked()?)
    }

    /// Returns the types of the parameters, if known.
    #[getter]
    fn params<'py>(slf: PyRef<'py, Self>) -> Result<Option<Bound<'py, PyTuple>>> {
        match &slf.as_super().info {
            SInfo::Func(Some(params), ..) => Ok(Some(info_tuple(slf.py(), params)?)),
            _ => Ok(None),
        }
    }

    /// Returns the type of the result.
    #[getter]
    fn ret<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        match &slf.as_super().info {
            SInfo::Func(_, ret, _) => wrap_info(slf.py(), (**ret).clone()),
            _ => wrap_info(slf.py(), SInfo::Object),
        }
    }

    /// Whether calls of the function have no side effects.
    #[getter]
    fn purity(slf: PyRef<'_, Self>) -> bool {
        matches!(&slf.as_super().info, SInfo::Func(_, _, true))
    }
}

/// Converts types to a Python tuple of struct info objects.
///
/// # Errors
/// An error of the Python interpreter.
pub fn info_tuple<'py>(py: Python<'py>, infos: &[SInfo]) -> Result<Bound<'py, PyTuple>> {
    let items: Result<Vec<_>> = infos.iter().map(|i| wrap_info(py, i.clone())).collect();
    Ok(PyTuple::new(py, items?)?)
}

/// Wraps a type as an instance of its Python class.
///
/// # Errors
/// An error of the Python interpreter.
pub fn wrap_info(py: Python<'_>, info: SInfo) -> Result<Bound<'_, PyAny>> {
    macro_rules! make {
        ($class:ident) => {
            Bound::new(py, info_init(info).add_subclass($class))?.into_any()
        };
    }
    Ok(match info {
        SInfo::Object => make!(ObjectStructInfo),
        SInfo::Prim(..) => make!(PrimStructInfo),
        SInfo::Shape(..) => make!(ShapeStructInfo),
        SInfo::Tensor(..) => make!(TensorStructInfo),
        SInfo::Tuple(_) => make!(TupleStructInfo),
        SInfo::Func(..) => make!(FuncStructInfo),
    })
}
