//! # What it does
//! Common subexpression elimination: if two bindings compute equal values, removes the second binding and replaces its variable
//! by the variable of the first one. Compares operator calls, `call_tir`, calls of pure functions, tuples, tuple fields and
//! `match_cast`, within a block, across blocks and in branches.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.add(x, y)
//!         lv1 = R.add(x, y)
//!         lv2 = R.exp(lv)
//!         lv3 = R.exp(lv1)
//!         gv = R.multiply(lv2, lv3)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.add(x, y)
//!         lv2 = R.exp(lv)
//!         gv = R.multiply(lv2, lv2)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The first of two equal bindings and its name. Its variable becomes an output of its block if a later block reads it.
//!
//! # Never
//! Merges calls with side effects, calls on both sides of a call that may write to tensors, in-place calls, values that such
//! calls overwrite, random numbers, or a value inside a local function with one outside of it.

use pliant_ir::IRModule;
use pliant_ir::relax::expr::AttrsId;
use pliant_ir::relax::visit::{Event, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Str, Type, Var};
use pliant_ir::{DType, Op, Sym};
use pliant_pass::binding_rewrites::{
    Substitution, mark_outputs, remove_and_substitute, shape_vars,
};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::memory_aliases::{MemoryAliases, ParamUses};
use crate::analysis::{Effects, may_write_tensors, written_vars};

/// The pass that computes equal values only once (common subexpression elimination). See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct EliminateCommonSubexpr {
    /// Whether to merge only calls, not tuples, tuple fields and constants.
    pub call_only: bool,
}

impl ModulePass for EliminateCommonSubexpr {
    fn name(&self) -> &str {
        "EliminateCommonSubexpr"
    }

    fn opt_level(&self) -> u8 {
        1
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let effects = Effects::of(&module, ctx.ops);
        let uses = ParamUses::of_in_place_module(&module);
        update_each_relax(&mut module, ctx, |_, func| {
            Ok(self.eliminate(func, &effects, uses.as_ref()))
        })?;
        Ok(module)
    }
}

impl EliminateCommonSubexpr {
    fn eliminate(&self, func: &mut Function, effects: &Effects, uses: Option<&ParamUses>) -> bool {
        let mut numbering = ValueNumbering::new(func, effects);
        if let Some(uses) = uses {
            // The caller may write to returned values.
            numbering.written.extend(MemoryAliases::of_with_results_written(func, uses).returned());
        }
        walk(func, func.root(), |event| numbering.visit(event));
        let mut replacements = numbering.replacements;
        if self.call_only {
            replacements.retain(|(_, _, value)| matches!(func.expr(*value), ExprData::Call { .. }));
        }
        if replacements.is_empty() {
            return false;
        }
        let mut subst = Substitution::default();
        let mut dead = FxHashSet::default();
        for (var, replacement, _) in replacements {
            let replacement = func.var_expr(replacement);
            subst.insert(var, replacement);
            dead.insert(var);
        }
        remove_and_substitute(func, &dead, &subst);
        mark_outputs(func);
        true
    }
}

/// Maps the variable of each redundant binding to the variable of the first binding with the same value.
pub(crate) fn redundant_bindings(func: &Function, effects: &Effects) -> FxHashMap<Var, Var> {
    let mut numbering = ValueNumbering::new(func, effects);
    walk(func, func.root(), |event| numbering.visit(event));
    numbering.replacements.into_iter().map(|(var, first, _)| (var, first)).collect()
}

/// The key that identifies a value in value numbering: two expressions with equal keys have equal values. Operands are
/// represented by their value numbers.
#[derive(PartialEq, Eq, Hash)]
enum ValueKey {
    Var(Var),
    Global(Str),
    Extern(Str),
    Text(Str),
    Tensor(DType, Box<[i64]>, Box<[u8]>),
    Other(Expr),
    Shape(Box<[Sym]>),
    Int(Sym, DType),
    Float(u64, DType),
    DType(DType),
    Tuple(Box<[u32]>),
    Field(u32, u32),
    Op(Op, Box<[u32]>, AttrsId, Box<[Type]>, Type),
    Call(u32, Box<[u32]>, AttrsId, Box<[Type]>, Type),
    Cast(u32, Type),
}

/// Maximum size in bytes of constants that are compared by content. Larger constants are equal only if they are the same
/// expression.
const MAX_COMPARED_BYTES: usize = 4096;

/// A variable whose value is available, and the epoch in which it was computed (the number of preceding calls that may write to
/// tensors).
type AvailableVar = (Var, u32);

/// Traverses a function, assigns value numbers to its expressions, and collects the redundant bindings.
struct ValueNumbering<'a> {
    func: &'a Function,
    effects: &'a Effects,
    numbers: FxHashMap<ValueKey, u32>,
    vars: FxHashMap<Var, u32>,
    pinned: FxHashSet<Var>,
    written: FxHashSet<Var>,
    /// Maps each value number to the variable with this value that is available at the current position.
    available: FxHashMap<u32, AvailableVar>,
    /// For each sequence that is being traversed, the entries of `available` that its bindings replaced, with their previous
    /// values, which are restored at the end of the sequence.
    undo: Vec<Vec<(u32, Option<AvailableVar>)>>,
    /// For each local function that is being traversed, the map `available` at the position where the function is defined.
    outer_available: Vec<FxHashMap<u32, AvailableVar>>,
    /// The current epoch: the number of calls so far that may write to tensors. Only values that were computed in the same epoch
    /// are merged.
    epoch: u32,
    /// The redundant variables, each as (redundant variable, variable that replaces it, value).
    replacements: Vec<(Var, Var, Expr)>,
}

