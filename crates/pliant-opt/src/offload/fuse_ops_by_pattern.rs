//! # What it does
//! Outlines bindings that match the pattern of a backend to private functions. The attribute `Composite` of such a function is the
//! name of the pattern. Patterns are tried in order, and a binding belongs to at most one match. With
//! [`annotate_codegen`](FuseOpsByPattern::annotate_codegen), each match becomes a local function of a function whose attribute
//! `Codegen` is the name of the backend, for [`RunCodegen`](crate::offload::run_codegen).
//!
//! Symbols that no tensor parameter defines are passed to the composite function as a shape.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(("n", 8), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.matmul(x, w)
//!         gv = R.add(lv, b)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! With the registered patterns of the backend `gemm`:
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(("n", 8), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             gv: R.Tensor((n, 8), "float32") = cls.fused_relax_matmul_relax_add(x, w, b)
//!             R.output(gv)
//!         return gv
//!
//!     @R.function(private=True)
//!     def fused_relax_matmul_relax_add(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(("n", 8), "float32"):
//!         R.func_attr({"Composite": "gemm.matmul_bias", "Primitive": 1})
//!         n = T.int64()
//!         with R.dataflow():
//!             lv = R.matmul(x, w)
//!             gv = R.add(lv, b)
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # Requires
//! Nothing. It runs before [`LegalizeOps`](crate::lower::legalize_ops), which lowers operators to loops.
//!
//! # Keeps
//! Every value that is read outside of its match: if such a value is not the root of the match, the match is not outlined.
//!
//! # Never
//! Outlines calls with side effects, moves a value past a call with side effects, or matches inside functions that already have
//! the attribute `Composite` or `Primitive`.

use std::sync::Arc;

use pliant_ir::attr_names::{CODEGEN, COMPOSITE, PRIMITIVE};
use pliant_ir::relax::visit::{bindings, copy_function};
use pliant_ir::relax::{Binding, BlockData, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, BaseFunc, IRModule, Span};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::pattern::{Defs, RuleSet};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::loop_function_calls::TirCall;
use crate::fuse::fuse_ops::OutlinedFunctions;
use crate::offload::byoc::backend_patterns::{FusionPattern, patterns_with_prefix};
use crate::offload::byoc::matched_bindings::{ReadInfo, is_copy, members};
use crate::offload::byoc::nest_composite_functions::nest_composites;
use crate::offload::byoc::outline_bindings::{Outlined, call_global, outline_bindings};

/// Approximate maximum length, in bytes, of the generated names of composite functions.
const MAX_NAME_LENGTH: usize = 100;

/// The pass that outlines matches of backend patterns as composite functions. See the module documentation.
pub struct FuseOpsByPattern {
    /// The backend patterns whose matches are outlined, in the order in which they are tried.
    pub patterns: Vec<FusionPattern>,
    /// Whether constants become part of the composite functions. If not, they are passed as arguments.
    pub bind_constants: bool,
    /// Whether each composite function is wrapped in a function with the attribute `Codegen`.
    pub annotate_codegen: bool,
}

impl Default for FuseOpsByPattern {
    /// Creates the pass with all registered patterns.
    fn default() -> Self {
        FuseOpsByPattern {
            patterns: patterns_with_prefix(""),
            bind_constants: true,
            annotate_codegen: false,
        }
    }
}

impl ModulePass for FuseOpsByPattern {
    fn name(&self) -> &str {
        "FuseOpsByPattern"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let (mut outlined_functions, writers) =
            (OutlinedFunctions::of(&module), MayWrite::of(&module));
        let mut rule_sets = Vec::new();
        for p in &self.patterns {
            let set = RuleSet::new([p.pattern.clone()], ctx.ops);
            rule_sets.push(set.map_err(|e| e.in_function(&format!("pattern {}", p.name)))?);
        }
        for (name, func) in &mut module.functions {
            let BaseFunc::Relax(func) = func else { continue };
            let excluded_attrs = [COMPOSITE, CODEGEN, PRIMITIVE];
            if excluded_attrs.iter().any(|key| func.attrs.contains_key(*key)) {
                continue;
            }
            for (pattern, rules) in self.patterns.iter().zip(&rule_sets) {
                ctx.check_cancelled()?;
                let (outlined_functions, writers) = (&mut outlined_functions, &writers);
                let mut fuser =
                    Fuser { pass: self, pattern, rules, ctx, outlined_functions, writers };
                fuser.outline_matches(func).map_err(|e| e.in_function(name))?;
            }
        }
        outlined_functions.add_to(&mut module);
        Ok(module)
    }
}

/// Outlines the matches of one pattern.
struct Fuser<'a> {
    pass: &'a FuseOpsByPattern,
    pattern: &'a FusionPattern,
    rules: &'a RuleSet,
    ctx: &'a PassContext,
    outlined_functions: &'a mut OutlinedFunctions,
    writers: &'a MayWrite,
}

