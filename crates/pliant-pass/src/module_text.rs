//! Prints a module as a script, and describes violations of the IR's rules as text, for dumps and error messages.

use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::verify::verify_module;
use pliant_ir::{IRModule, OpRegistry};

/// Maximum total size of the constants that are included in a script, in bytes.
const MAX_CONSTANT_BYTES: usize = 1 << 20;

/// Maximum number of violations that [`verify`] reports.
const MAX_FINDINGS: usize = 5;

/// Prints a module as a script. The script contains the constants, so that it can be parsed again, unless they exceed 1 MiB in
/// total.
pub fn module_text(module: &IRModule, ops: &dyn OpRegistry) -> String {
    let mut options = PrintOptions::complete();
    options.show_meta = constant_bytes(module) <= MAX_CONSTANT_BYTES;
    print_module(module, ops, &options)
}

fn constant_bytes(module: &IRModule) -> usize {
    let mut total = 0usize;
    for (_, func) in module.relax_funcs() {
        for id in 0..func.num_exprs() {
            if let ExprData::Constant(c) = func.expr(Expr::from_u32(id as u32)) {
                total = total.saturating_add(func.const_tensor(*c).nbytes());
            }
        }
    }
    total
}

/// Verifies a module and describes its first few violations of the IR's rules. The list is empty if the module is well-formed.
pub fn verify(module: &IRModule, ops: &dyn OpRegistry) -> Vec<String> {
    let findings = verify_module(module, ops);
    findings.iter().filter(|d| d.is_error()).take(MAX_FINDINGS).map(|d| d.to_string()).collect()
}
