//! Matmuls: a stage `C[..] += A[..] * B[..]` whose indices are plain axes becomes a call of the kernel `matmul`. Operands may be
//! transposed, and there may be any number of batch axes. A float sum may be computed in another order than written. If the right
//! operand is packed into panels, `B[j // width, k, j % width]`, the kernel `matmul_packed` is called. Every stage of this form
//! becomes a kernel call, whatever its sizes.
//!
//! A convolution is a sum of matmuls: if an index is a sum of an axis and reduction axes (`x[i + di]`), the reduction axes become
//! loops around the call, and each call adds to the results of the previous calls.

use pliant_ir::tir::{
    BinOp, Buffer, Expr, ExprData, NewOperand, PrimFunc, Stmt, StmtData, Ty, Var,
};
use pliant_kernel_api::kernels::matmul::{self, PANEL_STEP};
use pliant_tensor::DType;
use rustc_hash::FxHashMap;

use super::loop_nest_stages::{Axis, Body, Init, Stage};
use super::row_group_fusion::serial_loop;
use crate::access_guards;
use crate::check_bounds::recorded_unbounded_params;
use crate::flatten_buffers::linear;
use crate::index_range_analysis::IndexFacts;
use crate::statement_traversal::{substitute_expr, uses_any};

/// An operand of a matmul: a buffer, and the indices of the element that is read or written.
pub(super) type Operand = (Buffer, Box<[Expr]>);

/// A dim of the kernel call, such as the rows: one axis of the stage, or several axes that are fused.
#[derive(Clone, Debug)]
struct Dim {
    vars: Vec<Var>,
    extent: Expr,
    /// The strides of the dim in the operands A, B and C, in elements; 0 for operands that do not have this dim.
    strides: [Expr; 3],
    /// For A, B and C, the dims of the buffer that the first and the last of the fused axes index; `None` for operands that the
    /// axes do not index.
    dim_ranges: [Option<(usize, usize)>; 3],
    /// Whether, in each operand that the axis indexes, some index consists of the axis alone. Only such axes are fused.
    is_whole_index: bool,
}

/// The use of an axis in the index of one dim of an operand.
struct AxisUse {
    axis: Var,
    dim: usize,
    /// The factor of the axis in the index; `None` for 1.
    factor: Option<Expr>,
    /// Whether the index of the dim consists of the axis alone, without a factor or other terms.
    is_whole_index: bool,
}

/// Returns the kernel call that computes a stage, with the loops around it; `None` if the stage is not a matmul.
pub fn tensorize(f: &mut PrimFunc, stage: &Stage) -> Option<Stmt> {
    let plan = plan(f, stage)?;
    Some(plan.emit(f))
}

/// Whether a stage is a matmul that a kernel call can compute.
pub fn is_matmul(f: &mut PrimFunc, stage: &Stage) -> bool {
    plan(f, stage).is_some()
}

/// A stage that is a matmul, with the roles of its axes in the kernel call.
pub(super) struct MatmulPlan {
    /// The left operand A, the right operand B, and the result C.
    pub operands: [Operand; 3],
    rows: Option<Dim>,
    columns: Option<Dim>,
    inner: Dim,
    batch: Option<Dim>,
    /// The axes of the stage that become loops around the kernel call.
    pub outer: Vec<Axis>,
    /// The variables of the reduction axes among the loops around the kernel call.
    pub loop_reductions: Vec<Var>,
    /// The axes of the stage over which the kernel itself iterates; there are no loops over them around the kernel call.
    call_vars: Vec<Var>,
    /// Whether the results of the matmul are added to the previous contents of C instead of replacing them.
    pub accumulate: bool,
    /// The number of columns of a panel, if B is packed into panels; otherwise `None`.
    pub width: Option<Expr>,
}

/// The part of a batch of matmuls that one kernel call computes.
pub(super) struct CallRegion {
    /// The values of the kernel's axes at the first element of the region. Axes that are missing in the map start at 0.
    pub origin: FxHashMap<Var, Expr>,
    /// The number of matmuls of the batch in the region.
    pub batch: Expr,
    /// The number of rows of each matmul's result in the region.
    pub rows: Expr,
    /// The number of columns of each matmul's result in the region.
    pub columns: Expr,
    /// The index of the panel of B that starts with the first column of the region.
    pub panel: Expr,
    /// The buffer to which the results are written and its row stride in elements; `None` if they are written to C. Columns are
    /// contiguous.
    pub output: Option<(Buffer, Expr)>,
}

