//! Checks the results of a run for reads of uninitialized memory. Builds with memory poisoning fill
//! uninitialized memory with a pattern (poison), and this check searches the results for the
//! pattern.

use crate::error::CheckKind;
use crate::{Value, VmError};

/// Maximum number of values that one check inspects. The limit is necessary because tuples with
/// shared items can contain exponentially many values.
const SEARCHED: usize = 10_000;

/// Checks that the result of a run of `function` contains no poison (the pattern that fills uninitialized memory), unless the
/// arguments contain poison.
///
/// # Errors
/// `Internal` if a tensor in `result` contains poison and no argument does.
pub(crate) fn check_poison(function: &str, args: &[Value], result: &Value) -> Result<(), VmError> {
    if contains_poison([result]) && !contains_poison(args) {
        let message = format!(
            "a result of '{function}' contains memory that was never written (a bug in Pliant)"
        );
        return Err(VmError::check(CheckKind::Internal, message));
    }
    Ok(())
}

fn contains_poison<'a>(values: impl IntoIterator<Item = &'a Value>) -> bool {
    let mut left: Vec<&Value> = values.into_iter().collect();
    for _ in 0..SEARCHED {
        match left.pop() {
            Some(Value::Tensor(tensor)) if tensor.contains_poison() => return true,
            Some(Value::Tuple(items)) => left.extend(items.iter().take(SEARCHED)),
            Some(_) => {}
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use pliant_tensor::{DType, POISONS, Tensor, poison};

    use super::*;

    fn zeros() -> Tensor {
        Tensor::zeros(&[3], DType::Float32).expect("a small tensor")
    }

    fn poisoned() -> Tensor {
        let tensor = zeros();
        // SAFETY: the tensor has that many bytes.
        unsafe { poison(tensor.data_ptr(), tensor.nbytes()) };
        tensor
    }

    #[test]
    fn poison_in_a_result_is_an_internal_error() {
        let result = Value::tuple([Value::Tensor(zeros()), Value::Tensor(poisoned())]);
        let checked = check_poison("main", &[Value::Tensor(zeros())], &result);
        assert_eq!(checked.is_err_and(|e| e.is_internal()), POISONS);
    }

    #[test]
    fn poison_from_an_argument_may_be_returned() {
        let args = [Value::Tensor(poisoned())];
        assert!(check_poison("main", &args, &args[0]).is_ok());
    }
}
