//! # What it does
//! Operator fusion: groups calls of loop functions that can run as one. Each group becomes a private function with the attribute
//! `Primitive`, which [`FuseTIR`](crate::fuse::fuse_tir) merges into one loop function. Elementwise operations are fused into their
//! readers, chains of injective operations are merged, and elementwise operations on the outputs of reductions and matmuls are
//! fused into these as an epilogue.
//!
//! A value is fused into its post-dominator in the dataflow graph, so that nothing outside of a group reads intermediate values
//! of the group. The fusion patterns that [`AnnotateTIROpPattern`](crate::fuse::annotate_tir_op_pattern) assigns decide which
//! calls are fused; no cost is computed here. Whether a fused elementwise stage is recomputed by its readers or stored is decided
//! later, by its cost (`pliant-tir/src/inline_elementwise_stages.rs`). The setting `relax.FuseOps.max_depth` limits the number of
//! calls of a group; the default is 64. Equal groups share one function. Symbols that no tensor of a group defines are passed to
//! its function as a shape.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(a: T.handle, b: T.handle):
//!         T.func_attr({"op_pattern": 0})
//!         n = T.int64()
//!         A = T.match_buffer(a, (n,), "float32")
//!         B = T.match_buffer(b, (n,), "float32")
//!         for i in range(n):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(n, i)
//!                 B[vi] = T.exp(A[vi])
//!
//!     @R.function
//!     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
//!             gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((n,), "float32"))
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def exp(a: T.handle, b: T.handle):
//!         T.func_attr({"op_pattern": 0})
//!         n = T.int64()
//!         A = T.match_buffer(a, (n,), "float32")
//!         B = T.match_buffer(b, (n,), "float32")
//!         for i in range(n):
//!             with T.block("exp"):
//!                 vi = T.axis.spatial(n, i)
//!                 B[vi] = T.exp(A[vi])
//!
//!     @R.function
//!     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             gv: R.Tensor((n,), "float32") = cls.fused_exp_exp(x)
//!             R.output(gv)
//!         return gv
//!
//!     @R.function(private=True)
//!     def fused_exp_exp(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         R.func_attr({"Primitive": 1})
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             lv = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n,), "float32"))
//!             gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((n,), "float32"))
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # Requires
//! [`AnnotateTIROpPattern`](crate::fuse::annotate_tir_op_pattern): functions without a pattern are opaque.
//!
//! # Keeps
//! Everything outside of dataflow blocks, and every value that is read outside of its group.
//!
//! # Never
//! Fuses a call whose tensors do not provably have the shapes that the loop function requires (the call checks them at run time),
//! a call with side effects, or a `match_cast`.

mod dataflow_graph;
mod fusion_groups;
pub(crate) mod outline_fusion_group;

use std::sync::Arc;

use pliant_ir::attr_names::PRIMITIVE;
use pliant_ir::relax::{Binding, Block, Callee, Expr, Function, TypeData};
use pliant_ir::structural_equality::{equal_functions, hash_function};
use pliant_ir::{AttrValue, Attrs, BaseFunc, IRModule, Span};
use pliant_pass::binding_rewrites::reachable_seqs;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::FxHashMap;

use crate::analysis::Effects;
use crate::analysis::loop_function_calls::TirCall;
use dataflow_graph::{FusibleFunctions, Graph};
use fusion_groups::Groups;
use outline_fusion_group::{Outlined, outline_group};

/// Default for the maximum number of calls of loop functions that are fused into one group. The setting [`MAX_DEPTH_KEY`] overrides
/// it.
const MAX_CALLS: usize = 64;

/// The name of the setting for the maximum number of calls of loop functions that are fused into one group.
pub const MAX_DEPTH_KEY: &str = "relax.FuseOps.max_depth";

/// Maximum length in bytes of the generated name of the function that contains a group of fused calls.
const MAX_NAME_LENGTH: usize = 80;

