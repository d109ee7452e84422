//! Converts graph inputs to parameters, and initializers to constants or parameters.

use indexmap::{IndexMap, IndexSet};
use pliant_ir::DType;
use pliant_ir::relax::{Type, TypeData};
use pliant_sym::Sym;
use pliant_tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{DimSpec, ImportOptions, Importer, identifier};
use crate::dim_symbols::has_name;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors;
use crate::node::Node;
use crate::proto::tensor_shape_proto::dimension;
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{
    GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};
use crate::sequence_optional_types::ObjectType;
use crate::shape_constraint_report::{DeclaredBy, DynamicDim};
use crate::subbyte_types::narrow_type;
use pliant_kernel_api::host_function_names;

/// The texts of all input dims: first the texts in the file that the user does not override, then the texts of the user.
fn dim_texts<'t>(
    inputs: &[&'t ValueInfoProto],
    options: &'t ImportOptions,
) -> (Vec<&'t str>, Vec<&'t str>) {
    let (mut file, mut user) = (Vec::new(), Vec::new());
    for input in inputs {
        if options.shapes.contains_key(input.name()) {
            continue;
        }
        let dynamic = options.dynamic.get(input.name());
        let declared = input.r#type.as_ref().and_then(|t| t.value.as_ref());
        let Some(TypeValue::TensorType(tensor)) = declared else { continue };
        for (axis, dim) in tensor.shape.iter().flat_map(|s| &s.dim).enumerate() {
            match (dynamic.and_then(|d| d.get(&axis)), &dim.value) {
                (Some(DynamicDim { name: Some(text), .. }), _) => user.push(text.as_str()),
                (_, Some(dimension::Value::DimParam(text))) if has_name(text) => {
                    file.push(text.trim());
                }
                _ => {}
            }
        }
    }
    (file, user)
}

impl<'m> Importer<'m> {
    /// Creates the parameters of `main` for the graph inputs. Returns the inputs that become parameters, and the names of the
    /// inputs that become constants. An input with an initializer becomes a constant unless the user declares its shape, dtype or
    /// dims.
    pub(super) fn create_params(
        &mut self,
        graph: &'m GraphProto,
        options: &ImportOptions,
    ) -> (Vec<&'m ValueInfoProto>, Vec<String>) {
        let initial: FxHashSet<&str> = graph.initializer.iter().map(TensorProto::name).collect();
        let is_constant = |info: &&ValueInfoProto| {
            initial.contains(info.name()) && !has_user_declaration(info.name(), options)
        };
        let (defaults, inputs): (Vec<_>, Vec<_>) = graph.input.iter().partition(is_constant);
        let known = inputs.iter().map(|i| i.name()).collect::<Vec<&str>>().join(", ");
        let named =
            options.shapes.keys().chain(options.dtypes.keys()).chain(options.dynamic.keys());
        for name in named.collect::<IndexSet<_>>() {
            if !inputs.iter().any(|i| i.name() == name) {
                let option = match (options.shapes.get(name), options.dtypes.get(name)) {
                    (Some(_), _) => "shape_dict",
                    (None, Some(_)) => "dtype_dict",
                    (None, None) => "dynamic_shapes",
                };
                let problem = Problem::invalid(format!(
                    "the import option {option} names the input '{name}', but the model has no input '{name}'"
                ));
                self.problems
                    .push(problem.with_help(format!("the inputs of the model are {known}")));
            }
        }
        // An equation in one dim may define a symbol that another dim uses.
        let (file, user) = dim_texts(&inputs, options);
        self.symbols.analyze_dims(&file, &user);
        self.spans.current = self.spans.input_span();
        self.builder.set_span(self.spans.current);
        for input in &inputs {
            self.origin = self.origins.add_named(input.name());
            self.create_param(input, options);
        }
        (inputs, defaults.into_iter().map(|i| i.name().to_owned()).collect())
    }

