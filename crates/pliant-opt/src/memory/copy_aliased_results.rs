//! # What it does
//! Copies each result that is a view of a parameter. Otherwise a caller that writes to the result would change its argument. If the
//! function has the attribute `fresh_results`, it also copies results that are parameters or constants, and results that share
//! memory with another result.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
//!     y: R.Tensor((6,), "float32") = R.reshape(x, R.shape([6]))
//!     return y
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
//!     y: R.Tensor((6,), "float32") = R.reshape(x, R.shape([6]))
//!     copy: R.Tensor((6,), "float32") = R.call_pure_packed("vm.builtin.copy_tensor", y, sinfo_args=(R.Tensor((6,), dtype="float32"),))
//!     return copy
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The results of in-place calls: they are new values, even if they reuse memory.
//!
//! # Never
//! Copies the result of a packed function, because it is unknown whether it is a view.

use pliant_ir::Attrs;
use pliant_ir::attr_names::PRIMITIVE;
use pliant_ir::op::{CALL_PURE_PACKED, WHILE_LOOP};
use pliant_ir::relax::visit::{Event, operand_vars, walk};
use pliant_ir::relax::{Binding, BlockData, Callee, Expr, ExprData, Function, TypeData, Var};
use pliant_pass::binding_rewrites::Namer;
use pliant_pass::{FunctionPass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::memory_aliases::may_be_view;

/// The builtin that copies a tensor.
pub const COPY_TENSOR: &str = "vm.builtin.copy_tensor";

/// The attribute of functions whose results share memory neither with parameters and constants nor with each other, not even if the
/// function returns a parameter, a constant, or one value twice.
pub const FRESH_RESULTS: &str = "fresh_results";

/// The pass that copies results that are views of parameters. See the module documentation.
pub struct CopyAliasedResults;

impl FunctionPass for CopyAliasedResults {
    fn name(&self) -> &str {
        "CopyAliasedResults"
    }

    fn run_on(&self, _: &str, func: &mut Function, _: &PassContext) -> Result<(), PassError> {
        if func.attrs.contains_key(PRIMITIVE) {
            return Ok(());
        }
        let origins = Origins::of(func);
        let fresh = func.attrs.contains_key(FRESH_RESULTS);
        let result = func.seq(func.body()).result;
        if !fresh && !origins.is_view(func, result) {
            return Ok(());
        }
        let mut copier = Copier {
            origins,
            namer: Namer::new(func),
            copies: FxHashMap::default(),
            result_owners: fresh.then(FxHashSet::default),
            out: Vec::new(),
        };
        let result = copier.with_shared_copied(func, result);
        if copier.out.is_empty() {
            return Ok(());
        }
        // Variables that the copies and the result read become outputs of their blocks.
        let values = copier.out.iter().map(|b| b.value).chain([result]);
        for v in values.flat_map(|e| operand_vars(func, e)).collect::<Vec<_>>() {
            func.var_mut(v).dataflow = false;
        }
        let body = func.body();
        let block = func.add_block(BlockData { dataflow: false, bindings: copier.out });
        func.seq_mut(body).blocks.push(block);
        func.seq_mut(body).result = result;
        Ok(())
    }
}

/// The way in which a value may share memory with a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// The value is a parameter, or a field of a parameter that is a tuple.
    Param,
    /// The value is a view of the memory of a parameter, but not the parameter itself.
    View,
}

/// For each variable of a function, whether and how it may share memory with a parameter.
struct Origins {
    by_var: FxHashMap<Var, Origin>,
    /// Maps each variable that is bound to an alias or a view of other variables to these variables, which own its
    /// memory.
    owners: FxHashMap<Var, Vec<Var>>,
    /// Maps variables that are bound to a tuple expression to this expression.
    tuples: FxHashMap<Var, Expr>,
}

impl Origins {
    fn of(func: &Function) -> Origins {
        let fresh = func.attrs.contains_key(FRESH_RESULTS);
        let origin = if fresh { Origin::View } else { Origin::Param };
        let by_var = func.params().iter().map(|&p| (p, origin)).collect();
        let mut origins =
            Origins { by_var, owners: FxHashMap::default(), tuples: FxHashMap::default() };
        walk(func, func.root(), |event| {
            if let Event::LeaveBinding(_, binding) = event {
                if let Some(origin) = origins.origin_of(func, binding.value) {
                    origins.by_var.insert(binding.var, origin);
                }
                let owners = origins.owners_of(func, binding.value);
                if !owners.is_empty() {
                    origins.owners.insert(binding.var, owners);
                }
                if func.tuple_fields(binding.value).is_some() {
                    origins.tuples.insert(binding.var, binding.value);
                }
            }
        });
        origins
    }

    fn is_view(&self, func: &Function, e: Expr) -> bool {
        self.origin_of(func, e) == Some(Origin::View)
    }

    /// Determines whether and how a value may share memory with a parameter. If the parts of a value have different origins,
    /// returns [`Origin::View`].
    fn origin_of(&self, func: &Function, value: Expr) -> Option<Origin> {
        let mut origin = None;
        let mut stack = vec![value];
        while let Some(e) = stack.pop() {
            match func.expr(e) {
                ExprData::Var(v) => origin = origin.max(self.by_var.get(v).copied()),
                ExprData::Tuple(list) => stack.extend(func.list(*list)),
                ExprData::TupleGetItem(t, i) => stack.push(self.field(func, *t, *i)),
                ExprData::If { then_seq, else_seq, .. } => {
                    stack.extend([func.seq(*then_seq).result, func.seq(*else_seq).result]);
                }
                ExprData::Call { callee: Callee::Op(op), args, .. } if may_be_view(*op) => {
                    let source = func.list(*args).first().map(|&x| func.expr(x));
                    if let Some(ExprData::Var(v)) = source
                        && self.by_var.contains_key(v)
                    {
                        origin = Some(Origin::View);
                    }
                }
                // A loop without iterations returns its initial state.
                ExprData::Call { callee: Callee::Op(WHILE_LOOP), args, .. } => {
                    stack.extend(func.list(*args));
                }
                _ => {}
            }
        }
        origin
    }