/// The pass that groups calls of loop functions that are cheaper if they run as one (operator fusion). See the module
/// documentation.
pub struct FuseOps {
    /// The optimization level. 0 fuses nothing, -1 uses the level of the context.
    pub fuse_opt_level: i32,
}

impl Default for FuseOps {
    fn default() -> Self {
        FuseOps { fuse_opt_level: -1 }
    }
}

impl ModulePass for FuseOps {
    fn name(&self) -> &str {
        "FuseOps"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let level = match self.fuse_opt_level {
            -1 => i32::from(ctx.opt_level),
            level => level,
        };
        let fusible = FusibleFunctions::new(&module);
        if level == 0 || fusible.is_empty() {
            return Ok(module);
        }
        let max_calls = ctx.config.get(MAX_DEPTH_KEY).and_then(AttrValue::as_int);
        let max_calls = max_calls.and_then(|v| usize::try_from(v).ok()).unwrap_or(MAX_CALLS);
        let (mut outlined_functions, effects) =
            (OutlinedFunctions::of(&module), Effects::of(&module, ctx.ops));
        for func in module.functions.values_mut() {
            let BaseFunc::Relax(func) = func else { continue };
            // Functions of groups that an earlier run outlined are not changed.
            if !func.attrs.contains_key(PRIMITIVE) {
                let settings = FusionSettings { fusible: &fusible, effects: &effects, max_calls };
                fuse_function(func, &settings, &mut outlined_functions, ctx)?;
            }
        }
        outlined_functions.add_to(&mut module);
        Ok(module)
    }
}

/// Collects the functions that are outlined from groups. Equal functions are added once, and all get unique names.
#[derive(Default)]
pub(crate) struct OutlinedFunctions {
    functions: Vec<(Arc<str>, Function)>,
    /// Maps each hash to the indices in `functions` of the functions with this hash.
    by_hash: FxHashMap<u64, Vec<usize>>,
    /// Maps each name, including all names of the module, to the number of names that were derived from it.
    name_counts: FxHashMap<Arc<str>, u32>,
}

impl OutlinedFunctions {
    /// Creates an empty collection. New functions get names that the module does not use.
    pub fn of(module: &IRModule) -> Self {
        let name_counts = module.functions.keys().map(|name| (name.clone(), 0)).collect();
        OutlinedFunctions { name_counts, ..OutlinedFunctions::default() }
    }

    /// Adds all collected functions to the module.
    pub fn add_to(self, module: &mut IRModule) {
        for (name, func) in self.functions {
            module.insert(name, func);
        }
    }

    /// Adds a function with a name derived from `hint`, and returns the name. If an equal function exists, returns its name.
    pub fn add(&mut self, hint: &str, func: Function) -> Arc<str> {
        let hash = hash_function(&func);
        for &i in self.by_hash.get(&hash).into_iter().flatten() {
            if equal_functions(&self.functions[i].1, &func).is_ok() {
                return self.functions[i].0.clone();
            }
        }
        let mut name: Arc<str> = hint.into();
        while self.name_counts.contains_key(&name) {
            let count = self.name_counts.entry(hint.into()).or_insert(0);
            *count += 1;
            name = format!("{hint}{count}").into();
        }
        self.name_counts.insert(name.clone(), 0);
        self.by_hash.entry(hash).or_default().push(self.functions.len());
        self.functions.push((name.clone(), func));
        name
    }
}

/// The properties of the module that fusion uses, and the maximum number of calls in a group.
struct FusionSettings<'a> {
    fusible: &'a FusibleFunctions,
    effects: &'a Effects,
    max_calls: usize,
}

/// Fuses calls in all dataflow blocks of a function.
fn fuse_function(
    func: &mut Arc<Function>,
    settings: &FusionSettings<'_>,
    outlined_functions: &mut OutlinedFunctions,
    ctx: &PassContext,
) -> Result<(), PassError> {
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            if !func.block(block).dataflow {
                continue;
            }
            ctx.check_cancelled()?;
            fuse_block(Arc::make_mut(func), block, settings, outlined_functions);
        }
    }
    Ok(())
}

