//! [`GradientBuilder`]: emits the bindings of adjoints into a function.

use std::cell::RefCell;
use std::sync::Arc;

use pliant_ir::op::{InferError, Op};
use pliant_ir::relax::{Expr, ExprData, Function, FunctionBuilder};
use pliant_ir::tir::PrimFunc;
use pliant_ir::{Attrs, DType, Sym};
use pliant_tensor::Tensor;
use rustc_hash::FxHashMap;

use super::term::Term;
use crate::legalize::TirCall;
use crate::op_registry::registry;

/// Adds a loop function to the module under a name derived from the given one, and returns the final name.
pub type AddLoopFunction = dyn FnMut(&str, PrimFunc) -> Arc<str>;

/// Emits bindings of adjoints. All methods take `&self`, so that rules can nest calls like arithmetic. Errors of type inference are
/// recorded and reported once at the end of a rule ([`GradientBuilder::take_error`]).
pub struct GradientBuilder {
    builder: RefCell<FunctionBuilder<'static>>,
    /// The variables to which calls are bound that are operands of other calls, so that no call is executed twice.
    bound: RefCell<FxHashMap<Expr, Expr>>,
    error: RefCell<Option<InferError>>,
    add_loop_function: RefCell<Box<AddLoopFunction>>,
}

impl GradientBuilder {
    /// Creates a builder that adds bindings to the arenas of `func`. `add_loop_function` receives the loop functions of derived
    /// gradients.
    pub fn new(
        func: Function,
        add_loop_function: impl FnMut(&str, PrimFunc) -> Arc<str> + 'static,
    ) -> Self {
        GradientBuilder {
            builder: RefCell::new(FunctionBuilder::resume(func, registry())),
            bound: RefCell::default(),
            error: RefCell::new(None),
            add_loop_function: RefCell::new(Box::new(add_loop_function)),
        }
    }

    /// Ends the construction and returns the function.
    pub fn into_func(self) -> Function {
        self.builder.into_inner().into_func()
    }

    /// Ends the construction and returns the function with the given result.
    pub fn finish(self, result: Expr, pure: bool) -> Function {
        self.builder.into_inner().finish(result, None, pure)
    }

    /// Reads the function under construction.
    pub fn read<T>(&self, f: impl FnOnce(&Function) -> T) -> T {
        f(self.builder.borrow().func())
    }

    /// Changes the arenas of the function under construction.
    pub fn edit<T>(&self, f: impl FnOnce(&mut Function) -> T) -> T {
        f(self.builder.borrow_mut().func_mut())
    }

    /// Gives access to the underlying builder, for bindings that are not calls of operators.
    pub fn build<T>(&self, f: impl FnOnce(&mut FunctionBuilder<'static>) -> T) -> T {
        f(&mut self.builder.borrow_mut())
    }

    /// Converts an expression to an operand: a call is bound to a variable, once.
    pub fn operand(&self, e: Expr) -> Expr {
        if let Some(&var) = self.bound.borrow().get(&e) {
            return var;
        }
        let fields = self.read(|f| f.tuple_fields(e).map(<[Expr]>::to_vec));
        if let Some(fields) = fields {
            let leaves: Vec<Expr> = fields.iter().map(|&field| self.operand(field)).collect();
            return if leaves == fields { e } else { self.edit(|f| f.tuple(&leaves)) };
        }
        let is_leaf = self.read(|f| {
            !matches!(
                f.expr(e),
                ExprData::Call { .. } | ExprData::TupleGetItem(..) | ExprData::If { .. }
            )
        });
        if is_leaf {
            return e;
        }
        let var = self.build(|b| {
            let var = b.emit(e);
            b.func().var_expr(var)
        });
        self.bound.borrow_mut().insert(e, var);
        var
    }

    /// Binds a value to a new variable with a name that starts with `hint`, and returns the variable.
    pub fn bind(&self, value: Expr, hint: &str) -> Expr {
        let value = self.bound.borrow().get(&value).copied().unwrap_or(value);
        self.build(|b| {
            let var = b.emit_named(value, hint);
            b.func().var_expr(var)
        })
    }

    /// Creates a call of an operator. If its types are wrong, the error is recorded, and the first operand is returned.
    pub fn call(&self, op: &'static str, args: &[Expr], attrs: Attrs) -> Expr {
        self.call_op(Op::new(op), args, attrs)
    }

    /// Creates a call of an operator like [`call`](Self::call).
    pub fn call_op(&self, op: Op, args: &[Expr], attrs: Attrs) -> Expr {
        let args: Vec<Expr> = args.iter().map(|&a| self.operand(a)).collect();
        let result = self.build(|b| b.call_op(op, &args, attrs, &[]));
        match result {
            Ok(call) => call,
            Err(error) => {
                self.fail(error);
                match args.first() {
                    Some(&arg) => arg,
                    None => self.edit(|f| f.tuple(&[])),
                }
            }
        }
    }

    /// Creates a call of a loop function, which is added to the module. Returns the call.
    pub fn call_loop_function(&self, call: TirCall) -> Expr {
        let TirCall { func: prim, name, inputs, tir_vars, out_tys, tuple } = call;
        let name = (self.add_loop_function.borrow_mut())(&name, prim);
        let inputs: Vec<Expr> = inputs.into_iter().map(|e| self.operand(e)).collect();
        self.edit(|f| crate::call_tir(f, &name, &inputs, &tir_vars, &out_tys, tuple))
    }

    /// Records an error, unless there is one already.
    pub fn fail(&self, error: InferError) {
        self.error.borrow_mut().get_or_insert(error);
    }

    /// Returns the recorded error, and forgets it.
    pub fn take_error(&self) -> Option<InferError> {
        self.error.borrow_mut().take()
    }

    /// A value for use in rules.
    pub fn term(&self, e: Expr) -> Term<'_> {
        Term::new(self, e)
    }

    /// A constant of rank 0 of a float type.
    pub fn constant(&self, value: f64, dtype: DType) -> Expr {
        let tensor = match dtype {
            DType::Float64 => Tensor::scalar(value),
            DType::Float16 => Tensor::scalar(pliant_tensor::round_to_f16(value)),
            DType::BFloat16 => Tensor::scalar(pliant_tensor::round_to_bf16(value)),
            _ => Tensor::scalar(value as f32),
        };
        match tensor {
            Ok(tensor) => self.edit(|f| f.constant(tensor)),
            Err(e) => {
                self.fail(InferError::new(e.to_string()));
                self.edit(|f| f.tuple(&[]))
            }
        }
    }

    /// A shape value with the given dims.
    pub fn shape(&self, dims: &[Sym]) -> Expr {
        self.edit(|f| f.shape(dims))
    }
}
