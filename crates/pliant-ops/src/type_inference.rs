//! [`InferCtx`]: the context of type inference for a call, with helpers for error messages. Also the
//! checks that type rules share, such as that the data types of two operands must be equal.

use pliant_ir::op::{InferError, NULL_VALUE, Op};
use pliant_ir::print::type_text;
use pliant_ir::relax::{Expr, ExprData, Function, TensorShape, Type, TypeData, Var};
use pliant_ir::{Attrs, DType, Sym};

use crate::op_declaration::{OpDecl, parse_operand};

/// How much type rules derive from what they know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Dims that must be equal are assumed to be equal, and the values of shape variables are used.
    #[default]
    Full,
    /// As in TVM: a result whose dims depend on unproved equalities, on the values of shape variables or on an unknown data type
    /// has unknown dims or an unknown data type. See [`TvmPrecision`](crate::tvm_precision::TvmPrecision).
    Tvm,
}

/// The context of type inference for one call of an operator.
pub struct InferCtx<'a> {
    /// The function that contains the call.
    pub func: &'a mut Function,
    /// The declaration of the called operator.
    pub decl: &'a OpDecl,
    /// The operands of the call.
    pub args: &'a [Expr],
    /// The attributes of the call, without defaults.
    pub attrs: &'a Attrs,
    /// The result types that the call states explicitly.
    pub ty_args: &'a [Type],
    /// How much the type rule derives from what it knows.
    pub precision: Precision,
    /// Whether the type rule has assumed that two dims of the result are equal, or broadcast together, without a proof.
    pub assumed_dims: bool,
}

/// The known properties of a tensor operand.
#[derive(Clone, Debug)]
pub struct TensorTy {
    /// The shape as the type of the operand states it.
    pub shape: TensorShape,
    /// The dims of the tensor; `None` if one of them is unknown.
    pub dims: Option<Vec<Sym>>,
    /// The number of dims; `None` if it is unknown.
    pub ndim: Option<usize>,
    /// The element type; `None` if it is unknown.
    pub dtype: Option<DType>,
    /// Whether the operand is a scalar value rather than a tensor of rank 0.
    pub scalar: bool,
}

/// The known properties of a list of sizes.
#[derive(Clone, Debug)]
pub struct SizesTy {
    /// The sizes in the list; `None` if one of them is unknown.
    pub dims: Option<Vec<Sym>>,
    /// The number of sizes in the list; `None` if it is unknown.
    pub ndim: Option<usize>,
}

impl<'a> InferCtx<'a> {
    /// Creates the context of a call, with full precision.
    pub fn new(
        func: &'a mut Function,
        decl: &'a OpDecl,
        args: &'a [Expr],
        attrs: &'a Attrs,
        ty_args: &'a [Type],
    ) -> Self {
        let precision = Precision::Full;
        InferCtx { func, decl, args, attrs, ty_args, precision, assumed_dims: false }
    }
}

