//! # What it does
//! Constant folding: evaluates pure operators and `call_tir` whose operands are constants. The reference interpreter evaluates
//! cheap values; the evaluator of the context ([`PassContext::evaluator`]) compiles and runs the others. The results replace the
//! variables, and bindings that are no longer used are removed. Values that types determine, such as the shape of a tensor with
//! known dims, also become constants, so that no tensor is computed for them.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.add(R.const([1.0, 2.0], "float32"), R.const(1.0, "float32"))
//!         lv1 = R.multiply(lv, lv)
//!         gv = R.add(x, lv1)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         gv = R.add(x, R.const([4.0, 9.0], "float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! In-place calls must still be marked as such: in modules with in-place calls, run this pass before
//! [`CallTIRRewrite`](crate::lower::call_tir_rewrite).
//!
//! # Keeps
//! Calls whose evaluation fails, so that they fail at run time, and calls whose evaluation takes too long.
//!
//! # Never
//! Evaluates calls with effects, packed functions, random numbers, operators whose result shape depends on values, or values that a
//! call writes to. Creates constants that have more elements than their operands and than the setting
//! `relax.FoldConstant.max_elements` (default: [`MAX_ELEMENTS`]). Creates large constants from scalars: `R.zeros` of more than
//! [`MAX_CREATED`] elements stays a call.

use std::sync::Arc;

use pliant_interp::{NoPacked, Options, Value, run_with};
use pliant_ir::op::CALL_TIR;
use pliant_ir::relax::visit::{Event, Importer, called_globals, operand_vars, walk};
use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, Function, SeqData, Type, TypeData, Var,
};
use pliant_ir::{BaseFunc, IRModule, Op, Sym};
use pliant_ops::op_declaration::Legalize;
use pliant_ops::size_proofs::at_most;
use pliant_pass::binding_rewrites::{
    Substitution, reachable_seqs, remove_and_substitute, shape_vars,
};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{CancelToken, Evaluate, ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::memory_aliases::{MemoryAliases, ParamUses};
use crate::analysis::{Effects, written_vars};

/// Maximum number of elements of a constant that is created from an operator without tensor operands, such as `R.zeros`.
pub const MAX_CREATED: u64 = 1024;

/// Default limit on the number of elements of a folded constant that has more elements than its operands. A field of the pass or
/// a setting of the context can override it.
pub const MAX_ELEMENTS: u64 = 1 << 24;

/// Maximum number of elements of a constant that has at most as many elements as its operands but more bytes, such as a cast of
/// integers to wider floats. A constant with at most as many bytes as its operands is folded at any size.
const MAX_WIDENED: u64 = 1 << 27;

/// Default limit on the number of elements of a folded constant if only the reference interpreter is available. If the context
/// has a compiling evaluator, the default limit is [`MAX_ELEMENTS`].
const MAX_INTERPRETED: u64 = 1 << 20;

/// The name of the setting that overrides [`MAX_ELEMENTS`].
const MAX_ELEMENTS_KEY: &str = "relax.FoldConstant.max_elements";

/// Limit on the total number of elements of all constants created in one function, as a multiple of the limit for one constant.
const TOTAL_LIMIT_FACTOR: u64 = 16;

/// Maximum number of interpreter steps for which the interpreter is preferred to a compiling evaluator, because interpreting so
/// few steps is faster than compiling.
const MAX_QUICK_STEPS: u64 = 1 << 13;

/// Maximum number of bindings that are evaluated separately if evaluating all of them together fails.
const MAX_SEPARATE_VALUES: usize = 64;

/// The pass that evaluates pure operators on constants (constant folding). See the module documentation.
#[derive(Clone, Debug)]
pub struct FoldConstant {
    /// Maximum number of elements of a folded constant. If `None`, the setting of the context applies.
    pub max_elements: Option<u64>,
    /// Maximum number of interpreter steps per function.
    pub max_steps: u64,
}

impl Default for FoldConstant {
    fn default() -> Self {
        FoldConstant { max_elements: None, max_steps: 1 << 24 }
    }
}

impl ModulePass for FoldConstant {
    fn name(&self) -> &str {
        "FoldConstant"
    }

    fn opt_level(&self) -> u8 {
        2
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let mut prim_funcs = IRModule::new();
        for (name, func) in module.prim_funcs() {
            prim_funcs.insert(name.clone(), BaseFunc::Prim(func.clone()));
        }
        let effects = Effects::of(&module, ctx.ops);
        let uses = ParamUses::of_in_place_module(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            let materialized = materialize_type_values(func);
            Ok(self.fold(func, &prim_funcs, (&effects, uses.as_ref()), ctx) | materialized)
        })?;
        Ok(module)
    }
}