    /// Creates the parameter for a graph input and defines the name of the input.
    fn create_param(&mut self, info: &ValueInfoProto, options: &ImportOptions) {
        if let Some(ty) = info.r#type.as_ref()
            && !matches!(ty.value, Some(TypeValue::TensorType(_)) | None)
        {
            let value = self.object_param(info.name(), ty, options).unwrap_or_else(|problem| {
                self.problems.push(problem);
                Value::Failed
            });
            return self.define(info.name(), value);
        }
        let override_dims = options.shapes.get(info.name());
        let dynamic = options.dynamic.get(info.name());
        let ty = self.param_type(info, override_dims.map(Vec::as_slice), dynamic);
        if let Ok(ty) = ty {
            self.track_input_symbols(info, ty, dynamic, options);
        }
        let value =
            ty.and_then(|ty| self.tensor_param(info.name(), ty, options.dtypes.get(info.name())));
        let value = match (value, element_type(info).and_then(|code| narrow_type(i64::from(code))))
        {
            (Ok(value), Some(ty)) => Value::Narrow(ty, Box::new(value)),
            (Ok(value), None) => value,
            (Err(problem), _) => {
                self.problems.push(problem);
                Value::Failed
            }
        };
        self.origins.record_properties(self.origin, self.builder.func(), &value);
        self.define(info.name(), value);
    }

    /// Creates the parameter for an input that is a sequence or an optional.
    fn object_param(
        &mut self,
        name: &str,
        ty: &TypeProto,
        options: &ImportOptions,
    ) -> Result<Value, Problem> {
        let subject = format!("input '{name}'");
        let object_type = ObjectType::declared(&subject, ty, &mut self.builder.func_mut().syms)?;
        if has_user_declaration(name, options) {
            let message = format!("input '{name}' is {}, which has no dims", object_type.name());
            return Err(Problem::invalid(message));
        }
        let any = self.builder.func_mut().intern(TypeData::Any);
        let var = self.builder.param(&identifier(name, "x"), any);
        let params = self.builder.func_mut().var_expr(var);
        let identity = NodeProto { output: vec![name.into()], ..NodeProto::default() };
        let mut node = Node::new(self, &identity, 1, Vec::new());
        let text = object_type.text(&node.func().syms);
        let (name, text) = (node.func().str_value(name), node.func().str_value(&text));
        Ok(Value::Object(
            node.call_host(host_function_names::INPUT, &[params, name, text])?,
            object_type,
        ))
    }

    /// Creates the parameter for a tensor input. If the user overrides its dtype, the argument is cast to the dtype in the file.
    fn tensor_param(
        &mut self,
        name: &str,
        ty: Type,
        dtype: Option<&DType>,
    ) -> Result<Value, Problem> {
        let func = self.builder.func_mut();
        let (mut data, mut declared) = (func.types.get(ty).clone(), None);
        if let (TypeData::Tensor { dtype: element_type_slot, .. }, Some(dtype_override)) =
            (&mut data, dtype)
        {
            declared = element_type_slot.replace(*dtype_override).filter(|d| d != dtype_override);
        }
        let ty = func.intern(data);
        let var = self.builder.param(&identifier(name, "x"), ty);
        let params = self.builder.func_mut().var_expr(var);
        let Some(declared) = declared else { return Ok(Value::Expr(params)) };
        let identity = NodeProto { output: vec![name.into()], ..NodeProto::default() };
        let converted = Node::new(self, &identity, 1, Vec::new()).cast(params, declared)?;
        Ok(Value::Expr(converted))
    }

