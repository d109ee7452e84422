//! Values of expressions whose context is not known yet, and their conversions to operands, dims
//! and attributes.

use pliant_ir::relax::{Expr as IrExpr, ExprData, TypeData};
use pliant_ir::{AttrValue, DType, Sym};
use pliant_tensor::Tensor;

use super::FuncParser;
use crate::host_environment::{HostSym, HostSymOp, HostValue};
use crate::parser_context::Path;
use crate::python::ast::Range;
use crate::script_errors::{ErrorKind, Res};

/// The value of an expression before its context is known. The context determines whether `(n, 4)` is a shape, a tuple or an
/// attribute.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// An expression of the graph that is not bound to a variable yet.
    Expr(IrExpr),
    /// A constant or symbolic integer, with its data type if stated.
    Sym(Sym, Option<DType>),
    /// A float constant, with its data type if stated.
    Float(f64, Option<DType>),
    /// A Boolean constant.
    Bool(bool),
    /// A string constant.
    Str(String),
    /// An index function of a layout transformation, represented by its source text. It can only be
    /// an attribute.
    Lambda(String),
    /// The Python value `None`.
    None,
    /// A data type as a value.
    DType(DType),
    /// A tuple or list of other values.
    Seq(Vec<Val>),
    /// A dict from strings to other values.
    Map(Vec<(String, Val)>),
    /// A tensor of the surrounding Python program.
    Tensor(Tensor),
    /// A name of the script language that is not called, such as `R.add`.
    Path(Path),
    /// The module that contains the function, as in `cls.f`.
    Module,
    /// A value of the surrounding Python program that has no equivalent in scripts, given by the name of its type.
    Other(String),
}

impl Val {
    /// Describes the value for error messages.
    pub fn describe(&self) -> String {
        match self {
            Val::Expr(_) => "a value of the graph".into(),
            Val::Sym(..) => "an integer".into(),
            Val::Float(..) => "a float".into(),
            Val::Bool(_) => "a bool".into(),
            Val::Str(_) => "a string".into(),
            Val::Lambda(_) => "a lambda".into(),
            Val::None => "None".into(),
            Val::DType(_) => "a data type".into(),
            Val::Seq(_) => "a tuple".into(),
            Val::Map(_) => "a dict".into(),
            Val::Tensor(_) => "a tensor".into(),
            Val::Path(p) => format!("'{}'", p.name),
            Val::Module => "the module".into(),
            Val::Other(name) => format!("a Python object of type '{name}'"),
        }
    }
}

