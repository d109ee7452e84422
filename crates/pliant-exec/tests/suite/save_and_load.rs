//! Tests saving and loading of executables: round trips, and rejection of damaged files without a panic.

use std::sync::Arc;

use pliant_exec::{
    Arg, Constant, ExecBuilder, ExecError, Executable, LoopFuncInfo, LoopFuncParam, Param, Reg,
};
use pliant_tensor::{DType, Tensor};
use proptest::prelude::*;

fn sample() -> Executable {
    let mut b = ExecBuilder::new();
    b.loop_func(LoopFuncInfo {
        name: "add".into(),
        args: vec![
            LoopFuncParam::Tensor {
                dtype: Some(DType::Float32),
                ndim: Some(2),
                written: false,
                strided: true,
            },
            LoopFuncParam::Any,
            LoopFuncParam::Int(DType::Int64),
            LoopFuncParam::Float,
            LoopFuncParam::Bool,
        ],
        checks: vec!["the sizes differ".into()],
    });
    let weight = Tensor::from_slice(&[2, 3], &[1f32, 2., 3., 4., 5., 6.]).unwrap();
    let w = b.c(Constant::Tensor(weight));
    let s = b.c(Constant::Tensor(Tensor::scalar(7i64).unwrap()));
    let e = b.c(Constant::Tensor(Tensor::zeros(&[0, 4], DType::Bool).unwrap()));
    b.begin_function(
        "main",
        vec![Param::typed("x", "Tensor((\"n\", 3), \"float32\")"), Param::new("c")],
        "Object",
    );
    b.set_lines(Some(("model.py", 12, 12)));
    let branch = b.emit_if(Reg(1), 0);
    let big = b.imm(i64::MAX);
    let args = [b.r(0), w, big, b.c(Constant::Float(1.5)), b.c(Constant::Bool(true))];
    b.emit_call("add", &args, Reg::VOID);
    let args =
        [b.str("hi"), b.shape(&[1, 2]), b.c(Constant::DType(DType::Int8)), b.f("main"), s, e];
    b.emit_call("user.f", &args, Reg(2));
    let skip = b.emit_goto(0);
    let other = b.here();
    b.set_lines(Some(("<str>", 3, 5)));
    let args = [b.r(0), b.imm(-3), b.c(Constant::None)];
    b.emit_call("user.g", &args, Reg(2));
    let end = b.here();
    b.set_lines(None);
    b.emit_ret(Reg(2));
    b.set_lines(Some(("model.py", 20, 20)));
    b.patch(branch, other);
    b.patch(skip, end);
    b.end_function();
    b.set_kernels(b"# loops\n".to_vec());
    b.set_metadata("target", "cranelift");
    b.get().unwrap()
}

#[test]
fn executables_survive_serialization() {
    let exe = sample();
    let bytes = exe.to_bytes().unwrap();
    let back = Executable::from_bytes(&bytes).unwrap();
    assert_eq!(back.funcs(), exe.funcs());
    assert_eq!(back.as_text(), exe.as_text());
    assert_eq!((back.kernels(), back.metadata()), (exe.kernels(), exe.metadata()));
    assert_eq!(back.find("main"), exe.find("main"));
    let main = back.find("main").unwrap();
    let place = |at| back.source_location(main, at).map(|p| (p.function, p.file, p.line, p.last));
    let lines: Vec<_> = (0..6).map(place).collect();
    let (first, second) = (Some(("main", "model.py", 12, 12)), Some(("main", "<str>", 3, 5)));
    assert_eq!(lines, [first, first, first, first, second, None]);
    assert_eq!(back.source_location(back.find("add").unwrap(), 0), None);
    let Constant::Tensor(w) = &back.constants()[0] else { panic!("not a tensor") };
    assert_eq!(w.as_slice::<f32>().unwrap(), [1., 2., 3., 4., 5., 6.]);
    assert!(w.is_read_only() && (w.data_ptr() as usize).is_multiple_of(64));
    assert_eq!(back.to_bytes().unwrap(), bytes);
    let path = std::env::temp_dir().join(format!("pliant-exec-{}.plx", std::process::id()));
    exe.save(&path).unwrap();
    assert_eq!(Executable::load(&path).unwrap().to_bytes().unwrap(), bytes);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(Executable::load(&path), Err(ExecError::Io(_))));
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Arc::new(back));
}

