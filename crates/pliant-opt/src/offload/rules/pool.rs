//! # What it does
//! Offloads pooling of images with channels first or channels last.
//!
//! # Before
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "h", 4, 2), "float32")) -> R.Tensor(("n", "h", 4, 2), "float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         gv = R.nn.max_pool2d(x, pool_size=[3, 3], padding=[1, 1, 1, 1], layout="NHWC", out_layout="NHWC")
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # After
//! ```python
//! @R.function
//! def main(x: R.Tensor(("n", "h", 4, 2), dtype="float32")) -> R.Tensor(("n", "h", 4, 2), dtype="float32"):
//!     n = T.int64()
//!     h = T.int64()
//!     with R.dataflow():
//!         gv: R.Tensor((n, h, 4, 2), dtype="float32") = R.call_kernel("pool", x=x, axes={"x": [0, 3, -1, 1, 2], "out": [0, 3, -1, 1, 2]}, kind="max", kernel_shape=[1, 3, 3], padding=[0, 1, 1], out_sinfo=R.Tensor((n, h, 4, 2), dtype="float32"))
//!         R.output(gv)
//!     return gv
//! ```
//!
//! # Requires
//! Nothing. It should run after [`ChannelsLast`](crate::offload::channels_last).
//!
//! # Keeps
//! - Pooling of other types than float32, and float16 and bfloat16, which are cast to it.
//! - Large windows with a stride, or of many channels, of images with channels last: loops reduce one axis after the other.
//! - Windows of images with channels first with more than 512 columns, or columns that are more than 2047 apart.
//! - Means that count padding.
//! - All pooling if kernels are disabled.
//!
//! # Never
//! Changes a value, except for the rounding of means.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Callee, ExprData, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_kernel_api::kernels::conv::MOST;
use pliant_kernel_api::kernels::pool::{KERNEL, MOST_ELEMENTS, takes_columns};
use pliant_machine::Machine;
use pliant_pass::PassError;

use crate::common::image_layout::{channels_first, channels_last, kernel_image_axes};
use crate::offload::kernel_attributes::KernelAttributes;
use crate::offload::rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

/// Max pooling, then mean pooling, each by the number of spatial dims.
const OPS: [Op; 6] = [
    Op::new("relax.nn.max_pool1d"),
    Op::new("relax.nn.max_pool2d"),
    Op::new("relax.nn.max_pool3d"),
    Op::new("relax.nn.avg_pool1d"),
    Op::new("relax.nn.avg_pool2d"),
    Op::new("relax.nn.avg_pool3d"),
];

/// The entry in the table of rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "pool",
        "pool",
        "pooling of float32, float16 and bfloat16",
        Stage::Kernel,
        &OPS,
        |_| Ok(Box::new(Pool)),
    )
}

struct Pool;

/// The attributes of a call.
struct Windows {
    mean: bool,
    /// The number of spatial dims.
    dims: usize,
    channels_last: bool,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilation: Vec<i64>,
    before: Vec<i64>,
}