    /// The type of the parameter for a tensor input.
    fn param_type(
        &mut self,
        info: &ValueInfoProto,
        override_dims: Option<&[DimSpec]>,
        dynamic: Option<&IndexMap<usize, DynamicDim>>,
    ) -> Result<Type, Problem> {
        let name = info.name();
        let value = info.r#type.as_ref().and_then(|t| t.value.as_ref());
        let Some(TypeValue::TensorType(tensor)) = value else {
            let problem = Problem::invalid(format!("input '{name}' has no declared type"));
            return Err(problem.with_help(
                "declare the type of the input in the model, with onnx.helper.make_tensor_value_info",
            ));
        };
        let dtype =
            initializer_tensors::checked_dtype(tensor.elem_type().into()).map_err(|p| Problem {
                message: format!(
                    "input '{name}' has an element type that cannot be passed: {}",
                    p.message
                ),
                ..p
            })?;
        let rank = tensor.shape.as_ref().map_or(0, |s| s.dim.len());
        initializer_tensors::check_rank(&format!("input '{name}'"), rank, &self.limits)
            .map_err(Problem::invalid)?;
        let mut data = self.input_dims(name, tensor, override_dims, dtype)?;
        if let Some(dynamic) = dynamic {
            let Some(dims) = data.dims().map(<[Sym]>::to_vec) else {
                return Err(Problem::invalid(format!(
                    "the model file does not declare the rank of input '{name}', so dynamic_shapes cannot declare its dims"
                ))
                .with_help("declare all dims of the input in the importer's argument shape_dict"));
            };
            data = TypeData::tensor(self.apply_dynamic_dims(name, dims, dynamic)?, dtype);
        }
        Ok(self.builder.func_mut().intern(data))
    }

    /// The dims of an input. The user's `shapes` option overrides the dims in the file.
    fn input_dims(
        &mut self,
        name: &str,
        tensor: &TensorType,
        override_dims: Option<&[DimSpec]>,
        dtype: DType,
    ) -> Result<TypeData, Problem> {
        let func = self.builder.func_mut();
        Ok(match (override_dims, &tensor.shape) {
            (Some(dims), declared) => {
                let rank = declared.as_ref().map(|s| s.dim.len());
                if rank.is_some_and(|r| r != dims.len()) {
                    let (rank, count) = (rank.unwrap_or(0), dims.len());
                    let text = format!(
                        "input '{name}' has {rank} dims in the model file, but {count} in shape_dict"
                    );
                    return Err(Problem::invalid(text));
                }
                let dims: Vec<Sym> = dims
                    .iter()
                    .enumerate()
                    .map(|(axis, d)| match d {
                        DimSpec::Size(v) => func.syms.int(*v),
                        DimSpec::Name(name) => self.symbols.symbol(func, name),
                        DimSpec::Any => self.symbols.unnamed_symbol(func, name, axis),
                    })
                    .collect();
                TypeData::tensor(dims, dtype)
            }
            (None, Some(shape)) => {
                let dims = self.symbols.shape_dims(func, shape, name);
                self.tolerate_negative_dims(name, shape);
                TypeData::tensor(dims, dtype)
            }
            (None, None) => TypeData::tensor_unknown(dtype),
        })
    }

    /// Records each negative dim in the declared shape of an input. Exporters write -1 for an unknown size.
    fn tolerate_negative_dims(&mut self, name: &str, shape: &TensorShapeProto) {
        for (axis, dim) in shape.dim.iter().enumerate() {
            if let Some(dimension::Value::DimValue(size)) = dim.value
                && size < 0
            {
                let text =
                    format!("input '{name}' declares the negative size {size} for dim {axis}");
                let help = "declare a name (dim_param) for a dim of unknown size";
                self.tolerate(Problem::invalid(text).with_help(help));
            }
        }
    }

