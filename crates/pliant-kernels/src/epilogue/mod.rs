//! The C interface of epilogues, which finish the results of a product while they are in the
//! nearest cache.
//!
//! A product calls its epilogue once for each tile of results whose sums are complete, on the
//! thread that computed it and immediately afterwards, so that the tile is in the first-level
//! cache. The epilogue changes the tile in place, or writes its results elsewhere. One function
//! ([`standard`]) implements bias, activation, residual, scale and cast; a code generator creates
//! functions for other chains of elementwise operations.
//!
//! Tiles of packed products, of plain convolutions, and those in scratch memory have at most
//! [`MOST_ROWS`] rows of [`MOST_COLUMNS`] columns. Others are larger: a line of results of all
//! channels in depthwise convolutions, part of a line of some filters in grouped convolutions with
//! small groups, the pixels of neighbouring tiles of Winograd's algorithm, or a whole product that
//! a kernel computes in one step. Tiles cover the results exactly once, in any order, and from
//! several threads at once.

pub mod clip;
pub mod standard;

use std::ffi::c_void;

use pliant_exec::abi::STATUS_OK;

pub use clip::{ClipEpilogue, TileEpilogue};
pub use standard::{Activation, Matrix, Standard, pliant_epilogue_f32};

/// Maximum number of rows of a tile.
pub const MOST_ROWS: usize = 6;
/// Maximum number of columns of a tile.
pub const MOST_COLUMNS: usize = 64;

/// Some results of a product, with contiguous rows. Strides and positions count elements.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EpilogueTile {
    /// The first element, in the data type of the sums.
    pub data: *mut c_void,
    /// The row stride.
    pub row_stride: i64,
    /// The number of rows.
    pub rows: i64,
    /// The number of columns.
    pub columns: i64,
    /// The index of the product in its batch.
    pub batch: i64,
    /// The index of the first row in the product.
    pub row: i64,
    /// The index of the first column in the product.
    pub column: i64,
}

impl EpilogueTile {
    /// The position of the first element.
    pub fn place(&self) -> Place {
        let [batch, row, column] = [self.batch, self.row, self.column].map(|at| at as usize);
        Place { batch, row, column }
    }
}

/// Finishes one tile and returns a kernel status; must not unwind. `operands` is the field of
/// [`Epilogue`].
///
/// # Safety
/// The tile is readable and writable, and not accessed by others.
pub type EpilogueFn =
    unsafe extern "C" fn(operands: *const c_void, tile: *const EpilogueTile) -> i64;

/// An epilogue: a function and its operands. Generated functions take an array of 64-bit words as
/// kernels do (`pliant_exec::abi`); [`pliant_epilogue_f32`] takes a [`Standard`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Epilogue {
    /// The function.
    pub function: EpilogueFn,
    /// Its first argument. Several threads read it at once.
    pub operands: *const c_void,
}

/// The position of some results in a batch of products.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The index of the product.
    pub batch: usize,
    /// The first row.
    pub row: usize,
    /// The first column.
    pub column: usize,
}

impl Place {
    /// The position offset by `rows` and `columns`.
    pub fn offset(self, rows: usize, columns: usize) -> Place {
        Place { row: self.row + rows, column: self.column + columns, ..self }
    }
}

impl Epilogue {
    /// The form of the epilogue that kernels can apply to sums in registers instead of calling the function, if it has one.
    ///
    /// # Safety
    /// The function accepts the operands.
    pub unsafe fn clip(&self) -> Option<ClipEpilogue> {
        if !std::ptr::fn_addr_eq(self.function, pliant_epilogue_f32 as EpilogueFn) {
            return None;
        }
        // SAFETY: the operands of this function are a `Standard`.
        let standard = unsafe { &*self.operands.cast::<Standard>() };
        ClipEpilogue::of(standard)
    }

    /// Finishes `rows` by `columns` results at `data`; returns a kernel status.
    ///
    /// # Safety
    /// The elements are readable and writable and not accessed by others; the function accepts the
    /// operands.
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
        // SAFETY: guaranteed by the caller.
        unsafe { (self.function)(self.operands, &raw const tile) }
    }
}

/// [`Epilogue::finish`], if there is an epilogue.
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
        // SAFETY: guaranteed by the caller.
        Some(epilogue) => unsafe { epilogue.finish(data, row_stride, size, at) },
        None => STATUS_OK,
    }
}
