//! The name of an operator, and what the IR asks of whoever declares operators.
//!
//! The IR holds operators as data: a call names an [`Op`]. Their meaning (type rule, loop form, purity)
//! stands in the operator library, which implements [`OpRegistry`] for the builder, the verifier and the
//! parser.

use std::fmt;

use pliant_tensor::DType;

use crate::attrs::{AttrValue, Attrs};
use crate::relax::{Expr, Function, Type};

/// An operator, by its full name (`relax.add`). Names live as long as the process: those of the library are
/// constants, and a user's operator leaks its name once when it is registered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op(pub &'static str);

impl Op {
    /// The name without its first component: `add` for `relax.add`.
    pub fn short_name(self) -> &'static str {
        self.0.strip_prefix("relax.").unwrap_or(self.0)
    }

    /// Whether calls write into operands, although their types call them pure: `call_tir_inplace` and its kin.
    pub fn writes_operands(self) -> bool {
        self.0.contains("inplace")
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// `relax.call_tir(func, (args...), out_sinfo, tir_vars)`: destination-passing call of a loop function.
pub const CALL_TIR: Op = Op("relax.call_tir");
/// `R.call_tir_inplace(func, (args...), inplace_indices, out_sinfo)`: outputs may overwrite inputs.
pub const CALL_TIR_INPLACE: Op = Op("relax.call_tir_inplace");
/// The calls that state what they write.
pub const DESTINATION_PASSING: [Op; 3] = [CALL_TIR, CALL_TIR_INPLACE, CALL_DPS_PACKED];
/// `relax.call_dps_packed(func, (args...), out_sinfo)`: destination-passing call of a packed function.
pub const CALL_DPS_PACKED: Op = Op("relax.call_dps_packed");
/// `relax.call_pure_packed(func, args...)`: call of a packed function that the caller promises is pure.
pub const CALL_PURE_PACKED: Op = Op("relax.call_pure_packed");
/// `relax.call_builtin_with_ctx(func, (args...))`: call of a VM builtin that takes the VM's context.
pub const CALL_BUILTIN_WITH_CTX: Op = Op("relax.call_builtin_with_ctx");
/// `relax.while_loop(cond, body, state...)`: calls `body` on the state as long as `cond` of it holds, and returns the
/// last state. Its meaning and type rule stand in [`crate::relax::loops`].
pub const WHILE_LOOP: Op = Op("relax.while_loop");

/// `R.null_value()`: stands for an optional operand that is not given.
pub const NULL_VALUE: Op = Op("relax.null_value");

/// How an operator is written: its operands, then its attributes with their defaults.
#[derive(Clone, Debug, Default)]
pub struct OpSignature {
    /// Names of the operands, in order.
    pub operands: Vec<OperandSpec>,
    /// Names and defaults of the attributes, in order; `None` marks a required attribute.
    pub attrs: Vec<(&'static str, Option<AttrValue>)>,
    /// The attribute that may be given by symbols, the first one: a call then has it as one more operand, a shape or an
    /// integer, and `None` in its place.
    pub symbolic: Option<&'static str>,
    /// Attributes that are lists, and how many items a number there stands for; half a list is repeated.
    pub lists: &'static [(&'static str, usize)],
}

impl OpSignature {
    /// The most operands of a call; `None` where any number is possible.
    pub fn most_operands(&self) -> Option<usize> {
        let variadic = self.operands.iter().any(|o| o.variadic);
        (!variadic).then_some(self.operands.len() + usize::from(self.symbolic.is_some()))
    }

    /// What operand `i` of a call takes.
    pub fn takes(&self, i: usize) -> Takes {
        match self.operands.get(i).or(self.operands.last().filter(|o| o.variadic)) {
            Some(spec) => spec.takes,
            None if self.symbolic.is_some() => Takes::Sizes,
            None => Takes::Elements,
        }
    }

    /// For each operand of a call the type of the tensor that a number there becomes; `None` where it stays a scalar.
    /// Among elements a number takes the type of the first tensor; without one, an integer among floats becomes one of
    /// them. What fills a result takes the type that is stated for it.
    pub fn number_types(&self, written: &[Written], stated: Option<DType>) -> Vec<Option<DType>> {
        let elements = |kind: fn(&Written) -> bool| {
            let of = move |(i, w): &(usize, &Written)| self.takes(*i) == Takes::Elements && kind(w);
            written.iter().enumerate().filter(of).map(|(_, w)| *w)
        };
        let beside = elements(|w| matches!(w, Written::Tensor(_))).find_map(|w| match w {
            Written::Tensor(dtype) => dtype,
            _ => None,
        });
        let open = elements(|w| matches!(w, Written::Tensor(_))).next().is_some();
        let floats = elements(|w| *w == Written::Float).next().is_some();
        let alone = (floats && !open).then_some(DType::Float32);
        (0..written.len())
            .map(|i| match self.takes(i) {
                Takes::Elements => beside.or(alone),
                Takes::Fill => stated.or(beside).or(written[i].own_type()),
                Takes::Bools | Takes::Indices | Takes::Sizes | Takes::Scalars => None,
            })
            .collect()
    }

    /// An attribute's value as calls keep it: a list where the declaration says so.
    pub fn normal(&self, key: &str, value: AttrValue) -> AttrValue {
        let Some(&(_, count)) = self.lists.iter().find(|(name, _)| *name == key) else {
            return value;
        };
        match &value {
            AttrValue::Int(_) => AttrValue::List(vec![value; count]),
            AttrValue::List(items) if items.len() == 1 || items.len() * 2 == count => {
                AttrValue::List(items.iter().cycle().take(count).cloned().collect())
            }
            _ => value,
        }
    }

