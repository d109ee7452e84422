//! # What it does
//! Merges adjacent calls of composite functions of one backend into regions. A region is a function whose attribute `Codegen` is
//! the name of the backend, with the composite functions as local functions. No dataflow path leaves a region and enters it
//! again, so regions have no cyclic dependences.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             lv: R.Tensor((n,), "float32") = cls.fused_relax_exp(x)
//!             gv: R.Tensor((n,), "float32") = cls.fused_relax_exp(lv)
//!             R.output(gv)
//!         return gv
//!
//!     @R.function(private=True)
//!     def fused_relax_exp(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         R.func_attr({"Composite": "mine.exp", "Primitive": 1})
//!         n = T.int64()
//!         gv = R.exp(x)
//!         return gv
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @R.function
//!     def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         n = T.int64()
//!         cls = Module
//!         with R.dataflow():
//!             gv: R.Tensor((n,), "float32") = cls.fused_mine_region(x)
//!             R.output(gv)
//!         return gv
//!
//!     @R.function(private=True)
//!     def fused_mine_region(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!         R.func_attr({"Codegen": "mine"})
//!         n = T.int64()
//!
//!         @R.function
//!         def fused_relax_exp(x1: R.Tensor(("n1",), "float32")) -> R.Tensor(("n1",), "float32"):
//!             n1 = T.int64()
//!             R.func_attr({"Composite": "mine.exp", "Primitive": 1})
//!             gv1 = R.exp(x1)
//!             return gv1
//!
//!         with R.dataflow():
//!             lv: R.Tensor((n,), "float32") = fused_relax_exp(x)
//!             gv: R.Tensor((n,), "float32") = fused_relax_exp(lv)
//!             R.output(gv)
//!         return gv
//! ```
//!
//! # Requires
//! [`FuseOpsByPattern`](crate::offload::fuse_ops_by_pattern), which creates the composite functions.
//!
//! # Keeps
//! Every value that is read outside of its region. A region with several such values returns a tuple.
//!
//! # Never
//! Merges calls across the end of a dataflow block. A call outside of dataflow blocks becomes a region of its own.

use std::sync::Arc;

