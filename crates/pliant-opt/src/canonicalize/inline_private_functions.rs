//! # What it does
//! Inlines private graph functions at their calls, and removes functions that are no longer used.
//!
//! # Before
//! ```python
//! @R.function(private=True)
//! def square(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
//!     k = T.int64()
//!     with R.dataflow():
//!         b = R.multiply(a, a)
//!         R.output(b)
//!     return b
//!
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     cls = Module
//!     with R.dataflow():
//!         lv: R.Tensor((n,), "float32") = cls.square(x)
//!         gv: R.Tensor((n,), "float32") = R.exp(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv: R.Tensor((n,), "float32") = R.multiply(x, x)
//!         gv: R.Tensor((n,), "float32") = R.exp(lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The checks of arguments and results of an inlined function, as `match_cast`, if they may fail. Recursive functions, including
//! mutually recursive ones. Functions that a backend compiles (attributes `Codegen`, `Composite`, `Primitive`).
//!
//! # Never
//! Inlines a public function. Inlines a call if the caller would then have more than [`MAX_BINDINGS`] bindings.

use std::sync::Arc;

use pliant_ir::attr_names::{CODEGEN, COMPOSITE, PRIMITIVE};
use pliant_ir::attr_values::is_forced_pure;
use pliant_ir::relax::type_lattice::{SymMap, is_subtype};
use pliant_ir::relax::visit::{Importer, called_globals, for_each_expr};
use pliant_ir::relax::{
    Binding, Block, BlockData, Callee, Expr, ExprData, Function, Seq, Type, TypeData, Var,
};
use pliant_ir::{BaseFunc, IRModule};
use pliant_pass::binding_rewrites::{
    Namer, Substitution, mark_outputs, reachable_seqs, shape_vars, substitute_result,
};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::CallGraph;
use crate::analysis::call_graph::called_by_name_only;

use crate::common::purity_after_lowering::allow_hidden_effects;
use crate::common::repeat_type_inference::reinfer;

/// Maximum number of bindings of a function after inlining.
pub const MAX_BINDINGS: usize = 1 << 20;

/// Attributes of functions that a backend compiles as a unit, which are therefore not inlined.
const BACKEND_ATTRS: &[&str] = &[CODEGEN, COMPOSITE, PRIMITIVE];

/// The pass that inlines private functions at their calls. See the module documentation.
pub struct InlinePrivateFunctions;

impl ModulePass for InlinePrivateFunctions {
    fn name(&self) -> &str {
        "InlinePrivateFunctions"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let recursive = CallGraph::of(&module).recursive;
        let inlinable: FxHashMap<Arc<str>, Arc<Function>> = module
            .relax_funcs()
            .filter(|(name, f)| {
                f.private
                    && !recursive.contains(*name)
                    && !BACKEND_ATTRS.iter().any(|attr| f.attrs.contains_key(*attr))
            })
            .map(|(name, f)| (name.clone(), f.clone()))
            .collect();
        if inlinable.is_empty() {
            return Ok(module);
        }
        // Functions that are used as values stay, but calls in them are inlined.
        let removable = called_by_name_only(&module);
        let before = module.clone();
        let in_place = module.has_inplace_calls();
        update_each_relax(&mut module, ctx, |name, func| {
            let stays = !(inlinable.contains_key(name) && removable.contains(name));
            let calls = called_globals(func).iter().any(|callee| inlinable.contains_key(callee));
            let changed =
                stays && calls && Inliner::new(func, &inlinable, in_place).inline_calls(func);
            if changed {
                // Arguments may have more precise types than parameters. If this reveals a type error, the error is reported only
                // if the code runs.
                let _ = reinfer(func, &before, ctx.ops, false);
            }
            Ok(changed)
        })?;
        remove_inlined(&mut module, &inlinable);
        Ok(module)
    }
}

/// Removes inlined functions that no remaining function reaches.
fn remove_inlined(module: &mut IRModule, inlined: &FxHashMap<Arc<str>, Arc<Function>>) {
    let mut worklist: Vec<Arc<str>> =
        module.functions.keys().filter(|n| !inlined.contains_key(*n)).cloned().collect();
    let mut live: FxHashSet<Arc<str>> = FxHashSet::default();
    while let Some(name) = worklist.pop() {
        if live.insert(name.clone())
            && let Some(BaseFunc::Relax(func)) = module.get(&name)
        {
            worklist.extend(called_globals(func));
        }
    }
    if module.functions.keys().any(|n| !live.contains(n)) {
        module.functions.retain(|name, _| live.contains(name));
    }
}

