//! The activations that kernels can apply to their results, and [`Readers`], which finds the bindings that read a variable, for
//! example to check that an activation is the only reader of a result.

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
    /// A named activation function without parameters, such as a sigmoid, by its name in kernel declarations.
    Function(&'static str),
    /// A clipped linear function of `x`.
    HardSigmoid(ClippedLine),
    /// `x` times a clipped linear function of `x`.
    HardSwish(ClippedLine),
    /// `x` if it is positive, otherwise `x` times this slope.
    LeakyRelu(f64),
}

/// A clipped linear function `clip(slope * x + offset, low, high)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClippedLine {
    /// The factor by which `x` is multiplied: the slope of the linear function.
    pub slope: f64,
    /// The constant term of the linear function.
    pub offset: f64,
    /// The lower and the upper limit to which the function is clipped.
    pub limits: (f64, f64),
}

impl Activation {
    /// Combines the activation with an operator that is applied to its result. `None` if kernels do not support the combination.
    /// `number` describes the other operand of the operator: `None` if there is none, `Some(Some(value))` for a scalar constant,
    /// `Some(None)` for other operands.
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

    /// Sets the attributes of the kernel call `call` that make the kernel apply this activation to its results.
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

/// Maps each variable of a function to the bindings that read it.
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

    /// Returns the binding that is the only reader of a dataflow variable; `None` if there are several readers. The binding is in
    /// the same block, because dataflow variables are not visible in other blocks.
    pub fn only_reader(&self, func: &Function, v: Var) -> Option<Binding> {
        match self.all_readers(func, v)? {
            &[binding] => Some(binding),
            _ => None,
        }
    }

    /// Returns the bindings in dataflow blocks that read a variable. Bindings outside of dataflow blocks may also read it.
    pub fn reading_bindings(&self, v: Var) -> &[Binding] {
        self.0.get(&v).map_or(&[], |reads| &reads.bindings)
    }

    /// Returns all bindings that read the dataflow variable `v`. They are in the block that binds `v`. `None` if anything else
    /// reads `v`, such as the result of a sequence.
    pub fn all_readers(&self, func: &Function, v: Var) -> Option<&[Binding]> {
        let reads = self.0.get(&v)?;
        (reads.count == reads.bindings.len() && func.var(v).dataflow).then_some(&reads.bindings)
    }
}

/// Returns the value of a float32 constant with one element; `None` for other expressions and for NaN.
pub fn scalar_constant(func: &Function, e: Expr) -> Option<f64> {
    let ExprData::Constant(c) = func.expr(e) else { return None };
    let tensor = func.const_tensor(*c);
    let has_one_element =
        tensor.dtype() == DType::Float32 && tensor.shape().iter().all(|&d| d == 1);
    let value = if has_one_element { tensor.to_vec::<f32>().ok()?.first().copied() } else { None };
    value.map(f64::from).filter(|v| !v.is_nan())
}

/// Returns (operator, operands, attributes) of an operator call; `None` for other expressions.
pub fn op_call(func: &Function, e: Expr) -> Option<(Op, &[Expr], &Attrs)> {
    match func.expr(e) {
        ExprData::Call { callee: Callee::Op(op), args, attrs, .. } => {
            Some((*op, func.list(*args), func.call_attrs(*attrs)))
        }
        _ => None,
    }
}
