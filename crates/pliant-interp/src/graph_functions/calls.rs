//! Runs calls in graph functions: calls of functions of the module, of builtins and of functions of the host (the program that runs
//! the interpreter), destination-passing calls, and operators that are not lowered to loop functions.

use std::sync::Arc;

use pliant_ir::attr_names::INPLACE_INDICES;
use pliant_ir::relax::{Callee, Expr, ExprData, TensorShape, Type, TypeData};
use pliant_ir::{Attrs, Op};
use pliant_tensor::Tensor;

use super::Frame;
use crate::interp_error::Result;
use crate::interpreter::Interpreter;
use crate::runtime_values::Func;
use crate::{InterpError, Value, builtins};

/// The callee, the operands and the attributes of a call expression.
pub(super) struct Call<'f> {
    pub expr: Expr,
    pub callee: Callee,
    pub args: &'f [Expr],
    pub attrs: &'f Attrs,
    pub ty_args: &'f [Type],
}

impl Call<'_> {
    fn arg(&self, i: usize) -> Result<Expr> {
        self.args.get(i).copied().ok_or_else(|| {
            InterpError::unsupported(format!(
                "operand {i} of a call is missing: the call has only {} operands",
                self.args.len()
            ))
        })
    }
}

impl Frame {
    pub(super) fn call(&mut self, interp: &mut Interpreter<'_>, call: &Call<'_>) -> Result<Value> {
        match call.callee {
            Callee::Op(op) => self.call_op(interp, op, call),
            Callee::Expr(callee) => {
                if let ExprData::Extern(name) = self.func.expr(callee)
                    && &**self.func.str(*name) == "vm.builtin.kill_object"
                {
                    self.kill(call.arg(0)?);
                    return Ok(Value::unit());
                }
                let args = self.values(call.args)?;
                self.call_value(interp, callee, &args)
            }
        }
    }

    fn values(&self, list: &[Expr]) -> Result<Vec<Value>> {
        list.iter().map(|&e| self.value(e)).collect()
    }

    fn call_value(
        &self,
        interp: &mut Interpreter<'_>,
        callee: Expr,
        args: &[Value],
    ) -> Result<Value> {
        let callee = self.callee(callee)?;
        interp.call_func(&callee, args)
    }

    fn callee(&self, e: Expr) -> Result<Func> {
        match self.value(e)? {
            Value::Func(func) => Ok(func),
            other => Err(InterpError::type_error(format!(
                "{value} is not a function and cannot be called",
                value = other.describe()
            ))),
        }
    }

    /// Returns the fields of a tuple operand. Any other operand counts as a single field.
    fn fields(&self, e: Expr) -> Result<Vec<Value>> {
        Ok(match self.value(e)? {
            Value::Tuple(items) => items.to_vec(),
            one => vec![one],
        })
    }

    /// Returns the operand `tir_vars` of a destination-passing call: the sizes that the callee receives after the outputs.
    fn tir_vars(&self, call: &Call<'_>) -> Result<Vec<Value>> {
        let Some(&e) = call.args.get(2) else { return Ok(Vec::new()) };
        match self.value(e)? {
            Value::Shape(dims) => Ok(dims.iter().map(|&d| Value::Int(d)).collect()),
            Value::Tuple(items) => Ok(items.to_vec()),
            other => {
                let text = format!("tir_vars must be a shape, but is {}", other.describe());
                Err(InterpError::type_error(text))
            }
        }
    }

