//! Recognizes activations that are written as one or more operators on the results of a kernel.

use pliant_ir::relax::{Binding, Expr, ExprData, Function, Var};
use pliant_ir::{AttrValue, Op};

use super::epilogue::{Activation, Line, Readers, call, scalar};

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

/// Operators that are activations, and their names in kernel declarations.
const FUNCTIONS: &[(Op, &str)] = &[
    (SIGMOID, "sigmoid"),
    (Op::new("relax.tanh"), "tanh"),
    (Op::new("relax.nn.gelu"), "gelu"),
    (Op::new("relax.nn.gelu_tanh"), "gelu_tanh"),
    (Op::new("relax.nn.silu"), "silu"),
];

/// An activation that is applied to a variable.
pub struct Applied {
    /// The activation.
    pub activation: Activation,
    /// The intermediate variables, which nothing else reads.
    pub inside: Vec<Var>,
    /// The variable of the result.
    pub result: Var,
}

/// The activation that all readers of a variable compute together.
pub fn applied(func: &Function, readers: &Readers, y: Var) -> Option<Applied> {
    let found = match *readers.all(func, y)? {
        [one] => function(func, one, y).or_else(|| hard_sigmoid(func, readers, y)),
        [a, b] => gated(func, readers, y, (a, b)).or_else(|| gated(func, readers, y, (b, a))),
        [a, b, c] => leaky_relu(func, readers, y, [a, b, c]),
        _ => None,
    }?;
    (func.var(found.result).ty == func.var(y).ty).then_some(found)
}

/// Whether an operand is this variable.
fn is(func: &Function, e: Expr, v: Var) -> bool {
    matches!(func.expr(e), ExprData::Var(own) if *own == v)
}

/// An activation that is one operator.
fn function(func: &Function, binding: Binding, y: Var) -> Option<Applied> {
    let (op, args, attrs) = call(func, binding.value)?;
    let activation = match (op, args) {
        (LEAKY_RELU, [x]) if is(func, *x, y) => {
            let slope = attrs.get("alpha").and_then(AttrValue::as_float)?;
            Activation::LeakyRelu(Some(slope).filter(|slope| slope.is_finite())?)
        }
        (_, [x]) if is(func, *x, y) => {
            Activation::Function(FUNCTIONS.iter().find(|f| f.0 == op)?.1)
        }
        _ => return None,
    };
    Some(Applied { activation, inside: Vec::new(), result: binding.var })
}

/// Matches `y * f(y)`, where `f` is a sigmoid or a clipped linear function. A constant factor of the product becomes part of the
/// linear function.
fn gated(
    func: &Function,
    readers: &Readers,
    y: Var,
    (first, product): (Binding, Binding),
) -> Option<Applied> {
    let (MULTIPLY, &[a, b], _) = call(func, product.value)? else { return None };
    let gate = if is(func, a, y) { b } else { a };
    let ExprData::Var(gate) = *func.expr(gate) else { return None };
    if gate == y || readers.only(func, gate)?.var != product.var {
        return None;
    }
    if let (SIGMOID, &[x], _) = call(func, first.value)?
        && first.var == gate
        && is(func, x, y)
    {
        let activation = Activation::Function("silu");
        return Some(Applied { activation, inside: vec![gate], result: product.var });
    }
    let mut line = Line::IDENTITY;
    let (mut at, mut next, mut inside) = (y, first, Vec::new());
    loop {
        line = line.then(func, next, at)?;
        at = next.var;
        inside.push(at);
        if at == gate {
            break;
        }
        next = readers.only(func, at)?;
    }
    let mut result = product.var;
    // `x * clip(x + 3, 0, 6) / 6`.
    if let Some(scaled) = readers.only(func, result)
        && let Some((MULTIPLY | DIVIDE, ..)) = call(func, scaled.value)
        && let Some(all) = line.then(func, scaled, result)
    {
        (line, result) = (all, scaled.var);
        inside.push(product.var);
    }
    let limited = line.limits.0.is_finite() || line.limits.1.is_finite();
    let activation = Activation::HardSwish(line);
    limited.then_some(Applied { activation, inside, result })
}

