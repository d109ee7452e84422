//! The epilogue of common layers: scale, bias, residual, activation, residual, cast.
//!
//! `activation(x * scale * column_scale[j] + bias[j] + before[i, j]) + after[i, j]`, with the
//! widest vectors; each value is loaded and stored once. Casts use a row of the tile, which is in
//! the first-level cache, as a buffer.
//!
//! Recipe: one pass over a tile directly after its product. Measured: the gain of finishing
//! products in place is under "Under the compiler" in `docs/performance.md`; this function was not
//! measured separately.

use std::ffi::c_void;
use std::ptr::null;

use pliant_exec::abi::{STATUS_BAD_ARGUMENTS, STATUS_OK};

use super::{ClipEpilogue, EpilogueTile, Place};
use crate::lanes::{MathLanes, for_isa, load};
use crate::math::{self, MathOps};
use crate::vector::half::{narrow, narrow_bf16};
use crate::vector::wide::Wide;
use pliant_machine::isa::{Isa, isa};

/// The function applied to each value.
#[repr(i64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The identity.
    None = 0,
    /// The maximum of the value and 0; NaN propagates.
    Relu = 1,
    /// The value clipped to two limits; NaN propagates.
    Clip = 2,
    /// `x * (1 + erf(x / sqrt 2)) / 2`.
    Gelu = 3,
    /// The `tanh` approximation of GELU.
    GeluTanh = 4,
    /// `x * sigmoid(x)`.
    Silu = 5,
    /// The logistic function.
    Sigmoid = 6,
    /// Hyperbolic tangent.
    Tanh = 7,
    /// `x * clip(slope * x + offset, low, high)`.
    HardSwish = 8,
    /// `clip(slope * x + offset, low, high)`.
    HardSigmoid = 9,
    /// The value if it is positive, otherwise `slope * x`.
    LeakyRelu = 10,
}

impl Activation {
    /// Whether a vector of values takes more than a few instructions.
    fn is_costly(self) -> bool {
        use Activation::*;
        matches!(self, Gelu | GeluTanh | Silu | Sigmoid | Tanh)
    }

    /// Every activation, by its number.
    pub const ALL: [Activation; 11] = {
        use Activation::*;
        [None, Relu, Clip, Gelu, GeluTanh, Silu, Sigmoid, Tanh, HardSwish, HardSigmoid, LeakyRelu]
    };
}

/// A matrix of the size of the results, for each product of the batch, with contiguous columns.
/// Strides count elements; a stride of 0 broadcasts.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    /// The first element; null if absent.
    pub data: *const f32,
    /// The product stride.
    pub batch: i64,
    /// The row stride.
    pub row: i64,
}

impl Matrix {
    /// Absent.
    pub const NONE: Matrix = Matrix { data: null(), batch: 0, row: 0 };

    /// The address of the element at a position; null if the matrix is absent.
    pub(super) fn at(&self, place: Place) -> *const f32 {
        if self.data.is_null() {
            return null();
        }
        let (batch, row) = (place.batch as i64, place.row as i64);
        let offset = batch.wrapping_mul(self.batch).wrapping_add(row.wrapping_mul(self.row));
        self.data.wrapping_offset(offset as isize).wrapping_add(place.column)
    }
}

/// The types that results are cast to, by their number in [`Standard::out_type`].
#[repr(i64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutType {
    /// float32.
    F32 = 0,
    /// float16.
    F16 = 1,
    /// bfloat16.
    Bf16 = 2,
}

/// The operands of [`pliant_epilogue_f32`]: 64-bit words, so that generated code can write them as
/// an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Standard {
    /// Factor of all results.
    pub scale: f64,
    /// A factor for each column of the product, or null.
    pub column_scale: *const f32,
    /// A term for each column of the product, or null.
    pub bias: *const f32,
    /// A term added before the activation.
    pub before: Matrix,
    /// Number of the [`Activation`].
    pub activation: i64,
    /// Lower limit of the activations that clip.
    pub low: f64,
    /// Upper limit of the activations that clip.
    pub high: f64,
    /// The slope of the activations that have one.
    pub slope: f64,
    /// The offset of the activations that have one.
    pub offset: f64,
    /// A term added after the activation.
    pub after: Matrix,
    /// The destination of the results; null for in place. It must not overlap the product's
    /// operands.
    pub out: *mut c_void,
    /// The product stride of `out`.
    pub out_batch: i64,
    /// The row stride of `out`.
    pub out_row: i64,
    /// Number of the [`OutType`].
    pub out_type: i64,
}

