//! Code generation for divisions of int32 vectors, which are computed by division in float64.

use std::rc::Rc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};

use crate::binary_operators::DIV_ZERO;
use crate::function_builder::FuncGen;

/// 1.5 * 2**52. The sum of this number and an integer of at most 51 bits contains the bits of the
/// integer in its low bits.
const MAGIC_F64_TO_INT: f64 = 6_755_399_441_055_744.0;

impl FuncGen<'_, '_> {
    /// Divides 128-bit chunks of int32 and rounds towards zero. A zero divisor fails the loop function. The smallest integer
    /// divided by -1 wraps.
    ///
    /// Truncating the float64 quotient is exact: a quotient that is not an integer differs from the nearest integer by
    /// more than the rounding error.
    pub fn divide_int32(&mut self, x: &[Value], y: &[Value]) -> Rc<[Value]> {
        let zero = self.b.ins().iconst(types::I32, 0);
        let zero = self.b.ins().splat(types::I32X4, zero);
        let is_zero: Vec<Value> =
            y.iter().map(|&y| self.b.ins().icmp(IntCC::Equal, y, zero)).collect();
        if let Some(any) = is_zero.into_iter().reduce(|a, b| self.b.ins().bor(a, b)) {
            let any = self.b.ins().vany_true(any);
            self.shape_error_if(any, DIV_ZERO);
        }
        let magic = self.b.ins().f64const(MAGIC_F64_TO_INT);
        let magic = self.b.ins().splat(types::F64X2, magic);
        let (x, y) = (self.int32_to_f64(x.to_vec(), true), self.int32_to_f64(y.to_vec(), true));
        let halves: Vec<Value> = x
            .iter()
            .zip(y.iter())
            .map(|(&x, &y)| {
                let quotient = self.b.ins().fdiv(x, y);
                let whole = self.b.ins().trunc(quotient);
                let bits = self.b.ins().fadd(whole, magic);
                self.bitcast_chunk(bits, types::I64X2)
            })
            .collect();
        halves.chunks(2).map(|pair| self.low_halves(pair[0], pair[1])).collect()
    }
}
