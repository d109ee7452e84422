//! Runs `T.call_extern` of functions of the run-time library, which are vector math functions
//! (`pliant_vec_*`) and scalar functions.
//!
//! A symbol that a program registers (`pliant::register_symbol`) is the address of machine code.
//! Only a code generator can call it, because the call depends on its signature. The interpreter
//! rejects such calls.

use pliant_ir::DType;
use pliant_ir::tir::{Expr, Intrin, Ty};
use pliant_kernel_api::vector_math_functions::{
    VectorMathFunction, VectorMathOperation, vector_math_function,
};

use super::LoopFrame;
use super::intrinsics::float_intrin;
use super::scalar_arithmetic::{Val, cast, malformed, round, unsupported};
use crate::interp_error::Result;

impl LoopFrame<'_, '_, '_> {
    /// Runs `T.call_extern(name, arguments...)`.
    pub(super) fn call_extern(&mut self, args: &[Expr], ty: Ty) -> Result<Val> {
        let mut values = Vec::with_capacity(args.len());
        for &a in args {
            values.push(self.operand(a)?);
        }
        let Some((Val::Str(name), rest)) = values.split_first() else {
            return Err(malformed("the first argument of T.call_extern is not a name"));
        };
        if let Some(function) = vector_math_function(name) {
            return self.call_vector_math_function(function, rest);
        }
        // For example, `pliant_exp_f32` is `T.exp` on float32. Without the prefix, the C library's `exp` is on float64.
        let (function, dtype) = match name.strip_prefix("pliant_").and_then(|n| n.rsplit_once('_'))
        {
            Some((function, "f32")) => (function, DType::Float32),
            Some((function, "f64")) => (function, DType::Float64),
            _ => (&**name, DType::Float64),
        };
        let floats: Option<Vec<f64>> = rest.iter().map(|v| v.float().ok()).collect();
        let result = Intrin::from_name(function)
            .filter(|i| i.arity() == Some(rest.len()))
            .and_then(|i| float_intrin(i, &floats.filter(|f| !f.is_empty())?));
        match result {
            Some(v) => cast(&Val::Float(round(v, dtype)), dtype, ty.dtype),
            None => Err(unsupported(format!(
                "the function '{name}' called by T.call_extern is machine code, which the interpreter does not run: \
                 compile the module"
            ))),
        }
    }

    /// Runs a vector math function: a library function that computes an elementwise operation on contiguous elements.
    fn call_vector_math_function(
        &mut self,
        function: &VectorMathFunction,
        args: &[Val],
    ) -> Result<Val> {
        let invalid = || {
            let operands = function.operands.join(", ");
            let expected = format!("the results, {operands} and a count");
            malformed(&format!("the arguments of '{}' must be {expected}", function.symbol))
        };
        let Some((Val::Address(to, first), [operands @ .., count])) = args.split_first() else {
            return Err(invalid());
        };
        if operands.len() != function.operands.len() {
            return Err(invalid());
        }
        for i in 0..count.int()? {
            self.interp.step(1)?;
            let mut values = Vec::with_capacity(operands.len());
            for operand in operands {
                let Val::Address(view, first) = operand else { return Err(invalid()) };
                values.push(view.read_at(first.saturating_add(i))?.float()?);
            }
            let at = if function.accumulates() { *first } else { first.saturating_add(i) };
            if function.accumulates() {
                values.push(to.read_at(at)?.float()?);
            }
            let value = compute_element(function.operation, &values).ok_or_else(invalid)?;
            let from = function.operand_dtype;
            let value = cast(&Val::Float(round(value, from)), from, to.dtype)?;
            to.write_at(at, &value)?;
        }
        Ok(Val::Int(0))
    }
}

/// Computes one element of the result of an elementwise library function from the operand elements `values`. Returns `None` for
/// an unknown elementary function.
fn compute_element(operation: VectorMathOperation, values: &[f64]) -> Option<f64> {
    match (operation, values) {
        (VectorMathOperation::Elementary(name), _) => {
            float_intrin(Intrin::from_name(name)?, values)
        }
        // The caller converts to the type of the results.
        (VectorMathOperation::Convert, [x]) => Some(*x),
        (_, [x, y]) if x.is_nan() || y.is_nan() => Some(x + y),
        (VectorMathOperation::Maximum | VectorMathOperation::AccumulateMaximum, [x, y]) => {
            Some(if x.total_cmp(y).is_lt() { *y } else { *x })
        }
        (VectorMathOperation::Minimum | VectorMathOperation::AccumulateMinimum, [x, y]) => {
            Some(if x.total_cmp(y).is_gt() { *y } else { *x })
        }
        _ => None,
    }
}
