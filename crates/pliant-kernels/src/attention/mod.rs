//! Scaled dot-product attention of float32: `softmax(scale * Q K^T) V`, with optional cap, bias and
//! mask.
//!
//! Method: a work item is one key head of one batch element. Its rows are the queries of all query
//! heads that share the key head. Keys are packed into panels once per item, by transposing blocks
//! in registers. Queries are read in place. For a block of rows, the matmul kernel computes all
//! scores into scratch memory, softmax runs in place, and the matmul kernel multiplies the weights
//! by the values. Values are read in place, or packed if there are many with a large stride. The
//! results are divided by the sums of the exponentials at the end. If the scores of a block exceed
//! the second-level cache ([`full_keys`]), the block iterates over blocks of keys with a running
//! maximum and sum, so that scratch memory does not grow with the keys. A few rows, as in decoding,
//! use dot products with the keys in place. Keys that the masks hide from all rows of a block are
//! not read.
//!
//! [`crate::algorithm_selection::attention`] decides which of these runs. For measurements, see
//! "Attention" in `docs/internals/measurements/attention.md`, which also states the gains from
//! packing values and from skipping weights of 0.
//!
//! | module | owns |
//! |---|---|
//! | `query_key_blocks` | the loops over the blocks of an item |
//! | `block_sizes` | sizes of the blocks of a piece, and its scratch memory |
//! | `score_softmax` | softmax of rows of scores, with scale, cap, bias and mask |
//! | `pv_matmul` | the product of the weights and the values |
//! | `score_dot_products` | scores of a few rows, by dot products |
//! | `entry_point` | the declared kernel |

mod block_sizes;
mod entry_point;
mod pv_matmul;
mod query_key_blocks;
mod score_dot_products;
mod score_softmax;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

pub use crate::algorithm_selection::attention::full_keys;
use crate::algorithm_selection::attention::{EXP_PRODUCTS, MIN_PIECE_ROWS};
use crate::algorithm_selection::partition::MEMORY_BOUND_ROWS;
use crate::matmul::Element;
use crate::matmul::micro_kernel::MicroKernels;
use crate::matmul::work_partition::{even_part, parallel_for, pieces, unit_work};
use crate::simd::for_isa;
pub use entry_point::ScaledDotProduct;
use pliant_machine::isa::Isa;
use pv_matmul::{FiniteCheck, check_finite};
use query_key_blocks::Piece;
use score_dot_products::{Dots, dots};
use score_softmax::{ScoreBlock, finish_rows, softmax_rows};

/// The choices for the result of a query whose scores are all minus infinity (all keys masked), in
/// the order of the choices of the attribute `fully_masked`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullyMasked {
    /// The result is 0 if all scores are minus infinity.
    Zeros,
    /// The result is NaN if all scores are minus infinity, as softmax defines. Without any keys,
    /// the result is 0, the empty sum.
    Nan,
    /// The result is 0 if all scores are minus infinity, or if the softmax weights are NaN because
    /// a score is NaN or plus infinity.
    ZerosForNan,
}

/// The address and strides of a tensor `[batch, heads, rows, size]`. Strides count elements; the elements of a row are contiguous.
#[derive(Clone, Copy, Debug)]
pub struct Heads<P> {
    /// The address of the first element of the tensor.
    pub data: P,
    /// The stride between batch elements, in elements.
    pub batch: i64,
    /// The stride between heads, in elements.
    pub head: i64,
    /// The stride between rows, in elements.
    pub row: i64,
}

/// The address and strides of a tensor `[batch, query heads, queries, keys]`. Strides count elements; a stride of 0 broadcasts.
#[derive(Clone, Copy, Debug)]
pub struct Scores<T> {
    /// The address of the first element of the tensor.
    pub data: *const T,
    /// The stride between batch elements, in elements.
    pub batch: i64,
    /// The stride between query heads, in elements.
    pub head: i64,
    /// The stride between queries, in elements.
    pub row: i64,
    /// The stride between keys, in elements.
    pub column: i64,
}

/// The arguments of scaled dot-product attention.
///
/// A score is `cap(scale * (q . k)) + bias`, where `cap(x)` is `cap * tanh(x / cap)`. The score is
/// [`Attention::masked_score`] if the mask hides the key, and minus infinity if the key is outside
/// of the causal window. [`Attention::fully_masked`] is the result of a query whose scores are all
/// minus infinity. Otherwise, NaN propagates. With [`FullyMasked::Zeros`], a bias of minus infinity
/// also hides NaN, so a query whose keys are all hidden gets zeros even if keys are NaN.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Batch size (number of independent sets of heads).
    pub batch: i64,
    /// Number of query heads, a multiple of `kv_heads`.
    pub heads: i64,
    /// Number of heads of keys and values. Query head `h` uses key head `h / (heads / kv_heads)`.
    pub kv_heads: i64,
    /// Number of queries of a head.
    pub queries: i64,
    /// Number of keys and values of a head.
    pub keys: i64,
    /// The head size: the number of elements of one query or key vector.
    pub size: i64,
    /// The number of elements of a value vector and of a result vector.
    pub value_size: i64,
    /// The query tensor Q: address and strides.
    pub q: Heads<*const f32>,
    /// The key tensor K: address and strides.
    pub k: Heads<*const f32>,
    /// The value tensor V: address and strides.
    pub v: Heads<*const f32>,
    /// The result tensor. It must not overlap an operand.
    pub out: Heads<*mut f32>,
    /// The factor by which the dot products of queries and keys are multiplied.
    pub scale: f64,
    /// The soft cap of the scores, which limits their magnitude; 0 for none.
    pub cap: f64,
    /// The bias, a tensor that is added to the scores; `None` for no bias.
    pub bias: Option<Scores<f32>>,
    /// For each query and key, a byte that is 0 if the mask hides the key from the query.
    pub mask: Option<Scores<u8>>,
    /// The score of a key that the mask hides, usually minus infinity.
    pub masked_score: f64,
    /// Whether the bias is added after masking instead of before.
    pub mask_before_bias: bool,
    /// Whether query `i` attends only to the keys up to index `i + offset`.
    pub causal: bool,
    /// The position of the first query among the keys: 0, or the number of cached keys that precede
    /// it.
    pub offset: i64,
    /// The maximum number of keys that a query attends to if `causal` is set: the last keys up to
    /// and including the position of the query. 0 for no limit.
    pub window: i64,
    /// The result of a query whose scores are all minus infinity.
    pub fully_masked: FullyMasked,
}

