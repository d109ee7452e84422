//! Epilogues of tiles with few columns. Several rows are processed as one long row, with repeated
//! column factors and biases. A loop over single rows would leave most lanes of each vector unused.
//!
//! The operations and their order are the same as for a row-by-row loop, so the results are bitwise
//! equal.

use std::ptr::null;

use pliant_machine::isa::Isa;

use super::{Epilogue, EpilogueTile, Position, Residual};

/// Maximum number of columns of a tile for this implementation: half of an AVX-512 vector.
const MAX_COLUMNS: usize = 8;
/// Maximum number of elements that are processed together: rows of a tile of few columns are treated as one long row up to this
/// length.
const MAX_ELEMENTS: usize = 128;
/// Minimum number of rows of a tile for which [`finish`] is faster than a row-by-row loop, if the rows of the tile have gaps
/// between them in memory. [`finish`] then copies several rows to contiguous memory, and back after the epilogue. Tiles of
/// implicit-GEMM convolutions have at most [`super::MAX_TILE_ROWS`] rows, so their rows are never copied.
const MIN_COPIED_ROWS: usize = 16;

/// Whether [`finish`] supports a tile and is faster than a loop over its rows.
pub(super) fn applies(e: &Epilogue, tile: &EpilogueTile) -> bool {
    let has_dense_residual =
        e.residual.is_none_or(|residual| usize::try_from(residual.row) == Ok(tile.columns));
    (1..=MAX_COLUMNS).contains(&tile.columns)
        && match is_dense(tile) {
            true => tile.rows > 1 && has_dense_residual,
            false => {
                tile.rows >= MIN_COPIED_ROWS && e.residual.is_none() && e.activation.is_costly()
            }
        }
}

/// Whether the rows of a tile are adjacent in memory.
fn is_dense(tile: &EpilogueTile) -> bool {
    usize::try_from(tile.row_stride) == Ok(tile.columns)
}

/// Applies the epilogue to a tile of few columns, in place.
///
/// # Safety
/// The conditions of [`Epilogue::finish`] hold; [`applies`] returned true.
pub(super) unsafe fn finish(isa: Isa, e: &Epilogue, tile: &EpilogueTile) {
    let (columns, position) = (tile.columns, tile.position);
    let rows = (MAX_ELEMENTS / columns).min(tile.rows);
    let (mut scales, mut biases) = ([0f32; MAX_ELEMENTS], [0f32; MAX_ELEMENTS]);
    let repeat = |of_columns: *const f32, to: &mut [f32]| {
        if of_columns.is_null() {
            return null();
        }
        let first = of_columns.wrapping_add(position.column);
        for row in to.chunks_exact_mut(columns) {
            for (column, value) in row.iter_mut().enumerate() {
                // SAFETY: guaranteed by the caller for the columns of the tile.
                *value = unsafe { *first.add(column) };
            }
        }
        to.as_ptr()
    };
    let epilogue = Epilogue {
        column_scale: repeat(e.column_scale, &mut scales[..rows * columns]),
        bias: repeat(e.bias, &mut biases[..rows * columns]),
        residual: e.residual.map(|residual| {
            let data = residual.data.wrapping_add(position.column);
            Residual { data, ..residual }
        }),
        ..*e
    };
    let mut copy = [0f32; MAX_ELEMENTS];
    for first in (0..tile.rows).step_by(rows) {
        let count = rows.min(tile.rows - first);
        let part = EpilogueTile {
            data: if is_dense(tile) { tile.row(first) } else { copy.as_mut_ptr() },
            row_stride: 0,
            rows: 1,
            columns: count * columns,
            position: Position { row: position.row + first, column: 0, ..position },
        };
        // SAFETY: guaranteed by the caller, since adjacent rows of the part and of the residual are adjacent in memory. The copy
        // has room for these rows.
        unsafe {
            if is_dense(tile) {
                epilogue.finish_rows(isa, &part);
                continue;
            }
            for row in 0..count {
                let to = part.data.add(row * columns);
                to.copy_from_nonoverlapping(tile.row(first + row), columns);
            }
            epilogue.finish_rows(isa, &part);
            for row in 0..count {
                let from = part.data.add(row * columns);
                tile.row(first + row).copy_from_nonoverlapping(from, columns);
            }
        }
    }
}
