//! Shared code of the tests: creates VMs from program builders.

use std::sync::Arc;

use pliant_exec::ExecBuilder;
use pliant_vm::{LoopFuncTable, PackedFunc, VirtualMachine, VmOptions};

pub fn builder() -> ExecBuilder {
    ExecBuilder::new()
}

#[allow(dead_code, reason = "not every test file uses every helper")]
pub fn build_vm(builder: ExecBuilder) -> VirtualMachine {
    build_vm_with(builder, Vec::new())
}

pub fn build_vm_with(
    builder: ExecBuilder,
    functions: Vec<(&'static str, PackedFunc)>,
) -> VirtualMachine {
    let functions = functions.into_iter().map(|(name, f)| (name.to_string(), f)).collect();
    let exe = builder.get().expect("the test's program is valid");
    let options = VmOptions { functions, ..VmOptions::default() };
    VirtualMachine::with_options(Arc::new(exe), LoopFuncTable::new(), options)
        .expect("the test's program links")
}
