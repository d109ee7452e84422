//! The tile registers of a thread: how many rows each has, and that they are given back.

use std::arch::asm;

use super::kernels::{Block, kernels};
use super::{COLUMNS, Kind, LINE, ROWS};
use crate::product::rows::TILE_ROWS;

/// What `ldtilecfg` reads: the rows, and the bytes of a row, of each register.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    rows: [u8; 16],
}

impl Configuration {
    /// For blocks of so many rows. A register without rows has no bytes either.
    fn new(rows: usize) -> Configuration {
        let full = ROWS as u8;
        let upper = rows.min(ROWS) as u8;
        let lower = rows.saturating_sub(ROWS) as u8;
        // Without lower rows their registers have more columns of C, and of B.
        let (lower_c, sixth) = if lower == 0 { (upper, full) } else { (lower, lower) };
        let mut configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            bytes: [0; 16],
            rows: [0; 16],
        };
        let rows = [upper, upper, lower_c, lower_c, upper, sixth, full, full];
        configuration.rows[..rows.len()].copy_from_slice(&rows);
        configuration.bytes[..rows.len()].fill(LINE as u16);
        configuration
    }
}

/// The tile registers of this thread, which are given back when this is dropped.
#[derive(Debug)]
pub struct Tiles {
    rows: usize,
    /// Registers belong to the thread that configured them.
    here: std::marker::PhantomData<*const ()>,
}

impl Tiles {
    /// None yet.
    ///
    /// # Safety
    /// [`is_available`]. The thread has no other.
    pub unsafe fn new() -> Tiles {
        Tiles { rows: 0, here: std::marker::PhantomData }
    }

    /// Computes a block of 1 to [`TILE_ROWS`] rows by 16, 32 or, where there are no more than 16 rows, 64 columns.
    ///
    /// # Safety
    /// All these elements of C are readable and writable, and nobody else has them; those of A and B are readable: each step
    /// reads [`LINE`] bytes of each row of A, and 16 rows of all these columns of B.
    pub unsafe fn multiply(&mut self, kind: Kind, rows: usize, columns: usize, block: &Block) {
        self.configure(rows);
        let kernel =
            kernels(kind).table[usize::from(rows > ROWS)][(columns / COLUMNS).ilog2() as usize];
        // SAFETY: the caller's promise; the registers are configured for these rows.
        unsafe { kernel(block) }
    }

    /// Multiplies what the registers hold, without reading or writing: what a block of 32 x 32 does with each step of k.
    pub fn repeat(&mut self, kind: Kind, steps: usize) {
        self.configure(TILE_ROWS);
        // SAFETY: the registers are configured.
        unsafe { (kernels(kind).repeat)(steps) }
    }

    fn configure(&mut self, rows: usize) {
        if self.rows != rows {
            let configuration = Configuration::new(rows);
            // SAFETY: the configuration is one of palette 1; `new` says that the registers may be used.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly));
            }
            self.rows = rows;
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        if self.rows > 0 {
            // SAFETY: the registers may be used. Without contents they cost a switch of threads nothing.
            unsafe { asm!("tilerelease", options(nostack, nomem)) };
        }
    }
}
