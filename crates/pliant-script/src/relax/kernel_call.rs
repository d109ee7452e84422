//! Parsing of kernel calls: `R.call_kernel("name", operand=tensor, ..., attribute=value, ..., out_sinfo=...)`.

use pliant_ir::op::CALL_KERNEL;
use pliant_ir::relax::Expr as IrExpr;
use pliant_ir::relax::kernel_call::{AXES, find_kernel, kernel_attrs};
use pliant_ir::{AttrValue, Attrs};

use super::FuncParser;
use crate::dialect_spellings::TYPE_KEYWORDS;
use crate::python::ast::{Call, Expr, ExprKind};
use crate::script_errors::{ErrorKind, Res};

const WHAT: &str = "R.call_kernel";

impl<'s> FuncParser<'_, 's> {
    /// Parses a call of a library kernel. Operands may also be written as a tuple after the name, in the order of the kernel's
    /// declaration.
    pub(super) fn kernel_call(&mut self, e: &Expr<'s>, call: &Call<'s>) -> Res<IrExpr> {
        let Some(name) = call.args.first().and_then(Expr::as_str) else {
            let message = "the first argument of R.call_kernel must be the name of a kernel (its operands and attributes are keyword arguments)";
            return Err(self.error(ErrorKind::Arguments, e.range, message));
        };
        let kernel = find_kernel(name).map_err(|(message, help)| {
            self.error_help(ErrorKind::UnknownName, call.args[0].range, message, help)
        })?;
        let (mut args, mut names) = (Vec::new(), Vec::new());
        if let Some(list) = call.args.get(1) {
            let (fields, _) = self.call_args(list, None)?;
            let inputs = kernel.operands.iter().filter(|operand| !operand.role.is_written());
            let own: Vec<_> = inputs.take(fields.len()).map(|o| AttrValue::str(o.name)).collect();
            if own.len() < fields.len() || call.args.len() > 2 {
                let message = format!(
                    "the call of kernel {name} has too many operands: the kernel reads only {}",
                    own.len()
                );
                return Err(self.error(ErrorKind::Arguments, list.range, message));
            }
            (args, names) = (fields, own);
        }
        let (mut axes, mut attributes) = (Vec::new(), Vec::new());
        for keyword in &call.keywords {
            let (key, range) = (keyword.name, keyword.value.range);
            if TYPE_KEYWORDS.contains(&key) || matches!(keyword.value.kind, ExprKind::None) {
                continue;
            }
            let value = self.value(&keyword.value)?;
            if kernel.operand(key).is_some() {
                args.push(self.operand(value, None, range)?);
                names.push(AttrValue::str(key));
                continue;
            }
            match (key, self.attr(&value, range)?) {
                (AXES, AttrValue::Map(map)) => axes = map,
                (AXES, _) => {
                    let message = "the argument 'axes' of R.call_kernel must be a dict from operand names to lists of integers";
                    return Err(self.error(ErrorKind::Value, range, message));
                }
                (_, value) => attributes.push((key.into(), value)),
            }
        }
        let out = self.out_type(WHAT, e, call, None, &args)?;
        let attrs: Attrs = kernel_attrs(kernel, names, axes, attributes);
        self.emit_op(CALL_KERNEL, &args, attrs, &[out], e.range)
    }
}
