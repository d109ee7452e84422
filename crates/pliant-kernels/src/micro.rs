//! float32 matrix products with 512-bit or 256-bit vectors, chosen at run time.
//!
//! C is cut into panels of columns (64 wide with AVX-512, 16 with AVX2) and slivers of at most 6
//! rows whose heights differ by at most 1.
//! A is read in place. B is read in place where its rows are contiguous and few slivers share it;
//! otherwise each panel is packed
//! first, k by k. K is cut into blocks so that a panel stays in the second-level cache.

use std::cell::RefCell;

use crate::gemm::Gemm;

/// Rows of a sliver at most: 24 accumulators of 512 bits, 4 vectors of B and a broadcast fit the 32 registers.
const ROWS: usize = 6;
/// Block of K.
const K_BLOCK: usize = 512;
/// K up to which a product of few rows takes all of K at once.
const K_WHOLE: usize = 2048;
/// Rows up to which reading B in place is cheaper than packing it.
const PACK_ROWS: usize = 48;
/// Rows from which transposing B into panels pays.
const TRANSPOSE_ROWS: usize = 16;
/// Columns of the widest panel.
const WIDEST: usize = 64;

/// The vector instructions in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
}

/// The best instructions of this machine; `None` where only the portable library serves.
pub fn isa() -> Option<Isa> {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return Some(Isa::Avx512);
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            return Some(Isa::Avx2);
        }
    }
    None
}

/// One sliver of one panel: `c[rows, cols] (+)= a[rows, k] * b[k, cols]`.
struct Tile {
    k: usize,
    a: *const f32,
    a_row: isize,
    a_col: isize,
    b: *const f32,
    b_row: isize,
    c: *mut f32,
    c_row: isize,
    accumulate: bool,
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Tile;
    use std::arch::x86_64::*;

    macro_rules! tile {
        ($name:ident, $feature:literal, $vector:ty, $width:literal, $zero:ident, $load:ident, $store:ident, $set:ident, $fma:ident,
         $add:ident) => {
            /// `R` rows by `V` vectors. `R * V` of at most 4 splits even and odd k, to have enough independent sums.
            #[target_feature(enable = $feature)]
            unsafe fn $name<const R: usize, const V: usize>(t: &Tile) {
                // SAFETY: the caller's promise that all elements of the tile are valid.
                unsafe {
                    let mut acc = [[$zero(); V]; R];
                    let (mut a, mut b) = (t.a, t.b);
                    let mut k = t.k;
                    if R * V <= 4 {
                        let mut odd = [[$zero(); V]; R];
                        while k >= 2 {
                            for v in 0..V {
                                let (x, y) = (
                                    $load(b.add(v * $width)),
                                    $load(b.offset(t.b_row).add(v * $width)),
                                );
                                for r in 0..R {
                                    let at = a.offset(r as isize * t.a_row);
                                    acc[r][v] = $fma($set(*at), x, acc[r][v]);
                                    odd[r][v] = $fma($set(*at.offset(t.a_col)), y, odd[r][v]);
                                }
                            }
                            a = a.offset(2 * t.a_col);
                            b = b.offset(2 * t.b_row);
                            k -= 2;
                        }
                        for r in 0..R {
                            for v in 0..V {
                                acc[r][v] = $add(acc[r][v], odd[r][v]);
                            }
                        }
                    }
                    while k > 0 {
                        let mut row = [$zero(); V];
                        for v in 0..V {
                            row[v] = $load(b.add(v * $width));
                        }
                        for r in 0..R {
                            let x = $set(*a.offset(r as isize * t.a_row));
                            for v in 0..V {
                                acc[r][v] = $fma(x, row[v], acc[r][v]);
                            }
                        }
                        a = a.offset(t.a_col);
                        b = b.offset(t.b_row);
                        k -= 1;
                    }
                    for r in 0..R {
                        let c = t.c.offset(r as isize * t.c_row);
                        for v in 0..V {
                            let at = c.add(v * $width);
                            let value =
                                if t.accumulate { $add(acc[r][v], $load(at)) } else { acc[r][v] };
                            $store(at, value);
                        }
                    }
                }
            }
        };
    }

    tile!(
        tile512,
        "avx512f",
        __m512,
        16,
        _mm512_setzero_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_add_ps
    );
    tile!(
        tile256,
        "avx2,fma",
        __m256,
        8,
        _mm256_setzero_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_add_ps
    );

    macro_rules! by_rows {
        ($f:ident, $v:literal, $rows:expr, $t:expr) => {
            match $rows {
                1 => $f::<1, $v>($t),
                2 => $f::<2, $v>($t),
                3 => $f::<3, $v>($t),
                4 => $f::<4, $v>($t),
                5 => $f::<5, $v>($t),
                _ => $f::<6, $v>($t),
            }
        };
    }

