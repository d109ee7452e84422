//! Runs operators of the library and of users. Each call is rebuilt with concrete shapes in a
//! separate function. It is lowered as the operator's declaration says, and executed as a loop
//! function. This code does not depend on individual operators.

use pliant_diag::Span;
use pliant_ir::op::{NULL_VALUE, OpRegistry};
use pliant_ir::relax::{Callee, Expr, ExprData, Function, TensorShape, Type, TypeData, Var};
use pliant_ir::{Attrs, DType, Op};
use pliant_ops::legalize::legalize_to_tir;
use pliant_ops::{Legalized, TirCall, legalize, registry};
use rustc_hash::FxHashMap;

use super::Frame;
use crate::interp_error::Result;
use crate::interpreter::Interpreter;
use crate::{InterpError, Value, loop_functions};

/// A graph function that contains a single operator call with concrete shapes, and the values of the function's variables.
struct ConcreteCall {
    func: Function,
    values: FxHashMap<Var, Value>,
}

impl Frame {
    /// Runs a call of an operator that has the result type `ty`.
    pub(super) fn call_operator(
        &self,
        interp: &mut Interpreter<'_>,
        op: Op,
        args: &[Expr],
        attrs: &Attrs,
        (ty, ty_args): (Type, &[Type]),
    ) -> Result<Value> {
        let mut concrete = ConcreteCall { func: Function::empty(), values: FxHashMap::default() };
        let mut operands = Vec::with_capacity(args.len());
        for &arg in args {
            operands.push(concrete.operand(self, arg)?);
        }
        let ty_args = ty_args.iter().map(|&ty| concrete.concrete_type(self, ty));
        let ty_args = ty_args.collect::<Option<Vec<_>>>().unwrap_or_default();
        let func = &mut concrete.func;
        let inferred = registry()
            .infer(func, op, &operands, attrs, &ty_args)
            .map_err(|e| InterpError::type_error(e.to_string()))?;
        // The declared type takes precedence: with concrete shapes, type inference may see a 1 or 0 where the program has a symbol.
        let ty = concrete.concrete_type(self, ty).unwrap_or(inferred);
        let (func, unsupported) = (&mut concrete.func, InterpError::unsupported);
        let tir = legalize_to_tir(func, op, &operands, attrs, ty);
        if let Some(call) = tir.map_err(|e| unsupported(e.to_string()))? {
            return concrete.run(interp, &call);
        }
        let legalized = legalize(func, op, &operands, attrs, ty);
        match legalized.map_err(|e| unsupported(e.to_string()))? {
            Some(Legalized::Packed { name, args }) => {
                let args: Result<Vec<Value>> = args.iter().map(|&a| concrete.value(a)).collect();
                interp.call_packed(name, &args?)
            }
            _ => Err(unsupported(format!(
                "the interpreter does not support operator {op}: it cannot be lowered to a loop function"
            ))),
        }
    }
}

impl ConcreteCall {
    /// Copies an operand of the call into the function under construction. Literals (constants, sizes, strings) are copied as
    /// they are. Any other operand becomes a variable with the exact type of its value.
    fn operand(&mut self, frame: &Frame, e: Expr) -> Result<Expr> {
        if let ExprData::Constant(c) = frame.func.expr(e) {
            return Ok(self.func.constant(frame.func.const_tensor(*c).clone()));
        }
        if let Some(fields) = frame.func.tuple_fields(e) {
            let mut list = Vec::with_capacity(fields.len());
            for &field in fields {
                list.push(self.operand(frame, field)?);
            }
            return Ok(self.func.tuple(&list));
        }
        let value = frame.value(e)?;
        let dtype = match frame.func.ty(e) {
            TypeData::Prim { dtype, .. } => Some(*dtype),
            _ => None,
        };
        self.leaf(value, dtype)
    }

    fn leaf(&mut self, value: Value, dtype: Option<DType>) -> Result<Expr> {
        let func = &mut self.func;
        Ok(match value {
            Value::Tensor(ref t) => {
                let dims: Vec<_> = t.shape().iter().map(|&d| func.syms.int(d)).collect();
                let ty = func.intern(TypeData::tensor(dims, t.dtype()));
                self.var(value, ty)
            }
            Value::Shape(s) => {
                let dims: Vec<_> = s.iter().map(|&d| func.syms.int(d)).collect();
                func.shape(&dims)
            }
            Value::Int(v) => {
                let v = func.syms.int(v);
                func.int_value(v, dtype.unwrap_or(DType::Int64))
            }
            Value::Bool(v) => {
                let v = func.syms.int(i64::from(v));
                func.int_value(v, DType::Bool)
            }
            Value::Float(v) => func.float_value(v, dtype.unwrap_or(DType::Float64)),
            Value::Str(s) => func.str_value(&s),
            Value::DType(d) => func.dtype_value(d),
            Value::Tuple(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items.iter() {
                    list.push(self.leaf(item.clone(), None)?);
                }
                self.func.tuple(&list)
            }
            Value::None => {
                let any = func.intern(TypeData::Any);
                let callee = Callee::Op(NULL_VALUE);
                func.call(callee, &[], Attrs::default(), &[], any)
            }
            Value::Func(_) | Value::Storage(_) | Value::Object(_) => {
                let any = func.intern(TypeData::Any);
                self.var(value, any)
            }
        })
    }

