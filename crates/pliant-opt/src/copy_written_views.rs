//! # What it does
//! Gives a view memory of its own where a call that works in place may write into it, or into what it is a view of.
//! `R.reshape` makes a new value; that the machine does not copy it is nobody's to see. In modules with such calls, constants
//! that are written into, and those that a function gives back, are copied as well: what folding made of `R.zeros` is a
//! value of the program's own.
//!
//! # Before
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def increase(A: T.Buffer((6,), "float32")):
//!         for i in range(6):
//!             with T.block("increase"):
//!                 vi = T.axis.spatial(6, i)
//!                 A[vi] = A[vi] + T.float32(1)
//!
//!     @R.function(pure=False)
//!     def main(x: R.Tensor((2, 3), "float32")):
//!         cls = Module
//!         y: R.Tensor((6,), "float32") = R.reshape(x, R.shape([6]))
//!         z = R.call_tir_inplace(cls.increase, (y,), inplace_indices=0, out_sinfo=R.Tensor((6,), "float32"))
//!         return (x, z)
//! ```
//!
//! # After
//! ```python
//! @I.ir_module
//! class Module:
//!     @T.prim_func(private=True)
//!     def increase(A: T.Buffer((6,), "float32")):
//!         for i in range(6):
//!             with T.block("increase"):
//!                 vi = T.axis.spatial(6, i)
//!                 A[vi] = A[vi] + T.float32(1)
//!
//!     @R.function(pure=False)
//!     def main(x: R.Tensor((2, 3), "float32")):
//!         cls = Module
//!         y_view: R.Tensor((6,), "float32") = R.reshape(x, R.shape([6]))
//!         y: R.Tensor((6,), "float32") = R.call_pure_packed("vm.builtin.copy_tensor", y_view, sinfo_args=(R.Tensor((6,), dtype="float32"),))
//!         z = R.call_tir_inplace(cls.increase, (y,), inplace_indices=0, out_sinfo=R.Tensor((6,), "float32"))
//!         return (x, z)
//! ```
//!
//! # Requires
//! No local functions: [`LambdaLift`](crate::lambda_lift) runs before.
//!
//! # Keeps
//! Modules without calls that work in place, and views of values that nothing but the view reads. Constants that are passed
//! to other functions stay what they are, weights among them.
//!
//! # Never
//! Looks into packed functions that are called for their effects: what these write only their authors know.

use std::sync::Arc;

use pliant_ir::attr_names::{INPLACE_INDICES, PRIMITIVE};
use pliant_ir::op::{CALL_PURE_PACKED, CALL_TIR_INPLACE, WHILE_LOOP};
use pliant_ir::relax::visit::{Event, operand_vars, walk};
use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Attrs, BaseFunc, IRModule, Op};
use pliant_ops::decl::Legalize;
use pliant_ops::{OpDecl, registry};
use pliant_pass::rewrite::{Namer, reachable_seqs};
use pliant_pass::{ModulePass, PassContext, PassError};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bind_constants::bind_constants;
use crate::copy_aliased_results::COPY_TENSOR;
use crate::names::{
    ENSURE_ZERO_OFFSET, INVOKE_CLOSURE, INVOKE_PURE_CLOSURE, MAKE_CLOSURE, RESHAPE,
};

/// See the module's documentation.
pub struct CopyWrittenViews;

impl ModulePass for CopyWrittenViews {
    fn name(&self) -> &str {
        "CopyWrittenViews"
    }

    fn run(&self, mut module: IRModule, _: &PassContext) -> Result<IRModule, PassError> {
        if !module.relax_funcs().any(|(_, f)| works_in_place(f)) {
            return Ok(module);
        }
        for func in module.functions.values_mut() {
            let BaseFunc::Relax(func) = func else { continue };
            if func.attrs.contains_key(PRIMITIVE) {
                continue;
            }
            bind_constants(Arc::make_mut(func), hands_on);
            let mut views = written_views(func);
            views.extend(written_constants(func));
            if !views.is_empty() {
                copy_views(Arc::make_mut(func), &views);
            }
        }
        Ok(module)
    }
}

