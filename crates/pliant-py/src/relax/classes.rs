//! The Python classes of the graph level: `StructInfo` and `Expr` with their kinds.

use std::sync::Arc;

use pliant_ir::relax::ExprData;
use pliant_ir::{DType, Op};
use pliant_ops::te;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::relax::convert::{
    arg_list, attr_object, attr_value, needed, operand, own, sinfo, sinfo_list,
};
use crate::relax::node::{CallNode, CalleeNode, FreeVar, FreeVarData, Node, NodeRef};
use crate::relax::sinfo::{SInfo, SShape, sinfo_of};
use crate::runtime::import::{parse_dtype, to_tensor};
use crate::runtime::ndarray::NDArray;
use crate::tir::expr::{prim_list, tuple_of, wrap as wrap_prim};

// ---- struct infos ----

/// The type of a graph-level value: what is known of it before it runs.
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct StructInfo {
    /// The type.
    pub info: SInfo,
}

#[pymethods]
impl StructInfo {
    fn __repr__(&self) -> String {
        self.info.to_string()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<StructInfo>().is_ok_and(|o| o.get().info.same(&self.info))
    }

    fn __hash__(&self) -> u64 {
        // Equal infos print alike; that is all that hashing needs.
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.info.to_string().hash(&mut h);
        h.finish()
    }

    /// Whether both are the same type.
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

/// The type of a scalar: its dtype, or its value where known.
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
        let value = value.map(crate::tir::expr::prim).transpose()?;
        let dtype = match (dtype, &value) {
            (Some(d), _) => parse_dtype(d)?,
            (None, Some(v)) => v.ty().dtype,
            (None, None) => {
                return Err(Error::Type("PrimStructInfo needs a dtype or a value".into()));
            }
        };
        Ok(info_init(SInfo::Prim(dtype, value)).add_subclass(PrimStructInfo))
    }

    /// The data type.
    #[getter]
    fn dtype(slf: PyRef<'_, Self>) -> Option<&'static str> {
        slf.as_super().info.dtype().map(DType::name)
    }

    /// The value, where known.
    #[getter]
    fn value<'py>(slf: PyRef<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &slf.as_super().info {
            SInfo::Prim(_, Some(v)) => Ok(Some(wrap_prim(slf.py(), v.clone())?)),
            _ => Ok(None),
        }
    }
}

/// The type of a shape: its dims, its rank, or nothing.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct ShapeStructInfo;

#[pymethods]
impl ShapeStructInfo {
    #[new]
    #[pyo3(signature = (values=None, ndim=-1))]
    fn new(values: Option<&Bound<'_, PyAny>>, ndim: i64) -> Result<PyClassInitializer<Self>> {
        let dims = values.filter(|v| !v.is_none()).map(prim_list).transpose()?;
        let ndim = dims.as_ref().map(|d| d.len() as u32).or(u32::try_from(ndim).ok());
        Ok(info_init(SInfo::Shape(dims, ndim)).add_subclass(ShapeStructInfo))
    }

    /// The dims, where known.
    #[getter]
    fn values<'py>(slf: PyRef<'py, Self>) -> Result<Option<Bound<'py, PyTuple>>> {
        slf.as_super().info.dims().map(|d| tuple_of(slf.py(), d)).transpose()
    }

    /// The rank; -1 where unknown.
    #[getter]
    fn ndim(slf: PyRef<'_, Self>) -> i64 {
        slf.as_super().info.ndim().map_or(-1, |n| n as i64)
    }
}

/// The type of a tensor.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct TensorStructInfo;

#[pymethods]
impl TensorStructInfo {
    #[new]
    #[pyo3(signature = (shape=None, dtype=None, vdevice=None, ndim=-1))]
    fn new(
        shape: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        vdevice: Option<&Bound<'_, PyAny>>,
        ndim: i64,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = vdevice;
        Ok(info_init(tensor_info(shape, dtype, ndim)?).add_subclass(TensorStructInfo))
    }

