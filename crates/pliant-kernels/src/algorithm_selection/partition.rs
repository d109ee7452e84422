//! Rules for the division of work into pieces for the worker team.

use pliant_machine::Machine;

pub use pliant_machine::cost_model::MAX_PIECES;

/// Number of multiply-adds that one thread computes per microsecond, the unit of work for the
/// worker team. With a second thread, a loop of 1 us becomes 1.05 times as fast and a loop of 2 us
/// 1.33 times as fast, but a loop of 0.5 us becomes slower (table "The worker team").
pub fn unit_work() -> usize {
    Machine::host().rates.multiply_adds
}

/// Number of elements that a thread copies per microsecond, from which the time of kernels that are
/// limited by memory is estimated: pooling, packing, lookups and copies of inputs.
pub fn copied_unit() -> usize {
    Machine::host().rates.copied
}

/// The number of pieces into which a kernel divides a large amount of work for the threads of the worker team.
pub fn pieces() -> usize {
    Machine::host().pieces()
}

/// Minimum duration of a piece of work in microseconds, if the work is divided into more than
/// [`pieces`] pieces. This value was not measured. Distributing a piece takes 0.4 us (table "The
/// worker team"), which is negligible.
pub const MIN_PIECE_UNITS: usize = 64;
/// Minimum number of rows of a block, if a matrix product is divided by rows. The rows of a block share the reads of B.
/// Blocks of 48 rows are 10 to 15 % slower.
pub const MIN_BLOCK_ROWS: usize = 96;
/// Number of rows of A up to which a matrix product is memory-bound: reading B takes as long as the
/// multiplications. The cost estimate of a product with fewer rows assumes this number. One to four
/// rows of 1024 x 1024 take 133 to 135 us with one thread, seven take 141 (table "Products with
/// packed weights").
pub const MEMORY_BOUND_ROWS: usize = 4;

/// Whether the work of a matrix product with `m` rows is divided among threads by rows of A, instead of by panels (groups of
/// columns) of B. It is divided by rows if the rows fill two blocks of [`MIN_BLOCK_ROWS`]. With two threads, 256 rows divided by
/// rows reach 96 to 97 % of the peak, and 64 rows divided by panels reach 95 to 96 % (table "Products with packed weights").
pub const fn cuts_rows_first(m: usize) -> bool {
    m >= 2 * MIN_BLOCK_ROWS
}

/// Whether a division of a matrix product by panels (groups of columns of B) gives equal numbers of panels to all threads, so that
/// its rows need not be divided as well. The rule was measured only for few rows and six panels, which reach 53 to 76 % of the peak
/// with two threads (table "Products with packed weights").
pub fn panels_suffice(panels: usize) -> bool {
    panels >= pieces() / 2 && panels.is_multiple_of(pieces() / 4)
}
