//! Runs loop functions.
//!
//! | file | contains |
//! |---|---|
//! | `mod` | frames, binding of arguments, allocation of buffers |
//! | `statements` | statements and blocks |
//! | `empty_reductions` | the inits of blocks in loops without iterations |
//! | `expressions` | expressions |
//! | `intrinsics` | intrinsics |
//! | `kernel_calls` | calls of library kernels |
//! | `extern_calls` | calls of functions of the run-time library |
//! | `scalar_arithmetic` | values and arithmetic |
//! | `buffer_view` | buffers and memory accesses |

pub(crate) mod buffer_view;
mod empty_reductions;
mod expressions;
mod extern_calls;
mod intrinsics;
mod kernel_calls;
pub(crate) mod scalar_arithmetic;
mod statements;

use std::rc::Rc;

use cranelift_entity::SecondaryMap;
use pliant_ir::print::tir_expr_text;
use pliant_ir::tir::visit::for_each_operand;
use pliant_ir::tir::{Buffer, Expr, ExprData, PrimFunc, Ty, Var, VarTy};
use rustc_hash::FxHashMap;

use crate::interp_error::{ErrorKind, Result};
use crate::interpreter::Interpreter;
use crate::runtime_values::plural;
use crate::{InterpError, Value};
use buffer_view::View;
use scalar_arithmetic::{Val, cast, malformed};

/// The state of one call of a loop function.
pub(crate) struct LoopFrame<'m, 'a, 'f> {
    interp: &'m mut Interpreter<'a>,
    f: &'f PrimFunc,
    name: &'f str,
    vars: FxHashMap<Var, Val>,
    views: FxHashMap<Buffer, Rc<View>>,
    /// The expressions that occur more than once as operands of other expressions. They are evaluated once per statement.
    shared: SecondaryMap<Expr, bool>,
    /// The values of the expressions in `shared` that the current statement has evaluated.
    memo: FxHashMap<Expr, Val>,
}

/// Calls a loop function, which writes its results to tensor arguments.
pub(crate) fn call(
    interp: &mut Interpreter<'_>,
    name: &str,
    f: &PrimFunc,
    args: &[Value],
) -> Result<()> {
    let mut frame = LoopFrame {
        interp,
        f,
        name,
        vars: FxHashMap::default(),
        views: FxHashMap::default(),
        shared: shared_exprs(f),
        memo: FxHashMap::default(),
    };
    frame.bind_arguments(args)?;
    frame.stmt(f.body).map_err(|e| e.at(|| format!("loop function '{name}'")))
}

/// Finds the expressions that occur more than once as operands of other expressions. Constants, variables and strings are not
/// included.
fn shared_exprs(f: &PrimFunc) -> SecondaryMap<Expr, bool> {
    let (mut seen, mut shared) = (SecondaryMap::new(), SecondaryMap::new());
    for i in 0..f.num_exprs() {
        for_each_operand(f.expr(Expr::from_u32(i as u32)), |e| {
            let leaf = matches!(
                f.expr(e),
                ExprData::Int(..) | ExprData::Float(..) | ExprData::Var(_) | ExprData::Str(_)
            );
            if std::mem::replace(&mut seen[e], true) && !leaf {
                shared[e] = true;
            }
        });
    }
    shared
}

