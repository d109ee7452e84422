//! The kernels that compute whole operators in simple form: loops over elements in float64, as the
//! declarations of `pliant_kernel_api` define the results.

mod attention;
mod conv;
mod conv_int8;
mod epilogue;
mod matmul;
mod matmul_int8;
mod pool;
mod recurrent;
mod softmax;
mod transpose;
mod weight_only_matmul;
mod window;

use std::rc::Rc;

use pliant_ir::tir::{Expr, KernelCall, KernelOperand};
use pliant_kernel_api::{Call, KernelErrorKind, Order, Sizes, View as KernelView, leading_dims};

use super::Loops;
use super::scalar::{Val, malformed, unsupported};
use super::view::View;
use crate::InterpError;
use crate::error::{ErrorKind, Result};

/// The operands and attributes of a call that passed the checks of the declaration.
struct Args {
    call: Call,
    sizes: Sizes,
    views: Vec<Option<Rc<View>>>,
}

impl Args {
    /// The buffer of an operand; `None` if the call omits it.
    fn view(&self, name: &str) -> Option<&View> {
        self.views[self.call.kernel.operand(name)?].as_deref()
    }

    /// An element of an operand; `indices` are given by dim name.
    fn read(&self, name: &str, indices: &[(&str, i64)]) -> Result<Val> {
        let view = self.present(name)?;
        view.read(view.position(&self.ordered(name, indices)?)?)
    }

    /// A float element of an operand.
    fn get(&self, name: &str, indices: &[(&str, i64)]) -> Result<f64> {
        self.read(name, indices)?.float()
    }

    /// Writes a float element of a result.
    fn set(&self, name: &str, indices: &[(&str, i64)], value: f64) -> Result<()> {
        self.write(name, indices, &Val::Float(value))
    }

    /// Writes an element of a result.
    fn write(&self, name: &str, indices: &[(&str, i64)], value: &Val) -> Result<()> {
        let view = self.present(name)?;
        view.write(view.position(&self.ordered(name, indices)?)?, value)
    }

    fn present(&self, name: &str) -> Result<&View> {
        self.view(name).ok_or_else(|| malformed(&format!("the operand {name} is absent")))
    }

    /// Indices in the order of an operand's dims.
    fn ordered(&self, name: &str, indices: &[(&str, i64)]) -> Result<Vec<i64>> {
        let at = self.call.kernel.operand(name).ok_or_else(|| malformed("an unknown operand"))?;
        let dims = self.call.dims(&self.call.kernel.operands[at]);
        let shape = &self.present(name)?.shape;
        let leading = leading_dims(dims, shape.len()).unwrap_or(0);
        let mut out = Vec::with_capacity(shape.len());
        for (k, dim) in dims.iter().enumerate() {
            let found = indices.iter().find(|(name, _)| name == dim);
            let index = found.map(|(_, i)| *i);
            let mut rest = index.ok_or_else(|| malformed(&format!("no index for {dim}")))?;
            if k > 0 {
                out.push(rest);
                continue;
            }
            // The first name represents several dims.
            for &size in shape[..leading].iter().rev() {
                out.insert(0, if leading == 1 { rest } else { rest % size.max(1) });
                rest /= size.max(1);
            }
        }
        Ok(out)
    }
}

impl Loops<'_, '_, '_> {
    /// A call of a kernel.
    pub(super) fn call_kernel(&mut self, args: &[Expr]) -> Result<Val> {
        let call = KernelCall::of_args(self.f, args).map_err(|e| malformed(&e))?;
        let args = self.kernel_args(&call)?;
        self.memo.clear();
        match call.kernel.name {
            "attention" => attention::run(self.m, &args)?,
            "conv" => conv::run(self.m, &args)?,
            "conv_int8" => conv_int8::run(self.m, &args)?,
            "matmul" | "matmul_packed" => matmul::run(self.m, &args)?,
            "matmul_int8" => matmul_int8::run(self.m, &args)?,
            "pool" => pool::run(self.m, &args)?,
            "transpose" => transpose::run(self.m, &args)?,
            "softmax" => softmax::run(self.m, &args)?,
            "recurrent" => recurrent::run(self.m, &args)?,
            "matmul_int8_weight" | "matmul_int4_weight" | "matmul_bfloat16_weight" => {
                weight_only_matmul::run(self.m, &args)?;
            }
            name => return Err(unsupported(format!("kernel {name} has no plain form"))),
        }
        Ok(Val::Int(0))
    }

    fn kernel_args(&mut self, call: &KernelCall<'_>) -> Result<Args> {
        let mut checked = Call::new(call.kernel);
        let mut views = Vec::with_capacity(call.operands.len());
        for (i, &operand) in call.operands.iter().enumerate() {
            let name = call.kernel.operands[i].name;
            let view = operand.map(|o| self.kernel_view(name, o)).transpose()?;
            checked.set_operand(i, view.as_deref().and_then(kernel_view));
            views.push(view);
        }
        for (i, &number) in call.numbers.iter().enumerate() {
            let number = match self.eval(number)? {
                Val::Float(v) => v.to_bits() as i64,
                value => value.int()?,
            };
            checked.set_number(i, number);
        }
        let failed = |e: pliant_kernel_api::KernelError| {
            let kind = match e.kind {
                KernelErrorKind::Type => ErrorKind::Type,
                KernelErrorKind::Shape | KernelErrorKind::Value => ErrorKind::Check,
            };
            InterpError::new(kind, format!("{}: {e}", self.name))
        };
        let sizes = checked.check().map_err(failed)?;
        for (operand, view) in call.kernel.operands.iter().zip(&mut views) {
            if operand.order == Order::RowMajor {
                *view = view.take().map(|view| with_leading_dim(view, checked.dims(operand)));
            }
        }
        Ok(Args { call: checked, sizes, views })
    }

    fn kernel_view(&mut self, name: &str, operand: KernelOperand<'_>) -> Result<Rc<View>> {
        let whole = self.views.get(&operand.buffer).cloned();
        let whole = whole.ok_or_else(|| malformed("a kernel is called with an unknown buffer"))?;
        let Some(view) = operand.view else { return Ok(whole) };
        let offset = self.eval(view.offset)?.int()?;
        let mut numbers =
            |list: &[Expr]| list.iter().map(|&e| self.eval(e)?.int()).collect::<Result<Vec<i64>>>();
        let (dims, strides) = (numbers(view.dims)?, numbers(view.strides)?);
        let elements = whole.shape.iter().product();
        KernelView::within((whole.base(), whole.dtype, elements), offset, &dims, &strides)
            .map_err(|e| InterpError::new(ErrorKind::Bounds, format!("operand {name} {e}")))?;
        Ok(Rc::new(whole.part(offset, dims, strides)))
    }
}

/// A compact view in which one dim replaces those that the first name represents.
fn with_leading_dim(view: Rc<View>, names: &[&str]) -> Rc<View> {
    match leading_dims(names, view.shape.len()) {
        None | Some(1) => view,
        Some(_) if names.is_empty() => view,
        Some(leading) => {
            let (first, rest) = view.shape.split_at(leading);
            let dims = [&[first.iter().product::<i64>()], rest].concat();
            let mut strides = vec![1; dims.len()];
            for k in (1..dims.len()).rev() {
                strides[k - 1] = strides[k] * dims[k];
            }
            Rc::new(view.part(0, dims, strides))
        }
    }
}

/// A buffer in the form that the checks of a call expect.
fn kernel_view(view: &View) -> Option<KernelView> {
    KernelView::new(view.base(), view.dtype, &view.shape, Some(view.strides()))
}
