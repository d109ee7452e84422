//! The conditions under which calls of vector math functions of the run-time library (`pliant_vec_*`) stay inside their buffers.

use pliant_ir::tir::{BinOp, Expr, ExprData, Intrin, PrimFunc};
use pliant_kernel_api::vector_math_functions::{VectorMathFunction, vector_math_function};
use pliant_tensor::DType;

/// Maximum number of elements and maximum stride in a call of a vector math function (`pliant_vec_*`), in elements. Within
/// this limit, the addresses that the library computes fit 63 bits.
const LIMIT: i64 = 1 << 30;

/// Returns the symbol of the called function if it is a vector math function (`pliant_vec_*`); otherwise `None`.
pub fn callee_symbol(f: &PrimFunc, args: &[Expr]) -> Option<&'static str> {
    callee(f, args).map(|function| function.symbol)
}

/// Collects the conditions under which the operands of a call stay inside their buffers.
struct OperandChecks {
    /// The element type that the called function requires for the operands.
    dtype: DType,
    conditions: Vec<Expr>,
}

impl OperandChecks {
    /// Adds the condition that a size or stride is between 0 and [`LIMIT`].
    fn require_limit(&mut self, f: &mut PrimFunc, e: Expr) {
        let (zero, limit) = (f.int(0), f.int(LIMIT));
        let low = f.binary(BinOp::Le, zero, e);
        let high = f.binary(BinOp::Le, e, limit);
        self.conditions.push(f.binary(BinOp::And, low, high));
    }

    /// Adds the condition that the elements of an operand are inside its buffer. `dims` lists (stride, extent) of each dim, in
    /// elements. Returns `None` if the operand is not the address of an element of a dense buffer with the required type.
    fn require_in_bounds(
        &mut self,
        f: &mut PrimFunc,
        address: Expr,
        dims: &[(Expr, Expr)],
    ) -> Option<()> {
        let ExprData::Call(Intrin::AddressOf, element, _) = f.expr(address).clone() else {
            return None;
        };
        let ExprData::Load(buffer, indices) = f.expr(*element.first()?).clone() else {
            return None;
        };
        if f.buffer(buffer).dtype != self.dtype || !f.buffer(buffer).strides.is_empty() {
            return None;
        }
        let (zero, one) = (f.int(0), f.int(1));
        let mut last = crate::flatten_buffers::linear(f, buffer, &indices).ok()?;
        let mut total = one;
        for d in f.buffer(buffer).shape.clone() {
            total = f.mul(total, d);
        }
        let first = f.binary(BinOp::Le, zero, last);
        let below = f.binary(BinOp::Le, last, total);
        let first = f.binary(BinOp::And, first, below);
        let mut empty = None;
        for &(stride, extent) in dims {
            self.require_limit(f, stride);
            let none = f.binary(BinOp::Le, extent, zero);
            empty = Some(empty.map_or(none, |e| f.binary(BinOp::Or, e, none)));
            let steps = f.binary(BinOp::Sub, extent, one);
            let distance = f.mul(steps, stride);
            last = f.add(last, distance);
        }
        let inside = f.binary(BinOp::Lt, last, total);
        let inside = f.binary(BinOp::And, first, inside);
        self.conditions.push(f.binary(BinOp::Or, empty?, inside));
        Some(())
    }
}

/// Returns the conditions under which a call of a vector math function (`pliant_vec_*`) stays inside its buffers; `None` for
/// other functions and for invalid arguments.
///
/// `args` consists of the name of the function, the address of the results, the addresses of the operands, and the number of
/// elements.
pub fn bounds_conditions(f: &mut PrimFunc, args: &[Expr]) -> Option<Vec<Expr>> {
    let function = callee(f, args)?;
    let [_, result, operands @ .., n] = args else { return None };
    let (n, one) = (*n, f.int(1));
    let mut conditions = Vec::new();
    for (k, &address) in [*result].iter().chain(operands).enumerate() {
        let dtype = if k == 0 { function.result_dtype } else { function.operand_dtype };
        let mut checks = OperandChecks { dtype, conditions };
        checks.require_limit(f, n);
        let count = if k == 0 && function.accumulates() { one } else { n };
        checks.require_in_bounds(f, address, &[(one, count)])?;
        conditions = checks.conditions;
    }
    Some(conditions)
}

/// Returns the vector math function (`pliant_vec_*`) that a call names; `None` if it names another function.
fn callee(f: &PrimFunc, args: &[Expr]) -> Option<&'static VectorMathFunction> {
    let ExprData::Str(name) = f.expr(*args.first()?) else { return None };
    vector_math_function(name)
}
