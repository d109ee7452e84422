//! # What it does
//! Defines symbols for unknown sizes that operators need. A `match_cast` after the definition of a tensor of known rank matches
//! its dims with new symbols, and the operators read the matched tensor. The sizes of their results are then also known in terms
//! of these symbols. Shape values and integer scalars are matched in the same way.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
//!     n = T.int64()
//!     with R.dataflow():
//!         lv = R.unique(x)
//!         lv1 = R.add(lv, R.const(1, "int64"))
//!         gv = R.multiply(lv1, lv)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
//!     n = T.int64()
//!     lv_0 = T.int64()
//!     with R.dataflow():
//!         lv = R.unique(x)
//!         lv2 = R.match_cast(lv, R.Tensor((lv_0,), "int64"))
//!         lv1 = R.add(lv2, R.const(1, "int64"))
//!         gv = R.multiply(lv1, lv2)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. Operators on tensors of unknown rank are left unchanged; they are compiled at run time.
//!
//! # Keeps
//! The types of parameters and of the results of functions and branches, which may be wider than the types of the new values.
//!
//! # Never
//! Changes functions in which all sizes that operators need are known. Assumes that two unknown sizes are equal: an operator that
//! requires equal sizes checks this at run time.

use std::sync::Arc;

use pliant_ir::op::InferError;
use pliant_ir::relax::type_lattice::is_subtype;
use pliant_ir::relax::visit::{Event, for_each_expr, walk};
use pliant_ir::relax::{
    Binding, BlockData, Callee, Expr, ExprData, FuncId, Function, TensorShape, Type, TypeData, Var,
};
use pliant_ir::{BaseFunc, DType, IRModule, Sym};
use pliant_ops::ConstantSizes;
use pliant_pass::binding_rewrites::{Namer, Substitution, reachable_funcs, reachable_seqs};
use pliant_pass::{ModulePass, PassContext, PassError, Problem};
use rustc_hash::FxHashMap;

use crate::common::operators_after_lowering::RESHAPE;
use crate::common::repeat_type_inference::Reinfer;

/// The pass that defines symbols for unknown sizes that operators need. See the module documentation.
pub struct MatchUnknownShapes;

impl ModulePass for MatchUnknownShapes {
    fn name(&self) -> &str {
        "MatchUnknownShapes"
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let names: Vec<Arc<str>> = module
            .relax_funcs()
            .filter(|(_, func)| lacks_shapes(func))
            .map(|(name, _)| name.clone())
            .collect();
        if names.is_empty() {
            return Ok(module);
        }
        // The types of calls follow from the signatures of the callees, which this pass does not change.
        let signatures = module.clone();
        let mut errors = Vec::new();
        for name in names {
            ctx.check_cancelled()?;
            let Some(BaseFunc::Relax(func)) = module.functions.get_mut(&name) else { continue };
            let reinfer = Reinfer { module: &signatures, ops: ctx.ops, widen: false };
            let result = match_shapes(Arc::make_mut(func), reinfer);
            errors.extend(result.err().map(|e| e.in_function(&name)));
        }
        PassError::join(errors).map_or(Ok(module), Err)
    }
}

/// Whether the function contains an operator that needs the sizes of an operand although they are unknown.
fn lacks_shapes(func: &Function) -> bool {
    let mut reads_unknown_sizes = false;
    walk(func, func.root(), |event| {
        if let Event::EnterBinding(_, b) = event {
            reads_unknown_sizes |= !reads_unknown_sizes && needs_shapes(func, b.value) && {
                let mut unknown = false;
                for_each_expr(func, b.value, |e| {
                    unknown |= e != b.value && can_be_matched(func, func.expr_ty(e));
                });
                unknown
            };
        }
    });
    reads_unknown_sizes
}

/// Whether a value is a call of an operator whose loop function depends on the shapes of its operands.
fn needs_shapes(func: &Function, value: Expr) -> bool {
    match *func.expr(value) {
        // A reshape with explicit sizes does not need the operand's sizes.
        ExprData::Call { callee: Callee::Op(RESHAPE), .. } => func.ty(value).dims().is_none(),
        ExprData::Call { callee: Callee::Op(op), .. } => {
            match pliant_ops::constant_sizes_of(op.name()) {
                // A symbol for a size that may be 1 would change the rank of the result.
                ConstantSizes::WhetherOne if func.rank_of(func.expr_ty(value)).is_none() => false,
                // The number of results is determined at run time.
                ConstantSizes::LastDim(_) => false,
                _ => pliant_ops::needs_shapes(op),
            }
        }
        _ => false,
    }
}

