//! [`Schedule`]: applies schedule primitives to the loop functions of a module.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pliant_ir::attr_names::IS_SCHEDULED;
use pliant_ir::tir::verify::verify_prim_func;
use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Expr, ForKind, PrimFunc, Var};
use pliant_ir::{AttrValue, BaseFunc, IRModule};
use pliant_tir::statement_traversal::{direct_exprs, for_each_stmt, unique_vars};

use crate::error::{ScheduleError, Step};
use crate::split::Remainder;
use crate::{
    annotate, buffers, cache, compute_at, fuse, inline, loop_kinds, loop_tree, reductions, reorder,
    split,
};

/// A reference to a loop of a loop function.
#[derive(Clone, Debug)]
pub struct LoopRef {
    pub(crate) function: Arc<str>,
    pub(crate) var: Var,
    /// The id of the schedule that created the reference, and the number of primitives that the schedule had applied before.
    origin: (u64, usize),
}

/// A reference to a block of a loop function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    pub(crate) function: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl PartialEq for LoopRef {
    fn eq(&self, other: &LoopRef) -> bool {
        (&self.function, self.var) == (&other.function, other.var)
    }
}

impl Eq for LoopRef {}

impl Hash for LoopRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.function, self.var).hash(state);
    }
}

impl BlockRef {
    /// Returns the name of the block.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl LoopRef {
    /// Returns the name of the function that contains the loop.
    pub fn function(&self) -> &Arc<str> {
        &self.function
    }
}

/// A loop or a block.
#[derive(Clone, Debug)]
pub enum LoopOrBlock {
    /// A loop.
    Loop(LoopRef),
    /// A block.
    Block(BlockRef),
}

/// A module whose loop functions are transformed by schedule primitives, one after another. Each primitive either preserves the
/// results of the function, or fails and changes nothing. The default schedule skips the functions that a primitive has changed.
#[derive(Debug)]
pub struct Schedule {
    module: IRModule,
    /// The schedules whose loop and block references are valid in this schedule: the schedule itself, and those from
    /// which it was copied. Each is listed as (id, maximum number of primitives that the schedule had applied when it
    /// created the reference).
    origins: Vec<(u64, usize)>,
    steps: usize,
}

/// The result of a primitive: a value, or the reason why the primitive cannot be applied.
pub(crate) type Result<T> = std::result::Result<T, ScheduleError>;