/// Recognizes a stage as a matmul; `None` if it is not a matmul.
pub(super) fn plan(f: &mut PrimFunc, stage: &Stage) -> Option<MatmulPlan> {
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
    let accumulate = adds_to_contents(f, stage)?;
    let mut operands = [operand(f, a, dtype)?, operand(f, b, dtype)?, (*buffer, indices.clone())];
    let panels = match_panels(f, stage, &operands);
    // The operand that shares the last axis of the result becomes B, so that adjacent columns of the result are contiguous.
    let last = indices.last().copied();
    let reads =
        |o: &Operand| last.is_some_and(|e| o.1.iter().any(|&i| shares_axis(f, stage, i, e)));
    if panels.is_none() && reads(&operands[0]) && !reads(&operands[1]) {
        operands.swap(0, 1);
    }
    let AxisRoles { roles, loop_reductions, unit_axes } =
        classify_axes(f, stage, &operands, panels.as_ref())?;
    let [dims_m, dims_n, dims_k, dims_b] = roles;
    // The first call of a loop starts from 0, so the reduction axes of loops must not be empty. A call with a packed operand
    // selects the part of B only by its columns, so it allows no such loops.
    let has_iteration =
        |a: &Axis| !loop_reductions.contains(&a.var) || f.as_int(a.extent).is_some_and(|n| n > 0);
    if !stage.axes.iter().all(has_iteration) || panels.is_some() && !loop_reductions.is_empty() {
        return None;
    }
    if dims_m.is_empty() && dims_n.is_empty() {
        return None;
    }
    let mut inner = fuse_dims(f, dims_k, &operands);
    if inner.len() != 1 {
        return None;
    }
    // The call computes the last axis of each role.
    let mut other_dims = Vec::new();
    let mut last_dim = |f: &mut PrimFunc, dims: Vec<Dim>| {
        let mut dims = fuse_dims(f, dims, &operands);
        let last = dims.pop();
        other_dims.extend(dims);
        last
    };
    let (rows, columns, batch) = (last_dim(f, dims_m), last_dim(f, dims_n), last_dim(f, dims_b));
    // The batch may also run over an axis that A or B does not have. The other axes become loops.
    let batch = batch.or_else(|| if panels.is_none() { other_dims.pop() } else { None });
    let mut outer_vars = loop_reductions.clone();
    outer_vars.extend(unit_axes);
    outer_vars.extend(other_dims.into_iter().flat_map(|d| d.vars));
    let call_dims = [&rows, &columns, &batch].into_iter().flatten();
    let mut call_vars: Vec<Var> = call_dims.flat_map(|d| d.vars.clone()).collect();
    if panels.is_some() && (batch.is_some() || columns.is_none()) {
        return None;
    }
    let width = panels.map(|p| p.width);
    let inner = inner.pop().expect("a matmul has one inner (reduction) dim");
    call_vars.extend(inner.vars.iter().copied());
    let outer = stage.axes.iter().filter(|a| outer_vars.contains(&a.var)).copied().collect();
    Some(MatmulPlan {
        operands,
        rows,
        columns,
        inner,
        batch,
        outer,
        loop_reductions,
        call_vars,
        accumulate,
        width,
    })
}

/// Whether the sum that a stage computes starts from the previous contents of the result instead of 0. `None` if it
/// starts from another value.
fn adds_to_contents(f: &PrimFunc, stage: &Stage) -> Option<bool> {
    match stage.init {
        None => Some(true),
        Some(Init::Value(e)) => match f.expr(e) {
            ExprData::Float(bits, _) if *bits == 0.0f64.to_bits() => Some(false),
            _ => None,
        },
        Some(Init::Other(_)) => None,
    }
}

/// Whether a buffer is row-major, which kernel calls require.
fn is_dense(f: &PrimFunc, buffer: Buffer) -> bool {
    f.buffer(buffer).strides.is_empty()
}

