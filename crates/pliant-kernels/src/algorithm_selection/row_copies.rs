//! Rules for copying rows of A.

use crate::matmul::micro_kernel::LINE;

/// Distance in bytes between addresses that map to the same set of a first-level cache: 64 sets of one line each. All current
/// x86-64 cores have 64 sets, because the bits of an address within a page select the set.
const SET_STRIDE: usize = 64 * LINE;
/// Minimum number of panels of B for which rows of A are copied, since each panel reads the rows
/// again. This value was not measured separately. Copying takes about as long as one pass over the
/// rows.
const MIN_PANELS: usize = 4;
/// Minimum number of rows of A for which rows are copied: more than twice the associativity of the
/// first-level cache. This value was not measured.
const MIN_ROWS: usize = 24;

/// Whether copying rows of A with a stride of `row_stride` bytes for `panels` panels is faster than
/// reading them in place. The speedup by copying is 1.05 to 1.14 at 2048 x 2048 x 2048 with one and
/// two threads, and 1.01 to 1.06 at 512 x 1024 x 1024 and 1024 x 1024 x 1024. There is no speedup
/// at 512 x 768 x 3072, nor for 24 to 96 rows by 1024 x 1024. Rows whose stride is not a multiple
/// of 4 KB are not copied.
pub const fn is_faster(row_stride: usize, rows: usize, panels: usize) -> bool {
    panels >= MIN_PANELS
        && rows >= MIN_ROWS
        && row_stride != 0
        && row_stride.is_multiple_of(SET_STRIDE)
}
