//! Lowers calls of operators to calls of loop functions or packed functions.
//!
//! The pass `LegalizeOps` (`pliant-opt/src/lower/legalize_ops.rs`) calls [`legalize_with`], which calls `to_tir` for operators with
//! a tensor expression. `to_tir` creates the loop function:
//!
//! - for a library operator, from the tensor expression in its declaration (`te_form`, then `tir_call_assuming`);
//! - for a user-defined operator, by `UserOp::legalize` (`user_defined_ops.rs`), which calls the user's function and then
//!   `tir_call`.
//!
//! `te_form`, `tir_call_assuming` and `tir_call` are in `legalize/lowered_forms.rs`. The type of the call has been inferred before,
//! by `Registry::infer` (`op_registry.rs`).

use std::fmt;
use std::sync::Arc;

use pliant_ir::op::{InferError, Op};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, Type, TypeData};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{AttrValue, Attrs, DType, Sym};

use crate::op_declaration::{ConstantSizes, Legalize, OpDecl};
use crate::op_registry::{RegistryEntry, registry};
use crate::size_proofs;
use crate::te::{self, AssumedDims, TeError, VarMap};
use crate::type_inference::InferCtx;

mod lowered_forms;

pub(crate) use lowered_forms::{TeForm, te_form, tir_call, tir_call_assuming};
use lowered_forms::{legalize_packed, legalize_view};

/// The form to which a call was lowered.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every call becomes the large variant, and values are short-lived"
)]
#[derive(Clone, Debug)]
pub enum Legalized {
    /// A `call_tir` of a new loop function.
    Tir(TirCall),
    /// `relax.reshape(input, shape)` with the type of the call: a view, which the VM creates without copying.
    Reshape {
        /// The tensor of which the result is a view.
        input: Expr,
        /// The dims of the result: a shape value.
        shape: Expr,
    },
    /// A call of a packed function with these operands. The type of its result is the result type
    /// of the lowered call.
    Packed {
        /// The name by which the packed function is registered.
        name: &'static str,
        /// The operands. The caller must bind calls and tuple fields among them to variables.
        args: Vec<Expr>,
    },
}

/// A loop function, and the operands of its `call_tir`.
#[derive(Clone, Debug)]
pub struct TirCall {
    /// The function; its parameters are the inputs, the outputs and the sizes.
    pub func: PrimFunc,
    /// The preferred name of the loop function in the module.
    pub name: Arc<str>,
    /// The input tensors. The caller must bind calls and tuple fields among them to variables.
    pub inputs: Vec<Expr>,
    /// The sizes that the call passes to the loop function after the outputs.
    pub tir_vars: Vec<Sym>,
    /// The types of the tensors that the loop function writes.
    pub out_tys: Vec<Type>,
    /// Whether the call returns a tuple even if there is only one output.
    pub tuple: bool,
}

/// The reason why a call cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalizeError {
    /// The reason why the call cannot be lowered.
    pub message: String,
    /// Whether the cause is an unknown shape or data type. If so, the call can be lowered after an
    /// `R.match_cast` that states the shape or data type.
    pub unknown: bool,
}

impl LegalizeError {
    /// An error that is not caused by an unknown shape or data type.
    pub fn new(message: impl Into<String>) -> Self {
        LegalizeError { message: message.into(), unknown: false }
    }

    /// An error caused by an unknown shape or data type.
    pub fn unknown(message: impl Into<String>) -> Self {
        LegalizeError { message: message.into(), unknown: true }
    }
}

impl fmt::Display for LegalizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.unknown {
            f.write_str("; state what is unknown with R.match_cast, which checks it at run time")?;
        }
        Ok(())
    }
}

impl std::error::Error for LegalizeError {}

impl From<InferError> for LegalizeError {
    fn from(e: InferError) -> Self {
        LegalizeError::new(e.message)
    }
}

impl From<TeError> for LegalizeError {
    fn from(e: TeError) -> Self {
        LegalizeError::new(e.0)
    }
}