fn fuse_block(
    func: &mut Function,
    block: Block,
    settings: &FusionSettings<'_>,
    outlined_functions: &mut OutlinedFunctions,
) {
    let graph = Graph::new(func, block, settings.fusible, settings.effects);
    let mut groups = Groups::of(&graph, settings.max_calls);
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    for node in 0..graph.nodes.len() as u32 {
        members[groups.find(node) as usize].push(node);
    }
    // The replacement of each binding; `None` for bindings that move to a group's function.
    let mut replacements: Vec<Option<Binding>> = graph.bindings.iter().map(|&b| Some(b)).collect();
    for group in members {
        let group = members_without_foreign_fields(func, &graph, group);
        if group.iter().filter(|&&n| graph.calls[n as usize]).count() < 2 {
            continue;
        }
        let bindings: Vec<Binding> = group.iter().map(|&n| graph.bindings[n as usize]).collect();
        let name = group_name(func, &bindings);
        let Outlined { func: inner, args, sizes } = outline_group(func, &bindings);
        let name = outlined_functions.add(&name, inner);
        let value = call_group(
            func,
            &name,
            args,
            &sizes,
            bindings.last().expect("a fused group contains at least two calls"),
        );
        let (&last, interior) =
            group.split_last().expect("a fused group contains at least two calls");
        // The call represents the source locations of the whole group.
        let spans = bindings.iter().map(|b| func.var(b.var).span);
        let span = spans.fold(Span::NONE, Span::join);
        func.var_mut(graph.bindings[last as usize].var).span = span;
        interior.iter().for_each(|&n| replacements[n as usize] = None);
        replacements[last as usize] = Some(Binding::bind(graph.bindings[last as usize].var, value));
    }
    func.block_mut(block).bindings = replacements.into_iter().flatten().collect();
}

/// Returns the bindings of a group of fused calls, except for bindings that read a field of a tuple from outside of the group.
fn members_without_foreign_fields(func: &Function, graph: &Graph, group: Vec<u32>) -> Vec<u32> {
    let is_member = |n: u32| group.binary_search(&n).is_ok();
    let keep = |n: &u32| {
        let mut all_are_members = true;
        if !graph.calls[*n as usize] {
            let value = graph.bindings[*n as usize].value;
            pliant_pass::binding_rewrites::for_each_operand_var(func, value, &mut |v| {
                all_are_members &= graph.index.get(&v).is_some_and(|&from| is_member(from));
            });
        }
        all_are_members
    };
    let kept: Vec<u32> = group.iter().copied().filter(keep).collect();
    debug_assert!(
        kept.split_last().is_none_or(|(_, inner)| inner.iter().all(|&n| {
            let node = &graph.nodes[n as usize];
            !node.escapes && node.readers.iter().all(|r| kept.binary_search(&r.0).is_ok())
        })),
        "only the last of a group is read outside"
    );
    kept
}

/// Creates the name of the function that contains a group of fused calls, from the names of the called loop functions.
fn group_name(func: &Function, bindings: &[Binding]) -> String {
    let mut name = String::from("fused");
    for b in bindings {
        if let Some(call) = TirCall::of(func, b.value) {
            if name.len() + call.callee.len() >= MAX_NAME_LENGTH {
                break;
            }
            name.push('_');
            name.push_str(&call.callee);
        }
    }
    name
}

/// Creates the call of a group's function, which replaces the last binding of the group.
fn call_group(
    func: &mut Function,
    name: &str,
    mut args: Vec<Expr>,
    sizes: &[pliant_ir::Sym],
    last: &Binding,
) -> Expr {
    if !sizes.is_empty() {
        args.push(func.shape(sizes));
    }
    let ret = func.intern(TypeData::Any);
    let callee_ty = func.intern(TypeData::Callable { params: None, ret, pure: true });
    let callee = func.global(name, callee_ty);
    let ty = func.var(last.var).ty;
    func.call(Callee::Expr(callee), &args, Attrs::default(), &[], ty)
}
