//! Configuration and release of the tile registers of a thread.

use std::arch::asm;

use super::assembly_kernels::{Block, kernels};
use super::{COLUMNS, Kind, LINE, ROWS};
use crate::matmul::row_tiling::TILE_ROWS;

/// The layout of the memory operand of the instruction `ldtilecfg`: for each tile register, the
/// number of rows and the number of bytes per row.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

impl Configuration {
    /// Creates the configuration of the tile registers for blocks of `rows` rows.
    fn new(rows: usize) -> Configuration {
        let full = ROWS as u8;
        let upper = rows.min(ROWS) as u8;
        let lower = rows.saturating_sub(ROWS) as u8;
        // Without lower rows, the registers for them hold more columns of C and of B.
        let (lower_c, tmm5_rows) = if lower == 0 { (upper, full) } else { (lower, lower) };
        let mut configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes: [0; 16],
            rows: [0; 16],
        };
        let rows = [upper, upper, lower_c, lower_c, upper, tmm5_rows, full, full];
        configuration.rows[..rows.len()].copy_from_slice(&rows);
        configuration.bytes[..rows.len()].fill(LINE as u16);
        configuration
    }
}

/// Exclusive access to the tile registers of this thread. Dropping this value releases them.
#[derive(Debug)]
pub struct TileRegisters {
    rows: usize,
    /// Makes the type not `Send`, because tile registers belong to the thread that configured them.
    not_send: std::marker::PhantomData<*const ()>,
}

impl TileRegisters {
    /// Creates the handle to the tile registers of this thread. The first matrix product configures the registers.
    ///
    /// # Safety
    /// `Isa::Amx.is_available()` returned true. The thread has no other `TileRegisters`.
    pub unsafe fn new() -> TileRegisters {
        TileRegisters { rows: 0, not_send: std::marker::PhantomData }
    }

    /// Computes the matrix product of a block with 1 to [`TILE_ROWS`] rows and 16 or 32 columns, or
    /// 64 columns for at most 16 rows.
    ///
    /// # Safety
    /// The elements of C are readable and writable, and no other thread accesses them. The elements
    /// of A and B are readable: each step reads [`LINE`] bytes of each row of A, and 16 rows of all
    /// columns of B.
    pub unsafe fn multiply(&mut self, kind: Kind, rows: usize, columns: usize, block: &Block) {
        self.configure(rows);
        let kernel =
            kernels(kind).table[usize::from(rows > ROWS)][(columns / COLUMNS).ilog2() as usize];
        // SAFETY: guaranteed by the caller; the registers are configured for these rows.
        unsafe { kernel(block) }
    }

    /// Multiplies the contents of tile registers without memory accesses, with the instructions for a block of 32 x 32,
    /// to measure the peak rate.
    pub fn repeat(&mut self, kind: Kind, steps: usize) {
        self.configure(TILE_ROWS);
        // SAFETY: the registers are configured.
        unsafe { (kernels(kind).repeat)(steps) }
    }

    fn configure(&mut self, rows: usize) {
        if self.rows != rows {
            let configuration = Configuration::new(rows);
            // SAFETY: the configuration uses palette 1; `new` guarantees that the registers may be used.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly));
            }
            self.rows = rows;
        }
    }
}

impl Drop for TileRegisters {
    fn drop(&mut self) {
        if self.rows > 0 {
            // SAFETY: the registers may be used. Once released, they do not slow down thread switches.
            unsafe { asm!("tilerelease", options(nostack, nomem)) };
        }
    }
}