impl FoldConstant {
    fn fold(
        &self,
        func: &mut Function,
        prim_funcs: &IRModule,
        effects: (&Effects, Option<&ParamUses>),
        ctx: &PassContext,
    ) -> bool {
        let foldable = FoldableScan::foldable(self, func, prim_funcs, effects, ctx);
        if foldable.is_empty() {
            return false;
        }
        let compiled = ctx.evaluator.as_deref();
        let (max_steps, cancel) = (self.max_steps, &ctx.cancel);
        let evaluator = Evaluator { prim_funcs, max_steps, compiled, cancel };
        let values = evaluator.evaluate(func, &foldable);
        let mut subst = Substitution::default();
        let mut dead: FxHashSet<Var> = FxHashSet::default();
        for b in &foldable {
            match values.get(&b.var) {
                Some(Some(value)) => {
                    let Some(e) = constant_of(func, value, func.var(b.var).ty) else { continue };
                    subst.insert(b.var, e);
                    dead.insert(b.var);
                }
                // Only folded bindings read this value.
                Some(None) => {
                    dead.insert(b.var);
                }
                None => {}
            }
        }
        keep_operands_of_remaining(func, &foldable, &subst, &mut dead);
        remove_and_substitute(func, &dead, &subst)
    }
}

/// Replaces each call whose value is determined by types, such as the shape of a tensor with known dims, by this value. Returns
/// whether it replaced any call.
fn materialize_type_values(func: &mut Function) -> bool {
    let mut changed = false;
    for seq in reachable_seqs(func) {
        for at in 0..func.seq(seq).blocks.len() {
            let block = func.seq(seq).blocks[at];
            for k in 0..func.block(block).bindings.len() {
                let binding = func.block(block).bindings[k];
                let Some(value) = value_from_type(func, binding.value) else { continue };
                func.block_mut(block).bindings[k].value = value;
                changed = true;
            }
        }
    }
    changed
}

/// Returns the value of a call of an operator that only reads the types of its operands, if the type of the call determines the
/// value.
fn value_from_type(func: &mut Function, call: Expr) -> Option<Expr> {
    let ExprData::Call { callee: Callee::Op(op), .. } = *func.expr(call) else { return None };
    if !pliant_ops::registry().decl(op)?.depends_on_types_only {
        return None;
    }
    match func.ty(call).clone() {
        // Sizes that may be negative are not materialized: the operand would not exist.
        TypeData::Shape { dims: Some(dims), .. } => {
            let zero = func.syms.int(0);
            let sizes = dims.iter().all(|&d| at_most(func, zero, d) == Some(true));
            sizes.then(|| func.shape(&dims))
        }
        TypeData::Prim { dtype, value: Some(value) } => Some(func.int_value(value, dtype)),
        _ => None,
    }
}

/// Removes from `dead`, the variables whose bindings are to be deleted, each variable that must be kept because a binding that is
/// not deleted reads it. Variables that `subst` replaces by constants are not kept.
fn keep_operands_of_remaining(
    func: &Function,
    foldable: &[Binding],
    subst: &Substitution,
    dead: &mut FxHashSet<Var>,
) {
    for b in foldable.iter().rev() {
        if !dead.contains(&b.var) {
            for v in operand_vars(func, b.value) {
                if !subst.contains(v) {
                    dead.remove(&v);
                }
            }
        }
    }
}

