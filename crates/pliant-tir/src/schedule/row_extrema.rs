//! Reductions of contiguous rows to their maximum or minimum, computed by vector math functions (`pliant_vec_*`) of the run-time
//! library.
//!
//! As for columns ([`super::column_extrema`]), propagating NaN takes several instructions per vector, and the library has wider
//! vectors. One call accumulates a whole row into a scalar. This requires that the reduction reads its operand unchanged from
//! memory, or from a tile.

use pliant_ir::tir::{BinOp, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty};
use pliant_kernel_api::vector_math_functions::{
    VectorMathFunction, VectorMathOperation, vector_math_function_for,
};
use rustc_hash::FxHashMap;

use super::emit_stage_loops::{is_contiguous_along, loop_nest};
use super::loop_nest_stages::{Reduction, Stage};
use super::reduction_loops::{initial_value, store_target};
use super::vector_math_tiles::{MIN_POINTS, new_tile};
use crate::access_guards;
use crate::code_generator_vectors::has_widest_vectors;
use crate::statement_traversal::substitute_expr;

/// Returns the vector math function (`pliant_vec_*`) that accumulates the operand of a reduction along its last axis; `None` if no
/// vector math function can do this.
pub fn accumulation_function(
    f: &PrimFunc,
    s: &Stage,
    r: &Reduction,
) -> Option<&'static VectorMathFunction> {
    let operation = match r.op {
        BinOp::Max => VectorMathOperation::AccumulateMaximum,
        BinOp::Min => VectorMathOperation::AccumulateMinimum,
        _ => return None,
    };
    let (buffer, _) = store_target(s);
    let dtype = f.buffer(buffer).dtype;
    let last = s.axes.last()?;
    let ExprData::Load(from, indices) = f.expr(r.value) else { return None };
    let is_contiguous = *from != buffer
        && f.buffer(*from).dtype == dtype
        && is_contiguous_along(f, *from, indices, last.var)
        && !indices.iter().any(|&i| access_guards::reads_memory(f, i))
        && s.guards.is_empty();
    let few = f.as_int(last.extent).is_some_and(|n| n < MIN_POINTS);
    vector_math_function_for(operation, dtype, dtype)
        .filter(|_| is_contiguous && !few && !has_widest_vectors(f))
}

/// Emits a reduction over a contiguous last axis as calls of `function`, one for each row.
pub fn accumulate_rows(
    f: &mut PrimFunc,
    s: &Stage,
    r: &Reduction,
    function: &VectorMathFunction,
) -> Stmt {
    let (buffer, indices) = store_target(s);
    let last = s.axes[s.axes.len() - 1];
    let total = new_tile(f, function.result_dtype, 1);
    let zero = f.int(0);
    let first = initial_value(f, s);
    let init = f.store(total, &[zero], first);
    let row = substitute_expr(f, r.value, &FxHashMap::from_iter([(last.var, zero)]));
    let result = f.load(total, &[zero]);
    let name = f.add_expr(ExprData::Str(function.symbol.into()));
    let addresses = [result, row].map(|element| f.call(Intrin::AddressOf, &[element]));
    let args = [name, addresses[0], addresses[1], last.extent];
    let call = f.add_expr(ExprData::Call(Intrin::CallExtern, args.into(), Ty::I64));
    let call = f.add_stmt(StmtData::Evaluate(call));
    let update = loop_nest(f, &s.axes[s.leading_spatial()..s.axes.len() - 1], call);
    let finish = f.store(buffer, &indices, result);
    let body = f.seq(vec![init, update, finish]);
    f.add_stmt(StmtData::Alloc(total, body))
}
