//! [`FailureRecorder`]: records the nodes that cannot be converted, so that a report can show each
//! one as a model of its own.
//!
//! After a failed node, the import continues with placeholders for its outputs if the file declares
//! their types. So one unknown operator does not hide later problems. Integer outputs get no
//! placeholder, because they may be sizes, whose values the import needs.

use pliant_ir::DType;
use pliant_ir::relax::{TensorShape, TypeData};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::deferred_node::constant_initializer;
use crate::graph_import::Importer;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
};

/// Maximum number of elements of a constant input that is embedded in the model that contains a failed node alone. Larger
/// constants become inputs of this model.
const MAX_EMBEDDED_ELEMENTS: usize = 4096;

/// A recorder of failed nodes, with the information that is needed to report them and to continue after them.
#[derive(Debug)]
pub(crate) struct FailureRecorder<'m> {
    ir_version: Option<i64>,
    functions: &'m [FunctionProto],
    /// The types that the file declares for intermediate values and outputs, by name.
    declared: FxHashMap<&'m str, &'m ValueInfoProto>,
    pub(crate) failures: Vec<FailedNode>,
}

/// A node that cannot be converted. `node_model` is a model with this node alone; `None` if the model format cannot express one of
/// its inputs.
#[derive(Debug)]
pub(crate) struct FailedNode {
    pub(crate) problem: Problem,
    pub(crate) node_model: Option<ModelProto>,
}

impl<'m> FailureRecorder<'m> {
    pub(crate) fn new(model: &'m ModelProto, graph: &'m GraphProto) -> Self {
        let infos = graph.value_info.iter().chain(&graph.output);
        FailureRecorder {
            ir_version: model.ir_version,
            functions: &model.functions,
            declared: infos.map(|i| (i.name(), i)).collect(),
            failures: Vec::new(),
        }
    }
}

