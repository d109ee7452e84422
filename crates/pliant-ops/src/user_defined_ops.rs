//! Operators that the user defines by tensor expressions. A registered operator is a `UserOp` in the registry (`op_registry.rs`).
//! Both its type rule and its lowering call the user's function (`UserOp::outputs`):
//!
//! - Type rule: `FunctionBuilder::call_op` (`pliant-ir/src/relax/builder.rs`) calls `Registry::infer` (`op_registry.rs`), which
//!   calls `UserOp::infer`. The result type consists of the dims and data types of the outputs.
//! - Lowering: the pass `LegalizeOps` calls `legalize_with`, which calls `to_tir` (`legalize.rs`) and then `UserOp::legalize`.
//!   `tir_call` (`legalize/lowered_forms.rs`) makes a loop function of the outputs. From there on, it is compiled and executed
//!   like any other loop function.
//!
//! If the shape or data type of an operand is unknown, `UserOp::infer_by_example` infers the type: it calls the user's function
//! with example operands, and drops the parts of the result type that depend on the examples. If the rank or data type of an
//! operand is unknown, only the number of outputs is left. Such a call cannot be lowered to a loop function: it is compiled at run
//! time (`dynamic_operator_calls.rs`).

use std::fmt;
use std::sync::Arc;

use pliant_ir::op::{InferError, Op, OpSignature};
use pliant_ir::relax::{Expr, ExprData, Function, TensorShape, Type, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Sym};

use crate::legalize::{LegalizeError, TirCall, tir_call};
use crate::op_declaration::parse_operand;
use crate::op_registry::registry;
use crate::te::{self, TeError, VarMap};

/// An operand as it is passed to the user's function.
#[derive(Clone, Debug)]
pub enum TeArg {
    /// A tensor operand, as a placeholder or stage.
    Tensor(te::Tensor),
    /// A scalar operand, as an expression.
    Scalar(te::Expr),
    /// A shape operand, as the expressions for its dims.
    Shape(Vec<te::Expr>),
    /// A tuple of other operands.
    Tuple(Vec<TeArg>),
    /// A string operand.
    Str(Arc<str>),
    /// A data type operand.
    DType(DType),
    /// An optional operand that the call omits.
    None,
}

/// The user's function. It maps operands and attributes to outputs.
pub type UserTe = dyn Fn(&[TeArg], &Attrs) -> Result<Vec<te::Tensor>, TeError> + Send + Sync;

/// The definition of an operator that the user registers.
pub struct UserOpSpec {
    /// The full name. `relax.` is prepended to a name without it.
    pub name: String,
    /// The keywords of the operands. A name that ends in `?` is optional. The last name may begin with `*` and then stands for any
    /// number of operands, such as `*xs`.
    pub operands: Vec<String>,
    /// The attributes and their defaults. `None` marks a required attribute.
    pub attrs: Vec<(String, Option<AttrValue>)>,
    /// The user's function that computes the outputs.
    pub te: Box<UserTe>,
}

/// An operator that the user has defined and registered.
pub(crate) struct UserOp {
    name: &'static str,
    signature: OpSignature,
    te: Box<UserTe>,
}

impl fmt::Debug for UserOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserOp").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Registers an operator that is defined by a tensor expression. Calls have no side effects.
/// Registering a name again replaces the operator.
///
/// # Errors
/// If the name does not consist of words and dots, is the name of a library operator, is a group of
/// existing operators (`a` if there is `a.b`), or has an existing operator as its group (`a.b` if
/// there is `a`).
pub fn register_user_op(spec: UserOpSpec) -> Result<Op, InferError> {
    let full =
        if spec.name.starts_with("relax.") { spec.name } else { format!("relax.{}", spec.name) };
    let word = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !full.split('.').all(word) {
        return Err(InferError::new(format!(
            "{full:?} is not a valid operator name: it must consist of letters, digits, underscores and dots"
        )));
    }
    let name = match registry().named(&full) {
        Some(crate::op_registry::RegistryEntry::Library { .. }) => {
            return Err(InferError::new(format!(
                "an operator of Pliant already has the name {full}; choose another name"
            )));
        }
        Some(crate::op_registry::RegistryEntry::User(op)) => op.name,
        None => {
            registry().check_name_is_free(&full)?;
            leak(full)
        }
    };
    let signature = OpSignature {
        operands: spec.operands.into_iter().map(|s| parse_operand(leak(s))).collect(),
        attrs: spec.attrs.into_iter().map(|(k, v)| (leak(k), v)).collect(),
        ..OpSignature::default()
    };
    Ok(registry().add_user(UserOp { name, signature, te: spec.te }))
}

