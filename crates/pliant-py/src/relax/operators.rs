//! Operators as Python functions, and calls with special syntax (`call_tir`, ...).

use pliant_ir::op::{
    CALL_DPS_PACKED, CALL_KERNEL, CALL_PURE_PACKED, CALL_TIR, OperandKind, OperandSpec,
};
use pliant_ir::relax::kernel_call::{find_kernel, kernel_attrs};
use pliant_ir::{AttrValue, Attrs, Op, OpRegistry, OpSignature};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::error::{Error, Result};
use crate::relax::classes::{callee_name, wrap};
use crate::relax::detached_expr::{CallNode, CalleeNode, Node, NodeRef};
use crate::relax::function_owner::op_signature;
use crate::relax::operator_call_check::check_call;
use crate::relax::struct_info::SInfo;
use crate::relax::value_conversion::{
    arg_list, attr_object, attr_value, is_symbolic, operand, required_operand, sinfo_list,
};
use crate::runtime::array_import::parse_dtype;

// An operator, which maps expressions to a call. A doc comment here would precede each operator's `__doc__`.
#[pyclass(frozen, module = "pliant.relax.op")]
pub struct OpFunction {
    /// The operator that this object represents in Python.
    pub op: Op,
    sig: &'static OpSignature,
}

#[pymethods]
impl OpFunction {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let call = self.bind(args, kwargs)?;
        check_call(&call)?;
        wrap(args.py(), NodeRef::new(Node::Call(call)))
    }

    /// Returns the full name of the operator.
    #[getter]
    fn name(&self) -> &'static str {
        self.op.name()
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.op.name().rsplit('.').next().unwrap_or(self.op.name())
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.op.short_name()
    }

    #[getter]
    fn __doc__(&self) -> String {
        let decl = pliant_ops::registry().decl(self.op);
        let user_defined = || "A user-defined operator.".to_string();
        let mut doc = decl.map_or_else(user_defined, pliant_ops::OpDecl::description);
        if let Some(numpy) = decl.and_then(|d| d.numpy) {
            doc.push_str(&format!("\n\nCorresponds to ``numpy.{numpy}``."));
        }
        if let Some(decl) = decl.filter(|d| !d.onnx.is_empty()) {
            doc.push_str(&format!("\n\nImplements ONNX {}.", decl.onnx.join(", ")));
        }
        doc
    }

    /// Returns the operands, then the attributes, as `(name, kind, default)`. The kinds are
    /// `"operand"`, `"optional"`, `"variadic"`, `"attr"` and `"required"`.
    #[getter]
    fn parameters<'py>(
        &self,
        py: Python<'py>,
    ) -> Result<Vec<(&'static str, &'static str, Bound<'py, PyAny>)>> {
        let none = || py.None().into_bound(py);
        let mut list = Vec::new();
        for o in &self.sig.operands {
            let kind = match o {
                OperandSpec { variadic: true, .. } => "variadic",
                OperandSpec { optional: true, .. } => "optional",
                _ => "operand",
            };
            list.push((o.name, kind, none()));
        }
        for (name, default) in &self.sig.attrs {
            match default {
                Some(value) => list.push((*name, "attr", attr_object(py, value)?)),
                None => list.push((*name, "required", none())),
            }
        }
        Ok(list)
    }

    #[getter]
    fn __signature__<'py>(slf: &Bound<'py, Self>) -> Result<Bound<'py, PyAny>> {
        Ok(crate::error::import(slf.py(), "pliant.relax._signature", "of")?.call1((slf,))?)
    }

    fn __repr__(&self) -> String {
        format!("Op({})", self.op.name())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<OpFunction>().is_ok_and(|o| o.get().op == self.op)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut h = rustc_hash::FxHasher::default();
        self.op.name().hash(&mut h);
        h.finish()
    }

    /// Whether both objects represent the same operator.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        self.__eq__(other)
    }

    /// Returns the full names of all operators, sorted.
    #[staticmethod]
    fn list_op_names() -> Vec<&'static str> {
        let mut names = pliant_ir::OpRegistry::names(pliant_ops::registry());
        names.sort_unstable();
        names
    }

    /// Returns the operator with this full name.
    #[staticmethod]
    fn get(op_name: &str) -> Result<OpFunction> {
        get_op(op_name)
    }
}

