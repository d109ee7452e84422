//! Lowers the symbolic sizes of one function: visits its sequences in order, inserts calls that fill the shape heap (the tensor
//! that contains symbolic sizes at run time), and replaces symbolic operands by reads of the shape heap.

use std::sync::Arc;

use pliant_ir::relax::{
    Binding, Callee, Expr, ExprData, Function, Seq, TensorShape, Type, TypeData, Var,
};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{Attrs, DType, Span, Sym, SymVar};
use pliant_pass::binding_rewrites::{Namer, reachable_seqs, set_flat_bindings, take_flat_bindings};
use pliant_pass::{PassContext, PassError, Problem};
use rustc_hash::{FxHashMap, FxHashSet};

use super::allocated_tensor_dims::{allocated_dims, first_writers};
use super::known_argument_types::CallerFacts;
use super::shape_functions::{PendingShapeFunc, ShapeFunc};
use super::shape_heap::ShapeHeap;
use super::size_upper_bound_checks::bound_checks;
use crate::analysis::result_binding::tail_binding;
use crate::common::operators_after_lowering::{
    NULL_VALUE, builtin_call, op_call, packed_call, prim_int, unit_ty,
};

/// Maximum number of symbolic sizes that one generated loop function computes.
const MAX_TERMS_PER_FUNCTION: usize = 256;

/// Lowers the symbolic sizes of a function. Returns the generated loop functions that the lowered function calls.
pub(super) fn lower_function(
    name: &str,
    func: &mut Function,
    caller_facts: Option<&CallerFacts>,
    taken_names: &FxHashSet<Arc<str>>,
    ctx: &PassContext,
) -> Result<Vec<(Arc<str>, PrimFunc)>, PassError> {
    let mut namer = Namer::new(func);
    let any = func.intern(TypeData::Any);
    let heap_var = namer.var(func, "shape_heap", any);
    let mut lowering = FunctionLowering {
        name: name.into(),
        namer,
        heap: ShapeHeap::default(),
        heap_var,
        heap_used: false,
        heap_substitute: None,
        shape_funcs: Vec::new(),
        taken_names,
        created: FxHashMap::default(),
        creation_log: Vec::new(),
        scalars: FxHashMap::default(),
        heap_read: false,
        allocations: FxHashMap::default(),
        origins: FxHashMap::default(),
        caller_facts,
        dims_proved: false,
        ctx,
    };
    let body = func.body();
    lowering.lower_root(func, body)?;
    lowering.insert_heap_alloc(func, body);
    erase_types(func);
    let size = lowering.heap.size();
    Ok(lowering.shape_funcs.into_iter().map(|(n, k)| (n, k.with_heap_size(size))).collect())
}

/// A value that the lowered function creates from symbolic sizes at run time.
#[derive(Clone, PartialEq, Eq, Hash)]
enum SizeValue {
    /// A shape value with these symbolic dims.
    Shape(Box<[Sym]>),
    /// A scalar: the value of this symbolic term, as an integer or bool of this data type.
    Scalar(Sym, DType),
}

/// The state while the symbolic sizes of one function are lowered: its shape heap, generated loop functions and created shapes.
pub(super) struct FunctionLowering<'a> {
    /// The name of the function that is lowered, with which error messages begin.
    pub name: Arc<str>,
    pub namer: Namer,
    pub heap: ShapeHeap,
    heap_var: Var,
    heap_used: bool,
    /// The variable that is bound to `R.null_value()`, which is passed instead of the shape heap to checks that use no slots of
    /// it.
    heap_substitute: Option<Var>,
    shape_funcs: Vec<(Arc<str>, PendingShapeFunc)>,
    taken_names: &'a FxHashSet<Arc<str>>,
    /// Maps the shapes and integers that were created before the current position, in this sequence or in an enclosing one, to the
    /// variables that contain them.
    created: FxHashMap<SizeValue, Expr>,
    /// The keys of `created`, oldest first. Keys that were added in a branch are removed after the branch.
    creation_log: Vec<SizeValue>,
    /// Maps symbols to the scalar parameters that contain their values.
    pub scalars: FxHashMap<Sym, (Expr, DType)>,
    /// Whether a loop function, a shape or a check reads the shape heap. If nothing reads it, the stores to it are removed.
    pub heap_read: bool,
    /// Maps each dim of an allocated tensor to the source location of the allocation and the name of the function that writes to
    /// the tensor. The loop functions that compute dims use them for checks and messages.
    allocations: FxHashMap<Sym, (Span, Option<Arc<str>>)>,
    /// Maps each symbol to a description of the value that defines it, for error messages.
    pub origins: FxHashMap<SymVar, String>,
    /// The properties of the arguments at all calls; `None` if not all call sites are known.
    pub caller_facts: Option<&'a CallerFacts>,
    /// Whether the dims of the value that is currently checked are already proved to have the expected sizes, so that they need no
    /// check.
    pub dims_proved: bool,
    ctx: &'a PassContext,
}