    /// Replaces dims of an input by the dims that the user declares for single axes in the option `dynamic`.
    fn apply_dynamic_dims(
        &mut self,
        name: &str,
        mut dims: Vec<Sym>,
        dynamic: &IndexMap<usize, DynamicDim>,
    ) -> Result<Vec<Sym>, Problem> {
        let func = self.builder.func_mut();
        for (&axis, dim) in dynamic {
            let rank = dims.len();
            let dim_slot = dims.get_mut(axis).ok_or_else(|| {
                Problem::invalid(format!(
                    "dynamic_shapes declares dim {axis} of input '{name}', but the input has only {rank} dims"
                ))
            })?;
            self.symbols
                .check_range(dim)
                .map_err(|why| Problem::invalid(format!("dim {axis} of input '{name}': {why}")))?;
            match &dim.name {
                Some(text) if self.symbols.is_undefined(text) => {
                    let message = format!(
                        "input '{name}' has the dim '{text}' at axis {axis}, but no input dim defines its symbols"
                    );
                    let help = "declare an input dim for each symbol, or use a plain name";
                    return Err(Problem::invalid(message).with_help(help));
                }
                Some(text) => *dim_slot = self.symbols.parse_dim(func, text),
                None if func.syms.as_int(*dim_slot).is_some() => {
                    *dim_slot = self.symbols.unnamed_symbol(func, name, axis);
                }
                None => {}
            }
        }
        Ok(dims)
    }

    /// Emits a run-time check that a dim is in the range that the user declared.
    pub(super) fn check_range(&mut self, dim: Sym, range: &DynamicDim) -> Result<(), Problem> {
        let name = self.symbols.display_text(range.name.as_deref().unwrap_or("a dim"));
        let check = NodeProto { output: vec!["range".into()], ..NodeProto::default() };
        let mut node = Node::new(self, &check, 1, Vec::new());
        let size = node.size_scalar(dim)?;
        let operands = [
            (range.min.filter(|&m| m > 0), "relax.greater_equal", "at least"),
            (range.max, "relax.less_equal", "at most"),
        ];
        for (bound, op, word) in operands {
            let Some(bound) = bound else { continue };
            let limit = node.scalar(bound)?;
            let holds = node.op(op, &[size, limit])?;
            let text = format!("{name} must be {word} {bound}, as declared");
            node.require(holds, &text, &[])?;
        }
        Ok(())
    }

    /// Starts to track the symbols in the dims of an input, in order to find constraints that nodes impose on them.
    fn track_input_symbols(
        &mut self,
        info: &ValueInfoProto,
        ty: Type,
        dynamic: Option<&IndexMap<usize, DynamicDim>>,
        options: &ImportOptions,
    ) {
        let name = info.name();
        let func = self.builder.func();
        let Some(dims) = func.types.get(ty).dims().map(<[Sym]>::to_vec) else { return };
        let declared_dims = match (options.shapes.contains_key(name), declared_shape(info)) {
            (false, Some(shape)) => shape.dim.as_slice(),
            _ => &[],
        };
        for (axis, dim) in dims.into_iter().enumerate() {
            let dynamic_dim = dynamic.and_then(|d| d.get(&axis));
            let override_dim = options.shapes.get(name).and_then(|dims| dims.get(axis));
            let named = match (declared_dims.get(axis).map(|d| &d.value), override_dim) {
                (Some(Some(dimension::Value::DimParam(text))), _) if has_name(text) => {
                    DeclaredBy::File
                }
                (_, Some(DimSpec::Name(_))) => DeclaredBy::User,
                _ => DeclaredBy::Nobody,
            };
            self.symbol_constraints.track_input(
                func,
                (name, axis),
                dim,
                (dynamic_dim, named),
                &self.symbols,
            );
        }
    }

