//! Matrix products: a stage `C[..] += A[..] * B[..]` whose indices are plain axes becomes a call of the kernel `matmul`, with any
//! operands transposed and any number of batch axes. A float sum may be computed in another order than written. A right operand
//! packed into panels, `B[j // width, k, j % width]`, becomes the operand of `matmul_packed`.
//!
//! A convolution is a matrix product too: if an index is a sum of an axis and reduction axes (`x[i + di]`), the reduction axes
//! become loops around the call, and each call accumulates onto the results of the calls before it.

use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, NewOperand, PrimFunc, Stmt, StmtData, Ty, Var,
};
use pliant_kernel_api::kernels::matmul::{self, PANEL_STEP};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::group::serial;
use super::stage::{Axis, Body, Init, Stage};
use crate::check_bounds::listed_unbounded;
use crate::flatten::linear;
use crate::guards;
use crate::index_facts::IndexFacts;
use crate::walk::{substitute_expr, uses_any};

/// Buffer and indices of an operand.
pub(super) type Operand = (Buffer, Box<[Expr]>);

/// One axis (or several fused ones) with its stride in each operand: A, B, C.
#[derive(Clone, Debug)]
struct Dim {
    vars: Vec<Var>,
    extent: Expr,
    strides: [Expr; 3],
    /// The dims of the first and the last fused axis in each operand.
    places: [Option<(usize, usize)>; 3],
    /// Whether the axis is a whole index in each operand that it indexes.
    plain: bool,
}

/// An axis in the index of one dim of an operand.
struct Hit {
    axis: Var,
    place: usize,
    /// The factor of the axis in the index.
    factor: Option<Expr>,
    plain: bool,
}

/// The call that computes a stage, if it is a matrix product.
pub fn tensorize(f: &mut PrimFunc, stage: &Stage) -> Option<Stmt> {
    let plan = plan(f, stage)?;
    Some(plan.emit(f))
}

/// Whether a stage is a matrix product.
pub fn matches(f: &mut PrimFunc, stage: &Stage) -> bool {
    plan(f, stage).is_some()
}

/// A stage as a matrix product.
pub(super) struct Plan {
    /// A, B and C.
    pub operands: [Operand; 3],
    rows: Option<Dim>,
    columns: Option<Dim>,
    inner: Dim,
    batch: Option<Dim>,
    /// Axes that stay loops around the call.
    pub outer: Vec<Axis>,
    /// The reduction axes among them.
    pub looped: Vec<Var>,
    /// All axes that the call runs over.
    called: Vec<Var>,
    /// Whether the results are added to the contents of C.
    pub accumulate: bool,
    /// The number of columns of a panel of B, if B is packed into panels.
    pub width: Option<Expr>,
}

/// The part of the products that one call computes.
pub(super) struct Part {
    /// The values of the called axes at the first element; 0 for axes that are missing.
    pub origin: FxHashMap<Var, Expr>,
    /// The number of products.
    pub batch: Expr,
    /// The number of rows.
    pub rows: Expr,
    /// The number of columns.
    pub columns: Expr,
    /// The number of the panel of B that starts with the first column.
    pub panel: Expr,
    /// The buffer for the results, if it is not C, and its row stride. Its columns are contiguous.
    pub to: Option<(Buffer, Expr)>,
}

