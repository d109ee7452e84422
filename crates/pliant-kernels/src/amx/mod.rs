//! Products in tile registers (AMX of x86-64): registers of 16 rows of 64 bytes, and instructions that multiply one by another
//! and add the products to a third.
//!
//! Recipe: a block of C of up to 32 x 32 sums takes four registers; each step reads 64 bytes of k of up to 32 rows of A, and as
//! much of 32 columns of B, and starts four instructions of 16 K multiply-adds of bytes, or 8 K of bfloat16. A is read where it
//! lies. B is packed in words: four rows of k of bytes, or two of bfloat16, are neighbours, so that panels packed for other
//! instructions are read as they are. What a last step lacks comes from copies that end in zeros.
//!
//! Measured from the first-level cache: 8 to 10 times the peak of float32 with bfloat16, 14 to 16 times with bytes.
//!
//! The registers belong to a thread that asks for them ([`Tiles`]); a process asks the system for leave first
//! ([`is_available`]).

use std::arch::asm;
use std::sync::OnceLock;

use crate::product::rows::TILE_ROWS;

/// Bytes of a row of a register, which are words of 32 bits of 16 columns.
pub const LINE: usize = 64;
/// Rows of a register.
const ROWS: usize = TILE_ROWS / 2;
/// Columns of a register.
pub const COLUMNS: usize = 16;
/// Columns of a block at most where it has no more than 16 rows; else half of them.
pub const BLOCK_COLUMNS: usize = 4 * COLUMNS;

/// First column and width of each block of so many columns of at most so many rows.
pub fn strips(columns: usize, rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let most = if rows > ROWS { BLOCK_COLUMNS / 2 } else { BLOCK_COLUMNS };
    let mut next = 0;
    std::iter::from_fn(move || {
        let (at, left) = (next, columns.saturating_sub(next).div_ceil(COLUMNS));
        // One register, two or four.
        let width = COLUMNS << left.checked_ilog2()?;
        next += width.min(most);
        Some((at, width.min(most)))
    })
}

/// Whether the machine has tile registers for bytes and bfloat16, and the system lets this process use them. The first call
/// asks for leave, which holds for all threads; a system that was not asked stops a process at the first use.
pub fn is_available() -> bool {
    static LEAVE: OnceLock<bool> = OnceLock::new();
    *LEAVE.get_or_init(|| has_instructions() && asked_for_leave())
}

/// Whether the processor has the instructions, and those that rows are made ready with.
fn has_instructions() -> bool {
    // Leaf 7 exists on every processor with AVX-512.
    let edx = std::arch::x86_64::__cpuid_count(7, 0).edx;
    let (bfloat16, registers, bytes) = (edx >> 22 & 1, edx >> 24 & 1, edx >> 25 & 1);
    bfloat16 & registers & bytes == 1
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vnni")
        && std::arch::is_x86_feature_detected!("avx512bf16")
}

/// Asks Linux to save the registers of this process when it switches threads.
#[cfg(target_os = "linux")]
fn asked_for_leave() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes numbers alone. It fails where the system does not know it, or threads have small signal stacks.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn asked_for_leave() -> bool {
    false
}

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// bfloat16, with sums in float32. Numbers too small for a full fraction count as zeros, in operands and sums.
    BFloat16,
    /// uint8 by int8, with sums in int32.
    Unsigned,
    /// int8 by int8, with sums in int32.
    Signed,
}

/// Some steps of k, of [`LINE`] bytes of each row of A.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    steps: usize,
    a: *const u8,
    a_row: isize,
    /// The 17th row of A.
    a_low: *const u8,
    b: *const u8,
    b_row: usize,
    /// From step to step of B.
    b_step: usize,
}

impl Stretch {
    /// So many steps, from the first byte of A and of the first column of B on, with what lies between rows in bytes; a row of
    /// B is one of words.
    pub const fn new(
        steps: usize,
        (a, a_row): (*const u8, isize),
        (b, b_row): (*const u8, usize),
    ) -> Stretch {
        let a_low = a.wrapping_offset(a_row.wrapping_mul(ROWS as isize));
        Stretch { steps, a, a_row, a_low, b, b_row, b_step: b_row.wrapping_mul(ROWS) }
    }
}

/// A block of C and what its sums are made of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    stretches: [Stretch; 2],
    c: *mut u8,
    c_row: isize,
    c_low: *mut u8,
    accumulate: usize,
}

