//! Reductions of contiguous rows to their maximum or minimum, computed by vector math functions (`pliant_vec_*`) of the run-time
//! library.
//!
//! As for columns ([`super::column_extrema`]), propagating NaN takes several instructions per vector, and the library has wider
//! vectors. One call accumulates a whole row into a scalar. This requires that the reduction reads its operand unchanged from
//! memory, or from a tile.

use pliant_ir::tir::{BinOp, PrimFunc, Stmt, StmtData};
use pliant_kernel_api::vector_math_functions::{
    VectorMathFunction, VectorMathOperation, vector_math_function_for,
};
use rustc_hash::FxHashMap;

use super::column_extrema::reads_operand_along;
use super::emit_stage_loops::loop_nest;
use super::loop_nest_stages::{Reduction, Stage};
use super::reduction_loops::{initial_value, store_target};
use super::vector_math_tiles::{call_on_elements, new_tile};
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
    let dtype = f.buffer(store_target(s).0).dtype;
    let last = *s.axes.last()?;
    vector_math_function_for(operation, dtype, dtype).filter(|_| reads_operand_along(f, s, r, last))
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
    let call = call_on_elements(f, function, &[result, row], last.extent);
    let update = loop_nest(f, &s.axes[s.leading_spatial()..s.axes.len() - 1], call);
    let finish = f.store(buffer, &indices, result);
    let body = f.seq(vec![init, update, finish]);
    f.add_stmt(StmtData::Alloc(total, body))
}
