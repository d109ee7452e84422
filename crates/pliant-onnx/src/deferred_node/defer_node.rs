//! Decides whether a node that its converter could not convert is imported at run time instead (`defer_node`), and emits the call
//! of the runtime function [`host_function_names::NODE`] for it.
//!
//! The node is not deferred, so that the import fails, if
//! - this import itself runs at run time, for a deferred node;
//! - the failure is an internal error, or has already been reported, as that of a node inside an `If` or a loop;
//! - an operand, or an outer value that a graph of the node reads, is a sequence, an optional or a tensor of a narrow type;
//! - the node is invalid, although the ranks and element types of all operands are known;
//! - trial imports for several ranks, sizes and values show that the import at run time would fail, too (`infer_results.rs`).

use pliant_ir::DType;
use pliant_ir::relax::{Expr, TensorShape, TypeData};
use pliant_sym::Sym;
use rustc_hash::FxHashSet;

use super::infer_results::{PartialType, infer_result_types};
use super::{DeferredNode, constant_initializer};
use crate::failed_node_recorder::captured_names;
use crate::graph_import::Importer;
use crate::import_error::{Problem, ProblemKind};
use crate::imported_value::Value;
use crate::node::Node;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{
    GraphProto, ModelProto, NodeProto, TensorShapeProto, TypeProto, ValueInfoProto,
};
use pliant_kernel_api::host_function_names;

/// Maximum number of elements of a constant operand that is embedded in the model of a deferred node (a node that is imported at
/// run time). Larger constants are passed as operands of the call that imports the node.
const MAX_EMBEDDED_ELEMENTS: usize = 4096;

