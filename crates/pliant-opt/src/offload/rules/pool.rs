//! # What it does
//! Offloads max and mean pooling of images, in channels-first or channels-last layout, to the kernel library.
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
//! - Pooling of types other than float32, float16 and bfloat16. (16-bit floats are cast to float32.)
//! - Large windows with a stride, or of many channels, in channels-last layout: generated loops, which reduce one axis after the
//!   other, are faster.
//! - Windows in channels-first layout with more than 512 columns, or with columns that are more than 2047 apart.
//! - Means that count padding.
//! - All pooling if kernels are disabled.
//!
//! # Never
//! Changes a value, except for the rounding of means.

use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ir::relax::{Callee, ExprData, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Op};
use pliant_kernel_api::kernels::conv::MAX_ATTR_VALUE;
use pliant_kernel_api::kernels::pooling::{
    KERNEL, MAX_WINDOW_COLUMNS, MAX_WINDOW_ELEMENTS, MAX_WINDOW_SPAN, supports_columns,
};
use pliant_machine::Machine;
use pliant_pass::PassError;

use crate::common::image_layout_attributes::{channels_first, channels_last, kernel_image_axes};
use crate::offload::kernel_attributes::KernelAttributes;
use crate::offload::offload_rule::{Decision, KeepReason, Rule, RuleInfo, Site, Stage};

/// The pooling operators: max pooling for 1 to 3 spatial dims, then mean pooling for 1 to 3 spatial dims.
const POOLING_OPS: [Op; 6] = [
    Op::new("relax.nn.max_pool1d"),
    Op::new("relax.nn.max_pool2d"),
    Op::new("relax.nn.max_pool3d"),
    Op::new("relax.nn.avg_pool1d"),
    Op::new("relax.nn.avg_pool2d"),
    Op::new("relax.nn.avg_pool3d"),
];

/// The entry of the rule `pool` in the table of offload rules.
pub(super) fn info() -> RuleInfo {
    RuleInfo::builtin(
        "pool",
        "pool",
        "pooling of float32, float16 and bfloat16",
        Stage::Kernel,
        &POOLING_OPS,
        |_| Ok(Box::new(Pool)),
    )
}

struct Pool;

/// The windows of a pooling operator, as its attributes define them.
struct PoolingWindows {
    mean: bool,
    /// The number of spatial dims of the images.
    dims: usize,
    channels_last: bool,
    filter_size: Vec<i64>,
    strides: Vec<i64>,
    dilation: Vec<i64>,
    padding_before: Vec<i64>,
}

impl PoolingWindows {
    /// Reads the windows from the attributes of a call of the operator at position `index` of [`POOLING_OPS`]. `channels` is the
    /// number of channels of channels-last images, if it is constant. The error is the reason why the kernel does not support the
    /// pooling.
    fn of(
        index: usize,
        attrs: &Attrs,
        channels: Option<i64>,
    ) -> Result<PoolingWindows, KeepReason> {
        let (mean, dims) = (index >= 3, index % 3 + 1);
        let ints_attr =
            |name: &str| attrs.get(name).and_then(AttrValue::as_ints).unwrap_or_default();
        let bool_attr = |name: &str| attrs.get(name).and_then(AttrValue::as_bool).unwrap_or(false);
        let padding = ints_attr("padding");
        let (filter_size, strides, dilation) =
            (ints_attr("pool_size"), ints_attr("strides"), ints_attr("dilation"));
        let has_all_sizes = [filter_size.len(), strides.len(), dilation.len()] == [dims; 3];
        if !has_all_sizes || padding.len() != 2 * dims {
            return Err(KeepReason::NotApplicable);
        }
        // With `ceil_mode`, elements beyond the padding are never counted.
        let padded = padding.iter().any(|&n| n != 0);
        if mean && bool_attr("count_include_pad") && padded {
            return Err(
                "the averages of the pooling include padding (count_include_pad), which the kernel 'pool' does not support".into()
            );
        }
        let channels_last = match attrs.get("layout").and_then(AttrValue::as_str) {
            Some(layout) if layout == channels_last(dims) => true,
            Some(layout) if layout == channels_first(dims) => false,
            _ => {
                return Err(
                    "the pooling's layout is neither channels first nor channels last".into()
                );
            }
        };
        let out_layout = attrs.get("out_layout").and_then(AttrValue::as_str);
        if out_layout.is_some_and(|op_or_layout| {
            attrs.get("layout").and_then(AttrValue::as_str) != Some(op_or_layout)
        }) {
            return Err("the pooling's result must have the same layout as its input".into());
        }
        // If the columns of a window are adjacent, the kernel reduces one dim after the other.
        let (columns, column_distance) = (filter_size[dims - 1], dilation[dims - 1]);
        let by_columns = match channels {
            _ if !channels_last => supports_columns(columns, column_distance),
            Some(n) => {
                strides[dims - 1] == 1
                    && supports_columns(columns, column_distance.saturating_mul(n))
            }
            None => false,
        };
        if !channels_last && !by_columns {
            return Err(column_limit(columns, column_distance));
        }
        if !by_columns && !Machine::host().whole_windows_are_faster(&filter_size) {
            return Err(
                "the pooling's windows are large, so generated loops, which reduce one axis after the other, are faster than the \
                 kernel 'pool'".into()
            );
        }
        check_sizes(&filter_size, [&strides, &dilation, &padding])?;
        let padding_before = padding[..dims].to_vec();
        Ok(PoolingWindows {
            mean,
            dims,
            channels_last,
            filter_size,
            strides,
            dilation,
            padding_before,
        })
    }

