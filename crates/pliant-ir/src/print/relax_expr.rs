//! Prints types and expressions of graph functions, without recursion.

use std::rc::Rc;

use pliant_sym::Sym;

use super::literals::{attr_value, py_str, small_tensor, typed_float};
use super::relax::FuncPrinter;
use crate::op::{CALL_BUILTIN_WITH_CTX, CALL_KERNEL, CALL_PURE_PACKED, DESTINATION_PASSING, Op};
use crate::relax::kernel_call::{ATTRIBUTES, AXES, KERNEL, OPERANDS};
use crate::relax::{Callee, Expr, ExprData, TensorShape, Type, TypeData};
use crate::{AttrValue, Attrs, DType};

/// An element of the printer's explicit stack: output that remains to be printed.
pub(super) enum Tok {
    Lit(&'static str),
    Text(String),
    Ty(Type),
    Expr(Expr),
    /// An operand that is printed as a quoted string if it is the name of a packed function.
    Name(Expr),
}

/// The style in which symbolic integers are printed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum SymStyle {
    /// Symbolic integers are printed without quotes.
    Plain,
    /// Symbolic integers are printed in quotes if they contain a symbol that the signature being printed introduces.
    Signature,
}

impl FuncPrinter<'_, '_> {
    /// Prints a type that occurs in the body of a function.
    pub(super) fn ty(&mut self, ty: Type) -> Rc<str> {
        if let Some(text) = self.ty_memo.get(&ty) {
            return text.clone();
        }
        let text: Rc<str> = self.expand(Tok::Ty(ty), SymStyle::Plain).into();
        self.ty_memo.insert(ty, text.clone());
        text
    }

    /// Prints a type that occurs in a signature, where new symbols are quoted.
    pub(super) fn sig_ty(&mut self, ty: Type) -> String {
        self.expand(Tok::Ty(ty), SymStyle::Signature)
    }

    /// Prints an expression other than `If` and local functions.
    pub(super) fn expr(&mut self, e: Expr) -> String {
        self.expand(Tok::Expr(e), SymStyle::Plain)
    }

    fn expand(&mut self, tok: Tok, style: SymStyle) -> String {
        let mut out = String::new();
        let mut stack = vec![tok];
        let mut parts: Vec<Tok> = Vec::new();
        while let Some(tok) = stack.pop() {
            match tok {
                Tok::Lit(s) => out.push_str(s),
                Tok::Text(s) => out.push_str(&s),
                Tok::Ty(ty) => self.ty_parts(ty, style, &mut parts),
                Tok::Expr(e) => self.expr_parts(e, &mut parts),
                Tok::Name(e) => match self.f.expr(e) {
                    ExprData::Extern(s) => out.push_str(&py_str(self.f.str(*s))),
                    _ => self.expr_parts(e, &mut parts),
                },
            }
            stack.extend(parts.drain(..).rev());
        }
        out
    }

    // ---- types ----

    fn dims(&mut self, dims: &[Sym], style: SymStyle) -> Vec<String> {
        dims.iter().map(|&d| self.sym_styled(d, style)).collect()
    }

