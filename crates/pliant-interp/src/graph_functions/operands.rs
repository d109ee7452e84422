//! Evaluates operands: leaves (such as variables and constants), tuples of leaves, and sizes.

use pliant_ir::DType;
use pliant_ir::Sym;
use pliant_ir::relax::{Expr, ExprData};

use super::Frame;
use crate::interp_error::{Result, eval_error};
use crate::runtime_values::Func;
use crate::{InterpError, Value};

impl Frame {
    /// Returns the value of the operand `e`. Fails if `e` is a variable that is not defined yet or was killed.
    pub(super) fn value(&self, e: Expr) -> Result<Value> {
        let func = &self.func;
        Ok(match func.expr(e) {
            ExprData::Var(v) => match self.vars.get(v) {
                Some(value) => value.clone(),
                None => {
                    let name = &func.var(*v).name;
                    return Err(InterpError::unsupported(format!(
                        "{}: '{name}' is read before it is defined, or after an operator such as R.memory.kill_tensor \
                         released it",
                        self.name
                    )));
                }
            },
            ExprData::Global(name) => Value::Func(Func::Global(func.str(*name).clone())),
            ExprData::Extern(name) => Value::Func(Func::Packed(func.str(*name).clone())),
            ExprData::Constant(c) if self.in_place => Value::Tensor(func.const_tensor(*c).copy()?),
            ExprData::Constant(c) => Value::Tensor(func.const_tensor(*c).as_read_only()),
            ExprData::Shape(dims) => Value::Shape(self.sizes(dims)?.into()),
            ExprData::Int(value, dtype) => {
                let value = self.size(*value)?;
                if *dtype == DType::Bool { Value::Bool(value != 0) } else { Value::Int(value) }
            }
            ExprData::Float(bits, _) => Value::Float(f64::from_bits(*bits)),
            ExprData::Str(s) => Value::Str(func.str(*s).clone()),
            ExprData::DType(d) => Value::DType(*d),
            ExprData::Tuple(list) => {
                let fields: Result<Vec<Value>> =
                    func.list(*list).iter().map(|&f| self.value(f)).collect();
                Value::Tuple(fields?.into())
            }
            ExprData::TupleGetItem(tuple, index) => {
                let tuple = self.value(*tuple)?;
                let Some(items) = tuple.as_tuple() else {
                    let text = format!(
                        "{value} is not a tuple, so it has no field {index}",
                        value = tuple.describe()
                    );
                    return Err(InterpError::type_error(text));
                };
                match items.get(*index as usize) {
                    Some(item) => item.clone(),
                    None => {
                        let text =
                            format!("{value} has no field {index}", value = tuple.describe());
                        return Err(InterpError::type_error(text));
                    }
                }
            }
            ExprData::Call { .. } | ExprData::If { .. } | ExprData::Func(_) => {
                return Err(InterpError::unsupported(
                    "an operand of a call must be a variable, a constant, a name or a tuple of these, but is a call, an If or a \
                     function; bind it to a variable first",
                ));
            }
        })
    }

    /// Returns the value of a symbolic size.
    pub(super) fn size(&self, sym: Sym) -> Result<i64> {
        let syms = &self.func.syms;
        syms.evaluate(sym, &|v| self.syms.get(&v).copied())
            .map_err(|e| eval_error(e, &|| syms.display(sym).to_string()))
    }

    /// Returns the values of symbolic sizes.
    pub(super) fn sizes(&self, dims: &[Sym]) -> Result<Vec<i64>> {
        dims.iter().map(|&d| self.size(d)).collect()
    }
}
