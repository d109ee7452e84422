//! Schedules of loop functions: `ScheduleState` applies primitives, `LoopRV` and `BlockRV` refer to loops and blocks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pliant::schedule::{Annotated, BlockRef, LoopRef, Remainder, Schedule, ScheduleError};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::ir_module::IRModule;
use crate::relax::value_conversion::attr_value;

/// A loop of a function that is being scheduled.
#[pyclass(frozen, eq, hash, module = "pliant.tir", name = "LoopRV")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LoopHandle(LoopRef);

/// A block of a function that is being scheduled.
#[pyclass(frozen, eq, hash, module = "pliant.tir", name = "BlockRV")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BlockHandle(BlockRef);

#[pymethods]
impl BlockHandle {
    /// Returns the name of the block.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("BlockRV({})", self.0.name())
    }
}

/// The functions of a module that is being scheduled.
#[pyclass(frozen, module = "pliant._core")]
pub struct ScheduleState(Mutex<Schedule>);

impl From<ScheduleError> for Error {
    fn from(error: ScheduleError) -> Error {
        Error::Schedule(error.to_string())
    }
}

impl ScheduleState {
    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts a Python object that represents a loop or a block to the target of an annotation. Returns `Error::Type` for other
/// objects.
fn annotated(obj: &Bound<'_, PyAny>) -> Result<Annotated> {
    if let Ok(l) = obj.cast::<LoopHandle>() {
        return Ok(Annotated::Loop(l.get().0.clone()));
    }
    match obj.cast::<BlockHandle>() {
        Ok(b) => Ok(Annotated::Block(b.get().0.clone())),
        Err(_) => Err(Error::Type(format!(
            "annotations belong to a loop or a block, not to {}",
            obj.get_type().name()?
        ))),
    }
}

#[pymethods]
impl ScheduleState {
    #[new]
    fn new(module: &Bound<'_, IRModule>) -> ScheduleState {
        ScheduleState(Mutex::new(Schedule::new(module.get().snapshot())))
    }

    /// Returns the module in its current state.
    #[getter]
    fn module(&self) -> IRModule {
        IRModule::wrap(self.lock().module().clone())
    }

    /// Returns a copy of the schedule. Loops and blocks of the schedule are valid in the copy, too.
    fn copy(&self) -> ScheduleState {
        ScheduleState(Mutex::new(self.lock().clone()))
    }

    /// Returns the block with this name in a function. Raises an error if there is none, or several.
    fn get_block(&self, name: &str, func_name: &str) -> Result<BlockHandle> {
        Ok(BlockHandle(self.lock().get_block(name, func_name)?))
    }

    /// Returns the loops around a block, outermost first.
    fn get_loops(&self, block: &BlockHandle) -> Result<Vec<LoopHandle>> {
        Ok(self.lock().get_loops(&block.0)?.into_iter().map(LoopHandle).collect())
    }

    /// Returns the blocks inside a loop, in program order.
    fn get_child_blocks(&self, parent: &LoopHandle) -> Result<Vec<BlockHandle>> {
        Ok(self.lock().get_child_blocks(&parent.0)?.into_iter().map(BlockHandle).collect())
    }

    /// Returns the name of a loop, and its extent if that is constant.
    fn loop_extent(&self, l: &LoopHandle) -> Result<(String, Option<i64>)> {
        let (name, extent) = self.lock().loop_extent(&l.0)?;
        Ok((name.to_string(), extent))
    }

    /// Splits a loop into a nest with these extents. One may be `None`, which is inferred. `tail` adds a loop for the remainder.
    fn split(
        &self,
        l: &LoopHandle,
        factors: Vec<Option<i64>>,
        tail: bool,
    ) -> Result<Vec<LoopHandle>> {
        let remainder = if tail { Remainder::Tail } else { Remainder::Predicate };
        let loops = self.lock().split(&l.0, &factors, remainder)?;
        Ok(loops.into_iter().map(LoopHandle).collect())
    }

    /// Replaces loops, of which each contains only the next one, by one loop. Returns it.
    fn fuse(&self, loops: Vec<PyRef<'_, LoopHandle>>) -> Result<LoopHandle> {
        let loops: Vec<LoopRef> = loops.iter().map(|l| l.0.clone()).collect();
        Ok(LoopHandle(self.lock().fuse(&loops)?))
    }