    fn ty_parts(&mut self, ty: Type, style: SymStyle, out: &mut Vec<Tok>) {
        let f = self.f;
        match f.types.get(ty) {
            TypeData::Any => out.push(Tok::Lit("R.Object")),
            TypeData::Prim { dtype, value } => out.push(Tok::Text(match value {
                None => format!("R.Prim(\"{dtype}\")"),
                Some(v) => {
                    let v = self.sym_styled(*v, style);
                    let dtype = if *dtype == DType::Int64 {
                        String::new()
                    } else {
                        format!("\"{dtype}\", ")
                    };
                    format!("R.Prim({dtype}value={v})")
                }
            })),
            TypeData::Shape { dims: Some(dims), .. } => {
                let dims = self.dims(dims, style);
                out.push(Tok::Text(format!("R.Shape([{}])", dims.join(", "))));
            }
            TypeData::Shape { dims: None, ndim: Some(n) } => {
                out.push(Tok::Text(format!("R.Shape(ndim={n})")));
            }
            TypeData::Shape { .. } => out.push(Tok::Lit("R.Shape")),
            TypeData::Tensor { shape, dtype } => {
                let text = self.tensor_ty(shape, *dtype, style);
                out.push(Tok::Text(text));
            }
            TypeData::Tuple(fields) if fields.is_empty() => out.push(Tok::Lit("R.Tuple")),
            TypeData::Tuple(fields) => {
                out.push(Tok::Lit("R.Tuple("));
                list(out, fields.iter().map(|&t| Tok::Ty(t)));
                out.push(Tok::Lit(")"));
            }
            TypeData::Callable { params: Some(params), ret, pure } => {
                out.push(Tok::Lit("R.Callable(("));
                list(out, params.iter().map(|&t| Tok::Ty(t)));
                out.push(Tok::Lit(if params.len() == 1 { ",), " } else { "), " }));
                out.push(Tok::Ty(*ret));
                out.push(Tok::Lit(if *pure { ", True)" } else { ", False)" }));
            }
            TypeData::Callable { params: None, ret, pure } => {
                out.push(Tok::Lit("R.Callable(ret="));
                out.push(Tok::Ty(*ret));
                out.push(Tok::Lit(if *pure { ", purity=True)" } else { ", purity=False)" }));
            }
        }
    }

    fn tensor_ty(&mut self, shape: &TensorShape, dtype: Option<DType>, style: SymStyle) -> String {
        let mut args: Vec<String> = Vec::new();
        match shape {
            TensorShape::Dims(dims) => args.push(super::tuple(&self.dims(dims, style))),
            TensorShape::Var(v) => args.push(self.var_name(*v)),
            TensorShape::Rank(_) | TensorShape::Unknown => {}
        }
        if let Some(d) = dtype {
            args.push(format!("dtype=\"{d}\""));
        }
        if let TensorShape::Rank(n) = shape {
            args.push(format!("ndim={n}"));
        }
        if args.is_empty() { "R.Tensor".into() } else { format!("R.Tensor({})", args.join(", ")) }
    }

    fn sym_styled(&mut self, sym: Sym, style: SymStyle) -> String {
        let text = self.sym(sym);
        if style == SymStyle::Signature && self.introduces(sym) {
            format!("\"{text}\"")
        } else {
            text
        }
    }

    // ---- expressions ----

    fn expr_parts(&mut self, e: Expr, out: &mut Vec<Tok>) {
        let f = self.f;
        match f.expr(e) {
            ExprData::Var(v) => out.push(Tok::Text(self.var_name(*v))),
            ExprData::Global(s) => {
                out.push(Tok::Text(format!("cls.{}", self.cx.global(f.str(*s)))))
            }
            ExprData::Extern(s) => {
                out.push(Tok::Text(format!("R.ExternFunc({})", py_str(f.str(*s)))))
            }
            ExprData::Constant(c) => {
                let tensor = f.const_tensor(*c);
                out.push(Tok::Text(match small_tensor(tensor) {
                    Some(value) => format!("R.const({value}, \"{}\")", tensor.dtype()),
                    None => {
                        format!("metadata[\"relax.expr.Constant\"][{}]", self.cx.constant(tensor))
                    }
                }));
            }
            ExprData::Shape(dims) => {
                let dims = self.dims(dims, SymStyle::Plain);
                out.push(Tok::Text(format!("R.shape([{}])", dims.join(", "))));
            }
            ExprData::Int(value, dtype) => {
                let text = self.prim_value(*value, *dtype);
                out.push(Tok::Text(text));
            }
            ExprData::Float(bits, dtype) => {
                out.push(Tok::Text(format!(
                    "R.prim_value({})",
                    typed_float(f64::from_bits(*bits), *dtype)
                )));
            }
            ExprData::Str(s) => out.push(Tok::Text(format!("R.str({})", py_str(f.str(*s))))),
            ExprData::DType(d) => out.push(Tok::Text(format!("R.dtype(\"{d}\")"))),
            ExprData::Tuple(fields) => {
                let fields = f.list(*fields);
                if fields.is_empty() {
                    out.push(Tok::Lit("R.tuple()"));
                    return;
                }
                out.push(Tok::Lit("("));
                list(out, fields.iter().map(|&x| Tok::Expr(x)));
                out.push(Tok::Lit(if fields.len() == 1 { ",)" } else { ")" }));
            }
            ExprData::TupleGetItem(t, i) => {
                out.push(Tok::Expr(*t));
                out.push(Tok::Text(format!("[{i}]")));
            }
            ExprData::Call { callee, .. } => match callee {
                Callee::Op(op) => self.op_call(*op, e, out),
                Callee::Expr(callee) => self.func_call(*callee, e, out),
            },
            // These are printed as statements; inside an expression they violate A-normal form.
            ExprData::If { .. } => out.push(Tok::Lit("<if>")),
            ExprData::Func(_) => out.push(Tok::Lit("<function>")),
        }
    }