    fn call_op(&mut self, interp: &mut Interpreter<'_>, op: Op, call: &Call<'_>) -> Result<Value> {
        let name = match op.name() {
            "relax.call_tir" | "relax.call_tir_with_grad" | "relax.call_dps_packed" => {
                return self.call_dps(interp, call);
            }
            "relax.call_tir_inplace" => return self.call_inplace(interp, call),
            "relax.call_pure_packed" | "relax.call_inplace_packed" => {
                let args = self.values(call.args.get(1..).unwrap_or_default())?;
                return self.call_value(interp, call.arg(0)?, &args);
            }
            "relax.call_builtin_with_ctx"
            | "relax.invoke_closure"
            | "relax.invoke_pure_closure" => {
                let args = self.fields(call.arg(1)?)?;
                return self.call_value(interp, call.arg(0)?, &args);
            }
            "relax.vm.call_tir_dyn" => {
                let mut args = vec![self.value(call.arg(0)?)?];
                args.extend(self.fields(call.arg(1)?)?);
                return interp.call_packed("vm.builtin.call_tir_dyn", &args);
            }
            "relax.make_closure" => {
                let captured = self.fields(call.arg(1)?)?;
                let func = Arc::new(self.callee(call.arg(0)?)?);
                return Ok(Value::Func(Func::Bound(func, captured.into())));
            }
            "relax.while_loop" => return self.while_loop(interp, call),
            "relax.null_value" => return Ok(Value::None),
            "relax.builtin.alloc_tensor" => {
                let args = self.values(call.args)?;
                let args = builtins::Args::new(&args);
                return Ok(interp.alloc_tensor(args.shape(0)?, args.dtype(1)?)?.into());
            }
            "relax.memory.kill_storage" | "relax.memory.kill_tensor" | "relax.vm.kill_object" => {
                self.kill(call.arg(0)?);
                return Ok(Value::unit());
            }
            "relax.memory.alloc_storage" => {
                let mut args = self.values(call.args)?;
                if args.len() == 4 {
                    args.swap(2, 3);
                }
                return interp.call_packed("vm.builtin.alloc_storage", &args);
            }
            "relax.vm.alloc_storage" => "vm.builtin.alloc_storage",
            "relax.memory.alloc_tensor" | "relax.vm.alloc_tensor" => "vm.builtin.alloc_tensor",
            "relax.shape_of" => "vm.builtin.shape_of",
            "relax.tensor_to_shape" => "vm.builtin.tensor_to_shape",
            _ => {
                let ty = self.func.expr_ty(call.expr);
                return self.call_operator(interp, op, call.args, call.attrs, (ty, call.ty_args));
            }
        };
        let args = self.values(call.args)?;
        interp.call_packed(name, &args)
    }

    /// Runs `while_loop(cond, body, state...)`: calls `body` with the state as long as `cond` returns true for it.
    fn while_loop(&self, interp: &mut Interpreter<'_>, call: &Call<'_>) -> Result<Value> {
        let (cond, body) = (self.callee(call.arg(0)?)?, self.callee(call.arg(1)?)?);
        let mut state = self.values(call.args.get(2..).unwrap_or_default())?;
        let mut iteration: u64 = 0;
        loop {
            interp.step(1)?;
            let at = |e: InterpError| {
                e.at(|| format!("iteration {iteration} of the loop in {}", self.name))
            };
            let holds = interp.call_func(&cond, &state).and_then(|c| builtins::condition(&c));
            if !holds.map_err(at)? {
                break;
            }
            let next = interp.call_func(&body, &state).map_err(at)?;
            state = match next {
                next if state.len() == 1 => vec![next],
                Value::Tuple(items) if items.len() == state.len() => items.to_vec(),
                other => {
                    let (count, what) = (state.len(), other.describe());
                    let text = format!(
                        "the body of a loop must return its {count} state values, but returns {what}"
                    );
                    return Err(at(InterpError::type_error(text)));
                }
            };
            iteration += 1;
        }
        Ok(match state.pop() {
            Some(one) if state.is_empty() => one,
            last => Value::tuple(state.into_iter().chain(last)),
        })
    }