    /// The shape as an expression, where known.
    #[getter]
    fn shape<'py>(slf: PyRef<'py, Self>) -> Result<Option<Bound<'py, PyAny>>> {
        match &slf.as_super().info {
            SInfo::Tensor(SShape::Dims(d), _) => {
                Ok(Some(wrap(slf.py(), NodeRef::new(Node::Shape(d.clone())))?))
            }
            SInfo::Tensor(SShape::Var(v), _) => Ok(Some(wrap(slf.py(), v.clone())?)),
            _ => Ok(None),
        }
    }

    /// The rank; -1 where unknown.
    #[getter]
    fn ndim(slf: PyRef<'_, Self>) -> i64 {
        slf.as_super().info.ndim().map_or(-1, |n| n as i64)
    }

    /// The data type; empty where unknown.
    #[getter]
    fn dtype(slf: PyRef<'_, Self>) -> &'static str {
        slf.as_super().info.dtype().map_or("", DType::name)
    }
}

/// A tensor's type from what Python code says of it.
///
/// # Errors
/// Dims that are no sizes; unknown dtypes.
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
        None => match u32::try_from(ndim) {
            Ok(n) => SShape::Rank(n),
            Err(_) => SShape::Unknown,
        },
        Some(s) => match s.cast::<Expr>() {
            Ok(e) => match e.get().node.get() {
                Node::Shape(dims) => SShape::Dims(dims.clone()),
                _ => SShape::Var(e.get().node.clone()),
            },
            Err(_) => SShape::Dims(dims_of(s)?),
        },
    };
    Ok(SInfo::Tensor(shape, dtype))
}

fn dims_of(obj: &Bound<'_, PyAny>) -> Result<Vec<te::Expr>> {
    let dims = prim_list(obj)?;
    match dims.iter().find(|d| d.ty().dtype.is_float() || d.as_int().is_some_and(|v| v < 0)) {
        Some(d) => Err(Error::Shape(format!("a dim is a non-negative integer, not {d}"))),
        None => Ok(dims),
    }
}

/// The type of a tuple.
#[pyclass(extends = StructInfo, frozen, module = "pliant.relax")]
pub struct TupleStructInfo;

#[pymethods]
impl TupleStructInfo {
    #[new]
    fn new(fields: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        let fields = sinfo_list(fields)?;
        Ok(info_init(SInfo::Tuple(fields.into())).add_subclass(TupleStructInfo))
    }

    /// The types of the fields.
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
        let params = if params.is_none() { None } else { Some(sinfo_list(params)?.into()) };
        let info = SInfo::Func(params, Arc::new(sinfo(ret)?), purity);
        Ok(info_init(info).add_subclass(FuncStructInfo))
    }

    /// The types of the parameters, where known.
    #[getter]
    fn params<'py>(slf: PyRef<'py, Self>) -> Result<Option<Bound<'py, PyTuple>>> {
        match &slf.as_super().info {
            SInfo::Func(Some(params), ..) => Ok(Some(info_tuple(slf.py(), params)?)),
            _ => Ok(None),
        }
    }

    /// The type of the result.
    #[getter]
    fn ret<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        match &slf.as_super().info {
            SInfo::Func(_, ret, _) => wrap_info(slf.py(), (**ret).clone()),
            _ => wrap_info(slf.py(), SInfo::Object),
        }
    }

    /// Whether calls have no effect but their result.
    #[getter]
    fn purity(slf: PyRef<'_, Self>) -> bool {
        matches!(&slf.as_super().info, SInfo::Func(_, _, true))
    }
}

fn info_tuple<'py>(py: Python<'py>, infos: &[SInfo]) -> Result<Bound<'py, PyTuple>> {
    let items: Result<Vec<_>> = infos.iter().map(|i| wrap_info(py, i.clone())).collect();
    Ok(PyTuple::new(py, items?)?)
}

/// A type as an object of its class.
///
/// # Errors
/// Those of the interpreter.
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

// ---- expressions ----