#[test]
fn every_flipped_bit_is_detected() {
    let bytes = sample().to_bytes().unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << bit;
            assert!(Executable::from_bytes(&bad).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn every_truncation_is_detected() {
    let bytes = sample().to_bytes().unwrap();
    for len in 0..bytes.len() {
        let text = Executable::from_bytes(&bytes[..len]).unwrap_err().to_string();
        assert!(text.contains("truncated"), "{len}: {text}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(
        Executable::from_bytes(&longer)
            .unwrap_err()
            .to_string()
            .contains("longer than its header states")
    );
}

#[test]
fn other_files_and_versions_are_rejected() {
    let text = |bytes: &[u8]| Executable::from_bytes(bytes).unwrap_err().to_string();
    assert_eq!(
        text(b"\x7fELF\x02\x01\x01\0"),
        "the file is not a Pliant executable: it does not begin with PLIANTEX"
    );
    let mut bytes = sample().to_bytes().unwrap();
    bytes[8] = 9;
    assert!(text(&bytes).contains("format version 9"));
}

#[test]
fn errors_of_files_name_the_file_and_a_remedy() {
    let folder = std::env::temp_dir().join(format!("pliant-exec-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let good = sample().to_bytes().unwrap();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let mut newer = good.clone();
    newer[8] = 9;
    for (name, bytes, parts) in [
        ("x.npy", &b"\x93NUMPY"[..], ["it does not begin with PLIANTEX (help:", "wrote)"]),
        (
            "m.onnx",
            &b"\x08\x08"[..],
            ["(help: compile the model with pliant.compile(\"", "m.onnx\")"],
        ),
        ("m.plx", &damaged[..], ["the checksum of section", "(help: copy the file again"]),
        ("m.plx", &good[..50], ["the executable is truncated", "(help: copy the file again"]),
        ("m.plx", &newer[..], ["format version 9", "compile the model again"]),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = Executable::load(&path).unwrap_err();
        assert!(matches!(error, ExecError::InFile { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let error = Executable::load(&folder).unwrap_err().to_string();
    assert_eq!(error, format!("{}: the executable is not a regular file", folder.display()));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Builds a file with correct checksums whose program section contains the arbitrary bytes
/// `program`.
fn forge(program: &[u8]) -> Vec<u8> {
    let good = sample().to_bytes().unwrap();
    let entry = |i: usize| 32 + 24 * i;
    let read = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
    let part = |i: usize| &good[read(entry(i) + 8)..][..read(entry(i) + 16)];
    let parts = [program, part(1), part(2)];
    let mut out = good[..32 + 24 * 3].to_vec();
    let mut body = Vec::new();
    let base = out.len() + 4;
    for (i, part) in parts.iter().enumerate() {
        body.resize((base + body.len()).next_multiple_of(64) - base, 0);
        let offset = (base + body.len()) as u64;
        out[entry(i) + 4..][..4].copy_from_slice(&crc32fast_of(part).to_le_bytes());
        out[entry(i) + 8..][..8].copy_from_slice(&offset.to_le_bytes());
        out[entry(i) + 16..][..8].copy_from_slice(&(part.len() as u64).to_le_bytes());
        body.extend(*part);
    }
    out[24..32].copy_from_slice(&((base + body.len()) as u64).to_le_bytes());
    let sum = crc32fast_of(&out);
    out.extend(sum.to_le_bytes());
    out.extend(body);
    out
}

fn crc32fast_of(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 != 0 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

fn program_section() -> Vec<u8> {
    let good = sample().to_bytes().unwrap();
    let read = |at: usize| u64::from_le_bytes(good[at..at + 8].try_into().unwrap()) as usize;
    good[read(40)..][..read(48)].to_vec()
}

#[test]
fn invalid_programs_with_valid_checksums_are_rejected() {
    assert!(Executable::from_bytes(&forge(&program_section())).is_ok());
    assert!(Executable::from_bytes(&forge(b"")).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_rejected_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Executable::from_bytes(&bytes).is_err());
        let _ = Executable::from_bytes(&forge(&bytes));
    }

    #[test]
    fn damaged_program_sections_are_rejected_without_a_panic(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut program = program_section();
        for (at, value) in edits {
            let at = at.index(program.len());
            program[at] = value;
        }
        if let Ok(exe) = Executable::from_bytes(&forge(&program)) {
            let _ = (exe.as_text(), exe.as_python(), exe.stats());
        }
        program.truncate(cut.index(program.len()));
        let _ = Executable::from_bytes(&forge(&program));
    }

    #[test]
    fn integer_operands_of_any_size_survive_serialization(value in any::<i64>()) {
        let mut b = ExecBuilder::new();
        let arg: Arg = b.imm(value);
        b.begin_function("f", vec![], "");
        b.emit_call("g", &[arg], Reg(0));
        b.emit_ret(Reg(0));
        b.end_function();
        let exe = b.get().unwrap();
        prop_assert_eq!(Executable::from_bytes(&exe.to_bytes().unwrap()).unwrap().as_text(), exe.as_text());
    }
}

#[test]
fn a_wrong_file_length_is_detected_from_the_header() {
    let path = std::env::temp_dir().join(format!("pliant-exec-{}.bin", std::process::id()));
    let bytes = sample().to_bytes().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(Executable::load(&path).unwrap().to_bytes().unwrap(), bytes);
    // A sparse file that is larger than the available memory.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    if file.set_len(1 << 43).is_ok() {
        let error = Executable::load(&path).unwrap_err().to_string();
        assert!(error.contains("longer than its header states"), "{error}");
    }
    std::fs::write(&path, &bytes[..40]).unwrap();
    let error = Executable::load(&path).unwrap_err().to_string();
    assert!(error.contains("truncated"), "{error}");
    std::fs::remove_file(&path).unwrap();
}
