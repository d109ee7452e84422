//! [`OpDecl`]: the complete declaration of an operator.

use pliant_ir::op::{DimTrait, InferError, OperandKind, OperandSpec};
use pliant_ir::relax::Type;
use pliant_ir::{AttrValue, OpSignature};

use crate::gradient::{Gradient, GradientFn};
use crate::legalize::{LegalizeCtx, LegalizeError};
use crate::te;
use crate::type_inference::InferCtx;

/// The result of type inference: the type of the call, or the reason why its operands or attributes are invalid.
pub type InferResult = Result<Type, InferError>;

/// The result of lowering to tensor expressions: one tensor per output, or the reason why the call cannot be lowered.
pub type TeResult = Result<Vec<te::Tensor>, LegalizeError>;

/// Infers the type of a call. The type is created in the arenas of the function that contains the call.
pub type InferFn = fn(&mut InferCtx<'_>) -> InferResult;

/// Lowers a call to tensor expressions over its operands.
pub type TeFn = fn(&mut LegalizeCtx<'_>) -> TeResult;

/// How an operator can be fused with its neighbours, from the least to the most restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Each output element depends only on the input elements at the same position.
    ElemWise,
    /// Each output element depends only on the input elements at the same position after
    /// broadcasting.
    Broadcast,
    /// Each output element is a copy of one input element at a computed position, as in a
    /// transpose.
    Injective,
    /// A commutative reduction, such as a sum over an axis.
    CommReduce,
    /// An expensive operator whose output can be fused with elementwise operators, such as a matrix
    /// product or a convolution.
    OutEWiseFusable,
    /// The operator cannot be fused with its neighbours.
    Opaque,
}

/// The sizes of operands that type inference must know as constants. All other sizes may be symbolic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstantSizes {
    /// All sizes may be symbolic.
    None,
    /// For the size of each dim, it must be known whether the size is 1.
    WhetherOne,
    /// The size of the last dim of the operand with this index must be constant, because it
    /// determines how the operand's elements are interpreted. All operands with smaller indices are
    /// tensors.
    LastDim(usize),
}

/// The lowered form of an operator's calls.
#[derive(Clone, Copy, Debug)]
pub enum Legalize {
    /// Calls are not lowered by this crate; a later stage of compilation handles them.
    Keep,
    /// A call becomes a call of a loop function, which is generated from this tensor expression.
    Te(TeFn),
    /// The call becomes a view of operand 0 with the shape of the result: `relax.reshape`. The
    /// tensor expression copies the elements; it is used if a loop function is required.
    View(TeFn),
    /// A call becomes a call of this packed function with the operands, followed by the attributes.
    Packed(&'static str),
}

/// The default value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// No default: the attribute is required.
    Required,
    /// The default is `None`.
    None,
    /// The default is this bool.
    Bool(bool),
    /// The default is this integer.
    Int(i64),
    /// The default is this float.
    Float(f64),
    /// The default is this string.
    Str(&'static str),
    /// The default is this list of integers.
    Ints(&'static [i64]),
}

impl Default {
    /// The default as an attribute value; `None` for a required attribute, which has no default.
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

/// The declaration of an operator. Each file in `ops` contains a table of declarations.
#[derive(Clone, Copy, Debug)]
pub struct OpDecl {
    /// The full name of the operator, such as `relax.add`.
    pub name: &'static str,
    /// Alternative full names of the operator.
    pub aliases: &'static [&'static str],
    /// The keywords of the operands: `x`; `x?` for an optional one; `*xs` for all remaining ones.
    /// If an operand is not numeric data but, for example, an index or a size, a word after a colon
    /// states its kind ([`OperandKind`]), as in `indices: index` or `k?: size`.
    pub operands: &'static [&'static str],
    /// The names of the operator's attributes, with their defaults.
    pub attrs: &'static [(&'static str, Default)],
    /// The attribute that may contain symbols, if any. It must be the first attribute.
    pub symbolic: Option<&'static str>,
    /// The attributes that are lists. A single number stands for a list of the given length ([`OpSignature::lists`]). The
    /// defaults of these attributes are lists.
    pub lists: &'static [(&'static str, usize)],
    /// The function that infers the type of a call.
    pub infer: InferFn,
    /// Whether a call has no side effects.
    pub pure: bool,
    /// Whether the two operands can be exchanged.
    pub commutative: bool,
    /// How a call can be fused with its neighbours.
    pub pattern: Pattern,
    /// The form to which a call is lowered.
    pub legalize: Legalize,
    /// How the operator relates the dims of its operands to the dims of its result, for passes that
    /// permute dims.
    pub dims: DimTrait,
    /// Whether the shape of the result depends on the operands' values.
    pub data_dependent: bool,
    /// Whether the result only depends on the types of the operands. If the inferred type contains the value of the result,
    /// passes may replace the call by that value.
    pub depends_on_types_only: bool,
    /// The operand sizes that must be constant when a call is compiled.
    pub constant_sizes: ConstantSizes,
    /// The equivalent NumPy function, if any.
    pub numpy: Option<&'static str>,
    /// The ONNX operators that the operator implements.
    pub onnx: &'static [&'static str],
    /// A short description in full sentences. The documentation of the operator starts with it ([`OpDecl::description`]).
    pub doc: &'static str,
    /// When a call fails, apart from wrong element types: the end of the sentence "Raises an error if ...".
    pub errors: Option<&'static str>,
    /// The features of comparable operators that are not supported, with reasons.
    pub limits: Option<&'static str>,
    /// How the adjoints of the operands follow from the adjoint of the result.
    pub gradient: Gradient,
}