/// Whether a `match_cast` can define symbols for a type: it has known rank but unknown sizes, is an integer of unknown value, or
/// is a tuple with such a field. The recursion depth is the nesting depth of tuples, which the verifier limits.
fn can_be_matched(func: &Function, ty: Type) -> bool {
    match func.types.get(ty) {
        TypeData::Tensor { shape: TensorShape::Rank(_), .. }
        | TypeData::Shape { dims: None, ndim: Some(_) }
        | TypeData::Prim { dtype: DType::Int64, value: None } => true,
        TypeData::Tensor { shape: TensorShape::Var(v), .. } => {
            can_be_matched(func, func.var(*v).ty)
        }
        TypeData::Tuple(fields) => fields.iter().any(|&f| can_be_matched(func, f)),
        _ => false,
    }
}

fn match_shapes(func: &mut Function, reinfer: Reinfer<'_>) -> Result<(), PassError> {
    let mut events = Vec::new();
    walk(func, func.root(), |event| {
        if matches!(event, Event::LeaveBinding(..) | Event::Result(_)) {
            events.push(event);
        }
    });
    let mut matcher = Matcher::new(func);
    let mut problems = Vec::new();
    for event in events {
        let b = match event {
            Event::LeaveBinding(_, b) => b,
            Event::Result(seq) => {
                reinfer.update_tuple_ty(func, func.seq(seq).result);
                continue;
            }
            _ => continue,
        };
        if let Err(e) = matcher.match_binding(func, &reinfer, b) {
            let problem = Problem::new(e.message).at(func.var(b.var).span);
            problems.push(match e.help {
                Some(help) => problem.with_help(help),
                None => problem,
            });
        }
    }
    matcher.insert_casts(func);
    if problems.is_empty() { Ok(()) } else { Err(PassError::User(problems)) }
}

/// Inserts `match_cast` bindings that define symbols for unknown sizes into one function.
struct Matcher {
    namer: Namer,
    /// The bindings visited so far, by the variables that they bind. Operands whose sizes the operators need are replaced by the
    /// results of their `match_cast`.
    visited: FxHashMap<Var, Binding>,
    /// Maps each variable to the result of its `match_cast`, which replaces it in later bindings.
    matched: Substitution,
    /// Maps each variable to the `match_cast` bindings to insert after its definition.
    casts: FxHashMap<Var, Vec<Binding>>,
}

impl Matcher {
    fn new(func: &Function) -> Self {
        Matcher {
            namer: Namer::new(func),
            visited: FxHashMap::default(),
            matched: Substitution::default(),
            casts: FxHashMap::default(),
        }
    }

    /// If the operator of a binding needs the sizes of its operands, defines symbols for the unknown sizes of these operands. Then
    /// infers the type of the binding again.
    fn match_binding(
        &mut self,
        func: &mut Function,
        reinfer: &Reinfer<'_>,
        mut b: Binding,
    ) -> Result<(), InferError> {
        if needs_shapes(func, b.value) {
            let mut operands = Vec::new();
            for_each_expr(func, b.value, |e| {
                if let ExprData::Var(v) = *func.expr(e) {
                    operands.push(v);
                }
            });
            for v in operands {
                self.match_variable(func, v);
            }
            b.value = self.matched.apply(func, b.value);
        }
        self.visited.insert(b.var, b);
        match func.expr(b.value) {
            ExprData::Call { .. } | ExprData::Tuple(_) | ExprData::TupleGetItem(..) => {
                reinfer.reinfer_binding(func, b)
            }
            _ => Ok(()),
        }
    }