/// Converts a string to one that is never freed, because the names of operators live as long as the process.
fn leak(s: String) -> &'static str {
    Box::leak(s.into_boxed_str())
}

impl UserOp {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn signature(&self) -> &OpSignature {
        &self.signature
    }

    /// Infers the result type by calling the user's function with placeholders of the operands'
    /// types. If the shape of an operand is not known, the shape of the result is unknown, too. The
    /// number of outputs is then determined by calling the function with example operands.
    pub(crate) fn infer(
        &self,
        func: &mut Function,
        args: &[Expr],
        attrs: &Attrs,
    ) -> Result<Type, InferError> {
        let mut call = TeCall::new(func);
        let outputs = match self.outputs(&mut call, args, attrs) {
            Ok(outputs) => outputs,
            Err(e) if e.unknown => return Ok(self.infer_by_example(func, args, attrs)),
            Err(e) => {
                // The caller that reports a type error adds the name of the operator.
                let without_prefix =
                    e.message.strip_prefix(self.name).and_then(|m| m.strip_prefix(": "));
                return Err(InferError::new(without_prefix.unwrap_or(&e.message)));
            }
        };
        call.out_ty(&outputs).map_err(|e| InferError::new(format!("{}: {e}", self.name)))
    }

    /// Infers the result type if an operand has an unknown rank or data type. The unknown parts are replaced by examples, and the
    /// parts of the result type that depend on them are dropped.
    fn infer_by_example(&self, func: &mut Function, args: &[Expr], attrs: &Attrs) -> Type {
        for rank in EXAMPLE_RANKS {
            let mut call = TeCall::new(func);
            call.example = Some(TypeExample { rank, is_guessed: false });
            let Ok(outputs) = self.outputs(&mut call, args, attrs) else { continue };
            let is_guessed = call.example.is_some_and(|e| e.is_guessed);
            let ty = |t: &te::Tensor| match is_guessed {
                true => TypeData::tensor_unknown(None),
                false => TypeData::Tensor {
                    shape: TensorShape::Rank(t.ndim() as u32),
                    dtype: Some(t.dtype()),
                },
            };
            let tys: Vec<Type> = outputs.iter().map(|t| func.intern(ty(t))).collect();
            return match tys[..] {
                [ty] => ty,
                _ => func.intern(TypeData::Tuple(tys.into())),
            };
        }
        func.intern(TypeData::tensor_unknown(None))
    }

    pub(crate) fn legalize(
        &self,
        func: &mut Function,
        args: &[Expr],
        attrs: &Attrs,
        ty: Type,
    ) -> Result<TirCall, LegalizeError> {
        let mut call = TeCall::new(func);
        let outputs = self.outputs(&mut call, args, attrs)?;
        let name = self.name.rsplit('.').next().unwrap_or(self.name);
        let (inputs, vars) = (call.inputs, call.vars);
        tir_call(func, name, &inputs, &outputs, &vars, ty)
    }

    pub(crate) fn outputs(
        &self,
        call: &mut TeCall<'_>,
        args: &[Expr],
        attrs: &Attrs,
    ) -> Result<Vec<te::Tensor>, LegalizeError> {
        let (op, operands) = (self.name, &self.signature.operands);
        let min_count = operands.iter().take_while(|o| !o.optional).count();
        let any = operands.last().is_some_and(|o| o.variadic);
        if args.len() < min_count || (args.len() > operands.len() && !any) {
            let expected = match (min_count == operands.len(), any) {
                (true, _) => format!("{min_count}"),
                (_, true) => format!("{min_count} or more"),
                _ => format!("{min_count} to {}", operands.len()),
            };
            let message = format!(
                "{op}: the operator takes {expected} operands, but {} were given",
                args.len()
            );
            return Err(LegalizeError::new(message));
        }
        if let Some((key, _)) =
            attrs.0.iter().find(|(key, _)| !self.signature.attrs.iter().any(|(k, _)| **k == **key))
        {
            return Err(LegalizeError::new(format!("{op}: the operator has no attribute {key}")));
        }
        let mut args =
            args.iter().map(|&a| call.arg(a)).collect::<Result<Vec<_>, _>>().map_err(|e| {
                LegalizeError { message: format!("{op}: {}", e.message), unknown: e.unknown }
            })?;
        let named = operands.len() - usize::from(any);
        args.resize(args.len().max(named), TeArg::None);
        let mut all = Attrs::default();
        for (key, default) in &self.signature.attrs {
            match attrs.get(key).or(default.as_ref()) {
                Some(value) => all.set(key, value.clone()),
                None => {
                    return Err(LegalizeError::new(format!("{op}: attribute {key} is missing")));
                }
            }
        }
        match (self.te)(&args, &all) {
            Ok(outputs) if outputs.is_empty() => Err(LegalizeError::new(format!(
                "{op}: the function of the operator returned no output, but at least one is required"
            ))),
            outputs => outputs.map_err(|e| LegalizeError::new(format!("{op}: {e}"))),
        }
    }
}

