//! # What it does
//! Replaces operators by kernel calls, according to the offload rules of one stage ([`crate::offload::rules`]). Each rule is
//! tried on every call of its operators, in the order of the table. Rules that a program registers come first. Remarks
//! ([`pliant_pass::optimization_remarks`]) report the replacements and the kept calls: calls that a rule is meant for but does
//! not replace, with the reason. `pliant explain` and `Model.explain` print the remarks.
//!
//! | pass | stage |
//! |---|---|
//! | `OffloadDequantized` | before constant folding, which would replace dequantized constants by float copies |
//! | `OffloadComposites` | after constant folding and before layouts are rewritten |
//! | `OffloadKernels` | after layouts are rewritten |
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 16), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.matmul(x, R.const([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16], [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 16), dtype="float32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         gv: R.Tensor((n, 16), dtype="float32") = R.call_tir(cls.matmul_packed, (x, metadata["relax.expr.Constant"][0]), out_sinfo=R.Tensor((n, 16), dtype="float32"))
//!         R.output(gv)
//!     return gv
//!
//! @T.prim_func(private=True)
//! def matmul_packed(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), var_matmul: T.handle):
//!     ...
//! ```
//!
//! # Requires
//! Nothing. It should run before [`LegalizeOps`](crate::lower::legalize_ops).
//!
//! # Keeps
//! Calls that no rule replaces. If library kernels are disabled, only rules that the program has registered apply.
//!
//! # Never
//! Moves an epilogue out of its dataflow block, or a call past another call that may write to its operands.

use std::cell::OnceCell;
use std::sync::Arc;

use pliant_ir::attr_names::{CODEGEN, COMPOSITE, PRIMITIVE};
use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::{Binding, Callee, ExprData, Function, Var};
use pliant_ir::{BaseFunc, IRModule, Op};
use pliant_pass::binding_rewrites::{Namer, reachable_seqs, rewrite_bindings};
use pliant_pass::optimization_remarks::{Remark, RemarkKind};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use pliant_sym::Proof;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::common::shared_loop_functions::LoopFunctions;
use crate::offload::offload_rule::{KeepReason, Offloaded, Rule, RuleInfo, Site, Stage};
use crate::offload::rules;

/// The pass that replaces operators by kernel calls, according to the offload rules of one stage. See the module documentation.
#[derive(Clone, Debug)]
pub struct OffloadKernels {
    /// The stage whose rules the pass applies.
    pub stage: Stage,
    /// The names of the rules to apply; `None` for all rules of the stage.
    pub only: Option<Vec<String>>,
}

impl OffloadKernels {
    /// Creates the pass that applies all rules of a stage.
    pub fn of(stage: Stage) -> Self {
        OffloadKernels { stage, only: None }
    }

    /// Returns the rules that the pass applies, in the order in which they are tried.
    fn rules(&self) -> Vec<RuleInfo> {
        let mut all = rules::rules();
        all.retain(|rule| rule.stage == self.stage);
        if let Some(only) = &self.only {
            all.retain(|rule| only.iter().any(|name| *name == rule.name));
        }
        all
    }
}

impl ModulePass for OffloadKernels {
    fn name(&self) -> &str {
        self.stage.pass()
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let is_enabled = |rule: &RuleInfo| ctx.kernels() || !rule.library;
        let rules =
            self.rules().into_iter().filter(is_enabled).map(|info| Ok(((info.make)(ctx)?, info)));
        let rules: Vec<_> = rules.collect::<Result<_, PassError>>()?;
        if rules.is_empty() {
            return Ok(module);
        }
        let (loop_functions, writers) = (LoopFunctions::new(&module), MayWrite::of(&module));
        let mut offloader = Offloader { rules, loop_functions, writers, ctx };
        for (name, func) in &mut module.functions {
            ctx.check_cancelled()?;
            let BaseFunc::Relax(func) = func else { continue };
            // Functions for external code generators are not changed.
            if [COMPOSITE, CODEGEN, PRIMITIVE].iter().any(|key| func.attrs.contains_key(*key)) {
                continue;
            }
            offloader.offload_function(name, func).map_err(|e| e.in_function(name))?;
        }
        offloader.loop_functions.insert_into(&mut module);
        Ok(module)
    }
}

/// Applies rules to the functions of a module.
struct Offloader<'a> {
    rules: Vec<(Box<dyn Rule>, RuleInfo)>,
    loop_functions: LoopFunctions,
    writers: MayWrite,
    ctx: &'a PassContext,
}

/// The replacements that one rule makes in one function.
#[derive(Default)]
struct Replacements {
    /// Maps each variable that a replacement computes to (bindings to insert before the new call, binding of the new call).
    calls: FxHashMap<Var, (Vec<Binding>, Binding)>,
    /// The variables whose bindings are removed, because kernel calls compute their values as intermediate results.
    removed: FxHashSet<Var>,
    /// The variables that the replacements compute or remove, including the variables of the replaced calls.
    replaced_vars: FxHashSet<Var>,
}

impl Offloader<'_> {
    /// Applies the rules to a function. The function is copied only if it calls an operator of a rule, and replaced only if it
    /// changes.
    fn offload_function(
        &mut self,
        name: &Arc<str>,
        func: &mut Arc<Function>,
    ) -> Result<(), PassError> {
        let (mut copy, mut changed): (Option<Function>, bool) = (None, false);
        let (mut missed, mut replaced) = (Vec::new(), FxHashSet::default());
        for rule_index in 0..self.rules.len() {
            let sites =
                candidate_sites(copy.as_ref().unwrap_or(func), &self.rules[rule_index].1.roots);
            if sites.is_empty() {
                continue;
            }
            let copy = copy.get_or_insert_with(|| (**func).clone());
            let replacements = self.apply_rule(rule_index, copy, name, &sites, &mut missed)?;
            changed |= !replacements.calls.is_empty();
            replaced.extend(replacements.replaced_vars);
        }
        // Drops remarks about calls that another rule replaced.
        missed.retain(|(root, _)| !replaced.contains(root));
        missed.into_iter().for_each(|(_, remark)| self.ctx.remarks.add(remark));
        if let Some(copy) = copy.filter(|_| changed) {
            *func = Arc::new(copy);
        }
        Ok(())
    }

    /// Tries a rule on all calls of its operators in a function.
    fn apply_rule(
        &mut self,
        rule_index: usize,
        func: &mut Function,
        name: &Arc<str>,
        sites: &[(Binding, bool)],
        missed: &mut Vec<(Var, Remark)>,
    ) -> Result<Replacements, PassError> {
        let (rule, info) = &mut self.rules[rule_index];
        rule.begin(func);
        let (uses, mut namer, mut replacements) =
            (OnceCell::new(), None::<Namer>, Replacements::default());
        for &(root, dataflow) in sites {
            self.ctx.check_cancelled()?;
            let mut site = Site {
                func: &mut *func,
                root,
                dataflow,
                replaced_vars: &replacements.replaced_vars,
                loop_functions: &mut self.loop_functions,
                ctx: self.ctx,
                writers: &self.writers,
                uses: &uses,
                namer: &mut namer,
                bindings: Vec::new(),
            };
            let decision = rule.apply(&mut site)?;
            let bindings = site.bindings;
            let remark = |kind, message: String| Remark {
                kind,
                rule: (*info.name).into(),
                function: name.clone(),
                subject: operator_name(func, root).into(),
                span: func.var(root.var).span,
                message,
            };
            match decision {
                Ok(offloaded) => {
                    let message = match &info.kernel {
                        Some(kernel) => format!("kernel {kernel}"),
                        None => "other operators".to_string(),
                    };
                    self.ctx.remarks.add(remark(RemarkKind::Applied, message));
                    replacements.add_replacement(func, (root, dataflow), bindings, offloaded)?;
                }
                Err(KeepReason::NotApplicable) => {}
                Err(KeepReason::Because(reason)) => {
                    missed.push((root.var, remark(RemarkKind::Missed, reason.into_owned())));
                }
            }
        }
        if !replacements.calls.is_empty() {
            replacements.rewrite(func)?;
            rule.finish(func, self.ctx, &self.writers)?;
        }
        Ok(replacements)
    }
}

