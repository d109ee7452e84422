//! Filter transform of Winograd's algorithms F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray, 2015).

/// A variant of Winograd's algorithm, named by its output tile size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Winograd {
    /// The algorithm F(2x2, 3x3): 16 multiplications for 4 outputs.
    Two,
    /// The algorithm F(4x4, 3x3): 36 multiplications for 16 outputs, with larger rounding errors.
    Four,
}

impl Winograd {
    /// The size of an output tile along one dim.
    pub fn output_tile(self) -> usize {
        match self {
            Winograd::Two => 2,
            Winograd::Four => 4,
        }
    }

    /// The size of an input tile, and of a transformed filter, along one dim.
    pub fn input_tile(self) -> usize {
        self.output_tile() + 2
    }

    /// The number of elements of a transformed filter.
    pub fn filter_elements(self) -> usize {
        self.input_tile() * self.input_tile()
    }

    /// Transforms a row-major 3x3 filter `g` to `G g G^T`. `G` is `[1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]` for [`Winograd::Two`]
    /// and `[1/4 0 0; -1/6 -1/6 -1/6; -1/6 1/6 -1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1]` for [`Winograd::Four`].
    pub fn transform_filter(self, g: &[f64; 9]) -> Vec<f64> {
        // Transform the columns first: `columns[j][i]` is element i of transformed column j.
        let columns = [0, 1, 2].map(|j| self.transform([g[j], g[3 + j], g[6 + j]]));
        let row = |i: usize| self.transform([columns[0][i], columns[1][i], columns[2][i]]);
        (0..self.input_tile()).flat_map(row).collect()
    }

    fn transform(self, [a, b, c]: [f64; 3]) -> Vec<f64> {
        match self {
            Winograd::Two => vec![a, 0.5 * (a + b + c), 0.5 * (a - b + c), c],
            Winograd::Four => vec![
                a / 4.0,
                -(a + b + c) / 6.0,
                (b - a - c) / 6.0,
                a / 24.0 + b / 12.0 + c / 6.0,
                a / 24.0 - b / 12.0 + c / 6.0,
                c,
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_transform_matches_its_definition() {
        let g = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let u = Winograd::Two.transform_filter(&g);
        assert_eq!([u[0], u[3], u[12], u[15]], [1.0, 3.0, 7.0, 9.0]);
        assert_eq!(u[5], 45.0 / 4.0);
        // By definition: the sum of a filter of ones over inputs of ones.
        assert_eq!(Winograd::Two.transform_filter(&[1.0; 9])[..4], [1.0, 1.5, 0.5, 1.0]);
        let u = Winograd::Four.transform_filter(&g);
        assert_eq!([u[0], u[5], u[30], u[35]], [1.0 / 16.0, 3.0 / 4.0, 7.0 / 4.0, 9.0]);
        assert!((u[7] - 45.0 / 36.0).abs() < 1e-12);
    }
}