impl<'a> ValueNumbering<'a> {
    fn new(func: &'a Function, effects: &'a Effects) -> Self {
        ValueNumbering {
            func,
            effects,
            numbers: FxHashMap::default(),
            vars: FxHashMap::default(),
            pinned: shape_vars(func),
            written: written_vars(func, effects),
            available: FxHashMap::default(),
            undo: Vec::new(),
            outer_available: Vec::new(),
            epoch: 0,
            replacements: Vec::new(),
        }
    }

    fn visit(&mut self, event: Event) {
        match event {
            Event::EnterFunc(_) => self.outer_available.push(std::mem::take(&mut self.available)),
            Event::LeaveFunc(_) => self.available = self.outer_available.pop().unwrap_or_default(),
            Event::EnterSeq(_) => self.undo.push(Vec::new()),
            Event::Result(_) => {
                for (number, before) in self.undo.pop().unwrap_or_default().into_iter().rev() {
                    match before {
                        Some(entry) => self.available.insert(number, entry),
                        None => self.available.remove(&number),
                    };
                }
            }
            Event::LeaveBinding(_, binding) => self.binding(binding),
            _ => {}
        }
    }

    fn binding(&mut self, b: Binding) {
        if self.effects.is_impure(self.func, b.value) {
            if may_write_tensors(self.func, b.value) {
                self.epoch += 1;
            }
            return;
        }
        if !is_shareable(self.func, b.value) || self.written.contains(&b.var) {
            return;
        }
        let ty = self.func.var(b.var).ty;
        let mut number = self.value_number(b.value);
        match b.cast.expand() {
            Some(cast) => number = self.intern(ValueKey::Cast(number, cast)),
            None if ty != self.func.expr_ty(b.value) => return,
            None if matches!(self.func.expr(b.value), ExprData::Var(_)) => {
                self.vars.insert(b.var, number);
                return;
            }
            None => {}
        }
        match self.available.get(&number) {
            Some(&(first, epoch))
                if epoch == self.epoch
                    && self.func.var(first).ty == ty
                    && !self.pinned.contains(&b.var) =>
            {
                let same = self.intern(ValueKey::Var(first));
                self.vars.insert(b.var, same);
                self.replacements.push((b.var, first, b.value));
            }
            _ => {
                let before = self.available.insert(number, (b.var, self.epoch));
                if let Some(undo) = self.undo.last_mut() {
                    undo.push((number, before));
                }
            }
        }
    }

    fn intern(&mut self, key: ValueKey) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(key).or_insert(next)
    }

    fn value_numbers(&mut self, list: &[Expr]) -> Box<[u32]> {
        list.iter().map(|&e| self.value_number(e)).collect()
    }

    /// Returns the value number of an expression. The recursion depth is the nesting depth of tuples, which the verifier limits.
    fn value_number(&mut self, e: Expr) -> u32 {
        let f = self.func;
        let key = match f.expr(e) {
            ExprData::Var(v) => match self.vars.get(v) {
                Some(&number) => return number,
                None => ValueKey::Var(*v),
            },
            ExprData::Global(s) => ValueKey::Global(*s),
            ExprData::Extern(s) => ValueKey::Extern(*s),
            ExprData::Str(s) => ValueKey::Text(*s),
            ExprData::Constant(c) => {
                let t = f.const_tensor(*c);
                match t.as_bytes() {
                    Ok(bytes) if bytes.len() <= MAX_COMPARED_BYTES => {
                        ValueKey::Tensor(t.dtype(), t.shape().into(), bytes.into())
                    }
                    _ => ValueKey::Other(e),
                }
            }
            ExprData::Shape(dims) => ValueKey::Shape(dims.clone()),
            ExprData::Int(v, dtype) => ValueKey::Int(*v, *dtype),
            ExprData::Float(bits, dtype) => ValueKey::Float(*bits, *dtype),
            ExprData::DType(d) => ValueKey::DType(*d),
            ExprData::Tuple(list) => ValueKey::Tuple(self.value_numbers(f.list(*list))),
            ExprData::TupleGetItem(tuple, index) => {
                ValueKey::Field(self.value_number(*tuple), *index)
            }
            ExprData::Call { callee, args, attrs, ty_args } => {
                let args = self.value_numbers(f.list(*args));
                let ty_args = f.type_list(*ty_args).into();
                match callee {
                    Callee::Op(op) => ValueKey::Op(*op, args, *attrs, ty_args, f.expr_ty(e)),
                    Callee::Expr(callee) => {
                        let callee = self.value_number(*callee);
                        ValueKey::Call(callee, args, *attrs, ty_args, f.expr_ty(e))
                    }
                }
            }
            ExprData::If { .. } | ExprData::Func(_) => ValueKey::Other(e),
        };
        self.intern(key)
    }
}

/// Whether two evaluations of a pure expression always yield the same value, unlike random numbers, so that they can be merged.
fn is_shareable(f: &Function, e: Expr) -> bool {
    match f.expr(e) {
        ExprData::If { .. } | ExprData::Func(_) => false,
        ExprData::Call { callee: Callee::Op(op), .. } => !op.writes_operands(),
        _ => true,
    }
}