impl OpFunction {
    /// Binds the arguments of a call to the operands and attributes of the signature.
    ///
    /// # Errors
    /// If an argument does not match the signature, is missing, or is not a valid operand or attribute.
    pub(crate) fn bind(
        &self,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> Result<CallNode> {
        let OpSignature { operands, attrs, .. } = self.sig;
        let mut operand_args: Vec<Option<NodeRef>> = Vec::with_capacity(operands.len());
        let mut list = Attrs::default();
        let mut positional = args.iter();
        let mut specs = operands.iter();
        let mut variadic = false;
        for spec in specs.by_ref() {
            if spec.variadic {
                variadic = true;
                for arg in positional.by_ref() {
                    operand_args.push(Some(required_operand(&arg)?));
                }
                break;
            }
            match positional.next() {
                Some(arg) => operand_args.push(self.operand(spec, &arg)?),
                None => operand_args.push(None),
            }
        }
        let num_positional = args.len().min(operands.len());
        let mut symbolic_operand = None;
        for (i, arg) in positional.enumerate() {
            let Some((name, _)) = attrs.get(i) else {
                return Err(self.too_many_arguments(args.len()));
            };
            self.set_attr(name, &arg, &mut list, &mut symbolic_operand)?;
        }
        let mut ty_args = Vec::new();
        for (key, value) in kwargs.into_iter().flatten() {
            let key: String = key.extract()?;
            if let Some(i) = operands.iter().position(|o| o.name == key) {
                if i < num_positional && !operands[i].variadic {
                    return Err(self.error(&format!("operand '{key}' is passed several times")));
                }
                if operands[i].variadic {
                    operand_args.extend(arg_list(&value)?.into_iter().map(Some));
                } else {
                    operand_args[i] = self.operand(&operands[i], &value)?;
                }
            } else if let Some((name, _)) = attrs.iter().find(|(n, _)| *n == key) {
                if list.get(name).is_some() {
                    return Err(self.error(&format!("attribute '{key}' is passed several times")));
                }
                self.set_attr(name, &value, &mut list, &mut symbolic_operand)?;
            } else if matches!(&*key, "sinfo_args" | "ty_args" | "out_sinfo" | "out_ty") {
                ty_args = sinfo_list(&value)?;
            } else {
                return Err(self.error(&format!(
                    "the operator has no parameter '{key}'; its signature is {}",
                    self.signature_text()
                )));
            }
        }
        let mut args = self.operand_list(operand_args, variadic)?;
        args.extend(symbolic_operand);
        let attrs = self.complete_attrs(list)?;
        Ok(CallNode { callee: CalleeNode::Op(self.op), args, attrs, ty_args })
    }

    /// Sets an attribute of a call. If the value contains symbols and the operator accepts symbols for this attribute, the value
    /// becomes an operand instead.
    fn set_attr(
        &self,
        name: &str,
        value: &Bound<'_, PyAny>,
        list: &mut Attrs,
        symbolic_operand: &mut Option<NodeRef>,
    ) -> Result<()> {
        let operator = self.op.short_name();
        let operand_prefix = || format!("{operator}: attribute '{name}': ");
        let symbolic = is_symbolic(value)?;
        if symbolic && self.sig.symbolic == Some(name) {
            *symbolic_operand =
                Some(required_operand(value).map_err(|e| e.with_prefix(&operand_prefix()))?);
            list.set(name, AttrValue::None);
            return Ok(());
        }
        if symbolic {
            let what = "the value must be known at compile time, but contains symbolic sizes";
            return Err(Error::Type(format!("{}{what}", operand_prefix())));
        }
        let is_graph_value = value.is_instance_of::<crate::relax::classes::Expr>();
        let converted = attr_value(value).map_err(|e| match is_graph_value {
            true => Error::Type(format!(
                "{prefix}the value must be known at compile time, but is an expression of the graph; the signature of {operator} \
                 is {signature}",
                prefix = operand_prefix(),
                signature = self.signature_text()
            )),
            false => e.with_prefix(&operand_prefix()),
        });
        list.set(name, converted?);
        Ok(())
    }

    fn operand(&self, spec: &OperandSpec, obj: &Bound<'_, PyAny>) -> Result<Option<NodeRef>> {
        // The data type of a created tensor may be given by name.
        if spec.name == "dtype" && obj.is_instance_of::<PyString>() {
            let dtype = parse_dtype(obj).map_err(|e| e.with_prefix(&self.operand_prefix(spec)))?;
            return Ok(Some(NodeRef::new(Node::DType(dtype))));
        }
        let mut node = operand(obj).map_err(|e| match e {
            Error::Type(m) => self.error(&format!("operand '{}': {m}", spec.name)),
            other => other.with_prefix(&self.operand_prefix(spec)),
        })?;
        // An empty list is a shape only if the operand takes sizes. Otherwise it is an empty tuple.
        if spec.kind != OperandKind::Sizes
            && matches!(node.as_ref().map(NodeRef::get), Some(Node::Shape(dims)) if dims.is_empty())
            && !obj.is_instance_of::<crate::relax::classes::Expr>()
        {
            node = Some(NodeRef::new(Node::Tuple(Vec::new())));
        }
        if node.is_none() && !spec.optional {
            return Err(self.error(&format!("operand '{}' must not be None", spec.name)));
        }
        Ok(node)
    }

    fn operand_prefix(&self, spec: &OperandSpec) -> String {
        let (operator, operand) = (self.op.short_name(), spec.name);
        format!("{operator}: operand '{operand}': ")
    }

    /// Builds the operand list of a call: fills gaps among optional operands and removes absent
    /// operands at the end.
    fn operand_list(
        &self,
        mut operand_args: Vec<Option<NodeRef>>,
        variadic: bool,
    ) -> Result<Vec<NodeRef>> {
        if !variadic {
            while operand_args.len() > 1 && operand_args.last().is_some_and(Option::is_none) {
                let last = &self.sig.operands[operand_args.len() - 1];
                if !last.optional {
                    break;
                }
                operand_args.pop();
            }
        }
        let missing = |i: usize| self.sig.operands.get(i).filter(|o| !o.optional);
        let mut args = Vec::with_capacity(operand_args.len());
        for (i, node) in operand_args.into_iter().enumerate() {
            match (node, missing(i)) {
                (Some(node), _) => args.push(node),
                (None, Some(spec)) => {
                    return Err(self.error(&format!(
                        "operand '{}' is missing; the signature of the operator is {}",
                        spec.name,
                        self.signature_text()
                    )));
                }
                (None, None) if i == 0 && self.sig.operands.len() == 1 => {}
                (None, None) => {
                    args.push(crate::relax::classes::call_op("relax.null_value", Vec::new()))
                }
            }
        }
        Ok(args)
    }

    /// Adds the default values of attributes that a call omits, and puts all attributes in the order of the declaration. It is an
    /// error to omit a required attribute.
    fn complete_attrs(&self, attrs: Attrs) -> Result<Attrs> {
        let mut list = Attrs::default();
        for (name, default) in &self.sig.attrs {
            match attrs.get(name) {
                Some(value) if default.as_ref() == Some(value) => {}
                Some(value) => list.set(name, dtype_attr(name, value)),
                None if default.is_none() => {
                    return Err(self.error(&format!(
                        "attribute '{name}' is missing; the signature of the operator is {}",
                        self.signature_text()
                    )));
                }
                None => {}
            }
        }
        Ok(list)
    }

    fn signature_text(&self) -> String {
        let operands = self.sig.operands.iter().map(|o| match o {
            OperandSpec { variadic: true, .. } => format!("*{}", o.name),
            OperandSpec { optional: true, .. } => format!("{}=None", o.name),
            _ => o.name.to_string(),
        });
        let attrs = self
            .sig
            .attrs
            .iter()
            .map(|(n, d)| if d.is_some() { format!("{n}=...") } else { n.to_string() });
        let parts: Vec<String> = operands.chain(attrs).collect();
        format!("{}({})", self.op.short_name(), parts.join(", "))
    }

    fn error(&self, what: &str) -> Error {
        let operator = self.op.short_name();
        Error::Type(format!("{operator}: {what}"))
    }

    fn too_many_arguments(&self, n: usize) -> Error {
        self.error(&format!(
            "{n} positional arguments are too many; the signature is {}",
            self.signature_text()
        ))
    }
}

/// If an attribute value is the name of a data type, replaces it by the data type.
fn dtype_attr(name: &str, value: &AttrValue) -> AttrValue {
    match value {
        AttrValue::Str(s) if name.ends_with("dtype") => match s.parse() {
            Ok(dtype) => AttrValue::DType(dtype),
            Err(_) => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Returns the operator with this full name.
#[pyfunction]
pub fn get_op(name: &str) -> Result<OpFunction> {
    let registry = pliant_ops::registry();
    let full = if name.starts_with("relax.") { name.to_string() } else { format!("relax.{name}") };
    match registry.lookup(&full) {
        Some(op) => Ok(OpFunction { op, sig: op_signature(op)? }),
        None => Err(Error::Value(format!(
            "there is no operator '{name}' (help: write the full name, such as 'relax.add')"
        ))),
    }
}

/// How the gradient of an operator is defined: `"rule"`, `"te"` (derived from the tensor expression) or `"zero"`. `None` if the
/// operator has no gradient or does not exist.
#[pyfunction]
pub fn op_gradient(name: &str) -> Option<&'static str> {
    use pliant_ops::Gradient;
    let full = if name.starts_with("relax.") { name.to_string() } else { format!("relax.{name}") };
    match pliant_ops::gradient::gradient_of(pliant_ops::registry().lookup(&full)?) {
        Gradient::None => None,
        Gradient::Zero => Some("zero"),
        Gradient::Rule(_) => Some("rule"),
        Gradient::FromTe => Some("te"),
    }
}

/// Returns the full names of all operators, including user-defined operators and aliases.
#[pyfunction]
pub fn op_names() -> Vec<String> {
    let registry = pliant_ops::registry();
    let mut names: Vec<String> = Vec::new();
    for decl in registry.decls() {
        names.push(decl.name.to_string());
        names.extend(decl.aliases.iter().map(|a| (*a).to_string()));
    }
    names.extend(registry.user_ops().into_iter().map(String::from));
    names
}

fn call_node(op: Op, args: Vec<NodeRef>, ty_args: Vec<SInfo>) -> NodeRef {
    let callee = CalleeNode::Op(op);
    NodeRef::new(Node::Call(CallNode { callee, args, attrs: Attrs::default(), ty_args }))
}

/// Creates a destination-passing call of a loop function, or of a packed function if `packed` is set.
#[pyfunction]
#[pyo3(signature = (packed, func, args, out_sinfo, tir_vars=None))]
pub fn call_dps<'py>(
    packed: bool,
    func: &Bound<'py, PyAny>,
    args: &Bound<'py, PyAny>,
    out_sinfo: &Bound<'py, PyAny>,
    tir_vars: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let callee = callee_name(func)?;
    let mut list = vec![callee, NodeRef::new(Node::Tuple(arg_list(args)?))];
    if let Some(vars) = tir_vars.filter(|v| !v.is_none()) {
        list.push(required_operand(vars)?);
    }
    let mut outs = sinfo_list(out_sinfo)?;
    if outs.is_empty() {
        let name = if packed { "call_dps_packed" } else { "call_tir" };
        return Err(Error::Type(format!(
            "{name}: out_sinfo must contain the type of at least one result"
        )));
    }
    if outs.len() > 1 {
        outs = vec![SInfo::Tuple(outs.into_iter().collect())];
    }
    let op = if packed { CALL_DPS_PACKED } else { CALL_TIR };
    wrap(func.py(), call_node(op, list, outs))
}

/// Creates a call of a library kernel. `arguments` contains its operands and attributes by name.
#[pyfunction]
#[pyo3(signature = (kernel, arguments, axes, out_sinfo))]
pub fn call_kernel<'py>(
    kernel: &str,
    arguments: &Bound<'py, PyDict>,
    axes: Option<&Bound<'py, PyDict>>,
    out_sinfo: &Bound<'py, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let declared = find_kernel(kernel)
        .map_err(|(message, help)| Error::Value(format!("call_kernel: {message}; {help}")))?;
    let (mut args, mut operands, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in arguments.iter().filter(|(_, value)| !value.is_none()) {
        let name: String = name.extract()?;
        let what = || format!("call_kernel: argument '{name}': ");
        if declared.operand(&name).is_some() {
            args.push(required_operand(&value).map_err(|e| e.with_prefix(&what()))?);
            operands.push(AttrValue::str(&name));
        } else {
            let value = attr_value(&value).map_err(|e| e.with_prefix(&what()))?;
            attributes.push((name.into(), value));
        }
    }
    let mut axes_attrs = Vec::new();
    for (name, list) in axes.into_iter().flatten() {
        let list =
            attr_value(&list).map_err(|e| e.with_prefix("call_kernel: argument 'axes': "))?;
        axes_attrs.push((name.extract::<String>()?.into(), list));
    }
    let mut outs = sinfo_list(out_sinfo)?;
    if outs.len() > 1 {
        outs = vec![SInfo::Tuple(outs.into_iter().collect())];
    }
    let attrs = kernel_attrs(declared, operands, axes_attrs, attributes);
    let call = CallNode { callee: CalleeNode::Op(CALL_KERNEL), args, attrs, ty_args: outs };
    check_call(&call)?;
    wrap(out_sinfo.py(), NodeRef::new(Node::Call(call)))
}

/// Creates a call of a packed function. With `pure`, the caller promises that the function has no
/// side effects.
#[pyfunction]
#[pyo3(signature = (pure, func, *args, sinfo_args=None))]
pub fn call_packed<'py>(
    pure: bool,
    func: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    sinfo_args: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let callee = callee_name(func)?;
    let ty_args = sinfo_args.map(sinfo_list).transpose()?.unwrap_or_default();
    let list: Result<Vec<NodeRef>> = args.iter().map(|a| required_operand(&a)).collect();
    let mut list = list?;
    if pure {
        list.insert(0, callee);
        return wrap(func.py(), call_node(CALL_PURE_PACKED, list, ty_args));
    }
    let call =
        CallNode { callee: CalleeNode::Expr(callee), args: list, attrs: Attrs::default(), ty_args };
    wrap(func.py(), NodeRef::new(Node::Call(call)))
}
