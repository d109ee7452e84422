//! Short text of index expressions, for messages.

use pliant_ir::tir::{BinOp, Expr, ExprData, PrimFunc};

/// Formats an expression in infix notation. Parts that are not index arithmetic are abbreviated.
pub fn expr(f: &PrimFunc, e: Expr) -> String {
    let mut out = String::new();
    write(f, e, 0, &mut out);
    out
}

fn symbol(op: BinOp) -> (&'static str, u8) {
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

fn write(f: &PrimFunc, e: Expr, outer: u8, out: &mut String) {
    // Messages stay short however large the expression is.
    if out.len() > 120 {
        return out.push('…');
    }
    match f.expr(e) {
        ExprData::Int(v, _) => out.push_str(&v.to_string()),
        ExprData::Float(bits, _) => out.push_str(&f64::from_bits(*bits).to_string()),
        ExprData::Var(v) => out.push_str(&f.var(*v).name),
        ExprData::Cast(_, a) => write(f, *a, outer, out),
        ExprData::Binary(op @ (BinOp::Min | BinOp::Max), a, b) => {
            out.push_str(if *op == BinOp::Min { "min(" } else { "max(" });
            list(f, &[*a, *b], out);
            out.push(')');
        }
        ExprData::Binary(op, a, b) => {
            let (symbol, level) = symbol(*op);
            if level < outer {
                out.push('(');
            }
            write(f, *a, level, out);
            out.push(' ');
            out.push_str(symbol);
            out.push(' ');
            write(f, *b, level + 1, out);
            if level < outer {
                out.push(')');
            }
        }
        ExprData::Load(b, indices) => {
            out.push_str(&f.buffer(*b).name);
            out.push('[');
            list(f, indices, out);
            out.push(']');
        }
        ExprData::Call(intrin, args, _) => {
            out.push_str(intrin.name());
            out.push('(');
            list(f, args, out);
            out.push(')');
        }
        _ => out.push('…'),
    }
}

fn list(f: &PrimFunc, items: &[Expr], out: &mut String) {
    for (i, &e) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        write(f, e, 0, out);
    }
}