    /// Sets the attributes of the kernel call: the windows, and the order of the axes of the images.
    fn attributes(&self, call: NewKernelCall) -> NewKernelCall {
        call.axes("x", kernel_image_axes(self.dims, self.channels_last))
            .axes("out", kernel_image_axes(self.dims, self.channels_last))
            .text("kind", if self.mean { "mean" } else { "max" })
            .window(&self.filter_size, &self.strides, &self.dilation, &self.padding_before)
    }
}

/// Checks that the kernel supports windows of this size with these attributes. The error is the reason why it does not.
fn check_sizes(filter_size: &[i64], others: [&Vec<i64>; 3]) -> Result<(), KeepReason> {
    let elements = filter_size.iter().fold(1i64, |n, &k| n.saturating_mul(k));
    let largest = filter_size.iter().chain(others.into_iter().flatten()).copied().max();
    let reason = if elements > MAX_WINDOW_ELEMENTS {
        format!(
            "the pooling's windows have {elements} elements, but the kernel 'pool' supports at most {MAX_WINDOW_ELEMENTS}"
        )
    } else if let Some(n) = largest.filter(|&n| n > MAX_ATTR_VALUE) {
        format!(
            "a size, stride, dilation or padding of the pooling is {n}, but the kernel 'pool' supports at most {MAX_ATTR_VALUE}"
        )
    } else {
        return Ok(());
    };
    Err(KeepReason::Because(reason.into()))
}

/// The reason why the kernel does not support windows with these columns in channels-first layout.
fn column_limit(columns: i64, distance: i64) -> KeepReason {
    let reason = match columns > MAX_WINDOW_COLUMNS {
        true => format!(
            "the pooling's windows have {columns} columns, but the kernel 'pool' supports at most {MAX_WINDOW_COLUMNS}"
        ),
        false => format!(
            "the pooling's windows have {columns} columns with dilation {distance}, but the kernel 'pool' supports at most \
             {MAX_WINDOW_SPAN} columns between the first and the last one"
        ),
    };
    KeepReason::Because(reason.into())
}

impl Rule for Pool {
    fn apply(&mut self, site: &mut Site<'_>) -> Result<Decision, PassError> {
        let value = site.root.value;
        let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = site.func.expr(value)
        else {
            return Ok(Err(KeepReason::NotApplicable));
        };
        let index = POOLING_OPS.iter().position(|op_or_layout| op_or_layout == op);
        let x = site.func.list(*args)[0];
        let attrs = site.func.call_attrs(*attrs);
        let channels = site.func.ty(x).dims().and_then(|dims| dims.last());
        let channels = channels.and_then(|&n| site.func.syms.as_int(n));
        let windows = match index.map(|index| PoolingWindows::of(index, attrs, channels)) {
            Some(Ok(windows)) => windows,
            Some(Err(reason)) => return Ok(Err(reason)),
            None => return Ok(Err(KeepReason::NotApplicable)),
        };
        let ty = site.func.ty(x);
        let dtype = match ty.dtype() {
            Some(dtype @ (DType::Float32 | DType::Float16 | DType::BFloat16)) => dtype,
            _ => {
                return Ok(Err("the pooling's operand is not float32, float16 or bfloat16".into()));
            }
        };
        if ty.dims().is_none() {
            return Ok(Err("the shape of the pooling's operand is unknown".into()));
        }
        if dtype == DType::Float32 {
            let call = windows.attributes(NewKernelCall::new(&KERNEL).operand("x", x));
            return Ok(site.call_kernel(call, site.root.var, Vec::new()));
        }
        // 16-bit results are rounded once.
        let float32 = site.cast(x, DType::Float32)?;
        let float32 = site.emit(float32);
        let call = windows.attributes(NewKernelCall::new(&KERNEL).operand("x", float32));
        let Some(dims) = site.func.ty(site.root.value).dims().map(<[_]>::to_vec) else {
            return Ok(Err("the shape of the pooling's result is unknown".into()));
        };
        let result = site.func.intern(TypeData::tensor(dims, DType::Float32));
        Ok(match site.call_kernel_as(call, &[result], site.root.var, Vec::new()) {
            Ok(mut offloaded) => {
                let float32 = site.emit(offloaded.value);
                offloaded.value = site.cast(float32, dtype)?;
                Ok(offloaded)
            }
            reason => reason,
        })
    }
}