impl<'s> FuncParser<'_, 's> {
    /// Converts a value of the surrounding Python program to a value of the script.
    pub(super) fn host_value(&mut self, value: HostValue) -> Val {
        match value {
            HostValue::None => Val::None,
            HostValue::Int(v) => Val::Sym(self.int(v), None),
            HostValue::Float(v) => Val::Float(v, None),
            HostValue::Bool(v) => Val::Bool(v),
            HostValue::Str(v) => Val::Str(v),
            HostValue::DType(v) => Val::DType(v),
            HostValue::List(items) | HostValue::Tuple(items) => {
                Val::Seq(items.into_iter().map(|v| self.host_value(v)).collect())
            }
            HostValue::Map(items) => {
                Val::Map(items.into_iter().map(|(k, v)| (k, self.host_value(v))).collect())
            }
            HostValue::Tensor(t) => Val::Tensor(t),
            HostValue::Sym(s) => Val::Sym(self.host_sym(&s), None),
            HostValue::Path(path) => match crate::dialect_spellings::split(&path) {
                Some((ns, name)) => Val::Path(Path { ns, name: name.to_string() }),
                None => Val::Other(path),
            },
            HostValue::Func(name, func) => Val::Expr(self.captured_func(&name, func)),
            HostValue::Macro(_) => Val::Other("macro".into()),
            HostValue::Other(name) => Val::Other(name),
        }
    }

    fn host_sym(&mut self, sym: &HostSym) -> Sym {
        match sym {
            HostSym::Int(v) => self.int(*v),
            HostSym::Var(id, name) => {
                let known = self.host_syms.get(id).copied();
                let func = self.b.func_mut();
                let var = known.unwrap_or_else(|| func.fresh_sym(name));
                let sym = func.syms.var(var);
                self.host_syms.insert(*id, var);
                sym
            }
            HostSym::Binary(op, a, b) => {
                let (a, b) = (self.host_sym(a), self.host_sym(b));
                let syms = &mut self.b.func_mut().syms;
                match op {
                    HostSymOp::Add => syms.add(a, b),
                    HostSymOp::Sub => syms.sub(a, b),
                    HostSymOp::Mul => syms.mul(a, b),
                    HostSymOp::FloorDiv => syms.floordiv(a, b),
                    HostSymOp::FloorMod => syms.floormod(a, b),
                    HostSymOp::Min => syms.min(a, b),
                    HostSymOp::Max => syms.max(a, b),
                }
            }
        }
    }

    /// Converts the value to a symbolic integer if it is a symbol, or a scalar whose value is known; `None` for other values.
    pub(super) fn as_sym(&self, val: &Val) -> Option<Sym> {
        match val {
            Val::Sym(s, _) => Some(*s),
            Val::Expr(e) => match self.b.func().expr(*e) {
                ExprData::Int(s, _) => Some(*s),
                _ => match self.ty_of(*e) {
                    TypeData::Prim { value, .. } => *value,
                    _ => None,
                },
            },
            _ => None,
        }
    }

    /// Converts the value to a list of dims; `None` for other values.
    pub(super) fn as_dims(&self, val: &Val) -> Option<Vec<Sym>> {
        match val {
            Val::Seq(items) => items.iter().map(|v| self.as_sym(v)).collect(),
            Val::Expr(e) => match self.b.func().expr(*e) {
                ExprData::Shape(dims) => Some(dims.to_vec()),
                _ => match self.ty_of(*e) {
                    TypeData::Shape { dims: Some(dims), .. } => Some(dims.to_vec()),
                    _ => None,
                },
            },
            _ => None,
        }
    }

    /// Converts the value to an operand. A tuple of integers becomes a shape; other tuples stay tuples. A number becomes a scalar,
    /// or a constant of the data type `like` if that is set.
    pub(super) fn operand(&mut self, val: Val, like: Option<DType>, range: Range) -> Res<IrExpr> {
        let e = self.expr_of(val, like, range)?;
        Ok(self.b.operand(e))
    }

    /// Converts the value to an expression, and does not bind a call to a variable. A tuple of integers becomes a shape; other
    /// tuples stay tuples. A number becomes a scalar, or a constant of the data type `like` if that is set.
    pub(super) fn expr_of(&mut self, val: Val, like: Option<DType>, range: Range) -> Res<IrExpr> {
        let val = match (like, &val) {
            (Some(d), Val::Sym(s, None)) => match self.b.func().syms.as_int(*s) {
                Some(v) => return self.number(v as f64, v, d, range),
                None => val,
            },
            (Some(d), Val::Float(v, None)) => return self.number(*v, *v as i64, d, range),
            (Some(d), Val::Bool(v)) => return self.number(f64::from(*v), i64::from(*v), d, range),
            _ => val,
        };
        let func = self.b.func_mut();
        Ok(match val {
            Val::Expr(e) => e,
            Val::Sym(s, d) => func.int_value(s, d.unwrap_or(DType::Int64)),
            Val::Float(v, d) => func.float_value(v, d.unwrap_or(DType::Float64)),
            Val::Bool(v) => {
                let s = func.syms.int(i64::from(v));
                func.int_value(s, DType::Bool)
            }
            Val::Str(s) => func.str_value(&s),
            Val::DType(d) => func.dtype_value(d),
            Val::Tensor(t) => func.constant(t),
            Val::Seq(items) => {
                let whole = Val::Seq(items);
                if let Some(dims) = self.as_dims(&whole)
                    && let Val::Seq(items) = &whole
                    && !items.is_empty()
                    && items.iter().all(|v| matches!(v, Val::Sym(_, None)))
                {
                    return Ok(self.b.func_mut().shape(&dims));
                }
                let Val::Seq(items) = whole else { return Err(self.not_a_value("a tuple", range)) };
                let mut fields = Vec::with_capacity(items.len());
                for item in items {
                    fields.push(self.operand(item, None, range)?);
                }
                self.b.func_mut().tuple(&fields)
            }
            Val::Lambda(_) => {
                return Err(self.error_help(
                    ErrorKind::Value,
                    range,
                    "a lambda cannot be an operand of a graph function",
                    "write a local function: @R.function def f(x: ...): ...",
                ));
            }
            other => return Err(self.not_a_value(&other.describe(), range)),
        })
    }

    fn not_a_value(&self, what: &str, range: Range) -> crate::script_errors::Reported {
        self.error(
            ErrorKind::Value,
            range,
            format!("an operand must be a value of the graph function, not {what}"),
        )
    }

    /// Creates a scalar constant of the given data type: from `float` for float types, else from `int`.
    fn number(&mut self, float: f64, int: i64, dtype: DType, range: Range) -> Res<IrExpr> {
        let number = crate::literals::Number::of_float(float);
        let text = crate::literals::Number { int: int.into(), ..number };
        let tensor = crate::literals::tensor(&[text], &[], dtype).ok_or_else(|| {
            self.error(
                ErrorKind::Value,
                range,
                format!("the number {float} does not fit the data type {dtype}"),
            )
        })?;
        Ok(self.b.func_mut().constant(tensor))
    }

    /// Converts the value to an attribute value.
    pub(super) fn attr(&self, val: &Val, range: Range) -> Res<AttrValue> {
        Ok(match val {
            Val::None => AttrValue::None,
            Val::Bool(b) => AttrValue::Bool(*b),
            Val::Float(v, _) => AttrValue::float(*v),
            Val::Str(s) | Val::Lambda(s) => AttrValue::str(s),
            Val::DType(d) => AttrValue::DType(*d),
            Val::Seq(items) => {
                let items: Res<Vec<_>> = items.iter().map(|v| self.attr(v, range)).collect();
                AttrValue::List(items?)
            }
            Val::Map(items) => {
                let items: Res<Vec<_>> = items
                    .iter()
                    .map(|(k, v)| Ok((k.as_str().into(), self.attr(v, range)?)))
                    .collect();
                AttrValue::Map(items?)
            }
            Val::Sym(s, Some(dtype)) if dtype.is_bool() => {
                AttrValue::Bool(self.b.func().syms.as_int(*s) == Some(1))
            }
            other => {
                let syms = &self.b.func().syms;
                if let Some(v) = self.as_sym(other).and_then(|s| syms.as_int(s)) {
                    return Ok(AttrValue::Int(v));
                }
                if let Val::Expr(e) = other {
                    if let Some(dims) = self.as_dims(other) {
                        let ints: Option<Vec<i64>> = dims.iter().map(|&s| syms.as_int(s)).collect();
                        if let Some(ints) = ints {
                            return Ok(AttrValue::ints(ints));
                        }
                    }
                    match self.b.func().expr(*e) {
                        ExprData::Str(s) => {
                            return Ok(AttrValue::Str(self.b.func().str(*s).clone()));
                        }
                        ExprData::DType(d) => return Ok(AttrValue::DType(*d)),
                        ExprData::Float(bits, _) => return Ok(AttrValue::Float(*bits)),
                        _ => {}
                    }
                }
                if matches!(other, Val::Other(_))
                    && let Some(text) = self.cx.function_text(range)
                {
                    return Ok(AttrValue::Str(text.into()));
                }
                let what = match other {
                    Val::Sym(..) => "a symbolic integer".to_string(),
                    v => v.describe(),
                };
                return Err(self.error(
                    ErrorKind::Value,
                    range,
                    format!("the value of an attribute must be known at parse time, but is {what}"),
                ));
            }
        })
    }
}