/// An expression of the graph level.
#[pyclass(subclass, frozen, module = "pliant.relax", weakref)]
pub struct Expr {
    /// The node.
    pub node: NodeRef,
}

fn binary<'py>(
    op: &'static str,
    a: &NodeRef,
    other: &Bound<'py, PyAny>,
    reflected: bool,
) -> Result<Bound<'py, PyAny>> {
    let py = other.py();
    let b = match operand(other) {
        Ok(Some(b)) => b,
        _ => return Ok(py.NotImplemented().into_bound(py)),
    };
    let args = if reflected { vec![b, a.clone()] } else { vec![a.clone(), b] };
    wrap(py, call_op(op, args))
}

/// A call of an operator of the library by its full name.
pub fn call_op(op: &'static str, args: Vec<NodeRef>) -> NodeRef {
    NodeRef::new(Node::Call(CallNode {
        callee: CalleeNode::Op(Op(op)),
        args,
        attrs: Default::default(),
        ty_args: Vec::new(),
    }))
}

#[pymethods]
impl Expr {
    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.add", &self.node, other, false)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.add", &self.node, other, true)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.subtract", &self.node, other, false)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.subtract", &self.node, other, true)
    }

    fn __mul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.multiply", &self.node, other, false)
    }

    fn __rmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.multiply", &self.node, other, true)
    }

    fn __truediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.divide", &self.node, other, false)
    }

    fn __rtruediv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.divide", &self.node, other, true)
    }

    fn __floordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.floor_divide", &self.node, other, false)
    }

    fn __rfloordiv__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.floor_divide", &self.node, other, true)
    }

    fn __mod__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.mod", &self.node, other, false)
    }

    fn __rmod__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.mod", &self.node, other, true)
    }

    fn __pow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let _ = modulo;
        binary("relax.power", &self.node, other, false)
    }

    fn __rpow__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        modulo: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let _ = modulo;
        binary("relax.power", &self.node, other, true)
    }

    fn __matmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.matmul", &self.node, other, false)
    }

    fn __rmatmul__<'py>(&self, other: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        binary("relax.matmul", &self.node, other, true)
    }

    fn __neg__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap(py, call_op("relax.negative", vec![self.node.clone()]))
    }

    fn __abs__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        wrap(py, call_op("relax.abs", vec![self.node.clone()]))
    }

    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> Result<Bound<'py, PyAny>> {
        let py = other.py();
        let name = match op {
            CompareOp::Lt => "relax.less",
            CompareOp::Le => "relax.less_equal",
            CompareOp::Gt => "relax.greater",
            CompareOp::Ge => "relax.greater_equal",
            CompareOp::Eq | CompareOp::Ne => {
                let same = other.cast::<Expr>().is_ok_and(|o| self.node.same(&o.get().node));
                let result = same == matches!(op, CompareOp::Eq);
                return Ok(pyo3::types::PyBool::new(py, result).to_owned().into_any());
            }
        };
        binary(name, &self.node, other, false)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        match self.node.get() {
            Node::Var(v) => v.id().hash(&mut h),
            Node::InFunc(home, e) => (Arc::as_ptr(home) as usize, e).hash(&mut h),
            Node::Global(n) | Node::Extern(n) => n.hash(&mut h),
            _ => self.node.id().hash(&mut h),
        }
        h.finish()
    }

    /// A field of a tuple.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let py = index.py();
        if let Node::Shape(dims) = self.node.get() {
            return Ok(tuple_of(py, dims)?.as_any().get_item(index)?);
        }
        let i: u32 = index
            .extract()
            .map_err(|_| Error::Type("the index of a tuple field is an int".into()))?;
        if let Some(SInfo::Tuple(fields)) = sinfo_of(&self.node)
            && i as usize >= fields.len()
        {
            return Err(Error::Index(format!("the tuple has {} fields", fields.len())));
        }
        wrap(py, NodeRef::new(Node::GetItem(self.node.clone(), i)))
    }

    fn __len__(&self) -> Result<usize> {
        match (self.node.get(), sinfo_of(&self.node)) {
            (Node::Shape(dims), _) => Ok(dims.len()),
            (_, Some(SInfo::Tuple(fields))) => Ok(fields.len()),
            _ => Err(Error::Type("the expression is no tuple of known length".into())),
        }
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        if let Node::Shape(dims) = self.node.get() {
            return Ok(tuple_of(py, dims)?.as_any().try_iter()?.into_any());
        }
        let fields: Result<Vec<_>> = (0..self.__len__()? as u32)
            .map(|i| wrap(py, NodeRef::new(Node::GetItem(self.node.clone(), i))))
            .collect();
        Ok(PyTuple::new(py, fields?)?.as_any().try_iter()?.into_any())
    }

    fn __bool__(&self) -> Result<bool> {
        Err(Error::Type(
            "the truth of a tensor expression is not known until it runs; use R.where or an If"
                .into(),
        ))
    }

    /// A call of a function value.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(&self, args: &Bound<'py, PyTuple>) -> Result<Bound<'py, PyAny>> {
        let list: Result<Vec<NodeRef>> = args.iter().map(|a| needed(&a)).collect();
        let call = CallNode {
            callee: CalleeNode::Expr(self.node.clone()),
            args: list?,
            attrs: Default::default(),
            ty_args: Vec::new(),
        };
        wrap(args.py(), NodeRef::new(Node::Call(call)))
    }

    fn __repr__(&self) -> String {
        crate::relax::views::text(&self.node)
    }

    /// The type.
    #[getter]
    fn struct_info<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        match sinfo_of(&self.node) {
            Some(info) => wrap_info(py, info),
            None => {
                Err(Error::Value("the struct info is known once the expression is emitted".into()))
            }
        }
    }

    /// The type; `None` where it is not known yet.
    #[getter]
    fn struct_info_<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        sinfo_of(&self.node).map(|info| wrap_info(py, info)).transpose()
    }

    /// The type, under the name of later dialects.
    #[getter]
    fn ty<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.struct_info(py)
    }

    /// Whether both are the same expression.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Expr>().is_ok_and(|o| self.node.same(&o.get().node))
    }

    /// Converts the elements to another data type.
    fn astype<'py>(&self, dtype: &Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        let attrs = pliant_ir::Attrs::default().with("dtype", attr_value(dtype)?);
        let call = CallNode {
            callee: CalleeNode::Op(Op("relax.astype")),
            args: vec![self.node.clone()],
            attrs,
            ty_args: Vec::new(),
        };
        wrap(dtype.py(), NodeRef::new(Node::Call(call)))
    }
}