/// A call of an operator that is being lowered, with its context.
pub struct LegalizeCtx<'a> {
    /// The function that contains the call.
    pub func: &'a mut Function,
    /// The declaration of the called operator.
    pub decl: &'a OpDecl,
    /// The operands of the call.
    pub args: &'a [Expr],
    /// The attributes of the call, without defaults.
    pub attrs: &'a Attrs,
    /// The result type of the call.
    pub ty: Type,
    /// The mapping between symbols of the calling function and size variables of the tensor
    /// expressions.
    pub vars: VarMap,
    /// Whether non-constant indices are assumed to be in range, so that they are not checked.
    pub trust_indices: bool,
    /// The name of the loop function; `None` for the name of the operator.
    pub name_hint: Option<&'static str>,
    /// For each operand, the tensor that represents it, if the call is lowered over tensors that exist already, as [`crate::topi`]
    /// does. `None` if each operand becomes a new placeholder.
    pub(crate) existing_tensors: Option<&'a [(Expr, te::Tensor)]>,
    inputs: Vec<(te::Tensor, Expr)>,
    assumed: AssumedDims,
}

/// An operand as a tensor expression.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor operand.
    Tensor(te::Tensor),
    /// A scalar: a constant of rank 0 or a scalar value.
    Scalar(te::Expr),
}

impl Value {
    /// The dims of the operand; empty for a scalar.
    pub fn shape(&self) -> &[te::Expr] {
        match self {
            Value::Tensor(t) => t.shape(),
            Value::Scalar(_) => &[],
        }
    }

    /// The element type of the operand.
    pub fn dtype(&self) -> DType {
        match self {
            Value::Tensor(t) => t.dtype(),
            Value::Scalar(e) => e.ty().dtype,
        }
    }

    /// The element of the operand at `indices`. A scalar is returned as it is.
    pub fn at(&self, indices: &[te::Expr]) -> te::Expr {
        match self {
            Value::Tensor(t) => t.at(indices),
            Value::Scalar(e) => e.clone(),
        }
    }
}

impl<'a> LegalizeCtx<'a> {
    /// Creates the context for lowering a call of type `ty`. The operands become placeholders, and
    /// non-constant indices are checked at run time.
    pub(crate) fn new(
        func: &'a mut Function,
        decl: &'a OpDecl,
        args: &'a [Expr],
        attrs: &'a Attrs,
        ty: Type,
    ) -> Self {
        let (vars, inputs) = (VarMap::new(), Vec::new());
        let assumed = AssumedDims::default();
        LegalizeCtx {
            func,
            decl,
            args,
            attrs,
            ty,
            vars,
            trust_indices: false,
            name_hint: None,
            existing_tensors: None,
            inputs,
            assumed,
        }
    }

    /// The tensor expressions of another call, with the operands `args` of this call and the result type `ty`. The operands become
    /// placeholders of this call.
    ///
    /// # Errors
    /// The errors of the lowering, or if the operator has no tensor expression.
    pub(crate) fn te_of(
        &mut self,
        decl: &'a OpDecl,
        args: &'a [Expr],
        ty: Type,
    ) -> Result<Vec<te::Tensor>, LegalizeError> {
        let (Legalize::Te(te) | Legalize::View(te)) = decl.legalize else {
            return Err(self.error(format!("{} has no tensor expression", decl.name)));
        };
        let saved = (self.decl, self.args, self.ty, self.trust_indices);
        (self.decl, self.args, self.ty, self.trust_indices) = (decl, args, ty, true);
        let outputs = te(self);
        (self.decl, self.args, self.ty, self.trust_indices) = saved;
        outputs
    }

    /// The placeholder that an operand has become; `None` if the tensor expressions do not read the operand.
    pub(crate) fn placeholder_of(&self, operand: Expr) -> Option<te::Tensor> {
        self.inputs.iter().find(|(_, e)| *e == operand).map(|(t, _)| t.clone())
    }