    /// Converts the initializers to constants, or to parameters if `keep` is set. Initializers of inputs that are parameters are
    /// skipped.
    pub(super) fn convert_initializers(
        &mut self,
        graph: &'m GraphProto,
        params: &[&ValueInfoProto],
        keep: bool,
    ) {
        let params: FxHashSet<&str> = params.iter().map(|i| i.name()).collect();
        let declared: FxHashMap<&str, &ValueInfoProto> =
            graph.input.iter().map(|i| (i.name(), i)).collect();
        let mut failures = IndexMap::<(String, Option<String>), (Problem, Vec<&str>)>::new();
        for proto in graph.initializer.iter().filter(|t| !params.contains(t.name())) {
            self.origin = self.origins.add_named(proto.name());
            let value =
                match initializer_tensors::read_tensor(proto, &mut self.external, &self.limits) {
                    Ok(tensor) if keep => self.initializer_param(proto.name(), tensor),
                    Ok(tensor) => constant_value(proto, tensor),
                    Err(p) => {
                        let of = failures.entry((p.message.clone(), p.help.clone()));
                        of.or_insert((p, Vec::new())).1.push(proto.name());
                        Value::Failed
                    }
                };
            let declared_dims = declared.get(proto.name()).and_then(|info| tensor_type(info));
            if let Some(contradiction) = declared_dims.and_then(|declared_dims| {
                let subject = format!("input '{}'", proto.name());
                self.element_type_contradiction(&subject, &value, declared_dims)
                    .or_else(|| self.shape_contradiction(&subject, &value, declared_dims))
            }) {
                let message = format!("{contradiction} in its initializer");
                self.problems.push(Problem::invalid(message));
            }
            self.origins.record_properties(self.origin, self.builder.func(), &value);
            self.define(proto.name(), value);
        }
        self.problems.extend(
            failures.into_values().map(|(problem, names)| combine_problems(problem, &names)),
        );
        for sparse in &graph.sparse_initializer {
            let name = sparse.values.as_ref().map_or("", |v| v.name());
            let message =
                format!("initializer '{name}' is a sparse tensor, which is not supported");
            self.problems.push(
                Problem::unsupported(message).with_help("store the initializer as a dense tensor"),
            );
            self.define(name, Value::Failed);
        }
    }

    /// Creates the parameter for an initializer.
    fn initializer_param(&mut self, name: &str, tensor: Tensor) -> Value {
        let func = self.builder.func_mut();
        let dims: Vec<Sym> = tensor.shape().iter().map(|&d| func.syms.int(d)).collect();
        let ty = func.intern(TypeData::tensor(dims, tensor.dtype()));
        let var = self.builder.param(&identifier(name, "p"), ty);
        self.params.insert(name.into(), tensor);
        Value::Expr(self.builder.func_mut().var_expr(var))
    }
}

/// Combines equal problems of several initializers, such as a missing data file, into one problem that names the initializers.
fn combine_problems(problem: Problem, names: &[&str]) -> Problem {
    const MAX_LISTED: usize = 3;
    let (s, some) = (if names.len() == 1 { "" } else { "s" }, names.iter().take(MAX_LISTED));
    let quoted: Vec<String> = some.map(|name| format!("'{name}'")).collect();
    let more = match names.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!("initializer{s} {}{more}: {}", quoted.join(", "), problem.message);
    Problem { message, ..problem }
}

/// Converts a tensor of the file to a constant value: [`Value::Narrow`] if its ONNX element type has no dtype of its own in the
/// IR.
pub(crate) fn constant_value(proto: &TensorProto, tensor: Tensor) -> Value {
    let value = Value::Const(tensor);
    match narrow_type(i64::from(proto.data_type())) {
        Some(ty) => Value::Narrow(ty, Box::new(value)),
        None => value,
    }
}

/// Whether the user overrides the shape, the dtype or a dim of an input.
fn has_user_declaration(name: &str, options: &ImportOptions) -> bool {
    options.shapes.contains_key(name)
        || options.dtypes.contains_key(name)
        || options.dynamic.contains_key(name)
}

/// The declared tensor type of a value.
fn tensor_type(info: &ValueInfoProto) -> Option<&TensorType> {
    match info.r#type.as_ref()?.value.as_ref()? {
        TypeValue::TensorType(tensor) => Some(tensor),
        _ => None,
    }
}

/// The declared element type of an input.
fn element_type(info: &ValueInfoProto) -> Option<i32> {
    tensor_type(info).map(TensorType::elem_type)
}

/// The declared shape of an input.
fn declared_shape(info: &ValueInfoProto) -> Option<&TensorShapeProto> {
    tensor_type(info)?.shape.as_ref()
}
