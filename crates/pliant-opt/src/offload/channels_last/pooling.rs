//! Poolings that the kernel `pool` computes, with channels last.

use pliant_ir::DType;
use pliant_ir::relax::{Expr, Function};
use pliant_pass::PassError;

use super::convolution::{has_channels_first, with_channels_last};
use super::{LayoutRewriter, OpCall, Site, op_call};
use crate::offload::rules::pool;

/// Channels from which a pooling with channels last is faster although its input and result are transposed: two vectors. A
/// non-constant number is taken for large.
const POOLED_CHANNELS: i64 = 32;
/// Windows that read each element from which it is faster. With fewer (2x2 with stride 2), and along one dim, loops over channels
/// first take half the time of the transposes.
const POOLED_READS: i64 = 2;

/// The number of spatial dims of a pooling with channels first, if the kernel `pool` computes it faster with channels last.
pub(super) fn pooled_dims(func: &Function, e: Expr) -> Option<usize> {
    let OpCall { op, args, attrs } = op_call(func, e)?;
    let index = pool::OPS.iter().position(|&own| own == op)?;
    let windows = pool::Windows::of(index, &attrs).ok()?;
    let channels = func.syms.as_int(*func.ty(args[0]).dims()?.get(1)?);
    let many = channels.is_none_or(|count| count >= POOLED_CHANNELS);
    let overlap = windows.dims > 1 && windows.reads() >= POOLED_READS;
    let fits = many && overlap && func.ty(args[0]).dtype() == Some(DType::Float32);
    (fits && has_channels_first(&attrs, "layout", windows.dims)).then_some(windows.dims)
}

impl LayoutRewriter<'_> {
    /// A pooling with channels last, whatever the layout of its input; `None` for other calls.
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
