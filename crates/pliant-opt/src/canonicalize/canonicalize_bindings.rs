//! # What it does
//! Removes bindings that only rename a value: `y = x`, a `match_cast` that cannot fail and defines no symbol, a field of a known
//! tuple, a tuple rebuilt from all fields of another. Replaces variables bound to constants, shapes and scalars by their values. If
//! a `match_cast` defines a symbol whose size is known, replaces the symbol by this size.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
//!     n = T.int64()
//!     m = T.int64()
//!     with R.dataflow():
//!         y = R.match_cast(x, R.Tensor((m, 4), "float32"))
//!         t = (y, x)
//!         z = t[0]
//!         lv = R.add(z, y)
//!         gv = lv
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
//!     n = T.int64()
//!     with R.dataflow():
//!         t = (x, x)
//!         gv = R.add(x, x)
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing.
//!
//! # Keeps
//! The name of a block's output. A `match_cast` that may fail, or that is the only definition of a symbol.
//!
//! # Never
//! Replaces a variable by one whose type does not provably fit. Replaces a variable that types mention as a shape. Duplicates a
//! constant to which a call may write. Removes computations, even dead ones:
//! [`DeadCodeElimination`](crate::canonicalize::dead_code_elimination) does this.

use pliant_ir::relax::type_lattice::{SymMap, definable_syms, is_subtype, type_syms};
use pliant_ir::relax::visit::{Event, copy_function_with, walk};
use pliant_ir::relax::{Binding, Expr, ExprData, Function, Seq, Type, TypeData, Var};
use pliant_ir::{IRModule, Sym, SymVar};
use pliant_pass::binding_rewrites::{
    Substitution, drop_empty_blocks, mark_outputs, reachable_seqs, shape_vars, substitute_result,
};
use pliant_pass::pass::update_each_relax;
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::memory_aliases::{MemoryAliases, ParamUses, written_constants};
use crate::common::bind_constants_to_variables::bind_constants;

/// The pass that removes copies of variables, casts that cannot fail and fields of known tuples. See the module documentation.
pub struct CanonicalizeBindings;

impl ModulePass for CanonicalizeBindings {
    fn name(&self) -> &str {
        "CanonicalizeBindings"
    }

    fn opt_level(&self) -> u8 {
        1
    }

    fn run(&self, mut module: IRModule, ctx: &PassContext) -> Result<IRModule, PassError> {
        let uses = ParamUses::of_in_place_module(&module);
        update_each_relax(&mut module, ctx, |_, func| Ok(canonicalize(func, uses.as_ref())))?;
        Ok(module)
    }
}

/// Removes copies, casts that cannot fail and fields of known tuples from one function. Returns whether the function changed.
fn canonicalize(func: &mut Function, uses: Option<&ParamUses>) -> bool {
    let mut changed = forward_values(func, uses);
    // After a symbol is replaced by a known size, the match_cast that defined it cannot fail.
    while resolve_symbols(func) {
        changed = true;
        forward_values(func, uses);
    }
    changed
}

/// Finds the symbols that a `match_cast` defines and whose sizes are known, and replaces each symbol by its size in the whole
/// function. Returns whether any symbol was replaced.
fn resolve_symbols(func: &mut Function) -> bool {
    let resolved = symbols_of_known_size(func);
    if resolved.is_empty() {
        return false;
    }
    *func = copy_function_with(func, |importer| {
        for (v, to) in resolved {
            let to = importer.sym(to);
            importer.syms.insert(v, to);
        }
    });
    true
}

