//! The addresses of the rows of a strided tensor.

use pliant_kernel_api::{MAX_RANK, View};

/// The rows of a tensor. The leading dims enumerate the rows, and the trailing dims enumerate the
/// elements of a row.
pub(super) struct Rows<T> {
    data: *mut T,
    /// Pairs of size and stride (in elements) of the leading dims. Adjacent dims are merged if the
    /// stride between rows is uniform across them.
    dims: [(usize, usize); MAX_RANK],
    rank: usize,
}

// SAFETY: kernels write different rows in different pieces.
unsafe impl<T> Sync for Rows<T> {}

/// A range of rows with a uniform stride between them.
pub(super) struct UniformRows<T> {
    /// The address of the first row.
    pub address: *mut T,
    /// The distance between rows, in elements.
    pub stride: usize,
    /// The number of rows in the range.
    pub count: usize,
}

impl<T> Rows<T> {
    /// The rows of a view with elements of type `T`. The last `inner` dims are the dims of a row.
    pub fn of(view: &View, inner: usize) -> Rows<T> {
        let leading = view.shape().len() - inner;
        let mut rows = Rows { data: view.data.cast(), dims: [(1, 0); MAX_RANK], rank: 0 };
        let dims = view.shape().iter().zip(view.strides()).take(leading);
        for (&size, &stride) in dims.filter(|(size, _)| **size != 1) {
            let (size, stride) = (size as usize, stride as usize);
            match rows.dims[..rows.rank].last_mut() {
                Some(outer) if outer.1 == size * stride => *outer = (outer.0 * size, stride),
                _ => {
                    rows.dims[rows.rank] = (size, stride);
                    rows.rank += 1;
                }
            }
        }
        rows
    }

    /// Returns the elements of a slice as rows of one element.
    pub fn of_slice(elements: &mut [T]) -> Rows<T> {
        let mut dims = [(1, 0); MAX_RANK];
        dims[0] = (elements.len(), 1);
        Rows { data: elements.as_mut_ptr(), dims, rank: 1 }
    }

    /// Returns the longest range of rows with a uniform stride that starts at row `row`, which must
    /// exist.
    pub fn uniform_rows(&self, row: usize) -> UniformRows<T> {
        let Some((&(size, stride), outer)) = self.dims[..self.rank].split_last() else {
            return UniformRows { address: self.data, stride: 0, count: 1 };
        };
        let (mut rest, position) =
            if outer.is_empty() { (0, row) } else { (row / size, row % size) };
        let mut offset = position * stride;
        for &(size, stride) in outer.iter().rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        UniformRows { address: self.data.wrapping_add(offset), stride, count: size - position }
    }

    /// Returns the addresses of `count` rows, starting with row `row`. `count` is from 1 to `N`.
    /// Surplus elements of the array repeat the last address.
    #[inline(always)]
    pub fn addresses<const N: usize>(&self, row: usize, count: usize) -> [*mut T; N] {
        let mut range = self.uniform_rows(row);
        let mut addresses = [range.address; N];
        let mut start = 0;
        for i in 1..N {
            if i < count && i - start == range.count {
                range = self.uniform_rows(row + i);
                start = i;
            }
            let last = i.min(count - 1) - start;
            addresses[i] = range.address.wrapping_add(last * range.stride);
        }
        addresses
    }
}

impl Rows<u8> {
    /// Reinterprets the elements of the rows as type `T`. Strides then count elements of type `T`.
    pub fn of_type<T>(&self) -> &Rows<T> {
        // SAFETY: only the type of the address differs.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

#[cfg(test)]
mod tests {
    use pliant_tensor::DType;

    use super::*;

    #[test]
    fn uniform_rows_cover_all_rows() {
        let cases: [(&[i64], &[i64], usize); 6] = [
            (&[4], &[1], 1),
            (&[2, 3, 4], &[12, 4, 1], 1),
            (&[2, 3, 4], &[12, 1, 3], 1),
            (&[2, 1, 3, 4, 2], &[30, 7, 8, 2, 1], 2),
            (&[3, 2, 4], &[0, 100, 1], 1),
            (&[2, 3], &[3, 1], 0),
        ];
        for (shape, strides, inner) in cases {
            let view =
                View::new(64 as *mut u8, DType::Int8, shape, Some(strides)).expect("few dims");
            let rows = Rows::<u8>::of(&view, inner);
            let leading = shape.len() - inner;
            let count: i64 = shape[..leading].iter().product();
            let mut row = 0;
            while row < count {
                let range = rows.uniform_rows(row as usize);
                for k in 0..range.count as i64 {
                    let (mut rest, mut offset) = (row + k, 0);
                    for (&size, &stride) in shape.iter().zip(strides).take(leading).rev() {
                        offset += rest % size * stride;
                        rest /= size;
                    }
                    let address = range.address.addr() + k as usize * range.stride;
                    assert_eq!(address, 64 + offset as usize, "{shape:?} {strides:?} {row}");
                }
                row += range.count as i64;
            }
            assert_eq!(row, count);
        }
    }
}