impl Default for Standard {
    fn default() -> Standard {
        Standard {
            scale: 1.0,
            column_scale: null(),
            bias: null(),
            before: Matrix::NONE,
            activation: Activation::None as i64,
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            slope: 1.0,
            offset: 0.0,
            after: Matrix::NONE,
            out: std::ptr::null_mut(),
            out_batch: 0,
            out_row: 0,
            out_type: OutType::F32 as i64,
        }
    }
}

/// [`super::EpilogueFn`] with a [`Standard`], for products that sum in float32.
///
/// # Safety
/// `operands` points to a [`Standard`] whose memory covers the product's columns, rows and
/// products; the tile is as for [`super::EpilogueFn`].
pub unsafe extern "C" fn pliant_epilogue_f32(
    operands: *const c_void,
    tile: *const EpilogueTile,
) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { with(isa(), &*operands.cast::<Standard>(), &*tile) }
}

/// [`pliant_epilogue_f32`] with the given instruction set.
///
/// # Safety
/// The machine has `isa`; as for [`pliant_epilogue_f32`].
pub unsafe fn with(isa: Isa, standard: &Standard, tile: &EpilogueTile) -> i64 {
    let known = Activation::ALL.iter().any(|&a| a as i64 == standard.activation);
    if !known || !(0..=2).contains(&standard.out_type) {
        return STATUS_BAD_ARGUMENTS;
    }
    if let Some(clip) = ClipEpilogue::of(standard) {
        // SAFETY: guaranteed by the caller.
        unsafe { clip.at(tile.place()).finish(isa, tile) };
        return STATUS_OK;
    }
    let (run, lanes) = for_isa!(isa, each_row(isa: Isa, standard: &Standard, tile: &EpilogueTile));
    let plain = [standard.before.data, standard.after.data].iter().all(|data| data.is_null());
    let narrow = 2 * tile.columns <= lanes as i64 && tile.rows >= MIN_ROWS;
    let costly = Activation::ALL[standard.activation as usize].is_costly();
    // SAFETY: guaranteed by the caller.
    unsafe {
        if plain && standard.out.is_null() && narrow && costly {
            in_one_row(standard, tile, &|s, row| run(isa, s, row));
        } else {
            run(isa, standard, tile);
        }
    }
    STATUS_OK
}

/// Rows from which [`in_one_row`] pays. Tiles of packed products have fewer.
const MIN_ROWS: i64 = 16;
/// Elements of the buffer of [`in_one_row`].
const ROW: usize = 256;

/// Finishes the rows of a narrow tile as one row after another of a buffer, where the factors and terms of the columns repeat. An
/// activation that takes many instructions would compute nearly empty vectors in rows of a few columns.
///
/// # Safety
/// As for [`with`]; the operands are factors and terms of columns only.
unsafe fn in_one_row(s: &Standard, tile: &EpilogueTile, run: &dyn Fn(&Standard, &EpilogueTile)) {
    let columns = tile.columns.max(0) as usize;
    if columns == 0 {
        return;
    }
    let rows = ROW / columns;
    let repeated = |of_columns: *const f32, to: &mut [f32; ROW]| {
        if of_columns.is_null() {
            return null();
        }
        let first = of_columns.wrapping_offset(tile.column as isize);
        for (i, value) in to.iter_mut().enumerate().take(rows * columns) {
            // SAFETY: guaranteed by the caller for the columns of the tile.
            *value = unsafe { *first.add(i % columns) };
        }
        to.as_ptr()
    };
    let (mut scales, mut terms, mut values) = ([0f32; ROW], [0f32; ROW], [0f32; ROW]);
    let (column_scale, bias) =
        (repeated(s.column_scale, &mut scales), repeated(s.bias, &mut terms));
    let standard = Standard { column_scale, bias, ..*s };
    for first in (0..tile.rows).step_by(rows) {
        let count = rows.min((tile.rows - first) as usize);
        let at = |row: usize| {
            let offset = (first + row as i64) * tile.row_stride;
            tile.data.cast::<f32>().wrapping_offset(offset as isize)
        };
        let part = EpilogueTile {
            data: values.as_mut_ptr().cast(),
            rows: 1,
            columns: (count * columns) as i64,
            column: 0,
            ..*tile
        };
        // SAFETY: guaranteed by the caller for the rows of the tile; the buffer has room for these rows.
        unsafe {
            let buffer = part.data.cast::<f32>();
            for row in 0..count {
                for column in 0..columns {
                    buffer.add(row * columns + column).write(*at(row).add(column));
                }
            }
            run(&standard, &part);
            for row in 0..count {
                for column in 0..columns {
                    at(row).add(column).write(*buffer.add(row * columns + column));
                }
            }
        }
    }
}