use pliant_ir::attr_names::{CODEGEN, COMPOSITE, PRIMITIVE};
use pliant_ir::relax::visit::{Event, called_globals, operand_vars, walk};
use pliant_ir::relax::{Binding, Block, Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_pass::binding_rewrites::{Namer, reachable_seqs};
use pliant_pass::pattern::Defs;
use pliant_pass::pattern::rewrite_dataflow_blocks::{dependences_in_block, sort_block};
use pliant_pass::{MayWrite, ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fuse::fuse_ops::OutlinedFunctions;
use crate::offload::byoc::backend_of;
use crate::offload::byoc::code_generator_registry::codegen;
use crate::offload::byoc::nest_composite_functions::nest_composites;
use crate::offload::byoc::outline_bindings::{call_global, outline_bindings};

/// The pass that merges adjacent composite functions of one backend. See the module documentation.
pub struct MergeCompositeFunctions;

impl ModulePass for MergeCompositeFunctions {
    fn name(&self) -> &str {
        "MergeCompositeFunctions"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let backends: FxHashMap<Arc<str>, Arc<str>> = module
            .relax_funcs()
            .filter_map(|(name, f)| match f.attrs.get(COMPOSITE) {
                Some(AttrValue::Str(pattern)) => Some((name.clone(), backend_of(pattern).into())),
                _ => None,
            })
            .collect();
        if backends.is_empty() {
            return Ok(module);
        }
        let (mut outlined_functions, writers) =
            (OutlinedFunctions::of(&module), MayWrite::of(&module));
        let composites: FxHashMap<Arc<str>, Arc<Function>> = module
            .relax_funcs()
            .filter(|(name, _)| backends.contains_key(*name))
            .map(|(name, f)| (name.clone(), f.clone()))
            .collect();
        for func in module.functions.values_mut() {
            let BaseFunc::Relax(func) = func else { continue };
            if func.attrs.contains_key(CODEGEN) || func.attrs.contains_key(COMPOSITE) {
                continue;
            }
            ctx.check_cancelled()?;
            let (backends, composites) = (&backends, &composites);
            let (outlined_functions, writers) = (&mut outlined_functions, &writers);
            let mut merger = Merger { backends, composites, outlined_functions, ctx, writers };
            if merger.calls_composite_function(func) {
                merger.merge_in_function(Arc::make_mut(func))?;
            }
        }
        outlined_functions.add_to(&mut module);
        remove_uncalled_composites(&mut module, &composites);
        Ok(module)
    }
}

/// Removes composite functions (outlined matches of backend patterns) that no function calls any more. The regions that were
/// created contain local copies of them. Older scripts do not mark these functions as private, but as `Primitive`.
fn remove_uncalled_composites(
    module: &mut IRModule,
    composites: &FxHashMap<Arc<str>, Arc<Function>>,
) {
    let called: FxHashSet<Arc<str>> =
        module.relax_funcs().flat_map(|(_, f)| called_globals(f)).collect();
    let is_removable = |name: &Arc<str>| {
        let internal = |f: &Arc<Function>| f.private || f.attrs.contains_key(PRIMITIVE);
        composites.get(name).is_some_and(internal)
    };
    module.functions.retain(|name, _| called.contains(name) || !is_removable(name));
}

struct Merger<'a> {
    /// Maps the name of each composite function (outlined match of a backend pattern) to the name of its backend.
    backends: &'a FxHashMap<Arc<str>, Arc<str>>,
    composites: &'a FxHashMap<Arc<str>, Arc<Function>>,
    outlined_functions: &'a mut OutlinedFunctions,
    ctx: &'a PassContext,
    writers: &'a MayWrite,
}

/// A binding as a node of the dependence graph of its block.
struct Node {
    backend: Option<Arc<str>>,
    /// The maximum number of changes of the backend (including between a backend and none) on any dataflow path to this node. Calls
    /// of one backend for which this number is equal can be merged: a path that leaves a region and enters it again would increase
    /// the number.
    rank: u32,
    /// The region of the node, in a union-find structure: the index of another node of the same region.
    region: usize,
}

impl Merger<'_> {
    fn calls_composite_function(&self, func: &Function) -> bool {
        called_globals(func).iter().any(|g| self.backends.contains_key(g))
    }

    /// If a value is a call of a composite function, returns the name of the function's backend.
    fn backend(&self, func: &Function, value: Expr) -> Option<Arc<str>> {
        let ExprData::Call { callee: Callee::Expr(callee), .. } = func.expr(value) else {
            return None;
        };
        let ExprData::Global(name) = func.expr(*callee) else { return None };
        self.backends.get(func.str(*name)).cloned()
    }

    /// Whether the code generator of a backend compiles regions (functions that call several composite functions of the backend).
    fn supports_regions(&self, backend: &str) -> bool {
        codegen(backend).is_none_or(|c| c.takes_regions())
    }

    fn merge_in_function(&mut self, func: &mut Function) -> Result<(), PassError> {
        let defs = Defs::of(func, self.ctx.ops, Some(self.writers));
        let escaping = read_outside(func);
        for seq in reachable_seqs(func) {
            for block in func.seq(seq).blocks.clone() {
                self.merge_in_block(func, block, &defs, &escaping)?;
            }
        }
        Ok(())
    }

    fn nodes(&self, func: &Function, defs: &Defs, block: Block) -> Vec<Node> {
        let (bindings, join) = (&func.block(block).bindings, func.block(block).dataflow);
        let dependences = dependences_in_block(func, block);
        let mut nodes: Vec<Node> = Vec::with_capacity(bindings.len());
        for (i, (b, dependences)) in bindings.iter().zip(dependences).enumerate() {
            let backend = if b.cast.is_some() { None } else { self.backend(func, b.value) };
            let operands: Vec<usize> =
                dependences.into_iter().map(|n| n as usize).filter(|&n| n < i).collect();
            let rank_after = |&n: &usize| nodes[n].rank + u32::from(nodes[n].backend != backend);
            let rank = operands.iter().map(rank_after).max().unwrap_or(0);
            let mut node = Node { backend, rank, region: i };
            if join && node.backend.as_ref().is_some_and(|b| self.supports_regions(b)) {
                for &n in &operands {
                    // A region is computed at its last member, so no call with effects may lie between its members.
                    let same_epoch = defs.epoch(bindings[n].var) == defs.epoch(b.var);
                    if nodes[n].backend == node.backend && nodes[n].rank == rank && same_epoch {
                        let root = region_root(&mut nodes, n);
                        if node.region == i {
                            node.region = root;
                        } else if node.region != root {
                            nodes[root].region = node.region;
                        }
                    }
                }
            }
            nodes.push(node);
        }
        nodes
    }

    fn merge_in_block(
        &mut self,
        func: &mut Function,
        block: Block,
        defs: &Defs,
        escaping: &FxHashSet<Var>,
    ) -> Result<(), PassError> {
        let bindings = func.block(block).bindings.clone();
        let mut nodes = self.nodes(func, defs, block);
        let mut regions: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for i in 0..nodes.len() {
            if nodes[i].backend.is_some() {
                let region = region_root(&mut nodes, i);
                regions.entry(region).or_default().push(i);
            }
        }
        if regions.is_empty() {
            return Ok(());
        }
        // The variables that are read outside of their regions.
        let mut read_outside_region: FxHashSet<Var> = escaping.clone();
        let binding_index: FxHashMap<Var, usize> =
            bindings.iter().enumerate().map(|(i, b)| (b.var, i)).collect();
        for (i, b) in bindings.iter().enumerate() {
            for v in operand_vars(func, b.value) {
                let Some(&operands) = binding_index.get(&v) else { continue };
                if region_root(&mut nodes, operands) != region_root(&mut nodes, i)
                    || nodes[i].backend.is_none()
                {
                    read_outside_region.insert(v);
                }
            }
        }
        let mut namer = Namer::new(func);
        let mut new = Vec::with_capacity(bindings.len());
        for (i, &b) in bindings.iter().enumerate() {
            if nodes[i].backend.is_none() {
                new.push(b);
                continue;
            }
            let region = region_root(&mut nodes, i);
            let members = &regions[&region];
            if members.last() == Some(&i) {
                let members: Vec<Binding> = members.iter().map(|&m| bindings[m]).collect();
                let backend = nodes[i]
                    .backend
                    .clone()
                    .expect("bindings without a backend were skipped before");
                let dataflow = func.block(block).dataflow;
                let first = new.len();
                self.outline_region(
                    func,
                    defs,
                    &members,
                    &read_outside_region,
                    &backend,
                    &mut namer,
                    &mut new,
                );
                // The tuple of a region's results is read only by the bindings that follow it.
                if let [call, _, ..] = new[first..] {
                    func.var_mut(call.var).dataflow = dataflow;
                }
            }
        }
        let has_merged = regions.values().any(|members| members.len() > 1);
        func.block_mut(block).bindings = new;
        if has_merged { sort_block(func, block) } else { Ok(()) }
    }

    /// Appends the call of a region's function to the block, followed by bindings of the values that are read outside of the
    /// region.
    #[expect(
        clippy::too_many_arguments,
        reason = "the function is one step of the pass and is separate only because of its length"
    )]
    fn outline_region(
        &mut self,
        func: &mut Function,
        defs: &Defs,
        members: &[Binding],
        read_outside_region: &FxHashSet<Var>,
        backend: &str,
        namer: &mut Namer,
        out: &mut Vec<Binding>,
    ) {
        let last = members.last().expect("a region contains at least one binding").var;
        let mut outputs: Vec<Var> =
            members.iter().map(|b| b.var).filter(|v| read_outside_region.contains(v)).collect();
        if outputs.is_empty() {
            outputs.push(last);
        }
        let mut outlined = outline_bindings(func, defs, members, &outputs, true);
        outlined.func.attrs.insert(CODEGEN.into(), AttrValue::str(backend));
        nest_composites(&mut outlined.func, |name| self.composites.get(name).cloned());
        let hint = match members {
            [one] => format!("{}_{backend}", callee_name(func, one.value)),
            _ => format!("fused_{backend}_region"),
        };
        let name = self.outlined_functions.add(&hint, outlined.func);
        match outputs[..] {
            [one] => {
                let ty = func.var(one).ty;
                let call = call_global(func, &name, &outlined.args, ty);
                out.push(Binding::bind(one, call));
            }
            _ => {
                let tys = outputs.iter().map(|&v| func.var(v).ty).collect();
                let ty = func.intern(TypeData::Tuple(tys));
                let call = call_global(func, &name, &outlined.args, ty);
                let tuple = namer.bind(func, "region", call, out);
                for (k, &v) in outputs.iter().enumerate() {
                    let field = func.tuple_get_item(tuple, k as u32);
                    out.push(Binding::bind(v, field));
                }
            }
        }
    }
}

