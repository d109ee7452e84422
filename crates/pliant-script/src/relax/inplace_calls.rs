//! Parsing of calls with attributes that `call_tir` and `call_packed` do not have: `call_tir_inplace` and `call_inplace_packed`,
//! which overwrite some of their arguments, and `call_tir_with_grad`.

use pliant_ir::attr_names::INPLACE_INDICES;
use pliant_ir::relax::Expr as IrExpr;
use pliant_ir::{AttrValue, Attrs};

use super::FuncParser;
use crate::dialect_spellings::TYPE_KEYWORDS;
use crate::python::ast::{Call, Expr};
use crate::script_errors::{ErrorKind, Res};

impl<'s> FuncParser<'_, 's> {
    /// Parses `R.call_tir_inplace(gvar, args, inplace_indices, out_sinfo, tir_vars)`.
    pub(super) fn call_tir_inplace(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_tir_inplace";
        let known = [TYPE_KEYWORDS, &["gvar", "func", "args", INPLACE_INDICES, "tir_vars"]];
        self.check_keywords(WHAT, call, &known.concat())?;
        let given =
            |at: usize, names: &[&str]| call.args.get(at).or_else(|| self.keyword(call, names));
        let (func, args) = (given(0, &["gvar", "func"]), given(1, &["args"]));
        let (indices, tir_vars) = (given(2, &[INPLACE_INDICES]), given(4, &["tir_vars"]));
        let Some(op) = self.find_op("call_tir_inplace") else {
            return Err(self.error(
                ErrorKind::UnknownConstruct,
                e.range,
                "the module R has no member 'call_tir_inplace'",
            ));
        };
        let (Some(func), Some(args), Some(indices)) = (func, args, indices) else {
            let message = format!("{WHAT} needs a function, its arguments and 'inplace_indices'");
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        };
        let callee = self.callee(func)?;
        let (fields, mut vars) = self.call_args(args, Some(callee))?;
        let indices = self.inplace_indices(indices)?;
        let out = self.out_type(WHAT, e, call, call.args.get(3), &fields)?;
        vars.extend(self.tir_vars(tir_vars)?);
        let tuple = self.b.func_mut().tuple(&fields);
        let mut operands = vec![callee, tuple];
        if !vars.is_empty() {
            operands.push(self.b.func_mut().shape(&vars));
        }
        let attrs = Attrs::default().with(INPLACE_INDICES, indices);
        self.emit_op(op, &operands, attrs, &[out], e.range)
    }

    /// Parses `R.call_tir_with_grad(gvar, args, out_sinfo, te_grad_name, te_grad_kwargs, tir_vars)`.
    pub(super) fn call_tir_with_grad(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_tir_with_grad";
        const NAMES: &[&str] =
            &["gvar", "func", "args", "te_grad_name", "te_grad_kwargs", "tir_vars"];
        self.check_keywords(WHAT, call, &[TYPE_KEYWORDS, NAMES].concat())?;
        let given =
            |at: usize, names: &[&str]| call.args.get(at).or_else(|| self.keyword(call, names));
        let (func, args) = (given(0, &["gvar", "func"]), given(1, &["args"]));
        let (name, kwargs) = (given(3, &["te_grad_name"]), given(4, &["te_grad_kwargs"]));
        let tir_vars = given(5, &["tir_vars"]);
        let Some(op) = self.find_op("call_tir_with_grad") else {
            return Err(self.error(
                ErrorKind::UnknownConstruct,
                e.range,
                "the module R has no member 'call_tir_with_grad'",
            ));
        };
        let (Some(func), Some(args), Some(name)) = (func, args, name) else {
            let message = format!("{WHAT} needs a function, its arguments and 'te_grad_name'");
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        };
        let callee = self.callee(func)?;
        let (fields, mut vars) = self.call_args(args, Some(callee))?;
        let out = self.out_type(WHAT, e, call, call.args.get(2), &fields)?;
        let mut attrs = Attrs::default();
        for (key, value) in [("te_grad_name", Some(name)), ("te_grad_kwargs", kwargs)] {
            if let Some(value) = value {
                let val = self.value(value)?;
                attrs.set(key, self.attr(&val, value.range)?);
            }
        }
        vars.extend(self.tir_vars(tir_vars)?);
        let tuple = self.b.func_mut().tuple(&fields);
        let mut operands = vec![callee, tuple];
        if !vars.is_empty() {
            operands.push(self.b.func_mut().shape(&vars));
        }
        self.emit_op(op, &operands, attrs, &[out], e.range)
    }

    /// The value of `inplace_indices`: a list, or a single integer.
    fn inplace_indices(&mut self, e: &Expr<'s>) -> Res<AttrValue> {
        let val = self.value(e)?;
        Ok(match self.attr(&val, e.range)? {
            AttrValue::Int(v) => AttrValue::ints([v]),
            list => list,
        })
    }

    pub(super) fn call_inplace(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        const WHAT: &str = "R.call_inplace_packed";
        self.check_keywords(WHAT, call, &[TYPE_KEYWORDS, &[INPLACE_INDICES]].concat())?;
        let Some(op) = self.find_op("call_inplace_packed") else {
            return Err(self.error(
                ErrorKind::UnknownConstruct,
                e.range,
                "the module R has no member 'call_inplace_packed'",
            ));
        };
        let (callee, args) = self.packed_parts(WHAT, e, call)?;
        let ty_args = self.packed_types(call)?;
        let Some(indices) = self.keyword(call, &[INPLACE_INDICES]) else {
            return Err(self.error(
                ErrorKind::Arguments,
                e.range,
                format!("{WHAT} needs the argument 'inplace_indices'"),
            ));
        };
        let indices = self.inplace_indices(indices)?;
        let mut operands = vec![callee];
        operands.extend(args);
        let attrs = Attrs::default().with(INPLACE_INDICES, indices);
        self.emit_op(op, &operands, attrs, &ty_args, e.range)
    }
}
