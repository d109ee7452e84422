//! The Python classes of graph-level expressions: `Expr` and its subclasses.

use pliant_ir::relax::ExprData;
use pliant_ir::{DType, Op};
use pliant_ops::te;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::relax::check::check_call;
use crate::relax::convert::{arg_list, attr_value, needed, operand, own, sinfo, sinfo_list};
use crate::relax::infos::{dims_of, info_tuple, wrap_info};
use crate::relax::node::{CallNode, CalleeNode, FreeVar, Node, NodeRef};
use crate::relax::sinfo::{SInfo, sinfo_of};
pub use crate::relax::wrap::wrap;
use crate::runtime::import::{parse_dtype, to_tensor};
use crate::runtime::ndarray::NDArray;
use crate::tir::classes::wrap as wrap_prim;
use crate::tir::expr::tuple_of;

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
    checked(py, call_op(op, args))
}

/// Checks the arguments of a call of a built-in operator and wraps the call.
fn checked(py: Python<'_>, call: NodeRef) -> Result<Bound<'_, PyAny>> {
    if let Node::Call(call) = call.get() {
        check_call(call)?;
    }
    wrap(py, call)
}

/// A call of a library operator, given by its full name.
pub fn call_op(op: &'static str, args: Vec<NodeRef>) -> NodeRef {
    NodeRef::new(Node::Call(CallNode {
        callee: CalleeNode::Op(Op::new(op)),
        args,
        attrs: Default::default(),
        ty_args: Vec::new(),
    }))
}

/// The fields of a tuple expression, or the sizes of a shape expression.
fn written_out<'py>(expr: &Bound<'py, Expr>) -> Result<Option<Bound<'py, PyAny>>> {
    if expr.is_instance_of::<Tuple>() {
        return Ok(Some(expr.getattr("fields")?));
    }
    if expr.is_instance_of::<ShapeExpr>() {
        return Ok(Some(expr.getattr("values")?));
    }
    Ok(None)
}

#[pymethods]
impl Expr {
    /// Always `None`: Python objects do not record source locations. Constructors accept the
    /// argument for compatibility with TVM.
    #[getter]
    fn span(&self) -> Option<Py<PyAny>> {
        None
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Expressions are immutable, so the copy is the expression itself.
    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

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
        checked(py, call_op("relax.negative", vec![self.node.clone()]))
    }

    fn __abs__<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        checked(py, call_op("relax.abs", vec![self.node.clone()]))
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
        self.node.key().hash(&mut h);
        h.finish()
    }

    /// A field of a tuple. For a tuple expression, this is the field itself.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyAny>> {
        let (py, this) = (index.py(), slf.get());
        if let Some(parts) = written_out(slf)? {
            return Ok(parts.get_item(index)?);
        }
        let i: u32 = index
            .extract()
            .map_err(|_| Error::Type("the index of a tuple field is an int".into()))?;
        match sinfo_of(&this.node) {
            Some(SInfo::Tuple(fields)) if i as usize >= fields.len() => {
                return Err(Error::Index(format!("the tuple has {} fields", fields.len())));
            }
            Some(SInfo::Tensor(..) | SInfo::Prim(..)) => {
                return Err(Error::Type(crate::relax::lower::NO_TUPLE.into()));
            }
            _ => {}
        }
        wrap(py, NodeRef::new(Node::GetItem(this.node.clone(), i)))
    }

    fn __len__(slf: &Bound<'_, Self>) -> Result<usize> {
        if let Some(parts) = written_out(slf)? {
            return Ok(parts.len()?);
        }
        match sinfo_of(&slf.get().node) {
            Some(SInfo::Tuple(fields)) => Ok(fields.len()),
            _ => Err(Error::Type("the expression is no tuple of known length".into())),
        }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(parts) = written_out(slf)? {
            return Ok(parts.try_iter()?.into_any());
        }
        let fields: Result<Vec<_>> = (0..Self::__len__(slf)? as u32)
            .map(|i| wrap(py, NodeRef::new(Node::GetItem(this.node.clone(), i))))
            .collect();
        Ok(PyTuple::new(py, fields?)?.as_any().try_iter()?.into_any())
    }

    /// Functions, tuples and shapes are true, like other Python objects. The truth value of tensors
    /// and scalars is not known.
    fn __bool__(&self) -> Result<bool> {
        let elements = match self.node.get() {
            Node::Scalar(_) | Node::Prim(_) | Node::Constant(_) => true,
            Node::Var(_) | Node::InFunc(..) | Node::GetItem(..) | Node::Call(_) => {
                matches!(
                    sinfo_of(&self.node),
                    None | Some(SInfo::Object | SInfo::Tensor(..) | SInfo::Prim(..))
                )
            }
            _ => false,
        };
        if !elements {
            return Ok(true);
        }
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

    /// The type, or `None` if it is not known yet.
    #[getter]
    fn struct_info_<'py>(&self, py: Python<'py>) -> Result<Option<Bound<'py, PyAny>>> {
        sinfo_of(&self.node).map(|info| wrap_info(py, info)).transpose()
    }

    /// The type, under its name in later TVM versions.
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
            callee: CalleeNode::Op(Op::new("relax.astype")),
            args: vec![self.node.clone()],
            attrs,
            ty_args: Vec::new(),
        };
        checked(dtype.py(), NodeRef::new(Node::Call(call)))
    }
}

/// The base-class initialiser for every expression object.
pub(super) fn init(node: NodeRef) -> PyClassInitializer<Expr> {
    PyClassInitializer::from(Expr { node })
}

/// The node of an object of a subclass.
fn node_of<'a, T>(slf: &'a PyRef<'_, T>) -> &'a NodeRef
where
    T: pyo3::PyClass<BaseType = Expr>,
{
    &slf.as_super().node
}

