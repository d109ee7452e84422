//! Checks that the vector intrinsics of kernels are inlined. In a function without its target feature, such as a
//! closure that the compiler did not inline, an intrinsic is a function call with operands in memory, which is a
//! hundred times slower.

use std::process::Command;

/// Returns the kernel functions in a disassembly that call 256-bit or 512-bit intrinsics.
fn callers_of_intrinsics(disassembly: &str) -> Vec<String> {
    let (mut function, mut callers) = ("", Vec::new());
    for line in disassembly.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once(" <")) {
            function = name;
        }
        let wrapper =
            line.contains("core_arch") && ["_mm256_", "_mm512_"].iter().any(|i| line.contains(i));
        if wrapper && function.contains("pliant_kernels") && line.contains("call") {
            callers.push(function.to_string());
        }
    }
    callers.dedup();
    callers
}

#[test]
#[cfg(target_arch = "x86_64")]
fn kernels_call_no_intrinsics() {
    let program = std::env::current_exe().expect("the test program has a path");
    let output =
        Command::new("objdump").args(["--disassemble", "--no-show-raw-insn"]).arg(program).output();
    let output = output.expect("the C compiler's tools include objdump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let disassembly = String::from_utf8_lossy(&output.stdout);
    assert!(disassembly.contains("pliant_kernels"), "the program contains the kernels");
    assert_eq!(callers_of_intrinsics(&disassembly), Vec::<String>::new());
}

#[test]
fn call_of_an_intrinsic_is_found() {
    let disassembly = "\
0000000000001000 <_ZN14pliant_kernels7softmax3row17h0E>:
    1000:\tcall   2000 <_RNvNtNtNtCs_4core9core_arch3x863avx13__mm256_set1_ps>
    1005:\tret
0000000000001100 <_ZN7rustfft3avx17h1E>:
    1100:\tcall   2000 <_RNvNtNtNtCs_4core9core_arch3x863avx13__mm256_set1_ps>
";
    assert_eq!(callers_of_intrinsics(disassembly), ["_ZN14pliant_kernels7softmax3row17h0E"]);
}
