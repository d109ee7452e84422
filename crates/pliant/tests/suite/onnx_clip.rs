//! Tests `Clip` and the clipping of fused operators: a NaN bound is ignored, as in ONNX Runtime.

use pliant::onnx::proto::tensor_proto::DataType;
use pliant::onnx::proto::type_proto::{Tensor as TensorType, Value as TypeValue};
use pliant::onnx::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto::AttributeType,
};
use pliant::onnx::{self, ImportOptions, Limits};
use pliant::{CompileOptions, DType, Model, Tensor, Value};
use prost::Message;

use crate::onnx_rust_api::node;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;
const X: [f64; 7] = [-INF, -3.0, 0.0, NAN, 3.0, INF, 7.0];

/// Pairs of a lower and an upper bound of `Clip`, each with the result that ONNX Runtime 1.32 computes for the input [`X`].
const CASES: [([f64; 2], [f64; 7]); 5] = [
    ([NAN, NAN], X),
    ([NAN, 2.0], [-INF, -3.0, 0.0, NAN, 2.0, 2.0, 2.0]),
    ([-1.0, NAN], [-1.0, -1.0, 0.0, NAN, 3.0, INF, 7.0]),
    ([-1.0, 2.0], [-1.0, -1.0, 0.0, NAN, 2.0, 2.0, 2.0]),
    ([2.0, -1.0], [-1.0, -1.0, -1.0, NAN, -1.0, -1.0, -1.0]),
];

/// Encodes numbers as raw tensor data of an element type.
fn bytes(dtype: DType, numbers: &[f64]) -> Vec<u8> {
    let context = |&v: &f64| match dtype {
        DType::Float64 => v.to_le_bytes().to_vec(),
        DType::Float32 => (v as f32).to_le_bytes().to_vec(),
        DType::Float16 => pliant_tensor::round_to_f16(v).to_le_bytes().to_vec(),
        _ => pliant_tensor::round_to_bf16(v).to_le_bytes().to_vec(),
    };
    numbers.iter().flat_map(context).collect()
}

fn onnx_type(dtype: DType) -> DataType {
    match dtype {
        DType::Float64 => DataType::Double,
        DType::Float32 => DataType::Float,
        DType::Float16 => DataType::Float16,
        _ => DataType::Bfloat16,
    }
}

fn info(name: &str, dtype: DType, dims: &[i64]) -> ValueInfoProto {
    use pliant::onnx::proto::tensor_shape_proto::{Dimension, dimension::Value::DimValue};
    let dim = |&d: &i64| Dimension { value: Some(DimValue(d)), ..Dimension::default() };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = TensorType { elem_type: Some(onnx_type(dtype) as i32), shape };
    let value = Some(TypeValue::TensorType(tensor));
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value, ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}

fn float(name: &str, value: f64) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Float as i32),
        f: Some(value as f32),
        ..AttributeProto::default()
    }
}

/// Runs an ONNX model of one node on inputs of an element type. `constants` are its initializers.
fn run(
    node: NodeProto,
    opset: i64,
    dtype: DType,
    inputs: &[(&str, &[f64], &[i64])],
    constants: &[(&str, f64)],
) -> Vec<f64> {
    let initializer = |&(name, value): &(&str, f64)| TensorProto {
        name: Some(name.into()),
        data_type: Some(onnx_type(dtype) as i32),
        raw_data: Some(bytes(dtype, &[value]).into()),
        ..TensorProto::default()
    };
    let graph = GraphProto {
        node: vec![node],
        input: inputs.iter().map(|(name, _, dims)| info(name, dtype, dims)).collect(),
        output: vec![ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() }],
        initializer: constants.iter().map(initializer).collect(),
        ..GraphProto::default()
    };
    let opset_of = |domain: &str, version| OperatorSetIdProto {
        domain: Some(domain.into()),
        version: Some(version),
    };
    let proto = ModelProto {
        ir_version: Some(8),
        opset_import: vec![opset_of("", opset), opset_of("com.microsoft", 1)],
        graph: Some(graph),
        ..ModelProto::default()
    };
    let file = onnx::Model::from_bytes(proto.encode_to_vec(), Limits::default()).unwrap();
    let module = onnx::import(&file, &ImportOptions::default()).unwrap().module;
    let model = Model::compile(module, &CompileOptions::default()).unwrap();
    let feed = |(_, numbers, dims): &(&str, &[f64], &[i64])| {
        Value::Tensor(Tensor::from_bytes(dims, dtype, &bytes(dtype, numbers)).unwrap())
    };
    let args: Vec<Value> = inputs.iter().map(feed).collect();
    model.run("main", &args).unwrap().as_tensor().unwrap().to_f64_vec().unwrap()
}

fn assert_same(result: &[f64], expected: &[f64], context: &str) {
    let equal = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
    let all = result.len() == expected.len() && result.iter().zip(expected).all(equal);
    assert!(all, "{context}: {result:?}, expected {expected:?}");
}

#[test]
fn a_nan_bound_is_ignored() {
    for dtype in [DType::Float32, DType::Float64, DType::Float16, DType::BFloat16] {
        for ([low, high], expected) in CASES {
            let context = format!("{dtype} {low} {high}");
            let clip = || node("Clip", &["x", "low", "high"], &["y"]);
            let (x, both): ((&str, &[f64], &[i64]), _) = (("x", &X, &[7]), [low, high]);
            let constants = [("low", low), ("high", high)];
            assert_same(&run(clip(), 13, dtype, &[x], &constants), &expected, &context);
            let inputs_with_bounds = [x, ("low", &both[..1], &[]), ("high", &both[1..], &[])];
            assert_same(&run(clip(), 13, dtype, &inputs_with_bounds, &[]), &expected, &context);
        }
    }
}

#[test]
fn a_nan_attribute_is_ignored() {
    for ([low, high], expected) in CASES {
        let mut clip = node("Clip", &["x"], &["y"]);
        clip.attribute = vec![float("min", low), float("max", high)];
        let result = run(clip, 6, DType::Float32, &[("x", &X, &[7])], &[]);
        assert_same(&result, &expected, &format!("{low} {high}"));
    }
}

#[test]
fn a_nan_bound_of_a_fused_clip_is_ignored() {
    let x = [-3.0, 0.0, 3.0, 7.0];
    for ([low, high], expected) in [
        ([NAN, NAN], [-3.0, 0.0, 3.0, 7.0]),
        ([NAN, 2.0], [-3.0, 0.0, 2.0, 2.0]),
        ([-1.0, NAN], [-1.0, 0.0, 3.0, 7.0]),
        ([2.0, -1.0], [-1.0, -1.0, -1.0, -1.0]),
    ] {
        let mut fused = node("FusedConv", &["x", "w"], &["y"]);
        fused.domain = Some("com.microsoft".into());
        let name = AttributeProto {
            name: Some("activation".into()),
            r#type: Some(AttributeType::String as i32),
            s: Some(b"Clip".to_vec().into()),
            ..AttributeProto::default()
        };
        let bounds = AttributeProto {
            name: Some("activation_params".into()),
            r#type: Some(AttributeType::Floats as i32),
            floats: vec![low as f32, high as f32],
            ..AttributeProto::default()
        };
        fused.attribute = vec![name, bounds];
        let inputs: [(&str, &[f64], &[i64]); 2] =
            [("x", &x, &[1, 1, 1, 4]), ("w", &[1.0], &[1, 1, 1, 1])];
        let result = run(fused, 13, DType::Float32, &inputs, &[]);
        assert_same(&result, &expected, &format!("{low} {high}"));
    }
}
