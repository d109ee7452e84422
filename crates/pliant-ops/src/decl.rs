//! [`OpDecl`]: all that is to be known of one operator, in one place.

use pliant_ir::op::{InferError, OperandSpec, Takes};
use pliant_ir::relax::Type;
use pliant_ir::{AttrValue, OpSignature};

use crate::infer::InferCtx;
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::te;

/// A type rule: the type of a call, made in the arenas of the function that holds it.
pub type InferFn = fn(&mut InferCtx<'_>) -> Result<Type, InferError>;

/// What an operator computes: its outputs as tensor expressions over the operands.
pub type TeFn = fn(&mut LegalizeCtx<'_>) -> Result<Vec<te::Tensor>, LegalizeError>;

/// How an operator may be fused with its neighbours, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// One output element from the input elements at the same place.
    ElemWise,
    /// The same after broadcasting.
    Broadcast,
    /// One output element from one input element at a computed place.
    Injective,
    /// A commutative reduction.
    CommReduce,
    /// Heavy, with elementwise operators fusable to its output: matrix products, convolutions.
    OutEWiseFusable,
    /// Not to be fused.
    Opaque,
}

/// Which sizes of the operands a type rule must know as numbers, where all others may be symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// None.
    None,
    /// Whether a size is 1.
    Ones,
    /// The last dim of this operand, which says what its elements mean; the operands before it are tensors.
    Last(usize),
}

/// How a call becomes lower-level code.
#[derive(Clone, Copy, Debug)]
pub enum Legalize {
    /// It stays as it is: a later stage gives it its meaning.
    Keep,
    /// A loop function made from this tensor expression.
    Te(TeFn),
    /// A view of operand 0 in the shape of the result: `relax.reshape`. The tensor expression copies.
    View(TeFn),
    /// A call of this packed function with the operands, then the attributes.
    Packed(&'static str),
}

/// The default of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// There is none: the attribute must be given.
    Required,
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(&'static str),
    /// A list of integers.
    Ints(&'static [i64]),
}

impl Default {
    /// The value; `None` where the attribute must be given.
    pub fn value(self) -> Option<AttrValue> {
        Some(match self {
            Default::Required => return None,
            Default::None => AttrValue::None,
            Default::Bool(b) => AttrValue::Bool(b),
            Default::Int(v) => AttrValue::Int(v),
            Default::Float(v) => AttrValue::float(v),
            Default::Str(s) => AttrValue::str(s),
            Default::Ints(v) => AttrValue::ints(v.iter().copied()),
        })
    }
}

/// The declaration of an operator: a constant in the file of its group and a row of that group's table.
#[derive(Clone, Copy, Debug)]
pub struct OpDecl {
    /// Its full name: `relax.add`.
    pub name: &'static str,
    /// Other full names that mean the same.
    pub aliases: &'static [&'static str],
    /// The operands' keywords: `x`; `x?` may be left out; `*xs` takes all remaining ones. A word after a colon says what
    /// an operand takes that is not of the elements' type, `indices: index` or `k?: size` ([`Takes`]).
    pub operands: &'static [&'static str],
    /// The attributes and their defaults.
    pub attrs: &'static [(&'static str, Default)],
    /// Which attribute, the first one, may be given by symbols.
    pub symbolic: Option<&'static str>,
    /// Which attributes are lists, and how many items a number stands for ([`OpSignature::lists`]); their defaults are such.
    pub lists: &'static [(&'static str, usize)],
    /// The type rule.
    pub infer: InferFn,
    /// Whether a call has no effect but its result.
    pub pure: bool,
    /// How it may be fused.
    pub pattern: Pattern,
    /// How it becomes lower-level code.
    pub legalize: Legalize,
    /// Whether each element of the result follows from the elements of the operands at its position, after broadcasting, so
    /// that all may have their dims in another order.
    pub elementwise: bool,
    /// Whether the shape of the result depends on the operands' values.
    pub data_dependent: bool,
    /// Whether the result follows from the types of the operands: where a type says the value, the call is that value.
    pub of_types: bool,
    /// Which sizes must be numbers when a call is compiled.
    pub numbers: Numbers,
    /// The NumPy function with the same meaning, if there is one.
    pub numpy: Option<&'static str>,
    /// The ONNX operators that it serves.
    pub onnx: &'static [&'static str],
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// What its field has and it does not do, and why.
    pub limits: Option<&'static str>,
    // Gradients are not there yet. Their place is here: a field `gradient: Option<GradientFn>` and a builder function
    // `gradient(f)` below, where `f` makes the adjoints of the operands from that of the result, in the arenas of the
    // function that holds the call, as `infer` makes its type. An operator then names it in its own row, as it does `te`.
}