/// Finds the bindings whose values depend only on constants.
struct FoldableScan<'a> {
    func: &'a Function,
    prim_funcs: &'a IRModule,
    ctx: &'a PassContext,
    /// The variables found so far whose values can be folded.
    constant_vars: FxHashSet<Var>,
    /// The variables that must not be folded, because types mention them or because their memory may be written to.
    pinned: FxHashSet<Var>,
    max_elements: u64,
    /// Whether `max_elements` also limits values that have no more elements than their operands.
    limits_all_values: bool,
    /// The number of additional elements of all values found so far. A value adds the number of its elements minus the number of
    /// its operands' elements, or 0 if it has fewer elements than its operands.
    total: u64,
    out: Vec<Binding>,
}

impl<'a> FoldableScan<'a> {
    fn foldable(
        pass: &'a FoldConstant,
        func: &'a Function,
        prim_funcs: &'a IRModule,
        (effects, uses): (&Effects, Option<&ParamUses>),
        ctx: &'a PassContext,
    ) -> Vec<Binding> {
        let mut pinned = shape_vars(func);
        pinned.extend(written_vars(func, effects));
        if let Some(uses) = uses {
            // The caller may write to returned values.
            pinned.extend(MemoryAliases::of_with_results_written(func, uses).returned());
        }
        let default_elements = if ctx.evaluator.is_some() { MAX_ELEMENTS } else { MAX_INTERPRETED };
        let configured = pass.max_elements.or_else(|| ctx.number(MAX_ELEMENTS_KEY));
        let max_elements = configured.unwrap_or(default_elements);
        let limits_all_values = configured.is_some() || ctx.evaluator.is_none();
        let (constant_vars, out) = (FxHashSet::default(), Vec::new());
        let mut scan = FoldableScan {
            func,
            prim_funcs,
            ctx,
            constant_vars,
            pinned,
            max_elements,
            limits_all_values,
            total: 0,
            out,
        };
        walk(func, func.root(), |event| {
            if let Event::LeaveBinding(_, b) = event
                && scan.is_foldable(b)
            {
                scan.constant_vars.insert(b.var);
                scan.out.push(b);
            }
        });
        // Tuples, fields and renamings have no cost. A constant that a variable names is replaced, because offload rules look for
        // constant operands.
        let is_worthwhile = scan
            .out
            .iter()
            .any(|b| matches!(func.expr(b.value), ExprData::Call { .. } | ExprData::Constant(_)));
        if is_worthwhile { scan.out } else { Vec::new() }
    }

    fn is_foldable(&mut self, b: Binding) -> bool {
        let f = self.func;
        if b.cast.is_some() || self.pinned.contains(&b.var) {
            return false;
        }
        let is_evaluable = match f.expr(b.value) {
            ExprData::Call { callee: Callee::Op(op), args, .. } => {
                let args = f.list(*args);
                args.iter().all(|&a| self.is_constant(a)) && self.may_evaluate(*op, args)
            }
            ExprData::TupleGetItem(t, _) => self.is_constant(*t),
            ExprData::Tuple(_) | ExprData::Var(_) | ExprData::Constant(_) => {
                self.is_constant(b.value)
            }
            _ => false,
        };
        let Some(count) = element_count(f, f.var(b.var).ty).filter(|_| is_evaluable) else {
            return false;
        };
        let max = self.max_elements;
        let limit = if has_tensor_operand(f, b.value) { max } else { MAX_CREATED.min(max) };
        let replaced_elements =
            if self.limits_all_values { 0 } else { self.replaced_elements(b, count) };
        self.total = self.total.saturating_add(count.saturating_sub(replaced_elements));
        count <= limit.max(replaced_elements)
            && self.total <= max.saturating_mul(TOTAL_LIMIT_FACTOR)
    }

