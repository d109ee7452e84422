//! Splits values into calls of vector math functions on tiles. Vector math functions (`pliant_vec_*`) are functions of the
//! run-time library that apply an elementary function, such as `exp`, to adjacent elements.
//!
//! Generated code has vectors of at most 128 bits. Vector math functions (`pliant_vec_<name>_<type>`) use the widest vectors of
//! the machine, with the same sequence of operations. A loop over a vectorized axis whose value contains elementary functions is
//! therefore tiled: the operands of a function are computed for a whole tile, the vector math function is called on the tile, and
//! the rest of the value reads its results. Operands that are contiguous in memory need no tile, and neither do results that are
//! stored directly. Several tiles fit into the L1 cache. The last tile ends with the loop, so no point outside the loop is
//! computed.
//!
//! Code generators that use the widest vectors of the machine expand elementary functions in the loop instead, so there are no
//! tiles for them.
//!
//! Generated code computes elementary functions in a branch of a conditional. It also computes functions on a constant number of
//! points below [`MIN_POINTS`], for which a call is slower. Conversions from and to float16, and from float32 to bfloat16 and to
//! 8- and 16-bit integers, use vector math functions, too.

use pliant_ir::tir::{BinOp, Buffer, Expr, ExprData, Intrin, PrimFunc, Stmt, StmtData, Ty, Var};
use pliant_kernel_api::vector_math_functions::{
    VectorMathFunction, VectorMathOperation, vector_math_function_for,
};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit_stage_loops::{
    is_contiguous_along, is_vectorizable, strip_loops_by_position, vector_lanes, vector_widths,
};
use super::row_group_fusion::serial_loop;
use crate::access_guards;
use crate::code_generator_vectors::has_widest_vectors;
use crate::statement_traversal::{for_each_value, map_operands, substitute_expr, uses_any};

/// The number of loop points per tile, which is the number of elements of a tile.
pub const TILE_POINTS: i64 = 512;
/// The minimum number of points for a call of a vector math function (`pliant_vec_*`), if the number is constant: about two
/// vectors. For fewer points, generated code is faster.
pub const MIN_POINTS: i64 = 16;
/// Maximum number of vector math function calls (`pliant_vec_*`) for one value. Each call may need a tile on the stack.
const MAX_FUNCTIONS: usize = 8;

/// Returns the vector math function (`pliant_vec_*`) of an intrinsic for float32 or float64 elements, if there is one.
fn function_of(intrin: Intrin, dtype: DType) -> Option<&'static VectorMathFunction> {
    vector_math_function_for(VectorMathOperation::Elementary(intrin.name()), dtype, dtype)
}

/// Returns the data type in which an elementary function of `dtype` elements is computed: float32 for 16-bit floats, otherwise
/// `dtype`.
fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        other => other,
    }
}

/// Returns the vector math function (`pliant_vec_*`) that computes an expression for adjacent points of an axis; `None` if
/// there is no such function, or if the expression does not depend on the axis.
fn vector_math_function(f: &PrimFunc, e: Expr, axis: Var) -> Option<&'static VectorMathFunction> {
    let function = if widens_float16(f, e, axis) {
        vector_math_function_for(VectorMathOperation::Convert, DType::Float16, DType::Float32)
    } else {
        intrinsic_function(f, e)
    };
    function.filter(|_| uses_any(f, e, &|v| v == axis))
}

/// Whether an expression converts adjacent float16 elements to float32.
fn widens_float16(f: &PrimFunc, e: Expr, axis: Var) -> bool {
    let ExprData::Cast(to, load) = *f.expr(e) else { return false };
    let ExprData::Load(buffer, indices) = f.expr(load) else { return false };
    to == Ty::scalar(DType::Float32)
        && f.buffer(*buffer).dtype == DType::Float16
        && is_contiguous_along(f, *buffer, indices, axis)
        // Addresses of kernel arguments must not depend on memory.
        && !indices.iter().any(|&i| access_guards::reads_memory(f, i))
}

/// Returns the vector math function (`pliant_vec_*`) for a call of an intrinsic, in the data type in which the intrinsic is
/// computed. `None` if there is none, and for squares, because a multiplication is faster.
fn intrinsic_function(f: &PrimFunc, e: Expr) -> Option<&'static VectorMathFunction> {
    let ExprData::Call(intrin, args, _) = f.expr(e) else { return None };
    let square = *intrin == Intrin::Pow
        && matches!(f.expr(args[1]), ExprData::Float(bits, _) if f64::from_bits(*bits) == 2.0);
    if square || f.expr_ty(e).lanes != 1 {
        return None;
    }
    function_of(*intrin, compute_dtype(f.expr_ty(e).dtype))
}