/// A pending step of the rewrite of a sequence in which calls are inlined.
enum WorkItem {
    /// Starts a block. The flag is true for dataflow blocks.
    BeginBlock(bool),
    /// Processes a binding, which may be a call to inline.
    Bind(Binding),
    /// Binds the result of an inlined call. This step follows the bindings that were copied from the callee's body.
    FinishCall(InlinedCall),
}

/// A call that is being inlined: a copy of the callee's body is replacing it.
struct InlinedCall {
    binding: Binding,
    result: Expr,
    ret_ty: Type,
    /// The number of variables that the caller had before this call was inlined. Variables with this index or a higher one belong
    /// to the inlined body.
    first: usize,
}

/// Inlines the calls in one function.
struct Inliner<'a> {
    callees: &'a FxHashMap<Arc<str>, Arc<Function>>,
    namer: Namer,
    subst: Substitution,
    pinned: FxHashSet<Var>,
    /// The current number of bindings of the function, which [`MAX_BINDINGS`] limits.
    size: usize,
    changed: bool,
    /// Whether an inlined callee has the attribute `relax.force_pure`: it is pure to callers although its body has side effects.
    callee_forced_pure: bool,
    /// Whether the module contains calls that may write to arguments. If so, a constant argument must be bound to a variable, so
    /// that all reads see the same tensor.
    in_place: bool,
}

impl<'a> Inliner<'a> {
    fn new(
        func: &Function,
        callees: &'a FxHashMap<Arc<str>, Arc<Function>>,
        in_place: bool,
    ) -> Self {
        Inliner {
            callees,
            namer: Namer::new(func),
            subst: Substitution::default(),
            pinned: shape_vars(func),
            size: count_bindings(func),
            changed: false,
            callee_forced_pure: false,
            in_place,
        }
    }

    fn inline_calls(mut self, func: &mut Function) -> bool {
        let mut seqs = vec![func.body()];
        // Outer sequences are rewritten first, so that the replacement of a variable is known before inner sequences read it.
        while let Some(seq) = seqs.pop() {
            self.inline_in_sequence(func, seq);
            for &block in &func.seq(seq).blocks {
                for b in &func.block(block).bindings {
                    match func.expr(b.value) {
                        ExprData::If { then_seq, else_seq, .. } => {
                            seqs.extend([*then_seq, *else_seq]);
                        }
                        ExprData::Func(id) => seqs.push(func.func(*id).body),
                        _ => {}
                    }
                }
            }
        }
        if self.changed {
            mark_outputs(func);
        }
        if self.callee_forced_pure {
            // The effects that the callee hides from its callers are hidden from the callers of this function too.
            allow_hidden_effects(func);
        }
        self.changed
    }

    /// Inlines the calls in one sequence. Uses an explicit work list, because inlined bodies may contain further calls.
    fn inline_in_sequence(&mut self, func: &mut Function, seq: Seq) {
        let mut worklist = Vec::new();
        for block in func.seq(seq).blocks.clone() {
            let data = std::mem::take(func.block_mut(block));
            worklist.push(WorkItem::BeginBlock(data.dataflow));
            worklist.extend(data.bindings.into_iter().map(WorkItem::Bind));
        }
        worklist.reverse();
        let mut out = BlockBuilder::default();
        while let Some(item) = worklist.pop() {
            match item {
                WorkItem::BeginBlock(dataflow) => out.begin(dataflow),
                WorkItem::Bind(mut binding) => {
                    binding.value = self.subst.apply(func, binding.value);
                    match self.inlinable_callee(func, binding) {
                        Some((callee, args)) => {
                            self.changed = true;
                            self.callee_forced_pure |= is_forced_pure(&callee.attrs);
                            let from = worklist.len();
                            self.inline_call(
                                func,
                                binding,
                                &callee,
                                &args,
                                (&mut out, &mut worklist),
                            );
                            worklist[from..].reverse();
                        }
                        None => out.push(func, binding),
                    }
                }
                WorkItem::FinishCall(call) => self.bind_result(func, call, &mut out),
            }
        }
        func.seq_mut(seq).blocks = out.blocks;
        substitute_result(func, seq, &self.subst);
    }