impl LoopFrame<'_, '_, '_> {
    /// Binds the arguments of a call: first the scalar parameters, then the buffers. A size
    /// variable that is a whole dim gets the value of this dim. Finally checks all other dims,
    /// strides and offsets.
    fn bind_arguments(&mut self, args: &[Value]) -> Result<()> {
        let f = self.f;
        if args.len() != f.params.len() {
            let (want, have) = (plural(f.params.len() as i64, "argument"), args.len());
            let text = format!("{} takes {want}, but {have} were given", self.name);
            return Err(InterpError::type_error(text));
        }
        for (&param, value) in f.params.iter().zip(args) {
            if let VarTy::Value(ty) = f.var(param).ty {
                let value = self.scalar_argument(param, ty, value)?;
                self.vars.insert(param, value);
            }
        }
        let mut pending = Vec::new();
        for (&param, value) in f.params.iter().zip(args) {
            if f.var(param).ty != VarTy::Handle {
                continue;
            }
            match f.buffer_map.get(&param) {
                Some(&buffer) => self.buffer_argument(buffer, value, &mut pending)?,
                None => {
                    let Value::Tensor(t) = value else {
                        return Err(self.type_mismatch(param, "a tensor", value));
                    };
                    self.vars.insert(param, Val::Tensor(t.clone()));
                }
            }
        }
        for (location, want, actual) in pending {
            let value = self.eval(want)?.int()?;
            if value != actual {
                let (function, text) = (self.name, tir_expr_text(f, want));
                let expected = match f.expr(want) {
                    ExprData::Int(..) => text,
                    _ => format!("{text} = {value}"),
                };
                return Err(InterpError::type_error(format!(
                    "{function}: {location} must equal {expected}, but is {actual}"
                )));
            }
        }
        Ok(())
    }

    fn type_mismatch(&self, param: Var, wanted: &str, value: &Value) -> InterpError {
        let (name, param) = (self.name, &self.f.var(param).name);
        let text = format!("{name}: '{param}' must be {wanted}, but is {}", value.describe());
        InterpError::type_error(text)
    }

    fn scalar_argument(&self, param: Var, ty: Ty, value: &Value) -> Result<Val> {
        let wrong =
            || self.type_mismatch(param, &format!("{} scalar", ty.dtype.with_article()), value);
        match value {
            Value::Int(v) if !ty.dtype.is_float() => {
                let wrapped = scalar_arithmetic::wrap(*v, ty.dtype);
                if wrapped == *v || ty.dtype.is_bool() {
                    Ok(Val::Int(wrapped))
                } else {
                    Err(wrong())
                }
            }
            Value::Bool(v) if !ty.dtype.is_float() => Ok(Val::Int(i64::from(*v))),
            Value::Float(v) if ty.dtype.is_float() => {
                cast(&Val::Float(*v), pliant_ir::DType::Float64, ty.dtype)
            }
            _ => Err(wrong()),
        }
    }

    /// Binds a buffer parameter. A size variable that is a whole dim, stride or offset of the
    /// buffer gets the actual value. All other sizes are appended to `pending`, each as location,
    /// required value and actual value.
    fn buffer_argument(
        &mut self,
        buffer: Buffer,
        value: &Value,
        pending: &mut Vec<(String, Expr, i64)>,
    ) -> Result<()> {
        let data = self.f.buffer(buffer);
        let rank = data.shape.len();
        let tensor = match value {
            Value::Tensor(t) if t.ndim() == rank && t.dtype() == data.dtype => t,
            _ => {
                let (name, param, dtype) = (self.name, &data.name, data.dtype.with_article());
                let (dims, is) = (plural(rank as i64, "dim"), value.describe());
                let text =
                    format!("{name}: '{param}' must be {dtype} tensor of {dims}, but is {is}");
                return Err(InterpError::type_error(text));
            }
        };
        let view = if data.strides.is_empty() {
            View::of_tensor(&data.name, tensor)
        } else {
            View::with_declared_strides(&data.name, tensor)
        };
        for (i, &dim) in data.shape.iter().enumerate() {
            self.match_size(dim, tensor.shape()[i], format!("'{}' dim {i}", data.name), pending);
        }
        for (i, &stride) in data.strides.iter().enumerate() {
            // A dim of size 0 or 1 may have any stride.
            if tensor.shape()[i] > 1 || self.undefined(stride) {
                let location = format!("'{}' stride {i}", data.name);
                self.match_size(stride, tensor.strides()[i], location, pending);
            }
        }
        if let Some(offset) = data.elem_offset {
            // The data pointer of a tensor includes its offset.
            self.match_size(offset, 0, format!("'{}' offset", data.name), pending);
        }
        self.views.insert(buffer, Rc::new(view));
        Ok(())
    }

    /// Whether an expression is a variable without a value.
    fn undefined(&self, e: Expr) -> bool {
        matches!(self.f.expr(e), ExprData::Var(v) if !self.vars.contains_key(v))
    }

    /// Matches the required size `want` with the actual size. A variable without a value gets the
    /// actual size. Any other size is appended to `pending`, to be checked later.
    fn match_size(
        &mut self,
        want: Expr,
        actual: i64,
        location: String,
        pending: &mut Vec<(String, Expr, i64)>,
    ) {
        match *self.f.expr(want) {
            ExprData::Var(v) if !self.vars.contains_key(&v) => {
                self.vars.insert(v, Val::Int(actual));
            }
            _ => pending.push((location, want, actual)),
        }
    }

    fn view(&self, buffer: Buffer) -> Result<Rc<View>> {
        self.views.get(&buffer).cloned().ok_or_else(|| {
            let name = &self.f.buffer(buffer).name;
            malformed(&format!("buffer '{name}' is used outside of its scope"))
        })
    }

    /// Allocates memory for a buffer. The caller removes the buffer at the end of its scope.
    fn allocate(&mut self, buffer: Buffer) -> Result<()> {
        let data = self.f.buffer(buffer);
        let shape = self.eval_sizes(&data.shape)?;
        let strides = self.eval_sizes(&data.strides)?;
        if let Some(&d) = shape.iter().find(|&&d| d < 0) {
            let text = format!(
                "buffer '{}' cannot be allocated: a dim has the negative size {d}",
                data.name
            );
            return Err(InterpError::size(text));
        }
        let overflow = || {
            InterpError::size(format!(
                "buffer '{}' of shape {shape:?} is too large to allocate",
                data.name
            ))
        };
        let declared = !strides.is_empty() || data.elem_offset.is_some();
        let offset = match data.elem_offset {
            Some(e) => self.eval(e)?.int()?,
            None => 0,
        };
        if offset != 0 {
            let text = format!("buffer '{}' is allocated with an offset other than 0", data.name);
            return Err(InterpError::new(ErrorKind::Unsupported, text));
        }
        let view = if declared && !strides.is_empty() {
            if strides.iter().any(|&s| s < 0) {
                return Err(overflow());
            }
            let mut span = i64::from(!shape.contains(&0));
            for (&d, &s) in shape.iter().zip(&strides).filter(|_| !shape.contains(&0)) {
                span = (d - 1)
                    .checked_mul(s)
                    .and_then(|r| span.checked_add(r))
                    .ok_or_else(overflow)?;
            }
            let memory = self.interp.alloc_tensor(&[span], data.dtype)?;
            View::over(&data.name, &memory, shape, Some(strides))
        } else {
            let memory = self.interp.alloc_tensor(&shape, data.dtype)?;
            View::over(&data.name, &memory, shape, None)
        };
        self.views.insert(buffer, Rc::new(view));
        Ok(())
    }

    fn eval_sizes(&mut self, list: &[Expr]) -> Result<Vec<i64>> {
        list.iter().map(|&e| self.eval(e)?.int()).collect()
    }
}
