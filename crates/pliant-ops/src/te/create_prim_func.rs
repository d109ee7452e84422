//! [`create_prim_func`]: creates a loop function from tensors.
//!
//! The parameters have the order of the arguments. Tensors are handles that are bound to buffers.
//! If a dim of a tensor argument is a size variable by itself, the argument defines that variable.
//! Each other size variable becomes an int64 parameter after all arguments, in order of appearance.
//! Each stage is one loop nest around one block. Stages that are not arguments are stored in
//! buffers of a root block.

use std::sync::Arc;

use pliant_ir::AttrValue;
use pliant_ir::attr_names::NOALIAS;
use pliant_ir::tir::bind_calls::bind_calls;
use pliant_ir::tir::{
    self, BlockData, BufferData, BufferRegion, ForKind, PrimFunc, Scope, Stmt, StmtData, Ty, VarTy,
};
use pliant_tensor::CheckFailure;
use rustc_hash::{FxHashMap, FxHashSet};

use super::TeError;
use super::computed_size_checks;
use super::expr::{Expr, ExprKind, IterVar, Reduce, Var};
use super::expr_builders::cast;
use super::expr_traversal::{fold, free_vars, post_order, substitute, tree_and_nodes};
use super::extern_stage::{exprs_of, for_each};
use super::tensor::{Check, Compute, Tensor, TensorOp};

/// The maximum number of terms of a stage's expression written out as a tree. Later passes walk and
/// print loop functions as trees, so processing an expression that shares its parts at each level
/// (`e = e * e`) would need exponential time.
pub const MAX_TERMS: u64 = 100_000;

/// Maximum ratio of terms to distinct nodes, checked if an expression has more than [`MAX_TERMS`] terms. Shared nodes raise the
/// ratio. A long chain without sharing has a low ratio and is accepted.
const TERMS_PER_NODE: u64 = 8;

/// An argument of the function under construction.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor: a placeholder (input) or a stage (output).
    Tensor(Tensor),
    /// A scalar parameter.
    Var(Var),
}

impl From<Tensor> for Arg {
    fn from(t: Tensor) -> Self {
        Arg::Tensor(t)
    }
}

impl From<&Tensor> for Arg {
    fn from(t: &Tensor) -> Self {
        Arg::Tensor(t.clone())
    }
}

impl From<Var> for Arg {
    fn from(v: Var) -> Self {
        Arg::Var(v)
    }
}

/// A loop function created from tensors.
#[derive(Clone, Debug)]
pub struct CreatedPrimFunc {
    /// The created loop function.
    pub func: PrimFunc,
    /// The size variables that became parameters after the arguments.
    pub size_params: Vec<Var>,
}

/// Dims of placeholders that the stages assume to be equal to other sizes. The loop function checks this assumption at
/// its start.
#[derive(Clone, Debug, Default)]
pub struct AssumedDims {
    /// For each placeholder whose dims are assumed, the dims with which the loop function declares
    /// it.
    pub declared: FxHashMap<Tensor, Vec<Expr>>,
    /// Checks that the declared dims are equal to the assumed ones.
    pub checks: Vec<Check>,
}

impl AssumedDims {
    /// The dims with which the loop function declares the tensor `t`.
    fn dims<'a>(&'a self, t: &'a Tensor) -> &'a [Expr] {
        self.declared.get(t).map_or(t.shape(), Vec::as_slice)
    }
}

/// Creates the loop function that computes the stages in `args` from the placeholders in `args`.
///
/// # Examples
/// ```
/// use pliant_ir::DType;
/// use pliant_ops::te;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let n = te::var("n").expr();
/// let x = te::placeholder(vec![n.clone()], DType::Float32, "x");
/// let doubled = te::compute(vec![n], "doubled", |i| x.at(i) + x.at(i));
/// let func = te::create_prim_func(&[x.clone().into(), doubled.clone().into()])?;
/// assert_eq!(func.buffer_map.len(), 2);
/// // `x` must be an argument.
/// assert!(te::create_prim_func(&[doubled.into()]).is_err());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If a placeholder that is not an argument is read, a reduction is nested in another expression, a tensor is read with a wrong
/// number of indices, an argument appears twice, or an expression has more than [`MAX_TERMS`] terms because it shares its parts.
pub fn create_prim_func(args: &[Arg]) -> Result<PrimFunc, TeError> {
    create_prim_func_with_vars(args).map(|c| c.func)
}

