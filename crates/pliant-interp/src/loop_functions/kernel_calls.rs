//! Runs calls of library kernels. The reference implementations of `pliant_kernel_api` compute the results.

use std::rc::Rc;

use pliant_ir::tir::{Expr, KernelCall, KernelOperand};
use pliant_kernel_api::reference::{self, Memory, Number};
use pliant_kernel_api::{Call, KernelErrorKind, MAX_RANK, View as KernelView};

use super::LoopFrame;
use super::buffer_view::View;
use super::scalar_arithmetic::{Val, malformed};
use crate::InterpError;
use crate::interp_error::{ErrorKind, Result};
use crate::interpreter::Interpreter;

/// The memory that the operands of a kernel call refer to, for the reference implementations.
struct KernelMemory<'m, 'a> {
    interp: &'m mut Interpreter<'a>,
    views: Vec<Option<Rc<View>>>,
}

impl KernelMemory<'_, '_> {
    fn view(&self, operand: usize) -> Result<&View> {
        self.views[operand]
            .as_deref()
            .ok_or_else(|| malformed("the kernel accesses an absent operand"))
    }
}

impl Memory for KernelMemory<'_, '_> {
    fn read(&self, operand: usize, indices: &[i64]) -> reference::Result<Number> {
        let view = self.view(operand)?;
        Ok(match view.read(view.position(indices)?)? {
            Val::Int(v) => Number::Int(v),
            value => Number::Float(value.float()?),
        })
    }

    fn write(&mut self, operand: usize, indices: &[i64], value: Number) -> reference::Result<()> {
        let view = self.view(operand)?;
        let value = match value {
            Number::Int(v) => Val::Int(v),
            Number::Float(v) => Val::Float(v),
        };
        Ok(view.write(view.position(indices)?, &value)?)
    }

    fn step(&mut self, count: u64) -> reference::Result<()> {
        Ok(self.interp.step(count)?)
    }
}

impl LoopFrame<'_, '_, '_> {
    /// Runs `T.call_kernel(name, ...)`.
    pub(super) fn call_kernel(&mut self, args: &[Expr]) -> Result<Val> {
        let call = KernelCall::of_args(self.f, args).map_err(|e| malformed(&e))?;
        let (checked, views) = self.kernel_operands(&call)?;
        let sizes = checked.check().map_err(|e| {
            let kind = match e.kind {
                KernelErrorKind::Type => ErrorKind::Type,
                KernelErrorKind::Shape | KernelErrorKind::Value => ErrorKind::Check,
            };
            InterpError::new(kind, format!("{}: {e}", self.name))
        })?;
        self.memo.clear();
        let mut memory = KernelMemory { interp: self.interp, views };
        match reference::run(&checked, &sizes, &mut memory) {
            Ok(()) => Ok(Val::Int(0)),
            Err(error) => Err(match error.downcast::<InterpError>() {
                Ok(error) => *error,
                Err(error) => malformed(&error.to_string()),
            }),
        }
    }

    /// Converts the call to a [`Call`] of `pliant_kernel_api`, which checks operands and attributes. Also returns a view of
    /// each operand's memory; `None` for absent operands.
    fn kernel_operands(&mut self, call: &KernelCall<'_>) -> Result<(Call, Vec<Option<Rc<View>>>)> {
        let mut checked = Call::new(call.kernel);
        let mut views = Vec::with_capacity(call.operands.len());
        for (i, &operand) in call.operands.iter().enumerate() {
            let name = call.kernel.operands[i].name;
            let view = operand.map(|o| self.kernel_view(name, o)).transpose()?;
            if let Some(view) = &view {
                let (dims, strides) = (&view.shape, view.strides());
                let kernel_view = KernelView::new(view.base(), view.dtype, dims, Some(strides));
                let error = || {
                    let (function, kernel) = (self.name, call.kernel.name);
                    InterpError::check(format!(
                        "{function}: kernel {kernel}: operand '{name}' has more than {MAX_RANK} dims"
                    ))
                };
                checked.set_operand(i, Some(kernel_view.ok_or_else(error)?));
            }
            views.push(view);
        }
        for (i, &number) in call.numbers.iter().enumerate() {
            let number = match self.eval(number)? {
                Val::Float(v) => v.to_bits() as i64,
                value => value.int()?,
            };
            checked.set_number(i, number);
        }
        Ok((checked, views))
    }

    fn kernel_view(&mut self, name: &str, operand: KernelOperand<'_>) -> Result<Rc<View>> {
        let whole = self.views.get(&operand.buffer).cloned();
        let whole = whole.ok_or_else(|| {
            malformed("an operand of a kernel call is a buffer that is used outside of its scope")
        })?;
        let Some(view) = operand.view else { return Ok(whole) };
        let offset = self.eval(view.offset)?.int()?;
        let mut numbers =
            |list: &[Expr]| list.iter().map(|&e| self.eval(e)?.int()).collect::<Result<Vec<i64>>>();
        let (dims, strides) = (numbers(view.dims)?, numbers(view.strides)?);
        let elements = whole.shape.iter().fold(1i64, |n, &dim| n.saturating_mul(dim));
        KernelView::within(name, (whole.base(), whole.dtype, elements), offset, &dims, &strides)
            .map_err(|e| InterpError::new(ErrorKind::Bounds, e))?;
        Ok(Rc::new(whole.subview(offset, dims, strides)))
    }
}