    /// # Safety
    /// The machine has AVX-512; all elements of a tile of `rows` by `16 * vectors` are valid.
    pub unsafe fn avx512(rows: usize, vectors: usize, t: &Tile) {
        // SAFETY: the caller's promise.
        unsafe {
            match vectors {
                1 => by_rows!(tile512, 1, rows, t),
                2 => by_rows!(tile512, 2, rows, t),
                _ => by_rows!(tile512, 4, rows, t),
            }
        }
    }

    /// # Safety
    /// The machine has AVX2 and FMA; all elements of a tile of `rows` by `8 * vectors` are valid.
    pub unsafe fn avx2(rows: usize, vectors: usize, t: &Tile) {
        // SAFETY: the caller's promise.
        unsafe {
            match vectors {
                1 => by_rows!(tile256, 1, rows, t),
                _ => by_rows!(tile256, 2, rows, t),
            }
        }
    }
}

/// The width of the panel that covers `columns` columns: the narrowest that fits, at most the widest.
fn panel_width(isa: Isa, columns: usize) -> usize {
    match isa {
        Isa::Avx512 => match columns {
            0..=16 => 16,
            17..=32 => 32,
            _ => 64,
        },
        Isa::Avx2 if columns <= 8 => 8,
        Isa::Avx2 => 16,
    }
}

/// # Safety
/// The machine has `isa`; the tile is valid.
unsafe fn run_tile(isa: Isa, rows: usize, width: usize, t: &Tile) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise.
    unsafe {
        match isa {
            Isa::Avx512 => x86::avx512(rows, width / 16, t),
            Isa::Avx2 => x86::avx2(rows, width / 8, t),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (rows, width, t);
        unreachable!("there is no {isa:?} on this machine")
    }
}

