//! Rewrites pooling to channels last, for the kernel `pool`.

use pliant_ir::DType;
use pliant_ir::relax::{Expr, Function};
use pliant_pass::PassError;

use super::{LayoutRewriter, OpCall, Site, op_call};
use crate::common::image_layout::{first, has_layout, with_channels_last};
use crate::offload::rules::pool;
use pliant_machine::Machine;

/// The number of spatial dims of a pooling with channels first, if the kernel `pool` computes it faster with channels last.
pub(super) fn pooled_dims(func: &Function, e: Expr) -> Option<usize> {
    let OpCall { op, args, attrs } = op_call(func, e)?;
    let index = pool::OPS.iter().position(|&own| own == op)?;
    let windows = pool::Windows::of(index, &attrs).ok()?;
    let channels = func.syms.as_int(*func.ty(args[0]).dims()?.get(1)?);
    let machine = Machine::host();
    let faster = machine.transposed_pooling_is_faster(channels, windows.dims, windows.reads());
    let fits = faster && func.ty(args[0]).dtype() == Some(DType::Float32);
    (fits && has_layout(&attrs, "layout", &first(windows.dims))).then_some(windows.dims)
}

impl LayoutRewriter<'_> {
    /// Rewrites a wide pooling to channels last; `None` for other calls.
    pub(super) fn pooling(
        &mut self,
        site: &mut Site<'_>,
        call: &OpCall,
    ) -> Result<Option<Expr>, PassError> {
        let Some(dims) = pooled_dims(site.func, site.binding.value) else { return Ok(None) };
        let x = self.operand(site, call.args[0])?;
        let attrs = with_channels_last(call.attrs.clone(), "layout", dims);
        self.call(site.func, call.op, &[x], attrs).map(Some)
    }
}
