//! [`NodeAtRun`]: a node that is imported when the program runs, over operands of the kinds that they turn out to have.
//!
//! Most operators are converted for tensors of known rank, and some for sizes or values that are numbers. Where only a run
//! knows these, the node goes into the program as a call of [`crate::host::NODE`] with itself as a model of one node. Whoever
//! runs it imports that model for the ranks that come, which makes an ordinary program over symbols; where ranks are not
//! enough, for the sizes and the small integers that come.
//!
//! What such a node gives is found by trying it: over operands of several ranks its results have types, and what these share
//! is known.

use pliant_ir::relax::{Expr, TensorShape, Type, TypeData};
use pliant_ir::{DType, IRModule};
use pliant_sym::Sym;
use pliant_tensor::Tensor;
use prost::Message;
use rustc_hash::FxHashSet;

use crate::error::{Problem, ProblemKind};
use crate::graph::{Importer, import_alone};
use crate::host;
use crate::limits::Limits;
use crate::model::Model;
use crate::node::Node;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto,
};
use crate::record::captured;
use crate::tensor;
use crate::value::Value;

/// Elements of a constant that goes into the model; larger ones are operands.
const SMALL: usize = 4096;
/// Integers of an operand that may stand for their values: axes, sizes, pads.
const FEW: usize = 64;
/// Ranks of one operand among several that must fit before their results are taken to be alike for all.
const SURE: usize = 3;
/// Ranks that are tried.
const RANKS: std::ops::RangeInclusive<usize> = 0..=6;

/// How much of its operands a node is imported for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Their ranks and element types.
    Ranks,
    /// Of all but the first also their sizes, and their values where they are few integers.
    Parameters,
    /// Sizes and few integers of all.
    All,
}

impl Depth {
    /// From the least to the most.
    pub const EACH: [Depth; 3] = [Depth::Ranks, Depth::Parameters, Depth::All];

    /// Whether sizes and values of operand `i` are part of its kind.
    fn is_exact(self, i: usize) -> bool {
        match self {
            Depth::Ranks => false,
            Depth::Parameters => i > 0,
            Depth::All => true,
        }
    }
}

/// What an operand turns out to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    dtype: DType,
    dims: Vec<Option<i64>>,
    /// The elements, where they are part of its kind.
    values: Option<Vec<i64>>,
}

impl Operand {
    /// Operand `i` as it is imported at that depth.
    pub fn of(value: &Tensor, i: usize, depth: Depth) -> Operand {
        let (dtype, exact) = (value.dtype(), depth.is_exact(i));
        let few = exact && is_plain_int(dtype) && value.numel() <= FEW;
        let dims = value.shape().iter().map(|&d| exact.then_some(d)).collect();
        let values = if few { value.to_i64_vec().ok() } else { None };
        Operand { dtype, dims, values }
    }

    /// Whether its values are part of its kind.
    pub fn is_value(&self) -> bool {
        self.values.is_some()
    }
}

fn is_plain_int(dtype: DType) -> bool {
    matches!(dtype, DType::Int64 | DType::Int32 | DType::Bool)
}

/// A node as a model of its own, whose inputs are its operands and have no types yet.
#[derive(Clone, Debug)]
pub struct NodeAtRun {
    proto: ModelProto,
}

impl NodeAtRun {
    /// The node that a program holds as text.
    ///
    /// # Errors
    /// When the text is no such node.
    pub fn from_text(text: &str) -> Result<NodeAtRun, Problem> {
        let wrong = || Problem::invalid("this is no node of an ONNX model");
        let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
        let pair = |p: &[u8]| Some(digit(p[0])? << 4 | digit(*p.get(1)?)?);
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        let limits = Limits::default();
        let model = Model::from_bytes(bytes.ok_or_else(wrong)?, limits).map_err(|_| wrong())?;
        Ok(NodeAtRun { proto: model.proto })
    }

