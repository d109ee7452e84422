//! Writes reduced models: for each finding of a report, a small model file that reproduces it.
//!
//! A failed node becomes a model with this node alone if the model format can express its inputs. For other problems, parts of the
//! model are removed as long as the problem persists.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prost::Message;

use crate::graph_import::ImportOptions;
use crate::import_limits::Limits;
use crate::model_file::Model;
use crate::model_problem_report::{Finding, check};
use crate::proto::tensor_proto::DataType;
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use crate::proto::{ModelProto, TensorShapeProto, TypeProto};

/// The time limit of the search for parts that can be removed.
const SEARCH_TIME_LIMIT: Duration = Duration::from_secs(2);

/// The ranks that are tried for values without a declared type, in this order.
const TRIED_RANKS: [usize; 6] = [2, 3, 4, 1, 0, 5];

/// Tries to reduce the model for each finding (a problem that the import has reported), and writes each reduced model with which
/// the import reports the same problem. Returns the paths of the files.
///
/// # Errors
/// If the directory or a file cannot be written.
pub(crate) fn write(
    findings: &[Finding],
    whole: &ModelProto,
    dir: &Path,
) -> std::io::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir)?;
    let mut files = Vec::new();
    for (i, finding) in findings.iter().enumerate() {
        let single_node = finding.node_model.as_ref().and_then(|model| {
            let mut typed = TRIED_RANKS.into_iter().map(|rank| with_float_types(model, rank));
            typed.find(|model| reproduces(model, finding, findings))
        });
        let Some(model) = single_node.or_else(|| minimal_model(whole, finding, findings)) else {
            continue;
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let name: String = finding.operator.chars().take(60).map(plain).collect();
        let name = if name.is_empty() { "graph" } else { &name };
        let path = dir.join(format!("{}-{name}.onnx", i + 1));
        std::fs::write(&path, model.encode_to_vec())?;
        files.push(path);
    }
    Ok(files)
}

/// Whether a check of `model` reports the finding and no findings that the original model does not
/// have.
fn reproduces(model: &ModelProto, finding: &Finding, all: &[Finding]) -> bool {
    let model = Model { proto: model.clone(), folder: None, limits: Limits::default() };
    let problems = check(&model, &ImportOptions::default()).findings;
    let same = |a: &Finding, b: &Finding| {
        a.kind == b.kind && a.operator == b.operator && a.message == b.message
    };
    problems.iter().any(|f| same(f, finding))
        && problems.iter().all(|f| all.iter().any(|a| same(f, a)))
}

/// Copies a model, and declares float tensors of the given rank for all inputs and outputs without a declared type.
fn with_float_types(model: &ModelProto, rank: usize) -> ModelProto {
    let mut model = model.clone();
    let Some(graph) = &mut model.graph else { return model };
    for info in graph.input.iter_mut().chain(&mut graph.output) {
        let value = info.r#type.as_ref().and_then(|t| t.value.as_ref());
        let is_declared = match value {
            None => false,
            Some(TypeValue::TensorType(t)) => t.shape.is_some(),
            Some(_) => true,
        };
        if is_declared {
            continue;
        }
        let elem_type = match value {
            Some(TypeValue::TensorType(t)) => t.elem_type,
            _ => Some(DataType::Float as i32),
        };
        let dim = |axis| Dimension {
            value: Some(dimension::Value::DimParam(format!("{}_{axis}", info.name()))),
            ..Dimension::default()
        };
        let shape = Some(TensorShapeProto { dim: (0..rank).map(dim).collect() });
        let value = Some(TypeValue::TensorType(TensorType { elem_type, shape }));
        info.r#type = Some(TypeProto { value, ..TypeProto::default() });
    }
    model
}

/// Removes all parts of the model that are not needed to reproduce the finding. `None` if the model as a whole does not reproduce
/// it.
fn minimal_model(whole: &ModelProto, finding: &Finding, all: &[Finding]) -> Option<ModelProto> {
    let deadline = Instant::now() + SEARCH_TIME_LIMIT;
    let count = part_count(whole);
    let mut kept = vec![true; count];
    let mut best = None;
    let mut size = count.max(1);
    while size > 0 {
        for start in (0..count).step_by(size) {
            let range = start..(start + size).min(count);
            if !kept[range.clone()].contains(&true) || Instant::now() > deadline {
                continue;
            }
            let mut fewer = kept.clone();
            fewer[range].fill(false);
            let model = with_parts(whole, &fewer);
            if reproduces(&model, finding, all) {
                (kept, best) = (fewer, Some(model));
            }
        }
        size /= 2;
    }
    best.or_else(|| Some(with_parts(whole, &kept)).filter(|model| reproduces(model, finding, all)))
}

/// The number of removable parts of a model: nodes, outputs, declarations, initializers, inputs and functions.
fn part_count(model: &ModelProto) -> usize {
    let graph = model.graph.as_ref();
    let of = graph.map_or(0, |g| {
        g.node.len() + g.output.len() + g.value_info.len() + g.initializer.len() + g.input.len()
    });
    of + model.functions.len()
}

/// Copies a model with only the parts for which `kept` is true.
fn with_parts(whole: &ModelProto, kept: &[bool]) -> ModelProto {
    fn keep<T: Clone>(list: &[T], kept: &mut std::slice::Iter<'_, bool>) -> Vec<T> {
        let chosen = list.iter().zip(kept).filter(|(_, keep)| **keep);
        chosen.map(|(item, _)| item.clone()).collect()
    }
    let mut kept = kept.iter();
    let mut model = ModelProto {
        ir_version: whole.ir_version,
        opset_import: whole.opset_import.clone(),
        producer_name: Some("pliant check".into()),
        ..ModelProto::default()
    };
    if let Some(graph) = &whole.graph {
        let reduced = model.graph.get_or_insert_default();
        reduced.name = graph.name.clone();
        reduced.node = keep(&graph.node, &mut kept);
        reduced.output = keep(&graph.output, &mut kept);
        reduced.value_info = keep(&graph.value_info, &mut kept);
        reduced.initializer = keep(&graph.initializer, &mut kept);
        reduced.input = keep(&graph.input, &mut kept);
    }
    model.functions = keep(&whole.functions, &mut kept);
    model
}
