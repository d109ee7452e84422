//! [`AdjointMap`]: the adjoints of variables that are known so far. Adjoints of tuples are stored per field, so that fields on
//! which the target does not depend need no zeros.

use pliant_ir::relax::{Expr, ExprData, Function, Type, TypeData, Var};
use pliant_ops::gradient::{GradientBuilder, Term};
use rustc_hash::{FxHashMap, FxHashSet};

/// The adjoint of a variable.
#[derive(Clone, Debug)]
pub(super) enum Adjoint {
    /// The adjoint of a tensor.
    Tensor(Expr),
    /// The adjoints of the fields of a tuple; `None` for a field without one.
    Fields(Vec<Option<Adjoint>>),
}

/// Whether a type is a float tensor, or a tuple with a field that contains one.
pub(super) fn is_differentiable(func: &Function, ty: Type) -> bool {
    match func.types.get(ty) {
        TypeData::Tensor { dtype, .. } => dtype.is_none_or(|d| d.is_float()),
        TypeData::Tuple(fields) => fields.iter().any(|&field| is_differentiable(func, field)),
        _ => false,
    }
}

/// The adjoints of the variables of one sequence.
pub(super) struct AdjointMap<'b> {
    builder: &'b GradientBuilder,
    map: FxHashMap<Var, Adjoint>,
    /// The variables that depend on a variable whose adjoint is needed. Adjoints of other variables are dropped.
    varied: FxHashSet<Var>,
}

impl<'b> AdjointMap<'b> {
    pub(super) fn new(builder: &'b GradientBuilder, varied: FxHashSet<Var>) -> Self {
        AdjointMap { builder, map: FxHashMap::default(), varied }
    }

    /// Whether a variable depends on a variable whose adjoint is needed.
    pub(super) fn is_varied(&self, var: Var) -> bool {
        self.varied.contains(&var)
    }

    /// Removes the adjoint of a variable and returns it.
    pub(super) fn take(&mut self, var: Var) -> Option<Adjoint> {
        self.map.remove(&var)
    }

    /// Adds an adjoint to the adjoint of an operand: a variable, or a tuple of operands. Other operands have no adjoint.
    pub(super) fn add(&mut self, operand: Expr, adjoint: Adjoint) {
        let fields = self.builder.read(|f| f.tuple_fields(operand).map(<[Expr]>::to_vec));
        if let Some(fields) = fields {
            let adjoint = self.by_field(adjoint, fields.len());
            for (field, adjoint) in fields.into_iter().zip(adjoint) {
                if let Some(adjoint) = adjoint {
                    self.add(field, adjoint);
                }
            }
            return;
        }
        let var = self.builder.read(|f| match f.expr(operand) {
            ExprData::Var(v) => Some(*v),
            _ => None,
        });
        let Some(var) = var.filter(|v| self.varied.contains(v)) else { return };
        let ty = self.builder.read(|f| f.var(var).ty);
        let name = self.builder.read(|f| format!("{}_adjoint", f.var(var).name));
        let adjoint = self.typed(adjoint, ty);
        let known = self.map.remove(&var);
        if let Some(sum) = self.sum(known, adjoint, ty, &name) {
            self.map.insert(var, sum);
        }
    }

    /// Splits the adjoint of a tuple by field.
    fn by_field(&self, adjoint: Adjoint, count: usize) -> Vec<Option<Adjoint>> {
        match adjoint {
            Adjoint::Fields(fields) => fields,
            Adjoint::Tensor(e) => {
                let tuple = self.builder.term(self.builder.operand(e));
                (0..count).map(|k| Some(Adjoint::Tensor(tuple.field(k).expr()))).collect()
            }
        }
    }

    /// The adjoint of a variable of type `ty`, split by field if it is a tuple.
    fn typed(&self, adjoint: Adjoint, ty: Type) -> Adjoint {
        let count = self.builder.read(|f| match f.types.get(ty) {
            TypeData::Tuple(fields) => Some(fields.len()),
            _ => None,
        });
        match count {
            Some(count) => Adjoint::Fields(self.by_field(adjoint, count)),
            None => adjoint,
        }
    }

    /// The sum of the known adjoint and a new one. Tensors that are not float have no adjoint.
    fn sum(&self, known: Option<Adjoint>, new: Adjoint, ty: Type, name: &str) -> Option<Adjoint> {
        if !self.builder.read(|f| is_differentiable(f, ty)) {
            return None;
        }
        match new {
            Adjoint::Tensor(e) => {
                let new = self.builder.bind(e, name);
                let sum = match known {
                    Some(Adjoint::Tensor(known)) => {
                        let sum = self.builder.term(known) + self.builder.term(new);
                        self.builder.bind(sum.expr(), name)
                    }
                    _ => new,
                };
                Some(Adjoint::Tensor(sum))
            }
            Adjoint::Fields(new) => {
                let tys = self.builder.read(|f| match f.types.get(ty) {
                    TypeData::Tuple(tys) => tys.to_vec(),
                    _ => vec![ty; new.len()],
                });
                let mut known = match known {
                    Some(Adjoint::Fields(known)) => known,
                    _ => vec![None; new.len()],
                };
                for ((slot, new), ty) in known.iter_mut().zip(new).zip(tys) {
                    if let Some(new) = new {
                        let new = self.typed(new, ty);
                        *slot = self.sum(slot.take(), new, ty, name);
                    }
                }
                Some(Adjoint::Fields(known))
            }
        }
    }
}

/// Returns an adjoint as a value of the type of `like`. Missing parts become zeros.
pub(super) fn materialize(
    builder: &GradientBuilder,
    adjoint: Option<&Adjoint>,
    like: Expr,
) -> Expr {
    if let Some(Adjoint::Tensor(e)) = adjoint {
        return *e;
    }
    let count = builder.read(|f| match f.ty(like) {
        TypeData::Tuple(fields) => Some(fields.len()),
        _ => None,
    });
    let Some(count) = count else { return builder.operand(builder.term(like).zeros().expr()) };
    let fields: Vec<Term<'_>> = (0..count)
        .map(|k| {
            let field = builder.operand(builder.term(like).field(k).expr());
            let adjoint = match adjoint {
                Some(Adjoint::Fields(list)) => list.get(k).and_then(Option::as_ref),
                _ => None,
            };
            builder.term(materialize(builder, adjoint, field))
        })
        .collect();
    Term::tuple(builder, &fields).expr()
}
