//! Recognizes activations at the end of an epilogue: functions such as SiLU that are written as one operator, or as several, such
//! as `x * sigmoid(x)`.
//!
//! [`match_activation`] matches sigmoid, tanh, GELU, SiLU, hard sigmoid, hard swish and leaky ReLU. ReLU and clipping are matched
//! by `Activation::compose` (`epilogue_activations.rs`). The only caller of `match_activation` is `extend_epilogue`
//! (`rules/conv/conv_matcher.rs`), which extends the epilogue of a convolution.

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Op};

use super::epilogue_activations::{Activation, ClippedLine, Readers, op_call, scalar_constant};

const ADD: Op = Op::new("relax.add");
const SUBTRACT: Op = Op::new("relax.subtract");
const MULTIPLY: Op = Op::new("relax.multiply");
const DIVIDE: Op = Op::new("relax.divide");
const MAXIMUM: Op = Op::new("relax.maximum");
const MINIMUM: Op = Op::new("relax.minimum");
const LESS: Op = Op::new("relax.less");
const WHERE: Op = Op::new("relax.where");
const SIGMOID: Op = Op::new("relax.sigmoid");
const LEAKY_RELU: Op = Op::new("relax.nn.leakyrelu");

/// The operators that are activations, each with the name of the activation in kernel declarations.
const UNARY_ACTIVATIONS: &[(Op, &str)] = &[
    (SIGMOID, "sigmoid"),
    (Op::new("relax.tanh"), "tanh"),
    (Op::new("relax.nn.gelu"), "gelu"),
    (Op::new("relax.nn.gelu_tanh"), "gelu_tanh"),
    (Op::new("relax.nn.silu"), "silu"),
];

/// An activation that the readers of a variable compute.
pub struct ActivationMatch {
    /// The activation that the operators compute.
    pub activation: Activation,
    /// The variables of intermediate values, which nothing outside of the match reads.
    pub intermediates: Vec<Var>,
    /// The variable that is bound to the result of the activation.
    pub result: Var,
}

/// If all readers of a variable together compute one activation of it, returns this activation.
pub fn match_activation(func: &Function, readers: &Readers, y: Var) -> Option<ActivationMatch> {
    let matched = match *readers.all_readers(func, y)? {
        [one] => unary_activation(func, one, y).or_else(|| hard_sigmoid(func, readers, y)),
        [a, b] => gated_activation(func, readers, y, (a, b))
            .or_else(|| gated_activation(func, readers, y, (b, a))),
        [a, b, c] => leaky_relu(func, readers, y, [a, b, c]),
        _ => None,
    }?;
    (func.var(matched.result).ty == func.var(y).ty).then_some(matched)
}

/// Whether an operand is the variable `v`.
fn is_var(func: &Function, e: Expr, v: Var) -> bool {
    matches!(func.expr(e), ExprData::Var(var) if *var == v)
}

/// Matches an activation that a single operator computes, such as `R.nn.relu`.
fn unary_activation(func: &Function, binding: Binding, y: Var) -> Option<ActivationMatch> {
    let (op, args, attrs) = op_call(func, binding.value)?;
    let activation = match (op, args) {
        (LEAKY_RELU, [x]) if is_var(func, *x, y) => {
            let slope = attrs.get("alpha").and_then(AttrValue::as_float)?;
            Activation::LeakyRelu(Some(slope).filter(|slope| slope.is_finite())?)
        }
        (_, [x]) if is_var(func, *x, y) => {
            Activation::Function(UNARY_ACTIVATIONS.iter().find(|f| f.0 == op)?.1)
        }
        _ => return None,
    };
    Some(ActivationMatch { activation, intermediates: Vec::new(), result: binding.var })
}

/// Matches `y * f(y)`, where `f` is a sigmoid or a clipped linear function. A constant factor of the result becomes part of the
/// linear function.
fn gated_activation(
    func: &Function,
    readers: &Readers,
    y: Var,
    (first, product): (Binding, Binding),
) -> Option<ActivationMatch> {
    let (MULTIPLY, &[a, b], _) = op_call(func, product.value)? else { return None };
    let gate = if is_var(func, a, y) { b } else { a };
    let ExprData::Var(gate) = *func.expr(gate) else { return None };
    if gate == y || readers.only_reader(func, gate)?.var != product.var {
        return None;
    }
    if let (SIGMOID, &[x], _) = op_call(func, first.value)?
        && first.var == gate
        && is_var(func, x, y)
    {
        let activation = Activation::Function("silu");
        return Some(ActivationMatch {
            activation,
            intermediates: vec![gate],
            result: product.var,
        });
    }
    let mut line = ClippedLine::IDENTITY;
    let (mut at, mut next, mut intermediates) = (y, first, Vec::new());
    loop {
        line = line.compose(func, next, at)?;
        at = next.var;
        intermediates.push(at);
        if at == gate {
            break;
        }
        next = readers.only_reader(func, at)?;
    }
    let mut result = product.var;
    // `x * clip(x + 3, 0, 6) / 6`.
    if let Some(scaled) = readers.only_reader(func, result)
        && let Some((MULTIPLY | DIVIDE, ..)) = op_call(func, scaled.value)
        && let Some(scaled_line) = line.compose(func, scaled, result)
    {
        (line, result) = (scaled_line, scaled.var);
        intermediates.push(product.var);
    }
    let has_limit = line.limits.0.is_finite() || line.limits.1.is_finite();
    let activation = Activation::HardSwish(line);
    has_limit.then_some(ActivationMatch { activation, intermediates, result })
}

