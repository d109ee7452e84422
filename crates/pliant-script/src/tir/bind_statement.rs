//! Parsing of `T.bind`, which defines a variable for the following statements.

use pliant_ir::tir::{Expr as IrExpr, VarTy};

use super::statements::Item;
use super::{Local, PrimParser};
use crate::python::ast::{Call, Range};
use crate::script_errors::{ErrorKind, Res};

impl<'s> PrimParser<'_, 's> {
    /// Parses `T.bind(value, var=x)`, which defines a variable whose scope is the rest of the list.
    pub(super) fn bind(&mut self, call: &Call<'s>, range: Range, out: &mut Vec<Item>) -> Res<()> {
        let var =
            call.keywords.iter().find(|k| k.name == "var").map(|k| &k.value).or(call.args.get(1));
        let (Some(value), Some(var)) = (call.args.first(), var) else {
            return Err(self.error(
                ErrorKind::Arguments,
                range,
                "T.bind takes two arguments: a value and the name of a variable",
            ));
        };
        let Some(name) = var.as_name() else {
            return Err(self.error(
                ErrorKind::Structure,
                var.range,
                "the second argument of T.bind must be a name",
            ));
        };
        let value = self.scalar(value, None)?;
        self.bind_name(name, value, out);
        Ok(())
    }

    /// Defines the variable `name` with the given value. `x = T.int32()` may have declared the name before.
    pub(super) fn bind_name(&mut self, name: &'s str, value: IrExpr, out: &mut Vec<Item>) {
        let ty = self.f.expr_ty(value);
        let var = self.f.add_var(name, VarTy::Value(ty));
        self.define(name, Local::Var(var));
        out.push(Item::Let(var, value));
    }
}
