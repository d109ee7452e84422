//! Parsing of constants, scalars and shapes in graph functions.

use pliant_ir::relax::{Expr as IrExpr, TypeData};
use pliant_ir::{DType, Sym};

use super::FuncParser;
use super::unresolved_values::Val;
use crate::parser_context::Path;
use crate::python::ast::{Call, Expr, ExprKind};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// Parses `R.const(value, dtype)`. The default type is bool for bools, float32 for floats and int32 for integers.
    pub(super) fn constant(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let value = call.args.first().or_else(|| self.keyword(call, &["value"]));
        let dtype = call.args.get(1).or_else(|| self.keyword(call, &["dtype"]));
        let Some(value) = value else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                "R.const needs a value as its first argument",
            ));
        };
        let dtype = match dtype {
            Some(d) => self.dtype(d)?,
            None => None,
        };
        let mut items = Vec::new();
        let shape = match crate::literals::nested(value, &mut items) {
            Some(shape) => shape,
            None => {
                items.clear();
                let val = self.value(value)?;
                if let Val::Tensor(t) = val {
                    return Ok(self.b.func_mut().constant(t));
                }
                match self.nested_val(&val, &mut items) {
                    Some(shape) => shape,
                    None => {
                        let message = "R.const takes a number, a tensor, or lists of numbers of equal lengths";
                        return Err(self.error(ErrorKind::Value, value.range, message));
                    }
                }
            }
        };
        let dtype = dtype.unwrap_or_else(|| crate::literals::default_dtype(&items));
        match crate::literals::tensor(&items, &shape, dtype) {
            Some(t) => Ok(self.b.func_mut().constant(t)),
            None => Err(self.error(
                ErrorKind::Value,
                value.range,
                format!("the value of the constant does not fit its data type {dtype}"),
            )),
        }
    }

    fn nested_val(&self, val: &Val, items: &mut Vec<crate::literals::Number>) -> Option<Vec<i64>> {
        use crate::literals::Number;
        match val {
            Val::Float(v, _) => items.push(Number::of_float(*v)),
            Val::Bool(b) => items.push(Number::of_bool(*b)),
            Val::Seq(rows) => {
                let mut inner: Option<Vec<i64>> = None;
                for row in rows {
                    let shape = self.nested_val(row, items)?;
                    if inner.get_or_insert_with(|| shape.clone()) != &shape {
                        return None;
                    }
                }
                let mut shape = vec![rows.len() as i64];
                shape.extend(inner.unwrap_or_default());
                return Some(shape);
            }
            other => items.push(Number::of_int(
                self.as_sym(other).and_then(|s| self.b.func().syms.as_int(s))?,
            )),
        }
        Some(Vec::new())
    }

    pub(super) fn prim_value(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let arg = self.one_arg("R.prim_value", e, call)?;
        let val = self.value(arg)?;
        match &val {
            Val::Expr(x) if self.as_sym(&val).is_none() => match self.ty_of(*x) {
                TypeData::Prim { .. } => Ok(val),
                _ => Err(self.error(ErrorKind::Value, arg.range, "the argument of R.prim_value must be a number or a scalar, not a tensor or another value")),
            },
            Val::Sym(..) | Val::Float(..) | Val::Bool(_) | Val::Expr(_) => {
                let e = self.expr_of(val, None, arg.range)?;
                Ok(Val::Expr(e))
            }
            other => {
                let message = format!("the argument of R.prim_value must be a number, not {}", other.describe());
                Err(self.error(ErrorKind::Value, arg.range, message))
            }
        }
    }

    pub(super) fn shape_value(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let arg = self.one_arg("R.shape", e, call)?;
        let dims: Vec<Sym> = match arg.as_sequence() {
            Some(items) if !items.iter().any(|i| matches!(i.kind, ExprKind::Starred(_))) => {
                items.iter().map(|e| self.dim(e)).collect::<Res<_>>()?
            }
            _ => {
                let val = self.value(arg)?;
                match self.as_dims(&val) {
                    Some(dims) => dims,
                    None => {
                        return Err(self.error(
                            ErrorKind::Value,
                            arg.range,
                            "the argument of R.shape must be a list of dims, such as [n, 4]",
                        ));
                    }
                }
            }
        };
        Ok(self.b.func_mut().shape(&dims))
    }

    /// Evaluates calls of functions in the namespace `T` that graph functions may use in dims and
    /// scalars, such as `T.min(n, 4)` and `T.int64(3)`.
    pub(super) fn scalar_call(&mut self, path: &Path, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        if let Some(dtype) = crate::parser_context::parse_dtype(&path.name) {
            return self.typed_scalar(dtype, e, call);
        }
        let arg = |i: usize| call.args.get(i);
        match (path.name.as_str(), call.args.len()) {
            ("Cast" | "cast", 2) => {
                let dtype = arg(0).map(|a| self.dtype(a)).transpose()?.flatten();
                let val = self.value(&call.args[1])?;
                match (self.as_sym(&val), dtype) {
                    (Some(s), Some(d)) => Ok(Val::Sym(s, Some(d))),
                    _ => Err(self.error(
                        ErrorKind::Value,
                        e.range,
                        "in a graph function, T.Cast can only convert an integer dim or scalar to a data type",
                    )),
                }
            }
            ("And" | "Or", 2) => {
                let (a, b) = (self.dim(&call.args[0])?, self.dim(&call.args[1])?);
                let syms = &mut self.b.func_mut().syms;
                let sym = if path.name == "And" { syms.and(a, b) } else { syms.or(a, b) };
                Ok(Val::Sym(sym, Some(DType::Bool)))
            }
            ("Not", 1) => {
                let a = self.dim(&call.args[0])?;
                Ok(Val::Sym(self.b.func_mut().syms.not(a), Some(DType::Bool)))
            }
            ("Select" | "if_then_else", 3) => {
                let c = self.dim(&call.args[0])?;
                let (a, b) = (self.dim(&call.args[1])?, self.dim(&call.args[2])?);
                Ok(Val::Sym(self.b.func_mut().syms.select(c, a, b), None))
            }
            (
                name @ ("min" | "max" | "floordiv" | "floormod" | "ceildiv" | "indexdiv"
                | "indexmod"),
                2,
            ) => {
                let (a, b) = (self.dim(&call.args[0])?, self.dim(&call.args[1])?);
                let syms = &mut self.b.func_mut().syms;
                let divides = !matches!(name, "min" | "max");
                if divides && syms.as_int(b) == Some(0) {
                    return Err(self.error(
                        ErrorKind::Value,
                        e.range,
                        "division by zero: the divisor of a dim is the constant 0",
                    ));
                }
                let sym = match name {
                    "min" => syms.min(a, b),
                    "max" => syms.max(a, b),
                    "ceildiv" => syms.ceildiv(a, b),
                    "floormod" | "indexmod" => syms.floormod(a, b),
                    _ => syms.floordiv(a, b),
                };
                Ok(Val::Sym(sym, None))
            }
            ("var" | "size_var" | "Var" | "SizeVar", _) => Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                "a symbol must be declared in a separate statement",
                "write: n = T.int64()",
            )),
            _ => self.unknown_construct(path, call.func.range),
        }
    }

    fn typed_scalar(&mut self, dtype: DType, e: &Expr<'s>, call: &Call<'s>) -> Res<Val> {
        let [arg] = call.args.as_slice() else {
            return Err(self.error_help(
                ErrorKind::Structure,
                e.range,
                "a symbol must be declared in a separate statement",
                format!("write: n = T.{dtype}()"),
            ));
        };
        let val = self.value(arg)?;
        match &val {
            Val::Float(v, _) if dtype.is_float() => Ok(Val::Float(*v, Some(dtype))),
            Val::Str(s) if dtype.is_float() => match crate::literals::named_float(s) {
                Some(v) => Ok(Val::Float(v, Some(dtype))),
                None => {
                    Err(self.error(ErrorKind::Value, arg.range, format!("the string \"{s}\" does not name a number (only \"inf\", \"-inf\" and \"nan\" do)")))
                }
            },
            Val::Bool(b) if !dtype.is_float() => Ok(Val::Sym(self.int(i64::from(*b)), Some(dtype))),
            _ => match self.as_sym(&val) {
                Some(s) if !dtype.is_float() => Ok(Val::Sym(s, Some(dtype))),
                Some(s) => match self.b.func().syms.as_int(s) {
                    Some(v) => Ok(Val::Float(v as f64, Some(dtype))),
                    None => Err(self.error(
                        ErrorKind::Value,
                        arg.range,
                        format!("T.{dtype} cannot convert a symbolic integer to a float"),
                    )),
                },
                None => {
                    let message = format!("the argument of T.{dtype} must be a number, not {}", val.describe());
                    Err(self.error(ErrorKind::Value, arg.range, message))
                }
            },
        }
    }
}
