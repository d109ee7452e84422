//! The windows of convolutions and poolings: filter dims, strides, dilations and padding.

use pliant_ir::relax::Expr;
use pliant_ir::{AttrValue, Attrs};
use pliant_sym::Sym;

use super::pad::pad_axis;
use crate::import_error::Problem;
use crate::node::{ExprResult, Node};

/// Maximum filter dim, stride or dilation, so that the product of any two of them stays below 2^63.
const MAX_WINDOW_SIZE: i64 = 1 << 30;
/// Maximum number of elements that are added (padding) or removed (cropping) at one end of an axis.
pub(super) const MAX_PAD: i64 = 1 << 40;

/// The windows of a convolution or pooling node: filter dims, strides, dilations and padding.
#[derive(Clone)]
pub(super) struct Window {
    pub filter: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    /// The constant padding at the starts of all axes, followed by the padding at the ends of all
    /// axes. It is passed to the operator as an attribute.
    pub pads: Vec<i64>,
    /// The padding at the start of each axis. It is symbolic if `auto_pad` pads the input explicitly.
    pub before: Vec<Sym>,
}

impl Window {
    /// Reads the windows from the attributes of a node. If `auto_pad` depends on symbolic sizes, the input is padded explicitly
    /// with `fill`, and `pads` is 0. Returns the windows and the input, which may have been padded.
    pub fn read(
        n: &mut Node<'_, '_>,
        x: Expr,
        filter: Vec<i64>,
        fill: f64,
    ) -> Result<(Window, Expr), Problem> {
        let axes = filter.len();
        let attrs = n.attrs();
        let list = |name: &str, default: i64| -> Result<Vec<i64>, Problem> {
            let values = attrs.ints(name)?.map_or_else(|| vec![default; axes], <[i64]>::to_vec);
            check_list_length(name, &values, axes).map(|()| values)
        };
        let (strides, dilations) = (list("strides", 1)?, list("dilations", 1)?);
        check_sizes([&filter, &strides, &dilations])?;
        let choices = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];
        let auto = attrs.choice("auto_pad", &choices)?;
        let before = vec![n.func().syms.int(0); axes];
        let mut window = Window { filter, strides, dilations, pads: vec![0; 2 * axes], before };
        match auto {
            "NOTSET" => {
                if let Some(pads) = attrs.ints("pads")? {
                    check_list_length("pads", pads, 2 * axes)?;
                    check_pads("pads", pads)?;
                    window.pads = pads.to_vec();
                    window.before =
                        pads[..axes].iter().map(|&pad| n.func().syms.int(pad)).collect();
                }
                Ok((window, x))
            }
            "VALID" => Ok((window, x)),
            side => {
                let x = window.pad_same(n, x, side == "SAME_LOWER", fill)?;
                Ok((window, x))
            }
        }
    }

    /// Pads the input with `fill`, or sets the constant padding, so that the output size is the input size divided by the stride,
    /// rounded up. If the total padding is odd, the start of the axis gets one element more than the end if `lower` is true, and
    /// one less otherwise.
    fn pad_same(&mut self, n: &mut Node<'_, '_>, x: Expr, lower: bool, fill: f64) -> ExprResult {
        let axes = self.filter.len();
        let dims = n.dims_with_min_rank(x, axes + 2)?;
        let mut padding = Vec::with_capacity(axes);
        for k in 0..axes {
            let total = self.same_padding(n, dims[k + 2], k);
            let syms = &mut n.func().syms;
            let two = syms.int(2);
            let (less, more) = (syms.floordiv(total, two), syms.ceildiv(total, two));
            padding.push(if lower { (more, less) } else { (less, more) });
        }
        self.before = padding.iter().map(|a| a.0).collect();
        let number = |n: &mut Node<'_, '_>, s: Sym| n.func().syms.as_int(s);
        let known: Option<Vec<(i64, i64)>> =
            padding.iter().map(|&(a, b)| Some((number(n, a)?, number(n, b)?))).collect();
        if let Some(known) = known {
            self.pads = known.iter().map(|p| p.0).chain(known.iter().map(|p| p.1)).collect();
            return Ok(x);
        }
        let dtype = n.dtype(x)?;
        let value = n.scalar_as(fill, dtype)?;
        let mut y = x;
        for (k, padding) in padding.into_iter().enumerate() {
            y = pad_axis(n, y, k + 2, padding, value)?;
        }
        Ok(y)
    }

    /// The total padding of axis `k`: `max((ceil(size / stride) - 1) * stride + extent - size, 0)`, where `extent` is the size of
    /// the dilated filter.
    fn same_padding(&self, n: &mut Node<'_, '_>, size: Sym, k: usize) -> Sym {
        let syms = &mut n.func().syms;
        let [one, zero] = [syms.int(1), syms.int(0)];
        let stride = syms.int(self.strides[k]);
        let extent = syms.int(self.dilations[k] * (self.filter[k] - 1) + 1);
        // With stride 1, the sizes cancel. The result is also correct for size 0.
        let count = syms.ceildiv(size, stride);
        let steps = syms.sub(count, one);
        let span = syms.mul(steps, stride);
        let covered = syms.add(span, extent);
        let missing = syms.sub(covered, size);
        syms.max(missing, zero)
    }

    /// The operator attributes that all convolution operators have.
    pub fn conv_attrs(&self) -> Attrs {
        Attrs::default()
            .with("strides", AttrValue::ints(self.strides.iter().copied()))
            .with("padding", AttrValue::ints(self.pads.iter().copied()))
            .with("dilation", AttrValue::ints(self.dilations.iter().copied()))
    }

    /// The operator attributes that all pooling operators have.
    pub fn pool_attrs(&self, ceil_mode: bool, count_include_pad: bool) -> Attrs {
        let ints = |v: &[i64]| AttrValue::ints(v.iter().copied());
        Attrs::default()
            .with("pool_size", ints(&self.filter))
            .with("strides", ints(&self.strides))
            .with("padding", ints(&self.pads))
            .with("dilation", ints(&self.dilations))
            .with("ceil_mode", AttrValue::Bool(ceil_mode))
            .with("count_include_pad", AttrValue::Bool(count_include_pad))
    }
}

