//! The primitives of [`Schedule`] that change blocks, layouts and the axes of blocks, and those that relate blocks.

use std::sync::Arc;

use pliant_ir::AttrValue;
use pliant_ir::tir::PrimFunc;

use crate::buffers::BufferSelector;
use crate::error::Step;
use crate::index_map::IndexMap;
use crate::schedule::{BlockRef, LoopOrBlock, LoopRef, Result, Schedule, error};
use crate::tensorize::TensorIntrin;
use crate::{
    block_scope, blockize, loop_tree, pad_einsum, reindex, tensorize, transform_block_layout,
    transform_layout,
};

impl Schedule {
    /// Returns the blocks directly inside a loop or block, in program order. Blocks inside of these are not included.
    ///
    /// # Errors
    /// If the loop or block does not exist any more.
    pub fn get_child_blocks(&self, parent: &LoopOrBlock) -> Result<Vec<BlockRef>> {
        const NAME: &str = "get_child_blocks";
        match parent {
            LoopOrBlock::Block(b) => self.related_blocks(NAME, b, block_scope::child_blocks),
            LoopOrBlock::Loop(l) => {
                self.check_loop(NAME, l)?;
                let func = self.function(NAME, &l.function)?;
                let found = loop_tree::find_loop(func, l.var)
                    .map_err(|message| error(NAME, &l.function, message))?;
                let blocks = loop_tree::outermost_blocks_in(func, found.stmt).into_iter();
                Ok(blocks.map(|(_, b)| block_ref(&l.function, b.name)).collect())
            }
        }
    }

    /// Returns the blocks that write buffers which a block reads or writes, and that precede it in the same outer block or, if
    /// there is none, in the function.
    ///
    /// # Errors
    /// If the block does not exist any more.
    pub fn get_producers(&self, block: &BlockRef) -> Result<Vec<BlockRef>> {
        self.related_blocks("get_producers", block, block_scope::producers)
    }

    /// Returns the blocks that read or write buffers which a block writes, and that follow it in the same outer block or, if there
    /// is none, in the function.
    ///
    /// # Errors
    /// If the block does not exist any more.
    pub fn get_consumers(&self, block: &BlockRef) -> Result<Vec<BlockRef>> {
        self.related_blocks("get_consumers", block, block_scope::consumers)
    }

    /// Returns the number of axes of a block.
    ///
    /// # Errors
    /// If the block does not exist any more.
    pub fn num_axes(&self, block: &BlockRef) -> Result<usize> {
        let fail = |message| error("transform_block_layout", &block.function, message);
        let func = self.function("transform_block_layout", &block.function)?;
        let (_, data) = loop_tree::find_block(func, &block.name).map_err(fail)?;
        Ok(data.iters.len())
    }

    /// Returns the rank of a buffer that a block reads or writes.
    ///
    /// # Errors
    /// If the block does not exist any more, or has no such buffer.
    pub fn buffer_rank(&self, block: &BlockRef, buffer: &BufferSelector) -> Result<usize> {
        self.rank("transform_layout", block, buffer)
    }

    /// Checks the positions of separators between groups of dims of a buffer. They have no effect, because there is no memory in
    /// which the groups matter.
    ///
    /// # Errors
    /// If the block has no such buffer, or if the positions are not ascending positions between dims of the buffer.
    pub fn set_axis_separator(
        &self,
        block: &BlockRef,
        buffer: &BufferSelector,
        separators: &[usize],
    ) -> Result<()> {
        const NAME: &str = "set_axis_separator";
        let rank = self.rank(NAME, block, buffer)?;
        let is_ascending = separators.windows(2).all(|pair| pair[0] < pair[1]);
        if is_ascending && separators.iter().all(|&i| (1..rank).contains(&i)) {
            return Ok(());
        }
        let message = format!(
            "the separators of a buffer with {rank} dims must be ascending positions from 1 to {}, got {separators:?}",
            rank.saturating_sub(1)
        );
        Err(error(NAME, &block.function, message))
    }

    fn rank(
        &self,
        primitive: &'static str,
        block: &BlockRef,
        buffer: &BufferSelector,
    ) -> Result<usize> {
        let fail = |message| error(primitive, &block.function, message);
        let func = self.function(primitive, &block.function)?;
        let (_, data) = loop_tree::find_block(func, &block.name).map_err(fail)?;
        let buffer = buffer.resolve(func, &data).map_err(fail)?;
        Ok(func.buffer(buffer).shape.len())
    }

