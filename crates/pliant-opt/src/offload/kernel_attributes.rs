//! Sets the attributes of kernel calls, in graph functions and in loop functions.

use pliant_ir::AttrValue;
use pliant_ir::relax::kernel_call::NewKernelCall;
use pliant_ops::te;

/// A kernel call that is being built, whose attributes are set one by one.
pub(crate) trait KernelAttributes: Sized {
    /// Sets the kernel attribute `name`.
    fn attribute(self, name: &str, value: AttrValue) -> Self;

    /// Sets the float attribute `name`.
    fn float(self, name: &str, value: f64) -> Self {
        self.attribute(name, AttrValue::float(value))
    }

    /// Sets the attribute `name`, whose values have names, to the value named `choice`.
    fn text(self, name: &str, choice: &str) -> Self {
        self.attribute(name, AttrValue::str(choice))
    }

    /// Sets the attributes of a convolution or pooling window: its size, strides, padding and dilation. The lists have an entry
    /// for each spatial dim.
    fn window(
        self,
        filter_size: &[i64],
        strides: &[i64],
        dilation: &[i64],
        padding_before: &[i64],
    ) -> Self {
        self.attribute("kernel_shape", to_three_dims(filter_size, 1))
            .attribute("strides", to_three_dims(strides, 1))
            .attribute("dilations", to_three_dims(dilation, 1))
            .attribute("padding", to_three_dims(padding_before, 0))
    }
}

/// Extends a list with one entry per spatial dim to three dims. `fill` is the value for missing leading dims.
fn to_three_dims(list: &[i64], fill: i64) -> AttrValue {
    let missing = 3 - list.len();
    AttrValue::ints(std::iter::repeat_n(fill, missing).chain(list.iter().copied()))
}

impl KernelAttributes for NewKernelCall {
    fn attribute(self, name: &str, value: AttrValue) -> Self {
        NewKernelCall::attribute(self, name, value)
    }
}

impl KernelAttributes for te::KernelCall<'_> {
    fn attribute(self, name: &str, value: AttrValue) -> Self {
        self.value(name, &value)
    }
}
