//! The two things that passes ask of the IR's text tools: its script, and whether it is well-formed.

use pliant_ir::print::{PrintOptions, print_module};
use pliant_ir::relax::{Expr, ExprData};
use pliant_ir::verify::verify_module;
use pliant_ir::{IRModule, OpRegistry};

/// Constants of more bytes than this in all are left out of the text.
const MAX_CONSTANT_BYTES: usize = 1 << 20;

/// More findings than this help nobody.
const MAX_FINDINGS: usize = 5;

/// The script of a module. It holds the constants, so that it parses back, unless they are larger than a mebibyte.
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

/// What is wrong with a module, the first few findings; empty when it is well-formed.
pub fn verify(module: &IRModule, ops: &dyn OpRegistry) -> Vec<String> {
    let findings = verify_module(module, ops);
    findings.iter().filter(|d| d.is_error()).take(MAX_FINDINGS).map(|d| d.to_string()).collect()
}