    fn related_blocks(
        &self,
        primitive: &'static str,
        block: &BlockRef,
        names: impl FnOnce(&PrimFunc, &str) -> Step<Vec<Arc<str>>>,
    ) -> Result<Vec<BlockRef>> {
        let names = names(self.function(primitive, &block.function)?, &block.name)
            .map_err(|message| error(primitive, &block.function, message))?;
        Ok(names.into_iter().map(|name| block_ref(&block.function, name)).collect())
    }

    /// Stores a temporary buffer that a block reads or writes in the layout that an index map describes. If the new layout has
    /// padding, a new block fills it with `pad_value`.
    ///
    /// # Errors
    /// If the buffer is a parameter or is passed to a function, if the map is not one-to-one, or if there is padding, but no
    /// `pad_value`.
    pub fn transform_layout(
        &mut self,
        block: &BlockRef,
        buffer: &BufferSelector,
        map: &IndexMap,
        pad_value: Option<&AttrValue>,
    ) -> Result<()> {
        self.edit("transform_layout", &block.function, |f| {
            transform_layout::transform_layout(f, &block.name, buffer, map, pad_value)
        })
    }

    /// Replaces the axes of a block by those that an index map computes from them, and the loops around it by one loop for each new
    /// axis.
    ///
    /// # Errors
    /// If the axes are not bound to one loop each, if the map is not bijective, or if a new axis would be neither spatial nor a
    /// reduction axis.
    pub fn transform_block_layout(&mut self, block: &BlockRef, map: &IndexMap) -> Result<()> {
        self.edit("transform_block_layout", &block.function, |f| {
            transform_block_layout::transform_block_layout(f, &block.name, map)
        })
    }

    /// Lets a block access a copy of a buffer that has one dim for each axis with which the block indexes the buffer. Returns the
    /// block that copies.
    ///
    /// # Errors
    /// If the axes are not bound to one loop each, or if the block accesses the buffer with several lists of indices, under a
    /// condition, or writes an element several times.
    pub fn reindex(&mut self, block: &BlockRef, buffer: &BufferSelector) -> Result<BlockRef> {
        let name =
            self.edit("reindex", &block.function, |f| reindex::reindex(f, &block.name, buffer))?;
        Ok(block_ref(&block.function, name.into()))
    }

    /// Rounds the extent of each axis of a block up to a multiple of its entry in `padding`. New blocks copy the operands to larger
    /// buffers, padded with zeros, and the result from a larger buffer.
    ///
    /// # Errors
    /// If the block is no einsum: its indices are not axes and constants, or zeros as operands would change its result.
    pub fn pad_einsum(&mut self, block: &BlockRef, padding: &[i64]) -> Result<()> {
        self.edit("pad_einsum", &block.function, |f| {
            pad_einsum::pad_einsum(f, &block.name, padding)
        })
    }

    /// Makes a loop with the block in it an outer block, and returns the outer block. Its axes with only one value are removed
    /// unless `preserve_unit_iters` is set.
    ///
    /// # Errors
    /// If the loop contains several blocks, or if the axes of the block are not the sum of a tile index times the size of the tile
    /// and an index in the tile.
    pub fn blockize(&mut self, l: &LoopRef, preserve_unit_iters: bool) -> Result<BlockRef> {
        self.check_loop("blockize", l)?;
        let name = self
            .edit("blockize", &l.function, |f| blockize::blockize(f, l.var, preserve_unit_iters))?;
        Ok(block_ref(&l.function, name.into()))
    }

    /// Replaces the computation of a block, or of a loop, which first becomes a block ([`Schedule::blockize`]), by the
    /// implementation of an intrinsic.
    ///
    /// # Errors
    /// If the loop cannot become a block, or if the block does not compute the same as the description of the intrinsic.
    pub fn tensorize(
        &mut self,
        target: &LoopOrBlock,
        intrin: &TensorIntrin,
        preserve_unit_iters: bool,
    ) -> Result<()> {
        const NAME: &str = "tensorize";
        match target {
            LoopOrBlock::Block(b) => {
                self.edit(NAME, &b.function, |f| tensorize::tensorize(f, &b.name, intrin))
            }
            LoopOrBlock::Loop(l) => {
                self.check_loop(NAME, l)?;
                self.edit(NAME, &l.function, |f| {
                    let name = blockize::blockize(f, l.var, preserve_unit_iters)?;
                    tensorize::tensorize(f, &name, intrin)
                })
            }
        }
    }
}

fn block_ref(function: &Arc<str>, name: Arc<str>) -> BlockRef {
    BlockRef { function: function.clone(), name }
}
