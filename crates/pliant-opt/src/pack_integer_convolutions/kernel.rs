//! The loop function of a convolution of integers: one call of `pliant_convolve_int8`, `pliant_convolve_uint8`, or of an entry
//! point of these names that finishes the sums.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call};

use super::found::{Convolution, Finished};
use crate::integer_sums::Finish;
use crate::kernels::address;
use crate::pack_integers::weights::Weights;

/// Numbers of the spatial dims, with others before where there are fewer than three.
fn three(list: impl IntoIterator<Item = Expr>, fill: i64) -> Vec<Expr> {
    let list: Vec<Expr> = list.into_iter().collect();
    (list.len()..3).map(|_| te::int(fill)).chain(list).collect()
}

/// The sizes of the results.
fn sizes(c: &Convolution, x: &Tensor) -> Vec<Expr> {
    let size = |k: usize| {
        let reach = (c.kernel[k] - 1) * c.dilation[k];
        let last = &x.shape()[1 + k] + te::int(c.pads[k].0 + c.pads[k].1 - reach - 1);
        te::floordiv(&last, &te::int(c.strides[k])) + te::int(1)
    };
    (0..c.dims).map(size).collect()
}

/// The type of the results and the name of the entry point.
fn entry(x: DType, finish: Option<&Finish>) -> (DType, String) {
    let dtype = match finish {
        None => DType::Int32,
        Some(f) => f.bytes.as_ref().map_or(DType::Float32, |b| b.dtype),
    };
    let name = |dtype: DType| if dtype == DType::Int8 { "int8" } else { "uint8" };
    let end = match dtype {
        DType::Int32 => String::new(),
        DType::Float32 => "_f32".to_string(),
        dtype => format!("_{}", name(dtype)),
    };
    (dtype, format!("pliant_convolve_{}{end}", name(x)))
}

/// What becomes of the sums, in the order of the arguments.
fn operands_of(f: &Finish) -> [Option<RelaxExpr>; 6] {
    let (divisor, shift) = f.bytes.as_ref().map_or((None, None), |b| (b.divisor, b.shift));
    [f.terms, f.rows, f.columns, f.bias, divisor, shift]
}

/// The loop function and how it is called.
pub(super) fn call(
    func: &mut Function,
    found: &Finished,
    weights: &Weights,
) -> Result<TirCall, LegalizeError> {
    let (c, finish) = (&found.convolution, found.finish.as_ref());
    let mut operands = vec![c.x];
    operands.extend(c.zero);
    let quads = operands.len();
    operands.push(func.constant(weights.quads.clone()));
    operands.push(func.constant(weights.sums.clone()));
    operands.extend(weights.zeros.clone().map(|z| func.constant(z)));
    let first = operands.len();
    operands.extend(finish.map(operands_of).into_iter().flatten().flatten());
    let what = format!("conv{}d_int8", c.dims);
    te_call(func, &what, &operands, |t| {
        let x = &t[0];
        let sizes = sizes(c, x);
        let mut shape = vec![x.shape()[0].clone()];
        shape.extend(sizes.iter().cloned());
        shape.push(te::int(c.filters));
        let (dtype, name) = entry(x.dtype(), finish);
        let (weights, sums) = (&t[quads], &t[quads + 1]);
        // What is not there has the address of something that is.
        let given =
            |t: Option<&Tensor>| [te::int(i64::from(t.is_some())), address(t.unwrap_or(sums))];
        Ok(te::extern_(&what, &[(shape, dtype)], |b, out| {
            let mut args = vec![te::string(name.as_str()), x.shape()[0].clone()];
            args.extend([c.channels, c.filters, c.groups].map(te::int));
            args.extend(three(x.shape()[1..=c.dims].iter().cloned(), 1));
            args.extend(three(sizes, 1));
            for list in [&c.kernel, &c.strides, &c.dilation] {
                args.extend(three(list.iter().map(|&n| te::int(n)), 1));
            }
            args.extend(three(c.pads.iter().map(|p| te::int(p.0)), 0));
            args.push(address(x));
            args.extend(given(c.zero.map(|_| &t[1])));
            args.push(address(weights));
            let width = if c.is_depthwise() { te::int(1) } else { weights.shape()[2].clone() };
            args.extend([width, address(sums)]);
            args.extend(given(t[..first].get(quads + 2)));
            if let Some(f) = finish {
                let mut others = t[first..].iter();
                let all = operands_of(f).map(|e| e.and_then(|_| others.next()));
                args.extend(all[..4].iter().flat_map(|t| given(*t)));
                args.extend(f.activation.args());
                if let Some(bytes) = &f.bytes {
                    args.extend(all[4..].iter().flat_map(|t| given(*t)));
                    let (low, high) = bytes.limits;
                    args.extend([low, high].map(|v| te::const_of(v, DType::Float64)));
                }
            }
            args.push(address(&out[0]));
            b.evaluate(te::call_typed(Intrin::CallExtern, args, Ty::I64));
        }))
    })
}