impl FunctionLowering<'_> {
    pub fn heap_expr(&mut self, func: &mut Function) -> Expr {
        self.heap_used = true;
        func.var_expr(self.heap_var)
    }

    /// Returns the null value that is passed instead of the shape heap to checks that use no slots of it.
    pub fn heap_substitute_expr(&mut self, func: &mut Function) -> Expr {
        let null = match self.heap_substitute {
            Some(null) => null,
            None => {
                let any = func.intern(TypeData::Any);
                *self.heap_substitute.insert(self.namer.var(func, "null", any))
            }
        };
        func.var_expr(null)
    }

    fn lower_root(&mut self, func: &mut Function, body: Seq) -> Result<(), PassError> {
        let checks = bound_checks(func, &self.name, &mut self.namer);
        let mut old_bindings = take_flat_bindings(func, body);
        old_bindings.splice(0..0, checks);
        let mut out = Vec::with_capacity(old_bindings.len() + 16);
        for param in func.params().to_vec() {
            self.record_scalar_param(func, param);
        }
        self.namer.set_span(func.params().first().map_or(Span::NONE, |&p| func.var(p).span));
        self.open_scope(func, &old_bindings, func.seq(body).result);
        self.match_params(func, &mut out)?;
        let want = func.ret_ty();
        self.lower_bindings(func, body, old_bindings, out, Some(want))
    }

    /// Lowers a branch of an `If`. `result_ty` is the function's result type if the branch returns the function's result.
    fn lower_branch(
        &mut self,
        func: &mut Function,
        seq: Seq,
        result_ty: Option<Type>,
    ) -> Result<(), PassError> {
        let old_bindings = take_flat_bindings(func, seq);
        let outer = self.creation_log.len();
        self.open_scope(func, &old_bindings, func.seq(seq).result);
        let mut out = Vec::with_capacity(old_bindings.len());
        self.compute_ready(func, &mut out)?;
        self.lower_bindings(func, seq, old_bindings, out, result_ty)?;
        for key in self.creation_log.drain(outer..) {
            self.created.remove(&key);
        }
        Ok(())
    }

    /// Starts to lower a sequence of bindings: collects the symbolic sizes that the bindings and the result need, and opens a
    /// scope of the shape heap in which these sizes are computed as soon as their symbols are defined.
    fn open_scope(&mut self, func: &Function, bindings: &[Binding], result: Expr) {
        let mut needs = Vec::new();
        let mut stack = Vec::new();
        let writers = first_writers(func, bindings);
        for b in bindings {
            for dim in allocated_dims(func, b.value) {
                let allocation = || (func.var(b.var).span, writers.get(&b.var).cloned());
                self.allocations.entry(dim).or_insert_with(allocation);
            }
        }
        for value in bindings.iter().map(|b| b.value).chain([result]) {
            stack.push(value);
            while let Some(e) = stack.pop() {
                match func.expr(e) {
                    ExprData::Shape(dims) => needs.extend_from_slice(dims),
                    ExprData::Int(value, _) if self.linear_sum(func, *value).is_none() => {
                        needs.push(*value);
                    }
                    ExprData::Tuple(list) => stack.extend(func.list(*list).iter().rev()),
                    ExprData::TupleGetItem(tuple, _) => stack.push(*tuple),
                    ExprData::Call { args, .. } => stack.extend(func.list(*args).iter().rev()),
                    ExprData::If { cond, .. } => stack.push(*cond),
                    _ => {}
                }
            }
        }
        self.heap.open_scope(&func.syms, needs);
    }

    /// Lowers the bindings of a sequence and its result, and closes its scope. The function's result is checked where it is
    /// created, in the branches of an `If` at the end, so that tail calls stay tail calls.
    fn lower_bindings(
        &mut self,
        func: &mut Function,
        seq: Seq,
        old_bindings: Vec<Binding>,
        mut out: Vec<Binding>,
        result_ty: Option<Type>,
    ) -> Result<(), PassError> {
        let end = match (result_ty, tail_binding(func, &old_bindings, func.seq(seq).result)) {
            (Some(want), Some(tail)) => Some(self.result_binding(func, &old_bindings, tail, want)),
            _ => None,
        };
        let mut checked = false;
        for (index, binding) in old_bindings.into_iter().enumerate() {
            if index % 1024 == 0 {
                self.ctx.check_cancelled()?;
            }
            let span = func.var(binding.var).span;
            self.namer.set_span(span);
            if checked && end.is_some_and(|end| end.cast == Some(index)) {
                out.push(Binding::bind(binding.var, binding.value));
                continue;
            }
            let end = end.filter(|end| end.value == index);
            if let Some(end) = end {
                checked = self
                    .check_before_result(func, &binding, end, &mut out)
                    .map_err(|e| add_span(e, span))?;
            }
            let result_ty = end.filter(|end| checked || end.cast.is_none()).map(|end| end.expected);
            self.lower_binding(func, binding, result_ty, &mut out)
                .map_err(|e| add_span(e, span))?;
        }
        let result = func.seq(seq).result;
        let ty = func.expr_ty(result);
        if let ExprData::Var(v) = func.expr(result) {
            self.namer.set_span(func.var(*v).span);
        }
        let result = self.lower_operand(func, result, &mut out)?;
        if let Some(want) = result_ty.filter(|_| !checked) {
            self.check_result(func, result, ty, want, &mut out)?;
        }
        func.seq_mut(seq).result = result;
        set_flat_bindings(func, seq, out);
        self.heap.close_scope();
        Ok(())
    }

    fn lower_binding(
        &mut self,
        func: &mut Function,
        mut binding: Binding,
        result_ty: Option<Type>,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        if let Some(cast) = binding.cast.expand() {
            let value = self.lower_operand(func, binding.value, out)?;
            let subject = match func.expr(value) {
                ExprData::Var(v) => format!("match_cast of '{}'", func.var(*v).name),
                _ => "match_cast".to_string(),
            };
            self.match_value(func, value, func.expr_ty(value), cast, subject, out)?;
            out.push(Binding::bind(binding.var, value));
            return self.compute_ready(func, out);
        }
        match func.expr(binding.value).clone() {
            ExprData::If { cond, then_seq, else_seq } => {
                let cond = self.lower_operand(func, cond, out)?;
                self.lower_branch(func, then_seq, result_ty)?;
                self.lower_branch(func, else_seq, result_ty)?;
                let ty = func.expr_ty(binding.value);
                binding.value = func.add_expr(ExprData::If { cond, then_seq, else_seq }, ty);
                out.push(binding);
            }
            ExprData::Func(_) => {
                return Err(PassError::unsupported(
                    format!(
                        "the pass VMShapeLower supports only functions of the module, but '{}' is a local function",
                        func.var(binding.var).name
                    ),
                    "run LambdaLift first, which moves local functions to the module",
                ));
            }
            ExprData::Call { .. } => {
                binding.value = self.lower_call(func, binding.value, out)?;
                self.check_callee(func, binding.value, out);
                if let Some(call) =
                    result_ty.and_then(|want| self.tail_closure_call(func, &binding, want))
                {
                    binding.value = call;
                }
                out.push(binding);
                self.check_call_result(func, &binding, out)?;
            }
            _ => {
                binding.value = self.lower_operand(func, binding.value, out)?;
                out.push(binding);
            }
        }
        Ok(())
    }

    /// Returns a call in which operands that depend on symbols are replaced by reads of the shape heap.
    fn lower_call(
        &mut self,
        func: &mut Function,
        call: Expr,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        let ExprData::Call { callee, args, attrs, ty_args } = func.expr(call).clone() else {
            return Ok(call);
        };
        let old_args = func.list(args).to_vec();
        let mut new_args = Vec::with_capacity(old_args.len());
        for &arg in &old_args {
            new_args.push(self.lower_operand(func, arg, out)?);
        }
        if new_args == old_args {
            return Ok(call);
        }
        if let Some(text) = reshape_target_text(func, callee, &old_args) {
            new_args.push(func.str_value(&text));
        }
        let attrs: Attrs = func.call_attrs(attrs).clone();
        let ty_args = func.type_list(ty_args).to_vec();
        let ty = func.expr_ty(call);
        Ok(func.call(callee, &new_args, attrs, &ty_args, ty))
    }

    /// Returns an operand in which symbolic shapes and integers are replaced by reads of the shape heap.
    pub fn lower_operand(
        &mut self,
        func: &mut Function,
        e: Expr,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        match func.expr(e).clone() {
            ExprData::Shape(dims) => self.make_shape(func, e, dims, out),
            ExprData::Int(value, dtype) => self.make_int(func, e, value, dtype, out),
            ExprData::Tuple(list) => {
                let old_fields = func.list(list).to_vec();
                let mut new_fields = Vec::with_capacity(old_fields.len());
                for &field in &old_fields {
                    new_fields.push(self.lower_operand(func, field, out)?);
                }
                Ok(if new_fields == old_fields { e } else { func.tuple(&new_fields) })
            }
            ExprData::TupleGetItem(tuple, index) => {
                let lowered_tuple = self.lower_operand(func, tuple, out)?;
                Ok(if lowered_tuple == tuple {
                    e
                } else {
                    func.tuple_get_item(lowered_tuple, index)
                })
            }
            _ => Ok(e),
        }
    }

    fn make_shape(
        &mut self,
        func: &mut Function,
        e: Expr,
        dims: Box<[Sym]>,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        if dims.iter().all(|&d| func.syms.as_int(d).is_some()) {
            return Ok(e);
        }
        let key = SizeValue::Shape(dims.clone());
        if let Some(&shape) = self.created.get(&key) {
            return Ok(shape);
        }
        let mut args = vec![self.heap_expr(func), prim_int(func, dims.len() as i64)];
        for &dim in &dims {
            let (code, value) = self.operand_code(func, dim)?;
            args.extend([prim_int(func, code), prim_int(func, value)]);
        }
        let ty = func.intern(TypeData::Shape { dims: None, ndim: Some(dims.len() as u32) });
        let call = packed_call(func, "vm.builtin.make_shape", &args, ty);
        let shape = self.namer.bind(func, "shape", call, out);
        self.record_created(key, shape);
        Ok(shape)
    }

    /// Records that the variable `value` contains the shape or scalar `key`, so that later bindings of this sequence and of
    /// sequences nested in it use this variable instead of creating the value again.
    fn record_created(&mut self, key: SizeValue, value: Expr) {
        self.creation_log.push(key.clone());
        self.created.insert(key, value);
    }

    fn make_int(
        &mut self,
        func: &mut Function,
        e: Expr,
        value: Sym,
        dtype: DType,
        out: &mut Vec<Binding>,
    ) -> Result<Expr, PassError> {
        if func.syms.as_int(value).is_some() {
            return Ok(e);
        }
        match self.scalars.get(&value) {
            Some(&(scalar, have)) if have == dtype => return Ok(scalar),
            _ => {}
        }
        if let Some(linear) = self.linear_sum(func, value) {
            let value = self.emit_linear_sum(func, linear, dtype);
            return Ok(self.namer.bind(func, "value", value, out));
        }
        let key = SizeValue::Scalar(value, dtype);
        if let Some(&scalar) = self.created.get(&key) {
            return Ok(scalar);
        }
        let (code, slot) = self.operand_code(func, value)?;
        let args = [self.heap_expr(func), prim_int(func, code), prim_int(func, slot)];
        let is_bool = dtype == DType::Bool;
        let read = if is_bool { DType::Int64 } else { dtype };
        let ty = func.intern(TypeData::Prim { dtype: read, value: None });
        let call = packed_call(func, "vm.builtin.make_prim_value", &args, ty);
        let mut scalar = self.namer.bind(func, "size", call, out);
        if is_bool {
            let truth = self.int_to_bool(func, scalar);
            scalar = self.namer.bind(func, "value", truth, out);
        }
        self.record_created(key, scalar);
        Ok(scalar)
    }

    /// Encodes a symbolic size for VM builtins as (code, operand): (0, constant) or (1, slot of the shape heap).
    fn operand_code(&mut self, func: &Function, sym: Sym) -> Result<(i64, i64), PassError> {
        if let Some(value) = func.syms.as_int(sym) {
            return Ok((0, value));
        }
        self.heap_read = true;
        match self.heap.filled_slot(sym) {
            Some(slot) => Ok((1, i64::from(slot))),
            None => Err(self.undefined_error(func, sym)),
        }
    }

    pub fn undefined_error(&self, func: &Function, sym: Sym) -> PassError {
        let syms = &func.syms;
        let missing: Vec<&str> = syms
            .free_vars(sym)
            .into_iter()
            .filter(|&v| !self.heap.is_filled(syms.var(v)))
            .map(|v| syms.name(v))
            .collect();
        let text = syms.display(sym).to_string();
        let what = match missing[..] {
            [name] if name == text => {
                format!("the symbol {name} is used, but not defined at this point of the function")
            }
            _ => format!(
                "{symbols} in {text} is used, but not defined at this point of the function",
                symbols = missing.join(", ")
            ),
        };
        let problem = Problem::new(what);
        PassError::User(vec![problem.with_help(
            "define each symbol before it is used: make it a dim of a parameter or of an earlier R.match_cast, such as n in \
             R.Tensor((n,))",
        )])
    }

    /// Emits calls that compute those needed symbolic sizes whose symbols are all defined, and store them in the shape heap.
    pub fn compute_ready(
        &mut self,
        func: &mut Function,
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let ready = self.heap.take_ready();
        self.compute_terms(func, &ready, out)
    }

    /// Emits calls of generated loop functions that compute the symbolic sizes `terms` and store them in their heap slots.
    pub fn compute_terms(
        &mut self,
        func: &mut Function,
        terms: &[Sym],
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        for chunk in terms.chunks(MAX_TERMS_PER_FUNCTION) {
            let targets: Vec<(Sym, Sym)> = chunk.iter().map(|&s| (s, s)).collect();
            self.compute_into(func, &targets, out)?;
        }
        Ok(())
    }

    /// Emits a call of one generated loop function. For each pair of symbolic sizes, the loop function computes the first size
    /// and stores its value in the slot of the second size in the shape heap.
    pub fn compute_into(
        &mut self,
        func: &mut Function,
        terms: &[(Sym, Sym)],
        out: &mut Vec<Binding>,
    ) -> Result<(), PassError> {
        let mut targets = Vec::with_capacity(terms.len());
        // A failed check reports the source location of the allocation.
        let mut at = None;
        for &(value, target) in terms {
            if self.heap.is_filled(target) || func.syms.as_int(target).is_some() {
                continue;
            }
            // Symbols are not negative, so most terms need no check.
            let zero = func.syms.int(0);
            let allocation = self.allocations.get(&target).cloned();
            let allocation = allocation
                .filter(|_| pliant_ops::size_proofs::at_most(func, zero, target) != Some(true));
            let size = allocation.map(|(span, writer)| {
                at = Some(span);
                writer.map_or(String::new(), |name| format!(", for the result of '{name}'"))
            });
            targets.push((value, target, self.heap.slot(target), size));
        }
        if targets.is_empty() {
            return Ok(());
        }
        let name = self.shape_func_name();
        let shape_func = {
            let slots = |s: Sym| self.heap.filled_slot(s);
            let mut shape_func = ShapeFunc::new(&func.syms, &slots, &self.name);
            for (value, _, slot, size) in &targets {
                let (value, slot) = (*value, *slot);
                shape_func
                    .store(value, slot, size.as_deref())
                    .map_err(|_| self.undefined_error(func, value))?;
            }
            shape_func.finish()
        };
        self.shape_funcs.push((name.clone(), shape_func));
        self.heap_read = true;
        let heap = self.heap_expr(func);
        let unit = unit_ty(func);
        let param = func.intern(TypeData::tensor_rank(1, DType::Int64));
        let ty = func.intern(TypeData::Callable {
            params: Some([param].into()),
            ret: unit,
            pure: false,
        });
        let callee = func.global(&name, ty);
        let call = func.call(Callee::Expr(callee), &[heap], Attrs::default(), &[], unit);
        let outer = at.map(|span| self.namer.set_span(span));
        self.namer.bind(func, "_", call, out);
        if let Some(span) = outer {
            self.namer.set_span(span);
        }
        for (_, target, ..) in targets {
            self.heap.mark_filled(&func.syms, target);
        }
        Ok(())
    }

    fn shape_func_name(&self) -> Arc<str> {
        // The names are numbered, so only names of the module can conflict.
        (self.shape_funcs.len()..)
            .map(|i| format!("shape_func_{}_{i}", self.name))
            .find(|n| !self.taken_names.contains(n.as_str()))
            .expect("a module with finitely many functions leaves a numbered name unused")
            .into()
    }

    /// Inserts the allocation of the shape heap, and of the null value that checks receive instead of the shape heap, before the
    /// body.
    fn insert_heap_alloc(&mut self, func: &mut Function, body: Seq) {
        let mut bindings = Vec::new();
        if self.heap_used && !self.heap_read {
            self.drop_stores(func);
        } else if self.heap_used {
            let slots = i64::from(self.heap.size());
            let size = func.syms.int(slots);
            let ty = func.intern(TypeData::tensor(vec![size], DType::Int64));
            func.var_mut(self.heap_var).ty = ty;
            let size = prim_int(func, slots);
            let call = builtin_call(func, "vm.builtin.alloc_shape_heap", &[size], ty);
            bindings.push(Binding::bind(self.heap_var, call));
        }
        if let Some(null) = self.heap_substitute {
            let ty = func.var(null).ty;
            let call = op_call(func, NULL_VALUE, &[], ty);
            bindings.push(Binding::bind(null, call));
        }
        if !bindings.is_empty() {
            bindings.append(&mut take_flat_bindings(func, body));
            set_flat_bindings(func, body, bindings);
        }
    }

    /// If nothing reads the shape heap, removes the stores to it. Sizes are then only checked.
    fn drop_stores(&mut self, func: &mut Function) {
        for seq in reachable_seqs(func) {
            let mut bindings = take_flat_bindings(func, seq);
            bindings.retain_mut(|binding| match self.without_stores(func, binding.value) {
                Some(value) => {
                    binding.value = value;
                    true
                }
                None => false,
            });
            set_flat_bindings(func, seq, bindings);
        }
    }
}

