//! The host function that computes determinants for imported models.

use pliant_exec::abi::KernelRuntime;
use pliant_kernel_api::host_function_names;
use pliant_tensor::{DType, Reserved, Tensor};
use pliant_vm::{CheckKind, Value, VmError};
use pulp::{Arch, Simd, WithSimd};

use super::{Outcome, argument_error, value_error};

/// Implements `pliant.det`, called with `(x)`: computes the determinants of a batch of square matrices in float64. `x` has shape
/// `[..., n, n]`, and the result has the batch dims and the data type of `x`.
pub(super) fn det(runtime: &KernelRuntime, args: &[Value]) -> Outcome {
    let [Value::Tensor(x)] = args else {
        return Err(argument_error(host_function_names::DET, args));
    };
    let [batch @ .., rows, columns] = x.shape() else {
        let text =
            format!("the operand of Det must have at least 2 dims, but has shape {:?}", x.shape());
        return Err(VmError::check(CheckKind::Shape, text));
    };
    if rows != columns {
        let text = format!(
            "the operand of Det must contain square matrices, but they have {rows} rows and {columns} columns"
        );
        return Err(VmError::check(CheckKind::Shape, text));
    }
    let size = *rows as usize;
    let count = batch.iter().product::<i64>() as usize;
    let matrix_elements = size.saturating_mul(size);
    let _elements = Reserved::new(x.numel().saturating_mul(8))?;
    let elements = x.to_contiguous()?.to_f64_vec()?;
    let row_len = size.next_multiple_of(ROW_ALIGNMENT);
    let scratch_len = if count == 0 { 0 } else { size.saturating_mul(row_len) };
    let _scratch = Reserved::new(scratch_len.saturating_mul(size_of::<f64>()))?;
    let mut scratch = Vec::new();
    scratch.try_reserve_exact(scratch_len).map_err(|e| value_error(e.to_string()))?;
    scratch.resize(scratch_len, 0.0);
    // The float64 results, and at most as much for their tensor.
    let _values = Reserved::new(count.saturating_mul(16))?;
    // The determinant of a matrix without rows is 1.
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|e| value_error(e.to_string()))?;
    values.resize(count, 1.0);
    if matrix_elements > 0 {
        for (value, matrix) in values.iter_mut().zip(elements.chunks_exact(matrix_elements)) {
            for (row, padded) in matrix.chunks_exact(size).zip(scratch.chunks_exact_mut(row_len)) {
                padded[..size].copy_from_slice(row);
            }
            *value =
                determinant(&mut scratch, size, row_len, runtime).ok_or(VmError::Interrupted)?;
        }
    }
    Ok(Value::Tensor(match x.dtype() {
        DType::Float64 => Tensor::from_slice(batch, &values)?,
        DType::Float32 => Tensor::from_slice(batch, &convert(&values, |v| v as f32))?,
        DType::Float16 => {
            Tensor::from_slice(batch, &convert(&values, pliant_tensor::round_to_f16))?
        }
        DType::BFloat16 => {
            Tensor::from_slice(batch, &convert(&values, pliant_tensor::round_to_bf16))?
        }
        other => {
            return Err(value_error(format!(
                "the operand of Det must be a float tensor, but is of dtype {other}"
            )));
        }
    }))
}

fn convert<T>(values: &[f64], f: impl Fn(f64) -> T) -> Vec<T> {
    values.iter().map(|&v| f(v)).collect()
}

/// Rows are padded to a multiple of this number of elements, so that they consist of whole SIMD vectors.
const ROW_ALIGNMENT: usize = 8;

/// Computes the determinant of a square matrix by Gaussian elimination with partial pivoting, in place. The elements after the last
/// column, `row_len` minus `size` in each row, are 0. `None` if the run is interrupted.
fn determinant(
    elements: &mut [f64],
    size: usize,
    row_len: usize,
    runtime: &KernelRuntime,
) -> Option<f64> {
    let instructions = Arch::new();
    let mut product = 1.0;
    for k in 0..size {
        if runtime.is_interrupted() {
            return None;
        }
        let key = |&row: &usize| elements[row * row_len + k].abs();
        let Some(pivot) = (k..size).max_by(|i, j| key(i).total_cmp(&key(j))) else { break };
        if key(&pivot) == 0.0 {
            return Some(0.0);
        }
        let (above, below) = elements.split_at_mut((k + 1) * row_len);
        let pivot_row = &mut above[k * row_len..];
        if pivot != k {
            pivot_row.swap_with_slice(&mut below[(pivot - k - 1) * row_len..][..row_len]);
            product = -product;
        }
        product *= pivot_row[k];
        instructions.dispatch(EliminateColumn { rows: below, pivot_row, k });
    }
    Some(product)
}

/// Subtracts a multiple of `pivot_row` from each row of `rows`, so that column `k` of the rows becomes 0. Columns before `k` are no
/// longer used. Those in the same SIMD vector as column `k` are changed, too.
struct EliminateColumn<'a> {
    rows: &'a mut [f64],
    pivot_row: &'a [f64],
    k: usize,
}

impl WithSimd for EliminateColumn<'_> {
    type Output = ();

    // Only inlined code uses the vector instructions that pulp selects.
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let start = self.k - self.k % ROW_ALIGNMENT;
        let (pivots, _) = S::as_simd_f64s(&self.pivot_row[start..]);
        let pivot = self.pivot_row[self.k];
        for row in self.rows.chunks_exact_mut(self.pivot_row.len()) {
            let factor = simd.splat_f64s(row[self.k] / pivot);
            let (vectors, _) = S::as_mut_simd_f64s(&mut row[start..]);
            // The functions of `zip` would not be inlined.
            for i in 0..vectors.len().min(pivots.len()) {
                vectors[i] = simd.sub_f64s(vectors[i], simd.mul_f64s(factor, pivots[i]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn det_of(shape: &[i64], data: &[f64]) -> Vec<f64> {
        let x = Value::Tensor(Tensor::from_slice(shape, data).unwrap());
        let result = det(&KernelRuntime::serial(), &[x]).unwrap();
        result.as_tensor().unwrap().to_f64_vec().unwrap()
    }

    #[test]
    fn determinants_of_batches_empty_and_singular_matrices() {
        assert_eq!(det_of(&[2, 2], &[0.0, 2.0, 3.0, 4.0]), [-6.0]);
        assert_eq!(det_of(&[2, 1, 1], &[5.0, -7.0]), [5.0, -7.0]);
        assert_eq!(det_of(&[2, 2], &[1.0, 2.0, 2.0, 4.0]), [0.0]);
        assert_eq!(det_of(&[3, 0, 0], &[]), [1.0; 3]);
        assert_eq!(det_of(&[0, 2, 2], &[]), [0.0; 0]);
        assert_eq!(det_of(&[0, 1 << 20, 1 << 20], &[]), [0.0; 0]);
        let bad = Tensor::from_slice(&[1, 2], &[1.0f64, 2.0]).unwrap();
        assert!(det(&KernelRuntime::serial(), &[Value::Tensor(bad)]).is_err());
    }
}