/// The functions that compute attention, compiled for one instruction set.
struct Ops {
    kernels: &'static MicroKernels<f32>,
    softmax: unsafe fn(&mut ScoreBlock<'_>),
    finish: unsafe fn(&ScoreBlock<'_>, *mut f32, isize, usize, bool),
    dots: unsafe fn(&Dots),
    finite: unsafe fn(&mut FiniteCheck),
}

impl Ops {
    fn new(isa: Isa) -> Ops {
        Ops {
            kernels: f32::kernels(isa),
            softmax: for_isa!(isa, softmax_rows(block: &mut ScoreBlock<'_>)).0,
            finish: for_isa!(
                isa,
                finish_rows(block: &ScoreBlock<'_>, out: *mut f32, stride: isize, columns: usize, last: bool)
            )
            .0,
            dots: for_isa!(isa, dots(d: &Dots)).0,
            finite: for_isa!(isa, check_finite(values: &mut FiniteCheck)).0,
        }
    }
}

/// The checked sizes of an attention call. A group consists of the query heads that share a key head.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    kv_heads: usize,
    group: usize,
    queries: usize,
    keys: usize,
    size: usize,
    value_size: usize,
}

impl Sizes {
    /// Checks the sizes of the arguments; `None` if they are invalid.
    fn of(a: &Attention) -> Option<Sizes> {
        let to_usize = |d: i64| usize::try_from(d).ok();
        let (heads, kv_heads) = (to_usize(a.heads)?, to_usize(a.kv_heads)?);
        let group = if heads == 0 { 0 } else { heads.checked_div(kv_heads)? };
        let sizes = Sizes {
            batch: to_usize(a.batch)?,
            kv_heads,
            group,
            queries: to_usize(a.queries)?,
            keys: to_usize(a.keys)?,
            size: to_usize(a.size)?,
            value_size: to_usize(a.value_size)?,
        };
        let divides = heads == group.checked_mul(kv_heads)?;
        let rows = sizes.rows_checked()?;
        (divides && rows.checked_mul(sizes.keys.max(1)).is_some()).then_some(sizes)
    }

    fn rows_checked(&self) -> Option<usize> {
        self.group.checked_mul(self.queries)
    }

    /// The number of rows of a work item: the queries of all query heads that share a key head.
    fn rows(&self) -> usize {
        self.group * self.queries
    }
}

/// Computes attention with the given instruction set. Returns a kernel status: 0 on success.
///
/// # Safety
/// The machine has `isa`. The runtime is valid; all addressed elements are valid; the results overlap no operand.
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, a: &Attention) -> i64 {
    let Some(s) = Sizes::of(a) else { return STATUS_BAD_ARGUMENTS };
    let Some(items) = s.batch.checked_mul(s.kv_heads) else { return STATUS_BAD_ARGUMENTS };
    if items == 0 || s.rows() == 0 || s.value_size == 0 {
        return STATUS_OK;
    }
    let work_per_score = s.size.saturating_add(s.value_size).saturating_add(EXP_PRODUCTS);
    let work =
        s.rows().max(MEMORY_BOUND_ROWS).saturating_mul(s.keys).saturating_mul(work_per_score);
    let units = work / unit_work();
    let max_chunks = s.rows().div_ceil(MIN_PIECE_ROWS);
    let chunks = pieces().div_ceil(items).min(max_chunks).min(units.max(1));
    let ops = Ops::new(isa);
    let run = |index: usize| {
        let (item, chunk) = (index / chunks, index % chunks);
        let rows = even_part(s.rows(), 6, chunk, chunks);
        let (batch, kv_head) = (item / s.kv_heads, item % s.kv_heads);
        // SAFETY: guaranteed by the caller; pieces write disjoint rows.
        unsafe { Piece { a, s, ops: &ops, batch, kv_head, rows }.run(runtime) }
    };
    // SAFETY: guaranteed by the caller; the kernels do not unwind.
    unsafe { parallel_for(runtime, items.saturating_mul(chunks), units / chunks, &run) }
}