    fn text(&self) -> String {
        self.proto.encode_to_vec().iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The node as messages call it.
    pub fn label(&self) -> String {
        let node = self.proto.graph.as_ref().and_then(|g| g.node.first());
        node.map_or_else(String::new, crate::node::label)
    }

    /// The node over such operands as a module, whose function `main` takes those that are no values.
    ///
    /// # Errors
    /// What makes it impossible.
    pub fn import(&self, operands: &[Operand]) -> Result<IRModule, Problem> {
        let model = self.model(operands)?;
        match import_alone(&model) {
            Ok(imported) => Ok(imported.module),
            Err(e) => Err(e.problems.into_iter().next().unwrap_or_else(|| Problem::invalid(""))),
        }
    }

    /// The model with the operands' types.
    fn model(&self, operands: &[Operand]) -> Result<Model, Problem> {
        let mut proto = self.proto.clone();
        let wrong = || Problem::invalid("a node has other operands than it was made for");
        let graph = proto.graph.as_mut().ok_or_else(wrong)?;
        if graph.input.len() != operands.len() {
            return Err(wrong());
        }
        let inputs = std::mem::take(&mut graph.input);
        for (mut info, operand) in inputs.into_iter().zip(operands) {
            if let Some(values) = &operand.values {
                let dims = operand.dims.iter().map(|d| d.unwrap_or(0)).collect();
                graph.initializer.push(TensorProto {
                    name: info.name.take(),
                    dims,
                    data_type: Some(tensor::code(operand.dtype) as i32),
                    raw_data: Some(bytes_of(values, operand.dtype).into()),
                    ..TensorProto::default()
                });
                continue;
            }
            let dim = |d: &Option<i64>| Dimension {
                value: d.map(dimension::Value::DimValue),
                ..Dimension::default()
            };
            let own = shape_of(&info).filter(|s| s.dim.len() == operand.dims.len());
            let dims = operand.dims.iter().enumerate().map(|(axis, d)| {
                let known = own.and_then(|s| s.dim[axis].value.clone());
                Dimension { value: known.or(dim(d).value), ..Dimension::default() }
            });
            let shape = TensorShapeProto { dim: dims.collect() };
            let elem_type = Some(tensor::code(operand.dtype) as i32);
            let value = Some(TypeValue::TensorType(TensorType { elem_type, shape: Some(shape) }));
            info.r#type = Some(TypeProto { value, ..TypeProto::default() });
            graph.input.push(info);
        }
        Ok(Model { proto, folder: None, limits: Limits::default() })
    }

    /// The types of the results over such operands.
    fn results(&self, operands: &[Operand]) -> Result<Vec<Known>, Problem> {
        let module = self.import(operands)?;
        let none = || Problem::internal("a node at run time", "there is no function");
        let main = module.get("main").and_then(|f| f.as_relax()).ok_or_else(none)?;
        let ret = main.ret_ty();
        let of = |ty: Type| Known {
            dtype: main.types.get(ty).dtype(),
            dims: main.rank_of(ty).map(|rank| vec![None; rank as usize]),
        };
        Ok(match main.types.get(ret) {
            TypeData::Tuple(fields) => fields.iter().map(|&t| of(t)).collect(),
            _ => vec![of(ret)],
        })
    }
}

/// Integers as the bytes of a tensor.
fn bytes_of(values: &[i64], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::Bool => values.iter().map(|&v| u8::from(v != 0)).collect(),
        DType::Int32 => values.iter().flat_map(|&v| (v as i32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
    }
}

fn shape_of(info: &ValueInfoProto) -> Option<&TensorShapeProto> {
    match info.r#type.as_ref()?.value.as_ref()? {
        TypeValue::TensorType(tensor) => tensor.shape.as_ref(),
        _ => None,
    }
}

/// What is known of an operand, or of a result, while the program is imported.
struct Known {
    dtype: Option<DType>,
    dims: Option<Vec<Option<i64>>>,
}

impl Known {
    /// What is known where it is one or the other.
    fn or(self, other: &Known) -> Known {
        let alike = |d: &Vec<Option<i64>>| other.dims.as_ref().is_some_and(|o| o.len() == d.len());
        Known {
            dtype: self.dtype.filter(|_| self.dtype == other.dtype),
            dims: self.dims.filter(alike),
        }
    }

    /// The operand with other numbers for what is not known.
    fn guess(&self, i: usize, rank: usize, depth: Depth, size: i64) -> Operand {
        let dtype = self.dtype.unwrap_or(DType::Float32);
        let dims = self.dims.clone().unwrap_or_else(|| vec![None; rank]);
        if !depth.is_exact(i) {
            return Operand { dtype, dims, values: None };
        }
        let dims: Vec<i64> = dims.into_iter().map(|d| d.unwrap_or(size)).collect();
        let count = dims.iter().product::<i64>() as usize;
        let values = (is_plain_int(dtype) && count <= FEW).then(|| vec![size - 1; count]);
        Operand { dtype, dims: dims.into_iter().map(Some).collect(), values }
    }
}

impl Importer<'_> {
    /// A node that cannot be converted for what is known of its operands, as a call that the run imports; the problem
    /// where it cannot be converted for any.
    pub(crate) fn at_run(
        &mut self,
        node: &NodeProto,
        inputs: &[Value],
        problem: Problem,
    ) -> Result<Vec<Value>, Problem> {
        if self.node_alone || problem.kind == ProblemKind::Internal || problem.message.is_empty() {
            return Err(problem);
        }
        let Some((alone, operands)) = self.node_alone(node, inputs) else { return Err(problem) };
        let known: Vec<Known> = operands.iter().map(|v| self.known_of(v)).collect();
        // What is wrong with operands that are known is wrong whatever comes.
        let open = known.iter().any(|k| k.dims.is_none() || k.dtype.is_none());
        if problem.kind == ProblemKind::Invalid && !open {
            return Err(problem);
        }
        let results = tried(&alone, &known).map_err(|told| told.unwrap_or(problem))?;
        let typed = known.iter().all(|k| k.dtype.is_some());
        self.call_at_run(node, &alone, &operands, &results, typed)
    }

