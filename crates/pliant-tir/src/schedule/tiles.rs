//! Tiles: the slice functions of the run-time library compute elementary functions of adjacent points.
//!
//! Generated code has vectors of at most 128 bits. The library's functions (`pliant_vec_<name>_<type>`) have the widest vectors of
//! the machine, with the same sequences of operations. A loop over a vectorized axis whose value contains such functions is
//! therefore tiled: the operands of a function are computed for a whole tile, the function is called on it, and the rest of the
//! value reads its results. Operands that are unchanged in memory, and results that are the whole value, need no tile. A tile is
//! small enough to stay in the first-level cache together with others. The last tile ends with the loop, so that no point outside
//! the loop is computed.
//!
//! Functions in a branch that may not be taken stay in generated code, and so do functions of few points: if the number of points
//! is known, a call pays from [`FEW`] points on. float16 is converted in tiles too, and bfloat16 is rounded in them.

use pliant_ir::tir::{
    BinOp, Buffer, BufferData, Expr, ExprData, Intrin, PrimFunc, Scope, Stmt, StmtData, Ty, Var,
};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::emit::{along_axis, lanes, serial_strips, vectorizable, widths};
use super::group::serial;
use crate::guards;
use crate::walk::{for_each_value, map_operands, substitute_expr, uses_any};

/// The number of points of a tile.
pub const TILE: i64 = 512;
/// If the number of points is known to be below this, generated code is faster than a call: about two vectors of the library.
pub const FEW: i64 = 16;
/// Maximum number of functions of one value: each may need a tile on the stack.
const MOST: usize = 8;

/// The intrinsics that have a slice function for float32.
const FUNCTIONS: [Intrin; 20] = [
    Intrin::Exp,
    Intrin::Log,
    Intrin::Log1p,
    Intrin::Sigmoid,
    Intrin::Sinh,
    Intrin::Cosh,
    Intrin::Tanh,
    Intrin::Asinh,
    Intrin::Acosh,
    Intrin::Atanh,
    Intrin::Sin,
    Intrin::Cos,
    Intrin::Tan,
    Intrin::Asin,
    Intrin::Acos,
    Intrin::Atan,
    Intrin::Erf,
    Intrin::Gelu,
    Intrin::Atan2,
    Intrin::Pow,
];

/// The symbols of all functions that generated code may call on tiles.
pub fn symbols() -> Vec<String> {
    let functions = FUNCTIONS.iter().flat_map(|&f| {
        [DType::Float32, DType::Float64].into_iter().filter_map(move |d| symbol(f, d))
    });
    let conversions = [DType::Float16, DType::BFloat16].map(narrowing);
    functions.chain(conversions).chain([WIDENING.into()]).collect()
}

/// The conversion of float16 to float32.
const WIDENING: &str = "pliant_vec_f16_to_f32";

/// The slice function of an intrinsic over elements of float32 or float64.
fn symbol(intrin: Intrin, dtype: DType) -> Option<String> {
    let suffix = match dtype {
        DType::Float32 => "f32",
        DType::Float64 if intrin != Intrin::Pow => "f64",
        _ => return None,
    };
    FUNCTIONS.contains(&intrin).then(|| format!("pliant_vec_{}_{suffix}", intrin.name()))
}

/// The conversion of float32 to a 16-bit float.
fn narrowing(dtype: DType) -> String {
    format!("pliant_vec_f32_to_{}", if dtype == DType::Float16 { "f16" } else { "bf16" })
}

/// The type in which functions of a type are computed.
fn computed(dtype: DType) -> DType {
    match dtype {
        DType::Float16 | DType::BFloat16 => DType::Float32,
        other => other,
    }
}

/// The slice function that computes a value, if the value depends on the axis.
fn moved(f: &PrimFunc, e: Expr, axis: Var) -> Option<String> {
    let symbol = if widens(f, e, axis) { Some(WIDENING.into()) } else { function(f, e) };
    symbol.filter(|_| uses_any(f, e, &|v| v == axis))
}

/// Whether an expression converts adjacent float16 elements to float32.
fn widens(f: &PrimFunc, e: Expr, axis: Var) -> bool {
    let ExprData::Cast(to, load) = *f.expr(e) else { return false };
    let ExprData::Load(buffer, indices) = f.expr(load) else { return false };
    to == Ty::scalar(DType::Float32)
        && f.buffer(*buffer).dtype == DType::Float16
        && along_axis(f, *buffer, indices, axis)
        // Addresses of kernel arguments must not depend on memory.
        && !indices.iter().any(|&i| guards::reads(f, i))
}

