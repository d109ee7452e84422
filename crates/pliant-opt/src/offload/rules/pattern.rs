//! Rules of a program: a match of a pattern becomes a destination-passing call of a packed function.

use std::borrow::Cow;
use std::sync::Arc;

use pliant_ir::relax::{Expr, Function};
use pliant_pass::pattern::{Pattern, RuleSet};
use pliant_pass::{PassContext, PassError};

use crate::offload::byoc::members::{Reads, members};
use crate::offload::byoc::table::FusionPattern;
use crate::offload::rule::{Kept, Offloaded, Rule, RuleInfo, Site, Stage, Verdict};
use crate::offload::run_codegen::call_dps_packed;

/// A rule that replaces matches of a pattern by calls of the packed function `kernel`: it takes what `inputs` matched, in that
/// order, and the memory of the results. It runs after layouts are rewritten and before the rules of this crate.
///
/// # Errors
/// An input that is no part of the pattern.
pub fn pattern_rule(
    pattern: FusionPattern,
    inputs: Vec<Pattern>,
    kernel: impl Into<Cow<'static, str>>,
    doc: impl Into<Cow<'static, str>>,
) -> Result<RuleInfo, String> {
    let (name, kernel) = (Cow::Owned(pattern.name.clone()), kernel.into());
    if let Some(at) = inputs.iter().position(|input| !pattern.pattern.contains(input)) {
        return Err(format!("input {at} of the rule '{name}' is no part of its pattern"));
    }
    let symbol = kernel.clone().into_owned();
    let make = move |ctx: &PassContext| -> Result<Box<dyn Rule>, PassError> {
        let rules = RuleSet::new([pattern.pattern.clone()], ctx.ops)
            .map_err(|e| e.in_function(&format!("rule {}", pattern.name)))?;
        let (pattern, inputs, symbol) = (pattern.clone(), inputs.clone(), symbol.clone());
        Ok(Box::new(PatternRule { pattern, inputs, symbol, rules, reads: None }))
    };
    let roots = Cow::Borrowed(&[][..]);
    let (doc, stage, make) = (doc.into(), Stage::Kernel, Arc::new(make));
    Ok(RuleInfo { name, kernel, doc, stage, roots, make })
}

struct PatternRule {
    pattern: FusionPattern,
    inputs: Vec<Pattern>,
    symbol: String,
    rules: RuleSet,
    /// Who reads the variables of the function, once it is needed.
    reads: Option<Reads>,
}

impl Rule for PatternRule {
    fn begin(&mut self, _: &Function) {
        self.reads = None;
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Verdict, PassError> {
        let (ops, root) = (site.ctx.ops, site.root);
        if root.cast.is_some() || !self.rules.may_match(site.func, root.value) {
            return Ok(Err(Kept::NotMeant));
        }
        let reads = self.reads.get_or_insert_with(|| Reads::of(site.func, ops, site.writers));
        let Some(found) = self.rules.match_value(site.func, &reads.defs, ops, root.value) else {
            return Ok(Err(Kept::NotMeant));
        };
        let matched = (&self.pattern, &found);
        // Checks see a shared function and may add to its arenas.
        let mut shared = Arc::new(std::mem::replace(site.func, Function::empty()));
        let members = members(&mut shared, ops, reads, matched, root, site.taken);
        *site.func = Arc::unwrap_or_clone(shared);
        let Some(members) = members? else {
            let reason = "the check of the rule refuses the match, or something outside of it reads a part of it";
            return Ok(Err(reason.into()));
        };
        let inputs: Option<Vec<Expr>> = self.inputs.iter().map(|p| found.get(p)).collect();
        let Some(inputs) = inputs else {
            return Ok(Err("the match has no value for an input of the kernel".into()));
        };
        let ty = site.func.expr_ty(root.value);
        let value = match call_dps_packed(site.func, &self.symbol, &inputs, ty) {
            Ok(value) => value,
            Err(reason) => return Ok(Err(Kept::Because(reason.into()))),
        };
        let inside = members.iter().map(|b| b.var).filter(|&v| v != root.var).collect();
        Ok(Ok(Offloaded { result: root.var, inside, value }))
    }
}