    /// Returns the total number of elements of the operands of `b`, which folding `b` can make unnecessary. `count` is the number
    /// of elements of the value of `b`. Returns 0 if the value has more than [`MAX_WIDENED`] elements and more bytes than the
    /// operands.
    fn replaced_elements(&self, b: Binding, count: u64) -> u64 {
        let f = self.func;
        let operands = operands(f, b.value);
        let sum = |size: fn(&Function, Type) -> Option<u64>| {
            let sizes = operands.iter().map(|&e| size(f, f.expr_ty(e)).unwrap_or(0));
            sizes.fold(0, u64::saturating_add)
        };
        let small = byte_size(f, f.var(b.var).ty).is_some_and(|size| size <= sum(byte_size));
        if small || count <= MAX_WIDENED { sum(element_count) } else { 0 }
    }

    /// Whether an operand is a constant, or a variable whose value is constant.
    fn is_constant(&self, e: Expr) -> bool {
        let f = self.func;
        match f.expr(e) {
            ExprData::Var(v) => self.constant_vars.contains(v),
            ExprData::Shape(dims) => dims.iter().all(|&d| f.syms.as_int(d).is_some()),
            ExprData::Int(v, _) => f.syms.as_int(*v).is_some(),
            ExprData::Tuple(list) => f.list(*list).iter().all(|&e| self.is_constant(e)),
            ExprData::Global(name) => self.prim_funcs.get(f.str(*name)).is_some(),
            ExprData::Constant(_) | ExprData::Float(..) | ExprData::Str(_) | ExprData::DType(_) => {
                true
            }
            _ => false,
        }
    }

    fn may_evaluate(&self, op: Op, args: &[Expr]) -> bool {
        if op == CALL_TIR {
            return matches!(args.first().map(|&e| self.func.expr(e)), Some(ExprData::Global(_)));
        }
        let has_loop_function = match pliant_ops::registry().decl(op) {
            Some(decl) => {
                !decl.data_dependent && matches!(decl.legalize, Legalize::Te(_) | Legalize::View(_))
            }
            None => true,
        };
        let has_loop_function = has_loop_function || op == Op::new("relax.shape_of");
        has_loop_function && self.ctx.ops.is_pure(op)
    }
}

/// Whether a call has a tensor operand. True for expressions that are no calls.
fn has_tensor_operand(f: &Function, e: Expr) -> bool {
    let ExprData::Call { args, .. } = f.expr(e) else { return true };
    f.list(*args).iter().any(|&a| match f.ty(a) {
        TypeData::Tensor { .. } => true,
        TypeData::Tuple(fields) => !fields.is_empty(),
        _ => false,
    })
}

/// Returns the operands of a call, the elements of a tuple, or the tuple of a field access. For other expressions, returns the
/// expression itself.
fn operands(f: &Function, e: Expr) -> Vec<Expr> {
    match f.expr(e) {
        ExprData::Call { args, .. } | ExprData::Tuple(args) => f.list(*args).to_vec(),
        ExprData::TupleGetItem(t, _) => vec![*t],
        _ => vec![e],
    }
}

/// Returns the size in bytes of a value of this type; `None` if the type does not determine the size.
fn byte_size(f: &Function, ty: Type) -> Option<u64> {
    match f.types.get(ty) {
        TypeData::Tuple(fields) => {
            fields.iter().try_fold(0u64, |n, &t| n.checked_add(byte_size(f, t)?))
        }
        data => element_count(f, ty)?.checked_mul(data.dtype()?.size() as u64),
    }
}

/// Returns the number of elements of a value of this type; `None` if the type does not determine the number.
fn element_count(f: &Function, ty: Type) -> Option<u64> {
    match f.types.get(ty) {
        TypeData::Tensor { dtype, .. } => {
            (*dtype)?;
            let mut count = 1u64;
            for &d in f.types.get(ty).dims()? {
                count = count.checked_mul(u64::try_from(f.syms.as_int(d)?).ok()?)?;
            }
            Some(count)
        }
        TypeData::Shape { dims: Some(dims), .. } => {
            dims.iter().all(|&d| f.syms.as_int(d).is_some()).then_some(dims.len() as u64)
        }
        TypeData::Tuple(fields) => {
            fields.iter().try_fold(0u64, |n, &t| n.checked_add(element_count(f, t)?))
        }
        _ => None,
    }
}

