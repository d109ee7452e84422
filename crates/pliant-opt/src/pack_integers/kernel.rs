//! The loop function of a product of integers: one call of `pliant_product_int8` or `pliant_product_uint8`.

use pliant_ir::DType;
use pliant_ir::relax::Function;
use pliant_ir::tir::{Intrin, Ty};
use pliant_ops::legalize::TirCall;
use pliant_ops::te::{self, Expr, Tensor};
use pliant_ops::{LegalizeError, te_call};

use super::found::{Product, is_one};
use super::weights::Weights;

fn address(t: &Tensor) -> Expr {
    te::call(Intrin::AddressOf, vec![t.at(&vec![te::int(0); t.ndim()])])
}

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
    let n = p.weights.shape()[1];
    te_call(func, "matmul_int8", &operands, |t| {
        let x = &t[0];
        let last = x.ndim() - 1;
        let (leads, k) = (&x.shape()[..last], &x.shape()[last]);
        let mut shape = leads.to_vec();
        shape.push(te::int(n));
        let name = match x.dtype() {
            DType::Int8 => "pliant_product_int8",
            _ => "pliant_product_uint8",
        };
        let rows = leads.iter().fold(te::int(1), |rows, d| rows * d);
        let (weights, sums) = (&t[quads], &t[quads + 1]);
        // What is not there has the address of something that is.
        let zeros =
            |t: Option<&Tensor>| [te::int(i64::from(t.is_some())), address(t.unwrap_or(sums))];
        Ok(te::extern_("matmul_int8", &[(shape, DType::Int32)], |b, out| {
            let mut args =
                vec![te::string(name), rows, te::int(n), k.clone(), address(x), k.clone()];
            args.extend(zeros((quads > 1).then(|| &t[1])));
            args.extend([
                te::int(step),
                address(weights),
                weights.shape()[2].clone(),
                address(sums),
            ]);
            args.extend(zeros(t.get(quads + 2)));
            args.extend([address(&out[0]), te::int(n)]);
            b.evaluate(te::call_typed(Intrin::CallExtern, args, Ty::I64));
        }))
    })
}
