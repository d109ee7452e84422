//! Tests the memory use of importing a large model: its weights must stay in mapped files.

use std::process::Command;

use pliant::onnx::proto::tensor_proto::DataLocation;
use pliant::onnx::proto::{StringStringEntryProto, TensorProto};
use pliant::onnx::{self, ImportOptions, Limits};
use prost::Message;

use crate::onnx_rust_api::{model, node};

/// The number of weights in the imported test model.
const WEIGHTS: usize = 8;
/// The size in bytes of each weight of the imported test model.
const WEIGHT_BYTES: u64 = 256 << 20;
/// The environment variable that makes a child process of the test measure the memory. The test process itself cannot measure
/// it, since other tests of this process use memory too.
const MEASURE_VARIABLE: &str = "PLIANT_TEST_MEASURED";

/// Returns the resident anonymous memory of this process in bytes.
fn anonymous_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("RssAnon:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

fn import_and_measure() {
    let dir = std::env::temp_dir().join(format!("pliant-large-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    // A sparse file: it has its length, but uses no disk space.
    let data = std::fs::File::create(dir.join("weights.bin")).unwrap();
    data.set_len(WEIGHTS as u64 * WEIGHT_BYTES).unwrap();
    let names: Vec<String> = (0..WEIGHTS).map(|i| format!("w{i}")).collect();
    let sums: Vec<String> = (0..WEIGHTS).map(|i| format!("s{i}")).collect();
    let nodes = (0..WEIGHTS).map(|i| node("MatMul", &["x", &names[i]], &[&sums[i]])).collect();
    let mut proto = model(nodes, &sums.iter().map(String::as_str).collect::<Vec<_>>());
    let entry = |key: &str, value: u64| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value.to_string()),
    };
    let location =
        StringStringEntryProto { key: Some("location".into()), value: Some("weights.bin".into()) };
    proto.graph.as_mut().unwrap().initializer = (0..WEIGHTS)
        .map(|i| TensorProto {
            name: Some(names[i].clone()),
            dims: vec![4, WEIGHT_BYTES as i64 / 16],
            data_type: Some(1),
            data_location: Some(DataLocation::External as i32),
            external_data: vec![
                location.clone(),
                entry("offset", i as u64 * WEIGHT_BYTES),
                entry("length", WEIGHT_BYTES),
            ],
            ..TensorProto::default()
        })
        .collect();
    let path = dir.join("model.onnx");
    std::fs::write(&path, proto.encode_to_vec()).unwrap();
    let before = anonymous_memory();
    let opened = onnx::Model::open(&path, Limits::default()).unwrap();
    let imported = onnx::import(&opened, &ImportOptions::default()).unwrap();
    let growth = anonymous_memory().saturating_sub(before);
    assert_eq!(imported.outputs.len(), WEIGHTS);
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(growth < 200 << 20, "the import of 2 GiB took {} MiB", growth >> 20);
    assert!(growth < 20 << 20, "the import should copy no weights, but took {} KiB", growth >> 10);
}

#[test]
#[cfg(target_os = "linux")]
fn weights_of_two_gigabytes_are_not_copied() {
    if std::env::var_os(MEASURE_VARIABLE).is_some() {
        return import_and_measure();
    }
    let this = std::env::current_exe().unwrap();
    let name = "onnx_import_memory::weights_of_two_gigabytes_are_not_copied";
    let child =
        Command::new(this).args([name, "--exact"]).env(MEASURE_VARIABLE, "1").output().unwrap();
    let child_output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && child_output.contains("1 passed"), "{child_output}");
}