impl Importer<'_> {
    /// Records a failed node. Returns placeholders for its outputs, with which the import continues.
    pub(crate) fn record_failure(
        &mut self,
        node: &NodeProto,
        inputs: &[Value],
        problem: &Problem,
    ) -> Vec<Value> {
        if self.recorder.is_none() {
            return vec![Value::Failed; node.output.len()];
        }
        let node_model = self.single_node_model(node, inputs);
        let infos: Vec<Option<ValueInfoProto>> = match &mut self.recorder {
            Some(recorder) => {
                recorder.failures.push(FailedNode { problem: problem.clone(), node_model });
                let info = |o: &String| recorder.declared.get(o.as_str()).map(|i| (*i).clone());
                node.output.iter().map(info).collect()
            }
            None => Vec::new(),
        };
        infos
            .iter()
            .map(|info| info.as_ref().map_or(Value::Failed, |i| self.placeholder(i)))
            .collect()
    }

    /// Creates a placeholder for the value that `info` declares: a new parameter if the declaration contains a float type and a
    /// shape; otherwise [`Value::Failed`].
    fn placeholder(&mut self, info: &ValueInfoProto) -> Value {
        let Some(TypeValue::TensorType(declared)) =
            info.r#type.as_ref().and_then(|t| t.value.as_ref())
        else {
            return Value::Failed;
        };
        let Ok(dtype) = initializer_tensors::program_dtype(declared.elem_type()) else {
            return Value::Failed;
        };
        let Some(shape) = &declared.shape else { return Value::Failed };
        if !dtype.is_float() {
            return Value::Failed;
        }
        let func = self.builder.func_mut();
        let dims = self.symbols.shape_dims(func, shape, info.name());
        let ty = func.intern(TypeData::tensor(dims, dtype));
        let var = self.builder.param("stand_in", ty);
        Value::Expr(self.builder.func_mut().var_expr(var))
    }

    /// Creates a model with the given node alone. Its inputs become graph inputs, and small constants become initializers. `None`
    /// if the model format cannot express one of its inputs.
    fn single_node_model(&mut self, node: &NodeProto, inputs: &[Value]) -> Option<ModelProto> {
        let mut graph = GraphProto { name: Some("reduced".into()), ..GraphProto::default() };
        let mut added = FxHashSet::default();
        for (name, value) in node.input.iter().zip(inputs) {
            if added.insert(name.clone()) {
                self.add_value(name, value, &mut graph)?;
            }
        }
        for name in captured_names(&node.attribute) {
            if added.insert(name.clone()) {
                let value = self.lookup(&name)?;
                self.add_value(&name, &value, &mut graph)?;
            }
        }
        let named = node.output.iter().filter(|o| !o.is_empty());
        graph.output = named.map(|o| self.declared_info(o)).collect();
        graph.node = vec![node.clone()];
        let recorder = self.recorder.as_ref()?;
        Some(ModelProto {
            ir_version: recorder.ir_version,
            producer_name: Some("pliant check".into()),
            opset_import: self.opset_imports_for(node),
            functions: recorder.functions.to_vec(),
            graph: Some(graph),
            ..ModelProto::default()
        })
    }

    /// The declaration of a value in the file. If the file has none, returns a declaration without
    /// a type.
    fn declared_info(&self, name: &str) -> ValueInfoProto {
        let declared = self.recorder.as_ref().and_then(|r| r.declared.get(name));
        declared.map_or_else(
            || ValueInfoProto { name: Some(name.into()), ..ValueInfoProto::default() },
            |info| (*info).clone(),
        )
    }

    /// Adds an input of a failed node to the graph of the model that contains this node alone, as an initializer or a graph input.
    /// `None` if the model format cannot express the value.
    fn add_value(&mut self, name: &str, value: &Value, graph: &mut GraphProto) -> Option<()> {
        let constant = match value {
            Value::Absent => return Some(()),
            // The output of another failed node becomes an input with the declared type. If there is none, the reducer tries
            // several types.
            Value::Failed => {
                graph.input.push(self.declared_info(name));
                return Some(());
            }
            Value::Sequence(_) | Value::Narrow(..) | Value::Object(..) => {
                return None;
            }
            Value::Const(tensor) => Some(tensor.clone()),
            Value::Symbolic(syms) => self.constant_of(syms),
            Value::Rational(_) | Value::Expr(_) => None,
        };
        let (dims, dtype) = match (value, &constant) {
            (_, Some(tensor)) if tensor.numel() <= MAX_EMBEDDED_ELEMENTS => {
                graph.initializer.push(constant_initializer(name, tensor)?);
                return Some(());
            }
            (_, Some(tensor)) => (Some(dim_values(tensor.shape())), tensor.dtype()),
            (Value::Symbolic(syms), None) => {
                let shape: Vec<i64> = syms.shape.iter().map(|&d| d as i64).collect();
                (Some(dim_values(&shape)), syms.dtype)
            }
            (Value::Rational(r), None) => {
                let shape: Vec<i64> = r.numerators.shape.iter().map(|&d| d as i64).collect();
                (Some(dim_values(&shape)), r.dtype)
            }
            (Value::Expr(e), None) => {
                let func = self.builder.func();
                let TypeData::Tensor { shape, dtype, .. } = func.ty(*e) else { return None };
                let dims = match shape {
                    TensorShape::Dims(dims) => {
                        let dim = |&d| match func.syms.as_int(d) {
                            Some(v) => dimension::Value::DimValue(v),
                            None => dimension::Value::DimParam(func.syms.display(d).to_string()),
                        };
                        Some(dims.iter().map(dim).collect())
                    }
                    _ => None,
                };
                (dims, (*dtype)?)
            }
            _ => return None,
        };
        graph.input.push(value_info(name, dims, dtype));
        Some(())
    }

    /// Converts symbolic terms to a tensor; `None` unless all terms are constant.
    fn constant_of(
        &mut self,
        syms: &crate::imported_value::SymTensor,
    ) -> Option<pliant_tensor::Tensor> {
        let identity = NodeProto::default();
        let values = vec![Value::Symbolic(syms.clone())];
        crate::node::Node::new(self, &identity, 1, values).constant(0)
    }
}

fn dim_values(shape: &[i64]) -> Vec<dimension::Value> {
    shape.iter().map(|&d| dimension::Value::DimValue(d)).collect()
}

/// Creates the declaration of a graph input with the given type.
fn value_info(name: &str, dims: Option<Vec<dimension::Value>>, dtype: DType) -> ValueInfoProto {
    let dim = |value| Dimension { value: Some(value), ..Dimension::default() };
    let shape = dims.map(|d| TensorShapeProto { dim: d.into_iter().map(dim).collect() });
    let tensor =
        TensorType { elem_type: Some(initializer_tensors::data_type(dtype) as i32), shape };
    let value = Some(TypeValue::TensorType(tensor));
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value, ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}

/// The names of values of the enclosing graphs that the subgraphs of a node use.
pub(crate) fn captured_names(attributes: &[AttributeProto]) -> Vec<String> {
    let mut names = Vec::new();
    for graph in attributes.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
        let mut defined: FxHashSet<&str> = graph.input.iter().map(|i| i.name()).collect();
        defined.extend(graph.initializer.iter().map(|t| t.name()));
        for node in &graph.node {
            let inner = captured_names(&node.attribute);
            let read_names = node.input.iter().chain(&inner).filter(|n| !n.is_empty());
            names.extend(read_names.filter(|n| !defined.contains(n.as_str())).cloned());
            defined.extend(node.output.iter().map(String::as_str));
        }
        let outputs = graph.output.iter().map(|o| o.name());
        names.extend(outputs.filter(|o| !defined.contains(o)).map(str::to_owned));
    }
    names
}
