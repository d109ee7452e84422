//! Tests of the Rust API for ONNX models: the example, and the errors for rejected models.

use pliant::onnx::proto::tensor_shape_proto::{Dimension, dimension};
use pliant::onnx::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use pliant::onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TypeProto,
    ValueInfoProto,
};
use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, CompiledModule, ErrorKind, Model, Tensor};
use prost::Message;

#[allow(dead_code, reason = "the example's main is not run here")]
#[path = "../../examples/onnx.rs"]
mod example;

/// A temporary file that is removed on drop.
struct TempFile(std::path::PathBuf);

impl TempFile {
    fn new(name: &str, bytes: &[u8]) -> TempFile {
        let name = format!("pliant-{name}-{}.onnx", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        TempFile(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(op.into()),
        input: inputs.iter().map(|s| s.to_string()).collect(),
        output: outputs.iter().map(|s| s.to_string()).collect(),
        ..NodeProto::default()
    }
}

/// Builds an ONNX model with these nodes and outputs, and the input `x: float32[batch, 4]`.
pub fn model(nodes: Vec<NodeProto>, outputs: &[&str]) -> ModelProto {
    let dim = |value| Dimension { value: Some(value), ..Dimension::default() };
    let dims =
        vec![dim(dimension::Value::DimParam("batch".into())), dim(dimension::Value::DimValue(4))];
    let shape = Some(TensorShapeProto { dim: dims });
    let tensor = TypeValue::TensorType(TensorType { elem_type: Some(1), shape });
    let ty = TypeProto { value: Some(tensor), ..TypeProto::default() };
    let info = |name: &str| ValueInfoProto { name: Some(name.into()), ..ValueInfoProto::default() };
    let graph = GraphProto {
        node: nodes,
        input: vec![ValueInfoProto { r#type: Some(ty), ..info("x") }],
        output: outputs.iter().map(|o| info(o)).collect(),
        ..GraphProto::default()
    };
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { version: Some(18), ..Default::default() }],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

#[test]
fn the_example_runs() {
    let nodes = vec![node("Relu", &["x"], &["y/out"]), node("Exp", &["y/out"], &["z"])];
    let file = TempFile::new("example", &model(nodes, &["y/out", "z"]).encode_to_vec());
    example::run(file.0.to_str().unwrap(), "x").unwrap();
    let model = Model::from_onnx(&file.0, &CompileOptions::default()).unwrap();
    let x = Tensor::from_slice(&[1, 4], &[-1f32, 0.0, 1.0, 2.0]).unwrap();
    let results = model.run_named(&[("x", x.clone())]).unwrap();
    assert_eq!(results[0].0, "y/out");
    assert_eq!(results[0].1.as_tensor().unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0, 1.0, 2.0]);
    let message = model.run_named(&[("w", x)]).unwrap_err().to_string();
    assert!(message.contains("no input 'w'"), "{message}");
    assert!(
        model.run_named(&[]).unwrap_err().to_string().contains("the value of input 'x' is missing")
    );
    // The names are kept in a saved program.
    let bytes = model.compiled().to_bytes().unwrap();
    let loaded = CompiledModule::from_bytes(&bytes).unwrap();
    assert_eq!(loaded.signature("main").unwrap().output_names, ["y/out", "z"]);
}

#[test]
fn error_and_report_contain_all_problems() {
    let nodes = vec![
        node("Frob", &["x"], &["a"]),
        node("Frob", &["x"], &["b"]),
        node("Relu", &["a"], &["y"]),
        node("Blub", &["y"], &["z"]),
    ];
    let proto = model(nodes, &["y", "z"]);
    let file = TempFile::new("unknown", &proto.encode_to_vec());
    let error = Model::from_onnx(&file.0, &CompileOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(error.diagnostics().len(), 3);
    let opened = onnx::Model::open(&file.0, Limits::default()).unwrap();
    let report = onnx::check(&opened, &ImportOptions::default());
    assert_eq!(report.operators["Frob"], 2);
    let findings: Vec<(&str, usize)> =
        report.findings.iter().map(|f| (f.operator.as_str(), f.nodes.len())).collect();
    assert_eq!(findings, [("Frob", 2), ("Blub", 1)]);
    let dir = std::env::temp_dir().join(format!("pliant-reduced-{}", std::process::id()));
    let files = report.write_reduced(&dir).unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
    let reduced = onnx::Model::open(&files[0], Limits::default()).unwrap();
    let reduced_report = onnx::check(&reduced, &ImportOptions::default());
    assert_eq!((reduced_report.nodes, &*reduced_report.findings[0].operator), (1, "Frob"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn import_limits_are_enforced() {
    let nodes: Vec<NodeProto> = (0..50)
        .map(|i| {
            let (a, b) = (if i == 0 { "x".into() } else { format!("v{}", i - 1) }, format!("v{i}"));
            node("Relu", &[&a], &[&b])
        })
        .collect();
    let bytes = model(nodes, &["v49"]).encode_to_vec();
    let error_of = |limits: Limits| {
        let opened = onnx::Model::from_bytes(bytes.clone(), limits);
        let imported = opened.and_then(|m| onnx::import(&m, &ImportOptions::default()));
        imported.err().map_or(String::new(), |e| e.to_string())
    };
    let all = Limits::default();
    assert_eq!(error_of(all), "");
    assert!(error_of(Limits { nodes: 49, ..all }).contains("50 nodes"));
    assert!(error_of(Limits { file_bytes: 100, ..all }).contains("the limit is 100"));
    assert!(error_of(Limits { decoded_bytes: 1000, ..all }).contains("once it is decoded"));
    let time = Some(std::time::Duration::ZERO);
    assert!(error_of(Limits { time, ..all }).contains("longer than the limit of 0 seconds"));
}
