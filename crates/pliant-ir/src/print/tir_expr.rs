//! Prints expressions of loop functions, without recursion.

use super::literals::{py_str, typed_float};
use super::tir::TirPrinter;
use crate::DType;
use crate::tir::{BinOp, Buffer, Expr, ExprData, Intrin, KernelCall, Ty};

/// The precedences of the Python operators that the printer uses.
mod prec {
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const CMP: u8 = 4;
    pub const ADD: u8 = 5;
    pub const MUL: u8 = 6;
    pub const ATOM: u8 = 8;
}

/// An element of the printer's explicit stack: output that remains to be printed.
pub(super) enum Tok {
    Lit(&'static str),
    Text(String),
    /// An expression, and the minimum precedence that it needs to be printed without parentheses.
    Expr(Expr, u8),
}

impl TirPrinter<'_> {
    /// Prints an expression without enclosing parentheses.
    pub(super) fn expr(&mut self, e: Expr) -> String {
        self.expr_at(e, 0)
    }

    /// Prints an expression as the operand of a sum, in parentheses if its precedence requires them.
    pub(super) fn addend(&mut self, e: Expr) -> String {
        self.expr_at(e, prec::ADD + 1)
    }

    fn expr_at(&mut self, e: Expr, min: u8) -> String {
        let mut out = String::new();
        let mut stack = vec![Tok::Expr(e, min)];
        let mut parts = Vec::new();
        while let Some(tok) = stack.pop() {
            match tok {
                Tok::Lit(s) => out.push_str(s),
                Tok::Text(s) => out.push_str(&s),
                Tok::Expr(e, min) => {
                    let own = self.parts(e, &mut parts);
                    if own < min {
                        stack.push(Tok::Lit(")"));
                        out.push('(');
                    }
                    stack.extend(parts.drain(..).rev());
                }
            }
        }
        out
    }

    /// Appends the printed parts of an expression to `out`, and returns the precedence of the expression.
    fn parts(&mut self, e: Expr, out: &mut Vec<Tok>) -> u8 {
        let f = self.f;
        match f.expr(e) {
            ExprData::Int(v, ty) => out.push(Tok::Text(int_text(*v, *ty))),
            ExprData::Float(bits, ty) => {
                out.push(Tok::Text(typed_float(f64::from_bits(*bits), ty.dtype)));
            }
            ExprData::Str(s) => out.push(Tok::Text(py_str(s))),
            ExprData::Var(v) => out.push(Tok::Text(self.var_name(*v))),
            ExprData::Cast(ty, a) => {
                out.push(Tok::Text(format!("T.Cast(\"{ty}\", ")));
                out.extend([Tok::Expr(*a, 0), Tok::Lit(")")]);
            }
            ExprData::Binary(op, a, b) => return self.binary(*op, *a, *b, out),
            ExprData::Not(a) => {
                out.extend([Tok::Lit("not "), Tok::Expr(*a, prec::NOT)]);
                return prec::NOT;
            }
            ExprData::Select(c, a, b) => call(out, "T.Select", &[*c, *a, *b]),
            ExprData::Load(buffer, indices) => self.element(*buffer, indices, out),
            ExprData::Ramp(base, stride, lanes) => {
                out.extend([Tok::Lit("T.Ramp("), Tok::Expr(*base, 0), Tok::Lit(", ")]);
                out.extend([Tok::Expr(*stride, 0), Tok::Text(format!(", {lanes})"))]);
            }
            ExprData::Broadcast(value, lanes) => {
                out.extend([Tok::Lit("T.Broadcast("), Tok::Expr(*value, 0)]);
                out.push(Tok::Text(format!(", {lanes})")));
            }
            ExprData::Call(Intrin::CallKernel, args, ty) => match KernelCall::of_args(f, args) {
                Ok(call) => self.kernel_call(&call, out),
                Err(_) => self.intrin_call(Intrin::CallKernel, args, *ty, out),
            },
            ExprData::Call(intrin, args, ty) => self.intrin_call(*intrin, args, *ty, out),
        }
        prec::ATOM
    }