/// Whether a call of a function says that it works in place.
pub(crate) fn works_in_place(func: &Function) -> bool {
    let mut found = false;
    walk(func, func.root(), |event| {
        if let Event::Bound(_, Binding { value, .. }) = event
            && let ExprData::Call { callee: Callee::Op(op), .. } = func.expr(value)
        {
            found |= op.writes_operands();
        }
    });
    found
}

/// Puts a copy behind each of those views.
fn copy_views(func: &mut Function, views: &FxHashSet<Var>) {
    let mut namer = Namer::new(func);
    for seq in reachable_seqs(func) {
        for block in func.seq(seq).blocks.clone() {
            let dataflow = func.block(block).dataflow;
            let old = std::mem::take(&mut func.block_mut(block).bindings);
            let mut new = Vec::with_capacity(old.len());
            for mut binding in old {
                if views.contains(&binding.var) {
                    let hint = format!("{}_view", func.var(binding.var).name);
                    let view = namer.bind(func, &hint, binding.value, &mut new);
                    if let ExprData::Var(v) = *func.expr(view) {
                        func.var_mut(v).dataflow = dataflow;
                    }
                    let (callee, ty) = (func.extern_func(COPY_TENSOR), func.expr_ty(view));
                    let op = Callee::Op(CALL_PURE_PACKED);
                    binding.value = func.call(op, &[callee, view], Attrs::default(), &[ty], ty);
                }
                new.push(binding);
            }
            func.block_mut(block).bindings = new;
        }
    }
}

/// Whether a value may be, or write into, the memory of its operands within the function.
fn hands_on(func: &Function, value: Expr) -> bool {
    match func.expr(value) {
        ExprData::Tuple(_) => true,
        ExprData::Call { callee: Callee::Op(op), .. } => {
            may_be_view(*op) || op.writes_operands() || *op == WHILE_LOOP
        }
        _ => false,
    }
}

/// The constants that the function itself writes into, those that are the state of a loop, and those that it gives back.
fn written_constants(func: &Function) -> Vec<Var> {
    let mut memory = Memory { within: true, ..Memory::default() };
    let mut constants = Vec::new();
    walk(func, func.root(), |event| {
        if let Event::Bound(_, b) = event {
            if let ExprData::Constant(_) = func.expr(b.value) {
                constants.push(b.var);
            }
            memory.bind(func, b);
        }
    });
    memory.written.extend(operand_vars(func, func.seq(func.body()).result));
    let written = memory.written_roots();
    constants.retain(|&c| written.contains(&memory.root(c)));
    constants
}

/// The views whose memory some call may write into while another variable names it too.
fn written_views(func: &Function) -> FxHashSet<Var> {
    let mut memory = Memory::default();
    let mut views = Vec::new();
    let mut reads: FxHashMap<Var, usize> = FxHashMap::default();
    let mut fresh: FxHashSet<Var> = FxHashSet::default();
    walk(func, func.root(), |event| match event {
        Event::Bound(_, b) => {
            operand_vars(func, b.value).into_iter().for_each(|v| *reads.entry(v).or_default() += 1);
            if let Some(source) = reshaped(func, b.value) {
                views.push((b.var, source));
            }
            if !memory.bind(func, b) {
                fresh.insert(b.var);
            }
        }
        Event::Result(seq) => {
            let result = func.seq(seq).result;
            operand_vars(func, result).into_iter().for_each(|v| *reads.entry(v).or_default() += 1);
        }
        _ => {}
    });
    let written = memory.written_roots();
    views.retain(|(view, source)| {
        let alone = fresh.contains(source) && reads.get(source) == Some(&1);
        !alone && written.contains(&memory.root(*view))
    });
    views.into_iter().map(|(view, _)| view).collect()
}