/// The operands of a call under construction that is computed by a tensor expression. Also contains
/// the mappings from tensors to operands, and from size variables to symbols.
pub struct TeCall<'f> {
    func: &'f mut Function,
    /// The tensors created so far, each with its operand.
    pub inputs: Vec<(te::Tensor, Expr)>,
    /// The mapping between symbols and size variables.
    pub vars: VarMap,
    /// The tensors that represent operands. Other operands become placeholders.
    existing_tensors: &'f [(Expr, te::Tensor)],
    /// The example types that replace unknown types of operands. If it is `None`, an unknown type is an error.
    example: Option<TypeExample>,
}

/// The ranks that are tried for operands of unknown rank. `EXAMPLE_DTYPE` is used for operands of
/// unknown data type.
const EXAMPLE_RANKS: [usize; 5] = [1, 2, 3, 4, 0];
const EXAMPLE_DTYPE: DType = DType::Float32;

/// Example types that replace the unknown types of operands, so that the user's function can be called for type inference.
#[derive(Clone, Copy)]
struct TypeExample {
    /// The rank that is assumed for operands of unknown rank.
    rank: usize,
    /// Whether an example has replaced an unknown rank or data type.
    is_guessed: bool,
}

impl<'f> TeCall<'f> {
    /// Creates a call without operands.
    pub fn new(func: &'f mut Function) -> Self {
        TeCall::with_vars(func, VarMap::new())
    }

    /// Creates a call whose operands are the tensors in `existing_tensors`.
    pub(crate) fn with_existing_tensors(
        func: &'f mut Function,
        vars: VarMap,
        existing_tensors: &'f [(Expr, te::Tensor)],
    ) -> Self {
        TeCall { func, inputs: Vec::new(), vars, existing_tensors, example: None }
    }

    /// Creates a call without operands. The size variables in `vars` already represent symbols of
    /// the function.
    pub fn with_vars(func: &'f mut Function, vars: VarMap) -> Self {
        TeCall { func, inputs: Vec::new(), vars, existing_tensors: &[], example: None }
    }

    /// The function that contains the call.
    pub fn func(&mut self) -> &mut Function {
        self.func
    }

    /// An operand as it is passed to the user's function.
    ///
    /// # Errors
    /// If the shape or data type of the operand is not known, or if the operand is a function.
    pub fn arg(&mut self, e: Expr) -> Result<TeArg, LegalizeError> {
        if crate::type_inference::is_null(self.func, e) {
            return Ok(TeArg::None);
        }
        match self.func.expr(e) {
            ExprData::Str(s) => return Ok(TeArg::Str(self.func.str(*s).clone())),
            ExprData::DType(d) => return Ok(TeArg::DType(*d)),
            ExprData::Float(bits, dtype) => {
                return Ok(TeArg::Scalar(te::const_of(f64::from_bits(*bits), *dtype)));
            }
            ExprData::Tuple(list) => {
                let fields = self.func.list(*list).to_vec();
                return fields
                    .into_iter()
                    .map(|f| self.arg(f))
                    .collect::<Result<_, _>>()
                    .map(TeArg::Tuple);
            }
            _ => {}
        }
        match self.func.ty(e).clone() {
            TypeData::Tensor { .. } => self.tensor(e).map(TeArg::Tensor),
            TypeData::Shape { dims: Some(dims), .. } => {
                Ok(TeArg::Shape(dims.iter().map(|&d| self.size(d)).collect()))
            }
            TypeData::Prim { value: Some(v), dtype } => Ok(TeArg::Scalar(te::cast(
                &te::from_sym(&self.func.syms, v, &mut self.vars),
                dtype,
            ))),
            TypeData::Tuple(fields) => {
                let items: Vec<Expr> =
                    (0..fields.len() as u32).map(|i| self.func.tuple_get_item(e, i)).collect();
                items.into_iter().map(|f| self.arg(f)).collect::<Result<_, _>>().map(TeArg::Tuple)
            }
            _ => {
                let ty = pliant_ir::print::type_text(self.func, self.func.expr_ty(e));
                Err(LegalizeError::unknown(format!(
                    "each operand must be a tensor, a shape with known dims, a scalar with a known \
                     value or a tuple of these, but one is {ty}"
                )))
            }
        }
    }

