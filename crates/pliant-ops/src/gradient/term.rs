//! [`Term`]: a value in a gradient rule. Arithmetic on terms emits operators.

use std::ops::{Add, Div, Mul, Neg, Sub};

use pliant_ir::op::InferError;
use pliant_ir::relax::{Expr, ExprData, TensorShape, TypeData};
use pliant_ir::{AttrValue, Attrs, DType, Sym};

use super::builder::GradientBuilder;
use crate::size_proofs;

/// A value in a gradient rule: an expression, and the builder that emits operators on it.
#[derive(Clone, Copy)]
pub struct Term<'g> {
    builder: &'g GradientBuilder,
    expr: Expr,
}

/// The attributes of a call, from names and values.
pub fn attrs(list: &[(&str, AttrValue)]) -> Attrs {
    Attrs(list.iter().map(|(key, value)| ((*key).into(), value.clone())).collect())
}

/// An attribute value that is a list of axes.
pub fn axis_list(axes: &[usize]) -> AttrValue {
    AttrValue::ints(axes.iter().map(|&a| a as i64))
}

impl<'g> Term<'g> {
    /// Creates the term for an expression.
    pub fn new(builder: &'g GradientBuilder, expr: Expr) -> Self {
        Term { builder, expr }
    }

    /// The builder that emits the operators.
    pub fn builder(self) -> &'g GradientBuilder {
        self.builder
    }

    /// The expression of the term, which may be a call that is not bound yet.
    pub fn expr(self) -> Expr {
        self.expr
    }

    // ---- types ----

    /// The dims, if all are known.
    pub fn dims(self) -> Option<Vec<Sym>> {
        self.builder.read(|f| match f.ty(self.expr) {
            TypeData::Tensor { shape: TensorShape::Var(v), .. } => {
                f.var_ty(*v).dims().map(<[Sym]>::to_vec)
            }
            ty => ty.dims().map(<[Sym]>::to_vec),
        })
    }

    /// The rank, if it is known.
    pub fn rank(self) -> Option<usize> {
        self.builder.read(|f| f.rank_of(f.expr_ty(self.expr)).map(|n| n as usize))
    }

    /// The data type. If it is unknown, an error is recorded.
    pub fn dtype(self) -> DType {
        let dtype = self.builder.read(|f| f.ty(self.expr).dtype());
        dtype.unwrap_or_else(|| {
            self.builder.fail(InferError::new(
                "the gradient needs the data type of all operands; declare it with R.match_cast",
            ));
            DType::Float32
        })
    }

    /// The shape as a value: the dims if they are known, otherwise `R.shape_of`.
    pub fn shape(self) -> Expr {
        match self.dims() {
            Some(dims) => self.builder.shape(&dims),
            None => self.builder.call("relax.shape_of", &[self.expr], Attrs::default()),
        }
    }

    /// Whether the dims of both terms are known and provably equal.
    pub fn has_same_shape(self, other: Term<'_>) -> bool {
        let (Some(a), Some(b)) = (self.dims(), other.dims()) else { return false };
        a.len() == b.len()
            && a.iter().zip(&b).all(|(&x, &y)| {
                x == y || self.builder.edit(|f| size_proofs::equal(f, x, y)) == Some(true)
            })
    }

    // ---- calls ----

    /// A call of an operator with this term as the first operand.
    pub fn call(self, op: &'static str, others: &[Expr], list: &[(&str, AttrValue)]) -> Term<'g> {
        let args: Vec<Expr> = std::iter::once(self.expr).chain(others.iter().copied()).collect();
        Term { expr: self.builder.call(op, &args, attrs(list)), ..self }
    }

    /// A call of an operator without attributes and other operands.
    pub fn apply(self, op: &'static str) -> Term<'g> {
        self.call(op, &[], &[])
    }

    /// A call of an operator with two operands and without attributes.
    pub fn apply2(self, op: &'static str, other: Term<'g>) -> Term<'g> {
        self.call(op, &[other.expr], &[])
    }

    /// Field `k` of a tuple.
    pub fn field(self, k: usize) -> Term<'g> {
        let tuple = self.builder.operand(self.expr);
        let expr = self.builder.edit(|f| match f.tuple_fields(tuple).and_then(|l| l.get(k)) {
            Some(&field) => field,
            None => f.tuple_get_item(tuple, k as u32),
        });
        Term { expr, ..self }
    }

    /// The tuple of terms.
    pub fn tuple(builder: &'g GradientBuilder, fields: &[Term<'g>]) -> Term<'g> {
        let leaves: Vec<Expr> = fields.iter().map(|t| builder.operand(t.expr)).collect();
        Term { builder, expr: builder.edit(|f| f.tuple(&leaves)) }
    }

    /// A constant with the data type of this term.
    pub fn constant(self, value: f64) -> Term<'g> {
        Term { expr: self.builder.constant(value, self.dtype()), ..self }
    }

    // ---- elementwise operators ----

    /// `e^x`.
    pub fn exp(self) -> Term<'g> {
        self.apply("relax.exp")
    }

    /// Natural logarithm.
    pub fn log(self) -> Term<'g> {
        self.apply("relax.log")
    }

    /// Square root.
    pub fn sqrt(self) -> Term<'g> {
        self.apply("relax.sqrt")
    }

    /// `1 / sqrt(x)`.
    pub fn rsqrt(self) -> Term<'g> {
        self.apply("relax.rsqrt")
    }

    /// Sine.
    pub fn sin(self) -> Term<'g> {
        self.apply("relax.sin")
    }

    /// Cosine.
    pub fn cos(self) -> Term<'g> {
        self.apply("relax.cos")
    }

    /// Logistic function.
    pub fn sigmoid(self) -> Term<'g> {
        self.apply("relax.sigmoid")
    }

    /// `x * x`.
    pub fn square(self) -> Term<'g> {
        self * self
    }

    /// `self ^ exponent`.
    pub fn power(self, exponent: Term<'g>) -> Term<'g> {
        self.apply2("relax.power", exponent)
    }

    /// Whether `self < other`, elementwise.
    pub fn less(self, other: Term<'g>) -> Term<'g> {
        self.apply2("relax.less", other)
    }

    /// Whether `self == other`, elementwise.
    pub fn equal(self, other: Term<'g>) -> Term<'g> {
        self.apply2("relax.equal", other)
    }

    /// The element of `a` where this condition is true, else that of `b`.
    pub fn select(self, a: Term<'g>, b: Term<'g>) -> Term<'g> {
        self.call("relax.where", &[a.expr, b.expr], &[])
    }

    /// Conversion to a data type; the term itself if it has this type.
    pub fn astype(self, dtype: DType) -> Term<'g> {
        if self.builder.read(|f| f.ty(self.expr).dtype()) == Some(dtype) {
            return self;
        }
        self.call("relax.astype", &[], &[("dtype", AttrValue::DType(dtype))])
    }

    // ---- reductions and shapes ----

    /// The sum over axes.
    pub fn sum(self, axes: &[usize], keepdims: bool) -> Term<'g> {
        if axes.is_empty() {
            return self;
        }
        let list = [("axis", axis_list(axes)), ("keepdims", AttrValue::Bool(keepdims))];
        self.call("relax.sum", &[], &list)
    }

    /// The sum over all axes.
    pub fn sum_all(self) -> Term<'g> {
        self.apply("relax.sum")
    }

    /// The mean over axes.
    pub fn mean(self, axes: &[usize], keepdims: bool) -> Term<'g> {
        let list = [("axis", axis_list(axes)), ("keepdims", AttrValue::Bool(keepdims))];
        self.call("relax.mean", &[], &list)
    }

    /// The elements in another shape, a shape value.
    pub fn reshape(self, shape: Expr) -> Term<'g> {
        self.call("relax.reshape", &[shape], &[])
    }

    /// The elements in the shape of another term; the term itself if the shapes are provably equal.
    pub fn reshape_like(self, other: Term<'g>) -> Term<'g> {
        if self.has_same_shape(other) { self } else { self.reshape(other.shape()) }
    }

    /// The elements in a shape of constants, of which one may be -1.
    pub fn reshape_to(self, sizes: &[i64]) -> Term<'g> {
        let dims: Vec<Sym> = self.builder.edit(|f| sizes.iter().map(|&s| f.syms.int(s)).collect());
        self.reshape(self.builder.shape(&dims))
    }

    /// The tensor broadcast to a shape value.
    pub fn broadcast_to(self, shape: Expr) -> Term<'g> {
        self.call("relax.broadcast_to", &[shape], &[])
    }

    /// The transposed tensor: dim `i` is dim `axes[i]` of this term.
    pub fn permute(self, axes: &[usize]) -> Term<'g> {
        if axes.iter().enumerate().all(|(i, &a)| i == a) {
            return self;
        }
        self.call("relax.permute_dims", &[], &[("axes", axis_list(axes))])
    }

    /// The tensor with its last two dims exchanged. The rank must be known and at least 2.
    pub fn swap_last(self) -> Term<'g> {
        let rank = self.rank().unwrap_or(2).max(2);
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.swap(rank - 2, rank - 1);
        self.permute(&axes)
    }

    /// The tensor with new dims of size 1, which become the dims `axes`.
    pub fn expand_dims(self, axes: &[usize]) -> Term<'g> {
        if axes.is_empty() {
            return self;
        }
        self.call("relax.expand_dims", &[], &[("axis", axis_list(axes))])
    }

    /// The tensor without the dims `axes`, whose size is 1.
    pub fn squeeze(self, axes: &[usize]) -> Term<'g> {
        self.call("relax.squeeze", &[], &[("axis", axis_list(axes))])
    }

    /// The elements in reverse order along an axis.
    pub fn flip(self, axis: usize) -> Term<'g> {
        self.call("relax.flip", &[], &[("axis", AttrValue::Int(axis as i64))])
    }

    /// The matrix product.
    pub fn matmul(self, other: Term<'g>) -> Term<'g> {
        self.apply2("relax.matmul", other)
    }

    /// Zeros of the type of this term.
    pub fn zeros_like(self) -> Term<'g> {
        self.apply("relax.zeros_like")
    }

    /// Zeros of the type of this term, with the shape as an operand, if the dims are known.
    pub fn zeros(self) -> Term<'g> {
        match self.dims() {
            Some(_) => {
                let list = attrs(&[("dtype", AttrValue::DType(self.dtype()))]);
                Term { expr: self.builder.call("relax.zeros", &[self.shape()], list), ..self }
            }
            None => self.zeros_like(),
        }
    }

    /// Ones of the type of this term.
    pub fn ones_like(self) -> Term<'g> {
        self.apply("relax.ones_like")
    }

    /// Sums over the dims along which `target` was broadcast, so that the result has the shape of `target`. Whether a symbolic dim
    /// was broadcast is decided at run time.
    pub fn fit(self, target: Term<'g>) -> Term<'g> {
        if self.has_same_shape(target) {
            return self;
        }
        match target.dims() {
            Some(_) => self.call("relax.collapse_sum_to", &[target.shape()], &[]),
            None => self.apply2("relax.collapse_sum_like", target),
        }
    }

    /// A shape of two dims: the products of `leading` and of `trailing`.
    pub fn merged_shape(self, leading: &[Sym], trailing: &[Sym]) -> Expr {
        let dims = self.builder.edit(|f| {
            let one = f.syms.int(1);
            let mut product = |list: &[Sym]| list.iter().fold(one, |n, &d| f.syms.mul(n, d));
            [product(leading), product(trailing)]
        });
        self.builder.shape(&dims)
    }

    /// Broadcasts the dims `axes`, which have size 1, to the sizes of `target`. Then sums over the dims along which `target` was
    /// broadcast.
    pub fn broadcast_and_fit(self, target: Term<'g>, axes: &[usize]) -> Term<'g> {
        let (Some(mut dims), Some(to)) = (self.dims(), target.dims()) else {
            return self.broadcast_to(target.shape());
        };
        axes.iter().for_each(|&a| dims[a] = to[a]);
        self.broadcast_to(self.builder.shape(&dims)).fit(target)
    }

    /// A symbolic size as a scalar tensor of the data type of this term.
    pub fn size_value(self, size: Sym) -> Term<'g> {
        if let Some(value) = self.builder.read(|f| f.syms.as_int(size)) {
            return self.constant(value as f64);
        }
        let value = self.builder.edit(|f| f.int_value(size, DType::Int64));
        let shape = self.builder.shape(&[]);
        let list = attrs(&[("dtype", AttrValue::DType(self.dtype()))]);
        Term { expr: self.builder.call("relax.full", &[shape, value], list), ..self }
    }

    /// The number of elements along axes, as a scalar tensor of the data type of this term.
    pub fn count(self, axes: &[usize]) -> Term<'g> {
        match self.dims() {
            Some(dims) => {
                let count = self.builder.edit(|f| {
                    let one = f.syms.int(1);
                    axes.iter().fold(one, |n, &a| f.syms.mul(n, dims[a]))
                });
                self.size_value(count)
            }
            None => self.ones_like().sum(axes, true),
        }
    }

    /// Whether the term is a constant of the program.
    pub fn is_constant(self) -> bool {
        self.builder.read(|f| matches!(f.expr(self.expr), ExprData::Constant(_)))
    }
}

macro_rules! arithmetic {
    ($($trait:ident, $method:ident, $op:literal;)*) => {$(
        impl<'g> $trait for Term<'g> {
            type Output = Term<'g>;

            fn $method(self, other: Term<'g>) -> Term<'g> {
                self.apply2($op, other)
            }
        }

        impl<'g> $trait<f64> for Term<'g> {
            type Output = Term<'g>;

            fn $method(self, other: f64) -> Term<'g> {
                self.apply2($op, self.constant(other))
            }
        }

        impl<'g> $trait<Term<'g>> for f64 {
            type Output = Term<'g>;

            fn $method(self, other: Term<'g>) -> Term<'g> {
                other.constant(self).apply2($op, other)
            }
        }
    )*};
}

arithmetic! {
    Add, add, "relax.add";
    Sub, sub, "relax.subtract";
    Mul, mul, "relax.multiply";
    Div, div, "relax.divide";
}

impl<'g> Neg for Term<'g> {
    type Output = Term<'g>;

    fn neg(self) -> Term<'g> {
        self.apply("relax.negative")
    }
}