/// Creates the loop function that computes the stages in `args` from the placeholders in `args`, and also returns the size
/// variables that became its parameters.
///
/// # Errors
/// The same errors as [`create_prim_func`].
pub fn create_prim_func_with_vars(args: &[Arg]) -> Result<CreatedPrimFunc, TeError> {
    create_prim_func_assuming(args, &AssumedDims::default())
}

/// Creates the loop function that computes the stages in `args` from the placeholders in `args`. `assumed` lists dims of
/// placeholders that are assumed to be equal to other sizes. Also returns the size variables that became parameters.
///
/// # Errors
/// The same errors as [`create_prim_func`].
pub fn create_prim_func_assuming(
    args: &[Arg],
    assumed: &AssumedDims,
) -> Result<CreatedPrimFunc, TeError> {
    let tensors: Vec<Tensor> = args
        .iter()
        .filter_map(|a| match a {
            Arg::Tensor(t) => Some(t.clone()),
            Arg::Var(_) => None,
        })
        .collect();
    let stages = stages_of(&tensors);
    validate(args, &tensors, &stages)?;
    let size_params = free_size_vars(args, &tensors, &stages, assumed);
    let mut create = PrimFuncCreator {
        f: PrimFunc::new(),
        vars: FxHashMap::default(),
        buffers: FxHashMap::default(),
        assumed,
    };
    create.params(args, &size_params);
    create.body(&tensors, &stages)?;
    create.f.attrs.insert(NOALIAS.into(), AttrValue::Bool(true));
    bind_calls(&mut create.f).map_err(TeError)?;
    Ok(CreatedPrimFunc { func: create.f, size_params })
}

/// All tensors from which the roots are computed, including the roots. Producers come first.
pub(crate) fn stages_of(roots: &[Tensor]) -> Vec<Tensor> {
    let (mut order, mut done) = (Vec::new(), FxHashSet::default());
    let mut stack: Vec<(Tensor, bool)> = roots.iter().rev().map(|t| (t.clone(), false)).collect();
    while let Some((t, expanded)) = stack.pop() {
        if done.contains(&t) {
            continue;
        }
        let inputs = t.inputs();
        if expanded || inputs.is_empty() {
            done.insert(t.clone());
            order.push(t);
            continue;
        }
        stack.push((t, true));
        stack.extend(inputs.into_iter().rev().map(|i| (i, false)));
    }
    order
}

/// The placeholders from which tensors are computed.
pub fn placeholders_of(outputs: &[Tensor]) -> Vec<Tensor> {
    stages_of(outputs).into_iter().filter(Tensor::is_placeholder).collect()
}

fn validate(args: &[Arg], tensors: &[Tensor], stages: &[Tensor]) -> Result<(), TeError> {
    let mut arguments: FxHashSet<&Tensor> = FxHashSet::default();
    if let Some(t) = tensors.iter().find(|t| !arguments.insert(*t)) {
        let name = t.name();
        return Err(TeError::new(format!(
            "create_prim_func: the arguments contain the tensor '{name}' twice; pass it once"
        )));
    }
    let vars: Vec<&Var> =
        args.iter().filter_map(|a| if let Arg::Var(v) = a { Some(v) } else { None }).collect();
    let mut seen = FxHashSet::default();
    if let Some(var) = vars.iter().find(|var| !seen.insert(**var)) {
        let name = var.name();
        return Err(TeError::new(format!(
            "create_prim_func: the arguments contain the variable '{name}' twice; pass it once"
        )));
    }
    for t in stages {
        for dim in t.shape() {
            check_term_count(dim, || format!("a dim of tensor '{}'", t.name()), ADVICE_VARIABLE)?;
        }
        match t.op() {
            TensorOp::Placeholder if !arguments.contains(t) => {
                return Err(TeError::new(format!(
                    "create_prim_func: the placeholder '{}' is read, but is not among the arguments; pass it as an argument",
                    t.name()
                )));
            }
            TensorOp::Placeholder => {}
            TensorOp::Compute(stage) => validate_stage(t, stage)?,
            TensorOp::Extern(stage, _) => super::create_extern_block::validate(stage)?,
        }
    }
    Ok(())
}