thread_local! {
    /// One packed panel, and one tile of C that is wider than C.
    static SCRATCH: RefCell<(Vec<f32>, Vec<f32>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// One product on the calling thread; `c` must be contiguous along columns. Returns false where it does not apply.
///
/// # Safety
/// All addressed elements are valid; C overlaps neither A nor B.
pub unsafe fn sgemm(g: &Gemm<f32>) -> bool {
    let Some(isa) = isa() else { return false };
    if g.b.2 != 1 && g.m < TRANSPOSE_ROWS {
        return false;
    }
    if g.c.2 != 1 {
        if g.c.1 != 1 {
            return false;
        }
        // The transposed product has contiguous rows.
        let t = Gemm {
            m: g.n,
            n: g.m,
            k: g.k,
            a: (g.b.0, g.b.2, g.b.1),
            b: (g.a.0, g.a.2, g.a.1),
            c: (g.c.0, g.c.2, g.c.1),
            accumulate: g.accumulate,
        };
        // SAFETY: the same elements.
        return unsafe { sgemm(&t) };
    }
    SCRATCH.with_borrow_mut(|(packed, edge)| {
        // SAFETY: the caller's promise.
        unsafe { blocks(isa, g, packed, edge) }
    });
    true
}

/// # Safety
/// As for [`sgemm`], with contiguous rows of C.
unsafe fn blocks(isa: Isa, g: &Gemm<f32>, packed: &mut Vec<f32>, edge: &mut Vec<f32>) {
    let whole = g.m <= 64 && g.k <= K_WHOLE;
    let k_block = if whole { g.k.max(1) } else { K_BLOCK };
    edge.resize(ROWS * WIDEST, 0.0);
    let mut k = 0;
    loop {
        let depth = k_block.min(g.k - k);
        let accumulate = g.accumulate || k > 0;
        let mut column = 0;
        while column < g.n {
            let width = panel_width(isa, g.n - column);
            let columns = width.min(g.n - column);
            // SAFETY: the offsets stay inside the matrices.
            unsafe {
                let b = g.b.0.offset(k as isize * g.b.1 + column as isize * g.b.2);
                let in_place = g.b.2 == 1 && columns == width && g.m <= PACK_ROWS;
                let (b, b_row) = if in_place {
                    (b, g.b.1)
                } else {
                    pack(b, g.b.1, g.b.2, depth, columns, width, packed);
                    (packed.as_ptr(), width as isize)
                };
                let panel = Panel { isa, width, columns, column, k, depth, b, b_row, accumulate };
                panel.slivers(g, edge);
            }
            column += columns;
        }
        k += depth;
        if k >= g.k {
            return;
        }
    }
}

/// Copies a panel of B, row by row, with zeros right of its columns.
///
/// # Safety
/// `depth` by `columns` elements are valid.
unsafe fn pack(
    b: *const f32,
    row: isize,
    col: isize,
    depth: usize,
    columns: usize,
    width: usize,
    packed: &mut Vec<f32>,
) {
    if packed.len() < depth * width {
        packed.resize(depth * width, 0.0);
    }
    if columns < width {
        packed.chunks_exact_mut(width).take(depth).for_each(|row| row[columns..].fill(0.0));
    }
    // SAFETY: the caller's promise for reads; writes are inside `packed`.
    unsafe {
        if col == 1 {
            for p in 0..depth {
                let from = std::slice::from_raw_parts(b.offset(p as isize * row), columns);
                packed[p * width..p * width + columns].copy_from_slice(from);
            }
            return;
        }
        // Blocks of 8 rows keep both the strided reads and the writes in the first-level cache.
        for p0 in (0..depth).step_by(8) {
            for j in 0..columns {
                let from = b.offset(j as isize * col);
                for p in p0..depth.min(p0 + 8) {
                    *packed.get_unchecked_mut(p * width + j) = *from.offset(p as isize * row);
                }
            }
        }
    }
}

struct Panel {
    isa: Isa,
    width: usize,
    columns: usize,
    column: usize,
    k: usize,
    depth: usize,
    b: *const f32,
    b_row: isize,
    accumulate: bool,
}

impl Panel {
    /// All rows of C under this panel.
    ///
    /// # Safety
    /// As for [`sgemm`]; `b` holds `depth` rows of `width` columns.
    unsafe fn slivers(&self, g: &Gemm<f32>, edge: &mut [f32]) {
        let count = g.m.div_ceil(ROWS);
        let (base, more) = (g.m / count.max(1), g.m % count.max(1));
        let mut row = 0;
        for i in 0..count {
            let rows = base + usize::from(i < more);
            // SAFETY: the caller's promise; the edge tile has room for the widest tile.
            unsafe {
                let c = g.c.0.offset(row as isize * g.c.1).add(self.column);
                let full = self.columns == self.width;
                let tile = Tile {
                    k: self.depth,
                    a: g.a.0.offset(row as isize * g.a.1 + self.k as isize * g.a.2),
                    a_row: g.a.1,
                    a_col: g.a.2,
                    b: self.b,
                    b_row: self.b_row,
                    c: if full { c } else { edge.as_mut_ptr() },
                    c_row: if full { g.c.1 } else { WIDEST as isize },
                    accumulate: full && self.accumulate,
                };
                run_tile(self.isa, rows, self.width, &tile);
                if !full {
                    for r in 0..rows {
                        for j in 0..self.columns {
                            let at = c.offset(r as isize * g.c.1).add(j);
                            let x = edge[r * WIDEST + j];
                            *at = if self.accumulate { *at + x } else { x };
                        }
                    }
                }
            }
            row += rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(m: usize, n: usize, k: usize, ta: bool, tb: bool, tc: bool, accumulate: bool) {
        let value = |i: usize| ((i * 7919) % 1013) as f32 / 500.0 - 1.0;
        let a: Vec<f32> = (0..m * k).map(value).collect();
        let b: Vec<f32> = (0..k * n).map(|i| value(i + 5)).collect();
        let mut c = vec![2.0f32; m * n];
        let strides = |rows: usize, cols: usize, t: bool| {
            if t { (1, rows as isize) } else { (cols as isize, 1) }
        };
        let ((ar, ac), (br, bc), (cr, cc)) =
            (strides(m, k, ta), strides(k, n, tb), strides(m, n, tc));
        let g = Gemm {
            m,
            n,
            k,
            a: (a.as_ptr(), ar, ac),
            b: (b.as_ptr(), br, bc),
            c: (c.as_mut_ptr(), cr, cc),
            accumulate,
        };
        // SAFETY: the strides describe the vectors above.
        if !unsafe { sgemm(&g) } {
            return;
        }
        for i in 0..m {
            for j in 0..n {
                let mut want = if accumulate { 2.0f64 } else { 0.0 };
                for p in 0..k {
                    let x = a[(i as isize * ar + p as isize * ac) as usize];
                    let y = b[(p as isize * br + j as isize * bc) as usize];
                    want += f64::from(x) * f64::from(y);
                }
                let got = f64::from(c[(i as isize * cr + j as isize * cc) as usize]);
                assert!((got - want).abs() < 1e-3 * (1.0 + want.abs()), "{m}x{n}x{k} at {i},{j}");
            }
        }
    }

    #[test]
    fn every_size_and_layout() {
        for (m, n, k) in [
            (1, 1, 1),
            (1, 64, 7),
            (2, 65, 9),
            (3, 16, 0),
            (5, 31, 40),
            (6, 128, 33),
            (7, 100, 17),
            (13, 48, 600),
            (50, 70, 30),
            (65, 33, 2100),
        ] {
            for bits in 0..16 {
                check(m, n, k, bits & 1 != 0, bits & 2 != 0, bits & 4 != 0, bits & 8 != 0);
            }
        }
    }
}
