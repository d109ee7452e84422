//! Recognises the activations that kernels can apply to their results, and finds the bindings that read a variable, which decide
//! whether an activation is its only reader.

use pliant_ir::relax::{Binding, Callee, Expr, ExprData, Function, Var};
use pliant_ir::{Attrs, DType, Op};
use pliant_pass::binding_rewrites::{for_each_operand_var, reachable_seqs};
use rustc_hash::FxHashMap;

use super::kernel_attributes::KernelAttributes;

const RELU: Op = Op::new("relax.nn.relu");
const MAXIMUM: Op = Op::new("relax.maximum");
const MINIMUM: Op = Op::new("relax.minimum");

/// The activation that a kernel applies to each result `x` (`pliant_kernels::epilogue::Activation`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// No activation.
    None,
    /// `max(x, 0)`.
    Relu,
    /// `x`, clipped to a lower and an upper limit.
    Clip(f64, f64),
    /// A function without parameters, by its name in kernel declarations.
    Function(&'static str),
    /// A clipped linear function of `x`.
    HardSigmoid(ClippedLine),
    /// `x` times a clipped linear function of `x`.
    HardSwish(ClippedLine),
    /// `x` if it is positive, otherwise `x` times this slope.
    LeakyRelu(f64),
}

/// `clip(slope * x + offset, low, high)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedLine {
    /// The factor of `x`.
    pub slope: f64,
    /// The constant term.
    pub offset: f64,
    /// The lower and the upper limit.
    pub limits: (f64, f64),
}

impl Activation {
    /// Composes the activation with an operator that follows it. `None` if kernels do not support the result. `number` is the other
    /// operand of the operator, if it has one: its value if it is a scalar constant, otherwise `Some(None)`.
    pub fn compose(self, op: Op, number: Option<Option<f64>>) -> Option<Activation> {
        let is_none = self == Activation::None;
        match (op, number) {
            (RELU, None) if is_none => Some(Activation::Relu),
            (MAXIMUM, Some(Some(low))) if is_none => Some(Activation::Clip(low, f64::INFINITY)),
            (MINIMUM, Some(Some(high))) => match self {
                Activation::None => Some(Activation::Clip(f64::NEG_INFINITY, high)),
                Activation::Relu if high >= 0.0 => Some(Activation::Clip(0.0, high)),
                Activation::Clip(low, f64::INFINITY) if low <= high => {
                    Some(Activation::Clip(low, high))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Sets the attributes of a kernel call that applies the activation.
    pub(crate) fn attributes<C: KernelAttributes>(self, call: C) -> C {
        let named = |call: C, name| call.text("activation", name);
        let line = |call: C, line: ClippedLine| {
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

/// The bindings that read each variable of a function.
pub struct Readers(FxHashMap<Var, VarReads>);

#[derive(Default)]
struct VarReads {
    /// The number of reads by bindings and by results of sequences.
    count: usize,
    /// The bindings in dataflow blocks that read the variable.
    bindings: Vec<Binding>,
}

impl Readers {
    /// Collects the readers of a function's variables.
    pub fn of(func: &Function) -> Readers {
        let mut readers: FxHashMap<Var, VarReads> = FxHashMap::default();
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

    /// The binding that is the only reader of a dataflow variable. It is in the same block, because dataflow variables are not
    /// visible in other blocks.
    pub fn only_reader(&self, func: &Function, v: Var) -> Option<Binding> {
        match self.all_readers(func, v)? {
            &[binding] => Some(binding),
            _ => None,
        }
    }

    /// The bindings in dataflow blocks that read a variable. Other bindings may read it too.
    pub fn reading_bindings(&self, v: Var) -> &[Binding] {
        self.0.get(&v).map_or(&[], |reads| &reads.bindings)
    }

    /// All bindings that read a dataflow variable, which are in its block. `None` if anything else reads the variable.
    pub fn all_readers(&self, func: &Function, v: Var) -> Option<&[Binding]> {
        let reads = self.0.get(&v)?;
        (reads.count == reads.bindings.len() && func.var(v).dataflow).then_some(&reads.bindings)
    }
}

/// The value of a float32 constant with one element; `None` if it is NaN.
pub fn scalar_constant(func: &Function, e: Expr) -> Option<f64> {
    let ExprData::Constant(c) = func.expr(e) else { return None };
    let tensor = func.const_tensor(*c);
    let has_one_element =
        tensor.dtype() == DType::Float32 && tensor.shape().iter().all(|&d| d == 1);
    let value = if has_one_element { tensor.to_vec::<f32>().ok()?.first().copied() } else { None };
    value.map(f64::from).filter(|v| !v.is_nan())
}

/// The operator, the operands and the attributes of an operator call.
pub fn op_call(func: &Function, e: Expr) -> Option<(Op, &[Expr], &Attrs)> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(op), args, attrs, .. } => {
            Some((*op, func.list(*args), func.call_attrs(*attrs)))
        }
        _ => None,
    }
}