fn validate_stage(t: &Tensor, stage: &Compute) -> Result<(), TeError> {
    let mut problem = None;
    let conds = stage.checks.iter().map(|c| &c.cond);
    for root in std::iter::once(&stage.body).chain(conds) {
        post_order(root, |e| match e.kind() {
            ExprKind::Reduce(_) if !e.same_as(&stage.body) => {
                problem = Some(format!(
                    "a reduction must be the whole body of a stage, but in {} it stands inside another \
                     expression; give it a stage of its own",
                    t.name()
                ));
            }
            ExprKind::Ramp(..) | ExprKind::Broadcast(_) => {
                problem = Some(format!(
                    "the value of stage '{}' holds a vector, which only lowered loop functions have: write \
                     the scalar value of one element",
                    t.name()
                ));
            }
            ExprKind::Load(read, indices) if read.ndim() != indices.len() => {
                problem = Some(format!(
                    "tensor {} has {} dims, but {} reads it with {} indices",
                    read.name(),
                    read.ndim(),
                    t.name(),
                    indices.len()
                ));
            }
            _ => {}
        });
    }
    problem.map_or(Ok(()), |p| Err(TeError(p)))?;
    check_stage_term_counts(t, stage)
}

pub(super) const ADVICE_STAGE: &str = "make the shared part a te.compute stage of its own";
const ADVICE_VARIABLE: &str = "pass the shared part as a variable of its own";

/// Rejects a stage with an expression that has too many terms when written out as a tree.
fn check_stage_term_counts(t: &Tensor, stage: &Compute) -> Result<(), TeError> {
    let value = || format!("the value of stage '{}'", t.name());
    let range = || format!("the range of an axis of stage '{}'", t.name());
    check_term_count(&stage.body, value, ADVICE_STAGE)?;
    let mut axes: Vec<&IterVar> = stage.axes.iter().collect();
    if let ExprKind::Reduce(r) = stage.body.kind() {
        // A reducer may use the reduced value more than once.
        let acc = Var::new("acc", r.source.ty());
        check_term_count(&combine(r, &acc, Var::new("next", r.source.ty())), value, ADVICE_STAGE)?;
        axes.extend(&r.axes);
    }
    for check in &stage.checks {
        check_term_count(&check.cond, || format!("a check of stage '{}'", t.name()), ADVICE_STAGE)?;
        axes.extend(&check.axes);
    }
    for axis in axes {
        check_term_count(&axis.min, range, ADVICE_VARIABLE)?;
        check_term_count(&axis.extent, range, ADVICE_VARIABLE)?;
    }
    Ok(())
}

/// Rejects an expression that has too many terms when written out as a tree.
pub(super) fn check_term_count(
    e: &Expr,
    what: impl Fn() -> String,
    advice: &str,
) -> Result<(), TeError> {
    let (terms, nodes) = tree_and_nodes(e);
    let max = MAX_TERMS.max(nodes.saturating_mul(TERMS_PER_NODE));
    if terms <= max {
        return Ok(());
    }
    let at_least = if terms == u64::MAX { "at least " } else { "" };
    Err(TeError(format!(
        "{what} has {at_least}{terms} terms when written out as a tree, but at most {max} are \
         allowed: {advice}",
        what = what()
    )))
}

/// Returns the value of a reduction after combining the accumulated value `acc` with the next
/// value.
fn combine(r: &Reduce, acc: &Var, next: Var) -> Expr {
    let combined = r.reducer.combine(&acc.expr(), &next.expr());
    substitute(&combined, &[(next, r.source.clone())].into_iter().collect())
}

/// The size variables that no argument, dim or axis defines, in order of appearance.
fn free_size_vars(
    args: &[Arg],
    tensors: &[Tensor],
    stages: &[Tensor],
    assumed: &AssumedDims,
) -> Vec<Var> {
    let mut bound: FxHashSet<Var> = FxHashSet::default();
    for arg in args {
        match arg {
            Arg::Var(v) => drop(bound.insert(v.clone())),
            Arg::Tensor(t) => {
                bound.extend(assumed.dims(t).iter().filter_map(|d| d.as_var().cloned()))
            }
        }
    }
    let mut size_params = Vec::new();
    for stage in stages {
        if let TensorOp::Extern(stage, _) = stage.op() {
            // Variables defined by the statements are local to the stage.
            bound.extend(super::create_extern_block::defined_vars(stage));
        }
    }
    let mut visit = |e: &Expr, axes: &[&IterVar]| {
        for v in free_vars(e) {
            if !axes.iter().any(|a| a.var == v) && bound.insert(v.clone()) {
                size_params.push(v);
            }
        }
    };
    for t in tensors.iter().chain(stages) {
        assumed.dims(t).iter().chain(t.shape()).for_each(|d| visit(d, &[]));
    }
    for stage in stages.iter().filter_map(Tensor::as_compute) {
        let mut axes: Vec<&IterVar> = stage.axes.iter().collect();
        if let ExprKind::Reduce(r) = stage.body.kind() {
            axes.extend(&r.axes);
        }
        for check in &stage.checks {
            let check_axes: Vec<&IterVar> = check.axes.iter().collect();
            check_axes
                .iter()
                .for_each(|a| [&a.min, &a.extent].into_iter().for_each(|e| visit(e, &[])));
            visit(&check.cond, &check_axes);
        }
        axes.iter().for_each(|a| [&a.min, &a.extent].into_iter().for_each(|e| visit(e, &[])));
        visit(&stage.body, &axes);
    }
    for stage in stages {
        if let TensorOp::Extern(stage, _) = stage.op() {
            for_each(&stage.body, &mut |s| exprs_of(s).into_iter().for_each(|e| visit(e, &[])));
        }
    }
    size_params
}