/// The slice function for a call of an intrinsic, over its computed type.
fn function(f: &PrimFunc, e: Expr) -> Option<String> {
    let ExprData::Call(intrin, args, _) = f.expr(e) else { return None };
    let square = *intrin == Intrin::Pow
        && matches!(f.expr(args[1]), ExprData::Float(bits, _) if f64::from_bits(*bits) == 2.0);
    if square || f.expr_ty(e).lanes != 1 {
        return None;
    }
    symbol(*intrin, computed(f.expr_ty(e).dtype))
}

/// Whether the value of a store can use tiles: it contains functions of the axis or converts to 16 bits, and vectors can compute
/// the operands.
pub fn applies(f: &PrimFunc, store: Store<'_>, axis: Var) -> bool {
    let plain = |e: &Expr| vectorizable(f, *e, axis, true);
    if narrows(f, store, axis) {
        return matches!(f.expr(store.2), ExprData::Cast(_, wide) if plain(wide));
    }
    let functions = functions(f, store.2, axis);
    let operands = |&e: &Expr| match f.expr(e) {
        ExprData::Call(_, args, _) => args.iter().all(plain),
        // The operand of a widening is in memory.
        _ => true,
    };
    !functions.is_empty() && functions.iter().all(operands)
}

/// Whether a store converts float32 to adjacent 16-bit floats.
fn narrows(f: &PrimFunc, (buffer, indices, value): Store<'_>, axis: Var) -> bool {
    along_axis(f, buffer, indices, axis)
        && matches!(f.buffer(buffer).dtype, DType::Float16 | DType::BFloat16)
        && matches!(f.expr(value), ExprData::Cast(_, a) if f.expr_ty(*a) == Ty::scalar(DType::Float32))
}

/// The functions of the axis that are computed for every point.
fn functions(f: &PrimFunc, value: Expr, axis: Var) -> Vec<Expr> {
    let mut found = Vec::new();
    let (mut stack, mut seen) = (vec![value], rustc_hash::FxHashSet::default());
    while let Some(e) = stack.pop() {
        if !seen.insert(e) || is_opaque(f, e) {
            continue;
        }
        if moved(f, e, axis).is_some() {
            found.push(e);
        }
        pliant_ir::tir::visit::for_each_operand(f.expr(e), |a| stack.push(a));
    }
    found
}

/// Whether no part of an expression may be moved: it may not be evaluated at all, or is not a value.
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

/// Estimated work of a value. Functions on tiles are cheaper than functions in generated code.
pub fn effort(f: &PrimFunc, value: Expr) -> i64 {
    let mut functions = 0;
    for_each_value(f, value, |e| functions += i64::from(function(f, e).is_some()));
    crate::inline::cost(f, value) as i64 - 10 * functions
}

/// The call of one slice function.
struct Step {
    symbol: String,
    /// The element type of its operands.
    operand: DType,
    /// The element type of its tile.
    dtype: DType,
    /// The operands, as expressions of the axis. Where they read other tiles, they use the position in the tile.
    args: Vec<Expr>,
    /// The tile for its results.
    tile: Buffer,
}

/// A value split into calls of slice functions and the rest.
pub struct Tiles {
    steps: Vec<Step>,
    /// The variable for the position in a tile.
    local: Var,
    /// The rest of the value, which reads the tiles.
    pub value: Expr,
    /// Whether the results of the last step are the stored values.
    direct: bool,
}

/// A store that may be tiled: buffer, indices, value.
pub type Store<'a> = (Buffer, &'a [Expr], Expr);

