//! Schedules of loop functions: `ScheduleState` applies primitives, `LoopRV` and `BlockRV` refer to loops and blocks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pliant::schedule::{
    BlockRef, BufferSelector, LoopOrBlock, LoopRef, Remainder, Schedule, ScheduleError,
    TensorIntrin,
};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::ir_module::IRModule;
use crate::relax::value_conversion::attr_value;
use crate::te::prim_func::PrimFunc;
use crate::tir::build_prim_func::build_index_map;

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

/// Converts a Python object that represents a loop or a block. Returns `Error::Type` for other objects.
fn loop_or_block(obj: &Bound<'_, PyAny>) -> Result<LoopOrBlock> {
    if let Ok(l) = obj.cast::<LoopHandle>() {
        return Ok(LoopOrBlock::Loop(l.get().0.clone()));
    }
    match obj.cast::<BlockHandle>() {
        Ok(b) => Ok(LoopOrBlock::Block(b.get().0.clone())),
        Err(_) => {
            Err(Error::Type(format!("expected a loop or a block, got {}", obj.get_type().name()?)))
        }
    }
}

/// Converts a Python object that selects a buffer of a block: a name, or a tuple of `"read"` or `"write"` and an index.
fn buffer_selector(obj: &Bound<'_, PyAny>) -> Result<BufferSelector> {
    if let Ok(name) = obj.extract::<String>() {
        return Ok(BufferSelector::Name(name.into()));
    }
    match obj.extract::<(String, usize)>() {
        Ok((kind, index)) if kind == "read" => Ok(BufferSelector::Read(index)),
        Ok((kind, index)) if kind == "write" => Ok(BufferSelector::Write(index)),
        _ => Err(Error::Type(format!(
            "a buffer is selected by its name, a Buffer, (\"read\", index) or (\"write\", index), not by {}",
            obj.repr()?
        ))),
    }
}

/// Creates a tensor intrinsic from two loop functions.
fn tensor_intrin(name: &str, desc: &PrimFunc, imp: &PrimFunc) -> TensorIntrin {
    TensorIntrin {
        name: name.into(),
        description: (*desc.func).clone(),
        implementation: (*imp.func).clone(),
    }
}

/// Raises `ScheduleError` unless the description and the implementation of a tensor intrinsic have the same parameters, which must
/// be tensors of constant sizes.
#[pyfunction]
pub fn check_tensor_intrin(
    name: &str,
    desc: &Bound<'_, PrimFunc>,
    imp: &Bound<'_, PrimFunc>,
) -> Result<()> {
    tensor_intrin(name, desc.get(), imp.get()).check().map_err(Error::Schedule)
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

    /// Returns the blocks directly inside a loop or block, in program order.
    fn get_child_blocks(&self, parent: &Bound<'_, PyAny>) -> Result<Vec<BlockHandle>> {
        let parent = loop_or_block(parent)?;
        Ok(self.lock().get_child_blocks(&parent)?.into_iter().map(BlockHandle).collect())
    }

    /// Returns the blocks that write buffers which a block uses, and that precede it.
    fn get_producers(&self, block: &BlockHandle) -> Result<Vec<BlockHandle>> {
        Ok(self.lock().get_producers(&block.0)?.into_iter().map(BlockHandle).collect())
    }

    /// Returns the blocks that use buffers which a block writes, and that follow it.
    fn get_consumers(&self, block: &BlockHandle) -> Result<Vec<BlockHandle>> {
        Ok(self.lock().get_consumers(&block.0)?.into_iter().map(BlockHandle).collect())
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
        let (what, value) = (loop_or_block(what)?, attr_value(value)?);
        Ok(self.lock().annotate(&what, key, value)?)
    }

    /// Removes an annotation from a loop or block.
    fn unannotate(&self, what: &Bound<'_, PyAny>, key: &str) -> Result<()> {
        let what = loop_or_block(what)?;
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

    /// Returns the number of axes of a block.
    fn num_axes(&self, block: &BlockHandle) -> Result<usize> {
        Ok(self.lock().num_axes(&block.0)?)
    }

    /// Returns the rank of a buffer that a block reads or writes.
    fn buffer_rank(&self, block: &BlockHandle, buffer: &Bound<'_, PyAny>) -> Result<usize> {
        let buffer = buffer_selector(buffer)?;
        Ok(self.lock().buffer_rank(&block.0, &buffer)?)
    }

    /// Checks the positions of separators between dims of a buffer, which have no effect.
    fn set_axis_separator(
        &self,
        block: &BlockHandle,
        buffer: &Bound<'_, PyAny>,
        separators: Vec<usize>,
    ) -> Result<()> {
        let buffer = buffer_selector(buffer)?;
        Ok(self.lock().set_axis_separator(&block.0, &buffer, &separators)?)
    }

    /// Stores a temporary buffer of a block in the layout that the map from `inputs` to `outputs` describes. `pad_value` fills
    /// padding.
    fn transform_layout(
        &self,
        block: &BlockHandle,
        buffer: &Bound<'_, PyAny>,
        inputs: Vec<Bound<'_, PyAny>>,
        outputs: Vec<Bound<'_, PyAny>>,
        pad_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let (buffer, map) = (buffer_selector(buffer)?, build_index_map(&inputs, &outputs)?);
        let pad_value = pad_value.map(attr_value).transpose()?;
        Ok(self.lock().transform_layout(&block.0, &buffer, &map, pad_value.as_ref())?)
    }

    /// Replaces the axes of a block by the outputs of a map of its axes, and the loops around it by loops over the new axes.
    fn transform_block_layout(
        &self,
        block: &BlockHandle,
        inputs: Vec<Bound<'_, PyAny>>,
        outputs: Vec<Bound<'_, PyAny>>,
    ) -> Result<()> {
        let map = build_index_map(&inputs, &outputs)?;
        Ok(self.lock().transform_block_layout(&block.0, &map)?)
    }

    /// Lets a block access a copy of a buffer whose dims are axes of the block. Returns the block that copies.
    fn reindex(&self, block: &BlockHandle, buffer: &Bound<'_, PyAny>) -> Result<BlockHandle> {
        let buffer = buffer_selector(buffer)?;
        Ok(BlockHandle(self.lock().reindex(&block.0, &buffer)?))
    }

    /// Rounds the extents of the axes of a block up to multiples of `padding`. New blocks pad the operands and copy the result.
    fn pad_einsum(&self, block: &BlockHandle, padding: Vec<i64>) -> Result<()> {
        Ok(self.lock().pad_einsum(&block.0, &padding)?)
    }

    /// Makes a loop with the block in it an outer block. Returns the outer block.
    fn blockize(&self, l: &LoopHandle, preserve_unit_iters: bool) -> Result<BlockHandle> {
        Ok(BlockHandle(self.lock().blockize(&l.0, preserve_unit_iters)?))
    }

    /// Replaces the computation of a block or loop by the implementation of a tensor intrinsic.
    fn tensorize(
        &self,
        what: &Bound<'_, PyAny>,
        name: &str,
        functions: (Bound<'_, PrimFunc>, Bound<'_, PrimFunc>),
        preserve_unit_iters: bool,
    ) -> Result<()> {
        let target = loop_or_block(what)?;
        let intrin = tensor_intrin(name, functions.0.get(), functions.1.get());
        Ok(self.lock().tensorize(&target, &intrin, preserve_unit_iters)?)
    }
}
