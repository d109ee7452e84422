//! Code generation for integer divisions and remainders without traps.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use pliant_ir::tir::BinOp;

use crate::function_builder::{FuncGen, Gen};
use crate::values::{Value, lane_type};

/// The message of an integer division by zero. Its prefix marks the error as a `ZeroDivisionError`.
const DIV_ZERO: &str = "ZeroDivisionError: integer division by zero";

/// 1.5 * 2**52. The sum of this number and an integer of at most 51 bits contains the bits of the
/// integer in its low bits.
const MAGIC_F64_TO_INT: f64 = 6_755_399_441_055_744.0;

impl<'ctx> FuncGen<'_, 'ctx> {
    /// Emits a division of integers. At run time, a zero divisor fails the loop function, and the quotient of the smallest integer
    /// and -1 wraps.
    pub fn int_division(
        &mut self,
        op: BinOp,
        a: Value<'ctx>,
        b: Value<'ctx>,
        signed: bool,
    ) -> Gen<Value<'ctx>> {
        let zero = self.int_of_type(0, b.get_type());
        let is_zero = self.icmp(IntPredicate::EQ, b, zero)?;
        let any_zero = self.any_lane(is_zero)?;
        self.shape_error_if(any_zero, DIV_ZERO)?;
        let wants_quotient = matches!(op, BinOp::Div | BinOp::FloorDiv);
        if !signed {
            let instruction =
                if wants_quotient { InstructionOpcode::UDiv } else { InstructionOpcode::URem };
            return self.op(instruction, a, b);
        }
        let q = self.signed_quotient(a, b)?;
        if op == BinOp::Div {
            return Ok(q);
        }
        let product = self.op(InstructionOpcode::Mul, q, b)?;
        let r = self.op(InstructionOpcode::Sub, a, product)?;
        if op == BinOp::Mod {
            return Ok(r);
        }
        // To round down: if the remainder is nonzero and differs from the divisor in sign, the quotient is decremented,
        // and the divisor is added to the remainder.
        let is_nonzero = self.icmp(IntPredicate::NE, r, zero)?;
        let signs = self.op(InstructionOpcode::Xor, r, b)?;
        let signs_differ = self.icmp(IntPredicate::SLT, signs, zero)?;
        let adjust = self.op(InstructionOpcode::And, is_nonzero, signs_differ)?;
        let adjusted = if wants_quotient {
            let one = self.int_of_type(1, q.get_type());
            self.op(InstructionOpcode::Sub, q, one)?
        } else {
            self.op(InstructionOpcode::Add, r, b)?
        };
        self.select(adjust, adjusted, if wants_quotient { q } else { r })
    }

    /// Emits a division of signed integers that rounds towards zero. No divisor may be 0.
    fn signed_quotient(&self, a: Value<'ctx>, b: Value<'ctx>) -> Gen<Value<'ctx>> {
        let int = lane_type(b.get_type());
        let constant = b.is_vector_value() && b.into_vector_value().is_const();
        if b.is_vector_value() && !constant && int.into_int_type().get_bit_width() <= 32 {
            return self.quotient_by_floats(a, b);
        }
        // The smallest integer divided by -1 would trap, so -1 is replaced by 1 and the quotient is negated.
        let (one, minus_one, zero) = (
            self.int_of_type(1, b.get_type()),
            self.int_of_type(-1, b.get_type()),
            self.int_of_type(0, b.get_type()),
        );
        let by_minus_one = self.icmp(IntPredicate::EQ, b, minus_one)?;
        let safe = self.select(by_minus_one, one, b)?;
        let q = self.op(InstructionOpcode::SDiv, a, safe)?;
        let negated = self.op(InstructionOpcode::Sub, zero, q)?;
        self.select(by_minus_one, negated, q)
    }

    /// Divides vectors of integers of at most 32 bits in float64, because CPUs have no division of integer vectors.
    ///
    /// Truncating the float64 quotient is exact: a quotient that is not an integer differs from the nearest integer by
    /// more than the rounding error.
    fn quotient_by_floats(&self, a: Value<'ctx>, b: Value<'ctx>) -> Gen<Value<'ctx>> {
        let (float, int) = (self.unit.context.f64_type().into(), lane_type(b.get_type()));
        let a = self.convert(InstructionOpcode::SIToFP, a, float)?;
        let b = self.convert(InstructionOpcode::SIToFP, b, float)?;
        let quotient = self.op(InstructionOpcode::FDiv, a, b)?;
        let whole = self.same_type_intrinsic("llvm.trunc", &[quotient])?;
        let magic = self.float_of_type(MAGIC_F64_TO_INT, whole.get_type());
        let sum = self.op(InstructionOpcode::FAdd, whole, magic)?;
        let bits = self.bits_as(sum, self.unit.int_type(64))?;
        self.convert(InstructionOpcode::Trunc, bits, int)
    }
}
