//! Attention of float32: softmax of the scaled products of queries and keys, which weighs the values.
//!
//! Recipe: a work item is a batch and a head of the keys; the query heads that share it are its rows. Keys are packed into
//! panels by turning blocks within the registers, once for an item; queries are read in place. A block of rows gets all its
//! scores by the product kernel into scratch memory, softmax in place, and its results by the product kernel again, with
//! values read in place, or packed where they are many and far apart; they are divided by the sums on the way out. Where
//! the scores of a block no longer fit the second-level cache ([`FULL_KEYS`]), blocks of keys follow each other with a
//! running maximum and sum, so that scratch memory does not grow with the keys. A few rows, as in decoding, take dot
//! products with the keys in place instead. Keys that no row of a block sees are not touched.
//!
//! Which of these runs says [`crate::rules::attention`]. Measured: "Attention" in `docs/performance.md`, with what values
//! packed and weights of 0 gained.
//!
//! | module | owns |
//! |---|---|
//! | `piece` | the blocks of one item |
//! | `cut` | the blocks of a piece, and their memory |
//! | `softmax` | the rows of scores: scale, cap, bias, mask, exponentials and sums |
//! | `weigh` | the products of the weights with the values |
//! | `few` | dot products of a few rows |
//! | `call` | the declared kernel |

mod call;
mod cut;
mod few;
mod piece;
mod softmax;
mod weigh;

use pliant_exec::abi::{KernelRuntime, STATUS_BAD_ARGUMENTS, STATUS_OK};

use crate::isa::{Isa, isa};
use crate::lanes::for_isa;
use crate::product::Element;
use crate::product::share::{PIECES, UNIT, part, share};
use crate::product::tile::Kernels;
pub use crate::rules::attention::FULL_KEYS;
use crate::rules::attention::{EXPONENTIAL, PIECE_ROWS};
use crate::rules::share::READ_ROWS;
pub use call::ScaledDotProduct;
use few::{Dots, dots};
use piece::{Piece, keys_of};
use softmax::{Rows, finish_rows, softmax_rows};
use weigh::{Finite, look};

/// Queries that see nothing get zeros.
pub const BLIND_ZEROS: i64 = 0;
/// They get NaN, as a softmax gives; of no keys at all the sum, which is 0.
pub const BLIND_NAN: i64 = 1;
/// They get zeros, and so do queries whose weights are NaN: those of which a score is NaN or plus infinity.
pub const NAN_ZEROS: i64 = 2;

/// Rows for each batch and head. Strides count elements; those of a row are neighbours.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Heads<P> {
    /// First element.
    pub data: P,
    /// From batch to batch.
    pub batch: i64,
    /// From head to head.
    pub head: i64,
    /// From row to row.
    pub row: i64,
}

/// A number for each batch, query head, query and key. Strides count elements, and are 0 where one number serves all.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Scores<T> {
    /// First element, or null.
    pub data: *const T,
    /// From batch to batch.
    pub batch: i64,
    /// From query head to query head.
    pub head: i64,
    /// From query to query.
    pub row: i64,
    /// From key to key.
    pub column: i64,
}

impl<T> Scores<T> {
    /// No numbers.
    pub const NONE: Scores<T> =
        Scores { data: std::ptr::null(), batch: 0, head: 0, row: 0, column: 0 };
}

/// One attention: 64-bit words, so that generated code may write them as an array.
///
/// A score is `cap(scale * (q . k)) + bias`, where `cap(x)` is `cap * tanh(x / cap)`; [`Attention::hidden`] where the mask says
/// no, and minus infinity where the key is not seen. A query all of whose scores are minus infinity gets what
/// [`Attention::blind`] says; NaN stays NaN but for that. With [`BLIND_ZEROS`] a bias of minus infinity hides NaN as well, so that
/// a query gets zeros whose keys are all hidden, whatever they are.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    /// Batches.
    pub batch: i64,
    /// Heads of the queries, a multiple of those of the keys.
    pub heads: i64,
    /// Heads of keys and values. Query head `h` has key head `h / (heads / kv_heads)`.
    pub kv_heads: i64,
    /// Queries of a head.
    pub queries: i64,
    /// Keys and values of a head.
    pub keys: i64,
    /// Elements of a query and of a key.
    pub size: i64,
    /// Elements of a value and of a result.
    pub value_size: i64,
    /// Queries.
    pub q: Heads<*const f32>,
    /// Keys.
    pub k: Heads<*const f32>,
    /// Values.
    pub v: Heads<*const f32>,
    /// Results, which overlap no operand.
    pub out: Heads<*mut f32>,
    /// Factor of the products.
    pub scale: f64,
    /// Limit of the scores; 0 for none.
    pub cap: f64,
    /// Added to the scores.
    pub bias: Scores<f32>,
    /// Whether a query sees a key: bytes, 0 for no.
    pub mask: Scores<u8>,
    /// What the mask makes of a score: mostly minus infinity.
    pub hidden: f64,
    /// Whether the bias is added to what the mask has made, rather than before.
    pub mask_first: i64,
    /// How many keys each batch has, at most `keys`; null where all have them all.
    pub lengths: *const i64,
    /// Whether query `i` sees keys up to number `i + offset` only.
    pub causal: i64,
    /// The key that the first query stands at: 0, or how many keys a cache holds before.
    pub offset: i64,
    /// With `causal`, how many keys a query sees, its own the last; 0 where it sees all before.
    pub window: i64,
    /// What a query gets all of whose scores are minus infinity: [`BLIND_ZEROS`], [`BLIND_NAN`] or [`NAN_ZEROS`].
    pub blind: i64,
}