    fn call_at_run(
        &mut self,
        node: &NodeProto,
        alone: &NodeAtRun,
        operands: &[Value],
        results: &[Known],
        typed: bool,
    ) -> Result<Vec<Value>, Problem> {
        let mut n = Node::new(self, node, 1, Vec::new());
        let mut args = vec![n.func().str_value(&alone.text())];
        for operand in operands {
            args.push(n.materialize(operand)?);
        }
        let made = n.host(host::NODE, &args)?;
        let parts = match results.len() {
            1 => vec![made],
            count => n.fields_of_any(made, count),
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
            outputs.push(n.seen_at_run(part, rank, known.dtype.filter(|_| typed)).into());
        }
        Ok(outputs)
    }

    /// The node as a model, and its operands; nothing where one is no tensor.
    fn node_alone(
        &mut self,
        node: &NodeProto,
        inputs: &[Value],
    ) -> Option<(NodeAtRun, Vec<Value>)> {
        let mut graph = GraphProto { name: Some("node".into()), ..GraphProto::default() };
        let (mut operands, mut seen) = (Vec::new(), FxHashSet::default());
        let own = node.input.iter().cloned().zip(inputs.iter().cloned());
        let around = captured(&node.attribute);
        let inner = !around.is_empty() || node.attribute.iter().any(|a| a.g.is_some());
        let around: Option<Vec<(String, Value)>> =
            around.into_iter().map(|name| Some((name.clone(), self.lookup(&name)?))).collect();
        for (name, value) in own.chain(around?) {
            if name.is_empty() || !seen.insert(name.clone()) {
                continue;
            }
            match &value {
                Value::Const(t) if t.numel() <= SMALL => {
                    graph.initializer.push(initializer(&name, t)?);
                }
                Value::Const(_) | Value::Syms(_) | Value::Expr(_) => {
                    let shape = self.known_of(&value).dims.map(|dims| TensorShapeProto {
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
                Value::Coded(..) | Value::Sequence(_) | Value::Object(..) | Value::Failed => {
                    return None;
                }
            }
        }
        let named = node.output.iter().filter(|o| !o.is_empty());
        let info =
            |o: &String| ValueInfoProto { name: Some(o.clone()), ..ValueInfoProto::default() };
        graph.output = named.map(info).collect();
        graph.node = vec![node.clone()];
        let opset = |(domain, version): (&&str, &i64)| OperatorSetIdProto {
            domain: Some((*domain).into()),
            version: Some(*version),
        };
        let mut opset_import: Vec<OperatorSetIdProto> = self.opsets.iter().map(opset).collect();
        opset_import.sort_by(|a, b| a.domain().cmp(b.domain()));
        let functions = if inner { self.functions_used() } else { Vec::new() };
        let graph = Some(graph);
        let proto = ModelProto { graph, opset_import, functions, ..ModelProto::default() };
        Some((NodeAtRun { proto }, operands))
    }

    fn known_of(&self, value: &Value) -> Known {
        let numbers = |shape: &mut dyn Iterator<Item = i64>| Some(shape.map(Some).collect());
        match value {
            Value::Const(t) => {
                Known { dtype: Some(t.dtype()), dims: numbers(&mut t.shape().iter().copied()) }
            }
            Value::Syms(t) => Known {
                dtype: Some(t.dtype),
                dims: numbers(&mut t.shape.iter().map(|&d| d as i64)),
            },
            Value::Expr(e) => {
                let func = self.builder.func();
                let ty = func.expr_ty(*e);
                let dims = match func.types.get(ty).dims() {
                    Some(dims) => Some(dims.iter().map(|&d| func.syms.as_int(d)).collect()),
                    None => func.rank_of(ty).map(|rank| vec![None; rank as usize]),
                };
                Known { dtype: func.types.get(ty).dtype(), dims }
            }
            _ => Known { dtype: None, dims: None },
        }
    }
}

/// What is known of the results of a node over operands of which so much is known: nothing where all that is tried is
/// wrong in ways of its own, since other operands may fit.
///
/// # Errors
/// What is not supported, or wrong whatever the operands are; none where that was found to be only that something is not
/// known.
fn tried(alone: &NodeAtRun, known: &[Known]) -> Result<Vec<Known>, Option<Problem>> {
    let open: Vec<usize> = (0..known.len()).filter(|&i| known[i].dims.is_none()).collect();
    let mut problems: Vec<(usize, Problem)> = Vec::new();
    for depth in Depth::EACH {
        // Several ranks and sizes at once are too many to try.
        if depth > Depth::Ranks && open.len() > 1 {
            break;
        }
        let sizes = if depth == Depth::Ranks { 1..=1 } else { 1..=4 };
        let (mut found, mut fitting): (Option<Vec<Known>>, Vec<usize>) = (None, Vec::new());
        for (ranks, size) in ranks(open.len()).flat_map(|r| sizes.clone().map(move |s| (r, s))) {
            let rank = |i: usize| if open.first() == Some(&i) { ranks.0 } else { ranks.1 };
            let guess = |(i, k): (usize, &Known)| k.guess(i, rank(i), depth, size);
            let operands: Vec<Operand> = known.iter().enumerate().map(guess).collect();
            let results = match alone.results(&operands) {
                Ok(results) => results,
                Err(problem) => {
                    problems.push((ranks.0, problem));
                    continue;
                }
            };
            fitting.push(ranks.0);
            found = Some(match found {
                None => results,
                Some(before) => before.into_iter().zip(&results).map(|(a, b)| a.or(b)).collect(),
            });
        }
        let Some(mut found) = found else { continue };
        fitting.dedup();
        if open.len() > 1 && fitting.len() < SURE {
            // Ranks that were not tried together may give others.
            found.iter_mut().for_each(|known| known.dims = None);
        }
        return Ok(found);
    }
    let unknown = |p: &Problem| p.message.contains("run time");
    // Of several operands not all ranks were tried together, and sizes and values of none.
    let untried = open.len() > 2 || open.len() > 1 && problems.iter().any(|(_, p)| unknown(p));
    let wrong: Vec<&(usize, Problem)> = problems.iter().filter(|(_, p)| !unknown(p)).collect();
    let alike = wrong.windows(2).all(|pair| pair[0].1.message == pair[1].1.message);
    if !untried && alike {
        return Err(wrong.first().map(|(_, p)| p.clone()));
    }
    // What is not supported at one rank of an operand may be at another, but hardly where it is told at two.
    let refused = wrong.iter().find(|(rank, p)| {
        let again = |(other, q): &(usize, Problem)| other != rank && q.message == p.message;
        p.kind == ProblemKind::Unsupported && wrong.iter().any(|q| again(q))
    });
    if let Some((_, problem)) = refused.filter(|_| open.len() < 2) {
        return Err(Some(problem.clone()));
    }
    let graph = alone.proto.graph.as_ref();
    let count = graph.map_or(0, |g| g.output.len());
    Ok((0..count).map(|_| Known { dtype: None, dims: None }).collect())
}

/// Ranks to try: of the first operand whose rank is not known, and of all others.
fn ranks(open: usize) -> impl Iterator<Item = (usize, usize)> {
    let first = if open == 0 { 0..=0 } else { RANKS };
    first.flat_map(move |rank| {
        let mut others = vec![rank];
        if open > 1 {
            others.extend((0..=2).filter(|&other| other != rank));
        }
        others.into_iter().map(move |other| (rank, other))
    })
}

/// A constant as an initializer.
pub(crate) fn initializer(name: &str, tensor: &Tensor) -> Option<TensorProto> {
    let raw = tensor.to_contiguous().ok()?;
    Some(TensorProto {
        name: Some(name.into()),
        dims: raw.shape().to_vec(),
        data_type: Some(tensor::code(raw.dtype()) as i32),
        raw_data: Some(bytes::Bytes::copy_from_slice(raw.as_bytes().ok()?)),
        ..TensorProto::default()
    })
}

impl Node<'_, '_> {
    /// The fields of a tuple of which only the run knows that it is one.
    fn fields_of_any(&mut self, tuple: Expr, count: usize) -> Vec<Expr> {
        let func = self.func();
        let any = func.intern(TypeData::Any);
        let ty = func.intern(TypeData::Tuple(vec![any; count].into()));
        let var = self.im.builder.match_cast(tuple, ty, "results");
        let tuple = self.func().var_expr(var);
        self.fields(tuple, count)
    }

    /// An object as a tensor of which that much is known, which the run checks.
    fn seen_at_run(&mut self, object: Expr, rank: Option<usize>, dtype: Option<DType>) -> Expr {
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
        let var = self.im.builder.match_cast(object, ty, "seen");
        self.func().var_expr(var)
    }
}
