//! Carries the channels-last layout through reshapes that merge or split only spatial dims, such as the ones before and after the
//! attention of a vision transformer: `[n, c, h, w]` to `[n, c, h * w]`. Such a reshape maps spatial positions in the same way for
//! each channel, so it has the same meaning in both layouts, and needs no copy in either.

use pliant_ir::Attrs;
use pliant_ir::relax::{Expr, ExprData};
use pliant_pass::PassError;

use super::{LayoutRewriter, OpCall, Site, op_call};
use crate::common::operators_after_lowering::RESHAPE;

impl LayoutRewriter<'_> {
    /// Rewrites a reshape of a value that is available in channels-last layout. `None` for other calls, and for reshapes that
    /// change the batch or the number of channels.
    pub(super) fn rewrite_reshape(
        &self,
        site: &mut Site<'_>,
        call: &OpCall,
    ) -> Result<Option<Expr>, PassError> {
        match call.args.first().and_then(|&x| self.channels_last_value(site, x)) {
            Some(value) if call.op == RESHAPE => self.reshape_channels_last(site, call, value),
            _ => Ok(None),
        }
    }

    /// If a binding reshapes the result of a transpose from channels last to channels first, emits the same reshape of the
    /// operand of the transpose and returns its result. The binding itself does not change.
    pub(super) fn emit_reshape_of_source(
        &mut self,
        site: &mut Site<'_>,
    ) -> Result<Option<Expr>, PassError> {
        let Some(call) = op_call(site.func, site.binding.value) else { return Ok(None) };
        let Some(&x) = call.args.first().filter(|_| call.op == RESHAPE) else { return Ok(None) };
        if self.channels_last_value(site, x).is_some() {
            return Ok(None);
        }
        let Some(source) = self.lookup(&self.transposed_sources, site, x) else { return Ok(None) };
        let Some(value) = self.reshape_channels_last(site, &call, source)? else { return Ok(None) };
        self.make_visible(site, source, x);
        Ok(Some(self.bind(site, value)))
    }

    /// Returns the reshape of `value`, which contains the operand of `call` in channels-last layout. `None` if the reshape does
    /// not keep the first two dims, or if its result has no spatial dims.
    fn reshape_channels_last(
        &self,
        site: &mut Site<'_>,
        call: &OpCall,
        value: Expr,
    ) -> Result<Option<Expr>, PassError> {
        let func = &mut *site.func;
        let ExprData::Shape(target) = func.expr(call.args[1]) else { return Ok(None) };
        let target = target.to_vec();
        let source = func.ty(call.args[0]).dims().unwrap_or_default();
        let ([n, c, _, ..], [batch, channels, spatial @ ..]) = (source, &target[..]) else {
            return Ok(None);
        };
        if (n, c) != (batch, channels) || spatial.is_empty() {
            return Ok(None);
        }
        let dims: Vec<_> = [batch].into_iter().chain(spatial).chain([channels]).copied().collect();
        let shape = func.shape(&dims);
        self.op_with_inferred_type(func, RESHAPE, &[value, shape], Attrs::default()).map(Some)
    }
}