/// Splits the value of a store along an axis of `extent` points into steps and the rest, if that pays.
pub fn plan(f: &mut PrimFunc, store: Store<'_>, axis: Var, extent: Expr) -> Option<Tiles> {
    let (buffer, indices, value) = store;
    let few = f.as_int(extent).is_some_and(|n| n < FEW);
    let functions = functions(f, value, axis).len();
    if few || functions > MOST || !applies(f, store, axis) || crosses(f, store) {
        return None;
    }
    let local = f.size_var("place");
    let mut t = Tiles { steps: Vec::new(), local, value, direct: false };
    let mut memo = FxHashMap::default();
    // Addresses of kernel arguments must not depend on memory.
    let fixed = !indices.iter().any(|&i| guards::reads(f, i));
    let narrow = fixed && narrows(f, store, axis);
    if let ExprData::Cast(_, wide) = *f.expr(value)
        && narrow
    {
        let wide = t.take_apart(f, wide, axis, &mut memo);
        let half = f.buffer(buffer).dtype;
        t.push(f, narrowing(half), (DType::Float32, half), vec![wide]);
        t.direct = true;
    } else {
        t.value = t.take_apart(f, value, axis, &mut memo);
        let last = t.steps.last().map(|s| (s.tile, s.dtype));
        let whole =
            matches!(f.expr(t.value), ExprData::Load(b, _) if Some(*b) == last.map(|l| l.0));
        t.direct = whole
            && fixed
            && last.is_some_and(|l| l.1 == f.buffer(buffer).dtype)
            && along_axis(f, buffer, indices, axis);
    }
    Some(t)
}

/// Whether a value reads elements that the store writes at another point.
fn crosses(f: &PrimFunc, (buffer, indices, value): Store<'_>) -> bool {
    let mut found = false;
    pliant_ir::tir::visit::for_each_expr(f, value, |e| {
        found |= matches!(f.expr(e), ExprData::Load(b, i) if *b == buffer && **i != *indices);
    });
    found
}

/// A tile of `size` elements.
pub(super) fn new_tile(f: &mut PrimFunc, dtype: DType, size: i64) -> Buffer {
    let shape = vec![f.int(size)];
    f.add_buffer(BufferData {
        name: "tile".into(),
        dtype,
        shape,
        strides: Vec::new(),
        elem_offset: None,
        scope: Scope::Local,
    })
}

impl Tiles {
    /// Adds steps for the functions of an expression. Returns the expression with loads of their results instead.
    fn take_apart(
        &mut self,
        f: &mut PrimFunc,
        e: Expr,
        axis: Var,
        memo: &mut FxHashMap<Expr, Expr>,
    ) -> Expr {
        if let Some(&known) = memo.get(&e) {
            return known;
        }
        let moved = moved(f, e, axis);
        let new = if is_opaque(f, e) {
            e
        } else {
            map_operands(f, e, |f, a| self.take_apart(f, a, axis, memo))
        };
        let new = match (moved, f.expr(new).clone()) {
            (Some(symbol), ExprData::Call(_, args, _)) => {
                let ty = f.expr_ty(e);
                let dtype = computed(ty.dtype);
                let args = args.iter().map(|&a| f.cast(a, Ty::scalar(dtype))).collect();
                let result = self.push(f, symbol, (dtype, dtype), args);
                f.cast(result, ty)
            }
            (Some(symbol), ExprData::Cast(to, load)) => {
                let from = f.expr_ty(load).dtype;
                self.push(f, symbol, (from, to.dtype), vec![load])
            }
            _ => new,
        };
        memo.insert(e, new);
        new
    }

    /// Adds a step with a function of one type to another. Returns its result at the position in the tile.
    fn push(
        &mut self,
        f: &mut PrimFunc,
        symbol: String,
        (operand, dtype): (DType, DType),
        args: Vec<Expr>,
    ) -> Expr {
        let tile = new_tile(f, dtype, TILE);
        self.steps.push(Step { symbol, operand, dtype, args, tile });
        let place = f.var_expr(self.local);
        f.load(tile, &[place])
    }

    /// The rest of the value at a point of the axis and a position in the tile.
    pub fn value_at(&self, f: &mut PrimFunc, axis: Var, at: Expr, place: Expr) -> Expr {
        let map = FxHashMap::from_iter([(axis, at), (self.local, place)]);
        substitute_expr(f, self.value, &map)
    }

