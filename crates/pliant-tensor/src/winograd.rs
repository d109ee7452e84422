//! Kernels of 3 x 3 as Winograd's algorithms F(2x2, 3x3) and F(4x4, 3x3) multiply them (Lavin and Gray, 2015).

/// How many results of each dim a tile of Winograd's algorithm has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Winograd {
    /// F(2x2, 3x3): 16 multiplications for 4 results.
    Two,
    /// F(4x4, 3x3): 36 multiplications for 16 results, with larger errors.
    Four,
}

impl Winograd {
    /// Results of a tile along a dim.
    pub fn results(self) -> usize {
        match self {
            Winograd::Two => 2,
            Winograd::Four => 4,
        }
    }

    /// Numbers of a tile and of a turned kernel along a dim.
    pub fn side(self) -> usize {
        self.results() + 2
    }

    /// Numbers of a turned kernel.
    pub fn numbers(self) -> usize {
        self.side() * self.side()
    }

    /// `G g G^T` of a kernel in row-major order. `G` is `[1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]` for [`Winograd::Two`], and
    /// `[1/4 0 0; -1/6 -1/6 -1/6; -1/6 1/6 -1/6; 1/24 1/12 1/6; 1/24 -1/12 1/6; 0 0 1]` for [`Winograd::Four`].
    pub fn turned_kernel(self, g: &[f64; 9]) -> Vec<f64> {
        // By columns first: number i of column j.
        let columns = [0, 1, 2].map(|j| self.turned([g[j], g[3 + j], g[6 + j]]));
        let row = |i: usize| self.turned([columns[0][i], columns[1][i], columns[2][i]]);
        (0..self.side()).flat_map(row).collect()
    }

    fn turned(self, [a, b, c]: [f64; 3]) -> Vec<f64> {
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

/// Channels and filters from which turning kernels pays.
const LEAST: i64 = 64;
/// Kernels up to which it does.
const MOST: i64 = 256 * 256;

/// Whether kernels of 3 x 3 are turned for so many channels and filters. Constants are laid down when a program is compiled, for
/// images of all sizes. Against plain products on one thread (`cargo bench -p pliant-kernels --bench convolution`): 64 by 64 gain
/// 1.5 times at 56 x 56, 256 by 256 2.0 at 14 x 14, 1.6 at 7 x 7 and nothing at 5 x 5. 32 by 32 would gain 1.3 at 56 x 56, and are
/// left to plain sums, whose errors are half. 512 by 512 gain 1.6 at 7 x 7 where the third-level cache has them, but they are 16
/// MB turned, 16 numbers for 9, which images of a few pixels take longer to read from memory than to multiply.
pub fn turning_pays(channels: i64, filters: i64) -> bool {
    channels.min(filters) >= LEAST && channels.saturating_mul(filters) <= MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_stay_and_middles_are_means() {
        let g = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let u = Winograd::Two.turned_kernel(&g);
        assert_eq!([u[0], u[3], u[12], u[15]], [1.0, 3.0, 7.0, 9.0]);
        assert_eq!(u[5], 45.0 / 4.0);
        // What the algorithm is: the sum of a kernel of ones over inputs of ones.
        assert_eq!(Winograd::Two.turned_kernel(&[1.0; 9])[..4], [1.0, 1.5, 0.5, 1.0]);
        let u = Winograd::Four.turned_kernel(&g);
        assert_eq!([u[0], u[5], u[30], u[35]], [1.0 / 16.0, 3.0 / 4.0, 7.0 / 4.0, 9.0]);
        assert!((u[7] - 45.0 / 36.0).abs() < 1e-12);
    }
}