/// Returns the symbols that a `match_cast` defines and whose sizes are known, each with its size. The first
/// `match_cast` that defines such a symbol must precede all other occurrences of the symbol.
fn symbols_of_known_size(func: &mut Function) -> Vec<(SymVar, Sym)> {
    let mut sites: FxHashMap<SymVar, usize> = FxHashMap::default();
    let mut defined: FxHashSet<SymVar> = FxHashSet::default();
    let mut casts: Vec<(bool, Expr, Type)> = Vec::new();
    walk(func, func.root(), |event| match event {
        Event::EnterFunc(id) => {
            for &p in &func.func(id).params {
                defined.extend(type_syms(func, func.var(p).ty));
            }
        }
        Event::EnterBinding(position, b) => {
            if let Some(cast) = b.cast.expand() {
                for v in type_syms(func, cast) {
                    *sites.entry(v).or_default() += 1;
                }
                casts.push((position.seq == func.body(), b.value, cast));
            }
        }
        _ => {}
    });
    let mut resolved = Vec::new();
    let mut map = SymMap::default();
    for (at_top, value, cast) in casts {
        for (v, dim) in matched_symbols(func, func.expr_ty(value), cast) {
            let first = defined.insert(v);
            if first && (at_top || sites[&v] == 1) {
                let dim = func.syms.substitute(dim, &|v| map.get(&v).copied());
                if !func.syms.contains_var(dim, v) {
                    map.insert(v, dim);
                    resolved.push((v, dim));
                }
            }
        }
        defined.extend(definable_syms(func, cast));
    }
    resolved
}

/// Returns, for each dim of the type `cast` that is a single symbol, the symbol and the size in the same dim of the type `value`.
fn matched_symbols(func: &Function, value: Type, cast: Type) -> Vec<(SymVar, Sym)> {
    let mut out = Vec::new();
    let mut stack = vec![(value, cast)];
    while let Some((a, b)) = stack.pop() {
        match (func.types.get(a), func.types.get(b)) {
            (TypeData::Tuple(x), TypeData::Tuple(y)) if x.len() == y.len() => {
                stack.extend(x.iter().copied().zip(y.iter().copied()).rev());
            }
            (TypeData::Prim { value: Some(x), .. }, TypeData::Prim { value: Some(y), .. }) => {
                out.extend(func.syms.as_var(*y).map(|v| (v, *x)));
            }
            (x, y) => {
                if let (Some(x), Some(y)) = (x.dims(), y.dims())
                    && x.len() == y.len()
                {
                    let pairs = y.iter().zip(x);
                    out.extend(pairs.filter_map(|(&y, &x)| Some((func.syms.as_var(y)?, x))));
                }
            }
        }
    }
    out
}

/// Replaces variables that only rename a value by this value in all their readers. Returns whether the function changed.
/// Enclosing sequences are visited first, so that the replacement of a variable is final when its readers are rewritten.
fn forward_values(func: &mut Function, uses: Option<&ParamUses>) -> bool {
    let mut pinned = shape_vars(func);
    if let Some(uses) = uses.filter(|_| func.has_constants()) {
        // A constant in a tuple may be written to as well.
        bind_constants(func, |f, e| uses.shares_or_writes_operands(f, e));
        pinned.extend(written_constants(
            func,
            &mut MemoryAliases::of_with_results_written(func, uses),
        ));
    }
    let mut forwarder = Forwarder { pinned, ..Forwarder::default() };
    let mut changed = false;
    let seqs = reachable_seqs(func);
    for &seq in &seqs {
        changed |= forwarder.sequence(func, seq);
    }
    if changed {
        mark_outputs(func);
    }
    changed
}

#[derive(Default)]
struct Forwarder {
    subst: Substitution,
    /// Variables that must not be replaced: those that types mention, and those bound to constants to which a call may write.
    pinned: FxHashSet<Var>,
    /// Maps variables that are bound to a tuple expression to this expression.
    tuples: FxHashMap<Var, Expr>,
    /// Maps variables that are bound to a field of a tuple variable to (tuple variable, index of the field).
    fields: FxHashMap<Var, (Var, u32)>,
}