    /// Returns the context of type inference for the call that is being lowered.
    pub fn infer(&mut self) -> InferCtx<'_> {
        InferCtx::new(self.func, self.decl, self.args, self.attrs, &[])
    }

    /// Creates an error that names the operator.
    pub fn error(&self, message: impl AsRef<str>) -> LegalizeError {
        LegalizeError::new(format!("{}: {}", self.decl.name, message.as_ref()))
    }

    /// Converts a symbolic size to an int64 expression. A condition becomes 0 or 1. Conditional subterms become parameters of the
    /// loop function.
    pub fn size(&mut self, sym: Sym) -> te::Expr {
        te::cast(&self.size_or_condition(sym), te::Ty::I64)
    }

    /// Converts a symbolic size to an int64 expression, or a condition on sizes to a bool expression. Conditional subterms become
    /// parameters of the loop function.
    fn size_or_condition(&mut self, sym: Sym) -> te::Expr {
        if self.existing_tensors.is_none() {
            self.vars.name_conditionals(&self.func.syms, sym);
        }
        te::from_sym(&self.func.syms, sym, &mut self.vars)
    }

    /// Converts the dims of a tensor to int64 expressions. Unanalyzable subterms ([`VarMap::name_unanalyzable`]) become parameters
    /// of the loop function.
    pub fn size_list(&mut self, dims: &[Sym]) -> Vec<te::Expr> {
        if self.existing_tensors.is_none() {
            dims.iter().for_each(|&dim| self.vars.name_unanalyzable(&self.func.syms, dim));
        }
        dims.iter().map(|&dim| self.size(dim)).collect()
    }

    /// Converts a condition on symbolic sizes to a run-time check of a loop function.
    pub fn size_check(&mut self, check: crate::shared_operator_rules::SizeCheck) -> te::Check {
        let cond = te::cast(&self.size_or_condition(check.cond), te::Ty::BOOL);
        let values: Vec<te::Expr> = check.values.iter().map(|&value| self.size(value)).collect();
        let cond = te::explain(&cond, &values);
        te::Check { axes: Vec::new(), cond, message: check.message.into() }
    }

    /// Converts a size expression to a symbolic integer. `None` if it is not an integer expression
    /// over size variables.
    pub fn sym(&mut self, e: &te::Expr) -> Option<Sym> {
        te::to_sym(&mut self.func.syms, e, &mut self.vars)
    }

    // ---- operands ----

    /// Whether the call passes operand `i`.
    pub fn has_operand(&self, i: usize) -> bool {
        i < self.args.len() && !crate::type_inference::is_null(self.func, self.args[i])
    }

    /// The dims of operand `i`.
    ///
    /// # Errors
    /// If the dims are unknown.
    pub fn dims(&mut self, i: usize) -> Result<Vec<Sym>, LegalizeError> {
        let ctx = self.infer();
        let t = ctx.tensor(i)?;
        t.dims.ok_or_else(|| {
            let (op, name, ty) = (ctx.op(), ctx.operand_name(i), ctx.operand_type_text(i));
            LegalizeError::unknown(format!(
                "{op}: the shape of {name} must be known, but {name} is {ty}"
            ))
        })
    }

    /// Reads operand `i` as a tensor or scalar. A constant of rank 0 becomes a scalar constant in
    /// the expression.
    ///
    /// # Errors
    /// If the shape or data type of the operand is unknown.
    pub fn value(&mut self, i: usize) -> Result<Value, LegalizeError> {
        let dims = self.dims(i)?;
        self.value_with_dims(i, &dims)
    }

    /// Reads operand `i` as a tensor or scalar. The dims of a tensor are assumed to be `dims`, which the loop function checks at
    /// run time.
    ///
    /// # Errors
    /// If the data type of the operand is unknown.
    pub fn value_with_dims(&mut self, i: usize, dims: &[Sym]) -> Result<Value, LegalizeError> {
        if let Some(scalar) = self.scalar(self.args[i]) {
            return Ok(Value::Scalar(scalar));
        }
        self.tensor_with_dims(i, dims).map(Value::Tensor)
    }

    /// Reads operand `i` as a tensor, even if it is a constant of rank 0.
    ///
    /// # Errors
    /// If the shape or data type of the operand is unknown.
    pub fn tensor(&mut self, i: usize) -> Result<te::Tensor, LegalizeError> {
        let dims = self.dims(i)?;
        self.tensor_with_dims(i, &dims)
    }

    /// Reads operand `i` as a tensor whose dims are assumed to be `dims`. The loop function checks
    /// this at run time.
    ///
    /// # Errors
    /// If the data type of the operand is unknown.
    pub fn tensor_with_dims(
        &mut self,
        i: usize,
        dims: &[Sym],
    ) -> Result<te::Tensor, LegalizeError> {
        let ctx = self.infer();
        let (op, name, t) = (ctx.op(), ctx.operand_name(i), ctx.tensor(i)?);
        if t.scalar {
            let ty = ctx.operand_type_text(i);
            return Err(LegalizeError::new(format!(
                "{op}: {name} is {ty}, a scalar whose value is not known; pass it as a tensor of rank 0"
            )));
        }
        let Some(dtype) = t.dtype else {
            let ty = ctx.operand_type_text(i);
            return Err(LegalizeError::unknown(format!(
                "{op}: the data type of {name} must be known, but {name} is {ty}"
            )));
        };
        Ok(self.input((self.args[i], &name, t.dims.as_deref()), dims, dtype))
    }

    /// Reads the fields of operand `i`, which is a tuple of tensors.
    ///
    /// # Errors
    /// If a shape or data type is unknown.
    pub fn fields(&mut self, i: usize) -> Result<Vec<te::Tensor>, LegalizeError> {
        self.fields_with_dims(i, |_, field_dims| field_dims.to_vec())
    }

    /// Reads the fields of operand `i`, which is a tuple of tensors. The dims of field `k` are assumed to be `assumed(k, d)`, where
    /// `d` are the dims in the type of the field. The loop function checks this at run time.
    ///
    /// # Errors
    /// If a shape or data type is unknown.
    pub fn fields_with_dims(
        &mut self,
        i: usize,
        mut assumed: impl FnMut(usize, &[Sym]) -> Vec<Sym>,
    ) -> Result<Vec<te::Tensor>, LegalizeError> {
        let ctx = self.infer();
        let unknown = |what: &str| LegalizeError::unknown(format!("{}: {what}", ctx.op()));
        let name = ctx.operand_name(i);
        let tys = ctx
            .tensors(i)?
            .ok_or_else(|| unknown(&format!("the number of tensors in {name} must be known")))?;
        let mut known = Vec::with_capacity(tys.len());
        for (k, t) in tys.into_iter().enumerate() {
            match (t.dims, t.dtype) {
                (Some(dims), Some(dtype)) => known.push((assumed(k, &dims), dims, dtype)),
                _ => {
                    return Err(unknown(&format!(
                        "the shape and data type of {name}[{k}] must be known"
                    )));
                }
            }
        }
        let name = ctx.operand_name(i);
        let mut fields = Vec::with_capacity(known.len());
        for (k, (dims, type_dims, dtype)) in known.into_iter().enumerate() {
            let e = match self.func.tuple_fields(self.args[i]) {
                Some(list) => list[k],
                None => self.func.tuple_get_item(self.args[i], k as u32),
            };
            fields.push(self.input((e, &format!("{name}[{k}]"), Some(&type_dims)), &dims, dtype));
        }
        Ok(fields)
    }

    /// Returns the sizes that operand `i`, such as a shape, contains.
    ///
    /// # Errors
    /// If the sizes are unknown.
    pub fn sizes(&mut self, i: usize) -> Result<Vec<Sym>, LegalizeError> {
        let ctx = self.infer();
        let sizes = ctx.sizes(i)?;
        sizes.dims.ok_or_else(|| {
            let (op, name, ty) = (ctx.op(), ctx.operand_name(i), ctx.operand_type_text(i));
            LegalizeError::unknown(format!(
                "{op}: {name} must contain constants or symbolic sizes, but is {ty}"
            ))
        })
    }

    /// Creates a placeholder with the dims `dims` for an input of the loop function. `type_dims`
    /// are the dims in the type of the operand, if known. The loop function checks each of
    /// `type_dims` that is not provably equal to `dims`.
    fn input(
        &mut self,
        (e, name, type_dims): (Expr, &str, Option<&[Sym]>),
        dims: &[Sym],
        dtype: DType,
    ) -> te::Tensor {
        if let Some(tensor) = self.existing_tensor(e, dims) {
            return tensor;
        }
        let shape = self.size_list(dims);
        let t = te::placeholder(shape.clone(), dtype, input_name(self.inputs.len()));
        self.inputs.push((t.clone(), e));
        let Some(type_dims) = type_dims.filter(|known| known.len() == dims.len()) else {
            return t;
        };
        let mut declared = shape;
        for (k, (&type_dim, &expected_dim)) in type_dims.iter().zip(dims).enumerate() {
            if type_dim == expected_dim
                || size_proofs::equal(self.func, type_dim, expected_dim) == Some(true)
            {
                continue;
            }
            let (type_size, expected_size) = (self.size(type_dim), self.size(expected_dim));
            let [type_dim, expected_dim] =
                [type_dim, expected_dim].map(|d| self.infer().dim_text(d));
            let op = self.decl.name;
            let equals = |text: String, e: &te::Expr, value: &str| match e.as_int() {
                Some(_) => text,
                None => format!("{text} = {value}"),
            };
            let (type_dim, expected_dim) =
                (equals(type_dim, &type_size, "{0}"), equals(expected_dim, &expected_size, "{1}"));
            let message = format!("{op}: dim {k} of {name}, {type_dim}, must be {expected_dim}");
            let cond = te::explain(
                &te::eq(&type_size, &expected_size),
                &[type_size.clone(), expected_size],
            );
            self.assumed.checks.push(te::Check { axes: Vec::new(), cond, message: message.into() });
            declared[k] = type_size;
        }
        if declared.iter().zip(t.shape()).any(|(a, b)| !a.same_as(b)) {
            self.assumed.declared.insert(t.clone(), declared);
        }
        t
    }

    /// The value of an operand that is a constant of rank 0 or a scalar expression. `None` for
    /// other operands.
    pub(crate) fn scalar(&mut self, e: Expr) -> Option<te::Expr> {
        match self.func.expr(e) {
            ExprData::Int(value, dtype) => {
                let (value, dtype) = (*value, *dtype);
                Some(te::cast(&self.size(value), dtype))
            }
            ExprData::Float(bits, dtype) => Some(te::const_of(f64::from_bits(*bits), *dtype)),
            ExprData::Constant(c) => {
                let t = self.func.const_tensor(*c);
                if t.ndim() != 0 {
                    return None;
                }
                if t.dtype().is_float() {
                    Some(te::const_of(*t.to_f64_vec().ok()?.first()?, t.dtype()))
                } else {
                    Some(te::int_of(*t.to_i64_vec().ok()?.first()?, t.dtype()))
                }
            }
            ExprData::Var(v) => match *self.func.var_ty(*v) {
                TypeData::Prim { value: Some(value), dtype } => {
                    Some(te::cast(&self.size(value), dtype))
                }
                _ => None,
            },
            _ => None,
        }
    }

    // ---- results and attributes ----

    /// The types of the outputs of the call: the fields of a tuple type, or the only type.
    pub fn out_tys(&self) -> Vec<Type> {
        match self.func.types.get(self.ty) {
            TypeData::Tuple(fields) => fields.to_vec(),
            _ => vec![self.ty],
        }
    }

    /// The dims of output `k`.
    ///
    /// # Errors
    /// If the dims are unknown.
    pub fn out_dims(&mut self, k: usize) -> Result<Vec<Sym>, LegalizeError> {
        let dims =
            self.out_tys().get(k).and_then(|&t| self.func.types.get(t).dims().map(<[Sym]>::to_vec));
        dims.ok_or_else(|| {
            let unknown =
                (0..self.args.len()).find_map(|i| self.dims(i).err().filter(|e| e.unknown));
            unknown.unwrap_or_else(|| {
                let op = self.decl.name;
                LegalizeError::unknown(format!(
                    "{op}: the shape of the result cannot be inferred; declare the shapes of the operands with R.match_cast"
                ))
            })
        })
    }

    /// The dims of output `k` as tensor expressions.
    ///
    /// # Errors
    /// If the dims are unknown.
    pub fn out_shape(&mut self, k: usize) -> Result<Vec<te::Expr>, LegalizeError> {
        let dims = self.out_dims(k)?;
        Ok(self.size_list(&dims))
    }

    /// The element type of output `k`.
    ///
    /// # Errors
    /// If the element type is unknown.
    pub fn out_dtype(&self, k: usize) -> Result<DType, LegalizeError> {
        let dtype = self.out_tys().get(k).and_then(|&t| self.func.types.get(t).dtype());
        let name = self.decl.name;
        dtype.ok_or_else(|| {
            LegalizeError::unknown(format!(
                "{name}: the data type of the result cannot be inferred; declare the types of the operands with R.match_cast"
            ))
        })
    }

    /// The value that the lowered call states for the attribute `key`, or the declared default of the attribute.
    pub fn attr(&self, key: &str) -> AttrValue {
        crate::call_attributes::attr(self.decl, self.attrs, key)
    }
}