impl Block {
    /// The sums of two stretches of k, in words at `c` with rows `c_row` bytes apart; added to what is there with `accumulate`.
    pub fn new(stretches: [Stretch; 2], c: *mut u8, c_row: isize, accumulate: bool) -> Block {
        let c_low = c.wrapping_offset(c_row.wrapping_mul(ROWS as isize));
        Block { stretches, c, c_row, c_low, accumulate: usize::from(accumulate) }
    }
}

/// A block of which `$two_rows` says whether it has more than 16 rows, `$two_columns` likewise.
macro_rules! kernel {
    ($name:ident, $multiply:literal, $rows:tt, $columns:tt) => {
        /// # Safety
        /// As for [`Tiles::multiply`].
        unsafe fn $name(block: &Block) {
            // SAFETY: the caller's promise. No other code uses the registers of tiles.
            unsafe {
                asm!(
                    "mov {c}, [{block} + 112]",
                    "mov {c_row}, [{block} + 120]",
                    "mov {c_low}, [{block} + 128]",
                    "cmp qword ptr [{block} + 136], 0",
                    "je 2f",
                    "tileloadd tmm0, [{c} + {c_row}]",
                    second!($columns "tileloadd tmm1, [{c} + {c_row} + 64]"),
                    second!($rows "tileloadd tmm2, [{c_low} + {c_row}]"),
                    both!($rows $columns "tileloadd tmm3, [{c_low} + {c_row} + 64]"),
                    "jmp 3f",
                    "2:",
                    "tilezero tmm0",
                    second!($columns "tilezero tmm1"),
                    second!($rows "tilezero tmm2"),
                    both!($rows $columns "tilezero tmm3"),
                    "3:",
                    "mov {left:e}, 2",
                    "4:",
                    "mov {steps}, [{block}]",
                    "mov {a}, [{block} + 8]",
                    "mov {a_row}, [{block} + 16]",
                    "mov {a_low}, [{block} + 24]",
                    "mov {b}, [{block} + 32]",
                    "mov {b_row}, [{block} + 40]",
                    "test {steps}, {steps}",
                    "jz 6f",
                    "5:",
                    "tileloadd tmm6, [{b} + {b_row}]",
                    "tileloadd tmm4, [{a} + {a_row}]",
                    concat!($multiply, " tmm0, tmm4, tmm6"),
                    second!($columns "tileloadd tmm7, [{b} + {b_row} + 64]"),
                    second!($columns concat!($multiply, " tmm1, tmm4, tmm7")),
                    second!($rows "tileloadd tmm5, [{a_low} + {a_row}]"),
                    second!($rows concat!($multiply, " tmm2, tmm5, tmm6")),
                    both!($rows $columns concat!($multiply, " tmm3, tmm5, tmm7")),
                    "add {a}, 64",
                    "add {a_low}, 64",
                    "add {b}, [{block} + 48]",
                    "dec {steps}",
                    "jnz 5b",
                    "6:",
                    "add {block}, 56",
                    "dec {left:e}",
                    "jnz 4b",
                    "tilestored [{c} + {c_row}], tmm0",
                    second!($columns "tilestored [{c} + {c_row} + 64], tmm1"),
                    second!($rows "tilestored [{c_low} + {c_row}], tmm2"),
                    both!($rows $columns "tilestored [{c_low} + {c_row} + 64], tmm3"),
                    block = inout(reg) block => _,
                    left = out(reg) _,
                    steps = out(reg) _,
                    a = out(reg) _,
                    a_row = out(reg) _,
                    a_low = out(reg) _,
                    b = out(reg) _,
                    b_row = out(reg) _,
                    c = out(reg) _,
                    c_row = out(reg) _,
                    c_low = out(reg) _,
                    options(nostack),
                );
            }
        }
    };
}

