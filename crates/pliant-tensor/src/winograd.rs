//! Kernels of 3 x 3 as Winograd's algorithm F(2x2, 3x3) multiplies them (Lavin and Gray, 2015).

/// Numbers of a turned kernel.
pub const WINOGRAD_NUMBERS: usize = 16;

/// `G g G^T` of a kernel in row-major order, 4 x 4 numbers; `G` is `[1 0 0; 1/2 1/2 1/2; 1/2 -1/2 1/2; 0 0 1]`.
pub fn winograd_kernel(g: &[f64; 9]) -> [f64; WINOGRAD_NUMBERS] {
    let turned = |[a, b, c]: [f64; 3]| [a, 0.5 * (a + b + c), 0.5 * (a - b + c), c];
    // By columns first: rows[i][j] is number i of column j.
    let columns = [0, 1, 2].map(|j| turned([g[j], g[3 + j], g[6 + j]]));
    let mut out = [0.0; WINOGRAD_NUMBERS];
    for i in 0..4 {
        let row = turned([columns[0][i], columns[1][i], columns[2][i]]);
        out[4 * i..4 * i + 4].copy_from_slice(&row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_stay_and_middles_are_means() {
        let g = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let u = winograd_kernel(&g);
        assert_eq!([u[0], u[3], u[12], u[15]], [1.0, 3.0, 7.0, 9.0]);
        assert_eq!(u[5], 45.0 / 4.0);
        // What the algorithm is: the sum of a kernel of ones over inputs of ones.
        assert_eq!(winograd_kernel(&[1.0; 9])[..4], [1.0, 1.5, 0.5, 1.0]);
    }
}
