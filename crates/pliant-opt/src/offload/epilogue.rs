//! What follows the results of a kernel and is done by it: who reads them, and which activation.

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{DType, Op};
use pliant_ops::te;
use pliant_pass::rewrite::{for_each_operand_var, reachable_seqs};
use rustc_hash::FxHashMap;

const RELU: Op = Op("relax.nn.relu");
const MAXIMUM: Op = Op("relax.maximum");
const MINIMUM: Op = Op("relax.minimum");

/// What is computed of each result (`pliant_kernels::epilogue::Activation`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// The result itself.
    None,
    /// The larger of it and 0.
    Relu,
    /// It, kept between two limits.
    Clip(f64, f64),
}

impl Activation {
    /// With an operator behind it. `number` tells of its other operand, where it has one, the number that it is.
    pub fn then(self, op: Op, number: Option<Option<f64>>) -> Option<Activation> {
        let open = self == Activation::None;
        match (op, number) {
            (RELU, None) if open => Some(Activation::Relu),
            (MAXIMUM, Some(Some(least))) if open => Some(Activation::Clip(least, f64::INFINITY)),
            (MINIMUM, Some(Some(most))) => match self {
                Activation::None => Some(Activation::Clip(f64::NEG_INFINITY, most)),
                Activation::Relu if most >= 0.0 => Some(Activation::Clip(0.0, most)),
                Activation::Clip(least, f64::INFINITY) if least <= most => {
                    Some(Activation::Clip(least, most))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Sets the attributes of a kernel that applies the activation.
    pub fn attributes(self, call: te::KernelCall<'_>) -> te::KernelCall<'_> {
        let limit = |v: f64| te::const_of(v, DType::Float64);
        match self {
            Activation::None => call,
            Activation::Relu => call.choice("activation", "relu"),
            Activation::Clip(low, high) => call
                .choice("activation", "clip")
                .attr("low", &[limit(low)])
                .attr("high", &[limit(high)]),
        }
    }
}

/// Who reads each variable: how often, and a binding of a dataflow block that does.
pub struct Readers(FxHashMap<Var, (usize, Option<Binding>)>);

impl Readers {
    /// The readers of a function's variables.
    pub fn of(func: &Function) -> Readers {
        let mut readers: FxHashMap<Var, (usize, Option<Binding>)> = FxHashMap::default();
        for seq in reachable_seqs(func) {
            for &block in &func.seq(seq).blocks {
                let block = func.block(block);
                for b in &block.bindings {
                    for_each_operand_var(func, b.value, &mut |v| {
                        let entry = readers.entry(v).or_default();
                        entry.0 += 1;
                        entry.1 = block.dataflow.then_some(*b);
                    });
                }
            }
            for_each_operand_var(func, func.seq(seq).result, &mut |v| {
                readers.entry(v).or_default().0 += 1;
            });
        }
        Readers(readers)
    }

    /// The binding that alone reads a variable, of the same block: variables of a dataflow block are read nowhere else.
    pub fn only(&self, func: &Function, v: Var) -> Option<Binding> {
        let (count, binding) = self.0.get(&v)?;
        binding.filter(|_| *count == 1 && func.var(v).dataflow)
    }
}

/// A constant of float32 of one element, but no NaN.
pub fn scalar(func: &Function, e: Expr) -> Option<f64> {
    let ExprData::Constant(c) = func.expr(e) else { return None };
    let tensor = func.const_tensor(*c);
    let one = tensor.dtype() == DType::Float32 && tensor.shape().iter().all(|&d| d == 1);
    let value = if one { tensor.to_vec::<f32>().ok()?.first().copied() } else { None };
    value.map(f64::from).filter(|v| !v.is_nan())
}