/// Formats the target shape of a call of `vm.builtin.reshape`, for the error message when the numbers of elements differ.
fn reshape_target_text(func: &Function, callee: Callee, args: &[Expr]) -> Option<String> {
    let Callee::Expr(callee) = callee else { return None };
    match (func.expr(callee), args) {
        (ExprData::Extern(name), &[_, shape]) if &**func.str(*name) == "vm.builtin.reshape" => {
            let ExprData::Shape(dims) = func.expr(shape) else { return None };
            let dims: Vec<String> =
                dims.iter().map(|&d| func.syms.display(d).to_string()).collect();
            Some(format!("({}{})", dims.join(", "), if dims.len() == 1 { "," } else { "" }))
        }
        _ => None,
    }
}

fn add_span(error: PassError, span: pliant_ir::Span) -> PassError {
    match error {
        PassError::User(list) => PassError::User(
            list.into_iter().map(|p| if p.span.is_none() { p.at(span) } else { p }).collect(),
        ),
        other => other,
    }
}

/// Removes symbolic dims from all types except those of the parameters, because the symbols are no longer defined.
fn erase_types(func: &mut Function) {
    let mut erased: FxHashMap<Type, Type> = FxHashMap::default();
    for seq in reachable_seqs(func) {
        for i in 0..func.seq(seq).blocks.len() {
            let block = func.seq(seq).blocks[i];
            for j in 0..func.block(block).bindings.len() {
                let binding = func.block(block).bindings[j];
                let ty = func.var(binding.var).ty;
                func.var_mut(binding.var).ty = erase_symbolic_dims(func, ty, &mut erased);
                let value = erase_expr_types(func, binding.value, &mut erased);
                func.block_mut(block).bindings[j].value = value;
            }
        }
    }
    let root = func.root();
    let ret = func.func(root).ret_ty;
    func.func_mut(root).ret_ty = erase_symbolic_dims(func, ret, &mut erased);
}