/// Returns the buffer and the indices of a load; `None` if `e` is not a load from a dense buffer with elements of type `dtype`.
fn operand(f: &PrimFunc, e: Expr, dtype: DType) -> Option<Operand> {
    match f.expr(e) {
        ExprData::Load(b, indices) if f.buffer(*b).dtype == dtype && is_dense(f, *b) => {
            Some((*b, indices.clone()))
        }
        _ => None,
    }
}

/// A right operand that is packed into panels.
struct PackedPanels {
    /// The axis of the stage that indexes the columns of the packed right operand B.
    column: Var,
    /// The axis of the stage that indexes the rows of the packed right operand B.
    row: Var,
    /// The number of columns of a panel of the packed right operand B.
    width: Expr,
}

/// Recognizes a right operand B that is packed into panels, `B[j // width, k, j % width]`; `None` for other operands.
/// The packed kernel requires that the axes cover all rows of B, that B contains all columns, and that the columns of C
/// are contiguous.
fn match_panels(f: &PrimFunc, stage: &Stage, operands: &[Operand; 3]) -> Option<PackedPanels> {
    let (buffer, [panel, row, column]) = (operands[1].0, &*operands[1].1) else { return None };
    let data = f.buffer(buffer);
    let sizes: Option<Vec<i64>> = data.shape.iter().map(|&d| f.as_int(d)).collect();
    let &[count, rows, width] = &sizes?[..] else { return None };
    let dividend = |e: Expr, want: BinOp| match *f.expr(e) {
        ExprData::Binary(op, a, by) if op == want && f.as_int(by) == Some(width) => Some(a),
        _ => None,
    };
    let (j, same_j) = (dividend(*panel, BinOp::FloorDiv)?, dividend(*column, BinOp::FloorMod)?);
    let (ExprData::Var(j), ExprData::Var(same_j), ExprData::Var(k)) =
        (f.expr(j), f.expr(same_j), f.expr(*row))
    else {
        return None;
    };
    let axis = |v: Var| stage.axes.iter().find(|a| a.var == v);
    let (columns, inner) = (axis(*j)?, axis(*k)?);
    let result_indices = &operands[2].1;
    let matches = j == same_j
        && width > 0
        && width % PANEL_STEP == 0
        && f.as_int(columns.extent)? <= count.checked_mul(width)?
        && f.as_int(inner.extent) == Some(rows)
        && result_indices.last().is_some_and(|&e| super::loop_nest_stages::is_var(f, e, *j));
    matches.then_some(PackedPanels { column: *j, row: *k, width: data.shape[2] })
}

/// Whether two indices share a spatial axis of the stage.
fn shares_axis(f: &PrimFunc, stage: &Stage, a: Expr, b: Expr) -> bool {
    stage.axes.iter().any(|axis| {
        !axis.reduce && uses_any(f, a, &|v| v == axis.var) && uses_any(f, b, &|v| v == axis.var)
    })
}

