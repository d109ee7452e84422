//! Operators, and the interface to the operator library.
//!
//! The IR treats operators as data: a call refers to an [`Op`]. The semantics of operators (type inference, lowering, purity) are
//! defined in the operator library, which implements [`OpRegistry`] for the builder, the verifier and the parser (`Registry` in
//! `pliant-ops/src/op_registry.rs`).
//!
//! [`OpRegistry::infer`] runs the type rule of an operator. Its callers are
//! - `FunctionBuilder::call_op` (`relax/builder.rs`), for each call that the parser, the ONNX import or a pass creates with the
//!   builder, and `relax/kernel_call.rs` for calls of library kernels;
//! - passes that create calls in an existing function, such as `ChannelsLast`, offload rules and pattern rewrites;
//! - passes that infer types again, by `Reinfer` (`pliant-opt/src/common/repeat_type_inference.rs`);
//! - the reference interpreter, for the actual types of the operands (`pliant-interp/src/graph_functions/operator_calls.rs`).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use pliant_tensor::DType;

use crate::attr_values::{AttrValue, Attrs};
use crate::relax::{Expr, Function, Type};

/// An operator. Its id is a hash of its full name (`relax.add`), so any crate can define an
/// operator as a constant. A test checks that the operators of the library have different ids, and
/// the registry rejects a user operator whose id is taken. Names have static lifetime: the names of
/// library operators are constants, and the name of a user operator is leaked once on registration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Op {
    id: u64,
    name: &'static str,
}

impl Op {
    /// Creates the operator with the given full name.
    pub const fn new(name: &'static str) -> Op {
        Op { id: op_id(name), name }
    }

    /// The id of the operator: a hash of its full name ([`op_id`]).
    pub const fn id(self) -> u64 {
        self.id
    }

    /// The full name of the operator.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The name without its first component, such as `add` for `relax.add`.
    pub fn short_name(self) -> &'static str {
        self.name.strip_prefix("relax.").unwrap_or(self.name)
    }

    /// Whether calls of the operator may write to their operands although the type system treats the calls as pure.
    pub fn writes_operands(self) -> bool {
        matches!(self, CALL_TIR_INPLACE | CALL_INPLACE_PACKED)
    }
}

/// Computes the id of the operator with the given full name: its FNV-1a hash.
pub const fn op_id(name: &str) -> u64 {
    let (bytes, mut hash, mut i) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325u64, 0);
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}

impl Hash for Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.id);
    }
}