/// As [`kernel`], of no more than 16 rows by 64 columns: lines of B are read one after the other.
macro_rules! wide {
    ($name:ident, $multiply:literal) => {
        /// # Safety
        /// As for [`Tiles::multiply`].
        unsafe fn $name(block: &Block) {
            // SAFETY: the caller's promise. No other code uses the registers of tiles.
            unsafe {
                asm!(
                    "mov {c}, [{block} + 112]",
                    "mov {c_row}, [{block} + 120]",
                    "cmp qword ptr [{block} + 136], 0",
                    "je 2f",
                    "tileloadd tmm0, [{c} + {c_row}]",
                    "tileloadd tmm1, [{c} + {c_row} + 64]",
                    "tileloadd tmm2, [{c} + {c_row} + 128]",
                    "tileloadd tmm3, [{c} + {c_row} + 192]",
                    "jmp 3f",
                    "2:",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "3:",
                    "mov {left:e}, 2",
                    "4:",
                    "mov {steps}, [{block}]",
                    "mov {a}, [{block} + 8]",
                    "mov {a_row}, [{block} + 16]",
                    "mov {b}, [{block} + 32]",
                    "mov {b_row}, [{block} + 40]",
                    "test {steps}, {steps}",
                    "jz 6f",
                    "5:",
                    "tileloadd tmm4, [{a} + {a_row}]",
                    "tileloadd tmm5, [{b} + {b_row}]",
                    "tileloadd tmm6, [{b} + {b_row} + 64]",
                    concat!($multiply, " tmm0, tmm4, tmm5"),
                    "tileloadd tmm7, [{b} + {b_row} + 128]",
                    concat!($multiply, " tmm1, tmm4, tmm6"),
                    "tileloadd tmm5, [{b} + {b_row} + 192]",
                    concat!($multiply, " tmm2, tmm4, tmm7"),
                    concat!($multiply, " tmm3, tmm4, tmm5"),
                    "add {a}, 64",
                    "add {b}, [{block} + 48]",
                    "dec {steps}",
                    "jnz 5b",
                    "6:",
                    "add {block}, 56",
                    "dec {left:e}",
                    "jnz 4b",
                    "tilestored [{c} + {c_row}], tmm0",
                    "tilestored [{c} + {c_row} + 64], tmm1",
                    "tilestored [{c} + {c_row} + 128], tmm2",
                    "tilestored [{c} + {c_row} + 192], tmm3",
                    block = inout(reg) block => _,
                    left = out(reg) _,
                    steps = out(reg) _,
                    a = out(reg) _,
                    a_row = out(reg) _,
                    b = out(reg) _,
                    b_row = out(reg) _,
                    c = out(reg) _,
                    c_row = out(reg) _,
                    options(nostack),
                );
            }
        }
    };
}

/// An instruction for the second half of the rows or columns, where there is one.
macro_rules! second {
    (one $($text:tt)*) => {
        ""
    };
    (two $text:literal) => {
        $text
    };
    (two $($text:tt)*) => {
        $($text)*
    };
}

/// An instruction for the second halves of both.
macro_rules! both {
    (two two $($text:tt)*) => {
        $($text)*
    };
    ($rows:tt $columns:tt $($text:tt)*) => {
        ""
    };
}

type KernelFn = unsafe fn(&Block);

/// The kernels of a kind, by whether there are more than 16 rows, then by whether there are 16 columns, 32 or 64.
macro_rules! kernels {
    ($module:ident, $multiply:literal) => {
        mod $module {
            use super::{Block, KernelFn, asm};

            kernel!(one_one, $multiply, one, one);
            kernel!(one_two, $multiply, one, two);
            kernel!(two_one, $multiply, two, one);
            kernel!(two_two, $multiply, two, two);
            wide!(one_four, $multiply);
            pub static TABLE: [&[KernelFn]; 2] =
                [&[one_one, one_two, one_four], &[two_one, two_two]];
        }
    };
}

kernels!(bfloat16, "tdpbf16ps");
kernels!(unsigned, "tdpbusd");
kernels!(signed, "tdpbssd");

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
        if self.rows != rows {
            let configuration = Configuration::new(rows);
            // SAFETY: the configuration is one of palette 1; `new` says that the registers may be used.
            unsafe {
                asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, readonly));
            }
            self.rows = rows;
        }
        let table = match kind {
            Kind::BFloat16 => &bfloat16::TABLE,
            Kind::Unsigned => &unsigned::TABLE,
            Kind::Signed => &signed::TABLE,
        };
        let kernel = table[usize::from(rows > ROWS)][(columns / COLUMNS).ilog2() as usize];
        // SAFETY: the caller's promise; the registers are configured for these rows.
        unsafe { kernel(block) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_cover_the_columns() {
        let all = |columns, rows| strips(columns, rows).collect::<Vec<_>>();
        assert_eq!(all(0, 1), []);
        assert_eq!(all(1, 1), [(0, 16)]);
        assert_eq!(all(64, 16), [(0, 64)]);
        assert_eq!(all(64, 17), [(0, 32), (32, 32)]);
        assert_eq!(all(48, 16), [(0, 32), (32, 16)]);
        assert_eq!(all(33, 32), [(0, 32), (32, 16)]);
    }
}