fn callee_name(func: &Function, value: Expr) -> String {
    let ExprData::Call { callee: Callee::Expr(callee), .. } = func.expr(value) else {
        return String::new();
    };
    match func.expr(*callee) {
        ExprData::Global(s) => func.str(*s).to_string(),
        _ => String::new(),
    }
}

/// Returns the root of a node's region in the union-find structure. Shortens the path to the root (path halving).
fn region_root(nodes: &mut [Node], mut i: usize) -> usize {
    while i < nodes.len() && nodes[i].region != i {
        let next = nodes[i].region;
        nodes[i].region = nodes[next].region;
        i = next;
    }
    i
}

/// Returns the variables that are read in a block other than the one that defines them, or that are results of sequences.
fn read_outside(func: &Function) -> FxHashSet<Var> {
    let mut defining_block: FxHashMap<Var, Block> = FxHashMap::default();
    let mut out = FxHashSet::default();
    walk(func, func.root(), |event| match event {
        Event::EnterBinding(position, b) => {
            for v in operand_vars(func, b.value) {
                if defining_block.get(&v).is_some_and(|&h| h != position.block) {
                    out.insert(v);
                }
            }
            defining_block.insert(b.var, position.block);
        }
        Event::Result(seq) => out.extend(operand_vars(func, func.seq(seq).result)),
        _ => {}
    });
    out
}