/// The matrix product that a stage computes, if it is one.
pub(super) fn plan(f: &mut PrimFunc, stage: &Stage) -> Option<Plan> {
    let reduction = stage.reduction(f).filter(|r| r.op == BinOp::Add)?;
    if !stage.guards.is_empty() || !super::uses_kernels(f) {
        return None;
    }
    let Body::Store { buffer, indices, .. } = &stage.body else { return None };
    let ExprData::Binary(BinOp::Mul, a, b) = *f.expr(reduction.value) else { return None };
    let dtype = f.buffer(*buffer).dtype;
    if !matches!(dtype, DType::Float32 | DType::Float64) || !is_dense(f, *buffer) {
        return None;
    }
    let accumulate = match stage.init {
        None => true,
        Some(Init::Value(e)) => match f.expr(e) {
            ExprData::Float(bits, _) if *bits == 0.0f64.to_bits() => false,
            _ => return None,
        },
        Some(Init::Other(_)) => return None,
    };
    let mut operands = [operand(f, a, dtype)?, operand(f, b, dtype)?, (*buffer, indices.clone())];
    let panels = panels(f, stage, &operands);
    // The last axis of the result becomes its columns, so that adjacent columns are contiguous.
    let last = indices.last().copied();
    let reads =
        |o: &Operand| last.is_some_and(|e| o.1.iter().any(|&i| shares_axis(f, stage, i, e)));
    if panels.is_none() && reads(&operands[0]) && !reads(&operands[1]) {
        operands.swap(0, 1);
    }
    let (roles, looped) = classify(f, stage, &operands, panels.as_ref())?;
    let [dims_m, dims_n, dims_k, dims_b] = roles;
    // The calls start from 0 only if there is a first one, so looped axes must not be empty. A call with a packed operand selects
    // the part of B by its columns alone, so it allows no looped axes.
    let some = |a: &Axis| !looped.contains(&a.var) || f.as_int(a.extent).is_some_and(|n| n > 0);
    if !stage.axes.iter().all(some) || panels.is_some() && !looped.is_empty() {
        return None;
    }
    if dims_m.is_empty() && dims_n.is_empty() {
        return None;
    }
    let mut inner = fuse(f, dims_k, &operands);
    if inner.len() != 1 {
        return None;
    }
    let (mut outer_vars, mut called) = (looped.clone(), Vec::new());
    let mut last = |f: &mut PrimFunc, dims: Vec<Dim>| {
        let mut dims = fuse(f, dims, &operands);
        let one = dims.pop();
        outer_vars.extend(dims.into_iter().flat_map(|d| d.vars));
        called.extend(one.iter().flat_map(|d| d.vars.clone()));
        one
    };
    let (rows, columns, batch) = (last(f, dims_m), last(f, dims_n), last(f, dims_b));
    if panels.is_some() && (batch.is_some() || columns.is_none()) {
        return None;
    }
    let width = panels.map(|p| p.width);
    let inner = inner.pop().expect("there is one");
    called.extend(inner.vars.iter().copied());
    let outer = stage.axes.iter().filter(|a| outer_vars.contains(&a.var)).copied().collect();
    Some(Plan { operands, rows, columns, inner, batch, outer, looped, called, accumulate, width })
}

/// Whether a buffer is row-major: kernels take views of such buffers only.
fn is_dense(f: &PrimFunc, buffer: Buffer) -> bool {
    f.buffer(buffer).strides.is_empty()
}

fn operand(f: &PrimFunc, e: Expr, dtype: DType) -> Option<Operand> {
    match f.expr(e) {
        ExprData::Load(b, indices) if f.buffer(*b).dtype == dtype && is_dense(f, *b) => {
            Some((*b, indices.clone()))
        }
        _ => None,
    }
}

/// A right operand packed into panels: the axes of its columns and its rows, and the width of a panel.
struct Panels {
    column: Var,
    row: Var,
    width: Expr,
}

/// Matches B packed into panels, `B[j // width, k, j % width]`, as the packed kernel requires: all of k is used, B contains every
/// column, and C has contiguous columns.
fn panels(f: &PrimFunc, stage: &Stage, operands: &[Operand; 3]) -> Option<Panels> {
    let (buffer, [panel, row, column]) = (operands[1].0, &*operands[1].1) else { return None };
    let data = f.buffer(buffer);
    let sizes: Option<Vec<i64>> = data.shape.iter().map(|&d| f.as_int(d)).collect();
    let &[count, rows, width] = &sizes?[..] else { return None };
    let split = |e: Expr, want: BinOp| match *f.expr(e) {
        ExprData::Binary(op, a, by) if op == want && f.as_int(by) == Some(width) => Some(a),
        _ => None,
    };
    let (j, same) = (split(*panel, BinOp::FloorDiv)?, split(*column, BinOp::FloorMod)?);
    let (ExprData::Var(j), ExprData::Var(again), ExprData::Var(k)) =
        (f.expr(j), f.expr(same), f.expr(*row))
    else {
        return None;
    };
    let axis = |v: Var| stage.axes.iter().find(|a| a.var == v);
    let (columns, inner) = (axis(*j)?, axis(*k)?);
    let at = &operands[2].1;
    let fits = j == again
        && width > 0
        && width % PANEL_STEP == 0
        && f.as_int(columns.extent)? <= count.checked_mul(width)?
        && f.as_int(inner.extent) == Some(rows)
        && at.last().is_some_and(|&e| super::stage::is_var(f, e, *j));
    fits.then_some(Panels { column: *j, row: *k, width: data.shape[2] })
}