    fn prim_value(&mut self, value: Sym, dtype: DType) -> String {
        let text = self.sym(value);
        match dtype {
            DType::Int64 => format!("R.prim_value({text})"),
            DType::Bool => {
                let text = match &*text {
                    "0" => "False",
                    "1" => "True",
                    other => other,
                };
                format!("R.prim_value(T.bool({text}))")
            }
            _ => format!("R.prim_value(T.{dtype}({text}))"),
        }
    }

    fn func_call(&mut self, callee: Expr, call: Expr, out: &mut Vec<Tok>) {
        let ExprData::Call { args, attrs, ty_args, .. } = self.f.expr(call) else { return };
        let mut items: Vec<Vec<Tok>> = Vec::new();
        if let ExprData::Extern(s) = self.f.expr(callee) {
            out.push(Tok::Lit("R.call_packed("));
            items.push(vec![Tok::Text(py_str(self.f.str(*s)))]);
        } else {
            out.push(Tok::Expr(callee));
            out.push(Tok::Lit("("));
        }
        items.extend(self.f.list(*args).iter().map(|&a| vec![Tok::Expr(a)]));
        for (key, value) in &self.f.call_attrs(*attrs).0 {
            items.push(vec![keyword(key, value)]);
        }
        items.extend(sinfo_args(self.f.type_list(*ty_args)));
        finish_call(out, items);
    }

    fn op_call(&mut self, op: Op, call: Expr, out: &mut Vec<Tok>) {
        let ExprData::Call { args, attrs, ty_args, .. } = self.f.expr(call) else { return };
        let (args, ty_args) = (self.f.list(*args), self.f.type_list(*ty_args));
        out.push(Tok::Text(format!("R.{}(", op.short_name())));
        if op == CALL_KERNEL {
            let mut items = kernel_items(args, self.f.call_attrs(*attrs));
            items.extend(self.out_sinfo(call, ty_args));
            return finish_call(out, items);
        }
        let dps = DESTINATION_PASSING.contains(&op);
        let takes_name = dps || [CALL_PURE_PACKED, CALL_BUILTIN_WITH_CTX].contains(&op);
        let mut items: Vec<Vec<Tok>> = Vec::new();
        for (i, &a) in args.iter().enumerate() {
            let tok = if i == 0 && takes_name { Tok::Name(a) } else { Tok::Expr(a) };
            items.push(vec![tok]);
        }
        let tir_vars = if dps && items.len() == 3 { items.pop() } else { None };
        if dps {
            items.extend(self.out_sinfo(call, ty_args));
        }
        if let Some(mut vars) = tir_vars {
            vars.insert(0, Tok::Lit("tir_vars="));
            items.push(vars);
        }
        let signature = self.cx.ops.signature(op);
        for (key, value) in &self.f.call_attrs(*attrs).0 {
            let default = signature.and_then(|s| s.attrs.iter().find(|a| a.0 == &**key));
            // An attribute that contains symbols is passed as an operand.
            let is_operand =
                signature.is_some_and(|s| s.symbolic == Some(&**key)) && value.is_none();
            if !is_operand && !default.is_some_and(|(_, d)| d.as_ref() == Some(value)) {
                items.push(vec![keyword(key, value)]);
            }
        }
        if !dps {
            items.extend(sinfo_args(ty_args));
        }
        finish_call(out, items);
    }

