//! Matches values against types: checks the values, and defines the new symbols of the types.

use pliant_ir::relax::{TensorShape, Type, TypeData, size_origins};
use pliant_ir::{Sym, SymVar};
use pliant_sym::SymKind;
use pliant_tensor::{DType, Tensor};

use super::Frame;
use crate::interp_error::{Result, eval_error};
use crate::runtime_values::plural;
use crate::{InterpError, Value};

/// A dim of a value, or an integer scalar, together with the size that its type requires.
struct Dim<'a> {
    /// The size, as a symbolic integer, that the type of the value requires for this dim or scalar.
    want: Sym,
    /// The size that this dim of the value has, or the value of the scalar.
    actual: i64,
    /// A description of the value for messages, such as `'x'`.
    subject: &'a str,
    /// The indices of the nested tuple fields that lead from the described value to the tensor, shape or scalar; empty if the value
    /// is not a tuple.
    path: Vec<usize>,
    /// The index of this dim in its tensor or shape; `None` for scalars.
    axis: Option<usize>,
}

impl Dim<'_> {
    /// Describes the location of the dim for messages, as in `'x'[0] dim 1`.
    fn location(&self) -> String {
        let mut text = field(self.subject, &self.path);
        if let Some(axis) = self.axis {
            text.push_str(&format!(" dim {axis}"));
        }
        text
    }
}

/// Describes a nested tuple field for messages, as in `'x'[0][1]`.
fn field(subject: &str, path: &[usize]) -> String {
    path.iter().fold(subject.to_string(), |text, i| format!("{text}[{i}]"))
}

impl Frame {
    /// Checks values against types and defines the new symbols of the types. Each item is a type, a value, and a description of the
    /// value.
    pub(super) fn define(&mut self, items: &[(Type, &Value, &str)]) -> Result<()> {
        let mut dims = Vec::new();
        for &(ty, value, subject) in items {
            self.collect(ty, value, subject, &mut Vec::new(), &mut dims)?;
        }
        self.match_dims(&dims, true)
    }

    /// Checks a value against a type. Sizes in the type that contain undefined symbols are not checked.
    pub(super) fn check(&mut self, ty: Type, value: &Value, subject: &str) -> Result<()> {
        let mut dims = Vec::new();
        self.collect(ty, value, subject, &mut Vec::new(), &mut dims)?;
        self.match_dims(&dims, false)
    }

