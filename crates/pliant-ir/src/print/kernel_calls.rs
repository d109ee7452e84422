//! Prints calls of library kernels in loop functions, with named operands and attributes.

use pliant_kernel_api::{Attr, AttrDefault, AttrType};

use super::literals::py_str;
use super::tir::TirPrinter;
use super::tir_expr::Tok;
use crate::tir::{Expr, ExprData, KernelCall};

impl TirPrinter<'_> {
    /// Prints a kernel call. Absent operands and attributes with default values are omitted.
    pub(super) fn kernel_call(&mut self, call: &KernelCall<'_>, out: &mut Vec<Tok>) {
        let kernel = call.kernel;
        out.push(Tok::Text(format!("T.call_kernel({}", py_str(kernel.name))));
        for (declared, operand) in kernel.operands.iter().zip(&call.operands) {
            let Some(operand) = operand else { continue };
            let buffer = self.buffer_name(operand.buffer);
            out.push(Tok::Text(match operand.view {
                None => format!(", {}={buffer}", declared.name),
                Some(_) => format!(", {}=T.view({buffer}, ", declared.name),
            }));
            if let Some(view) = operand.view {
                list(view.dims, out);
                out.push(Tok::Lit(", strides="));
                list(view.strides, out);
                if self.f.as_int(view.offset) != Some(0) {
                    out.push(Tok::Lit(", offset="));
                    out.push(Tok::Expr(view.offset, 0));
                }
                out.push(Tok::Lit(")"));
            }
        }
        let mut numbers = call.numbers;
        for attr in kernel.attrs {
            let (own, rest) = numbers.split_at(attr.ty.number_count());
            numbers = rest;
            if !own.iter().all(|&e| self.is_default(attr, e)) {
                out.push(Tok::Text(format!(", {}=", attr.name)));
                self.attribute(attr, own, out);
            }
        }
        out.push(Tok::Lit(")"));
    }

    fn is_default(&self, attr: &Attr, e: Expr) -> bool {
        match (attr.default, self.f.expr(e)) {
            (AttrDefault::Number(n), ExprData::Int(v, _)) => *v == n,
            (AttrDefault::Float(d), ExprData::Float(bits, _)) => d.to_bits() == *bits,
            _ => false,
        }
    }

    fn attribute(&mut self, attr: &Attr, numbers: &[Expr], out: &mut Vec<Tok>) {
        let constant = self.f.as_int(numbers[0]);
        match (attr.ty, constant.and_then(|v| usize::try_from(v).ok())) {
            (AttrType::Choice(list), Some(index)) if index < list.len() => {
                out.push(Tok::Text(py_str(list[index])));
            }
            (AttrType::Bool, Some(value)) => {
                out.push(Tok::Lit(if value != 0 { "True" } else { "False" }));
            }
            (AttrType::Ints { .. }, _) => list(numbers, out),
            _ => out.push(Tok::Expr(numbers[0], 0)),
        }
    }
}

/// Appends a list of numbers, such as `[1, n]`, to the output.
fn list(numbers: &[Expr], out: &mut Vec<Tok>) {
    out.push(Tok::Lit("["));
    for (i, &e) in numbers.iter().enumerate() {
        if i > 0 {
            out.push(Tok::Lit(", "));
        }
        out.push(Tok::Expr(e, 0));
    }
    out.push(Tok::Lit("]"));
}