    fn out_sinfo(&self, call: Expr, ty_args: &[Type]) -> Option<Vec<Tok>> {
        // A list of one type denotes that type, so a tuple of one type must be printed as a tuple.
        if let ([one], TypeData::Tuple(fields)) = (ty_args, self.f.ty(call))
            && fields.len() == 1
        {
            let ty = if self.f.types.get(*one) == self.f.ty(call) { fields[0] } else { *one };
            return Some(vec![Tok::Lit("out_sinfo=R.Tuple("), Tok::Ty(ty), Tok::Lit(")")]);
        }
        let (many, types): (bool, &[Type]) = match ty_args {
            [] => return None,
            [one] => match self.f.types.get(*one) {
                TypeData::Tuple(fields) => (true, fields),
                _ => (false, ty_args),
            },
            _ => (true, ty_args),
        };
        let mut item = vec![Tok::Lit(if many { "out_sinfo=[" } else { "out_sinfo=" })];
        list(&mut item, types.iter().map(|&t| Tok::Ty(t)));
        if many {
            item.push(Tok::Lit("]"));
        }
        Some(item)
    }
}

/// The printed arguments of `R.call_kernel`: the name of the kernel, the named operands, the axes and the attributes.
fn kernel_items(args: &[Expr], attrs: &Attrs) -> Vec<Vec<Tok>> {
    let text =
        |value: Option<&AttrValue>| value.and_then(AttrValue::as_str).unwrap_or("?").to_string();
    let names = match attrs.get(OPERANDS) {
        Some(AttrValue::List(names)) => &names[..],
        _ => &[],
    };
    let mut items = vec![vec![Tok::Text(py_str(&text(attrs.get(KERNEL))))]];
    for (i, &arg) in args.iter().enumerate() {
        items.push(vec![Tok::Text(format!("{}=", text(names.get(i)))), Tok::Expr(arg)]);
    }
    if let Some(axes @ AttrValue::Map(map)) = attrs.get(AXES)
        && !map.is_empty()
    {
        items.push(vec![keyword(AXES, axes)]);
    }
    if let Some(AttrValue::Map(map)) = attrs.get(ATTRIBUTES) {
        items.extend(map.iter().map(|(key, value)| vec![keyword(key, value)]));
    }
    items
}

fn keyword(key: &str, value: &AttrValue) -> Tok {
    let mut text = format!("{key}=");
    attr_value(&mut text, value);
    Tok::Text(text)
}

fn sinfo_args(types: &[Type]) -> Option<Vec<Tok>> {
    if types.is_empty() {
        return None;
    }
    let mut item = vec![Tok::Lit("sinfo_args=(")];
    list(&mut item, types.iter().map(|&t| Tok::Ty(t)));
    item.push(Tok::Lit(if types.len() == 1 { ",)" } else { ")" }));
    Some(item)
}

fn list(out: &mut Vec<Tok>, items: impl Iterator<Item = Tok>) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(Tok::Lit(", "));
        }
        out.push(item);
    }
}

fn finish_call(out: &mut Vec<Tok>, items: Vec<Vec<Tok>>) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(Tok::Lit(", "));
        }
        out.extend(item);
    }
    out.push(Tok::Lit(")"));
}