impl Importer<'_> {
    /// Emits a call that imports the node at run time. This is the fallback if the converter fails because too little is known
    /// about the operands. Returns `problem` if the node cannot be converted for any operands.
    pub(crate) fn defer_node(
        &mut self,
        node: &NodeProto,
        inputs: &[Value],
        problem: Problem,
    ) -> Result<Vec<Value>, Problem> {
        if self.is_deferred_import
            || problem.kind == ProblemKind::Internal
            || problem.message.is_empty()
        {
            return Err(problem);
        }
        let Some((deferred, operands)) = self.node_as_model(node, inputs) else {
            return Err(problem);
        };
        let known: Vec<PartialType> = operands.iter().map(|v| self.partial_type(v)).collect();
        // If all operand types are known, the import at run time would fail for the same reason.
        let is_incomplete = known.iter().any(|k| k.dims.is_none() || k.dtype.is_none());
        if problem.kind == ProblemKind::Invalid && !is_incomplete {
            return Err(problem);
        }
        let results = infer_result_types(&deferred, &known)
            .map_err(|unsupported| unsupported.unwrap_or(problem))?;
        let all_typed = known.iter().all(|k| k.dtype.is_some());
        self.emit_deferred_call(node, &deferred, &operands, &results, all_typed)
    }

    /// Emits the call of the runtime function that imports and runs the node, and casts the results to their inferred types.
    fn emit_deferred_call(
        &mut self,
        node: &NodeProto,
        deferred: &DeferredNode,
        operands: &[Value],
        results: &[PartialType],
        all_typed: bool,
    ) -> Result<Vec<Value>, Problem> {
        let mut n = Node::new(self, node, 1, Vec::new());
        let mut args = vec![n.func().str_value(&deferred.text())];
        for operand in operands {
            args.push(n.materialize(operand)?);
        }
        let call = n.call_host(host_function_names::NODE, &args)?;
        let parts = match results.len() {
            1 => vec![call],
            count => n.dynamic_tuple_fields(call, count),
        };
        let mut results = parts.into_iter().zip(results);
        let mut outputs = Vec::with_capacity(node.output.len());
        for name in &node.output {
            if name.is_empty() {
                outputs.push(Value::Absent);
                continue;
            }
            let Some((part, known)) = results.next() else { break };
            let rank = known.dims.as_ref().map(Vec::len);
            outputs.push(
                n.object_to_partial_tensor(part, rank, known.dtype.filter(|_| all_typed)).into(),
            );
        }
        Ok(outputs)
    }

    /// Converts the node to a model with this node alone. Returns the model, and the values that
    /// the call passes as operands. `None` if an operand is not a tensor.
    fn node_as_model(
        &mut self,
        node: &NodeProto,
        inputs: &[Value],
    ) -> Option<(DeferredNode, Vec<Value>)> {
        let mut graph = GraphProto { name: Some("node".into()), ..GraphProto::default() };
        let (mut operands, mut added) = (Vec::new(), FxHashSet::default());
        let node_inputs = node.input.iter().cloned().zip(inputs.iter().cloned());
        let captured = captured_names(&node.attribute);
        let inner = !captured.is_empty() || node.attribute.iter().any(|a| a.g.is_some());
        let captured: Option<Vec<(String, Value)>> =
            captured.into_iter().map(|name| Some((name.clone(), self.lookup(&name)?))).collect();
        for (name, value) in node_inputs.chain(captured?) {
            if name.is_empty() || !added.insert(name.clone()) {
                continue;
            }
            match &value {
                Value::Const(t) if t.numel() <= MAX_EMBEDDED_ELEMENTS => {
                    graph.initializer.push(constant_initializer(&name, t)?);
                }
                Value::Const(_) | Value::Symbolic(_) | Value::Rational(_) | Value::Expr(_) => {
                    let shape = self.partial_type(&value).dims.map(|dims| TensorShapeProto {
                        dim: dims
                            .into_iter()
                            .map(|d| Dimension {
                                value: d.map(dimension::Value::DimValue),
                                ..Dimension::default()
                            })
                            .collect(),
                    });
                    let tensor = TensorType { elem_type: None, shape };
                    let value_type = TypeProto {
                        value: Some(TypeValue::TensorType(tensor)),
                        ..TypeProto::default()
                    };
                    graph.input.push(ValueInfoProto {
                        name: Some(name),
                        r#type: Some(value_type),
                        ..ValueInfoProto::default()
                    });
                    operands.push(value);
                }
                Value::Absent => return None,
                Value::Narrow(..) | Value::Sequence(_) | Value::Object(..) | Value::Failed => {
                    return None;
                }
            }
        }
        let named = node.output.iter().filter(|o| !o.is_empty());
        let info =
            |o: &String| ValueInfoProto { name: Some(o.clone()), ..ValueInfoProto::default() };
        graph.output = named.map(info).collect();
        graph.node = vec![node.clone()];
        let opset_import = self.opset_imports_for(node);
        let functions = if inner { self.all_functions() } else { Vec::new() };
        let graph = Some(graph);
        let proto = ModelProto { graph, opset_import, functions, ..ModelProto::default() };
        Some((DeferredNode { proto }, operands))
    }

    /// The statically known part of a value's type.
    fn partial_type(&self, value: &Value) -> PartialType {
        let numbers = |shape: &mut dyn Iterator<Item = i64>| Some(shape.map(Some).collect());
        match value {
            Value::Const(t) => PartialType {
                dtype: Some(t.dtype()),
                dims: numbers(&mut t.shape().iter().copied()),
            },
            Value::Symbolic(t) => PartialType {
                dtype: Some(t.dtype),
                dims: numbers(&mut t.shape.iter().map(|&d| d as i64)),
            },
            Value::Rational(r) => PartialType {
                dtype: Some(r.dtype),
                dims: numbers(&mut r.numerators.shape.iter().map(|&d| d as i64)),
            },
            Value::Expr(e) => {
                let func = self.builder.func();
                let ty = func.expr_ty(*e);
                let dims = match func.types.get(ty).dims() {
                    Some(dims) => Some(dims.iter().map(|&d| func.syms.as_int(d)).collect()),
                    None => func.rank_of(ty).map(|rank| vec![None; rank as usize]),
                };
                PartialType { dtype: func.types.get(ty).dtype(), dims }
            }
            _ => PartialType { dtype: None, dims: None },
        }
    }
}

impl Node<'_, '_> {
    /// Emits accesses to the fields of a tuple whose type is not known statically.
    fn dynamic_tuple_fields(&mut self, tuple: Expr, count: usize) -> Vec<Expr> {
        let func = self.func();
        let any = func.intern(TypeData::Any);
        let ty = func.intern(TypeData::Tuple(vec![any; count].into()));
        let var = self.importer.builder.match_cast(tuple, ty, "results");
        let tuple = self.func().var_expr(var);
        self.tuple_fields(tuple, count)
    }

    /// Emits a cast of an object to a tensor of the given rank and dtype, where `None` means unknown. Rank and dtype are checked at
    /// run time.
    fn object_to_partial_tensor(
        &mut self,
        object: Expr,
        rank: Option<usize>,
        dtype: Option<DType>,
    ) -> Expr {
        let func = self.func();
        let shape = match rank {
            Some(rank) => {
                let dims: Vec<Sym> = (0..rank)
                    .map(|axis| {
                        let var = func.fresh_sym(&format!("at_run_{axis}"));
                        func.syms.var(var)
                    })
                    .collect();
                TensorShape::Dims(dims.into())
            }
            None => TensorShape::Unknown,
        };
        let ty = func.intern(TypeData::Tensor { shape, dtype });
        let var = self.importer.builder.match_cast(object, ty, "seen");
        self.func().var_expr(var)
    }
}