impl Schedule {
    /// Creates a schedule of a module to which no primitive has been applied.
    pub fn new(mut module: IRModule) -> Schedule {
        let names: Vec<Arc<str>> = module.prim_funcs().map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(BaseFunc::Prim(func)) = module.functions.get_mut(&name) {
                let func = Arc::make_mut(func);
                let body = func.body;
                func.body = unique_vars(func, body);
            }
        }
        Schedule { module, origins: vec![(new_id(), usize::MAX)], steps: 0 }
    }

    fn loop_ref(&self, function: &Arc<str>, var: Var) -> LoopRef {
        let id = self.origins.last().map_or(0, |(id, _)| *id);
        LoopRef { function: function.clone(), var, origin: (id, self.steps) }
    }

    /// Fails if the reference was created by an unrelated schedule, or by the original schedule after this one was copied from it.
    pub(crate) fn check_loop(&self, primitive: &'static str, l: &LoopRef) -> Result<()> {
        let (id, steps) = l.origin;
        match self.origins.iter().any(|&(known, until)| known == id && steps <= until) {
            true => Ok(()),
            false => {
                Err(error(primitive, &l.function, "the loop belongs to another schedule".into()))
            }
        }
    }

    /// Returns the module in its current state.
    pub fn module(&self) -> &IRModule {
        &self.module
    }

    /// Returns a reference to the block with this name. If no block has the name `root`, it means the whole body of the function,
    /// to which only `get_child_blocks` and `get_loops` apply.
    ///
    /// # Errors
    /// If the function does not exist, or has no or several blocks of that name.
    pub fn get_block(&self, name: &str, function: &str) -> Result<BlockRef> {
        let func = self.function("get_block", function)?;
        let names = loop_tree::block_names(func);
        let fail = |message| Err(error("get_block", function, message));
        match names.iter().filter(|n| ***n == *name).count() {
            1 => Ok(BlockRef { function: function.into(), name: name.into() }),
            0 if loop_tree::is_body(func, name) => {
                Ok(BlockRef { function: function.into(), name: name.into() })
            }
            0 => fail(loop_tree::find_block(func, name).err().unwrap_or_default()),
            count => fail(format!(
                "{count} blocks have the name '{name}', so the name selects no single block"
            )),
        }
    }

    /// Returns the loops around a block, outermost first. Loops around an outer block that contains the block are not included.
    ///
    /// # Errors
    /// If the block does not exist any more.
    pub fn get_loops(&self, block: &BlockRef) -> Result<Vec<LoopRef>> {
        let func = self.function("get_loops", &block.function)?;
        let loops = loop_tree::loops_of_block(func, &block.name)
            .map_err(|message| error("get_loops", &block.function, message))?;
        Ok(loops.into_iter().map(|l| self.loop_ref(&block.function, l.var)).collect())
    }

    /// Returns the names of the blocks of a function, in program order.
    ///
    /// # Errors
    /// If the function does not exist.
    pub fn block_names(&self, function: &str) -> Result<Vec<Arc<str>>> {
        Ok(loop_tree::block_names(self.function("get_block", function)?))
    }

    /// Returns (name of the loop variable, extent); the extent is `None` if it is not constant.
    ///
    /// # Errors
    /// If the loop does not exist any more.
    pub fn loop_extent(&self, l: &LoopRef) -> Result<(Arc<str>, Option<i64>)> {
        self.check_loop("sample_perfect_tile", l)?;
        let func = self.function("sample_perfect_tile", &l.function)?;
        let found = loop_tree::find_loop(func, l.var)
            .map_err(|message| error("sample_perfect_tile", &l.function, message))?;
        Ok((func.var(l.var).name.clone(), func.as_int(found.extent)))
    }

    /// Splits a loop into a nest with the extents `factors`, outermost first. At most one of them may be `None`; it is inferred
    /// from the others.
    ///
    /// # Errors
    /// If the factors are not positive or do not cover the loop, or if a tail loop would repeat the init of a reduction.
    pub fn split(
        &mut self,
        l: &LoopRef,
        factors: &[Option<i64>],
        remainder: Remainder,
    ) -> Result<Vec<LoopRef>> {
        self.check_loop("split", l)?;
        let vars =
            self.edit("split", &l.function, |f| split::split(f, l.var, factors, remainder))?;
        Ok(vars.into_iter().map(|var| self.loop_ref(&l.function, var)).collect())
    }

    /// Fuses a nest of loops, outermost first, into one loop. The body of each loop must consist of the next loop only.
    ///
    /// # Errors
    /// If the loops do not form such a nest, or if the range of a loop depends on another one.
    pub fn fuse(&mut self, loops: &[LoopRef]) -> Result<LoopRef> {
        loops.iter().try_for_each(|l| self.check_loop("fuse", l))?;
        let (function, vars) = same_function("fuse", loops)?;
        let var = self.edit("fuse", &function, |f| fuse::fuse(f, &vars))?;
        Ok(self.loop_ref(&function, var))
    }

    /// Puts these loops of one nest into the given order, outermost first.
    ///
    /// # Errors
    /// If the loops are not in one nest, or if dependences between blocks, a reduction or the range of a loop require the old
    /// order.
    pub fn reorder(&mut self, loops: &[LoopRef]) -> Result<()> {
        loops.iter().try_for_each(|l| self.check_loop("reorder", l))?;
        let (function, vars) = same_function("reorder", loops)?;
        self.edit("reorder", &function, |f| reorder::reorder(f, &vars))
    }

    /// Distributes the iterations of a loop to the worker threads.
    ///
    /// # Errors
    /// If the loop runs over a block axis that is not spatial, or if two iterations may use an element that one of them writes.
    pub fn parallel(&mut self, l: &LoopRef) -> Result<()> {
        self.check_loop("parallel", l)?;
        self.edit("parallel", &l.function, |f| loop_kinds::set_kind(f, l.var, ForKind::Parallel))
    }

    /// Makes the iterations of a loop the lanes of a vector.
    ///
    /// # Errors
    /// If the loop runs over a block axis that is not spatial, or if its extent is not constant.
    pub fn vectorize(&mut self, l: &LoopRef) -> Result<()> {
        self.check_loop("vectorize", l)?;
        self.edit("vectorize", &l.function, |f| loop_kinds::set_kind(f, l.var, ForKind::Vectorized))
    }

    /// Unrolls a loop.
    ///
    /// # Errors
    /// If its extent is not constant.
    pub fn unroll(&mut self, l: &LoopRef) -> Result<()> {
        self.check_loop("unroll", l)?;
        self.edit("unroll", &l.function, |f| loop_kinds::set_kind(f, l.var, ForKind::Unrolled))
    }

    /// Fails: loops cannot be bound to threads of a GPU.
    ///
    /// # Errors
    /// Always.
    pub fn bind(&mut self, l: &LoopRef, thread: &str) -> Result<()> {
        self.check_loop("bind", l)?;
        self.edit("bind", &l.function, |f| loop_kinds::bind(f, l.var, thread))
    }

    /// Adds the annotation `key` to a loop or block, or replaces its value.
    ///
    /// # Errors
    /// If the loop or block does not exist any more.
    pub fn annotate(&mut self, what: &LoopOrBlock, key: &str, value: AttrValue) -> Result<()> {
        if let LoopOrBlock::Loop(l) = what {
            self.check_loop("annotate", l)?;
        }
        match what {
            LoopOrBlock::Loop(l) => self.edit("annotate", &l.function, |f| {
                annotate::edit_loop(f, l.var, |list| annotate::add(list, key, value))
            }),
            LoopOrBlock::Block(b) => self.edit("annotate", &b.function, |f| {
                annotate::edit_block(f, &b.name, |list| annotate::add(list, key, value))
            }),
        }
    }

    /// Removes the annotation `key` from a loop or block.
    ///
    /// # Errors
    /// If the loop or block has no such annotation.
    pub fn unannotate(&mut self, what: &LoopOrBlock, key: &str) -> Result<()> {
        if let LoopOrBlock::Loop(l) = what {
            self.check_loop("unannotate", l)?;
        }
        match what {
            LoopOrBlock::Loop(l) => self.edit("unannotate", &l.function, |f| {
                annotate::edit_loop(f, l.var, |list| annotate::remove(list, key))
            }),
            LoopOrBlock::Block(b) => self.edit("unannotate", &b.function, |f| {
                annotate::edit_block(f, &b.name, |list| annotate::remove(list, key))
            }),
        }
    }

    /// Inlines an elementwise block into the blocks that read its result, and removes the block.
    ///
    /// # Errors
    /// If the block is not elementwise, or writes a parameter of the function.
    pub fn compute_inline(&mut self, block: &BlockRef) -> Result<()> {
        self.edit("compute_inline", &block.function, |f| inline::compute_inline(f, &block.name))
    }

    /// Merges an elementwise block into the elementwise block that writes its operand. The operand is removed.
    ///
    /// # Errors
    /// If one of the two blocks is not elementwise, or if another block uses the operand.
    pub fn reverse_compute_inline(&mut self, block: &BlockRef) -> Result<()> {
        self.edit("reverse_compute_inline", &block.function, |f| {
            inline::reverse_compute_inline(f, &block.name)
        })
    }

    /// Moves a block to the start of the body of a loop that contains the blocks that read its result. Each iteration computes the
    /// region that it reads.
    ///
    /// # Errors
    /// If a block outside of the loop reads the result, or the block does not store at distinct spatial axes.
    pub fn compute_at(&mut self, block: &BlockRef, l: &LoopRef) -> Result<()> {
        self.check_loop("compute_at", l)?;
        same_functions("compute_at", block, l)?;
        self.edit("compute_at", &block.function, |f| compute_at::compute_at(f, &block.name, l.var))
    }

    /// Moves a block to the end of the body of a loop that contains the block that writes its operand. Each iteration reads the
    /// region that it has written.
    ///
    /// # Errors
    /// If the operand is not complete in each iteration, or the block does not read it at distinct spatial axes.
    pub fn reverse_compute_at(&mut self, block: &BlockRef, l: &LoopRef) -> Result<()> {
        self.check_loop("reverse_compute_at", l)?;
        same_functions("reverse_compute_at", block, l)?;
        self.edit("reverse_compute_at", &block.function, |f| {
            compute_at::reverse_compute_at(f, &block.name, l.var)
        })
    }

    /// Copies the buffer at position `index` among those that a block reads to a new buffer in a memory scope. The block then reads
    /// the copy. Returns the block that copies.
    ///
    /// # Errors
    /// If there is no such buffer or scope.
    pub fn cache_read(&mut self, block: &BlockRef, index: usize, scope: &str) -> Result<BlockRef> {
        let name = self.edit("cache_read", &block.function, |f| {
            cache::cache_read(f, &block.name, index, buffers::scope(scope)?)
        })?;
        Ok(BlockRef { function: block.function.clone(), name: name.into() })
    }

    /// Lets a block write to a new buffer in a memory scope instead of the buffer at position `index` among those that it writes.
    /// Another block copies the new buffer to the old one. Returns the block that copies.
    ///
    /// # Errors
    /// If there is no such buffer or scope, or if another block writes the buffer.
    pub fn cache_write(&mut self, block: &BlockRef, index: usize, scope: &str) -> Result<BlockRef> {
        let name = self.edit("cache_write", &block.function, |f| {
            cache::cache_write(f, &block.name, index, buffers::scope(scope)?)
        })?;
        Ok(BlockRef { function: block.function.clone(), name: name.into() })
    }

    /// Sets the memory scope of the buffer at position `index` among those that a block writes.
    ///
    /// # Errors
    /// If there is no such buffer or scope, or the buffer is a parameter.
    pub fn set_scope(&mut self, block: &BlockRef, index: usize, scope: &str) -> Result<()> {
        self.edit("set_scope", &block.function, |f| {
            cache::set_scope(f, &block.name, index, buffers::scope(scope)?)
        })
    }

    /// Moves the init of a reduction into a new block in front of the loop `l`, which encloses the reduction. Returns the new
    /// block.
    ///
    /// # Errors
    /// If the block has no init, or if a loop around `l` runs over a reduction axis of the block.
    pub fn decompose_reduction(&mut self, block: &BlockRef, l: &LoopRef) -> Result<BlockRef> {
        self.check_loop("decompose_reduction", l)?;
        same_functions("decompose_reduction", block, l)?;
        let name = self.edit("decompose_reduction", &block.function, |f| {
            reductions::decompose_reduction(f, &block.name, l.var)
        })?;
        Ok(BlockRef { function: block.function.clone(), name: name.into() })
    }

    /// Splits a reduction over the loop `l` into one partial result for each iteration, which another block combines. The buffer of
    /// the partial results has the dims of the result and an additional dim for the loop, at position `factor_axis`. Returns the
    /// block that computes the partial results.
    ///
    /// # Errors
    /// If the loop runs over no reduction axis, or if the block is not a reduction with `+`, `*`, `min` or `max`.
    pub fn rfactor(&mut self, l: &LoopRef, factor_axis: i64) -> Result<BlockRef> {
        self.check_loop("rfactor", l)?;
        let name =
            self.edit("rfactor", &l.function, |f| reductions::rfactor(f, l.var, factor_axis))?;
        Ok(BlockRef { function: l.function.clone(), name: name.into() })
    }

    pub(crate) fn function(&self, primitive: &'static str, name: &str) -> Result<&PrimFunc> {
        let func = self.module.get(name).and_then(|f| f.as_prim());
        func.map(|f| &**f).ok_or_else(|| {
            let known: Vec<String> =
                self.module.prim_funcs().map(|(name, _)| format!("'{name}'")).collect();
            let message =
                format!("there is no such loop function; the functions are {}", known.join(", "));
            error(primitive, name, message)
        })
    }

    /// Applies a primitive to a copy of the function `name`, and replaces the function by the copy if the primitive succeeds.
    pub(crate) fn edit<T>(
        &mut self,
        primitive: &'static str,
        name: &Arc<str>,
        apply: impl FnOnce(&mut PrimFunc) -> Step<T>,
    ) -> Result<T> {
        let mut func = self.function(primitive, name)?.clone();
        let result = apply(&mut func).map_err(|message| error(primitive, name, message))?;
        func.attrs.insert(IS_SCHEDULED.into(), AttrValue::Bool(true));
        if let Some(problem) = verify_prim_func(&func).first() {
            let message = format!("internal error: the result is invalid: {}", problem.message);
            return Err(error(primitive, name, message));
        }
        if let Some(block) = oversized_block(&func) {
            let message = format!(
                "the expressions of the block '{block}' would have more than {MAX_EXPR_NODES} operations; inline fewer blocks, or \
                 fuse and split fewer times"
            );
            return Err(error(primitive, name, message));
        }
        self.module.insert(name.clone(), BaseFunc::Prim(Arc::new(func)));
        self.steps += 1;
        Ok(result)
    }
}

