//! Division of vectors of integers.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::arith::DIV_ZERO;
use crate::function::FuncGen;

/// 1.5 * 2**52. The low bits of its sum with an integer of at most 51 bits are those of the integer.
const INTEGER_BITS: f64 = 6_755_399_441_055_744.0;

impl FuncGen<'_, '_> {
    /// The quotients of chunks of int32, rounded towards zero. A zero divisor fails the loop function. Quotients of float64 are
    /// exact if whole: otherwise they differ from a whole number by more than the rounding error. The smallest integer divided by
    /// -1 wraps.
    pub fn divide_int32(&mut self, x: &[Value], y: &[Value]) -> Rc<[Value]> {
        let zero = self.b.ins().iconst(types::I32, 0);
        let zero = self.b.ins().splat(types::I32X4, zero);
        let zeros: Vec<Value> =
            y.iter().map(|&y| self.b.ins().icmp(IntCC::Equal, y, zero)).collect();
        if let Some(any) = zeros.into_iter().reduce(|a, b| self.b.ins().bor(a, b)) {
            let any = self.b.ins().vany_true(any);
            self.check_not(any, DIV_ZERO);
        }
        let magic = self.b.ins().f64const(INTEGER_BITS);
        let magic = self.b.ins().splat(types::F64X2, magic);
        let (x, y) = (self.doubles(x.to_vec(), true), self.doubles(y.to_vec(), true));
        let halves: Vec<Value> = x
            .iter()
            .zip(y.iter())
            .map(|(&x, &y)| {
                let quotient = self.b.ins().fdiv(x, y);
                let whole = self.b.ins().trunc(quotient);
                let bits = self.b.ins().fadd(whole, magic);
                self.recast(bits, types::I64X2)
            })
            .collect();
        halves.chunks(2).map(|pair| self.low_halves(pair[0], pair[1])).collect()
    }
}
