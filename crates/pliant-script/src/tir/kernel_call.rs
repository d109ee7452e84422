//! Parsing of kernel calls in loop functions: `T.call_kernel("name", operand=buffer, ..., attribute=value, ...)`.

use pliant_ir::relax::kernel_call::{find_kernel, unknown_keyword};
use pliant_ir::tir::{Expr as IrExpr, ExprData, Intrin, Ty, WHOLE_BUFFER};
use pliant_kernel_api::{Attr, AttrDefault, AttrType, Kernel, MAX_RANK};
use pliant_tensor::DType;

use super::PrimParser;
use super::expressions::Val;
use crate::python::ast::{Call, Expr, ExprKind, Keyword, Range};
use crate::script_errors::{ErrorKind, Res};

/// The arguments of a kernel call in the order of the kernel's declaration.
struct Args {
    /// For each operand, the expressions that describe it (address, rank, offset, dims, strides); `None` for absent operands.
    operands: Vec<Option<Vec<IrExpr>>>,
    numbers: Vec<Option<IrExpr>>,
}

impl<'s> PrimParser<'_, 's> {
    /// Parses a call of a library kernel.
    pub(super) fn kernel_call(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let kernel = self.kernel(e, call)?;
        let mut args = Args {
            operands: vec![None; kernel.operands.len()],
            numbers: vec![None; kernel.number_count()],
        };
        let mut seen: Vec<&str> = Vec::new();
        for keyword in &call.keywords {
            if seen.contains(&keyword.name) {
                let message =
                    format!("argument {} of kernel {} is passed twice", keyword.name, kernel.name);
                return Err(self.error(ErrorKind::Arguments, keyword.range, message));
            }
            seen.push(keyword.name);
            self.kernel_keyword(kernel, keyword, &mut args)?;
        }
        self.finish_kernel_call(kernel, args, e.range)
    }

    fn kernel(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<&'static Kernel> {
        let name = match call.args.as_slice() {
            [name] => name.as_str(),
            _ => None,
        };
        let Some(name) = name else {
            let message = "T.call_kernel takes one positional argument, the name of a kernel (operands and attributes are keyword arguments)";
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        };
        find_kernel(name).map_err(|(message, help)| {
            self.error_help(ErrorKind::UnknownName, e.range, message, help)
        })
    }

    fn kernel_keyword(
        &mut self,
        kernel: &'static Kernel,
        keyword: &Keyword<'s>,
        args: &mut Args,
    ) -> Res<()> {
        let (name, value) = (keyword.name, &keyword.value);
        if let Some(at) = kernel.operand(name) {
            if !matches!(value.kind, ExprKind::None) {
                args.operands[at] = Some(self.kernel_operand(kernel, name, value)?);
            }
            return Ok(());
        }
        let Some((attr, first)) = kernel.attr(name) else {
            let (message, help) = unknown_keyword(kernel, name);
            return Err(self.error_help(ErrorKind::Arguments, keyword.range, message, help));
        };
        let values = match (attr.ty, &value.kind) {
            (AttrType::Ints { len, .. }, ExprKind::List(list) | ExprKind::Tuple(list)) => {
                if list.len() != len {
                    let message = format!(
                        "attribute '{name}' of kernel {} takes {len} integers, but {} are given",
                        kernel.name,
                        list.len()
                    );
                    return Err(self.error(ErrorKind::Arguments, value.range, message));
                }
                list.iter().map(|e| self.scalar(e, Some(Ty::I64))).collect::<Res<Vec<_>>>()?
            }
            _ => vec![self.kernel_attribute(kernel, attr, value)?],
        };
        for (k, value) in values.into_iter().enumerate() {
            args.numbers[first + k] = Some(value);
        }
        Ok(())
    }

    /// Parses an operand, a buffer or `T.view(buffer, dims, strides=..., offset=...)`, to the expressions that describe it.
    fn kernel_operand(
        &mut self,
        kernel: &'static Kernel,
        name: &str,
        value: &Expr<'s>,
    ) -> Res<Vec<IrExpr>> {
        let view = match &value.kind {
            ExprKind::Call(call) if self.tir_name(&call.func).is_some_and(|n| n == "view") => {
                Some(&**call)
            }
            _ => None,
        };
        let Some(view) = view else {
            let Val::Buffer(buffer) = self.val(value)? else {
                let message = format!(
                    "operand '{name}' of kernel {} must be a buffer or a T.view of one",
                    kernel.name
                );
                return Err(self.error(ErrorKind::Type, value.range, message));
            };
            return Ok(vec![self.f.address_of_start(buffer), self.f.int(WHOLE_BUFFER)]);
        };
        let keyword = |name: &str| view.keywords.iter().find(|k| k.name == name).map(|k| &k.value);
        let known = view.keywords.iter().all(|k| matches!(k.name, "strides" | "offset"));
        let ([buffer, dims], Some(strides), true) = (&view.args[..], keyword("strides"), known)
        else {
            let message = "T.view must be written as T.view(buffer, dims, strides=[...], offset=...), with optional offset";
            return Err(self.error(ErrorKind::Arguments, value.range, message));
        };
        let Val::Buffer(of) = self.val(buffer)? else {
            return Err(self.error(
                ErrorKind::Type,
                buffer.range,
                "the first argument of T.view must be a buffer",
            ));
        };
        let lists = [self.integers(dims)?, self.integers(strides)?];
        let rank = lists[0].len();
        if lists[1].len() != rank || rank > MAX_RANK {
            let message = format!(
                "T.view must have as many strides as dims and at most {MAX_RANK} of each, but has {rank} dims and {} strides",
                lists[1].len()
            );
            return Err(self.error(ErrorKind::Arguments, value.range, message));
        }
        let offset = match keyword("offset") {
            Some(offset) => self.scalar(offset, Some(Ty::I64))?,
            None => self.f.int(0),
        };
        let mut arguments = vec![self.f.address_of_start(of), self.f.int(rank as i64), offset];
        arguments.extend(lists.concat());
        Ok(arguments)
    }

    /// Evaluates a list of integers.
    fn integers(&mut self, list: &Expr<'s>) -> Res<Vec<IrExpr>> {
        let (ExprKind::List(items) | ExprKind::Tuple(items)) = &list.kind else {
            let message = "the dims and strides of T.view must be lists of integers";
            return Err(self.error(ErrorKind::Type, list.range, message));
        };
        items.iter().map(|e| self.scalar(e, Some(Ty::I64))).collect()
    }

    /// Evaluates the value of an attribute that is not a list.
    fn kernel_attribute(&mut self, kernel: &Kernel, attr: &Attr, value: &Expr<'s>) -> Res<IrExpr> {
        let name = attr.name;
        match (attr.ty, &value.kind) {
            (AttrType::Choice(list), _) => {
                let index = value.as_str().and_then(|s| list.iter().position(|c| *c == s));
                let Some(index) = index else {
                    let message = format!(
                        "attribute '{name}' of kernel {} must be one of {}",
                        kernel.name,
                        list.join(", ")
                    );
                    return Err(self.error(ErrorKind::Value, value.range, message));
                };
                Ok(self.f.int(index as i64))
            }
            (AttrType::Bool, ExprKind::Bool(b)) => Ok(self.f.int(i64::from(*b))),
            (AttrType::Float, _) => self.scalar(value, Some(Ty::scalar(DType::Float64))),
            (AttrType::Int(..), _) => self.scalar(value, Some(Ty::I64)),
            (AttrType::Ints { len, .. }, _) => {
                let message = format!(
                    "attribute '{name}' of kernel {} must be a list of {len} integers",
                    kernel.name
                );
                Err(self.error(ErrorKind::Type, value.range, message))
            }
            (AttrType::Bool, _) => {
                let message =
                    format!("attribute '{name}' of kernel {} must be True or False", kernel.name);
                Err(self.error(ErrorKind::Type, value.range, message))
            }
        }
    }

    /// Creates the kernel call. Omitted arguments get their default values.
    fn finish_kernel_call(
        &mut self,
        kernel: &'static Kernel,
        args: Args,
        range: Range,
    ) -> Res<IrExpr> {
        let mut present = 0;
        for (i, (operand, arguments)) in kernel.operands.iter().zip(&args.operands).enumerate() {
            present |= i64::from(arguments.is_some()) << i;
            if arguments.is_none() && !operand.optional {
                let message =
                    format!("operand '{}' of kernel {} is missing", operand.name, kernel.name);
                return Err(self.error(ErrorKind::Arguments, range, message));
            }
        }
        let name = self.f.add_expr(ExprData::Str(kernel.name.into()));
        let mut list = vec![name, self.f.int(present)];
        list.extend(args.operands.into_iter().flatten().flatten());
        let attrs = kernel.attrs.iter().flat_map(|a| std::iter::repeat_n(a, a.ty.number_count()));
        for (attr, number) in attrs.zip(args.numbers) {
            list.push(match (number, attr.default) {
                (Some(number), _) => number,
                (None, AttrDefault::Number(n)) => self.f.int(n),
                (None, AttrDefault::Float(v)) => {
                    let ty = Ty::scalar(DType::Float64);
                    self.f.add_expr(ExprData::Float(v.to_bits(), ty))
                }
                (None, AttrDefault::Required) => {
                    let message =
                        format!("attribute '{}' of kernel {} is missing", attr.name, kernel.name);
                    return Err(self.error(ErrorKind::Arguments, range, message));
                }
            });
        }
        Ok(self.f.add_expr(ExprData::Call(Intrin::CallKernel, list.into(), Ty::I64)))
    }
}