/// The name of the i-th input: `A`, `B`, ..., `Z`, `A1`, and so on.
pub(crate) fn input_name(i: usize) -> String {
    let letter = char::from(b'A' + (i % 26) as u8);
    if i < 26 { letter.to_string() } else { format!("{letter}{}", i / 26) }
}

/// Lowers a call of an operator. `None` if the expression is not a call of an operator, or if the
/// call is not lowered at this stage. A `relax.reshape` to a shape expression remains as it is.
///
/// # Errors
/// If a required shape or data type is unknown.
pub fn legalize_call(func: &mut Function, call: Expr) -> Result<Option<Legalized>, LegalizeError> {
    let ExprData::Call { callee: Callee::Op(op), args, attrs, .. } = func.expr(call) else {
        return Ok(None);
    };
    let (op, args, attrs) = (*op, func.list(*args).to_vec(), func.call_attrs(*attrs).clone());
    let ty = func.expr_ty(call);
    legalize(func, op, &args, &attrs, ty)
}

/// Lowers `op(args, attrs)` of type `ty`. `None` if the call is not lowered at this stage.
///
/// # Errors
/// If a required shape or data type is unknown, or the operator is not declared.
pub fn legalize(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
) -> Result<Option<Legalized>, LegalizeError> {
    legalize_with(func, op, args, attrs, ty, false)
}