impl Windows {
    /// The windows of a call of the operator with this index in [`OPS`], on images with this number of channels if they come last,
    /// or the reason why the kernel cannot compute them.
    fn of(index: usize, attrs: &Attrs, channels: Option<i64>) -> Result<Windows, KeepReason> {
        let (mean, dims) = (index >= 3, index % 3 + 1);
        let list = |name: &str| attrs.get(name).and_then(AttrValue::as_ints).unwrap_or_default();
        let flag = |name: &str| attrs.get(name).and_then(AttrValue::as_bool).unwrap_or(false);
        let padding = list("padding");
        let (kernel, strides, dilation) = (list("pool_size"), list("strides"), list("dilation"));
        let whole = [kernel.len(), strides.len(), dilation.len()] == [dims; 3];
        if !whole || padding.len() != 2 * dims {
            return Err(KeepReason::NotApplicable);
        }
        // With `ceil_mode`, elements beyond the padding are never counted.
        let padded = padding.iter().any(|&n| n != 0);
        if mean && flag("count_include_pad") && padded {
            return Err("its means count padding".into());
        }
        let channels_last = match attrs.get("layout").and_then(AttrValue::as_str) {
            Some(layout) if layout == channels_last(dims) => true,
            Some(layout) if layout == channels_first(dims) => false,
            _ => return Err("its layout is neither channels first nor channels last".into()),
        };
        let out_layout = attrs.get("out_layout").and_then(AttrValue::as_str);
        if out_layout
            .is_some_and(|own| attrs.get("layout").and_then(AttrValue::as_str) != Some(own))
        {
            return Err("its result has another layout".into());
        }
        // With adjacent columns, the kernel combines one dim after the other.
        let (columns, apart) = (kernel[dims - 1], dilation[dims - 1]);
        let by_columns = match channels {
            _ if !channels_last => takes_columns(columns, apart),
            Some(n) => strides[dims - 1] == 1 && takes_columns(columns, apart.saturating_mul(n)),
            None => false,
        };
        if !channels_last && !by_columns {
            return Err("its windows are wide".into());
        }
        if !by_columns && !Machine::host().whole_windows_are_faster(&kernel) {
            return Err("its windows are large: loops reduce one axis after the other".into());
        }
        let elements = kernel.iter().fold(1i64, |n, &k| n.saturating_mul(k));
        let lists = [&kernel, &strides, &dilation, &padding];
        if elements > MOST_ELEMENTS || lists.into_iter().flatten().any(|&n| n > MOST) {
            return Err("the kernel does not take numbers of this size".into());
        }
        let before = padding[..dims].to_vec();
        Ok(Windows { mean, dims, channels_last, kernel, strides, dilation, before })
    }

    /// Sets the attributes of a kernel call, and the axes of images.
    fn attributes(&self, call: NewKernelCall) -> NewKernelCall {
        call.axes("x", kernel_image_axes(self.dims, self.channels_last))
            .axes("out", kernel_image_axes(self.dims, self.channels_last))
            .text("kind", if self.mean { "mean" } else { "max" })
            .window(&self.kernel, &self.strides, &self.dilation, &self.before)
    }
}

impl Rule for Pool {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let value = site.root.value;
        let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = site.func.expr(value)
        else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let index = OPS.iter().position(|own| own == op);
        let x = site.func.list(*args)[0];
        let attrs = site.func.call_attrs(*attrs);
        let channels = site.func.ty(x).dims().and_then(|dims| dims.last());
        let channels = channels.and_then(|&n| site.func.syms.as_int(n));
        let windows = match index.map(|index| Windows::of(index, attrs, channels)) {
            Some(Ok(windows)) => windows,
            Some(Err(kept)) => return Ok(Err(kept)),
            None => return Ok(Err(KeepReason::NotApplicable)),
        };
        let ty = site.func.ty(x);
        let dtype = match ty.dtype() {
            Some(dtype @ (DType::Float32 | DType::Float16 | DType::BFloat16)) => dtype,
            _ => return Ok(Err("its operand is not float32, float16 or bfloat16".into())),
        };
        if ty.dims().is_none() {
            return Ok(Err("the shape of its operand is unknown".into()));
        }
        if dtype == DType::Float32 {
            let call = windows.attributes(NewKernelCall::new(&KERNEL).operand("x", x));
            return Ok(site.call_kernel(call, site.root.var, Vec::new()));
        }
        // Results of 16 bits are rounded once.
        let wide = site.cast(x, DType::Float32)?;
        let wide = site.emit(wide);
        let call = windows.attributes(NewKernelCall::new(&KERNEL).operand("x", wide));
        let Some(dims) = site.func.ty(site.root.value).dims().map(<[_]>::to_vec) else {
            return Ok(Err("the shape of its result is unknown".into()));
        };
        let result = site.func.intern(TypeData::tensor(dims, DType::Float32));
        Ok(match site.call_kernel_as(call, &[result], site.root.var, Vec::new()) {
            Ok(mut offloaded) => {
                let wide = site.emit(offloaded.value);
                offloaded.value = site.cast(wide, dtype)?;
                Ok(offloaded)
            }
            kept => kept,
        })
    }
}
