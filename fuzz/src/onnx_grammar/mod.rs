//! Generates ONNX models from the bytes of a fuzz input by a grammar. Each byte determines a
//! choice, and most nodes are importable.
//!
//! | module | content |
//! |---|---|
//! | `random_choices` | choices from bytes |
//! | `operator_schemas` | operator schemas: operands, types, attributes |
//! | `operator_operands` | operands and attributes that make operators importable |
//! | `model_builders` | tensors, types, attributes, nodes |
//! | `single_node` | models of one node, with some operands omitted |
//! | `random_graph` | graphs of random nodes |
//! | `attributes` | random attributes |
//! | `run_model` | imports, compiles and runs a model, and detects bugs |

mod attributes;
mod model_builders;
mod operator_operands;
pub mod operator_schemas;
mod random_choices;
mod random_graph;
pub mod run_model;
pub mod single_node;

use pliant::onnx::proto::{FunctionProto, ModelProto, OperatorSetIdProto};

use random_choices::Choices;
use random_graph::Builder;

/// Returns the newest opset version of a domain that the importer supports.
pub fn newest_version(domain: &str) -> i64 {
    let of_domain = operator_schemas::schemas().iter().filter(|s| s.domain == domain);
    let newest = of_domain.map(|s| s.since).max().unwrap_or(1);
    // The default domain has newer versions that changed none of the operators.
    if domain.is_empty() { newest.max(28) } else { newest }
}

/// The domains of operators. `local` stands for functions that the model defines.
const DOMAINS: [&str; 6] =
    ["", "com.microsoft", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.preview", "local"];

/// Generates the model that the bytes determine.
pub fn model(bytes: &[u8]) -> ModelProto {
    let mut source = Choices::new(bytes);
    let opset = match source.below(8) {
        0 => source.below(22) as i64 + 7,
        1 => source.integer(),
        _ => newest_version(""),
    };
    let missing = source.chance(12).then(|| DOMAINS[source.below(DOMAINS.len())]);
    let import = |domain: &str| OperatorSetIdProto {
        domain: Some(domain.into()),
        version: Some(if domain.is_empty() { opset } else { newest_version(domain) }),
    };
    let opsets = DOMAINS.into_iter().filter(|d| Some(*d) != missing).map(import);
    let opset_import: Vec<OperatorSetIdProto> = opsets.collect();
    let functions: Vec<FunctionProto> = match source.chance(20) {
        true => vec![function(&mut source, opset, &opset_import)],
        false => Vec::new(),
    };
    let mut builder = Builder::new(&mut source, opset);
    builder.functions = functions.iter().map(|f| (f.input.len(), f.output.len())).collect();
    let graph = builder.main();
    ModelProto {
        ir_version: Some(10),
        opset_import,
        graph: Some(graph),
        functions,
        ..ModelProto::default()
    }
}

/// Generates a function of the model, with the name `Local0` in the domain `local`.
fn function(source: &mut Choices<'_>, opset: i64, opsets: &[OperatorSetIdProto]) -> FunctionProto {
    let inputs = source.below(3);
    let (graph, input) = Builder::new(source, opset).function(inputs);
    FunctionProto {
        name: Some("Local0".into()),
        domain: Some("local".into()),
        opset_import: opsets.to_vec(),
        output: graph.output.iter().map(|o| o.name().to_owned()).collect(),
        node: graph.node,
        input,
        ..FunctionProto::default()
    }
}