/// Whether two indices share a spatial axis of the stage.
fn shares_axis(f: &PrimFunc, stage: &Stage, a: Expr, b: Expr) -> bool {
    stage.axes.iter().any(|axis| {
        !axis.reduce && uses_any(f, a, &|v| v == axis.var) && uses_any(f, b, &|v| v == axis.var)
    })
}

/// The axes of which an index is a sum, each with its factor; `None` for other indices.
fn terms(f: &PrimFunc, stage: &Stage, index: Expr) -> Option<Vec<(Axis, Option<Expr>)>> {
    let axis = |e: Expr| match f.expr(e) {
        ExprData::Var(v) => stage.axes.iter().find(|a| a.var == *v).copied(),
        _ => None,
    };
    let free = |e: Expr| !uses_any(f, e, &|v| stage.axes.iter().any(|a| a.var == v));
    // Kernels do not take negative strides.
    let stride = |e: Expr| {
        let not_negative = || IndexFacts::at_entry(f, &listed_unbounded(f)).never_negative(f, e);
        free(e) && f.as_int(e).map_or_else(not_negative, |n| n >= 0)
    };
    let (mut out, mut open) = (Vec::new(), vec![index]);
    while let Some(e) = open.pop() {
        if let Some(a) = axis(e) {
            out.push((a, None));
            continue;
        }
        match *f.expr(e) {
            // Addresses of kernel arguments must not depend on memory.
            _ if free(e) && guards::reads(f, e) => return None,
            _ if free(e) => {}
            ExprData::Binary(BinOp::Add, a, b) => open.extend([b, a]),
            ExprData::Binary(BinOp::Mul, a, b) => match (axis(a), axis(b)) {
                (Some(a), None) if stride(b) => out.push((a, Some(b))),
                (None, Some(b)) if stride(a) => out.push((b, Some(a))),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(out)
}

/// The dims that the axes index in an operand. Adds the reduction axes that must loop around the call to `looped`.
fn hits(f: &PrimFunc, stage: &Stage, indices: &[Expr], looped: &mut Vec<Var>) -> Option<Vec<Hit>> {
    let mut out: Vec<Hit> = Vec::new();
    for (place, &index) in indices.iter().enumerate() {
        let plain = matches!(f.expr(index), ExprData::Var(_));
        let mut found = terms(f, stage, index)?;
        if found.len() > 1 {
            looped.extend(found.iter().filter(|t| t.0.reduce).map(|t| t.0.var));
            found.retain(|t| !t.0.reduce);
        }
        match found[..] {
            [] => {}
            [(axis, factor)] => out.push(Hit { axis: axis.var, place, factor, plain }),
            _ => return None,
        }
    }
    Some(out)
}

/// Classifies the axes as rows, columns, inner, batch, or loops around the call; `None` if an axis fits no role.
fn classify(
    f: &mut PrimFunc,
    stage: &Stage,
    operands: &[Operand; 3],
    panels: Option<&Panels>,
) -> Option<([Vec<Dim>; 4], Vec<Var>)> {
    let mut out: [Vec<Dim>; 4] = Default::default();
    let mut looped = Vec::new();
    let mut all = Vec::with_capacity(3);
    for (slot, (_, indices)) in operands.iter().enumerate() {
        all.push(match panels.filter(|_| slot == 1) {
            Some(p) => [(p.row, 1), (p.column, 2)]
                .map(|(axis, place)| Hit { axis, place, factor: None, plain: true })
                .into(),
            None => hits(f, stage, indices, &mut looped)?,
        });
    }
    if all[2].iter().any(|h| !h.plain) {
        return None;
    }
    for axis in stage.axes.iter().filter(|a| !looped.contains(&a.var)) {
        let (mut places, mut strides, mut plain) = ([None; 3], [f.int(0); 3], true);
        for (slot, (buffer, _)) in operands.iter().enumerate() {
            let mut own = all[slot].iter().filter(|h| h.axis == axis.var);
            let hit = own.next();
            if own.next().is_some() {
                return None;
            }
            if let Some(hit) = hit {
                places[slot] = Some((hit.place, hit.place));
                if slot == 1 && panels.is_some() {
                    // The packed kernel knows the strides of panels.
                    continue;
                }
                strides[slot] = stride(f, *buffer, hit.place);
                if let Some(factor) = hit.factor {
                    strides[slot] = f.mul(factor, strides[slot]);
                }
                plain &= hit.plain;
            }
        }
        let role = match (places.map(|p| p.is_some()), axis.reduce) {
            ([true, false, true], false) => 0,
            ([false, true, true], false) => 1,
            ([true, true, false], true) => 2,
            ([true, true, true], false) => 3,
            _ => return None,
        };
        out[role].push(Dim { vars: vec![axis.var], extent: axis.extent, strides, places, plain });
    }
    Some((out, looped))
}

/// The stride of a dim, in elements.
fn stride(f: &mut PrimFunc, buffer: Buffer, place: usize) -> Expr {
    let dims = f.buffer(buffer).shape[place + 1..].to_vec();
    let mut acc = f.int(1);
    for d in dims {
        acc = f.mul(acc, d);
    }
    acc
}

/// Fuses adjacent axes that are contiguous, without gaps, in every operand that they index.
fn fuse(f: &mut PrimFunc, dims: Vec<Dim>, operands: &[Operand; 3]) -> Vec<Dim> {
    let mut out: Vec<Dim> = Vec::new();
    for d in dims {
        let joins = out.last().is_some_and(|prev| {
            prev.plain
                && d.plain
                && (0..3).all(|slot| match (prev.places[slot], d.places[slot]) {
                    (Some((_, last)), Some((first, _))) => {
                        let data = f.buffer(operands[slot].0);
                        first == last + 1 && data.shape[first] == d.extent
                    }
                    (None, None) => true,
                    _ => false,
                })
        });
        if !joins {
            out.push(d);
            continue;
        }
        let prev = out.last_mut().expect("it joins one");
        prev.extent = f.mul(prev.extent, d.extent);
        prev.strides = d.strides;
        for slot in 0..3 {
            if let (Some(p), Some(q)) = (&mut prev.places[slot], d.places[slot]) {
                p.1 = q.1;
            }
        }
        prev.vars.extend(d.vars);
    }
    out
}

impl Plan {
    /// Whether a call accumulates, as a number: all calls for an element do, except the first one that the loops make.
    fn continues(&self, f: &mut PrimFunc) -> Expr {
        if self.accumulate || self.looped.is_empty() {
            return f.int(i64::from(self.accumulate));
        }
        let zero = f.int(0);
        let mut later = None;
        for &v in &self.looped {
            let v = f.var_expr(v);
            let after = f.binary(BinOp::Lt, zero, v);
            later = Some(later.map_or(after, |l| f.binary(BinOp::Or, l, after)));
        }
        let later = later.expect("there is one");
        f.cast(later, Ty::I64)
    }

    /// The calls that compute the whole product.
    fn emit(&self, f: &mut PrimFunc) -> Stmt {
        let whole = Part {
            origin: FxHashMap::default(),
            batch: Self::extent(f, &self.batch),
            rows: Self::extent(f, &self.rows),
            columns: Self::extent(f, &self.columns),
            panel: f.int(0),
            to: None,
        };
        let call = self.call(f, &whole);
        self.around(f, call)
    }

    /// The loops over the axes that the call does not run over.
    pub fn around(&self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        self.outer.iter().rev().fold(s, |s, axis| serial(f, axis.var, axis.extent, s))
    }

    /// The call that computes a part.
    pub fn call(&self, f: &mut PrimFunc, part: &Part) -> Stmt {
        let zero = f.int(0);
        let mut origin: FxHashMap<Var, Expr> = self.called.iter().map(|&v| (v, zero)).collect();
        origin.extend(&part.origin);
        let numbers = [self.continues(f)];
        let call = match self.width {
            Some(width) => {
                let operands = self.packed_operands(f, width, part, &origin);
                f.call_kernel(&matmul::PACKED, &operands.map(Some), &numbers)
            }
            None => {
                let operands = self.operands(f, part, &origin);
                f.call_kernel(&matmul::KERNEL, &operands.map(Some), &numbers)
            }
        };
        f.add_stmt(StmtData::Evaluate(call))
    }

    /// The numbers of products, rows, columns and inner positions.
    pub fn extents(&self, f: &mut PrimFunc) -> [Expr; 4] {
        let [batch, rows, columns] =
            [&self.batch, &self.rows, &self.columns].map(|d| Self::extent(f, d));
        [batch, rows, columns, self.inner.extent]
    }

    /// The axes fused into batch, rows and columns.
    pub fn axes(&self) -> [&[Var]; 3] {
        [&self.batch, &self.rows, &self.columns].map(|d| d.as_ref().map_or(&[][..], |d| &d.vars))
    }

    /// The offset of an operand's first element in its buffer.
    fn offset(&self, f: &mut PrimFunc, slot: usize, origin: &FxHashMap<Var, Expr>) -> Expr {
        let (buffer, indices) = &self.operands[slot];
        let indices: Vec<Expr> = indices.iter().map(|&i| substitute_expr(f, i, origin)).collect();
        linear(f, *buffer, &indices).expect("a stage has an index for each dim")
    }

    fn extent(f: &mut PrimFunc, d: &Option<Dim>) -> Expr {
        d.as_ref().map_or_else(|| f.int(1), |d| d.extent)
    }

    fn stride(f: &mut PrimFunc, d: &Option<Dim>, slot: usize) -> Expr {
        d.as_ref().map_or_else(|| f.int(0), |d| d.strides[slot])
    }

    /// The operands of a call of [`matmul::KERNEL`].
    fn operands(
        &self,
        f: &mut PrimFunc,
        part: &Part,
        origin: &FxHashMap<Var, Expr>,
    ) -> [NewOperand; 3] {
        let inner = self.inner.extent;
        let dims = [
            [part.batch, part.rows, inner],
            [part.batch, inner, part.columns],
            [part.batch, part.rows, part.columns],
        ];
        [0, 1, 2].map(|slot| {
            if let Some((buffer, row)) = part.to.filter(|_| slot == 2) {
                let (zero, one) = (f.int(0), f.int(1));
                let product = f.mul(part.rows, row);
                return view(f, buffer, zero, &dims[slot], &[product, row, one]);
            }
            let step = self.inner.strides[slot];
            let (rows, columns) = match slot {
                0 => (Self::stride(f, &self.rows, 0), step),
                1 => (step, Self::stride(f, &self.columns, 1)),
                _ => (Self::stride(f, &self.rows, 2), Self::stride(f, &self.columns, 2)),
            };
            let batch = Self::stride(f, &self.batch, slot);
            let offset = self.offset(f, slot, origin);
            view(f, self.operands[slot].0, offset, &dims[slot], &[batch, rows, columns])
        })
    }

    /// The operands of a call of [`matmul::PACKED`].
    fn packed_operands(
        &self,
        f: &mut PrimFunc,
        width: Expr,
        part: &Part,
        origin: &FxHashMap<Var, Expr>,
    ) -> [NewOperand; 3] {
        let [a, b, c] = [0, 1, 2].map(|slot| self.operands[slot].0);
        let inner = self.inner.extent;
        let strides = [Self::stride(f, &self.rows, 0), self.inner.strides[0]];
        let offset = self.offset(f, 0, origin);
        let x = view(f, a, offset, &[part.rows, inner], &strides);
        let one = f.int(1);
        let panel = f.mul(inner, width);
        let offset = f.mul(part.panel, panel);
        let panels = panel_count(f, part.columns, width);
        let weight = view(f, b, offset, &[panels, inner, width], &[panel, width, one]);
        let (buffer, offset, row) = match part.to {
            Some((buffer, row)) => (buffer, f.int(0), row),
            None => (c, self.offset(f, 2, origin), Self::stride(f, &self.rows, 2)),
        };
        let out = view(f, buffer, offset, &[part.rows, part.columns], &[row, one]);
        [x, weight, out]
    }
}

/// The number of panels of `width` columns.
fn panel_count(f: &mut PrimFunc, columns: Expr, width: Expr) -> Expr {
    let one = f.int(1);
    let more = f.binary(BinOp::Sub, width, one);
    let up = f.add(columns, more);
    f.binary(BinOp::FloorDiv, up, width)
}

/// A view of a buffer.
fn view(
    f: &mut PrimFunc,
    buffer: Buffer,
    offset: Expr,
    dims: &[Expr],
    strides: &[Expr],
) -> NewOperand {
    let mut all = |list: &[Expr]| list.iter().map(|&e| f.cast(e, Ty::I64)).collect();
    let (dims, strides) = (all(dims), all(strides));
    NewOperand::View { buffer, offset: f.cast(offset, Ty::I64), dims, strides }
}