/// Whether the machine may answer an operator with the memory of its first operand: by a view, or as it is.
pub(crate) fn may_be_view(op: Op) -> bool {
    let by_declaration = |decl: &OpDecl| matches!(decl.legalize, Legalize::View(_));
    op == RESHAPE || op == ENSURE_ZERO_OFFSET || registry().decl(op).is_some_and(by_declaration)
}

/// What a value is a view of.
fn reshaped(func: &Function, value: Expr) -> Option<Var> {
    let ExprData::Call { callee: Callee::Op(op), args, .. } = func.expr(value) else {
        return None;
    };
    if !may_be_view(*op) {
        return None;
    }
    match func.expr(*func.list(*args).first()?) {
        ExprData::Var(v) => Some(*v),
        _ => None,
    }
}

/// Which variables may name the same memory, and which of that is written into.
#[derive(Default)]
struct Memory {
    same: FxHashMap<Var, Var>,
    written: Vec<Var>,
    /// Whether functions are taken to keep what they are passed, and loops to write into their state alone.
    within: bool,
}

impl Memory {
    /// Records what a binding shares and writes; whether its value may share memory at all.
    fn bind(&mut self, func: &Function, b: Binding) -> bool {
        let mut shared = Vec::new();
        match func.expr(b.value) {
            ExprData::Var(_) | ExprData::Tuple(_) | ExprData::TupleGetItem(..) => {
                shared = operand_vars(func, b.value);
            }
            ExprData::If { then_seq, else_seq, .. } => {
                for seq in [*then_seq, *else_seq] {
                    shared.extend(operand_vars(func, func.seq(seq).result));
                }
            }
            ExprData::Call { callee, .. } => match callee {
                // A closure may write into what it captures, once it is called.
                Callee::Op(MAKE_CLOSURE) if !self.within => shared = operand_vars(func, b.value),
                Callee::Op(op) if may_be_view(*op) => shared.extend(reshaped(func, b.value)),
                Callee::Op(op) if op.writes_operands() => {
                    shared = overwritten(func, b.value);
                    self.written.extend(&shared);
                }
                // A function of the module may return what it is passed, and may work in place itself.
                Callee::Op(op)
                    if ![WHILE_LOOP, INVOKE_CLOSURE, INVOKE_PURE_CLOSURE].contains(op) => {}
                Callee::Expr(f) if matches!(func.expr(*f), ExprData::Extern(_)) => {}
                Callee::Op(WHILE_LOOP) if self.within => {
                    self.written.extend(operand_vars(func, b.value));
                }
                _ if self.within => {}
                _ => {
                    shared = operand_vars(func, b.value);
                    self.written.extend(&shared);
                }
            },
            _ => {}
        }
        for &v in &shared {
            let (a, b) = (self.root(b.var), self.root(v));
            if a != b {
                self.same.insert(a, b);
            }
        }
        !shared.is_empty()
    }

    fn written_roots(&mut self) -> FxHashSet<Var> {
        std::mem::take(&mut self.written).into_iter().map(|v| self.root(v)).collect()
    }

    fn root(&mut self, v: Var) -> Var {
        let mut root = v;
        while let Some(&next) = self.same.get(&root) {
            root = next;
        }
        let mut v = v;
        while let Some(next) = self.same.get_mut(&v) {
            v = std::mem::replace(next, root);
        }
        root
    }
}

/// The operands that a call works on in place.
pub(crate) fn overwritten(func: &Function, value: Expr) -> Vec<Var> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(value) else {
        return Vec::new();
    };
    let args = func.list(*args);
    let operands = match args {
        [_, inputs, ..] if *op == CALL_TIR_INPLACE => func.tuple_fields(*inputs),
        _ => args.get(1..),
    };
    let indices = func.call_attrs(*attrs).get(INPLACE_INDICES).and_then(AttrValue::as_ints);
    let (Some(operands), Some(indices)) = (operands, indices) else {
        return operand_vars(func, value);
    };
    let places = indices.iter().filter_map(|&i| operands.get(usize::try_from(i).ok()?));
    places.flat_map(|&e| operand_vars(func, e)).collect()
}
