//! Rewrites operators other than convolutions to the channels-last layout, depending on how they refer to dims ([`DimTrait`]).

use pliant_ir::op::DimTrait;
use pliant_ir::relax::{Expr, ExprData, Function, TypeData};
use pliant_ir::{AttrValue, Attrs};
use pliant_pass::PassError;

use super::{LayoutRewriter, OpCall, Site, constant_to_channels_last};
use crate::common::image_layout_attributes::{channels_first, has_layout, with_channels_last};

/// Converts the index of a dim from channels first to channels last. Negative indices count from the end. `None` if the index is
/// out of range.
fn to_channels_last(dim: i64, rank: i64) -> Option<i64> {
    match if dim < 0 { dim + rank } else { dim } {
        0 => Some(0),
        1 => Some(rank - 1),
        dim if (2..rank).contains(&dim) => Some(dim - 1),
        _ => None,
    }
}

/// Converts an attribute that is the index of a dim, or a list of such indices, from channels first to channels last. `None` for
/// other attributes.
fn attr_to_channels_last(value: &AttrValue, rank: i64) -> Option<AttrValue> {
    if let Some(dim) = value.as_int() {
        return to_channels_last(dim, rank).map(AttrValue::Int);
    }
    let dims: Option<Vec<i64>> =
        value.as_ints()?.into_iter().map(|dim| to_channels_last(dim, rank)).collect();
    dims.map(AttrValue::ints)
}

/// The rank of a tensor; `None` if its dims are unknown.
fn rank(func: &Function, e: Expr) -> Option<usize> {
    let ty = func.ty(e);
    ty.dims().filter(|_| matches!(ty, TypeData::Tensor { .. })).map(<[_]>::len)
}

impl LayoutRewriter<'_> {
    /// Rewrites an elementwise call to channels last. At least one operand with the shape of the result must be available in this
    /// layout. Other operands are transposed, which is cheap for per-channel operands.
    pub(super) fn rewrite_elementwise(
        &mut self,
        site: &mut Site<'_>,
        call: &OpCall,
    ) -> Result<Option<Expr>, PassError> {
        let Some(dims) = site.func.ty(site.binding.value).dims().map(<[_]>::to_vec) else {
            return Ok(None);
        };
        let is_whole = |func: &Function, e: Expr| func.ty(e).dims() == Some(&dims[..]);
        let is_available =
            |e: Expr| is_whole(site.func, e) && self.channels_last_value(site, e).is_some();
        if !call.args.iter().any(|&e| is_available(e)) {
            return Ok(None);
        }
        let mut operands = Vec::with_capacity(call.args.len());
        for &e in &call.args {
            operands.push(match constant_to_channels_last(site.func, e, dims.len()) {
                Some(constant) => constant,
                None if rank(site.func, e) == Some(dims.len()) => {
                    self.channels_last_operand(site, e)?
                }
                None if rank(site.func, e) == Some(0) => e,
                None => return Ok(None),
            });
        }
        self.op_with_inferred_type(site.func, call.op, &operands, call.attrs.clone()).map(Some)
    }

    /// Rewrites a call whose attributes refer to dims of its first operand to channels last, if this operand is available in this
    /// layout. `None` otherwise.
    pub(super) fn rewrite_named_dims(
        &mut self,
        site: &mut Site<'_>,
        mut call: OpCall,
        dims: DimTrait,
    ) -> Result<Option<Expr>, PassError> {
        let Some(rank) = self.first_operand_rank(site, &call, dims) else { return Ok(None) };
        let Some(attrs) = attrs_to_channels_last(&call.attrs, dims, rank) else { return Ok(None) };
        if let DimTrait::NamedByOperand(index) = dims {
            let Some(list) = list_to_channels_last(site.func, call.args[index], rank) else {
                return Ok(None);
            };
            call.args[index] = list;
        }
        let first = match site.func.expr(call.args[0]) {
            ExprData::Tuple(fields) => {
                let fields = site.func.list(*fields).to_vec();
                let fields =
                    fields.into_iter().map(|field| self.channels_last_operand(site, field));
                let fields: Vec<Expr> = fields.collect::<Result<_, _>>()?;
                site.func.tuple(&fields)
            }
            _ => self.channels_last_operand(site, call.args[0])?,
        };
        call.args[0] = first;
        self.op_with_inferred_type(site.func, call.op, &call.args, attrs).map(Some)
    }

    /// Returns the rank of the first operand, if it is available in channels-last layout and the other tensors are vectors, which
    /// have no layout. If the first operand is a tuple, at least half of its fields must be available, because the others must be
    /// transposed.
    fn first_operand_rank(&self, site: &Site<'_>, call: &OpCall, dims: DimTrait) -> Option<i64> {
        let func = &*site.func;
        let first = *call.args.first()?;
        let vectors = call.args[1..].iter().all(|&e| rank(func, e).is_none_or(|rank| rank <= 1));
        let fields = match func.expr(first) {
            ExprData::Tuple(fields) => func.list(*fields),
            _ => std::slice::from_ref(&first),
        };
        let first_rank = rank(func, *fields.first()?)?;
        let same_rank = fields.iter().all(|&e| rank(func, e) == Some(first_rank));
        let available = |e: Expr| match dims {
            DimTrait::Layout(_) => self.channels_last_image(site, e),
            _ => self.channels_last_value(site, e),
        };
        let is_available = fields.iter().filter(|&&e| available(e).is_some()).count();
        (vectors && same_rank && is_available > 0 && 2 * is_available >= fields.len())
            .then_some(first_rank as i64)
    }

    /// Rewrites a reduction over all dims except batch and channels to read a channels-last operand. Its result has no layout,
    /// because the reduced dims are removed.
    pub(super) fn rewrite_reduction(&self, site: &mut Site<'_>) -> Result<Option<Expr>, PassError> {
        let value = site.binding.value;
        let Some(OpCall { op, args, mut attrs }) = super::op_call(site.func, value) else {
            return Ok(None);
        };
        if self.ops.dim_trait(op) != DimTrait::Reduced || keeps_dims(&attrs) {
            return Ok(None);
        }
        let Some(x) = self.channels_last_value(site, args[0]) else { return Ok(None) };
        let Some(rank) = rank(site.func, x).map(|rank| rank as i64) else { return Ok(None) };
        let Some(mut axes) = attrs.get("axis").and_then(AttrValue::as_ints) else {
            return Ok(None);
        };
        axes.iter_mut().for_each(|axis| *axis += if *axis < 0 { rank } else { 0 });
        axes.sort_unstable();
        if axes != (2..rank).collect::<Vec<_>>() {
            return Ok(None);
        }
        let single = attrs.get("axis").is_some_and(|axis| axis.as_int().is_some());
        attrs.set("axis", if single { AttrValue::Int(1) } else { AttrValue::ints(1..rank - 1) });
        let new = self.op_with_inferred_type(site.func, op, &[x], attrs)?;
        Ok((site.func.expr_ty(new) == site.func.expr_ty(value)).then_some(new))
    }
}

