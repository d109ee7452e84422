//! The C interface through which the results of a product are finished while they are in the nearest cache.
//!
//! A product calls its epilogue once for each tile of results whose sums are complete, on the thread that computed it and
//! right after it did, so that the tile is read from the first-level cache. The epilogue changes the tile in place, or writes what
//! it makes of it elsewhere. Bias, activation, residual, scale and cast are one function here ([`standard`]); a code generator
//! makes one for any other chain of element-wise operations.
//!
//! Tiles of packed products, of convolutions that multiply plainly, and those in scratch memory are at most [`MOST_ROWS`] rows
//! of [`MOST_COLUMNS`] columns. Others are larger: a line of results of all channels where each has a filter of its own, part
//! of a line of some filters where groups have few, the pixels of neighbouring tiles of Winograd's algorithm, a whole product
//! where that is what a kernel computes in one step. Tiles cover the results once, in any order, and from several threads at
//! once.

pub mod standard;

use std::ffi::c_void;

use pliant_exec::abi::STATUS_OK;

pub use standard::{Activation, Matrix, Standard, pliant_epilogue_f32};

/// Rows of a tile at most.
pub const MOST_ROWS: usize = 6;
/// Columns of a tile at most.
pub const MOST_COLUMNS: usize = 64;

/// Results of a product, rows of neighbouring elements. Strides and places count elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EpilogueTile {
    /// First element, of the type in which the product sums.
    pub data: *mut c_void,
    /// From row to row.
    pub row_stride: i64,
    /// How many rows.
    pub rows: i64,
    /// How many columns.
    pub columns: i64,
    /// The product's number within its batch.
    pub batch: i64,
    /// The first row's number within the product.
    pub row: i64,
    /// The first column's number within the product.
    pub column: i64,
}

/// Finishes one tile and returns a kernel status; does not unwind. `operands` is the word that stands in [`Epilogue`].
///
/// # Safety
/// The tile is readable and writable, and nobody else has it.
pub type EpilogueFn =
    unsafe extern "C" fn(operands: *const c_void, tile: *const EpilogueTile) -> i64;

/// An epilogue: a function and what it needs beside the tile, as it wants it. Generated functions take an array of 64-bit
/// words as kernels do (`pliant_exec::abi`), [`pliant_epilogue_f32`] a [`Standard`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// The function.
    pub function: EpilogueFn,
    /// Its first argument. Read from several threads at once.
    pub operands: *const c_void,
}

/// Where in a batch of products some results lie.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Number of the product.
    pub batch: usize,
    /// First row.
    pub row: usize,
    /// First column.
    pub column: usize,
}

impl Place {
    /// The place so many rows and columns further.
    pub fn offset(self, rows: usize, columns: usize) -> Place {
        Place { row: self.row + rows, column: self.column + columns, ..self }
    }
}

impl Epilogue {
    /// Finishes `rows` by `columns` results at `data`; returns a kernel status.
    ///
    /// # Safety
    /// The elements are readable and writable and nobody else has them; the function takes the operands.
    #[inline]
    pub unsafe fn finish<T>(
        &self,
        data: *mut T,
        row_stride: isize,
        (rows, columns): (usize, usize),
        at: Place,
    ) -> i64 {
        let tile = EpilogueTile {
            data: data.cast(),
            row_stride: row_stride as i64,
            rows: rows as i64,
            columns: columns as i64,
            batch: at.batch as i64,
            row: at.row as i64,
            column: at.column as i64,
        };
        // SAFETY: the caller's promise.
        unsafe { (self.function)(self.operands, &raw const tile) }
    }
}

/// [`Epilogue::finish`] where there is one.
///
/// # Safety
/// As for [`Epilogue::finish`].
#[inline]
pub unsafe fn finish<T>(
    epilogue: Option<&Epilogue>,
    data: *mut T,
    row_stride: isize,
    size: (usize, usize),
    at: Place,
) -> i64 {
    match epilogue {
        // SAFETY: the caller's promise.
        Some(epilogue) => unsafe { epilogue.finish(data, row_stride, size, at) },
        None => STATUS_OK,
    }
}