fn init(node: NodeRef) -> PyClassInitializer<Expr> {
    PyClassInitializer::from(Expr { node })
}

/// The node of an object of a subclass.
fn node_of<'a, T>(slf: &'a PyRef<'_, T>) -> &'a NodeRef
where
    T: pyo3::PyClass<BaseType = Expr>,
{
    &slf.as_super().node
}

/// A variable. With `struct_info` it can be a parameter.
#[pyclass(extends = Expr, subclass, frozen, module = "pliant.relax")]
pub struct Var;

#[pymethods]
impl Var {
    #[new]
    #[pyo3(signature = (name_hint, struct_info=None))]
    fn new(
        name_hint: &str,
        struct_info: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        Ok(init(free_var(name_hint, struct_info, false)?).add_subclass(Var))
    }

    /// The name.
    #[getter]
    fn name_hint(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }

    /// The name.
    #[getter]
    fn name(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }
}

fn free_var(name: &str, info: Option<&Bound<'_, PyAny>>, dataflow: bool) -> Result<NodeRef> {
    let info = info.filter(|i| !i.is_none()).map(sinfo).transpose()?;
    let data = FreeVarData { name: name.into(), sinfo: info, dataflow };
    Ok(NodeRef::new(Node::Var(FreeVar(Arc::new(data)))))
}

/// A variable that is local to its dataflow block.
#[pyclass(extends = Var, frozen, module = "pliant.relax")]
pub struct DataflowVar;

