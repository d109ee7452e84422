//! Parsing of buffer types, `match_buffer`, allocations, slices and regions.

use pliant_ir::tir::{BinOp, Buffer, BufferData, BufferRegion, Expr as IrExpr, ExprData, Scope};
use pliant_tensor::DType;

use super::{Local, PrimParser};
use crate::python::ast::{Expr, ExprKind, Keyword, Range};
use crate::script_errors::{ErrorKind, Res};

/// The arguments of a buffer type, written in parentheses or brackets.
pub(super) struct BufferArgs<'e, 's> {
    positional: &'e [Expr<'s>],
    keywords: &'e [Keyword<'s>],
    range: Range,
}

/// Parameters of a buffer that are ignored, because they do not affect the semantics.
const IGNORED_PARAMETERS: &[&str] = &["align", "offset_factor"];

/// Parameters that change the semantics of a buffer, with the reasons why only their default values are accepted.
const UNSUPPORTED_PARAMETERS: &[(&str, &str)] = &[
    ("data", "a buffer in the memory of another one; index that buffer instead"),
    ("buffer_type", "a broadcasting buffer; only \"default\" buffers are supported"),
    ("axis_separators", "a buffer that is split into several allocations"),
    ("type", "a custom buffer type; only \"default\" buffers are supported"),
    ("layout", "a buffer with a custom layout; only row-major buffers and strides are supported"),
    ("allocated_addr", "a buffer at a fixed address"),
];