impl Clone for Schedule {
    /// Returns a copy of the schedule. Loop and block references that exist now are valid for both.
    fn clone(&self) -> Schedule {
        let mut origins = self.origins.clone();
        if let Some((_, until)) = origins.last_mut() {
            *until = self.steps;
        }
        origins.push((new_id(), usize::MAX));
        Schedule { module: self.module.clone(), origins, steps: self.steps }
    }
}

/// Returns a unique id for a new schedule.
fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Maximum number of operations of an expression in a block. A shared subexpression counts each time that it occurs.
const MAX_EXPR_NODES: usize = 4000;

/// Returns the name of the first block that has an expression of more than [`MAX_EXPR_NODES`] operations; `None` if there is none.
fn oversized_block(f: &PrimFunc) -> Option<Arc<str>> {
    fn count(f: &PrimFunc, e: Expr, budget: &mut usize) {
        *budget = budget.saturating_sub(1);
        if *budget > 0 {
            for_each_operand(f.expr(e), |operand| count(f, operand, budget));
        }
    }
    let is_oversized = |e: Expr| {
        let mut budget = MAX_EXPR_NODES;
        count(f, e, &mut budget);
        budget == 0
    };
    loop_tree::blocks_in(f, f.body).into_iter().find_map(|(_, block)| {
        let mut found =
            block.iters.iter().map(|it| it.binding).chain(block.predicate).any(is_oversized);
        for_each_stmt(f, block.body, &mut |_, data| {
            direct_exprs(data, |e| found |= is_oversized(e));
        });
        found.then(|| block.name.clone())
    })
}

