//! [`GradientCtx`]: the call that a gradient rule differentiates, with its operands, attributes and the adjoints of its results.

use pliant_ir::op::{InferError, Op};
use pliant_ir::relax::{Expr, Type};
use pliant_ir::{AttrValue, Attrs};

use super::builder::GradientBuilder;
use super::derived;
use super::term::Term;
use super::{DifferentiatedCall, GradientError, GradientResult};
use crate::op_declaration::OpDecl;
use crate::op_registry::registry;
use crate::type_inference::InferCtx;

/// A call that a rule differentiates.
pub struct GradientCtx<'g> {
    /// The builder to which the rule emits operators.
    pub builder: &'g GradientBuilder,
    call: &'g DifferentiatedCall<'g>,
}

impl<'g> GradientCtx<'g> {
    /// Creates the context for a rule.
    pub(crate) fn new(builder: &'g GradientBuilder, call: &'g DifferentiatedCall<'g>) -> Self {
        GradientCtx { builder, call }
    }

    /// The called operator.
    pub fn op(&self) -> Op {
        self.call.op
    }

    /// The operands of the call.
    pub fn args(&self) -> &'g [Expr] {
        self.call.args
    }

    /// The types that the call states.
    pub fn ty_args(&self) -> &'g [Type] {
        self.call.ty_args
    }

    /// The attributes of the call.
    pub fn attrs(&self) -> &'g Attrs {
        self.call.attrs
    }

    /// Operand `i`.
    pub fn arg(&self, i: usize) -> Term<'g> {
        self.builder.term(self.call.args[i])
    }

    /// Whether the call passes operand `i`.
    pub fn has_arg(&self, i: usize) -> bool {
        self.call
            .args
            .get(i)
            .is_some_and(|&arg| self.builder.read(|f| !crate::type_inference::is_null(f, arg)))
    }

    /// The result of the call.
    pub fn result(&self) -> Term<'g> {
        self.builder.term(self.call.result)
    }

    /// The adjoint of the only result.
    pub fn dy(&self) -> Term<'g> {
        let adjoint = self.call.result_adjoints.first().copied().flatten();
        self.builder.term(adjoint.unwrap_or(self.call.result))
    }

    /// The adjoint of result `k`; `None` if it is zero.
    pub fn dy_of(&self, k: usize) -> Option<Term<'g>> {
        self.call.result_adjoints.get(k).copied().flatten().map(|e| self.builder.term(e))
    }

    /// The number of results.
    pub fn result_count(&self) -> usize {
        self.call.result_adjoints.len()
    }

    /// Whether the adjoint of operand `i` is needed.
    pub fn wants(&self, i: usize) -> bool {
        self.call.wanted.get(i).copied().unwrap_or(false)
    }

    /// An error that names the operator.
    pub fn error(&self, message: impl AsRef<str>) -> GradientError {
        GradientError::new(format!("{}: {}", self.call.op.name(), message.as_ref()))
    }

    /// The rank of operand `i`.
    ///
    /// # Errors
    /// If the rank is unknown.
    pub fn rank(&self, i: usize) -> Result<usize, GradientError> {
        self.arg(i).rank().ok_or_else(|| {
            self.error("the gradient needs the rank of the operand; declare it with R.match_cast")
        })
    }

    // ---- attributes ----

    /// The value of an attribute, or its default.
    pub fn attr(&self, key: &str) -> AttrValue {
        match self.decl() {
            Some(decl) => crate::call_attributes::attr(decl, self.call.attrs, key),
            None => self.call.attrs.get(key).cloned().unwrap_or(AttrValue::None),
        }
    }

    fn decl(&self) -> Option<&'static OpDecl> {
        registry().decl(self.call.op)
    }

    /// Reads the attributes and types of the call like its type rule.
    ///
    /// # Errors
    /// The error that `read` returns.
    pub fn infer<T>(
        &self,
        read: impl FnOnce(&mut InferCtx<'_>) -> Result<T, InferError>,
    ) -> Result<T, GradientError> {
        let Some(decl) = self.decl() else {
            return Err(self.error("the operator has no declaration"));
        };
        let DifferentiatedCall { args, attrs, ty_args, .. } = *self.call;
        let result =
            self.builder.edit(|func| read(&mut InferCtx::new(func, decl, args, attrs, ty_args)));
        Ok(result?)
    }

    /// The axes in an attribute, in the given order. `None` selects all axes.
    ///
    /// # Errors
    /// If an axis is out of range, or the rank of operand 0 is unknown.
    pub fn axes(&self, key: &str) -> Result<Vec<usize>, GradientError> {
        let rank = self.rank(0)?;
        let axes = self.infer(|ctx| ctx.axes(key, rank))?;
        Ok(axes.unwrap_or_else(|| (0..rank).collect()))
    }

    /// The axis in an attribute.
    ///
    /// # Errors
    /// If the axis is out of range, or the rank of operand 0 is unknown.
    pub fn axis(&self, key: &str) -> Result<usize, GradientError> {
        let rank = self.rank(0)?;
        self.infer(|ctx| ctx.axis(key, rank))
    }

    /// A bool attribute.
    ///
    /// # Errors
    /// If the attribute is not a bool.
    pub fn bool(&self, key: &str) -> Result<bool, GradientError> {
        self.infer(|ctx| ctx.bool(key))
    }

    /// A float attribute.
    ///
    /// # Errors
    /// If the attribute is not a number.
    pub fn float(&self, key: &str) -> Result<f64, GradientError> {
        self.infer(|ctx| ctx.float(key))
    }

    // ---- common forms of rules ----

    /// The rule of an elementwise operator with one operand: `f(x, y, dy)` is the adjoint of the operand `x` with the result `y`.
    ///
    /// # Errors
    /// None.
    pub fn unary(
        &self,
        f: impl FnOnce(Term<'g>, Term<'g>, Term<'g>) -> Term<'g>,
    ) -> GradientResult<'g> {
        Ok(vec![Some(f(self.arg(0), self.result(), self.dy()))])
    }

    /// The rule of an operator whose operands are broadcast. The functions return the adjoints of the operands in the shape of the
    /// result.
    ///
    /// # Errors
    /// None.
    pub fn broadcast<const N: usize>(
        &self,
        adjoints: [&dyn Fn(Term<'g>) -> Term<'g>; N],
    ) -> GradientResult<'g> {
        let adjoint = |(i, f): (usize, &&dyn Fn(Term<'g>) -> Term<'g>)| {
            self.wants(i).then(|| f(self.dy()).fit(self.arg(i)))
        };
        Ok(adjoints.iter().enumerate().map(adjoint).collect())
    }

    /// The rule of an operator that moves elements of operand 0 without changing their values.
    ///
    /// # Errors
    /// None.
    pub fn reshaped(&self) -> GradientResult<'g> {
        self.first(self.dy().reshape_like(self.arg(0)))
    }

    /// The adjoint of operand 0; the other operands have none.
    ///
    /// # Errors
    /// None.
    pub fn first(&self, adjoint: Term<'g>) -> GradientResult<'g> {
        let mut adjoints = vec![None; self.call.args.len()];
        if let Some(first) = adjoints.first_mut() {
            *first = Some(adjoint);
        }
        Ok(adjoints)
    }

    /// The operator applied to the adjoint of its result instead of operand 0.
    ///
    /// # Errors
    /// None.
    pub fn reapplied(&self) -> GradientResult<'g> {
        let mut args = self.call.args.to_vec();
        args[0] = self.dy().expr();
        let adjoint = self.builder.call_op(self.call.op, &args, self.call.attrs.clone());
        self.first(self.builder.term(adjoint))
    }

    /// The adjoints that are derived from the tensor expression of the operator.
    ///
    /// # Errors
    /// If the tensor expression is unknown or contains statements.
    pub fn from_te(&self) -> GradientResult<'g> {
        let adjoints = derived::operand_adjoints(self.builder, self.call)?;
        Ok(adjoints.into_iter().map(|e| e.map(|e| self.builder.term(e))).collect())
    }
}