/// The functions of an instruction set.
struct Ops {
    kernels: &'static Kernels<f32>,
    softmax: unsafe fn(&mut Rows<'_>),
    finish: unsafe fn(&Rows<'_>, *mut f32, isize, usize, bool),
    dots: unsafe fn(&Dots),
    finite: unsafe fn(&mut Finite),
}

impl Ops {
    fn new(isa: Isa) -> Ops {
        Ops {
            kernels: f32::kernels(isa),
            softmax: for_isa!(isa, softmax_rows(rows: &mut Rows<'_>)).0,
            finish: for_isa!(
                isa,
                finish_rows(rows: &Rows<'_>, out: *mut f32, stride: isize, columns: usize, last: bool)
            )
            .0,
            dots: for_isa!(isa, dots(d: &Dots)).0,
            finite: for_isa!(isa, look(values: &mut Finite)).0,
        }
    }
}

/// Sizes that have been checked.
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
    /// None where the structure makes no sense.
    fn of(a: &Attention) -> Option<Sizes> {
        let of = |d: i64| usize::try_from(d).ok();
        let (heads, kv_heads) = (of(a.heads)?, of(a.kv_heads)?);
        let group = if heads == 0 { 0 } else { heads.checked_div(kv_heads)? };
        let sizes = Sizes {
            batch: of(a.batch)?,
            kv_heads,
            group,
            queries: of(a.queries)?,
            keys: of(a.keys)?,
            size: of(a.size)?,
            value_size: of(a.value_size)?,
        };
        let even = heads == group.checked_mul(kv_heads)?;
        let rows = sizes.rows_checked()?;
        (even && rows.checked_mul(sizes.keys.max(1)).is_some()).then_some(sizes)
    }

    fn rows_checked(&self) -> Option<usize> {
        self.group.checked_mul(self.queries)
    }

    /// Rows of an item.
    fn rows(&self) -> usize {
        self.group * self.queries
    }
}

/// [`pliant_attention_f32`] with these instructions.
///
/// # Safety
/// The machine has `isa`; as for [`pliant_attention_f32`].
pub unsafe fn run(isa: Isa, runtime: &KernelRuntime, a: &Attention) -> i64 {
    let Some(s) = Sizes::of(a) else { return STATUS_BAD_ARGUMENTS };
    let Some(items) = s.batch.checked_mul(s.kv_heads) else { return STATUS_BAD_ARGUMENTS };
    if items == 0 || s.rows() == 0 || s.value_size == 0 {
        return STATUS_OK;
    }
    let each = s.size.saturating_add(s.value_size).saturating_add(EXPONENTIAL);
    let work = s.rows().max(READ_ROWS).saturating_mul(s.keys).saturating_mul(each);
    let units = work / UNIT;
    let most = s.rows().div_ceil(PIECE_ROWS);
    let chunks = PIECES.div_ceil(items).min(most).min(units.max(1));
    let ops = Ops::new(isa);
    let run = |index: usize| {
        let (item, chunk) = (index / chunks, index % chunks);
        let rows = part(s.rows(), 6, chunk, chunks);
        let (batch, kv_head) = (item / s.kv_heads, item % s.kv_heads);
        // SAFETY: the caller's promise; pieces write disjoint rows.
        unsafe {
            let keys = keys_of(a, &s, batch);
            Piece { a, s, ops: &ops, batch, kv_head, keys, rows }.run(runtime)
        }
    };
    // SAFETY: the caller's promise; the kernels do not unwind.
    unsafe { share(runtime, items.saturating_mul(chunks), units / chunks, &run) }
}

/// An attention, called by generated code with the address of its structure. Returns a kernel status.
///
/// # Safety
/// The runtime lives; all addressed elements are valid; the results overlap no operand.
pub unsafe extern "C" fn pliant_attention_f32(
    runtime: *const KernelRuntime,
    attention: *const Attention,
) -> i64 {
    // SAFETY: the caller's promise; the instructions are those of the machine.
    unsafe { run(isa(), &*runtime, &*attention) }
}