impl PartialOrd for Op {
    fn partial_cmp(&self, other: &Op) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Op {
    /// Orders operators by their full names.
    fn cmp(&self, other: &Op) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// `relax.call_tir(func, (args...), out_sinfo, tir_vars)`: destination-passing call of a loop function.
pub const CALL_TIR: Op = Op::new("relax.call_tir");
/// `relax.call_inplace_packed(func, args..., inplace_indices)`: call of a packed function that may overwrite operands and return
/// them as its results.
pub const CALL_INPLACE_PACKED: Op = Op::new("relax.call_inplace_packed");
/// `relax.call_tir_inplace(func, (args...), inplace_indices, out_sinfo)`: destination-passing call of a loop function whose outputs
/// may overwrite inputs.
pub const CALL_TIR_INPLACE: Op = Op::new("relax.call_tir_inplace");
/// `relax.call_tir_with_grad(func, (args...), out_sinfo, te_grad_name)`: a `call_tir` whose gradient is registered under a name.
pub const CALL_TIR_WITH_GRAD: Op = Op::new("relax.call_tir_with_grad");
/// The operators of destination-passing calls, which state the types of their outputs.
pub const DESTINATION_PASSING: [Op; 4] =
    [CALL_TIR, CALL_TIR_INPLACE, CALL_TIR_WITH_GRAD, CALL_DPS_PACKED];
/// `relax.call_dps_packed(func, (args...), out_sinfo)`: destination-passing call of a packed function.
pub const CALL_DPS_PACKED: Op = Op::new("relax.call_dps_packed");
/// `relax.call_kernel("name", operand=tensor, ..., attribute=value, ..., out_sinfo)`: destination-passing call of a library kernel.
/// [`crate::relax::kernel_call`] describes its arguments and attributes.
pub const CALL_KERNEL: Op = Op::new("relax.call_kernel");
/// `relax.call_pure_packed(func, args...)`: call of a packed function. The caller promises that it is pure.
pub const CALL_PURE_PACKED: Op = Op::new("relax.call_pure_packed");
/// `relax.call_builtin_with_ctx(func, (args...))`: call of a VM builtin that receives the VM's
/// context as an additional argument.
pub const CALL_BUILTIN_WITH_CTX: Op = Op::new("relax.call_builtin_with_ctx");
/// `relax.while_loop(cond, body, state...)`: executes `state = body(state)` while `cond(state)` is
/// true, and returns the final state. [`crate::relax::while_loop`] specifies its semantics and
/// typing rule.
pub const WHILE_LOOP: Op = Op::new("relax.while_loop");

/// `R.null_value()`: the placeholder for an absent optional operand.
pub const NULL_VALUE: Op = Op::new("relax.null_value");

/// The signature of an operator: its operands, then its attributes with their defaults.
#[derive(Clone, Debug, Default)]
pub struct OpSignature {
    /// The operands, in the order in which calls pass them.
    pub operands: Vec<OperandSpec>,
    /// The names and defaults of the attributes, in order; `None` marks a required attribute.
    pub attrs: Vec<(&'static str, Option<AttrValue>)>,
    /// The name of the attribute that may contain symbols, if any. If its value contains symbols, a call passes the value as an
    /// additional operand (a shape or an integer), and the attribute is `None`.
    pub symbolic: Option<&'static str>,
    /// The names and lengths of the attributes that are lists. A single number is repeated to the declared length, and a list of
    /// half that length is repeated once.
    pub lists: &'static [(&'static str, usize)],
}

impl OpSignature {
    /// The maximum number of operands of a call; `None` if unlimited.
    pub fn max_operands(&self) -> Option<usize> {
        let variadic = self.operands.iter().any(|o| o.variadic);
        (!variadic).then_some(self.operands.len() + usize::from(self.symbolic.is_some()))
    }

    /// The kind of operand `i` of a call.
    pub fn operand_kind(&self, i: usize) -> OperandKind {
        match self.operands.get(i).or(self.operands.last().filter(|o| o.variadic)) {
            Some(spec) => spec.kind,
            None if self.symbolic.is_some() => OperandKind::Sizes,
            None => OperandKind::Elements,
        }
    }

    /// Returns, for each operand of a call, the dtype to which Python numbers passed for this operand are converted; `None` if a
    /// number stays a scalar.
    ///
    /// Numbers passed for [`OperandKind::Elements`] get the dtype of the first such operand that is a tensor with a known dtype.
    /// If no such operand is a tensor and one of the numbers is a float, they become float32. A number passed for
    /// [`OperandKind::Fill`] gets the dtype `stated`, which the call states for its result.
    pub fn number_dtypes(
        &self,
        args: &[ArgumentForm],
        stated: Option<DType>,
    ) -> Vec<Option<DType>> {
        let elements = |kind: fn(&ArgumentForm) -> bool| {
            let of = move |(i, w): &(usize, &ArgumentForm)| {
                self.operand_kind(*i) == OperandKind::Elements && kind(w)
            };
            args.iter().enumerate().filter(of).map(|(_, w)| *w)
        };
        let tensor_dtype =
            elements(|w| matches!(w, ArgumentForm::Tensor(_))).find_map(|w| match w {
                ArgumentForm::Tensor(dtype) => dtype,
                _ => None,
            });
        let has_tensor = elements(|w| matches!(w, ArgumentForm::Tensor(_))).next().is_some();
        let has_float = elements(|w| *w == ArgumentForm::Float).next().is_some();
        let float_dtype = (has_float && !has_tensor).then_some(DType::Float32);
        (0..args.len())
            .map(|i| match self.operand_kind(i) {
                OperandKind::Elements => tensor_dtype.or(float_dtype),
                OperandKind::Fill => stated.or(tensor_dtype).or(args[i].default_dtype()),
                OperandKind::Bools
                | OperandKind::Indices
                | OperandKind::Sizes
                | OperandKind::Scalars => None,
            })
            .collect()
    }