/// Matches the longest chain of operators from `y` on that computes a linear function clipped at both ends. The linear function
/// must not be the identity.
fn hard_sigmoid(func: &Function, readers: &Readers, y: Var) -> Option<ActivationMatch> {
    let (mut line, mut at, mut intermediates, mut longest) =
        (ClippedLine::IDENTITY, y, Vec::new(), None);
    while let Some(next) = readers.only_reader(func, at)
        && let Some(longer) = line.compose(func, next, at)
    {
        line = longer;
        at = next.var;
        let (low, high) = line.limits;
        let is_line = (line.slope, line.offset) != (1.0, 0.0);
        if is_line && low.is_finite() && high.is_finite() {
            let activation = Activation::HardSigmoid(line);
            longest = Some(ActivationMatch {
                activation,
                intermediates: intermediates.clone(),
                result: at,
            });
        }
        intermediates.push(at);
    }
    longest
}

/// Matches `where(x < 0, slope * x, x)`.
fn leaky_relu(
    func: &Function,
    readers: &Readers,
    y: Var,
    bindings: [Binding; 3],
) -> Option<ActivationMatch> {
    let find = |wanted: Op| {
        bindings.into_iter().find_map(|b| {
            let (op, args, _) = op_call(func, b.value)?;
            (op == wanted).then_some((b.var, args))
        })
    };
    let (scaled, &[a, b]) = find(MULTIPLY)? else { return None };
    let (negative, &[x, zero]) = find(LESS)? else { return None };
    let (result, &[condition, then, other]) = find(WHERE)? else { return None };
    let slope =
        if is_var(func, a, y) { scalar_constant(func, b) } else { scalar_constant(func, a) };
    let slope = slope.filter(|slope| slope.is_finite())?;
    let is_leaky_relu = is_var(func, x, y)
        && scalar_constant(func, zero) == Some(0.0)
        && is_var(func, condition, negative)
        && is_var(func, then, scaled)
        && is_var(func, other, y);
    let no_other_readers = [scaled, negative]
        .into_iter()
        .all(|v| readers.only_reader(func, v).is_some_and(|b| b.var == result));
    let (activation, intermediates) = (Activation::LeakyRelu(slope), vec![scaled, negative]);
    (is_leaky_relu && no_other_readers).then_some(ActivationMatch {
        activation,
        intermediates,
        result,
    })
}

impl ClippedLine {
    const IDENTITY: ClippedLine =
        ClippedLine { slope: 1.0, offset: 0.0, limits: (f64::NEG_INFINITY, f64::INFINITY) };

    /// Applies the operator of a binding to the result of this clipped linear function. The operands of the operator are `x`, which
    /// contains the result, and a constant. `None` if the combination is not a clipped linear function.
    fn compose(self, func: &Function, binding: Binding, x: Var) -> Option<ClippedLine> {
        let (op, &[a, b], _) = op_call(func, binding.value)? else { return None };
        let number = match (is_var(func, a, x), is_var(func, b, x)) {
            (true, false) => scalar_constant(func, b)?,
            (false, true) if op != SUBTRACT && op != DIVIDE => scalar_constant(func, a)?,
            _ => return None,
        };
        let (low, high) = self.limits;
        let line = match op {
            ADD => self.shifted(number),
            SUBTRACT => self.shifted(-number),
            MULTIPLY if number > 0.0 => self.scaled(number),
            DIVIDE if number > 0.0 => self.scaled(1.0 / number),
            MAXIMUM => ClippedLine { limits: (low.max(number), high.max(number)), ..self },
            MINIMUM => ClippedLine { limits: (low.min(number), high.min(number)), ..self },
            _ => return None,
        };
        (line.slope.is_finite() && line.offset.is_finite()).then_some(line)
    }

    fn shifted(self, by: f64) -> ClippedLine {
        let (low, high) = self.limits;
        ClippedLine { offset: self.offset + by, limits: (low + by, high + by), ..self }
    }

    fn scaled(self, by: f64) -> ClippedLine {
        let (low, high) = self.limits;
        ClippedLine {
            slope: self.slope * by,
            offset: self.offset * by,
            limits: (low * by, high * by),
        }
    }
}
