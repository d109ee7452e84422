//! Type annotations: `R.Tensor(("n", 4), "float32")`, `R.Tensor[(n, 4), "float32"]` and similar.

use std::borrow::Cow;

use pliant_ir::relax::{ExprData, TensorShape, Type, TypeData};
use pliant_ir::{DType, Sym};

use super::FuncParser;
use super::unresolved_values::Val;
use crate::dialect_spellings::{Namespace, RelaxName, relax_name};
use crate::python::ast::{Call, Expr, ExprKind, Keyword, Range};
use crate::python::{parse_expression, with_stack_for_depth};
use crate::script_errors::{ErrorKind, Reported, Res};

/// The arguments of a type constructor, written in parentheses or brackets.
#[derive(Clone, Copy)]
struct Args<'e, 's> {
    positional: &'e [Expr<'s>],
    keywords: &'e [Keyword<'s>],
    range: Range,
}

impl<'s> FuncParser<'_, 's> {
    /// The type constructor, such as `R.Tensor`, to which an expression refers; `None` for other expressions.
    pub(super) fn type_name(&self, e: &Expr<'s>) -> Option<RelaxName> {
        use RelaxName::*;
        if self.is_local(e) {
            return None;
        }
        let name = match self.cx.path(e) {
            Some(p) if p.ns == Namespace::Relax => relax_name(&p.name),
            Some(_) => None,
            // The oldest scripts write `Tensor(...)` without a module prefix.
            None => e.as_name().filter(|n| self.cx.lookup(n).is_none()).and_then(relax_name),
        };
        name.filter(|n| matches!(n, TensorTy | ShapeTy | TupleTy | ObjectTy | PrimTy | CallableTy))
    }

    /// Whether an expression is a type annotation, according to its callee or subscripted value.
    pub(super) fn is_type(&self, e: &Expr<'s>) -> bool {
        match &e.kind {
            ExprKind::Call(call) => self.type_name(&call.func).is_some(),
            ExprKind::Subscript(head, _) => self.type_name(head).is_some(),
            ExprKind::Name(_) | ExprKind::Attribute(..) => self.type_name(e).is_some(),
            _ => false,
        }
    }

    /// Evaluates a type annotation of a graph function to a type.
    pub(super) fn annotation(&mut self, e: &Expr<'s>) -> Res<Type> {
        match &e.kind {
            ExprKind::Call(call) => {
                let args =
                    Args { positional: &call.args, keywords: &call.keywords, range: e.range };
                match self.type_name(&call.func) {
                    Some(name) => self.type_of(name, args),
                    None => self.other_annotation(e, Some(call)),
                }
            }
            ExprKind::Subscript(head, index) => {
                let positional = match &index.kind {
                    ExprKind::Tuple(items) if is_bare(index, items) => items.as_slice(),
                    _ => std::slice::from_ref(&**index),
                };
                match self.type_name(head) {
                    Some(name) => {
                        self.type_of(name, Args { positional, keywords: &[], range: e.range })
                    }
                    None => self.other_annotation(e, None),
                }
            }
            ExprKind::Name(_) | ExprKind::Attribute(..) => match self.type_name(e) {
                Some(name) => {
                    self.type_of(name, Args { positional: &[], keywords: &[], range: e.range })
                }
                None => self.other_annotation(e, None),
            },
            ExprKind::Tuple(items) => {
                let fields: Res<Vec<Type>> = items.iter().map(|e| self.annotation(e)).collect();
                Ok(self.intern(TypeData::Tuple(fields?.into())))
            }
            ExprKind::None => Ok(self.intern(TypeData::unit())),
            _ => self.other_annotation(e, None),
        }
    }

    /// Evaluates annotations that are not calls of a type constructor, such as `x: T.int64` and captured data types, and reports
    /// errors.
    fn other_annotation(&mut self, e: &Expr<'s>, call: Option<&Call<'s>>) -> Res<Type> {
        if call.is_none()
            && !self.is_local(e)
            && let Some(p) = self.cx.path(e)
        {
            if p.ns == Namespace::Tir
                && let Some(dtype) = crate::parser_context::parse_dtype(&p.name)
            {
                return Ok(self.intern(TypeData::Prim { dtype, value: None }));
            }
            if p.ns == Namespace::Relax {
                let types = ["Tensor", "Shape", "Tuple", "Object", "Prim", "Callable"];
                let help = crate::script_errors::did_you_mean(&p.name, types);
                let message = format!("'R.{}' is not a type", p.name);
                return Err(self.cx.error_maybe(
                    ErrorKind::UnknownConstruct,
                    self.range(e.range),
                    message,
                    help,
                ));
            }
        }
        let text = crate::parser_context::first_line(self.cx.slice(e.range));
        Err(self.error_help(
            ErrorKind::Type,
            e.range,
            format!("the annotation `{text}` is not a type"),
            "types are R.Tensor, R.Shape, R.Tuple, R.Prim, R.Callable and R.Object",
        ))
    }

    fn type_of(&mut self, name: RelaxName, args: Args<'_, 's>) -> Res<Type> {
        match name {
            RelaxName::TensorTy => self.tensor_type(args),
            RelaxName::ShapeTy => self.shape_type(args),
            RelaxName::TupleTy => self.tuple_type(args),
            RelaxName::PrimTy => self.prim_type(args),
            RelaxName::CallableTy => self.callable_type(args),
            _ => Ok(self.intern(TypeData::Any)),
        }
    }

    fn unknown_keyword(&self, keyword: &Keyword<'s>, of: &str, known: &[&str]) -> Reported {
        let help = crate::script_errors::did_you_mean(keyword.name, known.iter().copied())
            .unwrap_or_else(|| format!("{of} takes {}", known.join(", ")));
        let message = format!("{of} has no parameter '{}'", keyword.name);
        self.error_help(ErrorKind::Arguments, keyword.range, message, help)
    }

    // ---- tensors ----

    fn tensor_type(&mut self, args: Args<'_, 's>) -> Res<Type> {
        let (mut shape, mut dtype, mut ndim) = (None, None, None);
        match args.positional {
            [] => {}
            [one] if one.as_str().is_some() => dtype = Some(one),
            [one] => shape = Some(one),
            [one, two, ..] => (shape, dtype) = (Some(one), Some(two)),
        }
        for k in args.keywords {
            match k.name {
                "shape" => shape = Some(&k.value),
                "dtype" => dtype = Some(&k.value),
                "ndim" => ndim = Some(&k.value),
                // Ignored, because there is only CPU memory.
                "vdevice" => {}
                _ => return Err(self.unknown_keyword(k, "R.Tensor", &["shape", "dtype", "ndim"])),
            }
        }
        let dtype = match dtype {
            Some(e) => self.dtype(e)?,
            None => None,
        };
        let mut shape = match shape {
            Some(e) => self.tensor_shape(e)?,
            None => TensorShape::Unknown,
        };
        if let Some(e) = ndim
            && let Some(rank) = self.rank(e)?
        {
            match &shape {
                TensorShape::Dims(dims) if dims.len() != rank as usize => {
                    let message = format!(
                        "ndim of R.Tensor is {rank}, but the shape has {} dims",
                        dims.len()
                    );
                    return Err(self.error(ErrorKind::Type, args.range, message));
                }
                TensorShape::Unknown => shape = TensorShape::Rank(rank),
                _ => {}
            }
        }
        Ok(self.intern(TypeData::Tensor { shape, dtype }))
    }

    /// Evaluates the value of `ndim=2`. The value -1 means that the rank is unknown.
    fn rank(&mut self, e: &Expr<'s>) -> Res<Option<u32>> {
        let val = self.value(e)?;
        let value = self.as_sym(&val).and_then(|s| self.b.func().syms.as_int(s));
        match value {
            Some(-1) => Ok(None),
            Some(v) if (0..=i64::from(u16::MAX)).contains(&v) => Ok(Some(v as u32)),
            _ => Err(self.error(
                ErrorKind::Type,
                e.range,
                "ndim must be a constant integer from 0 to 65535, or -1 if the rank is unknown",
            )),
        }
    }

    fn tensor_shape(&mut self, e: &Expr<'s>) -> Res<TensorShape> {
        if matches!(e.kind, ExprKind::Name("_") | ExprKind::None) {
            return Ok(TensorShape::Unknown);
        }
        if let Some(items) = e.as_sequence() {
            let dims: Res<Vec<Sym>> = items.iter().map(|e| self.dim(e)).collect();
            return Ok(TensorShape::Dims(dims?.into()));
        }
        let val = self.value(e)?;
        self.shape_of_value(val, e.range)
    }

    /// Converts a value of the graph, such as a tuple of dims or a variable of shape type, to a tensor shape.
    pub(super) fn shape_of_value(&mut self, val: Val, range: Range) -> Res<TensorShape> {
        if let Some(dims) = self.as_dims(&val) {
            return Ok(TensorShape::Dims(dims.into()));
        }
        if let Val::Expr(e) = val {
            let is_shape = matches!(self.ty_of(e), TypeData::Shape { .. });
            let e = if is_shape { self.b.operand(e) } else { e };
            if let (true, ExprData::Var(v)) = (is_shape, self.b.func().expr(e)) {
                return Ok(TensorShape::Var(*v));
            }
            let ty = self.b.func().expr_ty(e);
            let message = format!(
                "the shape of a tensor type must be a tuple of dims or a shape variable, not a value of type {}",
                self.ty_text(ty)
            );
            return Err(self.error(ErrorKind::Type, range, message));
        }
        let message = format!(
            "the shape of a tensor type must be a tuple of dims or a shape variable, not {}",
            val.describe()
        );
        Err(self.error_help(ErrorKind::Type, range, message, "write a shape as a tuple: (n, 4)"))
    }

    /// Evaluates a dim: an integer or a symbolic expression, which may be in quotes.
    pub(super) fn dim(&mut self, e: &Expr<'s>) -> Res<Sym> {
        if let ExprKind::Str(text) = &e.kind {
            let Cow::Borrowed(text) = *text else {
                return Err(self.error(
                    ErrorKind::Type,
                    e.range,
                    "a symbolic dim in quotes cannot contain escape sequences",
                ));
            };
            return self.quoted_dim(text, e.range);
        }
        if self.implicit
            && let ExprKind::Name(name) = e.kind
            && !matches!(name, "_")
            && !self.scope.contains_key(name)
        {
            if let Some(value) = self.lookup(name) {
                let val = self.host_value(value);
                if let Some(s) = self.as_sym(&val) {
                    return Ok(s);
                }
            }
            return Ok(self.symbol(name));
        }
        let outer = std::mem::replace(&mut self.in_dim, true);
        let val = self.value(e);
        self.in_dim = outer;
        let val = val?;
        self.as_sym(&val).ok_or_else(|| {
            let message = match &val {
                Val::Float(..) => "a dim must be an integer, not a float".to_string(),
                other => format!(
                    "a dim must be an integer or a symbolic expression, not {}",
                    other.describe()
                ),
            };
            self.error(ErrorKind::Type, e.range, message)
        })
    }

    /// Evaluates a dim in quotes. Names that the script does not define become symbols, even if the surrounding Python program
    /// defines them: a Python variable `n` must not change the meaning of the dim "n".
    fn quoted_dim(&mut self, text: &'s str, range: Range) -> Res<Sym> {
        let parsed = match parse_expression(text) {
            Ok(e) => e,
            Err(error) => {
                let message = format!("invalid symbolic dim \"{text}\": {}", error.message);
                return Err(self.error(ErrorKind::Type, range, message));
            }
        };
        let (implicit, at) = (self.implicit, self.at);
        self.implicit = true;
        self.at = Some(at.unwrap_or(range));
        let dim = with_stack_for_depth(parsed.depth.into(), || {
            let dim = self.dim(&parsed);
            drop(parsed);
            dim
        });
        (self.implicit, self.at) = (implicit, at);
        dim
    }

    // ---- other types ----

    fn shape_type(&mut self, args: Args<'_, 's>) -> Res<Type> {
        let (mut values, mut ndim) = (args.positional.first(), None);
        for k in args.keywords {
            match k.name {
                "values" | "shape" => values = Some(&k.value),
                "ndim" => ndim = self.rank(&k.value)?,
                _ => return Err(self.unknown_keyword(k, "R.Shape", &["values", "ndim"])),
            }
        }
        // `R.Shape[n, m]` and `R.Shape(n, m)` list the dims directly.
        let items = match values {
            Some(e) if e.as_sequence().is_some() => e.as_sequence(),
            Some(e) if matches!(e.kind, ExprKind::None | ExprKind::Name("_")) => None,
            Some(_) => Some(args.positional),
            None => None,
        };
        let data = match items {
            Some(items) => {
                let dims: Res<Vec<Sym>> = items.iter().map(|e| self.dim(e)).collect();
                TypeData::shape(dims?)
            }
            None => TypeData::Shape { dims: None, ndim },
        };
        Ok(self.intern(data))
    }

    fn tuple_type(&mut self, args: Args<'_, 's>) -> Res<Type> {
        if let Some(k) = args.keywords.first() {
            return Err(self.unknown_keyword(
                k,
                "R.Tuple",
                &["only the types of the fields, as positional arguments"],
            ));
        }
        let items = match args.positional {
            [one] => one.as_sequence().unwrap_or(args.positional),
            items => items,
        };
        let fields: Res<Vec<Type>> = items.iter().map(|e| self.annotation(e)).collect();
        Ok(self.intern(TypeData::Tuple(fields?.into())))
    }

    fn prim_type(&mut self, args: Args<'_, 's>) -> Res<Type> {
        let (mut dtype, mut value) = (args.positional.first(), None);
        for k in args.keywords {
            match k.name {
                "dtype" => dtype = Some(&k.value),
                "value" => value = Some(&k.value),
                _ => return Err(self.unknown_keyword(k, "R.Prim", &["dtype", "value"])),
            }
        }
        let dtype = match dtype {
            Some(e) => self.dtype(e)?.unwrap_or(DType::Int64),
            None => DType::Int64,
        };
        let value = match value {
            Some(e) => Some(self.dim(e)?),
            None => None,
        };
        Ok(self.intern(TypeData::Prim { dtype, value }))
    }

    fn callable_type(&mut self, args: Args<'_, 's>) -> Res<Type> {
        let (mut params, mut ret, mut pure) = match args.positional {
            [] => (None, None, None),
            [one] => (Some(one), None, None),
            [one, two] => (Some(one), Some(two), None),
            [one, two, three, ..] => (Some(one), Some(two), Some(three)),
        };
        for k in args.keywords {
            match k.name {
                "params" => params = Some(&k.value),
                "ret" => ret = Some(&k.value),
                "purity" | "pure" => pure = Some(&k.value),
                _ => {
                    return Err(self.unknown_keyword(
                        k,
                        "R.Callable",
                        &["params", "ret", "purity"],
                    ));
                }
            }
        }
        let params = match params {
            None | Some(Expr { kind: ExprKind::None, .. }) => None,
            Some(e) => match e.as_sequence() {
                Some(items) => {
                    let types: Res<Vec<Type>> = items.iter().map(|e| self.annotation(e)).collect();
                    Some(types?.into())
                }
                None => Some(vec![self.annotation(e)?].into()),
            },
        };
        let ret = match ret {
            Some(e) => self.annotation(e)?,
            None => self.intern(TypeData::Any),
        };
        let pure = !matches!(pure, Some(Expr { kind: ExprKind::Bool(false), .. }));
        Ok(self.intern(TypeData::Callable { params, ret, pure }))
    }
}

/// Whether a tuple is written without parentheses, like `(n, k), "float32"` and unlike `(n, k)`.
fn is_bare(tuple: &Expr<'_>, items: &[Expr<'_>]) -> bool {
    items.first().is_some_and(|first| first.range.start == tuple.range.start)
}