impl Forwarder {
    fn sequence(&mut self, func: &mut Function, seq: Seq) -> bool {
        let mut changed = false;
        for i in 0..func.seq(seq).blocks.len() {
            let block = func.seq(seq).blocks[i];
            let old_bindings = std::mem::take(&mut func.block_mut(block).bindings);
            let mut new_bindings = Vec::with_capacity(old_bindings.len());
            for mut binding in old_bindings {
                let mut value = self.subst.apply(func, binding.value);
                value = self.known_tuple_field(func, value);
                value = self.original_tuple(func, value);
                if self.forward(func, binding, value) {
                    changed = true;
                    continue;
                }
                changed |= value != binding.value;
                binding.value = value;
                self.record_tuple(func, binding);
                new_bindings.push(binding);
            }
            func.block_mut(block).bindings = new_bindings;
        }
        changed |= substitute_result(func, seq, &self.subst);
        changed | drop_empty_blocks(func, seq)
    }

    /// If `value` accesses a field of a tuple whose tuple expression is known, returns the expression of the field; otherwise
    /// returns `value`.
    fn known_tuple_field(&self, func: &Function, value: Expr) -> Expr {
        let ExprData::TupleGetItem(tuple, index) = *func.expr(value) else { return value };
        let tuple = match func.expr(tuple) {
            ExprData::Var(v) => self.tuples.get(v).copied().unwrap_or(tuple),
            _ => tuple,
        };
        let fields = func.tuple_fields(tuple);
        fields.and_then(|f| f.get(index as usize).copied()).unwrap_or(value)
    }

    /// Rewrites a tuple `(t[0], t[1], ...)` of all fields of the tuple `t` to `t`.
    fn original_tuple(&self, func: &mut Function, value: Expr) -> Expr {
        let Some(elements) = func.tuple_fields(value) else { return value };
        let field_of = |e: &Expr| match func.expr(*e) {
            ExprData::Var(v) => self.fields.get(v).copied(),
            _ => None,
        };
        let Some((tuple, 0)) = elements.first().and_then(field_of) else { return value };
        let all = elements.iter().enumerate().all(|(i, e)| field_of(e) == Some((tuple, i as u32)));
        let complete =
            matches!(func.var_ty(tuple), TypeData::Tuple(f) if f.len() == elements.len());
        if all && complete { func.var_expr(tuple) } else { value }
    }

    fn record_tuple(&mut self, func: &Function, binding: Binding) {
        if binding.cast.is_some() {
            return;
        }
        match *func.expr(binding.value) {
            ExprData::Tuple(_) => {
                self.tuples.insert(binding.var, binding.value);
            }
            ExprData::TupleGetItem(tuple, index) => {
                if let ExprData::Var(t) = *func.expr(tuple) {
                    self.fields.insert(binding.var, (t, index));
                }
            }
            _ => {}
        }
    }

    /// If `value` only renames another value, records in `subst` that `value` replaces the variable of the binding in all readers.
    /// Does nothing if `value` is a computation, if the variable is pinned, or if the type of `value` is not a subtype of the
    /// variable's type. Returns whether the replacement was recorded, which makes the binding redundant.
    fn forward(&mut self, func: &mut Function, binding: Binding, value: Expr) -> bool {
        let is_leaf = !matches!(
            func.expr(value),
            ExprData::Tuple(_)
                | ExprData::TupleGetItem(..)
                | ExprData::Call { .. }
                | ExprData::If { .. }
                | ExprData::Func(_)
        );
        if !is_leaf || self.pinned.contains(&binding.var) {
            return false;
        }
        let ty = binding.cast.expand().unwrap_or(func.var(binding.var).ty);
        if !is_subtype(func, func.expr_ty(value), ty).is_yes() {
            return false;
        }
        if let ExprData::Var(source) = *func.expr(value) {
            self.take_over_name(func, binding.var, source);
        }
        self.subst.insert(binding.var, value);
        true
    }

    /// If the block output `output` is only another name of the variable `source`, which is local to the block, makes `source`
    /// the output under the name of `output`.
    fn take_over_name(&self, func: &mut Function, output: Var, source: Var) {
        if func.var(source).dataflow && !func.var(output).dataflow && !self.pinned.contains(&source)
        {
            let name = func.var(output).name.clone();
            let source = func.var_mut(source);
            source.name = name;
            source.dataflow = false;
        }
    }
}