/// Whether the value of a store can be computed in tiles: it contains elementary functions that depend on the axis or converts to
/// a narrow type, and the operands of these functions or conversions can be vectorized.
pub fn can_tile(f: &PrimFunc, store: Store<'_>, axis: Var) -> bool {
    if has_widest_vectors(f) {
        return false;
    }
    let vectorizable = |e: &Expr| is_vectorizable(f, *e, axis, true);
    if let Some((_, wide)) = stored_conversion(f, store, axis) {
        return vectorizable(&wide);
    }
    let functions = tileable_functions(f, store.2, axis);
    let operands = |&e: &Expr| match f.expr(e) {
        ExprData::Call(_, args, _) => args.iter().all(vectorizable),
        // The operand of a widening conversion is in memory.
        _ => true,
    };
    !functions.is_empty() && functions.iter().all(operands)
}

/// Returns the vector math function (`pliant_vec_*`) that converts float32 values to the type of the stored elements, and its
/// operand, if a store converts adjacent elements to a narrower type.
fn stored_conversion(
    f: &PrimFunc,
    (buffer, indices, value): Store<'_>,
    axis: Var,
) -> Option<(&'static VectorMathFunction, Expr)> {
    let ExprData::Cast(ty, wide) = *f.expr(value) else { return None };
    let converts = f.expr_ty(wide) == Ty::scalar(DType::Float32)
        && ty == Ty::scalar(f.buffer(buffer).dtype)
        && is_contiguous_along(f, buffer, indices, axis)
        && uses_any(f, wide, &|v| v == axis);
    let function = vector_math_function_for(VectorMathOperation::Convert, DType::Float32, ty.dtype);
    function.filter(|_| converts).map(|function| (function, wide))
}

/// Returns the subexpressions that vector math functions (`pliant_vec_*`) can compute and that are evaluated at every point of
/// the axis.
fn tileable_functions(f: &PrimFunc, value: Expr, axis: Var) -> Vec<Expr> {
    let mut found = Vec::new();
    let (mut stack, mut seen) = (vec![value], rustc_hash::FxHashSet::default());
    while let Some(e) = stack.pop() {
        if !seen.insert(e) || is_opaque(f, e) {
            continue;
        }
        if vector_math_function(f, e, axis).is_some() {
            found.push(e);
        }
        pliant_ir::tir::visit::for_each_operand(f.expr(e), |a| stack.push(a));
    }
    found
}

/// Whether the operands of an expression must stay in place instead of being computed in a tile, because they are evaluated only
/// under a condition, or are indices or addresses.
pub(super) fn is_opaque(f: &PrimFunc, e: Expr) -> bool {
    matches!(
        f.expr(e),
        ExprData::Load(..)
            | ExprData::Call(
                Intrin::IfThenElse
                    | Intrin::CallExtern
                    | Intrin::CallPacked
                    | Intrin::CallKernel
                    | Intrin::AddressOf,
                ..
            )
    )
}

/// Estimates the number of operations of a value. Elementary functions that vector math functions (`pliant_vec_*`) can compute
/// count as fewer operations than other elementary functions.
pub fn estimated_operations(f: &PrimFunc, value: Expr) -> i64 {
    let mut functions = 0;
    for_each_value(f, value, |e| functions += i64::from(intrinsic_function(f, e).is_some()));
    crate::inline_elementwise_stages::operation_count(f, value) as i64 - 10 * functions
}

/// A call of a vector math function (`pliant_vec_*`), which computes one tile of results.
struct SliceCall {
    function: &'static VectorMathFunction,
    /// The operands of the call, as expressions of the vectorized axis. An operand that uses the result of an earlier call in
    /// [`TiledValue::calls`], such as `y * log(x)` in `exp(y * log(x))`, loads this result from the tile of the earlier call, at
    /// [`TiledValue::position`].
    args: Vec<Expr>,
    /// The tile that receives the results.
    tile: Buffer,
}

/// A value that is split into calls of vector math functions (`pliant_vec_*`) and the remaining expression, which reads their
/// results.
pub struct TiledValue {
    calls: Vec<SliceCall>,
    /// The variable for the position in a tile.
    position: Var,
    /// The remaining expression, which reads the results of the calls from the tiles.
    pub value: Expr,
    /// Whether the last call writes its results directly to the buffer to which the value is stored, instead of to a tile.
    stores_result: bool,
}

/// A store that may be tiled: (buffer, indices, value).
pub type Store<'a> = (Buffer, &'a [Expr], Expr);

