//! The loop function of a product of integers: one call of `pliant_product_int8` or `pliant_product_uint8`, or of the entry
//! point of that name that finishes the sums.

use pliant_ir::DType;
use pliant_ir::relax::{Expr as RelaxExpr, Function};
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Tensor};
use pliant_ops::{LegalizeError, te_call};

use super::found::Product;
use super::weights::Weights;
use crate::dequantized::is_one;
use crate::kernels::address;

/// The loop function and how it is called.
pub(super) fn call(
    func: &mut Function,
    p: &Product,
    weights: &Weights,
) -> Result<TirCall, LegalizeError> {
    let step = i64::from(p.zero.is_some_and(|z| !is_one(func, z)));
    let mut operands = vec![p.x];
    operands.extend(p.zero);
    let quads = operands.len();
    operands.push(func.constant(weights.quads.clone()));
    operands.push(func.constant(weights.sums.clone()));
    operands.extend(weights.zeros.clone().map(|z| func.constant(z)));
    let finish = p.finish.as_ref().map(|f| {
        let step = i64::from(f.rows.is_some_and(|e| !is_one(func, e)));
        let first = operands.len();
        operands.extend([f.rows, f.columns, f.bias].into_iter().flatten());
        (f, first, step)
    });
    let end = finish.map_or(operands.len(), |(_, first, _)| first);
    let n = p.weights.shape()[1];
    te_call(func, "matmul_int8", &operands, |t| {
        let x = &t[0];
        let last = x.ndim() - 1;
        let (leads, k) = (&x.shape()[..last], &x.shape()[last]);
        let mut shape = leads.to_vec();
        shape.push(te::int(n));
        let name = match (x.dtype(), finish.is_some()) {
            (DType::Int8, false) => "pliant_product_int8",
            (DType::Int8, true) => "pliant_product_int8_f32",
            (_, false) => "pliant_product_uint8",
            (_, true) => "pliant_product_uint8_f32",
        };
        let dtype = if finish.is_some() { DType::Float32 } else { DType::Int32 };
        let rows = leads.iter().fold(te::int(1), |rows, d| rows * d);
        let (weights, sums) = (&t[quads], &t[quads + 1]);
        // What is not there has the address of something that is.
        let given =
            |t: Option<&Tensor>| [te::int(i64::from(t.is_some())), address(t.unwrap_or(sums))];
        Ok(te::extern_("matmul_int8", &[(shape, dtype)], |b, out| {
            let mut args =
                vec![te::string(name), rows, te::int(n), k.clone(), address(x), k.clone()];
            args.extend(given((quads > 1).then(|| &t[1])));
            args.extend([
                te::int(step),
                address(weights),
                weights.shape()[2].clone(),
                address(sums),
            ]);
            args.extend(given(t[..end].get(quads + 2)));
            if let Some((f, first, step)) = finish {
                let mut others = t[first..].iter();
                let mut next = |e: Option<RelaxExpr>| given(e.and_then(|_| others.next()));
                args.extend(next(f.rows));
                args.push(te::int(step));
                args.extend(next(f.columns));
                args.extend(next(f.bias));
                args.extend(f.activation.args());
            }
            args.extend([address(&out[0]), te::int(n)]);
            b.evaluate(te::call_typed(Intrin::CallExtern, args, Ty::I64));
        }))
    })
}