    /// Converts an attribute value to its normal form: a list of the declared length if [`lists`](Self::lists) contains the
    /// attribute.
    pub fn normalize_attr(&self, key: &str, value: AttrValue) -> AttrValue {
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

    /// Puts attributes in the order of the declaration, adds the defaults, and converts the values to their normal form. Calls that
    /// only differ in the spelling of attributes get equal attributes.
    pub fn complete(&self, attrs: Attrs) -> Attrs {
        let mut attrs = self.in_order(attrs);
        for (key, value) in &mut attrs.0 {
            if self.lists.iter().any(|(name, _)| *name == &**key) {
                *value = self.normalize_attr(key, value.clone());
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

/// The declaration of an operand of an operator.
#[derive(Clone, Debug)]
pub struct OperandSpec {
    /// The name of the operand, which is its keyword in calls.
    pub name: &'static str,
    /// Whether the operand may be omitted. Only trailing operands may be optional.
    pub optional: bool,
    /// Whether the operand accepts all remaining positional arguments.
    pub variadic: bool,
    /// The kind of the operand, which determines how numbers are converted.
    pub kind: OperandKind,
}

/// The kind of an operand, which determines the dtype of a Python number that is passed for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperandKind {
    /// Elements that share a dtype with other operands: a number gets the dtype of an operand that is a tensor.
    #[default]
    Elements,
    /// A value with which the operator fills its result: a number gets the dtype that the call states for the result.
    Fill,
    /// Conditions. A number that is passed for them remains a scalar and does not get the dtype of another operand.
    Bools,
    /// Indices or counts. A number that is passed for them remains a scalar and does not get the dtype of another operand.
    Indices,
    /// Compile-time sizes: a shape or an integer.
    Sizes,
    /// Scalars with independent dtypes: a number remains a scalar.
    Scalars,
}

impl OperandKind {
    /// The operand kind that a keyword of an operator declaration denotes, such as `index` in `indices: index`; `None` for other
    /// words.
    pub fn from_keyword(word: &str) -> Option<OperandKind> {
        Some(match word {
            "fill" => OperandKind::Fill,
            "bool" => OperandKind::Bools,
            "index" => OperandKind::Indices,
            "size" => OperandKind::Sizes,
            "scalar" => OperandKind::Scalars,
            _ => return None,
        })
    }
}

/// The form of an argument of an operator call. It determines how numbers among the arguments are converted to tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentForm {
    /// A tensor of the given dtype. `None` if the dtype is unknown, or if it is unknown whether the value is a tensor.
    Tensor(Option<DType>),
    /// An integer without a stated dtype.
    Int,
    /// A float without a stated dtype.
    Float,
    /// A Boolean without a stated dtype.
    Bool,
    /// An argument that is neither a tensor nor a number, such as a shape or a tuple.
    Other,
}

impl ArgumentForm {
    /// The dtype of a number if no other argument determines it; `None` for arguments that are not numbers.
    fn default_dtype(self) -> Option<DType> {
        match self {
            ArgumentForm::Int => Some(DType::Int64),
            ArgumentForm::Float => Some(DType::Float32),
            ArgumentForm::Bool => Some(DType::Bool),
            ArgumentForm::Tensor(_) | ArgumentForm::Other => None,
        }
    }
}

/// A type inference error. Its message is shown to users; the caller adds the source location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferError {
    /// The description of the problem, which names operands, dims and types.
    pub message: String,
    /// A text that says how to fix the problem; `None` if this is not known.
    pub help: Option<String>,
    /// The attribute whose value alone causes the error, whatever the operands are; `None` for other errors.
    pub attr: Option<Box<str>>,
}

impl InferError {
    /// Creates an error without a help text.
    pub fn new(message: impl Into<String>) -> Self {
        InferError { message: message.into(), help: None, attr: None }
    }

    /// Sets the help text.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Marks the error as caused by the value of attribute `key` alone.
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

/// How an operator relates the dims of its operands to the dims of its results. Passes that permute
/// dims use this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DimTrait {
    /// Unknown relation: passes must not permute the dims of the operands.
    #[default]
    Opaque,
    /// Each element of the result only depends on the operand elements at the same indices, after broadcasting. All operands and
    /// the result can be permuted alike.
    Elementwise,
    /// The dims of operand 0, which may be a tuple, correspond to the dims of the results. The listed attributes contain dim
    /// indices, such as `axis`. All other operands are vectors along one of these dims.
    Named(&'static [&'static str]),
    /// A reduction over the dims that the attribute `axis` lists. With the attribute `keepdims`, the operator behaves like
    /// [`DimTrait::Named`] with `axis`. Otherwise the result does not have these dims.
    Reduced,
    /// The dims of operand 0 correspond to the dims of the results, as for [`DimTrait::Named`]. The operand with this
    /// index lists the dims to which the operator refers.
    NamedByOperand(usize),
    /// The dims of operand 0 correspond to the dims of the results, as for [`DimTrait::Named`]. The attribute with this
    /// name lists two numbers for each dim, such as the padding before and after it.
    Paired(&'static str),
    /// The dims of operand 0 correspond to the dims of the results, as for [`DimTrait::Named`]. The attribute with this
    /// name is the image layout of operand 0, such as `NCHW`. The attribute `out_layout`, if the operator has it, is
    /// the layout of the result.
    Layout(&'static str),
}

/// The interface through which the IR looks up operators in the operator library.
pub trait OpRegistry: Send + Sync {
    /// The operator with the given full name (`relax.add`); `None` if there is none.
    fn lookup(&self, name: &str) -> Option<Op>;

    /// The signature of an operator; `None` if it is unknown.
    fn signature(&self, op: Op) -> Option<&OpSignature>;

    /// The full names of all operators, from which error messages suggest corrections.
    fn names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The attributes of a call in normal form; see [`OpSignature::complete`].
    fn complete(&self, op: Op, attrs: Attrs) -> Attrs {
        match self.signature(op) {
            Some(signature) => signature.complete(attrs),
            None => attrs,
        }
    }

    /// Whether calls of an operator have no side effects.
    fn is_pure(&self, op: Op) -> bool;

    /// Whether the two operands of an operator can be exchanged.
    fn is_commutative(&self, _op: Op) -> bool {
        false
    }

    /// Whether the operator may have several valid result types if operand types are unknown. The inferred type is then only an
    /// example, and known operand types may lead to another one.
    fn infers_example_type(&self, _op: Op) -> bool {
        false
    }

    /// How the operator relates the dims of its operands to the dims of its results.
    fn dim_trait(&self, _op: Op) -> DimTrait {
        DimTrait::Opaque
    }

    /// Infers the result type of the call `op(args, attrs)`. The type is added to the arenas of `func`.
    ///
    /// # Errors
    /// If the operands are incompatible: a rank, dtype or shape is provably wrong.
    fn infer(
        &self,
        func: &mut Function,
        op: Op,
        args: &[Expr],
        attrs: &Attrs,
        ty_args: &[Type],
    ) -> Result<Type, InferError>;
}

/// A registry without operators, for code that only processes the structure of functions.
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
        Err(InferError::new(format!("operator '{op}' is not declared")))
    }
}