    /// Converts a symbolic size to an int64 expression; a condition becomes 0 or 1. The parts of
    /// the size that cannot be analyzed become variables, which are passed to the loop function as
    /// arguments.
    pub fn size(&mut self, size: Sym) -> te::Expr {
        if self.existing_tensors.is_empty() {
            self.vars.name_unanalyzable(&self.func.syms, size);
        }
        te::cast(&te::from_sym(&self.func.syms, size, &mut self.vars), te::Ty::I64)
    }

    /// The placeholder for a tensor operand (`te_tensor` in Python).
    ///
    /// # Errors
    /// If the shape or data type of the operand is not known.
    pub fn tensor(&mut self, e: Expr) -> Result<te::Tensor, LegalizeError> {
        if let Some((_, tensor)) = self.existing_tensors.iter().find(|(g, _)| *g == e) {
            return Ok(tensor.clone());
        }
        let ty = self.func.ty(e);
        let dims = match ty {
            TypeData::Tensor { shape: TensorShape::Var(v), .. } => self.func.var_ty(*v).dims(),
            _ => ty.dims(),
        };
        let (dims, dtype) = (dims.map(|d| d.to_vec()), ty.dtype());
        let (Some(dims), Some(dtype)) = (dims, dtype) else {
            if let Some(example) = &mut self.example {
                let rank = self.func.rank_of(self.func.expr_ty(e)).map(|n| n as usize);
                example.is_guessed |= rank.is_none() || dtype.is_none();
                let dims = (0..rank.unwrap_or(example.rank)).map(|i| te::var(format!("d{i}")));
                let shape = dims.map(|v| te::Expr::from(&v)).collect();
                let name = crate::legalize::input_name(self.inputs.len());
                let t = te::placeholder(shape, dtype.unwrap_or(EXAMPLE_DTYPE), name);
                self.inputs.push((t.clone(), e));
                return Ok(t);
            }
            let ty = pliant_ir::print::type_text(self.func, self.func.expr_ty(e));
            return Err(LegalizeError::unknown(format!(
                "each operand must have a known shape and data type, but one is {ty}"
            )));
        };
        let shape = dims.iter().map(|&d| self.size(d)).collect();
        let t = te::placeholder(shape, dtype, crate::legalize::input_name(self.inputs.len()));
        self.inputs.push((t.clone(), e));
        Ok(t)
    }

    /// Returns the tensors, each with its operand, and the mapping between symbols and size
    /// variables.
    pub fn finish(self) -> (Vec<(te::Tensor, Expr)>, VarMap) {
        (self.inputs, self.vars)
    }

    /// The type of the outputs: a tensor type for one output, otherwise a tuple of tensor types.
    ///
    /// # Errors
    /// If a dim is not a symbolic integer.
    pub fn out_ty(&mut self, outputs: &[te::Tensor]) -> Result<Type, TeError> {
        let mut tys = Vec::with_capacity(outputs.len());
        for t in outputs {
            let mut dims = Vec::with_capacity(t.ndim());
            for dim in t.shape() {
                let sym = te::to_sym(&mut self.func.syms, dim, &mut self.vars);
                dims.push(sym.ok_or_else(|| {
                    TeError::new(format!(
                        "output '{}' has the dim {dim}, which is not an integer expression of constants and size variables",
                        t.name()
                    ))
                })?);
            }
            tys.push(self.func.intern(TypeData::tensor(dims, t.dtype())));
        }
        Ok(match tys[..] {
            [ty] => ty,
            _ => self.func.intern(TypeData::Tuple(tys.into())),
        })
    }
}
