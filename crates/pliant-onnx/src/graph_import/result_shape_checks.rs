//! Checks the shapes of results during the import, so that impossible shapes are not reported only at run time.

use pliant_ir::relax::{Function, TensorShape, TypeData};
use pliant_sym::{EvalError, Sym};

use super::Importer;
use crate::import_error::Problem;
use crate::imported_value::Value;
use crate::initializer_tensors::check_rank;
use crate::symbolic_size_condition::is_monotone;

impl Importer<'_> {
    /// Rejects a result whose rank is too high, that has a negative dim, or whose size in bytes does not fit in 64 bits.
    ///
    /// # Errors
    /// A problem that describes the invalid shape.
    pub(super) fn check_result_size(&self, name: &str, value: &Value) -> Result<(), Problem> {
        let subject = format!("output '{name}'");
        let func = self.builder.func();
        let rank = match value {
            Value::Expr(e) => match func.ty(*e) {
                TypeData::Tensor { shape: TensorShape::Dims(dims), dtype } => {
                    let width = dtype.map_or(1, |d| d.size() as i64);
                    check_byte_count(&subject, func, dims, width).map_err(Problem::invalid)?;
                    dims.len()
                }
                TypeData::Tensor { shape: TensorShape::Rank(rank), .. } => *rank as usize,
                _ => 0,
            },
            Value::Const(t) => t.ndim(),
            Value::Symbolic(t) => t.shape.len(),
            Value::Rational(r) => r.numerators.shape.len(),
            Value::Narrow(_, storage) => return self.check_result_size(name, storage),
            _ => 0,
        };
        check_rank(&subject, rank, &self.limits).map_err(Problem::invalid)
    }
}

/// Checks that no dim is negative, and that the size in bytes fits in 64 bits if all symbols are 1. If a symbol is 0, the tensor is
/// empty; if it is larger than 1, the tensor is usually larger. `subject` names the tensor in the message.
fn check_byte_count(
    subject: &str,
    func: &Function,
    dims: &[Sym],
    width: i64,
) -> Result<(), String> {
    let shown = || {
        let all: Vec<String> = dims.iter().map(|&d| func.syms.display(d).to_string()).collect();
        format!("[{}]", all.join(", "))
    };
    let sizes = || dims.iter().filter_map(|&d| func.syms.as_int(d));
    if let Some(size) = sizes().find(|&size| size < 0) {
        return Err(format!("{subject} has the shape {}, but a dim cannot be {size}", shown()));
    }
    if sizes().any(|size| size == 0) {
        return Ok(());
    }
    let bytes = dims.iter().filter(|&&d| is_monotone(&func.syms, d)).try_fold(
        width,
        |bytes, &d| match func.syms.evaluate(d, &|_| Some(1)) {
            Ok(size) => bytes.checked_mul(size.max(1)),
            Err(EvalError::Overflow) => None,
            Err(_) => Some(bytes),
        },
    );
    let describe =
        || format!("{subject} has the shape {}, whose size in bytes exceeds 64 bits", shown());
    bytes.map(drop).ok_or_else(describe)
}