    /// Returns the type `ty` with its symbols and shape variables replaced by their values in `frame`. `None` if a dim or a dtype
    /// is unknown, or if the type is neither a tensor nor a tuple of tensors.
    fn concrete_type(&mut self, frame: &Frame, ty: Type) -> Option<Type> {
        match frame.func.types.get(ty) {
            TypeData::Tensor { shape, dtype: Some(dtype) } => {
                let dims = match shape {
                    TensorShape::Dims(dims) => frame.sizes(dims).ok()?,
                    TensorShape::Var(v) => frame.vars.get(v)?.as_shape()?.to_vec(),
                    TensorShape::Rank(_) | TensorShape::Unknown => return None,
                };
                let dims: Vec<_> = dims.iter().map(|&d| self.func.syms.int(d)).collect();
                Some(self.func.intern(TypeData::tensor(dims, *dtype)))
            }
            TypeData::Tuple(fields) => {
                let fields: Option<Box<[Type]>> =
                    fields.iter().map(|&f| self.concrete_type(frame, f)).collect();
                Some(self.func.intern(TypeData::Tuple(fields?)))
            }
            _ => None,
        }
    }

    fn var(&mut self, value: Value, ty: Type) -> Expr {
        let name = format!("x{}", self.values.len());
        let var = self.func.add_var(name, ty, false, Span::NONE);
        self.values.insert(var, value);
        self.func.var_expr(var)
    }

    /// Evaluates an operand of the call to which the operator call was lowered, such as a call of a loop function.
    fn value(&self, e: Expr) -> Result<Value> {
        let func = &self.func;
        let size = |s| {
            let value = func.syms.as_int(s);
            value.ok_or_else(|| {
                InterpError::unsupported(format!(
                    "the lowering of an operator call created an operand with the size {}, which the interpreter \
                     cannot evaluate, because it is not a constant",
                    func.syms.display(s)
                ))
            })
        };
        Ok(match func.expr(e) {
            ExprData::Var(v) => self.values[v].clone(),
            ExprData::Constant(c) => Value::Tensor(func.const_tensor(*c).clone()),
            ExprData::Tuple(list) => {
                let items: Result<Vec<Value>> =
                    func.list(*list).iter().map(|&f| self.value(f)).collect();
                Value::Tuple(items?.into())
            }
            ExprData::TupleGetItem(tuple, i) => match self.value(*tuple)? {
                Value::Tuple(items) if (*i as usize) < items.len() => items[*i as usize].clone(),
                other => {
                    let text = format!("{} has no field {i}", other.describe());
                    return Err(InterpError::type_error(text));
                }
            },
            ExprData::Shape(dims) => {
                let dims: Result<Vec<i64>> = dims.iter().map(|&d| size(d)).collect();
                Value::Shape(dims?.into())
            }
            ExprData::Int(v, DType::Bool) => Value::Bool(size(*v)? != 0),
            ExprData::Int(v, _) => Value::Int(size(*v)?),
            ExprData::Float(bits, _) => Value::Float(f64::from_bits(*bits)),
            ExprData::Str(s) => Value::Str(func.str(*s).clone()),
            ExprData::DType(d) => Value::DType(*d),
            ExprData::Call { callee: Callee::Op(NULL_VALUE), .. } => Value::None,
            _ => {
                return Err(InterpError::unsupported(
                    "the lowering of an operator call created an operand that is neither a variable, a constant nor a tuple, which \
                     the interpreter does not support",
                ));
            }
        })
    }

    fn run(&self, interp: &mut Interpreter<'_>, call: &TirCall) -> Result<Value> {
        let mut args = Vec::with_capacity(call.inputs.len() + call.out_tys.len());
        for &input in &call.inputs {
            args.push(self.value(input)?);
        }
        let mut outputs = Vec::with_capacity(call.out_tys.len());
        for &ty in &call.out_tys {
            let data = self.func.types.get(ty);
            let type_text = || pliant_ir::print::type_text(&self.func, ty);
            let (Some(dims), Some(dtype)) = (data.dims(), data.dtype()) else {
                let text = format!(
                    "{}: the result type {} has no known dims or no known data type",
                    call.name,
                    type_text()
                );
                return Err(InterpError::unsupported(text));
            };
            // All symbols have values here, so a size that is not a constant has overflowed.
            let dims: Option<Vec<i64>> = dims.iter().map(|&d| self.func.syms.as_int(d)).collect();
            let Some(dims) = dims else {
                let text = format!(
                    "{}: a size of the result {} does not fit 64 bits",
                    call.name,
                    type_text()
                );
                return Err(InterpError::check(text));
            };
            outputs.push(Value::Tensor(interp.alloc_tensor(&dims, dtype)?));
        }
        args.extend(outputs.iter().cloned());
        for &size in &call.tir_vars {
            let value = self.func.syms.as_int(size).ok_or_else(|| {
                let size = self.func.syms.display(size);
                let text = format!("{}: the size argument {size} is not a constant", call.name);
                InterpError::unsupported(text)
            });
            args.push(Value::Int(value?));
        }
        interp.nested_call(&call.name, |interp| {
            loop_functions::call(interp, &call.name, &call.func, &args)
        })?;
        Ok(match outputs.pop() {
            Some(one) if !call.tuple => one,
            last => Value::tuple(outputs.into_iter().chain(last)),
        })
    }
}
