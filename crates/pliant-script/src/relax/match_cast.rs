//! Parsing of `match_cast`, `match_shape`, and bindings with annotations.

use pliant_ir::relax::{Expr as IrExpr, TensorShape, Type, TypeData, Var, type_lattice};
use pliant_ir::{DType, Sym};
use pliant_sym::Proof;

use super::unresolved_values::Val;
use super::{FuncParser, Local};
use crate::dialect_spellings::{Namespace, RelaxName, relax_name};
use crate::python::ast::{Call, Expr, ExprKind, Range};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// The `match_cast` or `match_shape` call that an expression consists of, if any.
    pub(super) fn match_call<'e>(&self, e: &'e Expr<'s>) -> Option<(RelaxName, &'e Call<'s>)> {
        let call = e.as_call()?;
        if self.is_local(&call.func) {
            return None;
        }
        let name = match self.cx.path(&call.func) {
            Some(p) if p.ns == Namespace::Relax => relax_name(&p.name)?,
            Some(_) => return None,
            None => relax_name(call.func.as_name()?)?,
        };
        matches!(name, RelaxName::MatchCast | RelaxName::MatchShape).then_some((name, call))
    }

    /// Evaluates the arguments of a `match_cast` or `match_shape`: the value, and the type that it is matched with. In
    /// `n, m = R.match_shape(x.shape)`, the names on the left (`targets`) form the pattern.
    pub(super) fn match_parts(
        &mut self,
        name: RelaxName,
        e: &Expr<'s>,
        call: &Call<'s>,
        targets: Option<&[Expr<'s>]>,
    ) -> Res<(IrExpr, Type)> {
        let what = if name == RelaxName::MatchCast { "R.match_cast" } else { "R.match_shape" };
        let keyword = |names: &[&str]| {
            call.keywords.iter().find(|k| names.contains(&k.name)).map(|k| &k.value)
        };
        let value = call.args.first().or_else(|| keyword(&["value"]));
        let Some(value_e) = value else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                format!("{what} needs the value to match as its first argument"),
            ));
        };
        let val = self.value(value_e)?;
        let value = self.operand(val, None, value_e.range)?;
        let pattern = call
            .args
            .get(1)
            .or_else(|| keyword(&["pattern", "struct_info", "ty", "type", "shape"]));
        if let Some(pattern) = pattern
            && (name == RelaxName::MatchCast || self.is_type(pattern))
        {
            let ty = self.annotation(pattern)?;
            return self.check_match(value, ty, e.range).map(|()| (value, ty));
        }
        let pattern = match (pattern, targets) {
            (Some(p), _) => match p.as_sequence() {
                Some(items) => items,
                None => std::slice::from_ref(p),
            },
            (None, Some(targets)) => targets,
            (None, None) => {
                let help = format!("write the dims as second argument: {what}(x, (n, m))");
                return Err(self.error_help(
                    ErrorKind::Arguments,
                    e.range,
                    format!("{what} needs the dims or the type that the value must have"),
                    help,
                ));
            }
        };
        let before = std::mem::replace(&mut self.implicit, true);
        let dims: Res<Vec<Sym>> = pattern.iter().map(|e| self.dim(e)).collect();
        self.implicit = before;
        let dims = dims?;
        let data = match self.ty_of(value) {
            TypeData::Shape { .. } => TypeData::shape(dims),
            other => TypeData::tensor(dims, other.dtype()),
        };
        let ty = self.intern(data);
        self.check_match(value, ty, e.range)?;
        Ok((value, ty))
    }

    fn check_match(&mut self, value: IrExpr, ty: Type, range: Range) -> Res<()> {
        let have = self.b.func().expr_ty(value);
        let func = self.b.func_mut();
        if type_lattice::is_subtype(func, have, ty) != Proof::No {
            return Ok(());
        }
        // A match that always fails is an error, unless it fails because of sizes, which are checked at run time.
        let rank = |p: &Self, t| p.b.func().rank_of(t);
        let (a, b) = (self.b.func().types.get(have), self.b.func().types.get(ty));
        let same_kind = std::mem::discriminant(a) == std::mem::discriminant(b);
        let dtypes = a.dtype().zip(b.dtype()).is_none_or(|(x, y)| x == y);
        if same_kind && dtypes && rank(self, have) == rank(self, ty) {
            return Ok(());
        }
        let message = format!(
            "a value of type {} can never match the type {}",
            self.ty_text(have),
            self.ty_text(ty)
        );
        Err(self.error(ErrorKind::Type, range, message))
    }

    /// Binds `match_cast(value, ty)` to a new variable.
    pub(super) fn bind_match(&mut self, value: IrExpr, ty: Type, hint: &str, range: Range) -> Var {
        self.b.set_span(self.cx.span(range));
        self.b.match_cast(value, ty, hint)
    }

    /// Binds a value whose target has a type annotation. If the value provably has the annotated type, it is bound directly. If it
    /// provably does not, this is an error. Otherwise the type is checked at run time.
    pub(super) fn bind_annotated(
        &mut self,
        value: IrExpr,
        annotation: &Expr<'s>,
        hint: &str,
        range: Range,
    ) -> Res<Var> {
        let want = self.annotation(annotation)?;
        let have = self.b.func().expr_ty(value);
        self.b.set_span(self.cx.span(range));
        match type_lattice::is_subtype(self.b.func_mut(), have, want) {
            Proof::Yes => {
                let ty = if self.omits_shape(annotation) { have } else { want };
                Ok(self.b.emit_typed(value, hint, ty))
            }
            Proof::Unknown if self.same_but_for_functions(have, want) => {
                Ok(self.b.emit_typed(value, hint, want))
            }
            Proof::Unknown => {
                let value = self.b.operand(value);
                Ok(self.b.match_cast(value, want, hint))
            }
            Proof::No => {
                let message = format!(
                    "the variable is annotated with the type {}, but its value has type {}",
                    self.ty_text(want),
                    self.ty_text(have)
                );
                Err(self.error(ErrorKind::Type, annotation.range, message))
            }
        }
    }

    /// Whether a value of type `have` has type `want` if the parameter and result types of
    /// functions are ignored. Parameter and result types cannot be checked at run time.
    pub(super) fn same_but_for_functions(&mut self, have: Type, want: Type) -> bool {
        let (have, want) = (self.without_functions(have), self.without_functions(want));
        type_lattice::is_subtype(self.b.func_mut(), have, want) == Proof::Yes
    }

    fn without_functions(&mut self, ty: Type) -> Type {
        match self.b.func().types.get(ty).clone() {
            TypeData::Callable { .. } => self.intern(TypeData::Any),
            TypeData::Tuple(fields) => {
                let fields = fields.iter().map(|&t| self.without_functions(t)).collect();
                self.intern(TypeData::Tuple(fields))
            }
            _ => ty,
        }
    }

    /// Whether an annotation leaves the shape to type inference: `R.Shape`, `R.Tensor[_, "float32"]`. The printer never prints such
    /// annotations.
    fn omits_shape(&self, annotation: &Expr<'s>) -> bool {
        match &annotation.kind {
            ExprKind::Subscript(_, index) => {
                let first = match &index.kind {
                    ExprKind::Tuple(items) => items.first().unwrap_or(index),
                    _ => index,
                };
                matches!(first.kind, ExprKind::Name("_"))
            }
            ExprKind::Name(_) | ExprKind::Attribute(..) => {
                matches!(self.type_name(annotation), Some(RelaxName::ShapeTy | RelaxName::TensorTy))
            }
            _ => false,
        }
    }

    // ---- declarations of symbols ----

    /// Whether an expression declares a symbol: `T.int64()`, `T.var("int64")`, `T.var("n")`,
    /// `te.var("n")`.
    pub(super) fn declares_symbol(&self, e: &Expr<'s>) -> bool {
        let Some(call) = e.as_call() else { return false };
        if self.is_local(&call.func) {
            return false;
        }
        match self.cx.path(&call.func) {
            Some(p) if matches!(p.ns, Namespace::Tir | Namespace::Te) => match p.name.as_str() {
                "var" | "Var" | "size_var" | "SizeVar" => true,
                name => {
                    call.args.is_empty()
                        && crate::parser_context::parse_dtype(name).is_some_and(DType::is_integer)
                }
            },
            _ => false,
        }
    }

    /// Parses `n = T.int64()`, which refers to the symbol `n` of the signature if there is one, and otherwise declares a new
    /// symbol.
    pub(super) fn declare_symbol(&mut self, target: &Expr<'s>) -> Res<()> {
        let Some(name) = target.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "a symbol such as T.int64() must be assigned to a single name",
            ));
        };
        match self.scope.get(name) {
            Some(Local::Sym(_)) => {}
            Some(Local::Var(v)) if self.as_sym(&Val::Expr(*v)).is_some() => {}
            _ => {
                let func = self.b.func_mut();
                let var = func.fresh_sym(name);
                let sym = func.syms.var(var);
                self.define(name, Local::Sym(sym));
            }
        }
        Ok(())
    }

    /// Replaces the shape variable of a tensor type, if there is one, by its rank. The types of the
    /// two branches of an `if`, or of the iterations of a loop, can only be combined without shape
    /// variables.
    pub(super) fn erase_shape(&mut self, ty: Type) -> Type {
        match self.b.func().types.get(ty) {
            TypeData::Tensor { shape: TensorShape::Var(_), dtype } => {
                let (rank, dtype) = (self.b.func().rank_of(ty), *dtype);
                let shape = rank.map_or(TensorShape::Unknown, TensorShape::Rank);
                self.intern(TypeData::Tensor { shape, dtype })
            }
            _ => ty,
        }
    }
}
