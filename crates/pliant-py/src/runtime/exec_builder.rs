//! `ExecBuilder`: builds an executable instruction by instruction.

use std::sync::{Mutex, PoisonError};

use pliant::CompiledModule;
use pliant_exec as exec;
use pliant_vm::Value;
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::gil_and_panics::run_detached;
use crate::runtime::executable_and_model::Executable;
use crate::runtime::value_conversion::to_value;

/// Builds an executable by hand. `r(i)`, `imm(v)`, `c(i)` and `f(name)` create operands.
#[pyclass(frozen, subclass, module = "pliant.relax")]
pub struct ExecBuilder {
    state: Mutex<Option<exec::ExecBuilder>>,
}

/// An operand of an instruction.
#[pyclass(frozen, module = "pliant.relax")]
#[derive(Clone, Copy)]
pub struct Operand {
    arg: exec::Arg,
}

impl ExecBuilder {
    fn with_builder<T>(&self, work: impl FnOnce(&mut exec::ExecBuilder) -> T) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.as_mut() {
            Some(builder) => Ok(work(builder)),
            None => Err(Error::Value(
                "ExecBuilder: the executable is already finished, so nothing can be added to it"
                    .into(),
            )),
        }
    }
}

#[pymethods]
impl ExecBuilder {
    #[new]
    fn new() -> Self {
        ExecBuilder { state: Mutex::new(Some(exec::ExecBuilder::new())) }
    }

    /// Creates an operand that is the value of the register with this index.
    fn r(&self, index: u32) -> Operand {
        Operand { arg: exec::Arg::reg(exec::Reg(index)) }
    }

    /// Creates an operand that is this integer.
    fn imm(&self, value: i64) -> Result<Operand> {
        Ok(Operand { arg: self.with_builder(|b| b.imm(value))? })
    }

    /// Creates an operand that is the constant with this index (see `convert_constant`).
    fn c(&self, index: u32) -> Operand {
        Operand { arg: exec::Arg::constant(index) }
    }

    /// Creates an operand that is the function with this name.
    fn f(&self, name: &str) -> Result<Operand> {
        Ok(Operand { arg: self.with_builder(|b| b.f(name))? })
    }

    /// Returns the register for discarded results.
    fn void_arg(&self) -> u32 {
        exec::Reg::VOID.0
    }

    /// Adds a constant (an array, shape, number, string or dtype), and returns an operand for it.
    fn convert_constant(&self, value: &Bound<'_, PyAny>) -> Result<Operand> {
        let constant = match to_value(value)? {
            Value::Tensor(t) => {
                exec::Constant::Tensor(crate::relax::value_conversion::immutable_tensor(t)?)
            }
            Value::Shape(s) => exec::Constant::Shape(s),
            Value::Int(v) => exec::Constant::Int(v),
            Value::Float(v) => exec::Constant::Float(v),
            Value::Bool(v) => exec::Constant::Bool(v),
            Value::Str(s) => exec::Constant::Str(s),
            Value::DType(d) => exec::Constant::DType(d),
            Value::None => exec::Constant::None,
            other => {
                return Err(Error::Type(format!(
                    "convert_constant: a constant of an executable must be an array, shape, number, string, dtype or None, not {}",
                    other.kind()
                )));
            }
        };
        Ok(Operand { arg: self.with_builder(|b| b.c(constant))? })
    }

    fn _begin_function(
        &self,
        name: &str,
        num_inputs: usize,
        param_names: Option<Vec<String>>,
    ) -> Result<()> {
        if num_inputs > exec::MAX_REGS as usize {
            let limit = exec::MAX_REGS;
            return Err(Error::Value(format!(
                "ExecBuilder: the argument 'num_inputs' must be at most {limit}, not {num_inputs}"
            )));
        }
        let names =
            param_names.unwrap_or_else(|| (0..num_inputs).map(|i| format!("arg{i}")).collect());
        if names.len() != num_inputs {
            return Err(Error::Value(format!(
                "ExecBuilder: the argument 'num_inputs' is {num_inputs}, but 'param_names' has {} names",
                names.len()
            )));
        }
        let params = names.into_iter().map(exec::Param::new).collect();
        self.with_builder(|b| b.begin_function(name, params, ""))?;
        Ok(())
    }

    fn _end_function(&self) -> Result<()> {
        self.with_builder(exec::ExecBuilder::end_function)
    }

    /// Appends a call of a function. `dst` is the register operand for the result, or `None` to discard the result.
    #[pyo3(signature = (name, args=Vec::new(), dst=None))]
    fn emit_call(
        &self,
        name: &str,
        args: Vec<Bound<'_, PyAny>>,
        dst: Option<&Bound<'_, Operand>>,
    ) -> Result<()> {
        let mut list = Vec::with_capacity(args.len());
        for arg in &args {
            list.push(match arg.cast::<Operand>() {
                Ok(operand) => operand.get().arg,
                Err(_) => self.convert_constant(arg)?.arg,
            });
        }
        let dst = dst.map_or(Ok(exec::Reg::VOID), |d| register(d.get()))?;
        self.with_builder(|b| b.emit_call(name, &list, dst))?;
        Ok(())
    }

    /// Appends an instruction that returns the value of a register.
    fn emit_ret(&self, result: &Bound<'_, Operand>) -> Result<()> {
        let reg = register(result.get())?;
        self.with_builder(|b| b.emit_ret(reg))?;
        Ok(())
    }

    /// Appends a jump by the given number of instructions.
    fn emit_goto(&self, pc_offset: i32) -> Result<()> {
        self.with_builder(|b| b.emit_goto(pc_offset))?;
        Ok(())
    }

    /// Appends a branch: execution continues with the next instruction if the register holds a true
    /// value, and otherwise jumps by the given number of instructions.
    fn emit_if(&self, cond: &Bound<'_, Operand>, false_offset: i32) -> Result<()> {
        let reg = register(cond.get())?;
        self.with_builder(|b| b.emit_if(reg, false_offset))?;
        Ok(())
    }

    /// Validates and returns the finished executable.
    fn get(&self, py: Python<'_>) -> Result<Executable> {
        let builder = self.state.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(builder) = builder else {
            return Err(Error::Value(
                "ExecBuilder: the executable is already finished, so nothing can be added to it"
                    .into(),
            ));
        };
        let compiled = run_detached(py, || {
            let executable = builder.get().map_err(pliant::Error::from)?;
            Ok(CompiledModule::from_executable(executable)?)
        })?;
        Ok(Executable { compiled })
    }
}

fn register(operand: &Operand) -> Result<exec::Reg> {
    match operand.arg.decode() {
        Some(exec::ArgValue::Reg(reg)) => Ok(reg),
        _ => Err(Error::Type(
            "ExecBuilder: the operand must be a register, such as builder.r(0)".into(),
        )),
    }
}
