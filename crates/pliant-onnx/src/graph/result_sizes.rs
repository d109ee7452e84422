//! Checks during the import that the sizes of results are possible.

use pliant_ir::relax::{Function, TensorShape, TypeData};
use pliant_sym::{EvalError, Sym};

use super::Importer;
use crate::error::Problem;
use crate::size_relation::is_monotone;
use crate::tensor::check_rank;
use crate::value::Value;

impl Importer<'_> {
    /// Rejects a result with too high a rank, with a negative size, or with more elements than fit
    /// 64 bits, because no run could create it.
    ///
    /// # Errors
    /// Describes the problem.
    pub(super) fn check_result_size(&self, name: &str, value: &Value) -> Result<(), Problem> {
        let describe = |what: String| Problem::invalid(format!("its output '{name}' {what}"));
        let func = self.builder.func();
        let rank = match value {
            Value::Expr(e) => match func.ty(*e) {
                TypeData::Tensor { shape: TensorShape::Dims(dims), dtype } => {
                    let width = dtype.map_or(1, |d| d.size() as i64);
                    check_byte_count(func, dims, width).map_err(describe)?;
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
        check_rank(rank, &self.limits).map_err(describe)
    }
}

/// Whether a tensor with these dims is possible if all symbols are 1. Smaller symbols mean an empty
/// tensor, and larger ones usually mean more elements.
fn check_byte_count(func: &Function, dims: &[Sym], width: i64) -> Result<(), String> {
    let shown = || {
        let all: Vec<String> = dims.iter().map(|&d| func.syms.display(d).to_string()).collect();
        format!("[{}]", all.join(", "))
    };
    let sizes = || dims.iter().filter_map(|&d| func.syms.as_int(d));
    if let Some(size) = sizes().find(|&size| size < 0) {
        return Err(format!("is of shape {}: {size} is no size", shown()));
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
    let describe = || format!("is of shape {}: 64 bits do not count its bytes", shown());
    bytes.map(drop).ok_or_else(describe)
}