impl Replacements {
    /// Adds the replacement of the call `root`. The new bindings get the source location of this call.
    fn add_replacement(
        &mut self,
        func: &mut Function,
        (root, dataflow): (Binding, bool),
        mut bindings: Vec<Binding>,
        Offloaded { result, removed, value }: Offloaded,
    ) -> Result<(), PassError> {
        let span = func.var(root.var).span;
        let mut last = Binding::bind(result, value);
        let (actual_ty, declared_ty) = (func.expr_ty(value), func.var(result).ty);
        match is_subtype(func, actual_ty, declared_ty) {
            Proof::Yes => {}
            Proof::Unknown => {
                let checked = Namer::new(func).bind(func, "lv", value, &mut bindings);
                last = Binding::match_cast(result, checked, declared_ty);
            }
            Proof::No => {
                let name = &func.var(result).name;
                return Err(PassError::internal(format!(
                    "an offload rule replaced the value of '{name}' by a kernel call whose type differs from that of '{name}'"
                )));
            }
        }
        for b in &bindings {
            let var = func.var_mut(b.var);
            (var.dataflow, var.span) = (dataflow, span);
        }
        self.replaced_vars.extend(removed.iter().copied().chain([result, root.var]));
        self.removed.extend(removed);
        self.calls.insert(result, (bindings, last));
        Ok(())
    }

    /// Replaces the bindings in the function by the collected kernel calls.
    fn rewrite(&self, func: &mut Function) -> Result<(), PassError> {
        rewrite_bindings(func, |_, binding, out| {
            match self.calls.get(&binding.var) {
                Some((before, call)) => {
                    out.extend(before);
                    // The cast of a match_cast is kept, because it may define symbols.
                    let cast = if call.cast.is_some() { call.cast } else { binding.cast };
                    out.push(Binding { cast, ..*call });
                }
                None if self.removed.contains(&binding.var) => {}
                None => out.push(binding),
            }
            Ok(())
        })
    }
}

/// Returns the bindings of a function that call one of the operators `roots`, or any operator if `roots` is empty, each with a
/// flag whether it is in a dataflow block.
fn candidate_sites(func: &Function, roots: &[Op]) -> Vec<(Binding, bool)> {
    let is_root = |b: &Binding| match func.expr(b.value) {
        ExprData::Call { callee: Callee::Op(op), .. } => roots.is_empty() || roots.contains(op),
        _ => false,
    };
    let mut out = Vec::new();
    for seq in reachable_seqs(func) {
        for &block in &func.seq(seq).blocks {
            let block = func.block(block);
            out.extend(block.bindings.iter().filter(|b| is_root(b)).map(|b| (*b, block.dataflow)));
        }
    }
    out
}

/// Returns the name of the operator that a binding calls, for remarks.
fn operator_name(func: &Function, binding: Binding) -> String {
    match func.expr(binding.value) {
        ExprData::Call { callee: Callee::Op(op), .. } => {
            op.name().strip_prefix("relax.").unwrap_or(op.name()).to_string()
        }
        _ => func.var(binding.var).name.to_string(),
    }
}