/// # Safety
/// As for [`with`], and the caller has enabled the instructions.
#[inline(always)]
unsafe fn each_row<L: MathLanes<Elem = f32>>(isa: Isa, s: &Standard, tile: &EpilogueTile) {
    for row in 0..tile.rows {
        // SAFETY: guaranteed by the caller; the offsets stay inside the tile.
        unsafe {
            let data = tile.data.cast::<f32>().offset((row * tile.row_stride) as isize);
            match Activation::ALL[s.activation as usize] {
                Activation::None => one_row::<L, Same>(s, tile, row, data),
                Activation::Relu => one_row::<L, Relu>(s, tile, row, data),
                Activation::Clip => one_row::<L, Clip>(s, tile, row, data),
                Activation::Gelu => one_row::<L, Gelu>(s, tile, row, data),
                Activation::GeluTanh => one_row::<L, GeluTanh>(s, tile, row, data),
                Activation::Silu => one_row::<L, Silu>(s, tile, row, data),
                Activation::Sigmoid => one_row::<L, Sigmoid>(s, tile, row, data),
                Activation::Tanh => one_row::<L, Tanh>(s, tile, row, data),
                Activation::HardSwish => one_row::<L, HardSwish>(s, tile, row, data),
                Activation::HardSigmoid => one_row::<L, HardSigmoid>(s, tile, row, data),
                Activation::LeakyRelu => one_row::<L, LeakyRelu>(s, tile, row, data),
            }
            if !s.out.is_null() {
                cast(isa, s, tile, row, data);
            }
        }
    }
}

/// # Safety
/// As for [`each_row`].
#[inline(always)]
unsafe fn one_row<L: MathLanes<Elem = f32>, A: Apply>(
    s: &Standard,
    tile: &EpilogueTile,
    row: i64,
    data: *mut f32,
) {
    let columns = tile.columns as usize;
    let whole = columns / L::N * L::N;
    let from =
        |p: *const f32| if p.is_null() { p } else { p.wrapping_offset(tile.column as isize) };
    let place = tile.place().offset(row as usize, 0);
    let terms = Terms {
        scale: s.scale as f32,
        numbers: Numbers { low: s.low, high: s.high, slope: s.slope, offset: s.offset },
        column_scale: from(s.column_scale),
        bias: from(s.bias),
        before: s.before.at(place),
        after: s.after.at(place),
    };
    // SAFETY: guaranteed by the caller; offsets stay within the row.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            terms.value::<L, A, true>(data, at, L::N).store(data.add(at));
        }
        if whole < columns {
            let rest = columns - whole;
            terms.value::<L, A, false>(data, whole, rest).store_first(data.add(whole), rest);
        }
    }
}

/// The operands of one row: addresses at its first column, null for absent terms.
struct Terms {
    scale: f32,
    numbers: Numbers,
    column_scale: *const f32,
    bias: *const f32,
    before: *const f32,
    after: *const f32,
}

impl Terms {
    /// The finished values of a vector's columns.
    ///
    /// # Safety
    /// As for [`each_row`].
    #[inline(always)]
    unsafe fn value<L: MathLanes<Elem = f32>, A: Apply, const WHOLE: bool>(
        &self,
        data: *const f32,
        at: usize,
        count: usize,
    ) -> L {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut x = load::<L, WHOLE>(data.add(at), count);
            if self.scale != 1.0 {
                x = x.mul(L::splat(self.scale));
            }
            if !self.column_scale.is_null() {
                x = x.mul(load::<L, WHOLE>(self.column_scale.add(at), count));
            }
            for term in [self.bias, self.before] {
                if !term.is_null() {
                    x = x.add(load::<L, WHOLE>(term.add(at), count));
                }
            }
            let y = A::value::<L>(&mut Wide::new(), &x, &self.numbers);
            if self.after.is_null() {
                y
            } else {
                y.add(load::<L, WHOLE>(self.after.add(at), count))
            }
        }
    }
}