/// Matches a linear function with two clipping limits: the longest chain of operators that ends in a limit. The linear function is
/// not the identity.
fn hard_sigmoid(func: &Function, readers: &Readers, y: Var) -> Option<Applied> {
    let (mut line, mut at, mut inside, mut found) = (Line::IDENTITY, y, Vec::new(), None);
    while let Some(next) = readers.only(func, at)
        && let Some(longer) = line.then(func, next, at)
    {
        line = longer;
        at = next.var;
        let (low, high) = line.limits;
        let is_line = (line.slope, line.offset) != (1.0, 0.0);
        if is_line && low.is_finite() && high.is_finite() {
            let activation = Activation::HardSigmoid(line);
            found = Some(Applied { activation, inside: inside.clone(), result: at });
        }
        inside.push(at);
    }
    found
}

/// `where(x < 0, slope * x, x)`.
fn leaky_relu(
    func: &Function,
    readers: &Readers,
    y: Var,
    bindings: [Binding; 3],
) -> Option<Applied> {
    let find = |wanted: Op| {
        bindings.into_iter().find_map(|b| {
            let (op, args, _) = call(func, b.value)?;
            (op == wanted).then_some((b.var, args))
        })
    };
    let (scaled, &[a, b]) = find(MULTIPLY)? else { return None };
    let (negative, &[x, zero]) = find(LESS)? else { return None };
    let (result, &[condition, then, other]) = find(WHERE)? else { return None };
    let slope = if is(func, a, y) { scalar(func, b) } else { scalar(func, a) };
    let slope = slope.filter(|slope| slope.is_finite())?;
    let fits = is(func, x, y)
        && scalar(func, zero) == Some(0.0)
        && is(func, condition, negative)
        && is(func, then, scaled)
        && is(func, other, y);
    let alone = [scaled, negative]
        .into_iter()
        .all(|v| readers.only(func, v).is_some_and(|b| b.var == result));
    let (activation, inside) = (Activation::LeakyRelu(slope), vec![scaled, negative]);
    (fits && alone).then_some(Applied { activation, inside, result })
}

impl Line {
    const IDENTITY: Line =
        Line { slope: 1.0, offset: 0.0, limits: (f64::NEG_INFINITY, f64::INFINITY) };

    /// Composes the function with the operator of a binding, whose operands are `x` and a constant.
    fn then(self, func: &Function, binding: Binding, x: Var) -> Option<Line> {
        let (op, &[a, b], _) = call(func, binding.value)? else { return None };
        let number = match (is(func, a, x), is(func, b, x)) {
            (true, false) => scalar(func, b)?,
            (false, true) if op != SUBTRACT && op != DIVIDE => scalar(func, a)?,
            _ => return None,
        };
        let (low, high) = self.limits;
        let line = match op {
            ADD => self.shifted(number),
            SUBTRACT => self.shifted(-number),
            MULTIPLY if number > 0.0 => self.scaled(number),
            DIVIDE if number > 0.0 => self.scaled(1.0 / number),
            MAXIMUM => Line { limits: (low.max(number), high.max(number)), ..self },
            MINIMUM => Line { limits: (low.min(number), high.min(number)), ..self },
            _ => return None,
        };
        (line.slope.is_finite() && line.offset.is_finite()).then_some(line)
    }

    fn shifted(self, by: f64) -> Line {
        let (low, high) = self.limits;
        Line { offset: self.offset + by, limits: (low + by, high + by), ..self }
    }

    fn scaled(self, by: f64) -> Line {
        let (low, high) = self.limits;
        Line { slope: self.slope * by, offset: self.offset * by, limits: (low * by, high * by) }
    }
}
