//! A seeded random number generator, and mutations of bytes.

/// A random number generator: xorshift with multiplied output.
pub struct Rng(u64);

impl Rng {
    /// Creates a generator from a seed. Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Rng {
        let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Rng((mixed ^ mixed >> 31) | 1)
    }

    /// Returns 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a random number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 16) % n.max(1) as u64) as usize
    }

    /// Returns a random number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// Returns true with probability 1 / `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns a random element of a list, which must not be empty.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    /// Returns an integer that tests bounds checks: near 0 or `near`, a multiple of `near`, near a power of two, or near the limits
    /// of a type.
    pub fn boundary_value(&mut self, near: i64) -> i64 {
        let sign = if self.one_in(4) { -1 } else { 1 };
        match self.below(8) {
            0 => self.between(-2, 3),
            1 | 2 => near.wrapping_add(*self.pick(&[-1, 1, 1, 2, -2])),
            3 => near.wrapping_neg(),
            4 => near.wrapping_mul(*self.pick(&[2, 3, 16, 64, 1 << 20, 1 << 32])),
            5 | 6 => {
                let power = 1i64 << self.below(63);
                sign * power.wrapping_add(self.between(-1, 1))
            }
            _ => *self.pick(&[i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1, i64::from(i32::MIN)]),
        }
    }
}

/// Mutates bytes one to four times: sets a byte, flips a bit, deletes or repeats a range of bytes, or overwrites a range with
/// bytes of another input.
pub fn mutate_bytes(bytes: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        if out.is_empty() {
            break;
        }
        let start = rng.below(out.len());
        let end = (start + 1 + rng.below(16)).min(out.len());
        match rng.below(5) {
            0 => out[start] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            1 => out[start] ^= 1 << rng.below(8),
            2 => drop(out.drain(start..end)),
            3 => {
                let piece = out[start..end].to_vec();
                out.splice(start..start, piece);
            }
            _ => {
                let other_start = rng.below(other.len());
                let piece = &other[other_start..(other_start + end - start).min(other.len())];
                out.splice(start..end, piece.iter().copied());
            }
        }
    }
    out
}
