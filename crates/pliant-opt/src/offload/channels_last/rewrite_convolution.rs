//! Rewrites convolutions from the channels-first to the channels-last layout.

use pliant_ir::relax::{Expr, Function};
use pliant_ir::{AttrValue, Attrs, DType};
use pliant_pass::PassError;

use super::{LayoutRewriter, OpCall, Site, op_call};
use crate::common::image_layout_attributes::{channels_first, has_layout, with_channels_last};
use crate::common::matmul_and_conv_operands::CONVOLUTIONS;
use crate::offload::int8_epilogue::{CAST, SUBTRACT};
use crate::offload::rules::conv_int8::conv_int8_matcher as integers;

/// Whether a value is a float32 convolution in channels-first layout with weights of constant sizes.
pub(super) fn is_convolution(func: &Function, e: Expr) -> bool {
    let Some(OpCall { op, args, attrs }) = op_call(func, e) else { return false };
    let Some(index) = CONVOLUTIONS.iter().position(|&o| o == op) else { return false };
    let float = |e: Expr| func.ty(e).dtype() == Some(DType::Float32);
    let channels_last = |d: &[_]| d.iter().all(|&d| func.syms.as_int(d).is_some());
    func.ty(args[1]).dims().is_some_and(channels_last)
        && args.iter().all(|&a| float(a))
        && float(e)
        && func.ty(e).dims().is_some()
        && func.ty(args[0]).dims().is_some()
        && has_layout(&attrs, "data_layout", &channels_first(index % 3 + 1))
}

impl LayoutRewriter<'_> {
    /// Rewrites a convolution to channels last. Returns `None` for other calls.
    pub(super) fn rewrite_convolution(
        &mut self,
        site: &mut Site<'_>,
        call: &OpCall,
    ) -> Result<Option<Expr>, PassError> {
        let (args, attrs) = (&call.args, call.attrs.clone());
        let (x, dims) = if is_convolution(site.func, site.binding.value) {
            let dims = site.func.ty(args[0]).dims().map_or(0, <[_]>::len) - 2;
            (self.channels_last_operand(site, args[0])?, dims)
        } else {
            let c = integers::match_convolution(site.func, &self.defs, site.binding);
            let Some(c) = c.filter(|c| !c.channels_last) else { return Ok(None) };
            (self.integer_input(site, args[0], &c)?, c.dims)
        };
        let attrs = with_channels_last(attrs, "data_layout", dims);
        self.op_with_inferred_type(site.func, call.op, &[x, args[1]], attrs).map(Some)
    }

    /// Returns the channels-last input of an int32 convolution of a cast 8-bit tensor. The 8-bit tensor is transposed before the
    /// cast, because it is smaller.
    fn integer_input(
        &mut self,
        site: &mut Site<'_>,
        e: Expr,
        c: &integers::Convolution,
    ) -> Result<Expr, PassError> {
        if let Some(channels_last) = self.channels_last_value(site, e) {
            return Ok(channels_last);
        }
        let mut x = self.channels_last_operand(site, c.x)?;
        if site.func.ty(x).dtype() != site.func.ty(e).dtype() {
            let attrs = Attrs::default().with("dtype", AttrValue::DType(DType::Int32));
            let wide = self.op_with_inferred_type(site.func, CAST, &[x], attrs)?;
            x = self.bind(site, wide);
        }
        if let Some(zero) = c.zero {
            let centred =
                self.op_with_inferred_type(site.func, SUBTRACT, &[x, zero], Attrs::default())?;
            x = self.bind(site, centred);
        }
        Ok(x)
    }
}