    /// Returns (callee, arguments) if a binding is a call that can be inlined; `None` otherwise.
    fn inlinable_callee(&self, func: &Function, b: Binding) -> Option<(Arc<Function>, Vec<Expr>)> {
        let ExprData::Call { callee: Callee::Expr(callee), args, .. } = func.expr(b.value) else {
            return None;
        };
        let ExprData::Global(name) = func.expr(*callee) else { return None };
        let callee = self.callees.get(func.str(*name))?;
        let args = func.list(*args);
        let fits = self.size + count_bindings(callee) <= MAX_BINDINGS;
        (args.len() == callee.params().len() && fits).then(|| (callee.clone(), args.to_vec()))
    }

    /// Inlines a call: appends the checks of its arguments to `out`, and pushes the bindings of the callee's body to `worklist`,
    /// in order.
    fn inline_call(
        &mut self,
        func: &mut Function,
        b: Binding,
        callee: &Function,
        args: &[Expr],
        (out, worklist): (&mut BlockBuilder, &mut Vec<WorkItem>),
    ) {
        self.size += count_bindings(callee);
        let first = func.num_vars();
        let mut entry = Vec::new();
        let tys: Vec<Type> = args.iter().map(|&a| func.expr_ty(a)).collect();
        let params: Vec<Type> = callee.params().iter().map(|&p| callee.var(p).ty).collect();
        let syms = bind_symbols(func, callee, &params, &tys);
        let mut importer = Importer::new(callee, func);
        importer.syms = syms;
        for (&param, &arg) in callee.params().iter().zip(args) {
            let ty = importer.ty(callee.var(param).ty);
            let arg_ty = importer.dst.expr_ty(arg);
            let fits = is_subtype(importer.dst, arg_ty, ty).is_yes();
            if fits && !(self.in_place && contains_constant(importer.dst, arg)) {
                importer.vars.insert(param, arg);
                continue;
            }
            let var = importer.define(param);
            importer.dst.var_mut(var).dataflow = out.in_dataflow;
            entry.push(match fits {
                true => Binding::bind(var, arg),
                false => Binding::match_cast(var, arg, ty),
            });
        }
        let body = callee.seq(callee.body());
        let blocks: Vec<Block> = body.blocks.iter().map(|&b| importer.block(b)).collect();
        let result = importer.expr(body.result);
        let ret_ty = importer.ty(callee.ret_ty());
        self.rename_new_vars(func, first);
        entry.into_iter().for_each(|b| out.push(func, b));
        for block in blocks {
            let data = std::mem::take(func.block_mut(block));
            push_inlined_block(func, data, out.in_dataflow, worklist);
        }
        worklist.push(WorkItem::FinishCall(InlinedCall { binding: b, result, ret_ty, first }));
    }

    /// Gives unique names to the new variables, which are those with an index of at least `first`.
    fn rename_new_vars(&mut self, func: &mut Function, first: usize) {
        for v in first..func.num_vars() {
            let v = Var::from_u32(v as u32);
            let name = self.namer.fresh(&func.var(v).name.clone());
            func.var_mut(v).name = name;
        }
    }

    /// Defines the variable to which an inlined call was bound. If possible, the variable replaces the result variable of the
    /// inlined body; otherwise it is bound to the result.
    fn bind_result(&mut self, func: &mut Function, call: InlinedCall, out: &mut BlockBuilder) {
        let InlinedCall { binding: b, ret_ty, first, .. } = call;
        let result = self.subst.apply(func, call.result);
        let result_ty = func.expr_ty(result);
        let (var_ty, cast) = (func.var(b.var).ty, b.cast.is_some());
        let fits = is_subtype(func, result_ty, ret_ty).is_yes();
        if !fits {
            out.push(func, Binding::match_cast(b.var, result, ret_ty));
            func.var_mut(b.var).ty = ret_ty;
            return;
        }
        if let ExprData::Var(v) = *func.expr(result)
            && v.as_u32() as usize >= first
            && !cast
            && !self.pinned.contains(&b.var)
            && is_subtype(func, result_ty, var_ty).is_yes()
        {
            let (name, dataflow) = (func.var(b.var).name.clone(), func.var(b.var).dataflow);
            let data = func.var_mut(v);
            data.name = name;
            data.dataflow = dataflow;
            self.subst.insert(b.var, result);
            return;
        }
        out.push(func, Binding { value: result, ..b });
    }
}

