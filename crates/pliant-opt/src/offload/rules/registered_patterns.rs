//! Offload rules that a program registers at run time: each match of a pattern becomes a destination-passing call of a packed
//! function.

use std::borrow::Cow;
use std::sync::Arc;

use pliant_ir::relax::{Expr, Function, Var};
use pliant_pass::pattern::pattern_nodes::PatternKind;
use pliant_pass::pattern::{Pattern, RuleSet};
use pliant_pass::{PassContext, PassError};

use crate::offload::byoc::backend_patterns::FusionPattern;
use crate::offload::byoc::matched_bindings::{ReadInfo, members};
use crate::offload::offload_rule::{Decision, KeepReason, Offloaded, Rule, RuleInfo, Site, Stage};
use crate::offload::run_codegen::call_dps_packed;

/// Creates a rule that replaces matches of a pattern by calls of the packed function `kernel`. The arguments of a call are the
/// values that the patterns `inputs` have matched, in this order, followed by the outputs. The rule runs after layouts have been
/// rewritten and before the rules of this crate.
///
/// # Errors
/// If the pattern can never match, if an input is not part of the pattern or is the result of a call in it, or if the name of the
/// kernel is invalid.
pub fn pattern_rule(
    pattern: FusionPattern,
    inputs: Vec<Pattern>,
    kernel: impl Into<Cow<'static, str>>,
    doc: impl Into<Cow<'static, str>>,
) -> Result<RuleInfo, String> {
    let (name, kernel) = (Cow::Owned(pattern.name.clone()), kernel.into());
    for (index, input) in inputs.iter().enumerate() {
        if !pattern.pattern.contains(input) {
            return Err(format!(
                "input {index} of the offload rule '{name}' must be part of the pattern of the rule"
            ));
        }
        if matches!(input.kind(), PatternKind::Call { .. }) {
            return Err(format!(
                "input {index} of the offload rule '{name}' is the result of a call in its pattern, which the kernel replaces: an \
                 input must be computed outside of the match (help: declare the operands of this call as inputs instead)"
            ));
        }
    }
    if kernel.is_empty()
        || kernel.starts_with("vm.builtin.")
        || kernel.chars().any(char::is_control)
    {
        return Err(format!(
            "the name {kernel:?} of a packed function is invalid: it must not be empty, contain control characters or start with \
             'vm.builtin.'"
        ));
    }
    let rules = RuleSet::new([pattern.pattern.clone()], pliant_ops::registry());
    let rules =
        Arc::new(rules.map_err(|e| format!("the pattern of the rule '{name}' is invalid: {e}"))?);
    let symbol = kernel.clone().into_owned();
    let make = move |_: &PassContext| -> Result<Box<dyn Rule>, PassError> {
        let (pattern, inputs, symbol) = (pattern.clone(), inputs.clone(), symbol.clone());
        let rules = Arc::clone(&rules);
        Ok(Box::new(PatternRule { pattern, inputs, symbol, rules, read_info: None }))
    };
    let roots = Cow::Borrowed(&[][..]);
    let (doc, stage, make) = (doc.into(), Stage::Kernel, Arc::new(make));
    Ok(RuleInfo { name, kernel: Some(kernel), doc, stage, roots, library: false, make })
}

struct PatternRule {
    pattern: FusionPattern,
    inputs: Vec<Pattern>,
    symbol: String,
    rules: Arc<RuleSet>,
    /// The readers of the function's variables; `None` until they are first needed.
    read_info: Option<ReadInfo>,
}

impl Rule for PatternRule {
    fn begin(&mut self, _: &Function) {
        self.read_info = None;
    }

    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let (ops, root) = (site.ctx.ops, site.root);
        if root.cast.is_some() || !self.rules.may_match(site.func, root.value) {
            return Ok(Err(KeepReason::NotApplicable));
        }
        let read_info =
            self.read_info.get_or_insert_with(|| ReadInfo::of(site.func, ops, site.writers));
        let Some(matched) = self.rules.match_value(site.func, &read_info.defs, ops, root.value)
        else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let pattern_match = (&self.pattern, &matched);
        // Checks take a shared function and may add terms to its arenas.
        let mut shared = Arc::new(std::mem::replace(site.func, Function::empty()));
        let members = members(&mut shared, ops, read_info, pattern_match, root, site.replaced_vars);
        *site.func = Arc::unwrap_or_clone(shared);
        let members: Vec<Var> = match members? {
            Ok(members) => members.iter().map(|b| b.var).collect(),
            Err(reason) => return Ok(Err(reason.into())),
        };
        let inputs: Option<Vec<Expr>> = self.inputs.iter().map(|p| matched.get(p)).collect();
        let Some(inputs) = inputs else {
            return Ok(Err(
                "the pattern has matched without the part that is declared as an input of the kernel, so the input has no value"
                    .into(),
            ));
        };
        let is_computed_by_match =
            |&e: &Expr| read_info.origin(site.func, e).is_some_and(|v| members.contains(&v));
        if inputs.iter().any(is_computed_by_match) {
            return Ok(Err(
                "an input of the kernel is the result of a matched operator, which the kernel call would remove"
                    .into(),
            ));
        }
        let ty = site.func.expr_ty(root.value);
        let value = match call_dps_packed(site.func, &self.symbol, &inputs, ty) {
            Ok(value) => value,
            Err(reason) => return Ok(Err(KeepReason::Because(reason.into()))),
        };
        let other_members = members.iter().copied().filter(|&v| v != root.var);
        let removed =
            other_members.flat_map(|v| read_info.copies(v).iter().copied().chain([v])).collect();
        Ok(Ok(Offloaded { result: root.var, removed, value }))
    }
}
