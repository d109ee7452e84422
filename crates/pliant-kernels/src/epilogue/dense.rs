//! Tiles of few columns whose rows are adjacent in memory. Several rows are finished as one row, in which the factors and terms of
//! the columns repeat. Row by row, most lanes of each vector would be padding.
//!
//! Each value gets the same operations in the same order, so the results are bitwise equal.

use std::ptr::null;

use pliant_machine::isa::Isa;

use super::{Epilogue, EpilogueTile, Position, Residual};

/// Maximum number of columns: half of a vector of AVX-512.
const MAX_COLUMNS: usize = 8;
/// Maximum number of elements that are finished as one row.
const MAX_ELEMENTS: usize = 128;

/// Whether [`finish`] supports a tile and is faster.
pub(super) fn applies(e: &Epilogue, tile: &EpilogueTile) -> bool {
    let columns = tile.columns;
    let is_dense = |row_stride: i64| usize::try_from(row_stride) == Ok(columns);
    (1..=MAX_COLUMNS).contains(&columns)
        && tile.rows > 1
        && is_dense(tile.row_stride as i64)
        && e.residual.is_none_or(|residual| is_dense(residual.row))
}

/// Finishes a tile.
///
/// # Safety
/// As for [`Epilogue::finish`]; [`applies`] holds.
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
    for first in (0..tile.rows).step_by(rows) {
        let part = EpilogueTile {
            data: tile.row(first),
            row_stride: 0,
            rows: 1,
            columns: rows.min(tile.rows - first) * columns,
            position: Position { row: position.row + first, column: 0, ..position },
        };
        // SAFETY: guaranteed by the caller, since adjacent rows of the tile and of the residual are adjacent in memory.
        unsafe { epilogue.finish_rows(isa, &part) };
    }
}