/// Whether an operand contains a literal constant.
fn contains_constant(func: &Function, operand: Expr) -> bool {
    let mut has_constant = false;
    for_each_expr(func, operand, |e| has_constant |= matches!(func.expr(e), ExprData::Constant(_)));
    has_constant
}

fn count_bindings(func: &Function) -> usize {
    let blocks = reachable_seqs(func).into_iter().flat_map(|s| func.seq(s).blocks.clone());
    blocks.map(|b| func.block(b).bindings.len()).sum()
}

/// Maps the symbols in the types of a callee's parameters to the sizes of the arguments at a call. Symbols that the arguments do
/// not determine are absent.
fn bind_symbols(func: &Function, callee: &Function, params: &[Type], args: &[Type]) -> SymMap {
    let mut map = SymMap::default();
    let mut stack: Vec<(Type, Type)> =
        params.iter().copied().zip(args.iter().copied()).rev().collect();
    while let Some((p, a)) = stack.pop() {
        match (callee.types.get(p), func.types.get(a)) {
            (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
                stack.extend(x.iter().copied().zip(y.iter().copied()).rev());
            }
            (TypeData::Prim { value: Some(x), .. }, TypeData::Prim { value: Some(y), .. }) => {
                if let Some(v) = callee.syms.as_var(*x) {
                    map.entry(v).or_insert(*y);
                }
            }
            (x, y) => {
                for (&x, &y) in x.dims().into_iter().flatten().zip(y.dims().into_iter().flatten()) {
                    if let Some(v) = callee.syms.as_var(x) {
                        map.entry(v).or_insert(y);
                    }
                }
            }
        }
    }
    map
}

/// Collects the blocks of a sequence that is being rewritten.
#[derive(Default)]
struct BlockBuilder {
    blocks: Vec<Block>,
    in_dataflow: bool,
    /// Whether more bindings may be added to the last block.
    accepts_bindings: bool,
}

impl BlockBuilder {
    /// Begins a block. The block is created together with its first binding, so that no block is empty.
    fn begin(&mut self, dataflow: bool) {
        self.in_dataflow = dataflow;
        self.accepts_bindings = false;
    }

    fn push(&mut self, func: &mut Function, binding: Binding) {
        if !self.accepts_bindings {
            let data = BlockData { dataflow: self.in_dataflow, bindings: Vec::new() };
            self.blocks.push(func.add_block(data));
            self.accepts_bindings = true;
        }
        let dataflow = self.in_dataflow;
        let last = *self.blocks.last().expect("a block has been started before a binding is added");
        func.var_mut(binding.var).dataflow &= dataflow;
        func.block_mut(last).bindings.push(binding);
    }
}

/// Pushes the bindings of a block of an inlined body to the work list. If the call is in a dataflow block, an inlined block
/// without control flow becomes a part of this dataflow block, and any other inlined block splits the dataflow block.
fn push_inlined_block(
    func: &mut Function,
    data: BlockData,
    in_dataflow: bool,
    worklist: &mut Vec<WorkItem>,
) {
    let has_control_flow =
        |b: &Binding| matches!(func.expr(b.value), ExprData::If { .. } | ExprData::Func(_));
    let joins_dataflow =
        data.dataflow || (in_dataflow && !data.bindings.iter().any(has_control_flow));
    if joins_dataflow != in_dataflow {
        worklist.push(WorkItem::BeginBlock(joins_dataflow));
    }
    for binding in data.bindings {
        if in_dataflow && joins_dataflow {
            func.var_mut(binding.var).dataflow = true;
        }
        worklist.push(WorkItem::Bind(binding));
    }
    if joins_dataflow != in_dataflow {
        worklist.push(WorkItem::BeginBlock(in_dataflow));
    }
}