    /// Returns the variables that own the memory of a value, as far as the value is an alias or a view of variables; empty for a
    /// new value.
    fn owners_of(&self, func: &Function, value: Expr) -> Vec<Var> {
        let mut owners = Vec::new();
        let mut stack = vec![value];
        while let Some(e) = stack.pop() {
            match func.expr(e) {
                ExprData::Var(v) => match self.owners.get(v) {
                    Some(list) => owners.extend(list),
                    None => owners.push(*v),
                },
                ExprData::Tuple(list) => stack.extend(func.list(*list)),
                ExprData::TupleGetItem(t, i) => stack.push(self.field(func, *t, *i)),
                ExprData::If { then_seq, else_seq, .. } => {
                    stack.extend([func.seq(*then_seq).result, func.seq(*else_seq).result]);
                }
                ExprData::Call { callee: Callee::Op(op), args, .. } if may_be_view(*op) => {
                    stack.extend(func.list(*args).first());
                }
                ExprData::Call { callee: Callee::Op(WHILE_LOOP), args, .. } => {
                    stack.extend(func.list(*args));
                }
                _ => {}
            }
        }
        owners
    }

    /// Returns field `i` of a tuple. If the tuple expression is unknown, returns the tuple itself, which stands for any of its
    /// fields.
    fn field(&self, func: &Function, tuple: Expr, i: u32) -> Expr {
        let literal = match func.expr(tuple) {
            ExprData::Var(v) => self.tuples.get(v).copied().unwrap_or(tuple),
            _ => tuple,
        };
        func.tuple_fields(literal).and_then(|f| f.get(i as usize)).copied().unwrap_or(tuple)
    }
}

/// Replaces the parts of a function's result that share memory by copies.
struct Copier {
    origins: Origins,
    namer: Namer,
    /// The copies of variables. Not used if each result must have memory of its own.
    copies: FxHashMap<Var, Expr>,
    /// The variables that own the memory of the results that are returned without a copy; `None` if results may share memory.
    result_owners: Option<FxHashSet<Var>>,
    out: Vec<Binding>,
}

impl Copier {
    /// Returns a value with all parts copied that share memory. The recursion depth is the nesting depth of types, which the parser
    /// and the builder limit.
    fn with_shared_copied(&mut self, func: &mut Function, e: Expr) -> Expr {
        if let Some(fields) = func.tuple_fields(e).map(<[Expr]>::to_vec) {
            if self.result_owners.is_none() && !self.origins.is_view(func, e) {
                return e;
            }
            let fields: Vec<Expr> =
                fields.into_iter().map(|f| self.with_shared_copied(func, f)).collect();
            return func.tuple(&fields);
        }
        if self.result_owners.is_some()
            && let ExprData::Var(v) = func.expr(e)
            && let Some(&tuple) = self.origins.tuples.get(v)
        {
            return self.with_shared_copied(func, tuple);
        }
        let is_constant = matches!(func.expr(e), ExprData::Constant(..));
        if self.result_owners.is_some()
            && is_constant
            && matches!(func.ty(e), TypeData::Tensor { .. })
        {
            return self.copy_tensor(func, e);
        }
        if !self.origins.is_view(func, e) && !self.shares_memory_with_results(func, e) {
            return e;
        }
        let ExprData::Var(v) = *func.expr(e) else { return e };
        if self.result_owners.is_none()
            && let Some(&copies) = self.copies.get(&v)
        {
            return copies;
        }
        let result = match func.var_ty(v).clone() {
            TypeData::Tensor { .. } => self.copy_tensor(func, e),
            TypeData::Tuple(fields) => match self.origins.tuples.get(&v).copied() {
                Some(tuple) => self.with_shared_copied(func, tuple),
                None => {
                    let fields: Vec<Expr> =
                        (0..fields.len() as u32).map(|i| self.field(func, e, i)).collect();
                    func.tuple(&fields)
                }
            },
            _ => e,
        };
        self.copies.insert(v, result);
        result
    }

    /// Whether a value may share memory with a result that is returned without a copy. If not, the value is recorded as such a
    /// result. Always false if results may share memory.
    fn shares_memory_with_results(&mut self, func: &Function, e: Expr) -> bool {
        let Some(results) = &mut self.result_owners else { return false };
        let owners = self.origins.owners_of(func, e);
        if owners.iter().any(|owner| results.contains(owner)) {
            return true;
        }
        results.extend(owners);
        false
    }

    /// Returns a field of a tuple that may contain views. If the field is a tensor, it is copied.
    fn field(&mut self, func: &mut Function, tuple: Expr, i: u32) -> Expr {
        let value = func.tuple_get_item(tuple, i);
        let field = self.namer.bind(func, "field", value, &mut self.out);
        if let ExprData::Var(v) = *func.expr(field) {
            self.origins.by_var.insert(v, Origin::View);
        }
        self.with_shared_copied(func, field)
    }

    fn copy_tensor(&mut self, func: &mut Function, tensor: Expr) -> Expr {
        let ty = func.expr_ty(tensor);
        let callee = func.extern_func(COPY_TENSOR);
        let op = Callee::Op(CALL_PURE_PACKED);
        let call = func.call(op, &[callee, tensor], Attrs::default(), &[ty], ty);
        self.namer.bind(func, "copy", call, &mut self.out)
    }
}
