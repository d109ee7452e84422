//! [`Choices`]: derives random choices from the bytes of a fuzz input. After the last byte, every choice selects the first
//! option.

/// A source of choices: the bytes of a fuzz input that no choice has used yet.
pub struct Choices<'b> {
    bytes: &'b [u8],
}

impl<'b> Choices<'b> {
    /// Creates a source of choices from these bytes.
    pub fn new(bytes: &'b [u8]) -> Self {
        Choices { bytes }
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    /// Whether unused bytes are left.
    pub fn has_bytes(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Chooses a number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let wide = if n > 256 { usize::from(self.byte()) << 8 } else { 0 };
        (wide | usize::from(self.byte())) % n.max(1)
    }

    /// Returns true with a probability of `percent` percent; false if no bytes are left.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.has_bytes() && self.below(100) >= 100 - percent
    }

    /// Chooses one of the options; `None` if there are none.
    pub fn pick<T: Clone>(&mut self, options: &[T]) -> Option<T> {
        let index = self.below(options.len());
        options.get(index).cloned()
    }

    /// Chooses an integer, mostly small, rarely near the limit of a type.
    pub fn integer(&mut self) -> i64 {
        const EXTREME_INTEGERS: [i64; 8] = [
            i64::MAX,
            i64::MIN,
            i32::MAX as i64,
            i32::MIN as i64,
            1 << 31,
            1 << 32,
            1 << 40,
            -1 << 62,
        ];
        match self.below(40) {
            0 => EXTREME_INTEGERS[self.below(EXTREME_INTEGERS.len())],
            1..=4 => self.below(64) as i64 - 32,
            _ => self.below(6) as i64 - 2,
        }
    }

    /// Chooses a float, mostly small, rarely NaN, infinite or extreme.
    pub fn float(&mut self) -> f64 {
        const SPECIAL_FLOATS: [f64; 8] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e30, -1e30, 1e-40, f64::MAX];
        match self.below(12) {
            0 => SPECIAL_FLOATS[self.below(SPECIAL_FLOATS.len())],
            _ => self.below(17) as f64 / 4.0 - 2.0,
        }
    }
}