/// The parameters of an activation.
struct Numbers {
    low: f64,
    high: f64,
    slope: f64,
    offset: f64,
}

/// An activation on the vectors of an instruction set.
trait Apply {
    fn value<L: MathLanes<Elem = f32>>(b: &mut Wide<L>, x: &L, numbers: &Numbers) -> L;
}

/// `x` clipped to the limits; NaN propagates.
#[inline(always)]
fn clip<L: MathLanes<Elem = f32>>(b: &mut Wide<L>, x: &L, numbers: &Numbers) -> L {
    let (low, high) = (b.f(numbers.low), b.f(numbers.high));
    let y = b.max2(&low, x);
    b.min2(&high, &y)
}

/// `clip(slope * x + offset)`, rounded after the product like two separate operators.
#[inline(always)]
fn clipped_line<L: MathLanes<Elem = f32>>(b: &mut Wide<L>, x: &L, numbers: &Numbers) -> L {
    let (slope, offset) = (b.f(numbers.slope), b.f(numbers.offset));
    let y = b.mul(x, &slope);
    let y = b.add(&y, &offset);
    clip(b, &y, numbers)
}

macro_rules! activations {
    ($($name:ident = |$b:ident, $x:ident, $numbers:ident| $value:expr;)*) => {
        $(
            struct $name;
            impl Apply for $name {
                #[inline(always)]
                fn value<L: MathLanes<Elem = f32>>($b: &mut Wide<L>, $x: &L, $numbers: &Numbers) -> L {
                    $value
                }
            }
        )*
    };
}

activations! {
    Same = |_b, x, _numbers| *x;
    Relu = |b, x, _numbers| { let zero = b.f(0.0); b.max2(&zero, x) };
    Clip = |b, x, numbers| clip(b, x, numbers);
    Gelu = |b, x, _numbers| math::gelu(b, x);
    GeluTanh = |b, x, _numbers| {
        let (cubic, factor) = (b.f(0.044715), b.f(0.797_884_560_802_865_4));
        let (half, one) = (b.f(0.5), b.f(1.0));
        let square = b.mul(x, x);
        let cube = b.mul(&square, x);
        let inner = b.fma(&cube, &cubic, x);
        let inner = b.mul(&inner, &factor);
        let t = math::tanh(b, &inner);
        let t = b.add(&t, &one);
        let h = b.mul(x, &half);
        b.mul(&h, &t)
    };
    Silu = |b, x, _numbers| { let s = math::sigmoid(b, x); b.mul(x, &s) };
    Sigmoid = |b, x, _numbers| math::sigmoid(b, x);
    Tanh = |b, x, _numbers| math::tanh(b, x);
    HardSwish = |b, x, numbers| { let gate = clipped_line(b, x, numbers); b.mul(x, &gate) };
    HardSigmoid = |b, x, numbers| clipped_line(b, x, numbers);
    LeakyRelu = |b, x, numbers| {
        let (zero, slope) = (b.f(0.0), b.f(numbers.slope));
        let (above, below) = (b.max2(&zero, x), b.min2(&zero, x));
        let below = b.mul(&below, &slope);
        b.add(&above, &below)
    };
}

/// Writes a finished row to the destination of the results.
///
/// # Safety
/// As for [`with`].
unsafe fn cast(isa: Isa, s: &Standard, tile: &EpilogueTile, row: i64, data: *const f32) {
    let offset = tile.batch * s.out_batch + (tile.row + row) * s.out_row + tile.column;
    let (offset, columns) = (offset as isize, tile.columns);
    // SAFETY: guaranteed by the caller; the conversions take no runtime.
    unsafe {
        match s.out_type {
            0 => {
                let to = s.out.cast::<f32>().offset(offset);
                std::ptr::copy_nonoverlapping(data, to, columns as usize);
            }
            1 => {
                narrow(isa)(null(), s.out.cast::<u16>().offset(offset), data, columns);
            }
            _ => {
                narrow_bf16(null(), s.out.cast::<u16>().offset(offset), data, columns);
            }
        }
    }
}