    /// The attributes in the order of the declaration, defaults filled in and values in their normal form: calls that
    /// mean the same are equal.
    pub fn complete(&self, attrs: Attrs) -> Attrs {
        let mut attrs = self.in_order(attrs);
        for (key, value) in &mut attrs.0 {
            if self.lists.iter().any(|(name, _)| *name == &**key) {
                *value = self.normal(key, value.clone());
            }
        }
        attrs
    }

    fn in_order(&self, attrs: Attrs) -> Attrs {
        let declared = |key: &str| self.attrs.iter().any(|(name, _)| *name == key);
        let in_order = attrs.0.len() == self.attrs.len()
            && attrs.0.iter().zip(&self.attrs).all(|((key, _), (name, _))| &**key == *name);
        if in_order {
            return attrs;
        }
        let mut out = Attrs::default();
        for (name, default) in &self.attrs {
            if let Some(value) = attrs.get(name).or(default.as_ref()) {
                out.0.push(((*name).into(), value.clone()));
            }
        }
        out.0.extend(attrs.0.into_iter().filter(|(key, _)| !declared(key)));
        out
    }
}

/// One operand of an operator.
#[derive(Clone, Debug)]
pub struct OperandSpec {
    /// Its keyword.
    pub name: &'static str,
    /// Whether it may be left out (only trailing operands may).
    pub optional: bool,
    /// Whether it takes all remaining positional arguments.
    pub variadic: bool,
    /// What it takes.
    pub takes: Takes,
}

/// What an operand takes, and so what a number written in its place becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Takes {
    /// Elements of the type that the operands share: a number takes it from a tensor beside it.
    #[default]
    Elements,
    /// The element that fills the result: a number takes the type that is stated for the result.
    Fill,
    /// Conditions, whose type says nothing of the others'.
    Bools,
    /// Places or counts, whose type says nothing of the others'.
    Indices,
    /// Sizes and integers known to the compiler: a shape or an integer.
    Sizes,
    /// Values of types of their own: a number stays one.
    Scalars,
}

impl Takes {
    /// What an operand declared with that word takes.
    pub fn of_word(word: &str) -> Option<Takes> {
        Some(match word {
            "fill" => Takes::Fill,
            "bool" => Takes::Bools,
            "index" => Takes::Indices,
            "size" => Takes::Sizes,
            "scalar" => Takes::Scalars,
            _ => return None,
        })
    }
}

/// What stands in the place of an operand, as far as the numbers beside it depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A tensor of that element type, or something that may turn out to be one.
    Tensor(Option<DType>),
    /// A whole number.
    Int,
    /// A float.
    Float,
    /// A truth value.
    Bool,
    /// Something else.
    Other,
}

impl Written {
    /// The type of a number that nothing else gives one.
    fn own_type(self) -> Option<DType> {
        match self {
            Written::Int => Some(DType::Int64),
            Written::Float => Some(DType::Float32),
            Written::Bool => Some(DType::Bool),
            Written::Tensor(_) | Written::Other => None,
        }
    }
}

/// Why a type could not be inferred. The text is for the user; the caller adds where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferError {
    /// What is wrong, naming operands, dims and types.
    pub message: String,
    /// What to do about it, if that can be said.
    pub help: Option<String>,
    /// The attribute whose value is none that the operator takes, whatever its operands are.
    pub attr: Option<Box<str>>,
}

impl InferError {
    /// An error without advice.
    pub fn new(message: impl Into<String>) -> Self {
        InferError { message: message.into(), help: None, attr: None }
    }

    /// The same with advice.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same, about the value of an attribute.
    pub fn of_attr(mut self, key: &str) -> Self {
        self.attr = Some(key.into());
        self
    }
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InferError {}

/// The operator library as the IR sees it.
pub trait OpRegistry: Send + Sync {
    /// The operator of that full name (`relax.add`).
    fn lookup(&self, name: &str) -> Option<Op>;

    /// How the operator is written. `None` for an unknown one.
    fn signature(&self, op: Op) -> Option<&OpSignature>;

    /// The full names of all operators, for suggestions.
    fn names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The attributes of a call as they are kept: all of them, in the order of the declaration.
    fn complete(&self, op: Op, attrs: Attrs) -> Attrs {
        match self.signature(op) {
            Some(signature) => signature.complete(attrs),
            None => attrs,
        }
    }

    /// Whether a call has no effect but its result.
    fn is_pure(&self, op: Op) -> bool;

    /// Whether the type over operands of unknown types is that of an example, and others may give another.
    fn infers_by_example(&self, _op: Op) -> bool {
        false
    }

    /// Whether each element of the result follows from the elements of the operands at its position, after broadcasting.
    fn is_elementwise(&self, _op: Op) -> bool {
        false
    }

    /// The type of `op(args, attrs)`, made in the arenas of `func`.
    ///
    /// # Errors
    /// When the operands cannot fit: a rank, dtype or shape that is provably wrong.
    fn infer(
        &self,
        func: &mut Function,
        op: Op,
        args: &[Expr],
        attrs: &Attrs,
        ty_args: &[Type],
    ) -> Result<Type, InferError>;
}

/// A registry without operators, for code that only handles structure.
pub struct NoOps;

impl OpRegistry for NoOps {
    fn lookup(&self, _name: &str) -> Option<Op> {
        None
    }

    fn signature(&self, _op: Op) -> Option<&OpSignature> {
        None
    }

    fn is_pure(&self, _op: Op) -> bool {
        false
    }

    fn infer(
        &self,
        _func: &mut Function,
        op: Op,
        _args: &[Expr],
        _attrs: &Attrs,
        _ty_args: &[Type],
    ) -> Result<Type, InferError> {
        Err(InferError::new(format!("operator {op} is not declared")))
    }
}