impl Fuser<'_> {
    fn outline_matches(&mut self, func: &mut Arc<Function>) -> Result<(), PassError> {
        let read_info = ReadInfo::of(func, self.ctx.ops, self.writers);
        let (mut matched_vars, mut groups) = (FxHashSet::default(), FxHashMap::default());
        for (_, b) in bindings(func) {
            if b.cast.is_some() || !self.rules.may_match(func, b.value) {
                continue;
            }
            let Some(matched) =
                self.rules.match_value(func, &read_info.defs, self.ctx.ops, b.value)
            else {
                continue;
            };
            if let Ok(members) =
                members(func, self.ctx.ops, &read_info, (self.pattern, &matched), b, &matched_vars)?
            {
                matched_vars.extend(members.iter().map(|m| m.var));
                groups.insert(b.var, members);
            }
        }
        if !groups.is_empty() {
            self.replace_groups(Arc::make_mut(func), &read_info, &matched_vars, groups);
        }
        Ok(())
    }

    fn replace_groups(
        &mut self,
        func: &mut Function,
        read_info: &ReadInfo,
        matched_vars: &FxHashSet<Var>,
        mut groups: FxHashMap<Var, Vec<Binding>>,
    ) {
        let roots: FxHashSet<Var> = groups.keys().copied().collect();
        for seq in reachable_seqs(func) {
            for block in func.seq(seq).blocks.clone() {
                let old_bindings = std::mem::take(&mut func.block_mut(block).bindings);
                let mut new_bindings = Vec::with_capacity(old_bindings.len());
                for b in old_bindings {
                    // The interior variables of a match and their copies are read only inside of it.
                    let origin = if is_copy(func, &b) {
                        read_info.origin(func, b.value)
                    } else {
                        Some(b.var)
                    };
                    let is_interior =
                        origin.is_some_and(|v| matched_vars.contains(&v) && !roots.contains(&v));
                    match groups.remove(&b.var) {
                        Some(members) => {
                            let call = self.outline_group(func, &read_info.defs, b.var, &members);
                            new_bindings.push(call);
                        }
                        None if is_interior => {}
                        None => new_bindings.push(b),
                    }
                }
                func.block_mut(block).bindings = new_bindings;
            }
        }
    }

    /// Moves the bindings of a match to a new function. Returns a binding that calls this function and replaces the last binding of
    /// the match.
    fn outline_group(
        &mut self,
        func: &mut Function,
        defs: &Defs,
        root: Var,
        members: &[Binding],
    ) -> Binding {
        let Outlined { func: mut inner, args } =
            outline_bindings(func, defs, members, &[root], self.pass.bind_constants);
        inner.attrs.insert(COMPOSITE.into(), AttrValue::str(&self.pattern.name));
        inner.attrs.insert(PRIMITIVE.into(), AttrValue::Int(1));
        let hint = group_name(func, members);
        let name = if self.pass.annotate_codegen {
            let backend = self.pattern.backend();
            self.outlined_functions
                .add(&format!("{hint}_{backend}"), wrap_for_codegen(&hint, inner, backend))
        } else {
            self.outlined_functions.add(&hint, inner)
        };
        // The source location of the call covers all bindings of the match.
        let spans = members.iter().map(|b| func.var(b.var).span);
        func.var_mut(root).span = spans.fold(Span::NONE, Span::join);
        let ty = func.var(root).ty;
        Binding::bind(root, call_global(func, &name, &args, ty))
    }
}

/// Creates the name of the composite function for a match from the names of its operators.
fn group_name(func: &Function, members: &[Binding]) -> String {
    let mut name = String::from("fused");
    for b in members {
        let ExprData::Call { callee: Callee::Op(op), .. } = func.expr(b.value) else { continue };
        // A call of a loop function contributes the name of the loop function.
        let part = match TirCall::of(func, b.value) {
            Some(call) => call.callee.to_string(),
            None => op.name().replace('.', "_"),
        };
        if name.len() + part.len() < MAX_NAME_LENGTH {
            name.push('_');
            name.push_str(&part);
        }
    }
    name
}

/// Creates a function for the code generator of `backend` that calls the composite function `inner`, which becomes a local
/// function named `name`.
fn wrap_for_codegen(name: &str, inner: Function, backend: &str) -> Function {
    let mut f = copy_function(&inner);
    f.attrs.clear();
    f.attrs.insert(CODEGEN.into(), AttrValue::str(backend));
    let params = f.params().to_vec();
    let args: Vec<Expr> = params.into_iter().map(|p| f.var_expr(p)).collect();
    let (body, ty) = (f.body(), f.ret_ty());
    let call = call_global(&mut f, name, &args, ty);
    let var = f.add_var("gv", ty, false, Span::NONE);
    let result = f.var_expr(var);
    let block = f.add_block(BlockData { dataflow: true, bindings: vec![Binding::bind(var, call)] });
    let seq = f.seq_mut(body);
    (seq.blocks, seq.result) = (vec![block], result);
    let inner = Arc::new(inner);
    nest_composites(&mut f, |called| (called == name).then(|| inner.clone()));
    f
}