/// A variable. It can be a parameter if it has a `struct_info`.
#[pyclass(extends = Expr, subclass, frozen, module = "pliant.relax")]
pub struct Var;

#[pymethods]
impl Var {
    #[new]
    #[pyo3(signature = (name_hint, struct_info=None, span=None))]
    fn new(
        name_hint: &str,
        struct_info: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
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

    /// The identity of the variable: the variable itself.
    #[getter]
    fn vid(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }
}

fn free_var(name: &str, info: Option<&Bound<'_, PyAny>>, dataflow: bool) -> Result<NodeRef> {
    let info = info.filter(|i| !i.is_none()).map(sinfo).transpose()?;
    Ok(NodeRef::new(Node::Var(FreeVar::new(name, info, dataflow))))
}

/// A variable that is local to its dataflow block.
#[pyclass(extends = Var, frozen, module = "pliant.relax")]
pub struct DataflowVar;

#[pymethods]
impl DataflowVar {
    #[new]
    #[pyo3(signature = (name_hint, struct_info=None, span=None))]
    fn new(
        name_hint: &str,
        struct_info: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(init(free_var(name_hint, struct_info, true)?)
            .add_subclass(Var)
            .add_subclass(DataflowVar))
    }
}

/// A reference to a function of the module by name.
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

/// A reference to a packed function by its registered name.
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
    #[pyo3(signature = (data, struct_info=None, span=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        struct_info: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = (struct_info, span);
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

/// A constant from a number, a list or an array.
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
        // NumPy has no bfloat16. A plain number is converted without NumPy.
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
    #[pyo3(signature = (fields, span=None))]
    fn new(
        fields: &Bound<'_, PyAny>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let fields: Result<Vec<NodeRef>> = fields.try_iter()?.map(|f| needed(&f?)).collect();
        Ok(init(NodeRef::new(Node::Tuple(fields?)).checked()?).add_subclass(Tuple))
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
    #[pyo3(signature = (tuple_value, index, span=None))]
    fn new(
        tuple_value: &Bound<'_, PyAny>,
        index: u32,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        Ok(init(NodeRef::new(Node::GetItem(needed(tuple_value)?, index)).checked()?)
            .add_subclass(TupleGetItem))
    }

    /// The tuple.
    #[getter]
    fn tuple_value<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(crate::relax::views::operands(slf.py(), node_of(&slf))?.get_item(0)?)
    }

    /// The index of the field.
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
    #[pyo3(signature = (op, args, attrs=None, sinfo_args=None, span=None))]
    fn new(
        op: &Bound<'_, PyAny>,
        args: &Bound<'_, PyAny>,
        attrs: Option<&Bound<'_, pyo3::types::PyDict>>,
        sinfo_args: Option<&Bound<'_, PyAny>>,
        span: Option<&Bound<'_, PyAny>>,
    ) -> Result<PyClassInitializer<Self>> {
        let _ = span;
        let callee = callee_of(op)?;
        let mut list = pliant_ir::Attrs::default();
        for (k, v) in attrs.into_iter().flatten() {
            list.set(&k.extract::<String>()?, attr_value(&v)?);
        }
        let ty_args = sinfo_args.map(sinfo_list).transpose()?.unwrap_or_default();
        let call = CallNode { callee, args: arg_list(args)?, attrs: list, ty_args };
        Ok(init(NodeRef::new(Node::Call(call)).checked()?).add_subclass(Call))
    }

    /// The same call with another callee and other operands.
    #[pyo3(signature = (op, args, sinfo_args=None))]
    fn _rebuilt<'py>(
        slf: PyRef<'py, Self>,
        op: &Bound<'py, PyAny>,
        args: Vec<Bound<'py, PyAny>>,
        sinfo_args: Option<&Bound<'py, PyAny>>,
    ) -> Result<Bound<'py, PyAny>> {
        let args: Result<Vec<NodeRef>> = args.iter().map(needed).collect();
        let node = node_of(&slf);
        let mut attrs = pliant_ir::Attrs::default();
        crate::relax::views::with_attrs(node, |list| {
            attrs = list.clone();
            Ok(())
        })?;
        let ty_args = match sinfo_args {
            Some(list) => sinfo_list(list)?,
            None => crate::relax::views::ty_args(node),
        };
        let call = CallNode { callee: callee_of(op)?, args: args?, attrs, ty_args };
        wrap(slf.py(), NodeRef::new(Node::Call(call)))
    }

    /// The callee.
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
        let mut own = pliant_ir::Attrs::default();
        crate::relax::views::with_attrs(node_of(&slf), |attrs| {
            own = attrs.clone();
            Ok(())
        })?;
        crate::relax::views::attrs_dict(slf.py(), own.0.iter().map(|(k, v)| (k, v)))
    }

    /// The explicit types of the results.
    #[getter]
    fn sinfo_args<'py>(slf: PyRef<'py, Self>) -> Result<Bound<'py, PyTuple>> {
        info_tuple(slf.py(), &crate::relax::views::ty_args(node_of(&slf)))
    }
}

fn callee_of(op: &Bound<'_, PyAny>) -> Result<CalleeNode> {
    Ok(match op.cast::<crate::relax::op::OpFunction>() {
        Ok(op) => CalleeNode::Op(op.get().op),
        Err(_) => CalleeNode::Expr(needed(op)?),
    })
}

/// The callee, given as a global function, a packed function, or the name of a packed function.
///
/// # Errors
/// `TypeError` for any other object.
pub fn callee_name(obj: &Bound<'_, PyAny>) -> Result<NodeRef> {
    if let Ok(s) = obj.cast::<PyString>() {
        return Ok(NodeRef::new(Node::Extern(s.to_string().into())));
    }
    needed(obj)
}