/// Fails unless a block and a loop are in the same function.
fn same_functions(primitive: &'static str, block: &BlockRef, l: &LoopRef) -> Result<()> {
    match block.function == l.function {
        true => Ok(()),
        false => {
            let message = format!(
                "the block and the loop must be in the same function, but the loop is in '{}'",
                l.function
            );
            Err(error(primitive, &block.function, message))
        }
    }
}

/// Returns the error of a primitive that cannot be applied to a function.
pub(crate) fn error(primitive: &'static str, function: &str, message: String) -> ScheduleError {
    ScheduleError { primitive, function: function.into(), message }
}

/// Returns (name of the function that contains all these loops, loop variables). Fails if the loops are in different functions.
fn same_function(primitive: &'static str, loops: &[LoopRef]) -> Result<(Arc<str>, Vec<Var>)> {
    let Some(first) = loops.first() else {
        return Err(error(
            primitive,
            "",
            "the list of loops is empty; pass at least one loop".into(),
        ));
    };
    if let Some(other) = loops.iter().find(|l| l.function != first.function) {
        let message =
            format!("all loops must be in the same function, but one is in '{}'", other.function);
        return Err(error(primitive, &first.function, message));
    }
    Ok((first.function.clone(), loops.iter().map(|l| l.var).collect()))
}