    /// Checks a value against a type, except for the sizes of dims and the values of integer scalars. Appends these to `dims`,
    /// each with the size that the type requires.
    fn collect<'s>(
        &self,
        ty: Type,
        value: &Value,
        subject: &'s str,
        path: &mut Vec<usize>,
        dims: &mut Vec<Dim<'s>>,
    ) -> Result<()> {
        let wrong = |wanted: String, path: &[usize]| {
            let (name, location) = (&self.name, field(subject, path));
            let text = format!("{name}: {location} must be {wanted}, but is {}", value.describe());
            Err(InterpError::type_error(text))
        };
        let mut add = |list: &[Sym], actual: &[i64], scalar: bool| {
            for (i, (&want, &actual)) in list.iter().zip(actual).enumerate() {
                let (path, axis) = (path.clone(), (!scalar).then_some(i));
                dims.push(Dim { want, actual, subject, path, axis });
            }
        };
        match self.func.types.get(ty) {
            TypeData::Any => {}
            TypeData::Tensor { shape, .. } => {
                match (self.tensor(ty, value, subject, path), shape) {
                    (Ok(tensor), TensorShape::Dims(list)) => add(list, tensor.shape(), false),
                    (Ok(_), _) => {}
                    (Err(problem), _) => {
                        return Err(InterpError::type_error(format!("{}: {problem}", self.name)));
                    }
                }
            }
            TypeData::Shape { dims: list, ndim } => match value {
                Value::Shape(s) if ndim.is_none_or(|n| n as usize == s.len()) => {
                    if let Some(list) = list {
                        add(list, s, false);
                    }
                }
                _ => {
                    let rank = ndim
                        .map_or(String::new(), |n| format!(" of {}", plural(i64::from(n), "dim")));
                    return wrong(format!("a shape{rank}"), path);
                }
            },
            TypeData::Prim { dtype, value: want } => match value {
                Value::Int(v) if dtype.is_integer() => add(want.as_slice(), &[*v], true),
                Value::Bool(v) if dtype.is_bool() => add(want.as_slice(), &[i64::from(*v)], true),
                Value::Float(_) if dtype.is_float() => {}
                _ => return wrong(format!("{} scalar", dtype.with_article()), path),
            },
            TypeData::Tuple(fields) => match value {
                // Calls without a result return nothing or an empty tuple.
                Value::None if fields.is_empty() => {}
                Value::Tuple(items) if items.len() == fields.len() => {
                    for (i, (&ty, item)) in fields.iter().zip(items.iter()).enumerate() {
                        path.push(i);
                        self.collect(ty, item, subject, path, dims)?;
                        path.pop();
                    }
                }
                _ => {
                    let len = plural(fields.len() as i64, "value");
                    return wrong(format!("a tuple of {len}"), path);
                }
            },
            TypeData::Callable { .. } => {
                if !matches!(value, Value::Func(_)) {
                    return wrong("a function".to_string(), path);
                }
            }
        }
        Ok(())
    }

    /// Returns the value as a tensor of the given type. The dims of the tensor are not checked. The error states the expected and
    /// the actual type of the value, which is at `path` in `subject`.
    fn tensor<'v>(
        &self,
        ty: Type,
        value: &'v Value,
        subject: &str,
        path: &[usize],
    ) -> std::result::Result<&'v Tensor, String> {
        let (data, rank) = (self.func.types.get(ty), self.func.rank_of(ty));
        let dtype = data.dtype();
        let fits = |t: &&Tensor| {
            rank.is_none_or(|n| n as usize == t.ndim()) && dtype.is_none_or(|d| d == t.dtype())
        };
        let Some(tensor) = value.as_tensor().filter(fits) else {
            let wanted = dtype.map_or("a".to_string(), DType::with_article);
            let rank =
                rank.map_or(String::new(), |n| format!(" of {}", plural(i64::from(n), "dim")));
            let (location, actual) = (field(subject, path), value.describe());
            return Err(format!("{location} must be {wanted} tensor{rank}, but is {actual}"));
        };
        if let TypeData::Tensor { shape: TensorShape::Var(v), .. } = data
            && let Some(Value::Shape(want)) = self.vars.get(v)
            && want[..] != *tensor.shape()
        {
            let (location, name) = (field(subject, path), &self.func.var(*v).name);
            return Err(format!(
                "{location} must have the shape {want:?}, the value of '{name}', but has the shape {:?}",
                tensor.shape()
            ));
        }
        Ok(tensor)
    }

    /// Checks sizes, and defines symbols if `define` is set. Dims that are a single symbol are
    /// matched first, in order. Composite dims, such as `n * 2`, follow; each can define one
    /// symbol.
    fn match_dims(&mut self, dims: &[Dim<'_>], define: bool) -> Result<()> {
        let func = self.func.clone();
        let mut composite = Vec::new();
        for dim in dims {
            if func.syms.as_int(dim.want).is_some() {
                self.check_dim(dim)?;
                continue;
            }
            match func.syms.as_var(dim.want) {
                Some(var) if self.syms.contains_key(&var) => self.check_dim(dim)?,
                Some(var) if define => self.define_sym(var, dim.actual, dim),
                Some(_) => {}
                None => composite.push(dim),
            }
        }
        while !composite.is_empty() {
            let before = composite.len();
            let mut unsolved = Vec::new();
            for dim in composite {
                let free = func.syms.free_vars(dim.want);
                let mut unknown = free.into_iter().filter(|v| !self.syms.contains_key(v));
                match (unknown.next(), unknown.next()) {
                    (None, _) => self.check_dim(dim)?,
                    (Some(var), None) if define => self.solve(dim, var)?,
                    _ => unsolved.push(dim),
                }
            }
            if unsolved.len() == before {
                return if define { Err(self.unsolvable(unsolved[0])) } else { Ok(()) };
            }
            composite = unsolved;
        }
        Ok(())
    }

    fn define_sym(&mut self, var: SymVar, value: i64, dim: &Dim<'_>) {
        self.syms.insert(var, value);
        self.origins.insert(var, dim.location());
    }

    fn check_dim(&self, dim: &Dim<'_>) -> Result<()> {
        let want = self.size(dim.want)?;
        if want == dim.actual { Ok(()) } else { Err(self.mismatch(dim, want)) }
    }

    fn mismatch(&self, dim: &Dim<'_>, want: i64) -> InterpError {
        let syms = &self.func.syms;
        let divisible = size_origins::DivisibleSizes::of(&self.func);
        let mut wanted = match syms.as_int(dim.want) {
            Some(v) => v.to_string(),
            None => {
                format!(
                    "{} = {want}",
                    divisible.in_user_symbols(&syms.display(dim.want).to_string())
                )
            }
        };
        let (function, location, actual) = (&self.name, dim.location(), dim.actual);
        let origin = |v| self.origins.get(&v).map(String::as_str);
        if let Some(origins) =
            size_origins::describe_origins(syms, dim.want, &location, &divisible, origin)
        {
            wanted.push_str(&format!(" (from {origins})"));
        }
        InterpError::type_error(format!(
            "{function}: {location} must equal {wanted}, but is {actual}"
        ))
    }

    fn unsolvable(&self, dim: &Dim<'_>) -> InterpError {
        let (function, location) = (&self.name, dim.location());
        let size = self.func.syms.display(dim.want);
        InterpError::unsupported(format!(
            "{function}: {location} is declared with the size {size}, from which the interpreter cannot compute its symbols; \
             declare each of these symbols alone as the size of some dim"
        ))
    }

    /// Defines the symbol `var` so that the required size of a dim, which has the form `slope * var + offset`, equals the actual
    /// size.
    fn solve(&mut self, dim: &Dim<'_>, var: SymVar) -> Result<()> {
        if self.degree(dim.want, var) != Some(1) {
            return Err(self.unsolvable(dim));
        }
        let (zero, one) = (self.size_at(dim.want, var, 0)?, self.size_at(dim.want, var, 1)?);
        let (slope, difference) =
            (i128::from(one) - i128::from(zero), i128::from(dim.actual) - i128::from(zero));
        // If there is no solution, the value is 0, and the check of the whole term reports the error.
        let value = if slope != 0 && difference % slope == 0 && difference / slope >= 0 {
            i64::try_from(difference / slope).unwrap_or(0)
        } else {
            0
        };
        self.define_sym(var, value, dim);
        self.check_dim(dim)
    }

    /// Evaluates a term with the value `at` for `var`.
    fn size_at(&self, sym: Sym, var: SymVar, at: i64) -> Result<i64> {
        let syms = &self.func.syms;
        let value = |v: SymVar| if v == var { Some(at) } else { self.syms.get(&v).copied() };
        syms.evaluate(sym, &value).map_err(|e| eval_error(e, &|| syms.display(sym).to_string()))
    }

    /// Returns the degree of a term as a polynomial in `var`; `None` if it is not a polynomial in `var`.
    fn degree(&self, sym: Sym, var: SymVar) -> Option<u32> {
        let syms = &self.func.syms;
        if !syms.contains_var(sym, var) {
            return Some(0);
        }
        match syms.kind(sym) {
            SymKind::Var(_) => Some(1),
            SymKind::Sum { terms, .. } => {
                terms.iter().try_fold(0, |d, t| Some(self.degree(t.1, var)?.max(d)))
            }
            SymKind::Product(list) => {
                list.iter().try_fold(0, |d, &s| Some(self.degree(s, var)? + d))
            }
            _ => None,
        }
    }
}
