//! The sums of a depthwise convolution of 8-bit integers, with AVX-512 VNNI.
//!
//! Method: one instruction (`vpdpbusd`) multiplies four adjacent taps of a filter row for each of 16 channels and adds the
//! products to the sums of the channels. For this, the bytes of four taps are interleaved, so that each 32-bit lane contains the
//! taps of one channel; this takes eight instructions for 64 channels. The weights are interleaved once per output row. Taps
//! outside of the input have the value of the zero point. The zero point times the sum of the weights is subtracted at the start,
//! so that the sums start with a negative number.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::Convolution;
use super::depthwise::DepthwiseTile;
use crate::convolution::shape_and_strides::Sizes;
use pliant_machine::isa::{Isa, Vectors};

/// Number of channels whose sums are computed at the same time.
pub(super) const CHANNELS: usize = 64;
/// Number of adjacent taps of a filter row whose products one instruction adds.
const TAPS: usize = 4;
/// Maximum number of groups of taps of a filter.
const MAX_GROUPS: usize = 64;

/// Four vectors with one 32-bit lane for each of 64 channels, in the order in which [`interleave`] arranges them.
type Channels = [__m512i; 4];

/// Whether [`TapWeights`] can compute a convolution with the given instruction set.
pub(super) fn applies(isa: Isa, c: &Convolution, s: &Sizes) -> bool {
    let groups = s.kernel[0] * s.kernel[1] * s.kernel[2].div_ceil(TAPS);
    isa.vectors() == Vectors::Avx512
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vnni")
        && c.w_zeros.is_null()
        && groups <= MAX_GROUPS
}

/// The weights of up to 64 adjacent channels, interleaved by groups of adjacent taps of a filter row.
pub(super) struct TapWeights {
    /// The weights of each group. Elements after the last group are not initialized.
    groups: [MaybeUninit<Channels>; MAX_GROUPS],
    /// The first sums: minus the zero point times the sums of the weights.
    start: Channels,
    /// 64 times the zero point of the input, as an unsigned byte.
    padding: __m512i,
    /// The bit mask by which input bytes are XORed, to make signed bytes unsigned.
    flip: __m512i,
    /// The first channel, and the mask of the channels that exist.
    channel: usize,
    mask: __mmask64,
}

