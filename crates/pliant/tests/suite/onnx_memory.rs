//! Memory use of importing a large model: its weights stay mapped.

use std::process::Command;

use pliant::onnx::proto::tensor_proto::DataLocation;
use pliant::onnx::proto::{StringStringEntryProto, TensorProto};
use pliant::onnx::{self, ImportOptions, Limits};
use prost::Message;

use crate::onnx::{model, node};

/// The number of weights, and the bytes of each.
const WEIGHTS: usize = 8;
const EACH: u64 = 256 << 20;
/// Marks the process to be measured: the other tests of a process use memory, too.
const MEASURED: &str = "PLIANT_TEST_MEASURED";

/// Bytes of anonymous memory of this process.
fn own_memory() -> u64 {
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
    data.set_len(WEIGHTS as u64 * EACH).unwrap();
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
            dims: vec![4, EACH as i64 / 16],
            data_type: Some(1),
            data_location: Some(DataLocation::External as i32),
            external_data: vec![
                location.clone(),
                entry("offset", i as u64 * EACH),
                entry("length", EACH),
            ],
            ..TensorProto::default()
        })
        .collect();
    let path = dir.join("model.onnx");
    std::fs::write(&path, proto.encode_to_vec()).unwrap();
    let before = own_memory();
    let opened = onnx::Model::open(&path, Limits::default()).unwrap();
    let imported = onnx::import(&opened, &ImportOptions::default()).unwrap();
    let taken = own_memory().saturating_sub(before);
    assert_eq!(imported.outputs.len(), WEIGHTS);
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(taken < 200 << 20, "the import of 2 GiB took {} MiB", taken >> 20);
    assert!(taken < 20 << 20, "far less than it may: {} KiB", taken >> 10);
}

#[test]
#[cfg(target_os = "linux")]
fn weights_of_two_gigabytes_are_not_copied() {
    if std::env::var_os(MEASURED).is_some() {
        return import_and_measure();
    }
    let this = std::env::current_exe().unwrap();
    let name = "onnx_memory::weights_of_two_gigabytes_are_not_copied";
    let done = Command::new(this).args([name, "--exact"]).env(MEASURED, "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}