    fn element(&mut self, buffer: Buffer, indices: &[Expr], out: &mut Vec<Tok>) {
        out.push(Tok::Text(self.buffer_name(buffer)));
        if indices.is_empty() {
            out.push(Tok::Lit("[()]"));
            return;
        }
        for (i, &index) in indices.iter().enumerate() {
            out.push(Tok::Lit(if i == 0 { "[" } else { ", " }));
            out.push(Tok::Expr(index, 0));
        }
        out.push(Tok::Lit("]"));
    }

    fn binary(&mut self, op: BinOp, a: Expr, b: Expr, out: &mut Vec<Tok>) -> u8 {
        let float = self.f.expr_ty(a).dtype.is_float();
        let (symbol, own) = match op {
            BinOp::Add => (" + ", prec::ADD),
            BinOp::Sub => (" - ", prec::ADD),
            BinOp::Mul => (" * ", prec::MUL),
            BinOp::Div if float => (" / ", prec::MUL),
            BinOp::FloorDiv => (" // ", prec::MUL),
            BinOp::FloorMod => (" % ", prec::MUL),
            BinOp::Eq => (" == ", prec::CMP),
            BinOp::Ne => (" != ", prec::CMP),
            BinOp::Lt => (" < ", prec::CMP),
            BinOp::Le => (" <= ", prec::CMP),
            BinOp::Gt => (" > ", prec::CMP),
            BinOp::Ge => (" >= ", prec::CMP),
            BinOp::And => (" and ", prec::AND),
            BinOp::Or => (" or ", prec::OR),
            BinOp::Div => return binary_call(out, "T.truncdiv", a, b),
            BinOp::Mod => return binary_call(out, "T.truncmod", a, b),
            BinOp::Min => return binary_call(out, "T.min", a, b),
            BinOp::Max => return binary_call(out, "T.max", a, b),
        };
        // Comparisons chain in Python, so neither operand may be an unparenthesized comparison.
        let left = if own == prec::CMP { own + 1 } else { own };
        out.extend([Tok::Expr(a, left), Tok::Lit(symbol), Tok::Expr(b, own + 1)]);
        own
    }

    fn intrin_call(&mut self, intrin: Intrin, args: &[Expr], ty: Ty, out: &mut Vec<Tok>) {
        out.push(Tok::Text(format!("T.{}(", intrin.name())));
        let mut first = true;
        let typed = matches!(
            intrin,
            Intrin::Reinterpret
                | Intrin::VectorSum
                | Intrin::VectorMax
                | Intrin::VectorMin
                | Intrin::CallExtern
        );
        if typed {
            out.push(Tok::Text(format!("\"{ty}\"")));
            first = false;
        }
        for &a in args {
            if !first {
                out.push(Tok::Lit(", "));
            }
            first = false;
            out.push(Tok::Expr(a, 0));
        }
        if intrin == Intrin::CallPacked && ty != Ty::I64 {
            out.push(Tok::Text(format!(", dtype=\"{ty}\"")));
        }
        out.push(Tok::Lit(")"));
    }
}

fn call(out: &mut Vec<Tok>, name: &'static str, args: &[Expr]) {
    out.extend([Tok::Lit(name), Tok::Lit("(")]);
    for (i, &a) in args.iter().enumerate() {
        if i > 0 {
            out.push(Tok::Lit(", "));
        }
        out.push(Tok::Expr(a, 0));
    }
    out.push(Tok::Lit(")"));
}

/// Prints a binary operation as a call, such as `T.min(a, b)`, and returns the precedence of a call.
fn binary_call(out: &mut Vec<Tok>, name: &'static str, a: Expr, b: Expr) -> u8 {
    call(out, name, &[a, b]);
    prec::ATOM
}

fn int_text(value: i64, ty: Ty) -> String {
    match ty.dtype {
        DType::Int64 if ty.lanes == 1 => value.to_string(),
        DType::Bool => format!("T.bool({})", if value != 0 { "True" } else { "False" }),
        DType::UInt64 => format!("T.uint64({})", value as u64),
        dtype => format!("T.{dtype}({value})"),
    }
}