/// Splits an index that is a sum of multiples of axes and of terms without axes: returns the axes with their factors (`None` for
/// 1). `None` for other indices.
fn linear_terms(f: &PrimFunc, stage: &Stage, index: Expr) -> Option<Vec<(Axis, Option<Expr>)>> {
    let axis = |e: Expr| match f.expr(e) {
        ExprData::Var(v) => stage.axes.iter().find(|a| a.var == *v).copied(),
        _ => None,
    };
    let is_invariant = |e: Expr| !uses_any(f, e, &|v| stage.axes.iter().any(|a| a.var == v));
    // Kernels do not support negative strides.
    let is_stride = |e: Expr| {
        let not_negative =
            || IndexFacts::at_entry(f, &recorded_unbounded_params(f)).is_non_negative(f, e);
        is_invariant(e) && f.as_int(e).map_or_else(not_negative, |n| n >= 0)
    };
    let (mut out, mut stack) = (Vec::new(), vec![index]);
    while let Some(e) = stack.pop() {
        if let Some(a) = axis(e) {
            out.push((a, None));
            continue;
        }
        match *f.expr(e) {
            // Addresses of kernel arguments must not depend on memory.
            _ if is_invariant(e) && access_guards::reads_memory(f, e) => return None,
            _ if is_invariant(e) => {}
            ExprData::Binary(BinOp::Add, a, b) => stack.extend([b, a]),
            ExprData::Binary(BinOp::Mul, a, b) => match (axis(a), axis(b)) {
                (Some(a), None) if is_stride(b) => out.push((a, Some(b))),
                (None, Some(b)) if is_stride(a) => out.push((b, Some(a))),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(out)
}

/// Returns the uses of axes in the indices of an operand. Appends the reduction axes that must become loops around the kernel
/// call to `loop_reductions`. `None` if an index is not a sum of multiples of axes, or has several spatial axes.
fn axis_uses(
    f: &PrimFunc,
    stage: &Stage,
    indices: &[Expr],
    loop_reductions: &mut Vec<Var>,
) -> Option<Vec<AxisUse>> {
    let mut out: Vec<AxisUse> = Vec::new();
    for (dim, &index) in indices.iter().enumerate() {
        let is_whole_index = matches!(f.expr(index), ExprData::Var(_));
        let mut terms = linear_terms(f, stage, index)?;
        if terms.len() > 1 {
            loop_reductions.extend(terms.iter().filter(|t| t.0.reduce).map(|t| t.0.var));
            terms.retain(|t| !t.0.reduce);
        }
        match terms[..] {
            [] => {}
            [(axis, factor)] => out.push(AxisUse { axis: axis.var, dim, factor, is_whole_index }),
            _ => return None,
        }
    }
    Some(out)
}

/// The roles of a stage's axes in the kernel call.
struct AxisRoles {
    /// The axes of the rows, the columns, the inner (reduction) dim and the batch, in this order.
    roles: [Vec<Dim>; 4],
    /// The reduction axes that become loops around the call.
    loop_reductions: Vec<Var>,
    /// The axes of extent 1 that index neither A nor B, such as a batch axis of one matmul.
    unit_axes: Vec<Var>,
}

/// Assigns a role in the kernel call to each axis. `None` if an axis fits no role.
fn classify_axes(
    f: &mut PrimFunc,
    stage: &Stage,
    operands: &[Operand; 3],
    panels: Option<&PackedPanels>,
) -> Option<AxisRoles> {
    let mut roles: [Vec<Dim>; 4] = Default::default();
    let (mut loop_reductions, mut unit_axes) = (Vec::new(), Vec::new());
    let mut uses_by_operand = Vec::with_capacity(3);
    for (slot, (_, indices)) in operands.iter().enumerate() {
        uses_by_operand.push(match panels.filter(|_| slot == 1) {
            Some(p) => [(p.row, 1), (p.column, 2)]
                .map(|(axis, dim)| AxisUse { axis, dim, factor: None, is_whole_index: true })
                .into(),
            None => axis_uses(f, stage, indices, &mut loop_reductions)?,
        });
    }
    if uses_by_operand[2].iter().any(|h| !h.is_whole_index) {
        return None;
    }
    for axis in stage.axes.iter().filter(|a| !loop_reductions.contains(&a.var)) {
        let (mut dim_ranges, mut strides, mut is_whole_index) = ([None; 3], [f.int(0); 3], true);
        for (slot, (buffer, _)) in operands.iter().enumerate() {
            let mut uses = uses_by_operand[slot].iter().filter(|h| h.axis == axis.var);
            let axis_use = uses.next();
            if uses.next().is_some() {
                return None;
            }
            if let Some(axis_use) = axis_use {
                dim_ranges[slot] = Some((axis_use.dim, axis_use.dim));
                if slot == 1 && panels.is_some() {
                    // The format of panels determines the strides.
                    continue;
                }
                strides[slot] = stride(f, *buffer, axis_use.dim);
                if let Some(factor) = axis_use.factor {
                    strides[slot] = f.mul(factor, strides[slot]);
                }
                is_whole_index &= axis_use.is_whole_index;
            }
        }
        let role = match (dim_ranges.map(|p| p.is_some()), axis.reduce) {
            ([true, false, true], false) => 0,
            ([false, true, true], false) => 1,
            ([true, true, false], true) => 2,
            ([true, true, true], false) => 3,
            ([false, false, true], false) if f.as_int(axis.extent) == Some(1) => {
                unit_axes.push(axis.var);
                continue;
            }
            _ => return None,
        };
        roles[role].push(Dim {
            vars: vec![axis.var],
            extent: axis.extent,
            strides,
            dim_ranges,
            is_whole_index,
        });
    }
    Some(AxisRoles { roles, loop_reductions, unit_axes })
}

/// Returns the stride of a dim of a row-major buffer, in elements.
fn stride(f: &mut PrimFunc, buffer: Buffer, dim: usize) -> Expr {
    let dims = f.buffer(buffer).shape[dim + 1..].to_vec();
    let mut acc = f.int(1);
    for d in dims {
        acc = f.mul(acc, d);
    }
    acc
}

/// Fuses adjacent axes of the kernel call if they index adjacent whole dims in every operand that they index.
fn fuse_dims(f: &mut PrimFunc, dims: Vec<Dim>, operands: &[Operand; 3]) -> Vec<Dim> {
    let mut out: Vec<Dim> = Vec::new();
    for d in dims {
        let can_fuse = out.last().is_some_and(|prev| {
            prev.is_whole_index
                && d.is_whole_index
                && (0..3).all(|slot| match (prev.dim_ranges[slot], d.dim_ranges[slot]) {
                    (Some((_, last)), Some((first, _))) => {
                        let data = f.buffer(operands[slot].0);
                        first == last + 1 && data.shape[first] == d.extent
                    }
                    (None, None) => true,
                    _ => false,
                })
        });
        if !can_fuse {
            out.push(d);
            continue;
        }
        let prev = out.last_mut().expect("a preceding dim to fuse with has been found");
        prev.extent = f.mul(prev.extent, d.extent);
        prev.strides = d.strides;
        for slot in 0..3 {
            if let (Some(p), Some(q)) = (&mut prev.dim_ranges[slot], d.dim_ranges[slot]) {
                p.1 = q.1;
            }
        }
        prev.vars.extend(d.vars);
    }
    out
}

impl MatmulPlan {
    /// Returns the `accumulate` argument of a kernel call: 1 to add to the contents of C, 0 to overwrite them. If reduction axes
    /// are loops around the call, only the first call for each element overwrites it.
    fn accumulate_flag(&self, f: &mut PrimFunc) -> Expr {
        if self.accumulate || self.loop_reductions.is_empty() {
            return f.int(i64::from(self.accumulate));
        }
        let zero = f.int(0);
        let mut later = None;
        for &v in &self.loop_reductions {
            let v = f.var_expr(v);
            let not_first = f.binary(BinOp::Lt, zero, v);
            later = Some(later.map_or(not_first, |l| f.binary(BinOp::Or, l, not_first)));
        }
        let later = later.expect("at least one reduction axis is a loop around the kernel call");
        f.cast(later, Ty::I64)
    }

    /// Emits the kernel call that computes the whole stage, with the loops around it.
    fn emit(&self, f: &mut PrimFunc) -> Stmt {
        let whole = CallRegion {
            origin: FxHashMap::default(),
            batch: Self::extent(f, &self.batch),
            rows: Self::extent(f, &self.rows),
            columns: Self::extent(f, &self.columns),
            panel: f.int(0),
            output: None,
        };
        let call = self.call(f, &whole);
        self.wrap_in_outer_loops(f, call)
    }

    /// Wraps a statement in the loops over the axes over which the kernel does not iterate.
    pub fn wrap_in_outer_loops(&self, f: &mut PrimFunc, s: Stmt) -> Stmt {
        self.outer.iter().rev().fold(s, |s, axis| serial_loop(f, axis.var, axis.extent, s))
    }

    /// Emits the kernel call that computes a region of the result.
    pub fn call(&self, f: &mut PrimFunc, region: &CallRegion) -> Stmt {
        let zero = f.int(0);
        let mut origin: FxHashMap<Var, Expr> = self.call_vars.iter().map(|&v| (v, zero)).collect();
        origin.extend(&region.origin);
        let numbers = [self.accumulate_flag(f)];
        let call = match self.width {
            Some(width) => {
                let operands = self.packed_operands(f, width, region, &origin);
                f.call_kernel(&matmul::PACKED, &operands.map(Some), &numbers)
            }
            None => {
                let operands = self.operands(f, region, &origin);
                f.call_kernel(&matmul::KERNEL, &operands.map(Some), &numbers)
            }
        };
        f.add_stmt(StmtData::Evaluate(call))
    }

    /// Returns the extents of the kernel call: the numbers of matmuls (batch), rows, columns and inner (reduction) elements.
    pub fn extents(&self, f: &mut PrimFunc) -> [Expr; 4] {
        let [batch, rows, columns] =
            [&self.batch, &self.rows, &self.columns].map(|d| Self::extent(f, d));
        [batch, rows, columns, self.inner.extent]
    }

    /// Returns the axes of the stage that form the batch, the rows and the columns of the kernel call.
    pub fn axes(&self) -> [&[Var]; 3] {
        [&self.batch, &self.rows, &self.columns].map(|d| d.as_ref().map_or(&[][..], |d| &d.vars))
    }

    /// Returns the offset, in elements, of the first element that a kernel call accesses in the buffer of the operand `slot` (0
    /// for A, 1 for B, 2 for C). `origin` maps the kernel's axes to their values at this element.
    fn offset(&self, f: &mut PrimFunc, slot: usize, origin: &FxHashMap<Var, Expr>) -> Expr {
        let (buffer, indices) = &self.operands[slot];
        let indices: Vec<Expr> = indices.iter().map(|&i| substitute_expr(f, i, origin)).collect();
        linear(f, *buffer, &indices)
            .expect("every access of a stage has one index for each dim of the buffer")
    }

    /// Returns the number of elements along a dim of the kernel call; 1 if the stage has no such dim.
    fn extent(f: &mut PrimFunc, d: &Option<Dim>) -> Expr {
        d.as_ref().map_or_else(|| f.int(1), |d| d.extent)
    }

    /// Returns the stride, in elements, of a dim of the kernel call in the operand `slot` (0 for A, 1 for B, 2 for C); 0 if the
    /// stage has no such dim.
    fn stride(f: &mut PrimFunc, d: &Option<Dim>, slot: usize) -> Expr {
        d.as_ref().map_or_else(|| f.int(0), |d| d.strides[slot])
    }

    /// Returns the operands of a call of [`matmul::KERNEL`].
    fn operands(
        &self,
        f: &mut PrimFunc,
        region: &CallRegion,
        origin: &FxHashMap<Var, Expr>,
    ) -> [NewOperand; 3] {
        let inner = self.inner.extent;
        let dims = [
            [region.batch, region.rows, inner],
            [region.batch, inner, region.columns],
            [region.batch, region.rows, region.columns],
        ];
        [0, 1, 2].map(|slot| {
            if let Some((buffer, row)) = region.output.filter(|_| slot == 2) {
                let (zero, one) = (f.int(0), f.int(1));
                let product = f.mul(region.rows, row);
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

    /// Returns the operands of a call of [`matmul::PACKED`].
    fn packed_operands(
        &self,
        f: &mut PrimFunc,
        width: Expr,
        region: &CallRegion,
        origin: &FxHashMap<Var, Expr>,
    ) -> [NewOperand; 3] {
        let [a, b, c] = [0, 1, 2].map(|slot| self.operands[slot].0);
        let inner = self.inner.extent;
        let strides = [Self::stride(f, &self.rows, 0), self.inner.strides[0]];
        let offset = self.offset(f, 0, origin);
        let x = view(f, a, offset, &[region.rows, inner], &strides);
        let one = f.int(1);
        let panel = f.mul(inner, width);
        let offset = f.mul(region.panel, panel);
        let panels = panel_count(f, region.columns, width);
        let weight = view(f, b, offset, &[panels, inner, width], &[panel, width, one]);
        let (buffer, offset, row) = match region.output {
            Some((buffer, row)) => (buffer, f.int(0), row),
            None => (c, self.offset(f, 2, origin), Self::stride(f, &self.rows, 2)),
        };
        let out = view(f, buffer, offset, &[region.rows, region.columns], &[row, one]);
        [x, weight, out]
    }
}

/// Returns the number of panels of `width` columns that contain `columns` columns.
fn panel_count(f: &mut PrimFunc, columns: Expr, width: Expr) -> Expr {
    let one = f.int(1);
    let more = f.binary(BinOp::Sub, width, one);
    let up = f.add(columns, more);
    f.binary(BinOp::FloorDiv, up, width)
}

/// Returns a kernel operand: a view of a buffer with the given offset and strides, in elements.
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