/// Lowers `op(args, attrs)` of type `ty`. `None` if the call is not lowered at this stage. With `trust_indices`, non-constant
/// indices are not checked, and an index out of range accesses another element of the same tensor.
///
/// # Errors
/// The same errors as [`legalize`].
pub fn legalize_with(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
    trust_indices: bool,
) -> Result<Option<Legalized>, LegalizeError> {
    match registry().entry(op) {
        Some(RegistryEntry::Library { decl, .. }) => match decl.legalize {
            Legalize::Keep => Ok(None),
            Legalize::Packed(name) => legalize_packed(func, decl, name, args, attrs).map(Some),
            Legalize::View(_) => legalize_view(func, decl, args, attrs, ty),
            Legalize::Te(_) => {
                to_tir(func, op, args, attrs, ty, trust_indices).map(|c| c.map(Legalized::Tir))
            }
        },
        _ => legalize_to_tir(func, op, args, attrs, ty).map(|c| c.map(Legalized::Tir)),
    }
}

/// Whether an operator can only be lowered if the shapes of its operands are known.
pub fn needs_shapes(op: Op) -> bool {
    match registry().entry(op) {
        Some(RegistryEntry::Library { decl, .. }) => {
            matches!(decl.legalize, Legalize::Te(_) | Legalize::View(_))
        }
        Some(RegistryEntry::User(_)) => true,
        None => false,
    }
}

