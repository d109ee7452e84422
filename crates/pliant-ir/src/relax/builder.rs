//! [`FunctionBuilder`]: builds a graph function in A-normal form, one binding after another. Types are inferred when a call is
//! created.

use std::sync::Arc;

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use pliant_diag::Span;
use rustc_hash::FxHashMap;

use super::expr::*;
use super::function::Function;
use super::types::{Type, TypeData};
use crate::attr_values::{Attrs, FuncAttrs};
use crate::op::{InferError, NULL_VALUE, Op, OpRegistry};

/// A builder of a graph function. Blocks are created as needed: [`begin_dataflow`](Self::begin_dataflow) and
/// [`end_dataflow`](Self::end_dataflow) delimit dataflow blocks. Bindings outside of them are collected in blocks that are not
/// dataflow blocks.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ir::op::NoOps;
/// use pliant_ir::print::{PrintOptions, print_function};
/// use pliant_ir::relax::{FunctionBuilder, TypeData};
///
/// let mut b = FunctionBuilder::new(&NoOps);
/// let f = b.func_mut();
/// let n = f.fresh_sym("n");
/// let dims = vec![f.syms.var(n)];
/// let ty = f.intern(TypeData::tensor(dims, DType::Float32));
/// let x = b.param("x", ty);
/// let x = b.func().var_expr(x);
/// let pair = b.func_mut().tuple(&[x, x]);
/// let func = b.finish(pair, None, true);
/// let text = print_function("pair", &func, &NoOps, &PrintOptions::default());
/// assert!(text.contains("return (x, x)"));
/// ```
pub struct FunctionBuilder<'r> {
    func: Function,
    ops: &'r dyn OpRegistry,
    frames: Vec<Frame>,
    /// The variable names in use, each with the last number that was appended to it to make another name unique.
    names: FxHashMap<Arc<str>, u32>,
    /// The log of changes to `names`, with the previous numbers, so that names can be released.
    taken: Vec<(Arc<str>, Option<u32>)>,
    values: SecondaryMap<Var, PackedOption<Expr>>,
    span: Span,
}

/// A local function whose construction is suspended; see [`FunctionBuilder::suspend_func`].
pub struct SuspendedFunc(Frame);

impl SuspendedFunc {
    /// The parameters that have been added so far.
    pub fn params(&self) -> &[Var] {
        self.0.func.as_ref().map_or(&[], |f| &f.1)
    }
}

/// A position in the log of taken names; see [`FunctionBuilder::release_names`].
#[derive(Clone, Copy)]
pub struct NameMark(usize);

/// A sequence under construction: the body of a function, a branch, or a separate list of blocks.
#[derive(Default)]
struct Frame {
    blocks: Vec<Block>,
    /// The block to which bindings are added. If it is `None`, the next binding opens a block, which is not a dataflow block.
    open_block: Option<Block>,
    /// The local function whose body the sequence is, and its parameters; `None` for other sequences.
    func: Option<(FuncId, Vec<Var>)>,
    /// Whether this is a separate list of blocks.
    separate: bool,
}

impl<'r> FunctionBuilder<'r> {
    /// Creates a builder for an empty function.
    pub fn new(ops: &'r dyn OpRegistry) -> Self {
        FunctionBuilder {
            func: Function::empty(),
            ops,
            frames: vec![Frame::default()],
            names: FxHashMap::default(),
            taken: Vec::new(),
            values: SecondaryMap::new(),
            span: Span::NONE,
        }
    }

    /// Creates a builder that adds to the arenas of an existing function. New expressions can refer
    /// to existing ones. New variables get names that no existing variable has.
    pub fn resume(func: Function, ops: &'r dyn OpRegistry) -> Self {
        let mut builder = FunctionBuilder { func, ..FunctionBuilder::new(ops) };
        for v in builder.func.var_ids() {
            builder.names.insert(builder.func.var(v).name.clone(), 0);
        }
        builder
    }

    /// Returns the function. Unlike [`finish`](Self::finish), does not set its body and its result type.
    pub fn into_func(self) -> Function {
        self.func
    }

    /// The function under construction, in its current state.
    pub fn func(&self) -> &Function {
        &self.func
    }

    /// Mutable access to the arenas of the function, for creating operands, types and symbols.
    pub fn func_mut(&mut self) -> &mut Function {
        &mut self.func
    }

