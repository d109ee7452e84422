//! Formats index expressions for error messages.

use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc};

/// Formats an expression in infix notation. Long expressions, and subexpressions that are not index arithmetic, are abbreviated
/// by `…`.
pub fn format_expr(f: &PrimFunc, e: Expr) -> String {
    let mut out = String::new();
    write(f, e, 0, &mut out);
    out
}

/// Returns the symbol and the precedence of an operator. Operators with higher precedence bind more tightly.
fn symbol_and_precedence(op: BinOp) -> (&'static str, u8) {
    match op {
        BinOp::Add => ("+", 3),
        BinOp::Sub => ("-", 3),
        BinOp::Mul => ("*", 4),
        BinOp::Div => ("/", 4),
        BinOp::Mod => ("%", 4),
        BinOp::FloorDiv => ("//", 4),
        BinOp::FloorMod => ("%", 4),
        BinOp::Eq => ("==", 2),
        BinOp::Ne => ("!=", 2),
        BinOp::Lt => ("<", 2),
        BinOp::Le => ("<=", 2),
        BinOp::Gt => (">", 2),
        BinOp::Ge => (">=", 2),
        BinOp::And => ("and", 1),
        BinOp::Or => ("or", 1),
        BinOp::Min | BinOp::Max => ("", 5),
    }
}

fn write(f: &PrimFunc, e: Expr, outer_precedence: u8, out: &mut String) {
    // Keeps messages short even if the expression is large.
    if out.len() > 120 {
        return out.push('…');
    }
    match f.expr(e) {
        ExprData::Int(v, _) => out.push_str(&v.to_string()),
        ExprData::Float(bits, _) => out.push_str(&f64::from_bits(*bits).to_string()),
        ExprData::Var(v) => out.push_str(&f.var(*v).name),
        ExprData::Cast(_, a) => write(f, *a, outer_precedence, out),
        ExprData::Binary(op @ (BinOp::Min | BinOp::Max), a, b) => {
            out.push_str(if *op == BinOp::Min { "min(" } else { "max(" });
            write_list(f, &[*a, *b], out);
            out.push(')');
        }
        ExprData::Binary(op, a, b) => {
            let (symbol, precedence) = symbol_and_precedence(*op);
            if precedence < outer_precedence {
                out.push('(');
            }
            write(f, *a, precedence, out);
            out.push(' ');
            out.push_str(symbol);
            out.push(' ');
            write(f, *b, precedence + 1, out);
            if precedence < outer_precedence {
                out.push(')');
            }
        }
        ExprData::Load(b, indices) => {
            out.push_str(&f.buffer(*b).name);
            out.push('[');
            write_list(f, indices, out);
            out.push(']');
        }
        ExprData::Call(intrin, args, _) => {
            out.push_str(intrin.name());
            out.push('(');
            write_list(f, args, out);
            out.push(')');
        }
        _ => out.push('…'),
    }
}

fn write_list(f: &PrimFunc, items: &[Expr], out: &mut String) {
    for (i, &e) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(f, e, 0, out);
    }
}
