//! The assembly kernels that multiply one block in tile registers, for each number of registers
//! along the block's rows and columns.

use std::arch::asm;
use std::mem::offset_of;

use super::{Kind, LINE, ROWS};

/// A range of the inner dimension (`k`) of a matrix product, divided into steps. A step covers
/// [`LINE`] bytes of every row of A.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KRange {
    steps: usize,
    a: *const u8,
    a_row: isize,
    /// The address of row 16 of A, which is the first row of the second tile register.
    a_low: *const u8,
    b: *const u8,
    b_row: usize,
    /// The distance in bytes between the first rows of B that two consecutive steps read.
    b_step: usize,
}

impl KRange {
    /// Creates a range of `steps` steps. The arguments are the addresses at which the first step
    /// reads A and B, and the strides of their rows in bytes. A row of B consists of 32-bit words.
    ///
    /// Inlined, because a copy of the range would wait for all stores before it: loads that are wider than the stores of the fields
    /// cannot be forwarded.
    #[inline(always)]
    pub const fn new(
        steps: usize,
        (a, a_row): (*const u8, isize),
        (b, b_row): (*const u8, usize),
    ) -> KRange {
        let a_low = a.wrapping_offset(a_row.wrapping_mul(ROWS as isize));
        KRange { steps, a, a_row, a_low, b, b_row, b_step: b_row.wrapping_mul(ROWS) }
    }
}

/// The operands of the matrix product of one block, and the destination of the results, which is a part of the result
/// matrix C.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Block {
    k_ranges: [KRange; 2],
    c: *mut u8,
    c_row: isize,
    c_low: *mut u8,
    accumulate: usize,
}

impl Block {
    /// Creates a block whose sums run over two ranges of the inner dimension `k`, for example the whole steps and the
    /// last step, whose operands are padded copies. The sums are stored as 32-bit words at `c`, with a row stride of
    /// `c_row` bytes. With `accumulate`, they are added to the contents of C.
    ///
    /// Inlined for the same reason as [`KRange::new`].
    #[inline(always)]
    pub fn new(k_ranges: [KRange; 2], c: *mut u8, c_row: isize, accumulate: bool) -> Block {
        let c_low = c.wrapping_offset(c_row.wrapping_mul(ROWS as isize));
        Block { k_ranges, c, c_row, c_low, accumulate: usize::from(accumulate) }
    }
}

/// Defines the assembly kernel for one block size. The arguments are the tile registers of the sums
/// with their addresses, and the instructions of one step. In the instructions, `a` and `a_low` are
/// the addresses of A, and `b` is the address of B.
macro_rules! kernel {
    ($name:ident, [$($sum:literal at $at:literal),*], [$($step:expr),* $(,)?]) => {
        /// Computes the product of one block of A and B.
        ///
        /// # Safety
        /// The conditions of [`super::super::TileRegisters::multiply`] hold.
        unsafe fn $name(block: &Block) {
            // SAFETY: guaranteed by the caller. No other code uses the tile registers.
            unsafe {
                asm!(
                    "mov {c}, [{block} + {c_at}]",
                    "mov {c_row}, [{block} + {c_row_at}]",
                    "mov {c_low}, [{block} + {c_low_at}]",
                    "cmp qword ptr [{block} + {accumulate_at}], 0",
                    "je 2f",
                    $(concat!("tileloadd ", $sum, ", [", $at, "]"),)*
                    "jmp 3f",
                    "2:",
                    $(concat!("tilezero ", $sum),)*
                    "3:",
                    "mov {left:e}, 2",
                    "4:",
                    "mov {steps}, [{block} + {steps_at}]",
                    "mov {a}, [{block} + {a_at}]",
                    "mov {a_row}, [{block} + {a_row_at}]",
                    "mov {a_low}, [{block} + {a_low_at}]",
                    "mov {b}, [{block} + {b_at}]",
                    "mov {b_row}, [{block} + {b_row_at}]",
                    "test {steps}, {steps}",
                    "jz 6f",
                    "5:",
                    $($step,)*
                    "add {a}, {line}",
                    "add {a_low}, {line}",
                    "add {b}, [{block} + {b_step_at}]",
                    "dec {steps}",
                    "jnz 5b",
                    "6:",
                    "add {block}, {k_range}",
                    "dec {left:e}",
                    "jnz 4b",
                    $(concat!("tilestored [", $at, "], ", $sum),)*
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
                    line = const LINE,
                    k_range = const size_of::<KRange>(),
                    steps_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, steps),
                    a_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, a),
                    a_row_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, a_row),
                    a_low_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, a_low),
                    b_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, b),
                    b_row_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, b_row),
                    b_step_at = const offset_of!(Block, k_ranges) + offset_of!(KRange, b_step),
                    c_at = const offset_of!(Block, c),
                    c_row_at = const offset_of!(Block, c_row),
                    c_low_at = const offset_of!(Block, c_low),
                    accumulate_at = const offset_of!(Block, accumulate),
                    options(nostack),
                );
            }
        }
    };
}