/// Evaluates bindings whose operands are constants.
struct Evaluator<'a> {
    prim_funcs: &'a IRModule,
    /// Maximum number of steps of the reference interpreter.
    max_steps: u64,
    compiled: Option<&'a dyn Evaluate>,
    cancel: &'a CancelToken,
}

/// Maps the variable of each folded binding to its value; `None` for bindings that only other folded bindings read.
type ValueByVar = FxHashMap<Var, Option<Value>>;

impl Evaluator<'_> {
    /// Evaluates all foldable bindings of a function together, or separately if that fails.
    fn evaluate(&self, func: &Function, foldable: &[Binding]) -> ValueByVar {
        let outside_read = outside_read(func, foldable);
        if let Some(results) = self.evaluate_all(func, foldable, &outside_read) {
            let mut values: ValueByVar = foldable.iter().map(|b| (b.var, None)).collect();
            values.extend(outside_read.iter().copied().zip(results.into_iter().map(Some)));
            return values;
        }
        self.evaluate_each(func, foldable)
    }

    /// Evaluates several variables in one run. Uses the interpreter if it needs few steps or no compiling evaluator is available.
    /// `None` if the evaluation fails.
    fn evaluate_all(
        &self,
        func: &Function,
        bindings: &[Binding],
        outside_read: &[Var],
    ) -> Option<Vec<Value>> {
        let tensors = outside_read.iter().all(|&v| func.var_ty(v).is_tensor());
        let Some(compiled) = self.compiled.filter(|_| tensors) else {
            return self.interpret(func, bindings, outside_read, self.max_steps);
        };
        self.interpret(func, bindings, outside_read, MAX_QUICK_STEPS.min(self.max_steps)).or_else(
            || {
                let (module, name) = self.evaluation_module(func, bindings, outside_read)?;
                let tensors = compiled.evaluate(module, &name)?;
                (tensors.len() == outside_read.len())
                    .then(|| tensors.into_iter().map(Value::Tensor).collect())
            },
        )
    }

    /// Evaluates each binding separately, together with the bindings on which it depends. Bindings whose evaluation fails are
    /// missing in the result.
    fn evaluate_each(&self, func: &Function, foldable: &[Binding]) -> ValueByVar {
        let mut values = ValueByVar::default();
        let steps = self.max_steps / MAX_SEPARATE_VALUES as u64;
        let mut by_var: FxHashMap<Var, Binding> = FxHashMap::default();
        let mut failed: FxHashSet<Var> = FxHashSet::default();
        for b in foldable.iter().take(MAX_SEPARATE_VALUES) {
            if self.cancel.is_cancelled() {
                break;
            }
            by_var.insert(b.var, *b);
            let needed = dependence_cone(func, &by_var, b.var);
            if needed.iter().any(|n| failed.contains(&n.var)) {
                failed.insert(b.var);
                continue;
            }
            match self.interpret(func, &needed, &[b.var], steps).and_then(|v| v.into_iter().next())
            {
                Some(value) => {
                    values.insert(b.var, Some(value));
                }
                None => {
                    failed.insert(b.var);
                }
            }
        }
        values
    }

    /// Runs the interpreter on a function that consists of only the given bindings. Returns the values of the variables in
    /// `outside_read`.
    fn interpret(
        &self,
        func: &Function,
        bindings: &[Binding],
        outside_read: &[Var],
        max_steps: u64,
    ) -> Option<Vec<Value>> {
        let (module, name) = self.evaluation_module(func, bindings, outside_read)?;
        let options = Options { max_steps, ..Options::default() };
        match run_with(&module, &name, &[], &NoPacked, &options) {
            Ok(Value::Tuple(values)) if values.len() == outside_read.len() => Some(values.to_vec()),
            _ => None,
        }
    }

    /// Creates a module with one function, which consists of only the given bindings and returns the variables in `outside_read`.
    fn evaluation_module(
        &self,
        func: &Function,
        bindings: &[Binding],
        outside_read: &[Var],
    ) -> Option<(IRModule, Arc<str>)> {
        let mut dst = Function::empty();
        let (block, result) = {
            let mut importer = Importer::new(func, &mut dst);
            let bindings: Vec<Binding> = bindings.iter().map(|&b| importer.binding(b)).collect();
            let vars: Vec<Expr> = outside_read
                .iter()
                .map(|v| importer.vars.get(v).copied())
                .collect::<Option<_>>()?;
            for b in &bindings {
                importer.dst.var_mut(b.var).dataflow = false;
            }
            let block = importer.dst.add_block(BlockData { dataflow: false, bindings });
            (block, importer.dst.tuple(&vars))
        };
        let body = dst.add_seq(SeqData { blocks: vec![block], result });
        let (root, ret_ty) = (dst.root(), dst.expr_ty(result));
        dst.func_mut(root).body = body;
        dst.func_mut(root).ret_ty = ret_ty;
        let mut module = IRModule::new();
        for name in called_globals(&dst) {
            module.insert(name.clone(), self.prim_funcs.get(&name)?.clone());
        }
        let name = module.fresh_name("folded");
        module.insert(name.clone(), dst);
        Some((module, name))
    }
}