    /// The operator registry used for type inference.
    pub fn ops(&self) -> &'r dyn OpRegistry {
        self.ops
    }

    /// Sets the source location of the following bindings.
    pub fn set_span(&mut self, span: Span) {
        self.span = span;
    }

    /// Creates a variable name, starting with `hint`, that is unique in this function.
    pub fn unique_name(&mut self, hint: &str) -> Arc<str> {
        let Some(&count) = self.names.get(hint) else {
            return self.take_name(hint.into(), 0);
        };
        let mut count = count;
        let name: Arc<str> = loop {
            count += 1;
            let name = format!("{hint}{count}");
            if !self.names.contains_key(name.as_str()) {
                break name.into();
            }
        };
        self.take_name(hint.into(), count);
        self.take_name(name, 0)
    }

    fn take_name(&mut self, name: Arc<str>, count: u32) -> Arc<str> {
        let before = self.names.insert(name.clone(), count);
        self.taken.push((name.clone(), before));
        name
    }

    /// Returns the current position in the log of taken names, so that [`release_names`](Self::release_names) can release the names
    /// taken after it.
    pub fn mark_names(&self) -> NameMark {
        NameMark(self.taken.len())
    }

    /// Releases the names that were taken since the mark, so that they can be used again. No
    /// binding may define a variable with one of these names.
    pub fn release_names(&mut self, mark: NameMark) {
        while self.taken.len() > mark.0 {
            let Some((name, before)) = self.taken.pop() else { break };
            match before {
                Some(count) => self.names.insert(name, count),
                None => self.names.remove(&name),
            };
        }
    }

    /// Adds a parameter to the innermost function under construction.
    pub fn param(&mut self, name: &str, ty: Type) -> Var {
        let name = self.unique_name(name);
        let var = self.func.add_var(name, ty, false, self.span);
        self.push_param(var);
        var
    }

    /// Adds an existing variable as a parameter of the innermost function under construction.
    pub fn push_param(&mut self, var: Var) {
        match self.frames.iter_mut().rev().find_map(|f| f.func.as_mut()) {
            Some((_, params)) => params.push(var),
            None => {
                let root = self.func.root();
                self.func.func_mut(root).params.push(var);
            }
        }
    }

    // ---- blocks ----

    /// Opens a dataflow block, which contains the following bindings.
    ///
    /// # Errors
    /// If a dataflow block is already open, because dataflow blocks cannot be nested.
    pub fn begin_dataflow(&mut self) -> Result<(), InferError> {
        if self.in_dataflow() {
            return Err(InferError::new(
                "a dataflow block is already open; dataflow blocks cannot be nested",
            ));
        }
        let block = self.func.add_block(BlockData { dataflow: true, bindings: Vec::new() });
        let frame = self.frame();
        frame.blocks.push(block);
        frame.open_block = Some(block);
        Ok(())
    }

    /// Closes the open dataflow block.
    pub fn end_dataflow(&mut self) {
        self.frame().open_block = None;
    }

    /// The variables that the open block binds.
    pub fn open_block_vars(&self) -> Vec<Var> {
        let open = self.frames.last().and_then(|f| f.open_block);
        let bindings = open.into_iter().flat_map(|b| &self.func.block(b).bindings);
        bindings.map(|binding| binding.var).collect()
    }

    /// Whether a dataflow block is open.
    pub fn in_dataflow(&self) -> bool {
        let open = self.frames.last().and_then(|f| f.open_block);
        open.is_some_and(|b| self.func.block(b).dataflow)
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a builder always has an open sequence")
    }

    fn push_binding(&mut self, binding: Binding) {
        let is_func = matches!(self.func.expr(binding.value), ExprData::Func(_));
        let moves_function = is_func && self.in_dataflow() && !self.frame().separate;
        let block = match self.frame().open_block {
            Some(_) if moves_function => {
                self.func.var_mut(binding.var).dataflow = false;
                self.block_before_dataflow()
            }
            Some(b) => b,
            None => {
                let b = self.func.add_block(BlockData::default());
                let frame = self.frame();
                frame.blocks.push(b);
                frame.open_block = Some(b);
                b
            }
        };
        self.values[binding.var] = Some(binding.value).into();
        self.func.block_mut(block).bindings.push(binding);
    }

    /// The block in front of the open dataflow block. It receives the local functions that are defined in the dataflow block,
    /// because dataflow blocks contain no functions.
    fn block_before_dataflow(&mut self) -> Block {
        let last = self.frame().blocks.len() - 1;
        if let Some(&before) = last.checked_sub(1).map(|k| &self.frame().blocks[k])
            && !self.func.block(before).dataflow
        {
            return before;
        }
        let block = self.func.add_block(BlockData::default());
        self.frame().blocks.insert(last, block);
        block
    }

    /// Opens a separate list of blocks, which receives the following bindings until [`end_blocks`](Self::end_blocks). The first
    /// block of the list is a dataflow block if `dataflow` is set.
    pub fn begin_block(&mut self, dataflow: bool) {
        let block = self.func.add_block(BlockData { dataflow, bindings: Vec::new() });
        let open_block = Some(block);
        self.frames.push(Frame { blocks: vec![block], open_block, func: None, separate: true });
    }

    /// Closes the list of blocks that was opened last and returns its blocks. Returns an empty list if none is open.
    pub fn end_blocks(&mut self) -> Vec<Block> {
        match self.frames.len() {
            0 | 1 => Vec::new(),
            _ => self.frames.pop().map(|f| f.blocks).unwrap_or_default(),
        }
    }

    /// Adds an existing block from the arenas of this function to the current sequence.
    pub fn push_block(&mut self, block: Block) {
        let frame = self.frame();
        frame.blocks.push(block);
        frame.open_block = None;
    }

    // ---- bindings ----

    /// Adds a binding of an existing variable and value.
    pub fn bind(&mut self, binding: Binding) {
        self.push_binding(binding);
    }

    /// The value to which this builder has bound a variable; `None` if it has not bound the variable.
    pub fn value_of(&self, var: Var) -> Option<Expr> {
        self.values[var].expand()
    }

    /// Binds a value to a new variable of the value's type: `lv*` inside a dataflow block, `gv*` outside.
    pub fn emit(&mut self, value: Expr) -> Var {
        let hint = if self.in_dataflow() { "lv" } else { "gv" };
        self.emit_named(value, hint)
    }

    /// Binds a value to a new variable whose name starts with `hint`.
    pub fn emit_named(&mut self, value: Expr, hint: &str) -> Var {
        let ty = self.func.expr_ty(value);
        self.emit_typed(value, hint, ty)
    }

    /// Binds a value to a new variable of the given type. The caller guarantees that the type is correct.
    pub fn emit_typed(&mut self, value: Expr, hint: &str, ty: Type) -> Var {
        let name = self.unique_name(hint);
        let dataflow = self.in_dataflow();
        let var = self.func.add_var(name, ty, dataflow, self.span);
        self.push_binding(Binding::bind(var, value));
        var
    }

    /// Binds a value to a new variable that is visible after the dataflow block (`R.output`).
    pub fn emit_output(&mut self, value: Expr) -> Var {
        self.emit_output_named(value, "gv")
    }

    /// Binds a value to a new variable that is visible after the dataflow block (`R.output`). The name of the variable
    /// starts with `hint`.
    pub fn emit_output_named(&mut self, value: Expr, hint: &str) -> Var {
        let var = self.emit_named(value, hint);
        self.func.var_mut(var).dataflow = false;
        var
    }

    /// Makes a dataflow variable visible after its block (`R.output`).
    pub fn mark_output(&mut self, var: Var) {
        self.func.var_mut(var).dataflow = false;
    }

    /// Binds `match_cast(value, ty)`: a run-time check that also defines the new symbols in `ty`.
    pub fn match_cast(&mut self, value: Expr, ty: Type, hint: &str) -> Var {
        let name = self.unique_name(hint);
        let dataflow = self.in_dataflow();
        let var = self.func.add_var(name, ty, dataflow, self.span);
        self.push_binding(Binding::match_cast(var, value, ty));
        var
    }

    /// Converts an expression to an operand. Operands (leaves such as variables and constants, and tuples of operands) are returned
    /// unchanged. Any other expression is bound to a new variable.
    pub fn operand(&mut self, e: Expr) -> Expr {
        match self.func.expr(e) {
            ExprData::TupleGetItem(..)
            | ExprData::Call { .. }
            | ExprData::If { .. }
            | ExprData::Func(_) => {
                let var = self.emit(e);
                self.func.var_expr(var)
            }
            ExprData::Tuple(list) => {
                let fields: Vec<Expr> = self.func.list(*list).to_vec();
                let leaves: Vec<Expr> = fields.iter().map(|&f| self.operand(f)).collect();
                if leaves == fields { e } else { self.func.tuple(&leaves) }
            }
            _ => e,
        }
    }

    /// Creates a call of an operator and infers its type. Arguments are converted to operands, and omitted attributes get their
    /// defaults.
    ///
    /// # Errors
    /// The errors of the operator's type inference.
    pub fn call_op(
        &mut self,
        op: Op,
        args: &[Expr],
        attrs: Attrs,
        ty_args: &[Type],
    ) -> Result<Expr, InferError> {
        let args: Vec<Expr> = args.iter().map(|&a| self.operand(a)).collect();
        let attrs = self.ops.complete(op, attrs);
        let resolved: Vec<Expr> = args.iter().map(|&a| self.resolve_absent(a)).collect();
        let ty = self.ops.infer(&mut self.func, op, &resolved, &attrs, ty_args)?;
        Ok(self.func.call(Callee::Op(op), &args, attrs, ty_args, ty))
    }

    /// Returns the call `R.null_value()` if `arg` is a variable that is bound to it, because type inference recognizes absent
    /// operands by this call. Returns other operands unchanged.
    pub fn resolve_absent(&self, arg: Expr) -> Expr {
        let ExprData::Var(v) = *self.func.expr(arg) else { return arg };
        let value = self.value_of(v).filter(|&value| {
            matches!(self.func.expr(value), ExprData::Call { callee: Callee::Op(op), .. } if *op == NULL_VALUE)
        });
        value.unwrap_or(arg)
    }

    /// Creates a call of a function value, a global function or a packed function, with the given result type.
    pub fn call_func(&mut self, callee: Expr, args: &[Expr], ty_args: &[Type], ty: Type) -> Expr {
        let callee = self.operand(callee);
        let args: Vec<Expr> = args.iter().map(|&a| self.operand(a)).collect();
        self.func.call(Callee::Expr(callee), &args, Attrs::default(), ty_args, ty)
    }

    // ---- nested sequences and functions ----

    /// Opens a nested sequence, such as a branch of an `If`.
    pub fn begin_seq(&mut self) {
        self.frames.push(Frame::default());
    }

    /// Closes the nested sequence with the given result.
    pub fn end_seq(&mut self, result: Expr) -> Seq {
        let result = self.operand(result);
        let frame = self.frames.pop().expect("end_seq is called after begin_seq");
        self.func.add_seq(SeqData { blocks: frame.blocks, result })
    }

    /// Opens a local function. [`param`](Self::param) adds its parameters.
    pub fn begin_func(&mut self) {
        let unit = self.func.intern(TypeData::unit());
        let body = self.func.body();
        let attrs = FuncAttrs::default();
        let data = FuncData { params: Vec::new(), body, ret_ty: unit, pure: true, attrs };
        let id = self.func.add_func(data);
        self.frames.push(Frame { func: Some((id, Vec::new())), ..Frame::default() });
    }

    /// Closes the local function with the given result, and returns the function expression, which the caller must bind. Without
    /// `ret_ty`, the return type is the type of the result.
    pub fn end_func(&mut self, result: Expr, ret_ty: Option<Type>, pure: bool) -> Expr {
        let result = self.operand(result);
        let frame = self.frames.pop().expect("end_func is called after begin_func");
        let (id, params) = frame.func.expect("end_func is called after begin_func");
        let body = self.func.add_seq(SeqData { blocks: frame.blocks, result });
        let ret_ty = ret_ty.unwrap_or_else(|| self.func.expr_ty(result));
        let attrs = std::mem::take(&mut self.func.func_mut(id).attrs);
        *self.func.func_mut(id) = FuncData { params, body, ret_ty, pure, attrs };
        let ty = self.func.signature(id);
        self.func.add_expr(ExprData::Func(id), ty)
    }

    /// Mutable access to the attributes of the innermost function under construction.
    pub fn attrs_mut(&mut self) -> &mut FuncAttrs {
        match self.frames.iter().rev().find_map(|frame| frame.func.as_ref()) {
            Some(&(id, _)) => &mut self.func.func_mut(id).attrs,
            None => &mut self.func.attrs,
        }
    }

    /// Suspends the construction of the innermost local function, whose body must be the innermost open sequence. Before
    /// [`resume_func`](Self::resume_func), the caller can declare the function's variable and build other functions.
    pub fn suspend_func(&mut self) -> SuspendedFunc {
        SuspendedFunc(self.frames.pop().expect("suspend_func is called after begin_func"))
    }

    /// Resumes the construction of a suspended local function.
    pub fn resume_func(&mut self, func: SuspendedFunc) {
        self.frames.push(func.0);
    }

    /// Declares the variable of a local function before the function is bound, so that the function can call itself.
    pub fn declare(&mut self, hint: &str, ty: Type) -> Var {
        let name = self.unique_name(hint);
        self.func.add_var(name, ty, false, self.span)
    }

    /// Binds a declared variable to a value, and sets the variable's type to the type of the value.
    pub fn bind_declared(&mut self, var: Var, value: Expr) {
        self.func.var_mut(var).ty = self.func.expr_ty(value);
        self.push_binding(Binding::bind(var, value));
    }

    /// Finishes the function with the given result. Without `ret_ty`, the return type is the type of the result.
    pub fn finish(mut self, result: Expr, ret_ty: Option<Type>, pure: bool) -> Function {
        self.end_dataflow();
        let result = self.operand(result);
        let frame = self.frames.pop().expect("the root sequence is open until the end");
        let body = self.func.add_seq(SeqData { blocks: frame.blocks, result });
        let ret_ty = ret_ty.unwrap_or_else(|| self.func.expr_ty(result));
        let root = self.func.root();
        let data = self.func.func_mut(root);
        data.body = body;
        data.ret_ty = ret_ty;
        data.pure = pure;
        self.func
    }
}