/// Splits the value of a store along an axis of `extent` points into calls of vector math functions (`pliant_vec_*`) and the
/// remaining expression. `None` if no vector math function can be called, or if calls are not profitable.
pub fn plan_tiles(
    f: &mut PrimFunc,
    store: Store<'_>,
    axis: Var,
    extent: Expr,
) -> Option<TiledValue> {
    let (buffer, indices, value) = store;
    let few = f.as_int(extent).is_some_and(|n| n < MIN_POINTS);
    let functions = tileable_functions(f, value, axis).len();
    if few || functions > MAX_FUNCTIONS || !can_tile(f, store, axis) || reads_other_points(f, store)
    {
        return None;
    }
    let position = f.size_var("place");
    let mut t = TiledValue { calls: Vec::new(), position, value, stores_result: false };
    let mut memo = FxHashMap::default();
    // Addresses of kernel arguments must not depend on memory.
    let constant_address = !indices.iter().any(|&i| access_guards::reads_memory(f, i));
    let conversion = stored_conversion(f, store, axis).filter(|_| constant_address);
    if let Some((function, wide)) = conversion {
        let wide = t.extract_calls(f, wide, axis, &mut memo);
        t.push_call(f, function, vec![wide]);
        t.stores_result = true;
    } else {
        t.value = t.extract_calls(f, value, axis, &mut memo);
        let last = t.calls.last().map(|s| (s.tile, s.function.result_dtype));
        let is_last_result =
            matches!(f.expr(t.value), ExprData::Load(b, _) if Some(*b) == last.map(|l| l.0));
        t.stores_result = is_last_result
            && constant_address
            && last.is_some_and(|l| l.1 == f.buffer(buffer).dtype)
            && is_contiguous_along(f, buffer, indices, axis);
    }
    Some(t)
}

/// Whether a value reads elements that the store writes at other points.
fn reads_other_points(f: &PrimFunc, (buffer, indices, value): Store<'_>) -> bool {
    let mut found = false;
    pliant_ir::tir::visit::for_each_expr(f, value, |e| {
        found |= matches!(f.expr(e), ExprData::Load(b, i) if *b == buffer && **i != *indices);
    });
    found
}

/// Creates the local buffer of a tile, with `size` elements.
pub(super) fn new_tile(f: &mut PrimFunc, dtype: DType, size: i64) -> Buffer {
    f.local_buffer("tile", dtype, size)
}

/// Emits a call of a vector math function (`pliant_vec_*`). `elements` are the first element of the results and of each operand,
/// and `count` is the number of elements.
pub(super) fn call_on_elements(
    f: &mut PrimFunc,
    function: &VectorMathFunction,
    elements: &[Expr],
    count: Expr,
) -> Stmt {
    let mut args = vec![f.add_expr(ExprData::Str(function.symbol.into()))];
    args.extend(elements.iter().map(|&element| f.call(Intrin::AddressOf, &[element])));
    args.push(count);
    let call = f.add_expr(ExprData::Call(Intrin::CallExtern, args.into(), Ty::I64));
    f.add_stmt(StmtData::Evaluate(call))
}

impl TiledValue {
    /// Adds calls of vector math functions (`pliant_vec_*`) for the elementary functions in an expression. Returns the expression
    /// with the functions replaced by loads of their results.
    fn extract_calls(
        &mut self,
        f: &mut PrimFunc,
        e: Expr,
        axis: Var,
        memo: &mut FxHashMap<Expr, Expr>,
    ) -> Expr {
        if let Some(&known) = memo.get(&e) {
            return known;
        }
        let function = vector_math_function(f, e, axis);
        let new = if is_opaque(f, e) {
            e
        } else {
            map_operands(f, e, |f, a| self.extract_calls(f, a, axis, memo))
        };
        let new = match (function, f.expr(new).clone()) {
            (Some(function), ExprData::Call(_, args, _)) => {
                let ty = f.expr_ty(e);
                let dtype = compute_dtype(ty.dtype);
                let args = args.iter().map(|&a| f.cast(a, Ty::scalar(dtype))).collect();
                let result = self.push_call(f, function, args);
                f.cast(result, ty)
            }
            (Some(function), ExprData::Cast(_, load)) => self.push_call(f, function, vec![load]),
            _ => new,
        };
        memo.insert(e, new);
        new
    }

    /// Adds a call of a vector math function (`pliant_vec_*`) with the operands `args`. Returns a load of its result at the
    /// current position in the tile.
    fn push_call(
        &mut self,
        f: &mut PrimFunc,
        function: &'static VectorMathFunction,
        args: Vec<Expr>,
    ) -> Expr {
        let tile = new_tile(f, function.result_dtype, TILE_POINTS);
        self.calls.push(SliceCall { function, args, tile });
        let offset = f.var_expr(self.position);
        f.load(tile, &[offset])
    }

    /// Returns the remaining expression at point `at` of the axis. The expression reads the tiles at position `offset`.
    pub fn value_at(&self, f: &mut PrimFunc, axis: Var, at: Expr, offset: Expr) -> Expr {
        let map = FxHashMap::from_iter([(axis, at), (self.position, offset)]);
        substitute_expr(f, self.value, &map)
    }