impl OpDecl {
    /// A pure, opaque operator without operands that stays as it is.
    pub const fn new(name: &'static str, infer: InferFn, doc: &'static str) -> Self {
        OpDecl {
            name,
            aliases: &[],
            operands: &[],
            attrs: &[],
            symbolic: None,
            lists: &[],
            infer,
            pure: true,
            pattern: Pattern::Opaque,
            legalize: Legalize::Keep,
            elementwise: false,
            data_dependent: false,
            of_types: false,
            numbers: Numbers::None,
            numpy: None,
            onnx: &[],
            doc,
            limits: None,
        }
    }

    /// With these operands.
    pub const fn operands(mut self, operands: &'static [&'static str]) -> Self {
        self.operands = operands;
        self
    }

    /// With these attributes.
    pub const fn attrs(mut self, attrs: &'static [(&'static str, Default)]) -> Self {
        self.attrs = attrs;
        self
    }

    /// With a first attribute that may be given by symbols: its type rule reads it by [`InferCtx::sizes_attr`].
    pub const fn symbolic(mut self, name: &'static str) -> Self {
        self.symbolic = Some(name);
        self
    }

    /// With attributes that are lists of so many items where a number is given.
    pub const fn lists(mut self, lists: &'static [(&'static str, usize)]) -> Self {
        self.lists = lists;
        self
    }

    /// With a loop form.
    pub const fn te(mut self, pattern: Pattern, te: TeFn) -> Self {
        self.pattern = pattern;
        self.elementwise = matches!(pattern, Pattern::ElemWise);
        self.legalize = Legalize::Te(te);
        self
    }

    /// With a loop form that computes each element of the result from those of the operands at its position, after
    /// broadcasting.
    pub const fn te_broadcast(mut self, te: TeFn) -> Self {
        self.pattern = Pattern::Broadcast;
        self.elementwise = true;
        self.legalize = Legalize::Te(te);
        self
    }

    /// The same elements in another shape.
    pub const fn view(mut self, te: TeFn) -> Self {
        self.pattern = Pattern::Injective;
        self.legalize = Legalize::View(te);
        self
    }

    /// Called as a packed function.
    pub const fn packed(mut self, name: &'static str) -> Self {
        self.legalize = Legalize::Packed(name);
        self
    }

    /// With an effect.
    pub const fn impure(mut self) -> Self {
        self.pure = false;
        self
    }

    /// With a result whose shape depends on values.
    pub const fn data_dependent(mut self) -> Self {
        self.data_dependent = true;
        self
    }

    /// With a result that follows from the types of the operands.
    pub const fn of_types(mut self) -> Self {
        self.of_types = true;
        self
    }

    /// With sizes that must be numbers when a call is compiled.
    pub const fn numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// With other names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// With the name of the NumPy function.
    pub const fn numpy(mut self, name: &'static str) -> Self {
        self.numpy = Some(name);
        self
    }

    /// With the names of ONNX operators.
    pub const fn onnx(mut self, names: &'static [&'static str]) -> Self {
        self.onnx = names;
        self
    }

    /// With what it does not do, and why.
    pub const fn limits(mut self, text: &'static str) -> Self {
        self.limits = Some(text);
        self
    }

    /// How it is written.
    pub fn signature(&self) -> OpSignature {
        let operands = self.operands.iter().map(|s| operand(s)).collect();
        // A data type is kept as one, however the declaration spells it.
        let value = |name: &str, default: Default| match default.value() {
            Some(AttrValue::Str(s)) if name.ends_with("dtype") => {
                Some(s.parse().map_or(AttrValue::Str(s), AttrValue::DType))
            }
            value => value,
        };
        let attrs = self.attrs.iter().map(|&(name, d)| (name, value(name, d))).collect();
        OpSignature { operands, attrs, symbolic: self.symbolic, lists: self.lists }
    }
}

/// The operand that a spec such as `x`, `x?`, `*xs` or `k?: size` declares.
pub(crate) fn operand(spec: &'static str) -> OperandSpec {
    let (name, word) = spec.split_once(": ").unwrap_or((spec, ""));
    let takes = Takes::of_word(word).unwrap_or_default();
    let variadic = name.starts_with('*');
    let optional = variadic || name.ends_with('?');
    OperandSpec { name: name.trim_matches(['*', '?']), optional, variadic, takes }
}