impl<'s> PrimParser<'_, 's> {
    /// The arguments of `T.Buffer(...)` or `T.Buffer[...]`; `None` for other expressions.
    pub(super) fn buffer_args<'e>(&self, e: &'e Expr<'s>) -> Option<BufferArgs<'e, 's>> {
        let is_buffer = |head: &Expr<'s>| {
            matches!(
                self.tir_name(head).as_deref(),
                Some("Buffer" | "buffer" | "buffer_decl" | "Tensor")
            )
        };
        match &e.kind {
            ExprKind::Call(call) if is_buffer(&call.func) => Some(BufferArgs {
                positional: &call.args,
                keywords: &call.keywords,
                range: e.range,
            }),
            ExprKind::Subscript(head, index) if is_buffer(head) => {
                let positional = match &index.kind {
                    // `T.Buffer[(n, 4)]` contains a shape, `T.Buffer[(n, 4), "f32"]` a shape and a type.
                    ExprKind::Tuple(items)
                        if items.first().is_some_and(|f| f.range.start == index.range.start) =>
                    {
                        items.as_slice()
                    }
                    _ => std::slice::from_ref(&**index),
                };
                Some(BufferArgs { positional, keywords: &[], range: e.range })
            }
            _ => None,
        }
    }

    /// Evaluates the arguments of a buffer type to the properties of the buffer `name`.
    pub(super) fn buffer_type(&mut self, args: &BufferArgs<'_, 's>, name: &str) -> Res<BufferData> {
        let mut shape = args.positional.first();
        let mut dtype = args.positional.get(1);
        let (mut strides, mut offset, mut scope) = (None, None, None);
        for k in args.keywords {
            match k.name {
                "shape" => shape = Some(&k.value),
                "dtype" => dtype = Some(&k.value),
                "strides" => strides = Some(&k.value),
                "elem_offset" => offset = Some(&k.value),
                "scope" => scope = Some(&k.value),
                name if IGNORED_PARAMETERS.contains(&name) => {}
                name if UNSUPPORTED_PARAMETERS.iter().any(|r| r.0 == name) => {
                    self.refuse_parameter(k)?
                }
                _ => {
                    let known = ["shape", "dtype", "strides", "elem_offset", "scope"];
                    let help = crate::script_errors::did_you_mean(k.name, known);
                    let message =
                        format!("the declaration of a buffer has no parameter '{}'", k.name);
                    return Err(self.cx.error_maybe(ErrorKind::Arguments, k.range, message, help));
                }
            }
        }
        let Some(shape) = shape else {
            return Err(self.error(
                ErrorKind::Arguments,
                args.range,
                "the declaration of a buffer needs a shape as its first argument",
            ));
        };
        let dtype = match dtype {
            Some(e) => match self.ty_of_local(e)? {
                Some(ty) => ty.dtype,
                None => self.cx.dtype(e)?.unwrap_or(DType::Float32),
            },
            None => DType::Float32,
        };
        let shape = self.exprs(shape)?;
        let strides = match strides {
            Some(e) if !matches!(e.kind, ExprKind::None) => self.exprs(e)?,
            _ => Vec::new(),
        };
        if !strides.is_empty() && strides.len() != shape.len() {
            let message = format!(
                "the buffer '{name}' has {} strides, but {} dims",
                strides.len(),
                shape.len()
            );
            return Err(self.error(ErrorKind::Arguments, args.range, message));
        }
        let elem_offset = match offset {
            Some(e) if !matches!(e.kind, ExprKind::None) => Some(self.index(e)?),
            _ => None,
        };
        let scope = match scope.and_then(Expr::as_str) {
            Some(name) => match Scope::from_name(name) {
                Some(scope) => scope,
                None => {
                    return Err(self.error_help(
                        ErrorKind::Value,
                        args.range,
                        format!("unknown memory scope \"{name}\" of a buffer"),
                        "the scopes of a CPU are \"global\" and \"local\"",
                    ));
                }
            },
            None => Scope::Global,
        };
        Ok(BufferData { name: name.into(), dtype, shape, strides, elem_offset, scope })
    }

    /// Reports an error for a parameter that changes the semantics of the buffer, unless it has the default value.
    fn refuse_parameter(&self, k: &Keyword<'s>) -> Res<()> {
        let default = match &k.value.kind {
            ExprKind::None => true,
            _ if k.value.as_sequence().is_some_and(<[_]>::is_empty) => true,
            _ => matches!(k.value.as_str(), Some("" | "default")),
        };
        if default {
            return Ok(());
        }
        let why = UNSUPPORTED_PARAMETERS.iter().find(|r| r.0 == k.name).map_or("", |r| r.1);
        let message =
            format!("the parameter '{}' of a buffer is not supported: it asks for {why}", k.name);
        Err(self.error(ErrorKind::Unsupported, k.range, message))
    }

    /// Evaluates the dims that an expression denotes. A single value is one dim.
    fn exprs(&mut self, e: &Expr<'s>) -> Res<Vec<IrExpr>> {
        match e.as_sequence() {
            Some(items) => items.iter().map(|e| self.dim(e)).collect(),
            None => match self.val(e)? {
                super::expressions::Val::Seq(items) => {
                    items.into_iter().map(|v| self.index_of(v, e.range)).collect()
                }
                val => Ok(vec![self.index_of(val, e.range)?]),
            },
        }
    }

    /// Evaluates a dim. A quoted name has the same meaning as an unquoted one.
    fn dim(&mut self, e: &Expr<'s>) -> Res<IrExpr> {
        if let ExprKind::Str(std::borrow::Cow::Borrowed(name)) = e.kind
            && !name.is_empty()
            && name.chars().all(|c| c == '_' || c.is_alphanumeric())
            && !name.starts_with(|c: char| c.is_ascii_digit())
        {
            let v = match self.scope.get(name) {
                Some(Local::Var(v)) => *v,
                _ => {
                    let v = self.f.size_var(name);
                    self.define(name, Local::Var(v));
                    v
                }
            };
            return Ok(self.f.var_expr(v));
        }
        self.index(e)
    }

    /// Parses `A = T.match_buffer(a, (n, 4), "float32")`, which declares the buffer of a handle parameter (a parameter that
    /// stands for a tensor).
    pub(super) fn match_buffer(&mut self, target: &Expr<'s>, value: &Expr<'s>) -> Res<()> {
        let (Some(name), Some(call)) = (target.as_name(), value.as_call()) else {
            return Err(self.error(
                ErrorKind::Structure,
                target.range,
                "the result of T.match_buffer must be assigned to a single name",
            ));
        };
        let param = call.args.first().or_else(|| keyword(&call.keywords, "param"));
        let Some(param) = param else {
            return Err(self.error(
                ErrorKind::Arguments,
                value.range,
                "T.match_buffer needs a handle parameter as its first argument",
            ));
        };
        let handle = match param.as_name().and_then(|n| self.scope.get(n)) {
            Some(Local::Handle(v)) => *v,
            Some(Local::Broken) => return Err(crate::script_errors::Reported),
            None if param.as_name().is_some() => {
                return Err(self.unknown_name(param.as_name().unwrap_or(""), param.range));
            }
            _ if matches!(param.kind, ExprKind::Subscript(..)) => {
                return Err(self.error_help(
                    ErrorKind::Unsupported,
                    param.range,
                    "T.match_buffer of a region of another buffer is not supported",
                    "index the other buffer directly",
                ));
            }
            _ => {
                return Err(self.error_help(
                    ErrorKind::Value,
                    param.range,
                    "the first argument of T.match_buffer must be a handle parameter",
                    "declare the parameter as T.handle",
                ));
            }
        };
        if self.f.buffer_map.contains_key(&handle) {
            let message =
                format!("'{}' is already matched with a buffer", self.cx.slice(param.range));
            return Err(self.error(ErrorKind::Structure, value.range, message));
        }
        let rest = if call.args.is_empty() { &call.args[..] } else { &call.args[1..] };
        let keywords: &[Keyword<'s>] = &call.keywords;
        let args =
            BufferArgs { positional: rest, keywords: after_param(keywords), range: value.range };
        self.implicit = true;
        let data = self.buffer_type(&args, name);
        self.implicit = false;
        let b = self.f.add_buffer(data?);
        self.f.buffer_map.insert(handle, b);
        self.define(name, Local::Buffer(b));
        Ok(())
    }

    /// Creates a buffer from the arguments of an allocation such as `T.alloc_buffer((n, 4), "float32")`.
    pub(super) fn allocation(&mut self, name: &'s str, value: &Expr<'s>) -> Res<Buffer> {
        let Some(call) = value.as_call() else {
            return Err(self.error(
                ErrorKind::Arguments,
                value.range,
                "the declaration of a buffer needs a shape as its first argument",
            ));
        };
        let args =
            BufferArgs { positional: &call.args, keywords: &call.keywords, range: value.range };
        let data = self.buffer_type(&args, name)?;
        if !data.strides.is_empty() || data.elem_offset.is_some() {
            return Err(self.error_help(
                ErrorKind::Unsupported,
                value.range,
                "an allocated buffer cannot have strides or an element offset",
                "remove strides and elem_offset, which are only for buffers of parameters",
            ));
        }
        let b = self.f.add_buffer(data);
        self.define(name, Local::Buffer(b));
        Ok(b)
    }

    // ---- ranges ----

    /// The extent of the range from `start` to `end`. If `end` is `start + n`, as the printer writes ranges, the extent is `n`.
    pub(super) fn extent(&mut self, start: IrExpr, end: IrExpr) -> IrExpr {
        if let (Some(a), Some(b)) = (self.f.as_int(start), self.f.as_int(end))
            && let Some(n) = b.checked_sub(a)
        {
            return self.f.int(n);
        }
        if let ExprData::Binary(BinOp::Add, a, n) = *self.f.expr(end)
            && a == start
        {
            return n;
        }
        if self.f.as_int(start) == Some(0) {
            return end;
        }
        self.f.binary(BinOp::Sub, end, start)
    }

    /// Evaluates a slice or an index to its start and extent in dimension `dim` of buffer `b`. A missing start is 0; a missing end
    /// is the size of the dimension.
    pub(super) fn slice(&mut self, e: &Expr<'s>, b: Buffer, dim: usize) -> Res<(IrExpr, IrExpr)> {
        let ExprKind::Slice(lower, upper, step) = &e.kind else {
            let start = self.index(e)?;
            return Ok((start, self.f.int(1)));
        };
        if let Some(step) = step
            && !matches!(step.kind, ExprKind::Int(1))
        {
            return Err(self.error(
                ErrorKind::Unsupported,
                step.range,
                "a slice of a buffer must have step 1",
            ));
        }
        let start = match lower {
            Some(e) => self.index(e)?,
            None => self.f.int(0),
        };
        let end = match upper {
            Some(e) => self.index(e)?,
            None => self.f.buffer(b).shape.get(dim).copied().unwrap_or(start),
        };
        Ok((start, self.extent(start, end)))
    }

    /// Parses `A[0:n, i]` as a region.
    pub(super) fn region(&mut self, e: &Expr<'s>) -> Res<BufferRegion> {
        let (head, index) = match &e.kind {
            ExprKind::Subscript(head, index) => (&**head, Some(&**index)),
            _ => (e, None),
        };
        let buffer = match head.as_name().and_then(|n| self.scope.get(n)) {
            Some(Local::Buffer(b)) => *b,
            Some(Local::Broken) => return Err(crate::script_errors::Reported),
            None if head.as_name().is_some() => {
                return Err(self.unknown_name(head.as_name().unwrap_or(""), head.range));
            }
            _ => {
                return Err(self.error(
                    ErrorKind::Value,
                    e.range,
                    "a region of a buffer is required here, such as A[0:n, i]",
                ));
            }
        };
        let Some(index) = index else {
            // A buffer without indices is the whole buffer.
            let shape = self.f.buffer(buffer).shape.clone();
            let zero = self.f.int(0);
            return Ok(BufferRegion {
                buffer,
                region: shape.into_iter().map(|d| (zero, d)).collect(),
            });
        };
        let items = match &index.kind {
            ExprKind::Tuple(items) => items.as_slice(),
            _ => std::slice::from_ref(index),
        };
        self.check_rank(buffer, items.len(), e.range)?;
        let region: Res<Vec<_>> =
            items.iter().enumerate().map(|(i, e)| self.slice(e, buffer, i)).collect();
        Ok(BufferRegion { buffer, region: region? })
    }
}

fn keyword<'e, 's>(keywords: &'e [Keyword<'s>], name: &str) -> Option<&'e Expr<'s>> {
    keywords.iter().find(|k| k.name == name).map(|k| &k.value)
}

/// The keyword arguments of `T.match_buffer` that describe the buffer: all except a leading `param=`, which names the handle
/// parameter.
fn after_param<'e, 's>(keywords: &'e [Keyword<'s>]) -> &'e [Keyword<'s>] {
    match keywords.split_first() {
        Some((first, rest)) if first.name == "param" => rest,
        _ => keywords,
    }
}
