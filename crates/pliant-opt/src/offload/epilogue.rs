//! The activations that a kernel can apply to its results, and the bindings that read a variable.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, DType, Op};
use pliant_pass::rewrite::{for_each_operand_var, reachable_seqs};
use rustc_hash::FxHashMap;

use super::kernel_attributes::KernelAttributes;

const RELU: Op = Op::new("relax.nn.relu");
const MAXIMUM: Op = Op::new("relax.maximum");
const MINIMUM: Op = Op::new("relax.minimum");

/// The function that a kernel applies to each result (`pliant_kernels::epilogue::Activation`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// The result itself.
    None,
    /// The larger of it and 0.
    Relu,
    /// It, limited to two numbers.
    Clip(f64, f64),
    /// A function without numbers, by its name in the declarations of the kernels.
    Function(&'static str),
    /// A limited linear function of it.
    HardSigmoid(Line),
    /// It times a limited linear function of it.
    HardSwish(Line),
    /// It if it is positive, else its product with a number.
    LeakyRelu(f64),
}

/// `clip(slope * x + offset, low, high)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The factor.
    pub slope: f64,
    /// The term.
    pub offset: f64,
    /// The limits.
    pub limits: (f64, f64),
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
    pub(crate) fn attributes<C: KernelAttributes>(self, call: C) -> C {
        let named = |call: C, name| call.text("activation", name);
        let line = |call: C, line: Line| {
            let call = call.float("slope", line.slope).float("offset", line.offset);
            call.float("low", line.limits.0).float("high", line.limits.1)
        };
        match self {
            Activation::None => call,
            Activation::Relu => named(call, "relu"),
            Activation::Clip(low, high) => {
                named(call, "clip").float("low", low).float("high", high)
            }
            Activation::Function(name) => named(call, name),
            Activation::HardSigmoid(l) => line(named(call, "hard_sigmoid"), l),
            Activation::HardSwish(l) => line(named(call, "hard_swish"), l),
            Activation::LeakyRelu(slope) => named(call, "leaky_relu").float("slope", slope),
        }
    }
}

/// The bindings that read each variable.
pub struct Readers(FxHashMap<Var, Reads>);

#[derive(Default)]
struct Reads {
    /// How often it is read, by bindings and as a result.
    count: usize,
    /// The bindings of dataflow blocks that read it.
    bindings: Vec<Binding>,
}

impl Readers {
    /// The readers of a function's variables.
    pub fn of(func: &Function) -> Readers {
        let mut readers: FxHashMap<Var, Reads> = FxHashMap::default();
        for seq in reachable_seqs(func) {
            for &block in &func.seq(seq).blocks {
                let block = func.block(block);
                for b in &block.bindings {
                    for_each_operand_var(func, b.value, &mut |v| {
                        let reads = readers.entry(v).or_default();
                        reads.count += 1;
                        reads.bindings.extend(block.dataflow.then_some(*b));
                    });
                }
            }
            for_each_operand_var(func, func.seq(seq).result, &mut |v| {
                readers.entry(v).or_default().count += 1;
            });
        }
        Readers(readers)
    }

    /// The binding that alone reads a variable, of the same block: variables of a dataflow block are read nowhere else.
    pub fn only(&self, func: &Function, v: Var) -> Option<Binding> {
        match self.all(func, v)? {
            &[binding] => Some(binding),
            _ => None,
        }
    }

    /// The bindings of dataflow blocks that read a variable; others may read it too.
    pub fn bindings(&self, v: Var) -> &[Binding] {
        self.0.get(&v).map_or(&[], |reads| &reads.bindings)
    }

    /// All bindings that read a variable, of the same block; `None` if something else reads it too.
    pub fn all(&self, func: &Function, v: Var) -> Option<&[Binding]> {
        let reads = self.0.get(&v)?;
        (reads.count == reads.bindings.len() && func.var(v).dataflow).then_some(&reads.bindings)
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

/// The operator of a call, its operands and attributes.
pub fn call(func: &Function, e: Expr) -> Option<(Op, &[Expr], &Attrs)> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(op), args, attrs, .. } => {
            Some((*op, func.list(*args), func.call_attrs(*attrs)))
        }
        _ => None,
    }
}
