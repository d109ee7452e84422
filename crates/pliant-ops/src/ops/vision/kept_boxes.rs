//! The boxes that a non-maximum suppression keeps, and the test whether another box overlaps one of them.

use pliant_ir::DType;

use crate::ops::indexing::index_bounds::clamp;
use crate::te::{self, Body, Cell, Expr, Tensor};

/// The limits of a box along its two axes, its area, and its class.
pub(super) struct BoxFields {
    low: [Expr; 2],
    high: [Expr; 2],
    area: Expr,
    /// The class; `None` if boxes of all classes suppress each other.
    class: Option<Expr>,
}

impl BoxFields {
    /// Emits code that computes the fields of a box from two of its corners, in any order.
    pub fn from_corners(b: &mut Body, corners: &[Expr; 4], class: Option<Expr>) -> BoxFields {
        let low = [0, 1].map(|k| b.let_("low", &te::minimum(&corners[k], &corners[k + 2])));
        let high = [0, 1].map(|k| b.let_("high", &te::maximum(&corners[k], &corners[k + 2])));
        let area = b.let_("area", &((&high[0] - &low[0]) * (&high[1] - &low[1])));
        BoxFields { low, high, area, class }
    }
}

/// The boxes kept so far of one image or class.
pub(super) struct KeptBoxes<'a> {
    /// The fields of the kept boxes: the lower limits, the upper limits, the area, and the class, if classes are compared.
    fields: &'a Tensor,
    /// The number of kept boxes.
    pub count: Cell,
}

impl<'a> KeptBoxes<'a> {
    /// Emits the allocation of the memory for up to `capacity` boxes. The memory has at least one row, so that clamped indices
    /// are always inside.
    pub fn alloc(b: &mut Body, capacity: &Expr, dtype: DType, has_classes: bool) -> Tensor {
        let rows = te::maximum(capacity, &te::int(1));
        b.alloc("kept", &[rows, te::int(if has_classes { 6 } else { 5 })], dtype)
    }

    /// Starts without any kept boxes. The memory must come from [`Self::alloc`].
    pub fn new(b: &mut Body, fields: &'a Tensor) -> KeptBoxes<'a> {
        KeptBoxes { fields, count: b.cell("count", &te::int(0)) }
    }

    /// Emits code that appends a box.
    pub fn push(&self, b: &mut Body, fields: &BoxFields) {
        let at = b.let_("slot", &clamp(&self.count.get(), &self.fields.shape()[0]));
        let values = fields.low.iter().chain(&fields.high).chain([&fields.area]);
        for (k, value) in values.chain(&fields.class).enumerate() {
            b.store(self.fields, &[at.clone(), te::int(k as i64)], value);
        }
        b.set(&self.count, &(self.count.get() + 1));
    }

    /// Emits code that clears `keep` if a kept box of the same class suppresses a box. `suppresses` decides this from the overlap
    /// (IoU) of both boxes: the area of their intersection divided by the area of their union.
    pub fn clear_if_suppressed(
        &self,
        b: &mut Body,
        keep: &Cell,
        fields: &BoxFields,
        suppresses: impl Fn(&Expr) -> Expr,
    ) {
        let zero = te::const_of(0.0, self.fields.dtype());
        let index = b.cell("index", &te::int(0));
        b.while_(&te::and(&keep.get(), &te::lt(&index.get(), &self.count.get())), |b| {
            let at = b.let_("at", &clamp(&index.get(), &self.fields.shape()[0]));
            b.set(&index, &(index.get() + 1));
            let field = |k: usize| self.fields.at(&[at.clone(), te::int(k as i64)]);
            let shared = [0, 1].map(|k| {
                let low = te::maximum(&fields.low[k], &field(k));
                b.let_("shared", &(te::minimum(&fields.high[k], &field(k + 2)) - low))
            });
            let intersection = &shared[0] * &shared[1];
            let union = &fields.area + field(4) - &intersection;
            let iou = te::select(&te::gt(&union, &zero), &(intersection / &union), &zero);
            // Most boxes do not intersect, so their overlap is not computed. One branch for both axes is predicted better than two.
            let intersects = te::and(&te::gt(&shared[0], &zero), &te::gt(&shared[1], &zero));
            let mut hit = te::if_then_else(&intersects, &suppresses(&iou), &suppresses(&zero));
            if let Some(class) = &fields.class {
                hit = te::and(&hit, &te::eq(class, &field(5)));
            }
            b.if_(&hit, |b| b.set(keep, &te::bool_const(false)));
        });
    }
}