impl OpDecl {
    /// Declares an operator with default properties: pure, without operands and attributes, not
    /// fusible, and kept by this crate's lowering. The other methods change these properties.
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
            commutative: false,
            pattern: Pattern::Opaque,
            legalize: Legalize::Keep,
            dims: DimTrait::Opaque,
            data_dependent: false,
            depends_on_types_only: false,
            constant_sizes: ConstantSizes::None,
            numpy: None,
            onnx: &[],
            doc,
            errors: None,
            limits: None,
            gradient: Gradient::None,
        }
    }

    /// Sets the rule that emits the adjoints of the operands.
    pub const fn gradient(mut self, rule: GradientFn) -> Self {
        self.gradient = Gradient::Rule(rule);
        self
    }

    /// Declares that the gradient is derived from the tensor expression of the operator.
    pub const fn gradient_from_te(mut self) -> Self {
        self.gradient = Gradient::FromTe;
        self
    }

    /// Declares that the derivatives are zero wherever they exist.
    pub const fn zero_gradient(mut self) -> Self {
        self.gradient = Gradient::Zero;
        self
    }

    /// Sets the keywords of the operator's operands.
    pub const fn operands(mut self, operands: &'static [&'static str]) -> Self {
        self.operands = operands;
        self
    }

    /// Sets the operator's attributes and their defaults.
    pub const fn attrs(mut self, attrs: &'static [(&'static str, Default)]) -> Self {
        self.attrs = attrs;
        self
    }

    /// Declares that the attribute `name`, which must be the first one, may contain symbols. Type inference reads it with
    /// [`InferCtx::sizes_attr`].
    pub const fn symbolic(mut self, name: &'static str) -> Self {
        self.symbolic = Some(name);
        self
    }

    /// Sets the attributes that are lists. A single number stands for a list of the given length.
    pub const fn lists(mut self, lists: &'static [(&'static str, usize)]) -> Self {
        self.lists = lists;
        self
    }

    /// Sets the fusion pattern of the operator, and the tensor expression to which its calls are
    /// lowered.
    pub const fn te(mut self, pattern: Pattern, te: TeFn) -> Self {
        self.pattern = pattern;
        if matches!(pattern, Pattern::ElemWise) {
            self.dims = DimTrait::Elementwise;
        }
        self.legalize = Legalize::Te(te);
        self
    }

    /// Sets the tensor expression of an elementwise operator with broadcasting: each output element only depends on the operands'
    /// elements at its position. Calls fail if the shapes cannot be broadcast.
    pub const fn te_broadcast(mut self, te: TeFn) -> Self {
        self.errors = Some("the shapes cannot be broadcast");
        self.pattern = Pattern::Broadcast;
        self.dims = DimTrait::Elementwise;
        self.legalize = Legalize::Te(te);
        self
    }

    /// Sets how the operator relates the dims of its operands to the dims of its result.
    pub const fn dims(mut self, dims: DimTrait) -> Self {
        self.dims = dims;
        self
    }

    /// Sets a tensor expression that only changes the shape, and allows lowering to replace it by a
    /// view.
    pub const fn view(mut self, te: TeFn) -> Self {
        self.pattern = Pattern::Injective;
        self.legalize = Legalize::View(te);
        self
    }

    /// Declares that calls are lowered to the packed function `name`.
    pub const fn packed(mut self, name: &'static str) -> Self {
        self.legalize = Legalize::Packed(name);
        self
    }

    /// Marks the operator as commutative: its two operands can be exchanged.
    pub const fn commutative(mut self) -> Self {
        self.commutative = true;
        self
    }

    /// Marks the operator as having side effects.
    pub const fn impure(mut self) -> Self {
        self.pure = false;
        self
    }

    /// Marks the operator's result shape as dependent on the values of operands.
    pub const fn data_dependent(mut self) -> Self {
        self.data_dependent = true;
        self
    }

    /// Marks the operator's result as dependent only on the types of the operands.
    pub const fn depends_on_types_only(mut self) -> Self {
        self.depends_on_types_only = true;
        self
    }

    /// Sets the sizes that must be constant when a call is compiled.
    pub const fn constant_sizes(mut self, constant_sizes: ConstantSizes) -> Self {
        self.constant_sizes = constant_sizes;
        self
    }

    /// Sets alternative full names of the operator.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the name of the equivalent NumPy function.
    pub const fn numpy(mut self, name: &'static str) -> Self {
        self.numpy = Some(name);
        self
    }

    /// Sets the ONNX operators that this operator implements.
    pub const fn onnx(mut self, names: &'static [&'static str]) -> Self {
        self.onnx = names;
        self
    }

    /// Sets the text, for the documentation, about when a call fails: the end of the sentence "Raises an error if ...".
    pub const fn errors(mut self, text: &'static str) -> Self {
        self.errors = Some(text);
        self
    }

    /// Sets the text, for the documentation, about features of comparable operators that this operator does not support, with
    /// reasons.
    pub const fn limits(mut self, text: &'static str) -> Self {
        self.limits = Some(text);
        self
    }

    /// The description of the operator, followed by a sentence about its errors.
    pub fn description(&self) -> String {
        match self.errors {
            Some(errors) => format!("{} Raises an error if {errors}.", self.doc),
            None => self.doc.to_string(),
        }
    }

    /// The operands and attributes of the operator, as calls write them.
    pub fn signature(&self) -> OpSignature {
        let operands = self.operands.iter().map(|s| parse_operand(s)).collect();
        // Data types are stored as such, even if the declaration spells them as strings.
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

/// Parses the declaration of an operand, such as `x`, `x?`, `*xs` or `k?: size`.
pub(crate) fn parse_operand(spec: &'static str) -> OperandSpec {
    let (name, word) = spec.split_once(": ").unwrap_or((spec, ""));
    let kind = OperandKind::from_keyword(word).unwrap_or_default();
    let variadic = name.starts_with('*');
    let optional = variadic || name.ends_with('?');
    OperandSpec { name: name.trim_matches(['*', '?']), optional, variadic, kind }
}
