//! Passes from outside of Pliant: what they make is verified, and their mistakes are told with the module that they
//! received, in a file.

use std::sync::Arc;

use pliant_ir::{BaseFunc, IRModule};

use crate::context::PassContext;
use crate::error::{PassError, Problem};
use crate::{dump, text};

/// What a foreign pass failed with.
pub type Source = Arc<dyn std::error::Error + Send + Sync>;

/// The result of a foreign pass, if it is well-formed. The setting `verify_passes=False` takes it as it is.
pub(crate) fn verified(
    pass: &str,
    before: &IRModule,
    after: IRModule,
    ctx: &PassContext,
) -> Result<IRModule, PassError> {
    if !ctx.flag("verify_passes", true) || same_functions(before, &after) {
        return Ok(after);
    }
    let findings = text::verify(&after, ctx.ops);
    if findings.is_empty() || !text::verify(before, ctx.ops).is_empty() {
        // A module that was broken before may stay so: passes may repair it step by step.
        return Ok(after);
    }
    let problem = Problem::new(format!(
        "the pass '{pass}' returned a module that is not well-formed: {}",
        findings.join("; ")
    ));
    let (old, new) =
        (dump::write(pass, "before", before, ctx), dump::write(pass, "after", &after, ctx));
    Err(PassError::User(vec![match (old, new) {
        (Some(old), Some(new)) => problem.with_help(format!(
            "the module as the pass received it is in {}, and what it returned in {}",
            old.display(),
            new.display()
        )),
        _ => problem,
    }]))
}

/// The failure of a foreign pass, with the module as it received it in a file.
pub(crate) fn failed(
    pass: &str,
    source: Source,
    before: &IRModule,
    ctx: &PassContext,
) -> PassError {
    let dump = dump::write(pass, "before", before, ctx);
    PassError::Foreign { origin: format!("pass '{pass}'"), source, dump }
}

/// Whether both hold the very same functions and attributes.
fn same_functions(a: &IRModule, b: &IRModule) -> bool {
    let same = |x: &BaseFunc, y: &BaseFunc| match (x, y) {
        (BaseFunc::Relax(x), BaseFunc::Relax(y)) => Arc::ptr_eq(x, y),
        (BaseFunc::Prim(x), BaseFunc::Prim(y)) => Arc::ptr_eq(x, y),
        _ => false,
    };
    a.functions.len() == b.functions.len()
        && a.functions.iter().zip(&b.functions).all(|((n, x), (m, y))| n == m && same(x, y))
}