/// Returns the variables of the foldable bindings that are read outside of these bindings: by bindings that cannot be
/// folded, or by results of sequences.
fn outside_read(func: &Function, foldable: &[Binding]) -> Vec<Var> {
    let inside: FxHashSet<Var> = foldable.iter().map(|b| b.var).collect();
    let mut read: FxHashSet<Var> = FxHashSet::default();
    walk(func, func.root(), |event| match event {
        Event::EnterBinding(_, b) if !inside.contains(&b.var) => {
            read.extend(operand_vars(func, b.value))
        }
        Event::Result(seq) => read.extend(operand_vars(func, func.seq(seq).result)),
        _ => {}
    });
    foldable.iter().map(|b| b.var).filter(|v| read.contains(v)).collect()
}

/// Returns the binding of a variable, preceded by all bindings on which it depends.
fn dependence_cone(func: &Function, by_var: &FxHashMap<Var, Binding>, var: Var) -> Vec<Binding> {
    let mut out = Vec::new();
    let mut seen: FxHashSet<Var> = FxHashSet::default();
    let mut stack = vec![(var, false)];
    while let Some((v, ready)) = stack.pop() {
        let Some(b) = by_var.get(&v) else { continue };
        if ready {
            out.push(*b);
        } else if seen.insert(v) {
            stack.push((v, true));
            stack.extend(operand_vars(func, b.value).into_iter().map(|v| (v, false)));
        }
    }
    out
}

/// Converts a value to a constant expression of type `ty`; `None` if the value has another type or cannot be written as a
/// constant.
fn constant_of(func: &mut Function, value: &Value, ty: Type) -> Option<Expr> {
    match (value, func.types.get(ty).clone()) {
        (Value::Tensor(t), TypeData::Tensor { dtype, .. }) => {
            if dtype != Some(t.dtype()) {
                return None;
            }
            let e = func.constant(t.clone());
            (func.expr_ty(e) == ty).then_some(e)
        }
        (Value::Tuple(values), TypeData::Tuple(tys)) if values.len() == tys.len() => {
            let fields: Option<Vec<Expr>> =
                values.iter().zip(&tys).map(|(v, &t)| constant_of(func, v, t)).collect();
            let fields = fields?;
            Some(func.tuple(&fields))
        }
        (Value::Shape(dims), TypeData::Shape { .. }) => {
            let dims: Vec<Sym> = dims.iter().map(|&d| func.syms.int(d)).collect();
            let e = func.shape(&dims);
            (func.expr_ty(e) == ty).then_some(e)
        }
        _ => None,
    }
}