/// The function under construction, with the mapping of variables and tensors of the tensor expressions to its own variables and
/// buffers.
pub(super) struct PrimFuncCreator<'a> {
    pub(super) f: PrimFunc,
    pub(super) vars: FxHashMap<Var, tir::Var>,
    pub(super) buffers: FxHashMap<Tensor, tir::Buffer>,
    assumed: &'a AssumedDims,
}

impl PrimFuncCreator<'_> {
    pub(super) fn var(&mut self, v: &Var) -> tir::Var {
        if let Some(&var) = self.vars.get(v) {
            return var;
        }
        let var = self.f.add_var(v.name().clone(), VarTy::Value(v.ty()));
        self.vars.insert(v.clone(), var);
        var
    }

    fn params(&mut self, args: &[Arg], size_params: &[Var]) {
        for arg in args {
            match arg {
                Arg::Tensor(t) => {
                    let buffer = self.buffer(t);
                    self.f.add_buffer_param(format!("var_{}", t.name()), buffer);
                }
                Arg::Var(v) => {
                    let var = self.var(v);
                    self.f.params.push(var);
                }
            }
        }
        for v in size_params {
            let var = self.var(v);
            self.f.params.push(var);
        }
    }

    pub(super) fn buffer(&mut self, t: &Tensor) -> tir::Buffer {
        let dims = self.assumed.dims(t);
        let shape = dims.iter().map(|d| self.size(d)).collect();
        let buffer = self.f.add_buffer(BufferData {
            name: t.name().clone(),
            dtype: t.dtype(),
            shape,
            strides: Vec::new(),
            elem_offset: None,
            scope: Scope::Global,
        });
        self.buffers.insert(t.clone(), buffer);
        buffer
    }

    /// Converts a size to an expression over the variables of the function.
    pub(super) fn size(&mut self, e: &Expr) -> tir::Expr {
        let mut memo = FxHashMap::default();
        self.expr(e, &mut memo)
    }

    fn body(&mut self, args: &[Tensor], stages: &[Tensor]) -> Result<(), TeError> {
        let (mut stmts, mut allocs) = (Vec::new(), Vec::new());
        if let Some(result) = args.last() {
            for check in &self.assumed.checks {
                stmts.push(self.check(result, check)?);
            }
        }
        for check in &computed_size_checks::checks(args, stages) {
            stmts.push(self.check(&args[0], check)?);
        }
        let args: FxHashSet<&Tensor> = args.iter().collect();
        let mut written = FxHashSet::default();
        for t in stages {
            if let TensorOp::Extern(stage, _) = t.op()
                && written.insert(Arc::as_ptr(stage))
            {
                allocs.extend(self.extern_buffers(stage, &args, stages)?);
                stmts.push(self.extern_stage(stage));
            }
            let Some(stage) = t.as_compute() else { continue };
            if !args.contains(t) {
                allocs.push(self.buffer(t));
            }
            for check in &stage.checks {
                stmts.push(self.check(t, check)?);
            }
            stmts.push(self.stage(t, stage)?);
        }
        let body = self.f.seq(stmts);
        self.f.body = if allocs.is_empty() { body } else { self.root_block(allocs, body) };
        Ok(())
    }

    fn root_block(&mut self, allocs: Vec<tir::Buffer>, body: Stmt) -> Stmt {
        let block = BlockData {
            name: "root".into(),
            iters: Vec::new(),
            predicate: None,
            reads: None,
            writes: None,
            allocs,
            init: None,
            body,
            annotations: Vec::new(),
        };
        self.f.add_stmt(StmtData::Block(Box::new(block)))
    }

    fn check(&mut self, t: &Tensor, check: &Check) -> Result<Stmt, TeError> {
        let mut nest = self.open_nest(&check.axes.iter().collect::<Vec<_>>());
        let cond = self.expr_kept_alive(cast(&check.cond, Ty::BOOL), &mut nest);
        let reads = self.regions(&[&check.cond], &nest);
        let done = self.f.add_stmt(StmtData::Seq(Vec::new()));
        let body = self.f.add_stmt(StmtData::Assert(
            cond,
            CheckFailure::Shape.mark(&check.message).into(),
            done,
        ));
        let name: Arc<str> = format!("{}_check", t.name()).into();
        Ok(self.close_nest(nest, name, reads, Vec::new(), None, body))
    }

    fn stage(&mut self, t: &Tensor, stage: &Compute) -> Result<Stmt, TeError> {
        let buffer = self.buffers[t];
        let mut axes: Vec<&IterVar> = stage.axes.iter().collect();
        let reduce = match stage.body.kind() {
            ExprKind::Reduce(r) => Some(r),
            _ => None,
        };
        axes.extend(reduce.iter().flat_map(|r| &r.axes));
        let mut nest = self.open_nest(&axes);
        let indices: Vec<tir::Expr> = nest.axis_exprs[..stage.axes.len()].to_vec();
        let one = self.f.int(1);
        let write = BufferRegion { buffer, region: indices.iter().map(|&i| (i, one)).collect() };
        let (reads, init, value) = match reduce {
            Some(r) => {
                let reads = self.regions(&[&r.source], &nest);
                let (init, value) = self.reduction(buffer, &indices, r, &mut nest);
                (reads, Some(init), value)
            }
            None => {
                let reads = self.regions(&[&stage.body], &nest);
                (reads, None, self.expr(&stage.body, &mut nest.memo))
            }
        };
        let body = self.f.store(buffer, &indices, value);
        Ok(self.close_nest(nest, t.name().clone(), reads, vec![write], init, body))
    }

    /// Creates the store of a reduction's initial value, and the expression for the accumulated
    /// value after each update.
    fn reduction(
        &mut self,
        buffer: tir::Buffer,
        indices: &[tir::Expr],
        r: &Reduce,
        nest: &mut LoopNest,
    ) -> (Stmt, tir::Expr) {
        let dtype = r.source.ty().dtype;
        let init = r.init.clone().unwrap_or_else(|| r.reducer.identity(dtype));
        let init = self.expr_kept_alive(cast(&init, dtype), nest);
        let init = self.f.store(buffer, indices, init);
        // Variables that represent the accumulated value and the next value in the reducer's expression.
        let (acc, next) = (Var::new("acc", dtype), Var::new("next", dtype));
        let combined = combine(r, &acc, next);
        let current = self.f.load(buffer, indices);
        // The memo maps the accumulator's nodes to the loaded value, so no variable is created for them.
        post_order(&combined, |e| {
            if e.as_var() == Some(&acc) {
                nest.memo.insert(e.id(), current);
            }
        });
        let value = self.expr_kept_alive(combined, nest);
        (init, value)
    }

    /// Creates the loop variables and the block axes of a stage.
    fn open_nest(&mut self, axes: &[&IterVar]) -> LoopNest {
        let mut nest = LoopNest::default();
        for axis in axes {
            let (min, extent) = (self.size(&axis.min), self.size(&axis.extent));
            let loop_var = self.f.size_var(axis.var.name().clone());
            let block_var = self.f.size_var(format!("v_{}", axis.var.name()));
            let binding = self.f.var_expr(loop_var);
            nest.loops.push((loop_var, min, extent));
            nest.iters.push(tir::IterVar { var: block_var, min, extent, kind: axis.kind, binding });
            nest.axis_exprs.push(self.f.var_expr(block_var));
            self.vars.insert(axis.var.clone(), block_var);
            nest.axes.push(axis.var.clone());
        }
        nest
    }

    /// Wraps `body` in the block of a stage and in the loops around the block, which `nest` describes.
    fn close_nest(
        &mut self,
        nest: LoopNest,
        name: Arc<str>,
        reads: Vec<BufferRegion>,
        writes: Vec<BufferRegion>,
        init: Option<Stmt>,
        body: Stmt,
    ) -> Stmt {
        let block = BlockData {
            name,
            iters: nest.iters,
            predicate: None,
            reads: Some(reads),
            writes: Some(writes),
            allocs: Vec::new(),
            init,
            body,
            annotations: Vec::new(),
        };
        // Stages may share axes, but each stage has its own variables.
        for axis in &nest.axes {
            self.vars.remove(axis);
        }
        let mut stmt = self.f.add_stmt(StmtData::Block(Box::new(block)));
        for (var, min, extent) in nest.loops.into_iter().rev() {
            let annotations = Vec::new();
            let kind = ForKind::Serial;
            stmt =
                self.f.add_stmt(StmtData::For { var, min, extent, kind, body: stmt, annotations });
        }
        stmt
    }

    /// The buffer elements that the expressions read, each once, in order of appearance.
    fn regions(&mut self, roots: &[&Expr], nest: &LoopNest) -> Vec<BufferRegion> {
        let mut loads = Vec::new();
        for root in roots {
            post_order(root, |e| {
                if let ExprKind::Load(t, indices) = e.kind() {
                    loads.push((t.clone(), indices.clone()));
                }
            });
        }
        let one = self.f.int(1);
        let (mut seen, mut regions) = (FxHashSet::default(), Vec::new());
        let mut memo = nest.memo.clone();
        for (t, indices) in &loads {
            let buffer = self.buffers[t];
            let region = indices.iter().map(|i| (self.expr(i, &mut memo), one)).collect();
            let region = BufferRegion { buffer, region };
            if seen.insert(region.clone()) {
                regions.push(region);
            }
        }
        regions
    }

    /// Converts an expression that only this function creates, and stores it in `nest` to keep it alive. The memo of
    /// [`expr`](Self::expr) identifies nodes by their addresses, so no address may be reused for another node.
    fn expr_kept_alive(&mut self, e: Expr, nest: &mut LoopNest) -> tir::Expr {
        nest.kept_alive.push(e.clone());
        self.expr(&e, &mut nest.memo)
    }

    /// Converts an expression to the function's own variables and buffers. `memo` maps the
    /// addresses of nodes to converted expressions.
    pub(super) fn expr(&mut self, e: &Expr, memo: &mut FxHashMap<usize, tir::Expr>) -> tir::Expr {
        let result: Result<tir::Expr, std::convert::Infallible> =
            fold(e, memo, |e, args: &[tir::Expr]| Ok(self.node(e, args)));
        match result {
            Ok(e) => e,
        }
    }

    fn node(&mut self, e: &Expr, args: &[tir::Expr]) -> tir::Expr {
        let ty = e.ty();
        let data = match e.kind() {
            ExprKind::Int(v) => tir::ExprData::Int(*v, ty),
            ExprKind::Float(v) => tir::ExprData::Float(v.to_bits(), ty),
            ExprKind::Str(s) => tir::ExprData::Str(s.clone()),
            ExprKind::Var(v) => tir::ExprData::Var(self.var(v)),
            ExprKind::Binary(op, ..) => tir::ExprData::Binary(*op, args[0], args[1]),
            ExprKind::Cast(_) => tir::ExprData::Cast(ty, args[0]),
            ExprKind::Not(_) => tir::ExprData::Not(args[0]),
            ExprKind::Select(..) => tir::ExprData::Select(args[0], args[1], args[2]),
            ExprKind::Call(i, _) => {
                // If the type follows from the operands, the field is always int64, so that equal calls become the same node.
                let explicit = i.result() == tir::intrin::IntrinResult::Explicit;
                tir::ExprData::Call(*i, args.into(), if explicit { ty } else { Ty::I64 })
            }
            ExprKind::Load(t, _) => tir::ExprData::Load(self.buffers[t], args.into()),
            // Validation allows reductions only at the top of a stage, which handles them itself.
            ExprKind::Reduce(_) => return args[0],
            ExprKind::Ramp(..) => tir::ExprData::Ramp(args[0], args[1], ty.lanes),
            ExprKind::Broadcast(_) => tir::ExprData::Broadcast(args[0], ty.lanes),
        };
        self.f.add_expr(data)
    }
}

/// The loops and axes around one block.
#[derive(Default)]
struct LoopNest {
    loops: Vec<(tir::Var, tir::Expr, tir::Expr)>,
    iters: Vec<tir::IterVar>,
    axis_exprs: Vec<tir::Expr>,
    axes: Vec<Var>,
    memo: FxHashMap<usize, tir::Expr>,
    /// Temporary expressions that stay alive as long as `memo`, which identifies expressions by
    /// their addresses.
    kept_alive: Vec<Expr>,
}