/// Checks that filter dims, strides and dilations are positive, and small enough that the product
/// of any two of them does not overflow.
pub(super) fn check_sizes(sizes: [&[i64]; 3]) -> Result<(), Problem> {
    for (parameter, list) in ["filter size", "stride", "dilation"].into_iter().zip(sizes) {
        if let Some(value) = list.iter().find(|v| !(1..=MAX_WINDOW_SIZE).contains(*v)) {
            return Err(Problem::invalid(format!(
                "the node has a {parameter} of {value}, but each {parameter} must be from 1 to {MAX_WINDOW_SIZE}"
            )));
        }
    }
    Ok(())
}

/// Checks that amounts of padding are small enough to be added to sizes. `name` is the attribute that contains or determines
/// them, such as `pads`.
pub(super) fn check_pads(name: &str, pads: &[i64]) -> Result<(), Problem> {
    match pads.iter().find(|pad| !(-MAX_PAD..=MAX_PAD).contains(*pad)) {
        Some(pad) => Err(Problem::invalid(format!(
            "'{name}' contains {pad}, whose absolute value exceeds {MAX_PAD}"
        ))),
        None => Ok(()),
    }
}

/// Checks that a list attribute has `count` numbers.
pub(super) fn check_list_length(name: &str, list: &[i64], count: usize) -> Result<(), Problem> {
    if list.len() == count {
        return Ok(());
    }
    Err(Problem::attribute(format!(
        "attribute '{name}' must have {count} numbers, but has {}",
        list.len()
    )))
}