type KernelFn = unsafe fn(&Block);

/// The assembly kernels for one pair of operand types.
pub(super) struct Kernels {
    /// The kernels by block size. The first index is 1 if the block has more than 16 rows,
    /// otherwise 0. The second index is 0, 1 or 2 for 16, 32 or 64 columns.
    pub table: [&'static [KernelFn]; 2],
    /// Multiplies the contents of tile registers without memory accesses, with four multiplications per step, to
    /// measure the peak rate.
    pub repeat: unsafe fn(usize),
}

macro_rules! kernels {
    ($module:ident, $multiply:literal) => {
        mod $module {
            use super::*;

            kernel!(one_one, ["tmm0" at "{c} + {c_row}"], [
                "tileloadd tmm6, [{b} + {b_row}]",
                "tileloadd tmm4, [{a} + {a_row}]",
                concat!($multiply, " tmm0, tmm4, tmm6"),
            ]);
            kernel!(one_two, ["tmm0" at "{c} + {c_row}", "tmm1" at "{c} + {c_row} + 64"], [
                "tileloadd tmm6, [{b} + {b_row}]",
                "tileloadd tmm4, [{a} + {a_row}]",
                concat!($multiply, " tmm0, tmm4, tmm6"),
                "tileloadd tmm7, [{b} + {b_row} + 64]",
                concat!($multiply, " tmm1, tmm4, tmm7"),
            ]);
            kernel!(two_one, ["tmm0" at "{c} + {c_row}", "tmm2" at "{c_low} + {c_row}"], [
                "tileloadd tmm6, [{b} + {b_row}]",
                "tileloadd tmm4, [{a} + {a_row}]",
                concat!($multiply, " tmm0, tmm4, tmm6"),
                "tileloadd tmm5, [{a_low} + {a_row}]",
                concat!($multiply, " tmm2, tmm5, tmm6"),
            ]);
            kernel!(two_two, [
                "tmm0" at "{c} + {c_row}",
                "tmm1" at "{c} + {c_row} + 64",
                "tmm2" at "{c_low} + {c_row}",
                "tmm3" at "{c_low} + {c_row} + 64"
            ], [
                "tileloadd tmm6, [{b} + {b_row}]",
                "tileloadd tmm4, [{a} + {a_row}]",
                concat!($multiply, " tmm0, tmm4, tmm6"),
                "tileloadd tmm7, [{b} + {b_row} + 64]",
                concat!($multiply, " tmm1, tmm4, tmm7"),
                "tileloadd tmm5, [{a_low} + {a_row}]",
                concat!($multiply, " tmm2, tmm5, tmm6"),
                concat!($multiply, " tmm3, tmm5, tmm7"),
            ]);
            // Lines of B are read in sequence.
            kernel!(one_four, [
                "tmm0" at "{c} + {c_row}",
                "tmm1" at "{c} + {c_row} + 64",
                "tmm2" at "{c} + {c_row} + 128",
                "tmm3" at "{c} + {c_row} + 192"
            ], [
                "tileloadd tmm4, [{a} + {a_row}]",
                "tileloadd tmm5, [{b} + {b_row}]",
                "tileloadd tmm6, [{b} + {b_row} + 64]",
                concat!($multiply, " tmm0, tmm4, tmm5"),
                "tileloadd tmm7, [{b} + {b_row} + 128]",
                concat!($multiply, " tmm1, tmm4, tmm6"),
                "tileloadd tmm5, [{b} + {b_row} + 192]",
                concat!($multiply, " tmm2, tmm4, tmm7"),
                concat!($multiply, " tmm3, tmm4, tmm5"),
            ]);

            /// Multiplies the contents of tile registers, four times per step.
            ///
            /// # Safety
            /// The conditions of [`super::super::TileRegisters::repeat`] hold.
            unsafe fn repeat(steps: usize) {
                // SAFETY: guaranteed by the caller. No other code uses the tile registers.
                unsafe {
                    asm!(
                        "2:",
                        concat!($multiply, " tmm0, tmm4, tmm6"),
                        concat!($multiply, " tmm1, tmm4, tmm7"),
                        concat!($multiply, " tmm2, tmm5, tmm6"),
                        concat!($multiply, " tmm3, tmm5, tmm7"),
                        "dec {steps}",
                        "jnz 2b",
                        steps = inout(reg) steps.max(1) => _,
                        options(nostack, nomem),
                    );
                }
            }

            pub static KERNELS: Kernels = Kernels {
                table: [&[one_one, one_two, one_four], &[two_one, two_two]],
                repeat,
            };
        }
    };
}

kernels!(bfloat16, "tdpbf16ps");
kernels!(unsigned, "tdpbusd");
kernels!(signed, "tdpbssd");

/// Returns the assembly kernels for one pair of operand types.
pub(super) fn kernels(kind: Kind) -> &'static Kernels {
    match kind {
        Kind::BFloat16 => &bfloat16::KERNELS,
        Kind::Unsigned => &unsigned::KERNELS,
        Kind::Signed => &signed::KERNELS,
    }
}