    /// Puts loops of one nest into this order.
    fn reorder(&self, loops: Vec<PyRef<'_, LoopHandle>>) -> Result<()> {
        let loops: Vec<LoopRef> = loops.iter().map(|l| l.0.clone()).collect();
        Ok(self.lock().reorder(&loops)?)
    }

    /// Distributes the iterations of a loop to the worker threads.
    fn parallel(&self, l: &LoopHandle) -> Result<()> {
        Ok(self.lock().parallel(&l.0)?)
    }

    /// Makes the iterations of a loop, whose extent must be constant, the lanes of a vector.
    fn vectorize(&self, l: &LoopHandle) -> Result<()> {
        Ok(self.lock().vectorize(&l.0)?)
    }

    /// Unrolls a loop, whose extent must be constant.
    fn unroll(&self, l: &LoopHandle) -> Result<()> {
        Ok(self.lock().unroll(&l.0)?)
    }

    /// Always raises an error: CPUs have no thread axes.
    fn bind(&self, l: &LoopHandle, thread: &str) -> Result<()> {
        Ok(self.lock().bind(&l.0, thread)?)
    }

    /// Adds an annotation to a loop or block, or replaces its value.
    fn annotate(&self, what: &Bound<'_, PyAny>, key: &str, value: &Bound<'_, PyAny>) -> Result<()> {
        let (what, value) = (annotated(what)?, attr_value(value)?);
        Ok(self.lock().annotate(&what, key, value)?)
    }

    /// Removes an annotation from a loop or block.
    fn unannotate(&self, what: &Bound<'_, PyAny>, key: &str) -> Result<()> {
        let what = annotated(what)?;
        Ok(self.lock().unannotate(&what, key)?)
    }

    /// Computes an elementwise block inside the blocks that read its result.
    fn compute_inline(&self, block: &BlockHandle) -> Result<()> {
        Ok(self.lock().compute_inline(&block.0)?)
    }

    /// Computes an elementwise block at the end of the elementwise block that writes its operand.
    fn reverse_compute_inline(&self, block: &BlockHandle) -> Result<()> {
        Ok(self.lock().reverse_compute_inline(&block.0)?)
    }

    /// Moves a block into a loop, in front of the blocks that read its result.
    fn compute_at(&self, block: &BlockHandle, l: &LoopHandle) -> Result<()> {
        Ok(self.lock().compute_at(&block.0, &l.0)?)
    }

    /// Moves a block into a loop, behind the block that writes its operand.
    fn reverse_compute_at(&self, block: &BlockHandle, l: &LoopHandle) -> Result<()> {
        Ok(self.lock().reverse_compute_at(&block.0, &l.0)?)
    }

    /// Copies a buffer that a block reads to memory of a scope, "local" or "global". Returns the block that copies.
    fn cache_read(&self, block: &BlockHandle, index: usize, scope: &str) -> Result<BlockHandle> {
        Ok(BlockHandle(self.lock().cache_read(&block.0, index, scope)?))
    }

    /// Lets a block write to memory of a scope, "local" or "global". Returns the block that copies the result back.
    fn cache_write(&self, block: &BlockHandle, index: usize, scope: &str) -> Result<BlockHandle> {
        Ok(BlockHandle(self.lock().cache_write(&block.0, index, scope)?))
    }

    /// Sets the memory scope of a buffer that a block writes.
    fn set_scope(&self, block: &BlockHandle, index: usize, scope: &str) -> Result<()> {
        Ok(self.lock().set_scope(&block.0, index, scope)?)
    }

    /// Moves the init of a reduction into a block of its own, in front of a loop. Returns the new block.
    fn decompose_reduction(&self, block: &BlockHandle, l: &LoopHandle) -> Result<BlockHandle> {
        Ok(BlockHandle(self.lock().decompose_reduction(&block.0, &l.0)?))
    }

    /// Splits a reduction into one partial result for each iteration of a loop, which another block combines. The
    /// partial results have the loop as an additional dim at the position `factor_axis`. Returns the block that
    /// computes the partial results.
    fn rfactor(&self, l: &LoopHandle, factor_axis: i64) -> Result<BlockHandle> {
        Ok(BlockHandle(self.lock().rfactor(&l.0, factor_axis)?))
    }
}
