//! Rewrites convolutions of dequantized inputs with dequantized constant weights.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_pass::PassError;
use pliant_pass::pattern::RewriteCx;
use pliant_tensor::{Tensor, TensorError};

use super::filters::Filters;
use super::left::{Left, Zero};
use super::{MULTIPLY, cast, centred};
use crate::common::products::{CONVOLUTIONS, call_operands};
use crate::offload::dequantized::{Finder, integers, is_one};
use crate::offload::rules::conv::matcher::data_layout;

/// A convolution of a dequantized input with dequantized constant weights.
pub(super) struct Convolved {
    op: Op,
    attrs: Attrs,
    x: Left,
    filters: Filters,
    /// The channel dim of the results.
    along: usize,
}

impl Convolved {
    /// The convolution that a value is, if its sums are known to fit 32 bits and the kernel supports it.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn of(finder: &Finder<'_>, value: Expr) -> Result<Option<Convolved>, TensorError> {
        let func = finder.func;
        let found = CONVOLUTIONS[..3].iter().enumerate();
        let mut found =
            found.filter_map(|(d, &op)| Some((d + 1, op, call_operands(func, value, op)?)));
        let Some((dims, op, (args, attrs))) = found.next() else { return Ok(None) };
        let float = func.ty(value).dtype() == Some(DType::Float32);
        let layout = attrs.get("kernel_layout").and_then(AttrValue::as_str);
        let place = layout.and_then(|layout| layout.find('O'));
        let inner = layout.and_then(|layout| layout.find('I'));
        let (Some(last), Some(place), Some(inner), true) =
            (data_layout(attrs, dims), place, inner, float)
        else {
            return Ok(None);
        };
        let x = Left::of(finder, args[0]).filter(|x| is_one(func, x.scale) && fits(finder, x));
        let sizes = finder.sizes(args[1]).filter(|s| s.len() == dims + 2);
        let (Some(x), Some(sizes)) = (x, sizes) else { return Ok(None) };
        let groups = attrs.get("groups").and_then(AttrValue::as_int).unwrap_or(1);
        let alone = sizes[inner] == 1 && i64::try_from(sizes[place]) == Ok(groups);
        if groups != 1 && !alone {
            return Ok(None);
        }
        let filters = Filters::of(finder, args[1], place, x.most)?;
        let along = if last { dims + 1 } else { 1 };
        Ok(filters.map(|filters| Convolved { op, attrs: attrs.clone(), x, filters, along }))
    }

    /// The convolution of the integers, multiplied by both scales.
    ///
    /// # Errors
    /// If an operator rejects the types of its operands.
    pub fn replaced(&self, cx: &mut RewriteCx<'_>) -> Result<Expr, PassError> {
        let x = centred(cx, &self.x)?;
        let weights = cx.func.constant(self.filters.integers.clone());
        let mut attrs = self.attrs.clone();
        attrs.set("out_dtype", AttrValue::DType(DType::Int32));
        let sum = cx.call(self.op, &[x, weights], attrs)?;
        let sum = cast(cx, sum, DType::Float32)?;
        let scaled = cx.call(MULTIPLY, &[sum, self.x.scale], Attrs::default())?;
        let scales = &self.filters.scales;
        let mut shape = vec![1; self.filters.integers.ndim()];
        shape[self.along] = scales.len() as i64;
        let scales = Tensor::from_slice(&shape, scales)
            .map_err(|e| PassError::internal(format!("scales of filters are no constant: {e}")))?;
        let scales = cx.func.constant(scales);
        cx.call(MULTIPLY, &[scaled, scales], Attrs::default())
    }
}

/// Whether the zero point is one number that is known to fit the 8-bit type of the input, since it becomes the padding.
fn fits(finder: &Finder<'_>, x: &Left) -> bool {
    let dtype = finder.func.ty(x.x).dtype();
    match &x.zero {
        None => true,
        Some(Zero::Given(e)) => is_one(finder.func, *e) && finder.func.ty(*e).dtype() == dtype,
        Some(Zero::Constant(tensor)) => {
            let range = if dtype == Some(DType::Int8) { -128..=127 } else { 0..=255 };
            let numbers = integers(tensor).ok().flatten();
            numbers.is_some_and(|all| matches!(all[..], [one] if range.contains(&one)))
        }
    }
}
