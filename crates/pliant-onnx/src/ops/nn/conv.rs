//! Convolutions.

use pliant_ir::{AttrValue, relax::Expr};
use pliant_sym::Sym;

use super::window::Window;
use crate::error::Problem;
use crate::node::{Converted, Node};
use crate::ops::{OnnxOp, op};

pub(super) static OPS: &[OnnxOp] = &[op("Conv", conv), op("ConvTranspose", conv_transpose)];

/// The kernel's sizes: an attribute, or those of the weight.
fn kernel(n: &mut Node<'_, '_>, weight: Expr) -> Result<Vec<i64>, Problem> {
    if let Some(kernel) = n.attrs().ints("kernel_shape")? {
        return Ok(kernel.to_vec());
    }
    let dims = n.dims(weight)?;
    let sizes: Option<Vec<i64>> = dims.iter().skip(2).map(|&d| n.func().syms.as_int(d)).collect();
    sizes.ok_or_else(|| Problem::unsupported("the size of its kernel is known only at run time"))
}

/// `conv1d`, `conv2d` or `conv3d`.
fn of_rank(what: &str, axes: usize, tail: &str) -> Result<String, Problem> {
    match axes {
        1..=3 => Ok(format!("relax.nn.{what}{axes}d{tail}")),
        _ => Err(Problem::unsupported(format!("{axes} spatial dims; 1 to 3 are supported"))),
    }
}

fn conv(n: &mut Node<'_, '_>) -> Converted {
    let groups = n.attrs().int("group")?.unwrap_or(1);
    let (x, weight) = (n.tensor(0)?, n.tensor(1)?);
    let kernel = kernel(n, weight)?;
    let name = of_rank("conv", kernel.len(), "")?;
    let (window, x) = Window::read(n, x, kernel, 0.0)?;
    let attrs = window.conv_attrs().with("groups", AttrValue::Int(groups));
    let y = n.op_with(&name, &[x, weight], attrs)?;
    Ok(vec![bias(n, y, window.kernel.len())?.into()])
}

/// Adds input 2, one number for each channel.
fn bias(n: &mut Node<'_, '_>, y: Expr, axes: usize) -> Result<Expr, Problem> {
    let Some(bias) = n.optional(2)? else { return Ok(y) };
    let channels = n.dims(bias)?;
    let one = n.func().syms.int(1);
    let mut shape: Vec<Sym> = vec![one; axes + 2];
    shape[1] = *channels.first().ok_or_else(|| Problem::invalid("the bias must be a vector"))?;
    let bias = n.reshape(bias, &shape)?;
    n.op("relax.add", &[y, bias])
}

fn conv_transpose(n: &mut Node<'_, '_>) -> Converted {
    let attrs = n.attrs();
    let groups = attrs.int("group")?.unwrap_or(1);
    let (x, weight) = (n.tensor(0)?, n.tensor(1)?);
    let kernel = kernel(n, weight)?;
    let axes = kernel.len();
    let name = of_rank("conv", axes, "_transpose")?;
    let extra = attrs.ints("output_padding")?.map_or_else(|| vec![0; axes], <[i64]>::to_vec);
    let strides = attrs.ints("strides")?.map_or_else(|| vec![1; axes], <[i64]>::to_vec);
    let dilations = attrs.ints("dilations")?.map_or_else(|| vec![1; axes], <[i64]>::to_vec);
    if [&extra, &strides, &dilations].iter().any(|l| l.len() != axes) {
        return Err(Problem::invalid(format!(
            "strides, dilations and output_padding need {axes} numbers"
        )));
    }
    let auto = attrs.choice("auto_pad", &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])?;
    let wanted = attrs.ints("output_shape")?.map(<[i64]>::to_vec);
    let pads = match (auto, wanted) {
        ("NOTSET", None) => attrs.ints("pads")?.map_or_else(|| vec![0; 2 * axes], <[i64]>::to_vec),
        ("VALID", None) => vec![0; 2 * axes],
        (side, wanted) => {
            let dims = n.dims(x)?;
            let mut pads = vec![0; 2 * axes];
            for k in 0..axes {
                let reach = dilations[k] * (kernel[k] - 1) + 1;
                // Without padding the output is (size - 1) * stride + extra + reach.
                let total = match &wanted {
                    None => (extra[k] + reach - strides[k]).max(0),
                    Some(wanted) => {
                        let size = n.func().syms.as_int(dims[k + 2]).ok_or_else(|| {
                            Problem::unsupported(
                                "'output_shape' of an input whose size is a symbol",
                            )
                        })?;
                        let want = wanted.get(k).copied().unwrap_or(0);
                        ((size - 1) * strides[k] + extra[k] + reach - want).max(0)
                    }
                };
                let (less, more) = (total / 2, total - total / 2);
                (pads[k], pads[k + axes]) =
                    if side == "SAME_UPPER" { (less, more) } else { (more, less) };
            }
            pads
        }
    };
    let ints = |v: Vec<i64>| AttrValue::ints(v);
    let attrs = pliant_ir::Attrs::default()
        .with("strides", ints(strides))
        .with("padding", ints(pads))
        .with("output_padding", ints(extra))
        .with("dilation", ints(dilations))
        .with("groups", AttrValue::Int(groups));
    let y = n.op_with(&name, &[x, weight], attrs)?;
    Ok(vec![bias(n, y, axes)?.into()])
}
