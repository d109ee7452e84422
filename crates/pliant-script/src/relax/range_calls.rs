//! Parsing of `R.range(start, stop, step)`, the range of a `for` loop.

use pliant_ir::relax::{Expr as IrExpr, TypeData};
use pliant_ir::{Attrs, DType, Op, Sym};

use super::FuncParser;
use crate::dialect_spellings::Namespace;
use crate::python::ast::{Expr, Range};
use crate::script_errors::{ErrorKind, Res};

const ITEM: Op = Op::new("relax.item");
const TRIP_COUNT: Op = Op::new("relax.trip_count");

/// The range of the counter of a `for` loop. The counter is normally the loop variable itself; if the step is not constant, it is
/// the iteration number.
pub(super) struct LoopRange {
    pub lo: Sym,
    pub hi: Sym,
    pub step: i64,
    /// The first value and the step of the loop variable if its step is not constant, so that the counter is the iteration number;
    /// `None` if the counter is the loop variable.
    pub loop_var: Option<(Sym, Sym)>,
}

impl<'s> FuncParser<'_, 's> {
    /// Parses the arguments of `R.range(hi)`, `R.range(lo, hi)` or `R.range(lo, hi, step)`.
    pub(super) fn range_args(&mut self, iter: &Expr<'s>) -> Res<LoopRange> {
        let call = iter.as_call().filter(|call| match self.cx.path(&call.func) {
            Some(path) => path.ns == Namespace::Relax && path.name == "range",
            None => call.func.as_name() == Some("range") && !self.scope.contains_key("range"),
        });
        let Some(call) = call else {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                iter.range,
                "a graph function can only loop over a range of integers",
                "write: for i in R.range(n):",
            ));
        };
        let mut args = Vec::with_capacity(3);
        for arg in &call.args {
            args.push(self.integer(arg)?);
        }
        let (lo, hi, step) = match *args.as_slice() {
            [hi] => (self.int(0), hi, None),
            [lo, hi] => (lo, hi, None),
            [lo, hi, step] => (lo, hi, Some(step)),
            _ => {
                let message = "R.range takes one to three arguments: stop, or start, stop and step";
                return Err(self.error(ErrorKind::Arguments, iter.range, message));
            }
        };
        let Some(step) = step else { return Ok(LoopRange { lo, hi, step: 1, loop_var: None }) };
        match self.b.func().syms.as_int(step) {
            Some(0) => {
                let message = "the step of R.range must not be 0";
                Err(self.error(ErrorKind::Value, iter.range, message))
            }
            Some(step) => Ok(LoopRange { lo, hi, step, loop_var: None }),
            None => {
                let iterations = self.trip_count([lo, hi, step], iter.range)?;
                Ok(LoopRange {
                    lo: self.int(0),
                    hi: iterations,
                    step: 1,
                    loop_var: Some((lo, step)),
                })
            }
        }
    }

    /// The number of iterations for the range `[lo, hi, step]` with a non-constant step. A step of 0 is a run-time error.
    fn trip_count(&mut self, range: [Sym; 3], at: Range) -> Res<Sym> {
        let operands = range.map(|sym| self.b.func_mut().int_value(sym, DType::Int64));
        let iterations = self.emit_op(TRIP_COUNT, &operands, Attrs::default(), &[], at)?;
        self.matched(iterations, DType::Int64, at)
    }

    /// Evaluates an integer scalar to a symbolic integer. If its value is not known at parse time, a `match_cast` binds it to a new
    /// symbol.
    fn integer(&mut self, e: &Expr<'s>) -> Res<Sym> {
        let val = self.value(e)?;
        if let Some(s) = self.as_sym(&val) {
            return Ok(s);
        }
        let value = self.operand(val, None, e.range)?;
        match *self.ty_of(value) {
            TypeData::Prim { dtype, .. } if dtype.is_integer() => {
                self.matched(value, dtype, e.range)
            }
            TypeData::Tensor { dtype: Some(dtype), .. }
                if dtype.is_integer()
                    && self.b.func().rank_of(self.b.func().expr_ty(value)) == Some(0) =>
            {
                let item = self.emit_op(ITEM, &[value], Attrs::default(), &[], e.range)?;
                self.matched(item, dtype, e.range)
            }
            _ => {
                let ty = self.b.func().expr_ty(value);
                let message = format!(
                    "a bound of a loop range must be an integer scalar, but has type {}",
                    self.ty_text(ty)
                );
                let help = "use n, x.shape[0], or a parameter n: R.Prim(\"int64\")";
                Err(self.error_help(ErrorKind::Value, e.range, message, help))
            }
        }
    }

    /// Creates a new symbol, and emits a `match_cast` that gives it the value of the integer
    /// scalar.
    fn matched(&mut self, scalar: IrExpr, dtype: DType, at: Range) -> Res<Sym> {
        let scalar = self.b.operand(scalar);
        let func = self.b.func_mut();
        let var = func.fresh_sym("m");
        let sym = func.syms.var(var);
        let ty = func.intern(TypeData::Prim { dtype, value: Some(sym) });
        self.b.set_span(self.cx.span(at));
        self.b.match_cast(scalar, ty, "gv");
        Ok(sym)
    }
}