#[pymethods]
impl DataflowVar {
    #[new]
    #[pyo3(signature = (name_hint, struct_info=None))]
    fn new(
        name_hint: &str,
        struct_info: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        Ok(init(free_var(name_hint, struct_info, true)?)
            .add_subclass(Var)
            .add_subclass(DataflowVar))
    }
}

/// A function of the module, by name.
#[pyclass(extends = Expr, frozen, module = "pliant.ir")]
pub struct GlobalVar;

#[pymethods]
impl GlobalVar {
    #[new]
    fn new(name_hint: &str) -> PyClassInitializer<Self> {
        init(NodeRef::new(Node::Global(name_hint.into()))).add_subclass(GlobalVar)
    }

    /// The name.
    #[getter]
    fn name_hint(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }

    /// The name.
    #[getter]
    fn name(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }
}

/// A packed function, by its registered name.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct ExternFunc;

#[pymethods]
impl ExternFunc {
    #[new]
    fn new(global_symbol: &str) -> PyClassInitializer<Self> {
        init(NodeRef::new(Node::Extern(global_symbol.into()))).add_subclass(ExternFunc)
    }

    /// The registered name.
    #[getter]
    fn global_symbol(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }
}

/// A tensor constant.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Constant;

#[pymethods]
impl Constant {
    #[new]
    #[pyo3(signature = (data, struct_info=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        struct_info: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = struct_info;
        let tensor = own(to_tensor(data, None)?)?;
        Ok(init(NodeRef::new(Node::Constant(tensor))).add_subclass(Constant))
    }

    /// The elements.
    #[getter]
    fn data(slf: PyRef<'_, Self>) -> Result<NDArray> {
        match node_of(&slf).get() {
            Node::Constant(t) => Ok(NDArray::wrap(t.as_read_only())),
            Node::InFunc(home, e) => {
                let state = home.lock();
                match state.func().map(|f| (f, f.expr(*e))) {
                    Some((f, ExprData::Constant(c))) => {
                        Ok(NDArray::wrap(f.const_tensor(*c).as_read_only()))
                    }
                    _ => Err(Error::Value("the function was given up".into())),
                }
            }
            _ => Err(Error::Value("the constant takes its dtype from the tensor beside it".into())),
        }
    }
}

/// A constant of a number, a list or an array.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
pub fn relax_const<'py>(
    value: &Bound<'py, PyAny>,
    dtype: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    use pyo3::types::{PyBool, PyInt};
    let dtype = match dtype.filter(|d| !d.is_none()) {
        Some(d) => Some(parse_dtype(d)?),
        None if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() => {
            Some(DType::Int32)
        }
        None => None,
    };
    let tensor = match (value.extract::<f64>(), dtype) {
        // NumPy has no bfloat16, but numbers need no NumPy.
        (Ok(v), Some(DType::BFloat16)) => crate::relax::convert::float_tensor(v, DType::BFloat16)?,
        _ => own(to_tensor(value, dtype)?)?,
    };
    wrap(value.py(), NodeRef::new(Node::Constant(tensor)))
}

/// A shape.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct ShapeExpr;

#[pymethods]
impl ShapeExpr {
    #[new]
    fn new(values: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        Ok(init(NodeRef::new(Node::Shape(dims_of(values)?))).add_subclass(ShapeExpr))
    }

    /// The dims.
    #[getter]
    fn values<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        match sinfo_of(node_of(&slf)) {
            Some(SInfo::Shape(Some(dims), _)) => tuple_of(slf.py(), &dims),
            _ => Ok(PyTuple::empty(slf.py())),
        }
    }
}

/// An integer or float scalar.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct PrimValue;

#[pymethods]
impl PrimValue {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        let e = crate::tir::expr::prim(value)?;
        let e = if value.is_instance_of::<PyFloat>() { te::cast(&e, DType::Float64) } else { e };
        Ok(init(NodeRef::new(Node::Prim(e))).add_subclass(PrimValue))
    }

    /// The value.
    #[getter]
    fn value<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let py = slf.py();
        match (node_of(&slf).get(), sinfo_of(node_of(&slf))) {
            (Node::Prim(e), _) => Ok(wrap_prim(py, e.clone())?),
            (_, Some(SInfo::Prim(_, Some(e)))) => Ok(wrap_prim(py, e)?),
            _ => Err(Error::Value("the value is known when it runs".into())),
        }
    }
}