/// Whether a call of an operator that the VM can execute as a view only inserts or removes dims of size 1. Lowered to a loop
/// function ([`legalize_to_tir`]), such a call can be fused with its neighbors without divisions.
pub fn changes_only_unit_dims(func: &Function, op: Op, args: &[Expr], ty: Type) -> bool {
    let Some(RegistryEntry::Library { decl, .. }) = registry().entry(op) else { return false };
    let Some(&x) = args.first().filter(|_| matches!(decl.legalize, Legalize::View(_))) else {
        return false;
    };
    let (from, to) = (func.ty(x), func.types.get(ty));
    let same_dtype = from.dtype().is_some() && from.dtype() == to.dtype();
    let dims = from.dims().zip(to.dims()).filter(|_| same_dtype);
    dims.is_some_and(|(from, to)| size_proofs::differ_only_in_unit_dims(func, from, to))
}

/// The sizes that the operator with the given name requires as constants.
pub fn constant_sizes_of(name: &str) -> ConstantSizes {
    match registry().named(name) {
        Some(RegistryEntry::Library { decl, .. }) => decl.constant_sizes,
        _ => ConstantSizes::None,
    }
}

/// Lowers `op(args, attrs)` of type `ty` to a loop function, even if the VM can execute the operator as a view. `None` if the
/// operator has no tensor expression.
///
/// # Errors
/// The same errors as [`legalize`].
pub fn legalize_to_tir(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
) -> Result<Option<TirCall>, LegalizeError> {
    to_tir(func, op, args, attrs, ty, false)
}

fn to_tir(
    func: &mut Function,
    op: Op,
    args: &[Expr],
    attrs: &Attrs,
    ty: Type,
    trust_indices: bool,
) -> Result<Option<TirCall>, LegalizeError> {
    let decl = match registry().entry(op) {
        None => return Err(LegalizeError::new(format!("operator {op} is not declared"))),
        Some(RegistryEntry::User(user)) => return user.legalize(func, args, attrs, ty).map(Some),
        Some(RegistryEntry::Library { decl, .. }) => *decl,
    };
    let Some(form) = te_form(func, decl, (args, attrs), ty, trust_indices)? else {
        return Ok(None);
    };
    let TeForm { name, inputs, outputs, assumed, vars } = form;
    tir_call_assuming(func, name, (&inputs, &outputs, &assumed), &vars, ty).map(Some)
}