    /// Emits the tiled loop over `0..extent`. `target` is the stored element. `map` converts a position in this range to a value
    /// of the axis. `finish` emits the statements after the calls for one tile; its arguments are the first position and the
    /// number of points of the tile.
    pub fn emit(
        &self,
        f: &mut PrimFunc,
        (axis, extent): (Var, Expr),
        target: Option<(Buffer, &[Expr])>,
        map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
        finish: &mut dyn FnMut(&mut PrimFunc, Expr, Expr) -> Stmt,
    ) -> Stmt {
        let (one_tile, tile) =
            (f.as_int(extent).is_some_and(|n| n <= TILE_POINTS), f.size_var("tile"));
        let size = f.int(TILE_POINTS);
        let (base, points) = if one_tile {
            (f.int(0), extent)
        } else {
            let tile = f.var_expr(tile);
            let base = f.mul(tile, size);
            let left = f.binary(BinOp::Sub, extent, base);
            (base, f.binary(BinOp::Min, size, left))
        };
        let (mut out, mut buffers) = (Vec::new(), Vec::new());
        for (k, call) in self.calls.iter().enumerate() {
            let target = target.filter(|_| self.stores_result && k + 1 == self.calls.len());
            self.emit_call(f, call, (axis, base, points), target, map, &mut out, &mut buffers);
        }
        if !self.stores_result {
            out.push(finish(f, base, points));
        }
        let mut s = f.seq(out);
        if !one_tile {
            let up = f.int(TILE_POINTS - 1);
            let up = f.add(extent, up);
            let iterations = f.binary(BinOp::FloorDiv, up, size);
            s = serial_loop(f, tile, iterations, s);
        }
        buffers.into_iter().fold(s, |s, b| f.add_stmt(StmtData::Alloc(b, s)))
    }

    /// Emits one call of a vector math function (`pliant_vec_*`) on one tile. Appends statements to `out` and new tiles to
    /// `buffers`.
    #[expect(
        clippy::too_many_arguments,
        reason = "the last two parameters are the lists to which results are appended"
    )]
    fn emit_call(
        &self,
        f: &mut PrimFunc,
        call: &SliceCall,
        (axis, base, points): (Var, Expr, Expr),
        target: Option<(Buffer, &[Expr])>,
        map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
        out: &mut Vec<Stmt>,
        buffers: &mut Vec<Buffer>,
    ) {
        let (zero, function) = (f.int(0), call.function);
        let first = map(f, base);
        let origin = FxHashMap::from_iter([(axis, first), (self.position, zero)]);
        let mut result_tile = Some(call.tile);
        let result = match target {
            Some((buffer, indices)) => {
                let indices: Vec<Expr> =
                    indices.iter().map(|&i| substitute_expr(f, i, &origin)).collect();
                f.load(buffer, &indices)
            }
            None => {
                buffers.push(call.tile);
                f.load(call.tile, &[zero])
            }
        };
        let mut elements = vec![result];
        for &arg in &call.args {
            if self.is_contiguous_operand(f, arg, axis, function.operand_dtype) {
                elements.push(substitute_expr(f, arg, &origin));
                continue;
            }
            // The first computed operand shares the tile of the results, if there is one and the types are equal.
            let can_share = target.is_none() && function.operand_dtype == function.result_dtype;
            let tile = match result_tile.take().filter(|_| can_share) {
                Some(tile) => tile,
                None => {
                    let tile = new_tile(f, function.operand_dtype, TILE_POINTS);
                    buffers.push(tile);
                    tile
                }
            };
            let widths = if is_vectorizable(f, arg, axis, true) {
                vector_widths(vector_lanes(f, arg))
            } else {
                vec![1]
            };
            out.push(strip_loops_by_position(f, points, &widths, &mut |f, offset| {
                let at = f.add(base, offset);
                let at = map(f, at);
                let value = substitute_expr(
                    f,
                    arg,
                    &FxHashMap::from_iter([(axis, at), (self.position, offset)]),
                );
                f.store(tile, &[offset], value)
            }));
            elements.push(f.load(tile, &[zero]));
        }
        out.push(call_on_elements(f, function, &elements, points));
    }

    /// Whether an operand is contiguous in memory along the axis, with the element type that the function requires, so that it
    /// needs no tile. Its address must not depend on values in memory.
    fn is_contiguous_operand(&self, f: &PrimFunc, arg: Expr, axis: Var, dtype: DType) -> bool {
        let ExprData::Load(buffer, indices) = f.expr(arg) else { return false };
        if indices.iter().any(|&i| access_guards::reads_memory(f, i)) {
            return false;
        }
        let is_tile =
            self.calls.iter().any(|s| s.tile == *buffer && s.function.result_dtype == dtype);
        is_tile
            || f.buffer(*buffer).dtype == dtype && is_contiguous_along(f, *buffer, indices, axis)
    }
}