    /// Defines symbols for the unknown sizes of a variable of known rank.
    fn match_variable(&mut self, func: &mut Function, v: Var) {
        let ty = func.var(v).ty;
        if self.matched.contains(v) || !can_be_matched(func, ty) {
            return;
        }
        if let Some(b) = self.visited.get(&v).filter(|b| b.cast.is_none()) {
            // The declared type of the variable may be less precise than the type of its value.
            let precise_ty = func.expr_ty(b.value);
            if !can_be_matched(func, precise_ty) && is_subtype(func, precise_ty, ty).is_yes() {
                func.var_mut(v).ty = precise_ty;
                return;
            }
        }
        let name = func.var(v).name.clone();
        let cast = self.with_symbols(func, &name, ty);
        let cast_var = self.namer.var(func, &name, cast);
        let (dataflow, span) = (func.var(v).dataflow, func.var(v).span);
        let data = func.var_mut(cast_var);
        (data.dataflow, data.span) = (dataflow, span);
        let value = func.var_expr(v);
        self.casts.entry(v).or_default().push(Binding::match_cast(cast_var, value, cast));
        let operand = func.var_expr(cast_var);
        self.matched.insert(v, operand);
    }

    /// Returns a type with a new symbol for each unknown size. The symbols are named after `name`. The recursion depth
    /// is limited as in [`can_be_matched`].
    fn with_symbols(&mut self, func: &mut Function, name: &str, ty: Type) -> Type {
        let data = match func.types.get(ty).clone() {
            TypeData::Tensor { shape: TensorShape::Rank(n), dtype } => {
                TypeData::tensor(fresh_symbols(func, name, n), dtype)
            }
            TypeData::Shape { dims: None, ndim: Some(n) } => {
                TypeData::shape(fresh_symbols(func, name, n))
            }
            TypeData::Prim { dtype: dtype @ DType::Int64, value: None } => {
                let symbol = func.fresh_sym(&format!("{name}_value"));
                TypeData::Prim { dtype, value: Some(func.syms.var(symbol)) }
            }
            // All tensors whose shape is this variable have the same sizes.
            TypeData::Tensor { shape: TensorShape::Var(shape), dtype } => {
                self.match_variable(func, shape);
                let shape = func.var_expr(shape);
                let shape = self.matched.apply(func, shape);
                match func.ty(shape).dims() {
                    Some(dims) => TypeData::tensor(dims.to_vec(), dtype),
                    None => return ty,
                }
            }
            TypeData::Tuple(fields) => {
                let fields = fields.iter().enumerate();
                let fields =
                    fields.map(|(i, &f)| self.with_symbols(func, &format!("{name}_{i}"), f));
                TypeData::Tuple(fields.collect())
            }
            _ => return ty,
        };
        func.intern(data)
    }

    /// Writes the changed bindings and the new `match_cast` bindings to the function.
    fn insert_casts(mut self, func: &mut Function) {
        for seq in reachable_seqs(func) {
            for block in func.seq(seq).blocks.clone() {
                let old_bindings = std::mem::take(&mut func.block_mut(block).bindings);
                let mut new_bindings = Vec::with_capacity(old_bindings.len());
                for b in old_bindings {
                    new_bindings.push(self.visited.get(&b.var).copied().unwrap_or(b));
                    new_bindings.extend(self.casts.remove(&b.var).into_iter().flatten());
                }
                func.block_mut(block).bindings = new_bindings;
            }
        }
        for id in reachable_funcs(func) {
            self.insert_parameter_casts(func, id);
        }
    }

    /// Inserts the `match_cast` bindings for a function's parameters at the beginning of its body.
    fn insert_parameter_casts(&mut self, func: &mut Function, id: FuncId) {
        let params = func.func(id).params.clone();
        let casts = params.iter().filter_map(|p| self.casts.remove(p));
        let bindings: Vec<Binding> = casts.flatten().collect();
        if !bindings.is_empty() {
            let block = func.add_block(BlockData { dataflow: false, bindings });
            let body = func.func(id).body;
            func.seq_mut(body).blocks.insert(0, block);
        }
    }
}

fn fresh_symbols(func: &mut Function, name: &str, count: u32) -> Vec<Sym> {
    (0..count)
        .map(|i| {
            let symbol = func.fresh_sym(&format!("{name}_{i}"));
            func.syms.var(symbol)
        })
        .collect()
}