/// Returns an expression with symbolic dims removed from its result type and its type arguments.
fn erase_expr_types(func: &mut Function, e: Expr, erased: &mut FxHashMap<Type, Type>) -> Expr {
    if matches!(func.expr(e), ExprData::Var(_)) {
        return e;
    }
    let ty = func.expr_ty(e);
    let new_ty = erase_symbolic_dims(func, ty, erased);
    if new_ty != ty {
        func.set_expr_ty(e, new_ty);
    }
    let ExprData::Call { callee, args, attrs, ty_args } = func.expr(e).clone() else { return e };
    let old = func.type_list(ty_args).to_vec();
    let new: Vec<Type> = old.iter().map(|&t| erase_symbolic_dims(func, t, erased)).collect();
    if new == old {
        return e;
    }
    let (args, attrs) = (func.list(args).to_vec(), func.call_attrs(attrs).clone());
    func.call(callee, &args, attrs, &new, new_ty)
}

/// Returns a type without symbolic dims: shapes that contain symbols become unknown.
pub(super) fn erase_symbolic_dims(
    func: &mut Function,
    ty: Type,
    erased: &mut FxHashMap<Type, Type>,
) -> Type {
    if let Some(&done) = erased.get(&ty) {
        return done;
    }
    let constant =
        |func: &Function, dims: &[Sym]| dims.iter().all(|&d| func.syms.as_int(d).is_some());
    let erased_ty = match func.types.get(ty).clone() {
        TypeData::Tensor { shape: TensorShape::Dims(dims), dtype } if !constant(func, &dims) => {
            TypeData::tensor_rank(dims.len() as u32, dtype)
        }
        TypeData::Tensor { shape: TensorShape::Var(_), dtype } => match func.rank_of(ty) {
            Some(rank) => TypeData::tensor_rank(rank, dtype),
            None => TypeData::tensor_unknown(dtype),
        },
        TypeData::Shape { dims: Some(dims), ndim } if !constant(func, &dims) => {
            TypeData::Shape { dims: None, ndim }
        }
        TypeData::Prim { dtype, value: Some(value) } if func.syms.as_int(value).is_none() => {
            TypeData::Prim { dtype, value: None }
        }
        TypeData::Tuple(fields) => {
            TypeData::Tuple(fields.iter().map(|&f| erase_symbolic_dims(func, f, erased)).collect())
        }
        other => other,
    };
    let erased_ty = func.intern(erased_ty);
    erased.insert(ty, erased_ty);
    erased_ty
}
