//! Runs `T.call_extern` of functions of the run-time library, which are slice functions and scalar functions.
//!
//! A symbol that a program registers (`pliant::register_symbol`) is the address of machine code. Only a code generator can call it,
//! because the call depends on its signature. The interpreter rejects such calls.

use pliant_ir::DType;
use pliant_ir::tir::{Expr, Intrin, Ty};

use super::LoopFrame;
use super::intrin::float_intrin;
use super::scalar::{Val, cast, malformed, round, unsupported};
use crate::error::Result;

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
        if name.starts_with("pliant_vec_") {
            return self.call_slice_function(name, rest);
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

    /// Runs a slice function, such as `pliant_vec_exp_f32` or `pliant_vec_f32_to_f16`. Its arguments are the addresses of the
    /// results and of the operands, and the number of elements.
    fn call_slice_function(&mut self, name: &str, args: &[Val]) -> Result<Val> {
        let ([Val::Address(to, first), operands @ ..], Some(count)) =
            (&args[..args.len().saturating_sub(1)], args.last())
        else {
            return Err(malformed(
                "the arguments of a slice function are not addresses and a count",
            ));
        };
        let function = name.strip_prefix("pliant_vec_").and_then(|n| n.rsplit_once('_'));
        let function = function.map_or("", |(n, _)| n);
        let intrinsic = Intrin::from_name(function);
        for i in 0..count.int()? {
            self.interp.step(1)?;
            let mut values = Vec::with_capacity(operands.len());
            for operand in operands {
                let Val::Address(view, first) = operand else {
                    return Err(malformed("an operand of a slice function is not an address"));
                };
                values.push(view.read_at(first.saturating_add(i))?.float()?);
            }
            let value = match (intrinsic, &*values) {
                (Some(f), [_, ..]) => float_intrin(f, &values),
                (None, [x, y]) if x.is_nan() || y.is_nan() => Some(x + y),
                (None, [x, y]) if function == "maximum" => {
                    Some(if x.total_cmp(y).is_lt() { *y } else { *x })
                }
                (None, [x, y]) if function == "minimum" => {
                    Some(if x.total_cmp(y).is_gt() { *y } else { *x })
                }
                // A conversion only rounds.
                (None, [x]) => Some(*x),
                _ => None,
            };
            let value =
                value.ok_or_else(|| malformed(&format!("unknown slice function '{name}'")))?;
            to.write_at(first.saturating_add(i), &Val::Float(round(value, to.dtype)))?;
        }
        Ok(Val::Int(0))
    }
}