/// A string.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct StringImm;

#[pymethods]
impl StringImm {
    #[new]
    fn new(value: &str) -> PyClassInitializer<Self> {
        init(NodeRef::new(Node::Str(value.into()))).add_subclass(StringImm)
    }

    /// The string.
    #[getter]
    fn value(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }
}

/// A data type as a value.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct DataTypeImm;

#[pymethods]
impl DataTypeImm {
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        Ok(init(NodeRef::new(Node::DType(parse_dtype(value)?))).add_subclass(DataTypeImm))
    }

    /// The data type.
    #[getter]
    fn value(slf: PyRef<'_, Self>) -> String {
        crate::relax::views::var_name(node_of(&slf))
    }
}

/// A tuple.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Tuple;

#[pymethods]
impl Tuple {
    #[new]
    fn new(fields: &Bound<'_, PyAny>) -> Result<PyClassInitializer<Self>> {
        let fields: Result<Vec<NodeRef>> = fields.try_iter()?.map(|f| needed(&f?)).collect();
        Ok(init(NodeRef::new(Node::Tuple(fields?))).add_subclass(Tuple))
    }

    /// The fields.
    #[getter]
    fn fields<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        crate::relax::views::operands(slf.py(), node_of(&slf))
    }
}

/// A field of a tuple.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct TupleGetItem;

#[pymethods]
impl TupleGetItem {
    #[new]
    fn new(tuple_value: &Bound<'_, PyAny>, index: u32) -> Result<PyClassInitializer<Self>> {
        Ok(init(NodeRef::new(Node::GetItem(needed(tuple_value)?, index)))
            .add_subclass(TupleGetItem))
    }

    /// The tuple.
    #[getter]
    fn tuple_value<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(crate::relax::views::operands(slf.py(), node_of(&slf))?.get_item(0)?)
    }

    /// Which field.
    #[getter]
    fn index(slf: PyRef<'_, Self>) -> u32 {
        match node_of(&slf).get() {
            Node::GetItem(_, index) => *index,
            Node::InFunc(home, e) => match home.lock().func().map(|f| f.expr(*e)) {
                Some(ExprData::TupleGetItem(_, index)) => *index,
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// A call of an operator or a function.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct Call;

#[pymethods]
impl Call {
    #[new]
    #[pyo3(signature = (op, args, attrs=None, sinfo_args=None))]
    fn new(
        op: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
        attrs: Option<&Bound<'_, pyo3::types::PyDict>>,
        sinfo_args: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let callee = match op.cast::<crate::relax::op::OpFunction>() {
            Ok(op) => CalleeNode::Op(op.get().op),
            Err(_) => CalleeNode::Expr(needed(op)?),
        };
        let mut list = pliant_ir::Attrs::default();
        for (k, v) in attrs.into_iter().flatten() {
            list.set(&k.extract::<String>()?, attr_value(&v)?);
        }
        let ty_args = sinfo_args.map(sinfo_list).transpose()?.unwrap_or_default();
        let call = CallNode { callee, args: arg_list(args)?, attrs: list, ty_args };
        Ok(init(NodeRef::new(Node::Call(call))).add_subclass(Call))
    }

    /// What is called.
    #[getter]
    fn op<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        crate::relax::views::callee(slf.py(), node_of(&slf))
    }

    /// The operands.
    #[getter]
    fn args<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        crate::relax::views::operands(slf.py(), node_of(&slf))
    }

    /// The attributes.
    #[getter]
    fn attrs<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let dict = pyo3::types::PyDict::new(slf.py());
        crate::relax::views::with_attrs(node_of(&slf), |attrs| {
            for (k, v) in &attrs.0 {
                dict.set_item(&**k, attr_object(slf.py(), v)?)?;
            }
            Ok(())
        })?;
        Ok(dict.into_any())
    }

    /// The types of the results that the call gives.
    #[getter]
    fn sinfo_args<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        info_tuple(slf.py(), &crate::relax::views::ty_args(node_of(&slf)))
    }
}