impl TapWeights {
    /// Interleaves the weights of `count` channels from `channel` on. `zero` is the zero point of the input.
    ///
    /// # Safety
    /// The conditions of [`super::run`] hold, [`applies`] returns true, and `count` is at most [`CHANNELS`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn load(p: &DepthwiseTile<'_>, channel: usize, count: usize) -> TapWeights {
        let (c, s) = (p.c, p.s);
        let mask = u64::MAX >> (CHANNELS - count);
        let offset = if c.signed { 128 } else { 0 };
        let zero = p.zero.wrapping_add(offset);
        let mut weights = TapWeights {
            groups: [const { MaybeUninit::uninit() }; MAX_GROUPS],
            start: [_mm512_setzero_si512(); 4],
            padding: _mm512_set1_epi8(zero as i8),
            flip: _mm512_set1_epi8(offset as i8),
            channel,
            mask,
        };
        let mut sums = [_mm512_setzero_si512(); 4];
        let ones = _mm512_set1_epi8(1);
        let mut group = 0;
        for row in 0..s.kernel[0] * s.kernel[1] {
            for first in (0..s.kernel[2]).step_by(TAPS) {
                let mut taps = [_mm512_setzero_si512(); TAPS];
                for tap in 0..TAPS.min(s.kernel[2] - first) {
                    let index = row * s.kernel[2] + first + tap;
                    let from = c.weights.wrapping_add(index * s.channels + channel);
                    // SAFETY: guaranteed by the caller; bytes that the mask excludes are not accessed.
                    taps[tap] = unsafe { _mm512_maskz_loadu_epi8(mask, from) };
                }
                let quads = interleave(taps);
                add_products(&mut sums, [ones; 4], &quads);
                weights.groups[group].write(quads);
                group += 1;
            }
        }
        let zeros = _mm512_set1_epi32(zero.wrapping_neg());
        for (start, sum) in weights.start.iter_mut().zip(sums) {
            *start = _mm512_mullo_epi32(sum, zeros);
        }
        weights
    }

    /// Computes the sums of a tile, whose channels are those of the weights.
    ///
    /// # Safety
    /// The conditions of [`Self::load`] hold. The sums of the tile are writable.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn sums(&self, p: &DepthwiseTile<'_>) {
        let s = p.s;
        for i in 0..p.results {
            let first = (p.at[2] + i) * s.stride[2];
            let last = first + (s.kernel[2] - 1) * s.dilation[2];
            let is_inside = first >= s.before[2] && last < s.before[2] + s.input[2];
            // SAFETY: guaranteed by the caller.
            unsafe {
                let sums = match is_inside {
                    true => self.result::<true>(p, first),
                    false => self.result::<false>(p, first),
                };
                self.store(sums, p.to.0.add(i * p.to.1));
            }
        }
    }

    /// Returns the sums of one result. `first` is the position of its first tap along the padded input row. If `INSIDE` is set, all
    /// taps along the row are inside of the input.
    ///
    /// # Safety
    /// The conditions of [`Self::sums`] hold.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn result<const INSIDE: bool>(&self, p: &DepthwiseTile<'_>, first: usize) -> Channels {
        let (c, s) = (p.c, p.s);
        let mut sums = self.start;
        let mut group = 0;
        for z in 0..s.kernel[0] {
            for y in 0..s.kernel[1] {
                let line = p.input_line(z, y).map(|line| line * s.input[2]);
                for x in (0..s.kernel[2]).step_by(TAPS) {
                    // SAFETY: [`Self::load`] has initialized all groups of the filter.
                    let weights = unsafe { self.groups[group].assume_init_ref() };
                    group += 1;
                    let Some(line) = line else {
                        add_products(&mut sums, [self.padding; 4], weights);
                        continue;
                    };
                    // The weights of taps after the last one are 0. A loop, because a function such as `array::from_fn` is not
                    // compiled for AVX-512, and so cannot be inlined with its closure.
                    let mut taps = [self.padding; TAPS];
                    for tap in 0..TAPS {
                        let at = (first + (x + tap) * s.dilation[2]).wrapping_sub(s.before[2]);
                        if x + tap < s.kernel[2] && (INSIDE || at < s.input[2]) {
                            let from = c.x.wrapping_add((line + at) * s.channels + self.channel);
                            // SAFETY: the tap is inside of the input; bytes that the mask excludes are not accessed.
                            let bytes = unsafe { _mm512_maskz_loadu_epi8(self.mask, from.cast()) };
                            taps[tap] = _mm512_xor_si512(bytes, self.flip);
                        }
                    }
                    add_products(&mut sums, interleave(taps), weights);
                }
            }
        }
        sums
    }

    /// Stores the sums of one result in the order of the channels.
    ///
    /// # Safety
    /// The sums of the channels are writable.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store(&self, sums: Channels, to: *mut i32) {
        // The transpose of a matrix whose elements are blocks of 4 sums.
        let [a, b, c, d] = sums;
        let (ab_low, ab_high) =
            (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
        let (cd_low, cd_high) =
            (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d));
        let ordered = [
            _mm512_shuffle_i32x4::<0x88>(ab_low, cd_low),
            _mm512_shuffle_i32x4::<0xdd>(ab_low, cd_low),
            _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high),
            _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high),
        ];
        for (k, sums) in ordered.into_iter().enumerate() {
            let mask = (self.mask >> (16 * k)) as __mmask16;
            // SAFETY: guaranteed by the caller; sums that the mask excludes are not accessed.
            unsafe { _mm512_mask_storeu_epi32(to.wrapping_add(16 * k), mask, sums) };
        }
    }
}

/// Interleaves the bytes of four vectors: lane `l` of vector `k` of the result contains the four bytes of channel
/// `16 * (l / 4) + 4 * k + l % 4`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave([a, b, c, d]: [__m512i; TAPS]) -> Channels {
    let (ab_low, ab_high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b));
    let (cd_low, cd_high) = (_mm512_unpacklo_epi8(c, d), _mm512_unpackhi_epi8(c, d));
    [
        _mm512_unpacklo_epi16(ab_low, cd_low),
        _mm512_unpackhi_epi16(ab_low, cd_low),
        _mm512_unpacklo_epi16(ab_high, cd_high),
        _mm512_unpackhi_epi16(ab_high, cd_high),
    ]
}

/// Adds the products of unsigned bytes and signed weights to the sums of their channels.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_products(sums: &mut Channels, bytes: Channels, weights: &Channels) {
    for k in 0..4 {
        sums[k] = _mm512_dpbusd_epi32(sums[k], bytes[k], weights[k]);
    }
}