impl InferCtx<'_> {
    /// Creates an error whose message names the operator.
    pub fn error(&self, message: impl AsRef<str>) -> InferError {
        InferError::new(format!("{}: {}", self.op(), message.as_ref()))
    }

    /// The called operator.
    pub fn op(&self) -> Op {
        Op::new(self.decl.name)
    }

    /// The keyword of operand `i`, such as `x`, for messages.
    pub fn operand_name(&self, i: usize) -> String {
        let last = self.decl.operands.len().saturating_sub(1);
        match self.decl.operands.get(i.min(last)).map(|s| parse_operand(s)) {
            Some(spec) if i > last && !spec.variadic => {
                self.decl.symbolic.unwrap_or(spec.name).to_string()
            }
            Some(spec) if spec.variadic => format!("{}[{}]", spec.name, i - last),
            Some(spec) => spec.name.to_string(),
            None => format!("operand {i}"),
        }
    }

    /// Checks the number of operands against the declaration.
    ///
    /// # Errors
    /// If an operand is missing, or there are too many.
    pub fn check_arity(&self) -> Result<(), InferError> {
        let specs: Vec<_> = self.decl.operands.iter().map(|s| parse_operand(s)).collect();
        let required = specs.iter().filter(|s| !s.optional).count();
        let max = self.decl.signature().max_operands().unwrap_or(usize::MAX);
        let count = self.args.len();
        if count < required {
            return Err(self.error(format!(
                "operand {operand} is missing",
                operand = self.operand_name(count)
            )));
        }
        if count > max {
            return Err(self.error(format!(
                "the operator takes at most {max} operands, but {count} were given"
            )));
        }
        Ok(())
    }

    // ---- operands ----

    /// The type of operand `i`.
    pub fn operand_type(&self, i: usize) -> &TypeData {
        self.func.ty(self.args[i])
    }

    /// Whether operand `i` is present. An operand `R.null_value()` counts as absent.
    pub fn has_operand(&self, i: usize) -> bool {
        i < self.args.len() && !is_null(self.func, self.args[i])
    }

    /// Operand `i` as a tensor. A scalar is a tensor of rank 0. An operand of unknown type is a tensor without known properties.
    ///
    /// # Errors
    /// If the operand is neither a tensor nor a scalar.
    pub fn tensor(&self, i: usize) -> Result<TensorTy, InferError> {
        let ty = self.func.expr_ty(self.args[i]);
        let what = match self.func.expr(self.args[i]) {
            ExprData::Str(_) => "a string",
            ExprData::DType(_) => "a data type",
            _ => return self.tensor_ty(ty, || self.operand_name(i)),
        };
        Err(self.error(format!(
            "{operand} must be a tensor, but is {what}",
            operand = self.operand_name(i)
        )))
    }

    /// The known properties of a tensor or scalar type. `name` is the name of the operand for
    /// messages.
    ///
    /// # Errors
    /// If the type is neither a tensor nor a scalar type.
    pub fn tensor_ty(
        &self,
        ty: Type,
        name: impl FnOnce() -> String,
    ) -> Result<TensorTy, InferError> {
        let unknown = TensorTy {
            shape: TensorShape::Unknown,
            dims: None,
            ndim: None,
            dtype: None,
            scalar: false,
        };
        match self.func.types.get(ty) {
            TypeData::Tensor { shape, dtype } => {
                let dims = match shape {
                    TensorShape::Dims(d) => Some(d.to_vec()),
                    TensorShape::Var(v) if self.precision == Precision::Full => {
                        self.func.var_ty(*v).dims().map(<[Sym]>::to_vec)
                    }
                    _ => None,
                };
                let ndim = self.func.rank_of(ty).map(|n| n as usize);
                // A rank of 0 determines the dims.
                let dims = dims.or_else(|| (ndim == Some(0)).then(Vec::new));
                Ok(TensorTy { shape: shape.clone(), dims, ndim, dtype: *dtype, scalar: false })
            }
            TypeData::Prim { dtype, .. } => Ok(TensorTy {
                shape: TensorShape::Dims(Box::default()),
                dims: Some(Vec::new()),
                ndim: Some(0),
                dtype: Some(*dtype),
                scalar: true,
            }),
            TypeData::Any => Ok(unknown),
            _ => Err(self.error(format!(
                "{operand} must be a tensor, but is {ty_text}",
                operand = name(),
                ty_text = self.text(ty)
            ))),
        }
    }

    /// Operand `i` as a tensor whose shape variable, if it has one, is replaced by the sizes in its type, at every precision.
    ///
    /// # Errors
    /// If the operand is neither a tensor nor a scalar.
    pub fn tensor_with_known_dims(&mut self, i: usize) -> Result<TensorTy, InferError> {
        let precision = std::mem::take(&mut self.precision);
        let tensor = self.tensor(i);
        self.precision = precision;
        tensor
    }

    /// The fields of operand `i`, a tuple expression or a variable of tuple type, as tensors. `None` if their number is unknown.
    ///
    /// # Errors
    /// If the operand is not a tuple of tensors.
    pub fn tensors(&self, i: usize) -> Result<Option<Vec<TensorTy>>, InferError> {
        match self.operand_type(i) {
            TypeData::Any => Ok(None),
            TypeData::Tuple(fields) => {
                let fields = fields.clone();
                let field = |(k, &ty): (usize, &Type)| {
                    self.tensor_ty(ty, || format!("{}[{k}]", self.operand_name(i)))
                };
                fields.iter().enumerate().map(field).collect::<Result<_, _>>().map(Some)
            }
            _ => {
                let ty = self.text(self.func.expr_ty(self.args[i]));
                Err(self.error(format!(
                    "{operand} must be a tuple of tensors, but is {ty}",
                    operand = self.operand_name(i)
                )))
            }
        }
    }

    /// Operand `i` as a list of sizes: a shape, a tuple of integer scalars, or one integer scalar.
    ///
    /// # Errors
    /// If the operand has another type.
    pub fn sizes(&self, i: usize) -> Result<SizesTy, InferError> {
        let known = |dims: Vec<Sym>| SizesTy { ndim: Some(dims.len()), dims: Some(dims) };
        let ty = self.func.expr_ty(self.args[i]);
        match self.func.types.get(ty) {
            TypeData::Shape { dims, ndim } => Ok(SizesTy {
                dims: dims
                    .as_ref()
                    .filter(|_| self.opaque_shape_var(i).is_none())
                    .map(|d| d.to_vec()),
                ndim: ndim.map(|n| n as usize),
            }),
            TypeData::Prim { value: Some(v), dtype } if dtype.is_integer() => Ok(known(vec![*v])),
            TypeData::Prim { value: None, dtype } if dtype.is_integer() => {
                Ok(SizesTy { dims: None, ndim: Some(1) })
            }
            TypeData::Any => Ok(SizesTy { dims: None, ndim: None }),
            TypeData::Tuple(fields) => {
                let value = |&t: &Type| match self.func.types.get(t) {
                    TypeData::Prim { value, dtype } if dtype.is_integer() => Some(*value),
                    _ => None,
                };
                match fields.iter().map(value).collect::<Option<Vec<Option<Sym>>>>() {
                    Some(values) => {
                        Ok(SizesTy { ndim: Some(values.len()), dims: values.into_iter().collect() })
                    }
                    None => Err(self.error(format!(
                        "{operand} must be a shape or integers, but is {ty_text}",
                        operand = self.operand_name(i),
                        ty_text = self.text(ty)
                    ))),
                }
            }
            _ => Err(self.error(format!(
                "{operand} must be a shape or integers, but is {ty_text}",
                operand = self.operand_name(i),
                ty_text = self.text(ty)
            ))),
        }
    }

    /// Operand `i` if it is a variable of shape type whose value is not used: at TVM's precision, the variable itself is the shape
    /// of the result.
    pub fn opaque_shape_var(&self, i: usize) -> Option<Var> {
        match *self.func.expr(self.args[i]) {
            ExprData::Var(v)
                if self.precision == Precision::Tvm
                    && matches!(self.operand_type(i), TypeData::Shape { .. }) =>
            {
                Some(v)
            }
            _ => None,
        }
    }

    /// The type of a tensor whose shape is operand `i`, with the sizes `sizes`.
    pub fn tensor_type_of_sizes(&mut self, i: usize, sizes: SizesTy, dtype: Option<DType>) -> Type {
        match self.opaque_shape_var(i) {
            Some(v) => self.func.intern(TypeData::Tensor { shape: TensorShape::Var(v), dtype }),
            None => self.tensor_type(sizes.dims, sizes.ndim, dtype),
        }
    }

    /// Records that the type rule assumes that the dims `a` and `b` are equal.
    pub fn assume_equal(&mut self, a: Sym, b: Sym) {
        if !self.assumed_dims && crate::size_proofs::equal(self.func, a, b) != Some(true) {
            self.assumed_dims = true;
        }
    }

    /// The data type of a result that has the data type of several operands, some of which may be unknown. `None` if all of them,
    /// or at TVM's precision one of them, are unknown.
    pub fn joined_dtype(&self, dtypes: impl Iterator<Item = Option<DType>>) -> Option<DType> {
        let dtypes: Vec<_> = dtypes.collect();
        if self.precision == Precision::Tvm && dtypes.contains(&None) {
            return None;
        }
        dtypes.into_iter().flatten().next()
    }

    /// Operand `i` as the shape of a result: a shape, a tuple of integer scalars, or one integer scalar. Rejects negative sizes.
    ///
    /// # Errors
    /// If a size is provably negative.
    pub fn result_sizes(&self, i: usize) -> Result<SizesTy, InferError> {
        let sizes = self.sizes(i)?;
        let known = sizes.dims.iter().flatten().filter_map(|&d| self.func.syms.as_int(d));
        match known.into_iter().find(|&v| v < 0) {
            Some(v) => {
                let name = self.operand_name(i);
                Err(self.error(format!("the size {v} in {name} is negative")))
            }
            None => Ok(sizes),
        }
    }

    /// The value of operand `i`, an `R.dtype`.
    ///
    /// # Errors
    /// If the operand is not an `R.dtype`.
    pub fn dtype_operand(&self, i: usize) -> Result<DType, InferError> {
        match self.func.expr(self.args[i]) {
            ExprData::DType(d) => Ok(*d),
            _ => Err(self.error(format!(
                "{operand} must be a data type such as R.dtype(\"float32\")",
                operand = self.operand_name(i)
            ))),
        }
    }

    // ---- results ----

    /// Creates a tensor type: with `dims` if they are known, else with the rank if it is known,
    /// else with an unknown shape.
    pub fn tensor_type(
        &mut self,
        dims: Option<Vec<Sym>>,
        ndim: Option<usize>,
        dtype: Option<DType>,
    ) -> Type {
        let shape = match (dims, ndim) {
            (Some(dims), _) => TensorShape::Dims(dims.into()),
            (None, Some(n)) => TensorShape::Rank(n as u32),
            (None, None) => TensorShape::Unknown,
        };
        self.func.intern(TypeData::Tensor { shape, dtype })
    }

    /// A tensor type with the same shape as an operand.
    pub fn tensor_type_like(&mut self, t: &TensorTy, dtype: Option<DType>) -> Type {
        self.func.intern(TypeData::Tensor { shape: t.shape.clone(), dtype })
    }

    /// The type of the empty tuple.
    pub fn unit_type(&mut self) -> Type {
        self.func.intern(TypeData::unit())
    }

    /// The common element type of two operands. If the element type of only one operand is known,
    /// returns this type. A scalar gets the element type of a tensor.
    ///
    /// # Errors
    /// If the types differ.
    pub fn same_dtype(&self, i: usize, j: usize) -> Result<Option<DType>, InferError> {
        let (a, b) = (self.tensor(i)?, self.tensor(j)?);
        match (a.dtype, b.dtype) {
            (Some(x), Some(y)) if x != y => match (a.scalar, b.scalar) {
                (true, false) if may_adopt(x, y) => Ok(Some(y)),
                (false, true) if may_adopt(y, x) => Ok(Some(x)),
                _ => {
                    let (first, second) = (self.operand_name(i), self.operand_name(j));
                    Err(self
                        .error(format!(
                            "{first} is {x}, but {second} is {y}; their data types must be equal"
                        ))
                        .with_help(format!(
                            "convert one of the two operands, for example {second}: R.astype({second}, dtype=\"{x}\")"
                        )))
                }
            },
            // A scalar adopts the type of a tensor, even if that is unknown.
            (None, Some(_)) if b.scalar => Ok(None),
            (Some(_), None) if a.scalar => Ok(None),
            (x, y) => Ok(self.joined_dtype([x, y].into_iter())),
        }
    }

    // ---- text ----

    /// Formats a symbolic size for messages.
    pub fn dim_text(&self, dim: Sym) -> String {
        self.func.syms.display(dim).to_string()
    }

    /// Formats a type for messages.
    pub fn text(&self, ty: Type) -> String {
        type_text(self.func, ty)
    }

    /// Formats the type of operand `i`.
    pub fn operand_type_text(&self, i: usize) -> String {
        self.text(self.func.expr_ty(self.args[i]))
    }
}

/// Whether a scalar of type `scalar` may be converted implicitly to the element type `tensor`.
fn may_adopt(scalar: DType, tensor: DType) -> bool {
    tensor.is_float() || (scalar.is_integer() && tensor.is_integer()) || scalar.is_bool()
}

/// Whether an operand is a call of `R.null_value()`.
pub(crate) fn is_null(func: &Function, e: Expr) -> bool {
    use pliant_ir::relax::Callee;
    matches!(func.expr(e), ExprData::Call { callee: Callee::Op(NULL_VALUE), .. })
}
