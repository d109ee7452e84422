//! The text of an expression, for messages and for Python's `repr`.

use std::fmt::{self, Write as _};

use pliant_ir::tir::BinOp;

use super::expr::{Expr, ExprKind, Reducer, Var};

/// The maximum depth to print. Deeper operands are printed as `...`, so that printing does not exhaust the stack.
const MAX_DEPTH: u32 = 64;

/// The maximum number of terms to print. The remaining terms are printed as `...`. A shared operand
/// is printed at each use, so without this limit the text could be exponentially longer than the
/// expression in memory.
const MAX_PRINTED: u32 = 10_000;

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, &mut Printer { f, left: MAX_PRINTED }, 0, 0)
    }
}

/// An output for text that counts how many more terms may be printed.
struct Printer<'p, 'f> {
    f: &'p mut fmt::Formatter<'f>,
    left: u32,
}

impl fmt::Write for Printer<'_, '_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.f.write_str(s)
    }
}

/// The symbol and the precedence of an operator, or `None` for operators that are printed as calls.
fn symbol(op: BinOp, float: bool) -> Option<(&'static str, u8)> {
    use BinOp::*;
    Some(match op {
        Or => ("or", 1),
        And => ("and", 2),
        Eq => ("==", 4),
        Ne => ("!=", 4),
        Lt => ("<", 4),
        Le => ("<=", 4),
        Gt => (">", 4),
        Ge => (">=", 4),
        Add => ("+", 5),
        Sub => ("-", 5),
        Mul => ("*", 6),
        Div if float => ("/", 6),
        FloorDiv => ("//", 6),
        FloorMod => ("%", 6),
        Div | Mod | Min | Max => return None,
    })
}

fn write(e: &Expr, f: &mut Printer<'_, '_>, level: u8, depth: u32) -> fmt::Result {
    if depth > MAX_DEPTH || f.left == 0 {
        return f.write_str("...");
    }
    f.left -= 1;
    match e.kind() {
        ExprKind::Int(v) if e.ty().dtype.is_bool() => {
            f.write_str(if *v != 0 { "True" } else { "False" })
        }
        ExprKind::Int(v) if e.ty().dtype == pliant_tensor::DType::Int64 => write!(f, "{v}"),
        ExprKind::Int(v) => write!(f, "T.{}({v})", e.ty()),
        ExprKind::Float(v) => write!(f, "T.{}({v:?})", e.ty()),
        ExprKind::Str(s) => write!(f, "{s:?}"),
        ExprKind::Var(v) => f.write_str(v.name()),
        ExprKind::Binary(op, a, b) => match symbol(*op, a.ty().dtype.is_float()) {
            Some((text, precedence)) => {
                let open = precedence < level;
                f.write_str(if open { "(" } else { "" })?;
                write(a, f, precedence, depth + 1)?;
                write!(f, " {text} ")?;
                write(b, f, precedence + 1, depth + 1)?;
                f.write_str(if open { ")" } else { "" })
            }
            None => {
                let name = match op {
                    BinOp::Min => "T.min",
                    BinOp::Max => "T.max",
                    BinOp::Mod => "T.truncmod",
                    _ => "T.Div",
                };
                write_args(name, &[a, b], f, depth)
            }
        },
        ExprKind::Cast(a) => {
            write!(f, "T.Cast(\"{}\", ", e.ty())?;
            write(a, f, 0, depth + 1)?;
            f.write_str(")")
        }
        ExprKind::Not(a) => {
            f.write_str("not ")?;
            write(a, f, 3, depth + 1)
        }
        ExprKind::Select(c, a, b) => write_args("T.Select", &[c, a, b], f, depth),
        ExprKind::Ramp(base, stride) => {
            f.write_str("T.Ramp(")?;
            write_list(&[base, stride], f, depth)?;
            write!(f, ", {})", e.ty().lanes)
        }
        ExprKind::Broadcast(a) => {
            f.write_str("T.Broadcast(")?;
            write(a, f, 0, depth + 1)?;
            write!(f, ", {})", e.ty().lanes)
        }
        ExprKind::Call(i, args) => {
            write_args(&format!("T.{i}"), &args.iter().collect::<Vec<_>>(), f, depth)
        }
        ExprKind::Load(t, indices) => {
            write!(f, "{}[", t.name())?;
            write_list(&indices.iter().collect::<Vec<_>>(), f, depth)?;
            f.write_str(if indices.is_empty() { "()]" } else { "]" })
        }
        ExprKind::Reduce(r) => {
            let name = match r.reducer {
                Reducer::Sum => "te.sum(",
                Reducer::Prod => "te.prod(",
                Reducer::Max => "te.max(",
                Reducer::Min => "te.min(",
                Reducer::Custom(_) => "te.reduce(",
            };
            f.write_str(name)?;
            write(&r.source, f, 0, depth + 1)?;
            let axes: Vec<&str> = r.axes.iter().map(|a| &**a.var.name()).collect();
            write!(f, ", axis=[{}])", axes.join(", "))
        }
    }
}

fn write_args(name: &str, args: &[&Expr], f: &mut Printer<'_, '_>, depth: u32) -> fmt::Result {
    write!(f, "{name}(")?;
    write_list(args, f, depth)?;
    f.write_str(")")
}

/// Prints the expressions separated by commas. After the limit, one `...` stands for all remaining expressions.
fn write_list(list: &[&Expr], f: &mut Printer<'_, '_>, depth: u32) -> fmt::Result {
    for (i, e) in list.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        let ended = f.left == 0;
        write(e, f, 0, depth + 1)?;
        if ended {
            break;
        }
    }
    Ok(())
}
