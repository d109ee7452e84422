//! # What it does
//! Offloads pooling by small windows of images with channels last. Large windows stay in loops, which reduce one axis after the
//! other.
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
//! - Pooling of other types than float32, or of images whose channels are not last.
//! - Means that count padding.
//! - All pooling if kernels are disabled.
//!
//! # Never
//! Changes a value, except for the rounding of means.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Callee, ExprData};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_kernel_api::kernels::conv::MOST;
use pliant_kernel_api::kernels::pool::{KERNEL, MOST_ELEMENTS};
use pliant_machine::Machine;
use pliant_pass::PassError;

use crate::common::image_layout::{axes, has_layout, last};
use crate::offload::kernel_attributes::KernelAttributes;
use crate::offload::rule::{Kept, Rule, RuleInfo, Site, Stage, Verdict};

/// Max pooling, then mean pooling, each by the number of spatial dims.
pub(crate) const OPS: [Op; 6] = [
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
        "pooling of float32 by small windows, channels last",
        Stage::Kernel,
        &OPS,
        |_| Ok(Box::new(Pool)),
    )
}

struct Pool;

/// The attributes of a call, without its layout.
pub(crate) struct Windows {
    mean: bool,
    /// The number of spatial dims.
    pub dims: usize,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilation: Vec<i64>,
    before: Vec<i64>,
}

impl Windows {
    /// The windows of a call of the operator with this index in [`OPS`], or the reason why the kernel cannot compute them in any
    /// layout.
    pub fn of(index: usize, attrs: &Attrs) -> Result<Windows, Kept> {
        let (mean, dims) = (index >= 3, index % 3 + 1);
        let list = |name: &str| attrs.get(name).and_then(AttrValue::as_ints).unwrap_or_default();
        let flag = |name: &str| attrs.get(name).and_then(AttrValue::as_bool).unwrap_or(false);
        let padding = list("padding");
        let (kernel, strides, dilation) = (list("pool_size"), list("strides"), list("dilation"));
        let whole = [kernel.len(), strides.len(), dilation.len()] == [dims; 3];
        if !whole || padding.len() != 2 * dims {
            return Err(Kept::NotApplicable);
        }
        // With `ceil_mode`, elements beyond the padding are never counted.
        let padded = padding.iter().any(|&n| n != 0);
        if mean && flag("count_include_pad") && padded {
            return Err("its means count padding".into());
        }
        let elements = kernel.iter().fold(1i64, |n, &k| n.saturating_mul(k));
        if !Machine::host().whole_windows_are_faster(&kernel) {
            return Err("its windows are large: loops reduce one axis after the other".into());
        }
        let lists = [&kernel, &strides, &dilation, &padding];
        if elements > MOST_ELEMENTS || lists.into_iter().flatten().any(|&n| n > MOST) {
            return Err("the kernel does not take numbers of this size".into());
        }
        let before = padding[..dims].to_vec();
        Ok(Windows { mean, dims, kernel, strides, dilation, before })
    }

    /// Sets the attributes of a kernel call, and the axes of images with channels last.
    fn attributes(&self, call: NewKernelCall) -> NewKernelCall {
        call.axes("x", axes(self.dims, true))
            .axes("out", axes(self.dims, true))
            .text("kind", if self.mean { "mean" } else { "max" })
            .window(&self.kernel, &self.strides, &self.dilation, &self.before)
    }

    /// The number of windows that read an element, rounded down.
    pub fn reads(&self) -> i64 {
        let product = |list: &[i64]| list.iter().fold(1i64, |n, &k| n.saturating_mul(k));
        product(&self.kernel) / product(&self.strides).max(1)
    }
}

impl Rule for Pool {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Verdict, PassError> {
        let value = site.root.value;
        let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = site.func.expr(value)
        else {
            return Ok(Err(Kept::NotApplicable));
        };
        let index = OPS.iter().position(|own| own == op);
        let x = site.func.list(*args)[0];
        let attrs = site.func.call_attrs(*attrs);
        let windows = match index.map(|index| Windows::of(index, attrs)) {
            Some(Ok(windows)) if !has_layout(attrs, "layout", &last(windows.dims)) => {
                return Ok(Err("its channels are not last".into()));
            }
            Some(Ok(windows)) => windows,
            Some(Err(kept)) => return Ok(Err(kept)),
            None => return Ok(Err(Kept::NotApplicable)),
        };
        let ty = site.func.ty(x);
        if ty.dtype() != Some(DType::Float32) || ty.dims().is_none() {
            return Ok(Err("its operand is not a float32 tensor of known rank".into()));
        }
        let call = windows.attributes(NewKernelCall::new(&KERNEL).operand("x", x));
        Ok(site.call_kernel(call, site.root.var, Vec::new()))
    }
}