fn keeps_dims(attrs: &Attrs) -> bool {
    attrs.get("keepdims").and_then(AttrValue::as_bool).unwrap_or(false)
}

/// Returns the attributes of a call whose operands are rewritten to channels last. `None` if the call refers to dims that the
/// attributes do not state explicitly.
fn attrs_to_channels_last(attrs: &Attrs, dims: DimTrait, rank: i64) -> Option<Attrs> {
    let mut out = attrs.clone();
    let mut convert_attr = |name: &str| {
        let value = attr_to_channels_last(attrs.get(name)?, rank)?;
        out.set(name, value);
        Some(())
    };
    match dims {
        DimTrait::Named(names) => names.iter().try_for_each(|name| convert_attr(name))?,
        DimTrait::Reduced if keeps_dims(attrs) => convert_attr("axis")?,
        DimTrait::NamedByOperand(_) => {}
        DimTrait::Paired(name) => {
            let pairs = attrs.get(name)?.as_ints()?;
            let (pairs, rest) = pairs.as_chunks::<2>();
            let [batch, channels, spatial @ ..] = pairs else { return None };
            if pairs.len() as i64 != rank || !rest.is_empty() {
                return None;
            }
            let last = [batch].into_iter().chain(spatial).chain([channels]).flatten().copied();
            out.set(name, AttrValue::ints(last));
        }
        DimTrait::Layout(name) => {
            // A region of interest lists the dims in the order of the layout, so it cannot be kept.
            let spatial = usize::try_from(rank - 2).ok().filter(|n| (1..=3).contains(n))?;
            let region = attrs.get("roi").is_some_and(|roi| !roi.is_none());
            if region || !has_layout(attrs, name, &channels_first(spatial)) {
                return None;
            }
            return Some(with_channels_last(out, name, spatial));
        }
        DimTrait::Reduced | DimTrait::Opaque | DimTrait::Elementwise => return None,
    }
    Some(out)
}

/// Converts the dim indices in a constant list operand from channels first to channels last.
fn list_to_channels_last(func: &mut Function, e: Expr, rank: i64) -> Option<Expr> {
    let ExprData::Shape(dims) = func.expr(e) else { return None };
    let dims = dims.iter().map(|&dim| to_channels_last(func.syms.as_int(dim)?, rank));
    let dims: Vec<i64> = dims.collect::<Option<_>>()?;
    let dims: Vec<_> = dims.into_iter().map(|dim| func.syms.int(dim)).collect();
    Some(func.shape(&dims))
}
