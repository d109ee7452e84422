//! Verifies the results of user-defined passes. Errors of such passes name a file that contains the input module.

use std::sync::Arc;

use pliant_ir::{BaseFunc, IRModule};

use crate::pass_context::PassContext;
use crate::pass_error::{PassError, Problem};
use crate::{module_dump_files, module_text};

/// The original error of a user-defined pass.
pub type Source = Arc<dyn std::error::Error + Send + Sync>;

/// Verifies the result of a user-defined pass, and returns it, or an error if it is not well-formed. The setting
/// `verify_passes=False` disables the check.
pub(crate) fn verify_result(
    pass: &str,
    before: &IRModule,
    after: IRModule,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    if !ctx.flag("verify_passes", true) || same_functions(before, &after) {
        return Ok(after);
    }
    let findings = module_text::verify(&after, ctx.ops);
    if findings.is_empty() || !module_text::verify(before, ctx.ops).is_empty() {
        // If the input is not well-formed, the result need not be: several passes may repair the module together.
        return Ok(after);
    }
    let problem = Problem::new(format!(
        "the pass '{pass}' returned a module that is not well-formed: {}",
        findings.join("; ")
    ));
    let (old, new) = (
        module_dump_files::write(pass, "before", before, ctx),
        module_dump_files::write(pass, "after", &after, ctx),
    );
    Err(PassError::User(vec![match (old, new) {
        (Some(old), Some(new)) => problem.with_help(format!(
            "compare the input of the pass, in the file {}, with its result, in the file {}",
            old.display(),
            new.display()
        )),
        _ => problem,
    }]))
}

/// Creates the error that a user-defined pass failed, and writes the input module of the pass to a file.
pub(crate) fn pass_failure(
    pass: &str,
    source: Source,
    before: &IRModule,
    ctx: &PassContext,
) -> PassError {
    let dump = module_dump_files::write(pass, "before", before, ctx);
    PassError::UserCode { origin: format!("pass '{pass}'"), source, dump }
}

/// Whether both modules contain the same function objects under the same names.
fn same_functions(a: &IRModule, b: &IRModule) -> bool {
    let same = |x: &BaseFunc, y: &BaseFunc| match (x, y) {
        (BaseFunc::Relax(x), BaseFunc::Relax(y)) => Arc::ptr_eq(x, y),
        (BaseFunc::Prim(x), BaseFunc::Prim(y)) => Arc::ptr_eq(x, y),
        _ => false,
    };
    a.functions.len() == b.functions.len()
        && a.functions.iter().zip(&b.functions).all(|((n, x), (m, y))| n == m && same(x, y))
}