/// A choice by a scalar bool.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct If;

/// A local function.
#[pyclass(extends = Expr, frozen, module = "pliant.relax")]
pub struct LocalFunction;

/// An expression as an object of the class that tells what it is.
///
/// # Errors
/// Those of the interpreter.
pub fn wrap(py: Python<'_>, node: NodeRef) -> Result<Bound<'_, PyAny>> {
    macro_rules! make {
        ($class:ident) => {
            Bound::new(py, init(node).add_subclass($class))?.into_any()
        };
    }
    let dataflow = match node.get() {
        Node::Var(v) => Some(v.0.dataflow),
        Node::InFunc(home, e) => {
            let state = home.lock();
            let func = state.func();
            match func.map(|f| f.expr(*e)) {
                Some(ExprData::Var(v)) => func.map(|f| f.var(*v).dataflow),
                other => {
                    let class = other.map_or(0, class_of);
                    drop(state);
                    return wrap_class(py, node, class);
                }
            }
        }
        Node::Global(_) => return Ok(make!(GlobalVar)),
        Node::Extern(_) => return Ok(make!(ExternFunc)),
        Node::Constant(_) | Node::Scalar(_) => return Ok(make!(Constant)),
        Node::Shape(_) => return Ok(make!(ShapeExpr)),
        Node::Prim(_) => return Ok(make!(PrimValue)),
        Node::Str(_) => return Ok(make!(StringImm)),
        Node::DType(_) => return Ok(make!(DataTypeImm)),
        Node::Tuple(_) => return Ok(make!(Tuple)),
        Node::GetItem(..) => return Ok(make!(TupleGetItem)),
        Node::Call(_) => return Ok(make!(Call)),
    };
    if dataflow == Some(true) {
        return Ok(
            Bound::new(py, init(node).add_subclass(Var).add_subclass(DataflowVar))?.into_any()
        );
    }
    Ok(make!(Var))
}

/// A small number for the class of an expression of a function.
fn class_of(data: &ExprData) -> u8 {
    match data {
        ExprData::Var(_) => 0,
        ExprData::Global(_) => 1,
        ExprData::Extern(_) => 2,
        ExprData::Constant(_) => 3,
        ExprData::Shape(_) => 4,
        ExprData::Int(..) | ExprData::Float(..) => 5,
        ExprData::Str(_) => 6,
        ExprData::DType(_) => 7,
        ExprData::Tuple(_) => 8,
        ExprData::TupleGetItem(..) => 9,
        ExprData::Call { .. } => 10,
        ExprData::If { .. } => 11,
        ExprData::Func(_) => 12,
    }
}

fn wrap_class(py: Python<'_>, node: NodeRef, class: u8) -> Result<Bound<'_, PyAny>> {
    macro_rules! make {
        ($class:ident) => {
            Bound::new(py, init(node).add_subclass($class))?.into_any()
        };
    }
    Ok(match class {
        0 => make!(Var),
        1 => make!(GlobalVar),
        2 => make!(ExternFunc),
        3 => make!(Constant),
        4 => make!(ShapeExpr),
        5 => make!(PrimValue),
        6 => make!(StringImm),
        7 => make!(DataTypeImm),
        8 => make!(Tuple),
        9 => make!(TupleGetItem),
        10 => make!(Call),
        11 => make!(If),
        _ => make!(LocalFunction),
    })
}

/// The name of a global function or packed function given as such or as a string.
///
/// # Errors
/// `TypeError` for anything else.
pub fn callee_name(obj: &Bound<'_, PyAny>) -> Result<NodeRef> {
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(NodeRef::new(Node::Extern(s.to_string().into())));
    }
    needed(obj)
}