    /// The loop over `0..extent`. `map` turns a position into the axis' value. `finish` makes the statements after the functions of
    /// one tile, from the first position and the number of points.
    pub fn emit(
        &self,
        f: &mut PrimFunc,
        (axis, extent): (Var, Expr),
        target: Option<(Buffer, &[Expr])>,
        map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
        finish: &mut dyn FnMut(&mut PrimFunc, Expr, Expr) -> Stmt,
    ) -> Stmt {
        let (one_tile, tile) = (f.as_int(extent).is_some_and(|n| n <= TILE), f.size_var("tile"));
        let size = f.int(TILE);
        let (base, points) = if one_tile {
            (f.int(0), extent)
        } else {
            let tile = f.var_expr(tile);
            let base = f.mul(tile, size);
            let left = f.binary(BinOp::Sub, extent, base);
            (base, f.binary(BinOp::Min, size, left))
        };
        let (mut out, mut buffers) = (Vec::new(), Vec::new());
        for (k, step) in self.steps.iter().enumerate() {
            let target = target.filter(|_| self.direct && k + 1 == self.steps.len());
            self.step(f, step, (axis, base, points), target, map, &mut out, &mut buffers);
        }
        if !self.direct {
            out.push(finish(f, base, points));
        }
        let mut s = f.seq(out);
        if !one_tile {
            let up = f.int(TILE - 1);
            let up = f.add(extent, up);
            let turns = f.binary(BinOp::FloorDiv, up, size);
            s = serial(f, tile, turns, s);
        }
        buffers.into_iter().fold(s, |s, b| f.add_stmt(StmtData::Alloc(b, s)))
    }

    /// One function over one tile.
    #[expect(clippy::too_many_arguments, reason = "two of them collect what is made")]
    fn step(
        &self,
        f: &mut PrimFunc,
        step: &Step,
        (axis, base, points): (Var, Expr, Expr),
        target: Option<(Buffer, &[Expr])>,
        map: &dyn Fn(&mut PrimFunc, Expr) -> Expr,
        out: &mut Vec<Stmt>,
        buffers: &mut Vec<Buffer>,
    ) {
        let zero = f.int(0);
        let first = map(f, base);
        let origin = FxHashMap::from_iter([(axis, first), (self.local, zero)]);
        let mut own = Some(step.tile);
        let mut args = vec![f.add_expr(ExprData::Str(step.symbol.as_str().into()))];
        let result = match target {
            Some((buffer, indices)) => {
                let indices: Vec<Expr> =
                    indices.iter().map(|&i| substitute_expr(f, i, &origin)).collect();
                f.load(buffer, &indices)
            }
            None => {
                buffers.push(step.tile);
                f.load(step.tile, &[zero])
            }
        };
        args.push(f.call(Intrin::AddressOf, &[result]));
        for &arg in &step.args {
            if self.in_memory(f, arg, axis, step.operand) {
                let element = substitute_expr(f, arg, &origin);
                args.push(f.call(Intrin::AddressOf, &[element]));
                continue;
            }
            // The first computed operand shares the tile of the results, if they have one and the types are equal.
            let fits = target.is_none() && step.operand == step.dtype;
            let tile = match own.take().filter(|_| fits) {
                Some(tile) => tile,
                None => {
                    let tile = new_tile(f, step.operand, TILE);
                    buffers.push(tile);
                    tile
                }
            };
            let widths =
                if vectorizable(f, arg, axis, true) { widths(lanes(f, arg)) } else { vec![1] };
            out.push(serial_strips(f, points, &widths, &mut |f, place| {
                let at = f.add(base, place);
                let at = map(f, at);
                let value = substitute_expr(
                    f,
                    arg,
                    &FxHashMap::from_iter([(axis, at), (self.local, place)]),
                );
                f.store(tile, &[place], value)
            }));
            let element = f.load(tile, &[zero]);
            args.push(f.call(Intrin::AddressOf, &[element]));
        }
        args.push(points);
        let call = f.add_expr(ExprData::Call(Intrin::CallExtern, args.into(), Ty::I64));
        out.push(f.add_stmt(StmtData::Evaluate(call)));
    }

    /// Whether an operand is in memory in the form that the function takes. Addresses of kernel arguments must not depend on
    /// memory.
    fn in_memory(&self, f: &PrimFunc, arg: Expr, axis: Var, dtype: DType) -> bool {
        let ExprData::Load(buffer, indices) = f.expr(arg) else { return false };
        if indices.iter().any(|&i| guards::reads(f, i)) {
            return false;
        }
        let own = self.steps.iter().any(|s| s.tile == *buffer && s.dtype == dtype);
        own || f.buffer(*buffer).dtype == dtype && along_axis(f, *buffer, indices, axis)
    }
}