    /// Runs `call_tir` or `call_dps_packed`: allocates the outputs, and passes inputs, outputs and sizes to the callee.
    fn call_dps(&mut self, interp: &mut Interpreter<'_>, call: &Call<'_>) -> Result<Value> {
        let callee = self.callee(call.arg(0)?)?;
        let mut args = self.fields(call.arg(1)?)?;
        let (tys, tuple) = self.out_tys(call);
        let mut outputs = Vec::with_capacity(tys.len());
        for ty in tys {
            outputs.push(Value::Tensor(self.new_output(interp, ty)?));
        }
        args.extend(outputs.iter().cloned());
        args.extend(self.tir_vars(call)?);
        interp.call_func(&callee, &args)?;
        Ok(match outputs.pop() {
            Some(one) if !tuple => one,
            last => Value::tuple(outputs.into_iter().chain(last)),
        })
    }

    /// Runs `call_tir_inplace`. If an output overwrites an input, the memory of this input is
    /// passed as the output. Other outputs are allocated.
    fn call_inplace(&mut self, interp: &mut Interpreter<'_>, call: &Call<'_>) -> Result<Value> {
        let callee = self.callee(call.arg(0)?)?;
        let mut args = self.fields(call.arg(1)?)?;
        let inputs = args.clone();
        let indices = call.attrs.get(INPLACE_INDICES).and_then(|v| v.as_ints());
        let indices = indices.unwrap_or_default();
        let (tys, tuple) = self.out_tys(call);
        let mut outputs = Vec::with_capacity(tys.len());
        for (k, ty) in tys.into_iter().enumerate() {
            let index = indices.get(k).copied().unwrap_or(-1);
            match usize::try_from(index) {
                Ok(i) => match inputs.get(i) {
                    Some(input) => outputs.push(input.clone()),
                    None => {
                        let text = format!("call_tir_inplace has no input {i} to overwrite");
                        return Err(InterpError::unsupported(text));
                    }
                },
                Err(_) => {
                    let output = Value::Tensor(self.new_output(interp, ty)?);
                    args.push(output.clone());
                    outputs.push(output);
                }
            }
        }
        args.extend(self.tir_vars(call)?);
        interp.call_func(&callee, &args)?;
        Ok(match outputs.pop() {
            Some(one) if !tuple => one,
            last => Value::tuple(outputs.into_iter().chain(last)),
        })
    }

    /// Returns the types of the outputs of a destination-passing call, and whether the result of the call is a tuple.
    fn out_tys(&self, call: &Call<'_>) -> (Vec<Type>, bool) {
        let types = &self.func.types;
        let fields = |ty: Type| match types.get(ty) {
            TypeData::Tuple(fields) => Some(fields.to_vec()),
            _ => None,
        };
        match *call.ty_args {
            [] => {
                let ty = self.func.expr_ty(call.expr);
                fields(ty).map_or((vec![ty], false), |f| (f, true))
            }
            [ty] => match fields(ty) {
                Some(list) => (list, true),
                None => (vec![ty], fields(self.func.expr_ty(call.expr)).is_some()),
            },
            _ => (call.ty_args.to_vec(), true),
        }
    }

    /// Allocates an output of the given type.
    fn new_output(&self, interp: &Interpreter<'_>, ty: Type) -> Result<Tensor> {
        let invalid = |reason: &str| {
            let text = pliant_ir::print::type_text(&self.func, ty);
            InterpError::unsupported(format!(
                "an output of type {text} cannot be allocated, because {reason}; give the output a tensor type with known dims and data type in out_sinfo"
            ))
        };
        let TypeData::Tensor { shape, dtype } = self.func.types.get(ty) else {
            return Err(invalid("the output does not have a tensor type"));
        };
        let dtype = dtype.ok_or_else(|| invalid("the type of the output states no data type"))?;
        match shape {
            TensorShape::Dims(dims) => interp.alloc_tensor(&self.sizes(dims)?, dtype),
            TensorShape::Var(v) => match self.vars.get(v) {
                Some(Value::Shape(dims)) => interp.alloc_tensor(dims, dtype),
                _ => Err(invalid(
                    "the output type takes the shape from a variable whose value is not a shape",
                )),
            },
            TensorShape::Rank(_) | TensorShape::Unknown => {
                Err(invalid("the type of the output states no dims"))
            }
        }
    }
}
